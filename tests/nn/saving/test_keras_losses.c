/* Losses and metrics with arguments in Keras' files: they come back as they were, and real Keras
 * computes the same. */
#include "../../../nn/saving/keras_internal.h"
#include "golden_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../skip.h"
#include "keras_python.h"

enum { ROWS = 8 };

enum { COLUMNS = 3, MOST_VALUES = 1 + 2 * CORNU_MAX_METRICS };

static float   scores_x[ROWS * 4], scores_y[ROWS * COLUMNS];
static uint8_t scores_class[ROWS];

/* Calls `each` for every loss and metric of Keras that has arguments, and for some without; all but
 * the first take (ROWS, COLUMNS) labels. */
static void with_compilations(void (*each)(const CornuCompileConfig *config, int i))
{
    const CornuCompileConfig all[] = {
        { .loss = cornu_sparse_categorical_crossentropy(.from_logits = true, .ignore_class = 2),
          .metrics = { CORNU_ACCURACY, cornu_sparse_top_k_categorical_accuracy(.k = 2),
                       cornu_sparse_top_k_categorical_accuracy(.from_sorted_ids = true,
                                                               .name = "sorted"),
                       cornu_loss_metric("ignoring", cornu_sparse_categorical_crossentropy(
                           .from_logits = true, .ignore_class = CORNU_ZERO)),
                       cornu_loss_metric("sparse", cornu_sparse_categorical_crossentropy(
                           .from_logits = true, .axis = -1)) } },
        { .loss = cornu_binary_focal_crossentropy(
              .apply_class_balancing = true, .alpha = 0.3, .gamma = 1.5, .label_smoothing = 0.1,
              .reduction = CORNU_SUM, .name = "focal"),
          .metrics = { cornu_auc(.curve = CORNU_PR, .summation_method = CORNU_MAJORING,
                                 .thresholds = { 0.25, 0.5 }, .name = "area"),
                       cornu_precision(.thresholds = { CORNU_ZERO, 0.6 }),
                       cornu_recall(.top_k = 2, .class_id = 1) },
          .weighted_metrics = { cornu_precision(.thresholds = { 0.5 }, .class_id = CORNU_ZERO),
                                cornu_metric("mse") } },
        { .loss = cornu_categorical_focal_crossentropy(.alpha = 0.4, .gamma = CORNU_ZERO,
                                                       .from_logits = true),
          .metrics = { cornu_f1_score(.average = CORNU_WEIGHTED),
                       cornu_precision_at_recall(.value = 0.4, .num_thresholds = 50),
                       cornu_recall_at_precision(.value = 0.3),
                       cornu_sensitivity_at_specificity(.value = CORNU_ZERO),
                       cornu_specificity_at_sensitivity(.value = 0.5, .class_id = 2) } },
        { .loss = cornu_binary_crossentropy(.from_logits = true, .label_smoothing = 0.2,
                                            .axis = 1),
          .metrics = { cornu_loss_metric("smooth", cornu_binary_crossentropy(
                           .from_logits = true, .label_smoothing = 0.4)),
                       cornu_loss_metric("cce", cornu_categorical_crossentropy(
                           .label_smoothing = 0.3, .axis = -1, .reduction = CORNU_SUM)),
                       cornu_pearson_correlation(.axis = 1),
                       cornu_concordance_correlation(.axis = -1) } },
        { .loss = cornu_tversky(.alpha = 0.3, .beta = CORNU_ZERO, .axis = { 1 }),
          .metrics = { cornu_top_k_categorical_accuracy(.k = 2),
                       cornu_true_positives(.thresholds = { 0.3 }),
                       cornu_false_positives(.thresholds = { 0.3, 0.5 }), cornu_true_negatives(),
                       cornu_false_negatives(), cornu_metric("root_mean_squared_error"),
                       cornu_auc(.multi_label = true, .num_thresholds = 20,
                                 .from_logits = true, .num_labels = COLUMNS,
                                 .label_weights = { 1, CORNU_ZERO, 2.5 }) } },
        { .loss = cornu_categorical_crossentropy(.label_smoothing = 0.1),
          .metrics = { cornu_binary_iou(.target_classes = 2, .threshold = 0.4),
                       cornu_mean_iou(.num_classes = 3, .one_hot_y_true = true,
                                      .one_hot_y_pred = true, .ignore_class = CORNU_ZERO),
                       cornu_mean_iou(3, .target_classes = 5, .one_hot_y_true = true,
                                 .one_hot_y_pred = true) } },
        { .loss = cornu_dice(.axis = { -1 }),
          .metrics = { cornu_binary_accuracy(.threshold = 0.4),
                       cornu_equality_accuracy(.name = "equal"),
                       cornu_auc(.label_weights = { 1, 0.5, 2.5 }),
                       cornu_fbeta_score(.average = CORNU_MACRO, .beta = 2, .threshold = 0.45),
                       cornu_r2_score(.class_aggregation = CORNU_VARIANCE_WEIGHTED_AVERAGE),
                       cornu_r2_score(.class_aggregation = CORNU_NO_AGGREGATION,
                                      .name = "columns"),
                       cornu_metric("log_cosh_error") } },
        { .loss = cornu_kl_divergence(.reduction = CORNU_MEAN_WITH_SAMPLE_WEIGHT) },
        /* Arguments that Keras reads and does not write. */
        { .loss = cornu_huber(.delta = 0.3), .metrics = { cornu_cosine_similarity_metric() } },
        { .loss = cornu_cosine_similarity(.axis = 1, .reduction = CORNU_SUM) },
    };
    for (int i = 0; i < ROWS * 4; i++) scores_x[i] = (float)(i * 37 % 101) / 25 - 2;
    for (int i = 0; i < ROWS * COLUMNS; i++) scores_y[i] = i % COLUMNS == i / COLUMNS * 5 % 7 % 3;
    for (int i = 0; i < ROWS; i++) scores_class[i] = (uint8_t)(i * 5 % 7 % 3);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) each(&all[i], (int)i);
}

