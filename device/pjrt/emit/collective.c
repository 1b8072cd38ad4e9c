/* Ops between shards, which are replicas of the module. */
#include "emit.h"

/* The number of the replica, s64. */
static CornuName replica(CornuEmitter *e)
{
    const CornuName id = cornu__begin(e, "replica_id", cornu__hlo_scalar(PJRT_U32), NULL, 0);
    cornu__end(e, id, NULL, 0);
    return cornu__hlo_convert(e, id, PJRT_S64);
}

/* A shard's place in its group times `step`, from a table by the replica's number. */
static CornuName place_of(CornuEmitter *e, const CornuEmitCall *call, int64_t step)
{
    const CornuHloType whole = { PJRT_S64, { .rank = 0 } };
    const CornuName    id = replica(e);
    CornuName          place = cornu__hlo_integer(e, whole, 0);
    for (int shard = 0; shard < e->target.shards; shard++) {
        const CornuMembers members = cornu__members(call->op.attributes, e->target.shards, shard);
        const CornuName own = cornu__hlo_compare(e, id, "EQ", cornu__hlo_integer(e, whole, shard));
        place = cornu__hlo_select(e, own, cornu__hlo_integer(e, whole, members.rank * step), place);
    }
    return place;
}

static void replica_id(CornuEmitter *e, const CornuEmitCall *call)
{
    const bool grouped = call->op.attributes->shards.groups.count > 0;
    if (e->target.shards == 1)
        call->out[0] = cornu__hlo_integer(e, cornu__hlo_scalar(PJRT_S64), 0);
    else
        call->out[0] = grouped ? place_of(e, call, 1) : replica(e);
}
CornuEmit *const cornu__replica_id_stablehlo = replica_id;

/* replica_groups: each group once, at its first member. */
static void write_groups(CornuEmitter *e, const CornuEmitCall *call)
{
    int size = 0, count = 0;
    cornu__write(e, "replica_groups = dense<[");
    for (int shard = 0; shard < e->target.shards; shard++) {
        const CornuMembers members = cornu__members(call->op.attributes, e->target.shards, shard);
        size = members.size;
        if (members.rank != 0) continue;
        cornu__write(e, count++ ? ", [" : "[");
        for (int i = 0; i < size; i++)
            cornu__write(e, "%s%d", i ? ", " : "", cornu__member(&members, i));
        cornu__write(e, "]");
    }
    cornu__write(e, "]> : tensor<%dx%dxi64>", count, size);
}

/* An op on what the shards of each group have, which it may sum; `axis` is what it says of an axis.
 * One shard keeps its own. */
static void exchange(CornuEmitter *e, const CornuEmitCall *call, const char *op, bool sums,
                     const char *axis)
{
    const CornuHloType type = cornu__hlo_type(call->out_type[0]);
    call->out[0] = call->in[0];
    if (e->target.shards == 1) return;
    const CornuName result = cornu__begin(e, op, type, call->in, 1);
    if (sums) cornu__hlo_reducer(e, "add", type.element);
    cornu__write(e, " {%s", axis);
    write_groups(e, call);
    cornu__write(e, "}");
    cornu__end(e, result, call->in, 1);
    call->out[0] = result;
}

static void all_reduce(CornuEmitter *e, const CornuEmitCall *call)
{
    exchange(e, call, "all_reduce", true, "");
}
CornuEmit *const cornu__all_reduce_stablehlo = all_reduce;

static void reduce_scatter(CornuEmitter *e, const CornuEmitCall *call)
{
    exchange(e, call, "reduce_scatter", true, "scatter_dimension = 0 : i64, ");
}
CornuEmit *const cornu__reduce_scatter_stablehlo = reduce_scatter;

static void all_gather(CornuEmitter *e, const CornuEmitCall *call)
{
    exchange(e, call, "all_gather", false, "all_gather_dim = 0 : i64, ");
}
CornuEmit *const cornu__all_gather_stablehlo = all_gather;

static void shard_slice(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuHloType type = cornu__hlo_type(call->out_type[0]), row = { PJRT_S64, { .rank = 0 } };
    CornuName          starts[CORNU_MAX_RANK];
    call->out[0] = call->in[0];
    if (e->target.shards == 1) return;
    starts[0] = place_of(e, call, type.shape.extent[0]);
    for (int i = 1; i < type.shape.rank; i++) starts[i] = cornu__hlo_integer(e, row, 0);
    call->out[0] = cornu__hlo_dynamic_slice(e, call->in[0], starts, type.shape.extent);
}
CornuEmit *const cornu__shard_slice_stablehlo = shard_slice;
