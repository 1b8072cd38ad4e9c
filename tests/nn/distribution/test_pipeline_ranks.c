/* Stages of a pipeline on several ranks: the bits of one process, and a part of its memory. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../device/processes/results.h"
#include "../callbacks/stopper.h"
#include "kept.h"

enum { ROWS = 40, BATCH = 16, CLASSES = 10, SIDE = 28 };

static uint8_t images[ROWS * SIDE * SIDE];
static int32_t classes[ROWS];

static void make_data(void)
{
    for (int i = 0; i < ROWS * SIDE * SIDE; i++) images[i] = (uint8_t)(i * 37 % 251 + i / 784);
    for (int i = 0; i < ROWS; i++) classes[i] = (i * 5 + i / 3) % CLASSES;
}

/* ---- Models ---- */

static CornuModel *mnist_cnn(void) { return cornu_mnist_cnn(); }
static CornuModel *resnet20(void) { return cornu_resnet20(); }

/* A penalty on weights, noise, a branch over the cut, and layers that are called in two stages. */
static CornuModel *branches(void)
{
    CornuLayer  *shared = cornu_dense(24, .activation = CORNU_TANH, .name = "shared");
    CornuSymbol *x = cornu_input(.shape = { SIDE, SIDE }, .scale = 1.0 / 255.0, .name = "x");
    CornuSymbol *h = cornu_call(cornu_dense(24, .kernel_regularizer = cornu_l2(0.01),
                                            .kernel_constraint = cornu_max_norm(0.9),
                                            .name = "first"), cornu_call(cornu_flatten(), x));
    CornuLayer  *twice = cornu_batch_normalization();
    CornuSymbol *y = cornu_call(shared, cornu_call(twice, h));
    y = cornu_call(cornu_dense(24, .name = "middle"),
                   cornu_call(cornu_gaussian_noise(0.1), cornu_call(twice, y)));
    y = cornu_call(cornu_add(), h, cornu_call(shared, y));
    return cornu_model(.inputs = { x }, .name = "branches",
                       .outputs = { cornu_call(cornu_dense(CLASSES, .name = "out",
                                                           .activation = CORNU_SOFTMAX), y) });
}

/* float16, whose losses are scaled, and a wrapper with states of its own. */
static CornuModel *narrow(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { SIDE, SIDE }, .policy = "mixed_float16");
    cornu_model_add(model, cornu_gru(24, .return_sequences = true));
    cornu_model_add(model, cornu_dropout(0.2));
    cornu_model_add(model, cornu_lstm(24));
    cornu_model_add(model, cornu_spectral_normalization(cornu_dense(32)));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .dtype = "float32"));
    return model;
}

static CornuOptimizer *nadam(void) { return cornu_nadam(.learning_rate = 0.003); }
static CornuOptimizer *lamb(void) { return cornu_lamb(.learning_rate = 0.01, .use_ema = true); }
static CornuOptimizer *adam(void) { return cornu_adam(.learning_rate = 0.003); }
static CornuOptimizer *clipped(void)
{
    return cornu_sgd(.learning_rate = 0.05, .momentum = 0.9, .global_clipnorm = 0.5);
}

typedef struct {
    const char     *name;
    CornuModel     *(*build)(void);
    CornuOptimizer *(*optimizer)(void);
    int             stages, microbatches;
    int             rows, epochs;        /* default ROWS, 2 */
} Case;

static const Case cases[] = {
    { "mnist_cnn", mnist_cnn, adam, 4, 4, 0, 0 },
    { "mnist_cnn, fewer microbatches", mnist_cnn, clipped, 4, 2, 0, 0 },
    { "branches", branches, adam, 4, 4, 0, 0 },
    { "branches, clipped", branches, clipped, 4, 1, 0, 0 },
    { "branches, lamb", branches, lamb, 5, 3, 0, 0 },
    { "narrow", narrow, clipped, 4, 4, 0, 0 },
    { "narrow, nadam", narrow, nadam, 4, 2, 0, 0 },
};

/* ---- Training ---- */

