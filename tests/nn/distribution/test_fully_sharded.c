/* cornu_fully_sharded: the bits of data parallelism, and a part of its memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/mesh/partition.h"
#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../device/processes/results.h"

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
        CornuStrategy *workers = cornu_multi_worker_strategy(
            .num_shards = SHARDS, .device = c->device, .threads = 2);
        if (train(c, workers, &plain) || train(c, sharded_on(c, NULL), &cut))
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

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_agree), cmocka_unit_test(bits_of_data_parallelism),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
