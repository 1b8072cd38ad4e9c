/* Models of 8 bits: their accuracy on MNIST and Fashion-MNIST (of CORNU_DATA, else synthetic), the
 * same bits however they are computed, which layers have a form of 8 bits, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../datasets/files.h"
#include "../../device/isas.h"
#include "../../expect.h"
#include "lite_models.h"

enum { TRAINED = 6000, CLASSES = 10, PIXELS = 28 * 28 };

static CornuDevice *device;

static int open_device(void **state)
{
    device = cornu_device_open("cpu");
    return !device || files_begin(state);
}

static int close_device(void **state)
{
    cornu_device_close(device);
    return files_end(state);
}

/* ---- A trained network ---- */

typedef struct {
    CornuTrainTest *data;
    CornuModel     *model;
    int64_t         rows;      /* of the test set */
    CornuArray      x;         /* the test set as the model takes it */
    float          *real;      /* its predictions */
} Trained;

/* Data sets, the real one by the name of its folder. */
typedef struct {
    const char *folder;
    CornuTrainTest *(*load)(const CornuTrainTestConfig *config);
} Source;

static CornuTrainTest *load(Source from)
{
    if (files_real(from.folder)) return from.load(&(CornuTrainTestConfig){ 0 });
    print_message("%s is not there: synthetic data\n", from.folder);
    return from.load(&(CornuTrainTestConfig){ .data = "synthetic", .limit = TRAINED });
}

