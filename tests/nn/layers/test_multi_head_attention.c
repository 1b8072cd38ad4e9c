/* MultiHeadAttention against real Keras (the script is tests/golden/make_norms.py) on every device:
 * outputs, scores, all gradients, parameters; masks, dropout, mixed precision, training, files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/layers/layer_internal.h"
#include "../golden.h"

enum { MOST_INPUTS = 4, MOST_WEIGHTS = 10, MOST = 1 + 1 + MOST_INPUTS + MOST_WEIGHTS };

static const struct {
    const char                   *name;
    CornuMultiHeadAttentionConfig config;
} cases[] = {
    { "self", { .num_heads = 2, .key_dim = 3 } },
    { "self_one_head", { .num_heads = 1, .key_dim = 4 } },
    { "self_causal", { .num_heads = 2, .key_dim = 3, .use_causal_mask = true } },
    { "self_masked", { .num_heads = 2, .key_dim = 3 } },
    { "self_masked_causal", { .num_heads = 2, .key_dim = 3, .use_causal_mask = true } },
    { "self_window", { .num_heads = 2, .key_dim = 3, .sliding_window = 2 } },
    { "self_window_causal", { .num_heads = 2, .key_dim = 3, .sliding_window = 2,
                              .use_causal_mask = true } },
    { "self_gate", { .num_heads = 2, .key_dim = 3, .use_gate = true } },
    { "self_output_shape", { .num_heads = 2, .key_dim = 3, .output_shape = { 4, 2 } } },
    { "cross", { .num_heads = 2, .key_dim = 3, .value_dim = 4 } },
    { "cross_no_bias", { .num_heads = 2, .key_dim = 3, .no_bias = true } },
    { "cross_key", { .num_heads = 2, .key_dim = 3, .value_dim = 2 } },
    { "cross_masked", { .num_heads = 2, .key_dim = 3 } },
    { "cross_value_masked", { .num_heads = 2, .key_dim = 3 } },
    { "cross_causal", { .num_heads = 2, .key_dim = 3, .use_causal_mask = true } },
    { "cross_given", { .num_heads = 2, .key_dim = 3 } },
    { "cross_given_heads", { .num_heads = 2, .key_dim = 3 } },
    { "cross_given_one", { .num_heads = 2, .key_dim = 3, .use_causal_mask = true } },
    { "axes_all", { .num_heads = 2, .key_dim = 3 } },
    { "axes_last", { .num_heads = 2, .key_dim = 3, .attention_axes = { -2 } } },
    { "axes_first", { .num_heads = 2, .key_dim = 3, .attention_axes = { 1 }, .use_gate = true } },
    { "axes_output_shape", { .num_heads = 2, .key_dim = 3, .output_shape = { 4, 2 } } },
    { "scores", { .num_heads = 2, .key_dim = 3, .use_causal_mask = true,
                  .return_attention_scores = true } },
};
enum { CASES = sizeof cases / sizeof *cases };

static CornuArray numbered(Golden *golden, const char *name, const char *prefix, int i)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", prefix, i);
    return golden_array(golden, name, text);
}

/* ---- Against Keras ---- */

typedef struct {
    Golden      *golden;
    const char  *name;
    CornuLayer  *layer;
    CornuGraph  *graph;
    CornuTensor *in[MOST_INPUTS], *masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor *fetches[MOST];
    char         names[MOST][16];
    int          inputs, fetch_count;
} Run;

static void fetch(Run *run, CornuTensor *tensor, const char *prefix, int i)
{
    char *name = run->names[run->fetch_count];
    snprintf(name, sizeof run->names[0], i < 0 ? "%s" : "%s%d", prefix, i);
    run->fetches[run->fetch_count++] = tensor;
}

static void build(Run *run, CornuDevice *device)
{
    const json_t *about = json_object_get(run->golden->cases, run->name);
    const json_t *paths = json_object_get(about, "paths");
    CornuShape    shapes[MOST_INPUTS];
    while (run->inputs < MOST_INPUTS &&
           numbered(run->golden, run->name, "x", run->inputs).data) {
        shapes[run->inputs] = numbered(run->golden, run->name, "x", run->inputs).type.shape;
        shapes[run->inputs++].extent[0] = CORNU_NONE;
    }
    expect_ok(cornu_layer_build_many(run->layer, shapes, run->inputs));
    assert_int_equal(cornu_layer_parameters(run->layer),
                     json_integer_value(json_object_get(about, "parameters")));
    assert_int_equal(run->layer->weight_count, json_array_size(paths));
    for (int i = 0; i < run->layer->weight_count; i++) {
        CornuWeight *weight = run->layer->weights[i];
        assert_string_equal(strchr(weight->path, '/') + 1,
                            json_string_value(json_array_get(paths, (size_t)i)));
        expect_ok(cornu_weight_write(weight, numbered(run->golden, run->name, "w", i)));
    }
    expect_ok(cornu_layer_move(run->layer, device));
}

