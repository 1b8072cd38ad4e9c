/* How host devices compile a program: what is fused, written in place, copied. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../device/cpu/kernels.h"
#include "../../../../device/host/kernels/kernels.h"
#include "../../agreement.h"

/* So that a plan says which ran: each kernel of an op has another name, those that it hands its
 * calls to where something is joined have one, too. */
static void test_kernels_are_named(void **state)
{
    (void)state;
    CornuKernels *tables[] = { cornu__host_kernels, cornu__cpu_kernels };
    for (int t = 0; t < 2; t++)
        for (int id = 0; id < CORNU_OP_COUNT; id++)
            for (int i = 0; tables[t][id][i]; i++) {
                const CornuKernel *kernel = tables[t][id][i];
                assert_true(kernel->name && *kernel->name);
                assert_true(!kernel->summed || *kernel->summed->name);
                for (int k = 0; k < i; k++)
                    assert_string_not_equal(kernel->name, tables[t][id][k]->name);
            }
    assert_string_equal(cornu__host_kernels[CORNU_OP_CONV2D][0]->name, "conv2d_winograd");
}

/* A program of one convolution of f32 without padding. */
static CornuProgram *convolution(int64_t batch, int64_t extent, int64_t taps, int64_t channels,
                                 int64_t filters, int64_t stride)
{
    const CornuAttributes how = { .conv2d = { .strides = { stride, stride }, .dtype = CORNU_F32 } };
    CornuProgram         *p = cornu_program_create();
    CornuValue            in[2], y;
    in[0] = input(p, cornu_type(CORNU_F32, batch, extent, extent, channels));
    in[1] = input(p, cornu_type(CORNU_F32, taps, taps, channels, filters));
    assert_int_equal(cornu_program_record(p, CORNU_OP_CONV2D, &how, in, 2, &y), CORNU_OK);
    output(p, y, -1);
    return p;
}

/* A program of the gradient of such a convolution's filter. */
static CornuProgram *filter_gradient(int64_t batch, int64_t extent, int64_t taps, int64_t channels,
                                     int64_t filters)
{
    const CornuAttributes how = { .conv2d_grad = { .extents = { taps, taps },
                                                   .dtype = CORNU_F32 } };
    const int64_t         out = extent - taps + 1;
    CornuProgram         *p = cornu_program_create();
    CornuValue            in[2], d_filter;
    in[0] = input(p, cornu_type(CORNU_F32, batch, extent, extent, channels));
    in[1] = input(p, cornu_type(CORNU_F32, batch, out, out, filters));
    assert_int_equal(cornu_program_record(p, CORNU_OP_CONV2D_GRAD_FILTER, &how, in, 2, &d_filter),
                     CORNU_OK);
    output(p, d_filter, -1);
    return p;
}

/* Which kernel runs a program's last kernel step, and which it is asked after: "a: why; b: why". */
static void say_kernels(CornuProgram *p, char *to, size_t size)
{
    Compiled                   made = compile(cpu[1], p);
    CornuDeclined              declined[CORNU_MOST_DECLINED];
    int                        count, last = -1;
    const CornuExecutableStep *steps = cornu_executable_steps(made.executable, &count);
    for (int i = 0; i < count; i++)
        if (!strcmp(steps[i].kind, "kernel")) last = i;
    assert_true(last >= 0);
    size_t used = (size_t)snprintf(to, size, "%s", steps[last].kernel);
    assert_int_equal(cornu_executable_declined(made.executable, -1, declined), 0);
    assert_int_equal(cornu_executable_declined(made.executable, count, declined), 0);
    count = cornu_executable_declined(made.executable, last, declined);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(to + used, size - used, "; %s: %s", declined[i].kernel,
                                 declined[i].why);
    release(&made);
    cornu_program_free(p);
}

/* Those asked before the one that runs say what they need, with figures; of 64 channels and a map
 * of one output, 16 products of 64 by 64 and the transforms, 16 (64 64 + 2.5 4 (64 + 64)), cost
 * 2.33 of the 9 products of 64 by 64. */
