/* UpSampling of sequences, images and volumes. */
#include "../../../tensor/function_internal.h"
#include "resampling_internal.h"

/* Repeats each element of x (B, …, C) along each axis. An axis after the other: with all of them at
 * once there would be too many axes. */
static CornuTensor *repeated(CornuTensor *const *x, int count, const double *times)
{
    CornuTensor *y = x[0];
    CornuShape   s = cornu_tensor_shape(y);
    (void)count;
    for (int i = 1; i < s.rank - 1; i++) {
        const int64_t each = (int64_t)times[i - 1];
        int64_t       before = 1, after = 1;
        if (each == 1) continue;
        for (int k = 0; k <= i; k++) before *= s.extent[k];
        for (int k = i + 1; k < s.rank; k++) after *= s.extent[k];
        y = cornu_op_broadcast(cornu_op_reshape(y, cornu_shape(before, 1, after)),
                               cornu_shape(before, each, after));
        s.extent[i] *= each;
        y = cornu_op_reshape(y, s);
    }
    return y;
}

static CornuTensor *repeat(CornuTensor *x, const int64_t *times)
{
    static const CornuFunction function = CORNU__FUNCTION("repeat", .formula = repeated);
    double                     numbers[CORNU_MAX_RANK];
    const int                  axes = cornu_tensor_shape(x).rank - 2;
    for (int i = 0; i < axes; i++) numbers[i] = (double)times[i];
    return cornu__function(&function, &x, 1, numbers, axes);
}

/* ---- UpSampling2D ---- */

/* The factor resolved into the pair. */
typedef CORNU__LAYER(CornuUpSampling2dConfig) ImageSampling;

static CornuTensor *image_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuUpSampling2dConfig *config = &((ImageSampling *)layer)->config;
    const int64_t                 *size = config->size;
    if (!x) return NULL;
    if (config->interpolation == CORNU_NEAREST) return repeat(x, size);
    const CornuShape shape = cornu_tensor_shape(x);
    (void)call;
    return cornu__resize(x, shape.extent[1] * size[0], shape.extent[2] * size[1],
                         &(CornuResampling){ .interpolation = config->interpolation });
}

static CornuStatus image_resolve(CornuLayer *layer)
{
    CornuUpSampling2dConfig *config = &((ImageSampling *)layer)->config;
    const char              *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__check_interpolation(name, &config->interpolation, CORNU_NEAREST,
                                          CORNU_LANCZOS5));
    CORNU__TRY(cornu__pair(name, "size", "factor", config->factor, config->size, 2, config->size));
    config->factor = 0;
    return CORNU_OK;
}

static const CornuField image_fields[] = {
    { "size", CORNU_FIELD_PAIR, offsetof(CornuUpSampling2dConfig, size) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuUpSampling2dConfig, data_format) },
    { "interpolation", CORNU_FIELD_INTERPOLATION,
      offsetof(CornuUpSampling2dConfig, interpolation) },
    { 0 },
};

const CornuLayerClass cornu__up_sampling2d_class = {
    .class_name = "UpSampling2D", .size = sizeof(ImageSampling), .build = cornu__build_spatial,
    .call = image_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(image_fields, ImageSampling, image_resolve) },
};

CORNU__CONSTRUCTOR(up_sampling2d, CornuUpSampling2dConfig)

/* ---- UpSampling1D and UpSampling3D ---- */

/* Of a sequence: the first extent counts. */
typedef CORNU__LAYER(CornuUpSampling3dConfig) UpSampling;

static CornuTensor *repeat_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? repeat(x, ((UpSampling *)layer)->config.size) : NULL;
}

static CornuStatus up_sampling_resolve(CornuLayer *layer)
{
    CornuUpSampling3dConfig *config = &((UpSampling *)layer)->config;
    CORNU__TRY(cornu__extents(cornu_layer_name(layer), "size", "factor", config->factor,
                              config->size, 2, cornu__spatial_axes(layer->kind), config->size));
    config->factor = 0;
    return CORNU_OK;
}

static const CornuField sequence_fields[] = {   /* Keras' has no data_format */
    { "size", CORNU_FIELD_INTEGER, offsetof(CornuUpSampling3dConfig, size) },
    { 0 },
};

static const CornuField volume_fields[] = {
    { "size", CORNU_FIELD_TRIPLE, offsetof(CornuUpSampling3dConfig, size) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuUpSampling3dConfig, data_format) },
    { 0 },
};

#define COMMON                                                                      \
    .size = sizeof(UpSampling), .build = cornu__build_spatial, .call = repeat_call, \
    .mask = cornu__no_mask

const CornuLayerClass cornu__up_sampling1d_class = {
    .class_name = "UpSampling1D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(sequence_fields, UpSampling,
                                                     up_sampling_resolve) },
};
const CornuLayerClass cornu__up_sampling3d_class = {
    .class_name = "UpSampling3D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(volume_fields, UpSampling,
                                                     up_sampling_resolve) },
};

CornuLayer *cornu_up_sampling1d_from(const CornuUpSampling1dConfig *config)
{
    return cornu__layer_from(&cornu__up_sampling1d_class, &(CornuUpSampling3dConfig){
        .size = { config->size }, .name = config->name, .dtype = config->dtype });
}

CORNU__CONSTRUCTOR(up_sampling3d, CornuUpSampling3dConfig)
