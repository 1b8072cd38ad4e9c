/* Reading ONNX files: those of PyTorch and Keras predict what onnxruntime does
 * (tests/golden/make_onnx_read.py), Cornu's own what the model did that wrote them; they are
 * trained, cut, saved and read again; damaged files are refused. */
#define _XOPEN_SOURCE 700    /* symlink */
#include "../../../../nn/cornu.h"
#include "../../../../device/files/protobuf_internal.h"
#include "../../../../nn/model/model_internal.h"
#include "../../../allocations.h"
#include "../../../datasets/files.h"
#include "../../golden.h"
#include "onnx_models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../skip.h"

#define GOLDEN "tests/golden/onnx_read/"
enum { ROWS = 3, MOST = CORNU_MAX_MODEL_TENSORS, MOST_BYTES = 1 << 20 };

static const char *const golden[] = {
    "torch_cnn_13", "torch_cnn_18", "torch_cnn_new", "torch_transformer_14",
    "torch_transformer_new", "torch_recurrent_14", "torch_recurrent_new", "torch_pieces_11",
    "torch_pieces_18", "torch_pieces_new", "keras_attention", "keras_cnn",
    "keras_recurrent",
};
enum { GOLDEN_COUNT = sizeof golden / sizeof *golden };

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

static const char *here(const char *name, const char *suffix)
{
    char both[100];
    snprintf(both, sizeof both, "%s%s", name, suffix);
    return files_path(folder, both);
}

static CornuModel *load(const char *path)
{
    CornuModel *model = cornu_model_load(path);
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    return model;
}

static CornuModel *load_golden(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, GOLDEN "%s.onnx", name);
    return load(path);
}

/* ---- Arrays ---- */

typedef struct {
    CornuArray x[MOST], p[MOST];
    int        xs, ps;
} Data;

static CornuArray copy_of(CornuArray from)
{
    const size_t bytes = cornu_type_bytes(from.type);
    CornuArray   to = { from.type, malloc(bytes + 1) };
    memcpy(to.data, from.data, bytes);
    return to;
}

static int collect(const CornuNpz *file, char letter, CornuArray to[MOST])
{
    int count = 0;
    for (; count < MOST; count++) {
        char name[8];
        snprintf(name, sizeof name, "%c%d", letter, count);
        const CornuNamedArray *found = cornu_npz_find(file, name);
        if (!found) break;
        to[count] = copy_of(found->array);
    }
    return count;
}

static Data read_data(const char *name)
{
    char path[100];
    Data data;
    snprintf(path, sizeof path, GOLDEN "%s.npz", name);
    CornuNpz *file = cornu_npz_open(path);
    if (!file) fail_msg("%s", cornu_error_message());
    data.xs = collect(file, 'x', data.x);
    data.ps = collect(file, 'p', data.p);
    cornu_npz_close(file);
    return data;
}

static void free_data(Data *data)
{
    for (int i = 0; i < data->xs; i++) free(data->x[i].data);
    for (int i = 0; i < data->ps; i++) free(data->p[i].data);
}

static CornuArray draw(CornuShape shape, bool whole)
{
    shape.extent[0] = ROWS;
    const CornuType  type = cornu_type_from(whole ? CORNU_I32 : CORNU_F32, shape);
    const CornuArray to = cornu_array_from(malloc(cornu_type_bytes(type) + 1), type);
    for (int64_t i = 0; i < cornu_type_count(type); i++)
        cornu_array_set(to, i, whole ? (double)(i * 7 % 10) : (double)(i * 37 % 101) / 25 - 2);
    return to;
}

/* The model predicts data->p. */
static void expect_predictions(const char *name, CornuModel *model, const Data *data,
                               double tolerance)
{
    CornuArray got[MOST];
    assert_int_equal(cornu_model_input_count(model), data->xs);
    assert_int_equal(cornu_model_output_count(model), data->ps);
    for (int i = 0; i < data->ps; i++) got[i] = copy_of(data->p[i]);
    if (cornu_predict_on_batch_many(model, data->x, got))
        fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < data->ps; i++) {
        expect_near(name, got[i].data, data->p[i], tolerance);
        free(got[i].data);
    }
}

/* ---- Predictions ---- */

