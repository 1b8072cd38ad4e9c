/* Keras' files: those that real Keras saved (tests/golden/files) load, predict and train as there;
 * those saved here load there. */
#include "../../../device/memory_internal.h"
#include "../../../device/files/zip_internal.h"
#include "../../../nn/saving/keras_internal.h"
#include "golden_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../skip.h"
#include "keras_python.h"

enum { ROWS = 8, MOST = 2, STEPS = 4 };

static const char *const cases[] = { "sequence", "images", "branches" };
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Data of a case ---- */

typedef struct {
    CornuNpz  *file;
    CornuArray x[MOST], y[MOST], p[MOST], losses;
} Data;

static CornuArray array_of(CornuNpz *file, char letter, int i)
{
    char name[3] = { letter, (char)('0' + i), '\0' };
    const CornuNamedArray *found = cornu_npz_find(file, name);
    return found ? found->array : (CornuArray){ 0 };
}

static Data data_of(const char *name)
{
    Data data = { .file = cornu_npz_open(golden(name, ".npz")) };
    if (!data.file) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < MOST; i++) {
        data.x[i] = array_of(data.file, 'x', i);
        data.y[i] = array_of(data.file, 'y', i);
        data.p[i] = array_of(data.file, 'p', i);
    }
    const CornuNamedArray *losses = cornu_npz_find(data.file, "losses");
    if (losses) data.losses = losses->array;
    return data;
}

static void predict(CornuModel *model, const Data *data, float to[MOST][ROWS * 8])
{
    CornuArray out[MOST];
    for (int i = 0; i < MOST; i++) out[i] = cornu_array_from(to[i], data->p[i].type);
    expect_ok(cornu_predict_on_batch_many(model, data->x, out));
}

static void expect_predictions(CornuModel *model, const Data *data)
{
    float got[MOST][ROWS * 8];
    predict(model, data, got);
    for (int i = 0; i < cornu_model_output_count(model); i++)
        expect_near("predictions", got[i], data->p[i], 1e-5);
}

/* The loss of one more step. */
static float step(CornuModel *model, const Data *data)
{
    double values[16];
    expect_ok(cornu_model_reset_metrics(model));
    expect_ok(cornu_train_on_batch_many(model, data->x, data->y, values));
    return (float)values[0];
}

/* ---- Files that Keras saved ---- */

static void test_predicts_as_keras(void **state)
{
    const char *name = *state;
    static const char *const suffixes[] = { ".keras", ".h5" };
    Data        data = data_of(name);
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    for (int s = 0; s < 2; s++) {
        CornuModel *model = expect_model(cornu_model_load(golden(name, suffixes[s])));
        assert_string_equal(cornu_model_name(model), name);
        expect_ok(cornu_compile(model, .device = device));
        expect_predictions(model, &data);
        cornu_model_free(model);
    }
    cornu_npz_close(data.file);
}

static void set_to_zero(CornuModel *model)
{
    static float zeros[4096];
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        assert_true(cornu_type_bytes(weight->type) <= sizeof zeros);
        expect_ok(cornu_weight_write(weight, cornu_array_from(zeros, weight->type)));
    }
}

static void test_loads_weights_alone(void **state)
{
    const char *name = *state;
    static const char *const suffixes[] = { ".keras", ".weights.h5", ".h5" };
    Data        data = data_of(name);
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load(golden(name, ".keras")));
    expect_ok(cornu_compile(model, .optimizer = cornu_adagrad(), .device = device));
    for (int s = 0; s < 3; s++) {
        set_to_zero(model);
        expect_ok(cornu_model_load_weights(model, golden(name, suffixes[s])));
        expect_predictions(model, &data);
    }
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

/* A model of a class that only its Python program has cannot be loaded; its weights load into a
 * model of the same layers built here. */
