/* Schedules of the learning rate compared with real Keras (tests/golden/pieces). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/optimizers/optimizers.h"
#include "../golden.h"

static const char *const devices[] = { "reference", "cpu" };

static double number(const json_t *settings, const char *name)
{
    return json_number_value(json_object_get(settings, name));
}

static bool flag(const json_t *settings, const char *name)
{
    return json_is_true(json_object_get(settings, name));
}

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
        cmocka_unit_test(schedules_match_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
