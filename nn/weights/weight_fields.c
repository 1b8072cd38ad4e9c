/* Kinds of fields that are rules of weights. */
#include "weight_rules_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../fields/own_objects_internal.h"

static const char **record_of(const CornuWeightRuleFamily *family, const void *rule)
{
    return (const char **)((char *)(uintptr_t)rule + family->record);
}

bool cornu__weight_rule_is_unnamed(const CornuWeightRuleFamily *family, const void *rule)
{
    /* A pointer to a function is not one to data; of both kinds only all zeros are NULL. */
    static const char none[sizeof(void (*)(void))];
    return memcmp((const char *)rule + family->call, none, sizeof none) &&
           !*record_of(family, rule);
}

/* The caller's rule, or one that fails where it is needed; its record is memory of the field. */
static CornuStatus read_foreign(const CornuWeightRuleFamily *family, const json_t *value,
                                void *rule)
{
    const void *made = cornu__resolve(family->word, value);
    if (cornu_error_pending()) return cornu_error_take();
    char *record = cornu__json_text(value);
    if (!record) return cornu_error_take();
    memset(rule, 0, family->size);
    if (made) memcpy(rule, made, family->size);
    *(unsigned *)rule = family->own;
    if (!made) family->miss(rule);
    const char *copy = cornu__copy_text(record);
    free(record);
    *record_of(family, rule) = copy;
    return copy ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Likewise one of the caller's objects. */
static CornuStatus read_own(const CornuWeightRuleFamily *family, const void *own, void *rule)
{
    memcpy(rule, own, family->size);
    const char **record = record_of(family, rule);
    if (*record && !(*record = cornu__copy_text(*record))) return CORNU_ERR_MEMORY;
    return CORNU_OK;
}

json_t *cornu__weight_rule_to_json(const CornuWeightRuleFamily *family, const void *rule)
{
    const CornuWeightRuleClass *kind = cornu__weight_rule_class(family, rule);
    char module[40];
    const char *record = kind ? NULL : *record_of(family, rule);
    if (record) return cornu__json_parse(record, strlen(record), CORNU__RECORD_DEPTH);
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
    if (own) return read_own(family, own, rule);
    if (cornu__is_of_program(value)) return read_foreign(family, value, rule);
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

/* The list of a Constant, or what files have of a function. */
static void *initializer_memory(const void *at)
{
    const CornuInitializer *self = at;
    return (void *)(uintptr_t)(self->call ? (const void *)self->record : self->values.values);
}

static void *regularizer_memory(const void *at)
{
    return (void *)(uintptr_t)((const CornuRegularizer *)at)->record;
}

static void *constraint_memory(const void *at)
{
    return (void *)(uintptr_t)((const CornuConstraint *)at)->record;
}

#define RULE .write = write_rule, .read = read_rule
const CornuFieldKind cornu_field_initializer = {
    .name = "initializer", .size = sizeof(CornuInitializer), RULE, .family = &cornu__initializers,
    .memory = initializer_memory, .keeps = true,
};
const CornuFieldKind cornu_field_regularizer = {
    .name = "regularizer", .size = sizeof(CornuRegularizer), RULE, .family = &cornu__regularizers,
    .memory = regularizer_memory, .keeps = true,
};
const CornuFieldKind cornu_field_constraint = {
    .name = "constraint", .size = sizeof(CornuConstraint), RULE, .family = &cornu__constraints,
    .memory = constraint_memory, .keeps = true,
};
