/*
 * Layers: weights plus a function from tensors to tensors.
 *
 * A layer is made by its constructor (layers.h) and taken over by a model. Its class is a struct of
 * functions (layer_class.h), so custom layers are made the same way as built-in ones.
 *
 * A layer is built when its input shape is known: `build` declares weights, `call` records ops.
 * Output shapes need no separate rule: `call` is traced once on a template graph.
 */
#ifndef CORNU_NN_LAYER_H
#define CORNU_NN_LAYER_H

#include "../config/keywords.h"
#include "../config/remat.h"
#include "../weights/constraints.h"
#include "../weights/initializers.h"
#include "../weights/regularizers.h"
#include "layer_class.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_MAX_WRAPPED = 8, CORNU_MAX_LAYER_STATES = 16, CORNU_MAX_LAYER_TENSORS = 64 };

/* How deep layers may be nested, such as models in models; limited by what files can store. The
 * number of layers in a row is not limited. */
enum { CORNU_MAX_LAYER_DEPTH = 16 };

/* keras.quantizers.AbsMaxQuantizer. */
typedef struct {
    bool    given;                  /* false is Keras' None */
    double  low, high, epsilon;     /* default -127, 127, 1e-7 */
    int64_t axes[CORNU_MAX_RANK];   /* kept for files alone */
    int     axis_count;
} CornuQuantizer;

/* How a layer's kernel is quantized, besides what its policy says. */
typedef struct {
    int64_t block;          /* int4: elements that share a scale; -1, and 0 in a policy without
                               "/-1": as many as there are */
    int64_t history;        /* float8: steps whose largest values are kept; default 1024 */
    bool    configured;     /* Keras' quantization_config is given: the fields below */
    int64_t config_block;   /* of Int4QuantizationConfig; 0: None */
    CornuQuantizer weights, inputs;
} CornuQuantized;

struct CornuLayer {
    const CornuLayerClass *kind;
    char                  *name;        /* NULL until given or added to a model */
    char                   class_label[64];  /* the class in snake case: "max_pooling2d" */
    bool                   frozen;      /* Keras' trainable = False, see set_trainable */
    CornuRegularizer       activity_regularizer; /* of the output, per row of the batch; or none */
    const CornuPolicy     *own_policy;  /* its .dtype, or NULL */
    CornuQuantized         quantized;   /* if that policy quantizes */
    const struct CornuQuantizable *kernels;  /* internal: what can be quantized, once built */
    int                    kernel_count;
    CornuDtype             compute;     /* by the policy that applies: known once compiled, */
    CornuDtype             result;      /* f32 before. result is f32 also for a last layer  */
    CornuDtype             variable;    /* of its weights in Keras: f32, bf16 or f16, likewise */
    bool                   built;
    CornuShape             output;      /* once built; axis 0 is CORNU_NONE */
    CornuWeight          **weights;     /* in Keras' order: its own, then those of inner layers,
                                           which own them */
    int                    weight_count, own_count;
    CornuLayer           **inner;       /* layers that this one calls, each once */
    int                    inner_count;
    CornuLayer            *wrapped[CORNU_MAX_WRAPPED]; /* of wrappers: storage of `inner` */
    CornuLayer            *activation;  /* the last of them if it is this layer's activation, */
    CornuShape             activated;   /* and its input */
    int                    depth;       /* of nesting: 0 without inner layers */
    const CornuLayer      *outer;       /* the layer around this one, or NULL */
    const char            *prefix;      /* of its name in `outer`: "forward_" */
    int                    owners;      /* references by calls and models; 0: the caller's */
    int                    calls;       /* number of symbolic calls (functional.h) */
    int                    compiled;    /* number of compiled models that use it */
    CornuLayer            *next_kept;   /* see symbol.c */
    bool                   numbered;    /* a model has assigned its generators */
    CornuVariable         *states[CORNU_MAX_LAYER_STATES]; /* NULL until first used */
    bool                   moved_to_host;  /* see moves_to_host of its class */
    bool                   takes_integers; /* its class', or its inner layer's */
    bool                   whole_batch; /* a row of its results depends on others, or on their
                                           number, as that of a mean over axis 0 does */
    bool                   reverse;     /* of the call that is recorded: set by who records it */
    int64_t                lora_rank;   /* 0: none */
    double                 lora_alpha;
    const struct CornuRemat *remat;     /* internal: of the scope it was made in, or NULL */
    void                 **kept;        /* memory that is freed with the layer */
    int                    kept_count, kept_space;
    CornuLayer *(*from)(const CornuLayerClass *kind, const void *config);   /* internal: what made
                                           it, if its class has no `from`; for copies */
    uint64_t               seed;        /* seed and first generator of its random draws, set   */
    int64_t                generator;   /* before building; the generators of its weights follow */
};

/* What Keras keeps a weight in; here its values are f32, rounded to that after each update. */
typedef enum {
    CORNU_STORED_BY_POLICY,   /* its layer's: CornuPolicy.variable */
    CORNU_STORED_F32, CORNU_STORED_I8
} CornuStored;

