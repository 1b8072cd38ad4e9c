/* Layers that change the shape, or do nothing at inference. */
#include "rules_internal.h"

static CornuStatus as_it_is(const CornuLiteCall *call)
{
    *call->out = call->in[0];
    return CORNU_OK;
}

static CornuStatus reshape(const CornuLiteCall *call)
{
    *call->out = cornu__lite_reshape(call->to, call->in[0], call->results[0]);
    return CORNU_OK;
}

static CornuStatus permute(const CornuLiteCall *call)
{
    const int64_t *dims = cornu__layer_argument(call->layer, "dims");
    int32_t        order[CORNU_MAX_RANK] = { 0 };
    for (int i = 1; i < call->shapes[0].rank; i++) order[i] = (int32_t)dims[i - 1];
    const int in[] = { call->in[0],
                       cornu__lite_add_integers(call->to->graph, order, call->shapes[0].rank) };
    *call->out = cornu__lite_node(call->to, CORNU_LITE_TRANSPOSE, in, 2, call->results[0], NULL);
    return CORNU_OK;
}

static CornuStatus repeat_vector(const CornuLiteCall *call)
{
    const int32_t times[] = { 1, (int32_t)whole(call->layer, "n"), 1 };
    CornuShape    single = call->results[0];
    single.extent[1] = 1;
    int in[] = { cornu__lite_reshape(call->to, call->in[0], single), 0 };
    in[1] = cornu__lite_add_integers(call->to->graph, times, 3);
    *call->out = cornu__lite_node(call->to, CORNU_LITE_TILE, in, 2, call->results[0], NULL);
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_shapes[] = {
    { "ActivityRegularization", as_it_is },
    { "AlphaDropout", as_it_is },
    { "Dropout", as_it_is },
    { "Flatten", reshape },
    { "GaussianDropout", as_it_is },
    { "GaussianNoise", as_it_is },
    { "Identity", as_it_is },
    { "Permute", permute },
    { "RandomBrightness", as_it_is },
    { "RandomContrast", as_it_is },
    { "RandomCrop", as_it_is },
    { "RandomFlip", as_it_is },
    { "RandomRotation", as_it_is },
    { "RandomTranslation", as_it_is },
    { "RandomZoom", as_it_is },
    { "RepeatVector", repeat_vector },
    { "Reshape", reshape },
    { "SpatialDropout1D", as_it_is },
    { "SpatialDropout2D", as_it_is },
    { "SpatialDropout3D", as_it_is },
    { "StochasticDepth", as_it_is },
    { 0 },
};
