/*
 * Masks through layers that wrap others, beside Keras 3.15.1 on TensorFlow: the numbers below are
 * its. Every weight but statistics and vector_u holds (i % 7) / 7 - 0.4, i the index of
 * the element; the embedding of words is 100, 2, 3, 1, 5 for the indices 0 to 4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };
enum { DEVICES = 3, MOST = 24, LAYERS = 4 };

static const float words[] = { 3, 0, 3, 4 };                               /* (1, 2, 2) */
static const float pairs[] = { 1, 2, 0, 0, 4, 1, 3, 1, 0, 0, 0, 0 };       /* (2, 3, 2) */
static const float numbers[] = { 1, 4, 3, 0, 8, 6 };                       /* (3, 2, 1) */
static const float deep[] = { 1, 2, 0, 0, 3, 1, 4, 4 };                    /* (1, 2, 2, 2) */

/* What fills the fields of a layer that only some have. */
typedef CornuLayer *Make(void);

static CornuLayer *masking(void) { return cornu_masking(); }
static CornuLayer *embedding(void) { return cornu_embedding(5, 1, .mask_zero = true); }
static CornuLayer *dense(void) { return cornu_dense(2); }
static CornuLayer *lstm(void) { return cornu_lstm(2); }
static CornuLayer *average(void) { return cornu_global_average_pooling1d(); }
static CornuLayer *norm(void) { return cornu_batch_normalization(.momentum = 0.5); }

static CornuLayer *in_time(CornuLayer *layer) { return cornu_time_distributed(layer); }
static CornuLayer *time_average(void) { return in_time(average()); }
static CornuLayer *time_lstm(void) { return in_time(lstm()); }
static CornuLayer *time_gru(void) { return in_time(cornu_gru(2)); }
static CornuLayer *time_rnn(void) { return in_time(cornu_simple_rnn(2)); }
static CornuLayer *time_both(void) { return in_time(cornu_bidirectional(lstm())); }
static CornuLayer *time_norm(void) { return in_time(norm()); }
static CornuLayer *time_time_norm(void) { return in_time(time_norm()); }
static CornuLayer *time_dense(void) { return in_time(dense()); }
static CornuLayer *time_steps(void)
{
    return in_time(cornu_lstm(2, .return_sequences = true));
}

/* The models within that which is being made, which holds its own references to them. */
static CornuModel *within[2 * LAYERS];
static int         within_count;

static CornuLayer *two(CornuLayer *a, CornuLayer *b)
{
    CornuModel *model = within[within_count++] = cornu_sequential();
    cornu_model_add(model, a);
    if (b) cornu_model_add(model, b);
    return cornu_as_layer(model);
}

static CornuLayer *time_model(void) { return in_time(two(dense(), average())); }
static CornuLayer *time_model_norm(void) { return in_time(two(dense(), norm())); }
static CornuLayer *dense_model(void) { return two(dense(), NULL); }
static CornuLayer *rnn_model(void) { return two(dense(), lstm()); }
static CornuLayer *time_pipeline(void)
{
    return in_time(cornu_pipeline(dense(), average()));
}
static CornuLayer *pipeline(void)
{
    return cornu_pipeline(dense(), cornu_activation(CORNU_RELU));
}
static CornuLayer *both_steps(void)
{
    return cornu_bidirectional(cornu_lstm(2, .return_sequences = true));
}
static CornuLayer *both(void) { return cornu_bidirectional(lstm()); }
static CornuLayer *spectral(void) { return cornu_spectral_normalization(dense()); }
static CornuLayer *spectral_conv(void) { return cornu_spectral_normalization(cornu_conv1d(2, 1)); }
static CornuLayer *spectral_embedding(void)
{
    return cornu_spectral_normalization(cornu_embedding(9, 2, .mask_zero = true));
}

#define WORDS   { CORNU_F32, { 3, { 1, 2, 2 } } }
#define PAIRS   { CORNU_F32, { 3, { 2, 3, 2 } } }
#define NUMBERS { CORNU_F32, { 3, { 3, 2, 1 } } }
#define DEEP    { CORNU_F32, { 4, { 1, 2, 2, 2 } } }

/* Weights as the top comment says; the embedding of words is its first one. */
static void set_weights(CornuModel *model)
{
    static const float rows[] = { 100, 2, 3, 1, 5 };
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        const char  *name = strrchr(weight->path, '/') + 1;
        float        values[64];
        if (!strcmp(name, "gamma") || !strcmp(name, "beta") || !strcmp(name, "vector_u") ||
            !strncmp(name, "moving", 6))
            continue;
        const int64_t count = cornu_type_count(weight->type);
        assert_in_range(count, 1, 64);
        for (int64_t k = 0; k < count; k++) values[k] = (float)(k % 7) / 7.0f - 0.4f;
        if (!strcmp(name, "embeddings") && count == 5) memcpy(values, rows, sizeof rows);
        expect_ok(cornu_weight_write(weight, cornu_array_from(values, weight->type)));
    }
}

