/*
 * Tables of numbers and words: CSV files with a header.
 *
 *     const char *const target[] = { "species", NULL };
 *     CornuTable *table = cornu_table_load("iris.csv");
 *     CornuArray  x, y;
 *     cornu_table_take(table, &x, .except = target);
 *     cornu_table_take(table, &y, .columns = target, .dtype = CORNU_I32);
 *
 * A column holds numbers, or words: categories, which stand as their index in the sorted list of
 * them. Numbers are as in the file; bringing columns to one scale is left to the caller.
 *
 * The files: RFC 4180. A first line names the columns; fields may stand in double quotes, with
 * delimiters, line ends and doubled quotes in them; lines end in LF or CR LF, a byte-order mark is
 * skipped. Beyond that, empty lines are passed over and blanks around fields without quotes too.
 */
#ifndef CORNU_DATASETS_TABLE_H
#define CORNU_DATASETS_TABLE_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuTable CornuTable;

/* What becomes of a row where a value is missing: the table is refused, or the row left out. */
typedef enum { CORNU_MISSING_REFUSED, CORNU_MISSING_DROPPED } CornuMissing;

/* What becomes, with .like, of a word that is none of the categories: the table is refused, or the
 * word's index is -1 and its one-hot columns are all 0. */
typedef enum { CORNU_UNKNOWN_REFUSED, CORNU_UNKNOWN_KEPT } CornuUnknown;

typedef struct {
    char               unset;
    const char        *file;        /* required */
    char               delimiter;   /* default ',' */
    const char *const *categories;  /* columns that hold words though they look like numbers, up to
                                       a NULL */
    const char *const *missing_values; /* texts that stand for a missing value, besides an empty
                                       one; default NA, N/A, NaN, nan, null, NULL */
    CornuMissing       missing;
    const CornuTable  *like;        /* new data for a model that learnt from that table: its columns
                                       are read as far as they are there, with its categories,
                                       others not; .categories then do not count */
    CornuUnknown       unknown;
} CornuTableConfig;

enum { CORNU_MAX_TABLE_COLUMNS = 16384, CORNU_MAX_TABLE_BYTES = 1 << 29 };

/*
 * Reads a file of at most CORNU_MAX_TABLE_BYTES. NULL and an error, not pending, naming line and
 * column: CORNU_ERR_FILE if it cannot be read; CORNU_ERR_FORMAT if it is no such table, is larger,
 * or rows differ in length; CORNU_ERR_VALUE for missing values, a column that has numbers and words
 * and is not among .categories, or, with .like, a word that is none of the categories;
 * CORNU_ERR_DATA without rows; CORNU_ERR_ARGUMENT for a column that is not there.
 */
#define cornu_table_load(...) \
    cornu_table_load_from(&(CornuTableConfig){ .unset = 0, __VA_ARGS__ })
CornuTable *cornu_table_load_from(const CornuTableConfig *config);

/* The same from memory; `name` stands in messages for the file. */
CornuTable *cornu_table_parse(const char *bytes, size_t size, const char *name,
                              const CornuTableConfig *config);

void cornu_table_free(CornuTable *table);

/* Rows that were kept, and those left out for a missing value. */
int64_t     cornu_table_rows(const CornuTable *table);
int64_t     cornu_table_dropped(const CornuTable *table);
int         cornu_table_columns(const CornuTable *table);
const char *cornu_table_column_name(const CornuTable *table, int column);

/* The line of the file that a row begins on; the first one is 1, the column names'. */
int64_t cornu_table_line(const CornuTable *table, int64_t row);

/* How many rows of a column have a word that is none of the categories, and in *first, if there are
 * any, the first of these words, which is the table's. */
int64_t cornu_table_unknown(const CornuTable *table, int column, const char **first);

/* The column of a name; -1 and CORNU_ERR_ARGUMENT, not pending, naming the nearest one. */
int cornu_table_find(const CornuTable *table, const char *name);

/* The categories of a column, *count of them, sorted by their bytes; NULL and 0 of numbers. They
 * are the table's. */
const char *const *cornu_table_categories(const CornuTable *table, int column, int *count);

typedef struct {
    char               unset;
    const CornuTable  *table;
    CornuArray        *to;       /* required: gets (rows, n) */
    const char *const *columns;  /* in this order, up to a NULL; default all in theirs */
    const char *const *except;   /* of them, up to a NULL */
    CornuDtype         dtype;    /* CORNU_F32, the default, or CORNU_I32 */
    bool               one_hot;  /* categories become a column for each: 1 for the one, else 0 */
} CornuTableTakeConfig;

/*
 * Copies columns into new memory, which free() frees. CORNU_ERR_ARGUMENT for a column that is not
 * there or none at all; CORNU_ERR_VALUE, naming column and row, for a number that the dtype does
 * not hold: beyond f32, or not whole for i32; CORNU_ERR_MEMORY beyond the limit of memory.h, naming
 * the column of the most categories.
 */
#define cornu_table_take(...) \
    cornu_table_take_from(&(CornuTableTakeConfig){ .unset = 0, __VA_ARGS__ })
CornuStatus cornu_table_take_from(const CornuTableTakeConfig *config);

/*
 * What a model's file keeps of a table, to read new data by: a CSV line for each column, its name
 * and then its categories, none of numbers.
 *
 *     area
 *     town,Bonn,"Halle, Saale",Ulm
 *
 * cornu_table_schema writes it, of the columns named up to a NULL (NULL: all), into memory that
 * free() frees; NULL, not pending, and CORNU_ERR_ARGUMENT for a column that is not there.
 * cornu_table_schema_parse makes a table without rows of it, for .like; NULL and an error, not
 * pending, CORNU_ERR_FORMAT for a text that is not one.
 */
char       *cornu_table_schema(const CornuTable *table, const char *const *columns);
CornuTable *cornu_table_schema_parse(const char *schema);

#ifdef __cplusplus
}
#endif
#endif
