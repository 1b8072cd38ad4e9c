/* Ops without operands: constants, indices along an axis, the number of the replica. */
#include "../tensor_internal.h"

/* A broadcast scalar: programs have no constant arrays. */
CornuTensor *cornu_op_constant(CornuGraph *graph, CornuType type, double value)
{
    CornuAttributes attributes = { .constant = { .dtype = type.dtype, .value = value } };
    CornuTensor    *scalar = cornu__record0(graph, CORNU_OP_CONSTANT, &attributes);
    return type.shape.rank == 0 ? scalar : cornu_op_broadcast(scalar, type.shape);
}

CornuTensor *cornu_op_constant_like(CornuTensor *x, double value)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "constant: operand 0 is NULL");
    return cornu_op_constant(x->graph, cornu_tensor_type(x), value);
}

CornuGradient *const cornu__constant_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_iota(CornuGraph *graph, CornuType type, int axis)
{
    CornuAttributes shape = cornu__shape_attributes(type.shape), attributes = { .iota = { 0 } };
    attributes.iota.dtype = type.dtype;
    attributes.iota.rank = shape.shape.rank;
    attributes.iota.axis = axis;
    for (int i = 0; i < CORNU_MAX_RANK; i++) attributes.iota.extents[i] = shape.shape.extents[i];
    return cornu__record0(graph, CORNU_OP_IOTA, &attributes);
}

CornuGradient *const cornu__iota_gradient = CORNU_NO_GRADIENT;

CornuTensor *cornu_op_replica_id(CornuGraph *graph)
{
    /* A constant, as only shard 0 exists: then nothing varies from shard to shard. */
    if (graph && cornu_graph_shards(graph) == 1)
        return cornu_op_constant(graph, cornu_scalar(CORNU_I64), 0.0);
    return cornu__record0(graph, CORNU_OP_REPLICA_ID, NULL);
}

CornuGradient *const cornu__replica_id_gradient = CORNU_NO_GRADIENT;
