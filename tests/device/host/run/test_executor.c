/* The executor of host devices, on the cpu device: one op at a time against the reference device,
 * in every dtype; faults in the data; fallbacks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../agreement.h"

static void test_elementwise_ops_in_every_dtype(void **state)
{
    (void)state;
    static const int64_t counts[] = { 1, 7, 16, 1000, 1024, 2500, 70001 };
    for (int d = 0; d < CORNU_DTYPE_COUNT; d++) {
        CornuDtype dtype = (CornuDtype)d;
        if (dtype == CORNU_BOOL) continue;
        for (int c = 0; c < 7; c++) {
            CornuProgram *p = cornu_program_create();
            CornuType     type = cornu_type(dtype, counts[c]);
            CornuValue    a = input(p, type), b = input(p, type);
            for (CornuOpId id = CORNU_OP_NEGATIVE; id <= CORNU_OP_POWER; id++) {
                bool integers = id == CORNU_OP_ADD || id == CORNU_OP_MULTIPLY ||
                                id == CORNU_OP_MAXIMUM || id == CORNU_OP_MINIMUM ||
                                id == CORNU_OP_ABSOLUTE ||
                                (dtype != CORNU_U8 && dtype != CORNU_U32 &&
                                 (id == CORNU_OP_NEGATIVE || id == CORNU_OP_SUBTRACT));
                if (!cornu_dtype_is_float(dtype) && !integers) continue;
                const CornuAttributes alpha = { .alpha = { 0.7 } }, bound = { .bound = { 0.5 } };
                const bool binary = cornu_op_input_count(id) == 2;
                const bool bounded = id == CORNU_OP_BOUNDED_RELU || id == CORNU_OP_BOUNDED_STEP;
                output(p,
                       op(p, id, bounded ? &bound : id == CORNU_OP_ELU ? &alpha : NULL,
                          (CornuValue[]){ a, b }, 1 + binary),
                       -1);
            }
            char name[64];
            snprintf(name, sizeof name, "%s x %lld", cornu_dtype_name(dtype),
                     (long long)counts[c]);
            check(p, dtype == CORNU_BF16 ? 8e-3 : dtype == CORNU_F16 ? 1e-3 : 3e-6, name);
            Compiled made = compile(cpu[0], p);
            assert_int_equal(statistics(&made)->fallbacks, 0);
            release(&made);
            cornu_program_free(p);
        }
    }
}

static void test_compare_select_convert(void **state)
{
    (void)state;
    for (int d = 0; d < CORNU_DTYPE_COUNT; d++) {
        CornuDtype    dtype = (CornuDtype)d;
        CornuProgram *p = cornu_program_create();
        CornuType     type = cornu_type(dtype, 13, 101);
        CornuValue    a = input(p, type), b = input(p, type);
        for (int c = CORNU_EQUAL; c <= CORNU_GREATER_EQUAL; c++) {
            CornuAttributes comparison = { .compare = { (CornuComparison)c } };
            CornuValue holds =
                op(p, CORNU_OP_COMPARE, &comparison, (CornuValue[]){ a, b }, 2);
            output(p, holds, -1);
            output(p, op(p, CORNU_OP_SELECT, NULL, (CornuValue[]){ holds, a, b }, 3), -1);
        }
        for (int to = 0; to < CORNU_DTYPE_COUNT; to++)
            output(p, convert(p, a, (CornuDtype)to), -1);
        if (cornu_dtype_is_float(dtype)) output(p, op1(p, CORNU_OP_IS_FINITE, a), -1);
        check(p, 0.0, cornu_dtype_name(dtype));
        Compiled made = compile(cpu[0], p);
        assert_int_equal(statistics(&made)->fallbacks, 0);
        release(&made);
        cornu_program_free(p);
    }
}

static void test_conversions_saturate(void **state)
{
    (void)state;
    static const double numbers[] = {
        0.0,          -0.0,          0.5,          -0.5,    1.5,     2.5,
        255.0,        256.0,         -1.0,         65504.0, 65520.0, 2147483647.0,
        2147483648.0, -2147483649.0, 4294967296.0, 9.3e18,  -9.3e18, INFINITY,
        -INFINITY,    NAN,           1e-7,
    };
    enum { COUNT = sizeof numbers / sizeof *numbers };
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_F64, COUNT));
    CornuValue    single = input(p, cornu_type(CORNU_F32, COUNT));
    for (int to = 0; to < CORNU_DTYPE_COUNT; to++) {
        output(p, convert(p, x, (CornuDtype)to), -1);
        output(p, convert(p, single, (CornuDtype)to), -1);
    }
    Compiled made = compile(cpu[0], p), wanted = compile(reference, p);
    float    singles[COUNT];
    for (int i = 0; i < COUNT; i++) singles[i] = (float)numbers[i];
    set_input(&made, 0, numbers), set_input(&made, 1, singles);
    set_input(&wanted, 0, numbers), set_input(&wanted, 1, singles);
    run(&made), run(&wanted);
    for (int i = 0; i < p->output_count; i++) {
        int64_t count;
        double *got = get_output(&made, i, &count),
               *expected = get_output(&wanted, i, &count);
        expect_close(got, expected, count, 0.0, "conversions", i);
        free(got), free(expected);
    }
    release(&made), release(&wanted);
    cornu_program_free(p);
}

static void test_broadcasts(void **state)
{
    (void)state;
    uint64_t seed = 5;
    static const int64_t extents[] = { 1, 2, 3, 5, 8, 17, 40 };
    for (int round = 0; round < 150; round++) {
        CornuShape to = { .rank = (int)draw(&seed, 6) }, from;
        for (int i = 0; i < to.rank; i++)
            to.extent[i] = extents[draw(&seed, to.rank < 4 ? 7 : 4)];
        from = (CornuShape){ .rank = (int)draw(&seed, to.rank + 1) };
        for (int i = 0; i < from.rank; i++) {
            int64_t extent = to.extent[to.rank - from.rank + i];
            from.extent[i] = draw(&seed, 2) ? extent : 1;
        }
        CornuProgram *p = cornu_program_create();
        CornuDtype    dtype = (CornuDtype)draw(&seed, CORNU_DTYPE_COUNT);
        if (dtype == CORNU_BOOL) dtype = CORNU_F32;
        CornuValue    x = input(p, cornu_type_from(dtype, from));
        CornuValue    y = input(p, cornu_type_from(dtype, to));
        CornuValue    wide = broadcast(p, x, to);
        output(p, op2(p, CORNU_OP_MAXIMUM, wide, y), -1);
        if (round % 3 == 0) output(p, wide, -1);
        check(p, 0.0, "broadcast");
        cornu_program_free(p);
    }
}

static void test_reductions_over_every_set_of_axes(void **state)
{
    (void)state;
    static const CornuDtype dtypes[] = { CORNU_F32, CORNU_F64, CORNU_I64, CORNU_I32,
                                         CORNU_BF16 };
    CornuShape              shapes[] = {
                     cornu_shape(300, 7, 40), cornu_shape(2, 3, 4, 5),  cornu_shape(5000, 10),
                     cornu_shape(3, 9000),    cornu_shape(2, 70, 5000), cornu_shape(100003),
                     cornu_shape(),           cornu_shape(1, 6, 1),
    };
    for (int d = 0; d < 5; d++)
        for (int s = 0; s < 8; s++) {
            /* only sums of f32 are cut into chunks, of which many elements make several */
            if (dtypes[d] != CORNU_F32 && cornu_shape_count(shapes[s]) > 100000) continue;
            CornuProgram *p = cornu_program_create();
            CornuValue    x = input(p, cornu_type_from(dtypes[d], shapes[s]));
            for (int64_t axes = 0; axes < 1 << shapes[s].rank; axes++) {
                output(p, reduce(p, CORNU_OP_REDUCE_SUM, x, axes), -1);
                output(p, reduce(p, CORNU_OP_REDUCE_MAX, x, axes), -1);
            }
            for (int axis = 0; axis < shapes[s].rank; axis++)
                output(
                    p,
                    op(p, CORNU_OP_ARGMAX, &(CornuAttributes){ .axis = { axis } }, &x, 1),
                    -1);
            check(p, dtypes[d] == CORNU_BF16 ? 4e-3 : 2e-6, cornu_dtype_name(dtypes[d]));
            Compiled made = compile(cpu[1], p);
            assert_int_equal(statistics(&made)->fallbacks, 0);
            release(&made);
            cornu_program_free(p);
        }
}

