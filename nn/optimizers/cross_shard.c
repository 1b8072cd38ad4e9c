/* Source: tensorflow/python/tpu/tpu_optimizer.py. */
#include "optimizer_internal.h"

CornuOptimizer *cornu_cross_shard_optimizer_from(const CornuCrossShardConfig *config)
{
    CornuOptimizer *optimizer = config->optimizer;
    bool            given = false;
    for (int i = 0; i < CORNU_MAX_SHARDS; i++) given = given || config->group_assignment[i] != 0;
    if (!optimizer || cornu_error_pending())
        cornu__fail_null(CORNU_ERR_ARGUMENT, "cross_shard_optimizer: .optimizer is required");
    else if (config->reduction != CORNU_MEAN && config->reduction != CORNU_SUM)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "cross_shard_optimizer: .reduction is %d, expected "
                         "CORNU_MEAN or CORNU_SUM", (int)config->reduction);
    else if (config->group_size < 0 || config->group_size > CORNU_MAX_SHARDS)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "cross_shard_optimizer: .group_size is %d, expected 1 "
                         "to %d", config->group_size, CORNU_MAX_SHARDS);
    else if (given && config->group_size == 0)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "cross_shard_optimizer: .group_assignment is given, "
                         "expected .group_size, too");
    if (cornu_error_pending()) {
        cornu_optimizer_free(optimizer);
        return NULL;
    }
    optimizer->reduction = config->reduction;
    optimizer->groups.size = config->group_size;
    for (int i = 0; i < CORNU_MAX_SHARDS; i++)
        optimizer->groups.members[i] = config->group_assignment[i];
    return optimizer;
}
