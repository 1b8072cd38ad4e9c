#include "recurrent_internal.h"

typedef struct {
    CornuLayer               base;
    CornuBidirectionalConfig config;   /* its layers are the inner ones */
} Bidirectional;

enum { FORWARD, BACKWARD };

static const char *const merges[] = { "concat", "sum", "mul", "ave" };

const char *cornu_merge_name(CornuMerge merge)
{
    return (unsigned)merge < sizeof merges / sizeof *merges ? merges[merge] : NULL;
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    CORNU__TRY(cornu__layer_build_inner(layer, FORWARD, input));
    CORNU__TRY(cornu__layer_build_inner(layer, BACKWARD, input));
    CornuText        a, b;
    const CornuShape forward = layer->inner[FORWARD]->output;
    const CornuShape backward = layer->inner[BACKWARD]->output;
    const bool concat = ((Bidirectional *)layer)->config.merge_mode == CORNU_MERGE_CONCAT;
    if (concat || cornu_shape_equal(forward, backward)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "forward gives %s, backward %s; expected the same to merge",
                       cornu_shape_print(&a, forward), cornu_shape_print(&b, backward));
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const Bidirectional *self = (Bidirectional *)layer;
    CornuTensor *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = cornu_op_convert(cornu_layer_call(layer->inner[i], call, x), layer->result);
    if (((CornuRecurrent *)layer->inner[BACKWARD])->config.return_sequences)
        y[BACKWARD] = cornu_op_flip(y[BACKWARD], 1);
    if (!y[FORWARD] || !y[BACKWARD]) return NULL;
    switch (self->config.merge_mode) {
    case CORNU_MERGE_CONCAT: return cornu_op_concat(y, 2, cornu_tensor_shape(y[0]).rank - 1);
    case CORNU_MERGE_SUM:    return cornu_op_add(y[0], y[1]);
    case CORNU_MERGE_MUL:    return cornu_op_multiply(y[0], y[1]);
    case CORNU_MERGE_AVE:    break;
    }
    return cornu_op_scale(cornu_op_add(y[0], y[1]), 0.5);
}

static CornuTensor *mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu_layer_mask(layer->inner[FORWARD], call, x);
}

static CornuLayer *from(const void *config) { return cornu_bidirectional_from(config); }

static const CornuField fields[] = {
    { "layer", CORNU_FIELD_LAYER, offsetof(CornuBidirectionalConfig, layer) },
    { "backward_layer", CORNU_FIELD_LAYER, offsetof(CornuBidirectionalConfig, backward_layer) },
    { "merge_mode", CORNU_FIELD_MERGE, offsetof(CornuBidirectionalConfig, merge_mode) },
    { 0 },
};

static const char *const folders[] = { "forward_layer", "backward_layer", NULL };

const CornuLayerClass cornu__bidirectional_class = {
    .class_name = "Bidirectional", .size = sizeof(Bidirectional), .build = build, .call = call,
    .mask = mask, .fields = fields, .config_size = sizeof(CornuBidirectionalConfig),
    .config_offset = offsetof(Bidirectional, config), .from = from, .folders = folders,
};

/* Forward and backward differ in their direction, and in nothing that shapes their results. */
static CornuStatus check_pair(const char *name, const CornuRecurrentConfig *forward,
                              const CornuRecurrentConfig *backward)
{
    if (forward->go_backwards == backward->go_backwards)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .go_backwards is %s in both layers, expected "
                           "true in one", name, forward->go_backwards ? "true" : "false");
    if (forward->stateful != backward->stateful)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .stateful differs in .layer and "
                           ".backward_layer, expected the same", name);
    if (forward->return_sequences != backward->return_sequences)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .return_sequences differs in .layer and "
                           ".backward_layer, expected the same", name);
    return CORNU_OK;
}

static CornuStatus check(const CornuBidirectionalConfig *config, const char *name)
{
    if (!config->layer)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layer is required", name);
    const CornuLayer *layers[] = { config->layer, config->backward_layer };
    for (int i = 0; i < 2; i++)
        if (layers[i] && !cornu__is_recurrent(layers[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is of class %s, expected LSTM, GRU or "
                               "SimpleRNN", name, i ? "backward_layer" : "layer",
                               layers[i]->kind->class_name);
    for (int i = 0; i < 2; i++)
        if (layers[i] && cornu_layer_outputs(layers[i]) > 1)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .%s has .return_state, which is not "
                               "available in this version", name, i ? "backward_layer" : "layer");
    if (cornu_merge_name(config->merge_mode)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .merge_mode is %d, expected 0 to 3", name,
                       (int)config->merge_mode);
}

/* The backward layer that was given, or one like the forward layer. */
static CornuLayer *backward_of(const CornuBidirectionalConfig *config)
{
    if (config->backward_layer) return config->backward_layer;
    CornuRecurrentConfig like = ((CornuRecurrent *)config->layer)->config;
    like.go_backwards = true;
    return cornu__layer_copy(config->layer, &like);
}

CornuLayer *cornu_bidirectional_from(const CornuBidirectionalConfig *config)
{
    const char *name = config->name ? config->name : "bidirectional";
    CornuLayer *layer = NULL, *inner[2] = { config->layer, config->backward_layer };
    if (cornu_error_pending() || check(config, name) || !(inner[BACKWARD] = backward_of(config)))
        goto fail;
    CornuRecurrentConfig *of[2];
    for (int i = 0; i < 2; i++) {
        of[i] = &((CornuRecurrent *)inner[i])->config;
        of[i]->zero_output_for_mask = of[i]->return_sequences;
    }
    if (check_pair(name, of[FORWARD], of[BACKWARD])) goto fail;
    layer = cornu_layer_create(&cornu__bidirectional_class, config->name, config->dtype);
    if (!layer) goto fail;
    cornu__layer_wrap(layer, inner[FORWARD], "forward_");
    cornu__layer_wrap(layer, inner[BACKWARD], config->backward_layer ? "" : "backward_");
    ((Bidirectional *)layer)->config = (CornuBidirectionalConfig){
        .layer = inner[FORWARD], .backward_layer = inner[BACKWARD],
        .merge_mode = config->merge_mode,
    };
    layer->frozen = config->frozen;
    return layer;
fail:
    for (int i = 0; i < 2; i++) cornu_layer_free(inner[i]);
    return cornu__null();
}
