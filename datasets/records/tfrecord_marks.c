/* Places where compressed files can be entered, so that a training that goes on in the middle of an
 * epoch need not read them from the start. */
#include <string.h>

#include "../../device/memory_internal.h"
#include "tfrecord_internal.h"

int64_t cornu__tfrecord_every = 1 << 23;

/* A part of the cache. */
typedef struct {
    int64_t         record, place;   /* the number of the next record, and where it begins */
    int64_t         is_end;          /* of the file: no mark */
    CornuStreamMark mark;
} Entry;

/* A folder that CORNU_CACHE names may be another user's, and what is in it anything. */
static bool is_sound(const Entry *entry, int64_t size)
{
    const CornuStreamMark *mark = &entry->mark;
    return entry->record >= 0 && entry->place >= mark->place && mark->place >= 0 &&
           mark->at >= 0 && mark->at <= size && mark->bits >= 0 && mark->bits < 8 &&
           mark->byte >= 0 && mark->byte < 256 && mark->size >= 0 &&
           mark->size <= (int64_t)sizeof mark->window;
}

/* With its checksum: a wrong number of records would leave out some. `size`: of the file. */
static bool read_entry(const CornuRecordMarks *marks, int64_t i, int64_t size, Entry *entry)
{
    bool there = false;
    return !cornu__cache_read(&marks->cache, i, sizeof *entry, true, 0, entry, sizeof *entry,
                              &there) && there && is_sound(entry, size);
}

static bool add_record(CornuRecordMarks *marks, int64_t record)
{
    if (cornu__reserve(&marks->record, &marks->space, marks->count, 1, sizeof *marks->record))
        return false;
    marks->record[marks->count++] = record;
    return true;
}

void cornu__marks_open(CornuRecordMarks *marks, const CornuTfrecords *records, int file)
{
    char          identity[4200];
    CornuFailure  before;
    const int64_t size = cornu__inputs_size(records->inputs, file);
    *marks = (CornuRecordMarks){ .open = false };
    if (records->compression[file] == CORNU__PLAIN ||
        size < cornu__tfrecord_every / 8 ||
        !cornu__inputs_identity(records->inputs, file, identity, sizeof identity - 20))
        return;
    strcat(identity, "\nrecords");
    cornu__error_keep(&before);
    marks->open = cornu__cache_find(&marks->cache) == CORNU_OK;
    marks->cache.size = cornu__tfrecord_every;   /* marks at other distances are others */
    if (marks->open) marks->open = cornu__cache_open(&marks->cache, identity) == CORNU_OK;
    Entry *entry = marks->open ? cornu__allocate(1, sizeof *entry) : NULL;
    while (entry && !marks->whole && read_entry(marks, marks->count, size, entry) &&
           entry->record >= marks->known) {
        marks->known = entry->record;
        marks->whole = entry->is_end;
        if (!marks->whole && !add_record(marks, entry->record)) break;
    }
    cornu__release(entry);
    cornu__error_restore(&before);
}

void cornu__marks_close(CornuRecordMarks *marks)
{
    cornu__cache_close(&marks->cache);
    cornu__release(marks->record);
    *marks = (CornuRecordMarks){ .open = false };
}

void cornu__marks_add(CornuRecordMarks *marks, const CornuStreamMark *mark, int64_t record,
                      int64_t place)
{
    CornuCachedPart part = { .descriptor = -1 };
    CornuFailure    before;
    /* Those that are there are passed again. */
    if (!marks->open || marks->whole || (mark && record <= marks->known)) return;
    cornu__error_keep(&before);
    Entry      *entry = cornu__allocate(1, sizeof *entry);
    CornuStatus status = entry ? cornu__cached_begin(&part, &marks->cache, marks->count, false)
                               : CORNU_ERR_MEMORY;
    if (!status && part.descriptor >= 0) {
        *entry = (Entry){ .record = record, .place = place, .is_end = !mark };
        if (mark) entry->mark = *mark;
        status = cornu__cached_add(&part, entry, sizeof *entry);
        if (!status) status = cornu__cached_commit(&part);
    }
    cornu__cached_abandon(&part);
    cornu__release(entry);
    marks->open = !status && (!mark || add_record(marks, record));
    marks->known = record;
    marks->whole = !mark;
    cornu__error_restore(&before);
}

static bool move_to(CornuStream *stream, int64_t place)
{
    unsigned char some[4096];
    size_t        got = 1;
    while (stream->place < place && got) {
        const int64_t left = place - stream->place;
        if (cornu__stream_read(stream, some, left < (int64_t)sizeof some ? (size_t)left
                                                                         : sizeof some, &got))
            return false;
    }
    return stream->place == place;
}

bool cornu__marks_enter(CornuRecordMarks *marks, CornuStream *stream, CornuTfrecords *records,
                        int file, int64_t sought, int64_t *record)
{
    CornuFailure before;
    int64_t      i = marks->count - 1;
    while (i >= 0 && marks->record[i] > sought) i--;
    if (i < 0 || !marks->open) return false;
    cornu__error_keep(&before);
    Entry *entry = cornu__allocate(1, sizeof *entry);
    bool   entered = entry && read_entry(marks, i, cornu__inputs_size(records->inputs, file),
                                         entry) &&
                     !entry->is_end && entry->record == marks->record[i];
    if (entered) {
        entered = !cornu__stream_open_at(stream, records->inputs, file, records->compression[file],
                                         &entry->mark) && move_to(stream, entry->place);
        if (!entered) cornu__stream_close(stream);
    }
    if (entered) *record = entry->record;
    cornu__release(entry);
    if (!entered) cornu__error_restore(&before);
    return entered;
}
