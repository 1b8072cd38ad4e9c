/* Operators that move elements, or compute with shapes, as ONNX nodes; and reductions. */
#include "onnx_internal.h"

#include "../../../device/memory_internal.h"

#include <limits.h>

typedef CornuLiteStepOnnx Step;

static int rank_of(const Step *step, int i) { return cornu__lite_operand(step, i)->shape.rank; }

static int integers(const Step *step, const int64_t *list, int count)
{
    return cornu__onnx_integers(step->to, list, count);
}

static int with_axis(const Step *step, const char *operator, int x, int64_t axis)
{
    return joined(step->to, operator, x, integers(step, &axis, 1));
}

/* ---- Shapes ---- */

/* To the shape of the second operand, computed or not, or that of the options. */
static CornuStatus reshape(const Step *step)
{
    int64_t shape[CORNU_MAX_RANK];
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const CornuLiteOptions *options = &step->op->options;
    for (int i = 0; i < options->extent_count; i++) shape[i] = options->extents[i];
    const int x = cornu__lite_value(step, 0);
    const int to = cornu__lite_operand(step, 1) ? cornu__lite_value(step, 1)
                                                : integers(step, shape, options->extent_count);
    return cornu__lite_give(step, joined(step->to, "Reshape", x, to));
}

static CornuStatus squeeze(const Step *step)
{
    const CornuLiteOptions *options = &step->op->options;
    int64_t                 axes[CORNU_MAX_RANK];
    int                     axis;
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    for (int i = 0; i < options->extent_count; i++) {
        CORNU__TRY(cornu__lite_axis(options->extents[i], rank_of(step, 0), &axis));
        axes[i] = axis;
    }
    const int x = cornu__lite_value(step, 0);
    if (!options->extent_count) return cornu__lite_give(step, one(step->to, "Squeeze", x));
    return cornu__lite_give(step, joined(step->to, "Squeeze", x,
                                         integers(step, axes, options->extent_count)));
}

static CornuStatus expand_dims(const Step *step)
{
    int64_t given;
    int     count, axis;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_list(step, 1, 1, &given, &count));
    CORNU__TRY(cornu__lite_axis(count ? given : 0, rank_of(step, 0) + 1, &axis));
    return cornu__lite_give(step, with_axis(step, "Unsqueeze", cornu__lite_value(step, 0), axis));
}

static CornuStatus transpose(const Step *step)
{
    int64_t order[CORNU_MAX_RANK], seen = 0;
    int     count;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, order, &count));
    for (int i = 0; i < count; i++)
        if (order[i] >= 0 && order[i] < count) seen |= INT64_C(1) << order[i];
    if (count != rank_of(step, 0) || seen != (INT64_C(1) << count) - 1)
        return cornu__fail(CORNU_ERR_FORMAT, "its order of axes is not a permutation");
    return cornu__lite_give(step, cornu__onnx_transpose(step->to, cornu__lite_value(step, 0), order,
                                                        count));
}

static CornuStatus shape(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0);
    return cornu__lite_give(step, cornu__onnx_node(step->to, "Shape", &x, 1, NULL, 0, 1));
}

/* ---- Parts ---- */

/* Rows before and after each axis, then, by PADV2, the value. */
static CornuStatus pad(const Step *step)
{
    int64_t   given[2 * CORNU_MAX_RANK], pads[2 * CORNU_MAX_RANK];
    int       count;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int rank = rank_of(step, 0);
    CORNU__TRY(cornu__lite_list(step, 1, 2 * CORNU_MAX_RANK, given, &count));
    if (count != 2 * rank)
        return cornu__fail(CORNU_ERR_FORMAT, "%d paddings of a tensor of rank %d", count, rank);
    for (int i = 0; i < rank; i++) {
        pads[i] = given[2 * i];
        pads[rank + i] = given[2 * i + 1];
    }
    int in[] = { cornu__lite_value(step, 0), 0, 0 };
    in[1] = integers(step, pads, 2 * rank);
    in[2] = cornu__lite_value(step, 2);
    return cornu__lite_give(step, cornu__onnx_node(step->to, "Pad", in, 3, NULL, 0, 1));
}

/* Elements from begin on, every stride-th, along all axes. */
static int slice_all(const Step *step, const int64_t *begin, const int64_t *end,
                     const int64_t *stride, int rank)
{
    int64_t axes[CORNU_MAX_RANK];
    int     in[5] = { cornu__lite_value(step, 0) };
    for (int i = 0; i < rank; i++) axes[i] = i;
    in[1] = integers(step, begin, rank);
    in[2] = integers(step, end, rank);
    in[3] = integers(step, axes, rank);
    in[4] = integers(step, stride, rank);
    return cornu__onnx_node(step->to, "Slice", in, 5, NULL, 0, 1);
}

