#include "../../../tensor/function_internal.h"
#include "../layer_internal.h"

#include <string.h>

typedef CORNU__LAYER(CornuSoftmaxConfig) Softmax;   /* with axes set */

static CornuStatus softmax_build(CornuLayer *layer, CornuShape input)
{
    int64_t axes;
    return cornu__axis_bits(((Softmax *)layer)->config.axes, input, &axes);
}

/* Subtracts the largest element first, so that no exponential overflows. */
static CornuTensor *over_axes(CornuTensor *const *x, int count, const double *numbers)
{
    const int64_t axes = (int64_t)numbers[0];
    (void)count;
    CornuTensor *below = cornu_op_subtract(x[0], cornu_op_reduce_max(x[0], axes, true));
    CornuTensor *exps = cornu_op_exp(below);
    return cornu_op_divide(exps, cornu_op_reduce_sum(exps, axes, true));
}

static CornuTensor *softmax(CornuTensor *x, int64_t axes)
{
    static const CornuFunction function = CORNU__FUNCTION("softmax", .formula = over_axes);
    if (!x) return NULL;
    if (axes == INT64_C(1) << (cornu_tensor_shape(x).rank - 1)) return cornu_op_softmax(x);
    return cornu__function(&function, &x, 1, (double[]){ (double)axes }, 1);
}

/* Whether the mask broadcasts to x, aligned at the right. */
static bool fits(CornuShape mask, CornuShape x)
{
    bool fit = mask.rank <= x.rank;
    for (int i = 0; i < mask.rank && fit; i++) {
        const int64_t extent = mask.extent[mask.rank - 1 - i];
        fit = extent == 1 || extent == x.extent[x.rank - 1 - i];
    }
    return fit;
}

static CornuTensor *softmax_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    int64_t axes;
    if (cornu__axis_bits(((Softmax *)layer)->config.axes, cornu_tensor_shape(x), &axes))
        return cornu__null();
    if (!call->mask) return softmax(x, axes);
    if (!fits(cornu_tensor_shape(call->mask), cornu_tensor_shape(x))) {
        CornuText a, b;
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: its input is %s and the mask %s, expected "
                                "one that broadcasts to it", cornu_layer_name(layer),
                                cornu_shape_print(&a, cornu_tensor_shape(x)),
                                cornu_shape_print(&b, cornu_tensor_shape(call->mask)));
    }
    const bool   f16 = cornu_tensor_type(x).dtype == CORNU_F16;   /* -1e9 would be infinite */
    CornuTensor *least = cornu_op_constant_like(x, f16 ? -3e4 : -1e9);
    CornuTensor *y = softmax(cornu_op_select(call->mask, x, least), axes);
    return cornu_op_select(call->mask, y, cornu_op_constant_like(x, 0.0));
}

static CornuStatus softmax_resolve(CornuLayer *layer)
{
    CornuSoftmaxConfig *config = &((Softmax *)layer)->config;
    return cornu__axes(cornu_layer_name(layer), &config->axis, config->axes);
}

static const CornuField fields[] = {
    { "axis", CORNU_FIELD_ROW_AXES, offsetof(CornuSoftmaxConfig, axes) },
    { 0 },
};

const CornuLayerClass cornu__softmax_class = {
    .class_name = "Softmax", .size = sizeof(Softmax), .build = softmax_build, .call = softmax_call,
    .activates = true,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Softmax, softmax_resolve) },
};

CORNU__CONSTRUCTOR(softmax, CornuSoftmaxConfig)
