/* Keras' signatures of operations: which argument is which, by position and by name. */
#if defined(CORNU_INFERENCE) && !defined(CORNU_OPERATIONS)
#define CORNU_FEWER_OPERATIONS
#endif
#include "operation_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../config/naming_internal.h"
#include "../../../device/text/nearest.h"

enum { MOST_ARGUMENTS = 16 };

/* "Clip @x x_min x_max", a string after the other, the last one empty: a member for each row, which
 * takes less than a pointer to it. */
static const struct {
#define SIGNATURE(class_name, text) char class_name[sizeof #class_name " " text];
#include "signatures.def"
    char end[1];
} signatures = {
#define SIGNATURE(class_name, text) #class_name " " text,
#include "signatures.def"
    "",
};

static const char *signature_of(const CornuOperationClass *kind)
{
    const char  *name = kind->kind.class_name;
    const size_t length = strlen(name);
    for (const char *row = (const char *)&signatures; *row; row += strlen(row) + 1)
        if (!strncmp(row, name, length) && row[length] == ' ') return row + length + 1;
    return "@x";
}

const char *cornu__operation_function(const CornuOperationClass *kind, CornuText *text)
{
    static const struct { const char *class_name, *name; } rows[] = {
#define FUNCTION(class_name, name) { #class_name, #name },
#include "signatures.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].class_name, kind->kind.class_name)) return rows[i].name;
    cornu__snake_case(kind->kind.class_name, text->text, sizeof text->text);
    return text->text;
}

const char *cornu__operation_alias(const CornuOperationClass *kind, int i)
{
    static const struct { const char *class_name, *name; } rows[] = {
#define ALIAS(class_name, name) { #class_name, #name },
#include "signatures.def"
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(rows[k].class_name, kind->kind.class_name) && i-- == 0) return rows[k].name;
    return NULL;
}

static CornuOperationArgument argument_of(const char *text)
{
    CornuOperationArgument argument = { .operand = *text == '@' };
    text += argument.operand;
    argument.many = *text == '*';
    text += argument.many;
    argument.required = !argument.many;
    size_t length = strcspn(text, "=");
    snprintf(argument.name, sizeof argument.name, "%.*s", (int)length, text);
    if (text[length] == '\0') return argument;
    argument.required = false;
    argument.usual = json_loads(text + length + 1, JSON_DECODE_ANY, NULL);
    if (!argument.usual) argument.usual = json_string(text + length + 1);
    return argument;
}

bool cornu__operation_argument(const CornuOperationClass *kind, int i,
                               CornuOperationArgument *argument)
{
    char        word[64];
    const char *text = signature_of(kind);
    int         length;
    for (; sscanf(text, " %63s%n", word, &length) == 1; text += length) {
        if (i-- > 0) continue;
        *argument = argument_of(word);
        return true;
    }
    return false;
}

/* ---- Binding ---- */

typedef struct {
    const CornuOperationClass *kind;
    const json_t              *positional, *named;
    size_t                     at;       /* the next of these by position */
    size_t                     by_name;  /* of the named ones, how many have been found */
    bool                       gap;      /* an operand was left out: others have their names */
    json_t                    *config, *args, *kwargs;
} Binding;

/* The value of an argument, borrowed; NULL if it is not given. With operands in any number after
 * it, an argument may come by name before them. */
static CornuStatus find_value(Binding *b, const CornuOperationArgument *argument, bool many_follow,
                              json_t **value)
{
    CornuText name;
    json_t   *named = json_object_get(b->named, argument->name);
    *value = named && many_follow ? NULL : json_array_get(b->positional, b->at);
    if (*value) b->at++;
    if (*value && named)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is given twice, by position and by name",
                           cornu__operation_function(b->kind, &name), argument->name);
    if (named) b->by_name++;
    if (!*value) *value = named;
    if (!*value && argument->required)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is required",
                           cornu__operation_function(b->kind, &name), argument->name);
    return CORNU_OK;
}

static bool many_follow(const CornuOperationClass *kind, int i)
{
    CornuOperationArgument argument;
    for (bool many = false; cornu__operation_argument(kind, i, &argument); i++) {
        many = argument.many;
        json_decref(argument.usual);
        if (many) return true;
    }
    return false;
}

