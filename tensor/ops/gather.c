#include "../tensor_internal.h"

CornuTensor *cornu_op_gather(CornuTensor *table, CornuTensor *indices)
{
    return cornu__record2(CORNU_OP_GATHER, table, indices);
}

/* d_table's rows are the sums of the d_y that were taken from them. */
static void gather_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor    *in[2] = { d[0], op->in[1] }, *out[CORNU_MAX_OUTPUTS];
    CornuAttributes attributes = {
        .gather_grad = { .rows = cornu_tensor_shape(op->in[0]).extent[0],
                         .dtype = cornu__gradient_dtype(op->in[0]) },
    };
    d_x[0] = cornu__record(CORNU_OP_GATHER_GRAD, &attributes, in, 2, out);
}
CornuGradient *const cornu__gather_gradient = gather_gradient;

/* Linear in d_y: its gradient are the rows again. */
static void gather_grad_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuTensor *of_table = cornu_op_convert(d[0], cornu_tensor_type(op->in[0]).dtype);
    d_x[0] = cornu_op_gather(of_table, op->in[1]);
}
CornuGradient *const cornu__gather_grad_gradient = gather_grad_gradient;
