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

/* ---- Operators that run as one, threads that share them ---- */

enum { ROWS = 11, SIDE = 13, CHANNELS = 5, FILTERS = 35, UNITS = 40 };

static int8_t byte_of(int64_t i) { return (int8_t)((i * 7919 + 13) % 65521 % 255 - 127); }

static int tensor_of(CornuLiteGraph *graph, CornuShape shape, float scale, int64_t zero)
{
    const int t = cornu__lite_add_tensor(graph, "t", CORNU_LITE_I8, shape);
    cornu__lite_set_scales(graph, t, &scale, &zero, 1, 0);
    return t;
}

static int weights_of(CornuLiteGraph *graph, CornuShape shape, float scale)
{
    const int64_t zero = 0;
    const int     t = cornu__lite_add_constant(graph, "weights", CORNU_LITE_I8, shape, NULL);
    int8_t       *data = graph->tensors[t].data;
    for (size_t i = 0; i < graph->tensors[t].bytes; i++) data[i] = byte_of((int64_t)i);
    cornu__lite_set_scales(graph, t, &scale, &zero, 1, 0);
    return t;
}

static int apply(CornuLiteGraph *graph, CornuLiteCode code, int x, int other, int y,
                 CornuLiteOptions options)
{
    cornu__lite_add_operator(graph, code, (int[]){ x, other }, other == CORNU_LITE_NONE ? 1 : 2, &y,
                             1, &options);
    return y;
}

/* conv2d, a function unless it is 0, a pool of 2 x 2; added to another convolution of the same
 * size; depthwise; fully connected. `apart`: what is between them is an output, too. */
static CornuLiteGraph *chain(CornuLiteCode function, CornuLiteActivation fused, bool apart)
{
    CornuLiteGraph  *graph = cornu__lite_graph_create("chain");
    const int64_t    half = SIDE / 2;
    const CornuShape whole = cornu_shape(CORNU_NONE, SIDE, SIDE, FILTERS);
    const CornuShape pooled = cornu_shape(CORNU_NONE, half, half, FILTERS);
    const CornuLiteOptions same = { .fused_activation = fused };
    const CornuLiteOptions pool = { .padding = CORNU_LITE_VALID, .filter_h = 2, .filter_w = 2,
                                    .stride_h = 2, .stride_w = 2 };
    const int x = tensor_of(graph, cornu_shape(CORNU_NONE, SIDE, SIDE, CHANNELS), 0.02f, 7);
    const int conv = apply(graph, CORNU_LITE_CONV_2D, x, weights_of(
        graph, cornu_shape(FILTERS, 5, 3, CHANNELS), 0.01f), tensor_of(graph, whole, 0.1f, -3),
        same);
    const int value = function ? apply(graph, function, conv, CORNU_LITE_NONE,
                                       tensor_of(graph, whole, 0.1f, 5), (CornuLiteOptions){ 0 })
                               : conv;
    const int small = apply(graph, CORNU_LITE_MAX_POOL_2D, value, CORNU_LITE_NONE,
                            tensor_of(graph, pooled, 0.1f, function ? 5 : -3), pool);
    const int other = apply(graph, CORNU_LITE_CONV_2D, small, weights_of(
        graph, cornu_shape(FILTERS, 1, 1, FILTERS), 0.005f), tensor_of(graph, pooled, 0.07f, 0),
        same);
    const int sum = apply(graph, CORNU_LITE_ADD, small, other, tensor_of(graph, pooled, 0.12f, 1),
                          (CornuLiteOptions){ 0 });
    const int wise = apply(graph, CORNU_LITE_DEPTHWISE_CONV_2D, sum, weights_of(
        graph, cornu_shape(1, 3, 3, FILTERS), 0.01f), tensor_of(graph, pooled, 0.2f, 0), same);
    const int y = apply(graph, CORNU_LITE_FULLY_CONNECTED, wise, weights_of(
        graph, cornu_shape(UNITS, half * half * FILTERS), 0.003f),
        tensor_of(graph, cornu_shape(CORNU_NONE, UNITS), 3.0f, 2), (CornuLiteOptions){ 0 });
    cornu__lite_add_input(graph, x, "x");
    cornu__lite_add_output(graph, y, "y");
    if (apart) cornu__lite_add_output(graph, conv, "conv");
    if (apart && function) cornu__lite_add_output(graph, value, "value");
    assert_int_equal(graph->status, CORNU_OK);
    return graph;
}

static void predict_chain(CornuLiteGraph *graph, int threads, int64_t rows, const int8_t *x,
                          int8_t *y)
{
    static int8_t others[2][ROWS * SIDE * SIDE * FILTERS];
    CornuLiteRun *run = cornu__lite_run_create(graph, threads);
    if (!run) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu__lite_run(run, rows, (const void *[]){ x },
                                     (void *[]){ y, others[0], others[1] }), CORNU_OK);
    cornu__lite_run_free(run);
}

static void fused_as_apart(void **state)
{
    (void)state;
    static int8_t       x[ROWS * SIDE * SIDE * CHANNELS];
    int8_t              want[ROWS * UNITS], got[ROWS * UNITS];
    const CornuLiteCode functions[] = { 0, CORNU_LITE_ELU, CORNU_LITE_LEAKY_RELU,
                                        CORNU_LITE_GELU };   /* GELU falls and rises */
    for (int64_t i = 0; i < (int64_t)sizeof x; i++) x[i] = byte_of(i * 31);
    for (int f = 0; f < 4; f++)
        for (int fused = 0; fused <= CORNU_LITE_FUSED_RELU; fused++) {
            CornuLiteGraph *apart = chain(functions[f], (CornuLiteActivation)fused, true);
            CornuLiteGraph *graph = chain(functions[f], (CornuLiteActivation)fused, false);
            int             different = 0;
            predict_chain(apart, 1, ROWS, x, want);
            for (size_t i = 1; i < sizeof want; i++) different += want[i] != want[0];
            assert_true(different > (int)sizeof want / 2);
            for (int threads = 1; threads <= 3; threads++)
                for (int64_t rows = 1; rows <= ROWS; rows += rows < 4 ? 1 : 7) {
                    predict_chain(graph, threads, rows, x, got);
                    assert_memory_equal(got, want, (size_t)(rows * UNITS));
                }
            cornu__lite_graph_free(apart);
            cornu__lite_graph_free(graph);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_litert), cmocka_unit_test(fused_as_apart)
    };
    const struct CMUnitTest others[] = { cmocka_unit_test(refused) };
    int failed = cmocka_run_group_tests(others, NULL, NULL);
    for (int isa = 0; isa < CORNU_F32_ISA_COUNT; isa++)
        failed += isa_run_group("int8", (CornuIsa)isa, tests, 2);
    return failed;
}
