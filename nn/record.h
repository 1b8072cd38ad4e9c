/*
 * The record of a training run as a JSON file, for plots and comparisons.
 *
 *     {"model": "mnist_cnn", "device": "cpu", "policy": "float32", "threads": 2, "shards": 1,
 *      "label": "measured", "parameters": 93322,
 *      "data": {"name": "mnist", "synthetic": false, "train": 60000, "test": 10000},
 *      "epochs": [{"epoch": 1, "seconds": 12.5, "samples_per_second": 4800, "gflops": 61.2,
 *                  "loss": …, "accuracy": …, "val_loss": …, "val_accuracy": …}],
 *      "test": {"loss": …, "accuracy": …}}
 *
 * "measured" is what every time in it is: wall clock on this machine. A number that does not
 * exist (no validation data), or is not finite, is null.
 */
#ifndef CORNU_NN_RECORD_H
#define CORNU_NN_RECORD_H

#include <stdint.h>

#include "../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NAN stands for a number that does not exist. */
typedef struct {
    double seconds;
    double samples_per_second;
    double gflops;              /* 1e9 floating-point operations per second */
    double loss, accuracy, val_loss, val_accuracy;
} CornuEpochRecord;

typedef struct {
    const char *model, *device, *policy;
    int         threads, shards;
    int64_t     parameters;
    struct {
        const char *name;
        bool        synthetic;
        int64_t     train, test;   /* samples */
    } data;
    const CornuEpochRecord *epochs;
    int64_t     epoch_count;
    double      test_loss, test_accuracy;
} CornuRunRecord;

/* Writes the file whole or not at all. CORNU_ERR_FILE if it cannot be written. */
CornuStatus cornu_history_write(const char *path, const CornuRunRecord *run);

#ifdef __cplusplus
}
#endif
#endif
