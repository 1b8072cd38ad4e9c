/*
 * Files that appear whole or not at all: written under a temporary name, then renamed.
 *
 * Of several processes (device/processes) rank 0 alone writes and checks; on the others both
 * functions do nothing and succeed. They meet nobody: a rank may call them on its own.
 */
#ifndef CORNU_DEVICE_FILE_H
#define CORNU_DEVICE_FILE_H

#include <stddef.h>

#include "../status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates or replaces a file with these bytes. A target that is not a regular file (/dev/stdout, a
 * pipe with a reader) is written directly. CORNU_ERR_FILE if it cannot be written. */
CornuStatus cornu_file_write(const char *path, const void *bytes, size_t size);

/* Whether it could be written, to check before a long training: the folder, its permissions, a full
 * device. Leaves no file. */
CornuStatus cornu_file_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
