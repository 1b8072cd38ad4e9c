/* What the files of tables share: reading (table.c), taking columns (table_take.c). */
#ifndef CORNU_DATASETS_TABLE_INTERNAL_H
#define CORNU_DATASETS_TABLE_INTERNAL_H

#include "table.h"

typedef struct {
    char   *name;             /* owned, as all below is */
    double *value;            /* of each row: a number, or the index of a category */
    char  **category;         /* sorted */
    int     category_count;   /* 0: the column holds numbers */
    int64_t unknown;          /* rows whose word is no category, and the first such word */
    char   *first_unknown;
} CornuColumn;

struct CornuTable {
    char        *name;        /* for messages */
    CornuColumn *column;
    int64_t     *line;        /* of each row */
    int          columns, rows;
    int64_t      dropped;
};

/* The column of a name, or -1. */
int cornu__table_column(const CornuTable *table, const char *name);

#endif
