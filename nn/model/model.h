/*
 * Models: layers in a row, compiled with an optimizer and a loss, trained by fit.
 *
 *     CornuModel *model = cornu_sequential(.name = "mnist_cnn", .input_shape = { 28, 28, 1 });
 *     cornu_model_add(model, cornu_conv2d(32, 3, .activation = CORNU_RELU));
 *     …
 *     cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 1e-3),
 *                   .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
 *                   .metrics = { CORNU_ACCURACY }, .device = device);
 *     CornuHistory *history = cornu_fit(model, train, .epochs = 12, .batch_size = 128,
 *                                       .validation_data = test);
 *
 * Names, defaults, formulas and the order of things are Keras'. In a config zero means Keras'
 * default; where zero itself is meaningful the field says so and takes CORNU_ZERO.
 *
 * A model is used by one thread at a time. What runs it, changes it or reads its weights is
 * CORNU_ERR_BUSY, naming both functions, while another thread is in it; a callback, which runs on
 * the thread that is, may call anything. Models that share layers, or a device (device.h), count as
 * one.
 */
#ifndef CORNU_NN_MODEL_H
#define CORNU_NN_MODEL_H

#include "../../datasets/pipeline/dataset.h"
#include "callback.h"
#include "../training/history.h"
#include "../layers/layer.h"
#include "../losses/loss.h"
#include "../metrics/metric.h"
#include "../optimizers/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building ----
 *
 * One layer behind the other, here; functional.h has models whose layers branch.
 */

/* Inputs, and outputs, that a model may have. */
enum { CORNU_MAX_MODEL_TENSORS = 8 };

typedef struct {
    char        unset;
    const char *name;                         /* default sequential, sequential_1, … */
    int64_t     input_shape[CORNU_MAX_RANK];  /* without the batch; ends at the first 0. CORNU_NONE
                                                 is an extent that may differ from batch to batch.
                                                 Absent: the model is built by its first data */
    int64_t     batch_size;                   /* rows that every batch has, as Keras' Input takes
                                                 it; default any number. Stateful layers keep to
                                                 that of their first batch anyhow */
    double      input_scale;                  /* what whole-number data, such as u8 pixels, are
                                                 multiplied by as they become f32; default 1.
                                                 Data stored as floats are taken as they are */
    const char *policy;                       /* precision, by its name (policy.h); default the one
                                                 of cornu_set_dtype_policy, else the device's */
} CornuSequentialConfig;

CornuModel *cornu_sequential_from(const CornuSequentialConfig *config);
#define cornu_sequential(...) \
    cornu_sequential_from(&(CornuSequentialConfig){ .unset = 0, __VA_ARGS__ })

/* Takes the layer, also when it fails. With a known input shape the layer is built here. */
CornuStatus cornu_model_add(CornuModel *model, CornuLayer *layer);

/* Builds what is not built yet, for inputs of this shape without the batch. */
CornuStatus cornu_model_build(CornuModel *model, CornuShape input);

/* A model of the same architecture, not compiled, with layers and weights of its own: these begin
 * as those of a model made now, see cornu_set_random_seed. Its caller's; NULL for a model with a
 * layer that files cannot hold, or an initializer of one's own. Keras' clone_model. */
CornuModel *cornu_model_clone(const CornuModel *model);

void cornu_model_free(CornuModel *model);

const char *cornu_model_name(const CornuModel *model);
int         cornu_model_layer_count(const CornuModel *model);
CornuLayer *cornu_model_layer(const CornuModel *model, int i);
bool        cornu_model_built(const CornuModel *model);
CornuShape  cornu_model_input_shape(const CornuModel *model);  /* axis 0 is CORNU_NONE, and so are
                                                                  extents that may differ */
/* Rows of every batch: .batch_size, or those that stateful layers have begun with; CORNU_NONE. */
int64_t     cornu_model_batch_size(const CornuModel *model);
CornuShape  cornu_model_output_shape(const CornuModel *model); /* once built */
/* Both of the first one, of models with several. */
int         cornu_model_input_count(const CornuModel *model);
int         cornu_model_output_count(const CornuModel *model);
double      cornu_model_input_scale(const CornuModel *model);