static CornuModel *model_of(CornuDevice *device, CornuArray x, Make *const layers[LAYERS])
{
    CornuModel *model = cornu_sequential(.name = "masked");
    for (int i = 0; i < LAYERS && layers[i]; i++) expect_ok(cornu_model_add(model, layers[i]()));
    while (within_count > 0) cornu_model_free(within[--within_count]);
    CornuShape row = { .rank = x.type.shape.rank - 1 };
    for (int i = 0; i < row.rank; i++) row.extent[i] = x.type.shape.extent[i + 1];
    expect_ok(cornu_model_build(model, row));
    expect_ok(cornu_compile(model, .device = device));
    set_weights(model);
    return model;
}

/* One call; y gets the output. */
static int64_t call_model(CornuModel *model, CornuArray x, bool training, float y[MOST])
{
    CornuGraph  *graph = cornu_graph_create(cornu_model_device(model));
    CornuTensor *in = cornu_graph_input(graph, x.type);
    CornuTensor *out = cornu_model_call(model, in, &(CornuCall){ .training = training });
    expect_ok(cornu_error_take());
    const CornuType type = cornu_tensor_type(out);
    assert_in_range(cornu_type_count(type), 1, MOST);
    expect_ok(cornu_graph_feed(in, x));
    expect_ok(cornu_run(graph, &out, 1, &(CornuArray){ type, y }));
    cornu_graph_free(graph);
    return cornu_type_count(type);
}

static void check(const char *name, const float *got, int64_t count, const float *wanted)
{
    for (int64_t i = 0; i < count; i++)
        if (!(got[i] - wanted[i] < 2e-6f && wanted[i] - got[i] < 2e-6f))
            fail_msg("%s: element %d is %.7g, expected %.7g", name, (int)i, (double)got[i],
                     (double)wanted[i]);
}

typedef struct {
    const char *name;
    const float *x;
    CornuType    type;
    Make        *layers[LAYERS];
    int64_t      count;
    float        y[MOST];
} Case;

static const Case cases[] = {
    { "average", words, WORDS, { embedding, time_average }, 2,
      { 1, 3 } },
    { "lstm", words, WORDS, { embedding, time_lstm }, 4,
      { 0.072787f, 0.063704f, 0.090733f, 0.021709f } },
    { "gru", words, WORDS, { embedding, time_gru }, 4,
      { 0.198678f, 0.436769f, 0.699894f, 0.912435f } },
    { "rnn", words, WORDS, { embedding, time_rnn }, 4,
      { -0.664037f, -0.473278f, -0.969283f, -0.882205f } },
    { "bidirectional", words, WORDS, { embedding, time_both }, 8,
      { 0.072787f, 0.063704f, 0.072787f, 0.063704f, 0.090733f, 0.021709f, 0.094794f, 0.088392f } },
    { "model", words, WORDS, { embedding, time_model }, 4,
      { -0.8f, -0.514286f, -1.6f, -1.028571f } },
    { "pipeline", words, WORDS, { embedding, time_pipeline }, 4,
      { -0.8f, -0.514286f, -1.6f, -1.028571f } },   /* Keras refuses to build it */
    { "steps", words, WORDS, { embedding, time_steps }, 8,
      { 0.072787f, 0.063704f, 0.072787f, 0.063704f, 0.072787f, 0.063704f, 0.090733f, 0.021709f } },
    { "after dense", pairs, PAIRS, { masking, time_dense, lstm }, 4,
      { -0.197176f, -0.320901f, -0.131771f, -0.207182f } },
    { "spectral", pairs, PAIRS, { masking, spectral, lstm }, 4,
      { -0.197176f, -0.320901f, -0.131771f, -0.207182f } },
    { "spectral, both", pairs, PAIRS, { masking, spectral, both }, 8,
      { -0.197176f, -0.320901f, -0.174628f, -0.220183f, -0.131771f, -0.207182f, -0.131771f,
        -0.207182f } },
    { "spectral conv", pairs, PAIRS, { masking, spectral_conv, lstm },
      4, { -0.183595f, -0.297652f, -0.051353f, -0.045247f } },   /* ends the mask */
    { "model, lstm", pairs, PAIRS, { masking, dense_model, lstm }, 4,
      { -0.197176f, -0.320901f, -0.131771f, -0.207182f } },
    { "model of lstm", pairs, PAIRS, { masking, rnn_model }, 4,
      { -0.197176f, -0.320901f, -0.131771f, -0.207182f } },
    { "pipeline, lstm", pairs, PAIRS, { masking, pipeline, lstm }, 4,
      { 0.065838f, 0.082893f, 0.041654f, 0.052947f } },
    { "both, lstm", pairs, PAIRS, { masking, both_steps, lstm }, 4,
      { 0.08105f, 0.081278f, 0.051724f, 0.050737f } },
};

