/* Sampling tokens and generating: the model reads the sequence that it wrote. */
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

/* ---- One token ---- */

static int64_t sample(const float *p, double temperature, int64_t top_k, double uniform)
{
    double room[5];
    return cornu_sample_token(p, 5, temperature, top_k, uniform, room);
}

static const float p[5] = { 0.1f, 0.4f, 0.0f, 0.2f, 0.3f };

static void tokens_come_by_their_probability(void **state)
{
    (void)state;
    static const struct { double uniform; int token; } cases[] = {
        { 0.0, 0 }, { 0.099, 0 }, { 0.101, 1 }, { 0.499, 1 }, { 0.501, 3 }, { 0.699, 3 },
        { 0.701, 4 }, { 0.9999999, 4 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sample(p, 1.0, 0, cases[i].uniform), cases[i].token);
}

/* p^2 is 1 16 0 4 9 of 30, p^(1/2) 1 2 0 1.414 1.732 of 6.146. */
static void temperature_is_a_power(void **state)
{
    (void)state;
    assert_int_equal(sample(p, 0.5, 0, 0.99 / 30), 0);
    assert_int_equal(sample(p, 0.5, 0, 1.01 / 30), 1);
    assert_int_equal(sample(p, 0.5, 0, 16.99 / 30), 1);
    assert_int_equal(sample(p, 0.5, 0, 17.01 / 30), 3);
    assert_int_equal(sample(p, 2.0, 0, 0.99 / 6.146), 0);
    assert_int_equal(sample(p, 2.0, 0, 2.99 / 6.146), 1);
    assert_int_equal(sample(p, 2.0, 0, 3.01 / 6.146), 3);
    assert_int_equal(sample(p, 0.0, 0, 0.0), 1);
    assert_int_equal(sample(p, 1e-9, 0, 0.999), 1);
    assert_int_equal(sample((const float[]){ 1e-38f, 3e-38f, 0, 0, 0 }, 0.01, 0, 0.5), 1);
}

static void top_k_leaves_the_most_probable(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        const double uniform = i / 100.0;
        assert_int_equal(sample(p, 1.0, 1, uniform), 1);
        assert_int_equal(sample(p, 1.0, 2, uniform), uniform < 0.4 / 0.7 ? 1 : 4);
        assert_int_equal(sample(p, 1.0, 9, uniform), sample(p, 1.0, 0, uniform));
        assert_int_not_equal(sample(p, 1.0, 4, uniform), 2);
    }
    assert_int_equal(sample((const float[]){ 1, 1, 1, 1, 1 }, 1.0, 2, 0.99), 1);
}

static void what_is_no_probability_is_told(void **state)
{
    (void)state;
    assert_int_equal(sample((const float[]){ 0, 0, 0, 0, 0 }, 1.0, 0, 0.5), -1);
    assert_int_equal(sample((const float[]){ 0, NAN, 1, 0, 0 }, 1.0, 0, 0.5), -1);
    assert_int_equal(sample((const float[]){ 0, -1, 1, 0, 0 }, 1.0, 0, 0.5), -1);
    assert_int_equal(sample((const float[]){ 0, INFINITY, 1, 0, 0 }, 1.0, 0, 0.5), -1);
}

/* ---- Many ---- */

enum { VOCABULARY = 20, MOST = 40 };

static const CornuTextPreset small = {
    .name = "small", .model = "small", .channels = 8, .units = 12, .layers = 2,
    .sequence_length = MOST,
};

typedef struct {
    int64_t tokens[MOST];
    int     count, stop_after;
} Written;

static bool keep(void *context, int64_t token)
{
    Written *written = context;
    written->tokens[written->count++] = token;
    return written->count != written->stop_after;
}

/* Weights large enough for probabilities that differ. */
static CornuModel *writer(CornuDevice *device, int64_t length)
{
    cornu_set_random_seed(11);
    CornuModel *model = cornu_shakespeare_lstm(&small, length, VOCABULARY, .stateful = length == 1);
    expect_ok(cornu_compile(model, .device = device));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        CornuArray   values = cornu_array_from(malloc(cornu_type_bytes(weight->type)),
                                               weight->type);
        expect_ok(cornu_weight_read(weight, values));
        for (int64_t k = 0; k < cornu_type_count(values.type); k++)
            ((float *)values.data)[k] = (float)(3.0 * sin(17.0 * (double)k + 3.0 * i));
        expect_ok(cornu_weight_write(weight, values));
        free(values.data);
    }
    return model;
}

/* Step by step with states, each token is the most probable successor according to the model of
 * whole sequences, and samples at another temperature agree with its probabilities. */
