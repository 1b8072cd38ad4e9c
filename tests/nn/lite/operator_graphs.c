#include "operator_graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

CornuLiteGraph *operator_graph(Golden *golden, const char *name, const json_t *about)
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
