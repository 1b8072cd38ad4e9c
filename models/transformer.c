#include <stdio.h>

#include "../nn/layers/layers.h"
#include "../nn/model/functional.h"
#include "translation.h"

static const double epsilon = 1e-3;    /* of Keras' LayerNormalization */

/* "encoder_1_attention", by which the decoding finds the layers, too. */
static const char *named(CornuText *to, const char *side, int64_t block, const char *part)
{
    snprintf(to->text, sizeof to->text, "%s_%lld_%s", side, (long long)block, part);
    return to->text;
}

static CornuSymbol *embedded(const char *side, CornuSymbol *tokens, int64_t vocabulary,
                             const CornuTransformerConfig *c)
{
    CornuText    a, b;
    snprintf(a.text, sizeof a.text, "%s_tokens", side);
    snprintf(b.text, sizeof b.text, "%s_positions", side);
    CornuSymbol *x = cornu_call(cornu_embedding(vocabulary, c->channels, .mask_zero = true,
                                                .name = a.text), tokens);
    return cornu_call(cornu_add(),
                      x, cornu_call(cornu_position_embedding(
                                        c->sequence_length, .name = b.text,
                                        .initializer = CORNU_RANDOM_UNIFORM), x));
}

/* Normalized before attention, not after: Keras' MultiHeadAttention takes the masks off its
 * operands, so that what a residual connection adds must be another tensor. */
static CornuSymbol *normalized(const char *side, int64_t block, const char *part, CornuSymbol *x)
{
    CornuText name;
    return cornu_call(cornu_layer_normalization(.epsilon = epsilon,
                                                .name = named(&name, side, block, part)), x);
}

static CornuSymbol *attended(const char *side, int64_t block, const char *part, CornuSymbol *x,
                             CornuSymbol *to, bool causal, const CornuTransformerConfig *c)
{
    CornuText name;
    return cornu_call(cornu_multi_head_attention(c->heads, c->key_dim, .use_causal_mask = causal,
                                                 .name = named(&name, side, block, part)), x, to);
}

static CornuSymbol *dense_block(const char *side, int64_t block, CornuSymbol *x,
                                const CornuTransformerConfig *c)
{
    CornuText    a, b;
    CornuSymbol *y = cornu_call(cornu_dense(c->hidden, .activation = CORNU_RELU,
                                            .name = named(&a, side, block, "dense")),
                                normalized(side, block, "dense_norm", x));
    y = cornu_call(cornu_dense(c->channels, .name = named(&b, side, block, "dense_out")), y);
    return cornu_call(cornu_add(.name = named(&b, side, block, "out")), x, y);
}

static CornuSymbol *encoder_block(int64_t block, CornuSymbol *x, const CornuTransformerConfig *c)
{
    CornuSymbol *y = normalized("encoder", block, "attention_norm", x);
    y = attended("encoder", block, "attention", y, y, false, c);
    return dense_block("encoder", block, cornu_call(cornu_add(), x, y), c);
}

static CornuSymbol *decoder_block(int64_t block, CornuSymbol *x, CornuSymbol *encoded,
                                  const CornuTransformerConfig *c)
{
    CornuSymbol *y = normalized("decoder", block, "attention_norm", x);
    x = cornu_call(cornu_add(), x, attended("decoder", block, "attention", y, y, true, c));
    y = normalized("decoder", block, "cross_norm", x);
    y = attended("decoder", block, "cross", y,
                 normalized("decoder", block, "source_norm", encoded), false, c);
    return dense_block("decoder", block, cornu_call(cornu_add(), x, y), c);
}

CornuModel *cornu_transformer_from(const CornuTransformerConfig *config)
{
    CornuTransformerConfig c = *config;
    if (!c.sequence_length) c.sequence_length = 20;
    if (!c.channels) c.channels = 256;
    if (!c.key_dim) c.key_dim = c.channels;
    if (!c.hidden) c.hidden = 2048;
    if (!c.heads) c.heads = 8;
    if (!c.layers) c.layers = 1;
    if (c.dropout == 0.0) c.dropout = 0.5;
    CornuSymbol *source = cornu_input(.shape = { c.sequence_length }, .name = "source");
    CornuSymbol *target = cornu_input(.shape = { c.sequence_length }, .name = "target");
    CornuSymbol *x = embedded("encoder", source, c.source_vocabulary, &c);
    for (int64_t i = 0; i < c.layers; i++) x = encoder_block(i, x, &c);
    CornuSymbol *y = embedded("decoder", target, c.target_vocabulary, &c);
    for (int64_t i = 0; i < c.layers; i++) y = decoder_block(i, y, x, &c);
    y = cornu_call(cornu_layer_normalization(.epsilon = epsilon, .name = "decoder_norm"), y);
    if (c.dropout != (double)CORNU_ZERO) y = cornu_call(cornu_dropout(c.dropout), y);
    y = cornu_call(cornu_dense(c.target_vocabulary, .activation = CORNU_SOFTMAX, .name = "token"),
                   y);
    return cornu_model(.inputs = { source, target }, .outputs = { y },
                       .name = c.name ? c.name : "transformer");
}
