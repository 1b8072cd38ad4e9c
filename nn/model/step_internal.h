/* The steps that a model has recorded, one for each mode and each type of its data. */
#ifndef CORNU_NN_MODEL_STEP_INTERNAL_H
#define CORNU_NN_MODEL_STEP_INTERNAL_H

#include "../../datasets/pipeline/shard_rows_internal.h"
#include "../../device/inference_internal.h"
#include "model.h"

/* A loss or a metric with its states on the device. */
typedef struct {
    char          *name;                         /* its key in logs */
    CornuMetric   *metric;                       /* NULL for a loss, a mean */
    int            output;                       /* -1: the loss of all outputs */
    bool           weighted;                     /* one of .weighted_metrics */
    bool           own, last;                    /* a log of the model's own step; what it had last
                                                    and no mean */
    bool           trained, tested;              /* in training, in evaluation */
    int            state_count;
    CornuVariable *states[CORNU_MAX_STATES];
    CornuArray     host[CORNU_MAX_STATES];       /* host copies of the states */
} CornuTracked;

/* TRAIN and both TEST modes need labels; the last two modes return predictions. */
typedef enum {
    CORNU_STEP_TRAIN, CORNU_STEP_TEST, CORNU_STEP_TEST_PREDICT, CORNU_STEP_PREDICT
} CornuStepMode;

/* A data set in the device's memory, from which a step takes rows (training/to_device.h). */
typedef struct CornuResident {
    uint64_t     id;       /* of no other one of this process */
    CornuDevice *device;
    /* The rows of a component with these numbers, i64 (B), as `type`. */
    CornuTensor *(*take)(const struct CornuResident *self, CornuGraph *graph, int component,
                         CornuTensor *numbers, CornuType type);
    /* Whether the labels of a component, all of them, are class numbers; once. */
    CornuStatus  (*check_classes)(struct CornuResident *self, int component);
} CornuResident;

/* A batch's arrays: x per input, y per output, and sample weights: none, one array for all outputs,
 * or one per output. y and weights may be NULL for CORNU_STEP_PREDICT. */
typedef struct {
    const CornuArray *x, *y, *weights;
    int               weight_count;
    CornuResident    *resident;       /* the device has them: these arrays are types alone, and */
    CornuArray        rows;           /* i64 (B) their rows; NULL: none */
} CornuArrays;

struct CornuStep;

/* What a step does otherwise that runs as a pipeline (training/pipeline_step.c). */
typedef struct {
    /* As cornu_graph_feed_part, for rows counted over all shards, of this type. */
    CornuStatus (*feed)(struct CornuStep *step, CornuTensor *input, CornuType type, int64_t first,
                        int64_t rows, const void *data);
    CornuStatus (*feed_counts)(struct CornuStep *step, const CornuShardRows *split, int64_t valid);
    /* All is recorded. */
    CornuStatus (*finish)(struct CornuModel *model, struct CornuStep *step);
    /* Of one that predicts, `to` are the shards' predictions, by shard. */
    CornuStatus (*run)(struct CornuStep *step, CornuArray *to);
    const CornuStatistics *(*statistics)(const struct CornuStep *step);
    void        (*free)(struct CornuStep *step);
} CornuStepRuns;

/* A step recorded for certain types of data and kept to be run again. */
typedef struct CornuStep {
    CornuStepMode     mode;
    int               x_count, y_count;          /* inputs, outputs; predict feeds no y */
    int               weight_count;
    CornuType         x_types[CORNU_MAX_MODEL_TENSORS], y_types[CORNU_MAX_MODEL_TENSORS],
                      weight_types[CORNU_MAX_MODEL_TENSORS];
                                                 /* batch included; y_types of predict are 0 */
    CornuGraph       *graph;
    int               shards;
    CornuShare        own;                       /* those of this process */
    int64_t           rows;                      /* of a shard */
    CornuTensor      *x[CORNU_MAX_MODEL_TENSORS], *y[CORNU_MAX_MODEL_TENSORS],
                     *weights[CORNU_MAX_MODEL_TENSORS];
    CornuResident    *resident;                  /* where their rows are on the device, or NULL; */
    uint64_t          resident_id;               /* freed with its data set, unlike its number */
    CornuTensor      *row_numbers;               /* i64: those of the shard in it */
    CornuTensor      *count, *position;          /* per shard: number of valid rows, and the
                                                    position of the first in the batch */
    CornuTensor      *total;                     /* valid rows of all shards */
    CornuTensor      *predictions[CORNU_MAX_MODEL_TENSORS];   /* of a shard */
    CornuType         outputs[CORNU_MAX_MODEL_TENSORS];       /* of the batch's predictions */
    void             *staging[CORNU_MAX_MODEL_TENSORS]; /* predictions of the shards, before they
                                                     are gathered; or NULL */
    struct CornuPipelineStep *pipeline;          /* of one that runs in stages; or NULL */
    bool              microbatched;              /* its shards are those of all microbatches */
    const CornuStepRuns *runs;                   /* how that one runs */
    int64_t           fed_count;                 /* valid rows fed last */
    bool              draws;                     /* tests or predicts with random numbers, by */
    int64_t           ahead, fed_ahead;          /* the rows of the pass before this batch: set
                                                    before it is fed, else 0 */
    bool              concurrent;                /* runs beside others on the device */
    bool              stateful;                  /* some layer has states, so no partial batches */
    bool              once;                      /* cornu__model_runs_once: every shard computes all
                                                    of it */
    bool              together;                  /* one that trains or tests such a model: batches
                                                    are full */
    bool              whole_batch;               /* recorded as on one shard, for all there are
                                                    (cornu_graph_set_whole_batch) */
    bool              whole[CORNU_MAX_MODEL_TENSORS];   /* y are floats that must be integers */
    int64_t           fed_bytes;                 /* of x and y to the own shards, padding rows
                                                    included */
    struct CornuStep *next;
} CornuStep;

/* Whether a step computes all that it is given at once; the library for inference does not read
 * it. */
static inline bool cornu__step_runs_once(const CornuStep *step)
{
    return CORNU__FULL(step->once, false);
}

/* Frees the states; the next step creates them again. */
void cornu__states_free(CornuTracked *tracked);

/* Frees a recorded step. */
void cornu__step_free(CornuStep *step);

static inline size_t cornu__row_bytes(CornuType type)
{
    type.shape.extent[0] = 1;
    return cornu_type_bytes(type);
}

/* A batch's type with the rows of one shard. */
static inline CornuType cornu__shard_type(const CornuStep *step, CornuType batch)
{
    batch.shape.extent[0] = step->rows;
    return batch;
}

static inline bool cornu__step_predicts(const CornuStep *step)
{
    return step->mode == CORNU_STEP_TEST_PREDICT || step->mode == CORNU_STEP_PREDICT;
}

#endif
