/* Records of compressed files, in order. */
#include "tfrecord_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"

/* A file that is open, in a slot of the cycle. */
typedef struct {
    CornuStream stream;
    int64_t     record;     /* the number of the next one in the file */
    bool        open;
} File;

typedef struct {
    CornuInterleave order;
    File           *files;  /* one for each slot, in the order's turns */
    unsigned char  *bytes;  /* of a record */
    size_t          space;
} Reading;

static void end_pass(Reading *reading)
{
    for (int i = 0; reading->files && i < reading->order.cycle; i++)
        if (reading->files[i].open) cornu__stream_close(&reading->files[i].stream);
    cornu__release(reading->files);
    cornu__interleave_free(&reading->order);
    reading->files = NULL;
    reading->order = (CornuInterleave){ .slot = NULL };
}

CornuStatus cornu__tfrecord_stream_begin(CornuStage *stage, int64_t epoch)
{
    const CornuTfrecords *records = stage->dataset->own;
    Reading              *reading = stage->own;
    (void)epoch;
    if (!reading) reading = stage->own = cornu__allocate(1, sizeof *reading);
    if (!reading) return CORNU_ERR_MEMORY;
    end_pass(reading);
    CORNU__TRY(cornu__interleave_begin(&reading->order, cornu__inputs_count(records->inputs),
                                       records->cycle, records->block));
    reading->files = cornu__allocate((size_t)reading->order.cycle, sizeof *reading->files);
    return reading->files ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Makes space for `size` bytes; those that are there stay. */
static CornuStatus reserve(Reading *reading, size_t size)
{
    if (size <= reading->space) return CORNU_OK;
    unsigned char *more = cornu__allocate(size, 1);
    if (!more) return CORNU_ERR_MEMORY;
    if (reading->space) memcpy(more, reading->bytes, reading->space);
    cornu__release(reading->bytes);
    reading->bytes = more;
    reading->space = size;
    return CORNU_OK;
}

/* Reads a record and its checksum. A wrong length may be any number: memory grows with the bytes
 * that are there. */
static CornuStatus read_bytes(Reading *reading, CornuStream *stream, int64_t length)
{
    enum { FIRST = 1 << 20 };
    if (length > INT64_MAX - CORNU__RECORD_TAIL) length = INT64_MAX - CORNU__RECORD_TAIL;
    const size_t all = (size_t)length + CORNU__RECORD_TAIL;
    for (size_t have = 0, got; have < all; have += got) {
        size_t space = have ? 2 * have : FIRST;
        if (space > all) space = all;
        CORNU__TRY(reserve(reading, space));
        CORNU__TRY(cornu__stream_read(stream, reading->bytes + have, space - have, &got));
        if (got < space - have)
            return cornu__fail(CORNU_ERR_FORMAT, "its length is %lld bytes, the file has %lld more",
                               (long long)length, (long long)(have + got));
    }
    return cornu__record_check(reading->bytes, length);
}

/* Reads the next record of a file; *length is -1 at its end. */
static CornuStatus read_record(const CornuTfrecords *records, Reading *reading, File *file,
                               int number, int64_t *length)
{
    unsigned char head[CORNU__RECORD_HEAD];
    size_t        got;
    if (!file->open) {
        *file = (File){ .open = true };
        CORNU__TRY(cornu__stream_open(&file->stream, records->inputs, number,
                                      records->compression[number]));
    }
    CORNU__TRY(cornu__stream_read(&file->stream, head, sizeof head, &got));
    *length = -1;
    if (got == 0) {
        cornu__stream_close(&file->stream);
        file->open = false;
        return CORNU_OK;
    }
    if (got < sizeof head)
        return cornu__fail(CORNU_ERR_FORMAT, "%zu bytes are left, a record has at least %d", got,
                           CORNU__RECORD_AROUND);
    if (!cornu__record_head(head, length))
        return cornu__fail(CORNU_ERR_FORMAT, "wrong checksum of the length%s",
                           file->record ? "" : ": not a TFRecord file");
    return read_bytes(reading, &file->stream, *length);
}

/* The next record of all files, made an element of unless `to` is NULL; *there: there is one. */
static CornuStatus next_record(const CornuDataset *dataset, Reading *reading, void *const *to,
                               bool *there)
{
    const CornuTfrecords *records = dataset->own;
    for (int number; (number = cornu__interleave_file(&reading->order)) >= 0;) {
        File         *file = &reading->files[reading->order.turn];
        const int64_t at = file->open ? file->stream.place : 0;
        int64_t       length;
        CornuStatus   status = read_record(records, reading, file, number, &length);
        if (!status && length < 0) {
            cornu__interleave_ended(&reading->order);
            continue;
        }
        if (!status && to)
            status = cornu__tfrecord_element(records, reading->bytes, length, dataset, to);
        if (status) return cornu__tfrecord_fail(records, status, number, file->record, at);
        file->record++;
        cornu__interleave_taken(&reading->order);
        *there = true;
        return CORNU_OK;
    }
    *there = false;
    return CORNU_OK;
}

CornuStatus cornu__tfrecord_stream_next(CornuStage *stage, CornuSample at, void *const *to,
                                        int64_t *valid)
{
    bool there = false;
    (void)at;
    CORNU__TRY(next_record(stage->dataset, stage->own, to, &there));
    *valid = there;
    return CORNU_OK;
}

CornuStatus cornu__tfrecord_stream_pass(CornuStage *stage, CornuSample at, int64_t *count)
{
    bool there = true;
    (void)at;
    for (int64_t i = 0; i < *count; i++) {
        CORNU__TRY(next_record(stage->dataset, stage->own, NULL, &there));
        if (!there) *count = i;
    }
    return CORNU_OK;
}

void cornu__tfrecord_stream_close(CornuStage *stage)
{
    Reading *reading = stage->own;
    if (!reading) return;
    end_pass(reading);
    cornu__release(reading->bytes);
    cornu__release(reading);
    stage->own = NULL;
}
