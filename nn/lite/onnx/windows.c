/* Products with windows, pooling, resizing as ONNX nodes, which have channels first. */
#include "onnx_internal.h"

#include "../../../device/integer_internal.h"

enum { AXES = 2, MOST_AXES = 3, IMAGE = 4, VOLUME = 5 };

/* The window of an operator over two or three axes. */
typedef struct {
    int     axes;
    int64_t size[MOST_AXES], strides[MOST_AXES], dilations[MOST_AXES], pads[2 * MOST_AXES];
    bool    automatic;   /* the padding depends on an open extent: the runtime finds it */
} Window;

static Window window_of(const Step *step, const CornuLiteTensor *x, const int64_t *size)
{
    const CornuLiteOptions *o = &step->op->options;
    const int32_t strides[] = { o->stride_d, o->stride_h, o->stride_w };
    const int32_t dilations[] = { o->dilation_d, o->dilation_h, o->dilation_w };
    const bool    same = o->padding == CORNU_LITE_SAME;
    Window        w = { .axes = x->shape.rank - 2 };
    for (int i = 0; i < w.axes; i++) {
        const int64_t extent = x->shape.extent[1 + i];
        w.size[i] = size[i];
        w.strides[i] = larger(strides[MOST_AXES - w.axes + i], 1);
        w.dilations[i] = larger(dilations[MOST_AXES - w.axes + i], 1);
        w.automatic |= extent < 0 && same && w.strides[i] > 1;
        cornu__padding(same ? CORNU_SAME : CORNU_VALID,
                       extent < 0 ? w.size[i] * w.dilations[i] : extent, w.size[i], w.strides[i],
                       w.dilations[i], &w.pads[i], &w.pads[w.axes + i]);
    }
    return w;
}

static CornuOnnxAttribute padding_of(const Window *w)
{
    if (w->automatic) return (CornuOnnxAttribute){ .name = "auto_pad", .text = "SAME_UPPER" };
    return (CornuOnnxAttribute){ .name = "pads", .integers = w->pads, .count = 2 * w->axes };
}

static int channels_first(const Step *step, int i)
{
    const int x = cornu__lite_value(step, i);
    return cornu__onnx_channels_first(step->to, x, IMAGE);
}

static CornuStatus give(const Step *step, int y)
{
    return cornu__lite_give(step, cornu__onnx_channels_last(step->to, y, IMAGE));
}

/* Filters, of four axes and known extents. */
static CornuStatus check_filters(const Step *step, int i)
{
    const CornuLiteTensor *w = cornu__lite_operand(step, i);
    bool                   good = w->shape.rank == IMAGE &&
                (w->dtype == CORNU_LITE_F32 || cornu__lite_onnx_quantized(w));
    for (int k = 0; k < w->shape.rank; k++) good &= w->shape.extent[k] > 0;
    return good ? CORNU_OK : cornu__fail(CORNU_ERR_FORMAT, "its filters have no shape (F, H, W, "
                                         "C)");
}

/* `size`: of the filters, whose axes are ONNX' in this order. */
static CornuStatus convolve(const Step *step, const int64_t *size, const int64_t *order,
                            int64_t groups)
{
    const Window w = window_of(step, cornu__lite_operand(step, 0), size);
    const int    rank = w.axes + 2;
    int          in[] = { 0, 0, 0 };
    in[0] = cornu__onnx_channels_first(step->to, cornu__lite_value(step, 0), rank);
    in[1] = cornu__lite_turned(step, 1, order);
    in[2] = cornu__lite_value(step, 2);
    const int y = CORNU__ONNX_NODE(step->to, "Conv", in,
                                   { .name = "strides", .integers = w.strides, .count = w.axes },
                                   { .name = "dilations", .integers = w.dilations,
                                     .count = w.axes },
                                   padding_of(&w), { .name = "group", .whole = groups });
    return cornu__lite_give(step, cornu__onnx_channels_last(step->to, y, rank));
}

/* (F, H, W, C / groups) as (F, C / groups, H, W) */
static CornuStatus convolution(const Step *step)
{
    const int64_t order[] = { 0, 3, 1, 2 };
    CORNU__TRY(check_filters(step, 1));
    const int64_t channels = cornu__lite_operand(step, 0)->shape.extent[3];
    const int64_t seen = cornu__lite_operand(step, 1)->shape.extent[3];
    if (channels < seen || channels % seen)
        return cornu__fail(CORNU_ERR_FORMAT, "x has %lld channels, filters %lld",
                           (long long)channels, (long long)seen);
    return convolve(step, cornu__lite_operand(step, 1)->shape.extent + 1, order, channels / seen);
}

