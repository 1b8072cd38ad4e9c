/* Layers that merge several tensors into one. */
#include "rules_internal.h"

/* ---- Element by element ---- */

/* Tensors of lower rank get axes of extent 1 after the batch. */
static int raised(const CornuOnnxCall *call, int i)
{
    const CornuShape shape = call->shapes[i];
    const int        rank = call->results[0].rank, ahead = rank - shape.rank;
    CornuShape       to = { .rank = rank };
    if (!ahead) return call->in[i];
    for (int k = 1; k < rank; k++) to.extent[k] = k <= ahead ? 1 : shape.extent[k - ahead];
    return cornu__onnx_reshape(call->to, call->in[i], to);
}

/* A step counts if it does in any input; if an input has no mask, nor has the result. */
static int any_mask(const CornuOnnxCall *call)
{
    int any = call->masks[0];
    for (int i = 1; i < call->in_count && any; i++)
        any = call->masks[i] ? two(call->to, "Or", any, call->masks[i]) : CORNU_ONNX_NONE;
    return any;
}

static CornuStatus combine(const CornuOnnxCall *call, const char *operator)
{
    int y = raised(call, 0);
    for (int i = 1; i < call->in_count; i++) y = two(call->to, operator, y, raised(call, i));
    *call->out = y;
    *call->out_masks = any_mask(call);
    return CORNU_OK;
}

static CornuStatus add(const CornuOnnxCall *call) { return combine(call, "Add"); }
static CornuStatus subtract(const CornuOnnxCall *call) { return combine(call, "Sub"); }

/* The mask of input i, if that is (B, T, C). */
static int of_steps(const CornuOnnxCall *call, int i)
{
    return call->shapes[i].rank == 3 ? call->masks[i] : CORNU_ONNX_NONE;
}

/* x, (B, T, C), and y where its mask, if there is one, leaves it out. */
static int within(const CornuOnnxCall *call, int mask, int x, int y)
{
    if (!mask) return x;
    CornuShape steps = call->results[0];
    steps.extent[2] = 1;
    return selected(call->to, cornu__onnx_reshape(call->to, mask, steps), x, y);
}

/* Outside of its mask a factor is 1; the product is 0 where all factors are masked. */
static CornuStatus multiply(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    int        in[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < call->in_count; i++)
        in[i] = within(call, of_steps(call, i), call->in[i], cornu__onnx_scalar(to, 1.0));
    CornuOnnxCall factors = *call;
    factors.in = in;
    CORNU__TRY(combine(&factors, "Mul"));
    if (call->results[0].rank == 3)
        *call->out = within(call, *call->out_masks, *call->out, cornu__onnx_scalar(to, 0.0));
    return CORNU_OK;
}

/* One after another, with what a mask leaves out as the other one. */
static CornuStatus pick(const CornuOnnxCall *call, const char *operator)
{
    int y = raised(call, 0), y_mask = of_steps(call, 0);
    for (int i = 1; i < call->in_count; i++) {
        const int mask = of_steps(call, i), x = within(call, mask, raised(call, i), y);
        y = two(call->to, operator, within(call, y_mask, y, x), x);
        y_mask = mask && y_mask ? two(call->to, "Or", y_mask, mask) : CORNU_ONNX_NONE;
    }
    *call->out = y;
    *call->out_masks = any_mask(call);
    return CORNU_OK;
}

static CornuStatus maximum(const CornuOnnxCall *call) { return pick(call, "Max"); }
static CornuStatus minimum(const CornuOnnxCall *call) { return pick(call, "Min"); }

static CornuStatus average(const CornuOnnxCall *call)
{
    CORNU__TRY(combine(call, "Add"));
    *call->out = scaled(call->to, *call->out, 1.0 / call->in_count);
    return CORNU_OK;
}

static CornuStatus custom_scale(const CornuOnnxCall *call)
{
    *call->out = two(call->to, "Add", call->in[0],
                     scaled(call->to, call->in[1], number(call->layer, "scale")));
    return CORNU_OK;
}

/* ---- Concatenation ---- */

