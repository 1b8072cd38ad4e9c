/* Models cut into stages train to the bits of plain gradient accumulation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../allocations.h"
#include "../../skip.h"
#include "../callbacks/stopper.h"

enum { ROWS = 56, BATCH = 16, CLASSES = 10, WEIGHTS = 1 << 20 };

static uint8_t images[ROWS * 784];
static int32_t classes[ROWS];

static void make_data(void)
{
    for (int i = 0; i < ROWS * 784; i++) images[i] = (uint8_t)(i * 37 % 251 + i / 784);
    for (int i = 0; i < ROWS; i++) classes[i] = (i * 5 + i / 3) % CLASSES;
}

static CornuModel *mnist_cnn(void) { return cornu_mnist_cnn(); }
static CornuModel *resnet20(void) { return cornu_resnet20(); }

/* A penalty on weights, noise by position, a branch over the cut, and layers that are called twice,
 * a norm with its statistics among them. */
static CornuModel *build_branches(bool norm)
{
    CornuLayer  *shared = cornu_dense(24, .activation = CORNU_TANH, .name = "shared");
    CornuSymbol *x = cornu_input(.shape = { 28, 28 }, .scale = 1.0 / 255.0, .name = "x");
    CornuSymbol *h = cornu_call(cornu_dense(24, .kernel_regularizer = cornu_l2(0.01),
                                            .name = "first"), cornu_call(cornu_flatten(), x));
    CornuLayer  *twice = norm ? cornu_batch_normalization() : cornu_activation(CORNU_TANH);
    CornuSymbol *y = cornu_call(shared, cornu_call(twice, h));
    y = cornu_call(cornu_dense(24, .name = "middle"),
                   cornu_call(cornu_gaussian_noise(0.1), cornu_call(twice, y)));
    y = cornu_call(cornu_add(), h, cornu_call(shared, y));
    return cornu_model(.inputs = { x }, .name = "branches",
                       .outputs = { cornu_call(cornu_dense(CLASSES, .name = "out",
                                                           .activation = CORNU_SOFTMAX), y) });
}

static CornuModel *branches(void) { return build_branches(true); }
static CornuModel *without_norm(void) { return build_branches(false); }

/* Convolutions without kinks: where relu and max pooling have them, steps of other roundings go
 * different ways now and then, and what is left of the difference depends on the machine. */