static CornuStatus fit(CornuModel *model, const Case *c)
{
    static float  predictions[ROWS * CLASSES];
    const int64_t rows = c->rows ? c->rows : ROWS;
    return keep_training(model, c->name, cornu_array(images, CORNU_U8, rows, SIDE, SIDE),
                         cornu_array(classes, CORNU_I32, rows), c->epochs ? c->epochs : 2, BATCH,
                         cornu_array(predictions, CORNU_F32, rows, CLASSES));
}

static CornuStatus train(CornuProcesses *processes, const Case *c, CornuPipelineSchedule schedule)
{
    CornuStrategy *strategy = cornu_pipeline_parallel(
        .stages = c->stages, .threads = 1, .microbatches = c->microbatches, .schedule = schedule,
        .processes = processes);
    if (!strategy) return cornu_error_take();
    cornu_set_random_seed(7);
    CornuModel *model = c->build();
    CornuStatus status = CORNU_OK;
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = c->optimizer(), .metrics = { CORNU_ACCURACY },
                               .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                               .gradient_norm = true);
    if (!status) status = fit(model, c);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static CornuStatus train_all(CornuProcesses *processes)
{
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        for (int schedule = CORNU_GPIPE; schedule <= CORNU_1F1B; schedule++) {
            const CornuStatus status = train(processes, &cases[i], (CornuPipelineSchedule)schedule);
            if (status) return cornu__fail_prefix(status, cases[i].name);
        }
    return CORNU_OK;
}

static void ranks_agree(void **state)
{
    (void)state;
    results_agree("shm", (const int[]){ 2, 3, 4, 0 }, 20, train_all);
}

/* ---- A deep network ---- */

static CornuStatus train_resnet(CornuProcesses *processes)
{
    for (int stages = 2; stages <= 4; stages += 2)
        for (int schedule = CORNU_GPIPE; schedule <= CORNU_1F1B; schedule++) {
            const Case of = { "resnet20", resnet20, clipped, stages, 8, 24, 1 };
            if (cornu_process_count(processes) > stages) continue;
            const CornuStatus status = train(processes, &of, (CornuPipelineSchedule)schedule);
            if (status) return status;
        }
    return CORNU_OK;
}

static void resnets_agree(void **state)
{
    (void)state;
    results_agree("shm", (const int[]){ 2, 4, 0 }, 20, train_resnet);
}

/* ---- Memory ---- */

enum { UNITS = 256, LAYERS = 8 };

/* Bytes of a rank: at most its part of the weights, of two slots and the gradients of each, and as
 * much again as a layer has. */
static CornuStatus keep_a_part(CornuProcesses *processes)
{
    static float   x[BATCH * UNITS];
    CornuStrategy *strategy = cornu_pipeline_parallel(
        .stages = 8, .threads = 1, .microbatches = 4, .processes = processes,
        .schedule = CORNU_1F1B);
    if (!strategy) return cornu_error_take();
    CornuModel *model = cornu_sequential(.input_shape = { UNITS });
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < LAYERS; i++)
        cornu_model_add(model, cornu_dense(UNITS, .kernel_regularizer = cornu_l2(0.01)));
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = adam(), .loss = CORNU_MEAN_SQUARED_ERROR);
    for (int i = 0; i < 2 && !status; i++)
        status = cornu_train_on_batch(model, .x = cornu_array(x, CORNU_F32, BATCH, UNITS),
                                      .y = cornu_array(x, CORNU_F32, BATCH, UNITS));
    const CornuMemory memory = cornu_device_memory(cornu_strategy_device(strategy));
    const int64_t each = 4 * (int64_t)sizeof(float) * UNITS * (UNITS + 1);
    const int64_t held = memory.uses[CORNU_USE_WEIGHTS].now + memory.uses[CORNU_USE_SLOTS].now;
    const int     ranks = cornu_process_count(processes);
    if (!status && (held > each * LAYERS / ranks + each / 16 || held < each * LAYERS / ranks))
        status = cornu__fail(CORNU_ERR_VALUE, "%lld bytes on rank %d of %d, expected %lld",
                             (long long)held, cornu_process_rank(processes), ranks,
                             (long long)(each * LAYERS / ranks));
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static void ranks_have_their_stages(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks *= 2) ranks_succeed(ranks, "shm", keep_a_part);
}