static void test_weights_of_a_foreign_class(void **state)
{
    (void)state;
    Data data = data_of("nested");
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    assert_null(cornu_model_load(golden("nested", ".keras")));
    expect_error(cornu_error_status(), CORNU_ERR_UNSUPPORTED,
                 "the model's class is \"Nested\", expected Sequential or Functional");
    CornuSymbol *source = cornu_input(.shape = { 4 }), *x = source;
    for (int i = 0; i < 2; i++) {
        x = cornu_call(cornu_dense(5, .no_bias = true), x);
        x = cornu_call(cornu_dense(4, .activation = CORNU_TANH), x);
    }
    CornuModel *model = cornu_model(.inputs = { source }, .outputs = { x });
    expect_ok(cornu_compile(model, .device = device));
    expect_ok(cornu_model_load_weights(model, golden("nested", ".keras")));
    expect_predictions(model, &data);
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

/* Weights and the optimizer's variables in several files. */
static void test_shards(void **state)
{
    (void)state;
    Data data = data_of("images");
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load_compiled(golden("images", ".keras"), device));
    CornuVariable *iteration = cornu_optimizer_iteration(cornu_model_optimizer(model));
    double         steps;
    set_to_zero(model);
    expect_ok(cornu_variable_set(iteration, 0));
    expect_ok(cornu_model_load_weights(model, golden("images", ".weights.json")));
    expect_predictions(model, &data);
    expect_ok(cornu_variable_get(iteration, &steps));
    assert_true(steps == 3.0);
    assert_float_equal(step(model, &data), ((const float *)data.losses.data)[0], 1e-4);
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

/* Ours: the optimizer's variables too, and a group of which each file has one array. */
static void test_written_shards(void **state)
{
    (void)state;
    Data data = data_of("images");
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load_compiled(golden("images", ".keras"), device));
    const char *path = here("written", ".weights.json");
    const double gib = 1024.0 * 1024.0 * 1024.0;
    CornuVariable *iteration = cornu_optimizer_iteration(cornu_model_optimizer(model));
    double         before, after;
    int64_t        largest = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const int64_t bytes = 4 * cornu_type_count(cornu_model_weight(model, i)->type);
        if (bytes > largest) largest = bytes;
    }
    expect_ok(cornu_variable_get(iteration, &before));
    expect_error(cornu_model_save_shards(model, path, (double)(largest - 1) / gib),
                 CORNU_ERR_ARGUMENT, "expected a larger max_shard_size");
    expect_error(cornu_model_save_shards(model, path, 0.0), CORNU_ERR_ARGUMENT,
                 "max_shard_size is 0 GiB");
    expect_error(cornu_model_save_shards(model, here("written", ".h5"), 1.0), CORNU_ERR_ARGUMENT,
                 "expected a name that ends in .weights.json");
    expect_ok(cornu_model_save_shards(model, path, (double)largest / gib));
    set_to_zero(model);
    expect_ok(cornu_variable_set(iteration, 0));
    expect_ok(cornu_model_load_weights(model, path));
    expect_predictions(model, &data);
    expect_ok(cornu_variable_get(iteration, &after));
    assert_true(after == before && before > 0.0);
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

/* The architecture as JSON, back and forth. */
static void test_json(void **state)
{
    (void)state;
    Data data = data_of("images");
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load(golden("images", ".keras")));
    char       *json = cornu_model_to_json(model);
    assert_non_null(json);
    CornuModel *again = expect_model(cornu_model_from_json(json));
    char       *same = cornu_model_to_json(again);
    assert_string_equal(json, same);
    expect_ok(cornu_compile(again, .device = device));
    expect_ok(cornu_model_load_weights(again, golden("images", ".keras")));
    expect_predictions(again, &data);
    assert_null(cornu_model_from_json("{"));
    expect_error(cornu_error_status(), CORNU_ERR_FORMAT, "model_from_json: ");
    assert_null(cornu_model_from_json("{\"class_name\": \"Dense\"}"));
    expect_error(cornu_error_status(), CORNU_ERR_UNSUPPORTED, "model_from_json: the model's class");
    free(json);
    free(same);
    cornu_model_free(again);
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

