/* Padding, cropping and resizing images, and rescaling pixels. */
#include "rules_internal.h"

#include <math.h>

#include "../../../device/memory_internal.h"
#include "../../layers/reshaping/resampling_internal.h"

/* For each axis between batch and channels, the rows before it and the rows after it. */
static int64_t edge_of(const CornuOnnxCall *call, const char *argument, int axis, bool after)
{
    const int64_t *edges = cornu__layer_argument(call->layer, argument);
    return cornu__integer(edges[2 * (axis - 1) + after], 0);
}

/* For each axis in the stored order: all that is before, then all that is after. */
static CornuStatus zero_padding(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  rank = call->shapes[0].rank;
    int64_t    order[CORNU_MAX_RANK], pads[2 * CORNU_MAX_RANK] = { 0 };
    int        x;
    cornu__onnx_lying(to, call->in, 1, &x, order);
    for (int i = 1; i + 1 < rank; i++) {
        pads[order[i]] = edge_of(call, "padding", i, false);
        pads[rank + order[i]] = edge_of(call, "padding", i, true);
    }
    x = joined(to, "Pad", x, cornu__onnx_integers(to, pads, 2 * rank));
    *call->out = cornu__onnx_transpose(to, x, order, rank);
    return CORNU_OK;
}

static CornuStatus cropping(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  rank = call->shapes[0].rank;
    int64_t    order[CORNU_MAX_RANK];
    int        x;
    cornu__onnx_lying(to, call->in, 1, &x, order);
    for (int i = 1; i + 1 < rank; i++) {
        const int64_t extent = call->shapes[0].extent[i];
        const int64_t after = edge_of(call, "cropping", i, true);
        const int64_t end = !cornu__onnx_is_open(extent) ? extent - after
                            : after > 0                  ? -after : INT32_MAX;
        x = cornu__onnx_slice(to, x, order[i], edge_of(call, "cropping", i, false), end);
    }
    *call->out = cornu__onnx_transpose(to, x, order, rank);
    return CORNU_OK;
}

/* The numbers of the nearest pixels, as in pick, of extents that are known when the model runs. */
static int nearest(CornuOnnx *to, int64_t from, int64_t count)
{
    const int64_t axis = 0;
    const int     wide = cast(to, cornu__onnx_vector(to, &from, 1), CORNU_ONNX_FLOAT);
    const int     made = cast(to, cornu__onnx_vector(to, &count, 1), CORNU_ONNX_FLOAT);
    int           in[] = { cornu__onnx_scalar(to, 0.0), 0, cornu__onnx_scalar(to, 1.0) };
    in[1] = joined(to, "Squeeze", made, cornu__onnx_integers(to, &axis, 1));
    const int i = cornu__onnx_node(to, "Range", in, 3, NULL, 0, 1);
    const int at = two(to, "Div", two(to, "Mul", shifted(to, i, 0.5), wide), made);
    return cast(to, one(to, "Floor", at), CORNU_ONNX_INT64);
}

/* Gathers the nearest pixels along an axis. Which of two equally near pixels Resize takes depends
 * on the rounding of the runtime. */
static CornuStatus pick(CornuOnnx *to, int64_t axis, int64_t from, int64_t count, int *x)
{
    if (cornu__onnx_is_open(from) || cornu__onnx_is_open(count)) {
        const int in[] = { *x, nearest(to, from, count) };
        *x = CORNU__ONNX_NODE(to, "Gather", in, { .name = "axis", .whole = axis });
        return CORNU_OK;
    }
    int64_t *numbers = cornu__allocate((size_t)count, sizeof *numbers);
    if (!numbers) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)   /* in f32, as layers/reshaping/resampling.c */
        numbers[i] = (int64_t)floorf(((float)i + 0.5f) * (float)from / (float)count);
    const int in[] = { *x, cornu__onnx_integers(to, numbers, (int)count) };
    *x = CORNU__ONNX_NODE(to, "Gather", in, { .name = "axis", .whole = axis });
    cornu__release(numbers);
    return CORNU_OK;
}

/* Weights (count, from) of the pixels along an axis; transposed, (from, count). */
static CornuStatus weigh(const CornuOnnxCall *call, int64_t from, int64_t count, bool turned,
                         int *weights)
{
    const bool           *antialias = cornu__layer_argument(call->layer, "antialias");
    const CornuResampling how = {
        *(const CornuInterpolation *)cornu__layer_argument(call->layer, "interpolation"),
        antialias && *antialias,
    };
    const CornuShape shape = turned ? cornu_shape(from, count) : cornu_shape(count, from);
    float      *values = cornu__allocate((size_t)(count * from), sizeof *values);
    CornuStatus status = values ? cornu__resampling_weights(&how, from, count, turned, values)
                                : CORNU_ERR_MEMORY;
    if (!status)
        *weights = cornu__onnx_constant(
            call->to, cornu_array_from(values, cornu_type_from(CORNU_F32, shape)));
    cornu__release(values);
    return status;
}

