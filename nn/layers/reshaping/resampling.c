/*
 * Resizing, and the interpolations of UpSampling2D.
 *
 * Along one axis an output pixel is a weighted sum of input pixels, so each axis is resampled by a
 * matrix of weights that depend on shapes only, and gradients need no extra code.
 * Output o of m is at position (o + 1/2) n / m - 1/2 among the n inputs. The nearest input is
 * floor((o + 1/2) n / m); the other interpolations weight inputs by a function of the distance,
 * normalized to a sum of 1. With antialias the unit of distance is n / m pixels if that is above 1.
 * Source: jax.image.resize, which Keras calls (jax/_src/image/scale.py, compute_weight_mat).
 */
#include "../../../device/integer_internal.h"
#include "../../../tensor/function_internal.h"
#include "../../fields/field_internal.h"
#include "resampling_internal.h"

#include <math.h>

const CornuFieldKind cornu_field_interpolation = {
    .name = "interpolation", CORNU__FIELD_OF_WORDS(CornuInterpolation),
    .words = { [CORNU_NEAREST] = "nearest", [CORNU_BILINEAR] = "bilinear",
               [CORNU_BICUBIC] = "bicubic", [CORNU_LANCZOS3] = "lanczos3",
               [CORNU_LANCZOS5] = "lanczos5" },
};

const char *cornu_interpolation_name(CornuInterpolation interpolation)
{
    return cornu__field_word(CORNU_FIELD_INTERPOLATION, (int)interpolation);
}

/* x < bound ? a : b */
static CornuTensor *below(CornuTensor *x, double bound, CornuTensor *a, CornuTensor *b)
{
    return x ? cornu_op_select(cornu_op_compare(x, CORNU_LESS, cornu_op_constant_like(x, bound)),
                               a, b) : NULL;
}

/* ((a x + b) x + c) x + d */
static CornuTensor *polynomial(CornuTensor *x, double a, double b, double c, double d)
{
    CornuTensor *y = cornu_op_shift(cornu_op_scale(x, a), b);
    y = cornu_op_shift(cornu_op_multiply(y, x), c);
    return cornu_op_shift(cornu_op_multiply(y, x), d);
}

/* Weights for distances x >= 0.
 * Source: Keys, "Cubic convolution interpolation for digital image processing", 1981. */
static CornuTensor *keys_cubic(CornuTensor *x)
{
    CornuTensor *zero = x ? cornu_op_constant_like(x, 0.0) : NULL;
    CornuTensor *outer = below(x, 2.0, polynomial(x, -0.5, 2.5, -4.0, 2.0), zero);
    return below(x, 1.0, polynomial(x, 1.5, -2.5, 0.0, 1.0), outer);
}

/* sinc(x) sinc(x / radius), up to the radius. */
static CornuTensor *lanczos(CornuTensor *x, double radius)
{
    const double pi = acos(-1.0);
    if (!x) return NULL;
    /* Farther away the sines' arguments are large, and nothing is looked at. */
    CornuTensor *near = cornu_op_minimum(x, cornu_op_constant_like(x, radius));
    CornuTensor *sines = cornu_op_multiply(cornu_op_sin(cornu_op_scale(near, pi)),
                                           cornu_op_sin(cornu_op_scale(near, pi / radius)));
    CornuTensor *square = cornu_op_scale(cornu_op_square(near), pi * pi / radius);
    CornuTensor *one = cornu_op_constant_like(x, 1.0), *zero = cornu_op_constant_like(x, 0.0);
    CornuTensor *weight = cornu_op_divide(sines, below(x, 1e-3, one, square));
    return below(x, 1e-3, one, below(x, radius, weight, zero));
}

static CornuTensor *weight_of_distance(CornuTensor *x, CornuInterpolation interpolation)
{
    switch (interpolation) {
    case CORNU_BICUBIC:  return keys_cubic(x);
    case CORNU_LANCZOS3: return lanczos(x, 3.0);
    case CORNU_LANCZOS5: return lanczos(x, 5.0);
    default: return cornu_op_relu(cornu_op_shift(cornu_op_negative(x), 1.0));
    }
}

