/* Programs on the shards of the pjrt device, against the cpu device with as many. Numbers are
 * multiples of 1/128, so that sums are exact in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

static CornuValue shard_input(CornuProgram *program, CornuType type)
{
    CornuValue value;
    expect_ok(cornu_program_shard_input(program, type, &value));
    return value;
}

/* Compiles and runs it with the inputs of `seed`; the bytes of its outputs, one after the other. */
static char *bytes_of(CornuDevice *device, const CornuProgram *program, size_t *size)
{
    Compiled compiled = compile(device, program);
    char    *bytes = NULL;
    set_inputs(&compiled, 3);
    run(&compiled);
    *size = 0;
    for (int i = 0; i < program->output_count; i++) {
        const int    alias = program->outputs[i].alias;
        CornuBuffer *buffer = alias < 0 ? compiled.outputs[i] : compiled.inputs[alias];
        CornuType    type = cornu_buffer_type(buffer);
        char        *more = realloc(bytes, *size + cornu_type_bytes(type) + 1);
        assert_non_null(more);
        bytes = more;
        expect_ok(cornu_buffer_read(buffer, cornu_array_from(bytes + *size, type)));
        *size += cornu_type_bytes(type);
    }
    release(&compiled);
    return bytes;
}

/* Twice on pjrt, once on cpu: the same bits. Frees the program. */
static void expect_same_bits(const char *what, CornuProgram *program, int shards)
{
    CornuDevice *device = pjrt_open(shards);
    CornuDevice *cpu = cornu_device_open("cpu", .shards = shards, .threads = 1);
    size_t       size, again, expected;
    char        *got = bytes_of(device, program, &size);
    char        *second = bytes_of(device, program, &again);
    char        *on_cpu = bytes_of(cpu, program, &expected);
    if (size != again || memcmp(got, second, size))
        fail_msg("%s on %d shards: another result in a second run", what, shards);
    if (size != expected) fail_msg("%s: %zu bytes, expected %zu", what, size, expected);
    for (size_t i = 0; i < size; i++)
        if (got[i] != on_cpu[i])
            fail_msg("%s on %d shards: byte %zu of %zu is %d, expected %d", what, shards, i, size,
                     got[i], on_cpu[i]);
    free(got), free(second), free(on_cpu);
    cornu_device_close(device);
    cornu_device_close(cpu);
    cornu_program_free(program);
}

static const int counts[] = { 1, 2, 4, 8 };
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Inputs and outputs ---- */

/* Of each shard and of all, in and out, new and in place. */
static void shards_have_their_own_values(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS && counts[i] <= pjrt_most_shards(); i++) {
        const CornuType type = cornu_type(CORNU_F32, 3, 2);
        CornuProgram   *p = cornu_program_create();
        CornuValue      x = shard_input(p, type), w = input(p, type), sum = shard_input(p, type);
        CornuValue      n = shard_input(p, cornu_scalar(CORNU_I32));
        output(p, op2(p, CORNU_OP_ADD, sum, op2(p, CORNU_OP_MULTIPLY, x, w)), 2);
        output(p, op2(p, CORNU_OP_SUBTRACT, w, x), -1);
        output(p, op1(p, CORNU_OP_NEGATIVE, w), 1);
        output(p, op2(p, CORNU_OP_ADD, n, n), -1);
        output(p, x, -1);
        expect_same_bits("values of shards", p, counts[i]);
    }
}

/* ---- Ops between shards ---- */

static const struct {
    CornuOpId   id;
    CornuDtype  dtypes[4];
    int         dtype_count;
} collectives[] = {
    { CORNU_OP_ALL_REDUCE, { CORNU_F32, CORNU_I64, CORNU_I32, CORNU_F64 }, 4 },
    { CORNU_OP_REDUCE_SCATTER, { CORNU_F32, CORNU_I64, CORNU_I32, CORNU_F64 }, 4 },
    { CORNU_OP_ALL_GATHER, { CORNU_F32, CORNU_BF16, CORNU_I32, CORNU_U8 }, 4 },
    { CORNU_OP_SHARD_SLICE, { CORNU_F32, CORNU_BF16, CORNU_I32, CORNU_BOOL }, 4 },
};
enum { COLLECTIVES = sizeof collectives / sizeof *collectives };

