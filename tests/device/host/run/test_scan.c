/*
 * Scans on host devices: bodies as plans of their own, against the reference device; plans and
 * counts; and programs among attributes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../skip.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../allocations.h"
#include "../../programs.h"

enum { BATCH = 5, STEPS = 7, UNITS = 24 };

static const CornuAttributes product = { .matmul = { .dtype = CORNU_F32 } };

/* h' = tanh(h U + x); a sum of h^T x, as gradients are accumulated; two carries that are swapped
 * and one that stays. Stacked: h, the h before, and |x|. */
enum { CARRIES = 5, CONSTANT = CARRIES + 1 };

static CornuProgram *body_of(void)
{
    CornuProgram *body = cornu_program_create();
    CornuType     h_type = cornu_type(CORNU_F32, BATCH, UNITS);
    CornuValue    h = input(body, h_type), sum = input(body, cornu_type(CORNU_F32, UNITS, UNITS));
    CornuValue    a = input(body, h_type), b = input(body, h_type), still = input(body, h_type);
    CornuValue    x = input(body, h_type), u = input(body, cornu_type(CORNU_F32, UNITS, UNITS));
    CornuValue    h_u = op(body, CORNU_OP_MATMUL, &product, (CornuValue[]){ h, u }, 2);
    CornuValue    new_h = op1(body, CORNU_OP_TANH, op2(body, CORNU_OP_ADD, h_u, x));
    CornuAttributes outer = { .matmul = { .transpose_a = 1, .dtype = CORNU_F32 } };
    CornuValue    term = op(body, CORNU_OP_MATMUL, &outer, (CornuValue[]){ h, x }, 2);
    output(body, new_h, -1);
    output(body, op2(body, CORNU_OP_ADD, sum, term), -1);
    output(body, b, -1);
    output(body, op2(body, CORNU_OP_ADD, a, x), -1);
    output(body, still, -1);
    output(body, new_h, -1);
    output(body, h, -1);
    output(body, op1(body, CORNU_OP_ABSOLUTE, x), -1);
    return body;
}

/* The scan of that body along axis 1; the first `read` results are outputs. */
static CornuProgram *scanned(bool reverse, int read, bool per_shard)
{
    CornuProgram *p = cornu_program_create(), *body = body_of();
    CornuValue    in[CARRIES + 2], out[CARRIES + 3];
    for (int i = 0; i < CARRIES + 2; i++) {
        CornuType type = cornu_program_type(body, body->inputs[i]);
        if (i == CARRIES) type = cornu_type(CORNU_F32, BATCH, STEPS, UNITS);
        if (per_shard && i == CARRIES)
            assert_int_equal(cornu_program_shard_input(p, type, &in[i]), CORNU_OK);
        else in[i] = input(p, type);
    }
    CornuAttributes scan = { .scan = { .body = body, .carries = CARRIES, .slices = 1, .axis = 1,
                                       .steps = STEPS, .reverse = reverse } };
    assert_int_equal(cornu_program_record(p, CORNU_OP_SCAN, &scan, in, CARRIES + 2, out), CORNU_OK);
    cornu_program_free(body);   /* the op has a copy */
    for (int i = 0; i < read; i++) output(p, out[i], -1);
    return p;
}

static CornuDevice *open_device(const char *name, int threads, int shards)
{
    CornuDevice *device = cornu_device_open(.name = name, .threads = threads, .shards = shards);
    if (!device) fail_msg("%s", cornu_error_message());
    return device;
}

/* As set_inputs, but U within 1/8 and so of norm 0.7. Within 2 its norm would be 11, and h' would
 * amplify rounding errors until the comparison is chance. */
static void set_scan_inputs(Compiled *compiled)
{
    float    u[UNITS * UNITS];
    uint64_t state = 5;
    set_inputs(compiled, 3);
    for (int i = 0; i < UNITS * UNITS; i++) u[i] = (float)(draw(&state, 511) - 255) / 2048.0f;
    set_input(compiled, CARRIES + 1, u);
}

