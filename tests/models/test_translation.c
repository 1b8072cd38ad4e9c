/* The transformer beside Keras' (tests/golden/translation), and its decoding with cached keys and
 * values beside the model as a whole: greedy, and by beams beside a search of all translations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../models/translation.h"
#include "../nn/golden.h"

enum { ROWS = 3, LENGTH = 6, VOCABULARY = 14 };

static int64_t setting(const Golden *golden, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(golden->cases, "settings"), name));
}

static CornuModel *model_of(Golden *golden)
{
    CornuModel *model = cornu_transformer(
        .source_vocabulary = setting(golden, "source_vocabulary"),
        .target_vocabulary = setting(golden, "target_vocabulary"),
        .sequence_length = setting(golden, "sequence_length"),
        .channels = setting(golden, "channels"), .key_dim = setting(golden, "key_dim"),
        .hidden = setting(golden, "hidden"), .heads = setting(golden, "heads"),
        .layers = setting(golden, "layers"), .dropout = (double)CORNU_ZERO);
    if (!model) fail_msg("%s", cornu_error_message());
    assert_int_equal(json_array_size(json_object_get(golden->cases, "weights")),
                     cornu_model_weight_count(model));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        expect_ok(cornu_weight_write(weight, golden_array(golden, "before", weight->path)));
    }
    return model;
}

static void as_keras(CornuDevice *device)
{
    Golden      golden = golden_open("tests/golden/translation/transformer.safetensors");
    CornuModel *model = model_of(&golden);
    expect_ok(cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .device = device,
                            .optimizer = cornu_sgd(.learning_rate = 1.0)));
    const CornuArray x[] = { golden_array(&golden, NULL, "source"),
                             golden_array(&golden, NULL, "target") };
    const CornuArray y[] = { golden_array(&golden, NULL, "next") };
    float            got[ROWS][LENGTH][VOCABULARY];
    const CornuArray to[] = { cornu_array(got, CORNU_F32, ROWS, LENGTH, VOCABULARY) };
    double           loss[4];
    expect_ok(cornu_predict_on_batch_many(model, x, to));
    expect_near("predictions", &got[0][0][0], golden_array(&golden, NULL, "predicted"), 2e-6);
    expect_ok(cornu_train_on_batch_many(model, x, y, loss));
    assert_float_equal(loss[0], json_number_value(json_object_get(golden.cases, "loss")), 2e-6);
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        float       *values = malloc(cornu_type_bytes(weight->type));
        expect_ok(cornu_weight_read(weight, cornu_array_from(values, weight->type)));
        expect_near(weight->path, values, golden_array(&golden, "after", weight->path), 1e-5);
        free(values);
    }
    cornu_model_free(model);
    golden_close(&golden);
}

/* ---- Decoding ---- */

enum { START = 12, END = 13 };

/* log p of each next token after `count` tokens, by the whole model. */
static void whole_model(CornuModel *model, const int32_t *source, const int32_t *path, int count,
                        double to[VOCABULARY])
{
    int32_t so_far[LENGTH] = { START };
    float   p[LENGTH][VOCABULARY];
    memcpy(so_far + 1, path, (size_t)count * sizeof *path);
    const CornuArray x[] = { cornu_array((void *)(uintptr_t)source, CORNU_I32, 1, LENGTH),
                             cornu_array(so_far, CORNU_I32, 1, LENGTH) };
    const CornuArray y[] = { cornu_array(p, CORNU_F32, 1, LENGTH, VOCABULARY) };
    expect_ok(cornu_predict_on_batch_many(model, x, y));
    for (int v = 0; v < VOCABULARY; v++) to[v] = log((double)p[count][v]);
}

static bool may_follow(int token) { return token != 0 && token != START; }

static void greedy(CornuModel *model, const int32_t *source, int32_t *path)
{
    memset(path, 0, LENGTH * sizeof *path);
    for (int length = 0; length < LENGTH; length++) {
        double p[VOCABULARY];
        int    best = -1;
        whole_model(model, source, path, length, p);
        for (int v = 0; v < VOCABULARY; v++)
            if (may_follow(v) && (best < 0 || p[v] > p[best])) best = v;
        if (best == END) return;
        path[length] = best;
    }
}

/* The best of all translations of at most two tokens that end, by log p / ((5 + n) / 6)^alpha. */
static void best_of_all(CornuModel *model, const int32_t *source, double alpha, int32_t *best)
{
    double  most = -INFINITY, p[3][VOCABULARY];
    int32_t path[LENGTH] = { 0 };
    whole_model(model, source, path, 0, p[0]);
    memset(best, 0, LENGTH * sizeof *best);
    const double empty = p[0][END] / pow(6.0 / 6.0, alpha);
    most = empty;
    for (int a = 1; a < START; a++) {
        path[0] = a;
        whole_model(model, source, path, 1, p[1]);
        const double one = (p[0][a] + p[1][END]) / pow(7.0 / 6.0, alpha);
        if (one > most) most = one, best[0] = a, best[1] = 0;
        for (int b = 1; b < START; b++) {
            path[1] = b;
            whole_model(model, source, path, 2, p[2]);
            const double two = (p[0][a] + p[1][b] + p[2][END]) / pow(8.0 / 6.0, alpha);
            if (two > most) most = two, best[0] = a, best[1] = b;
            path[1] = 0;
        }
        path[0] = 0;
    }
}

