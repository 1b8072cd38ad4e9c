/* Functions of TensorFlow as operations: TFOpLambda and SlicingOpLambda of tf.keras 2.4 and later.
 * */
#include "keras2_internal.h"


#include <ctype.h>
#include <string.h>

typedef struct { const char *names, *module, *class_name, *tensors, *arguments; } Function;

static const Function functions[] = {
#define FUNCTION(names, module, class_name, tensors, arguments) \
    { names, #module, #class_name, tensors, arguments },
#include "functions.def"
#undef FUNCTION
};

enum { WORD = 64 };

bool cornu__keras2_is_function(const char *class_name)
{
    return !strcmp(class_name, "TFOpLambda") || !strcmp(class_name, "SlicingOpLambda");
}

/* Takes the next of the words in *text, which blanks separate; false after the last. */
static bool next_word(const char **text, char word[WORD])
{
    const size_t length = strcspn(*text, " ");
    if (length == 0 || length >= WORD) return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length + strspn(*text + length, " ");
    return true;
}

static const Function *find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *names = functions[i].names;
        char        word[WORD];
        while (next_word(&names, word))
            if (!strcmp(word, name)) return &functions[i];
    }
    return NULL;
}

/* ---- Arguments ---- */

/* One length may be -1: what is left. None is longer than an axis can be. */
static json_int_t length_at(const json_t *lengths, size_t i)
{
    const json_int_t length = json_integer_value(json_array_get(lengths, i));
    return length < 0 ? -1 : length > INT32_MAX ? INT32_MAX : length;
}

/* Of all parts from one on. */
static json_int_t length_of(const json_t *lengths, size_t from)
{
    json_int_t sum = 0;
    for (size_t i = from; i < json_array_size(lengths); i++) sum += length_at(lengths, i);
    return sum;
}

/* The lengths of parts as the places between them; after what is left, from the end. */
static json_t *places(const json_t *lengths)
{
    const size_t count = json_array_size(lengths);
    json_t      *list = json_array();
    json_int_t   at = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        const json_int_t length = length_at(lengths, i);
        at = length < 0 ? -length_of(lengths, i + 1) : at + length;
        list = cornu__json_append(list, json_integer(at));
    }
    return list;
}

/* TensorFlow's modes are "REFLECT" or "reflect". */
static json_t *lower_case(const char *text)
{
    char   small[WORD];
    size_t i = 0;
    for (; text[i] && i + 1 < sizeof small; i++) small[i] = (char)tolower((unsigned char)text[i]);
    small[i] = '\0';
    return json_string(small);
}

static json_t *argument(const char *name, json_t *value)
{
    if (!strcmp(name, "indices_or_sections") && json_is_array(value)) return places(value);
    if (!strcmp(name, "mode") && json_is_string(value))
        return lower_case(json_string_value(value));
    return json_incref(value);
}

/* The rule of an argument in a row: the text after its name, ":keras", "=JSON" or "-"; NULL if it
 * is none of them. A default after it is cut off. */
static const char *rule_of(const char *arguments, const char *name, char word[WORD])
{
    const size_t length = strlen(name);
    while (next_word(&arguments, word))
        if (!strncmp(word, name, length) && strspn(word + length, ":=-") > 0) {
            word[strcspn(word, "@")] = '\0';
            return word + length;
        }
    return NULL;
}

/* Adds the arguments of a call that are not tensors to the operation's config. */
static CornuStatus read_arguments(const Function *row, const json_t *kwargs, json_t *config)
{
    const char *name;
    json_t     *value;
    char        word[WORD], tensor[WORD];
    json_object_foreach((json_t *)kwargs, name, value) {
        const char *tensors = row->tensors, *rule = rule_of(row->arguments, name, word);
        bool        is_tensor = false;
        while (next_word(&tensors, tensor)) is_tensor |= !strcmp(tensor, name);
        if (is_tensor || json_is_null(value) || !strcmp(name, "name")) continue;
        if (rule && (*rule == '-' || (*rule == '=' && cornu__json_is(value, rule + 1)))) continue;
        if (!rule || *rule == '=')
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" of tf.%.60s is %s%s",
                               name, row->names, rule ? "only available as " : "not available",
                               rule ? rule + 1 : "");
        if (json_object_set_new(config, rule + 1, argument(rule + 1, value)))
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the arguments of tf.%.60s", name);
    }
    return CORNU_OK;
}

/* tf.pad has 0 as constant_values in every mode. */
static void drop_unused(json_t *config)
{
    const char *mode = json_string_value(json_object_get(config, "mode"));
    if (mode && strcmp(mode, "constant")) json_object_del(config, "constant_values");
}

