/* Elementwise operators of numbers. Formulas: docs/Operators.md of ONNX. */
#include "elementwise_internal.h"

#include <string.h>

static bool whole(CornuTensor *x) { return !cornu_dtype_is_float(cornu__dtype_of(x)); }

static CornuTensor *as(CornuTensor *x, CornuDtype dtype) { return cornu_op_convert(x, dtype); }

/* The dtype in which integers are divided: exact up to 2^53. */
static CornuTensor *in_f64(CornuTensor *x) { return as(x, CORNU_F64); }

/* ---- Functions of one number ---- */

typedef CornuTensor *One(CornuReadStep *step, CornuTensor *x);

static CornuStatus one(CornuReadStep *step, One *function)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    return cornu__result(step, 0, x ? function(step, x) : NULL);
}

/* An op without arguments. */
static CornuStatus plain(CornuReadStep *step, CornuTensor *(*op)(CornuTensor *))
{
    return cornu__result(step, 0, op(cornu__operand_of(step, 0)));
}

static CornuStatus read_negative(CornuReadStep *step) { return plain(step, cornu_op_negative); }
static CornuStatus read_absolute(CornuReadStep *step) { return plain(step, cornu_op_absolute); }
static CornuStatus read_log(CornuReadStep *step) { return plain(step, cornu_op_log); }
static CornuStatus read_sqrt(CornuReadStep *step) { return plain(step, cornu_op_sqrt); }
static CornuStatus read_sin(CornuReadStep *step) { return plain(step, cornu_op_sin); }
static CornuStatus read_cos(CornuReadStep *step) { return plain(step, cornu_op_cos); }
static CornuStatus read_tanh(CornuReadStep *step) { return plain(step, cornu_op_tanh); }
static CornuStatus read_sigmoid(CornuReadStep *step) { return plain(step, cornu_op_sigmoid); }
static CornuStatus read_erf(CornuReadStep *step) { return plain(step, cornu_op_erf); }
static CornuStatus read_softplus(CornuReadStep *step) { return plain(step, cornu_op_softplus); }
static CornuStatus read_exponential(CornuReadStep *step) { return plain(step, cornu_op_exp); }

static CornuTensor *sign(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return whole(x) ? as(cornu_op_sign(in_f64(x)), cornu__dtype_of(x)) : cornu_op_sign(x);
}

static CornuStatus read_sign(CornuReadStep *step) { return one(step, sign); }

static CornuTensor *relu(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return whole(x) ? cornu_op_maximum(x, cornu_op_constant_like(x, 0.0)) : cornu_op_relu(x);
}

static CornuStatus read_relu(CornuReadStep *step) { return one(step, relu); }

CornuTensor *cornu__floor_of(CornuTensor *x)
{
    return x && whole(x) ? x : cornu_op_floor(x);
}

static CornuTensor *floored(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu__floor_of(x);
}

static CornuStatus read_floored(CornuReadStep *step) { return one(step, floored); }

CornuTensor *cornu__ceil_of(CornuTensor *x)
{
    return cornu_op_negative(cornu_op_floor(cornu_op_negative(x)));
}

static CornuTensor *ceiled(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return whole(x) ? x : cornu__ceil_of(x);
}

static CornuStatus read_ceiled(CornuReadStep *step) { return one(step, ceiled); }

/* Halves go to the even neighbour. */
static CornuTensor *rounded(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    CornuTensor *y = cornu_op_floor(cornu_op_shift(x, 0.5));
    CornuTensor *half = cornu_op_compare(cornu_op_subtract(y, x), CORNU_EQUAL,
                                         cornu_op_constant_like(x, 0.5));
    CornuTensor *even = cornu_op_scale(cornu_op_floor(cornu_op_scale(y, 0.5)), 2.0);
    return cornu_op_select(half, even, y);
}

static CornuStatus read_rounded(CornuReadStep *step) { return one(step, rounded); }

static CornuTensor *reciprocal(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_divide(cornu_op_constant_like(x, 1.0), x);
}