/* Runs the program on a device and returns all its outputs, one after the other. */
static double *results(CornuDevice *device, const CornuProgram *program, int64_t *count)
{
    Compiled compiled = compile(device, program);
    double  *all = NULL;
    set_scan_inputs(&compiled);
    run(&compiled);
    run(&compiled);   /* carries must start anew */
    *count = 0;
    for (int i = 0; i < program->output_count; i++) {
        int64_t more;
        double *some = get_output(&compiled, i, &more);
        double *wider = realloc(all, (size_t)(*count + more) * sizeof *all);
        assert_non_null(wider);
        all = wider;
        memcpy(all + *count, some, (size_t)more * sizeof *all);
        *count += more;
        free(some);
    }
    release(&compiled);
    return all;
}

static void agrees_with_the_reference(void **state)
{
    (void)state;
    CornuDevice *reference = open_device("reference", 1, 1);
    for (int reverse = 0; reverse < 2; reverse++) {
        CornuProgram *p = scanned(reverse, CARRIES + 3, false);
        int64_t       count, same;
        double       *want = results(reference, p, &count);
        for (int k = 0; k < 4; k++) {
            CornuDevice *device = open_device(k < 3 ? "cpu" : "tpu", k < 3 ? k + 1 : 2, 1);
            double      *got = results(device, p, &same);
            assert_int_equal(count, same);
            for (int64_t i = 0; i < count; i++)
                if (!(fabs(got[i] - want[i]) <= 2e-6 * (1.0 + fabs(want[i]))))
                    fail_msg("%s: element %lld is %.9g, the reference has %.9g",
                             cornu_device_name(device), (long long)i, got[i], want[i]);
            free(got);
            cornu_device_close(device);
        }
        free(want);
        cornu_program_free(p);
    }
    cornu_device_close(reference);
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    CornuProgram *p = scanned(false, CARRIES + 3, false);
    int64_t       count;
    double       *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        CornuDevice *device = open_device("cpu", threads, 1);
        double      *got = results(device, p, &count);
        if (!first) first = got;
        else {
            assert_memory_equal(got, first, (size_t)count * sizeof *got);
            free(got);
        }
        cornu_device_close(device);
    }
    free(first);
    cornu_program_free(p);
}

/* Every shard scans its own part; the first one's results are those of one shard alone. */
static void every_shard_scans(void **state)
{
    (void)state;
    enum { SHARDS = 4, COUNT = BATCH * STEPS * UNITS, H = CARRIES };
    CornuProgram *p = scanned(false, CARRIES + 3, true);
    CornuProgram *alone = scanned(false, CARRIES + 3, false);
    float         x[SHARDS][COUNT], h[SHARDS][COUNT], want[COUNT];
    for (int i = 0; i < SHARDS * COUNT; i++) x[i / COUNT][i % COUNT] = sinf((float)i);
    for (int threads = 1; threads <= 5; threads += 2) {
        CornuDevice *device = open_device("tpu", threads, SHARDS), *one = open_device("tpu", 1, 1);
        CornuBuffer *in[CARRIES + 2], *out[CARRIES + 3];
        for (int i = 0; i < CARRIES + 2; i++)
            in[i] = cornu_buffer_create(device,
                                        cornu_program_buffer_type(p, p->inputs[i], SHARDS));
        for (int i = 0; i < CARRIES + 3; i++)
            out[i] = cornu_buffer_create(
                device, cornu_program_buffer_type(p, p->outputs[i].value, SHARDS));
        assert_int_equal(cornu_buffer_write(in[CARRIES], (CornuArray){
            cornu_buffer_type(in[CARRIES]), x }), CORNU_OK);
        CornuExecutable *executable = cornu_device_compile(device, p);
        assert_non_null(executable);
        assert_int_equal(cornu_executable_run(executable, in, out), CORNU_OK);
        assert_int_equal(cornu_buffer_read(out[H], (CornuArray){ cornu_buffer_type(out[H]), h }),
                         CORNU_OK);
        for (int shard = 0; shard < SHARDS; shard++) {
            Compiled compiled = compile(one, alone);
            set_input(&compiled, CARRIES, x[shard]);
            run(&compiled);
            assert_int_equal(cornu_buffer_read(compiled.outputs[H], (CornuArray){
                cornu_buffer_type(compiled.outputs[H]), want }), CORNU_OK);
            assert_memory_equal(h[shard], want, sizeof want);
            release(&compiled);
        }
        for (int i = 0; i < CARRIES + 2; i++) cornu_buffer_free(in[i]);
        for (int i = 0; i < CARRIES + 3; i++) cornu_buffer_free(out[i]);
        cornu_executable_release(executable);
        cornu_device_close(device);
        cornu_device_close(one);
    }
    cornu_program_free(p);
    cornu_program_free(alone);
}

