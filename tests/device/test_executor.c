/*
 * The executor of host devices, on the cpu device: against the reference device on
 * hand-made and random programs, with 1, 2 and 3 threads; what is fused, written in
 * place, copied; that a run allocates nothing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocations.h"
#include "programs.h"

enum { THREADS = 3 };

static CornuDevice *reference, *cpu[THREADS];   /* cpu[i] has i + 1 threads */

static int open_devices(void **state)
{
    (void)state;
    reference = cornu_device_open("reference");
    for (int i = 0; i < THREADS; i++) cpu[i] = cornu_device_open("cpu", .threads = i + 1);
    return reference && cpu[0] && cpu[1] && cpu[2] ? 0 : -1;
}

static int close_devices(void **state)
{
    (void)state;
    cornu_device_close(reference);
    for (int i = 0; i < THREADS; i++) cornu_device_close(cpu[i]);
    return 0;
}

static void expect_close(const double *got, const double *expected, int64_t count,
                         double tolerance, const char *what, int number)
{
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i])) largest = fmax(largest, fabs(expected[i]));
    for (int64_t i = 0; i < count; i++) {
        if (got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]))) continue;
        if (!(fabs(got[i] - expected[i]) <= tolerance * fmax(largest, 1e-3)))
            fail_msg("%s, output %d, element %lld: %.9g, expected %.9g, largest %.9g",
                     what, number, (long long)i, got[i], expected[i], largest);
    }
}

/* Runs the program twice on all devices: near the reference, and the same bits on any
 * threads. */
static void check(const CornuProgram *program, double tolerance, const char *what)
{
    Compiled wanted = compile(reference, program), made[THREADS];
    for (int t = 0; t < THREADS; t++) made[t] = compile(cpu[t], program);
    set_inputs(&wanted, 1);
    for (int t = 0; t < THREADS; t++) set_inputs(&made[t], 1);
    for (int round = 0; round < 2; round++) {
        run(&wanted);
        for (int t = 0; t < THREADS; t++) run(&made[t]);
        for (int i = 0; i < program->output_count; i++) {
            int64_t count;
            double *expected = get_output(&wanted, i, &count),
                   *first = get_output(&made[0], i, &count);
            CornuDtype dtype =
                cornu_program_type(program, program->outputs[i].value).dtype;
            expect_close(first, expected, count,
                         cornu_dtype_is_float(dtype) ? tolerance : 0.0, what, i);
            for (int t = 1; t < THREADS; t++) {
                double *got = get_output(&made[t], i, &count);
                if (memcmp(got, first, (size_t)count * sizeof *got) != 0)
                    fail_msg("%s, output %d: %d threads give other bits than 1", what, i,
                             t + 1);
                free(got);
            }
            free(first);
            free(expected);
        }
    }
    release(&wanted);
    for (int t = 0; t < THREADS; t++) release(&made[t]);
}

