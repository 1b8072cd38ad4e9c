/* The reference networks as published, and ten steps of training them by train_on_batch, with a
 * constant rate and with a schedule, against real Keras (tests/golden/networks). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "../../models/models.h"
#include "../nn/golden.h"

enum { BATCH = 8, STEPS = 10, STEP_BATCH = 16, PIXELS = 784 };

/* ---- Initial weights as in the golden files ---- */

static float by_rule(uint32_t name, uint32_t i, float scale, float offset)
{
    uint32_t x = name + i * UINT32_C(0x9E3779B9);
    x ^= x >> 16;
    x *= UINT32_C(0x85EBCA6B);
    x ^= x >> 13;
    x *= UINT32_C(0xC2B2AE35);
    x ^= x >> 16;
    const float drawn = ((float)(x >> 8) - 8388608.0f) / 8388608.0f;
    const float scaled = scale * drawn;
    return scaled + offset;
}

static void set_weights(CornuModel *model, const Golden *golden)
{
    const json_t *rules = json_object_get(golden->cases, "weights");
    assert_int_equal(json_object_size(rules), cornu_model_weight_count(model));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight  *weight = cornu_model_weight(model, i);
        const json_t *rule = json_object_get(rules, weight->path);
        if (!rule) fail_msg("Keras has no weight %s", weight->path);
        char name[128];
        snprintf(name, sizeof name, "%s/%s", cornu_model_name(model), weight->path);
        const uint32_t crc = (uint32_t)crc32(0, (const Bytef *)name, (uInt)strlen(name));
        const int64_t  count = cornu_type_count(weight->type);
        const float    scale = (float)json_number_value(json_object_get(rule, "scale"));
        const float    offset = (float)json_number_value(json_object_get(rule, "offset"));
        float         *values = malloc((size_t)count * sizeof *values);
        double         sum = 0.0;
        for (int64_t k = 0; k < count; k++)
            sum += values[k] = by_rule(crc, (uint32_t)k, scale, offset);
        assert_float_equal(sum, json_number_value(json_object_get(rule, "sum")), 1e-6);
        expect_ok(cornu_weight_write(weight, cornu_array_from(values, weight->type)));
        free(values);
    }
}

/* pixels as Keras got them: f32, divided by 255 for models that scale */
static float *pixels(const CornuModel *model, CornuArray images)
{
    const float   divisor = cornu_model_input_scale(model) == 1.0 ? 1.0f : 255.0f;
    const int64_t count = cornu_type_count(images.type);
    float        *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = (float)((const uint8_t *)images.data)[i] / divisor;
    return x;
}

static CornuType input_type(const CornuModel *model, int64_t rows)
{
    CornuShape shape = cornu_model_input_shape(model);
    shape.extent[0] = rows;
    return cornu_type_from(CORNU_F32, shape);
}

/* ---- Ten steps ---- */

static CornuModel *network(const char *name, const Golden *golden, CornuDevice *device,
                           CornuOptimizer *optimizer)
{
    const CornuReferenceModel *reference = cornu_reference_model(name);
    CornuModel *model = reference->build(&(CornuNetworkConfig){ .dropout = CORNU_ZERO });
    expect_ok(cornu_compile(model, .device = device, .optimizer = optimizer,
                            .loss = cornu_loss(reference->loss)));
    set_weights(model, golden);
    return model;
}

/* Trains ten steps on x, and predicts the images. `want` are Keras' losses: those of the first two
 * steps are its up to rounding. Later two elements of a pool's window may be equal but for that:
 * which one is taken decides the signs of gradients near zero, and those are Adam's first
 * updates. */
static void train(CornuModel *model, float *x, CornuArray labels, CornuArray want,
                  const char *called, float *images, float after[BATCH * 10])
{
    enum { FIRST = 2 };
    for (int step = 0; step < STEPS; step++) {
        CornuArray batch = cornu_array_from(x + (size_t)step * STEP_BATCH * PIXELS,
                                            input_type(model, STEP_BATCH));
        CornuArray y = cornu_array((int32_t *)labels.data + step * STEP_BATCH, CORNU_I32,
                                   STEP_BATCH);
        double loss, keras = cornu_array_get(want, step);
        expect_ok(cornu_model_reset_metrics(model));
        expect_ok(cornu_train_on_batch(model, batch, y, &loss));
        if (!(fabs(loss - keras) <= (step < FIRST ? 3e-5 : 1e-3) * fmax(1.0, keras)))
            fail_msg("%s: the loss of step %d is %.7f, Keras has %.7f", called, step + 1, loss,
                     keras);
    }
    expect_ok(cornu_predict_on_batch(model, cornu_array_from(images, input_type(model, BATCH)),
                                     cornu_array(after, CORNU_F32, BATCH, 10)));
}

