/* Writing and reading models as Keras' JSON: Sequential ones, and what both kinds share. */
#include "architecture_internal.h"
#include "keras2/keras2_internal.h"
#include "../../device/inference_internal.h"

#include <math.h>
#include <string.h>

static const char *const dtype_names[CORNU_STRING + 1] = {
    [CORNU_F32] = "float32", [CORNU_F64] = "float64", [CORNU_BF16] = "bfloat16",
    [CORNU_F16] = "float16", [CORNU_I64] = "int64", [CORNU_I32] = "int32",
    [CORNU_U32] = "uint32", [CORNU_U8] = "uint8", [CORNU_BOOL] = "bool",
    [CORNU_STRING] = "string",
};

static bool is_functional(const CornuModel *model)
{
    return model->base.kind == &cornu__functional_class;
}

const char *cornu__keras_dtype(CornuDtype dtype) { return dtype_names[dtype]; }

bool cornu__is_model_class(const char *class_name)
{
    return !strcmp(class_name, cornu__sequential_class.class_name) ||
           !strcmp(class_name, cornu__functional_class.class_name);
}

/* ---- Writing ---- */

/* Of an input of a function, whose batch_shape is all of its shape. Keras cannot load one. */
static const char WHOLE[] = "whole";

json_t *cornu__input_to_json(const CornuModel *model, const CornuSymbol *symbol)
{
    const CornuInputLayer *input = (const CornuInputLayer *)symbol->node->layer;
    CornuShape             shape = symbol->type.shape;
    if (!input->whole) shape.extent[0] = cornu_model_batch_size(model);   /* which Keras requires of
                                                                           a stateful one */
    json_t *config = json_pack("{s:o, s:s, s:s}", "batch_shape", cornu__json_shape(shape), "dtype",
                               dtype_names[input->dtype], "name", cornu_layer_name(&input->base));
    if (input->whole && config) json_object_set_new(config, WHOLE, json_true());
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

json_t *cornu__model_to_json(const CornuModel *model, const CornuPolicy *usual)
{
    const CornuPolicy *policy = model->base.own_policy ? model->base.own_policy : usual;
    return is_functional(model) ? cornu__functional_to_json(model, policy)
                                : sequential_to_json(model, policy);
}

/* A file cannot hold a function. */
static CornuStatus check_initializers(const CornuLayer *layer)
{
    const char *config = (const char *)layer + layer->kind->config_offset;
    for (const CornuField *field = layer->kind->fields; field && field->name; field++)
        if (field->kind == CORNU_FIELD_INITIALIZER &&
            ((const CornuInitializer *)(config + field->offset))->call)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s is a function, with which a model "
                               "can be neither saved nor cloned; cornu_model_save_weights saves "
                               "its weights",
                               cornu_layer_name(layer), field->name);
    return CORNU_OK;
}

/* Whether a class is Keras' or was registered. */
static bool is_known(const CornuLayerClass *kind)
{
    const CornuLayerClass *const *known = cornu__layer_classes;
    while (*known && *known != kind) known++;
    return *known || cornu__registered_package(kind) || kind->call_many == cornu__operation_call;
}

CornuStatus cornu__check_layers(const CornuLayer *layer)
{
    const CornuLayerClass *kind = layer->kind;
    if (!is_known(kind) && !kind->call_masked && kind != &cornu__input_class)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: layers of class %s can be neither saved nor "
                           "cloned, since it is not registered: see cornu_register_layer; "
                           "cornu_model_save_weights saves their weights",
                           cornu_layer_name(layer), kind->class_name);
    CORNU__TRY(check_initializers(layer));
    for (int i = 0; i < layer->inner_count; i++) CORNU__TRY(cornu__check_layers(layer->inner[i]));
    return CORNU_OK;
}

json_t *cornu__model_config(const CornuModel *model)
{
    if (cornu__check_layers(&model->base)) return NULL;
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

/* ---- Reading ---- */

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
        if (!strcmp(name, dtype_names[i])) {
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
    return json_is_true(json_object_get(json_object_get(value, "config"), WHOLE));
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
                            : cornu__functional_from_json(config, policy, usual);
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
    CornuModel *model = cornu__model_from_json(architecture, NULL);
    if (!model || set_input(model, input) == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

char *cornu_model_to_json(const CornuModel *model)
{
    if (cornu__model_check(model)) return cornu__null();
    json_t *architecture = cornu__model_config(model);
    char   *text = architecture ? cornu__json_text(architecture) : NULL;
    json_decref(architecture);
    return text ? text : cornu__null();
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
    if (!clone || cornu__notes_read(clone, model->notes) == CORNU_OK) return clone;
    cornu_model_free(clone);
    return cornu__null();
}
