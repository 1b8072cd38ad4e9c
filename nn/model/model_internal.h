/* The inside of a model, shared by model.c, compile.c, step.c, fit.c and evaluate.c. */
#ifndef CORNU_NN_MODEL_INTERNAL_H
#define CORNU_NN_MODEL_INTERNAL_H

#include "../../device/guard_internal.h"
#include "shard_rows_internal.h"
#include "../layers/layer_internal.h"
#include "model.h"
#include "symbol_internal.h"

/* A loss, or a metric, with its states on the device. */
typedef struct {
    char          *name;                         /* its key in logs */
    CornuMetric   *metric;                       /* NULL for a loss, a mean */
    int            output;                       /* -1: the loss of all outputs */
    bool           weighted;                     /* by sample weights, one of .weighted_metrics */
    int            state_count;
    CornuVariable *states[CORNU_MAX_STATES];
    CornuArray     host[CORNU_MAX_STATES];       /* where states are read to */
} CornuTracked;

/* Training and tests need labels; the last two give their predictions. */
typedef enum {
    CORNU_STEP_TRAIN, CORNU_STEP_TEST, CORNU_STEP_TEST_PREDICT, CORNU_STEP_PREDICT
} CornuStepMode;

/* A batch's arrays: x of each input, y of each output, and sample weights: none, one array for all
 * outputs, or one for each. y and weights may be NULL for a step that predicts. */
typedef struct {
    const CornuArray *x, *y, *weights;
    int               weight_count;
} CornuArrays;

/* A step recorded for data of certain types, kept to be run again. */
typedef struct CornuStep {
    CornuStepMode     mode;
    int               x_count, y_count;          /* inputs, outputs; no y are fed to predict */
    int               weight_count;
    CornuType         x_types[CORNU_MAX_MODEL_TENSORS], y_types[CORNU_MAX_MODEL_TENSORS],
                      weight_types[CORNU_MAX_MODEL_TENSORS];
                                                 /* with the batch; y_types of predict are 0 */
    CornuGraph       *graph;
    int               shards;
    int64_t           rows;                      /* of a shard */
    CornuTensor      *x[CORNU_MAX_MODEL_TENSORS], *y[CORNU_MAX_MODEL_TENSORS],
                     *weights[CORNU_MAX_MODEL_TENSORS];
    CornuTensor      *count, *position;          /* what each shard is fed: its data, how many of
                                                    its rows are valid, where they begin */
    CornuTensor      *total;                     /* valid rows of all shards */
    CornuTensor      *predictions[CORNU_MAX_MODEL_TENSORS];   /* of a shard */
    CornuType         outputs[CORNU_MAX_MODEL_TENSORS];       /* of the batch's predictions */
    void             *staging[CORNU_MAX_MODEL_TENSORS]; /* predictions of the shards, before they
                                                     are gathered; or NULL */
    int64_t           fed_count;                 /* valid rows fed last */
    bool              stateful;                  /* some layer has states: no partial batches */
    bool              whole[CORNU_MAX_MODEL_TENSORS];   /* y are floats that must be whole */
    int64_t           fed_bytes;                 /* of x and y, padding rows included */
    struct CornuStep *next;
} CornuStep;

/* A call as a model makes it. Its values are all that its calls give, numbered in their order. */
typedef struct {
    CornuNode *node;
    int        in[CORNU_MAX_LAYER_TENSORS];      /* values it is given */
    int        first;                            /* the value that is its first result */
    int        next;                             /* the next call of its layer; of the last one the
                                                    first */
} CornuModelCall;

/* A model is a layer: those that it is made of are its inner ones, their weights its. A Sequential
 * model's input is made when its shape is known, and its calls with it. */
struct CornuModel {
    CornuLayer   base;
    CornuGuard   guard;
    uint64_t     seed;
    int64_t      next_generator;
    int64_t      batch_size;                     /* of every batch; 0: any */
    double       input_scale;
    CornuModelCall *calls;                       /* those they depend on first; inputs among them */
    int          call_count, call_space, value_count;
    CornuSymbol *inputs[CORNU_MAX_MODEL_TENSORS], *outputs[CORNU_MAX_MODEL_TENSORS];
    int          input_count, output_count;
    int          layer_space, weight_space;
    CornuLookup  labels, names;                  /* of its layers, whose names are known here once
                                                    they are added; labels are counted */
    CornuLookup  numbers;                        /* of its weights */
    CornuLookup  calls_of;                       /* by node the number of its call, by layer that of
                                                    the last call of it */
    const CornuPolicy *policy;                   /* in force, once compiled */
    CornuStatus  failed;                         /* of a layer that could not be added */
    char         failure[512];
    struct json_t *notes;                        /* key: string, and the list "class_names"; or
                                                    NULL */