/* Sums of i64 keep all their digits, more than a double has. */
static void test_sums_of_large_integers(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_I64, 2, 2)), large = constant(p, CORNU_I64, 0x1p60);
    x = op2(p, CORNU_OP_ADD, x, broadcast(p, large, cornu_shape(2, 2)));
    output(p, reduce(p, CORNU_OP_REDUCE_SUM, x, 2), -1);
    output(p, reduce(p, CORNU_OP_REDUCE_MAX, x, 2), -1);
    Compiled made = compile(cpu[1], p);
    set_input(&made, 0, (const int64_t[]){ 1, 2, -1, -4 });
    run(&made);
    int64_t got[2][2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(cornu_buffer_read(made.outputs[i], cornu_array(got[i], CORNU_I64, 2)),
                         CORNU_OK);
    const int64_t expected[2][2] = { { (INT64_C(1) << 61) + 3, (INT64_C(1) << 61) - 5 },
                                     { (INT64_C(1) << 60) + 2, (INT64_C(1) << 60) - 1 } };
    assert_memory_equal(got, expected, sizeof got);
    release(&made);
    cornu_program_free(p);
}

/* A NaN wins wherever it is, infinities are numbers: along rows and columns reduced in several
 * pieces, with the NaN first, last or anywhere. */
static void test_a_nan_is_the_largest(void **state)
{
    (void)state;
    enum { MANY = 40000 };
    static const int places[] = { 0, 1, 7, 1023, 4096, 20000, MANY - 2, MANY - 1 };
    for (int dtype = 0; dtype < 2; dtype++)
        for (int columns = 1; columns <= 3; columns += 2) {
            CornuProgram *p = cornu_program_create();
            CornuValue    x = input(p, cornu_type(CORNU_F32, MANY, columns));
            if (dtype) x = convert(p, x, CORNU_BF16);
            output(p, reduce(p, CORNU_OP_REDUCE_MAX, x, 1), -1);
            output(p, reduce(p, CORNU_OP_REDUCE_MAX, x, 3), -1);
            Compiled made = compile(cpu[1], p);
            float   *numbers = calloc(MANY * (size_t)columns, sizeof *numbers);
            for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                float *at = &numbers[places[i] * columns + columns / 2];
                *at = NAN;
                numbers[(places[i] + 5) % MANY * columns + columns / 2] = INFINITY;
                set_input(&made, 0, numbers);
                run(&made);
                int64_t count;
                double *each = get_output(&made, 0, &count), *all = get_output(&made, 1, &count);
                for (int c = 0; c < columns; c++)
                    assert_true(c == columns / 2 ? isnan(each[c]) : each[c] == 0.0);
                assert_true(isnan(all[0]));
                free(each), free(all);
                *at = numbers[(places[i] + 5) % MANY * columns + columns / 2] = 0.0f;
            }
            free(numbers);
            release(&made);
            cornu_program_free(p);
        }
}

