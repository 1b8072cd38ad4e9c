/* Convolutions and fully connected layers. Sources of scales: LiteRT, tflite/kernels/kernel_util.cc
 * PopulateConvolutionQuantizationParams, fully_connected.cc, transpose_conv.cc. */
#include <math.h>

#include "../../../device/memory_internal.h"
#include "steps.h"

/* ---- Scales and operands ---- */

/* Factors of `filters` outputs, of which the filter has scales along an axis, or one. */
static CornuStatus scale_outputs(CornuLiteStep *step, const CornuLiteTensor *filter, int axis,
                                 int64_t filters)
{
    const CornuLiteQuantization *q = &filter->quantization;
    if (filter->dtype != CORNU_LITE_I8 || !filter->data)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected a constant of i8",
                           filter->name);
    if ((int64_t)filter->bytes != cornu__step_tensor_count(filter, 1))
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s: %zu bytes do not fit its shape",
                           filter->name, filter->bytes);
    if (q->count != 1 && (q->count != filters || q->axis != axis))
        return cornu__fail(CORNU_ERR_FORMAT, "tensor %s has %d scales along axis %d, expected 1 or "
                           "%lld along axis %d", filter->name, q->count, q->axis,
                           (long long)filters, axis);
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

static CornuStatus bias_of(CornuLiteStep *step, int input, int64_t filters, const int32_t **bias)
{
    const CornuLiteTensor *tensor = cornu__step_in(step, input);
    *bias = NULL;
    if (!tensor) return CORNU_OK;
    *bias = cornu__step_integers(tensor, filters);
    return *bias ? CORNU_OK : CORNU_ERR_UNSUPPORTED;
}

/* ---- Convolutions ---- */

/* What all three have in common; the window is set. */
static CornuStatus set_conv(CornuLiteStep *step, const CornuLiteTensor *filter, int axis, int bias)
{
    const int64_t filters = step->window.out_channels;
    CornuStatus   status = scale_outputs(step, filter, axis, filters);
    step->conv = (CornuInt8Conv){
        .window = step->window, .filter_channels = filter->shape.extent[3],
        .x_zero = step->x.zero, .y_zero = step->y.zero, .bounds = step->bounds,
        .filter = filter->data, .multipliers = step->multipliers
    };
    return status == CORNU_OK ? bias_of(step, bias, filters, &step->conv.bias) : status;
}

static CornuInt8Conv conv_of(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    CornuInt8Conv conv = step->conv;
    conv.window.batch = cornu__step_batch(step, bound);
    return conv;
}

static void run_conv2d(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const int8_t *x = cornu__step_in_data(step, bound, 0);
    int8_t       *y = cornu__step_out_data(step, bound, 0);
    const CornuInt8Conv conv = conv_of(step, bound);
    if (step->packed) cornu__int8_conv2d(step->packed, conv.window.batch, x, y, bound->scratch);
    else              cornu__int8_conv2d_reference(&conv, x, y);
}

static size_t packed_scratch(const CornuLiteStep *step, int64_t batch)
{
    (void)batch;
    return cornu__int8_conv2d_scratch(step->packed);
}

/* Packs the filter, unless it has groups. */
static CornuStatus pack(CornuLiteStep *step)
{
    if (step->conv.filter_channels != step->window.in_channels) return CORNU_OK;
    step->packed = cornu__int8_pack_create(&step->conv);
    step->scratch = packed_scratch;
    return step->packed ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__step_prepare_conv2d(CornuLiteStep *step)
{
    CornuStatus status = cornu__step_expect(step, 2, 3, 1);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0), *filter = cornu__step_in(step, 1);
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    status = cornu__step_expect_rank(filter, 4);
    if (status != CORNU_OK) return status;
    const int64_t *extents = filter->shape.extent;
    status = cornu__step_window(step, x, y, extents[1], extents[2]);
    if (status == CORNU_OK) status = cornu__step_expect_window(step, x, y);
    if (status != CORNU_OK) return status;
    const CornuInt8Window *w = &step->window;
    if (extents[0] != w->out_channels || extents[3] < 1 || w->in_channels % extents[3] != 0 ||
        w->out_channels % (w->in_channels / extents[3]) != 0) {
        CornuText shape;
        return cornu__fail(CORNU_ERR_SHAPE, "filter %s of %lld channels to %lld",
                           cornu_shape_print(&shape, filter->shape), (long long)w->in_channels,
                           (long long)w->out_channels);
    }
    step->run = run_conv2d;
    status = set_conv(step, filter, 0, 2);
    return status == CORNU_OK ? pack(step) : status;
}

static void run_depthwise(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Conv conv = conv_of(step, bound);
    cornu__int8_depthwise(&conv, cornu__step_in_data(step, bound, 0),
                          cornu__step_out_data(step, bound, 0), bound->scratch);
}

static size_t depthwise_scratch(const CornuLiteStep *step, int64_t batch)
{
    (void)batch;
    return cornu__int8_depthwise_scratch(&step->conv);
}

CornuStatus cornu__step_prepare_depthwise(CornuLiteStep *step)
{
    CornuStatus status = cornu__step_expect(step, 2, 3, 1);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0), *filter = cornu__step_in(step, 1);
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    status = cornu__step_expect_rank(filter, 4);
    if (status != CORNU_OK) return status;
    const int64_t *extents = filter->shape.extent;
    status = cornu__step_window(step, x, y, extents[1], extents[2]);
    if (status == CORNU_OK) status = cornu__step_expect_window(step, x, y);
    if (status != CORNU_OK) return status;
    const CornuInt8Window *w = &step->window;
    if (extents[0] != 1 || extents[3] != w->out_channels || w->in_channels < 1 ||
        w->out_channels % w->in_channels != 0) {
        CornuText shape;
        return cornu__fail(CORNU_ERR_SHAPE, "filter %s of %lld channels to %lld",
                           cornu_shape_print(&shape, filter->shape), (long long)w->in_channels,
                           (long long)w->out_channels);
    }
    step->run = run_depthwise;
    step->scratch = depthwise_scratch;
    return set_conv(step, filter, 3, 2);
}