/* The policy in force where a layer has none of its own: before compiling the one that was set for
 * the model, or NULL where its device will decide. */
const CornuPolicy *cornu_model_policy(const CornuModel *model);

/* The layer of this name, NULL without one; and the weight of a path, as "conv2d/kernel" or, in a
 * model that this one calls, "encoder/conv2d/kernel". */
CornuLayer  *cornu_model_find_layer(const CornuModel *model, const char *name);
CornuWeight *cornu_model_find_weight(const CornuModel *model, const char *path);

/* What else goes with the model into .safetensors and .keras files, and into clones: the names of
 * its classes, in the order of its output's last axis, and strings of yours, each under a key (what
 * its columns are called, how its images are prepared). They are copied. CORNU_ERR_VALUE for what
 * is not UTF-8, and for an empty class name or one with control characters. A note of NULL removes
 * the one that was there. A name or note that is not there is NULL; it lives until it is set again
 * or the model is freed. */
CornuStatus cornu_model_set_class_names(CornuModel *model, const char *const *names, int count);
const char *cornu_model_class_name(const CornuModel *model, int64_t i);
CornuStatus cornu_model_set_note(CornuModel *model, const char *key, const char *text);
const char *cornu_model_note(const CornuModel *model, const char *key);

/* All weights, layer after layer, Keras' model.weights. */
int          cornu_model_weight_count(const CornuModel *model);
CornuWeight *cornu_model_weight(const CornuModel *model, int i);

/* The optimizer's variables in Keras' order ("adam/iteration", "adam/learning_rate",
 * "adam/conv2d_kernel_momentum", …); 0 before the model is compiled and built. */
int            cornu_model_optimizer_variable_count(const CornuModel *model);
CornuVariable *cornu_model_optimizer_variable(const CornuModel *model, int i);

/* Elements of all, trainable, and the optimizer's variables. */
int64_t cornu_model_parameters(const CornuModel *model);
int64_t cornu_model_trainable_parameters(const CornuModel *model);
int64_t cornu_model_optimizer_parameters(const CornuModel *model);

/* The seed of initial weights, dropout and shuffling of models made from now on by this
 * thread; 0 at the start. As keras.utils.set_random_seed. */
void     cornu_set_random_seed(uint64_t seed);
uint64_t cornu_model_seed(const CornuModel *model);

/* ---- Compiling ---- */

enum { CORNU_MAX_METRICS = 8 };

typedef struct {
    char            unset;
    CornuModel     *model;                       /* required */
    CornuOptimizer *optimizer;                   /* default rmsprop; taken */
    CornuLoss      *loss;                        /* required for training and evaluation; taken */
    CornuMetric    *metrics[CORNU_MAX_METRICS];  /* taken */
    CornuLoss      *losses[CORNU_MAX_MODEL_TENSORS];  /* in place of .loss: of each output; taken.
                                                    With .loss several outputs share that one */
    double          loss_weights[CORNU_MAX_MODEL_TENSORS]; /* of outputs in the loss that is
                                                    trained; default 1; CORNU_ZERO for none */
    CornuMetric    *output_metrics[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_METRICS]; /* in place of
                                                    .metrics, for several outputs; taken */
    CornuMetric    *weighted_metrics[CORNU_MAX_METRICS]; /* these heed sample weights; taken */
    CornuMetric    *output_weighted_metrics[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_METRICS]; /* in place
                                                    of .weighted_metrics, for several outputs */
    CornuDevice    *device;                      /* default: that of the strategy in scope
                                                    (strategy.h), else a "cpu" device of the
                                                    model's own */
    int64_t         steps_per_execution;         /* steps from one call of the batch hooks to the
                                                    next (callback.h); default the strategy's in
                                                    scope, else 1 */
    bool            gradient_norm;               /* training logs "gradient_norm", too: the mean
                                                    over steps of the l2 norm of all gradients
                                                    before clipping; see
                                                    cornu_optimizer_gradient_norm. Steps whose loss
                                                    was scaled too far for f16 do not count */
    bool            debug_nans;                  /* a step after which a weight, the loss or another
                                                    result is nan or infinite fails with
                                                    CORNU_ERR_VALUE naming the layer and op that
                                                    first made it so; slower */
} CornuCompileConfig;

