/*
 * Collectives between processes: for every number of shards and ranks the results of all, and what
 * is read of buffers, are those of one process, bit for bit.
 *
 * tests/run: takes 60 s, quick
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../tensor/ops.h"
#include "../../../quick.h"
#include "../../processes/results.h"

static const int numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64 };
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static const CornuDtype dtypes[] = { CORNU_F32, CORNU_F64, CORNU_I32, CORNU_I64 };

/* ---- What is fed, and what is kept ---- */

/* Element i: of all magnitudes and signs, so that every order of a sum has other bits; integers
 * overflow. */
static void fill(CornuArray array)
{
    const int64_t count = cornu_type_count(array.type);
    uint64_t      state = 0x1234567u + (uint64_t)array.type.dtype;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int64_t whole = (int64_t)(state >> 33) - (1 << 30);
        if (array.type.dtype == CORNU_I32) ((int32_t *)array.data)[i] = (int32_t)(2 * whole);
        else if (array.type.dtype == CORNU_I64) ((int64_t *)array.data)[i] = whole * (1LL << 32);
        else cornu_array_set(array, i, ldexp((double)whole, (int)(state >> 50 & 15) - 30));
    }
}

/* An array of the type, with a leading axis of shards if each has its own. */
static CornuArray array_for(const CornuTensor *tensor, int shards)
{
    CornuType type = cornu_tensor_type(tensor);
    if (cornu_tensor_varies(tensor)) {
        memmove(type.shape.extent + 1, type.shape.extent,
                (size_t)type.shape.rank * sizeof *type.shape.extent);
        type.shape.extent[0] = shards;
        type.shape.rank++;
    }
    return cornu_array_from(calloc((size_t)cornu_type_count(type) + 1,
                                   cornu_dtype_size(type.dtype)), type);
}

static CornuStatus feed(CornuTensor *input, int shards)
{
    if (!input) return cornu_error_take();
    CornuArray array = array_for(input, shards);
    fill(array);
    const CornuStatus status = cornu_graph_feed(input, array);
    free(array.data);
    return status;
}

/* ---- Programs ---- */

enum { MOST_FETCHES = 40 };

typedef struct {
    CornuTensor *tensors[MOST_FETCHES];
    char         names[MOST_FETCHES][40];
    int          count;
} Fetches;

static void fetch(Fetches *fetches, const char *name, CornuTensor *tensor)
{
    if (fetches->count == MOST_FETCHES) return;
    snprintf(fetches->names[fetches->count], sizeof fetches->names[0], "%s", name);
    fetches->tensors[fetches->count++] = tensor;
}

/* Groups of `size` shards: neighbours; or far apart, listed backwards. */
static CornuGroups divide(int shards, int size, bool apart)
{
    CornuGroups groups = { .size = size };
    for (int i = 0; i < shards && apart; i++)
        groups.members[(i / size + 1) * size - 1 - i % size] =
            i / size + i % size * (shards / size);
    return groups;
}

/* All collectives, over all shards or in groups, of operands that each shard has of its own, and
 * some that all share. */
static void record_all(Fetches *fetches, CornuTensor *x, CornuTensor *shared,
                       const CornuGroups *groups)
{
    CornuTensor *scattered = cornu_op_reduce_scatter(x, groups);
    CornuTensor *slice = cornu_op_shard_slice(shared, groups);
    fetch(fetches, "all_reduce", cornu_op_all_reduce_in(x, groups));
    fetch(fetches, "reduce_scatter", scattered);
    fetch(fetches, "all_gather of it", cornu_op_all_gather(scattered, groups));
    fetch(fetches, "all_gather", cornu_op_all_gather(x, groups));
    fetch(fetches, "shard_slice", cornu_op_shard_slice(x, groups));
    fetch(fetches, "shared, all_reduce", cornu_op_all_reduce_in(shared, groups));
    fetch(fetches, "shared, reduce_scatter", cornu_op_reduce_scatter(shared, groups));
    fetch(fetches, "shared, all_gather", cornu_op_all_gather(shared, groups));
    fetch(fetches, "shared, shard_slice", slice);
    /* A sum of sums, and what is in between. */
    CornuTensor *again = cornu_op_add(cornu_op_all_reduce_in(x, groups), x);
    fetch(fetches, "nested", cornu_op_all_reduce(cornu_op_subtract(again, cornu_op_all_gather(
                                 cornu_op_reduce_scatter(again, groups), groups))));
}

