#include "stream_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"

enum { INPUT = 1 << 16, AT_ONCE = 1 << 30 };   /* zlib counts in unsigned int */

/* Sources: RFC 1952, section 2.3.1; RFC 1950, section 2.2. */
CornuCompression cornu__compression_of(const unsigned char *bytes, size_t size)
{
    if (size < 2) return CORNU__PLAIN;
    if (bytes[0] == 0x1F && bytes[1] == 0x8B) return CORNU__GZIP;
    const bool deflate = (bytes[0] & 0x0F) == 8 && bytes[0] >> 4 <= 7;
    return deflate && (bytes[0] << 8 | bytes[1]) % 31 == 0 ? CORNU__ZLIB : CORNU__PLAIN;
}

CornuStatus cornu__stream_open(CornuStream *stream, CornuInputs *inputs, int file,
                               CornuCompression compression)
{
    *stream = (CornuStream){ .inputs = inputs, .file = file };
    if (compression == CORNU__PLAIN) return CORNU_OK;
    stream->input = cornu__allocate(INPUT, 1);
    if (!stream->input) return CORNU_ERR_MEMORY;
    if (inflateInit2(&stream->zlib, MAX_WBITS + (compression == CORNU__GZIP ? 16 : 0)) != Z_OK)
        return cornu__fail(CORNU_ERR_MEMORY, "no memory for decompression");
    stream->compression = compression;
    return CORNU_OK;
}

void cornu__stream_close(CornuStream *stream)
{
    if (stream->compression != CORNU__PLAIN) inflateEnd(&stream->zlib);
    cornu__release(stream->input);
    *stream = (CornuStream){ .file = 0 };
}

static int64_t left_of(const CornuStream *stream)
{
    return cornu__inputs_size(stream->inputs, stream->file) - stream->at;
}

static CornuStatus read_plain(CornuStream *stream, void *to, size_t size, size_t *got)
{
    *got = (int64_t)size < left_of(stream) ? size : (size_t)left_of(stream);
    CORNU__TRY(cornu__inputs_read(stream->inputs, stream->file, stream->at, to, *got));
    stream->at += (int64_t)*got;
    stream->place = stream->at;
    return CORNU_OK;
}

static CornuStatus refill(CornuStream *stream)
{
    z_stream *zlib = &stream->zlib;
    if (zlib->avail_in) return CORNU_OK;
    const size_t bytes = left_of(stream) < INPUT ? (size_t)left_of(stream) : INPUT;
    CORNU__TRY(cornu__inputs_read(stream->inputs, stream->file, stream->at, stream->input, bytes));
    stream->at += (int64_t)bytes;
    zlib->next_in = stream->input;
    zlib->avail_in = (uInt)bytes;
    return CORNU_OK;
}

/* After the end of compressed data: files may follow one after the other, as of gzip. */
static CornuStatus next_member(CornuStream *stream)
{
    CORNU__TRY(refill(stream));
    stream->ended = !stream->zlib.avail_in || stream->compression != CORNU__GZIP;
    if (stream->ended && stream->zlib.avail_in)
        return cornu__fail(CORNU_ERR_FORMAT, "continues after the end of the compressed data, at "
                           "byte %lld", (long long)(stream->at - stream->zlib.avail_in));
    if (!stream->ended) inflateReset(&stream->zlib);
    return CORNU_OK;
}

/* Inflates as much as there is input or space for. */
static CornuStatus advance(CornuStream *stream)
{
    z_stream *zlib = &stream->zlib;
    CORNU__TRY(refill(stream));
    if (!zlib->avail_in)
        return cornu__fail(CORNU_ERR_FORMAT, "the compressed file is truncated after %lld bytes",
                           (long long)stream->at);
    const int result = inflate(zlib, Z_NO_FLUSH);
    if (result == Z_STREAM_END) return next_member(stream);
    if (result == Z_OK || result == Z_BUF_ERROR) return CORNU_OK;
    if (result == Z_MEM_ERROR)
        return cornu__fail(CORNU_ERR_MEMORY, "no memory for decompression");
    return cornu__fail(CORNU_ERR_FORMAT, "the compressed data are damaged before byte %lld: %s",
                       (long long)(stream->at - zlib->avail_in),
                       zlib->msg ? zlib->msg : "unknown reason");
}

CornuStatus cornu__stream_read(CornuStream *stream, void *to, size_t size, size_t *got)
{
    z_stream   *zlib = &stream->zlib;
    CornuStatus status = CORNU_OK;
    *got = 0;
    if (stream->compression == CORNU__PLAIN) return read_plain(stream, to, size, got);
    while (*got < size && !stream->ended && !status) {
        const uInt wanted = size - *got < AT_ONCE ? (uInt)(size - *got) : AT_ONCE;
        zlib->next_out = (Bytef *)to + *got;
        zlib->avail_out = wanted;
        status = advance(stream);
        *got += wanted - zlib->avail_out;
    }
    zlib->next_out = NULL;   /* `to` may not outlive this call */
    stream->place += (int64_t)*got;
    return status;
}
