/* keras.ops on symbols, and on tensors of a graph. */
#include <string.h>

#include "../config/naming_internal.h"
#include "../../device/text/nearest.h"
#include "../../tensor/graph_internal.h"
#include "../layers/operations/operation_internal.h"
#include "functional.h"

static bool has_alias(const CornuOperationClass *kind, const char *name)
{
    const char *alias;
    for (int i = 0; (alias = cornu__operation_alias(kind, i)); i++)
        if (!strcmp(alias, name)) return true;
    return false;
}

/* By Keras' function: "argmax" is the class Argmax. */
static const CornuOperationClass *class_named(const char *name)
{
    CornuText   text;
    char        label[64];
    const char *names[1024];
    int         count = 0;
    for (const CornuOperationClass *row = cornu__operations; row->module; row++) {
        cornu__snake_case(row->kind.class_name, label, sizeof label);
        if (!strcmp(label, name) || !strcmp(cornu__operation_function(row, &text), name) ||
            has_alias(row, name))
            return row;
        if (count < (int)(sizeof names / sizeof *names)) names[count++] = row->kind.class_name;
    }
    const char *nearest = cornu_nearest(name, names, count);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_operation: there is no operation \"%s\"%s%s"
                            "%s", name, nearest ? "; did you mean that of the class " : "",
                            nearest ? nearest : "", nearest ? "?" : "");
}

static json_t *operand(int i)
{
    return json_pack("{s:s, s:i}", "class_name", "__keras_tensor__", "config", i);
}

/* What a call is given: its symbols as numbered operands. */
typedef struct {
    const char *name;          /* of the class */
    int         count;         /* of symbols */
    int         nulls;         /* of lists, which are symbols unless these have numbers */
    bool        numbered;
} Symbols;

static bool has_extent(const json_t *value)
{
    const char *key, *class_name = json_string_value(json_object_get(value, "class_name"));
    json_t     *each;
    bool        has = class_name && !strcmp(class_name, "__extent__");
    for (size_t i = 0; i < json_array_size(value) && !has; i++)
        has = has_extent(json_array_get(value, i));
    if (!class_name) {
        json_object_foreach((json_t *)value, key, each) has |= has_extent(each);
    }
    return has;
}

static json_t *all_operands(int count)
{
    json_t *args = json_array();
    for (int i = 0; i < count && args; i++) args = cornu__json_append(args, operand(i));
    return args;
}

static bool is_operand(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    return class_name && !strcmp(class_name, "__keras_tensor__");
}

static bool has_operand(const json_t *value)
{
    bool has = is_operand(value);
    for (size_t i = 0; i < json_array_size(value) && !has; i++)
        has = has_operand(json_array_get(value, i));
    return has;
}

/* A copy of a list in which the next symbols replace the nulls, also in lists in it. */
static json_t *filled(const json_t *value, Symbols *symbols)
{
    if (json_is_null(value) && !symbols->numbered) return operand(symbols->nulls++);
    if (!json_is_array(value)) return json_incref((json_t *)value);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        list = cornu__json_append(list, filled(json_array_get(value, i), symbols));
    return list;
}

/* Whether the operands in lists and arguments are the symbols; *args is made from "args". */
static CornuStatus place_symbols(const json_t *given, Symbols *symbols, json_t **args)
{
    const char *key;
    json_t     *value, *form = json_object_get(given, "args");
    json_object_foreach((json_t *)given, key, value) symbols->numbered |= has_operand(value);
    if (!form && !symbols->numbered) {
        *args = all_operands(symbols->count);
        return CORNU_OK;
    }
    *args = json_is_array(form) ? filled(form, symbols) : json_array();
    if (symbols->numbered || symbols->nulls == symbols->count ||
        (symbols->nulls == 0 && has_extent(given)))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_operation: \"args\" of %s has %d times null for "
                       "%d symbols", symbols->name, symbols->nulls, symbols->count);
}

