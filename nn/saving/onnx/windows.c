/* Convolutions and pooling with windows: of sequences, images and volumes. */
#include "rules_internal.h"

#include <string.h>

#include "../../../device/integer_internal.h"
#include "../../../device/memory_internal.h"
#include "../../layers/pooling/pooling_internal.h"

enum { MOST = 3 };   /* spatial axes */

/* Padding as in ONNX: before each axis, then after each. */
typedef struct {
    int     axes;
    int64_t size[MOST], strides[MOST], dilations[MOST], pads[2 * MOST];
    bool    automatic;   /* the padding depends on an open extent: the runtime finds it */
} Window;

/* The window of a layer whose size is this argument. */
static Window window_of(const CornuOnnxCall *call, const char *size)
{
    const CornuLayer  *layer = call->layer;
    const CornuPadding padding = *(const CornuPadding *)cornu__layer_argument(layer, "padding");
    const int64_t     *dilations = cornu__layer_argument(layer, "dilation_rate");
    Window             w = { .axes = call->shapes[0].rank - 2 };
    const size_t       bytes = (size_t)w.axes * sizeof *w.size;
    memcpy(w.size, cornu__layer_argument(layer, size), bytes);
    memcpy(w.strides, cornu__layer_argument(layer, "strides"), bytes);
    for (int i = 0; i < w.axes; i++) {
        w.dilations[i] = dilations ? dilations[i] : 1;
        const int64_t extent = call->shapes[0].extent[i + 1];
        const bool    open = cornu__onnx_is_open(extent);
        w.automatic |= open && padding == CORNU_SAME && w.strides[i] > 1;
        /* With strides of 1 padding is that of any extent not smaller than the window. */
        cornu__padding(padding, open ? w.size[i] * w.dilations[i] : extent, w.size[i],
                       w.strides[i], w.dilations[i], &w.pads[i], &w.pads[w.axes + i]);
    }
    return w;
}

/* Keras' "same", in which an odd row of padding is after the others. */
static CornuOnnxAttribute padding_of(const Window *w)
{
    if (w->automatic) return (CornuOnnxAttribute){ .name = "auto_pad", .text = "SAME_UPPER" };
    return (CornuOnnxAttribute){ .name = "pads", .integers = w->pads, .count = 2 * w->axes };
}

/* ---- Convolutions: kernels (filters, channels of a group, …) ---- */

/* Of x with channels first, as the result; CORNU_ONNX_NONE for no bias. */
static int convolve(CornuOnnx *to, int x, int kernel, int bias, int64_t groups, const Window *w)
{
    const int in[] = { x, kernel, bias };
    return CORNU__ONNX_NODE(to, "Conv", in,
                            { .name = "strides", .integers = w->strides, .count = w->axes },
                            { .name = "dilations", .integers = w->dilations, .count = w->axes },
                            padding_of(w), { .name = "group", .whole = groups });
}

/* Weight i if the layer has a bias, else none. */
static int bias_of(const CornuOnnxCall *call, int i)
{
    return given(call->layer, "use_bias") ? cornu__onnx_weight(call->to, call->layer, i)
                                          : CORNU_ONNX_NONE;
}

static int channels_first(const CornuOnnxCall *call)
{
    return cornu__onnx_channels_first(call->to, call->in[0], call->shapes[0].rank);
}

/* Sets the result of the layer from y with channels first, which activations along the last axis
 * get as the layer gives it. */
static CornuStatus give(const CornuOnnxCall *call, int y)
{
    const int        rank = call->shapes[0].rank;
    const CornuShape last = call->results[0];
    CornuShape       first = last;
    first.extent[1] = last.extent[rank - 1];
    for (int i = 2; i < rank; i++) first.extent[i] = last.extent[i - 1];
    const bool as_given = cornu__channels_first(call->layer) &&
                          cornu__along_axes(activation_of(call->layer, "activation"));
    if (as_given) y = cornu__onnx_activated(call, y, first);
    y = cornu__onnx_channels_last(call->to, y, rank);
    *call->out = as_given ? y : activated(call, y);
    return CORNU_OK;
}

/* Weight i with its last axis, the filters, moved first, the axis before it second: HWIO as OIHW.
 * Transposed convolutions have HWOI, and IOHW in ONNX. */
static int kernel_of(const CornuOnnxCall *call, int i)
{
    const CornuShape own = call->layer->weights[i]->type.shape;
    CornuShape       shape = { .rank = own.rank };
    int              order[CORNU_MAX_RANK];
    for (int k = 0; k < own.rank; k++) {
        order[k] = k < 2 ? own.rank - 1 - k : k - 2;
        shape.extent[k] = own.extent[order[k]];
    }
    return cornu__onnx_weight_as(call->to, call->layer, i, order, shape);
}

static CornuStatus convolution(const CornuOnnxCall *call)
{
    const Window w = window_of(call, "kernel_size");
    const int    bias = bias_of(call, 1), kernel = kernel_of(call, 0), x = channels_first(call);
    return give(call, convolve(call->to, x, kernel, bias, whole(call->layer, "groups"), &w));
}

/* The depthwise kernel (…, C, m) as (C m, 1, …), with a group per channel. */
static int convolve_channels(const CornuOnnxCall *call, int bias)
{
    const Window     w = window_of(call, "kernel_size");
    const CornuShape own = call->layer->weights[0]->type.shape;
    const int64_t    channels = own.extent[w.axes], times = own.extent[w.axes + 1];
    CornuShape       shape = { .rank = own.rank, .extent = { channels * times, 1 } };
    int              order[CORNU_MAX_RANK] = { w.axes, w.axes + 1 };
    for (int i = 0; i < w.axes; i++) {
        order[2 + i] = i;
        shape.extent[2 + i] = own.extent[i];
    }
    const int kernel = cornu__onnx_weight_as(call->to, call->layer, 0, order, shape);
    return convolve(call->to, channels_first(call), kernel, bias, channels, &w);
}