static void run_transpose_conv(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Conv conv = conv_of(step, bound);
    cornu__int8_transpose_conv(&conv, cornu__step_in_data(step, bound, 2),
                               cornu__step_out_data(step, bound, 0), bound->scratch);
}

static size_t transpose_conv_scratch(const CornuLiteStep *step, int64_t batch)
{
    (void)batch;
    return cornu__int8_transpose_conv_scratch(&step->conv);
}

/* Input 0 repeats the extents of y, with whatever batch. */
CornuStatus cornu__step_prepare_transpose_conv(CornuLiteStep *step)
{
    CornuStatus status = cornu__step_expect(step, 3, 4, 1);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *filter = cornu__step_in(step, 1), *x = cornu__step_in(step, 2);
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    status = cornu__step_expect_rank(filter, 4);
    if (status != CORNU_OK) return status;
    const int64_t *extents = filter->shape.extent;
    status = cornu__step_window(step, x, y, extents[1], extents[2]);
    if (status != CORNU_OK) return status;
    CornuInt8Window *w = &step->window;
    if (extents[0] != w->out_channels || extents[3] != w->in_channels ||
        x->shape.extent[0] != y->shape.extent[0]) {
        CornuText shape;
        return cornu__fail(CORNU_ERR_SHAPE, "filter %s of %lld channels to %lld",
                           cornu_shape_print(&shape, filter->shape), (long long)w->in_channels,
                           (long long)w->out_channels);
    }
    /* The padding of the convolution from y to x. */
    const int64_t height = step->op->options.padding == CORNU_LITE_SAME
                           ? (w->out_height + w->stride_height - 1) / w->stride_height
                           : (w->out_height - w->height + w->stride_height) / w->stride_height;
    const int64_t width = step->op->options.padding == CORNU_LITE_SAME
                          ? (w->out_width + w->stride_width - 1) / w->stride_width
                          : (w->out_width - w->width + w->stride_width) / w->stride_width;
    w->pad_height = cornu__step_pad_before(w->out_height, height, w->height, w->stride_height, 1);
    w->pad_width = cornu__step_pad_before(w->out_width, width, w->width, w->stride_width, 1);
    step->run = run_transpose_conv;
    step->scratch = transpose_conv_scratch;
    return set_conv(step, filter, 0, 3);
}

/* ---- Fully connected ---- */

static void run_fully_connected(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const int64_t rows = cornu__step_tensor_count(cornu__step_out(step, 0), bound->batch) /
                         step->window.out_channels;
    cornu__int8_conv2d(step->packed, rows, cornu__step_in_data(step, bound, 0),
                       cornu__step_out_data(step, bound, 0), bound->scratch);
}

/* (…, K) by (U, K) to (…, U): a convolution of images of one pixel. */
CornuStatus cornu__step_prepare_fully_connected(CornuLiteStep *step)
{
    CornuStatus status = cornu__step_expect(step, 2, 3, 1);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0), *filter = cornu__step_in(step, 1);
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    status = cornu__step_affine(x, &step->x);
    if (status == CORNU_OK) status = cornu__step_affine(y, &step->y);
    if (status == CORNU_OK) status = cornu__step_expect_rank(filter, 2);
    if (status == CORNU_OK) status = cornu__step_fused(step, step->y, &step->bounds);
    if (status != CORNU_OK) return status;
    if (step->op->options.weights_format != 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "weights of format %d",
                           (int)step->op->options.weights_format);
    const int64_t units = filter->shape.extent[0], sum = filter->shape.extent[1];
    const int     rank = y->shape.rank;
    /* With two batches the counts differ, so that rows are the same for any. */
    for (int64_t batch = 1; batch <= 2; batch++)
        if (units < 1 || sum < 1 || rank < 1 || y->shape.extent[rank - 1] != units ||
            cornu__step_tensor_count(x, batch) % sum != 0 ||
            cornu__step_tensor_count(x, batch) / sum !=
            cornu__step_tensor_count(y, batch) / units) {
            CornuText in, by, out;
            return cornu__fail(CORNU_ERR_SHAPE, "%s by %s to %s",
                               cornu_shape_print(&in, x->shape),
                               cornu_shape_print(&by, filter->shape),
                               cornu_shape_print(&out, y->shape));
        }
    status = scale_outputs(step, filter, 0, units);
    if (status != CORNU_OK) return status;
    step->window = (CornuInt8Window){
        .batch = 1, .in_height = 1, .in_width = 1, .in_channels = sum, .out_height = 1,
        .out_width = 1, .out_channels = units, .height = 1, .width = 1, .stride_height = 1,
        .stride_width = 1, .dilation_height = 1, .dilation_width = 1
    };
    step->conv = (CornuInt8Conv){
        .window = step->window, .filter_channels = sum, .x_zero = step->x.zero,
        .y_zero = step->y.zero, .bounds = step->bounds, .filter = filter->data,
        .multipliers = step->multipliers, .factors = step->factors
    };
    status = bias_of(step, 2, units, &step->conv.bias);
    step->run = run_fully_connected;
    return status == CORNU_OK ? pack(step) : status;
}
