/*
 * Parquet files as a data set, by Arrow's GLib library, libparquet-glib.so, which is loaded when
 * the first file is opened. Debian has no package of it; https://arrow.apache.org/install names
 * those of Apache Arrow.
 *
 *     const char *const columns[] = { "height", "weight", "age", NULL };
 *     CornuDataset *rows = cornu_parquet_dataset("people-*.parquet", .columns = columns);
 *     CornuTable   *table = cornu_parquet_table("people.parquet");    with columns of words
 *
 * From Python cornu.data.from_parquet reads them by pyarrow.
 */
#ifndef CORNU_DATASETS_PARQUET_H
#define CORNU_DATASETS_PARQUET_H

#include "arrow.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char                unset;
    const char         *file;       /* a path, or a pattern such as "train-*.parquet", whose files
                                       are sorted by byte, or "train-{00..37}.parquet"; or an
                                       address, see ../README.md */
    const CornuFeature *features;   /* these and the next three as in CornuArrowConfig */
    const char *const  *columns;
    CornuMissing        missing;
    const char *const  *files;      /* instead of .file: several, NULL-terminated */
} CornuParquetConfig;

/*
 * The rows of the files, one file after the other, as elements of cornu_arrow_dataset, which has
 * their components and errors; cornu_arrow_column names them. A row group of a file is in memory at
 * a time, and of it the columns that are asked for. Of a file of another machine a copy is on the
 * disk while it is read. The count is CORNU_UNKNOWN.
 *
 * NULL and a pending error, also: CORNU_ERR_UNSUPPORTED without the library, saying where it is and
 * what else reads the files; CORNU_ERR_FILE for files that cannot be read; CORNU_ERR_DATA for a
 * pattern that matches none, and for columns that are of another type in another file.
 */
CornuDataset *cornu_parquet_dataset_from(const CornuParquetConfig *config);
#define cornu_parquet_dataset(...) \
    cornu_parquet_dataset_from(&(CornuParquetConfig){ .unset = 0, __VA_ARGS__ })

/*
 * All rows of the file, or of those that match a pattern, as a table, in memory: .file, .columns,
 * .categories, .missing, .missing_values, .like and .unknown as of cornu_table_load. Columns are
 * numbers, dates, times and bool as such, and words: strings, and dictionaries of them. Nulls, NaN
 * and empty strings are missing values. cornu_table_line is the number of a row, from 1.
 *
 * NULL and an error, not pending, as of cornu_table_load and, for files and library, as above;
 * CORNU_ERR_UNSUPPORTED for lists and structures.
 */
#define cornu_parquet_table(...) \
    cornu_parquet_table_from(&(CornuTableConfig){ .unset = 0, __VA_ARGS__ })
CornuTable *cornu_parquet_table_from(const CornuTableConfig *config);

#ifdef __cplusplus
}
#endif
#endif
