/* Products with more around them than an op has. */
#include "../function_internal.h"
#include "functions_internal.h"

/* Leading axes are folded into the rows of the matrix product and restored after it. */
static CornuTensor *dense(CornuTensor *const *in, int count, const double *numbers)
{
    CornuShape shape = cornu_tensor_shape(in[0]);
    const int  last = shape.rank - 1;
    CornuTensor *x = in[0];
    if (last > 1) x = cornu_op_reshape(x, cornu_shape(CORNU_NONE, shape.extent[last]));
    CornuTensor *y = cornu_op_matmul_to(x, in[1], (CornuDtype)numbers[0]);
    if (count > 2) y = cornu_op_add(y, in[2]);
    shape.extent[last] = cornu_tensor_shape(in[1]).extent[1];
    return last > 1 ? cornu_op_reshape(y, shape) : y;
}

CornuTensor *cornu__dense(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias, CornuDtype dtype)
{
    static const CornuFunction function = CORNU__FUNCTION("dense", .formula = dense);
    if (cornu_error_pending()) return NULL;
    return cornu__function(&function, (CornuTensor *[]){ x, kernel, bias }, bias ? 3 : 2,
                           (double[]){ dtype }, 1);
}
