/* How host devices compile a program of several shards: what is moved, shared, summed, written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../../device/program_internal.h"
#include "../../agreement.h"

static int64_t bytes_moved(const CornuProgram *program, int shards)
{
    CornuDevice *tpu = cornu_device_open("tpu", .shards = shards);
    assert_non_null(tpu);
    CornuExecutable *executable = cornu_device_compile(tpu, program);
    assert_non_null(executable);
    const int64_t bytes = cornu_executable_statistics(executable)->bytes_moved;
    cornu_executable_release(executable);
    cornu_device_close(tpu);
    return bytes;
}

/* A shard's part of a sum over many is added up when it is made, however the sum is used: memory is
 * for the sums of blocks, not for each shard's part. */
static void test_memory_of_sums_over_many_shards(void **state)
{
    (void)state;
    enum { SHARDS = 1024, COUNT = 1024 * 16, PARTS = 6 };
    const CornuAttributes all = { .shards = { .size = SHARDS } };
    const CornuAttributes pack = { .pack = { 16, COUNT } };
    CornuProgram         *p = cornu_program_create();
    CornuValue            x, part[2], sum, slice;
    assert_int_equal(cornu_program_shard_input(p, cornu_scalar(CORNU_F32), &x), CORNU_OK);
    for (int i = 0; i < 2; i++)
        part[i] = op1(p, i ? CORNU_OP_TANH : CORNU_OP_EXP,
                      broadcast(p, x, cornu_shape(COUNT / 2)));
    sum = op(p, CORNU_OP_PACK, &pack, part, 2);
    slice = op(p, CORNU_OP_REDUCE_SCATTER, &all, &sum, 1);
    output(p, op(p, CORNU_OP_ALL_GATHER, &all, &slice, 1), -1);
    CornuDevice    *device = cornu_device_open("cpu", .threads = 2, .shards = SHARDS);
    Compiled        made = compile(device, p);
    const int64_t   bytes = (int64_t)sizeof(float) * COUNT;
    /* 8 blocks and the sums on the way, 6 a thread; what a thread computes, the sum, its slices. */
    assert_in_range(statistics(&made)->bytes_planned, 1, (8 + 2 * PARTS + 2 * 2 + 4) * bytes);
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* What two shards move that four do not move twice, is moved once: what is packed is read and
 * written, as little as it is. */
static void test_shards_share_packed_weights(void **state)
{
    (void)state;
    const CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } };
    for (int varies = 0; varies < 2; varies++) {
        CornuProgram   *p = cornu_program_create();
        const CornuType w_type = cornu_type(CORNU_BF16, 64, 64);
        CornuValue      x, w;
        assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_BF16, 16, 64), &x),
                         CORNU_OK);
        assert_int_equal((varies ? cornu_program_shard_input : cornu_program_input)(p, w_type, &w),
                         CORNU_OK);
        output(p, op(p, CORNU_OP_MATMUL, &matmul, (CornuValue[]){ x, w }, 2), -1);
        const int64_t once = 2 * bytes_moved(p, 2) - bytes_moved(p, 4);
        if (varies) assert_int_equal(once, 0);
        else assert_true(once >= 2 * (int64_t)cornu_type_bytes(w_type));
        cornu_program_free(p);
    }
}

enum { TABLE_ROWS = 64, TABLE = 24, UNITS = 40, LOOKED_UP = 100 };

/* The gradients of a lookup in E W by E, W and a bias, summed over shards; `watched`: a shard's own
 * gradient is fetched. `axes`: of the sum for the bias; 1: the rows. */
static CornuProgram *lookup_gradients(bool watched, int64_t axes)
{
    const CornuAttributes by_index = { .gather_grad = { .rows = TABLE_ROWS, .dtype = CORNU_F32 } };
    const CornuAttributes by_e = { .matmul = { .transpose_b = 1, .dtype = CORNU_F32 } };
    const CornuAttributes by_w = { .matmul = { .transpose_a = 1, .dtype = CORNU_F32 } };
    const CornuAttributes pack = {
        .pack = { 16, TABLE_ROWS * TABLE + TABLE * UNITS + (axes == 1 ? UNITS : TABLE_ROWS) },
    };
    CornuProgram *p = cornu_program_create();
    CornuValue    e = input(p, cornu_type(CORNU_F32, TABLE_ROWS, TABLE));
    CornuValue    w = input(p, cornu_type(CORNU_F32, TABLE, UNITS)), in[2], d[3];
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_F32, LOOKED_UP, UNITS), &in[0]),
                     CORNU_OK);
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_U8, LOOKED_UP), &in[1]),
                     CORNU_OK);
    CornuValue g = op(p, CORNU_OP_GATHER_GRAD, &by_index, in, 2);
    if (watched) output(p, g, -1);
    d[0] = op(p, CORNU_OP_MATMUL, &by_e, (CornuValue[]){ g, w }, 2);
    d[1] = op(p, CORNU_OP_MATMUL, &by_w, (CornuValue[]){ e, g }, 2);
    d[2] = reduce(p, CORNU_OP_REDUCE_SUM, g, axes);
    output(p, op1(p, CORNU_OP_ALL_REDUCE, op(p, CORNU_OP_PACK, &pack, d, 3)), -1);
    return p;
}

