/*
 * A model that its device's memory is too small for trains when a mesh cuts it, goes on over other
 * meshes, and its file is that of the whole model. test_meshes.c does it for small ones.
 *
 * tests/run: in check
 * tests/run: takes 90 s
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "../datasets/files.h"
#include "../nn/callbacks/stopper.h"

enum { SHARDS = 8, ROWS = 2, TIMES = 16, STEPS = 3, CHARACTERS = 256 };

static const int64_t cap = 400000000;   /* bytes of a shard */

static uint8_t text[ROWS * (TIMES + 1)], x[SHARDS * TIMES], y[SHARDS * TIMES];

static void make_data(void)
{
    for (int i = 0; i < ROWS * (TIMES + 1); i++) text[i] = (uint8_t)("to be or not "[i % 13]);
    for (int i = 0; i < ROWS; i++) {
        memcpy(x + i * TIMES, text + i * (TIMES + 1), TIMES);
        memcpy(y + i * TIMES, text + i * (TIMES + 1) + 1, TIMES);
    }
}

static CornuModel *gpt_large(void)
{
    cornu_set_random_seed(3);
    return cornu_char_gpt(.preset = cornu_text_preset("gpt_large"), .sequence_length = TIMES);
}

static CornuStatus compile(CornuModel *model, CornuDevice *device)
{
    return cornu_compile(model, .device = device, .optimizer = cornu_adam(.learning_rate = 1e-4),
                         .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
}

/* Unsplit it takes 57 M weights, a slice of two slots and gradients: 690 MB of a shard. */
static void test_whole(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("tpu:v3-8", .shards = SHARDS, .shard_memory = cap);
    CornuModel  *model = gpt_large();
    CornuStatus  status = compile(model, device);
    double       loss;
    assert_true(cornu_model_parameters(model) >= 50000000);
    if (!status)
        status = cornu_train_on_batch(model, cornu_array(x, CORNU_U8, SHARDS, TIMES),
                                      cornu_array(y, CORNU_U8, SHARDS, TIMES), &loss);
    assert_int_equal(status, CORNU_ERR_MEMORY);
    print_message("# %s\n", cornu_error_message());
    assert_non_null(strstr(cornu_error_message(), "It fits if a mesh cuts it, as (batch="));
    cornu_error_take();
    cornu_model_free(model);
    cornu_device_close(device);
}

static void test_mesh(void **state)
{
    (void)state;
    double           losses[STEPS];
    CornuModel      *model = gpt_large();
    CornuAutoLayout *chosen = cornu_auto_layout(model, cornu_device_mesh(.shape = { 2, 4 }),
                                                .batch_size = ROWS, .hbm_bytes = cap);
    if (!chosen) fail_msg("%s", cornu_error_message());
    cornu_auto_layout_print(chosen, stdout);
    const CornuLayoutChoice *first = cornu_auto_layout_choice(chosen, 0);
    assert_false(cornu_auto_layout_data_parallel(chosen)->fits);
    CornuStrategy *parallel = cornu_model_parallel(.mesh = first->mesh, .device = "tpu:v3-8",
                                                   .layout_map = first->layout_map,
                                                   .shard_memory = cap);
    if (compile(model, cornu_strategy_device(parallel))) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < STEPS; i++) {
        if (cornu_train_on_batch(model, cornu_array(x, CORNU_U8, ROWS, TIMES),
                                 cornu_array(y, CORNU_U8, ROWS, TIMES), &losses[i]))
            fail_msg("%s", cornu_error_message());
        print_message("# step %d: loss %.4f\n", i + 1, losses[i]);
    }
    assert_true(isfinite(losses[STEPS - 1]) && losses[STEPS - 1] < losses[0]);
    assert_true(cornu_device_memory(cornu_strategy_device(parallel)).total.peak <= cap);
    cornu_model_free(model);
    cornu_strategy_free(parallel);
    cornu_auto_layout_free(chosen);
}

/* ---- Going on over other meshes ---- */

enum { BATCHES = 5, BATCH = SHARDS };

/* A mesh, cut as cornu_auto_layout chooses for the cap, and what it leaves whole along the
 * batch. */
typedef struct {
    int  mesh[2];
    bool fully;
} Way;

static uint8_t lines[BATCHES * BATCH * TIMES], nexts[BATCHES * BATCH * TIMES];
static float   predicted[BATCH * TIMES * CHARACTERS], expected[BATCH * TIMES * CHARACTERS];

static CornuArray all_x(void) { return cornu_array(lines, CORNU_U8, BATCHES * BATCH, TIMES); }
static CornuArray all_y(void) { return cornu_array(nexts, CORNU_U8, BATCHES * BATCH, TIMES); }

static CornuStrategy *open_way(const Way *way, CornuModel *model)
{
    const CornuMesh  mesh = cornu_device_mesh(.shape = { way->mesh[0], way->mesh[1] });
    CornuAutoLayout *chosen = cornu_auto_layout(model, mesh, .batch_size = BATCH, .hbm_bytes = cap);
    if (!chosen) fail_msg("%s", cornu_error_message());
    const CornuLayoutRow *rows = cornu_auto_layout_choice(chosen, 0)->layout_map;
    CornuStrategy        *strategy = way->fully   /* on cpu, in f32 */
        ? cornu_fully_sharded(.mesh = mesh, .layout_map = rows, .shard_memory = cap)
        : cornu_model_parallel(.mesh = mesh, .layout_map = rows, .shard_memory = cap);
    cornu_auto_layout_free(chosen);
    if (!strategy) fail_msg("%s", cornu_error_message());
    return strategy;
}