    bool            compiled, ready;             /* ready: weights and variables are on `device` */
    CornuDevice    *device, *own_device;
    CornuOptimizer *optimizer;
    CornuLoss      *losses[CORNU_MAX_MODEL_TENSORS];
    double          loss_weights[CORNU_MAX_MODEL_TENSORS];
    CornuTracked    tracked[2 + CORNU_MAX_MODEL_TENSORS * (1 + 2 * CORNU_MAX_METRICS)];
    int             tracked_count;
    CornuTracked   *gradient_norm;               /* the last of them, of training alone; or NULL */
    CornuVariable  *seed_variable;               /* i64 */
    CornuStep      *steps;
    int64_t         steps_per_execution;         /* at least 1, once compiled */
    bool            stop_training, debug_nans;
    struct CornuTrace *trace;                    /* of a step of this epoch, or NULL */
    struct CornuTraining *training;              /* where fit stands (loop_internal.h), or NULL */
};

extern const CornuLayerClass cornu__sequential_class, cornu__functional_class;

/* A model without layers, its caller's. `usual` is its class in small letters, the name of which
 * `*made` were made, where none is given. NULL with a pending error. */
CornuModel *cornu__model_create(const CornuLayerClass *kind, const char *name, const char *policy,
                                int *made);

/* As cornu_model_from, of symbols that need not be the thread's, and which stay whose they are when
 * it fails. */
CornuModel *cornu__model_of(const CornuModelConfig *config);

/* Appends a layer, which the model holds; and a call, with the layer's weights. */
CornuStatus cornu__model_append_layer(CornuModel *model, CornuLayer *layer);
CornuStatus cornu__model_append_call(CornuModel *model, CornuNode *node);

/* Sets the model's weights: those of its layers, each once; or appends those of one more. */
CornuStatus cornu__model_list_weights(CornuModel *model);
CornuStatus cornu__model_add_weights(CornuModel *model, const CornuLayer *layer);

/* The number of a weight among the model's; -1 if it is none of them. */
int cornu__model_weight_index(const CornuModel *model, const CornuWeight *weight);

/* The model's first call of the layer, and the one after call i; -1 without one. */
int cornu__model_first_call(const CornuModel *model, const CornuLayer *layer);
int cornu__model_next_call(const CornuModel *model, int i);

/* The number of a symbol's value among the model's; -1 if it is none of them. */
int cornu__model_value_index(const CornuModel *model, const CornuSymbol *symbol);

/* Records the model's calls: `in` and its masks are those of its inputs. Sets its outputs and their
 * masks, and returns the first. */
CornuTensor *cornu__model_call_layers(const CornuModel *model, const CornuCall *call,
                                      CornuTensor *const *in, CornuTensor *const *masks,
                                      CornuTensor **out, CornuTensor **out_masks);

/* Whether all layers that input i goes to take whole numbers as they are. */
bool cornu__model_takes_integers(const CornuModel *model, int i);

/* For each public function that runs a model, changes it or reads its weights: takes the model for
 * this thread. CORNU_ERR_BUSY while another one is in it. To be left as often as it was entered;
 * NULL is nobody's. */
CornuStatus cornu__model_enter(CornuModel *model, const char *function);
void        cornu__model_leave(CornuModel *model);

/* Returns what `call` gives, made within the model by the public `function`. */
#define CORNU__WITHIN(model, function, call)                  \
    do {                                                      \
        CORNU__TRY(cornu__model_enter(model, function));      \
        const CornuStatus cornu__within = (call);             \
        cornu__model_leave(model);                            \
        return cornu__within;                                 \
    } while (0)

/* CORNU_OK for a model that can be used; else its layers' failure, or the pending error. */
CornuStatus cornu__model_check(const CornuModel *model);

/* For arrays and data sets: makes sure that the model is compiled and, given the type of a batch
 * of x, built, and that its variables are on the device. */
CornuStatus cornu__model_ready(CornuModel *model, CornuType x);

/* Frees what compiling made or was given; the weights stay. */
void cornu__uncompile(CornuModel *model);

/* Frees the states; the next step makes them again. */
void cornu__states_free(CornuTracked *tracked);

/* Frees a recorded step; forgets all of them. */
void cornu__step_free(CornuStep *step);
void cornu__steps_free(CornuModel *model);

#endif
