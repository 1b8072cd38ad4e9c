/* Sequences: recurrent layers, wrappers, masks and states, and training with a mask, against real
 * Keras (tests/golden/sequences, tests/golden/cells) on every device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/saving/files_internal.h"
#include "../golden.h"

static const char *const devices[] = { "reference", "cpu", "tpu" };
enum { DEVICES = 3, MOST_WEIGHTS = 16 };

/* ---- Against Keras ---- */

static json_t *layer_object(const json_t *described, const char *name);

/* An argument, which may be a layer, or a list of layers. */
static json_t *argument(const json_t *value, const char *key)
{
    if (strstr(key, "layer") || !strcmp(key, "cell")) return layer_object(value, key);
    if (strcmp(key, "cells")) return json_deep_copy(value);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_append_new(list, layer_object(json_array_get(value, i), key));
    return list;
}

/* [class, arguments] as the architecture's object, wrapped layers likewise. */
static json_t *layer_object(const json_t *described, const char *name)
{
    json_t     *config = json_object();
    const char *key;
    json_t     *value;
    json_object_foreach(json_array_get(described, 1), key, value)
        json_object_set_new(config, key, argument(value, key));
    json_object_set_new(config, "name", json_string(name));
    return json_pack("{s:O, s:o}", "class_name", json_array_get(described, 0), "config", config);
}

static CornuModel *model_of(const json_t *about, CornuType x)
{
    json_t *shape = json_pack("[n]"), *layers = json_array();
    for (int i = 1; i < x.shape.rank; i++)
        json_array_append_new(shape, json_integer(x.shape.extent[i]));
    json_array_append_new(layers, json_pack("{s:s, s:{s:o}}", "class_name", "InputLayer", "config",
                                            "batch_shape", shape));
    const json_t *described = json_object_get(about, "layers");
    for (size_t i = 0; i < json_array_size(described); i++) {
        char name[32];
        snprintf(name, sizeof name, "layer_%zu", i);
        json_array_append_new(layers, layer_object(json_array_get(described, i), name));
    }
    json_t *architecture = json_pack("{s:s, s:{s:s, s:o}}", "class_name", "Sequential", "config",
                                     "name", "case", "layers", layers);
    CornuModel *model = cornu__model_from_config(architecture, NULL);
    if (!model) fail_msg("%s", cornu_error_message());
    json_decref(architecture);
    return model;
}

static CornuArray numbered(Golden *golden, const char *name, const char *prefix, int i)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", prefix, i);
    return golden_array(golden, name, text);
}

static void write_weights(Golden *golden, const char *name, CornuModel *model)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        expect_ok(cornu_weight_write(cornu_model_weight(model, i), numbered(golden, name, "w", i)));
}

/* Keras' "sequential/lstm/lstm_cell/kernel" without model and layer. */
static const char *path_inside(const char *path)
{
    const char *last = strrchr(path, '/'), *before = last;
    while (before > path && before[-1] != '/') before--;
    return before;
}

static void check_paths(const json_t *about, CornuModel *model)
{
    const json_t *paths = json_object_get(about, "paths");
    assert_int_equal(json_array_size(paths), cornu_model_weight_count(model));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const char *theirs = json_string_value(json_array_get(paths, (size_t)i));
        const char *ours = cornu_model_weight(model, i)->path;
        if (strstr(theirs, "_cell/") && strstr(ours, "_cell/"))
            assert_string_equal(path_inside(ours), path_inside(theirs));
        else assert_string_equal(strrchr(ours, '/'), strrchr(theirs, '/'));
    }
}

/* Adds the leading axis of shards, as feeds and fetches have it. */
static CornuArray on_one_shard(CornuArray array)
{
    CornuType type = { .dtype = array.type.dtype, .shape = { array.type.shape.rank + 1, { 1 } } };
    for (int i = 1; i < type.shape.rank; i++)
        type.shape.extent[i] = array.type.shape.extent[i - 1];
    return cornu_array_from(array.data, type);
}

static void check(Golden *golden, const char *name, const char *what, CornuTensor *tensor,
                  CornuArray got)
{
    char text[128];
    CornuText a, b;
    const CornuType  type = cornu_tensor_type(tensor);
    const CornuArray want = golden_array(golden, name, what);
    snprintf(text, sizeof text, "%s/%s", name, what);
    if (!cornu_type_equal(type, want.type))
        fail_msg("%s is %s, Keras has %s", text, cornu_type_print(&a, type),
                 cornu_type_print(&b, want.type));
    expect_near(text, got.data, want, 2e-5);
}

