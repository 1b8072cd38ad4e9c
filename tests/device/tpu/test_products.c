/* The performance model's products against numbers worked out by hand: their cycles on the MXU, and
 * the tiles that they keep in VMEM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "../../../device/tpu/model.h"

#include "../programs.h"
#include "near.h"

/* ---- Cycles ---- */

/* One 128x128 array at 700 MHz. no overlap: ceil(K / 128) ceil(N / 128) (382 + M). */
static void cycles_are_those_of_the_worked_table(void **state)
{
    (void)state;
    static const struct {
        CornuTpuProduct product;
        double          no_overlap, overlapped, percent, us;
    } table[] = {
        { { 1, 8, 128, 128 },     390,    390,    2.1,  0.56 },
        { { 1, 128, 128, 128 },   510,    510,    25.1, 0.73 },
        { { 1, 128, 784, 512 },   14280,  3966,   79.1, 5.7 },
        { { 1, 64, 512, 10 },     1784,   830,    2.4,  1.2 },
        { { 1, 1024, 1024, 1024 }, 89984, 65918,  99.4, 94 },
        { { 1, 25088, 27, 64 },   25470,  25470,  10.4, 36 },
        { { 1, 25088, 576, 64 },  127350, 125822, 44.9, 180 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const CornuTpuCycles cycles = cornu_tpu_cycles(table[i].product, 128, 128, 1);
        assert_true(cycles.no_overlap == table[i].no_overlap);
        assert_true(cycles.overlapped == table[i].overlapped);
        assert_true(fabs(100.0 * cycles.ideal / cycles.overlapped - table[i].percent) <= 0.05);
        assert_near(cycles.overlapped / 700.0, table[i].us, 0.02);
        assert_true(cycles.ideal <= cycles.overlapped && cycles.overlapped <= cycles.no_overlap);
    }
}

/* v3: 28 tiles on two arrays, 14 each: 128 + 13 x 128 + 128 + 254. v6e: 4 x 2 tiles of 256 x 256
 * on two arrays, each of which takes 256 cycles to load although 128 rows stream:
 * 256 + 3 x 256 + 128 + 510. */
static void folds_are_dealt_over_the_arrays(void **state)
{
    (void)state;
    const CornuTpuProduct dense = { 1, 128, 784, 512 };
    assert_true(cornu_tpu_cycles(dense, 128, 128, 2).overlapped == 2174);
    assert_true(cornu_tpu_cycles(dense, 256, 256, 2).overlapped == 1662);
    assert_int_equal(cornu_tpu_cycles(dense, 256, 256, 2).folds, 8);
    /* One row takes as long as eight. */
    assert_true(cornu_tpu_cycles((CornuTpuProduct){ 1, 1, 128, 128 }, 128, 128, 1).overlapped ==
                390);
    /* Nothing to do takes no time; what cannot be counted stops at the largest number. */
    assert_true(cornu_tpu_cycles((CornuTpuProduct){ 1, 0, 128, 128 }, 128, 128, 1).overlapped == 0);
    const CornuTpuProduct huge = { 1, INT64_MAX, INT64_MAX, INT64_MAX };
    assert_true(cornu_tpu_cycles(huge, 128, 128, 1).padded_macs == INT64_MAX);
}

/* Arrays that take different parts of K for the same 128 columns leave as many sums of (M, N),
 * which the vector unit adds to one, in each pass: of 16 x 512 x 128 the two arrays of a v3
 * replica leave two, so 16 x 128 additions, the eight of a v4 replica the four that there are parts
 * of K. 384 columns leave each of three parts; 1024 keep all eight arrays. */
static void parts_of_a_sum_are_added(void **state)
{
    (void)state;
    static const struct {
        const char *profile;
        int64_t     k, n, additions;
        int         passes;
    } table[] = {
        { "v2-8", 512, 128, 0, 1 },          { "v3-8", 512, 128, 2048, 1 },
        { "v4-8", 512, 128, 3 * 2048, 1 },   { "v4-8", 512, 384, 2 * 3 * 2048, 1 },
        { "v4-8", 512, 1024, 0, 1 },         { "v4-8", 128, 128, 0, 1 },
        { "v3-8", 512, 128, 6 * 2048, 6 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, 16, table[i].k));
        output(p, op2(p, CORNU_OP_MATMUL, x, input(p, cornu_type(CORNU_F32, table[i].k,
                                                                 table[i].n))), -1);
        CornuTpuModel *model = cornu_tpu_model(p, .profile = cornu_tpu_profile(table[i].profile),
                                               .passes = table[i].passes);
        assert_non_null(model);
        assert_int_equal(model->vector_ops, table[i].additions);
        cornu_tpu_model_free(model);
        cornu_program_free(p);
    }
}

/* ---- VMEM ---- */

/* Of 16 MiB, two tiles leave 16,711,680 bytes, and a row takes 2 x 128 + 4 x 128 = 768 of them:
 * 21,760 rows. A convolution's 25,088 rows are two blocks. Four arrays take four times as much, but
 * no more of them than there are tiles; the parts of f32 operands 2 x 128 more each. */
