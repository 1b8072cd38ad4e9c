/* Operators that arrange elements anew without looking at them. */
#include "../run_internal.h"

static CornuStatus read_reshape(CornuReadStep *step)
{
    int64_t    to[CORNU_MAX_RANK];
    int        rank;
    CornuTensor *x = cornu__operand_of(step, 0);
    CORNU__TRY(cornu__list_of(step, "shape", 1, to, CORNU_MAX_RANK, &rank));
    if (rank < 0) return cornu__fail(CORNU_ERR_FORMAT, "the shape is missing");
    const bool zeros = cornu__whole(step, "allowzero", 0);
    const int64_t count = cornu_type_count(cornu_tensor_type(x));
    int64_t known = 1;
    int     open = -1;
    for (int i = 0; i < rank; i++) {
        if (to[i] == 0 && !zeros && i < cornu__rank_of(x)) to[i] = cornu__extent_of(x, i);
        if (to[i] == -1 && open < 0) open = i;
        else if (to[i] < 0 || (to[i] > 0 && known > INT64_MAX / to[i]))
            return cornu__fail(CORNU_ERR_SHAPE, "extent %d of the shape is %lld", i,
                               (long long)to[i]);
        else known *= to[i];
    }
    if (open >= 0) to[open] = known > 0 ? count / known : 0;
    return cornu__result(step, 0, cornu__reshaped(x, rank, to));
}

static CornuStatus read_flatten(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      extents[2] = { 1, 1 };
    const int rank = cornu__rank_of(x);
    int64_t   axis = cornu__whole(step, "axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank) return cornu__fail(CORNU_ERR_SHAPE, "axis %lld", (long long)axis);
    for (int i = 0; i < rank; i++) extents[i >= axis] *= cornu__extent_of(x, i);
    return cornu__result(step, 0, cornu__reshaped(x, 2, extents));
}

static CornuStatus read_squeeze(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      extents[CORNU_MAX_RANK], axes;
    int          left = 0;
    const int rank = cornu__rank_of(x);
    CORNU__TRY(cornu__axes_of(step, "axes", 1, rank, -1, &axes));
    for (int i = 0; i < rank; i++) {
        const int64_t extent = cornu__extent_of(x, i);
        if (axes >= 0 && axes >> i & 1 && extent != 1)
            return cornu__fail(CORNU_ERR_SHAPE, "axis %d has extent %lld, expected 1", i,
                               (long long)extent);
        if (axes < 0 ? extent != 1 : !(axes >> i & 1)) extents[left++] = extent;
    }
    return cornu__result(step, 0, cornu__reshaped(x, left, extents));
}

static CornuStatus read_unsqueeze(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      extents[CORNU_MAX_RANK], axes, given[CORNU_MAX_RANK];
    int          count = -1, from = 0;
    CORNU__TRY(cornu__list_of(step, "axes", 1, given, CORNU_MAX_RANK, &count));
    const int rank = cornu__rank_of(x) + (count > 0 ? count : 0);
    if (rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the result has rank %d, expected at most %d",
                           rank, CORNU_MAX_RANK);
    CORNU__TRY(cornu__axes_of(step, "axes", 1, rank, 0, &axes));
    for (int i = 0; i < rank; i++) {
        if (!(axes >> i & 1) && from == cornu__rank_of(x))
            return cornu__fail(CORNU_ERR_SHAPE, "axes are repeated");
        extents[i] = axes >> i & 1 ? 1 : cornu__extent_of(x, from++);
    }
    return cornu__result(step, 0, cornu__reshaped(x, rank, extents));
}

static CornuStatus read_transpose(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      perm[CORNU_MAX_RANK];
    int          order[CORNU_MAX_RANK], count;
    CORNU__TRY(cornu__integers(step, "perm", perm, CORNU_MAX_RANK, &count));
    const int rank = cornu__rank_of(x);
    if (count > 0 && count != rank)
        return cornu__fail(CORNU_ERR_SHAPE, "perm has %d axes of %d", count, rank);
    for (int i = 0; i < rank; i++) {
        if (count <= 0) order[i] = rank - 1 - i;
        else CORNU__TRY(cornu__axis_of(perm[i], rank, &order[i]));
    }
    return cornu__result(step, 0, rank > 1 ? cornu_op_transpose(x, order) : x);
}

static CornuStatus read_expand(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    CornuShape   shape = { 0 };
    CORNU__TRY(cornu__known_integers(step, 1, shape.extent, CORNU_MAX_RANK, &shape.rank));
    const CornuShape from = cornu_tensor_shape(x);
    int64_t          extents[CORNU_MAX_RANK];
    if (shape.rank < from.rank) {
        for (int i = 0; i < from.rank; i++)
            extents[i] = i < from.rank - shape.rank ? 1
                                                    : shape.extent[i - (from.rank - shape.rank)];
        shape = cornu_shape_from(from.rank, extents);
    }
    for (int i = 1; i <= from.rank; i++) {
        int64_t *extent = &shape.extent[shape.rank - i];
        if (*extent == 1) *extent = from.extent[from.rank - i];
    }
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] < 0)
            return cornu__fail(CORNU_ERR_SHAPE, "extent %d of the shape is %lld", i,
                               (long long)shape.extent[i]);
    return cornu__result(step, 0, cornu_op_broadcast(x, shape));
}

