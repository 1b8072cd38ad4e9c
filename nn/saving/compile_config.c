/* The arguments of compile as Keras' JSON: keras/src/trainers/compile_utils.py and the get_config
 * of optimizers and losses. */
#include "architecture_internal.h"
#include "keras_internal.h"
#include "../metrics/metric_internal.h"
#include "../optimizers/optimizer_internal.h"
#include "../optimizers/schedule_internal.h"

#include <stdio.h>
#include <string.h>

/* Arguments of every optimizer that are 0 if not given, which is null in JSON. */
static const struct { const char *name; bool whole; size_t in_self, in_arguments; } optional[] = {
#define OPTIONAL(name, whole, self) \
    { #name, whole, offsetof(CornuOptimizer, self), offsetof(CornuOptimizerArguments, name) }
    OPTIONAL(weight_decay, false, weight_decay), OPTIONAL(clipnorm, false, clipnorm),
    OPTIONAL(global_clipnorm, false, global_clipnorm), OPTIONAL(clipvalue, false, clipvalue),
    OPTIONAL(ema_overwrite_frequency, true, ema_overwrite_frequency),
    OPTIONAL(loss_scale_factor, false, loss_scale_factor),
    OPTIONAL(gradient_accumulation_steps, true, accumulation_steps),
#undef OPTIONAL
};
enum { OPTIONALS = sizeof optional / sizeof *optional };

/* ---- Writing. Out of memory jansson returns NULL; given NULL it fails. ---- */

json_t *cornu__arguments_write(json_t *config, const CornuOptimizerField *field, const void *self)
{
    for (; field->name; field++) {
        const void *at = (const char *)self + field->in_self;
        config = cornu__json_with(config, field->name, field->flag
                                                           ? json_boolean(*(const bool *)at)
                                                           : json_real(*(const double *)at));
    }
    return config;
}

static json_t *rate_to_json(const CornuOptimizer *optimizer)
{
    if (!optimizer->schedule) return json_real(optimizer->learning_rate);
    return cornu__schedule_to_json(cornu__schedule_numbers(optimizer->schedule));
}

static json_t *optimizer_to_json(const CornuOptimizer *optimizer)
{
    json_t *config = json_pack("{s:s, s:o, s:b, s:f}", "name", optimizer->name, "learning_rate",
                               rate_to_json(optimizer), "use_ema", optimizer->use_ema,
                               "ema_momentum", optimizer->ema_momentum);
    for (int i = 0; i < OPTIONALS; i++) {
        const void   *at = (const char *)optimizer + optional[i].in_self;
        const double  number = optional[i].whole ? 0.0 : *(const double *)at;
        const int64_t whole = optional[i].whole ? *(const int64_t *)at : 0;
        config = cornu__json_with(config, optional[i].name,
                                  whole ? json_integer(whole)
                                        : number != 0.0 ? json_real(number) : json_null());
    }
    config = cornu__arguments_write(config, optimizer->kind->fields, optimizer);
    json_t *inner = cornu__json_object("keras.optimizers", optimizer->kind->class_name, config);
    if (!optimizer->scales_loss) return inner;
    return cornu__json_object("keras.optimizers", "LossScaleOptimizer",
                              json_pack("{s:s, s:o, s:f, s:i}", "name", "loss_scale_optimizer",
                                        "inner_optimizer", inner, "initial_scale", 32768.0,
                                        "dynamic_growth_steps", 2000));
}

static json_t *loss_to_json(const CornuLoss *loss)
{
    if (!loss) return json_null();
    json_t *config = json_pack("{s:s}", "name", loss->name);
    config = cornu__fields_to_json(NULL, loss->kind->fields, loss->config, config);
    return cornu__json_object("keras.losses", loss->kind->class_name, config);
}

static const char *dtype_of(const CornuSerializableClass *kind)
{
    return kind->dtype ? kind->dtype : "float32";
}

/* For a class that is not Keras' the name is all there is to write. */
static json_t *metric_to_json(const CornuMetric *metric)
{
    const CornuSerializableClass *kind = metric->kind;
    if (!kind->class_name) return json_string(metric->name);
    json_t *config = json_pack("{s:s, s:s}", "name", metric->name, "dtype", dtype_of(kind));
    return cornu__json_object("keras.metrics", kind->class_name,
                              cornu__fields_to_json(NULL, kind->fields, metric->config, config));
}

/* A value for one output, a list for several. */
static json_t *losses_to_json(const CornuModel *model)
{
    if (model->output_count == 1) return loss_to_json(model->losses[0]);
    json_t *list = json_array();
    for (int i = 0; i < model->output_count; i++)
        list = cornu__json_append(list, loss_to_json(model->losses[i]));
    return list;
}

static json_t *weights_to_json(const CornuModel *model)
{
    bool    usual = true;
    json_t *list = json_array();
    for (int i = 0; i < model->output_count; i++) {
        usual &= model->loss_weights[i] == 1.0;
        list = cornu__json_append(list, json_real(model->loss_weights[i]));
    }
    if (!usual) return list;
    json_decref(list);
    return json_null();
}

/* The metrics of one output; null if there are none. */
static json_t *metrics_of(const CornuModel *model, int output, bool weighted)
{
    json_t *list = json_array();
    for (int i = 0; i < model->tracked_count; i++) {
        const CornuTracked *tracked = &model->tracked[i];
        if (tracked->metric && tracked->output == output && tracked->weighted == weighted)
            list = cornu__json_append(list, metric_to_json(tracked->metric));
    }
    if (!list || json_array_size(list) > 0) return list;
    json_decref(list);
    return json_null();
}

static json_t *metrics_to_json(const CornuModel *model, bool weighted)
{
    if (model->output_count == 1) return metrics_of(model, 0, weighted);
    json_t *list = json_array();
    for (int i = 0; i < model->output_count; i++)
        list = cornu__json_append(list, metrics_of(model, i, weighted));
    return list;
}

/* Whether Keras has all its parts. */
static bool is_describable(const CornuModel *model)
{
    const CornuOptimizer *optimizer = model->optimizer;
    bool known = optimizer->kind->fields &&
                 (!optimizer->schedule || cornu__schedule_numbers(optimizer->schedule));
    for (int i = 0; i < model->output_count; i++)
        known &= !model->losses[i] || model->losses[i]->kind;
    for (int i = 0; i < model->tracked_count; i++)
        known &= !model->tracked[i].metric || model->tracked[i].metric->kind;
    return known;
}

json_t *cornu__compile_config(const CornuModel *model)
{
    if (!model->compiled || !is_describable(model)) return json_object();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:s}", "optimizer",
                     optimizer_to_json(model->optimizer), "loss", losses_to_json(model),
                     "loss_weights", weights_to_json(model), "metrics",
                     metrics_to_json(model, false), "weighted_metrics",
                     metrics_to_json(model, true), "run_eagerly", 0, "steps_per_execution",
                     (json_int_t)model->steps_per_execution, "jit_compile", "auto");
}

