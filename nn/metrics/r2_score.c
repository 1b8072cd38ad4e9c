/* The coefficient of determination. Source: keras/src/metrics/regression_metrics.py, R2Score. */
#include <math.h>

#include "../fields/field_internal.h"
#include "metric_internal.h"

typedef struct {
    CornuMetric      base;
    CornuAggregation aggregation;
    int64_t          regressors, columns;
} R2Score;

enum { SUM, SQUARES, RESIDUALS, WEIGHTS, NUMBERS };

static CornuStatus r2_score_build(CornuMetric *self, CornuShape y_true, CornuShape y_pred)
{
    R2Score  *score = (R2Score *)self;
    CornuText a, b;
    if (y_pred.rank != 2 || y_true.rank > 2)
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: y_true is %s, y_pred %s; expected (B, N)",
                           self->name, cornu_shape_print(&a, y_true),
                           cornu_shape_print(&b, y_pred));
    score->columns = y_pred.extent[1];
    for (int i = 0; i < NUMBERS; i++) self->states[i] = cornu_type(CORNU_F64, score->columns);
    if (score->aggregation == CORNU_NO_AGGREGATION) self->result_count = score->columns;
    return CORNU_OK;
}

static CornuStatus update(const CornuMetric *self, const CornuMetricCall *call,
                          CornuTensor *const *old, CornuTensor **new_states)
{
    CornuTensor *t = call->y_true, *p = call->y_pred;
    if (!p || !cornu__same_shapes(self->name, &t, p)) return cornu_error_status();
    t = cornu__valid_rows(t, call->valid);
    p = cornu__valid_rows(p, call->valid);
    CornuTensor *w = cornu__value_weights(t, call);
    CornuTensor *weighted = cornu_op_multiply(t, w);
    CornuTensor *parts[] = {
        [SUM] = weighted, [SQUARES] = cornu_op_multiply(t, weighted),
        [RESIDUALS] = cornu_op_multiply(cornu_op_square(cornu_op_subtract(t, p)), w),
        [WEIGHTS] = w,
    };
    for (int i = 0; i < NUMBERS; i++) {
        CornuTensor *sums = parts[i] ? cornu_op_reduce_sum(parts[i], 1, false) : NULL;
        if (!(new_states[i] = cornu__accumulate(old[i], sums))) return cornu_error_status();
    }
    CornuTensor *count = cornu_op_convert(call->count, CORNU_F64);
    new_states[NUMBERS] = cornu_op_add(
        old[NUMBERS], cornu_op_scale(count, (double)((const R2Score *)self)->columns));
    return new_states[NUMBERS] ? CORNU_OK : cornu_error_status();
}

/* sum((t - mean t)^2) of a column */
static double total(const CornuArray *states, int64_t i)
{
    const double sum = cornu__numbers(states[SUM])[i];
    return cornu__numbers(states[SQUARES])[i] - sum * sum / cornu__numbers(states[WEIGHTS])[i];
}

/* Adjusts for the number of regressors, if there are enough numbers. */
static double adjust(const R2Score *score, const CornuArray *states, double r2)
{
    const double n = *cornu__numbers(states[NUMBERS]), p = (double)score->regressors;
    return p == 0.0 || p >= n - 1.0 ? r2 : 1.0 - (1.0 - r2) * (n - 1.0) / (n - p - 1.0);
}

static double raw(const CornuArray *states, int64_t i)
{
    const double r2 = 1.0 - cornu__numbers(states[RESIDUALS])[i] / total(states, i);
    return isinf(r2) ? 0.0 : r2;
}

static double result_at(const CornuMetric *self, const CornuArray *states, int64_t i)
{
    return adjust((const R2Score *)self, states, raw(states, i));
}

static double result(const CornuMetric *self, const CornuArray *states)
{
    const R2Score *score = (const R2Score *)self;
    const bool     by_variance = score->aggregation == CORNU_VARIANCE_WEIGHTED_AVERAGE;
    double         sum = 0.0, weights = 0.0;
    for (int64_t i = 0; i < score->columns; i++) {
        const double weight = by_variance ? total(states, i) : 1.0;
        sum += weight * raw(states, i);
        weights += weight;
    }
    return adjust(score, states, sum / weights);
}

const CornuFieldKind cornu_field_aggregation = {
    .name = "aggregation", CORNU__FIELD_OF_WORDS(CornuAggregation), .takes_null = true,
    .null = CORNU_NO_AGGREGATION,
    .words = { [CORNU_UNIFORM_AVERAGE] = "uniform_average",
               [CORNU_VARIANCE_WEIGHTED_AVERAGE] = "variance_weighted_average" },
};

static const CornuField fields[] = {
    { "class_aggregation", CORNU_FIELD_AGGREGATION,
      offsetof(CornuR2ScoreConfig, class_aggregation) },
    { "num_regressors", CORNU_FIELD_INTEGER, offsetof(CornuR2ScoreConfig, num_regressors) }, { 0 },
};
CORNU__SERIALIZABLE_CLASS(r2_score, "R2Score", "r2_score", CornuR2ScoreConfig, .fields = fields);

CornuMetric *cornu_r2_score_from(const CornuR2ScoreConfig *config)
{
    const CornuAggregation aggregation = config->class_aggregation;
    if (cornu__refused()) return NULL;
    if ((unsigned)aggregation > CORNU_NO_AGGREGATION || config->num_regressors < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "r2_score: .class_aggregation is %d and "
                                ".num_regressors %lld, expected 0 to 2, and 0 or more",
                                (int)aggregation, (long long)config->num_regressors);
    R2Score *score = cornu__metric_create(sizeof *score, &(CornuMetric){
        .kind = &cornu__r2_score_class, .state_count = NUMBERS + 1,
        .states = { [NUMBERS] = cornu_scalar(CORNU_F64) }, .build = r2_score_build,
        .update = update,
        .result = result, .result_at = aggregation == CORNU_NO_AGGREGATION ? result_at : NULL },
        config);
    if (!score) return NULL;
    score->aggregation = aggregation;
    score->regressors = config->num_regressors;
    return &score->base;
}