static void writing_equals_reading(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu", "tpu" };
    for (int d = 0; d < 2; d++) {
        enum { PRIMES = 7, DRAWN = MOST - PRIMES };
        uint8_t      sequence[MOST] = { 3, 1, 4, 1, 5, 9, 2 };
        float        read[MOST][VOCABULARY], one[VOCABULARY];
        Written      written = { .count = 0 };
        CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
        cornu_set_dtype_policy("float32");
        CornuModel  *step = writer(device, 1), *whole = writer(device, MOST);
        for (int round = 0; round < 2; round++) {   /* states are reset */
            written.count = 0;
            expect_ok(cornu_generate(step, cornu_array(sequence, CORNU_U8, PRIMES), DRAWN,
                                     CORNU_ZERO, .emit = keep, .context = &written));
            assert_int_equal(written.count, DRAWN);
        }
        for (int i = 0; i < DRAWN; i++) sequence[PRIMES + i] = (uint8_t)written.tokens[i];
        expect_ok(cornu_predict_on_batch(whole, cornu_array(sequence, CORNU_U8, 1, MOST),
                                         cornu_array(read, CORNU_F32, 1, MOST, VOCABULARY)));
        for (int i = PRIMES; i < MOST; i++)
            for (int v = 0; v < VOCABULARY; v++)
                assert_true(read[i - 1][v] <= read[i - 1][sequence[i]] + 1e-5f);

        expect_ok(cornu_model_reset_states(step));
        for (int i = 0; i < MOST; i++) {
            expect_ok(cornu_predict_on_batch(step, cornu_array(&sequence[i], CORNU_U8, 1, 1),
                                             cornu_array(one, CORNU_F32, 1, 1, VOCABULARY)));
            for (int v = 0; v < VOCABULARY; v++) assert_float_equal(one[v], read[i][v], 2e-5);
        }
        cornu_model_free(step);
        cornu_model_free(whole);
        cornu_device_close(device);
    }
}

/* A transformer sees the last tokens, as many as it has positions, and none after them. */
static void a_window_moves_on(void **state)
{
    (void)state;
    enum { STEPS = 8, WRITTEN = 12, PRIMES = 2 };
    static const CornuTextPreset gpt = { .name = "gpt", .model = "gpt", .channels = 16, .layers = 2,
                                         .heads = 2, .sequence_length = STEPS };
    static float probabilities[STEPS * VOCABULARY];
    int32_t      all[PRIMES + WRITTEN] = { 3, 5 };
    CornuDevice *device = cornu_device_open("cpu");
    cornu_set_random_seed(5);
    CornuModel *model = cornu_text_network(&gpt, .vocabulary = VOCABULARY);
    expect_ok(cornu_compile(model, .device = device));
    Written written = { .stop_after = -1 };
    expect_ok(cornu_generate(model, cornu_array(all, CORNU_I32, PRIMES), WRITTEN,
                             (double)CORNU_ZERO, .emit = keep, .context = &written));
    assert_int_equal(written.count, WRITTEN);
    int kinds = 0;
    for (int n = PRIMES; n < PRIMES + WRITTEN; n++) {
        const int first = n > STEPS ? n - STEPS : 0, last = n - first - 1;
        int32_t   window[STEPS];
        for (int t = 0; t < STEPS; t++) window[t] = t <= last ? all[first + t] : 7 + t;
        expect_ok(cornu_predict_on_batch(model, cornu_array(window, CORNU_I32, 1, STEPS),
                                         cornu_array(probabilities, CORNU_F32, 1, STEPS,
                                                     VOCABULARY)));
        const float *p_next = probabilities + last * VOCABULARY;
        int          best = 0;
        for (int k = 1; k < VOCABULARY; k++)
            if (p_next[k] > p_next[best]) best = k;
        assert_int_equal(written.tokens[n - PRIMES], best);
        all[n] = best;
        kinds += best != all[n - 1];
    }
    assert_true(kinds > 2);   /* or the test would show little */
    cornu_model_free(model);
    cornu_device_close(device);
}

/* A model of any length, whose outputs are logits, writes what one of a fixed length and of
 * probabilities writes; without .logits negative ones are refused, and so is a length below 1. */
static CornuModel *recurrent(int64_t steps, CornuActivation activation, CornuDevice *device)
{
    cornu_set_random_seed(4);
    CornuModel *model = cornu_sequential(.input_shape = { steps });
    cornu_model_add(model, cornu_embedding(VOCABULARY, 6));
    cornu_model_add(model, cornu_gru(9, .return_sequences = true));
    cornu_model_add(model, cornu_dense(VOCABULARY, .activation = activation));
    expect_ok(cornu_compile(model, .device = device));
    return model;
}

