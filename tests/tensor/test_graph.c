/* Graphs: recording, variables, running, errors, rewriting, gradients of composed functions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../tensor/ops.h"

/* assert_int_equal that shows the library's message. */
static void expect_ok(CornuStatus status)
{
    if (status) fail_msg("%s: %s", cornu_status_name(status), cornu_error_message());
}

static int open_device(void **state)
{
    *state = cornu_device_open("reference");
    return *state ? 0 : -1;
}

static int close_device(void **state)
{
    cornu_device_close(*state);
    return 0;
}

static void expect_error(CornuStatus status, const char *part)
{
    assert_int_equal(cornu_error_take(), status);
    if (!strstr(cornu_error_message(), part))
        fail_msg("message '%s' lacks '%s'", cornu_error_message(), part);
}

/* ---- Running ---- */

static void feeds_and_fetches(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3));
    CornuTensor *sum = cornu_op_reduce_sum(cornu_op_scale(x, 2.0), 2, false);
    float        in[6] = { 1, 2, 3, 4, 5, 6 }, out[2];
    CornuArray   to = cornu_array(out, CORNU_F32, 2);
    assert_int_equal(cornu_graph_feed(x, cornu_array(in, CORNU_F32, 2, 3)), CORNU_OK);
    assert_int_equal(cornu_run(graph, &sum, 1, &to), CORNU_OK);
    assert_float_equal(out[0], 12, 0);
    assert_float_equal(out[1], 30, 0);
    in[0] = 10; /* it was copied */
    assert_int_equal(cornu_run(graph, &sum, 1, &to), CORNU_OK);
    assert_float_equal(out[0], 12, 0);
    cornu_graph_free(graph);
}

/* Elements in their order, the others as they were. */
static void feeds_in_parts(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3));
    CornuTensor *y = cornu_op_scale(x, 2.0);
    float        in[] = { 1, 2, 3 }, more[] = { 4, 5 }, out[6];
    CornuArray   to = cornu_array(out, CORNU_F32, 2, 3);
    assert_int_equal(cornu_graph_feed_part(x, 0, cornu_array(in, CORNU_F32, 3)), CORNU_OK);
    assert_int_equal(cornu_graph_feed_part(x, 2, cornu_array(more, CORNU_F32, 1, 2)), CORNU_OK);
    assert_int_equal(cornu_run(graph, &y, 1, &to), CORNU_OK);
    const float expected[] = { 2, 4, 8, 10, 0, 0 };
    for (int i = 0; i < 6; i++) assert_float_equal(out[i], expected[i], 0);
    assert_int_equal(cornu_graph_feed_part(x, 4, cornu_array(in, CORNU_F32, 3)), CORNU_ERR_SHAPE);
    assert_int_equal(cornu_graph_feed_part(x, -1, cornu_array(in, CORNU_F32, 3)), CORNU_ERR_SHAPE);
    assert_int_equal(cornu_graph_feed_part(y, 0, cornu_array(in, CORNU_F32, 3)),
                     CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_graph_feed_part(NULL, 0, cornu_array(in, CORNU_F32, 3)),
                     CORNU_ERR_ARGUMENT);
    cornu_graph_free(graph);
}

static void variables_change_once_per_run(void **state)
{
    CornuVariable *a = cornu_variable_create(*state, cornu_scalar(CORNU_F32), "a");
    CornuVariable *b = cornu_variable_create(*state, cornu_scalar(CORNU_I64), "b");
    CornuGraph    *graph = cornu_graph_create(*state);
    CornuTensor   *old = cornu_read(graph, a);
    assert_ptr_equal(old, cornu_read(graph, a));
    assert_int_equal(cornu_assign(a, cornu_op_shift(old, 1.5)), CORNU_OK);
    assert_int_equal(cornu_assign(b, cornu_op_shift(cornu_read(graph, b), 2.0)), CORNU_OK);
    float      seen;
    CornuArray to = cornu_array_from(&seen, cornu_scalar(CORNU_F32));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cornu_run(graph, &old, 1, &to), CORNU_OK);
        assert_float_equal(seen, 1.5 * i, 0); /* the value at the start of the run */
    }
    double value;
    assert_int_equal(cornu_variable_get(a, &value), CORNU_OK);
    assert_float_equal(value, 4.5, 0);
    assert_int_equal(cornu_variable_get(b, &value), CORNU_OK);
    assert_float_equal(value, 6, 0);

    /* A second assignment replaces the first, also after a run. */
    assert_int_equal(cornu_assign(a, cornu_op_constant_like(old, -1.0)), CORNU_OK);
    assert_int_equal(cornu_run(graph, NULL, 0, NULL), CORNU_OK);
    assert_int_equal(cornu_variable_get(a, &value), CORNU_OK);
    assert_float_equal(value, -1, 0);
    assert_int_equal(cornu_assign(a, cornu_op_constant_like(old, 7.0)), CORNU_OK);
    assert_int_equal(cornu_run(graph, NULL, 0, NULL), CORNU_OK); /* the same call as before */
    assert_int_equal(cornu_variable_get(a, &value), CORNU_OK);
    assert_float_equal(value, 7, 0);
    cornu_graph_free(graph);
    cornu_variable_free(a);
    cornu_variable_free(b);
}