static void rows_are_cut_into_blocks_that_fit(void **state)
{
    (void)state;
    static const struct {
        CornuTpuProduct product;
        int64_t         side, arrays;
        int             passes;
        int64_t         mib, rows, blocks, bytes;
    } table[] = {
        { { 1, 8, 128, 128 },           128, 1, 1, 16,  8,     1, 65536 + 8 * 768 },
        { { 1, 3, 5, 7 },               128, 1, 1, 16,  8,     1, 65536 + 8 * 768 },
        { { 1, 21760, 784, 512 },       128, 1, 1, 16,  21760, 1, 1 << 24 },
        { { 1, 21761, 784, 512 },       128, 1, 1, 16,  10888, 2, 65536 + 10888 * 768 },
        { { 1, 25088, 576, 64 },        128, 1, 1, 16,  12544, 2, 65536 + 12544 * 768 },
        { { 1, 25088, 576, 64 },        128, 4, 1, 16,  5024,  5, 4 * (65536 + 5024 * 768) },
        { { 1, 25088, 27, 64 },         128, 4, 1, 16,  12544, 2, 65536 + 12544 * 768 },
        { { 1, 1024, 1024, 1024 },      128, 1, 3, 16,  1024,  1, 65536 + 1024 * 1024 },
        { { 1, 1024, 1024, 1024 },      128, 1, 6, 16,  1024,  1, 65536 + 1024 * 1280 },
        { { 1, 1024, 1024, 1024 },      256, 2, 1, 128, 1024,  1, 2 * (262144 + 1024 * 1536) },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const CornuTpuTiling tiling =
            cornu_tpu_tiling(table[i].product, table[i].side, table[i].side, table[i].arrays,
                             table[i].passes, table[i].mib << 20);
        assert_int_equal(tiling.rows, table[i].rows);
        assert_int_equal(tiling.blocks, table[i].blocks);
        assert_int_equal(tiling.bytes, table[i].bytes);
    }
    assert_int_equal(cornu_tpu_tiling((CornuTpuProduct){ 0 }, 128, 128, 1, 1, 1 << 24).bytes, 0);
    const CornuTpuProduct no_rows = { .count = 1, .k = 128, .n = 128 };
    assert_int_equal(cornu_tpu_tiling(no_rows, 128, 128, 1, 1, 1 << 24).bytes, 0);
}

/* Any magnitude up to the largest number. */
static int64_t any_extent(uint64_t *state)
{
    return (INT64_MAX >> draw(state, 63)) - draw(state, 3);
}

/* No extent is too large, in any profile: all rows have a block, blocks fit, and one fewer would
 * not do. */
static void every_product_fits_in_every_profile(void **state)
{
    (void)state;
    uint64_t random = 4;
    for (int i = 0; i < 20000; i++) {
        const CornuTpuProfile *profile = cornu_tpu_profile_at((int)draw(&random, 6));
        const CornuTpuProduct  p = { any_extent(&random), any_extent(&random), any_extent(&random),
                                     any_extent(&random) };
        const int64_t side = (int64_t)profile->mxu_rows.value;
        const int64_t vmem = (int64_t)profile->vmem_mib.value << 20;
        const int     passes = (int[]){ 1, 3, 6 }[draw(&random, 3)];
        if (p.count < 1 || p.m < 1 || p.k < 1 || p.n < 1) continue;
        const CornuTpuTiling t = cornu_tpu_tiling(p, side, side, (int64_t)profile->mxus.value,
                                                  passes, vmem);
        assert_true(t.blocks >= 1 && t.rows >= 8 && t.rows % 8 == 0);
        assert_true(t.bytes > 0 && t.bytes <= vmem);
        assert_true(t.blocks >= p.m / t.rows && (t.blocks - 1) <= (p.m - 1) / t.rows);
        if (t.blocks == 1) continue;
        /* The rows of one of fewer blocks do not fit as one. */
        const CornuTpuProduct one = { p.count, (p.m - 1) / (t.blocks - 1) + 1, p.k, p.n };
        assert_true(cornu_tpu_tiling(one, side, side, (int64_t)profile->mxus.value, passes,
                                     vmem).blocks > 1);
    }
}

static void a_core_without_room_is_refused(void **state)
{
    (void)state;
    CornuTpuProfile small = *cornu_tpu_profile("v2-8");
    small.vmem_mib.value = 0.0625;
    CornuProgram    *p = cornu_program_create();
    const CornuValue x = input(p, cornu_type(CORNU_F32, 4, 5));
    assert_int_equal(cornu_program_scope(p, "dense_1"), CORNU_OK);
    output(p, op2(p, CORNU_OP_MATMUL, x, input(p, cornu_type(CORNU_F32, 5, 6))), -1);
    assert_null(cornu_tpu_model(p, .profile = &small));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    assert_string_equal(cornu_error_message(),
                        "TPU model: matmul in dense_1: 8 rows and their weights take 71680 bytes "
                        "of VMEM, a core of v2-8 has 65536");
    small.vmem_mib.value = 71680.0 / 0x1p20;
    CornuTpuModel *model = cornu_tpu_model(p, .profile = &small);
    assert_non_null(model);
    assert_int_equal(model->ops[0].tiling.bytes, 71680);
    cornu_tpu_model_free(model);
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_are_those_of_the_worked_table),
        cmocka_unit_test(folds_are_dealt_over_the_arrays),
        cmocka_unit_test(parts_of_a_sum_are_added),
        cmocka_unit_test(rows_are_cut_into_blocks_that_fit),
        cmocka_unit_test(every_product_fits_in_every_profile),
        cmocka_unit_test(a_core_without_room_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
