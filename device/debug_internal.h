/*
 * Environment variables for work on the compiler, read at each compilation:
 *
 *     CORNU_DUMP=program,plan      prints programs, plans, or both, to stderr; stablehlo what the
 *                                  pjrt device gives XLA; kernels plans, and of each step the
 *                                  kernels that were asked before the one that runs, and why each
 *                                  of these declined
 *     CORNU_VERIFY=1               verifies every plan (host/compile/verify.c); a wrong one fails
 *                                  to compile
 *     CORNU_PASSES=-gate,-reuse    compiles without these passes: slower, same results
 */
#ifndef CORNU_DEVICE_DEBUG_INTERNAL_H
#define CORNU_DEVICE_DEBUG_INTERNAL_H

#include <stdbool.h>

#include "status.h"

/* The passes that can be left out, each by itself. host/compile/passes.h says what they do and in
 * which order they run. */
#define CORNU_PASSES(X)                                                                      \
    X(REWRITE,    rewrite)      /* tensor/rewrite.c                                       */ \
    X(SIMPLIFY,   simplify)     /* these two in device/host/compile/, one file each       */ \
    X(DECOMPOSE,  decompose)    /* without it, ops without a kernel run on the reference  */ \
    X(DISTRIBUTE, distribute)   /* this one and the next three in its sums/               */ \
    X(SHARE,      share)        /* of sums over many shards: share.c, and sums.c          */ \
    X(SUMMED,     summed)       /* of share and fuse: large products with their sums       */ \
    X(COMBINE,    combine)                                                                   \
    X(OVERLAP,    overlap)      /* exchanges between processes beside what they compute   */ \
    X(POOL,       pool)         /* of fuse: a convolution and its gradients with a pool   */ \
    X(EPILOGUE,   epilogue)     /* a kernel with a bias and an activation                 */ \
    X(GATE,       gate)         /* a kernel with the slope of a relu                      */ \
    X(GROUP,      group)        /* elementwise ops with each other                        */ \
    X(ROWS,       rows)         /* lookup and replacement of rows with a group            */ \
    X(ROW_SUMS,   row_sums)     /* sums and maxima of rows with groups on either side     */ \
    X(DELAY,      delay)        /* an op moves to the one group that reads it             */ \
    X(RECOMPUTE,  recompute)    /* in two groups what one would store for the other       */ \
    X(JOIN,       join)         /* of plan: operands are made where an op joins them      */ \
    X(ALIAS,      alias)        /* a variable is written in place                         */ \
    X(REUSE,      reuse)        /* values share memory                                    */

typedef enum {
#define X(id, name) CORNU_PASS_##id,
    CORNU_PASSES(X)
#undef X
    CORNU_PASS_COUNT
} CornuPass;

/* Whether CORNU_DUMP names this word. device.c prints "program", once per compilation. */
bool cornu__dumps(const char *word);

/* Whether CORNU_VERIFY is 1. */
bool cornu__verifies(void);

/* False if CORNU_PASSES leaves this pass out. */
bool cornu__pass_runs(CornuPass pass);

/* CORNU_ERR_VALUE unless each word of CORNU_PASSES is "-" and a pass. */
CornuStatus cornu__check_passes(void);

#endif