/* Swapping two variables needs the old value of both. */
static void assignments_are_simultaneous(void **state)
{
    CornuVariable *a = cornu_variable_create(*state, cornu_type(CORNU_F32, 2), "a");
    CornuVariable *b = cornu_variable_create(*state, cornu_type(CORNU_F32, 2), "b");
    float          of_a[2] = { 1, 2 }, of_b[2] = { 3, 4 }, seen[2];
    CornuArray     to = cornu_array(seen, CORNU_F32, 2);
    cornu_variable_write(a, cornu_array(of_a, CORNU_F32, 2));
    cornu_variable_write(b, cornu_array(of_b, CORNU_F32, 2));
    CornuGraph *graph = cornu_graph_create(*state);
    assert_int_equal(cornu_assign(a, cornu_read(graph, b)), CORNU_OK);
    assert_int_equal(cornu_assign(b, cornu_read(graph, a)), CORNU_OK);
    assert_int_equal(cornu_run(graph, NULL, 0, NULL), CORNU_OK);
    cornu_variable_read(a, to);
    assert_memory_equal(seen, of_b, sizeof seen);
    cornu_variable_read(b, to);
    assert_memory_equal(seen, of_a, sizeof seen);
    cornu_graph_free(graph);
    cornu_variable_free(a);
    cornu_variable_free(b);
}

static void equal_programs_compile_once(void **state)
{
    const CornuStatistics *seen[2];
    CornuGraph            *graphs[2];
    for (int i = 0; i < 2; i++) {
        graphs[i] = cornu_graph_create(*state);
        CornuTensor *x = cornu_graph_input(graphs[i], cornu_type(CORNU_F32, 7, 3));
        CornuTensor *y = cornu_op_mean(cornu_op_tanh(x));
        assert_int_equal(cornu_graph_prepare(graphs[i], &y, 1), CORNU_OK);
        seen[i] = cornu_graph_statistics(graphs[i]);
    }
    assert_ptr_equal(seen[0], seen[1]);
    for (int i = 0; i < 2; i++) cornu_graph_free(graphs[i]);
}

/* ---- Errors ---- */

static void errors_name_both_sides(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state), *other = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 32, 100));
    CornuTensor *w = cornu_graph_input(graph, cornu_type(CORNU_F32, 128, 10));
    cornu_graph_scope(graph, "dense_2");
    /* The chain goes on through NULLs and keeps the first message. */
    CornuTensor *y = cornu_op_relu(cornu_op_add(cornu_op_matmul(x, w), x));
    assert_null(y);
    expect_error(CORNU_ERR_SHAPE, "dense_2: matmul");
    assert_non_null(strstr(cornu_error_message(), "(32, 100)"));
    assert_non_null(strstr(cornu_error_message(), "(128, 10)"));

    assert_null(cornu_op_add(x, w));
    expect_error(CORNU_ERR_SHAPE, "(32, 100) and (128, 10) cannot be broadcast");
    assert_null(cornu_op_add(x, cornu_graph_input(other, cornu_type(CORNU_F32, 32, 100))));
    expect_error(CORNU_ERR_ARGUMENT, "two graphs");
    assert_null(cornu_op_exp(NULL));
    expect_error(CORNU_ERR_ARGUMENT, "exp: operand 0 is NULL");
    assert_null(cornu_op_reshape(x, cornu_shape(7, CORNU_NONE)));
    expect_error(CORNU_ERR_SHAPE, "(32, 100)");

    float small[6];
    assert_int_not_equal(cornu_graph_feed(x, cornu_array(small, CORNU_F32, 2, 3)), CORNU_OK);
    assert_non_null(strstr(cornu_error_message(), "(2, 3)"));
    assert_int_equal(cornu_error_pending(), false);
    CornuVariable *v = cornu_variable_create(*state, cornu_type(CORNU_F32, 3), "v");
    assert_int_equal(cornu_assign(v, x), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "v: the variable is f32 (3,)"));
    cornu_variable_free(v);
    cornu_graph_free(graph);
    cornu_graph_free(other);
}

