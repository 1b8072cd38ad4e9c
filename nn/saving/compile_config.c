/* The arguments of compile as Keras' JSON: keras/src/trainers/compile_utils.py. */
#include "architecture/architecture_internal.h"
#include "keras_internal.h"
#include "../optimizers/schedule_internal.h"

#include <string.h>

/* ---- Writing. Out of memory jansson returns NULL; given NULL it fails. ---- */

/* A value for one output, a list for several. */
static json_t *losses_to_json(const CornuModel *model)
{
    if (model->output_count == 1) return cornu__loss_to_json(model->losses[0]);
    json_t *list = json_array();
    for (int i = 0; i < model->output_count; i++)
        list = cornu__json_append(list, cornu__loss_to_json(model->losses[i]));
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
            list = cornu__json_append(list, cornu__metric_to_json(tracked->metric));
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
    bool known = cornu__optimizer_is_describable(model->optimizer) && !model->own &&
                 !model->shares;
    for (int i = 0; i < model->output_count; i++)
        known &= !model->losses[i] || model->losses[i]->kind || model->losses[i]->record;
    for (int i = 0; i < model->tracked_count; i++)
        known &= !model->tracked[i].metric || model->tracked[i].metric->kind ||
                 model->tracked[i].metric->record;
    return known;
}

static json_t *jit_to_json(CornuJitCompile jit)
{
    return jit == CORNU_JIT_AUTO ? json_string("auto") : json_boolean(jit == CORNU_JIT_TRUE);
}

json_t *cornu__compile_config(const CornuModel *model)
{
    if (!model->compiled || !is_describable(model)) return json_object();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:o}", "optimizer",
                     cornu__optimizer_to_json(model->optimizer), "loss", losses_to_json(model),
                     "loss_weights", weights_to_json(model), "metrics",
                     metrics_to_json(model, false), "weighted_metrics",
                     metrics_to_json(model, true), "run_eagerly", model->run_eagerly,
                     "steps_per_execution", (json_int_t)model->steps_per_execution, "jit_compile",
                     jit_to_json(model->jit_compile));
}

/* ---- Reading: what each output gets ---- */

/* A name or an object, as opposed to a dictionary by output. */
static bool is_object(const json_t *value)
{
    return json_is_string(value) || json_is_string(json_object_get(value, "class_name"));
}

static bool is_dictionary(const json_t *value)
{
    return json_is_object(value) && !is_object(value);
}

/* Values in order, from lists at any depth; `count` goes on beyond `most`. */
static void flatten(const json_t *value, const json_t **to, int most, int *count)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            flatten(json_array_get(value, i), to, most, count);
        return;
    }
    if (*count < most) to[*count] = value;
    (*count)++;
}

/* A dictionary's values by the names of the outputs; those that it lacks stay NULL. */
static CornuStatus by_name(const CornuModel *model, const json_t *dictionary, const json_t **of)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)dictionary, name, value) {
        const int output = cornu__find_output(model, name);
        if (output < 0) return cornu_error_take();
        of[output] = value;
    }
    return CORNU_OK;
}

/* A list with a value for each output; other lists are nested as the outputs are. */
static CornuStatus by_position(const CornuModel *model, const char *what, const json_t *list,
                               const json_t **of)
{
    const bool even = json_array_size(list) == (size_t)model->output_count;
    int        count = even ? model->output_count : 0;
    for (int i = 0; i < count; i++) of[i] = json_array_get(list, (size_t)i);
    if (!even) flatten(list, of, model->output_count, &count);
    if (count == model->output_count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has %d entries for %d outputs", what, count,
                       model->output_count);
}

/* of[i]: the value for output i, or NULL. */
static CornuStatus divide(const CornuModel *model, const char *what, const json_t *value,
                          const json_t **of)
{
    if (!value || json_is_null(value)) return CORNU_OK;
    if (is_dictionary(value)) CORNU__TRY(by_name(model, value, of));
    else if (json_is_array(value)) CORNU__TRY(by_position(model, what, value, of));
    else for (int i = 0; i < model->output_count; i++) of[i] = value;
    for (int i = 0; i < model->output_count; i++)
        if (json_is_null(of[i])) of[i] = NULL;
    return CORNU_OK;
}

/* ---- Metrics ---- */

