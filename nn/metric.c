#include "metric.h"

#include <string.h>

#include "../device/memory_internal.h"
#include "../device/nearest.h"
#include "loss_internal.h"
#include "metric_internal.h"

/* ---- Means ---- */

/* A metric whose result is the mean of some values. Those of "accuracy" follow from shapes. */
typedef struct {
    CornuMetric        base;
    CornuMetricValues *values;
    CornuMetricValues *binary, *categorical, *sparse;  /* NULL but for the resolved ones */
} MeanMetric;

enum { SUM, COUNT };

/* sum += sum of the batch's values, count += how many they are. */
CornuStatus cornu__mean_update(CornuTensor *values, const CornuMetricCall *call,
                               CornuTensor *const *old, CornuTensor **new_states)
{
    CornuTensor *count, *sum = cornu__valid_sum(values, call, &count);
    if (!sum) return cornu_error_status();
    sum = cornu_op_all_reduce(cornu_op_convert(sum, CORNU_F64));
    new_states[SUM] = cornu_op_add(old[SUM], sum);
    new_states[COUNT] = cornu_op_add(old[COUNT], count);
    return new_states[SUM] && new_states[COUNT] ? CORNU_OK : cornu_error_status();
}

double cornu__mean_result(const CornuArray *states)
{
    const double count = cornu_array_get(states[COUNT], 0);
    return count > 0.0 ? cornu_array_get(states[SUM], 0) / count : 0.0;
}

static CornuStatus mean_update(const CornuMetric *self, const CornuMetricCall *call,
                               CornuTensor *const *old, CornuTensor **new_states)
{
    const MeanMetric *metric = (const MeanMetric *)self;
    return cornu__mean_update(metric->values(call->y_true, call->y_pred), call, old, new_states);
}

static double mean_result(const CornuMetric *self, const CornuArray *states)
{
    (void)self;
    return cornu__mean_result(states);
}

