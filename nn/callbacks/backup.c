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
#include <sys/stat.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/open.h"
#include "../../device/text/print.h"
#include "../../device/files/file_internal.h"
#include "../formats/output_internal.h"
#include "backup_file_internal.h"

#define FORMAT "backup-%06" PRId64 "-%08" PRId64 ".safetensors"

/* In a folder that a backup made; only such a folder is removed with the backups. */
static const char mark[] = ".cornu-backups";
static const char mark_text[] =
    "Cornu made this folder for backups of a training, and removes it with them.\n";

typedef struct {
    CornuCallback base;
    char         *folder;
    char         *settings;        /* of the training, once it has begun */
    int           descriptor;      /* of the folder, locked */
    int64_t       save_freq, keep;
    int64_t       saved_step;      /* in this epoch: the last one saved */
    bool          keep_checkpoint;
    bool          skipped;         /* the present state was not saved: it is not finite */
    const volatile sig_atomic_t *stop;
    bool          stopping;        /* a rank has been asked to, as all ranks know */
    FILE         *file;            /* NULL: no messages */
} Backup;

/* Of the ranks that train together rank 0 alone has the folder: it locks, lists, writes and
 * removes. The others come with it wherever it reads the model, and learn how it went. */
static bool has_folder(void) { return cornu__output_writes(); }

/* ---- The files: named after the steps that have run ---- */

typedef struct {
    int64_t epoch, step;
    bool    ours;      /* by its content, too; only such a file may be removed */
} Place;

typedef struct {
    Place *items;
    int    count, space;
} Places;

enum { NAME_SIZE = 80 };

static void print_name(char name[NAME_SIZE], Place place)
{
    snprintf(name, NAME_SIZE, FORMAT, place.epoch, place.step);
}

/* The path, for the caller to release; NULL without memory. */
static char *path_of(const Backup *self, Place place)
{
    char         name[NAME_SIZE];
    const size_t size = strlen(self->folder) + 1 + NAME_SIZE;
    char        *path = cornu__allocate(size, 1);
    print_name(name, place);
    if (path) snprintf(path, size, "%s/%s", self->folder, name);
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
    char again[NAME_SIZE];
    if (sscanf(name, "backup-%" SCNd64 "-%" SCNd64, &place->epoch, &place->step) != 2) return false;
    print_name(again, *place);
    return !strcmp(name, again);
}

/* Whether cornu__file_create may write a backup under this name: ".NAME.PID-N". */
static bool is_temporary(const char *name)
{
    char  of[NAME_SIZE], again[NAME_SIZE + 40];
    Place place;
    long  process;
    int   number;
    snprintf(of, sizeof of, "%s", name[0] == '.' ? name + 1 : "");
    char *suffix = strrchr(of, '.');
    if (!suffix || sscanf(suffix, ".%ld-%d", &process, &number) != 2) return false;
    *suffix = '\0';
    snprintf(again, sizeof again, ".%s.%ld-%d", of, process, number);
    return parse_name(of, &place) && !strcmp(name, again);
}

/* Reads the first bytes, up to `size`, of a regular file in the folder; -1 if it is none. */
static ssize_t read_head(const Backup *self, const char *name, char *head, size_t size)
{
    struct stat info;
    const int   flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int   file = openat(self->descriptor, name, flags);
    ssize_t     got = -1;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) got = read(file, head, size);
    if (file >= 0) close(file);
    return got;
}

/* Whether the file begins like a backup. One that was being written may be empty. */
static bool is_ours(const Backup *self, const char *name, bool may_be_empty)
{
    char          head[40];
    const ssize_t got = read_head(self, name, head, sizeof head);
    return (got == 0 && may_be_empty) || (got > 0 && cornu__backup_recognizes(head, (size_t)got));
}

/* Lists the backups in the folder, newest first; the caller releases *items. Removes what a killed
 * process was writing: under the lock nobody else writes here. */
static CornuStatus list(const Backup *self, Places *places)
{
    *places = (Places){ .count = 0 };
    DIR *folder = opendir(self->folder);
    if (!folder)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", self->folder,
                           strerror(errno));
    CornuStatus status = CORNU_OK;
    for (const struct dirent *entry; !status && (entry = readdir(folder));) {
        Place       place;
        const char *name = entry->d_name;
        if (is_temporary(name) && is_ours(self, name, true)) unlinkat(self->descriptor, name, 0);
        if (!parse_name(name, &place)) continue;
        place.ours = is_ours(self, name, false);
        status = cornu__reserve(&places->items, &places->space, places->count, 1,
                                sizeof *places->items);
        if (!status) places->items[places->count++] = place;
    }
    closedir(folder);
    if (places->count) qsort(places->items, (size_t)places->count, sizeof(Place), newest_first);
    return status;
}