static CornuStatus depthwise(const CornuOnnxCall *call)
{
    return give(call, convolve_channels(call, bias_of(call, 1)));
}

static CornuStatus separable(const CornuOnnxCall *call)
{
    const Window one = { .axes = call->shapes[0].rank - 2, .strides = { 1, 1, 1 },
                         .dilations = { 1, 1, 1 } };
    const int    y = convolve_channels(call, CORNU_ONNX_NONE);
    const int    bias = bias_of(call, 2), kernel = kernel_of(call, 1);
    return give(call, convolve(call->to, y, kernel, bias, 1, &one));
}

/* ONNX has no negative padding: rows that the convolution does not reach are output_padding. */
static CornuStatus transposed(const CornuOnnxCall *call)
{
    const Window   w = window_of(call, "kernel_size");
    const int64_t *more = cornu__layer_argument(call->layer, "output_padding");
    int64_t        pads[2 * MOST], beyond[MOST], high, out;
    for (int i = 0; i < w.axes; i++) {
        const CornuTransposedAxis axis = {
            *(const CornuPadding *)cornu__layer_argument(call->layer, "padding"), w.size[i],
            w.strides[i], w.dilations[i], more[i],
        };
        cornu__transposed_axis(&axis, call->shapes[0].extent[i + 1], &pads[i], &high, &out);
        pads[w.axes + i] = larger(high, 0);
        beyond[i] = larger(-high, 0);
    }
    const int in[] = { channels_first(call), kernel_of(call, 0), bias_of(call, 1) };
    return give(call, CORNU__ONNX_NODE(
        call->to, "ConvTranspose", in,
        { .name = "strides", .integers = w.strides, .count = w.axes },
        { .name = "dilations", .integers = w.dilations, .count = w.axes },
        { .name = "pads", .integers = pads, .count = 2 * w.axes },
        { .name = "output_padding", .integers = beyond, .count = w.axes }));
}

/* ---- Pooling. Means exclude the padding, in Keras and by default in ONNX ---- */

static CornuStatus pool(const CornuOnnxCall *call, const char *operator)
{
    const Window w = window_of(call, "pool_size");
    const int    in[] = { channels_first(call) };
    const int    y = CORNU__ONNX_NODE(
        call->to, operator, in,
        { .name = "kernel_shape", .integers = w.size, .count = w.axes },
        { .name = "strides", .integers = w.strides, .count = w.axes }, padding_of(&w));
    *call->out = cornu__onnx_channels_last(call->to, y, call->shapes[0].rank);
    return CORNU_OK;
}

static CornuStatus max_pooling(const CornuOnnxCall *call) { return pool(call, "MaxPool"); }
static CornuStatus average_pooling(const CornuOnnxCall *call) { return pool(call, "AveragePool"); }

/* Each axis is cut into parts, which may overlap, and each part reduced. */
static CornuStatus adapt(const CornuOnnxCall *call, const char *reduction)
{
    CornuOnnx *to = call->to;
    const int  rank = call->shapes[0].rank;
    int        x = call->in[0];
    for (int axis = 1; axis + 1 < rank; axis++) {
        const int64_t from = call->shapes[0].extent[axis], count = call->results[0].extent[axis];
        if (from == count) continue;
        CORNU__TRY(cornu__onnx_known(call, axis));
        int *parts = cornu__allocate((size_t)count, sizeof *parts);
        if (!parts) return CORNU_ERR_MEMORY;
        for (int64_t i = 0; i < count; i++) {
            const int part = cornu__onnx_slice(to, x, axis, cornu__adaptive_start(i, from, count),
                                               cornu__adaptive_end(i, from, count));
            parts[i] = cornu__onnx_reduce(to, reduction, part, rank, INT64_C(1) << axis, true);
        }
        const CornuOnnxAttribute along = { .name = "axis", .whole = axis };
        x = cornu__onnx_node(to, "Concat", parts, (int)count, &along, 1, 1);
        cornu__release(parts);
    }
    *call->out = x;
    return CORNU_OK;
}

static CornuStatus adaptive_average(const CornuOnnxCall *call) { return adapt(call, "ReduceMean"); }
static CornuStatus adaptive_max(const CornuOnnxCall *call) { return adapt(call, "ReduceMax"); }

const CornuOnnxRow cornu__onnx_windows[] = {
    { "AdaptiveAveragePooling1D", adaptive_average },
    { "AdaptiveAveragePooling2D", adaptive_average },
    { "AdaptiveAveragePooling3D", adaptive_average },
    { "AdaptiveMaxPooling1D", adaptive_max },
    { "AdaptiveMaxPooling2D", adaptive_max },
    { "AdaptiveMaxPooling3D", adaptive_max },
    { "AveragePooling1D", average_pooling },
    { "AveragePooling2D", average_pooling },
    { "AveragePooling3D", average_pooling },
    { "Conv1D", convolution },
    { "Conv1DTranspose", transposed },
    { "Conv2D", convolution },
    { "Conv2DTranspose", transposed },
    { "Conv3D", convolution },
    { "Conv3DTranspose", transposed },
    { "DepthwiseConv1D", depthwise },
    { "DepthwiseConv2D", depthwise },
    { "MaxPooling1D", max_pooling },
    { "MaxPooling2D", max_pooling },
    { "MaxPooling3D", max_pooling },
    { "SeparableConv1D", separable },
    { "SeparableConv2D", separable },
    { 0 },
};
