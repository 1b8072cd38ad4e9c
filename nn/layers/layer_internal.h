/* The internal interface of layers, for models and for other layers. */
#ifndef CORNU_NN_LAYER_INTERNAL_H
#define CORNU_NN_LAYER_INTERNAL_H

#include "../../device/inference_internal.h"
#include "../../device/lookup_internal.h"
#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "../config/naming_internal.h"
#include "../config/texts.h"
#include "layers.h"
#include "spatial3d.h"

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

/* The dtype of floats in which Keras keeps the weight, under this policy unless its layer has its
 * own; NULL: unknown yet. */
CornuDtype cornu__weight_stored(const CornuWeight *weight, const CornuPolicy *usual);

/* Moves a weight's value into a variable of the device, unless it is there already. */
CornuStatus cornu__weight_move(CornuWeight *weight, CornuDevice *device);

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

/* For kind->build of such a layer: builds inner layer i and adds its weights to the layer's. */
CornuStatus cornu__layer_build_inner(CornuLayer *layer, int i, CornuShape input);

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

/* An unbuilt copy of a layer that can be saved, and of its inner layers. */
CornuLayer *cornu__layer_copy(const CornuLayer *layer);

/* Whether a layer is called for training, which the library of inference alone does not do. */
static inline bool cornu__in_training(const CornuCall *call)
{
    return CORNU__FULL(call->training, false);
}

/* For constructors: replaces a list in the config by a copy that is freed with the layer. */
CornuStatus cornu__layer_copy_numbers(CornuLayer *layer, CornuNumbers *numbers);

/* Likewise a string, or NULL, and a list of strings. */
CornuStatus cornu__layer_copy_text(CornuLayer *layer, const char **text);
CornuStatus cornu__layer_copy_texts(CornuLayer *layer, CornuTexts *texts);

/* Frees the memory with the layer; on failure at once. */
CornuStatus cornu__layer_keep(CornuLayer *layer, void *memory);

/* For kind->call: an array as a constant f32 tensor of this shape, which has as many elements. */
CornuTensor *cornu__numbers_tensor(const CornuCall *call, const CornuNumbers *numbers,
                                   CornuShape shape);
/* Likewise of an array of any type, which is copied. */
CornuTensor *cornu__constant_array(const CornuCall *call, CornuArray array);

/* The shape in which an array is broadcast to the input: its axes are the last ones of these axes,
 * a bit mask. CORNU_ERR_SHAPE if it does not fit. */
CornuStatus cornu__spread_numbers(const CornuNumbers *numbers, CornuShape input, int64_t axes,
                                  CornuShape *shape);

/* The nearest whole number; of two, the even one. */
CornuTensor *cornu__round_even(CornuTensor *x);

/* CORNU_ERR_ARGUMENT, naming layer and argument, unless all are finite. */
CornuStatus cornu__check_numbers(const char *layer, const char *argument,
                                 const CornuNumbers *numbers);

/* The first function counts the layer in `labels`, the number of layers of each class in a model.
 * The second one names the layer and its inner layers, unless they have names: conv2d, conv2d_1, …
 * Counting per model keeps the names independent of models made before. */
CornuStatus cornu__layer_count_label(const CornuLayer *layer, CornuLookup *labels);
CornuStatus cornu__layer_set_name(CornuLayer *layer, const CornuLookup *labels);

/* Frees the variables of the states. */
void cornu__layer_free_states(CornuLayer *layer);
/* Whether the layer or an inner layer has states. */
bool cornu__layer_has_states(const CornuLayer *layer);

/* Sets the compute and output dtypes of the layer and its inner layers by its own policy, or else
 * by this one (policy.h). `last`: it is the last layer of a model. True if any computes in f16. */
bool cornu__layer_apply_policy(CornuLayer *layer, const CornuPolicy *policy, bool last);

/* Records the penalties on trainable weights, added to the loss; each shard adds its part. */
CornuStatus cornu__layer_penalize_weights(CornuLayer *layer, const CornuCall *call);

