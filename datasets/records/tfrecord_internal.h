/* Shared by the files of TFRecord. */
#ifndef CORNU_DATASETS_TFRECORD_INTERNAL_H
#define CORNU_DATASETS_TFRECORD_INTERNAL_H

#include "../../device/hash/crc32c_internal.h"
#include "../files/stream_internal.h"
#include "../remote/parts_internal.h"
#include "example_internal.h"
#include "interleave_internal.h"
#include "tfrecord.h"

/* Bytes before a record and after it. */
enum { CORNU__RECORD_HEAD = 12, CORNU__RECORD_TAIL = 4, CORNU__RECORD_AROUND = 16 };

typedef struct {
    CornuInputs      *inputs;
    CornuFeatureTable table;         /* without rows: elements are the records */
    int64_t           cycle, block;
    CornuCompression *compression;   /* owned: of each file, if some are compressed */
    /* Else the places of all records, file by file, in their files. */
    int64_t          *start;         /* owned */
    int64_t          *first;         /* owned: of each file the number of its first record, then
                                        the count of all */
    uint32_t         *order;         /* owned: of the records, NULL: as they are */
} CornuTfrecords;

/* Whether the first bytes of a header have their checksum, and the length that they say. */
bool cornu__record_head(const unsigned char *head, int64_t *length);

/* Whether a record has the checksum that follows its bytes: CORNU_ERR_FORMAT. */
CornuStatus cornu__record_check(const unsigned char *bytes, int64_t length);

/* Finds all records of plain files. Errors name file, record and byte. */
CornuStatus cornu__tfrecord_index(CornuTfrecords *records);

/* Makes an element of a record of `length` bytes. Errors do not name the record. */
CornuStatus cornu__tfrecord_element(const CornuTfrecords *records, const unsigned char *bytes,
                                    int64_t length, const CornuDataset *dataset, void *const *to);

/* "FILE: record 7 at byte 1234: …" */
CornuStatus cornu__tfrecord_fail(const CornuTfrecords *records, CornuStatus status, int file,
                                 int64_t record, int64_t at);

/* ---- Marks of compressed files: tfrecord_marks.c ---- */

/* Inflated bytes between the places where a file can be entered, 32 KB each in the user's cache
 * (remote/parts_internal.h); smaller files have none. Tests change it. */
extern int64_t cornu__tfrecord_every;

/* The marks of one file: those that were noted when it was read before, by any program. */
typedef struct {
    CornuCache cache;
    bool       open;       /* there may be marks */
    int        count, space;   /* of marks */
    int64_t   *record;     /* owned: of each, the number of the record that begins after it */
    int64_t    known;      /* records that the file is known to have, at least */
    bool       whole;      /* and no others */
} CornuRecordMarks;

/* Finds them. What fails leaves the file without marks: nothing is reported. */
void cornu__marks_open(CornuRecordMarks *marks, const CornuTfrecords *records, int file);
void cornu__marks_close(CornuRecordMarks *marks);

/* Adds the mark after which record `record` begins, at an inflated place; a mark NULL: the end of
 * the file, of so many records. */
void cornu__marks_add(CornuRecordMarks *marks, const CornuStreamMark *mark, int64_t record,
                      int64_t place);

/* Opens a stream at the last mark that is not after a record, and moves to the record after it,
 * whose number is *record. false: there is none, and the stream is not open. */
bool cornu__marks_enter(CornuRecordMarks *marks, CornuStream *stream, CornuTfrecords *records,
                        int file, int64_t sought, int64_t *record);

/* Data sets of compressed files, whose records come in turn: tfrecord_stream.c. */
CornuStatus cornu__tfrecord_stream_begin(CornuStage *stage, int64_t epoch);
CornuStatus cornu__tfrecord_stream_next(CornuStage *stage, CornuSample at, void *const *to,
                                        int64_t *valid);
CornuStatus cornu__tfrecord_stream_pass(CornuStage *stage, CornuSample at, int64_t *count);
void        cornu__tfrecord_stream_close(CornuStage *stage);

#endif
