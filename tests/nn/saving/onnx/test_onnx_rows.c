/* What axis 0 of ONNX graphs is: rows that stay apart are cut into batches, rows that depend on
 * each other are computed at once, and graphs without a batch are functions, which run once.
 * Numbers are onnxruntime's (tests/golden/make_onnx_rows.py). */
#include "../../../../nn/cornu.h"
#include "../../../../nn/model/model_internal.h"
#include "../../../datasets/files.h"
#include "../../../expect.h"
#include "../../golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN "tests/golden/onnx_rows/"
enum { MOST = 3 };

static const char *const apart[] = {
    "apart_attention", "apart_gru", "apart_height", "apart_image", "apart_lengths", "apart_loop",
    "apart_lstm", "apart_merged", "apart_names", "apart_where", "apart_windows", "apart_words",
};
static const char *const meet[] = {
    "meet_count", "meet_count_of_power", "meet_cumsum", "meet_gram", "meet_lstm", "meet_maximum",
    "meet_mean", "meet_places", "meet_reverse", "meet_size", "meet_softmax",
};
static const struct { const char *name, *misfit; } functions[] = {
    { "function_anchors", "the output anchors of g is (3, 2)" },
    { "function_best", "the output y of g is (2, 4)" },
    { "function_fixed_time", "the output y of g is (7, None, 3)" },
    { "function_halves", "the output y of g is (None, 2)" },
    { "function_of_nodes", "the input edges of g is (2, None)" },
    { "function_one_number", "the output y of g is ()" },
    { "function_one_row", "the input h0 of g is (2, 1, 3)" },
    { "function_scalar", "the input sr of g is ()" },
    { "function_scalars", "the input a of g is ()" },
    { "function_state", "the input state of g is (2, None, 3)" },
    { "function_time_major", "the output y of g is (None, None, 3)" },
    { "function_twelve", "the output y of g is (1, 2)" },
    { "function_two_things", "the input k of g is (None, 4)" },
    { "function_unnamed", "the input state of g is (2, None, 3)" },
};
#define COUNT(list) (int)(sizeof(list) / sizeof *(list))

typedef struct {
    CornuArray x[MOST + 1], p[MOST + 1], got[MOST + 1];
    int        xs, ps;
} Data;

static int collect(const CornuNpz *file, char letter, CornuArray to[MOST])
{
    int count = 0;
    for (; count < MOST; count++) {
        char name[8];
        snprintf(name, sizeof name, "%c%d", letter, count);
        const CornuNamedArray *found = cornu_npz_find(file, name);
        if (!found) break;
        const size_t bytes = cornu_type_bytes(found->array.type);
        to[count] = (CornuArray){ found->array.type, malloc(bytes + 1) };
        memcpy(to[count].data, found->array.data, bytes);
    }
    return count;
}

static Data read_data(const char *name)
{
    char path[100];
    Data data = { .xs = 0 };
    snprintf(path, sizeof path, GOLDEN "%s.npz", name);
    CornuNpz *file = cornu_npz_open(path);
    if (!file) fail_msg("%s", cornu_error_message());
    data.xs = collect(file, 'x', data.x);
    data.ps = collect(file, 'p', data.p);
    for (int i = 0; i < data.ps; i++) {   /* of integers, too, results are f32 */
        const CornuArray from = data.p[i];
        data.p[i].type.dtype = CORNU_F32;
        data.p[i].data = malloc(cornu_type_bytes(data.p[i].type) + 1);
        for (int64_t k = 0; k < cornu_type_count(from.type); k++)
            cornu_array_set(data.p[i], k, cornu_array_get(from, k));
        free(from.data);
    }
    for (int i = 0; i < data.ps; i++)
        data.got[i] = (CornuArray){ data.p[i].type,
                                    calloc(cornu_type_bytes(data.p[i].type) + 1, 1) };
    cornu_npz_close(file);
    return data;
}

static void free_data(Data *data)
{
    for (int i = 0; i < data->xs; i++) free(data->x[i].data);
    for (int i = 0; i < data->ps; i++) {
        free(data->p[i].data);
        free(data->got[i].data);
    }
}

static CornuModel *load(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, GOLDEN "%s.onnx", name);
    CornuModel *model = cornu_model_load(path);
    if (!model) fail_msg("%s", cornu_error_message());
    return model;
}

