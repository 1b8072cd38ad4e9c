/* Two ways to learn to balance a pole (cart_pole.h); cartpole.c chooses. */
#ifndef CORNU_EXAMPLES_CARTPOLE_H
#define CORNU_EXAMPLES_CARTPOLE_H

#include <cornu/cornu.h>

#include "cart_pole.h"

typedef struct Agent Agent;

/* A way to learn is a struct that begins with this one. */
struct Agent {
    uint64_t    seed;
    CornuModel *model;             /* what chooses actions: saved with --save */

    /* *action: for the state, in step `step` of all steps of the training. */
    CornuStatus (*act)(Agent *self, const float *state, int64_t step, int *action);
    /* Learns from the step that led from `state` to the pole as it is now. */
    CornuStatus (*learn)(Agent *self, const float *state, int action, const CartPole *pole,
                         int64_t step);
    void (*free)(Agent *self);
};

/* Proximal policy optimization: whole episodes, then some steps of the policy by the advantages of
 * their actions over a learned baseline, as long as the policy stays near the one that played them.
 * The policy's step is recorded by hand, the baseline is trained by train_on_batch.
 * Sources: Schulman et al., "Proximal Policy Optimization Algorithms", arXiv 1707.06347,
 * equation 7; "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
 * arXiv 1506.02438. */
Agent *agent_ppo(CornuDevice *device, uint64_t seed, double learning_rate);

/* Double DQN: a network of the value of each action, trained on steps drawn from all that are kept,
 * by train_on_batch, towards values of a second network that follows it slowly.
 * Sources: Mnih et al., "Human-level control through deep reinforcement learning", Nature 518,
 * 2015; van Hasselt, Guez and Silver, "Deep Reinforcement Learning with Double Q-learning",
 * arXiv 1509.06461; Sutton, "Learning to Predict by the Methods of Temporal Differences", Machine
 * Learning 3, 1988 (several steps ahead). */
Agent *agent_dqn(CornuDevice *device, uint64_t seed, double learning_rate);

/* A uniform random number in [0, 1), by the seed, a purpose and a number. */
double agent_random(const Agent *agent, uint32_t purpose, int64_t number);

/* Two hidden layers of `units`, of inputs scaled to about 1. */
CornuModel *agent_network(const char *name, int64_t units, CornuActivation activation,
                          int64_t outputs);

/* Sets the error of numbers that are not finite; CORNU_ERR_VALUE. */
CornuStatus agent_diverged(void);

void agent_free(Agent *agent);

#endif