static void test_golden(void **state)
{
    (void)state;
    for (int i = 0; i < GOLDEN_COUNT; i++) {
        Data        data = read_data(golden[i]);
        CornuModel *model = load_golden(golden[i]);
        expect_predictions(golden[i], model, &data, 1e-5);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* Any number of rows. */
static void test_open_batch(void **state)
{
    (void)state;
    for (int i = 0; i < GOLDEN_COUNT; i++) {
        Data        data = read_data(golden[i]);
        CornuModel *model = load_golden(golden[i]);
        for (int k = 0; k < data.xs; k++) data.x[k].type.shape.extent[0] = 1;
        for (int k = 0; k < data.ps; k++) data.p[k].type.shape.extent[0] = 1;
        expect_predictions(golden[i], model, &data, 1e-5);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* Written as .safetensors, which has the nodes, and as .onnx, of the ops that they record. */
static void test_saved_again(void **state)
{
    static const char *const suffixes[] = { ".safetensors", ".onnx" };
    (void)state;
    for (int i = 0; i < GOLDEN_COUNT; i++)
        for (int s = 0; s < 2; s++) {
            Data        data = read_data(golden[i]);
            CornuModel *model = load_golden(golden[i]);
            if (cornu_model_save(model, here(golden[i], suffixes[s])))
                fail_msg("%s%s: %s", golden[i], suffixes[s], cornu_error_message());
            cornu_model_free(model);
            model = load(here(golden[i], suffixes[s]));
            expect_predictions(golden[i], model, &data, 1e-5);
            cornu_model_free(model);
            free_data(&data);
        }
}

/* What Cornu writes, it reads. */
static void test_own(void **state)
{
    (void)state;
    for (int i = 0; i < onnx_case_count; i++) {
        const char *name = onnx_cases[i].name;
        Data        data = { .xs = 0 };
        CornuModel *model = onnx_cases[i].make();
        if (!model) fail_msg("%s: %s", name, cornu_error_message());
        expect_ok(cornu_compile(model, .device = device));
        data.xs = cornu_model_input_count(model);
        data.ps = cornu_model_output_count(model);
        for (int k = 0; k < data.xs; k++)
            data.x[k] = draw(cornu_symbol_shape(cornu_model_input(model, k)),
                             cornu__model_takes_integers(model, k));
        for (int k = 0; k < data.ps; k++)
            data.p[k] = draw(cornu_symbol_shape(cornu_model_output(model, k)), false);
        expect_ok(cornu_predict_on_batch_many(model, data.x, data.p));
        expect_ok(cornu_model_save(model, here(name, ".onnx")));
        cornu_model_free(model);
        model = load(here(name, ".onnx"));
        expect_predictions(name, model, &data, 1e-4);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* ---- Transfer ---- */

static bool is_named(const char *name, const char *part) { return strstr(name, part) != NULL; }

static float *weights_of(const CornuModel *model, const char *layer, int *count)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        if (!is_named(weight->path, layer)) continue;
        float *values = malloc(cornu_type_bytes(weight->type));
        *count = (int)cornu_type_count(weight->type);
        expect_ok(cornu_weight_read(weight, cornu_array_from(values, weight->type)));
        return values;
    }
    fail_msg("no weight of %s", layer);
    return NULL;
}

/* All layers but the last are frozen by name; the loss falls, and only the last one's weights
 * change. */
static void test_fine_tuning(void **state)
{
    (void)state;
    Data        data = read_data("torch_cnn_18");
    CornuModel *model = cornu_model_load(GOLDEN "torch_cnn_18.onnx");
    assert_non_null(model);
    for (int i = 0; i < cornu_model_layer_count(model); i++) {
        CornuLayer *layer = cornu_model_layer(model, i);
        cornu_layer_set_trainable(layer, is_named(cornu_layer_name(layer), "head"));
    }
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_optimizer("adam"),
                            .loss = cornu_loss("mse")));
    int    stem_count, head_count;
    float *stem = weights_of(model, "stem", &stem_count), losses[2];
    float *head = weights_of(model, "head", &head_count);
    for (int step = 0; step < 60; step++) {
        double logs[8] = { 0 };
        CornuArray y = copy_of(data.p[0]);
        for (int64_t i = 0; i < cornu_type_count(y.type); i++) cornu_array_set(y, i, i % 4 == 0);
        expect_ok(cornu_train_on_batch(model, data.x[0], y, logs));
        if (step == 0 || step == 59) losses[step > 0] = (float)logs[0];
        free(y.data);
    }
    if (!(losses[1] < 0.7F * losses[0])) fail_msg("the loss went from %g to %g", (double)losses[0],
                                                  (double)losses[1]);
    float *stem_after = weights_of(model, "stem", &stem_count);
    float *head_after = weights_of(model, "head", &head_count);
    assert_memory_equal(stem, stem_after, (size_t)stem_count * sizeof *stem);
    assert_memory_not_equal(head, head_after, (size_t)head_count * sizeof *head);
    free(stem);
    free(head);
    free(stem_after);
    free(head_after);
    cornu_model_free(model);
    free_data(&data);
}

/* All weights are trained, through every kind of layer. */
static void test_training(void **state)
{
    (void)state;
    static const char *const names[] = { "torch_cnn_new", "torch_transformer_14", "keras_cnn",
                                         "keras_recurrent" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        Data        data = read_data(names[n]);
        char        path[100];
        double      first = 0.0, last = 0.0;
        snprintf(path, sizeof path, GOLDEN "%s.onnx", names[n]);
        CornuModel *model = cornu_model_load(path);
        if (!model) fail_msg("%s", cornu_error_message());
        expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_optimizer("adam"),
                                .loss = cornu_loss("mse")));
        for (int64_t i = 0; i < cornu_type_count(data.p[0].type); i++)
            cornu_array_set(data.p[0], i, i % 3 == 0);
        for (int step = 0; step < 40; step++) {
            double logs[8] = { 0 };
            if (cornu_train_on_batch(model, data.x[0], data.p[0], logs))
                fail_msg("%s: %s", names[n], cornu_error_message());
            if (step == 0) first = logs[0];
            last = logs[0];
        }
        if (!(last < 0.9 * first)) fail_msg("%s: the loss went from %g to %g", names[n], first,
                                            last);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* A model up to a tensor within another, with a new head. */
static void test_cut(void **state)
{
    (void)state;
    CornuModel  *whole = cornu_model_load(GOLDEN "torch_cnn_18.onnx");
    CornuSymbol *features = NULL;
    assert_non_null(whole);
    for (int i = 0; i < cornu_model_layer_count(whole); i++) {
        const char *name = cornu_layer_name(cornu_model_layer(whole, i));
        if (is_named(name, "ReduceMean")) features = cornu_model_symbol(whole, name);
    }
    assert_non_null(features);
    assert_true(cornu_shape_equal(cornu_symbol_shape(features), cornu_shape(CORNU_NONE, 16)));
    CornuSymbol *y = cornu_call(cornu_dense(2, .name = "new_head"), features);
    CornuModel  *model = cornu_model(.inputs = { cornu_model_input(whole, 0) }, .outputs = { y });
    if (!model) fail_msg("%s", cornu_error_message());
    assert_true(cornu_shape_equal(cornu_symbol_shape(cornu_model_output(model, 0)),
                                  cornu_shape(CORNU_NONE, 2)));
    cornu_model_free(model);
    cornu_model_free(whole);
}

/* ---- Files that are refused ---- */

/* A model of one input x (batch, 4) and one node; if `data` is given, also of a tensor w of
 * external data, which has these keys and values, ended by NULL. */
static const char *one_node(const char *op, const char *domain, const char *const *data)
{
    CornuMessage to = { 0 };
    cornu__put_number(&to, 1, 8);
    const size_t opset = cornu__begin_field(&to, 8);
    cornu__put_number(&to, 2, 18);
    cornu__end_field(&to, opset);
    const size_t graph = cornu__begin_field(&to, 7), node = cornu__begin_field(&to, 1);
    cornu__put_text(&to, 1, "x");
    if (data) cornu__put_text(&to, 1, "w");
    cornu__put_text(&to, 2, "y");
    cornu__put_text(&to, 3, "the_node");
    cornu__put_text(&to, 4, op);
    if (*domain) cornu__put_text(&to, 7, domain);
    cornu__end_field(&to, node);
    for (int i = 0; i < 2; i++) {
        const size_t info = cornu__begin_field(&to, 11 + i);
        cornu__put_text(&to, 1, i ? "y" : "x");
        const size_t type = cornu__begin_field(&to, 2), tensor = cornu__begin_field(&to, 1);
        cornu__put_number(&to, 1, 1);
        const size_t shape = cornu__begin_field(&to, 2);
        for (int k = 0; k < 2; k++) {
            const size_t extent = cornu__begin_field(&to, 1);
            if (k) cornu__put_number(&to, 1, 4);
            else cornu__put_text(&to, 2, "batch");
            cornu__end_field(&to, extent);
        }
        cornu__end_field(&to, shape);
        cornu__end_field(&to, tensor);
        cornu__end_field(&to, type);
        cornu__end_field(&to, info);
    }
    if (data) {
        const size_t tensor = cornu__begin_field(&to, 5);
        cornu__put_number(&to, 1, 4);
        cornu__put_number(&to, 2, 1);
        cornu__put_text(&to, 8, "w");
        for (int i = 0; data[i]; i += 2) {
            const size_t entry = cornu__begin_field(&to, 13);
            cornu__put_text(&to, 1, data[i]);
            cornu__put_text(&to, 2, data[i + 1]);
            cornu__end_field(&to, entry);
        }
        cornu__put_number(&to, 14, 1);
        cornu__end_field(&to, tensor);
    }
    cornu__end_field(&to, graph);
    const char *path = files_path(folder, "one.onnx");
    files_write(path, to.bytes, to.size);
    free(to.bytes);
    return path;
}

static void test_refused(void **state)
{
    (void)state;
    expect_unloaded(cornu_model_load(one_node("Frobnicate", "", NULL)), CORNU_ERR_UNSUPPORTED,
                    "the_node: the operator Frobnicate is not supported");
    expect_unloaded(cornu_model_load(one_node("Relu", "com.other", NULL)), CORNU_ERR_UNSUPPORTED,
                    "the operator com.other.Relu is not supported");
    expect_unloaded(cornu_model_load_compiled(one_node("Relu", "", NULL), device),
                    CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with");
    CornuModel *model = cornu_model_load(one_node("Relu", "", NULL));
    if (!model) fail_msg("%s", cornu_error_message());
    cornu_model_free(model);
}

static CornuModel *with_data(const char *location, const char *offset, const char *length)
{
    const char *const data[] = { "location", location, "offset", offset, "length", length, NULL };
    return cornu_model_load(one_node("Add", "", data));
}

static void expect_data(CornuModel *model, const float *w)
{
    float got[4];
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0), cornu_array(got, CORNU_F32, 4)));
    assert_memory_equal(got, w, sizeof got);
    cornu_model_free(model);
}

