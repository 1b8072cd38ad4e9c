#define _DEFAULT_SOURCE    /* flock */

#include "backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "../device/log_internal.h"
#include "file_internal.h"
#include "training_internal.h"

#define FORMAT "backup-%06" PRId64 "-%08" PRId64 ".safetensors"

typedef struct {
    CornuCallback base;
    char         *folder;
    int           descriptor;      /* of the folder, locked */
    int64_t       save_freq, keep;
    int64_t       kept_step;       /* of this epoch: what was kept last */
    bool          keep_checkpoint;
    const volatile sig_atomic_t *stop;
    FILE         *file;            /* NULL: nothing is said */
} Backup;

/* ---- The files: named after the steps that have run ---- */

typedef struct {
    int64_t epoch, step;
} Place;

typedef struct {
    Place *items;
    int    count, space;
} Places;

/* The file's path, to be released; NULL without memory. */
static char *path_of(const Backup *self, Place place)
{
    const size_t size = strlen(self->folder) + 80;
    char        *path = cornu__allocate(size, 1);
    if (path) snprintf(path, size, "%s/" FORMAT, self->folder, place.epoch, place.step);
    return path;
}

static int newest_first(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    if (x->epoch != y->epoch) return x->epoch > y->epoch ? -1 : 1;
    return (x->step < y->step) - (x->step > y->step);
}

static bool parse_name(const char *name, Place *place)
{
    char again[80];
    if (sscanf(name, "backup-%" SCNd64 "-%" SCNd64, &place->epoch, &place->step) != 2) return false;
    snprintf(again, sizeof again, FORMAT, place->epoch, place->step);
    return !strcmp(name, again);
}

/* Lists the backups in the folder, newest first; *items are to be released. Files that a process
 * was writing when it was killed are removed: with the lock nobody else writes here. */
static CornuStatus list(const Backup *self, Places *places)
{
    *places = (Places){ .count = 0 };
    DIR *folder = opendir(self->folder);
    if (!folder)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", self->folder,
                           strerror(errno));
    CornuStatus status = CORNU_OK;
    for (const struct dirent *entry; !status && (entry = readdir(folder));) {
        Place place;
        if (!strncmp(entry->d_name, ".backup-", 8)) unlinkat(self->descriptor, entry->d_name, 0);
        if (!parse_name(entry->d_name, &place)) continue;
        status = cornu__reserve(&places->items, &places->space, places->count, 1,
                                sizeof *places->items);
        if (!status) places->items[places->count++] = place;
    }
    closedir(folder);
    if (places->count) qsort(places->items, (size_t)places->count, sizeof(Place), newest_first);
    return status;
}

/* Removes those from number `first` to before `end`. */
static CornuStatus discard(const Backup *self, const Places *places, int first, int end)
{
    for (int i = first; i < end; i++) {
        char       *path = path_of(self, places->items[i]);
        CornuStatus status = path ? CORNU_OK : CORNU_ERR_MEMORY;
        if (path && unlink(path) != 0 && errno != ENOENT)
            status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be removed: %s", path,
                                 strerror(errno));
        cornu__release(path);
        CORNU__TRY(status);
    }
    return CORNU_OK;
}

/* ---- Keeping ---- */

static CornuStatus save(Backup *self, CornuModel *model)
{
    const Place place = { model->training->epoch, model->training->step };
    Places      places = { .count = 0 };
    char       *path = path_of(self, place);
    CornuStatus status = path ? cornu__training_write(model, path) : CORNU_ERR_MEMORY;
    if (!status) status = list(self, &places);
    if (!status && places.count > self->keep)
        status = discard(self, &places, (int)self->keep, places.count);
    self->kept_step = place.step;
    cornu__release(places.items);
    cornu__release(path);
    return status;
}

static bool asked_to_stop(const Backup *self) { return self->stop && *self->stop; }

static CornuStatus train_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    Backup              *self = (Backup *)base;
    const CornuTraining *training = model->training;
    (void)batch, (void)logs;
    const bool due = self->save_freq > 0 && training->step - self->kept_step >= self->save_freq;
    if (!due && !asked_to_stop(self)) return CORNU_OK;
    CORNU__TRY(save(self, model));
    if (!asked_to_stop(self)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped after %lld of %lld steps in epoch %lld; "
                       "what was trained is kept in %s, from where the same training goes on",
                       (long long)training->step, (long long)training->source->steps,
                       (long long)training->epoch + 1, self->folder);
}

/* The place is already that of the next epoch. */
static CornuStatus epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                             const CornuLogs *logs)
{
    Backup *self = (Backup *)base;
    (void)logs;
    CORNU__TRY(save(self, model));
    if (!asked_to_stop(self) || epoch + 1 >= base->params.epochs || model->stop_training)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped after epoch %lld of %lld; what was trained "
                       "is kept in %s, from where the same training goes on",
                       (long long)epoch + 1, (long long)base->params.epochs, self->folder);
}

