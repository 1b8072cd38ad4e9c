/* Batch normalization: recording it, and its gradient as one op. */
#include "../tensor_internal.h"

CornuTensor *cornu_op_batch_norm(CornuTensor *x, CornuTensor *scale, CornuTensor *offset,
                                 CornuTensor *count, double epsilon, CornuTensor **mean,
                                 CornuTensor **variance)
{
    CornuAttributes attributes = { .epsilon = { .epsilon = epsilon } };
    CornuTensor    *in[4] = { x, scale, offset, count }, *out[CORNU_MAX_OUTPUTS] = { NULL };
    CornuTensor    *y = cornu__record(CORNU_OP_BATCH_NORM, &attributes, in, 4, out);
    if (mean) *mean = y ? out[1] : NULL;
    if (variance) *variance = y ? out[2] : NULL;
    return y;
}

/* One op for all three: it needs the same two sums over the rows. */
static void batch_norm_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    if (!d[0]) return;
    CornuTensor *in[6] = { op->in[0], op->in[1], op->out[1], op->out[2], d[0], op->in[3] };
    cornu__record(CORNU_OP_BATCH_NORM_GRAD, op->attributes, in, 6, d_x);
}
CornuGradient *const cornu__batch_norm_gradient = batch_norm_gradient;
CornuGradient *const cornu__batch_norm_grad_gradient = CORNU_NO_GRADIENT;
