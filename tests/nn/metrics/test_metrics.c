/* Every metric with each of its arguments, compared with Keras (tests/golden/make_losses.py), on
 * every device: three partial batches, padded with other rows; then again after a reset. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/training/training_internal.h"
#include "../golden.h"

enum { ROWS = 8, BATCHES = 4, MOST = 16 };

static const struct {
    int first, count;
} batches[BATCHES] = { { 0, 4 }, { 4, 1 }, { 5, 3 }, { 0, 4 } };   /* reset before the last */

static const struct {
    const char *device;
    int         shards;
} places[] = { { "reference", 1 }, { "cpu", 1 }, { "tpu", 1 }, { "tpu", 8 } };

enum { PLACES = sizeof places / sizeof *places };

/* ---- Keras' arguments ---- */

static const char *text(const json_t *settings, const char *name)
{
    const char *value = json_string_value(json_object_get(settings, name));
    return value ? value : "";
}

static void thresholds_of(const json_t *settings, const char *name, double *to)
{
    const json_t *value = json_object_get(settings, name);
    if (json_is_number(value)) to[0] = json_number_value(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        to[i] = json_number_value(json_array_get(value, i));
        if (to[i] == 0.0) to[i] = (double)CORNU_ZERO;
    }
}

static uint64_t targets_of(const json_t *settings)
{
    const json_t *ids = json_object_get(settings, "target_class_ids");
    uint64_t      set = 0;
    for (size_t i = 0; i < json_array_size(ids); i++)
        set |= UINT64_C(1) << json_integer_value(json_array_get(ids, i));
    return set;
}

static CornuAverage average_of(const json_t *settings)
{
    const char *average = text(settings, "average");
    return !strcmp(average, "micro") ? CORNU_MICRO : !strcmp(average, "macro") ? CORNU_MACRO
         : !strcmp(average, "weighted") ? CORNU_WEIGHTED : CORNU_NO_AVERAGE;
}

static CornuMetric *counts_of(const char *kind, const json_t *s)
{
    CornuCountConfig     count = { .name = NULL };
    CornuPrecisionConfig precision = { .top_k = golden_integer(s, "top_k"),
                                       .class_id = golden_integer(s, "class_id") };
    thresholds_of(s, "thresholds", count.thresholds);
    thresholds_of(s, "thresholds", precision.thresholds);
    if (!strcmp(kind, "TruePositives")) return cornu_true_positives_from(&count);
    if (!strcmp(kind, "TrueNegatives")) return cornu_true_negatives_from(&count);
    if (!strcmp(kind, "FalsePositives")) return cornu_false_positives_from(&count);
    if (!strcmp(kind, "FalseNegatives")) return cornu_false_negatives_from(&count);
    if (!strcmp(kind, "Precision")) return cornu_precision_from(&precision);
    if (!strcmp(kind, "Recall")) return cornu_recall_from(&precision);
    CornuAtConfig at = { .num_thresholds = golden_integer(s, "num_thresholds"),
                         .class_id = golden_integer(s, "class_id"), .value = 0.6 };
    if (!strcmp(kind, "SensitivityAtSpecificity"))
        return cornu_sensitivity_at_specificity_from(&at);
    if (!strcmp(kind, "SpecificityAtSensitivity"))
        return cornu_specificity_at_sensitivity_from(&at);
    if (!strcmp(kind, "PrecisionAtRecall")) return cornu_precision_at_recall_from(&at);
    if (!strcmp(kind, "RecallAtPrecision")) return cornu_recall_at_precision_from(&at);
    if (strcmp(kind, "AUC")) return NULL;
    const char    *curve = text(s, "curve"), *method = text(s, "summation_method");
    CornuAucConfig auc = {
        .num_thresholds = golden_integer(s, "num_thresholds"),
        .multi_label = golden_flag(s, "multi_label"),
        .from_logits = golden_flag(s, "from_logits"),
        .curve = !strcmp(curve, "PR") ? CORNU_PR : !strcmp(curve, "PRGAIN") ? CORNU_PRGAIN
               : CORNU_ROC,
        .summation_method = !strcmp(method, "minoring") ? CORNU_MINORING
                          : !strcmp(method, "majoring") ? CORNU_MAJORING : CORNU_INTERPOLATION };
    thresholds_of(s, "thresholds", auc.thresholds);
    thresholds_of(s, "label_weights", auc.label_weights);
    auc.num_labels = golden_integer(s, "num_labels");
    return cornu_auc_from(&auc);
}

