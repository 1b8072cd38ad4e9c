/* Operations of keras.ops.image on places of pixels: crops, patches, transforms. */
#include "operation_internal.h"

#include "../images/moves_internal.h"

#include <string.h>
#include <strings.h>

/* How images are given. */
typedef struct {
    bool first;         /* channels first */
    int  rank;          /* 3: one image */
} Axes;

/* Operand "images" as (B, H, W, C). */
static CornuTensor *images_of(const CornuOperands *o, Axes *axes)
{
    CornuTensor *x = cornu__operand_tensor(o, "images", 0);
    axes->first = !strcasecmp(cornu__argument_text(o, "data_format", "channels_last"),
                              "channels_first");
    axes->rank = x ? cornu_tensor_shape(x).rank : 0;
    if (!x) return NULL;
    if (axes->rank != 4 && axes->rank != 3)
        return cornu__operation_refuse(o, "expected images (B, H, W, C) or (H, W, C)");
    x = cornu__as_batch(x);
    return x && axes->first ? cornu__move_axis(x, 1, 3) : x;
}

static CornuTensor *images_to(CornuTensor *y, Axes axes)
{
    return cornu__of_batch(y && axes.first ? cornu__move_axis(y, 3, 1) : y, axes.rank);
}

/* ---- Crops and borders ---- */

/* The numbers before and after along an axis of n, of two of which and a target one is given by the
 * other two. */
static bool margins(const CornuOperands *o, const char *before, const char *after,
                    const char *target, int64_t n, int sign, int64_t *low, int64_t *high)
{
    const bool    has_low = cornu__argument(o, before, -1);
    const bool    has_high = cornu__argument(o, after, -1);
    const int64_t both = sign * (cornu__argument_integer(o, target, n) - n);
    *low = cornu__argument_integer(o, before, 0);
    *high = cornu__argument_integer(o, after, 0);
    if (!has_low) *low = both - *high;
    else if (!has_high) *high = both - *low;
    if (*low >= 0 && *high >= 0 && (sign > 0 || n - *low - *high >= 0)) return true;
    cornu__operation_refuse(o, "the borders and the target do not fit the images");
    return false;
}

CornuTensor *cornu__operation_pad_images(const CornuOperands *o)
{
    Axes         axes;
    int64_t      low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    CornuTensor *x = images_of(o, &axes);
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    if (!margins(o, "top_padding", "bottom_padding", "target_height", s.extent[1], 1, &low[1],
                 &high[1]) ||
        !margins(o, "left_padding", "right_padding", "target_width", s.extent[2], 1, &low[2],
                 &high[2]))
        return NULL;
    return images_to(cornu_op_pad(x, low, high, 0.0), axes);
}

CornuTensor *cornu__operation_crop_images(const CornuOperands *o)
{
    Axes         axes;
    int64_t      low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    CornuTensor *x = images_of(o, &axes);
    if (!x) return NULL;
    CornuShape s = cornu_tensor_shape(x);
    if (!margins(o, "top_cropping", "bottom_cropping", "target_height", s.extent[1], -1, &low[1],
                 &high[1]) ||
        !margins(o, "left_cropping", "right_cropping", "target_width", s.extent[2], -1, &low[2],
                 &high[2]))
        return NULL;
    for (int i = 1; i < 3; i++) s.extent[i] -= low[i] + high[i];
    return images_to(cornu_op_slice(x, low, s.extent), axes);
}

/* ---- Patches ---- */

static bool pair(const CornuOperands *o, const char *name, const int64_t *usual, int64_t *to)
{
    int64_t   numbers[CORNU_MAX_RANK];
    const int count = cornu__argument_list(o, name, -1, numbers);
    /* TensorFlow's (1, height, width, 1), which Keras lets pass. */
    const bool whole = count == 4 && numbers[0] == 1 && numbers[3] == 1;
    for (int i = 0; i < 2; i++)
        to[i] = count == -1 ? usual[i] : count == 1 ? numbers[0] : numbers[i + whole];
    if (count != -2 && (count < 3 || whole) && to[0] > 0 && to[1] > 0) return true;
    if (count != -2) cornu__operation_refuse(o, "expected one or two positive numbers");
    return false;
}

/* Each patch as a pixel whose channels are the patch's pixels: a slice of the images for each of
 * its places. */
