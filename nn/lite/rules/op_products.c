/* Convolutions, pools, products and lookups as LiteRT operators: recorded_internal.h. */
#include "recorded_internal.h"

#include "../../../device/integer_internal.h"

typedef CornuLiteOp Op;

enum { H, W, AXES };

static CornuShape out_shape(const Op *op) { return cornu__lite_value_shape(op->program, op->out); }

/* ---- Windows ---- */

typedef struct {
    int64_t size[AXES], strides[AXES], dilations[AXES], low[AXES], high[AXES];
} Window;

/* Whether the padding is LiteRT's for this option; of x (B, H, W, C). */
static bool pads_as(const Window *w, CornuShape x, bool same)
{
    for (int i = 0; i < AXES; i++) {
        const int64_t in = x.extent[1 + i];
        const int64_t reach = (w->size[i] - 1) * w->dilations[i] + 1;
        const int64_t out = (in + w->low[i] + w->high[i] - reach) / w->strides[i] + 1;
        const int64_t total = same ? larger((out - 1) * w->strides[i] + reach - in, 0) : 0;
        const int64_t want = same ? (in + w->strides[i] - 1) / w->strides[i]
                                  : (in - reach) / w->strides[i] + 1;
        if (out != want || w->low[i] != total / 2 || (!same && w->high[i] != 0)) return false;
    }
    return true;
}

/* Rows that are padded explicitly, or cut off, so that the padding is VALID. */
static CornuStatus padded(const Op *op, const Window *w, int *x, double value)
{
    CornuShape shape = shape_of(op->to, *x);
    int32_t    pads[8] = { 0 }, begin[4] = { 0 }, size[4];
    bool       cut = false, any = false;
    for (int i = 0; i < 4; i++)
        size[i] = shape.extent[i] == CORNU_NONE ? -1 : (int32_t)shape.extent[i];
    for (int i = 0; i < AXES; i++) {
        const int64_t low = w->low[i], high = w->high[i];
        cut |= low < 0 || high < 0;
        any |= low > 0 || high > 0;
        begin[1 + i] = (int32_t)larger(-low, 0);
        size[1 + i] -= (int32_t)(larger(-low, 0) + larger(-high, 0));
        pads[2 + 2 * i] = (int32_t)larger(low, 0);
        pads[3 + 2 * i] = (int32_t)larger(high, 0);
    }
    int in[] = { *x, 0, 0 };
    if (cut) {
        for (int i = 1; i < 3; i++) shape.extent[i] = size[i];
        in[1] = cornu__lite_add_integers(op->to->graph, begin, 4);
        in[2] = cornu__lite_add_integers(op->to->graph, size, 4);
        in[0] = cornu__lite_node(op->to, CORNU_LITE_SLICE, in, 3, shape, NULL);
    }
    if (any) {
        for (int i = 1; i < 3; i++) shape.extent[i] += pads[2 * i] + pads[2 * i + 1];
        in[1] = cornu__lite_add_constant(op->to->graph, "paddings", CORNU_LITE_I32,
                                         cornu_shape(4, 2), pads);
        in[2] = cornu__lite_add_scalar(op->to->graph, (float)value);
        in[0] = cornu__lite_node(op->to, value != 0.0 ? CORNU_LITE_PADV2 : CORNU_LITE_PAD, in,
                                 value != 0.0 ? 3 : 2, shape, NULL);
    }
    *x = in[0];
    return op->to->graph->status;
}

static CornuLiteOptions options_of(const Window *w, bool same)
{
    return (CornuLiteOptions){
        .padding = same ? CORNU_LITE_SAME : CORNU_LITE_VALID,
        .stride_h = (int32_t)w->strides[H], .stride_w = (int32_t)w->strides[W],
        .dilation_h = (int32_t)w->dilations[H], .dilation_w = (int32_t)w->dilations[W],
        .filter_h = (int32_t)w->size[H], .filter_w = (int32_t)w->size[W],
    };
}