static void bad_labels_are_reported_by_the_run(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *labels = cornu_graph_input(graph, cornu_type(CORNU_U8, 3));
    CornuTensor *hot = cornu_op_one_hot(labels, 10, CORNU_F32);
    uint8_t      in[3] = { 1, 9, 11 };
    float        out[30];
    CornuArray   to = cornu_array(out, CORNU_F32, 3, 10);
    cornu_graph_feed(labels, cornu_array(in, CORNU_U8, 3));
    assert_int_equal(cornu_run(graph, &hot, 1, &to), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "11"));
    assert_non_null(strstr(cornu_error_message(), "row 2"));
    in[2] = 0;
    cornu_graph_feed(labels, cornu_array(in, CORNU_U8, 3));
    assert_int_equal(cornu_run(graph, &hot, 1, &to), CORNU_OK);
    assert_float_equal(out[20], 1, 0);
    cornu_graph_free(graph);
}

/* ---- Gradients ---- */

static void gradients_of_a_shared_value_add_up(void **state)
{
    /* f = sum(x y + x / y), df/dx = y + 1/y, df/dy = x - x/y^2; z is not used */
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 2));
    CornuTensor *y = cornu_graph_input(graph, cornu_type(CORNU_F64, 2));
    CornuTensor *z = cornu_graph_input(graph, cornu_type(CORNU_F64, 2));
    CornuTensor *f = cornu_op_sum(cornu_op_add(cornu_op_multiply(x, y), cornu_op_divide(x, y)));
    CornuTensor *d[3];
    assert_int_equal(cornu_gradients(f, (CornuTensor *[]){ x, y, z }, 3, d), CORNU_OK);
    double     of_x[2] = { 3, -1 }, of_y[2] = { 2, 0.5 }, seen[3][2];
    CornuArray to[3];
    for (int i = 0; i < 3; i++) to[i] = cornu_array(seen[i], CORNU_F64, 2);
    cornu_graph_feed(x, cornu_array(of_x, CORNU_F64, 2));
    cornu_graph_feed(y, cornu_array(of_y, CORNU_F64, 2));
    assert_int_equal(cornu_run(graph, d, 3, to), CORNU_OK);
    for (int i = 0; i < 2; i++) {
        assert_float_equal(seen[0][i], of_y[i] + 1 / of_y[i], 1e-15);
        assert_float_equal(seen[1][i], of_x[i] - of_x[i] / of_y[i] / of_y[i], 1e-15);
        assert_float_equal(seen[2][i], 0, 0);
    }
    cornu_graph_free(graph);
}

static void second_derivatives(void **state)
{
    /* f = sum(x^3 / 3 + exp(2x)); f'' = 2 x + 4 exp(2x) */
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 3));
    CornuTensor *cube = cornu_op_scale(cornu_op_multiply(cornu_op_square(x), x), 1.0 / 3);
    CornuTensor *power = cornu_op_exp(cornu_op_scale(x, 2.0)), *d, *dd;
    CornuTensor *f = cornu_op_sum(cornu_op_add(cube, power));
    assert_int_equal(cornu_gradients(f, &x, 1, &d), CORNU_OK);
    assert_int_equal(cornu_gradients(cornu_op_sum(d), &x, 1, &dd), CORNU_OK);
    double     at[3] = { -1, 0.25, 0.5 }, seen[3];
    CornuArray to = cornu_array(seen, CORNU_F64, 3);
    cornu_graph_feed(x, cornu_array(at, CORNU_F64, 3));
    assert_int_equal(cornu_run(graph, &dd, 1, &to), CORNU_OK);
    for (int i = 0; i < 3; i++)
        assert_float_equal(seen[i], 2 * at[i] + 4 * exp(2 * at[i]), 1e-12);
    cornu_graph_free(graph);
}

