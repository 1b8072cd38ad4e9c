#include "record.h"

#include <math.h>
#include <stdio.h>

#include "../../../device/status_internal.h"

/* What a rule reads: an operator with its operands. */
typedef struct {
    const CornuLiteGraph    *graph;
    const CornuLiteOperator *op;
    int64_t                  batch;
    CornuTensor            **tensors;
} Call;

static const CornuLiteTensor *about(const Call *call, int i)
{
    const int t = i < call->op->in_count ? call->op->in[i] : CORNU_LITE_NONE;
    return t == CORNU_LITE_NONE ? NULL : &call->graph->tensors[t];
}

static CornuTensor *in(const Call *call, int i)
{
    return about(call, i) ? call->tensors[call->op->in[i]] : NULL;
}

static CornuShape known(CornuShape shape, int64_t batch)
{
    for (int d = 0; d < shape.rank; d++)
        if (shape.extent[d] == CORNU_NONE) shape.extent[d] = batch;
    return shape;
}

static CornuShape shape_of(const Call *call, int i) { return cornu_tensor_type(in(call, i)).shape; }

static CornuShape result(const Call *call)
{
    return known(call->graph->tensors[call->op->out[0]].shape, call->batch);
}

/* A constant operand of integers; NULL after a failure. */
static const int32_t *integers(const Call *call, int i, int count)
{
    const CornuLiteTensor *tensor = about(call, i);
    if (tensor && tensor->dtype == CORNU_LITE_I32 && tensor->data &&
        (count < 0 || tensor->bytes == (size_t)count * sizeof(int32_t)))
        return tensor->data;
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "input %d: expected %d constant i32", i, count);
}

static CornuTensor *activated(const Call *call, CornuTensor *x)
{
    switch (call->op->options.fused_activation) {
    case CORNU_LITE_LINEAR:             return x;
    case CORNU_LITE_FUSED_RELU:         return cornu_op_relu(x);
    case CORNU_LITE_FUSED_RELU_N1_TO_1: return cornu_op_clip(x, -1.0, 1.0);
    case CORNU_LITE_FUSED_RELU6:        return cornu_op_clip(x, 0.0, 6.0);
    case CORNU_LITE_FUSED_TANH:         return cornu_op_tanh(x);
    }
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "fused activation %d",
                            (int)call->op->options.fused_activation);
}

static CornuTensor *biased(const Call *call, CornuTensor *y, int bias)
{
    return activated(call, about(call, bias) ? cornu_op_add(y, in(call, bias)) : y);
}

/* ---- Products ---- */

static int64_t positive(int32_t option) { return option > 0 ? option : 1; }

/* Padding in front and behind; LiteRT puts the odd one behind. */
static void pad(int64_t size, int64_t out, int64_t window, int64_t stride, int64_t dilation,
                int64_t *low, int64_t *high)
{
    const int64_t total = (out - 1) * stride + (window - 1) * dilation + 1 - size;
    *low = total > 0 ? total / 2 : 0;
    *high = total > 0 ? total - total / 2 : 0;
}

static CornuConvolution convolution(const Call *call, CornuShape from, CornuShape to, int64_t h,
                                    int64_t w)
{
    const CornuLiteOptions *o = &call->op->options;
    CornuConvolution c = {
        .strides = { positive(o->stride_h), positive(o->stride_w) },
        .dilation = { positive(o->dilation_h), positive(o->dilation_w) }
    };
    pad(from.extent[1], to.extent[1], h, c.strides[0], c.dilation[0], &c.low[0], &c.high[0]);
    pad(from.extent[2], to.extent[2], w, c.strides[1], c.dilation[1], &c.low[1], &c.high[1]);
    return c;
}

