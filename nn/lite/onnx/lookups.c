/* Operators that look up, sort and count, as ONNX nodes. */
#include "onnx_internal.h"

typedef CornuLiteStepOnnx Step;

static int rank_of(const Step *step, int i) { return cornu__lite_operand(step, i)->shape.rank; }

static int with_axis(const Step *step, const char *operator, int x, int64_t axis)
{
    return joined(step->to, operator, x, cornu__onnx_integers(step->to, &axis, 1));
}

static CornuStatus known_axis(const Step *step, int i, int rank, int *axis)
{
    int64_t given;
    int     count;
    CORNU__TRY(cornu__lite_list(step, i, 1, &given, &count));
    return cornu__lite_axis(count ? given : 0, rank, axis);
}

/* ---- Gathering ---- */

/* An axis in front of or behind another one. */
static int moved_axis(const Step *step, int x, int rank, int from, int to)
{
    int64_t order[CORNU_MAX_RANK];
    int     at = 0;
    for (int i = 0; i < rank; i++) {
        if (at == from) at++;
        order[i] = i == to ? from : at++;
    }
    return cornu__onnx_transpose(step->to, x, order, rank);
}

/* The first axes are those of a batch, which both have: the index within it becomes an axis of the
 * indices. x has the axis right after the batch then, and the result those of the indices. */
static CornuStatus gather_in_batches(const Step *step, int axis, int batch)
{
    const int rank = rank_of(step, 0), indices = rank_of(step, 1);
    int       x = cornu__lite_value(step, 0);
    if (batch < 0 || batch > axis || batch > indices || rank + indices - batch > CORNU_MAX_RANK + 1)
        return cornu__fail(CORNU_ERR_FORMAT, "%d axes of a batch, of tensors of rank %d and %d",
                           batch, rank, indices);
    x = moved_axis(step, x, rank, axis, batch);
    int in[] = { x, 0 };
    in[1] = with_axis(step, "Unsqueeze", cornu__lite_value(step, 1), indices);
    int y = CORNU__ONNX_NODE(step->to, "GatherND", in, { .name = "batch_dims", .whole = batch });
    for (int i = batch; i < axis; i++)   /* the axes that were between the batch and this one */
        y = moved_axis(step, y, rank + indices - batch - 1, indices + i - batch, i);
    return cornu__lite_give(step, y);
}

static CornuStatus gather(const Step *step)
{
    int axis;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_axis(step->op->options.axis, rank_of(step, 0), &axis));
    const int batch = step->op->options.batch_dims;
    if (batch) return gather_in_batches(step, axis, batch < 0 ? batch + rank_of(step, 1) : batch);
    int in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "Gather", in,
                                                   { .name = "axis", .whole = axis }));
}

/* The rows come first. */
static CornuStatus embedding_lookup(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int rows = cornu__lite_value(step, 0), table = cornu__lite_value(step, 1);
    return cornu__lite_give(step, joined(step->to, "Gather", table, rows));
}

static CornuStatus gather_nd(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int x = cornu__lite_value(step, 0), at = cornu__lite_value(step, 1);
    return cornu__lite_give(step, joined(step->to, "GatherND", x, at));
}

/* Indices, what is added there, and the shape of the result. */
static CornuStatus scatter_nd(const Step *step)
{
    const int64_t none = 0;
    CORNU__TRY(cornu__lite_expect(step, 3, -1));
    const int zero = cornu__lite_onnx_dtype(cornu__lite_result(step)->dtype) == CORNU_I64
        ? cornu__onnx_constant(step->to, cornu_array_from((void *)&none, cornu_scalar(CORNU_I64)))
        : cornu__onnx_scalar(step->to, 0.0);
    int in[] = { joined(step->to, "Expand", zero, cornu__lite_value(step, 2)), 0, 0 };
    in[1] = cornu__lite_value(step, 0);
    in[2] = cornu__lite_value(step, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "ScatterND", in,
                                                   { .name = "reduction", .text = "add" }));
}

/* ---- Sorting ---- */

static CornuStatus place_of(const Step *step, const char *operator)
{
    int axis;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(known_axis(step, 1, rank_of(step, 0), &axis));
    const int in[] = { cornu__lite_value(step, 0) };
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, operator, in,
                                                   { .name = "axis", .whole = axis },
                                                   { .name = "keepdims", .whole = 0 }));
}

static CornuStatus arg_max(const Step *step) { return place_of(step, "ArgMax"); }
static CornuStatus arg_min(const Step *step) { return place_of(step, "ArgMin"); }

static CornuStatus top_k(const Step *step)
{
    const int64_t flat = 1;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    int in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    in[1] = joined(step->to, "Reshape", in[1], cornu__onnx_integers(step->to, &flat, 1));
    const CornuOnnxAttribute axis = { .name = "axis", .whole = -1 };
    const int y = cornu__onnx_node(step->to, "TopK", in, 2, &axis, 1, 2);
    for (int i = 0; i < step->op->out_count && i < 2; i++) cornu__lite_give_at(step, i, y + i);
    return CORNU_OK;
}

/* ---- Counting ---- */

/* Indices, the number of classes, the value at the index and that elsewhere. */
static CornuStatus one_hot(const Step *step)
{
    const CornuOnnxAttribute along = { .name = "axis", .whole = 0 };
    CORNU__TRY(cornu__lite_expect(step, 4, -1));
    int in[] = { cornu__lite_value(step, 0), 0, 0 };
    in[1] = cornu__lite_value(step, 1);
    const int on = with_axis(step, "Unsqueeze", cornu__lite_value(step, 2), 0);
    const int off = with_axis(step, "Unsqueeze", cornu__lite_value(step, 3), 0);
    in[2] = cornu__onnx_node(step->to, "Concat", (const int[]){ off, on }, 2, &along, 1, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "OneHot", in,
                                                   { .name = "axis",
                                                     .whole = step->op->options.axis }));
}

static CornuStatus cumulative_sum(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    int in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "CumSum", in,
                                                   { .name = "exclusive",
                                                     .whole = step->op->options.exclusive },
                                                   { .name = "reverse",
                                                     .whole = step->op->options.reverse }));
}

const CornuLiteOnnxRow cornu__lite_onnx_lookups[] = {
    { CORNU_LITE_ARG_MAX, arg_max },
    { CORNU_LITE_ARG_MIN, arg_min },
    { CORNU_LITE_CUMSUM, cumulative_sum },
    { CORNU_LITE_EMBEDDING_LOOKUP, embedding_lookup },
    { CORNU_LITE_GATHER, gather },
    { CORNU_LITE_GATHER_ND, gather_nd },
    { CORNU_LITE_ONE_HOT, one_hot },
    { CORNU_LITE_SCATTER_ND, scatter_nd },
    { CORNU_LITE_TOPK_V2, top_k },
    { 0 },
};
