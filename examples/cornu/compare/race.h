/*
 * Trains one network on several devices in one process, and compares their times.
 *
 * All start from the same weights and see the same batches. Their epochs alternate, so that a busy
 * moment of the machine affects all of them.
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

#include "../common/data.h"

enum { RACE_DEVICES = 8, RACE_MODELLED = 2 * (RACE_DEVICES + 1) };

/* One device and its results. */
typedef struct {
    char         name[256];      /* "tpu:v3-8", "pjrt:cpu" */
    CornuDevice *device;
    CornuModel  *model;
    double      *seconds;        /* of the training steps of each epoch, measured */
    double      *joules;         /* of this machine meanwhile; NAN: unknown */
    double      *accuracies;     /* val_accuracy of each epoch */
    bool         has_price;      /* see race_cost.h */
    double       price;          /* per hour */
    double       loss, val_loss, val_accuracy;   /* of the last epoch */
    double       flops;          /* of a step, of all processes; 0: as its model says */
} Racer;

/* Seconds that an epoch of published length would take on a TPU; if none is published, one of the
 * length run here. */
typedef struct {
    const CornuTpuProfile *profile;
    int                    shards;
    int64_t                chips;
    int64_t                batch_size, steps;
    double                 device_s, infeed_s, dispatch_s, total_s;
    CornuTpuBound          bound;
} ModelledEpoch;

typedef struct Race Race;

struct Race {
    /* Set by the caller: a network of models/ and its data, or any model and data. */
    const CornuReferenceModel *reference;
    const CornuTrainTest      *data;
    const char                *name;
    CornuModel              *(*make)(const Race *race, CornuDevice *device);   /* compiled */
    const void                *context;        /* for make */
    const Data                *own;            /* NULL: those above */
    int64_t                    batch_size, epochs;
    double                     enough;         /* training ends, after at least `least` epochs, once
                                                  every device has this val_accuracy; 0: after
                                                  all epochs */
    int64_t                    least;
    int64_t                    steps;          /* of an epoch; 0: all batches */
    int64_t                    seed, threads;  /* 0: as many as there are processors */
    double                     learning_rate;  /* 0: the published one */
    CornuProcesses            *processes;      /* that run the race together; NULL: this one */
    int                        shards;         /* 0: those of the device, but on a cpu one for each
                                                  process */
    const Options             *meshed;         /* of mesh_flags.h, which cut the models on all
                                                  devices; NULL: none */

    CornuEnergyMeter                energy;         /* opened, if energy is to be measured */

    /* Set by race_open and race_run. */
    int64_t                    samples;        /* of an epoch */
    int64_t                    done;           /* epochs that every device has run */
    Racer                      racers[RACE_DEVICES];
    int                        count;
    CornuCpuLimits             limits;         /* the better of before and after training; of
                                                  all processes together */
    ModelledEpoch              modelled[RACE_MODELLED];
    int                        modelled_count;
};

/* Opens the devices of a list such as "cpu,tpu:v3-8,pjrt:cpu" and prints what they are; since
 * commas separate them, a pjrt device has no options here. CORNU_ERR_ARGUMENT for an empty name,
 * one that is too long, or too many, CORNU_ERR_DEVICE for an unknown one. */
CornuStatus race_open(Race *race, const char *devices);

/* A model as it is trained here, compiled for a device; the caller frees it. NULL on failure. */
CornuModel *race_model(const Race *race, CornuDevice *device);

/* Trains a model on each device, printing a line per epoch and device; then models the TPUs among
 * the devices, and a v2-8 if there is any. */
CornuStatus race_run(Race *race);

void race_close(Race *race);

/* The first epoch that counts: the very first one includes compiling, so it counts only if it is
 * the only one. */
int64_t race_first(const Race *race);

/* The median of the epochs that count, in seconds; in joules, NAN if they were not measured. */
double race_median(const Race *race, const Racer *racer);
double race_joules(const Race *race, const Racer *racer);

/* How many times as fast as `than` a racer is, by their medians, or 0 if that may be chance: unless
 * the medians differ by more than the ranges of both racers' epochs together (with two epochs,
 * three times as much; with one, always 0). For equally fast devices with normally distributed
 * times, fewer than two races in a hundred call one faster. */
double race_ratio(const Race *race, const Racer *racer, const Racer *than);

/* What runs: the model's name, the rows of its data, and what these are called; and a note,
 * " on SYNTHETIC data", " on RANDOM data" or "". */
const char *race_name(const Race *race);
int64_t     race_rows(const Race *race);
const char *race_data(const Race *race);
const char *race_data_note(const Race *race);
bool        race_is_synthetic(const Race *race);

/* The settings of fit for its data and batches, without validation. */
CornuFitConfig race_fit(const Race *race, CornuModel *model);

/* Whether the epochs are validated; else accuracies are NAN. */
bool race_validates(const Race *race);

/* How many predictions a sample has: one class, or the characters of a sequence. */
int64_t race_targets(const Race *race);

/* GFLOP/s in the median epoch; and as a fraction of this CPU's limit in the dtype that the policy
 * multiplies in, NAN if that limit is not measured or the device is not this CPU. */
double race_gflops(const Race *race, const Racer *racer);
double race_of_limit(const Race *race, const Racer *racer);

/* "native", or "emulated": computes what a TPU would, on this CPU. */
const char *race_kind(const Racer *racer);

/* The word for a prediction: "class", "character", "row". */
const char *race_target_word(const Race *race);

/* Published epochs of this network, in the order of their table; NULL past the last. */
const CornuPublishedEpoch *race_published(const Race *race, int i);

/* ---- Results (race_report.c) ---- */

/* The tables of measured, modelled and published times. */
void race_print(const Race *race, FILE *to);

/* {"model", …, "machine": {…}, "measured": [{"device", "label", "epoch_seconds": […], "accuracy",
 * …}], "modelled": […], "published": […]}; numbers that are unknown are null. */
CornuStatus race_write(const Race *race, const char *path);

/* Measured bars above, modelled and published ones below. */
CornuStatus race_draw(const Race *race, const char *path);

#endif
