/* The struct of a model, for nn/model, nn/training, nn/saving and nn/callbacks. */
#ifndef CORNU_NN_MODEL_INTERNAL_H
#define CORNU_NN_MODEL_INTERNAL_H

#include "../../device/device_internal.h"
#include "../../device/inference_internal.h"
#include "../layers/layer_internal.h"
#include "model.h"
#include "compile.h"
#include "step_internal.h"
#include "symbol_internal.h"

/* What is asked of models as layers, some of whose layers run on the host, before the step
 * (host_stage.c). */
typedef struct CornuHostStage {
    bool        (*has)(const CornuLayer *layer);
    /* Whether such a layer takes an operand of the model. */
    bool        (*takes)(const CornuLayer *layer, int operand);
    /* Builds a model that is not built for its input, in[0]. */
    CornuStatus (*build)(CornuLayer *layer, const CornuType *in);
    /* The types of the outputs of a model that has such layers. */
    CornuStatus (*types)(const CornuLayer *layer, const CornuType *in, int in_count,
                         CornuType *out);
} CornuHostStage;

/* Whether row i of each output depends on row i of the inputs alone, so that batches may be cut
 * and padded. */
typedef enum {
    CORNU_ROWS_UNKNOWN, CORNU_ROWS_INDEPENDENT,
    CORNU_ROWS_BY_BATCH,    /* on the others of its batch: none is padded, or dealt over shards */
    CORNU_ROWS_DEPENDENT    /* of a file's graph, which need not be of batches: none is cut */
} CornuRows;

/* A call of a model. The outputs of all calls, in order, are the model's values. */
typedef struct {
    CornuNode *node;
    int       *in;                               /* indices of its input values, then of the
                                                    masks given for them */
    int        first;                            /* index of its first output value */
    int        next;                             /* the next call of the same layer, cyclic */
    int        nth;                              /* calls[i].nth: the i-th call of a step */
} CornuModelCall;

/* What only a compiled model does, training or not. It is reached through the model alone, so that
 * programs which compile none need not contain it. */
typedef struct {
    /* The weights are on the device: makes the optimizer's variables. Before that, if there are
     * layers in f16, scales the loss. */
    CornuStatus (*build)(CornuModel *model);
    CornuStatus (*scale_loss)(CornuModel *model);
    /* Before the first training step: makes the optimizer's variables those of the weights that are
     * trainable now. After it, the first time that they are others, logs a warning. */
    CornuStatus (*follow)(CornuModel *model);
    /* Makes the step run as model->pipeline says, if it is to. */
    CornuStatus (*pipeline)(const CornuModel *model, CornuStep *step);
    /* Packs the trained weights, before a step that trains is made. */
    CornuStatus (*pack)(CornuModel *model);
    /* Records what follows a step's predictions: losses, metrics, and the update if it trains. The
     * masks are those of the predictions; `added`: the sum that layers add to the loss, or NULL. */
    CornuStatus (*record)(CornuModel *model, CornuStep *step, CornuTensor *const *masks,
                          CornuTensor *added);
    /* Records the model's own step in place of all that: its predictions, if it predicts. */
    CornuStatus (*own)(CornuModel *model, CornuStep *step);
    /* Says in the message of a failure for want of memory which layouts would fit. x and y: arrays
     * of a batch; NULL: any. */
    void (*advise)(CornuModel *model, const CornuArray *x, const CornuArray *y);
    /* Frees optimizer, losses and metrics. */
    void (*free)(CornuModel *model);
} CornuCompiled;

extern const CornuCompiled cornu__compiled;

typedef enum { CORNU_JIT_AUTO, CORNU_JIT_TRUE, CORNU_JIT_FALSE } CornuJitCompile;

/* A model is a layer with inner layers, whose weights are its weights. The input and the calls of a
 * Sequential model are made when the shape of the input is known. */
