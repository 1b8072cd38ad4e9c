/* Models whose layers branch, against Keras (the script is tests/golden/make_graphs.py): outputs,
 * losses, gradients, ten steps of Adam on every device; and invalid use. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

enum { MOST = 2, LOGS = 8 };

typedef struct {
    const char *name;
    CornuModel *(*build)(void);
    int         inputs, outputs;
} Case;

/* ---- The models ---- */

static CornuModel *two(void)
{
    CornuSymbol *h = cornu_input(.shape = { 4 }, .name = "code_in");
    CornuModel  *encoder = cornu_model(
        .inputs = { h }, .name = "encoder",
        .outputs = { cornu_call(cornu_dense(3, .activation = CORNU_TANH, .name = "code"), h) });
    CornuSymbol *source = cornu_input(.shape = { 4 }, .name = "source");
    CornuSymbol *side = cornu_input(.shape = { 6 }, .name = "side");
    CornuLayer  *shared = cornu_dense(4, .activation = CORNU_RELU, .name = "shared");
    CornuSymbol *a = cornu_call(shared, source);
    CornuSymbol *b = cornu_call(shared, cornu_call(cornu_dense(4, .name = "narrow"), side));
    CornuSymbol *joined = cornu_call(cornu_add(.name = "joined"), a, b);
    CornuSymbol *code_a = cornu_call(cornu_as_layer(encoder), a);
    CornuSymbol *code_b = cornu_call(cornu_as_layer(encoder), joined);
    CornuSymbol *both = cornu_call(cornu_concatenate(.name = "both"), code_a, code_b, side);
    CornuSymbol *scores = cornu_call(cornu_dense(3, .activation = CORNU_SOFTMAX,
                                                 .name = "scores"), both);
    CornuSymbol *larger = cornu_call(cornu_maximum(.name = "larger"), a, b);
    CornuSymbol *other = cornu_call(cornu_multiply(.name = "product"), a, larger);
    CornuSymbol *mean = cornu_call(cornu_average(.name = "mean"), other, joined);
    CornuSymbol *value = cornu_call(cornu_dense(1, .name = "value"), mean);
    CornuModel  *model = cornu_model(.inputs = { source, side }, .outputs = { scores, value },
                                     .name = "two");
    cornu_model_free(encoder);   /* the calls hold it */
    return model;
}

static CornuSymbol *named(const char *base, const char *end, CornuSymbol *x, int64_t filters,
                          int64_t kernel, int64_t stride, bool bias)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", base, end);
    return cornu_call(cornu_conv2d(filters, kernel, stride, CORNU_SAME, .no_bias = !bias,
                                   .name = name), x);
}

static CornuSymbol *normalized(const char *base, const char *end, CornuSymbol *x)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", base, end);
    return cornu_call(cornu_batch_normalization(.name = name), x);
}

static CornuSymbol *block(const char *base, CornuSymbol *x, int64_t filters, int64_t stride)
{
    CornuSymbol *y = normalized(base, "_a_bn", named(base, "_a", x, filters, 3, stride, false));
    y = cornu_call(cornu_activation(CORNU_RELU), y);
    y = normalized(base, "_b_bn", named(base, "_b", y, filters, 3, 1, false));
    if (stride > 1) x = named(base, "_shortcut", x, filters, 1, stride, true);
    return cornu_call(cornu_activation(CORNU_RELU), cornu_call(cornu_add(), x, y));
}

static CornuModel *residual(void)
{
    CornuSymbol *image = cornu_input(.shape = { 8, 8, 2 }, .name = "image");
    CornuSymbol *x = named("stem", "", image, 4, 3, 1, true);
    x = block("two", block("one", x, 4, 1), 6, 2);
    x = cornu_call(cornu_flatten(), cornu_call(cornu_average_pooling2d(4), x));
    x = cornu_call(cornu_dense(5, .activation = CORNU_SOFTMAX, .name = "scores"), x);
    return cornu_model(.inputs = { image }, .outputs = { x }, .name = "residual");
}

