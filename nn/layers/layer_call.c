/* Building and calling layers; the losses that they add. layer_trace.c has the types of results. */
#include "layer_internal.h"

#include "../../device/device_internal.h"
#include "../../device/mesh/layout_map_internal.h"
#include "../../tensor/tensor_internal.h"

/* ---- Losses ---- */

CornuStatus cornu_layer_add_loss(CornuLayer *layer, const CornuCall *call, CornuTensor *loss)
{
    const CornuType wanted = cornu_scalar(CORNU_F32);
    CornuText       text;
    if (!loss) return cornu_error_status();
    if (!cornu_type_equal(cornu_tensor_type(loss), wanted)) {
        cornu__fail_null(CORNU_ERR_DTYPE, "%s: the loss that it adds is %s, expected a scalar f32 "
                         "under any policy; use cornu_op_convert", cornu_layer_name(layer),
                         cornu_type_print(&text, cornu_tensor_type(loss)));
        return cornu_error_status();
    }
    if (call->loss) *call->loss = *call->loss ? cornu_op_add(*call->loss, loss) : loss;
    return CORNU_OK;
}

/* Of what is added once a batch, the part of a shard, or of a microbatch: that of its rows. */
static CornuTensor *part_of_batch(const CornuCall *call, CornuTensor *once)
{
    const int shards = cornu_graph_shards(call->graph);
    if (!call->microbatch || !once) return cornu_op_scale(once, 1.0 / shards);
    CornuTensor *count = cornu_op_convert(call->count, CORNU_F32);
    return cornu_op_multiply(once, cornu_op_divide(count,
                                                   cornu_op_convert(call->total, CORNU_F32)));
}

CornuStatus cornu__layer_penalize_weights(CornuLayer *layer, const CornuCall *call)
{
    CornuStatus status = cornu_graph_scope(call->graph, "regularizer");
    for (int i = 0; i < layer->weight_count && call->loss && !call->penalized && !status; i++) {
        const CornuWeight *weight = layer->weights[i];
        if (!weight->regularizer.kind || !cornu_layer_trains(layer, weight)) continue;
        CornuTensor *w = cornu_layer_read_as(layer, call, i, CORNU_F32);
        CornuTensor *penalty = cornu_regularizer_call(&weight->regularizer, w);
        status = cornu_layer_add_loss(layer, call, part_of_batch(call, penalty));
    }
    cornu_graph_scope(call->graph, NULL);
    return status;
}

/* The valid rows of y (B, …), divided by their number on all shards. */
static CornuStatus penalize_activity(CornuLayer *layer, const CornuCall *call, CornuTensor *y)
{
    if (!call->loss || !layer->activity_regularizer.kind) return CORNU_OK;
    CornuShape rows = cornu_tensor_shape(y);
    for (int i = 1; i < rows.rank; i++) rows.extent[i] = 1;
    y = cornu_op_convert(y, CORNU_F32);
    CornuTensor *row = cornu_op_iota(call->graph, cornu_type_from(CORNU_I64, rows), 0);
    CornuTensor *valid = cornu_op_compare(row, CORNU_LESS, call->count);
    CornuTensor *kept = cornu_op_select(valid, y, cornu_op_constant_like(y, 0.0));
    CornuTensor *count = cornu_op_maximum(call->total, cornu_op_constant_like(call->total, 1.0));
    CornuTensor *penalty = cornu_regularizer_call(&layer->activity_regularizer, kept);
    return cornu_layer_add_loss(layer, call,
                                cornu_op_divide(penalty, cornu_op_convert(count, CORNU_F32)));
}

/* ---- Building and calling ---- */

/* Weights that the inner layer had before get paths within the layer, "rnn/cell/kernel"; those of
 * layers in it begin with its name, too. */
static CornuStatus extend_paths(const CornuLayer *layer, CornuLayer *inner)
{
    for (int i = 0; i < inner->weight_count && inner->outer == layer && !inner->built; i++) {
        CornuWeight *weight = inner->weights[i];
        char *path = cornu__layer_path(i < inner->own_count ? layer : inner, weight->path);
        if (!path) return CORNU_ERR_MEMORY;
        cornu__release(weight->path);
        weight->path = path;
    }
    return CORNU_OK;
}

