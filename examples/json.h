/*
 * Writes JSON, a member per line:
 *
 *     Json json;
 *     json_begin_file(&json);
 *     json_text(&json, "model", "mnist_cnn");
 *     json_begin(&json, "epochs", '[');
 *     json_number(&json, NULL, 1.5);
 *     json_end(&json);
 *     status = json_end_file(&json, "run.json");
 *
 * writes {"model": "mnist_cnn", "epochs": [1.5]}. A key is NULL in a list. Only json_end_file can
 * fail.
 */
#ifndef CORNU_EXAMPLES_JSON_H
#define CORNU_EXAMPLES_JSON_H

#include <cornu/cornu.h>

enum { JSON_DEPTH = 16 };

typedef struct {
    FILE  *to;                   /* NULL: out of memory */
    char  *text;
    size_t length;
    int    depth;
    char   closing[JSON_DEPTH];  /* of each open object or list */
    bool   empty;                /* nothing in the innermost one so far */
} Json;

void json_begin_file(Json *json);
void json_begin(Json *json, const char *key, char bracket);   /* '{' or '[' */
void json_end(Json *json);
void json_text(Json *json, const char *key, const char *value);
void json_whole(Json *json, const char *key, int64_t value);
void json_number(Json *json, const char *key, double value);   /* null if it is not finite */
void json_flag(Json *json, const char *key, bool value);

/* Ends what is open, writes the file and releases the memory. */
CornuStatus json_end_file(Json *json, const char *path);

#endif