static Trained train(Source from)
{
    Trained t = { .data = load(from), .model = cornu_mnist_convnet() };
    assert_non_null(t.data);
    expect_ok(cornu_compile(t.model, .optimizer = cornu_adam(), .device = device,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    CornuArray x = cornu_reference_input(t.model, t.data->train_x), y = t.data->train_y;
    if (x.type.shape.extent[0] > TRAINED) x.type.shape.extent[0] = y.type.shape.extent[0] = TRAINED;
    CornuHistory *history = cornu_fit(t.model, .x = x, .y = y, .batch_size = 64, .epochs = 1,
                                      .verbose = CORNU_SILENT);
    assert_non_null(history);
    cornu_history_free(history);
    t.x = cornu_reference_input(t.model, t.data->test_x);
    t.rows = t.x.type.shape.extent[0];
    t.real = malloc((size_t)t.rows * CLASSES * sizeof(float));
    expect_ok(cornu_predict(t.model, .x = t.x, .batch_size = 250, .verbose = CORNU_SILENT,
                            .to = cornu_array(t.real, CORNU_F32, t.rows, CLASSES)));
    return t;
}

static void free_trained(Trained *t)
{
    free(t->real);
    cornu_model_free(t->model);
    cornu_train_test_free(t->data);
}

static int best_of(const float *values)
{
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
        if (values[c] > values[best]) best = c;
    return best;
}

static double accuracy(const Trained *t, const float *values)
{
    int64_t right = 0;
    for (int64_t row = 0; row < t->rows; row++)
        right += best_of(values + row * CLASSES) == (int)cornu_array_get(t->data->test_y, row);
    return 100.0 * (double)right / (double)t->rows;
}

/* Within 0.3 points of the float model on the whole test set. */
static void expect_accuracy(Source from)
{
    Trained         t = train(from);
    CornuInt8Model *small = cornu_quantize(t.model, .x = cornu_reference_input(t.model,
                                                                               t.data->train_x));
    float          *integer = malloc((size_t)t.rows * CLASSES * sizeof(float));
    assert_non_null(small);
    expect_ok(cornu_int8_predict(small, t.x, cornu_array(integer, CORNU_F32, t.rows, CLASSES)));
    const double before = accuracy(&t, t.real), after = accuracy(&t, integer);
    print_message("%s: float %.2f %%, int8 %.2f %%\n", from.folder, before, after);
    assert_true(before > 60.0);
    assert_true(fabs(before - after) <= 0.3);
    /* Pixels of 0 to 1 have the bytes' scale. */
    assert_float_equal(cornu_int8_input_scale(small).scale, 1.0 / 255, 1e-9);
    assert_int_equal(cornu_int8_input_scale(small).zero_point, -128);
    assert_float_equal(cornu_int8_output_scale(small).scale, 1.0 / 256, 0.0);
    assert_true(cornu_int8_bytes(small) < cornu_model_parameters(t.model) * 11 / 10);
    cornu_int8_free(small);
    free(integer);
    free_trained(&t);
}

static void mnist(void **state)
{
    (void)state;
    expect_accuracy((Source){ "mnist", cornu_mnist_load_from });
}

static void fashion_mnist(void **state)
{
    (void)state;
    expect_accuracy((Source){ "fashion-mnist", cornu_fashion_mnist_load_from });
}

/* ---- The same bits ---- */

enum { ROWS = 333 };

/* Any model will do, and any pixels. */
static CornuInt8Model *small_model(int threads, uint8_t *pixels)
{
    CornuModel *model = cornu_mnist_convnet();
    expect_ok(cornu_compile(model, .device = device));
    for (int i = 0; i < ROWS * PIXELS; i++)
        pixels[i] = (uint8_t)(255 - i * 37 % 256 * (i % 5 != 0));
    CornuInt8Model *small = cornu_quantize(model, .samples = 64, .threads = threads,
                                           .x = cornu_array(pixels, CORNU_U8, ROWS, 28, 28, 1));
    if (!small) fail_msg("%s", cornu_error_message());
    cornu_model_free(model);
    return small;
}

static void same_bits(void **state)
{
    (void)state;
    uint8_t        *pixels = malloc(ROWS * PIXELS);
    float          *real = malloc(ROWS * PIXELS * sizeof(float));
    int8_t         *x = malloc(ROWS * PIXELS), got[ROWS * CLASSES], want[ROWS * CLASSES];
    float           from_bytes[ROWS * CLASSES], from_floats[ROWS * CLASSES];
    CornuInt8Model *one = small_model(1, pixels), *three = small_model(3, pixels);
    const CornuArray to = cornu_array(from_bytes, CORNU_F32, ROWS, CLASSES);
    for (int i = 0; i < ROWS * PIXELS; i++) {
        x[i] = (int8_t)(pixels[i] - 128);
        real[i] = (float)pixels[i] / 255.0f;
    }
    expect_ok(cornu_int8_predict_integers(one, ROWS, x, want));
    expect_ok(cornu_int8_predict_integers(three, ROWS, x, got));
    assert_memory_equal(got, want, sizeof want);
    for (int64_t row = 0; row < ROWS; row++)     /* one at a time */
        expect_ok(cornu_int8_predict_integers(three, 1, x + row * PIXELS, got + row * CLASSES));
    assert_memory_equal(got, want, sizeof want);
    expect_ok(cornu_int8_predict(one, cornu_array(pixels, CORNU_U8, ROWS, 28, 28, 1), to));
    for (int i = 0; i < ROWS * CLASSES; i++)
        assert_true(from_bytes[i] == ((float)want[i] + 128.0f) / 256.0f);
    expect_ok(cornu_int8_predict(one, cornu_array(real, CORNU_F32, ROWS, 28, 28, 1),
                                 cornu_array(from_floats, CORNU_F32, ROWS, CLASSES)));
    assert_memory_equal(from_floats, from_bytes, sizeof from_bytes);

    expect_ok(cornu_int8_save(one, files_path(folder, "same_bits.tflite")));
    CornuInt8Model *loaded = cornu_int8_load(files_path(folder, "same_bits.tflite"));
    if (!loaded) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_int8_predict_integers(loaded, ROWS, x, got));
    assert_memory_equal(got, want, sizeof want);
    expect_ok(cornu_int8_save(one, files_path(folder, "same_bits.onnx")));
    assert_true(files_read(files_path(folder, "same_bits.onnx"), x, ROWS * PIXELS) > 30000);
    cornu_int8_free(one);
    cornu_int8_free(three);
    cornu_int8_free(loaded);
    free(pixels), free(real), free(x);
}

/* Ranges are those of all batches of the calibration data: the brightest picture is in the first of
 * them, or in the last. */
static void order_of_the_data(void **state)
{
    (void)state;
    enum { SAMPLES = 96 };
    uint8_t    *pixels = malloc(SAMPLES * PIXELS), *file[2];
    size_t      bytes[2];
    CornuModel *model = cornu_mnist_convnet();
    expect_ok(cornu_compile(model, .device = device));
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < SAMPLES * PIXELS; i++) {
            const int sample = k ? SAMPLES - 1 - i / PIXELS : i / PIXELS;
            pixels[i] = (uint8_t)((sample + i % PIXELS * 37) % 64 + 2 * sample);
        }
        CornuInt8Model *small = cornu_quantize(model, .x = cornu_array(pixels, CORNU_U8, SAMPLES,
                                                                       28, 28, 1));
        if (!small) fail_msg("%s", cornu_error_message());
        expect_ok(cornu_int8_save(small, files_path(folder, "order.tflite")));
        file[k] = malloc(1 << 20);
        bytes[k] = files_read(files_path(folder, "order.tflite"), file[k], 1 << 20);
        cornu_int8_free(small);
    }
    assert_true(bytes[0] > 30000 && bytes[0] == bytes[1]);
    assert_memory_equal(file[0], file[1], bytes[0]);
    free(pixels), free(file[0]), free(file[1]);
    cornu_model_free(model);
}