static CornuMetric *classes_of(const char *kind, const json_t *s)
{
    const double   threshold = golden_number(s, "threshold");
    CornuIouConfig iou = {
        .num_classes = golden_integer(s, "num_classes"), .target_classes = targets_of(s),
        .ignore_class = golden_integer(s, "ignore_class"),
        .one_hot_y_true = !strncmp(kind, "OneHot", 6),
        .one_hot_y_pred = !strncmp(kind, "OneHot", 6) || json_is_false(
            json_object_get(s, "sparse_y_pred")) };
    if (!strcmp(kind, "F1Score")) return cornu_f1_score(average_of(s), threshold);
    if (!strcmp(kind, "FBetaScore"))
        return cornu_fbeta_score(average_of(s), golden_number(s, "beta"), threshold);
    if (!strcmp(kind, "BinaryIoU")) return cornu_binary_iou(targets_of(s), threshold);
    return strstr(kind, "IoU") ? cornu_mean_iou_from(&iou) : NULL;
}

static CornuMetric *mean_of(const char *kind, const json_t *s)
{
    const bool   logits = golden_flag(s, "from_logits");
    const double smoothing = json_number_value(json_object_get(s, "label_smoothing"));
    const int64_t k = golden_integer(s, "k"), axis = golden_integer(s, "axis");
    if (!strcmp(kind, "BinaryAccuracy"))
        return cornu_binary_accuracy(golden_number(s, "threshold"));
    if (!strcmp(kind, "TopKCategoricalAccuracy")) return cornu_top_k_categorical_accuracy(k);
    if (!strcmp(kind, "SparseTopKCategoricalAccuracy"))
        return cornu_sparse_top_k_categorical_accuracy(
            k, .from_sorted_ids = golden_flag(s, "from_sorted_ids"));
    if (!strcmp(kind, "Accuracy")) return cornu_equality_accuracy();
    if (!strcmp(kind, "CosineSimilarity")) return cornu_cosine_similarity_metric(axis);
    if (!strcmp(kind, "PearsonCorrelation")) return cornu_pearson_correlation(axis);
    if (!strcmp(kind, "ConcordanceCorrelation")) return cornu_concordance_correlation(axis);
    if (!strcmp(kind, "BinaryCrossentropy"))
        return cornu_loss_metric("bce", cornu_binary_crossentropy(logits, smoothing));
    if (!strcmp(kind, "CategoricalCrossentropy"))
        return cornu_loss_metric("cce", cornu_categorical_crossentropy(logits, smoothing));
    if (!strcmp(kind, "SparseCategoricalCrossentropy"))
        return cornu_loss_metric("scce", cornu_sparse_categorical_crossentropy(
                                             logits, golden_integer(s, "ignore_class")));
    if (strcmp(kind, "R2Score")) return NULL;
    const json_t *given = json_object_get(s, "class_aggregation");
    const char   *aggregation = text(s, "class_aggregation");
    return cornu_r2_score(json_is_null(given) ? CORNU_NO_AGGREGATION
                          : *aggregation == 'v' ? CORNU_VARIANCE_WEIGHTED_AVERAGE
                          : CORNU_UNIFORM_AVERAGE, golden_integer(s, "num_regressors"));
}

/* The metric of the case; by Keras' string if it has no arguments. */
static CornuMetric *metric_of(const char *name, const json_t *settings)
{
    const char  *kind = text(settings, "metric");
    CornuMetric *metric;
    if (!strcmp(name, text(settings, "default")) && !json_object_get(settings, "num_classes"))
        return cornu_metric(name);
    if (json_object_size(settings) == 2 && !strcmp(kind, "LogCoshError"))
        return cornu_metric("log_cosh_error");
    if (!(metric = counts_of(kind, settings)) && !(metric = classes_of(kind, settings)))
        metric = mean_of(kind, settings);
    if (!metric) fail_msg("%s: no metric %s: %s", name, kind, cornu_error_message());
    return metric;
}

/* ---- Through a model that passes its input on ---- */

static CornuTensor *nothing(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    (void)self, (void)y_true;
    return cornu_op_scale(y_pred, 0.0);
}

/* The array rotated: rows first, first + 1, … and, after the last, row 0. */
static CornuArray turned(CornuArray array, int first)
{
    const size_t row = cornu_type_bytes(array.type) / ROWS;
    char        *copy = malloc(cornu_type_bytes(array.type) + 1);
    for (int i = 0; i < ROWS; i++)
        memcpy(copy + (size_t)i * row,
               (char *)array.data + (size_t)((i + first) % ROWS) * row, row);
    return cornu_array_from(copy, array.type);
}