/* Removes the first `end` backups but the newest `keep`; never a file that is a backup by name
 * only. */
static CornuStatus discard(const Backup *self, const Places *places, int64_t keep, int end)
{
    for (int i = 0; i < end; i++) {
        char name[NAME_SIZE];
        if (!places->items[i].ours || keep-- > 0) continue;
        print_name(name, places->items[i]);
        if (unlinkat(self->descriptor, name, 0) != 0 && errno != ENOENT)
            return cornu__fail(CORNU_ERR_FILE, "%s/%s: cannot be removed: %s", self->folder, name,
                               strerror(errno));
    }
    return CORNU_OK;
}

/* Removes the folder if a backup made it and nothing else is in it. A process that was killed while
 * it made the mark leaves an empty one. */
static void remove_folder(const Backup *self)
{
    char text[sizeof mark_text];
    int  entries = 0;
    DIR *folder = opendir(self->folder);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        entries += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    if (folder) closedir(folder);
    const ssize_t got = read_head(self, mark, text, sizeof text);
    const bool    whole = got == sizeof mark_text - 1 && !memcmp(text, mark_text, (size_t)got);
    if (entries != 1 || !(whole || got == 0)) return;
    unlinkat(self->descriptor, mark, 0);
    rmdir(self->folder);
}

static CornuStatus remove_all(const Backup *self)
{
    Places      places;
    CornuStatus status = list(self, &places);
    if (!status) status = discard(self, &places, 0, places.count);
    if (!status) remove_folder(self);
    cornu__release(places.items);
    return status;
}

/* ---- Messages ---- */

static void say(const Backup *self, CornuLogLevel level, const char *format, ...)
    CORNU__PRINTF(3, 4);

static void say(const Backup *self, CornuLogLevel level, const char *format, ...)
{
    char    text[CORNU_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat_shown(text, sizeof text, format, arguments);
    va_end(arguments);
    cornu__log(level, "%s", text);
    if (!self->file) return;
    fprintf(self->file, "%s\n", text);
    fflush(self->file);
}

/* ---- Saving ---- */

static CornuStatus discard_old(const Backup *self)
{
    Places      places;
    CornuStatus status = list(self, &places);
    if (!status) status = discard(self, &places, self->keep, places.count);
    cornu__release(places.items);
    return status;
}

static CornuStatus save(Backup *self, CornuModel *model)
{
    const Place place = { .epoch = model->training->epoch, .step = model->training->step };
    char       *path = path_of(self, place);
    CornuStatus status = path ? cornu__backup_write(model, self->settings, path)
                              : CORNU_ERR_MEMORY;
    cornu__release(path);
    self->saved_step = place.step;
    self->skipped = status == CORNU_ERR_VALUE;
    if (self->skipped) {
        say(self, CORNU_LOG_WARNING, "%s; this state is not backed up, earlier backups stay",
            cornu_error_message());
        return CORNU_OK;
    }
    if (!status && has_folder()) status = discard_old(self);
    return cornu__output_settle(cornu_model_device(model), "the backup", status);
}

static bool asked_to_stop(const Backup *self) { return self->stop && *self->stop; }

static bool is_interrupted(CornuCallback *base) { return asked_to_stop((const Backup *)base); }

/* Whether any rank has been asked to; all find it out at the same step. */
static CornuStatus find_stopping(Backup *self, const CornuModel *model)
{
    self->stopping = asked_to_stop(self);
    return self->stop ? cornu_processes_any(cornu_device_processes(cornu_model_device(model)),
                                            &self->stopping)
                      : CORNU_OK;
}

static CornuStatus fail_stopped(const Backup *self, const char *where)
{
    if (self->skipped)
        return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped %s, where the model's numbers are not "
                           "finite; earlier backups are in %s", where, self->folder);
    return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped %s; the backup is in %s: run the same "
                       "training again to resume", where, self->folder);
}

static bool is_due(const Backup *self, int64_t step)
{
    return self->save_freq > 0 && step - self->saved_step >= self->save_freq;
}

