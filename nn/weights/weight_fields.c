/* Kinds of fields that are rules of weights. */
#include "weight_rules_internal.h"

#include <stdio.h>
#include <string.h>

#include "../fields/own_objects_internal.h"

json_t *cornu__weight_rule_to_json(const CornuWeightRuleFamily *family, const void *rule)
{
    const CornuWeightRuleClass *kind = cornu__weight_rule_class(family, rule);
    char module[40];
    if (!kind) return json_null();
    snprintf(module, sizeof module, "keras.%ss", family->word);
    json_t *config = cornu__fields_to_json(NULL, kind->fields, rule, json_object());
    return cornu__json_object(module, kind->class_name, config);
}

CornuStatus cornu__read_weight_rule(const CornuWeightRuleFamily *family, const json_t *value,
                                    const char *name, void *rule)
{
    const json_t *class_name = json_is_object(value) ? json_object_get(value, "class_name") : value;
    if (json_is_null(value)) return CORNU_OK;
    const void *own = cornu__own_object(value);
    if (own) {
        memcpy(rule, own, family->size);
        return CORNU_OK;
    }
    if (!json_is_string(class_name))
        return cornu__unexpected(name, "null, a string or an object with a class_name");
    CORNU__TRY(cornu__fail_prefix(
        cornu__weight_rule_find(family, json_string_value(class_name), rule), name));
    const json_t *config = json_object_get(value, "config");
    if (!config) return CORNU_OK;
    const CornuField *fields = cornu__weight_rule_class(family, rule)->fields;
    CORNU__TRY(cornu__fail_prefix(cornu__read_arguments(NULL, fields, config, rule), name));
    return cornu__fail_prefix(family->resolve(rule), name);
}

static json_t *write_rule(const CornuFieldSource *from)
{
    return cornu__weight_rule_to_json(from->kind->family, from->at);
}

static CornuStatus read_rule(const CornuFieldTarget *to, const json_t *value)
{
    return cornu__read_weight_rule(to->kind->family, value, to->name, to->at);
}

/* The list of a Constant. */
static void *values_memory(const void *at)
{
    return (void *)(uintptr_t)((const CornuInitializer *)at)->values.values;
}

#define RULE .write = write_rule, .read = read_rule
const CornuFieldKind cornu_field_initializer = {
    .name = "initializer", .size = sizeof(CornuInitializer), RULE, .family = &cornu__initializers,
    .memory = values_memory, .keeps = true,
};
const CornuFieldKind cornu_field_regularizer = {
    .name = "regularizer", .size = sizeof(CornuRegularizer), RULE, .family = &cornu__regularizers,
};
const CornuFieldKind cornu_field_constraint = {
    .name = "constraint", .size = sizeof(CornuConstraint), RULE, .family = &cornu__constraints,
};
