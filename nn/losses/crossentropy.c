/* Losses that compare distributions over classes. */
#include "loss_internal.h"

#include "../../device/log_internal.h"
#include "../../tensor/tensor_internal.h"

/* The arguments of the focal losses; the others have fewer. */
typedef struct {
    CornuLoss base;
    bool      from_logits, has_ignored, balanced;
    double    label_smoothing, alpha, gamma, q;
    int64_t   axis, ignored;
} Crossentropy;

static const Crossentropy *of(const CornuLoss *self) { return (const Crossentropy *)self; }

static CornuTensor *clipped(CornuTensor *p)
{
    return cornu_op_clip(p, CORNU__EPSILON, 1.0 - CORNU__EPSILON);
}

/* The divisor of probabilities: their sum, or 1 where that is 0. One such row would otherwise make
 * all gradients NaN. */
static CornuTensor *divisor(CornuTensor *y_pred, bool keep)
{
    CornuTensor *sum = cornu_op_reduce_sum(y_pred, cornu__last_axis(y_pred), keep);
    if (!sum) return NULL;
    CornuTensor *zero = cornu_op_constant_like(sum, 0.0), *one = cornu_op_constant_like(sum, 1.0);
    return cornu_op_select(cornu_op_compare(sum, CORNU_EQUAL, zero), one, sum);
}

/* Probabilities along the last axis, normalised and clipped. */
static CornuTensor *probabilities(CornuTensor *y_pred)
{
    return y_pred ? clipped(cornu_op_divide(y_pred, divisor(y_pred, true))) : NULL;
}

/* The logits: y_pred itself, or what a softmax or sigmoid of a last layer was applied to. Their
 * probabilities round to 0 and 1, where the loss would be that of a clipped one and have no
 * gradient. NULL if there are none. As Keras on TensorFlow; its other backends clip.
 * Source: keras/src/backend/tensorflow/nn.py, _get_logits. */
static CornuTensor *logits_of(const CornuLoss *self, CornuTensor *y_pred, CornuOpId activation)
{
    CornuTensor *logits = cornu__argument_of(y_pred, activation);
    if (logits && of(self)->from_logits)
        cornu__log(CORNU_LOG_WARNING, "%s: .from_logits is true, but the predictions are of a %s; "
                   "its logits are used", self->name, cornu_op_name(activation));
    return logits ? logits : of(self)->from_logits ? y_pred : NULL;
}

/* log p: of the clipped and normalised probabilities, or of softmax(logits). */
static CornuTensor *log_probabilities(const CornuLoss *self, CornuTensor *y_pred)
{
    CornuTensor *logits = logits_of(self, y_pred, CORNU_OP_SOFTMAX);
    return logits ? cornu_op_log_softmax(logits) : cornu_op_log(probabilities(y_pred));
}

/* - sum over the last axis of target log p */
static CornuTensor *cross_entropy(CornuTensor *target, CornuTensor *log_p)
{
    CornuTensor *product = cornu_op_multiply(target, log_p);
    if (!product) return NULL;
    return cornu_op_negative(cornu_op_reduce_sum(product, cornu__last_axis(product), false));
}

/* y (1 - s) + s / classes */
static CornuTensor *smooth(const CornuLoss *self, CornuTensor *y_true, double classes)
{
    const double s = of(self)->label_smoothing;
    if (s == 0.0) return y_true;
    return cornu_op_shift(cornu_op_scale(y_true, 1.0 - s), s / classes);
}

/* y_true as f32 of y_pred's shape, both with the axis of the loss as the last one. */
static bool align_operands(const CornuLoss *self, CornuTensor **y_true, CornuTensor **y_pred)
{
    if (!*y_pred || !cornu__same_shapes(self->name, y_true, *y_pred)) return false;
    *y_true = cornu__axis_last(self->name, *y_true, of(self)->axis);
    *y_pred = cornu__axis_last(self->name, *y_pred, of(self)->axis);
    return *y_true && *y_pred;
}

