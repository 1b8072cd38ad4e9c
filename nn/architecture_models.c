/* Models in Keras' JSON, out and in: layers one behind the other, or with the calls that link them.
 * Source: keras/src/models/functional.py, get_config and functional_from_config. */
#include "architecture_internal.h"

#include <math.h>
#include <string.h>

static const char *const dtype_names[CORNU_DTYPE_COUNT] = {
    [CORNU_F32] = "float32", [CORNU_F64] = "float64", [CORNU_BF16] = "bfloat16",
    [CORNU_F16] = "float16", [CORNU_I64] = "int64", [CORNU_I32] = "int32",
    [CORNU_U32] = "uint32", [CORNU_U8] = "uint8", [CORNU_BOOL] = "bool",
};

static bool is_functional(const CornuModel *model)
{
    return model->base.kind == &cornu__functional_class;
}

bool cornu__is_model_class(const char *class_name)
{
    return !strcmp(class_name, cornu__sequential_class.class_name) ||
           !strcmp(class_name, cornu__functional_class.class_name);
}

/* ---- Out ---- */

static json_t *input_to_json(const CornuModel *model, const CornuSymbol *symbol)
{
    const CornuInputLayer *input = (const CornuInputLayer *)symbol->node->layer;
    CornuShape             shape = symbol->type.shape;
    shape.extent[0] = cornu_model_batch_size(model);   /* Keras asks for it of a stateful one */
    return cornu__json_object(
        "keras.layers", "InputLayer",
        json_pack("{s:o, s:s, s:s}", "batch_shape", cornu__json_list(shape.extent, shape.rank),
                  "dtype", dtype_names[input->dtype], "name", cornu_layer_name(&input->base)));
}

static json_t *sequential_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    json_t *layers = json_array();
    if (model->inputs[0])
        layers = cornu__json_append(layers, input_to_json(model, model->inputs[0]));
    for (int i = 0; i < model->base.inner_count; i++)
        layers = cornu__json_append(layers, cornu__layer_to_json(model->base.inner[i], usual));
    return cornu__json_object("keras", "Sequential",
                              json_pack("{s:s, s:b, s:o, s:o}", "name", cornu_model_name(model),
                                        "trainable", !model->base.frozen, "dtype",
                                        cornu__policy_to_json(usual), "layers", layers));
}

/* The calls that a model makes of a layer are numbered by themselves. */
static int call_number(const CornuModel *model, const CornuNode *node)
{
    int number = 0;
    for (int i = 0; i < model->call_count; i++) {
        const CornuNode *other = model->calls[i].node;
        number += other->layer == node->layer && other->number < node->number;
    }
    return number;
}

/* Call `number` of the layer, NULL if there are not so many. */
static const CornuNode *call_of(const CornuModel *model, const CornuLayer *layer, int number)
{
    for (int i = 0; i < model->call_count; i++) {
        const CornuNode *node = model->calls[i].node;
        if (node->layer == layer && call_number(model, node) == number) return node;
    }
    return NULL;
}

/* [layer, call, result]. Keras counts the calls of a nested functional model from 1 where it says
 * what a model gives, and from 0 elsewhere. */
static json_t *history_to_json(const CornuModel *model, const CornuSymbol *symbol, bool given)
{
    const CornuLayer *layer = symbol->node->layer;
    const int         first = given && layer->kind == &cornu__functional_class;
    return json_pack("[s, i, i]", cornu_layer_name(layer),
                     first + call_number(model, symbol->node), symbol->index);
}

static json_t *symbol_to_json(const CornuModel *model, const CornuSymbol *symbol)
{
    const CornuShape shape = symbol->type.shape;
    return json_pack("{s:s, s:{s:o, s:s, s:o}}", "class_name", "__keras_tensor__", "config",
                     "shape", cornu__json_list(shape.extent, shape.rank),
                     "dtype", dtype_names[symbol->type.dtype],
                     "keras_history", history_to_json(model, symbol, false));
}

