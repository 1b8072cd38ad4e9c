#include "checkpoint_internal.h"

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/text/print.h"
#include "../formats/decimal_internal.h"
#include "../../device/files/file_internal.h"
#include "../formats/output_internal.h"
#include "../saving/files_internal.h"
#include "monitor_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- The path ---- */

typedef struct {
    char  text[4096];
    size_t size;
    bool   overflow;
} Path;

static void append_path(Path *path, const char *format, ...) CORNU__PRINTF(2, 3);

static void append_path(Path *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = cornu__vformat(path->text + path->size, sizeof path->text - path->size, format,
                                arguments);
    va_end(arguments);
    path->size += (size_t)length;
    if (path->size >= sizeof path->text) {
        path->overflow = true;
        path->size = sizeof path->text - 1;
    }
}

/* What follows the colon: [0][width][.precision][type]. */
typedef struct {
    bool zeros;
    int  width, precision;      /* precision -1: unset */
    char type;                  /* 0: unset */
} Format;

/* Parses the number at *text and advances past it; -1 if there is none, or one above 99. */
static int parse_digits(const char **text)
{
    const size_t digits = strspn(*text, "0123456789");
    const int number = digits > 0 && digits <= 2 ? atoi(*text) : -1;
    *text += digits;
    return number;
}

static bool parse_format(const char *text, Format *format)
{
    *format = (Format){ .zeros = *text == '0', .precision = -1 };
    if (*text >= '0' && *text <= '9' && (format->width = parse_digits(&text)) < 0) return false;
    if (*text == '.') {
        text++;
        if ((format->precision = parse_digits(&text)) < 0) return false;
    }
    if (*text && strchr("defg", *text)) format->type = *text++;
    return *text == '\0';
}

static bool append_value(Path *path, double value, bool whole, Format format)
{
    char type = format.type ? format.type : whole && format.precision < 0 ? 'd' : 'g';
    if (type == 'd' && (!whole || format.precision >= 0)) return false;
    if (!format.type && !whole && format.width == 0 && format.precision < 0) {
        CornuDecimal decimal;
        append_path(path, "%s", cornu__decimal(&decimal, value));
        return true;
    }
    const int precision = format.precision >= 0 ? format.precision : 6;
    const int width = format.width;
    switch (type) {
    case 'd': append_path(path, format.zeros ? "%0*lld" : "%*lld", width, (long long)value); break;
    case 'e': append_path(path, format.zeros ? "%0*.*e" : "%*.*e", width, precision, value); break;
    case 'f': append_path(path, format.zeros ? "%0*.*f" : "%*.*f", width, precision, value); break;
    default:  append_path(path, format.zeros ? "%0*.*g" : "%*.*g", width, precision, value); break;
    }
    return true;
}

static CornuStatus unknown_name(const char *filepath, const char *name, const CornuLogs *logs)
{
    char known[400] = "epoch";
    for (int i = 0; logs && i < logs->count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, ", %s", logs->logs[i].name);
    }
    return cornu__fail(CORNU_ERR_ARGUMENT, "checkpoint path \"%s\": no log \"%s\", expected "
                       "one of %s", filepath, name, known);
}

/* One {NAME} or {NAME:FORMAT}, without its braces. */
static CornuStatus append_field(Path *path, const char *filepath, char *field, int64_t epoch,
                                int64_t batch, const CornuLogs *logs)
{
    Format format = { .precision = -1 };
    char  *colon = strchr(field, ':');
    if (colon) *colon++ = '\0';
    if (colon && !parse_format(colon, &format))
        return cornu__fail(CORNU_ERR_ARGUMENT, "checkpoint path \"%s\": the format of %s is "
                           "\"%s\", expected one like 02d or .4f", filepath, field, colon);

    const bool is_epoch = strcmp(field, "epoch") == 0;
    double value = (double)epoch + 1;
    bool   whole = is_epoch;
    if (!is_epoch && !(logs && cornu_logs_find(logs, field, &value))) {
        if (batch < 0 || strcmp(field, "batch") != 0) return unknown_name(filepath, field, logs);
        value = (double)batch + 1;
        whole = true;
    }
    if (append_value(path, value, whole, format)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "checkpoint path \"%s\": %s cannot be shown by the "
                       "format \"%s\"", filepath, field, colon);
}