/* The first of the largest, where NaN is larger than everything else; rows of few numbers and of
 * many. */
static void test_argmax_of_ties_and_nan(void **state)
{
    (void)state;
    static const int64_t extents[] = { 10, 64, 200 };
    for (int e = 0; e < 3; e++) {
        const int64_t extent = extents[e];
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, 5, extent));
        output(p, op(p, CORNU_OP_ARGMAX, &(CornuAttributes){ .axis = { 1 } }, &x, 1), -1);
        Compiled made = compile(cpu[1], p);
        float    numbers[5 * 200], *row[5];
        for (int i = 0; i < 5; i++) row[i] = numbers + i * extent;
        for (int64_t i = 0; i < 5 * extent; i++) numbers[i] = -2.0f;
        row[1][7] = row[1][extent - 1] = 3.0f;
        row[2][extent - 2] = row[2][extent - 1] = NAN;
        row[3][0] = NAN, row[3][5] = INFINITY;
        row[4][extent - 1] = -1.0f;
        set_input(&made, 0, numbers);
        run(&made);
        int64_t count;
        double *got = get_output(&made, 0, &count);
        const double expected[] = { 0, 7, (double)extent - 2, 0, (double)extent - 1 };
        assert_int_equal(count, 5);
        for (int i = 0; i < 5; i++) assert_true(got[i] == expected[i]);
        free(got);
        release(&made);
        cornu_program_free(p);
    }
}

