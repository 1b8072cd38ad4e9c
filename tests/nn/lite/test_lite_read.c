/* .tflite files of others: their operators, variables, branches and quantized numbers, by what
 * LiteRT's interpreter computes from them (tests/golden/make_lite_read.py); and imported models,
 * written as .tflite files again.
 *
 * tests/run: quick
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../../../nn/cornu.h"
#include "../../../device/files/file_internal.h"
#include "../../../nn/lite/file/file.h"
#include "../saving/onnx/onnx_files.h"
#include "../../quick.h"
#include "../../skip.h"

static CornuDevice *device;

static int open_device(void **state)
{
    (void)state;
    return (device = cornu_device_open("cpu")) ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

typedef struct { char text[100]; } Path;
static const char *golden(Path *path, const char *name, const char *suffix)
{
    snprintf(path->text, sizeof path->text, "tests/golden/lite_read/%s%s", name, suffix);
    return path->text;
}

/* Row `run` of an array whose axis 0 are runs. */
static CornuArray run_of(CornuArray all, int64_t run)
{
    CornuArray one = all;
    one.type.shape.rank--;
    memmove(one.type.shape.extent, one.type.shape.extent + 1,
            (size_t)one.type.shape.rank * sizeof *one.type.shape.extent);
    one.data = (char *)all.data + (size_t)run * cornu_type_bytes(one.type);
    return one;
}

/* With an axis of runs, which archives of one run lack. */
static CornuArray find(CornuNpz *npz, bool single, char letter, int i)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", letter, i);
    const CornuNamedArray *found = cornu_npz_find(npz, name);
    if (!found) fail_msg("no array %s", name);
    CornuArray  array = found->array;
    CornuShape *shape = &array.type.shape;
    if (!single) return array;
    memmove(shape->extent + 1, shape->extent, (size_t)shape->rank++ * sizeof *shape->extent);
    shape->extent[0] = 1;
    return array;
}

/* One run after another: p0, p1, … within `tolerance`. */
static void expect_runs(CornuModel *model, CornuNpz *npz, bool single, const char *name,
                        double tolerance)
{
    const int64_t runs = find(npz, single, 'x', 0).type.shape.extent[0];
    CornuArray    in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    for (int64_t r = 0; r < runs; r++) {
        for (int i = 0; i < cornu_model_input_count(model); i++)
            in[i] = run_of(find(npz, single, 'x', i), r);
        for (int i = 0; i < cornu_model_output_count(model); i++) {
            out[i] = run_of(find(npz, single, 'p', i), r);
            out[i].type.dtype = CORNU_F32;
            out[i].data = malloc(cornu_type_bytes(out[i].type));
        }
        if (cornu_predict_on_batch_many(model, in, out))
            fail_msg("%s: %s", name, cornu_error_message());
        for (int i = 0; i < cornu_model_output_count(model); i++) {
            const CornuArray want = run_of(find(npz, single, 'p', i), r);
            for (int64_t k = 0; k < cornu_type_count(want.type); k++) {
                const double got = (double)((float *)out[i].data)[k], x = cornu_array_get(want, k);
                if (!(got - x <= tolerance && x - got <= tolerance))
                    fail_msg("%s: output %d of run %d, element %d: %g, not %g", name, i, (int)r,
                             (int)k, got, x);
            }
            free(out[i].data);
        }
    }
}

