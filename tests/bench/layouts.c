/*
 * Layouts over two processes of one thread each: the time of a training step, and what the
 * performance model says of it with this machine's own figures in place of a TPU's.
 *
 *     data       each process has half of the batch and all weights, and slices of the slots
 *     fully      as data, but each has half of the weights
 *     turns      each has the whole batch, and of two layers in a row the columns of the first and
 *                the rows of the second: cornu_default_layout
 *     columns    columns of all dense layers
 *     rows       rows of all dense layers
 *
 * The figures are those of the library's own programs, measured in both processes at once: a
 * product, additions within a cache and in memory, a sum over both. So what the order of modelled
 * times tests is the model; that of the TPUs has the same terms.
 */
#define _DEFAULT_SOURCE   /* MAP_ANONYMOUS */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../device/device_internal.h"
#include "../../device/tpu/model.h"
#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "bench.h"

enum { RANKS = 2, LAYOUTS = 5, NETWORKS = 2 };

/* ---- Networks and layouts ---- */

typedef struct {
    const char *name;
    CornuModel *(*build)(void);
    CornuType   x, y;
    int         classes;
} Trained;

enum { MLP_UNITS = 1024, MLP_LAYERS = 4, MLP_CLASSES = 16, CHARACTERS = 256 };

static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { MLP_UNITS });
    for (int i = 0; i < MLP_LAYERS; i++)
        cornu_model_add(model, cornu_dense(i % 2 ? MLP_UNITS : 2 * MLP_UNITS,
                                           .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(MLP_CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *gpt(void)
{
    return cornu_char_gpt(.preset = cornu_text_preset("gpt"), .vocabulary = CHARACTERS);
}

static const Trained networks[NETWORKS] = {
    { "mlp", mlp, { CORNU_F32, { 2, { 64, MLP_UNITS } } }, { CORNU_I32, { 1, { 64 } } },
      MLP_CLASSES },
    { "char_gpt", gpt, { CORNU_I32, { 2, { 16, 128 } } }, { CORNU_I32, { 2, { 16, 128 } } },
      CHARACTERS },
};

static const CornuLayoutRow columns[] = { { "dense.*/kernel", { NULL, "model" } },
                                          { "dense.*/bias", { "model" } }, { 0 } };
static const CornuLayoutRow rows[] = { { "dense.*/kernel", { "model" } }, { 0 } };

typedef struct {
    const char           *name;
    int                   mesh[2];
    const CornuLayoutRow *map;      /* NULL: cornu_default_layout */
    bool                  fully;
} Layout;

static const Layout layouts[LAYOUTS] = {
    { "data", { 2, 1 }, NULL, false }, { "fully", { 2, 1 }, NULL, true },
    { "turns", { 1, 2 }, NULL, false }, { "columns", { 1, 2 }, columns, false },
    { "rows", { 1, 2 }, rows, false },
};

/* ---- A training ---- */

typedef struct {
    CornuDevice *device;
    CornuModel  *model;
    CornuArray   x, y;
} Training;

static CornuStatus lay_out(const Layout *layout, const CornuModel *model, CornuDevice *device)
{
    const CornuMesh mesh = cornu_device_mesh(.shape = { layout->mesh[0], layout->mesh[1] });
    CornuLayoutRow *made = layout->map ? NULL : cornu_default_layout(model, mesh);
    CornuStatus     status = cornu_error_take();
    if (!status)
        status = cornu_device_set_mesh(device, &mesh, NULL, layout->map ? layout->map : made);
    if (!status && layout->fully) status = cornu_device_shard_fully(device);
    cornu_layout_free(made);
    return status;
}

static CornuStatus fill(CornuArray *array, CornuType type, int range)
{
    const int64_t count = cornu_type_count(type);
    *array = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    if (!array->data) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for a batch");
    for (int64_t i = 0; i < count; i++) {
        const int number = (int)((i * 7919 + i / 31) % range);
        if (type.dtype == CORNU_F32) ((float *)array->data)[i] = (float)number / (float)range;
        else ((int32_t *)array->data)[i] = number;
    }
    return CORNU_OK;
}

static CornuStatus begin(Training *t, const Trained *network, const Layout *layout,
                         CornuProcesses *processes)
{
    *t = (Training){ .device = cornu_device_open("cpu", .threads = 1, .shards = RANKS,
                                                 .processes = processes) };
    cornu_set_random_seed(1);
    t->model = network->build();
    if (cornu_error_pending()) return cornu_error_take();
    CORNU__TRY(lay_out(layout, t->model, t->device));
    CORNU__TRY(cornu_compile(t->model, .device = t->device, .optimizer = cornu_adam(),
                             .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    CORNU__TRY(fill(&t->x, network->x, network->classes));
    return fill(&t->y, network->y, network->classes);
}

static void end(Training *t)
{
    cornu_model_free(t->model);
    cornu_device_close(t->device);
    free(t->x.data);
    free(t->y.data);
}

static CornuStatus step(void *training)
{
    const Training   *t = training;
    const CornuStatus status = cornu_train_on_batch(t->model, t->x, t->y, NULL);
    return status ? status : cornu_device_wait(t->device);
}

/* ---- This machine's figures ---- */

typedef enum { PRODUCT, NEAR, FAR, SMALL_SUM, LARGE_SUM, PROBES } Probe;

enum { PRODUCT_SIDE = 512, VECTOR_OPS = 8, REPEATS = 10 };

/* Elements of the variable that a probe computes anew: NEAR stays in a second-level cache, FAR in
 * none. */
static const int64_t extents[PROBES] = { PRODUCT_SIDE * PRODUCT_SIDE, 1 << 15, 1 << 24, 16,
                                         1 << 20 };

static CornuTensor *record_probe(Probe probe, CornuGraph *graph, CornuTensor *x, CornuType type)
{
    switch (probe) {
    case PRODUCT: return cornu_op_matmul(x, x);
    case NEAR:
        for (int i = 0; i < VECTOR_OPS / 2; i++) x = cornu_op_shift(cornu_op_multiply(x, x), 0.5);
        return x;
    case FAR: return cornu_op_shift(x, 1.0);
    default:  return cornu_op_all_reduce(cornu_graph_shard_input(graph, type));
    }
}

static CornuStatus repeat(void *graph)
{
    for (int i = 0; i < REPEATS; i++) {
        const CornuStatus status = cornu_run(graph, NULL, 0, NULL);
        if (status) return status;
    }
    return cornu_device_wait(cornu_graph_device(graph));
}

/* What the ranks measure, in memory that they share with their parent. */
typedef struct {
    double probe_s[PROBES], step_s[NETWORKS][LAYOUTS];
    int    rounds[NETWORKS];
    char   failure[512];
} Shared;

static BenchCase cases[LAYOUTS + PROBES];

/* Alternates in rounds that are as many on all ranks, which begin each case together. */
static CornuStatus alternate(CornuProcesses *processes, int count, int rounds)
{
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            bool none = false;
            CORNU__TRY(cornu_processes_any(processes, &none));
            const double start = bench_now();
            CORNU__TRY(cases[i].run(cases[i].context));
            if (round >= 0) cases[i].seconds[round] = bench_now() - start;
        }
    for (int i = 0; i < count; i++) {
        cases[i].rounds = rounds;
        bench_sort(cases[i].seconds, rounds);
    }
    return CORNU_OK;
}

static CornuStatus measure_probes(CornuProcesses *processes, int rounds, Shared *shared)
{
    CornuGraph    *graphs[PROBES] = { NULL };
    CornuVariable *variables[PROBES] = { NULL };
    CornuDevice   *device = cornu_device_open("cpu", .threads = 1, .shards = RANKS,
                                              .processes = processes);
    CornuStatus    status = device ? CORNU_OK : cornu_error_take();
    for (int i = 0; i < PROBES && !status; i++) {
        const CornuType type = i == PRODUCT ? cornu_type(CORNU_F32, PRODUCT_SIDE, PRODUCT_SIDE)
                                            : cornu_type(CORNU_F32, extents[i]);
        graphs[i] = cornu_graph_create(device);
        variables[i] = cornu_variable_create(device, type, "probe");
        if (cornu_error_pending()) status = cornu_error_take();
        else status = cornu_assign(variables[i], record_probe((Probe)i, graphs[i],
                                   cornu_read(graphs[i], variables[i]), type));
        cases[i] = (BenchCase){ .run = repeat, .context = graphs[i] };
    }
    if (!status) status = alternate(processes, PROBES, rounds);
    for (int i = 0; i < PROBES; i++) {
        if (!status) shared->probe_s[i] = bench_quantile(&cases[i], 0.5) / REPEATS;
        cornu_graph_free(graphs[i]);
        cornu_variable_free(variables[i]);
    }
    cornu_device_close(device);
    return status;
}

static CornuStatus measure_network(CornuProcesses *processes, int network, int rounds,
                                   Shared *shared)
{
    Training    trainings[LAYOUTS] = { { .device = NULL } };
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < LAYOUTS && !status; i++) {
        status = begin(&trainings[i], &networks[network], &layouts[i], processes);
        cases[i] = (BenchCase){ .run = step, .context = &trainings[i] };
    }
    if (!status) status = alternate(processes, LAYOUTS, rounds);
    for (int i = 0; i < LAYOUTS; i++) {
        if (!status) shared->step_s[network][i] = bench_quantile(&cases[i], 0.5);
        end(&trainings[i]);
    }
    shared->rounds[network] = rounds;
    return status;
}

/* ---- Ranks ---- */

/* A socket that listens at a free port of this machine. */
static int listen_anywhere(char address[32])
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          length = sizeof at;
    const int          fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, SOMAXCONN) ||
        getsockname(fd, (struct sockaddr *)&at, &length))
        return -1;
    snprintf(address, 32, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static CornuStatus measure_all(CornuProcesses *processes, const Bench *bench, Shared *shared)
{
    const int rounds = (int)(9.0 * bench->seconds), few = rounds < 3 ? 3 : rounds;
    CORNU__TRY(measure_probes(processes, 3 * few, shared));
    for (int i = 0; i < NETWORKS; i++)
        if (bench_listed(bench->models, networks[i].name))
            CORNU__TRY(measure_network(processes, i, few > 99 ? 99 : few, shared));
    return CORNU_OK;
}

/* Does not return. What rank 0 measures counts. */
static void be_rank(int rank, const char *workers, int listener, const Bench *bench,
                    Shared *shared)
{
    char   number[16];
    Shared own = { .failure = "" };
    snprintf(number, sizeof number, "%d", rank);
    setenv("CORNU_RANK", number, 1);
    snprintf(number, sizeof number, "%d", listener);
    setenv("CORNU_LISTEN_FD", number, 1);
    setenv("CORNU_WORKERS", workers, 1);
    setenv("CORNU_KEY", "of the ranks of one bench, that share a parent", 1);
    CornuProcesses *processes = cornu_processes_open(.transport = "shm");
    CornuStatus     status = processes ? measure_all(processes, bench, &own) : cornu_error_take();
    if (rank == 0) *shared = own;
    if (status) snprintf(shared->failure, sizeof shared->failure, "%s", cornu_error_message());
    cornu_processes_leave(processes, status);
    _exit(status != CORNU_OK);
}

/* Both ranks are children: a rank has threads, and none are left here. */
static CornuStatus run_ranks(const Bench *bench, Shared *shared)
{
    char  addresses[RANKS][32], workers[RANKS * 32];
    int   listeners[RANKS], failed = 0, status;
    pid_t ranks[RANKS];
    for (int i = 0; i < RANKS; i++)
        if ((listeners[i] = listen_anywhere(addresses[i])) < 0)
            return cornu_error_set(CORNU_ERR_PROCESS, "layouts: cannot listen on 127.0.0.1: %s",
                                   strerror(errno));
    snprintf(workers, sizeof workers, "%s,%s", addresses[0], addresses[1]);
    fflush(NULL);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = fork();
        if (ranks[i] == 0) be_rank(i, workers, listeners[i], bench, shared);
    }
    for (int i = 0; i < RANKS; i++) {
        failed += ranks[i] < 0 || waitpid(ranks[i], &status, 0) < 0 || status != 0;
        close(listeners[i]);
    }
    return failed ? cornu_error_set(CORNU_ERR_PROCESS, "layouts: %s", *shared->failure
                                    ? shared->failure : "a rank has not come to its end")
                  : CORNU_OK;
}

/* ---- The model ---- */

static void set(CornuTpuFigure *figure, double value)
{
    *figure = (CornuTpuFigure){ value, 'D' };
}

/* This machine as two chips of one core with a link between them. A product streams by one array of
 * SIDE by SIDE; what an all_reduce of two chips takes is bytes / link + 2 hops (slice.h). */
static CornuTpuProfile profile_of(const double probe_s[PROBES])
{
    enum { SIDE = 16, LANES = 16 };
    const double    flops = 2.0 * PRODUCT_SIDE * PRODUCT_SIDE * (double)PRODUCT_SIDE /
                            probe_s[PRODUCT];
    const double    vector = VECTOR_OPS * (double)extents[NEAR] / probe_s[NEAR];
    const double    memory = 2.0 * sizeof(float) * (double)extents[FAR] / probe_s[FAR];
    const double    link = sizeof(float) * (double)extents[LARGE_SUM] /
                           (probe_s[LARGE_SUM] - probe_s[SMALL_SUM]);
    CornuTpuProfile here = *cornu_tpu_profile("v2-8");
    here.name = "here";
    set(&here.chips, RANKS);
    set(&here.cores, RANKS);
    set(&here.replicas, RANKS);
    set(&here.shards, RANKS);
    set(&here.mxu_rows, SIDE);
    set(&here.mxu_columns, SIDE);
    set(&here.mxus, 1);
    set(&here.clock_mhz, 1e-6 * flops / (2 * SIDE * SIDE));
    set(&here.vector_lanes, LANES);
    set(&here.vector_alus, 1);
    set(&here.vector_mhz, 1e-6 * vector / LANES);
    set(&here.hbm_gbps, 1e-9 * memory);
    set(&here.link_gbps, 1e-9 * link);
    set(&here.hop_us, 1e6 * probe_s[SMALL_SUM] / 2);
    set(&here.dispatch_ms, 0);
    return here;
}

/* The step that a rank runs, on a device whose two shards are both here. */
static CornuStatus model_step(const Trained *network, const Layout *layout,
                              const CornuTpuProfile *here, CornuTpuModel **to)
{
    Training    t;
    CornuStatus status = begin(&t, network, layout, NULL);
    const CornuExecutable *executable =
        status ? NULL : cornu_model_train_step(t.model, network->x, network->y);
    *to = executable ? cornu_tpu_model(.executable = executable, .profile = here) : NULL;
    if (!status && !*to) status = cornu_error_take();
    end(&t);
    return status;
}

static json_t *pack(const Trained *network, const Layout *layout, double step_s, int rounds,
                    const CornuTpuModel *model)
{
    return json_pack("{sssssisfsfsfsfsfsf}", "model", network->name, "layout", layout->name,
                     "rounds", rounds, "ms", 1e3 * step_s, "modelled_ms", 1e3 * model->device_s,
                     "products_ms", 1e3 * model->mxu_s, "vector_ms", 1e3 * model->vector_s,
                     "memory_ms", 1e3 * model->hbm_s, "links_ms", 1e3 * model->links_s);
}

static CornuStatus add_rows(Bench *bench, const Shared *shared)
{
    const CornuTpuProfile here = profile_of(shared->probe_s);
    for (int n = 0; n < NETWORKS; n++)
        for (int i = 0; i < LAYOUTS && shared->rounds[n]; i++) {
            CornuTpuModel *model;
            CORNU__TRY(model_step(&networks[n], &layouts[i], &here, &model));
            json_array_append_new(bench_rows(bench, "layouts"),
                                  pack(&networks[n], &layouts[i], shared->step_s[n][i],
                                       shared->rounds[n], model));
            cornu_tpu_model_free(model);
        }
    json_object_set_new(bench->page, "layouts_here", json_pack("{sfsfsfsfsf}",
        "product_gflops", 2.0 * here.mxu_rows.value * here.mxu_columns.value * 1e-3 *
                              here.clock_mhz.value,
        "vector_gops", 1e-3 * here.vector_lanes.value * here.vector_mhz.value,
        "memory_gbps", here.hbm_gbps.value, "link_gbps", here.link_gbps.value,
        "sum_us", 2.0 * here.hop_us.value));
    return CORNU_OK;
}

CornuStatus bench_layouts(Bench *bench)
{
    Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return cornu_error_set(CORNU_ERR_MEMORY, "layouts: no memory");
    CornuStatus status = run_ranks(bench, shared);
    if (!status) status = add_rows(bench, shared);
    munmap(shared, sizeof *shared);
    return status;
}

/* ---- The order ---- */

/* Of two rows of a network, whether the model and the clock order them otherwise; those that
 * differ by less than a tenth, as one run does from the next, are not ordered. */
static bool disagrees(const json_t *a, const json_t *b)
{
    const double near = 1.1;
    const double x = bench_number(a, "ms"), y = bench_number(b, "ms");
    const double m = bench_number(a, "modelled_ms"), n = bench_number(b, "modelled_ms");
    return !strcmp(bench_text(a, "model"), bench_text(b, "model")) &&
           ((x > near * y && n > near * m) || (y > near * x && m > near * n));
}

void bench_layouts_print(const Bench *bench)
{
    const json_t *list = bench_rows(bench, "layouts");
    const json_t *here = json_object_get(bench->page, "layouts_here");
    printf("\nlayouts: a training step over two processes of one thread, and as modelled with\n"
           "%.0f GFLOP/s of products, %.1f G vector operations/s, %.1f GB/s of memory, sums at "
           "%.1f GB/s after %.0f us\n  %-10s %-8s %9s %9s %9s %9s %9s %9s\n",
           bench_number(here, "product_gflops"), bench_number(here, "vector_gops"),
           bench_number(here, "memory_gbps"), bench_number(here, "link_gbps"),
           bench_number(here, "sum_us"), "", "", "step, ms", "modelled", "products", "vector",
           "memory", "links");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        printf("  %-10s %-8s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", bench_text(row, "model"),
               bench_text(row, "layout"), bench_number(row, "ms"),
               bench_number(row, "modelled_ms"), bench_number(row, "products_ms"),
               bench_number(row, "vector_ms"), bench_number(row, "memory_ms"),
               bench_number(row, "links_ms"));
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = i + 1; k < json_array_size(list); k++) {
            const json_t *a = json_array_get(list, i), *b = json_array_get(list, k);
            if (disagrees(a, b))
                printf("  %s: %s and %s are modelled in the other order\n", bench_text(a, "model"),
                       bench_text(a, "layout"), bench_text(b, "layout"));
        }
}
