/*
 * For constructors and class tables of layers: arguments resolved and checked, lists copied, shapes
 * of inputs expected. layer_internal.h includes it.
 */
#ifndef CORNU_NN_LAYERS_CONSTRUCTORS_INTERNAL_H
#define CORNU_NN_LAYERS_CONSTRUCTORS_INTERNAL_H

#include "../config/texts.h"
#include "layers.h"
#include "spatial3d.h"

/* For constructors: replaces a list in the config by a copy that is freed with the layer. */
CornuStatus cornu__layer_copy_numbers(CornuLayer *layer, CornuNumbers *numbers);

/* Likewise a string, or NULL, and a list of strings. */
CornuStatus cornu__layer_copy_text(CornuLayer *layer, const char **text);
CornuStatus cornu__layer_copy_texts(CornuLayer *layer, CornuTexts *texts);

/* Frees the memory with the layer; on failure at once. */
CornuStatus cornu__layer_keep(CornuLayer *layer, void *memory);

/* The shape in which an array is broadcast to the input: its axes are the last ones of these axes,
 * a bit mask. CORNU_ERR_SHAPE if it does not fit. */
CornuStatus cornu__spread_numbers(const CornuNumbers *numbers, CornuShape input, int64_t axes,
                                  CornuShape *shape);

/* CORNU_ERR_ARGUMENT, naming layer and argument, unless all are finite. */
CornuStatus cornu__check_numbers(const char *layer, const char *argument,
                                 const CornuNumbers *numbers);

/* For constructors: CORNU_ERR_UNSUPPORTED for an activity regularizer that compares rows. */
CornuStatus cornu__check_activity(const char *layer, const CornuRegularizer *regularizer);

/* For class tables, kind->mask: the output has no mask, as the time axis is gone. */
CornuTensor *cornu__no_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* The number of axes between batch and channels, by Keras' name of the class: 1 for Conv1D, 2 for
 * UpSampling2D and for names without a number. */
int cornu__spatial_axes(const CornuLayerClass *kind);

/* For class tables: kind->build of layers without weights, for inputs with so many axes. */
CornuStatus cornu__build_spatial(CornuLayer *layer, CornuShape input);

/* For CornuKerasClass: the table of fields and the constructor of a layer whose struct has a
 * `config`. */
#define CORNU__SAVED(table, Layer, constructor)                                     \
    .fields = (table), .config_size = sizeof(((Layer *)NULL)->config),              \
    .config_offset = offsetof(Layer, config), .from = (constructor)

/* Likewise of a layer that cornu__layer_from makes: the table and kind->resolve, or NULL, of one
 * without weights, and of one whose config has `frozen`. */
#define CORNU__CONFIG(table, Layer, resolver)                                       \
    CORNU__SAVED(table, Layer, NULL), .resolve = (resolver),                        \
    .name_offset = offsetof(Layer, config.name) - offsetof(Layer, config),          \
    .dtype_offset = offsetof(Layer, config.dtype) - offsetof(Layer, config)
#define CORNU__TRAINED(table, Layer, resolver)                                      \
    CORNU__CONFIG(table, Layer, resolver),                                          \
    .frozen_offset = offsetof(Layer, config.frozen) - offsetof(Layer, config)

/* The struct of a layer that has nothing besides its arguments. */
#define CORNU__LAYER(Config) struct { CornuLayer base; Config config; }

/* Makes a layer of this class. Without a `from` of its own: its config is a copy of this one, with
 * activations, initializers and its activity regularizer checked; initializers that are not given
 * are Keras' for arguments of that name; then it is resolved. */
CornuLayer *cornu__layer_from(const CornuLayerClass *kind, const void *config);

/* Defines cornu_NAME_from, which does just that with cornu__NAME_class. */
#define CORNU__CONSTRUCTOR(name, Config)                            \
    CornuLayer *cornu_##name##_from(const Config *config)           \
    {                                                               \
        return cornu__layer_from(&cornu__##name##_class, config);   \
    }

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

/* Resolves axes given as `one` or as `several`, up to the first 0, to several; by default the last
 * axis. CORNU_ZERO alone stands for no axes. Giving both is an error that names the layer. */
CornuStatus cornu__axes(const char *layer, int64_t *one, int64_t *several);

/* For kind->build: such axes as a bit mask, bit i for axis i. Repeated axes, the batch axis, and
 * axes that the input does not have are errors. */
CornuStatus cornu__axis_bits(const int64_t *axes, CornuShape input, int64_t *bits);

/* The extents of the input along these axes; with `keep`, all axes remain, with an extent of 1
 * along the others. */
CornuShape cornu__along(CornuShape input, int64_t bits, bool keep);

/* Replaces a default epsilon by `usual`; CORNU_ERR_ARGUMENT for one that is negative or not
 * finite. */
CornuStatus cornu__resolve_epsilon(const CornuLayer *layer, double *epsilon, double usual);

/* Replaces the default by 0; CORNU_ERR_ARGUMENT unless it is 0 or more, and below 1. */
CornuStatus cornu__resolve_rate(const CornuLayer *layer, const char *argument, double *rate);

/* `given`, or `usual` where it is the default. */
CornuInitializer cornu__initializer(CornuInitializer given, CornuInitializer usual);
CornuActivation  cornu__activation(CornuActivation given, CornuActivation usual);

/* The initializer with the fans of a weight: the products of its extents along these axes, given as
 * bits. One without fans, or with axes of its own, is returned as it is. */
CornuInitializer cornu__initializer_along(CornuInitializer initializer, int64_t input_axes,
                                          int64_t output_axes);

/* CORNU_ERR_ARGUMENT, pending, for an unknown activation or kind of initializer. */
CornuStatus cornu__check_activation(const char *layer, CornuActivation activation);
CornuStatus cornu__check_initializer(const char *layer, const CornuInitializer *initializer);

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
