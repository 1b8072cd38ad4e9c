/* Shared by the files that write models of 8 bits as C. */
#ifndef CORNU_NN_INT8_C_INTERNAL_H
#define CORNU_NN_INT8_C_INTERNAL_H

#include "../lite/run/steps.h"
#include "c_source_internal.h"

/* A model of 8 bits as it is written. */
typedef struct {
    const CornuLiteGraph *graph;
    CornuLiteStep        *steps;
    int                   step_count;
    CornuCLife           *lives;      /* by tensor */
    char                (*at)[96];    /* by tensor: its expression in the calls */
    char                (*functions)[128];   /* by operator */
    char                  prefix[CORNU_C_NAME], capitals[CORNU_C_NAME];
    size_t                scratch;
    CornuCText            text;       /* of the functions */
} CornuCInt8;

/* Writes an operator's function: its operands are x, of several x0, x1, .., its result y, and what
 * its table says of scratch `sums`. */
typedef void CornuCInt8Write(CornuCInt8 *c, const CornuLiteStep *step);

/* NULL for an operator that C does not have. */
CornuCInt8Write *cornu__c_int8_writer(const CornuLiteStep *step);

/* A graph that cornu__lite_run_create takes (int8.c). */
CornuStatus cornu__c_int8_write(const CornuLiteGraph *graph, const char *path, const char *name);

/* Functions of fixed point, those that the operators in c->text call (int8_fixed.c). */
void cornu__c_int8_prelude(FILE *to, const CornuCInt8 *c);

#endif
