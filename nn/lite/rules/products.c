/* Dense and Embedding: products with weights, or rows of them. */
#include "rules_internal.h"

/* The kernel (K, U) is (U, K) in LiteRT. All axes but the last are kept. */
static CornuStatus dense(const CornuLiteCall *call)
{
    CornuLite       *to = call->to;
    const CornuShape own = call->layer->weights[0]->type.shape;
    const int        turned[] = { 1, 0 };
    int              in[] = { call->in[0], CORNU_LITE_NONE, CORNU_LITE_NONE };
    in[1] = cornu__lite_weight_as(to, call->layer, 0, turned,
                                  cornu_shape(own.extent[1], own.extent[0]));
    if (given(call->layer, "use_bias")) in[2] = cornu__lite_weight(to, call->layer, 1);
    const CornuLiteOptions options = { .keep_dims = call->shapes[0].rank > 2 };
    const int y = cornu__lite_node(to, CORNU_LITE_FULLY_CONNECTED, in, in[2] < 0 ? 2 : 3,
                                   call->results[0], &options);
    return cornu__lite_activated(call, y, call->out);
}

/* Converts to integers from any type. */
static CornuStatus embedding(const CornuLiteCall *call)
{
    CornuLite *to = call->to;
    int        in[] = { CORNU_LITE_NONE, call->in[0] };
    if (flag(call->layer, "mask_zero"))
        return cornu__lite_refuse(call->layer, "mask_zero", "whose operators have no masks");
    if (to->graph->tensors[in[1]].dtype == CORNU_LITE_F32) {
        const CornuLiteOptions cast = { .in_dtype = CORNU_LITE_F32, .out_dtype = CORNU_LITE_I32 };
        in[1] = cornu__lite_node_of(to, CORNU_LITE_CAST, call->in, 1, CORNU_LITE_I32,
                                    call->shapes[0], &cast);
    }
    in[0] = cornu__lite_weight(to, call->layer, 0);
    *call->out = cornu__lite_node(to, CORNU_LITE_GATHER, in, 2, call->results[0], NULL);
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_products[] = {
    { "Dense", dense },
    { "Embedding", embedding },
    { 0 },
};
