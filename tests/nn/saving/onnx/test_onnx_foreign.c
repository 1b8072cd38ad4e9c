/* Files of the kinds that packages ship predict what onnxruntime does
 * (tests/golden/make_onnx_foreign.py), as they are and saved again; what small files may ask for is
 * bounded, and what is refused is named. */
#include "../../../../nn/cornu.h"
#include "../../../allocations.h"
#include "../../../datasets/files.h"
#include "../../golden.h"
#include "../../../skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN "tests/golden/onnx_foreign/"
enum { MOST = 12 };

/* Weights that are trained, and all; `stays`: why it is not written to .onnx. Where the rows of a
 * batch meet, the batch is that of the file. */
static const struct { const char *name; int trained, weights; const char *stays; } golden[] = {
    { "if_of_data", 3, 3, NULL },
    { "if_that_fits_one", 0, 0, NULL },
    { "loop_of_constants", 1, 3, "an input of unknown extents is not available in ONNX files" },
    { "zeros_of_the_batch", 0, 0, NULL },
    { "equal_by_chance", 0, 0, NULL },
    { "weights_in_constants", 5, 7, NULL },
    { "functions", 4, 4, NULL },
    { "fused", 10, 10, NULL },
    { "fused_attention", 6, 14, NULL },
    { "quantized_attention", 0, 6, NULL },
    { "signals", 1, 5, NULL },
    { "resized_to_one_pixel", 0, 29, NULL },
    { "quantize_dynamic", 3, 7, NULL },
    { "quantize_qdq", 7, 7, NULL },
    { "quantize_qoperator", 0, 7, NULL },
    { "quantize_int8", 0, 11, NULL },
    { "quantized_numbers", 2, 6, NULL },
    { "quantized_products", 0, 21, NULL },
    { "dynamic_quantized_lstm", 0, 5, NULL },
};
enum { GOLDEN_COUNT = sizeof golden / sizeof *golden };

static CornuModel *load(const char *name, const char *suffix)
{
    char path[FILES_PATH + 100];
    snprintf(path, sizeof path, "%s%s%s", *suffix ? files_path(folder, name) : GOLDEN,
             *suffix ? "" : name, *suffix ? suffix : ".onnx");
    CornuModel *model = cornu_model_load(path);
    if (!model) fail_msg("%s: %s", name, cornu_error_message());
    return model;
}

static void expect_refused(const char *name, CornuStatus status, const char *part)
{
    char path[100];
    snprintf(path, sizeof path, GOLDEN "%s.onnx", name);
    expect_unloaded(cornu_model_load(path), status, part);
}

static int collect(const CornuNpz *file, char letter, CornuArray to[MOST])
{
    int count = 0;
    for (; count < MOST; count++) {
        char name[8];
        snprintf(name, sizeof name, "%c%d", letter, count);
        const CornuNamedArray *found = cornu_npz_find(file, name);
        if (!found) break;
        to[count] = found->array;
    }
    return count;
}

/* Frees the model. */
static void expect_golden(const char *name, CornuModel *model)
{
    char       path[100];
    CornuArray x[MOST], p[MOST], got[MOST];
    snprintf(path, sizeof path, GOLDEN "%s.npz", name);
    CornuNpz *file = cornu_npz_open(path);
    if (!file) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_model_input_count(model), collect(file, 'x', x));
    const int count = collect(file, 'p', p);
    assert_int_equal(cornu_model_output_count(model), count);
    for (int i = 0; i < count; i++) {
        got[i] = (CornuArray){ cornu_type_from(CORNU_F32, p[i].type.shape), NULL };
        got[i].data = malloc(cornu_type_bytes(got[i].type));
    }
    if (cornu_predict_on_batch_many(model, x, got)) fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < count; i++) {
        expect_near(name, got[i].data, p[i], 1e-5);
        free(got[i].data);
    }
    cornu_npz_close(file);
    cornu_model_free(model);
}

static void test_golden(void **state)
{
    (void)state;
    for (int i = 0; i < GOLDEN_COUNT; i++) {
        CornuModel *model = load(golden[i].name, "");
        int         trained = 0;
        for (int k = 0; k < cornu_model_weight_count(model); k++)
            trained += !cornu_model_weight(model, k)->non_trainable;
        if (trained != golden[i].trained || cornu_model_weight_count(model) != golden[i].weights)
            fail_msg("%s: %d of %d weights are trained, expected %d of %d", golden[i].name, trained,
                     cornu_model_weight_count(model), golden[i].trained, golden[i].weights);
        expect_golden(golden[i].name, model);
    }
}

