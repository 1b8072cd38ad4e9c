#include "loss.h"

#include <string.h>

#include "../device/memory_internal.h"
#include "../device/nearest.h"
#include "loss_internal.h"

/* ---- What losses and metrics share ---- */

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

CornuTensor *cornu__class_labels(CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!y_true || !y_pred) return NULL;
    CornuType type = cornu_tensor_type(y_true);
    if (type.shape.rank == cornu_tensor_shape(y_pred).rank &&
        type.shape.extent[type.shape.rank - 1] == 1) {
        type.shape.extent[--type.shape.rank] = 0;
        y_true = cornu_op_reshape(y_true, type.shape);
    }
    const bool whole = !cornu_dtype_is_float(type.dtype) && type.dtype != CORNU_BOOL;
    return whole ? y_true : cornu_op_convert(y_true, CORNU_I32);
}

/* Both as f32 of one shape. */
static bool same_shapes(const char *loss, CornuTensor **y_true, CornuTensor *y_pred)
{
    *y_true = cornu_op_convert(cornu__match_ranks(*y_true, y_pred), CORNU_F32);
    if (!*y_true) return false;
    CornuText a, b;
    if (cornu_shape_equal(cornu_tensor_shape(*y_true), cornu_tensor_shape(y_pred))) return true;
    cornu__fail_null(CORNU_ERR_SHAPE, "%s: y_true is %s, y_pred %s; expected the same", loss,
                     cornu_shape_print(&a, cornu_tensor_shape(*y_true)),
                     cornu_shape_print(&b, cornu_tensor_shape(y_pred)));
    return false;
}

static int64_t last_axis(CornuTensor *x) { return INT64_C(1) << (cornu_tensor_shape(x).rank - 1); }

static CornuTensor *clip(CornuTensor *x, double low, double high)
{
    CornuTensor *at_least = cornu_op_maximum(x, cornu_op_constant_like(x, low));
    return cornu_op_minimum(at_least, cornu_op_constant_like(x, high));
}

/* Keras' epsilon() */
static const double epsilon = 1e-7;

/* log p: of the clipped and normalised probabilities, or of softmax(logits). */
static CornuTensor *log_probabilities(const CornuLoss *self, CornuTensor *y_pred)
{
    if (self->from_logits) return cornu_op_log_softmax(y_pred);
    CornuTensor *sum = cornu_op_reduce_sum(y_pred, last_axis(y_pred), true);
    return cornu_op_log(clip(cornu_op_divide(y_pred, sum), epsilon, 1.0 - epsilon));
}

/* - sum over the last axis of target log p */
static CornuTensor *cross_entropy(CornuTensor *target, CornuTensor *log_p)
{
    CornuTensor *product = cornu_op_multiply(target, log_p);
    if (!product) return NULL;
    return cornu_op_negative(cornu_op_reduce_sum(product, last_axis(product), false));
}

/* y (1 - s) + s / classes */
static CornuTensor *smooth(const CornuLoss *self, CornuTensor *y_true, double classes)
{
    const double s = self->label_smoothing;
    if (s == 0.0) return y_true;
    return cornu_op_shift(cornu_op_scale(y_true, 1.0 - s), s / classes);
}

/* ---- The losses ---- */

static CornuTensor *sparse_categorical_call(const CornuLoss *self, CornuTensor *y_true,
                                            CornuTensor *y_pred)
{
    if (!y_true || !y_pred) return NULL;
    CornuShape   pred = cornu_tensor_shape(y_pred);
    CornuTensor *labels = cornu__class_labels(y_true, y_pred);
    if (!labels) return NULL;
    CornuShape shape = cornu_tensor_shape(labels), expected = pred;
    if (expected.rank > 0) expected.extent[--expected.rank] = 0;
    CornuText a, b;
    if (!cornu_shape_equal(shape, expected))
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: labels are %s for predictions %s; expected "
                                "(B, …) for (B, …, C)", self->name, cornu_shape_print(&a, shape),
                                cornu_shape_print(&b, pred));
    if (self->from_logits) return cornu_op_sparse_cross_entropy(y_pred, labels);
    CornuTensor *target = cornu_op_one_hot(labels, pred.extent[pred.rank - 1], CORNU_F32);
    return cross_entropy(target, log_probabilities(self, y_pred));
}

static CornuTensor *categorical_call(const CornuLoss *self, CornuTensor *y_true,
                                     CornuTensor *y_pred)
{
    if (!y_pred || !same_shapes(self->name, &y_true, y_pred)) return NULL;
    const CornuShape shape = cornu_tensor_shape(y_pred);
    CornuTensor *target = smooth(self, y_true, (double)shape.extent[shape.rank - 1]);
    return cross_entropy(target, log_probabilities(self, y_pred));
}

static CornuTensor *binary_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!y_pred || !same_shapes(self->name, &y_true, y_pred)) return NULL;
    CornuTensor *y = smooth(self, y_true, 2.0), *value;
    CornuTensor *not_y = cornu_op_shift(cornu_op_negative(y), 1.0);
    if (self->from_logits) {
        /* - log sigmoid(x) = softplus(-x), - log(1 - sigmoid(x)) = softplus(x) */
        CornuTensor *yes = cornu_op_softplus(cornu_op_negative(y_pred));
        CornuTensor *no = cornu_op_softplus(y_pred);
        value = cornu_op_add(cornu_op_multiply(y, yes), cornu_op_multiply(not_y, no));
    } else {
        CornuTensor *p = clip(y_pred, epsilon, 1.0 - epsilon);
        CornuTensor *yes = cornu_op_log(p);
        CornuTensor *no = cornu_op_log(cornu_op_shift(cornu_op_negative(p), 1.0));
        value = cornu_op_negative(cornu_op_add(cornu_op_multiply(y, yes),
                                               cornu_op_multiply(not_y, no)));
    }
    return value ? cornu_op_reduce_mean(value, last_axis(value), false) : NULL;
}

