/* Layers that change the colors of each image by one factor; RandomGrayscale, RandomPosterization
 * and RandomColorJitter. */
#include "image_internal.h"

typedef struct {
    CornuLayer             base;
    CornuRandomColorConfig config;        /* with resolved ranges */
} RandomColor;

/* A change by a factor that takes so many draws. */
typedef CornuTensor *Change(CornuTensor *x, CornuDraws *draws, const double factor[2],
                            const double range[2]);

static CornuTensor *changed(const CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                            Change *change, int64_t count)
{
    const CornuRandomColorConfig *config = &((const RandomColor *)layer)->config;
    CornuDraws                    draws = cornu__draws(layer, call, x, count);
    return change(x, &draws, config->factor, config->value_range);
}

static const CornuField color_fields[] = {
    { "factor", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomColorConfig, factor) },
    { "value_range", CORNU_FIELD_RANGE_OR_NONE, offsetof(CornuRandomColorConfig, value_range) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomColorConfig, data_format) },
    { 0 },
};

static CornuLayer *create(const CornuLayerClass *kind, const CornuRandomColorConfig *config,
                          const char *label, double usual, double low, double high)
{
    const char            *name = config->name ? config->name : label;
    CornuRandomColorConfig to = *config;
    to.name = to.dtype = NULL;
    if (cornu__resolve_value_range(name, to.value_range) ||
        cornu__resolve_factor(name, "factor", &to.most, to.factor, usual, low, high))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((RandomColor *)layer)->config = to;
    return layer;
}

/* ---- RandomContrast ---- */

static CornuTensor *contrast(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return changed(layer, call, x, cornu__change_contrast, 1);
}

static CornuTensor *contrast_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, contrast, false);
}

static CornuLayer *contrast_from(const void *config)
{
    return cornu_random_contrast_from(config);
}

const CornuLayerClass cornu__random_contrast_class = {
    .class_name = "RandomContrast", .size = sizeof(RandomColor), .build = cornu__build_images,
    .call = contrast_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(color_fields, RandomColor, contrast_from) },
};

CornuLayer *cornu_random_contrast_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_contrast_class, config, "random_contrast", 0.0, 0.0, 1.0);
}

/* ---- RandomBrightness ---- */

static CornuTensor *brightness(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return changed(layer, call, x, cornu__change_brightness, 1);
}

static CornuTensor *brightness_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, brightness, false);
}

static CornuLayer *brightness_from(const void *config)
{
    return cornu_random_brightness_from(config);
}

const CornuLayerClass cornu__random_brightness_class = {
    .class_name = "RandomBrightness", .size = sizeof(RandomColor), .build = cornu__build_images,
    .call = brightness_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(color_fields, RandomColor, brightness_from) },
};

CornuLayer *cornu_random_brightness_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_brightness_class, config, "random_brightness", 0.0, -1.0, 1.0);
}

/* ---- RandomSaturation ---- */

static CornuTensor *saturation(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return changed(layer, call, x, cornu__change_saturation, 1);
}

static CornuTensor *saturation_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, saturation, false);
}

static CornuLayer *saturation_from(const void *config)
{
    return cornu_random_saturation_from(config);
}

const CornuLayerClass cornu__random_saturation_class = {
    .class_name = "RandomSaturation", .size = sizeof(RandomColor), .build = cornu__build_images,
    .call = saturation_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(color_fields, RandomColor, saturation_from) },
};

CornuLayer *cornu_random_saturation_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_saturation_class, config, "random_saturation", 0.0, -1.0, 1.0);
}

/* ---- RandomHue ---- */

static CornuTensor *hue(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return changed(layer, call, x, cornu__change_hue, 2);
}

static CornuTensor *hue_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, hue, false);
}

static CornuLayer *hue_from(const void *config)
{
    return cornu_random_hue_from(config);
}

const CornuLayerClass cornu__random_hue_class = {
    .class_name = "RandomHue", .size = sizeof(RandomColor), .build = cornu__build_images,
    .call = hue_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(color_fields, RandomColor, hue_from) },
};