static void test_kernels_say_why_they_declined(void **state)
{
    (void)state;
    char said[600];
    say_kernels(convolution(2, 32, 3, 16, 16, 1), said, sizeof said);
    assert_string_equal(said, "conv2d_winograd");
    say_kernels(convolution(2, 32, 3, 3, 16, 1), said, sizeof said);
    assert_non_null(strstr(said, "; conv2d_winograd: needs at least 12 channels, has 3; "));
    assert_non_null(strstr(said, "; conv2d_few: costs "));
    say_kernels(convolution(2, 32, 1, 16, 16, 2), said, sizeof said);
    assert_ptr_equal(strstr(said, "conv2d_direct; conv2d_winograd: needs 3 x 3 or 5 x 5 taps of "
                                  "each phase, no dilation; conv2d_shifted: "), said);
    assert_non_null(strstr(said, "; conv2d_few: needs strides of 1; "
                                 "conv2d_padded: needs bf16, and tile registers (AMX)"));
    say_kernels(convolution(2, 32, 3, 1, 32, 2), said, sizeof said);
    assert_non_null(strstr(said, "; conv2d_shifted: needs at most "));
    say_kernels(convolution(2, 3, 3, 64, 64, 1), said, sizeof said);
    assert_non_null(strstr(said, "; conv2d_winograd: costs 2.33 of conv2d_direct, estimated "
                                 "(at most 0.91 pays); "));
    say_kernels(filter_gradient(64, 30, 3, 32, 32), said, sizeof said);
    assert_string_equal(said, "conv2d_filter_winograd; "
                              "conv2d_filter_few: needs at most 7 filters, has 32");
    say_kernels(filter_gradient(2, 8, 2, 3, 4), said, sizeof said);
    assert_ptr_equal(strstr(said, "conv2d_filter; "
                                  "conv2d_filter_few: needs at least 16 channels, has 3; "
                                  "conv2d_filter_winograd: needs 3 x 3 taps of each phase, no "
                                  "dilation; "
                                  "conv2d_filter_tiles: needs bf16, and tile registers (AMX); "
                                  "conv2d_filter_pooled: needs a max pooling to be joined with; "
                                  "conv2d_filter_packed: needs "), said);
}

static void test_adam_is_one_pass_in_place(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuType       type = cornu_type(CORNU_F32, 300, 70);
    CornuValue      in[5], out[3];
    CornuAttributes adam = { .adam = { 0.9, 0.999, 1e-7 } };
    for (int i = 0; i < 4; i++) in[i] = input(p, type);
    in[4] = input(p, cornu_scalar(CORNU_F32));
    /* sqrt needs a positive second moment */
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

/* a' = b, b' = a: one of the two must be copied first. */
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
                     2); /* the two fetched values: the old and the new */
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

/* A mean that only a later group reads in registers, but that a sum also reads through a reshape:
 * it has to be in memory for the sum. */
static void test_a_sum_reads_through_a_reshape(void **state)
{
    (void)state;
    CornuProgram    *p = cornu_program_create();
    const CornuShape rows = cornu_shape(2, 2, 2);
    CornuValue       x = input(p, cornu_type(CORNU_F32, 2, 3, 4));
    CornuValue       third = constant(p, CORNU_F32, 1.0 / 3.0);
    CornuValue       mean = op2(p, CORNU_OP_MULTIPLY, reduce(p, CORNU_OP_REDUCE_SUM, x, 1 << 1),
                                broadcast(p, third, cornu_shape(2, 4)));
    CornuValue       seen = reshape(p, mean, rows);
    CornuAttributes  last = { .reduce = { .axes = 1 << 2, .keep = 1 } };
    CornuValue       sum = op(p, CORNU_OP_REDUCE_SUM, &last, &seen, 1);
    output(p, op2(p, CORNU_OP_SUBTRACT, seen, broadcast(p, sum, rows)), -1);
    check(p, 1e-6, "a sum through a reshape");
    cornu_program_free(p);
}

/* A counter that random numbers depend on is written in place; with one element everything is one
 * group, in which the counter would come first. */
