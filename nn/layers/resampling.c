/*
 * UpSampling2D and Resizing.
 *
 * Along one axis an output pixel is a weighted sum of input pixels, so along each axis there is a
 * matrix product with weights that are made of shapes alone, and gradients follow by themselves.
 * Output o stands at (o + 1/2) n / m - 1/2 among the n inputs; bilinear weights are
 * max(0, 1 - |distance|) of the place kept inside of [0, n - 1], the nearest input is that at
 * floor((o + 1/2) n / m). Source: jax.image.resize with antialias = False, which Keras calls.
 */
#include "../layer_internal.h"

const char *cornu_interpolation_name(CornuInterpolation interpolation)
{
    switch (interpolation) {
    case CORNU_NEAREST:  return "nearest";
    case CORNU_BILINEAR: return "bilinear";
    default:             return NULL;
    }
}

/* Weights (to, from) of dtype, computed in f32. */
static CornuTensor *weights(CornuGraph *graph, int64_t from, int64_t to,
                            CornuInterpolation interpolation, CornuDtype dtype)
{
    const CornuType type = cornu_type(CORNU_F32, to, from);
    CornuTensor    *in = cornu_op_iota(graph, type, 1), *out = cornu_op_iota(graph, type, 0), *w;
    /* Divided last, so that whole numbers come out whole. */
    out = cornu_op_scale(cornu_op_shift(out, 0.5), (double)from);
    out = cornu_op_divide(out, cornu_op_constant_like(out, (double)to));
    if (interpolation == CORNU_NEAREST) {
        w = cornu_op_compare(in, CORNU_EQUAL, cornu_op_floor(out));
    } else {
        out = cornu_op_shift(out, -0.5);
        out = cornu_op_maximum(out, cornu_op_constant_like(out, 0.0));
        out = cornu_op_minimum(out, cornu_op_constant_like(out, (double)(from - 1)));
        w = cornu_op_absolute(cornu_op_subtract(in, out));
        w = cornu_op_relu(cornu_op_shift(cornu_op_negative(w), 1.0));
    }
    return cornu_op_convert(w, dtype);
}

/* x (outer, n, inner) to (outer, to, inner). */
static CornuTensor *resample(CornuGraph *graph, CornuTensor *x, int64_t to,
                             CornuInterpolation interpolation)
{
    if (!x) return NULL;
    const CornuType type = cornu_tensor_type(x);
    const int64_t   from = type.shape.extent[1];
    if (from == to) return x;
    return cornu_op_matmul(weights(graph, from, to, interpolation, type.dtype), x);
}

static CornuTensor *resize(CornuGraph *graph, CornuTensor *x, int64_t height, int64_t width,
                           CornuInterpolation interpolation)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], H = s.extent[1], W = s.extent[2], C = s.extent[3];
    x = resample(graph, cornu_op_reshape(x, cornu_shape(B * H, W, C)), width, interpolation);
    x = resample(graph, cornu_op_reshape(x, cornu_shape(B, H, width * C)), height, interpolation);
    return cornu_op_reshape(x, cornu_shape(B, height, width, C));
}

CornuStatus cornu__check_interpolation(const char *layer, CornuInterpolation *given,
                                       CornuInterpolation usual)
{
    if (*given == CORNU_DEFAULT_INTERPOLATION) *given = usual;
    if (cornu_interpolation_name(*given)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .interpolation is %d, expected CORNU_NEAREST or "
                       "CORNU_BILINEAR", layer, (int)*given);
}

/* ---- UpSampling2D ---- */

typedef struct {
    CornuLayer              base;
    CornuUpSampling2dConfig config;   /* the factor resolved into the pair */
} UpSampling;

/* Each pixel h by w times. */
static CornuTensor *repeat(CornuTensor *x, int64_t h, int64_t w)
{
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    B = s.extent[0], H = s.extent[1], W = s.extent[2], C = s.extent[3];
    x = cornu_op_reshape(x, cornu_shape(B * H, 1, W, 1, C));
    x = cornu_op_broadcast(x, cornu_shape(B * H, h, W, w, C));
    return cornu_op_reshape(x, cornu_shape(B, H * h, W * w, C));
}