static void wrapped_layers_get_the_mask(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < DEVICES; d++) {
            const Case       *c = &cases[i];
            const CornuArray  x = { c->type, (void *)(uintptr_t)c->x };
            CornuDevice      *device = cornu_device_open(devices[d]);
            cornu_set_dtype_policy("float32");
            CornuModel *model = model_of(device, x, c->layers);
            float       y[MOST];
            assert_int_equal(call_model(model, x, false, y), c->count);
            check(c->name, y, c->count, c->y);
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

static void embeddings_within_make_it(void **state)
{
    (void)state;
    float            x[] = { 3, 0, 1 }, y[MOST];
    const float      wanted[] = { 0.056158f, 0.077426f };
    const CornuArray row = cornu_array(x, CORNU_F32, 1, 3);
    Make *const      layers[LAYERS] = { spectral_embedding, lstm };
    CornuModel      *model = model_of(NULL, row, layers);
    assert_int_equal(call_model(model, row, false, y), 2);
    check("embedding", y, 2, wanted);
    cornu_model_free(model);
}

/* Without a merge both outputs of Bidirectional have the mask. */
static void both_outputs_have_it(void **state)
{
    (void)state;
    const float      wanted[] = { 0.073862f, 0.089628f, 0.046554f, 0.05683f };
    const CornuArray x = { PAIRS, (void *)(uintptr_t)pairs };
    CornuSymbol     *in = cornu_input(.shape = { 3, 2 }), *out[2];
    out[0] = cornu_call(cornu_bidirectional(cornu_lstm(2, .return_sequences = true),
                                            .merge_mode = CORNU_MERGE_NONE),
                        cornu_call(cornu_masking(), in));
    out[1] = cornu_call_result(out[0], 1);
    CornuModel *model = cornu_model(.inputs = { in }, .outputs = { cornu_call(lstm(), out[1]) });
    float       y[MOST];
    expect_ok(cornu_compile(model));
    set_weights(model);
    assert_int_equal(call_model(model, x, false, y), 4);
    check("second output", y, 4, wanted);
    cornu_model_free(model);
}

/* Training: each step is a batch of its own, of which masked rows do not count. */
static void statistics_leave_out_masked_rows(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const float *x;
        CornuType    type;
        Make        *layers[LAYERS];
        int64_t      count;
        float        y[MOST], mean[2], variance[2];
        float        within;   /* of y: 1 / sqrt(variance + 0.001) is steep where it is 0 */
    } all[] = {
        { "norm", numbers, NUMBERS, { masking, time_norm }, 6,
          { -1.01899f, -0.9995f, -0.339664f, -4.997502f, 1.358654f, 0.999501f }, { 3.5f },
          { 2.916667f }, 2e-6f },
        { "norm of pairs", deep, DEEP, { masking, time_norm }, 8,
          { 0.000004f, 0.000008f, -31.622772f, -63.245544f, -0.998006f, -0.999778f, 0.998006f,
            0.999778f }, { 2, 1.75f }, { 0.375f, 1.375f }, 2e-5f },
        { "norm within", deep, DEEP, { masking, time_time_norm },
          8, { 0.000004f, 0.000008f, 0, 0, 0.000008f, 0.000004f, 0.000015f, 0.000015f },
          { 2.8125f, 2.375f }, { 0.0625f, 0.0625f }, 2e-5f },
        { "model", pairs, PAIRS, { masking, time_model_norm }, 12,
          { 0.995773f, 0.993281f, -12.649111f, -8.131572f, -0.000008f, -0.000004f, -0.995774f,
            -0.993282f, -12.649111f, -8.131572f, 54.210464f, 31.622772f },
          { -1.228571f, -0.719643f }, { 0.139694f, 0.134209f }, 1e-4f },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int d = 0; d < DEVICES; d++) {
            const CornuArray x = { all[i].type, (void *)(uintptr_t)all[i].x };
            CornuDevice     *device = cornu_device_open(devices[d]);
            cornu_set_dtype_policy("float32");
            CornuModel *model = model_of(device, x, all[i].layers);
            const int   last = cornu_model_weight_count(model);
            float       y[MOST], value[2];
            assert_int_equal(call_model(model, x, true, y), all[i].count);
            for (int64_t k = 0; k < all[i].count; k++)
                assert_float_equal(y[k], all[i].y[k], all[i].within);
            for (int k = 0; k < 2; k++) {
                const CornuWeight *weight = cornu_model_weight(model, last - 2 + k);
                expect_ok(cornu_weight_read(weight, cornu_array_from(value, weight->type)));
                check(all[i].name, value, cornu_type_count(weight->type),
                      k ? all[i].variance : all[i].mean);
            }
            cornu_model_free(model);
            cornu_device_close(device);
        }
}