/* ---- Reading ---- */

static void *unexpected(const char *name, const char *expected)
{
    return cornu__fail_null(CORNU_ERR_FORMAT, "%s is not %s", name, expected);
}

/* 0 given explicitly, where 0 in a config would mean the default. */
static double given(const json_t *number)
{
    const double value = json_number_value(number);
    return value == 0.0 ? (double)CORNU_ZERO : value;
}

/* The arguments of every optimizer. */
static CornuStatus read_common(const json_t *config, CornuOptimizerArguments *arguments)
{
    const json_t *rate = json_object_get(config, "learning_rate");
    const json_t *momentum = json_object_get(config, "ema_momentum");
    *arguments = (CornuOptimizerArguments){
        .name = json_string_value(json_object_get(config, "name")),
        .use_ema = json_is_true(json_object_get(config, "use_ema")),
        .learning_rate = json_number_value(rate),
        .ema_momentum = json_is_number(momentum) ? json_number_value(momentum) : 0.99,
    };
    for (int i = 0; i < OPTIONALS; i++) {
        const json_t *value = json_object_get(config, optional[i].name);
        void         *at = (char *)arguments + optional[i].in_arguments;
        if (!value || json_is_null(value)) continue;
        if (optional[i].whole && json_is_integer(value))
            *(int64_t *)at = json_integer_value(value);
        else if (!optional[i].whole && json_is_number(value))
            *(double *)at = json_number_value(value);
        else
            return cornu__fail(CORNU_ERR_FORMAT, "%s is not null or a %snumber", optional[i].name,
                               optional[i].whole ? "whole " : "");
    }
    if (json_is_number(rate)) return CORNU_OK;
    arguments->schedule = cornu__schedule_from_json(rate);
    return arguments->schedule ? CORNU_OK : cornu_error_take();
}