static Window window_of(const int64_t *strides, const int64_t *dilations, const int64_t *low,
                        const int64_t *high, int64_t h, int64_t w)
{
    Window made = { .size = { h, w } };
    for (int i = 0; i < AXES; i++) {
        made.strides[i] = larger(strides[i], 1);
        made.dilations[i] = dilations ? larger(dilations[i], 1) : 1;
        made.low[i] = low[i];
        made.high[i] = high[i];
    }
    return made;
}

/* ---- Convolutions: filters (h, w, C / groups, F) ---- */

static int zeros(const Op *op, int64_t count)
{
    return cornu__lite_room(op->to, "bias", cornu_shape(count));
}

static CornuStatus convolve(const Op *op, int64_t groups)
{
    static const int filters_first[] = { 3, 0, 1, 2 }, channels_last[] = { 2, 0, 1, 3 };
    const CornuAttributes_CONV2D *at = &op->attributes->conv2d;
    const CornuShape filter = cornu__lite_value_shape(op->program, op->in[1]);
    const Window     w = window_of(at->strides, at->dilation, at->low, at->high, filter.extent[0],
                                   filter.extent[1]);
    int              in[3];
    CORNU__TRY(cornu__lite_full(op, 0, &in[0]));
    CORNU__TRY(cornu__lite_full(op, 1, &in[1]));
    const CornuShape x = shape_of(op->to, in[0]);
    const bool       depthwise = groups > 1 && groups == x.extent[3];
    const bool       same = pads_as(&w, x, true);
    if (!same && !pads_as(&w, x, false)) CORNU__TRY(padded(op, &w, &in[0], 0.0));
    in[1] = cornu__lite_turn(op->to, in[1], depthwise ? channels_last : filters_first);
    in[2] = zeros(op, filter.extent[3]);
    CornuLiteOptions options = options_of(&w, same);
    options.depth_multiplier = depthwise ? (int32_t)(filter.extent[3] / groups) : 0;
    return cornu__lite_op_give(op, cornu__lite_node(
        op->to, depthwise ? CORNU_LITE_DEPTHWISE_CONV_2D : CORNU_LITE_CONV_2D, in, 3,
        out_shape(op), &options));
}

static CornuStatus conv2d(const Op *op) { return convolve(op, 1); }

static CornuStatus grouped(const Op *op)
{
    return convolve(op, op->attributes->grouped_conv2d.groups);
}

/* Rows of a transposed convolution without padding: `low` of them come before those of the result,
 * and behind are more, or too few. */
static CornuStatus cut_out(const Op *op, const Window *w, CornuShape x, int *y)
{
    const CornuShape shape = out_shape(op);
    Window           rest = { .size = { 0 } };
    for (int i = 0; i < AXES; i++) {
        const int64_t reached = (x.extent[1 + i] - 1) * w->strides[i] + w->size[i];
        rest.low[i] = -w->low[i];
        rest.high[i] = shape.extent[1 + i] + w->low[i] - reached;
    }
    return padded(op, &rest, y, 0.0);
}

/* x is the gradient of a convolution from the result to x: filters (h, w, C of the result, F). */
static CornuStatus transposed(const Op *op)
{
    static const int order[] = { 2, 0, 1, 3 };
    const CornuAttributes_CONV2D_GRAD *at = &op->attributes->conv2d_grad;
    const CornuShape filter = cornu__lite_value_shape(op->program, op->in[1]);
    const Window     w = window_of(at->strides, at->dilation, at->low, at->high, filter.extent[0],
                                   filter.extent[1]);
    int              in[4];
    CORNU__TRY(cornu__lite_full(op, 0, &in[2]));
    CORNU__TRY(cornu__lite_full(op, 1, &in[1]));
    const CornuShape x = shape_of(op->to, in[2]);
    CornuShape       y = out_shape(op);
    const bool       same = pads_as(&w, y, true), valid = pads_as(&w, y, false);
    if (w.dilations[H] > 1 || w.dilations[W] > 1)
        return cornu__lite_op_refuse(op, "whose transposed convolution has no dilation");
    CornuShape worlds[CORNU_LITE_WORLDS];
    for (int i = 0; i < AXES && !same && !valid; i++)
        y.extent[1 + i] = (x.extent[1 + i] - 1) * w.strides[i] + w.size[i];
    for (int v = 0; v < CORNU_LITE_WORLDS; v++) {
        worlds[v] = op->program->worlds[v]->values[op->out].type.shape;
        worlds[v].extent[1] = y.extent[1];
        worlds[v].extent[2] = y.extent[2];
    }
    CORNU__TRY(cornu__lite_extents_of(op, worlds, &in[0]));
    in[1] = cornu__lite_turn(op->to, in[1], order);
    in[3] = zeros(op, y.extent[3]);
    const CornuLiteOptions options = options_of(&w, same);
    int out = cornu__lite_node(op->to, CORNU_LITE_TRANSPOSE_CONV, in, 4, y, &options);
    if (!same && !valid) CORNU__TRY(cut_out(op, &w, x, &out));
    return cornu__lite_op_give(op, out);
}