/* What memory has of a weight: f32, or whole numbers in 8 bits, from -128 or from 0 on. */
typedef enum { CORNU_KEPT_F32, CORNU_KEPT_I8, CORNU_KEPT_U8 } CornuKept;

/* A weight. Its initial value is drawn when first needed, so that a model too large for its device
 * takes no host memory either. Once compiled it lives in a variable of the model's device. */
struct CornuWeight {
    char             *path;          /* Keras' variable path: "conv2d/kernel" */
    CornuType         type;          /* f32 */
    bool              non_trainable; /* moving statistics */
    bool              sparse_gradient; /* a table of which only the rows looked up are updated */
    bool              sliced;        /* such a table, of whose rows each shard has a slice */
    int               blocks;        /* its last axis is so many side by side, as gates are, of each
                                        of which a mesh cuts slices; 0: it is one */
    CornuInitializer  initializer;
    CornuRegularizer  regularizer;   /* added to the loss while trainable; or none */
    CornuConstraint   constraint;    /* applied after each update; or none */
    uint64_t          seed;          /* seed and generator of its initial value */
    int64_t           generator;
    const CornuWeight *lora_a, *lora_b; /* read as its value + lora_scale a b, or NULL */
    double            lora_scale;
    bool              is_lora;       /* one of these two, which Keras' files do not hold */
    const CornuLayer *layer;         /* that declared it */
    CornuStored       stored;
    CornuKept         kept;          /* set before it has a value; arrays that are read and
                                        written are f32 */
    float            *host;          /* a value written before compiling, else NULL; of 8 bits
                                        bytes, as `kept` says */
    CornuVariable    *variable;      /* the value after compiling, else NULL */
};

/* For kind->build: declares the next weight, such as "kernel". CORNU_ERR_SHAPE for a shape that
 * depends on an unknown extent. */
CornuStatus cornu_layer_weight(CornuLayer *layer, const char *name, CornuShape shape,
                               CornuInitializer initializer, bool non_trainable);

/* For kind->build: regularizer and constraint of the weight declared last. CORNU_ERR_SHAPE if they
 * do not apply to its shape. */
CornuStatus cornu_layer_weight_rules(CornuLayer *layer, CornuRegularizer regularizer,
                                     CornuConstraint constraint);

/* For kind->call: weight i as a tensor of the call's graph, in the layer's compute dtype. */
CornuTensor *cornu_layer_read(CornuLayer *layer, const CornuCall *call, int i);
/* Likewise in the given dtype. */
CornuTensor *cornu_layer_read_as(CornuLayer *layer, const CornuCall *call, int i,
                                 CornuDtype dtype);

/* Likewise in f32, after the assignments of earlier calls in the step. */
CornuTensor *cornu_layer_read_assigned(CornuLayer *layer, const CornuCall *call, int i);

/* For kind->call: sets the value, f32, that weight i has after the step (moving statistics). */
CornuStatus cornu_layer_assign(CornuLayer *layer, const CornuCall *call, int i,
                               CornuTensor *value);

/* For kind->call: adds an f32 scalar to the model's loss, as Keras' add_loss. On a shard it is the
 * shard's part: the parts are summed. CORNU_ERR_DTYPE, pending, for any other type. */
CornuStatus cornu_layer_add_loss(CornuLayer *layer, const CornuCall *call, CornuTensor *loss);

/* For kind->call of a stateful layer: state i as the last batch left it, f32 of this shape, whose
 * axis 0 is the rows; initially zeros. Each shard keeps the state of its rows. CORNU_ERR_SHAPE if
 * the number of rows changes. */
CornuTensor *cornu_layer_state(CornuLayer *layer, const CornuCall *call, int i, CornuShape shape);
/* Sets the value of state i after the step; converted to f32. */
CornuStatus  cornu_layer_set_state(CornuLayer *layer, const CornuCall *call, int i,
                                   CornuTensor *value);
/* Resets the states to zeros, as Keras' reset_state. */
CornuStatus  cornu_layer_reset_states(CornuLayer *layer);

/* Allocates a layer of the class; the name is copied. Without one, the model that the layer is
 * added to names it: conv2d, conv2d_1, … counted per model. dtype: a policy's name (policy.h), or
 * NULL for the model's. NULL while an error is pending. */
CornuLayer *cornu_layer_create(const CornuLayerClass *kind, const char *name, const char *dtype);
/* keras.remat(layer): the backward pass computes the layer's calls again, as in a scope of
 * CORNU_REMAT_FULL (remat.h); of steps that are compiled after. Returns the layer, and NULL for
 * NULL. */
CornuLayer *cornu_remat(CornuLayer *layer);
/* A reference of the caller's to a layer, for languages that collect garbage; returns the layer. */
CornuLayer *cornu_layer_take(CornuLayer *layer);
/* Drops a reference; the last one frees the layer. */
void        cornu_layer_free(CornuLayer *layer);

