/* Layers whose activations the backward pass computes again train to the same bits, in less
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../models/models.h"
#include "../../../nn/config/remat_internal.h"
#include "../../../nn/cornu.h"
#include "../../../tensor/graph_internal.h"
#include "../../device/pjrt/opened.h"

enum { ROWS = 16, MANY = 512, STEPS = 3, FEATURES = 64, CLASSES = 10, TIMES = 32, SIDE = 28 };

static float   x[MANY * FEATURES], targets[MANY * FEATURES];
static int32_t words[ROWS * TIMES], next[ROWS * TIMES], classes[ROWS];

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < MANY * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < MANY * FEATURES; i++) targets[i] = (float)(i * 23 % 97) / 48.0f - 1.0f;
    for (int i = 0; i < ROWS * TIMES; i++) words[i] = (i * 29 + i / 7) % 64;
    for (int i = 0; i < ROWS * TIMES; i++) next[i] = words[(i + 1) % (ROWS * TIMES)];
    for (int i = 0; i < ROWS; i++) classes[i] = (i * 5 + i / 3) % CLASSES;
    return 0;
}

/* ---- Networks ---- */

static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(128, .activation = CORNU_GELU));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_gaussian_noise(0.1));
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_TANH, .name = "middle"));
    cornu_model_add(model, cornu_layer_normalization());
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *resnet(void) { return cornu_resnet20(); }

static CornuModel *lstm(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { TIMES }, .input_dtype = CORNU_I32);
    cornu_model_add(model, cornu_embedding(64, 24));
    cornu_model_add(model, cornu_lstm(32, .return_sequences = true, .dropout = 0.1));
    cornu_model_add(model, cornu_gru(24, .return_sequences = true));
    cornu_model_add(model, cornu_time_distributed(
        cornu_dense(64, .activation = CORNU_SOFTMAX)));
    return model;
}

static CornuModel *gpt(void)
{
    static const CornuTextPreset preset = { .name = "gpt", .model = "char_gpt", .channels = 32,
                                            .layers = 4, .heads = 4, .sequence_length = TIMES };
    return cornu_char_gpt(&preset, .vocabulary = 64);
}

/* A model within the model, of `layers`, as keras.remat(f) of a function of them. */
static CornuSymbol *dense_block(CornuSymbol *y, int layers)
{
    CornuSymbol *in = cornu_input(.shape = { FEATURES }), *out = in;
    for (int i = 0; i < layers; i++)
        out = cornu_call(cornu_dense(FEATURES, .activation = CORNU_TANH), out);
    return cornu_call(cornu_as_layer(cornu_model(.inputs = { in }, .outputs = { out })), y);
}

enum { BLOCKS = 8, LAYERS = 8 };

static CornuModel *deep(void)
{
    CornuSymbol *in = cornu_input(.shape = { FEATURES }), *y = in;
    for (int i = 0; i < BLOCKS; i++) y = dense_block(y, LAYERS);
    return cornu_model(.inputs = { in }, .outputs = { y });
}

enum { GPT_BLOCKS = 6, CHANNELS = 32 };

static CornuSymbol *gpt_block(CornuSymbol *y)
{
    CornuSymbol *in = cornu_input(.shape = { TIMES, CHANNELS });
    CornuSymbol *h = cornu_call(cornu_multi_head_attention(4, CHANNELS / 4,
                                                           .use_causal_mask = true),
                                cornu_call(cornu_layer_normalization(), in));
    h = cornu_call(cornu_add(), in, cornu_call(cornu_dropout(0.1), h));
    CornuSymbol *up = cornu_call(cornu_dense(4 * CHANNELS, .activation = CORNU_GELU),
                                 cornu_call(cornu_layer_normalization(), h));
    up = cornu_call(cornu_dropout(0.1), cornu_call(cornu_dense(CHANNELS), up));
    CornuModel *block = cornu_model(.inputs = { in },
                                    .outputs = { cornu_call(cornu_add(), h, up) });
    return cornu_call(cornu_as_layer(block), y);
}