/* External data come from files beside the model, and from nowhere else. */
static void test_external_data(void **state)
{
    static const char *const outside[] = { "../w", "/etc/passwd", "a/b", "..", "" };
    (void)state;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        expect_unloaded(with_data(outside[i], "0", "16"), CORNU_ERR_FORMAT,
                        "expected the name of a file beside the model");
    expect_unloaded(with_data("missing", "0", "16"), CORNU_ERR_FILE, "missing");
    files_write(files_path(folder, "short"), "abc", 3);
    expect_unloaded(with_data("short", "0", "16"), CORNU_ERR_FORMAT,
                    "the tensor w has 16 bytes from byte 0 of short on, which has 3");
    const float w[] = { 1, 2, 3, 4, 5 };
    files_write(files_path(folder, "w"), w, sizeof w);
    expect_data(with_data("w", "0", "16"), w);
    expect_data(with_data("w", "4", "16"), w + 1);
    expect_data(cornu_model_load(one_node("Add", "", (const char *const[]){
        "location", "w", NULL, NULL })), w);
}

/* Where external data begin and how long they are: within the file, and numbers. */
static void test_external_bounds(void **state)
{
    static const char *const numbers[] = { "-4", "", "4x", "0x4", "18446744073709551616", " 4" };
    const float w[5] = { 1 };
    (void)state;
    files_write(files_path(folder, "w"), w, sizeof w);
    expect_unloaded(with_data("w", "8", "16"), CORNU_ERR_FORMAT,
                    "16 bytes from byte 8 of w on, which has 20");
    expect_unloaded(with_data("w", "21", "0"), CORNU_ERR_FORMAT, "from byte 21 of w on");
    /* The sum of the two overflows. */
    expect_unloaded(with_data("w", "18446744073709551608", "16"), CORNU_ERR_FORMAT,
                    "from byte 18446744073709551608 of w on");
    expect_unloaded(with_data("w", "8", "18446744073709551612"), CORNU_ERR_FORMAT, "of w on");
    expect_unloaded(with_data("w", "0", "12"), CORNU_ERR_FORMAT, "the 4 elements of its shape");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        expect_unloaded(with_data("w", numbers[i], "16"), CORNU_ERR_FORMAT,
                        "the tensor w has external data with the offset");
        expect_unloaded(with_data("w", "0", numbers[i]), CORNU_ERR_FORMAT, "with the length");
    }
}

