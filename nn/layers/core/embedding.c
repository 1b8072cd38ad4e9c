/* Embedding and Masking, which create masks of sequences. */
#include "../quantized_internal.h"

/* ---- Embedding ---- */

typedef CORNU__LAYER(CornuEmbeddingConfig) Embedding;

static CornuStatus embedding_build(CornuLayer *layer, CornuShape input)
{
    const CornuEmbeddingConfig *config = &((Embedding *)layer)->config;
    CornuText text;
    if (input.rank >= CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected fewer axes",
                           cornu_shape_print(&text, input));
    const CornuQuantizable table = {
        .name = "embeddings", .shape = cornu_shape(config->input_dim, config->output_dim),
        .kept = { 0 }, .kept_count = 1, .scale = cornu_shape(config->input_dim),
        .rows = config->input_dim, .columns = config->output_dim, .by_row = true,
        .initializer = config->embeddings_initializer,
        .regularizer = config->embeddings_regularizer,
        .constraint = config->embeddings_constraint,
    };
    if (config->sparse_gradient && cornu__quantization(layer))
        return cornu__fail(CORNU_ERR_ARGUMENT, ".sparse_gradient is given and the policy %s, whose "
                           "table has no gradient; expected one of them", layer->own_policy->name);
    CORNU__TRY(cornu__kernels_declare(layer, &table, 1));
    CORNU__TRY(cornu__kernels_finish(layer));
    const int index = cornu__kernel_weight(layer, layer->kernels, "");
    layer->weights[index]->sparse_gradient = config->sparse_gradient;
    return CORNU_OK;
}

CornuTensor *cornu__indices(const CornuCall *call, CornuTensor *x)
{
    const bool whole = x && !cornu_dtype_is_float(cornu_tensor_type(x).dtype);
    return whole || !call->description ? cornu_op_indices(x) : cornu_op_convert(x, CORNU_I32);
}

/* Adds row 0 of a table of one row with a zero: for NaN it is looked up where no row is. */
CornuTensor *cornu__refuse_nan(const CornuCall *call, CornuTensor *x)
{
    if (!x || !cornu_dtype_is_float(cornu_tensor_type(x).dtype) || (call && call->description))
        return x;
    const CornuType  type = cornu_tensor_type(x);
    CornuGraph      *graph = cornu_tensor_graph(x);
    const CornuShape flat = cornu_shape(cornu_shape_count(type.shape));
    CornuTensor *table = cornu_op_constant(graph, cornu_type(type.dtype, 1, 1), 0.0);
    CornuTensor *list = cornu_op_reshape(x, flat);
    CornuTensor *zero = list ? cornu_op_constant_like(list, 0.0) : NULL;
    CornuTensor *at = cornu_op_select(cornu_op_compare(list, CORNU_NOT_EQUAL, list), list, zero);
    CornuTensor *none = cornu_op_gather(table, cornu_op_indices(at));
    return cornu_op_add(x, cornu_op_reshape(none, type.shape));
}

static CornuTensor *embedding_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    x = cornu__indices(call, x);
    if (((Embedding *)layer)->config.sparse_gradient)   /* the rows are converted, not the table */
        return cornu_op_convert(cornu_op_gather(cornu_layer_read_as(layer, call, 0, CORNU_F32), x),
                                layer->compute);
    return cornu__kernel_rows(layer, call, layer->kernels, x);
}

static CornuTensor *embedding_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!((Embedding *)layer)->config.mask_zero) return NULL;
    x = cornu__indices(call, x);
    return cornu_op_compare(x, CORNU_NOT_EQUAL, cornu_op_constant_like(x, 0.0));
}

