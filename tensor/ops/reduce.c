/* Reductions: maxima, means and indices of maxima; broadcast.c has sums. */
#include "../function_internal.h"
#include "../tensor_internal.h"

CornuTensor *cornu_op_reduce_max(CornuTensor *x, int64_t axes, bool keep)
{
    return cornu__reduce(CORNU_OP_REDUCE_MAX, x, axes, keep);
}

static CornuTensor *mean(CornuTensor *const *x, int count, const double *numbers)
{
    CornuTensor *sum = cornu_op_reduce_sum(x[0], (int64_t)numbers[0], numbers[1] != 0.0);
    (void)count;
    if (!sum) return NULL;
    double before = (double)cornu_type_count(cornu_tensor_type(x[0]));
    double after = (double)cornu_type_count(cornu_tensor_type(sum));
    return cornu_op_scale(sum, after / before);
}

CornuTensor *cornu_op_reduce_mean(CornuTensor *x, int64_t axes, bool keep)
{
    static const CornuFunction function = CORNU__FUNCTION("reduce_mean", .formula = mean);
    return cornu__function(&function, &x, 1, (double[]){ (double)axes, keep }, 2);
}

CornuTensor *cornu_op_mean(CornuTensor *x)
{
    return cornu_op_reduce_mean(x, CORNU_ALL_AXES, false);
}
CornuTensor *cornu_op_sum(CornuTensor *x)
{
    return cornu_op_reduce_sum(x, CORNU_ALL_AXES, false);
}

/* Equal maxima share the gradient, as in JAX. */
static void reduce_max_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *largest = cornu_op_compare(op->in[0], CORNU_EQUAL,
                                            cornu__broadcast_reduced(op, op->out[0]));
    CornuTensor *mask = cornu_op_convert(largest, cornu_tensor_type(d[0]).dtype);
    CornuTensor *ties = cornu_op_reduce_sum(mask, op->attributes->reduce.axes,
                                            op->attributes->reduce.keep);
    d_x[0] = cornu_op_multiply(mask, cornu__broadcast_reduced(op, cornu_op_divide(d[0], ties)));
}
CornuGradient *const cornu__reduce_max_gradient = reduce_max_gradient;

CornuTensor *cornu_op_argmax(CornuTensor *x, int axis)
{
    CornuAttributes attributes = { .axis = { .axis = axis } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_ARGMAX, &attributes, &x, 1, out);
}
CornuGradient *const cornu__argmax_gradient = CORNU_NO_GRADIENT;
