/* What both ways to learn share. */
#include <stdlib.h>

#include "cartpole.h"

double agent_random(const Agent *agent, uint32_t purpose, int64_t number)
{
    const uint32_t counter[4] = { (uint32_t)number, (uint32_t)((uint64_t)number >> 32), purpose,
                                  1 };
    uint32_t       bits[4];
    cornu_philox(agent->seed, counter, bits);
    return cornu_uniform(bits[0]);
}

CornuModel *agent_network(const char *name, int64_t units, CornuActivation activation,
                          int64_t outputs)
{
    CornuModel *model = cornu_sequential(.name = name, .input_shape = { CART_POLE_STATES });
    cornu_model_add(model, cornu_rescaling(.scales = cornu_numbers(1 / 2.4, 1 / 3.0, 1 / 0.21,
                                                                   1 / 3.0)));
    cornu_model_add(model, cornu_dense(units, .activation = activation));
    cornu_model_add(model, cornu_dense(units, .activation = activation));
    cornu_model_add(model, cornu_dense(outputs));
    return model;
}

CornuStatus agent_diverged(void)
{
    return cornu_error_set(CORNU_ERR_VALUE, "the values of actions, or the loss, are not finite: a "
                           "smaller --learning-rate may help");
}

void agent_free(Agent *agent)
{
    if (!agent) return;
    agent->free(agent);
    free(agent);
}
