/*
 * Layers: weights plus a function from tensors to tensors.
 *
 * A layer is made by its constructor (layers.h) and taken over by a model. Its class is a struct of
 * functions, so custom layers are made the same way as built-in ones.
 *
 * A layer is built when its input shape is known: `build` declares weights, `call` records ops.
 * Output shapes need no separate rule: `call` is traced once on a template graph.
 */
#ifndef CORNU_NN_LAYER_H
#define CORNU_NN_LAYER_H

#include "../../tensor/ops.h"
#include "../weights/constraints.h"
#include "../weights/initializers.h"
#include "../config/keywords.h"
#include "../config/numbers.h"
#include "../fields/field.h"
#include "../config/policy.h"
#include "../weights/regularizers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuLayer  CornuLayer;
typedef struct CornuWeight CornuWeight;

/* The context of a call: what a trace passes to a layer besides its input. */
typedef struct CornuCall {
    CornuGraph  *graph;
    bool         training;
    CornuTensor *count;      /* i64 scalar: the number of valid rows, which come first */
    CornuTensor *total;      /* likewise, over all shards */
    CornuTensor *seed;       /* i64 scalars, see device/random.h */
    CornuTensor *iteration;
    CornuTensor *position;   /* of row 0 in the global batch */
    CornuTensor *mask;       /* bool (B, T): the valid steps of the (first) input; NULL: all */
    CornuTensor *const *masks; /* the masks of all inputs, for kind->call_many */
    bool         inherited;  /* the masks come with the inputs, none is given to this call */
    bool         shapes_only;/* shape inference, nothing runs: create no states */
    const struct CornuDescription *description; /* internal: what weights and arrays are read as */
    const struct CornuReplaced    *replaced;    /* internal: weights that have other values */
    CornuTensor **loss;      /* where cornu_layer_add_loss accumulates; NULL: not needed */
} CornuCall;

/* Where the axis of channels is: last, or right after the batch. A layer whose table of fields has
 * a CORNU_FIELD_DATA_FORMAT is written for channels last alone: its inputs and outputs, and the
 * shapes that `build` gets, are transposed around it. */
typedef enum { CORNU_CHANNELS_LAST, CORNU_CHANNELS_FIRST } CornuDataFormat;

const char *cornu_data_format_name(CornuDataFormat format);

/* What files, Keras and a summary say of a class of layers; what computes, CornuLayerClass, does
 * without it. Custom classes can be saved, too: cornu_register_layer. */
typedef struct {
    const char *label;       /* the class in snake case, where Keras' own name is another one */
    const char *module;      /* its module in Keras; NULL: keras.layers */
    const char *(*shown)(const CornuLayer *layer); /* what a summary calls its class; NULL:
                                                      class_name */

    /* The constructor's arguments, the size and the offset of the resolved config in the layer's
     * struct, and the constructor; all zero for a layer that cannot be saved. */
    const CornuField *fields;
    size_t            config_size, config_offset;
    CornuLayer     *(*from)(const void *config);

    /* The names of the layer's parts in Keras' files, NULL-terminated: those of its inner layers,
     * in order; or the mapping of a prefix of weight names, "lstm_cell/kernel", as
     * "lstm_cell:cell"; or, for a list of inner layers, its name and a slash, "cells/", in which
     * they are counted by class. */
    const char *const *folders;

    /* The weight of a built wrapper's inner layer that Keras lists before the wrapper's own: among
     * the weights of models, and in files, which have it twice. NULL: none. */
    CornuWeight *(*lists)(const CornuLayer *layer);

    const char *lora;        /* "kernel", the weight for which cornu_layer_enable_lora adds others;
                                NULL: none */
    bool lora_resets_alpha;  /* a layer read from a file takes its rank for lora_alpha, as Keras' */
    unsigned quantizes;      /* that weight may be quantized: bit 1 << CORNU_INT8 etc. */

    bool never_trains;       /* Keras' class takes no argument `trainable` */
    bool never_typed;        /* likewise `dtype` */

    /* If the layer takes several tensors: Keras' keywords of the inputs after the first, separated
     * by spaces, "value key"; one that ends in * takes the list of all remaining inputs,
     * "initial_state*". NULL: all inputs are one list, as in add([a, b]). */
    const char *operands;
    bool one_operand;        /* Keras does not require the second one */
    /* If each input has a mask of its own: Keras' keyword of the first input. The mask of input
     * KEYWORD is KEYWORD_mask, but that of the first is always the one it brings along. NULL: the
     * keyword is "mask", also for the list of the masks of a list. */
    const char *first_operand;
    bool reverses;           /* Keras' call takes `reverse`, which may differ from call to call */
    const char *call_arguments; /* the fields that Keras takes as keywords of the call, in the form
                                   of `operands` */

    /* In .keras files: the name of the asset in which Keras keeps what is too large for a config,
     * "vocabulary.txt", whether the layer needs it, and what takes its `size` bytes. */
    const char   *asset;
    bool        (*needs_asset)(const CornuLayer *layer);
    CornuStatus (*read_asset)(CornuLayer *layer, const char *bytes, size_t size);
    /* Likewise the name of an array that Keras keeps beside the weights, "idf_weights", and in the
     * folder of a part of the layer, too, unless that is NULL; what gives it, data NULL where the
     * layer has none; and what takes it. */
    const char   *array, *array_folder;
    CornuNumbers (*get_array)(const CornuLayer *layer);
    CornuStatus  (*set_array)(CornuLayer *layer, CornuArray array);
} CornuKerasClass;