/* The results are onnxruntime's; they are cleared. */
static void expect_results(const char *name, Data *data)
{
    for (int i = 0; i < data->ps; i++) {
        expect_near(name, data->got[i].data, data->p[i], 1e-5);
        memset(data->got[i].data, 0, cornu_type_bytes(data->p[i].type));
    }
}

static CornuStatus predict(CornuModel *model, const Data *data, int64_t batch_size)
{
    CornuPredictConfig config = { .model = model, .batch_size = batch_size,
                                  .verbose = CORNU_SILENT };
    for (int i = 0; i < data->xs; i++) config.xs[i] = data->x[i];
    for (int i = 0; i < data->ps; i++) config.tos[i] = data->got[i];
    return cornu_predict_from(&config);
}

/* Of at most 8 rows at once. */
static void expect_predictor(const char *name, CornuModel *model, Data *data, bool cuts)
{
    CornuType       types[MOST];
    CornuPredictor *predictor = cornu_predictor(model, .max_batch_size = 8, .threads = 1);
    if (!predictor) fail_msg("%s: %s", name, cornu_error_message());
    if (cornu_predictor_output_types(predictor, data->x, types))
        fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < data->ps; i++) assert_true(cornu_type_equal(types[i], data->p[i].type));
    expect_ok(cornu_predictor_predict(predictor, data->x, data->got));
    expect_results(name, data);
    assert_int_equal(cornu_predictor_cuts(predictor), cuts);
    cornu_predictor_free(predictor);
}