CornuStatus cornu__arguments_read(const json_t *config, const CornuOptimizerField *field, void *to)
{
    for (; field->name; field++) {
        const json_t *value = json_object_get(config, field->name);
        void         *at = (char *)to + field->in_config;
        if (!value || json_is_null(value)) continue;
        if (field->flag && json_is_boolean(value)) *(bool *)at = json_is_true(value);
        else if (!field->flag && json_is_number(value)) *(double *)at = given(value);
        else
            return cornu__fail(CORNU_ERR_FORMAT, "%s is not %s", field->name,
                               field->flag ? "true or false" : "a number");
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
    if (status == CORNU_OK) status = read_common(config, &common);
    if (status == CORNU_OK) status = cornu__optimizer_set(optimizer, false, &common);
    cornu__release(arguments);
    if (status == CORNU_OK) return optimizer;
    cornu_optimizer_free(optimizer);
    cornu__fail_prefix(status, kind->class_name);
    return cornu__null();
}

/* A name, with default arguments, or an object. */
static CornuOptimizer *read_optimizer(const json_t *value)
{
    const char   *name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    if (json_is_string(value)) return cornu_optimizer(json_string_value(value));
    if (!name || !json_is_object(config))
        return unexpected("optimizer", "a string or an object with class_name and config");
    if (!strcmp(name, "LossScaleOptimizer")) {
        const json_t *inner = json_object_get(config, "inner_optimizer");
        const char   *within = json_string_value(json_object_get(inner, "class_name"));
        if (within && !strcmp(within, name)) return unexpected("inner_optimizer", "an optimizer");
        return cornu_loss_scale_optimizer(read_optimizer(inner));
    }
    const CornuOptimizerClass *kind = cornu__optimizer_class(name);
    if (kind) return make_optimizer(kind, config);
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "there is no optimizer \"%.60s\"", name);
}

/* Keras writes tuples and tensors as objects that contain a list. */
static const json_t *untupled(const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "class_name"));
    if (name && !strcmp(name, "__tensor__"))
        return json_object_get(json_object_get(value, "config"), "value");
    return name && !strcmp(name, "__tuple__") ? json_object_get(value, "items") : value;
}

/* Arguments that all losses and metrics have. */
static CornuStatus check_common(const CornuSerializableClass *kind, const char *name,
                                const json_t *value)
{
    if (!strcmp(name, "name"))
        return json_is_string(value) ? CORNU_OK
                                     : cornu__fail(CORNU_ERR_FORMAT, "name is not a string");
    if (!strcmp(name, "dtype")) {
        const json_t *policy = json_object_get(json_object_get(value, "config"), "name");
        const char   *text = json_string_value(policy ? policy : value);
        return text && !strcmp(text, dtype_of(kind))
                   ? CORNU_OK : cornu__fail(CORNU_ERR_UNSUPPORTED, "dtype is not \"%s\"",
                                            dtype_of(kind));
    }
    if (!strcmp(name, "axis") && json_integer_value(value) == -1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" is not known", name);
}

