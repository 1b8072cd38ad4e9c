/*
 * Layers: weights plus a function from tensors to tensors.
 *
 * A layer is made by its constructor (layers.h), which a model takes over. Its class is a
 * struct of functions, so a user's own layer is made the same way as ours.
 *
 * Building happens when the layer meets its input shape: `build` declares weights, `call`
 * records ops. Output shapes need no rule of their own: `call` is traced once on a template
 * graph and asked.
 */
#ifndef CORNU_NN_LAYER_H
#define CORNU_NN_LAYER_H

#include "../tensor/ops.h"
#include "initializers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuLayer  CornuLayer;
typedef struct CornuWeight CornuWeight;

/* What a trace gives a layer besides its input. */
typedef struct CornuCall {
    CornuGraph  *graph;
    bool         training;
    CornuTensor *count;      /* i64 scalar: valid rows of the batch, the first ones */
    CornuTensor *seed;       /* i64 scalars, see device/random.h */
    CornuTensor *iteration;
    CornuTensor *position;   /* of row 0 in the global batch */
} CornuCall;

typedef struct {
    const char *class_name;  /* Keras' class: "Conv2D"; names follow from it: conv2d, conv2d_1 */
    size_t      size;        /* of the layer's own struct, whose first field is a CornuLayer */

    /* Declares the weights (cornu_layer_weight) for inputs of this shape; axis 0 is the batch,
     * CORNU_NONE. NULL for layers without weights. */
    CornuStatus (*build)(CornuLayer *layer, CornuShape input);

    /* Records the layer. NULL on failure, as ops do. */
    CornuTensor *(*call)(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

    /* Writes the constructor's arguments under Keras' names into a json_t object; NULL if there
     * are none. Declared through void so that jansson stays out of this header. */
    CornuStatus (*config)(const CornuLayer *layer, void *json_object);

    void (*free)(CornuLayer *layer); /* what the layer owns besides weights; may be NULL */
} CornuLayerClass;

struct CornuLayer {
    const CornuLayerClass *class;
    char                  *name;
    bool                   frozen;      /* Keras' trainable = False; read at compile */
    bool                   built;
    CornuShape             output;      /* once built; axis 0 is CORNU_NONE */
    CornuWeight          **weights;     /* in Keras' order */
    int                    weight_count;
    int64_t                generator;   /* number for the layer's random draws, set by the model */
};

/* A weight: its value lives on the host until the model is compiled, then in a variable of the
 * model's device. */
struct CornuWeight {
    char             *path;          /* Keras' variable path: "conv2d/kernel" */
    CornuType         type;          /* f32 */
    bool              non_trainable; /* moving statistics */
    CornuInitializer  initializer;
    int64_t           generator;     /* number for its initial draw */
    float            *host;          /* the value before compile, else NULL */
    CornuVariable    *variable;      /* the value after compile, else NULL */
};

/* For class->build: declares the next weight, "kernel" of shape `shape`. */
CornuWeight *cornu_layer_weight(CornuLayer *layer, const char *name, CornuShape shape,
                                CornuInitializer initializer, bool non_trainable);

/* For class->call: weight number i as a tensor of the trace's graph. */
CornuTensor *cornu_layer_read(CornuLayer *layer, const CornuCall *call, int i);

/* For class->call: what weight i shall be after the step (moving statistics). */
CornuStatus cornu_layer_assign(CornuLayer *layer, const CornuCall *call, int i,
                               CornuTensor *value);

/* Allocates a layer of the class; the name is copied, NULL gives Keras' automatic one. NULL
 * while an error is pending. */
CornuLayer *cornu_layer_create(const CornuLayerClass *class, const char *name);
void        cornu_layer_free(CornuLayer *layer);

/* Builds the layer and traces it once, which gives its output shape. */
CornuStatus cornu_layer_build(CornuLayer *layer, CornuShape input);

/* Number of elements of all weights. */
int64_t cornu_layer_parameters(const CornuLayer *layer);

/* Copies a weight's value out or in, wherever it lives; f32, the weight's shape. */
CornuStatus cornu_weight_read(const CornuWeight *weight, CornuArray to);
CornuStatus cornu_weight_write(CornuWeight *weight, CornuArray from);

#ifdef __cplusplus
}
#endif
#endif