static void test_apart(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(apart); i++) {
        Data        data = read_data(apart[i]);
        CornuModel *model = load(apart[i]);
        assert_false(cornu_model_is_function(model));
        for (int64_t size = 0; size < 8; size += 7) {
            if (predict(model, &data, size)) fail_msg("%s: %s", apart[i], cornu_error_message());
            expect_results(apart[i], &data);
        }
        assert_int_equal(model->rows, CORNU_ROWS_INDEPENDENT);
        expect_predictor(apart[i], model, &data, true);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* predict takes all 40 rows at once, and says so where it is told to cut them. */
static void test_meet(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(meet); i++) {
        Data        data = read_data(meet[i]);
        CornuModel *model = load(meet[i]);
        assert_false(cornu_model_is_function(model));
        if (predict(model, &data, 0)) fail_msg("%s: %s", meet[i], cornu_error_message());
        expect_results(meet[i], &data);
        expect_error(predict(model, &data, 7), CORNU_ERR_SHAPE,
                     "depend on each other");
        expect_error(predict(model, &data, 7), CORNU_ERR_SHAPE, "cut into 6 batches");
        expect_ok(predict(model, &data, 40));
        expect_results(meet[i], &data);
        expect_predictor(meet[i], model, &data, false);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* It is named where they meet. */
static void test_where(void **state)
{
    (void)state;
    Data        data = read_data("meet_maximum");
    CornuModel *model = load("meet_maximum");
    expect_error(predict(model, &data, 8), CORNU_ERR_SHAPE,
                 "top computes along axis 0 (reduce_max)");
    cornu_model_free(model);
    free_data(&data);
    data = read_data("meet_count");
    model = load("meet_count");
    expect_error(predict(model, &data, 8), CORNU_ERR_SHAPE,
                 "y computes with the number of rows (constant)");
    cornu_model_free(model);
    free_data(&data);
}

static void test_functions(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(functions); i++) {
        const char *name = functions[i].name;
        Data        data = read_data(name);
        CornuModel *model = load(name);
        assert_true(cornu_model_is_function(model));
        expect_error(predict(model, &data, 0), CORNU_ERR_UNSUPPORTED, functions[i].misfit);
        if (cornu_predict_on_batch_many(model, data.x, data.got))
            fail_msg("%s: %s", name, cornu_error_message());
        expect_results(name, &data);
        expect_predictor(name, model, &data, false);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* Extents that the file leaves open are what is given; others are refused. */
static void test_extents(void **state)
{
    float           x[2 * 4 * 9], y[9 * 2 * 3], before[7 * 2 * 3];
    CornuModel     *model = load("function_time_major");
    CornuPredictor *predictor = cornu_predictor(model, .threads = 1);
    (void)state;
    for (int i = 0; i < 72; i++) x[i] = (float)(i * 37 % 11);
    for (int64_t time = 7; time < 10; time += 2) {
        const CornuArray in = cornu_array(x, CORNU_F32, 2, 4, time);
        const CornuArray to = cornu_array(time == 7 ? before : y, CORNU_F32, time, 2, 3);
        expect_ok(cornu_predictor_predict(predictor, &in, &to));
    }
    const CornuArray wrong[] = { cornu_array(x, CORNU_F32, 2, 5, 7),
                                 cornu_array(x, CORNU_F32, 8, 4) };
    for (int i = 0; i < 2; i++) {
        const CornuArray to = cornu_array(y, CORNU_F32, 7, 2, 3);
        expect_error(cornu_predictor_predict(predictor, &wrong[i], &to), CORNU_ERR_SHAPE,
                     "the model's input (None, 4, None)");
    }
    cornu_predictor_free(predictor);
    cornu_model_free(model);
}

/* A device of four shards computes the same on each. */
static void test_shards(void **state)
{
    (void)state;
    static const char *const names[] = { "function_state", "function_scalar", "meet_maximum",
                                         "meet_cumsum" };
    CornuDevice *device = cornu_device_open("cpu", .shards = 4);
    assert_non_null(device);
    for (int i = 0; i < COUNT(names); i++) {
        Data            data = read_data(names[i]);
        CornuModel     *model = load(names[i]);
        CornuPredictor *predictor = cornu_predictor(model, .device = device);
        if (!predictor) fail_msg("%s: %s", names[i], cornu_error_message());
        if (cornu_predictor_predict(predictor, data.x, data.got))
            fail_msg("%s: %s", names[i], cornu_error_message());
        expect_results(names[i], &data);
        cornu_predictor_free(predictor);
        cornu_model_free(model);
        free_data(&data);
    }
    cornu_device_close(device);
}

/* ---- Training ---- */

/* In one batch of all rows, but not in several. */
static void test_fit(void **state)
{
    (void)state;
    Data        data = read_data("meet_lstm");
    CornuModel *model = load("meet_lstm");
    double      loss;
    expect_ok(cornu_compile(model, .optimizer = cornu_optimizer("sgd"),
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_failure(cornu_fit(model, .x = data.x[0], .y = data.p[0], .verbose = CORNU_SILENT),
                   CORNU_ERR_SHAPE, "fit: the rows of g depend on each other");
    CornuHistory *history = cornu_fit(model, .x = data.x[0], .y = data.p[0], .batch_size = 40,
                                      .verbose = CORNU_SILENT);
    assert_non_null(history);
    cornu_history_free(history);
    expect_ok(cornu_evaluate(model, .x = data.x[0], .y = data.p[0], .results = &loss,
                             .verbose = CORNU_SILENT));
    assert_true(loss < 1e-6);   /* the golden numbers are its own */
    expect_error(cornu_evaluate(model, .x = data.x[0], .y = data.p[0], .batch_size = 8),
                 CORNU_ERR_SHAPE, "evaluate: the rows of g depend on each other");
    cornu_model_free(model);
    free_data(&data);
}

static void test_fit_function(void **state)
{
    (void)state;
    Data        data = read_data("function_time_major");
    CornuModel *model = load("function_time_major");
    expect_ok(cornu_compile(model, .optimizer = cornu_optimizer("sgd"),
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_failure(cornu_fit(model, .x = data.x[0], .y = data.p[0]), CORNU_ERR_UNSUPPORTED,
                   "fit: expected a model of batches");
    expect_error(cornu_evaluate(model, .x = data.x[0], .y = data.p[0]), CORNU_ERR_UNSUPPORTED,
                 "evaluate: expected a model of batches");
    expect_error(cornu_train_on_batch(model, data.x[0], data.p[0]), CORNU_ERR_UNSUPPORTED,
                 "expected a model of batches");
    cornu_model_free(model);
    free_data(&data);
}

/* ---- Files ---- */

static void test_saved(void **state)
{
    static const char *const names[] = { "function_scalar", "function_state", "function_one_number",
                                         "meet_softmax" };
    char path[200];
    (void)state;
    snprintf(path, sizeof path, "%s", files_path(folder, "saved.safetensors"));
    for (int i = 0; i < COUNT(names); i++) {
        Data        data = read_data(names[i]);
        CornuModel *model = load(names[i]);
        const bool  function = cornu_model_is_function(model);
        expect_ok(cornu_model_save(model, path));
        for (int k = 0; k < 2 && function; k++)
            expect_error(cornu_model_save(model, files_path(folder, k ? "saved.tflite"
                                                                      : "saved.onnx")),
                         CORNU_ERR_UNSUPPORTED, "axis 0 of g is not one batch");
        cornu_model_free(model);
        model = cornu_model_load(path);
        if (!model) fail_msg("%s: %s", names[i], cornu_error_message());
        assert_int_equal(cornu_model_is_function(model), function);
        expect_predictor(names[i], model, &data, false);
        cornu_model_free(model);
        free_data(&data);
    }
}

/* One row at a time, whatever the number of rows. */
static void test_fixed_row(void **state)
{
    float       x[5][6], y[5][4], each[4];
    CornuModel *model = load("fixed_row");
    (void)state;
    for (int i = 0; i < 30; i++) x[i / 6][i % 6] = (float)(i * 37 % 11) / 4;
    expect_ok(cornu_predict(model, .x = cornu_array(x, CORNU_F32, 5, 2, 3),
                            .to = cornu_array(y, CORNU_F32, 5, 4), .verbose = CORNU_SILENT));
    for (int i = 0; i < 5; i++) {
        expect_ok(cornu_predict_on_batch(model, cornu_array(x[i], CORNU_F32, 1, 2, 3),
                                         cornu_array(each, CORNU_F32, 1, 4)));
        assert_memory_equal(each, y[i], sizeof each);
    }
    cornu_model_free(model);
}

static void test_input_shapes(void **state)
{
    (void)state;
    Data        data = read_data("apart_height");
    CornuModel *model = cornu_model_load(GOLDEN "apart_height.onnx",
                                         .input_shapes = { { CORNU_NONE, 3, 48, 16 } });
    assert_non_null(model);
    const CornuShape shape = cornu_model_input_shape(model);
    assert_int_equal(shape.extent[2], 48);
    assert_int_equal(shape.extent[3], 16);
    expect_ok(predict(model, &data, 0));
    expect_results("apart_height", &data);
    cornu_model_free(model);
    free_data(&data);
    /* Of one name: the batch of both inputs. */
    model = cornu_model_load(GOLDEN "function_state.onnx", .input_shapes = { { 5, 4 } });
    assert_non_null(model);
    assert_int_equal(cornu_model_input(model, 1)->type.shape.extent[1], 5);
    cornu_model_free(model);
    expect_unloaded(cornu_model_load(GOLDEN "apart_height.onnx",
                                     .input_shapes = { { CORNU_NONE, 4, 48, 16 } }),
                    CORNU_ERR_SHAPE, "input_shapes[0] is (None, 4, 48, 16), the input x of the "
                    "file is (None, 3, None, None)");
    expect_unloaded(cornu_model_load(GOLDEN "apart_height.onnx", .input_shapes = { { 1, 3 } }),
                    CORNU_ERR_SHAPE, "input_shapes[0] is (1, 3)");
    expect_unloaded(cornu_model_load(GOLDEN "apart_height.onnx",
                                     .input_shapes = { { 0 }, { 1, 3 } }),
                    CORNU_ERR_ARGUMENT, "the file has 1 inputs");
    expect_unloaded(cornu_model_load(GOLDEN "apart_height.onnx",
                                     .input_shapes = { { CORNU_NONE, 3, 40, 16 } }),
                    CORNU_ERR_SHAPE, "c (Conv): axis 2 has 2 elements");
}

/* ---- Untrusted files ---- */

/* A scalar input of a layer that needs rows. */
static void test_scalar_of_layer(void **state)
{
    static const char json[] =
        "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":["
        "{\"class_name\":\"InputLayer\",\"name\":\"x\",\"config\":{\"batch_shape\":[],"
        "\"whole\":true,\"dtype\":\"float32\",\"name\":\"x\"},\"inbound_nodes\":[]},"
        "{\"class_name\":\"Dense\",\"name\":\"d\",\"config\":{\"name\":\"d\",\"units\":2},"
        "\"inbound_nodes\":[{\"args\":[{\"class_name\":\"__keras_tensor__\",\"config\":{"
        "\"shape\":[],\"dtype\":\"float32\",\"keras_history\":[\"x\",0,0]}}],\"kwargs\":{}}]}],"
        "\"input_layers\":[[\"x\",0,0]],\"output_layers\":[[\"d\",0,0]]}}";
    (void)state;
    expect_unloaded(cornu_model_from_json(json), CORNU_ERR_SHAPE, "is a scalar");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_apart), TEST(test_meet), TEST(test_where), TEST(test_functions),
        TEST(test_extents), TEST(test_shards), TEST(test_fit), TEST(test_fit_function),
        TEST(test_saved), TEST(test_fixed_row), TEST(test_input_shapes),
        TEST(test_scalar_of_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
