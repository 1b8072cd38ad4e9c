/* Models from Keras' JSON: Sequential ones, what both kinds share, and traced layers. */
#include "../../../device/inference_internal.h"
#include "../keras2/keras2_internal.h"
#include "../../model/traced/traced_internal.h"
#include "architecture_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool cornu__is_model_class(const char *class_name)
{
    return !strcmp(class_name, cornu__sequential_class.class_name) ||
           !strcmp(class_name, cornu__functional_class.class_name);
}

/* The dtype of an input, f32 without a name. Layers convert floats to their compute dtype; i32
 * holds the short whole numbers. */
static CornuStatus read_dtype(const char *name, CornuDtype *dtype)
{
    static const char *const shorts[] = { "int8", "int16", "uint16" };
    *dtype = CORNU_F32;
    if (!name) return CORNU_OK;
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
        if (!strcmp(name, shorts[i])) {
            *dtype = CORNU_I32;
            return CORNU_OK;
        }
    for (int i = 0; i <= CORNU_STRING; i++)
        if (!strcmp(name, cornu__keras_dtype((CornuDtype)i))) {
            if (!cornu_dtype_is_float((CornuDtype)i)) *dtype = (CornuDtype)i;
            return CORNU_OK;
        }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "inputs of dtype \"%.40s\" are not available in this "
                       "version", name);
}

static CornuStatus read_batch_shape(const json_t *config, CornuShape *shape)
{
    size_t rank;
    *shape = (CornuShape){ 0 };
    CORNU__TRY(cornu__read_list(json_object_get(config, "batch_shape"), "batch_shape",
                                shape->extent, CORNU_MAX_RANK, &rank));
    shape->rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        if ((shape->extent[i] < 1 || shape->extent[i] > INT32_MAX) &&
            shape->extent[i] != CORNU_NONE)
            return cornu__fail(CORNU_ERR_FORMAT, "batch_shape has an extent of %lld",
                               (long long)shape->extent[i]);
    return CORNU_OK;
}

bool cornu__is_whole_input(const json_t *value)
{
    return json_is_true(json_object_get(json_object_get(value, "config"),
                                        CORNU__WHOLE_INPUT));
}

CornuStatus cornu__read_whole_input(const json_t *value, CornuInputConfig *input, CornuType *type)
{
    const json_t *config = json_object_get(value, "config");
    CORNU__TRY(read_batch_shape(config, &type->shape));
    input->name = json_string_value(json_object_get(config, "name"));
    CORNU__TRY(read_dtype(json_string_value(json_object_get(config, "dtype")), &input->dtype));
    type->dtype = input->dtype;
    return CORNU_OK;
}

/* An InputLayer: its batch_shape, in which null is an open extent, its dtype and name. */
CornuStatus cornu__read_input(const json_t *value, CornuInputConfig *input)
{
    const json_t *config = json_object_get(value, "config");
    CornuShape    shape;
    CORNU__TRY(read_batch_shape(config, &shape));
    if (shape.rank < 1)
        return cornu__unexpected("batch_shape", "a list that begins with the batch");
    for (int i = 1; i < shape.rank; i++) input->shape[i - 1] = shape.extent[i];
    input->batch_size = shape.extent[0] == CORNU_NONE ? 0 : shape.extent[0];
    input->name = json_string_value(json_object_get(config, "name"));
    return read_dtype(json_string_value(json_object_get(config, "dtype")), &input->dtype);
}

