/* Optimizers as Keras' JSON: the get_config of keras/src/optimizers. */
#include "architecture/architecture_internal.h"
#include "keras_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "../optimizers/schedule_internal.h"

#include <math.h>
#include <string.h>

/* Arguments of every optimizer that are 0 if not given, which is null in JSON. */
static const struct { const char *name; bool whole; size_t in_self, in_arguments; } optional[] = {
#define OPTIONAL(name, whole, self) \
    { #name, whole, offsetof(CornuOptimizer, self), offsetof(CornuOptimizerArguments, name) }
    OPTIONAL(weight_decay, false, weight_decay), OPTIONAL(clipnorm, false, clipnorm),
    OPTIONAL(clipvalue, false, clipvalue), OPTIONAL(global_clipnorm, false, global_clipnorm),
    OPTIONAL(ema_overwrite_frequency, true, ema_overwrite_frequency),
    OPTIONAL(loss_scale_factor, false, loss_scale_factor),
    OPTIONAL(gradient_accumulation_steps, true, accumulation_steps),
#undef OPTIONAL
};
enum { OPTIONALS = sizeof optional / sizeof *optional, BEFORE_AVERAGES = 4 };

/* ---- Writing. Out of memory jansson returns NULL; given NULL it fails. ---- */

static json_t *strings_to_json(char *const strings[CORNU_MAX_EXCLUDED])
{
    json_t *list = json_array();
    for (int i = 0; i < CORNU_MAX_EXCLUDED && strings[i]; i++)
        list = cornu__json_append(list, json_string(strings[i]));
    return list;
}

static json_t *argument_to_json(CornuArgumentKind kind, const void *at)
{
    switch (kind) {
    case CORNU_ARGUMENT_NUMBER:  return json_real(*(const double *)at);
    case CORNU_ARGUMENT_FLAG:    return json_boolean(*(const bool *)at);
    case CORNU_ARGUMENT_NOT:     return json_boolean(!*(const bool *)at);
    case CORNU_ARGUMENT_INTEGER: return json_integer(*(const int64_t *)at);
    case CORNU_ARGUMENT_NUMBER_OR_NONE:
        return *(const double *)at != 0.0 ? json_real(*(const double *)at) : json_null();
    case CORNU_ARGUMENT_STRINGS: return strings_to_json(at);
    }
    return NULL;
}

json_t *cornu__arguments_write(json_t *config, const CornuOptimizerField *field, const void *self)
{
    for (; field->name; field++)
        config = cornu__json_with(config, field->name,
                                  argument_to_json(field->kind,
                                                   (const char *)self + field->in_self));
    return config;
}

static json_t *rate_to_json(const CornuOptimizer *optimizer)
{
    if (!optimizer->schedule) return json_real(optimizer->learning_rate);
    if (optimizer->schedule->record) return cornu__record_to_json(optimizer->schedule->record);
    return cornu__schedule_to_json(cornu__schedule_numbers(optimizer->schedule));
}

/* {"default_optimizer": …, "optimizer_map": {"dense/.*": …}} */
static json_t *map_to_json(const CornuOptimizer *optimizer)
{
    const CornuComposite *composite = optimizer->kind->composite;
    json_t               *map = json_object(), *usual = NULL;
    CornuOptimizer       *inner;
    for (int i = 0; (inner = composite->inner(optimizer, i)); i++) {
        const char *path = composite->path(optimizer, i);
        json_t     *value = cornu__optimizer_to_json(inner);
        if (path) map = cornu__json_with(map, path, value);
        else usual = value;
    }
    return cornu__json_object("keras.optimizers", "OptimizerMap",
                              json_pack("{s:o, s:o}", "default_optimizer", usual, "optimizer_map",
                                        map));
}

static json_t *multi_to_json(const CornuOptimizer *optimizer)
{
    json_t *factor = optimizer->loss_scale_factor > 0.0 ? json_real(optimizer->loss_scale_factor)
                                                        : json_null();
    return cornu__json_object("keras.optimizers", "MultiOptimizer",
                              json_pack("{s:o, s:o, s:s}", "optimizer_map", map_to_json(optimizer),
                                        "loss_scale_factor", factor, "name", optimizer->name));
}

bool cornu__optimizer_is_describable(const CornuOptimizer *optimizer)
{
    bool known = optimizer->kind->fields &&
                 (!optimizer->schedule || optimizer->schedule->record ||
                  cornu__schedule_numbers(optimizer->schedule));
    CornuOptimizer *inner;
    for (int i = 0; (inner = cornu__optimizer_inner(optimizer, i)); i++)
        known &= cornu__optimizer_is_describable(inner);
    return known;
}

json_t *cornu__optimizer_to_json(const CornuOptimizer *optimizer)
{
    if (optimizer->kind->composite) return multi_to_json(optimizer);
    json_t *config = json_pack("{s:o}", "learning_rate", rate_to_json(optimizer));
    config = cornu__arguments_write(config, optimizer->kind->fields, optimizer);
    for (int i = 0; i < OPTIONALS; i++) {
        if (i == BEFORE_AVERAGES) {
            config = cornu__json_with(config, "use_ema", json_boolean(optimizer->use_ema));
            config = cornu__json_with(config, "ema_momentum",
                                      json_real(optimizer->ema_momentum));
        }
        const void   *at = (const char *)optimizer + optional[i].in_self;
        const double  number = optional[i].whole ? 0.0 : *(const double *)at;
        const int64_t whole = optional[i].whole ? *(const int64_t *)at : 0;
        config = cornu__json_with(config, optional[i].name,
                                  whole ? json_integer(whole)
                                        : number != 0.0 ? json_real(number) : json_null());
    }
    config = cornu__json_with(config, "name", json_string(optimizer->name));
    json_t *inner = cornu__json_object("keras.optimizers", optimizer->kind->class_name, config);
    if (!optimizer->scales_loss) return inner;
    return cornu__json_object("keras.optimizers", "LossScaleOptimizer",
                              json_pack("{s:s, s:o, s:f, s:I}", "name", optimizer->scale_name,
                                        "inner_optimizer", inner, "initial_scale",
                                        optimizer->initial_scale, "dynamic_growth_steps",
                                        (json_int_t)optimizer->growth_steps));
}

/* ---- Reading ---- */

/* 0 given explicitly, where 0 in a config would mean the default. */
static double given(const json_t *number)
{
    const double value = json_number_value(number);
    return value == 0.0 ? (double)CORNU_ZERO : value;
}

/* The arguments of every optimizer: those that the config lacks have the defaults of its class,
 * null is none. */
static CornuStatus read_common(const json_t *config, const CornuOptimizer *made,
                               CornuOptimizerArguments *arguments)
{
    const json_t *rate = json_object_get(config, "learning_rate");
    const json_t *momentum = json_object_get(config, "ema_momentum");
    *arguments = (CornuOptimizerArguments){
        .name = json_string_value(json_object_get(config, "name")),
        .use_ema = json_is_true(json_object_get(config, "use_ema")),
        .learning_rate = rate ? json_number_value(rate) : made->learning_rate,
        .ema_momentum = json_is_number(momentum) ? json_number_value(momentum) : 0.99,
    };
    for (int i = 0; i < OPTIONALS; i++) {
        const json_t *value = json_object_get(config, optional[i].name);
        const void   *usual = (const char *)made + optional[i].in_self;
        void         *at = (char *)arguments + optional[i].in_arguments;
        if (!value && optional[i].whole) *(int64_t *)at = *(const int64_t *)usual;
        else if (!value) *(double *)at = *(const double *)usual;
        if (!value || json_is_null(value)) continue;
        if (optional[i].whole && json_is_integer(value))
            *(int64_t *)at = json_integer_value(value);
        else if (!optional[i].whole && json_is_number(value))
            *(double *)at = json_number_value(value);
        else
            return cornu__fail(CORNU_ERR_FORMAT, "%s is not null or a %snumber", optional[i].name,
                               optional[i].whole ? "whole " : "");
    }
    if (!rate || json_is_number(rate)) return CORNU_OK;
    arguments->schedule = cornu__schedule_from_json(rate);
    return arguments->schedule ? CORNU_OK : cornu_error_take();
}

/* The strings stay those of the list. */
static CornuStatus read_strings(const json_t *list, const char *name,
                                const char *to[CORNU_MAX_EXCLUDED])
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > CORNU_MAX_EXCLUDED)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is not a list of at most %d strings", name,
                           CORNU_MAX_EXCLUDED);
    for (size_t i = 0; i < count; i++)
        if (!(to[i] = json_string_value(json_array_get(list, i))))
            return cornu__unexpected(name, "a list of strings");
    return CORNU_OK;
}

