/* Steps on a device with several shards: the batch is distributed, the result is the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../../datasets/pipeline/shard_rows_internal.h"
#include "../../expect.h"

enum { ROWS = 228, BATCH = 128, MOST = 400000 };   /* a whole batch, then one of 100 */

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static uint8_t images[ROWS][784], labels[ROWS];

static int draw(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        labels[i] = (uint8_t)(i * 7 % 10);
        for (int k = 0; k < 784; k++)
            images[i][k] = (uint8_t)((i * 131 + k * (labels[i] + 3) * 17) % 256);
    }
    return 0;
}

static CornuArray x_of(int first, int rows)
{
    return cornu_array(images[first], CORNU_U8, rows, 28, 28);
}

static CornuArray y_of(int first, int rows) { return cornu_array(labels + first, CORNU_U8, rows); }

typedef struct {
    float   weights[MOST];
    int64_t count;
    double  metrics[2];
    float   predictions[100][10];
} Run;

/* Runs two epochs of two batches, the second with 100 rows of 128. */
static void run(const char *network, int shards, int threads, double rate, Run *result)
{
    cornu_set_random_seed(11);
    CornuDevice *device = made(cornu_device_open("cpu", .threads = threads, .shards = shards));
    CornuModel  *model = made(cornu_reference_model(network)->build(&(CornuNetworkConfig){ 0 }));
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }, .device = device,
                            .optimizer = cornu_sgd(.learning_rate = rate)));
    const CornuArray x = cornu_reference_input(model, x_of(0, ROWS));
    CornuHistory    *history = made(cornu_fit(model, .x = x, .y = y_of(0, ROWS), .epochs = 2,
                                              .batch_size = BATCH, .verbose = CORNU_SILENT));
    expect_ok(cornu_evaluate(model, .x = x, .y = y_of(0, ROWS), .batch_size = BATCH,
                             .results = result->metrics, .verbose = CORNU_SILENT));
    expect_ok(cornu_predict(model, .x = cornu_reference_input(model, x_of(17, 100)),
                            .batch_size = 64, .verbose = CORNU_SILENT,
                            .to = cornu_array(result->predictions, CORNU_F32, 100, 10)));
    result->count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(
            weight, cornu_array_from(result->weights + result->count, weight->type)));
        result->count += cornu_type_count(weight->type);
    }
    assert_int_equal(cornu_model_statistics(model)->fallbacks, 0);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void expect_near(const char *what, const float *a, const float *b, int64_t count,
                        double bound)
{
    double far = 0, scale = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - b[i]);
        far = isnan(d) ? INFINITY : fmax(far, d);
        scale = fmax(scale, fabs(b[i]));
    }
    if (!(far <= bound * scale))
        fail_msg("%s: %g away, expected at most %g", what, far / scale, bound);
}

/* Dropout is on: a row's mask depends on its position in the batch, not on the shard that computes
 * it. */
static void shards_learn_what_one_device_learns(void **state)
{
    (void)state;
    static const int numbers[] = { 2, 3, 4, 8, 12, 64 };
    static Run       one, more;
    run("mnist_convnet", 1, 1, 0.01, &one);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        run("mnist_convnet", numbers[i], 2, 0.01, &more);
        expect_near("weights", more.weights, one.weights, one.count, 1e-5);
        expect_near("predictions", &more.predictions[0][0], &one.predictions[0][0], 1000, 1e-4);
        assert_float_equal(more.metrics[0], one.metrics[0], 1e-5 * one.metrics[0]);
        assert_float_equal(more.metrics[1], one.metrics[1], 1e-9);
    }
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    static Run first, other;
    for (int shards = 4; shards <= 64; shards *= 16) {
        run("mnist_cnn_bn", shards, 1, 0.01, &first);
        for (int threads = 2; threads <= 5; threads++) {
            run("mnist_cnn_bn", shards, threads, 0.01, &other);
            assert_memory_equal(&first, &other, sizeof first);
        }
    }
}

