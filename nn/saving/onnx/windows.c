/* Convolutions and pools as ONNX nodes: ops, which are of images, and functions, of sequences,
 * images and volumes (nn/layers/convolutional/functions.c, nn/layers/pooling/pool_axes.c). */
#include "extents_internal.h"
#include "recorded_internal.h"

#include <string.h>

#include "../../../device/integer_internal.h"
#include "../../layers/convolutional/convolution_internal.h"

typedef CornuOnnxOp Op;

enum { MOST = 3 };   /* spatial axes */

/* Padding as in ONNX: before each axis, then after each. */
typedef struct {
    int     axes;
    int64_t size[MOST], strides[MOST], dilations[MOST], pads[2 * MOST];
    bool    automatic;   /* the padding depends on an open extent: the runtime finds it */
} Window;

static CornuShape shape_of(const Op *op, int i)
{
    return op->program->program->values[op->in[i]].type.shape;
}

static const double *numbers_of(const Op *op) { return op->attributes->custom.numbers; }

static void take(const double *numbers, int axes, int64_t *to)
{
    for (int i = 0; i < axes; i++) to[i] = (int64_t)numbers[i];
}

/* Sets the padding of a window over operand 0. With strides of 1 it is that of any extent not
 * smaller than the window. */
static void pad(const Op *op, CornuPadding padding, Window *w)
{
    for (int i = 0; i < w->axes; i++) {
        const int64_t extent = cornu__onnx_extent_at(op->program, op->in[0], i + 1);
        const bool    open = extent == 0 || cornu__onnx_is_open(extent);
        w->automatic |= open && padding == CORNU_SAME && w->strides[i] > 1;
        cornu__padding(padding, open ? w->size[i] * w->dilations[i] : extent, w->size[i],
                       w->strides[i], w->dilations[i], &w->pads[i], &w->pads[w->axes + i]);
    }
}

/* Keras' "same", in which an odd row of padding is after the others. */
static CornuOnnxAttribute padding_of(const Window *w)
{
    if (w->automatic) return (CornuOnnxAttribute){ .name = "auto_pad", .text = "SAME_UPPER" };
    return (CornuOnnxAttribute){ .name = "pads", .integers = w->pads, .count = 2 * w->axes };
}

static CornuStatus give(const Op *op, int y, const Window *w)
{
    return cornu__onnx_give(op, cornu__onnx_channels_last(op->to, y, w->axes + 2));
}

/* ---- Convolutions ---- */

/* The kernel, (…, C, F) in Cornu, as (F, C, …), and the bias, if there is one; x has channels
 * first. Transposed convolutions have (…, F, C), and (C, F, …) in ONNX. */
static void operands(const Op *op, int x, const Window *w, int in[3])
{
    const int64_t order[] = { w->axes + 1, w->axes, 0, 1, 2 };
    in[0] = x;
    in[1] = cornu__onnx_transpose(op->to, cornu__onnx_operand(op, 1), order, w->axes + 2);
    in[2] = op->op->in_count > 2 ? cornu__onnx_operand(op, 2) : CORNU_ONNX_NONE;
}

static CornuStatus convolve(const Op *op, int x, int64_t groups, const Window *w)
{
    int in[3];
    operands(op, cornu__onnx_channels_first(op->to, x, w->axes + 2), w, in);
    return give(op, CORNU__ONNX_NODE(
        op->to, "Conv", in, { .name = "strides", .integers = w->strides, .count = w->axes },
        { .name = "dilations", .integers = w->dilations, .count = w->axes }, padding_of(w),
        { .name = "group", .whole = groups }), w);
}

CornuStatus cornu__onnx_conv(const Op *op)
{
    const double    *numbers = numbers_of(op);
    const CornuShape kernel = shape_of(op, 1);
    Window           w = { .axes = kernel.rank - 2 };
    memcpy(w.size, kernel.extent, (size_t)w.axes * sizeof *w.size);
    take(numbers + 2, w.axes, w.strides);
    take(numbers + 2 + w.axes, w.axes, w.dilations);
    pad(op, (CornuPadding)numbers[0], &w);
    return convolve(op, cornu__onnx_operand(op, 0), (int64_t)numbers[1], &w);
}

/* Negative padding crops x, which is (B, H, W, C), and becomes 0. */
static int cropped(const Op *op, int x, int64_t pads[4])
{
    for (int i = 0; i < 2; i++) {
        const int64_t low = pads[i] < 0 ? -pads[i] : 0, high = pads[2 + i] < 0 ? -pads[2 + i] : 0;
        const int64_t extent = cornu__onnx_extent_at(op->program, op->in[0], i + 1);
        const bool    known = extent == shape_of(op, 0).extent[i + 1];
        if (low || high)
            x = cornu__onnx_slice(op->to, x, i + 1, low, known ? extent - high
                                                         : high ? -high : INT32_MAX);
        if (low) pads[i] = 0;
        if (high) pads[2 + i] = 0;
    }
    return x;
}

CornuStatus cornu__onnx_conv2d(const Op *op)
{
    const CornuAttributes_CONV2D *at = &op->attributes->conv2d;
    const int64_t given = op->attributes->grouped_conv2d.groups;
    const int64_t groups = op->op->id == CORNU_OP_GROUPED_CONV2D && given > 0 ? given : 1;
    Window w = { .axes = 2, .strides = { at->strides[0], at->strides[1] },
                 .dilations = { at->dilation[0], at->dilation[1] },
                 .pads = { at->low[0], at->low[1], at->high[0], at->high[1] } };
    return convolve(op, cropped(op, cornu__onnx_operand(op, 0), w.pads), groups, &w);
}

