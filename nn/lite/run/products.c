/* Convolutions and fully connected layers. Sources of scales: LiteRT, tflite/kernels/kernel_util.cc
 * PopulateConvolutionQuantizationParams, fully_connected.cc, transpose_conv.cc. */
#include <math.h>

#include "../../../device/memory_internal.h"
#include "steps.h"

static const CornuLiteTensor *filter_of(const CornuLiteStep *step)
{
    return cornu__step_in(step, step->product.weights);
}

/* ---- Scales and operands ---- */

/* Factors of `filters` outputs, of which the filter has scales along an axis, or one. */
static CornuStatus scale_outputs(CornuLiteStep *step, int64_t filters)
{
    const CornuLiteTensor       *filter = filter_of(step);
    const CornuLiteQuantization *q = &filter->quantization;
    if (filter->dtype != CORNU_LITE_I8 || !filter->data)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected a constant of i8",
                           filter->name);
    if ((int64_t)filter->bytes != cornu__lite_count(filter->shape, 1))
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s: %zu bytes do not fit its shape",
                           filter->name, filter->bytes);
    if (q->count != 1 && (q->count != filters || q->axis != step->product.axis))
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s has %d scales along axis %d, expected 1 or "
                           "%lld along axis %d", filter->name, q->count, q->axis,
                           (long long)filters, step->product.axis);
    step->multipliers = cornu__allocate((size_t)filters, sizeof *step->multipliers);
    step->factors = cornu__allocate((size_t)filters, sizeof *step->factors);
    if (!step->multipliers || !step->factors) return CORNU_ERR_MEMORY;
    for (int64_t f = 0; f < filters; f++) {
        const int   i = q->count == 1 ? 0 : (int)f;
        const float scale = q->scales[i];
        if (!(scale >= 0) || !isfinite(scale) || q->zero_points[i] != 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected scales of at least 0 "
                               "and zero points 0", filter->name);
        step->factors[f] = (double)step->x.scale * (double)scale / (double)step->y.scale;
        step->multipliers[f] = cornu__multiplier(step->factors[f]);
    }
    return CORNU_OK;
}

/* What all products have in common; the window is set. */
static CornuStatus set_conv(CornuLiteStep *step)
{
    const CornuShape       filter = filter_of(step)->shape;
    const CornuLiteTensor *bias = cornu__step_in(step, step->product.bias);
    const int64_t          filters = step->window.out_channels;
    CORNU__TRY(scale_outputs(step, filters));
    step->conv = (CornuInt8Conv){
        .window = step->window, .filter_channels = filter.extent[filter.rank - 1],
        .x_zero = step->x.zero, .y_zero = step->y.zero, .bounds = step->bounds,
        .filter = filter_of(step)->data, .multipliers = step->multipliers
    };
    if (!bias) return CORNU_OK;
    step->conv.bias = cornu__step_integers(bias, filters);
    return step->conv.bias ? CORNU_OK : CORNU_ERR_UNSUPPORTED;
}

/* ---- Convolutions ---- */

static CornuStatus set_window(CornuLiteStep *step)
{
    const CornuLiteTensor *filter = filter_of(step);
    CORNU__TRY(cornu__step_expect_rank(filter, 4));
    return cornu__step_window(step, filter->shape.extent[1], filter->shape.extent[2]);
}

static CornuStatus expect_channels(const CornuLiteStep *step, bool fit)
{
    CornuText shape;
    if (fit) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "filter %s of %lld channels to %lld",
                       cornu_shape_print(&shape, filter_of(step)->shape),
                       (long long)step->window.in_channels, (long long)step->window.out_channels);
}

/* Of all images of the block. */
static CornuInt8Conv conv_of(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    CornuInt8Conv conv = step->conv;
    conv.window.batch = bound->y_extents[0];
    return conv;
}

static void run_packed(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_conv2d(step->packed, bound->y_extents[0], bound->x, bound->y, bound->scratch,
                       bound->part);
}

static void run_groups(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Conv conv = conv_of(step, bound);
    cornu__int8_conv2d_reference(&conv, bound->x, bound->y);
}

static int64_t multiply_adds_of(const CornuLiteStep *step)
{
    const int64_t filters = step->window.out_channels;
    return (int64_t)filter_of(step)->bytes / filters * cornu__lite_count(step->out->shape, 1);
}

static CornuStatus pack(CornuLiteStep *step)
{
    step->packed = cornu__int8_pack_create(&step->conv);
    if (!step->packed) return CORNU_ERR_MEMORY;
    step->scratch = cornu__int8_conv2d_scratch(step->packed);
    step->work = multiply_adds_of(step);
    return CORNU_OK;
}