static CornuModel *smooth_cnn(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 28, 28, 1 }, .input_scale = 1.0 / 255.0);
    cornu_model_add(model, cornu_conv2d(8, 3, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_average_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(16, 3, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_average_pooling2d(2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuOptimizer *adam(void) { return cornu_adam(.learning_rate = 0.003); }
static CornuOptimizer *clipped(void)
{
    return cornu_sgd(.learning_rate = 0.05, .momentum = 0.9, .global_clipnorm = 0.5);
}

/* ---- Training ---- */

typedef struct {
    double              loss, accuracy, norm, test_loss;
    float               predictions[ROWS * CLASSES];
    float               weights[WEIGHTS];
    int64_t             weight_count;
    CornuPipelineReport report;
} Outcome;

/* Keeps all weights, the statistics of BatchNormalization among them. */
static void keep_weights(const CornuModel *model, Outcome *outcome)
{
    outcome->weight_count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        assert_true(outcome->weight_count + cornu_type_count(w->type) <= WEIGHTS);
        assert_int_equal(cornu_weight_read(w, cornu_array_from(
            outcome->weights + outcome->weight_count, w->type)), CORNU_OK);
        outcome->weight_count += cornu_type_count(w->type);
    }
}

/* Two epochs, of which each ends with a batch of half as many rows. Without a strategy on the
 * device. */
static void train(CornuModel *(*build)(void), CornuOptimizer *optimizer, CornuStrategy *strategy,
                  CornuDevice *device, Outcome *outcome)
{
    const CornuArray x = cornu_array(images, CORNU_U8, ROWS, 28, 28);
    const CornuArray y = cornu_array(classes, CORNU_I32, ROWS);
    CornuStatus      status = CORNU_OK;
    cornu_set_random_seed(7);
    CornuModel *model = build();
    if (strategy) {
        CORNU_SCOPE(strategy)
            status = cornu_compile(model, .optimizer = optimizer, .metrics = { CORNU_ACCURACY },
                                   .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                   .gradient_norm = true);
    } else {
        status = cornu_compile(model, .optimizer = optimizer, .metrics = { CORNU_ACCURACY },
                               .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                               .gradient_norm = true, .device = device);
    }
    if (status) fail_msg("%s", cornu_error_message());
    CornuHistory *history = cornu_fit(model, .x = x, .y = y, .epochs = 2, .batch_size = BATCH,
                                      .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    outcome->loss = cornu_history_get(history, "loss", 1);
    outcome->accuracy = cornu_history_get(history, "accuracy", 1);
    outcome->norm = cornu_history_get(history, "gradient_norm", 1);
    cornu_history_free(history);
    keep_weights(model, outcome);
    double values[4];
    if (cornu_evaluate(model, .x = x, .y = y, .batch_size = BATCH, .verbose = CORNU_SILENT,
                       .results = values))
        fail_msg("%s", cornu_error_message());
    outcome->test_loss = values[0];
    if (cornu_predict(model, .x = x, .verbose = CORNU_SILENT,
                      .to = cornu_array(outcome->predictions, CORNU_F32, ROWS, CLASSES)))
        fail_msg("%s", cornu_error_message());
    if (strategy && cornu_pipeline_report(model, &outcome->report))
        fail_msg("%s", cornu_error_message());
    cornu_model_free(model);
}

static void train_cut(CornuModel *(*build)(void), CornuOptimizer *optimizer, int stages,
                      int microbatches, CornuPipelineSchedule schedule, Outcome *outcome)
{
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = stages, .threads = 2,
                                                      .microbatches = microbatches,
                                                      .schedule = schedule);
    if (!strategy) fail_msg("%s", cornu_error_message());
    train(build, optimizer, strategy, NULL, outcome);
    cornu_strategy_free(strategy);
}

static void expect_equal(const Outcome *a, const Outcome *b, const char *what)
{
    if (a->weight_count != b->weight_count ||
        memcmp(a->weights, b->weights, (size_t)a->weight_count * sizeof(float)) != 0)
        fail_msg("%s: other weights", what);
    if (memcmp(a->predictions, b->predictions, sizeof a->predictions) != 0)
        fail_msg("%s: other predictions", what);
    if (a->loss != b->loss || a->accuracy != b->accuracy || a->norm != b->norm ||
        a->test_loss != b->test_loss)
        fail_msg("%s: loss %.17g and %.17g, accuracy %.17g and %.17g, norm %.17g and %.17g", what,
                 a->loss, b->loss, a->accuracy, b->accuracy, a->norm, b->norm);
}

static Outcome plain, cut;   /* large */

static void expect_same_bits(CornuModel *(*build)(void), CornuOptimizer *(*optimizer)(void),
                             const int *stages, int microbatches, const char *name)
{
    char what[80];
    train_cut(build, optimizer(), 1, microbatches, CORNU_GPIPE, &plain);
    for (int i = 0; stages[i]; i++)
        for (int schedule = CORNU_GPIPE; schedule <= CORNU_1F1B; schedule++) {
            const int s = stages[i];
            snprintf(what, sizeof what, "%s, %d stages, %s", name, s,
                     cornu_pipeline_schedule_name((CornuPipelineSchedule)schedule));
            train_cut(build, optimizer(), s, microbatches, (CornuPipelineSchedule)schedule, &cut);
            expect_equal(&plain, &cut, what);
            assert_int_equal(cut.report.stages, s);
            assert_int_equal(cut.report.slots, 2 * (microbatches + s - 1));
            assert_float_equal(cut.report.bubble, (s - 1.0) / (microbatches + s - 1.0), 1e-12);
            for (int k = 0; k < s; k++) {
                const int most = schedule == CORNU_1F1B && s - k < microbatches ? s - k
                                                                                : microbatches;
                assert_int_equal(cut.report.stage[k].stashes, most);
                assert_true(build != resnet20 || cut.report.stage[k].stash_bytes > 0);
            }
        }
}

static void schedules_agree(void **state)
{
    (void)state;
    expect_same_bits(resnet20, clipped, (const int[]){ 2, 4, 0 }, 8, "resnet20");
    expect_same_bits(mnist_cnn, adam, (const int[]){ 2, 3, 0 }, 4, "mnist_cnn");
    expect_same_bits(branches, adam, (const int[]){ 2, 3, 4, 0 }, 4, "branches");
}

static void fewer_microbatches_than_stages(void **state)
{
    (void)state;
    expect_same_bits(mnist_cnn, clipped, (const int[]){ 4, 0 }, 2, "mnist_cnn");
    expect_same_bits(branches, clipped, (const int[]){ 3, 0 }, 1, "branches");
}

/* As without a pipeline, within what other groups of a sum make of eight steps: the same loss,
 * metrics and dropout. BatchNormalization is left out, whose statistics are a microbatch's. */
static void batches_agree(void **state)
{
    (void)state;
    static CornuModel *(*const builds[])(void) = { smooth_cnn, without_norm };
    for (int i = 0; i < 2; i++) {
        CornuDevice *device = cornu_device_open("cpu", .threads = 2);
        train(builds[i], clipped(), NULL, device, &plain);
        train_cut(builds[i], clipped(), 2, 4, CORNU_1F1B, &cut);
        assert_float_equal(plain.loss, cut.loss, 1e-5);
        assert_float_equal(plain.accuracy, cut.accuracy, 1e-9);
        assert_float_equal(plain.norm, cut.norm, 1e-5);
        assert_float_equal(plain.test_loss, cut.test_loss, 1e-5);
        for (int64_t k = 0; k < plain.weight_count; k++)
            if (fabsf(plain.weights[k] - cut.weights[k]) > 1e-5f)
                fail_msg("model %d, weight %lld: %.9g, %.9g without a pipeline", i, (long long)k,
                         (double)cut.weights[k], (double)plain.weights[k]);
        cornu_device_close(device);
    }
}

/* ---- Layers ---- */

enum { TIMES = 8, WORDS = 24, SEVERAL = 5 };

/* Recurrence, a wrapper with states of its own, attention with dropout, and the narrow policies, of
 * which one scales the loss. */
static CornuModel *layers(int which)
{
    if (which == 2) {
        CornuSymbol *text = cornu_input(.shape = { TIMES });
        CornuSymbol *h = cornu_call(cornu_embedding(WORDS, 16), text);
        CornuSymbol *y = cornu_call(cornu_multi_head_attention(4, 4, .dropout = 0.1),
                                    cornu_call(cornu_layer_normalization(), h));
        h = cornu_call(cornu_flatten(), cornu_call(cornu_add(), h, y));
        return cornu_model(.inputs = { text }, .outputs = {
            cornu_call(cornu_dense(CLASSES, .activation = CORNU_SOFTMAX), h) });
    }
    CornuModel *model = cornu_sequential(.input_shape = { TIMES }, .policy =
        which == 3 ? "mixed_float16" : which == 4 ? "mixed_bfloat16" : NULL);
    cornu_model_add(model, cornu_embedding(WORDS, 12));
    if (which == 0) cornu_model_add(model, cornu_lstm(16, .return_sequences = true));
    if (which == 1) cornu_model_add(model, cornu_spectral_normalization(cornu_dense(16)));
    cornu_model_add(model, which == 0 ? cornu_gru(8) : cornu_flatten());
    cornu_model_add(model, cornu_dense(12, .activation = CORNU_RELU,
                                       .activity_regularizer = cornu_l2(0.1)));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .dtype = "float32"));
    return model;
}

static void train_layers(int which, int stages, Outcome *outcome)
{
    static int32_t words[ROWS * TIMES];
    static float   weights[ROWS];
    CornuStatus    status = CORNU_OK;
    for (int i = 0; i < ROWS * TIMES; i++) words[i] = (i * 29 + i / 7) % WORDS;
    for (int i = 0; i < ROWS; i++) weights[i] = (float)(i % 5) / 4.0f;
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = stages, .microbatches = 4,
                                                      .schedule = CORNU_1F1B);
    cornu_set_random_seed(7);
    CornuModel *model = layers(which);
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    if (status) fail_msg("model %d: %s", which, cornu_error_message());
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(words, CORNU_I32, ROWS, TIMES), .batch_size = BATCH,
        .y = cornu_array(classes, CORNU_I32, ROWS), .verbose = CORNU_SILENT,
        .sample_weight = cornu_array(weights, CORNU_F32, ROWS));
    if (!history) fail_msg("model %d: %s", which, cornu_error_message());
    outcome->loss = cornu_history_get(history, "loss", 0);
    cornu_history_free(history);
    keep_weights(model, outcome);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

