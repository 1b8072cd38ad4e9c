/* Elementwise operators of numbers. Formulas: docs/Operators.md of ONNX. */
#include "elementwise_internal.h"

#include <math.h>
#include <string.h>

#include "../../../layers/activations.h"

static bool whole(CornuTensor *x) { return !cornu_dtype_is_float(cornu__dtype_of(x)); }

static CornuTensor *as(CornuTensor *x, CornuDtype dtype) { return cornu_op_convert(x, dtype); }

/* The dtype in which integers are divided: exact up to 2^53. */
static CornuTensor *in_f64(CornuTensor *x) { return as(x, CORNU_F64); }

/* ---- Functions of one number ---- */

static CornuStatus one(CornuReadStep *step)
{
    return cornu__result(step, 0, step->row->one(cornu__operand_of(step, 0)));
}

static CornuTensor *sign(CornuTensor *x)
{
    return whole(x) ? as(cornu_op_sign(in_f64(x)), cornu__dtype_of(x)) : cornu_op_sign(x);
}

static CornuTensor *relu(CornuTensor *x)
{
    return whole(x) ? cornu_op_maximum(x, cornu_op_constant_like(x, 0.0)) : cornu_op_relu(x);
}

CornuTensor *cornu__floor_of(CornuTensor *x)
{
    return x && whole(x) ? x : cornu_op_floor(x);
}

static CornuTensor *ceiled(CornuTensor *x) { return whole(x) ? x : cornu__ceil(x); }

static CornuTensor *reciprocal(CornuTensor *x)
{
    return cornu_op_divide(cornu_op_constant_like(x, 1.0), x);
}

static CornuTensor *softsign(CornuTensor *x) { return cornu_activation_apply(CORNU_SOFTSIGN, x); }

static CornuTensor *mish(CornuTensor *x) { return cornu_activation_apply(CORNU_MISH, x); }

static CornuStatus read_gelu(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    const bool   tanh = !strcmp(cornu__word(step, "approximate", "none"), "tanh");
    return cornu__result(step, 0, tanh ? cornu__gelu_approximate(x) : cornu__gelu(x));
}

/* ---- Functions of one number with attributes, n ---- */

static CornuStatus by_numbers(CornuReadStep *step)
{
    const CornuReadNumber *usual = step->row->numbers;
    double                 numbers[2] = { 0.0 };
    for (int i = 0; i < 2 && usual[i].name; i++)
        numbers[i] = cornu__real(step, usual[i].name, usual[i].usual);
    return cornu__result(step, 0, step->row->by(cornu__operand_of(step, 0), numbers));
}

static CornuTensor *affine(CornuTensor *x, const double *n)
{
    return cornu_op_shift(cornu_op_scale(x, n[0]), n[1]);
}

static CornuTensor *scaled_tanh(CornuTensor *x, const double *n)
{
    return cornu_op_scale(cornu_op_tanh(cornu_op_scale(x, n[1])), n[0]);
}

static CornuTensor *elu(CornuTensor *x, const double *n) { return cornu_op_elu(x, n[0]); }

static CornuTensor *celu(CornuTensor *x, const double *n)
{
    return cornu_op_scale(cornu_op_elu(cornu_op_scale(x, 1.0 / n[0]), 1.0), n[0]);
}

static CornuTensor *selu(CornuTensor *x, const double *n)
{
    return cornu_op_scale(cornu_op_elu(x, n[0]), n[1]);
}

static CornuTensor *leaky(CornuTensor *x, const double *n) { return cornu__leaky_relu(x, n[0]); }

/* x comparison bound ? a : b */
static CornuTensor *where(CornuTensor *x, CornuComparison comparison, double bound, CornuTensor *a,
                          CornuTensor *b)
{
    return cornu_op_select(cornu_op_compare(x, comparison, cornu_op_constant_like(x, bound)), a, b);
}

static CornuTensor *thresholded(CornuTensor *x, const double *n)
{
    return where(x, CORNU_GREATER, n[0], x, cornu_op_constant_like(x, 0.0));
}

static CornuTensor *shrink(CornuTensor *x, const double *n)
{
    CornuTensor *above = where(x, CORNU_GREATER, n[0], cornu_op_shift(x, -n[1]),
                               cornu_op_constant_like(x, 0.0));
    return where(x, CORNU_LESS, -n[0], cornu_op_shift(x, n[1]), above);
}

static CornuTensor *hard_sigmoid(CornuTensor *x, const double *n)
{
    return cornu_op_clip(affine(x, n), 0.0, 1.0);
}

