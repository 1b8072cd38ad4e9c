/* Every loss with each of its arguments, compared with Keras (tests/golden/make_losses.py): values,
 * gradients, reductions, sample weights, and partial batches, on one shard and several. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

enum { ROWS = 8 };

static const struct {
    const char *device;
    int         shards;
} places[] = { { "reference", 1 }, { "cpu", 1 }, { "cpu", 8 }, { "tpu", 1 }, { "tpu", 8 } };

enum { PLACES = sizeof places / sizeof *places };

static CornuDevice *open_place(int i)
{
    CornuDevice *device = cornu_device_open(places[i].device, .shards = places[i].shards);
    if (!device) fail_msg("%s", cornu_error_message());
    return device;
}

/* ---- Keras' arguments ---- */

static void axes_of(const json_t *settings, int64_t axis[CORNU_MAX_RANK])
{
    const json_t *list = json_object_get(settings, "axis");
    for (size_t i = 0; i < json_array_size(list); i++)
        axis[i] = json_integer_value(json_array_get(list, i));
}

static CornuLoss *loss_of(const json_t *s, CornuReduction reduction)
{
    const char *name = json_string_value(json_object_get(s, "loss"));
    const struct {
        const char *name;
        CornuLoss *(*make)(const CornuLossConfig *);
    } plain[] = {
        { "MeanSquaredError", cornu_mean_squared_error_from },
        { "MeanAbsoluteError", cornu_mean_absolute_error_from },
        { "MeanAbsolutePercentageError", cornu_mean_absolute_percentage_error_from },
        { "MeanSquaredLogarithmicError", cornu_mean_squared_logarithmic_error_from },
        { "LogCosh", cornu_log_cosh_from }, { "Poisson", cornu_poisson_from },
        { "Hinge", cornu_hinge_from }, { "SquaredHinge", cornu_squared_hinge_from },
        { "CategoricalHinge", cornu_categorical_hinge_from },
        { "KLDivergence", cornu_kl_divergence_from }, { "CTC", cornu_ctc_from },
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, plain[i].name))
            return plain[i].make(&(CornuLossConfig){ .reduction = reduction });
    const bool   logits = golden_flag(s, "from_logits");
    const double smoothing = json_number_value(json_object_get(s, "label_smoothing"));
    const double alpha = golden_number(s, "alpha"), gamma = golden_number(s, "gamma");
    if (!strcmp(name, "CategoricalGeneralizedCrossEntropy"))
        return cornu_categorical_generalized_cross_entropy(golden_number(s, "q"), reduction);
    if (!strcmp(name, "Huber")) return cornu_huber(golden_number(s, "delta"), reduction);
    if (!strcmp(name, "CosineSimilarity"))
        return cornu_cosine_similarity(golden_integer(s, "axis"), reduction);
    if (!strcmp(name, "SparseCategoricalCrossentropy"))
        return cornu_sparse_categorical_crossentropy(
            logits, golden_integer(s, "ignore_class"), .reduction = reduction);
    if (!strcmp(name, "CategoricalCrossentropy"))
        return cornu_categorical_crossentropy(logits, smoothing, golden_integer(s, "axis"),
                                              reduction);
    if (!strcmp(name, "BinaryCrossentropy"))
        return cornu_binary_crossentropy(logits, smoothing, golden_integer(s, "axis"), reduction);
    if (!strcmp(name, "CategoricalFocalCrossentropy"))
        return cornu_categorical_focal_crossentropy(alpha, gamma, logits, smoothing,
                                                    golden_integer(s, "axis"), reduction);
    if (!strcmp(name, "BinaryFocalCrossentropy"))
        return cornu_binary_focal_crossentropy(golden_flag(s, "apply_class_balancing"), alpha,
                                               gamma, logits, smoothing, .reduction = reduction);
    if (!strcmp(name, "Circle"))
        return cornu_circle(golden_number(s, "gamma"), golden_number(s, "margin"),
                            json_is_false(json_object_get(s, "remove_diagonal")), reduction);
    CornuTverskyConfig tversky = { .alpha = alpha, .beta = golden_number(s, "beta"),
                                   .reduction = reduction };
    CornuDiceConfig    dice = { .reduction = reduction };
    axes_of(s, tversky.axis);
    axes_of(s, dice.axis);
    if (!strcmp(name, "Tversky")) return cornu_tversky_from(&tversky);
    assert_string_equal(name, "Dice");
    return cornu_dice_from(&dice);
}

