/* Metrics that are the mean of some values: accuracies, losses, similarities. Sources:
 * keras/src/metrics/accuracy_metrics.py, regression_metrics.py, correlation_metrics.py. */
#include <math.h>

#include "metric_internal.h"

typedef struct MeanMetric MeanMetric;

typedef CornuTensor *Values(const MeanMetric *self, CornuMetricCall *call);

/* Depends on the shapes of the data: the values, or the name of the loss. */
typedef struct {
    Values     *values;
    const char *loss;
} Choice;

struct MeanMetric {
    CornuMetric        base;
    Values            *values;
    CornuMetricValues *given;         /* the custom function */
    CornuLoss         *loss;          /* owned, or NULL */
    Choice             binary, categorical, sparse;
    double             threshold;
    int64_t            k, axis;
    bool               sorted_ids;    /* predictions are class numbers */
};

enum { SUM, COUNT };

CornuStatus cornu__mean_update(CornuTensor *values, const CornuMetricCall *call,
                               CornuTensor *const *old, CornuTensor **new_states)
{
    new_states[SUM] = cornu__accumulate(old[SUM], cornu__valid_sum(values, call));
    new_states[COUNT] = cornu_op_add(old[COUNT], cornu__valid_weight(values, call));
    return new_states[SUM] && new_states[COUNT] ? CORNU_OK : cornu_error_status();
}

double cornu__mean_result(const CornuArray *states)
{
    return cornu__ratio(*cornu__numbers(states[SUM]), *cornu__numbers(states[COUNT]));
}

static CornuStatus update(const CornuMetric *self, const CornuMetricCall *call,
                          CornuTensor *const *old, CornuTensor **new_states)
{
    const MeanMetric *metric = (const MeanMetric *)self;
    CornuMetricCall   own = *call;
    CornuTensor      *values = metric->values(metric, &own);
    return values ? cornu__mean_update(values, &own, old, new_states) : cornu_error_status();
}

static double result(const CornuMetric *self, const CornuArray *states)
{
    (void)self;
    return cornu__mean_result(states);
}

static void free_mean(CornuMetric *metric)
{
    cornu_loss_free(((MeanMetric *)metric)->loss);
    cornu__release(metric);
}

static MeanMetric *create(CornuMetric base, const void *config, Values *values)
{
    base.state_count = 2;
    base.states[SUM] = base.states[COUNT] = cornu_scalar(CORNU_F64);
    base.update = update;
    base.result = result;
    base.free = free_mean;
    MeanMetric *metric = cornu__metric_create(sizeof *metric, &base, config);
    if (metric) metric->values = values;
    return metric;
}

static CornuTensor *given_values(const MeanMetric *self, CornuMetricCall *call)
{
    return self->given(call->y_true, call->y_pred);
}

CornuMetric *cornu_mean_metric(const char *name, CornuMetricValues *values)
{
    MeanMetric *metric = create((CornuMetric){ .name = name }, NULL, given_values);
    if (!metric) return NULL;
    metric->given = values;
    return &metric->base;
}

/* Keras heeds the labels that a loss ignores only together with other weights
 * (reduction_metrics.py, reduce_to_samplewise_values). */
static CornuTensor *loss_values(const MeanMetric *self, CornuMetricCall *call)
{
    const bool   all_count = !call->weight && !call->mask;
    CornuTensor *values = cornu__loss_values(self->loss, call), *mask = call->mask;
    if (!values || !mask || !all_count) return values;
    call->mask = NULL;
    return cornu_op_select(mask, values, cornu_op_constant_like(values, 0.0));
}

CornuMetric *cornu_loss_metric(const char *name, CornuLoss *loss)
{
    MeanMetric *metric = loss ? create((CornuMetric){ .name = name }, NULL, loss_values) : NULL;
    if (metric) {
        const CornuSerializableClass *kind = cornu__metric_class_of_loss(loss);
        metric->base.kind = kind ? kind : loss->kind;
        metric->base.config = loss->config;
        metric->loss = loss;
        return &metric->base;
    }
    cornu_loss_free(loss);
    if (cornu__refused()) return NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "metric %s: the loss is NULL, expected one", name);
}

/* ---- Accuracies: 1 where the prediction is right ---- */

static CornuTensor *matches(CornuTensor *a, CornuTensor *b)
{
    return cornu_op_convert(cornu_op_compare(a, CORNU_EQUAL, b), CORNU_F32);
}