/* (F, h, w, C) to (h, w, C, F) */
static CornuTensor *conv2d(const Call *call)
{
    const CornuShape filter = shape_of(call, 1), x = shape_of(call, 0);
    CornuConvolution c = convolution(call, x, result(call), filter.extent[1], filter.extent[2]);
    c.groups = filter.extent[3] > 0 ? x.extent[3] / filter.extent[3] : 1;
    return biased(call, cornu_op_conv2d(in(call, 0), cornu_op_transpose(
        in(call, 1), (const int[]){ 1, 2, 3, 0 }), &c), 2);
}

/* (1, h, w, F) to (h, w, 1, F) */
static CornuTensor *depthwise(const Call *call)
{
    const CornuShape filter = shape_of(call, 1), x = shape_of(call, 0);
    CornuConvolution c = convolution(call, x, result(call), filter.extent[1], filter.extent[2]);
    c.groups = x.extent[3];
    return biased(call, cornu_op_conv2d(in(call, 0), cornu_op_transpose(
        in(call, 1), (const int[]){ 1, 2, 0, 3 }), &c), 2);
}

/* The gradient of the convolution from y to x, whose filter is (h, w, F, C). */
static CornuTensor *transpose_conv(const Call *call)
{
    const CornuShape filter = shape_of(call, 1), y = result(call);
    const CornuConvolution c = convolution(call, y, shape_of(call, 2), filter.extent[1],
                                           filter.extent[2]);
    return biased(call, cornu_op_conv2d_grad_input(in(call, 2), cornu_op_transpose(
        in(call, 1), (const int[]){ 1, 2, 0, 3 }), y.extent[1], y.extent[2], &c), 3);
}

static CornuTensor *fully_connected(const Call *call)
{
    CornuTensor *rows = cornu_op_reshape(in(call, 0), cornu_shape(CORNU_NONE,
                                                                  shape_of(call, 1).extent[1]));
    CornuTensor *y = cornu_op_matmul_transposed(rows, false, in(call, 1), true);
    return biased(call, cornu_op_reshape(y, result(call)), 2);
}

/* ---- Windows, reductions ---- */

static CornuTensor *pool(const Call *call)
{
    const CornuLiteOptions *o = &call->op->options;
    const CornuConvolution  c = convolution(call, shape_of(call, 0), result(call), o->filter_h,
                                            o->filter_w);
    const CornuWindow window = {
        .size = { o->filter_h, o->filter_w }, .strides = { c.strides[0], c.strides[1] },
        .low = { c.low[0], c.low[1] }, .high = { c.high[0], c.high[1] }
    };
    return activated(call, (call->op->code == CORNU_LITE_MAX_POOL_2D
                            ? cornu_op_max_pool2d : cornu_op_average_pool2d)(in(call, 0), &window));
}

static CornuTensor *reduce(const Call *call)
{
    const int32_t *axes = integers(call, 1, -1);
    const int      rank = shape_of(call, 0).rank;
    int64_t        bits = 0;
    if (!axes) return NULL;
    for (size_t i = 0; i < about(call, 1)->bytes / sizeof *axes; i++) {
        const int axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return cornu__fail_null(CORNU_ERR_FORMAT, "axis %d of %d", (int)axes[i], rank);
        bits |= INT64_C(1) << axis;
    }
    const bool keep = call->op->options.keep_dims;
    switch (call->op->code) {
    case CORNU_LITE_MEAN: return cornu_op_reduce_mean(in(call, 0), bits, keep);
    case CORNU_LITE_SUM:  return cornu_op_reduce_sum(in(call, 0), bits, keep);
    default:              return cornu_op_reduce_max(in(call, 0), bits, keep);
    }
}

/* Repeats whole rows and columns, which is all that UpSampling needs. */
static CornuTensor *resize(const Call *call)
{
    const CornuShape x = shape_of(call, 0), y = result(call);
    const int64_t h = y.extent[1] / x.extent[1], w = y.extent[2] / x.extent[2];
    if (h * x.extent[1] != y.extent[1] || w * x.extent[2] != y.extent[2] ||
        call->op->options.align_corners)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "by a factor that is not whole");
    CornuTensor *pixels = cornu_op_reshape(in(call, 0), cornu_shape(
        x.extent[0], x.extent[1], 1, x.extent[2], 1, x.extent[3]));
    return cornu_op_reshape(cornu_op_broadcast(pixels, cornu_shape(
        x.extent[0], x.extent[1], h, x.extent[2], w, x.extent[3])), y);
}