static const Case cases[] = { { "two", two, 2, 2 }, { "residual", residual, 1, 1 } };

/* ---- Against Keras ---- */

typedef struct {
    Golden     *golden;
    const Case *test_case;
    CornuModel *model;
    CornuArray  x[MOST], y[MOST];
    double      tolerance;
} Run;

static void compile(Run *run, CornuOptimizer *optimizer, CornuDevice *device)
{
    if (run->test_case->outputs == 1)
        expect_ok(cornu_compile(run->model, .optimizer = optimizer, .device = device,
                                .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .metrics = { CORNU_ACCURACY }));
    else
        expect_ok(cornu_compile(run->model, .optimizer = optimizer, .device = device,
                                .losses = { CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                            CORNU_MEAN_SQUARED_ERROR },
                                .loss_weights = { 1, 0.25 },
                                .output_metrics = { { CORNU_ACCURACY },
                                                    { cornu_metric("mse") } }));
}

static void start(Run *run)
{
    char path[96];
    for (int i = 0; i < cornu_model_weight_count(run->model); i++) {
        CornuWeight *weight = cornu_model_weight(run->model, i);
        snprintf(path, sizeof path, "start/%s", weight->path);
        expect_ok(cornu_weight_write(weight, golden_array(run->golden, run->test_case->name,
                                                          path)));
    }
}

static void check_outputs(Run *run, const char *prefix)
{
    CornuArray to[MOST], want[MOST];
    char       name[32];
    for (int i = 0; i < run->test_case->outputs; i++) {
        snprintf(name, sizeof name, "%s%d", prefix, i);
        want[i] = golden_array(run->golden, run->test_case->name, name);
        to[i] = cornu_array_from(malloc(cornu_type_bytes(want[i].type)), want[i].type);
    }
    expect_ok(cornu_predict_on_batch_many(run->model, run->x, to));
    for (int i = 0; i < run->test_case->outputs; i++) {
        expect_near(prefix, to[i].data, want[i], run->tolerance);
        free(to[i].data);
    }
}

/* One step; compares its logs, sorted by name, with row `row` of the golden ones. */
static void step(Run *run, const char *logs, int row)
{
    const json_t    *about = json_object_get(run->golden->cases, run->test_case->name);
    const json_t    *names = json_object_get(about, "logs");
    const CornuArray want = golden_array(run->golden, run->test_case->name, logs);
    const int        count = (int)json_array_size(names);
    double           values[LOGS];
    assert_int_equal(count, cornu_model_metric_count(run->model));
    expect_ok(cornu_model_reset_metrics(run->model));
    expect_ok(cornu_train_on_batch_many(run->model, run->x, run->y, values));
    for (int i = 0; i < count; i++) {
        const char *name = cornu_model_metric_name(run->model, i);
        int         at = 0;
        while (at < count && strcmp(json_string_value(json_array_get(names, (size_t)at)), name))
            at++;
        if (at == count) fail_msg("Keras has no log %s", name);
        const double expected = cornu_array_get(want, row * count + at);
        if (!strstr(name, "accuracy"))
            assert_float_equal(values[i], expected, run->tolerance * (1 + expected));
    }
}

static void check_weights(Run *run, const char *prefix)
{
    char path[96];
    for (int i = 0; i < cornu_model_weight_count(run->model); i++) {
        const CornuWeight *weight = cornu_model_weight(run->model, i);
        snprintf(path, sizeof path, "%s/%s", prefix, weight->path);
        const CornuArray got = cornu_array_from(malloc(cornu_type_bytes(weight->type)),
                                                weight->type);
        expect_ok(cornu_weight_read(weight, got));
        expect_near(path, got.data, golden_array(run->golden, run->test_case->name, path),
                    run->tolerance);
        free(got.data);
    }
}

