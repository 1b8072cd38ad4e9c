/* Operators that move values. x and y have one scale and zero point. */
#include <string.h>

#include "steps.h"

/* ---- RESHAPE, SQUEEZE, EXPAND_DIMS: y's shape says where to ---- */

static void run_reshape(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    (void)step;
    memcpy(bound->y, bound->x, (size_t)bound->count);
}

CornuStatus cornu__step_prepare_reshape(CornuLiteStep *step)
{
    const CornuShape x = step->in->shape, y = step->out->shape;
    CornuText        from, to;
    step->run = run_reshape;
    if (cornu__lite_count(x, 1) == cornu__lite_count(y, 1) &&
        cornu__lite_count(x, 2) == cornu__lite_count(y, 2))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s to %s", cornu_shape_print(&from, x),
                       cornu_shape_print(&to, y));
}

/* ---- PAD, PADV2 ---- */

static void run_pad(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_pad(step->in->shape.rank, bound->x_extents, step->at, bound->y_extents, step->fill,
                    bound->x, bound->y);
}

CornuStatus cornu__step_prepare_pad(CornuLiteStep *step)
{
    const CornuShape x = step->in->shape;
    const int32_t   *pads = cornu__step_integers(cornu__step_in(step, 1), 2 * x.rank);
    if (!pads) return CORNU_ERR_UNSUPPORTED;
    step->run = run_pad;
    step->fill = (int8_t)step->y.zero;
    if (step->op->code == CORNU_LITE_PADV2) {
        const CornuLiteTensor *value = cornu__step_in(step, 2);
        CORNU__TRY(cornu__step_expect_scale(step, value));
        if (!value->data || value->bytes != 1)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected one constant",
                               value->name);
        step->fill = *(const int8_t *)value->data;
    }
    int64_t expected[CORNU_INT8_RANK];
    for (int d = 0; d < x.rank; d++) {
        const int64_t before = pads[2 * d], after = pads[2 * d + 1];
        const bool    open = x.extent[d] == CORNU_NONE;
        if (before < 0 || after < 0 || (open && before + after > 0))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "padding %lld and %lld of axis %d",
                               (long long)before, (long long)after, d);
        step->at[d] = before;
        expected[d] = open ? CORNU_NONE : x.extent[d] + before + after;
    }
    return cornu__step_expect_extents(step->out, x.rank, expected);
}

/* ---- TRANSPOSE ---- */

static void run_transpose(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    cornu__int8_transpose(step->in->shape.rank, bound->x_extents, step->permutation, bound->x,
                          bound->y);
}

CornuStatus cornu__step_prepare_transpose(CornuLiteStep *step)
{
    const int      rank = step->in->shape.rank;
    const int32_t *axes = cornu__step_integers(cornu__step_in(step, 1), rank);
    int64_t        expected[CORNU_INT8_RANK];
    bool           taken[CORNU_INT8_RANK] = { false };
    if (!axes) return CORNU_ERR_UNSUPPORTED;
    for (int d = 0; d < rank; d++) {
        const int axis = axes[d] < 0 ? axes[d] + rank : axes[d];
        if (axis < 0 || axis >= rank || taken[axis])
            return cornu__fail(CORNU_ERR_FORMAT, "axis %d is not one of %d, or there twice",
                               (int)axes[d], rank);
        taken[axis] = true;
        step->permutation[d] = axis;
        expected[d] = step->in->shape.extent[axis];
    }
    step->run = run_transpose;
    return cornu__step_expect_extents(step->out, rank, expected);
}

/* ---- CONCATENATION ---- */

static void run_concatenation(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    int64_t outer = 1, below = 1, at = 0;
    for (int d = 0; d < step->out->shape.rank; d++)
        *(d < step->axis ? &outer : &below) *= bound->y_extents[d];
    for (int i = 0; i < step->op->in_count; i++) {
        const int64_t inner =
            cornu__lite_count(cornu__step_in(step, i)->shape, bound->batch) / outer;
        cornu__int8_place(outer, inner, below, at, bound->tensors[step->op->in[i]], bound->y);
        at += inner;
    }
}

