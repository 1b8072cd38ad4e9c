/*
 * Layers whose call is a graph of calls: Keras' subclass of Layer in another language, whose `call`
 * was run once, on symbols. Such a layer has weights of its own and calls others; it is trained,
 * saved, exported and placed as every layer is, without the program that made it.
 *
 *     CornuLayer  *scale = cornu_traced(.class_name = "Scale", .config = "{\"by\": 2}");
 *     CornuSymbol *w = cornu_traced_weight(scale, "{\"name\": \"w\", \"shape\": [8]}");
 *     CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, 8), "x");
 *     cornu_traced_add(scale, .inputs = { x },
 *                      .outputs = { cornu_operation("multiply", NULL, x, w) });
 *     CornuSymbol *y = cornu_call(scale, cornu_input(.shape = { 8 }));
 *
 * A layer called on a step (B, …) and states (B, …), f32, that returns an output and the next
 * states is a cell, which cornu_rnn takes.
 *
 * In such a graph axis 0 of a symbol need not be a batch. A graph is for operands of certain types,
 * for training, or not, or both; the first one that fits a call is taken.
 */
#ifndef CORNU_NN_TRACED_H
#define CORNU_NN_TRACED_H

#include "../functional.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    const char *class_name;       /* required; strings are copied */
    const char *module;           /* Keras' module of the class; default "cornu" */
    const char *registered_name;  /* Keras', "package>Class"; default the class' name */
    const char *config;           /* Keras' get_config as a JSON object, for files; default {} */
    const char *name;
    const char *dtype;            /* a policy's name; default the model's */
    bool        supports_masking; /* the mask of the first operand is that of the results, unless
                                     a graph computes it */
    bool        frozen;
} CornuTracedConfig;

/* A layer without weights and graphs. NULL with a pending error for a config that is not JSON. */
CornuLayer *cornu_traced_from(const CornuTracedConfig *config);
#define cornu_traced(...) cornu_traced_from(&(CornuTracedConfig){ .unset = 0, __VA_ARGS__ })

/* Adds a weight, Keras' add_weight, and returns the symbol that reads it, in the layer's graphs
 * alone, which belongs to the layer. The arguments are JSON: "name", "shape", and by default
 * "initializer" (glorot_uniform), "trainable" (true), "regularizer", "constraint". NULL with a
 * pending error; CORNU_ERR_ARGUMENT once a model calls the layer. */
CornuSymbol *cornu_traced_weight(CornuLayer *layer, const char *arguments);

/* The symbol that reads a weight, of the layer or of one that its graphs call, likewise. */
CornuSymbol *cornu_traced_read(CornuLayer *layer, const CornuWeight *weight);

/* Keras' get_config as a JSON object, for files, in place of that of cornu_traced. */
CornuStatus cornu_traced_set_config(CornuLayer *layer, const char *config);

/* An operand of a graph, whose type is all of the data's: axis 0 is CORNU_NONE where it is the
 * batch. Strings are refused. */
CornuSymbol *cornu_placeholder(CornuType type, const char *name);

typedef struct {
    char         unset;
    CornuSymbol *inputs[CORNU_MAX_MODEL_TENSORS];   /* of cornu_placeholder: the operands */
    CornuSymbol *outputs[CORNU_MAX_MODEL_TENSORS];  /* at least one */
    CornuSymbol *losses[CORNU_MAX_MODEL_TENSORS];   /* Keras' add_loss: of each the sum is added */
    CornuSymbol *values[CORNU_MAX_MODEL_TENSORS];   /* what weights have after the step, */
    int          assigned[CORNU_MAX_MODEL_TENSORS];   /* and which of the layer's own; or */
    const CornuWeight *assigned_of[CORNU_MAX_MODEL_TENSORS];   /* one of a layer that the graph
                                                    calls, whose calls read what it is assigned,
                                                    which depends on weights alone */
    bool         training_only, inference_only;   /* both: it is never called, and makes the layers
                                                     in it parts of this one, for own steps */
    bool         computes_mask;   /* the outputs are the masks of the first results */
    bool         computes_states; /* of a cell of RNN: the states with which it begins, of a column
                                     f32 (B, 1) for a batch; without such a graph they are zeros */
} CornuTracedGraphConfig;

/* Adds a graph. Operands, and results with losses and assigned weights, are at most
 * CORNU_MAX_MODEL_TENSORS; it reads any number of weights. A layer has at most
 * CORNU_MAX_WRAPPED graphs. */
CornuStatus cornu_traced_add_from(CornuLayer *layer, const CornuTracedGraphConfig *config);
#define cornu_traced_add(layer, ...) \
    cornu_traced_add_from((layer), &(CornuTracedGraphConfig){ .unset = 0, __VA_ARGS__ })

/* Says which attribute of the class a layer is that its graphs call, where Keras' files keep the
 * layer's weights: "dense", or of a list "blocks/dense_1"; "" is the layer whose class this one
 * extends, which in Keras is the same object. By default its name. */
CornuStatus cornu_traced_attribute(CornuLayer *layer, const CornuLayer *inner,
                                   const char *attribute);

/* The layer that is this attribute; NULL if its graphs call none that is. */
CornuLayer *cornu_traced_layer(const CornuLayer *layer, const char *attribute);

/* Whether it has a graph for operands of these types. */
bool cornu_traced_takes(const CornuLayer *layer, const CornuType *types, int count);

/* The class that a layer was traced from, as files name it; NULL for any other layer. */
const char *cornu_traced_class(const CornuLayer *layer);

#ifdef __cplusplus
}
#endif
#endif
