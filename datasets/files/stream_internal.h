/* A file that is read from its start to its end, plain or compressed by gzip or zlib. */
#ifndef CORNU_DATASETS_STREAM_INTERNAL_H
#define CORNU_DATASETS_STREAM_INTERNAL_H

#include <zlib.h>

#include "inputs_internal.h"

typedef enum { CORNU__PLAIN, CORNU__GZIP, CORNU__ZLIB } CornuCompression;

/* By the first bytes of a file, of which two are enough. */
CornuCompression cornu__compression_of(const unsigned char *bytes, size_t size);

/* Where compressed data can be entered: at the end of one of their blocks, with the bytes before
 * that blocks refer to. Source: zlib, examples/zran.c. */
typedef struct {
    int64_t       at;          /* of the next byte of the file */
    int64_t       place;       /* of the next byte once it is inflated */
    int32_t       bits, byte;  /* of the byte before, the last bits that are not read, and itself */
    int64_t       size;        /* of the window */
    unsigned char window[1 << 15];
} CornuStreamMark;

typedef struct {
    CornuInputs     *inputs;
    int              file;
    int64_t          at;          /* of the next byte of the file */
    int64_t          place;       /* of the next byte once it is inflated */
    CornuCompression compression;
    bool             ended;       /* of what is compressed */
    z_stream         zlib;
    unsigned char   *input;       /* owned: a byte of what was before, and what is read */
    bool             entered;     /* at a mark: the rest of this member is without its checksum */
    CornuStreamMark *mark;        /* owned: the next one; NULL: none are noted */
    int64_t          every;       /* inflated bytes between marks */
    int64_t          next;        /* the least place of the next one */
    bool             marked;      /* mark is new */
} CornuStream;

/* Opens a file at its start; close it in any case. */
CornuStatus cornu__stream_open(CornuStream *stream, CornuInputs *inputs, int file,
                               CornuCompression compression);
/* Opens compressed data at a mark; close it in any case. */
CornuStatus cornu__stream_open_at(CornuStream *stream, CornuInputs *inputs, int file,
                                  CornuCompression compression, const CornuStreamMark *mark);

/* From now on notes a mark after every so many inflated bytes; CORNU_ERR_MEMORY. */
CornuStatus cornu__stream_note_marks(CornuStream *stream, int64_t every);
/* The mark that was passed since the last call, valid until the next read; NULL: there is none. */
const CornuStreamMark *cornu__stream_passed(CornuStream *stream);

void        cornu__stream_close(CornuStream *stream);   /* also of all zeros */

/* Reads up to `size` bytes; *got is less at the end alone. CORNU_ERR_FORMAT, not naming the file,
 * for compressed data that are damaged or truncated. */
CornuStatus cornu__stream_read(CornuStream *stream, void *to, size_t size, size_t *got);

#endif
