/* Products of two tensors beyond matmul: inner, outer, tensordot, cross, kron; distances. */
#include "operation_internal.h"

/* x as (rows, columns): the axes in this order, the first `rows` of them in one. */
static CornuTensor *as_matrix(CornuTensor *x, const int *order, int rows)
{
    const int  rank = cornu_tensor_shape(x).rank;
    CornuShape shape = cornu_shape(1, 1);
    bool       same = true;
    for (int i = 0; i < rank; i++) {
        shape.extent[i < rows ? 0 : 1] *= cornu_tensor_shape(x).extent[order[i]];
        same &= order[i] == i;
    }
    return cornu_op_reshape(same ? x : cornu_op_transpose(x, order), shape);
}

/* Whole numbers of 32 bits are exact in f64. */
static CornuTensor *product(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b) return NULL;
    const CornuDtype dtype = cornu_tensor_type(a).dtype;
    if (cornu_dtype_is_float(dtype)) return cornu_op_matmul(a, b);
    return cornu_op_convert(cornu_op_matmul(cornu_op_convert(a, CORNU_F64),
                                            cornu_op_convert(b, CORNU_F64)), dtype);
}

/* Sums over `count` axes of each; the other ones of a, then those of b, are left. */
static CornuTensor *contracted(const CornuOperands *o, CornuTensor *a, CornuTensor *b, int count,
                               const int *of_a, const int *of_b)
{
    const CornuShape x = cornu_tensor_shape(a), y = cornu_tensor_shape(b);
    CornuShape       result = { .rank = 0 };
    int  left[CORNU_MAX_RANK] = { 0 }, right[CORNU_MAX_RANK] = { 0 }, m = 0, n = 0;
    bool sums_a[CORNU_MAX_RANK] = { false }, sums_b[CORNU_MAX_RANK] = { false };
    for (int i = 0; i < count; i++) {
        if (sums_a[of_a[i]] || sums_b[of_b[i]])
            return cornu__operation_refuse(o, "sums over an axis twice");
        if (x.extent[of_a[i]] != y.extent[of_b[i]])
            return cornu__operation_refuse(o, "the extents of the axes that are summed differ");
        sums_a[of_a[i]] = sums_b[right[n++] = of_b[i]] = true;
    }
    if (x.rank + y.rank - 2 * count > CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its result has too many axes");
    for (int i = 0; i < x.rank; i++)
        if (!sums_a[i]) result.extent[result.rank++] = x.extent[left[m++] = i];
    for (int i = 0; i < y.rank; i++)
        if (!sums_b[i]) result.extent[result.rank++] = y.extent[right[n++] = i];
    const int rows = m;
    for (int i = 0; i < count; i++) left[m++] = of_a[i];
    return cornu_op_reshape(product(as_matrix(a, left, rows), as_matrix(b, right, count)), result);
}

/* One number of axes, the last ones of x1 and the first ones of x2, or a list for each. */
CornuTensor *cornu__operation_tensordot(const CornuOperands *o)
{
    CornuTensor  *a, *b;
    const json_t *axes = cornu__argument(o, "axes", -1);
    int           of_a[CORNU_MAX_RANK], of_b[CORNU_MAX_RANK], count = 2;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    const int m = cornu_tensor_shape(a).rank, n = cornu_tensor_shape(b).rank;
    if (json_is_array(axes)) {
        const json_t *first = json_array_get(axes, 0), *second = json_array_get(axes, 1);
        count = json_is_array(first) ? (int)json_array_size(first) : 1;
        for (int i = 0; i < count && i < CORNU_MAX_RANK; i++) {
            const json_t *p = json_is_array(first) ? json_array_get(first, (size_t)i) : first;
            const json_t *q = json_is_array(second) ? json_array_get(second, (size_t)i) : second;
            of_a[i] = (int)json_integer_value(p) + (json_integer_value(p) < 0 ? m : 0);
            of_b[i] = (int)json_integer_value(q) + (json_integer_value(q) < 0 ? n : 0);
        }
    } else {
        count = (int)cornu__argument_integer(o, "axes", 2);
        for (int i = 0; i < count && i < CORNU_MAX_RANK; i++) {
            of_a[i] = m - count + i;
            of_b[i] = i;
        }
    }
    for (int i = 0; i < count; i++)
        if (count > m || count > n || of_a[i] < 0 || of_a[i] >= m || of_b[i] < 0 || of_b[i] >= n)
            return cornu__operation_refuse(o, "an axis does not exist");
    return contracted(o, a, b, count, of_a, of_b);
}

CornuTensor *cornu__operation_inner(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    const int m = cornu_tensor_shape(a).rank, n = cornu_tensor_shape(b).rank;
    if (m == 0 || n == 0) return cornu_op_multiply(a, b);
    return contracted(o, a, b, 1, (const int[]){ m - 1 }, (const int[]){ n - 1 });
}

static bool flat_pair(const CornuOperands *o, CornuTensor **a, CornuTensor **b)
{
    if (!cornu__operand_pair(o, false, a, b)) return false;
    *a = cornu_op_reshape(*a, cornu_shape(CORNU_NONE));
    *b = cornu_op_reshape(*b, cornu_shape(CORNU_NONE));
    return *a && *b;
}

CornuTensor *cornu__operation_outer(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!flat_pair(o, &a, &b)) return NULL;
    return cornu_op_multiply(cornu__add_axis(a, 1), cornu__add_axis(b, 0));
}

