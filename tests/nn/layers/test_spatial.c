/*
 * Layers of nn/layers/spatial.h and nn/layers/random.h beyond single calls, which test_layers.c
 * compares with Keras: masks, random numbers, files, mixed precision, invalid use.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../golden.h"
#include "call_layer.h"

enum { MOST = 1 << 16 };

/* y of the layer, which is taken, in training; the rows of x begin at `position` of the batch. The
 * mask (B, T), if any, is of bytes. */
static int64_t run(CornuLayer *layer, CornuArray x, const uint8_t *mask, int64_t position,
                   int64_t iteration, float *y)
{
    const LayerCall how = { true, position, iteration, mask };
    return call_layer(layer, x, &how, y, MOST);
}

static float x[MOST], y[MOST], z[MOST];

static bool differ(const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (a[i] != b[i]) return true;
    return false;
}

static void fill(int64_t count)
{
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
}

/* ---- Masks ---- */

static void masked_steps_do_not_count(void **state)
{
    (void)state;
    static const uint8_t mask[6] = { 1, 1, 0, 0, 1, 0 };
    fill(12);
    assert_int_equal(run(cornu_global_average_pooling1d(), cornu_array(x, CORNU_F32, 2, 3, 2),
                         mask, 0, 0, y), 4);
    const float expected[4] = { (x[0] + x[2]) / 2, (x[1] + x[3]) / 2, x[8], x[9] };
    for (int i = 0; i < 4; i++) assert_float_equal(y[i], expected[i], 1e-6);
    assert_int_equal(run(cornu_global_max_pooling1d(), cornu_array(x, CORNU_F32, 2, 3, 2), mask,
                         0, 0, y), 4);   /* as Keras: of all steps */
    for (int i = 0; i < 4; i++) {
        const float *row = x + i / 2 * 6 + i % 2;
        assert_float_equal(y[i], fmaxf(row[0], fmaxf(row[2], row[4])), 0);
    }
}

/* ---- Random numbers ---- */

/* Rows from 3 on of a batch equal the first rows of a call at position 3; another step draws other
 * numbers. */
static void draws_belong_to_rows(void **state)
{
    (void)state;
    enum { ROW = 6 * 5 * 2 };
    fill(8 * ROW);
    for (int kind = 0; kind < 8; kind++) {
        CornuLayer *layers[3];
        for (int i = 0; i < 3; i++)
            layers[i] = kind == 0   ? cornu_random_flip()
                        : kind == 1 ? cornu_random_translation(0.3, 0.2)
                        : kind == 2 ? cornu_random_rotation(0.2)
                        : kind == 3 ? cornu_spatial_dropout2d(0.4)
                        : kind == 4 ? cornu_gaussian_noise(1.0)
                        : kind == 5 ? cornu_gaussian_dropout(0.3)
                        : kind == 6 ? cornu_random_zoom(0.4)
                                    : cornu_alpha_dropout(0.3);
        CornuArray all = cornu_array(x, CORNU_F32, 8, 6, 5, 2);
        CornuArray rest = cornu_array(x + 3 * ROW, CORNU_F32, 5, 6, 5, 2);
        run(layers[0], all, NULL, 0, 1, y);
        run(layers[1], rest, NULL, 3, 1, z);
        assert_memory_equal(y + 3 * ROW, z, 5 * ROW * sizeof(float));
        run(layers[2], all, NULL, 0, 2, z);
        assert_true(differ(y, z, 8 * ROW));
        assert_true(differ(x, y, 8 * ROW));
    }
}

/* Moved by its full extents, an image filled by wrapping is itself, one filled by reflection its
 * mirror, whatever the extents. */
static void moved_images_fold_back(void **state)
{
    (void)state;
    for (int n = 1; n <= 64; n += n < 32 ? 1 : 3) {
        const CornuArray image = cornu_array(x, CORNU_F32, 1, n, n + 1, 1);
        const int        count = n * (n + 1);
        fill(count);
        run(cornu_random_translation(.height_factor = { 1, 1 }, .width_factor = { -1, -1 },
                                     .fill_mode = CORNU_FILL_WRAP), image, NULL, 0, 0, y);
        assert_memory_equal(x, y, (size_t)count * sizeof(float));
        run(cornu_random_translation(.height_factor = { 1, 1 }, .width_factor = { -1, -1 },
                                     .interpolation = CORNU_NEAREST), image, NULL, 0, 0, y);
        for (int i = 0; i < count; i++) assert_true(y[i] == x[count - 1 - i]);
    }
}

