/*
 * Tables of numbers and words: CSV files with a header.
 *
 *     const char *const target[] = { "species", NULL };
 *     CornuTable *table = cornu_table_load("iris.csv");
 *     CornuArray  x, y;
 *     cornu_table_take(table, &x, .except = target);
 *     cornu_table_take(table, &y, .columns = target, .dtype = CORNU_I32);
 *
 * A column has numbers, or words: categories, represented by their index in the sorted list of
 * categories. Numbers are as in the file; normalizing them is left to the caller. A file that is
 * larger than memory is read .on_disk: its values stay there.
 *
 * Files follow RFC 4180: the first line names the columns; quoted fields may contain delimiters,
 * line ends and doubled quotes; lines end in LF, CR LF or CR; a byte-order mark is skipped. In
 * addition, empty lines are skipped and blanks around fields trimmed, and a column without a name
 * is called "Unnamed: 0" by its number from 0, as in pandas.
 */
#ifndef CORNU_DATASETS_TABLE_H
#define CORNU_DATASETS_TABLE_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuTable CornuTable;

/* If a row has a missing value: fail, drop the row, or keep it, as pandas does: as NaN, or as index
 * -1 of a category, whose one-hot columns are all 0. */
typedef enum { CORNU_MISSING_REFUSED, CORNU_MISSING_DROPPED, CORNU_MISSING_KEPT } CornuMissing;

/* If, with .like, a word is not among the categories: fail, or use index -1, whose one-hot columns
 * are all 0. */
typedef enum { CORNU_UNKNOWN_REFUSED, CORNU_UNKNOWN_KEPT } CornuUnknown;

typedef struct {
    char               unset;
    const char        *file;        /* required: a path, or an address, see ../README.md */
    char               delimiter;   /* default ',' */
    const char *const *columns;     /* those to read, NULL-terminated; default all */
    const char *const *categories;  /* columns of words that look like numbers, NULL-terminated */
    const char *const *missing_values; /* strings that mean a missing value, besides the empty
                                       string; default those of pandas: NA, N/A, NaN, nan, null,
                                       NULL, None, #N/A, <NA>, 1.#IND, … */
    CornuMissing       missing;
    const CornuTable  *like;        /* the table that a model was trained on: of the columns only
                                       those of that table are read, with its categories;
                                       .categories is then ignored */
    CornuUnknown       unknown;
    bool               on_disk;     /* read the file once for kinds, categories and the places of
                                       rows, and rows again when they are needed. It stays open, and
                                       must not change */
} CornuTableConfig;

/* Limits; of bytes not for a table on disk, which needs 8 MB besides its categories, of which a
 * column has at most 2^20. A line has at most 64 MiB. */
enum { CORNU_MAX_TABLE_COLUMNS = 16384, CORNU_MAX_TABLE_BYTES = 1 << 29,
       CORNU_MAX_TABLE_CATEGORIES = 1 << 20 };

/*
 * Reads a file of at most CORNU_MAX_TABLE_BYTES. NULL and an error, not pending, naming line and
 * column: CORNU_ERR_FILE if it cannot be read; CORNU_ERR_FORMAT if it is not such a table, is
 * larger, or rows differ in length; CORNU_ERR_VALUE for missing values, for a column with numbers
 * and words that is not listed in .categories, and, with .like, for an unknown category;
 * CORNU_ERR_DATA if there are no rows; CORNU_ERR_ARGUMENT for a column that does not exist.
 */
#define cornu_table_load(...) \
    cornu_table_load_from(&(CornuTableConfig){ .unset = 0, __VA_ARGS__ })
CornuTable *cornu_table_load_from(const CornuTableConfig *config);

/* The same from memory; `name` is used as the file name in messages. */
CornuTable *cornu_table_parse(const char *bytes, size_t size, const char *name,
                              const CornuTableConfig *config);

/* Once, while data sets of its rows may go on; NULL is ignored. */
void cornu_table_free(CornuTable *table);

int64_t     cornu_table_rows(const CornuTable *table);     /* those that it has               */
int64_t     cornu_table_dropped(const CornuTable *table);  /* rows left out, a value missing  */
int         cornu_table_columns(const CornuTable *table);  /* all, numbers and categories     */
/* The name of a column, from 0, owned by the table. */
const char *cornu_table_column_name(const CornuTable *table, int column);

/* The line of the file on which a row starts, counted from 1, the line of column names. */
int64_t cornu_table_line(const CornuTable *table, int64_t row);

/* The number of rows of a column with an unknown category; *first gets the first such word, owned
 * by the table, or NULL. */
int64_t cornu_table_unknown(const CornuTable *table, int column, const char **first);

/* The index of a column; -1 and CORNU_ERR_ARGUMENT, not pending, naming the most similar one. */
int cornu_table_find(const CornuTable *table, const char *name);

/* The categories of a column, *count of them, in byte order, owned by the table; NULL and 0 for
 * numbers. */
const char *const *cornu_table_categories(const CornuTable *table, int column, int *count);

typedef struct {
    char               unset;
    const CornuTable  *table;
    CornuArray        *to;       /* required: gets (rows, n) */
    const char *const *columns;  /* in this order, NULL-terminated; default all */
    const char *const *except;   /* excluded, NULL-terminated */
    CornuDtype         dtype;    /* CORNU_F32, the default, or CORNU_I32 */
    bool               one_hot;  /* one column per category: 1 for the row's category, else 0 */
} CornuTableTakeConfig;

/*
 * Copies columns into new memory, to be freed with free(). CORNU_ERR_ARGUMENT for a column that
 * does not exist or if there are none; CORNU_ERR_VALUE, naming column and row, for a number that
 * overflows the dtype or, for i32, is not an integer, such as NaN; CORNU_ERR_MEMORY beyond the
 * limit of memory.h, naming the column with the most categories.
 */
#define cornu_table_take(...) \
    cornu_table_take_from(&(CornuTableTakeConfig){ .unset = 0, __VA_ARGS__ })
CornuStatus cornu_table_take_from(const CornuTableTakeConfig *config);

/*
 * The schema of a table, which is stored with a model in order to read new data: a CSV line for
 * each column, its name followed by its categories, if it is not numeric.
 *
 *     area
 *     town,Bonn,"Halle, Saale",Ulm
 *
 * Of the columns named, NULL-terminated (NULL: all); to be freed with free(). NULL, not pending,
 * and CORNU_ERR_ARGUMENT for a column that does not exist.
 */
char       *cornu_table_schema(const CornuTable *table, const char *const *columns);
/* A table without rows from a schema, for .like. NULL and CORNU_ERR_FORMAT, not pending, if it is
 * not valid. */
CornuTable *cornu_table_schema_parse(const char *schema);

#ifdef __cplusplus
}
#endif
#endif