/* Rows of all products that a shard computes. */
static int64_t rows_of_products(const Compiled *made)
{
    const CornuProgram *p = cornu_executable_program(made->executable);
    int64_t             rows = 0;
    for (int i = 0; i < p->op_count; i++) {
        if (p->ops[i].id != CORNU_OP_MATMUL) continue;
        const CornuShape a = cornu_program_type(p, cornu_program_operands(p, &p->ops[i])[0]).shape;
        rows += a.extent[0];
    }
    return rows;
}

/* Shards sum the gradient of a lookup before they multiply it, each its rows, unless something
 * reads a shard's own gradient. */
static void test_sums_come_before_products(void **state)
{
    (void)state;
    for (int shards = 2; shards <= 8; shards *= 2) {
        CornuDevice *device = cornu_device_open("cpu", .threads = 2, .shards = shards);
        double      *sums[2];
        int64_t      count = 0;
        for (int watched = 0; watched < 2; watched++) {
            CornuProgram *p = lookup_gradients(watched, 1);
            Compiled      made = compile(device, p);
            set_inputs(&made, 7);
            run(&made);
            sums[watched] = get_output(&made, watched, &count);
            assert_int_equal(rows_of_products(&made),
                             2 * TABLE_ROWS / (watched ? 1 : shards));
            release(&made);
            cornu_program_free(p);
        }
        expect_close(sums[0], sums[1], count, 1e-6, "gradients", shards);
        free(sums[0]);
        free(sums[1]);
        cornu_device_close(device);
    }
}

/* A sum over the columns needs all rows: then nothing is distributed. */
static void test_sums_of_columns_need_all_rows(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu", .threads = 2, .shards = 4);
    double      *sums[2];
    int64_t      count = 0;
    for (int watched = 0; watched < 2; watched++) {
        CornuProgram *p = lookup_gradients(watched, 2);
        Compiled      made = compile(device, p);
        set_inputs(&made, 7);
        run(&made);
        sums[watched] = get_output(&made, watched, &count);
        assert_int_equal(rows_of_products(&made), 2 * TABLE_ROWS);
        release(&made);
        cornu_program_free(p);
    }
    expect_close(sums[0], sums[1], count, 1e-6, "gradients", 2);
    free(sums[0]);
    free(sums[1]);
    cornu_device_close(device);
}

/* Every shard reads exp(w) for the last time before each writes its part of a gathered value. Some
 * may write while others still read: the gathered value, which is as large, must not take its
 * memory. */
static void test_what_other_shards_read_is_not_written(void **state)
{
    (void)state;
    enum { SHARDS = 4, N = 1024 };
    const CornuAttributes all = { .shards = { .size = SHARDS } };
    CornuDevice  *device = cornu_device_open("cpu", .threads = 2, .shards = SHARDS);
    CornuProgram *p = cornu_program_create();
    CornuValue    w = op1(p, CORNU_OP_EXP, input(p, cornu_type(CORNU_F32, SHARDS, N))), x;
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_F32, SHARDS, N), &x), CORNU_OK);
    CornuValue part = reduce(p, CORNU_OP_REDUCE_SUM, op2(p, CORNU_OP_MULTIPLY, x, w), 1);
    output(p, op1(p, CORNU_OP_TANH, op(p, CORNU_OP_ALL_GATHER, &all, &part, 1)), -1);
    setenv("CORNU_VERIFY", "1", 1);
    Compiled made = compile(device, p);
    release(&made);
    cornu_program_free(p);
    cornu_device_close(device);
}

/* Products of the same shapes by one matrix share its packed form; those of other shapes pack it
 * again. */
static void test_equal_packs_are_one(void **state)
{
    (void)state;
    const CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } };
    for (int rows = 100; rows <= 101; rows++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    w = input(p, cornu_type(CORNU_F32, 50, 30));
        for (int i = 0; i < 2; i++) {
            CornuValue x = input(p, cornu_type(CORNU_F32, i ? rows : 100, 50));
            output(p, op(p, CORNU_OP_MATMUL, &matmul, (CornuValue[]){ x, w }, 2), -1);
        }
        check(p, 2e-6, "products");
        Compiled made = compile(cpu[1], p);
        if (statistics(&made)->fallbacks == 0)
            assert_int_equal(statistics(&made)->kernels, rows == 100 ? 3 : 4);
        release(&made);
        cornu_program_free(p);
    }
}