/* Stacked results that nothing reads are neither kept nor computed; a run allocates nothing. */
static void unread_results_cost_nothing(void **state)
{
    (void)state;
    CornuDevice    *device = open_device("cpu", 2, 1);
    CornuStatistics counted[2];
    for (int all = 0; all < 2; all++) {
        CornuProgram *p = scanned(false, all ? CARRIES + 3 : 1, false);
        Compiled      compiled = compile(device, p);
        set_inputs(&compiled, 3);
        run(&compiled);
        const int64_t before = allocations();
        run(&compiled);
        assert_int_equal(allocations(), before);
        counted[all] = *statistics(&compiled);
        release(&compiled);
        cornu_program_free(p);
    }
    assert_true(counted[0].kernels < counted[1].kernels);
    assert_true(counted[0].bytes_moved < counted[1].bytes_moved);
    assert_int_equal(counted[1].fallbacks, 0);
    assert_true(counted[1].flops >= INT64_C(2) * 2 * STEPS * BATCH * UNITS * UNITS);
    cornu_device_close(device);
}

/* x a b of each step: the product of constants, and what packs it, run once however many steps
 * there are. */
static void constants_are_computed_once(void **state)
{
    (void)state;
    enum { MOST = 6 };
    const CornuType square = cornu_type(CORNU_F32, UNITS, UNITS);
    CornuDevice    *device = open_device("cpu", 2, 1);
    int64_t         kernels[2];
    for (int k = 0; k < 2; k++) {
        const int64_t steps = k ? MOST : MOST / 2;
        CornuProgram *body = cornu_program_create(), *p = cornu_program_create();
        CornuValue    x = input(body, cornu_type(CORNU_F32, BATCH, UNITS));
        CornuValue    a = input(body, square), b = input(body, square), out;
        CornuValue    a_b = op(body, CORNU_OP_MATMUL, &product, (CornuValue[]){ a, b }, 2);
        output(body, op(body, CORNU_OP_MATMUL, &product, (CornuValue[]){ x, a_b }, 2), -1);
        CornuAttributes scan = { .scan = { .body = body, .slices = 1, .steps = steps } };
        CornuValue      in[3] = { input(p, cornu_type(CORNU_F32, steps, BATCH, UNITS)),
                                  input(p, square), input(p, square) };
        assert_int_equal(cornu_program_record(p, CORNU_OP_SCAN, &scan, in, 3, &out), CORNU_OK);
        output(p, out, -1);
        Compiled compiled = compile(device, p);
        kernels[k] = statistics(&compiled)->kernels;
        release(&compiled);
        cornu_program_free(body);
        cornu_program_free(p);
    }
    const int64_t once = 2 * kernels[0] - kernels[1];
    assert_in_range(once, 1, 4);
    assert_in_range(kernels[0] - once, MOST / 2, MOST);
    cornu_device_close(device);
}

