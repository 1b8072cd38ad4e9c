/* Metrics of binary decisions at thresholds. A batch adds to a histogram of predictions by the
 * number of thresholds below them; all results follow from it. Sources:
 * keras/src/metrics/confusion_metrics.py, metrics_utils.py. */
#include <math.h>

#include "../fields/field_internal.h"
#include "metric_internal.h"

typedef struct {
    double tp, fp, tn, fn;
} Confusion;

typedef struct Counts Counts;

struct Counts {
    CornuMetric base;
    int64_t     thresholds, labels;
    bool        even;                 /* k / (thresholds - 1); else thresholds are listed */
    bool        beyond;               /* the outermost are below 0 and above 1 */
    double      limit[CORNU_MAX_THRESHOLDS + 2];
    int64_t     top_k, class_id;      /* 0 and -1: unset */
    bool        multi_label, from_logits;
    double      label_weights[CORNU_MAX_THRESHOLDS];
    int64_t     weighted_labels;      /* their number; 0: all weigh 1 */
    int64_t     num_labels;           /* 0: any number */
    double    (*of)(const Confusion *at);                   /* the result at a threshold */
    double    (*constrained)(const Confusion *at), value;   /* must be at least value */
    CornuCurve     curve;
    CornuSummation summation;
};

/* ---- Update ---- */

/* p where it is among the k largest of its row, else a number below all thresholds. */
static CornuTensor *only_top(const Counts *counts, CornuTensor *p)
{
    const CornuShape shape = cornu_tensor_shape(p);
    const int        last = shape.rank - 1;
    const int64_t    classes = shape.extent[last];
    CornuTensor     *rest = p, *taken = NULL, *far = cornu_op_constant_like(p, -INFINITY);
    if (counts->top_k > classes)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "metric %s: .top_k is %lld, expected at most "
                                "%lld, the number of classes", counts->base.name,
                                (long long)counts->top_k, (long long)classes);
    for (int64_t i = 0; i < counts->top_k; i++) {
        CornuTensor *best = cornu_op_one_hot(cornu_op_argmax(rest, last), classes, CORNU_F32);
        taken = taken ? cornu_op_add(taken, best) : best;
        rest = cornu_op_select(cornu_op_convert(best, CORNU_BOOL), far, rest);
    }
    return cornu_op_select(cornu_op_convert(taken, CORNU_BOOL), p,
                           cornu_op_constant_like(p, -1e10));
}

static CornuTensor *one_class(const Counts *counts, CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int        last = shape.rank - 1;
    int64_t          starts[CORNU_MAX_RANK] = { 0 }, sizes[CORNU_MAX_RANK];
    if (shape.rank < 2 || counts->class_id >= shape.extent[last])
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "metric %s: .class_id is %lld, expected less "
                                "than %lld, the number of classes", counts->base.name,
                                (long long)counts->class_id,
                                shape.rank < 2 ? 1LL : (long long)shape.extent[last]);
    for (int i = 0; i <= last; i++) sizes[i] = shape.extent[i];
    starts[last] = counts->class_id;
    sizes[last] = 1;
    return cornu_op_slice(x, starts, sizes);
}

/* The number of thresholds below each p, as f32. */
static CornuTensor *buckets(const Counts *counts, CornuTensor *p)
{
    if (!p) return NULL;
    CornuTensor *zero = cornu_op_constant_like(p, 0.0), *above = zero;
    for (int64_t k = 0; k < counts->thresholds && !counts->even; k++) {
        CornuTensor *limit = cornu_op_constant_like(p, counts->limit[k]);
        CornuTensor *is = cornu_op_compare(p, CORNU_GREATER, limit);
        above = cornu_op_add(above, cornu_op_convert(is, CORNU_F32));
    }
    if (!counts->even) return above;
    /* ceil(p (thresholds - 1)), p clipped to [0, 1]; NaN counts as 0 */
    p = cornu_op_select(cornu_op_compare(p, CORNU_GREATER, zero), p, zero);
    p = cornu_op_minimum(p, cornu_op_constant_like(p, 1.0));
    p = cornu_op_scale(p, -(double)(counts->thresholds - 1));
    p = cornu_op_negative(cornu_op_floor(p));
    return p && counts->beyond ? cornu_op_maximum(p, cornu_op_constant_like(p, 1.0)) : p;
}

