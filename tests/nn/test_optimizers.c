/* Optimizers and schedules against real Keras (tests/golden/pieces), and what they refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"

static const char *const devices[] = { "reference", "cpu" };

static double number(const json_t *settings, const char *name)
{
    return json_number_value(json_object_get(settings, name));
}

static bool flag(const json_t *settings, const char *name)
{
    return json_is_true(json_object_get(settings, name));
}

/* ---- Optimizers ---- */

static CornuOptimizer *optimizer_of(const char *kind, const json_t *given)
{
    const json_t  *rate = json_object_get(given, "learning_rate");
    CornuSchedule *schedule = NULL;
    if (json_is_array(rate))   /* ["ExponentialDecay", rate, steps, decay] */
        schedule = cornu_exponential_decay(json_number_value(json_array_get(rate, 1)),
                                           json_number_value(json_array_get(rate, 2)),
                                           json_number_value(json_array_get(rate, 3)));
#define COMMON                                                                         \
    .learning_rate = schedule ? 0.0 : json_number_value(rate), .schedule = schedule,   \
    .weight_decay = number(given, "weight_decay"), .clipnorm = number(given, "clipnorm"), \
    .clipvalue = number(given, "clipvalue"),                                           \
    .global_clipnorm = number(given, "global_clipnorm")
    if (!strcmp(kind, "SGD"))
        return cornu_sgd(.momentum = number(given, "momentum"), .nesterov = flag(given, "nesterov"),
                         COMMON);
    if (!strcmp(kind, "RMSprop"))
        return cornu_rmsprop(.rho = number(given, "rho"), .momentum = number(given, "momentum"),
                             .epsilon = number(given, "epsilon"),
                             .centered = flag(given, "centered"), COMMON);
    if (!strcmp(kind, "Adam"))
        return cornu_adam(.beta_1 = number(given, "beta_1"), .beta_2 = number(given, "beta_2"),
                          .epsilon = number(given, "epsilon"), .amsgrad = flag(given, "amsgrad"),
                          COMMON);
#undef COMMON
    cornu_schedule_free(schedule);
    return NULL;
}

enum { STEPS = 10 };

static CornuVariable *variable_like(CornuDevice *device, CornuArray start, const char *name)
{
    CornuVariable *variable = cornu_variable_create(device, start.type, name);
    expect_ok(cornu_variable_write(variable, start));
    return variable;
}

static CornuArray row(CornuArray array, int64_t i)
{
    CornuType type = array.type;
    for (int k = 1; k < type.shape.rank; k++) type.shape.extent[k - 1] = type.shape.extent[k];
    type.shape.extent[--type.shape.rank] = 0;
    return cornu_array_from((char *)array.data + (size_t)i * cornu_type_bytes(type), type);
}

static void check_slots(Golden *golden, const char *name, const CornuOptimizer *optimizer,
                        const json_t *order)
{
    assert_int_equal(cornu_optimizer_variable_count(optimizer), json_array_size(order));
    for (int i = 0; i < cornu_optimizer_variable_count(optimizer); i++) {
        const CornuVariable *variable = cornu_optimizer_variable(optimizer, i);
        const char          *plain = strchr(cornu_variable_name(variable), '/') + 1;
        assert_string_equal(plain, json_string_value(json_array_get(order, (size_t)i)));
        char slot[64], what[128];
        snprintf(slot, sizeof slot, "slot_%s", plain);
        CornuArray want = golden_array(golden, name, slot);
        if (!want.data) continue;
        float got[16];
        snprintf(what, sizeof what, "%s/%s", name, slot);
        expect_ok(cornu_variable_read(variable, cornu_array_from(got, want.type)));
        expect_near(what, got, want, 1e-5);
    }
}

static void run_optimizer(Golden *golden, const char *name, const json_t *about,
                          CornuDevice *device)
{
    CornuOptimizer *optimizer =
        optimizer_of(json_string_value(json_object_get(about, "optimizer")),
                     json_object_get(about, "given"));
    if (!optimizer) return;   /* one that there is not: AdamW */
    static const char *const names[2] = { "a", "b" };
    CornuVariable *w[2];
    CornuArray     gradients[2], after[2];
    CornuTensor   *g[2];
    CornuGraph    *graph = cornu_graph_create(device);
    for (int i = 0; i < 2; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s0", names[i]);
        w[i] = variable_like(device, golden_array(golden, name, text), names[i]);
        snprintf(text, sizeof text, "gradient_%s", names[i]);
        gradients[i] = golden_array(golden, name, text);
        after[i] = golden_array(golden, name, names[i]);
        g[i] = cornu_graph_input(graph, cornu_variable_type(w[i]));
    }
    expect_ok(cornu_optimizer_build(optimizer, w, 2));
    expect_ok(cornu_optimizer_apply(optimizer, graph, g));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 2; i++) expect_ok(cornu_graph_feed(g[i], row(gradients[i], step)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        for (int i = 0; i < 2; i++) {
            float got[16];
            char  what[128];
            snprintf(what, sizeof what, "%s/%s step %d", name, names[i], step);
            expect_ok(cornu_variable_read(w[i], cornu_array_from(got, row(after[i], 0).type)));
            expect_near(what, got, row(after[i], step), 1e-5);
        }
    }
    check_slots(golden, name, optimizer, json_object_get(about, "variables"));
    cornu_graph_free(graph);
    for (int i = 0; i < 2; i++) cornu_variable_free(w[i]);
    cornu_optimizer_free(optimizer);
}

