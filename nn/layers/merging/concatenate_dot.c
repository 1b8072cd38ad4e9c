/* Concatenate and Dot. Source: keras/src/layers/merging/concatenate.py, dot.py. */
#include "../../../tensor/functions/functions_internal.h"
#include "../layer_internal.h"

/* Negative axes count from the last; 0, the batch, for an axis that does not exist. */
static int resolved(int64_t axis, int rank)
{
    const int64_t from_front = axis < 0 ? axis + rank : axis;
    return from_front > 0 && from_front < rank ? (int)from_front : 0;
}

/* ---- Concatenate ---- */

typedef CORNU__LAYER(CornuConcatenateConfig) Concatenate;

static int concat_axis(const CornuLayer *layer, int rank)
{
    return resolved(((const Concatenate *)layer)->config.axis, rank);
}

static CornuStatus concat_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const int axis = concat_axis(layer, in[0].rank);
    CornuText a, b;
    if (!axis)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s has no axis %lld to concatenate along",
                           cornu_shape_print(&a, in[0]),
                           (long long)((Concatenate *)layer)->config.axis);
    for (int i = 1; i < in_count; i++) {
        CornuShape like = in[i];
        if (like.rank == in[0].rank) like.extent[axis] = in[0].extent[axis];
        if (!cornu_shape_equal(like, in[0]))
            return cornu__fail(CORNU_ERR_SHAPE, "%s and %s cannot be concatenated along axis %d, "
                               "expected the same extents along the others",
                               cornu_shape_print(&a, in[0]), cornu_shape_print(&b, in[i]), axis);
    }
    return CORNU_OK;
}

static CornuTensor *concat_call(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                                int in_count, CornuTensor **out)
{
    (void)call, (void)out;
    return cornu_op_concat(in, in_count, concat_axis(layer, cornu_tensor_shape(in[0]).rank));
}

/* A mask (B, T) with all steps of x valid. */
static CornuTensor *all_true(const CornuCall *call, CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    return cornu_op_constant(call->graph, cornu_type(CORNU_BOOL, shape.extent[0], shape.extent[1]),
                             1.0);
}

/* Along the time axis, masks are concatenated too; along the last axis, a step is valid if it is in
 * any input. All steps of an input without a mask are valid. */
static CornuTensor *concat_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                                int in_count, CornuTensor *const *masks, CornuTensor **out_masks)
{
    (void)out_masks;
    const int    rank = cornu_tensor_shape(in[0]).rank, axis = concat_axis(layer, rank);
    CornuTensor *each[CORNU_MAX_LAYER_TENSORS];
    bool         masked = false;
    for (int i = 0; i < in_count; i++) masked |= masks[i] != NULL;
    if (!masked || rank < 3 || (axis != 1 && axis != rank - 1)) return NULL;
    for (int i = 0; i < in_count; i++) each[i] = masks[i] ? masks[i] : all_true(call, in[i]);
    if (axis == 1) return cornu_op_concat(each, in_count, 1);
    CornuTensor *any = each[0];
    for (int i = 1; i < in_count; i++) any = cornu_op_select(any, any, each[i]);
    return any;
}

static CornuStatus concat_resolve(CornuLayer *layer)
{
    int64_t *axis = &((Concatenate *)layer)->config.axis;
    if (!*axis) *axis = -1;
    return CORNU_OK;
}

static const CornuField concat_fields[] = {
    { "axis", CORNU_FIELD_INTEGER, offsetof(CornuConcatenateConfig, axis) },
    { 0 },
};

const CornuLayerClass cornu__concatenate_class = {
    .class_name = "Concatenate", .keeps_integers = true, .size = sizeof(Concatenate),
    .build_many = concat_build, .call_many = concat_call, .mask_many = concat_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(concat_fields, Concatenate, concat_resolve) },
};

CORNU__CONSTRUCTOR(concatenate, CornuConcatenateConfig)

/* ---- Dot ---- */

typedef CORNU__LAYER(CornuDotConfig) Dot;   /* with both_axes set */

static int dot_axis(const CornuLayer *layer, int i, int rank)
{
    return resolved(((const Dot *)layer)->config.both_axes[i], rank);
}

static CornuStatus dot_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    if (in_count != 2)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected 2", in_count);
    const int a = dot_axis(layer, 0, in[0].rank), b = dot_axis(layer, 1, in[1].rank);
    CornuText first, second;
    if (a && b && in[0].extent[a] == in[1].extent[b]) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s and %s have no dot products along axes %d and %d, "
                       "expected equal extents there", cornu_shape_print(&first, in[0]),
                       cornu_shape_print(&second, in[1]), a, b);
}

/* (B, rest, n) with the given axis last and all others folded into one. */
static CornuTensor *with_last(CornuTensor *x, int axis)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    int              axes[CORNU_MAX_RANK], count = 0;
    for (int i = 0; i < shape.rank; i++)
        if (i != axis) axes[count++] = i;
    axes[count] = axis;
    const CornuShape to = cornu_shape(shape.extent[0], CORNU_NONE, shape.extent[axis]);
    return cornu_op_reshape(cornu_op_transpose(x, axes), to);
}

static CornuTensor *dot_call(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                             int in_count, CornuTensor **out)
{
    CornuTensor *x[2];
    CornuShape   result = { .rank = 1 };
    (void)call, (void)in_count, (void)out;
    for (int i = 0; i < 2; i++) {
        const CornuShape shape = cornu_tensor_shape(in[i]);
        const int        axis = dot_axis(layer, i, shape.rank);
        result.extent[0] = shape.extent[0];
        for (int k = 1; k < shape.rank && result.rank < CORNU_MAX_RANK; k++)
            if (k != axis) result.extent[result.rank++] = shape.extent[k];
        x[i] = ((Dot *)layer)->config.normalize ? cornu__unit_norm(in[i], INT64_C(1) << axis)
                                                : in[i];
        x[i] = with_last(x[i], axis);
    }
    if (result.rank == 1) result.extent[result.rank++] = 1;
    return cornu_op_reshape(cornu_op_matmul_transposed(x[0], false, x[1], true), result);
}

static CornuTensor *dot_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                             int in_count, CornuTensor *const *masks, CornuTensor **out_masks)
{
    (void)layer, (void)call, (void)in, (void)in_count, (void)masks, (void)out_masks;
    return NULL;
}

static CornuStatus dot_resolve(CornuLayer *layer)
{
    CornuDotConfig *config = &((Dot *)layer)->config;
    const char     *name = cornu_layer_name(layer);
    int64_t        *both = config->both_axes;
    if (config->axes && (both[0] || both[1]))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .axes and .both_axes are given, expected "
                           "one", name);
    if (config->axes) both[0] = both[1] = config->axes;
    config->axes = 0;
    if (both[0] && both[1]) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .axes is required; axis 0 is the batch", name);
}

static const CornuField dot_fields[] = {
    { "axes", CORNU_FIELD_PAIR, offsetof(CornuDotConfig, both_axes) },
    { "normalize", CORNU_FIELD_FLAG, offsetof(CornuDotConfig, normalize) },
    { 0 },
};

const CornuLayerClass cornu__dot_class = {
    .class_name = "Dot", .size = sizeof(Dot), .build_many = dot_build, .call_many = dot_call,
    .mask_many = dot_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(dot_fields, Dot, dot_resolve) },
};

CORNU__CONSTRUCTOR(dot, CornuDotConfig)
