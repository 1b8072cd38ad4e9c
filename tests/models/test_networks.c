/*
 * The reference networks against Keras (tests/golden/networks): activations, loss, gradients,
 * moving statistics, ten steps of Adam, on every device.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../skip.h"
#include <jansson.h>
#include <zlib.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "../../nn/formats/safetensors.h"
#include "../expect.h"

#define GOLDEN "tests/golden/networks/"

/* The bound for activations, losses and gradients, relative to the tensor's largest element. */
#define TOLERANCE 1e-4

enum { MAX_LAYERS = 24, MAX_WEIGHTS = 24 };

/* Fails the test with the error message if a constructor failed. */
static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

/* ---- The fixture: a network with the weights of tests/golden/README.md ---- */

typedef struct {
    CornuDevice      *device;
    CornuModel       *model;
    CornuSafetensors *golden, *batches;
    json_t           *metadata;
    const char       *name;
    CornuWeight      *trainable[MAX_WEIGHTS];
    int               trainable_count;
} Fixture;

static float *network_weights(const char *network, const char *path, const json_t *rule,
                              int64_t count)
{
    char name[128];
    snprintf(name, sizeof name, "%s/%s", network, path);
    const uint32_t seed = (uint32_t)crc32(0, (const Bytef *)name, (uInt)strlen(name));
    const float    scale = (float)json_number_value(json_object_get(rule, "scale"));
    const float    offset = (float)json_number_value(json_object_get(rule, "offset"));
    float         *values = malloc((size_t)count * sizeof *values);
    double         sum = 0;
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        uint32_t x = seed + (uint32_t)i * 0x9E3779B9u;
        x ^= x >> 16;
        x *= 0x85EBCA6B;
        x ^= x >> 13;
        x *= 0xC2B2AE35;
        x ^= x >> 16;
        float unit = ((float)(x >> 8) - 8388608.0f) / 8388608.0f;
        values[i] = scale * unit + offset;
        sum += values[i];
    }
    const double expected = json_number_value(json_object_get(rule, "sum"));
    assert_float_equal(sum, expected, 1e-6 * (1 + fabs(expected)));
    return values;
}

static void write_weights(Fixture *f)
{
    const json_t *rules = json_object_get(json_object_get(f->metadata, "cases"), "weights");
    for (int i = 0; i < cornu_model_weight_count(f->model); i++) {
        CornuWeight  *weight = cornu_model_weight(f->model, i);
        const json_t *rule = json_object_get(rules, weight->path);
        if (!rule) fail_msg("Keras has no weight %s", weight->path);
        float *values =
            network_weights(f->name, weight->path, rule, cornu_type_count(weight->type));
        expect_ok(cornu_weight_write(weight, cornu_array_from(values, weight->type)));
        free(values);
    }
    assert_int_equal(json_object_size(rules), cornu_model_weight_count(f->model));
}

static void open_fixture(Fixture *f, const char *device, const char *network)
{
    char path[128];
    *f = (Fixture){ .name = network };
    f->device = made(cornu_device_open_from(&(CornuDeviceConfig){ .name = device }));
    snprintf(path, sizeof path, GOLDEN "%s.safetensors", network);
    f->golden = made(cornu_safetensors_open(path));
    f->batches = made(cornu_safetensors_open(GOLDEN "batches.safetensors"));
    f->metadata = json_loads(cornu_safetensors_metadata(f->golden, "golden"), 0, NULL);
    assert_non_null(f->metadata);
    f->model = made(cornu_reference_model(network)->build(&(CornuNetworkConfig){ 0 }));
    expect_ok(cornu_compile(f->model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .optimizer = cornu_adam(), .device = f->device));
    write_weights(f);
    for (int i = 0; i < cornu_model_weight_count(f->model); i++)
        if (!cornu_model_weight(f->model, i)->non_trainable)
            f->trainable[f->trainable_count++] = cornu_model_weight(f->model, i);
}