static CornuTensor *up_sampling_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuUpSampling2dConfig *config = &((UpSampling *)layer)->config;
    const int64_t                 *size = config->size;
    if (!x) return NULL;
    if (config->interpolation == CORNU_NEAREST) return repeat(x, size[0], size[1]);
    const CornuShape shape = cornu_tensor_shape(x);
    return resize(call->graph, x, shape.extent[1] * size[0], shape.extent[2] * size[1],
                  config->interpolation);
}

static CornuLayer *up_sampling_from(const void *config) { return cornu_up_sampling2d_from(config); }

static const CornuField up_sampling_fields[] = {
    { "size", CORNU_FIELD_PAIR, offsetof(CornuUpSampling2dConfig, size) },
    { "interpolation", CORNU_FIELD_INTERPOLATION,
      offsetof(CornuUpSampling2dConfig, interpolation) },
    { 0 },
};

const CornuLayerClass cornu__up_sampling2d_class = {
    .class_name = "UpSampling2D", .size = sizeof(UpSampling), .build = cornu__build_image,
    .call = up_sampling_call, .mask = cornu__no_mask,
    .fields = up_sampling_fields, .config_size = sizeof(CornuUpSampling2dConfig),
    .config_offset = offsetof(UpSampling, config), .from = up_sampling_from,
};

CornuLayer *cornu_up_sampling2d_from(const CornuUpSampling2dConfig *config)
{
    const char             *name = config->name ? config->name : "up_sampling2d";
    CornuUpSampling2dConfig resolved = *config;
    resolved.name = resolved.dtype = NULL;
    resolved.factor = 0;
    if (cornu__check_interpolation(name, &resolved.interpolation, CORNU_NEAREST) ||
        cornu__pair(name, "size", "factor", config->factor, config->size, 2, resolved.size))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__up_sampling2d_class, config->name,
                                           config->dtype);
    if (layer) ((UpSampling *)layer)->config = resolved;
    return layer;
}

/* ---- Resizing ---- */

typedef struct {
    CornuLayer          base;
    CornuResizingConfig config;
} Resizing;

static CornuTensor *resizing_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuResizingConfig *config = &((Resizing *)layer)->config;
    return resize(call->graph, x, config->height, config->width, config->interpolation);
}

static CornuLayer *resizing_from(const void *config) { return cornu_resizing_from(config); }

static const CornuField resizing_fields[] = {
    { "height", CORNU_FIELD_INTEGER, offsetof(CornuResizingConfig, height) },
    { "width", CORNU_FIELD_INTEGER, offsetof(CornuResizingConfig, width) },
    { "interpolation", CORNU_FIELD_INTERPOLATION, offsetof(CornuResizingConfig, interpolation) },
    { "crop_to_aspect_ratio", CORNU_FIELD_FLAG,
      offsetof(CornuResizingConfig, crop_to_aspect_ratio) },
    { "pad_to_aspect_ratio", CORNU_FIELD_FLAG,
      offsetof(CornuResizingConfig, pad_to_aspect_ratio) },
    { "antialias", CORNU_FIELD_FLAG, offsetof(CornuResizingConfig, antialias) },
    { 0 },
};

const CornuLayerClass cornu__resizing_class = {
    .class_name = "Resizing", .size = sizeof(Resizing), .build = cornu__build_image,
    .call = resizing_call, .mask = cornu__no_mask,
    .fields = resizing_fields, .config_size = sizeof(CornuResizingConfig),
    .config_offset = offsetof(Resizing, config), .from = resizing_from,
};

CornuLayer *cornu_resizing_from(const CornuResizingConfig *config)
{
    const char         *name = config->name ? config->name : "resizing";
    const char         *refused = config->crop_to_aspect_ratio ? "crop_to_aspect_ratio"
                                : config->pad_to_aspect_ratio  ? "pad_to_aspect_ratio"
                                : config->antialias            ? "antialias" : NULL;
    CornuResizingConfig resolved = *config;
    resolved.name = resolved.dtype = NULL;
    if (refused)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: .%s is not available in this version",
                                name, refused);
    if (cornu__positive(name, "height", config->height) ||
        cornu__positive(name, "width", config->width) ||
        cornu__check_interpolation(name, &resolved.interpolation, CORNU_BILINEAR))
        return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__resizing_class, config->name, config->dtype);
    if (layer) ((Resizing *)layer)->config = resolved;
    return layer;
}