CornuTensor *cornu__operation_extract_patches(const CornuOperands *o)
{
    enum { MOST = 1024 };
    static const int64_t ones[2] = { 1, 1 };
    Axes         axes;
    int64_t      size[2], stride[2], dilation[2], low[2] = { 0 }, high[2] = { 0 }, count[2];
    CornuTensor *x = images_of(o, &axes), *parts[MOST], *y = x;
    if (!x || !pair(o, "size", ones, size) || !pair(o, "strides", size, stride) ||
        !pair(o, "dilation_rate", ones, dilation))
        return NULL;
    const bool same = !strcasecmp(cornu__argument_text(o, "padding", "valid"), "same");
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (size[i] - 1) * dilation[i] + 1;
        const int64_t n = cornu_tensor_shape(x).extent[i + 1];
        if (same) cornu__padding(CORNU_SAME, n, size[i], stride[i], dilation[i], &low[i], &high[i]);
        count[i] = (n + low[i] + high[i] - reach) / stride[i] + 1;
        if (n + low[i] + high[i] < reach || size[0] * size[1] > MOST)
            return cornu__operation_refuse(o, "a patch is larger than the images, or has more than "
                                           "1024 pixels");
        x = cornu__pad_axis(x, i + 1, low[i], high[i], 0.0);
    }
    for (int64_t i = 0; i < size[0]; i++)
        for (int64_t k = 0; k < size[1] && y; k++) {
            y = cornu__strided(x, 1, i * dilation[0], count[0], stride[0]);
            y = y ? cornu__strided(y, 2, k * dilation[1], count[1], stride[1]) : NULL;
            parts[i * size[1] + k] = y;
        }
    return y ? images_to(cornu_op_concat(parts, (int)(size[0] * size[1]), 3), axes) : NULL;
}

/* ---- Other places ---- */

static bool sampling_of(const CornuOperands *o, const char *usual, CornuSampling *sampling)
{
    static const struct { const char *name; CornuFillMode mode; } modes[] = {
        { "constant", CORNU_FILL_CONSTANT }, { "nearest", CORNU_FILL_NEAREST },
        { "wrap", CORNU_FILL_WRAP }, { "reflect", CORNU_FILL_REFLECT },
    };
    const char *mode = cornu__argument_text(o, "fill_mode", "constant");
    const char *interpolation = cornu__argument_text(o, "interpolation", usual);
    size_t      at = 0;
    /* What scipy calls "reflect" repeats the edge, as the layers' does. */
    while (at < sizeof modes / sizeof *modes && strcmp(mode, modes[at].name)) at++;
    sampling->fill_value = cornu__argument_number(o, "fill_value", 0.0);
    sampling->interpolation = strcmp(interpolation, "nearest") ? CORNU_BILINEAR : CORNU_NEAREST;
    if (at < sizeof modes / sizeof *modes &&
        (sampling->interpolation == CORNU_NEAREST || !strcmp(interpolation, "bilinear"))) {
        sampling->fill_mode = modes[at].mode;
        return true;
    }
    cornu__operation_refuse(o, "expected bilinear or nearest, and constant, nearest, wrap or "
                            "reflect");
    return false;
}

/* Pixel (x, y) of the result is at (a0 x + a1 y + a2, b0 x + b1 y + b2) / (c0 x + c1 y + 1) of the
 * image, for the numbers a0 a1 a2 b0 b1 b2 c0 c1. */
CornuTensor *cornu__operation_affine_transform(const CornuOperands *o)
{
    Axes          axes;
    CornuSampling sampling;
    CornuTensor  *x = images_of(o, &axes), *parts[8];
    CornuTensor  *given = x ? cornu__operand_tensor(o, "transform", 1) : NULL;
    CornuTensor  *t = cornu_op_convert(given, CORNU_F32);
    if (!t || !sampling_of(o, "bilinear", &sampling)) return NULL;
    if (cornu_tensor_shape(t).rank == 1) t = cornu__add_axis(t, 0);
    if (!t) return NULL;
    const CornuShape s = cornu_tensor_shape(t);
    const int64_t    B = cornu_tensor_shape(x).extent[0];
    if (s.rank != 2 || s.extent[1] != 8 || (s.extent[0] != 1 && s.extent[0] != B))
        return cornu__operation_refuse(o, "expected a transform of 8 numbers, or one for each "
                                       "image");
    t = cornu_op_broadcast(t, cornu_shape(B, 8));
    for (int i = 0; i < 8; i++) {
        parts[i] = cornu_op_reshape(cornu__slice_axis(t, 1, i, i + 1), cornu_shape(B, 1, 1));
        if (!parts[i]) return NULL;
    }
    /* Keras leaves c out: its matrix maps to three coordinates, of which the last is dropped. */
    return images_to(cornu__project(x, parts, parts + 3, NULL, &sampling), axes);
}