/* The float model's ranges differ in the last bits by instruction set, so a file made by one is run
 * by all. */
static void each_isa(void **state)
{
    (void)state;
    uint8_t        *pixels = malloc(ROWS * PIXELS);
    int8_t         *x = malloc(ROWS * PIXELS), got[ROWS * CLASSES], want[ROWS * CLASSES];
    CornuInt8Model *small = small_model(1, pixels);
    for (int i = 0; i < ROWS * PIXELS; i++) x[i] = (int8_t)(pixels[i] - 128);
    expect_ok(cornu_int8_save(small, files_path(folder, "each_isa.tflite")));
    cornu_int8_free(small);
    const char *before = getenv("CORNU_ISA");
    char        kept[32];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    for (int isa = 0; isa < CORNU_F32_ISA_COUNT; isa++) {
        if (!isa_take((CornuIsa)isa)) continue;
        CornuInt8Model *loaded = cornu_int8_load(files_path(folder, "each_isa.tflite"));
        expect_ok(cornu_int8_predict_integers(loaded, ROWS, x, isa ? got : want));
        if (isa) assert_memory_equal(got, want, sizeof want);
        cornu_int8_free(loaded);
    }
    setenv("CORNU_ISA", kept, 1);
    free(pixels), free(x);
}

/* ---- Layers ---- */

enum { SAMPLES = 24, MOST_PORTS = 32 };

/* Rows of numbers from -1 to 1. */
static CornuArray numbers(CornuShape shape)
{
    shape.extent[0] = SAMPLES;
    CornuArray    x = cornu_array_from(NULL, cornu_type_from(CORNU_F32, shape));
    const int64_t count = cornu_type_count(x.type);
    x.data = malloc(cornu_type_bytes(x.type));
    for (int64_t i = 0; i < count; i++)
        cornu_array_set(x, i, (double)(i * 7919 % 2001) / 1000.0 - 1.0);
    return x;
}

/* How far a result is from the float model's, of the width of its range. */
static double distance(CornuArray got, CornuArray want)
{
    double low = 0.0, high = 0.0, worst = 0.0;
    for (int64_t i = 0; i < cornu_type_count(want.type); i++) {
        const double value = cornu_array_get(want, i);
        low = fmin(low, value);
        high = fmax(high, value);
        worst = fmax(worst, fabs(value - cornu_array_get(got, i)));
    }
    return high > low ? worst / (high - low) : worst;
}

