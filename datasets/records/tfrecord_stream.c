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
    CornuRecordMarks *marks;   /* owned: of each file; found when it is opened */
    bool           *found;     /* owned */
    unsigned char  *bytes;  /* of a record */
    size_t          space;
} Reading;

static void end_pass(Reading *reading)
{
    for (int i = 0; reading->files && i < reading->order.cycle; i++)
        if (reading->files[i].open) cornu__stream_close(&reading->files[i].stream);
    cornu__release(reading->files);
    for (int i = 0; reading->marks && i < reading->order.files; i++)
        cornu__marks_close(&reading->marks[i]);
    cornu__release(reading->marks);
    cornu__release(reading->found);
    reading->marks = NULL;
    reading->found = NULL;
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
    const size_t files = (size_t)reading->order.files;
    reading->files = cornu__allocate((size_t)reading->order.cycle, sizeof *reading->files);
    reading->marks = cornu__allocate(files, sizeof *reading->marks);
    reading->found = cornu__allocate(files, sizeof *reading->found);
    return reading->files && reading->marks && reading->found ? CORNU_OK : CORNU_ERR_MEMORY;
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

static CornuRecordMarks *marks_of(const CornuTfrecords *records, Reading *reading, int number)
{
    if (!reading->found[number])
        cornu__marks_open(&reading->marks[number], records, number);
    reading->found[number] = true;
    return &reading->marks[number];
}

/* Opens a file at its start, or at the last mark that is not after a record. */
static CornuStatus open_file(const CornuTfrecords *records, Reading *reading, File *file,
                             int number, int64_t sought)
{
    CornuRecordMarks *marks = marks_of(records, reading, number);
    *file = (File){ .open = true };
    if (!sought || !cornu__marks_enter(marks, &file->stream, (CornuTfrecords *)records, number,
                                       sought, &file->record)) {
        file->record = 0;
        CORNU__TRY(cornu__stream_open(&file->stream, records->inputs, number,
                                      records->compression[number]));
    }
    return marks->open && !marks->whole
               ? cornu__stream_note_marks(&file->stream, cornu__tfrecord_every) : CORNU_OK;
}

/* Reads the next record of a file; *length is -1 at its end. */
static CornuStatus read_record(const CornuTfrecords *records, Reading *reading, File *file,
                               int number, int64_t *length)
{
    unsigned char head[CORNU__RECORD_HEAD];
    size_t        got;
    if (!file->open) CORNU__TRY(open_file(records, reading, file, number, 0));
    const CornuStreamMark *mark = cornu__stream_passed(&file->stream);
    if (mark)
        cornu__marks_add(&reading->marks[number], mark, file->record, file->stream.place);
    CORNU__TRY(cornu__stream_read(&file->stream, head, sizeof head, &got));
    *length = -1;
    if (got == 0) {
        cornu__marks_add(&reading->marks[number], NULL, file->record, file->stream.place);
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

/* ---- Passing records ---- */

/* Moves the order on by up to `count` records that files are known to have; used[f] is how many
 * have been taken of a file. Returns the number. */
static int64_t pass_known(const CornuTfrecords *records, Reading *reading, CornuInterleave *order,
                          int64_t *used, int64_t count)
{
    int64_t passed = 0;
    for (int number; passed < count && (number = cornu__interleave_file(order)) >= 0;) {
        const CornuRecordMarks *marks = marks_of(records, reading, number);
        if (used[number] < marks->known) {
            used[number]++;
            passed++;
            cornu__interleave_taken(order);
        } else if (marks->whole) {
            cornu__interleave_ended(order);
        } else {
            break;
        }
    }
    return passed;
}

/* Moves the file of a slot to a record: from where it is, or from a mark. */
static CornuStatus move_file(const CornuTfrecords *records, Reading *reading, File *file,
                             int number, bool same, int64_t sought)
{
    const CornuRecordMarks *marks = &reading->marks[number];
    bool                    mark = false;
    same = same && file->open;
    for (int64_t i = 0; i < marks->count; i++)
        mark = mark || (marks->record[i] <= sought &&
                        marks->record[i] > (same ? file->record : 0));
    if (!same || mark) {
        if (file->open) cornu__stream_close(&file->stream);
        CORNU__TRY(open_file(records, reading, file, number, sought));
    }
    while (file->record < sought) {
        int64_t       length;
        const int64_t at = file->open ? file->stream.place : 0;
        CornuStatus   status = read_record(records, reading, file, number, &length);
        if (!status && length < 0)
            status = cornu__fail(CORNU_ERR_FORMAT, "the file ends; it had more records when it was "
                                 "read before");
        if (status) return cornu__tfrecord_fail(records, status, number, file->record, at);
        file->record++;
    }
    return CORNU_OK;
}

/* Passes as many records as files are known to have from reading them before. */
static CornuStatus pass_by_marks(const CornuTfrecords *records, Reading *reading, int64_t count,
                                 int64_t *passed)
{
    CornuInterleave *now = &reading->order, order = *now;
    const size_t     slots = (size_t)now->cycle;
    int64_t         *used = cornu__allocate((size_t)now->files, sizeof *used);
    order.slot = cornu__allocate(slots, sizeof *order.slot);
    CornuStatus status = used && order.slot ? CORNU_OK : CORNU_ERR_MEMORY;
    *passed = 0;
    if (!status) {
        memcpy(order.slot, now->slot, slots * sizeof *order.slot);
        for (size_t i = 0; i < slots; i++)
            if (now->slot[i] >= 0 && reading->files[i].open)
                used[now->slot[i]] = reading->files[i].record;
        *passed = pass_known(records, reading, &order, used, count);
    }
    for (size_t i = 0; i < slots && !status && *passed; i++) {
        File *file = &reading->files[i];
        if (order.slot[i] >= 0)
            status = move_file(records, reading, file, order.slot[i],
                               order.slot[i] == now->slot[i], used[order.slot[i]]);
        else if (file->open)
            cornu__stream_close(&file->stream), file->open = false;
    }
    if (!status && *passed) {
        cornu__release(now->slot);
        *now = order;
        order.slot = NULL;
    }
    cornu__release(order.slot);
    cornu__release(used);
    return status;
}

CornuStatus cornu__tfrecord_stream_pass(CornuStage *stage, CornuSample at, int64_t *count)
{
    const CornuTfrecords *records = stage->dataset->own;
    bool                  there = true;
    int64_t               passed = 0;
    (void)at;
    CORNU__TRY(pass_by_marks(records, stage->own, *count, &passed));
    for (; passed < *count; passed++) {
        CORNU__TRY(next_record(stage->dataset, stage->own, NULL, &there));
        if (!there) *count = passed;
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
