/* Conv and ConvTranspose. ONNX has (B, C, …) and filters (F, C / G, …), Cornu's ops have channels
 * last. */
#include "window_internal.h"

#include "../../../../device/integer_internal.h"

#include <string.h>

/* The tensor as (…, height, width, last): one axis gets a height of 1. */
static CornuTensor *with_height(CornuTensor *x, int axis, int axes)
{
    if (!x || axes != 1) return x;
    const CornuShape shape = cornu_tensor_shape(x);
    int64_t          extents[CORNU_MAX_RANK];
    for (int i = 0; i <= shape.rank; i++)
        extents[i] = i == axis ? 1 : shape.extent[i < axis ? i : i - 1];
    return cornu__reshaped(x, shape.rank + 1, extents);
}

/* Filters (F, C, …) as (…, C, F), and their last two axes as 2-D ones. */
static CornuTensor *filter_of(const CornuReadStep *step, CornuTensor *w)
{
    int order[CORNU_MAX_RANK];
    if (!w) return NULL;
    cornu__filter_shape(cornu_tensor_shape(w), order);
    CornuTensor *filter = step->in[1].filter;
    if (!filter) filter = cornu_op_transpose(w, order);
    return with_height(filter, 0, cornu__rank_of(w) - 2);
}

/* The last two axes of the window. */
static CornuConvolution plane_of(const CornuReadWindow *window, int64_t groups)
{
    CornuConvolution plane = { .strides = { 1, 1 }, .dilation = { 1, 1 }, .groups = groups };
    for (int i = 0; i < 2 && i < window->axes; i++) {
        const int from = window->axes - 1 - i;
        plane.strides[1 - i] = window->strides[from];
        plane.dilation[1 - i] = window->dilation[from];
        plane.low[1 - i] = window->low[from];
        plane.high[1 - i] = window->high[from];
    }
    return plane;
}

static CornuTensor *with_bias(CornuReadStep *step, CornuTensor *y)
{
    CornuTensor *bias = cornu__optional(step, 2);
    return bias ? cornu_op_add(y, bias) : y;
}

/* x (B, D, H, W, C) as (B D, H, W, C), and back. */
static CornuTensor *folded(CornuTensor *x)
{
    if (!x) return NULL;
    const int64_t *e = (const int64_t[]){ cornu__extent_of(x, 0), cornu__extent_of(x, 1),
                                          cornu__extent_of(x, 2), cornu__extent_of(x, 3),
                                          cornu__extent_of(x, 4) };
    return cornu__reshaped(x, 4, (const int64_t[]){ e[0] * e[1], e[2], e[3], e[4] });
}

static CornuTensor *unfolded(CornuTensor *x, int64_t b, int64_t d)
{
    return cornu__reshaped(x, 5, (const int64_t[]){ b, d, cornu__extent_of(x, 1),
                                                    cornu__extent_of(x, 2),
                                                    cornu__extent_of(x, 3) });
}

/* Planes of zeros before and after; negative numbers remove planes. */
static CornuTensor *padded_depth(CornuTensor *x, int64_t low, int64_t high)
{
    const int64_t before[CORNU_MAX_RANK] = { 0, low > 0 ? low : 0 };
    const int64_t after[CORNU_MAX_RANK] = { 0, high > 0 ? high : 0 };
    const int64_t first = low < 0 ? -low : 0, last = high < 0 ? -high : 0;
    const int64_t depth = cornu__extent_of(x, 1);
    if (x && first + last > depth)
        return cornu__fail_null(CORNU_ERR_SHAPE, "the padding removes all of %lld planes",
                                (long long)depth);
    if (first || last) x = cornu__part_of(x, 1, first, depth - first - last);
    return x ? cornu_op_pad(x, before, after, 0.0) : NULL;
}

/* The filter of depth d, (h, w, C, F). */
static CornuTensor *layer_of(CornuTensor *filter, int64_t d)
{
    if (!filter) return NULL;
    const CornuShape s = cornu_tensor_shape(filter);
    return cornu__reshaped(cornu__part_of(filter, 0, d, 1), 4, s.extent + 1);
}

/* Over three axes: the sum over the depth of the filter of convolutions of planes. */
static CornuTensor *conv3d(CornuTensor *x, CornuTensor *filter, const CornuReadWindow *window,
                           const CornuConvolution *plane)
{
    CornuTensor *sum = NULL;
    x = padded_depth(x, window->low[0], window->high[0]);
    for (int64_t d = 0; d < window->kernel[0]; d++) {
        CornuTensor *part = cornu__strided(x, 1, d * window->dilation[0], window->results[0],
                                           window->strides[0]);
        part = cornu_op_conv2d(folded(part), layer_of(filter, d), plane);
        sum = sum ? cornu_op_add(sum, part) : part;
    }
    return sum ? unfolded(sum, cornu__extent_of(x, 0), window->results[0]) : NULL;
}