/* The shards group by group, which need not be neighbours; all zeros: one group. */
static const struct { int shards; int64_t size; int groups[8]; } divisions[] = {
    { 1, 1, { 0 } }, { 2, 2, { 0 } }, { 4, 4, { 0 } }, { 8, 8, { 0 } },
    { 2, 1, { 0, 1 } }, { 4, 2, { 0, 1, 2, 3 } }, { 4, 2, { 0, 2, 1, 3 } },
    { 4, 2, { 0, 3, 1, 2 } }, { 4, 1, { 0, 1, 2, 3 } },
    { 8, 4, { 0, 1, 2, 3, 4, 5, 6, 7 } }, { 8, 4, { 0, 2, 4, 6, 1, 3, 5, 7 } },
    { 8, 2, { 0, 7, 1, 6, 2, 5, 3, 4 } },
};

static void collectives_equal_the_cpu_devices(void **state)
{
    for (size_t d = 0; d < sizeof divisions / sizeof *divisions; d++) {
        const int  shards = divisions[d].shards;
        if (shards > pjrt_most_shards()) continue;
        CornuProgram *p = cornu_program_create();
        const bool in_groups = shards > 1 && divisions[d].groups[shards - 1] > 0;
        for (int i = 0; i < COLLECTIVES; i++)
            for (int k = 0; k < collectives[i].dtype_count; k++) {
                CornuAttributes attributes = { .shards = { .size = divisions[d].size } };
                if (in_groups)
                    attributes.shards.groups = (CornuInts){ shards, divisions[d].groups };
                CornuValue x = shard_input(p, cornu_type(collectives[i].dtypes[k], 16, 3));
                output(p, op(p, collectives[i].id, &attributes, &x, 1), -1);
            }
        char what[60];
        snprintf(what, sizeof what, "division %d into groups of %lld", (int)d,
                 (long long)divisions[d].size);
        expect_same_bits(what, p, shards);
    }
    (void)state;
}

/* Of values that all shards share: n times x. */
static void shared_values_are_summed_once_per_shard(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS && counts[i] <= pjrt_most_shards(); i++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, 8, 2));
        CornuAttributes all = { .shards = { .size = counts[i] } };
        output(p, op1(p, CORNU_OP_ALL_REDUCE, x), -1);
        output(p, op(p, CORNU_OP_ALL_GATHER, &all, &x, 1), -1);
        output(p, op(p, CORNU_OP_SHARD_SLICE, &all, &x, 1), -1);
        output(p, op0(p, CORNU_OP_REPLICA_ID, NULL), -1);
        expect_same_bits("of shared values", p, counts[i]);
    }
}

/* ---- Random numbers ---- */

/* Masks of dropout and uniform numbers, at a row that differs from shard to shard. */
static void random_numbers_have_the_cpu_devices_bits(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS && counts[i] <= pjrt_most_shards(); i += 2) {
        CornuProgram   *p = cornu_program_create();
        CornuValue      seed = constant(p, CORNU_I64, 1234567890123.0);
        CornuValue      iteration = input(p, cornu_scalar(CORNU_I64));
        CornuValue      row = op2(p, CORNU_OP_MULTIPLY, op0(p, CORNU_OP_REPLICA_ID, NULL),
                                  constant(p, CORNU_I64, 5));
        CornuAttributes uniform = { .random = { .rank = 2, .extents = { 5, 7 }, .generator = 3 } };
        CornuAttributes dropout = { .dropout = { .rate = 0.3, .generator = 4 } };
        output(p, op(p, CORNU_OP_RANDOM_UNIFORM, &uniform,
                     (CornuValue[]){ seed, iteration, row }, 3), -1);
        const CornuDtype dtypes[] = { CORNU_F32, CORNU_BF16 };
        for (int k = 0; k < 2; k++) {
            CornuValue x = shard_input(p, cornu_type(dtypes[k], 5, 3, 3));
            output(p, op(p, CORNU_OP_DROPOUT, &dropout,
                         (CornuValue[]){ x, seed, iteration, row }, 4), -1);
        }
        expect_same_bits("random numbers", p, counts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_have_their_own_values),
        cmocka_unit_test(collectives_equal_the_cpu_devices),
        cmocka_unit_test(shared_values_are_summed_once_per_shard),
        cmocka_unit_test(random_numbers_have_the_cpu_devices_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