/* Interpolations that Resize does not have, or not as Keras: products of x (B, C, H, W) with
 * weights for the rows and for the columns. */
static CornuStatus weigh_both(const CornuOnnxCall *call, const int64_t *from, int *x)
{
    const int64_t *size = call->results[0].extent;
    int            rows, columns;
    CORNU__TRY(weigh(call, from[1], size[1], false, &rows));
    CORNU__TRY(weigh(call, from[2], size[2], true, &columns));
    *x = joined(call->to, "MatMul", joined(call->to, "MatMul", rows, *x), columns);
    return CORNU_OK;
}

/* Resize of x, which is stored in this order. Before opset 18 it takes the extents of all axes. */
static int interpolate(CornuOnnx *to, int x, const int64_t *size, const int64_t *order, int rank)
{
    const CornuOnnxAttribute attributes[] = {
        { .name = "mode", .text = "linear" },
        { .name = "axes", .integers = order + 1, .count = rank - 2 },
    };
    int64_t all[CORNU_MAX_RANK], batch = 1;
    int     in[] = { x, CORNU_ONNX_NONE, CORNU_ONNX_NONE, CORNU_ONNX_NONE };
    if (to->opset >= 18) {
        in[3] = cornu__onnx_vector(to, size + 1, rank - 2);
        return cornu__onnx_node(to, "Resize", in, 4, attributes, 2, 1);
    }
    for (int i = 0; i < rank; i++) all[order[i]] = size[i];
    const int shape = cornu__onnx_node(to, "Shape", &x, 1, NULL, 0, 1);
    const int parts[] = { cornu__onnx_slice(to, shape, 0, 0, batch),
                          cornu__onnx_vector(to, all + 1, rank - 1) };
    in[3] = CORNU__ONNX_NODE(to, "Concat", parts, { .name = "axis", .whole = 0 });
    return cornu__onnx_node(to, "Resize", in, 4, attributes, 1, 1);
}

/* Resizes x of these extents to the size of the result. */
static CornuStatus resize_from(const CornuOnnxCall *call, int x, const int64_t *from,
                               CornuInterpolation usual)
{
    CornuOnnx     *to = call->to;
    const int      rank = call->shapes[0].rank;
    const int64_t *size = call->results[0].extent;
    const CornuInterpolation *given = cornu__layer_argument(call->layer, "interpolation");
    const CornuInterpolation  how = given ? *given : usual;
    const bool    *antialias = cornu__layer_argument(call->layer, "antialias");
    int64_t        order[CORNU_MAX_RANK];
    if (how != CORNU_NEAREST && (how != CORNU_BILINEAR || (antialias && *antialias))) {
        for (int i = 1; i + 1 < rank; i++) CORNU__TRY(cornu__onnx_known(call, i));
        x = cornu__onnx_channels_first(to, x, rank);
        CORNU__TRY(weigh_both(call, from, &x));
        *call->out = cornu__onnx_channels_last(to, x, rank);
        return CORNU_OK;
    }
    cornu__onnx_lying(to, (const int[]){ x }, 1, &x, order);
    if (how == CORNU_NEAREST) {
        for (int i = 1; i + 1 < rank; i++)
            if (size[i] != from[i]) CORNU__TRY(pick(to, order[i], from[i], size[i], &x));
    } else {
        x = interpolate(to, x, size, order, rank);
    }
    *call->out = cornu__onnx_transpose(to, x, order, rank);
    return CORNU_OK;
}

static CornuStatus up_sampling(const CornuOnnxCall *call)
{
    return resize_from(call, call->in[0], call->shapes[0].extent, CORNU_NEAREST);
}

/* Cropped and padded in the stored order: onnxruntime 1.32, when it moves a transpose past Resize,
 * loses the sizes. */
static CornuStatus resizing(const CornuOnnxCall *call)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int64_t     size[2] = { whole(layer, "height"), whole(layer, "width") };
    const int64_t    *given = call->shapes[0].extent + 1;
    const bool        crop = flag(layer, "crop_to_aspect_ratio");
    const bool        pad = flag(layer, "pad_to_aspect_ratio");
    CornuShape        from = call->shapes[0];
    int64_t           order[CORNU_MAX_RANK];
    int               x;
    for (int i = 1; i < 3 && (crop || pad); i++) CORNU__TRY(cornu__onnx_known(call, i));
    cornu__onnx_lying(to, call->in, 1, &x, order);
    if (crop) {
        cornu__crop_to_ratio(given, size, from.extent + 1);
        for (int i = 1; i < 3; i++) {
            const int64_t begin = (call->shapes[0].extent[i] - from.extent[i]) / 2;
            x = cornu__onnx_slice(to, x, order[i], begin, begin + from.extent[i]);
        }
    }
    if (pad) {
        int64_t around[2], pads[8] = { 0 };
        cornu__pad_to_ratio(given, size, around);
        for (int i = 0; i < 2; i++) {
            pads[order[1 + i]] = pads[4 + order[1 + i]] = around[i];
            from.extent[1 + i] += 2 * around[i];
        }
        const int in[] = { x, cornu__onnx_integers(to, pads, 8),
                           cornu__onnx_scalar(to, number(layer, "fill_value")) };
        x = cornu__onnx_node(to, "Pad", in, 3, NULL, 0, 1);
    }
    return resize_from(call, cornu__onnx_transpose(to, x, order, from.rank), from.extent,
                       CORNU_BILINEAR);
}

