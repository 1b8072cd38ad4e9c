/*
 * Compiling a model with an optimizer, a loss and metrics; what a compiled model has.
 */
#ifndef CORNU_NN_COMPILE_H
#define CORNU_NN_COMPILE_H

#include "../losses/loss.h"
#include "../metrics/metric.h"
#include "../optimizers/optimizer.h"
#include "callback.h"
#include "own_step.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_MAX_METRICS = 32, CORNU_MAX_OPTIMIZER_LAYERS = 16 };

/* An optimizer of the trainable weights of some layers, which may be models. */
typedef struct {
    CornuOptimizer *optimizer;                           /* taken */
    CornuLayer     *layers[CORNU_MAX_OPTIMIZER_LAYERS];  /* of the model, also within others */
} CornuLayerOptimizer;

/* The maximum number of outputs of a model that is compiled: its arguments, which lie on the stack,
 * have a place for each. */
enum { CORNU_MAX_LOSSES = 32 };

/* The arguments of one output, by the name of its layer or its key (functional.h). */
typedef struct {
    const char  *name;
    CornuLoss   *loss;                         /* taken; NULL: none */
    double       loss_weight;                  /* in the total loss; default 1; CORNU_ZERO for 0 */
    CornuMetric *metrics[CORNU_MAX_METRICS];   /* taken */
    CornuMetric *weighted_metrics[CORNU_MAX_METRICS];
} CornuOutputConfig;

typedef struct {
    char            unset;
    CornuModel     *model;                       /* required */
    CornuOptimizer *optimizer;                   /* default rmsprop; taken */
    CornuLayerOptimizer optimizers[CORNU_MAX_OPTIMIZERS]; /* in place of it: several; weights of
                                                    layers that are in none are not trained */
    CornuOwnStep   *step;                        /* the model's own training step; taken */
    CornuLoss      *loss;                        /* required for training and evaluation; taken */
    CornuMetric    *metrics[CORNU_MAX_METRICS];  /* taken */
    CornuLoss      *losses[CORNU_MAX_LOSSES];  /* in place of .loss, one per output, or
                                                    CORNU_NO_LOSS; taken. With .loss all outputs
                                                    share it */
    double          loss_weights[CORNU_MAX_LOSSES]; /* per output, in the total loss;
                                                    default 1; CORNU_ZERO for 0 */
    CornuMetric    *output_metrics[CORNU_MAX_LOSSES][CORNU_MAX_METRICS]; /* in place of
                                                    .metrics, for several outputs; taken */
    CornuMetric    *weighted_metrics[CORNU_MAX_METRICS]; /* use sample weights; taken */
    CornuMetric    *output_weighted_metrics[CORNU_MAX_LOSSES][CORNU_MAX_METRICS]; /* in place
                                                    of .weighted_metrics, for several outputs */
    CornuOutputConfig outputs[CORNU_MAX_LOSSES]; /* in place of all of them: by name, as
                                                    Keras' dictionaries. An output that is not
                                                    named has no loss and no metrics */
    CornuDevice    *device;                      /* default: that of the strategy in scope
                                                    (strategy.h), else that of a model with
                                                    layers in common, else a "cpu" device of the
                                                    model's own */
    int64_t         steps_per_execution;         /* steps from one call of the batch hooks to the
                                                    next (callback.h), which a pjrt device may run
                                                    as one loop; default the strategy's in scope,
                                                    else 1 */
    int64_t         accumulate_steps;            /* updates by the mean gradient of so many steps:
                                                    the optimizer's .gradient_accumulation_steps;
                                                    default the optimizer's own                */
    bool            gradient_norm;               /* training also logs "gradient_norm": the mean
                                                    over steps of the l2 norm of all gradients
                                                    before clipping; see
                                                    cornu_optimizer_gradient_norm. Steps that
                                                    overflow f16 do not count */
    bool            no_auto_scale_loss;          /* a layer that computes in f16 does not make the
                                                    optimizer scale the loss */
    bool            debug_nans;                  /* a step after which a weight, the loss or another
                                                    result is nan or infinite fails with
                                                    CORNU_ERR_VALUE naming the layer and op that
                                                    first made it so; slower */
} CornuCompileConfig;

