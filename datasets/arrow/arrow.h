/*
 * Columns of Apache Arrow as a data set: record batches that another library of the same process
 * hands over by Arrow's C stream interface, without a copy, one at a time. Parquet files are read
 * so, and Arrow's own, CSV, ORC, tables of databases; a set may be larger than memory.
 *
 *     static CornuStatus open(void *context, int64_t epoch, struct ArrowArrayStream *stream)
 *     {
 *         ... of the library that has the data, such as
 *         ... garrow_record_batch_reader_export or arrow::ExportRecordBatchReader
 *     }
 *     const CornuFeature features[] = {
 *         { "height", .dtype = CORNU_F32 },
 *         { "words", CORNU_FEATURE_VAR, .dtype = CORNU_I32, .shape = cornu_shape(64) },
 *         { "photo", CORNU_FEATURE_IMAGE, .shape = cornu_shape(224, 224, 3), .resize = true },
 *         { .name = NULL },
 *     };
 *     CornuDataset *train = cornu_arrow_dataset(open, .context = files, .features = features);
 *
 * From Python cornu.data.from_parquet and cornu.data.from_arrow do the same.
 *
 * Sources: Apache Arrow, "The Arrow C data interface" and "The Arrow C stream interface", whose
 * structures are declared here as these say, so that no header of Arrow is needed.
 */
#ifndef CORNU_DATASETS_ARROW_H
#define CORNU_DATASETS_ARROW_H

#include "../pipeline/dataset.h"
#include "../records/feature.h"
#include "../tables/table.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char          *format, *name, *metadata;
    int64_t              flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void               (*release)(struct ArrowSchema *);   /* NULL once it is released */
    void                *private_data;
};

struct ArrowArray {
    int64_t             length, null_count, offset, n_buffers, n_children;
    const void        **buffers;
    struct ArrowArray **children, *dictionary;
    void              (*release)(struct ArrowArray *);
    void               *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {   /* functions return 0 or an error number */
    int         (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int         (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void        (*release)(struct ArrowArrayStream *);
    void         *private_data;
};
#endif

/* Makes a new stream of the same record batches, for a pass over them: for the columns when the
 * data set is made, then for each epoch and each iterator. The data set releases it. A status other
 * than CORNU_OK fails the read, with the message of cornu_error_set. */
typedef CornuStatus CornuArrowOpen(void *context, int64_t epoch, struct ArrowArrayStream *stream);

typedef struct {
    char                     unset;
    CornuArrowOpen          *open;      /* either this */
    struct ArrowArrayStream *stream;    /* or one stream, which is taken, also on failure, and read
                                           into memory now: its rows have a count */
    void                    *context;   /* for open; outlives the data set and its iterators */
    void                   (*close)(void *context);   /* called once, when it is not needed any
                                                         more, also on failure; NULL: nothing */
    const CornuFeature      *features;  /* columns, and what becomes of them; NULL: all of them */
    const char *const       *columns;   /* without features: these alone, NULL-terminated */
    CornuMissing             missing;   /* of a row that has a null in a column without a
                                           .default_value: refused, dropped, or kept, as NaN, which
                                           floats alone have */
} CornuArrowConfig;

/*
 * The rows as elements, in order, each with a component for each row of the table, whose .name is a
 * column, or "column.field" of a structure.
 *
 *     CORNU_FEATURE_FIXED   a number, or of a list as many as the shape has
 *     CORNU_FEATURE_VAR     a list of numbers, or of lists, padded; a null is an empty one
 *     CORNU_FEATURE_BYTES   a string, or bytes, as u8, padded
 *     CORNU_FEATURE_RAW     bytes that are numbers, little-endian
 *     CORNU_FEATURE_IMAGE   bytes that are an image file, also in the field `bytes` of a structure
 *
 * Numbers are whole ones of 8 to 64 bits, floats of 16 to 64, and bool; dates, times and durations
 * are their number of units. Whole ones become any dtype that holds them, floats floats. Of a
 * dictionary of numbers these are taken, of one of strings the index, unless the kind is of
 * strings.
 *
 * Without .features a component is a column: f64, f32 (also of f16), i64, i32, u32, u8 and bool,
 * i32 also of i8, i16, u16, dates and indices of dictionaries, i64 of u64; lists of a fixed size
 * are axes.
 *
 * The count is CORNU_UNKNOWN, unless the rows are in memory. NULL and a pending error:
 * CORNU_ERR_ARGUMENT, CORNU_ERR_DTYPE or CORNU_ERR_SHAPE for settings, CORNU_ERR_DATA, naming the
 * columns that there are, for one that there is not, CORNU_ERR_UNSUPPORTED for the types of other
 * columns, what `open` fails with. An element fails with row and column: CORNU_ERR_VALUE for a null
 * or a number that the dtype does not hold, CORNU_ERR_FORMAT for other lengths, images and strings
 * that are none, for a batch that is not as its schema says, and for what the library that reads
 * the file finds damaged, with its message.
 */
CornuDataset *cornu_arrow_dataset_from(const CornuArrowConfig *config);
#define cornu_arrow_dataset(...) \
    cornu_arrow_dataset_from(&(CornuArrowConfig){ .unset = 0, __VA_ARGS__ })

/* The name of the column of a component, owned by the data set; NULL for other data sets than those
 * that cornu_arrow_dataset makes with .open, and for the counts of padded components. */
const char *cornu_arrow_column(const CornuDataset *dataset, int component);

#ifdef __cplusplus
}
#endif
#endif
