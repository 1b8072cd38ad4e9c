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

/* Whether the layer or one inside computes statistics of a batch. */
static bool normalizes(const CornuLayer *layer)
{
    if (layer->kind->normalizes) return true;
    for (int i = 0; i < layer->inner_count; i++)
        if (normalizes(layer->inner[i])) return true;
    return false;
}

/* One step, t, of the rows. */
static CornuTensor *call_step(CornuLayer *layer, const CornuCall *call, CornuTensor *x, int64_t t)
{
    const CornuShape shape = cornu_tensor_shape(x);
    CornuShape       rows = step_shape(shape), extents = shape;
    int64_t          starts[CORNU_MAX_RANK] = { 0, t };
    CornuCall        inner = *call;
    rows.extent[0] = shape.extent[0];
    extents.extent[1] = 1;
    inner.mask = NULL;
    inner.loss = NULL;
    inner.position = cornu_op_shift(times(call->position, shape.extent[1]),
                                    (double)(t * shape.extent[0]));
    CornuTensor *step = cornu_op_reshape(cornu_op_slice(x, starts, extents.extent), rows);
    CornuTensor *y = cornu_layer_call(layer->inner[0], &inner, step);
    if (!y) return NULL;
    const CornuShape each = cornu_tensor_shape(y);
    CornuShape       result = { .rank = each.rank + 1, .extent = { each.extent[0], 1 } };
    for (int i = 1; i < each.rank; i++) result.extent[i + 1] = each.extent[i];
    return cornu_op_reshape(y, result);
}

/* A call for each step, as Keras makes them: each has statistics of its own, and moves the moving
 * ones. Source: keras/src/layers/rnn/time_distributed.py. */
static CornuTensor *call_steps(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const int64_t steps = cornu_tensor_shape(x).extent[1];
    CornuTensor **each = cornu__allocate((size_t)steps, sizeof *each);
    bool          made = each != NULL;
    for (int64_t t = 0; t < steps && made; t++)
        made = (each[t] = call_step(layer, call, x, t)) != NULL;
    CornuTensor *y = made ? cornu_op_concat(each, (int)steps, 1) : cornu__null();
    cornu__release(each);
    return y;
}

/* Folds all steps of all rows into the rows of one batch. */
static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x) return NULL;
    if (call->training && normalizes(layer->inner[0])) return call_steps(layer, call, x);
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
