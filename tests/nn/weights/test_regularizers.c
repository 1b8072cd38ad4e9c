/* Regularizers and constraints in training, against real Keras (tests/golden/optimizers); in files,
 * initializers too; and invalid arguments. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/saving/files_internal.h"
#include "../golden.h"

/* ---- The networks of make_optimizers.py ---- */

static void add_dense(CornuModel *model)
{
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_TANH,
                                       .kernel_regularizer = cornu_l1(0.02),
                                       .bias_regularizer = cornu_l2(0.05),
                                       .activity_regularizer = cornu_l1_l2(0.01, 0.03),
                                       .kernel_constraint = cornu_max_norm(0.8),
                                       .bias_constraint = cornu_non_neg()));
    cornu_model_add(model, cornu_dense(
        3, .kernel_regularizer = cornu_orthogonal_regularizer(0.1, CORNU_COLUMNS),
        .kernel_constraint = cornu_min_max_norm(0.2, 0.9, 0.7, .axis = { 1 })));
}

static void add_image(CornuModel *model)
{
    cornu_model_add(model, cornu_conv2d(4, 3, .activation = CORNU_RELU,
                                        .kernel_regularizer = cornu_l2(0.1),
                                        .bias_regularizer = cornu_l1(0.1),
                                        .activity_regularizer = cornu_l2(0.2),
                                        .kernel_constraint = cornu_unit_norm({ 0, 1, 2 }),
                                        .bias_constraint = cornu_max_norm(0.1)));
    cornu_model_add(model, cornu_batch_normalization(
        .gamma_regularizer = cornu_l1(0.3), .beta_regularizer = cornu_l2(0.2),
        .gamma_constraint = cornu_max_norm(1.5), .beta_constraint = cornu_non_neg(),
        .synchronized = true));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(3, .kernel_regularizer = cornu_orthogonal_regularizer(0.5)));
}

static void add_sequence(CornuModel *model)
{
    cornu_model_add(model, cornu_embedding(7, 4,
                                           .embeddings_regularizer = cornu_l1_l2(0.01, 0.1),
                                           .activity_regularizer = cornu_l2(0.1),
                                           .embeddings_constraint = cornu_unit_norm({ 1 })));
    cornu_model_add(model, cornu_bidirectional(cornu_lstm(
        3, .return_sequences = true, .kernel_regularizer = cornu_l2(0.05),
        .recurrent_regularizer = cornu_orthogonal_regularizer(0.2),
        .bias_regularizer = cornu_l2(0.03), .activity_regularizer = cornu_l1(0.1),
        .kernel_constraint = cornu_max_norm(1),
        .recurrent_constraint = cornu_min_max_norm(0.5, .axis = { -1 }),
        .bias_constraint = cornu_non_neg())));
    cornu_model_add(model, cornu_gru(3, .return_sequences = true,
                                     .kernel_regularizer = cornu_l1(0.02),
                                     .recurrent_regularizer = cornu_l2(0.04),
                                     .bias_regularizer = cornu_l2(0.1),
                                     .kernel_constraint = cornu_max_norm(0.7)));
    cornu_model_add(model, cornu_time_distributed(
        cornu_dense(3, .kernel_regularizer = cornu_l2(0.1),
                    .activity_regularizer = cornu_l2(0.5))));
    cornu_model_add(model, cornu_simple_rnn(3, .recurrent_constraint = cornu_unit_norm()));
}

static const struct {
    const char *name;
    void      (*add)(CornuModel *model);
    int64_t     input[CORNU_MAX_RANK];
} networks[] = {
    { "dense", add_dense, { 5 } }, { "ema", add_dense, { 5 } },
    { "accumulation", add_dense, { 5 } }, { "image", add_image, { 5, 6, 2 } },
    { "sequence", add_sequence, { 6 } },
};

enum { NETWORKS = sizeof networks / sizeof *networks, EPOCHS = 3, BATCH = 8 };

static CornuModel *network(int i)
{
    CornuSequentialConfig config = { .name = networks[i].name, .policy = "float32" };
    memcpy(config.input_shape, networks[i].input, sizeof config.input_shape);
    CornuModel *model = cornu_sequential_from(&config);
    networks[i].add(model);
    expect_ok(cornu_error_take());
    assert_true(cornu_model_built(model));
    return model;
}

