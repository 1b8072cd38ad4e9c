/*
 * Source: coral.ai/docs/edgetpu/models-intro, "Supported operations" with their limitations, and
 * "Model requirements".
 */
#include "cost.h"

#include "int8/scales.h"

/* A product of each element of y by each of its filter; a transposed one of each element of x. */
static int64_t multiply_adds(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    CornuLiteProduct product;
    if (!cornu__lite_product(op->code, &product)) return 0;
    const CornuLiteTensor *weights = cornu__lite_in(graph, op, product.weights);
    if (!weights) return 0;
    const int64_t filters = weights->shape.extent[product.axis];
    const int64_t taps = cornu__lite_count(weights->shape, 1) / (filters > 0 ? filters : 1);
    if (op->code == CORNU_LITE_TRANSPOSE_CONV) {
        const CornuLiteTensor *x = cornu__lite_in(graph, op, product.x);
        const int64_t channels = x->shape.extent[3] > 0 ? x->shape.extent[3] : 1;
        return cornu__lite_count(x->shape, 1) / channels * filters * taps;
    }
    return cornu__lite_count(graph->tensors[op->out[0]].shape, 1) * taps;
}

static int64_t parameter_bytes(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    CornuLiteProduct product;
    size_t           bytes = 0;
    if (!cornu__lite_product(op->code, &product)) return 0;
    for (int i = product.weights; i < op->in_count; i++)
        if (cornu__lite_in(graph, op, i)) bytes += cornu__lite_in(graph, op, i)->bytes;
    return (int64_t)bytes;
}

/* More than three axes have an extent above 1, the batch aside. */
static bool is_deep(const CornuLiteTensor *tensor)
{
    int wide = 0;
    for (int d = 1; d < tensor->shape.rank; d++) wide += tensor->shape.extent[d] > 1;
    return wide > 3;
}

static const char *why_not_pool(const CornuLiteOperator *op)
{
    return op->options.fused_activation ? "has a fused activation" : NULL;
}

static const char *why_not_conv(const CornuLiteOperator *op)
{
    return op->options.dilation_h != op->options.dilation_w
           ? "has another dilation in y than in x" : NULL;
}

static const char *why_not_slice(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    const CornuLiteTensor *strides = cornu__lite_in(graph, op, 3);
    if (!strides || !strides->data || strides->dtype != CORNU_LITE_I32)
        return "has strides that are computed";
    for (size_t i = 0; i < strides->bytes / sizeof(int32_t); i++)
        if (((const int32_t *)strides->data)[i] != 1) return "has a stride other than 1";
    return NULL;
}

static const char *why_not_softmax(const CornuLiteTensor *x)
{
    for (int d = 1; d < x->shape.rank - 1; d++)
        if (x->shape.extent[d] != 1) return "has more than one row";
    return x->shape.extent[x->shape.rank - 1] > 16000 ? "has more than 16,000 elements" : NULL;
}

/* NULL for what the compiler maps. */
static const char *why_not(const CornuLiteGraph *graph, const CornuLiteOperator *op)
{
    if (is_deep(&graph->tensors[op->out[0]])) return "has a result of more than three axes";
    switch (op->code) {
    case CORNU_LITE_CONV_2D:
    case CORNU_LITE_DEPTHWISE_CONV_2D: return why_not_conv(op);
    case CORNU_LITE_MAX_POOL_2D:
    case CORNU_LITE_AVERAGE_POOL_2D:
    case CORNU_LITE_CONCATENATION:     return why_not_pool(op);
    case CORNU_LITE_STRIDED_SLICE:     return why_not_slice(graph, op);
    case CORNU_LITE_SOFTMAX:           return why_not_softmax(cornu__lite_in(graph, op, 0));
    case CORNU_LITE_FULLY_CONNECTED:
    case CORNU_LITE_TRANSPOSE_CONV:
    case CORNU_LITE_ADD:
    case CORNU_LITE_SUB:
    case CORNU_LITE_MUL:
    case CORNU_LITE_MAXIMUM:
    case CORNU_LITE_MINIMUM:
    case CORNU_LITE_MEAN:
    case CORNU_LITE_REDUCE_MAX:
    case CORNU_LITE_PRELU:
    case CORNU_LITE_PAD:
    case CORNU_LITE_RESHAPE:
    case CORNU_LITE_SQUEEZE:
    case CORNU_LITE_EXPAND_DIMS:
    case CORNU_LITE_TRANSPOSE:
    case CORNU_LITE_RESIZE_NEAREST_NEIGHBOR:
    case CORNU_LITE_QUANTIZE:
    case CORNU_LITE_LOGISTIC:
    case CORNU_LITE_TANH:
    case CORNU_LITE_RELU:
    case CORNU_LITE_RELU6:
    case CORNU_LITE_RELU_N1_TO_1:      return NULL;
    default:                           return "is not among the operators of the Edge TPU";
    }
}

CornuEdgeTpuOperator cornu__lite_edgetpu_operator(const CornuLiteGraph *graph, int o)
{
    const CornuLiteOperator *op = &graph->operators[o];
    const char              *why = why_not(graph, op);
    return (CornuEdgeTpuOperator){
        .name = cornu__lite_code_name(op->code), .multiply_adds = multiply_adds(graph, op),
        .parameter_bytes = parameter_bytes(graph, op), .mapped = !why, .why = why
    };
}