/* What computes: functions and properties that building and recording read. */
typedef struct {
    const char *class_name;  /* Keras' class, "Conv2D"; default names derive from it: conv2d_1 */
    size_t      size;        /* of the layer's own struct, whose first field is a CornuLayer */
    const CornuKerasClass *keras;   /* or NULL: a layer that no file holds */

    /* Declares the weights (cornu_layer_weight) for inputs of this shape. Axis 0, the batch, is
     * CORNU_NONE, and so are extents that may differ from batch to batch. Fails for shapes that the
     * layer does not support. May be NULL. */
    CornuStatus (*build)(CornuLayer *layer, CornuShape input);

    /* In place of build, for a layer whose weights or checks depend on several inputs. */
    CornuStatus (*build_many)(CornuLayer *layer, const CornuShape *in, int in_count);

    /* Records the layer. NULL on failure, as ops do. */
    CornuTensor *(*call)(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

    /* In place of call, for a layer with several inputs or outputs: x is in[0]. Sets all outputs
     * and returns out[0]; `outputs` returns their number. */
    CornuTensor *(*call_many)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out);
    int (*outputs)(const CornuLayer *layer);

    /* In place of the trace of call that infers the types of the outputs: for layers that know
     * them. Only such a layer may have tensors whose axis 0 is not the batch; the unknown extents
     * of its outputs, the batch wherever it is among them, are CORNU_NONE. */
    CornuStatus (*types)(CornuLayer *layer, const CornuType *in, int in_count, CornuType *out);

    /* In place of all calls, for a layer that runs on the host before the step, such as one of
     * strings: the type of the output of these arrays, whose data may be NULL where only their
     * types are known; and the output. Axis 0 is the batch. */
    CornuStatus (*host_type)(const CornuLayer *layer, const CornuArray *in, int in_count,
                             CornuType *out);
    CornuStatus (*host_call)(const CornuLayer *layer, const CornuArray *in, int in_count,
                             CornuArray out);

    /* Returns the mask of the output, given x and its mask, call->mask; NULL is none. Without this
     * function the mask of x passes through, which suits layers that process each step
     * separately. */
    CornuTensor *(*mask)(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

    /* The number of outputs, from the first one on, that have this mask; NULL: 1. */
    int (*masked_outputs)(const CornuLayer *layer);

    /* In place of mask, for a layer that merges inputs: masks[i] is the mask of in[i], or NULL. */
    CornuTensor *(*mask_many)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor *const *masks);

    /* In place of call_many and mask, for a layer made of others, each of whose outputs has its own
     * mask: sets out_masks too. Models are such layers. */
    CornuTensor *(*call_masked)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                                int in_count, CornuTensor *const *masks, CornuTensor **out,
                                CornuTensor **out_masks);

    /* For a layer made of others that applies a precision policy to each of them itself; NULL: all
     * inner layers are treated like this one. `last`: it is the last layer of a model. Returns true
     * if any of them computes in f16. */
    bool (*apply_policy)(CornuLayer *layer, const CornuPolicy *policy, bool last);

    void (*free)(CornuLayer *layer); /* frees what the layer owns besides weights; may be NULL */

    bool any_axis;           /* it may compute along axis 0: rows may depend on each other */
    bool consumes_masks;     /* Keras' call takes the masks off its first three inputs, so that a
                                residual connection that adds one of them has no mask */
    bool normalizes;         /* its weights are read as f32 under any policy */
    bool takes_integers;     /* integer inputs are not converted to floats: indices */
    bool keeps_integers;     /* integer inputs are not converted to floats: it only moves elements,
                                or has a meaning for them */
    bool keeps_dtypes;       /* float inputs are not converted to the layer's compute dtype */
    bool activates;          /* as an activation of other layers its call needs its fields and x
                                alone */
} CornuLayerClass;

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
    bool                   takes_integers; /* its class', or its inner layer's */
    bool                   reverse;     /* of the call that is recorded: set by who records it */
    int64_t                lora_rank;   /* 0: none */
    double                 lora_alpha;
    void                 **kept;        /* memory that is freed with the layer */
    int                    kept_count, kept_space;
    uint64_t               seed;        /* seed and first generator of its random draws, set   */
    int64_t                generator;   /* before building; the generators of its weights follow */
};

