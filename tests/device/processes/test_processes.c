/* Groups of processes: what ranks exchange arrives, over each transport.
 *
 * test_processes --rank TRANSPORT WHAT is one rank of a group, for launchers (test_launchers.sh):
 * it prints a line and ends with 0 if all goes well. */
#define _GNU_SOURCE    /* sched_setaffinity */

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/processes/divide_internal.h"
#include "../../allocations.h"
#include "../../expect.h"
#include "ranks.h"
#include "../../skip.h"

static CornuStatus wrong(const char *what, int64_t at)
{
    return cornu__fail(CORNU_ERR_VALUE, "wrong: %s at %lld", what, (long long)at);
}

/* The byte at place i of message k that `from` sends `to`. */
static unsigned char byte_of(int from, int to, int k, size_t i)
{
    return (unsigned char)(31 * from + 57 * to + 7 * k + i + (i >> 8) + (i >> 16));
}

static CornuStatus meet_often(CornuProcesses *processes)
{
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    int64_t   all[RANKS_MOST], own;
    const CornuTraffic before = cornu_processes_traffic(processes);
    for (int k = 0; k < 200; k++) {
        own = 1000 * k + rank;
        CORNU__TRY(cornu__processes_gather(processes, "numbers", &own, sizeof own, all));
        for (int i = 0; i < count; i++)
            if (all[i] != 1000 * k + i) return wrong("gathered", i);
        CORNU__TRY(cornu__processes_broadcast(processes, "rank 0's", &own, sizeof own));
        if (own != 1000 * k) return wrong("shared", k);
        CORNU__TRY(cornu__processes_agree(processes, "the text", "same"));
        CORNU__TRY(cornu__processes_check(processes, "all", CORNU_OK));
        CORNU__TRY(cornu__processes_gather(processes, "nothing", NULL, 0, all));
    }
    double numbers[2] = { rank, 0.5 * rank }, gathered[2 * RANKS_MOST];
    CORNU__TRY(cornu_processes_gather(processes, numbers, 2, gathered));
    for (int i = 0; i < 2 * count; i++) {
        const int from = i / 2;
        if (gathered[i] != (i % 2 ? 0.5 : 1.0) * from) return wrong("numbers", i);
    }
    CornuTraffic traffic = cornu_processes_traffic(processes);
    /* Ranks wake each other, and do not sleep until it is time to look whether others live. */
    if (traffic.wait_seconds - before.wait_seconds > 15) return wrong("time", 1000);
    traffic.exchanges -= before.exchanges;
    traffic.bytes_sent -= before.bytes_sent;
    traffic.bytes_received -= before.bytes_received;
    if (traffic.exchanges != (count > 1 ? 1001 : 0)) return wrong("exchanges", traffic.exchanges);
    /* Of each round 8 bytes to each for gather, 8 from rank 0, 8 for agree, 4 for settle; and 16
     * for two numbers. */
    const int64_t others = count - 1, sent = others * (200 * (8 + 8 + 4 + (rank ? 0 : 8)) + 16);
    const int64_t received = 200 * (others * (8 + 8 + 4) + (rank ? 8 : 0)) + 16 * others;
    if (traffic.bytes_sent != sent) return wrong("bytes sent", traffic.bytes_sent);
    if (traffic.bytes_received != received) return wrong("bytes received", traffic.bytes_received);
    return CORNU_OK;
}

static void meetings_agree(void **state)
{
    for (int count = 1; count <= 5; count += count < 3 ? 1 : 2)
        ranks_succeed(count, *state, meet_often);
}

/* Parts exchange as often as their number says, between what all do, some of it before that has
 * ended. */
