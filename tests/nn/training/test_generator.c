/* Generators: what is kept of earlier tokens gives what the whole sequence gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/random.h"
#include "../../../nn/cornu.h"
#include "../../allocations.h"
#include "../../skip.h"
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
    CornuModel *inner = cornu_sequential(.input_shape = { CORNU_NONE, CHANNELS });
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
 * hundred products by at most 1000 units in the last place of the largest. */
static const double bound = 1000 * 6e-8;

static const int64_t lengths[ROWS] = { 1, 7, 40 };

static void begin_text(int32_t all[ROWS][STEPS], CornuArray *primes)
{
    for (int b = 0; b < ROWS; b++) {
        for (int t = 0; t < STEPS; t++)
            all[b][t] = t < lengths[b] ? (5 * t + 3 * b + t * t) % VOCABULARY : 0;
        primes[b] = cornu_array(all[b], CORNU_I32, lengths[b]);
    }
}

enum { WRITTEN = STEPS - 41 };

/* Writes the most probable tokens after the first ones, and what was predicted for each. */
static void write_greedily(CornuTokenGenerator *generator, int32_t all[ROWS][STEPS],
                           float (*kept)[STEPS][VOCABULARY])
{
    static float     next[ROWS][VOCABULARY];
    const CornuArray to = cornu_array(next, CORNU_F32, ROWS, VOCABULARY);
    int32_t          drawn[ROWS];
    CornuArray       primes[ROWS];
    begin_text(all, primes);
    expect_ok(cornu_generator_begin(generator, primes, to));
    for (int n = 0; n < WRITTEN; n++) {
        for (int b = 0; b < ROWS; b++) {
            drawn[b] = all[b][lengths[b] + n] = (int32_t)best(next[b]);
            memcpy(kept[b][lengths[b] + n - 1], next[b], sizeof next[b]);
        }
        expect_ok(cornu_generator_next(generator, cornu_array(drawn, CORNU_I32, ROWS), to));
    }
}

static void expect_window(const char *name, CornuModel *model, int32_t all[ROWS][STEPS],
                          float (*kept)[STEPS][VOCABULARY])
{
    static float whole[ROWS][STEPS][VOCABULARY];
    double       most = 0.0, apart = 0.0;
    expect_ok(cornu_predict_on_batch(model, cornu_array(all, CORNU_I32, ROWS, STEPS),
                                     cornu_array(whole, CORNU_F32, ROWS, STEPS, VOCABULARY)));
    for (int b = 0; b < ROWS; b++)
        for (int64_t t = lengths[b] - 1; t < lengths[b] + WRITTEN - 1; t++) {
            for (int v = 0; v < VOCABULARY; v++) {
                most = fmax(most, fabs(whole[b][t][v]));
                apart = fmax(apart, fabs(whole[b][t][v] - kept[b][t][v]));
                assert_true(isfinite(kept[b][t][v]));
            }
            assert_true(whole[b][t][best(whole[b][t])] - whole[b][t][all[b][t + 1]] <=
                        bound * most);
        }
    if (!(most > 0.01 && apart <= bound * most)) fail_msg("%s: %g of %g", name, apart, most);
}

