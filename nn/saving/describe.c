/* The classes that files can hold, as JSON. */
#include "describe.h"

#include "../config/naming_internal.h"
#include "../layers/preprocessing/adapt_internal.h"
#include "../metrics/metric_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "describe_internal.h"
#include "keras_internal.h"

#include <string.h>

/* ---- Making objects ---- */

static json_t *config_of(json_t *object)
{
    json_t *config = json_incref(json_object_get(object, "config"));
    json_decref(object);
    return config;
}

static json_t *layer_made(const CornuDescribed *self, const json_t *value)
{
    CornuLayer *layer;
    (void)self;
    if (cornu__layer_from_json(value, NULL, &layer)) return NULL;
    json_t *object = cornu__layer_to_json(layer, NULL);
    cornu_layer_free(layer);
    return config_of(object);
}

static json_t *loss_made(const CornuDescribed *self, const json_t *value)
{
    CornuLoss *loss = cornu__loss_from_json(value);
    (void)self;
    if (!loss) return NULL;
    json_t *object = cornu__loss_to_json(loss);
    cornu_loss_free(loss);
    return config_of(object);
}

static json_t *metric_made(const CornuDescribed *self, const json_t *value)
{
    CornuMetric *metric = cornu__metric_from_json(value);
    (void)self;
    if (!metric) return NULL;
    json_t *object = cornu__metric_to_json(metric);
    cornu_metric_free(metric);
    return config_of(object);
}

static json_t *rule_made(const CornuDescribed *self, const json_t *value)
{
    union {
        unsigned         kind;
        CornuInitializer initializer;
        CornuRegularizer regularizer;
        CornuConstraint  constraint;
    } rule;
    memset(&rule, 0, sizeof rule);
    if (cornu__read_weight_rule(self->family, value, self->class_name, &rule)) return NULL;
    return config_of(cornu__weight_rule_to_json(self->family, &rule));
}

/* ---- Classes ---- */

static json_t *layers_to_json(void)
{
    json_t *list = json_array();
    for (const CornuLayerClass *const *kind = cornu__layer_classes; *kind; kind++) {
        const CornuKerasClass *keras = cornu__keras_class_of(*kind);
        const CornuDescribed   described = { "layers", (*kind)->class_name, keras->fields, NULL,
                                             layer_made };
        json_t *layer = cornu__describe(&described);
        if (keras->operands)
            layer = cornu__json_with(layer, "operands", json_string(keras->operands));
        if (keras->call_arguments)
            layer = cornu__json_with(layer, "call_arguments", json_string(keras->call_arguments));
        if (cornu__layer_adapts(*kind)) layer = cornu__json_with(layer, "adapts", json_true());
        if (cornu__layer_has_vocabulary(*kind))
            layer = cornu__json_with(layer, "has_vocabulary", json_true());
        list = cornu__json_append(list, layer);
    }
    return list;
}

static json_t *with_rules(json_t *all, const char *what, const CornuWeightRuleFamily *family)
{
    json_t *list = json_array();
    for (int i = 0; i < family->count; i++) {
        const CornuWeightRuleClass *kind = &family->classes[i];
        const CornuDescribed described = { what, kind->class_name, kind->fields, family,
                                           rule_made };
        list = cornu__json_append(list, cornu__json_with(cornu__describe(&described), "name",
                                                         json_string(kind->name)));
    }
    return cornu__json_with(all, what, list);
}

static json_t *serializables_to_json(const char *what, const CornuSerializableTable *table)
{
    json_t *list = json_array();
    for (int i = 0; i < table->count; i++) {
        const CornuSerializableClass *kind = table->rows[i].kind;
        const CornuDescribed described = { what, kind->class_name, kind->fields, NULL,
                                           table == &cornu__losses ? loss_made : metric_made };
        if (!kind->class_name || table->rows[i].alias) continue;
        list = cornu__json_append(list, cornu__json_with(cornu__describe(&described), "name",
                                                         json_string(kind->name)));
    }
    return list;
}

static json_t *optimizers_to_json(void)
{
    json_t *list = json_array();
    for (const CornuOptimizerRow *row = cornu__optimizers; row->name; row++) {
        CornuOptimizer *optimizer = cornu_optimizer(row->name);
        json_t         *config = optimizer ? config_of(cornu__optimizer_to_json(optimizer)) : NULL;
        json_t         *fields = json_array(), *value;
        const char     *name;
        json_object_foreach(config, name, value)
            fields = cornu__json_append(
                fields, json_pack("{s:s, s:s, s:O}", "name", name, "type",
                                  json_is_boolean(value)   ? "flag"
                                  : json_is_array(value)   ? "strings"
                                  : json_is_integer(value) ? "integer"
                                  : json_is_real(value)    ? "number" : "any",
                                  "default", value));
        list = cornu__json_append(list, json_pack("{s:s, s:s, s:o}", "class_name",
                                                  row->kind->class_name, "name", row->name,
                                                  "fields", cornu__describe_in_order("optimizers",
                                                                    row->kind->class_name,
                                                                    fields)));
        json_decref(config);
        cornu_optimizer_free(optimizer);
    }
    return list;
}