/* Each image is one of the four flips, each about a quarter of 200. */
static void flips_are_as_likely(void **state)
{
    (void)state;
    enum { H = 3, W = 4, ROWS = 200 };
    int seen[4] = { 0 };
    fill(ROWS * H * W);
    run(cornu_random_flip(), cornu_array(x, CORNU_F32, ROWS, H, W, 1), NULL, 0, 0, y);
    for (int b = 0; b < ROWS; b++) {
        int kinds = 0;
        for (int kind = 0; kind < 4; kind++) {
            bool same = true;
            for (int i = 0; i < H * W; i++) {
                const int row = kind & 2 ? H - 1 - i / W : i / W;
                const int column = kind & 1 ? W - 1 - i % W : i % W;
                same = same && y[b * H * W + i] == x[b * H * W + row * W + column];
            }
            seen[kind] += same;
            kinds += same;
        }
        assert_int_equal(kinds, 1);
    }
    for (int kind = 0; kind < 4; kind++) assert_in_range(seen[kind], 30, 70);
    run(cornu_random_flip(CORNU_FLIP_VERTICAL), cornu_array(x, CORNU_F32, ROWS, 1, W, 1), NULL, 0,
        0, y);
    assert_memory_equal(x, y, ROWS * W * sizeof(float));
}

/* Mean and deviation of noise on ones, or zeros, within four standard errors. */
static void expect_moments(CornuLayer *layer, float of, double mean, double deviation)
{
    enum { ROWS = 40, COUNT = 1000 };
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < ROWS * COUNT; i++) x[i] = of;
    run(layer, cornu_array(x, CORNU_F32, ROWS, COUNT), NULL, 0, 0, y);
    for (int i = 0; i < ROWS * COUNT; i++) sum += y[i];
    sum /= ROWS * COUNT;
    for (int i = 0; i < ROWS * COUNT; i++) squares += (y[i] - sum) * (y[i] - sum);
    assert_float_equal(sum, mean, 4.0 * deviation / sqrt(ROWS * COUNT));
    assert_float_equal(sqrt(squares / (ROWS * COUNT)), deviation, 0.03 * deviation);
}

static void noise_has_its_moments(void **state)
{
    (void)state;
    expect_moments(cornu_gaussian_noise(2.0), 3.0f, 3.0, 2.0);
    expect_moments(cornu_gaussian_dropout(0.2), 3.0f, 3.0, 3.0 * sqrt(0.2 / 0.8));
    /* Zeros have mean and variance 0: only dropped elements vary, by a^2 p (1 - p) least^2. */
    const double least = 1.7580993408473766, p = 0.3;
    const double a = 1.0 / sqrt((1.0 - p) * (1.0 + p * least * least));
    expect_moments(cornu_alpha_dropout(p), 0.0f, 0.0, a * least * sqrt(p * (1.0 - p)));
}

/* Channels are dropped as a whole. */
static void channels_drop_together(void **state)
{
    (void)state;
    enum { ROWS = 50, T = 4, C = 10 };
    int dropped = 0;
    for (int i = 0; i < ROWS * T * C; i++) x[i] = 1.0f;
    run(cornu_spatial_dropout1d(0.25), cornu_array(x, CORNU_F32, ROWS, T, C), NULL, 0, 0, y);
    for (int i = 0; i < ROWS * C; i++) {
        const float *first = y + i / C * T * C + i % C;
        assert_true(*first == 0.0f || fabsf(*first - 4.0f / 3.0f) < 1e-6f);
        for (int t = 1; t < T; t++) assert_true(first[t * C] == *first);
        dropped += *first == 0.0f;
    }
    assert_in_range(dropped, 90, 160);   /* of 500 */
}

/* ---- Models of them ---- */