static void layers_agree(void **state)
{
    (void)state;
    for (int which = 0; which < SEVERAL; which++) {
        train_layers(which, 1, &plain);
        for (int stages = 2; stages <= 3; stages++) {
            train_layers(which, stages, &cut);
            assert_memory_equal(plain.weights, cut.weights,
                                (size_t)plain.weight_count * sizeof(float));
            assert_float_equal(plain.loss, cut.loss, 0.0);
        }
    }
}

/* ---- Cuts ---- */

static void expect_refused(CornuStrategy *strategy, CornuModel *model, int64_t rows,
                           CornuLoss *loss, const char *text)
{
    CornuStatus status = CORNU_OK;
    if (!strategy) fail_msg("%s", cornu_error_message());
    CORNU_SCOPE(strategy) status = cornu_compile(model, .loss = loss);
    if (!status)
        status = cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, rows, 28, 28),
                                      .y = cornu_array(classes, CORNU_I32, rows));
    assert_int_not_equal(status, CORNU_OK);
    if (!strstr(cornu_error_message(), text))
        fail_msg("\"%s\", expected \"%s\" in it", cornu_error_message(), text);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

static CornuModel *small(void)
{
    CornuModel *model = cornu_sequential(.name = "small", .input_shape = { 28, 28 });
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(8, .name = "first"));
    cornu_model_add(model, cornu_dense(CLASSES, .name = "out", .activation = CORNU_SOFTMAX));
    return model;
}