struct CornuModel {
    CornuLayer   base;
    CornuGuard   guard;
    uint64_t     seed;
    int64_t      next_generator;
    int64_t      batch_size;                     /* rows of every batch; 0: any */
    bool         function;                       /* axis 0 is not a batch that inputs and outputs
                                                    share: types are whole, and it runs once */
    bool         trains_as_inference;            /* as cornu_model_train_as_inference says */
    bool         built_by_call;                  /* Sequential, for its first call: later ones may
                                                    have other extents, which its layers check */
    bool         is_traced;                      /* a graph of a traced layer: calls in it may be
                                                    told training, as in Keras no other model's */
    CornuRows    rows;                           /* of another: as far as is known */
    CornuText    dependence;                     /* where rows depend on each other, for messages */
    double       input_scale;
    CornuModelCall *calls;                       /* in topological order, inputs included */
    int          call_count, call_space, value_count;
    CornuSymbol *inputs[CORNU_MAX_MODEL_TENSORS], *outputs[CORNU_MAX_MODEL_TENSORS];
    CornuSymbol **more;                          /* of a graph of a traced layer: weights that it
                                                    reads for which `inputs` has no place */
    int          more_count;
    char        *input_keys[CORNU_MAX_MODEL_TENSORS];    /* of dictionaries, ascending; or NULL */
    char        *output_keys[CORNU_MAX_MODEL_TENSORS];
    int          input_count, output_count;
    struct json_t *input_form, *output_form;     /* lists and dictionaries of them in Keras' JSON;
                                                    or NULL: one, or a list */
    int          layer_space, weight_space;
    CornuLookup  labels, names;                  /* number of layers per class; layers by name */
    CornuLookup  numbers;                        /* indices of weights */
    CornuLookup  calls_of;                       /* index of a node's call, or of a layer's last
                                                    call */
    const CornuPolicy *policy;                   /* once compiled */
    CornuStatus  failed;                         /* status of a layer that could not be added */
    char         failure[512];
    struct json_t *notes;                        /* key: string, and the list "class_names"; or
                                                    NULL */

    bool            compiled, ready;             /* ready: all variables are on `device` */
    bool            predicts;                    /* not compiled, but has a device to predict on */
    const CornuHostStage *stage;
    CornuDevice    *device, *own_device;         /* `device` is retained, as is the next */
    CornuDevice    *placed;                      /* where its weights were put; or NULL */
    const CornuCompiled *when_compiled;          /* NULL: not compiled. The next ones are its */
    CornuOptimizer *optimizer;
    CornuLayerOptimizer *shares;                 /* what each optimizer of several trains; or NULL:
                                                    `optimizer` is one of all weights */
    CornuOwnStep   *own;                         /* the model's own step, or NULL */
    CornuLoss      *losses[CORNU_MAX_MODEL_TENSORS];
    double          loss_weights[CORNU_MAX_MODEL_TENSORS];
    CornuTracked   *tracked;
    int             tracked_count;
    bool            valid_rows;                  /* a loss, metric or step of its own asks for
                                                    batches without padding */
    int             own_logs;                    /* those that the own step has added */
    CornuTracked   *gradient_norm;               /* the last one, only in training; or NULL */
    CornuVariable  *seed_variable;               /* i64 */
    CornuStep      *steps;
    int64_t         steps_per_execution;         /* at least 1, once compiled */
    struct CornuPipelinePlan *pipeline;          /* how it trains (pipeline_plan_internal.h); or
                                                    NULL */
    bool            stop_training, debug_nans, no_auto_scale_loss;
    bool            trains, warned;              /* a training step was made; see `follow` */
    CornuJitCompile jit_compile;                 /* these two of a Keras file, for the next one */
    bool            run_eagerly;
    struct CornuTrace *trace;                    /* the trace of this epoch, or NULL */
    struct CornuTraining *training;              /* the state of fit (training_internal.h), or
                                                    NULL */
};

extern const CornuLayerClass cornu__sequential_class, cornu__functional_class;

/* What a new model gets from the thread that makes it: its seed, and the number of models of its
 * class made without a name, for the default name. */
typedef struct {
    uint64_t seed;
    int      sequential, functional;
} CornuMaking;

/* The calling thread's settings for new models. */
CornuMaking *cornu__making(void);

/* A model without layers, owned by the caller. `made` is the number of its class in
 * cornu__making. NULL with a pending error. */
CornuModel *cornu__model_create(const CornuLayerClass *kind, const char *name, const char *policy,
                                int *made);

/* Replaces inputs that are results of layers by inputs of their types, and outputs by those of the
 * same calls of these. */
CornuStatus cornu__cut_inputs(CornuModelConfig *config);

/* As cornu_model_from, but the symbols need not be the thread's, and keep their owner on
 * failure. */
CornuModel *cornu__model_of(const CornuModelConfig *config);
/* Likewise with further inputs, model->more. */
CornuModel *cornu__model_with_more(const CornuModelConfig *config, CornuSymbol *const *more,
                                   int more_count);

/* Append a layer, and a call of a layer; the model references both. */
CornuStatus cornu__model_append_layer(CornuModel *model, CornuLayer *layer);
CornuStatus cornu__model_append_call(CornuModel *model, CornuNode *node);

/* Finds out whether rows are independent, unless it is known, for data of these types, one for each
 * value of cornu__model_fed: sets model->rows. Models of Keras' layers are cut as by Keras. */