static void steps_equal_the_window(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu", "tpu" };
    static float kept[ROWS][STEPS][VOCABULARY];
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < CASES; i++) {
            int32_t      all[ROWS][STEPS];
            CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
            cornu_set_dtype_policy("float32");
            CornuModel          *model = make(i, STEPS, device);
            CornuTokenGenerator *generator = cornu_generator(model, ROWS);
            if (!generator) fail_msg("%s: %s", cases[i].name, cornu_error_message());
            assert_int_equal(cornu_generator_window(generator), cases[i].windowed ? STEPS : 0);
            assert_int_equal(cornu_generator_vocabulary(generator), VOCABULARY);
            assert_int_equal(cornu_generator_batch_size(generator), ROWS);
            for (int turn = 0; turn < 2; turn++) {   /* what was kept of others is not seen */
                write_greedily(generator, all, kept);
                expect_window(cases[i].name, model, all, kept);
            }
            cornu_generator_free(generator);
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

/* Keras' own files, and the tokens that Keras finds by whole sequences. */
static void files_of_keras_continue(void **state)
{
    (void)state;
    static const char *const names[] = { "attention", "recurrences", "convolutions", "mixed" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum { B = 2, V = 17, FOUND = 219 };
        float next[B][V];
        char  path[80];
        snprintf(path, sizeof path, "tests/golden/generate/%s.npz", names[i]);
        CornuNpz         *data = cornu_npz_open(path);
        const CornuArray  tokens = cornu_npz_find(data, "tokens")->array;
        const CornuArray  counts = cornu_npz_find(data, "primes")->array;
        const int64_t     steps = tokens.type.shape.extent[1];
        snprintf(path, sizeof path, "tests/golden/generate/%s.keras", names[i]);
        CornuModel *model = cornu_model_load(path);
        if (!model) fail_msg("%s: %s", path, cornu_error_message());
        CornuTokenGenerator *generator = cornu_generator(model, B);
        if (!generator) fail_msg("%s: %s", path, cornu_error_message());
        const int32_t *all = tokens.data, *count = counts.data;
        CornuArray     primes[B];
        const CornuArray to = cornu_array(next, CORNU_F32, B, V);
        for (int b = 0; b < B; b++)
            primes[b] = cornu_array((void *)(all + b * steps), CORNU_I32, count[b]);
        expect_ok(cornu_generator_begin(generator, primes, to));
        for (int n = 0; n < FOUND; n++) {
            int32_t drawn[B];
            for (int b = 0; b < B; b++) {
                drawn[b] = 0;
                for (int v = 1; v < V; v++)
                    if (next[b][v] > next[b][drawn[b]]) drawn[b] = v;
                if (drawn[b] != all[b * steps + count[b] + n])
                    fail_msg("%s: token %d of sequence %d is %d", names[i], n, b, drawn[b]);
                if (count[b] + n == FOUND)   /* read 0 to 218 */
                    expect_near(names[i], next[b],
                                cornu_array((float *)cornu_npz_find(data, "logits")->array.data +
                                            b * V, CORNU_F32, V), 1e-4);
            }
            expect_ok(cornu_generator_next(generator, cornu_array(drawn, CORNU_I32, B), to));
        }
        cornu_generator_free(generator);
        cornu_model_free(model);
        cornu_npz_close(data);
    }
}

/* A mask of zeros: recurrences skip these steps. */
static CornuSymbol *masked(CornuSymbol *tokens)
{
    CornuSymbol *x = cornu_call(cornu_embedding(VOCABULARY, CHANNELS, .mask_zero = true), tokens);
    return cornu_call(cornu_gru(CHANNELS, .return_sequences = true), x);
}

static void masks_skip_steps(void **state)
{
    (void)state;
    float        kept[6][VOCABULARY], whole[6][VOCABULARY];
    int32_t      all[6] = { 3, 0, 5, 0, 0, 7 };
    CornuSymbol *tokens = cornu_input(.shape = { 6 });
    CornuModel  *model = predicting(tokens, masked(tokens));
    CornuTokenGenerator *generator = cornu_generator(model);
    for (int n = 0; n < 6; n++) {
        const CornuArray to = cornu_array(kept[n], CORNU_F32, 1, VOCABULARY);
        const CornuArray first = cornu_array(all, CORNU_I32, 2);
        expect_ok(n < 2 ? cornu_generator_begin(generator, &first, to)
                        : cornu_generator_next(generator, cornu_array(&all[n], CORNU_I32, 1), to));
    }
    expect_ok(cornu_predict_on_batch(model, cornu_array(all, CORNU_I32, 1, 6),
                                     cornu_array(whole, CORNU_F32, 1, 6, VOCABULARY)));
    for (int n = 1; n < 6; n++)
        for (int v = 0; v < VOCABULARY; v++)
            assert_float_equal(kept[n][v], whole[n][v], 1e-6);
    cornu_generator_free(generator);
    cornu_model_free(model);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    static float kept[3][ROWS][STEPS][VOCABULARY];
    for (int i = 0; i < CASES; i++) {
        CornuModel *model = make(i, STEPS, NULL);
        for (int n = 0; n < 3; n++) {
            int32_t              all[ROWS][STEPS];
            CornuTokenGenerator *generator = cornu_generator(model, ROWS, .threads = n + 1);
            memset(kept[n], 0, sizeof kept[n]);
            write_greedily(generator, all, kept[n]);
            assert_memory_equal(kept[n], kept[0], sizeof kept[0]);
            cornu_generator_free(generator);
        }
        cornu_model_free(model);
    }
}

/* ---- Drawing ---- */

enum { SMALL = 16, DRAWN = 40 };

typedef struct {
    int64_t tokens[ROWS][DRAWN];
    int     count[ROWS], end_at[ROWS];
} Texts;

static bool keep(void *context, int64_t sequence, int64_t token)
{
    Texts *texts = context;
    texts->tokens[sequence][texts->count[sequence]++] = token;
    return texts->count[sequence] != texts->end_at[sequence];
}

static bool keep_alone(void *context, int64_t token) { return keep(context, 0, token); }

/* As random.h says: draw i of sequence b. */
static double number(uint64_t seed, int i, int b)
{
    uint32_t word[4];
    cornu_philox(seed, (uint32_t[]){ (uint32_t)i / 4, (uint32_t)b, 0, 0xFFFF0003u }, word);
    return cornu_uniform(word[i % 4]);
}

/* What whole windows of `most` tokens, of which a full one keeps `kept`, give for a sequence. */
static void draw_by_windows(CornuModel *model, const int32_t *prime, int64_t primes, int64_t most,
                            int64_t kept, int sequence, int64_t top_k, double top_p,
                            int64_t *tokens)
{
    static float p[STEPS][VOCABULARY];
    double       scratch[2 * VOCABULARY];
    int32_t      window[STEPS] = { 0 };
    int64_t      filled = primes;
    memcpy(window, prime, (size_t)primes * sizeof *prime);
    for (int i = 0; i < DRAWN; i++) {
        expect_ok(cornu_predict_on_batch(model, cornu_array(window, CORNU_I32, 1, most),
                                         cornu_array(p, CORNU_F32, 1, most, VOCABULARY)));
        for (int v = 0; v < VOCABULARY; v++) p[filled - 1][v] = expf(p[filled - 1][v]);
        tokens[i] = cornu_sample_top_p(p[filled - 1], VOCABULARY, 0.9, top_k, top_p,
                                       number(5, i, sequence), scratch);
        if (filled == most) {
            memmove(window, window + most - kept, (size_t)kept * sizeof *window);
            memset(window + kept, 0, (size_t)(most - kept) * sizeof *window);
            filled = kept;
        }
        window[filled++] = (int32_t)tokens[i];
    }
}

/* The draws of cornu_generate are those of whole windows, sequence by sequence, with each way to go
 * on when the window is full; what reads all tokens needs none. */
static void draws_equal_those_of_windows(void **state)
{
    (void)state;
    static const int32_t primes[ROWS][9] = { { 3 }, { 1, 4, 1, 5, 9, 2, 6, 5, 3 }, { 7, 7 } };
    static const int64_t counts[ROWS] = { 1, 9, 2 };
    static const struct { int model; int64_t T; CornuWhenFull window; int64_t kept; } turns[] = {
        { 0, SMALL, CORNU_WINDOW_SLIDES, SMALL - 1 }, { 0, SMALL, CORNU_WINDOW_HALVES, SMALL / 2 },
        { 0, STEPS, CORNU_WINDOW_STOPS, 0 }, { 2, STEPS, CORNU_WINDOW_SLIDES, 0 },
        { 5, STEPS, CORNU_WINDOW_STOPS, 0 }, { 6, SMALL, CORNU_WINDOW_HALVES, SMALL / 2 },
    };
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        CornuModel *model = make(turns[k].model, turns[k].T, NULL);
        CornuArray  arrays[ROWS];
        Texts       texts = { .count = { 0 } }, alone = texts;
        int         kinds = 0;
        for (int b = 0; b < ROWS; b++)
            arrays[b] = cornu_array((void *)(uintptr_t)primes[b], CORNU_I32, counts[b]);
        const int64_t top_k = k % 2 ? 9 : 0;
        const double  top_p = k % 3 ? 0.8 : 0.0;
        expect_ok(cornu_generate(model, .count = DRAWN, .temperature = 0.9, .top_k = top_k,
                                 .top_p = top_p, .seed = 5, .logits = true, .primes = arrays,
                                 .prime_count = ROWS, .emit_each = keep, .context = &texts,
                                 .window = turns[k].window));
        for (int b = 0; b < ROWS; b++) {
            int64_t expected[DRAWN];
            draw_by_windows(model, primes[b], counts[b], turns[k].T, turns[k].kept, b, top_k,
                            top_p ? top_p : 1.0, expected);
            assert_int_equal(texts.count[b], DRAWN);
            assert_memory_equal(texts.tokens[b], expected, sizeof expected);
            for (int i = 1; i < DRAWN; i++) kinds += expected[i] != expected[i - 1];
        }
        assert_true(kinds > DRAWN);
        expect_ok(cornu_generate(model, arrays[0], DRAWN, 0.9, .top_k = top_k, .top_p = top_p,
                                 .seed = 5, .logits = true, .emit = keep_alone, .context = &alone,
                                 .window = turns[k].window));
        assert_memory_equal(alone.tokens[0], texts.tokens[0], sizeof alone.tokens[0]);
        cornu_model_free(model);
    }
}

