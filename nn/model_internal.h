/* The inside of a model, shared by model.c, compile.c, step.c, fit.c and evaluate.c. */
#ifndef CORNU_NN_MODEL_INTERNAL_H
#define CORNU_NN_MODEL_INTERNAL_H

#include "deal_internal.h"
#include "layer_internal.h"
#include "model.h"
#include "trace.h"

/* The loss, or a metric, with its states on the device. */
typedef struct {
    CornuMetric   *metric;                       /* NULL for the loss, a mean */
    int            state_count;
    CornuVariable *states[CORNU_MAX_STATES];
    CornuArray     host[CORNU_MAX_STATES];       /* where states are read to */
} CornuTracked;

/* Training and tests need labels; the last two give their predictions. */
typedef enum {
    CORNU_STEP_TRAIN, CORNU_STEP_TEST, CORNU_STEP_TEST_PREDICT, CORNU_STEP_PREDICT
} CornuStepMode;

/* A step recorded for data of certain types, kept to be run again. */
typedef struct CornuStep {
    CornuStepMode     mode;
    CornuType         x_type, y_type;            /* with the batch; y_type of predict is 0 */
    CornuGraph       *graph;
    int               shards;
    int64_t           rows;                      /* of a shard */
    CornuTensor      *x, *y, *count, *position;  /* what each shard is fed: its data, how many of
                                                    its rows are valid, where they begin */
    CornuTensor      *total;                     /* valid rows of all shards */
    CornuTensor      *prediction;                /* of a shard */
    CornuType         output;                    /* of the batch's predictions */
    void             *blank;                     /* zeros: rows that a shard lacks; or NULL */
    void             *room;                      /* for predictions before they are dealt back */
    int64_t           fed_count;                 /* valid rows fed last */
    bool              stateful;                  /* some layer has states: no partial batches */
    int64_t           fed_bytes;                 /* of x and y, padding rows included */
    struct CornuStep *next;
} CornuStep;

struct CornuModel {
    char        *name;
    uint64_t     seed;
    int64_t      next_generator;
    CornuShape   input;                          /* rank 0 until known; axis 0 is CORNU_NONE */
    int64_t      batch_size;                     /* of every batch; 0: any */
    double       input_scale;
    const CornuPolicy *policy, *own_policy;      /* in force, once compiled; set for the model, or
                                                    NULL where the device decides */
    CornuLayer **layers;
    int          layer_count, layer_space;
    bool         built;
    CornuStatus  failed;                         /* of a layer that could not be added */
    char         failure[512];

    bool            compiled, ready;             /* ready: weights and variables are on `device` */
    CornuDevice    *device, *own_device;
    CornuOptimizer *optimizer;
    CornuLoss      *loss;
    CornuTracked    tracked[1 + CORNU_MAX_METRICS];
    int             tracked_count;
    CornuVariable  *seed_variable;               /* i64 */
    CornuStep      *steps;
    int64_t         steps_per_execution;         /* at least 1, once compiled */
    bool            stop_training;
    CornuTrace     *trace;                       /* of a step of this epoch, or NULL */
};

/* CORNU_OK for a model that can be used; else its layers' failure, or the pending error. */
CornuStatus cornu__model_check(const CornuModel *model);

/* For arrays and data sets: makes sure that the model is compiled and, given the type of a batch
 * of x, built, and that its variables are on the device. */
CornuStatus cornu__model_ready(CornuModel *model, CornuType x);

/* Frees what compiling made or was given; the weights stay. */
void cornu__uncompile(CornuModel *model);

/* Frees the states; the next step makes them again. */
void cornu__states_free(CornuTracked *tracked);

/* Forgets the recorded steps. */
void cornu__steps_free(CornuModel *model);

/* The step for batches of these types: recorded at the first call, found again later. */
CornuStatus cornu__step(CornuModel *model, CornuStepMode mode, CornuType x, CornuType y,
                        CornuStep **step);

/* Feeds a batch whose first `valid` rows count; a step that predicts does not look at y. */
CornuStatus cornu__step_feed(CornuStep *step, CornuArray x, const CornuArray *y, int64_t valid);

/* Runs on what was fed; a step that gives predictions writes those of the whole batch to `to`. */
CornuStatus cornu__step_run(CornuStep *step, CornuArray *to);

/* values[i]: the results of the loss and each metric. */
CornuStatus cornu__metrics_read(CornuModel *model, double *values);

#endif
