/* How groups end: whatever rank fails, all ranks name it alike, and soon.
 *
 * tests/run: waits
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/host/machine/cpu.h"
#include "ranks.h"
#include "../../skip.h"

enum { RANKS = 4, FAILS = 2 };

/* Each sends to the next one, which is waited for by the one before: rank 3 waits for rank 2, rank
 * 0 for rank 3, rank 1 for rank 0. */
static CornuStatus go_round(CornuProcesses *processes, size_t bytes, int rounds)
{
    const int     rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    char         *out = calloc(1, bytes), *in = calloc(1, bytes);
    CornuMessage  send = { (rank + 1) % count, out, bytes };
    CornuMessage  receive = { (rank + count - 1) % count, in, bytes };
    CornuStatus   status = CORNU_OK;
    for (int i = 0; i < rounds && !status; i++) {
        CornuExchange exchange = { .what = "ring", .sends = &send, .receives = &receive,
                                   .send_count = 1, .receive_count = 1 };
        status = cornu__exchange_start(processes, &exchange);
        if (!status) status = cornu__exchange_finish(processes, &exchange);
    }
    free(out);
    free(in);
    return status;
}

static CornuStatus meet(CornuProcesses *processes)
{
    int own = 0, all[RANKS_MOST];
    return cornu__processes_gather(processes, "meeting", &own, sizeof own, all);
}

enum { LARGE = 8 << 20 };

static CornuStatus dies(CornuProcesses *processes)
{
    CORNU__TRY(go_round(processes, 1000, 3));
    if (cornu_process_rank(processes) == FAILS) raise(SIGKILL);
    return go_round(processes, LARGE, 3);
}

static CornuStatus leaves(CornuProcesses *processes)
{
    CORNU__TRY(go_round(processes, 1000, 3));
    return cornu_process_rank(processes) == FAILS ? CORNU_OK : go_round(processes, LARGE, 3);
}

static CornuStatus stops(CornuProcesses *processes)
{
    CORNU__TRY(go_round(processes, 1000, 3));
    if (cornu_process_rank(processes) == FAILS) raise(SIGSTOP);
    return go_round(processes, LARGE, 3);
}

static CornuStatus fails(CornuProcesses *processes)
{
    CORNU__TRY(go_round(processes, 1000, 3));
    if (cornu_process_rank(processes) != FAILS) return go_round(processes, LARGE, 3);
    cornu__fail(CORNU_ERR_FILE, "cannot read the rows");
    const CornuStatus status = cornu__processes_fail(processes, CORNU_ERR_FILE);
    /* From now on everything fails at once, and with that message. */
    if (meet(processes) != CORNU_ERR_PROCESS) return CORNU_ERR_VALUE;
    return status == CORNU_ERR_FILE ? CORNU_ERR_PROCESS : CORNU_ERR_VALUE;
}

/* Fails while its own large messages are on their way to and from the others. */
static CornuStatus fails_in_between(CornuProcesses *processes)
{
    static char   out[4 * LARGE], in[4 * LARGE];
    const int     rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    CornuMessage  send = { (rank + 1) % count, out, sizeof out };
    CornuMessage  receive = { (rank + count - 1) % count, in, sizeof in };
    CornuExchange exchange = { .what = "large", .sends = &send, .receives = &receive,
                               .send_count = 1, .receive_count = 1 };
    CORNU__TRY(meet(processes));
    for (int i = 0; i < 1000; i++) {
        CORNU__TRY(cornu__exchange_start(processes, &exchange));
        if (rank == FAILS && i == 3) {
            cornu__fail(CORNU_ERR_FILE, "cannot read the rows");
            return cornu__processes_fail(processes, CORNU_ERR_FILE);
        }
        CORNU__TRY(cornu__exchange_finish(processes, &exchange));
    }
    return CORNU_OK;
}

static CornuStatus goes_elsewhere(CornuProcesses *processes)
{
    int own = 0, all[RANKS_MOST];
    return cornu__processes_gather(processes, cornu_process_rank(processes) == FAILS ?
                                   "the loss" : "the gradients", &own, sizeof own, all);
}

static CornuStatus sends_too_much(CornuProcesses *processes)
{
    char own[12] = "", all[12 * RANKS_MOST];
    return cornu__processes_gather(processes, "rows", own,
                                   cornu_process_rank(processes) == FAILS ? 12 : 8, all);
}

static CornuStatus differs(CornuProcesses *processes)
{
    return cornu__processes_agree(processes, "the seed",
                                  cornu_process_rank(processes) == FAILS ? "7" : "1");
}

static CornuStatus settles(CornuProcesses *processes)
{
    CornuStatus status = CORNU_OK;
    if (cornu_process_rank(processes) >= FAILS)
        status = cornu__fail(CORNU_ERR_FILE, "no file %d", cornu_process_rank(processes));
    status = cornu__processes_check(processes, "reading", status);
    /* The group lives on. */
    CornuFailure failure;
    cornu__failure_keep(&failure, status);
    CORNU__TRY(meet(processes));
    return cornu__failure_tell(&failure);
}