static CornuStatus meet_in_parts(CornuProcesses *processes)
{
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    int64_t   all[RANKS_MOST], own;
    for (int parts = 1; parts <= count; parts++) {
        if (count % parts) continue;
        const int       each = count / parts, place = rank % each, part = rank / each;
        CornuProcesses *of, *again;
        CORNU__TRY(cornu__processes_part(processes, parts, &of));
        CORNU__TRY(cornu__processes_part(processes, parts, &again));
        if (of != again || cornu_process_count(of) != each || cornu_process_rank(of) != place)
            return wrong("part", parts);
        for (int k = 0; k < 20; k++) {
            int64_t       to = -1, from = 100 * k + rank;
            CornuMessage  send = { (rank + 1) % count, &from, sizeof from };
            CornuMessage  receive = { (rank + count - 1) % count, &to, sizeof to };
            CornuExchange exchange = { .what = "of all", .sends = &send, .receives = &receive,
                                       .send_count = 1, .receive_count = 1 };
            if (count > 1) CORNU__TRY(cornu__exchange_start(processes, &exchange));
            for (int i = 0; i <= part + k % 3; i++) {
                own = 1000 * i + rank;
                CORNU__TRY(cornu__processes_gather(of, "numbers", &own, sizeof own, all));
                for (int r = 0; r < each; r++)
                    if (all[r] != 1000 * i + part * each + r) return wrong("gathered", r);
            }
            if (count > 1) CORNU__TRY(cornu__exchange_finish(processes, &exchange));
            if (count > 1 && to != 100 * k + receive.rank) return wrong("of all", k);
        }
    }
    return CORNU_OK;
}

static void parts_meet(void **state)
{
    for (int count = 1; count <= 6; count += count < 4 ? 1 : 2)
        ranks_succeed(count, *state, meet_in_parts);
}

/* Three messages of other sizes to each other rank, and the same from it; some are empty. */
enum { EACH = 3, SIZES = 6 };
static int          rounds = 2 * SIZES;
static const size_t sizes[SIZES] = { 0, 1, 129, 65536, 300001, 3 << 20 };

static CornuStatus exchange_sizes(CornuProcesses *processes)
{
    const int     rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    CornuMessage  sends[RANKS_MOST * EACH], receives[RANKS_MOST * EACH];
    const int     total = EACH * (count - 1);
    CornuStatus   status = CORNU_OK;
    for (int i = 0; i < total; i++) {
        sends[i].data = malloc(sizes[SIZES - 1]);
        receives[i].data = malloc(sizes[SIZES - 1]);
    }
    for (int round = 0; round < rounds && !status; round++) {
        for (int i = 0; i < total; i++) {
            /* Messages to different ranks take turns. */
            const int other = (rank + 1 + i % (count - 1)) % count, k = i / (count - 1);
            const size_t out = sizes[(round + k + rank) % SIZES];
            const size_t in = sizes[(round + k + other) % SIZES];
            sends[i] = (CornuMessage){ other, sends[i].data, out };
            receives[i] = (CornuMessage){ other, receives[i].data, in };
            for (size_t at = 0; at < out; at++)
                ((unsigned char *)sends[i].data)[at] = byte_of(rank, other, k, at + (size_t)round);
            memset(receives[i].data, 0, sizes[SIZES - 1]);
        }
        CornuExchange exchange = { .what = "sizes", .sends = sends, .receives = receives,
                                   .send_count = total, .receive_count = total };
        status = cornu__exchange_start(processes, &exchange);
        if (!status) status = cornu__exchange_finish(processes, &exchange);
        for (int i = 0; i < total && !status; i++) {
            const unsigned char *got = receives[i].data;
            for (size_t at = 0; at < receives[i].bytes && !status; at++)
                if (got[at] != byte_of(receives[i].rank, rank, i / (count - 1),
                                       at + (size_t)round))
                    status = wrong("byte", (int64_t)at);
        }
    }
    for (int i = 0; i < total; i++) {
        free(sends[i].data);
        free(receives[i].data);
    }
    return status;
}

static void messages_of_all_sizes_arrive(void **state)
{
    ranks_succeed(2, *state, exchange_sizes);
    ranks_succeed(4, *state, exchange_sizes);
}

