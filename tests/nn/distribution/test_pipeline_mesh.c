/* Pipelines whose stages are on meshes: the bits of plain accumulation on the same mesh, whatever
 * the stages, the schedule and the ranks. */
#define _DEFAULT_SOURCE   /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>

#include "../../../models/models.h"
#include "../../../device/status_internal.h"
#include "../../../nn/cornu.h"
#include "../../device/processes/results.h"
#include "../callbacks/stopper.h"
#include "kept.h"

enum { ROWS = 40, BATCH = 16, CLASSES = 10, SIDE = 28, TIMES = 8, WORDS = 64, MICROBATCHES = 4 };

static uint8_t images[ROWS * SIDE * SIDE];
static int32_t classes[ROWS], words[ROWS * TIMES], next_words[ROWS * TIMES];

static void make_data(void)
{
    for (int i = 0; i < ROWS * SIDE * SIDE; i++) images[i] = (uint8_t)(i * 37 % 251 + i / 784);
    for (int i = 0; i < ROWS; i++) classes[i] = (i * 5 + i / 3) % CLASSES;
    for (int i = 0; i < ROWS * TIMES; i++) {
        words[i] = (i * 29 + i / 7) % WORDS;
        next_words[i] = (i * 31 + i / 5) % WORDS;
    }
}

/* ---- Models ---- */

static CornuModel *resnet20(void) { return cornu_resnet20(); }

/* With dropout. */
static CornuModel *gpt(void)
{
    static const CornuTextPreset small = { .model = "char_gpt", .channels = 32, .layers = 2,
                                           .heads = 4, .sequence_length = TIMES };
    return cornu_char_gpt(.preset = &small, .vocabulary = WORDS);
}

/* A penalty on weights, noise, a branch over the cut, layers that are called in two stages, and
 * statistics of a batch. */
static CornuModel *branches(void)
{
    CornuLayer  *shared = cornu_dense(24, .activation = CORNU_TANH, .name = "shared");
    CornuSymbol *x = cornu_input(.shape = { SIDE, SIDE }, .scale = 1.0 / 255.0, .name = "x");
    CornuSymbol *h = cornu_call(cornu_dense(24, .kernel_regularizer = cornu_l2(0.01),
                                            .kernel_constraint = cornu_max_norm(0.9),
                                            .name = "first"), cornu_call(cornu_flatten(), x));
    CornuLayer  *twice = cornu_batch_normalization();
    CornuSymbol *y = cornu_call(shared, cornu_call(twice, h));
    y = cornu_call(cornu_dropout(0.2), cornu_call(twice, y));
    y = cornu_call(cornu_dense(24, .name = "middle"), cornu_call(cornu_gaussian_noise(0.1), y));
    y = cornu_call(cornu_add(), h, cornu_call(shared, y));
    return cornu_model(.inputs = { x }, .name = "branches",
                       .outputs = { cornu_call(cornu_dense(CLASSES, .name = "out",
                                                           .activation = CORNU_SOFTMAX), y) });
}

static CornuOptimizer *adam(void) { return cornu_adam(.learning_rate = 0.003); }
static CornuOptimizer *momentum(void) { return cornu_sgd(.learning_rate = 0.05, .momentum = 0.9); }
static CornuOptimizer *clipped(void)
{
    return cornu_sgd(.learning_rate = 0.05, .momentum = 0.9, .global_clipnorm = 0.5);
}

typedef struct {
    const char     *name;
    CornuModel     *(*build)(void);
    CornuOptimizer *(*optimizer)(void);
    int             mesh[2];             /* batch, model */
    bool            fully_sharded;
    int             rows, epochs;
    const char     *device;              /* default cpu */
} Case;