static void gradients_refuse_what_is_no_loss(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F32, 2)), *d;
    assert_int_equal(cornu_gradients(x, &x, 1, &d), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "f32 (2,)"));
    assert_int_equal(cornu_gradients(NULL, &x, 1, &d), CORNU_ERR_ARGUMENT);
    assert_false(cornu_error_pending());
    cornu_graph_free(graph);
}

/* Runs the gradients of the sum of weights y, in double; `d` has room for six elements of each. */
static void run_gradients(CornuTensor *y, const double *weights, CornuTensor *const *x, int count,
                          double (*d)[6])
{
    CornuTensor *w = cornu_graph_input(cornu_tensor_graph(y), cornu_tensor_type(y)), *made[2];
    CornuArray   to[2];
    expect_ok(cornu_graph_feed(w, cornu_array_from((void *)weights, cornu_tensor_type(y))));
    expect_ok(cornu_gradients(cornu_op_sum(cornu_op_multiply(y, w)), x, count, made));
    for (int i = 0; i < count; i++) to[i] = cornu_array_from(d[i], cornu_tensor_type(x[i]));
    expect_ok(cornu_run(cornu_tensor_graph(y), made, count, to));
}

/* Where differences tell nothing: equal maxima share the gradient, as in JAX, and so do equal
 * operands of a maximum. */
static void ties_share_the_gradient(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x[2] = { cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 3)) };
    double       in[6] = { 1, 5, 5, 2, 5, 0 }, d[2][6];
    expect_ok(cornu_graph_feed(x[0], cornu_array(in, CORNU_F64, 2, 3)));
    run_gradients(cornu_op_reduce_max(x[0], 2, false), (double[]){ 3, 7 }, x, 1, d);
    assert_memory_equal(d[0], ((double[]){ 0, 1.5, 1.5, 0, 7, 0 }), sizeof d[0]);
    /* 5 three times among all, its axes kept or not */
    for (int keep = 0; keep < 2; keep++) {
        run_gradients(cornu_op_reduce_max(x[0], CORNU_ALL_AXES, keep), (double[]){ 6 }, x, 1, d);
        assert_memory_equal(d[0], ((double[]){ 0, 2, 2, 0, 2, 0 }), sizeof d[0]);
    }
    x[1] = cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 3));
    expect_ok(cornu_graph_feed(x[1], cornu_array(((double[]){ 2, 5, 4, 2, 6, 0 }), CORNU_F64, 2,
                                                 3)));
    const double weights[] = { 1, 2, 3, 4, 5, 6 };
    run_gradients(cornu_op_maximum(x[0], x[1]), weights, x, 2, d);
    assert_memory_equal(d[0], ((double[]){ 0, 1, 3, 2, 0, 3 }), sizeof d[0]);
    assert_memory_equal(d[1], ((double[]){ 1, 1, 0, 2, 5, 3 }), sizeof d[1]);
    run_gradients(cornu_op_minimum(x[0], x[1]), weights, x, 2, d);
    assert_memory_equal(d[0], ((double[]){ 1, 1, 0, 2, 5, 3 }), sizeof d[0]);
    assert_memory_equal(d[1], ((double[]){ 0, 1, 3, 2, 0, 3 }), sizeof d[1]);
    cornu_graph_free(graph);
}

/* a^b by b is y log(a), which is 0, not 0 times minus infinity, where a is 0; and 0 where a is
 * negative, which has no logarithm. By a it is b a^(b - 1). */
static void powers_of_zero_and_below(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x[2];
    double       in[2][4] = { { 0, 0, -2, 2 }, { 2, 1, 2, 3 } }, d[2][6];
    for (int i = 0; i < 2; i++) {
        x[i] = cornu_graph_input(graph, cornu_type(CORNU_F64, 4));
        expect_ok(cornu_graph_feed(x[i], cornu_array(in[i], CORNU_F64, 4)));
    }
    run_gradients(cornu_op_power(x[0], x[1]), (double[]){ 1, 1, 1, 2 }, x, 2, d);
    const double by_a[] = { 0, 1, -4, 24 }, by_b[] = { 0, 0, 0, 16 * log(2) };
    for (int i = 0; i < 4; i++) {
        assert_float_equal(d[0][i], by_a[i], 0);
        assert_float_equal(d[1][i], by_b[i], 1e-14);
    }
    cornu_graph_free(graph);
}

