/*
 * A pole on a cart, to be balanced by pushing the cart left or right.
 *
 *     CartPole pole;
 *     cart_pole_reset(&pole, seed, episode);
 *     while (!cart_pole_step(&pole, action)) ...
 *
 * The physics are those of Barto, Sutton and Anderson, "Neuronlike Adaptive Elements That Can Solve
 * Difficult Learning Control Problems", IEEE Transactions on Systems, Man, and Cybernetics 13,
 * 1983, without friction; constants, Euler's method and limits are those of Gymnasium's
 * CartPole-v1.
 */
#ifndef CORNU_EXAMPLES_CART_POLE_H
#define CORNU_EXAMPLES_CART_POLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CART_POLE_STATES = 4,          /* position m, speed m/s, angle rad, angular speed rad/s */
    CART_POLE_ACTIONS = 2,         /* push left, push right */
    CART_POLE_STEPS = 500,         /* after which an episode ends */
    CART_POLE_EPISODES = 100,      /* the last ones, over which */
    CART_POLE_SOLVED = 475         /* returns of this mean are a solution */
};

typedef struct {
    double  state[CART_POLE_STATES];
    int64_t steps;                 /* of this episode: its return, a reward of 1 for each */
    bool    fallen;                /* the cart or the pole has left its range */
} CartPole;

/* The beginning of an episode: each number of the state between -0.05 and 0.05, by the seed and the
 * number of the episode. */
void cart_pole_reset(CartPole *pole, uint64_t seed, int64_t episode);

/* A step of 0.02 s. Whether the episode has ended: the pole is fallen, or it was the last step. */
bool cart_pole_step(CartPole *pole, int action);

/* The state as a network gets it. */
void cart_pole_observe(const CartPole *pole, float state[CART_POLE_STATES]);

#endif