/* Keras' Input(()): the data are a number a row. */
static void test_sequential_of_numbers(void **state)
{
    (void)state;
    const char *json =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"numbers\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null], "
        "\"dtype\": \"float32\", \"name\": \"in\"}}, "
        "{\"class_name\": \"Rescaling\", \"config\": {\"name\": \"r\", \"scale\": 2.0}}, "
        "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"s\", "
        "\"target_shape\": [1]}}]}}";
    CornuModel *model = expect_model(cornu_model_from_json(json));
    float       x[3] = { 1, 2, 3 }, y[3];
    expect_ok(cornu_compile(model, .device = device));
    expect_ok(cornu_predict(model, .x = cornu_array(x, CORNU_F32, 3),
                            .to = cornu_array(y, CORNU_F32, 3, 1)));
    for (int i = 0; i < 3; i++) assert_float_equal(y[i], 2.0f * x[i], 0);
    cornu_model_free(model);
}

static void shards_fail(const char *map, const char *message)
{
    CornuModel *model = expect_model(cornu_model_load(golden("images", ".keras")));
    files_write(here("damaged", ".weights.json"), map, strlen(map));
    const CornuStatus status = cornu_model_load_weights(model, here("damaged", ".weights.json"));
    assert_int_not_equal(status, CORNU_OK);
    expect_error(status, status, message);
    cornu_model_free(model);
}

static void test_damaged_shards(void **state)
{
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    shards_fail("{", "json");
    shards_fail("{}", "there is no weight_map in it");
    shards_fail("{\"weight_map\": {\"/layers/dense/vars\": 3}}",
                "weight_map has something other than file names");
    shards_fail("{\"weight_map\": {\"/layers/dense/vars\": \"../a.weights.h5\"}}",
                "weight_map names \"../a.weights.h5\", expected a file of its folder");
    shards_fail("{\"weight_map\": {\"/layers/dense/vars\": [\"absent.weights.h5\"]}}",
                "absent.weights.h5");
    shards_fail("{\"weight_map\": {}}", "\"layers/conv2d/vars\" has 0 arrays in all files, the "
                "model's conv2d has 2");
}

/* A model compiled and not trained has no variables for weights in its file; here they are 0. */
static void test_untrained(void **state)
{
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[4] = { 0 };
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(
        cornu_model_load_compiled(golden("untrained", ".keras"), device));
    double rate, value;
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer(model), &rate));
    assert_true(rate == 0.25);
    assert_int_equal(cornu_model_optimizer_variable_count(model), 6);
    expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 2, 3),
                                   cornu_array(y, CORNU_F32, 2, 2), &value));
    cornu_model_free(model);
}

static void test_goes_on_as_keras(void **state)
{
    const char *name = *state;
    static const char *const suffixes[] = { ".keras", ".h5" };
    Data        data = data_of(name);
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    for (int s = 0; s < 2; s++) {
        float       losses[STEPS];
        CornuModel *model = expect_model(
            cornu_model_load_compiled(golden(name, suffixes[s]), device));
        double iteration;
        expect_ok(cornu_variable_get(cornu_optimizer_iteration(cornu_model_optimizer(model)),
                                     &iteration));
        assert_true(iteration == 3.0);
        for (int i = 0; i < STEPS; i++) losses[i] = step(model, &data);
        expect_near(name, losses, data.losses, 1e-4);
        cornu_model_free(model);
    }
    cornu_npz_close(data.file);
}

/* ---- Round trips ---- */

