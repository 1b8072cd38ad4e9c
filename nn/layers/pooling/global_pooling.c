/* GlobalAveragePooling and GlobalMaxPooling of sequences, images and volumes. */
#include "../layer_internal.h"

typedef CORNU__LAYER(CornuGlobalPoolingConfig) GlobalPooling;

static bool keeps(const CornuLayer *layer)
{
    return ((const GlobalPooling *)layer)->config.keepdims;
}

/* All axes between batch and channels, as bits. */
static int64_t spatial_axes(CornuTensor *x)
{
    return (INT64_C(1) << (cornu_tensor_shape(x).rank - 1)) - 2;
}

static CornuTensor *greatest(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? cornu_op_reduce_max(x, spatial_axes(x), keeps(layer)) : NULL;
}

/* With a mask (B, T) of a sequence: the sum over valid steps divided by their number. */
static CornuTensor *mean(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x) return NULL;
    const CornuType type = cornu_tensor_type(x);
    const int64_t   axes = spatial_axes(x);
    if (!call->mask || type.shape.rank != 3) return cornu_op_reduce_mean(x, axes, keeps(layer));
    CornuTensor *mask = cornu_op_reshape(
        call->mask, cornu_shape(type.shape.extent[0], type.shape.extent[1], 1));
    CornuTensor *counted = cornu_op_select(mask, x, cornu_op_constant_like(x, 0.0));
    CornuTensor *count = cornu_op_convert(mask, type.dtype);
    return cornu_op_divide(cornu_op_reduce_sum(counted, axes, keeps(layer)),
                           cornu_op_reduce_sum(count, axes, keeps(layer)));
}

static const CornuField fields[] = {
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuGlobalPoolingConfig, data_format) },
    { "keepdims", CORNU_FIELD_FLAG, offsetof(CornuGlobalPoolingConfig, keepdims) },
    { 0 },
};

#define CLASS(label, name, function)                                                         \
    const CornuLayerClass cornu__global_##label##_class = {                                  \
        .class_name = name, .size = sizeof(GlobalPooling), .build = cornu__build_spatial,    \
        .call = function, .mask = cornu__no_mask,                                            \
        .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, GlobalPooling, NULL) },     \
    }
CLASS(average_pooling1d, "GlobalAveragePooling1D", mean);
CLASS(average_pooling2d, "GlobalAveragePooling2D", mean);
CLASS(average_pooling3d, "GlobalAveragePooling3D", mean);
CLASS(max_pooling1d, "GlobalMaxPooling1D", greatest);
CLASS(max_pooling2d, "GlobalMaxPooling2D", greatest);
CLASS(max_pooling3d, "GlobalMaxPooling3D", greatest);

CORNU__CONSTRUCTOR(global_average_pooling1d, CornuGlobalPoolingConfig)
CORNU__CONSTRUCTOR(global_average_pooling2d, CornuGlobalPoolingConfig)
CORNU__CONSTRUCTOR(global_average_pooling3d, CornuGlobalPoolingConfig)
CORNU__CONSTRUCTOR(global_max_pooling1d, CornuGlobalPoolingConfig)
CORNU__CONSTRUCTOR(global_max_pooling2d, CornuGlobalPoolingConfig)
CORNU__CONSTRUCTOR(global_max_pooling3d, CornuGlobalPoolingConfig)
