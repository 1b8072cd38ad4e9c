#include "../layer_internal.h"

typedef struct {
    CornuLayer                 base;
    CornuTimeDistributedConfig config;   /* its layer is the inner layer */
} TimeDistributed;

/* The shape of one step: (B, …) of (B, T, …). */
static CornuShape step_shape(CornuShape shape)
{
    CornuShape step = { .rank = shape.rank - 1, .extent = { CORNU_NONE } };
    for (int i = 1; i < step.rank; i++) step.extent[i] = shape.extent[i + 1];
    return step;
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    CornuText text;
    if (input.rank < 3)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, T, …)",
                           cornu_shape_print(&text, input));
    return cornu__layer_build_inner(layer, 0, step_shape(input));
}

static CornuTensor *times(CornuTensor *number, int64_t steps)
{
    return cornu_op_scale(number, (double)steps);
}

/* Folds all steps of all rows into the rows of one batch. */
static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    CornuShape       rows = step_shape(shape), result = { .rank = 2 };
    rows.extent[0] = shape.extent[0] * shape.extent[1];
    CornuCall inner = *call;
    inner.mask = NULL;
    inner.loss = NULL;   /* Keras ignores losses of the wrapped layer */
    inner.count = times(call->count, shape.extent[1]);
    inner.total = times(call->total, shape.extent[1]);
    inner.position = times(call->position, shape.extent[1]);
    CornuTensor *y = cornu_layer_call(layer->inner[0], &inner, cornu_op_reshape(x, rows));
    if (!y) return NULL;
    const CornuShape each = cornu_tensor_shape(y);
    result.extent[0] = shape.extent[0];
    result.extent[1] = shape.extent[1];
    for (int i = 1; i < each.rank; i++) result.extent[result.rank++] = each.extent[i];
    return cornu_op_reshape(y, result);
}

static CornuLayer *from(const void *config) { return cornu_time_distributed_from(config); }

static const CornuField fields[] = {
    { "layer", CORNU_FIELD_LAYER, offsetof(CornuTimeDistributedConfig, layer) },
    { 0 },
};

static const char *const folders[] = { "layer", NULL };

const CornuLayerClass cornu__time_distributed_class = {
    .class_name = "TimeDistributed", .size = sizeof(TimeDistributed), .build = build,
    .call = call, .fields = fields, .config_size = sizeof(CornuTimeDistributedConfig),
    .config_offset = offsetof(TimeDistributed, config), .from = from, .folders = folders,
};

CornuLayer *cornu_time_distributed_from(const CornuTimeDistributedConfig *config)
{
    const char *name = config->name ? config->name : "time_distributed";
    CornuLayer *layer = NULL, *inner = config->layer;
    if (cornu__refused()) goto fail;
    if (!inner) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layer is required", name);
        goto fail;
    }
    if (inner->kind->normalizes) {
        cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .layer is of class %s, which in Keras computes "
                    "statistics per step; that is not available in this version", name,
                    inner->kind->class_name);
        goto fail;
    }
    if (cornu_layer_outputs(inner) > 1) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layer gives %d tensors, expected 1", name,
                    cornu_layer_outputs(inner));
        goto fail;
    }
    if (cornu__check_depth(name, inner)) goto fail;
    layer = cornu_layer_create(&cornu__time_distributed_class, config->name, config->dtype);
    if (!layer) goto fail;
    cornu__layer_add_inner(layer, inner, "");
    layer->takes_integers = inner->takes_integers;
    ((TimeDistributed *)layer)->config.layer = inner;
    layer->frozen = config->frozen;
    return layer;
fail:
    cornu__layer_free_unowned(inner);
    return cornu__null();
}