static void close_fixture(Fixture *f)
{
    cornu_model_free(f->model);
    cornu_safetensors_close(f->golden);
    cornu_safetensors_close(f->batches);
    json_decref(f->metadata);
    cornu_device_close(f->device);
}

/* ---- The model layer by layer, with dropout off as in the golden run ---- */

typedef struct {
    CornuGraph  *graph;
    CornuTensor *images, *labels;
    CornuTensor *activation[MAX_LAYERS];
    CornuTensor *loss;
    CornuTensor *probabilities;
} Trace;

static Trace trace(Fixture *f, int64_t rows, bool training)
{
    Trace t = { .graph = made(cornu_graph_create(f->device)) };
    t.images = cornu_graph_input(t.graph, cornu_type(CORNU_U8, rows, 28, 28));
    t.labels = cornu_graph_input(t.graph, cornu_type(CORNU_I32, rows));
    CornuTensor *zero = cornu_op_constant(t.graph, cornu_scalar(CORNU_I64), 0.0);
    CornuCall    call = { .graph = t.graph, .seed = zero, .iteration = zero, .position = zero,
                          .count = cornu_op_constant(t.graph, cornu_scalar(CORNU_I64),
                                                     (double)rows) };
    /* Rounded once to f32, as u8 / 255.0f in the golden run; exact if pixels are not scaled. */
    const double divisor = cornu_model_input_scale(f->model) == 1.0 ? 1.0 : 255.0;
    CornuTensor *pixels = cornu_op_convert(t.images, CORNU_F32);
    CornuTensor *x = cornu_op_divide(pixels, cornu_op_constant_like(pixels, divisor));
    CornuShape   shape = cornu_model_input_shape(f->model);
    shape.extent[0] = rows;
    x = cornu_op_reshape(x, shape);
    for (int i = 0; i < cornu_model_layer_count(f->model); i++) {
        CornuLayer *layer = cornu_model_layer(f->model, i);
        call.training = training && strcmp(layer->kind->class_name, "Dropout") != 0;
        x = t.activation[i] = made(cornu_layer_call(layer, &call, x));
    }
    CornuLoss   *loss = cornu_loss("sparse_categorical_crossentropy");
    CornuTensor *each = made(loss->call(loss, t.labels, x));
    t.loss = cornu_op_mean(each);
    t.probabilities = x;
    cornu_loss_free(loss);
    return t;
}

static void feed(Trace *t, const Fixture *f, const char *set, int64_t rows, int64_t step)
{
    char name[32];
    snprintf(name, sizeof name, "%s/images", set);
    const CornuNamedArray *images = cornu_safetensors_find(f->batches, name);
    snprintf(name, sizeof name, "%s/labels", set);
    const CornuNamedArray *labels = cornu_safetensors_find(f->batches, name);
    assert_true(images && labels);
    /* A file's arrays may be unaligned: labels are copied. */
    int32_t aligned[64];
    memcpy(aligned, (const char *)labels->array.data + step * rows * 4, (size_t)rows * 4);
    char *image = (char *)images->array.data + step * rows * 784;
    expect_ok(cornu_graph_feed(t->images, cornu_array(image, CORNU_U8, rows, 28, 28)));
    expect_ok(cornu_graph_feed(t->labels, cornu_array(aligned, CORNU_I32, rows)));
}

/* ---- Comparing ---- */

/* max|diff| / max|ref| over the rows of the golden tensor, which has every `stride`-th one. */
static double distance(const CornuNamedArray *golden, const float *seen, int64_t stride)
{
    CornuShape shape = golden->array.type.shape;
    int64_t    rows = shape.rank ? shape.extent[0] : 1, row = cornu_shape_count(shape) / rows;
    double     diff = 0, scale = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < row; k++) {
            float expected;
            memcpy(&expected, (const char *)golden->array.data + (i * row + k) * 4, 4);
            double d = fabs((double)seen[i * stride * row + k] - expected);
            diff = isnan(d) ? INFINITY : fmax(diff, d);
            scale = fmax(scale, fabs(expected));
        }
    return scale > 0 ? diff / scale : diff;
}

