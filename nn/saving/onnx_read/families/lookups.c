/* Operators that look elements up by indices, and those that write them by indices. */
#include "reductions_internal.h"

#include <string.h>

#include "../../../../device/memory_internal.h"

static int64_t count_of(CornuTensor *x) { return x ? cornu_type_count(cornu_tensor_type(x)) : 0; }

/* Indices as i64, those below 0 counted from the end. */
static CornuTensor *wrapped(CornuTensor *indices, int64_t extent)
{
    indices = cornu_op_convert(indices, CORNU_I64);
    if (!indices) return NULL;
    CornuTensor *zero = cornu_op_constant_like(indices, 0.0);
    CornuTensor *up = cornu_op_add(indices, cornu_op_constant_like(indices, (double)extent));
    return cornu_op_select(cornu_op_compare(indices, CORNU_LESS, zero), up, indices);
}

/* The indices of operand i, wrapped on the host if they are known. */
static CornuTensor *indices_of(CornuReadStep *step, int i, int64_t extent)
{
    if (!cornu__given(step, i) || !step->in[i].known.data || step->in[i].tensor ||
        cornu_dtype_is_float(step->in[i].known.type.dtype))
        return wrapped(cornu__operand_of(step, i), extent);
    const CornuArray from = step->in[i].known;
    const CornuArray to = cornu__host_array(step->run, cornu_type_from(CORNU_I64,
                                                                       from.type.shape));
    step->in[i].used = true;
    if (!to.data) return cornu__null();
    for (int64_t k = 0; k < cornu_type_count(from.type); k++) {
        const int64_t index = (int64_t)cornu_array_get(from, k);
        ((int64_t *)to.data)[k] = index < 0 ? index + extent : index;
    }
    return cornu__tensor_of(step->run, to);
}

/* Rows of a table by a list of indices. Tables of booleans are looked up as i32. */
static CornuTensor *rows_of(CornuTensor *table, CornuTensor *indices)
{
    const CornuDtype dtype = cornu__dtype_of(table);
    if (dtype == CORNU_BOOL) table = cornu_op_convert(table, CORNU_I32);
    return cornu_op_convert(cornu_op_gather(table, indices), dtype);
}

/* ---- Gather ---- */

/* One known index: a slice. */
static CornuStatus take_one(CornuReadStep *step, CornuTensor *x, int axis, int64_t index)
{
    const int64_t extent = cornu__extent_of(x, axis);
    if (index < 0) index += extent;
    if (index < 0 || index >= extent)
        return cornu__fail(CORNU_ERR_VALUE, "index %lld of %lld", (long long)index,
                           (long long)extent);
    return cornu__result(step, 0, cornu__drop_axis(cornu__part_of(x, axis, index, 1), axis));
}

static CornuStatus read_gather(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int          axis;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x), &axis));
    const CornuShape at = cornu__operand_type(step, 1).shape;
    if (cornu__given(step, 1) && step->in[1].known.data && at.rank == 0)
        return take_one(step, x, axis, (int64_t)cornu_array_get(step->in[1].known, 0));
    const CornuShape from = cornu_tensor_shape(x);
    CornuShape       to = { 0 };
    if (from.rank - 1 + at.rank > CORNU_MAX_RANK) return cornu__cannot("a result of rank over 8",
                                                                       "tensors have at most 8");
    CornuTensor *indices = indices_of(step, 1, from.extent[axis]);
    const int64_t number = cornu_shape_count(at), rest = from.extent[axis] > 0
                               ? cornu_shape_count(from) / from.extent[axis] : 0;
    x = cornu__move_axis(x, axis, 0);
    x = cornu__reshaped(x, 2, (const int64_t[]){ from.extent[axis], rest });
    x = rows_of(x, cornu__reshaped(indices, 1, &number));
    /* (indices, axes before, axes after) to (before, indices, after) */
    int64_t before = 1, after = 1;
    for (int i = 0; i < from.rank; i++) *(i < axis ? &before : &after) *= i == axis ? 1
                                                                          : from.extent[i];
    if (before > 1) {
        x = cornu__reshaped(x, 3, (const int64_t[]){ number, before, after });
        x = cornu__move_axis(x, 0, 1);
    }
    for (int i = 0; i < axis; i++) to.extent[to.rank++] = from.extent[i];
    for (int i = 0; i < at.rank; i++) to.extent[to.rank++] = at.extent[i];
    for (int i = axis + 1; i < from.rank; i++) to.extent[to.rank++] = from.extent[i];
    return cornu__result(step, 0, cornu_op_reshape(x, to));
}

