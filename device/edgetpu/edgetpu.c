#include "edgetpu.h"

const CornuEdgeTpuProfile cornu_edgetpu_profile = {
    .name = "Coral Edge TPU", .ops_per_s = 4e12, .watts = 2.0, .cache_bytes = INT64_C(8) << 20,
    .link_bytes_per_s = 500e6,
};

CornuEdgeTpuCost cornu_edgetpu_cost(CornuEdgeTpuOperator *operators, int count,
                                    int64_t moved_bytes)
{
    const CornuEdgeTpuProfile *profile = &cornu_edgetpu_profile;
    CornuEdgeTpuCost cost = { .moved_bytes = moved_bytes };
    for (int i = 0; i < count; i++) {
        CornuEdgeTpuOperator *op = &operators[i];
        if (op->mapped && cost.host > 0) {
            op->mapped = false;
            op->why = "follows an operator on the host";
        }
        if (!op->mapped) {
            cost.host++;
            continue;
        }
        cost.mapped++;
        cost.multiply_adds += op->multiply_adds;
        /* In the order of the operators, as long as they fit. */
        if (cost.cached_bytes + op->parameter_bytes <= profile->cache_bytes)
            cost.cached_bytes += op->parameter_bytes;
        else
            cost.streamed_bytes += op->parameter_bytes;
    }
    cost.compute_s = 2.0 * (double)cost.multiply_adds / profile->ops_per_s;
    cost.transfer_s = (double)(cost.streamed_bytes + moved_bytes) / profile->link_bytes_per_s;
    cost.total_s = cost.compute_s + cost.transfer_s;
    cost.joules = cost.total_s * profile->watts;
    return cost;
}