CornuLayer *cornu_random_hue_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_hue_class, config, "random_hue", 0.0, 0.0, 1.0);
}

/* ---- RandomColorDegeneration ---- */

static CornuTensor *color_degeneration(const CornuLayer *layer, const CornuCall *call,
                                       CornuTensor *x)
{
    return changed(layer, call, x, cornu__degenerate, 1);
}

static CornuTensor *color_degeneration_call(CornuLayer *layer, const CornuCall *call,
                                            CornuTensor *x)
{
    return cornu__image_call(layer, call, x, color_degeneration, false);
}

static CornuLayer *color_degeneration_from(const void *config)
{
    return cornu_random_color_degeneration_from(config);
}

const CornuLayerClass cornu__random_color_degeneration_class = {
    .class_name = "RandomColorDegeneration", .size = sizeof(RandomColor),
    .build = cornu__build_images, .call = color_degeneration_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__SAVED(color_fields, RandomColor, color_degeneration_from),
    },
};

CornuLayer *cornu_random_color_degeneration_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_color_degeneration_class, config, "random_color_degeneration",
                  0.0, -1.0, 1.0);
}

/* ---- RandomSharpness ---- */

static CornuTensor *sharpness(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return changed(layer, call, x, cornu__sharpen, 1);
}

static CornuTensor *sharpness_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, sharpness, false);
}

static CornuLayer *sharpness_from(const void *config)
{
    return cornu_random_sharpness_from(config);
}

const CornuLayerClass cornu__random_sharpness_class = {
    .class_name = "RandomSharpness", .size = sizeof(RandomColor), .build = cornu__build_images,
    .call = sharpness_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(color_fields, RandomColor, sharpness_from) },
};

CornuLayer *cornu_random_sharpness_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_sharpness_class, config, "random_sharpness", 0.0, 0.0, 1.0);
}

/* ---- RandomInvert ---- */

static CornuTensor *invert(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return changed(layer, call, x, cornu__invert, 2);
}

static CornuTensor *invert_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, invert, false);
}

static CornuLayer *invert_from(const void *config)
{
    return cornu_random_invert_from(config);
}

const CornuLayerClass cornu__random_invert_class = {
    .class_name = "RandomInvert", .size = sizeof(RandomColor), .build = cornu__build_images,
    .call = invert_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(color_fields, RandomColor, invert_from) },
};

CornuLayer *cornu_random_invert_from(const CornuRandomColorConfig *config)
{
    return create(&cornu__random_invert_class, config, "random_invert", 1.0, 0.0, 1.0);
}

/* ---- RandomGrayscale ---- */

typedef struct {
    CornuLayer                 base;
    CornuRandomGrayscaleConfig config;
} RandomGrayscale;

static CornuTensor *grayscale(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const double factor = ((const RandomGrayscale *)layer)->config.factor;
    CornuDraws   draws = cornu__draws(layer, call, x, 1);
    CornuTensor *gray = cornu__grayscale(x);
    return cornu_op_select(cornu__below(cornu__draw(&draws), cornu__number(factor, 0.0)), gray, x);
}

static CornuTensor *grayscale_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, grayscale, false);
}

static CornuLayer *grayscale_from(const void *config)
{
    return cornu_random_grayscale_from(config);
}