static void expect_file(const char *name, double tolerance)
{
    Path        path;
    CornuModel *model = cornu_model_load(golden(&path, name, ".tflite"));
    CornuNpz   *npz = cornu_npz_open(golden(&path, name, ".npz"));
    if (!model || !npz) fail_msg("%s: %s", name, cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    expect_runs(model, npz, false, name, tolerance);
    cornu_model_free(model);
    cornu_npz_close(npz);
}

static void test_operators(void **state)
{
    (void)state;
    static const char *const names[] = { "pads", "blocks", "splits", "slices", "lookups",
        "arithmetic", "windows", "spectrum", "volumes", "extents", "atrous" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_file(names[i], 1e-5);
}

static void test_sparse_constants_and_custom_operators(void **state)
{
    (void)state;
    expect_file("sparse", 1e-5);
    expect_file("sparse_cube", 0.0);
    expect_file("transpose_bias", 1e-5);
}

/* Loops of known turns, one of them in another. */
static void test_branches_and_loops(void **state)
{
    (void)state;
    Path path;
    expect_file("branch", 1e-6);
    expect_file("loops", 1e-5);
    expect_unloaded(cornu_model_load(golden(&path, "loop_by_data", ".tflite")),
                    CORNU_ERR_UNSUPPORTED, "a loop whose turns depend on data");
}

/* States go on from run to run, and begin anew when they are reset. */
static void test_variables(void **state)
{
    (void)state;
    Path        path;
    CornuModel *model = cornu_model_load(golden(&path, "variables", ".tflite"));
    CornuNpz   *npz = cornu_npz_open(golden(&path, "variables", ".npz"));
    if (!model || !npz) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    expect_runs(model, npz, false, "variables", 1e-5);
    expect_ok(cornu_model_reset_states(model));
    expect_runs(model, npz, false, "variables, again", 1e-5);
    float             x[3] = { 1, 2, 3 }, y[3], z[3];
    const CornuArray  in = cornu_array(x, CORNU_F32, 1, 1, 3);
    const CornuArray  outs[] = { cornu_array(y, CORNU_F32, 1, 3), cornu_array(z, CORNU_F32, 1, 3) };
    CornuPredictor   *predictor = cornu_predictor(model);
    expect_error(cornu_predictor_predict(predictor, &in, outs), CORNU_ERR_UNSUPPORTED, "stateful");
    cornu_predictor_free(predictor);
    cornu_model_free(model);
    cornu_npz_close(npz);
}

/* Inputs and outputs are the stored integers. Activations of 16 bits differ by a few of their
 * 32,768 steps: LiteRT interpolates the softmax in tables. Dynamic-range files have weights of 8
 * bits, by which LiteRT multiplies activations that it rounds to 8 bits as well. */
static void test_quantized_files(void **state)
{
    (void)state;
    expect_file("int8", 0.0);
    expect_file("bytes", 0.0);
    expect_file("requantized", 0.0);
    expect_file("int16", 4.0);
    expect_file("dynamic", 0.2);   /* of results up to 20 */
}

static void expect_note(const char *name, const char *part)
{
    Path        path;
    CornuModel *model = cornu_model_load(golden(&path, name, ".tflite"));
    if (!model) fail_msg("%s", cornu_error_message());
    const char *note = cornu_model_note(model, "arithmetic");
    if (!part) assert_null(note);
    else if (!note || !strstr(note, part)) fail_msg("%s: %s", name, note ? note : "no note");
    cornu_model_free(model);
}

/* A model says how its numbers are computed, and whether another way is there. */
static void test_arithmetic_is_noted(void **state)
{
    (void)state;
    expect_note("int8", "f32, rounded to the file's integers after each operator; cornu_int8_load "
                "computes it in integers alone");
    expect_note("int16", "does not compute it in integers alone: operator 0, CONV_2D: tensor x is "
                "i16, expected i8");
    expect_note("dynamic", "f32, of weights that the file has as integers");
    expect_note("pads", NULL);
}

/* y (1, 3) = W x by integers: x in 32nds, W in 50ths, y in eighths. */
static void write_product(const char *path)
{
    static const int8_t w[12] = { 50, -25, 10, 0, 5, 60, -40, 20, -10, -20, 30, 45 };
    CornuLiteGraph     *graph = cornu__lite_graph_create("product");
    const CornuLiteOptions options = { .keep_dims = false };
    const float   scales[] = { 1.0f / 32, 1.0f / 50, 1.0f / 8 };
    const int64_t zeros[] = { 0, 0, -20 };
    int           t[3];
    t[0] = cornu__lite_add_tensor(graph, "x", CORNU_LITE_I8, cornu_shape(1, 4));
    t[1] = cornu__lite_add_constant(graph, "w", CORNU_LITE_I8, cornu_shape(3, 4), w);
    t[2] = cornu__lite_add_tensor(graph, "y", CORNU_LITE_I8, cornu_shape(1, 3));
    for (int i = 0; i < 3; i++)
        cornu__lite_set_scales(graph, t[i], &scales[i], &zeros[i], 1, 0);
    cornu__lite_add_operator(graph, CORNU_LITE_FULLY_CONNECTED, t, 2, &t[2], 1, &options);
    cornu__lite_add_input(graph, t[0], "x");
    cornu__lite_add_output(graph, t[2], "y");
    expect_ok(cornu__lite_save(graph, path));
    cornu__lite_graph_free(graph);
}

/* A quantized file is trained further: rounding passes the gradient on. Before, x = 2, -1, 1/2, 1
 * gives W x = 2.6, 0.2 - 1.2 - 0.4 + 0.4 = -1 and -0.4 + 0.4 + 0.3 + 0.9 = 1.2, in eighths above
 * -20: 20.8, -8, 9.6. */
static void test_quantized_models_train(void **state)
{
    (void)state;
    const char *path = onnx_file("product", ".tflite");
    float       x[4] = { 64, -32, 16, 32 }, y[3], want[3] = { 11, -10, 0 };
    double      loss[2];
    write_product(path);
    CornuModel *model = cornu_model_load(path);
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 2e-4),
                            .loss = CORNU_MEAN_SQUARED_ERROR, .device = device));
    const CornuArray in = cornu_array(x, CORNU_F32, 1, 4), to = cornu_array(want, CORNU_F32, 1, 3);
    expect_ok(cornu_predict_on_batch(model, in, cornu_array(y, CORNU_F32, 1, 3)));
    if (y[0] != 1 || y[1] != -28 || y[2] != -10) fail_msg("%g %g %g", y[0], y[1], y[2]);
    for (int i = 0; i < 40; i++)
        expect_ok(cornu_train_on_batch_many(model, &in, &to, &loss[i > 0]));
    if (!(loss[1] < 5.0)) fail_msg("the loss is %g after %g", loss[1], loss[0]);
    cornu_model_free(model);
}

