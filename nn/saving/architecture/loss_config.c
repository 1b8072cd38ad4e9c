/* Losses and metrics as Keras' JSON: the get_config of keras/src/losses and keras/src/metrics. */
#include "architecture_internal.h"
#include "../keras_internal.h"
#include "../../fields/own_objects_internal.h"
#include "../../metrics/metric_internal.h"

#include <string.h>

/* ---- Writing ---- */

json_t *cornu__record_to_json(const char *record)
{
    return cornu__json_parse(record, strlen(record), CORNU_ARCHITECTURE_DEPTH);
}

json_t *cornu__loss_to_json(const CornuLoss *loss)
{
    if (!loss) return json_null();
    if (!loss->kind) return cornu__record_to_json(loss->record);
    json_t *config = json_pack("{s:s}", "name", loss->name);
    config = cornu__fields_to_json(NULL, loss->kind->fields, loss->config, config);
    return cornu__json_object("keras.losses", loss->kind->class_name, config);
}

static const char *dtype_of(const CornuMetric *metric)
{
    return metric->dtype ? metric->dtype : metric->kind->dtype ? metric->kind->dtype : "float32";
}

static bool is_loss(const CornuSerializableClass *kind)
{
    int i = 0;
    while (i < cornu__losses.count && cornu__losses.rows[i].kind != kind) i++;
    return i < cornu__losses.count;
}

/* For a class that is not Keras' the name is all there is to write. The mean of a loss of which
 * Keras has no metric is one of the loss' function. */
json_t *cornu__metric_to_json(const CornuMetric *metric)
{
    const CornuSerializableClass *kind = metric->kind;
    if (!kind) return cornu__record_to_json(metric->record);
    const bool wraps = is_loss(kind);
    if (!kind->class_name) return json_string(metric->name);
    json_t *config = json_pack("{s:s, s:s}", "name", metric->name, "dtype", dtype_of(metric));
    config = cornu__fields_to_json(NULL, kind->fields, metric->config, config);
    if (!wraps) return cornu__json_object("keras.metrics", kind->class_name, config);
    json_object_del(config, "reduction");
    json_t *function = json_pack("{s:s, s:s, s:s, s:s}", "module", "builtins", "class_name",
                                 "function", "config", kind->name, "registered_name", "function");
    return cornu__json_object("keras.metrics", "MeanMetricWrapper",
                              cornu__json_with(config, "fn", function));
}

/* ---- Reading ---- */

/* Keras writes tuples and tensors as objects that contain a list. */
static const json_t *untupled(const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "class_name"));
    if (name && !strcmp(name, "__tensor__"))
        return json_object_get(json_object_get(value, "config"), "value");
    return name && !strcmp(name, "__tuple__") ? json_object_get(value, "items") : value;
}

/* The name of a dtype, or of the policy of one, as a constant; or NULL. */
static const char *known_dtype(const json_t *value)
{
    const json_t *policy = json_object_get(json_object_get(value, "config"), "name");
    const char   *name = json_string_value(policy ? policy : value);
    static const char *const known[] = { "float32", "float16", "bfloat16", "float64", "int32",
                                         "int64", "int16", "int8", "uint8" };
    for (size_t i = 0; i < sizeof known / sizeof *known && name; i++)
        if (!strcmp(known[i], name)) return known[i];
    return NULL;
}

/* Metrics of floats count in f64, whichever float Keras would take, and keep its name for files. A
 * metric of whole numbers, as MeanIoU, truncates sample weights; another one would truncate labels
 * and predictions, which is refused. */
static CornuStatus set_dtype(CornuMetric *metric, const json_t *value)
{
    const char *text = known_dtype(value);
    const bool floats = text && strstr(text, "float"), usual = strstr(dtype_of(metric), "float");
    if (!text || floats != usual)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "dtype is not \"%s\"", dtype_of(metric));
    metric->dtype = text;
    return CORNU_OK;
}

/* Keras does not write the dtype of a loss. */
static CornuStatus check_dtype(const json_t *value)
{
    const char *text = known_dtype(value);
    return text && !strcmp(text, "float32")
               ? CORNU_OK : cornu__fail(CORNU_ERR_UNSUPPORTED, "dtype is not \"float32\"");
}

/* Arguments that all losses and metrics have. */
static CornuStatus check_common(const char *name, const json_t *value)
{
    if (!strcmp(name, "name"))
        return json_is_string(value) ? CORNU_OK : cornu__unexpected(name, "a string");
    if (!strcmp(name, "dtype") || !strcmp(name, "fn")) return CORNU_OK;
    if (!strcmp(name, "axis") && json_integer_value(value) == -1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"%.60s\" is not known", name);
}

/* Unknown arguments are errors. */
static CornuStatus read_arguments(const CornuSerializableClass *kind, const json_t *given,
                                  void *config)
{
    const char *name;
    json_t     *value;
    json_object_foreach((json_t *)given, name, value) {
        const CornuField *field = kind->fields;
        while (field->name && strcmp(field->name, name)) field++;
        if (json_is_null(value) && !(field->name && field->kind->takes_null)) continue;
        if (!field->name) CORNU__TRY(check_common(name, value));
        else CORNU__TRY(cornu__read_field(NULL, field, untupled(value), config));
    }
    return CORNU_OK;
}