/* ---- Elementwise ---- */

static CornuTensor *binary(const Call *call)
{
    CornuTensor *a = in(call, 0), *b = in(call, 1);
    switch (call->op->code) {
    case CORNU_LITE_ADD:     return activated(call, cornu_op_add(a, b));
    case CORNU_LITE_SUB:     return activated(call, cornu_op_subtract(a, b));
    case CORNU_LITE_MUL:     return activated(call, cornu_op_multiply(a, b));
    case CORNU_LITE_DIV:     return activated(call, cornu_op_divide(a, b));
    case CORNU_LITE_MAXIMUM: return cornu_op_maximum(a, b);
    default:                 return cornu_op_minimum(a, b);
    }
}

static CornuTensor *unary(const Call *call)
{
    CornuTensor *x = in(call, 0);
    switch (call->op->code) {
    case CORNU_LITE_RELU:         return cornu_op_relu(x);
    case CORNU_LITE_RELU_N1_TO_1: return cornu_op_clip(x, -1.0, 1.0);
    case CORNU_LITE_RELU6:        return cornu_op_clip(x, 0.0, 6.0);
    case CORNU_LITE_LOGISTIC:     return cornu_op_sigmoid(x);
    case CORNU_LITE_TANH:         return cornu_op_tanh(x);
    case CORNU_LITE_ELU:          return cornu_op_elu(x, 1.0);
    case CORNU_LITE_EXP:          return cornu_op_exp(x);
    case CORNU_LITE_SQRT:         return cornu_op_sqrt(x);
    case CORNU_LITE_RSQRT:        return cornu_op_rsqrt(x);
    case CORNU_LITE_SQUARE:       return cornu_op_square(x);
    case CORNU_LITE_NEG:          return cornu_op_negative(x);
    default:                      return cornu_op_absolute(x);
    }
}

static CornuTensor *leaky_relu(const Call *call)
{
    CornuTensor *x = in(call, 0);
    return cornu_op_add(cornu_op_relu(x), cornu_op_scale(
        cornu_op_relu(cornu_op_negative(x)), -(double)call->op->options.alpha));
}

static CornuTensor *prelu(const Call *call)
{
    CornuTensor *x = in(call, 0);
    return cornu_op_subtract(cornu_op_relu(x), cornu_op_multiply(
        in(call, 1), cornu_op_relu(cornu_op_negative(x))));
}

/* x (1 + erf(x / sqrt(2))) / 2, or with tanh for erf as LiteRT approximates it */
static CornuTensor *gelu(const Call *call)
{
    CornuTensor *x = in(call, 0), *bent;
    if (call->op->options.approximate) {
        CornuTensor *cube = cornu_op_multiply(cornu_op_square(x), x);
        bent = cornu_op_tanh(cornu_op_scale(cornu_op_add(x, cornu_op_scale(cube, 0.044715)),
                                            0.7978845608028654));
    } else {
        bent = cornu_op_erf(cornu_op_scale(x, 0.7071067811865476));
    }
    return cornu_op_multiply(cornu_op_scale(x, 0.5), cornu_op_shift(bent, 1.0));
}

static CornuTensor *softmax(const Call *call)
{
    return cornu_op_softmax(cornu_op_scale(in(call, 0), (double)call->op->options.beta));
}

/* ---- Shapes ---- */

static CornuTensor *reshape(const Call *call)
{
    return cornu_op_reshape(in(call, 0), result(call));
}

