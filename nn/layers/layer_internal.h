/* The internal interface of layers, for models and for other layers. */
#ifndef CORNU_NN_LAYER_INTERNAL_H
#define CORNU_NN_LAYER_INTERNAL_H

#include "../../device/inference_internal.h"
#include "../../device/lookup_internal.h"
#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "../config/naming_internal.h"
#include "../config/remat_internal.h"
#include "constructors_internal.h"

/* For a graph that describes a layer and is never run: what weights, as files have them, and arrays
 * that do not change are read as. */
typedef struct CornuDescription {
    void *context;
    CornuTensor *(*weight)(void *context, const CornuWeight *weight);
    CornuTensor *(*array)(void *context, CornuArray array);
} CornuDescription;

/* A value that layers read in place of a weight's. */
typedef struct CornuReplaced {
    const CornuWeight          *weight;
    CornuTensor                *value;   /* f32 */
    const struct CornuReplaced *next;
} CornuReplaced;

/* Weight i without what LoRA adds to it. And that alone, f32, for a kernel of this shape. */
CornuTensor *cornu__layer_read_plain(CornuLayer *layer, const CornuCall *call, int i,
                                     CornuDtype dtype);
CornuTensor *cornu__layer_lora(CornuLayer *layer, const CornuCall *call, int i, CornuShape shape);

void cornu__weight_free(CornuWeight *weight);

/* The numbers, f32, that bytes, u8, are in two's complement. */
static inline CornuTensor *cornu__signed_bytes(CornuTensor *bytes)
{
    CornuTensor *x = cornu_op_convert(bytes, CORNU_F32);
    return cornu_op_subtract(x, cornu_op_scale(cornu_op_step(cornu_op_shift(x, -127.5)), 256.0));
}

/* For layers with weights of 8 bits: weight i in two's complement, as u8, less 128 if it is kept
 * from 0 on. */
CornuTensor *cornu__layer_read_bytes(CornuLayer *layer, const CornuCall *call, int i);

/* Copies the value of a weight to another of the same type. */
CornuStatus cornu__weight_copy(CornuWeight *to, const CornuWeight *from);

/* The dtype of floats in which Keras keeps the weight, under this policy unless its layer has its
 * own; NULL: unknown yet. */
CornuDtype cornu__weight_stored(const CornuWeight *weight, const CornuPolicy *usual);

/* Moves a weight's value into a variable of the device, unless it is there already. */
CornuStatus cornu__weight_move(CornuWeight *weight, CornuDevice *device);

/* What of cornu_layer_move is known before anything is moved: CORNU_ERR_ARGUMENT if other models
 * are compiled with the layer on another device, and what cornu__device_layout says of its weights.
 * own: how many of the models that are compiled with it will not be any more. */
CornuStatus cornu__layer_check_move(const CornuLayer *layer, const CornuDevice *device, int own);

/* The number of random generators that the layer uses: its own, and one per weight or, with inner
 * layers, those of the inner layers. */
int64_t cornu__layer_generators(const CornuLayer *layer);

/* CORNU_ERR_ARGUMENT if `inner` is nested too deep to be put into a layer; `name` is for
 * messages. */
CornuStatus cornu__check_depth(const char *name, const CornuLayer *inner);

/* For constructors: makes `inner` an inner layer, which the layer references. `prefix`, a constant,
 * is put before its name. */
void cornu__layer_add_inner(CornuLayer *layer, CornuLayer *inner, const char *prefix);

/* For constructors that fail: frees the layer that they were given, or NULL, if it has no owner. */
void cornu__layer_free_unowned(CornuLayer *inner);

/* For kind->build of such a layer: builds inner layer i and adds its weights to the layer's; the
 * second for an inner layer of several operands. */
CornuStatus cornu__layer_build_inner(CornuLayer *layer, int i, CornuShape input);
CornuStatus cornu__layer_build_inner_many(CornuLayer *layer, int i, const CornuShape *in,
                                          int in_count);