static const CornuField grayscale_fields[] = {
    { "factor", CORNU_FIELD_NUMBER, offsetof(CornuRandomGrayscaleConfig, factor) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuRandomGrayscaleConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__random_grayscale_class = {
    .class_name = "RandomGrayscale", .size = sizeof(RandomGrayscale), .build = cornu__build_images,
    .call = grayscale_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__SAVED(grayscale_fields, RandomGrayscale, grayscale_from),
    },
};

CornuLayer *cornu_random_grayscale_from(const CornuRandomGrayscaleConfig *config)
{
    const double factor = cornu__number(config->factor, 0.5);
    if (!(factor >= 0.0 && factor <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .factor is %g, expected 0 to 1",
                                config->name ? config->name : "random_grayscale", factor);
    CornuLayer *layer = cornu_layer_create(&cornu__random_grayscale_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    ((RandomGrayscale *)layer)->config.factor = factor == 0.0 ? (double)CORNU_ZERO : factor;
    ((RandomGrayscale *)layer)->config.data_format = config->data_format;
    return layer;
}

/* ---- RandomPosterization ---- */

typedef struct {
    CornuLayer                     base;
    CornuRandomPosterizationConfig config;   /* with resolved ranges */
} RandomPosterization;

static CornuTensor *posterize(const CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuRandomPosterizationConfig *config = &((const RandomPosterization *)layer)->config;
    CornuDraws                            draws = cornu__draws(layer, call, x, 1);
    return cornu__posterize(x, &draws, config->factor, config->value_range);
}

static CornuTensor *posterize_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, posterize, false);
}

static CornuLayer *posterize_from(const void *config)
{
    return cornu_random_posterization_from(config);
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
    .build = cornu__build_images, .call = posterize_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__SAVED(posterize_fields, RandomPosterization, posterize_from),
    },
};

CornuLayer *cornu_random_posterization_from(const CornuRandomPosterizationConfig *config)
{
    const char                    *name = config->name ? config->name : "random_posterization";
    CornuRandomPosterizationConfig to = *config;
    to.name = to.dtype = NULL;
    if (to.most != 0 && to.factor[0] != 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .factor is given twice, as a number and "
                                "as a range; expected one", name);
    if (to.most != 0) {
        to.factor[0] = 1;
        to.factor[1] = to.most;
        to.most = 0;
    }
    if (to.factor[0] < 1 || to.factor[1] > 8 || to.factor[0] > to.factor[1])
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .factor is from %lld to %lld, expected 1 "
                                "to 8", name, (long long)to.factor[0], (long long)to.factor[1]);
    if (cornu__resolve_value_range(name, to.value_range)) return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__random_posterization_class, config->name,
                                           config->dtype);
    if (layer) ((RandomPosterization *)layer)->config = to;
    return layer;
}

/* ---- RandomColorJitter ---- */

typedef struct {
    CornuLayer                   base;
    CornuRandomColorJitterConfig config;  /* with resolved ranges */
} RandomColorJitter;

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

static CornuTensor *jitter_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu__image_call(layer, call, x, jitter, false);
}

static CornuLayer *jitter_from(const void *config)
{
    return cornu_random_color_jitter_from(config);
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
    .build = cornu__build_images, .call = jitter_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){
        CORNU__SAVED(jitter_fields, RandomColorJitter, jitter_from),
    },
};

/* In files a single number x is the range -x to x; contrast and hue begin at 0. */
static CornuStatus resolve_jitter(const char *name, const char *argument, double range[2],
                                  double low)
{
    double most = 0.0;
    if (!is_given(range)) return CORNU_OK;
    if (low == 0.0 && range[0] == -range[1]) range[0] = (double)CORNU_ZERO;
    return cornu__resolve_factor(name, argument, &most, range, 0.0, low, 1.0);
}

CornuLayer *cornu_random_color_jitter_from(const CornuRandomColorJitterConfig *config)
{
    const char                  *name = config->name ? config->name : "random_color_jitter";
    CornuRandomColorJitterConfig to = *config;
    to.name = to.dtype = NULL;
    if (cornu__resolve_value_range(name, to.value_range) ||
        resolve_jitter(name, "brightness_factor", to.brightness_factor, -1.0) ||
        resolve_jitter(name, "contrast_factor", to.contrast_factor, 0.0) ||
        resolve_jitter(name, "saturation_factor", to.saturation_factor, -1.0) ||
        resolve_jitter(name, "hue_factor", to.hue_factor, 0.0))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__random_color_jitter_class, config->name,
                                           config->dtype);
    if (layer) ((RandomColorJitter *)layer)->config = to;
    return layer;
}