/* (1, H, W, C m) as (C m, 1, H, W) */
static CornuStatus depthwise(const Step *step)
{
    const int64_t order[] = { 3, 0, 1, 2 };
    CORNU__TRY(check_filters(step, 1));
    const int64_t channels = cornu__lite_operand(step, 0)->shape.extent[3];
    const int64_t made = cornu__lite_operand(step, 1)->shape.extent[3];
    if (channels < 1 || made % channels || cornu__lite_operand(step, 1)->shape.extent[0] != 1)
        return cornu__fail(CORNU_ERR_FORMAT, "x has %lld channels, the result %lld",
                           (long long)channels, (long long)made);
    return convolve(step, cornu__lite_operand(step, 1)->shape.extent + 1, order, channels);
}

/* (F, H, W, C) as (C, F, H, W), operand 1. The padding is that of the convolution from the result
 * to x; rows that this does not reach are output_padding. */
CornuStatus cornu__lite_transposed(const Step *step, int x, int bias)
{
    const int64_t order[] = { 3, 0, 1, 2 };
    CORNU__TRY(check_filters(step, 1));
    const CornuShape own = cornu__lite_operand(step, 1)->shape;
    const CornuShape from = cornu__lite_operand(step, x)->shape;
    const CornuShape made = cornu__lite_result(step)->shape;
    if (from.rank != IMAGE || made.rank != IMAGE)
        return cornu__fail(CORNU_ERR_FORMAT, "its operand and its result are not images");
    Window  w = window_of(step, cornu__lite_result(step), own.extent + 1);
    int64_t beyond[AXES];
    for (int i = 0; i < AXES; i++) {
        const int64_t in = from.extent[1 + i], out = made.extent[1 + i];
        if (in < 0 || out < 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "images of unknown size");
        const int64_t high = w.strides[i] * (in - 1) + w.size[i] - w.pads[i] - out;
        w.pads[AXES + i] = larger(high, 0);
        beyond[i] = larger(-high, 0);
    }
    int in[] = { 0, 0, 0 };
    in[0] = channels_first(step, x);
    in[1] = cornu__lite_turned(step, 1, order);
    in[2] = cornu__lite_value(step, bias);
    return give(step, CORNU__ONNX_NODE(step->to, "ConvTranspose", in,
                                       { .name = "strides", .integers = w.strides, .count = AXES },
                                       { .name = "pads", .integers = w.pads, .count = 2 * AXES },
                                       { .name = "output_padding", .integers = beyond,
                                         .count = AXES }));
}

static CornuStatus transposed(const Step *step) { return cornu__lite_transposed(step, 2, 3); }

/* (D, H, W, C, F) as (F, C, D, H, W) */
static CornuStatus convolution_3d(const Step *step)
{
    const int64_t    order[] = { 4, 3, 0, 1, 2 };
    const CornuShape x = cornu__lite_operand(step, 0)->shape;
    const CornuShape filter = cornu__lite_operand(step, 1)->shape;
    if (filter.rank != VOLUME || filter.extent[3] != x.extent[4])
        return cornu__fail(CORNU_ERR_FORMAT, "its filters have no shape (D, H, W, C, F)");
    return convolve(step, filter.extent, order, 1);
}

/* ---- Pools ---- */

/* A window that is the whole image, of any size, without padding. */
static bool is_global(const Step *step, const Window *w)
{
    const CornuShape x = cornu__lite_operand(step, 0)->shape;
    return x.extent[1] == w->size[0] && x.extent[2] == w->size[1] &&
           step->op->options.padding == CORNU_LITE_VALID;
}

/* L2: of squares the root of their mean. */
static CornuStatus pool(const Step *step)
{
    const bool              squares = step->op->code == CORNU_LITE_L2_POOL_2D;
    const bool              most = step->op->code == CORNU_LITE_MAX_POOL_2D;
    const CornuLiteOptions *options = &step->op->options;
    const int64_t size[] = { options->filter_h, options->filter_w };
    const Window  w = window_of(step, cornu__lite_operand(step, 0), size);
    const CornuOnnxAttribute attributes[] = {
        { .name = "kernel_shape", .integers = w.size, .count = AXES },
        { .name = "strides", .integers = w.strides, .count = AXES }, padding_of(&w),
    };
    const bool  all = is_global(step, &w);
    const char *operator = all ? most ? "GlobalMaxPool" : "GlobalAveragePool"
                               : most ? "MaxPool" : "AveragePool";
    int x = channels_first(step, 0);
    if (squares) x = two(step->to, "Mul", x, x);
    x = cornu__onnx_node(step->to, operator, &x, 1, attributes, all ? 0 : 3, 1);
    return give(step, squares ? one(step->to, "Sqrt", x) : x);
}

/* x (bias + alpha times the sum of the squares of so many channels around)^-beta; ONNX takes their
 * mean. */
