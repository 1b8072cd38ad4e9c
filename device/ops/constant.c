/* Ops without operands: constants, indices, the number of the replica. */
#include "rules.h"

/* constant: a scalar of `dtype`, which must represent the value exactly unless it is a float. */
static CornuStatus constant_type(const CornuOpCall *call, CornuType *out)
{
    CornuDtype dtype = call->attributes->constant.dtype;
    double     value = call->attributes->constant.value;
    int64_t    memory;
    CornuArray held = { cornu_scalar(dtype), &memory };
    if (!cornu_dtype_is_float(dtype)) {
        cornu_array_set(held, 0, value);
        if (cornu_array_get(held, 0) != value)
            return cornu__fail(CORNU_ERR_VALUE, "%g is not representable in %s, which would make "
                               "it %g", value, cornu_dtype_name(dtype), cornu_array_get(held, 0));
    }
    out[0] = cornu_scalar(dtype);
    return CORNU_OK;
}

static CornuStatus constant_reference(const CornuReferenceCall *call)
{
    call->out[0][0] = call->op.attributes->constant.value;
    return CORNU_OK;
}

const CornuOpRules cornu__constant_rules = {
    constant_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, constant_reference,
};

/* iota: each element is its own index along `axis`. */
static CornuStatus iota_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_IOTA *iota = &call->attributes->iota;
    if (iota->rank < 1 || iota->rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "rank %lld, expected 1 to %d", (long long)iota->rank,
                           CORNU_MAX_RANK);
    if (iota->axis < 0 || iota->axis >= iota->rank)
        return cornu__fail(CORNU_ERR_ARGUMENT, "axis %lld, expected 0 to %lld",
                           (long long)iota->axis, (long long)iota->rank - 1);
    if (!cornu__is_number(iota->dtype))
        return cornu__fail(CORNU_ERR_DTYPE, "dtype is bool, expected a number");
    int64_t extent = iota->extents[iota->axis];
    if (iota->dtype == CORNU_U8 && extent > 256)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld indices, expected at most 256 for u8",
                           (long long)extent);
    out[0] = cornu_type_from(iota->dtype, cornu_shape_from((int)iota->rank, iota->extents));
    return CORNU_OK;
}

static CornuStatus iota_reference(const CornuReferenceCall *call)
{
    CornuShape shape = call->out_type[0].shape;
    int        axis = (int)call->op.attributes->iota.axis;
    int64_t    inner = 1;
    for (int i = axis + 1; i < shape.rank; i++) inner *= shape.extent[i];
    for (int64_t i = 0; i < call->count; i++)
        call->out[0][i] = (double)(i / inner % shape.extent[axis]);
    return CORNU_OK;
}

const CornuOpRules cornu__iota_rules = {
    iota_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, iota_reference,
};

/* replica_id: the number of the replica, an i64 scalar; 0 if there is only one. */
static CornuStatus replica_id_type(const CornuOpCall *call, CornuType *out)
{
    (void)call;
    out[0] = cornu_scalar(CORNU_I64);
    return CORNU_OK;
}

static CornuStatus replica_id_reference(const CornuReferenceCall *call)
{
    call->out[0][0] = 0.0;
    return CORNU_OK;
}

const CornuOpRules cornu__replica_id_rules = {
    replica_id_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, replica_id_reference,
};
