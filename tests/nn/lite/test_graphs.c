/* Graphs that a file must not have, and the scales of those of 8 bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../../nn/lite/file/file.h"
#include "../../../nn/lite/int8/to_int8.h"
#include "../../../nn/lite/int8/scales.h"
#include "../../../nn/lite/run/run.h"
#include "../../expect.h"

/* x (1, 4) and its result y by RELU, f32 or int8 of this zero point. */
static CornuLiteGraph *small_graph(CornuLiteDtype dtype, int64_t zero)
{
    CornuLiteGraph *graph = cornu__lite_graph_create("small");
    const int       x = cornu__lite_add_tensor(graph, "x", dtype, cornu_shape(1, 4));
    const int       y = cornu__lite_add_tensor(graph, "y", dtype, cornu_shape(1, 4));
    const float     scale = 0.5f;
    for (int i = 0; i < 2 && dtype != CORNU_LITE_F32; i++)
        cornu__lite_set_scales(graph, i ? y : x, &scale, &zero, 1, 0);
    cornu__lite_add_operator(graph, CORNU_LITE_RELU, &x, 1, &y, 1, NULL);
    cornu__lite_add_input(graph, x, "x");
    cornu__lite_add_output(graph, y, "y");
    return graph;
}

/* Writes the graph, frees it, and expects how it is read. */
static void expect_read(CornuLiteGraph *graph, CornuStatus status, const char *part)
{
    CornuMessage    file = { 0 };
    CornuLiteGraph *read = NULL;
    expect_ok(cornu__lite_write(graph, &file));
    cornu__lite_graph_free(graph);
    if (status) expect_error(cornu__lite_read(file.bytes, file.size, &read), status, part);
    else        expect_ok(cornu__lite_read(file.bytes, file.size, &read));
    assert_int_equal(read == NULL, status != CORNU_OK);
    cornu__lite_graph_free(read);
    free(file.bytes);
}

/* Zero is one of the integers: -128 to 127, 0 to 255. */
static void test_zero_points(void **state)
{
    (void)state;
    expect_read(small_graph(CORNU_LITE_I8, 127), CORNU_OK, NULL);
    expect_read(small_graph(CORNU_LITE_I8, -128), CORNU_OK, NULL);
    expect_read(small_graph(CORNU_LITE_I8, 128), CORNU_ERR_FORMAT,
                "\"x\", i8, has a scale of 0.5 and a zero point of 128");
    expect_read(small_graph(CORNU_LITE_I8, -129), CORNU_ERR_FORMAT, "a zero point of -129");
    expect_read(small_graph(CORNU_LITE_U8, 255), CORNU_OK, NULL);
    expect_read(small_graph(CORNU_LITE_U8, 256), CORNU_ERR_FORMAT, "a zero point of 256");
    expect_read(small_graph(CORNU_LITE_U8, -1), CORNU_ERR_FORMAT, "a zero point of -1");
    expect_read(small_graph(CORNU_LITE_I16, 1), CORNU_ERR_FORMAT, "a zero point of 1");
}

/* The runner takes graphs that were not read from files, too. */
static void test_zero_points_of_the_runner(void **state)
{
    (void)state;
    CornuLiteGraph *graph = small_graph(CORNU_LITE_I8, 128);
    assert_null(cornu__lite_run_create(graph, 1));
    expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "a zero point from -128 to 127");
    cornu__lite_graph_free(graph);
    graph = small_graph(CORNU_LITE_I8, 127);
    CornuLiteRun *run = cornu__lite_run_create(graph, 1);
    assert_non_null(run);
    cornu__lite_run_free(run);
    cornu__lite_graph_free(graph);
}

