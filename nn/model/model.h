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
 *                                       .validation_data = { .data = test });
 *
 * Names, defaults, formulas and orders are Keras'. In a config zero means Keras' default; where
 * zero itself is meaningful, the field says so and takes CORNU_ZERO.
 *
 * A model is used by one thread at a time. Functions that run it, change it or read its weights
 * fail with CORNU_ERR_BUSY, naming both functions, while another thread is in one of them; a
 * callback, which runs on that thread, may call anything. Models that share layers, or a device
 * (device.h), count as one. A predictor (predictor.h) takes calls from any number of threads.
 */
#ifndef CORNU_NN_MODEL_H
#define CORNU_NN_MODEL_H

#include "../../datasets/pipeline/dataset.h"
#include "../formats/safetensors.h"
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
 * A sequence of layers; functional.h has models whose layers branch.
 */

/* The maximum number of inputs, and of outputs, of a model. */
enum { CORNU_MAX_MODEL_TENSORS = 32 };

typedef struct {
    char        unset;
    const char *name;                         /* default sequential, sequential_1, … */
    int64_t     input_shape[CORNU_MAX_RANK];  /* without the batch; ends at the first 0. CORNU_NONE
                                                 is an extent that may differ from batch to batch.
                                                 Omitted: built by the first data */
    bool        input_scalar;                 /* in place of a shape: a value per row, Keras' () */
    CornuDtype  input_dtype;                  /* as cornu_input's .dtype; CORNU_STRING, with or
                                                 without a shape, for layers of text_layers.h */
    int64_t     batch_size;                   /* rows of every batch, as in Keras' Input; default
                                                 any number. Stateful layers require the number
                                                 of their first batch in any case */
    double      input_scale;                  /* factor for integer data, such as u8 pixels, when
                                                 they are converted to f32; default 1. Floats are
                                                 not scaled */
    const char *policy;                       /* name of the precision policy (policy.h); default:
                                                 cornu_set_dtype_policy's, else the device's */
} CornuSequentialConfig;

CornuModel *cornu_sequential_from(const CornuSequentialConfig *config);
#define cornu_sequential(...) \
    cornu_sequential_from(&(CornuSequentialConfig){ .unset = 0, __VA_ARGS__ })

/* Takes the layer, also on failure. With a known input shape the layer is built here. */
CornuStatus cornu_model_add(CornuModel *model, CornuLayer *layer);

/* Builds the model, unless it is built, for inputs of this shape without the batch. */
CornuStatus cornu_model_build(CornuModel *model, CornuShape input);

/* Keras' clone_model: an uncompiled model of the same architecture, with its own layers and newly
 * initialized weights, see cornu_set_random_seed. The caller owns it. NULL for a model with a layer
 * that cannot be saved, or a custom initializer. */
CornuModel *cornu_model_clone(const CornuModel *model);

void cornu_model_free(CornuModel *model);

const char *cornu_model_name(const CornuModel *model);
int         cornu_model_layer_count(const CornuModel *model);
CornuLayer *cornu_model_layer(const CornuModel *model, int i);
bool        cornu_model_built(const CornuModel *model);
CornuShape  cornu_model_input_shape(const CornuModel *model);  /* axis 0 and extents that may
                                                                  differ are CORNU_NONE */
/* Whether it is a function, as some graphs of .onnx and .tflite files are: axis 0 is not one batch
 * that all inputs and outputs share, such as with a scalar input, a state (2, batch, 64), or an
 * output whose axis 0 is time. Types of inputs and outputs then hold all of their shapes.
 * cornu_predictor_predict and cornu_predict_on_batch run it once on what they are given; what needs
 * batches refuses it: CORNU_ERR_UNSUPPORTED, naming the input or output. */
