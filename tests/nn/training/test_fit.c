/* fit, evaluate, predict: exact partial batches, resuming, infeed, bad data, no allocations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "tiny.h"
#include "../../skip.h"

/* ---- Numbers ---- */

static void read_weights(const CornuModel *model, float to[8])
{
    int at = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_read(weight, cornu_array_from(to + at, weight->type)));
        at += (int)cornu_type_count(weight->type);
    }
    assert_int_equal(at, 8);
}

/* Keras rounds the training part down: 7 of 10 rows if a quarter is set aside. */
static void the_split_rounds_as_keras(void **state)
{
    static const struct { double part; int64_t trained; } cases[] = {
        { 0.25, 7 }, { 0.01, 9 }, { 0.99, 0 }, { 0.5, 5 }, { 0.85, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuModel   *model = tiny_model(*state, cornu_sgd(), accuracy);
        CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                          .validation_split = cases[i].part,
                                          .verbose = CORNU_SILENT);
        if (cases[i].trained > 0) {
            if (!history) fail_msg("%s", cornu_error_message());
            assert_int_equal(cornu_history_samples(history, 0), cases[i].trained);
        } else {
            assert_null(history);
            expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "leaves 0 of 10 samples");
        }
        cornu_history_free(history);
        cornu_model_free(model);
    }
}

/* Padding rows are zeros, and so are products of them: their probabilities are quotients of zeros,
 * which must not reach the gradient. */
static void rows_that_fill_up_are_harmless(void **state)
{
    static const char *const losses[] = {
        "categorical_crossentropy", "sparse_categorical_crossentropy",
        "categorical_focal_crossentropy", "categorical_generalized_cross_entropy",
    };
    float x[3][2] = { { 1, 2 }, { 3, 1 }, { 1, 1 } }, of_classes[3][2] = { { 1 }, { 0, 1 }, { 1 } };
    float labels[3] = { 0, 1, 0 }, w[4] = { 1, 2, 3, 1 };
    for (int i = 0; i < 4; i++) {
        const bool  sparse = i == 1 || i == 3;
        CornuModel *model = cornu_sequential(.input_shape = { 2 });
        expect_ok(cornu_model_add(model, cornu_dense(2, .no_bias = true)));
        expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.1),
                                .loss = cornu_loss(losses[i]), .device = *state));
        const CornuArray kernel = cornu_array(w, CORNU_F32, 2, 2);
        expect_ok(cornu_weight_write(cornu_model_weight(model, 0), kernel));
        cornu_history_free(cornu_fit(
            model, .x = cornu_array(x, CORNU_F32, 3, 2), .batch_size = 2, .no_shuffle = true,
            .y = sparse ? cornu_array(labels, CORNU_F32, 3)
                        : cornu_array(of_classes, CORNU_F32, 3, 2), .verbose = CORNU_SILENT));
        float after[4];
        expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                    cornu_array(after, CORNU_F32, 2, 2)));
        for (int k = 0; k < 4; k++) assert_true(isfinite(after[k]));
        assert_memory_not_equal(after, w, sizeof w);
        cornu_model_free(model);
    }
}

/* The mean of a sequence with all steps masked is 0 / 0, as in Keras; only a row of the data may
 * have one, on one shard and on two. */
static void no_row_that_fills_up_is_all_masked(void **state)
{
    int32_t     x[5][2] = { { 1, 0 }, { 2, 1 }, { 0, 2 }, { 1, 2 }, { 2, 0 } };
    float       y[5] = { 1, 2, 3, 4, 5 };
    CornuDevice *two = cornu_device_open("cpu", .shards = 2);
    assert_non_null(two);
    for (int i = 0; i < 2; i++) {
        CornuModel *model = cornu_sequential(.input_shape = { 2 });
        expect_ok(cornu_model_add(model, cornu_embedding(3, 4, .mask_zero = true)));
        expect_ok(cornu_model_add(model, cornu_global_average_pooling1d()));
        expect_ok(cornu_model_add(model, cornu_dense(1)));
        expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.1),
                                .loss = CORNU_MEAN_SQUARED_ERROR, .device = i ? two : *state,
                                .debug_nans = true));
        CornuHistory *history = cornu_fit(
            model, .x = cornu_array(x, CORNU_I32, 5, 2), .y = cornu_array(y, CORNU_F32, 5),
            .batch_size = 4, .no_shuffle = true, .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        cornu_history_free(history);
        float table[3][4];
        expect_ok(cornu_weight_read(cornu_model_weight(model, 0),
                                    cornu_array(table, CORNU_F32, 3, 4)));
        for (int k = 0; k < 12; k++) assert_true(isfinite(table[k / 4][k % 4]));
        cornu_model_free(model);
    }
    cornu_device_close(two);
}

