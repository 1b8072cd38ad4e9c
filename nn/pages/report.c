/* Sources: keras/src/callbacks/callback.py for the order of hooks. */
#include "report_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../device/files/file.h"
#include "../../device/hash/sha256_internal.h"
#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/version.h"
#include "../formats/json_internal.h"
#include "../formats/output_internal.h"
#include "../training/training_internal.h"

/* ---- The run ---- */

/* Adds a row of the table of the run. */
static json_t *with_row(json_t *rows, const char *name, json_t *value)
{
    return cornu__json_append(rows, json_pack("[s, o]", name, value));
}

static json_t *count_of(int64_t number)
{
    return json_integer((json_int_t)number);
}

/* The SHA-256 of all weights, in the order of the model, as f32 of this machine. */
static CornuStatus hash_weights(const CornuModel *model, char text[CORNU__SHA256_TEXT])
{
    CornuSha256 sum;
    cornu__sha256_begin(&sum);
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const size_t       bytes = cornu_type_bytes(weight->type);
        void              *value = cornu__allocate(bytes ? bytes : 1, 1);
        CornuStatus        status = value ? cornu_weight_read(weight, cornu_array_from(value,
                                                                              weight->type))
                                          : CORNU_ERR_MEMORY;
        if (!status) cornu__sha256_add(&sum, value, bytes);
        cornu__release(value);
        if (status) return status;
    }
    cornu__sha256_end(&sum, text);
    return CORNU_OK;
}

/* What the device is, which says how its times come about. */
static const char *kind_of(const CornuDevice *device)
{
    return cornu_device_profile(device)
               ? "emulated: times are measured on this machine, not on a TPU"
               : "native: times are measured";
}

static json_t *describe_run(const CornuReport *self, CornuModel *model, const char *weights)
{
    const CornuReportConfig *config = &self->config;
    const CornuDevice       *device = cornu_model_device(model);
    json_t                  *rows = json_array();
    if (config->command) rows = with_row(rows, "Command", json_string(config->command));
    rows = with_row(rows, "Started", json_string(self->started));
    if (config->data) rows = with_row(rows, "Data", json_string(config->data));
    rows = with_row(rows, "Seed", count_of((int64_t)cornu_model_seed(model)));
    rows = with_row(rows, "Device", json_string(cornu_device_description(device)));
    rows = with_row(rows, "Kind", json_string(kind_of(device)));
    rows = with_row(rows, "Threads", count_of(cornu_device_threads(device)));
    rows = with_row(rows, "Shards", count_of(cornu_device_shards(device)));
    rows = with_row(rows, "Processes",
                    count_of(cornu_process_count(cornu_device_processes(device))));
    rows = with_row(rows, "Policy", json_string(cornu_model_policy(model)->name));
    rows = with_row(rows, "Parameters", count_of(cornu_model_parameters(model)));
    rows = with_row(rows, "Cornu", json_string(CORNU_VERSION));
    if (weights) rows = with_row(rows, "SHA-256 of the weights", json_string(weights));
    return rows;
}

/* ---- Epochs ---- */

/* The optimizer's learning rate; NaN if a schedule computes it. */
static CornuStatus read_rate(const CornuModel *model, double *rate)
{
    static const char name[] = "/learning_rate";
    *rate = NAN;
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++) {
        CornuVariable *variable = cornu_model_optimizer_variable(model, i);
        const char    *path = cornu_variable_name(variable);
        const size_t   length = strlen(path);
        if (length >= sizeof name - 1 && !strcmp(path + length - (sizeof name - 1), name))
            return cornu_variable_get(variable, rate);
    }
    return CORNU_OK;
}

static json_t *describe_epoch(const CornuReport *self, const CornuHistory *history, int i)
{
    const double seconds = cornu_history_seconds(history, i);
    const double samples = (double)cornu_history_samples(history, i);
    const double waited = cornu_history_infeed(history, i).wait_seconds;
    json_t      *logs = json_object();
    for (int key = 0; key < cornu_history_key_count(history); key++) {
        const char *name = cornu_history_key(history, key);
        if (cornu_history_has(history, name, i))
            logs = cornu__json_with(logs, name, cornu__page_number(cornu_history_get(history, name,
                                                                                     i)));
    }
    if (logs && !json_object_get(logs, "learning_rate") && i < self->rate_space &&
        isfinite(self->rates[i]))
        logs = cornu__json_with(logs, "learning_rate", json_real(self->rates[i]));
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "epoch",
                     (json_int_t)cornu_history_epoch(history, i) + 1, "logs", logs, "seconds",
                     cornu__page_number(seconds), "samples_per_second",
                     cornu__page_number(samples / seconds), "wait_seconds",
                     cornu__page_number(waited));
}

static json_t *describe_epochs(const CornuReport *self, const CornuHistory *history)
{
    json_t *epochs = json_array();
    for (int i = 0; i < cornu_history_epochs(history); i++)
        epochs = cornu__json_append(epochs, describe_epoch(self, history, i));
    return epochs;
}

/* ---- The data of the page ---- */

static json_t *or_null(json_t *value)
{
    return value ? json_incref(value) : json_null();
}

CornuStatus cornu__report_data(const CornuReport *self, CornuModel *model, bool sums, json_t **data)
{
    char weights[CORNU__SHA256_TEXT];
    *data = NULL;
    if (sums) CORNU__TRY(hash_weights(model, weights));
    if (!cornu__output_writes()) return CORNU_OK;
    *data = json_pack(
        "{s:s, s:b, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o}",
        "title", self->config.title ? self->config.title : cornu_model_name(model),
        "ended", (int)self->ended, "planned", (json_int_t)self->base.params.epochs,
        "kind", cornu_device_profile(cornu_model_device(model)) ? "emulated" : "measured",
        "run", describe_run(self, model, sums ? weights : NULL), "epochs",
        describe_epochs(self, model->training->history), "model", cornu__report_model(model),
        "cost", cornu__report_cost(&self->cost, model, self->config.price_per_hour),
        "classes", or_null(self->classes), "filters", or_null(self->filters));
    return *data ? CORNU_OK
                 : cornu__fail(CORNU_ERR_MEMORY, "report: no memory for the page, or a name in it "
                               "is not UTF-8");
}

