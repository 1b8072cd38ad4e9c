/* The cart and its pole beside Gymnasium's (tests/golden/cart_pole), and the beginnings of
 * episodes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../examples/cornu/cartpole/cart_pole.c" /* NOLINT(bugprone-suspicious-include) */
#include "../nn/golden.h"

/* States are f64 in both, and f32 in the file. The beginnings are exact; what may differ are last
 * bits of sines, which grow as a pole falls that nobody balances, by exp(3.9) in a second: the
 * actions are given. */
static double tolerance(int64_t step, double want)
{
    return 1e-7 + 1e-6 * fabs(want) + 1e-15 * exp(3.9 * 0.02 * (double)step);
}

static void run_episode(Golden *golden, const char *name, const json_t *about)
{
    const CornuArray start = golden_array(golden, name, "start");
    const CornuArray states = golden_array(golden, name, "states");
    const CornuArray actions = golden_array(golden, name, "actions");
    const int64_t    steps = json_integer_value(json_object_get(about, "steps"));
    CartPole         pole = { .steps = 0 };
    for (int k = 0; k < CART_POLE_STATES; k++) pole.state[k] = cornu_array_get(start, k);
    for (int64_t i = 0; i < steps; i++) {
        float      seen[CART_POLE_STATES];
        const bool ended = cart_pole_step(&pole, (int)cornu_array_get(actions, i));
        cart_pole_observe(&pole, seen);
        if (ended != (i == steps - 1)) fail_msg("%s: ends after step %d", name, (int)i);
        for (int k = 0; k < CART_POLE_STATES; k++) {
            const double want = cornu_array_get(states, i * CART_POLE_STATES + k);
            if (!(fabs(seen[k] - want) <= tolerance(i, want)))
                fail_msg("%s, step %d: %d is %.9g, expected %.9g", name, (int)i, k, seen[k], want);
        }
    }
    assert_int_equal(pole.fallen, json_is_true(json_object_get(about, "fallen")));
    assert_int_equal(pole.steps, steps);
}

static void physics_match_gymnasium(void **state)
{
    (void)state;
    Golden      golden = golden_open("tests/golden/cart_pole/states.safetensors");
    const char *name;
    json_t     *about;
    assert_int_equal(json_object_size(golden.cases), 6);
    json_object_foreach(golden.cases, name, about) run_episode(&golden, name, about);
    golden_close(&golden);
}

/* Within 0.05, equal for equal seeds and episodes, different for others. */
static void episodes_begin_by_their_seed(void **state)
{
    (void)state;
    CartPole a, b, other_seed, other_episode;
    double   least = 1.0, most = -1.0;
    cart_pole_reset(&a, 7, 3);
    cart_pole_step(&a, 1);
    cart_pole_reset(&a, 7, 3);
    cart_pole_reset(&b, 7, 3);
    cart_pole_reset(&other_seed, 8, 3);
    cart_pole_reset(&other_episode, 7, 4);
    assert_memory_equal(a.state, b.state, sizeof a.state);
    assert_true(a.state[0] != other_seed.state[0] && a.state[0] != other_episode.state[0]);
    assert_true(a.steps == 0 && !a.fallen);
    for (int64_t i = 0; i < 1000; i++) {
        cart_pole_reset(&a, 1, i);
        for (int k = 0; k < CART_POLE_STATES; k++) {
            least = fmin(least, a.state[k]);
            most = fmax(most, a.state[k]);
        }
    }
    assert_true(least >= -0.05 && least < -0.049 && most <= 0.05 && most > 0.049);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(physics_match_gymnasium),
        cmocka_unit_test(episodes_begin_by_their_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
