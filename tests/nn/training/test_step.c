/*
 * A step must not depend on padding rows, on how the data are divided into calls, on the number of
 * threads, on what is joined into one kernel or on the device.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/synthetic/synthetic.h"
#include "../../../device/host/isa/product.h"
#include "../../../models/models.h"
#include "../../../nn/training/training_internal.h"
#include "../golden.h"

/* Data of ROWS rows, and others after them to pad the last batch. */
enum { ROWS = 75, BATCH = 32, DRAWN = 96, PIXELS = 784, CLASSES = 10, MAX_WEIGHTS = 64 };

static uint8_t images[DRAWN * PIXELS], labels[DRAWN];

static int draw(void **state)
{
    (void)state;
    cornu_synthetic_digits(1, 0, DRAWN, images, labels);
    return 0;
}

/* Rows first to first + count, in the shape of the input. */
static CornuArray images_for(const CornuModel *model, int64_t first, int64_t count)
{
    return cornu_reference_input(model, cornu_array(images + first * PIXELS, CORNU_U8, count, 28,
                                                    28));
}

static CornuArray labels_of(int64_t first, int64_t count)
{
    return cornu_array(labels + first, CORNU_U8, count);
}

static CornuModel *open_with_policy(const char *policy, const char *name, CornuDevice *device,
                                    CornuOptimizer *optimizer)
{
    cornu_set_random_seed(7);
    cornu_set_dtype_policy(policy);
    const CornuReferenceModel *reference = cornu_reference_model(name);
    CornuModel                *model = reference->build(&(CornuNetworkConfig){ 0 });
    expect_ok(cornu_compile(model, .loss = cornu_loss(reference->loss), .optimizer = optimizer,
                            .metrics = { CORNU_ACCURACY }, .device = device));
    return model;
}

/* In float32 on every device, whatever its default. */
static CornuModel *open_model(const char *name, CornuDevice *device, CornuOptimizer *optimizer)
{
    return open_with_policy("float32", name, device, optimizer);
}

/* Copies of all weights; free_weights frees them. */
typedef struct {
    int        count;
    CornuArray of[MAX_WEIGHTS];
} Weights;

static Weights read_weights(const CornuModel *model)
{
    Weights weights = { .count = cornu_model_weight_count(model) };
    assert_in_range(weights.count, 1, MAX_WEIGHTS);
    for (int i = 0; i < weights.count; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        weights.of[i] = cornu_array_from(malloc(cornu_type_bytes(weight->type)), weight->type);
        assert_non_null(weights.of[i].data);
        expect_ok(cornu_weight_read(weight, weights.of[i]));
    }
    return weights;
}

static void free_weights(Weights *weights)
{
    for (int i = 0; i < weights->count; i++) free(weights->of[i].data);
}

/* The changes of the weights from `before` must be equal to `tolerance` of the largest element,
 * tensor by tensor: gradients, and steps of the moving statistics. */
static void expect_same_moves(const char *what, const Weights *before, const Weights *one,
                              const Weights *two, double tolerance)
{
    for (int i = 0; i < before->count; i++) {
        double largest = 0.0, worst = 0.0;
        for (int64_t k = 0; k < cornu_type_count(before->of[i].type); k++) {
            const double start = cornu_array_get(before->of[i], k);
            const double a = cornu_array_get(one->of[i], k), b = cornu_array_get(two->of[i], k);
            largest = fmax(largest, fabs(a - start));
            worst = fmax(worst, fabs(a - b));
            assert_true(isfinite(a) && isfinite(b));
        }
        if (!(largest > 0.0) || worst > tolerance * largest)
            fail_msg("%s: weight %d moved by at most %.3g, and differs by %.3g", what, i, largest,
                     worst);
    }
}

/* ---- Rows that fill up ---- */

/* One step on a batch of `rows` rows, of which the first `valid` count. The padding rows are other
 * digits, not zeros: none of them may count. */
static void step_filled_up(CornuModel *model, int64_t first, int64_t valid, int64_t rows,
                           double values[2])
{
    CornuStep        *step;
    const CornuArray  x = images_for(model, first, rows), y = labels_of(first, rows);
    const CornuArrays arrays = { .x = &x, .y = &y };
    expect_ok(cornu__step(model, CORNU_STEP_TRAIN, &arrays, &step));
    expect_ok(cornu__step_feed(step, &arrays, valid));
    expect_ok(cornu__step_run(step, NULL));
    expect_ok(cornu__metrics_read(model, values));
}