static CornuStatus read_reciprocal(CornuReadStep *step) { return one(step, reciprocal); }

static CornuTensor *tangent(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_divide(cornu_op_sin(x), cornu_op_cos(x));
}

static CornuStatus read_tangent(CornuReadStep *step) { return one(step, tangent); }

/* (exp(x) + sign exp(-x)) / 2 */
static CornuTensor *hyperbolic(CornuTensor *x, double sign)
{
    CornuTensor *minus = cornu_op_scale(cornu_op_exp(cornu_op_negative(x)), sign);
    return cornu_op_scale(cornu_op_add(cornu_op_exp(x), minus), 0.5);
}

static CornuTensor *cosh_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return hyperbolic(x, 1.0);
}

static CornuStatus read_cosh_of(CornuReadStep *step) { return one(step, cosh_of); }

/* Near 0 the difference would cancel: x + x^3 / 6 + x^5 / 120. */
static CornuTensor *sinh_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    CornuTensor *square = cornu_op_square(x);
    CornuTensor *near = cornu_op_shift(cornu_op_scale(square, 1.0 / 20.0), 1.0);
    near = cornu_op_add(x, cornu_op_scale(cornu_op_multiply(cornu_op_multiply(x, square), near),
                                          1.0 / 6.0));
    CornuTensor *small = cornu_op_compare(cornu_op_absolute(x), CORNU_LESS,
                                          cornu_op_constant_like(x, 0.1));
    return cornu_op_select(small, near, hyperbolic(x, -1.0));
}

static CornuStatus read_sinh_of(CornuReadStep *step) { return one(step, sinh_of); }

/* Beyond tan(pi/8) the argument is reduced. Source: Cephes, atanf. */
static CornuTensor *arctangent(CornuTensor *x)
{
    CornuTensor *size = cornu_op_absolute(x), *unit = cornu_op_constant_like(x, 1.0);
    CornuTensor *large = cornu_op_compare(size, CORNU_GREATER,
                                          cornu_op_constant_like(x, 2.414213562373095));
    CornuTensor *middle = cornu_op_compare(size, CORNU_GREATER,
                                           cornu_op_constant_like(x, 0.4142135623730950));
    CornuTensor *reduced = cornu_op_select(
        large, cornu_op_negative(cornu_op_divide(unit, size)),
        cornu_op_select(middle, cornu_op_divide(cornu_op_shift(size, -1.0),
                                                cornu_op_shift(size, 1.0)), size));
    CornuTensor *offset = cornu_op_select(
        large, cornu_op_constant_like(x, 1.5707963267948966),
        cornu_op_select(middle, cornu_op_constant_like(x, 0.7853981633974483),
                        cornu_op_constant_like(x, 0.0)));
    static const double terms[] = { 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1,
                                    -3.33329491539e-1 };
    CornuTensor *square = cornu_op_square(reduced);
    CornuTensor *sum = cornu_op_constant_like(x, terms[0]);
    for (int i = 1; i < 4; i++) sum = cornu_op_shift(cornu_op_multiply(sum, square), terms[i]);
    sum = cornu_op_add(cornu_op_multiply(cornu_op_multiply(sum, square), reduced), reduced);
    return cornu_op_multiply(cornu_op_sign(x), cornu_op_add(sum, offset));
}

static CornuTensor *atan_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return arctangent(x);
}

static CornuStatus read_atan_of(CornuReadStep *step) { return one(step, atan_of); }

/* sqrt(1 - x^2), without cancellation */
static CornuTensor *other_leg(CornuTensor *x)
{
    CornuTensor *minus = cornu_op_shift(cornu_op_negative(x), 1.0);
    return cornu_op_sqrt(cornu_op_multiply(minus, cornu_op_shift(x, 1.0)));
}

static CornuTensor *asin_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return arctangent(cornu_op_divide(x, other_leg(x)));
}

static CornuStatus read_asin_of(CornuReadStep *step) { return one(step, asin_of); }

