/* Collectives: groups of shards, and the ops that sum, scatter and gather between them. */
#include "../graph_internal.h"

/* Whether any member is not 0: then all are listed, else position i has shard i. */
static bool lists_members(const CornuGroups *groups)
{
    for (int i = 0; i < CORNU_MAX_SHARDS; i++)
        if (groups->members[i] != 0) return true;
    return false;
}

CornuStatus cornu_groups_check(const CornuGroups *groups, int shards)
{
    const bool listed = lists_members(groups);
    bool       seen[CORNU_MAX_SHARDS] = { false };
    if (groups->size == 0) return CORNU_OK;
    if (groups->size < 0 || shards % groups->size != 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "groups of %d shards, expected a size that divides "
                           "the %d there are", groups->size, shards);
    for (int i = shards; i < CORNU_MAX_SHARDS; i++)
        if (groups->members[i] != 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "the groups have %d members, expected at most "
                               "%d, the number of shards", i + 1, shards);
    for (int i = 0; i < shards; i++) {
        const int member = listed ? groups->members[i] : i;
        if (member < 0 || member >= shards)
            return cornu__fail(CORNU_ERR_ARGUMENT, "shard %d is in a group, expected 0 to %d",
                               member, shards - 1);
        if (seen[member])
            return cornu__fail(CORNU_ERR_ARGUMENT, "shard %d is in the groups twice, expected each "
                               "of 0 to %d once", member, shards - 1);
        seen[member] = true;
    }
    return CORNU_OK;
}

/* The shards group by group in the order of device/ops/attributes.def, which equal groups have in
 * common. */
static void put_in_order(const CornuGroups *groups, int shards, int in_order[CORNU_MAX_SHARDS])
{
    const bool listed = lists_members(groups);
    int        group_of[CORNU_MAX_SHARDS], start[CORNU_MAX_SHARDS], next = 0;
    for (int i = 0; i < shards; i++) {
        group_of[listed ? groups->members[i] : i] = i / groups->size;
        start[i / groups->size] = -1;
    }
    for (int shard = 0; shard < shards; shard++) {
        int *at = &start[group_of[shard]];
        if (*at < 0) {
            *at = next;
            next += groups->size;
        }
        in_order[(*at)++] = shard;
    }
}

static CornuTensor *record_collective(CornuOpId id, CornuTensor *x, const CornuGroups *groups)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    int          in_order[CORNU_MAX_SHARDS];
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand 0 is NULL", cornu_op_name(id));
    const int shards = cornu_graph_shards(x->graph);
    CornuAttributes attributes = { .shards = { .size = shards } };
    if (groups && cornu__fail_prefix(cornu_groups_check(groups, shards), cornu_op_name(id)))
        return cornu__null();
    if (groups && groups->size > 0 && groups->size < shards) {
        put_in_order(groups, shards, in_order);
        attributes.shards = (CornuAttributes_SHARDS){ .size = groups->size,
                                                      .groups = { shards, in_order } };
    }
    return cornu__record(id, &attributes, &x, 1, out);
}

/* The same op, or its counterpart, over the same groups. */
static CornuTensor *record_like(const CornuRecorded *op, CornuOpId id, CornuTensor *x)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, op->attributes, &x, 1, out);
}

CornuTensor *cornu_op_all_reduce(CornuTensor *x) { return cornu_op_all_reduce_in(x, NULL); }

CornuTensor *cornu_op_all_reduce_in(CornuTensor *x, const CornuGroups *groups)
{
    return record_collective(CORNU_OP_ALL_REDUCE, x, groups);
}

/* Each shard's x is part of the sum that every shard's loss depends on. */
static void all_reduce_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = record_like(op, CORNU_OP_ALL_REDUCE, d[0]);
}
CornuGradient *const cornu__all_reduce_gradient = all_reduce_gradient;

CornuTensor *cornu_op_reduce_scatter(CornuTensor *x, const CornuGroups *groups)
{
    return record_collective(CORNU_OP_REDUCE_SCATTER, x, groups);
}

static void reduce_scatter_gradient(const CornuRecorded *op, CornuTensor *const *d,
                                    CornuTensor **d_x)
{
    d_x[0] = record_like(op, CORNU_OP_ALL_GATHER, d[0]);
}
CornuGradient *const cornu__reduce_scatter_gradient = reduce_scatter_gradient;

CornuTensor *cornu_op_all_gather(CornuTensor *x, const CornuGroups *groups)
{
    return record_collective(CORNU_OP_ALL_GATHER, x, groups);
}

/* Every shard's loss depends on every slice. */
static void all_gather_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = record_like(op, CORNU_OP_REDUCE_SCATTER, d[0]);
}
CornuGradient *const cornu__all_gather_gradient = all_gather_gradient;

CornuTensor *cornu_op_shard_slice(CornuTensor *x, const CornuGroups *groups)
{
    return record_collective(CORNU_OP_SHARD_SLICE, x, groups);
}

/* This shard's loss depends on this shard's slice: d there, zeros elsewhere. The slice's number is
 * this shard's slice of 0, 1, … */
static void shard_slice_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    const CornuType x = cornu_tensor_type(op->in[0]);
    const int64_t   size = op->attributes->shards.size;
    const int64_t   rows = x.shape.extent[0] / size, count = cornu_type_count(x);
    if (rows == 0) return;
    const CornuShape slices = cornu_shape(size, count / size);
    const CornuType  numbers = cornu_type(CORNU_I64, size);
    CornuTensor *iota = cornu_op_iota(op->graph, numbers, 0);
    CornuTensor *own = record_like(op, CORNU_OP_SHARD_SLICE, iota);
    CornuTensor *is_own = cornu_op_compare(iota, CORNU_EQUAL, own);
    CornuTensor *each = cornu_op_broadcast(cornu_op_reshape(d[0], cornu_shape(1, count / size)),
                                           slices);
    CornuTensor *kept = cornu_op_select(cornu_op_reshape(is_own, cornu_shape(size, 1)), each,
                                        cornu_op_constant_like(each, 0.0));
    d_x[0] = cornu_op_reshape(kept, x.shape);
}
CornuGradient *const cornu__shard_slice_gradient = shard_slice_gradient;