static json_t *symbols_to_json(const CornuModel *model, CornuSymbol *const *symbols, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        list = cornu__json_append(list, symbol_to_json(model, symbols[i]));
    return list;
}

/* Its operands stand in Keras' call as the layer's class says. */
static json_t *call_to_json(const CornuModel *model, const CornuNode *node)
{
    const char *operands = node->layer->kind->operands;
    const int   first = operands && *operands ? 1 : node->in_count;
    json_t     *args = symbols_to_json(model, node->in, first);
    if (first < node->in_count)
        return json_pack("{s:o, s:{s:o}}", "args", args, "kwargs", operands,
                         symbols_to_json(model, node->in + 1, node->in_count - 1));
    if (node->in_count > 1 && !operands) return json_pack("{s:[o], s:{}}", "args", args, "kwargs");
    return json_pack("{s:o, s:{}}", "args", args, "kwargs");
}

/* A layer and the calls that the model makes of it; an input is there without. */
static json_t *linked_to_json(const CornuModel *model, const CornuLayer *layer,
                              const CornuPolicy *usual)
{
    const CornuNode *node = call_of(model, layer, 0);
    const bool       is_input = node->in_count == 0;
    json_t *calls = json_array();
    for (int i = 1; node && !is_input; node = call_of(model, layer, i++))
        calls = cornu__json_append(calls, call_to_json(model, node));
    json_t *result = is_input ? input_to_json(model, &node->out[0])
                              : cornu__layer_to_json(layer, usual);
    result = cornu__json_with(result, "name", json_string(cornu_layer_name(layer)));
    return cornu__json_with(result, "inbound_nodes", calls);
}

/* One by itself, several as a list. */
static json_t *ends_to_json(const CornuModel *model, CornuSymbol *const *symbols, int count)
{
    if (count == 1) return history_to_json(model, symbols[0], true);
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        list = cornu__json_append(list, history_to_json(model, symbols[i], true));
    return list;
}

/* Keras writes no policy of such a model, and does not look at ours: its layers have theirs. */
static json_t *functional_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    json_t *layers = json_array();
    for (int i = 0; i < model->base.inner_count; i++)
        layers = cornu__json_append(layers, linked_to_json(model, model->base.inner[i], usual));
    json_t *config = json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", cornu_model_name(model),
                               "trainable", !model->base.frozen, "layers", layers, "input_layers",
                               ends_to_json(model, model->inputs, model->input_count),
                               "output_layers",
                               ends_to_json(model, model->outputs, model->output_count));
    if (model->base.own_policy)
        config = cornu__json_with(config, "dtype", cornu__policy_to_json(usual));
    return json_pack("{s:s, s:s, s:o, s:s}", "module", "keras.src.models.functional",
                     "class_name", "Functional", "config", config, "registered_name",
                     "Functional");
}

json_t *cornu__model_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    const CornuPolicy *policy = model->base.own_policy ? model->base.own_policy : usual;
    return is_functional(model) ? functional_to_json(model, policy)
                                : sequential_to_json(model, policy);
}

/* Whether all layers in it are of classes that files can hold. */
static CornuStatus check_layers(const CornuLayer *layer)
{
    const CornuLayerClass *kind = layer->kind;
    if (!kind->from && !kind->replay && kind != &cornu__input_class)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: layers of class %s can be neither saved nor "
                           "cloned; cornu_model_save_weights saves what they have learned",
                           cornu_layer_name(layer), kind->class_name);
    for (int i = 0; i < layer->inner_count; i++) CORNU__TRY(check_layers(layer->inner[i]));
    return CORNU_OK;
}