CornuTensor *cornu__operation_vdot(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!flat_pair(o, &a, &b)) return NULL;
    return cornu_op_reduce_sum(cornu_op_multiply(a, b), 1, false);
}

/* Blocks x2 x1[i, …]: axis i has the product of both extents. */
CornuTensor *cornu__operation_kron(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    while (a && cornu_tensor_shape(a).rank < cornu_tensor_shape(b).rank) a = cornu__add_axis(a, 0);
    while (a && b && cornu_tensor_shape(b).rank < cornu_tensor_shape(a).rank)
        b = cornu__add_axis(b, 0);
    if (!a || !b) return NULL;
    CornuShape       result = cornu_tensor_shape(a);
    const CornuShape block = cornu_tensor_shape(b);
    if (2 * result.rank > CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its tensors have too many axes");
    for (int i = 0; i < result.rank; i++) {
        result.extent[i] *= block.extent[i];
        a = cornu__add_axis(a, 2 * i + 1);
        b = cornu__add_axis(b, 2 * i);
    }
    return cornu_op_reshape(cornu_op_multiply(a, b), result);
}

/* ---- Vectors of three ---- */

/* An operand with its vectors, of two or three elements, along the last axis. */
static CornuTensor *vectors(const CornuOperands *o, const char *name, int at, const char *axis)
{
    CornuTensor *x = cornu__operand_tensor(o, name, at);
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    const int along = cornu__argument_axis(o, cornu__argument(o, "axis", -1) ? "axis" : axis, rank,
                                           -1);
    if (along < 0) return NULL;
    x = cornu__move_axis(x, along, rank - 1);
    const int64_t n = x ? cornu_tensor_shape(x).extent[rank - 1] : 3;
    return n == 3 || n == 2 ? x : cornu__operation_refuse(o, "expected vectors of 2 or 3 elements");
}

/* Element i of the vectors; the third one of two is 0. */
static CornuTensor *element(CornuTensor *x, int i)
{
    const CornuShape shape = cornu_tensor_shape(x);
    const int        last = shape.rank - 1;
    if (i < shape.extent[last]) return cornu__slice_axis(x, last, i, i + 1);
    return cornu__like(cornu__slice_axis(x, last, 0, 1), 0.0);
}

CornuTensor *cornu__operation_cross(const CornuOperands *o)
{
    CornuTensor *a = vectors(o, "x1", 0, "axisa"), *b = a ? vectors(o, "x2", 1, "axisb") : NULL;
    if (!b) return NULL;
    const CornuDtype dtype = cornu__promote(cornu_tensor_type(a).dtype,
                                            cornu_tensor_type(b).dtype);
    const bool flat = cornu_tensor_shape(a).extent[cornu_tensor_shape(a).rank - 1] == 2 &&
                      cornu_tensor_shape(b).extent[cornu_tensor_shape(b).rank - 1] == 2;
    CornuTensor *parts[3];
    a = cornu_op_convert(a, dtype);
    b = cornu_op_convert(b, dtype);
    for (int i = 0; i < 3 && a && b; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        parts[i] = cornu_op_subtract(cornu_op_multiply(element(a, j), element(b, k)),
                                     cornu_op_multiply(element(a, k), element(b, j)));
        if (!parts[i]) return NULL;
    }
    if (!a || !b) return NULL;
    const int last = cornu_tensor_shape(parts[2]).rank - 1;
    if (flat) return cornu__drop_axis(parts[2], last);
    CornuTensor *y = cornu_op_concat(parts, 3, last);
    const int axis = cornu__argument_axis(o, cornu__argument(o, "axis", -1) ? "axis" : "axisc",
                                          last + 1, -1);
    return axis < 0 ? NULL : cornu__move_axis(y, last, axis);
}

/* The distances of all rows of x (…, M, C) to those of y (…, N, C), (…, M, N). */
CornuTensor *cornu__operation_cdist(const CornuOperands *o)
{
    CornuOperand operands[2];
    CornuTensor *x[2];
    if (!cornu__operand(o, "x", 0, &operands[0]) || !cornu__operand(o, "y", 1, &operands[1]) ||
        !cornu__operands_join(o, operands, 2, true, x))
        return NULL;
    const int m = cornu_tensor_shape(x[0]).rank, n = cornu_tensor_shape(x[1]).rank;
    if (m < 2 || n < 2) return cornu__operation_refuse(o, "expected rows of vectors");
    CornuTensor *distance = cornu_op_subtract(cornu__add_axis(x[0], m - 1),
                                              cornu__add_axis(x[1], n - 2));
    CornuTensor *square = cornu_op_square(distance);
    if (!square) return NULL;
    square = cornu_op_reduce_sum(square, INT64_C(1) << (cornu_tensor_shape(square).rank - 1),
                                 false);
    CornuTensor *zero = square ? cornu_op_compare(square, CORNU_EQUAL, cornu__like(square, 0.0))
                               : NULL;
    CornuTensor *root = square ? cornu_op_sqrt(cornu_op_select(zero, cornu__like(square, 1.0),
                                                               square)) : NULL;
    return root ? cornu_op_select(zero, cornu__like(root, 0.0), root) : NULL;
}