static double classes_of(CornuTensor *y_pred)
{
    const CornuShape shape = cornu_tensor_shape(y_pred);
    return (double)shape.extent[shape.rank - 1];
}

/* ---- Labels that are numbers ---- */

static CornuTensor *not_ignored(const CornuLoss *self, CornuTensor *labels)
{
    CornuTensor *all = cornu_op_convert(labels, CORNU_I64);   /* u8 has no -1 */
    if (!all) return NULL;
    return cornu_op_compare(all, CORNU_NOT_EQUAL,
                            cornu_op_constant_like(all, (double)of(self)->ignored));
}

static CornuTensor *sparse_mask(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    y_pred = cornu__axis_last(self->name, y_pred, of(self)->axis);
    return not_ignored(self, cornu__class_labels(y_true, y_pred));
}

/* Labels (B, …) for predictions (B, …, C) as integers; ignored ones become 0. */
static CornuTensor *labels_of(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    CornuTensor *labels = cornu__class_labels(y_true, y_pred);
    if (!labels) return NULL;
    const CornuShape pred = cornu_tensor_shape(y_pred), shape = cornu_tensor_shape(labels);
    CornuShape       expected = pred;
    expected.extent[--expected.rank] = 0;
    CornuText a, b;
    if (!cornu_shape_equal(shape, expected))
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: labels are %s for predictions %s; expected "
                                "(B, …) for (B, …, C)", self->name, cornu_shape_print(&a, shape),
                                cornu_shape_print(&b, pred));
    if (!of(self)->has_ignored) return labels;
    return cornu_op_select(not_ignored(self, labels), labels, cornu_op_constant_like(labels, 0.0));
}

static CornuTensor *one_hot_of(CornuTensor *labels, CornuTensor *y_pred)
{
    const CornuShape pred = cornu_tensor_shape(y_pred);
    return cornu_op_one_hot(labels, pred.extent[pred.rank - 1], CORNU_F32);
}

/* The predictions (B, …, C) of the labels (B, …). */
static CornuTensor *predictions_of(CornuTensor *labels, CornuTensor *y_pred)
{
    CornuTensor *chosen = cornu_op_multiply(one_hot_of(labels, y_pred), y_pred);
    return chosen ? cornu_op_reduce_sum(chosen, cornu__last_axis(chosen), false) : NULL;
}

/* - log p of the label's class alone: the others would be multiplied by 0. */
static CornuTensor *sparse_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    y_pred = cornu__axis_last(self->name, y_pred, of(self)->axis);
    CornuTensor *labels = labels_of(self, y_true, y_pred);
    if (!labels) return NULL;
    CornuTensor *logits = logits_of(self, y_pred, CORNU_OP_SOFTMAX);
    if (logits) return cornu_op_sparse_cross_entropy(logits, labels);
    CornuTensor *p = cornu_op_divide(predictions_of(labels, y_pred), divisor(y_pred, false));
    return cornu_op_negative(cornu_op_log(clipped(p)));
}

/* (1 - p^q) / q */
static CornuTensor *generalized_call(const CornuLoss *self, CornuTensor *y_true,
                                     CornuTensor *y_pred)
{
    const double q = of(self)->q;
    CornuTensor *labels = labels_of(self, y_true, y_pred);
    if (!labels) return NULL;
    CornuTensor *p = predictions_of(labels, y_pred);
    if (!p) return NULL;
    /* The slope of p^q at 0 is infinite: no gradient from there. */
    CornuTensor *zero = cornu_op_constant_like(p, 0.0);
    p = cornu_op_select(cornu_op_compare(p, CORNU_EQUAL, zero), zero, p);
    p = cornu_op_power(p, cornu_op_constant_like(p, q));
    return cornu_op_scale(cornu__one_minus(p), 1.0 / q);
}

/* ---- One class of several ---- */

