/* What is measured: a network on a device, with data that mean nothing. */
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

/* The networks that can be asked for; NULL past the last. */
const char *subject_model(int i);

/* Likewise the devices: "cpu", "tpu". */
enum { SUBJECT_DEVICES = 2 };
const char *subject_device(int i);

/* A config for each device that is in the list, `base` but for the device; how many. */
int subject_configs(const char *devices, const SubjectConfig *base,
                    SubjectConfig to[SUBJECT_DEVICES]);

/* All that is set is freed by subject_close, also when opening fails. */
CornuStatus subject_open(Subject *subject, const SubjectConfig *config);
void        subject_close(Subject *subject);

int subject_shards(const Subject *subject);
int subject_threads(const Subject *subject);

/* One step of training on (x, y), all of it: feed, run, update. */
CornuStatus subject_train(void *subject);

#endif
