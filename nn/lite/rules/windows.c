/* Convolutions and pooling with windows. Sequences (B, T, C) are images (B, 1, T, C). */
#include "rules_internal.h"

#include <string.h>

#include "../../layers/convolutional/convolution_internal.h"

enum { H, W, AXES };   /* spatial axes of operators */

/* The window of a layer: its arguments for both axes, 1 for the axis that sequences lack. */
typedef struct {
    CornuPadding padding;
    int64_t      size[AXES], strides[AXES], dilations[AXES];
} Window;

static void both(const CornuLiteCall *call, const char *name, int64_t *to)
{
    const int64_t *given = cornu__layer_argument(call->layer, name);
    const int      axes = call->shapes[0].rank - 2;
    to[H] = to[W] = 1;
    if (!given) return;
    if (axes == 1) to[W] = given[0];
    else memcpy(to, given, AXES * sizeof *to);
}

static CornuStatus window_of(const CornuLiteCall *call, const char *size, Window *w)
{
    const int axes = call->shapes[0].rank - 2;
    if (axes > AXES)
        return cornu__lite_refuse(call->layer, "a window of three axes",
                                  "which this version has no operators for");
    w->padding = *(const CornuPadding *)cornu__layer_argument(call->layer, "padding");
    both(call, size, w->size);
    both(call, "strides", w->strides);
    both(call, "dilation_rate", w->dilations);
    return CORNU_OK;
}

static CornuLiteOptions options_of(const Window *w)
{
    return (CornuLiteOptions){
        .padding = w->padding == CORNU_SAME ? CORNU_LITE_SAME : CORNU_LITE_VALID,
        .stride_h = (int32_t)w->strides[H], .stride_w = (int32_t)w->strides[W],
        .dilation_h = (int32_t)w->dilations[H], .dilation_w = (int32_t)w->dilations[W],
        .filter_h = (int32_t)w->size[H], .filter_w = (int32_t)w->size[W],
    };
}

/* The same with an axis of rows: (B, 1, T, C) of (B, T, C). */
static CornuShape as_image(CornuShape shape)
{
    if (shape.rank != 3) return shape;
    return cornu_shape(shape.extent[0], 1, shape.extent[1], shape.extent[2]);
}

/* The input as an image; "causal" pads before. */
static int image_of(const CornuLiteCall *call, const Window *w)
{
    const CornuShape shape = call->shapes[0];
    int              x = call->in[0];
    if (shape.rank == 3) x = cornu__lite_reshape(call->to, x, as_image(shape));
    if (w->padding != CORNU_CAUSAL) return x;
    const int64_t low[4] = { 0, 0, w->dilations[W] * (w->size[W] - 1) }, high[4] = { 0 };
    return cornu__lite_pad(call->to, x, low, high);
}

/* The result of the operator as the layer's, after its activation. */
static CornuStatus give(const CornuLiteCall *call, int y)
{
    if (call->results[0].rank == 3) y = cornu__lite_reshape(call->to, y, call->results[0]);
    return cornu__lite_activated(call, y, call->out);
}

/* Weight i, or a vector of zeros: runtimes ask for a bias in some operators. */
static int bias_of(const CornuLiteCall *call, int i)
{
    if (given(call->layer, "use_bias")) return cornu__lite_weight(call->to, call->layer, i);
    const CornuShape result = call->results[0];
    return cornu__lite_room(call->to, "bias", cornu_shape(result.extent[result.rank - 1]));
}

/* A kernel (…, C, F) as (F, H, W, C): its last axis goes first. */
static int filters(const CornuLiteCall *call, int i)
{
    const CornuShape own = call->layer->weights[i]->type.shape;
    const int        last = own.rank - 1;
    CornuShape       shape = cornu_shape(own.extent[last], 1, own.extent[0], own.extent[last - 1]);
    int              order[CORNU_MAX_RANK] = { last };
    for (int k = 1; k < own.rank; k++) order[k] = k - 1;
    if (own.rank == 4)
        shape = cornu_shape(own.extent[3], own.extent[0], own.extent[1], own.extent[2]);
    return cornu__lite_weight_as(call->to, call->layer, i, order, shape);
}

