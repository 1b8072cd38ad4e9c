/* Changes of color. Source: keras/src/layers/preprocessing/image_preprocessing. */
#include "image_internal.h"

/* ---- Every channel alike ---- */

CornuTensor *cornu__change_contrast(CornuTensor *x, CornuDraws *draws, const double factor[2],
                                    const double range[2])
{
    const double reach[2] = { 1.0 - cornu__end(factor, 0), 1.0 + cornu__end(factor, 1) };
    CornuTensor *mean = cornu_op_reduce_mean(x, 1 << 1 | 1 << 2, true);
    CornuTensor *apart = cornu_op_multiply(cornu_op_subtract(x, mean),
                                           cornu__draw_between(draws, reach));
    return cornu__clip_to(cornu_op_add(apart, mean), range);
}

CornuTensor *cornu__change_brightness(CornuTensor *x, CornuDraws *draws, const double factor[2],
                                      const double range[2])
{
    const double width = cornu__end(range, 1) - cornu__end(range, 0);
    return cornu__clip_to(cornu_op_add(x, cornu_op_scale(cornu__draw_between(draws, factor),
                                                         width)), range);
}

CornuTensor *cornu__invert(CornuTensor *x, CornuDraws *draws, const double factor[2],
                           const double range[2])
{
    CornuTensor *inverted = cornu_op_shift(cornu_op_negative(x), cornu__end(range, 1));
    return cornu_op_select(cornu__draw_chance(draws, factor), inverted, x);
}

/* Weights 1, the middle one 5, of a sum of 13; pixels outside the image are 0. */
CornuTensor *cornu__sharpen(CornuTensor *x, CornuDraws *draws, const double factor[2],
                            const double range[2])
{
    if (!x) return NULL;
    const int64_t C = cornu_tensor_shape(x).extent[3], around[4] = { 1, 1, 0, 0 };
    CornuTensor  *filter = cornu_op_constant(cornu_tensor_graph(x),
                                             cornu_type(CORNU_F32, 1, 1, 1, C), 5.0 / 13.0);
    filter = cornu_op_pad(filter, around, around, 1.0 / 13.0);
    CornuTensor *smooth = cornu_op_conv2d(x, filter, &(CornuConvolution){
        .strides = { 1, 1 }, .low = { 1, 1 }, .high = { 1, 1 }, .groups = C });
    CornuTensor *part = cornu_op_scale(cornu__draw_between(draws, factor), -2.0);
    part = cornu_op_multiply(cornu_op_shift(part, 1.0), cornu_op_subtract(smooth, x));
    return cornu__clip_to(cornu_op_add(x, part), range);
}

/* floor(x / 2^s) 2^s of bytes, s = 8 minus the number of bits. */
CornuTensor *cornu__posterize(CornuTensor *x, CornuDraws *draws, const int64_t factor[2],
                              const double range[2])
{
    const double  choices = (double)(factor[1] > factor[0] ? factor[1] - factor[0] : 1);
    CornuTensor  *bits = cornu_op_floor(cornu_op_scale(cornu__draw(draws), choices));
    bits = cornu_op_shift(bits, (double)factor[0]);
    if (!bits) return NULL;
    CornuTensor *unit = cornu_op_constant_like(bits, 128.0);   /* of 1 bit */
    for (int64_t k = 2; k <= 8; k++)
        unit = cornu_op_select(cornu__below(bits, (double)k - 0.5), unit,
                               cornu_op_constant_like(bits, (double)(1 << (8 - k))));
    x = cornu_op_floor(cornu_op_clip(cornu__map_range(x, range, cornu__bytes), 0.0, 255.0));
    x = cornu_op_multiply(cornu_op_floor(cornu_op_divide(x, unit)), unit);
    return cornu__map_range(x, cornu__bytes, range);
}

/* ---- RGB ---- */

/* Channel i of (B, H, W, C), with an extent of 1. */
static CornuTensor *channel(CornuTensor *x, int64_t i)
{
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_slice(x, (const int64_t[]){ 0, 0, 0, i },
                          (const int64_t[]){ s.extent[0], s.extent[1], s.extent[2], 1 });
}

static bool is_rgb(CornuTensor *x)
{
    CornuText text;
    if (!x) return false;
    const CornuShape shape = cornu_tensor_shape(x);
    if (shape.extent[3] == 3) return true;
    cornu__fail_null(CORNU_ERR_SHAPE, "the images are %s, expected the 3 channels red, green and "
                     "blue", cornu_shape_print(&text, shape));
    return false;
}

/* (B, H, W, 1), of one channel as it is. */
CornuTensor *cornu__grayscale(CornuTensor *x)
{
    static const double weights[3] = { 0.2989, 0.5870, 0.1140 };
    if (x && cornu_tensor_shape(x).extent[3] == 1) return x;
    if (!is_rgb(x)) return NULL;
    CornuTensor *sum = cornu_op_scale(channel(x, 0), weights[0]);
    for (int i = 1; i < 3; i++) sum = cornu_op_add(sum, cornu_op_scale(channel(x, i), weights[i]));
    return sum;
}

CornuTensor *cornu__degenerate(CornuTensor *x, CornuDraws *draws, const double factor[2],
                               const double range[2])
{
    CornuTensor *apart = cornu_op_subtract(cornu__grayscale(x), x);
    apart = cornu_op_multiply(apart, cornu__draw_between(draws, factor));
    return cornu__clip_to(cornu_op_add(x, apart), range);
}

