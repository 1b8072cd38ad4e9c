/* Labels, indices and counters out of range: errors that name the row and the shard, as on the cpu
 * device, after which the device works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/device/status_internal.h>

#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

enum { ROWS = 4, CLASSES = 3, STEPS = 5 };

static CornuValue rows_input(CornuProgram *program, int shards, CornuType type)
{
    CornuValue value;
    if (shards == 1) return input(program, type);
    expect_ok(cornu_program_shard_input(program, type, &value));
    return value;
}

/* Input 0: the numbers of each row; input 1: what they are looked up in. */
typedef CornuProgram *Make(int shards);

static CornuProgram *cross_entropy(int shards)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    labels = rows_input(p, shards, cornu_type(CORNU_I32, ROWS));
    CornuValue    logits = rows_input(p, shards, cornu_type(CORNU_F32, ROWS, CLASSES));
    output(p, op2(p, CORNU_OP_SPARSE_CROSS_ENTROPY, logits, labels), -1);
    return p;
}

static CornuProgram *gather(int shards)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    indices = rows_input(p, shards, cornu_type(CORNU_I32, ROWS));
    CornuValue    table = input(p, cornu_type(CORNU_F32, CLASSES, 2));
    output(p, op2(p, CORNU_OP_GATHER, table, indices), -1);
    return p;
}

static CornuProgram *gather_grad(int shards)
{
    CornuProgram   *p = cornu_program_create();
    CornuAttributes rows = { .gather_grad = { .rows = CLASSES, .dtype = CORNU_F32 } };
    CornuValue      indices = rows_input(p, shards, cornu_type(CORNU_I32, ROWS));
    CornuValue      d_y = rows_input(p, shards, cornu_type(CORNU_F32, ROWS, 2));
    output(p, op(p, CORNU_OP_GATHER_GRAD, &rows, (CornuValue[]){ d_y, indices }, 2), -1);
    return p;
}

/* Each step looks up the same rows again, and others that are good, and sums. */
static CornuProgram *in_a_scan(int shards)
{
    CornuProgram   *p = cornu_program_create(), *body = cornu_program_create();
    const CornuType sum_type = cornu_type(CORNU_F32, ROWS, 2);
    CornuValue      sum = input(body, sum_type), step = input(body, cornu_type(CORNU_I32, ROWS));
    CornuValue      numbers = input(body, cornu_type(CORNU_I32, ROWS));
    CornuValue      table = input(body, cornu_type(CORNU_F32, CLASSES, 2));
    sum = op2(body, CORNU_OP_ADD, sum, op2(body, CORNU_OP_GATHER, table, step));
    output(body, op2(body, CORNU_OP_ADD, sum, op2(body, CORNU_OP_GATHER, table, numbers)), -1);
    CornuValue indices = rows_input(p, shards, cornu_type(CORNU_I32, ROWS));
    CornuValue in[4] = { broadcast(p, constant(p, CORNU_F32, 0), sum_type.shape),
                         broadcast(p, constant(p, CORNU_I32, 1), cornu_shape(STEPS, ROWS)), indices,
                         input(p, cornu_type(CORNU_F32, CLASSES, 2)) };
    CornuValue      out;
    CornuAttributes scan = { .scan = { .body = body, .carries = 1, .slices = 1, .steps = STEPS } };
    expect_ok(cornu_program_record(p, CORNU_OP_SCAN, &scan, in, 4, &out));
    cornu_program_free(body);
    output(p, out, -1);
    return p;
}

/* Row ROWS / 2 has a different number in each step; it is the slices that are looked up. */
static CornuProgram *in_slices_of_a_scan(int shards)
{
    CornuProgram *p = cornu_program_create(), *body = cornu_program_create();
    CornuValue    sum = input(body, cornu_type(CORNU_F32, 1, 2));
    CornuValue    step = input(body, cornu_type(CORNU_I32, 1));
    CornuValue    table = input(body, cornu_type(CORNU_F32, CLASSES, 2));
    output(body, op2(body, CORNU_OP_ADD, sum, op2(body, CORNU_OP_GATHER, table, step)), -1);
    CornuValue indices = rows_input(p, shards, cornu_type(CORNU_I32, ROWS));
    CornuValue in[3] = { broadcast(p, constant(p, CORNU_F32, 0), cornu_shape(1, 2)),
                         reshape(p, indices, cornu_shape(ROWS, 1)),
                         input(p, cornu_type(CORNU_F32, CLASSES, 2)) };
    CornuValue      out;
    CornuAttributes scan = { .scan = { .body = body, .carries = 1, .slices = 1, .steps = ROWS } };
    expect_ok(cornu_program_record(p, CORNU_OP_SCAN, &scan, in, 3, &out));
    cornu_program_free(body);
    output(p, out, -1);
    return p;
}

typedef struct {
    CornuStatus status;
    CornuFault  fault;
    char        message[CORNU_MESSAGE_SIZE];
} Outcome;

