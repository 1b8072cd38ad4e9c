/* Double DQN: a replay buffer and a target network. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cartpole.h"

enum {
    KEPT = 10000,                  /* steps */
    AHEAD = 10,                    /* steps whose rewards count as they were */
    ROWS = 64,                     /* of a step of training, */
    EVERY = 2,                     /* one for so many steps, */
    BEGIN = 1000,                  /* once there are so many */
    UNITS = 64,
    EXPLORE = 1, CHOOSE = 2, DRAW = 3
};
static const double discount = 0.99;
static const double reward = 0.02;             /* so that values are about 1 */
static const double random_steps = 5000.0;     /* until actions are no longer random */
static const double following = 0.01;          /* of the target, in a step of training */

typedef struct {
    float   state[CART_POLE_STATES], next[CART_POLE_STATES];
    uint8_t action;
    bool    fallen, ended;
} Step;

typedef struct {
    Agent       base;
    CornuModel *target;
    Step        kept[KEPT];        /* a ring */
    int64_t     count;             /* of all steps so far */
    bool        survived;          /* in the last episode the pole has not fallen */
    float       x[ROWS][CART_POLE_STATES], next[ROWS][CART_POLE_STATES];
    float       y[ROWS][CART_POLE_ACTIONS], best[ROWS][CART_POLE_ACTIONS];
    float       later[ROWS][CART_POLE_ACTIONS];
} Dqn;

static int larger(const float values[CART_POLE_ACTIONS]) { return values[1] > values[0]; }

static CornuStatus act(Agent *agent, const float *state, int64_t step, int *action)
{
    float        of[CART_POLE_STATES], values[CART_POLE_ACTIONS];
    const double random = 1.0 - (double)step / random_steps;
    if (agent_random(agent, EXPLORE, step) < random) {
        *action = agent_random(agent, CHOOSE, step) < 0.5;
        return CORNU_OK;
    }
    memcpy(of, state, sizeof of);
    CornuStatus status = cornu_predict_on_batch(
        agent->model, cornu_array(of, CORNU_F32, 1, CART_POLE_STATES),
        cornu_array(values, CORNU_F32, 1, CART_POLE_ACTIONS));
    *action = larger(values);
    return status || isfinite(values[0] + values[1]) ? status : agent_diverged();
}

static CornuStatus predict(CornuModel *model, float x[ROWS][CART_POLE_STATES],
                           float y[ROWS][CART_POLE_ACTIONS])
{
    return cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, ROWS, CART_POLE_STATES),
                                  cornu_array(y, CORNU_F32, ROWS, CART_POLE_ACTIONS));
}

/* What is known of the steps from one of them on, as far as they are kept and of its episode: the
 * last one, and by which factor values after it count. Returns the rewards until there. */
static double look_ahead(const Dqn *self, int64_t from, const Step **last, double *factor)
{
    double sum = reward;
    *factor = discount;
    *last = &self->kept[from % KEPT];
    for (int64_t i = from + 1; i < from + AHEAD && i < self->count && !(*last)->ended; i++) {
        sum += *factor * reward;
        *factor *= discount;
        *last = &self->kept[i % KEPT];
    }
    return sum;
}

/* The value of the action that was taken becomes its rewards + factor target(next)[best(next)], or
 * the rewards alone after a fall; that of the other action stays, so that it has no gradient. */
static CornuStatus train(Dqn *self, int64_t step)
{
    const int64_t first = self->count > KEPT ? self->count - KEPT : 0;
    const Step   *last[ROWS];
    double        sums[ROWS], factors[ROWS];
    int           actions[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const double  at = agent_random(&self->base, DRAW, step * ROWS + i);
        const int64_t from = first + (int64_t)(at * (double)(self->count - first));
        const Step   *drawn = &self->kept[from % KEPT];
        sums[i] = look_ahead(self, from, &last[i], &factors[i]);
        actions[i] = drawn->action;
        memcpy(self->x[i], drawn->state, sizeof self->x[i]);
        memcpy(self->next[i], last[i]->next, sizeof self->next[i]);
    }
    CornuStatus status = predict(self->base.model, self->x, self->y);
    if (!status) status = predict(self->base.model, self->next, self->best);
    if (!status) status = predict(self->target, self->next, self->later);
    if (status) return status;
    for (int i = 0; i < ROWS; i++) {
        const double later = last[i]->fallen ? 0.0 : self->later[i][larger(self->best[i])];
        self->y[i][actions[i]] = (float)(sums[i] + factors[i] * later);
    }
    return cornu_train_on_batch(self->base.model,
                                cornu_array(self->x, CORNU_F32, ROWS, CART_POLE_STATES),
                                cornu_array(self->y, CORNU_F32, ROWS, CART_POLE_ACTIONS));
}

/* target += part (network - target) */
static CornuStatus follow(Dqn *self, double part)
{
    float       to[UNITS * UNITS], now[UNITS * UNITS];
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < cornu_model_weight_count(self->target) && !status; i++) {
        CornuWeight     *w = cornu_model_weight(self->target, i);
        const CornuArray all = cornu_array_from(now, w->type);
        status = cornu_weight_read(w, all);
        if (!status)
            status = cornu_weight_read(cornu_model_weight(self->base.model, i),
                                       cornu_array_from(to, w->type));
        for (int64_t k = 0; k < cornu_type_count(w->type); k++)
            now[k] += (float)part * (to[k] - now[k]);
        if (!status) status = cornu_weight_write(w, all);
    }
    return status;
}

/* After an episode that the pole has survived there is nothing to mend: the network stays as it is
 * until one falls. */
static CornuStatus learn(Agent *agent, const float *state, int action, const CartPole *pole,
                         int64_t step)
{
    Dqn       *self = (Dqn *)agent;
    Step      *kept = &self->kept[self->count++ % KEPT];
    const bool survived = self->survived;
    memcpy(kept->state, state, sizeof kept->state);
    cart_pole_observe(pole, kept->next);
    kept->action = (uint8_t)action;
    kept->fallen = pole->fallen;
    kept->ended = pole->fallen || pole->steps == CART_POLE_STEPS;
    if (kept->ended) self->survived = !pole->fallen;
    if (self->count < BEGIN || self->count % EVERY || survived) return CORNU_OK;
    CornuStatus status = train(self, step);
    return status ? status : follow(self, following);
}

static void free_agent(Agent *agent)
{
    cornu_model_free(((Dqn *)agent)->target);
    cornu_model_free(agent->model);
}

Agent *agent_dqn(CornuDevice *device, uint64_t seed, double learning_rate)
{
    Dqn *self = calloc(1, sizeof *self);
    if (!self) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d steps", KEPT), NULL;
    self->base = (Agent){ .seed = seed, .act = act, .learn = learn, .free = free_agent,
                          .model = agent_network("values", UNITS, CORNU_RELU, CART_POLE_ACTIONS) };
    self->target = agent_network("target", UNITS, CORNU_RELU, CART_POLE_ACTIONS);
    CornuSchedule *decay = learning_rate > 0.0 ? NULL : cornu_polynomial_decay(1e-3, 20000, 1e-4);
    CornuStatus    status = cornu_compile(
        self->base.model, .device = device, .loss = cornu_huber(),
        .optimizer = cornu_adam(.learning_rate = learning_rate, .schedule = decay));
    if (!status) status = cornu_compile(self->target, .device = device);
    if (!status) status = follow(self, 1.0);
    if (!status) return (Agent *)self;
    agent_free(&self->base);
    return NULL;
}
