#include "causal_models.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include "../golden.h"

enum { STEPS = CAUSAL_STEPS, CHANNELS = 16 };

CornuSymbol *causal_embedded(CornuSymbol *tokens)
{
    return cornu_call(cornu_embedding(VOCABULARY, CHANNELS), tokens);
}

CornuModel *causal_predicting(CornuSymbol *tokens, CornuSymbol *x)
{
    x = cornu_call(cornu_dense(VOCABULARY), x);
    return cornu_model(.inputs = { tokens }, .outputs = { x });
}

static CornuSymbol *attended(CornuSymbol *x, CornuLayer *attention)
{
    CornuSymbol *y = cornu_call(cornu_layer_normalization(), x);
    x = cornu_call(cornu_add(), x, cornu_call(attention, y, y));
    y = cornu_call(cornu_dense(2 * CHANNELS, .activation = CORNU_GELU),
                   cornu_call(cornu_rms_normalization(), x));
    return cornu_call(cornu_add(), x, cornu_call(cornu_dense(CHANNELS), y));
}

static CornuSymbol *placed(CornuSymbol *x)
{
    return cornu_call(cornu_add(), x, cornu_call(cornu_position_embedding(STEPS), x));
}

static CornuSymbol *gpt(CornuSymbol *x)
{
    x = attended(placed(x), cornu_multi_head_attention(2, 8, .use_causal_mask = true));
    return attended(cornu_call(cornu_dropout(0.3), x),
                    cornu_multi_head_attention(4, 4, .value_dim = 6, .use_causal_mask = true,
                                               .dropout = 0.1));
}

static CornuSymbol *grouped(CornuSymbol *x)
{
    x = attended(placed(x), cornu_group_query_attention(4, 4, 2, .use_causal_mask = true,
                                                        .sliding_window = 9));
    return attended(x, cornu_multi_head_attention(2, 8, .use_causal_mask = true,
                                                  .use_gate = true, .no_bias = true));
}

CornuSymbol *causal_lstm(CornuSymbol *x)
{
    x = cornu_call(cornu_lstm(24, .return_sequences = true), x);
    return cornu_call(cornu_time_distributed(cornu_dense(CHANNELS, .activation = CORNU_TANH)), x);
}

static CornuSymbol *gru(CornuSymbol *x)
{
    x = cornu_call(cornu_gru(24, .return_sequences = true), x);
    return cornu_call(cornu_simple_rnn(12, .return_sequences = true), x);
}

static CornuSymbol *cells(CornuSymbol *x)
{
    CornuLayer *stack = cornu_stacked_rnn_cells({ cornu_lstm_cell(9), cornu_gru_cell(14) });
    return cornu_call(cornu_rnn(stack, .return_sequences = true), x);
}

/* The gated convolutions of WaveNet, whose dilations are powers of two. */
static CornuSymbol *wavenet(CornuSymbol *x)
{
    for (int64_t rate = 1; rate <= 16; rate *= 2) {
        CornuSymbol *f = cornu_call(cornu_conv1d(CHANNELS, 2, .padding = CORNU_CAUSAL,
                                                 .dilation_rate = rate,
                                                 .activation = CORNU_TANH), x);
        CornuSymbol *g = cornu_call(cornu_conv1d(CHANNELS, 3, .padding = CORNU_CAUSAL,
                                                 .dilation_rate = rate,
                                                 .activation = CORNU_SIGMOID), x);
        CornuSymbol *y = cornu_call(cornu_multiply(), f, g);
        x = cornu_call(cornu_add(), x, cornu_call(cornu_conv1d(CHANNELS, 1), y));
    }
    return x;
}

/* All of them, one within another model, one layer twice. */
static CornuSymbol *mixed(CornuSymbol *x)
{
    CornuModel *inner = cornu_sequential(.input_shape = { CORNU_NONE, CHANNELS });
    cornu_model_add(inner, cornu_gru(CHANNELS, .return_sequences = true));
    cornu_model_add(inner, cornu_conv1d(CHANNELS, 4, .padding = CORNU_CAUSAL));
    cornu_model_add(inner, cornu_batch_normalization());
    CornuLayer *shared = cornu_lstm(CHANNELS, .return_sequences = true);
    x = cornu_call(cornu_as_layer(inner), x);
    x = cornu_call(shared, cornu_call(shared, x));
    return attended(x, cornu_multi_head_attention(2, 8, .use_causal_mask = true));
}

const CausalCase causal_cases[CASES] = {
    { "gpt", gpt, true }, { "grouped", grouped, true }, { "lstm", causal_lstm, false },
    { "gru", gru, false }, { "cells", cells, false }, { "wavenet", wavenet, false },
    { "mixed", mixed, true },
};
CornuModel *causal_model(int i, int64_t steps, CornuDevice *device)
{
    cornu_set_random_seed(40 + (uint64_t)i);
    CornuSymbol *tokens = cornu_input(.shape = { steps });
    CornuModel  *model = causal_predicting(tokens, causal_cases[i].layers(causal_embedded(tokens)));
    if (!model) fail_msg("%s: %s", causal_cases[i].name, cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    return model;
}
