/* Reading idx files, compressed or not. */
#include "idx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"

/* A file, decompressed by zlib if necessary. gzread would suffice if it reported bytes that follow
 * the compressed data. */
typedef struct {
    const char   *path;
    FILE         *file;
    z_stream      zlib;
    bool          compressed, end; /* end: of the data */
    unsigned char *input;          /* INPUT_SIZE bytes, a block of the file */
} Reader;

enum { INPUT_SIZE = 1 << 16 };

static CornuStatus read_error(const Reader *reader)
{
    if (!ferror(reader->file)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", reader->path, strerror(errno));
}

/* Fills the input buffer; leaves it empty at the end of the file. */
static CornuStatus refill(Reader *reader)
{
    reader->zlib.next_in = reader->input;
    reader->zlib.avail_in = (unsigned)fread(reader->input, 1, INPUT_SIZE, reader->file);
    return read_error(reader);
}

static CornuStatus reader_open(Reader *reader, const char *path)
{
    reader->path = path;
    CORNU__TRY(cornu__open_to_read(path, &reader->file));
    setvbuf(reader->file, NULL, _IONBF, 0); /* refill reads large blocks */
    CORNU__TRY(refill(reader));
    if (reader->zlib.avail_in < 2 || reader->input[0] != 0x1f || reader->input[1] != 0x8b)
        return CORNU_OK;
    enum { GZIP_ONLY = 16 + MAX_WBITS };
    if (inflateInit2(&reader->zlib, GZIP_ONLY) != Z_OK)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: out of memory for decompression", path);
    reader->compressed = true;
    return CORNU_OK;
}

static void reader_close(Reader *reader)
{
    if (reader->compressed) inflateEnd(&reader->zlib);
    if (reader->file) fclose(reader->file);
}

/* At the end of a gzip member, either the file ends or another member follows. */
static CornuStatus next_member(Reader *reader)
{
    if (!reader->zlib.avail_in) CORNU__TRY(refill(reader));
    if (!reader->zlib.avail_in) {
        reader->end = true;
        return CORNU_OK;
    }
    if (reader->zlib.next_in[0] != 0x1f)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: other bytes follow the compressed data",
                           reader->path);
    inflateReset(&reader->zlib);
    return CORNU_OK;
}

/* As advance, if the file is not compressed: bytes that were read ahead, then directly from the
 * file. */
static CornuStatus advance_plain(Reader *reader)
{
    z_stream *zlib = &reader->zlib;
    unsigned  bytes = zlib->avail_in < zlib->avail_out ? zlib->avail_in : zlib->avail_out;
    if (bytes) {
        memcpy(zlib->next_out, zlib->next_in, bytes);
        zlib->next_in += bytes, zlib->avail_in -= bytes;
    } else {
        bytes = (unsigned)fread(zlib->next_out, 1, zlib->avail_out, reader->file);
        reader->end = !bytes;
    }
    zlib->next_out += bytes, zlib->avail_out -= bytes;
    return read_error(reader);
}

/* Moves bytes from the input to zlib.next_out, at least one unless at the end. */
static CornuStatus advance(Reader *reader)
{
    z_stream *zlib = &reader->zlib;
    if (!reader->compressed) return advance_plain(reader);
    if (!zlib->avail_in) CORNU__TRY(refill(reader));
    if (!zlib->avail_in)
        return cornu__fail(CORNU_ERR_FORMAT,
                           "%s: the compressed file is truncated after %ld bytes", reader->path,
                           ftell(reader->file));
    int result = inflate(zlib, Z_NO_FLUSH);
    if (result == Z_STREAM_END) return next_member(reader);
    if (result == Z_OK || result == Z_BUF_ERROR) return CORNU_OK;
    if (result == Z_MEM_ERROR)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: out of memory for decompression", reader->path);
    return cornu__fail(CORNU_ERR_FORMAT, "%s: the compressed data are damaged: %s", reader->path,
                       zlib->msg ? zlib->msg : "unknown reason");
}

/* Reads up to `bytes`; *received is less only at the end. */
static CornuStatus read_some(Reader *reader, void *to, size_t bytes, size_t *received)
{
    enum { AT_ONCE = 1 << 30 }; /* zlib counts in unsigned int */
    CornuStatus status = CORNU_OK;
    *received = 0;
    while (*received < bytes && !reader->end && status == CORNU_OK) {
        size_t   left = bytes - *received;
        unsigned wanted = left < AT_ONCE ? (unsigned)left : AT_ONCE;
        reader->zlib.next_out = (unsigned char *)to + *received;
        reader->zlib.avail_out = wanted;
        status = advance(reader);
        *received += wanted - reader->zlib.avail_out;
    }
    reader->zlib.next_out = NULL; /* `to` may not outlive this call */
    return status;
}