/* The argument of a constructor's config; null is the default but for …_OR_NONE. */
static CornuStatus read_argument(const CornuOptimizerField *field, const json_t *value, void *at)
{
    switch (field->kind) {
    case CORNU_ARGUMENT_NUMBER_OR_NONE:
        if (json_is_null(value)) *(double *)at = (double)CORNU_ZERO;
        else if (json_is_number(value)) *(double *)at = given(value);
        else return cornu__unexpected(field->name, "null or a number");
        return CORNU_OK;
    case CORNU_ARGUMENT_NUMBER:
        if (json_is_number(value)) *(double *)at = given(value);
        return json_is_number(value) ? CORNU_OK : cornu__unexpected(field->name, "a number");
    case CORNU_ARGUMENT_FLAG: case CORNU_ARGUMENT_NOT:
        *(bool *)at = json_is_true(value) == (field->kind == CORNU_ARGUMENT_FLAG);
        return json_is_boolean(value) ? CORNU_OK : cornu__unexpected(field->name, "true or false");
    case CORNU_ARGUMENT_INTEGER:
        if (!json_is_number(value) || json_number_value(value) != floor(json_number_value(value)))
            return cornu__unexpected(field->name, "a whole number");
        *(int64_t *)at = json_number_value(value) == 0.0 ? CORNU_ZERO
                                                         : (int64_t)json_number_value(value);
        return CORNU_OK;
    case CORNU_ARGUMENT_STRINGS: return read_strings(value, field->name, at);
    }
    return CORNU_OK;
}