bool cornu__is_input_json(const json_t *value)
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
    const bool       shaped = cornu__is_input_json(json_array_get(layers, 0));
    CornuInputConfig input = { 0 };
    if (shaped && cornu__read_input(json_array_get(layers, 0), &input)) return cornu__null();
    CornuSequentialConfig sequential = {
        .name = json_string_value(json_object_get(config, "name")), .policy = policy,
        .batch_size = input.batch_size,
        .input_dtype = input.dtype == CORNU_STRING ? CORNU_STRING : CORNU_F32,
    };
    memcpy(sequential.input_shape, input.shape, sizeof input.shape);
    CornuModel *model = cornu_sequential_from(&sequential);
    if (!model) return NULL;
    if (model->base.own_policy) usual = model->base.own_policy;
    CornuStatus status = add_layers(model, layers, shaped, usual);
    /* To cornu_sequential no extents mean an unknown shape, to Keras' Input one number a row. */
    if (status == CORNU_OK && shaped && !model->base.built)
        status = cornu_model_build(model, (CornuShape){ 0 });
    if (status == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
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
                            : cornu__functional_from_json(config, policy, usual, NULL);
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

/* Reads what cornu__input_config wrote; NULL for nothing. */
static CornuStatus set_input(CornuModel *model, const json_t *input)
{
    const json_t *scale = json_object_get(input, "scale");
    const size_t  count = json_is_array(scale) ? json_array_size(scale) : 1;
    if (!scale) return CORNU_OK;
    if (count != (size_t)model->input_count)
        return cornu__fail(CORNU_ERR_FORMAT, "there are %zu scales of inputs, expected %d", count,
                           model->input_count);
    for (int i = 0; i < model->input_count; i++)
        CORNU__TRY(set_scale(model, i, json_is_array(scale) ? json_array_get(scale, (size_t)i)
                                                            : scale));
    return CORNU_OK;
}

CornuModel *cornu__model_from_config(const json_t *architecture, const json_t *input)
{
    cornu__sharing_read();
    CornuModel *model = cornu__model_from_json(architecture, NULL);
    cornu__sharing_end();
    if (!model || set_input(model, input) == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

/* Makes JSON that a former version of Keras wrote Keras 3's. */
typedef json_t *Renew(const json_t *model, const char *version);
static Renew *const renew = CORNU__FULL(cornu__keras2_model, NULL);

CornuModel *cornu_model_from_json(const char *json)
{
    CORNU__NEED_TO_LOAD(json);
    json_t *given = cornu__json_parse(json, strlen(json), CORNU_ARCHITECTURE_DEPTH);
    json_t *value = !given ? cornu__null() : renew ? renew(given, NULL) : json_incref(given);
    CornuModel *model = value ? cornu__model_from_config(value, NULL) : NULL;
    json_decref(given);
    json_decref(value);
    if (!model) cornu__fail_prefix(cornu_error_take(), "model_from_json");
    return cornu__loaded(model);
}

CornuModel *cornu_model_clone(const CornuModel *model)
{
    if (cornu__model_check(model)) return cornu__null();
    json_t     *architecture = cornu__model_config(model);
    json_t     *input = architecture ? cornu__input_config(model) : NULL;
    CornuModel *clone = input ? cornu__model_from_config(architecture, input) : cornu__null();
    json_decref(architecture);
    json_decref(input);
    if (clone) cornu__layer_copy_remat(&clone->base, &model->base);
    if (!clone || cornu__notes_read(clone, model->notes) == CORNU_OK) return clone;
    cornu_model_free(clone);
    return cornu__null();
}

/* ---- Traced layers ---- */

bool cornu__is_traced_json(const json_t *value)
{
    return json_is_object(json_object_get(value, "traced"));
}

static int integer(const json_t *value, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(value, name));
    return number < 0 || number > CORNU_MAX_MODEL_TENSORS ? -1 : (int)number;
}

/* Their number; -1 for more than there can be. */
static int read_numbers(const json_t *list, int numbers[CORNU_MAX_MODEL_TENSORS])
{
    const size_t count = json_array_size(list);
    if (count > CORNU_MAX_MODEL_TENSORS) return -1;
    for (size_t i = 0; i < count; i++) {
        const json_int_t number = json_integer_value(json_array_get(list, i));
        numbers[i] = number < 0 || number > INT32_MAX ? -1 : (int)number;
    }
    return (int)count;
}

/* Layers that an earlier graph calls, too, are that one's. */
static CornuStatus read_graph(CornuTraced *traced, const json_t *value)
{
    const json_t    *reads = json_object_get(value, "reads");
    CornuTracedGraph graph = {
        .operands = integer(value, "operands"), .results = integer(value, "results"),
        .losses = integer(value, "losses"),
        .training_only = json_is_true(json_object_get(value, "training_only")),
        .inference_only = json_is_true(json_object_get(value, "inference_only")),
        .computes_mask = json_is_true(json_object_get(value, "computes_mask")),
        .computes_states = json_is_true(json_object_get(value, "computes_states")),
    };
    graph.read_count = json_is_array(reads) ? (int)json_array_size(reads) : -1;
    graph.assigned_count = read_numbers(json_object_get(value, "assigned"), graph.assigned);
    if (graph.operands < 0 || graph.results < 0 || graph.losses < 0 || graph.read_count < 0 ||
        graph.assigned_count < 0)
        return cornu__fail(CORNU_ERR_FORMAT, "a graph with more than %d operands, results or "
                           "assigned weights", CORNU_MAX_MODEL_TENSORS);
    graph.model = cornu__functional_from_json(
        json_object_get(json_object_get(value, "graph"), "config"), NULL, NULL, traced);
    if (!graph.model) return cornu_error_take();
    graph.reads = cornu__allocate((size_t)graph.read_count + 1, sizeof *graph.reads);
    if (graph.reads) return cornu__traced_add_graph(traced, graph);
    cornu_model_free(graph.model);
    return CORNU_ERR_MEMORY;
}

/* The weights that the graphs read, by their places among all, which are known now. */
static CornuStatus read_reads(CornuTraced *traced, const json_t *graphs)
{
    for (int g = 0; g < traced->graph_count; g++) {
        CornuTracedGraph *graph = &traced->graphs[g];
        for (int i = 0; i < graph->assigned_count; i++)
            if (graph->assigned[i] >= traced->base.weight_count)
                return cornu__fail(CORNU_ERR_FORMAT, "a graph assigns weight %d of %d",
                                   graph->assigned[i], traced->base.weight_count);
        const json_t     *places = json_object_get(json_array_get(graphs, (size_t)g), "reads");
        for (int i = 0; i < graph->read_count; i++) {
            const json_t      *place = json_array_get(places, (size_t)i);
            const json_int_t   at = json_is_integer(place) ? json_integer_value(place) : -1;
            if (at < 0 || at >= traced->base.weight_count)
                return cornu__fail(CORNU_ERR_FORMAT, "a graph reads weight %lld of %d",
                                   (long long)at, traced->base.weight_count);
            graph->reads[i] = traced->base.weights[at];
        }
    }
    return CORNU_OK;
}

static CornuStatus read_parts(CornuTraced *traced, const json_t *parts)
{
    const json_t *weights = json_object_get(parts, "weights");
    const json_t *graphs = json_object_get(parts, "graphs");
    if (!cornu__traced_set_attributes(traced, json_object_get(parts, "attributes")))
        return cornu__unexpected("attributes", "a list of [layer, attribute]");
    for (size_t i = 0; i < json_array_size(weights); i++)
        if (!cornu__traced_add_weight(traced, json_array_get(weights, i)))
            return cornu_error_take();
    for (size_t i = 0; i < json_array_size(graphs); i++)
        CORNU__TRY(read_graph(traced, json_array_get(graphs, i)));
    if (!json_array_size(graphs)) return cornu__unexpected("graphs", "a list of graphs");
    return read_reads(traced, graphs);
}

CornuStatus cornu__traced_from_json(const json_t *value, CornuLayer **layer)
{
    const json_t *parts = json_object_get(value, "traced");
    json_t       *config = json_object_get(value, "config");
    const char   *policy;
    CORNU__TRY(cornu__read_policy(json_object_get(config, "dtype"), &policy));
    char *text = cornu__json_text(config);
    if (!text) return CORNU_ERR_MEMORY;
    *layer = cornu_traced(
        .class_name = json_string_value(json_object_get(value, "class_name")),
        .module = json_string_value(json_object_get(value, "module")),
        .registered_name = json_string_value(json_object_get(value, "registered_name")),
        .config = text, .name = json_string_value(json_object_get(config, "name")),
        .dtype = policy, .frozen = json_is_false(json_object_get(config, "trainable")),
        .supports_masking = json_is_true(json_object_get(parts, "supports_masking")));
    free(text);
    if (!*layer) return cornu_error_take();
    (*layer)->owners = 1;
    return read_parts((CornuTraced *)*layer, parts);
}