/* What cannot be cut, and what a microbatch cannot do. */
static void refused(void **state)
{
    (void)state;
    expect_refused(cornu_pipeline_parallel(.stages = 5, .microbatches = 2), small(), 8,
                   CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                   "small: pipeline_parallel: .stages is 5, expected at most 2");
    expect_refused(cornu_pipeline_parallel(.stages = 2, .microbatches = 16), small(), 8,
                   CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                   "a batch of 8 rows for 16 microbatches");
    expect_refused(cornu_pipeline_parallel(.stages = 2, .microbatches = 2, .cut_at = { "second" }),
                   small(), 8, CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                   ".cut_at[0] is \"second\", expected a layer of the model");
    expect_refused(cornu_pipeline_parallel(.stages = 3, .microbatches = 2,
                                           .cut_at = { "out", "first" }), small(), 8,
                   CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                   ".cut_at[1] is \"first\", expected a layer after out");
    expect_refused(cornu_pipeline_parallel(.stages = 2, .microbatches = 2), small(), 8,
                   cornu_circle(), "a loss over the rows of the whole batch");
    static const struct { CornuPipelineParallelConfig config; const char *text; } wrong[] = {
        { { .stages = 0, .microbatches = 2 }, "pipeline_parallel: .stages is 0, expected 1 to 32" },
        { { .stages = 2 }, ".microbatches is 0, expected 1 to 1024" },
        { { .stages = 3, .microbatches = 2, .cut_at = { "out" } },
          ".cut_at names 1 layers, expected 2" },
    };
    for (int i = 0; i < 3; i++) {
        assert_null(cornu_pipeline_parallel_from(&wrong[i].config));
        assert_non_null(strstr(cornu_error_message(), wrong[i].text));
        cornu_error_take();
    }
}

/* Means over what a mask or weights count in the whole batch. */
static void other_means_are_refused(void **state)
{
    (void)state;
    static int32_t words[BATCH * TIMES], labels[BATCH * TIMES];
    static float   weights[BATCH];
    for (int masked = 0; masked < 2; masked++) {
        CornuStrategy *strategy = cornu_pipeline_parallel(.stages = 2, .microbatches = 4);
        CornuModel    *model = cornu_sequential(.input_shape = { TIMES });
        CornuStatus    status = CORNU_OK;
        cornu_model_add(model, cornu_embedding(WORDS, 8, .mask_zero = masked));
        if (!masked) cornu_model_add(model, cornu_flatten());
        cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
        CORNU_SCOPE(strategy)
            status = cornu_compile(model, .loss = cornu_sparse_categorical_crossentropy(
                .reduction = masked ? CORNU_MEAN : CORNU_MEAN_WITH_SAMPLE_WEIGHT));
        assert_int_equal(status, CORNU_OK);
        const CornuArray x = cornu_array(words, CORNU_I32, BATCH, TIMES);
        status = masked
            ? cornu_train_on_batch(model, .x = x, .y = cornu_array(labels, CORNU_I32, BATCH, TIMES))
            : cornu_train_on_batch(model, .x = x, .y = cornu_array(labels, CORNU_I32, BATCH),
                                   .sample_weight = cornu_array(weights, CORNU_F32, BATCH));
        assert_int_equal(status, CORNU_ERR_UNSUPPORTED);
        assert_non_null(strstr(cornu_error_message(),
                               masked ? "that a mask keeps" : "the sample weights of the whole"));
        cornu_model_free(model);
        cornu_strategy_free(strategy);
    }
}

