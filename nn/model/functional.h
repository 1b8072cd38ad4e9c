/*
 * Models whose layers branch, Keras' functional API: symbols are Keras' symbolic tensors, layers
 * are called on symbols, and a model maps some symbols to others.
 *
 *     CornuSymbol *image = cornu_input(.shape = { 28, 28, 1 });
 *     CornuSymbol *text  = cornu_input(.shape = { 64 }, .name = "text");
 *     CornuSymbol *x = cornu_call(cornu_flatten(), image);
 *     x = cornu_call(cornu_dense(32, .activation = CORNU_RELU), x);
 *     x = cornu_call(cornu_add(), x, cornu_call(cornu_dense(32), text));
 *     CornuSymbol *y = cornu_call(cornu_dense(10, .activation = CORNU_SOFTMAX), x);
 *     CornuModel  *model = cornu_model(.inputs = { image, text }, .outputs = { y });
 *
 * A layer that is called several times shares its weights. A model is a layer too (cornu_as_layer).
 * cornu_sequential makes the special case of a sequence of layers.
 *
 * A call given NULL, or with an error pending, returns NULL and keeps the first error, so that
 * cornu_model is the one place to check. Layers are built, and shapes checked, where they are
 * called; messages name the layers on both sides.
 *
 * Ownership: a layer is taken by its first call, even if that fails. Symbols and their layers live
 * as long as a model that contains them, or until they are freed if they were taken
 * (cornu_symbol_take); others belong to the thread, until cornu_model fails or cornu_clear_session
 * is called.
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
                                            CORNU_NONE: may differ between batches */
    bool        scalar;                  /* in place of a shape: a value per row, Keras' () */
    int64_t     batch_size;              /* rows of every batch; default any number          */
    CornuDtype  dtype;                   /* the dtype that layers and operations get.
                                            Default f32, except that integers stay integers for
                                            layers that take indices (Embedding) */
    double      scale;                   /* factor for integers when converted to f32;
                                            default 1 */
    const char *name;                    /* default input_layer, input_layer_1, … */
} CornuInputConfig;

/* A symbol for the model's data, Keras' Input. */
CornuSymbol *cornu_input_from(const CornuInputConfig *config);
#define cornu_input(...) cornu_input_from(&(CornuInputConfig){ .unset = 0, __VA_ARGS__ })

/* Calls the layer on 1 to 16 symbols: Keras' layer(x) or layer([a, b]). */
CornuSymbol *cornu_call_from(CornuLayer *layer, CornuSymbol *const *in, int count);
#define cornu_call(layer, ...)                                      \
    cornu_call_from((layer), (CornuSymbol *const[]){ __VA_ARGS__ }, \
                    (int)(sizeof((CornuSymbol *const[]){ __VA_ARGS__ }) / sizeof(CornuSymbol *)))

/* Keras' keras.ops: the operation of that name on 1 to 16 symbols, with the other arguments as
 * JSON, or NULL: keras.ops.argmax(x, axis=-1) is
 *
 *     cornu_operation("argmax", "{ \"axis\": -1 }", x)
 *
 * and 1.0 - x, where the nulls of "args" are the symbols in order,
 *
 *     cornu_operation("subtract", "{ \"args\": [1.0, null] }", x)
 *
 * keras.ops.concatenate([x, y]) has the "args" [[null, null]]. Arguments are Keras', in its order
 * or by name: "args" [null, -1, 1] are clip's x, x_min and x_max. Symbol i may also be given as
 * {"class_name": "__keras_tensor__", "config": i}, by name, too; then nulls are None. Where a whole
 * number is expected there may be an extent of symbol i, which is known when the model runs:
 *
 *     {"class_name": "__extent__", "config": {"of": i, "axis": 0}}
 *
 * or with "operation" (add, subtract, multiply, floor_divide) and "operands", two extents or
 * numbers, what that gives. A "name" is that of the operation's layer. Axis 0, the batch, is an
 * axis like others: where rows depend on each other batches are cut as by Keras, none is padded,
 * and devices of one shard alone compute them. CORNU_ERR_ARGUMENT for an argument that Keras'
 * function does not have, or that it requires. */
CornuSymbol *cornu_operation_from(const char *name, const char *arguments, CornuSymbol *const *in,
                                  int count);
#define cornu_operation(name, arguments, ...)                                    \
    cornu_operation_from((name), (arguments), (CornuSymbol *const[]){ __VA_ARGS__ }, \
                         (int)(sizeof((CornuSymbol *const[]){ __VA_ARGS__ }) /       \
                               sizeof(CornuSymbol *)))