static CornuStatus convolution(const CornuLiteCall *call)
{
    Window w;
    CORNU__TRY(window_of(call, "kernel_size", &w));
    const CornuLiteOptions options = options_of(&w);
    int in[] = { image_of(call, &w), 0, 0 };
    in[1] = filters(call, 0);
    in[2] = bias_of(call, 1);
    return give(call, cornu__lite_node(call->to, CORNU_LITE_CONV_2D, in, 3,
                                       as_image(call->results[0]), &options));
}

/* The depthwise kernel (…, C, m) as (1, H, W, C m): the order of its elements is the same.
 * CORNU_LITE_NONE for a bias of zeros. */
static CornuStatus convolve_channels(const CornuLiteCall *call, const Window *w, int bias, int *y)
{
    CornuLite       *to = call->to;
    const CornuShape own = call->layer->weights[0]->type.shape;
    const int64_t    channels = own.extent[own.rank - 2], times = own.extent[own.rank - 1];
    CornuLiteOptions options = options_of(w);
    int              in[] = { image_of(call, w), 0, bias };
    CornuShape       shape = as_image(call->results[0]);
    options.depth_multiplier = (int32_t)times;
    in[1] = cornu__lite_weight_as(to, call->layer, 0, NULL,
                                  cornu_shape(1, w->size[H], w->size[W], channels * times));
    if (bias < 0) in[2] = cornu__lite_room(to, "bias", cornu_shape(channels * times));
    shape.extent[3] = channels * times;
    *y = cornu__lite_node(to, CORNU_LITE_DEPTHWISE_CONV_2D, in, 3, shape, &options);
    return CORNU_OK;
}

static CornuStatus depthwise(const CornuLiteCall *call)
{
    Window w;
    int    y;
    CORNU__TRY(window_of(call, "kernel_size", &w));
    CORNU__TRY(convolve_channels(call, &w, bias_of(call, 1), &y));
    return give(call, y);
}

static CornuStatus separable(const CornuLiteCall *call)
{
    const Window           one = { CORNU_VALID, { 1, 1 }, { 1, 1 }, { 1, 1 } };
    const CornuLiteOptions options = options_of(&one);
    Window                 w;
    int                    in[3];
    CORNU__TRY(window_of(call, "kernel_size", &w));
    CORNU__TRY(convolve_channels(call, &w, CORNU_LITE_NONE, &in[0]));
    in[1] = filters(call, 1);
    in[2] = bias_of(call, 2);
    return give(call, cornu__lite_node(call->to, CORNU_LITE_CONV_2D, in, 3,
                                       as_image(call->results[0]), &options));
}

/* The shape of the result, i32 (4): the batch is that of x. */
static int result_shape(const CornuLiteCall *call, int x)
{
    CornuLite     *to = call->to;
    const int32_t  zero = 0, one = 1;
    const CornuLiteOptions shapes = { .out_dtype = CORNU_LITE_I32 };
    const CornuLiteOptions single = { .shrink_axis_mask = 1 }, pack = { .count = 4 };
    int in[4] = { cornu__lite_node_of(to, CORNU_LITE_SHAPE, &x, 1, CORNU_LITE_I32, cornu_shape(4),
                                      &shapes) };
    in[1] = cornu__lite_add_integers(to->graph, &zero, 1);
    in[2] = cornu__lite_add_integers(to->graph, &one, 1);
    in[3] = in[2];
    in[0] = cornu__lite_node_of(to, CORNU_LITE_STRIDED_SLICE, in, 4, CORNU_LITE_I32,
                                (CornuShape){ 0 }, &single);
    for (int i = 1; i < 4; i++) {
        const int32_t extent = (int32_t)call->results[0].extent[i];
        in[i] = cornu__lite_add_constant(to->graph, "extent", CORNU_LITE_I32, (CornuShape){ 0 },
                                         &extent);
    }
    return cornu__lite_node_of(to, CORNU_LITE_PACK, in, 4, CORNU_LITE_I32, cornu_shape(4), &pack);
}

/* The padding before x in LiteRT is that of a convolution from the result to x; Keras' may differ
 * with output_padding. */
