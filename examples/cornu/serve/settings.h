/* The command line of cornu serve. */
#ifndef CORNU_SERVE_SETTINGS_H
#define CORNU_SERVE_SETTINGS_H

#include "../common/options.h"

typedef struct {
    Options     options;          /* --device, --threads */
    const char *models;           /* a folder of models, or NULL */
    OptionTexts model;            /* "NAME=PATH" */
    OptionTexts label;            /* "NAME:LABEL=VERSION" */
    int64_t     versions;         /* of each model, the latest */
    double      poll_s;
    const char *address;
    int64_t     port;
    int64_t     batch_size;       /* rows */
    double      batch_timeout_ms;
    int64_t     queue;            /* requests */
    double      max_body_mib;
    int64_t     connections;
    double      timeout_s;
} Settings;

/* -1 to continue, else the status to exit with. */
int settings_parse(Settings *settings, int argc, char **argv);

/* The length of NAME in "NAME=PATH" or "NAME:LABEL=VERSION", up to the first of `ends`; 0 unless it
 * is a name that a path of the REST interface can have: not empty, without '/', ':' and '='. */
size_t settings_name(const char *text, char end);

/* The version that a label of a model stands for; -1 if the model has no such label. */
int64_t settings_label(const OptionTexts *labels, const char *name, const char *label);

/* Whether a version of a model has a label. */
bool settings_has_label(const OptionTexts *labels, const char *name, int64_t number);

#endif
