/* Traced layers as cells of RNN, beside the library's own, and in TimeDistributed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../allocations.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../../skip.h"

enum { ROWS = 6, STEPS = 5, IN = 3, UNITS = 4 };

static float x_data[ROWS][STEPS][IN], y_data[ROWS][UNITS];

static int fill_data(void **state)
{
    files_begin(state);
    for (int i = 0; i < ROWS * STEPS * IN; i++)
        (&x_data[0][0][0])[i] = (float)(i * i % 19) / 19.0f - 0.4f;
    for (int i = 0; i < ROWS * UNITS; i++) (&y_data[0][0])[i] = (float)(i * 5 % 7) / 7.0f;
    for (int b = 1; b < ROWS; b += 2)       /* masked: the first step of some, the last ones */
        for (int c = 0; c < IN; c++)
            x_data[b][0][c] = x_data[b][STEPS - 1][c] = 0.0f;
    return 0;
}

typedef enum { PLAIN, ADDS } Kind;

/* tanh(x kernel + h recurrent + bias), SimpleRNN's. A cell that adds a loss, of 0, is recorded for
 * each step. */
static CornuLayer *cell(Kind kind)
{
    CornuLayer  *layer = cornu_traced(.class_name = "Cell", .name = "cell");
    CornuSymbol *kernel = cornu_traced_weight(layer, "{\"name\": \"kernel\", \"shape\": [3, 4]}");
    CornuSymbol *recurrent = cornu_traced_weight(layer, "{\"name\": \"recurrent_kernel\", "
                                                        "\"shape\": [4, 4]}");
    CornuSymbol *bias = cornu_traced_weight(layer, "{\"name\": \"bias\", \"shape\": [4]}");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, IN), "x");
    CornuSymbol *h = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, UNITS), "h");
    CornuSymbol *z = cornu_operation("add", NULL, cornu_operation("matmul", NULL, x, kernel),
                                     cornu_operation("matmul", NULL, h, recurrent));
    CornuSymbol *y = cornu_operation("tanh", NULL, cornu_operation("add", NULL, z, bias));
    CornuSymbol *none = kind == ADDS ? cornu_operation("multiply", "{\"args\": [null, 0.0]}", y)
                                     : NULL;
    expect_ok(cornu_traced_add(layer, .inputs = { x, h }, .outputs = { y, y },
                               .losses = { none }));
    return layer;
}

static CornuModel *model_of(CornuLayer *recurrent, bool masked)
{
    CornuSymbol *x = cornu_input(.shape = { CORNU_NONE, IN });
    CornuSymbol *y = masked ? cornu_call(cornu_masking(), x) : x;
    y = cornu_call(recurrent, y);
    CornuModel *model = cornu_model(.inputs = { x }, .outputs = { y });
    if (!model) fail_msg("%s", cornu_error_message());
    float values[64];
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        for (int k = 0; k < 64; k++) values[k] = (float)((i * 31 + k * 7) % 13) / 13.0f - 0.45f;
        expect_ok(cornu_weight_write(weight, cornu_array_from(values, weight->type)));
    }
    expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.1),
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    return model;
}