static CornuArray scores_labels(int i)
{
    return i == 0 ? cornu_array(scores_class, CORNU_U8, ROWS, 1)
                  : cornu_array(scores_y, CORNU_F32, ROWS, COLUMNS);
}

static CornuModel *scores_model(CornuCompileConfig config)
{
    CornuModel *model = cornu_sequential(.name = "scores", .input_shape = { 4 });
    cornu_model_add(model, cornu_dense(COLUMNS, .activation = CORNU_SIGMOID, .name = "dense"));
    config.model = model;
    config.device = device;
    config.optimizer = cornu_sgd();
    expect_ok(cornu_compile_from(&config));
    return model;
}

/* Loss and metrics; returns their number. */
static int scores_of(CornuModel *model, int i, float *scores)
{
    double    values[MOST_VALUES];
    const int count = cornu_model_metric_count(model);
    assert_true(count <= MOST_VALUES);
    expect_ok(cornu_test_on_batch(model, cornu_array(scores_x, CORNU_F32, ROWS, 4),
                                  scores_labels(i), .values = values));
    for (int k = 0; k < count; k++) scores[k] = (float)values[k];
    return count;
}

static void round_trip_scores(const CornuCompileConfig *config, int i)
{
    float       before[MOST_VALUES], after[MOST_VALUES];
    CornuModel *model = scores_model(*config);
    expect_ok(cornu_model_save(model, here("a", ".keras")));
    CornuModel *loaded = expect_model(cornu_model_load_compiled(here("a", ".keras"), device));
    expect_ok(cornu_model_save(loaded, here("b", ".keras")));
    expect_equal_files(here("a", ".keras"), here("b", ".keras"));
    const int count = scores_of(model, i, before);
    assert_int_equal(scores_of(loaded, i, after), count);
    for (int k = 0; k < count; k++) {
        assert_string_equal(cornu_model_metric_name(model, k), cornu_model_metric_name(loaded, k));
        if (before[k] != after[k])
            fail_msg("compilation %d: %s is %g, and %g once loaded", i,
                     cornu_model_metric_name(model, k), before[k], after[k]);
    }
    cornu_model_free(model);
    cornu_model_free(loaded);
}

static void test_losses_and_metrics(void **state)
{
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    with_compilations(round_trip_scores);
    /* Keras cannot trace this one in JAX. */
    round_trip_scores(&(CornuCompileConfig){
        .loss = cornu_loss("bce"), .metrics = { cornu_r2_score(.num_regressors = 2) } }, 1);
}

