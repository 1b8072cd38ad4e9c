/* Layers that change the colors of each image by one factor; RandomGrayscale, RandomPosterization
 * and RandomColorJitter. */
#include "image_internal.h"

typedef CORNU__LAYER(CornuRandomColorConfig) RandomColor;   /* with resolved ranges */

/* A change by a factor that takes so many draws; the factor is `usual` unless given, and overlaps
 * [low, high]. */
typedef struct {
    CornuImageFamily images;
    CornuTensor   *(*change)(CornuTensor *x, CornuDraws *draws, const double factor[2],
                             const double range[2]);
    int64_t          draws;
    double           usual, low, high;
} Color;

static CornuTensor *recolor(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomColorConfig *config = &((const RandomColor *)layer)->config;
    const Color                  *color = layer->kind->family;
    CornuDraws                    draws = cornu__draws(layer, call, x, color->draws);
    return color->change(x, &draws, config->factor, config->value_range);
}

static CornuStatus color_resolve(CornuLayer *layer)
{
    CornuRandomColorConfig *config = &((RandomColor *)layer)->config;
    const Color            *color = layer->kind->family;
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    return cornu__resolve_factor(layer, "factor", &config->most, config->factor, color->usual,
                                 color->low, color->high);
}

static const CornuField color_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomColorConfig, factor) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomColorConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomColorConfig, data_format) },
    { 0 },
};

#define COLOR_CLASS(label, name, ...)                                                          \
    const CornuLayerClass cornu__random_##label##_class = {                                    \
        .class_name = name, .size = sizeof(RandomColor), .build = cornu__build_images,         \
        .call = cornu__image_call, .mask = cornu__no_mask,                                     \
        .family = &(const Color){ { recolor, false }, __VA_ARGS__ },                           \
        .keras = &(const CornuKerasClass){                                                     \
            CORNU__CONFIG(color_fields, RandomColor, color_resolve) },                         \
    }
COLOR_CLASS(contrast, "RandomContrast", cornu__change_contrast, 1, 0.0, 0.0, 1.0);
COLOR_CLASS(brightness, "RandomBrightness", cornu__change_brightness, 1, 0.0, -1.0, 1.0);
COLOR_CLASS(saturation, "RandomSaturation", cornu__change_saturation, 1, 0.0, -1.0, 1.0);
COLOR_CLASS(hue, "RandomHue", cornu__change_hue, 2, 0.0, 0.0, 1.0);
COLOR_CLASS(color_degeneration, "RandomColorDegeneration", cornu__degenerate, 1, 0.0, -1.0, 1.0);
COLOR_CLASS(sharpness, "RandomSharpness", cornu__sharpen, 1, 0.0, 0.0, 1.0);
COLOR_CLASS(invert, "RandomInvert", cornu__invert, 2, 1.0, 0.0, 1.0);

CORNU__CONSTRUCTOR(random_contrast, CornuRandomColorConfig)
CORNU__CONSTRUCTOR(random_brightness, CornuRandomColorConfig)
CORNU__CONSTRUCTOR(random_saturation, CornuRandomColorConfig)
CORNU__CONSTRUCTOR(random_hue, CornuRandomColorConfig)
CORNU__CONSTRUCTOR(random_color_degeneration, CornuRandomColorConfig)
CORNU__CONSTRUCTOR(random_sharpness, CornuRandomColorConfig)
CORNU__CONSTRUCTOR(random_invert, CornuRandomColorConfig)

/* ---- RandomGrayscale ---- */

typedef CORNU__LAYER(CornuRandomGrayscaleConfig) RandomGrayscale;

static CornuTensor *grayscale(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double factor = ((const RandomGrayscale *)layer)->config.factor;
    CornuDraws   draws = cornu__draws(layer, call, x, 1);
    CornuTensor *gray = cornu__grayscale(x);
    return cornu_op_select(cornu__below(cornu__draw(&draws), cornu__number(factor, 0.0)), gray, x);
}

static CornuStatus grayscale_resolve(CornuLayer *layer)
{
    double      *given = &((RandomGrayscale *)layer)->config.factor;
    const double factor = cornu__number(*given, 0.5);
    *given = factor == 0.0 ? (double)CORNU_ZERO : factor;
    if (factor >= 0.0 && factor <= 1.0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .factor is %g, expected 0 to 1",
                       cornu_layer_name(layer), factor);
}