static CornuModel *gpt_of_blocks(void)
{
    CornuSymbol *text = cornu_input(.shape = { TIMES }), *h = text;
    h = cornu_call(cornu_embedding(64, CHANNELS), h);
    for (int i = 0; i < GPT_BLOCKS; i++) h = gpt_block(h);
    h = cornu_call(cornu_dense(64, .activation = CORNU_SOFTMAX), h);
    return cornu_model(.inputs = { text }, .outputs = { h });
}

typedef struct {
    const char  *name;
    CornuModel *(*layers)(void);
    CornuType    in;
    CornuType    out;
    bool         regression;
} Network;

#define OF(dtype, ...) { dtype, { sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } } }
static const Network networks[] = {
    { "mlp", mlp, OF(CORNU_F32, ROWS, FEATURES), OF(CORNU_I32, ROWS), false },
    { "resnet20", resnet, OF(CORNU_F32, ROWS, SIDE, SIDE, 1), OF(CORNU_I32, ROWS), false },
    { "lstm", lstm, OF(CORNU_I32, ROWS, TIMES), OF(CORNU_I32, ROWS, TIMES), false },
    { "char_gpt", gpt, OF(CORNU_I32, ROWS, TIMES), OF(CORNU_I32, ROWS, TIMES), false },
    { "deep", deep, OF(CORNU_F32, MANY, FEATURES), OF(CORNU_F32, MANY, FEATURES), true },
    { "gpt_of_blocks", gpt_of_blocks, OF(CORNU_I32, ROWS, TIMES), OF(CORNU_I32, ROWS, TIMES),
      false },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* ---- Training ---- */

static const struct { const char *name; CornuRematConfig config; } modes[] = {
    { "none", { .mode = CORNU_REMAT_OFF } },
    { "full", { .mode = CORNU_REMAT_FULL } },
    { "activations", { .mode = CORNU_REMAT_ACTIVATIONS } },
    { "larger_than", { .mode = CORNU_REMAT_LARGER_THAN } },
    { "list_of_layers", { .mode = CORNU_REMAT_LIST_OF_LAYERS,
                          .layer_names = (const char *const[]){ "middle", "lstm", "dense_1",
                                                                "batch_normalization", NULL } } },
};
enum { MODES = sizeof modes / sizeof *modes };

typedef struct {
    float  *weights;
    size_t  count;
    double  loss[STEPS];
    int64_t planned;   /* bytes of values between inputs and outputs */
} Outcome;

static CornuModel *compiled(const Network *network, const CornuRematConfig *remat,
                            CornuDevice *device)
{
    CornuModel *model;
    cornu_set_random_seed(7);
    cornu_remat_enter(remat);
    model = network->layers();
    cornu_remat_leave();
    if (cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01), .device = device,
                      .loss = network->regression ? CORNU_MEAN_SQUARED_ERROR
                                                  : CORNU_SPARSE_CATEGORICAL_CROSSENTROPY))
        fail_msg("%s: %s", network->name, cornu_error_message());
    return model;
}

static Outcome trained(const Network *network, const CornuRematConfig *remat, CornuDevice *device)
{
    Outcome     outcome = { .weights = NULL };
    CornuModel *model = compiled(network, remat, device);
    const bool  of_words = network->in.dtype == CORNU_I32;
    void *const in = of_words ? (void *)words : x;
    void *const out = network->regression ? (void *)targets : of_words ? (void *)next : classes;
    for (int k = 0; k < STEPS; k++)
        if (cornu_train_on_batch(model, .x = cornu_array_from(in, network->in),
                                 .y = cornu_array_from(out, network->out),
                                 .values = &outcome.loss[k]))
            fail_msg("%s: %s", network->name, cornu_error_message());
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        const size_t       count = (size_t)cornu_type_count(w->type);
        outcome.weights = realloc(outcome.weights, (outcome.count + count) * sizeof(float));
        assert_int_equal(cornu_weight_read(w, cornu_array_from(outcome.weights + outcome.count,
                                                               w->type)), CORNU_OK);
        outcome.count += count;
    }
    outcome.planned = cornu_model_statistics(model)->bytes_planned;
    cornu_model_free(model);
    return outcome;
}

