/* The work of the steps of a compiled program, and the least time that the machine needs for it. */
#ifndef CORNU_TESTS_BENCH_WORK_H
#define CORNU_TESTS_BENCH_WORK_H

#include "../../device/device.h"
#include "bench.h"

#define WORK_CLASS_MAP(X)                                                                       \
    X(CONVOLUTION,   "convolution")                                                             \
    X(PRODUCT,       "product")                                                                 \
    X(ATTENTION,     "attention")                                                               \
    X(RECURRENT,     "recurrent")                                                               \
    X(POOLING,       "pooling")                                                                 \
    X(NORMALIZATION, "normalization")                                                           \
    X(SOFTMAX,       "softmax")                                                                 \
    X(OPTIMIZER,     "optimizer")                                                               \
    X(GATHER,        "gather")                                                                  \
    X(REDUCTION,     "reduction")                                                               \
    X(COLLECTIVE,    "collective")                                                              \
    X(CONVERSION,    "conversion")    /* of one dtype to another and nothing else   */          \
    X(ELEMENTWISE,   "elementwise")                                                             \
    X(LAYOUT,        "layout")        /* packs for a kernel, copies, changes of shape */

typedef enum {
#define X(id, name) WORK_##id,
    WORK_CLASS_MAP(X)
#undef X
    WORK_CLASSES
} WorkClass;

const char *work_class_name(WorkClass class);

/* The class of its heaviest op. */
WorkClass work_class(const CornuProgram *program, const CornuExecutableStep *step);

/* The work of one step on all shards. */
typedef struct {
    double flops;       /* that are needed: without products of padding, whose result is known. The
                           program itself no longer has rows that a pool drops, products that a
                           lookup replaces and the like. Zeros in a max pool's gradient count,
                           although some filter gradients skip them, and can thus be faster than at
                           the limit */
    double bytes;       /* read and written */
    double near_bytes;  /* of these, the working set of a thread, which decides the cache */
    bool   bf16;        /* multiplies bf16 */
} Work;

Work work_of(const CornuExecutable *executable, const CornuExecutableStep *step);

/* Flops and bytes of all steps together. */
Work work_of_all(const CornuExecutable *executable);

/* The roofline: seconds for the arithmetic at its limit, or for reading and writing at the limit of
 * the nearest cache that holds the bytes, whichever is longer. */
double work_bound(const BenchLimits *limits, Work work);

#endif