/* The defaults of TensorFlow that are not Keras'. */
static CornuStatus add_defaults(const Function *row, json_t *config)
{
    const char *arguments = row->arguments;
    char        word[WORD];
    while (next_word(&arguments, word)) {
        char       *usual = strchr(word, '@');
        const char *name = strchr(word, ':');
        if (!usual || !name) continue;
        *usual++ = '\0';
        if (json_object_get(config, ++name)) continue;
        if (*usual == '!')
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "tf.%.60s is not available without \"%s\"",
                               row->names, name);
        if (json_object_set_new(config, name, json_loads(usual, JSON_DECODE_ANY, NULL)))
            return cornu__fail(CORNU_ERR_MEMORY, "no memory for the arguments of tf.%.60s", name);
    }
    return CORNU_OK;
}

/* The tensors of a call, by position: the first is not by keyword. */
static json_t *tensors_of(const Function *row, const json_t *call)
{
    const json_t *kwargs = json_object_get(call, "kwargs");
    const char   *names = row->tensors;
    json_t       *args = json_array();
    char          word[WORD];
    for (int i = 0; next_word(&names, word); i++) {
        json_t *value = json_object_get(kwargs, word);
        if (i == 0 && !value) value = json_array_get(json_object_get(call, "args"), 0);
        if (!value || json_is_null(value)) break;
        args = cornu__json_append(args, json_incref(value));
    }
    return args;
}

/* ---- Operations that are not one class ---- */

/* A product with a transposed factor is an Einsum. */
static const char *transpose_product(json_t *config)
{
    const bool a = json_is_true(json_object_get(config, "transpose_a"));
    const bool b = json_is_true(json_object_get(config, "transpose_b"));
    json_object_del(config, "transpose_a");
    json_object_del(config, "transpose_b");
    if (!a && !b) return "Matmul";
    const char *subscripts = a && b ? "...ki,...jk->...ij" : a ? "...ki,...kj->...ij"
                                                              : "...ik,...jk->...ij";
    return json_object_set_new(config, "subscripts", json_string(subscripts)) ? NULL : "Einsum";
}

static json_t *operation(const char *module, const char *class_name, json_t *config, json_t *calls)
{
    json_t *name = json_incref(json_object_get(config, "name"));
    return json_pack("{s:o, s:s, s:o, s:s, s:o, s:o}", "module",
                     json_sprintf("keras.src.ops.%s", module), "class_name", class_name, "config",
                     config, "registered_name", class_name, "name", name, "inbound_nodes", calls);
}

/* {"start", "stop", "step"}, a number, null, or {"class_name": "__ellipsis__"} */
static json_t *key_of(const json_t *spec)
{
    if (!json_is_object(spec) || json_object_get(spec, "class_name"))
        return json_incref((json_t *)spec);
    return json_pack("{s:s, s:O}", "class_name", "__slice__", "config", spec);
}

/* x[slice_spec] */
static json_t *slicing(const char *name, const json_t *calls)
{
    json_t *made = json_array();
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        const json_t *spec = json_object_get(json_object_get(call, "kwargs"), "slice_spec");
        json_t       *keys = json_array();
        for (size_t k = 0; json_is_array(spec) && k < json_array_size(spec); k++)
            keys = cornu__json_append(keys, key_of(json_array_get(spec, k)));
        if (!json_is_array(spec)) keys = cornu__json_append(keys, key_of(spec));
        made = cornu__json_append(
            made, json_pack("{s:[O, o], s:{}}", "args",
                            json_array_get(json_object_get(call, "args"), 0), keys, "kwargs"));
    }
    return operation("numpy", "GetItem", json_pack("{s:s}", "name", name), made);
}

json_t *cornu__keras2_function(const char *name, const json_t *config, const json_t *calls)
{
    const char     *function = json_string_value(json_object_get(config, "function"));
    const Function *row = function ? find(function) : NULL;
    if (function && !strcmp(function, "__operators__.getitem")) return slicing(name, calls);
    if (!row)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%.60s: the function tf.%.60s is not "
                                "available; export the model to .onnx or .tflite, or use layers",
                                name, function ? function : "");
    json_t     *made = json_array(), *arguments = json_pack("{s:s}", "name", name);
    CornuStatus status = read_arguments(
        row, json_object_get(json_array_get(calls, 0), "kwargs"), arguments);
    if (!status) status = add_defaults(row, arguments);
    drop_unused(arguments);
    for (size_t i = 0; i < json_array_size(calls); i++)
        made = cornu__json_append(made, json_pack("{s:o, s:{}}", "args",
                                                  tensors_of(row, json_array_get(calls, i)),
                                                  "kwargs"));
    const char *class_name = strcmp(row->class_name, "Matmul") ? row->class_name
                                                               : transpose_product(arguments);
    if (!status && class_name) return operation(row->module, class_name, arguments, made);
    json_decref(made);
    json_decref(arguments);
    cornu__fail_prefix(status, name);
    return cornu__null();
}
