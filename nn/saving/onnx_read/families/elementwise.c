/* Elementwise operators of numbers. Formulas: docs/Operators.md of ONNX. */
#include "../run_internal.h"

#include <string.h>

#include "../../../../tensor/functions/functions_internal.h"

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
static CornuStatus read_rounded(CornuReadStep *step) { return plain(step, cornu__round); }
static CornuStatus read_tan(CornuReadStep *step) { return plain(step, cornu__tan); }
static CornuStatus read_asin(CornuReadStep *step) { return plain(step, cornu__asin); }
static CornuStatus read_acos(CornuReadStep *step) { return plain(step, cornu__acos); }
static CornuStatus read_atan(CornuReadStep *step) { return plain(step, cornu__atan); }
static CornuStatus read_sinh(CornuReadStep *step) { return plain(step, cornu__sinh); }
static CornuStatus read_cosh(CornuReadStep *step) { return plain(step, cornu__cosh); }
static CornuStatus read_asinh(CornuReadStep *step) { return plain(step, cornu__asinh); }
static CornuStatus read_acosh(CornuReadStep *step) { return plain(step, cornu__acosh); }
static CornuStatus read_atanh(CornuReadStep *step) { return plain(step, cornu__atanh); }
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

static CornuTensor *ceiled(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return whole(x) ? x : cornu__ceil(x);
}

static CornuStatus read_ceiled(CornuReadStep *step) { return one(step, ceiled); }

static CornuTensor *reciprocal(CornuReadStep *step, CornuTensor *x)
{
    (void)step;
    return cornu_op_divide(cornu_op_constant_like(x, 1.0), x);
}

static CornuStatus read_reciprocal(CornuReadStep *step) { return one(step, reciprocal); }

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

static CornuStatus read_gelu(CornuReadStep *step)
{
    const bool tanh = !strcmp(cornu__word(step, "approximate", "none"), "tanh");
    return plain(step, tanh ? cornu__gelu_approximate : cornu__gelu);
}

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
    Two *remainder = cornu__whole(step, "fmod", 0) ? cornu__fmod : cornu__floor_mod;
    if (!whole(a)) return cornu__result(step, 0, remainder(a, b));
    return cornu__result(step, 0, as(remainder(in_f64(a), in_f64(b)), cornu__dtype_of(a)));
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
        CORNU__TRY(cornu__known_result(step, 0, step->in[0].known));
    else
        CORNU__TRY(cornu__result(step, 0, cornu__operand_of(step, 0)));
    if (cornu__wanted(step, 0)) step->out[0].onnx_type = step->in[0].onnx_type;
    return CORNU_OK;
}

const CornuReadRow cornu__read_elementwise[] = {
    { "Abs", read_absolute }, { "Acos", read_acos }, { "Acosh", read_acosh },
    { "Add", read_add }, { "Asin", read_asin }, { "Asinh", read_asinh },
    { "Atan", read_atan }, { "Atanh", read_atanh }, { "Ceil", read_ceiled },
    { "Celu", read_celu }, { "Clip", read_clip }, { "Cos", read_cos }, { "Cosh", read_cosh },
    { "Div", read_div }, { "Dropout", read_dropout }, { "Elu", read_elu }, { "Erf", read_erf },
    { "Exp", read_exponential }, { "Floor", read_floored }, { "Gelu", read_gelu },
    { "HardSigmoid", read_hard_sigmoid }, { "HardSwish", read_hard_swish },
    { "Identity", read_identity }, { "LeakyRelu", read_leaky }, { "Log", read_log },
    { "Max", read_max }, { "Mean", read_mean }, { "Min", read_min }, { "Mish", read_mish },
    { "Mod", read_mod }, { "Mul", read_mul }, { "Neg", read_negative }, { "PRelu", read_prelu },
    { "Pow", read_pow }, { "Reciprocal", read_reciprocal }, { "Relu", read_relu },
    { "Round", read_rounded }, { "Selu", read_selu }, { "Shrink", read_shrink },
    { "Sigmoid", read_sigmoid }, { "Sign", read_sign }, { "Sin", read_sin },
    { "Sinh", read_sinh }, { "Softplus", read_softplus }, { "Softsign", read_softsign },
    { "Sqrt", read_sqrt }, { "Sub", read_sub }, { "Sum", read_sum }, { "Swish", read_swish },
    { "Tan", read_tan }, { "Tanh", read_tanh }, { "ThresholdedRelu", read_thresholded },
    { 0 },
};