static CornuTensor *squared_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!y_pred || !same_shapes(self->name, &y_true, y_pred)) return NULL;
    CornuTensor *square = cornu_op_square(cornu_op_subtract(y_true, y_pred));
    return square ? cornu_op_reduce_mean(square, last_axis(square), false) : NULL;
}

/* ---- Constructors ---- */

static void free_loss(CornuLoss *loss) { cornu__release(loss); }

static CornuLoss *create(const char *name, const CornuCrossentropyConfig *config,
                         CornuTensor *(*call)(const CornuLoss *, CornuTensor *, CornuTensor *))
{
    if (cornu_error_pending()) return NULL;
    if (!(config->label_smoothing >= 0.0 && config->label_smoothing <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .label_smoothing is %g, expected 0 to 1",
                                name, config->label_smoothing);
    CornuLoss *loss = cornu__allocate(1, sizeof *loss);
    if (!loss) return cornu__null();
    *loss = (CornuLoss){ .name = name, .call = call, .free = free_loss,
                         .from_logits = config->from_logits,
                         .label_smoothing = config->label_smoothing };
    return loss;
}

CornuLoss *cornu_sparse_categorical_crossentropy_from(const CornuCrossentropyConfig *config)
{
    if (config->label_smoothing != 0.0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "sparse_categorical_crossentropy: has no "
                                ".label_smoothing; categorical_crossentropy does");
    return create("sparse_categorical_crossentropy", config, sparse_categorical_call);
}

CornuLoss *cornu_categorical_crossentropy_from(const CornuCrossentropyConfig *config)
{
    return create("categorical_crossentropy", config, categorical_call);
}

CornuLoss *cornu_binary_crossentropy_from(const CornuCrossentropyConfig *config)
{
    return create("binary_crossentropy", config, binary_call);
}

CornuLoss *cornu_mean_squared_error(void)
{
    return create("mean_squared_error", &(CornuCrossentropyConfig){ 0 }, squared_call);
}

CornuLoss *cornu_loss(const char *name)
{
    static const char *const names[] = { "sparse_categorical_crossentropy",
                                         "categorical_crossentropy", "binary_crossentropy",
                                         "mean_squared_error", "mse" };
    enum { COUNT = sizeof names / sizeof *names };
    const CornuCrossentropyConfig usual = { 0 };
    for (int i = 0; name && i < COUNT; i++) {
        if (strcmp(name, names[i])) continue;
        switch (i) {
        case 0: return cornu_sparse_categorical_crossentropy_from(&usual);
        case 1: return cornu_categorical_crossentropy_from(&usual);
        case 2: return cornu_binary_crossentropy_from(&usual);
        default: return cornu_mean_squared_error();
        }
    }
    const char *near = name ? cornu__nearest(name, names, COUNT) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "loss \"%s\" is not known%s%s%s",
                            name ? name : "(NULL)", near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
}

void cornu_loss_free(CornuLoss *loss)
{
    if (loss && loss->free) loss->free(loss);
}

/* ---- Reduction over what counts ---- */

CornuTensor *cornu__valid_mask(CornuTensor *mask, CornuTensor *valid)
{
    if (!mask || !valid) return NULL;
    const int64_t rows = cornu_tensor_shape(valid).extent[0];
    return cornu_op_select(cornu_op_reshape(valid, cornu_shape(rows, 1)), mask,
                           cornu_op_constant_like(mask, 0.0));
}

/* What counts, bool over the first axes of values, with an axis for each of the others; *behind:
 * how many values these hold. */
static CornuTensor *align(CornuTensor *counted, CornuShape values, int64_t *behind)
{
    CornuShape shape = cornu_tensor_shape(counted), wide = { .rank = values.rank };
    bool       fits = shape.rank <= values.rank;
    *behind = 1;
    for (int i = 0; i < values.rank; i++) {
        wide.extent[i] = i < shape.rank ? shape.extent[i] : 1;
        if (i < shape.rank) fits &= shape.extent[i] == values.extent[i];
        else *behind *= values.extent[i];
    }
    CornuText a, b;
    if (!fits)
        return cornu__fail_null(CORNU_ERR_SHAPE, "values of shape %s have a mask of shape %s, "
                                "expected its axes to be their first ones",
                                cornu_shape_print(&a, values), cornu_shape_print(&b, shape));
    return cornu_op_reshape(counted, wide);
}

CornuTensor *cornu__valid_sum(CornuTensor *values, const CornuMetricCall *call,
                              CornuTensor **count)
{
    int64_t      behind;
    CornuTensor *counted = call->mask ? call->mask : call->valid;
    if (!values || !counted) return *count = NULL;
    CornuTensor *mask = align(counted, cornu_tensor_shape(values), &behind);
    CornuTensor *all = call->count;
    if (call->mask)
        all = cornu_op_all_reduce(cornu_op_sum(cornu_op_convert(call->mask, CORNU_I64)));
    *count = cornu_op_scale(all, (double)behind);
    return cornu_op_sum(cornu_op_select(mask, values, cornu_op_constant_like(values, 0.0)));
}