static void step(CornuModel *model, CornuArray x, CornuArray y, CornuArray weights, int batch)
{
    const int        first = batches[batch].first;
    const CornuArray part[] = { turned(x, first), turned(y, first),
                                weights.data ? turned(weights, first) : weights };
    const CornuArrays arrays = { .x = &part[0], .y = &part[1], .weights = &part[2],
                                 .weight_count = weights.data ? 1 : 0 };
    CornuStep *test;
    expect_ok(cornu__step(model, CORNU_STEP_TEST, &arrays, &test));
    expect_ok(cornu__step_feed(test, &arrays, batches[batch].count));
    expect_ok(cornu__step_run(test, NULL));
    for (int i = 0; i < 3; i++) free(part[i].data);
}

static void run(Golden *golden, const char *name, const json_t *settings, bool weighted, int place,
                CornuDevice *device)
{
    CornuLoss  none = { .name = "nothing", .call = nothing };
    CornuArray x = golden_array(golden, name, "x"), y = golden_array(golden, name, "target");
    CornuArray want = golden_array(golden, name, weighted ? "result_weighted" : "result");
    CornuArray weights = { .data = NULL };
    if (weighted) weights = golden_array(golden, name, "weights");
    CornuModel *model = cornu_sequential(.policy = "float32");
    cornu_model_add(model, cornu_activation(CORNU_LINEAR));
    CornuMetric *metric = metric_of(name, settings);
    expect_ok(weighted ? cornu_compile(model, .device = device, .loss = &none,
                                       .weighted_metrics = { metric })
                       : cornu_compile(model, .device = device, .loss = &none,
                                       .metrics = { metric }));
    const int64_t size = want.type.shape.extent[1];
    for (int b = 0; b < BATCHES; b++) {
        char   what[160];
        double got[MOST], shown[2], mean = 0.0;
        float  as_float[MOST];
        snprintf(what, sizeof what, "%s%s, batch %d on %s:%d", name, weighted ? " weighted" : "", b,
                 places[place].device, places[place].shards);
        if (b == BATCHES - 1) expect_ok(cornu_model_reset_metrics(model));
        step(model, x, y, weights, b);
        if (cornu_model_metric_size(model, 1) != size)
            fail_msg("%s: %lld numbers, expected %lld", what,
                     (long long)cornu_model_metric_size(model, 1), (long long)size);
        expect_ok(cornu_model_metric_result(model, 1, got, size));
        expect_ok(cornu__metrics_read(model, shown));
        for (int64_t i = 0; i < size; i++) {
            as_float[i] = (float)got[i];
            mean += got[i] / (double)size;
        }
        CornuArray row = cornu_array((float *)want.data + b * size, CORNU_F32, size);
        /* Gains are 1 - a quotient, in f32 in Keras, with an absolute error near 0. */
        const bool gains = strstr(name, "PRGAIN") != NULL;
        expect_near(what, as_float, row, gains ? 1e-6 / fabs(cornu_array_get(row, 0)) : 2e-5);
        if (size > 1)
            expect_near(what, &(float){ (float)shown[1] },
                        cornu_array(&(float){ (float)mean }, CORNU_F32, 1), 1e-6);
    }
    cornu_model_free(model);
}

static void metrics_match_keras(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/losses/metrics.safetensors");
    const char *name;
    json_t     *settings;
    for (int place = 0; place < PLACES; place++) {
        CornuDevice *device = cornu_device_open(places[place].device,
                                                .shards = places[place].shards);
        assert_non_null(device);
        json_object_foreach(golden.cases, name, settings)
            for (int weighted = 0; weighted < 2; weighted++)
                run(&golden, name, settings, weighted, place, device);
        cornu_device_close(device);
    }
    assert_true(json_object_size(golden.cases) > 100);
    golden_close(&golden);
}

/* ---- States, mistakes ---- */

static CornuModel *compiled(CornuMetric *metric)
{
    CornuModel *model = cornu_sequential();
    cornu_model_add(model, cornu_activation(CORNU_LINEAR));
    expect_ok(cornu_compile(model, .loss = cornu_mean_squared_error(), .metrics = { metric }));
    return model;
}

