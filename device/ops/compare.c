/* Comparison, selection, conversion. */
#include <math.h>

#include "rules.h"

/* compare: bool; two operands of the same type, of any dtype. With a NaN only not_equal holds. */
static CornuStatus compare_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(cornu__expect_alike(call, 0, 1, "a b"));
    out[0] = cornu_type_from(CORNU_BOOL, call->in[0].shape);
    return CORNU_OK;
}

static bool holds(CornuComparison comparison, double a, double b)
{
    switch (comparison) {
    case CORNU_EQUAL:         return a == b;
    case CORNU_NOT_EQUAL:     return a != b;
    case CORNU_LESS:          return a < b;
    case CORNU_LESS_EQUAL:    return a <= b;
    case CORNU_GREATER:       return a > b;
    case CORNU_GREATER_EQUAL: return a >= b;
    }
    return false;
}

static CornuStatus compare_reference(const CornuReferenceCall *call)
{
    CornuComparison comparison = call->op.attributes->compare.comparison;
    for (int64_t i = 0; i < call->count; i++)
        call->out[0][i] = holds(comparison, call->in[0][i], call->in[1][i]);
    return CORNU_OK;
}

const CornuOpRules cornu__compare_rules = {
    compare_type, cornu__flops_per_element, CORNU_PRIMITIVE, compare_reference,
};

/* is_finite: bool, false at NaN and the infinities. */
static CornuStatus is_finite_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(cornu__expect_float(call, 0, "x"));
    out[0] = cornu_type_from(CORNU_BOOL, call->in[0].shape);
    return CORNU_OK;
}

static CornuStatus is_finite_reference(const CornuReferenceCall *call)
{
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = isfinite(call->in[0][i]) != 0;
    return CORNU_OK;
}

const CornuOpRules cornu__is_finite_rules = {
    is_finite_type, cornu__flops_per_element, CORNU_PRIMITIVE, is_finite_reference,
};

/* select: a where condition (bool) is true, else b; three operands of the same shape. Elements that
 * are not selected have no effect, even NaN. */
static CornuStatus select_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "condition a b";
    CORNU__TRY(cornu__expect_dtype(call, 0, CORNU_BOOL, names));
    CORNU__TRY(cornu__expect_alike(call, 1, 2, names));
    if (!cornu_shape_equal(call->in[0].shape, call->in[1].shape))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names,
                             "condition and a must have the same shape");
    out[0] = call->in[1];
    return CORNU_OK;
}

static CornuStatus select_reference(const CornuReferenceCall *call)
{
    for (int64_t i = 0; i < call->count; i++)
        call->out[0][i] = call->in[0][i] != 0.0 ? call->in[1][i] : call->in[2][i];
    return CORNU_OK;
}

const CornuOpRules cornu__select_rules = {
    select_type, cornu__flops_per_element, CORNU_PRIMITIVE, select_reference,
};

/* convert: any dtype to any. To a float rounds to nearest even (not here, in double); float to
 * integer truncates toward zero and saturates, NaN becomes 0; to bool means "not zero". Integer
 * to integer saturates too. */
static CornuStatus convert_type(const CornuOpCall *call, CornuType *out)
{
    out[0] = cornu_type_from(call->attributes->convert.dtype, call->in[0].shape);
    return CORNU_OK;
}

static CornuStatus convert_reference(const CornuReferenceCall *call)
{
    CornuDtype dtype = call->out_type[0].dtype;
    int64_t    memory;
    CornuArray held = { cornu_scalar(dtype), &memory };
    for (int64_t i = 0; i < call->count; i++) {
        double x = call->in[0][i];
        if (!cornu_dtype_is_float(dtype)) {
            cornu_array_set(held, 0, dtype == CORNU_BOOL ? x : trunc(x));
            x = cornu_array_get(held, 0);
        }
        call->out[0][i] = x;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__convert_rules = {
    convert_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, convert_reference,
};
