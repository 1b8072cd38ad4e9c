/* Further functions element by element. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

CORNU__OF_FLOATS(arcsin, cornu__asin)
CORNU__OF_FLOATS(arccos, cornu__acos)
CORNU__OF_FLOATS(arctan, cornu__atan)
CORNU__OF_FLOATS(arcsinh, cornu__asinh)

static CornuTensor *compared(CornuTensor *x, CornuComparison comparison, double value)
{
    return cornu_op_compare(x, comparison, cornu__like(x, value));
}

/* condition ? value : x */
static CornuTensor *replaced(CornuTensor *condition, double value, CornuTensor *x)
{
    return x ? cornu_op_select(condition, cornu__like(x, value), x) : NULL;
}

static CornuTensor *not_a_number(CornuTensor *x)
{
    return cornu_op_compare(x, CORNU_NOT_EQUAL, x);
}

/* ---- Of two operands ---- */

/* The angle of (x, y): atan(y / x), turned by half a turn where x is negative. Of zeros it is 0, or
 * half a turn for a negative x; the quotient is taken of the smaller by the larger one. */
CornuTensor *cornu__operation_arctan2(const CornuOperands *o)
{
    CornuTensor *y, *x;
    if (!cornu__operand_pair(o, true, &y, &x)) return NULL;
    CornuTensor *width = cornu_op_absolute(x), *height = cornu_op_absolute(y);
    CornuTensor *steep = cornu_op_compare(height, CORNU_GREATER, width);
    CornuTensor *large = cornu_op_maximum(width, height);
    CornuTensor *flat = compared(large, CORNU_EQUAL, 0.0);
    CornuTensor *infinite = compared(cornu_op_minimum(width, height), CORNU_EQUAL, INFINITY);
    large = replaced(cornu_op_select(flat, flat, infinite), 1.0, large);
    CornuTensor *ratio = cornu_op_divide(replaced(infinite, 1.0, cornu_op_minimum(width, height)),
                                         large);
    CornuTensor *angle = cornu__atan(ratio);
    angle = cornu_op_select(steep, cornu_op_shift(cornu_op_negative(angle), pi / 2), angle);
    angle = cornu_op_select(compared(x, CORNU_LESS, 0.0),
                            cornu_op_shift(cornu_op_negative(angle), pi), angle);
    return cornu_op_select(compared(y, CORNU_LESS, 0.0), cornu_op_negative(angle), angle);
}

CornuTensor *cornu__operation_fmod(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    const CornuDtype dtype = cornu_tensor_type(a).dtype;
    if (cornu_dtype_is_float(dtype)) return cornu__fmod(a, b);
    /* Whole numbers of 32 bits are exact in f64. */
    a = cornu__fmod(cornu_op_convert(a, CORNU_F64), cornu_op_convert(b, CORNU_F64));
    return cornu_op_convert(a, dtype);
}

CornuTensor *cornu__operation_logaddexp2(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, true, &a, &b)) return NULL;
    a = cornu__log_add_exp(cornu_op_scale(a, log(2.0)), cornu_op_scale(b, log(2.0)));
    return cornu_op_scale(a, 1.0 / log(2.0));
}

/* x1 2^x2 */
CornuTensor *cornu__operation_ldexp(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, true, &a, &b)) return NULL;
    return cornu_op_multiply(a, cornu_op_power(cornu__like(b, 2.0), b));
}

/* |x1 - x2| <= atol + rtol |x2|; infinities are close to themselves only. */
CornuTensor *cornu__operation_isclose(const CornuOperands *o)
{
    CornuTensor *a, *b;
    const json_t *given[] = { cornu__argument(o, "rtol", 2), cornu__argument(o, "atol", 3) };
    const double  rtol = given[0] ? json_number_value(given[0]) : 1e-5;
    const double  atol = given[1] ? json_number_value(given[1]) : 1e-8;
    const bool    nan_too = cornu__argument_flag(o, "equal_nan");
    if (!cornu__operand_pair(o, true, &a, &b)) return NULL;
    CornuTensor *same = cornu_op_compare(a, CORNU_EQUAL, b);
    CornuTensor *bound = cornu_op_shift(cornu_op_scale(cornu_op_absolute(b), rtol), atol);
    CornuTensor *near = cornu_op_compare(cornu_op_absolute(cornu_op_subtract(a, b)),
                                         CORNU_LESS_EQUAL, bound);
    CornuTensor *finite = cornu_op_select(cornu_op_is_finite(b), near, same);
    near = cornu_op_select(same, same, finite);
    if (!nan_too) return near;
    CornuTensor *both = cornu_op_select(not_a_number(a), not_a_number(b), same);
    return cornu_op_select(both, both, near);
}

