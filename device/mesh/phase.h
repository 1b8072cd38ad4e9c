/*
 * Parts of a recorded program as programs of their own: each computes some of its ops, writes some
 * of its outputs, and has what it lacks from other parts as inputs.
 */
#ifndef CORNU_DEVICE_PHASE_H
#define CORNU_DEVICE_PHASE_H

#include "../program.h"

/* The program of a part. */
typedef struct {
    CornuProgram *program;
    int          *inputs;            /* of each input: the recorded program's input, or ~c: the
                                        value of crossing c */
    int          *outputs;           /* of each output: -1, as it is written into an input; or c */
} CornuPhase;

/* A value that some part makes and others read. */
typedef struct {
    CornuValue value;
    bool       made;                 /* here: an output; else an input, if it is needed */
} CornuPartCrossing;

/* What is wanted of a program, whose outputs are all written into inputs; all false at first. */
typedef struct {
    const CornuProgram *program;
    bool               *computes;    /* of each op: the part may */
    bool               *writes;      /* of each output: the part does */
    CornuPartCrossing  *crossings;
    int                 crossing_count;
} CornuPart;

/* On failure `part` can be ended. CORNU_ERR_MEMORY. */
CornuStatus cornu__part_begin(CornuPart *part, const CornuProgram *program, int crossings);
void        cornu__part_end(CornuPart *part);

/* Makes its program, of what it writes and makes needs. On failure `to` can be freed. */
CornuStatus cornu__part_make(const CornuPart *part, CornuPhase *to);
void        cornu__phase_free(CornuPhase *phase);

#endif