CornuStatus cornu__layer_build_inner_many(CornuLayer *layer, int i, const CornuShape *in,
                                          int in_count)
{
    CornuLayer *inner = layer->inner[i];
    int         space = layer->weight_count;
    inner->seed = layer->seed;
    inner->generator = layer->generator + 1;
    for (int k = 0; k < i; k++) inner->generator += cornu__layer_generators(layer->inner[k]);
    CORNU__TRY(extend_paths(layer, inner));
    CORNU__TRY(cornu_layer_build_many(inner, in, in_count));
    CORNU__TRY(cornu__reserve(&layer->weights, &space, layer->weight_count, inner->weight_count,
                              sizeof(CornuWeight *)));
    for (int k = 0; k < inner->weight_count; k++)
        layer->weights[layer->weight_count++] = inner->weights[k];
    return CORNU_OK;
}

CornuStatus cornu__layer_build_inner(CornuLayer *layer, int i, CornuShape input)
{
    return cornu__layer_build_inner_many(layer, i, &input, 1);
}

/* The input of the activation is the output of the layer as it is without an activation. */
static CornuStatus build_activation(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuType types[CORNU_MAX_LAYER_TENSORS], out[CORNU_MAX_LAYER_TENSORS];
    if (!layer->activation) return CORNU_OK;
    for (int i = 0; i < in_count; i++) types[i] = cornu_type_from(CORNU_F32, in[i]);
    CORNU__TRY(cornu__layer_trace(layer, types, in_count, out));
    layer->activated = out[0].shape;
    return cornu__layer_build_inner(layer, layer->inner_count - 1, layer->activated);
}

CornuStatus cornu__layer_declare_weights(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const CornuLayerClass *kind = layer->kind;
    CornuShape             given[CORNU_MAX_LAYER_TENSORS];
    if (layer->built) return CORNU_OK;
    for (int i = 0; i < in_count; i++) given[i] = cornu__shape_channels_last(layer, in[i]);
    CornuStatus status = kind->build_many ? kind->build_many(layer, given, in_count)
                         : kind->build    ? kind->build(layer, given[0]) : CORNU_OK;
    if (!status) status = cornu__layer_add_lora(layer);
    if (!status) status = build_activation(layer, in, in_count);
    return cornu__fail_prefix(status, cornu_layer_name(layer));
}

CornuStatus cornu_layer_build_many(CornuLayer *layer, const CornuShape *in, int in_count)
{
    CornuType types[CORNU_MAX_LAYER_TENSORS], out[CORNU_MAX_LAYER_TENSORS];
    if (layer->built) return CORNU_OK;
    CORNU__TRY(cornu__layer_declare_weights(layer, in, in_count));
    for (int i = 0; i < in_count; i++) types[i] = cornu_type_from(CORNU_F32, in[i]);
    CORNU__TRY(cornu__layer_trace(layer, types, in_count, out));
    layer->output = out[0].shape;
    layer->output.extent[0] = CORNU_NONE;
    layer->built = true;
    return CORNU_OK;
}

CornuStatus cornu_layer_build(CornuLayer *layer, CornuShape input)
{
    return cornu_layer_build_many(layer, &input, 1);
}

/* Of a layer and its inner ones the outermost gives its name. */
static void begin_scope(const CornuLayer *layer, const CornuCall *call)
{
    if (!layer->outer) cornu_graph_scope(call->graph, cornu_layer_name(layer));
}

static void end_scope(const CornuLayer *layer, const CornuCall *call)
{
    if (!layer->outer) cornu_graph_scope(call->graph, NULL);
}

/* The input, converted to the dtype and the order of axes that the layer takes. */
static CornuTensor *converted(const CornuLayer *layer, CornuTensor *x)
{
    x = cornu__to_channels_last(layer, x);
    if (!x || layer->takes_integers || layer->kind->keeps_dtypes) return x;
    if (layer->kind->keeps_integers && !cornu_dtype_is_float(cornu_tensor_type(x).dtype)) return x;
    return cornu_op_convert(x, layer->compute);
}