/* ---- Files ---- */

static char folder[] = "/tmp/cornu_pipeline_ranks_XXXXXX";

static CornuStatus compile_in(CornuStrategy *strategy, CornuModel *model)
{
    CornuStatus status = CORNU_OK;
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = adam(),
                               .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    return status;
}

static CornuStatus fit_and_save(CornuModel *model, CornuCallback *backup, CornuCallback *stopping,
                                const char *name)
{
    char          path[80];
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(images, CORNU_U8, ROWS, SIDE, SIDE), .epochs = 2,
        .y = cornu_array(classes, CORNU_I32, ROWS), .batch_size = BATCH, .verbose = CORNU_SILENT,
        .callbacks = { backup, stopping });
    if (!history) return cornu_error_take();
    cornu_history_free(history);
    snprintf(path, sizeof path, "%s/%s.keras", folder, name);
    return cornu_model_save(model, path);
}

/* Part 0 is undisturbed; 1 stops in the second epoch; 2 goes on, perhaps on other ranks and in
 * other stages. */
static CornuStatus train_part(CornuProcesses *processes, int part, int stages)
{
    static volatile sig_atomic_t stop;
    Stopper        stopper = stop_after(4, &stop);
    char           backups[80];
    CornuStrategy *strategy = cornu_pipeline_parallel(
        .stages = stages, .threads = 1, .microbatches = 4, .processes = processes,
        .schedule = CORNU_1F1B);
    if (!strategy) return cornu_error_take();
    snprintf(backups, sizeof backups, "%s/backup", folder);
    cornu_set_random_seed(7);
    CornuModel *model = branches();
    CornuStatus status = compile_in(strategy, model);
    stop = 0;
    if (!status)
        status = fit_and_save(
            model, part ? cornu_backup_and_restore(backups, 1, .stop = &stop) : NULL,
            part == 1 ? &stopper.base : NULL, part ? "resumed" : "undisturbed");
    if (part == 1) status = status == CORNU_ERR_INTERRUPTED ? CORNU_OK : CORNU_ERR_VALUE;
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static CornuStatus undisturbed(CornuProcesses *processes) { return train_part(processes, 0, 2); }
static CornuStatus stopped(CornuProcesses *processes) { return train_part(processes, 1, 3); }
static CornuStatus resumed(CornuProcesses *processes) { return train_part(processes, 2, 4); }

static void expect_equal_files(const char *a, const char *b)
{
    char command[200];
    snprintf(command, sizeof command, "cmp %s/%s %s/%s", folder, a, folder, b);
    assert_int_equal(system(command), 0);
}

/* One process, stopped on three ranks, resumed on two: the same file. */
static void other_ranks_resume(void **state)
{
    (void)state;
    char command[80];
    assert_non_null(mkdtemp(folder));
    ranks_succeed(1, "shm", undisturbed);
    ranks_succeed(3, "shm", stopped);
    ranks_succeed(2, "shm", resumed);
    expect_equal_files("undisturbed.keras", "resumed.keras");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- Failures ---- */

static CornuStatus train_until(CornuProcesses *processes, void (*at_begin)(CornuProcesses *),
                               int stages)
{
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = stages, .threads = 1,
                                                      .microbatches = 4, .processes = processes);
    if (!strategy) return cornu_error_take();
    cornu_set_random_seed(7);
    CornuModel *model = branches();
    CornuStatus status = compile_in(strategy, model);
    if (!status)
        status = cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, BATCH, SIDE, SIDE),
                                      .y = cornu_array(classes, CORNU_I32, BATCH));
    at_begin(processes);
    for (int i = 0; i < 3 && !status; i++)
        status = cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, BATCH, SIDE, SIDE),
                                      .y = cornu_array(classes, CORNU_I32, BATCH));
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static void end_last(CornuProcesses *processes)
{
    if (cornu_process_rank(processes) == cornu_process_count(processes) - 1) _exit(0);
}