CornuStatus cornu__arguments_read(const json_t *config, const CornuOptimizerField *field, void *to)
{
    for (; field->name; field++) {
        const json_t *value = json_object_get(config, field->name);
        if (!value || (json_is_null(value) && field->kind != CORNU_ARGUMENT_NUMBER_OR_NONE))
            continue;
        CORNU__TRY(read_argument(field, value, (char *)to + field->in_config));
    }
    return CORNU_OK;
}

/* Unknown arguments are errors. */
static CornuStatus check_known(const json_t *config, const CornuOptimizerField *fields)
{
    static const char *const others[] = { "name", "learning_rate", "use_ema", "ema_momentum" };
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)config, name, value) {
        bool known = json_is_null(value);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            known |= !strcmp(name, others[i]);
        for (int i = 0; i < OPTIONALS; i++) known |= !strcmp(name, optional[i].name);
        for (const CornuOptimizerField *f = fields; f->name; f++) known |= !strcmp(name, f->name);
        if (!known)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" is not known", name);
    }
    return CORNU_OK;
}

static CornuOptimizer *make_optimizer(const CornuOptimizerClass *kind, const json_t *config)
{
    CornuOptimizerArguments common;
    CornuOptimizer         *optimizer = NULL;
    void                   *arguments = cornu__allocate(1, kind->config_size);
    CornuStatus             status = arguments ? CORNU_OK : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) status = check_known(config, kind->fields);
    if (status == CORNU_OK) status = cornu__arguments_read(config, kind->fields, arguments);
    if (status == CORNU_OK && !(optimizer = kind->from(arguments))) status = cornu_error_take();
    if (status == CORNU_OK) status = read_common(config, optimizer, &common);
    if (status == CORNU_OK) status = cornu__optimizer_set(optimizer, false, &common);
    cornu__release(arguments);
    if (status == CORNU_OK) return optimizer;
    cornu_optimizer_free(optimizer);
    cornu__fail_prefix(status, kind->class_name);
    return cornu__null();
}

/* The arguments of every optimizer, with their defaults, are ignored: older files have them. */
static CornuOptimizer *read_loss_scale(const json_t *config)
{
    const json_t *inner = json_object_get(config, "inner_optimizer");
    const json_t *scale = json_object_get(config, "initial_scale");
    const json_t *steps = json_object_get(config, "dynamic_growth_steps");
    const char   *within = json_string_value(json_object_get(inner, "class_name"));
    if (within && !strcmp(within, "LossScaleOptimizer"))
        return cornu__fail_null(CORNU_ERR_FORMAT, "inner_optimizer is not an optimizer");
    return cornu_loss_scale_optimizer(cornu__optimizer_from_json(inner),
                                      .name = json_string_value(json_object_get(config, "name")),
                                      .initial_scale = json_number_value(scale),
                                      .dynamic_growth_steps = (int64_t)json_number_value(steps));
}

static CornuOptimizer *read_multi(const json_t *config)
{
    const json_t    *map = json_object_get(json_object_get(config, "optimizer_map"), "config");
    const json_t    *entries = json_object_get(map, "optimizer_map");
    CornuMultiConfig to = {
        .loss_scale_factor = json_number_value(json_object_get(config, "loss_scale_factor")),
        .name = json_string_value(json_object_get(config, "name")),
    };
    const char *path;
    json_t     *value;
    int         count = 0;
    if (!json_is_object(map))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "MultiOptimizer: optimizer_map is not an "
                                "OptimizerMap; a function is not available");
    if (json_object_size(entries) > CORNU_MAX_OPTIMIZERS)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "MultiOptimizer: %zu entries, expected at "
                                "most %d", json_object_size(entries), CORNU_MAX_OPTIMIZERS);
    to.default_optimizer = cornu__optimizer_from_json(json_object_get(map, "default_optimizer"));
    json_object_foreach((json_t *)entries, path, value)
        to.optimizer_map[count++] = (CornuMappedOptimizer){ path,
                                                            cornu__optimizer_from_json(value) };
    return cornu_multi_optimizer_from(&to);   /* takes them, also if one is NULL */
}

/* A name, with default arguments, or an object. */
CornuOptimizer *cornu__optimizer_from_json(const json_t *value)
{
    const char   *name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    if (json_is_string(value)) return cornu_optimizer(json_string_value(value));
    if (!name || !json_is_object(config))
        return cornu__fail_null(CORNU_ERR_FORMAT, "optimizer is not a string or an object with "
                                "class_name and config");
    if (!strcmp(name, "LossScaleOptimizer")) return read_loss_scale(config);
    if (!strcmp(name, cornu__multi_class.class_name)) return read_multi(config);
    const CornuOptimizerClass *kind = cornu__optimizer_class(name);
    if (kind) return make_optimizer(kind, config);
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "there is no optimizer \"%.60s\"", name);
}