/* More exchanges at once than the queue holds, of which some concern two ranks only. */
static CornuStatus start_many(CornuProcesses *processes)
{
    enum { MANY = 300, NUMBERS = 100 };
    static struct {
        CornuExchange exchange;
        CornuMessage  out, in;
        int64_t       sent[NUMBERS], got[NUMBERS];
    } all[MANY];
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    for (int k = 0; k < MANY; k++) {
        const int giver = k % count, taker = (k / count + k + 1) % count;
        for (int i = 0; i < NUMBERS; i++) all[k].sent[i] = 1000 * k + i;
        all[k].out = (CornuMessage){ taker, all[k].sent, sizeof all[k].sent };
        all[k].in = (CornuMessage){ giver, all[k].got, sizeof all[k].got };
        const bool pair = giver != taker;
        all[k].exchange = (CornuExchange){ .what = "many", .sends = &all[k].out,
                                           .receives = &all[k].in,
                                           .send_count = pair && rank == giver,
                                           .receive_count = pair && rank == taker };
    }
    for (int start = 0, finish = 0; finish < MANY; finish++) {
        for (; start < MANY && start < finish + 50; start++)
            CORNU__TRY(cornu__exchange_start(processes, &all[start].exchange));
        CORNU__TRY(cornu__exchange_finish(processes, &all[finish].exchange));
        if (all[finish].exchange.number != all[0].exchange.number + (uint64_t)finish)
            return wrong("number", finish);
        if (all[finish].exchange.end_s < all[finish].exchange.begin_s) return wrong("time", finish);
        for (int i = 0; i < NUMBERS && all[finish].exchange.receive_count; i++)
            if (all[finish].got[i] != all[finish].sent[i]) return wrong("number", i);
    }
    return CORNU_OK;
}

static void many_exchanges_are_in_progress(void **state) { ranks_succeed(4, *state, start_many); }

/* One thread starts more than the queue holds, and waits for room. */
static CornuStatus start_all_first(CornuProcesses *processes)
{
    enum { MANY = 200 };
    static CornuExchange exchanges[MANY];
    static CornuMessage  messages[MANY];
    static int           data[MANY];
    const int rank = cornu_process_rank(processes);
    for (int k = 0; k < MANY; k++) {
        if (rank == 0) data[k] = 3 * k;
        messages[k] = (CornuMessage){ 1 - rank, &data[k], sizeof data[k] };
        exchanges[k] = (CornuExchange){ .what = "first", .sends = &messages[k],
                                        .receives = &messages[k], .send_count = rank == 0,
                                        .receive_count = rank == 1 };
        CORNU__TRY(cornu__exchange_start(processes, &exchanges[k]));
    }
    CORNU__TRY(cornu__exchange_finish(processes, &exchanges[MANY - 1]));
    for (int k = 0; k < MANY; k++)
        if (data[k] != 3 * k) return wrong("data", k);
    return CORNU_OK;
}

static void a_full_queue_waits(void **state) { ranks_succeed(2, *state, start_all_first); }

static CornuStatus count_allocations(CornuProcesses *processes)
{
    int64_t own = 1, all[RANKS_MOST];
    CORNU__TRY(cornu__processes_gather(processes, "warm", &own, sizeof own, all));
    const int64_t before = allocations();
    for (int k = 0; k < 100; k++) {
        CORNU__TRY(cornu__processes_gather(processes, "steady", &own, sizeof own, all));
        CORNU__TRY(cornu__processes_check(processes, "steady", CORNU_OK));
    }
    return allocations() == before ? CORNU_OK : wrong("allocations", allocations() - before);
}

static void exchanges_allocate_nothing(void **state)
{
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    ranks_succeed(3, *state, count_allocations);
}