static CornuTensor *fed(Run *run, CornuArray array)
{
    CornuTensor *tensor = cornu_graph_input(run->graph, array.type);
    expect_ok(cornu_graph_feed(tensor, array));
    return tensor;
}

/* y, any scores, and the gradients of all inputs but the mask and of the weights. */
static void record(Run *run)
{
    CornuTensor *one = cornu_op_constant(run->graph, cornu_scalar(CORNU_I64), 2.0);
    CornuCall    call = { .graph = run->graph, .count = one, .total = one, .seed = one,
                          .iteration = one, .position = one, .training = true };
    CornuTensor *out[CORNU_MAX_LAYER_TENSORS], *out_masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor *wanted[MOST], *gradients[MOST];
    int          floats = 0;
    for (int i = 0; i < run->inputs; i++) {
        const CornuArray mask = numbered(run->golden, run->name, "m", i);
        run->in[i] = fed(run, numbered(run->golden, run->name, "x", i));
        if (mask.data) run->masks[i] = cornu_op_convert(fed(run, mask), CORNU_BOOL);
        if (cornu_tensor_type(run->in[i]).dtype == CORNU_F32) wanted[floats++] = run->in[i];
    }
    if (!cornu__layer_call_masked(run->layer, &call, run->in, run->inputs, run->masks, out,
                                  out_masks))
        fail_msg("%s: %s", run->name, cornu_error_message());
    assert_ptr_equal(out_masks[0], run->masks[0]);
    fetch(run, out[0], "y", -1);
    if (cornu_layer_outputs(run->layer) == 2) fetch(run, out[1], "scores", -1);
    const int weights = run->layer->weight_count;
    for (int i = 0; i < weights; i++) wanted[floats + i] = cornu_layer_read(run->layer, &call, i);
    CornuTensor *d_y = fed(run, golden_array(run->golden, run->name, "d_y"));
    expect_ok(cornu_gradients(cornu_op_sum(cornu_op_multiply(out[0], d_y)), wanted,
                              floats + weights, gradients));
    for (int i = 0; i < floats; i++) fetch(run, gradients[i], "d_x", i);
    for (int i = 0; i < weights; i++) fetch(run, gradients[floats + i], "d_w", i);
}

static void expect_zeros(const char *what, CornuArray got)
{
    for (int64_t i = 0; i < cornu_type_count(got.type); i++)
        if (!(fabs(cornu_array_get(got, i)) < 2e-5))
            fail_msg("%s[%lld] is %g, expected 0 but for rounding", what, (long long)i,
                     cornu_array_get(got, i));
}

static int count_ops(const CornuGraph *graph, CornuOpId id)
{
    const CornuProgram *program = cornu_graph_program(graph);
    int                 count = 0;
    for (int i = 0; i < program->op_count; i++) count += program->ops[i].id == id;
    return count;
}

/* Where its scores are a result, attention is recorded op by op, otherwise as one op. */
static void expect_ops(const CornuGraph *graph, bool scores)
{
    assert_int_equal(count_ops(graph, CORNU_OP_ATTENTION), !scores);
    assert_int_equal(count_ops(graph, CORNU_OP_ATTENTION_GRAD), !scores);
    assert_int_equal(count_ops(graph, CORNU_OP_SOFTMAX), scores);
}

static void run_case(Golden *golden, int number, CornuDevice *device)
{
    Run run = { .golden = golden, .name = cases[number].name };
    run.layer = cornu_multi_head_attention_from(&cases[number].config);
    run.graph = cornu_graph_create(device);
    assert_non_null(run.layer);
    build(&run, device);
    record(&run);
    CornuArray got[MOST];
    for (int i = 0; i < run.fetch_count; i++) {
        const CornuType type = cornu_tensor_type(run.fetches[i]);
        got[i] = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    }
    expect_ok(cornu_run(run.graph, run.fetches, run.fetch_count, got));
    expect_ops(run.graph, cases[number].config.return_attention_scores);
    for (int i = 0; i < run.fetch_count; i++) {
        const CornuArray want = golden_array(golden, run.name, run.names[i]);
        char what[64];
        snprintf(what, sizeof what, "%s/%s", run.name, run.names[i]);
        assert_true(cornu_type_equal(got[i].type, want.type));
        if (!strcmp(run.names[i], "d_w3") && !cases[number].config.no_bias)
            expect_zeros(what, got[i]);   /* the keys' bias only shifts a row of scores */
        else
            expect_near(what, got[i].data, want, 2e-5);
        free(got[i].data);
    }
    cornu_graph_free(run.graph);
    cornu_layer_free(run.layer);
}

