#include "../layer_internal.h"

/* Its layer is the inner layer. */
typedef CORNU__LAYER(CornuTimeDistributedConfig) TimeDistributed;

/* The shape of one step: (B, …) of (B, T, …). */
static CornuShape step_shape(CornuShape shape)
{
    CornuShape step = { .rank = shape.rank - 1, .extent = { CORNU_NONE } };
    for (int i = 1; i < step.rank; i++) step.extent[i] = shape.extent[i + 1];
    return step;
}

static CornuStatus time_distributed_build(CornuLayer *layer, CornuShape input)
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

/* Whether its training normalizes with statistics of the batch, of which it keeps averages. */
static bool has_statistics(const CornuLayer *layer)
{
    bool has = false;
    for (int i = 0; i < layer->own_count; i++) has |= layer->weights[i]->non_trainable;
    has = has && layer->kind->normalizes && !layer->frozen;
    for (int i = 0; i < layer->inner_count && !has; i++) has = has_statistics(layer->inner[i]);
    return has && !layer->frozen;
}

/* Whether a row of its results depends on others: then the rows of two steps must not meet. */
static bool mixes_rows(const CornuLayer *layer)
{
    bool mixes = layer->whole_batch;
    for (int i = 0; i < layer->inner_count && !mixes; i++) mixes = mixes_rows(layer->inner[i]);
    return mixes;
}

/* The call of the wrapped layer, of `steps` rows for each row of this call and with their mask. */
static CornuCall inner_call(const CornuCall *call, int64_t steps, CornuTensor *mask)
{
    CornuCall inner = *call;
    inner.mask = mask;
    inner.masks = NULL;
    inner.loss = NULL;   /* Keras ignores losses of the wrapped layer */
    inner.position = times(call->position, steps);
    return inner;
}

/* x (B, T, …), or a mask of it, as one batch of the rows of all steps: (B T, …). NULL stays. */
static CornuTensor *folded(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    CornuShape       rows = step_shape(shape);
    rows.extent[0] = shape.extent[0] * shape.extent[1];
    return cornu_op_reshape(x, rows);
}

/* One step of it, (B, …). */
static CornuTensor *step_of(CornuTensor *x, int64_t t)
{
    if (!x) return NULL;
    CornuShape    part = cornu_tensor_shape(x), rows = step_shape(part);
    const int64_t starts[CORNU_MAX_RANK] = { 0, t };
    rows.extent[0] = part.extent[0];
    part.extent[1] = 1;
    return cornu_op_reshape(cornu_op_slice(x, starts, part.extent), rows);
}

/* y (B, …) of one step, or of all (B T, …), with an axis of `steps` steps. */
static CornuTensor *with_steps(CornuTensor *y, int64_t rows, int64_t steps)
{
    if (!y) return NULL;
    const CornuShape each = cornu_tensor_shape(y);
    CornuShape       result = { .rank = 2, .extent = { rows, steps } };
    for (int i = 1; i < each.rank; i++) result.extent[result.rank++] = each.extent[i];
    return cornu_op_reshape(y, result);
}

/* Folds all steps of all rows into the rows of one batch. */
static CornuTensor *call_folded(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    const int64_t    steps = shape.extent[1];
    CornuCall        inner = inner_call(call, steps, folded(call->mask));
    inner.count = times(call->count, steps);
    inner.total = times(call->total, steps);
    return with_steps(cornu_layer_call(layer->inner[0], &inner, folded(x)), shape.extent[0], steps);
}

/* Each step is a batch of its own, as in Keras: its statistics move the averages in turn. */
static CornuTensor *call_apart(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    const int64_t    rows = shape.extent[0], steps = shape.extent[1];
    CornuTensor    **y = cornu__allocate((size_t)steps, sizeof *y), *all = NULL;
    if (!y) return cornu__null();
    for (int64_t t = 0; t < steps; t++) {
        CornuCall inner = inner_call(call, steps, step_of(call->mask, t));
        inner.position = cornu_op_shift(inner.position, (double)(t * rows));
        y[t] = with_steps(cornu_layer_call(layer->inner[0], &inner, step_of(x, t)), rows, 1);
        if (!y[t]) break;
        if (t + 1 == steps) all = cornu_op_concat(y, (int)steps, 1);
    }
    cornu__release(y);
    return all;
}

/* Whether the mask says something about each step: (B, T, …). */
static bool fits(CornuShape mask, CornuShape x)
{
    return mask.rank >= 2 && mask.extent[0] == x.extent[0] && mask.extent[1] == x.extent[1];
}

/* A mask (B, T) of steps with more axes than (B, T, C) leaves out whole rows of the wrapped layer,
 * which layers of sequences cannot: it is for the layers after this one. Keras fails there. */
static bool is_for_whole_steps(CornuShape mask, CornuShape x)
{
    return mask.rank == 2 && x.rank > 3;
}

static CornuTensor *time_distributed_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuCall own = *call;
    CornuText a, b;
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const CornuShape mask = call->mask ? cornu_tensor_shape(call->mask) : shape;
    if (!fits(mask, shape))
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: its input is %s and the mask %s, expected "
                                "one (B, T, …)", cornu_layer_name(layer),
                                cornu_shape_print(&a, shape), cornu_shape_print(&b, mask));
    if (is_for_whole_steps(mask, shape)) own.mask = NULL;
    return (cornu__in_training(&own) && has_statistics(layer->inner[0])) ||
                   mixes_rows(layer->inner[0])
               ? call_apart(layer, &own, x) : call_folded(layer, &own, x);
}

static CornuLayer *time_distributed_from(const void *config)
{
    return cornu_time_distributed_from(config);
}

static const CornuField fields[] = {
    { "layer", CORNU_FIELD_LAYER, offsetof(CornuTimeDistributedConfig, layer) },
    { 0 },
};

static const char *const folders[] = { "layer", NULL };

const CornuLayerClass cornu__time_distributed_class = {
    .class_name = "TimeDistributed", .size = sizeof(TimeDistributed),
    .build = time_distributed_build, .call = time_distributed_call,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, TimeDistributed, time_distributed_from),
                                       .folders = folders },
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
