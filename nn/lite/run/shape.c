/* Operators that move values. x and y have one scale and zero point. */
#include <string.h>

#include "steps.h"

static CornuStatus prepare_move(CornuLiteStep *step, int least, int most)
{
    CornuStatus status = cornu__step_expect(step, least, most, 1);
    if (status == CORNU_OK) status = cornu__step_affine(cornu__step_in(step, 0), &step->x);
    if (status == CORNU_OK) status = cornu__step_affine(cornu__step_out(step, 0), &step->y);
    if (status == CORNU_OK) status = cornu__step_expect_same_scale(step->x, step->y);
    return status;
}

/* ---- RESHAPE, SQUEEZE, EXPAND_DIMS: y's shape says where to ---- */

static void run_reshape(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    memcpy(cornu__step_out_data(step, bound, 0), cornu__step_in_data(step, bound, 0),
           (size_t)cornu__step_tensor_count(cornu__step_out(step, 0), bound->batch));
}

CornuStatus cornu__step_prepare_reshape(CornuLiteStep *step)
{
    CornuStatus status = prepare_move(step, 1, 2);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0), *y = cornu__step_out(step, 0);
    step->run = run_reshape;
    for (int64_t batch = 1; batch <= 2; batch++)
        if (cornu__step_tensor_count(x, batch) != cornu__step_tensor_count(y, batch)) {
            CornuText from, to;
            return cornu__fail(CORNU_ERR_SHAPE, "%s to %s", cornu_shape_print(&from, x->shape),
                               cornu_shape_print(&to, y->shape));
        }
    return CORNU_OK;
}

/* ---- PAD, PADV2 ---- */

static void run_pad(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuLiteTensor *x = cornu__step_in(step, 0), *y = cornu__step_out(step, 0);
    int64_t from[CORNU_INT8_RANK], to[CORNU_INT8_RANK];
    cornu__step_extents(x, bound->batch, from);
    cornu__step_extents(y, bound->batch, to);
    cornu__int8_pad(x->shape.rank, from, step->at, to, step->fill,
                    cornu__step_in_data(step, bound, 0), cornu__step_out_data(step, bound, 0));
}

CornuStatus cornu__step_prepare_pad(CornuLiteStep *step)
{
    const bool  with_value = step->op->code == CORNU_LITE_PADV2;
    CornuStatus status = prepare_move(step, with_value ? 3 : 2, with_value ? 3 : 2);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0), *y = cornu__step_out(step, 0);
    const int      rank = x->shape.rank;
    const int32_t *pads = cornu__step_integers(cornu__step_in(step, 1), 2 * rank);
    if (!pads) return CORNU_ERR_UNSUPPORTED;
    step->fill = (int8_t)step->y.zero;
    if (with_value) {
        const CornuLiteTensor *value = cornu__step_in(step, 2);
        CornuAffine            affine;
        status = cornu__step_affine(value, &affine);
        if (status == CORNU_OK) status = cornu__step_expect_same_scale(affine, step->y);
        if (status == CORNU_OK && (!value->data || value->bytes != 1))
            status = cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s: expected one constant",
                                 value->name);
        if (status != CORNU_OK) return status;
        step->fill = *(const int8_t *)value->data;
    }
    int64_t expected[CORNU_INT8_RANK];
    for (int d = 0; d < rank; d++) {
        const int64_t before = pads[2 * d], after = pads[2 * d + 1];
        if (before < 0 || after < 0 || (x->shape.extent[d] == CORNU_NONE && before + after > 0))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "padding %lld and %lld of axis %d",
                               (long long)before, (long long)after, d);
        step->at[d] = before;
        expected[d] = x->shape.extent[d] == CORNU_NONE ? CORNU_NONE
                                                       : x->shape.extent[d] + before + after;
    }
    step->run = run_pad;
    return cornu__step_expect_extents(y, rank, expected);
}

/* ---- TRANSPOSE ---- */

static void run_transpose(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuLiteTensor *x = cornu__step_in(step, 0);
    int64_t                extents[CORNU_INT8_RANK];
    cornu__step_extents(x, bound->batch, extents);
    cornu__int8_transpose(x->shape.rank, extents, step->permutation,
                          cornu__step_in_data(step, bound, 0),
                          cornu__step_out_data(step, bound, 0));
}

CornuStatus cornu__step_prepare_transpose(CornuLiteStep *step)
{
    CornuStatus status = prepare_move(step, 2, 2);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *x = cornu__step_in(step, 0);
    const int      rank = x->shape.rank;
    const int32_t *axes = cornu__step_integers(cornu__step_in(step, 1), rank);
    if (!axes) return CORNU_ERR_UNSUPPORTED;
    int64_t expected[CORNU_INT8_RANK];
    bool    taken[CORNU_INT8_RANK] = { false };
    for (int d = 0; d < rank; d++) {
        const int axis = axes[d] < 0 ? axes[d] + rank : axes[d];
        if (axis < 0 || axis >= rank || taken[axis])
            return cornu__fail(CORNU_ERR_FORMAT, "axis %d is not one of %d, or there twice",
                               (int)axes[d], rank);
        taken[axis] = true;
        step->permutation[d] = axis;
        expected[d] = x->shape.extent[axis];
    }
    step->run = run_transpose;
    return cornu__step_expect_extents(cornu__step_out(step, 0), rank, expected);
}

