/* Operations of networks whose kernels are tensors: convolutions, pools, attention, batch norm. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"
#include "../convolutional/convolution_internal.h"
#include "../pooling/pooling_internal.h"

#include <math.h>
#include <strings.h>

/* ---- Arguments ---- */

enum { MOST_AXES = 3 };

/* Operand "inputs" as floats (B, …, C) with one to three axes between, which channels first are
 * moved to; NULL with a pending error. */
static CornuTensor *inputs(const CornuOperands *o, bool *first)
{
    CornuTensor *x = cornu__operand_tensor(o, "inputs", 0);
    const char  *format = cornu__argument_text(o, "data_format", "channels_last");
    if (!x) return NULL;
    const CornuType type = cornu_tensor_type(x);
    *first = !strcasecmp(format, "channels_first");
    if (type.shape.rank < 3 || type.shape.rank > 2 + MOST_AXES)
        return cornu__operation_refuse(o, "expected one to three axes between the batch and the "
                                       "channels");
    if (!cornu_dtype_is_float(type.dtype)) x = cornu_op_convert(x, CORNU_F32);
    return *first ? cornu__move_axis(x, 1, type.shape.rank - 1) : x;
}

static CornuTensor *outputs(CornuTensor *y, bool first)
{
    return y && first ? cornu__move_axis(y, cornu_tensor_shape(y).rank - 1, 1) : y;
}

/* One number for all axes, or one for each; false with a pending error. */
static bool extents(const CornuOperands *o, const char *name, int axes, int64_t usual, int64_t *to)
{
    int64_t   numbers[CORNU_MAX_RANK];
    const int count = cornu__argument_list(o, name, -1, numbers);
    if (count == -2) return false;
    for (int i = 0; i < axes; i++)
        to[i] = count == -1 ? usual : numbers[count == 1 ? 0 : i];
    for (int i = 0; i < axes; i++)
        if ((count > 1 && count != axes) || (count != -1 && to[i] < 1))
            return cornu__operation_refuse(o, "expected a positive number, or one for each axis");
    return true;
}

/* "valid", "same" or "causal", in any case; CORNU_CAUSAL only where it may be. */
static bool padding(const CornuOperands *o, CornuPadding *to)
{
    const char *text = cornu__argument_text(o, "padding", "valid");
    *to = !strcasecmp(text, "same") ? CORNU_SAME : CORNU_VALID;
    if (*to == CORNU_SAME || !strcasecmp(text, "valid")) return true;
    cornu__operation_refuse(o, "padding is available as valid and same");
    return false;
}

/* ---- Convolutions ---- */

static CornuTensor *convolved(const CornuOperands *o, CornuTensor *x, CornuTensor *kernel,
                              int64_t groups, const int64_t *strides, const int64_t *dilation)
{
    CornuPadding how;
    if (!x || !kernel || !padding(o, &how)) return NULL;
    const CornuShape shape = cornu_tensor_shape(x), window = cornu_tensor_shape(kernel);
    const int        axes = shape.rank - 2;
    if (cornu__fail_prefix(cornu__kernel_fits(how, axes, window.extent, dilation, shape),
                           cornu_layer_name(o->layer)))
        return cornu__null();
    return cornu__conv(x, kernel, NULL, &(CornuConv){ how, strides, dilation, groups });
}

/* The kernel, in the dtype of x, of as many axes; NULL with a pending error. */
static CornuTensor *kernel_of(const CornuOperands *o, CornuTensor *x, const char *name, int at)
{
    CornuTensor *kernel = x ? cornu__operand_tensor(o, name, at) : NULL;
    if (!kernel) return NULL;
    if (cornu_tensor_shape(kernel).rank != cornu_tensor_shape(x).rank)
        return cornu__operation_refuse(o, "expected a kernel of as many axes as the tensor has");
    return cornu_op_convert(kernel, cornu_tensor_type(x).dtype);
}

static int64_t channels(CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    return shape.extent[shape.rank - 1];
}

