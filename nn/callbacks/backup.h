/*
 * BackupAndRestore: resumes a training that was stopped, in whatever way, where it stopped.
 *
 *     cornu_fit(model, train, .epochs = 12,
 *               .callbacks = { cornu_backup_and_restore("out/backup") });
 *
 * The same program, started again, resumes at the last step saved and ends with the same bits as if
 * it had never been stopped, on any number of threads. A backup holds the weights, the optimizer's
 * variables (of groups of shards: each group's), the states of layers and metrics, the history, the
 * callbacks' numbers and the best weights of EarlyStopping, and the position in the epochs and in
 * the data; never a time, a host, a path or a number of threads or processes, so that equal states
 * are equal files.
 *
 * Of several processes (device/processes) rank 0 alone has the folder, which the others need not
 * see: it writes what all of them gather, and hands them what it resumes from. Any number of them
 * may resume. A signal to any of them stops all after the same step. A training over a mesh
 * (device/mesh) may resume over another mesh, or without, and then ends with the same numbers but
 * for what other orders of sums make of them.
 *
 * A file is written under another name, synced and renamed, and has a checksum: a file damaged
 * nevertheless is skipped in favour of the previous one. A state with numbers that are not finite
 * is not saved; fit checks the loss before each backup.
 *
 * As in Keras the backups are removed when fit ends. A program that writes files afterwards would
 * lose everything if it failed there; it keeps the backups until the last file is written:
 *
 *     cornu_fit(..., .callbacks = { cornu_backup_and_restore("backup", .keep_checkpoint = true) });
 *     cornu_model_save(model, "model.keras");
 *     cornu_backup_remove("backup");
 *
 * Started again before that, fit resumes after the last epoch and trains nothing. Only files that
 * are backups by name and content are ever removed, and the folder only if a backup made it and
 * nothing else is in it.
 *
 * Source: keras/src/callbacks/backup_and_restore.py. Keras resumes at the epoch's first step.
 */
#ifndef CORNU_NN_BACKUP_H
#define CORNU_NN_BACKUP_H

#include "../model/callback.h"

#include <signal.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char        unset;
    const char *backup_dir;      /* required; made if absent; for one training alone */
    int64_t     save_freq;       /* batches between backups; default: only at the end of
                                    each epoch */
    int64_t     keep;            /* the number of backups to keep; default 2 */
    bool        keep_checkpoint; /* keep the backups when fit ends; see above */
    const volatile sig_atomic_t *stop; /* set by a handler of SIGINT; or NULL, then on all ranks.
                                          When it is not 0, on one of them, fit ends after the
                                          present step or validation, with a backup and
                                          CORNU_ERR_INTERRUPTED */
    int         verbose;         /* 1: prints where it resumes */
    FILE       *file;            /* for verbose; default stdout */
} CornuBackupAndRestoreConfig;

/* Runs after the other callbacks. Fails at once if nothing can be written, or if another process
 * uses the folder. fit fails with CORNU_ERR_ARGUMENT, CORNU_ERR_SHAPE and the like if a backup is
 * of another model or training, and with CORNU_ERR_FORMAT if all backups are damaged: then the
 * caller has to remove them. */
CornuCallback *cornu_backup_and_restore_from(const CornuBackupAndRestoreConfig *config);
#define cornu_backup_and_restore(...) \
    cornu_backup_and_restore_from(&(CornuBackupAndRestoreConfig){ .unset = 0, __VA_ARGS__ })

/* Removes the backups of a training whose results are safe, and their folder as above. CORNU_OK if
 * there is none; CORNU_ERR_FILE if a file cannot be removed, or if another process (or a callback
 * not freed yet) uses the folder. Meets no other process; on other ranks than 0 it does nothing. */
CornuStatus cornu_backup_remove(const char *backup_dir);

#ifdef __cplusplus
}
#endif
#endif