/* The shape, or the tensor, with the channels last, as the layer's functions take it, and back, as
 * its caller sees it: transposed if the layer has channels first, else unchanged. */
CornuShape   cornu__shape_channels_last(const CornuLayer *layer, CornuShape shape);
CornuTensor *cornu__to_channels_last(const CornuLayer *layer, CornuTensor *x);
CornuTensor *cornu__from_channels_last(const CornuLayer *layer, CornuTensor *x);
/* Whether the layer has channels first. */
bool         cornu__channels_first(const CornuLayer *layer);
/* x with an axis moved to another place; the others keep their order. */
CornuTensor *cornu__move_axis(CornuTensor *x, int from, int to);

/* Runs kind->build_many, or kind->build, without the trace that infers output shapes. */
CornuStatus cornu__layer_declare_weights(CornuLayer *layer, const CornuShape *in, int in_count);

/* For constructors: names inner layers without a name after their classes, "lstm_cell",
 * "lstm_cell_1": names tell the weights of equal layers apart. */
CornuStatus cornu__layer_name_list(CornuLayer *layer);

/* Adds the weights of cornu_layer_enable_lora to a layer that has its others, if it has a rank. */
CornuStatus cornu__layer_add_lora(CornuLayer *layer);

/* Infers the types of the outputs. Axis 0 of all types, and extents that depend on an unknown one,
 * are CORNU_NONE; `out` holds CORNU_MAX_LAYER_TENSORS. The weights must have been declared. */
CornuStatus cornu__layer_trace(CornuLayer *layer, const CornuType *in, int in_count,
                               CornuType *out);

/* Of a call of a generator's step: CORNU_ERR_UNSUPPORTED if a step of the outputs, axis 1 as of the
 * inputs, depends on others of the inputs, or on how many there are. */
CornuStatus cornu__layer_check_steps(CornuLayer *layer, const CornuCall *call,
                                     CornuTensor *const *in, int in_count);

/* "bidirectional/forward_lstm/lstm_cell/kernel"; the caller frees it. NULL: out of memory. */
char *cornu__layer_path(const CornuLayer *layer, const char *name);

/* Finds the device's layouts that are for outputs of the layer and of its inner ones. */
CornuStatus cornu__layer_note_outputs(const CornuLayer *layer, const CornuDevice *device);

/* cornu_layer_call_many with a mask, or NULL, for each input and output; call->mask is ignored.
 * `out` and `out_masks` hold CORNU_MAX_LAYER_TENSORS. */
CornuTensor *cornu__layer_call_masked(CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *const *in, int in_count,
                                      CornuTensor *const *masks, CornuTensor **out,
                                      CornuTensor **out_masks);

/* Assigns the generators from `first` on to the layer, its inner layers and their weights. */
void cornu__layer_set_generators(CornuLayer *layer, uint64_t seed, int64_t first);

/* Moves weights that others reference off a device, but for those that a compiled model uses, for
 * which the device stays. */
void cornu__layer_leave_device(CornuLayer *layer, const CornuDevice *device);

/* Adds `models` (1 or -1) to the count of compiled models that use the layer and its inner
 * layers. */
void cornu__layer_count_compiled(CornuLayer *layer, int models);

/* The layer's calls, and those of its inner layers, are recomputed as the other's, of the same
 * layers; where that has none they stay as they are. */
void cornu__layer_copy_remat(CornuLayer *to, const CornuLayer *from);

/* An unbuilt copy of a layer that can be saved, and of its inner layers. */
CornuLayer *cornu__layer_copy(const CornuLayer *layer);

/* Whether a layer is called for training, which the library of inference alone does not do. */
static inline bool cornu__in_training(const CornuCall *call)
{
    return CORNU__FULL(call->training, false);
}

/* For kind->call: an array as a constant f32 tensor of this shape, which has as many elements. */
CornuTensor *cornu__numbers_tensor(const CornuCall *call, const CornuNumbers *numbers,
                                   CornuShape shape);