/* `beyond`, or NULL: rows that the convolution does not reach. */
static int transposed(const Op *op, int64_t groups, const Window *w, const int64_t *beyond)
{
    const int64_t none[MOST] = { 0 };
    int           in[3];
    operands(op, cornu__onnx_channels_first(op->to, cornu__onnx_operand(op, 0), w->axes + 2), w,
             in);
    return CORNU__ONNX_NODE(
        op->to, "ConvTranspose", in,
        { .name = "strides", .integers = w->strides, .count = w->axes },
        { .name = "dilations", .integers = w->dilations, .count = w->axes }, padding_of(w),
        { .name = "output_padding", .integers = beyond ? beyond : none, .count = w->axes },
        { .name = "group", .whole = groups });
}

/* ONNX has no negative padding: rows that the convolution does not reach are output_padding. */
CornuStatus cornu__onnx_conv_transpose(const Op *op)
{
    const double    *numbers = numbers_of(op);
    const CornuShape kernel = shape_of(op, 1);
    Window           w = { .axes = kernel.rank - 2, .dilations = { 1, 1, 1 } };
    int64_t          more[MOST], beyond[MOST], high, out;
    take(numbers + 1, w.axes, w.strides);
    take(numbers + 1 + w.axes, w.axes, more);
    if (w.axes < MOST) take(numbers + 1 + 2 * w.axes, w.axes, w.dilations);
    for (int i = 0; i < w.axes; i++) {
        const CornuTransposedAxis axis = { (CornuPadding)numbers[0], kernel.extent[i],
                                           w.strides[i], w.dilations[i], more[i] };
        cornu__transposed_axis(&axis, 1, &w.pads[i], &high, &out);
        w.pads[w.axes + i] = larger(high, 0);
        beyond[i] = larger(-high, 0);
    }
    return give(op, transposed(op, 1, &w, beyond), &w);
}

/* What ONNX cuts off a transposed convolution, the rows that only padding reached; and the rows of
 * zeros around it, which no window reached. */
typedef struct { int64_t pads[4], zeros[8]; } Around;

static Around around_of(const Op *op, int world)
{
    const CornuProgram                *program = op->program->worlds[world];
    const CornuAttributes_CONV2D_GRAD *at = &program->ops[op->number].attributes.conv2d_grad;
    const CornuShape x = program->values[op->in[0]].type.shape;
    const CornuShape filter = program->values[op->in[1]].type.shape;
    Around           around = { .zeros = { 0 } };
    for (int i = 0; i < 2; i++) {
        const int64_t reached = (x.extent[i + 1] - 1) * at->strides[i] +
                                (filter.extent[i] - 1) * at->dilation[i] + 1;
        const int64_t low = at->low[i], high = reached - low - at->extents[i];
        around.pads[i] = larger(low, 0);
        around.pads[2 + i] = larger(high, 0);
        around.zeros[2 + i] = larger(-low, 0);
        around.zeros[6 + i] = larger(-high, 0);
    }
    return around;
}

CornuStatus cornu__onnx_conv2d_grad_input(const Op *op)
{
    const CornuAttributes_CONV2D_GRAD *at = &op->attributes->conv2d_grad;
    const bool    grouped = op->op->id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
    const Around  around = around_of(op, 0);
    const int64_t none[8] = { 0 };
    for (int w = 1; w < CORNU_ONNX_WORLDS; w++) {
        const Around other = around_of(op, w);
        if (memcmp(&other, &around, sizeof around)) return cornu__onnx_refuse_open(op);
    }
    Window w = { .axes = 2, .strides = { at->strides[0], at->strides[1] },
                 .dilations = { at->dilation[0], at->dilation[1] } };
    memcpy(w.pads, around.pads, sizeof around.pads);
    int y = transposed(op, grouped ? op->attributes->grouped_conv2d_grad.groups : 1, &w, NULL);
    if (memcmp(around.zeros, none, sizeof none))
        y = joined(op->to, "Pad", y, cornu__onnx_integers(op->to, around.zeros, 8));
    return give(op, y, &w);
}

/* ---- Pools. Means exclude the padding, in Keras and by default in ONNX ---- */

static CornuStatus pool(const Op *op, const char *operator)
{
    Window w = { .axes = shape_of(op, 0).rank - 2, .dilations = { 1, 1, 1 } };
    if (op->op->id == CORNU_OP_CUSTOM) {
        take(numbers_of(op) + 1, w.axes, w.size);
        take(numbers_of(op) + 1 + w.axes, w.axes, w.strides);
        pad(op, (CornuPadding)numbers_of(op)[0], &w);
    } else {
        const CornuAttributes_WINDOW *at = &op->attributes->window;
        for (int i = 0; i < 2; i++) {
            w.size[i] = at->size[i];
            w.strides[i] = at->strides[i];
            w.pads[i] = at->low[i];
            w.pads[2 + i] = at->high[i];
        }
    }
    const int in[] = { cornu__onnx_channels_first(op->to, cornu__onnx_operand(op, 0), w.axes + 2) };
    return give(op, CORNU__ONNX_NODE(
        op->to, operator, in, { .name = "kernel_shape", .integers = w.size, .count = w.axes },
        { .name = "strides", .integers = w.strides, .count = w.axes }, padding_of(&w)), &w);
}

/* The second result of the op, where the maxima are, serves gradients. */
CornuStatus cornu__onnx_max_pool(const Op *op) { return pool(op, "MaxPool"); }
CornuStatus cornu__onnx_average_pool(const Op *op) { return pool(op, "AveragePool"); }
