/*
 * Elementwise ops. Operands and result have the same dtype and shape; broadcasting is a separate
 * op. Floats unless a rule says "number": then integers too, never bool. An integer result outside
 * the range of its dtype is undefined.
 */
#include <math.h>

#include "rules.h"

static CornuStatus alike(const CornuOpCall *call, CornuType *out)
{
    if (call->in_count == 2) CORNU__TRY(cornu__expect_alike(call, 0, 1, "a b"));
    return cornu__same_type(call, out);
}

static CornuStatus number_type(const CornuOpCall *call, CornuType *out)
{
    if (!cornu__is_number(call->in[0].dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, call->in_count == 1 ? "x" : "a b",
                             "expected numbers");
    return alike(call, out);
}

static CornuStatus float_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(cornu__expect_float(call, 0, call->in_count == 1 ? "x" : "a b"));
    return alike(call, out);
}

static CornuStatus bounded_type(const CornuOpCall *call, CornuType *out)
{
    const double bound = call->attributes->bound.bound;
    CORNU__TRY(float_type(call, out));
    if (bound > 0.0) return CORNU_OK;
    return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "the bound is %g, expected a positive one",
                         bound);
}

/* y[i] = f(x[i]) */
static CornuStatus each(const CornuReferenceCall *call, double f(double))
{
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = f(call->in[0][i]);
    return CORNU_OK;
}

/* y[i] = f(a[i], b[i]) */
static CornuStatus pairs(const CornuReferenceCall *call, double f(double, double))
{
    for (int64_t i = 0; i < call->count; i++)
        call->out[0][i] = f(call->in[0][i], call->in[1][i]);
    return CORNU_OK;
}

/* ---- One operand ---- */

/* negative: y = -x, any number. */
static double negative_of(double x) { return -x; }

static CornuStatus negative_reference(const CornuReferenceCall *call)
{
    return each(call, negative_of);
}

const CornuOpRules cornu__negative_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, negative_reference,
};

/* absolute: y = |x|, any number. */
static double absolute_of(double x) { return fabs(x); }

static CornuStatus absolute_reference(const CornuReferenceCall *call)
{
    return each(call, absolute_of);
}

const CornuOpRules cornu__absolute_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, absolute_reference,
};

/* sign: -1, 0 or 1; NaN stays NaN. */
static double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }

static CornuStatus sign_reference(const CornuReferenceCall *call)
{
    return each(call, sign_of);
}

const CornuOpRules cornu__sign_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, sign_reference,
};

/* floor: the largest integer not above x. */
static CornuStatus floor_reference(const CornuReferenceCall *call)
{
    return each(call, floor);
}

const CornuOpRules cornu__floor_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, floor_reference,
};

/* exp: y = e^x. */
static CornuStatus exp_reference(const CornuReferenceCall *call)
{
    return each(call, exp);
}

const CornuOpRules cornu__exp_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, exp_reference,
};

/* log: the natural logarithm; -inf at 0, NaN below. */
static CornuStatus log_reference(const CornuReferenceCall *call)
{
    return each(call, log);
}

const CornuOpRules cornu__log_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, log_reference,
};

/* sqrt: NaN below 0. */
static CornuStatus sqrt_reference(const CornuReferenceCall *call)
{
    return each(call, sqrt);
}

const CornuOpRules cornu__sqrt_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, sqrt_reference,
};

/* rsqrt: y = 1 / sqrt(x); inf at 0, NaN below. */
static double rsqrt_of(double x) { return 1.0 / sqrt(x); }

static CornuStatus rsqrt_reference(const CornuReferenceCall *call)
{
    return each(call, rsqrt_of);
}

const CornuOpRules cornu__rsqrt_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, rsqrt_reference,
};

/* sin: x in radians. */
static CornuStatus sin_reference(const CornuReferenceCall *call)
{
    return each(call, sin);
}

const CornuOpRules cornu__sin_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, sin_reference,
};

/* cos: x in radians. */
static CornuStatus cos_reference(const CornuReferenceCall *call)
{
    return each(call, cos);
}

const CornuOpRules cornu__cos_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, cos_reference,
};

static CornuStatus tanh_reference(const CornuReferenceCall *call)
{
    return each(call, tanh);
}

const CornuOpRules cornu__tanh_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, tanh_reference,
};

/* sigmoid: y = 1 / (1 + exp(-x)); exp overflows to inf and y is 0, as it should. */
static double sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }

static CornuStatus sigmoid_reference(const CornuReferenceCall *call)
{
    return each(call, sigmoid_of);
}

const CornuOpRules cornu__sigmoid_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, sigmoid_reference,
};

/* erf: y = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. */
static CornuStatus erf_reference(const CornuReferenceCall *call)
{
    return each(call, erf);
}

const CornuOpRules cornu__erf_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, erf_reference,
};