/* Runs it twice; keeps all. */
static CornuStatus run_all(CornuGraph *graph, const Fetches *fetches, int shards, const char *of)
{
    CornuArray  to[MOST_FETCHES];
    CornuStatus status = CORNU_OK;
    char        name[80];
    for (int i = 0; i < fetches->count; i++) {
        if (!fetches->tensors[i]) return cornu_error_take();
        to[i] = array_for(fetches->tensors[i], shards);
    }
    for (int round = 0; round < 2 && !status; round++) {
        status = cornu_run(graph, fetches->tensors, fetches->count, to);
        for (int i = 0; i < fetches->count && !status; i++) {
            snprintf(name, sizeof name, "%s, run %d: %s", of, round + 1, fetches->names[i]);
            result(name, to[i].data, cornu_type_bytes(to[i].type));
        }
    }
    for (int i = 0; i < fetches->count; i++) free(to[i].data);
    return status;
}

/* Of n elements, which the sizes of all groups divide. */
static CornuStatus exchange(CornuDevice *device, CornuDtype dtype, const CornuGroups *groups,
                            int64_t n, const char *what)
{
    const int   shards = cornu_device_shards(device);
    CornuGraph *graph = cornu_graph_create(device);
    if (!graph) return cornu_error_take();
    Fetches      fetches = { .count = 0 };
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(dtype, n));
    CornuTensor *shared = cornu_graph_input(graph, cornu_type(dtype, n));
    char         name[60];
    record_all(&fetches, x, shared, groups);
    fetch(&fetches, "replica_id", cornu_op_replica_id(graph));
    snprintf(name, sizeof name, "%s %d shards, %s of %lld, %s", cornu_device_name(device), shards,
             cornu_dtype_name(dtype), (long long)n, what);
    CornuStatus status = feed(x, shards);
    if (!status) status = feed(shared, shards);
    if (!status) status = run_all(graph, &fetches, shards, name);
    cornu_graph_free(graph);
    return status;
}

/* ---- Buffers ---- */

static CornuStatus read_and_write(CornuDevice *device)
{
    enum { EACH = 37 };
    const int    shards = cornu_device_shards(device);
    const CornuType type = cornu_type(CORNU_F32, shards, EACH);
    CornuBuffer *buffer = cornu_buffer_create(.device = device, .type = type, .per_shard = true);
    CornuArray   all = cornu_array_from(calloc((size_t)shards * EACH, sizeof(float)), type);
    char         name[80];
    if (!buffer) return cornu_error_take();
    fill(all);
    CornuStatus status = cornu_buffer_write(buffer, all);
    for (int i = 0; i < 6 && !status; i++) {
        /* Some begin in one rank's part and end in another's; some are in one. */
        const int64_t first = (int64_t)i * i * 11 % (shards * EACH);
        const int64_t left = shards * EACH - first, count = i % 2 ? left : (left + 6) / 7;
        const CornuArray part = cornu_array_from(all.data, cornu_type(CORNU_F32, count));
        status = cornu_buffer_read_part(buffer, first, part);
        snprintf(name, sizeof name, "%d shards, buffer, part %d", shards, i);
        result(name, all.data, (size_t)count * sizeof(float));
        fill(part);
        if (!status) status = cornu_buffer_write_part(buffer, (first * 7 + 3) % (left + first -
                                                      count + 1), part);
        if (!status) status = cornu_buffer_read(buffer, all);
        snprintf(name, sizeof name, "%d shards, buffer after write %d", shards, i);
        result(name, all.data, (size_t)shards * EACH * sizeof(float));
    }
    free(all.data);
    cornu_buffer_free(buffer);
    return status;
}

/* ---- Updates: sums that are sent early, gathers that go on into the next run ---- */

/* A weight that is updated in slices and gathered, as optimizers do, and read in several ways while
 * the gather is under way. */