static const Case of_replicas[] = {
    { "resnet20, 2 x 1", resnet20, clipped, { 2, 1 }, false, 24, 1, NULL },
    { "char_gpt, 2 x 1", gpt, adam, { 2, 1 }, false, ROWS, 2, NULL },
    { "branches, 2 x 1", branches, adam, { 2, 1 }, false, ROWS, 2, NULL },
    { "branches, no mesh", branches, clipped, { 0 }, false, ROWS, 1, NULL },
}, of_layouts[] = {
    { "resnet20, 1 x 2", resnet20, clipped, { 1, 2 }, false, 24, 1, NULL },
    { "char_gpt, 1 x 2", gpt, adam, { 1, 2 }, false, ROWS, 2, NULL },
    { "branches, 1 x 2", branches, adam, { 1, 2 }, false, ROWS, 2, NULL },
    { "char_gpt, tpu", gpt, adam, { 1, 2 }, false, ROWS, 1, "tpu" },
}, of_both[] = {
    { "char_gpt, 2 x 2", gpt, clipped, { 2, 2 }, false, ROWS, 1, NULL },
    { "branches, 4 x 1", branches, clipped, { 4, 1 }, false, ROWS, 1, NULL },
}, of_slices[] = {
    { "char_gpt, fully sharded", gpt, adam, { 2, 1 }, true, ROWS, 2, NULL },
    { "branches, fully sharded", branches, adam, { 2, 2 }, true, ROWS, 1, NULL },
};
#define COUNT(cases) (int)(sizeof(cases) / sizeof *(cases))

static CornuArray inputs_of(const Case *c)
{
    return c->build == gpt ? cornu_array(words, CORNU_I32, c->rows, TIMES)
                           : cornu_array(images, CORNU_U8, c->rows, SIDE, SIDE);
}

static CornuArray labels_of(const Case *c)
{
    return c->build == gpt ? cornu_array(next_words, CORNU_I32, c->rows, TIMES)
                           : cornu_array(classes, CORNU_I32, c->rows);
}

static CornuArray predictions_of(const Case *c)
{
    static float to[ROWS * TIMES * WORDS];
    return c->build == gpt ? cornu_array(to, CORNU_F32, c->rows, TIMES, WORDS)
                           : cornu_array(to, CORNU_F32, c->rows, CLASSES);
}

/* ---- Training ---- */

static CornuStatus fit(CornuModel *model, const Case *c)
{
    return keep_training(model, c->name, inputs_of(c), labels_of(c), c->epochs, BATCH,
                         predictions_of(c));
}

/* The model's stages on the mesh, cut as cornu_default_layout says; the caller frees both. */
static CornuStatus compile(const Case *c, int stages, CornuPipelineSchedule schedule,
                           CornuProcesses *processes, CornuModel **model, CornuStrategy **strategy)
{
    CornuStatus status = CORNU_OK;
    CornuMesh       mesh = { .axes = 0 };
    CornuLayoutRow *rows = NULL;
    cornu_set_random_seed(7);
    *model = c->build();
    if (c->mesh[0]) {
        mesh = cornu_device_mesh(.shape = { c->mesh[0], c->mesh[1] });
        rows = cornu_default_layout(*model, mesh);
    }
    *strategy = cornu_pipeline_parallel(
        .stages = stages, .threads = 1, .microbatches = MICROBATCHES, .schedule = schedule,
        .processes = processes, .mesh = mesh, .layout_map = rows, .device = c->device,
        .fully_sharded = c->fully_sharded, .num_shards = c->mesh[0] ? 0 : 2);
    cornu_layout_free(rows);
    if (!*strategy) return cornu_error_take();
    CORNU_SCOPE(*strategy)
        status = cornu_compile(*model, .optimizer = c->optimizer(), .metrics = { CORNU_ACCURACY },
                               .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                               .gradient_norm = true);
    return status;
}