/* A loaded model trains bit for bit as the saved one, and is saved to the same bytes. */
static void test_round_trip(void **state)
{
    const char *name = *state;
    Data        data = data_of(name);
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load_compiled(golden(name, ".keras"), device));
    step(model, &data);
    expect_ok(cornu_model_set_class_names(model, &name, 1));
    expect_ok(cornu_model_set_note(model, "columns", "a,b"));
    expect_ok(cornu_model_save(model, here("a", ".keras")));
    CornuModel *loaded = expect_model(cornu_model_load_compiled(here("a", ".keras"), device));
    expect_ok(cornu_model_save(loaded, here("b", ".keras")));
    expect_equal_files(here("a", ".keras"), here("b", ".keras"));
    assert_string_equal(cornu_model_class_name(loaded, 0), name);
    assert_string_equal(cornu_model_note(loaded, "columns"), "a,b");
    assert_true(step(model, &data) == step(loaded, &data));
    expect_ok(cornu_model_save(model, here("a", ".h5")));
    CornuModel *older = expect_model(cornu_model_load_compiled(here("a", ".h5"), device));
    expect_ok(cornu_model_save(older, here("b", ".h5")));
    expect_equal_files(here("a", ".h5"), here("b", ".h5"));
    assert_string_equal(cornu_model_note(older, "columns"), "a,b");
    const float next = step(model, &data);
    assert_true(next == step(loaded, &data) && next == step(older, &data));
    cornu_model_free(older);
    static const char *const weights[] = { ".weights.h5", ".npz" };
    for (int i = 0; i < 2; i++) {
        step(model, &data);
        expect_ok(cornu_model_save_weights(model, here("a", weights[i])));
        expect_ok(cornu_model_load_weights(loaded, here("a", weights[i])));
        expect_ok(cornu_model_save_weights(loaded, here("b", weights[i])));
        expect_equal_files(here("a", weights[i]), here("b", weights[i]));
        assert_true(step(model, &data) == step(loaded, &data));
    }
    cornu_model_free(model);
    cornu_model_free(loaded);
    cornu_npz_close(data.file);
}

/* Keras reads the metadata first: the version of the format, and a date, which is constant so that
 * equal models are equal files. */
static void test_metadata(void **state)
{
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel    *model = expect_model(cornu_model_load(golden("images", ".keras")));
    unsigned char *text;
    size_t         size;
    expect_ok(cornu_model_save(model, here("a", ".keras")));
    CornuZip *zip = cornu__zip_open(here("a", ".keras"));
    assert_non_null(zip);
    expect_ok(cornu__zip_read(zip, cornu__zip_find(zip, "metadata.json"), &text, &size));
    json_t *metadata = json_loads((const char *)text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(metadata, "keras_version")), "3.15.0");
    assert_string_equal(json_string_value(json_object_get(metadata, "date_saved")),
                        "1980-01-01@00:00:00");
    assert_true(cornu__zip_find(zip, "config.json") >= 0);
    assert_true(cornu__zip_find(zip, "model.weights.h5") >= 0);
    assert_int_equal(cornu__zip_count(zip), 3);
    json_decref(metadata);
    cornu__release(text);
    cornu__zip_close(zip);
    cornu_model_free(model);
}

