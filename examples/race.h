/*
 * One network trained on several devices in one process, and what can be said about their times.
 *
 * All begin with the same weights and see the same batches. Their epochs take turns, so that a
 * busy moment of the machine falls on all of them.
 *
 *     Race race = { .reference = reference, .data = data, .batch_size = 1024, .epochs = 3 };
 *     CornuStatus status = race_open(&race, "cpu,tpu:v3-8");
 *     if (!status) status = race_run(&race);
 *     if (!status) race_print(&race, stdout);
 *     race_close(&race);
 *
 * Three kinds of seconds are kept apart throughout: *measured* here, *modelled* from the published
 * figures of a TPU, and *published* by others.
 */
#ifndef CORNU_EXAMPLES_RACE_H
#define CORNU_EXAMPLES_RACE_H

#include <cornu/cornu.h>

enum { RACE_DEVICES = 8, RACE_MODELLED = 2 * (RACE_DEVICES + 1) };

/* One device, and what it did. */
typedef struct {
    char         name[32];       /* "tpu:v3-8" */
    CornuDevice *device;
    CornuModel  *model;
    double      *seconds;        /* of the training steps of each epoch, measured */
    double       loss, val_loss, val_accuracy;   /* of the last epoch */
} Racer;

/* What epochs of published length, or where none is published of the length run here, would take
 * on a TPU. Seconds per epoch. */
typedef struct {
    const CornuTpuProfile *profile;
    int                    shards;
    int64_t                batch_size, steps;
    double                 device_s, infeed_s, dispatch_s, total_s;
    CornuTpuBound          bound;
} ModelledEpoch;

typedef struct {
    /* Set by the caller. */
    const CornuReferenceModel *reference;
    const CornuTrainTest      *data;
    int64_t                    batch_size, epochs;
    double                     enough;         /* a val_accuracy: with it on every device training
                                                  ends after `least` epochs; 0: after all */
    int64_t                    least;
    int64_t                    steps;          /* of an epoch; 0: all batches */
    int64_t                    seed, threads;  /* 0: as many as there are processors */
    double                     learning_rate;  /* 0: the published one */

    /* Set by race_open and race_run. */
    int64_t                    samples;        /* of an epoch */
    int64_t                    done;           /* epochs that every device has run */
    Racer                      racers[RACE_DEVICES];
    int                        count;
    CornuCpuLimits             limits;         /* before and after the training, the better */
    ModelledEpoch              modelled[RACE_MODELLED];
    int                        modelled_count;
} Race;

/* Opens the devices of a list such as "cpu,tpu:v3-8" and prints what they are. CORNU_ERR_ARGUMENT
 * for an empty name or too many, CORNU_ERR_DEVICE for an unknown one. */
CornuStatus race_open(Race *race, const char *devices);

/* A model as the racers train it, compiled for a device; the caller frees it. NULL on failure. */
CornuModel *race_model(const Race *race, CornuDevice *device);

/* Gives each its model and trains, printing a line per epoch and device; then models the TPUs
 * among the devices, with a v2-8 among them if there is any. */
CornuStatus race_run(Race *race);

void race_close(Race *race);

/* The first of the epochs that count: the very first compiles the step, and does not where others
 * follow. */
int64_t race_first(const Race *race);

/* The middle one of a racer's epochs that count, of an even number of them the mean of the two in
 * the middle. Seconds. */
double race_median(const Race *race, const Racer *racer);

/* How many times as fast as `than` a racer is, by their medians, where that is more than chance: 0
 * unless the medians lie farther apart than the ranges of both racers' epochs together, and of two
 * epochs three times as far; fewer never say. So that of devices that are equally fast, their
 * epochs scattered normally, fewer than two races in a hundred call one the faster. */
double race_ratio(const Race *race, const Racer *racer, const Racer *than);

/* What is predicted for each sample: a class, or as many characters as a sequence has. */
int64_t race_targets(const Race *race);

/* GFLOP/s in such an epoch; and of the limit of this CPU, in the dtype that the policy multiplies
 * in, 0 to 1; NAN where that is not one of the limits. */
double race_gflops(const Race *race, const Racer *racer);
double race_of_limit(const Race *race, const Racer *racer);

/* "native", or "emulated": real numbers in this CPU's time. */
const char *race_kind(const Racer *racer);

/* Published epochs of this network, in the order of their table; NULL past the last. */
const CornuPublishedEpoch *race_published(const Race *race, int i);

/* ---- What came out (race_report.c) ---- */

/* The three blocks. */
void race_print(const Race *race, FILE *to);

/* {"model", …, "machine": {…}, "measured": [{"device", "label", "epoch_seconds": […], "accuracy",
 * …}], "modelled": […], "published": […]}; numbers that do not exist are null. */
CornuStatus race_write(const Race *race, const char *path);

/* Measured bars above, modelled and published ones below. */
CornuStatus race_draw(const Race *race, const char *path);

#endif
