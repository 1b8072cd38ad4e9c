#include <string.h>
#include <strings.h>

#include "../../device/files/file_internal.h"
#include "../../device/memory_internal.h"
#include "tfrecord_internal.h"

struct CornuTfrecordWriter {
    CornuNewFile   file;
    bool           compressed;
    z_stream       zlib;
    unsigned char *output;      /* owned: of zlib */
    CornuMessage   message;     /* an Example */
    CornuFailure   failure;     /* the first one */
    int64_t        records;
};

enum { OUTPUT = 1 << 16 };

static void fail(CornuTfrecordWriter *writer, CornuStatus status)
{
    if (!writer->failure.status) cornu__failure_keep(&writer->failure, status);
}

/* ---- Bytes ---- */

/* Compresses what zlib has got; all of it, and the end, with Z_FINISH. */
static void deflate_some(CornuTfrecordWriter *writer, int flush)
{
    z_stream *zlib = &writer->zlib;
    int       result;
    do {
        zlib->next_out = writer->output;
        zlib->avail_out = OUTPUT;
        result = deflate(zlib, flush);
        fwrite(writer->output, 1, OUTPUT - zlib->avail_out, writer->file.stream);
    } while (zlib->avail_out == 0 || (flush == Z_FINISH && result == Z_OK));
}

static void put(CornuTfrecordWriter *writer, const void *bytes, size_t size)
{
    enum { AT_ONCE = 1 << 30 };   /* zlib counts in unsigned int */
    const unsigned char *from = bytes;
    if (!writer->compressed) {
        fwrite(bytes, 1, size, writer->file.stream);
        return;
    }
    while (size > 0) {
        const size_t part = size < AT_ONCE ? size : AT_ONCE;
        writer->zlib.next_in = (Bytef *)from;   /* which zlib does not write */
        writer->zlib.avail_in = (uInt)part;
        deflate_some(writer, Z_NO_FLUSH);
        from += part;
        size -= part;
    }
}

static void put_number(CornuTfrecordWriter *writer, uint64_t value, int size)
{
    unsigned char bytes[8];
    for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(value >> 8 * i);
    put(writer, bytes, (size_t)size);
}

void cornu_tfrecord_writer_write(CornuTfrecordWriter *writer, const void *bytes, size_t size)
{
    unsigned char length[8];
    if (!writer || writer->failure.status) return;
    if (!bytes && size) {
        fail(writer, cornu__fail_absent("tfrecord: the bytes of record %lld",
                                        (long long)writer->records));
        return;
    }
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)size >> 8 * i);
    put(writer, length, sizeof length);
    put_number(writer, cornu__crc32c_masked(length, sizeof length), 4);
    put(writer, bytes, size);
    put_number(writer, cornu__crc32c_masked(bytes, size), 4);
    writer->records++;
}

/* ---- Examples ---- */

/* A list of numbers, packed. */
static void put_numbers(CornuMessage *to, CornuArray values, bool floats)
{
    const int64_t count = cornu_type_count(values.type);
    const size_t  list = cornu__begin_field(to, 1);
    for (int64_t i = 0; i < count; i++) {
        const double  number = floats ? cornu_array_get(values, i) : 0.0;
        const float   narrow = (float)number;
        const int64_t whole = floats ? 0
                            : values.type.dtype == CORNU_I64 ? ((const int64_t *)values.data)[i]
                                                             : (int64_t)cornu_array_get(values, i);
        if (floats) cornu__put(to, &narrow, sizeof narrow);
        else cornu__put_varint(to, (uint64_t)whole);
    }
    cornu__end_field(to, list);
}

static void put_strings(CornuMessage *to, CornuArray values)
{
    const char *const *texts = values.data;
    for (int64_t i = 0; i < cornu_type_count(values.type); i++)
        cornu__put_text(to, 1, texts[i] ? texts[i] : "");
}

