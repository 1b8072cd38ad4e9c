/* Models as .tflite files: every layer that they can have is written, the files have the expected
 * operators, LiteRT's interpreter computes the same numbers, and so do the models that are read
 * from them. The interpreter needs ai-edge-litert in the Python that CORNU_PYTHON names (default
 * python3), or that is skipped. */
#include "../../../models/models.h"
#include "../../../nn/lite/file/file.h"
#include "../../../nn/lite/rules/from_model.h"
#include "../../../nn/lite/onnx/to_onnx.h"
#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../golden.h"
#include "../saving/onnx/onnx_files.h"
#include "lite_models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../skip.h"
#include <zlib.h>

#define GOLDEN "tests/golden/lite/outputs.npz"

enum { MOST_BYTES = 1 << 20 };

static CornuDevice *device;

static int open_device(void **state)
{
    (void)state;
    device = cornu_device_open("cpu");
    return !device;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

static void write_cases(void)
{
    for (int i = 0; i < lite_case_count; i++)
        onnx_write_as(device, lite_cases[i].name, ".tflite", lite_cases[i].make(), false, 0, 0);
}

/* ---- LiteRT's interpreter ---- */

/* With CORNU_WRITE_GOLDEN its outputs are kept for the next test. */
static void test_models_run_elsewhere(void **state)
{
    (void)state;
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[800];
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"ai_edge_litert\"))' 2>/dev/null", python);
    if (system(command) != 0) SKIP_FOR("LiteRT: CORNU_PYTHON=an interpreter with ai_edge_litert");
    write_cases();
    snprintf(command, sizeof command, "%s tests/nn/lite/check_lite.py %s %d %s >/dev/null",
             python, folder, lite_case_count, getenv("CORNU_WRITE_GOLDEN") ? GOLDEN : "");
    assert_int_equal(system(command), 0);
}

/* The files are byte for byte those that the interpreter ran, and outputs are close to its: even
 * without it no option or constant can change unnoticed. */
static void test_files_are_those_that_ran(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    CornuNpz            *golden = cornu_npz_open(GOLDEN);
    if (!golden) fail_msg("%s", cornu_error_message());
    write_cases();
    for (int i = 0; i < lite_case_count; i++) {
        char         name[100];
        const char  *model = lite_cases[i].name;
        const size_t size = files_read(onnx_file(model, ".tflite"), bytes, sizeof bytes);
        snprintf(name, sizeof name, "%s/file", model);
        const CornuNamedArray *file = cornu_npz_find(golden, name);
        if (!file) fail_msg("%s is not in " GOLDEN, name);
        if (cornu_array_get(file->array, 0) != (double)size ||
            cornu_array_get(file->array, 1) != (double)crc32(crc32(0, NULL, 0), bytes, (uInt)size))
            fail_msg("%s.tflite is not the file that LiteRT ran. If it is meant to be another: "
                     "CORNU_WRITE_GOLDEN=1 %s with ai-edge-litert", model, "test_lite");
        CornuNpz *own = cornu_npz_open(onnx_file(model, ".npz"));
        assert_non_null(own);
        for (int k = 0;; k++) {
            snprintf(name, sizeof name, "%s/p%d", model, k);
            const CornuNamedArray *want = cornu_npz_find(golden, name);
            const CornuNamedArray *got = cornu_npz_find(own, strchr(name, '/') + 1);
            assert_int_equal(!want, !got);
            assert_true(want || k > 0);
            if (!want) break;
            assert_true(cornu_type_equal(want->array.type, got->array.type));
            expect_near(name, got->array.data, want->array, 1e-5);
        }
        cornu_npz_close(own);
    }
    cornu_npz_close(golden);
}

/* ---- Operators ---- */

static CornuLiteGraph *graph_of(const char *path)
{
    CornuLiteGraph *graph;
    if (cornu__lite_open(path, &graph)) fail_msg("%s", cornu_error_message());
    return graph;
}

static void test_operators(void **state)
{
    (void)state;
    write_cases();
    for (int i = 0; i < lite_case_count; i++) {
        CornuLiteGraph *graph = graph_of(onnx_file(lite_cases[i].name, ".tflite"));
        const char     *text = lite_cases[i].operators;
        char            what[40];
        int             want, used;
        for (; sscanf(text, "%39s %d%n", what, &want, &used) == 2; text += used) {
            int got = 0;
            for (int k = 0; k < graph->operator_count; k++)
                got += !strcmp(cornu__lite_code_name(graph->operators[k].code), what);
            if (got != want) fail_msg("%s: %s: %d, not %d", lite_cases[i].name, what, got, want);
        }
        assert_string_equal(text, "");
        cornu__lite_graph_free(graph);
    }
}

