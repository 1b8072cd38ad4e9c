#include "heads_internal.h"

static CornuStatus multi_head_attention_resolve(CornuLayer *layer)
{
    CornuHeads                          *self = (CornuHeads *)layer;
    const CornuMultiHeadAttentionConfig *config = &self->config;
    const char                          *name = cornu_layer_name(layer);
    CORNU__TRY(cornu__positive(name, "num_heads", config->num_heads));
    CORNU__TRY(cornu__positive(name, "key_dim", config->key_dim));
    if (config->value_dim) CORNU__TRY(cornu__positive(name, "value_dim", config->value_dim));
    for (int i = 0; i < CORNU_MAX_RANK && config->output_shape[i]; i++)
        if (config->output_shape[i] < 1 || config->output_shape[i] > INT32_MAX ||
            i == CORNU_MAX_RANK - 2)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .output_shape[%d] is %lld; expected at "
                               "most %d extents from 1 to %d", name, i,
                               (long long)config->output_shape[i], CORNU_MAX_RANK - 2, INT32_MAX);
    return cornu__heads_resolve(self, config->num_heads);
}

#define FIELD(field) offsetof(CornuMultiHeadAttentionConfig, field)
static const CornuField fields[] = {
    { "num_heads", CORNU_FIELD_INTEGER, FIELD(num_heads) },
    { "key_dim", CORNU_FIELD_INTEGER, FIELD(key_dim) },
    { "value_dim", CORNU_FIELD_INTEGER, FIELD(value_dim) },
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },
    { "use_bias", CORNU_FIELD_NOT, FIELD(no_bias) },
    { "output_shape", CORNU_FIELD_SHAPE, FIELD(output_shape) },
    { "attention_axes", CORNU_FIELD_ROW_AXES_OR_NONE, FIELD(attention_axes) },
    { "sliding_window", CORNU_FIELD_INTEGER_OR_NONE, FIELD(sliding_window) },
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, FIELD(kernel_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER, FIELD(bias_initializer) },
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, FIELD(kernel_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, FIELD(bias_regularizer) },
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, FIELD(kernel_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, FIELD(bias_constraint) },
    { "use_gate", CORNU_FIELD_FLAG, FIELD(use_gate) },
    { "use_causal_mask", CORNU_FIELD_FLAG, FIELD(use_causal_mask) },
    { "return_attention_scores", CORNU_FIELD_FLAG, FIELD(return_attention_scores) },
    { 0 },
};

static const char *const folders[] = {
    "query:query_dense", "key:key_dense", "gate:_gate_dense", "value:value_dense",
    "attention_output:output_dense", NULL
};

const CornuLayerClass cornu__multi_head_attention_class = {
    .class_name = "MultiHeadAttention", .size = sizeof(CornuHeads),
    .build_many = cornu__heads_build, .call_many = cornu__heads_call,
    .continues = CORNU__FULL(cornu__heads_continue, NULL),
    .outputs = cornu__heads_outputs, .consumes_masks = true,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(fields, CornuHeads, multi_head_attention_resolve), .folders = folders,
        .first_operand = "query", .operands = "value key attention_mask",
        .call_arguments = "use_causal_mask return_attention_scores",
    },
};

CORNU__CONSTRUCTOR(multi_head_attention, CornuMultiHeadAttentionConfig)