/* Rows by index, most of them of several indices or none. */
static void test_lookups(void **state)
{
    (void)state;
    static const int64_t    columns[] = { 1, 5, 1024, 1500 };
    static const CornuDtype dtypes[] = { CORNU_F32, CORNU_BF16 };
    const CornuAttributes   by_index = { .gather_grad = { .rows = 256, .dtype = CORNU_F32 } };
    for (int c = 0; c < 4; c++)
        for (int d = 0; d < 2; d++) {
            CornuProgram *p = cornu_program_create();
            CornuValue    table = input(p, cornu_type(dtypes[d], 256, columns[c]));
            CornuValue    indices = input(p, cornu_type(CORNU_U8, 300));
            CornuValue    d_y = input(p, cornu_type(dtypes[d], 300, columns[c]));
            output(p, op2(p, CORNU_OP_GATHER, table, indices), -1);
            output(p, op(p, CORNU_OP_GATHER_GRAD, &by_index, (CornuValue[]){ d_y, indices }, 2),
                   -1);
            check(p, 2e-6, "lookup");
            Compiled made = compile(cpu[0], p);
            assert_int_equal(statistics(&made)->fallbacks, 0);
            release(&made);
            cornu_program_free(p);
        }
}

static void test_moving_elements(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 120; round++) {
        CornuProgram *p = cornu_program_create();
        CornuDtype    dtype = (CornuDtype)draw(&seed, CORNU_DTYPE_COUNT);
        CornuShape    shape = { .rank = 1 + (int)draw(&seed, 5) };
        for (int i = 0; i < shape.rank; i++)
            shape.extent[i] = 1 + draw(&seed, shape.rank < 3 ? 90 : 9);
        CornuValue      x = input(p, cornu_type_from(dtype, shape));
        CornuAttributes permutation = { 0 }, slice = { 0 },
                        pad = { .pad = { .value = 1.0 } };
        for (int i = 0; i < shape.rank; i++) {
            int k = (int)draw(&seed, i + 1);
            permutation.permutation.axes[i] = permutation.permutation.axes[k];
            permutation.permutation.axes[k] = i;
            slice.slice.starts[i] = draw(&seed, shape.extent[i]);
            slice.slice.sizes[i] =
                1 + draw(&seed, shape.extent[i] - slice.slice.starts[i]);
            pad.pad.low[i] = draw(&seed, 4);
            pad.pad.high[i] = draw(&seed, 4);
        }
        output(p, op(p, CORNU_OP_TRANSPOSE, &permutation, &x, 1), -1);
        output(p, op(p, CORNU_OP_SLICE, &slice, &x, 1), -1);
        output(p, op(p, CORNU_OP_PAD, &pad, &x, 1), -1);
        CornuAttributes axis = { .axis = { draw(&seed, shape.rank) } };
        output(p, op(p, CORNU_OP_CONCAT, &axis, (CornuValue[]){ x, x, x }, 3), -1);
        check(p, 0.0, "move");
        cornu_program_free(p);
    }
}

/* Concat of many operands, more than other ops have, and of one that is empty. */
static void test_many_operands(void **state)
{
    (void)state;
    enum { MANY = 100 };
    for (int axis = 0; axis < 3; axis++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    in[MANY];
        for (int i = 0; i < MANY; i++) {
            CornuShape shape = cornu_shape(5, 7, 3);
            shape.extent[axis] = i % 9;
            in[i] = input(p, cornu_type_from(CORNU_F32, shape));
        }
        CornuAttributes attributes = { .axis = { axis } };
        output(p, op(p, CORNU_OP_CONCAT, &attributes, in, MANY), -1);
        check(p, 0.0, "concat");
        cornu_program_free(p);
    }
}

/* A long recurrence streams what it keeps for its gradient past the caches, but not with a mask:
 * the same bits, where the mask leaves nothing out. */
static void test_long_recurrences(void **state)
{
    (void)state;
    enum { BATCH = 40, STEPS = 50, UNITS = 160 };
    static const struct { CornuOpId id; int gates, results; } cells[] = {
        { CORNU_OP_LSTM, 4, 4 }, { CORNU_OP_GRU, 3, 2 },
    };
    for (int c = 0; c < 2; c++) {
        const int     columns = cells[c].gates * UNITS;
        CornuProgram *p = cornu_program_create();
        CornuValue    in[] = {
            input(p, cornu_type(CORNU_F32, BATCH, STEPS, columns)),
            input(p, cornu_type(CORNU_F32, UNITS, columns)),
            input(p, cornu_type(CORNU_F32, BATCH, UNITS)),
            cells[c].id == CORNU_OP_LSTM ? input(p, cornu_type(CORNU_F32, BATCH, UNITS))
                                         : input(p, cornu_type(CORNU_F32, columns)),
            input(p, cornu_type(CORNU_BOOL, BATCH, STEPS)),
        };
        for (int masked = 0; masked < 2; masked++) {
            const CornuValue first = op(p, cells[c].id, NULL, in, 4 + masked);
            for (int i = 0; i < cells[c].results; i++) output(p, first + i, -1);
        }
        Compiled made = compile(cpu[THREADS - 1], p);
        uint8_t none_left_out[BATCH * STEPS];
        memset(none_left_out, 1, sizeof none_left_out);
        set_inputs(&made, 3);
        set_input(&made, 4, none_left_out);
        run(&made);
        for (int i = 0; i < cells[c].results; i++) {
            int64_t count, same;
            double *got = get_output(&made, i, &count);
            double *want = get_output(&made, cells[c].results + i, &same);
            assert_int_equal(count, same);
            assert_memory_equal(got, want, (size_t)count * sizeof *got);
            free(got), free(want);
        }
        release(&made);
        cornu_program_free(p);
    }
}