static CornuStatus train(const Case *c, int stages, CornuPipelineSchedule schedule,
                         CornuProcesses *processes)
{
    CornuModel    *model;
    CornuStrategy *strategy;
    CornuStatus    status = compile(c, stages, schedule, processes, &model, &strategy);
    if (!status) status = fit(model, c);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static const Case *current;

/* One process accumulates; ranks, one among them, have stages. */
static CornuStatus train_current(CornuProcesses *processes)
{
    CornuStatus status = CORNU_OK;
    for (int schedule = CORNU_GPIPE; schedule <= CORNU_1F1B && !status; schedule++)
        status = train(current, processes ? 2 : 1, (CornuPipelineSchedule)schedule, processes);
    return cornu__fail_prefix(status, current->name);
}

static void cases_agree(const Case *cases, int count, const char *transport, const int *ranks)
{
    for (int i = 0; i < count; i++) {
        current = &cases[i];
        results_agree(transport, ranks, 20, train_current);
    }
}

static void replicas_agree(void **state)
{
    (void)state;
    cases_agree(of_replicas, COUNT(of_replicas), "shm", (const int[]){ 1, 2, 4, 0 });
}

static void layouts_agree(void **state)
{
    (void)state;
    cases_agree(of_layouts, COUNT(of_layouts), "shm", (const int[]){ 1, 2, 4, 0 });
}

/* 3 ranks share the shards of all stages, 8 are two groups of four. */
static void more_ranks_agree(void **state)
{
    (void)state;
    cases_agree(of_both, COUNT(of_both), "shm", (const int[]){ 3, 8, 0 });
}

static void slices_agree(void **state)
{
    (void)state;
    cases_agree(of_slices, COUNT(of_slices), "tcp", (const int[]){ 1, 2, 4, 0 });
}

/* ---- Memory ---- */

enum { UNITS = 256, LAYERS = 8 };

/* Bytes of a shard: of the stages of its rank a part of the weights, of Adam's slots and of the
 * gradients, and as much again as a layer has. */
static CornuStatus keep_a_part(CornuProcesses *processes)
{
    static float      x[BATCH * UNITS];
    static const char column[] = "kernel";
    CornuStrategy    *strategy = cornu_pipeline_parallel(
        .stages = 4, .threads = 1, .microbatches = 4, .processes = processes,
        .schedule = CORNU_1F1B, .mesh = cornu_device_mesh(.shape = { 1, 2 }),
        .layout_map = (CornuLayoutRow[]){ { column, { NULL, "model" } }, { 0 } });
    if (!strategy) return cornu_error_take();
    CornuModel *model = cornu_sequential(.input_shape = { UNITS });
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < LAYERS; i++) cornu_model_add(model, cornu_dense(UNITS));
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = adam(), .loss = CORNU_MEAN_SQUARED_ERROR);
    for (int i = 0; i < 2 && !status; i++)
        status = cornu_train_on_batch(model, .x = cornu_array(x, CORNU_F32, BATCH, UNITS),
                                      .y = cornu_array(x, CORNU_F32, BATCH, UNITS));
    const CornuMemory memory = cornu_device_memory(cornu_strategy_device(strategy));
    const int     groups = cornu_process_count(processes) > 2 ? 4 : cornu_process_count(processes);
    const int64_t each = 4 * (int64_t)sizeof(float) * UNITS * (UNITS + 2) / 2;
    const int64_t held = memory.uses[CORNU_USE_WEIGHTS].now + memory.uses[CORNU_USE_SLOTS].now;
    if (!status && (held > each * LAYERS / groups + each / 16 || held < each * LAYERS / groups -
                                                                        each / 16))
        status = cornu__fail(CORNU_ERR_VALUE, "%lld bytes of a shard on rank %d of %d, expected "
                             "%lld", (long long)held, cornu_process_rank(processes),
                             cornu_process_count(processes), (long long)(each * LAYERS / groups));
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static void ranks_have_their_part(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks *= 2) ranks_succeed(ranks, "shm", keep_a_part);
}

enum { WIDE = 768, DEEP = 16 };

/* A line of /proc/self/status, in bytes. */
static int64_t status_bytes(const char *name)
{
    FILE  *file = fopen("/proc/self/status", "r");
    char   line[128];
    int64_t kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            kilobytes = atoll(line + strlen(name) + 1);
    if (file) fclose(file);
    return kilobytes << 10;
}

/* What the rank that has all stages had resident, for those of several: memory that they share.
 * How much programs work on beside weights, slots and gradients depends on the machine: its caches,
 * its pages. */
static int64_t *alone;

/* At most resident, from before the model is compiled until it has trained: of several ranks each
 * has its part of what one rank has, and as much again as two layers have. So four ranks train with
 * a shard that has no more. Of one rank it is at most twice the weights, Adam's slots and the
 * gradients, and two layers. */