/* Adds the metrics of a value: one, none, or those of a list or, by sorted keys, a dictionary. */
static CornuStatus read_metrics(const char *what, const json_t *value,
                                CornuMetric *metrics[CORNU_MAX_METRICS], int *count)
{
    if (!value || json_is_null(value)) return CORNU_OK;
    for (size_t i = 0; i < json_array_size(value); i++)
        CORNU__TRY(read_metrics(what, json_array_get(value, i), metrics, count));
    if (json_is_array(value)) return CORNU_OK;
    if (is_dictionary(value)) {
        const char **keys = cornu__sorted_keys(value);
        CornuStatus  status = keys ? CORNU_OK : CORNU_ERR_MEMORY;
        for (size_t i = 0; i < json_object_size(value) && !status; i++)
            status = read_metrics(what, json_object_get(value, keys[i]), metrics, count);
        cornu__release(keys);
        return status;
    }
    if (*count == CORNU_MAX_METRICS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s of an output are more than %d", what,
                           CORNU_MAX_METRICS);
    metrics[*count] = cornu__metric_from_json(value);
    return metrics[(*count)++] ? CORNU_OK : cornu_error_status();
}

/* One output has all the metrics, however they are nested. */
static CornuStatus read_all_metrics(const CornuModel *model, const json_t *config,
                                    const char *what, CornuMetric **metrics,
                                    CornuMetric *(*of_outputs)[CORNU_MAX_METRICS])
{
    const json_t *value = json_object_get(config, what);
    const json_t *of[CORNU_MAX_LOSSES] = { NULL };
    int           count = 0;
    if (model->output_count == 1) return read_metrics(what, value, metrics, &count);
    if (is_object(value)) return cornu__unexpected(what, "a list or a dictionary");
    CORNU__TRY(divide(model, what, value, of));
    for (int i = 0; i < model->output_count; i++, count = 0)
        CORNU__TRY(read_metrics(what, of[i], of_outputs[i], &count));
    return CORNU_OK;
}

/* ---- Losses ---- */

/* Of several losses for one output Keras uses the first. */
static CornuStatus read_losses(const CornuModel *model, const json_t *value,
                               CornuCompileConfig *to)
{
    const json_t *of[CORNU_MAX_LOSSES] = { NULL };
    int           count = 0;
    if (!value || json_is_null(value)) return CORNU_OK;
    if (is_object(value)) {
        to->loss = cornu__loss_from_json(value);
        return to->loss ? CORNU_OK : cornu_error_status();
    }
    if (model->output_count == 1 && json_is_array(value)) flatten(value, of, 1, &count);
    else CORNU__TRY(divide(model, "loss", value, of));
    if (json_is_array(of[0]) && model->output_count == 1) of[0] = json_array_get(of[0], 0);
    for (int i = 0; i < model->output_count; i++) {
        to->losses[i] = of[i] && !json_is_null(of[i]) ? cornu__loss_from_json(of[i])
                                                      : CORNU_NO_LOSS;
        if (!to->losses[i]) return cornu_error_status();
    }
    return CORNU_OK;
}

/* The values of a dictionary by its sorted keys. */
static CornuStatus by_sorted_key(const CornuModel *model, const json_t *dictionary,
                                 const json_t **of)
{
    const size_t count = json_object_size(dictionary);
    if (count != (size_t)model->output_count)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "loss_weights has %zu entries for %d outputs",
                           count, model->output_count);
    const char **keys = cornu__sorted_keys(dictionary);
    for (size_t i = 0; i < count && keys; i++) of[i] = json_object_get(dictionary, keys[i]);
    cornu__release(keys);
    return keys ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Keras looks at the names in a dictionary only if the losses are a dictionary, too: to a list of
 * losses it assigns the values by their sorted names. */
static CornuStatus read_loss_weights(const CornuModel *model, const json_t *config,
                                     CornuCompileConfig *to)
{
    const json_t *value = json_object_get(config, "loss_weights");
    const json_t *loss = json_object_get(config, "loss");
    const json_t *of[CORNU_MAX_LOSSES] = { NULL };
    if (is_dictionary(value) && !is_dictionary(loss))
        CORNU__TRY(by_sorted_key(model, value, of));
    else
        CORNU__TRY(divide(model, "loss_weights", value, of));
    for (int i = 0; i < model->output_count; i++) {
        if (!of[i]) continue;
        if (!json_is_number(of[i]))
            return cornu__fail(CORNU_ERR_FORMAT, "loss_weights[%d] is not a number", i);
        to->loss_weights[i] = json_number_value(of[i]);
        if (to->loss_weights[i] == 0.0) to->loss_weights[i] = (double)CORNU_ZERO;
    }
    return CORNU_OK;
}

/* ---- All of it ---- */