/* Takes what the model will be trained with, settles the precision of its layers (policy.h), and
 * moves the weights to the device. Where a layer computes in f16 the optimizer scales the loss.
 * Compiling again begins with a new optimizer; the weights stay. What is given is taken even on
 * failure. */
CornuStatus cornu_compile_from(const CornuCompileConfig *config);
#define cornu_compile(...) \
    cornu_compile_from(&(CornuCompileConfig){ .unset = 0, __VA_ARGS__ })

/* Moves a compiled model to another device, NULL: a "cpu" device of its own, with its weights and
 * the optimizer's variables; steps are recorded anew there, metrics begin anew, and the precision
 * is settled as if it had been compiled there. All or nothing where the device has no room. */
CornuStatus cornu_model_move(CornuModel *model, CornuDevice *device);

bool            cornu_model_compiled(const CornuModel *model);
CornuDevice    *cornu_model_device(const CornuModel *model);     /* NULL before compiling */
CornuOptimizer *cornu_model_optimizer(const CornuModel *model);  /* NULL before compiling */

int64_t         cornu_model_steps_per_execution(const CornuModel *model);  /* likewise 0 */

/* "loss", then the metrics as compiled; for several outputs "loss", then "scores_loss" of each, not
 * weighted, then metrics as "scores_accuracy", after the layers that give the outputs. Weighted
 * metrics come after them, as "weighted_accuracy" where there is one of the name before them, and
 * "gradient_norm" last, which logs of evaluation lack; its number there is 0. */
int         cornu_model_metric_count(const CornuModel *model);
const char *cornu_model_metric_name(const CornuModel *model, int i);

/* What metric i has accumulated since it was reset: how many numbers its result has, 1 but for
 * vectors (and before the first step), the first `count` of them, and one of its states. The
 * state's array is the model's, until it is read again; a metric's header says what it holds. What
 * has not run yet is CORNU_ERR_ARGUMENT. */
int64_t     cornu_model_metric_size(const CornuModel *model, int i);
CornuStatus cornu_model_metric_result(CornuModel *model, int i, double *result, int64_t count);
CornuStatus cornu_model_metric_state(CornuModel *model, int i, int state, CornuArray *array);

/* Of the training step, NULL before the first one. */
const CornuStatistics *cornu_model_statistics(const CornuModel *model);

/* The training step for batches of these types, as fit and cornu_train_on_batch run it: compiled
 * here if it was not yet, and not run. It is the device's. NULL and a pending error. */
CornuExecutable *cornu_model_train_step(CornuModel *model, CornuType x, CornuType y);

/* ---- Training, evaluation, prediction ----
 *
 * Data are a data set of (x, y) or arrays .x and .y, of any number type: bytes stay bytes until
 * the step itself converts them. A data set stays the caller's. One that is not batched, and
 * arrays, are put in batches of batch_size (default 32); with a batched one batch_size is an
 * error. x may lack, or have too many, a last axis of extent 1. A last batch with fewer rows
 * counts exactly as those rows; cornu_predict computes as many, up to the next power of two. What a
 * row gives does not depend on the rows beside it, but its last bits may on how many are computed.
 *
 * A step is compiled for the size of its batches and for extents of the data that the model leaves
 * open (CORNU_NONE); the eight used last are kept. All elements of a data set have one shape, which
 * may differ from that of the data of the next call: sequences of several lengths are padded to
 * one, or given in a data set for each length.
 *
 * For several inputs or outputs an element of a data set has a
 * component for each, inputs first, and arrays are given as .xs and .ys.
 *
 * Sample weights multiply the values of losses and weighted metrics: a further component of a data
 * set, or an array .sample_weight, (N), or (N, T) for a weight of each step; where there are
 * several outputs one for all of them or, as .sample_weights, one for each. Of any number type.
 */