static void the_window_may_stop(void **state)
{
    (void)state;
    int32_t     prime[3] = { 1, 2, 3 };
    CornuModel *model = make(0, SMALL, NULL);
    Texts       texts = { .count = { 0 } };
    expect_error(cornu_generate(model, cornu_array(prime, CORNU_I32, 3), DRAWN, .logits = true,
                                .emit = keep_alone, .context = &texts,
                                .window = CORNU_WINDOW_STOPS), CORNU_ERR_VALUE,
                 "sequence 0 has 16 tokens, as many as the model's window");
    assert_int_equal(texts.count[0], SMALL - 3 + 1);   /* the last one is not read any more */
    cornu_model_free(model);
}

/* A recurrence reads first tokens that are more than its input has, and goes on after that. */
static void more_tokens_than_the_input_has(void **state)
{
    (void)state;
    static float whole[STEPS][VOCABULARY];
    float        next[2][VOCABULARY];
    int32_t      all[STEPS];
    for (int t = 0; t < STEPS; t++) all[t] = (3 * t + t / 7) % VOCABULARY;
    CornuModel *model = make(5, 24, NULL), *longer = make(5, STEPS, NULL);
    expect_ok(cornu_model_copy_weights(longer, model));
    CornuTokenGenerator *generator = cornu_generator(model, 2);
    const CornuArray     to = cornu_array(next, CORNU_F32, 2, VOCABULARY);
    const CornuArray     primes[] = { cornu_array(all, CORNU_I32, 100),
                                      cornu_array(all, CORNU_I32, 30) };
    expect_ok(cornu_predict_on_batch(longer, cornu_array(all, CORNU_I32, 1, STEPS),
                                     cornu_array(whole, CORNU_F32, 1, STEPS, VOCABULARY)));
    expect_ok(cornu_generator_begin(generator, primes, to));
    for (int t = 0; t < 60; t++) {
        for (int v = 0; v < VOCABULARY; v++) {
            assert_float_equal(next[0][v], whole[99 + t][v], 1e-5);
            assert_float_equal(next[1][v], whole[29 + t][v], 1e-5);
        }
        int32_t two[] = { all[100 + t], all[30 + t] };
        expect_ok(cornu_generator_next(generator, cornu_array(two, CORNU_I32, 2), to));
    }
    cornu_generator_free(generator);
    cornu_model_free(longer);
    cornu_model_free(model);
}

