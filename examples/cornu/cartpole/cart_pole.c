#include "cart_pole.h"

#include <math.h>

#include <cornu/cornu.h>

static const double gravity = 9.8, mass_of_cart = 1.0, mass_of_pole = 0.1;
static const double length = 0.5;              /* from the hinge to the pole's centre of mass */
static const double force = 10.0, seconds = 0.02;
static const double farthest = 2.4, steepest = 12.0 * 2.0 * 3.14159265358979323846 / 360.0;

void cart_pole_reset(CartPole *pole, uint64_t seed, int64_t episode)
{
    const uint32_t counter[4] = { (uint32_t)episode, (uint32_t)((uint64_t)episode >> 32), 0, 0 };
    uint32_t       bits[4];
    cornu_philox(seed, counter, bits);
    *pole = (CartPole){ .steps = 0 };
    for (int i = 0; i < CART_POLE_STATES; i++)
        pole->state[i] = 0.1 * (double)cornu_uniform(bits[i]) - 0.05;
}

bool cart_pole_step(CartPole *pole, int action)
{
    double      *s = pole->state;
    const double mass = mass_of_cart + mass_of_pole;
    const double cosine = cos(s[2]), sine = sin(s[2]);
    const double pushed = ((action == 1 ? force : -force) +
                           mass_of_pole * length * (s[3] * s[3]) * sine) / mass;
    const double angular = (gravity * sine - cosine * pushed) /
                           (length * (4.0 / 3.0 - mass_of_pole * (cosine * cosine) / mass));
    const double linear = pushed - mass_of_pole * length * angular * cosine / mass;
    s[0] += seconds * s[1];
    s[1] += seconds * linear;
    s[2] += seconds * s[3];
    s[3] += seconds * angular;
    pole->steps++;
    pole->fallen = fabs(s[0]) > farthest || fabs(s[2]) > steepest;
    return pole->fallen || pole->steps == CART_POLE_STEPS;
}

void cart_pole_observe(const CartPole *pole, float state[CART_POLE_STATES])
{
    for (int i = 0; i < CART_POLE_STATES; i++) state[i] = (float)pole->state[i];
}