/* Longer than the timeout, while the others wait. */
static CornuStatus computes(CornuProcesses *processes)
{
    CORNU__TRY(meet(processes));
    if (cornu_process_rank(processes) == FAILS) poll(NULL, 0, 2000);
    return meet(processes);
}

/* A child of rank 0 stops all of them, as a terminal's Ctrl-Z does, for longer than the timeout: in
 * an exchange that they wait for, and in the middle of many. */
static CornuStatus is_suspended(CornuProcesses *processes)
{
    const int rank = cornu_process_rank(processes), count = cornu_process_count(processes);
    int64_t   own = getpid(), all[RANKS_MOST];
    CORNU__TRY(cornu__processes_gather(processes, "processes", &own, sizeof own, all));
    if (rank == 0 && fork() == 0) {
        poll(NULL, 0, 200);
        for (int i = 0; i < count; i++) kill((pid_t)all[i], SIGSTOP);
        poll(NULL, 0, 2500);
        for (int i = 0; i < count; i++) kill((pid_t)all[i], SIGCONT);
        _exit(0);
    }
    if (rank == FAILS) poll(NULL, 0, 3200);   /* the others wait for it when they are stopped */
    return go_round(processes, 100000, 50);
}

/* Rank 0 takes what rank 1 has left for it long after that has ended, and in the meantime has said
 * to nobody that it is well. */
static CornuStatus leaves_a_message(CornuProcesses *processes)
{
    static char   data[20000];
    const int     rank = cornu_process_rank(processes);
    CornuMessage  message = { 1 - rank, data, sizeof data };
    CornuExchange exchange = { .what = "last", .sends = &message, .receives = &message,
                               .send_count = rank == 1, .receive_count = rank == 0 };
    CORNU__TRY(meet(processes));
    memset(data, rank, sizeof data);
    if (rank == 0) poll(NULL, 0, 1000);
    CORNU__TRY(cornu__exchange_start(processes, &exchange));
    CORNU__TRY(cornu__exchange_finish(processes, &exchange));
    for (size_t i = 0; i < sizeof data; i++)
        if (data[i] != 1) return cornu__fail(CORNU_ERR_VALUE, "wrong byte at %zu", i);
    return CORNU_OK;
}

/* All ranks but FAILS, which may have ended, say so within the time. */
static void expect_all(const char *transport, double timeout_s, RankBody *body, CornuStatus status,
                       const char *part, double within_s)
{
    Ranks ranks;
    ranks_run(&ranks, RANKS, transport, timeout_s, NULL, body);
    for (int i = 0; i < RANKS; i++) {
        if (i == FAILS && !ranks.ends[i].reported) continue;
        if (i == FAILS && ranks.ends[i].status != status) continue;
        ranks_expect(&ranks, i, status, part);
        if (ranks.ends[i].seconds > within_s)
            fail_msg("rank %d takes %g s", i, ranks.ends[i].seconds);
    }
}

/* Which exchange it is depends on the rank: a neighbour of others may be ahead by one or two. */
static void a_killed_rank_is_named(void **state)
{
    expect_all(*state, 20, dies, CORNU_ERR_PROCESS, "rank 2 has ended, in exchange ", 10);
}

static void a_rank_that_leaves_is_named(void **state)
{
    expect_all(*state, 20, leaves, CORNU_ERR_PROCESS, "rank 2 has ended, in exchange ", 10);
}

/* Also on rank 1, which waits for rank 0, which waits for rank 3. */
static void a_stopped_rank_is_named(void **state)
{
    expect_all(*state, 1, stops, CORNU_ERR_PROCESS,
               "rank 2 has not answered for 1 s, in exchange ", 10);
}

static void expect_success(int count, const char *transport, double timeout_s, RankBody *body)
{
    Ranks ranks;
    ranks_run(&ranks, count, transport, timeout_s, NULL, body);
    for (int i = 0; i < count; i++)
        if (!ranks.ends[i].reported || ranks.ends[i].status)
            fail_msg("rank %d: %s", i, ranks.ends[i].message);
}

static void a_rank_that_computes_is_waited_for(void **state)
{
    expect_success(RANKS, *state, 0.8, computes);
}

static void suspended_ranks_go_on(void **state)
{
    expect_success(RANKS, *state, 0.8, is_suspended);
}

static void last_messages_arrive(void **state) { expect_success(2, *state, 0.8, leaves_a_message); }

static void a_failure_is_told_to_all(void **state)
{
    expect_all(*state, 20, fails, CORNU_ERR_PROCESS, "rank 2: cannot read the rows", 10);
    expect_all(*state, 20, fails_in_between, CORNU_ERR_PROCESS, "rank 2: cannot read the rows", 10);
}

