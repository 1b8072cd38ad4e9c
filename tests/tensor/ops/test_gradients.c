/* Gradients of composed functions, and those that finite differences cannot check. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../tensor/ops.h"
#include "../../expect.h"

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

static void a_loss_must_be_a_float_scalar(void **state)
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

/* Finite differences cannot show this: equal maxima share the gradient, as in JAX, and so do equal
 * operands of a maximum. */
static void ties_share_the_gradient(void **state)
{
    CornuGraph  *graph = cornu_graph_create(*state);
    CornuTensor *x[2] = { cornu_graph_input(graph, cornu_type(CORNU_F64, 2, 3)) };
    double       in[6] = { 1, 5, 5, 2, 5, 0 }, d[2][6];
    expect_ok(cornu_graph_feed(x[0], cornu_array(in, CORNU_F64, 2, 3)));
    run_gradients(cornu_op_reduce_max(x[0], 2, false), (double[]){ 3, 7 }, x, 1, d);
    assert_memory_equal(d[0], ((double[]){ 0, 1.5, 1.5, 0, 7, 0 }), sizeof d[0]);
    /* the maximum, 5, three times over all axes, kept or not */
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

/* The gradients, weighted by `factor`, of a gather, a broadcast and a product with respect to
 * values narrowed from f32: each is the sum of 301 ones. */
static void expect_sums_of_gradients(CornuDtype dtype, double factor, double expected)
{
    CornuDevice *cpu = cornu_device_open("cpu");
    CornuGraph  *graph = cornu_graph_create(cpu);
    CornuTensor *x[3], *narrow[3], *sums[3], *d[3];
    for (int i = 0; i < 3; i++) {
        x[i] = cornu_graph_input(graph, cornu_type(CORNU_F32, 1, 1));
        narrow[i] = cornu_op_convert(x[i], dtype);
    }
    const CornuType numbers = cornu_type(CORNU_I32, 301), ones = cornu_type(dtype, 301, 1);
    CornuTensor    *y[3] = { cornu_op_gather(narrow[0], cornu_op_constant(graph, numbers, 0)),
                             cornu_op_broadcast(narrow[1], ones.shape),
                             cornu_op_matmul(cornu_op_constant(graph, ones, 1), narrow[2]) };
    for (int i = 0; i < 3; i++) sums[i] = cornu_op_sum(cornu_op_convert(y[i], CORNU_F32));
    CornuTensor *sum = cornu_op_add(cornu_op_add(sums[0], sums[1]), sums[2]);
    expect_ok(cornu_gradients(cornu_op_scale(sum, factor), x, 3, d));
    float      got[3];
    CornuArray to[3];
    for (int i = 0; i < 3; i++) to[i] = cornu_array(&got[i], CORNU_F32, 1, 1);
    expect_ok(cornu_run(graph, d, 3, to));
    for (int i = 0; i < 3; i++)
        if (isinf(expected)) assert_true(isinf(got[i]));
        else assert_float_equal(got[i], expected, 0);
    cornu_graph_free(graph);
    cornu_device_close(cpu);
}

/* 301 is a number that bf16 would round to 300. */
static void gradients_of_what_was_narrowed_to_bf16_are_f32(void **state)
{
    (void)state;
    expect_sums_of_gradients(CORNU_BF16, 1.0, 301.0);
}

/* 301 times 256 exceeds f16's 65,504: a loss scale of 256 is too large. */
static void gradients_of_what_was_narrowed_to_f16_are_f16(void **state)
{
    (void)state;
    expect_sums_of_gradients(CORNU_F16, 128.0, 301.0 * 128.0);
    expect_sums_of_gradients(CORNU_F16, 256.0, INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_a_shared_value_add_up),
        cmocka_unit_test(second_derivatives),
        cmocka_unit_test(a_loss_must_be_a_float_scalar),
        cmocka_unit_test(ties_share_the_gradient),
        cmocka_unit_test(powers_of_zero_and_below),
        cmocka_unit_test(gradients_of_what_was_narrowed_to_bf16_are_f32),
        cmocka_unit_test(gradients_of_what_was_narrowed_to_f16_are_f16),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