/* ---- Refused ---- */

enum { MOST_BYTES = 1 << 14 };

/* The place of an operator's code in the file of one: its number once in a byte, once in four. */
static void set_code(unsigned char *bytes, size_t size, int from, int to)
{
    const size_t code = (size_t)(from < 127 ? from : 127);
    bool         done = false;
    for (size_t i = 0; i + 4 <= size && !done; i++) {
        if (bytes[i] != from || bytes[i + 1] || bytes[i + 2] || bytes[i + 3]) continue;
        for (size_t k = i < 40 ? 0 : i - 40; k < i + 40 && k < size; k++)
            if (k != i && bytes[k] == code) {
                bytes[i] = (unsigned char)to;
                bytes[k] = (unsigned char)(to < 127 ? to : 127);
                done = true;
                break;
            }
    }
    assert_true(done);
}

/* An operator is refused by its name, its node and its first result. */
static void test_refused_operators_are_named(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    CornuLiteGraph      *graph;
    Path                 path;
    const size_t size = files_read(golden(&path, "transpose_bias", ".tflite"), bytes, sizeof bytes);
    set_code(bytes, size, CORNU_LITE_CUSTOM, 120);
    expect_error(cornu__lite_read(bytes, size, &graph), CORNU_ERR_UNSUPPORTED,
                 "node 0, NON_MAX_SUPPRESSION_V4 of \"Identity\": this operator of LiteRT, builtin "
                 "120, is not available");
    set_code(bytes, size, 120, 209);
    expect_error(cornu__lite_read(bytes, size, &graph), CORNU_ERR_UNSUPPORTED,
                 "node 0, STABLEHLO_CASE of \"Identity\"");
    set_code(bytes, size, 209, 210);
    expect_error(cornu__lite_read(bytes, size, &graph), CORNU_ERR_UNSUPPORTED,
                 "node 0, an unknown operator of \"Identity\"");
    set_code(bytes, size, 210, 109);
    expect_error(cornu__lite_read(bytes, size, &graph), CORNU_ERR_UNSUPPORTED,
                 "node 0, WHERE of \"Identity\": this operator");
    assert_string_equal(cornu__lite_code_name(0), "ADD");
    assert_string_equal(cornu__lite_code_name(131), "RFFT2D");
    assert_null(cornu__lite_code_name(210));
}

