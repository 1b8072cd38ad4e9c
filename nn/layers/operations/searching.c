/* Operations that look elements up: places in order, membership, choices, segments. */
#include "operation_internal.h"

#include "../../../tensor/functions/functions_internal.h"

#include <math.h>
#include <string.h>

/* ---- Places in order ---- */

/* How many elements of the sequence (N) are before each of the values; with `right`, or equal. */
static CornuTensor *places(const CornuOperands *o, CornuTensor *sequence, CornuTensor *values,
                           bool right)
{
    if (!sequence || !values) return NULL;
    const CornuDtype dtype = cornu__promote(cornu_tensor_type(sequence).dtype,
                                            cornu_tensor_type(values).dtype);
    const int rank = cornu_tensor_shape(values).rank;
    if (cornu_tensor_shape(sequence).rank != 1)
        return cornu__operation_refuse(o, "expected an ordered sequence of one axis");
    sequence = cornu_op_convert(sequence, dtype);
    values = cornu__add_axis(cornu_op_convert(values, dtype), rank);
    CornuTensor *before = cornu_op_compare(sequence, right ? CORNU_LESS_EQUAL : CORNU_LESS, values);
    return cornu_op_reduce_sum(cornu_op_convert(before, CORNU_I32), INT64_C(1) << rank, false);
}

CornuTensor *cornu__operation_searchsorted(const CornuOperands *o)
{
    CornuTensor *sequence = cornu__operand_tensor(o, "sorted_sequence", 0);
    CornuTensor *values = sequence ? cornu__operand_tensor(o, "values", 1) : NULL;
    return places(o, sequence, values, !strcmp(cornu__argument_text(o, "side", "left"), "right"));
}

CornuTensor *cornu__operation_digitize(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_x(o);
    CornuTensor *bins = x ? cornu__operand_tensor(o, "bins", 1) : NULL;
    return places(o, bins, x, true);
}

/* ---- Membership ---- */

CornuTensor *cornu__operation_isin(const CornuOperands *o)
{
    CornuTensor *a, *b;
    const bool   invert = cornu__argument_flag(o, "invert");
    cornu__argument_flag(o, "assume_unique");   /* a hint */
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    const int rank = cornu_tensor_shape(a).rank;
    b = cornu_op_reshape(b, cornu_shape(CORNU_NONE));
    CornuTensor *same = cornu_op_compare(cornu__add_axis(a, rank), CORNU_EQUAL, b);
    CornuTensor *any = cornu_op_reduce_max(cornu_op_convert(same, CORNU_I32), INT64_C(1) << rank,
                                           false);
    return cornu_op_compare(any, invert ? CORNU_EQUAL : CORNU_NOT_EQUAL, cornu__like(any, 0.0));
}

/* Whether fewer than k predictions are above that of the target; NaN counts as the least.
 * Source: keras/src/backend/jax/math.py, in_top_k. */
CornuTensor *cornu__operation_in_top_k(const CornuOperands *o)
{
    CornuTensor  *targets = cornu_op_convert(cornu__operand_tensor(o, "targets", 0), CORNU_I32);
    CornuTensor  *x = targets ? cornu__operand_tensor(o, "predictions", 1) : NULL;
    const int64_t k = cornu__argument_integer(o, "k", 1);
    if (!x) return NULL;
    const int last = cornu_tensor_shape(x).rank - 1;
    if (last < 1 || cornu_tensor_shape(targets).rank != last)
        return cornu__operation_refuse(o, "expected targets (B) and predictions (B, C)");
    x = cornu_op_select(cornu_op_compare(x, CORNU_EQUAL, x), x, cornu__like(x, -INFINITY));
    if (!x) return NULL;
    const CornuType type = cornu_type_from(CORNU_I32, cornu_tensor_shape(x));
    CornuTensor    *own = cornu_op_compare(cornu__add_axis(targets, last), CORNU_EQUAL,
                                           cornu_op_iota(o->graph, type, last));
    CornuTensor    *value = cornu_op_reduce_max(
        cornu_op_select(own, x, cornu__like(x, -INFINITY)), INT64_C(1) << last, true);
    CornuTensor *above = cornu_op_convert(cornu_op_compare(x, CORNU_GREATER, value), CORNU_I32);
    CornuTensor *count = cornu_op_reduce_sum(above, INT64_C(1) << last, false);
    return cornu_op_compare(count, CORNU_LESS, cornu__like(count, (double)k));
}

/* ---- Choices ---- */

