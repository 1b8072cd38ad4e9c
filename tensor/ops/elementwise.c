/* Elementwise ops: recording and gradients. y = out[0], d = d_y[0]. */
#include <math.h>

#include "../function_internal.h"
#include "../tensor_internal.h"

static CornuTensor *binary(CornuOpId id, CornuTensor *a, CornuTensor *b)
{
    CornuTensor *x[2] = { a, b };
    return cornu__broadcast_operands(id, x, 2) ? cornu__record2(id, x[0], x[1]) : NULL;
}

/* d * x, the last factor of the chain rule in most rules below. */
static CornuTensor *times(CornuTensor *d, CornuTensor *x)
{
    return cornu_op_multiply(d, x);
}

CornuTensor *cornu_op_square(CornuTensor *x) { return cornu_op_multiply(x, x); }

CornuTensor *cornu_op_elu(CornuTensor *x, double alpha)
{
    CornuAttributes attributes = { .alpha = { .alpha = alpha } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_ELU, &attributes, &x, 1, out);
}

/* The bound in x's dtype, so that what the relu cuts off is at it. */
static CornuTensor *bounded(CornuOpId id, CornuTensor *x, double bound)
{
    uint64_t         number = 0;
    const CornuType  scalar = { .dtype = x ? cornu_tensor_type(x).dtype : CORNU_F64 };
    const CornuArray rounded = cornu_array_from(&number, scalar);
    cornu_array_set(rounded, 0, bound);
    CornuAttributes attributes = { .bound = { .bound = cornu_array_get(rounded, 0) } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, &attributes, &x, 1, out);
}

CornuTensor *cornu_op_bounded_relu(CornuTensor *x, double bound)
{
    return bounded(CORNU_OP_BOUNDED_RELU, x, bound);
}

CornuTensor *cornu_op_bounded_step(CornuTensor *x, double bound)
{
    return bounded(CORNU_OP_BOUNDED_STEP, x, bound);
}

#define CORNU_BINARY(ID, name)                                  \
    CornuTensor *cornu_op_##name(CornuTensor *a, CornuTensor *b) \
    {                                                           \
        return binary(CORNU_OP_##ID, a, b);                     \
    }
CORNU_BINARY(ADD, add)
CORNU_BINARY(SUBTRACT, subtract)
CORNU_BINARY(MULTIPLY, multiply)
CORNU_BINARY(DIVIDE, divide)
CORNU_BINARY(MAXIMUM, maximum)
CORNU_BINARY(MINIMUM, minimum)
CORNU_BINARY(POWER, power)

CornuTensor *cornu_op_scale(CornuTensor *x, double factor)
{
    return cornu_op_multiply(x, cornu_op_constant_like(x, factor));
}

static CornuTensor *clip(CornuTensor *const *x, int count, const double *numbers)
{
    CornuTensor *at_least = cornu_op_maximum(x[0], cornu_op_constant_like(x[0], numbers[0]));
    (void)count;
    return cornu_op_minimum(at_least, cornu_op_constant_like(x[0], numbers[1]));
}

CornuTensor *cornu_op_clip(CornuTensor *x, double low, double high)
{
    static const CornuFunction function = CORNU__FUNCTION("clip", .formula = clip);
    return cornu__function(&function, &x, 1, (double[]){ low, high }, 2);
}

CornuTensor *cornu_op_shift(CornuTensor *x, double term)
{
    return cornu_op_add(x, cornu_op_constant_like(x, term));
}

/* ---- Gradients ---- */

CornuGradient *const cornu__bounded_step_gradient = CORNU_NO_GRADIENT;

/* 1 - x, of y's type. */
static CornuTensor *one_less(CornuTensor *y, CornuTensor *x)
{
    return cornu_op_subtract(cornu_op_constant_like(y, 1.0), x);
}

/* exp(-x^2) */
static CornuTensor *bell(CornuTensor *x)
{
    return cornu_op_exp(cornu_op_negative(cornu_op_square(x)));
}

#define CORNU_RECORD(ID, name) \
    CornuTensor *cornu_op_##name(CornuTensor *x) { return cornu__record1(CORNU_OP_##ID, x); }
#define CORNU_COMPOSED(ID, name, types, value, gradient, stablehlo, ...)                   \
    CORNU_RECORD(ID, name)                                                                 \
    static void name##_gradient(const CornuRecorded *op, CornuTensor *const *d_y,          \
                                CornuTensor **d_x)                                         \
    {                                                                                      \
        CornuTensor *x = op->in[0], *y = op->out[0], *d = d_y[0];                          \
        (void)x, (void)y;                                                                  \
        d_x[0] = gradient;                                                                 \
    }                                                                                      \
    CornuGradient *const cornu__##name##_gradient = name##_gradient;