static int concat(CornuOnnx *to, const int *in, int count, int64_t axis)
{
    const CornuOnnxAttribute attribute = { .name = "axis", .whole = axis };
    return cornu__onnx_node(to, "Concat", in, count, &attribute, 1, 1);
}

/* The mask of input i, (B, T); all true if it has none. */
static int mask_of(const CornuOnnxCall *call, int i)
{
    CornuOnnx *to = call->to;
    if (call->masks[i]) return call->masks[i];
    const int steps = cornu__onnx_part_of_shape(to, call->in[i], "end", 2);
    const int counts = cast(to, cornu__onnx_scalar(to, 1.0), CORNU_ONNX_BOOL);
    return joined(to, "Expand", counts, steps);
}

/* Along the time axis masks are concatenated too; along the last axis a step counts if it does in
 * any input. All steps of an input without a mask count. */
static int concat_masks(const CornuOnnxCall *call, int axis)
{
    int  masks[CORNU_MAX_LAYER_TENSORS];
    bool masked = false;
    for (int i = 0; i < call->in_count; i++) masked |= call->masks[i] != CORNU_ONNX_NONE;
    if (!masked || call->shapes[0].rank < 3 || (axis != 1 && axis != call->shapes[0].rank - 1))
        return CORNU_ONNX_NONE;
    for (int i = 0; i < call->in_count; i++) masks[i] = mask_of(call, i);
    if (axis == 1) return concat(call->to, masks, call->in_count, 1);
    for (int i = 1; i < call->in_count; i++) masks[0] = two(call->to, "Or", masks[0], masks[i]);
    return masks[0];
}

static int from_front(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

static CornuStatus concatenate(const CornuOnnxCall *call)
{
    const int rank = call->shapes[0].rank, axis = from_front(whole(call->layer, "axis"), rank);
    int       lying[CORNU_MAX_LAYER_TENSORS];
    int64_t   order[CORNU_MAX_RANK];
    cornu__onnx_lying(call->to, call->in, call->in_count, lying, order);
    *call->out = cornu__onnx_transpose(
        call->to, concat(call->to, lying, call->in_count, order[axis]), order, rank);
    *call->out_masks = concat_masks(call, axis);
    return CORNU_OK;
}

/* ---- Products ---- */

/* x as (B, rest, n), or with `first` (B, n, rest): axis n, and all others as one. */
static int as_matrices(CornuOnnx *to, int x, CornuShape shape, int axis, bool first)
{
    int64_t    order[CORNU_MAX_RANK] = { 0 }, rest = 1;
    int        count = 1;
    if (first) order[count++] = axis;
    for (int i = 1; i < shape.rank; i++) {
        if (i == axis) continue;
        order[count++] = i;
        rest = cornu__onnx_times(to, rest, shape.extent[i]);
    }
    if (!first) order[count] = axis;
    const int64_t n = shape.extent[axis];
    return cornu__onnx_reshape(to, cornu__onnx_transpose(to, x, order, shape.rank),
                               first ? cornu_shape(0, n, rest) : cornu_shape(0, rest, n));
}

static CornuStatus dot(const CornuOnnxCall *call)
{
    const int64_t *axes = cornu__layer_argument(call->layer, "axes");
    int            x[2];
    for (int i = 0; i < 2; i++) {
        const CornuShape shape = call->shapes[i];
        const int        axis = from_front(axes[i], shape.rank);
        x[i] = flag(call->layer, "normalize")
            ? cornu__onnx_unit(call->to, call->in[i], shape.rank, INT64_C(1) << axis)
            : call->in[i];
        x[i] = as_matrices(call->to, x[i], shape, axis, i == 1);
    }
    *call->out = cornu__onnx_reshape(call->to, joined(call->to, "MatMul", x[0], x[1]),
                                     call->results[0]);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_merges[] = {
    { "Add", add },
    { "Average", average },
    { "Concatenate", concatenate },
    { "CustomScaleLayer", custom_scale },
    { "Dot", dot },
    { "Maximum", maximum },
    { "Minimum", minimum },
    { "Multiply", multiply },
    { "Subtract", subtract },
    { 0 },
};