/* The layer's name or, before it has one, its class in snake case. */
const char *cornu_layer_name(const CornuLayer *layer);

/* Builds the layer, declares its weights, and traces it for inference to get its output shape.
 * Axis 0 of `input` and unknown extents are CORNU_NONE. Messages begin with the layer's name. */
CornuStatus cornu_layer_build(CornuLayer *layer, CornuShape input);
/* The same for a layer with several inputs. */
CornuStatus cornu_layer_build_many(CornuLayer *layer, const CornuShape *in, int in_count);

/* Moves the weights to a device, whose graphs can then call the layer; models do this for their
 * layers. */
CornuStatus cornu_layer_move(CornuLayer *layer, CornuDevice *device);

/* Records the layer in the call's graph, under its name; float inputs are converted to the layer's
 * compute dtype. NULL on failure, as ops do. */
CornuTensor *cornu_layer_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* The number of outputs of a call: 1, or as the layer's constructor says. Layers of a Sequential
 * model have 1. */
int cornu_layer_outputs(const CornuLayer *layer);

/* The same for a layer with several inputs or outputs: in[0] is x, the others are listed at its
 * constructor. out_count must be cornu_layer_outputs. Returns out[0]; on failure NULL, and all
 * outputs are NULL. For such a layer cornu_layer_call returns the first output.
 *
 *     CornuTensor *y[3], *lstm_in[] = { x, h0, c0 };           Keras' initial_state
 *     cornu_layer_call_many(lstm, &call, lstm_in, 3, y, 3);    return_state: y, h, c */
CornuTensor *cornu_layer_call_many(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out,
                                   int out_count);

/* The mask of the output of a call on x alone. */
CornuTensor *cornu_layer_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/*
 * Keras' layer.enable_lora: low-rank adaptation of a Dense, EinsumDense, Embedding or convolution.
 * The kernel W is frozen and read as W + alpha / rank A B, where A (…, rank), drawn as he_uniform,
 * and B (rank, N), zeros, are new weights, lora_kernel_a and lora_kernel_b, which are trained.
 * Keras' files and .onnx files hold the sum as the kernel, and A and B are 0 when they are read;
 * .safetensors files hold all three. alpha 0 stands for the rank.
 *
 *     cornu_layer_enable_lora(cornu_model_find_layer(model, "dense"), 4, 0.0);
 *     cornu_compile(model, …);
 *
 * For a layer that is not built yet, or is in models that are not compiled: these list the new
 * weights once they are compiled. CORNU_ERR_ARGUMENT otherwise, and for a layer with a constraint
 * of the kernel. Source: keras/src/layers/core/dense.py; Hu et al., arXiv 2106.09685.
 */
CornuStatus cornu_layer_enable_lora(CornuLayer *layer, int64_t rank, double alpha);

/*
 * Keras' layer.quantize(mode), for a built layer in models that are not compiled: replaces its
 * kernel, or its embeddings, by integers with scales, which are not trained, and its policy
 * "float32" by "int8_from_float32". The mode is
 *
 *     "int8"      a scale for each output; inputs are quantized, too, by their largest value
 *     "int4"      two weights in a byte, a scale and a zero for each output and 128 inputs
 *     "int4/32"   likewise for 32 inputs; "int4/-1" has one scale for all and no zero
 *     "float8"    for training: inputs and kernel are rounded to float8 (4 bits of exponent, 3 of
 *                 mantissa), gradients of outputs to 5 and 2, by scales that follow the largest
 *                 values of past steps
 *
 * CORNU_ERR_ARGUMENT for a layer that is not a Dense, EinsumDense, Embedding or
 * ReversibleEmbedding, and for float8 of the last two.
 * Source: keras/src/layers/core/dense.py, keras/src/quantizers/quantizers.py.
 */
CornuStatus cornu_layer_quantize_weights(CornuLayer *layer, const char *mode);

/* Keras' layer.trainable = …, for the layer and its inner layers. A model reads it when its first
 * training step after cornu_compile is made; later changes count when it is compiled again. */
void cornu_layer_set_trainable(CornuLayer *layer, bool trainable);

/* Whether the weight, of the layer or of an inner one, is among Keras' layer.trainable_weights: it
 * is not a statistic, and on some path from the layer to it no layer is frozen. */
bool cornu_layer_trains(const CornuLayer *layer, const CornuWeight *weight);

/* The number of elements of all weights. */
int64_t cornu_layer_parameters(const CornuLayer *layer);

/* Copies a weight's value, on whatever device, to an f32 array of its shape. */
CornuStatus cornu_weight_read(const CornuWeight *weight, CornuArray to);
/* Sets a weight's value, likewise from an f32 array. */
CornuStatus cornu_weight_write(CornuWeight *weight, CornuArray from);

#ifdef __cplusplus
}
#endif
#endif