/* A sequence ends after .stop, by emit, by count, each for itself. */
static void sequences_end(void **state)
{
    (void)state;
    int32_t          prime[1] = { 3 };
    const CornuArray one = cornu_array(prime, CORNU_I32, 1), primes[ROWS] = { one, one, one };
    CornuModel      *model = make(0, STEPS, NULL);
    CornuTokenGenerator *generator = cornu_generator(model, ROWS);
    Texts            whole = { .count = { 0 } }, texts = { .end_at = { 0, 4, 0 } };
    expect_ok(cornu_generate(.generator = generator, .count = DRAWN, .logits = true,
                             .primes = primes, .prime_count = ROWS, .emit_each = keep,
                             .context = &whole));
    uint8_t stop[2] = { (uint8_t)whole.tokens[0][9], (uint8_t)whole.tokens[0][10] };
    int64_t other[3] = { 1, 1, 99 };
    expect_ok(cornu_generate(.generator = generator, .count = DRAWN, .logits = true,
                             .primes = primes, .prime_count = ROWS, .emit_each = keep,
                             .stop = { cornu_array(other, CORNU_I64, 3),
                                       cornu_array(stop, CORNU_U8, 2) }, .context = &texts));
    for (int b = 0; b < ROWS; b++) {
        int end = b == 1 ? 4 : DRAWN;
        for (int i = 1; i < end; i++)
            if (whole.tokens[b][i - 1] == stop[0] && whole.tokens[b][i] == stop[1]) end = i + 1;
        assert_int_equal(texts.count[b], end);
        assert_memory_equal(texts.tokens[b], whole.tokens[b], (size_t)end * sizeof(int64_t));
    }
    assert_true(texts.count[0] <= 11);
    cornu_generator_free(generator);
    cornu_model_free(model);
}

