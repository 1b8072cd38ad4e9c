/* Shared by table.c, which reads tables, and table_take.c, which copies columns. */
#ifndef CORNU_DATASETS_TABLE_INTERNAL_H
#define CORNU_DATASETS_TABLE_INTERNAL_H

#include "table.h"

typedef struct {
    char   *name;             /* owned, like everything below */
    double *value;            /* of each row: a number, or the index of a category */
    char  **category;         /* sorted */
    int     category_count;   /* 0 for a column of numbers */
    int64_t unknown;          /* rows with an unknown category, and the first such word */
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
