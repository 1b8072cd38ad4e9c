/* LAMB where a norm is 0: the ratio is 1, so that weights of zeros begin to move and a step of
 * zeros leaves them. By hand, after the formula of keras/src/optimizers/lamb.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };

/* One step of rate 0.1 from w with gradient g; w gets the result. */
static void step(CornuDevice *device, float w[2], float g[2])
{
    const CornuType type = cornu_type(CORNU_F32, 2);
    CornuOptimizer *lamb = cornu_lamb(.learning_rate = 0.1, .epsilon = 1e-7);
    CornuVariable  *variable = cornu_variable_create(device, type, "layer/w", .for_packing = true);
    expect_ok(cornu_optimizer_build(lamb, &variable, 1));
    expect_ok(cornu_variable_write(variable, cornu_array_from(w, type)));
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *given = cornu_graph_input(graph, type);
    /* The gradient of sum(w g) is g. */
    CornuTensor *read = cornu_read(graph, variable), *d_w;
    CornuTensor *loss = cornu_op_sum(cornu_op_multiply(read, given));
    expect_ok(cornu_gradients(loss, &read, 1, &d_w));
    expect_ok(cornu_optimizer_apply(lamb, graph, &d_w));
    expect_ok(cornu_graph_feed(given, cornu_array_from(g, type)));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_variable_read(variable, cornu_array_from(w, type)));
    cornu_graph_free(graph);
    cornu_optimizer_free(lamb);
    cornu_variable_free(variable);
}

static void a_norm_of_0_counts_as_1(void **state)
{
    (void)state;
    for (int d = 0; d < 3; d++) {
        CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
        float zeros[] = { 0, 0 }, still[] = { 3, 4 }, both[] = { 0, 0 }, moved[] = { 3, 4 };
        /* The first step is g / |g|, element by element: (1, -1), of norm sqrt(2). */
        step(device, zeros, (float[]){ 2, -5 });
        assert_float_equal(zeros[0], -0.1f, 1e-6);
        assert_float_equal(zeros[1], 0.1f, 1e-6);
        step(device, still, (float[]){ 0, 0 });
        assert_true(still[0] == 3.0f && still[1] == 4.0f);
        step(device, both, (float[]){ 0, 0 });
        assert_true(both[0] == 0.0f && both[1] == 0.0f);
        step(device, moved, (float[]){ 2, -5 });   /* 5 / sqrt(2) times the rate */
        assert_float_equal(moved[0], 3.0f - 0.353553f, 1e-5);
        assert_float_equal(moved[1], 4.0f + 0.353553f, 1e-5);
        cornu_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_norm_of_0_counts_as_1) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
