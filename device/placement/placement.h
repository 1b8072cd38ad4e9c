/*
 * Placement: how a device computes each op of a program, and why not better.
 *
 *     CornuPlacement p;
 *     if (cornu_device_place(device, program, i, &p)) ...
 *     printf("%s: %s (%s)\n", cornu_placement_name(p.kind), p.how, p.why);
 *
 * The answer is that of the rules by which the device compiles, for the op as it was recorded; what
 * it is then joined with is said by the steps of the executable (device.h), whose ops name the op
 * of the recorded program that they come from.
 */
#ifndef CORNU_DEVICE_PLACEMENT_H
#define CORNU_DEVICE_PLACEMENT_H

#include "../device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_PLACED_NATIVE,       /* by a kernel, a loop or an op of XLA */
    CORNU_PLACED_DECOMPOSED,   /* by other ops */
    CORNU_PLACED_REFERENCE,    /* by its reference kernel, which is slow */
    CORNU_PLACED_REFUSED,      /* not at all: the device does not compile the program */
    CORNU_PLACED_COUNT
} CornuPlacementKind;

/* "native", "decomposed", "reference", "refused"; "unknown" for any other number. */
const char *cornu_placement_name(CornuPlacementKind kind);

enum { CORNU_PLACEMENT_TEXT = 200 };

typedef struct {
    CornuPlacementKind kind;
    int  fallbacks;                  /* parts of a decomposition that run by reference kernels */
    char how[CORNU_PLACEMENT_TEXT];  /* "kernel matmul", "loop add", "dot_general, convert",
                                        "absolute, constant, add, divide" */
    char why[CORNU_PLACEMENT_TEXT];  /* "" for a native op that needs no explanation */
} CornuPlacement;

/* Op `op` of the program, which may be the body of another op, on this device. Nothing runs, and
 * the device stays as it is. CORNU_ERR_ARGUMENT if the program has no such op. */
CornuStatus cornu_device_place(const CornuDevice *device, const CornuProgram *program, int op,
                               CornuPlacement *out);

/* An op of a compiled program, as it was recorded. */
typedef struct {
    char                  number[32];   /* in the program; "12.3": op 3 of the body of loop 12 */
    const CornuProgramOp *op;           /* of cornu_executable_recorded */
    CornuType             type;         /* of its first result */
    CornuPlacement        placement;
    int                   step;         /* the first step with a part of it; -1: none, as nothing is
                                           left of it, or it is in a body */
} CornuPlacedOp;

/* All ops of the program, those of a loop's body after the loop. *ops is the caller's, to be freed
 * by cornu_placed_free, and points into the executable. */
CornuStatus cornu_executable_place(const CornuExecutable *executable, CornuPlacedOp **ops,
                                   int *count);
/* Frees what cornu_executable_place made; NULL is ignored. */
void        cornu_placed_free(CornuPlacedOp *ops);

/* A row for each, of which columns are in line up to the reasons:
 *     12  matmul   dense   f32 (32, 64)   native   kernel matmul  [8 matmul+bias+relu]
 * before them how many are native, decomposed, by reference kernels, refused. */
CornuStatus cornu_executable_print_placement(const CornuExecutable *executable, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
