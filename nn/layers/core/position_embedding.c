#include "../layer_internal.h"

typedef struct {
    CornuLayer                   base;
    CornuPositionEmbeddingConfig config;
} PositionEmbedding;

static CornuStatus build(CornuLayer *layer, CornuShape input)
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

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const int64_t    begin[] = { 0, 0 }, extents[] = { shape.extent[1], shape.extent[2] };
    CornuTensor *rows = cornu_op_slice(cornu_layer_read(layer, call, 0), begin, extents);
    return cornu_op_broadcast(rows, shape);
}

static CornuLayer *from(const void *config) { return cornu_position_embedding_from(config); }

#define FIELD(field) offsetof(CornuPositionEmbeddingConfig, field)
static const CornuField fields[] = {
    { "sequence_length", CORNU_FIELD_INTEGER, FIELD(sequence_length) },
    { "initializer", CORNU_FIELD_INITIALIZER, FIELD(initializer) },
    { 0 },
};

const CornuLayerClass cornu__position_embedding_class = {
    .class_name = "PositionEmbedding", .size = sizeof(PositionEmbedding), .build = build,
    .call = call,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, PositionEmbedding, from) },
};

CornuLayer *cornu_position_embedding_from(const CornuPositionEmbeddingConfig *config)
{
    const char *name = config->name ? config->name : "position_embedding";
    if (config->sequence_length < 1 || config->sequence_length > INT32_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .sequence_length is %lld, expected 1 to "
                                "%d", name, (long long)config->sequence_length, INT32_MAX);
    if (cornu__check_enums(name, CORNU_LINEAR, &config->initializer, 1)) return cornu__null();
    CornuLayer *layer = cornu_layer_create(&cornu__position_embedding_class, config->name,
                                           config->dtype);
    if (!layer) return NULL;
    CornuPositionEmbeddingConfig *to = &((PositionEmbedding *)layer)->config;
    to->sequence_length = config->sequence_length;
    to->initializer = cornu__initializer(config->initializer, CORNU_GLOROT_UNIFORM);
    layer->frozen = config->frozen;
    return layer;
}