static CornuStatus local_response(const Step *step)
{
    const CornuLiteOptions *options = &step->op->options;
    const int64_t           size = 2 * (int64_t)options->radius + 1;
    const double            alpha = (double)options->alpha * (double)size;
    const double            beta = (double)options->beta, bias = (double)options->bias;
    const int in[] = { channels_first(step, 0) };
    return give(step, CORNU__ONNX_NODE(step->to, "LRN", in, { .name = "size", .whole = size },
                                       { .name = "alpha", .numbers = &alpha },
                                       { .name = "beta", .numbers = &beta },
                                       { .name = "bias", .numbers = &bias }));
}

/* Weights (U, K). All axes but the last are kept, or joined to one. */
static CornuStatus fully_connected(const Step *step)
{
    const int64_t          order[] = { 1, 0 };
    const CornuLiteTensor *w = cornu__lite_operand(step, 1);
    if (w->shape.rank != 2)
        return cornu__fail(CORNU_ERR_FORMAT, "its weights have rank %d, expected 2",
                           w->shape.rank);
    const int64_t flat[] = { -1, w->shape.extent[1] };
    int           y = cornu__lite_value(step, 0);
    if (!step->op->options.keep_dims && rank_of(step, 0) != 2)
        y = joined(step->to, "Reshape", y, integers(step, flat, 2));
    y = joined(step->to, "MatMul", y, cornu__lite_turned(step, 1, order));
    if (cornu__lite_operand(step, 2)) y = two(step->to, "Add", y, cornu__lite_value(step, 2));
    return cornu__lite_give(step, y);
}

static CornuStatus batch_matmul(const Step *step)
{
    const bool turned[] = { step->op->options.adj_x, step->op->options.adj_y };
    int        in[2];
    for (int i = 0; i < 2; i++) {
        const int rank = rank_of(step, i);
        int64_t   order[CORNU_MAX_RANK];
        for (int k = 0; k < rank; k++) order[k] = k;
        in[i] = cornu__lite_value(step, i);
        if (!turned[i] || rank < 2) continue;
        order[rank - 2] = rank - 1;
        order[rank - 1] = rank - 2;
        in[i] = cornu__onnx_transpose(step->to, in[i], order, rank);
    }
    return cornu__lite_give(step, joined(step->to, "MatMul", in[0], in[1]));
}

/* Pixels have their centres at whole numbers, or 0.5 further. */
static CornuStatus resize(const Step *step)
{
    const CornuLiteOptions *options = &step->op->options;
    const char *where = options->align_corners        ? "align_corners"
                      : options->half_pixel_centers   ? "half_pixel" : "asymmetric";
    const char *nearest = options->align_corners || options->half_pixel_centers
                              ? "round_prefer_ceil" : "floor";
    const int64_t axes[] = { 2, 3 };
    int64_t       size[AXES];
    int           count;
    CORNU__TRY(cornu__lite_list(step, 1, AXES, size, &count));
    if (count != AXES) return cornu__fail(CORNU_ERR_FORMAT, "its size has %d numbers", count);
    int in[] = { 0, CORNU_ONNX_NONE, CORNU_ONNX_NONE, 0 };
    in[0] = channels_first(step, 0);
    in[3] = integers(step, size, AXES);
    return give(step, CORNU__ONNX_NODE(step->to, "Resize", in,
                                       { .name = "mode", .text = step->row->whole },
                                       { .name = "coordinate_transformation_mode", .text = where },
                                       { .name = "nearest_mode", .text = nearest },
                                       { .name = "axes", .integers = axes, .count = AXES }));
}

const CornuLiteOnnxRow cornu__lite_onnx_windows[] = {
    { CORNU_LITE_AVERAGE_POOL_2D, 1, .rule = pool, .rank = IMAGE },
    { CORNU_LITE_BATCH_MATMUL, 2, .rule = batch_matmul },
    { CORNU_LITE_CONV_2D, 2, .rule = convolution, .rank = IMAGE },
    { CORNU_LITE_CONV_3D, 2, .rule = convolution_3d, .rank = VOLUME },
    { CORNU_LITE_DEPTHWISE_CONV_2D, 2, .rule = depthwise, .rank = IMAGE },
    { CORNU_LITE_FULLY_CONNECTED, 2, .rule = fully_connected },
    { CORNU_LITE_L2_POOL_2D, 1, .rule = pool, .rank = IMAGE },
    { CORNU_LITE_LOCAL_RESPONSE_NORMALIZATION, 1, .rule = local_response, .rank = IMAGE },
    { CORNU_LITE_MAX_POOL_2D, 1, .rule = pool, .rank = IMAGE },
    { CORNU_LITE_RESIZE_BILINEAR, 2, .rule = resize, .whole = "linear", .rank = IMAGE },
    { CORNU_LITE_RESIZE_NEAREST_NEIGHBOR, 2, .rule = resize, .whole = "nearest", .rank = IMAGE },
    { CORNU_LITE_TRANSPOSE_CONV, 3, .rule = transposed },
    { 0 },
};
