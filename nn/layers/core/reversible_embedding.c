#include "../quantized_internal.h"

#include <math.h>
#include <string.h>

typedef CORNU__LAYER(CornuReversibleEmbeddingConfig) Reversible;

enum { EMBEDDINGS, REVERSE_EMBEDDINGS };

static const struct { const char *name; CornuDtype dtype; } dtypes[] = {
    { "float32", CORNU_F32 }, { "bfloat16", CORNU_BF16 }, { "float16", CORNU_F16 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static CornuStatus reversible_embedding_build(CornuLayer *layer, CornuShape input)
{
    const CornuReversibleEmbeddingConfig *config = &((Reversible *)layer)->config;
    CornuText text;
    if (input.rank < 2 || input.rank >= CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, T)",
                           cornu_shape_print(&text, input));
    const int64_t     in = config->input_dim, out = config->output_dim;
    const CornuQuantizable tables[] = {
        { .name = "embeddings", .shape = cornu_shape(in, out), .kept = { 0 }, .kept_count = 1,
          .scale = cornu_shape(in), .rows = in, .columns = out, .by_row = true,
          .initializer = config->embeddings_initializer,
          .regularizer = config->embeddings_regularizer,
          .constraint = config->embeddings_constraint },
        { .name = "reverse_embeddings", .shape = cornu_shape(out, in), .kept = { 1 },
          .kept_count = 1, .scale = cornu_shape(in), .rows = out, .columns = in,
          .packs_rows = true, .follows = true, .initializer = config->embeddings_initializer },
    };
    CORNU__TRY(cornu__kernels_declare(layer, tables, config->no_tie_weights ? 2 : 1));
    return cornu__kernels_finish(layer);
}

static CornuTensor *times_rows(const void *context, CornuTensor *x, CornuTensor *table,
                               CornuDtype dtype)
{
    const bool *tied = context;
    return cornu_op_matmul_to(x, *tied ? cornu_op_transpose(table, (const int[]){ 1, 0 }) : table,
                              dtype);
}

/* The product of x (N, output_dim) with a quantized table. */
static CornuTensor *quantized(CornuLayer *layer, const CornuCall *call, CornuTensor *x, bool tied)
{
    const CornuProduct product = {
        .kernel = &layer->kernels[tied ? EMBEDDINGS : REVERSE_EMBEDDINGS],
        .function = times_rows, .context = &tied, .pairs = { { 1, tied ? 1 : 0 } },
        .pair_count = 1, .from_x = { 0, -1 }, .rank = 2, .last_scaled = true,
    };
    return cornu__kernel_product(layer, call, x, &product, true);
}

/* The logits of x (B, …, output_dim). */
static CornuTensor *reversed(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuReversibleEmbeddingConfig *config = &((Reversible *)layer)->config;
    const bool tied = !config->no_tie_weights;
    CornuDtype dtype = layer->compute, result = layer->result;
    CornuShape shape = cornu_tensor_shape(x);
    CornuText  text;
    if (shape.extent[shape.rank - 1] != config->output_dim)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: the input of its reverse is %s, expected "
                                "(B, …, %lld)", cornu_layer_name(layer),
                                cornu_shape_print(&text, shape), (long long)config->output_dim);
    for (int i = 0; i < DTYPES && config->reverse_dtype; i++)
        if (!strcmp(dtypes[i].name, config->reverse_dtype)) dtype = result = dtypes[i].dtype;
    if (cornu__quantization(layer)) dtype = layer->compute, result = layer->result;
    x = cornu_op_reshape(cornu_op_convert(x, dtype), cornu_shape(CORNU_NONE, config->output_dim));
    CornuTensor *y = cornu__quantization(layer)
        ? quantized(layer, call, x, tied)
        : times_rows(&tied, x, cornu_layer_read_as(layer, call, tied ? EMBEDDINGS
                                                                     : REVERSE_EMBEDDINGS, dtype),
                     result);
    shape.extent[shape.rank - 1] = config->input_dim;
    y = cornu_op_reshape(y, shape);
    const double cap = config->logit_soft_cap;
    return cap == 0.0 ? y : cornu_op_scale(cornu_op_tanh(cornu_op_scale(y, 1.0 / cap)), cap);
}

static CornuTensor *reversible_embedding_call(CornuLayer *layer, const CornuCall *call,
                                              CornuTensor *x)
{
    if (layer->reverse) return x ? reversed(layer, call, x) : NULL;
    return cornu__kernel_rows(layer, call, &layer->kernels[EMBEDDINGS], cornu__indices(call, x));
}

static CornuTensor *mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!((Reversible *)layer)->config.mask_zero || layer->reverse) return NULL;
    x = cornu__indices(call, x);
    return cornu_op_compare(x, CORNU_NOT_EQUAL, cornu_op_constant_like(x, 0.0));
}

static CornuStatus reversible_embedding_resolve(CornuLayer *layer)
{
    CornuReversibleEmbeddingConfig *config = &((Reversible *)layer)->config;
    const char                     *name = cornu_layer_name(layer);
    int i = 0;
    CORNU__TRY(cornu__positive(name, "input_dim", config->input_dim));
    CORNU__TRY(cornu__positive(name, "output_dim", config->output_dim));
    while (i < DTYPES && config->reverse_dtype && strcmp(config->reverse_dtype, dtypes[i].name))
        i++;
    if (i == DTYPES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .reverse_dtype is %.40s, expected float32, "
                           "bfloat16 or float16", name, config->reverse_dtype);
    if (config->reverse_dtype) config->reverse_dtype = dtypes[i].name;
    if (!(config->logit_soft_cap >= 0.0 && isfinite(config->logit_soft_cap)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .logit_soft_cap is %g, expected more than 0",
                           name, config->logit_soft_cap);
    return CORNU_OK;
}

#define FIELD(field) offsetof(CornuReversibleEmbeddingConfig, field)
static const CornuField fields[] = {
    { "input_dim", CORNU_FIELD_INTEGER, FIELD(input_dim) },
    { "output_dim", CORNU_FIELD_INTEGER, FIELD(output_dim) },
    { "embeddings_initializer", CORNU_FIELD_INITIALIZER, FIELD(embeddings_initializer) },
    { "embeddings_regularizer", CORNU_FIELD_REGULARIZER, FIELD(embeddings_regularizer) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, FIELD(activity_regularizer) },
    { "embeddings_constraint", CORNU_FIELD_CONSTRAINT, FIELD(embeddings_constraint) },
    { "mask_zero", CORNU_FIELD_FLAG, FIELD(mask_zero) },
    { "tie_weights", CORNU_FIELD_NOT, FIELD(no_tie_weights) },
    { "reverse_dtype", CORNU_FIELD_TEXT, FIELD(reverse_dtype) },
    { "logit_soft_cap", CORNU_FIELD_NUMBER_OR_NONE, FIELD(logit_soft_cap) },
    { 0 },
};

const CornuLayerClass cornu__reversible_embedding_class = {
    .class_name = "ReversibleEmbedding", .size = sizeof(Reversible),
    .build = reversible_embedding_build, .call = reversible_embedding_call,
    .mask = mask, .takes_integers = true,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(fields, Reversible, reversible_embedding_resolve), .reverses = true,
        .lora = "embeddings", .lora_resets_alpha = true,
        .quantizes = 1 << CORNU_INT8 | 1 << CORNU_INT4,
    },
};

CORNU__CONSTRUCTOR(reversible_embedding, CornuReversibleEmbeddingConfig)