static CornuTensor *categorical_call(const CornuLoss *self, CornuTensor *y_true,
                                     CornuTensor *y_pred)
{
    if (!align_operands(self, &y_true, &y_pred)) return NULL;
    CornuTensor *target = smooth(self, y_true, classes_of(y_pred));
    return cross_entropy(target, log_probabilities(self, y_pred));
}

/* x^gamma */
static CornuTensor *to_gamma(const CornuLoss *self, CornuTensor *x)
{
    const double gamma = of(self)->gamma;
    if (gamma == 2.0) return cornu_op_square(x);
    return x ? cornu_op_power(x, cornu_op_constant_like(x, gamma)) : NULL;
}

static CornuTensor *categorical_focal_call(const CornuLoss *self, CornuTensor *y_true,
                                           CornuTensor *y_pred)
{
    if (!align_operands(self, &y_true, &y_pred)) return NULL;
    CornuTensor *target = smooth(self, y_true, classes_of(y_pred));
    if (of(self)->from_logits) y_pred = cornu_op_softmax(y_pred);
    CornuTensor *p = probabilities(y_pred);
    CornuTensor *factor = cornu_op_scale(to_gamma(self, cornu__one_minus(p)), of(self)->alpha);
    return cross_entropy(cornu_op_multiply(factor, target), cornu_op_log(p));
}

/* - sum of t log(p / t), p and t clipped to [1e-7, 1] */
static CornuTensor *divergence_call(const CornuLoss *self, CornuTensor *y_true,
                                    CornuTensor *y_pred)
{
    if (!align_operands(self, &y_true, &y_pred)) return NULL;
    CornuTensor *t = cornu_op_clip(y_true, CORNU__EPSILON, 1.0);
    CornuTensor *p = cornu_op_clip(y_pred, CORNU__EPSILON, 1.0);
    return cross_entropy(t, cornu_op_log(cornu_op_divide(p, t)));
}

/* ---- Each of N by itself ---- */

/* y a + (1 - y) b */
static CornuTensor *either(CornuTensor *y, CornuTensor *a, CornuTensor *b)
{
    return cornu_op_add(cornu_op_multiply(y, a), cornu_op_multiply(cornu__one_minus(y), b));
}

/* - y log p - (1 - y) log(1 - p), where - log sigmoid(x) = softplus(-x) and
 * - log(1 - sigmoid(x)) = softplus(x) */
static CornuTensor *bernoulli(const CornuLoss *self, CornuTensor *y, CornuTensor *y_pred)
{
    CornuTensor *logits = logits_of(self, y_pred, CORNU_OP_SIGMOID);
    if (logits)
        return either(y, cornu_op_softplus(cornu_op_negative(logits)), cornu_op_softplus(logits));
    CornuTensor *p = clipped(y_pred);
    return cornu_op_negative(either(y, cornu_op_log(p), cornu_op_log(cornu__one_minus(p))));
}

static CornuTensor *mean_of_last(CornuTensor *x)
{
    return x ? cornu_op_reduce_mean(x, cornu__last_axis(x), false) : NULL;
}

static CornuTensor *binary_call(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    if (!align_operands(self, &y_true, &y_pred)) return NULL;
    return mean_of_last(bernoulli(self, smooth(self, y_true, 2.0), y_pred));
}

static CornuTensor *binary_focal_call(const CornuLoss *self, CornuTensor *y_true,
                                      CornuTensor *y_pred)
{
    if (!align_operands(self, &y_true, &y_pred)) return NULL;
    CornuTensor *y = smooth(self, y_true, 2.0);
    CornuTensor *logits = logits_of(self, y_pred, CORNU_OP_SIGMOID);
    CornuTensor *p = logits == y_pred ? cornu_op_sigmoid(y_pred) : y_pred;
    CornuTensor *right = either(y, p, cornu__one_minus(p));
    CornuTensor *value = cornu_op_multiply(to_gamma(self, cornu__one_minus(right)),
                                           bernoulli(self, y, y_pred));
    if (of(self)->balanced) {
        const double alpha = of(self)->alpha;
        CornuTensor *weight = cornu_op_shift(cornu_op_scale(y, 2.0 * alpha - 1.0), 1.0 - alpha);
        value = cornu_op_multiply(weight, value);
    }
    return mean_of_last(value);
}

