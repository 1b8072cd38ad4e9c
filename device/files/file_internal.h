/*
 * Files that appear whole or not at all: written under a temporary name in the target's
 * folder, synced, renamed over the target. A target that is not a regular file (/dev/stdout, a
 * pipe) is written directly, never replaced; a symbolic link is followed.
 *
 *     CornuNewFile file;
 *     CORNU__TRY(cornu__file_create(&file, path));
 *     fputs("…", file.stream);
 *     return cornu__file_commit(&file);      or cornu__file_abandon(&file) after a failure
 *
 * Write errors need not be checked on the way: commit finds them. On a rank that does not write
 * (nn/formats/output_internal.h) the stream is the null device's.
 */
#ifndef CORNU_DEVICE_FILE_INTERNAL_H
#define CORNU_DEVICE_FILE_INTERNAL_H

#include "../status_internal.h"
#include "file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    FILE *stream;
    char *path;          /* as the caller wrote it, for messages */
    char *target;        /* where symbolic links lead */
    char *temporary;     /* NULL: the target itself is open */
} CornuNewFile;

CornuStatus cornu__file_create(CornuNewFile *file, const char *path);
CornuStatus cornu__file_commit(CornuNewFile *file);
void        cornu__file_abandon(CornuNewFile *file);

/* Whether two files that were created would be one after both commits, by whatever paths. */
bool cornu__file_is_same(const CornuNewFile *a, const CornuNewFile *b);

/* A little-endian number of up to 8 bytes. */
static inline uint64_t cornu__little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    while (count-- > 0) value = value << 8 | bytes[count];
    return value;
}

/* The bytes of a file. */
typedef struct {
    unsigned char *bytes;   /* NULL for an empty file */
    size_t         size;
} CornuFileBytes;

/* Reads a whole file. It is not mapped: a disk error in a mapped file would end the program.
 * CORNU_ERR_FILE, not naming the file, if it cannot be read or is not a regular file. */
CornuStatus cornu__file_read(CornuFileBytes *file, const char *path);

/* Reads its first bytes, at most `most`; *whole is the size of the file. */
CornuStatus cornu__file_read_first(CornuFileBytes *file, const char *path, size_t most,
                                   size_t *whole);
void        cornu__file_release(CornuFileBytes *file);

#endif
