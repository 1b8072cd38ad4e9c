/*
 * Networks on the pjrt device against the cpu device: training, evaluation and prediction, on one
 * replica and on eight; in bfloat16 against the tpu device. Few rows and small texts; a test of
 * each network takes seconds, most of them in XLA's compiler.
 *
 * tests/run: takes 90 s, in check
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/synthetic/synthetic.h"
#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../device/pjrt/opened.h"
#include "../../expect.h"

/* A last batch of fewer rows; on eight shards some have none of its rows. */
enum { ROWS = 36, BATCH = 16, EPOCHS = 2, PIXELS = 784, CLASSES = 10, TIMES = 6, CHARACTERS = 32,
       MOST_WEIGHTS = 400000, MOST_TENSORS = 64, MOST_PREDICTIONS = ROWS * TIMES * CHARACTERS };

static uint8_t images[ROWS * PIXELS], digits[ROWS];
static uint8_t text[ROWS * TIMES], following[ROWS * TIMES];

static int make_data(void **state)
{
    (void)state;
    cornu_synthetic_digits(1, 0, ROWS, images, digits);
    for (int i = 0; i < ROWS * TIMES; i++) {
        text[i] = (uint8_t)(i * i % CHARACTERS);
        following[i] = (uint8_t)((i + 1) * (i + 1) % CHARACTERS);
    }
    return 0;
}

/* ---- Networks ---- */

static const CornuTextPreset lstm = { .channels = 12, .units = 16, .layers = 2,
                                      .sequence_length = TIMES };
static const CornuTextPreset gpt = { .channels = 16, .layers = 2, .heads = 2,
                                     .sequence_length = TIMES };

typedef struct {
    const char            *name;     /* of a network for digits */
    const CornuTextPreset *preset;   /* or of one for text */
    bool                   per_batch;   /* normalizes batches, which are each shard's own */
    double                 rate;        /* of learning; deep networks with few rows diverge */
    double                 weights_near;
    const char            *policy;      /* default float32 */
} Network;

/* Trained with plain momentum: Adam would turn the rounding errors of a gradient near 0 into a
 * whole step. */
static CornuModel *open_model(const Network *network, CornuDevice *device)
{
    cornu_set_random_seed(7);
    cornu_set_dtype_policy(network->policy ? network->policy : "float32");
    CornuModel *model;
    if (network->preset)
        model = cornu_text_network(.preset = network->preset, .vocabulary = CHARACTERS);
    else
        model = cornu_reference_model(network->name)->build(&(CornuNetworkConfig){ 0 });
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = device,
                            .optimizer = cornu_sgd(.learning_rate = network->rate, .momentum = 0.9),
                            .metrics = { CORNU_ACCURACY }));
    return model;
}

static CornuArray x_of(const Network *network, const CornuModel *model)
{
    if (network->preset) return cornu_array(text, CORNU_U8, ROWS, TIMES);
    return cornu_reference_input(model, cornu_array(images, CORNU_U8, ROWS, 28, 28));
}

static CornuArray y_of(const Network *network)
{
    return network->preset ? cornu_array(following, CORNU_U8, ROWS, TIMES)
                           : cornu_array(digits, CORNU_U8, ROWS);
}

/* ---- Trainings ---- */

typedef struct {
    double  loss[EPOCHS], accuracy[EPOCHS], metrics[2];
    int64_t count;
    float   weights[MOST_WEIGHTS], predictions[MOST_PREDICTIONS];
} Run;

static void read_weights(const CornuModel *model, Run *run)
{
    run->count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const int64_t      count = cornu_type_count(weight->type);
        assert_true(weight->type.dtype == CORNU_F32 && run->count + count <= MOST_WEIGHTS);
        expect_ok(cornu_weight_read(weight,
                                    cornu_array_from(run->weights + run->count, weight->type)));
        run->count += count;
    }
}

