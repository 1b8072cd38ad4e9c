/* Softmax, losses and one-hot numbers. bf16 and f16 are computed in f32. */
#include <math.h>

#include "emit.h"

/* A number per row, as large as the rows. */
static CornuName along_rows(CornuEmitter *e, CornuName numbers, CornuShape shape)
{
    int axes[CORNU_MAX_RANK];
    for (int i = 0; i < shape.rank - 1; i++) axes[i] = i;
    return cornu__hlo_broadcast(e, numbers, shape, axes);
}

/* The first operand's rows, in f32 at least: less their largest number, the exponentials of that,
 * and their sums. */
typedef struct {
    CornuName below, exps, sum;
} Shifted;

static Shifted shift(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuType type = call->op.in[0];
    const int64_t   last = INT64_C(1) << (type.shape.rank - 1);
    const CornuName x = type.dtype == CORNU_F64 ? call->in[0]
                                                : cornu__hlo_convert(e, call->in[0], PJRT_F32);
    const CornuName largest = cornu__hlo_reduce(e, "maximum", x, last, -INFINITY);
    Shifted         s;
    s.below = cornu__hlo2(e, "subtract", x, along_rows(e, largest, type.shape));
    s.exps = cornu__hlo1(e, "exponential", s.below);
    s.sum = cornu__hlo_reduce(e, "add", s.exps, last, 0.0);
    return s;
}

static void softmax(CornuEmitter *e, const CornuEmitCall *call)
{
    const Shifted   s = shift(e, call);
    const CornuName sum = along_rows(e, s.sum, call->op.in[0].shape);
    const CornuName p = cornu__hlo2(e, "divide", s.exps, sum);
    call->out[0] = cornu__hlo_convert(e, p, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__softmax_stablehlo = softmax;

/* log softmax of x in f32 at least; the caller rounds. */
static CornuName log_softmax_of(CornuEmitter *e, const CornuEmitCall *call)
{
    const Shifted   s = shift(e, call);
    const CornuName log_sum = cornu__hlo1(e, "log", s.sum);
    return cornu__hlo2(e, "subtract", s.below,
                       along_rows(e, log_sum, call->op.in[0].shape));
}

static void log_softmax(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_convert(e, log_softmax_of(e, call),
                                      cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__log_softmax_stablehlo = log_softmax;

/* Where the index along a new last axis is the label: a bool of shape (.., depth). */
static CornuName is_label(CornuEmitter *e, const CornuEmitCall *call, CornuName labels,
                          int64_t depth)
{
    const CornuHloType type = cornu__hlo_of(e, labels);
    CornuShape         shape = type.shape;
    int                axes[CORNU_MAX_RANK];
    cornu__hlo_check(e, call, "label", labels, depth);
    const PjrtType element = type.element == PJRT_U8 ? PJRT_S32
                           : type.element == PJRT_U32 ? PJRT_S64 : type.element;
    for (int i = 0; i < shape.rank; i++) axes[i] = i;
    shape.extent[shape.rank++] = depth;
    labels = cornu__hlo_broadcast(e, cornu__hlo_convert(e, labels, element), shape, axes);
    return cornu__hlo_compare(e, cornu__hlo_iota(e, cornu__hlo_of(e, labels), shape.rank - 1),
                              "EQ", labels);
}

static void one_hot(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuName there = is_label(e, call, call->in[0], call->op.attributes->one_hot.depth);
    call->out[0] = cornu__hlo_convert(e, there, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__one_hot_stablehlo = one_hot;

/* Selects, rather than multiplying by 0 or 1: 0 times -inf would be NaN. */
static void sparse_cross_entropy(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuShape logits = call->op.in[0].shape;
    const int        last = logits.rank - 1;
    const CornuName  log_p = log_softmax_of(e, call);
    const CornuName  there = is_label(e, call, call->in[1], logits.extent[last]);
    const CornuName  zero = cornu__hlo_constant(e, cornu__hlo_of(e, log_p), 0.0);
    const CornuName  chosen = cornu__hlo_select(e, there, log_p, zero);
    const CornuName  sum = cornu__hlo_reduce(e, "add", chosen, INT64_C(1) << last, 0.0);
    call->out[0] = cornu__hlo_convert(e, cornu__hlo1(e, "negate", sum),
                                      cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__sparse_cross_entropy_stablehlo = sparse_cross_entropy;
