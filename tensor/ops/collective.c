#include "../graph_internal.h"

/* Shards as decimal digits (device/attributes.def): each one's group, numbered from 1. */
static CornuStatus attributes_of(const char *op, const CornuGraph *graph, const CornuGroups *groups,
                                 CornuAttributes *attributes)
{
    const int shards = cornu_device_shards(graph->device);
    int       group_of[CORNU_MAX_SHARDS] = { 0 };
    *attributes = (CornuAttributes){ .shards = { .size = shards } };
    if (!groups || groups->size == 0) return CORNU_OK;
    if (groups->size < 0 || shards % groups->size != 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: groups of %d, expected a size that divides %d "
                           "shards", op, groups->size, shards);
    bool given = false;
    for (int i = 0; i < shards; i++) given = given || groups->members[i] != 0;
    for (int i = 0; i < shards; i++) {
        const int member = given ? groups->members[i] : i;
        if (member < 0 || member >= shards)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a group has shard %d, expected 0 to %d", op,
                               member, shards - 1);
        if (group_of[member])
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: shard %d is in the groups twice, expected "
                               "each of %d once", op, member, shards);
        group_of[member] = 1 + i / groups->size;
    }
    /* Equal groups have equal digits: numbered in the order of their first members. */
    int number[1 + CORNU_MAX_SHARDS] = { 0 }, next = 1;
    for (int i = 0; i < shards; i++) {
        if (!number[group_of[i]]) number[group_of[i]] = next++;
        attributes->shards.groups = 10 * attributes->shards.groups + number[group_of[i]];
    }
    attributes->shards.size = groups->size;
    if (groups->size == shards) attributes->shards.groups = 0;
    return CORNU_OK;
}

static CornuTensor *record(CornuOpId id, CornuTensor *x, const CornuGroups *groups)
{
    CornuAttributes attributes;
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand 0 is NULL", cornu_op_name(id));
    if (attributes_of(cornu_op_name(id), x->graph, groups, &attributes)) return cornu__null();
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
    return record(CORNU_OP_ALL_REDUCE, x, groups);
}

/* Each shard's x is part of the sum that every shard's loss depends on. */
static void all_reduce_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = record_like(op, CORNU_OP_ALL_REDUCE, d[0]);
}
CornuGradient *const cornu__all_reduce_gradient = all_reduce_gradient;

CornuTensor *cornu_op_reduce_scatter(CornuTensor *x, const CornuGroups *groups)
{
    return record(CORNU_OP_REDUCE_SCATTER, x, groups);
}

static void reduce_scatter_gradient(const CornuRecorded *op, CornuTensor *const *d,
                                    CornuTensor **d_x)
{
    d_x[0] = record_like(op, CORNU_OP_ALL_GATHER, d[0]);
}
CornuGradient *const cornu__reduce_scatter_gradient = reduce_scatter_gradient;

CornuTensor *cornu_op_all_gather(CornuTensor *x, const CornuGroups *groups)
{
    return record(CORNU_OP_ALL_GATHER, x, groups);
}

/* Every shard's loss depends on every slice. */
static void all_gather_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = record_like(op, CORNU_OP_REDUCE_SCATTER, d[0]);
}
CornuGradient *const cornu__all_gather_gradient = all_gather_gradient;

CornuTensor *cornu_op_shard_slice(CornuTensor *x, const CornuGroups *groups)
{
    return record(CORNU_OP_SHARD_SLICE, x, groups);
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
