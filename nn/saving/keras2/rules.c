/* The rules of rules.def, applied to one object and its config. */
#include "keras2_internal.h"

#include <string.h>

typedef enum { NAMED, DROPPED, ONLY, DEFAULT, SET, FIRST, TEXT, CLASS, REFUSED } What;

typedef struct { const char *classes, *argument; What what; const char *value; } Rule;

static const Rule rules[] = {
#define RULE(classes, argument, what, value) { classes, argument, what, value },
#include "rules.def"
#undef RULE
};

static bool is_among(const char *classes, const char *class_name)
{
    const size_t length = strlen(class_name);
    if (!strcmp(classes, "*")) return true;
    while (*classes) {
        const size_t word = strcspn(classes, " ");
        if (word == length && !strncmp(classes, class_name, length)) return true;
        classes += word + strspn(classes + word, " ");
    }
    return false;
}

static CornuStatus set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "no memory for the argument \"%s\"", key);
}

static CornuStatus set_json(json_t *config, const Rule *rule)
{
    return set(config, rule->argument, json_loads(rule->value, JSON_DECODE_ANY, NULL));
}

static CornuStatus apply_text(const Rule *rule, json_t *config, const json_t *value)
{
    const char  *text = json_string_value(value);
    const size_t length = strcspn(rule->value, ":");
    if (!text || strlen(text) != length || strncmp(text, rule->value, length)) return CORNU_OK;
    return set(config, rule->argument, json_string(rule->value + length + 1));
}

static CornuStatus apply(const Rule *rule, json_t *config)
{
    json_t     *value = json_object_get(config, rule->argument);
    CornuStatus status = CORNU_OK;
    if (rule->what == SET || (rule->what == DEFAULT && !value)) return set_json(config, rule);
    if (!value) return CORNU_OK;
    switch (rule->what) {
    case TEXT: return apply_text(rule, config, value);
    case FIRST:
        return json_is_array(value) && json_array_size(value) == 1
                   ? set(config, rule->argument, json_incref(json_array_get(value, 0))) : CORNU_OK;
    case ONLY:
        if (!json_is_null(value) && !cornu__json_is(value, rule->value))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%s\" of Keras 2 is only "
                               "available as %s", rule->argument, rule->value);
        break;
    case NAMED: status = set(config, rule->value, json_incref(value)); break;
    default:    break;
    }
    if (rule->what != DEFAULT) json_object_del(config, rule->argument);
    return status;
}

CornuStatus cornu__keras2_apply(const char *class_name, json_t *object, json_t *config)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const Rule *rule = &rules[i];
        if (!is_among(rule->classes, class_name)) continue;
        if (rule->what == REFUSED)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s", class_name, rule->value);
        if (rule->what == CLASS) class_name = rule->value;
        else CORNU__TRY(apply(rule, config));
    }
    return set(object, "class_name", json_string(class_name));
}