static CornuStatus never_have_more(CornuProcesses *processes)
{
    static float   x[4 * WIDE];
    const int64_t  layer = 4 * (int64_t)sizeof(float) * WIDE * (WIDE + 1);
    const int      ranks = cornu_process_count(processes);
    const int64_t  part = layer * DEEP / ranks;
    const int64_t  most = (ranks == 1 ? 2 * part : *alone / ranks) + 2 * layer;
    CornuStrategy *strategy = cornu_pipeline_parallel(
        .stages = 4, .threads = 1, .microbatches = 4, .processes = processes,
        .schedule = CORNU_1F1B, .shard_memory = ranks == 4 ? most : 0);
    if (!strategy) return cornu_error_take();
    CornuModel *model = cornu_sequential(.input_shape = { WIDE });
    for (int i = 0; i < DEEP; i++) cornu_model_add(model, cornu_dense(WIDE));
    const int64_t before = status_bytes("VmRSS");
    CornuStatus   status = CORNU_OK;
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = adam(), .loss = CORNU_MEAN_SQUARED_ERROR);
    for (int i = 0; i < 3 && !status; i++)
        status = cornu_train_on_batch(model, .x = cornu_array(x, CORNU_F32, 4, WIDE),
                                      .y = cornu_array(x, CORNU_F32, 4, WIDE));
    const int64_t     peak = status_bytes("VmHWM") - before;
    if (ranks == 1) *alone = peak;
    const CornuMemory memory = cornu_device_memory(cornu_strategy_device(strategy));
    const int64_t counted = memory.uses[CORNU_USE_WEIGHTS].peak + memory.uses[CORNU_USE_SLOTS].peak;
    printf("# rank %d of %d: at most %.1f MB resident, of %.1f MB of weights, slots, gradients\n",
           cornu_process_rank(processes), ranks, 1e-6 * (double)peak, 1e-6 * (double)layer * DEEP);
    if (!status && (peak > most || counted > part + 4096 || counted < part))
        status = cornu__fail(CORNU_ERR_VALUE, "%lld bytes resident and %lld counted on rank %d of "
                             "%d, expected %lld and %lld", (long long)peak, (long long)counted,
                             cornu_process_rank(processes), ranks, (long long)most,
                             (long long)part);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static void ranks_never_have_more(void **state)
{
    (void)state;
    alone = mmap(NULL, sizeof *alone, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(alone != MAP_FAILED);
    for (int ranks = 1; ranks <= 4; ranks *= 2) ranks_succeed(ranks, "shm", never_have_more);
    munmap(alone, sizeof *alone);
}

/* ---- Files ---- */

static char folder[] = "/tmp/cornu_pipeline_mesh_XXXXXX";

/* Part 0 is undisturbed; 1 stops in the second epoch; 2 goes on. */
static CornuStatus train_part(CornuProcesses *processes, int part, int stages)
{
    static volatile sig_atomic_t stop;
    const Case     of = { "gpt", gpt, adam, { 1, 2 }, false, ROWS, 2, NULL };
    Stopper        stopper = stop_after(4, &stop);
    char           path[80];
    CornuModel    *model;
    CornuStrategy *strategy;
    CornuStatus    status = compile(&of, stages, CORNU_1F1B, processes, &model, &strategy);
    stop = 0;
    snprintf(path, sizeof path, "%s/backup", folder);
    if (!status) {
        CornuHistory *history = cornu_fit(
            model, .x = inputs_of(&of), .y = labels_of(&of), .epochs = 2, .batch_size = BATCH,
            .verbose = CORNU_SILENT,
            .callbacks = { part ? cornu_backup_and_restore(path, 1, .stop = &stop) : NULL,
                           part == 1 ? &stopper.base : NULL });
        status = history ? CORNU_OK : cornu_error_take();
        cornu_history_free(history);
    }
    if (part == 1) status = status == CORNU_ERR_INTERRUPTED ? CORNU_OK : CORNU_ERR_VALUE;
    snprintf(path, sizeof path, "%s/%d.keras", folder, part);
    if (!status) status = cornu_model_save(model, path);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static CornuStatus undisturbed(CornuProcesses *processes) { return train_part(processes, 0, 2); }
static CornuStatus stopped(CornuProcesses *processes) { return train_part(processes, 1, 2); }
static CornuStatus resumed(CornuProcesses *processes) { return train_part(processes, 2, 3); }

/* One process goes on from the file without a pipeline or a mesh. */
static CornuStatus load_alone(CornuProcesses *processes)
{
    char path[80];
    (void)processes;
    snprintf(path, sizeof path, "%s/2.keras", folder);
    CornuModel *model = cornu_model_load(path);
    CornuStatus status = model ? CORNU_OK : cornu_error_take();
    if (!status) status = cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    if (!status)
        status = cornu_train_on_batch(model, .x = cornu_array(words, CORNU_I32, BATCH, TIMES),
                                      .y = cornu_array(next_words, CORNU_I32, BATCH, TIMES));
    cornu_model_free(model);
    return status;
}

/* One process, stopped on four ranks, resumed on two: the same file. */
static void other_ranks_resume(void **state)
{
    (void)state;
    char command[200];
    assert_non_null(mkdtemp(folder));
    ranks_succeed(1, "shm", undisturbed);
    ranks_succeed(4, "shm", stopped);
    ranks_succeed(2, "shm", resumed);
    snprintf(command, sizeof command, "cmp %s/0.keras %s/2.keras", folder, folder);
    assert_int_equal(system(command), 0);
    ranks_succeed(1, "shm", load_alone);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- Losses ---- */

/* The losses of two epochs of 17 rows in batches of 8: the last has a row of one shard alone. */
static void losses_on(CornuStrategy *strategy, double to[2])
{
    enum { FEW = 17, FEATURES = 6 };
    float x[FEW * FEATURES], y[FEW];
    for (int i = 0; i < FEW * FEATURES; i++) x[i] = (float)(i * 7 % 11) / 11.0f;
    for (int i = 0; i < FEW; i++) y[i] = (float)(i % 5);
    cornu_set_random_seed(7);
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(8, .kernel_regularizer = cornu_l2(0.1)));
    cornu_model_add(model, cornu_dense(1));
    if (strategy) cornu_scope_enter(strategy);
    assert_int_equal(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR), CORNU_OK);
    if (strategy) cornu_scope_leave();
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, FEW, FEATURES),
        .y = cornu_array(y, CORNU_F32, FEW, 1),
        .batch_size = 8, .epochs = 2, .no_shuffle = true, .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < 2; i++) to[i] = cornu_history_get(history, "loss", i);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

