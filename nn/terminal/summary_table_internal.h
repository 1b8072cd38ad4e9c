/* The contents of a summary, gathered from a model by model/summary.c, and the table of them. */
#ifndef CORNU_NN_SUMMARY_TABLE_INTERNAL_H
#define CORNU_NN_SUMMARY_TABLE_INTERNAL_H

#include "../../device/type.h"
#include "terminal.h"

typedef struct {
    const char *name, *class_name;
    bool        built;
    CornuShape  output;              /* once built */
    int64_t     parameters;
    bool        has_weights, frozen;
    char       *connected;           /* "dense[0][0], add[0][0]" if layers branch, or NULL */
    int         depth;               /* of nesting within the model that is summarized */
    CornuShape *more;                /* its other outputs, or NULL */
    int         more_count;
} CornuSummaryRow;

typedef struct { int64_t count, bytes; } CornuSummaryTotal;

typedef struct {
    const char       *name;
    CornuSummaryRow  *rows;
    int               row_count;
    CornuSummaryTotal trainable, non_trainable, optimizer;
    bool              optimizer_built;
    bool              branching;     /* with a column for where the inputs of layers come from */
    int               row_space;
} CornuSummary;

/* line_length 0 is the width of the terminal less 4, at most 88, or 108 if layers branch (12 more
 * with show_trainable). */
CornuStatus cornu__summary_print(const CornuSummary *summary, int64_t line_length,
                                 bool show_trainable, CornuTerminal terminal, FILE *file);

/* "93,322" and "364.54 KB" */
const char *cornu__print_thousands(CornuText *to, int64_t number);
const char *cornu__print_size(CornuText *to, double bytes);

#endif