/* ---- Values and gradients ---- */

static void check_gradient(Golden *golden, const char *name, const json_t *settings,
                           CornuDevice *device, const char *what)
{
    CornuArray target = golden_array(golden, name, "target"), x = golden_array(golden, name, "x");
    CornuArray each = golden_array(golden, name, "each");
    CornuArray d_sum = golden_array(golden, name, "d_sum");
    CornuLoss *loss = loss_of(settings, CORNU_SUM);
    assert_non_null(loss);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_input(graph, x.type);
    CornuTensor *labels = cornu_graph_input(graph, target.type), *d_x;
    CornuTensor *values = loss->call(loss, labels, in);
    if (!values) fail_msg("%s: %s", what, cornu_error_message());
    if (!d_sum.data) d_sum = golden_array(golden, name, "d_sum_over_batch_size"); /* scalars */
    expect_ok(cornu_gradients(cornu_op_sum(values), &in, 1, &d_x));
    expect_ok(cornu_graph_feed(in, x));
    expect_ok(cornu_graph_feed(labels, target));
    CornuTensor *fetches[] = { values, d_x };
    CornuArray   out[2];
    for (int i = 0; i < 2; i++) {
        CornuType type = cornu_tensor_type(fetches[i]);
        out[i] = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    }
    expect_ok(cornu_run(graph, fetches, 2, out));
    assert_int_equal(cornu_type_count(out[0].type), cornu_type_count(each.type));
    expect_near(what, out[0].data, each, 2e-5);
    expect_near(what, out[1].data, d_sum, 3e-5);
    for (int i = 0; i < 2; i++) free(out[i].data);
    cornu_graph_free(graph);
    cornu_loss_free(loss);
}

static void values_and_gradients(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/losses/losses.safetensors");
    const char *name;
    json_t     *settings;
    int         checked = 0;
    for (int d = 0; d < PLACES; d++) {
        if (places[d].shards > 1) continue;   /* see the next test */
        CornuDevice *device = open_place(d);
        json_object_foreach(golden.cases, name, settings) {
            char what[128];
            snprintf(what, sizeof what, "%s on %s", name, places[d].device);
            if (!golden_array(&golden, name, "each").data) continue;   /* ignore_class */
            check_gradient(&golden, name, settings, device, what);
            checked++;
        }
        cornu_device_close(device);
    }
    assert_true(checked == 3 * 58);
    golden_close(&golden);
}

/* ---- Through a model that passes its input on ---- */

static CornuModel *identity(CornuDevice *device, CornuLoss *loss)
{
    CornuModel *model = cornu_sequential(.policy = "float32");
    cornu_model_add(model, cornu_activation(CORNU_LINEAR));
    expect_ok(cornu_compile(model, .device = device, .loss = loss));
    return model;
}

