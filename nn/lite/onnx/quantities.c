/* Constants, and quantized values: real = scale (stored - zero_point). */
#include "onnx_internal.h"

#include <math.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../formats/reorder_internal.h"

bool cornu__lite_onnx_quantized(const CornuLiteTensor *tensor)
{
    return tensor->quantization.count &&
           (tensor->dtype == CORNU_LITE_I8 || tensor->dtype == CORNU_LITE_U8 ||
            tensor->dtype == CORNU_LITE_I16 ||
            ((tensor->dtype == CORNU_LITE_I32 || tensor->dtype == CORNU_LITE_I64) &&
             tensor->data));
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

/* The stored number of a value on the grid of the tensor, whose unit is `scale`; with `first` the
 * value is multiplied by it and rounded before. */
static int on_grid(const CornuLiteOnnx *of, const CornuLiteTensor *tensor, int x, double scale,
                   double first)
{
    const int64_t most = tensor->dtype == CORNU_LITE_U8  ? UINT8_MAX
                       : tensor->dtype == CORNU_LITE_I16 ? INT16_MAX : INT8_MAX;
    const int64_t least = tensor->dtype == CORNU_LITE_U8 ? 0 : -most - 1;
    const CornuOnnxAttribute attributes[] = {
        { .name = "scale", .numbers = &scale },
        { .name = "zero", .whole = tensor->quantization.zero_points[0] },
        { .name = "low", .whole = least }, { .name = "high", .whole = most },
        { .name = "stored", .whole = 1 }, { .name = "first", .numbers = &first },
    };
    return cornu__onnx_elementwise(of->to, "FakeQuantize", &x, 1, attributes, 5 + (first > 0.0));
}

/* Between integers LiteRT multiplies by a number from 1/2 to 1, rounds, and then shifts and rounds
 * once more. */
int cornu__lite_requantize(const CornuLiteOnnx *of, const CornuLiteTensor *from,
                           const CornuLiteTensor *to, int stored)
{
    const CornuLiteQuantization *a = &from->quantization;
    int          power;
    const double factor = frexp((double)a->scales[0] / (double)to->quantization.scales[0], &power);
    const int    x = a->zero_points[0] ? shifted(of->to, stored, -(double)a->zero_points[0])
                                       : stored;
    if (power > 0) return on_grid(of, to, x, 1.0, ldexp(factor, power));
    return on_grid(of, to, x, ldexp(1.0, -power), factor);
}

int cornu__lite_quantize(const CornuLiteOnnx *of, const CornuLiteTensor *tensor, int x)
{
    if (of->loads) return on_grid(of, tensor, x, (double)tensor->quantization.scales[0], 0.0);
    return by_scales(of->to, "QuantizeLinear", x, tensor, tensor->quantization.axis);
}

int cornu__lite_dequantize(const CornuLiteOnnx *of, const CornuLiteTensor *tensor, int x)
{
    const CornuLiteQuantization *q = &tensor->quantization;
    if (!of->loads) return by_scales(of->to, "DequantizeLinear", x, tensor, q->axis);
    if (q->zero_points[0]) x = shifted(of->to, x, -(double)q->zero_points[0]);
    return scaled(of->to, x, (double)q->scales[0]);
}

/* ---- Constants ---- */

/* The number of element i. */
static double element(CornuLiteDtype dtype, const void *data, int64_t i)
{
    int16_t half;
    float   number;
    switch (dtype) {
    case CORNU_LITE_I32:
    case CORNU_LITE_I64: return (double)cornu__lite_whole_at(dtype, data, i);
    case CORNU_LITE_I8:   return ((const int8_t *)data)[i];
    case CORNU_LITE_U8:   return ((const uint8_t *)data)[i];
    case CORNU_LITE_I16:
        memcpy(&half, (const char *)data + 2 * i, sizeof half);
        return half;
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

/* A quantized constant by its real numbers. */
static int real_constant(const CornuLiteOnnx *of, const CornuLiteTensor *tensor, const void *data,
                         CornuShape shape, int axis)
{
    const CornuLiteQuantization *q = &tensor->quantization;
    const int64_t                count = cornu_shape_count(shape);
    int64_t                      inner = 1;
    float                       *to = cornu__onnx_room(of->to, shape);
    if (!to) return CORNU_ONNX_NONE;
    for (int i = axis + 1; i < shape.rank; i++) inner *= shape.extent[i];
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = q->count > 1 ? i / inner % q->count : 0;
        to[i] = (float)((element(tensor->dtype, data, i) - (double)q->zero_points[k]) *
                        (double)q->scales[k]);
    }
    const int value = cornu__onnx_constant(
        of->to, cornu_array_from(to, cornu_type_from(CORNU_F32, shape)));
    cornu__release(to);
    return value;
}

int cornu__lite_constant_of(const CornuLiteOnnx *of, const CornuLiteTensor *tensor,
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
        if (of->loads) {
            value = real_constant(of, tensor, data, shape, axis);
        } else {
            value = cornu__onnx_raw(of->to, cornu__lite_onnx_stored(tensor->dtype), shape, data,
                                    tensor->bytes);
            value = by_scales(of->to, "DequantizeLinear", value, tensor, axis);
        }
    } else if (tensor->dtype == CORNU_LITE_F32) {
        value = cornu__onnx_raw(of->to, CORNU_ONNX_FLOAT, shape, data, tensor->bytes);
    } else {
        value = converted(of->to, tensor, data, shape);
    }
    cornu__release(turned);
    return value;
}