CornuStatus cornu__model_rows(CornuModel *model, const CornuType *x);

/* How it is found out where a layer may compute along axis 0: from the ops of the model. */
CornuStatus cornu__model_find_rows(CornuModel *model, const CornuType *x);

/* Whether the model is a function; and whether it computes all that it is given at once, as that or
 * because its rows depend on each other. The library for inference reads neither. */
static inline bool cornu__model_is_function(const CornuModel *model)
{
    return CORNU__FULL(model->function, false);
}

static inline bool cornu__model_runs_once(const CornuModel *model)
{
    return CORNU__FULL(model->function || model->rows == CORNU_ROWS_UNKNOWN ||
                       model->rows == CORNU_ROWS_DEPENDENT, false);
}

/* Whether a row of a batch depends on others. */
static inline bool cornu__model_mixes_rows(const CornuModel *model)
{
    return model->rows == CORNU_ROWS_BY_BATCH || model->rows == CORNU_ROWS_DEPENDENT;
}

/* Whether a loss, a metric or the model's own step is recorded of whole batches, for any number of
 * shards of one process. */
static inline bool cornu__model_has_whole_batches(const CornuModel *model)
{
    return model->valid_rows &&
           cornu_process_count(cornu_device_processes(model->device)) <= 1;
}

/* Whether a traced layer, the layer or one in it, assigns weights in its call: by rows, perhaps,
 * which several shards would know in part. */
bool cornu__layer_assigns(const CornuLayer *layer);

/* Whether a batch that is not full is a step of its own, without rows that fill it up. */
static inline bool cornu__model_cuts_batches(const CornuModel *model)
{
    return cornu__model_mixes_rows(model) || cornu__model_has_whole_batches(model);
}

/* CORNU_ERR_UNSUPPORTED for a function, CORNU_ERR_SHAPE for `batches` batches, -1: unknown, of one
 * whose rows depend on each other; `who` begins the message. */
CornuStatus cornu__model_refuse_function(const CornuModel *model, const char *who);
CornuStatus cornu__model_refuse_cuts(const CornuModel *model, const char *who, int64_t batches);

/* Collects the weights of all layers, each once; adds those of another layer. */
CornuStatus cornu__model_list_weights(CornuModel *model);
CornuStatus cornu__model_add_weights(CornuModel *model, const CornuLayer *layer);

/* cornu__optimizer_saved_count of its optimizer, 0 without one. */
int cornu__model_saved_count(const CornuModel *model);

/* The index of a weight of the model, or -1. */
int cornu__model_weight_index(const CornuModel *model, const CornuWeight *weight);

/* The index of the model's first call of the layer, and of the next one after call i; or -1. */
int cornu__model_first_call(const CornuModel *model, const CornuLayer *layer);
int cornu__model_next_call(const CornuModel *model, int i);

/* Whether a model that is called as a layer takes tensors of these types. */
CornuStatus cornu__model_check_inputs(const CornuModel *model, const CornuType *in, int count);

/* The index of a symbol's value in the model, or -1. */
int cornu__model_value_index(const CornuModel *model, const CornuSymbol *symbol);

/* Records all calls of the model, given its inputs and their masks. Sets its outputs and their
 * masks; returns the first output. */
CornuTensor *cornu__model_call_layers(const CornuModel *model, const CornuCall *call,
                                      CornuTensor *const *in, CornuTensor *const *masks,
                                      CornuTensor **out, CornuTensor **out_masks);
/* Likewise, only the calls that some outputs depend on; `out` has room for all outputs. False, with
 * no error pending, where they depend on one of the first `without` inputs. */
bool cornu__model_call_some(const CornuModel *model, const CornuCall *call,
                            CornuTensor *const *in, const bool *outputs, int without,
                            CornuTensor **out);

/* Whether all layers called on input i take integers unconverted. */
bool cornu__model_takes_integers(const CornuModel *model, int i);

/* For public functions that run a model, change it or read its weights: locks the model for this
 * thread; CORNU_ERR_BUSY while another thread has it. Each enter needs a leave; NULL is ignored. */
CornuStatus cornu__model_enter(CornuModel *model, const char *function);
void        cornu__model_leave(CornuModel *model);

/* Returns the status of `call`, with the model locked by the public `function`. */
#define CORNU__WITHIN(model, function, call)                  \
    do {                                                      \
        CORNU__TRY(cornu__model_enter(model, function));      \
        const CornuStatus cornu__within = (call);             \
        cornu__model_leave(model);                            \
        return cornu__within;                                 \
    } while (0)