bool        cornu_model_is_function(const CornuModel *model);
/* Rows of every batch: .batch_size, or those of stateful layers' first batch; else CORNU_NONE. */
int64_t     cornu_model_batch_size(const CornuModel *model);
CornuShape  cornu_model_output_shape(const CornuModel *model); /* once built */
/* Shapes are those of the first input and output of models with several. */
int         cornu_model_input_count(const CornuModel *model);
int         cornu_model_output_count(const CornuModel *model);
double      cornu_model_input_scale(const CornuModel *model);

/* The policy of layers without their own. Before compiling, the one set for the model, or NULL
 * where its device will decide. */
const CornuPolicy *cornu_model_policy(const CornuModel *model);

/* The layer of this name, and the weight of this path, "conv2d/kernel" or, in a nested model,
 * "encoder/conv2d/kernel"; NULL if there is none. */
CornuLayer  *cornu_model_find_layer(const CornuModel *model, const char *name);
CornuWeight *cornu_model_find_weight(const CornuModel *model, const char *path);

/* Metadata stored with the model in .safetensors and .keras files, and in clones: the names of its
 * classes, in the order of its output's last axis, and notes, strings with a key (say names of
 * columns, or the preparation of images). Strings are copied. CORNU_ERR_VALUE if one is not UTF-8,
 * and for a class name that is empty or has control characters. Setting a note to NULL removes it.
 * A missing name or note is NULL; a returned string lives until it is set again or the model is
 * freed. */
CornuStatus cornu_model_set_class_names(CornuModel *model, const char *const *names, int count);
const char *cornu_model_class_name(const CornuModel *model, int64_t i);
CornuStatus cornu_model_set_note(CornuModel *model, const char *key, const char *text);
const char *cornu_model_note(const CornuModel *model, const char *key);

/* All weights, layer after layer, Keras' model.weights. */
int          cornu_model_weight_count(const CornuModel *model);
CornuWeight *cornu_model_weight(const CornuModel *model, int i);

/* Writes the weights of `from` into those of `to`, as Keras' to.set_weights(from.get_weights()).
 * CORNU_ERR_SHAPE, before anything is written, unless both have as many, one after the other of the
 * same types. */
CornuStatus cornu_model_copy_weights(CornuModel *to, const CornuModel *from);

/* Keras' model.quantize(mode): cornu_layer_quantize_weights for every layer of the model that has a
 * form of the mode, also inside others, before the model is compiled. CORNU_ERR_UNSUPPORTED for a
 * MultiHeadAttention or GroupQueryAttention, whose products Keras would quantize.
 *
 *     CornuModel *model = cornu_model_load("trained.keras");
 *     cornu_model_quantize_weights(model, "int8");
 *     cornu_model_save(model, "small.keras");
 */
CornuStatus cornu_model_quantize_weights(CornuModel *model, const char *mode);

/* The optimizer's variables in Keras' order ("adam/iteration", "adam/learning_rate",
 * "adam/conv2d_kernel_momentum", …); 0 before the model is compiled and built. */
int            cornu_model_optimizer_variable_count(const CornuModel *model);
CornuVariable *cornu_model_optimizer_variable(const CornuModel *model, int i);

/* Number of elements of all weights, of the trainable ones, and of the optimizer's variables. */
int64_t cornu_model_parameters(const CornuModel *model);
int64_t cornu_model_trainable_parameters(const CornuModel *model);
int64_t cornu_model_optimizer_parameters(const CornuModel *model);

/* The seed of initial weights, dropout and shuffling for models that this thread makes from now on;
 * initially 0. As keras.utils.set_random_seed. */
void     cornu_set_random_seed(uint64_t seed);
uint64_t cornu_model_seed(const CornuModel *model);

/* ---- Compiling ---- */