static json_t *schedules_to_json(void)
{
    json_t *list = cornu__schedules_to_json();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *schedule = json_array_get(list, i);
        json_object_set_new(schedule, "fields",
                            cornu__describe_in_order("schedules",
                                    json_string_value(json_object_get(schedule, "class_name")),
                                    json_incref(json_object_get(schedule, "fields"))));
    }
    return list;
}

/* ---- Names ---- */

static json_t *activation_names(void)
{
    json_t *list = json_array();
    for (int i = CORNU_LINEAR; i < CORNU_ACTIVATION_COUNT; i++)
        list = cornu__json_append(list, json_string(cornu_activation_name((CornuActivation)i)));
    return list;
}

static json_t *serializable_names(const CornuSerializableTable *table)
{
    json_t *list = json_array();
    for (int i = 0; i < table->count; i++) {
        const CornuSerializableRow *row = &table->rows[i];
        if (!row->needs_arguments)
            list = cornu__json_append(list, json_string(row->alias ? row->alias
                                                                   : row->kind->name));
    }
    return list;
}

static json_t *optimizer_names(void)
{
    json_t *list = json_array();
    for (const CornuOptimizerRow *row = cornu__optimizers; row->name; row++)
        list = cornu__json_append(list, json_string(row->name));
    return list;
}

static json_t *operation_to_json(const CornuOperationClass *kind)
{
    CornuText              text;
    CornuOperationArgument argument;
    json_t                *list = json_array();
    for (int i = 0; cornu__operation_argument(kind, i, &argument); i++) {
        json_t *one = json_pack("{s:s}", "name", argument.name);
        if (argument.operand) one = cornu__json_with(one, "operand", json_true());
        if (argument.many) one = cornu__json_with(one, "many", json_true());
        if (argument.usual) one = cornu__json_with(one, "default", argument.usual);
        list = cornu__json_append(list, one);
    }
    json_t     *aliases = json_array();
    const char *alias;
    for (int i = 0; (alias = cornu__operation_alias(kind, i)); i++)
        aliases = cornu__json_append(aliases, json_string(alias));
    return json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o}", "name",
                     cornu__operation_function(kind, &text), "class_name", kind->kind.class_name,
                     "module", kind->module, "several", kind->count != NULL, "moves",
                     kind->kind.moves_to_host, "arguments", list, "aliases", aliases);
}

static json_t *operations_to_json(void)
{
    json_t *list = json_array();
    for (const CornuOperationClass *row = cornu__operations; row->module; row++)
        list = cornu__json_append(list, operation_to_json(row));
    return list;
}

static json_t *operation_names(void)
{
    json_t *list = json_array();
    char    name[64];
    for (const CornuOperationClass *row = cornu__operations; row->module; row++) {
        cornu__snake_case(row->kind.class_name, name, sizeof name);
        list = cornu__json_append(list, json_string(name));
    }
    return list;
}

char *cornu_classes_to_json(void)
{
    if (cornu__refused()) return NULL;
    json_t *all = json_object();
    all = cornu__json_with(all, "layers", layers_to_json());
    all = with_rules(all, "initializers", &cornu__initializers);
    all = with_rules(all, "regularizers", &cornu__regularizers);
    all = with_rules(all, "constraints", &cornu__constraints);
    all = cornu__json_with(all, "optimizers", optimizers_to_json());
    all = cornu__json_with(all, "schedules", schedules_to_json());
    all = cornu__json_with(all, "losses", serializables_to_json("losses", &cornu__losses));
    all = cornu__json_with(all, "metrics", serializables_to_json("metrics", &cornu__metrics));
    all = cornu__json_with(all, "operations", operations_to_json());
    all = cornu__json_with(all, "names",
                           json_pack("{s:o, s:o, s:o, s:o, s:o}", "activations",
                                     activation_names(), "losses",
                                     serializable_names(&cornu__losses), "metrics",
                                     serializable_names(&cornu__metrics), "optimizers",
                                     optimizer_names(), "operations", operation_names()));
    char *text = cornu__json_text(all);
    json_decref(all);
    return text ? text : cornu__null();
}
