/*
 * conv2d_grad_filter of few filters, without strides: f32 or bf16 in and out, f32 in the sums.
 *
 *     x (B, H, W, C), d_y (B, Ho, Wo, F), d_filter (h, w, C, F)
 *
 * conv2d_filter.c has filters in the lanes of registers, of which few would fill a part. With x and
 * d_y exchanged there are many, C: a tap then moves d_y over x, the other way, and
 *
 *     d_filter[u, v, c, f] = e[h - 1 - u, w - 1 - v, f, c]
 *
 * where e (h, w, F, C) is that gradient of d_y, padded by (h - 1) dilation - low before and
 * (h - 1) dilation - high after, and x in place of d_y. The sums have the same terms in another
 * order, which threads do not change either.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain, Xeon (model 207), two threads, f32: 5 x 5 x 256 x 2 on 16 maps of 64 x 64, AVX-512 68.0 ms,
 *     then 16.9, AVX2 59.1, then 30.3; 1 x 1 x 32 x 2 on 8 maps of 128 x 128 1.44 and 0.65, 1.55
 *     and 0.97. Zen 4, processor time of a step of tests/bench's generator 1375 ms, without 1471.
 */
#include "../../isa/transpose.h"
#include "convolution.h"
#include "../kernels.h"
#include "../precision.h"

enum { FEW = 8, MANY = 16 };   /* filters below, channels at least */

/* The call with x and d_y exchanged. */
typedef struct {
    CornuOpCall     op;
    CornuAttributes attributes;
    CornuType       in[2], out;
} Exchanged;

static void exchange(const CornuOpCall *op, const CornuType *out_type, Exchanged *to)
{
    const CornuWalk walk = cornu__walk(op, out_type);
    *to = (Exchanged){ .attributes = *op->attributes, .in = { op->in[1], op->in[0] },
                       .out = *out_type };
    to->op = (CornuOpCall){ op->id, &to->attributes, 2, to->in };
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (walk.axis[i].taps - 1) * walk.axis[i].dilation;
        to->attributes.conv2d_grad.low[i] = reach - op->attributes->conv2d_grad.low[i];
        to->attributes.conv2d_grad.high[i] = reach - op->attributes->conv2d_grad.high[i];
    }
    to->out.shape.extent[2] = out_type->shape.extent[3];
    to->out.shape.extent[3] = out_type->shape.extent[2];
}

static CornuDecline few_declines(const CornuQuery *q)
{
    const int64_t     *filter = q->out_type->shape.extent;
    const CornuDecline decline = cornu__product_declines(q);
    if (decline.needs) return decline;
    if (filter[3] >= FEW) return cornu__needs_most(FEW - 1, "filters", filter[3]);
    if (filter[2] < MANY) return cornu__needs_least(MANY, "channels", filter[2]);
    const CornuWalk walk = cornu__walk(q->op, q->out_type);
    return cornu__needs(walk.axis[0].stride == 1 && walk.axis[1].stride == 1, "strides of 1");
}

/* The one that sums the exchanged call, whose x has too few channels to be packed otherwise. */
static const CornuKernel *kernel_of(const CornuQuery *exchanged)
{
    const CornuKernel *tiles = &cornu__host_conv2d_grad_filter_tiles;
    return tiles->declines(exchanged).needs ? &cornu__host_conv2d_grad_filter : tiles;
}

static size_t scratch(const CornuQuery *q)
{
    Exchanged        exchanged;
    const CornuQuery inner = { &exchanged.op, &exchanged.out, q->machine, NULL, 0 };
    exchange(q->op, q->out_type, &exchanged);
    return cornu__aligned(cornu_type_bytes(*q->out_type)) + kernel_of(&inner)->scratch(&inner);
}

/* Taps in the reverse order, channels before filters. */
static void turn(const CornuKernelCall *call, const void *from)
{
    const int64_t *filter = call->out_type->shape.extent;
    const int64_t  taps = filter[0] * filter[1], C = filter[2], F = filter[3];
    for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t at = (taps - 1 - tap) * F * C, to = tap * C * F;
        if (call->out_type->dtype == CORNU_F32)
            cornu__transposes()->words((const uint32_t *)from + at, C, F, C,
                                       (uint32_t *)call->out[0] + to, F);
        else
            cornu__transposes()->halves((const uint16_t *)from + at, C, F, C,
                                        (uint16_t *)call->out[0] + to, F);
    }
}

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    Exchanged       exchanged;
    CornuKernelCall inner = *call;
    exchange(&call->op, call->out_type, &exchanged);
    inner.op = exchanged.op;
    inner.out_type = &exchanged.out;
    inner.in = (const void *const[]){ call->in[1], call->in[0] };
    inner.out = (void *const[]){ call->scratch };
    inner.scratch = (char *)call->scratch + cornu__aligned(cornu_type_bytes(*call->out_type));
    const CornuQuery q = cornu__query_of(&inner);
    CORNU__TRY(kernel_of(&q)->run(&inner));
    turn(call, call->scratch);
    return CORNU_OK;
}

const CornuKernel cornu__host_conv2d_grad_filter_few = {
    .name = "conv2d_filter_few", .declines = few_declines, .scratch = scratch, .run = grad_filter,
};
