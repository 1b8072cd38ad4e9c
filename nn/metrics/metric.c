/* Metrics by name, and what they share. */
#include "metric.h"

#include <string.h>

#include "../../device/nearest.h"
#include "metric_internal.h"

static void free_metric(CornuMetric *metric) { cornu__release(metric); }

void *cornu__metric_create(size_t size, const CornuMetric *base, const void *config)
{
    if (cornu__refused()) return NULL;
    CornuMetric  made = *base;
    CornuMetric *metric = cornu__object_create(size, base->kind, config,
                                               base->kind ? base->kind->name : base->name,
                                               &made.config, &made.name);
    if (!metric) return NULL;
    if (!made.free) made.free = free_metric;
    *metric = made;
    return metric;
}

void cornu_metric_free(CornuMetric *metric)
{
    if (metric && metric->free) metric->free(metric);
}

CornuTensor *cornu__accumulate(CornuTensor *old, CornuTensor *more)
{
    return cornu_op_add(old, cornu_op_all_reduce(cornu_op_convert(more, CORNU_F64)));
}

double cornu__mean_of_results(const CornuMetric *self, const CornuArray *states)
{
    double sum = 0.0;
    for (int64_t i = 0; i < self->result_count; i++) sum += self->result_at(self, states, i);
    return cornu__ratio(sum, (double)self->result_count);
}

/* ---- Means of losses ---- */

#define FIELD(Config, name, kind) { #name, CORNU_FIELD_##kind, offsetof(Config, name) }
static const CornuField no_fields[] = { { 0 } };
static const CornuField binary_fields[] = {
    FIELD(CornuCrossentropyConfig, from_logits, FLAG),
    FIELD(CornuCrossentropyConfig, label_smoothing, NUMBER_OR_DEFAULT), { 0 },
};
static const CornuField categorical_fields[] = {
    FIELD(CornuCrossentropyConfig, from_logits, FLAG),
    FIELD(CornuCrossentropyConfig, label_smoothing, NUMBER_OR_DEFAULT),
    FIELD(CornuCrossentropyConfig, axis, INTEGER_OR_DEFAULT), { 0 },
};
static const CornuField sparse_fields[] = {
    FIELD(CornuSparseCrossentropyConfig, from_logits, FLAG),
    FIELD(CornuSparseCrossentropyConfig, ignore_class, INTEGER_OR_NONE),
    FIELD(CornuSparseCrossentropyConfig, axis, INTEGER_OR_DEFAULT), { 0 },
};

#define MEAN_OF(loss_name, keras_class, keras_name, table)                      \
    static const CornuObjectClass mean_##loss_name = {                         \
        .class_name = keras_class, .name = keras_name, .fields = table,        \
        .loss = &cornu__##loss_name##_class }
MEAN_OF(binary_crossentropy, "BinaryCrossentropy", "binary_crossentropy", binary_fields);
MEAN_OF(categorical_crossentropy, "CategoricalCrossentropy",
        "categorical_crossentropy", categorical_fields);
MEAN_OF(sparse_categorical_crossentropy, "SparseCategoricalCrossentropy",
        "sparse_categorical_crossentropy", sparse_fields);
MEAN_OF(kl_divergence, "KLDivergence", "kl_divergence", no_fields);
MEAN_OF(poisson, "Poisson", "poisson", no_fields);
MEAN_OF(hinge, "Hinge", "hinge", no_fields);
MEAN_OF(squared_hinge, "SquaredHinge", "squared_hinge", no_fields);
MEAN_OF(categorical_hinge, "CategoricalHinge", "categorical_hinge", no_fields);
MEAN_OF(log_cosh, "LogCoshError", "log_cosh_error", no_fields);
MEAN_OF(mean_squared_error, "MeanSquaredError", "mean_squared_error", no_fields);
MEAN_OF(mean_absolute_error, "MeanAbsoluteError", "mean_absolute_error", no_fields);
MEAN_OF(mean_absolute_percentage_error, "MeanAbsolutePercentageError",
        "mean_absolute_percentage_error", no_fields);
MEAN_OF(mean_squared_logarithmic_error, "MeanSquaredLogarithmicError",
        "mean_squared_logarithmic_error", no_fields);

/* ---- By name ---- */

