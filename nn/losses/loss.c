/* Masks, weights and reduces the values of a loss. */
#include <string.h>

#include "loss_internal.h"

CornuLoss cornu_no_loss = { .name = "none" };

void cornu_loss_free(CornuLoss *loss)
{
    if (loss && loss->free) loss->free(loss);
}

/* x, whose axes are the leading axes of `shape`, with an axis of extent 1 for each other one. One
 * trailing axis of extent 1 too many is dropped. */
static CornuTensor *align(const char *what, CornuTensor *x, CornuShape shape)
{
    if (!x) return NULL;
    CornuShape given = cornu_tensor_shape(x), wide = { .rank = shape.rank };
    CornuText  a, b;
    if (given.rank == shape.rank + 1 && given.extent[given.rank - 1] == 1) given.rank--;
    bool fits = given.rank <= shape.rank;
    for (int i = 0; i < shape.rank; i++) {
        wide.extent[i] = i < given.rank ? given.extent[i] : 1;
        fits &= wide.extent[i] == shape.extent[i] || (i > 0 && wide.extent[i] == 1);
    }
    if (!fits)
        return cornu__fail_null(CORNU_ERR_SHAPE, "values of shape %s have %s of shape %s, "
                                "expected the leading axes of the values",
                                cornu_shape_print(&a, shape), what,
                                cornu_shape_print(&b, cornu_tensor_shape(x)));
    return cornu_op_reshape(x, wide);
}

static CornuTensor *align_valid(CornuTensor *valid, CornuTensor *x)
{
    return x ? align("valid rows", valid, cornu_tensor_shape(x)) : NULL;
}

CornuTensor *cornu__valid_rows(CornuTensor *x, CornuTensor *valid)
{
    CornuTensor *rows = align_valid(valid, x);
    return rows ? cornu_op_select(rows, x, cornu_op_constant_like(x, 0.0)) : NULL;
}

CornuTensor *cornu__valid_mask(CornuTensor *mask, CornuTensor *valid)
{
    return cornu__valid_rows(mask, valid);
}

/* The loss's own mask, and-ed with those of the rows and of the predictions. */
static CornuTensor *mask_with(CornuTensor *own, const CornuMetricCall *call)
{
    if (!own || !call->mask) return cornu__valid_rows(own, call->valid);
    CornuTensor *given = align("a mask", call->mask, cornu_tensor_shape(own));
    return given ? cornu_op_select(given, own, cornu_op_constant_like(own, 0.0)) : NULL;
}

CornuTensor *cornu__loss_values(const CornuLoss *loss, CornuMetricCall *call)
{
    CornuTensor *y_true = call->y_true, *y_pred = call->y_pred;
    if (!y_true || !y_pred || !call->valid) return NULL;
    if (loss->across_rows) {
        y_true = cornu__valid_rows(y_true, call->valid);
        y_pred = cornu__valid_rows(y_pred, call->valid);
    }
    CornuTensor *values = loss->call_rows ? loss->call_rows(loss, y_true, y_pred, call->valid)
                                          : loss->call(loss, y_true, y_pred);
    CornuTensor *own = NULL;
    if (!values) return NULL;
    if (loss->mask) own = loss->mask(loss, y_true, y_pred);
    if (loss->positive_alone)
        own = cornu_op_compare(values, CORNU_GREATER, cornu_op_constant_like(values, 0.0));
    if ((loss->mask || loss->positive_alone) && !(call->mask = mask_with(own, call))) return NULL;
    if (cornu_tensor_shape(values).rank > 0) return values;
    if (!loss->across_rows)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: gives a scalar, expected a value per row; "
                                "a loss of the whole batch sets .across_rows", loss->name);
    return cornu_op_broadcast(values, cornu_tensor_shape(call->mask ? call->mask : call->valid));
}

static CornuTensor *align_weight(const CornuMetricCall *call, CornuTensor *values)
{
    return align("sample weights", call->weight, cornu_tensor_shape(values));
}

CornuTensor *cornu__weighted(CornuTensor *values, const CornuMetricCall *call)
{
    if (!values || !call->weight) return values;
    return cornu_op_multiply(values, align_weight(call, values));
}

CornuTensor *cornu__value_weights(CornuTensor *values, const CornuMetricCall *call)
{
    if (!values) return NULL;
    CornuTensor *ones = cornu_op_constant_like(values, 1.0);
    return cornu__valid_rows(cornu__weighted(ones, call), call->valid);
}

/* Where the values count: bool, of the same rank. */
static CornuTensor *counted(CornuTensor *values, const CornuMetricCall *call)
{
    if (!values) return NULL;
    return call->mask ? align("a mask", call->mask, cornu_tensor_shape(values))
                      : align_valid(call->valid, values);
}

CornuTensor *cornu__valid_sum(CornuTensor *values, const CornuMetricCall *call)
{
    CornuTensor *where = counted(values, call), *weighted = cornu__weighted(values, call);
    if (!where || !weighted) return NULL;
    return cornu_op_sum(
        cornu_op_select(where, weighted, cornu_op_constant_like(weighted, 0.0)));
}

CornuTensor *cornu__valid_count(CornuTensor *values, const CornuMetricCall *call)
{
    CornuTensor *where = counted(values, call);
    if (!where) return NULL;
    const CornuShape of = cornu_tensor_shape(values), masked = cornu_tensor_shape(where);
    int64_t          per_mask = 1;
    for (int i = 0; i < of.rank; i++)
        if (masked.extent[i] == 1 && i > 0) per_mask *= of.extent[i];
    CornuTensor *all = call->count;
    if (call->mask)
        all = cornu_op_all_reduce(cornu_op_sum(cornu_op_convert(where, CORNU_I64)));
    return per_mask == 1 ? all : cornu_op_scale(all, (double)per_mask);
}

CornuTensor *cornu__valid_weight(CornuTensor *values, const CornuMetricCall *call)
{
    if (!values) return NULL;
    if (!call->weight) return cornu_op_convert(cornu__valid_count(values, call), CORNU_F64);
    CornuTensor *sum = cornu__valid_sum(cornu_op_constant_like(values, 1.0), call);
    return cornu_op_all_reduce(cornu_op_convert(sum, CORNU_F64));
}

/* a / b, 0 where b is 0. */
static CornuTensor *divide_no_nan(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b) return NULL;
    CornuTensor *zero = cornu_op_constant_like(b, 0.0);
    CornuTensor *none = cornu_op_compare(b, CORNU_EQUAL, zero);
    CornuTensor *safe = cornu_op_select(none, cornu_op_constant_like(b, 1.0), b);
    return cornu_op_select(none, cornu_op_constant_like(a, 0.0), cornu_op_divide(a, safe));
}

CornuTensor *cornu__reduce_loss(const CornuLoss *loss, CornuTensor *values,
                                const CornuMetricCall *call)
{
    CornuTensor *sum = cornu__valid_sum(values, call);
    if (!sum || loss->reduction == CORNU_SUM) return sum;
    if (loss->reduction == CORNU_MEAN_WITH_SAMPLE_WEIGHT)
        return divide_no_nan(sum, cornu_op_convert(cornu__valid_weight(values, call), CORNU_F32));
    CornuTensor *count = cornu__valid_count(values, call);
    if (!count) return NULL;
    CornuTensor *most = cornu_op_maximum(count, cornu_op_constant_like(count, 1.0));
    return cornu_op_divide(sum, cornu_op_convert(most, CORNU_F32));
}