json_t *cornu__model_config(const CornuModel *model)
{
    if (check_layers(&model->base)) return NULL;
    json_t *result = cornu__model_to_json(model, NULL);
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

/* ---- In ---- */

/* An InputLayer: its batch_shape, of which the batch may be null, and its dtype and name. */
static CornuStatus read_input(const json_t *value, CornuInputConfig *input)
{
    const json_t *config = json_object_get(value, "config");
    const char   *dtype = json_string_value(json_object_get(config, "dtype"));
    int64_t       batch_shape[CORNU_MAX_RANK] = { 0 };
    size_t        rank;
    CORNU__TRY(cornu__read_list(json_object_get(config, "batch_shape"), "batch_shape", batch_shape,
                                CORNU_MAX_RANK, &rank));
    if (rank < 2)
        return cornu__fail(CORNU_ERR_FORMAT, "batch_shape is not a batch and at least one more "
                           "axis");
    for (size_t i = 0; i < rank; i++) {
        if (batch_shape[i] < 1 && (i > 0 || batch_shape[i] != CORNU_NONE))
            return cornu__fail(CORNU_ERR_FORMAT, "batch_shape has an extent of %lld",
                               (long long)batch_shape[i]);
        if (i > 0) input->shape[i - 1] = batch_shape[i];
    }
    input->batch_size = batch_shape[0] == CORNU_NONE ? 0 : batch_shape[0];
    input->name = json_string_value(json_object_get(config, "name"));
    while (dtype && input->dtype < CORNU_DTYPE_COUNT && strcmp(dtype, dtype_names[input->dtype]))
        input->dtype++;
    return CORNU_OK;
}

static bool is_input(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    return class_name && !strcmp(class_name, cornu__input_class.class_name);
}

static CornuStatus add_layers(CornuModel *model, const json_t *layers, size_t first,
                              const CornuPolicy *usual)
{
    for (size_t i = first; i < json_array_size(layers); i++) {
        CornuLayer *layer;
        CORNU__TRY(cornu__layer_from_json(json_array_get(layers, i), usual, &layer));
        CornuStatus status = cornu_model_add(model, layer);
        cornu_layer_free(layer);
        CORNU__TRY(status);
    }
    return CORNU_OK;
}

static CornuModel *sequential_from_json(const json_t *config, const char *policy,
                                        const CornuPolicy *usual)
{
    const json_t    *layers = json_object_get(config, "layers");
    const bool       shaped = is_input(json_array_get(layers, 0));
    CornuInputConfig input = { 0 };
    if (shaped && read_input(json_array_get(layers, 0), &input)) return cornu__null();
    CornuSequentialConfig sequential = {
        .name = json_string_value(json_object_get(config, "name")), .policy = policy,
        .batch_size = input.batch_size,
    };
    memcpy(sequential.input_shape, input.shape, sizeof input.shape);
    CornuModel *model = cornu_sequential_from(&sequential);
    if (!model) return NULL;
    if (model->base.own_policy) usual = model->base.own_policy;
    if (add_layers(model, layers, shaped, usual) == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

/* ---- In: layers and the calls that link them ---- */

/* An input has no `layer`, as its node holds it. Nor has an operation, of which there are none here:
 * Keras writes those that make masks, which go from layer to layer by themselves. */
typedef struct {
    const char   *name;
    CornuLayer   *layer;
    bool          is_operation;
    const json_t *calls;
    size_t        count, made;    /* of its calls */
    CornuNode   **nodes;
} Linked;

typedef struct {
    Linked *layers;
    size_t  count;
    json_t *places;               /* the index of each name */
} Links;

static void free_links(Links *links)
{
    for (size_t i = 0; i < links->count && links->layers; i++) {
        Linked *layer = &links->layers[i];
        for (size_t k = 0; k < layer->made; k++) cornu__node_drop(layer->nodes[k]);
        cornu__release(layer->nodes);
        cornu_layer_free(layer->layer);
    }
    cornu__release(links->layers);
    json_decref(links->places);
}

static void hold(Linked *layer, CornuNode *node)
{
    layer->nodes[layer->made++] = cornu__node_hold(node);
}

static CornuStatus make_input(const json_t *value, Linked *layer)
{
    CornuInputConfig input = { 0 };
    CornuType        type;
    CORNU__TRY(read_input(value, &input));
    if (!input.name) return cornu__fail(CORNU_ERR_FORMAT, "an InputLayer without a name");
    CORNU__TRY(cornu__input_check(&input, input.name, "", &type));
    CornuNode *node = cornu__input_node(&input, type);
    if (!node) return cornu_error_take();
    layer->name = input.name;
    hold(layer, node);
    return CORNU_OK;
}

/* Makes a layer, not its calls. */
static CornuStatus make_linked(const json_t *value, const CornuPolicy *usual, Linked *layer)
{
    const char *module = json_string_value(json_object_get(value, "module"));
    layer->is_operation = module && !strncmp(module, "keras.src.ops.", strlen("keras.src.ops."));
    if (layer->is_operation) {
        layer->name = json_string_value(json_object_get(value, "name"));
        return layer->name ? CORNU_OK : cornu__fail(CORNU_ERR_FORMAT, "an operation without name");
    }
    layer->calls = json_object_get(value, "inbound_nodes");
    layer->count = is_input(value) ? 1 : json_array_size(layer->calls);
    if (!(layer->nodes = cornu__allocate(layer->count + 1, sizeof *layer->nodes)))
        return CORNU_ERR_MEMORY;
    if (is_input(value)) return make_input(value, layer);
    CORNU__TRY(cornu__layer_from_json(value, usual, &layer->layer));
    layer->name = cornu_layer_name(layer->layer);
    return CORNU_OK;
}

static CornuStatus make_all(const json_t *layers, const CornuPolicy *usual, Links *links)
{
    links->layers = cornu__allocate(json_array_size(layers) + 1, sizeof *links->layers);
    links->places = json_object();
    if (!links->layers || !links->places) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        Linked *layer = &links->layers[links->count++];
        CORNU__TRY(make_linked(json_array_get(layers, i), usual, layer));
        if (json_object_get(links->places, layer->name))
            return cornu__fail(CORNU_ERR_FORMAT, "two layers have the name \"%.60s\"",
                               layer->name);
        if (json_object_set_new(links->places, layer->name, json_integer((json_int_t)i)))
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the names of layers");
    }
    return CORNU_OK;
}

/* What [layer, call, result] stands for; NULL if that call is still to be made. */
static CornuStatus find_symbol(const Links *links, const json_t *history, bool given,
                               CornuSymbol **symbol)
{
    const char   *name = json_string_value(json_array_get(history, 0));
    const json_t *call = json_array_get(history, 1), *result = json_array_get(history, 2);
    *symbol = NULL;
    if (json_array_size(history) != 3 || !name || !json_is_integer(call) ||
        !json_is_integer(result))
        return cornu__fail(CORNU_ERR_FORMAT, "a tensor is not said as [layer, call, result]");
    const json_t *place = json_object_get(links->places, name);
    if (!place)
        return cornu__fail(CORNU_ERR_FORMAT, "there is no layer \"%.60s\", of which a result is "
                           "used", name);
    const Linked *layer = &links->layers[json_integer_value(place)];
    if (layer->is_operation)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a result of the operation %.60s is used, "
                           "expected one of a layer", name);
    const bool    from_one = given && layer->layer &&
                             layer->layer->kind == &cornu__functional_class;
    const int64_t number = json_integer_value(call) - from_one, i = json_integer_value(result);
    if (number < 0 || (uint64_t)number >= layer->count)
        return cornu__fail(CORNU_ERR_FORMAT, "a result of call %lld of %.60s is used, of which "
                           "there are %zu", (long long)number, name, layer->count);
    if ((uint64_t)number >= layer->made) return CORNU_OK;
    CornuNode *node = layer->nodes[number];
    if (i < 0 || i >= node->out_count)
        return cornu__fail(CORNU_ERR_FORMAT, "result %lld of %.60s is used, which gives %d",
                           (long long)i, name, node->out_count);
    *symbol = &node->out[i];
    return CORNU_OK;
}

typedef struct {
    CornuSymbol *in[CORNU_MAX_LAYER_TENSORS];
    int          count;
    bool         waits;           /* for a call that is still to be made */
} Operands;

/* A tensor, or a list of what may be lists again; null stands for none. */
static CornuStatus read_operands(const Links *links, const json_t *value, Operands *operands)
{
    const char  *class_name = json_string_value(json_object_get(value, "class_name"));
    CornuSymbol *symbol;
    if (json_is_null(value)) return CORNU_OK;
    for (size_t i = 0; i < json_array_size(value); i++)
        CORNU__TRY(read_operands(links, json_array_get(value, i), operands));
    if (json_is_array(value)) return CORNU_OK;
    if (!class_name || strcmp(class_name, "__keras_tensor__"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on what is no tensor");
    if (operands->count == CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called on more than %d tensors",
                           CORNU_MAX_LAYER_TENSORS);
    const json_t *config = json_object_get(value, "config");
    CORNU__TRY(find_symbol(links, json_object_get(config, "keras_history"), false, &symbol));
    operands->waits |= !symbol;
    operands->in[operands->count++] = symbol;
    return CORNU_OK;
}

/* Arguments of a call that say what is so anyhow: null, no training, and masks as Keras makes them. */
static bool says_nothing(const Links *links, const char *keyword, const json_t *value)
{
    const json_t *history = json_object_get(json_object_get(value, "config"), "keras_history");
    const char   *name = json_string_value(json_array_get(history, 0));
    const json_t *place = name ? json_object_get(links->places, name) : NULL;
    if (json_is_null(value)) return true;
    if (!strcmp(keyword, "training")) return json_is_false(value);
    return !strcmp(keyword, "mask") && place &&
           links->layers[json_integer_value(place)].is_operation;
}

static CornuStatus read_call(const Links *links, const Linked *layer, const json_t *call,
                             Operands *operands)
{
    const char *keyword, *list = layer->layer->kind->operands;
    json_t     *value;
    CORNU__TRY(read_operands(links, json_object_get(call, "args"), operands));
    json_object_foreach(json_object_get(call, "kwargs"), keyword, value) {
        if (list && !strcmp(keyword, list))
            CORNU__TRY(read_operands(links, value, operands));
        else if (!says_nothing(links, keyword, value))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "is called with \"%.60s\", which is not "
                               "available in this version", keyword);
    }
    if (operands->count > 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "is called on no tensor");
}

/* Makes the calls that need not wait; *made counts them. */
static CornuStatus make_calls(const Links *links, Linked *layer, size_t *made)
{
    while (layer->made < layer->count) {
        Operands operands = { .count = 0 };
        CORNU__TRY(cornu__fail_prefix(read_call(links, layer,
                                                json_array_get(layer->calls, layer->made),
                                                &operands), layer->name));
        if (operands.waits) break;
        CornuNode *node = cornu__call_node(layer->layer, operands.in, operands.count);
        if (!node) return cornu_error_take();
        hold(layer, node);
        ++*made;
    }
    return CORNU_OK;
}

/* A layer may be called in several places, so that no order of layers is one of calls. */
static CornuStatus link_all(const Links *links)
{
    const Linked *waiting;
    size_t        made;
    do {
        made = 0;
        waiting = NULL;
        for (size_t i = 0; i < links->count; i++) {
            Linked *layer = &links->layers[i];
            CORNU__TRY(make_calls(links, layer, &made));
            if (layer->made < layer->count) waiting = layer;
        }
    } while (waiting && made > 0);
    if (!waiting) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%.60s: call %zu depends on itself, or on one that does",
                       waiting->name, waiting->made);
}

/* A model's inputs or outputs: one by itself, or a list. */
static CornuStatus read_ends(const Links *links, const json_t *value, const char *what,
                             CornuSymbol **ends)
{
    const bool   one = json_is_string(json_array_get(value, 0));
    const size_t count = one ? 1 : json_array_size(value);
    if (count < 1 || count > CORNU_MAX_MODEL_TENSORS)
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not a list of 1 to %d tensors", what,
                           CORNU_MAX_MODEL_TENSORS);
    for (size_t i = 0; i < count; i++)
        CORNU__TRY(cornu__fail_prefix(find_symbol(links, one ? value : json_array_get(value, i),
                                                  true, &ends[i]), what));
    return CORNU_OK;
}