/* With fewer rows than threads these divide the units of a step, of which the last register is not
 * whole: near the reference, and the bits of one thread. */
static void test_recurrences_of_few_rows(void **state)
{
    (void)state;
    enum { BATCH = 2, STEPS = 6, UNITS = 330 };
    static const struct { CornuOpId id; int gates, results; } cells[] = {
        { CORNU_OP_LSTM, 4, 4 }, { CORNU_OP_GRU, 3, 2 },
    };
    for (int c = 0; c < 2; c++)
        for (int reverse = 0; reverse < 2; reverse++) {
            const int             columns = cells[c].gates * UNITS;
            const CornuAttributes attributes = { .recurrence = { .reverse = reverse } };
            CornuProgram         *p = cornu_program_create();
            const CornuShape      kernel = cornu_shape(UNITS, columns);
            CornuValue            in[] = {
                input(p, cornu_type(CORNU_F32, BATCH, STEPS, columns)),
                op2(p, CORNU_OP_MULTIPLY, input(p, cornu_type_from(CORNU_F32, kernel)),
                    broadcast(p, constant(p, CORNU_F32, 0.05), kernel)),
                input(p, cornu_type(CORNU_F32, BATCH, UNITS)),
                cells[c].id == CORNU_OP_LSTM ? input(p, cornu_type(CORNU_F32, BATCH, UNITS))
                                             : input(p, cornu_type(CORNU_F32, columns)),
                input(p, cornu_type(CORNU_BOOL, BATCH, STEPS)),
            };
            const CornuValue first = op(p, cells[c].id, &attributes, in, 5);
            for (int i = 0; i < cells[c].results; i++) output(p, first + i, -1);
            check(p, 1e-5, "few rows");
            cornu_program_free(p);
        }
}

/* The first rows of x. */
static CornuValue first_rows(CornuProgram *p, CornuValue x, int64_t rows)
{
    const CornuShape shape = cornu_program_type(p, x).shape;
    CornuAttributes  slice = { 0 };
    for (int i = 0; i < shape.rank; i++) slice.slice.sizes[i] = i ? shape.extent[i] : rows;
    return op(p, CORNU_OP_SLICE, &slice, &x, 1);
}

/* A row of a recurrence has the same bits beside few others, where gates are multiplied at once, as
 * beside many; the last registers and the last panel of a gate are not whole. */
static void test_rows_of_recurrences(void **state)
{
    (void)state;
    enum { BATCH = 20, STEPS = 3, UNITS = 85, FEW = 4 };
    static const struct { CornuOpId id; int gates, results; } cells[] = {
        { CORNU_OP_LSTM, 4, 4 }, { CORNU_OP_GRU, 3, 2 },
    };
    for (int c = 0; c < 2; c++) {
        const bool    lstm = cells[c].id == CORNU_OP_LSTM;
        const int     columns = cells[c].gates * UNITS, results = cells[c].results;
        CornuProgram *p = cornu_program_create();
        CornuValue    in[] = {
            input(p, cornu_type(CORNU_F32, BATCH, STEPS, columns)),
            input(p, cornu_type(CORNU_F32, UNITS, columns)),
            input(p, cornu_type(CORNU_F32, BATCH, UNITS)),
            lstm ? input(p, cornu_type(CORNU_F32, BATCH, UNITS))
                 : input(p, cornu_type(CORNU_F32, columns)),
        };
        for (int64_t rows = 0; rows <= FEW; rows++) {
            const CornuValue few[] = {
                rows ? first_rows(p, in[0], rows) : in[0], in[1],
                rows ? first_rows(p, in[2], rows) : in[2],
                rows && lstm ? first_rows(p, in[3], rows) : in[3],
            };
            const CornuValue first = op(p, cells[c].id, NULL, few, 4);
            for (int i = 0; i < results; i++) output(p, first + i, -1);
        }
        Compiled made = compile(cpu[0], p);
        set_inputs(&made, 5);
        run(&made);
        for (int i = 0; i < (FEW + 1) * results; i++) {
            int64_t count, all;
            double *want = get_output(&made, i % results, &all);
            double *got = get_output(&made, i, &count);
            assert_memory_equal(got, want, (size_t)count * sizeof *got);
            free(got), free(want);
        }
        release(&made);
        cornu_program_free(p);
    }
}