/* Images smaller on a side are cropped to the ratio and resized. */
static CornuStatus center_crop(const CornuOnnxCall *call)
{
    const int64_t *size = call->results[0].extent + 1;
    CornuShape     from = call->shapes[0];
    if (from.rank != 4)
        return cornu__onnx_refuse(call->layer, "a single image", "whose batch is missing");
    const bool     smaller = from.extent[1] < size[0] || from.extent[2] < size[1];
    int64_t        order[CORNU_MAX_RANK];
    int            x;
    for (int i = 1; i < 3; i++) CORNU__TRY(cornu__onnx_known(call, i));
    if (smaller) cornu__crop_to_ratio(call->shapes[0].extent + 1, size, from.extent + 1);
    cornu__onnx_lying(call->to, call->in, 1, &x, order);
    for (int i = 1; i < 3; i++) {
        if (!smaller) from.extent[i] = size[i - 1];
        const int64_t begin = (call->shapes[0].extent[i] - from.extent[i]) / 2;
        x = cornu__onnx_slice(call->to, x, order[i], begin, begin + from.extent[i]);
    }
    *call->out = cornu__onnx_transpose(call->to, x, order, from.rank);
    return smaller ? resize_from(call, *call->out, from.extent, CORNU_BILINEAR) : CORNU_OK;
}

/* As nn/layers/images/levels.c. */
static CornuStatus auto_contrast(const CornuOnnxCall *call)
{
    CornuOnnx    *to = call->to;
    const double *range = cornu__layer_argument(call->layer, "value_range");
    const double  low = cornu__number(range[0], 0.0), width = cornu__number(range[1], 0.0) - low;
    const int64_t pixels = 1 << 1 | 1 << 2;
    const int     x = call->in[0];
    if (call->shapes[0].rank != 4)
        return cornu__onnx_refuse(call->layer, "a single image", "whose batch is missing");
    const int y = scaled(to, shifted(to, x, -low), 255.0 / width);
    const int least = cornu__onnx_reduce(to, "ReduceMin", y, 4, pixels, true);
    const int most = cornu__onnx_reduce(to, "ReduceMax", y, 4, pixels, true);
    const int flat = two(to, "Equal", least, most);
    const int span = two(to, "Sub", most, least);
    const int one_value = cornu__onnx_scalar(to, 1.0);
    const int unit = selected(to, flat, one_value, span);
    const int bytes = cornu__onnx_scalar(to, 255.0);
    const int scale = two(to, "Div", bytes, unit);
    const int lifted = two(to, "Sub", two(to, "Mul", y, scale), two(to, "Mul", least, scale));
    const int zero = cornu__onnx_scalar(to, 0.0);
    const int z = two(to, "Min", two(to, "Max", lifted, zero), bytes);
    *call->out = selected(to, flat, x, shifted(to, scaled(to, z, width / 255.0), low));
    return CORNU_OK;
}

static CornuStatus rescaling(const CornuOnnxCall *call)
{
    CornuOnnx          *to = call->to;
    const CornuNumbers *scales = cornu__layer_numbers(call->layer, "scale");
    const CornuNumbers *offsets = cornu__layer_numbers(call->layer, "offset");
    const int           factor = scales->values
        ? cornu__onnx_array(to, scales, scales->shape)
        : cornu__onnx_scalar(to, number(call->layer, "scale"));
    const int           y = two(to, "Mul", call->in[0], factor);
    const int           term = offsets->values
        ? cornu__onnx_array(to, offsets, offsets->shape)
        : cornu__onnx_scalar(to, number(call->layer, "offset"));
    *call->out = two(to, "Add", y, term);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_images[] = {
    { "AutoContrast", auto_contrast },
    { "CenterCrop", center_crop },
    { "Cropping1D", cropping },
    { "Cropping2D", cropping },
    { "Cropping3D", cropping },
    { "Rescaling", rescaling },
    { "Resizing", resizing },
    { "UpSampling1D", up_sampling },
    { "UpSampling2D", up_sampling },
    { "UpSampling3D", up_sampling },
    { "ZeroPadding1D", zero_padding },
    { "ZeroPadding2D", zero_padding },
    { "ZeroPadding3D", zero_padding },
    { 0 },
};
