/* What models need to know of layers and layers of each other. */
#ifndef CORNU_NN_LAYER_INTERNAL_H
#define CORNU_NN_LAYER_INTERNAL_H

#include "../../device/lookup_internal.h"
#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "../config/naming_internal.h"
#include "layers.h"

/* Moves a weight's value into a variable of the device; one already there stays. */
CornuStatus cornu__weight_move(CornuWeight *weight, CornuDevice *device);

/* How many generators of random numbers the layer uses: one of its own, and one for each weight;
 * for a layer around others, those of these besides its own. */
int64_t cornu__layer_generators(const CornuLayer *layer);

/* CORNU_ERR_ARGUMENT if `inner` lies too deep for a layer around it, which messages call `name`. */
CornuStatus cornu__check_depth(const char *name, const CornuLayer *inner);

/* For a constructor: puts `inner` into the layer, which calls it and holds it. Its name will be
 * what it has or gets, behind prefix, a constant. */
void cornu__layer_add_inner(CornuLayer *layer, CornuLayer *inner, const char *prefix);

/* For one that fails: frees the layer that it was given, NULL too, if nobody holds it. */
void cornu__layer_free_unowned(CornuLayer *inner);

/* For kind->build of such a layer: builds inner layer i; its weights become the layer's too. */
CornuStatus cornu__layer_build_inner(CornuLayer *layer, int i, CornuShape input);

/* What kind->build_many says, or kind->build; without the trace that tells shapes. */
CornuStatus cornu__layer_declare_weights(CornuLayer *layer, const CornuShape *in, int in_count);

/* The types of the results for inputs of these types, axis 0 of all is CORNU_NONE, and so is what
 * depends on an extent that is not known; `out` has room for CORNU_MAX_LAYER_TENSORS. The weights
 * must have been declared. */
CornuStatus cornu__layer_trace(CornuLayer *layer, const CornuType *in, int in_count,
                               CornuType *out);

/* cornu_layer_call_many with a mask, or NULL, for each input and result; call->mask is not looked
 * at. `out` and `out_masks` have room for CORNU_MAX_LAYER_TENSORS. */
CornuTensor *cornu__layer_call_masked(CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *const *in, int in_count,
                                      CornuTensor *const *masks, CornuTensor **out,
                                      CornuTensor **out_masks);

/* Gives the layer, those in it and their weights the generators from `first` on. */
void cornu__layer_set_generators(CornuLayer *layer, uint64_t seed, int64_t first);

/* Whether training changes a weight of the layer, or of one in it. */
bool cornu__layer_trains(const CornuLayer *layer, const CornuWeight *weight);

/* Takes weights that others hold off a device that is to be closed. */
void cornu__layer_leave_device(CornuLayer *layer, const CornuDevice *device);

/* Counts `models` (1 or -1) more that were compiled with the layer and those in it. */
void cornu__layer_count_compiled(CornuLayer *layer, int models);

/* A copy, not built, of a layer that files can hold, with the arguments in `config`, which has the
 * size that its class says. */
CornuLayer *cornu__layer_copy(const CornuLayer *layer, const void *config);

/* Names the layer, and those in it, unless they have names: conv2d, conv2d_1, … counted within the
 * model so that a model's names do not depend on what was made before it: `labels` are the labels
 * of classes, and how many layers there have each. The first function counts one more. */
CornuStatus cornu__layer_count_label(const CornuLayer *layer, CornuLookup *labels);
CornuStatus cornu__layer_set_name(CornuLayer *layer, const CornuLookup *labels);

/* Forgets the states, and frees their variables. */
void cornu__layer_free_states(CornuLayer *layer);
/* Whether the layer, or one in it, has states. */
bool cornu__layer_has_states(const CornuLayer *layer);

/* Sets the dtypes that the layer, and those in it, compute and give by its own policy or else by
 * this one (policy.h); `last`: it ends a model. True if one of them computes in f16. */
bool cornu__layer_apply_policy(CornuLayer *layer, const CornuPolicy *policy, bool last);

/* For a trace: adds the penalties on the trained weights to the loss, each shard its part. */
CornuStatus cornu__layer_penalize_weights(CornuLayer *layer, const CornuCall *call);

/* For a constructor: the failure of an activity regularizer that compares rows. */
CornuStatus cornu__check_activity(const char *layer, const CornuRegularizer *regularizer);