static CornuLayer *operation(const CornuOperationClass *kind, const char *arguments, int count)
{
    Symbols symbols = { .name = kind->kind.class_name, .count = count };
    json_t *given = arguments ? cornu__json_parse(arguments, strlen(arguments), 64) : json_object();
    json_t *positional = NULL, *config = json_object(), *args = json_array();
    json_t *kwargs = json_object(), *name = json_incref(json_object_get(given, "name"));
    CornuLayer *layer = NULL;
    CornuStatus status = CORNU_OK;
    if (!given && (!arguments || cornu_error_status() == CORNU_ERR_MEMORY))
        status = cornu__fail(CORNU_ERR_MEMORY, "no memory for an operation");
    else if (!json_is_object(given))
        status = cornu__fail(CORNU_ERR_ARGUMENT, "cornu_operation: the arguments of %s are %.80s, "
                             "expected a JSON object", symbols.name, arguments);
    if (!status) status = place_symbols(given, &symbols, &positional);
    if (!status && (!positional || !config || !args || !kwargs))
        status = cornu__fail(CORNU_ERR_MEMORY, "no memory for an operation");
    json_t *extents = json_incref(json_object_get(given, "__extents__"));
    if (!extents && has_extent(given)) extents = all_operands(count);
    json_object_del(given, "args");
    json_object_del(given, "name");
    json_object_del(given, "__extents__");
    if (!status) status = cornu__operation_bind(kind, positional, given, config, args, kwargs);
    if (!status && extents && json_object_set(kwargs, "__extents__", extents))
        status = cornu__fail(CORNU_ERR_MEMORY, "no memory for an operation");
    json_decref(extents);
    if (!status)
        layer = cornu__operation_create(kind, json_string_value(name), config, args, kwargs);
    json_decref(name);
    json_decref(given);
    json_decref(positional);
    json_decref(config);
    json_decref(args);
    json_decref(kwargs);
    return status ? cornu__null() : layer;
}

CornuSymbol *cornu_operation_from(const char *name, const char *arguments, CornuSymbol *const *in,
                                  int count)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuOperationClass *kind = cornu__refused() ? NULL : class_named(name);
    CornuLayer                *layer = kind ? operation(kind, arguments, count) : NULL;
    return layer ? cornu_call_from(layer, in, count) : NULL;
}

/* ---- On tensors ---- */

/* What the caller has not set, as in cornu_model_call. */
static CornuCall completed(const CornuCall *call, CornuTensor *const *in, int in_count)
{
    CornuCall        full = *call;
    const CornuType  i64 = cornu_scalar(CORNU_I64);
    const CornuShape first = in_count > 0 && in[0] ? cornu_tensor_shape(in[0])
                                                   : cornu_shape_from(0, NULL);
    const double     rows = first.rank > 0 ? (double)first.extent[0] : 1.0;
    if (!full.count) full.count = cornu_op_constant(full.graph, i64, rows);
    if (!full.total) full.total = full.count;
    if (!full.seed) full.seed = cornu_op_constant(full.graph, i64, 0.0);
    if (!full.iteration) full.iteration = cornu_op_constant(full.graph, i64, 0.0);
    if (!full.position) full.position = cornu_op_constant(full.graph, i64, 0.0);
    return full;
}

/* Records the operation that the layer is; it has the right name for messages. */
static CornuStatus record(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                          int in_count, CornuTensor **out, int *out_count)
{
    CornuShape shapes[CORNU_MAX_LAYER_TENSORS] = { { .rank = 0 } };
    for (int i = 0; i < in_count; i++) shapes[i] = cornu_tensor_shape(in[i]);
    CORNU__TRY(cornu__fail_prefix(cornu__operation_build(layer, shapes, in_count),
                                  cornu_layer_name(layer)));
    const CornuCall full = completed(call, in, in_count);
    /* Draws of one graph differ. */
    layer->generator = call->graph->program->op_count;
    CornuTensor    *y = cornu_error_pending() ? NULL
                      : cornu__operation_call(layer, &full, in, in_count, out);
    if (!y && !cornu_error_pending())
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: an argument is missing, or is not of the "
                           "expected kind", cornu_layer_name(layer));
    if (!y) return cornu_error_take();
    out[0] = y;
    *out_count = cornu__operation_outputs(layer);
    return CORNU_OK;
}

CornuStatus cornu_operation_record(const CornuCall *call, const char *name, const char *arguments,
                                   CornuTensor *const *in, int in_count, CornuTensor **out,
                                   int *out_count)
{
    CORNU__NEED(call);
    CORNU__NEED(name);
    CORNU__NEED(out);
    CORNU__NEED(out_count);
    *out_count = 0;
    if (cornu_error_pending()) return cornu_error_take();
    if (in_count < 0 || in_count > CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: got %d tensors, expected at most %d", name,
                           in_count, CORNU_MAX_LAYER_TENSORS);
    for (int i = 0; i < in_count; i++)
        if (!in[i] || cornu_tensor_graph(in[i]) != call->graph)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: tensor %d is %s", name, i,
                               in[i] ? "of another graph" : "NULL");
    const CornuOperationClass *kind = class_named(name);
    CornuLayer                *layer = kind ? operation(kind, arguments, in_count) : NULL;
    if (!layer) return cornu_error_take();
    if (!layer->name) layer->name = cornu__copy_text(name);
    const CornuStatus status = record(layer, call, in, in_count, out, out_count);
    cornu_layer_free(layer);
    return status;
}