static void optimizers_match_keras(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/pieces/optimizers.safetensors");
    const char *name;
    json_t     *about;
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = cornu_device_open(devices[d]);
        json_object_foreach(golden.cases, name, about)
            run_optimizer(&golden, name, about, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

static void refuses(CornuOptimizer *optimizer, CornuStatus status, const char *part)
{
    assert_null(optimizer);
    expect_error(cornu_error_take(), status, part);
}

static void constructors_refuse(void **state)
{
    (void)state;
    refuses(cornu_adam(.beta_1 = 2.0), CORNU_ERR_ARGUMENT, "adam: .beta_1 is 2, expected 0 to");
    refuses(cornu_adam(.learning_rate = -1), CORNU_ERR_ARGUMENT, "adam: .learning_rate is -1");
    refuses(cornu_sgd(.clipnorm = 1, .clipvalue = 1), CORNU_ERR_ARGUMENT, "one of them at most");
    refuses(cornu_sgd(.momentum = 1.5), CORNU_ERR_ARGUMENT, "sgd: .momentum is 1.5");
    refuses(cornu_rmsprop(.use_ema = true), CORNU_ERR_UNSUPPORTED, ".use_ema is not available");
    refuses(cornu_sgd(.gradient_accumulation_steps = 2), CORNU_ERR_UNSUPPORTED,
            ".gradient_accumulation_steps is not available");
    refuses(cornu_sgd(.learning_rate = 1, .schedule = cornu_exponential_decay(1, 1, 1)),
            CORNU_ERR_ARGUMENT, "both .learning_rate and .schedule");
    refuses(cornu_adam(.schedule = cornu_exponential_decay(1, -1, 1)), CORNU_ERR_ARGUMENT,
            "exponential_decay: the decay steps are -1");
    refuses(cornu_optimizer("adm"), CORNU_ERR_ARGUMENT, "is \"adam\" meant?");
}

static void the_rate_is_a_variable(void **state)
{
    (void)state;
    CornuDevice    *device = cornu_device_open("reference");
    CornuVariable  *w = cornu_variable_create(device, cornu_scalar(CORNU_F32), "w");
    CornuOptimizer *optimizer = cornu_sgd(.learning_rate = CORNU_ZERO);
    double          value;
    expect_ok(cornu_optimizer_learning_rate(optimizer, &value));
    assert_float_equal(value, 0.0, 0.0);
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_optimizer_set_learning_rate(optimizer, 0.5));
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *g = cornu_op_constant(graph, cornu_scalar(CORNU_F32), 1.0);
    expect_ok(cornu_optimizer_apply(optimizer, graph, &g));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_optimizer_set_learning_rate(optimizer, 0.25));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    expect_ok(cornu_variable_get(w, &value));
    assert_float_equal(value, -0.75, 0.0);
    cornu_graph_free(graph);
    cornu_optimizer_free(optimizer);

    optimizer = cornu_sgd(.schedule = cornu_exponential_decay(8, 1, 0.5));
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_variable_set(cornu_optimizer_variable(optimizer, 0), 2));
    expect_ok(cornu_optimizer_learning_rate(optimizer, &value));
    assert_float_equal(value, 2.0, 1e-6);
    expect_error(cornu_optimizer_set_learning_rate(optimizer, 1), CORNU_ERR_UNSUPPORTED,
                 "follows exponential_decay");
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
    cornu_device_close(device);
}

/* TensorFlow 1's RMSProp by hand: v = 0.9 v + 0.1 g^2 from v = 1, w -= 0.01 g / sqrt(v + 1e-10).
 * g = 3: v = 0.9 + 0.9 = 1.8; g = -1: v = 1.62 + 0.1 = 1.72. */