/* Takes optimizer, losses and metrics, applies the precision policies of the layers (policy.h), and
 * moves the weights to the device. If a layer computes in f16, the optimizer scales the loss.
 * Compiling again starts with a new optimizer and keeps the weights. Arguments are taken even on
 * failure. What is refused, as an argument or a layout that does not fit, leaves the model compiled
 * as it was. After CORNU_ERR_MEMORY it is compiled, and the next step asks for the memory again;
 * after any other failure it is not compiled any more, and has its weights.
 *
 * Which weights are trainable (cornu_layer_set_trainable) is read when the first training step is
 * made, as in Keras: layers may be frozen between compiling and training. Later changes count once
 * the model is compiled again; until then fit logs a warning. Variables of the optimizer that were
 * taken from cornu_model_optimizer_variable before the first step are void if others are trainable
 * then. */
CornuStatus cornu_compile_from(const CornuCompileConfig *config);
#define cornu_compile(...) \
    cornu_compile_from(&(CornuCompileConfig){ .unset = 0, __VA_ARGS__ })

/* Moves a compiled model, its weights and the optimizer's variables to another device; NULL: a
 * "cpu" device of its own. Steps are recorded again, metrics are reset, and precision policies
 * apply as if it had been compiled there. If the device runs out of memory, the model does not
 * move. */
CornuStatus cornu_model_move(CornuModel *model, CornuDevice *device);

/* Whether cornu_compile has succeeded. */
bool cornu_model_compiled(const CornuModel *model);

/* Where it runs, which it holds a reference to. NULL before compiling, unless it has predicted. */
CornuDevice    *cornu_model_device(const CornuModel *model);
/* What it was compiled with, owned by the model; NULL before compiling. */
CornuOptimizer *cornu_model_optimizer(const CornuModel *model);

/* Optimizer i of .optimizers, or with i = 0 the only one. NULL with a pending error if there is
 * none. */
CornuOptimizer *cornu_model_optimizer_at(const CornuModel *model, int i);

/* That of an output, owned by the model; NULL before compiling, and for an output without one. */
const CornuLoss *cornu_model_loss(const CornuModel *model, int output);

int64_t         cornu_model_steps_per_execution(const CornuModel *model);  /* likewise 0 */

/* The number of the model's logs, 0 before compiling. */
int         cornu_model_metric_count(const CornuModel *model);
/* The name of log i, from 0: "loss", then the metrics as compiled. With several losses: "loss",
 * then the unweighted "scores_loss" of each. With several outputs metrics are named as
 * "scores_accuracy", after the output layers. Weighted metrics follow, as "weighted_accuracy" where
 * the name is in use; a name still in use becomes "accuracy_1"; "gradient_norm" is last. Logs of
 * evaluation do not have it, and its value there is 0. */
const char *cornu_model_metric_name(const CornuModel *model, int i);

/* Whether training, or evaluation, has log i. Of an own step (own_step.h) it is known once that
 * has been recorded. */
bool        cornu_model_metric_shown(const CornuModel *model, int i, bool training);

/* The number of values of metric i: 1 except for vectors, and before the first step. */
int64_t     cornu_model_metric_size(const CornuModel *model, int i);
/* The first `count` values of metric i since it was reset. CORNU_ERR_ARGUMENT before the first
 * step. */
CornuStatus cornu_model_metric_result(CornuModel *model, int i, double *result, int64_t count);
/* One of the metric's states, which its header describes; the array is the model's and valid until
 * it is read again. CORNU_ERR_ARGUMENT before the first step. */
CornuStatus cornu_model_metric_state(CornuModel *model, int i, int state, CornuArray *array);

/* Statistics of the training step; NULL before the first step. Of a pipeline those of all
 * microbatches and the update, in the stages of this process (training/pipeline_parallel.h). */
const CornuStatistics *cornu_model_statistics(const CornuModel *model);

/* The training step for batches of these types, as fit and cornu_train_on_batch run it; compiled
 * here if necessary, and not run. Owned by the device. NULL with a pending error. */
CornuExecutable *cornu_model_train_step(CornuModel *model, CornuType x, CornuType y);

#ifdef __cplusplus
}
#endif
#endif