static CornuModel *functional_from_json(const json_t *config, const char *policy,
                                        const CornuPolicy *usual)
{
    Links            links = { 0 };
    CornuModel      *model = NULL;
    CornuModelConfig ends = {
        .name = json_string_value(json_object_get(config, "name")), .policy = policy,
    };
    const CornuPolicy *own = policy ? cornu_policy(policy) : usual;
    CornuStatus        status = cornu_error_take();
    if (!status) status = make_all(json_object_get(config, "layers"), own, &links);
    if (!status) status = link_all(&links);
    if (!status)
        status = read_ends(&links, json_object_get(config, "input_layers"), "input_layers",
                           ends.inputs);
    if (!status)
        status = read_ends(&links, json_object_get(config, "output_layers"), "output_layers",
                           ends.outputs);
    if (status) cornu__null();
    else model = cornu__model_of(&ends);
    free_links(&links);
    return model;
}

CornuModel *cornu__model_from_json(const json_t *value, const CornuPolicy *usual)
{
    const json_t *config = json_object_get(value, "config");
    const char   *class_name = json_string_value(json_object_get(value, "class_name"));
    const char   *policy;
    if (!class_name || !cornu__is_model_class(class_name))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the model's class is \"%.60s\", expected "
                                "Sequential or Functional", class_name ? class_name : "");
    if (cornu__read_policy(json_object_get(config, "dtype"), &policy)) return cornu__null();
    CornuModel *model = strcmp(class_name, cornu__functional_class.class_name)
                            ? sequential_from_json(config, policy, usual)
                            : functional_from_json(config, policy, usual);
    if (model) model->base.frozen = json_is_false(json_object_get(config, "trainable"));
    return model;
}