static void expect_close(const Fixture *f, const char *name, const float *seen, int64_t stride)
{
    const CornuNamedArray *golden = cornu_safetensors_find(f->golden, name);
    if (!golden) fail_msg("%s: Keras' file has no %s", f->name, name);
    double far = distance(golden, seen, stride);
    if (!(far <= TOLERANCE))
        fail_msg("%s on %s: %s is %g away from Keras, expected at most %g", f->name,
                 cornu_device_name(f->device), name, far, TOLERANCE);
}

/* Runs the step once; values[i] receives the value of tensors[i]. */
static void fetch(Trace *t, CornuTensor *const *tensors, int count, float **values)
{
    CornuArray to[MAX_LAYERS + 1];
    assert_in_range(count, 1, MAX_LAYERS + 1);
    for (int i = 0; i < count; i++) {
        CornuType type = cornu_tensor_type(tensors[i]);
        values[i] = malloc(cornu_type_bytes(type));
        assert_non_null(values[i]);
        to[i] = cornu_array_from(values[i], type);
    }
    expect_ok(cornu_run(t->graph, tensors, count, to));
}

static float fetch_loss(Trace *t)
{
    float     loss;
    CornuArray to = cornu_array_from(&loss, cornu_tensor_type(t->loss));
    expect_ok(cornu_run(t->graph, &t->loss, 1, &to));
    return loss;
}

/* ---- Tests ---- */

static int compare_activations(Fixture *f, const char *mode, bool training)
{
    Trace        t = trace(f, 8, training);
    CornuTensor *tensors[MAX_LAYERS + 1] = { t.loss };
    char         names[MAX_LAYERS + 1][96] = { "loss" };
    float       *values[MAX_LAYERS + 1];
    int          count = 1;
    if (!training) strcpy(names[0], "loss_infer");
    for (int i = 0; i < cornu_model_layer_count(f->model); i++) {
        snprintf(names[count], sizeof names[count], "%s/%s", mode,
                 cornu_layer_name(cornu_model_layer(f->model, i)));
        if (cornu_safetensors_find(f->golden, names[count])) tensors[count++] = t.activation[i];
    }
    feed(&t, f, "batch", 8, 0);
    fetch(&t, tensors, count, values);
    for (int i = 0; i < count; i++) {
        expect_close(f, names[i], values[i], 1);
        free(values[i]);
    }
    cornu_graph_free(t.graph);
    return count - 1;
}

static void compare_gradients(Fixture *f)
{
    Trace        t = trace(f, 8, true);
    CornuTensor *w[MAX_WEIGHTS], *d_w[MAX_WEIGHTS];
    float       *values[MAX_WEIGHTS];
    for (int i = 0; i < f->trainable_count; i++)
        w[i] = made(cornu_read(t.graph, f->trainable[i]->variable));
    expect_ok(cornu_gradients(t.loss, w, f->trainable_count, d_w));
    feed(&t, f, "batch", 8, 0);
    write_weights(f); /* a run updates the moving statistics */
    fetch(&t, d_w, f->trainable_count, values);
    for (int i = 0; i < f->trainable_count; i++) {
        char name[96];
        snprintf(name, sizeof name, "gradient/%s", f->trainable[i]->path);
        bool whole = cornu_safetensors_find(f->golden, name) != NULL;
        if (!whole) snprintf(name, sizeof name, "gradient/%s[::7]", f->trainable[i]->path);
        expect_close(f, name, values[i], whole ? 1 : 7);
        free(values[i]);
    }
    cornu_graph_free(t.graph);
}

static void compare_moving_statistics(Fixture *f)
{
    Trace t = trace(f, 8, true);
    feed(&t, f, "batch", 8, 0);
    write_weights(f);
    fetch_loss(&t);
    for (int i = 0; i < cornu_model_weight_count(f->model); i++) {
        CornuWeight *weight = cornu_model_weight(f->model, i);
        static float values[4096];
        if (!weight->non_trainable) continue;
        char name[96];
        snprintf(name, sizeof name, "after_step/%s", weight->path);
        expect_ok(cornu_weight_read(weight, cornu_array_from(values, weight->type)));
        expect_close(f, name, values, 1);
    }
    cornu_graph_free(t.graph);
}