/* Unknown arguments are errors; null counts as not given, except for aggregations. */
static CornuStatus read_arguments(const CornuSerializableClass *kind, const json_t *given,
                                  void *config)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)given, name, value) {
        const CornuField *field = kind->fields;
        while (field->name && strcmp(field->name, name)) field++;
        if (json_is_null(value) && field->kind != CORNU_FIELD_AGGREGATION) continue;
        if (!field->name) CORNU__TRY(check_common(kind, name, value));
        else CORNU__TRY(cornu__read_field(NULL, field, untupled(value), config));
    }
    return CORNU_OK;
}

static void *make_object(const CornuSerializableClass *kind, const json_t *arguments)
{
    const CornuSerializableClass *of = kind->loss ? kind->loss : kind;
    const char             *name = json_string_value(json_object_get(arguments, "name"));
    void                   *object = NULL, *config = cornu__allocate(1, of->config_size);
    CornuStatus             status = config ? CORNU_OK : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) status = read_arguments(kind, arguments, config);
    if (status == CORNU_OK) {
        *(const char **)((char *)config + of->name_offset) = name;
        object = of->from(config);
        if (object && kind->loss) object = cornu_loss_metric(name ? name : kind->name, object);
        if (!object) status = cornu_error_take();
    }
    cornu__release(config);
    if (status == CORNU_OK) return object;
    cornu__fail_prefix(status, kind->class_name);
    return cornu__null();
}

/* {"class_name": "Huber", "config": {…}}, or a name that `usual` knows: a string or, as Keras
 * writes a function, {"class_name": "function", "config": its name}. */
static void *read_object(const CornuSerializableTable *table, const json_t *value,
                         void *(*usual)(const char *name))
{
    const char   *class_name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    if (json_is_string(value)) return usual(json_string_value(value));
    if (class_name && !strcmp(class_name, "function") && json_is_string(config))
        return usual(json_string_value(config));
    if (!class_name || !json_is_object(config))
        return unexpected(table->word, "a string or an object with class_name and config");
    const CornuSerializableClass *kind = cornu__serializable_class(table, class_name);
    if (kind) return make_object(kind, config);
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "there is no %s \"%.60s\"", table->word,
                            class_name);
}

static void *usual_loss(const char *name) { return cornu_loss(name); }
static void *usual_metric(const char *name) { return cornu_metric(name); }

static CornuLoss *read_loss(const json_t *value)
{
    return read_object(&cornu__losses, value, usual_loss);
}

static CornuMetric *read_metric(const json_t *value)
{
    return read_object(&cornu__metrics, value, usual_metric);
}

static CornuStatus read_metrics(const char *what, const json_t *list, CornuMetric **metrics)
{
    if (!list || json_is_null(list)) return CORNU_OK;
    if (!json_is_array(list) || json_array_size(list) > CORNU_MAX_METRICS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s are not a list of at most %d", what,
                           CORNU_MAX_METRICS);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!(metrics[i] = read_metric(json_array_get(list, i)))) return cornu_error_status();
    return CORNU_OK;
}

/* A list of one element stands for that element. */
static const json_t *alone(const json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    return json_array_size(value) == 1 ? first : value;
}

/* For one output a list, or a list that contains one; for several a list of lists. */
static CornuStatus read_all_metrics(const CornuModel *model, const json_t *config,
                                    const char *what, CornuMetric **metrics,
                                    CornuMetric *(*of_outputs)[CORNU_MAX_METRICS])
{
    const json_t *value = json_object_get(config, what);
    if (!value || json_is_null(value)) return CORNU_OK;
    if (model->output_count == 1) {
        const json_t *inner = alone(value);
        return read_metrics(what, json_is_array(inner) ? inner : value, metrics);
    }
    if (!json_is_array(value) || json_array_size(value) != (size_t)model->output_count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s are not a list of %d lists", what,
                           model->output_count);
    for (int i = 0; i < model->output_count; i++)
        CORNU__TRY(read_metrics(what, json_array_get(value, (size_t)i), of_outputs[i]));
    return CORNU_OK;
}

