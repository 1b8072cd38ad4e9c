/* A device that is closed before what was made on it goes on for that: models train and predict
 * with the same bits, and what is left may be freed in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/device_internal.h"
#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };
enum { DEVICES = 3, ROWS = 4, FEATURES = 3, CLASSES = 2 };

static float   x_data[ROWS][FEATURES];
static int32_t y_data[ROWS] = { 0, 1, 1, 0 };

static CornuArray rows_x(void) { return cornu_array(x_data, CORNU_F32, ROWS, FEATURES); }
static CornuArray rows_y(void) { return cornu_array(y_data, CORNU_I32, ROWS); }

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS * FEATURES; i++) (&x_data[0][0])[i] = (float)(i * i % 11) / 11.0f;
    return 0;
}

static CornuModel *model_on(CornuDevice *device)
{
    cornu_set_random_seed(4);
    CornuModel *model = cornu_sequential(.name = "kept", .input_shape = { FEATURES });
    expect_ok(cornu_model_add(model, cornu_dense(5, .activation = CORNU_RELU)));
    expect_ok(cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX)));
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_adam(),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

static void train(CornuModel *model)
{
    CornuHistory *history = cornu_fit(model, .x = rows_x(), .y = rows_y(), .epochs = 2,
                                      .verbose = CORNU_SILENT);
    expect_ok(history ? CORNU_OK : cornu_error_take());
    cornu_history_free(history);
}

/* Closed before the first step, and between two. */
static void models_go_on(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        float y[3][ROWS][CLASSES];
        for (int when = 0; when < 3; when++) {   /* 2: after all */
            CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
            CornuModel  *model = model_on(device);
            if (when == 0) cornu_device_close(device);
            train(model);
            if (when == 1) cornu_device_close(device);
            train(model);
            expect_ok(cornu_predict(model, .x = rows_x(), .verbose = CORNU_SILENT,
                                    .to = cornu_array(y[when], CORNU_F32, ROWS, CLASSES)));
            assert_string_equal(cornu_device_name(cornu_model_device(model)), devices[d]);
            cornu_model_free(model);
            if (when == 2) cornu_device_close(device);
        }
        assert_memory_equal(y[0], y[2], sizeof y[0]);
        assert_memory_equal(y[1], y[2], sizeof y[1]);
    }
}

/* Also a model that was only compiled, moved away, or shares its layers with another. */
static void other_models_may_be_freed(void **state)
{
    (void)state;
    CornuDevice *devices_of[2] = { cornu_device_open("cpu"),
                                   cornu_device_open("tpu", .shards = 2) };
    CornuModel  *first = cornu_sequential(), *second = cornu_sequential();
    CornuLayer  *shared = cornu_dense(2);
    expect_ok(cornu_model_add(first, shared));
    expect_ok(cornu_compile(first, .device = devices_of[0], .loss = CORNU_MEAN_SQUARED_ERROR));
    cornu_device_close(devices_of[0]);
    expect_ok(cornu_model_build(first, cornu_shape(3)));
    expect_ok(cornu_model_add(second, shared));
    cornu_model_free(first);
    expect_ok(cornu_compile(second, .device = devices_of[1], .loss = CORNU_MEAN_SQUARED_ERROR));
    cornu_device_close(devices_of[1]);
    expect_ok(cornu_model_move(second, NULL));
    assert_string_equal(cornu_device_name(cornu_model_device(second)), "cpu");
    cornu_model_free(second);
}

static void strategies_and_predictors_too(void **state)
{
    (void)state;
    float          y[2][ROWS][CLASSES];
    CornuStrategy *strategy = cornu_tpu_strategy(.num_shards = 2);
    CornuModel    *model = NULL;
    CORNU_SCOPE(strategy) model = model_on(NULL);
    cornu_strategy_free(strategy);
    train(model);
    CornuPredictor *predictor = cornu_predictor(model);
    expect_ok(cornu_predict(model, .x = rows_x(), .verbose = CORNU_SILENT,
                            .to = cornu_array(y[0], CORNU_F32, ROWS, CLASSES)));
    cornu_model_free(model);
    const CornuArray x = rows_x(), to = cornu_array(y[1], CORNU_F32, ROWS, CLASSES);
    expect_ok(cornu_predictor_predict(predictor, &x, &to));
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    cornu_predictor_free(predictor);
}

/* Graphs, variables, buffers, programs and their twins, freed last to first and first to last. */
static void parts_keep_it(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++)
        for (int order = 0; order < 2; order++) {
            const CornuType type = cornu_type(CORNU_F32, 4);
            float           values[4] = { 1, 2, 3, 4 }, out[4];
            CornuDevice    *device = cornu_device_open(devices[d], .shards = 1);
            assert_int_equal(atomic_load(&device->owners), 1);
            CornuVariable *variable = cornu_variable_create(device, type, "v");
            CornuBuffer   *in = cornu_buffer_create(device, type), *to = cornu_buffer_create(device,
                                                                                             type);
            CornuGraph    *graph = cornu_graph_create(device);
            CornuProgram  *program = cornu_program_create();
            CornuValue     x, y;
            expect_ok(cornu_program_input(program, type, &x));
            expect_ok(cornu_program_record(program, CORNU_OP_NEGATIVE, NULL, &x, 1, &y));
            expect_ok(cornu_program_output(program, y, -1));
            CornuExecutable *executable = cornu_device_compile(device, program), *twin = NULL;
            if (cornu_device_runs_twins(device)) twin = cornu_executable_twin(executable, &in);
            cornu_program_free(program);
            cornu_device_close(device);

            expect_ok(cornu_variable_write(variable, cornu_array_from(values, type)));
            CornuTensor *twice = cornu_op_scale(cornu_read(graph, variable), 2.0);
            CornuArray   array = cornu_array_from(out, type);
            expect_ok(cornu_run(graph, &twice, 1, &array));
            assert_true(out[3] == 8.0f);
            expect_ok(cornu_buffer_write(in, cornu_array_from(values, type)));
            expect_ok(cornu_executable_run(twin ? twin : executable, &in, &to));
            expect_ok(cornu_buffer_read(to, array));
            assert_true(out[3] == -4.0f);
            if (order == 0) cornu_graph_free(graph), cornu_variable_free(variable);
            cornu_executable_release(executable);
            cornu_executable_release(twin);
            if (order == 1) cornu_graph_free(graph), cornu_variable_free(variable);
            cornu_buffer_free(in);
            assert_int_equal(atomic_load(&device->owners), 1);   /* the last one */
            cornu_buffer_free(to);
        }
}

/* A second close, while the device lives, takes nothing from the others. */
static void closing_twice_is_ignored(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = model_on(device);
    cornu_device_close(device);
    cornu_device_close(device);
    train(model);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_go_on),
        cmocka_unit_test(other_models_may_be_freed),
        cmocka_unit_test(strategies_and_predictors_too),
        cmocka_unit_test(parts_keep_it),
        cmocka_unit_test(closing_twice_is_ignored),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