static void expect_same(const Network *network, const char *mode, const char *device,
                        const Outcome *a, const Outcome *b, double bound)
{
    assert_int_equal(a->count, b->count);
    for (int k = 0; k < STEPS; k++)
        if (!(fabs(a->loss[k] - b->loss[k]) <= bound))
            fail_msg("%s, %s on %s, step %d: loss %.9g, without %.9g", network->name, mode, device,
                     k, b->loss[k], a->loss[k]);
    for (size_t i = 0; i < a->count && bound == 0.0; i++)
        if (memcmp(&a->weights[i], &b->weights[i], sizeof(float)))
            fail_msg("%s, %s on %s: weight %zu is %.9g, without %.9g", network->name, mode, device,
                     i, (double)b->weights[i], (double)a->weights[i]);
}

/* What recomputing all layers saves at least, in bytes: what of all blocks but two, the one that is
 * recomputed and the inputs of the others, is kept without. Of a block of dense layers that is the
 * result of each; of a block of char_gpt queries, keys, values and what attention makes of them,
 * and of a whole block within a model also the wide layer. Two shards run at the same time, and a
 * tpu keeps bfloat16. */
static int64_t least_saved(const Network *n, const CornuDevice *device)
{
    const int     shards = cornu_device_shards(device);
    const int64_t size = strcmp(cornu_device_policy(device), "float32") ? 2 : 4;
    const int64_t rows = shards > 2 ? 2 * n->in.shape.extent[0] / shards : n->in.shape.extent[0];
    const int64_t tokens = rows * TIMES * CHANNELS * size;
    return n->layers == deep ? (int64_t)((BLOCKS - 2) * LAYERS - BLOCKS) * rows * FEATURES * size
         : n->layers == gpt ? 2 * 4 * tokens
         : n->layers == gpt_of_blocks ? (GPT_BLOCKS - 2) * 8 * tokens - GPT_BLOCKS * tokens : 0;
}

static void bits_are_equal(void **state)
{
    (void)state;
    static const struct { const char *name; int shards; } devices[] = {
        { "cpu", 1 }, { "cpu", 4 }, { "tpu", 2 },
    };
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        CornuDevice *device = cornu_device_open(devices[d].name, .shards = devices[d].shards,
                                                .threads = 2);
        assert_non_null(device);
        for (const Network *n = networks; n < networks + NETWORKS; n++) {
            const Outcome plain = trained(n, &modes[0].config, device);
            for (int m = 1; m < (n->layers == resnet ? 2 : MODES); m++) {   /* for its time */
                const Outcome again = trained(n, &modes[m].config, device);
                print_message("%-14s %-15s %s, %d shards: %8.1f KB, without %8.1f KB\n", n->name,
                              modes[m].name, devices[d].name, devices[d].shards,
                              1e-3 * (double)again.planned, 1e-3 * (double)plain.planned);
                expect_same(n, modes[m].name, devices[d].name, &plain, &again, 0.0);
                const int64_t saved = plain.planned - again.planned;
                if (modes[m].config.mode == CORNU_REMAT_FULL &&
                    saved < least_saved(n, device))
                    fail_msg("%s on %s: %lld bytes are saved, expected %lld", n->name,
                             devices[d].name, (long long)saved,
                             (long long)least_saved(n, device));
                free(again.weights);
            }
            free(plain.weights);
        }
        cornu_device_close(device);
    }
}

/* ---- Meshes, and XLA ---- */

static void meshes_agree(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = {
        { "dense/kernel", { NULL, "model" } }, { "dense/bias", { "model" } },
        { "middle/kernel", { "model" } }, { "dense/output", { "batch", "model" } }, { 0 }
    };
    const CornuMesh mesh = cornu_device_mesh(.shape = { 2, 4 });
    CornuDevice    *device = cornu_device_open("cpu", .shards = 8, .threads = 2);
    assert_int_equal(cornu_device_set_mesh(device, &mesh, NULL, rows), CORNU_OK);
    Outcome plain = trained(&networks[0], &modes[0].config, device);
    Outcome again = trained(&networks[0], &modes[1].config, device);
    expect_same(&networks[0], "full", "a mesh", &plain, &again, 0.0);
    free(plain.weights);
    free(again.weights);
    cornu_device_close(device);
}

