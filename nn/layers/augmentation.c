/* RandomFlip, RandomTranslation and RandomRotation: per image, in training alone. */
#include "../layer_internal.h"

const char *cornu_flip_mode_name(CornuFlipMode mode)
{
    switch (mode) {
    case CORNU_FLIP_HORIZONTAL_AND_VERTICAL: return "horizontal_and_vertical";
    case CORNU_FLIP_HORIZONTAL:              return "horizontal";
    case CORNU_FLIP_VERTICAL:                return "vertical";
    }
    return NULL;
}

const char *cornu_fill_mode_name(CornuFillMode mode)
{
    switch (mode) {
    case CORNU_FILL_REFLECT:  return "reflect";
    case CORNU_FILL_CONSTANT: return "constant";
    case CORNU_FILL_NEAREST:  return "nearest";
    case CORNU_FILL_WRAP:     return "wrap";
    }
    return NULL;
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    (void)layer;
    return cornu__expect_input(input, 4, "(B, H, W, C)");
}

/* `count` numbers in [0, 1) for each of the images in x: (B, count). */
static CornuTensor *draw(const CornuLayer *layer, const CornuCall *call, CornuTensor *x, int count)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_shape(cornu_tensor_shape(x).extent[0], count);
    return cornu_op_random_uniform(shape, call->seed, call->iteration, call->position,
                                   layer->generator);
}

/* Number i of all that were drawn, (B, 1, 1, 1). */
static CornuTensor *drawn(CornuTensor *numbers, int i)
{
    if (!numbers) return NULL;
    const int64_t B = cornu_tensor_shape(numbers).extent[0];
    CornuTensor  *one = cornu_op_slice(numbers, (const int64_t[]){ 0, i }, (const int64_t[]){ B, 1 });
    return cornu_op_reshape(one, cornu_shape(B, 1, 1, 1));
}

/* ---- RandomFlip ---- */

typedef struct {
    CornuLayer            base;
    CornuRandomFlipConfig config;
} RandomFlip;

static CornuTensor *flip_half(CornuTensor *x, CornuTensor *number, int axis)
{
    if (!number) return NULL;
    CornuTensor *flips = cornu_op_compare(number, CORNU_LESS, cornu_op_constant_like(number, 0.5));
    return cornu_op_select(flips, cornu_op_flip(x, axis), x);
}

static CornuTensor *flip_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuFlipMode mode = ((RandomFlip *)layer)->config.mode;
    if (!x || !call->training) return x;
    CornuTensor *numbers = draw(layer, call, x, 2);
    if (mode != CORNU_FLIP_VERTICAL) x = flip_half(x, drawn(numbers, 0), 2);
    if (mode != CORNU_FLIP_HORIZONTAL) x = flip_half(x, drawn(numbers, 1), 1);
    return x;
}

static CornuLayer *flip_from(const void *config) { return cornu_random_flip_from(config); }

static const CornuField flip_fields[] = {
    { "mode", CORNU_FIELD_FLIP_MODE, offsetof(CornuRandomFlipConfig, mode) },
    { 0 },
};

const CornuLayerClass cornu__random_flip_class = {
    .class_name = "RandomFlip", .size = sizeof(RandomFlip), .build = build, .call = flip_call,
    .mask = cornu__no_mask,
    .fields = flip_fields, .config_size = sizeof(CornuRandomFlipConfig),
    .config_offset = offsetof(RandomFlip, config), .from = flip_from,
};

CornuLayer *cornu_random_flip_from(const CornuRandomFlipConfig *config)
{
    if (!cornu_flip_mode_name(config->mode))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .mode is %d, expected 0 to 2",
                                config->name ? config->name : "random_flip", (int)config->mode);
    CornuLayer *layer = cornu_layer_create(&cornu__random_flip_class, config->name, config->dtype);
    if (layer) ((RandomFlip *)layer)->config.mode = config->mode;
    return layer;
}