/* Makes fit check the loss before a state is saved. */
static bool wants_batch_logs(CornuCallback *base, int64_t batch)
{
    const Backup *self = (const Backup *)base;
    return is_due(self, batch + 1) || asked_to_stop(self);
}

static CornuStatus train_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    Backup              *self = (Backup *)base;
    const CornuTraining *training = model->training;
    CornuText            text;
    char                 where[120];
    (void)batch, (void)logs;
    CORNU__TRY(find_stopping(self, model));
    if (!is_due(self, training->step) && !self->stopping) return CORNU_OK;
    CORNU__TRY(save(self, model));
    if (!self->stopping) return CORNU_OK;
    snprintf(where, sizeof where, "after %lld%s steps in epoch %lld",
             (long long)training->step, cornu__of_steps(&text, training->loader),
             (long long)training->epoch + 1);
    return fail_stopped(self, where);
}

/* The position is already that of the next epoch. */
static CornuStatus backup_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                    const CornuLogs *logs)
{
    Backup *self = (Backup *)base;
    char    where[80];
    (void)logs;
    CORNU__TRY(save(self, model));
    CORNU__TRY(find_stopping(self, model));
    if (!self->stopping || epoch + 1 >= base->params.epochs || model->stop_training)
        return CORNU_OK;
    snprintf(where, sizeof where, "after epoch %lld of %lld", (long long)epoch + 1,
             (long long)base->params.epochs);
    return fail_stopped(self, where);
}

static CornuStatus train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    const Backup *self = (Backup *)base;
    (void)model, (void)logs;
    return self->keep_checkpoint || !has_folder() ? CORNU_OK : remove_all(self);
}

/* ---- Resuming ---- */

/* The newest backup that is not damaged, and its index; NULL without an error if there are none, as
 * for a rank without the folder. */
static CornuSafetensors *open_newest(const Backup *self, const Places *places, int *number)
{
    for (int i = 0; i < places->count; i++) {
        char             *path = path_of(self, places->items[i]);
        CornuSafetensors *file = path ? cornu__backup_open(path) : cornu__null();
        cornu__release(path);
        *number = i;
        if (file || cornu_error_status() == CORNU_ERR_MEMORY) return file;
        cornu_error_take();
        say(self, CORNU_LOG_WARNING, "%s; trying the previous backup", cornu_error_message());
    }
    if (places->count)
        cornu__fail_null(CORNU_ERR_FORMAT, "%s: none of its %d backups can be used; remove them to "
                         "start again. The oldest: %s", self->folder, places->count,
                         cornu_error_message());
    return NULL;
}

static CornuStatus resume(Backup *self, CornuModel *model, const Places *places,
                         const CornuSafetensors *file, int number)
{
    const CornuTraining *training = model->training;
    CornuText            text;
    char                *path = has_folder() ? path_of(self, places->items[number])
                                             : cornu__copy_text(self->folder);
    bool                 compared = true;
    CornuStatus          status = path ? cornu__backup_restore(model, file, self->settings,
                                                               &compared)
                                       : CORNU_ERR_MEMORY;
    if (status) cornu__fail_prefix(status, path ? path : self->folder);
    /* Damaged backups would be newer than the next ones. */
    if (!status) status = discard(self, places, 0, number);
    self->saved_step = training->step;
    if (!status && !compared)
        say(self, CORNU_LOG_WARNING, "%s does not record its data and settings, as it is of an "
            "earlier version; the present ones are assumed to be the same.", path);
    if (!status && training->epoch >= self->base.params.epochs)
        say(self, CORNU_LOG_INFO, "Resuming from %s: all %lld epochs are done.", path,
            (long long)self->base.params.epochs);
    else if (!status)
        say(self, CORNU_LOG_INFO, "Resuming from %s: epoch %lld, %lld%s steps are done.",
            path, (long long)training->epoch + 1, (long long)training->step,
            cornu__of_steps(&text, training->loader));
    cornu__release(path);
    return status;
}