/* The last batch of 2 of 10 rows counts as 2 rows: as if it were a batch of its own. */
static void partial_batches_are_exact(void **state)
{
    float         by_fit[8], by_hand[8];
    double        values[2], means[2] = { 0 };
    CornuModel   *model = tiny_model(*state, cornu_sgd(.momentum = 0.9), accuracy);
    CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                      .batch_size = 4, .no_shuffle = true,
                                      .verbose = CORNU_SILENT);
    assert_non_null(history);
    read_weights(model, by_fit);
    cornu_model_free(model);

    model = tiny_model(*state, cornu_sgd(.momentum = 0.9), accuracy);
    for (int64_t first = 0; first < ROWS; first += 4) {
        const int64_t count = ROWS - first < 4 ? ROWS - first : 4;
        expect_ok(cornu_model_reset_metrics(model));
        expect_ok(cornu_train_on_batch(model, rows_x(first, count), rows_y(first, count), values));
        for (int i = 0; i < 2; i++) means[i] += values[i] * (double)count / ROWS;
    }
    read_weights(model, by_hand);
    for (int i = 0; i < 8; i++) assert_float_equal(by_fit[i], by_hand[i], 1e-7);
    assert_float_equal(cornu_history_get(history, "loss", 0), means[0], 1e-7);
    assert_float_equal(cornu_history_get(history, "accuracy", 0), means[1], 1e-12);
    assert_int_equal(cornu_history_samples(history, 0), ROWS);
    cornu_history_free(history);

    /* The same results whatever the batch. */
    double in_one[2], in_threes[2];
    expect_ok(cornu_evaluate(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                             .verbose = CORNU_SILENT, .results = in_one));
    expect_ok(cornu_evaluate(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS), .batch_size = 3,
                             .verbose = CORNU_SILENT, .results = in_threes));
    assert_float_equal(in_one[0], in_threes[0], 1e-7);
    assert_float_equal(in_one[1], in_threes[1], 1e-12);

    float all[ROWS * 2], three[3 * 2];
    expect_ok(cornu_predict(model, .x = rows_x(0, ROWS), .batch_size = 4, .verbose = CORNU_SILENT,
                            .to = cornu_array(all, CORNU_F32, ROWS, 2)));
    expect_ok(cornu_predict_on_batch(model, rows_x(7, 3), cornu_array(three, CORNU_F32, 3, 2)));
    for (int i = 0; i < 6; i++) assert_float_equal(all[14 + i], three[i], 1e-7);
    cornu_model_free(model);
}

/* With dropout, shuffling and a schedule: stopping after two of four epochs changes nothing. */
static CornuModel *model_with_everything(CornuDevice *device)
{
    CornuModel *model = cornu_sequential(.name = "rich", .input_shape = { 3 });
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .metrics = { CORNU_ACCURACY },
                            .optimizer = cornu_adam(.schedule = cornu_cosine_decay(0.1, 20)),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

static void train(CornuModel *model, int64_t from, int64_t to, int64_t steps)
{
    CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                      .batch_size = 3, .initial_epoch = from, .epochs = to,
                                      .steps_per_epoch = steps, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_history_epochs(history), to - from);
    cornu_history_free(history);
}

static void resuming_equals_not_stopping(void **state)
{
    for (int64_t steps = 0; steps < 4; steps += 3) {
        float       at_once[8], in_parts[8];
        CornuModel *model = model_with_everything(*state);
        train(model, 0, 4, steps);
        read_weights(model, at_once);
        cornu_model_free(model);
        model = model_with_everything(*state);
        train(model, 0, 2, steps);
        train(model, 2, 4, steps);
        read_weights(model, in_parts);
        cornu_model_free(model);
        assert_memory_equal(at_once, in_parts, sizeof at_once);
    }
}

