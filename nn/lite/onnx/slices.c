/* Operators that take parts of tensors, and pad them, as ONNX nodes. */
#include "onnx_internal.h"

#include <limits.h>

enum { MOST_PARTS = 64 };

/* ---- Slices ---- */

/* Elements of x from begin on, every stride-th, along the axes; begin and end are vectors. NULL:
 * all of them, along the first axes. */
static int slice_along(const Step *step, int x, int begin, int end, const int64_t *axes,
                       const int64_t *stride, int count)
{
    int64_t first[CORNU_MAX_RANK], all[CORNU_MAX_RANK];
    int     in[5] = { x, begin, end };
    for (int i = 0; i < count; i++) first[i] = i, all[i] = 1;
    in[3] = integers(step, axes ? axes : first, count);
    in[4] = integers(step, stride ? stride : all, count);
    return cornu__onnx_node(step->to, "Slice", in, 5, NULL, 0, 1);
}

static int slice_all(const Step *step, const int64_t *begin, const int64_t *end,
                     const int64_t *stride, int rank)
{
    const int x = cornu__lite_value(step, 0);
    const int from = integers(step, begin, rank), to = integers(step, end, rank);
    return slice_along(step, x, from, to, NULL, stride, rank);
}

/* Of each element of a vector that of another in its place, where `replaced` has its bit. */
static int replaced_by(const Step *step, int vector, int64_t replaced, int other, int count)
{
    bool flags[CORNU_MAX_RANK];
    for (int i = 0; i < count; i++) flags[i] = replaced >> i & 1;
    const int mask = cornu__onnx_constant(step->to, cornu_array(flags, CORNU_BOOL, count));
    return selected(step->to, mask, other, vector);
}

/* Sizes below 0 reach to the end. */
static CornuStatus slice_computed(const Step *step)
{
    const int x = cornu__lite_value(step, 0), begin = cornu__lite_value(step, 1);
    const int size = cornu__lite_value(step, 2);
    const int open = two(step->to, "Less", size, whole_scalar(step, 0));
    const int end = two(step->to, "Add", begin, size);
    const int last = selected(step->to, open, whole_scalar(step, INT_MAX), end);
    return cornu__lite_give(step, slice_along(step, x, begin, last, NULL, NULL,
                                              rank_of(step, 0)));
}

static CornuStatus slice(const Step *step)
{
    int64_t begin[CORNU_MAX_RANK], size[CORNU_MAX_RANK];
    int     begins, sizes;
    const int rank = rank_of(step, 0);
    if (!cornu__lite_operand(step, 1)->data || !cornu__lite_operand(step, 2)->data)
        return slice_computed(step);
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, begin, &begins));
    CORNU__TRY(cornu__lite_list(step, 2, CORNU_MAX_RANK, size, &sizes));
    if (begins != rank || sizes != rank)
        return cornu__fail(CORNU_ERR_FORMAT, "%d begins and %d sizes of a tensor of rank %d",
                           begins, sizes, rank);
    for (int i = 0; i < rank; i++) size[i] = size[i] < 0 ? INT_MAX : begin[i] + size[i];
    return cornu__lite_give(step, slice_all(step, begin, size, NULL, rank));
}

/* What a strided slice says of axes: entry i is of axis axes[i], or a new one. */
typedef struct {
    int     count;                          /* entries that are of an axis */
    int64_t axes[CORNU_MAX_RANK];
    int     entries[CORNU_MAX_RANK];
    int64_t gone[CORNU_MAX_RANK], added[2 * CORNU_MAX_RANK];
    int     gone_count, added_count;        /* axes of extent 1, by the operand and the result */
} Entries;