static void one_process_meets_nobody(void **state)
{
    (void)state;
    int64_t         own = 7, all = 0;
    CornuExchange   exchange = { .what = "nothing" };
    CornuProcesses *one = cornu_processes_open();
    assert_non_null(one);
    double number = 2.5, gathered = 0.0;
    assert_int_equal(cornu_processes_gather(one, NULL, 1, &gathered), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_processes_gather(one, &number, 1, NULL), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_processes_gather(one, &number, -1, &gathered), CORNU_ERR_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        CornuProcesses *processes = i ? one : NULL;
        number += 1.0;
        expect_ok(cornu_processes_gather(processes, &number, 1, &gathered));
        assert_true(gathered == number);
        assert_int_equal(cornu_process_rank(processes), 0);
        assert_int_equal(cornu_process_count(processes), 1);
        assert_string_equal(cornu_processes_description(processes), "1 process");
        expect_ok(cornu__exchange_start(processes, &exchange));
        expect_ok(cornu__exchange_finish(processes, &exchange));
        expect_ok(cornu__processes_gather(processes, "one", &own, sizeof own, &all));
        assert_int_equal(all, 7);
        all = 0;
        expect_ok(cornu__processes_broadcast(processes, "one", &own, sizeof own));
        expect_ok(cornu__processes_agree(processes, "one", "text"));
        assert_int_equal(cornu__processes_check(processes, "one", CORNU_ERR_FILE), CORNU_ERR_FILE);
        assert_int_equal(cornu__processes_fail(processes, CORNU_ERR_FILE), CORNU_ERR_FILE);
        assert_int_equal(cornu_processes_traffic(processes).exchanges, 0);
    }
    cornu_processes_close(one);
    cornu_processes_close(NULL);
}

/* Each has one processor, the same: three ranks of it would be given a third of a thread. */
static void take_one_processor(int rank)
{
    cpu_set_t one;
    (void)rank;
    if (sched_getaffinity(0, sizeof one, &one)) _exit(1);
    int first = 0;
    while (!CPU_ISSET(first, &one)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one)) _exit(1);
}

static CornuStatus divide_threads(CornuProcesses *processes)
{
    CornuDeviceConfig config = { .name = "cpu", .processes = processes };
    int               threads = -1;
    CORNU__TRY(cornu__divide_threads(&config, &threads));
    if (threads != 1) return wrong("threads", threads);
    config.threads = 5;
    CORNU__TRY(cornu__divide_threads(&config, &threads));
    return threads == 5 ? CORNU_OK : wrong("threads asked for", threads);
}

static void each_of_many_ranks_has_a_thread(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 3, *state, 20, take_one_processor, divide_threads);
    for (int i = 0; i < ranks.count; i++)
        if (!ranks.ends[i].reported || ranks.ends[i].status)
            fail_msg("rank %d: %s", i, ranks.ends[i].message);
}

static CornuStatus check_description(CornuProcesses *processes)
{
    const char *got = cornu_processes_description(processes);
    if (strncmp(got, "3 processes on 1 host, over ", 28) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "description is %s", got);
}

static void groups_describe_themselves(void **state)
{
    ranks_succeed(3, *state, check_description);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    const char *workers[] = { "localhost:1", NULL };
    expect_failure(cornu_processes_open(.transport = "udp"), CORNU_ERR_ARGUMENT,
                   "transport is \"udp\", expected one of");
    expect_failure(cornu_processes_open(.timeout_s = -1), CORNU_ERR_ARGUMENT, "timeout_s is -1");
    expect_failure(cornu_processes_open(.rank = 1), CORNU_ERR_ARGUMENT, "workers is NULL");
    expect_failure(cornu_processes_open(.workers = workers, .count = 0), CORNU_ERR_ARGUMENT,
                   "count of workers is 0");
    expect_failure(cornu_processes_open(.workers = workers, .count = 1, .rank = 1),
                   CORNU_ERR_ARGUMENT, "rank is 1, expected 0 to 0");
    expect_failure(cornu_processes_open(.workers = workers, .count = 2), CORNU_ERR_ARGUMENT,
                   "workers[1] is NULL");
    workers[1] = "localhost";
    expect_failure(cornu_processes_open(.workers = workers, .count = 2, .rank = 1,
                                        .key = "of sixteen letters", .timeout_s = 0.1),
                   CORNU_ERR_ARGUMENT,
                   "the address of rank 1 is \"localhost\", expected host:port");
}

