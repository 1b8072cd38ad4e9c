/* Files that appear whole or not at all: written under a temporary name, then renamed. */
#ifndef CORNU_NN_FILE_H
#define CORNU_NN_FILE_H

#include <stddef.h>

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a file of these bytes, or replaces one. A target that is no regular file (/dev/stdout, a
 * pipe that someone reads) is written directly. CORNU_ERR_FILE if it cannot be. */
CornuStatus cornu_file_write(const char *path, const void *bytes, size_t size);

/* Whether it could be, asked before a long training: the folder, its permissions, a device that
 * is full. Leaves nothing behind. */
CornuStatus cornu_file_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