static CornuTensor *hard_swish(CornuTensor *x)
{
    return cornu_op_multiply(x, hard_sigmoid(x, (const double[]){ 1.0 / 6.0, 0.5 }));
}

static CornuTensor *swish(CornuTensor *x, const double *n)
{
    return cornu_op_multiply(x, cornu_op_sigmoid(cornu_op_scale(x, n[0])));
}

const CornuReadRow *cornu__read_function(const char *name)
{
    for (const CornuReadRow *row = cornu__read_elementwise; row->op; row++)
        if (!strcmp(row->op, name) && (row->rule == one || row->rule == by_numbers)) return row;
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the activation %.40s is not supported", name);
}

CornuTensor *cornu__read_function_of(const CornuReadRow *row, CornuTensor *x,
                                     const double numbers[2])
{
    return !x ? NULL : row->rule == one ? row->one(x) : row->by(x, numbers);
}

/* A bound of Clip: an attribute up to opset 10, then operand i. `usual` if it is absent; NaN if it
 * is computed. */
static double clip_bound(const CornuReadStep *step, int i, const char *name, double usual)
{
    if (step->run->opset < 11) return cornu__real(step, name, usual);
    if (!cornu__given(step, i)) return usual;
    const CornuArray known = step->in[i].known;
    return known.data && cornu_type_count(known.type) == 1 ? cornu_array_get(known, 0) : NAN;
}

/* From 0 to a number it is what kernels make of their results: relu6, as files write it. */
static CornuStatus read_clip(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    const double least = clip_bound(step, 1, "min", -INFINITY);
    const double most = clip_bound(step, 2, "max", INFINITY);
    if (x && cornu_dtype_is_float(cornu__dtype_of(x)) && least == 0.0 && most > 0.0 &&
        most < INFINITY)
        return cornu__result(step, 0, cornu_op_bounded_relu(x, most));
    CornuTensor *low = cornu__optional(step, 1), *high = cornu__optional(step, 2);
    if (step->run->opset < 11) {
        if (cornu__attribute(step, "min"))
            low = cornu_op_constant_like(x, cornu__real(step, "min", 0.0));
        if (cornu__attribute(step, "max"))
            high = cornu_op_constant_like(x, cornu__real(step, "max", 0.0));
    }
    if (low) x = cornu_op_maximum(x, low);
    if (high) x = cornu_op_minimum(x, high);
    return cornu__result(step, 0, x);
}

/* ---- Functions of two numbers, or more ---- */