/* A tensor is computed once, and is neither an input nor a constant. */
static void test_tensors_are_computed_once(void **state)
{
    (void)state;
    const int x = 0, y = 1;
    for (int which = 0; which < 2; which++) {
        CornuLiteGraph *graph = small_graph(CORNU_LITE_F32, 0);
        cornu__lite_add_operator(graph, CORNU_LITE_TANH, which ? &y : &x, 1, which ? &x : &y, 1,
                                 NULL);
        expect_read(graph, CORNU_ERR_FORMAT, "a tensor is computed twice");
    }
    CornuLiteGraph *graph = small_graph(CORNU_LITE_I8, 0);
    cornu__lite_add_operator(graph, CORNU_LITE_RELU, &x, 1, &y, 1, NULL);
    assert_null(cornu__lite_run_create(graph, 1));
    expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "operator 1 writes tensor 1, which is made "
                                                       "before it");
    cornu__lite_graph_free(graph);
}

/* concat(logistic(x), relu(x)): the logistic function keeps its scale of 1 / 256, by which LiteRT
 * defines it, and is rescaled before the concatenation; relu takes the scale of the result. */
static void test_concatenation_of_fixed_scales(void **state)
{
    (void)state;
    CornuLiteGraph *graph = cornu__lite_graph_create("joined"), *quantized = NULL;
    const char     *names[] = { "x", "sure", "positive", "joined" };
    CornuAffine     scales[5];
    int             t[4], rescaled = 0;
    const CornuLiteRange ranges[5] = { { -3, 5 }, { 0, 1 }, { 0, 5 }, { 0, 5 }, { 1, 0 } };
    for (int i = 0; i < 4; i++)
        t[i] = cornu__lite_add_tensor(graph, names[i], CORNU_LITE_F32,
                                      cornu_shape(CORNU_NONE, i == 3 ? 8 : 4));
    cornu__lite_add_operator(graph, CORNU_LITE_LOGISTIC, &t[0], 1, &t[1], 1, NULL);
    cornu__lite_add_operator(graph, CORNU_LITE_RELU, &t[0], 1, &t[2], 1, NULL);
    cornu__lite_add_operator(graph, CORNU_LITE_CONCATENATION, &t[1], 2, &t[3], 1,
                             &(CornuLiteOptions){ .axis = 1 });
    cornu__lite_add_input(graph, t[0], "x");
    cornu__lite_add_output(graph, t[3], "joined");
    expect_ok(cornu__lite_scales(graph, ranges, scales));
    assert_true(scales[t[1]].scale == 1.0f / 256 && scales[t[1]].zero == -128);
    assert_true(fabs((double)scales[t[3]].scale - 5.0 / 255) < 1e-8 && scales[t[3]].zero == -128);
    assert_true(scales[t[2]].scale == scales[t[3]].scale && scales[t[2]].zero == scales[t[3]].zero);
    expect_ok(cornu__lite_to_int8(graph, ranges, &quantized));
    for (int i = 0; i < quantized->operator_count; i++)
        rescaled += quantized->operators[i].code == CORNU_LITE_QUANTIZE;
    assert_int_equal(rescaled, 1);
    CornuLiteRun *run = cornu__lite_run_create(quantized, 1);
    if (!run) fail_msg("%s", cornu_error_message());
    const int8_t x[] = { -128, -33, 0, 127 };
    int8_t       y[8] = { 0 };
    expect_ok(cornu__lite_run(run, 1, (const void *[]){ x }, (void *[]){ y }));
    /* scale 8 / 255, zero -32 (rounded from -32.375): real values -3.01, -0.03, 1.00, 4.99;
     * logistic in units of 5 / 255: 2.4, 25.1, 37.3, 50.7 above -128; relu 0, 0, 51.2, 254.4 */
    const int8_t want[] = { -126, -103, -91, -77, -128, -128, -77, 126 };
    for (int i = 0; i < 8; i++)
        if (abs(y[i] - want[i]) > 1) fail_msg("element %d: %d, not %d", i, y[i], want[i]);
    cornu__lite_run_free(run);
    cornu__lite_graph_free(quantized);
    cornu__lite_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_points),
        cmocka_unit_test(test_zero_points_of_the_runner),
        cmocka_unit_test(test_tensors_are_computed_once),
        cmocka_unit_test(test_concatenation_of_fixed_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
