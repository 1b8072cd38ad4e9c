#include "../tensor_internal.h"

static CornuTensor *reduce(CornuOpId id, CornuTensor *x, int64_t axes, bool keep)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand 0 is NULL", cornu_op_name(id));
    int rank = cornu_tensor_shape(x).rank;
    if (axes == CORNU_ALL_AXES) axes = (INT64_C(1) << rank) - 1;
    if (axes == 0) return x;
    CornuAttributes attributes = { .reduce = { .axes = axes, .keep = keep } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, &attributes, &x, 1, out);
}

CornuTensor *cornu_op_reduce_sum(CornuTensor *x, int64_t axes, bool keep)
{
    return reduce(CORNU_OP_REDUCE_SUM, x, axes, keep);
}

CornuTensor *cornu_op_reduce_max(CornuTensor *x, int64_t axes, bool keep)
{
    return reduce(CORNU_OP_REDUCE_MAX, x, axes, keep);
}

CornuTensor *cornu_op_reduce_mean(CornuTensor *x, int64_t axes, bool keep)
{
    CornuTensor *sum = cornu_op_reduce_sum(x, axes, keep);
    if (!sum) return NULL;
    double before = (double)cornu_type_count(cornu_tensor_type(x));
    double after = (double)cornu_type_count(cornu_tensor_type(sum));
    return cornu_op_scale(sum, after / before);
}

CornuTensor *cornu_op_mean(CornuTensor *x)
{
    return cornu_op_reduce_mean(x, CORNU_ALL_AXES, false);
}
CornuTensor *cornu_op_sum(CornuTensor *x)
{
    return cornu_op_reduce_sum(x, CORNU_ALL_AXES, false);
}

/* A reduced tensor as it would be with its axes kept, stretched to x's shape. */
static CornuTensor *stretch(const CornuRecorded *op, CornuTensor *reduced)
{
    CornuShape x = cornu_tensor_shape(op->in[0]), kept = x;
    for (int i = 0; i < kept.rank; i++)
        if (op->attributes->reduce.axes >> i & 1) kept.extent[i] = 1;
    return cornu_op_broadcast(cornu_op_reshape(reduced, kept), x);
}

static void reduce_sum_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = cornu_op_convert(stretch(op, d[0]), cornu_tensor_type(op->in[0]).dtype);
}
CornuGradient *const cornu__reduce_sum_gradient = reduce_sum_gradient;

/* Equal maxima share the gradient, as in JAX. */
static void reduce_max_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *largest = cornu_op_compare(op->in[0], CORNU_EQUAL, stretch(op, op->out[0]));
    CornuTensor *mask = cornu_op_convert(largest, cornu_tensor_type(d[0]).dtype);
    CornuTensor *ties = cornu_op_reduce_sum(mask, op->attributes->reduce.axes,
                                            op->attributes->reduce.keep);
    d_x[0] = cornu_op_multiply(mask, stretch(op, cornu_op_divide(d[0], ties)));
}
CornuGradient *const cornu__reduce_max_gradient = reduce_max_gradient;

CornuTensor *cornu_op_argmax(CornuTensor *x, int axis)
{
    CornuAttributes attributes = { .axis = { .axis = axis } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_ARGMAX, &attributes, &x, 1, out);
}
CornuGradient *const cornu__argmax_gradient = CORNU_NO_GRADIENT;