/* A lookup in each step, one of them of a row that does not exist. */
static void faults_name_op_and_row(void **state)
{
    (void)state;
    CornuDevice  *device = open_device("cpu", 1, 1);
    CornuProgram *body = cornu_program_create(), *p = cornu_program_create();
    CornuValue    indices = input(body, cornu_type(CORNU_I32, 2));
    CornuValue    table = input(body, cornu_type(CORNU_F32, 3, 1)), out;
    output(body, op2(body, CORNU_OP_GATHER, table, indices), -1);
    CornuAttributes scan = { .scan = { .body = body, .slices = 1, .steps = 3 } };
    CornuValue      in[2] = { input(p, cornu_type(CORNU_I32, 3, 2)),
                              input(p, cornu_type(CORNU_F32, 3, 1)) };
    assert_int_equal(cornu_program_scope(p, "rnn"), CORNU_OK);
    assert_int_equal(cornu_program_record(p, CORNU_OP_SCAN, &scan, in, 2, &out), CORNU_OK);
    output(p, out, -1);
    Compiled compiled = compile(device, p);
    set_input(&compiled, 0, (const int32_t[]){ 0, 1, 2, 7, 0, 0 });
    assert_int_equal(cornu_executable_run(compiled.executable, compiled.inputs, compiled.outputs),
                     CORNU_ERR_VALUE);
    assert_string_equal(cornu_error_message(),
                        "rnn: scan: gather: index 7 in row 1, expected 0 to 2");
    release(&compiled);
    cornu_program_free(body);
    cornu_program_free(p);
    cornu_device_close(device);
}

/* ---- Programs among attributes ---- */

static void programs_count_by_what_they_say(void **state)
{
    (void)state;
    CornuProgram *a = scanned(false, 1, false), *b = scanned(false, 1, false);
    CornuProgram *copy = cornu_program_copy(a);
    assert_true(cornu_program_equal(a, b) && cornu_program_equal(a, copy));
    assert_true(cornu_program_hash(a) == cornu_program_hash(b));
    CornuProgram *body = (CornuProgram *)(uintptr_t)b->ops[0].attributes.scan.body;
    assert_ptr_not_equal(a->ops[0].attributes.scan.body, copy->ops[0].attributes.scan.body);
    body->outputs[0].value = body->outputs[3].value;
    assert_false(cornu_program_equal(a, b));
    assert_true(cornu_program_hash(a) != cornu_program_hash(b));
    cornu_program_free(a);
    cornu_program_free(b);
    cornu_program_free(copy);
}

static void programs_are_printed_in_programs(void **state)
{
    (void)state;
    CornuProgram *p = scanned(true, 1, false);
    char         *text = NULL;
    size_t        size;
    FILE         *file = open_memstream(&text, &size);
    cornu_program_print(p, file);
    fclose(file);
    assert_non_null(strstr(text, " = scan(%0, %1, %2, %3, %4, %5, %6) body=7 ops carries=5 "
                                 "slices=1 "
                                 "axis=1 steps=7 reverse=1 : f32 (5, 24), "));
    assert_non_null(strstr(text, "\n    %7 = matmul(%0, %6) : f32 (5, 24)\n"));
    assert_non_null(strstr(text, "\n    output 6 = %0\n"));
    free(text);
    cornu_program_free(p);
}

/* Each allocation of recording and compiling fails in turn: CORNU_ERR_MEMORY, no crash, no leak. */
static void memory_may_run_out(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuProgram *p = scanned(false, CARRIES + 3, false);
    for (int64_t i = 0;; i++) {
        CornuDevice *device = open_device("cpu", 1, 1);
        allocations_fail_after(i);
        CornuProgram    *copy = cornu_program_copy(p);
        CornuExecutable *executable = copy ? cornu_device_compile(device, copy) : NULL;
        allocations_fail_after(NEVER);
        cornu_program_free(copy);
        cornu_executable_release(executable);
        cornu_device_close(device);
        if (executable) break;
        assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_reference),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(every_shard_scans),
        cmocka_unit_test(unread_results_cost_nothing),
        cmocka_unit_test(constants_are_computed_once),
        cmocka_unit_test(faults_name_op_and_row),
        cmocka_unit_test(programs_count_by_what_they_say),
        cmocka_unit_test(programs_are_printed_in_programs),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