static CornuOptimizer *optimizer_of(const char *name)
{
    return !strcmp(name, "dense") ? cornu_sgd(0.05, 0.9)
         : !strcmp(name, "ema")   ? cornu_adam(0.02, .use_ema = true, .ema_momentum = 0.8,
                                               .loss_scale_factor = 8)
         : !strcmp(name, "accumulation") ? cornu_nadam(0.02, .gradient_accumulation_steps = 2)
         : cornu_sgd(0.02);
}

/* ---- Training ---- */

static void check_history(Golden *golden, const char *name, const char *what,
                          const CornuHistory *history)
{
    const CornuArray want = golden_array(golden, name, "loss");
    float            got[EPOCHS];
    for (int e = 0; e < EPOCHS; e++) got[e] = (float)cornu_history_get(history, "loss", e);
    expect_near(what, got, want, 1e-5);
}

static void train(Golden *golden, int number, CornuDevice *device)
{
    const char     *name = networks[number].name;
    CornuModel     *model = network(number);
    const CornuArray x = golden_array(golden, name, "x"), y = golden_array(golden, name, "y");
    char  what[96], tensor[24];
    snprintf(what, sizeof what, "%s, %s with %d shards", name, cornu_device_name(device),
             cornu_device_shards(device));
    expect_ok(cornu_compile(model, .optimizer = optimizer_of(name), .device = device,
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        snprintf(tensor, sizeof tensor, "start_%d", i);
        expect_ok(cornu_weight_write(cornu_model_weight(model, i),
                                     golden_array(golden, name, tensor)));
    }
    CornuHistory *history = cornu_fit(model, .x = x, .y = y, .batch_size = BATCH, .epochs = EPOCHS,
                                      .no_shuffle = true, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s: %s", what, cornu_error_message());
    check_history(golden, name, what, history);
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        float              got[256];
        char               of[160];
        snprintf(tensor, sizeof tensor, "after_%d", i);
        snprintf(of, sizeof of, "%s: %s", what, weight->path);
        assert_true(cornu_type_count(weight->type) <= 256);
        expect_ok(cornu_weight_read(weight, cornu_array_from(got, weight->type)));
        expect_near(of, got, golden_array(golden, name, tensor), 5e-5);
    }
    double evaluated;
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = BATCH, .verbose = CORNU_SILENT,
                             .results = &evaluated));
    const float value = (float)evaluated;
    expect_near(what, &value, golden_array(golden, name, "evaluated"), 1e-5);
    cornu_history_free(history);
    cornu_model_free(model);
}

