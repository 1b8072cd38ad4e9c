#include "../../fields/field_internal.h"
#include "recurrent_internal.h"

/* Its layers are the inner layers. */
typedef CORNU__LAYER(CornuBidirectionalConfig) Bidirectional;

enum { FORWARD, BACKWARD };

const CornuFieldKind cornu_field_merge = {
    .name = "merge", CORNU__FIELD_OF_WORDS(CornuMerge), .takes_null = true,
    .null = CORNU_MERGE_NONE,
    .words = { [CORNU_MERGE_CONCAT] = "concat", [CORNU_MERGE_SUM] = "sum",
               [CORNU_MERGE_MUL] = "mul", [CORNU_MERGE_AVE] = "ave" },
};

const char *cornu_merge_name(CornuMerge merge)
{
    return cornu__field_word(CORNU_FIELD_MERGE, (int)merge);
}

static CornuStatus bidirectional_build(CornuLayer *layer, CornuShape input)
{
    CORNU__TRY(cornu__layer_build_inner(layer, FORWARD, input));
    CORNU__TRY(cornu__layer_build_inner(layer, BACKWARD, input));
    CornuText        a, b;
    const CornuShape forward = layer->inner[FORWARD]->output;
    const CornuShape backward = layer->inner[BACKWARD]->output;
    const CornuMerge merge = ((Bidirectional *)layer)->config.merge_mode;
    if (merge == CORNU_MERGE_CONCAT || merge == CORNU_MERGE_NONE ||
        cornu_shape_equal(forward, backward))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "forward gives %s, backward %s; expected the same shape",
                       cornu_shape_print(&a, forward), cornu_shape_print(&b, backward));
}

static CornuTensor *merged(CornuMerge merge, CornuTensor *const y[2])
{
    if (!y[FORWARD] || !y[BACKWARD]) return NULL;
    switch (merge) {
    case CORNU_MERGE_CONCAT: return cornu_op_concat(y, 2, cornu_tensor_shape(y[0]).rank - 1);
    case CORNU_MERGE_SUM:    return cornu_op_add(y[0], y[1]);
    case CORNU_MERGE_MUL:    return cornu_op_multiply(y[0], y[1]);
    case CORNU_MERGE_AVE:    return cornu_op_scale(cornu_op_add(y[0], y[1]), 0.5);
    case CORNU_MERGE_NONE:   break;
    }
    return y[FORWARD];
}

/* The number of outputs before the states. */
static int results(const CornuLayer *layer)
{
    return ((const Bidirectional *)layer)->config.merge_mode == CORNU_MERGE_NONE ? 2 : 1;
}

static int outputs(const CornuLayer *layer)
{
    return results(layer) + 2 * (cornu_layer_outputs(layer->inner[FORWARD]) - 1);
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    const int    given = (in_count - 1) / 2, states = cornu_layer_outputs(layer->inner[0]) - 1;
    CornuTensor *y[2];
    if (in_count != 1 + 2 * given)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d initial states, expected as many for "
                                "both layers", cornu_layer_name(layer), in_count - 1);
    for (int i = 0; i < 2; i++) {
        CornuTensor *own[CORNU_MAX_LAYER_TENSORS] = { in[0] }, *made[CORNU_MAX_LAYER_TENSORS];
        for (int k = 1; k <= given; k++) own[k] = in[i * given + k];
        cornu_layer_call_many(layer->inner[i], call, own, 1 + given, made, 1 + states);
        for (int k = 0; k < states; k++) out[results(layer) + i * states + k] = made[1 + k];
        y[i] = cornu_op_convert(made[0], layer->result);
    }
    if (*cornu__over_time(layer->inner[BACKWARD], "return_sequences"))
        y[BACKWARD] = cornu_op_flip(y[BACKWARD], 1);
    if (results(layer) == 2) out[1] = y[BACKWARD];
    return out[0] = merged(((Bidirectional *)layer)->config.merge_mode, y);
}

static CornuTensor *mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu_layer_mask(layer->inner[FORWARD], call, x);
}

static CornuLayer *bidirectional_from(const void *config)
{
    return cornu_bidirectional_from(config);
}

