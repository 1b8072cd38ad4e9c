/* Graphs: recording, variables, running, errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../tensor/ops.h"

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
    CornuTensor *other = cornu_op_shift(sum, 1.0);
    assert_int_equal(cornu_run(graph, &other, 1, &to), CORNU_OK);
    assert_float_equal(out[0], 13, 0);
    cornu_graph_free(graph);
}

/* Elements in memory order; the others keep their values. */
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

    /* A second assignment replaces the first, even after a run. */
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

/* Swapping two variables needs the old values of both. */
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
    expect_error(CORNU_ERR_ARGUMENT, "different graphs");
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
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