static CornuStatus read_conv(CornuReadStep *step)
{
    CornuTensor    *x = cornu__operand_of(step, 0), *w = cornu__operand_of(step, 1);
    CornuReadWindow window;
    if (!x || !w) return cornu_error_take();
    if (cornu__rank_of(w) != cornu__rank_of(x))
        return cornu__fail(CORNU_ERR_SHAPE, "x has rank %d and the filters %d", cornu__rank_of(x),
                           cornu__rank_of(w));
    CORNU__TRY(cornu__read_window(step, cornu_tensor_shape(x),
                                  (const int64_t[]){ cornu__extent_of(w, 2),
                                      cornu__rank_of(w) > 3 ? cornu__extent_of(w, 3) : 0,
                                      cornu__rank_of(w) > 4 ? cornu__extent_of(w, 4) : 0 },
                                  &window));
    const CornuConvolution plane = plane_of(&window, cornu__whole(step, "group", 1));
    x = with_height(cornu__read_channels_last(x), 1, window.axes);
    CornuTensor *filter = filter_of(step, w);
    CornuTensor *y = window.axes == 3 ? conv3d(x, filter, &window, &plane)
                                      : cornu_op_conv2d(x, filter, &plane);
    y = with_bias(step, y);
    if (y && window.axes == 1)
        y = cornu__reshaped(y, 3, (const int64_t[]){ cornu__extent_of(y, 0), cornu__extent_of(y, 2),
                                                     cornu__extent_of(y, 3) });
    return cornu__result(step, 0, cornu__read_channels_first(y));
}

/* ---- ConvTranspose ---- */

/* Fills window->results, low and high. Source: docs/Operators.md, ConvTranspose. */
static CornuStatus transposed_window(const CornuReadStep *step, CornuShape x, CornuShape w,
                                     CornuReadWindow *window)
{
    static const char *const lists[] = { "strides", "dilations", "output_padding" };
    const char *mode = cornu__word(step, "auto_pad", "NOTSET");
    int64_t     pads[2 * CORNU_READ_AXES] = { 0 }, shape[CORNU_MAX_RANK], more[CORNU_READ_AXES];
    int64_t    *to[] = { window->strides, window->dilation, more };
    int         count;
    const int   axes = x.rank - 2;
    if (axes < 1 || axes > CORNU_READ_AXES || w.rank != x.rank)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "x has rank %d and the filters %d", x.rank,
                           w.rank);
    window->axes = axes;
    for (int i = 0; i < 3; i++) {
        CORNU__TRY(cornu__integers(step, lists[i], to[i], axes, &count));
        for (int k = 0; k < axes; k++) {
            if (count < 0) to[i][k] = i < 2;
            else if (count != axes || to[i][k] < (i < 2) || to[i][k] > INT32_MAX)
                return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of %d", lists[i], axes);
        }
    }
    CORNU__TRY(cornu__integers(step, "pads", pads, 2 * axes, &count));
    int shapes;
    CORNU__TRY(cornu__integers(step, "output_shape", shape, CORNU_MAX_RANK, &shapes));
    for (int i = 0; i < axes; i++) {
        const int64_t stride = window->strides[i], n = x.extent[i + 2];
        const int64_t span = (w.extent[i + 2] - 1) * window->dilation[i] + 1;
        const int64_t whole = stride * (n - 1) + more[i] + span;
        window->kernel[i] = w.extent[i + 2];
        window->low[i] = pads[i];
        window->high[i] = pads[i + axes];
        if (shapes >= axes || !strncmp(mode, "SAME", 4)) {
            const int64_t wanted = shapes >= axes ? shape[shapes - axes + i] : n * stride;
            const int64_t total = whole - wanted;
            const bool    upper = !strcmp(mode, "SAME_UPPER");
            const int64_t half = total >= 0 ? total / 2 : 0;
            window->low[i] = upper || total < 0 ? half : total - half;
            window->high[i] = total - window->low[i];
        }
        window->results[i] = whole - window->low[i] - window->high[i];
        if (window->results[i] < 1 || window->low[i] < -INT32_MAX || window->low[i] > INT32_MAX)
            return cornu__fail(CORNU_ERR_SHAPE, "axis %d would have %lld elements", i + 2,
                               (long long)window->results[i]);
        /* The convolution whose gradient this is must give n. */
        window->high[i] -= more[i];
        window->extra[i] = 0;
        if (more[i] >= stride) {
            window->extra[i] = more[i];
            window->high[i] += more[i];
            window->results[i] -= more[i];
        }
    }
    return CORNU_OK;
}

