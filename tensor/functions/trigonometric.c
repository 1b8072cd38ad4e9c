/* The tangent, and the inverses of trigonometric functions. */
#include "functions_internal.h"
#include "select_internal.h"

CornuTensor *cornu__tan(CornuTensor *x)
{
    return cornu_op_divide(cornu_op_sin(x), cornu_op_cos(x));
}

/* Beyond tan(pi/8) the argument is reduced. Source: Cephes, atanf. */
CornuTensor *cornu__atan(CornuTensor *x)
{
    static const double p[] = { 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1,
                                -3.33329491539e-1 };
    CornuTensor *size = cornu_op_absolute(x), *sign = cornu_op_sign(x);
    CornuTensor *large = cornu__where(size, CORNU_GREATER, 2.414213562373095);
    CornuTensor *beyond = cornu__where(size, CORNU_GREATER, 0.4142135623730950);
    CornuTensor *inverse = cornu_op_divide(cornu__like_x(x, -1.0),
                                           cornu__guarded(large, size, 1.0));
    CornuTensor *quotient = cornu_op_divide(cornu_op_shift(size, -1.0), cornu_op_shift(size, 1.0));
    CornuTensor *reduced = cornu_op_select(large, inverse, quotient);
    reduced = cornu_op_select(beyond, cornu_op_multiply(sign, reduced), x);
    CornuTensor *offset = cornu_op_select(large, cornu__like_x(x, 1.5707963267948966),
                                          cornu__like_x(x, 0.7853981633974483));
    offset = cornu__guarded(beyond, cornu_op_multiply(sign, offset), 0.0);
    CornuTensor *square = cornu_op_square(reduced), *sum = cornu__like_x(x, p[0]);
    for (int i = 1; i < 4; i++) sum = cornu_op_shift(cornu_op_multiply(sum, square), p[i]);
    sum = cornu_op_add(cornu_op_multiply(cornu_op_multiply(sum, square), reduced), reduced);
    return cornu_op_add(sum, offset);
}

/* atan(x / sqrt(1 - x^2)), the difference as a product, which does not cancel. */
CornuTensor *cornu__asin(CornuTensor *x)
{
    CornuTensor *below = cornu_op_shift(cornu_op_negative(x), 1.0);
    CornuTensor *leg = cornu_op_sqrt(cornu_op_multiply(below, cornu_op_shift(x, 1.0)));
    return cornu__atan(cornu_op_divide(x, leg));
}

/* 2 atan(sqrt((1 - x) / (1 + x))): infinite at -1, and pi. */
CornuTensor *cornu__acos(CornuTensor *x)
{
    CornuTensor *below = cornu_op_shift(cornu_op_negative(x), 1.0);
    CornuTensor *ratio = cornu_op_divide(below, cornu_op_shift(x, 1.0));
    return cornu_op_scale(cornu__atan(cornu_op_sqrt(ratio)), 2.0);
}
