/* Writing and reading operations on tensors as Keras' JSON (operation_internal.h). In Keras' form
 * the arguments of a call contain tensors, which a layer here has as operands: in its copy of the
 * arguments each stands as a number. */
#include "architecture_internal.h"
#include "../../../device/inference_internal.h"

#include <string.h>

/* Among the arguments; other objects with a class stay whole. */
static bool is_tensor(const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "class_name"));
    return name && !strcmp(name, "__keras_tensor__");
}

/* ---- Writing ---- */

json_t *cornu__operation_to_json(const CornuLayer *layer)
{
    const CornuOperation      *operation = cornu__as_operation(layer);
    const CornuOperationClass *kind = (const CornuOperationClass *)layer->kind;
    json_t *config = cornu__json_with(json_copy(operation->config), "name",
                                      json_string(cornu_layer_name(layer)));
    return json_pack("{s:o, s:s, s:o, s:s}", "module",
                     json_sprintf(CORNU__OPERATIONS_MODULE "%s", kind->module), "class_name",
                     kind->kind.class_name, "config", config, "registered_name",
                     kind->kind.class_name);
}

typedef struct {
    CornuTensorToJson *to_json;
    void              *context;
} Writing;

static bool write_tensor(void *context, const json_t *value, json_t **made)
{
    const Writing *writing = context;
    const int      number = (int)json_integer_value(json_object_get(value, "config"));
    if (!json_object_get(value, "class_name")) return false;
    *made = is_tensor(value) ? writing->to_json(writing->context, number)
                             : json_incref((json_t *)value);
    return true;
}

json_t *cornu__operation_call_to_json(const CornuLayer *layer, CornuTensorToJson *to_json,
                                      void *context)
{
    const CornuOperation *operation = cornu__as_operation(layer);
    Writing               writing = { to_json, context };
    json_t *args = cornu__json_map(operation->args, write_tensor, &writing);
    return json_pack("{s:o, s:o}", "args", args, "kwargs",
                     cornu__json_map(operation->kwargs, write_tensor, &writing));
}

/* ---- Reading ---- */

static bool number_tensor(void *context, const json_t *value, json_t **made)
{
    json_t *histories = context;
    json_t *history = json_object_get(json_object_get(value, "config"), "keras_history");
    const json_int_t number = (json_int_t)json_array_size(histories);
    if (!json_object_get(value, "class_name")) return false;
    if (!is_tensor(value)) *made = json_incref((json_t *)value);
    else if (!json_array_append(histories, history))
        *made = json_pack("{s:s, s:I}", "class_name", "__keras_tensor__", "config", number);
    return true;
}

json_t *cornu__operation_operands(const json_t *call, json_t *histories)
{
    json_t *args = cornu__json_map(json_object_get(call, "args"), number_tensor, histories);
    return json_pack("{s:o, s:o}", "args", args, "kwargs",
                     cornu__json_map(json_object_get(call, "kwargs"), number_tensor, histories));
}

const CornuOperationClass *cornu__operation_of_json(const json_t *value)
{
    const char *module = json_string_value(json_object_get(value, "module"));
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    return module && class_name ? cornu__operation_class(module, class_name) : NULL;
}

/* The argument of Keras' signature that the JSON lacks: of the constructor, or of the call, where
 * it may be by position. It may be null. */
static CornuStatus check_required(const CornuOperationClass *kind, const json_t *config,
                                  const json_t *call)
{
    CornuOperationArgument argument;
    size_t                 place = 0;   /* of operands by position */
    for (int i = 0; cornu__operation_argument(kind, i, &argument); i++) {
        /* RMSNorm.call has no default for what the function has one for. */
        const bool call_requires = !strcmp(kind->kind.class_name, "RMSNorm") && argument.operand;
        const bool required = argument.required || call_requires;
        json_decref(argument.usual);
        place += argument.operand;
        if (!required || json_object_get(config, argument.name) ||
            json_object_get(json_object_get(call, "kwargs"), argument.name) ||
            (argument.operand && json_array_size(json_object_get(call, "args")) >= place))
            continue;
        return cornu__fail(CORNU_ERR_FORMAT, "the operation %s lacks its argument \"%s\"",
                           kind->kind.class_name, argument.name);
    }
    return CORNU_OK;
}

/* Files of the library that predicts only are those that this one wrote. */
static CornuStatus (*const check)(const CornuOperationClass *kind, const json_t *config,
                                  const json_t *call) = CORNU__FULL(check_required, NULL);

CornuStatus cornu__operation_from_json(const json_t *value, CornuLayer **layer)
{
    const CornuOperationClass *kind = cornu__operation_of_json(value);
    const json_t *first = json_array_get(json_object_get(value, "inbound_nodes"), 0);
    const char   *name = json_string_value(json_object_get(value, "name"));
    json_t       *histories = json_array();
    json_t       *call = cornu__operation_operands(first, histories);
    json_t       *config = json_copy(json_object_get(value, "config"));
    json_object_del(config, "name");
    *layer = NULL;
    if (!histories || (!config && json_object_get(value, "config")) ||
        (!call && json_is_object(first)))
        cornu__fail_null(CORNU_ERR_MEMORY, "no memory for an operation");
    else if (!name || !json_is_array(json_object_get(call, "args")) || !config ||
        !json_is_object(json_object_get(call, "kwargs")))
        cornu__fail_null(CORNU_ERR_FORMAT, "%.60s: an operation without name, config, args or "
                         "kwargs", name ? name : "");
    else if (check && check(kind, config, call))
        cornu__fail_prefix(cornu_error_status(), name), cornu__null();
    else
        *layer = cornu__operation_create(kind, name, config, json_object_get(call, "args"),
                                         json_object_get(call, "kwargs"));
    if (*layer) (*layer)->owners = 1;
    json_decref(histories);
    json_decref(call);
    json_decref(config);
    return *layer ? CORNU_OK : cornu_error_take();
}