/* Runs with element `at` of input 0 being `number`, the others 1, and then with all of them 1. */
static void run_both(CornuDevice *device, Compiled *compiled, int64_t at, double number,
                     Outcome *outcome, double **after, int64_t *count)
{
    double    numbers[8 * ROWS];
    const int shards = cornu_device_shards(device);
    set_inputs(compiled, 3);
    for (int i = 0; i < shards * ROWS; i++) numbers[i] = i == at ? number : 1;
    set_numbers(compiled, 0, numbers);
    outcome->status =
        cornu_executable_run(compiled->executable, compiled->inputs, compiled->outputs);
    outcome->fault = cornu__error_fault();
    snprintf(outcome->message, sizeof outcome->message, "%s", cornu_error_message());
    cornu_error_take();
    numbers[at] = 1;
    set_numbers(compiled, 0, numbers);
    run(compiled);
    *after = get_output(compiled, 0, count);
}

/* What the message says of the data, after the names of ops: the cpu device may have decomposed
 * them further. */
static const char *fact_of(const char *message)
{
    const char *fact = message;
    for (const char *c = message; (c = strstr(c, ": "));) fact = c += 2;
    return fact;
}

static bool names_shard(const char *message) { return strncmp(message, "shard ", 6) == 0; }

static void expect_as_on_cpu(const char *what, Make *make, int shards)
{
    CornuDevice  *devices[2] = { pjrt_open(shards), NULL };
    CornuProgram *p = make(shards);
    Compiled      compiled[2];
    devices[1] = cornu_device_open("cpu", .shards = shards, .threads = 1);
    for (int d = 0; d < 2; d++) compiled[d] = compile(devices[d], p);
    const double bad[] = { CLASSES, -1, 1e9 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int64_t at = (shards - 1) * ROWS + ROWS / 2;
        Outcome       outcome[2];
        double       *after[2];
        int64_t       count;
        for (int d = 0; d < 2; d++)
            run_both(devices[d], &compiled[d], at, bad[i], &outcome[d], &after[d], &count);
        assert_int_equal(outcome[0].status, CORNU_ERR_VALUE);
        assert_int_equal(outcome[1].status, CORNU_ERR_VALUE);
        if (strcmp(fact_of(outcome[0].message), fact_of(outcome[1].message)) ||
            names_shard(outcome[0].message) != names_shard(outcome[1].message))
            fail_msg("%s on %d shards: \"%s\", expected \"%s\"", what, shards, outcome[0].message,
                     outcome[1].message);
        assert_int_equal(outcome[0].fault.index, outcome[1].fault.index);
        assert_int_equal(outcome[0].fault.count, outcome[1].fault.count);
        assert_int_equal(outcome[0].fault.shard, outcome[1].fault.shard);
        for (int64_t k = 0; k < count; k++) assert_float_equal(after[0][k], after[1][k], 1e-5);
        free(after[0]), free(after[1]);
    }
    for (int d = 0; d < 2; d++) {
        release(&compiled[d]);
        cornu_device_close(devices[d]);
    }
    cornu_program_free(p);
}

typedef struct {
    const char *what;
    Make       *make;
} Case;

static void bad_numbers_are_found(void **state)
{
    const Case *c = *state;
    static const int shards[] = { 1, 2, 8 };
    for (int i = 0; i < 3 && shards[i] <= pjrt_most_shards(); i++)
        expect_as_on_cpu(c->what, c->make, shards[i]);
}

/* The first of several bad rows; of several shards, the first. */
static void the_first_bad_row_is_named(void **state)
{
    (void)state;
    CornuDevice  *device = pjrt_open(2);
    CornuProgram *p = cross_entropy(2);
    Compiled      compiled = compile(device, p);
    set_inputs(&compiled, 1);
    set_numbers(&compiled, 0, (double[]){ 0, 2, 9, 8, 7, 0, 0, 5 });
    expect_error(cornu_executable_run(compiled.executable, compiled.inputs, compiled.outputs),
                 CORNU_ERR_VALUE, "shard 0: sparse_cross_entropy: label 9 in row 2, ");
    set_numbers(&compiled, 0, (double[]){ 0, 2, 0, 1, 7, 0, 0, 5 });
    expect_error(cornu_executable_run(compiled.executable, compiled.inputs, compiled.outputs),
                 CORNU_ERR_VALUE, "shard 1: sparse_cross_entropy: label 7 in row 0, ");
    cornu_error_take();
    release(&compiled);
    cornu_program_free(p);
    cornu_device_close(device);
}

int main(void)
{
    static Case cases[] = {
        { "a label", cross_entropy }, { "an index", gather },
        { "an index of a gradient", gather_grad }, { "an index in a scan", in_a_scan },
        { "an index in a scan's slices", in_slices_of_a_scan },
    };
    const struct CMUnitTest tests[] = {
        { "labels", bad_numbers_are_found, NULL, NULL, &cases[0] },
        { "indices", bad_numbers_are_found, NULL, NULL, &cases[1] },
        { "indices_of_gradients", bad_numbers_are_found, NULL, NULL, &cases[2] },
        { "indices_in_scans", bad_numbers_are_found, NULL, NULL, &cases[3] },
        { "indices_in_slices_of_scans", bad_numbers_are_found, NULL, NULL, &cases[4] },
        cmocka_unit_test(the_first_bad_row_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
