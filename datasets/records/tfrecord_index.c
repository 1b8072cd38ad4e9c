/* Where the records of plain files are. */
#include "tfrecord_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"

typedef struct {
    CornuTfrecords *records;
    CornuReader     reader;
    int             file;
    int64_t         count, space;      /* of all records so far */
} Scan;

static CornuStatus add_record(Scan *scan, int64_t at)
{
    CornuTfrecords *records = scan->records;
    if (scan->count == scan->space) {
        const int64_t space = scan->space ? 2 * scan->space : 1024;
        int64_t      *more = cornu__allocate((size_t)space, sizeof *more);
        if (!more) return CORNU_ERR_MEMORY;
        if (scan->count) memcpy(more, records->start, (size_t)scan->count * sizeof *more);
        cornu__release(records->start);
        records->start = more;
        scan->space = space;
    }
    records->start[scan->count++] = at;
    return CORNU_OK;
}

/* The record at byte `at`; *length is that of its bytes. */
static CornuStatus check_record(Scan *scan, int64_t at, int64_t *length)
{
    const int64_t        left = cornu__inputs_size(scan->records->inputs, scan->file) - at;
    const unsigned char *head;
    if (left < CORNU__RECORD_AROUND)
        return cornu__fail(CORNU_ERR_FORMAT, "%lld bytes are left, a record has at least %d",
                           (long long)left, CORNU__RECORD_AROUND);
    CORNU__TRY(cornu__reader_get(&scan->reader, scan->file, at, CORNU__RECORD_HEAD, &head));
    if (!cornu__record_head(head, length))
        return cornu__fail(CORNU_ERR_FORMAT, "wrong checksum of the length%s",
                           at ? "" : ": not a TFRecord file");
    if (*length <= left - CORNU__RECORD_AROUND) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "its length is %lld bytes, the file has %lld more",
                       (long long)*length, (long long)(left - CORNU__RECORD_AROUND));
}

static CornuStatus scan_file(Scan *scan)
{
    CornuTfrecords *records = scan->records;
    const int64_t   size = cornu__inputs_size(records->inputs, scan->file), first = scan->count;
    records->first[scan->file] = first;
    for (int64_t at = 0, length; at < size; at += length + CORNU__RECORD_AROUND) {
        CornuStatus status = check_record(scan, at, &length);
        if (!status) status = add_record(scan, at);
        if (status)
            return cornu__tfrecord_fail(records, status, scan->file, scan->count - first, at);
    }
    return CORNU_OK;
}

/* The order of records that are taken from several files in turn. */
static CornuStatus make_order(CornuTfrecords *records, int files, int64_t count)
{
    CornuInterleave order;
    if (records->cycle < 2 || files < 2) return CORNU_OK;
    if (count > UINT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tfrecord: .cycle_length with %lld records, "
                           "expected at most %lld", (long long)count, (long long)UINT32_MAX);
    records->order = cornu__allocate((size_t)count, sizeof *records->order);
    int64_t    *used = cornu__allocate((size_t)files, sizeof *used);
    CornuStatus status = cornu__interleave_begin(&order, files, records->cycle, records->block);
    if (!records->order || !used) status = CORNU_ERR_MEMORY;
    for (int64_t i = 0; !status && i < count;) {
        const int     file = cornu__interleave_file(&order);
        const int64_t record = records->first[file] + used[file];
        if (record < records->first[file + 1]) {
            records->order[i++] = (uint32_t)record;
            used[file]++;
            cornu__interleave_taken(&order);
        } else {
            cornu__interleave_ended(&order);
        }
    }
    cornu__interleave_free(&order);
    cornu__release(used);
    return status;
}

CornuStatus cornu__tfrecord_index(CornuTfrecords *records)
{
    const int files = cornu__inputs_count(records->inputs);
    Scan      scan = { .records = records, .reader = { .inputs = records->inputs } };
    records->first = cornu__allocate((size_t)files + 1, sizeof *records->first);
    CornuStatus status = records->first ? CORNU_OK : CORNU_ERR_MEMORY;
    for (; scan.file < files && !status; scan.file++) status = scan_file(&scan);
    cornu__reader_close(&scan.reader);
    if (status) return status;
    records->first[files] = scan.count;
    return make_order(records, files, scan.count);
}
