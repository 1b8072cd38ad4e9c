/* Generators: what is kept of earlier tokens gives what the whole sequence gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../../skip.h"
#include "../golden.h"
#include "causal_models.h"

enum { STEPS = CAUSAL_STEPS, ROWS = 3, CHANNELS = 16 };

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
            CornuModel          *model = causal_model(i, STEPS, device);
            CornuTokenGenerator *generator = cornu_generator(model, ROWS);
            if (!generator) fail_msg("%s: %s", causal_cases[i].name, cornu_error_message());
            assert_int_equal(cornu_generator_window(generator),
                             causal_cases[i].windowed ? STEPS : 0);
            assert_int_equal(cornu_generator_vocabulary(generator), VOCABULARY);
            assert_int_equal(cornu_generator_batch_size(generator), ROWS);
            for (int turn = 0; turn < 2; turn++) {   /* what was kept of others is not seen */
                write_greedily(generator, all, kept);
                expect_window(causal_cases[i].name, model, all, kept);
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
    CornuModel  *model = causal_predicting(tokens, masked(tokens));
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
        CornuModel *model = causal_model(i, STEPS, NULL);
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

/* A recurrence reads first tokens that are more than its input has, and goes on after that. */
static void more_tokens_than_the_input_has(void **state)
{
    (void)state;
    static float whole[STEPS][VOCABULARY];
    float        next[2][VOCABULARY];
    int32_t      all[STEPS];
    for (int t = 0; t < STEPS; t++) all[t] = (3 * t + t / 7) % VOCABULARY;
    CornuModel *model = causal_model(CAUSAL_WAVENET, 24, NULL);
    CornuModel *longer = causal_model(CAUSAL_WAVENET, STEPS, NULL);
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

/* Sequences of unequal lengths, read by programs of one step: a shorter
 * one keeps its state while the longer ones are read. */
static CornuModel *of_steps(int i, int64_t steps)
{
    CornuSymbol *tokens = cornu_input(.shape = { steps }), *x = causal_embedded(tokens);
    cornu_set_random_seed(3);
    if (i < CASES) return causal_model(i, steps, NULL);
    if (i > CASES) return causal_predicting(tokens, masked(tokens));
    return causal_predicting(tokens, cornu_call(cornu_simple_rnn(CHANNELS,
                                                                 .return_sequences = true), x));
}

static void inputs_of_one_step(void **state)
{
    (void)state;
    static float next[ROWS][VOCABULARY], whole[STEPS][VOCABULARY];
    int32_t      all[STEPS];
    for (int t = 0; t < STEPS; t++) all[t] = (3 * t + t / 7) % VOCABULARY;
    for (int i = CAUSAL_LSTM; i <= CASES + 1; i++) {
        if (i == CAUSAL_MIXED) continue;   /* a window of one token */
        const CornuArray primes[] = { cornu_array(all, CORNU_I32, 2),
                                      cornu_array(all, CORNU_I32, 7),
                                      cornu_array(all, CORNU_I32, 1) };
        const CornuArray to = cornu_array(next, CORNU_F32, ROWS, VOCABULARY);
        CornuModel      *model = of_steps(i, 1), *longer = of_steps(i, STEPS);
        expect_ok(cornu_model_copy_weights(longer, model));
        expect_ok(cornu_predict_on_batch(longer, cornu_array(all, CORNU_I32, 1, STEPS),
                                         cornu_array(whole, CORNU_F32, 1, STEPS, VOCABULARY)));
        CornuTokenGenerator *generator = cornu_generator(model, ROWS);
        int32_t read[ROWS] = { 2, 7, 1 }, given[ROWS];
        expect_ok(cornu_generator_begin(generator, primes, to));
        for (int n = 0; n < 20; n++) {
            for (int b = 0; b < ROWS; b++) {
                given[b] = b == 1 && n >= 10 ? -1 : all[read[b]];   /* it has ended */
                for (int v = 0; v < VOCABULARY && (b != 1 || n <= 10); v++)
                    assert_float_equal(next[b][v], whole[read[b] - 1][v], 1e-5);
                read[b] += given[b] >= 0;
            }
            expect_ok(cornu_generator_next(generator, cornu_array(given, CORNU_I32, ROWS), to));
        }
        cornu_generator_free(generator);
        cornu_model_free(longer);
        cornu_model_free(model);
    }
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
        CornuModel          *model = causal_model(i, STEPS, NULL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_the_window),
        cmocka_unit_test(files_of_keras_continue),
        cmocka_unit_test(masks_skip_steps),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(more_tokens_than_the_input_has),
        cmocka_unit_test(inputs_of_one_step),
        cmocka_unit_test(next_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