/* Five rows on eight shards: three shards have none and do not contribute to the statistics. */
static void shards_without_rows_leave_statistics_alone(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu", .threads = 2, .shards = 8));
    CornuModel  *model = made(cornu_sequential(.input_shape = { 3 }));
    cornu_model_add(model, cornu_batch_normalization(.momentum = 0.5));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .device = device,
                            .optimizer = cornu_sgd(.learning_rate = CORNU_ZERO)));
    float x[21][3], mean[3];
    for (int i = 0; i < 21; i++)
        for (int k = 0; k < 3; k++) x[i][k] = (float)(i + 10 * k);
    CornuHistory *history = made(cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, 21, 3), .y = cornu_array(x, CORNU_F32, 21, 3),
        .batch_size = 16, .no_shuffle = true, .verbose = CORNU_SILENT));
    expect_ok(cornu_weight_read(cornu_model_weight(model, 2), cornu_array(mean, CORNU_F32, 3)));
    /* 16 rows: shard means 0.5, 2.5, … 14.5, their mean 7.5. Then rows 16 to 20 alone, mean 18. */
    for (int k = 0; k < 3; k++)
        assert_float_equal(mean[k], 0.5 * (0.5 * (7.5 + 10 * k)) + 0.5 * (18 + 10 * k), 1e-5);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* Dense and convolved, synchronized: weights and moving statistics after three steps, the last one
 * of 5 rows, are those of one shard. */
static void synchronized_statistics_are_the_batch(void **state)
{
    (void)state;
    enum { MANY = 37, BATCHED = 16, SIZE = 6 * 6 };
    static float   x[MANY * SIZE], learned[2][4096];
    static uint8_t y[MANY];
    int64_t        count = 0;
    for (int i = 0; i < MANY * SIZE; i++) x[i] = (float)(2 + sin(0.37 * i) + i % SIZE % 5);
    for (int i = 0; i < MANY; i++) y[i] = (uint8_t)(i * 3 % 4);
    for (int many = 0; many < 2; many++) {
        cornu_set_random_seed(5);
        CornuDevice *device = made(cornu_device_open("cpu", .threads = 2, .shards = many ? 8 : 1));
        CornuModel  *model = made(cornu_sequential(.input_shape = { 6, 6, 1 }));
        cornu_model_add(model, cornu_conv2d(3, 3, .no_bias = true));
        cornu_model_add(model, cornu_batch_normalization(.momentum = 0.5, .synchronized = true));
        cornu_model_add(model, cornu_activation(CORNU_TANH));
        cornu_model_add(model, cornu_flatten());
        cornu_model_add(model, cornu_dense(5, .no_bias = true));
        cornu_model_add(model, cornu_batch_normalization(.synchronized = true));
        cornu_model_add(model, cornu_dense(4, .activation = CORNU_SOFTMAX));
        expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .device = device, .optimizer = cornu_sgd(.learning_rate = 0.1)));
        CornuHistory *history = made(cornu_fit(
            model, .x = cornu_array(x, CORNU_F32, MANY, 6, 6, 1),
            .y = cornu_array(y, CORNU_U8, MANY), .batch_size = BATCHED, .no_shuffle = true,
            .verbose = CORNU_SILENT));
        count = 0;
        for (int i = 0; i < cornu_model_weight_count(model); i++) {
            CornuWeight *weight = cornu_model_weight(model, i);
            expect_ok(cornu_weight_read(
                weight, cornu_array_from(learned[many] + count, weight->type)));
            if (many)
                expect_near(weight->path, learned[1] + count, learned[0] + count,
                            cornu_type_count(weight->type), 1e-5);
            count += cornu_type_count(weight->type);
        }
        assert_int_equal(cornu_model_statistics(model)->fallbacks, 0);
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* A batch without rows, possible in a call of a layer, has no statistics: the old ones stay. */
static void no_rows_move_no_statistics(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu", .shards = 2));
    CornuLayer  *layer = made(cornu_batch_normalization(.momentum = 0.5));
    expect_ok(cornu_layer_build(layer, cornu_shape(CORNU_NONE, 3)));
    expect_ok(cornu_layer_move(layer, device));
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuCall    call = { .graph = graph, .training = true };
    call.count = cornu_graph_shard_input(graph, cornu_scalar(CORNU_I64));
    CornuTensor *x = cornu_op_constant(graph, cornu_type(CORNU_F32, 4, 3), 5);
    CornuTensor *y = made(cornu_layer_call(layer, &call, x));
    for (int64_t rows = 0; rows <= 4; rows += 4) {
        float   seen[3], out[2 * 4 * 3];
        int64_t counts[2] = { rows, 0 };
        expect_ok(cornu_graph_feed(call.count, cornu_array(counts, CORNU_I64, 2)));
        CornuArray to = cornu_array(out, CORNU_F32, 2, 4, 3);
        expect_ok(cornu_run(graph, &y, 1, &to));
        expect_ok(cornu_weight_read(layer->weights[2], cornu_array(seen, CORNU_F32, 3)));
        for (int k = 0; k < 3; k++) assert_float_equal(seen[k], rows ? 2.5 : 0, 0);
        expect_ok(cornu_weight_read(layer->weights[3], cornu_array(seen, CORNU_F32, 3)));
        for (int k = 0; k < 3; k++) assert_float_equal(seen[k], rows ? 0.5 : 1, 0);
    }
    cornu_graph_free(graph);
    cornu_layer_free(layer);
    cornu_device_close(device);
}