/* p is 1 4 0 2 3 of 10: by size 4 3 2 1. */
static void top_p_leaves_the_most_probable(void **state)
{
    (void)state;
    static const float p[5] = { 0.1f, 0.4f, 0.0f, 0.2f, 0.3f };
    static const struct { double top_p, uniform; int token; } drawn[] = {
        { 0.3, 0.999, 1 }, { 0.41, 0.999, 4 }, { 0.41, 0.571, 1 }, { 0.41, 0.572, 4 },
        { 0.71, 0.444, 1 }, { 0.71, 0.445, 3 }, { 0.71, 0.999, 4 }, { 0.91, 0.05, 0 },
        { 1.0, 0.05, 0 }, { 1.0, 0.999, 4 },
    };
    double scratch[10];
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        assert_int_equal(cornu_sample_top_p(p, 5, 1.0, 0, drawn[i].top_p, drawn[i].uniform,
                                            scratch), drawn[i].token);
    /* Of two of equal probability the first; with top_k, of what that leaves, 4 3 of 7; by a
     * temperature of 1/2, 16 9 4 1 of 30. */
    assert_int_equal(cornu_sample_top_p((float[]){ 1, 2, 2, 1, 0 }, 5, 1.0, 0, 0.3, 0.99, scratch),
                     1);
    assert_int_equal(cornu_sample_top_p(p, 5, 1.0, 2, 0.5, 0.99, scratch), 1);
    assert_int_equal(cornu_sample_top_p(p, 5, 0.5, 0, 0.53, 0.99, scratch), 1);
    assert_int_equal(cornu_sample_top_p(p, 5, 0.5, 0, 0.54, 0.99, scratch), 4);
}

/* ---- What does not go step by step ---- */

/* A layer of one's own: 0 doubles, 1 takes off the mean of all steps, 2 divides by their number. */
typedef struct {
    char    unset;
    int64_t what;
} OwnConfig;

typedef struct {
    CornuLayer base;
    OwnConfig  config;
} Own;

static CornuTensor *own_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    if (!x) return NULL;
    const double steps = (double)cornu_tensor_shape(x).extent[1];
    switch (((Own *)layer)->config.what) {
    case 0:  return cornu_op_scale(x, 2.0);
    case 1:  return cornu_op_subtract(x, cornu_op_reduce_mean(x, 1 << 1, true));
    default: return cornu_op_scale(x, 1.0 / steps);
    }
}

static CornuLayer *own_from(const void *config);

static const CornuField own_fields[] = {
    { "what", CORNU_FIELD_INTEGER, offsetof(OwnConfig, what) }, { 0 },
};

#define OWN(name)                                                                           \
    { .class_name = name, .size = sizeof(Own), .call = own_call,                            \
      .keras = &(const CornuKerasClass){ .fields = own_fields, .from = own_from,            \
                                         .config_size = sizeof(OwnConfig),                  \
                                         .config_offset = offsetof(Own, config) } }
static const CornuLayerClass own_class = OWN("Own"), stranger_class = OWN("Stranger");

static CornuLayer *own_of(const CornuLayerClass *kind, int64_t what)
{
    CornuLayer *layer = cornu_layer_create(kind, NULL, NULL);
    if (layer) ((Own *)layer)->config = (OwnConfig){ .what = what };
    return layer;
}

static CornuLayer *own_from(const void *config)
{
    return own_of(&own_class, ((const OwnConfig *)config)->what);
}