/* ---- One op at a time ---- */

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
                CornuAttributes alpha = { .alpha = { 0.7 } };
                bool            binary = cornu_op_input_count(id) == 2;
                output(p,
                       op(p, id, id == CORNU_OP_ELU ? &alpha : NULL,
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
            /* only sums of f32 are cut into chunks that many elements have several of */
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

/* ---- Fusion, memory, order ---- */

static void test_adam_is_one_pass_in_place(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuType       type = cornu_type(CORNU_F32, 300, 70);
    CornuValue      in[5], out[3];
    CornuAttributes adam = { .adam = { 0.9, 0.999, 1e-7 } };
    for (int i = 0; i < 4; i++) in[i] = input(p, type);
    in[4] = input(p, cornu_scalar(CORNU_F32));
    /* sqrt wants a positive second moment */
    CornuValue in_2 = in[2];
    in[2] = op1(p, CORNU_OP_ABSOLUTE, in_2);
    assert_int_equal(cornu_program_record(p, CORNU_OP_ADAM_UPDATE, &adam, in, 5, out),
                     CORNU_OK);
    for (int i = 0; i < 3; i++) output(p, out[i], i);
    check(p, 1e-6, "adam");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->kernels, 1);
    assert_int_equal(statistics(&made)->copies, 0);
    assert_int_equal(statistics(&made)->bytes_planned, 0);
    assert_int_equal(statistics(&made)->bytes_moved, 7 * 300 * 70 * 4 + 4);
    release(&made);
    cornu_program_free(p);
}

/* a' = b, b' = a: one of the two must be set aside. */
static void test_variables_that_trade_places(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    a = input(p, cornu_type(CORNU_F32, 50)),
               b = input(p, cornu_type(CORNU_F32, 50));
    output(p, b, 0);
    output(p, a, 1);
    check(p, 0.0, "trade");
    cornu_program_free(p);
}

/* The old value is fetched, read late, and the new one fetched too. */
static void test_readers_run_before_the_writer(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuType     type = cornu_type(CORNU_F32, 40, 30);
    CornuValue    w = input(p, type), x = input(p, type);
    CornuValue    new_w = op2(p, CORNU_OP_ADD, w, x);
    CornuValue    turned = op(p, CORNU_OP_TRANSPOSE,
                              &(CornuAttributes){ .permutation = { { 1, 0 } } }, &w, 1);
    output(p, w, -1);
    output(p, new_w, 0);
    output(p, turned, -1);
    output(p, new_w, -1);
    check(p, 0.0, "readers");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->copies,
                     2); /* the two fetches: of the old and the new */
    release(&made);
    cornu_program_free(p);
}

/* The transpose reads what the sum would overwrite, and the sum needs the transpose. */
static void test_copy_where_a_reader_needs_the_result(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuAttributes turn = { .permutation = { { 1, 0 } } };
    CornuValue      w = input(p, cornu_type(CORNU_F32, 30, 30));
    CornuValue      turned = op(p, CORNU_OP_TRANSPOSE, &turn, &w, 1);
    output(p, turned, 0);
    check(p, 0.0, "transposed in place");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->copies, 1);
    release(&made);
    cornu_program_free(p);
}

static void test_counters_take_no_kernel_each(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    iteration = input(p, cornu_scalar(CORNU_I64));
    CornuValue    total = input(p, cornu_scalar(CORNU_F64));
    CornuValue    loss = input(p, cornu_scalar(CORNU_F32));
    CornuValue    next = op2(p, CORNU_OP_ADD, iteration, constant(p, CORNU_I64, 1.0));
    CornuValue    beta =
        op2(p, CORNU_OP_POWER, constant(p, CORNU_F32, 0.9), convert(p, next, CORNU_F32));
    output(p, next, 0);
    output(p, op2(p, CORNU_OP_ADD, total, convert(p, loss, CORNU_F64)), 1);
    output(p, op2(p, CORNU_OP_SUBTRACT, constant(p, CORNU_F32, 1.0), beta), -1);
    check(p, 1e-6, "counters");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->fallbacks, 0);
    assert_int_equal(statistics(&made)->copies, 0);
    assert_int_equal(statistics(&made)->kernels, 2);
    release(&made);
    cornu_program_free(p);
}

static void test_views_and_equal_ops_cost_nothing(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuValue      x = input(p, cornu_type(CORNU_F32, 64, 32));
    CornuAttributes half = { .slice = { .starts = { 32, 0 }, .sizes = { 32, 32 } } };
    CornuValue      lower = op(p, CORNU_OP_SLICE, &half, &x, 1);
    CornuValue      flat = reshape(p, lower, cornu_shape(1024));
    CornuValue      once = op1(p, CORNU_OP_EXP, flat), again = op1(p, CORNU_OP_EXP, flat);
    op1(p, CORNU_OP_TANH, x);   /* nobody asks for it */
    CornuValue one = broadcast(p, constant(p, CORNU_F32, 1.0), cornu_shape(1024));
    output(p, op2(p, CORNU_OP_MULTIPLY, op2(p, CORNU_OP_ADD, once, again), one), -1);
    check(p, 1e-6, "views");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->kernels, 1);
    assert_int_equal(statistics(&made)->bytes_moved, 2 * 1024 * 4);
    release(&made);
    cornu_program_free(p);
}

