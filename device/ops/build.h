/*
 * Writing decompositions: ops are recorded one by one, and errors checked once at the end.
 *
 *     CornuBuilder b = { program, CORNU_OK };
 *     CornuValue   largest = cornu__build_reduce(&b, CORNU_OP_REDUCE_MAX, x, last, true);
 *     out[0] = cornu__build2(&b, CORNU_OP_SUBTRACT, x, cornu__build_like(&b, largest, x));
 *     return b.status;
 *
 * After a failure, `status` keeps it and all functions return CORNU_NO_VALUE.
 */
#ifndef CORNU_DEVICE_OPS_BUILD_H
#define CORNU_DEVICE_OPS_BUILD_H

#include "rules.h"

typedef struct {
    CornuProgram *program;
    CornuStatus   status;
} CornuBuilder;

/* Output 0 of an op. */
CornuValue cornu__build(CornuBuilder *b, CornuOpId id, const CornuAttributes *attributes,
                        const CornuValue *in, int in_count);
CornuValue cornu__build1(CornuBuilder *b, CornuOpId id, CornuValue x);
CornuValue cornu__build2(CornuBuilder *b, CornuOpId id, CornuValue x, CornuValue y);
CornuValue cornu__build_compare(CornuBuilder *b, CornuValue x, CornuComparison comparison,
                                CornuValue y);
CornuValue cornu__build_select(CornuBuilder *b, CornuValue condition, CornuValue x, CornuValue y);

/* x itself if it has that dtype already. */
CornuValue cornu__build_convert(CornuBuilder *b, CornuValue x, CornuDtype dtype);

/* x broadcast to the shape of `like`; x itself if it has that shape already. */
CornuValue cornu__build_like(CornuBuilder *b, CornuValue x, CornuValue like);
CornuValue cornu__build_broadcast(CornuBuilder *b, CornuValue x, CornuShape shape);
CornuValue cornu__build_reshape(CornuBuilder *b, CornuValue x, CornuShape shape);

/* A constant of the type of `like`. */
CornuValue cornu__build_constant(CornuBuilder *b, double value, CornuValue like);
/* x * factor */
CornuValue cornu__build_scale(CornuBuilder *b, CornuValue x, double factor);

/* An i64 of this shape: each element is its index along axis 0. */
CornuValue cornu__build_rows(CornuBuilder *b, CornuShape shape);

/* CORNU_OP_REDUCE_SUM or _MAX of x over a set of axes, bit i for axis i. */
CornuValue cornu__build_reduce(CornuBuilder *b, CornuOpId id, CornuValue x, int64_t axes,
                               bool keep);

#endif