/* Every optimizer and schedule, with distinct values for all arguments, survives a round trip. */
static void test_optimizers(void **state)
{
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    static const double boundaries[] = { 3, 7 }, values[] = { 0.5, 0.25, 0.0 };
    CornuOptimizer *const all[] = {
        cornu_sgd(.schedule = cornu_exponential_decay(0.5, 7, 0.25, .staircase = true),
                  .momentum = 0.5, .nesterov = true, .clipvalue = 0.75),
        cornu_rmsprop(.schedule = cornu_inverse_time_decay(0.5, 7, 0.25), .rho = 0.5,
                      .momentum = 0.25, .epsilon = CORNU_ZERO, .centered = true),
        cornu_adam(.schedule = cornu_polynomial_decay(0.5, 7, CORNU_ZERO, 2.0, .cycle = true),
                   .beta_1 = CORNU_ZERO, .beta_2 = 0.5, .epsilon = 0.25, .amsgrad = true,
                   .use_ema = true, .ema_momentum = 0.75, .ema_overwrite_frequency = 5),
        cornu_adamw(.schedule = cornu_cosine_decay(0.5, 7, 0.125, 0.75, 3),
                    .weight_decay = CORNU_ZERO, .global_clipnorm = 2.0, .name = "decoupled"),
        cornu_adagrad(.schedule = cornu_cosine_decay_restarts(0.5, 7, 3.0, 0.5, 0.25),
                      .initial_accumulator_value = 0.25, .gradient_accumulation_steps = 3),
        cornu_adadelta(.schedule = cornu_piecewise_constant_decay(boundaries, values, 2),
                       .rho = 0.5, .loss_scale_factor = 4.0),
        cornu_adamax(.learning_rate = 0.5, .beta_1 = 0.25, .weight_decay = 0.125),
        cornu_nadam(.learning_rate = CORNU_ZERO, .beta_2 = 0.25, .clipnorm = 0.5),
        cornu_lion(.learning_rate = 0.5, .beta_1 = 0.25, .beta_2 = 0.125),
        cornu_loss_scale_optimizer(cornu_sgd(0.5), .initial_scale = 64,
                                   .dynamic_growth_steps = 3, .name = "scale"),
        cornu_ftrl(0.5),
        cornu_ftrl(.learning_rate = 0.5, .learning_rate_power = -0.25, .beta = 0.125,
                   .initial_accumulator_value = 0.75, .l1_regularization_strength = 1.5,
                   .l2_regularization_strength = 2.5, .l2_shrinkage_regularization_strength = 3.5),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 3 });
        cornu_model_add(model, cornu_dense(2, .name = "dense"));
        expect_ok(cornu_compile(model, .optimizer = all[i], .loss = CORNU_MEAN_SQUARED_ERROR,
                                .device = device));
        expect_ok(cornu_model_save(model, here("a", ".keras")));
        CornuModel *loaded = expect_model(cornu_model_load_compiled(here("a", ".keras"), device));
        const CornuOptimizer *a = cornu_model_optimizer(model), *b = cornu_model_optimizer(loaded);
        assert_ptr_equal(a->kind, b->kind);
        for (const CornuOptimizerField *field = a->kind->fields; field->name; field++)
            assert_memory_equal((const char *)a + field->in_self, (const char *)b + field->in_self,
                                field->kind == CORNU_ARGUMENT_FLAG ? sizeof(bool)
                                                                   : sizeof(double));
        assert_string_equal(cornu_optimizer_name(a), cornu_optimizer_name(b));
        assert_true(!a->schedule == !b->schedule);
        assert_true(a->schedule || a->learning_rate == b->learning_rate);
        assert_true(a->ema_momentum == b->ema_momentum && a->use_ema == b->use_ema);
        assert_true(a->initial_scale == b->initial_scale && a->growth_steps == b->growth_steps);
        expect_ok(cornu_model_save(loaded, here("b", ".keras")));
        expect_equal_files(here("a", ".keras"), here("b", ".keras"));
        cornu_model_free(model);
        cornu_model_free(loaded);
    }
}

/* Keras' LossScaleOptimizer lists neither Nadam's u_product nor Adafactor's numbers in place of
 * axes: 4 + 2 variables and two for each weight, one for a bias of Adafactor (counted in Keras).
 * u_product begins anew from Keras' files and goes on from ours. */
static CornuModel *with_scaled_loss(bool nadam)
{
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2, .name = "dense"));
    expect_ok(cornu_compile(model, .optimizer = cornu_loss_scale_optimizer(
        nadam ? cornu_nadam(0.1) : cornu_adafactor(0.1)),
        .loss = CORNU_MEAN_SQUARED_ERROR, .device = device));
    return model;
}

static double u_product(const CornuModel *model)
{
    double value;
    expect_ok(cornu_variable_get(cornu_model_optimizer(model)->number, &value));
    return value;
}

static void test_loss_scales_list_as_keras(void **state)
{
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[4] = { 1, 0, 0, 1 };
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    for (int nadam = 0; nadam < 2; nadam++) {
        CornuModel *model = with_scaled_loss(nadam), *other = with_scaled_loss(nadam);
        expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 2, 3),
                                       cornu_array(y, CORNU_F32, 2, 2)));
        assert_int_equal(cornu_model_optimizer_variable_count(model), 10);
        expect_ok(cornu_model_save(model, here("a", ".keras")));
        expect_ok(cornu_model_save(model, here("a", ".safetensors")));
        CornuModel *loaded = expect_model(cornu_model_load_compiled(here("a", ".keras"), device));
        assert_int_equal(cornu_model_optimizer_variable_count(loaded), 10);
        expect_ok(cornu_model_load_weights(other, here("a", ".safetensors")));
        if (nadam) {
            assert_true(u_product(model) < 0.9);
            assert_true(u_product(loaded) == 1.0);
            assert_true(u_product(other) == u_product(model));
        }
        cornu_model_free(loaded);
        cornu_model_free(other);
        cornu_model_free(model);
    }
}