/* With labels and predictions inside and outside [0, 1]. Keras 3.15.1 gives the same. */
static void numbers_beyond_0_and_1_are_held_there(void **state)
{
    (void)state;
    float  x[] = { 1.5f, -0.5f, 0.2f, 0.7f, 0.6f, 0.1f }, y[] = { 1, 0, 0, 1, 0, 1 };
    double got[5];
    static const double positives[2][5] = { { 3, 2, 2, 1, 0 }, { 2, 1, 1, 0, 0 } };
    for (int i = 0; i < 2; i++) {
        const CornuCountConfig even = { .thresholds = { CORNU_ZERO, 0.25, 0.5, 0.75, 1.0 } };
        CornuModel *model = compiled(i ? cornu_false_positives_from(&even)
                                       : cornu_true_positives_from(&even));
        expect_ok(cornu_test_on_batch(model, cornu_array(x, CORNU_F32, 6, 1),
                                      cornu_array(y, CORNU_F32, 6, 1)));
        expect_ok(cornu_model_metric_result(model, 1, got, 5));
        for (int k = 0; k < 5; k++) assert_float_equal(got[k], positives[i][k], 0.0);
        cornu_model_free(model);
    }
}

/* Gains of recall are clipped at 0, those of precision are not: worse than chance is negative. */
static void gains_of_recall_are_not_below_0(void **state)
{
    (void)state;
    float  x[] = { 0.9f, 0.8f, 0.7f, 0.3f, 0.2f, 0.1f }, y[] = { 1, 0, 0, 1, 0, 1 };
    static const struct { int64_t thresholds; CornuSummation summation; double area; } cases[] = {
        { 5, CORNU_INTERPOLATION, -0.25 }, { 5, CORNU_MINORING, -0.5 }, { 5, CORNU_MAJORING, 0.0 },
        { 11, CORNU_INTERPOLATION, -0.375 }, { 11, CORNU_MINORING, -0.75 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double      got;
        CornuModel *model = compiled(cornu_auc(cases[i].thresholds, .curve = CORNU_PRGAIN,
                                               .summation_method = cases[i].summation));
        expect_ok(cornu_test_on_batch(model, cornu_array(x, CORNU_F32, 6, 1),
                                      cornu_array(y, CORNU_F32, 6, 1)));
        expect_ok(cornu_model_metric_result(model, 1, &got, 1));
        assert_float_equal(got, cases[i].area, 1e-6);
        cornu_model_free(model);
    }
}

static void states_can_be_read(void **state)
{
    (void)state;
    float       x[] = { 0, 1, 1, 2, 2, 2 }, y[] = { 0, 1, 2, 2, 2, 1 };
    CornuModel *model = compiled(cornu_mean_iou(3));
    CornuArray  matrix;
    double      iou;
    expect_error(cornu_model_metric_state(model, 1, 0, &matrix), CORNU_ERR_ARGUMENT,
                 "the metric mean_io_u has no result before the first step");
    expect_ok(cornu_test_on_batch(model, cornu_array(x, CORNU_F32, 6, 1),
                                  cornu_array(y, CORNU_F32, 6, 1)));
    expect_ok(cornu_model_metric_state(model, 1, 0, &matrix));
    static const double want[] = { 1, 0, 0, 0, 1, 1, 0, 1, 2 };   /* labels, predictions */
    assert_true(cornu_type_equal(matrix.type, cornu_type(CORNU_F64, 3, 3)));
    for (int i = 0; i < 9; i++) assert_float_equal(cornu_array_get(matrix, i), want[i], 0.0);
    expect_ok(cornu_model_metric_result(model, 1, &iou, 1));
    assert_float_equal(iou, (1.0 + 1.0 / 3.0 + 0.5) / 3.0, 1e-6);
    expect_error(cornu_model_metric_state(model, 1, 1, &matrix), CORNU_ERR_ARGUMENT,
                 "mean_io_u has no state 1, expected 0 to 0");
    expect_error(cornu_model_metric_result(model, 1, &iou, 2), CORNU_ERR_ARGUMENT,
                 "2 values of mean_io_u requested, expected at most 1");
    expect_error(cornu_model_metric_result(model, 5, &iou, 1), CORNU_ERR_ARGUMENT,
                 "there is no metric 5, expected 0 to 1");
    cornu_model_free(model);
}

/* At a threshold between 0.4 and 0.6 half of the labels of 1 and of 0 are right, above 0.6 half of
 * the ones and all zeros, below 0.4 all ones and half of the zeros. A value that is exactly reached
 * counts; if none reaches it the result is 0. */
static void a_constraint_may_be_just_met(void **state)
{
    (void)state;
    float labels[] = { 1, 1, 0, 0 }, p[] = { 0.9f, 0.4f, 0.6f, 0.1f };
    const struct { CornuMetric *metric; double expected; } cases[] = {
        { cornu_specificity_at_sensitivity(0.5, 21), 1.0 },
        { cornu_specificity_at_sensitivity(0.51, 21), 0.5 },
        { cornu_sensitivity_at_specificity(0.5, 21), 1.0 },
        { cornu_sensitivity_at_specificity(0.51, 21), 0.5 },
        { cornu_precision_at_recall(0.5, 21), 1.0 },
        { cornu_precision_at_recall(1.0, 21), 2.0 / 3.0 },
        { cornu_recall_at_precision(2.0 / 3.0, 21), 1.0 },
        { cornu_recall_at_precision(1.0, 21), 0.5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuModel *model = compiled(cases[i].metric);
        double      got;
        expect_ok(cornu_test_on_batch(model, cornu_array(p, CORNU_F32, 4, 1),
                                      cornu_array(labels, CORNU_F32, 4, 1)));
        expect_ok(cornu_model_metric_result(model, 1, &got, 1));
        if (!(fabs(got - cases[i].expected) <= 1e-12))
            fail_msg("case %zu is %.9g, expected %.9g", i, got, cases[i].expected);
        cornu_model_free(model);
    }
}

static void expect_refusal(CornuMetric *metric, CornuArray x, CornuArray y, const char *part)
{
    CornuModel *model = compiled(metric);
    CornuStatus status = cornu_test_on_batch(model, x, y);
    assert_true(status != CORNU_OK);
    expect_error(status, status, part);
    cornu_model_free(model);
}

static void expect_none(const void *metric, const char *part)
{
    assert_null(metric);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_none(cornu_precision(.thresholds = { 1.5 }),
                "precision: a threshold is 1.5, expected 0 to 1");
    expect_none(cornu_precision(.top_k = -1), "precision: .top_k is -1");
    expect_none(cornu_recall(.class_id = -2), "recall: .class_id is -2");
    expect_none(cornu_auc(1), "auc: .num_thresholds is 1, expected 2 or more");
    expect_none(cornu_auc(.thresholds = { 0.5, 0.25 }), "auc: .thresholds have 0.25 after 0.5");
    expect_none(cornu_auc(.label_weights = { 1, -1 }), "auc: .label_weights have -1, expected 0");
    expect_none(cornu_auc(.num_labels = 3), "auc: .num_labels is 3 with 0 .label_weights and no");
    expect_none(cornu_top_k_categorical_accuracy(.from_sorted_ids = true),
                ".from_sorted_ids is given, which only sparse_top_k");
    expect_none(cornu_precision_at_recall(2), "precision_at_recall: .value is 2");
    expect_none(cornu_fbeta_score(.beta = -1), "fbeta_score: .beta is -1");
    expect_none(cornu_f1_score(.threshold = 2), "f1_score: .threshold is 2");
    expect_none(cornu_mean_iou(), "mean_io_u: .num_classes is 0");
    expect_none(cornu_mean_iou(3, .target_classes = 8), ".target_classes are 0x8, expected bits");
    expect_none(cornu_top_k_categorical_accuracy(-3), ".k is -3");
    expect_none(cornu_r2_score(.num_regressors = -1), ".num_regressors -1");
    expect_none(cornu_loss_metric("own", NULL), "metric own: the loss is NULL");
    expect_none(cornu_metric("mean_square_error"), "\"mean_squared_error\" meant?");

    float            numbers[24] = { 0 };
    const CornuArray x = cornu_array(numbers, CORNU_F32, 4, 3, 2);
    const CornuArray row = cornu_array(numbers, CORNU_F32, 4, 3);
    expect_refusal(cornu_f1_score(), x, x, "f1_score: y_true is (4, 3, 2), y_pred (4, 3, 2)");
    expect_refusal(cornu_r2_score(), x, x, "expected (B, N)");
    expect_refusal(cornu_auc(.multi_label = true), x, x, "predictions are (4, 3, 2)");
    expect_refusal(cornu_auc(.label_weights = { 1, 2 }), row, row,
                   "predictions are (4, 3), but there are 2 .label_weights");
    expect_refusal(cornu_auc(.multi_label = true, .num_labels = 2), row, row,
                   "predictions are (4, 3), expected 2 columns");
    expect_refusal(cornu_precision(.class_id = 3), row, row, ".class_id is 3, expected less");
    expect_refusal(cornu_precision(.top_k = 4), row, row, ".top_k is 4, expected at most 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_match_keras),
        cmocka_unit_test(numbers_beyond_0_and_1_are_held_there),
        cmocka_unit_test(gains_of_recall_are_not_below_0),
        cmocka_unit_test(states_can_be_read),
        cmocka_unit_test(a_constraint_may_be_just_met),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
