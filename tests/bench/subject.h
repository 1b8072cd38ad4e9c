/* The subject of a measurement: a network on a device, with pseudo-random data. */
#ifndef CORNU_TESTS_BENCH_SUBJECT_H
#define CORNU_TESTS_BENCH_SUBJECT_H

#include "../../nn/model/model.h"

typedef struct {
    char        unset;
    const char *model;       /* "mnist_cnn" */
    const char *device;      /* "cpu", "tpu": with the default policy of each */
    int64_t     batch;
    int         threads;     /* default all */
    bool        predicts;    /* on one shard, a network over text with one step in time; else it
                                trains on the device's own number of shards */
} SubjectConfig;

typedef struct {
    SubjectConfig    config;
    CornuDevice     *device;
    CornuModel      *model;
    CornuArray       x, y, to;      /* `to` for predictions, y to train on */
    CornuExecutable *executable;    /* the training step, else NULL */
} Subject;

/* The names of the networks; NULL past the last. */
const char *subject_model(int i);

/* The names of the devices, likewise: "cpu", "tpu". */
enum { SUBJECT_DEVICES = 2 };
const char *subject_device(int i);

/* Makes a config for each device in the list, otherwise as `base`; returns how many. */
int subject_configs(const char *devices, const SubjectConfig *base,
                    SubjectConfig to[SUBJECT_DEVICES]);

/* subject_close frees the subject, also if opening it failed. */
CornuStatus subject_open(Subject *subject, const SubjectConfig *config);
void        subject_close(Subject *subject);

int subject_shards(const Subject *subject);
int subject_threads(const Subject *subject);

/* A whole training step on (x, y): feed, run, update. */
CornuStatus subject_train(void *subject);

#endif