/* The steps are the same for any number per execution, also where an epoch's last one has fewer: 4
 * batches of 3 rows, the last of one; or 3 of them, the next epoch beginning with the fourth. */
static void executions_change_no_number(void **state)
{
    for (int64_t steps = 0; steps < 4; steps += 3) {
        float weights[4][8], predictions[4][ROWS * 2];
        for (int n = 0; n < 4; n++) {
            CornuModel   *model = executing_model(*state, cornu_adam(), accuracy, n + 1);
            CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                              .batch_size = 3, .epochs = 3,
                                              .steps_per_epoch = steps, .verbose = CORNU_SILENT);
            assert_non_null(history);
            assert_int_equal(cornu_history_infeed(history, 0).batches, steps ? steps : 4);
            assert_int_equal(cornu_history_samples(history, 0), steps ? 9 : ROWS);
            expect_ok(cornu_predict(model, .x = rows_x(0, ROWS), .batch_size = 3,
                                    .verbose = CORNU_SILENT,
                                    .to = cornu_array(predictions[n], CORNU_F32, ROWS, 2)));
            read_weights(model, weights[n]);
            assert_memory_equal(weights[n], weights[0], sizeof weights[0]);
            assert_memory_equal(predictions[n], predictions[0], sizeof predictions[0]);
            cornu_history_free(history);
            cornu_model_free(model);
        }
    }
}

/* ---- Infeed ---- */

enum { PRODUCED = 10 };   /* milliseconds, at least, to make a batch */

/* In this epoch: batches made so far, and seconds spent in callbacks. */
static atomic_llong made;
static double       lingered;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pause_for(long milliseconds)
{
    nanosleep(&(struct timespec){ 0, 1000000 * milliseconds }, NULL);
}

static CornuStatus make_slowly(void *context, CornuSample sample, const CornuArray *in,
                               const CornuArray *out)
{
    (void)context;
    for (int c = 0; c < 2; c++) memcpy(out[c].data, in[c].data, cornu_type_bytes(in[c].type));
    pause_for(PRODUCED);
    made = sample.index + 1;
    return CORNU_OK;
}

/* Waits until the next batch is made, which takes another thread. */
static CornuStatus linger(CornuCallback *self, CornuModel *model, int64_t index,
                          const CornuLogs *logs)
{
    const double  begin = seconds_now(), limit = 60.0;
    const int64_t wanted = index + 2 < ROWS / 2 ? index + 2 : ROWS / 2;
    (void)self, (void)model, (void)logs;
    while (made < wanted && seconds_now() < begin + limit) pause_for(1);
    assert_true(made >= wanted);
    lingered += seconds_now() - begin;
    return CORNU_OK;
}

static CornuInfeed slow_epoch(CornuModel *model, int prefetch, bool lingering)
{
    CornuCallback slow = { .train_batch_end = lingering ? linger : NULL };
    CornuDataset *data = cornu_dataset_from_arrays((CornuArray[]){ rows_x(0, ROWS),
                                                                   rows_y(0, ROWS) }, 2);
    data = cornu_dataset_map(cornu_dataset_batch(data, 2, false), make_slowly, NULL, NULL, 0);
    if (prefetch) data = cornu_dataset_prefetch(data, prefetch);
    made = 0;
    lingered = 0.0;
    CornuHistory *history = cornu_fit(model, data, .verbose = CORNU_SILENT,
                                      .callbacks = { &slow });
    if (!history) fail_msg("%s", cornu_error_message());
    const CornuInfeed infeed = cornu_history_infeed(history, 0);
    assert_int_equal(infeed.batches, ROWS / 2);
    assert_true(infeed.copy_seconds > 0.0);
    assert_true(infeed.wait_seconds > 0.0);
    assert_true(infeed.wait_seconds + infeed.copy_seconds + lingered <=
                cornu_history_seconds(history, 0));
    cornu_history_free(history);
    cornu_dataset_free(data);
    return infeed;
}

/* Under any load: without a prefetch thread the wait is the whole time of making the batches; with
 * one, batches made during a step cause no wait. */
static void waiting_for_batches_is_measured(void **state)
{
    CornuModel *model = tiny_model(*state, cornu_sgd(), accuracy);
    assert_true(slow_epoch(model, 0, false).wait_seconds >= 1e-3 * PRODUCED * ROWS / 2);
    slow_epoch(model, 2, false);
    slow_epoch(model, 2, true);
    cornu_model_free(model);
}