/* Row-major numbers of places (…), each along its axis, in the tensor; *inside of those that were
 * within it. */
static CornuTensor *flat_places(CornuTensor *const *at, CornuShape shape, CornuTensor **inside)
{
    CornuTensor *flat = NULL;
    *inside = NULL;
    for (int i = 0; i < shape.rank; i++) {
        const double most = (double)(shape.extent[i] - 1);
        CornuTensor *kept = cornu_op_clip(at[i], 0.0, most);
        CornuTensor *own = cornu_op_compare(at[i], CORNU_EQUAL, kept);
        kept = cornu_op_convert(kept, CORNU_I32);
        flat = flat ? cornu_op_add(cornu_op_scale(flat, most + 1.0), kept) : kept;
        *inside = *inside ? cornu_op_select(own, *inside, own) : own;
    }
    return flat;
}

/* The elements of a tensor at places (axes, …), one by one, or mixed from the 2^axes nearest. */
CornuTensor *cornu__operation_map_coordinates(const CornuOperands *o)
{
    enum { MOST_AXES = 4 };
    CornuTensor  *x = cornu__operand_tensor(o, "inputs", 0);
    CornuTensor  *at = cornu_op_convert(x ? cornu__operand_tensor(o, "coordinates", 1) : NULL,
                                        CORNU_F32);
    const int64_t order = cornu__argument_integer(o, "order", 1);
    const char   *mode = cornu__argument_text(o, "fill_mode", "constant");
    const double  fill = cornu__argument_number(o, "fill_value", 0.0);
    CornuTensor  *low[MOST_AXES], *part[MOST_AXES], *corner[MOST_AXES], *sum = NULL, *inside;
    if (!at) return NULL;
    const CornuType  type = cornu_tensor_type(x);
    const CornuShape s = type.shape;
    const bool       constant = !strcmp(mode, "constant");
    if (s.rank < 1 || s.rank > MOST_AXES || cornu_tensor_shape(at).extent[0] != s.rank ||
        (order != 0 && order != 1) || (!constant && strcmp(mode, "nearest")))
        return cornu__operation_refuse(o, "expected coordinates for each of at most 4 axes, order "
                                       "0 or 1, and constant or nearest");
    for (int i = 0; i < s.rank; i++) {
        CornuTensor *place = cornu__drop_axis(cornu__slice_axis(at, 0, i, i + 1), 0);
        low[i] = cornu_op_floor(order ? place : cornu_op_shift(place, 0.5));
        part[i] = cornu_op_subtract(place, low[i]);
    }
    CornuTensor *flat = cornu_op_reshape(cornu_op_convert(x, CORNU_F32),
                                         cornu_shape(cornu_shape_count(s), 1));
    for (int c = 0; c < (order ? 1 << s.rank : 1); c++) {
        CornuTensor *weight = NULL;
        for (int i = 0; i < s.rank; i++) {
            const bool   next = c >> i & 1;
            CornuTensor *share = next ? part[i]
                                      : cornu_op_shift(cornu_op_negative(part[i]), 1.0);
            corner[i] = next ? cornu_op_shift(low[i], 1.0) : low[i];
            weight = weight ? cornu_op_multiply(weight, share) : share;
        }
        CornuTensor *numbers = flat_places(corner, s, &inside);
        if (!numbers) return NULL;
        CornuTensor *value = cornu_op_reshape(cornu_op_gather(flat, numbers),
                                              cornu_tensor_shape(numbers));
        if (constant && value) value = cornu_op_select(inside, value, cornu__like(value, fill));
        if (order) value = cornu_op_multiply(value, weight);
        sum = sum ? cornu_op_add(sum, value) : value;
    }
    return cornu_op_convert(sum, type.dtype);
}

/* The blur of each channel by exp(-d^2 / 2 sigma^2). Keras' sizes and sigmas are those of columns,
 * then of rows. */
CornuTensor *cornu__operation_gaussian_blur(const CornuOperands *o)
{
    static const int64_t three[2] = { 3, 3 };
    Axes         axes;
    int64_t      size[2];
    CornuTensor *given = images_of(o, &axes), *sigma[2];
    CornuTensor *x = cornu_op_convert(given, CORNU_F32);
    if (!x || !pair(o, "kernel_size", three, size)) return NULL;
    const json_t *numbers = cornu__argument(o, "sigma", -1);
    for (size_t i = 0; i < 2; i++) {
        const json_t *number = json_is_array(numbers) ? json_array_get(numbers, i) : numbers;
        const double  value = number ? json_number_value(number) : 1.0;
        if (!(value > 0.0)) return cornu__operation_refuse(o, "expected a positive sigma");
        sigma[1 - i] = cornu_op_constant(o->graph, cornu_type(CORNU_F32, 1, 1, 1, 1), value);
    }
    x = cornu__blur(x, (const int64_t[]){ size[1], size[0] }, sigma);
    return x ? images_to(cornu_op_convert(x, cornu_tensor_type(given).dtype), axes) : NULL;
}