static CornuStatus read_entries(const Step *step, int count, Entries *to)
{
    const CornuLiteOptions *options = &step->op->options;
    const int               rank = rank_of(step, 0);
    int                     axis = 0, place = 0, own = 0;
    bool                    seen = false;
    *to = (Entries){ .count = 0 };
    for (int i = 0; i < count; i++)
        own += !((options->ellipsis_mask | options->new_axis_mask) >> i & 1);
    for (int i = 0; i < count; i++) {
        if (options->ellipsis_mask >> i & 1) {
            if (seen) return cornu__fail(CORNU_ERR_FORMAT, "more than one ellipsis");
            seen = true;
            if (own < rank) axis += rank - own, place += rank - own;
        } else if (options->new_axis_mask >> i & 1) {
            to->added[to->added_count++] = place++;
        } else {
            if (axis >= rank)
                return cornu__fail(CORNU_ERR_FORMAT, "%d entries for a tensor of rank %d", count,
                                   rank);
            const bool single = options->shrink_axis_mask >> i & 1;
            if (single) to->gone[to->gone_count++] = axis;
            place += !single;
            to->entries[to->count] = i;
            to->axes[to->count++] = axis++;
        }
    }
    return CORNU_OK;
}

static CornuStatus give_entries(const Step *step, int y, const Entries *entries)
{
    if (entries->gone_count)
        y = joined(step->to, "Squeeze", y, integers(step, entries->gone, entries->gone_count));
    if (entries->added_count)
        y = joined(step->to, "Unsqueeze", y, integers(step, entries->added, entries->added_count));
    return cornu__lite_give(step, y);
}

/* Begins and ends that the graph computes, of shapes; strides are constants. */
static CornuStatus slice_by_shapes(const Step *step, const Entries *entries, const int64_t *stride,
                                   int count)
{
    const CornuLiteOptions *options = &step->op->options;
    int64_t                 first[CORNU_MAX_RANK], last[CORNU_MAX_RANK], ones[CORNU_MAX_RANK];
    if (entries->count != count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "an ellipsis or a new axis among computed ends");
    for (int i = 0; i < count; i++) {
        first[i] = stride[i] < 0 ? INT_MAX : 0;
        last[i] = stride[i] < 0 ? -INT_MAX : INT_MAX;
        ones[i] = 1;
    }
    const int x = cornu__lite_value(step, 0);
    int begin = cornu__lite_value(step, 1), end = integers(step, first, count);
    begin = replaced_by(step, begin, options->begin_mask, end, count);
    end = cornu__lite_value(step, 2);
    if (options->offset) end = two(step->to, "Add", begin, end);
    end = replaced_by(step, end, options->end_mask, integers(step, last, count), count);
    if (options->shrink_axis_mask) {
        const int after = two(step->to, "Add", begin, integers(step, ones, count));
        const int wraps = two(step->to, "Equal", after, whole_scalar(step, 0));
        const int stop = selected(step->to, wraps, whole_scalar(step, INT_MAX), after);
        end = replaced_by(step, end, options->shrink_axis_mask, stop, count);
    }
    return give_entries(step, slice_along(step, x, begin, end, entries->axes, stride, count),
                        entries);
}

static CornuStatus slice_by_constants(const Step *step, const Entries *entries, int64_t *stride,
                                      int count)
{
    const CornuLiteOptions *options = &step->op->options;
    int64_t begin[CORNU_MAX_RANK], end[CORNU_MAX_RANK], by[CORNU_MAX_RANK];
    int     begins, ends;
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, begin, &begins));
    CORNU__TRY(cornu__lite_list(step, 2, CORNU_MAX_RANK, end, &ends));
    if (count != begins || count != ends)
        return cornu__fail(CORNU_ERR_FORMAT, "%d begins, %d ends and %d strides", begins, ends,
                           count);
    for (int k = 0; k < entries->count; k++) {
        const int  i = entries->entries[k];   /* not before k */
        const bool back = stride[i] < 0, single = options->shrink_axis_mask >> i & 1;
        int64_t    from = begin[i], to = options->offset ? begin[i] + end[i] : end[i];
        if (stride[i] == 0) return cornu__fail(CORNU_ERR_FORMAT, "a stride of 0");
        if (options->begin_mask >> i & 1) from = back ? INT_MAX : 0;
        if (options->end_mask >> i & 1) to = back ? -INT_MAX : INT_MAX;
        if (single) to = from == -1 ? INT_MAX : from + 1;
        begin[k] = from;
        end[k] = to;
        by[k] = single ? 1 : stride[i];
    }
    if (!entries->count) return give_entries(step, cornu__lite_value(step, 0), entries);
    const int x = cornu__lite_value(step, 0), from = integers(step, begin, entries->count);
    const int to = integers(step, end, entries->count);
    return give_entries(step, slice_along(step, x, from, to, entries->axes, by, entries->count),
                        entries);
}