static void test_a_counter_is_read_before_it_is_written(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    CornuValue      counter = input(p, cornu_scalar(CORNU_I64));
    CornuValue      next = op2(p, CORNU_OP_ADD, counter, constant(p, CORNU_I64, 1.0));
    CornuValue      seeds[3] = { constant(p, CORNU_I64, 7.0), counter,
                                 constant(p, CORNU_I64, 0.0) };
    CornuAttributes one = { .random = { .rank = 1, .extents = { 1 } } };
    CornuValue      uniform = op(p, CORNU_OP_RANDOM_UNIFORM, &one, seeds, 3);
    CornuValue      after = reshape(p, convert(p, next, CORNU_F32), cornu_shape(1));
    output(p, next, 0);
    output(p, op2(p, CORNU_OP_MULTIPLY, after, uniform), -1);
    check(p, 1e-6, "a counter");
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
    CornuAttributes ones = { .permutation = { .axes = { 2, 0, 3, 1 } } };   /* move alone */
    CornuValue      image = reshape(p, lower, cornu_shape(1, 1, 32, 32));
    CornuValue      flat = reshape(p, op(p, CORNU_OP_TRANSPOSE, &ones, &image, 1),
                                   cornu_shape(1024));
    CornuValue      once = op1(p, CORNU_OP_EXP, flat), again = op1(p, CORNU_OP_EXP, flat);
    op1(p, CORNU_OP_TANH, x);   /* dead */
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

/* Operands joined row by row are in pieces in the result, unless there is one row. */
static void test_rows_are_put_together_by_a_step(void **state)
{
    (void)state;
    for (int rows = 1; rows <= 2; rows++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, rows, 16, 2));
        CornuValue    in[2] = { op1(p, CORNU_OP_EXP, x), op1(p, CORNU_OP_TANH, x) };
        CornuValue    joined = op(p, CORNU_OP_CONCAT, &(CornuAttributes){ .axis = { 1 } }, in, 2);
        output(p, reduce(p, CORNU_OP_REDUCE_SUM, joined, 4), -1);
        check(p, 1e-6, "rows put together");
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

static void test_the_last_of_an_epilogue(void **state)
{
    (void)state;
    static const CornuOpId activations[] = { CORNU_OP_RELU, CORNU_OP_TANH,
                                             CORNU_OP_SIGMOID, CORNU_OP_ELU,
                                             CORNU_OP_BOUNDED_RELU, CORNU_OP_EXP };
    for (int i = 0; i < 6; i++) {
        CornuProgram   *p = cornu_program_create();
        CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } },
                        elu = { .alpha = { 0.5 } }, bounded = { .bound = { 0.5 } };
        CornuValue      x = input(p, cornu_type(CORNU_F32, 100, 50));
        CornuValue      w = input(p, cornu_type(CORNU_F32, 50, 30)),
                   b = input(p, cornu_type(CORNU_F32, 30));
        CornuValue      y = op(p, CORNU_OP_MATMUL, &matmul, (CornuValue[]){ x, w }, 2);
        CornuValue z = op2(p, CORNU_OP_ADD, broadcast(p, b, cornu_shape(100, 30)), y);
        output(p,
               op(p, activations[i], activations[i] == CORNU_OP_ELU ? &elu
                                   : activations[i] == CORNU_OP_BOUNDED_RELU ? &bounded : NULL,
                  &z, 1),
               -1);
        check(p, 2e-6, cornu_op_name(activations[i]));
        Compiled made = compile(cpu[1], p);
        /* w is packed; exp is not an activation of epilogues, and follows as a group */
        if (statistics(&made)->fallbacks == 0)
            assert_int_equal(statistics(&made)->kernels,
                             activations[i] == CORNU_OP_EXP ? 3 : 2);
        release(&made);
        cornu_program_free(p);
    }
}

/* x w + b and x w + b + c: the second bias is added after the first, not in place of it.
 * With ones of (20, 4) by (4, 2) and 1 and 100 they are 5 and 105. */
static void test_a_second_bias_is_added(void **state)
{
    (void)state;
    enum { ROWS = 20 };
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_F32, ROWS, 4));
    CornuValue    w = input(p, cornu_type(CORNU_F32, 4, 2));
    CornuValue    y = op(p, CORNU_OP_MATMUL, &(CornuAttributes){ .matmul = { .dtype = CORNU_F32 } },
                         (CornuValue[]){ x, w }, 2);
    for (int i = 0; i < 2; i++) {
        CornuValue b = broadcast(p, input(p, cornu_type(CORNU_F32, 2)), cornu_shape(ROWS, 2));
        y = op2(p, CORNU_OP_ADD, y, b);
    }
    output(p, op1(p, CORNU_OP_RELU, y), -1);
    check(p, 2e-6, "two biases");
    Compiled made = compile(cpu[1], p);
    float    ones[ROWS * 4];
    for (int i = 0; i < ROWS * 4; i++) ones[i] = 1;
    for (int i = 0; i < 3; i++) set_input(&made, i, ones);
    set_input(&made, 3, (const float[]){ 100, -100 });
    run(&made);
    int64_t count;
    double *got = get_output(&made, 0, &count);
    for (int64_t i = 0; i < count; i++) assert_true(got[i] == (i % 2 ? 0.0 : 105.0));
    free(got);
    release(&made);
    cornu_program_free(p);
}