/* No symbolic link leads out of the folder, except where the model's own does, as in caches that
 * have links to files of one folder. */
static void test_external_links(void **state)
{
    const float w[] = { 1, 2, 3, 4 };
    (void)state;
    files_write(files_path(folder, "away/w"), w, sizeof w);
    assert_int_equal(symlink("away/w", files_path(folder, "out")), 0);
    expect_unloaded(with_data("out", "0", "16"), CORNU_ERR_FORMAT,
                    "external data in \"out\", expected the name of a file beside the model");
    files_write(files_path(folder, "w"), w, sizeof w);
    assert_int_equal(symlink("w", files_path(folder, "in")), 0);
    expect_data(with_data("in", "0", "16"), w);
    const char *const data[] = { "location", "out", NULL };
    assert_int_equal(rename(one_node("Add", "", data), files_path(folder, "away/one")), 0);
    assert_int_equal(symlink("away/one", files_path(folder, "link.onnx")), 0);
    expect_data(cornu_model_load(files_path(folder, "link.onnx")), w);
}

/* Every beginning of a file, and files with a wrong byte: loaded or refused, with a message. */
static void test_damaged(void **state)
{
    static unsigned char bytes[MOST_BYTES];
    (void)state;
    const size_t size = files_read(GOLDEN "torch_cnn_18.onnx", bytes, sizeof bytes);
    const char  *path = files_path(folder, "damaged.onnx");
    for (size_t i = 0; i < size; i += 1 + i / 50) {
        files_write(path, bytes, i);
        CornuModel *model = cornu_model_load(path);
        assert_true(model || *cornu_error_message());
        assert_false(cornu_error_pending());
        cornu_model_free(model);
    }
    for (size_t i = 0; i < size; i += 23) {
        const unsigned char was = bytes[i];
        bytes[i] ^= (unsigned char)(1 + i % 255);
        files_write(path, bytes, size);
        bytes[i] = was;
        CornuModel *model = cornu_model_load(path);
        assert_true(model || *cornu_error_message());
        assert_false(cornu_error_pending());
        cornu_model_free(model);
    }
}

/* Out of memory at any point of loading. */
static void test_no_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    const char *path = one_node("Relu", "", NULL);
    CornuModel *model = cornu_model_load(path);   /* what is made once */
    cornu_model_free(model);
    model = NULL;
    for (int n = 0; !model; n++) {
        const int64_t held = allocations_held();
        allocations_fail_after(n);
        model = cornu_model_load(path);
        allocations_fail_after(NEVER);
        if (!model) {
            assert_int_equal(cornu_error_status(), CORNU_ERR_MEMORY);
            assert_int_equal(allocations_held(), held);
        }
    }
    cornu_model_free(model);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)
    const struct CMUnitTest tests[] = {
        TEST(test_golden),
        TEST(test_open_batch),
        TEST(test_saved_again),
        TEST(test_own),
        TEST(test_fine_tuning),
        TEST(test_training),
        TEST(test_cut),
        TEST(test_refused),
        TEST(test_external_data),
        TEST(test_external_bounds),
        TEST(test_external_links),
        TEST(test_damaged),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
