/* Operations element by element: arithmetic and functions of one variable. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>

/* ---- Of two operands ---- */

typedef CornuTensor *Combine(CornuTensor *a, CornuTensor *b);

static CornuTensor *combined(const CornuOperands *o, bool floats, Combine *combine)
{
    CornuTensor *a, *b;
    return cornu__operand_pair(o, floats, &a, &b) ? combine(a, b) : NULL;
}

#define COMBINATION(name, floats, combine)                             \
    CornuTensor *cornu__operation_##name(const CornuOperands *o)       \
    {                                                                  \
        return combined(o, floats, combine);                           \
    }
#define OF_PAIR(name, combine)       COMBINATION(name, false, combine)
#define OF_FLOAT_PAIR(name, combine) COMBINATION(name, true, combine)

OF_PAIR(add, cornu_op_add)
OF_PAIR(subtract, cornu_op_subtract)
OF_PAIR(multiply, cornu_op_multiply)
OF_PAIR(maximum, cornu_op_maximum)
OF_PAIR(minimum, cornu_op_minimum)

/* combine(a, b), or the other one where one is NaN */
static CornuTensor *of_numbers(const CornuOperands *o, Combine *combine)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    CornuTensor *y = cornu_op_select(cornu_op_compare(b, CORNU_EQUAL, b), combine(a, b), a);
    return cornu_op_select(cornu_op_compare(a, CORNU_EQUAL, a), y, b);
}

CornuTensor *cornu__operation_fmax(const CornuOperands *o)
{
    return of_numbers(o, cornu_op_maximum);
}

CornuTensor *cornu__operation_fmin(const CornuOperands *o)
{
    return of_numbers(o, cornu_op_minimum);
}

OF_FLOAT_PAIR(divide, cornu_op_divide)

static CornuTensor *divide_no_nan(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *zero = cornu_op_compare(b, CORNU_EQUAL, cornu__like(b, 0.0));
    CornuTensor *safe = cornu_op_select(zero, cornu__like(b, 1.0), b);
    CornuTensor *ratio = cornu_op_divide(a, safe);
    return cornu_op_select(zero, cornu__like(ratio, 0.0), ratio);
}

OF_FLOAT_PAIR(divide_no_nan, divide_no_nan)

/* floor(a / b); whole numbers of 32 bits are exact in f64. */
static CornuTensor *floor_divide(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b) return NULL;
    const CornuDtype dtype = cornu_tensor_type(a).dtype;
    const CornuDtype within = cornu_dtype_is_float(dtype) ? dtype : CORNU_F64;
    CornuTensor *ratio = cornu_op_divide(cornu_op_convert(a, within), cornu_op_convert(b, within));
    return cornu_op_convert(cornu_op_floor(ratio), dtype);
}

OF_PAIR(floor_divide, floor_divide)

static CornuTensor *modulo(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b || cornu_dtype_is_float(cornu_tensor_type(a).dtype)) return cornu__floor_mod(a, b);
    return cornu_op_subtract(a, cornu_op_multiply(floor_divide(a, b), b));
}

OF_PAIR(mod, modulo)
OF_FLOAT_PAIR(hypot, cornu__hypot)
OF_FLOAT_PAIR(logaddexp, cornu__log_add_exp)

/* Products for small whole exponents: exact, and with gradients at and below 0. */
static CornuTensor *whole_power(CornuTensor *x, int exponent)
{
    CornuTensor *y = NULL;
    for (; exponent > 0 && x; exponent >>= 1) {
        if (exponent & 1) y = y ? cornu_op_multiply(y, x) : x;
        if (exponent > 1) x = cornu_op_multiply(x, x);
    }
    return y;
}

CornuTensor *cornu__operation_power(const CornuOperands *o)
{
    CornuOperand operands[2];
    CornuTensor *x[2];
    if (!cornu__operand(o, "x1", 0, &operands[0]) || !cornu__operand(o, "x2", 1, &operands[1]) ||
        !cornu__operands_join(o, operands, 2, false, x))
        return NULL;
    const double exponent = operands[1].number;
    if (operands[1].tensor) return cornu_op_power(x[0], x[1]);
    if (exponent == 0.5) return cornu_op_sqrt(x[0]);
    if (exponent == 0.0) return cornu__like(x[0], 1.0);
    if (exponent != floor(exponent) || fabs(exponent) > 64) return cornu_op_power(x[0], x[1]);
    CornuTensor *y = whole_power(x[0], (int)fabs(exponent));
    return exponent < 0 ? cornu_op_divide(cornu__like(y, 1.0), y) : y;
}

/* ---- Of one operand: any dtype ---- */