static CornuStatus put_feature(CornuMessage *to, const CornuExampleFeature *feature)
{
    const CornuDtype dtype = feature->values.type.dtype;
    const bool       floats = dtype == CORNU_F32 || dtype == CORNU_F64;
    if (!feature->name) return cornu__fail_absent("tfrecord: the name of a feature");
    if (feature->bytes) {
        const size_t list = cornu__begin_field(to, CORNU__BYTES_LIST);
        cornu__put_bytes(to, 1, feature->bytes, feature->size);
        cornu__end_field(to, list);
        return CORNU_OK;
    }
    CORNU__TRY(cornu__fail_prefix(cornu_host_type_check(feature->values.type), feature->name));
    if (!feature->values.data && cornu_type_bytes(feature->values.type))
        return cornu__fail_absent("tfrecord: feature \"%s\": the values", feature->name);
    if (dtype == CORNU_F16 || dtype == CORNU_BF16)
        return cornu__fail(CORNU_ERR_DTYPE, "tfrecord: feature \"%s\" is %s, expected f32, f64, "
                           "i64, i32, u32, u8, bool or strings", feature->name,
                           cornu_dtype_name(dtype));
    const size_t list = cornu__begin_field(to, dtype == CORNU_STRING ? CORNU__BYTES_LIST
                                               : floats ? CORNU__FLOAT_LIST : CORNU__INT64_LIST);
    if (dtype == CORNU_STRING) put_strings(to, feature->values);
    else put_numbers(to, feature->values, floats);
    cornu__end_field(to, list);
    return CORNU_OK;
}

void cornu_tfrecord_writer_example(CornuTfrecordWriter *writer, const CornuExampleFeature *features,
                                   int count)
{
    if (!writer || writer->failure.status) return;
    CornuMessage *to = &writer->message;
    CornuStatus   status = CORNU_OK;
    if (count < 0 || (count > 0 && !features))
        status = cornu__fail(CORNU_ERR_ARGUMENT, "tfrecord: %d features%s, expected an array "
                             "of them", count, features ? "" : " at NULL");
    to->size = 0;
    const size_t map = cornu__begin_field(to, 1);
    for (int i = 0; i < count && !status; i++) {
        const size_t entry = cornu__begin_field(to, 1);
        cornu__put_text(to, 1, features[i].name ? features[i].name : "");
        const size_t value = cornu__begin_field(to, 2);
        status = put_feature(to, &features[i]);
        cornu__end_field(to, value);
        cornu__end_field(to, entry);
    }
    cornu__end_field(to, map);
    if (!status && to->failed) status = CORNU_ERR_MEMORY;
    if (status) fail(writer, status);
    else cornu_tfrecord_writer_write(writer, to->bytes, to->size);
}

/* ---- The file ---- */

static CornuStatus begin(CornuTfrecordWriter *writer, const char *path)
{
    const size_t length = strlen(path);
    CORNU__TRY(cornu__file_create(&writer->file, path));
    if (length < 3 || strcasecmp(path + length - 3, ".gz")) return CORNU_OK;
    writer->output = cornu__allocate(OUTPUT, 1);
    if (!writer->output) return CORNU_ERR_MEMORY;
    if (deflateInit2(&writer->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
                     MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for compression", path);
    writer->compressed = true;
    return CORNU_OK;
}

static void release(CornuTfrecordWriter *writer)
{
    if (writer->compressed) deflateEnd(&writer->zlib);
    cornu__release(writer->output);
    cornu__release(writer->message.bytes);
    cornu__release(writer);
}

CornuTfrecordWriter *cornu_tfrecord_writer_open(const char *path)
{
    CORNU__NEED_TO_MAKE(path);
    if (cornu__refused()) return NULL;
    CornuTfrecordWriter *writer = cornu__allocate(1, sizeof *writer);
    if (!writer) return cornu__null();
    if (begin(writer, path) == CORNU_OK) return writer;
    if (writer->file.stream) cornu__file_abandon(&writer->file);
    release(writer);
    return cornu__null();
}

CornuStatus cornu_tfrecord_writer_close(CornuTfrecordWriter *writer)
{
    CORNU__NEED(writer);
    CornuStatus status = writer->failure.status;
    if (status) {
        cornu__failure_tell(&writer->failure);
        cornu__file_abandon(&writer->file);
    } else {
        writer->zlib.avail_in = 0;
        if (writer->compressed) deflate_some(writer, Z_FINISH);
        status = cornu__file_commit(&writer->file);
    }
    release(writer);
    return status;
}
