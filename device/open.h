/*
 * Opening files. What is opened never has descriptor 0, 1 or 2, even in a process in which these
 * are closed: what anyone prints or logs would go into the file. Opening never waits for the other
 * end of a pipe.
 */
#ifndef CORNU_DEVICE_OPEN_H
#define CORNU_DEVICE_OPEN_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "status_internal.h"

/* As open, closed on exec. -1 with errno, ENXIO where a pipe to be written has no reader. */
int cornu__open(const char *path, int flags, mode_t mode);

/* The same file under a descriptor above 2, for one that was just made; -1 with errno and closed if
 * there is none. */
int cornu__above_standard(int descriptor);

/* Opens a regular file to be read. CORNU_ERR_FILE, naming it, if it cannot be, or is none. */
CornuStatus cornu__open_to_read(const char *path, FILE **file);

/* What it is instead, for messages: "folder", "pipe", "device", "socket". */
const char *cornu__file_kind(mode_t mode);

/* Why a file could not be opened: as strerror. */
const char *cornu__open_error(int error);

/* Makes a folder unless it is there, and syncs the one it is in, so that what will be in it
 * survives a crash. *made: whether it was not there. */
CornuStatus cornu__make_folder(const char *path, bool *made);

/* Makes the folders above a file. */
CornuStatus cornu__make_folders_above(const char *path);

/* Syncs the folder that a file is in. A failure loses nothing that was there. */
void cornu__sync_folder_of(const char *path);

#endif