static CornuStatus slice(const Step *step)
{
    int64_t begin[CORNU_MAX_RANK], size[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
    int     begins, sizes;
    CORNU__TRY(cornu__lite_expect(step, 3, -1));
    const int rank = rank_of(step, 0);
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, begin, &begins));
    CORNU__TRY(cornu__lite_list(step, 2, CORNU_MAX_RANK, size, &sizes));
    if (begins != rank || sizes != rank)
        return cornu__fail(CORNU_ERR_FORMAT, "%d begins and %d sizes of a tensor of rank %d",
                           begins, sizes, rank);
    for (int i = 0; i < rank; i++) {
        stride[i] = 1;
        size[i] = size[i] < 0 ? INT_MAX : begin[i] + size[i];
    }
    return cornu__lite_give(step, slice_all(step, begin, size, stride, rank));
}

/* Bits of the masks are axes: their begin or end does not count, or they have extent 1 and go. */
static CornuStatus strided_slice(const Step *step)
{
    const CornuLiteOptions *options = &step->op->options;
    int64_t begin[CORNU_MAX_RANK], end[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
    int64_t gone[CORNU_MAX_RANK];
    int     counts[3], gone_count = 0;
    CORNU__TRY(cornu__lite_expect(step, 4, -1));
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, begin, &counts[0]));
    CORNU__TRY(cornu__lite_list(step, 2, CORNU_MAX_RANK, end, &counts[1]));
    CORNU__TRY(cornu__lite_list(step, 3, CORNU_MAX_RANK, stride, &counts[2]));
    const int count = counts[0];
    if (count != counts[1] || count != counts[2] || count > rank_of(step, 0))
        return cornu__fail(CORNU_ERR_FORMAT, "%d begins, %d ends and %d strides of a tensor of "
                           "rank %d", counts[0], counts[1], counts[2], rank_of(step, 0));
    if (options->ellipsis_mask || options->new_axis_mask || options->offset)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "an ellipsis, a new axis or an offset");
    for (int i = 0; i < count; i++) {
        const bool back = stride[i] < 0, single = options->shrink_axis_mask >> i & 1;
        if (stride[i] == 0) return cornu__fail(CORNU_ERR_FORMAT, "a stride of 0");
        if (options->begin_mask >> i & 1) begin[i] = back ? INT_MAX : 0;
        if (options->end_mask >> i & 1) end[i] = back ? -INT_MAX : INT_MAX;
        if (!single) continue;
        gone[gone_count++] = i;
        end[i] = begin[i] == -1 ? INT_MAX : begin[i] + 1;
        stride[i] = 1;
    }
    int y = slice_all(step, begin, end, stride, count);
    if (gone_count) y = joined(step->to, "Squeeze", y, integers(step, gone, gone_count));
    return cornu__lite_give(step, y);
}

static CornuStatus reverse(const Step *step)
{
    int64_t axes, begin[CORNU_MAX_RANK], end[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int rank = rank_of(step, 0);
    CORNU__TRY(cornu__lite_axes(step, 1, rank, &axes));
    for (int i = 0; i < rank; i++) {
        const bool turned = axes >> i & 1;
        begin[i] = turned ? INT_MAX : 0;
        end[i] = turned ? -INT_MAX : INT_MAX;
        stride[i] = turned ? -1 : 1;
    }
    return cornu__lite_give(step, slice_all(step, begin, end, stride, rank));
}

static CornuStatus gather(const Step *step)
{
    int axis;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_axis(step->op->options.axis, rank_of(step, 0), &axis));
    if (step->op->options.batch_dims)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with batch_dims");
    int in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "Gather", in,
                                                   { .name = "axis", .whole = axis }));
}

/* ---- Several tensors ---- */

