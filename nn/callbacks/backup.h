/*
 * BackupAndRestore: lets a training that was stopped, in whatever way, go on from where it was.
 *
 *     cornu_fit(model, train, .epochs = 12,
 *               .callbacks = { cornu_backup_and_restore("out/backup") });
 *
 * The same program, started again, goes on with the last step that was kept, and ends with the same
 * bits as if it had never been stopped, on any number of threads. A backup holds the weights, the
 * optimizer's variables, of groups of shards each one's, what stateful layers remember, the states
 * of metrics, the history, the callbacks' numbers and the best weights of EarlyStopping, and the
 * place in the epochs and in the data; never a time, a host, a path or a number of threads, so that
 * equal states are equal files.
 *
 * A file is written under another name, synced and renamed, and has a checksum: one that was
 * damaged all the same is passed over for the one before. A state with numbers that are not finite
 * is not kept; fit looks at the loss before each backup.
 *
 * As in Keras the backups go when fit ends. A program that writes files afterwards would lose all
 * if it failed there; it keeps them until the last file is written:
 *
 *     cornu_fit(..., .callbacks = { cornu_backup_and_restore("backup", .keep_checkpoint = true) });
 *     cornu_model_save(model, "model.keras");
 *     cornu_backup_remove("backup");
 *
 * Started again before that, fit goes on from the last epoch's end and trains nothing. Only files
 * that are backups by name and content are ever removed, and the folder only if a backup made it
 * and nothing else is in it.
 *
 * Source: keras/src/callbacks/backup_and_restore.py. Keras goes on with the epoch's first step.
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
    const char *backup_dir;      /* required; made if it is not there. One training's alone */
    int64_t     save_freq;       /* batches: kept after every so many, too; default only at the
                                    end of each epoch */
    int64_t     keep;            /* the newest so many are kept; default 2 */
    bool        keep_checkpoint; /* else they are removed when fit ends; see above */
    const volatile sig_atomic_t *stop; /* what a handler of SIGINT sets, or NULL. When it is not 0
                                    fit ends after the step at hand, or the validation, with what
                                    it has kept and CORNU_ERR_INTERRUPTED */
    int         verbose;         /* 1: says from where it goes on */
    FILE       *file;            /* for verbose; default stdout */
} CornuBackupAndRestoreConfig;

/* Runs after the other callbacks. Fails at once where nothing can be written, and where another
 * process trains with the same folder. fit fails with CORNU_ERR_ARGUMENT, CORNU_ERR_SHAPE and their
 * like where a backup is of another model or training, with CORNU_ERR_FORMAT where there are
 * backups but all are damaged: then it is for the caller to remove them. */
CornuCallback *cornu_backup_and_restore_from(const CornuBackupAndRestoreConfig *config);
#define cornu_backup_and_restore(...) \
    cornu_backup_and_restore_from(&(CornuBackupAndRestoreConfig){ .unset = 0, __VA_ARGS__ })

/* Removes the backups of a training whose results are safe, and their folder as above. CORNU_OK
 * where there is none; CORNU_ERR_FILE where a file cannot be removed, or another process (or a
 * callback that still lives) trains with the folder. */
CornuStatus cornu_backup_remove(const char *backup_dir);

#ifdef __cplusplus
}
#endif
#endif