/* 2 atan(sqrt(1 - x^2) / (1 + x)) */
static CornuTensor *acos_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_scale(arctangent(cornu_op_divide(other_leg(x), cornu_op_shift(x, 1.0))), 2.0);
}

static CornuStatus read_acos_of(CornuReadStep *step) { return one(step, acos_of); }

/* log(1 + x) for small x, too: x log(u) / (u - 1) with u = 1 + x. Source: Higham, "Accuracy and
 * Stability of Numerical Algorithms", section 1.14.1. */
static CornuTensor *log_plus_one(CornuTensor *x)
{
    CornuTensor *u = cornu_op_shift(x, 1.0), *rest = cornu_op_shift(u, -1.0);
    CornuTensor *none = cornu_op_compare(rest, CORNU_EQUAL, cornu_op_constant_like(x, 0.0));
    CornuTensor *safe = cornu_op_select(none, cornu_op_constant_like(x, 1.0), rest);
    return cornu_op_select(none, x, cornu_op_multiply(x, cornu_op_divide(cornu_op_log(u), safe)));
}

/* sign(x) log1p(|x| + x^2 / (1 + sqrt(1 + x^2))) */
static CornuTensor *asinh_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    CornuTensor *size = cornu_op_absolute(x), *square = cornu_op_square(x);
    CornuTensor *root = cornu_op_shift(cornu_op_sqrt(cornu_op_shift(square, 1.0)), 1.0);
    return cornu_op_multiply(cornu_op_sign(x), log_plus_one(
        cornu_op_add(size, cornu_op_divide(square, root))));
}

static CornuStatus read_asinh_of(CornuReadStep *step) { return one(step, asinh_of); }

static CornuTensor *acosh_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    CornuTensor *t = cornu_op_shift(x, -1.0);
    CornuTensor *root = cornu_op_sqrt(cornu_op_multiply(t, cornu_op_shift(x, 1.0)));
    return log_plus_one(cornu_op_add(t, root));
}

static CornuStatus read_acosh_of(CornuReadStep *step) { return one(step, acosh_of); }

/* log1p(2 x / (1 - x)) / 2 */
static CornuTensor *atanh_of(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(x), 1.0);
    return cornu_op_scale(log_plus_one(cornu_op_divide(cornu_op_scale(x, 2.0), rest)), 0.5);
}

static CornuStatus read_atanh_of(CornuReadStep *step) { return one(step, atanh_of); }

/* ---- Activations ---- */

static CornuTensor *elu(CornuReadStep *step, CornuTensor *x)
{
    return cornu_op_elu(x, cornu__real(step, "alpha", 1.0));
}

static CornuStatus read_elu(CornuReadStep *step) { return one(step, elu); }

static CornuTensor *celu(CornuReadStep *step, CornuTensor *x)
{
    const double alpha = cornu__real(step, "alpha", 1.0);
    return cornu_op_scale(cornu_op_elu(cornu_op_scale(x, 1.0 / alpha), 1.0), alpha);
}

static CornuStatus read_celu(CornuReadStep *step) { return one(step, celu); }

static CornuTensor *selu(CornuReadStep *step, CornuTensor *x)
{
    const double alpha = cornu__real(step, "alpha", 1.67326319217681884765625);
    return cornu_op_scale(cornu_op_elu(x, alpha),
                          cornu__real(step, "gamma", 1.05070102214813232421875));
}

static CornuStatus read_selu(CornuReadStep *step) { return one(step, selu); }

static CornuTensor *leaky(CornuReadStep *step, CornuTensor *x)
{
    CornuTensor *above = cornu_op_compare(x, CORNU_GREATER_EQUAL, cornu_op_constant_like(x, 0.0));
    return cornu_op_select(above, x, cornu_op_scale(x, cornu__real(step, "alpha", 0.01)));
}

static CornuStatus read_leaky(CornuReadStep *step) { return one(step, leaky); }