/* Bits of the masks are entries: their begin or end does not count, or their axis, of extent 1,
 * goes; or the entry stands for a new axis, or for all axes that no other entry names. */
static CornuStatus strided_slice(const Step *step)
{
    int64_t stride[CORNU_MAX_RANK];
    int     count;
    Entries entries;
    CORNU__TRY(cornu__lite_list(step, 3, CORNU_MAX_RANK, stride, &count));
    CORNU__TRY(read_entries(step, count, &entries));
    if (cornu__lite_operand(step, 1)->data && cornu__lite_operand(step, 2)->data)
        return slice_by_constants(step, &entries, stride, count);
    return slice_by_shapes(step, &entries, stride, count);
}

static CornuStatus reverse(const Step *step)
{
    int64_t axes, begin[CORNU_MAX_RANK], end[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
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

static CornuStatus reverse_sequence(const Step *step)
{
    int axis, batch;
    CORNU__TRY(cornu__lite_axis(step->op->options.axis, rank_of(step, 0), &axis));
    CORNU__TRY(cornu__lite_axis(step->op->options.batch_dims, rank_of(step, 0), &batch));
    int in[] = { cornu__lite_value(step, 0), 0 };
    in[1] = cornu__lite_value(step, 1);
    return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "ReverseSequence", in,
                                                   { .name = "time_axis", .whole = axis },
                                                   { .name = "batch_axis", .whole = batch }));
}

/* ---- Padding ---- */

/* Rows before and after each axis, as ONNX has them: all before, then all after. */
static int turned_pads(const Step *step, const int64_t *given, int rank)
{
    int64_t pads[2 * CORNU_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        pads[i] = given[2 * i];
        pads[rank + i] = given[2 * i + 1];
    }
    return integers(step, pads, 2 * rank);
}

static CornuStatus read_pads(const Step *step, int64_t *given)
{
    int       count;
    const int rank = rank_of(step, 0);
    CORNU__TRY(cornu__lite_list(step, 1, 2 * CORNU_MAX_RANK, given, &count));
    if (count != 2 * rank)
        return cornu__fail(CORNU_ERR_FORMAT, "%d paddings of a tensor of rank %d", count, rank);
    return CORNU_OK;
}

/* PADV2 has the value as well. */
static CornuStatus pad(const Step *step)
{
    int64_t       given[2 * CORNU_MAX_RANK];
    const int64_t flat = -1, order[] = { 1, 0 };
    int in[] = { cornu__lite_value(step, 0), 0, 0 };
    if (cornu__lite_operand(step, 1)->data) {
        CORNU__TRY(read_pads(step, given));
        in[1] = turned_pads(step, given, rank_of(step, 0));
    } else {
        const int pads = cornu__onnx_transpose(step->to, cornu__lite_value(step, 1), order, 2);
        in[1] = joined(step->to, "Reshape", pads, integers(step, &flat, 1));
    }
    in[2] = cornu__lite_value(step, 2);
    return cornu__lite_give(step, cornu__onnx_node(step->to, "Pad", in, 3, NULL, 0, 1));
}

/* `count` rows at the beginning or end of an axis, the last one first; of them the one on the edge
 * is part. */
static int mirrored_rows(const Step *step, int x, int axis, int64_t count, bool front)
{
    const int64_t begin = front ? count - 1 : -1, end = front ? -INT_MAX : -count - 1;
    const int64_t along = axis, back = -1;
    const int     from = integers(step, &begin, 1), to = integers(step, &end, 1);
    return slice_along(step, x, from, to, &along, &back, 1);
}