/* XLA fuses what is computed again with what reads it, so that sums may be rounded otherwise. */
static void xla_agrees(void **state)
{
    (void)state;
    CornuDevice *device = pjrt_open(1);
    for (const Network *n = networks; n < networks + NETWORKS; n++) {
        if (n->layers == resnet || n->layers == deep) continue;   /* for their time to compile */
        Outcome plain = trained(n, &modes[0].config, device);
        Outcome again = trained(n, &modes[1].config, device);
        expect_same(n, "full", "pjrt", &plain, &again, 1e-4);
        free(plain.weights);
        free(again.weights);
    }
    cornu_device_close(device);
}

/* ---- Which layers ---- */

/* The layers of the model of remat.py with an op of their calls in a part that is
 * computed again, as "a b". */
static void expect_layers(const CornuRematConfig *config, const char *expected)
{
    char         found[200] = "";
    const char  *last = "";
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    cornu_remat_enter(config);
    CornuModel *model = cornu_sequential(.input_shape = { 8 });
    cornu_model_add(model, cornu_dense(4, .activation = CORNU_RELU, .name = "a"));
    cornu_model_add(model, cornu_dropout(0.5, .name = "drop"));
    cornu_model_add(model, cornu_dense(16, .name = "b"));
    cornu_model_add(model, cornu_activation(CORNU_GELU, .name = "act"));
    cornu_model_add(model, cornu_layer_normalization(.name = "norm"));
    cornu_model_add(model, cornu_reshape(.target_shape = { 4, 4 }, .name = "shape"));
    cornu_model_add(model, cornu_lstm(3, .name = "lstm"));
    cornu_model_add(model, cornu_relu(.name = "relu"));
    cornu_remat_leave();
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX, .name = "out"));
    if (cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .device = device))
        fail_msg("%s", cornu_error_message());
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_input(graph, cornu_type(CORNU_F32, 4, 8));
    if (!cornu_model_call(model, in, &(CornuCall){ .training = true }))
        fail_msg("%s", cornu_error_message());
    for (int i = 0; i < graph->program->op_count; i++) {
        const CornuProgramOp *op = &graph->program->ops[i];
        const size_t          used = strlen(found);
        if (op->remat && strcmp(op->scope, last))
            snprintf(found + used, sizeof found - used, "%s%s", used ? " " : "", op->scope);
        if (op->remat) last = op->scope;
    }
    cornu_graph_free(graph);
    cornu_model_free(model);
    cornu_device_close(device);
    assert_string_equal(found, expected);
}

static void expect_larger(int64_t threshold, const char *expected)
{
    expect_layers(&(CornuRematConfig){ .mode = CORNU_REMAT_LARGER_THAN,
                                       .output_size_threshold = threshold }, expected);
}

static void layers_are_keras(void **state)
{
    (void)state;
    const char *const names[] = { "b", "norm", "nobody", NULL };
    expect_layers(&(CornuRematConfig){ .mode = CORNU_REMAT_FULL },
                  "a drop b act norm shape lstm relu");
    expect_layers(&(CornuRematConfig){ .mode = CORNU_REMAT_ACTIVATIONS }, "a act");
    expect_layers(&(CornuRematConfig){ .mode = CORNU_REMAT_OFF }, "");
    expect_larger(11, "a drop b act norm shape lstm relu");
    expect_larger(12, "a drop b act norm shape");
    expect_larger(16, "b act norm shape");
    expect_larger(63, "b act norm shape");
    expect_larger(64, "");
    expect_larger(CORNU_ZERO, "a drop b act norm shape lstm relu");
    expect_layers(&(CornuRematConfig){ .mode = CORNU_REMAT_LIST_OF_LAYERS, .layer_names = names },
                  "b norm");
}

/* ---- Scopes ---- */