/* The histogram row for each element of p. */
static CornuTensor *histogram_rows(const Counts *counts, CornuTensor *p)
{
    CornuTensor *row = cornu_op_convert(buckets(counts, p), CORNU_I32);
    if (!row || !counts->multi_label) return row;
    const CornuType type = cornu_tensor_type(row);
    CornuTensor *label = cornu_op_iota(cornu_tensor_graph(row), type, type.shape.rank - 1);
    CornuTensor *labels = cornu_op_constant_like(row, (double)counts->labels);
    return cornu_op_add(cornu_op_multiply(row, labels), label);
}

/* Weights of the shape of p times the weights of its columns. */
static CornuTensor *by_column(const Counts *counts, CornuTensor *weight)
{
    if (!weight || counts->weighted_labels == 0 || counts->multi_label) return weight;
    const CornuShape shape = cornu_tensor_shape(weight);
    const int        last = shape.rank - 1;
    CornuText        text;
    if (shape.extent[last] != counts->weighted_labels)
        return cornu__fail_null(CORNU_ERR_SHAPE, "metric %s: predictions are %s, but there are "
                                "%lld .label_weights", counts->base.name,
                                cornu_shape_print(&text, shape),
                                (long long)counts->weighted_labels);
    CornuTensor *column = cornu_op_iota(cornu_tensor_graph(weight),
                                        cornu_type_from(CORNU_F32, shape), last);
    CornuTensor *factor = cornu_op_constant_like(weight, 0.0);
    for (int64_t i = 0; i < counts->weighted_labels; i++) {
        CornuTensor *is = cornu_op_compare(column, CORNU_EQUAL,
                                           cornu_op_constant_like(weight, (double)i));
        factor = cornu_op_select(is, cornu_op_constant_like(weight, counts->label_weights[i]),
                                 factor);
    }
    return cornu_op_multiply(weight, factor);
}

static CornuStatus update(const CornuMetric *self, const CornuMetricCall *call,
                          CornuTensor *const *old, CornuTensor **new_states)
{
    const Counts *counts = (const Counts *)self;
    CornuTensor  *t = call->y_true, *p = call->y_pred;
    if (!p || !cornu__same_shapes(self->name, &t, p)) return cornu_error_status();
    if (counts->from_logits) p = cornu_op_sigmoid(p);
    if (counts->top_k > 0) p = only_top(counts, p);
    if (counts->class_id >= 0) {
        t = one_class(counts, t);
        p = one_class(counts, p);
    }
    CornuTensor *weight = by_column(counts, cornu__value_weights(p, call));
    if (!t || !weight) return cornu_error_status();
    CornuTensor *is_positive = cornu_op_compare(t, CORNU_NOT_EQUAL,
                                                cornu_op_constant_like(t, 0.0));
    CornuTensor *zero = cornu_op_constant_like(weight, 0.0);
    const CornuShape column = cornu_shape(cornu_shape_count(cornu_tensor_shape(p)), 1);
    CornuTensor *pair[] = {
        cornu_op_reshape(cornu_op_select(is_positive, weight, zero), column),
        cornu_op_reshape(cornu_op_select(is_positive, zero, weight), column),
    };
    CornuTensor *row = cornu_op_reshape(histogram_rows(counts, p), cornu_shape(column.extent[0]));
    CornuTensor *sums = cornu_op_segment_sum(cornu_op_concat(pair, 2, 1), row,
                                             (counts->thresholds + 1) * counts->labels);
    new_states[0] = cornu__accumulate(old[0], cornu_op_reshape(sums, self->states[0].shape));
    return new_states[0] ? CORNU_OK : cornu_error_status();
}

/* ---- Results ---- */

/* At the threshold above `rank` others. */
static Confusion confusion_at(const Counts *counts, const CornuArray *states, int64_t label,
                              int64_t rank)
{
    const double *histogram = cornu__numbers(states[0]);
    Confusion     at = { 0 };
    for (int64_t j = 0; j <= counts->thresholds; j++) {
        const double *row = histogram + 2 * (j * counts->labels + label);
        *(j > rank ? &at.tp : &at.fn) += row[0];
        *(j > rank ? &at.fp : &at.tn) += row[1];
    }
    return at;
}

static double true_positives(const Confusion *at) { return at->tp; }
static double true_negatives(const Confusion *at) { return at->tn; }
static double false_positives(const Confusion *at) { return at->fp; }
static double false_negatives(const Confusion *at) { return at->fn; }
static double precision(const Confusion *at) { return cornu__ratio(at->tp, at->tp + at->fp); }
static double recall(const Confusion *at) { return cornu__ratio(at->tp, at->tp + at->fn); }
static double specificity(const Confusion *at) { return cornu__ratio(at->tn, at->tn + at->fp); }
static double fall_out(const Confusion *at) { return cornu__ratio(at->fp, at->fp + at->tn); }