static CornuStatus read_all(const CornuModel *model, const json_t *config, CornuCompileConfig *to)
{
    const json_t *optimizer = json_object_get(config, "optimizer");
    const json_t *steps = json_object_get(config, "steps_per_execution");
    CORNU__TRY(cornu__check_output_count(model));
    if (!optimizer) optimizer = json_object_get(config, "optimizer_config");   /* older files */
    if (!optimizer)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with; load it "
                           "by cornu_model_load, and compile it");
    to->steps_per_execution = json_integer_value(steps);
    to->gradient_norm = json_is_true(json_object_get(config, "gradient_norm"));
    to->debug_nans = json_is_true(json_object_get(config, "debug_nans"));
    to->no_auto_scale_loss = json_is_false(json_object_get(config, "auto_scale_loss"));
    if (!(to->optimizer = cornu__optimizer_from_json(optimizer))) return cornu_error_status();
    CORNU__TRY(read_loss_weights(model, config, to));
    CORNU__TRY(read_losses(model, json_object_get(config, "loss"), to));
    CORNU__TRY(read_all_metrics(model, config, "metrics", to->metrics, to->output_metrics));
    return read_all_metrics(model, config, "weighted_metrics", to->weighted_metrics,
                            to->output_weighted_metrics);
}

static void free_all(CornuCompileConfig *config)
{
    cornu_optimizer_free(config->optimizer);
    cornu_loss_free(config->loss);
    for (int i = 0; i < CORNU_MAX_LOSSES; i++) {
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

static CornuStatus compile_from_config(CornuModel *model, const json_t *config,
                                       CornuDevice *device, CornuOwnStep *step)
{
    CornuCompileConfig to = { .model = model, .device = device, .step = step };
    CornuStatus        status = read_all(model, config, &to);
    if (status == CORNU_OK) {
        const json_t *jit = json_object_get(config, "jit_compile");
        model->run_eagerly = json_is_true(json_object_get(config, "run_eagerly"));
        model->jit_compile = json_is_true(jit) ? CORNU_JIT_TRUE
                           : json_is_false(jit) ? CORNU_JIT_FALSE : CORNU_JIT_AUTO;
        return cornu_compile_from(&to);
    }
    free_all(&to);
    cornu__own_step_free(step);
    if (cornu_error_pending()) cornu_error_take();
    return cornu__fail_prefix(status, "compile_config");
}

CornuStatus cornu__compile_from_config(CornuModel *model, const json_t *config,
                                       CornuDevice *device)
{
    return compile_from_config(model, config, device, NULL);
}

CornuStatus cornu_compile_step_from_json(CornuModel *model, const char *json, CornuDevice *device,
                                         CornuOwnStep *step)
{
    CORNU__NEED(model);
    CORNU__NEED(json);
    json_t     *config = cornu__json_parse(json, strlen(json), CORNU_ARCHITECTURE_DEPTH);
    CornuStatus status = config ? compile_from_config(model, config, device, step)
                                : cornu_error_status();
    json_decref(config);
    return status;
}

CornuStatus cornu_compile_from_json(CornuModel *model, const char *json, CornuDevice *device)
{
    return cornu_compile_step_from_json(model, json, device, NULL);
}

char *cornu_compile_to_json(const CornuModel *model)
{
    CORNU__NEED_TO_MAKE(model);
    if (cornu__refused()) return NULL;
    json_t *config = cornu__compile_config(model);
    char   *text = NULL;
    if (config && json_object_size(config) == 0)
        cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: is not compiled, or with something that is not "
                    "Keras'", cornu_model_name(model));
    else text = cornu__json_text(config);
    json_decref(config);
    return text ? text : cornu__null();
}

/* ---- Single objects ---- */

typedef void *FromJson(const json_t *value);

static void *read_optimizer(const json_t *value) { return cornu__optimizer_from_json(value); }
static void *read_loss(const json_t *value) { return cornu__loss_from_json(value); }
static void *read_schedule(const json_t *value) { return cornu__schedule_from_json(value); }
static void *read_metric(const json_t *value) { return cornu__metric_from_json(value); }

/* A name is parsed as the only element of a list. */
static void *read_one(const char *json, FromJson *read)
{
    CORNU__NEED_TO_MAKE(json);
    if (cornu__refused()) return NULL;
    const size_t size = strlen(json);
    char        *text = cornu__allocate(size + 3, 1);
    if (!text) return cornu__null();
    text[0] = '[';
    memcpy(text + 1, json, size);
    text[size + 1] = ']';
    json_t *list = cornu__json_parse(text, size + 2, CORNU_ARCHITECTURE_DEPTH);
    void   *made = json_array_size(list) == 1 ? read(json_array_get(list, 0)) : NULL;
    if (!made && !cornu_error_pending())
        cornu__fail_null(cornu_error_status() ? cornu_error_status() : CORNU_ERR_FORMAT,
                         "expected one JSON value, got %.80s", json);
    json_decref(list);
    cornu__release(text);
    return made;
}

CornuOptimizer *cornu_optimizer_from_json(const char *json)
{
    return read_one(json, read_optimizer);
}

CornuLoss *cornu_loss_from_json(const char *json) { return read_one(json, read_loss); }
CornuSchedule *cornu_schedule_from_json(const char *json)
{
    return read_one(json, read_schedule);
}

CornuMetric *cornu_metric_from_json(const char *json) { return read_one(json, read_metric); }
