/* convert: in its own file, since gradients of most families use it. */
#include "../tensor_internal.h"

CornuTensor *cornu_op_convert(CornuTensor *x, CornuDtype dtype)
{
    if (x && cornu_tensor_type(x).dtype == dtype) return x;
    CornuAttributes attributes = { .convert = { .dtype = dtype } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_CONVERT, &attributes, &x, 1, out);
}

/* The gradient of a float converts back; integers have none. */
static void convert_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuDtype from = cornu_tensor_type(op->in[0]).dtype;
    if (cornu_dtype_is_float(from)) d_x[0] = cornu_op_convert(d[0], from);
}
CornuGradient *const cornu__convert_gradient = convert_gradient;
