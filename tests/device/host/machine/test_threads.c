/*
 * Pools of threads: every block once, and no more threads at work than there are processors.
 *
 * tests/run: alone
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../skip.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "../../../../device/host/machine/cpu.h"
#include "../../../../device/host/machine/threads.h"
#include "../../../../device/status.h"
#include "../../../allocations.h"

enum { MOST_BLOCKS = 1000, MOST_THREADS = 64 };

typedef struct {
    CornuThreads *pool;
    atomic_int    busy[MOST_THREADS];     /* by thread number: not shared */
    atomic_bool   took_part[MOST_THREADS];
    int           calls[MOST_BLOCKS];     /* not atomic: a block has one owner */
} Ledger;

static void count_call(void *context, int64_t block, int thread)
{
    Ledger *ledger = context;
    assert_in_range(thread, 0, cornu__threads_count(ledger->pool) - 1);
    assert_int_equal(atomic_fetch_add(&ledger->busy[thread], 1), 0);
    ledger->calls[block]++;
    atomic_fetch_sub(&ledger->busy[thread], 1);
}

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = nanoseconds }, NULL);
}

/* Every block once, for any counts, also after the workers fell asleep. */
static void test_every_block_once(void **state)
{
    (void)state;
    const int counts[] = { 1, 2, 3, 8, 33 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        Ledger ledger = { .pool = cornu__threads_create(counts[i]) };
        assert_non_null(ledger.pool);
        assert_int_equal(cornu__threads_count(ledger.pool), counts[i]);
        for (int round = 0; round < 200; round++) {
            const int64_t blocks = round % 3 == 0 ? round % 7 : round * 5;
            memset(ledger.calls, 0, sizeof ledger.calls);
            if (round % 50 == 49) pause_for(1000000);
            cornu__threads_run(ledger.pool, blocks, count_call, &ledger);
            for (int64_t block = 0; block < MOST_BLOCKS; block++)
                assert_int_equal(ledger.calls[block], block < blocks);
        }
        cornu__threads_free(ledger.pool);
    }
}

/* Both threads begin; then the caller is done, or waits until the other has done the rest. */
typedef struct {
    atomic_int begun, left;
    bool       helps;
    int        thread[MOST_BLOCKS];
} Parts;

static void take_own(void *context, int64_t block, int thread)
{
    Parts *parts = context;
    parts->thread[block] = thread;
    if (block == 0 || block == MOST_BLOCKS / 2) {
        atomic_fetch_add(&parts->begun, 1);
        while (atomic_load(&parts->begun) < 2) pause_for(10000);
    }
    if (parts->helps && block == 0)
        while (atomic_load(&parts->left) > 1) pause_for(10000);
    atomic_fetch_sub(&parts->left, 1);
}

/* Each thread has one half of the blocks, run after run; but one that is done helps the other. */
static void test_consecutive_blocks(void **state)
{
    (void)state;
    if (cornu__cpu_threads() < 2) SKIP_FOR(SKIP_PROCESSORS);
    CornuThreads *pool = cornu__threads_create(2);
    for (int round = 0; round < 20; round++) {
        Parts parts = { .left = MOST_BLOCKS, .helps = round % 2 };
        cornu__threads_run(pool, MOST_BLOCKS, take_own, &parts);
        assert_int_equal(parts.thread[0], 0);
        assert_int_equal(parts.thread[MOST_BLOCKS / 2], 1);
        for (int block = 1; block < MOST_BLOCKS && parts.helps; block++)
            assert_int_equal(parts.thread[block], 1);
    }
    cornu__threads_free(pool);
}

/* A thread goes from block to block, up to where the next thread's part begins. */
static void test_next_block(void **state)
{
    (void)state;
    static const int64_t next[7] = { 1, 7, 3, 7, 5, 6, 7 };   /* parts from 0, 2 and 4 on */
    CornuThreads        *pool = cornu__threads_create(3), *one = cornu__threads_create(1);
    for (int64_t block = 0; block < 7; block++) {
        assert_int_equal(cornu__threads_next(pool, 7, block), next[block]);
        assert_int_equal(cornu__threads_next(one, 7, block), block + 1);
    }
    cornu__threads_free(one);
    cornu__threads_free(pool);
}