static int last_axis(CornuTensor *x) { return cornu_tensor_shape(x).rank - 1; }

static CornuTensor *is_above(CornuTensor *x, double threshold)
{
    if (!x) return NULL;
    CornuTensor *limit = cornu_op_constant_like(x, threshold);
    return cornu_op_convert(cornu_op_compare(x, CORNU_GREATER, limit), CORNU_F32);
}

static CornuTensor *binary_accuracy(const MeanMetric *self, CornuMetricCall *call)
{
    CornuTensor *truth = call->y_true;
    if (!call->y_pred || !cornu__same_shapes(self->base.name, &truth, call->y_pred)) return NULL;
    return matches(truth, is_above(call->y_pred, self->threshold));
}

static CornuTensor *one_hot_labels(CornuTensor *y_true)
{
    CornuTensor *truth = cornu_op_convert(y_true, CORNU_F32);
    return truth ? cornu_op_argmax(truth, last_axis(truth)) : NULL;
}

static CornuTensor *categorical_accuracy(const MeanMetric *self, CornuMetricCall *call)
{
    (void)self;
    CornuTensor *labels = one_hot_labels(call->y_true);
    return labels ? matches(labels, cornu_op_argmax(call->y_pred, last_axis(call->y_pred))) : NULL;
}

static CornuTensor *sparse_categorical_accuracy(const MeanMetric *self, CornuMetricCall *call)
{
    (void)self;
    CornuTensor *labels = cornu__class_labels(call->y_true, call->y_pred);
    if (!labels) return NULL;
    return matches(cornu_op_convert(labels, CORNU_I32),
                   cornu_op_argmax(call->y_pred, last_axis(call->y_pred)));
}

/* Whether fewer than k classes are above the right one. Source: keras/src/backend/jax/math.py,
 * in_top_k. */
static CornuTensor *in_top_k(const MeanMetric *self, CornuTensor *labels, CornuTensor *y_pred)
{
    if (!labels) return NULL;
    const int64_t classes = cornu_tensor_shape(y_pred).extent[last_axis(y_pred)];
    const int64_t last = cornu__last_axis(y_pred);
    CornuTensor  *right = cornu_op_one_hot(labels, classes, CORNU_F32);
    CornuTensor  *is_right = cornu_op_convert(right, CORNU_BOOL);
    CornuTensor  *score = cornu_op_select(is_right, y_pred, cornu_op_constant_like(y_pred, 0.0));
    if (!score) return NULL;
    CornuTensor *greater = cornu_op_compare(y_pred, CORNU_GREATER,
                                            cornu_op_reduce_sum(score, last, true));
    CornuTensor *above = cornu_op_reduce_sum(cornu_op_convert(greater, CORNU_F32), last, false);
    if (!above) return NULL;
    CornuTensor *limit = cornu_op_constant_like(above, (double)self->k);
    return cornu_op_convert(cornu_op_compare(above, CORNU_LESS, limit), CORNU_F32);
}

static CornuTensor *top_k(const MeanMetric *self, CornuMetricCall *call)
{
    return in_top_k(self, one_hot_labels(call->y_true), call->y_pred);
}

/* Whether the label is among the first k of y_pred. */
static CornuTensor *in_first_k(const MeanMetric *self, CornuTensor *labels, CornuTensor *y_pred)
{
    if (!labels || !y_pred) return NULL;
    CornuShape shape = cornu_tensor_shape(labels), first = cornu_tensor_shape(y_pred);
    const int  last = first.rank - 1;
    int64_t    starts[CORNU_MAX_RANK] = { 0 };
    CornuText  a, b;
    bool       fits = shape.rank == last;
    for (int i = 0; i < last && fits; i++) fits = shape.extent[i] == first.extent[i];
    if (!fits)
        return cornu__fail_null(CORNU_ERR_SHAPE, "metric %s: labels are %s for predictions %s; "
                                "expected (B, …) for (B, …, N)", self->base.name,
                                cornu_shape_print(&a, shape), cornu_shape_print(&b, first));
    if (first.extent[last] > self->k) first.extent[last] = self->k;
    shape.extent[shape.rank++] = 1;
    CornuTensor *label = cornu_op_reshape(cornu_op_convert(labels, CORNU_F32), shape);
    CornuTensor *is = cornu_op_compare(cornu_op_slice(y_pred, starts, first.extent), CORNU_EQUAL,
                                       label);
    return cornu_op_reduce_max(cornu_op_convert(is, CORNU_F32), INT64_C(1) << last, false);
}