/* A sum in f32 of widened bf16 reads the bf16; so does one by index. */
static void test_sums_read_what_was_widened(void **state)
{
    (void)state;
    const CornuAttributes wide = { .convert = { CORNU_F32 } }, rows = { .reduce = { 1, 0, 0 } };
    CornuProgram         *p = cornu_program_create();
    CornuValue            x = input(p, cornu_type(CORNU_BF16, 400, 30));
    x = op(p, CORNU_OP_CONVERT, &wide, &x, 1);
    output(p, op(p, CORNU_OP_REDUCE_SUM, &rows, &x, 1), -1);
    check(p, 2e-6, "sum");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->bytes_moved, 400 * 30 * 2 + 30 * 4);
    release(&made);
    cornu_program_free(p);

    const CornuAttributes by_index = { .gather_grad = { .rows = 10, .dtype = CORNU_F32 } };
    p = cornu_program_create();
    CornuValue in[2] = { input(p, cornu_type(CORNU_BF16, 400, 30)),
                         input(p, cornu_type(CORNU_U8, 400)) };
    in[0] = op(p, CORNU_OP_CONVERT, &wide, &in[0], 1);
    output(p, op(p, CORNU_OP_GATHER_GRAD, &by_index, in, 2), -1);
    check(p, 2e-6, "sums by index");
    made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->bytes_moved, 400 * (30 * 2 + 1) + 10 * 30 * 4);
    release(&made);
    cornu_program_free(p);
}

/* The same where the program's arrays grow, and move, at that sum; a sanitizer would see it. */
static void test_sums_of_programs_of_any_size(void **state)
{
    (void)state;
    const CornuAttributes wide = { .convert = { CORNU_F32 } }, rows = { .reduce = { 1, 0, 0 } };
    for (int before = 0; before < 70; before++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_BF16, 4, 3));
        CornuValue    y = input(p, cornu_type(CORNU_F32, 2));
        for (int i = 0; i < before; i++) y = op1(p, CORNU_OP_TANH, y);
        output(p, y, -1);
        x = op(p, CORNU_OP_CONVERT, &wide, &x, 1);
        output(p, op(p, CORNU_OP_REDUCE_SUM, &rows, &x, 1), -1);
        Compiled made = compile(cpu[0], p);
        release(&made);
        cornu_program_free(p);
    }
}

/* A value that varies by shard still does where a pass finds it to be the same for all: a select of
 * x or x, and a gradient that does not depend on the operand that varies. */
static void test_same_on_every_shard(void **state)
{
    (void)state;
    enum { SHARDS = 4 };
    static const double one[] = { 1.5, -2.0, 3.0 }, zeros[3 * SHARDS];
    CornuProgram   *p = cornu_program_create();
    CornuAttributes epsilon = { .epsilon = { 0.01 } };
    CornuValue      x = input(p, cornu_type(CORNU_F32, 3)), c, mean, norm[3];
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_BOOL, 3), &c), CORNU_OK);
    assert_int_equal(cornu_program_shard_input(p, cornu_type(CORNU_F32, 3), &mean), CORNU_OK);
    CornuValue rows = reshape(p, x, cornu_shape(1, 3)), count = constant(p, CORNU_I64, 1.0);
    assert_int_equal(cornu_program_record(p, CORNU_OP_BATCH_NORM_GRAD, &epsilon,
                                          (CornuValue[]){ rows, x, mean, x, rows, count }, 6,
                                          norm), CORNU_OK);
    output(p, op(p, CORNU_OP_SELECT, NULL, (CornuValue[]){ c, x, x }, 3), -1);
    output(p, norm[2], -1);
    output(p, op(p, CORNU_OP_SELECT, NULL, (CornuValue[]){ c, x, x }, 3), 2);
    CornuDevice *device = cornu_device_open("cpu", .shards = SHARDS, .threads = 2);
    Compiled     made = compile(device, p);
    set_numbers(&made, 0, one);
    set_numbers(&made, 1, zeros);
    set_numbers(&made, 2, zeros);
    run(&made);
    for (int i = 0; i < 3; i++) {
        int64_t elements;
        double *got = get_output(&made, i, &elements);
        assert_int_equal(elements, 3 * SHARDS);
        for (int k = 0; k < elements; k++) assert_true(got[k] == one[k % 3]);
        free(got);
    }
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* Two variables that vary by shard are swapped: the copy of one is in the memory of the thread that
 * runs the shard. */