#define CORNU_UNARY(ID, name, types, value, gradient, stablehlo) \
    CORNU_COMPOSED(ID, name, types, value, gradient, stablehlo, )
#define CORNU_FLAT(ID, name, types, value, stablehlo) \
    CORNU_RECORD(ID, name)                            \
    CornuGradient *const cornu__##name##_gradient = CORNU_NO_GRADIENT;
#include "../../device/ops/elementwise.def"
#undef CORNU_FLAT
#undef CORNU_UNARY
#undef CORNU_COMPOSED
#undef CORNU_RECORD

/* d_x = d where 0 < y < bound, else 0. */
static void bounded_relu_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = times(d[0], cornu_op_bounded_step(op->out[0], op->attributes->bound.bound));
}
CornuGradient *const cornu__bounded_relu_gradient = bounded_relu_gradient;

/* d_x = d where x > 0, else d alpha exp(x) = d (y + alpha). */
static void elu_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *x = op->in[0], *zero = cornu_op_constant_like(x, 0.0);
    CornuTensor *slope = cornu_op_shift(op->out[0], op->attributes->alpha.alpha);
    d_x[0] = cornu_op_select(cornu_op_compare(x, CORNU_GREATER, zero), d[0], times(d[0], slope));
}
CornuGradient *const cornu__elu_gradient = elu_gradient;

static void add_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    (void)op;
    d_x[0] = d[0];
    d_x[1] = d[0];
}
CornuGradient *const cornu__add_gradient = add_gradient;

static void subtract_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = d[0];
    if (op->wanted[1]) d_x[1] = cornu_op_negative(d[0]);
}
CornuGradient *const cornu__subtract_gradient = subtract_gradient;

/* d_a = d b, d_b = d a */
static void multiply_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    if (op->wanted[0]) d_x[0] = times(d[0], op->in[1]);
    if (op->wanted[1]) d_x[1] = times(d[0], op->in[0]);
}
CornuGradient *const cornu__multiply_gradient = multiply_gradient;

/* d_a = d / b, d_b = -d y / b */
static void divide_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *part = cornu_op_divide(d[0], op->in[1]);
    d_x[0] = part;
    if (op->wanted[1]) d_x[1] = cornu_op_negative(times(part, op->out[0]));
}
CornuGradient *const cornu__divide_gradient = divide_gradient;

/* The selected operand gets d; equal operands get half each, as in JAX. */
static void choice_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x,
                            CornuComparison a_wins)
{
    CornuTensor *a = op->in[0], *b = op->in[1], *half = cornu_op_scale(d[0], 0.5);
    CornuTensor *zero = cornu_op_constant_like(d[0], 0.0);
    CornuTensor *equal = cornu_op_compare(a, CORNU_EQUAL, b);
    CornuTensor *of_a = cornu_op_compare(a, a_wins, b), *of_b = cornu_op_compare(b, a_wins, a);
    d_x[0] = cornu_op_select(equal, half, cornu_op_select(of_a, d[0], zero));
    d_x[1] = cornu_op_select(equal, half, cornu_op_select(of_b, d[0], zero));
}

static void maximum_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    choice_gradient(op, d, d_x, CORNU_GREATER);
}
CornuGradient *const cornu__maximum_gradient = maximum_gradient;

static void minimum_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    choice_gradient(op, d, d_x, CORNU_LESS);
}
CornuGradient *const cornu__minimum_gradient = minimum_gradient;

/* d_a = d b a^(b - 1), d_b = d y log(a), which is 0 where a is not positive. */
static void power_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *a = op->in[0], *b = op->in[1], *zero = cornu_op_constant_like(a, 0.0);
    if (op->wanted[0])
        d_x[0] = times(d[0], cornu_op_multiply(b, cornu_op_power(a, cornu_op_shift(b, -1.0))));
    if (op->wanted[1]) {
        CornuTensor *positive = cornu_op_compare(a, CORNU_GREATER, zero);
        CornuTensor *one = cornu_op_constant_like(a, 1.0);
        CornuTensor *log = cornu_op_log(cornu_op_select(positive, a, one));
        d_x[1] = times(d[0], cornu_op_multiply(op->out[0], log));
    }
}
CornuGradient *const cornu__power_gradient = power_gradient;