static CornuTensor *pad_op(const Call *call)
{
    const int      rank = shape_of(call, 0).rank;
    const int32_t *pads = integers(call, 1, 2 * rank);
    double         value = 0.0;
    if (!pads) return NULL;
    if (call->op->code == CORNU_LITE_PADV2) {
        const CornuLiteTensor *constant = about(call, 2);
        if (!constant || !constant->data || constant->bytes != sizeof(float))
            return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "with a value that is computed");
        value = *(const float *)constant->data;
    }
    int64_t low[CORNU_MAX_RANK], high[CORNU_MAX_RANK];
    for (int d = 0; d < rank; d++) low[d] = pads[2 * d], high[d] = pads[2 * d + 1];
    return cornu_op_pad(in(call, 0), low, high, value);
}

static CornuTensor *transpose(const Call *call)
{
    const int32_t *axes = integers(call, 1, shape_of(call, 0).rank);
    return axes ? cornu_op_transpose(in(call, 0), axes) : NULL;
}

static CornuTensor *concatenation(const Call *call)
{
    CornuTensor *x[64];
    const int    count = call->op->in_count, rank = result(call).rank;
    if (count > 64) return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "of %d inputs", count);
    for (int i = 0; i < count; i++) x[i] = in(call, i);
    const int axis = call->op->options.axis;
    return activated(call, cornu_op_concat(x, count, axis < 0 ? axis + rank : axis));
}

/* Without masks but those of whole axes; strides of 1. */
static CornuTensor *strided_slice(const Call *call)
{
    const CornuLiteOptions *o = &call->op->options;
    const CornuShape x = shape_of(call, 0);
    const int32_t   *begin = integers(call, 1, x.rank), *end = integers(call, 2, x.rank);
    const int32_t   *strides = integers(call, 3, x.rank);
    int64_t          starts[CORNU_MAX_RANK], sizes[CORNU_MAX_RANK];
    if (!begin || !end || !strides) return NULL;
    for (int d = 0; d < x.rank; d++) {
        const int64_t extent = x.extent[d];
        const bool    one = o->shrink_axis_mask >> d & 1;
        int64_t from = o->begin_mask >> d & 1 ? 0 : begin[d] < 0 ? begin[d] + extent : begin[d];
        int64_t to = one ? from + 1 : o->end_mask >> d & 1 ? extent
                     : end[d] < 0 ? end[d] + extent : end[d];
        to = to > extent ? extent : to;
        if (strides[d] != 1 || o->ellipsis_mask || o->new_axis_mask || from < 0 || from >= to)
            return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "with strides or new axes");
        starts[d] = from;
        sizes[d] = to - from;
    }
    return cornu_op_reshape(cornu_op_slice(in(call, 0), starts, sizes), result(call));
}

static const struct {
    CornuLiteCode code;
    CornuTensor *(*record)(const Call *call);
} rules[] = {
    { CORNU_LITE_CONV_2D, conv2d },              { CORNU_LITE_DEPTHWISE_CONV_2D, depthwise },
    { CORNU_LITE_TRANSPOSE_CONV, transpose_conv },
    { CORNU_LITE_FULLY_CONNECTED, fully_connected },
    { CORNU_LITE_MAX_POOL_2D, pool },            { CORNU_LITE_AVERAGE_POOL_2D, pool },
    { CORNU_LITE_MEAN, reduce },                 { CORNU_LITE_SUM, reduce },
    { CORNU_LITE_REDUCE_MAX, reduce },           { CORNU_LITE_RESIZE_NEAREST_NEIGHBOR, resize },
    { CORNU_LITE_ADD, binary },                  { CORNU_LITE_SUB, binary },
    { CORNU_LITE_MUL, binary },                  { CORNU_LITE_DIV, binary },
    { CORNU_LITE_MAXIMUM, binary },              { CORNU_LITE_MINIMUM, binary },
    { CORNU_LITE_RELU, unary },                  { CORNU_LITE_RELU_N1_TO_1, unary },
    { CORNU_LITE_RELU6, unary },                 { CORNU_LITE_LOGISTIC, unary },
    { CORNU_LITE_TANH, unary },                  { CORNU_LITE_ELU, unary },
    { CORNU_LITE_EXP, unary },                   { CORNU_LITE_SQRT, unary },
    { CORNU_LITE_RSQRT, unary },                 { CORNU_LITE_SQUARE, unary },
    { CORNU_LITE_NEG, unary },                   { CORNU_LITE_ABS, unary },
    { CORNU_LITE_PRELU, prelu },                 { CORNU_LITE_GELU, gelu },
    { CORNU_LITE_LEAKY_RELU, leaky_relu },       { CORNU_LITE_SOFTMAX, softmax },
    { CORNU_LITE_RESHAPE, reshape },             { CORNU_LITE_SQUEEZE, reshape },
    { CORNU_LITE_EXPAND_DIMS, reshape },
    { CORNU_LITE_PAD, pad_op },                  { CORNU_LITE_PADV2, pad_op },
    { CORNU_LITE_TRANSPOSE, transpose },         { CORNU_LITE_CONCATENATION, concatenation },
    { CORNU_LITE_STRIDED_SLICE, strided_slice },
};