/* Variables of several optimizers go into files in the order of the paths, in which JSON lists
 * them; another order of the map, and two of one class, change nothing. */
static void test_several_optimizers(void **state)
{
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[4] = { 1, 0, 0, 1 };
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    const CornuArray xs = cornu_array(x, CORNU_F32, 2, 3), ys = cornu_array(y, CORNU_F32, 2, 2);
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(4, .name = "first", .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dense(2, .name = "last"));
    expect_ok(cornu_compile(model, .optimizer = cornu_multi_optimizer(
        cornu_adam(0.1), { { "last/.*", cornu_sgd(0.1, .momentum = 0.9) },
                           { "first/bias", cornu_sgd(0.2, .momentum = 0.5) },
                           { "absent", cornu_lion() } }),
        .loss = CORNU_MEAN_SQUARED_ERROR, .device = device));
    expect_ok(cornu_train_on_batch(model, xs, ys));
    expect_ok(cornu_model_save(model, here("a", ".keras")));
    CornuModel *loaded = expect_model(cornu_model_load_compiled(here("a", ".keras"), device));
    expect_ok(cornu_model_save(loaded, here("b", ".keras")));
    expect_equal_files(here("a", ".keras"), here("b", ".keras"));
    for (int i = 0; i < 3; i++) {
        double a, b;
        expect_ok(cornu_train_on_batch(model, xs, ys, &a));
        expect_ok(cornu_train_on_batch(loaded, xs, ys, &b));
        if (i == 0) {
            expect_ok(cornu_model_reset_metrics(model));   /* it has a step more */
            expect_ok(cornu_model_reset_metrics(loaded));
        } else {
            assert_true(a == b);
        }
    }
    cornu_model_free(model);
    cornu_model_free(loaded);
}

/* ---- Real Keras on our files ---- */

/* A model built here, for the labels of `sequence`: layers whose weights are in parts, and
 * arguments of initializers. */
static CornuModel *attention(Data *data)
{
    static float  x[ROWS * 4 * 6];
    CornuSymbol  *in = cornu_input(.shape = { 4, 6 });
    CornuSymbol  *y = cornu_call(
        cornu_layer_normalization(.gamma_initializer = cornu_constant(0.5)), in);
    y = cornu_call(cornu_multi_head_attention(
        2, 3, .kernel_initializer = cornu_glorot_normal(9, { CORNU_ZERO }, { 1, 2 })), y, y);
    y = cornu_call(cornu_lstm(5, .kernel_initializer = cornu_variance_scaling(
                                     2, CORNU_FAN_AVG, CORNU_DISTRIBUTION_UNTRUNCATED_NORMAL),
                              .recurrent_initializer = cornu_orthogonal(0.9, 4)), y);
    y = cornu_call(cornu_dense(3, .activation = CORNU_SOFTMAX, .kernel_initializer =
                                   cornu_random_uniform(CORNU_ZERO, 0.5)), y);
    CornuModel *model = expect_model(cornu_model(.inputs = { in }, .outputs = { y }));
    for (int i = 0; i < ROWS * 4 * 6; i++) x[i] = (float)(i * 37 % 101) / 25 - 2;
    data->x[0] = cornu_array(x, CORNU_F32, ROWS, 4, 6);
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }, .device = device));
    return model;
}

