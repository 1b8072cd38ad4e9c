/* How ops read their operands, axis by axis (axes.c). */
#ifndef CORNU_DEVICE_ROWS_AXES_H
#define CORNU_DEVICE_ROWS_AXES_H

#include "../op_internal.h"
#include "../program_internal.h"

/* What becomes of an axis of an operand in a result: axis j of it (0 and more), element by element;
 * nothing, it is read as a whole; or, read as a whole, it makes axis j of the result. */
enum { CORNU_AXIS_READ = -1 };
#define CORNU_AXIS_MAKES(j) (-2 - (j))

/* The call, one of its results and one of its operands. */
typedef struct {
    const CornuOpCall *call;
    const CornuType   *out;      /* of the result */
    int                result, operand;
} CornuAxesCall;

/* Fills `to` for each axis of the operand, and returns the axes of the result, by bits, along which
 * it differs although no operand does; -1: the op reads everything. */
typedef int CornuAxesRule(const CornuAxesCall *c, int to[CORNU_MAX_RANK]);

/* By what an op reads. Of those that read everything rows.c knows reshape, scan and what a user
 * registered better. */
extern CornuAxesRule *const cornu__axes_rules[CORNU_READS_COUNT];

#endif
