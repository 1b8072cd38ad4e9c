/* LARS and warm-up compared with optax (tests/golden/large_batches), and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../golden.h"

enum { STEPS = 10, WEIGHTS = 3, LARGEST = 12, RATES = 50 };

static const char *const weights[WEIGHTS] = { "kernel", "bias", "zero" };

/* ---- LARS ---- */

static CornuOptimizer *lars_of(const json_t *given)
{
    const json_t *classic = json_object_get(given, "classic_momentum");
    return cornu_lars_from(&(CornuLarsConfig){
        .learning_rate = golden_number(given, "learning_rate"),
        .momentum = golden_number(given, "momentum"), .eeta = golden_number(given, "eeta"),
        .nesterov = golden_flag(given, "nesterov"), .no_classic_momentum = json_is_false(classic),
        .weight_decay = golden_number(given, "weight_decay"),
        .exclude_from_weight_decay = {
            json_string_value(json_object_get(given, "exclude_from_weight_decay")) },
        .exclude_from_layer_adaptation = {
            json_string_value(json_object_get(given, "exclude_from_layer_adaptation")) } });
}

/* Step i of an array of all steps. */
static CornuArray step_of(CornuArray all, int i)
{
    CornuType type = all.type;
    for (int k = 1; k < type.shape.rank; k++) type.shape.extent[k - 1] = type.shape.extent[k];
    type.shape.extent[--type.shape.rank] = 0;
    return cornu_array_from((char *)all.data + (size_t)i * cornu_type_bytes(type), type);
}

static void run_lars(Golden *golden, const char *name, const json_t *about, CornuDevice *device)
{
    CornuOptimizer *optimizer = lars_of(json_object_get(about, "given"));
    if (!optimizer) fail_msg("%s: %s", name, cornu_error_message());
    CornuGraph    *graph = cornu_graph_create(device);
    CornuVariable *w[WEIGHTS];
    CornuTensor   *g[WEIGHTS];
    CornuArray     gradients[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s0", weights[i]);
        const CornuArray start = golden_array(golden, NULL, text);
        snprintf(text, sizeof text, "gradient_%s", weights[i]);
        gradients[i] = golden_array(golden, NULL, text);
        w[i] = cornu_variable_create(device, start.type, weights[i]);
        expect_ok(cornu_variable_write(w[i], start));
        g[i] = cornu_graph_input(graph, start.type);
    }
    expect_ok(cornu_optimizer_build(optimizer, w, WEIGHTS));
    expect_ok(cornu_optimizer_apply(optimizer, graph, g));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < WEIGHTS; i++)
            expect_ok(cornu_graph_feed(g[i], step_of(gradients[i], step)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        for (int i = 0; i < WEIGHTS; i++) {
            const CornuArray want = step_of(golden_array(golden, name, weights[i]), step);
            float            got[LARGEST];
            char             what[128];
            snprintf(what, sizeof what, "%s %s/%s step %d", cornu_device_name(device), name,
                     weights[i], step);
            expect_ok(cornu_variable_read(w[i], cornu_array_from(got, want.type)));
            expect_near(what, got, want, 1e-5);
        }
    }
    cornu_graph_free(graph);
    for (int i = 0; i < WEIGHTS; i++) cornu_variable_free(w[i]);
    cornu_optimizer_free(optimizer);
}

static void lars_matches_optax(void **state)
{
    (void)state;
    Golden golden = golden_open("tests/golden/large_batches/lars.safetensors");
    static const struct { const char *device; int shards; } devices[] = {
        { "reference", 1 }, { "cpu", 1 }, { "cpu", 8 }, { "tpu", 8 },
    };
    const char *name;
    json_t     *about;
    assert_int_equal(json_object_size(golden.cases), 9);
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        CornuDevice *device = cornu_device_open(devices[d].device, .shards = devices[d].shards);
        assert_non_null(device);
        json_object_foreach(golden.cases, name, about) run_lars(&golden, name, about, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* The file says nothing of an optimizer, as Keras has no LARS. */
static void lars_in_files(void **state)
{
    (void)state;
    const char path[] = "/tmp/cornu-test-lars.keras";
    float            x[6] = { 1, 2, 3, 4, 5, 6 }, y[4] = { 1, 0, 0, 1 };
    const CornuArray xs = cornu_array(x, CORNU_F32, 2, 3), ys = cornu_array(y, CORNU_F32, 2, 2);
    CornuModel      *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR,
                            .optimizer = cornu_lars(.schedule = cornu_warmup(
                                .learning_rate = 1.0, .warmup_steps = 3))));
    for (int i = 0; i < 3; i++) expect_ok(cornu_train_on_batch(model, xs, ys));
    expect_ok(cornu_model_save(model, path));
    CornuModel *again = cornu_model_load(path);
    if (!again) fail_msg("%s", cornu_error_message());
    assert_false(cornu_model_compiled(again));
    float          got[6], want[6];
    const CornuType type = cornu_model_weight(model, 0)->type;
    expect_ok(cornu_weight_read(cornu_model_weight(model, 0), cornu_array_from(want, type)));
    expect_ok(cornu_weight_read(cornu_model_weight(again, 0), cornu_array_from(got, type)));
    assert_memory_equal(got, want, sizeof got);
    cornu_model_free(again);
    cornu_model_free(model);
    unlink(path);
}

