/* Comparisons, logic, conversions, choices. */
#include "../run_internal.h"

#include <string.h>

/* ---- Booleans are computed as i32: and is min, or is max ---- */

static CornuTensor *number(CornuTensor *x) { return cornu_op_convert(x, CORNU_I32); }
static CornuTensor *truth(CornuTensor *x) { return cornu_op_convert(x, CORNU_BOOL); }

static CornuStatus logical(CornuReadStep *step)
{
    CornuTensor *a = number(cornu__operand_of(step, 0)), *b = number(cornu__operand_of(step, 1));
    return cornu__result(step, 0, truth(step->row->two(a, b)));
}

static CornuTensor *differ(CornuTensor *a, CornuTensor *b)
{
    return cornu_op_compare(a, CORNU_NOT_EQUAL, b);
}

static CornuStatus read_not(CornuReadStep *step)
{
    CornuTensor *x = number(cornu__operand_of(step, 0));
    return cornu__result(step, 0, cornu_op_compare(x, CORNU_EQUAL, cornu_op_constant_like(x, 0.0)));
}

/* ---- Comparisons ---- */

static CornuStatus compared(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    return cornu__result(step, 0, cornu_op_compare(a, step->row->comparison, b));
}

static CornuStatus read_is_nan(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    return cornu__result(step, 0, differ(x, x));
}

static CornuStatus read_is_inf(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    const bool   low = cornu__whole(step, "detect_negative", 1);
    const bool   high = cornu__whole(step, "detect_positive", 1);
    CornuTensor *zero = cornu_op_constant_like(x, 0.0);
    CornuTensor *finite = number(cornu_op_is_finite(x));
    CornuTensor *one = cornu_op_constant_like(finite, 1.0);
    CornuTensor *y = cornu_op_subtract(one, finite);
    CornuTensor *a = low ? number(cornu_op_compare(x, CORNU_LESS, zero)) : NULL;
    CornuTensor *b = high ? number(cornu_op_compare(x, CORNU_GREATER, zero)) : NULL;
    CornuTensor *side = a && b ? cornu_op_maximum(a, b) : a ? a : b;
    if (!side) side = cornu_op_constant_like(finite, 0.0);
    return cornu__result(step, 0, truth(cornu_op_minimum(y, side)));
}

/* ---- Choices and conversions ---- */

static CornuStatus read_where(CornuReadStep *step)
{
    CornuTensor *which = truth(cornu__operand_of(step, 0)), *a = cornu__operand_of(step, 1);
    CornuTensor *b = cornu__operand_of(step, 2);
    return cornu__result(step, 0, cornu_op_select(which, a, b));
}

/* Integers of fewer bits, which are kept in i32, wrap around. */
static CornuTensor *wrapped(CornuTensor *x, int64_t type)
{
    const double span = type == CORNU_READ_INT8 ? 0x1p8 : 0x1p16;
    const double low = type == CORNU_READ_UINT16 ? 0.0 : -span / 2;
    x = cornu_op_convert(x, CORNU_F64);
    CornuTensor *turns = cornu_op_floor(cornu_op_scale(cornu_op_shift(x, -low), 1.0 / span));
    x = cornu_op_subtract(x, cornu_op_scale(turns, span));
    return cornu_op_convert(x, CORNU_I32);
}

static CornuStatus converted(CornuReadStep *step, int64_t type)
{
    CornuDtype   dtype;
    CORNU__TRY(cornu__onnx_dtype(type, &dtype));
    CornuTensor *x = cornu__operand_of(step, 0);
    if (x && cornu__onnx_is_narrow(type) && !cornu_dtype_is_float(cornu__dtype_of(x)))
        x = wrapped(x, type);
    return cornu__result(step, 0, cornu_op_convert(x, dtype));
}

static CornuStatus read_cast(CornuReadStep *step)
{
    const int64_t type = cornu__whole(step, "to", CORNU_READ_FLOAT);
    CornuDtype    dtype;
    CORNU__TRY(cornu__onnx_dtype(type, &dtype));
    /* A known array that has the dtype stays the array. */
    if (cornu__given(step, 0) && step->in[0].known.data && !step->in[0].tensor &&
        step->in[0].known.type.dtype == dtype && !cornu__onnx_is_narrow(type))
        CORNU__TRY(cornu__known_result(step, 0, step->in[0].known));
    else
        CORNU__TRY(converted(step, type));
    if (cornu__wanted(step, 0)) step->out[0].onnx_type = type;
    return CORNU_OK;
}

static CornuStatus read_cast_like(CornuReadStep *step)
{
    const CornuDtype dtype = cornu__operand_type(step, 1).dtype;
    return cornu__result(step, 0, cornu_op_convert(cornu__operand_of(step, 0), dtype));
}

const CornuReadRow cornu__read_logic[] = {
    { "And", logical, 2, .two = cornu_op_minimum }, { "Cast", read_cast, .operands = 0 },
    { "CastLike", read_cast_like, .operands = 1 },
    { "Equal", compared, 2, .comparison = CORNU_EQUAL },
    { "Greater", compared, 2, .comparison = CORNU_GREATER },
    { "GreaterOrEqual", compared, 2, .comparison = CORNU_GREATER_EQUAL },
    { "IsInf", read_is_inf, .operands = 1 }, { "IsNaN", read_is_nan, .operands = 1 },
    { "Less", compared, 2, .comparison = CORNU_LESS },
    { "LessOrEqual", compared, 2, .comparison = CORNU_LESS_EQUAL },
    { "Not", read_not, .operands = 1 }, { "Or", logical, 2, .two = cornu_op_maximum },
    { "Where", read_where, .operands = 3 }, { "Xor", logical, 2, .two = differ },
    { 0 },
};