/* One step on the first `valid` rows of a batch of `rows`, and one on a batch of just those. */
static void compare_step(const char *name, CornuDevice *device, int64_t valid, int64_t rows,
                         double tolerance)
{
    char        what[100];
    double      values[2], filled_values[2];
    CornuModel *model = open_model(name, device, cornu_sgd(.learning_rate = 1.0));
    CornuModel *filled = open_model(name, device, cornu_sgd(.learning_rate = 1.0));
    Weights     before = read_weights(model);
    expect_ok(
        cornu_train_on_batch(model, images_for(model, 0, valid), labels_of(0, valid), values));
    step_filled_up(filled, 0, valid, rows, filled_values);

    snprintf(what, sizeof what, "%s on %s", name, cornu_device_name(device));
    Weights after = read_weights(model), filled_after = read_weights(filled);
    expect_same_moves(what, &before, &after, &filled_after, tolerance);
    if (!(fabs(values[0] - filled_values[0]) <= 1e-6 * values[0]) || values[1] != filled_values[1])
        fail_msg("%s: loss and accuracy are %.9g, %.9g, filled up %.9g, %.9g", what, values[0],
                 values[1], filled_values[0], filled_values[1]);
    free_weights(&before), free_weights(&after), free_weights(&filled_after);
    cornu_model_free(model), cornu_model_free(filled);
}

/* Float sums in another order differ by some 1e-7 of their terms; one row too many would change a
 * gradient by 1e-2. */
static void rows_that_fill_up_do_not_count(void **state)
{
    CornuDevice *device = cornu_device_open("cpu");
    compare_step(*state, device, ROWS % BATCH, BATCH, 2e-5);
    compare_step(*state, device, 25, BATCH, 2e-5);
    cornu_device_close(device);
    device = cornu_device_open("reference");
    compare_step(*state, device, 3, 4, 1e-9);
    cornu_device_close(device);
}

/* ---- fit and evaluate against their parts ---- */

/* fit runs the very steps that are run here by hand, the last one with 21 rows too many, so the
 * weights are the same to the bit. A last batch of its own 11 rows would be added up in another
 * order, and differ by 1e-7; that alone may open a relu (of a million activations, one is 1e-8),
 * after which two trainings diverge, in double, too. The test above therefore bounds the difference
 * of a single step.
 *
 * fit sums the loss in f32 on the device, this test in double: six roundings of 2^-24. */
static void fit_equals_steps_by_hand(void **state)
{
    enum { EPOCHS = 2 };
    const char  *name = *state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *fitted = open_model(name, device, cornu_sgd(.learning_rate = 0.1));
    CornuModel  *stepped = open_model(name, device, cornu_sgd(.learning_rate = 0.1));
    Weights      before = read_weights(fitted);
    CornuHistory *history = cornu_fit(fitted, .x = images_for(fitted, 0, ROWS),
                                      .y = labels_of(0, ROWS), .batch_size = BATCH,
                                      .epochs = EPOCHS, .no_shuffle = true,
                                      .verbose = CORNU_SILENT);
    assert_non_null(history);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double loss = 0.0, right = 0.0;
        for (int64_t first = 0; first < ROWS; first += BATCH) {
            const int64_t count = first + BATCH < ROWS ? BATCH : ROWS - first;
            double        values[2];
            expect_ok(cornu_model_reset_metrics(stepped));
            step_filled_up(stepped, first, count, BATCH, values);
            loss += values[0] * (double)count / ROWS;
            right += values[1] * (double)count;
        }
        const double fit_loss = cornu_history_get(history, "loss", epoch);
        if (!(fabs(fit_loss - loss) <= ldexp(6.0, -24) * loss))
            fail_msg("%s, epoch %d: loss %.9g, by hand %.9g", name, epoch, fit_loss, loss);
        assert_int_equal(lrint(cornu_history_get(history, "accuracy", epoch) * ROWS),
                         lrint(right));
    }
    Weights after = read_weights(fitted), by_hand = read_weights(stepped);
    for (int i = 0; i < after.count; i++) {
        const size_t bytes = cornu_type_bytes(after.of[i].type);
        if (memcmp(after.of[i].data, by_hand.of[i].data, bytes))
            fail_msg("%s: weight %d is another after fit than after its steps by hand", name, i);
        if (!memcmp(after.of[i].data, before.of[i].data, bytes))
            fail_msg("%s: weight %d did not move", name, i);
    }
    free_weights(&before), free_weights(&after), free_weights(&by_hand);
    cornu_history_free(history);
    cornu_model_free(fitted), cornu_model_free(stepped);
    cornu_device_close(device);
}

