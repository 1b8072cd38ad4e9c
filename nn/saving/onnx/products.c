/* Dense. */
#include "rules_internal.h"

static CornuStatus dense(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    int y = joined(to, "MatMul", call->in[0], cornu__onnx_weight(to, call->layer, 0));
    if (given(call->layer, "use_bias"))
        y = two(to, "Add", y, cornu__onnx_weight(to, call->layer, 1));
    *call->out = activated(call, y);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_products[] = { { "Dense", dense }, { 0 } };
