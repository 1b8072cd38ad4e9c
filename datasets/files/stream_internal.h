/* A file that is read from its start to its end, plain or compressed by gzip or zlib. */
#ifndef CORNU_DATASETS_STREAM_INTERNAL_H
#define CORNU_DATASETS_STREAM_INTERNAL_H

#include <zlib.h>

#include "inputs_internal.h"

typedef enum { CORNU__PLAIN, CORNU__GZIP, CORNU__ZLIB } CornuCompression;

/* By the first bytes of a file, of which two are enough. */
CornuCompression cornu__compression_of(const unsigned char *bytes, size_t size);

typedef struct {
    CornuInputs     *inputs;
    int              file;
    int64_t          at;          /* of the next byte of the file */
    int64_t          place;       /* of the next byte once it is inflated */
    CornuCompression compression;
    bool             ended;       /* of what is compressed */
    z_stream         zlib;
    unsigned char   *input;       /* owned */
} CornuStream;

/* Opens a file at its start; close it in any case. */
CornuStatus cornu__stream_open(CornuStream *stream, CornuInputs *inputs, int file,
                               CornuCompression compression);
void        cornu__stream_close(CornuStream *stream);   /* also of all zeros */

/* Reads up to `size` bytes; *got is less at the end alone. CORNU_ERR_FORMAT, not naming the file,
 * for compressed data that are damaged or truncated. */
CornuStatus cornu__stream_read(CornuStream *stream, void *to, size_t size, size_t *got);

#endif