static void spoil_label(CornuProcesses *processes)
{
    (void)processes;
    classes[5] = 77;   /* of the second microbatch */
}

static CornuStatus lose_a_rank(CornuProcesses *processes)
{
    return train_until(processes, end_last, 3);
}

static CornuStatus spoil(CornuProcesses *processes)
{
    return train_until(processes, spoil_label, 3);
}

static void dead_ranks_are_errors(void **state)
{
    (void)state;
    Ranks ranks;
    ranks_run(&ranks, 3, "shm", 5, NULL, lose_a_rank);
    for (int rank = 0; rank < 2; rank++) {
        ranks_expect(&ranks, rank, CORNU_ERR_PROCESS, "rank 2 has ended");
        assert_true(ranks.ends[rank].seconds < 30);
    }
}

/* The last stage sees it, and all say so. */
static void bad_rows_are_errors(void **state)
{
    (void)state;
    Ranks ranks;
    ranks_run(&ranks, 3, "tcp", 20, NULL, spoil);
    for (int rank = 0; rank < 2; rank++)
        ranks_expect(&ranks, rank, CORNU_ERR_PROCESS, "rank 2: ");
    ranks_expect(&ranks, 2, CORNU_ERR_VALUE, "77");
}

static CornuStatus too_few_stages(CornuProcesses *processes)
{
    if (!cornu_pipeline_parallel(.stages = 2, .microbatches = 4, .processes = processes))
        return cornu_error_take();
    return CORNU_OK;
}

static CornuStatus other_stages(CornuProcesses *processes)
{
    return train_until(processes, spoil_label, 3 + cornu_process_rank(processes));
}

static void refused(void **state)
{
    (void)state;
    Ranks ranks;
    ranks_run(&ranks, 3, "shm", 20, NULL, too_few_stages);
    for (int rank = 0; rank < 3; rank++)
        ranks_expect(&ranks, rank, CORNU_ERR_ARGUMENT,
                     "3 processes for 2 stages, expected at least one stage for each");
    ranks_run(&ranks, 2, "shm", 20, NULL, other_stages);
    for (int rank = 0; rank < 2; rank++)
        ranks_expect(&ranks, rank, CORNU_ERR_PROCESS, "the pipeline is of a program of");
}

/* What reads the weights of other stages without the pipeline. */
static CornuStatus run_alone(CornuProcesses *processes)
{
    CornuStrategy *strategy = cornu_pipeline_parallel(.stages = 2, .threads = 1,
                                                      .microbatches = 4, .processes = processes);
    if (!strategy) return cornu_error_take();
    CornuModel *model = branches();
    CornuStatus status = compile_in(strategy, model);
    if (!status)
        status = cornu_train_on_batch(model, .x = cornu_array(images, CORNU_U8, BATCH, SIDE, SIDE),
                                      .y = cornu_array(classes, CORNU_I32, BATCH));
    CornuGraph  *graph = cornu_graph_create(cornu_strategy_device(strategy));
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_U8, BATCH, SIDE, SIDE));
    CornuTensor *y = cornu_model_call(model, x, &(CornuCall){ .training = false });
    static float to[BATCH * CLASSES];
    CornuArray   fetched = cornu_array(to, CORNU_F32, BATCH, CLASSES);
    if (!status) status = y ? cornu_run(graph, &y, 1, &fetched) : cornu_error_take();
    cornu_graph_free(graph);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static void other_graphs_are_refused(void **state)
{
    (void)state;
    Ranks ranks;
    ranks_run(&ranks, 2, "shm", 20, NULL, run_alone);
    for (int rank = 0; rank < 2; rank++)
        ranks_expect(&ranks, rank, CORNU_ERR_UNSUPPORTED,
                     "is of a pipeline's stage that other processes run");
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_agree), cmocka_unit_test(resnets_agree),
        cmocka_unit_test(ranks_have_their_stages), cmocka_unit_test(other_ranks_resume),
        cmocka_unit_test(dead_ranks_are_errors), cmocka_unit_test(bad_rows_are_errors),
        cmocka_unit_test(refused), cmocka_unit_test(other_graphs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
