/*
 * Safetensors files: named arrays and metadata strings, readable by many programs.
 *
 *     8 bytes    N, the header's length, little-endian
 *     N bytes    JSON {"__metadata__": {KEY: string}, NAME: {"dtype": "F32", "shape": [3, 3],
 *                "data_offsets": [begin, end]}, …}, offsets counted from the data's start
 *     the rest   the arrays, row-major, little-endian, without holes
 *
 * Source: github.com/huggingface/safetensors, README, "Format".
 *
 * The metadata of files written here has "sha256": the SHA-256 of the whole file, computed with
 * zeros in place of those 64 hexadecimal digits. A file with a wrong one is refused.
 */
#ifndef CORNU_NN_SAFETENSORS_H
#define CORNU_NN_SAFETENSORS_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    CornuArray  array;     /* in a file that was read: read-only, perhaps unaligned */
} CornuNamedArray;

typedef struct { const char *key, *text; } CornuMetadata;

/* ---- Reading ---- */

typedef struct CornuSafetensors CornuSafetensors;

/* Reads the file and validates its header: lengths, overlapping offsets, gaps, data that does not
 * end with the file, byte counts that do not match dtype and shape, repeated keys, unknown dtypes
 * and keys, and the checksum. NULL with CORNU_ERR_FILE if the file cannot be read, CORNU_ERR_FORMAT
 * naming the defect, CORNU_ERR_UNSUPPORTED for a dtype or a rank that Cornu does not have. */
CornuSafetensors *cornu_safetensors_open(const char *path);
/* With its arrays and metadata; NULL is ignored. */
void              cornu_safetensors_close(CornuSafetensors *file);

/* The number of arrays. */
int                    cornu_safetensors_count(const CornuSafetensors *file);
/* Array i, from 0, sorted by name; valid until the file is closed. */
const CornuNamedArray *cornu_safetensors_at(const CornuSafetensors *file, int i);
/* The array of that name, likewise; NULL, without an error, if there is none. */
const CornuNamedArray *cornu_safetensors_find(const CornuSafetensors *file, const char *name);
/* The metadata of that key, likewise; NULL, without an error, if there is none. */
const char            *cornu_safetensors_metadata(const CornuSafetensors *file, const char *key);
/* Whether it has a checksum, which was then verified. */
bool                   cornu_safetensors_has_checksum(const CornuSafetensors *file);

/* ---- Writing ---- */

/* Writes a temporary file in the same folder, syncs it and renames it to `path`, which at any time
 * holds the old file or the whole new one. Equal arguments in any order give equal bytes.
 * CORNU_ERR_FILE if it cannot be written, CORNU_ERR_ARGUMENT for a name that is given twice or is
 * not UTF-8. */
CornuStatus cornu_safetensors_write(const char *path, const CornuNamedArray *arrays, int count,
                                    const CornuMetadata *metadata, int metadata_count);

#ifdef __cplusplus
}
#endif
#endif
