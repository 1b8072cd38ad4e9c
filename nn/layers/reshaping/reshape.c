/* Flatten and Reshape. */
#include "../layer_internal.h"

/* ---- Flatten ---- */

static CornuTensor *flatten_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    int64_t          count = 1;
    for (int i = 1; i < shape.rank; i++) count *= shape.extent[i];
    return cornu_op_reshape(x, cornu_shape(shape.extent[0], count));
}

typedef CORNU__LAYER(CornuFlattenConfig) Flatten;

static const CornuField flatten_fields[] = {
    { "data_format", CORNU_FIELD_DATA_FORMAT, offsetof(CornuFlattenConfig, data_format) },
    { 0 },
};

const CornuLayerClass cornu__flatten_class = {
    .class_name = "Flatten", .keeps_integers = true, .size = sizeof(Flatten), .call = flatten_call,
    .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(flatten_fields, Flatten, NULL) },
};

CORNU__CONSTRUCTOR(flatten, CornuFlattenConfig)

/* ---- Reshape ---- */

typedef CORNU__LAYER(CornuReshapeConfig) Reshape;

static CornuShape target(const CornuLayer *layer, int64_t batch)
{
    const int64_t *extents = ((const Reshape *)layer)->config.target_shape;
    CornuShape     shape = { .rank = 1, .extent = { batch } };
    for (; shape.rank < CORNU_MAX_RANK && extents[shape.rank - 1]; shape.rank++)
        shape.extent[shape.rank] = extents[shape.rank - 1];
    return shape;
}

/* Checked here, as the op's message would have the batch of the template. */
static CornuStatus reshape_build(CornuLayer *layer, CornuShape input)
{
    const CornuShape to = target(layer, CORNU_NONE);
    int64_t          have = 1, want = 1;
    bool             open = false;
    for (int i = 1; i < input.rank; i++) {
        if (input.extent[i] == CORNU_NONE) return CORNU_OK;   /* checked for each batch */
        have *= input.extent[i];
    }
    for (int i = 1; i < to.rank; i++) {
        open |= to.extent[i] == CORNU_NONE;
        if (to.extent[i] > 0) want *= to.extent[i];
    }
    CornuText a, b;
    if (open ? have % want != 0 : have != want)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, which cannot become %s",
                           cornu_shape_print(&a, input), cornu_shape_print(&b, to));
    return CORNU_OK;
}

static CornuTensor *reshape_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    return x ? cornu_op_reshape(x, target(layer, cornu_tensor_shape(x).extent[0])) : NULL;
}

static CornuStatus reshape_resolve(CornuLayer *layer)
{
    const CornuReshapeConfig *config = &((Reshape *)layer)->config;
    const char               *name = cornu_layer_name(layer);
    int                       open = 0;
    for (int i = 0; i < CORNU_MAX_RANK && config->target_shape[i]; i++) {
        const int64_t extent = config->target_shape[i];
        open += extent == CORNU_NONE;
        if ((extent < 1 && extent != CORNU_NONE) || extent > INT32_MAX || open > 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .target_shape[%d] is %lld; expected "
                               "extents from 1 to %d, one of them CORNU_NONE at most", name, i,
                               (long long)extent, INT32_MAX);
    }
    if (config->target_shape[0] && !config->target_shape[CORNU_MAX_RANK - 1]) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .target_shape has %s extents, expected 1 to %d",
                       name, config->target_shape[0] ? "too many" : "no", CORNU_MAX_RANK - 1);
}

static const CornuField fields[] = {
    { "target_shape", CORNU_FIELD_SHAPE, offsetof(CornuReshapeConfig, target_shape) },
    { 0 },
};

const CornuLayerClass cornu__reshape_class = {
    .class_name = "Reshape", .keeps_integers = true, .size = sizeof(Reshape),
    .build = reshape_build, .call = reshape_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Reshape, reshape_resolve) },
};

CORNU__CONSTRUCTOR(reshape, CornuReshapeConfig)