static CornuStatus join(const Step *step, bool stack)
{
    const CornuLiteOperator *op = step->op;
    int                      axis;
    CORNU__TRY(cornu__lite_expect(step, op->in_count ? op->in_count : 1, -1));
    CORNU__TRY(cornu__lite_axis(op->options.axis, rank_of(step, 0) + stack, &axis));
    int *in = cornu__allocate((size_t)op->in_count, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    for (int i = 0; i < op->in_count; i++) {
        in[i] = cornu__lite_value(step, i);
        if (stack) in[i] = with_axis(step, "Unsqueeze", in[i], axis);
    }
    const CornuOnnxAttribute attribute = { .name = "axis", .whole = axis };
    const int y = cornu__onnx_node(step->to, "Concat", in, op->in_count, &attribute, 1, 1);
    cornu__release(in);
    return cornu__lite_give(step, y);
}

static CornuStatus concatenation(const Step *step) { return join(step, false); }
static CornuStatus pack(const Step *step) { return join(step, true); }

/* Not by Split: layers of ONNX nodes have a limited number of results. */
static CornuStatus unpack(const Step *step)
{
    const CornuLiteOperator *op = step->op;
    int                      axis;
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    CORNU__TRY(cornu__lite_axis(op->options.axis, rank_of(step, 0), &axis));
    const int x = cornu__lite_value(step, 0);
    for (int i = 0; i < op->out_count; i++)
        cornu__lite_give_at(step, i,
                            with_axis(step, "Squeeze",
                                      cornu__onnx_slice(step->to, x, axis, i, i + 1), axis));
    return CORNU_OK;
}

/* The axis comes first. */
static CornuStatus split(const Step *step)
{
    const CornuLiteOperator *op = step->op;
    int64_t                  given;
    int                      count, axis;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_list(step, 0, 1, &given, &count));
    CORNU__TRY(cornu__lite_axis(count ? given : 0, rank_of(step, 1), &axis));
    const int parts = cornu__onnx_split(step->to, cornu__lite_value(step, 1), axis, op->out_count);
    for (int i = 0; i < op->out_count; i++) cornu__lite_give_at(step, i, parts + i);
    return CORNU_OK;
}

/* ---- Repeating ---- */

/* The operand that is repeated and the other, in the order of ONNX. */
static CornuStatus repeat(const Step *step, const char *operator, int x, int by)
{
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int value = cornu__lite_value(step, x);
    return cornu__lite_give(step, joined(step->to, operator, value, cornu__lite_value(step, by)));
}

static CornuStatus tile(const Step *step) { return repeat(step, "Tile", 0, 1); }
static CornuStatus broadcast_to(const Step *step) { return repeat(step, "Expand", 0, 1); }
static CornuStatus fill(const Step *step) { return repeat(step, "Expand", 1, 0); }

/* ---- Reductions ---- */

static CornuStatus reduce(const Step *step, const char *operator)
{
    int64_t axes;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    const int rank = rank_of(step, 0);
    CORNU__TRY(cornu__lite_axes(step, 1, rank, &axes));
    return cornu__lite_give(step, cornu__onnx_reduce(step->to, operator, cornu__lite_value(step, 0),
                                                     rank, axes, step->op->options.keep_dims));
}

static CornuStatus mean(const Step *step) { return reduce(step, "ReduceMean"); }
static CornuStatus sum(const Step *step) { return reduce(step, "ReduceSum"); }
static CornuStatus product(const Step *step) { return reduce(step, "ReduceProd"); }
static CornuStatus reduce_max(const Step *step) { return reduce(step, "ReduceMax"); }
static CornuStatus reduce_min(const Step *step) { return reduce(step, "ReduceMin"); }

const CornuLiteOnnxRow cornu__lite_onnx_shapes[] = {
    { CORNU_LITE_BROADCAST_TO, broadcast_to },
    { CORNU_LITE_CONCATENATION, concatenation },
    { CORNU_LITE_EXPAND_DIMS, expand_dims },
    { CORNU_LITE_FILL, fill },
    { CORNU_LITE_GATHER, gather },
    { CORNU_LITE_MEAN, mean },
    { CORNU_LITE_PACK, pack },
    { CORNU_LITE_PAD, pad },
    { CORNU_LITE_PADV2, pad },
    { CORNU_LITE_REDUCE_MAX, reduce_max },
    { CORNU_LITE_REDUCE_MIN, reduce_min },
    { CORNU_LITE_REDUCE_PROD, product },
    { CORNU_LITE_RESHAPE, reshape },
    { CORNU_LITE_REVERSE_V2, reverse },
    { CORNU_LITE_SHAPE, shape },
    { CORNU_LITE_SLICE, slice },
    { CORNU_LITE_SPLIT, split },
    { CORNU_LITE_SQUEEZE, squeeze },
    { CORNU_LITE_STRIDED_SLICE, strided_slice },
    { CORNU_LITE_SUM, sum },
    { CORNU_LITE_TILE, tile },
    { CORNU_LITE_TRANSPOSE, transpose },
    { CORNU_LITE_UNPACK, unpack },
    { 0 },
};
