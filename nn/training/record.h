/*
 * The record of a training run as a JSON file, for plots and comparisons.
 *
 *     {"model": "mnist_cnn", "device": "cpu", "policy": "float32", "threads": 2, "shards": 1,
 *      "processes": 1, "label": "measured", "parameters": 93322,
 *      "data": {"name": "mnist", "synthetic": false, "train": 60000, "test": 10000},
 *      "epochs": [{"epoch": 1, "seconds": 12.5, "samples_per_second": 4800, "gflops": 61.2,
 *                  "loss": …, "accuracy": …, "val_loss": …, "val_accuracy": …,
 *                  "infeed": {"batches": 469, "bytes": 47568576, "wait_seconds": 0.002,
 *                             "copy_seconds": 0.006}}],
 *      "test": {"loss": …, "accuracy": …}}
 *
 * "measured": every time is wall-clock time on this machine. A number that does not exist (no
 * validation data) or is not finite is null. Of several processes rank 0 writes the file, with the
 * threads, times and infeed of its own; samples are those of all.
 */
#ifndef CORNU_NN_RECORD_H
#define CORNU_NN_RECORD_H

#include "history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *model, *device, *policy;
    int         threads, shards;
    int         processes;          /* that trained together; 0 is as 1 */
    int64_t     parameters;
    struct {
        const char *name;
        bool        synthetic;
        int64_t     train, test;    /* samples */
    } data;
    const CornuHistory *history;    /* NULL: no epochs */
    double      flops_per_sample;   /* of a training step, for gflops; NAN if unknown */
    double      test_loss, test_accuracy; /* NAN without a test */
} CornuRunRecord;

/* Writes the file completely or not at all. CORNU_ERR_FILE if it cannot be written; to find out
 * before a long training, call cornu_file_check (file.h). Meets no other process; on other ranks
 * than 0 nothing is written. */
CornuStatus cornu_record_write(const CornuRunRecord *record, const char *path);

#ifdef __cplusplus
}
#endif
#endif