static CornuStatus update(CornuDevice *device)
{
    const int     shards = cornu_device_shards(device);
    const int64_t n = 720720 / 16 / shards * shards;   /* 180 KB */
    CornuGraph   *graph = cornu_graph_create(device);
    CornuVariable *w = cornu_variable_create(.device = device, .type = cornu_type(CORNU_F32, n),
                                             .name = "w");
    CornuArray    all = cornu_array_from(calloc((size_t)n, sizeof(float)),
                                         cornu_type(CORNU_F32, n));
    char          name[80];
    CornuTensor  *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, n));
    CornuTensor  *now = cornu_read(graph, w);
    CornuTensor  *d = cornu_op_tanh(cornu_op_multiply(now, x));
    CornuTensor  *slice = cornu_op_add(cornu_op_shard_slice(now, NULL),
                                       cornu_op_reduce_scatter(d, NULL));
    CornuTensor  *loss = cornu_op_reduce_sum(cornu_op_all_reduce(d), CORNU_ALL_AXES, false);
    CornuStatus   status = cornu_assign(w, cornu_op_all_gather(slice, NULL));
    if (!status) status = feed(x, shards);
    for (int run = 0; run < 4 && !status; run++) {
        float value = 0;
        status = cornu_run(graph, &loss, 1, &(CornuArray){ cornu_scalar(CORNU_F32), &value });
        snprintf(name, sizeof name, "%d shards, update %d, loss", shards, run);
        result(name, &value, sizeof value);
        if (status || run == 1) continue;
        status = cornu_variable_read(w, all);
        snprintf(name, sizeof name, "%d shards, update %d, weight", shards, run);
        result(name, all.data, (size_t)n * sizeof(float));
    }
    free(all.data);
    cornu_graph_free(graph);
    cornu_variable_free(w);
    return status;
}

/* ---- Ranks ---- */

static CornuStatus exchange_groups(CornuDevice *device)
{
    const int shards = cornu_device_shards(device);
    char      what[40];
    for (int size = 1; size <= shards; size++) {
        if (shards % size || (shards == 64 && size != 4 && size != 32)) continue;
        for (int apart = 0; apart < 2; apart++) {
            const CornuGroups groups = divide(shards, size, apart);
            snprintf(what, sizeof what, "groups of %d%s", size, apart ? " apart" : "");
            CORNU__TRY(exchange(device, dtypes[(size + apart) % 4], &groups, 5 * size, what));
        }
    }
    return CORNU_OK;
}

static CornuStatus exchange_on(CornuDevice *device)
{
    const int     shards = cornu_device_shards(device);
    const int64_t large = 17000 / shards * shards + shards;   /* above 64 KiB */
    for (int i = 0; i < 4; i++) {
        CORNU__TRY(exchange(device, dtypes[i], NULL, 3 * shards, "all"));
        if (i < 2 || shards < 8) CORNU__TRY(exchange(device, dtypes[i], NULL, large, "all"));
    }
    CORNU__TRY(exchange_groups(device));
    CORNU__TRY(read_and_write(device));
    return update(device);
}

static CornuStatus exchange_everything(CornuProcesses *processes)
{
    for (int i = 0; i < NUMBERS; i += quick(4, 1)) {
        if (numbers[i] < cornu_process_count(processes)) continue;
        setenv("CORNU_VERIFY", numbers[i] > 40 ? "0" : "1", 1);   /* else it takes a minute */
        CornuDevice *device = cornu_device_open(numbers[i] % 3 ? "cpu" : "tpu", .threads = 2,
                                                .shards = numbers[i], .processes = processes);
        if (!device) return cornu_error_take();
        const CornuStatus status = exchange_on(device);
        cornu_device_close(device);
        CORNU__TRY(status);
    }
    return CORNU_OK;
}

static void collectives_have_the_bits_of_one_process(void **state)
{
    static const int counts[] = { 4, 5, 2, 3, 0 };
    results_agree(*state, counts + quick(2, 0), quick(200, 1000), exchange_everything);
}

int main(void)
{
    static char tcp[] = "tcp", shm[] = "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(collectives_have_the_bits_of_one_process, shm),
        cmocka_unit_test_prestate(collectives_have_the_bits_of_one_process, tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