/* Weights (to, from) of dtype, computed in f32. */
static CornuTensor *weights(CornuGraph *graph, int64_t from, int64_t to, const CornuResampling *how,
                            CornuDtype dtype)
{
    const CornuType type = cornu_type(CORNU_F32, to, from);
    CornuTensor    *in = cornu_op_iota(graph, type, 1), *out = cornu_op_iota(graph, type, 0), *w;
    /* Divided last, so that integer results are exact. */
    out = cornu_op_scale(cornu_op_shift(out, 0.5), (double)from);
    out = cornu_op_divide(out, cornu_op_constant_like(out, (double)to));
    if (how->interpolation == CORNU_NEAREST) {
        w = cornu_op_compare(in, CORNU_EQUAL, cornu_op_floor(out));
    } else {
        w = cornu_op_absolute(cornu_op_subtract(in, cornu_op_shift(out, -0.5)));
        if (how->antialias && from > to) w = cornu_op_scale(w, (double)to / (double)from);
        w = weight_of_distance(w, how->interpolation);
        w = cornu_op_divide(w, cornu_op_reduce_sum(w, 1 << 1, true));
    }
    return cornu_op_convert(w, dtype);
}

/* x with `to` elements along the axis. */
static CornuTensor *resample(CornuTensor *x, int axis, int64_t to, const CornuResampling *how)
{
    if (!x) return NULL;
    const CornuType type = cornu_tensor_type(x);
    const int64_t   from = type.shape.extent[axis];
    if (from == to) return x;
    return cornu_op_resample(x, weights(cornu_tensor_graph(x), from, to, how, type.dtype), axis);
}

static CornuTensor *resize(CornuTensor *const *in, int count, const double *numbers)
{
    const CornuResampling how = { (CornuInterpolation)numbers[0], numbers[1] != 0.0 };
    (void)count;
    return resample(resample(in[0], 2, (int64_t)numbers[3], &how), 1, (int64_t)numbers[2], &how);
}

CornuTensor *cornu__resize(CornuTensor *x, int64_t height, int64_t width,
                           const CornuResampling *how)
{
    static const CornuFunction function = CORNU__FUNCTION("resize", .formula = resize);
    return x ? cornu__function(&function, &x, 1,
                               (double[]){ (double)how->interpolation, how->antialias,
                                           (double)height, (double)width }, 4) : NULL;
}

CornuStatus cornu__check_interpolation(const char *layer, CornuInterpolation *given,
                                       CornuInterpolation usual, CornuInterpolation last)
{
    if (*given == CORNU_DEFAULT_INTERPOLATION) *given = usual;
    if ((int)*given >= CORNU_NEAREST && (int)*given <= (int)last) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .interpolation is %d, expected %d (nearest) to %d "
                       "(%s)", layer, (int)*given, CORNU_NEAREST, (int)last,
                       cornu_interpolation_name(last));
}

/* ---- Images without a batch ---- */

CornuStatus cornu__build_images(CornuLayer *layer, CornuShape input)
{
    (void)layer;
    return input.rank == 3 ? CORNU_OK
                           : cornu__expect_input(input, 4, "(B, H, W, C) or (H, W, C)");
}

CornuTensor *cornu__as_batch(CornuTensor *x)
{
    if (!x || cornu_tensor_shape(x).rank != 3) return x;
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(1, s.extent[0], s.extent[1], s.extent[2]));
}

CornuTensor *cornu__of_batch(CornuTensor *y, int rank)
{
    if (!y || rank != 3) return y;
    const CornuShape s = cornu_tensor_shape(y);
    return cornu_op_reshape(y, cornu_shape(s.extent[1], s.extent[2], s.extent[3]));
}

/* ---- Resizing ---- */

typedef CORNU__LAYER(CornuResizingConfig) Resizing;