static void write_case(const char *name)
{
    static const char *const names[] = { "x0", "x1", "y0", "y1", "p0", "p1" };
    const bool      made_here = !strcmp(name, "attention");
    Data            data = data_of(made_here ? "sequence" : name);
    float           got[MOST][ROWS * 8], losses[STEPS];
    CornuNamedArray arrays[7];
    int             count = 0;
    CornuModel     *model = made_here ? attention(&data) : expect_model(
        cornu_model_load_compiled(golden(name, ".keras"), device));
    for (int i = 0; i < 2; i++) step(model, &data);
    expect_ok(cornu_model_save(model, here(name, ".keras")));
    expect_ok(cornu_model_save_weights(model, here(name, ".weights.h5")));
    expect_ok(cornu_model_save_shards(model, here(name, ".weights.json"), 2e-5));
    predict(model, &data, got);
    for (int i = 0; i < STEPS; i++) losses[i] = step(model, &data);
    for (int i = 0; i < 6; i++) {
        const CornuArray from = (i < 2 ? data.x : i < 4 ? data.y : data.p)[i % 2];
        const CornuArray to = i < 4 ? from : cornu_array_from(got[i % 2], from.type);
        if (from.data) arrays[count++] = (CornuNamedArray){ names[i], to };
    }
    arrays[count++] = (CornuNamedArray){ "losses", cornu_array(losses, CORNU_F32, STEPS) };
    expect_ok(cornu_npz_write(here(name, ".npz"), arrays, count));
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

static void test_keras_loads_ours(void **state)
{
    (void)state;
    const char *python = keras_python();
    char        command[600];
    for (int i = 0; i < CASES; i++) write_case(cases[i]);
    write_case("attention");
    snprintf(command, sizeof command,
             "%s tests/nn/saving/check_keras.py %s %s %s %s attention >/dev/null",
             python, folder, cases[0], cases[1], cases[2]);
    assert_int_equal(system(command), 0);
}

static void test_suffixes(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, cornu_dense(3));
    expect_error(cornu_model_save(model, here("a", ".weights.h5")), CORNU_ERR_UNSUPPORTED,
                 "whole models cannot be saved as .weights.h5, expected one of .safetensors "
                 ".keras");
    expect_error(cornu_model_save_weights(model, here("a", ".keras")), CORNU_ERR_UNSUPPORTED,
                 "expected one of .safetensors .weights.h5 .weights.json .npz");
    expect_error(cornu_model_load_weights(model, here("absent", ".npz")), CORNU_ERR_FILE,
                 "cannot be read");
    assert_null(cornu_model_load_compiled("a.safetensors", NULL));
    expect_error(cornu_error_status(), CORNU_ERR_UNSUPPORTED, "does not say what it was compiled");
    cornu_model_free(model);
}

#define OF_CASE(test, i) { #test, test, NULL, NULL, (void *)#i }
#define OF_CASES(test) OF_CASE(test, sequence), OF_CASE(test, images), OF_CASE(test, branches)

/* Names that could not be read back are not written. */
static void names_of_npz_files_have_a_limit(void **state)
{
    enum { MOST = 65535 - 4 };    /* ".npy" is added */
    static float number[1] = { 0.5f };
    static char  name[MOST + 2];
    char         path[FILES_PATH];
    (void)state;
    snprintf(path, sizeof path, "%s", here("names", ".npz"));
    CornuNamedArray array = { name, cornu_array(number, CORNU_F32, 1) };
    memset(name, 'n', MOST);
    expect_ok(cornu_npz_write(path, &array, 1));
    CornuNpz *file = cornu_npz_open(path);
    assert_non_null(file);
    assert_non_null(cornu_npz_find(file, name));
    cornu_npz_close(file);
    unlink(path);
    name[MOST] = 'n';
    expect_error(cornu_npz_write(path, &array, 1), CORNU_ERR_ARGUMENT,
                 "of member 0 has 65536 bytes, a zip archive allows at most 65535");
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_CASES(test_predicts_as_keras),
        OF_CASES(test_loads_weights_alone),
        OF_CASES(test_goes_on_as_keras),
        OF_CASES(test_round_trip),
        cmocka_unit_test(test_weights_of_a_foreign_class),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_written_shards),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_sequential_of_numbers),
        cmocka_unit_test(test_damaged_shards),
        cmocka_unit_test(test_untrained),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_loss_scales_list_as_keras),
        cmocka_unit_test(test_several_optimizers),
        cmocka_unit_test(test_keras_loads_ours),
        cmocka_unit_test(test_suffixes),
        cmocka_unit_test(names_of_npz_files_have_a_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