/* ---- Reading ---- */

/* A graph that was read is written with the same bytes. */
static void test_graphs_are_written_again(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    write_cases();
    for (int i = 0; i < lite_case_count; i++) {
        const char     *path = onnx_file(lite_cases[i].name, ".tflite");
        const size_t    size = files_read(path, bytes, sizeof bytes);
        CornuLiteGraph *graph = graph_of(path);
        CornuMessage    again = { 0 };
        expect_ok(cornu__lite_write(graph, &again));
        assert_int_equal(again.size, size);
        assert_memory_equal(again.bytes, bytes, size);
        free(again.bytes);
        cornu__lite_graph_free(graph);
    }
}

/* The model of a file computes, for x0, x1, … of an archive, its p0, p1, … */
static void expect_predictions(const char *path, const char *arrays)
{
    CornuModel *model = cornu_model_load(path);
    CornuNpz   *npz = cornu_npz_open(arrays);
    CornuArray  in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    if (!model || !npz) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    for (int i = 0; i < cornu_model_input_count(model); i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        in[i] = cornu_npz_find(npz, name)->array;
    }
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        out[i] = cornu_npz_find(npz, name)->array;
        out[i].data = malloc(cornu_type_bytes(out[i].type));
    }
    if (cornu_predict_on_batch_many(model, in, out))
        fail_msg("%s: %s", path, cornu_error_message());
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        expect_near(path, out[i].data, cornu_npz_find(npz, name)->array, 1e-5);
        free(out[i].data);
    }
    cornu_npz_close(npz);
    cornu_model_free(model);
}

static void test_models_are_read(void **state)
{
    (void)state;
    write_cases();
    for (int i = 0; i < lite_case_count; i++)
        expect_predictions(onnx_file(lite_cases[i].name, ".tflite"),
                           onnx_file(lite_cases[i].name, ".npz"));
}

/* Files of TensorFlow's converter. */
static void test_files_of_others(void **state)
{
    (void)state;
    static const char *const names[] = { "images", "branches", "recurrence", "halves" };
    char                     path[2][100];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path[0], sizeof path[0], "tests/golden/lite/%s.tflite", names[i]);
        snprintf(path[1], sizeof path[1], "tests/golden/lite/%s.npz", names[i]);
        expect_predictions(path[0], path[1]);
    }
}

/* ---- Quantized graphs ---- */

/* An 8-bit graph as an .onnx file: that which the ONNX runtime ran, if its checks can run here. */
static void test_quantized_graphs_as_onnx(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    const char          *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    const char          *path = onnx_file("bytes", ".onnx");
    char                 command[800];
    CornuLiteGraph      *graph = graph_of("tests/golden/lite/bytes.tflite");
    expect_ok(cornu__lite_export_onnx(graph, path));
    cornu__lite_graph_free(graph);
    const size_t size = files_read(path, bytes, sizeof bytes);
    assert_int_equal(size, 8314);
    assert_int_equal(crc32(crc32(0, NULL, 0), bytes, (uInt)size), 0xb290ad0a);
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"onnxruntime\"))' 2>/dev/null", python);
    if (system(command) != 0)
        SKIP_FOR("onnxruntime: CORNU_PYTHON=an interpreter with onnx and onnxruntime");
    snprintf(command, sizeof command, "%s tests/nn/lite/check_qdq.py %s "
             "tests/golden/lite/bytes.npz >/dev/null", python, path);
    assert_int_equal(system(command), 0);
}

/* ---- What is refused ---- */

static void expect_refused(CornuModel *model, const char *part)
{
    if (!model) fail_msg("%s", cornu_error_message());
    expect_error(cornu_model_export(model, onnx_file("refused", ".tflite")),
                 CORNU_ERR_UNSUPPORTED, part);
    expect_error(cornu_model_save(model, onnx_file("refused", ".tflite")), CORNU_ERR_UNSUPPORTED,
                 part);
    cornu_model_free(model);
}

/* A model of one layer on inputs of this shape. */
static CornuModel *single(CornuLayer *layer, int64_t a, int64_t b, int64_t c)
{
    CornuSymbol *x = cornu_input(.shape = { a, b, c });
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(layer, x) });
}

