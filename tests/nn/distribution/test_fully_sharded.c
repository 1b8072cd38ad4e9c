/* cornu_fully_sharded: the bits of data parallelism, and a part of its memory. */
#define _GNU_SOURCE    /* MAP_ANONYMOUS */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../../../device/mesh/partition.h"
#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../device/pjrt/opened.h"
#include "../../device/processes/results.h"
#include "../../skip.h"

enum { SHARDS = 8, ROWS = 32, BATCH = 16, EPOCHS = 2, CLASSES = 10, FEATURES = 48, TIMES = 8,
       WORDS = 64, SIDE = 28, PIXELS = SIDE * SIDE };

static float   x[ROWS * FEATURES];
static uint8_t images[ROWS * PIXELS];
static int32_t words[ROWS * TIMES], next_words[ROWS * TIMES], classes[ROWS];

static void make_data(void)
{
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < ROWS * PIXELS; i++) images[i] = (uint8_t)(i * 89 % 251);
    for (int i = 0; i < ROWS * TIMES; i++) {
        words[i] = (i * 29 + i / 7) % WORDS;
        next_words[i] = (i * 31 + i / 5) % WORDS;
    }
    for (int i = 0; i < ROWS; i++) classes[i] = (i * 5 + i / 3) % CLASSES;
}

/* ---- Networks ---- */

/* Sums over weights as well: a penalty, and norms of columns. */
static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_RELU, .name = "up",
                                       .kernel_regularizer = cornu_l2(0.01)));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_TANH, .name = "middle",
                                       .kernel_constraint = cornu_max_norm(0.9)));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *narrow_mlp(void)
{
    cornu_set_dtype_policy("mixed_bfloat16");
    CornuModel *model = mlp();
    cornu_set_dtype_policy("float32");
    return model;
}