/* Unknown ones are refused by name. */
static void test_unknown_losses_and_metrics(void **state)
{
    static const struct { const char *member, *value, *message; } unknown[] = {
        { "loss", "{\"class_name\": \"Circles\", \"config\": {}}",
          "the loss \"Circles\" is none of Keras' that Cornu has" },
        { "loss", "{\"class_name\": \"Huber\", \"config\": {\"epsilon\": 1}}",
          "compile_config: Huber: the argument \"epsilon\" is not known" },
        { "loss", "{\"class_name\": \"Huber\", \"config\": {\"delta\": \"a\"}}",
          "Huber: delta is not a number" },
        { "loss", "{\"class_name\": \"Huber\", \"config\": {\"dtype\": \"float64\"}}",
          "Huber: dtype is not \"float32\"" },
        { "loss", "{\"class_name\": \"Huber\", \"config\": {\"reduction\": \"none\"}}",
          "Huber: reduction is None, which leaves a loss per row" },
        { "loss", "{\"class_name\": \"Huber\", \"config\": {\"delta\": -1}}",
          "huber: .delta is -1, expected more than 0" },
        { "metrics", "[{\"class_name\": \"Sum\", \"config\": {}}]",
          "the metric \"Sum\" is none of Keras' that Cornu has" },
        { "metrics", "[{\"class_name\": \"AUC\", \"config\": {\"num_labels\": 3}}]",
          "AUC: auc: .num_labels is 3 with 0 .label_weights and no .multi_label, expected" },
        { "metrics", "[{\"class_name\": \"AUC\", \"config\": {\"labels\": 3}}]",
          "AUC: the argument \"labels\" is not known" },
        { "weighted_metrics", "[{\"class_name\": \"AUC\", \"config\": {\"curve\": \"X\"}}]",
          "AUC: curve is \"X\", expected one of ROC, PR, PRGAIN" },
        { "metrics", "[{\"class_name\": \"AUC\", \"config\": {\"dtype\": \"int32\"}}]",
          "AUC: dtype is not \"float32\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CornuModel *model = cornu_sequential(.input_shape = { 4 });
        cornu_model_add(model, cornu_dense(3));
        json_t *config = json_pack("{s:s, s:o}", "optimizer", "sgd", unknown[i].member,
                                   json_loads(unknown[i].value, 0, NULL));
        assert_non_null(config);
        const CornuStatus status = cornu__compile_from_config(model, config, device);
        assert_int_not_equal(status, CORNU_OK);
        expect_error(status, status, unknown[i].message);
        json_decref(config);
        cornu_model_free(model);
    }
}

/* ---- Real Keras on our files ---- */

static const char *scores_name(int i)
{
    static char name[24];
    snprintf(name, sizeof name, "scores%d", i);
    return name;
}

static int compilations;

static void write_scores(const CornuCompileConfig *config, int i)
{
    float       scores[MOST_VALUES];
    char        names[MOST_VALUES * 48];
    int         length = 0;
    CornuModel *model = scores_model(*config);
    const int   count = scores_of(model, i, scores);
    expect_ok(cornu_model_save(model, here(scores_name(i), ".keras")));
    const CornuNamedArray arrays[] = {
        { "x", cornu_array(scores_x, CORNU_F32, ROWS, 4) }, { "y", scores_labels(i) },
        { "scores", cornu_array(scores, CORNU_F32, count) },
    };
    expect_ok(cornu_npz_write(here(scores_name(i), ".npz"), arrays, 3));
    for (int k = 0; k < count; k++)
        length += snprintf(names + length, sizeof names - (size_t)length, "%s\n",
                           cornu_model_metric_name(model, k));
    files_write(here(scores_name(i), ".txt"), names, (size_t)length);
    cornu_model_free(model);
    compilations = i + 1;
}

/* Keras loads models compiled here, finds the same loss and metrics, and saves them; they load here
 * again, except for arguments that Keras 3.15 omits: delta of Huber, axis of the CosineSimilarity
 * loss. Also with tuples for lists. */
static void test_keras_compiles_as_ours(void **state)
{
    (void)state;
    const char *python = keras_python();
    char        command[600];
    with_compilations(write_scores);
    snprintf(command, sizeof command, "%s tests/nn/saving/check_compiled.py %s %d >/dev/null",
             python, folder, compilations);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < compilations; i++) {
        float       scores[MOST_VALUES];
        char        back[40];
        snprintf(back, sizeof back, "%s_back", scores_name(i));
        CornuModel *model = expect_model(cornu_model_load_compiled(here(back, ".keras"), device));
        CornuNpz   *file = cornu_npz_open(here(scores_name(i), ".npz"));
        assert_non_null(file);
        const CornuArray expected = cornu_npz_find(file, "scores")->array;
        assert_int_equal(scores_of(model, i, scores), expected.type.shape.extent[0]);
        if (i < compilations - 2) expect_near(back, scores, expected, 1e-5);
        cornu_npz_close(file);
        cornu_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_and_metrics),
        cmocka_unit_test(test_unknown_losses_and_metrics),
        cmocka_unit_test(test_keras_compiles_as_ours),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
