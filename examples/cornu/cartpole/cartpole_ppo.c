/* Proximal policy optimization: a policy gradient with a learned baseline, of several steps on the
 * same episodes, kept near the policy that played them by clipped ratios. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cartpole.h"

enum {
    EPISODES = 4,                  /* of a step of training */
    ROWS = EPISODES * CART_POLE_STEPS,
    UNITS = 64,
    POLICY_STEPS = 6,              /* on the same episodes */
    BASELINE_STEPS = 4,
    PURPOSE = 1
};
static const double discount = 0.99, trace = 0.95, entropy_factor = 0.01;
static const double most_ratio = 0.2;          /* from 1, of probabilities */
static const double least_deviation = 2.0;     /* of advantages: what is less may be noise */

typedef struct {
    Agent       base;
    CornuModel *baseline;          /* the value of a state: what the policy gets from there on */
    CornuGraph *graph;             /* the policy's step: */
    CornuTensor *x, *y, *factors, *counted, *before, *loss;

    /* The steps of the episodes that are collected; rows that are not used yet stay 0. */
    float   states[ROWS][CART_POLE_STATES], values[ROWS], returns[ROWS], weights[ROWS];
    float   advantages[ROWS], surprises[ROWS];
    int32_t actions[ROWS];
    float   drawn;                 /* the surprise of the last action */
    int64_t rows, first, episodes; /* first: of the episode */
} Ppo;

/* ---- The policy's step ---- */

/*
 * ratio_i = p(action_i | state_i) / p(action_i | state_i) when it was drawn
 * loss = -sum_i min(ratio_i factor_i, clip(ratio_i, 1 - most_ratio, 1 + most_ratio) factor_i)
 *        - entropy_factor sum_i counted_i H(p(. | state_i))
 *
 * The factors are the advantages, and counted is 1, both divided by the number of steps; both are 0
 * for rows that are not used.
 */
static CornuStatus record(Ppo *self)
{
    CornuModel     *policy = self->base.model;
    CornuGraph     *graph = self->graph;
    CornuOptimizer *adam = cornu_model_optimizer(policy);
    CornuTensor    *w[16], *d_w[16];
    const int       count = cornu_model_weight_count(policy);
    self->x = cornu_graph_input(graph, cornu_type(CORNU_F32, ROWS, CART_POLE_STATES));
    self->y = cornu_graph_input(graph, cornu_type(CORNU_I32, ROWS));
    self->factors = cornu_graph_input(graph, cornu_type(CORNU_F32, ROWS));
    self->counted = cornu_graph_input(graph, cornu_type(CORNU_F32, ROWS));
    self->before = cornu_graph_input(graph, cornu_type(CORNU_F32, ROWS));
    CornuTensor *logits = cornu_model_call(policy, self->x, &(CornuCall){ .training = true });
    CornuTensor *surprise = cornu_op_sparse_cross_entropy(logits, self->y);
    CornuTensor *ratio = cornu_op_exp(cornu_op_subtract(self->before, surprise));
    CornuTensor *near = cornu_op_minimum(
        cornu_op_maximum(ratio, cornu_op_constant_like(ratio, 1.0 - most_ratio)),
        cornu_op_constant_like(ratio, 1.0 + most_ratio));
    CornuTensor *gain = cornu_op_minimum(cornu_op_multiply(ratio, self->factors),
                                         cornu_op_multiply(near, self->factors));
    CornuTensor *terms = cornu_op_multiply(cornu_op_softmax(logits), cornu_op_log_softmax(logits));
    CornuTensor *order = cornu_op_multiply(cornu_op_reduce_sum(terms, 2, false), self->counted);
    self->loss = cornu_op_subtract(cornu_op_scale(cornu_op_sum(order), entropy_factor),
                                   cornu_op_sum(gain));
    for (int i = 0; i < count; i++)
        w[i] = cornu_read(graph, cornu_model_weight(policy, i)->variable);
    CornuStatus status = cornu_gradients(self->loss, w, count, d_w);
    return status ? status : cornu_optimizer_apply(adam, graph, d_w);
}

static CornuStatus run(Ppo *self)
{
    const CornuArray x = cornu_array(self->states, CORNU_F32, ROWS, CART_POLE_STATES);
    float            value;
    CornuArray       to = cornu_array_from(&value, cornu_scalar(CORNU_F32));
    CornuStatus      status = cornu_graph_feed(self->x, x);
    if (!status) status = cornu_graph_feed(self->y, cornu_array(self->actions, CORNU_I32, ROWS));
    if (!status)
        status = cornu_graph_feed(self->factors, cornu_array(self->advantages, CORNU_F32, ROWS));
    if (!status)
        status = cornu_graph_feed(self->counted, cornu_array(self->weights, CORNU_F32, ROWS));
    if (!status)
        status = cornu_graph_feed(self->before, cornu_array(self->surprises, CORNU_F32, ROWS));
    for (int i = 0; i < POLICY_STEPS && !status; i++) {
        status = cornu_run(self->graph, &self->loss, 1, &to);
        if (!status && !isfinite(value)) status = agent_diverged();
    }
    return status;
}

/* ---- Learning ---- */

/* Advantages by the baseline before this step, and the returns that it learns: backward from the
 * end of an episode. An episode that the pole has survived goes on, by the baseline, from `after`.
 * delta_t = 1 + discount v_{t+1} - v_t
 * a_t = delta_t + discount trace a_{t+1};  r_t = a_t + v_t */