/* ---- Constructors ---- */

#define FIELD(Config, name, kind) { #name, CORNU_FIELD_##kind, offsetof(Config, name) }
#define FOCAL_FIELDS(Config)                                                                \
    FIELD(Config, alpha, NUMBER_OR_DEFAULT), FIELD(Config, gamma, NUMBER_OR_DEFAULT),        \
    FIELD(Config, from_logits, FLAG), FIELD(Config, label_smoothing, NUMBER_OR_DEFAULT),     \
    FIELD(Config, axis, INTEGER_OR_DEFAULT), FIELD(Config, reduction, REDUCTION)

static const CornuField sparse_fields[] = {
    FIELD(CornuSparseCrossentropyConfig, from_logits, FLAG),
    FIELD(CornuSparseCrossentropyConfig, ignore_class, INTEGER_OR_NONE),
    FIELD(CornuSparseCrossentropyConfig, axis, INTEGER_OR_DEFAULT),
    FIELD(CornuSparseCrossentropyConfig, reduction, REDUCTION), { 0 },
};
static const CornuField fields[] = {
    FIELD(CornuCrossentropyConfig, from_logits, FLAG),
    FIELD(CornuCrossentropyConfig, label_smoothing, NUMBER_OR_DEFAULT),
    FIELD(CornuCrossentropyConfig, axis, INTEGER_OR_DEFAULT),
    FIELD(CornuCrossentropyConfig, reduction, REDUCTION), { 0 },
};
static const CornuField categorical_focal_fields[] = {
    FOCAL_FIELDS(CornuCategoricalFocalConfig), { 0 },
};
static const CornuField generalized_fields[] = {
    FIELD(CornuGeneralizedCrossentropyConfig, q, NUMBER),
    FIELD(CornuGeneralizedCrossentropyConfig, reduction, REDUCTION), { 0 },
};
static const CornuField binary_focal_fields[] = {
    FIELD(CornuBinaryFocalConfig, apply_class_balancing, FLAG),
    FOCAL_FIELDS(CornuBinaryFocalConfig), { 0 },
};

