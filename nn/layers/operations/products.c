/* Operations with products of matrices. */
#include "../einsum_internal.h"
#include "operation_internal.h"

/* The leading axes of two operands of matmul, broadcast to each other. */
static bool broadcast_leading(CornuTensor **a, CornuTensor **b)
{
    CornuShape x = cornu_tensor_shape(*a), y = cornu_tensor_shape(*b);
    if (x.rank == 2 || y.rank == 2) return true;   /* absent in one of them */
    const int  rank = x.rank > y.rank ? x.rank : y.rank;
    CornuShape of_a = { .rank = rank }, of_b = { .rank = rank };
    for (int i = 0; i < rank; i++) {
        const int     xi = i - (rank - x.rank), yi = i - (rank - y.rank);
        const int64_t m = xi < 0 ? 1 : x.extent[xi], n = yi < 0 ? 1 : y.extent[yi];
        const bool    leads = i < rank - 2;
        of_a.extent[i] = leads && m == 1 ? n : m;
        of_b.extent[i] = leads && n == 1 ? m : n;
    }
    if (!cornu_shape_equal(of_a, x)) *a = cornu__broadcast_to(*a, of_a);
    if (!cornu_shape_equal(of_b, y)) *b = cornu__broadcast_to(*b, of_b);
    return *a && *b;
}

/* As numpy.matmul: a vector is a row on the left and a column on the right. */
static CornuTensor *multiplied(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b) return NULL;
    const CornuDtype dtype = cornu_tensor_type(a).dtype;
    const bool       row = cornu_tensor_shape(a).rank == 1;
    const bool       column = cornu_tensor_shape(b).rank == 1;
    /* Whole numbers of 32 bits are exact in f64. */
    if (!cornu_dtype_is_float(dtype)) {
        a = cornu_op_convert(a, CORNU_F64);
        b = cornu_op_convert(b, CORNU_F64);
    }
    if (row) a = cornu__add_axis(a, 0);
    if (column) b = cornu__add_axis(b, 1);
    if (!a || !b || !broadcast_leading(&a, &b)) return NULL;
    CornuTensor *y = cornu_op_convert(cornu_op_matmul(a, b), dtype);
    if (y && column) y = cornu__drop_axis(y, cornu_tensor_shape(y).rank - 1);
    if (y && row) y = cornu__drop_axis(y, cornu_tensor_shape(y).rank - (column ? 1 : 2));
    return y;
}

CornuTensor *cornu__operation_matmul(const CornuOperands *o)
{
    CornuTensor *a, *b;
    return cornu__operand_pair(o, false, &a, &b) ? multiplied(a, b) : NULL;
}

/* numpy.dot: the last axis of a with the last but one of b, whose other axes follow those of a. */
CornuTensor *cornu__operation_dot(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    const int m = cornu_tensor_shape(a).rank, n = cornu_tensor_shape(b).rank;
    if (m == 0 || n == 0) return cornu_op_multiply(a, b);
    if (n <= 2) return multiplied(a, b);
    const CornuShape of_a = cornu_tensor_shape(a), of_b = cornu_tensor_shape(b);
    const int64_t    summed = of_b.extent[n - 2];
    CornuShape       result = { .rank = m + n - 2 };
    if (result.rank > CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its result has too many axes");
    for (int i = 0; i < m - 1; i++) result.extent[i] = of_a.extent[i];
    for (int i = 0; i < n - 2; i++) result.extent[m - 1 + i] = of_b.extent[i];
    result.extent[result.rank - 1] = of_b.extent[n - 1];
    b = cornu_op_reshape(cornu__move_axis(b, n - 2, 0),
                         cornu_shape(summed, cornu_shape_count(of_b) / summed));
    return b ? cornu_op_reshape(multiplied(a, b), result) : NULL;
}

CornuTensor *cornu__operation_einsum(const CornuOperands *o)
{
    const int    count = (int)json_array_size(o->args);
    CornuOperand operands[CORNU_EINSUM_OPERANDS];
    CornuTensor *x[CORNU_EINSUM_OPERANDS];
    if (count < 1 || count > CORNU_EINSUM_OPERANDS)
        return cornu__operation_refuse(o, "expected 1 to 16 tensors");
    for (int i = 0; i < count; i++)
        if (!cornu__operand(o, "", i, &operands[i])) return NULL;
    if (!cornu__operands_join(o, operands, count, false, x)) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x[0]).dtype;
    const CornuDtype exact = cornu_dtype_is_float(dtype) ? dtype : CORNU_F64;
    for (int i = 0; i < count; i++) x[i] = cornu_op_convert(x[i], exact);
    return cornu_op_convert(cornu__einsum(cornu__argument_text(o, "subscripts", ""), x, count,
                                          exact), dtype);
}
