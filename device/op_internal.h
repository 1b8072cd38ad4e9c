/* What an op's row of ops/ops.def says beside its name and its numbers of operands and results. */
#ifndef CORNU_DEVICE_OP_INTERNAL_H
#define CORNU_DEVICE_OP_INTERNAL_H

#include <stdbool.h>

#include "op.h"

/*
 * READS: what of its operands an element of a result is made of. Rows of a batch are kept apart
 * along axes that an op does not mix (device/rows/axes.c has the rule of each kind), transposes of
 * images move past ops that do not mind (tensor/layouts.c), elementwise ops on constants are
 * computed when a program is compiled, and values differ from shard to shard only where they must.
 */
#define CORNU_READS_MAP(X)                                                                     \
    X(ALL,         all)          /* everything, or it is not known                           */ \
    X(NOTHING,     nothing)      /* it has the same value everywhere                         */ \
    X(IOTA,        iota)         /* nothing; it differs along the attribute's axis           */ \
    X(ELEMENTWISE, elementwise)  /* the elements at its place, along all axes                */ \
    X(RISING,      elementwise)  /* likewise, and it never decreases when x grows (elu: with */ \
                                 /* alpha >= 0), so that maxima may be taken before          */ \
    X(BROADCAST,   broadcast)                                                                  \
    X(RESHAPE,     all)          /* elements in their order: device/rows/rows.c              */ \
    X(TRANSPOSE,   transpose)                                                                  \
    X(SLICE,       slice)                                                                      \
    X(PAD,         pad)                                                                        \
    X(ALONG,       along_axis)   /* the attribute's axis, the others as they are             */ \
    X(LAST,        along_last)   /* the last axis, likewise                                  */ \
    X(REDUCE,      reduce)       /* the attribute's axes, which are gone or have extent 1    */ \
    X(ARGMAX,      argmax)       /* the attribute's axis, which is gone                      */ \
    X(LABELS,      labels)       /* the last axis of scores, and the label there             */ \
    X(ONE_HOT,     one_hot)      /* the index there, for one more axis                       */ \
    X(MATMUL,      matmul)                                                                     \
    X(RESAMPLE,    resample)     /* the attribute's axis of x, with a row of the matrix       */ \
    X(CONV2D,      conv2d)                                                                     \
    X(IMAGES,      images)       /* an image (B, H, W, C) as a whole, and all of a filter    */ \
    X(POOL,        pool)         /* a window of (B, H, W, C)                                 */ \
    X(GATHER,      gather)                                                                     \
    X(LSTM,        lstm)                                                                       \
    X(GRU,         gru)                                                                        \
    X(BATCH,       batch)        /* of each operand (B, ...) all but other rows of the batch */ \
    X(BODY,        all)          /* as the program among the attributes: device/rows/rows.c  */ \
    X(OWN,         all)          /* the number of the shard: each has a result of its own    */ \
    X(SHARDS,      all)          /* the operands of all shards of a group, which get the same */ \
    X(SCATTER,     all)          /* likewise, and each gets a part of its own                */

typedef enum {
#define X(ID, rule) CORNU_READS_##ID,
    CORNU_READS_MAP(X)
#undef X
    CORNU_READS_COUNT
} CornuReads;

CornuReads cornu__op_reads(CornuOpId id);

/* Whether element i of the result depends on element i of the operands alone: its column READS is
 * ELEMENTWISE or RISING. */
bool cornu__is_elementwise(CornuOpId id);

/* COST: what an element takes in a loop over vectors, in additions: 1, 8 for an exponential and the
 * like, which is also what making it again is weighed by; 0: a group does not compute the op. */
int cornu__op_cost(CornuOpId id);

#endif
