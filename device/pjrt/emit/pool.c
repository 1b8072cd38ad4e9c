/* Pooling. Each position of a window is a strided slice of x; the largest is found by comparing
 * them one after the other, since its position is wanted, too. */
#include <math.h>

#include "../../ops/window.h"
#include "emit.h"

/* x with its padding, which a strided slice per position then reads. */
static CornuName padded(CornuEmitter *e, CornuName x, const CornuSweep s[2], double value)
{
    int64_t low[4] = { 0 }, high[4] = { 0 };
    for (int i = 0; i < 2; i++) {
        const int64_t end = (s[i].out - 1) * s[i].stride + s[i].size;
        low[1 + i] = s[i].low;
        high[1 + i] = end > s[i].in + s[i].low ? end - s[i].in - s[i].low : 0;
    }
    if (!low[1] && !low[2] && !high[1] && !high[2]) return x;
    return cornu__hlo_pad(e, x, value, low, high, NULL);
}

/* The elements that all windows have at (u, v). */
static CornuName position(CornuEmitter *e, CornuName x, const CornuSweep s[2], int64_t u,
                          int64_t v)
{
    const CornuShape shape = cornu__hlo_of(e, x).shape;
    const int64_t    starts[4] = { 0, u, v, 0 }, strides[4] = { 1, s[0].stride, s[1].stride, 1 };
    const int64_t    sizes[4] = { shape.extent[0], s[0].out, s[1].out, shape.extent[3] };
    return cornu__hlo_slice(e, x, starts, sizes, strides);
}

/* Where padding is, no number counts, not even -inf: a map of what is real, 1 by H by W by 1. */
static CornuName real_positions(CornuEmitter *e, const CornuSweep s[2])
{
    const CornuHloType one = { PJRT_PRED, cornu_shape(1, s[0].in, s[1].in, 1) };
    return padded(e, cornu__hlo_constant(e, one, 1.0), s, 0.0);
}

static CornuName as_large_as(CornuEmitter *e, CornuName map, CornuShape shape)
{
    static const int axes[] = { 1, 2 };
    const int64_t   *extent = cornu__hlo_of(e, map).shape.extent;
    map = cornu__hlo_reshape(e, map, cornu_shape(extent[1], extent[2]));
    return cornu__hlo_broadcast(e, map, shape, axes);
}

static void max_pool2d(CornuEmitter *e, const CornuEmitCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    const CornuName    x = padded(e, call->in[0], s, -INFINITY);
    const CornuHloType type = cornu__hlo_type(call->out_type[0]);
    const CornuHloType index_type = cornu__hlo_as(type, PJRT_U8);
    const bool         pads = x != call->in[0];
    const CornuName    real = pads ? real_positions(e, s) : 0;
    CornuName          best = 0, index = 0, best_real = 0;
    for (int64_t u = 0; u < s[0].size; u++)
        for (int64_t v = 0; v < s[1].size; v++) {
            const CornuName next = position(e, x, s, u, v);
            const CornuName number = cornu__hlo_integer(e, index_type, u * s[1].size + v);
            const CornuName is_real =
                pads ? as_large_as(e, position(e, real, s, u, v), type.shape) : 0;
            if (u == 0 && v == 0) {
                best = next, index = number, best_real = is_real;
                continue;
            }
            const CornuName best_is_number = cornu__hlo_compare(e, best, "EQ", best);
            CornuName       larger = cornu__hlo_compare(e, next, "NE", next);   /* NaN */
            larger = cornu__hlo2(e, "and", larger, best_is_number);
            larger = cornu__hlo2(e, "or", larger, cornu__hlo_compare(e, next, "GT", best));
            if (pads) {
                const CornuName first = cornu__hlo2(e, "and", is_real,
                                                    cornu__hlo1(e, "not", best_real));
                larger = cornu__hlo2(e, "or", larger, first);
                best_real = cornu__hlo2(e, "or", best_real, is_real);
            }
            best = cornu__hlo_select(e, larger, next, best);
            index = cornu__hlo_select(e, larger, number, index);
        }
    call->out[0] = best;
    call->out[1] = index;
}
CornuEmit *const cornu__max_pool2d_stablehlo = max_pool2d;