static double result_at(const CornuMetric *self, const CornuArray *states, int64_t i)
{
    const Counts *counts = (const Counts *)self;
    int64_t       rank = counts->even ? i : 0;
    for (int64_t k = 0; k < counts->thresholds && !counts->even; k++)
        rank += counts->limit[k] < counts->limit[i];
    const Confusion at = confusion_at(counts, states, 0, rank);
    return counts->of(&at);
}

static double best_result(const CornuMetric *self, const CornuArray *states)
{
    const Counts *counts = (const Counts *)self;
    double        best = 0.0;
    for (int64_t k = 0; k < counts->thresholds; k++) {
        const Confusion at = confusion_at(counts, states, 0, k);
        if (counts->constrained(&at) >= counts->value) best = fmax(best, counts->of(&at));
    }
    return best;
}

/* ---- Areas ---- */

/* Flach and Kull, "Precision-Recall-Gain Curves", 2015. */
static double gain(const Confusion *at, double wrong, double without)
{
    const double odds = cornu__ratio(at->tp + at->fn, at->tn + at->fp);
    return at->tp == 0.0 ? without : 1.0 - odds * wrong / at->tp;
}

static void point(CornuCurve curve, const Confusion *at, double *x, double *y)
{
    switch (curve) {
    case CORNU_ROC: *x = fall_out(at), *y = recall(at); break;
    case CORNU_PR: *x = recall(at), *y = precision(at); break;
    case CORNU_PRGAIN:
        *x = fmax(gain(at, at->fn, 0.0), 0.0);
        *y = gain(at, at->fp, 1.0);
        break;
    }
}

/* Between two thresholds: true positives are assumed linear in all positives. */
static double interpolated(const Confusion *low, const Confusion *high)
{
    const double d_tp = low->tp - high->tp;
    const double p_low = low->tp + low->fp, p_high = high->tp + high->fp;
    const double slope = cornu__ratio(d_tp, p_low - p_high);
    const double intercept = high->tp - slope * p_high;
    const double growth = p_low > 0.0 && p_high > 0.0 ? p_low / p_high : 1.0;
    return cornu__ratio(slope * (d_tp + intercept * log(growth)), high->tp + high->fn);
}

static double trapezium(const Counts *counts, const Confusion *low, const Confusion *high)
{
    double x_low, y_low, x_high, y_high, height;
    point(counts->curve, low, &x_low, &y_low);
    point(counts->curve, high, &x_high, &y_high);
    switch (counts->summation) {
    case CORNU_MINORING: height = fmin(y_low, y_high); break;
    case CORNU_MAJORING: height = fmax(y_low, y_high); break;
    default: height = (y_low + y_high) / 2.0;
    }
    return (x_low - x_high) * height;
}

static double area(const Counts *counts, const CornuArray *states, int64_t label)
{
    const bool smooth = counts->curve == CORNU_PR && counts->summation == CORNU_INTERPOLATION;
    double     sum = 0.0;
    Confusion  low = confusion_at(counts, states, label, 0);
    for (int64_t k = 1; k < counts->thresholds; k++) {
        const Confusion high = confusion_at(counts, states, label, k);
        sum += smooth ? interpolated(&low, &high) : trapezium(counts, &low, &high);
        low = high;
    }
    return sum;
}

static double area_result(const CornuMetric *self, const CornuArray *states)
{
    const Counts *counts = (const Counts *)self;
    double        sum = 0.0, weights = 0.0;
    for (int64_t label = 0; label < counts->labels; label++) {
        const bool   weighted = counts->multi_label && counts->weighted_labels > 0;
        const double weight = weighted ? counts->label_weights[label] : 1.0;
        sum += weight * area(counts, states, label);
        weights += weight;
    }
    return cornu__ratio(sum, weights);
}

static void set_labels(Counts *counts, int64_t labels)
{
    counts->labels = labels;
    counts->base.states[0] = cornu_type(CORNU_F64, counts->thresholds + 1, labels, 2);
}

