/* Comparison and selection: recording and gradients. */
#include "../tensor_internal.h"

CornuTensor *cornu_op_compare(CornuTensor *a, CornuComparison comparison, CornuTensor *b)
{
    CornuAttributes attributes = { .compare = { .comparison = comparison } };
    CornuTensor    *x[2] = { a, b }, *out[CORNU_MAX_OUTPUTS];
    if (!cornu__broadcast_operands(CORNU_OP_COMPARE, x, 2)) return NULL;
    return cornu__record(CORNU_OP_COMPARE, &attributes, x, 2, out);
}
CornuGradient *const cornu__compare_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_is_finite(CornuTensor *x)
{
    return cornu__record1(CORNU_OP_IS_FINITE, x);
}
CornuGradient *const cornu__is_finite_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_select(CornuTensor *condition, CornuTensor *a, CornuTensor *b)
{
    CornuTensor *x[3] = { condition, a, b }, *out[CORNU_MAX_OUTPUTS];
    if (!cornu__broadcast_operands(CORNU_OP_SELECT, x, 3)) return NULL;
    return cornu__record(CORNU_OP_SELECT, NULL, x, 3, out);
}

/* d_a = condition ? d : 0, d_b = condition ? 0 : d */
static void select_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *zero = cornu_op_constant_like(d[0], 0.0);
    if (op->wanted[1]) d_x[1] = cornu_op_select(op->in[0], d[0], zero);
    if (op->wanted[2]) d_x[2] = cornu_op_select(op->in[0], zero, d[0]);
}
CornuGradient *const cornu__select_gradient = select_gradient;