/* ---- As the training goes on ---- */

CornuStatus cornu__report_train_begin(CornuReport *self, const CornuModel *model)
{
    const time_t now = time(NULL);
    struct tm    parts;
    if (self->config.x.data) CORNU__TRY(cornu__report_check(model, &self->config));
    cornu__report_cost_begin(&self->cost);
    strftime(self->started, sizeof self->started, "%Y-%m-%d %H:%M:%S %z",
             localtime_r(&now, &parts));
    return CORNU_OK;
}

CornuStatus cornu__report_note_epoch(CornuReport *self, CornuModel *model)
{
    const int i = cornu_history_epochs(model->training->history) - 1;
    for (int before = self->rate_space; before <= i;) {   /* those of an earlier run are unknown */
        CORNU__TRY(cornu__reserve(&self->rates, &self->rate_space, before, 1,
                                  sizeof *self->rates));
        for (; before < self->rate_space; before++) self->rates[before] = NAN;
    }
    CORNU__TRY(read_rate(model, &self->rates[i]));
    return cornu__report_cost_epoch(&self->cost, model);
}

CornuStatus cornu__report_train_end(CornuReport *self, CornuModel *model)
{
    self->ended = true;
    cornu__report_cost_read(&self->cost);
    CORNU__TRY(cornu__report_filters(model, &self->filters));
    return self->config.x.data ? cornu__report_classes(model, &self->config, &self->classes)
                               : CORNU_OK;
}

/* ---- Memory ---- */

/* A copy, NULL of NULL. */
static const char *copy_text(const char *text, bool *failed)
{
    char *copy = text ? cornu__copy_text(text) : NULL;
    *failed |= text && !copy;
    return copy;
}

static bool copy_texts(CornuReport *self, const CornuReportConfig *config)
{
    bool failed = false;
    self->config.filename = copy_text(config->filename, &failed);
    self->config.title = copy_text(config->title, &failed);
    self->config.command = copy_text(config->command, &failed);
    self->config.data = copy_text(config->data, &failed);
    self->config.names = NULL;
    if (!config->names || config->classes < 1) return !failed;
    self->name = cornu__allocate((size_t)config->classes, sizeof *self->name);
    for (int i = 0; i < config->classes && self->name; i++)
        self->name[i] = copy_text(config->names[i], &failed);
    self->config.names = self->name;
    return !failed && self->name;
}

CornuStatus cornu__report_init(CornuReport *self, const char *who, const CornuReportConfig *config)
{
    *self = (CornuReport){ .base.runs_last = true };
    if (!config->x.data != !config->y.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .x and .y come together, got only %s", who,
                           config->x.data ? ".x" : ".y");
    if (!(config->price_per_hour >= 0.0 && isfinite(config->price_per_hour)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .price_per_hour is %g, expected 0 or more", who,
                           config->price_per_hour);
    self->config = *config;
    return copy_texts(self, config) ? CORNU_OK : CORNU_ERR_MEMORY;
}

void cornu__report_clear(CornuReport *self)
{
    cornu__release((void *)self->config.filename);
    cornu__release((void *)self->config.title);
    cornu__release((void *)self->config.command);
    cornu__release((void *)self->config.data);
    for (int i = 0; i < self->config.classes && self->name; i++)
        cornu__release((void *)self->name[i]);
    cornu__release(self->name);
    cornu__release(self->rates);
    json_decref(self->classes);
    json_decref(self->filters);
}

/* ---- The file ---- */

static CornuStatus write_page(CornuReport *self, CornuModel *model)
{
    json_t *data;
    CORNU__TRY(cornu__report_data(self, model, true, &data));
    if (!data) return CORNU_OK;
    return cornu__page_write(self->config.filename, (const char *const[]){ "graph.js", "report.js",
                                                                        NULL },
                             data);
}

static CornuStatus report_train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    CornuReport *self = (CornuReport *)base;
    (void)logs;
    CORNU__TRY(cornu__report_train_begin(self, model));
    if (cornu__output_writes()) cornu__log(CORNU_LOG_INFO, "writing %s", self->config.filename);
    return CORNU_OK;
}

static CornuStatus report_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                    const CornuLogs *logs)
{
    CornuReport *self = (CornuReport *)base;
    (void)epoch, (void)logs;
    CORNU__TRY(cornu__report_note_epoch(self, model));
    return write_page(self, model);
}

static CornuStatus report_train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    CornuReport *self = (CornuReport *)base;
    (void)logs;
    CORNU__TRY(cornu__report_train_end(self, model));
    return write_page(self, model);
}

static void free_report(CornuCallback *base)
{
    cornu__report_clear((CornuReport *)base);
    cornu__release(base);
}

CornuCallback *cornu_report_from(const CornuReportConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->filename)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "report: the filename is required");
    if (cornu_file_check(config->filename)) return cornu__null();
    CornuReport *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    if (cornu__report_init(self, "report", config)) {
        free_report(&self->base);
        return cornu__null();
    }
    self->base.train_begin = report_train_begin;
    self->base.epoch_end = report_epoch_end;
    self->base.train_end = report_train_end;
    self->base.free = free_report;
    return &self->base;
}
