#include "../nn/model/functional.h"
#include "../nn/layers/layers.h"
#include "models.h"

static const double dropout = 0.1;

static CornuSymbol *normalized(CornuSymbol *x)
{
    return cornu_call(cornu_layer_normalization(.epsilon = 1e-5), x);
}

static CornuSymbol *added(CornuSymbol *x, CornuSymbol *y)
{
    return cornu_call(cornu_add(), x, cornu_call(cornu_dropout(dropout), y));
}

static CornuSymbol *block(CornuSymbol *x, int64_t channels, int64_t heads)
{
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(heads, channels / heads,
                                                           .use_causal_mask = true),
                                normalized(x));
    x = added(x, y);
    y = cornu_call(cornu_dense(4 * channels, .activation = CORNU_GELU), normalized(x));
    return added(x, cornu_call(cornu_dense(channels), y));
}

CornuModel *cornu_char_gpt_from(const CornuShakespeareConfig *config)
{
    const CornuTextPreset *preset = config->preset ? config->preset : cornu_text_preset("gpt");
    const int64_t T = config->sequence_length ? config->sequence_length : preset->sequence_length;
    const int64_t vocabulary = config->vocabulary ? config->vocabulary : 256;
    CornuSymbol  *text = cornu_input(.shape = { T }, .name = "text");
    CornuSymbol  *x = cornu_call(cornu_embedding(vocabulary, preset->channels), text);
    x = cornu_call(cornu_add(), x, cornu_call(cornu_position_embedding(T), x));
    x = cornu_call(cornu_dropout(dropout), x);
    for (int64_t i = 0; i < preset->layers; i++) x = block(x, preset->channels, preset->heads);
    x = cornu_call(cornu_dense(vocabulary, .activation = CORNU_SOFTMAX), normalized(x));
    return cornu_model(.inputs = { text }, .outputs = { x }, .name = preset->model);
}
