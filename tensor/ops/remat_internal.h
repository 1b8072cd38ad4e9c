/* For gradients.c: parts of the graph that the backward pass computes again (remat.c). */
#ifndef CORNU_TENSOR_REMAT_INTERNAL_H
#define CORNU_TENSOR_REMAT_INTERNAL_H

#include "../tensor_internal.h"

typedef struct {
    CornuGraph         *graph;
    CornuTensor *const *d;         /* the gradient of each value so far, or NULL               */
    int                 op_count, value_count;   /* of the forward pass                        */
    CornuValue         *again;     /* by value: the same computed again, or CORNU_NO_VALUE     */
    bool               *parameter; /* by value                                                 */
    int                *first;     /* by part: its first op; -1 once it is recorded again      */
} CornuRemat;

/* Close it also after a failure. Nothing is allocated where no part is to be computed again. */
CornuStatus cornu__remat_open(CornuRemat *r, CornuGraph *graph, CornuTensor *const *d);
void        cornu__remat_close(CornuRemat *r);

/* Records the part of this op again, if it is in one that is not yet: the first op of it that the
 * backward pass comes to, its last one. */
CornuStatus cornu__remat_reach(CornuRemat *r, int op);

/* The value that the backward pass reads in place of one of the forward pass. */
CornuValue  cornu__remat_value(const CornuRemat *r, CornuValue value);

#endif
