/* BatchNormalization. */
#include "rules_internal.h"

/* Weights in Keras' order: gamma and beta if the layer has them, then the statistics. */
static CornuStatus batch_normalization(const CornuOnnxCall *call)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int         rank = call->shapes[0].rank;
    const int64_t     axis = whole(layer, "axis"), at = axis < 0 ? axis + rank : axis;
    const CornuShape  channels = cornu_shape(call->shapes[0].extent[at]);
    const double      epsilon = number(layer, "epsilon");
    int               next = 0;
    int64_t           order[CORNU_MAX_RANK] = { 0, at }, back[CORNU_MAX_RANK] = { 0 };
    for (int i = 1, k = 2; i < rank; i++)
        if (i != at) order[k++] = i;
    for (int i = 0; i < rank; i++) back[order[i]] = i;
    const int x = cornu__onnx_transpose(to, call->in[0], order, rank);
    const int gamma = given(layer, "scale") ? cornu__onnx_weight(to, layer, next++)
                                            : cornu__onnx_filled(to, channels, 1.0f);
    const int beta = given(layer, "center") ? cornu__onnx_weight(to, layer, next++)
                                            : cornu__onnx_filled(to, channels, 0.0f);
    const int in[] = { x, gamma, beta, cornu__onnx_weight(to, layer, next),
                       cornu__onnx_weight(to, layer, next + 1) };
    const int y = CORNU__ONNX_NODE(to, "BatchNormalization", in,
                                   { .name = "epsilon", .numbers = &epsilon });
    *call->out = cornu__onnx_transpose(to, y, back, rank);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_norms[] = {
    { "BatchNormalization", batch_normalization },
    { 0 },
};
