/*
 * What the environment switches for those who work on the compiler, read at each compilation:
 *
 *     CORNU_DUMP=program,plan      what is compiled goes to stderr
 *     CORNU_VERIFY=1               every plan is verified (host/verify.c); one that is wrong fails
 *                                  to compile
 *     CORNU_PASSES=-gate,-reuse    compiles without these passes: slower, same results
 */
#ifndef CORNU_DEVICE_DEBUG_INTERNAL_H
#define CORNU_DEVICE_DEBUG_INTERNAL_H

#include <stdbool.h>

#include "status.h"

/* What can be left out. Each does without the others. */
#define CORNU_PASSES(X)                                                                      \
    X(REWRITE,    rewrite)      /* tensor/rewrite.c                                       */ \
    X(SIMPLIFY,   simplify)     /* device/host/, one file each                            */ \
    X(DECOMPOSE,  decompose)    /* without it the reference runs what has no kernel       */ \
    X(DISTRIBUTE, distribute)                                                                \
    X(COMBINE,    combine)                                                                   \
    X(POOL,       pool)         /* of fuse: a convolution and its gradients with a pool   */ \
    X(EPILOGUE,   epilogue)     /* a kernel with a bias and an activation                 */ \
    X(GATE,       gate)         /* a kernel with the slope of a relu                      */ \
    X(GROUP,      group)        /* elementwise ops with each other                        */ \
    X(DELAY,      delay)        /* an op moves to the group that alone reads it           */ \
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

/* Whether CORNU_PASSES leaves this pass in. */
bool cornu__pass_runs(CornuPass pass);

/* CORNU_ERR_VALUE where CORNU_PASSES has a word that is not "-" and a pass. */
CornuStatus cornu__check_passes(void);

#endif