/* Not one of Keras': the mask that x brings along, (B, T); without one all steps are valid. */
CornuTensor *cornu__operation_mask_of(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!x) return NULL;
    CornuTensor *mask = o->call && o->call->masks ? o->call->masks[0] : NULL;
    CornuShape   steps = cornu_tensor_shape(x);
    if (steps.rank > 2) steps.rank = 2;
    return mask ? cornu_op_convert(mask, CORNU_BOOL)
                : cornu_op_constant(o->graph, cornu_type_from(CORNU_BOOL, steps), 1.0);
}

/* Not one of Keras': an array in a graph, whatever x is, which is there since a call has one. */
CornuTensor *cornu__operation_constant(const CornuOperands *o)
{
    return cornu__operand_tensor(o, "value", 1);
}

CornuTensor *cornu__operation_identity(const CornuOperands *o) { return cornu__operand_x(o); }

CornuTensor *cornu__operation_negative(const CornuOperands *o)
{
    return cornu_op_negative(cornu__operand_x(o));
}

static bool is_whole(const CornuTensor *x)
{
    return x && !cornu_dtype_is_float(cornu_tensor_type(x).dtype);
}

CornuTensor *cornu__operation_absolute(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    return x && cornu_tensor_type(x).dtype == CORNU_BOOL ? x : cornu_op_absolute(x);
}

CornuTensor *cornu__operation_square(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (x && cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    return cornu_op_multiply(x, x);
}

CornuTensor *cornu__operation_sign(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    if (!is_whole(x)) return cornu_op_sign(x);
    return cornu_op_convert(cornu_op_sign(cornu_op_convert(x, CORNU_F64)),
                            cornu_tensor_type(x).dtype);
}

CornuTensor *cornu__operation_clip(const CornuOperands *o)
{
    CornuTensor  *x = cornu__operand_x(o);
    const double  low = cornu__argument_number(o, "x_min", -INFINITY);
    const double  high = cornu__argument_number(o, "x_max", INFINITY);
    if (!x) return NULL;
    if (cornu_tensor_type(x).dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    if (low > -INFINITY) x = cornu_op_maximum(x, cornu__like(x, low));
    return high < INFINITY ? cornu_op_minimum(x, cornu__like(x, high)) : x;
}

/* ---- Of one operand: floats ---- */

CORNU__OF_FLOATS(exp, cornu_op_exp)

CornuTensor *cornu__operation_exp2(const CornuOperands *o)
{
    return cornu_op_exp(cornu_op_scale(cornu__operand_float(o), log(2.0)));
}

CORNU__OF_FLOATS(expm1, cornu__expm1)
CORNU__OF_FLOATS(log, cornu_op_log)

CornuTensor *cornu__operation_log2(const CornuOperands *o)
{
    return cornu_op_scale(cornu_op_log(cornu__operand_float(o)), 1.0 / log(2.0));
}

CornuTensor *cornu__operation_log10(const CornuOperands *o)
{
    return cornu_op_scale(cornu_op_log(cornu__operand_float(o)), 1.0 / log(10.0));
}

CORNU__OF_FLOATS(log1p, cornu__log1p)
CORNU__OF_FLOATS(sqrt, cornu_op_sqrt)
CORNU__OF_FLOATS(rsqrt, cornu_op_rsqrt)

CornuTensor *cornu__operation_reciprocal(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    return cornu_op_divide(cornu__like(x, 1.0), x);
}

CORNU__OF_FLOATS(sin, cornu_op_sin)
CORNU__OF_FLOATS(cos, cornu_op_cos)
CORNU__OF_FLOATS(tan, cornu__tan)
CORNU__OF_FLOATS(sinh, cornu__sinh)
CORNU__OF_FLOATS(cosh, cornu__cosh)
CORNU__OF_FLOATS(tanh, cornu_op_tanh)
CORNU__OF_FLOATS(erf, cornu_op_erf)
CORNU__OF_FLOATS(floor, cornu_op_floor)
CORNU__OF_FLOATS(ceil, cornu__ceil)

CornuTensor *cornu__operation_trunc(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    return is_whole(x) ? x : cornu__trunc(x);
}

CornuTensor *cornu__operation_round(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    const double unit = pow(10.0, (double)cornu__argument_integer(o, "decimals", 0));
    if (is_whole(x)) return x;
    return unit == 1.0 ? cornu__round(x)
                       : cornu_op_scale(cornu__round(cornu_op_scale(x, unit)), 1.0 / unit);
}

/* ---- Dtypes ---- */

CornuTensor *cornu__operation_cast(const CornuOperands *o)
{
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", CORNU_F32);
    if (dtype == CORNU_DTYPE_COUNT) return cornu__operation_refuse_dtype(o);
    return cornu_op_convert(cornu__operand_x(o), dtype);
}