CornuStatus cornu__fill_path(const char *filepath, int64_t epoch, int64_t batch,
                             const CornuLogs *logs, char **filled)
{
    Path path = { .size = 0 };
    for (const char *c = filepath; *c; c++) {
        if ((*c == '{' || *c == '}') && c[1] == *c) {          /* {{ and }} */
            append_path(&path, "%c", *c++);
        } else if (*c == '{') {
            char field[100];
            const size_t length = strcspn(c + 1, "}");
            if (c[1 + length] != '}' || length >= sizeof field)
                return cornu__fail(CORNU_ERR_ARGUMENT, "checkpoint path \"%s\": a { is not closed",
                                   filepath);
            memcpy(field, c + 1, length);
            field[length] = '\0';
            CORNU__TRY(append_field(&path, filepath, field, epoch, batch, logs));
            c += length + 1;
        } else {
            append_path(&path, "%c", *c);
        }
    }
    if (path.overflow)
        return cornu__fail(CORNU_ERR_ARGUMENT, "checkpoint path \"%.100s...\" is too long",
                           filepath);
    *filled = cornu__copy_text(path.text);
    return *filled ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- The callback ---- */

typedef struct {
    CornuCallback    base;
    CornuSave       *save;
    char            *filepath;
    CornuMonitor     monitor;
    FILE            *file;
    bool             verbose, best_only, weights_only, warned;
    int64_t          save_freq, epoch;
    struct { CornuBest best; double unsaved_batches, last_batch; } saved;
} Checkpoint;

static double *state(CornuCallback *base, int *count)
{
    Checkpoint *self = (Checkpoint *)base;
    *count = (int)(sizeof self->saved / sizeof(double));
    return &self->saved.best.known;
}

static void say(const Checkpoint *self, const char *format, ...) CORNU__PRINTF(2, 3);

static void say(const Checkpoint *self, const char *format, ...)
{
    if (!self->verbose) return;
    char    text[CORNU_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat_shown(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(self->file, "\nEpoch %lld: %s\n", (long long)self->epoch + 1, text);
    fflush(self->file);
}

/* Without the log to choose the best model by: what other epochs have is waited for, so that the
 * best model stays; what none has is missed, as in Keras, and every model saved. */
static void decide_without(Checkpoint *self, const CornuLogs *logs, const char *path, bool *wanted)
{
    const char *name = self->monitor.name;
    *wanted = self->save_freq > 0 || !logs ||   /* batches have no logs of validation */
              !cornu__monitor_may_come(&self->monitor, &self->base.params, logs);
    if (!self->warned)
        cornu__log(CORNU_LOG_WARNING, *wanted
                   ? "checkpoint: there is no log \"%s\" to choose the best model by, so every one "
                     "is saved"
                   : "checkpoint: an epoch without \"%s\", by which the best model is chosen, is "
                     "not saved", name);
    self->warned = true;
    if (*wanted) say(self, "there is no %s to choose the best model by, saving model to %s", name,
                     path);
    else say(self, "there is no %s, not saving", name);
}

/* Decides whether to save, and prints why. */
static CornuStatus decide(Checkpoint *self, const CornuModel *model, const CornuLogs *logs,
                          const char *path, bool *wanted)
{
    double current = 0.0;
    *wanted = true;
    if (!self->best_only) {
        say(self, "saving model to %s", path);
        return CORNU_OK;
    }
    CornuMonitor *monitor = &self->monitor;
    if (!logs || !cornu_logs_find(logs, monitor->name, &current)) {
        decide_without(self, logs, path, wanted);
        return CORNU_OK;
    }
    CORNU__TRY(cornu__monitor_find_mode(monitor, model));

    char best[40] = "None";
    if (monitor->best->known != 0.0)
        cornu__format(best, sizeof best, "%.5f", monitor->best->value);
    *wanted = cornu__monitor_takes(monitor, current);
    if (*wanted)
        say(self, "%s improved from %s to %.5f, saving model to %s", monitor->name, best,
            current, path);
    else
        say(self, "%s did not improve from %s", monitor->name, best);
    return CORNU_OK;
}

static CornuStatus save(Checkpoint *self, CornuModel *model, int64_t batch, const CornuLogs *logs)
{
    char *path;
    bool  wanted;
    CORNU__TRY(cornu__fill_path(self->filepath, self->epoch, batch, logs, &path));
    CornuStatus status = decide(self, model, logs, path, &wanted);
    if (status == CORNU_OK && wanted) {
        status = cornu__output_folders_above(path);
        if (status == CORNU_OK) status = self->save(model, path, self->weights_only);
        if (status == CORNU_OK) say(self, "finished saving model to %s", path);
    }
    cornu__release(path);
    return status;
}

static CornuStatus epoch_begin(CornuCallback *base, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    Checkpoint *self = (Checkpoint *)base;
    (void)model, (void)logs;
    self->epoch = epoch;
    return CORNU_OK;
}

static CornuStatus checkpoint_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                        const CornuLogs *logs)
{
    Checkpoint *self = (Checkpoint *)base;
    (void)epoch;
    self->saved.last_batch = -1.0;
    return self->save_freq > 0 ? CORNU_OK : save(self, model, -1, logs);
}

/* Several batches may end at once (steps_per_execution). */
static bool is_due(const Checkpoint *self, int64_t batch)
{
    const double unsaved = self->saved.unsaved_batches + (double)batch - self->saved.last_batch;
    return self->save_freq > 0 && unsaved >= (double)self->save_freq;
}

static bool wants_batch_logs(CornuCallback *base, int64_t batch)
{
    return is_due((Checkpoint *)base, batch);
}

static CornuStatus train_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    Checkpoint *self = (Checkpoint *)base;
    const bool due = is_due(self, batch);
    self->saved.unsaved_batches += (double)batch - self->saved.last_batch;
    if (due) self->saved.unsaved_batches = 0.0;
    self->saved.last_batch = (double)batch;
    return due ? save(self, model, batch, logs) : CORNU_OK;
}

static void free_checkpoint(CornuCallback *base)
{
    Checkpoint *self = (Checkpoint *)base;
    cornu__release(self->filepath);
    cornu__release(self->monitor.name);
    cornu__release(self);
}

CornuCallback *cornu__checkpoint_create(const CornuModelCheckpointConfig *config, CornuSave *save)
{
    if (cornu__refused()) return NULL;
    if (!config->filepath)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "checkpoint: filepath is required");
    if (config->save_freq < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "checkpoint: save_freq is %lld, expected a "
                                "number of batches", (long long)config->save_freq);
    if (cornu__check_save_path(config->filepath, config->save_weights_only) != CORNU_OK)
        return cornu__null();

    Checkpoint *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Checkpoint){
        .base = { .wants_batch_logs = config->save_freq > 0 ? wants_batch_logs : NULL,
                  .epoch_begin = epoch_begin, .epoch_end = checkpoint_epoch_end,
                  .train_batch_end = train_batch_end, .state = state, .free = free_checkpoint },
        .save = save,
        .filepath = cornu__copy_text(config->filepath),
        .monitor = { .who = "checkpoint", .mode = config->mode, .best = &self->saved.best },
        .file = config->file ? config->file : stdout,
        .verbose = config->verbose > 0 && cornu__output_writes(),
        .best_only = config->save_best_only,
        .weights_only = config->save_weights_only,
        .save_freq = config->save_freq,
        .saved = { .best = { config->has_initial_value, config->initial_value_threshold },
                  .last_batch = -1.0 },
    };
    if (self->filepath && !cornu__monitor_open(&self->monitor, config->monitor))
        return &self->base;
    free_checkpoint(&self->base);
    return cornu__null();
}

static CornuStatus save_model(CornuModel *model, const char *path, bool weights_only)
{
    return weights_only ? cornu_model_save_weights(model, path) : cornu_model_save(model, path);
}

CornuCallback *cornu_model_checkpoint_from(const CornuModelCheckpointConfig *config)
{
    return cornu__checkpoint_create(config, save_model);
}