/* What the windows have at (u, v), put back where x has it. */
static CornuName put_back(CornuEmitter *e, CornuName part, const CornuSweep s[2], int64_t u,
                          int64_t v)
{
    const int64_t at[2] = { u, v };
    int64_t       low[4] = { 0 }, high[4] = { 0 }, interior[4] = { 0 };
    for (int i = 0; i < 2; i++) {
        low[1 + i] = at[i] - s[i].low;
        interior[1 + i] = s[i].stride - 1;
        high[1 + i] = s[i].in - low[1 + i] - ((s[i].out - 1) * s[i].stride + 1);
    }
    return cornu__hlo_pad(e, part, 0.0, low, high, interior);
}

/* Whether the positions are those that max_pool2d gave, which lie in the image. */
static bool is_pooled(const CornuEmitCall *call)
{
    const CornuValue index = cornu_program_operands(call->program, call->record)[1];
    const int        made_by = call->program->values[index].op;
    return made_by >= 0 && call->program->ops[made_by].id == CORNU_OP_MAX_POOL2D;
}

/* Checks that every position lies in the window and not in its padding. Those that do not are
 * given to the check as numbers from the window's size on. */
static void check_positions(CornuEmitter *e, const CornuEmitCall *call, const CornuSweep s[2])
{
    const int64_t      count = s[0].size * s[1].size;
    const CornuName    index = cornu__hlo_convert(e, call->in[1], PJRT_S32);
    const CornuHloType type = cornu__hlo_of(e, index);
    const CornuName    real = real_positions(e, s);
    CornuName          good = cornu__hlo_constant(e, cornu__hlo_as(type, PJRT_PRED), 0.0);
    for (int64_t p = 0; p < count; p++) {
        const CornuName here = cornu__hlo_compare(e, index, "EQ", cornu__hlo_integer(e, type, p));
        const CornuName tap = position(e, real, s, p / s[1].size, p % s[1].size);
        good = cornu__hlo2(e, "or", good,
                           cornu__hlo2(e, "and", here, as_large_as(e, tap, type.shape)));
    }
    const CornuName bad = cornu__hlo2(e, "add", index, cornu__hlo_integer(e, type, count));
    const CornuName x = cornu__hlo_select(e, good, cornu__hlo_integer(e, type, 0), bad);
    cornu__hlo_check(e, call, "an index of padding or of none, after the window's:",
                     cornu__hlo_reduce(e, "maximum", x, 0xE, 0.0), count);
}

/* Overlapping windows are summed in f32. */
static void max_pool2d_grad(CornuEmitter *e, const CornuEmitCall *call)
{
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    const CornuName    index = call->in[1];
    const CornuDtype   dtype = call->out_type[0].dtype;
    const bool overlap = s[0].stride < s[0].size || s[1].stride < s[1].size;
    const CornuName    d_y = overlap && dtype != CORNU_F64
                           ? cornu__hlo_convert(e, call->in[0], PJRT_F32) : call->in[0];
    const CornuHloType type = cornu__hlo_of(e, d_y);
    const CornuName    zero = cornu__hlo_constant(e, type, 0.0);
    CornuName          d_x = 0;
    if (!is_pooled(call)) check_positions(e, call, s);
    for (int64_t u = 0; u < s[0].size; u++)
        for (int64_t v = 0; v < s[1].size; v++) {
            const CornuName number = cornu__hlo_integer(e, cornu__hlo_of(e, index),
                                                        u * s[1].size + v);
            const CornuName there = cornu__hlo_compare(e, index, "EQ", number);
            const CornuName part = put_back(e, cornu__hlo_select(e, there, d_y, zero), s, u, v);
            d_x = u == 0 && v == 0 ? part : cornu__hlo2(e, "add", d_x, part);
        }
    call->out[0] = cornu__hlo_convert(e, d_x, cornu__pjrt_type(dtype));
}
CornuEmit *const cornu__max_pool2d_grad_stablehlo = max_pool2d_grad;