/* Whether the case has a form of 8 bits; then its results are near the float ones. */
static bool try_case(const LiteCase *test_case)
{
    CornuModel *model = test_case->make();
    const int   inputs = cornu_model_input_count(model), outputs = cornu_model_output_count(model);
    CornuArray  x[MOST_PORTS] = { { .data = NULL } }, want[MOST_PORTS] = { { .data = NULL } };
    CornuArray  got[MOST_PORTS] = { { .data = NULL } };
    CornuQuantizeConfig config = { .model = model, .threads = 1 };
    CornuPredictConfig  predict = { .model = model, .verbose = CORNU_SILENT };
    expect_ok(cornu_compile(model, .device = device));
    for (int i = 0; i < inputs; i++) {
        x[i] = numbers(cornu_symbol_shape(cornu_model_input(model, i)));
        config.xs[i] = predict.xs[i] = x[i];
    }
    CornuInt8Model *small = cornu_quantize_from(&config);
    if (small) {
        for (int i = 0; i < outputs; i++) {
            got[i] = numbers(cornu_symbol_shape(cornu_model_output(model, i)));
            predict.tos[i] = want[i] = numbers(cornu_symbol_shape(cornu_model_output(model, i)));
        }
        expect_ok(cornu_predict_from(&predict));
        expect_ok(cornu_int8_predict_many(small, x, inputs, got, outputs));
        for (int i = 0; i < outputs; i++)
            if (!(distance(got[i], want[i]) < 0.06))
                fail_msg("%s, output %d: %.3f of its range from the float one", test_case->name, i,
                         distance(got[i], want[i]));
    } else {
        print_message("%s: %s\n", test_case->name, cornu_error_message());
        assert_int_equal(cornu_error_take(), CORNU_ERR_UNSUPPORTED);
    }
    for (int i = 0; i < MOST_PORTS; i++) free(x[i].data), free(want[i].data), free(got[i].data);
    cornu_int8_free(small);
    cornu_model_free(model);
    return small != NULL;
}

static void layers(void **state)
{
    (void)state;
    int made = 0;
    for (int i = 0; i < lite_case_count; i++) made += try_case(&lite_cases[i]);
    print_message("%d of %d models have a form of 8 bits\n", made, lite_case_count);
    assert_true(made >= 8);
}

/* ---- What is refused ---- */

static void refused(void **state)
{
    (void)state;
    float       x[4 * 3] = { 0.1f, 0.2f, 0.3f, 0.4f };
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2));
    expect_ok(cornu_compile(model, .device = device));
    const CornuArray rows = cornu_array(x, CORNU_F32, 4, 3);
    expect_failure(cornu_quantize(NULL, .x = rows), CORNU_ERR_ARGUMENT, ".model is NULL");
    expect_failure(cornu_quantize(model, .x = rows, .samples = -1), CORNU_ERR_ARGUMENT,
                   ".samples is -1");
    expect_failure(cornu_quantize(model), CORNU_ERR_ARGUMENT, "cornu_quantize");
    x[5] = INFINITY;
    expect_failure(cornu_quantize(model, .x = rows), CORNU_ERR_VALUE, "not finite");
    /* What has no kernel is refused before the data are looked at. */
    CornuModel *norm = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(norm, cornu_layer_normalization());
    expect_ok(cornu_compile(norm, .device = device));
    expect_failure(cornu_quantize(norm, .x = rows), CORNU_ERR_UNSUPPORTED,
                   "RSQRT: has no kernel of 8 bits");
    cornu_model_free(norm);
    x[5] = 0.5f;
    CornuInt8Model *small = cornu_quantize(model, .x = rows);
    float           to[8];
    assert_non_null(small);
    expect_error(cornu_int8_predict(small, cornu_array(x, CORNU_F32, 3, 4),
                                    cornu_array(to, CORNU_F32, 3, 2)),
                 CORNU_ERR_SHAPE, "x is f32 (3, 4)");
    expect_error(cornu_int8_predict(small, rows, cornu_array(to, CORNU_F32, 3, 2)),
                 CORNU_ERR_SHAPE, "to is f32 (3, 2)");
    cornu_int8_free(small);

    expect_ok(cornu_model_save(model, files_path(folder, "float.tflite")));
    expect_unloaded(cornu_int8_load(files_path(folder, "float.tflite")), CORNU_ERR_UNSUPPORTED,
                    "expected i8");
    expect_unloaded(cornu_int8_load(files_path(folder, "none.tflite")), CORNU_ERR_FILE,
                    "none.tflite");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist), cmocka_unit_test(fashion_mnist), cmocka_unit_test(same_bits),
        cmocka_unit_test(order_of_the_data),
        cmocka_unit_test(each_isa), cmocka_unit_test(layers), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