/* A row is three floats and a label; on 8 shards ten rows take the space of 16. A batch is not
 * larger than the data, ten rows. */
static void bytes_fed_are_counted(void **state)
{
    (void)state;
    static const struct { const char *device; int shards; int64_t batch, rows; } cases[] = {
        { "reference", 1, 4, 12 }, { "cpu", 1, 4, 12 }, { "tpu", 1, 32, 10 }, { "tpu", 8, 10, 16 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDevice  *device = cornu_device_open(cases[i].device, .shards = cases[i].shards);
        CornuModel   *model = tiny_model(device, cornu_sgd(), accuracy);
        CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                          .batch_size = cases[i].batch, .epochs = 2,
                                          .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        for (int epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(cornu_history_infeed(history, epoch).bytes, cases[i].rows * 16);
            assert_int_equal(cornu_history_infeed(history, epoch).batches,
                             (ROWS + cases[i].batch - 1) / cases[i].batch);
        }
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

/* Bytes are scaled inside the step; floats are taken as they are. */
static void whole_numbers_are_scaled(void **state)
{
    uint8_t bytes[3] = { 255, 51, 0 };
    float   floats[3] = { 1.0f, 0.2f, 0.0f }, from_bytes[2], from_floats[2];
    CornuModel *model = cornu_sequential(.input_shape = { 3, 1 }, .input_scale = 1.0 / 255);
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(2));
    expect_ok(cornu_compile(model, .device = *state));
    expect_ok(cornu_predict_on_batch(model, cornu_array(bytes, CORNU_U8, 1, 3),
                                     cornu_array(from_bytes, CORNU_F32, 1, 2)));
    expect_ok(cornu_predict_on_batch(model, cornu_array(floats, CORNU_F32, 1, 3, 1),
                                     cornu_array(from_floats, CORNU_F32, 1, 2)));
    for (int i = 0; i < 2; i++) assert_float_equal(from_bytes[i], from_floats[i], 1e-7);
    cornu_model_free(model);
}

/* ---- Mistakes ---- */

static void expect_fit_error(CornuHistory *history, CornuStatus status, const char *part)
{
    assert_null(history);
    expect_error(cornu_error_take(), status, part);
}

/* Classes are numbers of any dtype, whose fractions are dropped. */
static void float_labels_must_be_classes(void **state)
{
    static const struct { float label; const char *said; } cases[] = {
        { 0.0f, NULL }, { 0.7f, NULL }, { -0.5f, NULL },
        { NAN, "nan in row 2, expected a whole number" }, { INFINITY, "label inf in row 2" },
        { 1e20f, "label 1e+20 in row 2" },
    };
    static float y[ROWS];
    CornuModel  *model = tiny_model(*state, cornu_sgd(), accuracy);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int evaluates = 0; evaluates < 2; evaluates++) {
            for (int k = 0; k < ROWS; k++) y[k] = (float)(k % 2);
            y[2] = cases[i].label;
            double            results[2], of_zero[2];
            const CornuArray  labels = cornu_array(y, CORNU_F32, ROWS);
            CornuHistory     *history = NULL;
            CornuStatus       status;
            if (evaluates) {
                status = cornu_evaluate(model, .x = rows_x(0, ROWS), .y = labels,
                                        .results = results, .verbose = CORNU_SILENT);
            } else {
                history = cornu_fit(model, .x = rows_x(0, ROWS), .y = labels, .no_shuffle = true,
                                    .verbose = CORNU_SILENT);
                status = cornu_error_take();
            }
            if (cases[i].said) expect_error(status, CORNU_ERR_VALUE, cases[i].said);
            else expect_ok(status);
            cornu_history_free(history);
            if (!evaluates || cases[i].said) continue;
            y[2] = 0.0f;
            expect_ok(cornu_evaluate(model, .x = rows_x(0, ROWS), .y = labels,
                                     .results = of_zero, .verbose = CORNU_SILENT));
            assert_true(results[0] == of_zero[0] && results[1] == of_zero[1]);
        }
    /* Labels of a regression may be anything. */
    cornu_model_free(model);
    model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model, .device = *state, .optimizer = cornu_sgd(),
                            .loss = CORNU_MEAN_SQUARED_ERROR));
    y[2] = 1.7f;
    CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .verbose = CORNU_SILENT,
                                      .y = cornu_array(y, CORNU_F32, ROWS));
    assert_non_null(history);
    cornu_history_free(history);
    cornu_model_free(model);
}

