/* Models as Keras' JSON: Sequential ones, and what both kinds share. */
#include "../../model/traced/loss_layer_internal.h"
#include "../../model/traced/traced_internal.h"
#include "architecture_internal.h"

static const char *const dtype_names[CORNU_STRING + 1] = {
    [CORNU_F32] = "float32", [CORNU_F64] = "float64", [CORNU_BF16] = "bfloat16",
    [CORNU_F16] = "float16", [CORNU_I64] = "int64", [CORNU_I32] = "int32",
    [CORNU_U32] = "uint32", [CORNU_U8] = "uint8", [CORNU_BOOL] = "bool",
    [CORNU_STRING] = "string",
};

const char *cornu__keras_dtype(CornuDtype dtype) { return dtype_names[dtype]; }

json_t *cornu__input_to_json(const CornuModel *model, const CornuSymbol *symbol)
{
    const CornuInputLayer *input = (const CornuInputLayer *)symbol->node->layer;
    CornuShape             shape = symbol->type.shape;
    if (!input->whole) shape.extent[0] = cornu_model_batch_size(model);   /* which Keras requires of
                                                                           a stateful one */
    json_t *config = json_pack("{s:o, s:s, s:s}", "batch_shape", cornu__json_shape(shape), "dtype",
                               dtype_names[input->dtype], "name", cornu_layer_name(&input->base));
    if (input->whole && config) json_object_set_new(config, CORNU__WHOLE_INPUT, json_true());
    return cornu__json_object("keras.layers", "InputLayer", config);
}

static json_t *sequential_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    json_t *layers = json_array();
    if (model->inputs[0])
        layers = cornu__json_append(layers, cornu__input_to_json(model, model->inputs[0]));
    for (int i = 0; i < model->base.inner_count; i++)
        layers = cornu__json_append(layers, cornu__layer_to_json(model->base.inner[i], usual));
    return cornu__json_object("keras", "Sequential",
                              json_pack("{s:s, s:b, s:o, s:o}", "name", cornu_model_name(model),
                                        "trainable", !model->base.frozen, "dtype",
                                        cornu__policy_to_json(usual), "layers", layers));
}

static bool is_functional(const CornuModel *model)
{
    return model->base.kind == &cornu__functional_class;
}

json_t *cornu__model_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    const CornuPolicy *policy = model->base.own_policy ? model->base.own_policy : usual;
    return is_functional(model) ? cornu__functional_to_json(model, policy)
                                : sequential_to_json(model, policy);
}

static bool is_function(const CornuField *field, const void *at)
{
    return field->kind->family && cornu__weight_rule_is_unnamed(field->kind->family, at);
}

/* ---- Traced layers: beside what Keras writes of a class, its weights and graphs ---- */

static json_t *numbers_to_json(const int *numbers, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) list = cornu__json_append(list, json_integer(numbers[i]));
    return list;
}

static json_t *graph_to_json(const CornuTraced *traced, const CornuTracedGraph *graph)
{
    json_t *reads = json_array();
    for (int i = 0; i < graph->read_count; i++)
        reads = cornu__json_append(reads, json_integer(cornu__traced_place(traced,
                                                                           graph->reads[i])));
    json_t *value = json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "operands", graph->operands,
                              "results", graph->results, "losses", graph->losses,
                              "reads", reads,
                              "assigned", numbers_to_json(graph->assigned, graph->assigned_count),
                              "graph", cornu__functional_to_json(graph->model, NULL));
    if (graph->training_only) value = cornu__json_with(value, "training_only", json_true());
    if (graph->computes_mask) value = cornu__json_with(value, "computes_mask", json_true());
    if (graph->computes_states) value = cornu__json_with(value, "computes_states", json_true());
    if (graph->inference_only) value = cornu__json_with(value, "inference_only", json_true());
    return value;
}