/* Every byte in turn, and every length: a status and a message. */
static void test_damaged_files(void **state)
{
    (void)state;
    static const char *const names[] = { "variables", "branch", "sparse", "bytes", "loops" };
    static unsigned char     bytes[MOST_BYTES];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        Path         path;
        const size_t size = files_read(golden(&path, names[n], ".tflite"), bytes, sizeof bytes);
        for (size_t i = 0; i < size; i += (size_t)quick(7, 1)) {
            const unsigned char kept = bytes[i];
            for (int k = 0; k < 3; k++) {
                CornuLiteGraph *graph;
                bytes[i] = (unsigned char)(k == 0 ? kept ^ 0x80 : k == 1 ? kept + 1 : 255);
                const CornuStatus status = cornu__lite_read(bytes, size, &graph);
                assert_int_equal(status == CORNU_OK, graph != NULL);
                if (status) assert_true(*cornu_error_message());
                assert_false(cornu_error_pending());
                cornu__lite_graph_free(graph);
            }
            bytes[i] = kept;
        }
    }
}

/* Each allocation fails in turn: no model, nothing kept. */
static void test_no_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    static const char *const names[] = { "variables", "branch", "int8", "loops" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Path        path;
        CornuModel *read = NULL;
        golden(&path, names[i], ".tflite");
        cornu_model_free(cornu_model_load(path.text));   /* what is made once */
        for (int n = 0; !read; n += quick(7, 1)) {
            const int64_t held = allocations_held();
            allocations_fail_after(n);
            read = cornu_model_load(path.text);
            allocations_fail_after(NEVER);
            if (read) break;
            if (cornu_error_status() != CORNU_ERR_MEMORY)
                fail_msg("%s, %d: %s", names[i], n, cornu_error_message());
            assert_int_equal(allocations_held(), held);
        }
        cornu_model_free(read);
    }
}

/* ---- Registered ---- */

/* Convolution2DTransposeBias as a user would write it: i32 padding, strides of width and height. */
static CornuStatus transposed(const CornuOperatorCall *call)
{
    int32_t given[3];
    if (call->option_bytes != sizeof given || call->in_count != 3) return CORNU_ERR_FORMAT;
    memcpy(given, call->options, sizeof given);
    const CornuShape       x = cornu_tensor_type(call->in[0]).shape;
    const CornuConvolution c = { .strides = { given[2], given[1] } };
    CornuTensor *filter = cornu_op_transpose(call->in[1], (const int[]){ 1, 2, 0, 3 });
    call->out[0] = cornu_op_add(cornu_op_conv2d_grad_input(
        call->in[0], filter, x.extent[1] * given[2], x.extent[2] * given[1], &c), call->in[2]);
    return CORNU_OK;
}

static CornuStatus failing(const CornuOperatorCall *call)
{
    (void)call;
    return CORNU_ERR_VALUE;
}

