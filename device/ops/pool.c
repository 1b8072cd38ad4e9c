/*
 * Pooling: a window of size[0] by size[1] moves over x (B, H, W, C); y (B, Ho, Wo, C),
 *   Ho = floor((H + low + high - size) / stride) + 1
 * low and high are rows or columns of padding, at least 0 and less than the window, so that
 * every window contains an element of x. A zero stride counts as 1.
 */
#include <math.h>

#include "rules.h"
#include "window.h"

enum { MOST_POSITIONS = 255 }; /* in a window of max_pool2d: an index is a u8 */

/* The sweeps of a valid window; else an error. */
static CornuStatus check_window(const CornuOpCall *call, const char *names, CornuSweep sweeps[2])
{
    CORNU__TRY(cornu__expect_float(call, 0, names));
    CORNU__TRY(cornu__expect_rank(call, 0, 4, names));
    bool gradient = call->id == CORNU_OP_MAX_POOL2D_GRAD ||
                    call->id == CORNU_OP_AVERAGE_POOL2D_GRAD;
    const int64_t *size = gradient ? call->attributes->window_grad.size
                                   : call->attributes->window.size;
    if (!cornu__sweeps(call, sweeps))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "a window of (%lld, %lld) does not fit",
                             (long long)size[0], (long long)size[1]);
    for (int i = 0; i < 2; i++)
        if (sweeps[i].low < 0 || sweeps[i].low >= sweeps[i].size || sweeps[i].high < 0 ||
            sweeps[i].high >= sweeps[i].size)
            return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                                 "a padding of %lld and %lld, expected 0 to %lld, less than the "
                                 "window", (long long)sweeps[i].low, (long long)sweeps[i].high,
                                 (long long)sweeps[i].size - 1);
    return CORNU_OK;
}

static CornuStatus check_positions(const CornuOpCall *call, const char *names,
                                   const CornuSweep sweeps[2])
{
    if (sweeps[0].size > MOST_POSITIONS / sweeps[1].size)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "a window of (%lld, %lld), expected at most %d positions",
                             (long long)sweeps[0].size, (long long)sweeps[1].size,
                             MOST_POSITIONS);
    return CORNU_OK;
}

static CornuType pooled(CornuType x, const CornuSweep sweeps[2])
{
    x.shape.extent[1] = sweeps[0].out;
    x.shape.extent[2] = sweeps[1].out;
    return x;
}

/* One comparison or addition per window position and output. */
static int64_t pool_flops(const CornuOpCall *call)
{
    CornuSweep     sweeps[2];
    const int64_t *x = call->in[0].shape.extent;
    cornu__sweeps(call, sweeps);
    return cornu__flops(6, (const int64_t[]){ x[0], sweeps[0].out, sweeps[1].out, x[3],
                                              sweeps[0].size, sweeps[1].size });
}

/* Element (b, row, column, k) of an image with these extents. */
static int64_t at(int64_t b, int64_t row, int64_t column, int64_t k, int64_t height,
                  int64_t width, int64_t channels)
{
    return ((b * height + row) * width + column) * channels + k;
}

/*
 * max_pool2d: y is the largest element in the window, index (u8) its position: the first maximum's,
 * counted row by row in the window, padding included. Padding is never the maximum; a NaN counts as
 * larger than any number.
 */
static CornuStatus max_pool2d_type(const CornuOpCall *call, CornuType *out)
{
    CornuSweep sweeps[2];
    CORNU__TRY(check_window(call, "x", sweeps));
    CORNU__TRY(check_positions(call, "x", sweeps));
    out[0] = pooled(call->in[0], sweeps);
    out[1] = cornu_type_from(CORNU_U8, out[0].shape);
    return CORNU_OK;
}

static CornuStatus max_pool2d_reference(const CornuReferenceCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    int64_t batch = call->op.in[0].shape.extent[0], channels = call->op.in[0].shape.extent[3];
    double *y = call->out[0], *index = call->out[1];
    for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < s[0].out; i++)
    for (int64_t j = 0; j < s[1].out; j++)
    for (int64_t k = 0; k < channels; k++) {
        double  best = 0.0;
        int64_t position = -1;
        for (int64_t u = 0; u < s[0].size; u++)
        for (int64_t v = 0; v < s[1].size; v++) {
            int64_t row = cornu__tap(&s[0], i, u), column = cornu__tap(&s[1], j, v);
            if (row < 0 || column < 0) continue;
            double x = call->in[0][at(b, row, column, k, s[0].in, s[1].in, channels)];
            if (position < 0 || x > best || (isnan(x) && !isnan(best)))
                best = x, position = u * s[1].size + v;
        }
        int64_t o = at(b, i, j, k, s[0].out, s[1].out, channels);
        y[o] = best;
        index[o] = (double)position;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__max_pool2d_rules = {
    max_pool2d_type, pool_flops, CORNU_PRIMITIVE, max_pool2d_reference,
};

/* The types of both gradients: d_y has the shape of pooling (B, extents, C). */
static CornuStatus grad_type(const CornuOpCall *call, const char *names, CornuType *out)
{
    const int64_t *extents = call->attributes->window_grad.extents;
    CornuSweep     sweeps[2];
    CORNU__TRY(check_window(call, names, sweeps));
    CornuType d_y = call->in[0];
    if (!cornu_type_equal(d_y, pooled(d_y, sweeps)))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "pooling %lld by %lld gives %lld by %lld, expected the extents of "
                             "d_y", (long long)extents[0],
                             (long long)extents[1], (long long)sweeps[0].out,
                             (long long)sweeps[1].out);
    out[0] = d_y;
    out[0].shape.extent[1] = extents[0];
    out[0].shape.extent[2] = extents[1];
    return CORNU_OK;
}

