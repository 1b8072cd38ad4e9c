/* Generators: what is kept of earlier tokens gives what the whole sequence gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../golden.h"

enum { VOCABULARY = 23, STEPS = 256, ROWS = 3, CHANNELS = 16 };

/* ---- Models ---- */

static CornuSymbol *embedded(CornuSymbol *tokens)
{
    return cornu_call(cornu_embedding(VOCABULARY, CHANNELS), tokens);
}

static CornuModel *predicting(CornuSymbol *tokens, CornuSymbol *x)
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

static CornuSymbol *lstm(CornuSymbol *x)
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
    CornuModel *inner = cornu_sequential(.input_shape = { STEPS, CHANNELS });
    cornu_model_add(inner, cornu_gru(CHANNELS, .return_sequences = true));
    cornu_model_add(inner, cornu_conv1d(CHANNELS, 4, .padding = CORNU_CAUSAL));
    cornu_model_add(inner, cornu_batch_normalization());
    CornuLayer *shared = cornu_lstm(CHANNELS, .return_sequences = true);
    x = cornu_call(cornu_as_layer(inner), x);
    x = cornu_call(shared, cornu_call(shared, x));
    return attended(x, cornu_multi_head_attention(2, 8, .use_causal_mask = true));
}

static const struct {
    const char *name;
    CornuSymbol *(*layers)(CornuSymbol *x);
    bool windowed;
} cases[] = {
    { "gpt", gpt, true }, { "grouped", grouped, true }, { "lstm", lstm, false },
    { "gru", gru, false }, { "cells", cells, false }, { "wavenet", wavenet, false },
    { "mixed", mixed, true },
};
enum { CASES = sizeof cases / sizeof *cases };

static CornuModel *make(int i, int64_t steps, CornuDevice *device)
{
    cornu_set_random_seed(40 + (uint64_t)i);
    CornuSymbol *tokens = cornu_input(.shape = { steps });
    CornuModel  *model = predicting(tokens, cases[i].layers(embedded(tokens)));
    if (!model) fail_msg("%s: %s", cases[i].name, cornu_error_message());
    expect_ok(cornu_compile(model, .device = device));
    return model;
}

/* ---- The whole sequence and step by step ---- */

static int64_t best(const float *p)
{
    int64_t at = 0;
    for (int64_t i = 1; i < VOCABULARY; i++)
        if (p[i] > p[at]) at = i;
    return at;
}

/* In f32 two orders of the same sums differ by rounding: through some ten layers of sums of some
 * hundred products 1000 units in the last place are far more. */
static const double bound = 1000 * 6e-8;

static void steps_equal_the_window(void **state)
{
    (void)state;
    static float whole[ROWS][STEPS][VOCABULARY], next[ROWS][VOCABULARY];
    static const int64_t lengths[ROWS] = { 1, 7, 40 };
    for (int i = 0; i < CASES; i++) {
        int32_t      all[ROWS][STEPS] = { { 0 } }, drawn[ROWS];
        CornuArray   primes[ROWS];
        CornuDevice *device = cornu_device_open("cpu", .threads = 2);
        CornuModel  *model = make(i, STEPS, device);
        CornuTokenGenerator *generator = cornu_generator(model, ROWS);
        if (!generator) fail_msg("%s: %s", cases[i].name, cornu_error_message());
        assert_int_equal(cornu_generator_window(generator), cases[i].windowed ? STEPS : 0);
        assert_int_equal(cornu_generator_vocabulary(generator), VOCABULARY);
        for (int b = 0; b < ROWS; b++) {
            for (int t = 0; t < lengths[b]; t++) all[b][t] = (5 * t + 3 * b + t * t) % VOCABULARY;
            primes[b] = cornu_array(all[b], CORNU_I32, lengths[b]);
        }
        const CornuArray to = cornu_array(next, CORNU_F32, ROWS, VOCABULARY);
        static float kept[ROWS][STEPS][VOCABULARY];
        expect_ok(cornu_generator_begin(generator, primes, to));
        for (int n = 0; n < 212; n++) {
            for (int b = 0; b < ROWS; b++) {
                drawn[b] = (int32_t)best(next[b]);
                memcpy(kept[b][lengths[b] + n - 1], next[b], sizeof next[b]);
                all[b][lengths[b] + n] = drawn[b];
            }
            expect_ok(cornu_generator_next(generator, cornu_array(drawn, CORNU_I32, ROWS), to));
        }
        expect_ok(cornu_predict_on_batch(model, cornu_array(all, CORNU_I32, ROWS, STEPS),
                                         cornu_array(whole, CORNU_F32, ROWS, STEPS, VOCABULARY)));
        double most = 0.0, apart = 0.0;
        for (int b = 0; b < ROWS; b++)
            for (int64_t t = lengths[b] - 1; t < lengths[b] + 211; t++)
                for (int v = 0; v < VOCABULARY; v++) {
                    most = fmax(most, fabs(whole[b][t][v]));
                    apart = fmax(apart, fabs(whole[b][t][v] - kept[b][t][v]));
                }
        print_message("%s: %g of %g\n", cases[i].name, apart, most);
        assert_true(most > 0.01);
        assert_true(apart <= bound * most);
        cornu_generator_free(generator);
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
