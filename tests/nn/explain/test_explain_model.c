/* cornu_explain on models: which step it takes and why, and numbers that are known by hand. */
#include <cornu/cornu.h>

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 64 -> 100 -> 10 classes: 7,510 parameters. */
static CornuModel *classifier(CornuActivation end)
{
    CornuModel *model = cornu_sequential(.name = "classifier", .input_shape = { 64 });
    cornu_model_add(model, cornu_dense(100, .activation = CORNU_RELU, .name = "hidden"));
    cornu_model_add(model, cornu_dense(10, .activation = end, .name = "classes"));
    return model;
}

static json_t *json_of(const CornuExplanation *explanation)
{
    if (!explanation) fail_msg("%s", cornu_error_message());
    char   *text = cornu_explanation_to_json(explanation);
    json_t *all = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    assert_non_null(all);
    return all;
}

/* The number, or text, at a path such as "memory_of_a_shard.weights.peak". */
static json_t *at(json_t *all, const char *path)
{
    char name[64];
    for (; all && *path; path += strlen(name), path += *path == '.') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
        all = json_is_array(all) ? json_array_get(all, (size_t)atoi(name))
                                 : json_object_get(all, name);
    }
    assert_non_null(all);
    return all;
}

static double number(json_t *all, const char *path) { return json_number_value(at(all, path)); }

static void expect_text(json_t *all, const char *path, const char *part)
{
    const char *text = json_string_value(at(all, path));
    if (!text || !strstr(text, part)) fail_msg("%s: %s is not in %s", path, part, text);
}

