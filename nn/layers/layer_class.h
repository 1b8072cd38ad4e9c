/*
 * Classes of layers: a struct of functions and properties for each, also for custom ones. layer.h
 * has the layers themselves and what these functions call; README.md shows how a class is written.
 */
#ifndef CORNU_NN_LAYER_CLASS_H
#define CORNU_NN_LAYER_CLASS_H

#include "../../tensor/ops.h"
#include "../config/numbers.h"
#include "../config/policy.h"
#include "../fields/field.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuLayer  CornuLayer;
typedef struct CornuWeight CornuWeight;

/* The context of a call: what a trace passes to a layer besides its input. */
typedef struct CornuCall {
    CornuGraph  *graph;
    bool         training;
    bool         augments;   /* the caller does not say training: layers that change images for it
                                do, as is Keras' default of theirs alone */
    CornuTensor *count;      /* i64 scalar: the number of valid rows, which come first */
    CornuTensor *total;      /* likewise, over all shards, and all microbatches */
    CornuTensor *seed;       /* i64 scalars, see device/random.h */
    CornuTensor *iteration;
    CornuTensor *position;   /* of row 0 in the global batch */
    CornuTensor *mask;       /* bool (B, T): the valid steps of the (first) input; NULL: all */
    CornuTensor *const *masks; /* the masks of all inputs, for kind->call_many */
    bool         inherited;  /* the masks come with the inputs, none is given to this call */
    bool         shapes_only;/* shape inference, nothing runs: create no states */
    const struct CornuDescription *description; /* internal: what weights and arrays are read as */
    const struct CornuReplaced    *replaced;    /* internal: weights that have other values */
    bool         microbatch; /* the rows are some of a batch, whose others come before and after */
    struct CornuPast *past;  /* internal: x is the next steps of sequences, what earlier ones
                                left is in here; NULL: x is whole sequences */
    CornuTensor **loss;      /* where cornu_layer_add_loss accumulates; NULL: not needed */
    bool         penalized;  /* the regularizers of weights are counted elsewhere, not in there */
} CornuCall;

/* Where the axis of channels is: last, or right after the batch. A layer whose table of fields has
 * a CORNU_FIELD_DATA_FORMAT is written for channels last alone: its inputs and outputs, and the
 * shapes that `build` gets, are transposed around it. */
typedef enum { CORNU_CHANNELS_LAST, CORNU_CHANNELS_FIRST } CornuDataFormat;

/* Keras' name, "channels_last"; NULL for unknown values. */
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

    /* Internal, in place of `from`: where the config has its name, its dtype and, unless 0, its
     * `frozen`; and what checks the arguments in the config of a new layer and replaces those not
     * given by their defaults, or NULL. */
    size_t       name_offset, dtype_offset, frozen_offset;
    CornuStatus (*resolve)(CornuLayer *layer);

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

    /* Internal, in place of call and call_many where call->past is set, of a generator
     * (prediction/generator.h): records the next steps of sequences, axis 1 of all operands, and
     * keeps what later ones need (steps/past_internal.h). NULL: the layer acts on each step alone,
     * which is found out from the ops that it records; one that does not is refused. */
    CornuTensor *(*continues)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out);

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
    /* It has calls for the step, too: it runs on the host only where a layer there takes its
     * result. */
    bool          moves_to_host;

    /* Returns the mask of the output, given x and its mask, call->mask; NULL is none. Without this
     * function the mask of x passes through, which suits layers that process each step
     * separately. */
    CornuTensor *(*mask)(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

    /* The number of outputs, from the first one on, that have this mask; NULL: 1. */
    int (*masked_outputs)(const CornuLayer *layer);

    /* In place of mask, for a layer that merges inputs: masks[i] is the mask of in[i], or NULL.
     * Returns the mask of the first output; may set those of others, out_masks[1] and on. */
    CornuTensor *(*mask_many)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor *const *masks, CornuTensor **out_masks);

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

    const void *family;      /* of classes that share their functions: what these tell them apart
                                by; or NULL */

    bool is_cell;            /* RNN runs it over time: family is a CornuCell, whose number of states
                                is 0 for a layer that is none */
    bool of_graphs;          /* it calls layers in graphs: paths of their weights get its name */
    bool any_axis;           /* axis 0 is an axis like others: rows may depend on each other */
    bool one_image;          /* an input (H, W, C) is one image: axis 0 is its height */
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

/* Registers a custom class for files and cornu_model_clone as "package>Name", as Keras'
 * register_keras_serializable(package) does; the default package is "Custom". Keras loads such a
 * layer if its program has registered a class of the same name. The class is not copied;
 * registering it again has no effect. CORNU_ERR_ARGUMENT for a class without .keras that has .from,
 * .fields, .config_size and .config_offset, or a name that another class has. */
CornuStatus cornu_register_layer(const CornuLayerClass *kind, const char *package);

#ifdef __cplusplus
}
#endif
#endif