static void results(CornuModel *model, float before[ROWS][UNITS], float after[ROWS][UNITS])
{
    const CornuArray x = cornu_array(x_data, CORNU_F32, ROWS, STEPS, IN);
    const CornuArray y = cornu_array(y_data, CORNU_F32, ROWS, UNITS);
    expect_ok(cornu_predict(model, .x = x, .verbose = CORNU_SILENT,
                            .to = cornu_array(before, CORNU_F32, ROWS, UNITS)));
    CornuHistory *history = cornu_fit(model, .x = x, .y = y, .epochs = 4, .batch_size = ROWS,
                                      .no_shuffle = true, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
    expect_ok(cornu_predict(model, .x = x, .verbose = CORNU_SILENT,
                            .to = cornu_array(after, CORNU_F32, ROWS, UNITS)));
}

static void expect_near(float found[ROWS][UNITS], float wanted[ROWS][UNITS])
{
    for (int i = 0; i < ROWS * UNITS; i++)
        assert_float_equal((&found[0][0])[i], (&wanted[0][0])[i], 2e-6f);
}

/* A loop, and all steps recorded, compute what SimpleRNN does, forth and back, masked and not. */
static void they_are_simple_rnns(void **state)
{
    (void)state;
    for (int which = 0; which < 8; which++) {
        const Kind  kind = which & 1 ? ADDS : PLAIN;
        const bool  masked = which & 2, back = which & 4;
        float       wanted[2][ROWS][UNITS], found[2][ROWS][UNITS];
        CornuModel *plain = model_of(cornu_simple_rnn(UNITS, .go_backwards = back), masked);
        CornuModel *own = model_of(cornu_rnn(.cell = cell(kind), .go_backwards = back), masked);
        results(plain, wanted[0], wanted[1]);
        results(own, found[0], found[1]);
        expect_near(found[0], wanted[0]);
        expect_near(found[1], wanted[1]);
        cornu_model_free(plain), cornu_model_free(own);
    }
}

/* Each step draws numbers of its own: dropout of 0.5 keeps half of what it kept in another step. */
static void steps_draw_apart(void **state)
{
    (void)state;
    CornuLayer  *layer = cornu_traced(.class_name = "Keeps", .name = "keeps");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, 64), "x");
    CornuSymbol *h = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, 64), "h");
    CornuSymbol *y = cornu_call(cornu_dropout(0.5), x);
    expect_ok(cornu_traced_add(layer, .inputs = { x, h }, .outputs = { y, h }));
    CornuModel *model = cornu_sequential(.input_shape = { STEPS, 64 });
    cornu_model_add(model, cornu_rnn(.cell = layer, .return_sequences = true));
    static float ones[ROWS][STEPS][64], out[ROWS][STEPS][64];
    for (int i = 0; i < ROWS * STEPS * 64; i++) (&ones[0][0][0])[i] = 1.0f;
    CornuDevice *device = cornu_device_open("cpu");
    expect_ok(cornu_model_place(model, device));
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_input(graph, cornu_type(CORNU_F32, ROWS, STEPS, 64)), *made;
    CornuCall    call = { .graph = graph, .training = true };
    cornu_model_call_many(model, &in, 1, &call, &made, 1);
    if (!made) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_graph_feed(in, cornu_array(ones, CORNU_F32, ROWS, STEPS, 64)));
    expect_ok(cornu_run(graph, (CornuTensor *[]){ made }, 1,
                        (CornuArray[]){ cornu_array(out, CORNU_F32, ROWS, STEPS, 64) }));
    int alike = 0;
    for (int i = 0; i < ROWS * 64; i++)
        alike += (out[i / 64][0][i % 64] > 0.0f) == (out[i / 64][1][i % 64] > 0.0f);
    assert_in_range(alike, ROWS * 64 * 4 / 10, ROWS * 64 * 6 / 10);
    cornu_graph_free(graph), cornu_model_free(model), cornu_device_close(device);
}

/* States with which a cell begins: 1 where SimpleRNN has 0; and files keep them. */
static void cells_begin(void **state)
{
    (void)state;
    float        wanted[2][ROWS][UNITS], found[2][ROWS][UNITS];
    CornuLayer  *layer = cell(PLAIN);
    CornuSymbol *column = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, 1), "column");
    CornuSymbol *one = cornu_operation("repeat", "{\"args\": [null, 4], \"axis\": 1}",
                                       cornu_operation("ones_like", NULL, column));
    expect_ok(cornu_traced_add(layer, .inputs = { column }, .outputs = { one },
                               .computes_states = true));
    CornuModel  *own = model_of(cornu_rnn(.cell = layer), false);
    CornuSymbol *x = cornu_input(.shape = { STEPS, IN }), *h = cornu_input(.shape = { UNITS });
    CornuModel  *plain = cornu_model(.inputs = { x, h },
                                     .outputs = { cornu_call(cornu_simple_rnn(UNITS), x, h) });
    float        values[64], ones[ROWS][UNITS];
    for (int i = 0; i < ROWS * UNITS; i++) (&ones[0][0])[i] = 1.0f;
    for (int i = 0; i < 3; i++) {
        const CornuArray array = cornu_array_from(values, cornu_model_weight(own, i)->type);
        expect_ok(cornu_weight_read(cornu_model_weight(own, i), array));
        expect_ok(cornu_weight_write(cornu_model_weight(plain, i), array));
    }
    results(own, found[0], found[1]);
    expect_ok(cornu_predict(plain, .xs = { cornu_array(x_data, CORNU_F32, ROWS, STEPS, IN),
                                           cornu_array(ones, CORNU_F32, ROWS, UNITS) },
                            .verbose = CORNU_SILENT,
                            .to = cornu_array(wanted, CORNU_F32, ROWS, UNITS)));
    expect_near(found[0], wanted[0]);
    const char *path = files_path(folder, "cell.safetensors");
    expect_ok(cornu_model_save(own, path));
    CornuModel *loaded = cornu_model_load(path);
    if (!loaded) fail_msg("%s", cornu_error_message());
    assert_string_equal(cornu_model_weight(loaded, 0)->path, "rnn/cell/kernel");
    expect_ok(cornu_predict(loaded, .x = cornu_array(x_data, CORNU_F32, ROWS, STEPS, IN),
                            .verbose = CORNU_SILENT,
                            .to = cornu_array(wanted, CORNU_F32, ROWS, UNITS)));
    assert_memory_equal(found[1], wanted[0], sizeof wanted[0]);
    cornu_model_free(loaded), cornu_model_free(plain), cornu_model_free(own);
}

