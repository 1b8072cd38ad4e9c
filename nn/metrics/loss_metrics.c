/* The classes of metrics that are means of losses, and which loss has which. */
#include <string.h>

#include "../fields/field_internal.h"
#include "metric_internal.h"

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
    const CornuSerializableClass cornu__mean_##loss_name##_class = {                 \
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
MEAN_OF(log_cosh, "LogCoshError", "logcosh", no_fields);
MEAN_OF(mean_squared_error, "MeanSquaredError", "mean_squared_error", no_fields);
MEAN_OF(mean_absolute_error, "MeanAbsoluteError", "mean_absolute_error", no_fields);
MEAN_OF(mean_absolute_percentage_error, "MeanAbsolutePercentageError",
        "mean_absolute_percentage_error", no_fields);
MEAN_OF(mean_squared_logarithmic_error, "MeanSquaredLogarithmicError",
        "mean_squared_logarithmic_error", no_fields);

static const CornuSerializableClass *const classes[] = {
    &cornu__mean_binary_crossentropy_class, &cornu__mean_categorical_crossentropy_class,
    &cornu__mean_sparse_categorical_crossentropy_class, &cornu__mean_kl_divergence_class,
    &cornu__mean_poisson_class, &cornu__mean_hinge_class, &cornu__mean_squared_hinge_class,
    &cornu__mean_categorical_hinge_class, &cornu__mean_log_cosh_class,
    &cornu__mean_mean_squared_error_class, &cornu__mean_mean_absolute_error_class,
    &cornu__mean_mean_absolute_percentage_error_class,
    &cornu__mean_mean_squared_logarithmic_error_class,
};

static bool has_field(const CornuSerializableClass *kind, const char *name)
{
    for (const CornuField *field = kind->fields; field->name; field++)
        if (!strcmp(field->name, name)) return true;
    return false;
}

/* Whether the metric has all arguments that the loss sets; the reduction does not matter. */
static bool says_all(const CornuSerializableClass *kind, const CornuLoss *loss)
{
    for (const CornuField *field = loss->kind->fields; field->name; field++)
        if (field->kind != CORNU_FIELD_REDUCTION && !has_field(kind, field->name) &&
            !cornu__is_default(field, loss->config))
            return false;
    return true;
}

const CornuSerializableClass *cornu__metric_class_of_loss(const CornuLoss *loss)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes && loss->kind; i++)
        if (classes[i]->loss == loss->kind) return says_all(classes[i], loss) ? classes[i] : NULL;
    return NULL;
}