static void test_faults_in_the_data(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuAttributes one_hot = { .one_hot = { 10, CORNU_F32 } };
    CornuAttributes random = { .random = { .rank = 1, .extents = { 4 } } };
    CornuValue      labels = input(p, cornu_type(CORNU_I32, 4)),
               at = input(p, cornu_scalar(CORNU_I64));
    assert_int_equal(cornu_program_scope(p, "loss"), CORNU_OK);
    output(p, op(p, CORNU_OP_ONE_HOT, &one_hot, &labels, 1), -1);
    output(p, op(p, CORNU_OP_RANDOM_UNIFORM, &random, (CornuValue[]){ at, at, at }, 3),
           -1);
    Compiled made = compile(cpu[1], p);
    set_input(&made, 0, (int32_t[]){ 0, 9, 10, 3 });
    assert_int_equal(cornu_executable_run(made.executable, made.inputs, made.outputs),
                     CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "loss"));
    assert_non_null(strstr(cornu_error_message(), "row 2"));
    set_input(&made, 0, (int32_t[]){ 0, 9, 1, 3 });
    set_input(&made, 1, (int64_t[]){ INT64_C(1) << 32 });
    assert_int_equal(cornu_executable_run(made.executable, made.inputs, made.outputs),
                     CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "random_uniform"));
    set_input(&made, 1, (int64_t[]){ 5 });
    run(&made);
    release(&made);
    cornu_program_free(p);
}

/* No device has a kernel for products of f64: they fall back, and the statistics name them. */
static void test_what_falls_back_is_named(void **state)
{
    (void)state;
    static const char *const names[] = { "cpu", "tpu" };
    static const double      a[] = { 1, 2, 3, 4, 5, 6 };
    const CornuAttributes    to_f64 = { .matmul = { .dtype = CORNU_F64 } };
    CornuProgram *p = cornu_program_create();
    CornuValue    in[] = { input(p, cornu_type(CORNU_F64, 2, 3)),
                           input(p, cornu_type(CORNU_F64, 3, 2)) };
    output(p, op(p, CORNU_OP_MATMUL, &to_f64, in, 2), -1);
    output(p, op1(p, CORNU_OP_RELU, input(p, cornu_type(CORNU_F32, 5))), -1);
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = cornu_device_open(names[d], .shards = 1);
        Compiled     made = compile(device, p);
        int64_t      count;
        assert_int_equal(statistics(&made)->fallbacks, 1);
        for (int id = 0; id < CORNU_OP_COUNT; id++)
            assert_int_equal(statistics(&made)->fell_back[id] != NULL, id == CORNU_OP_MATMUL);
        set_input(&made, 0, a), set_input(&made, 1, a);
        run(&made);
        double *product = get_output(&made, 0, &count);
        assert_memory_equal(product, ((double[]){ 22, 28, 49, 64 }), 4 * sizeof *product);
        free(product);
        release(&made);
        cornu_device_close(device);
    }
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise_ops_in_every_dtype),
        cmocka_unit_test(test_compare_select_convert),
        cmocka_unit_test(test_conversions_saturate),
        cmocka_unit_test(test_broadcasts),
        cmocka_unit_test(test_reductions_over_every_set_of_axes),
        cmocka_unit_test(test_sums_of_large_integers),
        cmocka_unit_test(test_a_nan_is_the_largest),
        cmocka_unit_test(test_argmax_of_ties_and_nan),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_moving_elements),
        cmocka_unit_test(test_many_operands),
        cmocka_unit_test(test_long_recurrences),
        cmocka_unit_test(test_recurrences_of_few_rows),
        cmocka_unit_test(test_rows_of_recurrences),
        cmocka_unit_test(test_faults_in_the_data),
        cmocka_unit_test(test_what_falls_back_is_named),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