static CornuStatus train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    Backup *self = (Backup *)base;
    Places  places;
    (void)model, (void)logs;
    if (self->keep_checkpoint) return CORNU_OK;
    CornuStatus status = list(self, &places);
    if (!status) status = discard(self, &places, 0, places.count);
    if (!status) rmdir(self->folder);   /* where other files are too it stays */
    cornu__release(places.items);
    return status;
}

/* ---- Going on ---- */

static void say(const Backup *self, CornuLogLevel level, const char *format, ...)
    CORNU__PRINTF(3, 4);

static void say(const Backup *self, CornuLogLevel level, const char *format, ...)
{
    char    text[2000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cornu__log(level, "%s", text);
    if (!self->file) return;
    fprintf(self->file, "%s\n", text);
    fflush(self->file);
}

/* The newest one that is not damaged, and its number; NULL without a failure if there is none at
 * all. */
static CornuSafetensors *open_newest(const Backup *self, const Places *places, int *number)
{
    for (int i = 0; i < places->count; i++) {
        char             *path = path_of(self, places->items[i]);
        CornuSafetensors *file = path ? cornu__training_open(path) : cornu__null();
        cornu__release(path);
        *number = i;
        if (file || cornu_error_status() == CORNU_ERR_MEMORY) return file;
        cornu_error_take();
        say(self, CORNU_LOG_WARNING, "%s; the backup before is tried", cornu_error_message());
    }
    if (places->count)
        cornu__fail_null(CORNU_ERR_FORMAT, "%s: none of its %d backups can be used; remove them to "
                         "begin anew. The oldest: %s", self->folder, places->count,
                         cornu_error_message());
    return NULL;
}

static CornuStatus go_on(Backup *self, CornuModel *model, const Places *places,
                         const CornuSafetensors *file, int number)
{
    const CornuTraining *training = model->training;
    char                *path = path_of(self, places->items[number]);
    CornuStatus          status = path ? cornu__training_restore(model, file) : CORNU_ERR_MEMORY;
    if (status) cornu__fail_prefix(status, path ? path : self->folder);
    /* Damaged ones would be newer than those that are to come. */
    if (!status) status = discard(self, places, 0, number);
    self->kept_step = training->step;
    if (!status)
        say(self, CORNU_LOG_INFO, "Going on from %s: epoch %lld, %lld of %lld steps are done.",
            path, (long long)training->epoch + 1, (long long)training->step,
            (long long)training->source->steps);
    cornu__release(path);
    return status;
}

static CornuStatus train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    Backup           *self = (Backup *)base;
    CornuSafetensors *file = NULL;
    Places            places;
    int               number = 0;
    (void)logs;
    CornuStatus status = list(self, &places);
    if (!status) file = open_newest(self, &places, &number);
    if (!status) status = cornu_error_take();
    if (!status && file) status = go_on(self, model, &places, file, number);
    cornu_safetensors_close(file);
    cornu__release(places.items);
    return status;
}

/* ---- The callback ---- */

/* Makes the folder, and claims it for as long as the callback lives. */
static CornuStatus claim(Backup *self)
{
    const size_t size = strlen(self->folder) + 2;
    char        *inside = cornu__allocate(size, 1);
    if (!inside) return CORNU_ERR_MEMORY;
    snprintf(inside, size, "%s/", self->folder);
    CornuStatus status = cornu__file_folders(inside);
    cornu__release(inside);
    CORNU__TRY(status);
    self->descriptor = open(self->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->descriptor < 0 || faccessat(self->descriptor, ".", W_OK, 0) != 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", self->folder,
                           strerror(errno));
    if (flock(self->descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: another process trains with it; expected a folder of "
                       "this training's own", self->folder);
}

static void free_backup(CornuCallback *base)
{
    Backup *self = (Backup *)base;
    if (self->descriptor >= 0) close(self->descriptor);
    cornu__release(self->folder);
    cornu__release(self);
}

CornuCallback *cornu_backup_and_restore_from(const CornuBackupAndRestoreConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->backup_dir || !*config->backup_dir)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "backup: .backup_dir is not given");
    if (config->save_freq < 0 || config->keep < 0 || config->keep > INT32_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "backup: .save_freq is %lld and .keep %lld, "
                                "expected numbers of batches and files",
                                (long long)config->save_freq, (long long)config->keep);
    Backup *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Backup){
        .base = { .runs_last = true, .train_begin = train_begin,
                  .train_batch_end = train_batch_end, .epoch_end = epoch_end,
                  .train_end = train_end, .free = free_backup },
        .folder = cornu__copy_text(config->backup_dir), .descriptor = -1,
        .save_freq = config->save_freq, .keep = config->keep ? config->keep : 2,
        .keep_checkpoint = config->keep_checkpoint, .stop = config->stop,
        .file = !config->verbose ? NULL : config->file ? config->file : stdout,
    };
    if (self->folder && !claim(self)) return &self->base;
    free_backup(&self->base);
    return cornu__null();
}