/* Of the products alone: forward, of the kernels' gradients, and of `out` that of its input, on 8
 * rows. All else is less than half of it. */
static void expect_statistics(const CornuStatistics *step)
{
    const int64_t first = 2 * 784 * 8 * 8, out = 2 * 8 * CLASSES * 8;
    assert_non_null(step);
    assert_true(step->flops >= 2 * first + 3 * out);
    assert_true((double)step->flops < 1.5 * (double)(2 * first + 3 * out));
    assert_int_equal(step->fallbacks, 0);
    assert_true(step->kernels > 0 && step->bytes_moved > 0 && step->bytes_planned > 0);
}

/* Where the user says, and what is printed of it. */
static void cut_where_told(void **state)
{
    (void)state;
    char           text[1024] = "";
    FILE          *to = tmpfile();
    CornuStatus    status = CORNU_OK;
    CornuModel    *model = small();
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = 2, .microbatches = 4,
                                                      .schedule = CORNU_1F1B,
                                                      .cut_at = { "out" });
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    assert_int_equal(status, CORNU_OK);
    assert_int_equal(cornu_pipeline_print(model, to), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "no training step was made yet"));
    assert_null(cornu_model_statistics(model));
    assert_int_equal(cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, 8, 28, 28),
                                          .y = cornu_array(classes, CORNU_I32, 8)), CORNU_OK);
    assert_int_equal(cornu_pipeline_print(model, to), CORNU_OK);
    expect_statistics(cornu_model_statistics(model));
    rewind(to);
    assert_true(fread(text, 1, sizeof text - 1, to) > 0);
    fclose(to);
    assert_non_null(strstr(text, "pipeline: 2 stages, 4 microbatches of 2 rows, 1f1b: 10 slots"));
    assert_non_null(strstr(text, "weights    slots gradients      stashes sent on    back\n"));
    assert_non_null(strstr(text, "    0.03     0.03      0.03    2 x  0.01    0.00    0.00\n"
                                 "stage 1: out … out"));
    assert_non_null(strstr(text, "bubble: 20.0 % of the slots, (p - 1) / (m + p - 1) is 20.0 %"));
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

/* A label that is out of range fails with its row, and leaves nothing behind for the next batch. */
static void bad_rows(void **state)
{
    (void)state;
    static int32_t labels[2][BATCH];
    double         loss[2];
    CornuStatus    status = CORNU_OK;
    memcpy(labels[0], classes, sizeof labels[0]);
    memcpy(labels[1], classes, sizeof labels[1]);
    labels[1][9] = 77;
    for (int fails = 0; fails < 2; fails++) {
        CornuStrategy *strategy = cornu_pipeline_parallel(.stages = 2, .microbatches = 4);
        cornu_set_random_seed(7);
        CornuModel *model = small();
        CORNU_SCOPE(strategy)
            status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
        if (status) fail_msg("%s", cornu_error_message());
        const CornuArray x = cornu_array(images, CORNU_U8, BATCH, 28, 28);
        if (fails) {
            assert_null(cornu_fit(model, .x = x, .y = cornu_array(labels[1], CORNU_I32, BATCH),
                                  .batch_size = BATCH, .no_shuffle = true,
                                  .verbose = CORNU_SILENT));
            assert_int_equal(cornu_error_take(), CORNU_ERR_VALUE);
            assert_non_null(strstr(cornu_error_message(), "element 9 of the data set"));
        }
        for (int k = 0; k < 2; k++)   /* the second shows what the first has learnt */
            assert_int_equal(cornu_train_on_batch(
                model, .x = x, .y = cornu_array(labels[0], CORNU_I32, BATCH),
                .values = &loss[fails]), CORNU_OK);
        cornu_model_free(model);
        cornu_strategy_free(strategy);
    }
    assert_float_equal(loss[0], loss[1], 0.0);
}

/* The stages have a program each, so that there is none to trace. */
static void traces_are_refused(void **state)
{
    (void)state;
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = 2, .microbatches = 2);
    CornuModel    *model = small();
    CornuStatus    status = CORNU_OK;
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    assert_int_equal(status, CORNU_OK);
    assert_null(cornu_fit(model, .x = cornu_array(images, CORNU_U8, ROWS, 28, 28),
                          .y = cornu_array(classes, CORNU_I32, ROWS), .verbose = CORNU_SILENT,
                          .callbacks = { cornu_trace("/tmp/cornu_pipeline_trace.json") }));
    assert_int_equal(cornu_error_take(), CORNU_ERR_UNSUPPORTED);
    assert_non_null(strstr(cornu_error_message(), "a trace of a step of pipeline_parallel"));
    assert_null(cornu_model_train_step(model, cornu_type(CORNU_U8, 8, 28, 28),
                                       cornu_type(CORNU_I32, 8)));
    assert_int_equal(cornu_error_take(), CORNU_ERR_UNSUPPORTED);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

