/* Shared by the files of tables: table.c scans a CSV, table_rows.c reads rows, table_take.c copies
 * columns, table_dataset.c is a data set of rows. */
#ifndef CORNU_DATASETS_TABLE_INTERNAL_H
#define CORNU_DATASETS_TABLE_INTERNAL_H

#include <stdatomic.h>

#include "table.h"
#include "table_text_internal.h"

typedef struct {
    char   *name;             /* owned, like everything below */
    double *value;            /* of each row, but of a table on disk: a number, NaN if missing, or
                                 the index of a category, -1 if unknown or missing */
    char  **category;         /* sorted */
    int     category_count;   /* 0 for a column of numbers */
    int64_t unknown;          /* rows with an unknown category, and the first such word */
    char   *first_unknown;
} CornuColumn;

/* Where a row begins. */
typedef struct { int64_t byte, line; } CornuTableMark;

struct CornuTable {
    atomic_int   owners;
    char        *name;        /* for messages */
    CornuColumn *column;
    int          columns;
    int64_t      rows, dropped;
    int64_t     *line;        /* of each row, but of a table on disk */
    /* Of a table on disk: */
    bool            on_disk;
    CornuInput      input;
    int64_t         changed;           /* time of change of the file, in ns, when scanned */
    CornuTableMark *mark;              /* of every so many rows, and of the end */
    int64_t         marks, interval;
    int            *field;             /* the column of each field of a line, or -1 */
    int             fields;
    char            delimiter;
    char          **missing_values;    /* NULL-terminated; NULL: the usual ones */
    CornuMissing    missing;
};

/* Rows not parsed from text: a column for each name. */
typedef struct {
    const char *const *names;
    int                count;
    /* Sets a field for each column, valid until the next call, of which one that is missing is
     * empty; *more is false after the last row. */
    CornuStatus      (*next)(void *own, CornuField *field, bool *more);
    void              *own;
} CornuTableSource;

/* A table of all its rows, in memory, whose lines are the rows, from 1; `name` is for messages.
 * NULL with an error. */
CornuTable *cornu__table_read(const CornuTableConfig *config, const char *name,
                              const CornuTableSource *source);

/* The column of a name, or -1. */
int cornu__table_column(const CornuTable *table, const char *name);

/* The index of a word in sorted categories, or -1. */
int cornu__category_of(char *word, char *const *category, int count);

/* Whether a field is one of `own`, NULL-terminated; NULL: of pandas' missing values. */
bool cornu__table_missing(const CornuField *field, char *const *own);

/* Reads the fields of a line, one for each column of the file. */
CornuStatus cornu__table_fields(CornuTableText *text, CornuField *field, int count);

/* ---- Rows: table_rows.c ---- */

/* The time of change of a file, in ns; -1 if it has another size than when it was opened, 0 of one
 * that is not of this machine. */
int64_t cornu__table_changed(const CornuInput *input);

/* Adds the place of row `row`, all of which come in order; and the place of the end. */
CornuStatus cornu__table_mark(CornuTable *table, int64_t row, CornuTableMark mark);
CornuStatus cornu__table_mark_end(CornuTable *table, CornuTableMark mark);

/* Reads rows of a table in any order, several readers at a time. */
typedef struct {
    const CornuTable *table;
    double           *value;    /* owned: of each column */
    CornuTableText    text;     /* of a table on disk, at row `next` */
    CornuField       *field;    /* owned */
    int64_t           next;     /* -1: nowhere */
} CornuTableRows;

/* Close the rows in any case. */
CornuStatus cornu__table_rows_open(CornuTableRows *rows, const CornuTable *table);
void        cornu__table_rows_close(CornuTableRows *rows);
/* Sets rows->value to those of a row. */
CornuStatus cornu__table_row(CornuTableRows *rows, int64_t row);

/* ---- Columns: table_take.c ---- */

/* The selected columns, *count of them, to be freed by the caller; NULL on failure. */
int *cornu__table_choose(const CornuTableTakeConfig *config, const CornuTable *table, int *count);
/* The number of columns that they become. */
int64_t cornu__table_width(const CornuTableTakeConfig *config, const CornuTable *table,
                           const int *chosen, int count);
/* Writes the values of a row, as many as the width, from element `at` on; the elements are 0. */
CornuStatus cornu__table_put(const CornuTableTakeConfig *config, const CornuTable *table,
                             const int *chosen, int count, int64_t row, const double *value,
                             CornuArray to, int64_t at);

#endif