/* The names are those of the classes. */
static const CornuObjectClass *const classes[] = {
    &cornu__accuracy_class, &cornu__crossentropy_class, &cornu__binary_accuracy_class,
    &cornu__categorical_accuracy_class, &cornu__sparse_categorical_accuracy_class,
    &cornu__top_k_categorical_accuracy_class, &cornu__sparse_top_k_categorical_accuracy_class,
    &mean_binary_crossentropy, &mean_categorical_crossentropy,
    &mean_sparse_categorical_crossentropy, &mean_kl_divergence,
    &mean_poisson, &mean_hinge,
    &mean_squared_hinge, &mean_categorical_hinge,
    &mean_log_cosh, &mean_mean_squared_error,
    &mean_mean_absolute_error, &mean_mean_absolute_percentage_error,
    &mean_mean_squared_logarithmic_error,
    &cornu__root_mean_squared_error_class, &cornu__cosine_similarity_metric_class,
    &cornu__pearson_correlation_class, &cornu__concordance_correlation_class,
    &cornu__r2_score_class, &cornu__precision_class, &cornu__recall_class, &cornu__auc_class,
    &cornu__true_positives_class, &cornu__true_negatives_class, &cornu__false_positives_class,
    &cornu__false_negatives_class, &cornu__f1_score_class, &cornu__fbeta_score_class,
    &cornu__binary_iou_class,
};

/* Those that cannot be had without arguments, or whose name is another's. */
static const CornuObjectClass *const others[] = {
    &cornu__sensitivity_at_specificity_class, &cornu__specificity_at_sensitivity_class,
    &cornu__precision_at_recall_class, &cornu__recall_at_precision_class, &cornu__mean_iou_class,
    &cornu__iou_class, &cornu__equality_accuracy_class,
};

static const struct {
    const char             *name;
    const CornuObjectClass *kind;
} aliases[] = {
    { "acc", &cornu__accuracy_class }, { "ce", &cornu__crossentropy_class },
    { "bce", &mean_binary_crossentropy }, { "BCE", &mean_binary_crossentropy },
    { "mse", &mean_mean_squared_error }, { "MSE", &mean_mean_squared_error },
    { "mae", &mean_mean_absolute_error }, { "MAE", &mean_mean_absolute_error },
    { "mape", &mean_mean_absolute_percentage_error },
    { "MAPE", &mean_mean_absolute_percentage_error },
    { "msle", &mean_mean_squared_logarithmic_error },
    { "MSLE", &mean_mean_squared_logarithmic_error }, { "AUC", &cornu__auc_class },
};

enum {
    CLASSES = sizeof classes / sizeof *classes, OTHERS = sizeof others / sizeof *others,
    ALIASES = sizeof aliases / sizeof *aliases,
};

const CornuObjectClass *cornu__metric_class(const char *class_name)
{
    for (int i = 0; i < CLASSES + OTHERS; i++) {
        const CornuObjectClass *kind = i < CLASSES ? classes[i] : others[i - CLASSES];
        if (kind->class_name && !strcmp(kind->class_name, class_name)) return kind;
    }
    return NULL;
}

static bool has_field(const CornuObjectClass *kind, const char *name)
{
    for (const CornuField *field = kind->fields; field->name; field++)
        if (!strcmp(field->name, name)) return true;
    return false;
}

/* Whether all arguments of the loss are among the metric's, or defaults; its reduction is nothing
 * to the metric. */
static bool says_all(const CornuObjectClass *kind, const CornuLoss *loss)
{
    for (const CornuField *field = loss->kind->fields; field->name; field++)
        if (field->kind != CORNU_FIELD_REDUCTION && !has_field(kind, field->name) &&
            !cornu__is_default(field, loss->config))
            return false;
    return true;
}

const CornuObjectClass *cornu__metric_class_of_loss(const CornuLoss *loss)
{
    for (int i = 0; i < CLASSES && loss->kind; i++)
        if (classes[i]->loss == loss->kind) return says_all(classes[i], loss) ? classes[i] : NULL;
    return NULL;
}

CornuMetric *cornu_metric(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const char *names[CLASSES + ALIASES];
    for (int i = 0; i < CLASSES + ALIASES; i++) {
        const CornuObjectClass *kind = i < CLASSES ? classes[i] : aliases[i - CLASSES].kind;
        names[i] = i < CLASSES ? kind->name : aliases[i - CLASSES].name;
        if (!name || strcmp(name, names[i])) continue;
        return kind->loss ? cornu_loss_metric(name, cornu__object_usual(kind->loss, NULL))
                          : cornu__object_usual(kind, name);
    }
    const char *near = name ? cornu__nearest(name, names, CLASSES + ALIASES) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "metric \"%s\" is not known%s%s%s",
                            name, near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
}