/* Hue, saturation and value. Source: keras/src/backend/jax/image.py, rgb_to_hsv. */
static bool to_hsv(CornuTensor *x, CornuTensor *hsv[3])
{
    if (!is_rgb(x)) return false;
    CornuTensor *zero = cornu_op_constant_like(x, 0.0);
    x = cornu_op_select(cornu__below(cornu_op_absolute(x), 0x1p-23), zero, x);
    CornuTensor *r = channel(x, 0), *g = channel(x, 1), *b = channel(x, 2);
    CornuTensor *most = cornu_op_maximum(cornu_op_maximum(r, g), b);
    CornuTensor *span = cornu_op_subtract(most, cornu_op_minimum(cornu_op_minimum(r, g), b));
    if (!span) return false;
    CornuTensor *none = cornu_op_constant_like(span, 0.0), *one = cornu_op_constant_like(span, 1.0);
    CornuTensor *lit = cornu__less(none, most), *colored = cornu__less(none, span);
    CornuTensor *s = cornu_op_divide(span, cornu_op_select(lit, most, one));
    CornuTensor *unit = cornu_op_scale(cornu_op_select(colored, span, one), 6.0);
    unit = cornu_op_divide(one, unit);
    CornuTensor *of_green = cornu_op_multiply(unit, cornu_op_subtract(b, r));
    CornuTensor *of_blue = cornu_op_multiply(unit, cornu_op_subtract(r, g));
    CornuTensor *hue = cornu_op_select(cornu_op_compare(most, CORNU_EQUAL, g),
                                       cornu_op_shift(of_green, 2.0 / 6.0),
                                       cornu_op_shift(of_blue, 4.0 / 6.0));
    hue = cornu_op_select(cornu_op_compare(most, CORNU_EQUAL, r),
                          cornu_op_multiply(unit, cornu_op_subtract(g, b)), hue);
    CornuTensor *turn = cornu_op_select(cornu__less(hue, none), one, none);
    hsv[0] = cornu_op_add(cornu_op_select(colored, hue, none), turn);
    hsv[1] = cornu_op_select(lit, s, none);
    hsv[2] = most;
    return hsv[0] && hsv[1];
}

/* value (1 - saturation + saturation d), d = clip(offset + sign |6 hue - place|, 0, 1) */
static CornuTensor *primary(CornuTensor *const hsv[3], CornuTensor *turned, double place,
                            double sign, double offset)
{
    CornuTensor *d = cornu_op_absolute(cornu_op_shift(turned, -place));
    d = cornu_op_clip(cornu_op_shift(cornu_op_scale(d, sign), offset), 0.0, 1.0);
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(hsv[1]), 1.0);
    return cornu_op_multiply(hsv[2], cornu_op_add(rest, cornu_op_multiply(hsv[1], d)));
}

/* Source: keras/src/backend/jax/image.py, hsv_to_rgb. */
static CornuTensor *to_rgb(CornuTensor *const hsv[3])
{
    CornuTensor *turned = cornu_op_subtract(hsv[0], cornu_op_floor(hsv[0]));
    turned = cornu_op_scale(turned, 6.0);
    CornuTensor *rgb[3] = { primary(hsv, turned, 3.0, 1.0, -1.0),
                            primary(hsv, turned, 2.0, -1.0, 2.0),
                            primary(hsv, turned, 4.0, -1.0, 2.0) };
    return rgb[0] && rgb[1] && rgb[2] ? cornu_op_concat(rgb, 3, 3) : NULL;
}

CornuTensor *cornu__change_saturation(CornuTensor *x, CornuDraws *draws, const double factor[2],
                                      const double range[2])
{
    CornuTensor *hsv[3], *f = cornu__draw_between(draws, factor);
    if (!to_hsv(x, hsv)) return NULL;
    f = cornu_op_divide(f, cornu_op_shift(cornu_op_negative(f), 1.0 + 1e-7));
    hsv[1] = cornu__clip_to(cornu_op_multiply(hsv[1], f), range);
    return to_rgb(hsv);
}

CornuTensor *cornu__change_hue(CornuTensor *x, CornuDraws *draws, const double factor[2],
                               const double range[2])
{
    static const double unit[2] = { (double)CORNU_ZERO, 1.0 };
    CornuTensor        *hsv[3];
    CornuTensor        *way = cornu__below(cornu__draw(draws), 0.5);
    CornuTensor        *f = cornu_op_scale(cornu__draw_between(draws, factor), 0.5);
    if (!to_hsv(cornu__map_range(x, range, unit), hsv)) return NULL;
    CornuTensor *hue = cornu_op_add(hsv[0], cornu_op_select(way, f, cornu_op_negative(f)));
    if (!hue) return NULL;
    CornuTensor *one = cornu_op_constant_like(hue, 1.0);
    hue = cornu_op_select(cornu__less(one, hue), cornu_op_shift(hue, -1.0), hue);
    hsv[0] = cornu_op_select(cornu__below(hue, 0.0), cornu_op_shift(hue, 1.0), hue);
    return cornu__map_range(cornu_op_clip(to_rgb(hsv), 0.0, 1.0), unit, range);
}