static void penalties_count_once(void **state)
{
    (void)state;
    double whole[2], of[2];
    losses_on(NULL, whole);
    for (int shards = 1; shards <= 4; shards *= 2) {
        losses_on(cornu_pipeline_parallel(.stages = 2, .microbatches = 2, .num_shards = shards),
                  of);
        for (int i = 0; i < 2; i++)
            if (!(fabs(of[i] - whole[i]) <= 1e-5 * whole[i]))
                fail_msg("%d shards, epoch %d: loss %.9g, %.9g without a pipeline", shards, i,
                         of[i], whole[i]);
    }
}

/* ---- Failures ---- */

static CornuStatus spoil(CornuProcesses *processes)
{
    const Case     of = { "branches", branches, adam, { 2, 1 }, false, BATCH, 1, NULL };
    CornuModel    *model;
    CornuStrategy *strategy;
    CornuStatus    status = compile(&of, 2, CORNU_1F1B, processes, &model, &strategy);
    classes[11] = 77;   /* the second row of the second shard of the third microbatch */
    if (!status && !cornu_fit(model, .x = inputs_of(&of), .y = labels_of(&of), .no_shuffle = true,
                              .batch_size = BATCH, .verbose = CORNU_SILENT))
        status = cornu_error_take();
    cornu_model_free(model);
    cornu_strategy_free(strategy);
    return status;
}

static void bad_rows_are_named(void **state)
{
    (void)state;
    Ranks ranks;
    ranks_run(&ranks, 1, "shm", 20, NULL, spoil);
    ranks_expect(&ranks, 0, CORNU_ERR_VALUE, "in element 11 of the data set, row 11 of batch 0");
    ranks_run(&ranks, 4, "shm", 20, NULL, spoil);
    for (int rank = 0; rank < 3; rank++)
        ranks_expect(&ranks, rank, CORNU_ERR_PROCESS, "rank 3: ");
    ranks_expect(&ranks, 3, CORNU_ERR_VALUE, "in element 11 of the data set, row 11 of batch 0");
}

static CornuStatus odd(CornuProcesses *processes)
{
    return cornu_pipeline_parallel(.stages = 2, .microbatches = 4, .processes = processes,
                                   .num_shards = 2) ? CORNU_OK : cornu_error_take();
}

static void expect_refused(CornuPipelineParallelConfig config, const char *text)
{
    config.stages = 2;
    config.microbatches = 4;
    assert_null(cornu_pipeline_parallel_from(&config));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    if (!strstr(cornu_error_message(), text))
        fail_msg("\"%s\", expected \"%s\" in it", cornu_error_message(), text);
}

