/* Reductions. Their axes are an attribute, from opset 18 on (ReduceSum: 13) an operand. */
#include "reductions_internal.h"

#include <math.h>


/* Booleans: any of them. */
static CornuTensor *largest(CornuTensor *x, int64_t axes, bool keep)
{
    const CornuDtype dtype = cornu__dtype_of(x);
    if (dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    return cornu_op_convert(cornu_op_reduce_max(x, axes, keep), dtype);
}

CornuTensor *cornu__least(CornuTensor *x, int64_t axes, bool keep)
{
    const CornuDtype dtype = cornu__dtype_of(x);
    if (dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
    return cornu_op_convert(cornu__reduce_min(x, axes, keep), dtype);
}

static CornuTensor *sizes(CornuTensor *x, int64_t axes, bool keep)
{
    return cornu_op_reduce_sum(cornu_op_absolute(x), axes, keep);
}

static CornuTensor *squares(CornuTensor *x, int64_t axes, bool keep)
{
    return cornu_op_reduce_sum(cornu_op_multiply(x, x), axes, keep);
}

static CornuTensor *length(CornuTensor *x, int64_t axes, bool keep)
{
    return cornu_op_sqrt(squares(x, axes, keep));
}

static CornuTensor *log_total(CornuTensor *x, int64_t axes, bool keep)
{
    return cornu_op_log(cornu_op_reduce_sum(x, axes, keep));
}

/* The shape of x without the axes, or with extents of 1 along them. */
static CornuShape without(CornuTensor *x, int64_t axes, bool keep)
{
    const CornuShape from = cornu_tensor_shape(x);
    CornuShape       left = { 0 };
    for (int i = 0; i < from.rank; i++) {
        if (!(axes >> i & 1)) left.extent[left.rank++] = from.extent[i];
        else if (keep) left.extent[left.rank++] = 1;
    }
    return left;
}

/* The largest element is taken out, unless it is infinite: exp of the others does not overflow. */
static CornuTensor *log_exponentials(CornuTensor *x, int64_t axes, bool keep)
{
    CornuTensor *most = cornu_op_reduce_max(x, axes, true);
    most = cornu_op_select(cornu_op_is_finite(most), most, cornu_op_constant_like(most, 0.0));
    CornuTensor *sum = log_total(cornu_op_exp(cornu_op_subtract(x, most)), axes, true);
    sum = cornu_op_add(sum, most);
    return keep ? sum : cornu_op_reshape(sum, without(x, axes, false));
}

static CornuTensor *product(CornuTensor *x, int64_t axes, bool keep)
{
    const CornuShape left = without(x, axes, keep);
    for (int i = 0; x && i < cornu__rank_of(x); i++)
        if (axes >> i & 1) x = cornu__product(x, i);
    return cornu_op_reshape(x, left);
}

static CornuStatus reduced(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      axes;
    const int     rank = cornu__rank_of(x);
    const int64_t all = (INT64_C(1) << rank) - 1;
    const bool    keep = cornu__whole(step, "keepdims", 1);
    const bool    skip = cornu__whole(step, "noop_with_empty_axes", 0);
    CORNU__TRY(cornu__axes_of(step, "axes", 1, rank, skip ? 0 : all, &axes));
    if (cornu_type_count(cornu_tensor_type(x)) == 0) {   /* what a reduction of nothing gives */
        const CornuType type = cornu_type_from(cornu__dtype_of(x), without(x, axes, keep));
        const double    value = step->row->numbers[0].usual;
        return cornu__result(step, 0, cornu_op_constant(
            step->run->graph, type, type.dtype == CORNU_BOOL ? value > 0.0 : value));
    }
    if (axes) return cornu__result(step, 0, step->row->along(x, axes, keep));
    /* Without axes the function of each element alone remains. */
    if (rank == CORNU_MAX_RANK) return cornu__cannot("a reduction without axes", "of rank 8");
    CornuShape one = cornu_tensor_shape(x);
    one.extent[one.rank++] = 1;
    x = step->row->along(cornu_op_reshape(x, one), INT64_C(1) << rank, false);
    return cornu__result(step, 0, x);
}

/* ---- Where the largest is ---- */

static CornuStatus place_of(CornuReadStep *step, CornuTensor *(*find)(CornuTensor *x, int axis))
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int          axis;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x), &axis));
    const double last = (double)(cornu__extent_of(x, axis) - 1);
    const bool   flips = cornu__whole(step, "select_last_index", 0);
    CornuTensor *at = cornu_op_convert(find(flips ? cornu_op_flip(x, axis) : x, axis), CORNU_I64);
    if (flips) at = cornu_op_subtract(cornu_op_constant_like(at, last), at);
    if (cornu__whole(step, "keepdims", 1))
        at = cornu_op_reshape(at, without(x, INT64_C(1) << axis, true));
    return cornu__result(step, 0, at);
}

static CornuStatus read_argmax(CornuReadStep *step) { return place_of(step, cornu_op_argmax); }
static CornuStatus read_argmin(CornuReadStep *step) { return place_of(step, cornu__argmin); }

/* The rank of an element among those along its axis, of equal ones the first; (…, n, n)
 * comparisons. Element k of the result is the one of rank k. */
