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
 */
#ifndef CORNU_NN_MODEL_H
#define CORNU_NN_MODEL_H

#include "../datasets/dataset.h"
#include "callback.h"
#include "layer.h"
#include "loss.h"
#include "metric.h"
#include "optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building ---- */

typedef struct {
    char        unset;
    const char *name;                         /* default sequential, sequential_1, … */
    int64_t     input_shape[CORNU_MAX_RANK];  /* without the batch; ends at the first 0. Absent:
                                                 the model is built by its first data */
} CornuSequentialConfig;

CornuModel *cornu_sequential_from(const CornuSequentialConfig *config);
#define cornu_sequential(...) \
    cornu_sequential_from(&(CornuSequentialConfig){ .unset = 0, __VA_ARGS__ })

/* Takes the layer, also when it fails. With a known input shape the layer is built here. */
CornuStatus cornu_model_add(CornuModel *model, CornuLayer *layer);

/* Builds what is not built yet, for inputs of this shape without the batch. */
CornuStatus cornu_model_build(CornuModel *model, CornuShape input);

void cornu_model_free(CornuModel *model);

const char *cornu_model_name(const CornuModel *model);
int         cornu_model_layer_count(const CornuModel *model);
CornuLayer *cornu_model_layer(const CornuModel *model, int i);
bool        cornu_model_built(const CornuModel *model);
CornuShape  cornu_model_input_shape(const CornuModel *model);  /* axis 0 is CORNU_NONE */

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

#ifdef __cplusplus
}
#endif
#endif