CornuTensor *cornu__operation_conv(const CornuOperands *o)
{
    bool         first;
    int64_t      strides[MOST_AXES], dilation[MOST_AXES];
    CornuTensor *x = inputs(o, &first), *kernel = kernel_of(o, x, "kernel", 1);
    if (!kernel) return NULL;
    const CornuShape shape = cornu_tensor_shape(kernel);
    const int64_t    in = shape.extent[shape.rank - 2], F = shape.extent[shape.rank - 1];
    if (channels(x) % in || F % (channels(x) / in))
        return cornu__operation_refuse(o, "the kernel's channels do not divide those of the "
                                       "tensor, or these groups not its filters");
    if (!extents(o, "strides", shape.rank - 2, 1, strides) ||
        !extents(o, "dilation_rate", shape.rank - 2, 1, dilation))
        return NULL;
    return outputs(convolved(o, x, kernel, channels(x) / in, strides, dilation), first);
}

/* The kernel (…, C, M) as (…, 1, C M): a group for each channel. */
static CornuTensor *depthwise(const CornuOperands *o, CornuTensor *x, CornuTensor *kernel)
{
    int64_t strides[MOST_AXES], dilation[MOST_AXES];
    if (!kernel) return NULL;
    CornuShape shape = cornu_tensor_shape(kernel);
    const int  last = shape.rank - 1;
    if (shape.extent[last - 1] != channels(x))
        return cornu__operation_refuse(o, "the kernel has other channels than the tensor");
    shape.extent[last] *= shape.extent[last - 1];
    shape.extent[last - 1] = 1;
    if (!extents(o, "strides", last - 1, 1, strides) ||
        !extents(o, "dilation_rate", last - 1, 1, dilation))
        return NULL;
    return convolved(o, x, cornu_op_reshape(kernel, shape), channels(x), strides, dilation);
}

CornuTensor *cornu__operation_depthwise_conv(const CornuOperands *o)
{
    bool         first;
    CornuTensor *x = inputs(o, &first);
    return outputs(depthwise(o, x, kernel_of(o, x, "kernel", 1)), first);
}

CornuTensor *cornu__operation_separable_conv(const CornuOperands *o)
{
    static const int64_t ones[MOST_AXES] = { 1, 1, 1 };
    bool         first;
    CornuTensor *x = inputs(o, &first);
    x = depthwise(o, x, kernel_of(o, x, "depthwise_kernel", 1));
    CornuTensor *kernel = kernel_of(o, x, "pointwise_kernel", 2);
    if (!kernel) return NULL;
    const CornuConv how = { CORNU_VALID, ones, ones, 1 };
    return outputs(cornu__conv(x, kernel, NULL, &how), first);
}

CornuTensor *cornu__operation_conv_transpose(const CornuOperands *o)
{
    bool         first;
    int64_t      strides[MOST_AXES], dilation[MOST_AXES], more[MOST_AXES] = { 0 };
    int64_t      given[CORNU_MAX_RANK];
    CornuPadding how;
    CornuTensor *x = inputs(o, &first), *kernel = kernel_of(o, x, "kernel", 1);
    if (!kernel || !padding(o, &how)) return NULL;
    const int axes = cornu_tensor_shape(x).rank - 2;
    const int count = cornu__argument_list(o, "output_padding", -1, given);
    if (count == -2 || !extents(o, "strides", axes, 1, strides) ||
        !extents(o, "dilation_rate", axes, 1, dilation))
        return NULL;
    for (int i = 0; i < axes && count > 0; i++) {
        more[i] = given[count == 1 ? 0 : i];
        if (more[i] == 0) more[i] = CORNU_ZERO;
    }
    return outputs(cornu__conv_transpose(x, kernel, NULL,
                                         &(CornuConvTranspose){ how, strides, dilation, more }),
                   first);
}

/* ---- Pools ---- */

