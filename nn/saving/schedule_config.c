/* Schedules in Keras' JSON: {"class_name": "ExponentialDecay", "config": {…}, …}. */
#include "../optimizers/schedule_internal.h"

#include "architecture/architecture_internal.h"
#include "keras_internal.h"
#include "../fields/own_objects_internal.h"

#include <stddef.h>
#include <string.h>

#define ARGUMENT(Config, argument, self) \
    { #argument, CORNU_ARGUMENT_NUMBER, offsetof(Config, argument), \
      offsetof(CornuScheduleNumbers, self) }
#define FLAG(Config, argument) \
    { #argument, CORNU_ARGUMENT_FLAG, offsetof(Config, argument), \
      offsetof(CornuScheduleNumbers, argument) }

static const CornuOptimizerField decay[] = {
    ARGUMENT(CornuDecayConfig, initial_learning_rate, rate),
    ARGUMENT(CornuDecayConfig, decay_steps, steps),
    ARGUMENT(CornuDecayConfig, decay_rate, decay_rate),
    FLAG(CornuDecayConfig, staircase),
    { 0 },
};

static const CornuOptimizerField polynomial[] = {
    ARGUMENT(CornuPolynomialConfig, initial_learning_rate, rate),
    ARGUMENT(CornuPolynomialConfig, decay_steps, steps),
    ARGUMENT(CornuPolynomialConfig, end_learning_rate, end),
    ARGUMENT(CornuPolynomialConfig, power, power),
    FLAG(CornuPolynomialConfig, cycle),
    { 0 },
};

static const CornuOptimizerField cosine[] = {
    ARGUMENT(CornuCosineConfig, initial_learning_rate, rate),
    ARGUMENT(CornuCosineConfig, decay_steps, steps),
    ARGUMENT(CornuCosineConfig, alpha, alpha),
    ARGUMENT(CornuCosineConfig, warmup_target, warmup_target),
    ARGUMENT(CornuCosineConfig, warmup_steps, warmup_steps),
    { 0 },
};

static const CornuOptimizerField restarts[] = {
    ARGUMENT(CornuCosineRestartsConfig, initial_learning_rate, rate),
    ARGUMENT(CornuCosineRestartsConfig, first_decay_steps, steps),
    ARGUMENT(CornuCosineRestartsConfig, t_mul, t_mul),
    ARGUMENT(CornuCosineRestartsConfig, m_mul, m_mul),
    ARGUMENT(CornuCosineRestartsConfig, alpha, alpha),
    { 0 },
};

static const CornuOptimizerField none[] = { { 0 } };   /* lists, see below */

typedef union {
    CornuDecayConfig          decay;
    CornuPolynomialConfig     polynomial;
    CornuCosineConfig         cosine;
    CornuCosineRestartsConfig restarts;
} Config;

static CornuSchedule *exponential_from(const void *c) { return cornu_exponential_decay_from(c); }
static CornuSchedule *inverse_time_from(const void *c) { return cornu_inverse_time_decay_from(c); }
static CornuSchedule *polynomial_from(const void *c) { return cornu_polynomial_decay_from(c); }
static CornuSchedule *cosine_from(const void *c) { return cornu_cosine_decay_from(c); }
static CornuSchedule *restarts_from(const void *c) { return cornu_cosine_decay_restarts_from(c); }

static const struct {
    const char                *class_name, *name;
    const CornuOptimizerField *arguments;
    CornuSchedule           *(*from)(const void *config);
} classes[] = {
    { "ExponentialDecay", "exponential_decay", decay, exponential_from },
    { "InverseTimeDecay", "inverse_time_decay", decay, inverse_time_from },
    { "PolynomialDecay", "polynomial_decay", polynomial, polynomial_from },
    { "CosineDecay", "cosine_decay", cosine, cosine_from },
    { "CosineDecayRestarts", "cosine_decay_restarts", restarts, restarts_from },
    { "PiecewiseConstantDecay", "piecewise_constant_decay", none, NULL },
};
enum { CLASSES = sizeof classes / sizeof *classes, MAX_BOUNDARIES = 1000 };