/* One batch of just these rows, and the same rows in a batch of twice as many. */
static void check_reduction(Golden *golden, const char *name, const json_t *settings,
                            CornuDevice *device, int reduction, bool weighted, const char *place)
{
    static const char *const names[] = { "sum_over_batch_size", "sum", "mean_with_sample_weight" };
    char       what[160], key[64];
    double     value;
    snprintf(key, sizeof key, "%s%s", names[reduction], weighted ? "_weighted" : "");
    snprintf(what, sizeof what, "%s %s on %s", name, key, place);
    CornuArray want = golden_array(golden, name, key);
    CornuArray x = golden_array(golden, name, "x"), y = golden_array(golden, name, "target");
    if (!want.data) return;
    const bool rows = !strcmp(json_string_value(json_object_get(settings, "loss")), "CTC");
    const bool steps = x.type.shape.rank == 3 && !rows;   /* elements with a value and weight */
    CornuArray weights = golden_array(golden, NULL, steps ? "step_weights" : "weights");
    if (!weighted) weights.data = NULL;
    CornuModel *model = identity(device, loss_of(settings, (CornuReduction)reduction));
    CornuStatus status = cornu_test_on_batch(model, x, y, &value, weights);
    if (status) fail_msg("%s: %s", what, cornu_error_message());
    expect_near(what, &(float){ (float)value }, want, 3e-5);
    status = cornu_evaluate(model, .x = x, .y = y, .sample_weight = weights, .results = &value,
                            .batch_size = 2 * ROWS, .verbose = CORNU_SILENT);
    if (status) fail_msg("%s: %s", what, cornu_error_message());
    expect_near(what, &(float){ (float)value }, want, 3e-5);
    cornu_model_free(model);
}