static void train(const Network *network, CornuDevice *device, Run *run)
{
    memset(run, 0, sizeof *run);
    CornuModel      *model = open_model(network, device);
    const CornuArray x = x_of(network, model), y = y_of(network);
    CornuHistory    *history = cornu_fit(model, .x = x, .y = y, .batch_size = BATCH,
                                         .epochs = EPOCHS, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < EPOCHS; i++) {
        run->loss[i] = cornu_history_get(history, "loss", i);
        run->accuracy[i] = cornu_history_get(history, "accuracy", i);
    }
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = BATCH, .results = run->metrics,
                             .verbose = CORNU_SILENT));
    expect_ok(cornu_predict(model, .x = x, .batch_size = BATCH, .verbose = CORNU_SILENT,
                            .to = network->preset
                                ? cornu_array(run->predictions, CORNU_F32, ROWS, TIMES, CHARACTERS)
                                : cornu_array(run->predictions, CORNU_F32, ROWS, CLASSES)));
    read_weights(model, run);
    cornu_history_free(history);
    cornu_model_free(model);
}

static void train_on_cpu(const Network *network, int shards, Run *run)
{
    CornuDevice *device = cornu_device_open("cpu", .threads = 1, .shards = shards);
    if (!device) fail_msg("%s", cornu_error_message());
    train(network, device, run);
    cornu_device_close(device);
}

/* The largest difference, of the largest element of b. */
static double distance(const float *a, const float *b, int64_t count)
{
    double far = 0, scale = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs((double)a[i] - b[i]);
        far = isnan(d) ? INFINITY : fmax(far, d);
        scale = fmax(scale, fabs(b[i]));
    }
    return far == 0.0 ? 0.0 : far / scale;
}

static void expect_near(const char *what, const float *a, const float *b, int64_t count,
                        double bound)
{
    const double far = distance(a, b, count);
    if (!(far <= bound))
        fail_msg("%s: %.3g of the largest away, expected at most %.3g", what, far, bound);
}

static void expect_close_runs(const Run *a, const Run *b, double loss, double weights)
{
    assert_int_equal(a->count, b->count);
    assert_float_equal(a->loss[0], b->loss[0], loss);
    expect_near("weights", a->weights, b->weights, a->count, weights);
    expect_near("predictions", a->predictions, b->predictions, MOST_PREDICTIONS, 10 * weights);
    assert_float_equal(a->metrics[0], b->metrics[0], 10 * weights * b->metrics[0]);
    assert_float_equal(a->metrics[1], b->metrics[1], 1.01 / ROWS);
}

/* Twice on a pjrt device: a second training has the same bits, on GPUs if that is asked for. */
static void train_twice(const Network *network, int shards, Run *run)
{
    static Run   again;
    CornuDevice *device = pjrt_open_with(",deterministic=true", shards);
    train(network, device, run);
    train(network, device, &again);
    cornu_device_close(device);
    assert_memory_equal(run, &again, sizeof again);
}

/* The weights have moved by far more than the bounds. */
static void networks_learn_as_on_cpu(void **state)
{
    const Network *network = *state;
    static Run     one, cpu;
    train_twice(network, 1, &one);
    train_on_cpu(network, 1, &cpu);
    expect_close_runs(&one, &cpu, 1e-4, network->weights_near);
    assert_true(fabs(one.loss[1] - one.loss[0]) > 1e-3);
}

/* Dropout does not depend on the number of shards; statistics of batches do: what normalizes them
 * is compared with eight shards of the cpu device. */
static void eight_replicas_learn_what_one_learns(void **state)
{
    const Network *network = *state;
    static Run     eight, other;
    train_twice(network, 8, &eight);
    if (network->per_batch) {
        train_on_cpu(network, 8, &other);
        expect_close_runs(&eight, &other, 1e-4, network->weights_near);
    } else {
        CornuDevice *device = pjrt_open(1);
        train(network, device, &other);
        cornu_device_close(device);
        expect_close_runs(&eight, &other, 1e-5, 1e-5);
    }
}

/* ---- Executions of several steps ---- */

/* A small network with dropout, and its weights after two epochs of 9 steps, the last with fewer
 * rows. */