/* A custom operator of another name is refused by that, and loads once it is registered. */
static void test_registered_operators(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    Path                 path;
    const char          *copy = onnx_file("custom", ".tflite");
    const size_t size = files_read(golden(&path, "transpose_bias", ".tflite"), bytes, sizeof bytes);
    for (size_t i = 0; i + 26 < size; i++)
        if (!memcmp(bytes + i, "Convolution2DTransposeBias", 26)) bytes[i + 25] = 'Z';
    expect_ok(cornu_file_write(copy, bytes, size));
    expect_unloaded(cornu_model_load(copy), CORNU_ERR_UNSUPPORTED,
                    "Convolution2DTransposeBiaZ of \"Identity\": a custom operator that is not "
                    "registered");
    expect_error(cornu_register_operator("ai.onnx", "Add", transposed), CORNU_ERR_ARGUMENT,
                 "a domain that is not ONNX' own");
    expect_error(cornu_register_operator("tflite", "", transposed), CORNU_ERR_ARGUMENT,
                 "expected names of 1 to 100 characters");
    expect_ok(cornu_register_operator("tflite", "Convolution2DTransposeBiaZ", failing));
    expect_unloaded(cornu_model_load(copy), CORNU_ERR_VALUE, "the registered function of the "
                    "operator Convolution2DTransposeBiaZ fails");
    expect_ok(cornu_register_operator("tflite", "Convolution2DTransposeBiaZ", transposed));
    assert_true(cornu_operator_registered("tflite", "Convolution2DTransposeBiaZ"));
    CornuModel *model = cornu_model_load(copy);
    CornuNpz   *npz = cornu_npz_open(golden(&path, "transpose_bias", ".npz"));
    if (!model || !npz) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    expect_runs(model, npz, false, "registered", 1e-5);
    cornu_model_free(model);
    cornu_npz_close(npz);
    expect_ok(cornu_register_operator("tflite", "Convolution2DTransposeBiaZ", NULL));
    assert_false(cornu_operator_registered("tflite", "Convolution2DTransposeBiaZ"));
}

/* ---- Written again ---- */

/* A model of a file, saved as .tflite and loaded, gives what its maker's runtime gave. */
static void expect_rewritten(const char *folder, const char *name, const char *suffix,
                             double tolerance)
{
    char path[2][120];
    snprintf(path[0], sizeof path[0], "tests/golden/%s/%s%s", folder, name, suffix);
    snprintf(path[1], sizeof path[1], "tests/golden/%s/%s.npz", folder, name);
    CornuModel *model = cornu_model_load(path[0]);
    CornuNpz   *npz = cornu_npz_open(path[1]);
    if (!model || !npz) fail_msg("%s: %s", path[0], cornu_error_message());
    if (cornu_model_save(model, onnx_file("again", ".tflite")))
        fail_msg("%s: %s", path[0], cornu_error_message());
    cornu_model_free(model);
    model = cornu_model_load(onnx_file("again", ".tflite"));
    if (!model) fail_msg("%s: %s", path[0], cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    expect_runs(model, npz, strcmp(folder, "lite_read") != 0, name, tolerance);
    cornu_model_free(model);
    cornu_npz_close(npz);
}

static void test_imported_models_are_written(void **state)
{
    (void)state;
    static const char *const names[] = { "pads", "blocks", "splits", "slices", "lookups",
        "arithmetic", "windows", "spectrum", "volumes", "extents", "atrous", "sparse",
        "transpose_bias", "branch", "loops", "int8", "bytes" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_rewritten("lite_read", names[i], ".tflite", 1e-5);
    static const char *const onnx[] = { "keras_attention", "keras_cnn", "keras_recurrent",
        "torch_cnn_13", "torch_cnn_new", "torch_pieces_11", "torch_pieces_new",
        "torch_recurrent_14", "torch_recurrent_new", "torch_transformer_14",
        "torch_transformer_new" };
    expect_rewritten("lite_read", "pools", ".onnx", 1e-6);
    for (size_t i = 0; i < sizeof onnx / sizeof *onnx; i++)
        expect_rewritten("onnx_read", onnx[i], ".onnx", 1e-5);
    static const char *const lite[] = { "images", "branches", "recurrence", "halves" };
    for (size_t i = 0; i < sizeof lite / sizeof *lite; i++)
        expect_rewritten("lite", lite[i], ".tflite", 1e-5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)
    const struct CMUnitTest tests[] = {
        TEST(test_operators),
        TEST(test_sparse_constants_and_custom_operators),
        TEST(test_branches_and_loops),
        TEST(test_variables),
        TEST(test_quantized_files),
        TEST(test_arithmetic_is_noted),
        TEST(test_quantized_models_train),
        TEST(test_refused_operators_are_named),
        TEST(test_damaged_files),
        TEST(test_no_memory),
        TEST(test_registered_operators),
        TEST(test_imported_models_are_written),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
