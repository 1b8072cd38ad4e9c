/* cornu_explain with .pipeline: the stages that a training would have, by hand and as it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"

enum { BATCH = 16, MICROBATCHES = 4, FEATURES = 32, CLASSES = 10 };

/* 32 x 8 and 8 x 4 weights, and biases. */
static CornuModel *two_layers(void)
{
    CornuModel *model = cornu_sequential(.name = "two", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(8, .name = "first"));
    cornu_model_add(model, cornu_dense(4, .name = "last"));
    return model;
}

static void expect_in(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static char *text_of(const CornuExplanation *explanation)
{
    if (!explanation) fail_msg("%s", cornu_error_message());
    char *text = cornu_explanation_to_text(explanation, CORNU_EXPLAIN_PIPELINE);
    if (!text) fail_msg("%s", cornu_error_message());
    return text;
}

/* Kilobytes and megabytes by hand: a microbatch has 4 rows, of which 8 numbers go on, and as many
 * come back; Adam has two slots. */
static void bytes_by_hand(void **state)
{
    (void)state;
    const CornuPipelineParallelConfig stages = { .stages = 2, .microbatches = MICROBATCHES,
                                                 .schedule = CORNU_1F1B };
    CornuModel       *model = two_layers();
    CornuExplanation *explanation = cornu_explain(model, .batch_size = BATCH, .pipeline = &stages);
    char             *text = text_of(explanation), *json = cornu_explanation_to_json(explanation);
    expect_in(text, "two: a training step of 16 samples, in float32.\n\n"
                    "pipeline: 2 stages, 4 microbatches of 4 rows, 1f1b: 10 slots\n");
    expect_in(text, "bubble: 20.0 % of the slots, (p - 1) / (m + p - 1) is 20.0 %\n");
    assert_null(strstr(text, "modelled on"));
    expect_in(json, "\"weight_bytes\": 1056");            /* 4 (32 8 + 8) */
    expect_in(json, "\"slot_bytes\": 2112");
    expect_in(json, "\"gradient_bytes\": 1056");
    expect_in(json, "\"sent_bytes\": 128");               /* 4 rows of 8 f32 */
    expect_in(json, "\"returned_bytes\": 128");
    expect_in(json, "\"weight_bytes\": 144");             /* 4 (8 4 + 4) */
    expect_in(json, "\"stash_bytes\": 192");              /* what it was sent, 4 rows of 4 errors */
    free(json);
    free(text);
    cornu_explanation_free(explanation);
    cornu_model_free(model);
}

/* Rows and columns of a mesh: of a shard half of the rows, and of the kernel that is cut. */
static void bytes_of_a_shard(void **state)
{
    (void)state;
    const CornuPipelineParallelConfig stages = { .stages = 2, .microbatches = MICROBATCHES };
    const CornuLayoutRow rows[] = { { "first/kernel", { NULL, "model" } }, { 0 } };
    CornuModel       *model = two_layers();
    CornuExplanation *explanation = cornu_explain(
        model, .batch_size = BATCH, .pipeline = &stages, .layout_map = rows,
        .mesh = cornu_device_mesh(.shape = { 2, 2 }));
    char *text = text_of(explanation), *json = cornu_explanation_to_json(explanation);
    expect_in(text, ", on the mesh (batch=2, model=2).\n\n"
                    "pipeline: 2 stages of 4 shards, 4 microbatches of 4 rows, gpipe: 10 slots\n");
    expect_in(json, "\"weight_bytes\": 544");             /* 4 (32 4 + 8) */
    expect_in(json, "\"slot_bytes\": 1056");              /* 2 of the kernel, of the bias a half */
    expect_in(json, "\"gradient_bytes\": 544");
    free(json);
    free(text);
    cornu_explanation_free(explanation);
    cornu_model_free(model);
}

/* With one microbatch the stages take turns: they idle half of the time. One stage never idles. */
static void time_by_hand(void **state)
{
    (void)state;
    for (int count = 1; count <= 2; count++) {
        const CornuPipelineParallelConfig stages = { .stages = count, .microbatches = 1 };
        CornuModel       *model = two_layers();
        CornuExplanation *explanation = cornu_explain(
            model, .batch_size = BATCH, .pipeline = &stages, .device_name = "tpu:v3-8");
        char *text = text_of(explanation);
        expect_in(text, count == 1 ? "idle 0.0 % of it" : "idle 50.0 % of it");
        expect_in(text, "modelled on a TPU v3-8: the stages take 0.0");
        free(text);
        cornu_explanation_free(explanation);
        cornu_model_free(model);
    }
}

/* What cornu_pipeline_print says of a training on the same device. */
static char *trained(CornuModel *model, const CornuLayoutRow *rows, CornuMesh mesh)
{
    static uint8_t images[BATCH * 28 * 28];
    static int32_t classes[BATCH];
    char          *text = NULL;
    size_t         size;
    CornuStrategy *strategy = cornu_pipeline_parallel(
        .stages = 3, .microbatches = MICROBATCHES, .schedule = CORNU_1F1B, .mesh = mesh,
        .layout_map = rows, .device = "tpu:v3-8", .threads = 1);
    if (!strategy) fail_msg("%s", cornu_error_message());
    CORNU_SCOPE(strategy)
        cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                      .optimizer = cornu_adam());
    if (cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, BATCH, 28, 28),
                             .y = cornu_array(classes, CORNU_I32, BATCH)))
        fail_msg("%s", cornu_error_message());
    FILE *to = open_memstream(&text, &size);
    assert_int_equal(cornu_pipeline_print(model, to), CORNU_OK);
    fclose(to);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return text;
}