static CornuTensor *pooled(const CornuOperands *o, CornuPoolFunction *pool)
{
    bool         first;
    int64_t      size[MOST_AXES], strides[MOST_AXES];
    CornuPadding how;
    CornuTensor *x = inputs(o, &first);
    if (!x || !padding(o, &how)) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        axes = shape.rank - 2;
    if (!extents(o, "pool_size", axes, 1, size)) return NULL;
    for (int i = 0; i < axes; i++) strides[i] = size[i];
    if (cornu__argument(o, "strides", -1) && !extents(o, "strides", axes, 1, strides)) return NULL;
    for (int i = 0; i < axes; i++)
        if (how == CORNU_VALID && size[i] > shape.extent[i + 1])
            return cornu__operation_refuse(o, "the pool is larger than the tensor");
    return outputs(pool(x, how, size, strides), first);
}

CornuTensor *cornu__operation_max_pool(const CornuOperands *o)
{
    return pooled(o, cornu__max_pool);
}

CornuTensor *cornu__operation_average_pool(const CornuOperands *o)
{
    return pooled(o, cornu__average_pool);
}

typedef CornuTensor *Reduce(CornuTensor *x, int64_t axes, bool keep);

/* Each axis to `output_size` elements, from windows that cover it: those of element i of n to m
 * begin at floor(i n / m) and end before ceil((i + 1) n / m). */
static CornuTensor *adapted(const CornuOperands *o, Reduce *reduce)
{
    bool         first;
    int64_t      size[MOST_AXES];
    CornuTensor *x = inputs(o, &first);
    if (!x || !extents(o, "output_size", cornu_tensor_shape(x).rank - 2, 1, size)) return NULL;
    for (int axis = cornu_tensor_shape(x).rank - 2; axis > 0 && x; axis--) {
        const int64_t n = cornu_tensor_shape(x).extent[axis], m = size[axis - 1];
        CornuTensor **parts = cornu__allocate((size_t)m, sizeof *parts);
        if (!parts) return cornu__null();
        for (int64_t i = 0; i < m; i++)
            parts[i] = reduce(cornu__slice_axis(x, axis, i * n / m, ((i + 1) * n + m - 1) / m),
                              INT64_C(1) << axis, true);
        x = parts[m - 1] ? cornu_op_concat(parts, (int)m, axis) : NULL;
        cornu__release(parts);
    }
    return outputs(x, first);
}

CornuTensor *cornu__operation_adaptive_average_pool(const CornuOperands *o)
{
    return adapted(o, cornu_op_reduce_mean);
}

CornuTensor *cornu__operation_adaptive_max_pool(const CornuOperands *o)
{
    return adapted(o, cornu_op_reduce_max);
}

/* ---- Batch normalization ---- */

/* A vector of the channels, along the axis of x, in f32; NULL if it is not given, or fails. */
static CornuTensor *along(const CornuOperands *o, const char *name, int at, CornuShape shape,
                          int axis)
{
    if (!cornu__argument(o, name, at)) return NULL;
    CornuTensor *v = cornu_op_convert(cornu__operand_tensor(o, name, at), CORNU_F32);
    CornuShape   to = { .rank = shape.rank };
    for (int i = 0; i < shape.rank; i++) to.extent[i] = i == axis ? shape.extent[i] : 1;
    return v ? cornu_op_reshape(v, to) : NULL;
}

/* (x - mean) / sqrt(variance + epsilon) scale + offset */
CornuTensor *cornu__operation_batch_normalization(const CornuOperands *o)
{
    CornuTensor *given = cornu__operand_float(o), *x = cornu_op_convert(given, CORNU_F32);
    const double epsilon = cornu__argument_number(o, "epsilon", 1e-3);
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        axis = cornu__argument_axis(o, "axis", shape.rank, -1);
    if (axis < 0) return NULL;
    CornuTensor *mean = along(o, "mean", 1, shape, axis);
    CornuTensor *variance = mean ? along(o, "variance", 2, shape, axis) : NULL;
    if (!variance) return NULL;
    CornuTensor *offset = along(o, "offset", 3, shape, axis);
    CornuTensor *scale = along(o, "scale", 4, shape, axis);
    if (cornu_error_pending()) return NULL;
    CornuTensor *factor = cornu_op_rsqrt(cornu_op_shift(variance, epsilon));
    if (scale) factor = cornu_op_multiply(factor, scale);
    x = cornu_op_multiply(cornu_op_subtract(x, mean), factor);
    if (offset) x = cornu_op_add(x, offset);
    return cornu_op_convert(x, cornu_tensor_type(given).dtype);
}