static CornuStatus embedding_resolve(CornuLayer *layer)
{
    CornuEmbeddingConfig *config = &((Embedding *)layer)->config;
    const char           *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "input_dim", config->input_dim));
    CORNU__TRY(cornu__positive(name, "output_dim", config->output_dim));
    if (config->sparse_gradient &&
        (config->embeddings_regularizer.kind || config->embeddings_constraint.kind))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .sparse_gradient is given and .%s, which is "
                           "of all rows; expected one of them", name,
                           config->embeddings_regularizer.kind ? "embeddings_regularizer"
                                                               : "embeddings_constraint");
    return CORNU_OK;
}

static const CornuField embedding_fields[] = {
    { "input_dim", CORNU_FIELD_INTEGER, offsetof(CornuEmbeddingConfig, input_dim) },
    { "output_dim", CORNU_FIELD_INTEGER, offsetof(CornuEmbeddingConfig, output_dim) },
    { "embeddings_initializer", CORNU_FIELD_INITIALIZER,
      offsetof(CornuEmbeddingConfig, embeddings_initializer) },
    { "embeddings_regularizer", CORNU_FIELD_REGULARIZER,
      offsetof(CornuEmbeddingConfig, embeddings_regularizer) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER,
      offsetof(CornuEmbeddingConfig, activity_regularizer) },
    { "embeddings_constraint", CORNU_FIELD_CONSTRAINT,
      offsetof(CornuEmbeddingConfig, embeddings_constraint) },
    { "mask_zero", CORNU_FIELD_FLAG, offsetof(CornuEmbeddingConfig, mask_zero) },
    { 0 },
};

const CornuLayerClass cornu__embedding_class = {
    .class_name = "Embedding", .size = sizeof(Embedding), .build = embedding_build,
    .call = embedding_call, .mask = embedding_mask, .takes_integers = true,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(embedding_fields, Embedding, embedding_resolve), .lora = "embeddings",
        .lora_resets_alpha = true, .quantizes = 1 << CORNU_INT8 | 1 << CORNU_INT4,
    },
};

CORNU__CONSTRUCTOR(embedding, CornuEmbeddingConfig)

/* ---- Masking ---- */

typedef CORNU__LAYER(CornuMaskingConfig) Masking;

static CornuStatus masking_build(CornuLayer *layer, CornuShape input)
{
    (void)layer;
    CornuText text;
    if (input.rank >= 3) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, T, …, C)",
                       cornu_shape_print(&text, input));
}

/* bool (B, T, …, 1): whether any element differs from mask_value */
static CornuTensor *differs(CornuLayer *layer, CornuTensor *x, bool keep)
{
    if (!x) return NULL;
    CornuTensor *value = cornu_op_constant_like(x, ((Masking *)layer)->config.mask_value);
    CornuTensor *other = cornu_op_convert(cornu_op_compare(x, CORNU_NOT_EQUAL, value), CORNU_F32);
    const int64_t last = INT64_C(1) << (cornu_tensor_shape(x).rank - 1);
    CornuTensor  *any = other ? cornu_op_reduce_max(other, last, keep) : NULL;
    return cornu_op_convert(any, CORNU_BOOL);
}

static CornuTensor *masking_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    CornuTensor *counts = differs(layer, x, true);
    return counts ? cornu_op_select(counts, x, cornu_op_constant_like(x, 0.0)) : NULL;
}

static CornuTensor *masking_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return differs(layer, x, false);
}

static CornuStatus masking_resolve(CornuLayer *layer)
{
    double *value = &((Masking *)layer)->config.mask_value;
    *value = cornu__number(*value, 0.0);
    return CORNU_OK;
}

static const CornuField masking_fields[] = {
    { "mask_value", CORNU_FIELD_NUMBER, offsetof(CornuMaskingConfig, mask_value) },
    { 0 },
};

const CornuLayerClass cornu__masking_class = {
    .class_name = "Masking", .size = sizeof(Masking), .build = masking_build, .call = masking_call,
    .mask = masking_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(masking_fields, Masking, masking_resolve) },
};

CORNU__CONSTRUCTOR(masking, CornuMaskingConfig)