static CornuTensor *sparse_top_k(const MeanMetric *self, CornuMetricCall *call)
{
    if (self->sorted_ids)
        return in_first_k(self, cornu__class_labels(call->y_true, call->y_pred), call->y_pred);
    return in_top_k(self, cornu__class_labels(call->y_true, call->y_pred), call->y_pred);
}

static const CornuField threshold_fields[] = {
    { "threshold", CORNU_FIELD_NUMBER_OR_DEFAULT, offsetof(CornuBinaryAccuracyConfig, threshold) },
    { 0 },
};
static const CornuField top_k_fields[] = {
    { "k", CORNU_FIELD_INTEGER_OR_DEFAULT, offsetof(CornuTopKConfig, k) }, { 0 },
};
static const CornuField sparse_top_k_fields[] = {
    { "k", CORNU_FIELD_INTEGER_OR_DEFAULT, offsetof(CornuTopKConfig, k) },
    { "from_sorted_ids", CORNU_FIELD_FLAG, offsetof(CornuTopKConfig, from_sorted_ids) }, { 0 },
};
static const CornuField no_fields[] = { { 0 } };
CORNU__SERIALIZABLE_CLASS(binary_accuracy, "BinaryAccuracy", "binary_accuracy",
                          CornuBinaryAccuracyConfig, .fields = threshold_fields);
CORNU__SERIALIZABLE_CLASS(top_k_categorical_accuracy, "TopKCategoricalAccuracy",
                          "top_k_categorical_accuracy", CornuTopKConfig, .fields = top_k_fields);
CORNU__SERIALIZABLE_CLASS(sparse_top_k_categorical_accuracy, "SparseTopKCategoricalAccuracy",
                          "sparse_top_k_categorical_accuracy", CornuTopKConfig,
                          .fields = sparse_top_k_fields, .whole_labels = true);

CornuMetric *cornu_binary_accuracy_from(const CornuBinaryAccuracyConfig *config)
{
    MeanMetric *metric = create((CornuMetric){ .kind = &cornu__binary_accuracy_class }, config,
                                binary_accuracy);
    if (!metric) return NULL;
    metric->threshold = cornu__number(config->threshold, 0.5);
    return &metric->base;
}

static CornuMetric *top_k_metric(const CornuSerializableClass *kind, const CornuTopKConfig *config,
                                 Values *values)
{
    if (config->k < 0 && !cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .k is %lld, expected 1 or more",
                                kind->name, (long long)cornu__integer(config->k, 0));
    MeanMetric *metric = create((CornuMetric){ .kind = kind }, config, values);
    if (!metric) return NULL;
    metric->k = config->k ? config->k : 5;
    metric->sorted_ids = config->from_sorted_ids;
    return &metric->base;
}

CornuMetric *cornu_top_k_categorical_accuracy_from(const CornuTopKConfig *config)
{
    if (config->from_sorted_ids && !cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "top_k_categorical_accuracy: .from_sorted_ids "
                                "is given, which only sparse_top_k_categorical_accuracy has");
    return top_k_metric(&cornu__top_k_categorical_accuracy_class, config, top_k);
}

CornuMetric *cornu_sparse_top_k_categorical_accuracy_from(const CornuTopKConfig *config)
{
    return top_k_metric(&cornu__sparse_top_k_categorical_accuracy_class, config, sparse_top_k);
}

static CornuMetric *plain(const CornuSerializableClass *kind, const CornuPlainConfig *config,
                          Values *values)
{
    MeanMetric *metric = create((CornuMetric){ .kind = kind }, config, values);
    return metric ? &metric->base : NULL;
}

static CornuTensor *equality(const MeanMetric *self, CornuMetricCall *call)
{
    CornuTensor *t = call->y_true;
    if (!call->y_pred || !cornu__same_shapes(self->base.name, &t, call->y_pred)) return NULL;
    return cornu_op_convert(cornu_op_compare(t, CORNU_EQUAL, call->y_pred), CORNU_F32);
}

CORNU__SERIALIZABLE_CLASS(equality_accuracy, "Accuracy", "accuracy", CornuEqualityConfig,
                          .fields = no_fields);