static CornuModel *make_model(const char *policy)
{
    cornu_set_random_seed(3);
    CornuModel *model = cornu_sequential(.input_shape = { 12, 12, 4 }, .policy = policy);
    cornu_model_add(model, cornu_random_flip(CORNU_FLIP_HORIZONTAL));
    cornu_model_add(model, cornu_random_translation(.height_factor = { -0.1, 0.2 }, .width = 0.1,
                                                    .fill_mode = CORNU_FILL_NEAREST));
    cornu_model_add(model, cornu_random_rotation(0.1, CORNU_FILL_CONSTANT, CORNU_NEAREST));
    cornu_model_add(model, cornu_random_zoom(0.05));
    cornu_model_add(model, cornu_random_zoom(.height_factor = { -0.1, 0 },
                                             .width_factor = { CORNU_ZERO }));
    cornu_model_add(model, cornu_resizing(11, 7, CORNU_LANCZOS3, .crop_to_aspect_ratio = true,
                                          .antialias = true));
    cornu_model_add(model, cornu_resizing(10, 9, .pad_to_aspect_ratio = true, .fill_value = 0.5));
    cornu_model_add(model, cornu_zero_padding2d(.padding = { { 0, 1 }, { 1, 0 } }));
    cornu_model_add(model, cornu_zero_padding2d(.padding = { { CORNU_ZERO } }));
    cornu_model_add(model, cornu_conv2d(8, 3, .groups = 2, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_depthwise_conv2d(3, .padding = CORNU_SAME));
    cornu_model_add(model, cornu_separable_conv2d(6, 3, 2, .depth_multiplier = 2,
                                                  .activation = CORNU_RELU));
    cornu_model_add(model, cornu_spatial_dropout2d(0.1));
    cornu_model_add(model, cornu_conv2d_transpose(5, 3, 2, .output_padding = { 1, CORNU_ZERO }));
    cornu_model_add(model, cornu_up_sampling2d(2, CORNU_BILINEAR));
    cornu_model_add(model, cornu_cropping2d(1));
    cornu_model_add(model, cornu_gaussian_noise(0.01));
    cornu_model_add(model, cornu_global_average_pooling2d());
    cornu_model_add(model, cornu_repeat_vector(6));
    cornu_model_add(model, cornu_conv1d(7, 3, .padding = CORNU_CAUSAL, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_separable_conv1d(7, .kernel_size = { 3 }, .padding = CORNU_SAME,
                                                  .dilation_rate = { 2 }));
    cornu_model_add(model, cornu_depthwise_conv1d(2, .depth_multiplier = 2));
    cornu_model_add(model, cornu_conv1d_transpose(7, 3, 2, .output_padding = { CORNU_ZERO }));
    cornu_model_add(model, cornu_zero_padding1d(.padding = { 0, 2 }));
    cornu_model_add(model, cornu_zero_padding1d(.padding = { CORNU_ZERO }));
    cornu_model_add(model, cornu_cropping1d(.cropping = { 2 }));
    cornu_model_add(model, cornu_cropping1d(.cropping = { CORNU_ZERO }));
    cornu_model_add(model, cornu_up_sampling1d());
    cornu_model_add(model, cornu_max_pooling1d());
    cornu_model_add(model, cornu_permute(.dims = { 2, 1 }));
    cornu_model_add(model, cornu_average_pooling1d(2));
    cornu_model_add(model, cornu_alpha_dropout(0.05));
    cornu_model_add(model, cornu_gaussian_dropout(0.05));
    cornu_model_add(model, cornu_global_max_pooling1d());
    cornu_model_add(model, cornu_dense(3));
    if (cornu_error_take() != CORNU_OK || !cornu_model_built(model))
        fail_msg("%s", cornu_error_message());
    return model;
}

static void files_hold_them(void **state)
{
    (void)state;
    const char *path = files_path(folder, "model.safetensors");
    const char *other = files_path(folder, "other.safetensors");
    static char       a[100000], b[100000];
    CornuModel       *model = make_model(NULL);
    expect_ok(cornu_model_save(model, path));
    CornuModel *loaded = cornu_model_load(path);
    if (!loaded) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_model_save(loaded, other));
    for (int i = 0; i < cornu_model_layer_count(model); i++)
        assert_true(cornu_shape_equal(cornu_model_layer(model, i)->output,
                                      cornu_model_layer(loaded, i)->output));
    FILE *files[2] = { fopen(path, "rb"), fopen(other, "rb") };
    assert_true(files[0] && files[1]);
    const size_t size = fread(a, 1, sizeof a, files[0]);
    assert_int_equal(fread(b, 1, sizeof b, files[1]), size);
    assert_memory_equal(a, b, size);
    fclose(files[0]);
    fclose(files[1]);
    cornu_model_free(model);
    cornu_model_free(loaded);
}

/* The loss of some epochs over 64 rows of noise with targets that depend on their means. */
static double train(const char *policy, const char *device_name, double *first)
{
    enum { ROWS = 64, ROW = 12 * 12 * 4 };
    CornuDevice *device = cornu_device_open(device_name);
    CornuModel  *model = make_model(policy);
    fill(ROWS * ROW);
    for (int b = 0; b < ROWS; b++)
        for (int i = 0; i < ROW; i++) x[b * ROW + i] += (float)(b % 3) - 1.0f;
    for (int i = 0; i < ROWS * 3; i++) z[i] = i % 3 == i / 3 % 3 ? 1.0f : 0.0f;
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 5e-3),
                            .loss = CORNU_MEAN_SQUARED_ERROR, .device = device));
    CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, ROWS, 12, 12, 4),
                                      .y = cornu_array(z, CORNU_F32, ROWS, 3), .epochs = 30,
                                      .batch_size = 16, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    *first = cornu_history_get(history, "loss", 0);
    const double last = cornu_history_get(history, "loss", 29);
    assert_int_equal(cornu_model_statistics(model)->fallbacks, 0);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return last;
}