/* Probabilities after ten steps differ from Keras' by 1e-3, or by twice what a last place of each
 * pixel makes of them: the network grows such a difference with each step. */
static void ten_steps(Golden *golden, Golden *batches, const char *name, const char *folder,
                      double decay)
{
    const double rate = cornu_array_get(golden_array(golden, folder, "learning_rates"), 0);
    CornuDevice *device = cornu_device_open("cpu");
    CornuArray   labels = golden_array(batches, "steps", "labels");
    CornuArray   want = golden_array(golden, folder, "losses");
    float        after[2][BATCH * 10];
    double       grown = 0.0;
    char         called[64];
    snprintf(called, sizeof called, "%s %s", name, folder);
    for (int i = 0; i < 2; i++) {
        CornuModel *model = network(name, golden, device, cornu_adam(
                                        .schedule = cornu_exponential_decay(rate, 1, decay)));
        CornuArray  images = golden_array(batches, "steps", "images");
        float      *x = pixels(model, images);
        float      *first = pixels(model, golden_array(batches, "batch", "images"));
        for (int64_t k = 0; i && k < cornu_type_count(images.type); k++)
            x[k] = nextafterf(x[k], INFINITY);
        train(model, x, labels, want, called, first, after[i]);
        free(first);
        free(x);
        cornu_model_free(model);
    }
    for (int i = 0; i < BATCH * 10; i++) grown = fmax(grown, fabs(after[0][i] - after[1][i]));
    expect_near("probabilities", after[0], golden_array(golden, folder, "probabilities_after"),
                fmax(1e-3, 2.0 * grown));
    cornu_device_close(device);
}

static void losses_of_ten_steps(void **state)
{
    char path[128];
    snprintf(path, sizeof path, "tests/golden/networks/%s.safetensors", (const char *)*state);
    Golden golden = golden_open(path);
    Golden batches = golden_open("tests/golden/networks/batches.safetensors");
    ten_steps(&golden, &batches, *state, "adam", 1.0);
    if (golden_array(&golden, "adam_schedule", "losses").data)
        ten_steps(&golden, &batches, *state, "adam_schedule", 0.7);
    golden_close(&batches);
    golden_close(&golden);
}

/* ---- Architecture and data ---- */

