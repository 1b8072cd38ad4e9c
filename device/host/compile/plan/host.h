/* The device that programs are compiled for: its kernels, vector loops, threads and shards. */
#ifndef CORNU_DEVICE_HOST_HOST_H
#define CORNU_DEVICE_HOST_HOST_H

#include "../../../device_internal.h"
#include "../../../program.h"
#include "../../kernels/kernel.h"
#include "../../machine/threads.h"
#include "../../machine/vector.h"

typedef struct {
    /* Tables by op, NULL after the last: an op's kernels of the first are asked before those of the
     * next. Elementwise ops without one run in groups; the rest is decomposed. */
    CornuKernels             *kernels[3];
    CornuMultiplier           multiplier;
    const CornuVectors       *vectors;
    CornuThreads             *threads;
    int                       shards;     /* 0 counts as 1 */
    CornuRange                own;        /* of this process; none counts as all */
    CornuProcesses           *processes;  /* that own the shards; NULL: this one */
} CornuHost;

/* The properties of the device that kernels may depend on. */
CornuMachine cornu__machine(const CornuHost *host);

/* The kernel that takes this op of the program, joined with a pooling or its gradient, or alone if
 * that is NULL; the one that takes it if every bf16 and f16 among its types were f32. NULL if there
 * is none. */
const CornuKernel *cornu__kernel_for(const CornuHost *host, const CornuProgram *program,
                                     const CornuProgramOp *op, const CornuProgramOp *pool);
const CornuKernel *cornu__widened_kernel_for(const CornuHost *host, const CornuProgram *program,
                                             const CornuProgramOp *op);

/* The kernels that are asked before the one that takes an op, joined with a pooling or, if that is
 * NULL, not; all of the op's if it is NULL. Returns how many. */
enum { CORNU_MOST_KERNELS = CORNU_MOST_DECLINED };   /* of both tables */
int cornu__declined(const CornuHost *host, const CornuProgram *program, const CornuProgramOp *op,
                    const CornuProgramOp *pool, const CornuKernel *taken, CornuDeclined *to);

/* How decompose.c treats an op. */
typedef enum {
    CORNU_CHOICE_NOTHING,     /* keeps it: a value that is never computed, or read in place */
    CORNU_CHOICE_KERNEL,      /* keeps it for a kernel */
    CORNU_CHOICE_GROUP,       /* keeps it for a group */
    CORNU_CHOICE_WIDENED,     /* converts it to f32, for a kernel */
    CORNU_CHOICE_DECOMPOSED,  /* replaces it by its decomposition */
    CORNU_CHOICE_SCAN,        /* keeps it: a loop with a plan of its own */
    CORNU_CHOICE_REFERENCE    /* keeps it: its reference kernel runs */
} CornuChoice;

CornuChoice cornu__choice(const CornuHost *host, const CornuProgram *program,
                          const CornuProgramOp *op);

/* The class function, of a device that has this host. */
CornuStatus cornu__host_place(const CornuHost *host, const CornuProgram *program,
                              const CornuProgramOp *op, CornuPlacement *out);

/* f32 for bf16 and f16, any other dtype as it is; the op's attributes with such dtypes. */
CornuDtype      cornu__widened(CornuDtype dtype);
CornuAttributes cornu__widened_attributes(const CornuProgramOp *op);

#endif