/* 301 ones, a number that bf16 rounds to 300: sums over what was narrowed from f32, by index, over
 * what a broadcast repeats and in a product, stay f32. */
static void gradients_of_what_was_narrowed_are_f32(void **state)
{
    (void)state;
    CornuDevice *cpu = cornu_device_open("cpu");
    CornuGraph  *graph = cornu_graph_create(cpu);
    CornuTensor *x[3], *narrow[3], *sums[3], *d[3];
    for (int i = 0; i < 3; i++) {
        x[i] = cornu_graph_input(graph, cornu_type(CORNU_F32, 1, 1));
        narrow[i] = cornu_op_convert(x[i], CORNU_BF16);
    }
    const CornuType numbers = cornu_type(CORNU_I32, 301), ones = cornu_type(CORNU_BF16, 301, 1);
    CornuTensor    *y[3] = { cornu_op_gather(narrow[0], cornu_op_constant(graph, numbers, 0)),
                             cornu_op_broadcast(narrow[1], ones.shape),
                             cornu_op_matmul(cornu_op_constant(graph, ones, 1), narrow[2]) };
    for (int i = 0; i < 3; i++) sums[i] = cornu_op_sum(cornu_op_convert(y[i], CORNU_F32));
    expect_ok(cornu_gradients(cornu_op_add(cornu_op_add(sums[0], sums[1]), sums[2]), x, 3, d));
    float      got[3];
    CornuArray to[3];
    for (int i = 0; i < 3; i++) to[i] = cornu_array(&got[i], CORNU_F32, 1, 1);
    expect_ok(cornu_run(graph, d, 3, to));
    for (int i = 0; i < 3; i++) assert_float_equal(got[i], 301, 0);
    cornu_graph_free(graph);
    cornu_device_close(cpu);
}

/* ---- Rewriting ---- */

static const CornuProgramOp *find(const CornuProgram *program, CornuOpId id)
{
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].id == id) return &program->ops[i];
    return NULL;
}

static CornuShape made(const CornuProgram *program, const CornuProgramOp *op)
{
    return cornu_program_type(program, op->out_first).shape;
}

/* pool(relu(conv(x) + b)) becomes relu(pool(conv'(x)) + b), conv' without the row and column
 * that the pool drops; values and gradients stay. `keep` also fetches the activation, which
 * must then stand in the way of nothing. */
static void build(CornuGraph *graph, CornuTensor **in, CornuTensor **y)
{
    in[0] = cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 7, 9, 3));
    in[1] = cornu_graph_input(graph, cornu_type(CORNU_F64, 3, 3, 3, 4));
    in[2] = cornu_graph_input(graph, cornu_type(CORNU_F64, 4));
    CornuTensor *conv = cornu_op_conv2d(in[0], in[1], &(CornuConvolution){ .low = { 0 } });
    CornuTensor *relu = cornu_op_relu(cornu_op_add(conv, in[2]));
    *y = cornu_op_max_pool2d(relu, &(CornuWindow){ .size = { 2, 2 }, .strides = { 2, 2 } });
}

static double wave(int i) { return sin(1.7 * i + 0.3) + 0.01 * (i % 7); }