static void bad_environments_are_refused(void **state)
{
    (void)state;
    static const struct { const char *workers, *rank, *listener, *timeout, *part; } cases[] = {
        { "a:1,b:2", "", "", "", "CORNU_WORKERS is set without CORNU_RANK" },
        { "", "0", "", "", "CORNU_RANK is set without CORNU_WORKERS" },
        { "a:1,b:2", "2", "", "", "CORNU_RANK is 2, expected 0 to 1" },
        { "a:1,b:2", "x", "", "", "CORNU_RANK is \"x\", expected a number" },
        { "a:1,b:2", "0", "0", "", "CORNU_LISTEN_FD is 0, which is not a listening socket" },
        { "a:1,b:2", "0", "", "soon", "CORNU_RANK_TIMEOUT is \"soon\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("CORNU_WORKERS", cases[i].workers, 1);
        setenv("CORNU_RANK", cases[i].rank, 1);
        setenv("CORNU_LISTEN_FD", cases[i].listener, 1);
        setenv("CORNU_RANK_TIMEOUT", cases[i].timeout, 1);
        expect_failure(cornu_processes_open(), CORNU_ERR_ARGUMENT, cases[i].part);
    }
    unsetenv("CORNU_WORKERS");
    unsetenv("CORNU_RANK");
    unsetenv("CORNU_LISTEN_FD");
    unsetenv("CORNU_RANK_TIMEOUT");
}

/* ---- A rank for launchers ---- */

static CornuStatus kill_one(CornuProcesses *processes)
{
    CORNU__TRY(meet_often(processes));
    if (cornu_process_rank(processes) == 1) raise(SIGKILL);
    return meet_often(processes);
}

static CornuStatus fail_one(CornuProcesses *processes)
{
    CORNU__TRY(meet_often(processes));
    if (cornu_process_rank(processes) != 1) return meet_often(processes);
    return cornu__processes_fail(processes, cornu__fail(CORNU_ERR_FILE, "cannot read the rows"));
}

static CornuStatus stop_one(CornuProcesses *processes)
{
    CORNU__TRY(meet_often(processes));
    if (cornu_process_rank(processes) == 1) raise(SIGSTOP);
    return meet_often(processes);
}

static CornuStatus elsewhere(CornuProcesses *processes)
{
    int64_t all[RANKS_MOST], own = 0;
    return cornu__processes_gather(processes, cornu_process_rank(processes) == 1 ? "loss" : "rows",
                                   &own, sizeof own, all);
}

static CornuStatus all_well(CornuProcesses *processes)
{
    rounds = 3;
    CORNU__TRY(exchange_sizes(processes));
    CORNU__TRY(meet_in_parts(processes));
    return start_many(processes);
}

static int be_rank(const char *transport, const char *what)
{
    static const struct { const char *name; RankBody *body; } bodies[] = {
        { "well", all_well }, { "meet", meet_often }, { "kill", kill_one },
        { "fail", fail_one }, { "stop", stop_one }, { "elsewhere", elsewhere },
    };
    CornuProcesses *processes = cornu_processes_open(.transport = transport);
    CornuStatus     status = processes ? CORNU_OK : cornu_error_take();
    for (size_t i = 0; processes && i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(what, bodies[i].name) == 0) status = bodies[i].body(processes);
    if (status) printf("rank %d says: %s\n", cornu_process_rank(processes), cornu_error_message());
    else printf("rank %d of %s\n", cornu_process_rank(processes),
                cornu_processes_description(processes));
    fflush(stdout);
    cornu_processes_close(processes);
    return status != CORNU_OK;
}

#define OVER(transport)                                                              \
    cmocka_unit_test_prestate(meetings_agree, transport),                            \
    cmocka_unit_test_prestate(parts_meet, transport),                                \
    cmocka_unit_test_prestate(messages_of_all_sizes_arrive, transport),              \
    cmocka_unit_test_prestate(many_exchanges_are_in_progress, transport),            \
    cmocka_unit_test_prestate(a_full_queue_waits, transport),                        \
    cmocka_unit_test_prestate(exchanges_allocate_nothing, transport),                \
    cmocka_unit_test_prestate(groups_describe_themselves, transport)

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--rank") == 0) return be_rank(argv[2], argv[3]);
    static char tcp[] = "tcp", shm[] = "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_meets_nobody),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(bad_environments_are_refused),
        OVER(tcp),
        OVER(shm),
        cmocka_unit_test_prestate(each_of_many_ranks_has_a_thread, tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