static CornuTensor *add_noise(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer;
    return cornu_op_add(x, cornu_op_random_uniform(cornu_tensor_shape(x), call->seed,
                                                   call->iteration, call->position, 0));
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const CornuLayerClass noise = { .class_name = "Noise", .size = sizeof(CornuLayer),
                                           .call = add_noise };
    expect_refused(single(cornu_layer_create(&noise, "n", NULL), 4, 4, 0),
                   "n: the op random_uniform is not available in .tflite files");
    expect_refused(single(cornu_dense(2, .name = "d"), CORNU_NONE, 3, 0),
                   "unknown extent besides the batch");
    expect_refused(single(cornu_conv2d_transpose(2, 3, .dilation_rate = { 2 }, .name = "t"), 4, 4,
                          2), "t: the op conv2d_grad_input is not available in .tflite files, "
                   "whose transposed convolution has no dilation");
    CornuModel *model = single(cornu_dense(2), 4, 0, 0);
    expect_error(cornu_model_export(model, onnx_file("refused", ".tflite"), .opset_version = 18),
                 CORNU_ERR_ARGUMENT, ".opset_version is 18");
    expect_ok(cornu_model_save(model, onnx_file("refused", ".tflite")));
    expect_unloaded(cornu_model_load_compiled(onnx_file("refused", ".tflite"), device),
                    CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with");
    cornu_model_free(model);
}

/* ---- Damage: every byte in turn, and every length ---- */

static void expect_message(CornuStatus status, CornuLiteGraph *graph)
{
    assert_int_equal(status == CORNU_OK, graph != NULL);
    if (status) assert_true(*cornu_error_message());
    assert_false(cornu_error_pending());
    cornu__lite_graph_free(graph);
}

static void test_damaged_files(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    CornuLiteGraph      *graph;
    CornuModel          *model = single(cornu_conv2d(2, 2), 4, 4, 1);
    expect_ok(cornu_model_save(model, onnx_file("damaged", ".tflite")));
    cornu_model_free(model);
    const size_t size = files_read(onnx_file("damaged", ".tflite"), bytes, sizeof bytes);
    for (size_t i = 0; i < size; i++) {
        const unsigned char kept = bytes[i];
        for (int k = 0; k < 4; k++) {
            bytes[i] = (unsigned char)(k == 0 ? kept ^ 0x80 : k == 1 ? kept + 1 : k == 2 ? 0 : 255);
            const CornuStatus status = cornu__lite_read(bytes, size, &graph);
            expect_message(status, graph);
        }
        bytes[i] = kept;
        /* In memory of its own size, so that reading past its end is noticed. */
        unsigned char *part = malloc(i + 1);
        memcpy(part, bytes, i);
        const CornuStatus status = cornu__lite_read(part, i, &graph);
        if (i + 100 < size) assert_int_not_equal(status, CORNU_OK);   /* metadata is not read */
        expect_message(status, graph);
        free(part);
    }
    expect_error(cornu__lite_read("TFL3", 4, &graph), CORNU_ERR_FORMAT, "not a .tflite file");
    expect_unloaded(cornu_model_load("tests/golden/lite/none.tflite"), CORNU_ERR_FILE,
                    "none.tflite");
}

/* ---- Memory ---- */

/* Each allocation fails in turn: no file, no model, nothing kept. */
static void test_no_memory(void **state)
{
    (void)state;
    if (!allocations_counted())
        SKIP_FOR("onnxruntime: CORNU_PYTHON=an interpreter with onnx and onnxruntime");
    const char  *path = onnx_file("memory", ".tflite");
    CornuSymbol *x = cornu_input(.shape = { 4, 4, 1 });
    CornuSymbol *y = cornu_call(cornu_batch_normalization(), cornu_call(cornu_conv2d(2, 2), x));
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { y }), *read = NULL;
    CornuStatus  status = cornu_model_save(model, path);   /* what is made once */
    expect_ok(status);
    unlink(path);
    status = CORNU_ERR_MEMORY;
    for (int n = 0; status; n++) {
        assert_int_not_equal(access(path, F_OK), 0);
        const int64_t held = allocations_held();
        allocations_fail_after(n);
        status = cornu_model_save(model, path);
        allocations_fail_after(NEVER);
        assert_int_equal(allocations_held(), held);
    }
    cornu_model_free(model);
    cornu_model_free(cornu_model_load(path));              /* likewise */
    for (int n = 0; !read; n++) {
        const int64_t held = allocations_held();
        allocations_fail_after(n);
        read = cornu_model_load(path);
        allocations_fail_after(NEVER);
        if (read) break;
        if (cornu_error_status() != CORNU_ERR_MEMORY) fail_msg("%d: %s", n, cornu_error_message());
        assert_int_equal(allocations_held(), held);
    }
    cornu_model_free(read);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)
    const struct CMUnitTest tests[] = {
        TEST(test_models_run_elsewhere),
        TEST(test_files_are_those_that_ran),
        TEST(test_operators),
        TEST(test_graphs_are_written_again),
        TEST(test_models_are_read),
        TEST(test_files_of_others),
        TEST(test_quantized_graphs_as_onnx),
        TEST(test_what_is_refused),
        TEST(test_damaged_files),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