CornuTensor *cornu__operation_allclose(const CornuOperands *o)
{
    CornuTensor *far = cornu_op_convert(cornu__operation_isclose(o), CORNU_I32);
    if (!far) return NULL;
    far = cornu_op_shift(cornu_op_negative(far), 1.0);
    CornuTensor *count = cornu_op_reduce_sum(far, CORNU_ALL_AXES, false);
    return cornu_op_compare(count, CORNU_EQUAL, cornu__like(count, 0.0));
}

/* ---- Of one operand ---- */

/* Complex numbers are not available: of a real x, 0, or half a turn below 0. */
CornuTensor *cornu__operation_angle(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    CornuTensor *y = replaced(compared(x, CORNU_LESS, 0.0), pi, cornu__like(x, 0.0));
    return cornu_op_select(not_a_number(x), x, y);
}

CornuTensor *cornu__operation_imag(const CornuOperands *o)
{
    return cornu__like(cornu__operand_x(o), 0.0);
}

CornuTensor *cornu__operation_isreal(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_x(o), CORNU_BOOL);
    return cornu__like(x, 1.0);
}

/* Also of -0, whose inverse is negative. */
CornuTensor *cornu__operation_signbit(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    CornuTensor *zero = compared(x, CORNU_EQUAL, 0.0);
    CornuTensor *inverse = cornu_op_divide(cornu__like(x, 1.0), x);
    return cornu_op_select(zero, compared(inverse, CORNU_LESS, 0.0), compared(x, CORNU_LESS, 0.0));
}

CornuTensor *cornu__operation_cbrt(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    CornuTensor *zero = compared(x, CORNU_EQUAL, 0.0);
    CornuTensor *size = replaced(zero, 1.0, cornu_op_absolute(x));
    CornuTensor *root = cornu_op_power(size, cornu__like(size, 1.0 / 3.0));
    return cornu_op_select(zero, x, cornu_op_multiply(cornu_op_sign(x), root));
}

CORNU__OF_FLOATS(erfinv, cornu__erfinv)

/* The largest finite number of a dtype. */
static double largest(CornuDtype dtype)
{
    return dtype == CORNU_F64    ? 1.7976931348623157e308
           : dtype == CORNU_BF16 ? 3.3895313892515355e38
           : dtype == CORNU_F16  ? 65504.0
                                 : 3.4028234663852886e38;
}

CornuTensor *cornu__operation_nan_to_num(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x || !cornu_dtype_is_float(cornu_tensor_type(x).dtype)) return x;
    const double most = largest(cornu_tensor_type(x).dtype);
    const double nan = cornu__argument_number(o, "nan", 0.0);
    const double high = cornu__argument_number(o, "posinf", most);
    const double low = cornu__argument_number(o, "neginf", -most);
    CornuTensor *y = replaced(not_a_number(x), nan, x);
    y = replaced(compared(x, CORNU_EQUAL, INFINITY), high, y);
    return replaced(compared(x, CORNU_EQUAL, -INFINITY), low, y);
}

/* A conversion of floats to whole numbers saturates; what is narrower is clipped first. */
CornuTensor *cornu__operation_saturate_cast(const CornuOperands *o)
{
    CornuTensor     *x = cornu__operand_x(o);
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", CORNU_F32);
    if (!x) return NULL;
    if (dtype == CORNU_DTYPE_COUNT) return cornu__operation_refuse_dtype(o);
    const CornuDtype from = cornu_tensor_type(x).dtype;
    if (cornu_dtype_is_float(dtype)) {
        if (from == CORNU_F64 || (cornu_dtype_is_float(from) && dtype == CORNU_F16))
            x = cornu_op_clip(x, -largest(dtype), largest(dtype));
    } else if (from != CORNU_BOOL && !cornu_dtype_is_float(from)) {
        x = cornu_op_convert(x, CORNU_F64);   /* exact for 32 bits */
    }
    return cornu_op_convert(x, dtype);
}

/* x, through which no gradient flows: that of a constant takes its place. */
CornuTensor *cornu__operation_stop_gradient(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_tensor(o, "variable", 0);
    if (!x || !cornu_dtype_is_float(cornu_tensor_type(x).dtype)) return x;
    CornuTensor *nothing = cornu__like(x, 0.0);
    return nothing ? cornu_op_with_gradient(cornu_op_scale(x, 1.0), nothing, NULL, NULL) : NULL;
}