/* Batches of 8, 8 and 4 rows: with eight shards, some have no row. */
static void training_matches_keras(void **state)
{
    (void)state;
    Golden golden = golden_open("tests/golden/optimizers/training.safetensors");
    static const struct { const char *name; int shards; } devices[] = {
        { "reference", 1 }, { "cpu", 1 }, { "cpu", 8 }, { "tpu", 1 }, { "tpu", 8 },
    };
    assert_int_equal(json_object_size(golden.cases), NETWORKS);
    for (int d = 0; d < 5; d++) {
        CornuDevice *device = cornu_device_open(devices[d].name, .shards = devices[d].shards);
        for (int i = 0; i < NETWORKS; i++) train(&golden, i, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* A frozen layer's weights are not part of the loss. */
static void frozen_weights_cost_nothing(void **state)
{
    (void)state;
    float  x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    double with[2];
    for (int frozen = 0; frozen < 2; frozen++) {
        CornuModel *model = cornu_sequential(.input_shape = { 1 });
        cornu_model_add(model, cornu_dense(1, .kernel_initializer = CORNU_ZEROS,
                                           .bias_initializer = CORNU_ONES, .frozen = frozen,
                                           .bias_regularizer = cornu_l2(0.5)));
        cornu_model_add(model, cornu_dense(1, .kernel_initializer = CORNU_ONES));
        expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR));
        expect_ok(cornu_test_on_batch(model, cornu_array(x, CORNU_F32, 4, 1),
                                      cornu_array(y, CORNU_F32, 4, 1), &with[frozen]));
        cornu_model_free(model);
    }
    assert_float_equal(with[0], 1.5, 1e-6);
    assert_float_equal(with[1], 1.0, 1e-6);
}

/* ---- Files ---- */

static bool is_rule(const char *name)
{
    const size_t length = strlen(name);
    return (length > 12 && !strcmp(name + length - 12, "_regularizer")) ||
           (length > 12 && !strcmp(name + length - 12, "_initializer")) ||
           (length > 11 && !strcmp(name + length - 11, "_constraint"));
}

/* A number may be an integer in one and a real in the other; Keras has f32. */
static void expect_equal_rules(const char *what, const json_t *got, const json_t *want)
{
    const char *name;
    json_t     *value;
    if (json_is_number(want) && json_is_number(got)) {
        if (!(fabs(json_number_value(got) - json_number_value(want)) <= 1e-7)) fail_msg("%s", what);
    } else if (json_is_object(want) && json_is_object(got)) {
        assert_int_equal(json_object_size(got), json_object_size(want));
        json_object_foreach((json_t *)want, name, value)
            expect_equal_rules(what, json_object_get(got, name), value);
    } else if (!json_equal(got, want)) {
        fail_msg("%s", what);
    }
}

/* Returns how many there were. */
static int compare_rules(const json_t *got, const json_t *want)
{
    const char *name;
    json_t     *value;
    int         count = 0;
    got = json_object_get(got, "config"), want = json_object_get(want, "config");
    if (json_object_get(want, "layer"))
        count += compare_rules(json_object_get(got, "layer"), json_object_get(want, "layer"));
    json_object_foreach((json_t *)want, name, value) {
        if (!is_rule(name)) continue;
        expect_equal_rules(name, json_object_get(got, name), value);
        count++;
    }
    return count;
}

static void architectures_say_what_keras_says(void **state)
{
    (void)state;
    Golden golden = golden_open("tests/golden/optimizers/training.safetensors");
    int    count = 0;
    for (int i = 0; i < NETWORKS; i++) {
        CornuModel   *model = network(i);
        json_t       *config = cornu__model_config(model);
        const json_t *got = json_object_get(json_object_get(config, "config"), "layers");
        const json_t *want = json_object_get(json_object_get(golden.cases, networks[i].name),
                                             "config");
        assert_int_equal(json_array_size(got), json_array_size(want) + 1);   /* InputLayer */
        for (size_t k = 0; k < json_array_size(want); k++)
            count += compare_rules(json_array_get(got, k + 1), json_array_get(want, k));
        CornuModel *again = cornu__model_from_config(config, NULL);
        if (!again) fail_msg("%s", cornu_error_message());
        json_t *second = cornu__model_config(again);
        assert_true(json_equal(config, second));
        json_decref(config);
        json_decref(second);
        cornu_model_free(model);
        cornu_model_free(again);
    }
    assert_int_equal(count, 3 * (7 + 6) + (7 + 8 + 6) + (4 + 10 + 10 + 7 + 10));
    golden_close(&golden);
}

static void read_architecture(const char *rule, CornuStatus status, const char *part)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{"
             "\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3]}}, {"
             "\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 2, %s}}]}}",
             rule);
    json_t     *architecture = json_loads(text, 0, NULL);
    CornuModel *model = cornu__model_from_config(architecture, NULL);
    json_decref(architecture);
    if (status) assert_null(model);
    if (status) expect_error(cornu_error_take(), status, part);
    else if (!model) fail_msg("%s", cornu_error_message());
    cornu_model_free(model);
}