static CornuStatus read_top_k(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      k = cornu__whole(step, "k", -1);
    int          axis, count = 0;
    if (step->run->opset >= 10) CORNU__TRY(cornu__known_integers(step, 1, &k, 1, &count));
    const int rank = cornu__rank_of(x);
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", -1), rank, &axis));
    const bool    least = !cornu__whole(step, "largest", 1);
    const int64_t n = cornu__extent_of(x, axis);
    if (k < 0 || k > n || rank + 1 > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "k is %lld of %lld elements of a tensor of rank %d",
                           (long long)k, (long long)n, rank);
    CornuGraph *graph = step->run->graph;
    x = cornu__move_axis(x, axis, rank - 1);
    CornuTensor *mine = cornu__add_axis(x, rank), *other = cornu__add_axis(x, rank - 1);
    CornuTensor *i = cornu__count_along(graph, CORNU_I64, rank + 1, rank - 1, n);
    CornuTensor *j = cornu__count_along(graph, CORNU_I64, rank + 1, rank, n);
    CornuTensor *before = least ? cornu__sorts_below(other, mine) : cornu__sorts_below(mine, other);
    CornuTensor *one = cornu_op_convert(cornu_op_select(
        cornu__sorts_equal(other, mine), cornu_op_compare(j, CORNU_LESS, i), before), CORNU_I64);
    CornuTensor *place = cornu_op_reduce_sum(one, INT64_C(1) << rank, true);   /* (…, n, 1) */
    CornuTensor *wanted = cornu__count_along(graph, CORNU_I64, rank + 1, rank, k);
    CornuTensor *hit = cornu_op_compare(place, CORNU_EQUAL, wanted);           /* (…, n, k) */
    const bool   floats = cornu_dtype_is_float(cornu__dtype_of(x));
    CornuTensor *values = cornu_op_select(
        hit, mine, cornu_op_constant(graph, cornu_scalar(cornu__dtype_of(x)),
                                     floats ? -1.0 / 0.0 : -0x1p63));
    CornuTensor *at = cornu_op_select(hit, i, cornu_op_constant(graph, cornu_scalar(CORNU_I64),
                                                                -1.0));
    values = cornu_op_reduce_max(values, INT64_C(1) << (rank - 1), false);
    at = cornu_op_reduce_max(at, INT64_C(1) << (rank - 1), false);
    CORNU__TRY(cornu__result(step, 0, cornu__move_axis(values, rank - 1, axis)));
    return cornu__result(step, 1, cornu__move_axis(at, rank - 1, axis));
}

/* Each sum along an axis is a product with a triangle of ones. */
static CornuStatus read_cumulative(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      given;
    int          axis, count;
    CORNU__TRY(cornu__known_integers(step, 1, &given, 1, &count));
    const int rank = cornu__rank_of(x);
    CORNU__TRY(cornu__axis_of(given, rank, &axis));
    const bool       reverse = cornu__whole(step, "reverse", 0);
    const bool       exclusive = cornu__whole(step, "exclusive", 0);
    const CornuDtype dtype = cornu__dtype_of(x);
    const bool       whole = !cornu_dtype_is_float(dtype);
    const int64_t    n = cornu__extent_of(x, axis);
    CornuGraph      *graph = step->run->graph;
    x = cornu__move_axis(x, axis, rank - 1);
    if (whole) x = cornu_op_convert(x, CORNU_F64);
    CornuTensor *from = cornu__count_along(graph, CORNU_I64, 2, 0, n);
    CornuTensor *to = cornu__count_along(graph, CORNU_I64, 2, 1, n);
    CornuTensor *adds = cornu_op_compare(
        from, reverse ? exclusive ? CORNU_GREATER : CORNU_GREATER_EQUAL
                      : exclusive ? CORNU_LESS : CORNU_LESS_EQUAL, to);
    const CornuShape shape = cornu_tensor_shape(x);
    const CornuShape flat = { 2, { cornu_shape_count(shape) / (n ? n : 1), n } };
    CornuTensor *y = cornu_op_matmul(cornu_op_reshape(x, flat),
                                     cornu_op_convert(adds, cornu__dtype_of(x)));
    y = cornu_op_reshape(y, shape);
    if (whole) y = cornu_op_convert(y, dtype);
    return cornu__result(step, 0, cornu__move_axis(y, rank - 1, axis));
}

/* The number is what a reduction of nothing gives. */
#define REDUCTION(op, reduce, of_nothing) \
    { op, reduced, 1, .along = reduce, .numbers = { { .usual = of_nothing } } }

const CornuReadRow cornu__read_reductions[] = {
    { "ArgMax", read_argmax, .operands = 1 }, { "ArgMin", read_argmin, .operands = 1 },
    { "CumSum", read_cumulative, .operands = 1 }, REDUCTION("ReduceL1", sizes, 0.0),
    REDUCTION("ReduceL2", length, 0.0), REDUCTION("ReduceLogSum", log_total, -INFINITY),
    REDUCTION("ReduceLogSumExp", log_exponentials, -INFINITY),
    REDUCTION("ReduceMax", largest, -INFINITY), REDUCTION("ReduceMean", cornu_op_reduce_mean, 0.0),
    REDUCTION("ReduceMin", cornu__least, INFINITY), REDUCTION("ReduceProd", product, 1.0),
    REDUCTION("ReduceSum", cornu_op_reduce_sum, 0.0), REDUCTION("ReduceSumSquare", squares, 0.0),
    { "TopK", read_top_k, .operands = 1 },
    { 0 },
};