/* ---- Colours ---- */

static CornuTensor *channel(CornuTensor *x, int c) { return cornu__slice_axis(x, 3, c, c + 1); }

static CornuTensor *colours(const CornuOperands *o, Axes *axes)
{
    CornuTensor *x = images_of(o, axes);
    if (!x) return NULL;
    if (cornu_tensor_shape(x).extent[3] != 3)
        return cornu__operation_refuse(o, "expected three channels");
    return cornu_dtype_is_float(cornu_tensor_type(x).dtype)
               ? x : cornu__operation_refuse(o, "expected floats from 0 to 1");
}

/* Source: keras/src/backend/jax/image.py, rgb_to_hsv. */
CornuTensor *cornu__operation_rgb_to_hsv(const CornuOperands *o)
{
    Axes         axes;
    CornuTensor *x = colours(o, &axes);
    if (!x) return NULL;
    CornuTensor *r = channel(x, 0), *g = channel(x, 1), *b = channel(x, 2);
    CornuTensor *value = cornu_op_reduce_max(x, 1 << 3, true);
    CornuTensor *least = cornu_op_negative(cornu_op_reduce_max(cornu_op_negative(x), 1 << 3, true));
    CornuTensor *range = cornu_op_subtract(value, least), *zero = cornu__like(range, 0.0);
    CornuTensor *one = cornu__like(range, 1.0);
    if (!one) return NULL;
    CornuTensor *some = cornu_op_compare(range, CORNU_GREATER, zero);
    CornuTensor *lit = cornu_op_compare(value, CORNU_GREATER, zero);
    CornuTensor *saturation = cornu_op_divide(range, cornu_op_select(lit, value, one));
    saturation = cornu_op_select(lit, saturation, zero);
    CornuTensor *width = cornu_op_select(some, range, one);
    CornuTensor *in_red = cornu_op_divide(cornu_op_subtract(g, b), width);
    CornuTensor *in_green = cornu_op_shift(cornu_op_divide(cornu_op_subtract(b, r), width), 2.0);
    CornuTensor *in_blue = cornu_op_shift(cornu_op_divide(cornu_op_subtract(r, g), width), 4.0);
    CornuTensor *hue = cornu_op_select(cornu_op_compare(g, CORNU_EQUAL, value), in_green, in_blue);
    hue = cornu_op_select(cornu_op_compare(r, CORNU_EQUAL, value), in_red, hue);
    hue = cornu_op_scale(hue, 1.0 / 6.0);
    hue = hue ? cornu_op_select(cornu_op_compare(hue, CORNU_LESS, zero), cornu_op_shift(hue, 1.0),
                                hue) : NULL;
    hue = cornu_op_select(some, hue, zero);
    return images_to(cornu_op_concat((CornuTensor *[]){ hue, saturation, value }, 3, 3), axes);
}

/* value (1 - saturation clip(2 - |h - centre|)): Source: the same file, hsv_to_rgb. */
CornuTensor *cornu__operation_hsv_to_rgb(const CornuOperands *o)
{
    static const double centres[] = { 3.0, 2.0, 4.0 };
    Axes         axes;
    CornuTensor *x = colours(o, &axes), *parts[3];
    if (!x) return NULL;
    CornuTensor *h = cornu_op_scale(channel(x, 0), 6.0), *s = channel(x, 1), *v = channel(x, 2);
    CornuTensor *dark = cornu_op_multiply(v, cornu_op_shift(cornu_op_negative(s), 1.0));
    for (int c = 0; c < 3; c++) {
        CornuTensor *off = cornu_op_absolute(cornu_op_shift(h, -centres[c]));
        CornuTensor *part = c == 0 ? cornu_op_shift(off, -1.0)
                                   : cornu_op_shift(cornu_op_negative(off), 2.0);
        part = cornu_op_clip(part, 0.0, 1.0);
        parts[c] = cornu_op_add(dark, cornu_op_multiply(cornu_op_multiply(v, s), part));
    }
    return images_to(cornu_op_concat(parts, 3, 3), axes);
}