/* The same operation, recorded on 0 to 64 tensors of the call's graph: no model is made, and axis 0
 * is an axis like the others. `arguments` as above. Of the call the graph is required; operations
 * that draw read its seed and iteration, each by default 0. Sets out[0 … *out_count), of at most
 * CORNU_MAX_LAYER_TENSORS results.
 *
 *     cornu_operation_record(&(CornuCall){ .graph = graph }, "sum", "{ \"axis\": 0 }", &x, 1, out,
 *                            &count);
 */
CornuStatus cornu_operation_record(const CornuCall *call, const char *name, const char *arguments,
                                   CornuTensor *const *in, int in_count, CornuTensor **out,
                                   int *out_count);

/* Keras' layer(x, reverse=True), of a reversible_embedding. */
CornuSymbol *cornu_call_reverse(CornuLayer *layer, CornuSymbol *in);

/* Output i, from 0, of the call that returned the symbol. */
CornuSymbol *cornu_call_result(CornuSymbol *symbol, int i);

/* The number of outputs of the call that returned the symbol, Keras' layer.output. */
int          cornu_call_results(const CornuSymbol *symbol);
/* The number of operands of that call, Keras' layer.input; 0 for a symbol of cornu_input. */
int          cornu_call_operands(const CornuSymbol *symbol);
/* Operand i, from 0, of that call. NULL with a pending error if there is none. */
CornuSymbol *cornu_call_operand(CornuSymbol *symbol, int i);

CornuShape cornu_symbol_shape(const CornuSymbol *symbol);   /* axis 0 is CORNU_NONE */
CornuType  cornu_symbol_type(const CornuSymbol *symbol);    /* of that shape */

/* For languages that collect garbage: takes a symbol from the thread that made it, or a further
 * reference to one, so that it lives, with all that it depends on, until cornu_symbol_free drops
 * the reference. Other symbols of its call are taken with it. Returns the symbol; NULL for NULL.
 * One thread at a time takes, frees, calls and makes models. */
CornuSymbol *cornu_symbol_take(CornuSymbol *symbol);
/* Drops a reference of cornu_symbol_take; NULL is ignored. */
void         cornu_symbol_free(CornuSymbol *symbol);

typedef struct {
    char         unset;
    CornuSymbol *inputs[CORNU_MAX_MODEL_TENSORS];    /* in the order of the data: of cornu_input, or
                                                        what layers return, in place of which the
                                                        model has inputs of the same types */
    CornuSymbol *outputs[CORNU_MAX_MODEL_TENSORS];
    const char  *input_keys[CORNU_MAX_MODEL_TENSORS];  /* the keys of Keras' dictionaries in place
                                                        of lists, in ascending order; copied.
                                                        Names of inputs and outputs are these,
                                                        else those of their layers */
    const char  *output_keys[CORNU_MAX_MODEL_TENSORS];
    const char  *name;                               /* default functional, functional_1, … */
    const char  *policy;                             /* as cornu_sequential's */
    bool         only_called;                        /* for cornu_model_call_many alone: outputs
                                                        need not have the batch as axis 0 */
} CornuModelConfig;

/* The model from the inputs to the outputs; the caller owns it, as with cornu_sequential. Layers
 * are in Keras' order: by distance from the outputs, then in the order of the walk from them.
 * CORNU_ERR_ARGUMENT if an output depends on an input that is not given, or two layers have the
 * same name. */
CornuModel *cornu_model_from(const CornuModelConfig *config);
#define cornu_model(...) cornu_model_from(&(CornuModelConfig){ .unset = 0, __VA_ARGS__ })

/* The model as a layer, for cornu_call and cornu_model_add, with its weights. The caller still owns
 * it and frees it as usual; calls hold their own references. */
CornuLayer *cornu_as_layer(CornuModel *model);

/* The model that a layer is, also one in another model, whose it stays; NULL for another layer. */
CornuModel *cornu_as_model(CornuLayer *layer);

/* Input i of a model, from 0, to call further layers on or to make another model of. NULL with a
 * pending error if there is none. */
CornuSymbol *cornu_model_input(const CornuModel *model, int i);
/* Likewise output i. */
CornuSymbol *cornu_model_output(const CornuModel *model, int i);
/* Likewise the first output of the model's first call of the layer of that name. */
CornuSymbol *cornu_model_symbol(const CornuModel *model, const char *layer);

/* The name of input i, from 0, in dictionaries, arguments and logs: its key, else its layer's name.
 * NULL if there is none, or if the model is not built. */
const char *cornu_model_input_name(const CornuModel *model, int i);
/* Likewise of output i. */
const char *cornu_model_output_name(const CornuModel *model, int i);

/* Frees this thread's symbols and their layers that are not in a model. */
void cornu_clear_session(void);

#ifdef __cplusplus
}
#endif
#endif
