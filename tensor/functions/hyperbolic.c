/* Hyperbolic functions and their inverses. Source of the formulas: "Handbook of Mathematical
 * Functions", sections 4.5 and 4.6, arranged so that nothing cancels or overflows early. */
#include "functions_internal.h"
#include "select_internal.h"

#include <math.h>

/* exp(|x|) / 2 as (w / 2) w with w = exp(|x| / 2): finite wherever the result is. */
static CornuTensor *half_exp(CornuTensor *size)
{
    CornuTensor *w = cornu_op_exp(cornu_op_scale(size, 0.5));
    return cornu_op_multiply(cornu_op_scale(w, 0.5), w);
}

CornuTensor *cornu__cosh(CornuTensor *x)
{
    CornuTensor *size = cornu_op_absolute(x);
    CornuTensor *falling = cornu_op_scale(cornu_op_exp(cornu_op_negative(size)), 0.5);
    return cornu_op_add(half_exp(size), falling);
}

/* Below 1, where the difference of exponentials cancels, 2 t / (1 - t^2) with t = tanh(x / 2). */
CornuTensor *cornu__sinh(CornuTensor *x)
{
    CornuTensor *size = cornu_op_absolute(x), *near = cornu__where(size, CORNU_LESS, 1.0);
    CornuTensor *t = cornu_op_tanh(cornu_op_scale(cornu__guarded(near, x, 0.0), 0.5));
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(cornu_op_square(t)), 1.0);
    CornuTensor *small = cornu_op_divide(cornu_op_scale(t, 2.0), rest);
    CornuTensor *falling = cornu_op_scale(cornu_op_exp(cornu_op_negative(size)), 0.5);
    CornuTensor *large = cornu_op_subtract(half_exp(size), falling);
    return cornu_op_select(near, small, cornu_op_multiply(cornu_op_sign(x), large));
}

/* log(a) + log(1 + sqrt(1 + sign / a^2)) for a that is at least 1: log(a + sqrt(a^2 + sign)). */
static CornuTensor *log_of_sum(CornuTensor *a, double sign)
{
    CornuTensor *inverse = cornu_op_divide(cornu__like_x(a, 1.0), a);
    CornuTensor *square = cornu_op_scale(cornu_op_square(inverse), sign);
    CornuTensor *root = cornu_op_sqrt(cornu_op_shift(square, 1.0));
    return cornu_op_add(cornu_op_log(a), cornu_op_log(cornu_op_shift(root, 1.0)));
}

/* Within 1 log1p(x + x^2 / (1 + sqrt(1 + x^2))). */
CornuTensor *cornu__asinh(CornuTensor *x)
{
    CornuTensor *size = cornu_op_absolute(x), *near = cornu__where(size, CORNU_LESS, 1.0);
    CornuTensor *low = cornu__guarded(near, x, 0.0), *square = cornu_op_square(low);
    CornuTensor *root = cornu_op_sqrt(cornu_op_shift(square, 1.0));
    CornuTensor *small = cornu__log1p(cornu_op_add(low, cornu_op_divide(
        square, cornu_op_shift(root, 1.0))));
    CornuTensor *large = log_of_sum(cornu_op_select(near, cornu__like_x(x, 1.0), size), 1.0);
    return cornu_op_select(near, small, cornu_op_multiply(cornu_op_sign(x), large));
}

/* Below 2 log1p(t + sqrt(t) sqrt(x + 1)), t = x - 1; below 1, where t has no root, NaN. */
CornuTensor *cornu__acosh(CornuTensor *x)
{
    CornuTensor *near = cornu__where(x, CORNU_LESS, 2.0), *low = cornu__guarded(near, x, 1.5);
    CornuTensor *t = cornu_op_shift(low, -1.0);
    CornuTensor *root = cornu_op_multiply(cornu_op_sqrt(t),
                                          cornu_op_sqrt(cornu_op_shift(low, 1.0)));
    CornuTensor *small = cornu__log1p(cornu_op_add(t, root));
    CornuTensor *large = log_of_sum(cornu_op_select(near, cornu__like_x(x, 2.0), x), -1.0);
    return cornu_op_select(near, small, large);
}

/* log1p(2 x / (1 - x)) / 2, below -1/2 minus that of -x. */
CornuTensor *cornu__atanh(CornuTensor *x)
{
    CornuTensor *below = cornu__where(x, CORNU_LESS, -0.5);
    CornuTensor *a = cornu_op_select(below, cornu_op_negative(x), x);
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(a), 1.0);
    CornuTensor *y = cornu__log1p(cornu_op_divide(cornu_op_scale(a, 2.0), rest));
    y = cornu_op_scale(y, 0.5);
    return cornu_op_select(below, cornu_op_negative(y), y);
}