/* As .safetensors, which has the nodes, and as .onnx, of the ops that they record. */
static void test_saved_again(void **state)
{
    static const char *const suffixes[] = { ".safetensors", ".onnx" };
    (void)state;
    for (int i = 0; i < GOLDEN_COUNT; i++)
        for (int s = 0; s < 2; s++) {
            char path[100];
            CornuModel *model = load(golden[i].name, "");
            snprintf(path, sizeof path, "%s%s", golden[i].name, suffixes[s]);
            if (golden[i].stays && s == 1) {
                expect_error(cornu_model_save(model, files_path(folder, path)),
                             CORNU_ERR_UNSUPPORTED, golden[i].stays);
                cornu_model_free(model);
                continue;
            }
            if (cornu_model_save(model, files_path(folder, path)))
                fail_msg("%s: %s", path, cornu_error_message());
            cornu_model_free(model);
            expect_golden(golden[i].name, load(golden[i].name, suffixes[s]));
        }
}

/* The branch that the operands do not fit is chosen: an error, not the other branch. */
static void test_branch_that_fits_not(void **state)
{
    float       y[2], x[10];
    CornuModel *model = load("if_that_fits_one", "");
    (void)state;
    for (int i = 0; i < 10; i++) x[i] = -1e9f;
    const CornuArray in = cornu_array(x, CORNU_F32, 1, 2, 5);
    const CornuArray out = cornu_array(y, CORNU_F32, 1, 2, 1);
    expect_error(cornu_predict_on_batch(model, in, out), CORNU_ERR_VALUE, "y: the condition chose "
                 "then_branch, which does not take operands of these shapes");
    cornu_model_free(model);
}

static void test_summary(void **state)
{
    char       *text = NULL;
    size_t      size;
    FILE       *file = open_memstream(&text, &size);
    CornuModel *model = load("weights_in_constants", "");
    (void)state;
    expect_ok(cornu_summary(model, .file = file));
    fclose(file);
    assert_non_null(strstr(text, "(Conv)"));
    assert_non_null(strstr(text, "(BatchNormalization)"));
    assert_null(strstr(text, "OnnxNode"));
    free(text);
    cornu_model_free(model);
}

/* ---- What is refused ---- */

static void keep_line(void *context, CornuLogLevel level, const char *message)
{
    char *line = context;
    if (level == CORNU_LOG_WARNING) snprintf(line, 200, "%s", message);
}

static void test_without_weights(void **state)
{
    char line[200] = "";
    (void)state;
    cornu_set_log(CORNU_LOG_WARNING, keep_line, line);
    cornu_model_free(load("quantize_qoperator", ""));
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    assert_non_null(strstr(line, "no weights that can be trained"));
}

static void test_operators_by_name(void **state)
{
    (void)state;
    expect_refused("of_ml", CORNU_ERR_UNSUPPORTED,
                   "y: the operator ai.onnx.ml.Scaler is not supported");
    expect_refused("turns", CORNU_ERR_UNSUPPORTED, "a Loop of over 1024 turns");
}

/* A few hundred bytes take neither gigabytes nor minutes, and the node is named. */
static void test_budget(void **state)
{
    (void)state;
    expect_refused("loops_in_loops", CORNU_ERR_MEMORY, "y (Loop): s2 (Loop): ");
    expect_refused("loops_in_loops", CORNU_ERR_MEMORY, "the file asks for more than 524288 ops");
    expect_refused("loops_of_constants", CORNU_ERR_MEMORY, "z (Loop): s2 (Loop): ");
    expect_refused("functions_of_functions", CORNU_ERR_MEMORY,
                   "the calls of its functions make more than 262144 nodes");
    expect_refused("function_of_itself", CORNU_ERR_UNSUPPORTED,
                   "Again: functions call each other more than 16 deep");
    expect_refused("doubling", CORNU_ERR_MEMORY, "c19 (Concat): a constant of 134217728 bytes");
}

/* The limit of memory is that of what a file asks for, and the message says so. */
static void test_limit(void **state)
{
    (void)state;
    cornu_set_memory_limit(20 << 20);
    cornu_model_free(load("large_constant", ""));
    cornu_set_memory_limit(10 << 20);
    expect_refused("large_constant", CORNU_ERR_MEMORY,
                   "w (ConstantOfShape): it takes 16777232 bytes in addition to ");
    cornu_set_memory_limit(0);
}

/* Out of memory at points of loading calls, branches and quantized weights. */
static void test_no_memory(void **state)
{
    static const char *const names[] = { "functions", "if_of_data", "quantize_qdq" };
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char        path[100];
        CornuModel *model = load(names[i], "");   /* what is made once */
        snprintf(path, sizeof path, GOLDEN "%s.onnx", names[i]);
        cornu_model_free(model);
        model = NULL;
        for (int64_t n = 0; !model; n += 1 + n / 40) {
            const int64_t held = allocations_held();
            allocations_fail_after(n);
            model = cornu_model_load(path);
            allocations_fail_after(NEVER);
            if (model) break;
            assert_int_equal(cornu_error_status(), CORNU_ERR_MEMORY);
            assert_int_equal(allocations_held(), held);
        }
        cornu_model_free(model);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        TEST(test_saved_again),
        cmocka_unit_test(test_branch_that_fits_not),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_without_weights),
        cmocka_unit_test(test_operators_by_name),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
