/* Scales and zeros of quantized numbers. */
#include "quantized_internal.h"

CornuTensor *cornu__quantity(CornuReadStep *step, int i, int rank, int axis)
{
    CornuTensor *p = cornu_op_convert(cornu__operand_of(step, i), CORNU_F32);
    if (!p) return NULL;
    const CornuShape shape = cornu_tensor_shape(p);
    int64_t          extents[CORNU_MAX_RANK];
    if (cornu_shape_count(shape) == 1) return cornu__reshaped(p, 0, extents);
    if (shape.rank != 1 || axis < 0 || axis >= rank)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "operand %d has rank %d, expected a number "
                                "or a vector", i, shape.rank);
    for (int k = 0; k < rank; k++) extents[k] = k == axis ? shape.extent[0] : 1;
    return cornu__reshaped(p, rank, extents);
}

CornuTensor *cornu__centred(CornuReadStep *step, CornuTensor *q, int zero, int axis)
{
    q = cornu_op_convert(q, CORNU_F32);
    if (!q || !cornu__given(step, zero)) return q;
    return cornu_op_subtract(q, cornu__quantity(step, zero, cornu__rank_of(q), axis));
}

CornuTensor *cornu__dequantized(CornuReadStep *step, int q, int scale, int zero, int axis)
{
    CornuTensor *x = cornu__centred(step, cornu__operand_of(step, q), zero, axis);
    return x ? cornu_op_multiply(x, cornu__quantity(step, scale, cornu__rank_of(x), axis)) : NULL;
}

CornuTensor *cornu__centred_product(CornuReadStep *step, const char *op, const int a[2],
                                    const int b[2])
{
    CornuTensor *x = cornu__operand_of(step, a[0]), *w = cornu__operand_of(step, b[0]);
    const bool   conv = *op == 'C', turned = cornu__whole(step, "transB", 0);
    const int    rank = cornu__rank_of(x);
    CornuTensor *zero = cornu__given(step, a[1])
                            ? cornu__quantity(step, a[1], rank, conv ? -1 : rank - 2) : NULL;
    CornuTensor *sums = cornu__integer_product_of(step, op, x, zero, b);
    if (sums || cornu_error_pending()) return sums;
    x = cornu_op_convert(x, CORNU_F32);
    CornuTensor *in[] = {
        zero ? cornu_op_subtract(x, zero) : x,
        cornu__centred(step, w, b[1], conv || turned ? 0 : cornu__rank_of(w) - 1),
    };
    return cornu__read_by(step, op, in, 2);
}

CornuTensor *cornu__rounded_to(CornuTensor *x, CornuTensor *zero, int64_t type)
{
    static const struct { int64_t type; double low, high; } ranges[] = {
        { CORNU_READ_UINT8, 0.0, 255.0 }, { CORNU_READ_INT8, -128.0, 127.0 },
        { CORNU_READ_UINT16, 0.0, 65535.0 }, { CORNU_READ_INT16, -32768.0, 32767.0 },
    };
    CornuDtype dtype;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].type != type) continue;
        x = cornu__round(x);
        if (zero) x = cornu_op_add(x, zero);
        x = cornu_op_clip(x, ranges[i].low, ranges[i].high);
        return cornu__onnx_dtype(type, &dtype) ? NULL : cornu_op_convert(x, dtype);
    }
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "numbers are quantized to type %lld of ONNX, "
                            "expected integers of 8 or 16 bits whose type is known when the file "
                            "is loaded", (long long)type);
}

CornuStatus cornu__narrow_result(CornuReadStep *step, CornuTensor *y, int64_t type)
{
    CORNU__TRY(cornu__result(step, 0, y));
    if (cornu__wanted(step, 0)) step->out[0].onnx_type = type;
    return CORNU_OK;
}

CornuStatus cornu__quantized_result(CornuReadStep *step, CornuTensor *x, int scale, int zero)
{
    const int    rank = cornu__rank_of(x);
    const bool   given = cornu__given(step, zero);
    const int64_t type = given ? cornu__operand_onnx_type(step, zero) : CORNU_READ_UINT8;
    if (x) x = cornu_op_divide(x, cornu__quantity(step, scale, rank, -1));
    CornuTensor *from = given ? cornu__quantity(step, zero, rank, -1) : NULL;
    return cornu__narrow_result(step, cornu__rounded_to(x, from, type), type);
}

CornuTensor *cornu__dynamic(CornuTensor *x, CornuTensor **scale, CornuTensor **zero)
{
    if (!x) return NULL;
    const int64_t all = (INT64_C(1) << cornu__rank_of(x)) - 1;
    CornuTensor *high = cornu_op_relu(cornu_op_reduce_max(x, all, false));
    CornuTensor *depth = cornu_op_relu(cornu_op_reduce_max(cornu_op_negative(x), all, false));
    CornuTensor *span = cornu_op_divide(cornu_op_add(high, depth),
                                        cornu_op_constant_like(depth, 255.0));
    if (!span) return NULL;
    CornuTensor *none = cornu_op_compare(span, CORNU_EQUAL, cornu_op_constant_like(span, 0.0));
    span = cornu_op_select(none, cornu_op_constant_like(span, 1.0), span);
    CornuTensor *at = cornu_op_clip(cornu__round(cornu_op_divide(depth, span)), 0.0, 255.0);
    if (scale) *scale = span;
    if (zero) *zero = at;
    return cornu_op_clip(cornu_op_add(cornu__round(cornu_op_divide(x, span)), at), 0.0, 255.0);
}

CornuTensor *cornu__in_8_bits(CornuTensor *x)
{
    CornuTensor *scale = NULL, *zero = NULL, *q = cornu__dynamic(x, &scale, &zero);
    return q ? cornu_op_multiply(cornu_op_subtract(q, zero), scale) : NULL;
}
