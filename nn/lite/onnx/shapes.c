/* Operators that move elements, or compute with shapes, as ONNX nodes; and reductions. */
#include "onnx_internal.h"

#include "../../../device/memory_internal.h"

/* ---- Shapes ---- */

/* To the shape of the second operand, computed or not, or that of the options. */
static CornuStatus reshape(const Step *step)
{
    int64_t shape[CORNU_MAX_RANK];
    const CornuLiteOptions *options = &step->op->options;
    for (int i = 0; i < options->extent_count; i++) shape[i] = options->extents[i];
    const int x = cornu__lite_value(step, 0);
    int       to = cornu__lite_operand(step, 1) ? cornu__lite_value(step, 1)
                                                : integers(step, shape, options->extent_count);
    if (cornu__lite_result(step)->dtype == CORNU_LITE_COMPLEX64) {   /* their parts are an axis */
        const int64_t parts = 2;
        const int     all[] = { to, integers(step, &parts, 1) };
        to = concatenated(step, all, 2, 0);
    }
    return cornu__lite_give(step, joined(step->to, "Reshape", x, to));
}

static CornuStatus squeeze(const Step *step)
{
    const CornuLiteOptions *options = &step->op->options;
    int64_t                 axes[CORNU_MAX_RANK];
    int                     axis;
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
    int axis;
    CORNU__TRY(cornu__lite_known_axis(step, 1, rank_of(step, 0) + 1, &axis));
    return cornu__lite_give(step, with_axis(step, "Unsqueeze", cornu__lite_value(step, 0), axis));
}

static CornuStatus transpose(const Step *step)
{
    int64_t order[CORNU_MAX_RANK], seen = 0;
    int     count;
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, order, &count));
    for (int i = 0; i < count; i++)
        if (order[i] >= 0 && order[i] < count) seen |= INT64_C(1) << order[i];
    if (count != rank_of(step, 0) || seen != (INT64_C(1) << count) - 1)
        return cornu__fail(CORNU_ERR_FORMAT, "its order of axes is not a permutation");
    return cornu__lite_give(step, cornu__onnx_transpose(step->to, cornu__lite_value(step, 0), order,
                                                        count));
}

static CornuStatus rank(const Step *step)
{
    return cornu__lite_give(step, whole_scalar(step, rank_of(step, 0)));
}

int cornu__lite_zeros(const CornuLiteStepOnnx *step, int shape)
{
    const bool whole = cornu__lite_onnx_dtype(cornu__lite_result(step)->dtype) == CORNU_I64;
    const int  zero = whole ? whole_scalar(step, 0) : cornu__onnx_scalar(step->to, 0.0);
    return joined(step->to, "Expand", zero, shape);
}

static int zeros_like(const Step *step, const int *x)
{
    return cornu__lite_zeros(step, cornu__onnx_node(step->to, "Shape", x, 1, NULL, 0, 1));
}

/* Two shapes of one rank, whose extents are equal or 1. */
static CornuStatus broadcast_args(const Step *step)
{
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
    CORNU__TRY(cornu__lite_expect(step, op->in_count));
    CORNU__TRY(cornu__lite_axis(op->options.axis, rank_of(step, 0) + stack, &axis));
    int *in = cornu__allocate((size_t)op->in_count, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    for (int i = 0; i < op->in_count; i++) {
        in[i] = cornu__lite_value(step, i);
        if (stack) in[i] = with_axis(step, "Unsqueeze", in[i], axis);
    }
    const int y = concatenated(step, in, op->in_count, axis);
    cornu__release(in);
    return cornu__lite_give(step, y);
}

static CornuStatus concatenation(const Step *step) { return join(step, false); }
static CornuStatus pack(const Step *step) { return join(step, true); }

static CornuStatus add_n(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, step->op->in_count));
    int y = cornu__lite_value(step, 0);
    for (int i = 1; i < step->op->in_count; i++)
        y = two(step->to, "Add", y, cornu__lite_value(step, i));
    return cornu__lite_give(step, y);
}

/* The shape comes first. */
static int fill(const Step *step, const int *x) { return joined(step->to, "Expand", x[1], x[0]); }

/* ---- Reductions ---- */

/* Of booleans: the largest, or the smallest. */
static CornuStatus reduce(const Step *step)
{
    CornuOnnx *to = step->to;
    const bool flags = cornu__lite_result(step)->dtype == CORNU_LITE_BOOL;
    const int  rank = rank_of(step, 0);
    int64_t    axes;
    CORNU__TRY(cornu__lite_axes(step, 1, rank, &axes));
    int x = cornu__lite_value(step, 0);
    if (flags) x = cast(to, x, CORNU_ONNX_FLOAT);
    x = cornu__onnx_reduce(to, step->row->whole, x, rank, axes, step->op->options.keep_dims);
    return cornu__lite_give(step, flags ? cast(to, x, CORNU_ONNX_BOOL) : x);
}

const CornuLiteOnnxRow cornu__lite_onnx_shapes[] = {
    { CORNU_LITE_ADD_N, 1, .rule = add_n },
    { CORNU_LITE_BROADCAST_ARGS, 2, .rule = broadcast_args, .rank = 1 },
    { CORNU_LITE_BROADCAST_TO, 2, .whole = "Expand" },
    { CORNU_LITE_CONCATENATION, 1, .rule = concatenation },
    { CORNU_LITE_EXPAND_DIMS, 2, .rule = expand_dims, .complex = true },
    { CORNU_LITE_FILL, 2, .value = fill },
    { CORNU_LITE_MEAN, 2, .rule = reduce, .whole = "ReduceMean" },
    { CORNU_LITE_PACK, 1, .rule = pack },
    { CORNU_LITE_RANGE, 3, .whole = "Range" },
    { CORNU_LITE_RANK, 1, .rule = rank },
    { CORNU_LITE_REDUCE_ALL, 2, .rule = reduce, .whole = "ReduceMin" },
    { CORNU_LITE_REDUCE_ANY, 2, .rule = reduce, .whole = "ReduceMax" },
    { CORNU_LITE_REDUCE_MAX, 2, .rule = reduce, .whole = "ReduceMax" },
    { CORNU_LITE_REDUCE_MIN, 2, .rule = reduce, .whole = "ReduceMin" },
    { CORNU_LITE_REDUCE_PROD, 2, .rule = reduce, .whole = "ReduceProd" },
    { CORNU_LITE_RESHAPE, 1, .rule = reshape, .complex = true },
    { CORNU_LITE_SHAPE, 1, .whole = "Shape" },
    { CORNU_LITE_SQUEEZE, 1, .rule = squeeze, .complex = true },
    { CORNU_LITE_SUM, 2, .rule = reduce, .whole = "ReduceSum" },
    { CORNU_LITE_TILE, 2, .whole = "Tile" },
    { CORNU_LITE_TRANSPOSE, 2, .rule = transpose },
    { CORNU_LITE_ZEROS_LIKE, 1, .value = zeros_like },
    { 0 },
};