static void mistakes_are_named(void **state)
{
    CornuModel   *model = tiny_model(*state, cornu_sgd(), accuracy);
    CornuArray    x = rows_x(0, ROWS), y = rows_y(0, ROWS);
    CornuDataset *batched = cornu_dataset_batch(
        cornu_dataset_from_arrays((CornuArray[]){ x, y }, 2), 4, false);
    expect_fit_error(cornu_fit(model, batched, .batch_size = 4), CORNU_ERR_ARGUMENT,
                     "fit: .batch_size is 4, but the data set is batched already");
    expect_fit_error(cornu_fit(model, batched, .validation_split = 0.5), CORNU_ERR_ARGUMENT,
                     ".validation_split is given, but the data set is batched already");
    expect_fit_error(cornu_fit(model), CORNU_ERR_ARGUMENT, "expected a data set or arrays");
    for (int i = -1; i < 2; i += 2)
        expect_fit_error(cornu_fit(model, .x = x, .y = y, .validation_split = i),
                         CORNU_ERR_ARGUMENT, "expected more than 0 and less than 1");
    expect_fit_error(cornu_fit(model, .xs = { x, x }, .y = y), CORNU_ERR_ARGUMENT,
                     "fit: 2 arrays are given for x, the model takes 1");
    expect_fit_error(cornu_fit(model, .x = x), CORNU_ERR_ARGUMENT, "x is given without y");
    expect_fit_error(cornu_fit(model, .x = x, .y = y, .batch_size = -3), CORNU_ERR_ARGUMENT,
                     ".batch_size is -3");
    expect_fit_error(cornu_fit(model, .x = x, .y = y, .validation_split = 1.0),
                     CORNU_ERR_ARGUMENT, ".validation_split is 1");
    expect_fit_error(cornu_fit(model, .verbose = CORNU_SILENT, .y = y,
                               .x = cornu_array(x_data, CORNU_F32, ROWS, 2)),
                     CORNU_ERR_SHAPE, "tiny: x is (10, 2), the model's input (None, 3)");
    y_data[7] = 2;
    expect_fit_error(cornu_fit(model, .x = x, .y = y, .verbose = CORNU_SILENT), CORNU_ERR_VALUE,
                     "sparse_cross_entropy");
    make_data();
    CornuModel *fresh = cornu_sequential(.name = "fresh", .input_shape = { 3 });
    cornu_model_add(fresh, cornu_dense(2));
    expect_error(cornu_compile(fresh, .steps_per_execution = -2), CORNU_ERR_ARGUMENT,
                 "fresh: .steps_per_execution is -2, expected 1 to");
    expect_fit_error(cornu_fit(fresh, .x = x, .y = y), CORNU_ERR_ARGUMENT, "fresh: not compiled");
    cornu_model_free(fresh);
    cornu_dataset_free(batched);
    cornu_model_free(model);
}

/* NaN, and a message with the known names. */
static void history_names_what_it_has(void **state)
{
    CornuModel   *model = tiny_model(*state, cornu_sgd(), accuracy);
    CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                      .validation_data.x = rows_x(0, ROWS), .epochs = 2,
                                      .validation_data.y = rows_y(0, ROWS), .validation_freq = 2,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_error_set(CORNU_ERR_DATA, "before");
    assert_true(isnan(cornu_history_get(history, "val_loss", 0)));   /* not validated */
    assert_true(isfinite(cornu_history_get(history, "val_loss", 1)));
    assert_false(cornu_history_has(history, "val_loss", 0));
    assert_true(cornu_history_has(history, "val_loss", 1));
    assert_false(cornu_history_has(history, "val_loss", 2));
    assert_false(cornu_history_has(history, "val_los", 1));
    assert_string_equal(cornu_error_message(), "before");
    assert_true(isnan(cornu_history_get(history, "acuracy", 0)));
    expect_error(cornu_error_status(), CORNU_ERR_ARGUMENT, "history: no \"acuracy\", "
                 "expected one of accuracy, loss, val_accuracy, val_loss; is \"accuracy\" meant?");
    assert_true(isnan(cornu_history_get(history, "loss", 2)));
    expect_error(cornu_error_status(), CORNU_ERR_ARGUMENT, "no epoch 2, expected 0 to 1");
    assert_false(cornu_error_pending());
    cornu_history_free(history);
    cornu_model_free(model);
}