/* ---- Pools ---- */

/* How many positions of a window lie in x. */
static double seen(const Window *w, int axis, int64_t extent, int64_t i)
{
    int64_t count = 0;
    for (int64_t k = 0; k < w->size[axis]; k++) {
        const int64_t at = i * w->strides[axis] + k - w->low[axis];
        count += at >= 0 && at < extent;
    }
    return (double)larger(count, 1);
}

/* By what a mean with the padding in it is multiplied to be without: (1, Ho, Wo, 1). */
static int shares(const Op *op, const Window *w, CornuShape x)
{
    const CornuShape y = out_shape(op);
    const int made = cornu__lite_room(op->to, "shares",
                                      cornu_shape(1, y.extent[1], y.extent[2], 1));
    float    *to = cornu__lite_data(op->to, made);
    for (int64_t h = 0; to && h < y.extent[1]; h++)
        for (int64_t v = 0; v < y.extent[2]; v++)
            *to++ = (float)((double)(w->size[H] * w->size[W]) /
                            (seen(w, H, x.extent[1], h) * seen(w, W, x.extent[2], v)));
    return made;
}

static CornuStatus pool(const Op *op, CornuLiteCode code)
{
    const CornuAttributes_WINDOW *at = &op->attributes->window;
    const Window w = window_of(at->strides, NULL, at->low, at->high, at->size[0], at->size[1]);
    int          x;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    const CornuShape shape = shape_of(op->to, x);
    const bool       same = pads_as(&w, shape, true), valid = pads_as(&w, shape, false);
    const bool       mean = code == CORNU_LITE_AVERAGE_POOL_2D;
    if (!same && !valid) CORNU__TRY(padded(op, &w, &x, mean ? 0.0 : -3.4028234e38));
    const CornuLiteOptions options = options_of(&w, same);
    int y = cornu__lite_node(op->to, code, &x, 1, out_shape(op), &options);
    if (mean && !same && !valid) y = cornu__lite_two(op->to, CORNU_LITE_MUL, y,
                                                     shares(op, &w, shape));
    return cornu__lite_op_give(op, y);
}

static CornuStatus max_pool(const Op *op) { return pool(op, CORNU_LITE_MAX_POOL_2D); }
static CornuStatus average_pool(const Op *op) { return pool(op, CORNU_LITE_AVERAGE_POOL_2D); }

/* ---- Products ---- */

/* x by b and, if there is one, plus the bias: FULLY_CONNECTED, whose weights are (U, K), where b is
 * a constant matrix. */
static CornuStatus multiply(const Op *op, int x, int b, bool turn_x, bool turn_b, int bias)
{
    static const int       order[] = { 1, 0 };
    const CornuShape       y = out_shape(op);
    const CornuLiteOptions keep = { .keep_dims = y.rank > 2 };
    if (op->to->graph->tensors[b].data && shape_of(op->to, b).rank == 2 && !turn_x) {
        const int in[] = { x, turn_b ? b : cornu__lite_turn(op->to, b, order), bias };
        return cornu__lite_op_give(op, cornu__lite_node(op->to, CORNU_LITE_FULLY_CONNECTED, in,
                                                        bias < 0 ? 2 : 3, y, &keep));
    }
    const int product = cornu__lite_node(op->to, CORNU_LITE_BATCH_MATMUL, (const int[]){ x, b }, 2,
                                         y, &(CornuLiteOptions){ .adj_x = turn_x,
                                                                 .adj_y = turn_b });
    return cornu__lite_op_give(op, bias < 0 ? product : cornu__lite_two(op->to, CORNU_LITE_ADD,
                                                                        product, bias));
}