static void scopes(void **state)
{
    (void)state;
    CornuLayer *outside = cornu_dense(3), *full = NULL, *inner = NULL, *alone;
    CORNU_REMAT_SCOPE() {
        full = cornu_bidirectional(cornu_lstm(3));
        CORNU_REMAT_SCOPE(.mode = CORNU_REMAT_OFF) inner = cornu_dense(3);
    }
    alone = cornu_remat(cornu_dense(3));
    assert_int_equal(cornu__remat_mode(outside->remat), CORNU_REMAT_OFF);
    assert_int_equal(cornu__remat_mode(full->remat), CORNU_REMAT_FULL);
    assert_int_equal(cornu__remat_mode(full->inner[1]->remat), CORNU_REMAT_FULL);
    assert_int_equal(cornu__remat_mode(inner->remat), CORNU_REMAT_OFF);
    assert_int_equal(cornu__remat_mode(alone->remat), CORNU_REMAT_FULL);
    assert_null(cornu_remat(NULL));

    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, alone);
    CornuModel *clone = cornu_model_clone(model);
    assert_int_equal(cornu__remat_mode(cornu_model_layer(clone, 0)->remat), CORNU_REMAT_FULL);
    cornu_model_free(clone);
    cornu_model_free(model);

    CORNU_REMAT_SCOPE(.mode = (CornuRematMode)9) assert_null(cornu_dense(3));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_string_equal(cornu_error_message(), "CORNU_REMAT_SCOPE: .mode is 9, expected 0 to 4");
    for (int i = 0; i < 9; i++) cornu_remat_enter(&(CornuRematConfig){ .mode = CORNU_REMAT_FULL });
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    for (int i = 0; i < 10; i++) cornu_remat_leave();
    cornu_layer_free(outside);
    cornu_layer_free(full);
    cornu_layer_free(inner);
}

/* ---- Graphs ---- */

static int count_ops(const CornuGraph *graph, CornuOpId id)
{
    int count = 0;
    for (int i = 0; i < graph->program->op_count; i++) count += graph->program->ops[i].id == id;
    return count;
}

/* d/dx of exp(sin(x)), of which sine and exponential are computed again, the
 * sine of a constant is not, and what follows reads the exponential that is kept. */
static void gradients_of_parts(void **state)
{
    (void)state;
    float        result[2][3], given[3] = { 0.5f, -1.0f, 2.0f };
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    for (int again = 0; again < 2; again++) {
        CornuGraph  *graph = cornu_graph_create(device);
        CornuTensor *in = cornu_graph_input(graph, cornu_type(CORNU_F32, 3)), *d_in;
        if (again) cornu_graph_remat_begin(graph);
        if (again) cornu_graph_remat_begin(graph);   /* within itself it changes nothing */
        CornuTensor *constant = cornu_op_sin(cornu_op_constant_like(in, 2.0));
        if (again) cornu_graph_remat_end(graph);
        CornuTensor *y = cornu_op_exp(cornu_op_multiply(cornu_op_sin(in), constant));
        if (again) cornu_graph_remat_end(graph);
        CornuTensor *loss = cornu_op_sum(cornu_op_multiply(y, y));
        assert_int_equal(cornu_gradients(loss, &in, 1, &d_in), CORNU_OK);
        assert_int_equal(cornu__program_most_apart(graph->program) > 0, again > 0);
        assert_int_equal(count_ops(graph, CORNU_OP_SIN), 2 + again);
        assert_int_equal(count_ops(graph, CORNU_OP_EXP), 1);
        cornu_graph_feed(in, cornu_array(given, CORNU_F32, 3));
        assert_int_equal(cornu_run(graph, &d_in, 1, &(CornuArray){ cornu_type(CORNU_F32, 3),
                                                                   result[again] }), CORNU_OK);
        cornu_graph_free(graph);
    }
    assert_memory_equal(result[0], result[1], sizeof result[0]);
    const double s = sin(2.0);
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)result[1][i] - 2.0 * s * cos((double)given[i]) *
                         exp(2.0 * s * sin((double)given[i]))) < 2e-6);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_equal),
        cmocka_unit_test(meshes_agree),
        cmocka_unit_test(xla_agrees),
        cmocka_unit_test(layers_are_keras),
        cmocka_unit_test(scopes),
        cmocka_unit_test(gradients_of_parts),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