/* Shapes that the graph computes: rules read those of the tensors. */
static bool makes_integers(const Call *call)
{
    return call->graph->tensors[call->op->out[0]].dtype == CORNU_LITE_I32 &&
           (call->op->code == CORNU_LITE_SHAPE || call->op->code == CORNU_LITE_STRIDED_SLICE ||
            call->op->code == CORNU_LITE_PACK);
}

static CornuStatus record(const Call *call, int number)
{
    const char *name = cornu__lite_code_name(call->op->code);
    char        prefix[96];
    snprintf(prefix, sizeof prefix, "operator %d, %s", number, name ? name : "unknown");
    if (makes_integers(call)) return CORNU_OK;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].code != call->op->code) continue;
        CornuTensor *y = rules[i].record(call);
        if (!y) return cornu__fail_prefix(cornu_error_take(), prefix);
        call->tensors[call->op->out[0]] = y;
        return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: is not available in f32", prefix);
}

/* Inputs and f32 constants become inputs of the graph of tensors. */
static CornuStatus add_tensors(const Call *call, CornuGraph *to)
{
    for (int t = 0; t < call->graph->tensor_count; t++) {
        const CornuLiteTensor *tensor = &call->graph->tensors[t];
        if (!tensor->data || tensor->dtype != CORNU_LITE_F32) continue;
        const CornuType type = cornu_type_from(CORNU_F32, tensor->shape);
        call->tensors[t] = cornu_graph_input(to, type);
        if (!call->tensors[t]) return cornu_error_take();
        const CornuStatus status = cornu_graph_feed(call->tensors[t],
                                                    cornu_array_from(tensor->data, type));
        if (status != CORNU_OK) return status;
    }
    for (int i = 0; i < call->graph->input_count; i++) {
        const int t = call->graph->inputs[i].tensor;
        if (call->graph->tensors[t].dtype != CORNU_LITE_F32)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "input %s is %s, expected f32",
                               call->graph->inputs[i].name,
                               cornu__lite_dtype_name(call->graph->tensors[t].dtype));
        call->tensors[t] = cornu_graph_input(to, cornu_type_from(
            CORNU_F32, known(call->graph->tensors[t].shape, call->batch)));
        if (!call->tensors[t]) return cornu_error_take();
    }
    return CORNU_OK;
}

CornuStatus cornu__lite_record(const CornuLiteGraph *graph, int64_t batch, CornuGraph *to,
                               CornuTensor **tensors)
{
    Call        call = { .graph = graph, .batch = batch, .tensors = tensors };
    CornuStatus status = graph->status;
    for (int t = 0; t < graph->tensor_count; t++) tensors[t] = NULL;
    if (status == CORNU_OK) status = add_tensors(&call, to);
    for (int o = 0; o < graph->operator_count && status == CORNU_OK; o++) {
        call.op = &graph->operators[o];
        status = record(&call, o);
    }
    return status;
}
