/* What races cost: prices, targets, advice. */
#include "../../examples/cornu/common/mesh_flags.c"   /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/refuse.c"       /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/compare/race.c"        /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/compare/race_advice.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/compare/race_cost.c"   /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../expect.h"

/* ---- Costs ---- */

static double seconds[2][4] = { { 9.0, 36.0, 36.0, 36.0 }, { 8.0, 10.0, 12.0, 11.0 } };
static double joules[2][4] = { { 5.0, 100.0, 300.0, 200.0 }, { 1.0, 2.0, NAN, 4.0 } };
static double accuracies[2][4] = { { 0.5, 0.8, 0.91, 0.93 }, { 0.1, 0.2, 0.3, 0.4 } };

static Race finished_race(void)
{
    Race race = { .reference = cornu_reference_model("mnist_cnn"), .count = 2, .done = 4,
                  .epochs = 4, .enough = 0.9, .modelled_count = 1,
                  .racers = { { .name = "cpu" }, { .name = "tpu:v3-8" } } };
    for (int i = 0; i < 2; i++) {
        race.racers[i].seconds = seconds[i];
        race.racers[i].joules = joules[i];
        race.racers[i].accuracies = accuracies[i];
    }
    race.modelled[0] = (ModelledEpoch){ .profile = cornu_tpu_profile("v3-8"), .shards = 8,
                                        .chips = 4, .total_s = 3.0 };
    return race;
}

static void prices_are_read(void **state)
{
    (void)state;
    static const struct { const char *list, *message; } wrong[] = {
        { "cpu", "\"cpu\", expected DEVICE=AMOUNT_PER_HOUR" }, { "cpu=", "\"cpu=\", expected" },
        { "cpu=x", "\"cpu=x\", expected" }, { "cpu=1x", "\"cpu=1x\", expected" },
        { "cpu=-1", "\"cpu=-1\", expected" }, { "cpu=1,", "\"\", expected" },
        { "cpu=1,tpu=2", "\"tpu\" is not one of the devices" },
        { "cpu=1e999", "expected DEVICE=AMOUNT_PER_HOUR" },
    };
    Race race = finished_race();
    expect_ok(race_price(&race, NULL));
    assert_true(isnan(race_price_of(&race.racers[0])));
    expect_ok(race_price(&race, "cpu=0.10,tpu:v3-8=8"));
    assert_true(race_price_of(&race.racers[0]) == 0.1 && race_price_of(&race.racers[1]) == 8.0);
    expect_ok(race_price(&race, "cpu=0"));
    assert_true(race_price_of(&race.racers[0]) == 0.0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_error(race_price(&race, wrong[i].list), CORNU_ERR_ARGUMENT, wrong[i].message);
    cornu_error_take();
}

static void targets_are_reached_or_not(void **state)
{
    (void)state;
    const Race       race = finished_race();
    const RaceTarget cpu = race_target(&race, &race.racers[0]);
    const RaceTarget tpu = race_target(&race, &race.racers[1]);
    assert_int_equal(cpu.epochs, 3);
    assert_true(cpu.seconds == 81.0 && cpu.joules == 405.0);
    assert_true(tpu.epochs == 0 && isnan(tpu.seconds));
    assert_true(race_joules(&race, &race.racers[0]) == 200.0);
    assert_true(isnan(race_joules(&race, &race.racers[1])));
    assert_float_equal(race_modelled_joules(&race.modelled[0]), 220.0 * 4 * 3, 1e-9);
    const ModelledEpoch unknown = { .profile = cornu_tpu_profile("v5e-8"), .chips = 8,
                                    .total_s = 1.0 };
    assert_true(isnan(race_modelled_joules(&unknown)));
}

static char *printed(void (*print)(const Race *race, FILE *to), const Race *race)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&text, &size);
    print(race, to);
    fclose(to);
    return text;
}

static void expect_words(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strstr(text, *words)) fail_msg("\"%s\" is not in:\n%s", *words, text);
}