static void pools_move_before_bias_and_activation(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *in[3], *y, *d[3], *fetch[4];
    build(graph, in, &y);
    CornuTensor *loss = cornu_op_sum(cornu_op_square(y));
    expect_ok(cornu_gradients(loss, in, 3, d));
    memcpy(fetch, d, sizeof d);
    fetch[3] = loss;
    static double values[2 * 7 * 9 * 3], seen[3][2 * 7 * 9 * 3], total;
    CornuArray    to[4];
    for (int i = 0; i < 2 * 7 * 9 * 3; i++) values[i] = wave(i);
    for (int i = 0; i < 3; i++) {
        cornu_graph_feed(in[i], cornu_array_from(values, cornu_tensor_type(in[i])));
        to[i] = cornu_array_from(seen[i], cornu_tensor_type(in[i]));
    }
    to[3] = cornu_array_from(&total, cornu_scalar(CORNU_F64));
    expect_ok(cornu_run(graph, fetch, 4, to));

    const CornuProgram *program = cornu_graph_program(graph);
    CornuShape          conv = made(program, find(program, CORNU_OP_CONV2D));
    CornuShape          relu = made(program, find(program, CORNU_OP_RELU));
    assert_int_equal(conv.extent[1], 4); /* of 5 */
    assert_int_equal(conv.extent[2], 6); /* of 7 */
    assert_int_equal(relu.extent[1], 2);
    assert_int_equal(relu.extent[2], 3);

    /* The same by finite differences of the plain composition, computed by hand here. */
    const double step = 1e-6;
    for (int which = 0; which < 3; which++) {
        CornuType type = cornu_tensor_type(in[which]);
        for (int64_t i = 0; i < cornu_type_count(type); i += 5) {
            double side[2];
            for (int s = 0; s < 2; s++) {
                static double moved[2 * 7 * 9 * 3];
                memcpy(moved, values, sizeof moved);
                moved[i] += s ? step : -step;
                CornuGraph  *plain = cornu_graph_create(*state);
                CornuTensor *p[3], *p_y;
                build(plain, p, &p_y);
                CornuTensor *p_loss = cornu_op_sum(cornu_op_square(p_y));
                for (int k = 0; k < 3; k++)
                    cornu_graph_feed(p[k], cornu_array_from(k == which ? moved : values,
                                                            cornu_tensor_type(p[k])));
                CornuArray one = cornu_array_from(&side[s], cornu_scalar(CORNU_F64));
                assert_int_equal(cornu_run(plain, &p_loss, 1, &one), CORNU_OK);
                cornu_graph_free(plain);
            }
            assert_float_equal(seen[which][i], (side[1] - side[0]) / (2 * step), 1e-5);
        }
    }

    /* And the value, from the definition. */
    double expected = 0;
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++)
                for (int f = 0; f < 4; f++) {
                    double best = 0; /* relu */
                    for (int k = 0; k < 4; k++) {
                        double sum = values[f];
                        for (int u = 0; u < 3; u++)
                            for (int v = 0; v < 3; v++) {
                                int row = 2 * i + k / 2 + u, column = 2 * j + k % 2 + v;
                                for (int c = 0; c < 3; c++)
                                    sum += values[((b * 7 + row) * 9 + column) * 3 + c] *
                                           values[((u * 3 + v) * 3 + c) * 4 + f];
                            }
                        if (sum > best) best = sum;
                    }
                    expected += best * best;
                }
    assert_float_equal(total, expected, 1e-9 * expected);
    cornu_graph_free(graph);
}

/* A decreasing function must not move, and a value used twice stays where it is. */
static void what_may_not_move_stays(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 1, 4, 4, 1));
    CornuWindow  window = { .size = { 2, 2 }, .strides = { 2, 2 } };
    CornuTensor *falling = cornu_op_max_pool2d(cornu_op_negative(x), &window);
    CornuTensor *relu = cornu_op_relu(x);
    CornuTensor *twice = cornu_op_add(cornu_op_max_pool2d(relu, &window),
                                      cornu_op_average_pool2d(relu, &window));
    CornuTensor *fetch[2] = { falling, twice };
    double       in[16], out[2][4];
    for (int i = 0; i < 16; i++) in[i] = wave(i);
    CornuArray to[2] = { cornu_array(out[0], CORNU_F64, 1, 2, 2, 1),
                         cornu_array(out[1], CORNU_F64, 1, 2, 2, 1) };
    cornu_graph_feed(x, cornu_array(in, CORNU_F64, 1, 4, 4, 1));
    assert_int_equal(cornu_run(graph, fetch, 2, to), CORNU_OK);
    for (int i = 0; i < 4; i++) {
        double least = INFINITY, most = 0, mean = 0;
        for (int k = 0; k < 4; k++) {
            double v = in[(i / 2 * 2 + k / 2) * 4 + i % 2 * 2 + k % 2];
            if (v < least) least = v;
            if (v > most) most = v;
            mean += (v > 0 ? v : 0) / 4;
        }
        assert_float_equal(out[0][i], -least, 1e-15);
        assert_float_equal(out[1][i], most + mean, 1e-15);
    }
    cornu_graph_free(graph);
}

/* What a pool drops of a convolution with strides, dilation or padding, before biases that vary
 * along rows, columns or channels. A map that others read cannot be rewritten: the gradients of
 * both are the same. */
