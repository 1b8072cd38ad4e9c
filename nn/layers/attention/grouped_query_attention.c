#include "heads_internal.h"

typedef struct {
    CornuHeads                       heads;
    CornuGroupQueryAttentionConfig config;
} GroupedQuery;

static CornuStatus grouped_query_attention_build(CornuLayer *layer, const CornuShape *given,
                                                 int in_count)
{
    CornuText text;
    for (int i = 0; i < in_count && i < CORNU_HEADS_MASK; i++)
        if (given[i].rank != 3)
            return cornu__fail(CORNU_ERR_SHAPE, "input %d is %s, expected (B, T, C)", i,
                               cornu_shape_print(&text, given[i]));
    return cornu__heads_build(layer, given, in_count);
}

static CornuStatus grouped_query_attention_resolve(CornuLayer *layer)
{
    GroupedQuery                  *self = (GroupedQuery *)layer;
    CornuGroupQueryAttentionConfig *config = &self->config;
    const char                     *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "head_dim", config->head_dim));
    CORNU__TRY(cornu__positive(name, "num_query_heads", config->num_query_heads));
    CORNU__TRY(cornu__positive(name, "num_key_value_heads", config->num_key_value_heads));
    if (config->num_query_heads % config->num_key_value_heads != 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .num_query_heads is %lld, expected a multiple "
                           "of .num_key_value_heads, %lld", name,
                           (long long)config->num_query_heads,
                           (long long)config->num_key_value_heads);
    self->heads.config = (CornuMultiHeadAttentionConfig){
        .num_heads = config->num_query_heads, .key_dim = config->head_dim,
        .dropout = config->dropout, .no_bias = config->no_bias,
        .sliding_window = config->sliding_window, .kernel_initializer = config->kernel_initializer,
        .bias_initializer = config->bias_initializer,
        .kernel_regularizer = config->kernel_regularizer,
        .bias_regularizer = config->bias_regularizer,
        .kernel_constraint = config->kernel_constraint,
        .bias_constraint = config->bias_constraint, .use_gate = config->use_gate,
        .use_causal_mask = config->use_causal_mask,
        .return_attention_scores = config->return_attention_scores,
    };
    CORNU__TRY(cornu__heads_resolve(&self->heads, config->num_key_value_heads));
    config->dropout = self->heads.config.dropout;
    return CORNU_OK;
}

#define FIELD(field) offsetof(CornuGroupQueryAttentionConfig, field)
static const CornuField fields[] = {
    { "head_dim", CORNU_FIELD_INTEGER, FIELD(head_dim) },
    { "num_query_heads", CORNU_FIELD_INTEGER, FIELD(num_query_heads) },
    { "num_key_value_heads", CORNU_FIELD_INTEGER, FIELD(num_key_value_heads) },
    { "use_bias", CORNU_FIELD_NOT, FIELD(no_bias) },
    { "use_gate", CORNU_FIELD_FLAG, FIELD(use_gate) },
    { "sliding_window", CORNU_FIELD_INTEGER_OR_NONE, FIELD(sliding_window) },
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, FIELD(kernel_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER, FIELD(bias_initializer) },
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, FIELD(kernel_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, FIELD(bias_regularizer) },
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, FIELD(kernel_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, FIELD(bias_constraint) },
    { "use_causal_mask", CORNU_FIELD_FLAG, FIELD(use_causal_mask) },
    { "return_attention_scores", CORNU_FIELD_FLAG, FIELD(return_attention_scores) },
    { 0 },
};

static const char *const folders[] = {
    "query:_query_dense", "key:_key_dense", "gate:_gate_dense", "value:_value_dense",
    "attention_output:_output_dense", NULL
};

const CornuLayerClass cornu__group_query_attention_class = {
    .class_name = "GroupQueryAttention", .size = sizeof(GroupedQuery),
    .build_many = grouped_query_attention_build,
    .call_many = cornu__heads_call, .outputs = cornu__heads_outputs,
    .continues = CORNU__FULL(cornu__heads_continue, NULL),
    .keras = &(const CornuKerasClass){
        .label = "grouped_query_attention",
        CORNU__TRAINED(fields, GroupedQuery, grouped_query_attention_resolve),
        .folders = folders, .first_operand = "query", .operands = "value key attention_mask",
        .call_arguments = "use_causal_mask return_attention_scores",
    },
};

CORNU__CONSTRUCTOR(group_query_attention, CornuGroupQueryAttentionConfig)
