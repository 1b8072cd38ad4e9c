/* What rules of operators read and set: onnx_internal.h. */
#include "onnx_internal.h"

#include <string.h>

/* ---- Operands ---- */

const CornuLiteTensor *cornu__lite_operand(const CornuLiteStepOnnx *step, int i)
{
    const bool given = i < step->op->in_count && step->op->in[i] >= 0;
    return given ? &step->of->graph->tensors[step->op->in[i]] : NULL;
}

const CornuLiteTensor *cornu__lite_result(const CornuLiteStepOnnx *step)
{
    return &step->of->graph->tensors[step->op->out[0]];
}

CornuDtype cornu__lite_onnx_dtype(CornuLiteDtype dtype)
{
    return dtype == CORNU_LITE_I32 || dtype == CORNU_LITE_I64 ? CORNU_I64
         : dtype == CORNU_LITE_BOOL                           ? CORNU_BOOL : CORNU_F32;
}

int cornu__lite_value_of(const CornuLiteOnnx *of, int tensor)
{
    int *value = &of->values[tensor];
    if (!*value && of->graph->tensors[tensor].data)
        *value = cornu__lite_constant_of(of, &of->graph->tensors[tensor], NULL);
    return *value;
}

int cornu__lite_value(const CornuLiteStepOnnx *step, int i)
{
    if (!cornu__lite_operand(step, i)) return CORNU_ONNX_NONE;
    return cornu__lite_value_of(step->of, step->op->in[i]);
}

int cornu__lite_turned(const CornuLiteStepOnnx *step, int i, const int64_t *order)
{
    const CornuLiteTensor *tensor = cornu__lite_operand(step, i);
    if (!tensor) return CORNU_ONNX_NONE;
    if (tensor->data) return cornu__lite_constant_of(step->of, tensor, order);
    return cornu__onnx_transpose(step->to, cornu__lite_value(step, i), order, tensor->shape.rank);
}

int64_t cornu__lite_whole_at(CornuLiteDtype dtype, const void *data, int64_t i)
{
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, (const char *)data + 4 * i, sizeof narrow);
    if (dtype == CORNU_LITE_I32) return narrow;
    memcpy(&wide, (const char *)data + 8 * i, sizeof wide);
    return wide;
}

CornuStatus cornu__lite_list(const CornuLiteStepOnnx *step, int i, int most, int64_t *list,
                             int *count)
{
    const CornuLiteTensor *tensor = cornu__lite_operand(step, i);
    if (!tensor || !tensor->data ||
        (tensor->dtype != CORNU_LITE_I32 && tensor->dtype != CORNU_LITE_I64))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "its operand %d is not a constant of integers",
                           i);
    const int64_t given = cornu_shape_count(tensor->shape);
    if (given > most)
        return cornu__fail(CORNU_ERR_FORMAT, "its operand %d has %lld integers, expected at most "
                           "%d", i, (long long)given, most);
    *count = (int)given;
    for (int k = 0; k < *count; k++)
        list[k] = cornu__lite_whole_at(tensor->dtype, tensor->data, k);
    return CORNU_OK;
}

CornuStatus cornu__lite_axis(int64_t given, int rank, int *axis)
{
    *axis = (int)(given < 0 ? given + rank : given);
    if (given >= -rank && given < rank) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "axis %lld of a tensor of rank %d", (long long)given,
                       rank);
}

CornuStatus cornu__lite_axes(const CornuLiteStepOnnx *step, int i, int rank, int64_t *axes)
{
    int64_t list[CORNU_MAX_RANK];
    int     count, axis;
    *axes = 0;
    CORNU__TRY(cornu__lite_list(step, i, CORNU_MAX_RANK, list, &count));
    for (int k = 0; k < count; k++) {
        CORNU__TRY(cornu__lite_axis(list[k], rank, &axis));
        *axes |= INT64_C(1) << axis;
    }
    return CORNU_OK;
}

CornuStatus cornu__lite_known_axis(const CornuLiteStepOnnx *step, int i, int rank, int *axis)
{
    int64_t given;
    int     count;
    CORNU__TRY(cornu__lite_list(step, i, 1, &given, &count));
    return cornu__lite_axis(count ? given : 0, rank, axis);
}

CornuStatus cornu__lite_expect(const CornuLiteStepOnnx *step, int operands)
{
    for (int i = 0; i < operands; i++)
        if (!cornu__lite_operand(step, i))
            return cornu__fail(CORNU_ERR_FORMAT, "operand %d is missing", i);
    for (int i = 0; i < operands; i++)
        if (cornu__lite_operand(step, i)->variable)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "operand %d is a variable", i);
    return CORNU_OK;
}

/* ---- Results ---- */

static int fused(CornuOnnx *to, CornuLiteActivation activation, int y)
{
    switch (activation) {
    case CORNU_LITE_LINEAR:     break;
    case CORNU_LITE_FUSED_RELU: return one(to, "Relu", y);
    case CORNU_LITE_FUSED_RELU_N1_TO_1: return cornu__onnx_clip(to, y, -1.0, 1.0);
    case CORNU_LITE_FUSED_RELU6: return cornu__onnx_clip(to, y, 0.0, 6.0);
    case CORNU_LITE_FUSED_TANH:  return one(to, "Tanh", y);
    }
    return y;
}

/* What is quantized is so at once: rules read it dequantized. */
CornuStatus cornu__lite_give_at(const CornuLiteStepOnnx *step, int i, int y)
{
    const int              number = step->op->out[i];
    const CornuLiteTensor *tensor = &step->of->graph->tensors[number];
    if (cornu__lite_onnx_quantized(tensor)) {
        y = cornu__lite_quantize(step->of, tensor, y);
        step->of->quantized[number] = y;
        y = cornu__lite_dequantize(step->of, tensor, y);
    }
    step->of->values[number] = y;
    return CORNU_OK;
}

CornuStatus cornu__lite_give_stored(const CornuLiteStepOnnx *step, int stored)
{
    const int number = step->op->out[0];
    step->of->quantized[number] = stored;
    step->of->values[number] = cornu__lite_dequantize(step->of, &step->of->graph->tensors[number],
                                                      stored);
    return CORNU_OK;
}

CornuStatus cornu__lite_give(const CornuLiteStepOnnx *step, int y)
{
    return cornu__lite_give_at(step, 0, fused(step->to, step->op->options.fused_activation, y));
}