/* Of several choices the first whose condition holds. */
CornuTensor *cornu__operation_select(const CornuOperands *o)
{
    CornuTensor *conditions[CORNU_MAX_LAYER_TENSORS], *choices[CORNU_MAX_LAYER_TENSORS];
    const int    count = cornu__operand_list(o, "condlist", 0, conditions);
    const int    others = count < 0 ? -1 : cornu__operand_list(o, "choicelist", 1, choices);
    CornuOperand operands[2] = { { .kind = CORNU__INTEGER } };
    if (others < 0) return NULL;
    if (count != others || count < 1)
        return cornu__operation_refuse(o, "expected a choice for each condition");
    if (cornu__argument(o, "default", 2) && !cornu__operand(o, "default", 2, &operands[0]))
        return NULL;
    CornuTensor *x[2] = { NULL };
    operands[1] = (CornuOperand){ .tensor = choices[0] };
    if (!cornu__operands_join(o, operands, 2, false, x)) return NULL;
    CornuTensor *y = x[0];
    for (int i = count - 1; i >= 0 && y; i--) {
        CornuTensor *choice = cornu_op_convert(choices[i], cornu_tensor_type(y).dtype);
        y = cornu_op_select(cornu_op_convert(conditions[i], CORNU_BOOL), choice, y);
    }
    return y;
}

/* ---- Segments: rows of axis 0 that have one number are reduced together ---- */

/* data (N, …) as (N, C), and the numbers (N): those that are out of range become `count`. */
static bool segments(const CornuOperands *o, CornuTensor **data, CornuTensor **ids, int64_t *count,
                     CornuShape *result)
{
    *data = cornu__operand_tensor(o, "data", 0);
    *ids = *data ? cornu_op_convert(cornu__operand_tensor(o, "segment_ids", 1), CORNU_I32) : NULL;
    if (!*ids) return false;
    cornu__argument_flag(o, "sorted");   /* a hint */
    *count = cornu__argument_integer(o, "num_segments", 0);
    *result = cornu_tensor_shape(*data);
    if (*count < 1) {
        cornu__operation_refuse(o, "num_segments is required: the shape of the result cannot "
                                   "depend on data");
        return false;
    }
    if (cornu_tensor_shape(*ids).rank != 1 || result->rank < 1 ||
        cornu_tensor_shape(*ids).extent[0] != result->extent[0]) {
        cornu__operation_refuse(o, "expected a segment for each element of axis 0");
        return false;
    }
    CornuShape flat = cornu_shape(result->extent[0], 1);
    for (int i = 1; i < result->rank; i++) flat.extent[1] *= result->extent[i];
    result->extent[0] = *count;
    CornuTensor *limit = cornu__like(*ids, (double)*count);
    *ids = cornu_op_select(cornu_op_compare(*ids, CORNU_LESS, cornu__like(*ids, 0.0)), limit,
                           cornu_op_minimum(*ids, limit));
    *data = cornu_op_reshape(*data, flat);
    return *data && *ids;
}

CornuTensor *cornu__operation_segment_sum(const CornuOperands *o)
{
    CornuTensor *data, *ids;
    CornuShape   result;
    int64_t      count;
    if (!segments(o, &data, &ids, &count, &result)) return NULL;
    const CornuDtype dtype = cornu_tensor_type(data).dtype;
    /* The op sums in f32, in which whole numbers are exact up to 2^24 only: others are products. */
    CornuTensor *sum;
    if (cornu_dtype_is_float(dtype) && dtype != CORNU_F64) {
        sum = cornu__slice_axis(cornu_op_segment_sum(data, ids, count + 1), 0, 0, count);
    } else {
        const CornuType type = cornu_type(CORNU_I32, count, 1);
        CornuTensor    *own = cornu_op_compare(cornu_op_iota(o->graph, type, 0), CORNU_EQUAL, ids);
        sum = cornu_op_matmul(cornu_op_convert(own, CORNU_F64), cornu_op_convert(data, CORNU_F64));
    }
    return cornu_op_reshape(cornu_op_convert(sum, dtype), result);
}

/* Of each segment, with `neutral` for what is in others: memory for count N C elements. */
static CornuTensor *by_segment(const CornuOperands *o, double neutral,
                               CornuTensor *(*reduce)(CornuTensor *x))
{
    CornuTensor *data, *ids;
    CornuShape   result;
    int64_t      count;
    if (!segments(o, &data, &ids, &count, &result)) return NULL;
    const CornuType type = cornu_type(CORNU_I32, count, 1);
    CornuTensor *own = cornu_op_compare(cornu_op_iota(o->graph, type, 0), CORNU_EQUAL, ids);
    if (!cornu_dtype_is_float(cornu_tensor_type(data).dtype) && isinf(neutral))
        neutral = neutral > 0 ? 2147483647.0 : -2147483648.0;
    CornuTensor *each = cornu_op_select(cornu__add_axis(own, 2), data, cornu__like(data, neutral));
    return cornu_op_reshape(reduce(each), result);
}

static CornuTensor *most(CornuTensor *x) { return cornu_op_reduce_max(x, 1 << 1, false); }
static CornuTensor *least(CornuTensor *x) { return cornu__reduce_min(x, 1 << 1, false); }
static CornuTensor *product(CornuTensor *x) { return cornu__product(x, 1); }

CornuTensor *cornu__operation_segment_max(const CornuOperands *o)
{
    return by_segment(o, -INFINITY, most);
}

CornuTensor *cornu__operation_segment_min(const CornuOperands *o)
{
    return by_segment(o, INFINITY, least);
}

CornuTensor *cornu__operation_segment_prod(const CornuOperands *o)
{
    return by_segment(o, 1.0, product);
}