static void translate(CornuModel *model, int64_t beams, int64_t rows, double alpha,
                      const int32_t *sources, int64_t count, int32_t *to)
{
    CornuTranslator *translator = cornu_translator_create(
        .model = model, .start = START, .end = END, .beams = beams, .rows = rows,
        .length_penalty = alpha);
    if (!translator) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_translator_run(
        translator, cornu_array((void *)(uintptr_t)sources, CORNU_I32, count, LENGTH),
        cornu_array(to, CORNU_I32, count, LENGTH)));
    cornu_translator_free(translator);
}

/* Makes the end likelier or not, so that translations of all lengths come. */
static void set_end(CornuModel *model, float bias)
{
    CornuWeight *weight = cornu_model_find_weight(model, "token/bias");
    float        values[VOCABULARY];
    const CornuArray array = cornu_array(values, CORNU_F32, VOCABULARY);
    expect_ok(cornu_weight_read(weight, array));
    values[END] = bias;
    expect_ok(cornu_weight_write(weight, array));
}

static void decodes_as_whole(CornuDevice *device)
{
    enum { COUNT = 5 };
    static const int32_t sources[COUNT][LENGTH] = { { 3, 5, 1, 9, 2, 4 }, { 7 }, { 2, 2, 8 },
                                                    { 11, 1 }, { 4, 6, 10, 3, 1 } };
    Golden      golden = golden_open("tests/golden/translation/transformer.safetensors");
    CornuModel *model = model_of(&golden);
    int32_t     got[COUNT][LENGTH], want[LENGTH];
    int         lengths = 0;
    expect_ok(cornu_compile(model, .device = device));
    for (int k = 0; k < 3; k++) {
        set_end(model, (float)k * 1.5f);
        translate(model, 1, 2, 0.6, sources[0], COUNT, got[0]);
        for (int i = 0; i < COUNT; i++) {
            greedy(model, sources[i], want);
            assert_memory_equal(got[i], want, sizeof want);
            for (int t = 0; t < LENGTH; t++) lengths |= want[t] == 0 ? 1 << t : 0;
        }
    }
    assert_true(lengths != 0);      /* some end early */
    set_end(model, 4.0f);           /* so that short ones are the best of all */
    for (int k = 0; k < 2; k++) {
        translate(model, 64, 3, k ? 0.6 : (double)CORNU_ZERO, sources[0], COUNT, got[0]);
        for (int i = 0; i < COUNT; i++) {
            best_of_all(model, sources[i], k ? 0.6 : 0.0, want);
            assert_memory_equal(got[i], want, sizeof want);
        }
    }
    cornu_model_free(model);
    golden_close(&golden);
}

static void refuses(CornuDevice *device)
{
    Golden           golden = golden_open("tests/golden/translation/transformer.safetensors");
    CornuModel      *model = model_of(&golden);
    int32_t          tokens[2][LENGTH] = { { 0 } };
    const CornuArray two = cornu_array(tokens, CORNU_I32, 2, LENGTH);
    assert_null(cornu_translator_create(.model = model, .start = START, .end = END));
    assert_non_null(strstr(cornu_error_message(), "not compiled"));
    cornu_error_take();
    expect_ok(cornu_compile(model, .device = device));
    assert_null(cornu_translator_create(.model = model, .start = START, .end = 14));
    cornu_error_take();
    CornuTranslator *translator = cornu_translator_create(.model = model, .start = START,
                                                          .end = END);
    if (!translator) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_translator_run(translator, cornu_array(tokens, CORNU_I32, 1, LENGTH),
                                          two), CORNU_ERR_SHAPE);
    cornu_translator_free(translator);
    cornu_model_free(model);
    golden_close(&golden);
}

/* In f32 on every device, as the model is compared with itself and with Keras to rounding. */
static void on_each_device(void (*test)(CornuDevice *device))
{
    expect_ok(cornu_set_dtype_policy("float32"));
    static const char *const names[] = { "cpu", "tpu", "reference" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CornuDevice *device = cornu_device_open(names[i], .shards = 1);
        assert_non_null(device);
        test(device);
        cornu_device_close(device);
    }
}

static void test_keras(void **state) { (void)state; on_each_device(as_keras); }
static void test_decoding(void **state) { (void)state; on_each_device(decodes_as_whole); }
static void test_refusals(void **state) { (void)state; on_each_device(refuses); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_keras),
                                        cmocka_unit_test(test_decoding),
                                        cmocka_unit_test(test_refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