/* CORNU_OK, or the failure kept by cornu_model_add, or the pending error. */
CornuStatus cornu__model_check(const CornuModel *model);

/* CORNU_ERR_ARGUMENT unless the model is compiled. */
CornuStatus cornu__model_check_compiled(const CornuModel *model);

/* Gives a model that is not compiled a device, as cornu_compile without .device would, but neither
 * optimizer nor losses. */
CornuStatus cornu__model_prepare_to_predict(CornuModel *model);

/* Likewise, on a given device; or NULL: the model's own, which it opens. */
CornuStatus  cornu__model_predict_on(CornuModel *model, CornuDevice *device);
CornuDevice *cornu__model_choose_device(CornuModel *model, CornuDevice *given);

/* That it has layers; sets the dtypes of all of them; moves the weights to the device, with the
 * variables that a compiled model has beside them. */
CornuStatus cornu__model_check_layers(const CornuModel *model);
/* CORNU_ERR_UNSUPPORTED for more than CORNU_MAX_LOSSES outputs: the arguments of compile have no
 * place for them. */
CornuStatus cornu__check_output_count(const CornuModel *model);
CornuStatus cornu__model_apply_policy(CornuModel *model);
CornuStatus cornu__model_make_variables(CornuModel *model);
/* CORNU_ERR_ARGUMENT for a layout of the device, whose variables have been made, that was for none
 * of the model's weights: a mistake, as of a name. */
CornuStatus cornu__model_check_layouts(const CornuModel *model, const CornuDevice *device);
/* What of moving the model there is known before anything is changed: as
 * cornu__layer_check_move of its layers and, if it is built, the above. */
CornuStatus cornu__model_check_device(const CornuModel *model, const CornuDevice *device);

/* What is trainable is read when the first training step is made; and before that wherever the
 * optimizer's variables are listed. */
CornuStatus cornu__model_follow_trainable(CornuModel *model);

/* Checks that the model is compiled or prepared, builds it for the type of a batch of x if
 * necessary, and moves its variables to the device. */
CornuStatus cornu__model_ready(CornuModel *model, CornuType x);

/* Frees all that compiling made or took; the weights stay. */
void cornu__model_free_compiled(CornuModel *model);
/* Layers count the compiled models that use their weights: whether this is one. */
void cornu__model_claim(CornuModel *model, bool claimed);

/* The name of an input or output for arguments and logs: its key or else its layer's; the index of
 * the output of a name, or -1 with a pending error that lists the names. */
const char *cornu__input_name(const CornuModel *model, int i);
const char *cornu__output_name(const CornuModel *model, int output);
int         cornu__find_output(const CornuModel *model, const char *name);

/* As cornu_model_order_outputs, but an output may be missing: its array has no data. */
CornuStatus cornu__order_some_outputs(const CornuModel *model, const CornuNamedArray *arrays,
                                      int count, CornuArray *to);

/* Copies the keys of a model of dictionaries, as CornuModelConfig has them; frees them. */
CornuStatus cornu__model_set_keys(CornuModel *model, const char *const *inputs,
                                  const char *const *outputs);
void        cornu__model_free_keys(CornuModel *model);

/* Whether a step of this mode is the model's own; and whether its data are. */
static inline bool cornu__model_has_own(const CornuModel *model, CornuStepMode mode)
{
    const CornuOwnStep *own = model->own;
    return CORNU__FULL(own && (mode == CORNU_STEP_PREDICT ? own->predict != NULL
                               : mode == CORNU_STEP_TRAIN ? own->train != NULL
                                                          : own->test != NULL), false);
}

static inline bool cornu__model_has_own_data(const CornuModel *model)
{
    return CORNU__FULL(model->own && model->own->own_data, false);
}

/* The numbers of arrays x, after layers on the host, and y of a batch for a step of this mode. */
int cornu__model_xs(const CornuModel *model, CornuStepMode mode);
int cornu__model_ys(const CornuModel *model, CornuStepMode mode);

/* The number in .optimizers of a weight's optimizer, -1 for a weight of none; the context is the
 * model. */
int cornu__model_optimizer_of(const void *context, const CornuVariable *w);

void cornu__own_step_free(CornuOwnStep *own);

/* The log of an own step: a new one where the step may add it. NULL with a pending error. */
CornuTracked *cornu__model_own_log(CornuModel *model, const char *name);

/* Lists the losses and the metrics of each output, which it takes, with their names in logs. */
CornuStatus cornu__track_all(CornuModel *model, CornuMetric *const *const *metrics,
                             CornuMetric *const *const *weighted_metrics, bool gradient_norm);

/* Frees all recorded steps. */
void cornu__steps_free(CornuModel *model);

#endif