static double learn_in_executions(int64_t steps, int shards, float *weights)
{
    enum { SMALL_BATCH = 4 };
    static float pixels[ROWS * 16];
    double       metrics[2];
    cornu_set_random_seed(3);
    for (int i = 0; i < ROWS * 16; i++) pixels[i] = (float)images[i * 49 + 24] / 255.0f;
    CornuDevice *device = pjrt_open(shards);
    CornuModel  *model = cornu_sequential(.input_shape = { 16 });
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .optimizer = cornu_adam(.learning_rate = 0.1),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }, .steps_per_execution = steps));
    const CornuArray x = cornu_array(pixels, CORNU_F32, ROWS - 1, 16);
    const CornuArray y = cornu_array(digits, CORNU_U8, ROWS - 1);
    CornuHistory    *history = cornu_fit(model, .x = x, .y = y, .batch_size = SMALL_BATCH,
                                         .epochs = 2, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    const double loss = cornu_history_get(history, "loss", 1);
    cornu_history_free(history);
    expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = SMALL_BATCH, .results = metrics,
                             .verbose = CORNU_SILENT));
    for (int i = 0, k = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(weights + k, weight->type)));
        k += (int)cornu_type_count(weight->type);
    }
    cornu_model_free(model);
    cornu_device_close(device);
    return loss + metrics[0] + metrics[1];
}

static void executions_of_several_steps_learn_the_same(void **state)
{
    static const int64_t steps[] = { 2, 4, 9, 1000 };
    enum { WEIGHTS = 16 * 3 + 3 + 3 * CLASSES + CLASSES };
    float weights[WEIGHTS], expected[WEIGHTS];
    (void)state;
    for (int shards = 1; shards <= 4 && shards <= pjrt_most_shards(); shards *= 4) {
        const double sum = learn_in_executions(1, shards, expected);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            assert_float_equal(learn_in_executions(steps[i], shards, weights), sum, 1e-5);
            expect_near("weights", weights, expected, WEIGHTS, 1e-5);
        }
    }
}

/* ---- Rounding to bfloat16 ---- */

/* The gradients of BATCH rows: what plain SGD at a rate of 1 changes the weights by. Returns the
 * first element of each weight in `first`, and their number. */
static int read_gradients(const Network *network, CornuDevice *device, int64_t row, Run *run,
                          int64_t first[MOST_TENSORS + 1])
{
    static Run  before;
    CornuModel *model = open_model(network, device);
    const int   count = cornu_model_weight_count(model);
    read_weights(model, &before);
    expect_ok(cornu_train_on_batch(
        model, cornu_reference_input(model, cornu_array(images + row * PIXELS, CORNU_U8, BATCH, 28,
                                                        28)),
        cornu_array(digits + row, CORNU_U8, BATCH), NULL));
    read_weights(model, run);
    for (int64_t k = 0; k < run->count; k++) run->weights[k] -= before.weights[k];
    assert_true(count <= MOST_TENSORS);
    first[0] = 0;
    for (int i = 0; i < count; i++)
        first[i + 1] = first[i] + cornu_type_count(cornu_model_weight(model, i)->type);
    cornu_model_free(model);
    return count;
}

/* Many sums before a max pooling are equal once rounded to bfloat16, and both devices must take the
 * first: another choice changes gradients by percents of the largest. The order of sums differs,
 * too. Rarely that rounds a sum to its other neighbour and shows as 1e-4; in some rows it does not
 * happen. On GPUs gradients of filters are rounded to bfloat16: all within a unit of its. */
static void tpu_rounds_as_xla_does(void **state)
{
    const Network *network = *state;
    CornuDevice   *xla = pjrt_open(1), *tpu = cornu_device_open("tpu", .threads = 1, .shards = 1);
    static Run     a, b;
    const bool     is_gpu = strstr(cornu_device_description(xla), "pjrt: cuda,");
    const double   far = is_gpu ? 1.0 / 256.0 : 1e-3;
    const double   near = is_gpu ? far : network->weights_near;
    double         least = INFINITY;
    for (int64_t row = 0; row + BATCH <= ROWS; row += BATCH) {
        int64_t   first[MOST_TENSORS + 1];
        double    most = 0.0;
        const int count = read_gradients(network, xla, row, &a, first);
        assert_int_equal(read_gradients(network, tpu, row, &b, first), count);
        for (int i = 0; i < count; i++)
            most = fmax(most, distance(a.weights + first[i], b.weights + first[i],
                                       first[i + 1] - first[i]));
        if (!(most <= far)) fail_msg("a gradient is %.3g of its largest element away", most);
        least = fmin(least, most);
    }
    if (!(least <= near))
        fail_msg("gradients are %.3g of the largest element away, expected at most %.3g", least,
                 near);
    cornu_device_close(xla);
    cornu_device_close(tpu);
}

/* ---- Bad data ---- */

