/*
 * Reductions. `axes` is a set: bit i stands for axis i; all six bits stand for every axis,
 * whatever the rank. With `keep`, reduced axes stay with extent 1. f32, bf16 and f16 are summed in
 * f32, f64 in f64; with `widen` the result of bf16 and f16 stays f32.
 */
#include <math.h>

#include "rules.h"

enum { ALL_AXES = (1 << CORNU_MAX_RANK) - 1 };

static bool reduced(const CornuOpCall *call, int axis)
{
    return call->attributes->reduce.axes >> axis & 1;
}

static CornuStatus reduce_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_REDUCE *reduce = &call->attributes->reduce;
    CornuShape                    shape = call->in[0].shape;
    if (!cornu__is_number(call->in[0].dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, "x", "expected numbers");
    if (reduce->axes != ALL_AXES && (reduce->axes < 0 || reduce->axes >> shape.rank))
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x",
                             "the set of axes is 0x%llx, expected bits 0 to %d",
                             (unsigned long long)reduce->axes, shape.rank - 1);
    CornuShape result = { .rank = 0 };
    for (int i = 0; i < shape.rank; i++)
        if (!reduced(call, i)) result.extent[result.rank++] = shape.extent[i];
        else if (reduce->keep) result.extent[result.rank++] = 1;
    const CornuDtype dtype = call->in[0].dtype;
    const bool       narrow = dtype == CORNU_BF16 || dtype == CORNU_F16;
    out[0] = cornu_type_from(reduce->widen && narrow ? CORNU_F32 : dtype, result);
    return CORNU_OK;
}

/* The element of the result that element i of x belongs to. */
static int64_t target_of(const CornuOpCall *call, int64_t i)
{
    CornuShape shape = call->in[0].shape;
    int64_t    target = 0, stride = 1;
    for (int axis = shape.rank - 1; axis >= 0; axis--) {
        if (!reduced(call, axis)) {
            target += i % shape.extent[axis] * stride;
            stride *= shape.extent[axis];
        }
        i /= shape.extent[axis];
    }
    return target;
}

/* reduce_sum: 0 for an empty sum. */
static CornuStatus reduce_sum_reference(const CornuReferenceCall *call)
{
    int64_t terms = cornu_type_count(call->op.in[0]);
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = 0.0;
    for (int64_t i = 0; i < terms; i++)
        call->out[0][target_of(&call->op, i)] += call->in[0][i];
    return CORNU_OK;
}

const CornuOpRules cornu__reduce_sum_rules = {
    reduce_type, cornu__flops_per_element, CORNU_PRIMITIVE, reduce_sum_reference,
};

/* reduce_max: NaN if any element is NaN. Empty axes are refused. */
static CornuStatus reduce_max_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(reduce_type(call, out));
    for (int i = 0; i < call->in[0].shape.rank; i++)
        if (reduced(call, i) && call->in[0].shape.extent[i] == 0)
            return cornu__refuse(call, CORNU_ERR_SHAPE, "x",
                                 "axis %d has extent 0, expected at least 1", i);
    return CORNU_OK;
}

static CornuStatus reduce_max_reference(const CornuReferenceCall *call)
{
    double *y = call->out[0];
    int64_t terms = cornu_type_count(call->op.in[0]);
    for (int64_t i = 0; i < call->count; i++) y[i] = -INFINITY;
    for (int64_t i = 0; i < terms; i++) {
        double  x = call->in[0][i];
        int64_t target = target_of(&call->op, i);
        if (x > y[target] || isnan(x)) y[target] = x;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__reduce_max_rules = {
    reduce_max_type, cornu__flops_per_element, CORNU_PRIMITIVE, reduce_max_reference,
};

/* argmax: i32, the index of the largest element along `axis`, the first if several are equal; a NaN
 * counts as larger than any number. The axis is removed. */
static CornuStatus argmax_type(const CornuOpCall *call, CornuType *out)
{
    CornuShape shape = call->in[0].shape;
    int64_t    axis = call->attributes->axis.axis;
    if (!cornu__is_number(call->in[0].dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, "x", "expected numbers");
    if (axis < 0 || axis >= shape.rank)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "axis %lld, expected 0 to %d",
                             (long long)axis, shape.rank - 1);
    if (shape.extent[axis] < 1 || shape.extent[axis] > INT32_MAX)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x",
                             "axis %lld has extent %lld, expected 1 to %d", (long long)axis,
                             (long long)shape.extent[axis], INT32_MAX);
    CornuShape result = { .rank = 0 };
    for (int i = 0; i < shape.rank; i++)
        if (i != axis) result.extent[result.rank++] = shape.extent[i];
    out[0] = cornu_type_from(CORNU_I32, result);
    return CORNU_OK;
}

static CornuStatus argmax_reference(const CornuReferenceCall *call)
{
    CornuShape shape = call->op.in[0].shape;
    int        axis = (int)call->op.attributes->axis.axis;
    int64_t    extent = shape.extent[axis], inner = 1;
    for (int i = axis + 1; i < shape.rank; i++) inner *= shape.extent[i];
    for (int64_t i = 0; i < call->count; i++) {
        const double *x = call->in[0] + i / inner * extent * inner + i % inner;
        int64_t       best = 0;
        for (int64_t k = 1; k < extent && !isnan(x[best * inner]); k++)
            if (x[k * inner] > x[best * inner] || isnan(x[k * inner])) best = k;
        call->out[0][i] = (double)best;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__argmax_rules = {
    argmax_type, cornu__flops_per_element, CORNU_PRIMITIVE, argmax_reference,
};
