/* Layers as Keras' JSON. Names, kinds and places of a layer's arguments are in a table of its
 * class (layer.h). */
#include "../../layers/quantized_internal.h"
#include "../../model/traced/loss_layer_internal.h"
#include "../../model/traced/traced_internal.h"
#include "architecture_internal.h"

/* A policy that was chosen. One that the device chose does not belong to the architecture: it is
 * written as "float32", Keras' default. */
json_t *cornu__policy_to_json(const CornuPolicy *policy)
{
    if (!policy) return json_string("float32");
    return cornu__json_object("keras", "DTypePolicy", json_pack("{s:s}", "name", policy->name));
}

/* An activation with weights, and the shape by which Keras builds it: else it would only do so when
 * it is called, after its weights are read. */
static json_t *activation_to_json(const CornuLayer *layer, const CornuPolicy *usual)
{
    json_t *value = cornu__layer_to_json(layer->activation, usual);
    if (!layer->activation->built) return value;
    return cornu__json_with(value, "build_config",
                            cornu__json_with(json_object(), "input_shape",
                                             cornu__json_shape(layer->activated)));
}

static json_t *layer_to_json(const CornuLayer *layer, const CornuPolicy *usual)
{
    const CornuLayerClass *kind = layer->kind;
    const CornuKerasClass *keras = cornu__keras_class(layer);
    if (kind->call_masked) return cornu__model_to_json((const CornuModel *)layer, usual);
    if (cornu__as_operation(layer)) return cornu__operation_to_json(layer);
    if (cornu__as_loss_layer(layer)) return cornu__loss_layer_to_json(layer);
    if (cornu__as_traced(layer)) return cornu__traced_to_json(layer, usual);
    const CornuPolicy *policy = layer->own_policy ? layer->own_policy : usual;
    json_t *config = json_pack("{s:s}", "name", cornu_layer_name(layer));
    if (!keras->never_trains)
        config = cornu__json_with(config, "trainable", json_boolean(!layer->frozen));
    if (!keras->never_typed)
        config = cornu__json_with(config, "dtype", cornu__quantization(layer)
                                                       ? cornu__quantized_policy_to_json(layer)
                                                       : cornu__policy_to_json(policy));
    const CornuLayersInside layers = { .usual = usual, .to_json = cornu__layer_to_json };
    config = cornu__fields_to_json(&layers, keras->fields, cornu__config(layer), config);
    if (layer->activation)
        config = cornu__json_with(config, "activation", activation_to_json(layer, usual));
    if (layer->lora_rank) {
        config = cornu__json_with(config, "lora_rank", json_integer(layer->lora_rank));
        config = cornu__json_with(config, "lora_alpha", json_real(layer->lora_alpha));
    }
    if (layer->quantized.configured)
        config = cornu__json_with(config, "quantization_config",
                                  cornu__quantization_to_json(layer));
    const char *package = cornu__registered_package(kind);
    if (!package && !keras->module)
        return cornu__json_object("keras.layers", kind->class_name, config);
    return json_pack("{s:s, s:s, s:o, s:o}", "module", package ? package : keras->module,
                     "class_name", kind->class_name, "config", config, "registered_name",
                     package ? json_sprintf("%s>%s", package, kind->class_name)
                             : json_string(kind->class_name));
}

json_t *cornu__layer_to_json(const CornuLayer *layer, const CornuPolicy *usual)
{
    return cornu__shared_to_json(layer, layer_to_json(layer, usual));
}

char *cornu_layer_to_json(const CornuLayer *layer)
{
    CORNU__NEED_TO_MAKE(layer);
    if (cornu__refused() || cornu__check_layers(layer)) return cornu__null();
    json_t *value = cornu__layer_to_json(layer, NULL);
    char   *text = cornu__json_text(value);
    json_decref(value);
    return text ? text : cornu__null();
}