static void rewritten_pools_are_the_same(void **state)
{
    static const CornuConvolution convolutions[] = {
        { .strides = { 2, 2 } },
        { .dilation = { 2, 2 } },
        { .low = { 1, 2 }, .high = { 2, 1 } },
        { .strides = { 2, 1 }, .dilation = { 1, 2 }, .low = { 1, 1 } },
    };
    enum { H = 13, W = 15, IN = H * W * 2, FILTER = 3 * 2 * 2 * 3, MOST = H * W * 3 };
    static double x[IN], filter[FILTER], bias[MOST];
    for (int i = 0; i < IN; i++) x[i] = wave(i);
    for (int i = 0; i < FILTER; i++) filter[i] = wave(3 * i + 1);
    for (int i = 0; i < MOST; i++) bias[i] = wave(5 * i + 2);
    for (int k = 0; k < 16; k++) {
        static double seen[2][IN + FILTER + MOST];
        bool          moved[2];
        for (int besides = 0; besides < 2; besides++) {
            CornuGraph  *graph = cornu_graph_create(*state);
            CornuTensor *in[3] = { cornu_graph_input(graph, cornu_type(CORNU_F64, 1, H, W, 2)),
                                   cornu_graph_input(graph, cornu_type(CORNU_F64, 3, 2, 2, 3)) };
            CornuTensor *map = cornu_op_conv2d(in[0], in[1], &convolutions[k / 4]), *d[3];
            CornuShape   shape = cornu_tensor_shape(map);
            CornuType    of_bias = k % 4 == 0   ? cornu_type(CORNU_F64, 3)
                                   : k % 4 == 1 ? cornu_type(CORNU_F64, shape.extent[2], 3)
                                   : k % 4 == 2 ? cornu_type(CORNU_F64, shape.extent[1], 1, 3)
                                                : cornu_type(CORNU_F64, 1);
            in[2] = cornu_graph_input(graph, of_bias);
            CornuTensor *y = cornu_op_tanh(cornu_op_add(map, in[2]));
            CornuWindow  window = { .size = { 2, 3 }, .strides = { 2, 3 } };
            CornuTensor *loss = cornu_op_sum(cornu_op_square(cornu_op_max_pool2d(y, &window)));
            if (besides) {   /* times 0 */
                CornuTensor *none = cornu_op_scale(cornu_op_sum(cornu_op_add(map, y)), 0.0);
                loss = cornu_op_add(loss, none);
            }
            const double *from[3] = { x, filter, bias };
            CornuArray    to[3];
            double       *at = seen[besides];
            for (int i = 0; i < 3; i++) {
                const CornuType type = cornu_tensor_type(in[i]);
                expect_ok(cornu_graph_feed(in[i], cornu_array_from((void *)from[i], type)));
                to[i] = cornu_array_from(at, type);
                at += cornu_type_count(type);
            }
            expect_ok(cornu_gradients(loss, in, 3, d));
            expect_ok(cornu_run(graph, d, 3, to));
            const CornuProgram *program = cornu_graph_program(graph);
            const CornuShape    sum = made(program, find(program, CORNU_OP_ADD));
            moved[besides] = sum.extent[1] < shape.extent[1];
            for (int64_t i = 0; besides && i < at - seen[1]; i++)
                if (!(fabs(seen[0][i] - seen[1][i]) <= 1e-12))
                    fail_msg("case %d: gradient %lld is %.9g, expected %.9g", k, (long long)i,
                             seen[0][i], seen[1][i]);
            cornu_graph_free(graph);
        }
        assert_int_equal(moved[0], k % 4 == 0 || k % 4 == 3);
        assert_false(moved[1]);
    }
}

/* elu falls where its alpha is negative: of -1, -3, 0.5 and -0.1 with alpha -2 the largest comes
 * from -3, 2 - 2 exp(-3). */
static void a_falling_elu_stays_before_the_pool(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(CORNU_F64, 1, 2, 2, 1));
    CornuWindow  window = { .size = { 2, 2 }, .strides = { 2, 2 } };
    CornuTensor *y = cornu_op_max_pool2d(cornu_op_elu(x, -2.0), &window);
    double       in[] = { -1, -3, 0.5, -0.1 }, out;
    CornuArray   to = cornu_array(&out, CORNU_F64, 1, 1, 1, 1);
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F64, 1, 2, 2, 1)));
    expect_ok(cornu_run(graph, &y, 1, &to));
    assert_float_equal(out, 2 - 2 * exp(-3), 1e-15);
    cornu_graph_free(graph);
}