static CornuTensor *thresholded(CornuReadStep *step, CornuTensor *x)
{
    const double alpha = cornu__real(step, "alpha", 1.0);
    CornuTensor *above = cornu_op_compare(x, CORNU_GREATER, cornu_op_constant_like(x, alpha));
    return cornu_op_select(above, x, cornu_op_constant_like(x, 0.0));
}

static CornuStatus read_thresholded(CornuReadStep *step) { return one(step, thresholded); }

static CornuTensor *hard_sigmoid(CornuReadStep *step, CornuTensor *x)
{
    const double beta = cornu__real(step, "beta", 0.5);
    return cornu_op_clip(cornu_op_shift(cornu_op_scale(x, cornu__real(step, "alpha", 0.2)), beta),
                         0.0, 1.0);
}

static CornuStatus read_hard_sigmoid(CornuReadStep *step) { return one(step, hard_sigmoid); }

static CornuTensor *hard_swish(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_multiply(x, cornu_op_clip(cornu_op_shift(cornu_op_scale(x, 1.0 / 6.0), 0.5),
                                              0.0, 1.0));
}

static CornuStatus read_hard_swish(CornuReadStep *step) { return one(step, hard_swish); }

static CornuTensor *softsign(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_divide(x, cornu_op_shift(cornu_op_absolute(x), 1.0));
}

static CornuStatus read_softsign(CornuReadStep *step) { return one(step, softsign); }

static CornuTensor *mish(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_multiply(x, cornu_op_tanh(cornu_op_softplus(x)));
}

static CornuStatus read_mish(CornuReadStep *step) { return one(step, mish); }

static CornuTensor *swish(CornuReadStep *step, CornuTensor *x)
{
    return cornu_op_multiply(x, cornu_op_sigmoid(
        cornu_op_scale(x, cornu__real(step, "alpha", 1.0))));
}

static CornuStatus read_swish(CornuReadStep *step) { return one(step, swish); }

static CornuTensor *gelu(CornuReadStep *step, CornuTensor *x)
{
    if (!strcmp(cornu__word(step, "approximate", "none"), "tanh")) {
        CornuTensor *cube = cornu_op_multiply(x, cornu_op_square(x));
        CornuTensor *inner = cornu_op_scale(cornu_op_add(x, cornu_op_scale(cube, 0.044715)),
                                            0.7978845608028654);
        return cornu_op_scale(cornu_op_multiply(x, cornu_op_shift(cornu_op_tanh(inner), 1.0)), 0.5);
    }
    CornuTensor *phi = cornu_op_shift(cornu_op_erf(cornu_op_scale(x, 0.7071067811865476)), 1.0);
    return cornu_op_scale(cornu_op_multiply(x, phi), 0.5);
}

static CornuStatus read_gelu(CornuReadStep *step) { return one(step, gelu); }

static CornuTensor *shrink(CornuReadStep *step, CornuTensor *x)
{
    const double lambd = cornu__real(step, "lambd", 0.5), bias = cornu__real(step, "bias", 0.0);
    CornuTensor *below = cornu_op_compare(x, CORNU_LESS, cornu_op_constant_like(x, -lambd));
    CornuTensor *above = cornu_op_compare(x, CORNU_GREATER, cornu_op_constant_like(x, lambd));
    return cornu_op_select(below, cornu_op_shift(x, bias), cornu_op_select(
        above, cornu_op_shift(x, -bias), cornu_op_constant_like(x, 0.0)));
}

static CornuStatus read_shrink(CornuReadStep *step) { return one(step, shrink); }

static CornuStatus read_prelu(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *slope = cornu__operand_of(step, 1);
    CornuTensor *above = cornu_op_compare(x, CORNU_GREATER_EQUAL,
                                          x ? cornu_op_constant_like(x, 0.0) : NULL);
    return cornu__result(step, 0, cornu_op_select(above, x, cornu_op_multiply(x, slope)));
}