static CornuStatus set(int failed)
{
    return failed ? cornu__fail(CORNU_ERR_MEMORY, "no memory for an operation") : CORNU_OK;
}

static CornuStatus bind_one(Binding *b, const CornuOperationArgument *argument, bool many)
{
    json_t *value;
    if (argument->many) {
        for (; b->at < json_array_size(b->positional); b->at++)
            CORNU__TRY(set(json_array_append(b->args, json_array_get(b->positional, b->at))));
        return CORNU_OK;
    }
    CORNU__TRY(find_value(b, argument, many, &value));
    if (!argument->operand)
        return value ? set(json_object_set(b->config, argument->name, value)) : CORNU_OK;
    if (!value || json_is_null(value)) {
        b->gap = true;
        return CORNU_OK;
    }
    return set(b->gap ? json_object_set(b->kwargs, argument->name, value)
                      : json_array_append(b->args, value));
}

/* What no argument has taken is an error. */
static CornuStatus refuse_rest(const Binding *b)
{
    const char            *names[MOST_ARGUMENTS], *key;
    CornuOperationArgument arguments[MOST_ARGUMENTS];
    CornuText              name;
    int                    count = 0;
    if (b->at == json_array_size(b->positional) && b->by_name == json_object_size(b->named))
        return CORNU_OK;
    for (; count < MOST_ARGUMENTS && cornu__operation_argument(b->kind, count, &arguments[count]);
         count++) {
        json_decref(arguments[count].usual);
        names[count] = arguments[count].name;
    }
    if (b->at < json_array_size(b->positional))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: takes %d argument%s, %zu are given by position",
                           cornu__operation_function(b->kind, &name), count,
                           count == 1 ? "" : "s", json_array_size(b->positional));
    json_t *value;
    json_object_foreach((json_t *)b->named, key, value) {
        int i = 0;
        while (i < count && strcmp(names[i], key)) i++;
        if (i < count) continue;
        const char *nearest = cornu_nearest(key, names, count);
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: there is no argument \"%.60s\"%s%s%s",
                           cornu__operation_function(b->kind, &name), key,
                           nearest ? "; did you mean " : "", nearest ? nearest : "",
                           nearest ? "?" : "");
    }
    return CORNU_OK;
}

CornuStatus cornu__operation_bind(const CornuOperationClass *kind, const json_t *positional,
                                  const json_t *named, json_t *config, json_t *args,
                                  json_t *kwargs)
{
    CornuOperationArgument argument;
    Binding b = { .kind = kind, .positional = positional, .named = named, .config = config,
                  .args = args, .kwargs = kwargs };
    for (int i = 0; cornu__operation_argument(kind, i, &argument); i++) {
        json_decref(argument.usual);
        CORNU__TRY(bind_one(&b, &argument, many_follow(kind, i + 1)));
    }
    return refuse_rest(&b);
}

/* ---- What a rule does not read ---- */

/* Whether the argument's value says no more than its absence; null does not, where the default is a
 * number or a word. */
static bool is_usual(const CornuOperationClass *kind, const char *name, const json_t *value)
{
    CornuOperationArgument argument;
    bool                   usual = json_is_null(value) || json_is_false(value);
    for (int i = 0; cornu__operation_argument(kind, i, &argument); i++) {
        const json_t *own = argument.usual;
        if (!strcmp(argument.name, name))
            usual = cornu__json_same(own, value) || json_is_false(value) ||
                    (json_is_null(value) && !json_is_number(own) && !json_is_string(own));
        json_decref(argument.usual);
    }
    return usual;
}

CornuStatus cornu__operation_check_asked(const CornuOperationClass *kind, const CornuOperands *o)
{
    const char *name;
    json_t     *value;
    int         i = 0;
    json_object_foreach((json_t *)o->config, name, value) {
        const bool asked = (*o->asked >> i & 1) && !json_is_null(value);
        if (asked || is_usual(kind, name, value)) {
            i += i < 63;
            continue;
        }
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: the argument %.60s, %.60s, is not available in "
                    "this version", cornu_layer_name(o->layer), name, text ? text : "");
        free(text);
        return CORNU_ERR_UNSUPPORTED;
    }
    return CORNU_OK;
}
