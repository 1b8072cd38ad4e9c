/* Products of matrices: recording them, leading axes folded into rows, and gradients. */
#include "../tensor_internal.h"

static CornuTensor *record_matmul(CornuTensor *a, bool transpose_a, CornuTensor *b,
                                  bool transpose_b, CornuDtype dtype)
{
    CornuAttributes attributes = { .matmul = { .transpose_a = transpose_a,
                                               .transpose_b = transpose_b, .dtype = dtype } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_MATMUL, &attributes, (CornuTensor *[]){ a, b }, 2, out);
}

static CornuTensor *transposed_product(CornuTensor *a, bool transpose_a, CornuTensor *b,
                                       bool transpose_b, CornuDtype dtype)
{
    if (!a || !b || transpose_a || cornu_tensor_shape(a).rank <= 2 ||
        cornu_tensor_shape(b).rank != 2)
        return record_matmul(a, transpose_a, b, transpose_b, dtype);
    /* One matrix b for all leading axes of a: they become rows of one product, also in the
     * gradient. */
    CornuShape   shape = cornu_tensor_shape(a);
    int          last = shape.rank - 1;
    CornuTensor *rows = cornu_op_reshape(a, cornu_shape(CORNU_NONE, shape.extent[last]));
    CornuTensor *y = record_matmul(rows, false, b, transpose_b, dtype);
    if (!y) return NULL;
    shape.extent[last] = cornu_tensor_shape(y).extent[1];
    return cornu_op_reshape(y, shape);
}

CornuTensor *cornu_op_matmul_to(CornuTensor *a, CornuTensor *b, CornuDtype dtype)
{
    return transposed_product(a, false, b, false, dtype);
}

CornuTensor *cornu_op_matmul_transposed(CornuTensor *a, bool transpose_a, CornuTensor *b,
                                        bool transpose_b)
{
    return transposed_product(a, transpose_a, b, transpose_b,
                              a ? cornu_tensor_type(a).dtype : CORNU_F32);
}

CornuTensor *cornu_op_matmul(CornuTensor *a, CornuTensor *b)
{
    return cornu_op_matmul_transposed(a, false, b, false);
}

static CornuTensor *as_rows(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(CORNU_NONE, shape.extent[shape.rank - 1]));
}

CornuTensor *cornu__product_over_rows(CornuTensor *a, CornuTensor *b, CornuDtype dtype)
{
    return record_matmul(as_rows(a), true, as_rows(b), false, dtype);
}

/* Sums over the leading axes that x lacks. */
static CornuTensor *unrepeat(CornuTensor *d, CornuTensor *x)
{
    if (!d) return NULL;
    int extra = cornu_tensor_shape(d).rank - cornu_tensor_shape(x).rank;
    return cornu_op_reduce_sum(d, (INT64_C(1) << extra) - 1, false);
}

/* For y = A B: d_A = d B^T, d_B = A^T d, each transposed if it is stored so. d is converted to the
 * dtype of A and B; products come directly in the dtype of the gradient. */
static void matmul_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuTensor *a = op->in[0], *b = op->in[1];
    bool         ta = op->attributes->matmul.transpose_a, tb = op->attributes->matmul.transpose_b;
    CornuTensor *d = cornu_op_convert(d_y[0], cornu_tensor_type(a).dtype);
    CornuDtype   of_a = cornu__gradient_dtype(a), of_b = cornu__gradient_dtype(b);
    if (op->wanted[0])
        d_x[0] = unrepeat(ta ? record_matmul(b, tb, d, true, of_a)
                          : record_matmul(d, false, b, !tb, of_a), a);
    if (op->wanted[1])
        d_x[1] = unrepeat(tb ? record_matmul(d, true, a, ta, of_b)
                          : record_matmul(a, !ta, d, false, of_b), b);
}
CornuGradient *const cornu__matmul_gradient = matmul_gradient;

CornuTensor *cornu_op_resample(CornuTensor *x, CornuTensor *matrix, int axis)
{
    CornuAttributes attributes = { .axis = { .axis = axis } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_RESAMPLE, &attributes, (CornuTensor *[]){ x, matrix }, 2, out);
}

/* x with the axis as the last one. */
static CornuTensor *axis_last(CornuTensor *x, int axis)
{
    const int rank = x ? cornu_tensor_shape(x).rank : 0;
    int       axes[CORNU_MAX_RANK];
    for (int i = 0; i < rank; i++) axes[i] = i < axis ? i : i + 1 < rank ? i + 1 : axis;
    return axis + 1 < rank ? cornu_op_transpose(x, axes) : x;
}

/* d_x is resampled by the transposed matrix, whose rows are as narrow; d_m[t, k] is the sum over
 * all places beside the axis of d_y[t] x[k]. */
static void resample_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    const int    axis = (int)op->attributes->axis.axis;
    CornuTensor *d = cornu_op_convert(d_y[0], cornu_tensor_type(op->in[0]).dtype);
    if (op->wanted[0])
        d_x[0] = cornu_op_resample(d, cornu_op_transpose(op->in[1], (const int[]){ 1, 0 }), axis);
    if (op->wanted[1])
        d_x[1] = cornu__product_over_rows(axis_last(d, axis), axis_last(op->in[0], axis),
                                          cornu__gradient_dtype(op->in[1]));
}
CornuGradient *const cornu__resample_gradient = resample_gradient;
