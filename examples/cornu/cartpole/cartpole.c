/* Learns to balance a pole on a cart, by trying: a policy gradient, or values of actions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands.h"
#include "../common/session.h"
#include "cartpole.h"

/* ---- Training ---- */

enum { REPORT = 50 };

typedef struct {
    int64_t episodes;
    int64_t lasted[CART_POLE_EPISODES];   /* a ring */
    int64_t sum;                          /* of the ring */
    int64_t steps;                        /* of all episodes */
} Returns;

/* Episodes in the ring. */
static int64_t count_of(const Returns *returns)
{
    return returns->episodes < CART_POLE_EPISODES ? returns->episodes : CART_POLE_EPISODES;
}

static double mean_of(const Returns *returns)
{
    return (double)returns->sum / (double)count_of(returns);
}

static bool is_solved(const Returns *returns)
{
    return returns->episodes >= CART_POLE_EPISODES && mean_of(returns) >= CART_POLE_SOLVED;
}

static CornuStatus run_episode(Agent *agent, Returns *returns)
{
    CartPole    pole;
    CornuStatus status = CORNU_OK;
    bool        ended = false;
    cart_pole_reset(&pole, agent->seed, returns->episodes);
    while (!ended && !status) {
        float state[CART_POLE_STATES];
        int   action = 0;
        cart_pole_observe(&pole, state);
        status = agent->act(agent, state, returns->steps, &action);
        ended = cart_pole_step(&pole, action);
        if (!status) status = agent->learn(agent, state, action, &pole, returns->steps);
        returns->steps++;
    }
    int64_t *last = &returns->lasted[returns->episodes++ % CART_POLE_EPISODES];
    returns->sum += pole.steps - *last;
    *last = pole.steps;
    return status;
}

static CornuStatus train(Agent *agent, int64_t episodes)
{
    Returns     returns = { .episodes = 0 };
    CornuStatus status = CORNU_OK;
    while (returns.episodes < episodes && !is_solved(&returns) && !status) {
        status = run_episode(agent, &returns);
        if (!status && returns.episodes % REPORT == 0)
            printf("Episode %4lld: mean return %5.1f\n", (long long)returns.episodes,
                   mean_of(&returns));
    }
    if (status) return status;
    printf("%s after %lld episodes of %lld steps: mean return %.2f of the last "
           "%lld\n",
           is_solved(&returns) ? "Solved" : "Not solved", (long long)returns.episodes,
           (long long)returns.steps, mean_of(&returns), (long long)count_of(&returns));
    return CORNU_OK;
}

int command_cartpole(int argc, char **argv)
{
    static const char *const algorithms[] = { "ppo", "dqn", NULL };
    Options                  options = { .threads = 1, .shards = 1 };
    const char              *algorithm = "ppo";
    int64_t                  episodes = 2000;
    const Option             extra[] = {
        { "algorithm", OPTION_CHOICE, &algorithm, "NAME",
          "policy gradient with a baseline, or values of actions", 0, 0, algorithms },
        { "episodes", OPTION_WHOLE, &episodes, "N", "end after N episodes, if it is not solved", 1,
          1e9, NULL },
        { "learning-rate", OPTION_NUMBER, &options.learning_rate, "X",
          "learning rate; default the algorithm's", 1e-12, 1e38, NULL },
        { "save", OPTION_TEXT, &options.save, "FILE",
          "write the network to FILE, .safetensors, .keras or .onnx", 0, 0, NULL },
        OPTION_END,
    };
    const Program program = { .name = "cornu cartpole", .extra = extra,
                              .groups = OPTIONS_SEED | OPTIONS_DEVICE | OPTIONS_THREADS,
                              .purpose = "Learns to balance a pole on a cart." };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    CornuDevice *device = session_open(&options);
    Agent       *agent = NULL;
    if (device)
        agent = (strcmp(algorithm, "dqn") ? agent_ppo : agent_dqn)(
            device, (uint64_t)options.seed, options.learning_rate);
    CornuStatus status = agent ? train(agent, episodes) : cornu_error_status();
    if (agent && !status) status = session_save(&options, agent->model);
    agent_free(agent);
    cornu_device_close(device);
    return session_end("cornu cartpole", status);
}
