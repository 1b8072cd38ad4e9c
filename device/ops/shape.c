/* Ops that move elements and compute nothing. */
#include "rules.h"

/* Fills `index` with the multi-index of element i, the inverse of row-major order. */
static void index_of(int64_t i, CornuShape shape, int64_t index[CORNU_MAX_RANK])
{
    for (int axis = shape.rank - 1; axis >= 0; axis--) {
        index[axis] = i % shape.extent[axis];
        i /= shape.extent[axis];
    }
}

/* The element at a multi-index. */
static int64_t offset_of(const int64_t index[CORNU_MAX_RANK], CornuShape shape)
{
    int64_t offset = 0;
    for (int axis = 0; axis < shape.rank; axis++)
        offset = offset * shape.extent[axis] + index[axis];
    return offset;
}

/* The type with the dtype of x and the shape in the attributes. */
static CornuStatus shaped_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_SHAPE *shape = &call->attributes->shape;
    if (shape->rank < 0 || shape->rank > CORNU_MAX_RANK)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x",
                             "the result has rank %lld, expected 0 to %d",
                             (long long)shape->rank, CORNU_MAX_RANK);
    out[0] = cornu_type_from(call->in[0].dtype,
                             cornu_shape_from((int)shape->rank, shape->extents));
    return cornu_type_check(out[0]);
}

/* broadcast: axes are aligned at the right; axes that are missing or of extent 1 are repeated. */
static CornuStatus broadcast_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(shaped_type(call, out));
    CornuShape from = call->in[0].shape, to = out[0].shape;
    int        missing = to.rank - from.rank;
    bool       fits = missing >= 0;
    for (int i = 0; i < from.rank && fits; i++)
        fits = from.extent[i] == 1 || from.extent[i] == to.extent[i + missing];
    CornuText text;
    if (!fits)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "it does not broadcast to %s",
                             cornu_shape_print(&text, to));
    return CORNU_OK;
}

static CornuStatus broadcast_reference(const CornuReferenceCall *call)
{
    CornuShape from = call->op.in[0].shape, to = call->out_type[0].shape;
    int        missing = to.rank - from.rank;
    for (int64_t i = 0; i < call->count; i++) {
        int64_t at[CORNU_MAX_RANK], source[CORNU_MAX_RANK];
        index_of(i, to, at);
        for (int axis = 0; axis < from.rank; axis++)
            source[axis] = from.extent[axis] == 1 ? 0 : at[axis + missing];
        call->out[0][i] = call->in[0][offset_of(source, from)];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__broadcast_rules = {
    broadcast_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, broadcast_reference,
};

/* reshape: the same elements in the same order, in another shape of as many elements. */
static CornuStatus reshape_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(shaped_type(call, out));
    int64_t   from = cornu_type_count(call->in[0]), to = cornu_type_count(out[0]);
    CornuText text;
    if (from != to)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "%lld elements do not fill %s, which has "
                             "%lld", (long long)from, cornu_shape_print(&text, out[0].shape),
                             (long long)to);
    return CORNU_OK;
}

static CornuStatus reshape_reference(const CornuReferenceCall *call)
{
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = call->in[0][i];
    return CORNU_OK;
}

const CornuOpRules cornu__reshape_rules = {
    reshape_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, reshape_reference,
};

/* transpose: axis i of the result is axis axes[i] of x. */
static CornuStatus transpose_type(const CornuOpCall *call, CornuType *out)
{
    const int64_t *axes = call->attributes->permutation.axes;
    CornuShape     shape = call->in[0].shape;
    unsigned       seen = 0;
    for (int i = 0; i < shape.rank; i++)
        if (axes[i] >= 0 && axes[i] < shape.rank) seen |= 1u << axes[i];
    CornuText text;
    if (seen != (1u << shape.rank) - 1)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x",
                             "axes %s, expected a permutation of its %d axes",
                             cornu_shape_print(&text, cornu_shape_from(shape.rank, axes)),
                             shape.rank);
    out[0] = call->in[0];
    for (int i = 0; i < shape.rank; i++) out[0].shape.extent[i] = shape.extent[axes[i]];
    return CORNU_OK;
}

