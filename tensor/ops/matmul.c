#include "../tensor_internal.h"

static CornuTensor *record(CornuTensor *a, bool transpose_a, CornuTensor *b, bool transpose_b)
{
    if (!a || !b)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "matmul: operand %d is NULL", a ? 1 : 0);
    CornuAttributes attributes = { .matmul = { .transpose_a = transpose_a,
                                               .transpose_b = transpose_b,
                                               .dtype = cornu_tensor_type(a).dtype } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_MATMUL, &attributes, (CornuTensor *[]){ a, b }, 2, out);
}

CornuTensor *cornu_op_matmul_transposed(CornuTensor *a, bool transpose_a, CornuTensor *b,
                                        bool transpose_b)
{
    if (!a || !b || transpose_a || cornu_tensor_shape(a).rank <= 2 ||
        cornu_tensor_shape(b).rank != 2)
        return record(a, transpose_a, b, transpose_b);
    /* One matrix for all leading axes: they are rows of one product, and so is the gradient. */
    CornuShape   shape = cornu_tensor_shape(a);
    int          last = shape.rank - 1;
    CornuTensor *rows = cornu_op_reshape(a, cornu_shape(CORNU_NONE, shape.extent[last]));
    CornuTensor *y = record(rows, false, b, transpose_b);
    if (!y) return NULL;
    shape.extent[last] = cornu_tensor_shape(y).extent[1];
    return cornu_op_reshape(y, shape);
}

CornuTensor *cornu_op_matmul(CornuTensor *a, CornuTensor *b)
{
    return cornu_op_matmul_transposed(a, false, b, false);
}

/* Sums over the leading axes that an operand without them was repeated along. */
static CornuTensor *unrepeat(CornuTensor *d, CornuTensor *x)
{
    if (!d) return NULL;
    int extra = cornu_tensor_shape(d).rank - cornu_tensor_shape(x).rank;
    return cornu_op_reduce_sum(d, (INT64_C(1) << extra) - 1, false);
}

/* For y = A B: d_A = d B^T, d_B = A^T d; each transposed where it is stored so. */
static void matmul_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *a = op->in[0], *b = op->in[1];
    bool         ta = op->attributes->matmul.transpose_a, tb = op->attributes->matmul.transpose_b;
    if (op->wanted[0])
        d_x[0] = unrepeat(ta ? record(b, tb, d[0], true) : record(d[0], false, b, !tb), a);
    if (op->wanted[1])
        d_x[1] = unrepeat(tb ? record(d[0], true, a, ta) : record(a, !ta, d[0], false), b);
}
CornuGradient *const cornu__matmul_gradient = matmul_gradient;
