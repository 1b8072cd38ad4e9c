/* Functions of straight pieces. */
#include "../function_internal.h"
#include "functions_internal.h"
#include "select_internal.h"

static CornuTensor *leaky_relu(CornuTensor *const *x, int count, const double *numbers)
{
    CornuTensor *positive = cornu__where(x[0], CORNU_GREATER_EQUAL, 0.0);
    (void)count;
    return cornu_op_select(positive, x[0], cornu_op_scale(x[0], numbers[0]));
}

CornuTensor *cornu__leaky_relu(CornuTensor *x, double slope)
{
    static const CornuFunction function = CORNU__FUNCTION("leaky_relu", .formula = leaky_relu);
    return cornu__function(&function, &x, 1, &slope, 1);
}

static CornuTensor *prelu(CornuTensor *const *x, int count, const double *numbers)
{
    CornuTensor *below = cornu_op_relu(cornu_op_negative(x[0]));
    (void)count, (void)numbers;
    return cornu_op_subtract(cornu_op_relu(x[0]), cornu_op_multiply(x[1], below));
}

CornuTensor *cornu__prelu(CornuTensor *x, CornuTensor *slopes)
{
    static const CornuFunction function = CORNU__FUNCTION("prelu", .formula = prelu);
    return cornu__function(&function, (CornuTensor *[]){ x, slopes }, 2, NULL, 0);
}