static CornuStatus transpose_reference(const CornuReferenceCall *call)
{
    const int64_t *axes = call->op.attributes->permutation.axes;
    CornuShape     from = call->op.in[0].shape, to = call->out_type[0].shape;
    for (int64_t i = 0; i < call->count; i++) {
        int64_t at[CORNU_MAX_RANK], source[CORNU_MAX_RANK];
        index_of(i, to, at);
        for (int axis = 0; axis < to.rank; axis++) source[axes[axis]] = at[axis];
        call->out[0][i] = call->in[0][offset_of(source, from)];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__transpose_rules = {
    transpose_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, transpose_reference,
};

/* slice: x[starts[i] : starts[i] + sizes[i]] along each axis i. */
static CornuStatus slice_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_SLICE *slice = &call->attributes->slice;
    CornuShape                   shape = call->in[0].shape;
    out[0] = call->in[0];
    for (int i = 0; i < shape.rank; i++) {
        if (slice->starts[i] < 0 || slice->sizes[i] < 0 ||
            slice->starts[i] > shape.extent[i] - slice->sizes[i])
            return cornu__refuse(call, CORNU_ERR_SHAPE, "x",
                                 "a slice of %lld elements from %lld on exceeds axis %d, of %lld",
                                 (long long)slice->sizes[i], (long long)slice->starts[i], i,
                                 (long long)shape.extent[i]);
        out[0].shape.extent[i] = slice->sizes[i];
    }
    return CORNU_OK;
}

static CornuStatus slice_reference(const CornuReferenceCall *call)
{
    const int64_t *starts = call->op.attributes->slice.starts;
    CornuShape     from = call->op.in[0].shape, to = call->out_type[0].shape;
    for (int64_t i = 0; i < call->count; i++) {
        int64_t at[CORNU_MAX_RANK];
        index_of(i, to, at);
        for (int axis = 0; axis < to.rank; axis++) at[axis] += starts[axis];
        call->out[0][i] = call->in[0][offset_of(at, from)];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__slice_rules = {
    slice_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, slice_reference,
};

/* pad: low[i] and high[i] elements of `value` before and after along each axis i. */
static CornuStatus pad_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_PAD *pad = &call->attributes->pad;
    out[0] = call->in[0];
    for (int i = 0; i < out[0].shape.rank; i++) {
        int64_t *extent = &out[0].shape.extent[i];
        if (pad->low[i] < 0 || pad->high[i] < 0 || pad->low[i] > INT64_MAX - *extent ||
            pad->high[i] > INT64_MAX - *extent - pad->low[i])
            return cornu__refuse(call, CORNU_ERR_SHAPE, "x",
                                 "a padding of %lld and %lld along axis %d, expected 0 or more",
                                 (long long)pad->low[i], (long long)pad->high[i], i);
        *extent += pad->low[i] + pad->high[i];
    }
    return CORNU_OK;
}

static CornuStatus pad_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_PAD *pad = &call->op.attributes->pad;
    CornuShape                 from = call->op.in[0].shape, to = call->out_type[0].shape;
    for (int64_t i = 0; i < call->count; i++) {
        int64_t at[CORNU_MAX_RANK];
        bool    inside = true;
        index_of(i, to, at);
        for (int axis = 0; axis < to.rank; axis++) {
            at[axis] -= pad->low[axis];
            inside &= at[axis] >= 0 && at[axis] < from.extent[axis];
        }
        call->out[0][i] = inside ? call->in[0][offset_of(at, from)] : pad->value;
    }
    return CORNU_OK;
}

const CornuOpRules cornu__pad_rules = {
    pad_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, pad_reference,
};

/* concat: operands joined along `axis`; they agree in dtype and in all other axes. */
static CornuStatus concat_type(const CornuOpCall *call, CornuType *out)
{
    int64_t axis = call->attributes->axis.axis;
    out[0] = call->in[0];
    if (axis < 0 || axis >= out[0].shape.rank)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "axis %lld, expected 0 to %d",
                             (long long)axis, out[0].shape.rank - 1);
    for (int i = 1; i < call->in_count; i++) {
        CornuType next = call->in[i];
        CornuText text;
        int64_t   extent = next.shape.rank == out[0].shape.rank ? next.shape.extent[axis] : 0;
        next.shape.extent[axis] = out[0].shape.extent[axis];
        if (!cornu_type_equal(next, out[0]))
            return cornu__refuse(call, next.dtype == out[0].dtype ? CORNU_ERR_SHAPE
                                                                  : CORNU_ERR_DTYPE,
                                 "x", "operand %d is %s, expected the same but for axis %lld", i,
                                 cornu_type_print(&text, call->in[i]), (long long)axis);
        if (extent > INT64_MAX - out[0].shape.extent[axis])
            return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "too many elements along axis %lld",
                                 (long long)axis);
        out[0].shape.extent[axis] += extent;
    }
    return CORNU_OK;
}

