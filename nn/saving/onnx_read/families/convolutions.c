/* Conv and ConvTranspose. ONNX has (B, C, …) and filters (F, C / G, …), Cornu's ops have channels
 * last. */
#include "window_internal.h"

#include "../../../../device/integer_internal.h"

#include <string.h>

/* Filters (F, C, …) as (…, C, F), and their last two axes as 2-D ones. */
static CornuTensor *filter_of(const CornuReadStep *step, CornuTensor *w)
{
    int order[CORNU_MAX_RANK];
    if (!w) return NULL;
    cornu__filter_shape(cornu_tensor_shape(w), order);
    CornuTensor *filter = step->in[1].filter;
    if (!filter) filter = cornu_op_transpose(w, order);
    return cornu__rank_of(w) == 3 ? cornu__add_axis(filter, 0) : filter;
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

/* x (B, C, …) with channels last and, of one axis, a height of 1; and y back. */
static CornuTensor *images_of(CornuTensor *x)
{
    const int rank = cornu__rank_of(x);
    x = cornu__read_channels_last(x);
    return rank == 3 ? cornu__add_axis(x, 1) : x;
}

static CornuTensor *from_images(CornuTensor *y, int axes)
{
    return cornu__read_channels_first(axes == 1 ? cornu__drop_axis(y, 1) : y);
}

/* x (B, D, H, W, C) as (B D, H, W, C), and back. */
static CornuTensor *folded(CornuTensor *x)
{
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(s.extent[0] * s.extent[1], s.extent[2], s.extent[3],
                                           s.extent[4]));
}

static CornuTensor *unfolded(CornuTensor *x, int64_t b, int64_t d)
{
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(b, d, s.extent[1], s.extent[2], s.extent[3]));
}

/* Planes of zeros before and after; negative numbers remove planes. */
static CornuTensor *padded_depth(CornuTensor *x, int64_t low, int64_t high)
{
    const int64_t first = low < 0 ? -low : 0, last = high < 0 ? -high : 0;
    const int64_t depth = cornu__extent_of(x, 1);
    if (x && first + last > depth)
        return cornu__fail_null(CORNU_ERR_SHAPE, "the padding removes all of %lld planes",
                                (long long)depth);
    if (first || last) x = cornu__part_of(x, 1, first, depth - first - last);
    return cornu__pad_axis(x, 1, larger(low, 0), larger(high, 0), 0.0);
}

/* The filter of depth d, (h, w, C, F). */
static CornuTensor *layer_of(CornuTensor *filter, int64_t d)
{
    return cornu__drop_axis(cornu__part_of(filter, 0, d, 1), 0);
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
    if (cornu__rank_of(w) != cornu__rank_of(x))
        return cornu__fail(CORNU_ERR_SHAPE, "x has rank %d and the filters %d", cornu__rank_of(x),
                           cornu__rank_of(w));
    const CornuShape filters = cornu_tensor_shape(w);
    CORNU__TRY(cornu__read_window(step, cornu_tensor_shape(x), filters.extent + 2, &window));
    const CornuConvolution plane = plane_of(&window, cornu__whole(step, "group", 1));
    x = images_of(x);
    CornuTensor *filter = filter_of(step, w);
    CornuTensor *y = window.axes == 3 ? conv3d(x, filter, &window, &plane)
                                      : cornu_op_conv2d(x, filter, &plane);
    return cornu__result(step, 0, from_images(with_bias(step, y), window.axes));
}

/* ---- ConvTranspose ---- */

/* Fills window->results, low and high. Source: docs/Operators.md, ConvTranspose. */
static CornuStatus transposed_window(const CornuReadStep *step, CornuShape x, CornuShape w,
                                     CornuReadWindow *window)
{
    const char *mode = cornu__word(step, "auto_pad", "NOTSET");
    int64_t     pads[2 * CORNU_READ_AXES] = { 0 }, shape[CORNU_MAX_RANK], more[CORNU_READ_AXES];
    const int   axes = x.rank - 2;
    if (axes < 1 || axes > CORNU_READ_AXES || w.rank != x.rank)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "x has rank %d and the filters %d", x.rank,
                           w.rank);
    window->axes = axes;
    CORNU__TRY(cornu__list_for(step, "strides", axes, 1, 1, window->strides));
    CORNU__TRY(cornu__list_for(step, "dilations", axes, 1, 1, window->dilation));
    CORNU__TRY(cornu__list_for(step, "output_padding", axes, 0, 0, more));
    CORNU__TRY(cornu__list_for(step, "pads", 2 * axes, 0, -INT32_MAX, pads));
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
    if (stride == 1) return x;
    CornuShape wide = cornu_tensor_shape(x);
    wide.extent[1] *= stride;
    return cornu_op_reshape(cornu__pad_axis(cornu__add_axis(x, 2), 2, 0, stride - 1, 0.0), wide);
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
    CORNU__TRY(transposed_window(step, cornu_tensor_shape(x), cornu_tensor_shape(w), &window));
    const int              axes = window.axes;
    const CornuConvolution plane = plane_of(&window, cornu__whole(step, "group", 1));
    x = images_of(x);
    CornuTensor *filter = filter_of(step, w);
    CornuTensor *y = axes == 3 ? transposed3d(x, filter, &window, &plane)
                   : transposed_plane(x, filter, axes == 1 ? 1 : window.results[0],
                                      window.results[axes - 1], &plane);
    const int height = axes == 1;
    for (int i = 0; i < axes; i++)
        if (window.extra[i]) y = cornu__pad_axis(y, 1 + height + i, 0, window.extra[i], 0.0);
    return cornu__result(step, 0, from_images(with_bias(step, y), axes));
}

const CornuReadRow cornu__read_convolutions[] = {
    { "Conv", read_conv, .operands = 2 }, { "ConvTranspose", read_conv_transpose, .operands = 2 },
    { 0 },
};