static void trainings_have_the_stages(void **state)
{
    (void)state;
    const CornuPipelineParallelConfig stages = { .stages = 3, .microbatches = MICROBATCHES,
                                                 .schedule = CORNU_1F1B };
    const CornuMesh   mesh = cornu_device_mesh(.shape = { 2, 2 });
    CornuModel       *model = cornu_mnist_cnn();
    CornuLayoutRow   *rows = cornu_default_layout(model, mesh);
    CornuExplanation *explanation = cornu_explain(
        model, .batch_size = BATCH, .pipeline = &stages, .device_name = "tpu:v3-8", .mesh = mesh,
        .layout_map = rows, .inputs = { cornu_type(CORNU_U8, BATCH, 28, 28) });
    char *text = text_of(explanation);
    cornu_explanation_free(explanation);
    char *of_training = trained(model, rows, mesh);
    assert_non_null(strstr(text, "\n\n"));
    assert_string_equal(strstr(text, "\n\n") + 2, of_training);
    free(text);
    free(of_training);
    cornu_layout_free(rows);
}

static void expect_refused(CornuExplainConfig config, CornuStatus status, const char *text)
{
    const CornuPipelineParallelConfig stages = { .stages = 2, .microbatches = MICROBATCHES };
    if (!config.pipeline) config.pipeline = &stages;
    CornuExplanation *explanation = cornu_explain_from(&config);
    assert_null(explanation);
    assert_int_equal(cornu_error_take(), status);
    expect_in(cornu_error_message(), text);
}

static void refused(void **state)
{
    (void)state;
    const CornuPipelineParallelConfig many = { .stages = 5, .microbatches = 2 };
    const CornuPipelineParallelConfig none = { .stages = 0, .microbatches = 2 };
    CornuModel  *model = two_layers();
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    expect_refused((CornuExplainConfig){ .model = model, .pipeline = &many }, CORNU_ERR_ARGUMENT,
                   ".stages is 5, expected at most 2");
    expect_refused((CornuExplainConfig){ .model = model, .pipeline = &none }, CORNU_ERR_ARGUMENT,
                   "cornu_explain: .stages is 0, expected 1 to 32");
    expect_refused((CornuExplainConfig){ .model = model, .device = device }, CORNU_ERR_ARGUMENT,
                   ".pipeline and .device");
    expect_refused((CornuExplainConfig){ .model = model, .predict = true }, CORNU_ERR_UNSUPPORTED,
                   "a pipeline is of a training step");
    expect_refused((CornuExplainConfig){ .model = model, .batch_size = 2 }, CORNU_ERR_SHAPE,
                   "a batch of 2 rows for 4 microbatches");
    const CornuPipelineParallelConfig stages = { .stages = 2, .microbatches = 2 };
    CornuExplanation *explanation = cornu_explain(model, .pipeline = &stages);
    assert_null(cornu_explanation_to_text(explanation, CORNU_EXPLAIN_OVERVIEW));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    cornu_explanation_free(explanation);
    explanation = cornu_explain(model, .no_run = true);
    assert_null(cornu_explanation_to_text(explanation, CORNU_EXPLAIN_PIPELINE));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    cornu_explanation_free(explanation);
    cornu_device_close(device);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_by_hand), cmocka_unit_test(bytes_of_a_shard),
        cmocka_unit_test(time_by_hand), cmocka_unit_test(trainings_have_the_stages),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
