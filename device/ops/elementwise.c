/*
 * Elementwise ops. Operands and result have the same dtype and shape; broadcasting is a separate
 * op. Floats unless a rule says "number": then integers too, never bool. An integer result outside
 * the range of its dtype is undefined.
 */
#include <math.h>

#include "build.h"
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

#define CORNU_RULES(name, types, value, decompose)                                         \
    static double name##_of(double x) { return value; }                                    \
    static CornuStatus name##_reference(const CornuReferenceCall *call)                    \
    {                                                                                      \
        return each(call, name##_of);                                                      \
    }                                                                                      \
    const CornuOpRules cornu__##name##_rules = {                                           \
        types##_type, cornu__flops_per_element, decompose, name##_reference,               \
    };
#define CORNU_UNARY(ID, name, types, value, gradient, stablehlo) \
    CORNU_RULES(name, types, value, CORNU_PRIMITIVE)
#define CORNU_FLAT(ID, name, types, value, stablehlo) \
    CORNU_RULES(name, types, value, CORNU_PRIMITIVE)
#define CORNU_COMPOSED(ID, name, types, value, gradient, stablehlo, ...)                   \
    static CornuStatus name##_decompose(CornuProgram *program, const CornuOpCall *call,    \
                                        const CornuValue *in, CornuValue *out)             \
    {                                                                                      \
        CornuBuilder     builder = { program, CORNU_OK }, *const b = &builder;             \
        const CornuValue x = in[0];                                                        \
        CornuValue       y;                                                                \
        (void)call;                                                                        \
        __VA_ARGS__;                                                                       \
        out[0] = y;                                                                        \
        return builder.status;                                                             \
    }                                                                                      \
    CORNU_RULES(name, types, value, name##_decompose)
#include "elementwise.def"
#undef CORNU_COMPOSED
#undef CORNU_FLAT
#undef CORNU_UNARY
#undef CORNU_RULES

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

#define CORNU_PAIRS(name, types, value)                                                    \
    static double name##_of(double a, double b) { return value; }                          \
    static CornuStatus name##_reference(const CornuReferenceCall *call)                    \
    {                                                                                      \
        return pairs(call, name##_of);                                                     \
    }                                                                                      \
    const CornuOpRules cornu__##name##_rules = {                                           \
        types##_type, cornu__flops_per_element, CORNU_PRIMITIVE, name##_reference,         \
    };
CORNU_PAIRS(add, number, a + b)
CORNU_PAIRS(subtract, number, a - b)
CORNU_PAIRS(multiply, number, a * b)
CORNU_PAIRS(divide, float, a / b)                              /* as IEEE 754 divides */
CORNU_PAIRS(maximum, number, isnan(a) || a > b ? a : b)        /* NaN if either is NaN */
CORNU_PAIRS(minimum, number, isnan(a) || a < b ? a : b)
CORNU_PAIRS(power, float, pow(a, b))        /* NaN for a negative a and a non-integer b */