enum { CORNU_MAX_METRICS = 32 };

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
    CornuLoss      *loss;                        /* required for training and evaluation; taken */
    CornuMetric    *metrics[CORNU_MAX_METRICS];  /* taken */
    CornuLoss      *losses[CORNU_MAX_MODEL_TENSORS];  /* in place of .loss, one per output, or
                                                    CORNU_NO_LOSS; taken. With .loss all outputs
                                                    share it */
    double          loss_weights[CORNU_MAX_MODEL_TENSORS]; /* per output, in the total loss;
                                                    default 1; CORNU_ZERO for 0 */
    CornuMetric    *output_metrics[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_METRICS]; /* in place of
                                                    .metrics, for several outputs; taken */
    CornuMetric    *weighted_metrics[CORNU_MAX_METRICS]; /* use sample weights; taken */
    CornuMetric    *output_weighted_metrics[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_METRICS]; /* in place
                                                    of .weighted_metrics, for several outputs */
    CornuOutputConfig outputs[CORNU_MAX_MODEL_TENSORS]; /* in place of all of them: by name, as
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
 * failure.
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

bool cornu_model_compiled(const CornuModel *model);

/* NULL before compiling; the device is not, if the model has predicted without. */
CornuDevice    *cornu_model_device(const CornuModel *model);
CornuOptimizer *cornu_model_optimizer(const CornuModel *model);

/* That of an output, owned by the model; NULL before compiling, and for an output without one. */
const CornuLoss *cornu_model_loss(const CornuModel *model, int output);

int64_t         cornu_model_steps_per_execution(const CornuModel *model);  /* likewise 0 */

/* "loss", then the metrics as compiled. With several losses: "loss", then the unweighted
 * "scores_loss" of each. With several outputs metrics are named as "scores_accuracy", after the
 * output layers. Weighted metrics follow, as "weighted_accuracy" where the name is in use; a name
 * still in use becomes "accuracy_1"; "gradient_norm" is last. Logs of evaluation do not have it,
 * and its value there is 0. */
int         cornu_model_metric_count(const CornuModel *model);
const char *cornu_model_metric_name(const CornuModel *model, int i);

/* The result of metric i since it was reset: the number of its values, 1 except for vectors (and
 * before the first step), the first `count` of them, and one of its states. The state's array is
 * the model's and valid until it is read again; the metric's header describes it.
 * CORNU_ERR_ARGUMENT before the first step. */
int64_t     cornu_model_metric_size(const CornuModel *model, int i);
CornuStatus cornu_model_metric_result(CornuModel *model, int i, double *result, int64_t count);
CornuStatus cornu_model_metric_state(CornuModel *model, int i, int state, CornuArray *array);

/* Statistics of the training step; NULL before the first step. */
const CornuStatistics *cornu_model_statistics(const CornuModel *model);

/* The training step for batches of these types, as fit and cornu_train_on_batch run it; compiled
 * here if necessary, and not run. Owned by the device. NULL with a pending error. */
CornuExecutable *cornu_model_train_step(CornuModel *model, CornuType x, CornuType y);

/* ---- Training, evaluation, prediction ----
 *
 * Data are a data set of (x, y) or arrays .x and .y, of any number type: bytes stay bytes until the
 * step converts them. A data set stays the caller's. Arrays and unbatched data sets are batched by
 * batch_size (default 32), which is an error with a batched data set. A trailing axis of extent 1
 * of x may be omitted or added. A partial last batch counts exactly as its rows; cornu_predict
 * computes that many, rounded up to a power of two. The result of a row does not depend on other
 * rows, nor do its bits on how many are computed; but on "cpu" the last ones may in products of
 * fewer than 16 rows by a transposed matrix, such as weights tied to an embedding, and on "pjrt".
 * It is otherwise with a graph from a file that computes along axis 0: all rows are one batch, or
 * it is CORNU_ERR_SHAPE, naming the layer; a function has no batches (cornu_model_is_function). The
 * default of a model with a batch size is that.
 *
 * A step is compiled for each batch size, and for each value of extents that the model leaves open
 * (CORNU_NONE); the eight most recently used are kept. All elements of a data set have one shape,
 * which may differ between calls: pad sequences of different lengths to one length, or use a data
 * set per length.
 *
 * With several inputs or outputs an element of a data set has a component for each, inputs first;
 * arrays are given as .xs and .ys, in the model's order, or by the names of inputs and outputs, as
 * Keras' dictionaries (functional.h):
 *
 *     .xs_by_name = { { "title", titles }, { "body", bodies } }, .ys_by_name = { { "price", y } }
 *
 * Sample weights multiply the values of losses and weighted metrics: an additional component of a
 * data set, or an array .sample_weight, (N), or (N, T) for a weight per step. With several outputs
 * there is one for all of them or, as .sample_weights, one for each; by name, outputs that are not
 * named weigh 1. Any number type.
 *
 * Keras' validation_data is such data, too:
 *
 *     cornu_fit(model, .x = x, .y = y, .validation_data = { .x = test_x, .y = test_y });
 */

