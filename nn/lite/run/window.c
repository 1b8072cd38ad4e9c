/* Windows of convolutions and pools; pools and what else reads images. Source of the padding:
 * LiteRT, tflite/kernels/padding.h. */
#include "steps.h"

int64_t cornu__step_pad_before(int64_t in, int64_t out, int64_t size, int64_t stride,
                               int64_t dilation)
{
    const int64_t total = (out - 1) * stride + (size - 1) * dilation + 1 - in;
    return total > 0 ? total / 2 : 0;
}

int64_t cornu__step_out_extent(const CornuLiteStep *step, int64_t in, int64_t size, int64_t stride,
                               int64_t dilation)
{
    const int64_t reach = (size - 1) * dilation + 1;
    if (step->op->options.padding == CORNU_LITE_SAME) return (in + stride - 1) / stride;
    return in < reach ? 0 : (in - reach) / stride + 1;
}

static int64_t positive(int32_t option) { return option == 0 ? 1 : option; }

CornuStatus cornu__step_window(CornuLiteStep *step, int64_t height, int64_t width)
{
    const CornuLiteOptions *o = &step->op->options;
    CornuInt8Window        *w = &step->window;
    int64_t                 x[CORNU_INT8_RANK], y[CORNU_INT8_RANK];
    CORNU__TRY(cornu__step_expect_rank(step->in, 4));
    CORNU__TRY(cornu__step_expect_rank(step->out, 4));
    cornu__step_extents(step->in, 1, x);
    cornu__step_extents(step->out, 1, y);
    *w = (CornuInt8Window){
        .batch = 1, .in_height = x[1], .in_width = x[2], .in_channels = x[3], .out_height = y[1],
        .out_width = y[2], .out_channels = y[3], .height = height, .width = width,
        .stride_height = positive(o->stride_h), .stride_width = positive(o->stride_w),
        .dilation_height = positive(o->dilation_h), .dilation_width = positive(o->dilation_w)
    };
    if (w->stride_height < 1 || w->stride_width < 1 || w->dilation_height < 1 ||
        w->dilation_width < 1 || height < 1 || width < 1)
        return cornu__fail(CORNU_ERR_FORMAT, "window %lld x %lld, strides %d and %d, dilation %d "
                           "and %d: expected at least 1", (long long)height, (long long)width,
                           (int)o->stride_h, (int)o->stride_w, (int)o->dilation_h,
                           (int)o->dilation_w);
    /* With its padding the image is a buffer, whose size must not overflow. */
    const double area = ((double)w->in_height + (double)(height - 1) * (double)w->dilation_height) *
                        ((double)w->in_width + (double)(width - 1) * (double)w->dilation_width);
    if (area * (double)w->in_channels > 0x1p38)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a window of %lld x %lld with dilation %d and %d",
                           (long long)height, (long long)width, (int)o->dilation_h,
                           (int)o->dilation_w);
    w->pad_height = cornu__step_pad_before(w->in_height, w->out_height, height,
                                           w->stride_height, w->dilation_height);
    w->pad_width = cornu__step_pad_before(w->in_width, w->out_width, width, w->stride_width,
                                          w->dilation_width);
    return cornu__step_fused(step);
}

CornuStatus cornu__step_expect_window(const CornuLiteStep *step)
{
    const CornuInt8Window *w = &step->window;
    const int64_t expected[] = {
        step->in->shape.extent[0],
        cornu__step_out_extent(step, w->in_height, w->height, w->stride_height, w->dilation_height),
        cornu__step_out_extent(step, w->in_width, w->width, w->stride_width, w->dilation_width),
        w->out_channels
    };
    return cornu__step_expect_extents(step->out, 4, expected);
}

/* ---- Pools, means, resizing ---- */

/* Of all images of the block. */
static CornuInt8Window window_of(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    CornuInt8Window window = step->window;
    window.batch = bound->y_extents[0];
    return window;
}

static void run_pool(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Window window = window_of(step, bound);
    (step->op->code == CORNU_LITE_MAX_POOL_2D ? cornu__int8_max_pool : cornu__int8_average_pool)(
        &window, step->bounds, bound->x, bound->y);
}

CornuStatus cornu__step_prepare_pool(CornuLiteStep *step)
{
    const CornuInt8Window *w = &step->window;
    step->run = run_pool;
    CORNU__TRY(cornu__step_window(step, step->op->options.filter_h, step->op->options.filter_w));
    CORNU__TRY(cornu__step_expect_window(step));
    if (w->in_channels == w->out_channels) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "tensor %s has %lld channels, %s has %lld", step->in->name,
                       (long long)w->in_channels, step->out->name, (long long)w->out_channels);
}

static void run_resize(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuInt8Window   window = window_of(step, bound);
    const CornuLiteOptions *o = &step->op->options;
    cornu__int8_resize_nearest(&window, o->align_corners, o->half_pixel_centers, bound->x,
                               bound->y);
}

CornuStatus cornu__step_prepare_resize(CornuLiteStep *step)
{
    const int64_t *extents = step->in->shape.extent;
    const int32_t *size = cornu__step_integers(cornu__step_in(step, 1), 2);
    if (!size) return CORNU_ERR_UNSUPPORTED;
    step->run = run_resize;
    CORNU__TRY(cornu__step_window(step, 1, 1));
    return cornu__step_expect_extents(
        step->out, 4, (int64_t[]){ extents[0], size[0], size[1], extents[3] });
}

static void run_mean(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_mean(step->x, step->y, step->in->shape.rank, bound->x_extents, step->reduced,
                     bound->x, bound->y, bound->scratch);
}

static void run_reduce_max(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_reduce_max(step->in->shape.rank, bound->x_extents, step->reduced, bound->x,
                           bound->y);
}

/* y has the extents of x that are not reduced; with keep_dims, the others as 1. */
CornuStatus cornu__step_prepare_mean(CornuLiteStep *step)
{
    const int64_t *extents = step->in->shape.extent;
    const int      rank = step->in->shape.rank;
    const int32_t *axes = cornu__step_integers(cornu__step_in(step, 1), -1);
    if (!axes) return CORNU_ERR_UNSUPPORTED;
    for (size_t i = 0; i < cornu__step_in(step, 1)->bytes / sizeof *axes; i++) {
        const int axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return cornu__fail(CORNU_ERR_FORMAT, "axis %d of a tensor of %d", (int)axes[i], rank);
        if (extents[axis] == CORNU_NONE)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "reduces the batch");
        step->reduced[axis] = true;
    }
    int64_t expected[CORNU_INT8_RANK];
    int     kept = 0;
    for (int d = 0; d < rank; d++) {
        if (!step->reduced[d]) expected[kept++] = extents[d];
        else if (step->op->options.keep_dims) expected[kept++] = 1;
    }
    step->run = step->op->code == CORNU_LITE_MEAN ? run_mean : run_reduce_max;
    step->scratch = sizeof(int32_t) *
                    (size_t)cornu__lite_count(step->out->shape, CORNU_LITE_BLOCK_ROWS);
    return cornu__step_expect_extents(step->out, kept, expected);
}