/* The gradient of a convolution whose result is x. What its windows do not reach is 0. */
static CornuTensor *transposed_plane(CornuTensor *x, CornuTensor *filter, int64_t height,
                                     int64_t width, const CornuConvolution *plane)
{
    CornuConvolution whole = *plane;
    int64_t high[2] = { 0 };
    /* A negative end adds rows that no window reaches. */
    for (int i = 0; i < 2; i++)
        if (whole.high[i] < 0) {
            high[i] = -whole.high[i];
            whole.high[i] = 0;
        }
    CornuTensor *y = cornu_op_conv2d_grad_input(x, filter, height - high[0], width - high[1],
                                                &whole);
    const int64_t before[CORNU_MAX_RANK] = { 0 };
    const int64_t after[CORNU_MAX_RANK] = { 0, high[0], high[1] };
    return y && (high[0] || high[1]) ? cornu_op_pad(y, before, after, 0.0) : y;
}

/* x with stride - 1 zeros after each plane. */
static CornuTensor *spread(CornuTensor *x, int64_t stride)
{
    if (!x || stride == 1) return x;
    const CornuShape s = cornu_tensor_shape(x);
    const int64_t    from[] = { s.extent[0], s.extent[1], 1, s.extent[2], s.extent[3],
                                s.extent[4] };
    const int64_t    to[] = { s.extent[0], s.extent[1] * stride, s.extent[2], s.extent[3],
                              s.extent[4] };
    const int64_t    none[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0, 0, stride - 1 };
    x = cornu__reshaped(x, 6, from);
    return cornu__reshaped(x ? cornu_op_pad(x, none, high, 0.0) : NULL, 5, to);
}

static CornuTensor *transposed3d(CornuTensor *x, CornuTensor *filter,
                                 const CornuReadWindow *window, const CornuConvolution *plane)
{
    CornuTensor  *sum = NULL;
    const int64_t b = cornu__extent_of(x, 0), depth = cornu__extent_of(x, 1);
    const int64_t spread_depth = depth * window->strides[0];
    for (int64_t d = 0; d < window->kernel[0]; d++) {
        CornuTensor  *part = transposed_plane(folded(x), layer_of(filter, d), window->results[1],
                                              window->results[2], plane);
        const int64_t low = d * window->dilation[0] - window->low[0];
        part = spread(unfolded(part, b, depth), window->strides[0]);
        part = padded_depth(part, low, window->results[0] - spread_depth - low);
        sum = sum ? cornu_op_add(sum, part) : part;
    }
    return sum;
}

static CornuStatus read_conv_transpose(CornuReadStep *step)
{
    CornuTensor    *x = cornu__operand_of(step, 0), *w = cornu__operand_of(step, 1);
    CornuReadWindow window = { 0 };
    if (!x || !w) return cornu_error_take();
    CORNU__TRY(transposed_window(step, cornu_tensor_shape(x), cornu_tensor_shape(w), &window));
    const int              axes = window.axes;
    const CornuConvolution plane = plane_of(&window, cornu__whole(step, "group", 1));
    x = with_height(cornu__read_channels_last(x), 1, axes);
    CornuTensor *filter = filter_of(step, w);
    CornuTensor *y = axes == 3 ? transposed3d(x, filter, &window, &plane)
                   : transposed_plane(x, filter, axes == 1 ? 1 : window.results[0],
                                      window.results[axes - 1], &plane);
    if (y && axes == 1)
        y = cornu__reshaped(y, 3, (const int64_t[]){ cornu__extent_of(y, 0), cornu__extent_of(y, 2),
                                                     cornu__extent_of(y, 3) });
    int64_t low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    bool    pads = false;
    for (int i = 0; i < axes; i++) pads |= (high[i + 1] = window.extra[i]) > 0;
    if (pads && y) y = cornu_op_pad(y, low, high, 0.0);
    return cornu__result(step, 0, cornu__read_channels_first(with_bias(step, y)));
}

const CornuReadRow cornu__read_convolutions[] = {
    { "Conv", read_conv, .operands = 2 }, { "ConvTranspose", read_conv_transpose, .operands = 2 },
    { 0 },
};
