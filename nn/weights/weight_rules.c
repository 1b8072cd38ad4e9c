#include "weight_rules_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/text/nearest.h"
#include "../fields/own_objects_internal.h"
#include "../formats/json_internal.h"

enum { MAX_CLASSES = 24 };

const CornuWeightRuleClass *cornu__weight_rule_class(const CornuWeightRuleFamily *family,
                                                     const void *rule)
{
    const unsigned kind = *(const unsigned *)rule;
    return kind >= 1 && kind <= (unsigned)family->count ? &family->classes[kind - 1] : NULL;
}

CornuStatus cornu__weight_rule_find(const CornuWeightRuleFamily *family, const char *name,
                                    void *rule)
{
    const char *names[MAX_CLASSES];
    memset(rule, 0, family->size);
    for (const CornuWeightRuleAlias *a = family->aliases; name && a && a->alias; a++)
        if (!strcmp(name, a->alias)) name = a->name;
    for (int i = 0; i < family->count; i++) {
        names[i] = family->classes[i].name;
        if (!name || (strcmp(name, names[i]) && strcmp(name, family->classes[i].class_name)))
            continue;
        *(unsigned *)rule = (unsigned)i + 1;
        return family->resolve(rule);
    }
    const char *near = name ? cornu_nearest(name, names, family->count) : NULL;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s \"%.60s\" is not known%s%s%s", family->word,
                       name ? name : "(NULL)", near ? "; is \"" : "", near ? near : "",
                       near ? "\" meant?" : "");
}

void cornu__weight_rule_missed(const CornuWeightRuleFamily *family, const char *record)
{
    json_t *value = cornu__json_parse(record, strlen(record), CORNU__RECORD_DEPTH);
    cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the %s \"%.60s\" is of the program that saved the "
                     "model, and is not known here: load the file where it is defined, to train "
                     "the model or to draw its weights", family->word, cornu__record_name(value));
    json_decref(value);
}
