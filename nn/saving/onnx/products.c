/* Dense, EinsumDense, Embedding and PositionEmbedding: products with weights, or rows of them. */
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

/* ONNX' equations are Keras'. */
static CornuStatus einsum_dense(const CornuOnnxCall *call)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const int         in[] = { call->in[0], cornu__onnx_weight(to, layer, 0) };
    const char       *equation = *(const char *const *)cornu__layer_argument(layer, "equation");
    int               y = CORNU__ONNX_NODE(to, "Einsum", in,
                                           { .name = "equation", .text = equation });
    if (*(const char *const *)cornu__layer_argument(layer, "bias_axes"))
        y = two(to, "Add", y, cornu__onnx_weight(to, layer, 1));
    *call->out = activated(call, y);
    return CORNU_OK;
}

/* Converts to integers from any type. */
static CornuStatus embedding(const CornuOnnxCall *call)
{
    CornuOnnx    *to = call->to;
    const int64_t zero = 0;
    const int     rows = cast(to, call->in[0], CORNU_ONNX_INT64);
    *call->out = joined(to, "Gather", cornu__onnx_weight(to, call->layer, 0), rows);
    if (flag(call->layer, "mask_zero"))
        *call->out_masks = one(to, "Not", two(to, "Equal", rows,
                                              cornu__onnx_integers(to, &zero, 1)));
    return CORNU_OK;
}

/* The first T rows, repeated for the batch. */
static CornuStatus position_embedding(const CornuOnnxCall *call)
{
    CornuOnnx    *to = call->to;
    const int64_t steps = call->shapes[0].extent[1];
    int           rows = cornu__onnx_weight(to, call->layer, 0);
    if (steps < whole(call->layer, "sequence_length"))   /* or open */
        rows = cornu__onnx_slice(to, rows, 0, 0, steps);
    *call->out = joined(to, "Expand", rows,
                        cornu__onnx_node(to, "Shape", call->in, 1, NULL, 0, 1));
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_products[] = {
    { "Dense", dense },
    { "EinsumDense", einsum_dense },
    { "Embedding", embedding },
    { "PositionEmbedding", position_embedding },
    { 0 },
};
