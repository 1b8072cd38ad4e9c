/* Quantized numbers, and the integer products of ONNX' own operators. Formulas: docs/Operators.md,
 * QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearConv. */
#include "quantized_internal.h"

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* A scale or zero of which each number is for block_size elements of an axis of x. */
static CornuTensor *blocks(CornuReadStep *step, int i, CornuShape x, int axis)
{
    CornuTensor  *p = cornu_op_convert(cornu__operand_of(step, i), CORNU_F32);
    const int64_t size = cornu__whole(step, "block_size", 0);
    CornuShape shape = cornu_tensor_shape(p);
    if (shape.rank != x.rank || x.rank == CORNU_MAX_RANK || size < 1 ||
        shape.extent[axis] != (x.extent[axis] + size - 1) / size)
        return cornu__fail_null(CORNU_ERR_SHAPE, "operand %d does not have a number for each %lld "
                                "elements of axis %d", i, (long long)size, axis);
    p = cornu__add_axis(p, axis + 1);
    CornuShape wide = cornu_tensor_shape(p);
    wide.extent[axis + 1] = size;
    p = cornu_op_broadcast(p, wide);
    shape.extent[axis] *= size;
    return cornu__part_of(cornu_op_reshape(p, shape), axis, 0, x.extent[axis]);
}

/* Operand i as it broadcasts to x. */
static CornuTensor *parameter(CornuReadStep *step, int i, CornuTensor *x, int axis)
{
    if (!cornu__given(step, i)) return NULL;
    if (cornu__whole(step, "block_size", 0)) return blocks(step, i, cornu_tensor_shape(x), axis);
    return cornu__quantity(step, i, cornu__rank_of(x), axis);
}

static CornuStatus axis_of(CornuReadStep *step, CornuTensor *x, int *axis)
{
    const int64_t given = cornu__whole(step, "axis", 1);
    const bool    one = cornu_type_count(cornu__operand_type(step, 1)) == 1;
    *axis = 0;
    return one ? CORNU_OK : cornu__axis_of(given, cornu__rank_of(x), axis);
}

static CornuStatus read_quantize(CornuReadStep *step)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_of(step, 0), CORNU_F32);
    int64_t      type = cornu__whole(step, "output_dtype", 0);
    int          axis;
    CORNU__TRY(axis_of(step, x, &axis));
    if (cornu__given(step, 2)) type = cornu__operand_onnx_type(step, 2);
    if (!type) type = CORNU_READ_UINT8;
    CornuTensor *scaled = cornu_op_divide(x, parameter(step, 1, x, axis));
    CornuTensor *y = cornu__rounded_to(scaled, parameter(step, 2, x, axis), type);
    return cornu__narrow_result(step, y, type);
}

static CornuStatus read_dequantize(CornuReadStep *step)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_of(step, 0), CORNU_F32);
    int          axis;
    CORNU__TRY(axis_of(step, x, &axis));
    CornuTensor *zero = parameter(step, 2, x, axis);
    if (zero) x = cornu_op_subtract(x, zero);
    return cornu__result(step, 0, cornu_op_multiply(x, parameter(step, 1, x, axis)));
}

static CornuStatus read_dynamic(CornuReadStep *step)
{
    CornuTensor *scale = NULL, *zero = NULL;
    CornuTensor *y = cornu__dynamic(cornu__operand_of(step, 0), &scale, &zero);
    CORNU__TRY(cornu__result(step, 0, cornu_op_convert(y, CORNU_U8)));
    CORNU__TRY(cornu__result(step, 1, scale));
    return cornu__result(step, 2, cornu_op_convert(zero, CORNU_U8));
}

/* ---- Products ---- */

/* The product in integers. */
static CornuStatus read_integers(CornuReadStep *step)
{
    CornuTensor *y = cornu__centred_product(step, step->row->name, (const int[]){ 0, 2 },
                                            (const int[]){ 1, 3 });
    return cornu__narrow_result(step, cornu_op_convert(y, CORNU_I32), CORNU_READ_INT32);
}

/* x, scale, zero; w, scale, zero, with one or one for each filter; scale and zero of y; bias. In
 * com.microsoft axis 1 may be the last. */
static CornuStatus read_qlinear_conv(CornuReadStep *step)
{
    const bool   last = cornu__whole(step, "channels_last", 0);
    CornuTensor *x = cornu__centred(step, cornu__operand_of(step, 0), 2, -1);
    CornuTensor *w = cornu__centred(step, cornu__operand_of(step, 3), 5, 0);
    CornuTensor *in[] = { last ? cornu__read_channels_first(x) : x, w,
                          cornu__optional_as(step, 8, CORNU_F32) };
    CornuTensor *y = cornu__read_by(step, "Conv", in, 3);
    const int    rank = cornu__rank_of(y);
    y = cornu_op_multiply(y, cornu_op_multiply(cornu__quantity(step, 1, rank, -1),
                                               cornu__quantity(step, 4, rank, 1)));
    return cornu__quantized_result(step, last ? cornu__read_channels_last(y) : y, 6, 7);
}

static CornuStatus read_qlinear_matmul(CornuReadStep *step)
{
    CornuTensor *y = cornu__centred_product(step, "MatMul", (const int[]){ 0, 2 },
                                            (const int[]){ 3, 5 });
    const int    rank = cornu__rank_of(y);
    y = cornu_op_convert(y, CORNU_F32);
    y = cornu_op_multiply(y, cornu__quantity(step, 1, rank, rank - 2));
    y = cornu_op_multiply(y, cornu__quantity(step, 4, rank, rank - 1));
    return cornu__quantized_result(step, y, 6, 7);
}

const CornuReadRow cornu__read_quantized[] = {
    { "ConvInteger", read_integers, 2, .name = "Conv" },
    { "DequantizeLinear", read_dequantize, .operands = 2 },
    { "DynamicQuantizeLinear", read_dynamic, .operands = 1 },
    { "MatMulInteger", read_integers, 2, .name = "MatMul" },
    { "QLinearConv", read_qlinear_conv, .operands = 4 },
    { "QLinearMatMul", read_qlinear_matmul, .operands = 4 },
    { "QuantizeLinear", read_quantize, .operands = 2 },
    { "com.microsoft.DequantizeLinear", read_dequantize, .operands = 2 },
    { "com.microsoft.QLinearConv", read_qlinear_conv, .operands = 4 },
    { "com.microsoft.QuantizeLinear", read_quantize, .operands = 2 },
    { 0 },
};