/* Values between a kernel, its bias, activation and pool stay what they are for others that read
 * them. */
static void test_what_others_read_is_not_fused_away(void **state)
{
    (void)state;
    const CornuAttributes matmul = { .matmul = { .dtype = CORNU_F32 } },
                          conv = { .conv2d = { .dtype = CORNU_F32 } },
                          window = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    for (int others = 0; others < 8; others++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    in[2] = { input(p, cornu_type(CORNU_F32, 20, 30)),
                                input(p, cornu_type(CORNU_F32, 30, 10)) };
        CornuValue    b = broadcast(p, input(p, cornu_type(CORNU_F32, 10)), cornu_shape(20, 10));
        CornuValue    y = op(p, CORNU_OP_MATMUL, &matmul, in, 2);
        CornuValue    biased = op2(p, CORNU_OP_ADD, y, b);
        CornuValue    z = op1(p, CORNU_OP_RELU, biased);
        output(p, z, -1);
        if (others & 1) output(p, op1(p, CORNU_OP_TANH, y), -1);
        if (others & 2) output(p, op1(p, CORNU_OP_TANH, biased), -1);
        if (others & 4) output(p, y, -1);
        CornuValue images[2] = { input(p, cornu_type(CORNU_F32, 3, 8, 8, 4)),
                                 input(p, cornu_type(CORNU_F32, 3, 3, 4, 16)) };
        CornuValue map = op(p, CORNU_OP_CONV2D, &conv, images, 2);
        output(p, op(p, CORNU_OP_MAX_POOL2D, &window, &map, 1), -1);
        if (others & 1) output(p, op1(p, CORNU_OP_TANH, map), -1);
        if (others & 4) output(p, map, -1);
        check(p, 4e-6, "read by others");
        cornu_program_free(p);
    }
}

/* The signs of zeros: x - 0 is x, x - (-0) and x + 0 are not where x is -0. 1 / y shows the sign.
 * */
static void test_zeros_keep_their_signs(void **state)
{
    (void)state;
    static const struct { CornuOpId id; double number; bool first; double expected; } cases[] = {
        { CORNU_OP_SUBTRACT, 0.0, false, -INFINITY }, { CORNU_OP_SUBTRACT, -0.0, false, INFINITY },
        { CORNU_OP_ADD, 0.0, false, INFINITY },       { CORNU_OP_ADD, 0.0, true, INFINITY },
        { CORNU_OP_ADD, -0.0, false, -INFINITY },     { CORNU_OP_SUBTRACT, 0.0, true, INFINITY },
        { CORNU_OP_MULTIPLY, 1.0, true, -INFINITY },  { CORNU_OP_MULTIPLY, -1.0, false, INFINITY },
        { CORNU_OP_DIVIDE, 1.0, false, -INFINITY },   { CORNU_OP_MULTIPLY, 0.0, false, -INFINITY },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuProgram *p = cornu_program_create();
        CornuValue    x = input(p, cornu_type(CORNU_F32, 3));
        CornuValue    c = broadcast(p, constant(p, CORNU_F32, cases[i].number), cornu_shape(3));
        CornuValue    one = broadcast(p, constant(p, CORNU_F32, 1.0), cornu_shape(3));
        CornuValue    y = op2(p, cases[i].id, cases[i].first ? c : x, cases[i].first ? x : c);
        output(p, op2(p, CORNU_OP_DIVIDE, one, y), -1);
        for (int device = 0; device < 2; device++) {
            Compiled made = compile(device ? cpu[0] : reference, p);
            int64_t  count;
            set_input(&made, 0, (const float[]){ -0.0f, -0.0f, -0.0f });
            run(&made);
            double *got = get_output(&made, 0, &count);
            for (int k = 0; k < 3; k++)
                if (got[k] != cases[i].expected)
                    fail_msg("case %zu: 1 / y is %g, expected %g", i, got[k], cases[i].expected);
            free(got);
            release(&made);
        }
        cornu_program_free(p);
    }
}