/* What is printed: nothing, a bar, or a line per epoch. auto, the default, is a bar on a terminal,
 * lines elsewhere. Keras' numbers do, too: a 0 that stands in the call is silent, 1 a bar, 2
 * lines. */
typedef enum { CORNU_AUTO = -1, CORNU_BAR = 1, CORNU_LINES = 2, CORNU_SILENT = 3 } CornuVerbose;

enum { CORNU_MAX_CALLBACKS = 16 };

typedef struct {
    char           unset;
    const char    *written;              /* the call, see keywords.h */
    CornuModel    *model;
    CornuDataset  *data;                 /* or x and y */
    CornuArray     x, y;
    CornuArray     xs[CORNU_MAX_MODEL_TENSORS], ys[CORNU_MAX_MODEL_TENSORS]; /* in place of them:
                                            of each input and output, in the model's order */
    CornuArray     sample_weight;        /* with arrays */
    CornuArray     sample_weights[CORNU_MAX_MODEL_TENSORS];
    CornuArray     class_weight;         /* (classes): a sample weighs what its class does; classes
                                            behind the end weigh 1. Labels are numbers, or one of C
                                            classes. Not for samples held out, or validation */
    int64_t        batch_size;           /* default 32 */
    int64_t        epochs;               /* default 1: the index to end before, see initial_epoch;
                                            0, or CORNU_ZERO, for none */
    CornuVerbose   verbose;
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS]; /* taken: freed when fit returns. NULLs among
                                            them are left out */
    double         validation_split;     /* this part of the data, the last one, is held out */
    CornuDataset  *validation_data;      /* or these arrays */
    CornuArray     validation_x, validation_y;
    CornuArray     validation_xs[CORNU_MAX_MODEL_TENSORS], validation_ys[CORNU_MAX_MODEL_TENSORS];
    CornuArray     validation_sample_weight;
    CornuArray     validation_sample_weights[CORNU_MAX_MODEL_TENSORS];
    bool           no_shuffle;           /* else data not batched are shuffled for each epoch */
    int64_t        initial_epoch;        /* the first one's index */
    int64_t        steps_per_epoch;      /* default: all batches. Fewer: the next epoch goes on
                                            where this one ended */
    int64_t        validation_steps;     /* default: all batches */
    int64_t        validation_batch_size;/* default batch_size */
    int64_t        validation_freq;      /* default 1: validates after every so many epochs */
} CornuFitConfig;

/* Trains. The history is the caller's to free. NULL on failure, also when the loss is no longer
 * a number (CORNU_ERR_VALUE, naming epoch and steps): the weights then are what they are. */