/* For class tables: no mask goes on, as the time axis is no more. */
CornuTensor *cornu__no_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* For class tables: build rules of layers without weights, for (B, H, W, C) and (B, T, C). */
CornuStatus cornu__build_image(CornuLayer *layer, CornuShape input);
CornuStatus cornu__build_sequence(CornuLayer *layer, CornuShape input);

/* For class tables: rows of `fields` of a config that has these, in Keras' order. */
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

/* The classes that files may name, in the order of the alphabet; NULL ends them. */
extern const CornuLayerClass *const cornu__layer_classes[];

/* The package of a class that was registered, NULL of any other; and the class registered as
 * "package>Name", or under that Name in any package. */
const char            *cornu__registered_package(const CornuLayerClass *kind);
const CornuLayerClass *cornu__registered_class(const char *name);

/* An argument of a convolution or pool that may be given as a square (`one`, positional) or as
 * a pair: resolves to {h, w}, or {usual, usual} when neither is given (usual 0: required).
 * Failures name layer and argument; both given is one, and so is an extent below 1. */
CornuStatus cornu__pair(const char *layer, const char *argument, const char *square, int64_t one,
                        const int64_t pair[2], int64_t usual, int64_t to[2]);

/* CORNU_ERR_ARGUMENT unless value is from 1 to INT32_MAX. */
CornuStatus cornu__positive(const char *name, const char *argument, int64_t value);

/* Puts `usual` where nothing was given; CORNU_ERR_ARGUMENT for a number that names nothing, or
 * comes behind the last one that the layer knows. */
CornuStatus cornu__check_interpolation(const char *layer, CornuInterpolation *given,
                                       CornuInterpolation usual, CornuInterpolation last);

/* CORNU_ERR_ARGUMENT unless it is "valid" or "same". */
CornuStatus cornu__check_padding(const char *layer, CornuPadding padding);

/* The rows or columns of zeros before and after for "same": keras/src/ops/operation_utils.py. For
 * "causal" all that a window has before its last row; 0 for "valid". */
void cornu__padding(CornuPadding padding, int64_t extent, int64_t window, int64_t stride,
                    int64_t dilation, int64_t *low, int64_t *high);

/* Axes of a row, given as `one` or as several up to the first 0, by default the last one: to[]
 * ends at the first 0 too; CORNU_ZERO alone stands for none. Both given is a failure that names
 * the layer. */
CornuStatus cornu__axes(const char *layer, int64_t one, const int64_t *several, int64_t *to);

/* For kind->build: such axes of the input as bits, bit i for axis i. Those that it does not have
 * once each, or that are its batch, are a failure. */
CornuStatus cornu__axis_bits(const int64_t *axes, CornuShape input, int64_t *bits);

/* The extents of the input along these axes; and, keep, all its axes with an extent of 1 along the
 * others. */
CornuShape cornu__along(CornuShape input, int64_t bits, bool keep);

/* CORNU_ERR_ARGUMENT for what cannot be added to a variance. */
CornuStatus cornu__check_epsilon(const char *layer, double epsilon);

/* 1 / sqrt(mean of x^2 over the axes, given as bits, + epsilon). */
CornuTensor *cornu__inverse_root(CornuTensor *x, int64_t axes, double epsilon);

/* y, f32, times weight 0 plus the next one, each of them where the layer has it, as `kept`, the
 * shape in which it is stretched to y's. */
CornuTensor *cornu__scale_and_center(CornuLayer *layer, const CornuCall *call, CornuTensor *y,
                                     CornuShape kept, bool scale, bool center);

/* `given`, or `usual` for the layer that did not get an initializer, or an activation. */
CornuInitializer cornu__initializer(CornuInitializer given, CornuInitializer usual);
CornuActivation  cornu__activation(CornuActivation given, CornuActivation usual);

/* CORNU_ERR_ARGUMENT, pending, for a number or a kind that names nothing. */
CornuStatus cornu__check_enums(const char *layer, CornuActivation activation,
                               const CornuInitializer *initializers, int count);

/* Whether an extent is below `least`; one that is not known is not. */
static inline bool cornu__shorter(int64_t extent, int64_t least)
{
    return extent != CORNU_NONE && extent < least;
}

/* Whether a tensor of the shape `given` is one of `want`, of which axis 0 and extents that are not
 * known fit any. */
bool cornu__shape_fits(CornuShape given, CornuShape want);

/* CORNU_ERR_SHAPE unless the input has this rank. */
CornuStatus cornu__expect_input(CornuShape input, int rank, const char *axes);

#endif
