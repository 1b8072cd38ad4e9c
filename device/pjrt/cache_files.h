/*
 * Files of a cache: bytes under a key, in a folder that only its user may write.
 *
 * What is read here becomes code that runs in this process. So neither the folder nor a file is
 * used that belongs to another user, or that group or others may write; who can write as the user
 * can run code as the user anyway. The checksum is against damage, not against forgery.
 */
#ifndef CORNU_DEVICE_PJRT_CACHE_FILES_H
#define CORNU_DEVICE_PJRT_CACHE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../hash/sha256_internal.h"
#include "plugin.h"

typedef struct {
    int     descriptor;               /* of the folder; -1: there is none, nothing is kept */
    char    path[CORNU_PJRT_PATH];    /* for messages */
    int64_t most_bytes;               /* of all files together */
} CornuPjrtFolder;

/* By CORNU_PJRT_CACHE, "off" or a folder, else $XDG_CACHE_HOME/cornu/pjrt-compiled, else
 * ~/.cache/cornu/pjrt-compiled; it is made if it is absent. Failures are logged, and then nothing
 * is kept. */
void cornu__pjrt_folder_open(CornuPjrtFolder *folder);
void cornu__pjrt_folder_close(CornuPjrtFolder *folder);

/* The bytes under a key, which the caller releases with cornu__release, and their time of use
 * becomes now. NULL if there are none; a damaged file is removed, with a warning in the log. */
void *cornu__pjrt_folder_read(const CornuPjrtFolder *folder, const char key[CORNU__SHA256_TEXT],
                              size_t *size);

/* Keeps bytes under a key: all of them or, if that fails, which is logged, none. Several processes
 * may do so at once, and may be killed: what they leave behind is removed here. So are the files
 * that were not used for longest, while all of them have more than most_bytes. */
void cornu__pjrt_folder_write(const CornuPjrtFolder *folder, const char key[CORNU__SHA256_TEXT],
                              const void *bytes, size_t size);

void cornu__pjrt_folder_remove(const CornuPjrtFolder *folder, const char key[CORNU__SHA256_TEXT]);

#endif