static CornuStatus build_labels(CornuMetric *self, CornuShape y_true, CornuShape y_pred)
{
    CornuText text;
    (void)y_true;
    if (y_pred.rank != 2)
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: predictions are %s, expected (B, N) with "
                           ".multi_label", self->name, cornu_shape_print(&text, y_pred));
    const Counts *counts = (const Counts *)self;
    const int64_t N = y_pred.extent[1];
    const int64_t said = counts->num_labels ? counts->num_labels
                       : counts->weighted_labels ? counts->weighted_labels : N;
    if (said != N)
        return cornu__fail(CORNU_ERR_SHAPE, "metric %s: predictions are %s, expected %lld columns "
                           "for as many labels", self->name, cornu_shape_print(&text, y_pred),
                           (long long)said);
    set_labels((Counts *)self, N);
    return CORNU_OK;
}

/* ---- Constructors ---- */

const CornuFieldKind cornu_field_curve = {
    .name = "curve", CORNU__FIELD_OF_WORDS(CornuCurve),
    .words = { [CORNU_ROC] = "ROC", [CORNU_PR] = "PR", [CORNU_PRGAIN] = "PRGAIN" },
};

const CornuFieldKind cornu_field_summation = {
    .name = "summation", CORNU__FIELD_OF_WORDS(CornuSummation),
    .words = { [CORNU_INTERPOLATION] = "interpolation", [CORNU_MINORING] = "minoring",
               [CORNU_MAJORING] = "majoring" },
};

static json_t *write_thresholds(const CornuFieldSource *from)
{
    const double *number = from->at;
    json_t       *list = number[0] == 0.0 ? json_null() : json_array();
    for (int i = 0; i < CORNU_MAX_THRESHOLDS && number[i] != 0.0; i++)
        list = cornu__json_append(list, json_real(cornu__number(number[i], 0.0)));
    return list;
}

/* A number or a list of numbers; 0 is CORNU_ZERO. */
static CornuStatus read_thresholds(const CornuFieldTarget *to, const json_t *value)
{
    const size_t count = json_is_number(value) ? 1 : json_array_size(value);
    double      *thresholds = to->at;
    if (count < 1 || count > CORNU_MAX_THRESHOLDS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s are not a number or a list of 1 to %d",
                           to->name, CORNU_MAX_THRESHOLDS);
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_is_number(value) ? value : json_array_get(value, i);
        if (!json_is_number(number)) return cornu__unexpected(to->name, "a list of numbers");
        thresholds[i] = json_number_value(number);
        if (thresholds[i] == 0.0) thresholds[i] = (double)CORNU_ZERO;
    }
    return CORNU_OK;
}

const CornuFieldKind cornu_field_thresholds = {
    .name = "thresholds", .size = CORNU_MAX_THRESHOLDS * sizeof(double),
    .write = write_thresholds, .read = read_thresholds,
};

#define FIELD(Config, name, kind) { #name, CORNU_FIELD_##kind, offsetof(Config, name) }
static const CornuField count_fields[] = {
    FIELD(CornuCountConfig, thresholds, THRESHOLDS), { 0 },
};
static const CornuField precision_fields[] = {
    FIELD(CornuPrecisionConfig, thresholds, THRESHOLDS),
    FIELD(CornuPrecisionConfig, top_k, INTEGER_OR_NONE),
    FIELD(CornuPrecisionConfig, class_id, INTEGER_OR_NONE), { 0 },
};
#define AT_FIELDS(constrained)                                            \
    { { #constrained, CORNU_FIELD_NUMBER, offsetof(CornuAtConfig, value) }, \
      FIELD(CornuAtConfig, num_thresholds, INTEGER_OR_DEFAULT),           \
      FIELD(CornuAtConfig, class_id, INTEGER_OR_NONE), { 0 } }
static const CornuField at_specificity[] = AT_FIELDS(specificity);
static const CornuField at_sensitivity[] = AT_FIELDS(sensitivity);
static const CornuField at_recall[] = AT_FIELDS(recall);
static const CornuField at_precision[] = AT_FIELDS(precision);
static const CornuField auc_fields[] = {
    FIELD(CornuAucConfig, num_thresholds, INTEGER_OR_DEFAULT), FIELD(CornuAucConfig, curve, CURVE),
    FIELD(CornuAucConfig, summation_method, SUMMATION),
    FIELD(CornuAucConfig, thresholds, THRESHOLDS), FIELD(CornuAucConfig, multi_label, FLAG),
    FIELD(CornuAucConfig, from_logits, FLAG), FIELD(CornuAucConfig, label_weights, THRESHOLDS),
    FIELD(CornuAucConfig, num_labels, INTEGER_OR_NONE), { 0 },
};

CORNU__SERIALIZABLE_CLASS(precision, "Precision", "precision", CornuPrecisionConfig,
                          .fields = precision_fields);
CORNU__SERIALIZABLE_CLASS(recall, "Recall", "recall", CornuPrecisionConfig,
                          .fields = precision_fields);
CORNU__SERIALIZABLE_CLASS(auc, "AUC", "auc", CornuAucConfig, .fields = auc_fields);

/* Appends thresholds after the first `from` limits; false with a pending error. */
static bool list(Counts *counts, const double *thresholds, int from)
{
    for (int i = 0; i < CORNU_MAX_THRESHOLDS && thresholds[i] != 0.0; i++) {
        const double value = cornu__number(thresholds[i], 0.0);
        if (!(value >= 0.0 && value <= 1.0)) {
            cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: a threshold is %g, expected 0 to 1",
                             counts->base.kind->name, value);
            return false;
        }
        counts->limit[from + i] = (float)value;
        counts->thresholds = from + i + 1;
    }
    return true;
}