static CornuStatus set_scale(CornuModel *model, int i, const json_t *scale)
{
    const double number = json_number_value(scale);
    if (!json_is_number(scale) || !isfinite(number))
        return cornu__fail(CORNU_ERR_FORMAT, "the scale of its input is not a number");
    if (i == 0) model->input_scale = number;
    if (model->inputs[i]) ((CornuInputLayer *)model->inputs[i]->node->layer)->scale = number;
    return CORNU_OK;
}

/* What cornu__input_config says, or NULL. */
static CornuStatus set_input(CornuModel *model, const json_t *input)
{
    const json_t *scale = json_object_get(input, "scale");
    const size_t  count = json_is_array(scale) ? json_array_size(scale) : 1;
    if (!scale) return CORNU_OK;
    if (count != (size_t)model->input_count)
        return cornu__fail(CORNU_ERR_FORMAT, "the scales of its inputs are %zu, expected %d", count,
                           model->input_count);
    for (int i = 0; i < model->input_count; i++)
        CORNU__TRY(set_scale(model, i, json_is_array(scale) ? json_array_get(scale, (size_t)i)
                                                            : scale));
    return CORNU_OK;
}

CornuModel *cornu__model_from_config(const json_t *architecture, const json_t *input)
{
    CornuModel *model = cornu__model_from_json(architecture, NULL);
    if (!model || set_input(model, input) == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

CornuModel *cornu_model_clone(const CornuModel *model)
{
    if (cornu__model_check(model)) return cornu__null();
    json_t     *architecture = cornu__model_config(model);
    json_t     *input = architecture ? cornu__input_config(model) : NULL;
    CornuModel *clone = input ? cornu__model_from_config(architecture, input) : cornu__null();
    json_decref(architecture);
    json_decref(input);
    return clone;
}