static void matches_keras(void **state)
{
    static const char *const devices[] = { "reference", "cpu", "tpu" };
    (void)state;
    Golden golden = golden_open("tests/golden/norms/attention.safetensors");
    assert_int_equal(json_object_size(golden.cases), CASES);
    for (int d = 0; d < 3; d++) {
        CornuDevice *device = cornu_device_open(devices[d], .shards = 1);
        assert_non_null(device);
        for (int i = 0; i < CASES; i++) run_case(&golden, i, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- In a model ---- */

enum { ROWS = 16, STEPS = 6, WORDS = 5 };

/* Each step's label is the word of the previous step, which it must attend to. */
static void fill(int32_t x[ROWS][STEPS], int32_t y[ROWS][STEPS])
{
    for (int i = 0; i < ROWS; i++)
        for (int t = 0; t < STEPS; t++) {
            x[i][t] = 1 + (i * 7 + t * (i + 3)) % (WORDS - 1);
            y[i][t] = t ? x[i][t - 1] : 0;
        }
}

static CornuModel *model_of(double dropout, const char *policy)
{
    CornuSymbol *words = cornu_input(.shape = { STEPS }, .dtype = CORNU_I32);
    CornuSymbol *place = cornu_input(.shape = { STEPS }, .dtype = CORNU_I32);
    CornuSymbol *x = cornu_call(cornu_add(), cornu_call(cornu_embedding(WORDS, 16), words),
                                cornu_call(cornu_embedding(STEPS, 16), place));
    CornuSymbol *y = cornu_call(cornu_layer_normalization(), x);
    y = cornu_call(cornu_multi_head_attention(2, 8, .use_causal_mask = true, .dropout = dropout),
                   y);
    x = cornu_call(cornu_layer_normalization(), cornu_call(cornu_add(), x, y));
    y = cornu_call(cornu_dense(WORDS, .activation = CORNU_SOFTMAX), x);
    CornuModel *model = cornu_model(.inputs = { words, place }, .outputs = { y }, .policy = policy);
    if (!model) fail_msg("%s", cornu_error_message());
    return model;
}

/* The loss after some steps on one small batch. */
static double trained(const char *device_name, int shards, const char *policy, double dropout)
{
    static int32_t x[ROWS][STEPS], y[ROWS][STEPS], places[ROWS][STEPS];
    CornuDevice   *device = cornu_device_open(device_name, .shards = shards);
    CornuModel    *model = model_of(dropout, policy);
    double         loss[1];
    fill(x, y);
    for (int i = 0; i < ROWS * STEPS; i++) places[i / STEPS][i % STEPS] = i % STEPS;
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.02), .device = device,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    const CornuArray in[] = { cornu_array(x, CORNU_I32, ROWS, STEPS),
                              cornu_array(places, CORNU_I32, ROWS, STEPS) };
    const CornuArray labels[] = { cornu_array(y, CORNU_I32, ROWS, STEPS) };
    for (int step = 0; step < 60; step++) {
        expect_ok(cornu_model_reset_metrics(model));
        expect_ok(cornu_train_on_batch_many(model, in, labels, loss));
    }
    cornu_model_free(model);
    cornu_device_close(device);
    return loss[0];
}

static void learns_to_look_back(void **state)
{
    (void)state;
    const double cpu = trained("cpu", 1, "float32", 0.0);
    assert_true(cpu < 0.05);
    assert_float_equal(trained("tpu", 4, "float32", 0.0), cpu, 1e-3 + 0.02 * cpu);
    assert_true(trained("tpu", 1, "mixed_bfloat16", 0.0) < 0.1);
    assert_true(trained("cpu", 1, "mixed_bfloat16", 0.1) < 0.5);
}

/* Dropout is active only in training, and different in each step. */
static void dropout_is_of_training(void **state)
{
    (void)state;
    float        y[4][2 * 3 * 4], x[2 * 3 * 4];
    CornuDevice *device = cornu_device_open("cpu");
    CornuLayer  *layer = cornu_multi_head_attention(2, 4, .dropout = 0.5);
    for (int i = 0; i < 24; i++) x[i] = (float)(i * 5 % 7) - 3.0f;
    expect_ok(cornu_layer_build(layer, cornu_shape(CORNU_NONE, 3, 4)));
    expect_ok(cornu_layer_move(layer, device));
    for (int k = 0; k < 4; k++) {
        CornuGraph  *graph = cornu_graph_create(device);
        CornuTensor *zero = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 0.0);
        CornuTensor *iteration = cornu_op_constant(graph, cornu_scalar(CORNU_I64), k);
        CornuCall    call = { .graph = graph, .count = zero, .total = zero, .seed = zero,
                              .position = zero, .iteration = iteration, .training = k > 1 };
        CornuTensor *in = cornu_graph_input(graph, cornu_type(CORNU_F32, 2, 3, 4));
        CornuTensor *out = cornu_layer_call(layer, &call, in);
        CornuArray   to = cornu_array(y[k], CORNU_F32, 2, 3, 4);
        expect_ok(cornu_graph_feed(in, cornu_array(x, CORNU_F32, 2, 3, 4)));
        expect_ok(cornu_run(graph, &out, 1, &to));
        cornu_graph_free(graph);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_not_equal(y[1], y[2], sizeof y[0]);
    assert_memory_not_equal(y[2], y[3], sizeof y[0]);
    cornu_layer_free(layer);
    cornu_device_close(device);
}

/* ---- Mistakes ---- */

static void refuses(CornuLayer *layer, const char *part)
{
    assert_null(layer);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, part);
}

static void refuses_axes(CornuMultiHeadAttentionConfig config, CornuStatus status, const char *part)
{
    const CornuShape image = cornu_shape(CORNU_NONE, 3, 4, 6);
    CornuLayer      *layer = cornu_multi_head_attention_from(&config);
    expect_error(cornu_layer_build_many(layer, &image, 1), status, part);
    cornu_layer_free(layer);
}

static void refuses_shapes(CornuStatus status, int count, const CornuShape *in, const char *part)
{
    CornuLayer *layer = cornu_multi_head_attention(2, 3);
    expect_error(cornu_layer_build_many(layer, in, count), status, part);
    cornu_layer_free(layer);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    refuses(cornu_multi_head_attention(), "multi_head_attention: .num_heads is 0, expected 1");
    refuses(cornu_multi_head_attention(2, -3), ".key_dim is -3");
    refuses(cornu_multi_head_attention(2, 3, -1), ".value_dim is -1");
    refuses(cornu_multi_head_attention(2, 3, .dropout = 1.0), ".dropout is 1, expected 0 or more");
    refuses(cornu_multi_head_attention(2, 3, .sliding_window = -1), ".sliding_window is -1");
    refuses(cornu_multi_head_attention(2, 3, .output_shape = { 2, -2 }), ".output_shape[1] is -2");
    const CornuShape query = cornu_shape(CORNU_NONE, 5, 6), value = cornu_shape(CORNU_NONE, 4, 6);
    const CornuShape mask = cornu_shape(CORNU_NONE, 5, 3), flat = cornu_shape(CORNU_NONE, 6);
    refuses_shapes(CORNU_ERR_SHAPE, 1, &flat, "the query is (None, 6), expected (B, T, C)");
    refuses_shapes(CORNU_ERR_SHAPE, 3, (CornuShape[]){ query, value, query },
                   "the key is (None, 5, 6) and the value (None, 4, 6)");
    refuses_shapes(CORNU_ERR_SHAPE, 4, (CornuShape[]){ query, value, value, mask },
                   "the mask is (None, 5, 3), expected it to broadcast to (None, 2, 5, 4)");
    refuses_axes((CornuMultiHeadAttentionConfig){ .num_heads = 2, .key_dim = 3,
                                                  .attention_axes = { 3 } }, CORNU_ERR_ARGUMENT,
                 ".attention_axes has 3, expected 1 to 2");
    refuses_axes((CornuMultiHeadAttentionConfig){ .num_heads = 2, .key_dim = 3,
                                                  .use_causal_mask = true }, CORNU_ERR_UNSUPPORTED,
                 "the query is (None, 3, 4, 6), and .use_causal_mask is only available along");
    refuses_shapes(CORNU_ERR_ARGUMENT, 5, (CornuShape[]){ query, query, query, mask, mask },
                   "got 5 tensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_keras),
        cmocka_unit_test(learns_to_look_back),
        cmocka_unit_test(dropout_is_of_training),
        cmocka_unit_test(mistakes_are_named),
    };
    if (cornu_set_dtype_policy("float32")) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