static CornuStatus check_transposed(const CornuLiteCall *call, const Window *w)
{
    const int64_t *more = cornu__layer_argument(call->layer, "output_padding");
    int64_t        low, high, out, own_low, own_high;
    for (int i = 0; i < AXES; i++) {
        const CornuTransposedAxis axis = { w->padding, w->size[i], w->strides[i], w->dilations[i],
                                           more[i] };
        cornu__transposed_axis(&axis, call->shapes[0].extent[i + 1], &low, &high, &out);
        cornu__padding(w->padding, out, w->size[i], w->strides[i], 1, &own_low, &own_high);
        if (w->dilations[i] != 1)
            return cornu__lite_refuse(call->layer, "dilation_rate",
                                      "whose transposed convolution has none");
        if (low != own_low)
            return cornu__lite_refuse(call->layer, "this output_padding",
                                      "whose transposed convolution pads otherwise");
    }
    return CORNU_OK;
}

/* The kernel (H, W, F, C) is (F, H, W, C) in LiteRT. */
static CornuStatus transposed(const CornuLiteCall *call)
{
    CornuLite       *to = call->to;
    const CornuShape own = call->layer->weights[0]->type.shape;
    const int        order[] = { 2, 0, 1, 3 };
    Window           w;
    if (call->shapes[0].rank != 4)
        return cornu__lite_refuse(call->layer, call->layer->kind->class_name,
                                  "which this version has no operators for");
    CORNU__TRY(window_of(call, "kernel_size", &w));
    CORNU__TRY(check_transposed(call, &w));
    const CornuLiteOptions options = options_of(&w);
    int in[] = { result_shape(call, call->in[0]), 0, call->in[0], 0 };
    in[1] = cornu__lite_weight_as(to, call->layer, 0, order,
                                  cornu_shape(own.extent[2], own.extent[0], own.extent[1],
                                              own.extent[3]));
    in[3] = bias_of(call, 1);
    return give(call, cornu__lite_node(to, CORNU_LITE_TRANSPOSE_CONV, in, 4, call->results[0],
                                       &options));
}

/* ---- Pooling. Means exclude the padding in Keras and in LiteRT ---- */

static CornuStatus pool(const CornuLiteCall *call, CornuLiteCode code)
{
    Window w;
    CORNU__TRY(window_of(call, "pool_size", &w));
    const CornuLiteOptions options = options_of(&w);
    const int x = image_of(call, &w);
    const int y = cornu__lite_node(call->to, code, &x, 1, as_image(call->results[0]), &options);
    *call->out = call->results[0].rank == 3 ? cornu__lite_reshape(call->to, y, call->results[0])
                                            : y;
    return CORNU_OK;
}

static CornuStatus max_pooling(const CornuLiteCall *call)
{
    return pool(call, CORNU_LITE_MAX_POOL_2D);
}

static CornuStatus average_pooling(const CornuLiteCall *call)
{
    return pool(call, CORNU_LITE_AVERAGE_POOL_2D);
}

/* Over all axes between batch and channels. */
static CornuStatus pool_all(const CornuLiteCall *call, CornuLiteCode code)
{
    const int64_t axes = (INT64_C(1) << (call->shapes[0].rank - 1)) - 2;
    *call->out = cornu__lite_reduce(call->to, code, call->in[0], axes,
                                    flag(call->layer, "keepdims"));
    return CORNU_OK;
}

static CornuStatus global_average(const CornuLiteCall *call)
{
    return pool_all(call, CORNU_LITE_MEAN);
}

static CornuStatus global_max(const CornuLiteCall *call)
{
    return pool_all(call, CORNU_LITE_REDUCE_MAX);
}

const CornuLiteRow cornu__lite_windows[] = {
    { "AveragePooling1D", average_pooling },
    { "AveragePooling2D", average_pooling },
    { "Conv1D", convolution },
    { "Conv2D", convolution },
    { "Conv2DTranspose", transposed },
    { "DepthwiseConv1D", depthwise },
    { "DepthwiseConv2D", depthwise },
    { "GlobalAveragePooling1D", global_average },
    { "GlobalAveragePooling2D", global_average },
    { "GlobalAveragePooling3D", global_average },
    { "GlobalMaxPooling1D", global_max },
    { "GlobalMaxPooling2D", global_max },
    { "GlobalMaxPooling3D", global_max },
    { "MaxPooling1D", max_pooling },
    { "MaxPooling2D", max_pooling },
    { "SeparableConv1D", separable },
    { "SeparableConv2D", separable },
    { 0 },
};