/* Whether the layer has made all its outputs. A class that returns NULL and says nothing, or sets
 * some of its outputs only, fails here, so that no caller meets a NULL that nobody explains. */
static bool is_made(const CornuLayer *layer, CornuTensor *const *out)
{
    const int count = cornu_layer_outputs(layer);
    int       made = 0;
    while (made < count && out[made]) made++;
    if (made == count) return true;
    if (!cornu_error_pending())
        cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %s returned NULL as output %d",
                         cornu_layer_name(layer), layer->kind->class_name, made);
    return false;
}

/* All outputs for the inputs as they were given, and converted. */
static CornuTensor *compute(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                            CornuTensor *const *given, int in_count, CornuTensor **out)
{
    const CornuLayerClass *kind = layer->kind;
    CornuCall              own = *call;
    if (CORNU__FULL(call->past != NULL, false)) {
        if (kind->continues) return kind->continues(layer, call, given, in_count, out);
        if (cornu__layer_check_steps(layer, call, in, in_count)) return cornu__null();
        own.past = NULL;   /* inner layers see steps as this one passes them on */
    }
    return kind->call_many ? kind->call_many(layer, &own, given, in_count, out)
                           : kind->call(layer, &own, given[0]);
}

/* Sets all outputs and their masks; returns the first output. */
static CornuTensor *record(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                           int in_count, CornuTensor *const *masks, CornuTensor **out,
                           CornuTensor **out_masks)
{
    const CornuLayerClass *kind = layer->kind;
    CornuTensor *given[CORNU_MAX_LAYER_TENSORS];
    if (kind->call_masked)
        return kind->call_masked(layer, call, in, in_count, masks, out, out_masks);
    begin_scope(layer, call);
    for (int i = 0; i < in_count; i++)
        if (!(given[i] = converted(layer, in[i]))) {
            end_scope(layer, call);
            return NULL;
        }
    out_masks[0] = call->mask;
    if (kind->mask_many)
        out_masks[0] = kind->mask_many(layer, call, given, in_count, masks, out_masks);
    else if (kind->mask) out_masks[0] = kind->mask(layer, call, given[0]);
    for (int i = 1; kind->masked_outputs && i < kind->masked_outputs(layer); i++)
        out_masks[i] = out_masks[0];
    out[0] = compute(layer, call, in, given, in_count, out);
    const bool  made = is_made(layer, out);
    CornuStatus status = CORNU_OK;
    for (int i = 0; made && !status && i < cornu_layer_outputs(layer); i++) {
        out[i] = cornu__from_channels_last(layer, out[i]);
        status = penalize_activity(layer, call, out[i]);
    }
    end_scope(layer, call);
    return status ? cornu__null() : made ? out[0] : NULL;
}

/* Over a mesh an output may have a layout of its own. */
static CornuStatus lay_outputs(const CornuLayer *layer, const CornuCall *call,
                               CornuTensor *const *out)
{
    const CornuDevice *device = cornu_graph_device(call->graph);
    CornuLayout        layout;
    CornuStatus        status = CORNU_OK;
    if (!device->layouts) return CORNU_OK;
    char *path = cornu__layer_path(layer, "output");
    if (!path) return CORNU_ERR_MEMORY;
    for (int i = 0; i < cornu_layer_outputs(layer) && !status; i++) {
        status = cornu__device_output_layout(device, path, cornu_tensor_type(out[i]), &layout);
        if (!status && cornu__layout_axes(layout)) status = cornu__tensor_lay(out[i], layout);
    }
    cornu__release(path);
    return status;
}

CornuStatus cornu__layer_note_outputs(const CornuLayer *layer, const CornuDevice *device)
{
    if (!device->layouts) return CORNU_OK;
    char *path = cornu__layer_path(layer, "output");
    if (!path) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu__device_note_output(device, path);
    cornu__release(path);
    for (int i = 0; i < layer->inner_count && !status; i++)
        status = cornu__layer_note_outputs(layer->inner[i], device);
    return status;
}

int cornu_layer_outputs(const CornuLayer *layer)
{
    CORNU__NEED_OR(layer, 0);
    return layer->kind->outputs ? layer->kind->outputs(layer) : 1;
}