static void rmsprop_of_tensorflow_1(void **state)
{
    (void)state;
    static const float gradients[] = { 3.0f, -1.0f };
    const double       by_hand[] = { 2.0 - 0.03 / sqrt(1.8), 2.0 - 0.03 / sqrt(1.8) +
                                                                0.01 / sqrt(1.72) };
    CornuDevice    *device = cornu_device_open("cpu");
    CornuVariable  *w = cornu_variable_create(device, cornu_type(CORNU_F32, 3), "w");
    CornuOptimizer *optimizer = cornu_rmsprop(.learning_rate = 0.01, .epsilon = 1e-10,
                                              .momentum = 1e-30, .initial_velocity = 1.0);
    const CornuType three = cornu_variable_type(w);
    float           values[] = { 2.0f, 2.0f, 2.0f };
    expect_ok(cornu_variable_write(w, cornu_array_from(values, three)));
    expect_ok(cornu_optimizer_build(optimizer, &w, 1));
    expect_ok(cornu_variable_read(cornu_optimizer_variable(optimizer, 2),
                                  cornu_array_from(values, three)));
    for (int i = 0; i < 3; i++) assert_float_equal(values[i], 1.0, 0.0);
    expect_ok(cornu_variable_read(cornu_optimizer_variable(optimizer, 3),
                                  cornu_array_from(values, three)));
    for (int i = 0; i < 3; i++) assert_float_equal(values[i], 0.0, 0.0);

    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *g = cornu_graph_input(graph, three);
    expect_ok(cornu_optimizer_apply(optimizer, graph, &g));
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 3; i++) values[i] = gradients[step];
        expect_ok(cornu_graph_feed(g, cornu_array_from(values, three)));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        expect_ok(cornu_variable_read(w, cornu_array_from(values, three)));
        for (int i = 0; i < 3; i++) assert_float_equal(values[i], by_hand[step], 1e-6);
    }
    cornu_graph_free(graph);
    cornu_optimizer_free(optimizer);
    cornu_variable_free(w);
    cornu_device_close(device);
    refuses(cornu_rmsprop(.initial_velocity = -1.0), CORNU_ERR_ARGUMENT,
            "rmsprop: .initial_velocity is -1");
}

/* ---- Schedules ---- */

static double zero_said(double value) { return value == 0.0 ? (double)CORNU_ZERO : value; }

static CornuSchedule *schedule_of(const json_t *s)
{
    const char *kind = json_string_value(json_object_get(s, "schedule"));
    const double rate = number(s, "initial_learning_rate"), steps = number(s, "decay_steps");
    if (!strcmp(kind, "ExponentialDecay"))
        return cornu_exponential_decay(rate, steps, number(s, "decay_rate"),
                                       flag(s, "staircase"));
    if (!strcmp(kind, "InverseTimeDecay"))
        return cornu_inverse_time_decay(rate, steps, number(s, "decay_rate"),
                                        .staircase = flag(s, "staircase"));
    if (!strcmp(kind, "PolynomialDecay"))
        return cornu_polynomial_decay(rate, steps, number(s, "end_learning_rate"),
                                      number(s, "power"), flag(s, "cycle"));
    if (!strcmp(kind, "CosineDecay"))
        return cornu_cosine_decay(zero_said(rate), steps, number(s, "alpha"),
                                  number(s, "warmup_target"), number(s, "warmup_steps"));
    if (!strcmp(kind, "CosineDecayRestarts"))
        return cornu_cosine_decay_restarts(rate, number(s, "first_decay_steps"),
                                           number(s, "t_mul"), number(s, "m_mul"),
                                           number(s, "alpha"));
    assert_string_equal(kind, "PiecewiseConstantDecay");
    double        boundaries[8], values[8];
    const json_t *given = json_object_get(s, "boundaries");
    const size_t  count = json_array_size(given);
    for (size_t i = 0; i <= count; i++) {
        if (i < count) boundaries[i] = json_number_value(json_array_get(given, i));
        values[i] = json_number_value(json_array_get(json_object_get(s, "values"), i));
    }
    return cornu_piecewise_constant_decay(boundaries, values, (int64_t)count);
}

static void run_schedule(Golden *golden, const char *name, const json_t *settings,
                         CornuDevice *device)
{
    CornuArray     want = golden_array(golden, name, "rate");
    CornuSchedule *schedule = schedule_of(settings);
    if (!schedule) fail_msg("%s: %s", name, cornu_error_message());
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *t = cornu_graph_input(graph, cornu_scalar(CORNU_F32));
    CornuTensor *rate = schedule->call(schedule, t);
    float        got[64];
    assert_true(cornu_type_count(want.type) <= 64);
    for (int i = 0; i < (int)cornu_type_count(want.type); i++) {
        float      step = (float)i;
        CornuArray out = cornu_array_from(&got[i], cornu_scalar(CORNU_F32));
        expect_ok(cornu_graph_feed(t, cornu_array_from(&step, cornu_scalar(CORNU_F32))));
        expect_ok(cornu_run(graph, &rate, 1, &out));
    }
    expect_near(name, got, want, 1e-5);
    cornu_graph_free(graph);
    cornu_schedule_free(schedule);
}

static void schedules_match_keras(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/pieces/schedules.safetensors");
    const char *name;
    json_t     *settings;
    for (int d = 0; d < 2; d++) {
        CornuDevice *device = cornu_device_open(devices[d]);
        json_object_foreach(golden.cases, name, settings)
            run_schedule(&golden, name, settings, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_match_keras),
        cmocka_unit_test(constructors_refuse),
        cmocka_unit_test(the_rate_is_a_variable),
        cmocka_unit_test(rmsprop_of_tensorflow_1),
        cmocka_unit_test(schedules_match_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
