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
    stream->input = cornu__allocate(INPUT + 1, 1);
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
    cornu__release(stream->mark);
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
    if (zlib->next_in > stream->input) stream->input[0] = zlib->next_in[-1];
    CORNU__TRY(cornu__inputs_read(stream->inputs, stream->file, stream->at, stream->input + 1,
                                  bytes));
    stream->at += (int64_t)bytes;
    zlib->next_in = stream->input + 1;
    zlib->avail_in = (uInt)bytes;
    return CORNU_OK;
}

static CornuStatus truncated(const CornuStream *stream)
{
    return cornu__fail(CORNU_ERR_FORMAT, "the compressed file is truncated after %lld bytes",
                       (long long)stream->at);
}

/* What was entered in its middle has been inflated as bare blocks: the checksum and, of gzip, the
 * length are left, and what follows has a header again. */
static CornuStatus pass_checksum(CornuStream *stream)
{
    z_stream  *zlib = &stream->zlib;
    const bool gzip = stream->compression == CORNU__GZIP;
    for (uInt left = gzip ? 8 : 4; left > 0;) {
        CORNU__TRY(refill(stream));
        if (!zlib->avail_in) return truncated(stream);
        const uInt some = left < zlib->avail_in ? left : zlib->avail_in;
        zlib->next_in += some;
        zlib->avail_in -= some;
        left -= some;
    }
    stream->entered = false;
    inflateReset2(zlib, MAX_WBITS + (gzip ? 16 : 0));
    return CORNU_OK;
}

/* After the end of compressed data: files may follow one after the other, as of gzip. */
static CornuStatus next_member(CornuStream *stream)
{
    if (stream->entered) CORNU__TRY(pass_checksum(stream));
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
    if (!zlib->avail_in) return truncated(stream);
    const int result = inflate(zlib, stream->mark ? Z_BLOCK : Z_NO_FLUSH);
    if (result == Z_STREAM_END) return next_member(stream);
    if (result == Z_OK || result == Z_BUF_ERROR) return CORNU_OK;
    if (result == Z_MEM_ERROR)
        return cornu__fail(CORNU_ERR_MEMORY, "no memory for decompression");
    return cornu__fail(CORNU_ERR_FORMAT, "the compressed data are damaged before byte %lld: %s",
                       (long long)(stream->at - zlib->avail_in),
                       zlib->msg ? zlib->msg : "unknown reason");
}

/* ---- Marks ---- */

CornuStatus cornu__stream_note_marks(CornuStream *stream, int64_t every)
{
    stream->every = every;
    stream->next = stream->place + every;
    stream->mark = cornu__allocate(1, sizeof *stream->mark);
    return stream->mark ? CORNU_OK : CORNU_ERR_MEMORY;
}

const CornuStreamMark *cornu__stream_passed(CornuStream *stream)
{
    const bool marked = stream->marked;
    stream->marked = false;
    return marked ? stream->mark : NULL;
}

/* If inflate is at the end of a block that is not the last one, as bit 7 and 6 say. */
static void note_mark(CornuStream *stream, int64_t place)
{
    z_stream *zlib = &stream->zlib;
    uInt      size = 0;
    if (!stream->mark || place < stream->next || (zlib->data_type & 192) != 128) return;
    CornuStreamMark *mark = stream->mark;
    mark->at = stream->at - zlib->avail_in;
    mark->place = place;
    mark->bits = zlib->data_type & 7;
    mark->byte = zlib->next_in[-1];
    stream->marked = inflateGetDictionary(zlib, mark->window, &size) == Z_OK;
    mark->size = size;
    stream->next = place + stream->every;
}

CornuStatus cornu__stream_open_at(CornuStream *stream, CornuInputs *inputs, int file,
                                  CornuCompression compression, const CornuStreamMark *mark)
{
    CORNU__TRY(cornu__stream_open(stream, inputs, file, compression));
    z_stream *zlib = &stream->zlib;
    stream->at = mark->at;
    stream->place = mark->place;
    stream->entered = true;
    if (inflateReset2(zlib, -MAX_WBITS) == Z_OK &&
        (!mark->bits || inflatePrime(zlib, mark->bits, mark->byte >> (8 - mark->bits)) == Z_OK) &&
        (!mark->size || inflateSetDictionary(zlib, mark->window, (uInt)mark->size) == Z_OK))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "no memory for decompression");
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
        note_mark(stream, stream->place + (int64_t)*got);
    }
    zlib->next_out = NULL;   /* `to` may not outlive this call */
    stream->place += (int64_t)*got;
    return status;
}
