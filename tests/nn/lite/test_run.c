/*
 * Operators of 8 bits against LiteRT's interpreter, bit for bit: tests/golden/make_int8.py writes
 * graphs of one operator, operands and results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../nn/lite/run/run.h"
#include "../../device/isas.h"
#include "../golden.h"

enum { MOST_PORTS = 4 };

static CornuLiteCode code_of(const char *name)
{
    for (int code = 0; code < 256; code++)
        if (cornu__lite_code_name(code) && strcmp(cornu__lite_code_name(code), name) == 0)
            return (CornuLiteCode)code;
    fail_msg("no operator %s", name);
    return CORNU_LITE_ADD;
}

static CornuLiteDtype dtype_of(const char *name)
{
    static const CornuLiteDtype dtypes[] = {
        CORNU_LITE_F32, CORNU_LITE_I32, CORNU_LITE_U8, CORNU_LITE_I8
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(cornu__lite_dtype_name(dtypes[i]), name) == 0) return dtypes[i];
    fail_msg("no dtype %s", name);
    return CORNU_LITE_F32;
}

static double number(const json_t *settings, const char *name)
{
    const json_t *value = json_object_get(settings, name);
    return json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
}

static CornuLiteOptions options_of(const json_t *o)
{
    CornuLiteOptions options = {
        .padding = (CornuLitePadding)number(o, "padding"),
        .fused_activation = (CornuLiteActivation)number(o, "fused_activation"),
        .stride_h = (int32_t)number(o, "stride_h"), .stride_w = (int32_t)number(o, "stride_w"),
        .dilation_h = (int32_t)number(o, "dilation_h"),
        .dilation_w = (int32_t)number(o, "dilation_w"),
        .filter_h = (int32_t)number(o, "filter_h"), .filter_w = (int32_t)number(o, "filter_w"),
        .depth_multiplier = (int32_t)number(o, "depth_multiplier"),
        .axis = (int32_t)number(o, "axis"), .beta = (float)number(o, "beta"),
        .alpha = (float)number(o, "alpha"), .keep_dims = number(o, "keep_dims") != 0,
        .approximate = number(o, "approximate") != 0,
        .align_corners = number(o, "align_corners") != 0,
        .half_pixel_centers = number(o, "half_pixel_centers") != 0,
        .begin_mask = (int32_t)number(o, "begin_mask"),
        .end_mask = (int32_t)number(o, "end_mask"),
    };
    return options;
}

static void add_tensor(CornuLiteGraph *graph, const json_t *tensor, const void *data)
{
    const json_t *extents = json_object_get(tensor, "shape");
    const json_t *scales = json_object_get(tensor, "scales");
    const json_t *zeros = json_object_get(tensor, "zero_points");
    float         scale[64];
    int64_t       zero[64], extent[CORNU_MAX_RANK];
    const int     rank = (int)json_array_size(extents), count = (int)json_array_size(scales);
    for (int d = 0; d < rank; d++)
        extent[d] = json_integer_value(json_array_get(extents, (size_t)d));
    assert_true(count <= 64);
    for (int i = 0; i < count; i++) {
        scale[i] = (float)json_number_value(json_array_get(scales, (size_t)i));
        zero[i] = json_integer_value(json_array_get(zeros, (size_t)i));
    }
    const CornuLiteDtype dtype =
        dtype_of(json_string_value(json_object_get(tensor, "dtype")));
    const CornuShape shape = cornu_shape_from(rank, extent);
    const int t = data ? cornu__lite_add_constant(graph, "constant", dtype, shape, data)
                       : cornu__lite_add_tensor(graph, "tensor", dtype, shape);
    if (count)
        cornu__lite_set_scales(graph, t, scale, zero, count, (int)number(tensor, "axis"));
}

static int numbers_of(const json_t *list, int *to)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        to[i] = (int)json_integer_value(json_array_get(list, i));
    return (int)json_array_size(list);
}

static CornuLiteGraph *graph_of(Golden *golden, const char *name, const json_t *about)
{
    CornuLiteGraph *graph = cornu__lite_graph_create(name);
    const json_t   *tensors = json_object_get(about, "tensors");
    for (size_t t = 0; t < json_array_size(tensors); t++) {
        char constant[32];
        snprintf(constant, sizeof constant, "constant%zu", t);
        add_tensor(graph, json_array_get(tensors, t), golden_array(golden, name, constant).data);
    }
    int in[8], out[MOST_PORTS], inputs[MOST_PORTS];
    const int in_count = numbers_of(json_object_get(about, "in"), in);
    const int out_count = numbers_of(json_object_get(about, "out"), out);
    const int input_count = numbers_of(json_object_get(about, "inputs"), inputs);
    const CornuLiteOptions options = options_of(json_object_get(about, "options"));
    cornu__lite_add_operator(graph,
                             code_of(json_string_value(json_object_get(about, "code"))), in,
                             in_count, out, out_count, &options);
    for (int i = 0; i < input_count; i++) cornu__lite_add_input(graph, inputs[i], "in");
    for (int i = 0; i < out_count; i++) cornu__lite_add_output(graph, out[i], "out");
    assert_int_equal(graph->status, CORNU_OK);
    return graph;
}

static void as_litert(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/int8/operators.safetensors");
    const char *name;
    json_t     *about;
    int         count = 0;
    json_object_foreach(golden.cases, name, about) {
        CornuLiteGraph *graph = graph_of(&golden, name, about);
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