/* max_pool2d_grad: each d_y goes to the element of x at its index; overlapping windows add up. An
 * index of padding is an error. */
static CornuStatus max_pool2d_grad_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "d_y index";
    CornuSweep        sweeps[2];
    CORNU__TRY(grad_type(call, names, out));
    cornu__sweeps(call, sweeps);
    CORNU__TRY(check_positions(call, names, sweeps));
    CORNU__TRY(cornu__expect_dtype(call, 1, CORNU_U8, names));
    if (!cornu_shape_equal(call->in[0].shape, call->in[1].shape))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "both must have the same shape");
    return CORNU_OK;
}

static CornuStatus max_pool2d_grad_reference(const CornuReferenceCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    int64_t       batch = call->op.in[0].shape.extent[0], channels = call->op.in[0].shape.extent[3];
    const double *d_y = call->in[0], *index = call->in[1];
    double       *d_x = call->out[0];
    for (int64_t i = 0; i < call->count; i++) d_x[i] = 0.0;
    for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < s[0].out; i++)
    for (int64_t j = 0; j < s[1].out; j++)
    for (int64_t k = 0; k < channels; k++) {
        int64_t o = at(b, i, j, k, s[0].out, s[1].out, channels);
        int64_t position = (int64_t)index[o];
        int64_t row = cornu__tap(&s[0], i, position / s[1].size);
        int64_t column = cornu__tap(&s[1], j, position % s[1].size);
        if (position >= s[0].size * s[1].size || row < 0 || column < 0)
            return cornu__fail(CORNU_ERR_VALUE,
                               "index %lld in row %lld, expected an element in a window of "
                               "%lld by %lld", (long long)position, (long long)b,
                               (long long)s[0].size, (long long)s[1].size);
        d_x[at(b, row, column, k, s[0].in, s[1].in, channels)] += d_y[o];
    }
    return CORNU_OK;
}

/* One addition per element of d_y. */
const CornuOpRules cornu__max_pool2d_grad_rules = {
    max_pool2d_grad_type, cornu__flops_per_element, CORNU_PRIMITIVE, max_pool2d_grad_reference,
};

/* average_pool2d: the mean of the elements of x in the window; padding does not count. */
static CornuStatus average_pool2d_type(const CornuOpCall *call, CornuType *out)
{
    CornuSweep sweeps[2];
    CORNU__TRY(check_window(call, "x", sweeps));
    out[0] = pooled(call->in[0], sweeps);
    return CORNU_OK;
}

/* The number of window positions of output o that read x. */
static int64_t taps(const CornuSweep *sweep, int64_t o)
{
    int64_t count = 0;
    for (int64_t u = 0; u < sweep->size; u++) count += cornu__tap(sweep, o, u) >= 0;
    return count;
}

static CornuStatus average_pool2d_reference(const CornuReferenceCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    int64_t batch = call->op.in[0].shape.extent[0], channels = call->op.in[0].shape.extent[3];
    for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < s[0].out; i++)
    for (int64_t j = 0; j < s[1].out; j++)
    for (int64_t k = 0; k < channels; k++) {
        double sum = 0.0;
        for (int64_t u = 0; u < s[0].size; u++)
        for (int64_t v = 0; v < s[1].size; v++) {
            int64_t row = cornu__tap(&s[0], i, u), column = cornu__tap(&s[1], j, v);
            if (row >= 0 && column >= 0)
                sum += call->in[0][at(b, row, column, k, s[0].in, s[1].in, channels)];
        }
        call->out[0][at(b, i, j, k, s[0].out, s[1].out, channels)] =
            sum / (double)(taps(&s[0], i) * taps(&s[1], j));
    }
    return CORNU_OK;
}

const CornuOpRules cornu__average_pool2d_rules = {
    average_pool2d_type, pool_flops, CORNU_PRIMITIVE, average_pool2d_reference,
};

/* average_pool2d_grad: each d_y is divided equally among the elements it was the mean of. */
static CornuStatus average_pool2d_grad_type(const CornuOpCall *call, CornuType *out)
{
    return grad_type(call, "d_y", out);
}

static CornuStatus average_pool2d_grad_reference(const CornuReferenceCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    int64_t batch = call->op.in[0].shape.extent[0], channels = call->op.in[0].shape.extent[3];
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = 0.0;
    for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < s[0].out; i++)
    for (int64_t j = 0; j < s[1].out; j++)
    for (int64_t k = 0; k < channels; k++) {
        double part = call->in[0][at(b, i, j, k, s[0].out, s[1].out, channels)] /
                      (double)(taps(&s[0], i) * taps(&s[1], j));
        for (int64_t u = 0; u < s[0].size; u++)
        for (int64_t v = 0; v < s[1].size; v++) {
            int64_t row = cornu__tap(&s[0], i, u), column = cornu__tap(&s[1], j, v);
            if (row >= 0 && column >= 0)
                call->out[0][at(b, row, column, k, s[0].in, s[1].in, channels)] += part;
        }
    }
    return CORNU_OK;
}

const CornuOpRules cornu__average_pool2d_grad_rules = {
    average_pool2d_grad_type, pool_flops, CORNU_PRIMITIVE, average_pool2d_grad_reference,
};
