/* What cornu_generate draws by a generator, when sequences end, and what generators refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/random.h"
#include "../../allocations.h"
#include "../../skip.h"
#include "../golden.h"
#include "causal_models.h"

enum { STEPS = CAUSAL_STEPS, ROWS = 3 };

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
        { CAUSAL_GPT, SMALL, CORNU_WINDOW_SLIDES, SMALL - 1 },
        { CAUSAL_GPT, SMALL, CORNU_WINDOW_HALVES, SMALL / 2 - 1 },
        { CAUSAL_GPT, STEPS, CORNU_WINDOW_STOPS, 0 },
        { CAUSAL_LSTM, STEPS, CORNU_WINDOW_SLIDES, 0 },
        { CAUSAL_WAVENET, STEPS, CORNU_WINDOW_STOPS, 0 },
        { CAUSAL_MIXED, SMALL, CORNU_WINDOW_HALVES, SMALL / 2 - 1 },
    };
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        CornuModel *model = causal_model(turns[k].model, turns[k].T, NULL);
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
    CornuModel *model = causal_model(CAUSAL_GPT, SMALL, NULL);
    Texts       texts = { .count = { 0 } };
    expect_error(cornu_generate(model, cornu_array(prime, CORNU_I32, 3), DRAWN, .logits = true,
                                .emit = keep_alone, .context = &texts,
                                .window = CORNU_WINDOW_STOPS), CORNU_ERR_VALUE,
                 "sequence 0 has 16 tokens, as many as the model's window");
    assert_int_equal(texts.count[0], SMALL - 3 + 1);   /* the last one is not read any more */
    cornu_model_free(model);
}

/* A sequence ends after .stop, by emit, by count, each for itself. */
static void sequences_end(void **state)
{
    (void)state;
    int32_t          prime[1] = { 3 };
    const CornuArray one = cornu_array(prime, CORNU_I32, 1), primes[ROWS] = { one, one, one };
    CornuModel      *model = causal_model(CAUSAL_GPT, STEPS, NULL);
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
    CornuSymbol *x = causal_embedded(tokens);
    CornuModel  *model = causal_predicting(tokens, cornu_call(layer, x));
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
    CornuModel *model = causal_predicting(tokens, x);
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
        CornuSymbol *x = cornu_call(layer, causal_embedded(tokens));
        CornuModel  *model = causal_predicting(tokens, causal_lstm(x));
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
    CornuModel *model = causal_model(CAUSAL_GPT, SMALL, NULL);
    CornuModel *other = cornu_sequential(.input_shape = { 4 });
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

static void memory_may_end(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    int32_t          prime[2] = { 3, 4 };
    const CornuArray two = cornu_array(prime, CORNU_I32, 2);
    CornuModel      *model = causal_model(CAUSAL_MIXED, SMALL, NULL);
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
        cmocka_unit_test(draws_equal_those_of_windows),
        cmocka_unit_test(the_window_may_stop),
        cmocka_unit_test(sequences_end),
        cmocka_unit_test(top_p_leaves_the_most_probable),
        cmocka_unit_test(others_are_refused_by_name),
        cmocka_unit_test(own_layers_go_step_by_step),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(memory_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
