/* The complement of the error function, and gelu. */
#include "../function_internal.h"
#include "functions_internal.h"
#include "select_internal.h"

#include <math.h>

/* Beyond 1/2, where the difference from 1 cancels, t exp(-z^2 + P(t)) with z = |x|, t = 1 / (1 +
 * z / 2), within 1.2e-7 of the value. Source: "Numerical Recipes in C", section 6.2, erfcc. */
CornuTensor *cornu__erfc(CornuTensor *x)
{
    static const double p[] = { 0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
                                -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223 };
    CornuTensor *size = cornu_op_absolute(x), *near = cornu__where(size, CORNU_LESS, 0.5);
    CornuTensor *t = cornu_op_divide(cornu__like_x(x, 1.0),
                                     cornu_op_shift(cornu_op_scale(size, 0.5), 1.0));
    CornuTensor *sum = cornu__like_x(x, p[0]);
    for (size_t i = 1; i < sizeof p / sizeof *p; i++)
        sum = cornu_op_shift(cornu_op_multiply(sum, t), p[i]);
    CornuTensor *tail = cornu_op_multiply(t, cornu_op_exp(cornu_op_subtract(
        sum, cornu_op_square(size))));
    CornuTensor *below = cornu__where(x, CORNU_LESS, 0.0);
    CornuTensor *far = cornu_op_select(below, cornu_op_shift(cornu_op_negative(tail), 2.0), tail);
    return cornu_op_select(near, cornu_op_shift(cornu_op_negative(cornu_op_erf(x)), 1.0), far);
}

/* Both as tf.nn.gelu orders the factors: in f16 x times a scaled gradient overflows before x / 2
 * does, and decides which steps a loss scale skips. */
static CornuTensor *gelu(CornuTensor *x)
{
    CornuTensor *erf = cornu_op_erf(cornu_op_scale(x, sqrt(0.5)));
    return cornu_op_multiply(cornu_op_scale(x, 0.5), cornu_op_shift(erf, 1.0));
}

CornuTensor *cornu__gelu(CornuTensor *x)
{
    static const CornuFunction function = CORNU__FUNCTION("gelu", .of_one = gelu);
    return cornu__function(&function, &x, 1, NULL, 0);
}

static CornuTensor *gelu_approximate(CornuTensor *x)
{
    CornuTensor *cube = cornu_op_multiply(x, cornu_op_square(x));
    CornuTensor *inner = cornu_op_add(x, cornu_op_scale(cube, 0.044715));
    CornuTensor *curve = cornu_op_tanh(cornu_op_scale(inner, sqrt(2.0 / acos(-1.0))));
    return cornu_op_multiply(cornu_op_scale(x, 0.5), cornu_op_shift(curve, 1.0));
}

CornuTensor *cornu__gelu_approximate(CornuTensor *x)
{
    static const CornuFunction function = CORNU__FUNCTION("gelu_tanh", .of_one = gelu_approximate);
    return cornu__function(&function, &x, 1, NULL, 0);
}