/* Models of one input and one output say so in the singular. */
static void one_array_is_one(void **state)
{
    CornuSymbol *a = cornu_input(.shape = { 3 }), *b = cornu_input(.shape = { 3 });
    CornuModel  *model = cornu_model(.inputs = { a, b },
                                     .outputs = { cornu_call(cornu_add(), a, b) });
    expect_ok(cornu_compile(model, .device = *state, .loss = CORNU_MEAN_SQUARED_ERROR));
    expect_fit_error(cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_x(0, ROWS)),
                     CORNU_ERR_ARGUMENT, "fit: 1 array is given for x, the model takes 2");
    cornu_model_free(model);
}

/* For shuffled rows, for sequences, on shards: names the element of the data. */
static void wrong_labels_are_found_in_the_data(void **state)
{
    enum { COUNT = 40, STEPS = 5 };
    static float   x[COUNT * STEPS * 2];
    static int32_t y[COUNT * STEPS];
    static const char *const names[] = { "reference", "cpu", "tpu" };
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int each = 1; each <= STEPS; each += STEPS - 1) {
            CornuDevice *device = cornu_device_open(names[d]);
            CornuModel  *model = cornu_sequential(.input_shape = { each, 2 });
            memset(y, 0, sizeof y);
            y[23 * each + each / 2] = 7;
            cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
            expect_ok(cornu_compile(model, .device = device,
                                    .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
            const CornuArray in = cornu_array(x, CORNU_F32, COUNT, each, 2);
            const CornuArray labels = cornu_array(y, CORNU_I32, COUNT, each);
            expect_fit_error(cornu_fit(model, .x = in, .y = labels, .batch_size = 8,
                                       .verbose = CORNU_SILENT), CORNU_ERR_VALUE,
                             "; it is in element 23 of the data set, row ");
            expect_error(cornu_evaluate(model, .x = in, .y = labels, .batch_size = 8,
                                        .verbose = CORNU_SILENT), CORNU_ERR_VALUE,
                         "label 7 in row ");
            assert_non_null(strstr(cornu_error_message(),
                                   "; it is in element 23 of the data set, row 7 of batch 2"));
            CornuDataset *part = cornu_dataset_skip(
                cornu_dataset_repeat(cornu_dataset_from_arrays((CornuArray[]){ in, labels }, 2), 2),
                30);
            expect_error(cornu_evaluate(model, part, .batch_size = 8, .verbose = CORNU_SILENT),
                         CORNU_ERR_VALUE,
                         "; it is in element 23 of the data set, row 1 of batch 4");
            cornu_dataset_free(part);
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

static void a_loss_that_is_no_number_ends_fit(void **state)
{
    CornuModel *model = tiny_model(*state, cornu_sgd(), accuracy);
    x_data[3 * 5] = NAN;
    expect_fit_error(cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS), .epochs = 3,
                               .batch_size = 2, .no_shuffle = true, .verbose = CORNU_SILENT),
                     CORNU_ERR_VALUE,
                     "tiny: the loss became nan in epoch 1, between steps 1 and 5");
    make_data();
    cornu_model_free(model);
}

/* A step can be asked for before it runs, and is then the one that runs. */
static void a_step_is_told_before_it_runs(void **state)
{
    CornuModel            *model = tiny_model(*state, cornu_adam(), accuracy);
    const CornuArray       x = rows_x(0, 4), y = rows_y(0, 4);
    const CornuExecutable *step = cornu_model_train_step(model, x.type, y.type);
    double                 values[2];
    assert_non_null(step);
    expect_ok(cornu_train_on_batch(model, x, y, values));
    assert_ptr_equal(cornu_model_statistics(model), cornu_executable_statistics(step));
    assert_ptr_equal(cornu_model_train_step(model, x.type, y.type), step);
    assert_ptr_not_equal(cornu_model_train_step(model, rows_x(0, 6).type, rows_y(0, 6).type),
                         step);
    assert_null(cornu_model_train_step(model, x.type, rows_y(0, 5).type));
    assert_int_equal(cornu_error_take(), CORNU_ERR_SHAPE);
    cornu_model_free(model);
}

/* ---- No allocation after the first epoch's steps ---- */

static int64_t allocations_at[64];
static int     allocation_notes;

static CornuStatus note_allocations(CornuCallback *self, CornuModel *model, int64_t batch,
                                    const CornuLogs *logs)
{
    (void)self, (void)model, (void)batch, (void)logs;
    allocations_at[allocation_notes++] = allocations();
    return CORNU_OK;
}

static void steps_allocate_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    static const char *const devices[] = { "reference", "cpu" };
    for (int d = 0; d < 2; d++) {
        CornuDevice  *device = cornu_device_open(devices[d]);
        CornuCallback counter = { .train_batch_end = note_allocations,
                                  .wants_batch_logs = cornu_always_wants_logs };
        CornuModel   *model = tiny_model(device, cornu_adam(), accuracy);
        allocation_notes = 0;
        CornuHistory *history = cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS),
                                          .epochs = 4, .batch_size = 3, .verbose = CORNU_SILENT,
                                          .callbacks = { &counter });
        assert_non_null(history);
        for (int epoch = 0; epoch < 4; epoch++)
            for (int i = epoch == 0 ? 1 : 0; i < 3; i++) {
                const int64_t *at = allocations_at + 4 * epoch + i;
                if (at[1] != at[0])
                    fail_msg("%s: %lld allocations in step %d of epoch %d", devices[d],
                             (long long)(at[1] - at[0]), i + 2, epoch + 1);
            }
        cornu_history_free(history);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