static CornuStatus mirror_pad(const Step *step)
{
    int64_t given[2 * CORNU_MAX_RANK];
    CORNU__TRY(read_pads(step, given));
    int x = cornu__lite_value(step, 0);
    if (step->op->options.mirror == 0) {
        const int in[] = { x, turned_pads(step, given, rank_of(step, 0)) };
        return cornu__lite_give(step, CORNU__ONNX_NODE(step->to, "Pad", in,
                                                       { .name = "mode", .text = "reflect" }));
    }
    for (int i = 0; i < rank_of(step, 0); i++) {   /* ONNX does not repeat the edge */
        int parts[3], count = 0;
        if (given[2 * i] > 0) parts[count++] = mirrored_rows(step, x, i, given[2 * i], true);
        parts[count++] = x;
        if (given[2 * i + 1] > 0)
            parts[count++] = mirrored_rows(step, x, i, given[2 * i + 1], false);
        if (count > 1) x = concatenated(step, parts, count, i);
    }
    return cornu__lite_give(step, x);
}

/* ---- Parts of an axis ---- */

/* Not by Split: layers of ONNX nodes have a limited number of results. */
static CornuStatus unpack(const Step *step)
{
    const CornuLiteOperator *op = step->op;
    int                      axis;
    CORNU__TRY(cornu__lite_axis(op->options.axis, rank_of(step, 0), &axis));
    const int x = cornu__lite_value(step, 0);
    for (int i = 0; i < op->out_count; i++)
        cornu__lite_give_at(step, i, with_axis(step, "Squeeze", cornu__onnx_slice(
            step->to, x, axis, i, i + 1), axis));
    return CORNU_OK;
}

/* The axis comes first. */
static CornuStatus split(const Step *step)
{
    int axis;
    CORNU__TRY(cornu__lite_known_axis(step, 0, rank_of(step, 1), &axis));
    const int count = step->op->out_count;
    const int parts = cornu__onnx_split(step->to, cornu__lite_value(step, 1), axis, count);
    for (int i = 0; i < count; i++) cornu__lite_give_at(step, i, parts + i);
    return CORNU_OK;
}

/* One size may be -1, what is left: what comes after it is counted from the end. */
static CornuStatus read_sizes(const Step *step, int64_t *size, int *open, int64_t *rest)
{
    int count;
    CORNU__TRY(cornu__lite_list(step, 1, MOST_PARTS, size, &count));
    if (count != step->op->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "%d sizes for %d results", count,
                           step->op->out_count);
    *open = -1;
    *rest = 0;
    for (int i = 0; i < count; i++) {
        if (size[i] < -1 || (size[i] == -1 && *open >= 0))
            return cornu__fail(CORNU_ERR_FORMAT, "a size of %lld", (long long)size[i]);
        if (size[i] == -1) *open = i;
        else if (*open >= 0) *rest += size[i];
    }
    return CORNU_OK;
}

static CornuStatus split_v(const Step *step)
{
    int64_t       size[MOST_PARTS], begin = 0, rest = 0;
    int           axis, open = -1;
    CORNU__TRY(read_sizes(step, size, &open, &rest));
    CORNU__TRY(cornu__lite_known_axis(step, 2, rank_of(step, 0), &axis));
    const int64_t along = axis;
    const int     x = cornu__lite_value(step, 0);
    for (int i = 0; i < step->op->out_count; i++) {
        int64_t end = i == open ? (rest ? -rest : INT_MAX) : begin + size[i];
        if (open >= 0 && i > open && end >= 0) end = INT_MAX;
        const int from = integers(step, &begin, 1), to = integers(step, &end, 1);
        cornu__lite_give_at(step, i, slice_along(step, x, from, to, &along, NULL, 1));
        begin = end;
    }
    return CORNU_OK;
}

const CornuLiteOnnxRow cornu__lite_onnx_slices[] = {
    { CORNU_LITE_MIRROR_PAD, 2, .rule = mirror_pad },
    { CORNU_LITE_PAD, 2, .rule = pad },
    { CORNU_LITE_PADV2, 2, .rule = pad },
    { CORNU_LITE_REVERSE_SEQUENCE, 2, .rule = reverse_sequence },
    { CORNU_LITE_REVERSE_V2, 2, .rule = reverse },
    { CORNU_LITE_SLICE, 3, .rule = slice },
    { CORNU_LITE_SPLIT, 2, .rule = split },
    { CORNU_LITE_SPLIT_V, 3, .rule = split_v },
    { CORNU_LITE_STRIDED_SLICE, 4, .rule = strided_slice },
    { CORNU_LITE_UNPACK, 1, .rule = unpack },
    { 0 },
};
