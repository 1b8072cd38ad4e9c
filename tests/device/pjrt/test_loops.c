/* Runs of the pjrt device that are collected and done as one loop, and runs that return before they
 * have ended: the results and failures of runs one by one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cornu/device/pjrt/executable.h>
#include <cornu/device/status_internal.h>

#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

enum { ROWS = 2, CLASSES = 3 };

/* sum <- rate sum + table[fed], of each shard; and how many runs there were. The table is rows of
 * 1, 2 and 3. */
typedef struct {
    CornuDevice     *device;
    CornuExecutable *executable;
    CornuBuffer     *in[5];   /* sum, fed, rate, table, runs */
} Subject;

enum { SUM, FED, RATE, TABLE, RUNS };

static CornuProgram *record(void)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    in[5];
    expect_ok(cornu_program_shard_input(p, cornu_type(CORNU_F32, ROWS, 2), &in[SUM]));
    expect_ok(cornu_program_shard_input(p, cornu_type(CORNU_I32, ROWS), &in[FED]));
    in[RATE] = input(p, cornu_scalar(CORNU_F32));
    in[TABLE] = input(p, cornu_type(CORNU_F32, CLASSES, 2));
    in[RUNS] = input(p, cornu_scalar(CORNU_I32));
    const CornuValue rate = broadcast(p, in[RATE], cornu_shape(ROWS, 2));
    output(p, op2(p, CORNU_OP_ADD, op2(p, CORNU_OP_MULTIPLY, in[SUM], rate),
                  op2(p, CORNU_OP_GATHER, in[TABLE], in[FED])), SUM);
    output(p, op2(p, CORNU_OP_ADD, in[RUNS], constant(p, CORNU_I32, 1)), RUNS);
    return p;
}

static void write(CornuBuffer *buffer, const void *data)
{
    expect_ok(cornu_buffer_write(buffer, cornu_array_from((void *)(uintptr_t)data,
                                                          cornu_buffer_type(buffer))));
}

static void open_subject(Subject *s, int shards)
{
    s->device = pjrt_open(shards);
    CornuProgram *program = record();
    s->executable = cornu_device_compile(s->device, program);
    if (!s->executable) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < 5; i++) {
        s->in[i] = cornu_buffer_create(
            s->device, cornu_program_buffer_type(program, program->inputs[i], shards),
            .use = i == FED ? CORNU_USE_INFEED : CORNU_USE_OTHER, .per_shard = i <= FED);
        assert_non_null(s->in[i]);
    }
    cornu_program_free(program);
    write(s->in[RATE], (float[]){ 0.5f });
    write(s->in[TABLE], (float[CLASSES * 2]){ 1, 1, 2, 2, 3, 3 });
}

static void close_subject(Subject *s)
{
    for (int i = 0; i < 5; i++) cornu_buffer_free(s->in[i]);
    cornu_executable_release(s->executable);
    cornu_device_close(s->device);
}

/* What run i feeds row r of a shard. */
static int fed(int i, int shard, int r) { return (i * 5 + shard * 2 + r) % CLASSES; }

static void feed(Subject *s, int i)
{
    int32_t   rows[8 * ROWS];
    const int shards = cornu_device_shards(s->device);
    for (int k = 0; k < shards * ROWS; k++) rows[k] = fed(i, k / ROWS, k % ROWS);
    write(s->in[FED], rows);
}

static CornuStatus run_once(Subject *s)
{
    return cornu_executable_run(s->executable, s->in, (CornuBuffer *[2]){ NULL, NULL });
}

/* The sums after runs 0 to count - 1, of which those from `changed` on had a rate of 2. */
static void expect_sums(Subject *s, int count, int changed)
{
    float     sums[8 * ROWS * 2];
    int32_t   runs;
    const int shards = cornu_device_shards(s->device);
    expect_ok(cornu_buffer_read(s->in[SUM], cornu_array_from(sums, cornu_buffer_type(s->in[SUM]))));
    expect_ok(cornu_buffer_read(s->in[RUNS], cornu_array_from(&runs, cornu_scalar(CORNU_I32))));
    assert_int_equal(runs, count);
    for (int k = 0; k < shards * ROWS; k++) {
        double sum = 0.0;
        for (int i = 0; i < count; i++)
            sum = sum * (i < changed ? 0.5 : 2.0) + fed(i, k / ROWS, k % ROWS) + 1;
        assert_float_equal(sums[2 * k], sum, 1e-6 * sum);
        assert_float_equal(sums[2 * k + 1], sum, 1e-6 * sum);
    }
}

static const CornuPjrtLoop *loop_of(const Subject *s)
{
    return &((const CornuPjrtExecutable *)s->executable)->loop;
}

/* ---- Results ---- */

