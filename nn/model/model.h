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
 * compile.h has what compiling is given, fit.h what training, evaluation and prediction are.
 *
 * A model is used by one thread at a time. Functions that run it, change it or read its weights
 * fail with CORNU_ERR_BUSY, naming both functions, while another thread is in one of them; a
 * callback, which runs on that thread, may call anything. Models that share layers, or a device
 * (device.h), count as one. A predictor (predictor.h) takes calls from any number of threads.
 */
#ifndef CORNU_NN_MODEL_H
#define CORNU_NN_MODEL_H

#include "../layers/layer.h"
#include "../training/fit.h"
#include "compile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building ----
 *
 * A sequence of layers; functional.h has models whose layers branch.
 */

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

/* Keras' Sequential: a model without layers, which cornu_model_add appends. The caller owns it.
 * NULL with a pending error for an unknown policy or a shape that cannot be one. */
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

/* Drops the caller's reference: the model is freed with its layers, but for those that another
 * model or call has. NULL is ignored. */
void cornu_model_free(CornuModel *model);

/* The name of its config or the default, "sequential_1"; owned by the model. */
const char *cornu_model_name(const CornuModel *model);
/* The number of its layers, each once; of a functional model with those of its inputs. */
int         cornu_model_layer_count(const CornuModel *model);
/* Layer i, from 0, in Keras' order; owned by the model. NULL if there is none. */
CornuLayer *cornu_model_layer(const CornuModel *model, int i);
/* Whether the layers have weights: the shapes of all inputs are known. */
bool        cornu_model_built(const CornuModel *model);
/* Of the first input: axis 0 and extents that may differ are CORNU_NONE; of rank 0 where it is not
 * known yet. */
CornuShape  cornu_model_input_shape(const CornuModel *model);
/* Whether it is a function, as some graphs of .onnx and .tflite files are: axis 0 is not one batch
 * that all inputs and outputs share, such as with a scalar input, a state (2, batch, 64), or an
 * output whose axis 0 is time. Types of inputs and outputs then hold all of their shapes.
 * cornu_predictor_predict and cornu_predict_on_batch run it once on what they are given; what needs
 * batches refuses it: CORNU_ERR_UNSUPPORTED, naming the input or output. */
bool        cornu_model_is_function(const CornuModel *model);
/* Rows of every batch: .batch_size, or those of stateful layers' first batch; else CORNU_NONE. */
int64_t     cornu_model_batch_size(const CornuModel *model);
/* Likewise of the first output, once built. */
CornuShape  cornu_model_output_shape(const CornuModel *model);
int         cornu_model_input_count(const CornuModel *model);   /* the number of inputs  */
int         cornu_model_output_count(const CornuModel *model);  /* the number of outputs */
/* The factor for integer data, .input_scale. */
double      cornu_model_input_scale(const CornuModel *model);

/* The policy of layers without their own. Before compiling, the one set for the model, or NULL
 * where its device will decide. */
const CornuPolicy *cornu_model_policy(const CornuModel *model);

/* The layer of this name, not one of a nested model; NULL if there is none. */
CornuLayer  *cornu_model_find_layer(const CornuModel *model, const char *name);
/* The weight of this path, "conv2d/kernel" or, in a nested model, "encoder/conv2d/kernel"; NULL if
 * there is none. */
CornuWeight *cornu_model_find_weight(const CornuModel *model, const char *path);

/* Metadata stored with the model in .safetensors and .keras files, and in clones: class names, and
 * notes, strings with a key (say names of columns, or the preparation of images). Strings are
 * copied, and CORNU_ERR_VALUE if one is not UTF-8; a returned string lives until it is set again or
 * the model is freed. */

/* Names `count` classes in the order of the output's last axis. CORNU_ERR_VALUE for a name that is
 * empty or has control characters. */
CornuStatus cornu_model_set_class_names(CornuModel *model, const char *const *names, int count);
/* The name of class i, from 0; NULL if it has none. */
const char *cornu_model_class_name(const CornuModel *model, int64_t i);
/* Sets the note of this key; NULL removes it. */
CornuStatus cornu_model_set_note(CornuModel *model, const char *key, const char *text);
/* The note of this key; NULL if there is none. */
const char *cornu_model_note(const CornuModel *model, const char *key);

/* The number of all weights, layer after layer, Keras' model.weights. */
int          cornu_model_weight_count(const CornuModel *model);
/* Weight i of these, from 0, owned by its layer. NULL if there is none. */
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

/* The number of the optimizer's variables; 0 before the model is compiled and built. */
int            cornu_model_optimizer_variable_count(const CornuModel *model);
/* Variable i of these, from 0, in Keras' order ("adam/iteration", "adam/learning_rate",
 * "adam/conv2d_kernel_momentum", …), owned by the optimizer. NULL if there is none. */
CornuVariable *cornu_model_optimizer_variable(const CornuModel *model, int i);

/* The number of elements of all weights, Keras' count_params. */
int64_t cornu_model_parameters(const CornuModel *model);
/* The number of elements of the weights that training changes. */
int64_t cornu_model_trainable_parameters(const CornuModel *model);
/* The number of elements of the optimizer's variables. */
int64_t cornu_model_optimizer_parameters(const CornuModel *model);

/* The seed of initial weights, dropout and shuffling for models that this thread makes from now on;
 * initially 0. As keras.utils.set_random_seed. */
void     cornu_set_random_seed(uint64_t seed);
/* The seed that the model was made with. */
uint64_t cornu_model_seed(const CornuModel *model);

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

/* Puts the weights of a built model on its device, so that graphs there can read and train their
 * variables (layer.h): that of cornu_compile, or for a model that is not compiled `device`, which
 * stays the caller's; NULL: a cpu of its own. CORNU_ERR_ARGUMENT for a model that is not built. */
CornuStatus cornu_model_place(CornuModel *model, CornuDevice *device);

/* Whether cornu_fit records the layers as in inference, without dropout and with moving averages,
 * while it trains the weights: what Keras does with a subclass of Model whose call has no argument
 * `training`. Own steps say in each call what it is. Before the first step. */
void cornu_model_train_as_inference(CornuModel *model, bool as_inference);

/* cornu_optimizer_build for these weights, with their constraints. */
CornuStatus cornu_optimizer_build_weights(CornuOptimizer *optimizer, CornuWeight *const *weights,
                                          int count);

/* For callbacks: fit ends after the current batch or epoch. */
void cornu_model_stop_training(CornuModel *model);

#ifdef __cplusplus
}
#endif
#endif
