#include "call_layer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../expect.h"

int64_t call_layer(CornuLayer *layer, CornuArray x, const LayerCall *how, float *y, int64_t most)
{
    CornuDevice *device = cornu_device_open("cpu");
    if (!layer || !device) fail_msg("%s", cornu_error_message());
    CornuShape shape = x.type.shape;
    shape.extent[0] = CORNU_NONE;
    expect_ok(cornu_layer_build(layer, shape));
    expect_ok(cornu_layer_move(layer, device));
    CornuGraph *graph = cornu_graph_create(device);
    CornuType   scalar = cornu_scalar(CORNU_I64);
    CornuCall   call = { .graph = graph, .training = how->training };
    call.seed = cornu_op_constant(graph, scalar, 5);
    call.position = cornu_op_constant(graph, scalar, (double)how->position);
    call.iteration = cornu_op_constant(graph, scalar, (double)how->iteration);
    call.count = cornu_op_constant(graph, scalar, (double)x.type.shape.extent[0]);
    CornuTensor *in = cornu_graph_input(graph, x.type);
    expect_ok(cornu_graph_feed(in, x));
    if (how->mask) {
        const int64_t  *extent = x.type.shape.extent;
        const CornuType steps = cornu_type(CORNU_BOOL, extent[0], extent[1]);
        call.mask = cornu_graph_input(graph, steps);
        expect_ok(cornu_graph_feed(call.mask,
                                   cornu_array_from((void *)(uintptr_t)how->mask, steps)));
    }
    CornuTensor *result = cornu_op_convert(cornu_layer_call(layer, &call, in), CORNU_F32);
    if (!result) fail_msg("%s", cornu_error_message());
    const CornuType type = cornu_tensor_type(result);
    assert_true(cornu_type_count(type) <= most);
    CornuArray out = cornu_array_from(y, type);
    expect_ok(cornu_run(graph, &result, 1, &out));
    cornu_graph_free(graph);
    cornu_layer_free(layer);
    cornu_device_close(device);
    return cornu_type_count(type);
}