static void they_learn(void **state)
{
    (void)state;
    static const char *const runs[][2] = { { "float32", "cpu" }, { "mixed_bfloat16", "cpu" },
                                           { "mixed_bfloat16", "tpu" } };
    for (int i = 0; i < 3; i++) {
        double       first;
        const double last = train(runs[i][0], runs[i][1], &first);
        if (!(last < 0.75 * first))
            fail_msg("%s on %s: loss from %g to %g", runs[i][0], runs[i][1], first, last);
    }
}

/* ---- Refusals ---- */

static void refuses(CornuLayer *layer, CornuStatus status, const char *part)
{
    assert_null(layer);
    expect_error(cornu_error_take(), status, part);
}

static void constructors_refuse(void **state)
{
    (void)state;
    refuses(cornu_depthwise_conv2d(), CORNU_ERR_ARGUMENT,
            "depthwise_conv2d: .kernel_size is required");
    refuses(cornu_depthwise_conv2d(3, .depth_multiplier = -1), CORNU_ERR_ARGUMENT,
            ".depth_multiplier is -1");
    refuses(cornu_separable_conv2d(0, 3), CORNU_ERR_ARGUMENT, "separable_conv2d: .filters is 0");
    refuses(cornu_conv1d(4), CORNU_ERR_ARGUMENT, "conv1d: .kernel_size is required");
    refuses(cornu_conv1d(4, 3, .groups = 3), CORNU_ERR_ARGUMENT, ".groups is 3");
    refuses(cornu_conv2d_transpose(4, 3, 2, .output_padding = { 2 }), CORNU_ERR_ARGUMENT,
            ".output_padding is 2, expected 0 or more and less than .strides, 2");
    refuses(cornu_zero_padding2d(1, .padding = { { 1 } }), CORNU_ERR_ARGUMENT, "both .around");
    refuses(cornu_cropping2d(.cropping = { { -1 } }), CORNU_ERR_ARGUMENT, ".cropping is -1");
    refuses(cornu_resizing(4), CORNU_ERR_ARGUMENT, "resizing: .width is 0");
    refuses(cornu_resizing(4, 4, .crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true),
            CORNU_ERR_ARGUMENT, "both .crop_to_aspect_ratio and .pad_to_aspect_ratio");
    refuses(cornu_random_rotation(0.1, .interpolation = CORNU_BICUBIC), CORNU_ERR_ARGUMENT,
            ".interpolation is 3, expected 1 (nearest) to 2 (bilinear)");
    refuses(cornu_depthwise_conv1d(.kernel_size = { 3, 2 }), CORNU_ERR_ARGUMENT,
            "depthwise_conv1d: .kernel_size is { 3, 2 }, expected one extent");
    refuses(cornu_separable_conv1d(4), CORNU_ERR_ARGUMENT, ".kernel_size is required");
    refuses(cornu_conv1d_transpose(4, 3, 2, .output_padding = { 2 }), CORNU_ERR_ARGUMENT,
            "conv1d_transpose: .output_padding is 2, expected 0 or more and less than .strides");
    refuses(cornu_zero_padding1d(1, .padding = { 1 }), CORNU_ERR_ARGUMENT, "both .around");
    refuses(cornu_up_sampling1d(-1), CORNU_ERR_ARGUMENT, "up_sampling1d: .size is -1");
    refuses(cornu_up_sampling2d(2, 7), CORNU_ERR_ARGUMENT, ".interpolation is 7");
    refuses(cornu_permute(.dims = { 1, 3 }), CORNU_ERR_ARGUMENT, ".dims[1] is 3");
    refuses(cornu_repeat_vector(), CORNU_ERR_ARGUMENT, "repeat_vector: .n is 0");
    refuses(cornu_average_pooling1d(), CORNU_ERR_ARGUMENT,
            "average_pooling1d: .pool_size is required");
    refuses(cornu_random_flip(3), CORNU_ERR_ARGUMENT, "random_flip: .mode is 3");
    refuses(cornu_random_rotation(1.5), CORNU_ERR_ARGUMENT, ".factor is from -1.5 to 1.5");
    refuses(cornu_random_zoom(.height_factor = { -1, 0 }), CORNU_ERR_ARGUMENT,
            "random_zoom: a factor is -1");
    refuses(cornu_random_translation(0.1, 0.1, 9), CORNU_ERR_ARGUMENT, ".fill_mode is 9");
    refuses(cornu_random_translation(0.1, .height_factor = { 0, 1 }), CORNU_ERR_ARGUMENT,
            "both .height and .height_factor");
    refuses(cornu_gaussian_noise(-1.0), CORNU_ERR_ARGUMENT, "gaussian_noise: .stddev is -1");
    refuses(cornu_gaussian_dropout(1.0), CORNU_ERR_ARGUMENT, "gaussian_dropout: .rate is 1");
    refuses(cornu_spatial_dropout2d(1.1), CORNU_ERR_ARGUMENT, "spatial_dropout2d: .rate is 1.1");
}