static CornuStatus train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    Backup           *self = (Backup *)base;
    CornuSafetensors *file = NULL;
    Places            places = { .count = 0 };
    int               number = 0;
    (void)logs;
    CornuStatus status = has_folder() ? list(self, &places) : CORNU_OK;
    free(self->settings);
    self->settings = status ? NULL : cornu__settings_text(model);
    if (!status && !self->settings) status = cornu_error_status();
    if (!status) file = open_newest(self, &places, &number);
    if (!status) status = cornu_error_take();
    status = cornu__output_settle(cornu_model_device(model), "finding the backup", status);
    if (!status)
        status = cornu__backup_share(cornu_device_processes(cornu_model_device(model)), &file);
    if (!status && file) status = resume(self, model, &places, file, number);
    cornu_safetensors_close(file);
    cornu__release(places.items);
    return status;
}

/* ---- The callback ---- */

/* Makes the folder, and marks it as ours. */
static CornuStatus make_folder(const Backup *self)
{
    bool made;
    if (access(self->folder, F_OK) == 0) return CORNU_OK;
    CORNU__TRY(cornu__make_folders_above(self->folder));
    CORNU__TRY(cornu__make_folder(self->folder, &made));
    if (!made) return CORNU_OK;
    const size_t size = strlen(self->folder) + 1 + sizeof mark, bytes = sizeof mark_text - 1;
    char        *path = cornu__allocate(size, 1);
    if (!path) return CORNU_ERR_MEMORY;
    snprintf(path, size, "%s/%s", self->folder, mark);
    const int   file = cornu__open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    CornuStatus status = CORNU_OK;
    if (file < 0 || write(file, mark_text, bytes) != (ssize_t)bytes)
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    if (file >= 0) close(file);
    cornu__release(path);
    return status;
}

/* Locks the folder as long as the callback lives. */
static CornuStatus claim(Backup *self)
{
    self->descriptor = cornu__open(self->folder, O_RDONLY | O_DIRECTORY, 0);
    if (self->descriptor < 0 || faccessat(self->descriptor, ".", W_OK, 0) != 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", self->folder,
                           strerror(errno));
    if (flock(self->descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: used by another process; expected a folder for "
                       "this training alone", self->folder);
}

/* A copy without trailing slashes; the caller releases it. */
static char *copy_folder(const char *path)
{
    char *folder = cornu__copy_text(path);
    for (size_t n = folder ? strlen(folder) : 0; n > 1 && folder[n - 1] == '/'; n--)
        folder[n - 1] = '\0';
    return folder;
}

static void free_backup(CornuCallback *base)
{
    Backup *self = (Backup *)base;
    if (self->descriptor >= 0) close(self->descriptor);
    free(self->settings);
    cornu__release(self->folder);
    cornu__release(self);
}

CornuCallback *cornu_backup_and_restore_from(const CornuBackupAndRestoreConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->backup_dir || !*config->backup_dir)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "backup: .backup_dir is required");
    if (config->save_freq < 0 || config->keep < 0 || config->keep > INT32_MAX)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "backup: .save_freq is %lld and .keep %lld, "
                                "expected numbers of batches and files",
                                (long long)config->save_freq, (long long)config->keep);
    Backup *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Backup){
        .base = { .runs_last = true, .train_begin = train_begin,
                  .wants_batch_logs = wants_batch_logs, .interrupted = is_interrupted,
                  .train_batch_end = train_batch_end,
                  .epoch_end = backup_epoch_end,
                  .train_end = train_end, .free = free_backup },
        .folder = copy_folder(config->backup_dir), .descriptor = -1,
        .save_freq = config->save_freq, .keep = config->keep ? config->keep : 2,
        .keep_checkpoint = config->keep_checkpoint, .stop = config->stop,
        .file = !config->verbose || !has_folder() ? NULL : config->file ? config->file : stdout,
    };
    if (self->folder && (!has_folder() || (!make_folder(self) && !claim(self))))
        return &self->base;
    free_backup(&self->base);
    return cornu__null();
}

CornuStatus cornu_backup_remove(const char *backup_dir)
{
    if (!backup_dir || !*backup_dir)
        return cornu__fail(CORNU_ERR_ARGUMENT, "backup: no folder, expected its path");
    if (!has_folder() || (access(backup_dir, F_OK) != 0 && errno == ENOENT)) return CORNU_OK;
    Backup      self = { .folder = copy_folder(backup_dir), .descriptor = -1 };
    CornuStatus status = self.folder ? claim(&self) : CORNU_ERR_MEMORY;
    if (!status) status = remove_all(&self);
    if (self.descriptor >= 0) close(self.descriptor);
    cornu__release(self.folder);
    return status;
}