/* For each element of `shape` its place in a tensor of extents `from`: the sum over the axes of
 * index times stride, the index along `axis` being given. */
static CornuTensor *places(CornuGraph *graph, CornuShape shape, CornuShape from, int axis,
                           CornuTensor *indices)
{
    CornuTensor *sum = NULL;
    int64_t      stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        CornuTensor *at = i == axis ? indices
                                    : cornu__count_along(graph, CORNU_I64, shape.rank, i,
                                                         shape.extent[i]);
        if (stride != 1)
            at = cornu_op_multiply(at, cornu_op_constant_like(at, (double)stride));
        sum = sum ? cornu_op_add(sum, at) : at;
        stride *= from.extent[i];
    }
    return sum;
}

static CornuStatus read_gather_elements(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int          axis;
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x), &axis));
    const CornuShape from = cornu_tensor_shape(x);
    CornuTensor     *indices = indices_of(step, 1, from.extent[axis]);
    if (!indices) return cornu_error_take();
    const CornuShape shape = cornu_tensor_shape(indices);
    if (shape.rank != from.rank)
        return cornu__fail(CORNU_ERR_SHAPE, "x has rank %d, its indices %d", from.rank, shape.rank);
    const int64_t number = cornu_shape_count(shape);
    CornuTensor  *at = places(step->run->graph, shape, from, axis, indices);
    x = cornu__reshaped(x, 2, (const int64_t[]){ cornu_shape_count(from), 1 });
    x = rows_of(x, cornu__reshaped(at, 1, &number));
    return cornu__result(step, 0, cornu_op_reshape(x, shape));
}

/* ---- Tuples of indices: the last axis of the indices has k of them, for the axes from `first`
 * on ---- */

/* Places among the first axes, as a list. */
static CornuTensor *tuple_places(CornuReadStep *step, CornuShape x, int first, CornuShape tuples,
                                 int k)
{
    CornuTensor  *sum = NULL, *indices = cornu_op_convert(cornu__operand_of(step, 1), CORNU_I64);
    const int64_t number = tuples.extent[tuples.rank - 1] > 0
                               ? cornu_shape_count(tuples) / tuples.extent[tuples.rank - 1] : 0;
    indices = cornu__reshaped(indices, 2, (const int64_t[]){ number, k });
    for (int i = 0; i < k; i++) {
        const int64_t extent = x.extent[first + i];
        CornuTensor  *at = wrapped(cornu__part_of(indices, 1, i, 1), extent);
        if (sum) sum = cornu_op_multiply(sum, cornu_op_constant_like(sum, (double)extent));
        sum = sum ? cornu_op_add(sum, at) : at;
    }
    return cornu__reshaped(sum, 1, &number);
}

static CornuStatus check_tuples(CornuShape x, CornuShape tuples, int batch)
{
    const int64_t k = tuples.rank > 0 ? tuples.extent[tuples.rank - 1] : 0;
    if (batch < 0 || tuples.rank < 1 + batch || k < 1 || k > x.rank - batch)
        return cornu__fail(CORNU_ERR_SHAPE, "tuples of %lld indices for a tensor of rank %d",
                           (long long)k, x.rank);
    return CORNU_OK;
}

