#include "strategy.h"

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "model_internal.h"

struct CornuStrategy {
    CornuDevice *device;
    int64_t      iterations_per_loop;
};

static CornuDevice *open_device(const CornuTpuStrategyConfig *config)
{
    CornuTpuTarget found;
    if (!config->target && cornu_tpu_resolve(&found)) return cornu__null();
    return cornu_device_open(config->target ? config->target->device : found.device,
                             .shards = config->num_shards, .threads = config->threads,
                             .precision = config->precision);
}

CornuStrategy *cornu_tpu_strategy_from(const CornuTpuStrategyConfig *config)
{
    if (cornu__refused()) return NULL;
    if (config->iterations_per_loop < 0 || config->iterations_per_loop > INT32_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "tpu_strategy: .iterations_per_loop is %lld, "
                                "expected 1 to %d", (long long)config->iterations_per_loop,
                                INT32_MAX);
    CornuStrategy *strategy = cornu__allocate(1, sizeof *strategy);
    if (!strategy) return cornu__null();
    strategy->iterations_per_loop = config->iterations_per_loop ? config->iterations_per_loop : 1;
    strategy->device = open_device(config);
    if (strategy->device) return strategy;
    cornu__release(strategy);
    return NULL;
}

void cornu_strategy_free(CornuStrategy *strategy)
{
    if (!strategy) return;
    cornu_device_close(strategy->device);
    cornu__release(strategy);
}

CornuDevice *cornu_strategy_device(const CornuStrategy *strategy)
{
    CORNU__NEED_OR(strategy, NULL);
    return strategy->device;
}

int64_t cornu_strategy_iterations_per_loop(const CornuStrategy *strategy)
{
    CORNU__NEED_OR(strategy, 0);
    return strategy->iterations_per_loop;
}

/* ---- Scope ---- */

enum { DEEPEST = 8 };

static _Thread_local CornuStrategy *scopes[DEEPEST];
static _Thread_local int            depth;   /* including scopes beyond the limit */

bool cornu_scope_enter(CornuStrategy *strategy)
{
    if (!strategy)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "CORNU_SCOPE: the strategy is NULL");
    if (depth >= DEEPEST)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "CORNU_SCOPE: %d scopes in each other, expected %d "
                         "at most; return and goto do not leave a scope", depth + 1, DEEPEST);
    else
        scopes[depth] = strategy;
    depth++;
    return true;
}

bool cornu_scope_leave(void)
{
    if (depth > 0) depth--;
    return false;
}

CornuStrategy *cornu_strategy_in_scope(void)
{
    return depth > 0 && depth <= DEEPEST ? scopes[depth - 1] : NULL;
}