/* The row count of the result of the program's only op of this kind. */
static int64_t rows_of(const CornuProgram *program, CornuOpId id)
{
    int64_t rows = -1;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].id == id) {
            assert_int_equal(rows, -1);
            rows = cornu_program_type(program, program->ops[i].out_first).shape.extent[0];
        }
    return rows;
}

/* gather(E) W + b is gather(E W + b) where that is less work, with the same values and gradients as
 * one_hot(indices) E W + b, which no rewrite knows. */
static void products_of_lookups_are_looked_up(void **state)
{
    for (int rows = 3; rows <= 9; rows += 6) {
        CornuGraph  *graph = cornu_graph_create(*state);
        CornuTensor *e = cornu_op_sin(cornu_op_iota(graph, cornu_type(CORNU_F32, rows, 4), 0));
        CornuTensor *w = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 4, 5), 1));
        CornuTensor *indices = cornu_op_convert(
            cornu_op_scale(cornu_op_iota(graph, cornu_type(CORNU_F32, 2, 3), 1), 0.7), CORNU_I32);
        CornuTensor *b = cornu_op_cos(cornu_op_iota(graph, cornu_type(CORNU_F32, 5), 0));
        CornuTensor *y = cornu_op_matmul(
            cornu_op_reshape(cornu_op_gather(e, indices), cornu_shape(6, 4)), w);
        y = cornu_op_reshape(cornu_op_add(y, b), cornu_shape(2, 3, 5));
        CornuTensor *hot = cornu_op_one_hot(indices, rows, CORNU_F32);
        CornuTensor *same = cornu_op_matmul(cornu_op_matmul(hot, e), w), *d[6];
        float        got[30], want[30], d_got[61], d_want[61];
        same = cornu_op_add(same, b);
        expect_ok(cornu_run(graph, &y, 1, (CornuArray[]){ cornu_array(got, CORNU_F32, 2, 3, 5) }));
        assert_int_equal(rows_of(cornu_graph_program(graph), CORNU_OP_MATMUL), rows < 6 ? rows : 6);
        assert_int_equal(rows_of(cornu_graph_program(graph), CORNU_OP_ADD), rows < 6 ? rows : 6);
        expect_ok(cornu_run(graph, &same, 1, (CornuArray[]){ cornu_array(want, CORNU_F32, 2, 3,
                                                                        5) }));
        for (int i = 0; i < 30; i++) assert_true(fabsf(got[i] - want[i]) < 1e-6f);
        CornuTensor *x[3] = { e, w, b };
        expect_ok(cornu_gradients(cornu_op_sum(cornu_op_square(y)), x, 3, d));
        expect_ok(cornu_gradients(cornu_op_sum(cornu_op_square(same)), x, 3, d + 3));
        const int of_e = rows * 4;
        expect_ok(cornu_run(graph, d, 6, (CornuArray[]){
            cornu_array(d_got, CORNU_F32, rows, 4), cornu_array(d_got + of_e, CORNU_F32, 4, 5),
            cornu_array(d_got + of_e + 20, CORNU_F32, 5), cornu_array(d_want, CORNU_F32, rows, 4),
            cornu_array(d_want + of_e, CORNU_F32, 4, 5),
            cornu_array(d_want + of_e + 20, CORNU_F32, 5) }));
        for (int i = 0; i < of_e + 25; i++) assert_true(fabsf(d_got[i] - d_want[i]) < 1e-5f);
        cornu_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(feeds_and_fetches),
        cmocka_unit_test(feeds_in_parts),
        cmocka_unit_test(variables_change_once_per_run),
        cmocka_unit_test(assignments_are_simultaneous),
        cmocka_unit_test(equal_programs_compile_once),
        cmocka_unit_test(errors_name_both_sides),
        cmocka_unit_test(bad_labels_are_reported_by_the_run),
        cmocka_unit_test(gradients_of_a_shared_value_add_up),
        cmocka_unit_test(second_derivatives),
        cmocka_unit_test(gradients_refuse_what_is_no_loss),
        cmocka_unit_test(ties_share_the_gradient),
        cmocka_unit_test(powers_of_zero_and_below),
        cmocka_unit_test(gradients_of_what_was_narrowed_are_f32),
        cmocka_unit_test(pools_move_before_bias_and_activation),
        cmocka_unit_test(products_of_lookups_are_looked_up),
        cmocka_unit_test(what_may_not_move_stays),
        cmocka_unit_test(rewritten_pools_are_the_same),
        cmocka_unit_test(a_falling_elu_stays_before_the_pool),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