/* What Keras keeps a weight in; here its values are f32, rounded to that after each update. */
typedef enum {
    CORNU_STORED_BY_POLICY,   /* its layer's: CornuPolicy.variable */
    CORNU_STORED_F32, CORNU_STORED_I8
} CornuStored;

/* A weight. Its initial value is drawn when first needed, so that a model too large for its device
 * takes no host memory either. Once compiled it lives in a variable of the model's device. */
struct CornuWeight {
    char             *path;          /* Keras' variable path: "conv2d/kernel" */
    CornuType         type;          /* f32 */
    bool              non_trainable; /* moving statistics */
    bool              sparse_gradient; /* a table of which only the rows looked up are updated */
    bool              sliced;        /* such a table, of whose rows each shard has a slice */
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
    float            *host;          /* a value written before compiling, else NULL */
    CornuVariable    *variable;      /* the value after compiling, else NULL */
};

/* Registers a custom class for files and cornu_model_clone as "package>Name", as Keras'
 * register_keras_serializable(package) does; the default package is "Custom". Keras loads such a
 * layer if its program has registered a class of the same name. The class is not copied;
 * registering it again has no effect. CORNU_ERR_ARGUMENT for a class without .keras that has .from,
 * .fields, .config_size and .config_offset, or a name that another class has. */
CornuStatus cornu_register_layer(const CornuLayerClass *kind, const char *package);

/* For kind->build: declares the next weight, such as "kernel". CORNU_ERR_SHAPE for a shape that
 * depends on an unknown extent. */
CornuStatus cornu_layer_weight(CornuLayer *layer, const char *name, CornuShape shape,
                               CornuInitializer initializer, bool non_trainable);

/* For kind->build: regularizer and constraint of the weight declared last. CORNU_ERR_SHAPE if they
 * do not apply to its shape. */
CornuStatus cornu_layer_weight_rules(CornuLayer *layer, CornuRegularizer regularizer,
                                     CornuConstraint constraint);

/* For kind->call: weight i as a tensor of the call's graph, in the layer's compute dtype or in the
 * given one. */
CornuTensor *cornu_layer_read(CornuLayer *layer, const CornuCall *call, int i);
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
/* Drops a reference; the last one frees the layer. */
void        cornu_layer_free(CornuLayer *layer);

/* The layer's name or, before it has one, its class in snake case. */
const char *cornu_layer_name(const CornuLayer *layer);

/* Builds the layer, declares its weights, and traces it for inference to get its output shape.
 * Axis 0 of `input` and unknown extents are CORNU_NONE. Messages begin with the layer's name. */
CornuStatus cornu_layer_build(CornuLayer *layer, CornuShape input);
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

/* Copies a weight's value, on whatever device, to or from an f32 array of its shape. */
CornuStatus cornu_weight_read(const CornuWeight *weight, CornuArray to);
CornuStatus cornu_weight_write(CornuWeight *weight, CornuArray from);

#ifdef __cplusplus
}
#endif
#endif