/* ---- Averages ---- */

/* The paddings that windows really reach, so that there are exactly s.out of them. */
static void paddings(const CornuSweep s[2], int64_t low[2], int64_t high[2])
{
    for (int i = 0; i < 2; i++) {
        low[i] = s[i].low;
        high[i] = (s[i].out - 1) * s[i].stride + s[i].size - s[i].in - s[i].low;
    }
}

/* The number of elements of x in each window, as large as y. */
static CornuName counts(CornuEmitter *e, const CornuSweep s[2], CornuHloType y)
{
    static const int axes[] = { 0, 1, 2, 3 };
    const int64_t    size[2] = { s[0].size, s[1].size }, strides[2] = { s[0].stride,
                                                                        s[1].stride };
    const CornuHloType ones = { y.element, cornu_shape(1, s[0].in, s[1].in, 1) };
    int64_t            low[2], high[2];
    paddings(s, low, high);
    if (low[0] <= 0 && low[1] <= 0 && high[0] <= 0 && high[1] <= 0)
        return cornu__hlo_constant(e, y, (double)(s[0].size * s[1].size));
    return cornu__hlo_broadcast(
        e, cornu__hlo_window_sum(e, cornu__hlo_constant(e, ones, 1.0), size, strides, low, high),
        y.shape, axes);
}

static CornuName widened(CornuEmitter *e, CornuName x)
{
    return cornu__hlo_of(e, x).element == PJRT_F64 ? x : cornu__hlo_convert(e, x, PJRT_F32);
}

static void average_pool2d(CornuEmitter *e, const CornuEmitCall *call)
{
    CornuSweep s[2];
    int64_t    low[2], high[2];
    cornu__sweeps(&call->op, s);
    paddings(s, low, high);
    const int64_t   size[2] = { s[0].size, s[1].size }, strides[2] = { s[0].stride, s[1].stride };
    const CornuName sum = cornu__hlo_window_sum(e, widened(e, call->in[0]), size, strides, low,
                                                high);
    const CornuName mean = cornu__hlo2(e, "divide", sum, counts(e, s, cornu__hlo_of(e, sum)));
    call->out[0] = cornu__hlo_convert(e, mean, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__average_pool2d_stablehlo = average_pool2d;

/* Each element of x is in the windows whose d_y, stride - 1 zeros between them, a window of the
 * same size around it sums. */
static void average_pool2d_grad(CornuEmitter *e, const CornuEmitCall *call)
{
    static const int64_t ones[2] = { 1, 1 }, none[2] = { 0, 0 };
    CornuSweep s[2];
    cornu__sweeps(&call->op, s);
    const int64_t   size[2] = { s[0].size, s[1].size };
    const CornuName d_y = widened(e, call->in[0]);
    const CornuName part = cornu__hlo2(e, "divide", d_y, counts(e, s, cornu__hlo_of(e, d_y)));
    int64_t         low[4] = { 0 }, high[4] = { 0 }, interior[4] = { 0 };
    for (int i = 0; i < 2; i++) {
        low[1 + i] = s[i].size - 1 - s[i].low;
        interior[1 + i] = s[i].stride - 1;
        high[1 + i] = s[i].in + s[i].low - 1 - (s[i].out - 1) * s[i].stride;
    }
    const CornuName apart = cornu__hlo_pad(e, part, 0.0, low, high, interior);
    const CornuName d_x = cornu__hlo_window_sum(e, apart, size, ones, none, none);
    call->out[0] = cornu__hlo_convert(e, d_x, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__average_pool2d_grad_stablehlo = average_pool2d_grad;