/* ---- Attention ---- */

/* With a bias, which the op does not add: softmax of q k' + bias, over all heads at once. */
static CornuTensor *biased_attention(CornuTensor *q, CornuTensor *k, CornuTensor *v,
                                     CornuTensor *bias, const CornuAttention *how)
{
    q = cornu__move_axis(q, 2, 1);
    k = cornu__move_axis(k, 2, 1);
    v = cornu__move_axis(v, 2, 1);
    CornuTensor *logits = cornu_op_matmul_transposed(q, false, k, true);
    if (!logits) return NULL;
    logits = cornu_op_add(logits, cornu_op_convert(bias, cornu_tensor_type(logits).dtype));
    CornuTensor *least = cornu__like(logits, -INFINITY);
    if (how->mask) {
        logits = cornu_op_select(how->mask, logits, cornu__like(logits, -1e30));
    }
    if (how->causal && logits) {
        const CornuShape s = cornu_tensor_shape(logits);
        const CornuType  type = cornu_type(CORNU_I32, s.extent[2], s.extent[3]);
        CornuGraph      *graph = cornu_tensor_graph(logits);
        CornuTensor     *past = cornu_op_compare(cornu_op_iota(graph, type, 1), CORNU_LESS_EQUAL,
                                                 cornu_op_iota(graph, type, 0));
        logits = cornu_op_select(past, logits, least);
    }
    CornuTensor *y = cornu_op_matmul(cornu_op_softmax(logits), v);
    return y ? cornu__move_axis(y, 1, 2) : NULL;
}

CornuTensor *cornu__operation_dot_product_attention(const CornuOperands *o)
{
    CornuOperand   operands[3];
    CornuTensor   *x[3], *bias = NULL;
    CornuAttention how = { .causal = cornu__argument_flag(o, "is_causal") };
    cornu__argument_flag(o, "flash_attention");   /* which kernel computes is the device's choice */
    if (!cornu__operand(o, "query", 0, &operands[0]) ||
        !cornu__operand(o, "key", 1, &operands[1]) ||
        !cornu__operand(o, "value", 2, &operands[2]) ||
        !cornu__operands_join(o, operands, 3, true, x))
        return NULL;
    const CornuShape q = cornu_tensor_shape(x[0]);
    if (q.rank != 4 || cornu_tensor_shape(x[1]).rank != 4 || cornu_tensor_shape(x[2]).rank != 4)
        return cornu__operation_refuse(o, "expected tensors (batch, time, heads, depth)");
    const json_t *scale = cornu__argument(o, "scale", 5);
    if (scale && !json_is_number(scale))
        return cornu__operation_refuse(o, "scale is available as a number");
    if (cornu__argument(o, "mask", 4)) {
        how.mask = cornu_op_convert(cornu__operand_tensor(o, "mask", 4), CORNU_BOOL);
        while (how.mask && cornu_tensor_shape(how.mask).rank < 4)
            how.mask = cornu__add_axis(how.mask, 0);
        if (!how.mask) return NULL;
    }
    if (cornu__argument(o, "bias", 3) && !(bias = cornu__operand_tensor(o, "bias", 3))) return NULL;
    const double factor = scale ? json_number_value(scale) : 1.0 / sqrt((double)q.extent[3]);
    x[0] = cornu_op_scale(x[0], factor);
    return bias ? biased_attention(x[0], x[1], x[2], bias, &how)
                : cornu_op_attention(x[0], x[1], x[2], &how, NULL);
}