static void reductions_and_weights(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/losses/losses.safetensors");
    const char *name;
    json_t     *settings;
    for (int d = 0; d < PLACES; d++) {
        CornuDevice *device = open_place(d);
        char         place[32];
        snprintf(place, sizeof place, "%s:%d", places[d].device, places[d].shards);
        json_object_foreach(golden.cases, name, settings)
            for (int i = 0; i < 6; i++)
                check_reduction(&golden, name, settings, device, i % 3, i >= 3, place);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* One label other than 0 and 1, on one shard, leaves the labels of all shards unchanged. */
static void labels_are_signed_by_the_batch(void **state)
{
    (void)state;
    float        x[ROWS], y[ROWS] = { 0, 1, 0, 1, 0, 1, 0, 2 };
    double       value;
    CornuDevice *device = cornu_device_open("cpu", .shards = 8);
    CornuModel  *model = identity(device, cornu_hinge());
    for (int i = 0; i < ROWS; i++) x[i] = 0.5f;
    expect_ok(cornu_test_on_batch(model, cornu_array(x, CORNU_F32, ROWS, 1),
                                  cornu_array(y, CORNU_F32, ROWS, 1), &value));
    assert_float_equal(value, (4 * 1.0 + 3 * 0.5 + 0.0) / ROWS, 1e-6);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* Predictions of 1/2 for labels of 1: 1 - 2 n/2 / (n + n/2) = 1/3 for any n rows, also in a partial
 * last batch whose padding rows have predictions of 1/2, too. */
static void rows_that_are_none_overlap_nothing(void **state)
{
    (void)state;
    float x[6] = { 0 }, y[6] = { 1, 1, 1, 1, 1, 1 };
    for (int shards = 1; shards <= 2; shards++) {
        double       value;
        CornuDevice *device = cornu_device_open("cpu", .shards = shards);
        CornuModel  *model = cornu_sequential();
        cornu_model_add(model, cornu_activation(CORNU_SIGMOID));
        expect_ok(cornu_compile(model, .device = device, .loss = cornu_dice()));
        expect_ok(cornu_evaluate(model, .x = cornu_array(x, CORNU_F32, 6, 1),
                                 .y = cornu_array(y, CORNU_F32, 6, 1), .batch_size = 4,
                                 .results = &value, .verbose = CORNU_SILENT));
        assert_float_equal(value, 1.0 / 3.0, 1e-6);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* The mean of no values is 0, as in Keras. */
static void a_batch_without_labels_is_0(void **state)
{
    (void)state;
    float   p[] = { 0.25f, 0.75f, 0.5f, 0.5f };
    uint8_t y[] = { 1, 1 };
    for (int reduction = CORNU_MEAN; reduction <= CORNU_MEAN_WITH_SAMPLE_WEIGHT; reduction++) {
        double      value;
        CornuModel *model = identity(NULL, cornu_sparse_categorical_crossentropy(
            .ignore_class = 1, .reduction = (CornuReduction)reduction));
        expect_ok(cornu_test_on_batch(model, cornu_array(p, CORNU_F32, 2, 2),
                                      cornu_array(y, CORNU_U8, 2), &value));
        assert_float_equal(value, 0, 0);
        cornu_model_free(model);
    }
}

/* ---- Names and mistakes ---- */

static void names_are_keras(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        { "mse", "mean_squared_error" }, { "MAE", "mean_absolute_error" },
        { "mape", "mean_absolute_percentage_error" }, { "kld", "kl_divergence" },
        { "msle", "mean_squared_logarithmic_error" }, { "bce", "binary_crossentropy" },
        { "logcosh", "log_cosh" }, { "huber", "huber" }, { "dice", "dice" },
        { "tversky", "tversky" }, { "poisson", "poisson" }, { "hinge", "hinge" },
        { "squared_hinge", "squared_hinge" }, { "categorical_hinge", "categorical_hinge" },
        { "cosine_similarity", "cosine_similarity" },
        { "binary_focal_crossentropy", "binary_focal_crossentropy" }, { "ctc", "ctc" },
        { "categorical_generalized_cross_entropy", "categorical_generalized_cross_entropy" },
        { "categorical_focal_crossentropy", "categorical_focal_crossentropy" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CornuLoss *loss = cornu_loss(names[i][0]);
        assert_string_equal(loss ? loss->name : cornu_error_message(), names[i][1]);
        cornu_loss_free(loss);
    }
}

static CornuTensor *all_of_it(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    (void)self;
    return cornu_op_mean(cornu_op_subtract(y_true, y_pred));
}

static void expect_refusal(CornuLoss *loss, CornuArray x, CornuArray y, CornuArray weights,
                           const char *part)
{
    CornuModel *model = identity(NULL, loss);
    double      value;
    CornuStatus status = cornu_test_on_batch(model, x, y, &value, weights);
    assert_true(status != CORNU_OK);
    expect_error(status, status, part);
    cornu_model_free(model);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    assert_null(cornu_mean_squared_error(7));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "mean_squared_error: .reduction is 7");
    assert_null(cornu_huber(-1));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "huber: .delta is -1");
    assert_null(cornu_binary_focal_crossentropy(.gamma = -2));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".gamma is -2, expected 0 or more");

    assert_null(cornu_categorical_generalized_cross_entropy(1.0));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".q is 1, expected above 0 and below 1");
    assert_null(cornu_loss("circles"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT,
                 "loss \"circles\" is not known; is \"circle\" meant?");

    float            numbers[24] = { 0 };
    const CornuArray x = cornu_array(numbers, CORNU_F32, 4, 3, 2), none = { .data = NULL };
    const CornuArray row = cornu_array(numbers, CORNU_F32, 4, 3);
    expect_refusal(cornu_dice(.axis = { 4 }), x, x, none, "dice: .axis has 4, expected 1 to 2");
    expect_refusal(cornu_cosine_similarity(CORNU_ZERO), x, x, none,
                   "cosine_similarity: .axis is 0");
    expect_refusal(cornu_huber(), x, row, none, "huber: y_true is (4, 3), y_pred (4, 3, 2)");
    expect_refusal(cornu_ctc(), row, row, none, "ctc: y_true is (4, 3), y_pred (4, 3); expected");
    expect_refusal(cornu_mean_squared_error(), x, x, cornu_array(numbers, CORNU_F32, 3),
                   "and sample_weight is (3,), expected the same number of rows");
    expect_refusal(cornu_mean_squared_error(), x, x, cornu_array(numbers, CORNU_F32, 4, 2),
                   "values of shape (4, 3) have sample weights of shape (4, 2)");
    CornuLoss own = { .name = "own", .call = all_of_it };
    expect_refusal(&own, x, x, none, "own: gives a scalar, expected a value per row");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients),
        cmocka_unit_test(reductions_and_weights),
        cmocka_unit_test(labels_are_signed_by_the_batch),
        cmocka_unit_test(rows_that_are_none_overlap_nothing),
        cmocka_unit_test(a_batch_without_labels_is_0),
        cmocka_unit_test(names_are_keras),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