/* Source: metrics_utils.py, is_evenly_distributed_thresholds. */
static bool are_even(const Counts *counts)
{
    const int64_t count = counts->thresholds;
    bool          even = count >= 3;
    for (int64_t i = 0; i < count && even; i++) {
        const double at = (double)i / (double)(count - 1);
        even = fabs(counts->limit[i] - at) <= CORNU__EPSILON + 1e-5 * at;
    }
    return even;
}

static CornuMetric *create(Counts counts, const void *config)
{
    if (cornu__refused()) return NULL;
    if (counts.class_id < -1)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .class_id is %lld, expected 0 or more",
                                counts.base.kind->name, (long long)counts.class_id);
    counts.base.state_count = 1;
    counts.base.update = update;
    if (counts.base.result_at) {
        counts.base.result = cornu__mean_of_results;
        counts.base.result_count = counts.thresholds;
    }
    set_labels(&counts, 1);
    Counts *made = cornu__metric_create(sizeof *made, &counts.base, config);
    if (!made) return NULL;
    counts.base = made->base;
    *made = counts;
    return &made->base;
}

static int64_t class_of(int64_t given) { return given ? cornu__integer(given, 0) : -1; }

/* `full`: the arguments in `config`. */
static CornuMetric *at_thresholds(const CornuSerializableClass *kind,
                                  const CornuPrecisionConfig *full, const void *config,
                                  double (*of)(const Confusion *))
{
    Counts counts = { .base = { .kind = kind, .result_at = result_at }, .of = of,
                      .top_k = full->top_k, .class_id = class_of(full->class_id) };
    if (cornu__refused() || !list(&counts, full->thresholds, 0)) return NULL;
    if (full->top_k < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .top_k is %lld, expected 1 or more",
                                kind->name, (long long)cornu__integer(full->top_k, 0));
    counts.even = are_even(&counts);
    if (counts.thresholds == 0) {
        counts.thresholds = 1;
        counts.limit[0] = full->top_k ? -1e10 : 0.5;
    }
    return create(counts, config);
}

static CornuMetric *count(const CornuSerializableClass *kind, const CornuCountConfig *config,
                          double (*of)(const Confusion *))
{
    CornuPrecisionConfig full = { .unset = 0 };
    for (int i = 0; i < CORNU_MAX_THRESHOLDS; i++) full.thresholds[i] = config->thresholds[i];
    return at_thresholds(kind, &full, config, of);
}

#define COUNT(name, class_name)                                                     \
    CORNU__SERIALIZABLE_CLASS(name, class_name, #name, CornuCountConfig,            \
                              .fields = count_fields);                              \
    CornuMetric *cornu_##name##_from(const CornuCountConfig *config)                \
    {                                                                               \
        return count(&cornu__##name##_class, config, name);                         \
    }
COUNT(true_positives, "TruePositives")
COUNT(true_negatives, "TrueNegatives")
COUNT(false_positives, "FalsePositives")
COUNT(false_negatives, "FalseNegatives")

CornuMetric *cornu_precision_from(const CornuPrecisionConfig *config)
{
    return at_thresholds(&cornu__precision_class, config, config, precision);
}

CornuMetric *cornu_recall_from(const CornuPrecisionConfig *config)
{
    return at_thresholds(&cornu__recall_class, config, config, recall);
}

/* Spaces `given` thresholds evenly from 0 to 1, 200 for 0; false with a pending error. */
static bool spread(Counts *counts, int64_t given, int64_t least)
{
    counts->thresholds = given ? given : 200;
    counts->even = counts->thresholds > 1;
    if (counts->thresholds >= least && counts->thresholds <= INT32_MAX) return true;
    cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .num_thresholds is %lld, expected %lld or more",
                     counts->base.kind->name, (long long)given, (long long)least);
    return false;
}