static CornuStatus read_tile(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      repeats[CORNU_MAX_RANK];
    int          count;
    CORNU__TRY(cornu__known_integers(step, 1, repeats, CORNU_MAX_RANK, &count));
    if (count != cornu__rank_of(x))
        return cornu__fail(CORNU_ERR_SHAPE, "%d repeats for %d axes", count, cornu__rank_of(x));
    /* The repeats are a new axis before the axis. */
    for (int i = 0; i < count && x; i++) {
        if (repeats[i] == 1) continue;
        if (repeats[i] < 1) return cornu__cannot("a repeat below 1", "it leaves nothing");
        CornuShape shape = cornu_tensor_shape(x), more = { 3, { 1, 1, 1 } }, wide;
        for (int k = 0; k < shape.rank; k++) more.extent[k < i ? 0 : 2] *= shape.extent[k];
        wide = more;
        wide.extent[1] = repeats[i];
        if (shape.extent[i] > INT64_MAX / repeats[i]) return cornu__cannot("Tile", "it overflows");
        shape.extent[i] *= repeats[i];
        x = cornu_op_reshape(cornu_op_broadcast(cornu_op_reshape(x, more), wide), shape);
    }
    return cornu__result(step, 0, x);
}

/* Empty operands add nothing; they may even have another rank. */
static CornuStatus read_concat(CornuReadStep *step)
{
    CornuTensor *parts[CORNU_MAX_RANK * 8];
    CornuTensor *all = NULL;
    int          axis, count = 0;
    for (int i = 0; i < step->in_count; i++) {
        CornuTensor *x = cornu__operand_of(step, i);
        if (!x) return cornu_error_take();
        if (cornu_type_count(cornu_tensor_type(x)) == 0 && i + 1 < step->in_count) continue;
        CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x), &axis));
        if (cornu_type_count(cornu_tensor_type(x)) == 0 && count) continue;
        parts[count++] = x;
        if (count < (int)(sizeof parts / sizeof *parts) && i + 1 < step->in_count) continue;
        all = count > 1 ? cornu_op_concat(parts, count, axis) : parts[0];
        parts[0] = all;
        count = 1;
    }
    if (!all && count) all = count > 1 ? cornu_op_concat(parts, count, axis) : parts[0];
    return cornu__result(step, 0, all);
}

static CornuStatus read_split(CornuReadStep *step)
{
    enum { MOST = 1024 };
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      sizes[MOST], at = 0;
    int          axis, count = -1;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x), &axis));
    CORNU__TRY(cornu__list_of(step, "split", 1, sizes, MOST, &count));
    const int64_t extent = cornu__extent_of(x, axis);
    if (count < 0) {
        count = (int)cornu__whole(step, "num_outputs", step->out_count);
        if (count < 1 || count > MOST) return cornu__fail(CORNU_ERR_FORMAT, "%d outputs", count);
        const int64_t chunk = (extent + count - 1) / count;
        for (int i = 0; i < count; i++)
            sizes[i] = extent - i * chunk < chunk ? extent - i * chunk : chunk;
    }
    if (count != step->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "%d sizes for %d outputs", count, step->out_count);
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 0 || sizes[i] > extent - at)
            return cornu__fail(CORNU_ERR_SHAPE, "part %d has %lld of %lld elements", i,
                               (long long)sizes[i], (long long)extent);
        CORNU__TRY(cornu__result(step, i, cornu__part_of(x, axis, at, sizes[i])));
        at += sizes[i];
    }
    return CORNU_OK;
}