static void architectures_are_checked(void **state)
{
    (void)state;
    read_architecture("\"kernel_regularizer\": \"l2\"", CORNU_OK, "");
    read_architecture("\"kernel_regularizer\": {\"class_name\": \"L1\"}", CORNU_OK, "");
    read_architecture("\"kernel_constraint\": {\"class_name\": \"MaxNorm\", \"config\": "
                      "{\"max_value\": 3, \"axis\": [1, 0]}}", CORNU_OK, "");
    read_architecture("\"kernel_regularizer\": \"l3\"", CORNU_ERR_ARGUMENT,
                      "d: kernel_regularizer: regularizer \"l3\" is not known");
    read_architecture("\"kernel_regularizer\": 3", CORNU_ERR_FORMAT,
                      "kernel_regularizer is not null, a string or an object");
    read_architecture("\"kernel_regularizer\": {\"class_name\": \"L2\", \"config\": {\"l1\": 1}}",
                      CORNU_ERR_UNSUPPORTED, "the argument \"l1\" is not known");
    read_architecture("\"kernel_regularizer\": {\"class_name\": \"L2\", \"config\": {\"l2\": -1}}",
                      CORNU_ERR_ARGUMENT, "kernel_regularizer: l2: .l2 is -1");
    read_architecture("\"kernel_regularizer\": {\"class_name\": \"OrthogonalRegularizer\", "
                      "\"config\": {\"mode\": \"both\"}}", CORNU_ERR_FORMAT,
                      "mode is \"both\", expected rows or columns");
    read_architecture("\"bias_constraint\": {\"class_name\": \"UnitNorm\", \"config\": "
                      "{\"axis\": []}}", CORNU_ERR_FORMAT, "axis is not a number or a list");
    read_architecture("\"bias_constraint\": {\"class_name\": \"UnitNorm\", \"config\": "
                      "{\"axis\": 1}}", CORNU_ERR_SHAPE, "d: bias: unit_norm: .axis is 1");
}

/* ---- Refusals ---- */

static void refuses(CornuLayer *layer, CornuStatus status, const char *part)
{
    assert_null(layer);
    expect_error(cornu_error_take(), status, part);
}

static void refuses_to_build(CornuLayer *layer, const char *part)
{
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    expect_error(cornu_model_add(model, layer), CORNU_ERR_SHAPE, part);
    cornu_error_take();
    cornu_model_free(model);
}

static void constructors_refuse(void **state)
{
    (void)state;
    refuses(cornu_dense(3, .kernel_regularizer = cornu_l1(-1)), CORNU_ERR_ARGUMENT,
            "l1: .l1 is -1, expected 0 or more");
    refuses(cornu_dense(3, .kernel_regularizer = cornu_l1_l2(.l2 = INFINITY)), CORNU_ERR_ARGUMENT,
            "l1l2: .l2 is inf");
    refuses(cornu_dense(3, .kernel_regularizer = cornu_regularizer("l22")), CORNU_ERR_ARGUMENT,
            "regularizer \"l22\" is not known");
    refuses(cornu_dense(3, .kernel_constraint = cornu_constraint("max_nrm")), CORNU_ERR_ARGUMENT,
            "is \"max_norm\" meant?");
    refuses(cornu_dense(3, .kernel_constraint = cornu_max_norm(-2)), CORNU_ERR_ARGUMENT,
            "max_norm: .min_value is 0 and .max_value -2");
    refuses(cornu_dense(3, .kernel_constraint = cornu_min_max_norm(.rate = 2)),
            CORNU_ERR_ARGUMENT, "min_max_norm: .rate is 2, expected 0 to 1");
    refuses(cornu_dense(3, .kernel_constraint = cornu_unit_norm({ 9 })), CORNU_ERR_ARGUMENT,
            "unit_norm: .axis is 9");
    refuses(cornu_dense(3, .activity_regularizer = cornu_orthogonal_regularizer()),
            CORNU_ERR_UNSUPPORTED, "dense: .activity_regularizer is an orthogonal_regularizer");
    refuses(cornu_gru(3, .activity_regularizer = cornu_orthogonal_regularizer()),
            CORNU_ERR_UNSUPPORTED, "gru: .activity_regularizer");
    refuses_to_build(cornu_dense(3, .bias_regularizer = cornu_orthogonal_regularizer()),
                     "dense: bias: orthogonal_regularizer: the shape is (3,), expected 2 axes");
    refuses_to_build(cornu_dense(3, .kernel_constraint = cornu_max_norm(.axis = { 2 })),
                     "dense: kernel: max_norm: .axis is 2, which the shape (3, 3) lacks");
    const CornuRegularizer l2 = cornu_regularizer("l2");
    assert_float_equal(l2.l2, 0.01, 0);
    assert_float_equal(cornu_l2(CORNU_ZERO).l2, 0, 0);
    assert_float_equal(cornu_constraint("max_norm").max_value, 2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_matches_keras),
        cmocka_unit_test(frozen_weights_cost_nothing),
        cmocka_unit_test(architectures_say_what_keras_says),
        cmocka_unit_test(architectures_are_checked),
        cmocka_unit_test(constructors_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