/* ---- CONCATENATION ---- */

static void run_concatenation(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    int64_t extents[CORNU_INT8_RANK], outer = 1, below = 1, at = 0;
    cornu__step_extents(y, bound->batch, extents);
    for (int d = 0; d < y->shape.rank; d++)
        *(d < step->axis ? &outer : &below) *= extents[d];
    for (int i = 0; i < step->op->in_count; i++) {
        const CornuLiteTensor *x = cornu__step_in(step, i);
        const int64_t          inner = cornu__step_tensor_count(x, bound->batch) / outer;
        cornu__int8_place(outer, inner, below, at, cornu__step_in_data(step, bound, i),
                          cornu__step_out_data(step, bound, 0));
        at += inner;
    }
}

CornuStatus cornu__step_prepare_concatenation(CornuLiteStep *step)
{
    const CornuLiteOperator *op = step->op;
    CornuStatus status = prepare_move(step, 1, op->in_count);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor *y = cornu__step_out(step, 0);
    const int rank = y->shape.rank;
    step->axis = op->options.axis < 0 ? op->options.axis + rank : op->options.axis;
    if (step->axis < 0 || step->axis >= rank || y->shape.extent[step->axis] == CORNU_NONE)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "along axis %d of %d", (int)op->options.axis,
                           rank);
    const CornuStatus fused = cornu__step_fused(step, step->y, &step->bounds);
    if (fused != CORNU_OK || step->bounds.low != CORNU_INT8_MIN ||
        step->bounds.high != CORNU_INT8_MAX)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with a fused activation");
    int64_t expected[CORNU_INT8_RANK], total = 0;
    for (int i = 0; i < op->in_count; i++) {
        const CornuLiteTensor *x = cornu__step_in(step, i);
        CornuAffine            affine;
        if (!x) return cornu__fail(CORNU_ERR_FORMAT, "input %d is missing", i);
        status = cornu__step_affine(x, &affine);
        if (status == CORNU_OK) status = cornu__step_expect_same_scale(affine, step->y);
        if (status == CORNU_OK) status = cornu__step_expect_rank(x, rank);
        if (status != CORNU_OK) return status;
        for (int d = 0; d < rank; d++) expected[d] = y->shape.extent[d];
        expected[step->axis] = x->shape.extent[step->axis];
        total += expected[step->axis];
        status = cornu__step_expect_extents(x, rank, expected);
        if (status != CORNU_OK) return status;
    }
    expected[step->axis] = total;
    step->run = run_concatenation;
    return cornu__step_expect_extents(y, rank, expected);
}

/* ---- STRIDED_SLICE ---- */

static void run_strided_slice(const CornuLiteStep *step, const CornuLiteBound *bound)
{
    const CornuLiteTensor *x = cornu__step_in(step, 0);
    const int rank = x->shape.rank;
    int64_t   from[CORNU_INT8_RANK], to[CORNU_INT8_RANK];
    cornu__step_extents(x, bound->batch, from);
    for (int d = 0; d < rank; d++)
        to[d] = x->shape.extent[d] == CORNU_NONE ? bound->batch : step->counts[d];
    cornu__int8_strided_slice(rank, from, step->at, step->steps, to,
                              cornu__step_in_data(step, bound, 0),
                              cornu__step_out_data(step, bound, 0));
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
    CornuStatus status = prepare_move(step, 4, 4);
    if (status != CORNU_OK) return status;
    const CornuLiteTensor  *x = cornu__step_in(step, 0);
    const CornuLiteOptions *o = &step->op->options;
    const int      rank = x->shape.rank;
    const int32_t *begin = cornu__step_integers(cornu__step_in(step, 1), rank);
    const int32_t *end = cornu__step_integers(cornu__step_in(step, 2), rank);
    const int32_t *strides = cornu__step_integers(cornu__step_in(step, 3), rank);
    if (!begin || !end || !strides) return CORNU_ERR_UNSUPPORTED;
    if (o->ellipsis_mask || o->new_axis_mask || o->offset)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with an ellipsis, a new axis or offsets");
    int64_t expected[CORNU_INT8_RANK];
    int     kept = 0;
    for (int d = 0; d < rank; d++) {
        if (x->shape.extent[d] == CORNU_NONE) {
            if (!(o->begin_mask >> d & 1) || !(o->end_mask >> d & 1) || strides[d] != 1)
                return cornu__fail(CORNU_ERR_UNSUPPORTED, "slices the batch");
            step->steps[d] = 1;
            expected[kept++] = CORNU_NONE;
            continue;
        }
        status = slice_axis(step, d, x->shape.extent[d], begin[d], end[d], strides[d]);
        if (status != CORNU_OK) return status;
        if (!(o->shrink_axis_mask >> d & 1)) expected[kept++] = step->counts[d];
    }
    step->run = run_strided_slice;
    return cornu__step_expect_extents(cornu__step_out(step, 0), kept, expected);
}