static CornuStatus read_losses(const CornuModel *model, const json_t *value,
                               CornuCompileConfig *to)
{
    if (!value || json_is_null(value)) return CORNU_OK;
    if (!json_is_array(value)) {
        to->loss = read_loss(value);
        return to->loss ? CORNU_OK : cornu_error_status();
    }
    if (json_array_size(value) != (size_t)model->output_count)
        return cornu__fail(CORNU_ERR_FORMAT, "there are %zu losses for %d outputs",
                           json_array_size(value), model->output_count);
    for (int i = 0; i < model->output_count; i++)
        if (!(to->losses[i] = read_loss(json_array_get(value, (size_t)i))))
            return cornu_error_status();
    return CORNU_OK;
}

static CornuStatus read_loss_weights(const CornuModel *model, const json_t *list,
                                     CornuCompileConfig *to)
{
    if (!list || json_is_null(list)) return CORNU_OK;
    if (json_array_size(list) != (size_t)model->output_count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "loss_weights are not a list of %d numbers",
                           model->output_count);
    for (int i = 0; i < model->output_count; i++) {
        const json_t *weight = json_array_get(list, (size_t)i);
        if (!json_is_number(weight))
            return cornu__fail(CORNU_ERR_FORMAT, "loss_weights[%d] is not a number", i);
        to->loss_weights[i] = given(weight);
    }
    return CORNU_OK;
}

static CornuStatus read_all(const CornuModel *model, const json_t *config, CornuCompileConfig *to)
{
    const json_t *optimizer = json_object_get(config, "optimizer");
    const json_t *steps = json_object_get(config, "steps_per_execution");
    if (!optimizer) optimizer = json_object_get(config, "optimizer_config");   /* older files */
    if (!optimizer)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with; load it "
                           "by cornu_model_load, and compile it");
    to->steps_per_execution = json_integer_value(steps);
    if (!(to->optimizer = read_optimizer(optimizer))) return cornu_error_status();
    CORNU__TRY(read_loss_weights(model, json_object_get(config, "loss_weights"), to));
    const json_t *loss = json_object_get(config, "loss");
    CORNU__TRY(read_losses(model, model->output_count == 1 ? alone(loss) : loss, to));
    CORNU__TRY(read_all_metrics(model, config, "metrics", to->metrics, to->output_metrics));
    return read_all_metrics(model, config, "weighted_metrics", to->weighted_metrics,
                            to->output_weighted_metrics);
}

static void free_all(CornuCompileConfig *config)
{
    cornu_optimizer_free(config->optimizer);
    cornu_loss_free(config->loss);
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        cornu_loss_free(config->losses[i]);
        for (int k = 0; k < CORNU_MAX_METRICS; k++) {
            cornu_metric_free(config->output_metrics[i][k]);
            cornu_metric_free(config->output_weighted_metrics[i][k]);
        }
    }
    for (int i = 0; i < CORNU_MAX_METRICS; i++) {
        cornu_metric_free(config->metrics[i]);
        cornu_metric_free(config->weighted_metrics[i]);
    }
}

CornuStatus cornu__compile_from_config(CornuModel *model, const json_t *config,
                                       CornuDevice *device)
{
    CornuCompileConfig to = { .model = model, .device = device };
    CornuStatus        status = read_all(model, config, &to);
    if (status == CORNU_OK) return cornu_compile_from(&to);
    free_all(&to);
    if (cornu_error_pending()) cornu_error_take();
    return cornu__fail_prefix(status, "compile_config");
}