static void logits_of_any_length(void **state)
{
    (void)state;
    enum { STEPS = 5, WRITTEN = 20 };
    uint8_t          prime[2] = { 3, 5 };
    const CornuArray two = cornu_array(prime, CORNU_U8, 2);
    Written          a = { .stop_after = -1 }, b = a;
    CornuDevice     *device = cornu_device_open("cpu");
    CornuModel      *fixed = recurrent(STEPS, CORNU_SOFTMAX, device);
    CornuModel      *open = recurrent(CORNU_NONE, CORNU_LINEAR, device);
    expect_ok(cornu_generate(fixed, two, WRITTEN, .seed = 6, .emit = keep, .context = &a));
    expect_ok(cornu_generate(open, two, WRITTEN, .seed = 6, .emit = keep, .context = &b,
                             .sequence_length = STEPS, .logits = true));
    assert_int_equal(a.count, WRITTEN);
    assert_int_equal(b.count, WRITTEN);
    assert_memory_equal(a.tokens, b.tokens, sizeof a.tokens);
    assert_int_equal(cornu_generate(open, two, WRITTEN, .emit = keep, .context = &b,
                                    .sequence_length = STEPS), CORNU_ERR_VALUE);
    assert_int_equal(cornu_generate(open, two, WRITTEN, .emit = keep, .context = &b,
                                    .sequence_length = -1), CORNU_ERR_ARGUMENT);
    cornu_error_take();
    cornu_model_free(fixed);
    cornu_model_free(open);
    cornu_device_close(device);
}

static void seeds_and_endings(void **state)
{
    (void)state;
    uint8_t      prime[1] = { 5 };
    Written      a = { 0 }, b = { 0 }, c = { 0 }, d = { .stop_after = 3 };
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = writer(device, 1);
    const CornuArray one = cornu_array(prime, CORNU_U8, 1);
    expect_ok(cornu_generate(model, one, 30, 5.0, .seed = 1, .emit = keep, .context = &a));
    expect_ok(cornu_generate(model, one, 30, 5.0, .seed = 1, .emit = keep, .context = &b));
    expect_ok(cornu_generate(model, one, 30, 5.0, .seed = 2, .emit = keep, .context = &c));
    expect_ok(cornu_generate(model, one, 30, 5.0, .seed = 1, .emit = keep, .context = &d));
    assert_memory_equal(a.tokens, b.tokens, sizeof a.tokens);
    assert_memory_not_equal(a.tokens, c.tokens, sizeof a.tokens);
    assert_int_equal(d.count, 3);
    assert_memory_equal(a.tokens, d.tokens, 3 * sizeof *a.tokens);
    cornu_model_free(model);
    cornu_device_close(device);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    uint8_t      prime[1] = { 5 };
    float        real = 1.0f;
    Written      written = { 0 };
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = writer(device, 1), *other = cornu_sequential(.input_shape = { 4 });
    const CornuArray one = cornu_array(prime, CORNU_U8, 1);
    expect_ok(cornu_model_add(other, cornu_dense(3)));
    expect_error(cornu_generate(model, one, 3), CORNU_ERR_ARGUMENT, "no .emit is given");
    expect_error(cornu_generate(.prime = one, .emit = keep), CORNU_ERR_ARGUMENT, "no model");
    expect_error(cornu_generate(model, cornu_array(prime, CORNU_U8, 0), 3, .emit = keep),
                 CORNU_ERR_ARGUMENT, ".prime is u8 (0,)");
    expect_error(cornu_generate(model, cornu_array(&real, CORNU_F32, 1), 3, .emit = keep),
                 CORNU_ERR_ARGUMENT, ".prime is f32 (1,)");
    expect_error(cornu_generate(model, one, -3, .emit = keep), CORNU_ERR_ARGUMENT, ".count is -3");
    expect_error(cornu_generate(model, one, 3, -1.0, .emit = keep), CORNU_ERR_ARGUMENT,
                 ".temperature is -1");
    expect_error(cornu_generate(model, one, 3, .top_k = -1, .emit = keep), CORNU_ERR_ARGUMENT,
                 ".top_k is -1");
    expect_error(cornu_generate(other, one, 3, .emit = keep, .context = &written), CORNU_ERR_SHAPE,
                 "expected tokens to the probabilities of each token's successor");
    cornu_model_free(model);
    cornu_model_free(other);
    cornu_device_close(device);
}

/* ---- The network ---- */

static void the_published_network(void **state)
{
    (void)state;
    static const int64_t expected[] = { 131072, 2099200, 2099200, 131328 };
    CornuModel *model = cornu_shakespeare_lstm();
    assert_int_equal(cornu_model_parameters(model), 4460800);
    assert_int_equal(cornu_model_layer_count(model), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(cornu_layer_parameters(cornu_model_layer(model, i)), expected[i]);
    assert_true(cornu_shape_equal(cornu_model_output_shape(model), cornu_shape(-1, 100, 256)));
    cornu_model_free(model);
    assert_null(cornu_text_preset("fast"));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "expected full, quick, gpt or gpt_large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_by_their_probability),
        cmocka_unit_test(temperature_is_a_power),
        cmocka_unit_test(top_k_leaves_the_most_probable),
        cmocka_unit_test(what_is_no_probability_is_told),
        cmocka_unit_test(writing_equals_reading),
        cmocka_unit_test(a_window_moves_on),
        cmocka_unit_test(logits_of_any_length),
        cmocka_unit_test(seeds_and_endings),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_published_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