static void end_episode(Ppo *self, double after)
{
    double next = after, advantage = 0.0;
    for (int64_t i = self->rows - 1; i >= self->first; i--) {
        advantage = 1.0 + discount * next - self->values[i] + discount * trace * advantage;
        self->advantages[i] = (float)advantage;
        self->returns[i] = (float)(advantage + self->values[i]);
        next = self->values[i];
    }
    self->first = self->rows;
    self->episodes++;
}

/* To a mean of 0 and a variance of 1, or less if they differ little, then divided by their
 * number. */
static void scale_advantages(Ppo *self)
{
    double       sum = 0.0, squares = 0.0;
    const double rows = (double)self->rows;
    for (int64_t i = 0; i < self->rows; i++) sum += self->advantages[i];
    for (int64_t i = 0; i < self->rows; i++)
        squares += pow(self->advantages[i] - sum / rows, 2.0);
    const double deviation = fmax(sqrt(squares / rows), least_deviation);
    for (int64_t i = 0; i < self->rows; i++) {
        self->advantages[i] = (float)((self->advantages[i] - sum / rows) / deviation / rows);
        self->weights[i] = (float)(1.0 / rows);
    }
}

/* Keras' mean divides by all rows: the weights make it one over those that are used. */
static CornuStatus train_baseline(Ppo *self)
{
    CornuStatus status = CORNU_OK;
    for (int64_t i = 0; i < self->rows; i++) self->weights[i] *= ROWS;
    for (int i = 0; i < BASELINE_STEPS && !status; i++)
        status = cornu_train_on_batch(
            self->baseline, cornu_array(self->states, CORNU_F32, ROWS, CART_POLE_STATES),
            cornu_array(self->returns, CORNU_F32, ROWS, 1),
            .sample_weight = cornu_array(self->weights, CORNU_F32, ROWS));
    return status;
}

static CornuStatus value_of(Ppo *self, const float *state, float *value)
{
    float of[CART_POLE_STATES];
    memcpy(of, state, sizeof of);
    return cornu_predict_on_batch(self->baseline, cornu_array(of, CORNU_F32, 1, CART_POLE_STATES),
                                  cornu_array(value, CORNU_F32, 1, 1));
}

static CornuStatus learn(Agent *agent, const float *state, int action, const CartPole *pole,
                         int64_t step)
{
    Ppo    *self = (Ppo *)agent;
    const int64_t row = self->rows++;
    (void)step;
    memcpy(self->states[row], state, sizeof self->states[row]);
    self->actions[row] = action;
    self->surprises[row] = self->drawn;
    CornuStatus status = value_of(self, state, &self->values[row]);
    if (status || (!pole->fallen && pole->steps < CART_POLE_STEPS)) return status;
    float after = 0.0f, now[CART_POLE_STATES];
    cart_pole_observe(pole, now);
    if (!pole->fallen) status = value_of(self, now, &after);
    end_episode(self, after);
    if (status || self->episodes < EPISODES) return status;
    scale_advantages(self);
    status = run(self);
    if (!status) status = train_baseline(self);
    memset(self->states, 0, sizeof self->states);
    memset(self->actions, 0, sizeof self->actions);
    memset(self->advantages, 0, sizeof self->advantages);
    memset(self->weights, 0, sizeof self->weights);
    memset(self->returns, 0, sizeof self->returns);
    memset(self->surprises, 0, sizeof self->surprises);
    self->rows = self->first = self->episodes = 0;
    return status;
}

/* Draws an action with the policy's probabilities. */
static CornuStatus act(Agent *agent, const float *state, int64_t step, int *action)
{
    float       of[CART_POLE_STATES], logits[CART_POLE_ACTIONS];
    memcpy(of, state, sizeof of);
    CornuStatus status = cornu_predict_on_batch(
        agent->model, cornu_array(of, CORNU_F32, 1, CART_POLE_STATES),
        cornu_array(logits, CORNU_F32, 1, CART_POLE_ACTIONS));
    if (status) return status;
    const double second = 1.0 / (1.0 + exp(logits[0] - logits[1]));
    *action = agent_random(agent, PURPOSE, step) < second;
    ((Ppo *)agent)->drawn = (float)-log(*action ? second : 1.0 - second);
    return CORNU_OK;
}

/* ---- The agent ---- */

static void free_agent(Agent *agent)
{
    Ppo *self = (Ppo *)agent;
    cornu_graph_free(self->graph);
    cornu_model_free(self->baseline);
    cornu_model_free(agent->model);
}

Agent *agent_ppo(CornuDevice *device, uint64_t seed, double learning_rate)
{
    Ppo *self = calloc(1, sizeof *self);
    if (!self) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for episodes"), NULL;
    self->base = (Agent){ .seed = seed, .act = act, .learn = learn, .free = free_agent,
                          .model = agent_network("policy", UNITS, CORNU_TANH, CART_POLE_ACTIONS) };
    self->baseline = agent_network("baseline", UNITS, CORNU_TANH, 1);
    CornuSchedule *decay = learning_rate > 0.0 ? NULL : cornu_polynomial_decay(0.01, 250, 1e-3);
    CornuStatus    status = cornu_compile(
        self->base.model, .device = device,
        .optimizer = cornu_adam(.learning_rate = learning_rate, .schedule = decay));
    if (!status)
        status = cornu_compile(self->baseline, .device = device,
                               .optimizer = cornu_adam(.learning_rate = 0.01),
                               .loss = cornu_huber());
    if (!status && !(self->graph = cornu_graph_create(device))) status = cornu_error_status();
    if (!status) status = record(self);
    if (!status) return (Agent *)self;
    agent_free(&self->base);
    return NULL;
}
