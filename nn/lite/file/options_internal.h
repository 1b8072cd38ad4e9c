/* The options of operators as the writer and the reader of files go over them. */
#ifndef CORNU_NN_LITE_OPTIONS_INTERNAL_H
#define CORNU_NN_LITE_OPTIONS_INTERNAL_H

#include "../graph/graph.h"

typedef enum {
    CORNU_LITE_BYTE, CORNU_LITE_INT, CORNU_LITE_ONE, CORNU_LITE_FLOAT, CORNU_LITE_FLAG,
    CORNU_LITE_EXTENTS
} CornuLiteFieldKind;

enum { CORNU_LITE_MOST_FIELDS = 8 };

typedef struct {
    int                slot;
    CornuLiteFieldKind kind;
    size_t             offset;    /* in CornuLiteOptions */
} CornuLiteField;

/* Fields in ascending order of their slots. */
typedef struct {
    int            number;        /* of BuiltinOptions; 0: the operator has no table */
    int            count;
    CornuLiteField fields[CORNU_LITE_MOST_FIELDS];
} CornuLiteTable;

/* The table of an operator; NULL for an unknown code. */
const CornuLiteTable *cornu__lite_table(int code);

/* The value of a field as an integer: of BYTE, INT, ONE, FLAG. ONE is never 0. */
int32_t cornu__lite_get(const CornuLiteOptions *options, const CornuLiteField *field);
void    cornu__lite_set(CornuLiteOptions *options, const CornuLiteField *field, int32_t value);

/* versions.c: the version that a file has to give the operator, by its operands; and the first
 * runtime that has all of the graph's, "2.3.0" and zeros. */
int  cornu__lite_version(const CornuLiteGraph *graph, const CornuLiteOperator *op);
void cornu__lite_runtime(const CornuLiteGraph *graph, char text[16]);

#endif