/* min and max are attributes up to opset 10, then operands, which may be computed. */
static CornuStatus read_clip(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *low = cornu__optional(step, 1);
    CornuTensor *high = cornu__optional(step, 2);
    if (x && step->run->opset < 11) {
        if (cornu__attribute(step, "min"))
            low = cornu_op_constant_like(x, cornu__real(step, "min", 0.0));
        if (cornu__attribute(step, "max"))
            high = cornu_op_constant_like(x, cornu__real(step, "max", 0.0));
    }
    if (low) x = cornu_op_maximum(x, low);
    if (high) x = cornu_op_minimum(x, high);
    return cornu__result(step, 0, x);
}

/* ---- Functions of two numbers ---- */

typedef CornuTensor *Two(CornuTensor *a, CornuTensor *b);

static CornuStatus two(CornuReadStep *step, Two *function)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    return cornu__result(step, 0, a && b ? function(a, b) : NULL);
}

/* Integers are divided towards zero. */
static CornuTensor *quotient(CornuTensor *a, CornuTensor *b)
{
    if (!whole(a)) return cornu_op_divide(a, b);
    return as(cornu_op_divide(in_f64(a), in_f64(b)), cornu__dtype_of(a));
}

static CornuTensor *power_of(CornuTensor *a, CornuTensor *b)
{
    const CornuDtype dtype = cornu__dtype_of(a);
    if (!whole(a)) return cornu_op_power(a, as(b, dtype));
    return as(cornu_op_power(in_f64(a), in_f64(b)), dtype);
}

static CornuStatus read_add(CornuReadStep *step) { return two(step, cornu_op_add); }
static CornuStatus read_sub(CornuReadStep *step) { return two(step, cornu_op_subtract); }
static CornuStatus read_mul(CornuReadStep *step) { return two(step, cornu_op_multiply); }
static CornuStatus read_div(CornuReadStep *step) { return two(step, quotient); }

/* x^2 and x^0.5 are usual, and exact. */
static CornuStatus read_pow(CornuReadStep *step)
{
    CornuArray exponent;
    if (cornu__given(step, 1) && step->in[1].known.data && step->in[1].known.type.shape.rank == 0) {
        CORNU__TRY(cornu__known(step, 1, &exponent));
        CornuTensor *x = cornu__operand_of(step, 0);
        const double power = cornu_array_get(exponent, 0);
        if (power == 2.0) return cornu__result(step, 0, cornu_op_multiply(x, x));
        if (power == 0.5 && x && !whole(x)) return cornu__result(step, 0, cornu_op_sqrt(x));
        if (power == 3.0)
            return cornu__result(step, 0, cornu_op_multiply(x, cornu_op_multiply(x, x)));
    }
    return two(step, power_of);
}

/* The remainder has the sign of b; with fmod that of a. */
static CornuStatus read_mod(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    if (!a || !b) return cornu_error_take();
    const CornuDtype dtype = cornu__dtype_of(a);
    const bool       integers = whole(a);
    if (integers) {
        a = in_f64(a);
        b = in_f64(b);
    }
    CornuTensor *ratio = cornu_op_divide(a, b), *cut = cornu_op_floor(ratio);
    if (cornu__whole(step, "fmod", 0)) {
        CornuTensor *below = cornu_op_compare(ratio, CORNU_LESS, cornu_op_constant_like(ratio, 0));
        cut = cornu_op_select(below, cornu__ceil_of(ratio), cut);
    }
    CornuTensor *rest = cornu_op_subtract(a, cornu_op_multiply(cut, b));
    if (integers || !rest) return cornu__result(step, 0, as(rest, dtype));
    /* Of an infinite b: a, or with the other sign and without fmod b. */
    CornuTensor *zero = cornu_op_constant_like(ratio, 0.0), *other = a;
    if (!cornu__whole(step, "fmod", 0)) {
        CornuTensor *opposite = cornu_op_compare(
            cornu_op_multiply(cornu_op_sign(a), cornu_op_sign(b)), CORNU_LESS, zero);
        other = cornu_op_select(opposite, b, a);
    }
    CornuTensor *huge = cornu_op_compare(cornu_op_absolute(b), CORNU_EQUAL,
                                         cornu_op_constant_like(b, 1.0 / 0.0));
    return cornu__result(step, 0, cornu_op_select(huge, other, rest));
}