static CornuStatus read_gather_nd(CornuReadStep *step)
{
    CornuTensor     *x = cornu__operand_of(step, 0);
    const CornuShape tuples = cornu__operand_type(step, 1).shape;
    const int        batch = (int)cornu__whole(step, "batch_dims", 0);
    const CornuShape from = cornu_tensor_shape(x);
    CornuShape       to = { 0 };
    CORNU__TRY(check_tuples(from, tuples, batch));
    const int k = (int)tuples.extent[tuples.rank - 1];
    if (tuples.rank - 1 + from.rank - batch - k > CORNU_MAX_RANK)
        return cornu__cannot("a result of rank over 8", "tensors have at most 8");
    CornuTensor *at = tuple_places(step, from, batch, tuples, k);
    int64_t      rows = 1, batches = 1, rest = 1;
    for (int i = 0; i < from.rank; i++) {
        if (i < batch) batches *= from.extent[i];
        else if (i < batch + k) rows *= from.extent[i];
        else rest *= from.extent[i];
    }
    const int64_t number = count_of(at);
    if (batches > 1) {
        CornuTensor *row = cornu__count_along(step->run->graph, CORNU_I64, 2, 0, batches);
        row = cornu_op_multiply(row, cornu_op_constant_like(row, (double)rows));
        at = cornu__reshaped(at, 2, (const int64_t[]){ batches, number / batches });
        at = cornu__reshaped(cornu_op_add(at, row), 1, &number);
    }
    x = cornu__reshaped(x, 2, (const int64_t[]){ batches * rows, rest });
    x = rows_of(x, at);
    for (int i = 0; i + 1 < tuples.rank; i++) to.extent[to.rank++] = tuples.extent[i];
    for (int i = batch + k; i < from.rank; i++) to.extent[to.rank++] = from.extent[i];
    return cornu__result(step, 0, cornu_op_reshape(x, to));
}

/* ---- Writing ---- */

/* x (N, C) with rows u (M, C) written to, or combined with, the rows `at` (M). */
static CornuTensor *written(CornuTensor *x, CornuTensor *at, CornuTensor *u, const char *how)
{
    if (!x || !u || !at) return NULL;
    const CornuDtype dtype = cornu__dtype_of(x);
    const int64_t    n = cornu__extent_of(x, 0), m = cornu__extent_of(u, 0);
    x = cornu_op_convert(x, CORNU_F32);
    u = cornu_op_convert(u, CORNU_F32);
    CornuTensor *one = cornu_op_constant(cornu_tensor_graph(x), cornu_type(CORNU_F32, m, 1), 1.0);
    CornuTensor *hits = cornu_op_segment_sum(one, at, n);
    CornuTensor *hit = hits ? cornu_op_compare(hits, CORNU_GREATER,
                                               cornu_op_constant_like(hits, 0.0)) : NULL;
    if (!strcmp(how, "none") || !strcmp(how, "add")) {
        CornuTensor *sum = cornu_op_segment_sum(u, at, n);
        x = *how == 'a' ? cornu_op_add(x, sum) : cornu_op_select(hit, sum, x);
        return cornu_op_convert(x, dtype);
    }
    /* (M, N, C): what each row writes, or what changes nothing. */
    const double nothing = *how == 'm' ? how[1] == 'u' ? 1.0 : how[1] == 'a' ? -1.0 / 0.0
                                                                             : 1.0 / 0.0 : 0.0;
    CornuTensor *row = cornu__count_along(cornu_tensor_graph(x), CORNU_I64, 3, 1, n);
    CornuTensor *here = cornu_op_compare(cornu__reshaped(at, 3, (const int64_t[]){ m, 1, 1 }),
                                         CORNU_EQUAL, row);
    u = cornu__reshaped(u, 3, (const int64_t[]){ m, 1, cornu__extent_of(u, 1) });
    u = cornu_op_select(here, u, cornu_op_constant_like(u, nothing));
    if (how[1] == 'u') u = cornu__product(u, 0);
    else if (how[1] == 'a') u = cornu_op_reduce_max(u, 1, true);
    else u = cornu__least(u, 1, true);
    u = cornu__reshaped(u, 2, (const int64_t[]){ n, cornu__extent_of(x, 1) });
    x = how[1] == 'u' ? cornu_op_multiply(x, u)
      : how[1] == 'a' ? cornu_op_maximum(x, u) : cornu_op_minimum(x, u);
    return cornu_op_convert(x, dtype);
}

static CornuStatus check_writing(const char *how, CornuTensor *x, int64_t m)
{
    static const char *const known[] = { "none", "add", "mul", "max", "min" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(how, known[i])) continue;
        if (i < 2 || m <= (1 << 24) / (count_of(x) + 1)) return CORNU_OK;
        return cornu__cannot(how, "there are too many updates");
    }
    return cornu__cannot(how, "expected none, add, mul, max or min");
}

