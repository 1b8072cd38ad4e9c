/* The arguments of compile in files of Keras 2: optimizers, losses, metrics. */
#include "keras2_internal.h"


#include <string.h>

/* Arguments of optimizers that say nothing of what they compute, and Nadam's, whose decay is of its
 * momentum and has one value. */
static const char *const dropped[] = {
    "jit_compile", "is_legacy_optimizer", "use_locking", "schedule_decay", "decay", "lr", "dynamic",
};

/* "Custom>Adam" and "keras.optimizers>Adam" are Keras' own. */
static const char *class_of(const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "class_name"));
    const char *package = name ? strchr(name, '>') : NULL;
    return package ? package + 1 : name;
}

/* lr / (1 + decay iterations): the schedule InverseTimeDecay with steps of 1. */
static json_t *rate(const char *class_name, const json_t *config)
{
    json_t       *given = json_object_get(config, "learning_rate");
    const double  decay = json_number_value(json_object_get(config, "decay"));
    if (!given) given = json_object_get(config, "lr");
    if (!given) return NULL;
    if (json_is_object(given))
        return json_pack("{s:s, s:O}", "class_name", class_of(given) ? class_of(given) : "",
                         "config", json_object_get(given, "config"));
    if (decay == 0.0 || !json_is_number(given) || !strcmp(class_name, "Nadam"))
        return json_incref(given);
    return json_pack("{s:s, s:{s:O, s:i, s:f}}", "class_name", "InverseTimeDecay", "config",
                     "initial_learning_rate", given, "decay_steps", 1, "decay_rate", decay);
}

static json_t *optimizer(const json_t *value)
{
    const char *class_name = class_of(value);
    json_t     *config = json_copy(json_object_get(value, "config"));
    if (!class_name || !config) {
        json_decref(config);
        return json_incref((json_t *)value);
    }
    json_t *learning_rate = rate(class_name, config);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        json_object_del(config, dropped[i]);
    if (learning_rate) config = cornu__json_with(config, "learning_rate", learning_rate);
    json_t *inner = json_object_get(config, "inner_optimizer");
    if (!inner) inner = json_object_get(config, "optimizer");   /* of LossScaleOptimizer */
    if (inner) {
        config = cornu__json_with(config, "inner_optimizer", optimizer(inner));
        json_object_del(config, "optimizer");
    }
    return json_pack("{s:s, s:o}", "class_name", class_name, "config", config);
}

/* A function by its name, which in Keras 3 is an object. Names that Keras 3 changed are changed. */
static json_t *function(const json_t *name)
{
    return json_pack("{s:s, s:O}", "class_name", "function", "config", name);
}

static json_t *name_of(const json_t *name)
{
    static const struct { const char *old, *name; } names[] = {
        { "kullback_leibler_divergence", "kl_divergence" }, { "logcosh", "log_cosh" },
        { "KLD", "kl_divergence" }, { "kld", "kl_divergence" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(json_string_value(name), names[i].old)) return json_string(names[i].name);
    return json_incref((json_t *)name);
}

/* A loss or a metric. "auto" is the reduction that Keras 3 has by default. */
static json_t *object(const json_t *value)
{
    json_t     *config = json_copy(json_object_get(value, "config"));
    const char *class_name = class_of(value);
    json_t     *given = json_object_get(config, "fn");
    const char *reduction = json_string_value(json_object_get(config, "reduction"));
    const bool  wraps = !strcmp(class_name, "MeanMetricWrapper") ||
                        !strcmp(class_name, "LossFunctionWrapper");
    if (reduction && !strcmp(reduction, "auto")) json_object_del(config, "reduction");
    if (given && wraps && json_is_string(given)) {
        json_t *name = name_of(given);
        config = cornu__json_with(config, "fn", function(name));
        json_decref(name);
    } else if (given && !wraps) {
        json_object_del(config, "fn");
    }
    return json_pack("{s:s, s:o}", "class_name", class_name, "config", config);
}

/* Of lists or dictionaries of losses or metrics. */
static bool one_of(void *context, const json_t *value, json_t **made)
{
    (void)context;
    const bool whole = class_of(value) && json_is_object(json_object_get(value, "config"));
    if (json_is_string(value)) *made = name_of(value);
    else if (whole) *made = object(value);
    return whole || json_is_string(value);
}

json_t *cornu__keras2_training(const json_t *training, const char *version)
{
    static const char *const parts[] = { "loss", "metrics", "weighted_metrics" };
    const json_t *given = json_object_get(training, "optimizer_config");
    if (!training) return NULL;
    if (!version || version[0] > '2') return json_incref((json_t *)training);
    if (!given) given = json_object_get(training, "optimizer");   /* of .keras files */
    if (!given) return json_incref((json_t *)training);
    json_t *made = cornu__json_with(json_copy((json_t *)training), "optimizer", optimizer(given));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json_t *part = json_object_get(training, parts[i]);
        if (part) made = cornu__json_with(made, parts[i], cornu__json_map(part, one_of, NULL));
    }
    return made ? made : cornu__fail_null(CORNU_ERR_MEMORY, "no memory for the arguments of "
                                          "compile");
}