static void expect_refused(CornuLayer *layer, const char *why)
{
    CornuSymbol *tokens = cornu_input(.shape = { 12 });
    CornuSymbol *x = embedded(tokens);
    CornuModel  *model = predicting(tokens, cornu_call(layer, x));
    if (!model) fail_msg("%s: %s", why, cornu_error_message());
    assert_null(cornu_generator(model));
    expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED, why);
    cornu_model_free(model);
}

static void others_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused(cornu_bidirectional(cornu_lstm(4, .return_sequences = true)),
                   "bidirectional (Bidirectional) computes along the steps");
    expect_refused(cornu_multi_head_attention(2, 8),
                   "multi_head_attention (MultiHeadAttention) is not causal");
    expect_refused(cornu_conv1d(4, 3, .padding = CORNU_SAME), "conv1d (Conv1D) is not causal");
    expect_refused(cornu_lstm(4, .return_sequences = true, .go_backwards = true),
                   "lstm (LSTM) goes backwards");
    expect_refused(cornu_softmax(.axis = 1), "softmax (Softmax) computes along the steps");
    expect_refused(cornu_max_pooling1d(3, 1, CORNU_SAME), "max_pooling1d (MaxPooling1D) computes");
    expect_ok(cornu_register_layer(&own_class, NULL));
    expect_refused(own_of(&own_class, 1), "own (Own) computes along the steps");
    expect_refused(own_of(&own_class, 2), "own (Own) computes with the number of steps");
    CornuSymbol *tokens = cornu_input(.shape = { 12 });
    CornuSymbol *x = cornu_call(cornu_embedding(VOCABULARY, 8, .mask_zero = true), tokens);
    x = cornu_call(cornu_multi_head_attention(2, 4, .use_causal_mask = true), x, x);
    CornuModel *model = predicting(tokens, x);
    assert_null(cornu_generator(model));
    expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED, "multi_head_attention (MultiHeadAtten"
                 "tion) gets a mask");
    cornu_model_free(model);
}

/* One that computes each step alone does; a class that is not registered cannot be copied, so that
 * windows are computed. */
static void own_layers_go_step_by_step(void **state)
{
    (void)state;
    Texts texts[2] = { { .count = { 0 } }, { .count = { 0 } } };
    expect_ok(cornu_register_layer(&own_class, NULL));
    for (int i = 0; i < 2; i++) {
        int32_t     prime[1] = { 3 };
        CornuLayer *layer = own_of(i ? &stranger_class : &own_class, 0);
        cornu_set_random_seed(3);
        CornuSymbol *tokens = cornu_input(.shape = { STEPS });
        CornuModel  *model = predicting(tokens, lstm(cornu_call(layer, embedded(tokens))));
        CornuTokenGenerator *generator = cornu_generator(model);
        if (i) expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED, "stranger");
        assert_int_equal(generator == NULL, i);
        expect_ok(cornu_generate(model, cornu_array(prime, CORNU_I32, 1), DRAWN, .logits = true,
                                 .emit = keep_alone, .context = &texts[i]));
        cornu_generator_free(generator);
        cornu_model_free(model);
    }
    assert_memory_equal(&texts[0], &texts[1], sizeof texts[0]);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    float       next[2][VOCABULARY];
    int32_t     tokens[2] = { 1, 2 };
    Texts       texts = { .count = { 0 } };
    CornuModel *model = make(0, SMALL, NULL), *other = cornu_sequential(.input_shape = { 4 });
    expect_ok(cornu_model_add(other, cornu_dense(3)));
    CornuTokenGenerator *generator = cornu_generator(model, 2);
    const CornuArray two = cornu_array(tokens, CORNU_I32, 2), to = cornu_array(next, CORNU_F32, 2,
                                                                               VOCABULARY);
    const CornuArray primes[2] = { two, two }, bad[2] = { two, to };
    assert_null(cornu_generator(other));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "expected tokens (None, T)");
    assert_null(cornu_generator(NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "no model");
    assert_null(cornu_generator(model, -1));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".batch_size is negative");
    assert_null(cornu_generator(model, .window = 7));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".window is 7");
    expect_error(cornu_generator_next(generator, two, to), CORNU_ERR_ARGUMENT,
                 "no sequence has begun");
    expect_error(cornu_generator_begin(generator, bad, to), CORNU_ERR_ARGUMENT,
                 "the first tokens of sequence 1 are f32 (2, 23)");
    expect_error(cornu_generator_begin(generator, primes, two), CORNU_ERR_SHAPE,
                 "the array for results is i32 (2,), expected f32 (2, 23)");
    expect_ok(cornu_generator_begin(generator, primes, to));
    expect_error(cornu_generator_next(generator, to, to), CORNU_ERR_SHAPE, "expected 2 integers");
    tokens[1] = -3;
    expect_error(cornu_generator_next(generator, two, to), CORNU_ERR_VALUE, "token 1 is -3");
    tokens[1] = VOCABULARY;
    expect_error(cornu_generator_next(generator, two, to), CORNU_ERR_VALUE, "23");
    tokens[1] = 2;
    expect_error(cornu_generate(model, .generator = generator, .primes = primes, .prime_count = 2,
                                .emit_each = keep), CORNU_ERR_ARGUMENT, "expected one of them");
    expect_error(cornu_generate(.generator = generator, .count = 3, .prime = two,
                                .emit = keep_alone, .context = &texts), CORNU_ERR_ARGUMENT,
                 "1 sequences for a generator of 2");
    expect_error(cornu_generate(model, .prime = two, .emit = keep_alone, .top_p = 1.5),
                 CORNU_ERR_ARGUMENT, ".top_p is 1.5");
    expect_error(cornu_generate(model, .primes = bad, .prime_count = 2, .emit_each = keep),
                 CORNU_ERR_ARGUMENT, ".primes[1] is f32");
    expect_error(cornu_generate(model, .primes = primes, .prime_count = 2, .emit = keep_alone),
                 CORNU_ERR_ARGUMENT, "no .emit_each is given");
    expect_error(cornu_generate(model, two, 3, .emit = keep_alone, .stop = { to }),
                 CORNU_ERR_ARGUMENT, ".stop[0] is f32");
    cornu_generator_free(generator);
    cornu_generator_free(NULL);
    cornu_model_free(model);
    cornu_model_free(other);
}