static void models_are_as_published(void **state)
{
    (void)state;
    static const int64_t parameters[] = { 93322, 354538, 34826, 1619470, 274154, 4460800, 410880,
                                          871936, 57174784 };
    static const int64_t trainable[] = { 93322, 354002, 34826, 1619084, 272778, 4460800, 410880,
                                         871936, 57174784 };
    static const char *const data_names[] = { "mnist", "mnist", "mnist", "fashion-mnist",
                                              "fashion-mnist", "shakespeare", "shakespeare",
                                              "shakespeare", "shakespeare" };
    int count;
    const CornuReferenceModel *models = cornu_reference_models(&count);
    assert_int_equal(count, 9);
    for (int i = 0; i < count; i++) {
        CornuModel *model = models[i].build(&(CornuNetworkConfig){ 0 });
        assert_string_equal(cornu_model_name(model), models[i].name);
        assert_int_equal(cornu_model_parameters(model), parameters[i]);
        assert_int_equal(cornu_model_trainable_parameters(model), trainable[i]);
        CornuTrainTest *data = models[i].load(&(CornuTrainTestConfig){ .data = "synthetic",
                                                                       .limit = 1 });
        assert_non_null(data);
        assert_string_equal(data->name, data_names[i]);
        /* The data fit the model: a row per input, and a label per prediction. */
        const CornuArray x = cornu_reference_input(model, data->train_x);
        assert_true(cornu_type_equal(x.type, cornu_reference_input_type(model, 1)));
        assert_int_equal(cornu_type_bytes(data->train_x.type), cornu_type_bytes(x.type));
        assert_true(cornu_type_equal(data->train_y.type, cornu_reference_label_type(model, 1)));
        assert_true(cornu_type_equal(data->test_y.type, data->train_y.type));
        const CornuShape out = cornu_model_output_shape(model);
        assert_int_equal(data->classes, out.extent[out.rank - 1]);
        cornu_train_test_free(data);
        cornu_model_free(model);
    }
    assert_null(cornu_reference_model("mnist_ccn"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "did you mean \"mnist_cnn\"?");
}

/*
 * A step of the published text network, 128 sequences of 100 characters, does no more work than
 * necessary. Products, 2 FLOP per multiply-add, in the forward pass and in the gradients with
 * respect to inputs and weights:
 *     both recurrences          6 x 12,800 x 512 x 2048
 *     the second LSTM's input   3 x 12,800 x 512 x 2048
 *     dense                     3 x 12,800 x 512 x 256
 *     the first LSTM's input    3 x 256 x 512 x 2048, a table of all characters, then looked up
 * total 253.27 GFLOP. (With 12,800 instead of 256 rows in the last line it would be 332.) Cells
 * take 33 + 30 for each of 2 x 12,800 x 512 units; softmax, loss, sums and updates less than that.
 */
static void a_text_step_does_no_needless_work(void **state)
{
    (void)state;
    const CornuReferenceModel *reference = cornu_reference_model("shakespeare_lstm");
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    CornuModel  *model = reference->build(&(CornuNetworkConfig){ 0 });
    expect_ok(cornu_compile(model, .device = device, .loss = cornu_loss(reference->loss),
                            .metrics = { CORNU_ACCURACY },
                            .optimizer = cornu_reference_optimizer(reference, 1, 0.0)));
    const CornuExecutable *step = cornu_model_train_step(
        model, cornu_reference_input_type(model, 128), cornu_reference_label_type(model, 128));
    if (!step) fail_msg("%s", cornu_error_message());
    const int64_t wide = (int64_t)12800 * 512 * 2048, cells = (int64_t)63 * 2 * 12800 * 512;
    const int64_t products = 2 * (9 * wide + 3 * wide / 8 + 3 * wide / 50);
    const int64_t rest = cornu_executable_statistics(step)->flops - products - cells;
    assert_int_equal(products, 253268852736);
    if (rest <= 0 || rest >= cells) fail_msg("%lld FLOP more than expected", (long long)rest);
    print_message("# %.3f GFLOP in products, %.3f in cells, %.3f else\n", 1e-9 * (double)products,
                  1e-9 * (double)cells, 1e-9 * (double)rest);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void residual_network_learns(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu", "tpu" };
    CornuTrainTest *data = cornu_fashion_mnist_load_from(
        &(CornuTrainTestConfig){ .data = "synthetic", .limit = 32 });
    assert_non_null(data);
    for (int i = 0; i < 2; i++) {
        CornuDevice *device = cornu_device_open(devices[i]);
        CornuModel  *model = cornu_resnet20();
        expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_adam(),
                                .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
        CornuHistory *history = cornu_fit(model, .x = cornu_reference_input(model, data->train_x),
                                          .y = data->train_y, .batch_size = 8, .epochs = 2,
                                          .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        const double first = cornu_history_get(history, "loss", 0);
        const double last = cornu_history_get(history, "loss", 1);
        if (!(last < 0.8 * first))
            fail_msg("%s: the loss is %g, then %g", devices[i], first, last);
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
    }
    cornu_train_test_free(data);
}

static void published_epochs_name_known_models(void **state)
{
    (void)state;
    int count, fashion = 0, text = 0;
    const CornuPublishedEpoch *epochs = cornu_published_epochs(&count);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        assert_non_null(cornu_reference_model(epochs[i].model));
        assert_true(epochs[i].batch_size * epochs[i].steps >= 50000);
        assert_true(epochs[i].least_s > 0.0 && epochs[i].least_s <= epochs[i].most_s);
        assert_true(*epochs[i].hardware && *epochs[i].source);
        fashion += strcmp(epochs[i].model, "fashion_mnist_cnn") == 0;
        text += strcmp(epochs[i].model, "shakespeare_lstm") == 0;
    }
    assert_int_equal(fashion, 4);
    assert_int_equal(text, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_as_published),
        cmocka_unit_test(a_text_step_does_no_needless_work),
        cmocka_unit_test(published_epochs_name_known_models),
        cmocka_unit_test(residual_network_learns),
        { "mnist_cnn", losses_of_ten_steps, NULL, NULL, "mnist_cnn" },
        { "mnist_cnn_bn", losses_of_ten_steps, NULL, NULL, "mnist_cnn_bn" },
        { "mnist_convnet", losses_of_ten_steps, NULL, NULL, "mnist_convnet" },
        { "fashion_mnist_cnn", losses_of_ten_steps, NULL, NULL, "fashion_mnist_cnn" },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
