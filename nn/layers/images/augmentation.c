/* RandomFlip, RandomTranslation, RandomZoom and RandomRotation: per image, only in training. */
#include "../../fields/field_internal.h"
#include "image_internal.h"
#include "sampling_internal.h"

const CornuFieldKind cornu_field_flip_mode = {
    .name = "flip_mode", CORNU__FIELD_OF_WORDS(CornuFlipMode),
    .words = { [CORNU_FLIP_HORIZONTAL_AND_VERTICAL] = "horizontal_and_vertical",
               [CORNU_FLIP_HORIZONTAL] = "horizontal", [CORNU_FLIP_VERTICAL] = "vertical" },
};

const char *cornu_flip_mode_name(CornuFlipMode mode)
{
    return cornu__field_word(CORNU_FIELD_FLIP_MODE, (int)mode);
}

const CornuFieldKind cornu_field_fill_mode = {
    .name = "fill_mode", CORNU__FIELD_OF_WORDS(CornuFillMode),
    .words = { [CORNU_FILL_REFLECT] = "reflect", [CORNU_FILL_CONSTANT] = "constant",
               [CORNU_FILL_NEAREST] = "nearest", [CORNU_FILL_WRAP] = "wrap" },
};

const char *cornu_fill_mode_name(CornuFillMode mode)
{
    return cornu__field_word(CORNU_FIELD_FILL_MODE, (int)mode);
}

/* `count` uniform numbers in [0, 1) per image: (B, count). */
static CornuTensor *draw(const CornuLayer *layer, const CornuCall *call, CornuTensor *x, int count)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_shape(cornu_tensor_shape(x).extent[0], count);
    return cornu_op_random_uniform(shape, call->seed, call->iteration, call->position,
                                   layer->generator);
}

/* The i-th of each image's numbers, (B, 1, 1). */
static CornuTensor *drawn(CornuTensor *numbers, int i)
{
    if (!numbers) return NULL;
    const int64_t B = cornu_tensor_shape(numbers).extent[0];
    CornuTensor  *one = cornu_op_slice(numbers, (const int64_t[]){ 0, i },
                                       (const int64_t[]){ B, 1 });
    return cornu_op_reshape(one, cornu_shape(B, 1, 1));
}

/* ---- RandomFlip ---- */

typedef CORNU__LAYER(CornuRandomFlipConfig) RandomFlip;

static CornuTensor *flip_half(CornuTensor *x, CornuTensor *number, int axis)
{
    if (!number) return NULL;
    CornuTensor *flips = cornu_op_compare(number, CORNU_LESS, cornu_op_constant_like(number, 0.5));
    flips = cornu_op_reshape(flips, cornu_shape(cornu_tensor_shape(x).extent[0], 1, 1, 1));
    return cornu_op_select(flips, cornu_op_flip(x, axis), x);
}

static CornuTensor *flip(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuFlipMode mode = ((const RandomFlip *)layer)->config.mode;
    CornuTensor *numbers = draw(layer, call, x, 2);
    if (mode != CORNU_FLIP_VERTICAL) x = flip_half(x, drawn(numbers, 0), 2);
    if (mode != CORNU_FLIP_HORIZONTAL) x = flip_half(x, drawn(numbers, 1), 1);
    return x;
}

static CornuStatus flip_resolve(CornuLayer *layer)
{
    const CornuFlipMode mode = ((const RandomFlip *)layer)->config.mode;
    if (cornu_flip_mode_name(mode)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .mode is %d, expected 0 to 2",
                       cornu_layer_name(layer), (int)mode);
}

