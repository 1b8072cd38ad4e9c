/*
 * Operators of 8 bits against LiteRT's interpreter, bit for bit: tests/golden/make_int8.py writes
 * graphs of one operator, operands and results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../nn/lite/run/run.h"
#include "../../device/isas.h"
#include "operator_graphs.h"

static void as_litert(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/int8/operators.safetensors");
    const char *name;
    json_t     *about;
    int         count = 0;
    json_object_foreach(golden.cases, name, about) {
        CornuLiteGraph *graph = operator_graph(&golden, name, about);
        CornuLiteRun   *run = cornu__lite_run_create(graph, 1);
        if (!run) fail_msg("%s: %s", name, cornu_error_message());
        const void *in[MOST_PORTS];
        for (int i = 0; i < graph->input_count; i++) {
            char key[16];
            snprintf(key, sizeof key, "in%d", i);
            in[i] = golden_array(&golden, name, key).data;
        }
        const CornuArray want = golden_array(&golden, name, "out0");
        const size_t     bytes = cornu_type_bytes(want.type);
        char            *got = malloc(bytes);
        assert_int_equal(cornu__lite_run(run, 1, in, (void *[]){ got }), CORNU_OK);
        for (size_t i = 0; i < bytes; i++)
            if (got[i] != ((const char *)want.data)[i])
                fail_msg("%s: byte %zu of %zu is %d, LiteRT has %d", name, i, bytes, got[i],
                         ((const char *)want.data)[i]);
        free(got);
        cornu__lite_run_free(run);
        cornu__lite_graph_free(graph);
        count++;
    }
    golden_close(&golden);
    assert_true(count >= 110);
}

/* ---- Graphs that are not consistent, as files may have them ---- */

static CornuLiteGraph *one_operator(CornuLiteCode code, CornuShape x, CornuShape y,
                                    const CornuLiteOptions *options)
{
    CornuLiteGraph *graph = cornu__lite_graph_create("wrong");
    const int8_t    filter[3 * 3] = { 1 };
    const int32_t   bias[1] = { 0 };
    const int64_t   zero = 0;
    const float     scale = 0.1f;
    const int in[] = { cornu__lite_add_tensor(graph, "x", CORNU_LITE_I8, x),
                       cornu__lite_add_constant(graph, "filter", CORNU_LITE_I8,
                                                cornu_shape(1, 3, 3, 1), filter),
                       cornu__lite_add_constant(graph, "bias", CORNU_LITE_I32, cornu_shape(1),
                                                bias) };
    const int out[] = { cornu__lite_add_tensor(graph, "y", CORNU_LITE_I8, y) };
    for (int t = 0; t < 4; t++)
        if (t != 2) cornu__lite_set_scales(graph, t, &scale, &zero, 1, 0);
    cornu__lite_add_operator(graph, code, in, code == CORNU_LITE_CONV_2D ? 3 : 1, out, 1, options);
    cornu__lite_add_input(graph, in[0], "x");
    cornu__lite_add_output(graph, out[0], "y");
    return graph;
}

static void expect_refused(CornuLiteGraph *graph, CornuStatus status, const char *part)
{
    expect_failure(cornu__lite_run_create(graph, 1), status, part);
    cornu__lite_graph_free(graph);
}

static void refused(void **state)
{
    (void)state;
    const CornuShape image = cornu_shape(CORNU_NONE, 5, 5, 1);
    expect_refused(one_operator(CORNU_LITE_CONV_2D, image, cornu_shape(CORNU_NONE, 4, 5, 1),
                                &(CornuLiteOptions){ .padding = CORNU_LITE_SAME }),
                   CORNU_ERR_SHAPE, "operator 0, CONV_2D: tensor y is (None, 4, 5, 1), expected "
                   "(None, 5, 5, 1)");
    expect_refused(one_operator(CORNU_LITE_CONV_2D, image, image, &(CornuLiteOptions){
                                    .dilation_h = INT32_MAX, .dilation_w = INT32_MAX }),
                   CORNU_ERR_UNSUPPORTED, "dilation 2147483647");
    expect_refused(one_operator(CORNU_LITE_CONV_2D, image, image,
                                &(CornuLiteOptions){ .stride_h = -1 }),
                   CORNU_ERR_FORMAT, "strides -1");
    expect_refused(one_operator(CORNU_LITE_MAX_POOL_2D, image, image, &(CornuLiteOptions){ 0 }),
                   CORNU_ERR_FORMAT, "window 0 x 0");
    expect_refused(one_operator(CORNU_LITE_SOFTMAX, cornu_shape(CORNU_NONE, 9000),
                                cornu_shape(CORNU_NONE, 9000), &(CornuLiteOptions){ .beta = 1 }),
                   CORNU_ERR_UNSUPPORTED, "rows of 9000");
    expect_refused(one_operator(CORNU_LITE_TANH, image, image, NULL), CORNU_ERR_UNSUPPORTED,
                   "output has scale 0.1");
    expect_refused(one_operator(CORNU_LITE_LOG, image, image, NULL), CORNU_ERR_UNSUPPORTED,
                   "operator 0, LOG: has no kernel of 8 bits");
    CornuLiteGraph *graph = one_operator(CORNU_LITE_RELU, image, image, NULL);
    graph->operators[0].in[0] = 99;
    expect_refused(graph, CORNU_ERR_FORMAT, "operator 0 reads tensor 99");
    graph = one_operator(CORNU_LITE_RELU, image, image, NULL);
    graph->operators[0].out[0] = 0;
    expect_refused(graph, CORNU_ERR_FORMAT, "operator 0 writes tensor 0");
    expect_refused(one_operator(CORNU_LITE_RELU, cornu_shape(CORNU_NONE, CORNU_NONE),
                                cornu_shape(CORNU_NONE, CORNU_NONE), NULL),
                   CORNU_ERR_UNSUPPORTED, "the first alone may be unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_litert) };
    const struct CMUnitTest others[] = { cmocka_unit_test(refused) };
    int failed = cmocka_run_group_tests(others, NULL, NULL);
    for (int isa = 0; isa < CORNU_F32_ISA_COUNT; isa++)
        failed += isa_run_group("int8", (CornuIsa)isa, tests, 1);
    return failed;
}
