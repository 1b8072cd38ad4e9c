/* What a model is compiled with, in Keras' JSON: keras/src/trainers/compile_utils.py and the
 * get_config of optimizers and losses. */
#include "architecture_internal.h"
#include "keras_internal.h"
#include "loss_internal.h"
#include "optimizer_internal.h"
#include "schedule_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Arguments of every optimizer that are null where they are 0: "not given". */
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

/* ---- Out. Without memory jansson gives NULL, and takes NULL for a failure. ---- */

json_t *cornu__arguments_write(json_t *config, const CornuOptimizerField *field, const void *self)
{
    for (; field->name; field++) {
        const char *at = (const char *)self + field->in_self;
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
        const char   *at = (const char *)optimizer + optional[i].in_self;
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

/* "mean_squared_error" is the class MeanSquaredError. */
static __attribute__((unused)) void class_of(const char *name, char *to, size_t size)
{
    bool   first = true;
    size_t at = 0;
    for (; *name && at + 1 < size; name++) {
        if (*name != '_') to[at++] = first ? (char)toupper((unsigned char)*name) : *name;
        first = *name == '_';
    }
    to[at] = '\0';
}

static json_t *loss_to_json(const CornuLoss *loss)
{
    if (!loss) return json_null();
    return json_string(loss->name);
}

/* For one output its own, for several a list. */
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

/* Of one output; null where there are none. */
static json_t *metrics_of(const CornuModel *model, int output)
{
    json_t *list = json_array();
    for (int i = 0; i < model->tracked_count; i++) {
        const CornuTracked *tracked = &model->tracked[i];
        if (tracked->metric && tracked->output == output)
            list = cornu__json_append(list, json_string(tracked->metric->name));
    }
    if (!list || json_array_size(list) > 0) return list;
    json_decref(list);
    return json_null();
}

static json_t *metrics_to_json(const CornuModel *model)
{
    if (model->output_count == 1) return metrics_of(model, 0);
    json_t *list = json_array();
    for (int i = 0; i < model->output_count; i++)
        list = cornu__json_append(list, metrics_of(model, i));
    return list;
}

/* Whether the names of its parts lead back to them: none is a user's own. */
static bool is_describable(const CornuModel *model)
{
    const CornuOptimizer *optimizer = model->optimizer;
    bool known = optimizer->kind->fields &&
                 (!optimizer->schedule || cornu__schedule_numbers(optimizer->schedule));
    for (int i = 0; i < model->output_count && known; i++) {
        CornuLoss *loss = model->losses[i], *same = loss ? cornu_loss(loss->name) : NULL;
        known = !loss || (same && same->call == loss->call);
        cornu_loss_free(same);
        cornu_error_take();
    }
    for (int i = 0; i < model->tracked_count && known; i++) {
        CornuMetric *metric = model->tracked[i].metric;
        CornuMetric *same = metric ? cornu_metric(metric->name) : NULL;
        known = !metric || (same && same->update == metric->update);
        cornu_metric_free(same);
        cornu_error_take();
    }
    return known;
}

json_t *cornu__compile_config(const CornuModel *model)
{
    if (!model->compiled || !is_describable(model)) return json_object();
    return json_pack("{s:o, s:o, s:o, s:o, s:n, s:b, s:I, s:s}", "optimizer",
                     optimizer_to_json(model->optimizer), "loss", losses_to_json(model),
                     "loss_weights", weights_to_json(model), "metrics", metrics_to_json(model),
                     "weighted_metrics", "run_eagerly", 0, "steps_per_execution",
                     (json_int_t)model->steps_per_execution, "jit_compile", "auto");
}

/* ---- In ---- */

static void *unexpected(const char *name, const char *expected)
{
    return cornu__fail_null(CORNU_ERR_FORMAT, "%s is not %s", name, expected);
}

/* 0 is a value where a config's 0 would be a default. */
static double given(const json_t *number)
{
    const double value = json_number_value(number);
    return value == 0.0 ? (double)CORNU_ZERO : value;
}

/* What every optimizer has, resolved. */
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
        char         *at = (char *)arguments + optional[i].in_arguments;
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
        char         *at = (char *)to + field->in_config;
        if (!value || json_is_null(value)) continue;
        if (field->flag && json_is_boolean(value)) *(bool *)at = json_is_true(value);
        else if (!field->flag && json_is_number(value)) *(double *)at = given(value);
        else
            return cornu__fail(CORNU_ERR_FORMAT, "%s is not %s", field->name,
                               field->flag ? "true or false" : "a number");
    }
    return CORNU_OK;
}

/* Nothing that is given may be passed over. */
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