static CornuStatus read_header(Reader *reader, CornuType *type)
{
    unsigned char magic[4], extent[4];
    size_t        received;
    CORNU__TRY(read_some(reader, magic, sizeof magic, &received));
    if (received < sizeof magic)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has %zu bytes, too few for an idx file",
                           reader->path, received);
    int rank = magic[3];
    if (magic[0] || magic[1] || rank < 1 || rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_FORMAT,
                           "%s: begins with %02x %02x %02x %02x, expected 00 00, an idx element "
                           "type and a rank of 1 to %d", reader->path, magic[0], magic[1],
                           magic[2], magic[3], CORNU_MAX_RANK);
    switch (magic[2]) {
    case 0x08: type->dtype = CORNU_U8; break;
    case 0x0C: type->dtype = CORNU_I32; break;
    case 0x0D: type->dtype = CORNU_F32; break;
    case 0x0E: type->dtype = CORNU_F64; break;
    default:
        return cornu__fail(CORNU_ERR_FORMAT,
                           "%s: idx element type 0x%02x, expected 0x08 (u8), 0x0c (i32), 0x0d "
                           "(f32) or 0x0e (f64)", reader->path, magic[2]);
    }
    type->shape.rank = rank;
    for (int i = 0; i < rank; i++) {
        CORNU__TRY(read_some(reader, extent, sizeof extent, &received));
        if (received < sizeof extent)
            return cornu__fail(CORNU_ERR_FORMAT, "%s: ends in extent %d of %d", reader->path, i,
                               rank);
        type->shape.extent[i] = (int64_t)((uint32_t)extent[0] << 24 | (uint32_t)extent[1] << 16 |
                                          (uint32_t)extent[2] << 8 | extent[3]);
    }
    return cornu__fail_prefix(cornu_type_check(*type), reader->path);
}

/* Reads the elements and checks that nothing follows. NULL on failure, recorded, not pending. */
static char *read_elements(Reader *reader, CornuType type)
{
    enum { FIRST = 1 << 20 };
    size_t    total = cornu_type_bytes(type), have = 0, space, received;
    char     *data = NULL, more;
    CornuText text;
    do {
        space = have < FIRST ? FIRST : 2 * have;
        if (space > total) space = total;
        if (cornu__fail_prefix(cornu__check_memory(space), reader->path)) goto fail;
        char *grown = realloc(data, space ? space : 1);
        if (!grown) {
            cornu__fail(CORNU_ERR_MEMORY, "%s: out of memory for %zu bytes", reader->path, space);
            goto fail;
        }
        data = grown;
        if (read_some(reader, data + have, space - have, &received) != CORNU_OK) goto fail;
        have += received;
    } while (have == space && have < total);
    if (have < total) {
        cornu__fail(CORNU_ERR_FORMAT, "%s: ends after %zu bytes of elements, %s needs %zu",
                    reader->path, have, cornu_type_print(&text, type), total);
        goto fail;
    }
    if (read_some(reader, &more, 1, &received) != CORNU_OK) goto fail;
    if (received) {
        cornu__fail(CORNU_ERR_FORMAT, "%s: continues after the %zu bytes of %s", reader->path,
                    total, cornu_type_print(&text, type));
        goto fail;
    }
    return data;
fail:
    free(data);
    return NULL;
}

static void from_big_endian(char *data, CornuType type)
{
    size_t size = cornu_dtype_size(type.dtype), count = (size_t)cornu_type_count(type);
    for (; size > 1 && count > 0; count--, data += size) {
        uint64_t value = 0;
        /* NOLINTNEXTLINE: the linter does not know that there are count times size bytes. */
        for (size_t k = 0; k < size; k++) value = value << 8 | (unsigned char)data[k];
        if (size == 4)
            memcpy(data, &(uint32_t){ (uint32_t)value }, 4);
        else
            memcpy(data, &value, 8);
    }
}

CornuStatus cornu_idx_load(const char *path, CornuArray *array)
{
    CORNU__NEED(path);
    CORNU__NEED(array);
    unsigned char input[INPUT_SIZE];
    Reader      reader = { .input = input };
    CornuType   type = { .dtype = CORNU_U8 };
    char       *data = NULL;
    CornuStatus status = reader_open(&reader, path);
    if (status == CORNU_OK) status = read_header(&reader, &type);
    if (status == CORNU_OK) {
        data = read_elements(&reader, type);
        if (!data) status = cornu_error_status();
    }
    reader_close(&reader);
    if (!data) return status;
    from_big_endian(data, type);
    *array = cornu_array_from(data, type);
    CornuText text;
    cornu__log(CORNU_LOG_INFO, "read %s: %s", path, cornu_type_print(&text, type));
    return CORNU_OK;
}
