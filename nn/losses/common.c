/* Helpers of the losses. */
#include "../fields/field_internal.h"
#include "loss_internal.h"

#include <string.h>

static void free_loss(CornuLoss *loss) { cornu__release(loss); }

const CornuField cornu__loss_fields[] = {
    { "reduction", CORNU_FIELD_REDUCTION, offsetof(CornuLossConfig, reduction) }, { 0 },
};

/* "mean" is another name of the default. */
static CornuStatus read_reduction(const CornuFieldTarget *to, const json_t *value)
{
    const char *text = json_string_value(value);
    if (text && !strcmp(text, "mean")) return CORNU_OK;
    if (!json_is_null(value) && !(text && !strcmp(text, "none")))
        return cornu__field_read_word(to, value);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is None, which leaves a loss per row; training "
                       "needs \"sum_over_batch_size\", \"sum\" or \"mean_with_sample_weight\"",
                       to->name);
}

const CornuFieldKind cornu_field_reduction = {
    .name = "reduction", .size = sizeof(CornuReduction), .read = read_reduction,
    .write = cornu__field_write_word, .takes_null = true,
    .words = { [CORNU_MEAN] = "sum_over_batch_size", [CORNU_SUM] = "sum",
               [CORNU_MEAN_WITH_SAMPLE_WEIGHT] = "mean_with_sample_weight" },
};

void *cornu__loss_create(size_t size, const CornuLoss *base, const void *config)
{
    if (cornu__refused()) return NULL;
    if ((unsigned)base->reduction > CORNU_MEAN_WITH_SAMPLE_WEIGHT)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .reduction is %d, expected CORNU_MEAN, "
                                "CORNU_SUM or CORNU_MEAN_WITH_SAMPLE_WEIGHT", base->kind->name,
                                (int)base->reduction);
    CornuLoss  made = *base;
    CornuLoss *loss = cornu__serializable_create(size, base->kind, config, base->kind->name,
                                                 &made.config, &made.name);
    if (!loss) return NULL;
    made.free = free_loss;
    *loss = made;
    return loss;
}

CornuTensor *cornu__match_ranks(CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!y_true || !y_pred) return NULL;
    CornuShape labels = cornu_tensor_shape(y_true), pred = cornu_tensor_shape(y_pred);
    if (pred.rank == labels.rank + 1 && pred.extent[pred.rank - 1] == 1) {
        labels.extent[labels.rank++] = 1;
        return cornu_op_reshape(y_true, labels);
    }
    if (labels.rank == pred.rank + 1 && labels.extent[labels.rank - 1] == 1) {
        labels.extent[--labels.rank] = 0;
        return cornu_op_reshape(y_true, labels);
    }
    return y_true;
}

bool cornu__same_shapes(const char *who, CornuTensor **y_true, CornuTensor *y_pred)
{
    *y_true = cornu_op_convert(cornu__match_ranks(*y_true, y_pred), CORNU_F32);
    if (!*y_true) return false;
    CornuText a, b;
    if (cornu_shape_equal(cornu_tensor_shape(*y_true), cornu_tensor_shape(y_pred))) return true;
    cornu__fail_null(CORNU_ERR_SHAPE, "%s: y_true is %s, y_pred %s; expected the same", who,
                     cornu_shape_print(&a, cornu_tensor_shape(*y_true)),
                     cornu_shape_print(&b, cornu_tensor_shape(y_pred)));
    return false;
}

CornuTensor *cornu__class_labels(CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!y_true || !y_pred) return NULL;
    CornuType type = cornu_tensor_type(y_true);
    if (type.shape.rank == cornu_tensor_shape(y_pred).rank && type.shape.rank > 0 &&
        type.shape.extent[type.shape.rank - 1] == 1) {
        type.shape.extent[--type.shape.rank] = 0;
        y_true = cornu_op_reshape(y_true, type.shape);
    }
    const bool whole = !cornu_dtype_is_float(type.dtype) && type.dtype != CORNU_BOOL;
    return whole ? y_true : type.dtype == CORNU_BOOL ? cornu_op_convert(y_true, CORNU_I32)
                                                     : cornu_op_indices(y_true);
}

int64_t cornu__last_axis(CornuTensor *x)
{
    return INT64_C(1) << (cornu_tensor_shape(x).rank - 1);
}

CornuTensor *cornu__axis_last(const char *who, CornuTensor *x, int64_t axis)
{
    if (!x) return NULL;
    const int     rank = cornu_tensor_shape(x).rank;
    const int64_t given = axis == 0 ? -1 : axis, at = given < 0 ? given + rank : given;
    int           axes[CORNU_MAX_RANK], count = 0;
    if (at < 1 || at >= rank)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .axis is %lld, expected 1 to %d, as "
                                "axis 0 is the batch's", who,
                                (long long)(axis == CORNU_ZERO ? 0 : given), rank - 1);
    for (int i = 0; i < rank; i++)
        if (i != at) axes[count++] = i;
    axes[count] = (int)at;
    return at == rank - 1 ? x : cornu_op_transpose(x, axes);
}

CornuTensor *cornu__one_minus(CornuTensor *x) { return cornu_op_shift(cornu_op_negative(x), 1.0); }

/* x / max(|x|, 1e-7). The bound is on the square: the root's derivative at 0 is infinite. */
static CornuTensor *normalize(CornuTensor *x)
{
    if (!x) return NULL;
    CornuTensor *square = cornu_op_reduce_sum(cornu_op_square(x), cornu__last_axis(x), true);
    if (!square) return NULL;
    const double least = CORNU__EPSILON * CORNU__EPSILON;
    square = cornu_op_maximum(square, cornu_op_constant_like(square, least));
    return cornu_op_multiply(x, cornu_op_rsqrt(square));
}

CornuTensor *cornu__cosine(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *product = cornu_op_multiply(normalize(a), normalize(b));
    return product ? cornu_op_reduce_sum(product, cornu__last_axis(product), false) : NULL;
}
