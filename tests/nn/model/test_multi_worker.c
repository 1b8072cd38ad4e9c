/* cornu_multi_worker_strategy: who its processes are, what it opens, what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/device_internal.h"
#include "../../../nn/cornu.h"
#include "../../device/processes/results.h"
#include "../../expect.h"

enum { ROWS = 24, FEATURES = 6, CLASSES = 3 };

/* ---- A group that the program, TF_CONFIG or the environment describes ----
 *
 * The harness has told each rank its rank and the others' addresses in the environment, and its
 * socket listens; here each strategy meets the others, one after the other, by itself. */

static CornuStatus wrong(const char *what, int64_t is)
{
    return cornu__fail(CORNU_ERR_VALUE, "wrong: %s is %lld", what, (long long)is);
}

static CornuStatus train(CornuStrategy *strategy, const char *name)
{
    static float   x[ROWS * FEATURES];
    static int32_t y[ROWS];
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < ROWS; i++) y[i] = (i * 7 + i / 5) % CLASSES;
    cornu_set_random_seed(5);
    CornuStatus status = CORNU_OK;
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(8, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    CORNU_SCOPE(strategy)
        status = cornu_compile(model, .optimizer = cornu_adam(),
                               .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    CornuHistory *history = status ? NULL
        : cornu_fit(model, .x = cornu_array(x, CORNU_F32, ROWS, FEATURES),
                    .y = cornu_array(y, CORNU_I32, ROWS), .batch_size = 8, .epochs = 2,
                    .verbose = CORNU_SILENT);
    if (!status && !history) status = cornu_error_take();
    for (int i = 0; !status && i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        float        values[64 * CLASSES];
        status = cornu_weight_read(weight, cornu_array_from(values, weight->type));
        if (!status) result(name, values, cornu_type_bytes(weight->type));
    }
    cornu_history_free(history);
    cornu_model_free(model);
    return status;
}

static CornuStatus train_by(CornuProcesses *processes, const CornuProcessesConfig *config,
                            const char *name)
{
    const int      rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    CornuStrategy *strategy = cornu_multi_worker_strategy(.num_shards = 4, .processes = *config,
                                                          .threads = 1);
    if (!strategy) return cornu_error_take();
    CornuStatus     status = CORNU_OK;
    CornuProcesses *own = cornu_strategy_processes(strategy);
    int             first, shards;
    cornu_device_own_shards(cornu_strategy_device(strategy), &first, &shards);
    const CornuRange dealt = cornu__range_of(4, rank, count);
    if (cornu_process_rank(own) != rank) status = wrong("rank", cornu_process_rank(own));
    if (cornu_process_count(own) != count) status = wrong("count", cornu_process_count(own));
    if (first != dealt.first || shards != dealt.count) status = wrong("the first shard", first);
    bool any = rank == count - 1, none = false;
    if (!status) status = cornu_processes_any(own, &any);
    if (!status) status = cornu_processes_any(own, &none);
    if (!status && !any) status = wrong("any", any);
    if (!status && none) status = wrong("none", none);
    if (!status) status = train(strategy, name);
    cornu_strategy_free(strategy);
    return status;
}

/* The ports to listen at, which the ranks tell each other by way of the harness' group. */
static CornuStatus choose_ports(CornuProcesses *processes, char workers[][32],
                                const char *addresses[])
{
    char own[32];
    snprintf(own, sizeof own, "127.0.0.1:%d", 20000 + (int)(getpid() % 10000));
    CORNU__TRY(cornu__processes_gather(processes, "ports", own, sizeof own, workers));
    for (int i = 0; i < cornu_process_count(processes); i++) addresses[i] = workers[i];
    return CORNU_OK;
}

static void forget_environment(void)
{
    unsetenv("CORNU_WORKERS");
    unsetenv("CORNU_RANK");
    unsetenv("CORNU_LISTEN_FD");
    unsetenv("TF_CONFIG");
}

static void set_tf_config(const char *const *workers, int count, int rank)
{
    char text[1000];
    int  length = snprintf(text, sizeof text, "{\"cluster\": {\"worker\": [");
    for (int i = 0; i < count; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s\"%s\"", i ? ", " : "",
                           workers[i]);
    snprintf(text + length, sizeof text - (size_t)length,
             "]}, \"task\": {\"type\": \"worker\", \"index\": %d}}", rank);
    setenv("TF_CONFIG", text, 1);
}

/* A process is a member of one group, from now on of others than the harness'. */
static CornuStatus meet_in_all_ways(CornuProcesses *processes)
{
    static char workers[RANKS_MOST][32];
    const char *addresses[RANKS_MOST];
    const int   rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    cornu__processes_leave(cornu__processes_current());
    if (count == 1) {
        forget_environment();
        CornuStrategy *alone = cornu_multi_worker_strategy(.num_shards = 4, .threads = 1);
        if (!alone) return cornu_error_take();
        CornuStatus status = train(alone, "by the program");
        if (!status) status = train(alone, "by TF_CONFIG");
        cornu_strategy_free(alone);
        return status;
    }
    CORNU__TRY(choose_ports(processes, workers, addresses));
    forget_environment();
    CORNU__TRY(train_by(processes, &(CornuProcessesConfig){ .workers = addresses, .count = count,
                                                            .rank = rank }, "by the program"));
    set_tf_config(addresses, count, rank);
    return train_by(processes, &(CornuProcessesConfig){ .timeout_s = 20 }, "by TF_CONFIG");
}

static void strategies_meet_and_train(void **state)
{
    (void)state;
    static const int counts[] = { 2, 3, 4, 0 };
    results_agree("tcp", counts, 8, meet_in_all_ways);
}

/* ---- Misuse ---- */

static CornuStatus misuse(CornuProcesses *processes)
{
    static const struct { const char *device, *part; int shards; CornuStatus status; } cases[] = {
        { "cpu", "2 shards for 3 processes, expected at least one for each", 2,
          CORNU_ERR_ARGUMENT },
        { "tpu", "2 shards for 3 processes, expected at least one for each", 2,
          CORNU_ERR_ARGUMENT },
        { "reference", "device \"reference\" in 3 processes, expected 1 process, or device cpu or "
          "tpu", 0, CORNU_ERR_ARGUMENT },
        { "pjrt:cpu", "in 3 processes, expected 1 process, or device cpu or tpu", 0,
          CORNU_ERR_ARGUMENT },
        { "cpuu", "cpu", 3, CORNU_ERR_DEVICE },
        { "cpu", "2000 shards", 2000, CORNU_ERR_ARGUMENT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuDevice *device = cornu_device_open(cases[i].device, .shards = cases[i].shards,
                                                .threads = 1, .processes = processes);
        if (device) return wrong("opened", (int64_t)i);
        const CornuStatus status = cornu_error_take();
        if (status != cases[i].status || !strstr(cornu_error_message(), cases[i].part))
            return cornu__fail(CORNU_ERR_VALUE, "case %d: %s: %.300s", (int)i,
                               cornu_status_name(status), cornu_error_message());
    }
    if (cornu_processes_open()) return wrong("second group", 1);
    if (cornu_error_take() != CORNU_ERR_BUSY) return wrong("status of a second group", 1);
    if (cornu_multi_worker_strategy(.num_shards = 3)) return wrong("second group", 2);
    if (cornu_error_take() != CORNU_ERR_BUSY) return wrong("status of a second group", 2);
    /* The group is still good. */
    bool any = cornu_process_rank(processes) == 1;
    CORNU__TRY(cornu_processes_any(processes, &any));
    return any ? CORNU_OK : wrong("any", any);
}

static void misuse_is_refused_on_all_ranks(void **state)
{
    ranks_succeed(3, *state, misuse);
}

static void null_is_refused(void **state)
{
    (void)state;
    bool flag = true;
    expect_ok(cornu_processes_any(NULL, &flag));
    assert_true(flag);
    expect_error(cornu_processes_any(NULL, NULL), CORNU_ERR_ARGUMENT, "flag");
    expect_failure(cornu_multi_worker_strategy_from(NULL), CORNU_ERR_ARGUMENT, "NULL");
    expect_failure(cornu_processes_open_from(NULL), CORNU_ERR_ARGUMENT, "NULL");
    expect_failure(cornu_multi_worker_strategy(.device = "cpuu"), CORNU_ERR_DEVICE, "cpu");
    expect_failure(cornu_multi_worker_strategy(.processes = { .rank = 1 }), CORNU_ERR_ARGUMENT,
                   "workers is NULL");
    expect_failure(cornu_multi_worker_strategy(.processes = { .transport = "pigeon" }),
                   CORNU_ERR_ARGUMENT, "transport is \"pigeon\"");
    expect_failure(cornu_tpu_strategy_from(NULL), CORNU_ERR_ARGUMENT, "NULL");
    assert_int_equal(cornu_process_rank(NULL), 0);
    assert_int_equal(cornu_process_count(NULL), 1);
    assert_null(cornu_strategy_processes(NULL));
    cornu_error_take();
    cornu_strategy_free(NULL);
    /* A refusal leaves nothing behind: a group can be opened. */
    CornuProcesses *one = cornu_processes_open();
    assert_non_null(one);
    cornu_processes_close(one);
}

int main(void)
{
    static char shm[] = "shm", tcp[] = "tcp";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_meet_and_train),
        cmocka_unit_test_prestate(misuse_is_refused_on_all_ranks, shm),
        cmocka_unit_test_prestate(misuse_is_refused_on_all_ranks, tcp),
        cmocka_unit_test(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