static void evaluate_equals_predictions(void **state)
{
    (void)state;
    static float probabilities[ROWS][CLASSES];
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = open_model("mnist_cnn", device, cornu_adam());
    double       values[2], loss = 0.0, right = 0.0;
    for (int i = 0; i < 20; i++)
        expect_ok(
            cornu_train_on_batch(model, images_for(model, 0, BATCH), labels_of(0, BATCH), NULL));
    expect_ok(cornu_evaluate(model, .x = images_for(model, 0, ROWS), .y = labels_of(0, ROWS),
                             .batch_size = BATCH, .results = values, .verbose = CORNU_SILENT));
    expect_ok(cornu_predict(model, .x = images_for(model, 0, ROWS), .batch_size = 19,
                            .verbose = CORNU_SILENT,
                            .to = cornu_array(probabilities, CORNU_F32, ROWS, CLASSES)));
    for (int i = 0; i < ROWS; i++) {
        const float *p = probabilities[i];
        double       sum = 0.0;
        int          best = 0;
        for (int k = 0; k < CLASSES; k++) sum += p[k];
        for (int k = 1; k < CLASSES; k++)
            if (p[k] > p[best]) best = k;
        loss -= log(fmin(fmax(p[labels[i]] / sum, 1e-7), 1.0 - 1e-7)) / ROWS;
        right += best == labels[i];
    }
    if (!(fabs(values[0] - loss) <= 1e-6 * loss) || !(fabs(values[1] - right / ROWS) <= 1e-9))
        fail_msg("evaluate gives %.9g, %.9g, the predictions %.9g, %.9g", values[0], values[1],
                 loss, right / ROWS);
    assert_true(right > 0.2 * ROWS);   /* it has learnt: the comparison is meaningful */
    cornu_model_free(model);
    cornu_device_close(device);
}

/* ---- Threads ---- */

/* A whole batch, and one of less. */
static Weights train_on_threads(const char *name, const char *device_name, int threads)
{
    enum { FEW = 27, FEW_BATCH = 16 };
    CornuDevice *device = cornu_device_open(.name = device_name, .threads = threads, .shards = 1);
    assert_non_null(device);
    assert_int_equal(cornu_device_threads(device), threads);
    CornuModel   *model = open_model(name, device, cornu_adam());
    CornuHistory *history = cornu_fit(model, .x = images_for(model, 0, FEW),
                                      .y = labels_of(0, FEW), .batch_size = FEW_BATCH,
                                      .epochs = 1, .verbose = CORNU_SILENT);
    assert_non_null(history);
    Weights weights = read_weights(model);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return weights;
}

static void compare_threads(const char *name, const char *device)
{
    Weights one = train_on_threads(name, device, 1);
    for (int threads = 2; threads <= 3; threads++) {
        Weights more = train_on_threads(name, device, threads);
        for (int i = 0; i < one.count; i++)
            if (memcmp(one.of[i].data, more.of[i].data, cornu_type_bytes(one.of[i].type)))
                fail_msg("%s on %s: weight %d is another after 2 steps on %d threads than on 1",
                         name, device, i, threads);
        free_weights(&more);
    }
    free_weights(&one);
}

static void threads_change_no_bit(void **state)
{
    compare_threads(*state, "cpu");
    compare_threads(*state, "tpu");
}

/* ---- Joined kernels ---- */

