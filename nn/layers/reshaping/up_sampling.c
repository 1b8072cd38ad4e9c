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

typedef struct {
    CornuLayer              base;
    CornuUpSampling2dConfig config;   /* the factor resolved into the pair */
} ImageSampling;

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

static CornuLayer *image_from(const void *config) { return cornu_up_sampling2d_from(config); }

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
    .keras = &(const CornuKerasClass){ CORNU__SAVED(image_fields, ImageSampling, image_from) },
};

CornuLayer *cornu_up_sampling2d_from(const CornuUpSampling2dConfig *config)
{
    const char             *name = config->name ? config->name : "up_sampling2d";
    CornuUpSampling2dConfig resolved = *config;
    resolved.name = resolved.dtype = NULL;
    resolved.factor = 0;
    if (cornu__check_interpolation(name, &resolved.interpolation, CORNU_NEAREST,
                                   CORNU_LANCZOS5) ||
        cornu__pair(name, "size", "factor", config->factor, config->size, 2, resolved.size))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__up_sampling2d_class, config->name,
                                           config->dtype);
    if (layer) ((ImageSampling *)layer)->config = resolved;
    return layer;
}

/* ---- UpSampling1D and UpSampling3D ---- */

typedef struct {
    CornuLayer              base;
    CornuUpSampling3dConfig config;   /* of a sequence: the first extent counts */
} UpSampling;

static CornuTensor *repeat_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? repeat(x, ((UpSampling *)layer)->config.size) : NULL;
}

static CornuLayer *create(const CornuLayerClass *kind, const char *label,
                          const CornuUpSampling3dConfig *config)
{
    CornuUpSampling3dConfig resolved = { .data_format = config->data_format };
    if (cornu__extents(config->name ? config->name : label, "size", "factor", config->factor,
                       config->size, 2, cornu__spatial_axes(kind), resolved.size))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (layer) ((UpSampling *)layer)->config = resolved;
    return layer;
}

extern const CornuLayerClass cornu__up_sampling1d_class, cornu__up_sampling3d_class;

static CornuLayer *sequence_from(const void *config)
{
    return create(&cornu__up_sampling1d_class, "up_sampling1d", config);
}

static CornuLayer *volume_from(const void *config)
{
    return create(&cornu__up_sampling3d_class, "up_sampling3d", config);
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
    .keras = &(const CornuKerasClass){ CORNU__SAVED(sequence_fields, UpSampling, sequence_from) },
};
const CornuLayerClass cornu__up_sampling3d_class = {
    .class_name = "UpSampling3D", COMMON,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(volume_fields, UpSampling, volume_from) },
};

CornuLayer *cornu_up_sampling1d_from(const CornuUpSampling1dConfig *config)
{
    return sequence_from(&(CornuUpSampling3dConfig){ .size = { config->size },
                                                     .name = config->name,
                                                     .dtype = config->dtype });
}

CornuLayer *cornu_up_sampling3d_from(const CornuUpSampling3dConfig *config)
{
    return volume_from(config);
}