CornuHistory *cornu_fit_from(const CornuFitConfig *config);
#define cornu_fit(...) \
    cornu_fit_from(&(CornuFitConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

typedef struct {
    char           unset;
    const char    *written;              /* the call, see keywords.h */
    CornuModel    *model;
    CornuDataset  *data;
    CornuArray     x, y;
    CornuArray     xs[CORNU_MAX_MODEL_TENSORS], ys[CORNU_MAX_MODEL_TENSORS];
    CornuArray     sample_weight, sample_weights[CORNU_MAX_MODEL_TENSORS];
    int64_t        batch_size;
    CornuVerbose   verbose;
    int64_t        steps;                /* default: all batches */
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS];
    double        *results;              /* cornu_model_metric_count() numbers; may be NULL */
    CornuArray     to;                   /* f32 (rows, …), as predict's: the predictions that the
                                            results come from; default not kept */
    CornuArray     tos[CORNU_MAX_MODEL_TENSORS]; /* in place of .to: of each output */
} CornuEvaluateConfig;

CornuStatus cornu_evaluate_from(const CornuEvaluateConfig *config);
#define cornu_evaluate(...) \
    cornu_evaluate_from(&(CornuEvaluateConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

typedef struct {
    char           unset;
    const char    *written;              /* the call, see keywords.h */
    CornuModel    *model;
    CornuDataset  *data;                 /* of x, or of (x, y): y is not looked at */
    CornuArray     x;
    CornuArray     xs[CORNU_MAX_MODEL_TENSORS];
    int64_t        batch_size;
    CornuVerbose   verbose;
    int64_t        steps;
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS];
    CornuArray     to;                   /* f32 (rows, …): gets the predictions; as many rows as
                                            there are */
    CornuArray     tos[CORNU_MAX_MODEL_TENSORS]; /* in place of .to: of each output */
} CornuPredictConfig;

CornuStatus cornu_predict_from(const CornuPredictConfig *config);
#define cornu_predict(...) \
    cornu_predict_from(&(CornuPredictConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

typedef struct {
    char        unset;
    CornuModel *model;
    CornuArray  x, y;
    double     *values;                  /* cornu_model_metric_count() numbers; may be NULL */
    CornuArray  sample_weight;
    CornuArray  class_weight;            /* as fit's; makes an array of weights in each call */
} CornuOnBatchConfig;

/* One step on one batch. As in Keras the values are means since cornu_model_reset_metrics, fit or
 * evaluate. */
CornuStatus cornu_train_on_batch_from(const CornuOnBatchConfig *config);
#define cornu_train_on_batch(...) \
    cornu_train_on_batch_from(&(CornuOnBatchConfig){ .unset = 0, __VA_ARGS__ })
CornuStatus cornu_test_on_batch_from(const CornuOnBatchConfig *config);
#define cornu_test_on_batch(...) \
    cornu_test_on_batch_from(&(CornuOnBatchConfig){ .unset = 0, __VA_ARGS__ })
CornuStatus cornu_predict_on_batch(CornuModel *model, CornuArray x, CornuArray to);
/* The same for several inputs or outputs: arrays of each, in the model's order. */
CornuStatus cornu_train_on_batch_many(CornuModel *model, const CornuArray *x, const CornuArray *y,
                                      double *values);
CornuStatus cornu_test_on_batch_many(CornuModel *model, const CornuArray *x, const CornuArray *y,
                                     double *values);
CornuStatus cornu_predict_on_batch_many(CornuModel *model, const CornuArray *x,
                                        const CornuArray *to);
CornuStatus cornu_model_reset_metrics(CornuModel *model);

/* Lets stateful layers begin the next batch with zeros; as Keras leaves them, they go on from each
 * batch to the next, also from epoch to epoch and from training to evaluation. Their batches must
 * all have the same number of rows, all valid. Compiling and moving the model reset them too. */
CornuStatus cornu_model_reset_states(CornuModel *model);

/* ---- For a loop of one's own (examples/custom_loop.c) ---- */

/* Records the compiled model in the graph of x (B, …), data as fit takes them: whole numbers are
 * converted and scaled there. `call` says whether it is training and, with dropout, which
 * iteration it is; what it leaves NULL is taken from x and the model (all rows count, the
 * model's seed, iteration and position 0). What regularizers add to the loss is in *call->loss, to
 * be NULL before, where that is given. The result is f32 under any policy. */
CornuTensor *cornu_model_call(CornuModel *model, CornuTensor *x, const CornuCall *call);
/* The same of a model with several inputs or outputs; sets all y and returns the first. */
CornuTensor *cornu_model_call_many(CornuModel *model, CornuTensor *const *x, int x_count,
                                   const CornuCall *call, CornuTensor **y, int y_count);

/* For callbacks: fit ends after the batch or epoch at hand. */
void cornu_model_stop_training(CornuModel *model);

#ifdef __cplusplus
}
#endif
#endif