/* Executions of 4 runs, whole ones and one of 3. */
static void collected_runs_equal_single_ones(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 4 && shards <= pjrt_most_shards(); shards *= 2) {
        Subject s;
        open_subject(&s, shards);
        for (int i = 0; i < 11; i++) {
            if (i % 4 == 0) cornu_executable_collect(s.executable, i == 8 ? 3 : 4);
            feed(&s, i);
            expect_ok(run_once(&s));
        }
        assert_int_equal(loop_of(&s)->compiled.module.steps, 4);
        assert_non_null(loop_of(&s)->compiled.loaded);
        expect_sums(&s, 11, 11);
        close_subject(&s);
    }
}

/* Also one that has fewer runs than were said, and those after it are single. */
static void reading_starts_what_is_collected(void **state)
{
    (void)state;
    Subject s;
    open_subject(&s, 2);
    cornu_executable_collect(s.executable, 5);
    for (int i = 0; i < 7; i++) {
        feed(&s, i);
        expect_ok(run_once(&s));
        if (i == 2) assert_int_equal(loop_of(&s)->collected, 3);
        if (i == 2) expect_sums(&s, 3, 3);
    }
    assert_int_equal(loop_of(&s)->collected, 0);
    expect_sums(&s, 7, 7);
    close_subject(&s);
}

/* What is fed after the last collected run is not theirs. */
static void feeding_does_not_change_collected_runs(void **state)
{
    (void)state;
    Subject s;
    open_subject(&s, 1);
    cornu_executable_collect(s.executable, 4);
    for (int i = 0; i < 3; i++) {
        feed(&s, i);
        expect_ok(run_once(&s));
    }
    feed(&s, 77);
    expect_sums(&s, 3, 3);
    close_subject(&s);
}

/* Runs before a rate was written have the old one. */
static void writing_starts_what_is_collected(void **state)
{
    (void)state;
    Subject s;
    open_subject(&s, 1);
    cornu_executable_collect(s.executable, 6);
    for (int i = 0; i < 6; i++) {
        if (i == 2) write(s.in[RATE], (float[]){ 2.0f });
        feed(&s, i);
        expect_ok(run_once(&s));
    }
    expect_sums(&s, 6, 2);
    close_subject(&s);
}

/* Of which one buffer is freed, then all, before the runs were started. */
static void collected_runs_outlive_nothing_of_theirs(void **state)
{
    (void)state;
    Subject s;
    open_subject(&s, 2);
    cornu_executable_collect(s.executable, 4);
    for (int i = 0; i < 3; i++) {
        feed(&s, i);
        expect_ok(run_once(&s));
    }
    cornu_buffer_free(s.in[FED]);
    s.in[FED] = NULL;
    expect_sums(&s, 3, 3);
    close_subject(&s);

    open_subject(&s, 1);
    cornu_executable_collect(s.executable, 4);
    feed(&s, 0);
    expect_ok(run_once(&s));
    close_subject(&s);
}

/* ---- Failures ---- */

/* Run `bad` of 8 is fed a wrong row; its failure comes with a later run or the wait, and says how
 * long ago it was. */
static void expect_failure_of(int shards, int collected, int bad)
{
    Subject     s;
    CornuStatus status = CORNU_OK;
    int         i = 0;
    open_subject(&s, shards);
    for (; i < 8 && !status; i++) {
        int32_t rows[8 * ROWS] = { 0 };
        if (i % collected == 0) cornu_executable_collect(s.executable, collected);
        if (i == bad) rows[shards * ROWS - 1] = 9;
        write(s.in[FED], rows);
        status = run_once(&s);
    }
    if (!status) status = cornu_device_wait(s.device);
    const CornuFault fault = cornu__error_fault();
    expect_error(status, CORNU_ERR_VALUE, "gather: index 9 in row 1, expected 0 to 2");
    assert_int_equal(fault.index, ROWS - 1);
    assert_int_equal(fault.shard, shards - 1);
    if (i - 1 - fault.runs_ago != bad)
        fail_msg("%d shards, %d at once: run %d failed, reported after %d as %d runs ago", shards,
                 collected, bad, i, (int)fault.runs_ago);
    expect_ok(cornu_device_wait(s.device));   /* it is told once */
    close_subject(&s);
}

static void failures_say_which_run_it_was(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 2 && shards <= pjrt_most_shards(); shards++)
        for (int collected = 1; collected <= 3; collected++)
            for (int bad = 0; bad < 8; bad++) expect_failure_of(shards, collected, bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collected_runs_equal_single_ones),
        cmocka_unit_test(reading_starts_what_is_collected),
        cmocka_unit_test(feeding_does_not_change_collected_runs),
        cmocka_unit_test(writing_starts_what_is_collected),
        cmocka_unit_test(collected_runs_outlive_nothing_of_theirs),
        cmocka_unit_test(failures_say_which_run_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
