/* Operations on the bits of whole numbers, by arithmetic: the ops have none on bits. */
#include "operation_internal.h"

/* The bits of x along a new last axis, i64 0 or 1, for -2^31 <= x < 2^32: floor(x / 2^k) mod 2. */
static CornuTensor *bits_of(CornuTensor *x, CornuTensor **weights)
{
    enum { BITS = 33 };   /* the last one, with a negative weight, is the sign */
    x = cornu_op_convert(x, CORNU_F64);
    if (!x) return NULL;
    const int rank = cornu_tensor_shape(x).rank;
    CornuType type = cornu_type(CORNU_F64, BITS);
    CornuTensor *k = cornu_op_iota(cornu_tensor_graph(x), type, 0);
    CornuTensor *power = cornu_op_power(cornu__like(k, 2.0), k);
    CornuTensor *last = cornu_op_compare(k, CORNU_EQUAL, cornu__like(k, BITS - 1.0));
    *weights = cornu_op_select(last, cornu_op_negative(power), power);
    CornuTensor *rest = cornu_op_floor(cornu_op_divide(cornu__add_axis(x, rank), power));
    CornuTensor *half = cornu_op_floor(cornu_op_scale(rest, 0.5));
    return cornu_op_subtract(rest, cornu_op_scale(half, 2.0));
}

static CornuTensor *number_of(CornuTensor *bits, CornuTensor *weights, CornuDtype dtype)
{
    CornuTensor *y = cornu_op_multiply(bits, weights);
    if (!y) return NULL;
    y = cornu_op_reduce_sum(y, INT64_C(1) << (cornu_tensor_shape(y).rank - 1), false);
    return cornu_op_convert(y, dtype);
}

/* Operands x and y of one dtype, whole numbers; false with a pending error. */
static bool whole_pair(const CornuOperands *o, CornuTensor **x)
{
    CornuOperand operands[2];
    if (!cornu__operand(o, "x", 0, &operands[0]) || !cornu__operand(o, "y", 1, &operands[1]) ||
        !cornu__operands_join(o, operands, 2, false, x))
        return false;
    if (!cornu_dtype_is_float(cornu_tensor_type(x[0]).dtype)) return true;
    return cornu__operation_refuse(o, "expected whole numbers") != NULL;
}

typedef CornuTensor *Combine(CornuTensor *a, CornuTensor *b);

static CornuTensor *by_bits(const CornuOperands *o, Combine *combine)
{
    CornuTensor *x[2], *weights;
    if (!whole_pair(o, x)) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x[0]).dtype;
    CornuTensor     *a = bits_of(x[0], &weights), *b = bits_of(x[1], &weights);
    return number_of(combine(a, b), weights, dtype);
}

static CornuTensor *differ(CornuTensor *a, CornuTensor *b)
{
    return cornu_op_absolute(cornu_op_subtract(a, b));
}

CornuTensor *cornu__operation_bitwise_and(const CornuOperands *o)
{
    return by_bits(o, cornu_op_multiply);
}

CornuTensor *cornu__operation_bitwise_or(const CornuOperands *o)
{
    return by_bits(o, cornu_op_maximum);
}

CornuTensor *cornu__operation_bitwise_xor(const CornuOperands *o) { return by_bits(o, differ); }

/* -1 - x; of unsigned numbers the largest one less x. */
CornuTensor *cornu__operation_bitwise_not(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    if (cornu_dtype_is_float(dtype)) return cornu__operation_refuse(o, "expected whole numbers");
    if (dtype == CORNU_BOOL) return cornu_op_compare(x, CORNU_EQUAL, cornu__like(x, 0.0));
    const double most = dtype == CORNU_U8 ? 255.0 : dtype == CORNU_U32 ? 4294967295.0 : -1.0;
    return cornu_op_subtract(cornu__like(x, most), x);
}

/* x 2^y, where the bits beyond the dtype are lost; and floor(x / 2^y). Exact for 32 bits. */
static CornuTensor *shifted(const CornuOperands *o, bool left)
{
    CornuTensor *x[2];
    if (!whole_pair(o, x)) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x[0]).dtype;
    CornuTensor     *a = cornu_op_convert(x[0], CORNU_F64), *b = cornu_op_convert(x[1], CORNU_F64);
    CornuTensor     *power = b ? cornu_op_power(cornu__like(b, 2.0), b) : NULL;
    if (!left) return cornu_op_convert(cornu_op_floor(cornu_op_divide(a, power)), dtype);
    const double bits = dtype == CORNU_U8 ? 256.0 : 4294967296.0;
    a = cornu_op_multiply(a, power);
    CornuTensor *turns = cornu_op_floor(cornu_op_scale(a, 1.0 / bits));
    a = cornu_op_subtract(a, cornu_op_scale(turns, bits));
    if (dtype != CORNU_I32 && dtype != CORNU_I64) return cornu_op_convert(a, dtype);
    CornuTensor *high = a ? cornu_op_compare(a, CORNU_GREATER_EQUAL, cornu__like(a, bits / 2))
                          : NULL;
    return cornu_op_convert(cornu_op_select(high, cornu_op_shift(a, -bits), a), dtype);
}

CornuTensor *cornu__operation_left_shift(const CornuOperands *o) { return shifted(o, true); }
CornuTensor *cornu__operation_right_shift(const CornuOperands *o) { return shifted(o, false); }
