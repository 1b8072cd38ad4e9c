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
    char       *connected;           /* "dense[0][0], add[0][0]", where layers branch, or NULL */
    int         depth;               /* models that it is in, below the one that is summed up */
    CornuShape *more;                /* those that it gives besides, or NULL */
    int         more_count;
} CornuSummaryRow;

typedef struct { int64_t count, bytes; } CornuSummaryTotal;

typedef struct {
    const char       *name;
    CornuSummaryRow  *rows;
    int               row_count;
    CornuSummaryTotal trainable, non_trainable, optimizer;
    bool              optimizer_built;
    bool              branching;     /* says where each layer's inputs come from */
    int               row_space;
} CornuSummary;

/* line_length 0: as much as the terminal has, at most 88, or 108 where layers branch
 * (12 more with show_trainable). */
CornuStatus cornu__summary_print(const CornuSummary *summary, int64_t line_length,
                                 bool show_trainable, CornuTerminal terminal, FILE *file);

/* "93,322" and "364.54 KB" */
const char *cornu__print_thousands(CornuText *to, int64_t number);
const char *cornu__print_size(CornuText *to, double bytes);

#endif