/* ---- Warm-up ---- */

static CornuSchedule *warmup_of(const json_t *given)
{
    const char    *after = json_string_value(json_object_get(given, "schedule"));
    CornuSchedule *schedule = NULL;
    if (after && !strcmp(after, "CosineDecay")) schedule = cornu_cosine_decay(0.4, 40, 0.1);
    else if (after) schedule = cornu_exponential_decay(0.4, 7, 0.8);
    return cornu_warmup(schedule, golden_number(given, "learning_rate"), 12,
                        golden_number(given, "initial_learning_rate"));
}

static void run_warmup(Golden *golden, const char *name, const json_t *given, CornuDevice *device)
{
    const CornuArray want = golden_array(golden, name, "rate");
    CornuGraph      *graph = cornu_graph_create(device);
    CornuSchedule   *schedule = warmup_of(given);
    if (!schedule) fail_msg("%s: %s", name, cornu_error_message());
    CornuTensor *t = cornu_graph_input(graph, cornu_scalar(CORNU_F32));
    CornuTensor *rate = schedule->call(schedule, t);
    float        got[RATES];
    assert_int_equal(cornu_type_count(want.type), RATES);
    for (int i = 0; i < RATES; i++) {
        float      step = (float)i;
        CornuArray out = cornu_array_from(&got[i], cornu_scalar(CORNU_F32));
        expect_ok(cornu_graph_feed(t, cornu_array_from(&step, cornu_scalar(CORNU_F32))));
        expect_ok(cornu_run(graph, &rate, 1, &out));
    }
    expect_near(name, got, want, 1e-6);
    cornu_graph_free(graph);
    cornu_schedule_free(schedule);
}

static void warmup_matches_optax(void **state)
{
    (void)state;
    Golden       golden = golden_open("tests/golden/large_batches/warmup.safetensors");
    CornuDevice *device = cornu_device_open("cpu");
    const char  *name;
    json_t      *given;
    json_object_foreach(golden.cases, name, given) run_warmup(&golden, name, given, device);
    cornu_device_close(device);
    golden_close(&golden);
}

/* ---- Errors ---- */

static void refuses(const void *made, const char *message)
{
    assert_null(made);
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, message);
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    refuses(cornu_lars(.momentum = 2), "lars: .momentum is 2, expected 0 to 1");
    refuses(cornu_lars(.eeta = -1), "lars: .eeta is -1");
    refuses(cornu_lars(.exclude_from_layer_adaptation = { "(" }),
            "lars: .exclude_from_layer_adaptation[0] is \"(\", expected a POSIX extended regular");
    refuses(cornu_warmup(.warmup_steps = 3), "warmup: .learning_rate is 0, expected more than 0");
    refuses(cornu_warmup(.learning_rate = 1), "warmup: .warmup_steps is 0, expected more than 0");
    refuses(cornu_warmup(cornu_exponential_decay(1, 1, 1), .learning_rate = 1, .warmup_steps = 3),
            "warmup: .learning_rate is 1");
    refuses(cornu_warmup(cornu_exponential_decay(1, 1, 1), .warmup_steps = 3,
                         .initial_learning_rate = -1),
            "warmup: .initial_learning_rate is -1, expected 0 or more");
    refuses(cornu_warmup(cornu_exponential_decay(-1, 1, 1), .warmup_steps = 3),
            "exponential_decay: .initial_learning_rate is -1");
    CornuOptimizer *optimizer = cornu_sgd(
        .schedule = cornu_warmup(cornu_exponential_decay(1, 1, 1), .warmup_steps = 2));
    refuses(cornu_warmup(optimizer->schedule, .warmup_steps = 3), "belongs to an optimizer");
    cornu_optimizer_free(optimizer);
}

static void rates_scale_with_the_batch(void **state)
{
    (void)state;
    assert_true(cornu_scaled_learning_rate(0.1, 256, 8192) == 0.1 * 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lars_matches_optax),
        cmocka_unit_test(lars_in_files),
        cmocka_unit_test(warmup_matches_optax),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(rates_scale_with_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