static void expect_element_named(int shards, int64_t steps, int element)
{
    enum { COUNT = 40 };
    static float   x[COUNT * 2];
    static int32_t y[COUNT];
    char           training[80], evaluation[120];
    CornuDevice *device = pjrt_open(shards);
    CornuModel  *model = cornu_sequential(.input_shape = { 2 });
    y[element] = 7;
    snprintf(training, sizeof training, "; it is in element %d of the data set, row ", element);
    snprintf(evaluation, sizeof evaluation, "%s%d of batch %d", training, element % 8,
             element / 8);
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .steps_per_execution = steps,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    const CornuArray in = cornu_array(x, CORNU_F32, COUNT, 2);
    const CornuArray labels = cornu_array(y, CORNU_I32, COUNT);
    assert_null(cornu_fit(model, .x = in, .y = labels, .batch_size = 8, .verbose = CORNU_SILENT));
    expect_error(cornu_error_status(), CORNU_ERR_VALUE, "label 7 in row ");
    expect_error(cornu_error_take(), CORNU_ERR_VALUE, training);
    expect_error(cornu_evaluate(model, .x = in, .y = labels, .batch_size = 8,
                                .verbose = CORNU_SILENT), CORNU_ERR_VALUE, evaluation);
    y[element] = 2;
    expect_ok(cornu_evaluate(model, .x = in, .y = labels, .batch_size = 8,
                             .verbose = CORNU_SILENT));
    cornu_model_free(model);
    cornu_device_close(device);
}

static void wrong_labels_are_found_in_the_data(void **state)
{
    (void)state;
    expect_element_named(1, 1, 0);
    expect_element_named(1, 1, 23);
    expect_element_named(1, 1, 39);
    expect_element_named(1, 2, 23);
    expect_element_named(1, 2, 39);
    expect_element_named(1, 5, 23);
    if (pjrt_most_shards() < 8) return;
    expect_element_named(8, 1, 23);
    expect_element_named(8, 3, 25);
}

int main(void)
{
    static Network networks[] = {
        { .name = "mnist_cnn", .rate = 0.01, .weights_near = 1e-5 },
        { .name = "mnist_cnn_bn", .per_batch = true, .rate = 0.001, .weights_near = 1e-3 },
        /* Two rows a shard, whose variance may be almost nothing: small steps. */
        { .name = "mnist_cnn_bn", .per_batch = true, .rate = 0.0005, .weights_near = 1e-3 },
        { .name = "resnet20", .per_batch = true, .rate = 0.001, .weights_near = 1e-3 },
        { .name = "lstm", .preset = &lstm, .rate = 0.1, .weights_near = 1e-5 },
        { .name = "gpt", .preset = &gpt, .rate = 0.01, .weights_near = 1e-5 },
        { .name = "mnist_cnn", .rate = 1.0, .weights_near = 1e-6, .policy = "mixed_bfloat16" },
    };
    const struct CMUnitTest tests[] = {
        { "mnist_cnn", networks_learn_as_on_cpu, NULL, NULL, &networks[0] },
        { "mnist_cnn_bn", networks_learn_as_on_cpu, NULL, NULL, &networks[1] },
        { "resnet20", networks_learn_as_on_cpu, NULL, NULL, &networks[3] },
        { "lstm", networks_learn_as_on_cpu, NULL, NULL, &networks[4] },
        { "gpt", networks_learn_as_on_cpu, NULL, NULL, &networks[5] },
        { "mnist_cnn_on_8", eight_replicas_learn_what_one_learns, NULL, NULL, &networks[0] },
        { "mnist_cnn_bn_on_8", eight_replicas_learn_what_one_learns, NULL, NULL, &networks[2] },
        { "resnet20_on_8", eight_replicas_learn_what_one_learns, NULL, NULL, &networks[3] },
        { "lstm_on_8", eight_replicas_learn_what_one_learns, NULL, NULL, &networks[4] },
        { "gpt_on_8", eight_replicas_learn_what_one_learns, NULL, NULL, &networks[5] },
        cmocka_unit_test(executions_of_several_steps_learn_the_same),
        { "mnist_cnn in mixed_bfloat16", tpu_rounds_as_xla_does, NULL, NULL, &networks[6] },
        cmocka_unit_test(wrong_labels_are_found_in_the_data),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