json_t *cornu__traced_to_json(const CornuLayer *layer, const CornuPolicy *usual)
{
    const CornuTraced *traced = cornu__as_traced(layer);
    const CornuPolicy *policy = layer->own_policy ? layer->own_policy : usual;
    json_t *config = json_copy(traced->config), *weights = json_array(), *graphs = json_array();
    config = cornu__json_with(config, "name", json_string(cornu_layer_name(layer)));
    config = cornu__json_with(config, "trainable", json_boolean(!layer->frozen));
    config = cornu__json_with(config, "dtype", cornu__policy_to_json(policy));
    for (int i = 0; i < layer->own_count; i++)
        weights = cornu__json_append(weights, cornu__traced_weight_to_json(traced, i));
    for (int i = 0; i < traced->graph_count; i++)
        graphs = cornu__json_append(graphs, graph_to_json(traced, &traced->graphs[i]));
    return json_pack("{s:s, s:s, s:o, s:s, s:{s:o, s:o, s:O, s:b}}", "module", traced->module,
                     "class_name", traced->class_name, "config", config, "registered_name",
                     traced->registered_name, "traced", "weights", weights, "graphs", graphs,
                     "attributes", traced->attributes, "supports_masking",
                     traced->supports_masking);
}

/* ---- What files can hold ---- */

/* A file cannot hold a function. */
static CornuStatus check_functions(const CornuLayer *layer)
{
    const char *config = cornu__config(layer);
    for (const CornuField *field = cornu__keras_class(layer)->fields; field && field->name; field++)
        if (is_function(field, config + field->offset))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s is a function without a name for "
                               "files, with which a model can be neither saved nor cloned; "
                               "cornu_model_save_weights saves its weights",
                               cornu_layer_name(layer), field->name);
    return CORNU_OK;
}

/* Whether a class is Keras' or was registered. */
static bool is_known(const CornuLayerClass *kind)
{
    const CornuLayerClass *const *known = cornu__layer_classes;
    while (*known && *known != kind) known++;
    return *known || cornu__registered_package(kind) || kind == &cornu__traced_class ||
           kind == &cornu__loss_layer_class ||
           kind->call_many == cornu__operation_call;
}

CornuStatus cornu__check_layers(const CornuLayer *layer)
{
    const CornuLayerClass *kind = layer->kind;
    if (!is_known(kind) && !kind->call_masked && kind != &cornu__input_class)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: layers of class %s can be neither saved nor "
                           "cloned, since it is not registered: see cornu_register_layer; "
                           "cornu_model_save_weights saves their weights",
                           cornu_layer_name(layer), kind->class_name);
    CORNU__TRY(check_functions(layer));
    const CornuLossLayer *of = cornu__as_loss_layer(layer);
    if (of && !of->loss->kind)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: the loss %s is a function of the program, "
                           "with which a model can be neither saved nor cloned",
                           cornu_layer_name(layer), of->loss->name);
    for (int i = 0; i < layer->inner_count; i++) CORNU__TRY(cornu__check_layers(layer->inner[i]));
    return CORNU_OK;
}

json_t *cornu__model_config(const CornuModel *model)
{
    if (cornu__check_layers(&model->base)) return NULL;
    const CornuStatus status = cornu__sharing_write(model);
    json_t *result = status ? NULL : cornu__model_to_json(model, NULL);
    cornu__sharing_end();
    if (!result) cornu__fail(CORNU_ERR_MEMORY, "no memory for the architecture");
    return result;
}

json_t *cornu__input_config(const CornuModel *model)
{
    json_t *scales = json_array();
    if (model->input_count == 1) {
        json_decref(scales);
        scales = json_real(cornu_model_input_scale(model));
    }
    for (int i = 0; i < model->input_count && model->input_count > 1; i++)
        scales = cornu__json_append(
            scales, json_real(((CornuInputLayer *)model->inputs[i]->node->layer)->scale));
    return json_pack("{s:o}", "scale", scales);
}

char *cornu_model_to_json(const CornuModel *model)
{
    if (cornu__model_check(model)) return cornu__null();
    json_t *architecture = cornu__model_config(model);
    char   *text = architecture ? cornu__json_text(architecture) : NULL;
    json_decref(architecture);
    return text ? text : cornu__null();
}