CornuStatus cornu__step_prepare_concatenation(CornuLiteStep *step)
{
    const CornuLiteOperator *op = step->op;
    const CornuShape         y = step->out->shape;
    step->run = run_concatenation;
    step->axis = op->options.axis < 0 ? op->options.axis + y.rank : op->options.axis;
    if (step->axis < 0 || step->axis >= y.rank || y.extent[step->axis] == CORNU_NONE)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "along axis %d of %d", (int)op->options.axis,
                           y.rank);
    if (cornu__step_fused(step) || step->bounds.low != CORNU_INT8_MIN ||
        step->bounds.high != CORNU_INT8_MAX)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with a fused activation");
    CornuShape expected = y;
    int64_t    total = 0;
    for (int i = 0; i < op->in_count; i++) {
        const CornuLiteTensor *x = cornu__step_in(step, i);
        CORNU__TRY(cornu__step_expect_rank(x, y.rank));
        expected.extent[step->axis] = x->shape.extent[step->axis];
        total += expected.extent[step->axis];
        CORNU__TRY(cornu__step_expect_extents(x, y.rank, expected.extent));
    }
    expected.extent[step->axis] = total;
    return cornu__step_expect_extents(step->out, y.rank, expected.extent);
}

/* ---- STRIDED_SLICE ---- */

/* With the axes that the result does not have. */
static void run_strided_slice(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    int64_t to[CORNU_INT8_RANK];
    for (int d = 0; d < step->in->shape.rank; d++)
        to[d] = step->in->shape.extent[d] == CORNU_NONE ? bound->batch : step->counts[d];
    cornu__int8_strided_slice(step->in->shape.rank, bound->x_extents, step->at, step->steps, to,
                              bound->x, bound->y);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Of one axis: where it begins, and how many it takes, as NumPy's slices. */
static CornuStatus slice_axis(CornuLiteStep *step, int d, int64_t extent, int64_t begin,
                              int64_t end, int64_t stride)
{
    const CornuLiteOptions *o = &step->op->options;
    if (stride == 0) return cornu__fail(CORNU_ERR_FORMAT, "stride 0 along axis %d", d);
    const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? extent : extent - 1;
    begin = clamp(begin < 0 ? begin + extent : begin, low, high);
    end = clamp(end < 0 ? end + extent : end, low, high);
    if (o->begin_mask >> d & 1) begin = stride > 0 ? 0 : extent - 1;
    if (o->end_mask >> d & 1) end = stride > 0 ? extent : -1;
    if (o->shrink_axis_mask >> d & 1) end = begin + (stride = 1);
    const int64_t size = stride > 0 ? stride : -stride;
    const int64_t count = ((stride > 0 ? end - begin : begin - end) + size - 1) / size;
    if (count < 1 || begin >= extent)
        return cornu__fail(CORNU_ERR_FORMAT, "takes nothing along axis %d", d);
    step->at[d] = begin;
    step->steps[d] = stride;
    step->counts[d] = count;
    return CORNU_OK;
}

CornuStatus cornu__step_prepare_strided_slice(CornuLiteStep *step)
{
    const CornuLiteOptions *o = &step->op->options;
    const CornuShape        x = step->in->shape;
    const int32_t *begin = cornu__step_integers(cornu__step_in(step, 1), x.rank);
    const int32_t *end = cornu__step_integers(cornu__step_in(step, 2), x.rank);
    const int32_t *strides = cornu__step_integers(cornu__step_in(step, 3), x.rank);
    if (!begin || !end || !strides) return CORNU_ERR_UNSUPPORTED;
    if (o->ellipsis_mask || o->new_axis_mask || o->offset)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with an ellipsis, a new axis or offsets");
    int64_t expected[CORNU_INT8_RANK];
    int     kept = 0;
    for (int d = 0; d < x.rank; d++) {
        if (x.extent[d] == CORNU_NONE) {
            if (!(o->begin_mask >> d & 1) || !(o->end_mask >> d & 1) || strides[d] != 1)
                return cornu__fail(CORNU_ERR_UNSUPPORTED, "slices the batch");
            step->steps[d] = 1;
            expected[kept++] = CORNU_NONE;
            continue;
        }
        CORNU__TRY(slice_axis(step, d, x.extent[d], begin[d], end[d], strides[d]));
        if (!(o->shrink_axis_mask >> d & 1)) expected[kept++] = step->counts[d];
    }
    step->run = run_strided_slice;
    return cornu__step_expect_extents(step->out, kept, expected);
}