static void expect_lines(const CornuExplanation *explanation, const char *part)
{
    char *text = cornu_explanation_to_text(explanation, CORNU_EXPLAIN_OVERVIEW);
    assert_non_null(text);
    if (!strstr(text, part)) fail_msg("%s is not in\n%s", part, text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
    free(text);
}

/*
 * On each of 8 shards 8 rows: forward 8 x 64 x 100 and 8 x 100 x 10, the gradients of both kernels
 * as many, that of the second layer's input, too: 2 x 51,200 + 3 x 8,000 multiply-accumulates. The
 * MXU has 128 x 128: hidden leaves half of its rows empty and 28 columns, less than a quarter;
 * classes 28 rows and 118 columns.
 */
static void test_numbers_by_hand(void **state)
{
    (void)state;
    CornuModel       *model = classifier(CORNU_SOFTMAX);
    CornuExplanation *explanation = cornu_explain(model, .device_name = "tpu:v3-8",
                                                  .batch_size = 64, .no_run = true);
    json_t           *all = json_of(explanation);
    expect_text(all, "step", "training");
    expect_text(all, "loss", "sparse_categorical_crossentropy");
    expect_text(all, "reasons.0", "as the output classes ends in a softmax.");
    expect_text(all, "kind", "emulated");
    expect_text(all, "inputs.0.type", "f32 (64, 64)");
    assert_true(number(all, "parameters") == 7510.0);
    assert_true(number(all, "mxu.useful_macs") == 126400.0);
    assert_true(number(all, "memory_of_a_shard.weights.peak") >= 4.0 * 7510.0);
    assert_true(number(all, "memory_of_a_shard.weights.peak") < 4.2 * 7510.0);
    assert_true(number(all, "vmem.capacity") == 16.0 * 1048576.0);
    assert_true(json_is_null(at(all, "measured")));
    json_t *padding = at(all, "padding");
    assert_int_equal(json_array_size(padding), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t    *row = json_array_get(padding, i);
        const bool hidden = !strcmp(json_string_value(at(row, "layer")), "hidden");
        expect_text(row, "axis", hidden ? "K" : "N");
        assert_true(number(row, "extent") == (hidden ? 64.0 : 10.0));
        assert_true(number(row, "next") == 128.0);
        assert_true(number(row, "padding") == (hidden ? 0.5 : 0.921875));
    }
    const double placed = number(all, "placed.native") + number(all, "placed.decomposed");
    assert_true(placed == (double)json_array_size(at(all, "ops")));
    assert_true(number(all, "placed.refused") == 0.0);
    expect_lines(explanation, "Nothing ran: times are modelled.");
    expect_lines(explanation, "7510\nparameters once");
    json_decref(all);
    cornu_explanation_free(explanation);
    cornu_model_free(model);
}

/* A copy runs: the model has its weights, and no device. */
static void test_the_model_stays(void **state)
{
    (void)state;
    enum { COUNT = 64 * 100 };
    static float      before[COUNT], after[COUNT];
    CornuModel       *model = classifier(CORNU_SIGMOID);
    CornuWeight      *kernel = cornu_model_find_weight(model, "hidden/kernel");
    assert_int_equal(cornu_weight_read(kernel, cornu_array(before, CORNU_F32, 64, 100)), CORNU_OK);
    CornuExplanation *explanation = cornu_explain(model, .batch_size = 16, .steps = 2);
    json_t           *all = json_of(explanation);
    assert_false(cornu_model_compiled(model));
    assert_int_equal(cornu_weight_read(kernel, cornu_array(after, CORNU_F32, 64, 100)), CORNU_OK);
    assert_memory_equal(before, after, sizeof before);
    expect_text(all, "loss", "binary_crossentropy");
    assert_true(number(all, "measured.runs") == 2.0);
    assert_true(number(all, "measured.step_s") > 0.0);
    assert_true(json_is_null(at(all, "mxu")) && json_is_null(at(all, "vmem")));
    assert_int_equal(json_array_size(at(all, "padding")), 0);
    expect_lines(explanation, "Measured here: ");
    json_decref(all);
    cornu_explanation_free(explanation);
    cornu_model_free(model);
}

static void expect_step(const CornuExplainConfig *config, const char *step, const char *loss,
                        const char *reason)
{
    CornuExplanation *explanation = cornu_explain_from(config);
    json_t           *all = json_of(explanation);
    expect_text(all, "step", step);
    assert_string_equal(json_string_value(at(all, "loss")), loss);
    if (reason) expect_text(all, "reasons.0", reason);
    json_decref(all);
    cornu_explanation_free(explanation);
}

static void test_which_step(void **state)
{
    (void)state;
    CornuModel        *model = classifier(CORNU_LINEAR);
    CornuExplainConfig config = { .model = model, .batch_size = 8, .no_run = true };
    expect_step(&config, "training", "mean_squared_error", "neither softmax nor sigmoid");
    config.loss = "huber";
    expect_step(&config, "training", "huber", "that was asked for");
    config.predict = true;
    expect_step(&config, "prediction", "", NULL);
    config.predict = false;
    config.loss = NULL;
    assert_int_equal(cornu_compile(model, .optimizer = cornu_sgd(), .loss = cornu_loss("mae")),
                     CORNU_OK);
    expect_step(&config, "training", "mean_absolute_error", "optimizer sgd");
    cornu_layer_set_trainable(cornu_model_layer(model, 0), false);
    cornu_layer_set_trainable(cornu_model_layer(model, 1), false);
    expect_step(&config, "prediction", "", "no parameter is trainable");
    cornu_model_free(model);
}

/* Tokens of an open number of steps, of a table of 5 rows, and numbers; three outputs. */
static void test_several_inputs_and_outputs(void **state)
{
    (void)state;
    CornuSymbol *words = cornu_input(.shape = { CORNU_NONE }, .dtype = CORNU_I32, .name = "words");
    CornuSymbol *sizes = cornu_input(.shape = { 3 }, .name = "sizes");
    CornuSymbol *mean = cornu_call(cornu_global_average_pooling1d(),
                                   cornu_call(cornu_embedding(5, 6), words));
    CornuSymbol *both = cornu_call(cornu_concatenate(), mean, sizes);
    CornuModel  *model = cornu_model(
        .inputs = { words, sizes },
        .outputs = { cornu_call(cornu_dense(4, .activation = CORNU_SOFTMAX, .name = "kind"), both),
                     cornu_call(cornu_dense(1, .name = "price"), both),
                     cornu_call(cornu_dense(1, .activation = CORNU_SIGMOID, .name = "good"),
                                both) });
    assert_non_null(model);
    CornuExplanation *explanation = cornu_explain(model, .device_name = "tpu:v2-8", .steps = 1);
    json_t           *all = json_of(explanation);
    assert_string_equal(json_string_value(at(all, "loss")), "sparse_categorical_crossentropy, "
                        "mean_squared_error, binary_crossentropy");
    assert_true(number(all, "batch_size") == 32.0);
    expect_text(all, "inputs.0.name", "words");
    expect_text(all, "inputs.0.type", "i32 (32, 128)");
    expect_text(all, "inputs.1.type", "f32 (32, 3)");
    expect_text(all, "reasons.0", "leaves extents of its inputs open; here they are i32 (32, 128)");
    assert_true(number(all, "measured.step_s") > 0.0);
    json_decref(all);
    cornu_explanation_free(explanation);
    explanation = cornu_explain(model, .extent = 7, .no_run = true);
    all = json_of(explanation);
    expect_text(all, "inputs.0.type", "i32 (32, 7)");
    json_decref(all);
    cornu_explanation_free(explanation);
    cornu_model_free(model);
}

/* A graph with a state (2, batch, …) runs once, on one shard. */
static void test_a_function(void **state)
{
    (void)state;
    CornuModel *model = cornu_model_load("tests/golden/onnx_rows/function_state.onnx");
    assert_non_null(model);
    CornuExplanation *explanation = cornu_explain(model, .device_name = "tpu:v3-8", .steps = 1);
    json_t           *all = json_of(explanation);
    expect_text(all, "step", "function");
    assert_true(number(all, "shards") == 1.0);
    assert_true(number(all, "measured.step_s") > 0.0);
    expect_lines(explanation, "It runs on 1 shard, not 8: ");
    json_decref(all);
    cornu_explanation_free(explanation);
    cornu_model_free(model);
}

static void expect_failure(const CornuExplainConfig *config, CornuStatus status, const char *part)
{
    assert_null(cornu_explain_from(config));
    assert_int_equal(cornu_error_take(), status);
    if (!strstr(cornu_error_message(), part))
        fail_msg("%s is not in %s", part, cornu_error_message());
}

static void test_a_loss_for_what_is_not_trained(void **state)
{
    (void)state;
    CornuModel        *model = cornu_model_load("tests/golden/onnx_rows/function_state.onnx");
    CornuExplainConfig config = { .model = model, .loss = "mse" };
    expect_failure(&config, CORNU_ERR_UNSUPPORTED, "expected a model of batches");
    cornu_model_free(model);
    config.model = model = classifier(CORNU_SOFTMAX);
    for (int i = 0; i < 2; i++) cornu_layer_set_trainable(cornu_model_layer(model, i), false);
    expect_failure(&config, CORNU_ERR_UNSUPPORTED, "no parameter of classifier is trainable");
    cornu_model_free(model);
}

static void test_failures(void **state)
{
    (void)state;
    CornuModel        *model = classifier(CORNU_SOFTMAX), *unbuilt = cornu_sequential();
    CornuExplainConfig config = { .model = NULL };
    expect_failure(&config, CORNU_ERR_ARGUMENT, "model");
    cornu_model_add(unbuilt, cornu_dense(3));
    config.model = unbuilt;
    expect_failure(&config, CORNU_ERR_ARGUMENT, "is not built; give its input shape");
    config.model = model;
    config.device_name = "tpu:v3-9";
    expect_failure(&config, CORNU_ERR_DEVICE, "expected \"v3-8\"");
    config.device_name = "tpu:v3-8";
    config.batch_size = 4;
    expect_failure(&config, CORNU_ERR_SHAPE, "a batch of 4 rows for 8 shards");
    config.batch_size = -1;
    expect_failure(&config, CORNU_ERR_ARGUMENT, ".batch_size is negative");
    config.batch_size = 8;
    config.loss = "mean_squared_eror";
    expect_failure(&config, CORNU_ERR_ARGUMENT, "mean_squared_error");
    config.loss = NULL;
    CornuExplanation *explanation = cornu_explain_from(&config);
    assert_non_null(explanation);
    assert_int_equal(cornu_explanation_print(explanation, (CornuExplainPart)7, stdout),
                     CORNU_ERR_ARGUMENT);
    cornu_explanation_free(explanation);
    assert_null(cornu_explanation_to_json(NULL));
    cornu_error_take();
    assert_null(cornu_explanation_executable(NULL));
    cornu_explanation_free(NULL);
    cornu_model_free(model);
    cornu_model_free(unbuilt);
}

/* Words of a table of 50, and lengths of 12 or more: a window of 9 in one of 4. */
static void test_types(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.name = "words", .input_shape = { CORNU_NONE });
    cornu_model_add(model, cornu_embedding(50, 6));
    cornu_model_add(model, cornu_conv1d(8, 9));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    CornuModelTypes types;
    assert_int_equal(cornu_model_types(model, 5, 20, &types), CORNU_OK);
    assert_int_equal(types.input_count, 1);
    assert_int_equal(types.output_count, 1);
    assert_int_equal(types.rows_of[0], 50);
    assert_int_equal(types.made_by[0], CORNU_OP_SOFTMAX);
    assert_true(cornu_shape_equal(types.inputs[0].shape, cornu_shape(5, 20)));
    assert_true(cornu_type_equal(types.outputs[0], cornu_type(CORNU_F32, 5, 12, 3)));
    assert_int_equal(cornu_model_types(model, 5, 0, &types), CORNU_OK);
    assert_true(cornu_shape_equal(types.inputs[0].shape, cornu_shape(5, 128)));
    assert_int_equal(cornu_model_types(model, 5, 4, &types), CORNU_ERR_SHAPE);
    assert_int_equal(cornu_model_types(model, 0, 4, &types), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_model_types(model, 5, 4, NULL), CORNU_ERR_ARGUMENT);
    cornu_model_free(model);
    /* States fix the rows of a batch, whatever is asked for. */
    model = cornu_sequential(.name = "states", .input_shape = { 3, 2 }, .batch_size = 2);
    cornu_model_add(model, cornu_lstm(4, .stateful = true));
    assert_int_equal(cornu_model_types(model, 5, 0, &types), CORNU_OK);
    assert_true(cornu_type_equal(types.outputs[0], cornu_type(CORNU_F32, 2, 4)));
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_by_hand), cmocka_unit_test(test_the_model_stays),
        cmocka_unit_test(test_which_step), cmocka_unit_test(test_several_inputs_and_outputs),
        cmocka_unit_test(test_a_function), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_a_loss_for_what_is_not_trained),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
