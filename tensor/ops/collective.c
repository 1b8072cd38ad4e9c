#include "../tensor_internal.h"

CornuTensor *cornu_op_all_reduce(CornuTensor *x) { return cornu__record1(CORNU_OP_ALL_REDUCE, x); }

/* Each shard's x is part of the sum that every shard's loss depends on. */
static void all_reduce_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    (void)op;
    d_x[0] = cornu_op_all_reduce(d[0]);
}
CornuGradient *const cornu__all_reduce_gradient = all_reduce_gradient;