static CornuArray of_run(const Fixture *f, const char *run, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s/%s", run, what);
    const CornuNamedArray *found = cornu_safetensors_find(f->golden, name);
    assert_non_null(found);
    return found->array;
}

/* Ten steps, each loss within 1e-3 of Keras'. */
static void compare_steps(Fixture *f, const char *run)
{
    write_weights(f);
    CornuVariable *variables[MAX_WEIGHTS];
    CornuTensor   *w[MAX_WEIGHTS], *d_w[MAX_WEIGHTS];
    for (int i = 0; i < f->trainable_count; i++) variables[i] = f->trainable[i]->variable;
    CornuOptimizer *adam = made(cornu_adam(0));
    expect_ok(cornu_optimizer_build(adam, variables, f->trainable_count));

    Trace t = trace(f, 16, true);
    for (int i = 0; i < f->trainable_count; i++) w[i] = made(cornu_read(t.graph, variables[i]));
    expect_ok(cornu_gradients(t.loss, w, f->trainable_count, d_w));
    expect_ok(cornu_optimizer_apply(adam, t.graph, d_w));

    CornuArray losses = of_run(f, run, "losses"), rates = of_run(f, run, "learning_rates");
    for (int step = 0; step < 10; step++) {
        double keras = cornu_array_get(losses, step);
        expect_ok(cornu_optimizer_set_learning_rate(adam, cornu_array_get(rates, step)));
        feed(&t, f, "steps", 16, step);
        double seen = (double)fetch_loss(&t);
        if (!(fabs(seen - keras) <= 1e-3 * fmax(1, fabs(keras))))
            fail_msg("%s on %s, %s: loss %g in step %d, Keras has %g", f->name,
                     cornu_device_name(f->device), run, seen, step, keras);
    }
    cornu_graph_free(t.graph);
    cornu_optimizer_free(adam);
}

typedef struct {
    const char *device, *network;
    int64_t     parameters;
    bool        steps;   /* ten steps; the reference is too slow for the largest */
} Case;

static void compare(void **state)
{
    const Case *c = *state;
    Fixture     f;
    /* The reference is plain C in double: slow in an emulator, and the same on any processor. */
    if (strcmp(c->device, "reference") == 0 && getenv("CORNU_TEST_WRAPPER"))
        SKIP_FOR(SKIP_EMULATOR);
    open_fixture(&f, c->device, c->network);
    assert_int_equal(cornu_model_parameters(f.model), c->parameters);
    assert_true(compare_activations(&f, "train", true) >= 5);
    write_weights(&f);
    bool normalizes = cornu_model_trainable_parameters(f.model) < c->parameters;
    assert_int_equal(normalizes, compare_activations(&f, "infer", false) > 0);
    compare_gradients(&f);
    compare_moving_statistics(&f);
    if (c->steps) {
        compare_steps(&f, "adam");
        if (cornu_safetensors_find(f.golden, "adam_schedule/losses"))
            compare_steps(&f, "adam_schedule");
    }
    close_fixture(&f);
}

int main(void)
{
    static Case cases[] = {
        { "reference", "mnist_cnn", 93322, true },
        { "cpu", "mnist_cnn", 93322, true },
        { "reference", "mnist_cnn_bn", 354538, true },
        { "cpu", "mnist_cnn_bn", 354538, true },
        { "reference", "mnist_convnet", 34826, true },
        { "cpu", "mnist_convnet", 34826, true },
        { "reference", "fashion_mnist_cnn", 1619470, false },
        { "cpu", "fashion_mnist_cnn", 1619470, true },
    };
    enum { CASES = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[CASES];
    char              names[CASES][64];
    for (int i = 0; i < CASES; i++) {
        snprintf(names[i], sizeof names[i], "%s on %s", cases[i].network, cases[i].device);
        tests[i] = (struct CMUnitTest){ names[i], compare, NULL, NULL, &cases[i] };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
