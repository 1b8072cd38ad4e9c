/* GlobalAveragePooling and GlobalMaxPooling, in one and two dimensions. */
#include "../layer_internal.h"

typedef struct {
    CornuLayer               base;
    CornuGlobalPoolingConfig config;
} GlobalPooling;

enum { STEPS = 1 << 1, PIXELS = 1 << 1 | 1 << 2 };

static bool keeps(const CornuLayer *layer)
{
    return ((const GlobalPooling *)layer)->config.keepdims;
}

static CornuTensor *mean_of_pixels(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? cornu_op_reduce_mean(x, PIXELS, keeps(layer)) : NULL;
}

static CornuTensor *greatest_pixel(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? cornu_op_reduce_max(x, PIXELS, keeps(layer)) : NULL;
}

static CornuTensor *greatest_step(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? cornu_op_reduce_max(x, STEPS, keeps(layer)) : NULL;
}

/* With a mask (B, T): the sum over valid steps divided by their number. */
static CornuTensor *mean_of_steps(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x) return NULL;
    if (!call->mask) return cornu_op_reduce_mean(x, STEPS, keeps(layer));
    const CornuType type = cornu_tensor_type(x);
    CornuTensor    *mask = cornu_op_reshape(
        call->mask, cornu_shape(type.shape.extent[0], type.shape.extent[1], 1));
    CornuTensor *counted = cornu_op_select(mask, x, cornu_op_constant_like(x, 0.0));
    CornuTensor *count = cornu_op_convert(mask, type.dtype);
    return cornu_op_divide(cornu_op_reduce_sum(counted, STEPS, keeps(layer)),
                           cornu_op_reduce_sum(count, STEPS, keeps(layer)));
}

static const CornuField fields[] = {
    { "keepdims", CORNU_FIELD_FLAG, offsetof(CornuGlobalPoolingConfig, keepdims) },
    { 0 },
};

#define COMMON                                                                                \
    .size = sizeof(GlobalPooling), .mask = cornu__no_mask, .fields = fields,                  \
    .config_size = sizeof(CornuGlobalPoolingConfig), .config_offset = offsetof(GlobalPooling, \
                                                                               config)

static CornuLayer *average2d_from(const void *config)
{
    return cornu_global_average_pooling2d_from(config);
}

static CornuLayer *max2d_from(const void *config)
{
    return cornu_global_max_pooling2d_from(config);
}

static CornuLayer *average1d_from(const void *config)
{
    return cornu_global_average_pooling1d_from(config);
}

static CornuLayer *max1d_from(const void *config)
{
    return cornu_global_max_pooling1d_from(config);
}

const CornuLayerClass cornu__global_average_pooling2d_class = {
    .class_name = "GlobalAveragePooling2D", .build = cornu__build_image,
    .call = mean_of_pixels, .from = average2d_from, COMMON
};
const CornuLayerClass cornu__global_max_pooling2d_class = {
    .class_name = "GlobalMaxPooling2D", .build = cornu__build_image,
    .call = greatest_pixel, .from = max2d_from, COMMON
};
const CornuLayerClass cornu__global_average_pooling1d_class = {
    .class_name = "GlobalAveragePooling1D", .build = cornu__build_sequence,
    .call = mean_of_steps, .from = average1d_from, COMMON
};
const CornuLayerClass cornu__global_max_pooling1d_class = {
    .class_name = "GlobalMaxPooling1D", .build = cornu__build_sequence,
    .call = greatest_step, .from = max1d_from, COMMON
};

static CornuLayer *create(const CornuLayerClass *kind, const CornuGlobalPoolingConfig *config)
{
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((GlobalPooling *)layer)->config.keepdims = config->keepdims;
    return layer;
}

CornuLayer *cornu_global_average_pooling2d_from(const CornuGlobalPoolingConfig *config)
{
    return create(&cornu__global_average_pooling2d_class, config);
}

CornuLayer *cornu_global_max_pooling2d_from(const CornuGlobalPoolingConfig *config)
{
    return create(&cornu__global_max_pooling2d_class, config);
}

CornuLayer *cornu_global_average_pooling1d_from(const CornuGlobalPoolingConfig *config)
{
    return create(&cornu__global_average_pooling1d_class, config);
}

CornuLayer *cornu_global_max_pooling1d_from(const CornuGlobalPoolingConfig *config)
{
    return create(&cornu__global_max_pooling1d_class, config);
}