void cornu__crop_to_ratio(const int64_t from[2], const int64_t size[2], int64_t part[2])
{
    for (int i = 0; i < 2; i++)
        part[i] = larger(smaller(from[i], from[1 - i] * size[i] / size[1 - i]), 1);
}

static CornuTensor *crop_to_ratio(CornuTensor *x, const int64_t size[2])
{
    const CornuShape s = cornu_tensor_shape(x);
    int64_t          part[2];
    cornu__crop_to_ratio(s.extent + 1, size, part);
    return cornu_op_slice(x, (const int64_t[]){ 0, (s.extent[1] - part[0]) / 2,
                                                (s.extent[2] - part[1]) / 2, 0 },
                          (const int64_t[]){ s.extent[0], part[0], part[1], s.extent[3] });
}

/* By rows or columns on each side, as Keras without an odd remaining one. */
static CornuTensor *pad_to_ratio(CornuTensor *x, const int64_t size[2], double value)
{
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t   *from = s.extent + 1;
    int64_t          around[4] = { 0 };
    for (int i = 0; i < 2; i++)
        around[1 + i] = (larger(from[i], from[1 - i] * size[i] / size[1 - i]) - from[i]) / 2;
    if (around[1]) around[2] = 0;
    return cornu_op_pad(x, around, around, value);
}

static CornuTensor *resizing_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuResizingConfig *config = &((Resizing *)layer)->config;
    const int64_t              size[2] = { config->height, config->width };
    if (!x) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    const bool       whole = !cornu_dtype_is_float(dtype);
    const int        rank = cornu_tensor_shape(x).rank;
    if (!(x = cornu__as_batch(x))) return NULL;
    if (whole) x = cornu_op_convert(x, CORNU_F32);
    if (config->crop_to_aspect_ratio) x = crop_to_ratio(x, size);
    if (config->pad_to_aspect_ratio)
        x = pad_to_ratio(x, size, cornu__number(config->fill_value, 0.0));
    (void)call;
    x = cornu__resize(x, size[0], size[1],
                      &(CornuResampling){ config->interpolation, config->antialias });
    x = cornu__of_batch(x, rank);
    return whole ? cornu_op_convert(cornu__round_even(x), dtype) : x;   /* saturates */
}

static CornuStatus resizing_resolve(CornuLayer *layer)
{
    CornuResizingConfig *config = &((Resizing *)layer)->config;
    const char          *name = cornu_layer_name(layer);
    if (config->crop_to_aspect_ratio && config->pad_to_aspect_ratio)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .crop_to_aspect_ratio and "
                           ".pad_to_aspect_ratio are given, expected one", name);
    CORNU__TRY(cornu__positive(name, "height", config->height));
    CORNU__TRY(cornu__positive(name, "width", config->width));
    return cornu__check_interpolation(name, &config->interpolation, CORNU_BILINEAR,
                                      CORNU_LANCZOS5);
}

static const CornuField resizing_fields[] = {
    { "height", CORNU_FIELD_INTEGER, offsetof(CornuResizingConfig, height) },
    { "width", CORNU_FIELD_INTEGER, offsetof(CornuResizingConfig, width) },
    { "interpolation", CORNU_FIELD_INTERPOLATION, offsetof(CornuResizingConfig, interpolation) },
    { "crop_to_aspect_ratio", CORNU_FIELD_FLAG,
      offsetof(CornuResizingConfig, crop_to_aspect_ratio) },
    { "pad_to_aspect_ratio", CORNU_FIELD_FLAG,
      offsetof(CornuResizingConfig, pad_to_aspect_ratio) },
    { "antialias", CORNU_FIELD_FLAG, offsetof(CornuResizingConfig, antialias) },
    { "fill_value", CORNU_FIELD_NUMBER, offsetof(CornuResizingConfig, fill_value) },
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuResizingConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__resizing_class = {
    .class_name = "Resizing", .size = sizeof(Resizing), .build = cornu__build_images,
    .one_image = true, .call = resizing_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(resizing_fields, Resizing, resizing_resolve) },
};

CORNU__CONSTRUCTOR(resizing, CornuResizingConfig)