static CornuStatus matmul(const Op *op)
{
    const CornuAttributes_MATMUL *at = &op->attributes->matmul;
    int                           in[2];
    for (int i = 0; i < 2; i++) CORNU__TRY(cornu__lite_full(op, i, &in[i]));
    return multiply(op, in[0], in[1], at->transpose_a, at->transpose_b, CORNU_LITE_NONE);
}

CornuStatus cornu__lite_dense(const Op *op)
{
    int in[] = { 0, 0, CORNU_LITE_NONE };
    for (int i = 0; i < op->op->in_count; i++) CORNU__TRY(cornu__lite_full(op, i, &in[i]));
    return multiply(op, in[0], in[1], false, false, in[2]);
}

/* ---- Over the last axis, lookups ---- */

static CornuStatus last_axis(const Op *op, CornuLiteCode code)
{
    int x;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    return cornu__lite_op_give(op, cornu__lite_node(op->to, code, &x, 1, out_shape(op),
                                                    &(CornuLiteOptions){ .beta = 1.0f }));
}

static CornuStatus softmax(const Op *op) { return last_axis(op, CORNU_LITE_SOFTMAX); }
static CornuStatus log_softmax(const Op *op) { return last_axis(op, CORNU_LITE_LOG_SOFTMAX); }

static CornuStatus argmax(const Op *op)
{
    const int32_t axis = (int32_t)op->attributes->axis.axis;
    int           x;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    const int in[] = { x, cornu__lite_add_integers(op->to->graph, &axis, 1) };
    return cornu__lite_op_give(op, cornu__lite_node_of(
        op->to, CORNU_LITE_ARG_MAX, in, 2, CORNU_LITE_I32, out_shape(op),
        &(CornuLiteOptions){ .out_dtype = CORNU_LITE_I32 }));
}

static CornuStatus one_hot(const Op *op)
{
    const int32_t depth = (int32_t)op->attributes->one_hot.depth;
    int           in[4];
    if (!cornu_dtype_is_float(op->attributes->one_hot.dtype))
        return cornu__lite_op_refuse(op, "in integers");
    CORNU__TRY(cornu__lite_full(op, 0, &in[0]));
    in[1] = cornu__lite_add_constant(op->to->graph, "depth", CORNU_LITE_I32, (CornuShape){ 0 },
                                     &depth);
    in[2] = cornu__lite_add_scalar(op->to->graph, 1.0f);
    in[3] = cornu__lite_add_scalar(op->to->graph, 0.0f);
    return cornu__lite_op_give(op, cornu__lite_node(op->to, CORNU_LITE_ONE_HOT, in, 4,
                                                    out_shape(op),
                                                    &(CornuLiteOptions){ .axis = -1 }));
}

static CornuStatus gather(const Op *op)
{
    int in[2];
    if (op->attributes->gather.padded) return cornu__lite_op_refuse(op, "with padding");
    for (int i = 0; i < 2; i++) CORNU__TRY(cornu__lite_full(op, i, &in[i]));
    return cornu__lite_op_give(op, cornu__lite_node_of(
        op->to, CORNU_LITE_GATHER, in, 2, op->to->graph->tensors[in[0]].dtype, out_shape(op),
        NULL));
}

const CornuLiteOpRow cornu__lite_writers_products[] = {
    { CORNU_OP_CONV2D, conv2d },
    { CORNU_OP_GROUPED_CONV2D, grouped },
    { CORNU_OP_CONV2D_GRAD_INPUT, transposed },
    { CORNU_OP_MAX_POOL2D, max_pool },
    { CORNU_OP_AVERAGE_POOL2D, average_pool },
    { CORNU_OP_MATMUL, matmul },
    { CORNU_OP_SOFTMAX, softmax },
    { CORNU_OP_LOG_SOFTMAX, log_softmax },
    { CORNU_OP_ARGMAX, argmax },
    { CORNU_OP_ONE_HOT, one_hot },
    { CORNU_OP_GATHER, gather },
    { 0 },
};