static CornuHistory *fit_tight(CornuModel *model)
{
    return cornu_fit(model, .x = rows_x(0, ROWS), .y = rows_y(0, ROWS), .epochs = 2,
                     .batch_size = 4, .verbose = CORNU_SILENT, .validation_split = 0.3);
}

/* Each allocation in turn fails, from the first layer to the last epoch: a status and a message, no
 * crash, and a retry succeeds. */
static bool build_and_train(CornuDevice *device, CornuStatus *status)
{
    CornuModel *model = cornu_sequential(.name = "tight", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    *status = cornu_compile(model, .device = device, .optimizer = cornu_adam(.amsgrad = true),
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY });
    const bool    compiled = *status == CORNU_OK;
    CornuHistory *history = compiled ? fit_tight(model) : NULL;
    const bool    trained = history != NULL;
    if (compiled && !trained) {
        /* The model is undamaged. */
        *status = cornu_error_status();
        allocations_fail_after(NEVER);
        cornu_error_take();
        history = fit_tight(model);
        if (!history) fail_msg("after a failure: %s", cornu_error_message());
    }
    cornu_history_free(history);
    cornu_model_free(model);
    return trained;
}

static void memory_may_run_out_anywhere(void **state)
{
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int64_t allowed = 0;; allowed++) {
        CornuStatus status;
        allocations_fail_after(allowed);
        const bool trained = build_and_train(*state, &status);
        allocations_fail_after(NEVER);
        cornu_error_take();
        if (trained) break;
        if (status != CORNU_ERR_MEMORY && status != CORNU_ERR_DEVICE)
            fail_msg("after %lld allocations: %s: %s", (long long)allowed,
                     cornu_status_name(status), cornu_error_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_split_rounds_as_keras),
        cmocka_unit_test(rows_that_fill_up_are_harmless),
        cmocka_unit_test(no_row_that_fills_up_is_all_masked),
        cmocka_unit_test(partial_batches_are_exact),
        cmocka_unit_test(resuming_equals_not_stopping),
        cmocka_unit_test(executions_change_no_number),
        cmocka_unit_test(waiting_for_batches_is_measured),
        cmocka_unit_test(bytes_fed_are_counted),
        cmocka_unit_test(whole_numbers_are_scaled),
        cmocka_unit_test(float_labels_must_be_classes),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(history_names_what_it_has),
        cmocka_unit_test(one_array_is_one),
        cmocka_unit_test(wrong_labels_are_found_in_the_data),
        cmocka_unit_test(a_loss_that_is_no_number_ends_fit),
        cmocka_unit_test(a_step_is_told_before_it_runs),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
