/*
 * Collectives: ops across all shards, or across each group of shards.
 *
 *     all_reduce      y = the sum of x over the members
 *     reduce_scatter  y = this shard's slice of that sum
 *     all_gather      y = the members' x, concatenated along axis 0
 *     shard_slice     y = this shard's slice of x; nothing is exchanged
 *
 * A group has `size` members in ascending order. Slices are the `size` equal parts of axis 0, the
 * first for the first member. Sums are added in a fixed binary tree over the members: the first
 * two, the next two, … and then the pairs; in f32, f64, i64 or i32, so that they lose no more
 * digits. The results of all_reduce and all_gather over all shards are the same on each shard, so
 * what depends on them alone is computed once; within groups they vary from shard to shard.
 *
 * The reference device has one shard: all four return x itself.
 */
#include "rules.h"

#include <string.h>

/* Every shard is in one group, and the order is the one that equal groups have. */
static CornuStatus check_groups(const CornuOpCall *call)
{
    const CornuAttributes_SHARDS *s = &call->attributes->shards;
    const CornuInts               groups = s->groups;
    bool                          seen[CORNU_MAX_SHARDS] = { false };
    if (s->size < 0 || s->size > CORNU_MAX_SHARDS)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "groups of %lld shards, expected at "
                             "most %d", (long long)s->size, CORNU_MAX_SHARDS);
    if (groups.count == 0) return CORNU_OK;
    if (s->size == 0 || groups.count > CORNU_MAX_SHARDS || groups.count % s->size != 0)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "%d shards in groups of %lld, expected "
                             "at most %d, the same number in each", groups.count,
                             (long long)s->size, CORNU_MAX_SHARDS);
    for (int i = 0; i < groups.count; i++) {
        const int  shard = groups.at[i];
        const bool first = i % s->size == 0;   /* of its group */
        const int  before = i == 0 ? -1 : groups.at[first ? i - s->size : i - 1];
        if (shard <= before || shard >= groups.count || seen[shard])
            return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "shard %d is number %d in the "
                                 "groups, expected each of 0 to %d once, in ascending order", shard,
                                 i, groups.count - 1);
        seen[shard] = true;
    }
    return CORNU_OK;
}

static CornuStatus expect_summable(const CornuOpCall *call)
{
    const CornuDtype dtype = call->in[0].dtype;
    if (dtype != CORNU_F32 && dtype != CORNU_F64 && dtype != CORNU_I64 && dtype != CORNU_I32)
        return cornu__refuse(call, CORNU_ERR_DTYPE, "x", "expected f32, f64, i64 or i32");
    return CORNU_OK;
}

static CornuStatus expect_parts(const CornuOpCall *call)
{
    CORNU__TRY(check_groups(call));
    if (call->attributes->shards.size < 1 || call->in[0].shape.rank < 1)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "%lld slices of axis 0, expected 1 to %d",
                             (long long)call->attributes->shards.size, CORNU_MAX_SHARDS);
    return CORNU_OK;
}

static CornuStatus all_reduce_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(check_groups(call));
    CORNU__TRY(expect_summable(call));
    out[0] = call->in[0];
    return CORNU_OK;
}

static CornuStatus shard_slice_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(expect_parts(call));
    const int64_t size = call->attributes->shards.size;
    out[0] = call->in[0];
    if (out[0].shape.extent[0] % size != 0)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "axis 0 does not divide into %lld",
                             (long long)size);
    out[0].shape.extent[0] /= size;
    return CORNU_OK;
}

static CornuStatus reduce_scatter_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(expect_summable(call));
    return shard_slice_type(call, out);
}

static CornuStatus all_gather_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(expect_parts(call));
    const int64_t size = call->attributes->shards.size;
    out[0] = call->in[0];
    if (out[0].shape.extent[0] > INT64_MAX / size)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "too many elements along axis 0");
    out[0].shape.extent[0] *= size;
    return CORNU_OK;
}

static CornuStatus reference(const CornuReferenceCall *call)
{
    memcpy(call->out[0], call->in[0], (size_t)call->count * sizeof *call->out[0]);
    return CORNU_OK;
}

const CornuOpRules cornu__all_reduce_rules = {
    all_reduce_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, reference,
};

const CornuOpRules cornu__reduce_scatter_rules = {
    reduce_scatter_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, reference,
};

const CornuOpRules cornu__all_gather_rules = {
    all_gather_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, reference,
};

const CornuOpRules cornu__shard_slice_rules = {
    shard_slice_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, reference,
};