#define CLASS(function, class_name, Config, table) \
    CORNU__SERIALIZABLE_CLASS(function, class_name, #function, Config, .fields = table)
CORNU__SERIALIZABLE_CLASS(sparse_categorical_crossentropy, "SparseCategoricalCrossentropy",
                          "sparse_categorical_crossentropy", CornuSparseCrossentropyConfig,
                          .fields = sparse_fields, .whole_labels = true);
CLASS(categorical_crossentropy, "CategoricalCrossentropy", CornuCrossentropyConfig, fields);
CLASS(binary_crossentropy, "BinaryCrossentropy", CornuCrossentropyConfig, fields);
CLASS(categorical_focal_crossentropy, "CategoricalFocalCrossentropy", CornuCategoricalFocalConfig,
      categorical_focal_fields);
CLASS(binary_focal_crossentropy, "BinaryFocalCrossentropy", CornuBinaryFocalConfig,
      binary_focal_fields);
CORNU__SERIALIZABLE_CLASS(categorical_generalized_cross_entropy,
                          "CategoricalGeneralizedCrossEntropy",
                          "categorical_generalized_cross_entropy",
                          CornuGeneralizedCrossentropyConfig,
                          .fields = generalized_fields, .whole_labels = true);
CLASS(kl_divergence, "KLDivergence", CornuLossConfig, cornu__loss_fields);

static CornuLoss *create_crossentropy(Crossentropy loss, const void *config)
{
    const char *name = loss.base.kind->name;
    if (cornu__refused()) return NULL;
    if (!(loss.label_smoothing >= 0.0 && loss.label_smoothing <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .label_smoothing is %g, expected 0 to 1",
                                name, loss.label_smoothing);
    if (!(loss.gamma >= 0.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .gamma is %g, expected 0 or more", name,
                                loss.gamma);
    Crossentropy *made = cornu__loss_create(sizeof *made, &loss.base, config);
    if (!made) return NULL;
    loss.base = made->base;
    *made = loss;
    return &made->base;
}

CornuLoss *cornu_sparse_categorical_crossentropy_from(const CornuSparseCrossentropyConfig *config)
{
    const bool ignores = config->ignore_class != 0;
    return create_crossentropy((Crossentropy){
        .base = { .kind = &cornu__sparse_categorical_crossentropy_class, .call = sparse_call,
                  .mask = ignores ? sparse_mask : NULL, .reduction = config->reduction },
        .from_logits = config->from_logits, .axis = config->axis, .has_ignored = ignores,
        .ignored = cornu__integer(config->ignore_class, 0) }, config);
}

static CornuLoss *crossentropy(const CornuCrossentropyConfig *config, CornuLoss base)
{
    base.reduction = config->reduction;
    return create_crossentropy((Crossentropy){
        .base = base, .from_logits = config->from_logits, .axis = config->axis,
        .label_smoothing = cornu__number(config->label_smoothing, 0.0) }, config);
}

CornuLoss *cornu_categorical_crossentropy_from(const CornuCrossentropyConfig *config)
{
    return crossentropy(config, (CornuLoss){ .kind = &cornu__categorical_crossentropy_class,
                                             .call = categorical_call });
}

CornuLoss *cornu_binary_crossentropy_from(const CornuCrossentropyConfig *config)
{
    return crossentropy(config, (CornuLoss){ .kind = &cornu__binary_crossentropy_class,
                                             .call = binary_call });
}

CornuLoss *cornu_categorical_focal_crossentropy_from(const CornuCategoricalFocalConfig *config)
{
    return create_crossentropy((Crossentropy){
        .base = { .kind = &cornu__categorical_focal_crossentropy_class,
                  .call = categorical_focal_call, .reduction = config->reduction },
        .from_logits = config->from_logits, .axis = config->axis,
        .label_smoothing = cornu__number(config->label_smoothing, 0.0),
        .alpha = cornu__number(config->alpha, 0.25),
        .gamma = cornu__number(config->gamma, 2.0) }, config);
}

CornuLoss *cornu_binary_focal_crossentropy_from(const CornuBinaryFocalConfig *config)
{
    return create_crossentropy((Crossentropy){
        .base = { .kind = &cornu__binary_focal_crossentropy_class, .call = binary_focal_call,
                  .reduction = config->reduction },
        .from_logits = config->from_logits, .axis = config->axis,
        .balanced = config->apply_class_balancing,
        .label_smoothing = cornu__number(config->label_smoothing, 0.0),
        .alpha = cornu__number(config->alpha, 0.25),
        .gamma = cornu__number(config->gamma, 2.0) }, config);
}

CornuLoss *cornu_categorical_generalized_cross_entropy_from(
    const CornuGeneralizedCrossentropyConfig *config)
{
    const CornuSerializableClass *kind = &cornu__categorical_generalized_cross_entropy_class;
    CornuGeneralizedCrossentropyConfig full = *config;
    if (cornu__refused()) return NULL;
    if (full.q == 0.0) full.q = 0.5;
    if (!(full.q > 0.0 && full.q < 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .q is %g, expected above 0 and below 1",
                                kind->name, cornu__number(full.q, 0.0));
    return create_crossentropy((Crossentropy){
        .base = { .kind = kind, .call = generalized_call, .reduction = full.reduction },
        .q = full.q }, &full);
}

CornuLoss *cornu_kl_divergence_from(const CornuLossConfig *config)
{
    return create_crossentropy((Crossentropy){
        .base = { .kind = &cornu__kl_divergence_class, .call = divergence_call,
                  .reduction = config->reduction } }, config);
}