/* By a name, with its defaults, or an object. */
static CornuOptimizer *read_optimizer(const json_t *value)
{
    const char   *name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    if (json_is_string(value)) return cornu_optimizer(json_string_value(value));
    if (!name || !json_is_object(config))
        return unexpected("optimizer", "a text or an object with class_name and config");
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

/* Arguments of losses and metrics that are not read: what they must be. */
static bool is_usual(const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    return json_is_null(value) || !strcmp(name, "name") || !strcmp(name, "dtype") ||
           (!strcmp(name, "reduction") && text && !strcmp(text, "sum_over_batch_size")) ||
           (!strcmp(name, "axis") && json_integer_value(value) == -1) ||
           (!strcmp(name, "from_logits") && json_is_false(value)) ||
           (json_is_number(value) && json_number_value(value) == 0.0 &&
            !strcmp(name, "label_smoothing"));
}

static CornuStatus check_usual(const char *class_name, const json_t *config, bool is_loss)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)config, name, value) {
        const bool read = is_loss && (!strcmp(name, "from_logits") ||
                                      !strcmp(name, "label_smoothing"));
        if (!read && !is_usual(name, value))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.60s: the argument \"%.60s\" can only be "
                               "Keras' default", class_name, name);
    }
    return CORNU_OK;
}

/* The function's name of {"class_name": "MeanSquaredError", …}; NULL with a pending error. */
static const char *name_of(const json_t *value, const char *what, char *to, size_t size)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (json_is_string(value)) return json_string_value(value);
    if (!class_name) return unexpected(what, "a text or an object with a class_name");
    cornu__snake_case(class_name, to, size);
    return to;
}

static CornuLoss *read_loss(const json_t *value)
{
    char          text[64];
    const json_t *config = json_object_get(value, "config");
    const char   *name = name_of(value, "loss", text, sizeof text);
    if (!name || check_usual(name, config, false)) return cornu__null();
    return cornu_loss(name);
}

static CornuMetric *read_metric(const json_t *value)
{
    char          text[64];
    const char   *name = name_of(value, "metric", text, sizeof text);
    if (!name || check_usual(name, json_object_get(value, "config"), false)) return cornu__null();
    return cornu_metric(name);
}

static CornuStatus read_metrics(const json_t *list, CornuMetric **metrics)
{
    if (!list || json_is_null(list)) return CORNU_OK;
    if (!json_is_array(list) || json_array_size(list) > CORNU_MAX_METRICS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "metrics are no list of at most %d",
                           CORNU_MAX_METRICS);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!(metrics[i] = read_metric(json_array_get(list, i)))) return cornu_error_status();
    return CORNU_OK;
}

/* Lists of one stand for what is in them. */
static const json_t *alone(const json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    return json_array_size(value) == 1 ? first : value;
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
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "loss_weights are no list of %d numbers",
                           model->output_count);
    for (int i = 0; i < model->output_count; i++) {
        const json_t *weight = json_array_get(list, (size_t)i);
        if (!json_is_number(weight))
            return cornu__fail(CORNU_ERR_FORMAT, "loss_weights[%d] is no number", i);
        to->loss_weights[i] = given(weight);
    }
    return CORNU_OK;
}

static CornuStatus read_all(const CornuModel *model, const json_t *config, CornuCompileConfig *to)
{
    const json_t *optimizer = json_object_get(config, "optimizer");
    const json_t *metrics = json_object_get(config, "metrics");
    const json_t *steps = json_object_get(config, "steps_per_execution");
    const json_t *weighted = json_object_get(config, "weighted_metrics");
    if (!optimizer) optimizer = json_object_get(config, "optimizer_config");   /* older files */
    if (!optimizer)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with; load it "
                           "by cornu_model_load, and compile it");
    if (json_array_size(weighted) > 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "weighted_metrics cannot be loaded in this "
                           "version");
    to->steps_per_execution = json_integer_value(steps);
    if (!(to->optimizer = read_optimizer(optimizer))) return cornu_error_status();
    CORNU__TRY(read_loss_weights(model, json_object_get(config, "loss_weights"), to));
    const json_t *loss = json_object_get(config, "loss");
    CORNU__TRY(read_losses(model, model->output_count == 1 ? alone(loss) : loss, to));
    if (model->output_count == 1) {
        const json_t *inner = alone(metrics);
        return read_metrics(json_is_array(inner) ? inner : metrics, to->metrics);
    }
    for (int i = 0; i < model->output_count; i++)
        CORNU__TRY(read_metrics(json_array_get(metrics, (size_t)i), to->output_metrics[i]));
    return CORNU_OK;
}

static void free_all(CornuCompileConfig *config)
{
    cornu_optimizer_free(config->optimizer);
    cornu_loss_free(config->loss);
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        cornu_loss_free(config->losses[i]);
        for (int k = 0; k < CORNU_MAX_METRICS; k++) cornu_metric_free(config->output_metrics[i][k]);
    }
    for (int i = 0; i < CORNU_MAX_METRICS; i++) cornu_metric_free(config->metrics[i]);
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