/* ---- Memory ---- */

static void next_allocates_nothing(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int i = 0; i < CASES; i++) {
        float                next[ROWS][VOCABULARY];
        int32_t              tokens[ROWS] = { 1, 2, 3 };
        const CornuArray     one = cornu_array(tokens, CORNU_I32, 1);
        const CornuArray     three = cornu_array(tokens, CORNU_I32, ROWS);
        const CornuArray     to = cornu_array(next, CORNU_F32, ROWS, VOCABULARY);
        CornuModel          *model = make(i, STEPS, NULL);
        CornuTokenGenerator *generator = cornu_generator(model, ROWS);
        expect_ok(cornu_generator_begin(generator, (CornuArray[]){ one, one, one }, to));
        expect_ok(cornu_generator_next(generator, three, to));
        const int64_t before = allocations();
        for (int n = 0; n < 100; n++) expect_ok(cornu_generator_next(generator, three, to));
        assert_int_equal(allocations(), before);
        cornu_generator_free(generator);
        cornu_model_free(model);
    }
}

static void memory_may_end(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    int32_t          prime[2] = { 3, 4 };
    const CornuArray two = cornu_array(prime, CORNU_I32, 2);
    CornuModel      *model = make(6, SMALL, NULL);
    int64_t          failures = 0;
    bool             done = false;
    for (int64_t i = 0; !done; i += 1 + i / 20) {
        Texts texts = { .count = { 0 } };
        allocations_fail_once(i);
        const CornuStatus status = cornu_generate(model, two, 5, .logits = true,
                                                  .emit = keep_alone, .context = &texts);
        done = !status && atomic_load(&allocations_allowed) > 0;
        allocations_fail_after(NEVER);
        if (status) assert_int_equal(status, CORNU_ERR_MEMORY);
        failures += status != CORNU_OK;
    }
    assert_true(failures > 20);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_the_window),
        cmocka_unit_test(files_of_keras_continue),
        cmocka_unit_test(masks_skip_steps),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(draws_equal_those_of_windows),
        cmocka_unit_test(the_window_may_stop),
        cmocka_unit_test(more_tokens_than_the_input_has),
        cmocka_unit_test(sequences_end),
        cmocka_unit_test(top_p_leaves_the_most_probable),
        cmocka_unit_test(others_are_refused_by_name),
        cmocka_unit_test(own_layers_go_step_by_step),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(next_allocates_nothing),
        cmocka_unit_test(memory_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