/* For constructors: CORNU_ERR_UNSUPPORTED for an activity regularizer that compares rows. */
CornuStatus cornu__check_activity(const char *layer, const CornuRegularizer *regularizer);

/* For class tables, kind->mask: the output has no mask, as the time axis is gone. */
CornuTensor *cornu__no_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* The number of axes between batch and channels, by Keras' name of the class: 1 for Conv1D, 2 for
 * UpSampling2D and for names without a number. */
int cornu__spatial_axes(const CornuLayerClass *kind);

/* For class tables: kind->build of layers without weights, for inputs with so many axes, for
 * (B, T, C) and for (B, H, W, C). */
CornuStatus cornu__build_spatial(CornuLayer *layer, CornuShape input);
CornuStatus cornu__build_sequence(CornuLayer *layer, CornuShape input);
CornuStatus cornu__build_image(CornuLayer *layer, CornuShape input);

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

/* For CornuKerasClass: the table of fields and the constructor of a layer whose struct has a
 * `config`. */
#define CORNU__SAVED(table, Layer, constructor)                                     \
    .fields = (table), .config_size = sizeof(((Layer *)NULL)->config),              \
    .config_offset = offsetof(Layer, config), .from = (constructor)

/* For class tables: rows of `fields` for configs that have these members, in Keras' order. */
#define CORNU__KERNEL_FIELDS(Config)                                                             \
    { "activation", CORNU_FIELD_ACTIVATION, offsetof(Config, activation) },                      \
    { "use_bias", CORNU_FIELD_NOT, offsetof(Config, no_bias) },                                  \
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, offsetof(Config, kernel_initializer) },     \
    { "bias_initializer", CORNU_FIELD_INITIALIZER, offsetof(Config, bias_initializer) },         \
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, offsetof(Config, kernel_regularizer) },     \
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, offsetof(Config, bias_regularizer) },         \
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, offsetof(Config, activity_regularizer) }, \
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, offsetof(Config, kernel_constraint) },        \
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, offsetof(Config, bias_constraint) }
#define CORNU__SCALE_FIELDS(Config)                                                        \
    { "beta_regularizer", CORNU_FIELD_REGULARIZER, offsetof(Config, beta_regularizer) },   \
    { "gamma_regularizer", CORNU_FIELD_REGULARIZER, offsetof(Config, gamma_regularizer) }, \
    { "beta_constraint", CORNU_FIELD_CONSTRAINT, offsetof(Config, beta_constraint) },      \
    { "gamma_constraint", CORNU_FIELD_CONSTRAINT, offsetof(Config, gamma_constraint) }

/* All classes that files may name, in alphabetical order, NULL-terminated. */
extern const CornuLayerClass *const cornu__layer_classes[];

/* The package of a registered class, NULL for any other; and the class registered as
 * "package>Name", or under that Name in any package. */
const char            *cornu__registered_package(const CornuLayerClass *kind);
const CornuLayerClass *cornu__registered_class(const char *name);

/* Resolves an argument of a convolution or pool, given as a square (`one`, positional) or as a
 * pair, to {h, w}; {usual, usual} when neither is given (usual 0: required). Messages name layer
 * and argument; giving both, and an extent below 1, are errors. */
CornuStatus cornu__pair(const char *layer, const char *argument, const char *square, int64_t one,
                        const int64_t pair[2], int64_t usual, int64_t to[2]);

/* Likewise for any number of axes, of which the first extent is taken where only it is given. */
CornuStatus cornu__extents(const char *layer, const char *argument, const char *cube, int64_t one,
                           const int64_t *given, int64_t usual, int axes, int64_t *to);

/* CORNU_ERR_ARGUMENT unless value is from 1 to INT32_MAX. */
CornuStatus cornu__positive(const char *name, const char *argument, int64_t value);

/* Replaces the default by `usual`; CORNU_ERR_ARGUMENT for an unknown value, or one after `last`,
 * the last that the layer supports. */