/* Constant features: the mean of squares less the square of the mean is, rounded, as often below 0
 * as above, and a negative variance has no square root. The rest is rounding: of the mean, 2^-22 of
 * it, times 1 / sqrt(epsilon) at most, 32. */
static void constant_features_have_no_negative_variance(void **state)
{
    (void)state;
    enum { N = 64, MANY = 12 };
    static float x[MANY][N], y[MANY][N], learned[N];
    CornuDevice *device = made(cornu_device_open("cpu", .shards = 4));
    CornuModel  *model = made(cornu_sequential(.input_shape = { N }));
    for (int i = 0; i < MANY * N; i++) x[i / N][i % N] = 1000.0f + 0.37f * (float)(i % N);
    cornu_model_add(model, cornu_batch_normalization(.momentum = 0.5, .synchronized = true));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .device = device,
                            .optimizer = cornu_sgd(.learning_rate = 1e-6)));
    expect_ok(cornu_train_on_batch(model, cornu_array(x, CORNU_F32, MANY, N),
                                   cornu_array(y, CORNU_F32, MANY, N), NULL));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {   /* gamma, beta, mean, variance */
        expect_ok(cornu_weight_read(cornu_model_weight(model, i),
                                    cornu_array(learned, CORNU_F32, N)));
        for (int k = 0; k < N; k++) {
            const double expected = i == 0 ? 1 : i == 1 ? 0 : i == 2 ? (double)x[0][k] / 2 : 0.5;
            const double near = i == 0 || i == 1 ? 1e-3 : i == 2 ? 1e-3 : 0.5;
            if (!(fabs((double)learned[k] - expected) <= near) || (i == 3 && learned[k] < 0.5f))
                fail_msg("weight %d[%d] is %g, expected %g", i, k, (double)learned[k], expected);
        }
    }
    cornu_model_free(model);
    cornu_device_close(device);
}

static void rows_are_dealt_evenly(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 1024; shards += shards < 40 ? 1 : 123)
        for (int64_t valid = 0; valid <= 40; valid++) {
            CornuShardRows split = cornu__shard_rows(shards, (40 + shards - 1) / shards, valid);
            int64_t   next = 0, least = valid, most = 0;
            for (int s = 0; s < shards; s++) {
                assert_int_equal(split.first[s], next);
                next += split.count[s];
                if (split.count[s] < least) least = split.count[s];
                if (split.count[s] > most) most = split.count[s];
                for (int64_t i = 0; i < split.rows; i++) {
                    const int64_t row = cornu__shard_row(&split, s, i), of = row - split.first[s];
                    if (split.count[s] == 0) assert_int_equal(row, 0);
                    else assert_true(i < split.count[s] ? of == i : of >= 0 && of < split.count[s]);
                }
            }
            assert_int_equal(next, valid);
            assert_true(most - least <= 1 && most <= split.rows);
        }
}

static void more_shards_than_rows_are_refused(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu", .shards = 8));
    CornuModel  *model = made(cornu_mnist_cnn());
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_adam(), .device = device));
    assert_int_equal(cornu_train_on_batch(model, x_of(0, 5), y_of(0, 5), NULL), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "a batch of 5 rows for 8 shards"));
    cornu_model_free(model);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_learn_what_one_device_learns),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(shards_without_rows_leave_statistics_alone),
        cmocka_unit_test(synchronized_statistics_are_the_batch),
        cmocka_unit_test(no_rows_move_no_statistics),
        cmocka_unit_test(constant_features_have_no_negative_variance),
        cmocka_unit_test(rows_are_dealt_evenly),
        cmocka_unit_test(more_shards_than_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