CornuMetric *cornu_equality_accuracy_from(const CornuEqualityConfig *config)
{
    MeanMetric *metric = create((CornuMetric){ .kind = &cornu__equality_accuracy_class }, config,
                                equality);
    return metric ? &metric->base : NULL;
}

static CornuMetric *make_categorical_accuracy(const CornuPlainConfig *config)
{
    return plain(&cornu__categorical_accuracy_class, config, categorical_accuracy);
}

static CornuMetric *make_sparse_categorical_accuracy(const CornuPlainConfig *config)
{
    return plain(&cornu__sparse_categorical_accuracy_class, config, sparse_categorical_accuracy);
}

CORNU__SERIALIZABLE_CLASS_OF(categorical_accuracy, make_categorical_accuracy, "CategoricalAccuracy",
                             "categorical_accuracy", CornuPlainConfig, .fields = no_fields);
CORNU__SERIALIZABLE_CLASS_OF(sparse_categorical_accuracy, make_sparse_categorical_accuracy,
                             "SparseCategoricalAccuracy", "sparse_categorical_accuracy",
                             CornuPlainConfig, .fields = no_fields, .whole_labels = true);

/* ---- By the shapes of the data ---- */

/* Source: keras/src/trainers/compile_utils.py, is_binary_or_sparse_categorical. */
static CornuStatus mean_metrics_resolve(CornuMetric *self, CornuShape y_true, CornuShape y_pred)
{
    MeanMetric *metric = (MeanMetric *)self;
    Choice      choice = metric->categorical;
    if (y_pred.rank < 1 || y_true.rank < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: the %s is a scalar", self->name,
                           y_pred.rank < 1 ? "prediction" : "label");
    if (y_pred.extent[y_pred.rank - 1] == 1)
        choice = metric->binary;
    else if (y_true.rank < y_pred.rank || y_true.extent[y_true.rank - 1] == 1)
        choice = metric->sparse;
    metric->values = choice.values;
    if (!choice.loss) return CORNU_OK;
    cornu_loss_free(metric->loss);
    self->kind = NULL;
    metric->loss = cornu_loss(choice.loss);
    if (!metric->loss) return cornu_error_take();
    self->kind = cornu__metric_class_of_loss(metric->loss);
    self->config = metric->loss->config;
    return CORNU_OK;
}

static CornuMetric *resolved(const CornuSerializableClass *kind, const CornuPlainConfig *config,
                             Choice binary, Choice categorical, Choice sparse)
{
    MeanMetric *metric = create((CornuMetric){ .kind = kind, .build = mean_metrics_resolve },
                                config, NULL);
    if (!metric) return NULL;
    metric->binary = binary;
    metric->categorical = categorical;
    metric->sparse = sparse;
    metric->threshold = 0.5;
    if (binary.loss) metric->base.kind = NULL;   /* Keras has no class before shapes are known */
    return &metric->base;
}

static CornuMetric *make_accuracy(const CornuPlainConfig *config)
{
    return resolved(&cornu__accuracy_class, config, (Choice){ binary_accuracy, NULL },
                    (Choice){ categorical_accuracy, NULL },
                    (Choice){ sparse_categorical_accuracy, NULL });
}

static CornuMetric *make_crossentropy(const CornuPlainConfig *config)
{
    return resolved(&cornu__crossentropy_class, config,
                    (Choice){ loss_values, "binary_crossentropy" },
                    (Choice){ loss_values, "categorical_crossentropy" },
                    (Choice){ loss_values, "sparse_categorical_crossentropy" });
}

CORNU__SERIALIZABLE_CLASS_OF(accuracy, make_accuracy, NULL, "accuracy", CornuPlainConfig,
                             .fields = no_fields);
CORNU__SERIALIZABLE_CLASS_OF(crossentropy, make_crossentropy, NULL, "crossentropy",
                             CornuPlainConfig, .fields = no_fields);

/* ---- Numbers ---- */

static CornuTensor *squared_errors(const MeanMetric *self, CornuMetricCall *call)
{
    CornuTensor *t = call->y_true;
    if (!call->y_pred || !cornu__same_shapes(self->base.name, &t, call->y_pred)) return NULL;
    return cornu_op_square(cornu_op_subtract(call->y_pred, t));
}

static double root_result(const CornuMetric *self, const CornuArray *states)
{
    return sqrt(result(self, states));
}