/* Layers that compute with low-rank factors, or in int8, pass it on like others. */
static void adapted_layers_pass_it_on(void **state)
{
    (void)state;
    const float      lora[] = { -0.094533f, -0.138124f, -0.064975f, -0.091143f };
    const float      plain[] = { -0.197176f, -0.320901f, -0.131771f, -0.207182f };
    const CornuArray x = { PAIRS, (void *)(uintptr_t)pairs };
    for (int i = 0; i < 2; i++) {
        CornuModel *model = cornu_sequential();
        CornuLayer *layer = dense();
        float       y[MOST];
        if (i == 0) expect_ok(cornu_layer_enable_lora(layer, 1, 0.0));
        expect_ok(cornu_model_add(model, masking()));
        expect_ok(cornu_model_add(model, layer));
        expect_ok(cornu_model_add(model, lstm()));
        expect_ok(cornu_model_build(model, cornu_shape(3, 2)));
        set_weights(model);
        if (i == 1) expect_ok(cornu_layer_quantize_weights(layer, "int8"));
        expect_ok(cornu_compile(model));
        assert_int_equal(call_model(model, x, false, y), 4);
        for (int k = 0; k < 4; k++)   /* of the last row unmasked steps give -0.05 */
            assert_float_equal(y[k], i ? plain[k] : lora[k], i ? 4e-3 : 2e-6);
        cornu_model_free(model);
    }
}

/* The mask of a layer's input is not that of its activation: statistics are of all six steps. */
static void activations_have_none(void **state)
{
    (void)state;
    float        y[MOST];
    const CornuArray x = { PAIRS, (void *)(uintptr_t)pairs };
    CornuModel  *model = cornu_sequential();
    cornu_model_add(model, masking());
    cornu_model_add(model, cornu_dense(2, .no_bias = true,
                                       .activation = cornu_activation_of(norm())));
    expect_ok(cornu_model_build(model, cornu_shape(3, 2)));
    expect_ok(cornu_compile(model));
    set_weights(model);
    assert_int_equal(call_model(model, x, true, y), 12);
    /* kernel (-0.4, -0.257143), (-0.114286, 0.028571); sums over the six steps (8, 4) times it */
    const float mean = 0.5f * (8.0f * -0.4f + 4.0f * -0.114286f) / 6.0f;
    const CornuWeight *moving = NULL;
    float              value[2];
    for (int i = 0; i < cornu_model_weight_count(model) && !moving; i++)
        if (strstr(cornu_model_weight(model, i)->path, "moving_mean"))
            moving = cornu_model_weight(model, i);
    expect_ok(cornu_weight_read(moving, cornu_array_from(value, moving->type)));
    assert_float_equal(value[0], mean, 1e-5);
    cornu_model_free(model);
}

static void other_masks_are_refused(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("reference");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, (CornuType)PAIRS);
    CornuLayer  *time = time_dense(), *normal = norm();
    CornuCall    call = { .graph = graph, .training = true };
    expect_ok(cornu_layer_build(time, cornu_tensor_shape(x)));
    expect_ok(cornu_layer_build(normal, cornu_tensor_shape(x)));
    call.count = call.total = call.position = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 2);
    call.mask = cornu_graph_input(graph, cornu_type(CORNU_BOOL, 2, 2));
    expect_failure(cornu_layer_call(time, &call, x), CORNU_ERR_SHAPE,
                   "time_distributed: its input is (2, 3, 2) and the mask (2, 2), expected one "
                   "(B, T, …)");
    expect_failure(cornu_layer_call(normal, &call, x), CORNU_ERR_SHAPE,
                   "batch_normalization: its input is (2, 3, 2) and the mask (2, 2), expected all "
                   "axes of the input but the last one");
    call.mask = cornu_graph_input(graph, cornu_type(CORNU_BOOL, 2));
    expect_failure(cornu_layer_call(time, &call, x), CORNU_ERR_SHAPE, "the mask (2,)");
    cornu_layer_free(time);
    cornu_layer_free(normal);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrapped_layers_get_the_mask),
        cmocka_unit_test(embeddings_within_make_it),
        cmocka_unit_test(both_outputs_have_it),
        cmocka_unit_test(statistics_leave_out_masked_rows),
        cmocka_unit_test(adapted_layers_pass_it_on),
        cmocka_unit_test(activations_have_none),
        cmocka_unit_test(other_masks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
