/*
 * Files that appear whole or not at all: written under a temporary name in the target's
 * folder, synced, renamed over the target. A target that is no regular file (/dev/stdout, a
 * pipe) is written directly, never replaced; a symbolic link is followed.
 *
 *     CornuNewFile file;
 *     CORNU__TRY(cornu__file_create(&file, path));
 *     fputs("…", file.stream);
 *     return cornu__file_commit(&file);      or cornu__file_abandon(&file) after a failure
 *
 * Write errors need no checks on the way: commit finds them.
 */
#ifndef CORNU_NN_FILE_INTERNAL_H
#define CORNU_NN_FILE_INTERNAL_H

#include "../device/status_internal.h"
#include "file.h"

#include <stdio.h>

typedef struct {
    FILE *stream;
    char *path;          /* as the caller wrote it, for messages */
    char *target;        /* where symbolic links lead */
    char *temporary;     /* NULL: the target itself is open */
} CornuNewFile;

/* Makes the folders above a file that are not there. */
CornuStatus cornu__file_folders(const char *path);

CornuStatus cornu__file_create(CornuNewFile *file, const char *path);
CornuStatus cornu__file_commit(CornuNewFile *file);
void        cornu__file_abandon(CornuNewFile *file);

#endif