static CornuMetric *best(const CornuSerializableClass *kind, const CornuAtConfig *config,
                         double (*constrained)(const Confusion *), double (*of)(const Confusion *))
{
    Counts counts = { .base = { .kind = kind, .result = best_result }, .of = of,
                      .constrained = constrained, .value = cornu__number(config->value, 0.0),
                      .class_id = class_of(config->class_id), .limit = { 0.5 } };
    if (cornu__refused() || !spread(&counts, config->num_thresholds, 1)) return NULL;
    if (!(counts.value >= 0.0 && counts.value <= 1.0))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .value is %g, expected 0 to 1",
                                kind->name, counts.value);
    return create(counts, config);
}

#define BEST(name, class_name, table, constrained, of)                              \
    CORNU__SERIALIZABLE_CLASS(name, class_name, #name, CornuAtConfig,               \
                              .fields = table);                                     \
    CornuMetric *cornu_##name##_from(const CornuAtConfig *config)                   \
    {                                                                               \
        return best(&cornu__##name##_class, config, constrained, of);               \
    }
BEST(sensitivity_at_specificity, "SensitivityAtSpecificity", at_specificity, specificity, recall)
BEST(specificity_at_sensitivity, "SpecificityAtSensitivity", at_sensitivity, recall, specificity)
BEST(precision_at_recall, "PrecisionAtRecall", at_recall, recall, precision)
BEST(recall_at_precision, "RecallAtPrecision", at_precision, precision, recall)

/* Copies the weights of labels; false with a pending error if they do not fit num_labels. */
static bool set_label_weights(Counts *counts, const CornuAucConfig *config)
{
    const double *given = config->label_weights;
    const int64_t said = config->num_labels;
    int64_t      *count = &counts->weighted_labels;
    for (; *count < CORNU_MAX_THRESHOLDS && given[*count] != 0.0; ++*count) {
        const double weight = cornu__number(given[*count], 0.0);
        counts->label_weights[*count] = weight;
        if (weight >= 0.0 && weight < INFINITY) continue;
        cornu__fail_null(CORNU_ERR_ARGUMENT, "auc: .label_weights have %g, expected 0 or more",
                         weight);
        return false;
    }
    counts->num_labels = said;
    if (said == 0 || (said > 0 && config->multi_label && (*count == 0 || *count == said)))
        return true;
    cornu__fail_null(CORNU_ERR_ARGUMENT, "auc: .num_labels is %lld with %lld .label_weights and "
                     "%s.multi_label, expected as many, 1 or more, and .multi_label",
                     (long long)said, (long long)*count, config->multi_label ? "" : "no ");
    return false;
}

CornuMetric *cornu_auc_from(const CornuAucConfig *config)
{
    Counts counts = { .base = { .kind = &cornu__auc_class, .result = area_result,
                                .build = config->multi_label ? build_labels : NULL },
                      .class_id = -1, .multi_label = config->multi_label, .beyond = true,
                      .from_logits = config->from_logits, .curve = config->curve,
                      .summation = config->summation_method };
    if (cornu__refused()) return NULL;
    if ((unsigned)config->curve > CORNU_PRGAIN ||
        (unsigned)config->summation_method > CORNU_MAJORING)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "auc: .curve is %d and .summation_method %d, "
                                "expected 0 to 2", (int)config->curve,
                                (int)config->summation_method);
    if (!set_label_weights(&counts, config)) return NULL;
    if (config->thresholds[0] == 0.0) {
        if (!spread(&counts, config->num_thresholds, 2)) return NULL;
    } else {
        if (!list(&counts, config->thresholds, 1)) return NULL;
        for (int64_t i = 2; i < counts.thresholds; i++)
            if (counts.limit[i] < counts.limit[i - 1])
                return cornu__fail_null(CORNU_ERR_ARGUMENT, "auc: .thresholds have %g after %g, "
                                        "expected ascending ones", counts.limit[i],
                                        counts.limit[i - 1]);
        counts.limit[counts.thresholds++] = 1.0;
        counts.even = are_even(&counts);
        counts.limit[0] = (float)-CORNU__EPSILON;
        counts.limit[counts.thresholds - 1] = (float)(1.0 + CORNU__EPSILON);
    }
    return create(counts, config);
}