/* A relu's slope after an input gradient does not take a kernel of its own, unless others read the
 * slope or the gradient. */
static void check_slope_after(CornuOpId id, int channels, int others, double bound)
{
    const bool    depthwise = id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
    const int64_t filters = depthwise ? channels : 4;
    const CornuAttributes plain = { .conv2d_grad = { .dtype = CORNU_F32, .extents = { 9, 8 } } };
    const CornuAttributes grouped = { .grouped_conv2d_grad = {
        .dtype = CORNU_F32, .extents = { 9, 8 }, .groups = channels } };
    CornuProgram *p = cornu_program_create();
    CornuValue    d_y = input(p, cornu_type(CORNU_F32, 5, 7, 6, filters));
    CornuValue    w = input(p, cornu_type(CORNU_F32, 3, 3, depthwise ? 1 : channels, filters));
    CornuValue    y = input(p, cornu_type(CORNU_F32, 5, 9, 8, channels));
    CornuValue    d_x = op(p, id, depthwise ? &grouped : &plain, (CornuValue[]){ d_y, w }, 2);
    const CornuAttributes bounded = { .bound = { bound } };
    CornuValue    slope = bound > 0.0 ? op(p, CORNU_OP_BOUNDED_STEP, &bounded, &y, 1)
                                      : op1(p, CORNU_OP_STEP, y);
    output(p, op2(p, CORNU_OP_MULTIPLY, others == 1 ? slope : d_x, others == 1 ? d_x : slope), -1);
    if (others == 2) output(p, d_x, -1);
    check(p, 2e-6, "gated");
    Compiled made = compile(cpu[1], p);
    if (statistics(&made)->fallbacks == 0)   /* w is packed, unless it is depthwise */
        assert_int_equal(statistics(&made)->kernels, (others == 2 ? 3 : 2) - depthwise);
    release(&made);
    cornu_program_free(p);
}

static void test_the_slope_after_a_gradient(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int    others = i / 2;
        const double bound = i % 2 * 0.5;   /* 0: none */
        check_slope_after(CORNU_OP_CONV2D_GRAD_INPUT, 2, others, bound);   /* few, and many */
        check_slope_after(CORNU_OP_CONV2D_GRAD_INPUT, 35, others, bound);
        check_slope_after(CORNU_OP_GROUPED_CONV2D_GRAD_INPUT, 35, others, bound);
    }
}

/* A relu after a batch_norm does not take a kernel of its own, with a bound or without, unless
 * others read what it reads; another activation does. */