static void other_exchanges_are_named(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, RANKS, *state, 20, NULL, goes_elsewhere);
    for (int i = 0; i < RANKS; i++) {
        ranks_expect(&ranks, i, CORNU_ERR_PROCESS, "is in exchange 1 (the ");
        ranks_expect(&ranks, i, CORNU_ERR_PROCESS, "exchange 1 (the loss)");
        ranks_expect(&ranks, i, CORNU_ERR_PROCESS, "exchange 1 (the gradients)");
    }
}

static void other_sizes_are_named(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, RANKS, *state, 20, NULL, sends_too_much);
    for (int i = 0; i < RANKS; i++)
        ranks_expect(&ranks, i, CORNU_ERR_PROCESS, "in exchange 1 (rows)");
}

static void differences_are_named(void **state)
{
    expect_all(*state, 20, differs, CORNU_ERR_PROCESS, "the seed is 7 on rank 2 and 1 on rank 0",
               10);
}

static void the_first_failure_settles(void **state)
{
    expect_all(*state, 20, settles, CORNU_ERR_FILE, "rank 2: no file 2", 10);
}

/* ---- Opening ---- */

static void take_another_isa(int rank)
{
    if (rank == 1) setenv("CORNU_ISA", "portable", 1);
    else unsetenv("CORNU_ISA");
}

static void other_instruction_sets_are_named(void **state)
{
    Ranks ranks;
    if (strcmp(cornu__isa_name(cornu__cpu()->preferred), "portable") == 0) SKIP_FOR(SKIP_ISA);
    ranks_run(&ranks, 3, *state, 20, take_another_isa, meet);
    for (int i = 0; i < 3; i++)
        ranks_expect(&ranks, i, CORNU_ERR_PROCESS,
                     "the instruction set is portable on rank 1 and ");
}

static void end_before_opening(int rank)
{
    if (rank == 1) _exit(1);
}

static void an_absent_rank_is_named(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 3, *state, 1, end_before_opening, meet);
    ranks_expect(&ranks, 0, CORNU_ERR_PROCESS, "rank 1 has not connected to rank 0 within 1 s");
    ranks_expect(&ranks, 2, CORNU_ERR_PROCESS, "rank 1 cannot be reached at 127.0.0.1:");
}

/* Two more processes than there are disagree on how many there are. */
static void count_otherwise(int rank)
{
    char workers[400];
    if (rank != 1) return;
    snprintf(workers, sizeof workers, "%s,127.0.0.1:9", getenv("CORNU_WORKERS"));
    setenv("CORNU_WORKERS", workers, 1);
}

static void other_counts_are_named(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 2, *state, 2, count_otherwise, meet);
    ranks_expect(&ranks, 0, CORNU_ERR_PROCESS,
                 "the number of processes is 3 on rank 1 and 2 on rank 0");
}

/* Strangers at rank 0's port: one that says something else, one that goes, one that says
 * nothing. */
static void knock(int rank)
{
    if (rank != 1) return;
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in at = { .sin_family = AF_INET };
        const char        *port = strchr(getenv("CORNU_WORKERS"), ':') + 1;
        const int          fd = socket(AF_INET, SOCK_STREAM, 0);
        at.sin_port = htons((uint16_t)atoi(port));
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(fd, (struct sockaddr *)&at, sizeof at)) _exit(1);
        if (i == 0 && write(fd, "GET / HTTP/1.0\r\n\r\n", 18) != 18) _exit(1);
        if (i == 1) close(fd);
    }
}

static void strangers_are_ignored(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 2, *state, 20, knock, meet);
    for (int i = 0; i < 2; i++)
        if (!ranks.ends[i].reported || ranks.ends[i].status)
            fail_msg("rank %d: %s", i, ranks.ends[i].message);
}

#define OVER(transport)                                                     \
    cmocka_unit_test_prestate(a_killed_rank_is_named, transport),           \
    cmocka_unit_test_prestate(a_rank_that_leaves_is_named, transport),      \
    cmocka_unit_test_prestate(a_stopped_rank_is_named, transport),          \
    cmocka_unit_test_prestate(a_rank_that_computes_is_waited_for, transport), \
    cmocka_unit_test_prestate(suspended_ranks_go_on, transport),            \
    cmocka_unit_test_prestate(last_messages_arrive, transport),             \
    cmocka_unit_test_prestate(a_failure_is_told_to_all, transport),         \
    cmocka_unit_test_prestate(other_exchanges_are_named, transport),        \
    cmocka_unit_test_prestate(other_sizes_are_named, transport),            \
    cmocka_unit_test_prestate(differences_are_named, transport),            \
    cmocka_unit_test_prestate(the_first_failure_settles, transport),        \
    cmocka_unit_test_prestate(other_instruction_sets_are_named, transport)

int main(void)
{
    static char tcp[] = "tcp", shm[] = "shm";
    const struct CMUnitTest tests[] = {
        OVER(tcp),
        OVER(shm),
        cmocka_unit_test_prestate(an_absent_rank_is_named, tcp),
        cmocka_unit_test_prestate(other_counts_are_named, tcp),
        cmocka_unit_test_prestate(strangers_are_ignored, tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
