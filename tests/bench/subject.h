/* The subject of a measurement: a network on a device, with pseudo-random data. */
#ifndef CORNU_TESTS_BENCH_SUBJECT_H
#define CORNU_TESTS_BENCH_SUBJECT_H

#include "networks.h"

typedef struct {
    char        unset;
    const char *model;       /* "mnist_cnn" */
    char        device[256]; /* "cpu", "tpu", "pjrt:cpu": with the default policy of each */
    int64_t     batch;
    int         threads;     /* default all */
    int         shards;      /* that it trains on; default the device's own number */
    bool        predicts;    /* on one shard, a network over text with one step in time */
} SubjectConfig;

typedef struct {
    SubjectConfig    config;
    const Network   *network;       /* NULL: the model is one of models/ */
    CornuDevice     *device;
    CornuModel      *model;
    CornuArray       x, y, to;      /* `to` for predictions, y to train on */
    CornuExecutable *executable;    /* the training step, else NULL */
} Subject;

/* The names of the networks, those of models/ and then those of networks.h; NULL past the last. */
const char *subject_model(int i);

/* Whether a network is in the list (NULL: all of models/). */
bool subject_wanted(const char *list, const char *model);

/* The names of the devices that are measured by default, likewise: "cpu", "tpu". */
enum { SUBJECT_DEVICES = 2, SUBJECT_MOST = 4 };
const char *subject_device(int i);

/* Whether it is a plugin's, "pjrt:NAME", whose step is one program of which nothing more is known.
 * In a list it has no options, which are separated by commas, too. */
bool subject_is_plugin(const char *device);

/* Makes a config for each device in the list (NULL: cpu and tpu), otherwise as `base`; returns how
 * many, or -1 for a name that no device has, or too many. */
int subject_configs(const char *devices, const SubjectConfig *base,
                    SubjectConfig to[SUBJECT_MOST]);

/* Likewise, for those that are not plugins'. */
int subject_own_configs(const char *devices, const SubjectConfig *base,
                        SubjectConfig to[SUBJECT_MOST]);

/* subject_close frees the subject, also if opening it failed. */
CornuStatus subject_open(Subject *subject, const SubjectConfig *config);
void        subject_close(Subject *subject);

int subject_shards(const Subject *subject);
int subject_threads(const Subject *subject);

/* A whole training step on (x, y): feed, run, update; until it has ended. */
CornuStatus subject_train(void *subject);

#endif