/* softplus: y = log(1 + exp(x)), written so that exp cannot overflow. */
static double softplus_of(double x) { return fmax(x, 0.0) + log1p(exp(-fabs(x))); }

static CornuStatus softplus_reference(const CornuReferenceCall *call)
{
    return each(call, softplus_of);
}

const CornuOpRules cornu__softplus_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, softplus_reference,
};

/* relu: y = max(x, 0); NaN stays NaN, as in Keras. */
static double relu_of(double x) { return x <= 0.0 ? 0.0 : x; }

static CornuStatus relu_reference(const CornuReferenceCall *call)
{
    return each(call, relu_of);
}

const CornuOpRules cornu__relu_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, relu_reference,
};

/* step: y = 1 where x > 0, else 0, also at NaN: the slope of relu. */
static double step_of(double x) { return x > 0.0 ? 1.0 : 0.0; }

static CornuStatus step_reference(const CornuReferenceCall *call)
{
    return each(call, step_of);
}

const CornuOpRules cornu__step_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, step_reference,
};

/* elu: y = x where x > 0, else alpha (exp(x) - 1). */
static CornuStatus elu_reference(const CornuReferenceCall *call)
{
    double alpha = call->op.attributes->alpha.alpha;
    for (int64_t i = 0; i < call->count; i++) {
        double x = call->in[0][i];
        call->out[0][i] = x > 0.0 ? x : alpha * expm1(x);
    }
    return CORNU_OK;
}

const CornuOpRules cornu__elu_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, elu_reference,
};

/* bounded_relu: y = min(max(x, 0), bound); NaN stays NaN. */
static CornuStatus bounded_relu_reference(const CornuReferenceCall *call)
{
    const double bound = call->op.attributes->bound.bound;
    for (int64_t i = 0; i < call->count; i++) {
        const double x = relu_of(call->in[0][i]);
        call->out[0][i] = x >= bound ? bound : x;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__bounded_relu_rules = {
    bounded_type, cornu__flops_per_element, CORNU_PRIMITIVE, bounded_relu_reference,
};

/* bounded_step: y = 1 where 0 < x < bound, else 0, also at NaN: the slope of bounded_relu. */
static CornuStatus bounded_step_reference(const CornuReferenceCall *call)
{
    const double bound = call->op.attributes->bound.bound;
    for (int64_t i = 0; i < call->count; i++)
        call->out[0][i] = step_of(call->in[0][i]) * step_of(bound - call->in[0][i]);
    return CORNU_OK;
}

const CornuOpRules cornu__bounded_step_rules = {
    bounded_type, cornu__flops_per_element, CORNU_PRIMITIVE, bounded_step_reference,
};

/* ---- Two operands ---- */

/* add: y = a + b. */
static double add_of(double a, double b) { return a + b; }

static CornuStatus add_reference(const CornuReferenceCall *call)
{
    return pairs(call, add_of);
}

const CornuOpRules cornu__add_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, add_reference,
};

/* subtract: y = a - b. */
static double subtract_of(double a, double b) { return a - b; }

static CornuStatus subtract_reference(const CornuReferenceCall *call)
{
    return pairs(call, subtract_of);
}

const CornuOpRules cornu__subtract_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, subtract_reference,
};

/* multiply: y = a b. */
static double multiply_of(double a, double b) { return a * b; }

static CornuStatus multiply_reference(const CornuReferenceCall *call)
{
    return pairs(call, multiply_of);
}

const CornuOpRules cornu__multiply_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, multiply_reference,
};

/* divide: y = a / b, as IEEE 754 divides. */
static double divide_of(double a, double b) { return a / b; }

static CornuStatus divide_reference(const CornuReferenceCall *call)
{
    return pairs(call, divide_of);
}

const CornuOpRules cornu__divide_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, divide_reference,
};

/* maximum: the larger one; NaN if either is NaN. */
static double maximum_of(double a, double b) { return isnan(a) || a > b ? a : b; }

static CornuStatus maximum_reference(const CornuReferenceCall *call)
{
    return pairs(call, maximum_of);
}

const CornuOpRules cornu__maximum_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, maximum_reference,
};

/* minimum: the smaller one; NaN if either is NaN. */
static double minimum_of(double a, double b) { return isnan(a) || a < b ? a : b; }

static CornuStatus minimum_reference(const CornuReferenceCall *call)
{
    return pairs(call, minimum_of);
}

const CornuOpRules cornu__minimum_rules = {
    number_type, cornu__flops_per_element, CORNU_PRIMITIVE, minimum_reference,
};

/* power: y = a^b; NaN for a negative a and a non-integer b. */
static double power_of(double a, double b) { return pow(a, b); }

static CornuStatus power_reference(const CornuReferenceCall *call)
{
    return pairs(call, power_of);
}

const CornuOpRules cornu__power_rules = {
    float_type, cornu__flops_per_element, CORNU_PRIMITIVE, power_reference,
};