CornuStatus cornu__check_interpolation(const char *layer, CornuInterpolation *given,
                                       CornuInterpolation usual, CornuInterpolation last);

/* CORNU_ERR_ARGUMENT unless it is "valid" or "same". */
CornuStatus cornu__check_padding(const char *layer, CornuPadding padding);

/* The padding before and after, in rows or columns. For "same" see
 * keras/src/ops/operation_utils.py; "causal" pads only before, by the window's extent - 1; "valid"
 * does not pad. */
void cornu__padding(CornuPadding padding, int64_t extent, int64_t window, int64_t stride,
                    int64_t dilation, int64_t *low, int64_t *high);

/* Resolves axes given as `one` or as `several`, up to the first 0, by default the last axis; to[]
 * ends at the first 0 too. CORNU_ZERO alone stands for no axes. Giving both is an error that names
 * the layer. */
CornuStatus cornu__axes(const char *layer, int64_t one, const int64_t *several, int64_t *to);

/* For kind->build: such axes as a bit mask, bit i for axis i. Repeated axes, the batch axis, and
 * axes that the input does not have are errors. */
CornuStatus cornu__axis_bits(const int64_t *axes, CornuShape input, int64_t *bits);

/* The extents of the input along these axes; with `keep`, all axes remain, with an extent of 1
 * along the others. */
CornuShape cornu__along(CornuShape input, int64_t bits, bool keep);

/* CORNU_ERR_ARGUMENT for an epsilon that is negative or not finite. */
CornuStatus cornu__check_epsilon(const char *layer, double epsilon);

/* `given`, or `usual` where it is the default. */
CornuInitializer cornu__initializer(CornuInitializer given, CornuInitializer usual);
CornuActivation  cornu__activation(CornuActivation given, CornuActivation usual);

/* The initializer with the fans of a weight: the products of its extents along these axes, given as
 * bits. One without fans, or with axes of its own, is returned as it is. */
CornuInitializer cornu__initializer_along(CornuInitializer initializer, int64_t input_axes,
                                          int64_t output_axes);
/* The layer that the activation stands for, see cornu_activation_of; NULL for a named one. And its
 * call. */
CornuLayer  *cornu__activation_layer(CornuActivation activation);
CornuTensor *cornu__activation_layer_apply(const CornuLayer *layer, CornuTensor *x);
/* For constructors of layers whose fields have an `activation`: the layer, with a copy of the layer
 * that the activation stands for among its inner layers if it has weights or random draws. NULL on
 * failure, after freeing the layer. And activation(x), for kind->call of such layers. */
CornuLayer  *cornu__with_activation(CornuLayer *layer, CornuActivation activation);
CornuTensor *cornu__layer_activate(CornuLayer *layer, const CornuCall *call,
                                   CornuActivation activation, CornuTensor *x);

/* x as indices: cornu_op_indices, but i32 in a description, which files say without checks. */
CornuTensor *cornu__indices(const CornuCall *call, CornuTensor *x);

/* x, of any type, with a check for what does not look it up in a table: a NaN is CORNU_ERR_VALUE
 * when the graph runs. `call` may be NULL. */
CornuTensor *cornu__refuse_nan(const CornuCall *call, CornuTensor *x);

/* CORNU_ERR_ARGUMENT, pending, for an unknown activation or kind of initializer. */
CornuStatus cornu__check_enums(const char *layer, CornuActivation activation,
                               const CornuInitializer *initializers, int count);

/* Whether an extent is below `least`; an unknown one is not. */
static inline bool cornu__shorter(int64_t extent, int64_t least)
{
    return extent != CORNU_NONE && extent < least;
}

/* Whether the shape `given` matches `want`, whose axis 0 and unknown extents match anything. */
bool cornu__shape_fits(CornuShape given, CornuShape want);

/* CORNU_ERR_SHAPE unless the input has this rank; or so many axes between batch and channels, at
 * most 3. */
CornuStatus cornu__expect_input(CornuShape input, int rank, const char *axes);
CornuStatus cornu__expect_spatial(CornuShape input, int axes);

#endif