/* Source: keras/src/trainers/compile_utils.py, is_binary_or_sparse_categorical. */
static CornuStatus resolve(CornuMetric *self, CornuShape y_true, CornuShape y_pred)
{
    MeanMetric *metric = (MeanMetric *)self;
    if (y_pred.rank < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: the prediction is a scalar", self->name);
    if (y_pred.extent[y_pred.rank - 1] == 1)
        metric->values = metric->binary;
    else if (y_true.rank < y_pred.rank || y_true.extent[y_true.rank - 1] == 1)
        metric->values = metric->sparse;
    else
        metric->values = metric->categorical;
    return CORNU_OK;
}

static void free_metric(CornuMetric *metric) { cornu__release(metric); }

CornuMetric *cornu_mean_metric(const char *name, CornuMetricValues *values)
{
    if (cornu_error_pending()) return NULL;
    MeanMetric *metric = cornu__allocate(1, sizeof *metric);
    if (!metric) return cornu__null();
    metric->base = (CornuMetric){
        .name = name, .state_count = 2,
        .states = { [SUM] = cornu_scalar(CORNU_F64), [COUNT] = cornu_scalar(CORNU_I64) },
        .update = mean_update, .result = mean_result, .free = free_metric,
    };
    metric->values = values;
    return &metric->base;
}

/* ---- Accuracies: 1 where the prediction is right. keras/src/metrics/accuracy_metrics.py ---- */

static CornuTensor *matches(CornuTensor *a, CornuTensor *b)
{
    return cornu_op_convert(cornu_op_compare(a, CORNU_EQUAL, b), CORNU_F32);
}

static int last_axis(CornuTensor *x) { return cornu_tensor_shape(x).rank - 1; }

static CornuTensor *binary_accuracy(CornuTensor *y_true, CornuTensor *y_pred)
{
    CornuTensor *truth = cornu_op_convert(cornu__match_ranks(y_true, y_pred), CORNU_F32);
    if (!truth) return NULL;
    CornuTensor *half = cornu_op_constant_like(y_pred, 0.5);
    CornuTensor *yes = cornu_op_convert(cornu_op_compare(y_pred, CORNU_GREATER, half), CORNU_F32);
    CornuTensor *right = matches(truth, yes);
    if (!right || cornu_tensor_shape(right).rank < 2) return right;
    return cornu_op_reduce_mean(right, INT64_C(1) << last_axis(right), false);
}

static CornuTensor *categorical_accuracy(CornuTensor *y_true, CornuTensor *y_pred)
{
    CornuTensor *truth = cornu_op_convert(y_true, CORNU_F32);
    if (!truth || !y_pred) return NULL;
    return matches(cornu_op_argmax(truth, last_axis(truth)),
                   cornu_op_argmax(y_pred, last_axis(y_pred)));
}

static CornuTensor *sparse_categorical_accuracy(CornuTensor *y_true, CornuTensor *y_pred)
{
    CornuTensor *labels = cornu__class_labels(y_true, y_pred);
    if (!labels) return NULL;
    return matches(cornu_op_convert(labels, CORNU_I32), cornu_op_argmax(y_pred, last_axis(y_pred)));
}

/* ---- Losses as metrics ---- */

static CornuTensor *values_of(const char *name, CornuTensor *y_true, CornuTensor *y_pred)
{
    CornuLoss   *loss = cornu_loss(name);
    CornuTensor *values = loss ? loss->call(loss, y_true, y_pred) : NULL;
    cornu_loss_free(loss);
    return values;
}

static CornuTensor *binary_crossentropy(CornuTensor *y_true, CornuTensor *y_pred)
{
    return values_of("binary_crossentropy", y_true, y_pred);
}

static CornuTensor *categorical_crossentropy(CornuTensor *y_true, CornuTensor *y_pred)
{
    return values_of("categorical_crossentropy", y_true, y_pred);
}

static CornuTensor *sparse_crossentropy(CornuTensor *y_true, CornuTensor *y_pred)
{
    return values_of("sparse_categorical_crossentropy", y_true, y_pred);
}

static CornuTensor *squared_error(CornuTensor *y_true, CornuTensor *y_pred)
{
    return values_of("mean_squared_error", y_true, y_pred);
}

/* ---- By name ---- */

static const struct {
    const char        *name;
    CornuMetricValues *values;   /* NULL: the three by shape */
    CornuMetricValues *binary, *categorical, *sparse;
} known[] = {
    { "accuracy", NULL, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy },
    { "acc", NULL, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy },
    { "crossentropy", NULL, binary_crossentropy, categorical_crossentropy, sparse_crossentropy },
    { "ce", NULL, binary_crossentropy, categorical_crossentropy, sparse_crossentropy },
    { .name = "binary_accuracy", .values = binary_accuracy },
    { .name = "categorical_accuracy", .values = categorical_accuracy },
    { .name = "sparse_categorical_accuracy", .values = sparse_categorical_accuracy },
    { .name = "binary_crossentropy", .values = binary_crossentropy },
    { .name = "categorical_crossentropy", .values = categorical_crossentropy },
    { .name = "sparse_categorical_crossentropy", .values = sparse_crossentropy },
    { .name = "mean_squared_error", .values = squared_error },
    { .name = "mse", .values = squared_error },
};

CornuMetric *cornu_metric(const char *name)
{
    enum { KNOWN = sizeof known / sizeof *known };
    const char *names[KNOWN];
    for (int i = 0; i < KNOWN; i++) {
        names[i] = known[i].name;
        if (!name || strcmp(name, known[i].name)) continue;
        CornuMetric *metric = cornu_mean_metric(known[i].name, known[i].values);
        if (!metric || known[i].values) return metric;
        MeanMetric *mean = (MeanMetric *)metric;
        mean->binary = known[i].binary;
        mean->categorical = known[i].categorical;
        mean->sparse = known[i].sparse;
        metric->build = resolve;
        return metric;
    }
    const char *near = name ? cornu__nearest(name, names, KNOWN) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "metric \"%s\" is not known%s%s%s",
                            name ? name : "(NULL)", near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
}

void cornu_metric_free(CornuMetric *metric)
{
    if (metric && metric->free) metric->free(metric);
}