/* Operands of concat and pack are made in the result; those that cannot be are copied: an input, a
 * value that is part of the result already, one that begins between two multiples of 64 bytes. */
static void test_what_is_put_together_is_made_there(void **state)
{
    (void)state;
    const CornuAttributes first = { .axis = { 0 } }, pack = { .pack = { 16, 96 } };
    for (int copied = 0; copied < 2; copied++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, 4, 8));
        CornuValue    y = input(p, cornu_type(CORNU_F32, 7));
        CornuValue    e = op1(p, CORNU_OP_EXP, x), t = op1(p, CORNU_OP_TANH, y);
        CornuValue    in[3] = { e, copied ? e : op1(p, CORNU_OP_TANH, x), copied ? x : e };
        CornuValue    joined = op(p, CORNU_OP_CONCAT, &first, in, copied ? 3 : 2);
        CornuValue    again[3] = { op1(p, CORNU_OP_NEGATIVE, y), t, copied ? y : joined };
        CornuValue    packed = op(p, CORNU_OP_PACK, &pack, again, 3);
        output(p, op1(p, CORNU_OP_ABSOLUTE, packed), -1);
        output(p, op1(p, CORNU_OP_NEGATIVE, joined), -1);
        check(p, 1e-6, "put together");
        Compiled made = compile(cpu[1], p);
        assert_int_equal(statistics(&made)->copies, copied ? 3 : 0);
        release(&made);
        cornu_program_free(p);
    }
}

/* exp(x) is needed before and after the transpose, which therefore cannot be inside a
 * group. */
static void test_groups_do_not_wait_for_themselves(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuAttributes turn = { .permutation = { { 1, 0 } } };
    CornuValue      x = input(p, cornu_type(CORNU_F32, 20, 20));
    CornuValue      e = op1(p, CORNU_OP_EXP, x);
    CornuValue      turned = op(p, CORNU_OP_TRANSPOSE, &turn, &e, 1);
    CornuValue      sum = op2(p, CORNU_OP_ADD, e, turned);
    output(p, op2(p, CORNU_OP_MULTIPLY, sum, x), -1);
    check(p, 1e-6, "round trip");
    Compiled made = compile(cpu[1], p);
    assert_int_equal(statistics(&made)->kernels, 3);
    release(&made);
    cornu_program_free(p);
}

static void test_dropout_drops_the_same_everywhere(void **state)
{
    (void)state;
    CornuShape shapes[] = { cornu_shape(128, 1000), cornu_shape(7, 3, 11),
                            cornu_shape(33), cornu_shape(2, 5000), cornu_shape() };
    for (int s = 0; s < 5; s++) {
        CornuProgram   *p = cornu_program_create();
        CornuValue      x = input(p, cornu_type_from(CORNU_F32, shapes[s]));
        CornuValue in[4] = { x, constant(p, CORNU_I64, 7.0), constant(p, CORNU_I64, 3.0),
                             input(p, cornu_scalar(CORNU_I64)) };
        CornuAttributes dropout = { .dropout = { 0.5, 4 } },
                        random = { .random = { .generator = 9 } };
        random.random.rank = shapes[s].rank;
        for (int i = 0; i < shapes[s].rank; i++)
            random.random.extents[i] = shapes[s].extent[i];
        output(p, op(p, CORNU_OP_DROPOUT, &dropout, in, 4), -1);
        output(p, op(p, CORNU_OP_RANDOM_UNIFORM, &random, in + 1, 3), -1);
        check(p, 1e-7, "dropout");
        Compiled made = compile(cpu[1], p);
        assert_int_equal(statistics(&made)->fallbacks, 0);
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

static void test_the_last_of_an_epilogue(void **state)
{
    (void)state;
    static const CornuOpId activations[] = { CORNU_OP_RELU, CORNU_OP_TANH,
                                             CORNU_OP_SIGMOID, CORNU_OP_ELU,
                                             CORNU_OP_EXP };
    for (int i = 0; i < 5; i++) {
        CornuProgram   *p = cornu_program_create();
        CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } },
                        elu = { .alpha = { 0.5 } };
        CornuValue      x = input(p, cornu_type(CORNU_F32, 100, 50));
        CornuValue      w = input(p, cornu_type(CORNU_F32, 50, 30)),
                   b = input(p, cornu_type(CORNU_F32, 30));
        CornuValue      y = op(p, CORNU_OP_MATMUL, &matmul, (CornuValue[]){ x, w }, 2);
        CornuValue z = op2(p, CORNU_OP_ADD, broadcast(p, b, cornu_shape(100, 30)), y);
        output(p,
               op(p, activations[i], activations[i] == CORNU_OP_ELU ? &elu : NULL, &z, 1),
               -1);
        check(p, 2e-6, cornu_op_name(activations[i]));
        Compiled made = compile(cpu[1], p);
        /* w is packed; exp is no activation of an epilogue, and follows as a group */
        if (statistics(&made)->fallbacks == 0)
            assert_int_equal(statistics(&made)->kernels,
                             activations[i] == CORNU_OP_EXP ? 3 : 2);
        release(&made);
        cornu_program_free(p);
    }
}