static CornuStatus two(CornuReadStep *step)
{
    return cornu__result(step, 0, step->row->two(cornu__operand_of(step, 0),
                                                 cornu__operand_of(step, 1)));
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

static CornuTensor *prelu(CornuTensor *x, CornuTensor *slope)
{
    return where(x, CORNU_GREATER_EQUAL, 0.0, x, cornu_op_multiply(x, slope));
}

/* x^2 and x^0.5 are usual, and exact. */
static CornuStatus read_pow(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    if (cornu__given(step, 1) && step->in[1].known.data && step->in[1].known.type.shape.rank == 0) {
        const double power = cornu_array_get(step->in[1].known, 0);
        if (power == 2.0) return cornu__result(step, 0, cornu_op_multiply(x, x));
        if (power == 0.5 && !whole(x)) return cornu__result(step, 0, cornu_op_sqrt(x));
        if (power == 3.0)
            return cornu__result(step, 0, cornu_op_multiply(x, cornu_op_multiply(x, x)));
    }
    CornuTensor *exponent = cornu__operand_of(step, 1);
    return cornu__result(step, 0, exponent ? power_of(x, exponent) : NULL);
}

/* The remainder has the sign of b; with fmod that of a. */
static CornuStatus read_mod(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    CornuTensor *(*remainder)(CornuTensor *, CornuTensor *) =
        cornu__whole(step, "fmod", 0) ? cornu__fmod : cornu__floor_mod;
    if (!whole(a)) return cornu__result(step, 0, remainder(a, b));
    return cornu__result(step, 0, as(remainder(in_f64(a), in_f64(b)), cornu__dtype_of(a)));
}

static CornuTensor *of_all(CornuReadStep *step)
{
    CornuTensor *y = cornu__operand_of(step, 0);
    for (int i = 1; i < step->in_count; i++) y = step->row->two(y, cornu__operand_of(step, i));
    return y;
}

static CornuStatus several(CornuReadStep *step) { return cornu__result(step, 0, of_all(step)); }

static CornuStatus read_mean(CornuReadStep *step)
{
    return cornu__result(step, 0, cornu_op_scale(of_all(step), 1.0 / step->in_count));
}

/* Dropout does nothing: graphs are those of inference. The mask is all ones. */
static CornuStatus read_dropout(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    double       training, ratio;
    CORNU__TRY(cornu__known_number(step, 2, 0.0, &training));
    if (training != 0.0) {
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
    { "Abs", one, 1, .one = cornu_op_absolute }, { "Acos", one, 1, .one = cornu__acos },
    { "Acosh", one, 1, .one = cornu__acosh }, { "Add", two, 2, .two = cornu_op_add },
    { "Affine", by_numbers, 1, .by = affine, .numbers = { { "alpha", 1.0 }, { "beta", 0.0 } } },
    { "Asin", one, 1, .one = cornu__asin }, { "Asinh", one, 1, .one = cornu__asinh },
    { "Atan", one, 1, .one = cornu__atan }, { "Atanh", one, 1, .one = cornu__atanh },
    { "Ceil", one, 1, .one = ceiled },
    { "Celu", by_numbers, 1, .by = celu, .numbers = { { "alpha", 1.0 } } },
    { "Clip", read_clip, .operands = 1 }, { "Cos", one, 1, .one = cornu_op_cos },
    { "Cosh", one, 1, .one = cornu__cosh }, { "Div", two, 2, .two = quotient },
    { "Dropout", read_dropout, .operands = 1 },
    { "Elu", by_numbers, 1, .by = elu, .numbers = { { "alpha", 1.0 } } },
    { "Erf", one, 1, .one = cornu_op_erf }, { "Exp", one, 1, .one = cornu_op_exp },
    { "Floor", one, 1, .one = cornu__floor_of }, { "Gelu", read_gelu, .operands = 1 },
    { "HardSigmoid", by_numbers, 1, .by = hard_sigmoid,
      .numbers = { { "alpha", 0.2 }, { "beta", 0.5 } } },
    { "HardSwish", one, 1, .one = hard_swish }, { "Identity", read_identity, .operands = 0 },
    { "LeakyRelu", by_numbers, 1, .by = leaky, .numbers = { { "alpha", 0.01 } } },
    { "Log", one, 1, .one = cornu_op_log }, { "Max", several, 1, .two = cornu_op_maximum },
    { "Mean", read_mean, 1, .two = cornu_op_add }, { "Min", several, 1, .two = cornu_op_minimum },
    { "Mish", one, 1, .one = mish }, { "Mod", read_mod, .operands = 2 },
    { "Mul", two, 2, .two = cornu_op_multiply }, { "Neg", one, 1, .one = cornu_op_negative },
    { "PRelu", two, 2, .two = prelu }, { "Pow", read_pow, .operands = 1 },
    { "Reciprocal", one, 1, .one = reciprocal }, { "Relu", one, 1, .one = relu },
    { "Round", one, 1, .one = cornu__round },
    { "ScaledTanh", by_numbers, 1, .by = scaled_tanh,
      .numbers = { { "alpha", 1.0 }, { "beta", 1.0 } } },
    { "Selu", by_numbers, 1, .by = selu,
      .numbers = { { "alpha", 1.67326319217681884765625 },
                   { "gamma", 1.05070102214813232421875 } } },
    { "Shrink", by_numbers, 1, .by = shrink, .numbers = { { "lambd", 0.5 }, { "bias", 0.0 } } },
    { "Sigmoid", one, 1, .one = cornu_op_sigmoid }, { "Sign", one, 1, .one = sign },
    { "Sin", one, 1, .one = cornu_op_sin }, { "Sinh", one, 1, .one = cornu__sinh },
    { "Softplus", one, 1, .one = cornu_op_softplus }, { "Softsign", one, 1, .one = softsign },
    { "Sqrt", one, 1, .one = cornu_op_sqrt }, { "Sub", two, 2, .two = cornu_op_subtract },
    { "Sum", several, 1, .two = cornu_op_add },
    { "Swish", by_numbers, 1, .by = swish, .numbers = { { "alpha", 1.0 } } },
    { "Tan", one, 1, .one = cornu__tan }, { "Tanh", one, 1, .one = cornu_op_tanh },
    { "ThresholdedRelu", by_numbers, 1, .by = thresholded, .numbers = { { "alpha", 1.0 } } },
    { "com.microsoft.QuickGelu", by_numbers, 1, .by = swish, .numbers = { { "alpha", 1.702 } } },
    { 0 },
};