static void test_variables_of_shards_trade_places(void **state)
{
    (void)state;
    enum { SHARDS = 8, ELEMENTS = 300 };
    double        x[2][SHARDS * ELEMENTS];
    CornuProgram *p = cornu_program_create();
    CornuValue    v[2];
    for (int i = 0; i < 2; i++) {
        const CornuType type = cornu_type(CORNU_F32, ELEMENTS);
        assert_int_equal(cornu_program_shard_input(p, type, &v[i]), CORNU_OK);
        for (int k = 0; k < SHARDS * ELEMENTS; k++) x[i][k] = (double)(i * 10000 + k);
    }
    output(p, v[1], 0);
    output(p, v[0], 1);
    CornuDevice *device = cornu_device_open("cpu", .threads = 2, .shards = SHARDS);
    Compiled     made = compile(device, p);
    for (int i = 0; i < 2; i++) set_numbers(&made, i, x[i]);
    run(&made);
    for (int i = 0; i < 2; i++) {
        int64_t count;
        double *got = get_input(&made, i, &count);
        assert_memory_equal(got, x[1 - i], sizeof x[0]);
        free(got);
    }
    release(&made);
    cornu_device_close(device);
    cornu_program_free(p);
}

enum { DEEP = 6, WIDE = 128, WIDE_BYTES = 4 * WIDE * WIDE };

/* Products with matrices that are large, and made of little, and then with them again in reverse;
 * apart: made again for that, in two ops. */
static CornuProgram *there_and_back(bool apart)
{
    const CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } };
    CornuProgram *p = cornu_program_create();
    CornuValue    y = input(p, cornu_type(CORNU_F32, 2, WIDE)), rows[DEEP];
    for (int i = 0; i < DEEP; i++) rows[i] = input(p, cornu_type(CORNU_F32, WIDE));
    for (int i = 0; i < 2 * DEEP; i++) {
        const CornuValue row = rows[i < DEEP ? i : 2 * DEEP - 1 - i];
        if (apart) cornu__program_apart(p, i < DEEP ? 0 : 1);
        CornuValue w = op1(p, CORNU_OP_SIN, broadcast(p, row, cornu_shape(WIDE, WIDE)));
        w = op(p, CORNU_OP_SOFTMAX, NULL, &w, 1);
        cornu__program_apart(p, 0);
        y = op(p, CORNU_OP_MATMUL, &matmul, (CornuValue[]){ y, w }, 2);
    }
    output(p, y, -1);
    return p;
}

/* What is kept apart is made twice, just before it is read; equal ops are one, and their result is
 * kept. */
static void test_what_is_kept_apart_is_made_late(void **state)
{
    (void)state;
    int64_t bytes[2], kernels[2], count;
    double *got[2];
    for (int apart = 0; apart < 2; apart++) {
        CornuProgram *p = there_and_back(apart);
        CornuDevice  *device = cornu_device_open("cpu", .threads = 1);
        Compiled      made = compile(device, p);
        for (int i = 0; i <= DEEP; i++) {
            double x[2 * WIDE];    /* of a row the first half is read */
            for (int k = 0; k < 2 * WIDE; k++) x[k] = (double)((k * 7 + i) % 13) / 8.0;
            set_numbers(&made, i, x);
        }
        run(&made);
        bytes[apart] = statistics(&made)->bytes_planned;
        kernels[apart] = statistics(&made)->kernels;
        got[apart] = get_output(&made, 0, &count);
        release(&made);
        cornu_device_close(device);
        cornu_program_free(p);
    }
    assert_memory_equal(got[0], got[1], 2 * WIDE * sizeof *got[0]);
    assert_true(kernels[1] >= kernels[0] + DEEP - 1);
    assert_in_range(bytes[0], DEEP * WIDE_BYTES, 2 * DEEP * WIDE_BYTES);
    assert_in_range(bytes[1], WIDE_BYTES, 3 * WIDE_BYTES);
    free(got[0]), free(got[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_sums_over_many_shards),
        cmocka_unit_test(test_shards_share_packed_weights),
        cmocka_unit_test(test_sums_come_before_products),
        cmocka_unit_test(test_sums_of_columns_need_all_rows),
        cmocka_unit_test(test_what_other_shards_read_is_not_written),
        cmocka_unit_test(test_equal_packs_are_one),
        cmocka_unit_test(test_sums_read_what_was_widened),
        cmocka_unit_test(test_sums_of_programs_of_any_size),
        cmocka_unit_test(test_same_on_every_shard),
        cmocka_unit_test(test_variables_of_shards_trade_places),
        cmocka_unit_test(test_what_is_kept_apart_is_made_late),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
