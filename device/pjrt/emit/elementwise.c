/* Elementwise ops, comparison, selection, conversion, and ops without operands. */
#include <math.h>

#include "emit.h"

/* Rules that are one op of StableHLO, with the same operands. */
static void one_op(CornuEmitter *e, const CornuEmitCall *call, const char *op)
{
    const CornuHloType type = cornu__hlo_type(call->out_type[0]);
    call->out[0] = cornu__begin(e, op, type, call->in, call->op.in_count);
    cornu__end(e, call->out[0], call->in, call->op.in_count);
}

#define ONE(name, op)                                                                        \
    static void emit_##name(CornuEmitter *e, const CornuEmitCall *call)                      \
    {                                                                                        \
        one_op(e, call, op);                                                                 \
    }                                                                                        \
    CornuEmit *const cornu__##name##_stablehlo = emit_##name

ONE(is_finite, "is_finite");
ONE(add, "add");
ONE(subtract, "subtract");
ONE(multiply, "multiply");
ONE(divide, "divide");
ONE(maximum, "maximum");
ONE(minimum, "minimum");
ONE(power, "power");
ONE(select, "select");

static CornuName zero_like(CornuEmitter *e, CornuName x)
{
    return cornu__hlo_constant(e, cornu__hlo_of(e, x), 0.0);
}

/* A truth value as 0 or 1 of x's type. */
static CornuName as_number(CornuEmitter *e, CornuName truth, CornuName x)
{
    return cornu__hlo_convert(e, truth, cornu__hlo_of(e, x).element);
}

/* max(x, 0) + log1p(exp(-|x|)) */
static CornuName softplus_of(CornuEmitter *e, CornuName x)
{
    const CornuName below = cornu__hlo1(e, "negate", cornu__hlo1(e, "abs", x));
    const CornuName rest = cornu__hlo1(e, "log_plus_one", cornu__hlo1(e, "exponential", below));
    return cornu__hlo2(e, "add", cornu__hlo2(e, "maximum", x, zero_like(e, x)), rest);
}

#define CORNU_FLAT(ID, name, types, value, stablehlo)                    \
    static void emit_##name(CornuEmitter *e, const CornuEmitCall *call)  \
    {                                                                    \
        const CornuName x = call->in[0];                                 \
        call->out[0] = stablehlo;                                        \
    }                                                                    \
    CornuEmit *const cornu__##name##_stablehlo = emit_##name;
#define CORNU_UNARY(ID, name, types, value, gradient, stablehlo) \
    CORNU_FLAT(ID, name, types, value, stablehlo)
#define CORNU_COMPOSED(ID, name, types, value, gradient, stablehlo, ...)                    \
    static void emit_##name(CornuEmitter *e, const CornuEmitCall *call)                     \
    {                                                                                       \
        const PjrtType  own = cornu__hlo_of(e, call->in[0]).element;                        \
        const PjrtType  wide = own == PJRT_F64 ? own : PJRT_F32;                            \
        const CornuName x = cornu__hlo_convert(e, call->in[0], wide);                       \
        call->out[0] = cornu__hlo_convert(e, stablehlo, own);                               \
    }                                                                                       \
    CornuEmit *const cornu__##name##_stablehlo = emit_##name;
#include "../../ops/elementwise.def"
#undef CORNU_COMPOSED
#undef CORNU_UNARY
#undef CORNU_FLAT

static void elu(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuName x = call->in[0];
    const CornuName alpha = cornu__hlo_constant(e, cornu__hlo_of(e, x),
                                                call->op.attributes->alpha.alpha);
    const CornuName falling = cornu__hlo2(e, "multiply", alpha,
                                          cornu__hlo1(e, "exponential_minus_one", x));
    const CornuName above = cornu__hlo_compare(e, x, "GT", zero_like(e, x));
    call->out[0] = cornu__hlo_select(e, above, x, falling);
}
CornuEmit *const cornu__elu_stablehlo = elu;

static CornuName bound_like(CornuEmitter *e, const CornuEmitCall *call)
{
    return cornu__hlo_constant(e, cornu__hlo_of(e, call->in[0]), call->op.attributes->bound.bound);
}

static void bounded_relu(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuName above = cornu__hlo2(e, "maximum", call->in[0], zero_like(e, call->in[0]));
    call->out[0] = cornu__hlo2(e, "minimum", above, bound_like(e, call));
}
CornuEmit *const cornu__bounded_relu_stablehlo = bounded_relu;

