/* Operators that move elements, or compute with shapes, as ONNX nodes; and reductions. */
#include "onnx_internal.h"

#include "../../../device/memory_internal.h"

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
    int       to = cornu__lite_operand(step, 1) ? cornu__lite_value(step, 1)
                                                : integers(step, shape, options->extent_count);
    if (cornu__lite_result(step)->dtype == CORNU_LITE_COMPLEX64) {   /* their parts are an axis */
        const int64_t             parts = 2;
        const int                 all[] = { to, integers(step, &parts, 1) };
        const CornuOnnxAttribute  axis = { .name = "axis", .whole = 0 };
        to = cornu__onnx_node(step->to, "Concat", all, 2, &axis, 1, 1);
    }
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

static CornuStatus rank(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int64_t value = rank_of(step, 0);
    return cornu__lite_give(step, cornu__onnx_constant(
        step->to, cornu_array_from((void *)&value, cornu_scalar(CORNU_I64))));
}

static CornuStatus range(const Step *step)
{
    int in[3];
    CORNU__TRY(cornu__lite_expect(step, 3, -1));
    for (int i = 0; i < 3; i++) in[i] = cornu__lite_value(step, i);
    return cornu__lite_give(step, cornu__onnx_node(step->to, "Range", in, 3, NULL, 0, 1));
}

static CornuStatus zeros_like(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0);
    const int shape_of_x = cornu__onnx_node(step->to, "Shape", &x, 1, NULL, 0, 1);
    const int64_t none = 0;
    const int zero = cornu__lite_onnx_dtype(cornu__lite_result(step)->dtype) == CORNU_I64
        ? cornu__onnx_constant(step->to, cornu_array_from((void *)&none, cornu_scalar(CORNU_I64)))
        : cornu__onnx_scalar(step->to, 0.0);
    return cornu__lite_give(step, joined(step->to, "Expand", zero, shape_of_x));
}

/* Two shapes of one rank, whose extents are equal or 1. */
static CornuStatus broadcast_args(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 2, 1));
    if (!cornu_shape_equal(cornu__lite_operand(step, 0)->shape,
                           cornu__lite_operand(step, 1)->shape))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "of shapes of different ranks");
    const int a = cornu__lite_value(step, 0), b = cornu__lite_value(step, 1);
    return cornu__lite_give(step, two(step->to, "Max", a, b));
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

static CornuStatus add_n(const Step *step)
{
    const int count = step->op->in_count;
    CORNU__TRY(cornu__lite_expect(step, count ? count : 1, -1));
    int y = cornu__lite_value(step, 0);
    for (int i = 1; i < count; i++) {
        const int x = cornu__lite_value(step, i);
        y = two(step->to, "Add", y, x);
    }
    return cornu__lite_give(step, y);
}

static CornuStatus concatenation(const Step *step) { return join(step, false); }
static CornuStatus pack(const Step *step) { return join(step, true); }

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

/* Of booleans: the largest, or the smallest. */
static CornuStatus reduce_flags(const Step *step, const char *operator)
{
    int64_t axes;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_axes(step, 1, rank_of(step, 0), &axes));
    const int x = cast(step->to, cornu__lite_value(step, 0), CORNU_ONNX_FLOAT);
    const int y = cornu__onnx_reduce(step->to, operator, x, rank_of(step, 0), axes,
                                     step->op->options.keep_dims);
    return cornu__lite_give(step, cast(step->to, y, CORNU_ONNX_BOOL));
}

static CornuStatus any(const Step *step) { return reduce_flags(step, "ReduceMax"); }
static CornuStatus all(const Step *step) { return reduce_flags(step, "ReduceMin"); }
static CornuStatus mean(const Step *step) { return reduce(step, "ReduceMean"); }
static CornuStatus sum(const Step *step) { return reduce(step, "ReduceSum"); }
static CornuStatus product(const Step *step) { return reduce(step, "ReduceProd"); }
static CornuStatus reduce_max(const Step *step) { return reduce(step, "ReduceMax"); }
static CornuStatus reduce_min(const Step *step) { return reduce(step, "ReduceMin"); }

const CornuLiteOnnxRow cornu__lite_onnx_shapes[] = {
    { CORNU_LITE_ADD_N, add_n },
    { CORNU_LITE_BROADCAST_ARGS, broadcast_args },
    { CORNU_LITE_BROADCAST_TO, broadcast_to },
    { CORNU_LITE_CONCATENATION, concatenation },
    { CORNU_LITE_EXPAND_DIMS, expand_dims },
    { CORNU_LITE_FILL, fill },
    { CORNU_LITE_MEAN, mean },
    { CORNU_LITE_PACK, pack },
    { CORNU_LITE_RANGE, range },
    { CORNU_LITE_RANK, rank },
    { CORNU_LITE_REDUCE_ALL, all },
    { CORNU_LITE_REDUCE_ANY, any },
    { CORNU_LITE_REDUCE_MAX, reduce_max },
    { CORNU_LITE_REDUCE_MIN, reduce_min },
    { CORNU_LITE_REDUCE_PROD, product },
    { CORNU_LITE_RESHAPE, reshape },
    { CORNU_LITE_SHAPE, shape },
    { CORNU_LITE_SQUEEZE, squeeze },
    { CORNU_LITE_SUM, sum },
    { CORNU_LITE_TILE, tile },
    { CORNU_LITE_TRANSPOSE, transpose },
    { CORNU_LITE_ZEROS_LIKE, zeros_like },
    { 0 },
};
