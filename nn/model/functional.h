/*
 * Models whose layers branch, Keras' functional API: symbols stand for tensors, layers are called
 * on symbols, and a model is what leads from some of them to others.
 *
 *     CornuSymbol *image = cornu_input(.shape = { 28, 28, 1 });
 *     CornuSymbol *text  = cornu_input(.shape = { 64 }, .name = "text");
 *     CornuSymbol *x = cornu_call(cornu_flatten(), image);
 *     x = cornu_call(cornu_dense(32, .activation = CORNU_RELU), x);
 *     x = cornu_call(cornu_add(), x, cornu_call(cornu_dense(32), text));
 *     CornuSymbol *y = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX), x);
 *     CornuModel  *model = cornu_model(.inputs = { image, text }, .outputs = { y });
 *
 * A layer that is called again shares its weights. A model is a layer too (cornu_as_layer). What
 * cornu_sequential makes is the special case of one layer behind the other.
 *
 * A call given NULL, or with an error pending, returns NULL and keeps the first error, so that
 * cornu_model is the one place to check. Layers are built, and shapes checked, where they are
 * called; messages name the layers on both sides.
 *
 * Ownership: a layer is taken by its first call, also when that fails. Symbols, and the layers
 * behind them, live as long as a model that they are in; those that are in none yet are the
 * thread's, until cornu_model fails or cornu_clear_session is called.
 */
#ifndef CORNU_NN_FUNCTIONAL_H
#define CORNU_NN_FUNCTIONAL_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuSymbol CornuSymbol;

typedef struct {
    char        unset;
    int64_t     shape[CORNU_MAX_RANK];   /* required; without the batch; ends at the first 0.
                                            CORNU_NONE: differs from batch to batch */
    int64_t     batch_size;              /* rows that every batch has; default any number    */
    CornuDtype  dtype;                   /* what layers are given: f32 or a whole number's.
                                            Default f32, but whole numbers stay what they are for
                                            layers that look them up (Embedding) */
    double      scale;                   /* what whole numbers are multiplied by as they become
                                            f32; default 1 */
    const char *name;                    /* default input_layer, input_layer_1, … */
} CornuInputConfig;

/* A symbol that stands for the model's data. Keras' Input. */
CornuSymbol *cornu_input_from(const CornuInputConfig *config);
#define cornu_input(...) cornu_input_from(&(CornuInputConfig){ .unset = 0, __VA_ARGS__ })

/* What the layer makes of the symbols, 1 to 16: Keras' layer(x) or layer([a, b]). */
CornuSymbol *cornu_call_from(CornuLayer *layer, CornuSymbol *const *in, int count);
#define cornu_call(layer, ...)                                      \
    cornu_call_from((layer), (CornuSymbol *const[]){ __VA_ARGS__ }, \
                    (int)(sizeof((CornuSymbol *const[]){ __VA_ARGS__ }) / sizeof(CornuSymbol *)))

/* Of the call that gave the symbol: its result number i, from 0. */
CornuSymbol *cornu_call_result(CornuSymbol *symbol, int i);

CornuShape cornu_symbol_shape(const CornuSymbol *symbol);   /* axis 0 is CORNU_NONE */

typedef struct {
    char         unset;
    CornuSymbol *inputs[CORNU_MAX_MODEL_TENSORS];    /* of cornu_input, in the order of the data */
    CornuSymbol *outputs[CORNU_MAX_MODEL_TENSORS];
    const char  *name;                               /* default functional, functional_1, … */
    const char  *policy;                             /* as cornu_sequential's */
} CornuModelConfig;

/* The model that leads from the inputs to the outputs; its caller's, as cornu_sequential's. Layers
 * stand in Keras' order: by their distance from the outputs, then as these lead to them. An output
 * that also depends on another input, or two layers of one name, is CORNU_ERR_ARGUMENT. */
CornuModel *cornu_model_from(const CornuModelConfig *config);
#define cornu_model(...) cornu_model_from(&(CornuModelConfig){ .unset = 0, __VA_ARGS__ })

/* The model as a layer, for cornu_call and cornu_model_add, with the weights that it has. It stays
 * the caller's, who frees it when he no longer needs it himself; the calls hold it too. */
CornuLayer *cornu_as_layer(CornuModel *model);

/* Input and output number i of a model, and the first result of the first call that it makes of
 * the layer of that name: to lead on from, or to make another model of. NULL without one. */
CornuSymbol *cornu_model_input(const CornuModel *model, int i);
CornuSymbol *cornu_model_output(const CornuModel *model, int i);
CornuSymbol *cornu_model_symbol(const CornuModel *model, const char *layer);

/* Frees this thread's symbols, and layers behind them, that are in no model. */
void cornu_clear_session(void);

#ifdef __cplusplus
}
#endif
#endif