/* A metric of a loss class is the mean of the loss. */
static void *make_object(const CornuSerializableTable *table, const CornuSerializableClass *kind,
                         const json_t *arguments)
{
    const CornuSerializableClass *of = kind->loss ? kind->loss : kind;
    const bool mean = table == &cornu__metrics && is_loss(of);
    const char             *name = json_string_value(json_object_get(arguments, "name"));
    void                   *object = NULL, *config = cornu__allocate(1, of->config_size);
    CornuStatus             status = config ? CORNU_OK : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) status = read_arguments(kind, arguments, config);
    if (status == CORNU_OK) {
        *(const char **)((char *)config + of->name_offset) = name;
        object = of->from(config);
        if (object && mean) object = cornu_loss_metric(name ? name : kind->name, object);
        if (!object) status = cornu_error_take();
    }
    cornu__release(config);
    const json_t *dtype = json_object_get(arguments, "dtype");
    if (status == CORNU_OK && dtype && !json_is_null(dtype)) {
        status = table == &cornu__metrics ? set_dtype(object, dtype) : check_dtype(dtype);
        if (status && table == &cornu__metrics) cornu_metric_free(object);
        else if (status) cornu_loss_free(object);
    }
    if (status == CORNU_OK) return object;
    cornu__fail_prefix(status, kind->class_name ? kind->class_name : kind->name);
    return cornu__null();
}

/* What the library has of an object of the program's, which is not there. */
static void *traced(const CornuSerializableTable *table, const json_t *value)
{
    CornuLoss *loss = cornu__read_traced_loss(value);
    if (!loss || table != &cornu__metrics) return loss;
    const char  *record = loss->record;
    CornuMetric *metric = cornu_loss_metric(loss->name, loss);
    if (metric) metric->record = record;    /* which the loss, the metric's, owns */
    return metric;
}

/* An object of the program's for what is none of the library's. */
static void *foreign(const CornuSerializableTable *table, const json_t *value, const char *name)
{
    void *made = cornu__resolve(table->word, value);
    if (made || cornu_error_pending()) return made;
    if (json_object_get(value, "traced")) return traced(table, value);
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the %s \"%.60s\" is none of Keras' that Cornu "
                            "has; load the model by cornu_model_load, and compile it with another "
                            "or your own", table->word, name);
}

/* The class of this name, or NULL without an error. */
static const CornuSerializableClass *find(const CornuSerializableTable *table, const char *name)
{
    const CornuSerializableClass *kind = cornu__serializable_find(table, name);
    if (!kind) cornu_error_take();
    return kind;
}

/* The class of a function: a metric of a loss' function is its mean, also of cosine_similarity,
 * which as a metric has the other sign. */
static const CornuSerializableClass *class_of(const CornuSerializableTable *table,
                                              const char *name)
{
    const CornuSerializableClass *kind = find(table, name);
    if (table == &cornu__metrics && (!kind || !strcmp(name, "cosine_similarity")))
        kind = find(&cornu__losses, name);
    return kind;
}

/* The name of a function, {"class_name": "function", "config": its name}, or NULL. */
static const char *function_name(const json_t *value)
{
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (!class_name || strcmp(class_name, "function")) return NULL;
    return json_string_value(json_object_get(value, "config"));
}

/* {"class_name": "Huber", "config": {…}}, a name or a function, or a wrapped function, whose
 * arguments are among those of the wrapper. */
static void *read_object(const CornuSerializableTable *table, const json_t *value,
                         void *(*usual)(const char *name))
{
    const char   *class_name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    const char   *name = json_string_value(value), *function = function_name(value);
    if (json_object_get(value, "traced")) return foreign(table, value, cornu__record_name(value));
    if (!function && cornu__is_of_program(value)) {
        void *made = cornu__resolve(table->word, value);
        if (made || cornu_error_pending()) return made;
    }
    if (name) return find(table, name) ? usual(name) : foreign(table, value, name);
    if (function) {
        const CornuSerializableClass *of = class_of(table, function);
        return !of ? foreign(table, value, function)
                   : find(table, function) == of ? usual(function)
                                                        : make_object(table, of, NULL);
    }
    if (!class_name || !json_is_object(config))
        return cornu__fail_null(CORNU_ERR_FORMAT, "%s is not a string or an object with class_name "
                                "and config", table->word);
    const CornuSerializableClass *kind = cornu__serializable_class(table, class_name);
    const char *wrapped = function_name(json_object_get(config, "fn"));
    if (!kind && wrapped) kind = class_of(table, wrapped);
    return kind ? make_object(table, kind, config)
                : foreign(table, value, wrapped ? wrapped : class_name);
}

static void *usual_loss(const char *name) { return cornu_loss(name); }
static void *usual_metric(const char *name) { return cornu_metric(name); }

CornuLoss *cornu__loss_from_json(const json_t *value)
{
    CornuLoss *own = cornu__own_object(value);
    if (own) return own;
    return read_object(&cornu__losses, value, usual_loss);
}

CornuMetric *cornu__metric_from_json(const json_t *value)
{
    CornuMetric *own = cornu__own_object(value);
    if (own) return own;
    return read_object(&cornu__metrics, value, usual_metric);
}