static void run_inside(void *context, int64_t block, int thread)
{
    Ledger *outer = context;
    Ledger  inner = { .pool = outer->pool };
    if (block % 2) pause_for(100000);
    cornu__threads_run(inner.pool, 5, count_call, &inner);
    for (int i = 0; i < 5; i++) assert_int_equal(inner.calls[i], 1);
    count_call(context, block, thread);
}

static void test_nested(void **state)
{
    (void)state;
    Ledger ledger = { .pool = cornu__threads_create(3) };
    cornu__threads_run(ledger.pool, 40, run_inside, &ledger);
    cornu__threads_run(ledger.pool, 1, run_inside, &ledger);
    for (int i = 0; i < 40; i++) assert_int_equal(ledger.calls[i], 1 + (i == 0));
    cornu__threads_free(ledger.pool);
}

/* One block takes longer than any spin: the others and the caller sleep meanwhile. */
static void take_long(void *context, int64_t block, int thread)
{
    if (block == 3) pause_for(5000000);
    count_call(context, block, thread);
}

static void test_long_block(void **state)
{
    (void)state;
    Ledger ledger = { .pool = cornu__threads_create(2) };
    for (int i = 0; i < 5; i++) cornu__threads_run(ledger.pool, 4, take_long, &ledger);
    for (int i = 0; i < 4; i++) assert_int_equal(ledger.calls[i], 5);
    cornu__threads_free(ledger.pool);
}

/* More threads than processors: those without a processor are left asleep. */
static void take_turns(void *context, int64_t block, int thread)
{
    pause_for(2000000);
    count_call(context, block, thread);
    ((Ledger *)context)->took_part[thread] = true;
}

static int threads_that_take_part(CornuThreads *pool, int64_t blocks)
{
    Ledger ledger = { .pool = pool };
    int    threads = 0;
    cornu__threads_run(pool, blocks, take_turns, &ledger);
    for (int64_t block = 0; block < blocks; block++) assert_int_equal(ledger.calls[block], 1);
    for (int i = 0; i < cornu__threads_count(pool); i++) threads += ledger.took_part[i];
    return threads;
}

static void test_more_threads_than_processors(void **state)
{
    (void)state;
    enum { ROUNDS = 8 };   /* in one of them the workers are asleep at the start */
    const int processors = cornu__cpu_threads(), count = processors + 6;
    if (count > MOST_THREADS) SKIP_FOR("processors: fewer");
    CornuThreads *pool = cornu__threads_create(count);
    int           least = count;
    for (int round = 0; round < ROUNDS; round++) {
        pause_for(5000000);
        const int threads = threads_that_take_part(pool, 2 * count);
        if (threads < least) least = threads;
    }
    assert_in_range(least, 1, processors);
    cornu__threads_free(pool);
}

static void *run_often(void *argument)
{
    Ledger *shared = argument;
    Ledger  own = { .pool = shared->pool };
    for (int i = 0; i < 300; i++) cornu__threads_run(own.pool, 7, count_call, &own);
    for (int i = 0; i < 7; i++) shared->calls[i] += own.calls[i] == 300;
    return NULL;
}

static void test_two_callers(void **state)
{
    (void)state;
    Ledger    a = { .pool = cornu__threads_create(2) }, b = { .pool = a.pool };
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, run_often, &b), 0);
    run_often(&a);
    pthread_join(other, NULL);
    for (int i = 0; i < 7; i++) assert_int_equal(a.calls[i] + b.calls[i], 2);
    cornu__threads_free(a.pool);
}

static void test_failures(void **state)
{
    (void)state;
    assert_null(cornu__threads_create(0));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    cornu__threads_free(NULL);
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int i = 0; i < 2; i++) {
        allocations_fail_after(i);
        CornuThreads *pool = cornu__threads_create(2);
        allocations_fail_after(NEVER);
        assert_null(pool);
        assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
}

static void test_runs_allocate_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    Ledger ledger = { .pool = cornu__threads_create(4) };
    const int64_t before = allocations();
    for (int i = 0; i < 100; i++)
        cornu__threads_run(ledger.pool, 50, count_call, &ledger);
    assert_int_equal(allocations(), before);
    cornu__threads_free(ledger.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_once),
        cmocka_unit_test(test_consecutive_blocks),
        cmocka_unit_test(test_next_block),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_long_block),
        cmocka_unit_test(test_more_threads_than_processors),
        cmocka_unit_test(test_two_callers),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_runs_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