/* The members of CornuData: a data set, or arrays. Functions that take data have them among their
 * arguments. */
#define CORNU_DATA_MEMBERS                                               \
    CornuDataset   *data;                                                \
    CornuArray      x, y;                                                \
    CornuArray      xs[CORNU_MAX_MODEL_TENSORS];                         \
    CornuArray      ys[CORNU_MAX_MODEL_TENSORS];                         \
    CornuNamedArray xs_by_name[CORNU_MAX_MODEL_TENSORS];                 \
    CornuNamedArray ys_by_name[CORNU_MAX_MODEL_TENSORS];                 \
    CornuArray      sample_weight;                                       \
    CornuArray      sample_weights[CORNU_MAX_MODEL_TENSORS];             \
    CornuNamedArray sample_weights_by_name[CORNU_MAX_MODEL_TENSORS]

typedef struct {
    CORNU_DATA_MEMBERS;
} CornuData;

/* What is printed: nothing, a bar, or a line per epoch. Auto, the default, is a bar on a terminal
 * and lines elsewhere. Keras' numbers work too: an explicit 0 is silent, 1 a bar, 2 lines. */
typedef enum { CORNU_AUTO = -1, CORNU_BAR = 1, CORNU_LINES = 2, CORNU_SILENT = 3 } CornuVerbose;

enum { CORNU_MAX_CALLBACKS = 16 };

typedef struct {
    char           unset;
    const char    *written;              /* source of the call, see keywords.h */
    CornuModel    *model;
    CORNU_DATA_MEMBERS;                  /* of CornuData: what it trains on */
    CornuArray     class_weight;         /* (classes): the weight of each class' samples; classes
                                            after the end have 1. Labels are one-hot, or class
                                            numbers: each of several, (N, T) with a loss of class
                                            numbers, has its own weight. Not applied to validation
                                            samples */
    int64_t        batch_size;           /* default 32 */
    int64_t        epochs;               /* default 1: the index after the last, see initial_epoch;
                                            0, or CORNU_ZERO, for none */
    CornuVerbose   verbose;
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS]; /* taken: freed when fit returns. NULLs among
                                            them are skipped */
    double         validation_split;     /* this fraction, from the end of the data, is held out */
    CornuData      validation_data;      /* evaluated after epochs; default none */
    bool           no_shuffle;           /* else unbatched data are shuffled for each epoch */
    int64_t        initial_epoch;        /* index of the first epoch */
    int64_t        steps_per_epoch;      /* default: all batches. With fewer, the next epoch
                                            continues where this one ended */
    int64_t        validation_steps;     /* default: all batches */
    int64_t        validation_batch_size;/* default batch_size */
    int64_t        validation_freq;      /* default 1: epochs between validations */
} CornuFitConfig;

/* Trains. The caller frees the history. NULL on failure, also when the loss becomes NaN or infinite
 * (CORNU_ERR_VALUE, naming epoch and steps); the weights then stay as they are. */
