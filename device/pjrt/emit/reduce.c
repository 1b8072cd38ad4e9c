/* Reductions, and the position of the largest. */
#include <math.h>

#include "emit.h"

enum { ALL_AXES = (1 << CORNU_MAX_RANK) - 1 };

/* bf16 and f16 are summed in f32. */
static void reduce_sum(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuDtype from = call->op.in[0].dtype;
    const bool       narrow = from == CORNU_BF16 || from == CORNU_F16;
    CornuName        x = call->in[0];
    if (narrow) x = cornu__hlo_convert(e, x, PJRT_F32);
    x = cornu__hlo_reduce(e, "add", x, call->op.attributes->reduce.axes & ALL_AXES, 0.0);
    x = cornu__hlo_reshape(e, x, call->out_type[0].shape);
    call->out[0] = cornu__hlo_convert(e, x, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__reduce_sum_stablehlo = reduce_sum;

/* Smaller than or equal to every number of the dtype. */
static double least(CornuDtype dtype)
{
    if (cornu_dtype_is_float(dtype)) return -INFINITY;
    return dtype == CORNU_I32 ? (double)INT32_MIN : dtype == CORNU_I64 ? (double)INT64_MIN : 0.0;
}

static void reduce_max(CornuEmitter *e, const CornuEmitCall *call)
{
    CornuName x = cornu__hlo_reduce(e, "maximum", call->in[0],
                                    call->op.attributes->reduce.axes & ALL_AXES,
                                    least(call->op.in[0].dtype));
    x = cornu__hlo_reshape(e, x, call->out_type[0].shape);
    call->out[0] = cornu__hlo_convert(e, x, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__reduce_max_stablehlo = reduce_max;

/* The smallest index of those that equal the largest, or are NaN, which no number equals. */
static void argmax(CornuEmitter *e, const CornuEmitCall *call)
{
    const int          axis = (int)call->op.attributes->axis.axis;
    const CornuName    x = call->in[0];
    const CornuHloType type = cornu__hlo_of(e, x), indices = cornu__hlo_as(type, PJRT_S32);
    int                axes[CORNU_MAX_RANK];
    for (int i = 0; i < type.shape.rank; i++) axes[i] = i < axis ? i : i + 1;
    const CornuName largest = cornu__hlo_reduce(e, "maximum", x, INT64_C(1) << axis,
                                                least(call->op.in[0].dtype));
    const CornuName every = cornu__hlo_broadcast(e, largest, type.shape, axes);
    CornuName       is_largest = cornu__hlo_compare(e, x, "EQ", every);
    if (cornu__hlo_is_float(type.element))
        is_largest = cornu__hlo2(e, "or", is_largest, cornu__hlo_compare(e, x, "NE", x));
    const CornuName index = cornu__hlo_select(e, is_largest, cornu__hlo_iota(e, indices, axis),
                                              cornu__hlo_integer(e, indices, INT32_MAX));
    call->out[0] = cornu__hlo_reduce(e, "minimum", index, INT64_C(1) << axis, INT32_MAX);
}
CornuEmit *const cornu__argmax_stablehlo = argmax;
