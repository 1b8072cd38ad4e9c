/* Models as ONNX files, which ONNX' checker passes and the ONNX runtime runs to the same numbers.
 * Needs onnx and onnxruntime in the interpreter that CORNU_PYTHON names (default python3), else
 * that is skipped. */
#include "../../nn/cornu.h"
#include "../allocations.h"
#include "../datasets/files.h"
#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 3, MOST = 2, NUMBERS = 1000 };

static CornuDevice *device;

static int set_up(void **state)
{
    device = cornu_device_open("cpu");
    return !device || files_begin(state);
}

static int tear_down(void **state)
{
    cornu_device_close(device);
    return files_end(state);
}

/* ---- The models: every class and argument that has a rule ---- */

static CornuModel *images(void)
{
    CornuModel *model = cornu_sequential(.name = "images", .input_shape = { 9, 8, 2 });
    cornu_model_add(model, cornu_rescaling(0.5, 0.25));
    cornu_model_add(model, cornu_conv2d(4, 3, .strides = { 2, 1 }, .padding = CORNU_SAME,
                                        .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.no_scale = true));
    cornu_model_add(model, cornu_conv2d(5, .kernel_size = { 2, 3 }, .no_bias = true,
                                        .activation = CORNU_LEAKY_RELU));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_max_pooling2d(2, 1, CORNU_SAME));
    cornu_model_add(model, cornu_conv2d(3, 2, .dilation_rate = { 2, 2 }));
    cornu_model_add(model, cornu_average_pooling2d(2, 1, CORNU_SAME));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.5));
    cornu_model_add(model, cornu_dense(6, .activation = CORNU_GELU));
    cornu_model_add(model, cornu_reshape(.target_shape = { 2, 3 }));
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *sequence(void)
{
    CornuModel *model = cornu_sequential(.name = "sequence", .input_shape = { 5 });
    cornu_model_add(model, cornu_embedding(10, 4));
    cornu_model_add(model, cornu_bidirectional(cornu_lstm(3, .return_sequences = true)));
    cornu_model_add(model, cornu_time_distributed(cornu_dense(3, .activation = CORNU_TANH)));
    cornu_model_add(model, cornu_gru(4, .return_sequences = true, .go_backwards = true));
    cornu_model_add(model, cornu_gru(3, .no_reset_after = true, .return_sequences = true));
    cornu_model_add(model, cornu_bidirectional(cornu_simple_rnn(3, .return_sequences = true),
                                               .merge_mode = CORNU_MERGE_AVE));
    cornu_model_add(model, cornu_lstm(4, .no_bias = true, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *branches(void)
{
    CornuSymbol *source = cornu_input(.shape = { 4 }, .name = "source");
    CornuSymbol *side = cornu_input(.shape = { 6 }, .name = "side");
    CornuSymbol *h = cornu_input(.shape = { 4 });
    CornuModel  *encoder = cornu_model(
        .inputs = { h }, .outputs = { cornu_call(cornu_dense(3, .activation = CORNU_TANH), h) },
        .name = "encoder");
    CornuLayer  *shared = cornu_dense(4, .activation = CORNU_ELU);
    CornuSymbol *a = cornu_call(shared, source);
    CornuSymbol *b = cornu_call(shared, cornu_call(cornu_dense(4), side));
    CornuSymbol *code = cornu_call(cornu_as_layer(encoder), a);
    CornuSymbol *again = cornu_call(cornu_as_layer(encoder), b);
    CornuSymbol *both = cornu_call(cornu_concatenate(), code, again, side);
    CornuSymbol *scores = cornu_call(cornu_dense(3, .activation = CORNU_SOFTMAX), both);
    CornuSymbol *mixed = cornu_call(cornu_add(), a, cornu_call(cornu_multiply(), a, b));
    mixed = cornu_call(cornu_average(), mixed, cornu_call(cornu_maximum(), a, b));
    mixed = cornu_call(cornu_subtract(), mixed, cornu_call(cornu_minimum(), a, b));
    CornuSymbol *value = cornu_call(cornu_dense(2, .name = "value"), mixed);
    CornuModel  *model = cornu_model(.inputs = { source, side }, .outputs = { scores, value },
                                     .name = "branches");
    cornu_model_free(encoder);   /* the calls hold it */
    return model;
}

static CornuModel *activations(void)
{
    static const CornuActivation all[] = {
        CORNU_LINEAR, CORNU_RELU, CORNU_RELU6, CORNU_LEAKY_RELU, CORNU_ELU, CORNU_SELU, CORNU_GELU,
        CORNU_SILU, CORNU_SIGMOID, CORNU_HARD_SIGMOID, CORNU_TANH, CORNU_SOFTMAX, CORNU_SOFTPLUS,
        CORNU_SOFTSIGN, CORNU_MISH, CORNU_EXPONENTIAL,
    };
    enum { COUNT = sizeof all / sizeof *all };
    CornuSymbol *x = cornu_input(.shape = { 12 }), *y[COUNT];
    for (int i = 0; i < COUNT; i++) y[i] = cornu_call(cornu_activation(all[i]), x);
    return cornu_model(.inputs = { x }, .name = "activations",
                       .outputs = { cornu_call_from(cornu_concatenate(), y, COUNT) });
}

static const struct { const char *name; CornuModel *(*make)(void); } cases[] = {
    { "images", images }, { "sequence", sequence }, { "branches", branches },
    { "activations", activations },
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Data ---- */

static const char *here(const char *name, const char *suffix)
{
    char both[100];
    snprintf(both, sizeof both, "%s%s", name, suffix);
    return files_path(folder, both);
}

static CornuArray draw(CornuArray room, CornuType type, bool whole)
{
    room.type = type;
    room.type.dtype = whole ? CORNU_I32 : CORNU_F32;
    room.type.shape.extent[0] = ROWS;
    for (int64_t i = 0; i < cornu_type_count(room.type); i++)
        cornu_array_set(room, i, whole ? (double)(i * 7 % 10) : (double)(i * 37 % 101) / 25 - 2);
    return room;
}

/* Every weight has its own number, so that none can stand for another one. */
static void set_weights(CornuModel *model)
{
    static float values[NUMBERS];
    uint32_t     random = 1;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        assert_true(cornu_type_count(weight->type) <= NUMBERS);
        for (int64_t k = 0; k < cornu_type_count(weight->type); k++) {
            random = random * 1664525 + 1013904223;
            values[k] = (float)(random >> 8) / (float)(1 << 24) -
                        (weight->non_trainable ? 0 : 0.4f);
        }
        expect_ok(cornu_weight_write(weight, cornu_array_from(values, weight->type)));
    }
}

static void write_case(const char *name, CornuModel *model)
{
    static float      x[MOST][NUMBERS], y[MOST][NUMBERS];
    static const char *const names[] = { "x0", "x1", "p0", "p1" };
    CornuNamedArray   arrays[2 * MOST];
    CornuArray        in[MOST], out[MOST];
    int               count = 0;
    if (!model) fail_msg("%s", cornu_error_message());
    set_weights(model);
    expect_ok(cornu_compile(model, .device = device));
    for (int i = 0; i < cornu_model_input_count(model); i++) {
        const CornuType type = cornu_type_from(CORNU_F32,
                                               cornu_symbol_shape(cornu_model_input(model, i)));
        in[i] = draw((CornuArray){ .data = x[i] }, type, !strcmp(name, "sequence"));
        arrays[count++] = (CornuNamedArray){ names[i], in[i] };
    }
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        out[i] = (CornuArray){ .data = y[i], .type = cornu_type_from(
            CORNU_F32, cornu_symbol_shape(cornu_model_output(model, i))) };
        out[i].type.shape.extent[0] = ROWS;
        arrays[count++] = (CornuNamedArray){ names[2 + i], out[i] };
    }
    expect_ok(cornu_predict_on_batch_many(model, in, out));
    expect_ok(cornu_npz_write(here(name, ".npz"), arrays, count));
    expect_ok(cornu_model_save(model, here(name, ".onnx")));
    cornu_model_free(model);
}

static void test_runs_elsewhere(void **state)
{
    (void)state;
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[600];
    for (int i = 0; i < CASES; i++) write_case(cases[i].name, cases[i].make());
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not (u.find_spec(\"onnx\") and u.find_spec(\"onnxruntime\")))' 2>/dev/null",
             python);
    if (system(command) != 0) skip();
    snprintf(command, sizeof command, "%s tests/nn/check_onnx.py %s %s %s %s %s >/dev/null", python,
             folder, cases[0].name, cases[1].name, cases[2].name, cases[3].name);
    assert_int_equal(system(command), 0);
}

static void test_equal_bytes(void **state)
{
    static unsigned char a[40000], b[40000];
    (void)state;
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        cornu_set_random_seed(3);
        CornuModel *model = images();
        expect_ok(cornu_model_save(model, here("images", ".onnx")));
        sizes[i] = files_read(here("images", ".onnx"), i ? b : a, sizeof a);
        cornu_model_free(model);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(a, b, sizes[0]);
}

static void refuse(CornuLayer *first, const char *message)
{
    CornuModel *model = cornu_sequential(.input_shape = { 5 });
    cornu_model_add(model, first);
    cornu_model_add(model, cornu_lstm(2));
    expect_error(cornu_model_save(model, here("refused", ".onnx")), CORNU_ERR_UNSUPPORTED, message);
    assert_int_equal(files_count(folder), 0);
    cornu_model_free(model);
}

static void test_refused(void **state)
{
    (void)state;
    files_end(state);
    assert_int_equal(files_begin(state), 0);
    refuse(cornu_embedding(10, 4, .mask_zero = true), "embedding: mask_zero is not available");
    CornuModel *model = cornu_sequential(.input_shape = { 5, 2 });
    cornu_model_add(model, cornu_lstm(2, .activation = CORNU_GELU));
    expect_error(cornu_model_save(model, here("refused", ".onnx")), CORNU_ERR_UNSUPPORTED,
                 "lstm: its activation is not available");
    cornu_model_free(model);
    assert_null(cornu_model_load("a.onnx"));
    expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED, "no whole models loaded as .onnx");
}

/* No memory, at any point of saving. */
static void test_no_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) skip();
    CornuModel *model = images();
    CornuStatus (*const save[])(CornuModel *, const char *) = { cornu_model_save,
                                                                cornu_model_save_weights };
    for (int i = 0; i < 2; i++) {
        CornuStatus status = CORNU_ERR_MEMORY;
        char        path[FILES_PATH];
        strcpy(path, here("no_memory", i ? ".npz" : ".onnx"));
        for (int n = 0; status != CORNU_OK; n++) {
            assert_int_not_equal(access(path, F_OK), 0);
            allocations_fail_after(n);
            status = save[i](model, path);
            allocations_fail_after(NEVER);
        }
        assert_int_equal(access(path, F_OK), 0);
    }
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_elsewhere),
        cmocka_unit_test(test_equal_bytes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