CornuHistory *cornu_fit_from(const CornuFitConfig *config);
#define cornu_fit(...) \
    cornu_fit_from(&(CornuFitConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* The arguments of evaluate and of predict. */
typedef struct {
    char           unset;
    const char    *written;              /* the call, see keywords.h */
    CornuModel    *model;
    CORNU_DATA_MEMBERS;                  /* predict takes x alone; the y of a data set it ignores */
    int64_t        batch_size;
    CornuVerbose   verbose;
    int64_t        steps;                /* default: all batches */
    CornuCallback *callbacks[CORNU_MAX_CALLBACKS];
    double        *results;              /* of evaluate, cornu_model_metric_count() numbers; may be
                                            NULL */
    CornuArray     to;                   /* f32 (rows, …): gets the predictions, one row per row
                                            of the data; evaluate need not store them */
    CornuArray     tos[CORNU_MAX_MODEL_TENSORS]; /* in place of .to: of each output */
    CornuNamedArray tos_by_name[CORNU_MAX_MODEL_TENSORS];
} CornuEvaluateConfig;

typedef CornuEvaluateConfig CornuPredictConfig;

CornuStatus cornu_evaluate_from(const CornuEvaluateConfig *config);
#define cornu_evaluate(...) \
    cornu_evaluate_from(&(CornuEvaluateConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

/* Also of a model that is not compiled, say a loaded one: on the device of the strategy in scope,
 * else a "cpu" device of its own. Likewise cornu_predict_on_batch. */
CornuStatus cornu_predict_from(const CornuPredictConfig *config);
#define cornu_predict(...) \
    cornu_predict_from(&(CornuPredictConfig){ .unset = 0, .written = #__VA_ARGS__, __VA_ARGS__ })

typedef struct {
    char        unset;
    CornuModel *model;
    CornuArray  x, y;
    double     *values;                  /* cornu_model_metric_count() numbers; may be NULL */
    CornuArray  sample_weight;
    CornuArray  class_weight;            /* as in fit; allocates an array of weights per call */
} CornuOnBatchConfig;

/* One step on one batch; without `values` it may return before a pjrt device has ended it. As in
 * Keras, `values` are those of this batch: metrics are reset first if they are wanted. */
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
/* Sets to[i] to the type of output i for such a batch, f32, also where shapes of the model have
 * extents that differ from batch to batch. */
CornuStatus cornu_model_predict_types(CornuModel *model, const CornuArray *x, CornuType *to);
/* Arrays by the names of inputs, and of outputs, in the model's order: to[i] is that of input i.
 * `count` entries, or those up to the first without a name; each name once. */
CornuStatus cornu_model_order_inputs(const CornuModel *model, const CornuNamedArray *arrays,
                                     int count, CornuArray *to);
CornuStatus cornu_model_order_outputs(const CornuModel *model, const CornuNamedArray *arrays,
                                      int count, CornuArray *to);
CornuStatus cornu_model_reset_metrics(CornuModel *model);

/* Resets the states of stateful layers to zeros. As in Keras, states otherwise carry over from
 * batch to batch, from epoch to epoch and from training to evaluation. All batches must have the
 * same number of rows, all valid. Compiling and moving the model reset the states too. */
CornuStatus cornu_model_reset_states(CornuModel *model);

/* ---- For a custom training loop (examples/custom_loop.c) ---- */

/* Records the compiled model in the graph of x (B, …), data as for fit: integers are converted and
 * scaled there. `call` has the training flag and, for dropout, the iteration; members that are NULL
 * default to all rows valid, the model's seed, iteration and position 0. If call->loss is given,
 * *call->loss, NULL before, is set to the sum of the regularizers' losses. The result is f32 under
 * any policy. */
CornuTensor *cornu_model_call(CornuModel *model, CornuTensor *x, const CornuCall *call);
/* The same for a model with several inputs or outputs; sets all y and returns the first. */
CornuTensor *cornu_model_call_many(CornuModel *model, CornuTensor *const *x, int x_count,
                                   const CornuCall *call, CornuTensor **y, int y_count);

/* For callbacks: fit ends after the current batch or epoch. */
void cornu_model_stop_training(CornuModel *model);

#ifdef __cplusplus
}
#endif
#endif
