/*
 * A model that is loaded from a file and predicts, for any number of threads at once. Whoever uses
 * one holds a reference, so that it may be replaced meanwhile.
 */
#ifndef CORNU_SERVE_SERVED_H
#define CORNU_SERVE_SERVED_H

#include <stdatomic.h>

#include "../json/reply.h"
#include "../settings.h"

/* An input or output: its name and type, axis 0 and extents that may differ CORNU_NONE. */
typedef struct {
    const char *name;
    CornuType   type;
} ServedTensor;

/* Sizes of batches in ascending order: rows of sizes with the same end have the same bits. */
enum { SERVED_MOST_SIZES = 48 };

typedef struct {
    int64_t size[SERVED_MOST_SIZES], end[SERVED_MOST_SIZES];
    int     count;
} ServedSizes;

/* Requests that wait for this model; the batcher's. */
typedef struct {
    struct Job    *first, *last;
    int64_t        rows;
    struct Served *next;               /* another model with requests that wait */
} ServedQueue;

typedef struct Served {
    char          *name;
    int64_t        version;
    CornuPredictor *predictor;         /* for any number of threads */
    int            input_count, output_count;
    ServedTensor   inputs[CORNU_MAX_MODEL_TENSORS], outputs[CORNU_MAX_MODEL_TENSORS];
    double         input_scale;        /* of integers, which requests do not have; 1: none */
    int64_t        fixed_rows;         /* of every batch; 0: any number */
    ServedSizes    sizes;
    ServedQueue    queue;
    atomic_int     references;
} Served;

/* Loads a model and lets it predict, so that it is compiled before the first request. The caller
 * holds the first reference. NULL on failure. */
Served *served_load(const Settings *settings, const char *name, int64_t version, const char *path,
                    Problem *problem);

Served *served_hold(Served *served);
void    served_release(Served *served);

/* Predicts rows: x of each input, to of each output, as served_make_outputs makes them.
 * Thread-safe. */
bool served_predict(Served *served, const CornuArray *x, const CornuArray *to, Problem *problem);

/* The types of all outputs for such inputs, and memory for them: the caller frees the data, also on
 * failure. Thread-safe. */
bool served_make_outputs(Served *served, const CornuArray *x, CornuArray *y, Problem *problem);

/* Up to how many rows a batch may have that contains a request of `rows` rows, and gives it the
 * bits that it has by itself: the last bits of a row may depend on how many are computed. Which
 * sizes of batches agree is tried with random rows when the model is loaded (same_bits.c). */
int64_t served_most_rows(const Served *served, int64_t rows);

/* Predicts batches of several sizes, which also compiles them, and sets served->sizes; for
 * served_load. */
bool served_try_sizes(Served *served, int64_t batch_size, Problem *problem);

/* Whether the rows of its only output are scores of classes, (N, C), or one number each, (N, 1) or
 * (N). */
bool served_classifies(const Served *served);
bool served_regresses(const Served *served);

#endif