static int64_t clamped(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Up to opset 9 starts, ends and axes are attributes. */
static CornuStatus read_slice(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      starts[CORNU_MAX_RANK], ends[CORNU_MAX_RANK], axes[CORNU_MAX_RANK];
    int64_t      steps[CORNU_MAX_RANK];
    int          count, end_count, axis_count, step_count = -1;
    CORNU__TRY(cornu__list_of(step, "starts", 1, starts, CORNU_MAX_RANK, &count));
    CORNU__TRY(cornu__list_of(step, "ends", 2, ends, CORNU_MAX_RANK, &end_count));
    CORNU__TRY(cornu__list_of(step, "axes", 3, axes, CORNU_MAX_RANK, &axis_count));
    CORNU__TRY(cornu__known_integers(step, 4, steps, CORNU_MAX_RANK, &step_count));
    if (count != end_count || (axis_count >= 0 && axis_count != count) ||
        (step_count >= 0 && step_count != count) || count > cornu__rank_of(x))
        return cornu__fail(CORNU_ERR_FORMAT, "%d starts, %d ends, %d axes", count, end_count,
                           axis_count);
    for (int i = 0; i < count && x; i++) {
        int axis;
        CORNU__TRY(cornu__axis_of(axis_count < 0 ? i : axes[i], cornu__rank_of(x), &axis));
        const int64_t extent = cornu__extent_of(x, axis), by = step_count < 0 ? 1 : steps[i];
        if (by == 0 || by < -INT32_MAX || by > INT64_MAX / 2)
            return cornu__fail(CORNU_ERR_FORMAT, "a step of %lld", (long long)by);
        int64_t begin = starts[i] < 0 && starts[i] >= -extent ? starts[i] + extent : starts[i];
        int64_t end = ends[i] < 0 && ends[i] >= -extent ? ends[i] + extent : ends[i];
        if (by > 0) {
            begin = clamped(begin, 0, extent);
            end = clamped(end, begin, extent);
            const int64_t stride = by > extent ? extent + 1 : by;
            x = cornu__strided(x, axis, begin, (end - begin + stride - 1) / stride, stride);
            continue;
        }
        begin = clamped(begin, -1, extent - 1);
        end = clamped(end, -1, begin);
        const int64_t stride = -by > extent ? extent + 1 : -by;
        const int64_t taken = (begin - end + stride - 1) / stride;
        x = !taken ? cornu__part_of(x, axis, 0, 0)
                   : cornu__strided(cornu_op_flip(x, axis), axis, extent - 1 - begin, taken,
                                    stride);
    }
    return cornu__result(step, 0, x);
}

/* ---- Padding ---- */

/* One axis by elements of x itself: reflect and wrap take at most its extent at a time. */
static CornuTensor *pad_by(CornuTensor *x, int axis, int64_t low, int64_t high, const char *mode)
{
    while (x && (low > 0 || high > 0)) {
        const int64_t n = cornu__extent_of(x, axis);
        const int64_t most = mode[0] == 'r' ? n - 1 : mode[0] == 'e' ? INT32_MAX : n;
        const int64_t before = low < most ? low : most, after = high < most ? high : most;
        CornuTensor  *parts[3] = { NULL, x, NULL };
        if (most < 1)
            return cornu__fail_null(CORNU_ERR_SHAPE, "%lld elements cannot be padded by %s",
                                    (long long)n, mode);
        if (mode[0] == 'r') {
            parts[0] = cornu_op_flip(cornu__part_of(x, axis, 1, before), axis);
            parts[2] = cornu_op_flip(cornu__part_of(x, axis, n - 1 - after, after), axis);
        } else if (mode[0] == 'w') {
            parts[0] = cornu__part_of(x, axis, n - before, before);
            parts[2] = cornu__part_of(x, axis, 0, after);
        } else {
            CornuShape first = cornu_tensor_shape(x), last = first;
            first.extent[axis] = before;
            last.extent[axis] = after;
            parts[0] = cornu_op_broadcast(cornu__part_of(x, axis, 0, 1), first);
            parts[2] = cornu_op_broadcast(cornu__part_of(x, axis, n - 1, 1), last);
        }
        CornuTensor *used[3];
        int          count = 0;
        for (int i = 0; i < 3; i++)
            if (i == 1 || (i == 0 ? before : after) > 0) used[count++] = parts[i];
        x = cornu_op_concat(used, count, axis);
        low -= before;
        high -= after;
    }
    return x;
}

/* Padded with zeros, and there the number of operand 2, which is computed. */
static CornuTensor *pad_with_operand(CornuReadStep *step, CornuTensor *x, const int64_t *low,
                                     const int64_t *high)
{
    CornuTensor *value = cornu__operand_of(step, 2);
    const CornuType mask = cornu_type_from(CORNU_F32, cornu_tensor_shape(x));
    CornuTensor    *own = cornu_op_pad(cornu_op_constant(step->run->graph, mask, 1.0), low, high,
                                       0.0);
    CornuTensor    *y = cornu_op_pad(x, low, high, 0.0);
    value = cornu_op_broadcast(cornu_op_reshape(value, cornu_shape_from(0, NULL)),
                               cornu_tensor_shape(y));
    return cornu_op_select(cornu_op_compare(own, CORNU_GREATER, cornu_op_constant_like(own, 0.5)),
                           y, value);
}

static CornuStatus read_pad(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    const char  *mode = cornu__word(step, "mode", "constant");
    int64_t      pads[2 * CORNU_MAX_RANK], axes[CORNU_MAX_RANK];
    int64_t      low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    int          count, axis_count = -1;
    double       value = cornu__real(step, "value", 0.0);
    const bool   computed = cornu__given(step, 2) && !step->in[2].known.data;
    CORNU__TRY(cornu__list_of(step, "pads", 1, pads, 2 * CORNU_MAX_RANK, &count));
    if (!computed) CORNU__TRY(cornu__known_number(step, 2, value, &value));
    CORNU__TRY(cornu__known_integers(step, 3, axes, CORNU_MAX_RANK, &axis_count));
    const int rank = cornu__rank_of(x), half = axis_count >= 0 ? axis_count : rank;
    if (count != 2 * half || half > rank)
        return cornu__fail(CORNU_ERR_FORMAT, "%d pads for %d axes", count, half);
    for (int i = 0; i < half; i++) {
        int axis;
        CORNU__TRY(cornu__axis_of(axis_count >= 0 ? axes[i] : i, rank, &axis));
        low[axis] = clamped(pads[i], -INT32_MAX, INT32_MAX);
        high[axis] = clamped(pads[i + half], -INT32_MAX, INT32_MAX);
    }
    for (int i = 0; i < rank; i++) {
        const int64_t n = cornu__extent_of(x, i);
        const int64_t cut = low[i] < 0 ? -low[i] : 0, end = high[i] < 0 ? -high[i] : 0;
        if (cut + end == 0) continue;
        if (cut + end > n) return cornu__fail(CORNU_ERR_SHAPE, "pads remove more than there is");
        x = cornu__part_of(x, i, cut, n - cut - end);
        if (low[i] < 0) low[i] = 0;
        if (high[i] < 0) high[i] = 0;
    }
    if (mode[0] == 'c' && computed) {
        x = pad_with_operand(step, x, low, high);
    } else if (mode[0] == 'c') {
        const CornuDtype dtype = cornu__dtype_of(x);
        if (dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
        x = cornu_op_convert(cornu_op_pad(x, low, high, value), dtype);
    }
    for (int i = 0; i < rank && mode[0] != 'c'; i++) x = pad_by(x, i, low[i], high[i], mode);
    return cornu__result(step, 0, x);
}

const CornuReadRow cornu__read_shapes[] = {
    { "Concat", read_concat, .operands = 0 }, { "Expand", read_expand, .operands = 1 },
    { "Flatten", read_flatten, .operands = 1 }, { "Pad", read_pad, .operands = 1 },
    { "Reshape", read_reshape, .operands = 1 }, { "Slice", read_slice, .operands = 1 },
    { "Split", read_split, .operands = 1 }, { "Squeeze", read_squeeze, .operands = 1 },
    { "Tile", read_tile, .operands = 1 }, { "Transpose", read_transpose, .operands = 1 },
    { "Unsqueeze", read_unsqueeze, .operands = 1 },
    { 0 },
};
