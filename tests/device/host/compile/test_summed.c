/* Large products that are summed over shards where they are computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../programs.h"

/* Extents that are no multiples of a tile's or of a register; a result of over 2^20 elements. */
enum { M = 1080, N = 1001, SEGMENT = 16 };

/* How the sum is used: by itself, in slices of a pack, or beside something that reads the product
 * on each shard. */
typedef enum { WHOLE, SLICES, WATCHED, USES } Use;

/* The gradient x' d of rows of each shard, summed. */
static CornuProgram *gradient(CornuDtype dtype, int64_t rows, int64_t columns, int shards, Use use)
{
    const CornuAttributes matmul = { .matmul = { .transpose_a = true, .dtype = CORNU_F32 } };
    const CornuAttributes all = { .shards = { .size = shards } };
    CornuProgram         *p = cornu_program_create();
    CornuValue            in[2], parts[2];
    assert_int_equal(cornu_program_shard_input(p, cornu_type(dtype, rows, M), &in[0]), CORNU_OK);
    assert_int_equal(cornu_program_shard_input(p, cornu_type(dtype, rows, columns), &in[1]),
                     CORNU_OK);
    const CornuValue g = op(p, CORNU_OP_MATMUL, &matmul, in, 2);
    if (use == SLICES) {
        const int64_t each = (M * columns + columns + shards * SEGMENT) / (shards * SEGMENT);
        const CornuAttributes pack = { .pack = { SEGMENT, each * shards * SEGMENT } };
        parts[0] = g;
        parts[1] = reduce(p, CORNU_OP_REDUCE_SUM, convert(p, in[1], CORNU_F32), 1);
        parts[0] = op(p, CORNU_OP_PACK, &pack, parts, 2);
        parts[0] = op(p, CORNU_OP_REDUCE_SCATTER, &all, parts, 1);
        parts[0] = op1(p, CORNU_OP_TANH, parts[0]);
        output(p, op(p, CORNU_OP_ALL_GATHER, &all, parts, 1), -1);
    } else {
        output(p, op(p, CORNU_OP_ALL_REDUCE, &all, &g, 1), -1);
    }
    if (use == WATCHED) output(p, op1(p, CORNU_OP_TANH, g), -1);
    return p;
}

static double *result(const CornuProgram *p, const char *device, int shards, int threads,
                      int64_t *planned, int64_t *count)
{
    CornuDevice *opened = cornu_device_open(device, .threads = threads, .shards = shards);
    Compiled     made = compile(opened, p);
    set_inputs(&made, 3);
    run(&made);
    run(&made);
    double *got = get_output(&made, 0, count);
    *planned = statistics(&made)->bytes_planned;
    release(&made);
    cornu_device_close(opened);
    return got;
}

/* The same bits as summed afterwards, on any threads; no shard's product in memory if `joined`. */
static void check_sum(const char *device, CornuDtype dtype, int64_t rows, int64_t columns,
                      int shards, Use use, bool joined)
{
    CornuProgram *p = gradient(dtype, rows, columns, shards, use);
    int64_t       apart, together, count;
    setenv("CORNU_PASSES", "-summed", 1);
    double *expected = result(p, device, shards, 2, &apart, &count);
    unsetenv("CORNU_PASSES");
    for (int threads = 1; threads <= 3; threads++) {
        double *got = result(p, device, shards, threads, &together, &count);
        for (int64_t i = 0; i < count; i++)
            if (got[i] != expected[i])
                fail_msg("%s, %d shards, %d threads: element %lld is %.9g, expected %.9g", device,
                         shards, threads, (long long)i, got[i], expected[i]);
        free(got);
    }
    const int64_t saved = (int64_t)sizeof(float) * M * columns * (shards - 1);
    if (joined != (together + saved <= apart))
        fail_msg("%s, %d shards: %lld bytes are planned, apart %lld", device, shards,
                 (long long)together, (long long)apart);
    free(expected);
    cornu_program_free(p);
}

static void test_the_bits_of_a_sum_afterwards(void **state)
{
    (void)state;
    check_sum("tpu", CORNU_BF16, 8, N, 8, SLICES, true);
    check_sum("tpu", CORNU_BF16, 7, N, 3, WHOLE, true);
    check_sum("tpu", CORNU_BF16, 33, 1088, 2, SLICES, true);
    check_sum("tpu", CORNU_BF16, 1, N, 7, WHOLE, true);
}

/* Of few elements, of more rows than are packed at once, read by others, of more shards than one
 * pass adds up. */
static void test_what_is_summed_afterwards(void **state)
{
    (void)state;
    check_sum("tpu", CORNU_BF16, 8, 80, 4, WHOLE, false);
    check_sum("tpu", CORNU_BF16, 300, N, 2, WHOLE, false);
    check_sum("tpu", CORNU_BF16, 8, N, 2, WATCHED, false);
    check_sum("tpu", CORNU_BF16, 2, N, 9, WHOLE, false);
}

/* Whichever kernel multiplies there. */
static void test_on_cpu(void **state)
{
    (void)state;
    for (int shards = 2; shards <= 5; shards += 3) {
        CornuProgram *p = gradient(CORNU_F32, 12, N, shards, SLICES);
        int64_t       planned, count;
        setenv("CORNU_PASSES", "-summed", 1);
        double *expected = result(p, "cpu", shards, 2, &planned, &count);
        unsetenv("CORNU_PASSES");
        double *got = result(p, "cpu", shards, 3, &planned, &count);
        assert_memory_equal(got, expected, (size_t)count * sizeof *got);
        free(got);
        free(expected);
        cornu_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bits_of_a_sum_afterwards),
        cmocka_unit_test(test_what_is_summed_afterwards),
        cmocka_unit_test(test_on_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
