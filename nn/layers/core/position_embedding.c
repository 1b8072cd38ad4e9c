#include "../steps/past_internal.h"

typedef CORNU__LAYER(CornuPositionEmbeddingConfig) PositionEmbedding;

static CornuStatus position_embedding_build(CornuLayer *layer, CornuShape input)
{
    const CornuPositionEmbeddingConfig *config = &((PositionEmbedding *)layer)->config;
    CornuText text;
    if (input.rank != 3 || input.extent[1] > config->sequence_length)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, T, C) with at most %lld "
                           "steps", cornu_shape_print(&text, input),
                           (long long)config->sequence_length);
    return cornu_layer_weight(layer, "embeddings",
                              cornu_shape(config->sequence_length, input.extent[2]),
                              config->initializer, false);
}

static CornuTensor *position_embedding_call(CornuLayer *layer, const CornuCall *call,
                                            CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int64_t    begin[] = { 0, 0 }, extents[] = { shape.extent[1], shape.extent[2] };
    CornuTensor *rows = cornu_op_slice(cornu_layer_read(layer, call, 0), begin, extents);
    return cornu_op_broadcast(rows, shape);
}

/* Of the next steps, whose places their sequences tell. */
static CornuTensor *position_embedding_continue(CornuLayer *layer, const CornuCall *call,
                                                CornuTensor *const *in, int in_count,
                                                CornuTensor **out)
{
    CornuPast *past = call->past;
    (void)in_count;
    past->windowed = true;
    if (past->begins) return out[0] = position_embedding_call(layer, call, in[0]);
    CornuTensor *rows = cornu_op_gather(cornu_layer_read(layer, call, 0), past->position);
    return out[0] = rows ? cornu_op_reshape(rows, cornu_tensor_shape(in[0])) : NULL;
}

static CornuStatus position_embedding_resolve(CornuLayer *layer)
{
    CornuPositionEmbeddingConfig *config = &((PositionEmbedding *)layer)->config;
    config->initializer = cornu__initializer(config->initializer, CORNU_GLOROT_UNIFORM);
    return cornu__positive(cornu_layer_name(layer), "sequence_length", config->sequence_length);
}

#define FIELD(field) offsetof(CornuPositionEmbeddingConfig, field)
static const CornuField fields[] = {
    { "sequence_length", CORNU_FIELD_INTEGER, FIELD(sequence_length) },
    { "initializer", CORNU_FIELD_INITIALIZER, FIELD(initializer) },
    { 0 },
};

const CornuLayerClass cornu__position_embedding_class = {
    .class_name = "PositionEmbedding", .size = sizeof(PositionEmbedding),
    .build = position_embedding_build, .call = position_embedding_call,
    .continues = CORNU__FULL(position_embedding_continue, NULL),
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields, PositionEmbedding,
                                                      position_embedding_resolve) },
};

CORNU__CONSTRUCTOR(position_embedding, CornuPositionEmbeddingConfig)