/* Whether outputs for these inputs, of all shards, have more elements than the threshold. */
static bool is_larger(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                      int in_count)
{
    CornuType    types[CORNU_MAX_LAYER_TENSORS], out[CORNU_MAX_LAYER_TENSORS];
    const int    shards = cornu_graph_shards(call->graph);
    const double rows = (double)cornu_tensor_shape(in[0]).extent[0] * shards;
    double       count = 0.0;
    for (int i = 0; i < in_count; i++) types[i] = cornu_tensor_type(in[i]);
    if (cornu__layer_trace(layer, types, in_count, out)) return false;   /* the call says why */
    for (int i = 0; i < cornu_layer_outputs(layer); i++) {
        double each = rows;
        for (int k = 1; k < out[i].shape.rank; k++)
            each *= out[i].shape.extent[k] < 0 ? 1.0 : (double)out[i].shape.extent[k];
        count += each;
    }
    return count > (double)cornu__remat_threshold(layer->remat);
}

/* Whether the backward pass computes the call again: by which layers Keras' rematerialized_call
 * chooses (keras/src/layers/layer.py, keras/src/ops/operation.py). */
static bool is_recomputed(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                          int in_count)
{
    if (!CORNU__FULL(layer->remat != NULL, false) || call->shapes_only) return false;
    switch (cornu__remat_mode(layer->remat)) {
    case CORNU_REMAT_FULL:           return true;
    case CORNU_REMAT_LARGER_THAN:    return is_larger(layer, call, in, in_count);
    case CORNU_REMAT_LIST_OF_LAYERS:
        return cornu__remat_lists(layer->remat, cornu_layer_name(layer));
    default: return false;
    }
}

CornuTensor *cornu__layer_call_masked(CornuLayer *layer, const CornuCall *call,
                                      CornuTensor *const *in, int in_count,
                                      CornuTensor *const *masks, CornuTensor **out,
                                      CornuTensor **out_masks)
{
    const CornuLayerClass *kind = layer->kind;
    const int most = kind->call_many || kind->call_masked ? CORNU_MAX_LAYER_TENSORS : 1;
    const int out_count = cornu_layer_outputs(layer);
    bool      complete = true;
    for (int i = 0; i < out_count; i++) out[i] = out_masks[i] = NULL;
    if (in_count < 1 || in_count > most)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: got %d tensors, expected 1 to %d",
                                cornu_layer_name(layer), in_count, most);
    for (int i = 0; i < in_count; i++) complete = complete && in[i];
    CornuCall own = *call;
    own.mask = masks[0];
    own.masks = masks;
    const bool recomputed = complete && is_recomputed(layer, call, in, in_count);
    if (recomputed) cornu_graph_remat_begin(call->graph);
    const bool made = complete && record(layer, &own, in, in_count, masks, out, out_masks);
    if (recomputed) cornu_graph_remat_end(call->graph);
    if (made) {
        if (!lay_outputs(layer, call, out)) return out[0];
        cornu__null();
    }
    for (int i = 0; i < out_count; i++) out[i] = NULL;
    return NULL;
}

CornuTensor *cornu_layer_call_many(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out,
                                   int out_count)
{
    CornuTensor *masks[CORNU_MAX_LAYER_TENSORS] = { call->mask };
    CornuTensor *out_masks[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < out_count; i++) out[i] = NULL;
    if (out_count != cornu_layer_outputs(layer))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: returns %d tensors, not %d",
                                cornu_layer_name(layer), cornu_layer_outputs(layer), out_count);
    return cornu__layer_call_masked(layer, call, in, in_count, masks, out, out_masks);
}

CornuTensor *cornu_layer_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuTensor *masks[] = { call->mask }, *out_masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor *out[CORNU_MAX_LAYER_TENSORS] = { NULL };
    return cornu__layer_call_masked(layer, call, &x, 1, masks, out, out_masks);
}

CornuTensor *cornu_layer_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    if (!x || !layer->kind->mask) return call->mask;
    begin_scope(layer, call);
    CornuTensor *mask = layer->kind->mask(layer, call, converted(layer, x));
    end_scope(layer, call);
    return mask;
}