/* What a training ended with: the mean loss of its steps, that of its weights, and predictions. */
typedef struct {
    double trained, evaluated;
} Ended;

static void measure(CornuModel *model, Ended *ended)
{
    if (cornu_evaluate(model, .x = all_x(), .y = all_y(), .batch_size = BATCH,
                       .verbose = CORNU_SILENT, .results = &ended->evaluated) ||
        cornu_predict_on_batch(model, cornu_array(lines, CORNU_U8, BATCH, TIMES),
                               cornu_array(predicted, CORNU_F32, BATCH, TIMES, CHARACTERS)))
        fail_msg("%s", cornu_error_message());
}

/* Trains over a mesh, from the backup if there is one, up to a step: 0 for the end, where it is
 * measured and saved. */
static void train(const Way *way, int64_t stop_at, const char *save, Ended *ended)
{
    volatile sig_atomic_t stop = 0;
    Stopper               stopper = stop_after(stop_at, &stop);
    CornuModel           *model = gpt_large();
    CornuStrategy        *strategy = open_way(way, model);
    CornuDevice          *device = cornu_strategy_device(strategy);
    if (compile(model, device)) fail_msg("%s", cornu_error_message());
    CornuHistory *history = cornu_fit(
        model, .x = all_x(), .y = all_y(), .batch_size = BATCH, .verbose = CORNU_SILENT,
        .callbacks = { &stopper.base, cornu_backup_and_restore(files_path(folder, "backup"),
                                                               .stop = &stop) });
    const CornuStatus status = cornu_error_take();
    if (status != (stop_at ? CORNU_ERR_INTERRUPTED : CORNU_OK))
        fail_msg("%d x %d: %s", way->mesh[0], way->mesh[1], cornu_error_message());
    if (history) {
        ended->trained = cornu_history_get(history, "loss", 0);
        measure(model, ended);
        print_message("# %d x %d: loss of training %.9g, of the weights %.9g\n", way->mesh[0],
                      way->mesh[1], ended->trained, ended->evaluated);
    }
    const int64_t peak = cornu_device_memory(device).total.peak;
    if (peak > cap) fail_msg("%d x %d: %lld bytes of a shard", way->mesh[0], way->mesh[1],
                             (long long)peak);
    if (save && cornu_model_save(model, save)) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

/* A sum of n terms in another order differs by about sqrt(n) roundings of 2^-24 (Higham, "Accuracy
 * and Stability of Numerical Algorithms", section 2.8): here the 3,072 of a hidden layer, and as
 * many of these as there are steps. */
static void expect_near(const char *what, double value, double whole)
{
    const double bound = BATCHES * sqrt(3072.0) * 0x1p-24 * fabs(whole);
    if (!(fabs(value - whole) <= bound))
        fail_msg("%s: %.9g, undisturbed %.9g, expected within %.2g", what, value, whole, bound);
}

static void expect_near_predictions(const char *what)
{
    double farthest = 0.0;
    for (int i = 0; i < BATCH * TIMES * CHARACTERS; i++)
        farthest = fmax(farthest, fabs(predicted[i] - expected[i]));
    print_message("# %s: probabilities differ by %.2g at most\n", what, farthest);
    if (!(farthest <= BATCHES * sqrt(3072.0) * 0x1p-24))
        fail_msg("%s: a probability differs by %.3g", what, farthest);
}

/* Stopped twice, it has been on three meshes at its end. */
static void test_resumed(void **state)
{
    static const Way undisturbed = { { 2, 4 }, false }, other = { { 4, 2 }, true },
                     last = { { 8, 1 }, true };
    char             saved[FILES_PATH];
    Ended            whole, resumed;
    (void)state;
    snprintf(saved, sizeof saved, "%s", files_path(folder, "gpt_large.keras"));
    for (int i = 0; i < BATCHES * BATCH * TIMES; i++) {
        lines[i] = (uint8_t)("the quality of mercy is not strained; "[(i * 7 + i / 5) % 38]);
        nexts[i] = (uint8_t)("the quality of mercy is not strained; "[(i * 7 + i / 5 + 1) % 38]);
    }
    train(&undisturbed, 0, saved, &whole);
    memcpy(expected, predicted, sizeof expected);
    train(&undisturbed, 2, NULL, NULL);
    train(&other, 2, NULL, NULL);
    train(&last, 0, NULL, &resumed);
    expect_near("mean loss of the steps", resumed.trained, whole.trained);
    expect_near("loss of the weights", resumed.evaluated, whole.evaluated);
    expect_near_predictions("resumed");
}

/* What the last test has saved, on a device without a mesh or a cap. */
static void test_file(void **state)
{
    (void)state;
    Ended       unsplit = { 0 };
    CornuModel *model = cornu_model_load(files_path(folder, "gpt_large.keras"));
    if (compile(model, NULL)) fail_msg("%s", cornu_error_message());
    measure(model, &unsplit);
    print_message("# unsplit: loss of the weights %.9g\n", unsplit.evaluated);
    expect_near_predictions("unsplit");
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_mesh),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_file),
    };
    make_data();
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
