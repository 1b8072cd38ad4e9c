/*
 * all_reduce: y = the sum of x over all shards, added in a fixed binary tree over their numbers:
 * shards 0 and 1, 2 and 3, ... first, then the pairs. f32, f64, i64 or i32: sums that lose nothing
 * more. The result is the same on every shard, so what is computed from it alone is computed once.
 *
 * The reference device has one shard, whose sum is x itself.
 */
#include <string.h>

#include "../op_internal.h"

static CornuStatus all_reduce_type(const CornuOpCall *call, CornuType *out)
{
    CornuDtype dtype = call->in[0].dtype;
    if (dtype != CORNU_F32 && dtype != CORNU_F64 && dtype != CORNU_I64 && dtype != CORNU_I32)
        return cornu__refuse(call, CORNU_ERR_DTYPE, "x", "expected f32, f64, i64 or i32");
    out[0] = call->in[0];
    return CORNU_OK;
}

static CornuStatus all_reduce_reference(const CornuReferenceCall *call)
{
    memcpy(call->out[0], call->in[0], (size_t)call->count * sizeof *call->out[0]);
    return CORNU_OK;
}

const CornuOpRules cornu__all_reduce_rules = {
    all_reduce_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, all_reduce_reference,
};