/* ---- Memory ---- */

static CornuStatus make_and_train(void)
{
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = 2, .microbatches = 3, .threads = 1,
                                                      .schedule = CORNU_1F1B);
    CornuModel    *model = small();
    CornuStatus    status = CORNU_OK;
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    for (int64_t rows = 8; rows >= 7 && !status; rows--)
        status = cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, rows, 28, 28),
                                      .y = cornu_array(classes, CORNU_I32, rows));
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    cornu_error_take();
    return status;
}

/* Wherever memory ends it is an error, and nothing is lost. */
static void memory_ends(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR("allocations: a build without SANITIZE");
    assert_int_equal(make_and_train(), CORNU_OK);   /* what is made once */
    const int64_t before = allocations();
    assert_int_equal(make_and_train(), CORNU_OK);
    const int64_t all = allocations() - before;
    for (int64_t n = 0; n < all; n += 1 + n / 64) {
        const int64_t held = allocations_held();
        allocations_fail_after(n);
        const CornuStatus status = make_and_train();
        allocations_fail_after(NEVER);
        if (status != CORNU_ERR_MEMORY || allocations_held() != held)
            fail_msg("allocation %lld of %lld: status %d, %lld lost", (long long)n, (long long)all,
                     (int)status, (long long)(allocations_held() - held));
    }
}

/* ---- Resuming ---- */

/* A training that begins in one pipeline, is stopped in the second epoch and goes on in another. */
static CornuStatus fit_part(CornuModel *model, CornuStrategy *strategy, CornuCallback *backup,
                            CornuCallback *stopping)
{
    CornuStatus status = CORNU_OK;
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    if (status) fail_msg("%s", cornu_error_message());
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(images, CORNU_U8, ROWS, 28, 28), .epochs = 2,
        .y = cornu_array(classes, CORNU_I32, ROWS), .batch_size = BATCH, .verbose = CORNU_SILENT,
        .callbacks = { backup, stopping });
    status = history ? CORNU_OK : cornu_error_take();
    cornu_history_free(history);
    return status;
}

static void resumes_in_another_pipeline(void **state)
{
    (void)state;
    char                   folder[] = "/tmp/cornu_pipeline_XXXXXX", backups[64];
    static volatile sig_atomic_t stop;
    Stopper                stopper = stop_after(5, &stop);
    CornuStrategy *const   strategies[] = {
        cornu_pipeline_parallel(.stages = 2, .microbatches = 4),
        cornu_pipeline_parallel(.stages = 3, .microbatches = 4, .schedule = CORNU_1F1B),
    };
    assert_non_null(mkdtemp(folder));
    snprintf(backups, sizeof backups, "%s/backup", folder);
    for (int part = 0; part < 3; part++) {   /* undisturbed, stopped, resumed */
        cornu_set_random_seed(7);
        CornuModel *model = branches();
        stop = 0;
        const CornuStatus status = fit_part(
            model, strategies[part == 2],
            part ? cornu_backup_and_restore(backups, 1, .stop = &stop) : NULL,
            part == 1 ? &stopper.base : NULL);
        assert_int_equal(status, part == 1 ? CORNU_ERR_INTERRUPTED : CORNU_OK);
        keep_weights(model, part ? &cut : &plain);
        cornu_model_free(model);
    }
    assert_memory_equal(plain.weights, cut.weights, (size_t)plain.weight_count * sizeof(float));
    assert_int_equal(rmdir(folder), 0);
    for (int i = 0; i < 2; i++) cornu_strategy_free(strategies[i]);
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_agree), cmocka_unit_test(fewer_microbatches_than_stages),
        cmocka_unit_test(batches_agree), cmocka_unit_test(refused),
        cmocka_unit_test(cut_where_told), cmocka_unit_test(bad_rows),
        cmocka_unit_test(resumes_in_another_pipeline), cmocka_unit_test(layers_agree),
        cmocka_unit_test(traces_are_refused),
        cmocka_unit_test(memory_ends), cmocka_unit_test(other_means_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
