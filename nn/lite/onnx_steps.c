/* What rules of operators read and set: onnx_internal.h. */
#include "onnx_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"

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

/* The number of element i of a constant. */
static double element(const CornuLiteTensor *tensor, int64_t i)
{
    const CornuArray array = { .data = tensor->data };
    int32_t          narrow;
    int64_t          wide;
    float            number;
    switch (tensor->dtype) {
    case CORNU_LITE_I32:
        memcpy(&narrow, (const char *)array.data + 4 * i, sizeof narrow);
        return narrow;
    case CORNU_LITE_I64:
        memcpy(&wide, (const char *)array.data + 8 * i, sizeof wide);
        return (double)wide;
    case CORNU_LITE_F16: return (double)cornu_f16_to_float(((const uint16_t *)array.data)[i]);
    case CORNU_LITE_BOOL: return ((const unsigned char *)array.data)[i] != 0;
    default:
        memcpy(&number, (const char *)array.data + 4 * i, sizeof number);
        return (double)number;
    }
}

CornuDtype cornu__lite_onnx_dtype(CornuLiteDtype dtype)
{
    return dtype == CORNU_LITE_I32 || dtype == CORNU_LITE_I64 ? CORNU_I64
         : dtype == CORNU_LITE_BOOL                           ? CORNU_BOOL : CORNU_F32;
}

/* A constant, with its axes in `order`; NULL for their own. */
static int constant_of(const CornuLiteOnnx *of, const CornuLiteTensor *tensor,
                       const int64_t *order)
{
    const int64_t count = cornu_shape_count(tensor->shape);
    const int     rank = tensor->shape.rank;
    CornuType     type = cornu_type_from(cornu__lite_onnx_dtype(tensor->dtype), tensor->shape);
    int64_t       strides[CORNU_MAX_RANK], at[CORNU_MAX_RANK] = { 0 }, stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= tensor->shape.extent[i];
    }
    for (int i = 0; i < rank && order; i++) type.shape.extent[i] = tensor->shape.extent[order[i]];
    if (!order && tensor->dtype == CORNU_LITE_F32)
        return cornu__onnx_constant(of->to, cornu_array_from(tensor->data, type));
    CornuArray made = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!made.data) {
        of->to->nodes.failed = true;
        return CORNU_ONNX_NONE;
    }
    for (int64_t n = 0; n < count; n++) {
        int64_t from = 0;
        for (int i = 0; i < rank; i++) from += at[i] * strides[order ? order[i] : i];
        cornu_array_set(made, n, element(tensor, from));
        for (int i = rank - 1; i >= 0 && ++at[i] == type.shape.extent[i]; i--) at[i] = 0;
    }
    const int value = cornu__onnx_constant(of->to, made);
    cornu__release(made.data);
    return value;
}

int cornu__lite_value(const CornuLiteStepOnnx *step, int i)
{
    const CornuLiteTensor *tensor = cornu__lite_operand(step, i);
    if (!tensor) return CORNU_ONNX_NONE;
    int *value = &step->of->values[step->op->in[i]];
    if (!*value && tensor->data) *value = constant_of(step->of, tensor, NULL);
    return *value;
}

int cornu__lite_turned(const CornuLiteStepOnnx *step, int i, const int64_t *order)
{
    const CornuLiteTensor *tensor = cornu__lite_operand(step, i);
    if (tensor->data) return constant_of(step->of, tensor, order);
    return cornu__onnx_transpose(step->to, cornu__lite_value(step, i), order, tensor->shape.rank);
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
    for (int k = 0; k < *count; k++) list[k] = (int64_t)element(tensor, k);
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

CornuStatus cornu__lite_expect(const CornuLiteStepOnnx *step, int operands, int rank)
{
    for (int i = 0; i < operands; i++)
        if (!cornu__lite_operand(step, i))
            return cornu__fail(CORNU_ERR_FORMAT, "operand %d is missing", i);
    for (int i = 0; i < operands; i++)
        if (cornu__lite_operand(step, i)->variable)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "operand %d is a variable", i);
    if (rank >= 0 && cornu__lite_operand(step, 0)->shape.rank != rank)
        return cornu__fail(CORNU_ERR_FORMAT, "its operand has rank %d, expected %d",
                           cornu__lite_operand(step, 0)->shape.rank, rank);
    return CORNU_OK;
}

/* ---- Results ---- */

static int fused(CornuOnnx *to, CornuLiteActivation activation, int y)
{
    switch (activation) {
    case CORNU_LITE_LINEAR:     break;
    case CORNU_LITE_FUSED_RELU: return one(to, "Relu", y);
    case CORNU_LITE_FUSED_RELU_N1_TO_1:
        return cornu__onnx_activate(to, CORNU_HARD_TANH, y);
    case CORNU_LITE_FUSED_RELU6: return cornu__onnx_activate(to, CORNU_RELU6, y);
    case CORNU_LITE_FUSED_TANH:  return one(to, "Tanh", y);
    }
    return y;
}

CornuStatus cornu__lite_give(const CornuLiteStepOnnx *step, int y)
{
    step->of->values[step->op->out[0]] =
        fused(step->to, step->op->options.fused_activation, y);
    return CORNU_OK;
}