static void others_are_refused(void **state)
{
    (void)state;
    CornuLayer  *layer = cornu_traced(.class_name = "A", .name = "a");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, IN), "x");
    expect_ok(cornu_traced_add(layer, .inputs = { x }, .outputs = { x }));
    expect_failure(cornu_rnn(.cell = layer, .name = "r"), CORNU_ERR_ARGUMENT,
                   "r: .cell has a Traced, expected LSTMCell");
}

/* Rows of a layer of its own that depend on each other are those of a step. */
static void steps_are_batches(void **state)
{
    (void)state;
    CornuLayer  *layer = cornu_traced(.class_name = "Centred", .name = "centred");
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, IN), "x");
    CornuSymbol *mean = cornu_operation("mean", "{\"args\": [null, 0]}", x);
    expect_ok(cornu_traced_add(layer, .inputs = { x },
                               .outputs = { cornu_operation("subtract", NULL, x, mean) }));
    CornuModel *model = cornu_sequential(.input_shape = { STEPS, IN });
    cornu_model_add(model, cornu_time_distributed(layer));
    float found[ROWS][STEPS][IN];
    expect_ok(cornu_predict(model, .x = cornu_array(x_data, CORNU_F32, ROWS, STEPS, IN),
                            .verbose = CORNU_SILENT,
                            .to = cornu_array(found, CORNU_F32, ROWS, STEPS, IN)));
    for (int i = 0; i < STEPS * IN; i++) {
        float sum = 0.0f;
        for (int b = 0; b < ROWS; b++) sum += (&x_data[b][0][0])[i];
        for (int b = 0; b < ROWS; b++)
            assert_float_equal((&found[b][0][0])[i], (&x_data[b][0][0])[i] - sum / ROWS,
                               1e-6f);
    }
    cornu_model_free(model);
}

static bool make_and_predict(void)
{
    static float found[ROWS][UNITS];
    CornuLayer  *own = cornu_traced(.class_name = "Cell", .name = "cell");
    CornuSymbol *kernel = own ? cornu_traced_weight(own, "{\"name\": \"k\", \"shape\": [3, 4]}")
                              : NULL;
    CornuSymbol *x = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, IN), "x");
    CornuSymbol *h = cornu_placeholder(cornu_type(CORNU_F32, CORNU_NONE, UNITS), "h");
    CornuSymbol *y = kernel && x && h ? cornu_operation("add", NULL, cornu_operation(
                                                            "matmul", NULL, x, kernel), h) : NULL;
    const bool   made = y && !cornu_traced_add(own, .inputs = { x, h }, .outputs = { y, y });
    CornuModel  *model = made ? cornu_sequential(.input_shape = { STEPS, IN }) : NULL;
    if (!model) cornu_layer_free(own);
    else cornu_model_add(model, cornu_rnn(.cell = own));
    const bool done = model &&
        !cornu_predict(model, .x = cornu_array(x_data, CORNU_F32, ROWS, STEPS, IN),
                       .verbose = CORNU_SILENT, .to = cornu_array(found, CORNU_F32, ROWS, UNITS));
    cornu_model_free(model);
    return done;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int64_t allowed = 0;; allowed += 1 + allowed / 100) {
        allocations_fail_after(allowed);
        const bool        made = make_and_predict();
        const CornuStatus status = cornu_error_status();
        allocations_fail_after(INT64_MAX);
        cornu_error_take();
        cornu_clear_session();
        if (made) break;
        if (status != CORNU_ERR_MEMORY && status != CORNU_ERR_DEVICE)
            fail_msg("after %lld allocations: %s: %s", (long long)allowed,
                     cornu_status_name(status), cornu_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_are_simple_rnns, fill_data, files_end),
        cmocka_unit_test(steps_draw_apart),
        cmocka_unit_test_setup_teardown(cells_begin, fill_data, files_end),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test_setup_teardown(steps_are_batches, fill_data, files_end),
        cmocka_unit_test_setup_teardown(memory_may_run_out_anywhere, fill_data, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