static const CornuField flip_fields[] = {
    { "mode", CORNU_FIELD_FLIP_MODE, offsetof(CornuRandomFlipConfig, mode) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomFlipConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_flip_class = {
    .class_name = "RandomFlip", .size = sizeof(RandomFlip), CORNU__CHANGES_IMAGES(flip, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(flip_fields, RandomFlip, flip_resolve) },
};

CORNU__CONSTRUCTOR(random_flip, CornuRandomFlipConfig)

/* ---- Arguments of layers that move images ---- */

/* Maps [0, 1) to [lowest, highest). */
static CornuTensor *between(CornuTensor *number, const double range[2])
{
    return cornu_op_shift(cornu_op_scale(number, range[1] - range[0]), range[0]);
}

/* Sets the range to +-`most`, or sorts the given one. */
static CornuStatus resolve_range(const CornuLayer *layer, const char *square, const char *argument,
                                 double *most, double range[2])
{
    if (*most != 0.0 && (range[0] != 0.0 || range[1] != 0.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .%s and .%s are given, expected one",
                           cornu_layer_name(layer), square, argument);
    if (*most != 0.0) {
        range[0] = -*most;
        range[1] = *most;
    }
    if (range[0] > range[1]) {
        const double lowest = range[1];
        range[1] = range[0];
        range[0] = lowest;
    }
    *most = 0.0;
    if (range[0] >= -1.0 && range[1] <= 1.0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is from %g to %g, expected -1 to 1",
                       cornu_layer_name(layer), argument, range[0], range[1]);
}

/* ---- RandomTranslation ---- */

typedef CORNU__LAYER(CornuRandomTranslationConfig) RandomTranslation;   /* with resolved ranges */

static CornuTensor *translation(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomTranslationConfig *c = &((const RandomTranslation *)layer)->config;
    const CornuSampling sampling = { c->fill_mode, c->interpolation, c->fill_value };
    const CornuShape s = cornu_tensor_shape(x);
    CornuTensor     *numbers = draw(layer, call, x, 2);
    CornuTensor     *down = cornu_op_scale(between(drawn(numbers, 0), c->height_factor),
                                           (double)s.extent[1]);
    CornuTensor     *right = cornu_op_scale(between(drawn(numbers, 1), c->width_factor),
                                            (double)s.extent[2]);
    return cornu__sample(x, cornu_op_subtract(cornu__counted(x, 1), down),
                  cornu_op_subtract(cornu__counted(x, 2), right), &sampling);
}

static CornuStatus translation_resolve(CornuLayer *layer)
{
    CornuRandomTranslationConfig *config = &((RandomTranslation *)layer)->config;
    CORNU__TRY(resolve_range(layer, "height", "height_factor", &config->height,
                             config->height_factor));
    CORNU__TRY(resolve_range(layer, "width", "width_factor", &config->width,
                             config->width_factor));
    return cornu__resolve_sampling(layer, config->fill_mode, &config->interpolation,
                                   &config->fill_value);
}

static const CornuField translation_fields[] = {
    { "height_factor", CORNU_FIELD_RANGE, offsetof(CornuRandomTranslationConfig, height_factor) },
    { "width_factor", CORNU_FIELD_RANGE, offsetof(CornuRandomTranslationConfig, width_factor) },
    CORNU__SAMPLING_FIELDS(CornuRandomTranslationConfig),
};

const CornuLayerClass cornu__random_translation_class = {
    .class_name = "RandomTranslation", .size = sizeof(RandomTranslation),
    CORNU__CHANGES_IMAGES(translation, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(translation_fields, RandomTranslation, translation_resolve),
    },
};

CORNU__CONSTRUCTOR(random_translation, CornuRandomTranslationConfig)

/* ---- RandomZoom ---- */

typedef CORNU__LAYER(CornuRandomZoomConfig) RandomZoom;   /* with resolved ranges */

/* Rows or columns of x, with distances from the center scaled by `zoom` (B, 1, 1). */
static CornuTensor *zoomed(CornuTensor *x, int axis, CornuTensor *zoom)
{
    const double middle = 0.5 * (double)(cornu_tensor_shape(x).extent[axis] - 1);
    CornuTensor *place = cornu_op_multiply(cornu_op_shift(cornu__counted(x, axis), -middle), zoom);
    return cornu_op_shift(place, middle);
}

static bool is_given(const double range[2]) { return range[0] != 0.0 || range[1] != 0.0; }

static CornuTensor *zoom(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomZoomConfig *c = &((const RandomZoom *)layer)->config;
    const CornuSampling sampling = { c->fill_mode, c->interpolation, c->fill_value };
    const double width[2] = { cornu__number(c->width_factor[0], 0.0),
                              cornu__number(c->width_factor[1], 0.0) };
    CornuTensor *numbers = draw(layer, call, x, 2);
    CornuTensor *down = cornu_op_shift(between(drawn(numbers, 0), c->height_factor), 1.0);
    CornuTensor *across = down;
    if (is_given(c->width_factor))
        across = cornu_op_shift(between(drawn(numbers, 1), width), 1.0);
    return cornu__sample(x, zoomed(x, 1, down), zoomed(x, 2, across), &sampling);
}

static CornuStatus zoom_resolve(CornuLayer *layer)
{
    CornuRandomZoomConfig *config = &((RandomZoom *)layer)->config;
    double                *width = config->width_factor;
    const bool             none_across = is_given(width);
    for (int i = 0; i < 2 && none_across; i++) width[i] = cornu__number(width[i], 0.0);
    CORNU__TRY(resolve_range(layer, "height", "height_factor", &config->height,
                             config->height_factor));
    CORNU__TRY(resolve_range(layer, "width", "width_factor", &config->width, width));
    CORNU__TRY(cornu__resolve_sampling(layer, config->fill_mode, &config->interpolation,
                                       &config->fill_value));
    if (config->height_factor[0] == -1.0 || width[0] == -1.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a factor is -1, expected above -1, as the size "
                           "is divided by 1 + factor", cornu_layer_name(layer));
    if (none_across && !is_given(width)) width[0] = width[1] = (double)CORNU_ZERO;
    return CORNU_OK;
}

static const CornuField zoom_fields[] = {
    { "height_factor", CORNU_FIELD_RANGE, offsetof(CornuRandomZoomConfig, height_factor) },
    { "width_factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomZoomConfig, width_factor) },
    CORNU__SAMPLING_FIELDS(CornuRandomZoomConfig),
};

const CornuLayerClass cornu__random_zoom_class = {
    .class_name = "RandomZoom", .size = sizeof(RandomZoom), CORNU__CHANGES_IMAGES(zoom, false),
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(zoom_fields, RandomZoom, zoom_resolve) },
};

CORNU__CONSTRUCTOR(random_zoom, CornuRandomZoomConfig)

/* ---- RandomRotation ---- */

typedef CORNU__LAYER(CornuRandomRotationConfig) RandomRotation;   /* with the resolved range */

/* Pixel (x, y) of the output is the image's at (cos x - sin y, sin x + cos y), relative to the
 * center. */
static CornuTensor *rotation(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomRotationConfig *c = &((const RandomRotation *)layer)->config;
    const CornuSampling sampling = { c->fill_mode, c->interpolation, c->fill_value };
    const double   whole_turn = 6.283185307179586;
    const CornuShape s = cornu_tensor_shape(x);
    const double     middle[2] = { 0.5 * (double)(s.extent[1] - 1),
                                   0.5 * (double)(s.extent[2] - 1) };
    CornuTensor *angle = cornu_op_scale(between(drawn(draw(layer, call, x, 1), 0), c->factor),
                                        whole_turn);
    CornuTensor *sine = cornu_op_sin(angle), *cosine = cornu_op_cos(angle);
    CornuTensor *down = cornu_op_shift(cornu__counted(x, 1), -middle[0]);
    CornuTensor *right = cornu_op_shift(cornu__counted(x, 2), -middle[1]);
    CornuTensor *row = cornu_op_add(cornu_op_multiply(right, sine),
                                    cornu_op_multiply(down, cosine));
    CornuTensor *column = cornu_op_subtract(cornu_op_multiply(right, cosine),
                                            cornu_op_multiply(down, sine));
    return cornu__sample(x, cornu_op_shift(row, middle[0]), cornu_op_shift(column, middle[1]),
                         &sampling);
}

static CornuStatus rotation_resolve(CornuLayer *layer)
{
    CornuRandomRotationConfig *config = &((RandomRotation *)layer)->config;
    CORNU__TRY(resolve_range(layer, "most", "factor", &config->most, config->factor));
    return cornu__resolve_sampling(layer, config->fill_mode, &config->interpolation,
                                   &config->fill_value);
}

static const CornuField rotation_fields[] = {
    { "factor", CORNU_FIELD_RANGE, offsetof(CornuRandomRotationConfig, factor) },
    CORNU__SAMPLING_FIELDS(CornuRandomRotationConfig),
};

const CornuLayerClass cornu__random_rotation_class = {
    .class_name = "RandomRotation", .size = sizeof(RandomRotation),
    CORNU__CHANGES_IMAGES(rotation, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(rotation_fields, RandomRotation, rotation_resolve),
    },
};

CORNU__CONSTRUCTOR(random_rotation, CornuRandomRotationConfig)
