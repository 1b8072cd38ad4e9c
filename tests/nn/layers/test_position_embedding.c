/* Position embeddings: the output is the table's rows, its gradient the sum over the batch; fewer
 * and more steps than positions; files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../golden.h"

enum { ROWS = 8, STEPS = 4, POSITIONS = 6, CHANNELS = 2 };

static CornuModel *model_of(int64_t steps)
{
    CornuSymbol *x = cornu_input(.shape = { steps, CHANNELS });
    CornuSymbol *y = cornu_call(cornu_position_embedding(POSITIONS, .name = "position"), x);
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_add(), x, y) });
}

static void gives_and_learns_rows(CornuDevice *device)
{
    float x[ROWS][STEPS][CHANNELS] = { { { 0 } } }, y[ROWS][STEPS][CHANNELS];
    float start[POSITIONS][CHANNELS], after[POSITIONS][CHANNELS];
    CornuModel  *model = model_of(STEPS);
    CornuWeight *table = cornu_model_find_weight(model, "position/embeddings");
    assert_non_null(table);
    for (int t = 0; t < POSITIONS; t++)
        for (int c = 0; c < CHANNELS; c++) start[t][c] = (float)(1 + t) - 4.0f * (float)c;
    expect_ok(cornu_weight_write(table, cornu_array(start, CORNU_F32, POSITIONS, CHANNELS)));
    expect_ok(cornu_compile(model, .device = device, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .optimizer = cornu_sgd(.learning_rate = 1.0)));
    const CornuArray in = cornu_array(x, CORNU_F32, ROWS, STEPS, CHANNELS);
    expect_ok(cornu_predict_on_batch(model, in, cornu_array(y, CORNU_F32, ROWS, STEPS, CHANNELS)));
    for (int b = 0; b < ROWS; b++)
        for (int t = 0; t < STEPS; t++)
            for (int c = 0; c < CHANNELS; c++) assert_true(y[b][t][c] == start[t][c]);

    /* The loss is the mean of w^2 over steps and channels: its derivative is
     * 2 w / (STEPS CHANNELS). */
    expect_ok(cornu_train_on_batch(model, in, in, NULL));
    expect_ok(cornu_weight_read(table, cornu_array(after, CORNU_F32, POSITIONS, CHANNELS)));
    for (int t = 0; t < POSITIONS; t++)
        for (int c = 0; c < CHANNELS; c++) {
            const double kept = t < STEPS ? 1.0 - 2.0 / (STEPS * CHANNELS) : 1.0;
            assert_float_equal(after[t][c], kept * start[t][c], 1e-5);
        }
    cornu_model_free(model);
}

static void rows_of_the_table(void **state)
{
    static const char *const names[] = { "reference", "cpu", "tpu" };
    (void)state;
    expect_ok(cornu_set_dtype_policy("float32"));
    for (int i = 0; i < 3; i++) {
        CornuDevice *device = cornu_device_open(names[i]);
        assert_non_null(device);
        gives_and_learns_rows(device);
        cornu_device_close(device);
    }
}

/* An output that does not depend on the data has as many rows as they, on shards too. */
static void positions_alone_are_predicted(void **state)
{
    (void)state;
    static const char *const names[] = { "reference", "cpu", "tpu" };
    for (int i = 0; i < 3; i++) {
        float x[ROWS][STEPS][CHANNELS] = { { { 0 } } }, y[ROWS][STEPS][CHANNELS];
        float table[POSITIONS][CHANNELS];
        CornuDevice *device = cornu_device_open(.name = names[i], .shards = i == 2 ? 4 : 1);
        CornuSymbol *in = cornu_input(.shape = { STEPS, CHANNELS });
        CornuSymbol *out = cornu_call(cornu_position_embedding(POSITIONS), in);
        CornuModel  *model = cornu_model(.inputs = { in }, .outputs = { out });
        expect_ok(cornu_compile(model, .device = device, .loss = CORNU_MEAN_SQUARED_ERROR));
        expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                    cornu_array(table, CORNU_F32, POSITIONS, CHANNELS)));
        expect_ok(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, ROWS, STEPS, CHANNELS),
                                         cornu_array(y, CORNU_F32, ROWS, STEPS, CHANNELS)));
        for (int b = 0; b < ROWS; b++) assert_memory_equal(y[b], table, sizeof y[b]);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

static void more_steps_are_refused(void **state)
{
    (void)state;
    assert_null(model_of(POSITIONS + 1));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE,
                 "position: the input is (None, 7, 2), expected (B, T, C) with at most 6 steps");
    assert_null(cornu_position_embedding(0));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".sequence_length is 0");
}

static void a_clone_is_alike(void **state)
{
    (void)state;
    CornuModel *model = model_of(POSITIONS), *clone = cornu_model_clone(model);
    assert_non_null(clone);
    assert_non_null(cornu_model_find_weight(clone, "position/embeddings"));
    assert_int_equal(cornu_model_parameters(clone), POSITIONS * CHANNELS);
    cornu_model_free(model);
    cornu_model_free(clone);
}

/* Any number of steps up to that of positions, also of few, and in a model in a model. */
static void of_unknown_steps(void **state)
{
    static const int64_t positions[] = { 2, 3, 8, 9, 100, 600 };
    (void)state;
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        CornuSymbol *in = cornu_input(.shape = { CORNU_NONE, 2 });
        CornuLayer  *layer = cornu_position_embedding(positions[i]);
        CornuModel  *inner = cornu_model(.inputs = { in }, .outputs = { cornu_call(layer, in) });
        CornuSymbol *x = cornu_input(.shape = { CORNU_NONE, 2 });
        CornuModel  *model = cornu_model(
            .inputs = { x }, .outputs = { cornu_call(cornu_as_layer(inner), x) });
        float        data[4] = { 0 }, y[4];
        cornu_model_free(inner);
        if (!model) fail_msg("%s", cornu_error_message());
        assert_true(cornu_symbol_shape(cornu_model_output(model, 0)).extent[1] == CORNU_NONE);
        expect_ok(cornu_predict_on_batch(model, cornu_array(data, CORNU_F32, 1, 2, 2),
                                         cornu_array(y, CORNU_F32, 1, 2, 2)));
        cornu_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_table),
        cmocka_unit_test(of_unknown_steps),
        cmocka_unit_test(positions_alone_are_predicted),
        cmocka_unit_test(more_steps_are_refused),
        cmocka_unit_test(a_clone_is_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