static void test_the_relu_after_a_batch_norm(void **state)
{
    (void)state;
    static const struct { CornuOpId id; bool read; int kernels; } cases[] = {
        { CORNU_OP_RELU, false, 1 }, { CORNU_OP_RELU, true, 2 }, { CORNU_OP_TANH, false, 2 },
        { CORNU_OP_BOUNDED_RELU, false, 1 },
    };
    const CornuAttributes bound = { .bound = { 0.5 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const CornuAttributes epsilon = { .epsilon = { .epsilon = 1e-3 } };
        CornuProgram *p = cornu_program_create();
        CornuValue    in[4] = { input(p, cornu_type(CORNU_F32, 6, 5, 4, 12)),
                                input(p, cornu_type(CORNU_F32, 12)),
                                input(p, cornu_type(CORNU_F32, 12)),
                                constant(p, CORNU_I64, 5.0) }, out[3];
        assert_int_equal(cornu_program_record(p, CORNU_OP_BATCH_NORM, &epsilon, in, 4, out),
                         CORNU_OK);
        output(p, op(p, cases[i].id, cases[i].id == CORNU_OP_BOUNDED_RELU ? &bound : NULL, out, 1),
               -1);
        output(p, out[1], -1);
        output(p, out[2], -1);
        if (cases[i].read) output(p, out[0], -1);
        check(p, 1e-5, "batch_norm");
        Compiled made = compile(cpu[1], p);
        if (statistics(&made)->fallbacks == 0)   /* and one that writes the count */
            assert_int_equal(statistics(&made)->kernels, cases[i].kernels + 1);
        release(&made);
        cornu_program_free(p);
    }
}

/* y + a broadcast part of y: a result that took over the memory of y would change that part. */
static void test_a_part_is_read_besides_the_whole(void **state)
{
    (void)state;
    const CornuAttributes product = { .matmul = { .dtype = CORNU_F32 } };
    const CornuAttributes part = { .slice = { { 0 }, { 64 } } };
    CornuProgram *p = cornu_program_create();
    CornuValue    in[2] = { input(p, cornu_type(CORNU_F32, 64, 3)),
                            input(p, cornu_type(CORNU_F32, 3, 64)) };
    CornuValue    y = op(p, CORNU_OP_MATMUL, &product, in, 2);
    CornuValue    row = reshape(p, y, cornu_shape(64 * 64));
    row = op(p, CORNU_OP_SLICE, &part, &row, 1);
    CornuValue sum = op2(p, CORNU_OP_ADD, y, broadcast(p, row, cornu_shape(64, 64)));
    output(p, reduce(p, CORNU_OP_REDUCE_SUM, sum, 1), -1);
    check(p, 1e-5, "a part besides the whole");
    cornu_program_free(p);
}

/* One operand of a join is made in place, the others are that one again and a part of it, which are
 * moved; and the result is joined with its own operand once more. */
static void test_put_together_with_its_own_part(void **state)
{
    (void)state;
    const CornuAttributes part = { .slice = { { 0 }, { 16 } } };
    CornuProgram *p = cornu_program_create();
    CornuValue    x = op1(p, CORNU_OP_RELU, input(p, cornu_type(CORNU_F32, 48))), in[3] = { x, x };
    in[1] = reshape(p, x, cornu_shape(6, 8));
    in[1] = reshape(p, in[1], cornu_shape(48));
    in[2] = op(p, CORNU_OP_SLICE, &part, &in[1], 1);
    const CornuValue once = op(p, CORNU_OP_CONCAT, NULL, in, 3);
    output(p, op(p, CORNU_OP_CONCAT, NULL, (CornuValue[]){ once, x }, 2), -1);
    check(p, 0.0, "put together with its own part");
    cornu_program_free(p);
}

/* A broadcast of a broadcast is a convolution's operand: one group writes out what another one
 * reads. */
static void test_a_broadcast_of_what_was_written_out(void **state)
{
    (void)state;
    const CornuAttributes product = { .matmul = { .transpose_a = 1, .dtype = CORNU_F32 } };
    CornuProgram *p = cornu_program_create();
    CornuValue    in[2] = { input(p, cornu_type(CORNU_F32, 1, 1)),
                            input(p, cornu_type(CORNU_F32, 12, 5)) };
    CornuValue    x = broadcast(p, in[0], cornu_shape(4, 3));
    x = broadcast(p, reshape(p, x, cornu_shape(4, 3, 1)), cornu_shape(4, 3, 2));
    in[0] = reshape(p, x, cornu_shape(12, 2));
    output(p, op(p, CORNU_OP_MATMUL, &product, in, 2), -1);
    check(p, 1e-5, "a broadcast of a broadcast");
    cornu_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_are_named),
        cmocka_unit_test(test_kernels_say_why_they_declined),
        cmocka_unit_test(test_adam_is_one_pass_in_place),
        cmocka_unit_test(test_variables_that_trade_places),
        cmocka_unit_test(test_readers_run_before_the_writer),
        cmocka_unit_test(test_copy_where_a_reader_needs_the_result),
        cmocka_unit_test(test_a_sum_reads_through_a_reshape),
        cmocka_unit_test(test_a_counter_is_read_before_it_is_written),
        cmocka_unit_test(test_counters_take_no_kernel_each),
        cmocka_unit_test(test_views_and_equal_ops_cost_nothing),
        cmocka_unit_test(test_what_is_put_together_is_made_there),
        cmocka_unit_test(test_rows_are_put_together_by_a_step),
        cmocka_unit_test(test_groups_do_not_wait_for_themselves),
        cmocka_unit_test(test_dropout_drops_the_same_everywhere),
        cmocka_unit_test(test_the_last_of_an_epilogue),
        cmocka_unit_test(test_a_second_bias_is_added),
        cmocka_unit_test(test_what_others_read_is_not_fused_away),
        cmocka_unit_test(test_zeros_keep_their_signs),
        cmocka_unit_test(test_the_slope_after_a_gradient),
        cmocka_unit_test(test_the_relu_after_a_batch_norm),
        cmocka_unit_test(test_a_part_is_read_besides_the_whole),
        cmocka_unit_test(test_put_together_with_its_own_part),
        cmocka_unit_test(test_a_broadcast_of_what_was_written_out),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
