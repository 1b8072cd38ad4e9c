/* What rules of operators read and set: onnx_internal.h. */
#include "onnx_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../formats/reorder_internal.h"

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

/* ---- Quantized values: real = scale (stored - zero_point) ---- */

bool cornu__lite_onnx_quantized(const CornuLiteTensor *tensor)
{
    return tensor->quantization.count &&
           (tensor->dtype == CORNU_LITE_I8 || tensor->dtype == CORNU_LITE_U8 ||
            (tensor->dtype == CORNU_LITE_I32 && tensor->data));
}

int cornu__lite_onnx_stored(CornuLiteDtype dtype)
{
    return dtype == CORNU_LITE_I8   ? CORNU_ONNX_INT8
         : dtype == CORNU_LITE_U8   ? CORNU_ONNX_UINT8
         : dtype == CORNU_LITE_F32  ? CORNU_ONNX_FLOAT : CORNU_ONNX_INT32;
}

/* The zero points as elements of the tensor; biases have none but 0. */
static int zero_points(CornuOnnx *to, const CornuLiteTensor *tensor, CornuShape shape)
{
    const CornuLiteQuantization *q = &tensor->quantization;
    const size_t size = cornu__lite_dtype_size(tensor->dtype);
    char        *bytes = cornu__allocate((size_t)q->count, size);
    if (!bytes) to->nodes.failed = true;
    for (int i = 0; bytes && i < q->count; i++)
        memcpy(bytes + (size_t)i * size, &q->zero_points[i], size);   /* little-endian */
    const int value = cornu__onnx_raw(to, cornu__lite_onnx_stored(tensor->dtype), shape, bytes,
                                      bytes ? (size_t)q->count * size : 0);
    cornu__release(bytes);
    return value;
}

/* QuantizeLinear or DequantizeLinear of x by the scales of the tensor, which go along this axis. */
static int by_scales(CornuOnnx *to, const char *operator, int x, const CornuLiteTensor *tensor,
                     int axis)
{
    const CornuLiteQuantization *q = &tensor->quantization;
    const CornuShape         shape = q->count > 1 ? cornu_shape(q->count) : (CornuShape){ 0 };
    const CornuOnnxAttribute along = { .name = "axis", .whole = axis };
    int                      in[] = { x, 0, 0 };
    in[1] = cornu__onnx_raw(to, CORNU_ONNX_FLOAT, shape, q->scales,
                            (size_t)q->count * sizeof *q->scales);
    in[2] = zero_points(to, tensor, shape);
    if (q->count > 1) return cornu__onnx_node(to, operator, in, 3, &along, 1, 1);
    return cornu__onnx_elementwise(to, operator, in, 3, NULL, 0);
}

int cornu__lite_dequantize(CornuOnnx *to, const CornuLiteTensor *tensor, int x)
{
    return by_scales(to, "DequantizeLinear", x, tensor, tensor->quantization.axis);
}

/* ---- Constants ---- */

/* The number of element i. */
static double element(CornuLiteDtype dtype, const void *data, int64_t i)
{
    int32_t narrow;
    int64_t wide;
    float   number;
    switch (dtype) {
    case CORNU_LITE_I32:
        memcpy(&narrow, (const char *)data + 4 * i, sizeof narrow);
        return narrow;
    case CORNU_LITE_I64:
        memcpy(&wide, (const char *)data + 8 * i, sizeof wide);
        return (double)wide;
    case CORNU_LITE_F16:  return (double)cornu_f16_to_float(((const uint16_t *)data)[i]);
    case CORNU_LITE_BOOL: return ((const unsigned char *)data)[i] != 0;
    default:
        memcpy(&number, (const char *)data + 4 * i, sizeof number);
        return (double)number;
    }
}

/* The elements with axes in `order`, of this shape then; the caller releases them. */
static void *reordered(const CornuLiteTensor *tensor, const int64_t *order, CornuShape *shape)
{
    int   axes[CORNU_MAX_RANK];
    void *made = cornu__allocate(tensor->bytes, 1);
    *shape = tensor->shape;
    for (int i = 0; i < shape->rank; i++) {
        axes[i] = (int)order[i];
        shape->extent[i] = tensor->shape.extent[order[i]];
    }
    if (made)
        cornu__reorder(tensor->data, tensor->shape, cornu__lite_dtype_size(tensor->dtype), axes,
                       made);
    return made;
}

/* Elements of the tensor's type as a constant of ONNX'. */
static int converted(CornuOnnx *to, const CornuLiteTensor *tensor, const void *data,
                     CornuShape shape)
{
    const CornuType type = cornu_type_from(cornu__lite_onnx_dtype(tensor->dtype), shape);
    CornuArray      made = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!made.data) {
        to->nodes.failed = true;
        return CORNU_ONNX_NONE;
    }
    for (int64_t i = 0; i < cornu_shape_count(shape); i++)
        cornu_array_set(made, i, element(tensor->dtype, data, i));
    const int value = cornu__onnx_constant(to, made);
    cornu__release(made.data);
    return value;
}

/* A constant, with its axes in `order`; NULL for their own. */
static int constant_of(const CornuLiteOnnx *of, const CornuLiteTensor *tensor,
                       const int64_t *order)
{
    CornuShape shape = tensor->shape;
    int        axis = tensor->quantization.axis, value;
    void      *turned = order ? reordered(tensor, order, &shape) : NULL;
    if (order && !turned) {
        of->to->nodes.failed = true;
        return CORNU_ONNX_NONE;
    }
    const void *data = order ? turned : tensor->data;
    if (cornu__lite_onnx_quantized(tensor)) {
        for (int i = shape.rank - 1; order && i >= 0; i--)
            if (order[i] == tensor->quantization.axis) axis = i;
        value = cornu__onnx_raw(of->to, cornu__lite_onnx_stored(tensor->dtype), shape, data,
                                tensor->bytes);
        value = by_scales(of->to, "DequantizeLinear", value, tensor, axis);
    } else if (tensor->dtype == CORNU_LITE_F32) {
        value = cornu__onnx_raw(of->to, CORNU_ONNX_FLOAT, shape, data, tensor->bytes);
    } else {
        value = converted(of->to, tensor, data, shape);
    }
    cornu__release(turned);
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
    for (int k = 0; k < *count; k++)
        list[k] = (int64_t)element(tensor->dtype, tensor->data, k);
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

/* What is quantized is so at once: rules read it dequantized. */
CornuStatus cornu__lite_give_at(const CornuLiteStepOnnx *step, int i, int y)
{
    const int              number = step->op->out[i];
    const CornuLiteTensor *tensor = &step->of->graph->tensors[number];
    if (cornu__lite_onnx_quantized(tensor)) {
        y = by_scales(step->to, "QuantizeLinear", y, tensor, tensor->quantization.axis);
        step->of->quantized[number] = y;
        y = cornu__lite_dequantize(step->to, tensor, y);
    }
    step->of->values[number] = y;
    return CORNU_OK;
}

CornuStatus cornu__lite_give(const CornuLiteStepOnnx *step, int y)
{
    return cornu__lite_give_at(step, 0, fused(step->to, step->op->options.fused_activation, y));
}