static void refuses_input(CornuLayer *layer, CornuShape input, const char *part)
{
    assert_non_null(layer);
    expect_error(cornu_layer_build(layer, input), CORNU_ERR_SHAPE, part);
    cornu_error_take();
    cornu_layer_free(layer);
}

static void impossible_inputs_are_named(void **state)
{
    (void)state;
    const CornuShape image = cornu_shape(CORNU_NONE, 4, 4, 3);
    const CornuShape steps = cornu_shape(CORNU_NONE, 4, 3);
    refuses_input(cornu_conv2d(4, 3, .groups = 2), image, "has 3 channels, expected a multiple");
    refuses_input(cornu_depthwise_conv2d(5), image, "smaller than the kernel (5, 5)");
    refuses_input(cornu_conv1d(2, 3, .dilation_rate = 2), steps, "smaller than the kernel (");
    refuses_input(cornu_depthwise_conv1d(5), steps, "smaller than the kernel (");
    refuses_input(cornu_separable_conv1d(2, 3), image, "expected (B, T, C)");
    refuses_input(cornu_conv1d_transpose(2, 3), image, "expected (B, T, C)");
    refuses_input(cornu_cropping1d(2), steps, "expected more than the 2 and 2 steps to crop");
    refuses_input(cornu_max_pooling1d(5), steps, "smaller than the pool (5,)");
    refuses_input(cornu_global_max_pooling2d(), steps, "expected (B, H, W, C)");
    refuses_input(cornu_cropping2d(2), image, "expected more than the 2 and 2");
    refuses_input(cornu_permute(.dims = { 1, 2 }), image, "expected 2 axes");
    refuses_input(cornu_repeat_vector(2), image, "expected (B, C)");
}

/* What takes away thousands of an unknown number of steps, as networks for DNA do. */
static void many_unknown_steps_are_cropped(void **state)
{
    static const int64_t cropped[] = { 3, 300, 5000, 100000 };
    (void)state;
    for (size_t i = 0; i < sizeof cropped / sizeof *cropped; i++) {
        CornuSymbol  *x = cornu_input(.shape = { CORNU_NONE, 1 });
        CornuModel   *model = cornu_model(
            .inputs = { x }, .outputs = { cornu_call(cornu_cropping1d(cropped[i]), x) });
        const int64_t steps = 2 * cropped[i] + 2;
        float        *data = malloc((size_t)steps * sizeof *data), y[2];
        if (!model) fail_msg("%s", cornu_error_message());
        for (int64_t t = 0; t < steps; t++) data[t] = (float)t;
        expect_ok(cornu_predict_on_batch(model, cornu_array(data, CORNU_F32, 1, steps, 1),
                                         cornu_array(y, CORNU_F32, 1, 2, 1)));
        assert_true(y[0] == (float)cropped[i] && y[1] == (float)(cropped[i] + 1));
        free(data);
        cornu_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_steps_do_not_count),
        cmocka_unit_test(draws_belong_to_rows),
        cmocka_unit_test(moved_images_fold_back),
        cmocka_unit_test(flips_are_as_likely),
        cmocka_unit_test(noise_has_its_moments),
        cmocka_unit_test(channels_drop_together),
        cmocka_unit_test_setup_teardown(files_hold_them, files_begin, files_end),
        cmocka_unit_test(they_learn),
        cmocka_unit_test(many_unknown_steps_are_cropped),
        cmocka_unit_test(constructors_refuse),
        cmocka_unit_test(impossible_inputs_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