/* ---- Functions of several numbers ---- */

static CornuStatus several(CornuReadStep *step, Two *function, bool mean)
{
    CornuTensor *sum = cornu__operand_of(step, 0);
    for (int i = 1; i < step->in_count; i++) sum = function(sum, cornu__operand_of(step, i));
    if (mean && sum) sum = cornu_op_scale(sum, 1.0 / step->in_count);
    return cornu__result(step, 0, sum);
}

static CornuStatus read_sum(CornuReadStep *step) { return several(step, cornu_op_add, false); }
static CornuStatus read_mean(CornuReadStep *step) { return several(step, cornu_op_add, true); }
static CornuStatus read_max(CornuReadStep *step) { return several(step, cornu_op_maximum, false); }
static CornuStatus read_min(CornuReadStep *step) { return several(step, cornu_op_minimum, false); }

/* Dropout does nothing: graphs are those of inference. The mask is all ones. */
static CornuStatus read_dropout(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    double       training = 0.0;
    if (cornu__given(step, 2)) CORNU__TRY(cornu__known_number(step, 2, 0.0, &training));
    if (training != 0.0) {
        double ratio = 0.5;
        CORNU__TRY(cornu__known_number(step, 1, 0.5, &ratio));
        if (ratio != 0.0) return cornu__cannot("training_mode", "graphs are those of inference");
    }
    CORNU__TRY(cornu__result(step, 0, x));
    if (!cornu__wanted(step, 1)) return CORNU_OK;
    const CornuType mask = cornu_type_from(step->run->opset < 10 ? cornu__dtype_of(x) : CORNU_BOOL,
                                           cornu_tensor_shape(x));
    return cornu__result(step, 1, cornu_op_constant(step->run->graph, mask, 1.0));
}

static CornuStatus read_identity(CornuReadStep *step)
{
    if (cornu__given(step, 0) && step->in[0].known.data && !step->in[0].tensor)
        return cornu__known_result(step, 0, step->in[0].known);
    return cornu__result(step, 0, cornu__operand_of(step, 0));
}

const CornuReadRow cornu__read_elementwise[] = {
    { "Abs", read_absolute }, { "Acos", read_acos_of }, { "Acosh", read_acosh_of },
    { "Add", read_add }, { "Asin", read_asin_of }, { "Asinh", read_asinh_of },
    { "Atan", read_atan_of }, { "Atanh", read_atanh_of }, { "Ceil", read_ceiled },
    { "Celu", read_celu }, { "Clip", read_clip }, { "Cos", read_cos }, { "Cosh", read_cosh_of },
    { "Div", read_div }, { "Dropout", read_dropout }, { "Elu", read_elu }, { "Erf", read_erf },
    { "Exp", read_exponential }, { "Floor", read_floored }, { "Gelu", read_gelu },
    { "HardSigmoid", read_hard_sigmoid }, { "HardSwish", read_hard_swish },
    { "Identity", read_identity }, { "LeakyRelu", read_leaky }, { "Log", read_log },
    { "Max", read_max }, { "Mean", read_mean }, { "Min", read_min }, { "Mish", read_mish },
    { "Mod", read_mod }, { "Mul", read_mul }, { "Neg", read_negative }, { "PRelu", read_prelu },
    { "Pow", read_pow }, { "Reciprocal", read_reciprocal }, { "Relu", read_relu },
    { "Round", read_rounded }, { "Selu", read_selu }, { "Shrink", read_shrink },
    { "Sigmoid", read_sigmoid }, { "Sign", read_sign }, { "Sin", read_sin },
    { "Sinh", read_sinh_of }, { "Softplus", read_softplus }, { "Softsign", read_softsign },
    { "Sqrt", read_sqrt }, { "Sub", read_sub }, { "Sum", read_sum }, { "Swish", read_swish },
    { "Tan", read_tangent }, { "Tanh", read_tanh }, { "ThresholdedRelu", read_thresholded },
    { 0 },
};