static const CornuField fields[] = {
    { "layer", CORNU_FIELD_LAYER, offsetof(CornuBidirectionalConfig, layer) },
    { "backward_layer", CORNU_FIELD_LAYER, offsetof(CornuBidirectionalConfig, backward_layer) },
    { "merge_mode", CORNU_FIELD_MERGE, offsetof(CornuBidirectionalConfig, merge_mode) },
    { 0 },
};

static const char *const folders[] = { "forward_layer", "backward_layer", NULL };

const CornuLayerClass cornu__bidirectional_class = {
    .class_name = "Bidirectional", .size = sizeof(Bidirectional), .build = bidirectional_build,
    .call_many = call_many, .outputs = outputs, .mask = mask, .masked_outputs = results,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, Bidirectional, bidirectional_from),
                                       .folders = folders, .operands = "initial_state*" },
};

/* Forward and backward must differ in direction and agree in whatever shapes their outputs. */
static CornuStatus check_pair(const char *name, CornuLayer *const layers[2])
{
    static const char *const common[] = { "stateful", "return_sequences", "return_state" };
    const bool forward = *cornu__over_time(layers[FORWARD], "go_backwards");
    if (forward == *cornu__over_time(layers[BACKWARD], "go_backwards"))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .go_backwards is %s in both layers, expected "
                           "true in one", name, forward ? "true" : "false");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (*cornu__over_time(layers[FORWARD], common[i]) !=
            *cornu__over_time(layers[BACKWARD], common[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s differs in .layer and "
                               ".backward_layer, expected the same", name, common[i]);
    return CORNU_OK;
}

static CornuStatus bidirectional_check(const CornuBidirectionalConfig *config, const char *name)
{
    if (!config->layer)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layer is required", name);
    const CornuLayer *layers[] = { config->layer, config->backward_layer };
    for (int i = 0; i < 2; i++)
        if (layers[i] && !cornu__is_recurrent(layers[i]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is of class %s, expected RNN, LSTM, "
                               "GRU or SimpleRNN", name, i ? "backward_layer" : "layer",
                               layers[i]->kind->class_name);
    if (cornu_merge_name(config->merge_mode) || config->merge_mode == CORNU_MERGE_NONE)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .merge_mode is %d, expected 0 to 4", name,
                       (int)config->merge_mode);
}

/* The given backward layer, or a copy of the forward layer. */
static CornuLayer *backward_of(const CornuBidirectionalConfig *config)
{
    if (config->backward_layer) return config->backward_layer;
    CornuLayer *copy = cornu__layer_copy(config->layer);
    if (copy) *cornu__over_time(copy, "go_backwards") = true;
    return copy;
}

CornuLayer *cornu_bidirectional_from(const CornuBidirectionalConfig *config)
{
    const char *name = config->name ? config->name : "bidirectional";
    CornuLayer *layer = NULL, *inner[2] = { config->layer, config->backward_layer };
    if (cornu__refused() || bidirectional_check(config, name) ||
        !(inner[BACKWARD] = backward_of(config)))
        goto fail;
    for (int i = 0; i < 2; i++)
        *cornu__over_time(inner[i], "zero_output_for_mask") =
            *cornu__over_time(inner[i], "return_sequences");
    if (check_pair(name, inner)) goto fail;
    layer = cornu_layer_create(&cornu__bidirectional_class, config->name, config->dtype);
    if (!layer) goto fail;
    cornu__layer_add_inner(layer, inner[FORWARD], "forward_");
    cornu__layer_add_inner(layer, inner[BACKWARD], config->backward_layer ? "" : "backward_");
    ((Bidirectional *)layer)->config = (CornuBidirectionalConfig){
        .layer = inner[FORWARD], .backward_layer = inner[BACKWARD],
        .merge_mode = config->merge_mode,
    };
    layer->frozen = config->frozen;
    return layer;
fail:
    cornu__layer_free_unowned(inner[FORWARD]);
    if (inner[BACKWARD] != inner[FORWARD]) cornu__layer_free_unowned(inner[BACKWARD]);
    return cornu__null();
}
