/*
 * Parts of remote files on this machine: a folder for each version of a file, in it a file for each
 * part that is there, its bytes and then their number, 8 bytes, and CRC-32, 4.
 *
 *     CORNU_CACHE/0123456789abcdef…/00000017       a part
 *     CORNU_CACHE/0123456789abcdef…/00000018.new   one that is being fetched, locked meanwhile
 *
 * Threads and programs share it. What is used is marked by its time of change; when all of it is
 * larger than CORNU_CACHE_SIZE, what was used longest ago is removed, also what another one has
 * just fetched and not read yet.
 */
#ifndef CORNU_DATASETS_PARTS_INTERNAL_H
#define CORNU_DATASETS_PARTS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../device/status_internal.h"

typedef struct {
    char    *folder;      /* owned: of all files */
    char    *name;        /* owned: of this one's folder in it */
    int64_t  limit;       /* bytes of all files */
    int64_t  size;        /* of a part, but the last one */
} CornuCache;

/* Makes the folder of a file by a key that no other file, or version of it, has. Close it in any
 * case. CORNU_ERR_FILE, CORNU_ERR_ARGUMENT for CORNU_CACHE_SIZE. */
CornuStatus cornu__cache_open(CornuCache *parts, const char *key);
void        cornu__cache_close(CornuCache *parts);

/* The folder and its limit, of which cornu__cache_open is the second half. */
CornuStatus cornu__cache_find(CornuCache *parts);

/* Reads bytes of a part from its byte `at` on. *there is false if it is not there, or not one of
 * `bytes` bytes, which `check` finds by its checksum, too: then it is removed. CORNU_ERR_FILE if it
 * cannot be opened or removed. */
CornuStatus cornu__cache_read(const CornuCache *parts, int64_t part, int64_t bytes, bool check,
                              int64_t at, void *to, size_t size, bool *there);

/* Whether a part is there, of any bytes. */
bool cornu__cache_has(const CornuCache *parts, int64_t part);

/* A part that is being fetched. */
typedef struct {
    const CornuCache *parts;
    int64_t           part;
    int               descriptor;   /* -1: none */
    int64_t           written;
    unsigned long     sum;
} CornuCachedPart;

/* Begins a part unless it is there, which leaves descriptor at -1. If another thread or program
 * fetches it, waits for that, or, if `wait` is false, leaves descriptor at -1, too. */
CornuStatus cornu__cached_begin(CornuCachedPart *new_part, const CornuCache *parts, int64_t part,
                              bool wait);
CornuStatus cornu__cached_add(CornuCachedPart *new_part, const void *bytes, size_t size);
/* Makes it one that is there, and removes others as the limit wants. */
CornuStatus cornu__cached_commit(CornuCachedPart *new_part);
void        cornu__cached_abandon(CornuCachedPart *new_part);   /* also where there is none */

#endif