static CornuStatus read_scatter_elements(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *u = cornu__operand_of(step, 2);
    const char  *how = cornu__word(step, "reduction", "none");
    int          axis;
    if (!x || !u) return cornu_error_take();
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", 0), cornu__rank_of(x), &axis));
    const CornuShape from = cornu_tensor_shape(x), shape = cornu_tensor_shape(u);
    CornuTensor     *indices = indices_of(step, 1, from.extent[axis]);
    const int64_t    number = count_of(u);
    if (shape.rank != from.rank || count_of(indices) != number)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld updates for %lld indices", (long long)number,
                           (long long)count_of(indices));
    CORNU__TRY(check_writing(how, x, number));
    CornuTensor *at = places(step->run->graph, shape, from, axis, indices);
    at = cornu__reshaped(at, 1, &number);
    x = written(cornu__reshaped(x, 2, (const int64_t[]){ cornu_shape_count(from), 1 }), at,
                cornu__reshaped(u, 2, (const int64_t[]){ number, 1 }), how);
    return cornu__result(step, 0, cornu_op_reshape(x, from));
}

static CornuStatus read_scatter_nd(CornuReadStep *step)
{
    CornuTensor     *x = cornu__operand_of(step, 0), *u = cornu__operand_of(step, 2);
    const CornuShape tuples = cornu__operand_type(step, 1).shape;
    const char      *how = cornu__word(step, "reduction", "none");
    if (!x || !u) return cornu_error_take();
    const CornuShape from = cornu_tensor_shape(x);
    CORNU__TRY(check_tuples(from, tuples, 0));
    const int    k = (int)tuples.extent[tuples.rank - 1];
    CornuTensor *at = tuple_places(step, from, 0, tuples, k);
    int64_t      rows = 1, rest = 1;
    for (int i = 0; i < from.rank; i++) *(i < k ? &rows : &rest) *= from.extent[i];
    const int64_t number = count_of(at);
    if (count_of(u) != number * rest)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld updates, expected %lld", (long long)count_of(u),
                           (long long)(number * rest));
    CORNU__TRY(check_writing(how, x, number));
    x = written(cornu__reshaped(x, 2, (const int64_t[]){ rows, rest }), at,
                cornu__reshaped(u, 2, (const int64_t[]){ number, rest }), how);
    return cornu__result(step, 0, cornu_op_reshape(x, from));
}

/* ---- OneHot ---- */

/* values holds what is off and on. An index out of range is off everywhere. */
static CornuStatus read_one_hot(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *values = cornu__operand_of(step, 2);
    double       depth;
    int          axis;
    CORNU__TRY(cornu__known_number(step, 1, 0.0, &depth));
    if (!x || !values) return cornu_error_take();
    const int rank = cornu__rank_of(x);
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "axis", -1), rank + 1, &axis));
    if (rank == CORNU_MAX_RANK || !(depth >= 1.0 && depth <= INT32_MAX))
        return cornu__fail(CORNU_ERR_SHAPE, "depth %g for indices of rank %d", depth, rank);
    x = wrapped(cornu__add_axis(x, axis), (int64_t)depth);
    CornuTensor *classes = cornu__count_along(step->run->graph, CORNU_I64, rank + 1, axis,
                                              (int64_t)depth);
    CornuTensor *off = cornu__reshaped(cornu__part_of(values, 0, 0, 1), 0, NULL);
    CornuTensor *on = cornu__reshaped(cornu__part_of(values, 0, 1, 1), 0, NULL);
    return cornu__result(step, 0, cornu_op_select(cornu_op_compare(x, CORNU_EQUAL, classes), on,
                                                  off));
}

const CornuReadRow cornu__read_lookups[] = {
    { "Gather", read_gather, .operands = 1 },
    { "GatherElements", read_gather_elements, .operands = 1 },
    { "GatherND", read_gather_nd, .operands = 1 }, { "OneHot", read_one_hot, .operands = 1 },
    { "Scatter", read_scatter_elements, .operands = 1 },
    { "ScatterElements", read_scatter_elements, .operands = 1 },
    { "ScatterND", read_scatter_nd, .operands = 1 },
    { 0 },
};