static const CornuField grayscale_fields[] = {
    { "factor", CORNU_FIELD_NUMBER, offsetof(CornuRandomGrayscaleConfig, factor) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomGrayscaleConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_grayscale_class = {
    .class_name = "RandomGrayscale", .size = sizeof(RandomGrayscale),
    CORNU__CHANGES_IMAGES(grayscale, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(grayscale_fields, RandomGrayscale, grayscale_resolve),
    },
};

CORNU__CONSTRUCTOR(random_grayscale, CornuRandomGrayscaleConfig)

/* ---- RandomPosterization ---- */

/* With resolved ranges. */
typedef CORNU__LAYER(CornuRandomPosterizationConfig) RandomPosterization;

static CornuTensor *posterize(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomPosterizationConfig *config = &((const RandomPosterization *)layer)->config;
    CornuDraws                            draws = cornu__draws(layer, call, x, 1);
    return cornu__posterize(x, &draws, config->factor, config->value_range);
}

static CornuStatus posterize_resolve(CornuLayer *layer)
{
    CornuRandomPosterizationConfig *config = &((RandomPosterization *)layer)->config;
    const char                     *name = cornu_layer_name(layer);
    if (config->most != 0 && config->factor[0] != 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .factor is given twice, as a number and as a "
                           "range; expected one", name);
    if (config->most != 0) {
        config->factor[0] = 1;
        config->factor[1] = config->most;
        config->most = 0;
    }
    if (config->factor[0] < 1 || config->factor[1] > 8 || config->factor[0] > config->factor[1])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .factor is from %lld to %lld, expected 1 to 8",
                           name, (long long)config->factor[0], (long long)config->factor[1]);
    return cornu__resolve_value_range(layer, config->value_range);
}

static const CornuField posterize_fields[] = {
    { "factor", CORNU_FIELD_PAIR, offsetof(CornuRandomPosterizationConfig, factor) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE,
      offsetof(CornuRandomPosterizationConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT,
      offsetof(CornuRandomPosterizationConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_posterization_class = {
    .class_name = "RandomPosterization", .size = sizeof(RandomPosterization),
    CORNU__CHANGES_IMAGES(posterize, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(posterize_fields, RandomPosterization, posterize_resolve),
    },
};

CORNU__CONSTRUCTOR(random_posterization, CornuRandomPosterizationConfig)

/* ---- RandomColorJitter ---- */

typedef CORNU__LAYER(CornuRandomColorJitterConfig) RandomColorJitter;   /* with resolved ranges */

static bool is_given(const double range[2]) { return range[0] != 0.0 || range[1] != 0.0; }

static CornuTensor *jitter(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomColorJitterConfig *config = &((const RandomColorJitter *)layer)->config;
    const double                       *range = config->value_range;
    CornuDraws                          draws = cornu__draws(layer, call, x, 5);
    if (is_given(config->brightness_factor))
        x = cornu__change_brightness(x, &draws, config->brightness_factor, range);
    if (is_given(config->contrast_factor))
        x = cornu__change_contrast(x, &draws, config->contrast_factor, range);
    if (is_given(config->saturation_factor))
        x = cornu__change_saturation(x, &draws, config->saturation_factor, range);
    if (is_given(config->hue_factor)) x = cornu__change_hue(x, &draws, config->hue_factor, range);
    return x;
}

/* In files a single number x is the range -x to x; contrast and hue begin at 0. */
static CornuStatus resolve_part(const CornuLayer *layer, const char *argument, double range[2],
                                double low)
{
    double most = 0.0;
    if (!is_given(range)) return CORNU_OK;
    if (low == 0.0 && range[0] == -range[1]) range[0] = (double)CORNU_ZERO;
    return cornu__resolve_factor(layer, argument, &most, range, 0.0, low, 1.0);
}

static CornuStatus jitter_resolve(CornuLayer *layer)
{
    CornuRandomColorJitterConfig *config = &((RandomColorJitter *)layer)->config;
    CORNU__TRY(cornu__resolve_value_range(layer, config->value_range));
    CORNU__TRY(resolve_part(layer, "brightness_factor", config->brightness_factor, -1.0));
    CORNU__TRY(resolve_part(layer, "contrast_factor", config->contrast_factor, 0.0));
    CORNU__TRY(resolve_part(layer, "saturation_factor", config->saturation_factor, -1.0));
    return resolve_part(layer, "hue_factor", config->hue_factor, 0.0);
}

#define FACTOR(name) { #name, CORNU_FIELD_REACH, offsetof(CornuRandomColorJitterConfig, name) }
static const CornuField jitter_fields[] = {
    { "value_range", CORNU_FIELD_RANGE_OR_NONE,
      offsetof(CornuRandomColorJitterConfig, value_range) },
    FACTOR(brightness_factor), FACTOR(contrast_factor), FACTOR(saturation_factor),
    FACTOR(hue_factor),
    { "data_format", CORNU_FIELD_DATA_FORMAT,
      offsetof(CornuRandomColorJitterConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_color_jitter_class = {
    .class_name = "RandomColorJitter", .size = sizeof(RandomColorJitter),
    CORNU__CHANGES_IMAGES(jitter, false),
    .keras = &(const CornuKerasClass){
        CORNU__CONFIG(jitter_fields, RandomColorJitter, jitter_resolve),
    },
};

CORNU__CONSTRUCTOR(random_color_jitter, CornuRandomColorJitterConfig)