static void check_case(Golden *golden, const Case *test_case, CornuDevice *device)
{
    Run run = { .golden = golden, .test_case = test_case, .tolerance = 1e-4 };
    char name[8];
    for (int i = 0; i < MOST; i++) {
        snprintf(name, sizeof name, "x%d", i);
        if (i < test_case->inputs) run.x[i] = golden_array(golden, test_case->name, name);
        snprintf(name, sizeof name, "y%d", i);
        if (i < test_case->outputs) run.y[i] = golden_array(golden, test_case->name, name);
    }
    run.model = test_case->build();
    if (!run.model) fail_msg("%s", cornu_error_message());
    start(&run);
    compile(&run, cornu_sgd(.learning_rate = 1.0), device);
    check_outputs(&run, "infer");
    step(&run, "sgd/logs", 0);
    check_weights(&run, "sgd");
    start(&run);
    compile(&run, cornu_adam(.learning_rate = 0.01), device);
    for (int i = 0; i < 10; i++) step(&run, "adam/logs", i);
    run.tolerance = 1e-3;   /* ten steps magnify rounding */
    check_outputs(&run, "after");
    cornu_model_free(run.model);
}

/* tpu with float32 precision; batch normalization has statistics per shard, so that the residual
 * net agrees on one shard only. */
