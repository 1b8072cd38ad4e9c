/* What the steps of a compiled program have to do, and how long the machine needs for it at
 * least. */
#ifndef CORNU_TESTS_BENCH_WORK_H
#define CORNU_TESTS_BENCH_WORK_H

#include "../../device/device.h"
#include "bench.h"

#define WORK_CLASS_MAP(X)                                                                       \
    X(CONVOLUTION,   "convolution")                                                             \
    X(PRODUCT,       "product")                                                                 \
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

/* By its weightiest op. */
WorkClass work_class(const CornuProgram *program, const CornuExecutableStep *step);

/* What one step does on all shards. */
typedef struct {
    double flops;       /* needed: without products of padding, whose result is known. Dropped rows
                           of a pool, lookups in place of products and the like are gone from the
                           program already. Zeros in a max pool's gradient count, though filter
                           gradients multiply none where they can pick what meets the others: that
                           can take less than what is needed takes at the limit */
    double bytes;       /* read and written */
    double near_bytes;  /* of these, what a thread has at hand at a time: what decides on a cache */
    bool   bf16;        /* multiplies bf16 */
} Work;

Work work_of(const CornuExecutable *executable, const CornuExecutableStep *step);

/* Flops and bytes of all steps together. */
Work work_of_all(const CornuExecutable *executable);

/* The roofline: seconds that arithmetic takes at its limit, or reading and writing at that of the
 * nearest cache that holds the bytes, whichever is longer. */
double work_bound(const BenchLimits *limits, Work work);

#endif