/* ---- Writing ---- */

static json_t *list_of(const double *numbers, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) list = cornu__json_append(list, json_real(numbers[i]));
    return list;
}

json_t *cornu__schedule_to_json(const CornuScheduleNumbers *schedule)
{
    int i = 0;
    while (strcmp(classes[i].name, schedule->base.name)) i++;
    json_t *config = json_pack("{s:s}", "name", classes[i].class_name);
    config = cornu__arguments_write(config, classes[i].arguments, schedule);
    if (schedule->boundaries) {
        config = cornu__json_with(config, "boundaries",
                                  list_of(schedule->boundaries, schedule->count));
        config = cornu__json_with(config, "values",
                                  list_of(schedule->values, schedule->count + 1));
    } else if (schedule->warmup_target == 0.0 && classes[i].arguments == cosine) {
        config = cornu__json_with(config, "warmup_target", json_null());
    }
    return cornu__json_object("keras.optimizers.schedules", classes[i].class_name, config);
}

/* ---- Describing ---- */

json_t *cornu__schedules_to_json(void)
{
    json_t *list = json_array();
    for (int i = 0; i < CLASSES; i++) {
        json_t *fields = classes[i].arguments == none
            ? json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "boundaries", "type", "any", "name",
                        "values", "type", "any")
            : json_array();
        for (const CornuOptimizerField *field = classes[i].arguments; field->name; field++)
            fields = cornu__json_append(
                fields, json_pack("{s:s, s:s}", "name", field->name, "type",
                                  field->kind == CORNU_ARGUMENT_FLAG ? "flag" : "number"));
        list = cornu__json_append(list, json_pack("{s:s, s:s, s:o}", "class_name",
                                                  classes[i].class_name, "name", classes[i].name,
                                                  "fields", fields));
    }
    return list;
}

/* ---- Reading ---- */

/* The numbers of a list; *count is -1 if it is not a list of numbers, or too long. */
static void read_list(const json_t *list, double *numbers, int64_t *count)
{
    *count = json_is_array(list) && json_array_size(list) <= MAX_BOUNDARIES + 1
                 ? (int64_t)json_array_size(list) : -1;
    for (int64_t i = 0; i < *count; i++) {
        const json_t *number = json_array_get(list, (size_t)i);
        numbers[i] = json_number_value(number);
        if (json_is_number(number)) continue;
        *count = -1;
        return;
    }
}

static CornuSchedule *read_piecewise(const json_t *value)
{
    double  boundaries[MAX_BOUNDARIES + 1], values[MAX_BOUNDARIES + 1];
    int64_t bounds, count;
    read_list(json_object_get(value, "boundaries"), boundaries, &bounds);
    read_list(json_object_get(value, "values"), values, &count);
    if (bounds < 1 || count != bounds + 1)
        return cornu__fail_null(CORNU_ERR_FORMAT, "PiecewiseConstantDecay: expected boundaries, at "
                                "most %d numbers, and values, one more", MAX_BOUNDARIES);
    return cornu_piecewise_constant_decay(.boundaries = boundaries, .values = values,
                                          .count = bounds);
}

CornuSchedule *cornu__schedule_from_json(const json_t *value)
{
    CornuSchedule *own = cornu__own_object(value);
    if (own) return own;
    const char   *name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    Config        to;
    int           i = 0;
    memset(&to, 0, sizeof to);
    while (i < CLASSES && (!name || strcmp(name, classes[i].class_name))) i++;
    if (i == CLASSES && (own = cornu__resolve("schedule", value))) return own;
    if (i == CLASSES)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "there is no schedule \"%.60s\"",
                                name ? name : "");
    if (classes[i].arguments == none) return read_piecewise(config);
    if (cornu__arguments_read(config, classes[i].arguments, &to) == CORNU_OK)
        /* cppcheck-suppress returnDanglingLifetime ; a schedule makes its own copy */
        return classes[i].from(&to);
    cornu__fail_prefix(cornu_error_status(), name);
    return cornu__null();
}
