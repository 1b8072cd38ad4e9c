/*
 * Opening files. An opened file never gets descriptor 0, 1 or 2, even in a process where these are
 * closed: anything printed or logged would end up in the file. Opening never waits for the other
 * end of a pipe.
 */
#ifndef CORNU_DEVICE_OPEN_H
#define CORNU_DEVICE_OPEN_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "status_internal.h"

/* As open, closed on exec. -1 with errno; ENXIO to write a pipe without a reader. */
int cornu__open(const char *path, int flags, mode_t mode);

/* Moves a new descriptor above 2; -1 with errno, and closed, if that fails. */
int cornu__above_standard(int descriptor);

/* Opens a regular file for reading. CORNU_ERR_FILE, naming it, if that fails or it is another kind
 * of file. */
CornuStatus cornu__open_to_read(const char *path, FILE **file);

/* For messages: "file", "folder", "pipe", "device", "socket". */
const char *cornu__file_kind(mode_t mode);

/* Why a file could not be opened: as strerror. */
const char *cornu__open_error(int error);

/* Makes a folder unless it exists, and syncs its parent, so that the files written there survive a
 * crash. *made: whether it was new. */
CornuStatus cornu__make_folder(const char *path, bool *made);

/* Makes the folders in a file's path. */
CornuStatus cornu__make_folders_above(const char *path);

/* Syncs the folder of a file. Failures are ignored: no data that was there is lost. */
void cornu__sync_folder_of(const char *path);

#endif
