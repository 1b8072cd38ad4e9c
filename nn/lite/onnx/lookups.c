/* Operators that look up, sort and count, as ONNX nodes. */
#include "onnx_internal.h"

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
    CORNU__TRY(cornu__lite_axis(step->op->options.axis, rank_of(step, 0), &axis));
    const int batch = step->op->options.batch_dims;
    if (batch) return gather_in_batches(step, axis, batch < 0 ? batch + rank_of(step, 1) : batch);
    int in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "Gather", in,
                                                   { .name = "axis", .whole = axis }));
}

/* The rows come first. */
static int embedding_lookup(const Step *step, const int *x)
{
    return joined(step->to, "Gather", x[1], x[0]);
}

/* Indices, what is added there, and the shape of the result. */
static int scatter_nd(const Step *step, const int *x)
{
    const int in[] = { cornu__lite_zeros(step, x[2]), x[0], x[1] };
    return CORNU__ONNX_NODE(step->to, "ScatterND", in, { .name = "reduction", .text = "add" });
}

/* ---- Sorting ---- */

static CornuStatus place_of(const Step *step)
{
    int axis;
    CORNU__TRY(cornu__lite_known_axis(step, 1, rank_of(step, 0), &axis));
    const int in[] = { cornu__lite_value(step, 0) };
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, step->row->whole, in,
                                                   { .name = "axis", .whole = axis },
                                                   { .name = "keepdims", .whole = 0 }));
}

static CornuStatus top_k(const Step *step)
{
    const int64_t flat = 1;
    int           in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    in[1] = joined(step->to, "Reshape", in[1], integers(step, &flat, 1));
    const CornuOnnxAttribute axis = { .name = "axis", .whole = -1 };
    const int y = cornu__onnx_node(step->to, "TopK", in, 2, &axis, 1, 2);
    for (int i = 0; i < step->op->out_count && i < 2; i++) cornu__lite_give_at(step, i, y + i);
    return CORNU_OK;
}

/* ---- Counting ---- */

/* Indices, the number of classes, the value at the index and that elsewhere. */
static int one_hot(const Step *step, const int *x)
{
    const int on = with_axis(step, "Unsqueeze", x[2], 0);
    const int off = with_axis(step, "Unsqueeze", x[3], 0);
    const int in[] = { x[0], x[1], concatenated(step, (const int[]){ off, on }, 2, 0) };
    return CORNU__ONNX_NODE(step->to, "OneHot", in,
                            { .name = "axis", .whole = step->op->options.axis });
}

static int cumulative_sum(const Step *step, const int *x)
{
    const int in[] = { x[0], x[1] };
    return CORNU__ONNX_NODE(step->to, "CumSum", in,
                            { .name = "exclusive", .whole = step->op->options.exclusive },
                            { .name = "reverse", .whole = step->op->options.reverse });
}

const CornuLiteOnnxRow cornu__lite_onnx_lookups[] = {
    { CORNU_LITE_ARG_MAX, 2, .rule = place_of, .whole = "ArgMax" },
    { CORNU_LITE_ARG_MIN, 2, .rule = place_of, .whole = "ArgMin" },
    { CORNU_LITE_CUMSUM, 2, .value = cumulative_sum },
    { CORNU_LITE_EMBEDDING_LOOKUP, 2, .value = embedding_lookup },
    { CORNU_LITE_GATHER, 2, .rule = gather },
    { CORNU_LITE_GATHER_ND, 2, .whole = "GatherND" },
    { CORNU_LITE_ONE_HOT, 4, .value = one_hot },
    { CORNU_LITE_SCATTER_ND, 3, .value = scatter_nd },
    { CORNU_LITE_TOPK_V2, 2, .rule = top_k },
    { 0 },
};