static CornuMetric *make_root_mean_squared_error(const CornuPlainConfig *config)
{
    CornuMetric *metric = plain(&cornu__root_mean_squared_error_class, config, squared_errors);
    if (metric) metric->result = root_result;
    return metric;
}

CORNU__SERIALIZABLE_CLASS_OF(root_mean_squared_error, make_root_mean_squared_error,
                             "RootMeanSquaredError", "root_mean_squared_error", CornuPlainConfig,
                             .fields = no_fields);

/* ---- Similarities of vectors ---- */

/* Moves the axis of the vectors to the end of y_true and y_pred. */
static bool vectors(const MeanMetric *self, CornuMetricCall *call, CornuTensor **t,
                    CornuTensor **p)
{
    *t = call->y_true;
    if (!call->y_pred || !cornu__same_shapes(self->base.name, t, call->y_pred)) return false;
    *t = cornu__axis_last(self->base.name, *t, self->axis);
    *p = cornu__axis_last(self->base.name, call->y_pred, self->axis);
    return *t && *p;
}

static CornuTensor *mean_of_last(CornuTensor *x, bool keep)
{
    return x ? cornu_op_reduce_mean(x, cornu__last_axis(x), keep) : NULL;
}

static CornuTensor *centred(CornuTensor *x) { return cornu_op_subtract(x, mean_of_last(x, true)); }

static CornuTensor *variance(CornuTensor *x)
{
    return mean_of_last(cornu_op_square(centred(x)), true);
}

static CornuTensor *cosine(const MeanMetric *self, CornuMetricCall *call)
{
    CornuTensor *t, *p;
    return vectors(self, call, &t, &p) ? cornu__cosine(t, p) : NULL;
}

static CornuTensor *pearson(const MeanMetric *self, CornuMetricCall *call)
{
    CornuTensor *t, *p;
    if (!vectors(self, call, &t, &p)) return NULL;
    CornuTensor *a = cornu_op_multiply(centred(t), cornu_op_rsqrt(variance(t)));
    CornuTensor *b = cornu_op_multiply(centred(p), cornu_op_rsqrt(variance(p)));
    return mean_of_last(cornu_op_multiply(a, b), false);
}

/* 2 (t - mean p)(p - mean p) / (var t + var p + (mean t - mean p)^2 + 1e-7) */
static CornuTensor *concordance(const MeanMetric *self, CornuMetricCall *call)
{
    CornuTensor *t, *p;
    if (!vectors(self, call, &t, &p)) return NULL;
    CornuTensor *mean_p = mean_of_last(p, true);
    CornuTensor *shift = cornu_op_square(cornu_op_subtract(mean_of_last(t, true), mean_p));
    CornuTensor *norm = cornu_op_add(cornu_op_add(variance(t), variance(p)), shift);
    CornuTensor *both = cornu_op_multiply(cornu_op_subtract(t, mean_p), centred(p));
    return mean_of_last(cornu_op_divide(cornu_op_scale(both, 2.0),
                                        cornu_op_shift(norm, CORNU__EPSILON)), false);
}

static const CornuField similarity_fields[] = {
    { "axis", CORNU_FIELD_INTEGER_OR_DEFAULT, offsetof(CornuSimilarityConfig, axis) }, { 0 },
};

static CornuMetric *similarity(const CornuSerializableClass *kind,
                               const CornuSimilarityConfig *config,
                               Values *values)
{
    MeanMetric *metric = create((CornuMetric){ .kind = kind }, config, values);
    if (!metric) return NULL;
    metric->axis = config->axis;
    return &metric->base;
}

#define SIMILARITY(name, class_name, usual_name, values)                            \
    CORNU__SERIALIZABLE_CLASS(name, class_name, usual_name, CornuSimilarityConfig,  \
                              .fields = similarity_fields);                         \
    CornuMetric *cornu_##name##_from(const CornuSimilarityConfig *config)           \
    {                                                                               \
        return similarity(&cornu__##name##_class, config, values);                  \
    }
SIMILARITY(cosine_similarity_metric, "CosineSimilarity", "cosine_similarity", cosine)
SIMILARITY(pearson_correlation, "PearsonCorrelation", "pearson_correlation", pearson)
SIMILARITY(concordance_correlation, "ConcordanceCorrelation", "concordance_correlation",
           concordance)
