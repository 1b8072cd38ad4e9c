/* Sources: keras/src/callbacks/csv_logger.py; Python, Modules/_csv.c, for the quotes. */
#include "callbacks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../formats/decimal_internal.h"
#include "../formats/output_internal.h"

typedef struct {
    CornuCallback base;
    char         *filename;
    char          separator;
    bool          append;
    bool          headed;             /* the file already has a header */
    FILE         *file;
    char        **keys;               /* of the first epoch; NULL before */
    int           key_count;
} CsvLogger;

static CornuStatus fail(const CsvLogger *self)
{
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", self->filename,
                       cornu__open_error(errno));
}

static CornuStatus train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    CsvLogger *self = (CsvLogger *)base;
    (void)model, (void)logs;
    const int flags = O_WRONLY | O_CREAT | (self->append ? O_APPEND : O_TRUNC);
    const int file = cornu__output_open(self->filename, flags, 0666);
    self->file = file < 0 ? NULL : fdopen(file, self->append ? "ab" : "wb");
    if (!self->file && file >= 0) close(file);
    if (!self->file) return fail(self);
    if (cornu__output_writes()) cornu__log(CORNU_LOG_INFO, "writing %s", self->filename);
    fseek(self->file, 0, SEEK_END);
    self->headed = ftell(self->file) > 0;
    return CORNU_OK;
}

/* Writes a field, quoted if necessary. */
static void write_field(const CsvLogger *self, const char *text)
{
    if (!strchr(text, self->separator) && !strpbrk(text, "\"\r\n")) {
        fputs(text, self->file);
        return;
    }
    fputc('"', self->file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', self->file);
        fputc(*text, self->file);
    }
    fputc('"', self->file);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static CornuStatus add_key(CsvLogger *self, const char *prefix, const char *name)
{
    const size_t size = strlen(prefix) + strlen(name) + 1;
    char        *key = cornu__allocate(size, 1);
    if (!key) return CORNU_ERR_MEMORY;
    snprintf(key, size, "%s%s", prefix, name);
    self->keys[self->key_count++] = key;
    return CORNU_OK;
}

static CornuStatus choose_keys(CsvLogger *self, const CornuLogs *logs)
{
    bool validated = false;
    self->keys = cornu__allocate(2 * (size_t)logs->count, sizeof *self->keys);
    if (!self->keys) return CORNU_ERR_MEMORY;
    for (int i = 0; i < logs->count; i++) {
        CORNU__TRY(add_key(self, "", logs->logs[i].name));
        validated |= strncmp(logs->logs[i].name, "val_", 4) == 0;
    }
    qsort(self->keys, (size_t)self->key_count, sizeof *self->keys, by_name);
    for (int i = 0; i < logs->count && !validated; i++)
        CORNU__TRY(add_key(self, "val_", self->keys[i]));
    return CORNU_OK;
}

static void write_header(const CsvLogger *self)
{
    write_field(self, "epoch");
    for (int i = 0; i < self->key_count; i++) {
        fputc(self->separator, self->file);
        write_field(self, self->keys[i]);
    }
    fputs("\r\n", self->file);
}

static CornuStatus csv_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                 const CornuLogs *logs)
{
    CsvLogger *self = (CsvLogger *)base;
    (void)model;
    if (!self->keys) {
        CORNU__TRY(choose_keys(self, logs));
        if (!self->headed) write_header(self);
    }
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)epoch);
    write_field(self, number);
    for (int i = 0; i < self->key_count; i++) {
        double       value;
        CornuDecimal decimal;
        const bool   there = cornu_logs_find(logs, self->keys[i], &value);
        fputc(self->separator, self->file);
        write_field(self, there ? cornu__decimal(&decimal, value) : "NA");
    }
    fputs("\r\n", self->file);
    return fflush(self->file) || ferror(self->file) ? fail(self) : CORNU_OK;
}

static CornuStatus train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    CsvLogger *self = (CsvLogger *)base;
    FILE      *file = self->file;
    (void)model, (void)logs;
    self->file = NULL;
    return fclose(file) ? fail(self) : CORNU_OK;
}

static void free_csv_logger(CornuCallback *base)
{
    CsvLogger *self = (CsvLogger *)base;
    if (self->file) fclose(self->file);
    for (int i = 0; i < self->key_count; i++) cornu__release(self->keys[i]);
    cornu__release(self->keys);
    cornu__release(self->filename);
    cornu__release(self);
}

CornuCallback *cornu_csv_logger_from(const CornuCsvLoggerConfig *config)
{
    if (cornu__refused()) return NULL;
    const char *separator = config->separator ? config->separator : ",";
    if (!config->filename)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "CSV logger: the filename is required");
    if (strlen(separator) != 1 || strchr("\"\r\n", *separator))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "CSV logger: .separator is \"%s\", expected "
                                "one character other than a quote", separator);
    CsvLogger *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (CsvLogger){ .base = { .train_begin = train_begin, .epoch_end = csv_epoch_end,
                                   .train_end = train_end, .free = free_csv_logger },
                         .filename = cornu__copy_text(config->filename), .separator = *separator,
                         .append = config->append };
    if (self->filename) return &self->base;
    free_csv_logger(&self->base);
    return cornu__null();
}