static int64_t bytes_moved(const CornuProgram *program, int shards)
{
    CornuDevice *tpu = cornu_device_open("tpu", .shards = shards);
    assert_non_null(tpu);
    CornuExecutable *executable = cornu_device_compile(tpu, program);
    assert_non_null(executable);
    const int64_t bytes = cornu_executable_statistics(executable)->bytes_moved;
    cornu_device_close(tpu);
    return bytes;
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

/* ---- Random programs ---- */

enum { MOST_VALUES = 200 };

/* A program under construction: values one may use, whether a value's rounding may differ
 * from the reference's, so that no comparison hangs on it. */
typedef struct {
    CornuProgram *p;
    uint64_t      seed;
    CornuValue    values[MOST_VALUES];
    bool          exact[MOST_VALUES];
    int           count;
} Generator;

static void keep(Generator *g, CornuValue value, bool exact)
{
    if (g->count == MOST_VALUES) return;
    g->values[g->count] = value;
    g->exact[g->count++] = exact;
}

/* A value, if possible of this dtype; -1 if there is none. */
static int pick(Generator *g, int dtype)
{
    for (int tries = 0; tries < 20; tries++) {
        int i = (int)draw(&g->seed, g->count);
        if (dtype < 0 || (int)cornu_program_type(g->p, g->values[i]).dtype == dtype)
            return i;
    }
    return -1;
}

/* Another value of the same type as value i: one that is there, one broadcast, or a
 * constant. */
static CornuValue partner(Generator *g, int i)
{
    CornuType type = cornu_program_type(g->p, g->values[i]);
    for (int tries = 0; tries < 10; tries++) {
        int k = pick(g, (int)type.dtype);
        if (k < 0) break;
        CornuType other = cornu_program_type(g->p, g->values[k]);
        if (cornu_type_equal(type, other)) return g->values[k];
        bool fits = other.shape.rank <= type.shape.rank;
        for (int a = 0; fits && a < other.shape.rank; a++) {
            int64_t extent = other.shape.extent[other.shape.rank - 1 - a];
            fits = extent == 1 || extent == type.shape.extent[type.shape.rank - 1 - a];
        }
        if (fits) return broadcast(g->p, g->values[k], type.shape);
    }
    return broadcast(g->p, constant(g->p, type.dtype, (double)(1 + draw(&g->seed, 3))),
                     type.shape);
}

static void add_random_op(Generator *g)
{
    static const CornuOpId unary[] = { CORNU_OP_NEGATIVE, CORNU_OP_ABSOLUTE,
                                       CORNU_OP_TANH,     CORNU_OP_SIGMOID,
                                       CORNU_OP_RELU,     CORNU_OP_SIN,
                                       CORNU_OP_COS,      CORNU_OP_ERF,
                                       CORNU_OP_SOFTPLUS };
    static const CornuOpId binary[] = { CORNU_OP_ADD, CORNU_OP_SUBTRACT,
                                        CORNU_OP_MULTIPLY, CORNU_OP_MAXIMUM,
                                        CORNU_OP_MINIMUM };
    CornuProgram *p = g->p;
    int           i = pick(g, draw(&g->seed, 4) ? (int)CORNU_F32 : -1);
    if (i < 0) return;
    CornuValue x = g->values[i];
    CornuType  type = cornu_program_type(p, x);
    bool is_float = cornu_dtype_is_float(type.dtype), number = type.dtype != CORNU_BOOL;
    CornuAttributes attributes = { 0 };
    switch (draw(&g->seed, 13)) {
    case 0: case 1:
        if (is_float) keep(g, op1(p, unary[draw(&g->seed, 9)], x), false);
        break;
    case 2: case 3: case 4:
        if (!number) break;
        x = op2(p, binary[draw(&g->seed, 5)], x, partner(g, i));
        /* bounded, or powers of powers would overflow */
        keep(g, is_float ? op1(p, CORNU_OP_TANH, x) : op2(p, CORNU_OP_MINIMUM, x,
             broadcast(p, constant(p, type.dtype, 20.0), type.shape)), !is_float);
        break;
    case 5:
        if (!g->exact[i]) break;
        attributes.compare.comparison = (CornuComparison)draw(&g->seed, 6);
        keep(g,
             op(p, CORNU_OP_COMPARE, &attributes,
                (CornuValue[]){ x,
                                broadcast(p, constant(p, type.dtype, 1.0), type.shape) },
                2),
             true);
        break;
    case 6: {
        int c = pick(g, CORNU_BOOL);
        if (c < 0 ||
            !cornu_shape_equal(cornu_program_type(p, g->values[c]).shape, type.shape))
            break;
        keep(g,
             op(p, CORNU_OP_SELECT, NULL,
                (CornuValue[]){ g->values[c], x, partner(g, i) }, 3),
             false);
        break;
    }
    case 7:
        keep(g, convert(p, x, draw(&g->seed, 2) || is_float ? CORNU_F32 : CORNU_F64),
             false);
        break;
    case 8: {
        int64_t    count = cornu_type_count(type);
        int64_t    part = count % 2 == 0 ? 2 : count % 3 == 0 ? 3 : 1;
        keep(g, reshape(p, x, cornu_shape(part, count / part)), g->exact[i]);
        break;
    }
    case 9:
        for (int a = 0; a < type.shape.rank; a++)
            attributes.permutation.axes[a] = type.shape.rank - 1 - a;
        keep(g, op(p, CORNU_OP_TRANSPOSE, &attributes, &x, 1), g->exact[i]);
        break;
    case 10:
        if (type.shape.rank == 0) break;
        for (int a = 0; a < type.shape.rank; a++)
            attributes.slice.sizes[a] = type.shape.extent[a];
        attributes.slice.starts[0] = draw(&g->seed, type.shape.extent[0]);
        attributes.slice.sizes[0] -= attributes.slice.starts[0];
        keep(g, op(p, CORNU_OP_SLICE, &attributes, &x, 1), g->exact[i]);
        break;
    case 11:
        if (!number) break;
        x = reduce(p, draw(&g->seed, 2) ? CORNU_OP_REDUCE_SUM : CORNU_OP_REDUCE_MAX, x,
                   draw(&g->seed, (int64_t)1 << type.shape.rank));
        keep(g, is_float ? op1(p, CORNU_OP_TANH, x) : x, false);
        break;
    case 12: {
        CornuValue in[4] = { x, constant(p, CORNU_I64, 5.0), constant(p, CORNU_I64, 1.0),
                             constant(p, CORNU_I64, 0.0) };
        attributes.dropout.rate = 0.25;
        if (type.dtype == CORNU_F32)
            keep(g, op(p, CORNU_OP_DROPOUT, &attributes, in, 4), false);
        break;
    }
    }
}

static CornuProgram *random_program(uint64_t seed)
{
    static const int64_t extents[] = { 1, 2, 3, 4, 7, 16, 33 };
    static const CornuDtype dtypes[] = { CORNU_F32, CORNU_F32, CORNU_F32, CORNU_F64,
                                         CORNU_I32, CORNU_I64, CORNU_BOOL };
    Generator g = { .p = cornu_program_create(), .seed = seed };
    CornuShape base = { .rank = 1 + (int)draw(&g.seed, 3) };
    for (int i = 0; i < base.rank; i++) base.extent[i] = extents[draw(&g.seed, 7)];
    if (draw(&g.seed, 6) == 0) base.extent[0] *= 300;
    for (int i = 0; i < 6; i++) {
        CornuShape shape = base;
        if (draw(&g.seed, 3) == 0) shape.rank = 0;
        for (int a = 0; a < shape.rank; a++)
            if (draw(&g.seed, 5) == 0) shape.extent[a] = 1;
        keep(&g, input(g.p, cornu_type_from(dtypes[draw(&g.seed, 7)], shape)), true);
    }
    int ops = 4 + (int)draw(&g.seed, 40);
    for (int i = 0; i < ops; i++) add_random_op(&g);
    for (int i = 0; i < 5; i++) output(g.p, g.values[draw(&g.seed, g.count)], -1);
    for (int i = 0; i < 6; i++)   /* some inputs are variables */
        for (int k = g.count - 1; k > i && draw(&g.seed, 4); k--) {
            if (!cornu_type_equal(cornu_program_type(g.p, g.values[k]),
                                  cornu_program_type(g.p, g.values[i])))
                continue;
            output(g.p, g.values[k], i);
            break;
        }
    return g.p;
}

static void test_random_programs(void **state)
{
    (void)state;
    const char *only = getenv("CORNU_TEST_SEED");
    for (uint64_t seed = 1; seed <= 400; seed++) {
        if (only && strtoull(only, NULL, 10) != seed) continue;
        char name[32];
        snprintf(name, sizeof name, "random program %d", (int)seed);
        CornuProgram *p = random_program(seed);
        check(p, 1e-4, name);
        cornu_program_free(p);
    }
}

static void test_a_run_allocates_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) skip();
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CornuProgram *p = random_program(seed);
        Compiled      made = compile(cpu[1], p);
        set_inputs(&made, seed);
        run(&made);
        int64_t before = allocations();
        for (int i = 0; i < 3; i++) run(&made);
        assert_int_equal(allocations(), before);
        release(&made);
        cornu_program_free(p);
    }
}