static void refused(void **state)
{
    (void)state;
    Ranks                ranks;
    const CornuMesh      mesh = cornu_device_mesh(.shape = { 2, 2 });
    const CornuLayoutRow rows[] = { { "kernel", { "model" } }, { 0 } };
    const CornuLayoutRow wrong[] = { { "kernel", { "rows" } }, { 0 } };
    ranks_run(&ranks, 3, "shm", 20, NULL, odd);
    for (int rank = 0; rank < 3; rank++)
        ranks_expect(&ranks, rank, CORNU_ERR_ARGUMENT,
                     "3 processes for 2 stages of 2 shards, expected the product of a number of "
                     "groups up to 2");
    expect_refused((CornuPipelineParallelConfig){ .mesh = mesh, .num_shards = 2 },
                   "pipeline_parallel: .num_shards is 2, but the .mesh has 4");
    expect_refused((CornuPipelineParallelConfig){ .layout_map = rows },
                   ".layout_map is for a .mesh of the shards of a stage");
    expect_refused((CornuPipelineParallelConfig){ .fully_sharded = true, .num_shards = 2 },
                   ".fully_sharded is for a .mesh");
    expect_refused((CornuPipelineParallelConfig){ .mesh = mesh, .layout_map = wrong },
                   "has no axis \"rows\"");
}

/* ---- Beside .accumulate_steps ---- */

/* The weights after two updates by the gradients of a batch. Steps of a microbatch each, of which
 * four make an update, are the same sums: a mean of means of as many rows, by powers of two. */
static void update(const Case *c, bool accumulates, float *weights, int64_t most)
{
    const int       rows = accumulates ? BATCH / MICROBATCHES : BATCH;
    const CornuMesh mesh = cornu_device_mesh(.shape = { c->mesh[0], c->mesh[1] });
    cornu_set_random_seed(7);
    CornuModel     *model = c->build();
    CornuLayoutRow *map = cornu_default_layout(model, mesh);
    CornuStrategy  *strategy = accumulates
        ? cornu_model_parallel(.mesh = mesh, .layout_map = map, .threads = 1)
        : cornu_pipeline_parallel(.stages = 2, .microbatches = MICROBATCHES, .threads = 1,
                                  .schedule = CORNU_1F1B, .mesh = mesh, .layout_map = map);
    cornu_layout_free(map);
    if (!strategy) fail_msg("%s", cornu_error_message());
    CORNU_SCOPE(strategy)
        cornu_compile(model, .optimizer = c->optimizer(),
                      .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                      .accumulate_steps = accumulates ? MICROBATCHES : 0);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(images, CORNU_U8, 2 * BATCH, SIDE, SIDE), .batch_size = rows,
        .y = cornu_array(classes, CORNU_I32, 2 * BATCH), .verbose = CORNU_SILENT,
        .no_shuffle = true);
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        const int64_t      count = cornu_type_count(w->type);
        assert_true((most -= count) >= 0);
        assert_int_equal(cornu_weight_read(w, cornu_array_from(weights, w->type)), CORNU_OK);
        weights += count;
    }
    cornu_model_free(model);
    cornu_strategy_free(strategy);
}

static void accumulated_steps_agree(void **state)
{
    (void)state;
    static const Case cases[] = { { .build = resnet20, .optimizer = momentum, .mesh = { 2, 1 } },
                                  { .build = resnet20, .optimizer = momentum, .mesh = { 1, 2 } } };
    enum { MOST = 1 << 20 };
    float *weights = calloc(2 * MOST, sizeof *weights);
    assert_non_null(weights);
    for (int i = 0; i < COUNT(cases); i++) {
        update(&cases[i], true, weights, MOST);
        update(&cases[i], false, weights + MOST, MOST);
        assert_memory_equal(weights, weights + MOST, MOST * sizeof *weights);
    }
    free(weights);
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(penalties_count_once),
        cmocka_unit_test(replicas_agree), cmocka_unit_test(layouts_agree),
        cmocka_unit_test(more_ranks_agree), cmocka_unit_test(slices_agree),
        cmocka_unit_test(accumulated_steps_agree), cmocka_unit_test(ranks_have_their_part),
        cmocka_unit_test(ranks_never_have_more),
        cmocka_unit_test(other_ranks_resume), cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
