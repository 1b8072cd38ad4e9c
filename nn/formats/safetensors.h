/*
 * Safetensors files: named arrays and a few texts, readable by many programs.
 *
 *     8 bytes    N, the header's length, little-endian
 *     N bytes    JSON {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [3, 3],
 *                "data_offsets": [begin, end]}, …}, offsets counted from the data's start
 *     the rest   the arrays, row-major, little-endian, without holes
 *
 * Source: github.com/huggingface/safetensors, README, "Format".
 *
 * Among the texts, files written here have "sha256": the SHA-256 of the whole file, in which those
 * 64 hexadecimal digits are zeros. A file that has it is not opened unless it is right.
 */
#ifndef CORNU_NN_SAFETENSORS_H
#define CORNU_NN_SAFETENSORS_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *name;
    CornuArray  array;     /* of a file that was read: read-only, perhaps unaligned */
} CornuNamedArray;

typedef struct { const char *key, *text; } CornuMetadata;

/* ---- Reading ---- */

typedef struct CornuSafetensors CornuSafetensors;

/* Reads the file and checks every statement of its header: lengths, offsets that overlap, leave
 * holes or end elsewhere than the file, byte counts that do not follow from dtype and shape,
 * repeated keys, dtypes and keys it does not know, a checksum that is another. NULL with
 * CORNU_ERR_FILE if the file cannot be read, CORNU_ERR_FORMAT naming what is wrong,
 * CORNU_ERR_UNSUPPORTED for a dtype or a rank that Cornu lacks. */
CornuSafetensors *cornu_safetensors_open(const char *path);
void              cornu_safetensors_close(CornuSafetensors *file);

/* Arrays in the order of their names. They and the texts live until the file is closed. */
int                    cornu_safetensors_count(const CornuSafetensors *file);
const CornuNamedArray *cornu_safetensors_at(const CornuSafetensors *file, int i);
/* NULL, without an error, if there is none of that name. */
const CornuNamedArray *cornu_safetensors_find(const CornuSafetensors *file, const char *name);
const char            *cornu_safetensors_metadata(const CornuSafetensors *file, const char *key);
/* Whether it has a checksum, which then is right. */
bool                   cornu_safetensors_has_checksum(const CornuSafetensors *file);

/* ---- Writing ---- */

/* Writes a temporary file in the same folder, syncs it and renames it to `path`: there is the
 * whole file or the old one. Equal arguments in any order give equal bytes. CORNU_ERR_FILE if
 * it cannot be written, CORNU_ERR_ARGUMENT for a name given twice or not in UTF-8. */
CornuStatus cornu_safetensors_write(const char *path, const CornuNamedArray *arrays, int count,
                                    const CornuMetadata *metadata, int metadata_count);

#ifdef __cplusplus
}
#endif
#endif