static void costs_are_printed(void **state)
{
    (void)state;
    Race  race = finished_race();
    char *text = printed(race_print_cost, &race);
    expect_words(text, (const char *const[]){ "Cost, measured", "Joules: not available", NULL });
    free(text);
    race.enough = 0.0;
    text = printed(race_print_cost, &race);
    assert_string_equal(text, "");        /* nobody asked, nothing is known */
    free(text);
    race.enough = 0.9;
    race.energy.count = 1;
    accuracies[1][1] = 0.95;
    expect_ok(race_price(&race, "cpu=100,tpu:v3-8=1200"));
    text = printed(race_print_cost, &race);
    /* 36 s of 100 an hour are 1; 81 s are 2.25. The emulation has no price, what it models has:
     * 3 s of 1200 an hour are 1, two epochs 2. */
    expect_words(text, (const char *const[]){
        "\ncpu              100         36          1        200        3       2.25        405\n",
        "\ntpu:v3-8           -         11          -          -        2          -          3\n",
        "Cost, modelled", "by 1 counter of the kernel",
        "\nv3-8            1200          3          1       2640        2          2       5280\n",
        NULL });
    free(text);
    accuracies[1][1] = 0.2;
}

/* ---- Advice ---- */

static double steps_us[SCALING_ROWS], infeeds_us[SCALING_ROWS];

/* In place of race_scaling.c: steps of so many microseconds. */
CornuStatus explain_strong_scaling(const Options *options, const CornuReferenceModel *reference,
                                   const char *list, Scaling *scaling)
{
    *scaling = (Scaling){ .model = reference->name, .batch = options->batch_size };
    assert_string_equal(list, "1,2,4,8,16");
    for (int i = 0; i < 5; i++)
        scaling->strong[i] = (ScalingRow){ .shards = 1 << i, .step_s = 1e-6 * steps_us[i],
                                           .infeed_s = 1e-6 * infeeds_us[i] };
    scaling->strong_count = 5;
    return CORNU_OK;
}

static void fewest_shards_are_advised(void **state)
{
    (void)state;
    static const struct { double steps[5], infeeds[5]; int best, enough, infeed; char *words; }
    cases[] = {
        { { 100, 60, 33, 30, 40 }, { 1, 1, 1, 1, 1 }, 3, 2, -1, "Take 4 shards" },
        { { 100, 60, 34, 30, 40 }, { 1, 1, 1, 30, 1 }, 3, 3, 3, "The infeed is the limit there" },
        { { 9, 9, 9, 9, 9 }, { 8, 8, 8, 8, 8 }, 0, 0, -1, "Take 1 shard:" },
        { { 20, 19, 10, 10, 10 }, { 2, 2, 2, 10, 10 }, 2, 2, 3,
          "The infeed is the limit with 8 shards" },
        { { 9, 9, 9, 9, 9 }, { 8, 8, 8, 8, 8 }, 0, 0, -1, "The infeed is not the limit" },
    };
    const Options options = { .batch_size = 20 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Advice advice;
        char  *text = NULL;
        size_t size = 0;
        memcpy(steps_us, cases[i].steps, sizeof cases[i].steps);
        memcpy(infeeds_us, cases[i].infeeds, sizeof cases[i].infeeds);
        expect_ok(race_advise(&options, cornu_reference_model("mnist_cnn"), "tpu:v3-2048",
                              &advice));
        assert_int_equal(advice.best, cases[i].best);
        assert_int_equal(advice.enough, cases[i].enough);
        assert_int_equal(advice.infeed, cases[i].infeed);
        FILE *to = open_memstream(&text, &size);
        race_advice_print(&advice, to);
        fclose(to);
        expect_words(text, (const char *const[]){ cases[i].words, "<- enough", NULL });
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prices_are_read),
        cmocka_unit_test(targets_are_reached_or_not),
        cmocka_unit_test(costs_are_printed),
        cmocka_unit_test(fewest_shards_are_advised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