CornuStatus cornu__step_prepare_conv2d(CornuLiteStep *step)
{
    CORNU__TRY(set_window(step));
    CORNU__TRY(cornu__step_expect_window(step));
    const int64_t  in = step->window.in_channels, out = step->window.out_channels;
    const int64_t *filter = filter_of(step)->shape.extent;
    CORNU__TRY(expect_channels(step, filter[0] == out && filter[3] >= 1 && in % filter[3] == 0 &&
                                     out % (in / filter[3]) == 0));
    CORNU__TRY(set_conv(step));
    step->run = filter[3] == in ? run_packed : run_groups;
    return filter[3] == in ? pack(step) : CORNU_OK;
}

static void run_depthwise(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_depthwise(step->channels, bound->y_extents[0], bound->x, bound->y, bound->scratch,
                          bound->part);
}

/* With several filters a channel, which is rare. */
static void run_filters(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Conv conv = conv_of(step, bound);
    cornu__int8_depthwise_reference(&conv, bound->x, bound->y);
}

CornuStatus cornu__step_prepare_depthwise(CornuLiteStep *step)
{
    CORNU__TRY(set_window(step));
    CORNU__TRY(cornu__step_expect_window(step));
    const int64_t  in = step->window.in_channels, out = step->window.out_channels;
    const int64_t *filter = filter_of(step)->shape.extent;
    CORNU__TRY(expect_channels(step, filter[0] == 1 && filter[3] == out && in >= 1 &&
                                     out % in == 0));
    CORNU__TRY(set_conv(step));
    step->run = in == out ? run_depthwise : run_filters;
    if (in != out) return CORNU_OK;
    step->channels = cornu__int8_channels_create(&step->conv);
    if (!step->channels) return CORNU_ERR_MEMORY;
    step->scratch = cornu__int8_depthwise_scratch(step->channels);
    step->work = multiply_adds_of(step);
    return CORNU_OK;
}

static void run_transpose_conv(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Conv conv = conv_of(step, bound);
    cornu__int8_transpose_conv(&conv, bound->x, bound->y, bound->scratch);
}

/* Padding along an axis of the convolution from y to x. */
static int64_t pad_back(const CornuLiteStep *step, int64_t out, int64_t size, int64_t stride)
{
    return cornu__step_pad_before(out, cornu__step_out_extent(step, out, size, stride, 1), size,
                                  stride, 1);
}

/* Input 0 repeats the extents of y, with whatever batch. */
CornuStatus cornu__step_prepare_transpose_conv(CornuLiteStep *step)
{
    CornuInt8Window *w = &step->window;
    CORNU__TRY(set_window(step));
    const int64_t *filter = filter_of(step)->shape.extent;
    CORNU__TRY(expect_channels(step, filter[0] == w->out_channels && filter[3] == w->in_channels &&
                                     step->in->shape.extent[0] == step->out->shape.extent[0]));
    w->pad_height = pad_back(step, w->out_height, w->height, w->stride_height);
    w->pad_width = pad_back(step, w->out_width, w->width, w->stride_width);
    CORNU__TRY(set_conv(step));
    step->run = run_transpose_conv;
    step->scratch = cornu__int8_transpose_conv_scratch(&step->conv);
    return CORNU_OK;
}

/* ---- Fully connected ---- */

static void run_fully_connected(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_conv2d(step->packed, bound->count / step->window.out_channels, bound->x, bound->y,
                       bound->scratch, bound->part);
}

/* (…, K) by (U, K) to (…, U): a convolution of images of one pixel. */
CornuStatus cornu__step_prepare_fully_connected(CornuLiteStep *step)
{
    const CornuShape x = step->in->shape, filter = filter_of(step)->shape, y = step->out->shape;
    CORNU__TRY(cornu__step_expect_rank(filter_of(step), 2));
    CORNU__TRY(cornu__step_fused(step));
    if (step->op->options.weights_format != 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "weights of format %d",
                           (int)step->op->options.weights_format);
    const int64_t units = filter.extent[0], sum = filter.extent[1];
    /* With two batches the counts differ, so that rows are the same for any. */
    for (int64_t batch = 1; batch <= 2; batch++)
        if (units < 1 || sum < 1 || y.rank < 1 || y.extent[y.rank - 1] != units ||
            cornu__lite_count(x, batch) % sum != 0 ||
            cornu__lite_count(x, batch) / sum != cornu__lite_count(y, batch) / units) {
            CornuText in, by, out;
            return cornu__fail(CORNU_ERR_SHAPE, "%s by %s to %s", cornu_shape_print(&in, x),
                               cornu_shape_print(&by, filter), cornu_shape_print(&out, y));
        }
    step->window = (CornuInt8Window){
        .batch = 1, .in_height = 1, .in_width = 1, .in_channels = sum, .out_height = 1,
        .out_width = 1, .out_channels = units, .height = 1, .width = 1, .stride_height = 1,
        .stride_width = 1, .dilation_height = 1, .dilation_width = 1
    };
    CORNU__TRY(set_conv(step));
    step->conv.factors = step->factors;
    step->run = run_fully_connected;
    return pack(step);
}