static void agrees_with_keras(void **state)
{
    static const struct { const char *device; int shards, cases; } on[] = {
        { "reference", 1, 2 }, { "cpu", 1, 2 }, { "tpu", 1, 2 }, { "tpu", 8, 1 },
    };
    (void)state;
    Golden golden = golden_open("tests/golden/graphs/graphs.safetensors");
    expect_ok(cornu_set_dtype_policy("float32"));
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        CornuDevice *device = cornu_device_open(on[i].device, .shards = on[i].shards);
        assert_non_null(device);
        for (int k = 0; k < on[i].cases; k++) check_case(&golden, &cases[k], device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- A model within a layer ---- */

static CornuModel *make_encoder(void)
{
    CornuModel *model = cornu_sequential(.name = "encoder", .input_shape = { 3 });
    expect_ok(cornu_model_add(model, cornu_dense(2, .activation = CORNU_TANH)));
    return model;
}

/* Whichever is freed first, the other one keeps working, with the same encoder at each step. */
static void models_in_layers_stay_their_callers(void **state)
{
    (void)state;
    static float x[24], encoded[16], steps[16];
    CornuDevice *device = expect_device("cpu");
    for (int i = 0; i < 24; i++) x[i] = (float)(i * 7 % 11) / 5.0f - 1.0f;
    const CornuArray rows = cornu_array(x, CORNU_F32, 8, 3);
    const CornuArray sequences = cornu_array(x, CORNU_F32, 2, 4, 3);
    for (int first = 0; first < 2; first++) {
        CornuModel  *encoder = make_encoder();
        CornuSymbol *in = cornu_input(.shape = { 4, 3 });
        CornuLayer  *each = cornu_time_distributed(cornu_as_layer(encoder));
        CornuModel  *whole = cornu_model(.inputs = { in }, .outputs = { cornu_call(each, in) });
        assert_non_null(whole);
        for (int i = 0; i < 2; i++)
            expect_ok(cornu_compile(i ? whole : encoder, .optimizer = cornu_sgd(),
                                    .device = device, .loss = CORNU_MEAN_SQUARED_ERROR));
        expect_ok(cornu_predict_on_batch(encoder, rows, cornu_array(encoded, CORNU_F32, 8, 2)));
        cornu_model_free(first == 0 ? encoder : whole);
        memset(steps, 0, sizeof steps);
        if (first == 0)
            expect_ok(cornu_predict_on_batch(whole, sequences,
                                             cornu_array(steps, CORNU_F32, 2, 4, 2)));
        else
            expect_ok(cornu_predict_on_batch(encoder, rows, cornu_array(steps, CORNU_F32, 8, 2)));
        assert_memory_equal(steps, encoded, sizeof encoded);
        if (first == 1) {   /* a constructor that refuses it leaves it alone, too */
            assert_null(cornu_bidirectional(cornu_as_layer(encoder)));
            assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
            expect_ok(cornu_predict_on_batch(encoder, rows,
                                             cornu_array(steps, CORNU_F32, 8, 2)));
        }
        cornu_model_free(first == 0 ? whole : encoder);
    }
    cornu_device_close(device);
}

/* ---- Two models of one layer, trained in turn ---- */

static void start_turns(Golden *golden, CornuModel *model)
{
    char path[96];
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        snprintf(path, sizeof path, "start/%s", weight->path);
        expect_ok(cornu_weight_write(weight, golden_array(golden, "turns", path)));
    }
}

static void check_after(Golden *golden, CornuModel *model, const char *name)
{
    const CornuArray want = golden_array(golden, "turns", name);
    const CornuArray got = cornu_array_from(malloc(cornu_type_bytes(want.type)), want.type);
    expect_ok(cornu_predict_on_batch(model, golden_array(golden, "turns", "x0"), got));
    expect_near(name, got.data, want, 1e-4);
    free(got.data);
}

static void check_turns(Golden *golden, CornuDevice *device)
{
    static const bool second[] = { false, true, true, false, true };
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *h = cornu_call(cornu_dense(5, .activation = CORNU_TANH, .name = "common"), x);
    CornuModel  *a = cornu_model(.inputs = { x }, .outputs = { cornu_call(
        cornu_dense(3, .activation = CORNU_SOFTMAX, .name = "kind"), h) });
    CornuModel *b = cornu_model(.inputs = { x }, .outputs = { cornu_call(
        cornu_dense(1, .name = "value"), h) });
    start_turns(golden, a);
    start_turns(golden, b);
    expect_ok(cornu_compile(a, .optimizer = cornu_adam(.learning_rate = 0.05), .device = device,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    expect_ok(cornu_compile(b, .optimizer = cornu_sgd(.learning_rate = 0.1, .momentum = 0.9),
                            .device = device, .loss = CORNU_MEAN_SQUARED_ERROR));
    const CornuArray data = golden_array(golden, "turns", "x0");
    const CornuArray losses = golden_array(golden, "turns", "losses");
    for (int i = 0; i < 5; i++) {
        CornuModel *model = second[i] ? b : a;
        double      loss;
        expect_ok(cornu_train_on_batch(model, data,
                                       golden_array(golden, "turns", second[i] ? "yb" : "ya"),
                                       &loss));
        expect_ok(cornu_model_reset_metrics(model));
        assert_float_equal(loss, cornu_array_get(losses, i), 1e-4);
    }
    check_after(golden, a, "after_a");
    check_after(golden, b, "after_b");
    cornu_model_free(a);
    check_after(golden, b, "after_b");   /* shared layers stay */
    cornu_model_free(b);
}

static void models_of_one_layer_train_in_turn(void **state)
{
    static const struct { const char *device; int shards; } on[] = {
        { "reference", 1 }, { "cpu", 1 }, { "tpu", 8 },
    };
    (void)state;
    Golden golden = golden_open("tests/golden/graphs/graphs.safetensors");
    expect_ok(cornu_set_dtype_policy("float32"));
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        CornuDevice *device = cornu_device_open(on[i].device, .shards = on[i].shards);
        assert_non_null(device);
        check_turns(&golden, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- Summary ---- */

static void summary_says_where_inputs_come_from(void **state)
{
    char path[] = "tests/golden/graphs/two.w100.txt";
    (void)state;
    setenv("COLUMNS", "100", 1);
    assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
    CornuModel *model = two();
    assert_non_null(model);
    expect_ok(cornu_summary(model, .print_fn = expect_file, .print_context = path));
    cornu_model_free(model);
}

static void find_line(void *context, const char *text)
{
    const char **wanted = context;
    if (*wanted && strstr(text, *wanted)) *wanted = NULL;
}

/* What is in brackets is a number of a call only where it is one. */
static void summary_of_names_with_brackets(void **state)
{
    const char *wanted = "part[x][0][0]";
    (void)state;
    setenv("COLUMNS", "100", 1);
    CornuSymbol *x = cornu_input(.shape = { 4 });
    CornuSymbol *y = cornu_call(cornu_dense(3, .name = "part[x]"), x);
    CornuModel  *model = cornu_model(.inputs = { x },
                                     .outputs = { cornu_call(cornu_add(), y, y) });
    assert_non_null(model);
    expect_ok(cornu_summary(model, .print_fn = find_line, .print_context = &wanted));
    if (wanted) fail_msg("no %s in the summary", wanted);
    cornu_model_free(model);
}

/* ---- Mistakes ---- */

static void refuses(CornuModel *model, CornuStatus status, const char *part)
{
    assert_null(model);
    assert_true(cornu_error_pending());
    expect_error(cornu_error_take(), status, part);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    CornuSymbol *a = cornu_input(.shape = { 4 }), *b = cornu_input(.shape = { 6 });
    CornuSymbol *left = cornu_call(cornu_dense(3), a), *right = cornu_call(cornu_dense(2), b);
    refuses(cornu_model(.inputs = { a, b }, .outputs = { cornu_call(cornu_add(), left, right) }),
            CORNU_ERR_SHAPE, "of dense[0][0] (None, 3) and dense_1[0][0] (None, 2): add");

    a = cornu_input(.shape = { 4 }), b = cornu_input(.shape = { 4 });
    refuses(cornu_model(.inputs = { a }, .outputs = { cornu_call(cornu_add(), a, b) }),
            CORNU_ERR_ARGUMENT, "also depends on the input input_layer_1");

    a = cornu_input(.shape = { 4 });
    left = cornu_call(cornu_dense(4, .name = "same"), a);
    refuses(cornu_model(.inputs = { a },
                        .outputs = { cornu_call(cornu_dense(4, .name = "same"), left) }),
            CORNU_ERR_ARGUMENT, "two layers have the name \"same\"");

    CornuLayer *shared = cornu_dense(4);
    a = cornu_input(.shape = { -4 });   /* the first error stays, the layer is freed once */
    left = cornu_call(shared, a), right = cornu_call(shared, left);
    refuses(cornu_model(.inputs = { a }, .outputs = { left, right }), CORNU_ERR_ARGUMENT,
            ".shape[0] is -4");

    a = cornu_input(.shape = { 4 });
    left = cornu_call(cornu_dense(3), a);
    right = cornu_call(cornu_add(), left, cornu_call(cornu_dense(3), a));
    refuses(cornu_model(.inputs = { left }, .outputs = { right }), CORNU_ERR_ARGUMENT,
            "also depends on the input");
}

/* The back of a model, of a layer called twice and of two outputs, one of them its input, computes
 * from what the front returns what the whole computes. */
static void models_may_begin_at_results(void **state)
{
    float            x[] = { 1, -2, 3, 4, 0, 6 }, middle[6], y[4], again[4], same[6];
    const CornuType  wide = cornu_type(CORNU_F32, 2, 3), narrow = cornu_type(CORNU_F32, 2, 2);
    const CornuArray in = cornu_array_from(x, wide), cut = cornu_array_from(middle, wide);
    (void)state;
    CornuLayer  *twice = cornu_dense(3, CORNU_TANH);
    CornuSymbol *source = cornu_input(.shape = { 3 });
    CornuSymbol *front = cornu_call(cornu_dense(3, CORNU_RELU), source);
    CornuSymbol *back = cornu_call(twice, cornu_call(twice, front));
    back = cornu_call(cornu_dense(2), cornu_call(cornu_add(), back, front));
    CornuModel *whole = cornu_model(.inputs = { source }, .outputs = { back, front });
    CornuModel *rest = cornu_model(.inputs = { front }, .outputs = { back, front });
    if (!whole || !rest) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_predict_on_batch_many(whole, &in,
                                          (CornuArray[]){ cornu_array_from(y, narrow), cut }));
    expect_ok(cornu_predict_on_batch_many(rest, &cut,
                                          (CornuArray[]){ cornu_array_from(again, narrow),
                                                          cornu_array_from(same, wide) }));
    assert_memory_equal(y, again, sizeof y);
    assert_memory_equal(middle, same, sizeof middle);
    assert_int_equal(cornu_model_parameters(whole) - cornu_model_parameters(rest), 12);
    cornu_model_free(whole);
    cornu_model_free(rest);
}

/* A part of a compiled model in a model of its own, on the device that the first one opened, which
 * lives as long as one of both. */
static void parts_of_compiled_models_share_their_device(void **state)
{
    float      x[] = { 1, 2, 3, 4, 5, 6 }, y[] = { 1, 0 }, before[6], after[6];
    const CornuArray in = cornu_array_from(x, cornu_type(CORNU_F32, 2, 3));
    const CornuArray labels = cornu_array_from(y, cornu_type(CORNU_F32, 2, 1));
    const CornuType  type = cornu_type(CORNU_F32, 2, 3);
    double           logs[4];
    (void)state;
    CornuSymbol *source = cornu_input(.shape = { 3 });
    CornuSymbol *middle = cornu_call(cornu_dense(3, CORNU_TANH, .name = "middle"), source);
    CornuModel  *whole = cornu_model(.inputs = { source },
                                     .outputs = { cornu_call(cornu_dense(1), middle) });
    expect_ok(cornu_compile(whole, .optimizer = cornu_sgd(0.1),
                            .loss = cornu_mean_squared_error()));
    expect_ok(cornu_train_on_batch(whole, in, labels, logs));
    CornuModel *part = cornu_model(.inputs = { cornu_model_input(whole, 0) },
                                   .outputs = { cornu_model_symbol(whole, "middle") });
    expect_ok(cornu_compile(part, .optimizer = cornu_sgd(0.1), .loss = cornu_mean_squared_error()));
    assert_ptr_equal(cornu_model_device(part), cornu_model_device(whole));
    expect_ok(cornu_predict_on_batch(part, in, cornu_array_from(before, type)));
    expect_ok(cornu_train_on_batch(whole, in, labels, logs));   /* the shared layer, too */
    expect_ok(cornu_predict_on_batch(part, in, cornu_array_from(after, type)));
    assert_memory_not_equal(before, after, sizeof before);
    cornu_model_free(whole);
    expect_ok(cornu_predict_on_batch(part, in, cornu_array_from(before, type)));
    assert_memory_equal(before, after, sizeof before);
    expect_ok(cornu_train_on_batch(part, in, cornu_array_from(after, type), logs));
    cornu_model_free(part);
}

/* Keras' Input(()). */
static void inputs_of_one_number_a_row(void **state)
{
    float            x[] = { 1, 3, 0 }, y[3], words[6];
    const CornuArray in = cornu_array_from(x, cornu_type(CORNU_F32, 3));
    (void)state;
    CornuSymbol *number = cornu_input(.scalar = true);
    CornuModel  *model = cornu_model(
        .inputs = { number }, .outputs = { cornu_call(cornu_rescaling(2.0, .offset = 1.0), number),
                                           cornu_call(cornu_embedding(4, 2), number) });
    const CornuArray out[] = { cornu_array_from(y, cornu_type(CORNU_F32, 3)),
                               cornu_array_from(words, cornu_type(CORNU_F32, 3, 2)) };
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_predict_on_batch_many(model, &in, out));
    assert_true(y[0] == 3.0f && y[1] == 7.0f && y[2] == 1.0f);
    cornu_model_free(model);
    expect_failure(cornu_input(.dtype = CORNU_F32), CORNU_ERR_ARGUMENT, ".shape is required");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_keras),
        cmocka_unit_test(models_in_layers_stay_their_callers),
        cmocka_unit_test(models_of_one_layer_train_in_turn),
        cmocka_unit_test(summary_says_where_inputs_come_from),
        cmocka_unit_test(summary_of_names_with_brackets),
        cmocka_unit_test(parts_of_compiled_models_share_their_device),
        cmocka_unit_test(inputs_of_one_number_a_row),
        cmocka_unit_test(models_may_begin_at_results),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
