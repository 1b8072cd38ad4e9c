/* Logarithms and exponentials that neither cancel nor overflow. */
#include "functions_internal.h"
#include "select_internal.h"

#include <math.h>

/* x log(u) / (u - 1) with u = 1 + x as rounded.
 * Source: Higham, "Accuracy and Stability of Numerical Algorithms", section 1.14.1. */
CornuTensor *cornu__log1p(CornuTensor *x)
{
    CornuTensor *u = cornu_op_shift(x, 1.0);
    /* The sum is 1 where x is too small to show, and infinite as x is: x itself is the value. */
    CornuTensor *finite = cornu__where(x, CORNU_NOT_EQUAL, INFINITY);
    CornuTensor *rest = cornu__guarded(finite, cornu_op_shift(u, -1.0), 0.0);
    CornuTensor *same = cornu__where(rest, CORNU_EQUAL, 0.0);
    CornuTensor *part = cornu_op_select(same, cornu__like_x(x, 1.0), rest);
    u = cornu_op_select(same, cornu__like_x(x, 1.0), u);
    CornuTensor *y = cornu_op_multiply(cornu_op_log(u), cornu_op_divide(x, part));
    return cornu_op_select(same, x, y);
}

/* 2 t / (1 - t) with t = tanh(x / 2), which does not cancel near 0. */
CornuTensor *cornu__expm1(CornuTensor *x)
{
    CornuTensor *near = cornu__where(cornu_op_absolute(x), CORNU_LESS, 1.0);
    CornuTensor *t = cornu_op_tanh(cornu_op_scale(cornu__guarded(near, x, 0.0), 0.5));
    CornuTensor *y = cornu_op_divide(cornu_op_scale(t, 2.0),
                                     cornu_op_shift(cornu_op_negative(t), 1.0));
    return cornu_op_select(near, y, cornu_op_shift(cornu_op_exp(x), -1.0));
}

/* max(a, b) + log(1 + exp(-|a - b|)); two infinities that are equal have no distance. */
CornuTensor *cornu__log_add_exp(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *apart = cornu_op_compare(a, CORNU_NOT_EQUAL, b);
    CornuTensor *distance = cornu_op_absolute(cornu__guarded(apart, cornu_op_subtract(a, b), 0.0));
    return cornu_op_add(cornu_op_maximum(a, b), cornu_op_softplus(cornu_op_negative(distance)));
}

/* m sqrt(1 + (n / m)^2), m the larger size; of equal ones, both 0 or infinite, too, the ratio is
 * 1. */
CornuTensor *cornu__hypot(CornuTensor *a, CornuTensor *b)
{
    a = cornu_op_absolute(a);
    b = cornu_op_absolute(b);
    CornuTensor *larger = cornu_op_maximum(a, b), *smaller = cornu_op_minimum(a, b);
    CornuTensor *apart = cornu_op_compare(larger, CORNU_NOT_EQUAL, smaller);
    CornuTensor *ratio = cornu__guarded(
        apart, cornu_op_divide(smaller, cornu__guarded(apart, larger, 1.0)), 1.0);
    return cornu_op_multiply(larger, cornu_op_sqrt(cornu_op_shift(cornu_op_square(ratio), 1.0)));
}