static void bounded_step(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuName x = call->in[0];
    const CornuName above = cornu__hlo_compare(e, x, "GT", zero_like(e, x));
    const CornuName below = cornu__hlo_compare(e, x, "LT", bound_like(e, call));
    call->out[0] = as_number(e, cornu__hlo2(e, "and", above, below), x);
}
CornuEmit *const cornu__bounded_step_stablehlo = bounded_step;

/* ---- Compare, convert ---- */

static void emit_compare(CornuEmitter *e, const CornuEmitCall *call)
{
    static const char *const directions[] = {
        [CORNU_EQUAL] = "EQ", [CORNU_NOT_EQUAL] = "NE", [CORNU_LESS] = "LT",
        [CORNU_LESS_EQUAL] = "LE", [CORNU_GREATER] = "GT", [CORNU_GREATER_EQUAL] = "GE",
    };
    call->out[0] = cornu__hlo_compare(
        e, call->in[0], directions[call->op.attributes->compare.comparison], call->in[1]);
}
CornuEmit *const cornu__compare_stablehlo = emit_compare;

/* The numbers that an integer dtype holds, as far as doubles and i64 can say. */
static void range_of(CornuDtype dtype, int64_t *low, int64_t *high)
{
    *low = dtype == CORNU_I32 ? INT32_MIN : dtype == CORNU_I64 ? INT64_MIN : 0;
    *high = dtype == CORNU_I32 ? INT32_MAX : dtype == CORNU_U32 ? UINT32_MAX
          : dtype == CORNU_U8 ? UINT8_MAX : INT64_MAX;
}

/* Integers saturate: through i64, which holds all of them. */
static CornuName clamp_integers(CornuEmitter *e, CornuName x, CornuDtype to)
{
    int64_t low, high;
    range_of(to, &low, &high);
    x = cornu__hlo_convert(e, x, PJRT_S64);
    const CornuHloType type = cornu__hlo_of(e, x);
    x = cornu__hlo2(e, "maximum", x, cornu__hlo_integer(e, type, low));
    return cornu__hlo2(e, "minimum", x, cornu__hlo_integer(e, type, high));
}

/* Floats that an integer cannot hold saturate, NaN becomes 0: convert leaves both open. The limits
 * are compared in the float's own dtype, where the upper one may round up to the first number that
 * does not fit. */
static CornuName float_to_integer(CornuEmitter *e, CornuName x, CornuDtype to)
{
    int64_t low, high;
    range_of(to, &low, &high);
    if (cornu__hlo_of(e, x).element == PJRT_F16 || cornu__hlo_of(e, x).element == PJRT_BF16)
        x = cornu__hlo_convert(e, x, PJRT_F32);
    const CornuHloType type = cornu__hlo_of(e, x), result = cornu__hlo_as(type,
                                                                         cornu__pjrt_type(to));
    const CornuName is_low = cornu__hlo_compare(e, x, "LE",
                                                cornu__hlo_constant(e, type, (double)low));
    const CornuName is_high = cornu__hlo_compare(e, x, "GE",
                                                 cornu__hlo_constant(e, type, (double)high));
    const CornuName outside = cornu__hlo2(e, "or", cornu__hlo2(e, "or", is_low, is_high),
                                          cornu__hlo_compare(e, x, "NE", x));
    CornuName y = cornu__hlo_select(e, outside, zero_like(e, x), x);
    y = cornu__hlo_convert(e, y, result.element);
    y = cornu__hlo_select(e, is_low, cornu__hlo_integer(e, result, low), y);
    return cornu__hlo_select(e, is_high, cornu__hlo_integer(e, result, high), y);
}

static void convert(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuDtype from = call->op.in[0].dtype, to = call->out_type[0].dtype;
    const CornuName  x = call->in[0];
    CornuName        y = x;
    if (to == from || from == CORNU_BOOL) y = x;
    else if (to == CORNU_BOOL) y = cornu__hlo_compare(e, x, "NE", zero_like(e, x));
    else if (!cornu_dtype_is_float(to))
        y = cornu_dtype_is_float(from) ? float_to_integer(e, x, to) : clamp_integers(e, x, to);
    call->out[0] = cornu__hlo_convert(e, y, cornu__pjrt_type(to));
}
CornuEmit *const cornu__convert_stablehlo = convert;

/* ---- Without operands ---- */

static void constant(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_constant(e, cornu__hlo_type(call->out_type[0]),
                                       call->op.attributes->constant.value);
}
CornuEmit *const cornu__constant_stablehlo = constant;

static void iota(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_iota(e, cornu__hlo_type(call->out_type[0]),
                                   (int)call->op.attributes->iota.axis);
}
CornuEmit *const cornu__iota_stablehlo = iota;