/* Each allocation of a compilation fails in turn: a status, no crash, no leak. */
static void test_compiling_without_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) skip();
    CornuProgram *p = random_program(3);
    for (int64_t i = 0;; i++) {
        CornuDevice *device = cornu_device_open("cpu", .threads = 1);
        allocations_fail_after(i);
        CornuExecutable *executable = cornu_device_compile(device, p);
        allocations_fail_after(NEVER);
        cornu_device_close(device);
        if (executable) break;
        assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
    cornu_program_free(p);
}

/* Products of f64 are no device's: they run all the same, and it is said which they were. */
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
            assert_int_equal(statistics(&made)->fell_back[id], id == CORNU_OP_MATMUL);
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
        cmocka_unit_test(test_moving_elements),
        cmocka_unit_test(test_adam_is_one_pass_in_place),
        cmocka_unit_test(test_variables_that_trade_places),
        cmocka_unit_test(test_readers_run_before_the_writer),
        cmocka_unit_test(test_copy_where_a_reader_needs_the_result),
        cmocka_unit_test(test_counters_take_no_kernel_each),
        cmocka_unit_test(test_views_and_equal_ops_cost_nothing),
        cmocka_unit_test(test_what_is_put_together_is_made_there),
        cmocka_unit_test(test_groups_do_not_wait_for_themselves),
        cmocka_unit_test(test_dropout_drops_the_same_everywhere),
        cmocka_unit_test(test_faults_in_the_data),
        cmocka_unit_test(test_the_last_of_an_epilogue),
        cmocka_unit_test(test_shards_share_packed_weights),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_a_run_allocates_nothing),
        cmocka_unit_test(test_compiling_without_memory),
        cmocka_unit_test(test_what_falls_back_is_named),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