/* Likewise of an array of any type, which is copied. */
CornuTensor *cornu__constant_array(const CornuCall *call, CornuArray array);

/* The nearest whole number; of two, the even one. */
CornuTensor *cornu__round_even(CornuTensor *x);

/* The first function counts the layer in `labels`, the number of layers of each class in a model.
 * The second one names the layer and its inner layers, unless they have names: conv2d, conv2d_1, …
 * Counting per model keeps the names independent of models made before. */
CornuStatus cornu__layer_count_label(const CornuLayer *layer, CornuLookup *labels);
CornuStatus cornu__layer_set_name(CornuLayer *layer, const CornuLookup *labels);

/* Frees the variables of the states. */
void cornu__layer_free_states(CornuLayer *layer);
/* Those that are not on this device, where the layer goes on. */
void cornu__layer_free_states_elsewhere(CornuLayer *layer, const CornuDevice *device);
/* Whether the layer or an inner layer has states. */
bool cornu__layer_has_states(const CornuLayer *layer);

/* Sets the compute and output dtypes of the layer and its inner layers by its own policy, or else
 * by this one (policy.h). `last`: it is the last layer of a model. True if any computes in f16. */
bool cornu__layer_apply_policy(CornuLayer *layer, const CornuPolicy *policy, bool last);

/* cornu_layer_trains for weights asked about in their order: *inner, 0 at first, is where the last
 * one was found, and the search begins there. */
bool cornu__layer_trains_next(const CornuLayer *layer, const CornuWeight *weight, int *inner);

/* Records the penalties on trainable weights, added to the loss; each shard adds its part. */
CornuStatus cornu__layer_penalize_weights(CornuLayer *layer, const CornuCall *call);

/* What files say of a class; nothing for one without .keras. */
extern const CornuKerasClass cornu__no_keras_class;
static inline const CornuKerasClass *cornu__keras_class_of(const CornuLayerClass *kind)
{
    return kind->keras ? kind->keras : &cornu__no_keras_class;
}
/* And of a layer's class; its resolved config. */
static inline const CornuKerasClass *cornu__keras_class(const CornuLayer *layer)
{
    return cornu__keras_class_of(layer->kind);
}
static inline const void *cornu__config(const CornuLayer *layer)
{
    return (const char *)layer + cornu__keras_class(layer)->config_offset;
}

/* All classes that files may name, in alphabetical order, NULL-terminated. */
extern const CornuLayerClass *const cornu__layer_classes[];

/* The package of a registered class, NULL for any other; and the class registered as
 * "package>Name", or under that Name in any package. */
const char            *cornu__registered_package(const CornuLayerClass *kind);
const CornuLayerClass *cornu__registered_class(const char *name);

/* x as indices: cornu_op_indices, but i32 in a description, which files say without checks. */
CornuTensor *cornu__indices(const CornuCall *call, CornuTensor *x);

/* x, of any type, with a check for what does not look it up in a table: a NaN is CORNU_ERR_VALUE
 * when the graph runs. `call` may be NULL. */
CornuTensor *cornu__refuse_nan(const CornuCall *call, CornuTensor *x);

/* The layer that the activation stands for, see cornu_activation_of; NULL for a named one. And its
 * call. */
CornuLayer  *cornu__activation_layer(CornuActivation activation);
CornuTensor *cornu__activation_layer_apply(const CornuLayer *layer, CornuTensor *x);
/* For kind->resolve of layers whose fields have an `activation`, by default linear: a copy of the
 * layer that it stands for becomes an inner layer if it has weights or random draws. And
 * activation(x), for kind->call of such layers. */
CornuStatus  cornu__resolve_activation(CornuLayer *layer, CornuActivation *activation);
CornuTensor *cornu__layer_activate(CornuLayer *layer, const CornuCall *call,
                                   CornuActivation activation, CornuTensor *x);

#endif