/* The gradients of a step in mixed_bfloat16 on tpu, without some passes. */
static Weights step_without(const char *passes, const char *name, Weights *before)
{
    enum { FEW = 64 };
    setenv("CORNU_PASSES", passes, 1);
    CornuDevice *device = cornu_device_open("tpu", .shards = 1);
    CornuModel  *model = open_with_policy("mixed_bfloat16", name, device,
                                         cornu_sgd(.learning_rate = 1.0));
    if (before) *before = read_weights(model);
    expect_ok(cornu_train_on_batch(model, images_for(model, 0, FEW), labels_of(0, FEW), NULL));
    unsetenv("CORNU_PASSES");
    Weights after = read_weights(model);
    cornu_model_free(model);
    cornu_device_close(device);
    return after;
}

/* Max pooling joined with its convolution takes the same of several elements that are equal in
 * bf16. Another choice would change gradients by percents. Only filter gradients that add no zeros
 * where the pool chose another element (CornuOuter) have their terms in another order. */
static void joining_pools_changes_no_bit(void **state)
{
    const char   *name = *state;
    const bool    selects = cornu__products_of_bf16()->selects;
    Weights       before, joined = step_without("", name, &before);
    Weights       apart = step_without("-pool", name, NULL);
    for (int i = 0; i < joined.count; i++) {
        const CornuType type = joined.of[i].type;
        if (!(selects && type.shape.rank == 4) &&
            memcmp(joined.of[i].data, apart.of[i].data, cornu_type_bytes(type)))
            fail_msg("%s: weight %d is another without joining", name, i);
    }
    expect_same_moves(name, &before, &joined, &apart, 1e-6);
    free_weights(&before), free_weights(&joined), free_weights(&apart);
}

/* ---- Devices ---- */

/* Few rows and steps: among a million activations one is so near zero that its relu may be open on
 * one device only, after which the weights diverge. */
static Weights descend_on(const char *name, const char *device_name)
{
    enum { STEPS = 2, FEW = 16 };
    CornuDevice *device = cornu_device_open(.name = device_name, .shards = 1);
    CornuModel  *model = open_model(name, device, cornu_sgd(.learning_rate = 0.01));
    for (int i = 0; i < STEPS; i++) {
        const int64_t first = i * FEW;
        expect_ok(cornu_train_on_batch(model, images_for(model, first, FEW),
                                       labels_of(first, FEW), NULL));
    }
    Weights weights = read_weights(model);
    cornu_model_free(model);
    cornu_device_close(device);
    return weights;
}

/* The float32 policy means float32 on both: six passes of bf16 carry as many bits. */
static void tpu_trains_as_cpu(void **state)
{
    Weights cpu = descend_on(*state, "cpu"), tpu = descend_on(*state, "tpu");
    for (int i = 0; i < cpu.count; i++) {
        double largest = 0.0, worst = 0.0;
        for (int64_t k = 0; k < cornu_type_count(cpu.of[i].type); k++) {
            const double a = cornu_array_get(cpu.of[i], k);
            largest = fmax(largest, fabs(a));
            worst = fmax(worst, fabs(a - cornu_array_get(tpu.of[i], k)));
        }
        if (!(worst <= 1e-5 * largest))
            fail_msg("%s: weight %d, at most %.3g, differs by %.3g", (const char *)*state, i,
                     largest, worst);
    }
    free_weights(&cpu), free_weights(&tpu);
}

#define FOR_EACH_MODEL(test)                                  \
    { #test " mnist_cnn", test, NULL, NULL, "mnist_cnn" },       \
    { #test " mnist_cnn_bn", test, NULL, NULL, "mnist_cnn_bn" }, \
    { #test " mnist_convnet", test, NULL, NULL, "mnist_convnet" }

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR_EACH_MODEL(rows_that_fill_up_do_not_count),
        FOR_EACH_MODEL(fit_equals_steps_by_hand),
        cmocka_unit_test(evaluate_equals_predictions),
        FOR_EACH_MODEL(threads_change_no_bit),
        FOR_EACH_MODEL(joining_pools_changes_no_bit),
        { "joining_pools_changes_no_bit fashion_mnist_cnn", joining_pools_changes_no_bit, NULL,
          NULL, "fashion_mnist_cnn" },
        FOR_EACH_MODEL(tpu_trains_as_cpu),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