static CornuStatus concat_reference(const CornuReferenceCall *call)
{
    int64_t    axis = call->op.attributes->axis.axis;
    CornuShape to = call->out_type[0].shape;
    int64_t    first = 0; /* where along the axis operand i begins */
    for (int i = 0; i < call->op.in_count; i++) {
        CornuShape from = call->op.in[i].shape;
        for (int64_t j = 0; j < cornu_shape_count(from); j++) {
            int64_t at[CORNU_MAX_RANK];
            index_of(j, from, at);
            at[axis] += first;
            call->out[0][offset_of(at, to)] = call->in[i][j];
        }
        first += from.extent[axis];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__concat_rules = {
    concat_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, concat_reference,
};

/* flip: the elements along `axis` in the opposite order. */
static CornuStatus flip_type(const CornuOpCall *call, CornuType *out)
{
    const int64_t axis = call->attributes->axis.axis;
    out[0] = call->in[0];
    if (axis >= 0 && axis < out[0].shape.rank) return CORNU_OK;
    return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "axis %lld, expected 0 to %d",
                         (long long)axis, out[0].shape.rank - 1);
}

static CornuStatus flip_reference(const CornuReferenceCall *call)
{
    const int64_t    axis = call->op.attributes->axis.axis;
    const CornuShape shape = call->out_type[0].shape;
    for (int64_t i = 0; i < call->count; i++) {
        int64_t at[CORNU_MAX_RANK];
        index_of(i, shape, at);
        at[axis] = shape.extent[axis] - 1 - at[axis];
        call->out[0][i] = call->in[0][offset_of(at, shape)];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__flip_rules = {
    flip_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, flip_reference,
};

/*
 * pack: operands of the same dtype, flattened and joined to a vector of `extent` elements. Each
 * begins at the next multiple of `segment`; the rest is zeros.
 */
static CornuStatus pack_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_PACK *pack = &call->attributes->pack;
    int64_t end = 0;
    if (pack->segment < 1 || pack->extent < 0)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, "x", "segments of %lld elements in %lld, "
                             "expected at least 1 in at least 0", (long long)pack->segment,
                             (long long)pack->extent);
    for (int i = 0; i < call->in_count; i++) {
        CornuText text;
        if (call->in[i].dtype != call->in[0].dtype)
            return cornu__refuse(call, CORNU_ERR_DTYPE, "x", "operand %d is %s, expected %s", i,
                                 cornu_type_print(&text, call->in[i]),
                                 cornu_dtype_name(call->in[0].dtype));
        const int64_t start = cornu__pack_start(pack, end), count = cornu_type_count(call->in[i]);
        if (start > pack->extent || count > pack->extent - start)
            return cornu__refuse(call, CORNU_ERR_SHAPE, "x", "operand %d is %s, which does not fit "
                                 "into the rest of %lld elements", i,
                                 cornu_type_print(&text, call->in[i]), (long long)pack->extent);
        end = start + count;
    }
    out[0] = cornu_type(call->in[0].dtype, pack->extent);
    return CORNU_OK;
}

int64_t cornu__pack_start(const CornuAttributes_PACK *pack, int64_t end)
{
    const int64_t over = end % pack->segment;
    return over && end <= INT64_MAX - pack->segment ? end + pack->segment - over : end;
}

static CornuStatus pack_reference(const CornuReferenceCall *call)
{
    int64_t end = 0;
    for (int64_t i = 0; i < call->count; i++) call->out[0][i] = 0.0;
    for (int i = 0; i < call->op.in_count; i++) {
        const int64_t start = cornu__pack_start(&call->op.attributes->pack, end);
        end = start + cornu_type_count(call->op.in[i]);
        for (int64_t j = start; j < end; j++) call->out[0][j] = call->in[i][j - start];
    }
    return CORNU_OK;
}

const CornuOpRules cornu__pack_rules = {
    pack_type, CORNU_NO_FLOPS, CORNU_PRIMITIVE, pack_reference,
};