static CornuModel *lstm(void)
{
    CornuModel *model = cornu_sequential(.name = "lstm", .input_shape = { 6, 8 });
    cornu_model_add(model, cornu_lstm(32, .return_sequences = true));
    cornu_model_add(model, cornu_gru(32));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *mnist(void) { return cornu_mnist_cnn(); }

static CornuModel *gpt(void)
{
    static const CornuTextPreset small = { .model = "char_gpt", .channels = 32, .layers = 2,
                                           .heads = 4, .sequence_length = TIMES };
    return cornu_char_gpt(.preset = &small, .vocabulary = WORDS);
}

static CornuOptimizer *adam(void) { return cornu_adam(.learning_rate = 0.01); }
static CornuOptimizer *sgd(void) { return cornu_sgd(.learning_rate = 0.05, .momentum = 0.9); }
static CornuOptimizer *lamb(void) { return cornu_lamb(.learning_rate = 0.01); }

static CornuOptimizer *clipped(void)
{
    return cornu_adam(.learning_rate = 0.02, .global_clipnorm = 0.5);
}

typedef struct {
    CornuModel     *(*layers)(void);
    CornuOptimizer *(*optimizer)(void);
    const char     *device;
    double          bound;     /* a global norm adds up the weights in other groups */
} Case;

static const Case cases[] = {
    { mlp, adam, "cpu", 0.0 },  { mlp, clipped, "cpu", 1e-5 }, { narrow_mlp, sgd, "cpu", 0.0 },
    { lstm, adam, "cpu", 0.0 }, { mnist, adam, "cpu", 0.0 },   { gpt, adam, "cpu", 0.0 },
    { gpt, lamb, "cpu", 0.0 },  { mlp, sgd, "tpu", 0.0 },      { gpt, sgd, "tpu", 0.0 },
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Training ---- */

static CornuArray inputs_of(const Case *c)
{
    if (c->layers == gpt) return cornu_array(words, CORNU_I32, ROWS, TIMES);
    if (c->layers == lstm) return cornu_array(x, CORNU_F32, ROWS, 6, 8);
    if (c->layers == mnist) return cornu_array(images, CORNU_U8, ROWS, SIDE, SIDE);
    return cornu_array(x, CORNU_F32, ROWS, FEATURES);
}

static CornuArray outputs_of(const Case *c)
{
    if (c->layers == gpt) return cornu_array(next_words, CORNU_I32, ROWS, TIMES);
    return cornu_array(classes, CORNU_I32, ROWS);
}

/* What a training comes to. */
typedef struct {
    double  loss[EPOCHS];
    int64_t count;
    float   weights[1 << 18];
} Outcome;

static CornuStatus read_weights(const CornuModel *model, Outcome *outcome)
{
    outcome->count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        assert_true(outcome->count + cornu_type_count(w->type) <= 1 << 18);
        CORNU__TRY(cornu_weight_read(w, cornu_array_from(outcome->weights + outcome->count,
                                                         w->type)));
        outcome->count += cornu_type_count(w->type);
    }
    return CORNU_OK;
}

static CornuStatus train(const Case *c, CornuStrategy *strategy, Outcome *outcome)
{
    CornuStatus status = CORNU_OK;
    if (!strategy) return cornu_error_take();
    cornu_set_random_seed(7);
    CornuModel *model = c->layers();
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = c->optimizer(),
                               .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    if (status) return status;
    CornuHistory *history = cornu_fit(model, .x = inputs_of(c), .y = outputs_of(c),
                                      .epochs = EPOCHS, .batch_size = BATCH,
                                      .verbose = CORNU_SILENT);
    if (!history) return cornu_error_take();
    for (int e = 0; e < EPOCHS; e++) outcome->loss[e] = cornu_history_get(history, "loss", e);
    cornu_history_free(history);
    CORNU__TRY(read_weights(model, outcome));
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return CORNU_OK;
}

static CornuStrategy *sharded_on(const Case *c, CornuProcesses *processes)
{
    return cornu_fully_sharded(.num_shards = SHARDS, .device = c->device, .threads = 2,
                               .processes = processes);
}

static void expect_same(const Case *c, const Outcome *plain, const Outcome *cut)
{
    const int number = (int)(c - cases);
    for (int e = 0; e < EPOCHS; e++)
        if (!(fabs(plain->loss[e] - cut->loss[e]) <= c->bound))
            fail_msg("case %d, epoch %d: loss %.9g, %.9g unsharded", number, e, cut->loss[e],
                     plain->loss[e]);
    assert_int_equal(plain->count, cut->count);
    for (int64_t i = 0; i < cut->count && c->bound == 0.0; i++)
        if (memcmp(&plain->weights[i], &cut->weights[i], sizeof *cut->weights))
            fail_msg("case %d: element %lld of the weights is %.9g, %.9g unsharded", number,
                     (long long)i, (double)cut->weights[i], (double)plain->weights[i]);
}

static void bits_of_data_parallelism(void **state)
{
    (void)state;
    static Outcome plain, cut;
    for (const Case *c = cases; c < cases + CASES; c++) {
        CornuStrategy *whole = cornu_data_parallel(.num_shards = SHARDS, .device = c->device,
                                                   .threads = 2);
        if (train(c, whole, &plain) || train(c, sharded_on(c, NULL), &cut))
            fail_msg("case %d: %s", (int)(c - cases), cornu_error_message());
        expect_same(c, &plain, &cut);
    }
}

static CornuStatus train_all(CornuProcesses *processes)
{
    static Outcome outcome;
    char           name[64];
    for (const Case *c = cases; c < cases + CASES; c++) {
        CORNU__TRY(train(c, sharded_on(c, processes), &outcome));
        snprintf(name, sizeof name, "case %d, losses", (int)(c - cases));
        result(name, outcome.loss, sizeof outcome.loss);
        snprintf(name, sizeof name, "case %d, weights", (int)(c - cases));
        result(name, outcome.weights, (size_t)outcome.count * sizeof *outcome.weights);
    }
    return CORNU_OK;
}

static void processes_agree(void **state)
{
    (void)state;
    static const int counts[] = { 2, 4, 0 };
    results_agree("shm", counts, 2 * CASES, train_all);
}

/* XLA adds up in orders of its own. */
static void pjrt_agrees(void **state)
{
    (void)state;
    static Outcome plain, cut;
    static const Case on_pjrt[] = { { mlp, sgd, NULL, 2e-5 }, { gpt, sgd, NULL, 2e-5 } };
    if (pjrt_most_shards() < SHARDS) SKIP_FOR("pjrt: eight devices");
    for (int i = 0; i < 2; i++) {
        Case c = on_pjrt[i];
        c.device = pjrt_name();
        CornuStrategy *workers = cornu_multi_worker_strategy(.num_shards = SHARDS,
                                                             .device = c.device);
        if (train(&c, workers, &plain) || train(&c, sharded_on(&c, NULL), &cut))
            fail_msg("pjrt case %d: %s", i, cornu_error_message());
        for (int e = 0; e < EPOCHS; e++)
            if (!(fabs(plain.loss[e] - cut.loss[e]) <= c.bound))
                fail_msg("pjrt case %d, epoch %d: loss %.9g, %.9g unsharded", i, e, cut.loss[e],
                         plain.loss[e]);
    }
}

/* ---- Memory: a shard for each of four processes ---- */

enum { LAYERS = 6, UNITS = 256, LAYER_BYTES = UNITS * UNITS * 4, RANKS = 4 };

/* Bytes on a shard, at most, by what the device counts. */
typedef struct { int64_t weights, slots, values; } Footprint;

static Footprint *footprints;    /* by rank, shared with the ranks */
static bool       fully;

static CornuModel *deep(void)
{
    CornuModel *model = cornu_sequential(.name = "deep", .input_shape = { FEATURES });
    for (int i = 0; i <= LAYERS; i++)
        cornu_model_add(model, cornu_dense(UNITS, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(CLASSES));
    return model;
}

static CornuStatus measure(CornuProcesses *processes)
{
    double         loss;
    CornuStrategy *strategy =
        fully ? cornu_fully_sharded(.processes = processes, .threads = 1)
              : cornu_data_parallel(.processes = processes, .threads = 1);
    if (!strategy) return cornu_error_take();
    CornuDevice *device = cornu_strategy_device(strategy);
    CornuModel  *model = deep();
    CORNU__TRY(cornu_compile(model, .optimizer = adam(), .device = device,
                             .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    for (int i = 0; i < 2; i++)
        CORNU__TRY(cornu_train_on_batch(model, .values = &loss,
                                        .x = cornu_array(x, CORNU_F32, BATCH, FEATURES),
                                        .y = cornu_array(classes, CORNU_I32, BATCH)));
    const CornuMemory memory = cornu_device_memory(device);
    footprints[cornu_process_rank(processes)] =
        (Footprint){ memory.uses[CORNU_USE_WEIGHTS].peak, memory.uses[CORNU_USE_SLOTS].peak,
                     memory.uses[CORNU_USE_ACTIVATIONS].peak };
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return CORNU_OK;
}

/* Of every rank the same. */
static Footprint measured(bool sharded)
{
    fully = sharded;
    ranks_succeed(RANKS, "shm", measure);
    for (int r = 1; r < RANKS; r++)
        assert_memory_equal(&footprints[r], &footprints[0], sizeof *footprints);
    return footprints[0];
}

/* Weights and slots fall to a quarter, biases aside; between inputs and outputs there are, beside
 * activations, the weights and the gradient of one layer, instead of all gradients. */
static void memory_falls(void **state)
{
    (void)state;
    const int64_t biases = (LAYERS + 2) * UNITS * 4;
    footprints = mmap(NULL, RANKS * sizeof *footprints, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(footprints != MAP_FAILED);
    const Footprint plain = measured(false), cut = measured(true);
    assert_true(plain.weights > LAYERS * LAYER_BYTES && plain.values > LAYERS * LAYER_BYTES);
    assert_in_range(cut.weights, plain.weights / RANKS, plain.weights / RANKS + biases);
    assert_in_range(cut.slots, 2 * plain.weights / RANKS - biases,
                    2 * plain.weights / RANKS + 2 * biases);
    assert_in_range(cut.values, LAYER_BYTES, 2 * LAYER_BYTES + LAYER_BYTES / RANKS + 12 * biases);
    munmap(footprints, RANKS * sizeof *footprints);
}

/* ---- Which weights are cut ---- */

static CornuModel *of_shapes(void)
{
    CornuModel *model = cornu_sequential(.name = "shapes", .input_shape = { 8, 8, 3 });
    cornu_model_add(model, cornu_conv2d(64, 3, .name = "first"));        /* (3, 3, 3, 64) */
    cornu_model_add(model, cornu_conv2d(10, 3, .name = "second"));       /* (3, 3, 64, 10) */
    cornu_model_add(model, cornu_conv2d(15, 3, .name = "third"));        /* (3, 3, 10, 15) */
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(2048, .name = "fourth"));         /* (60, 2048) */
    cornu_model_add(model, cornu_reshape({ 32, 64 }));
    cornu_model_add(model, cornu_dense(8, .name = "fifth"));             /* (64, 8) */
    return model;
}

static void first_axis_that_divides(void **state)
{
    (void)state;
    static const struct { const char *path; int axis; } expected[] = {
        { "first/kernel", 3 },  { "first/bias", -1 },  { "second/kernel", 2 },
        { "third/kernel", -1 }, { "fourth/kernel", 1 }, { "fourth/bias", -1 },
        { "fifth/kernel", -1 },
    };
    CornuStrategy *strategy = cornu_fully_sharded(.num_shards = SHARDS);
    CornuModel    *model = of_shapes();
    CornuStatus    status = CORNU_OK;
    CORNU_SCOPE(strategy) status = cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR);
    if (status) fail_msg("%s", cornu_error_message());
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const CornuWeight *w = cornu_model_find_weight(model, expected[i].path);
        CornuLayout        layout = { .cut = { 0 } };
        if (expected[i].axis >= 0) layout.cut[expected[i].axis] = 1;
        if (!w) fail_msg("%s: not found", expected[i].path);
        if (!cornu__layout_equal(*cornu_variable_layout(w->variable), layout))
            fail_msg("%s: expected a cut of axis %d", expected[i].path, expected[i].axis);
    }
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

/* ---- With an axis of models ---- */

static CornuStatus train_on_mesh(bool sharded, Outcome *outcome)
{
    static const CornuLayoutRow rows[] = { { "up/kernel", { NULL, "model" } },
                                           { "up/bias", { "model" } },
                                           { "middle/kernel", { "model" } }, { 0 } };
    const CornuMesh mesh = cornu_device_mesh(.shape = { 4, 2 });
    return train(&cases[0], sharded ? cornu_fully_sharded(.mesh = mesh, .layout_map = rows)
                                    : cornu_model_parallel(.mesh = mesh, .layout_map = rows),
                 outcome);
}

static void beside_a_layout_map(void **state)
{
    (void)state;
    static Outcome plain, cut;
    if (train_on_mesh(false, &plain) || train_on_mesh(true, &cut))
        fail_msg("%s", cornu_error_message());
    expect_same(&cases[0], &plain, &cut);
}

/* ---- Errors ---- */

static void expect_error(CornuStrategy *strategy, const char *text)
{
    assert_null(strategy);
    assert_string_equal(cornu_error_message(), text);
    cornu_error_take();
}

static void errors(void **state)
{
    (void)state;
    const CornuMesh mesh = cornu_device_mesh(.shape = { 2, 4 });
    expect_error(cornu_fully_sharded(.mesh = mesh, .num_shards = 4),
                 "fully_sharded: .num_shards is 4, but the .mesh has 8");
    expect_error(cornu_fully_sharded(.mesh = mesh, .batch_dim_name = "rows"),
                 "the mesh (batch=2, model=4) has no axis \"rows\" to deal the rows of a batch "
                 "over");
    expect_error(cornu_data_parallel(.mesh = mesh),
                 "data_parallel: the .mesh has several axes, which cornu_model_parallel takes");
    expect_error(cornu_data_parallel(.layout_map = (CornuLayoutRow[]){ { 0 } }),
                 "data_parallel: a .layout_map is given, which cornu_model_parallel takes");
    expect_error(cornu_data_parallel(.mesh = cornu_device_mesh(.shape = { 2 }), .num_shards = 4),
                 "data_parallel: .num_shards is 4, but the .mesh has 2");
    expect_error(cornu_fully_sharded(.num_shards = 2, .iterations_per_loop = -1),
                 "fully_sharded: .iterations_per_loop is -1, expected 1 to 2147483647");
    CornuDevice *device = cornu_device_open("cpu", .shards = 2);
    assert_int_equal(cornu_device_shard_fully(device), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "fully sharded: the device has no mesh, expected "
                                               "cornu_device_set_mesh before");
    cornu_error_take();
    cornu_device_close(device);
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_falls), cmocka_unit_test(processes_agree),
        cmocka_unit_test(bits_of_data_parallelism), cmocka_unit_test(pjrt_agrees),
        cmocka_unit_test(beside_a_layout_map),
        cmocka_unit_test(first_axis_that_divides), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