/* The fetches: y, d_x where x is of floats, the gradients of the weights. */
static void run_case(Golden *golden, const char *name, const json_t *about, CornuDevice *device)
{
    CornuArray  x = golden_array(golden, name, "x"), d_y = golden_array(golden, name, "d_y");
    CornuArray  x1 = golden_array(golden, name, "x1"), out[MOST_WEIGHTS + 2];
    CornuModel *model = model_of(about, x.type);
    const int   weights = cornu_model_weight_count(model);
    const bool  floats = x.type.dtype == CORNU_F32;
    write_weights(golden, name, model);
    check_paths(about, model);
    expect_ok(cornu_compile(model, .device = device));

    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *in = cornu_graph_shard_input(graph, x.type), *wanted[MOST_WEIGHTS + 1] = { in };
    CornuTensor *fetches[MOST_WEIGHTS + 2];
    fetches[0] = cornu_model_call(model, in, &(CornuCall){ .training = true });
    if (!fetches[0]) fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < weights; i++)
        wanted[i + floats] = cornu_read(graph, cornu_model_weight(model, i)->variable);
    CornuTensor *weight_of_y = cornu_graph_shard_input(graph, d_y.type);
    CornuTensor *loss = cornu_op_sum(cornu_op_multiply(fetches[0], weight_of_y));
    if (cornu_gradients(loss, wanted, weights + floats, fetches + 1))
        fail_msg("%s: %s", name, cornu_error_message());
    expect_ok(cornu_graph_feed(weight_of_y, on_one_shard(d_y)));
    const int count = 1 + floats + weights;
    for (int i = 0; i < count; i++) {
        CornuType type = cornu_tensor_type(fetches[i]);
        out[i] = on_one_shard(cornu_array_from(malloc(cornu_type_bytes(type)), type));
    }
    for (int call = x1.data ? 0 : 1; call < 2; call++) {
        expect_ok(cornu_graph_feed(in, on_one_shard(call ? x : x1)));
        if (cornu_run(graph, fetches, count, out)) fail_msg("%s: %s", name, cornu_error_message());
        check(golden, name, call ? "y" : "y1", fetches[0], out[0]);
    }
    if (floats) check(golden, name, "d_x", fetches[1], out[1]);
    for (int i = 0; i < weights; i++) {
        char text[32];
        snprintf(text, sizeof text, "d_w%d", i);
        check(golden, name, text, fetches[1 + floats + i], out[1 + floats + i]);
    }
    for (int i = 0; i < count; i++) free(out[i].data);
    cornu_graph_free(graph);
    cornu_model_free(model);
}

static void match_keras(const char *path)
{
    const char *name;
    json_t     *about;
    Golden      golden = golden_open(path);
    for (int d = 0; d < DEVICES; d++) {
        CornuDevice *device = expect_device(devices[d]);
        json_object_foreach(golden.cases, name, about) run_case(&golden, name, about, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

static void layers_match_keras(void **state)
{
    (void)state;
    match_keras("tests/golden/sequences/layers.safetensors");
}

static void cells_match_keras(void **state)
{
    (void)state;
    match_keras("tests/golden/cells/layers.safetensors");
}

/* ---- Training with a mask ---- */

static void expect_close(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-5 * fabs(want) + 1e-7))
        fail_msg("%s is %.8g, Keras has %.8g", what, got, want);
}

/* Two batches of two rows and one of one, with different masks: the results of evaluate, the losses
 * of fit, and the weights after six steps. (Keras' trainer on JAX loses the mask on its
 * way to the metrics of fit, whose accuracy here counts all 20 steps; its evaluation does not.) */
static void masked_training_matches_keras(void **state)
{
    (void)state;
    Golden     golden = golden_open("tests/golden/sequences/training.safetensors");
    json_t    *about = json_object_get(golden.cases, "masked"), *history;
    CornuArray x = golden_array(&golden, "masked", "x"), y = golden_array(&golden, "masked",
                                                                          "labels");
    history = json_object_get(about, "history");
    for (int d = 0; d < DEVICES; d++) {
        CornuDevice *device = expect_device(devices[d]);
        CornuModel  *model = cornu_sequential(.input_shape = { 4 });
        cornu_model_add(model, cornu_embedding(6, 4, .mask_zero = true));
        cornu_model_add(model, cornu_lstm(3, .return_sequences = true));
        cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
        expect_ok(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.5),
                                .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .metrics = { CORNU_ACCURACY }, .device = device));
        write_weights(&golden, "masked", model);
        double before[2];
        expect_ok(cornu_evaluate(model, .x = x, .y = y, .batch_size = 2, .results = before,
                                 .verbose = CORNU_SILENT));
        for (size_t i = 0; i < 2; i++)
            expect_close("before", before[i], json_number_value(json_array_get(
                                                  json_object_get(about, "before"), i)));
        CornuHistory *ours = cornu_fit(model, .x = x, .y = y, .batch_size = 2, .epochs = 2,
                                       .no_shuffle = true, .verbose = CORNU_SILENT);
        if (!ours) fail_msg("%s", cornu_error_message());
        for (int epoch = 0; epoch < 2; epoch++)
            expect_close("loss", cornu_history_get(ours, "loss", epoch),
                         json_number_value(json_array_get(json_object_get(history, "loss"),
                                                          (size_t)epoch)));
        for (int i = 0; i < cornu_model_weight_count(model); i++) {
            float      values[64];
            CornuArray want = numbered(&golden, "masked", "after", i);
            assert_true(cornu_type_count(want.type) <= 64);
            expect_ok(cornu_weight_read(cornu_model_weight(model, i),
                                        cornu_array_from(values, want.type)));
            expect_near("weight", values, want, 2e-5);
        }
        cornu_history_free(ours);
        cornu_model_free(model);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_match_keras),
        cmocka_unit_test(cells_match_keras),
        cmocka_unit_test(masked_training_matches_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
