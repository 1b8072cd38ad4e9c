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

/* By polynomials in -log(1 - x^2). Source: Giles, "Approximating the erfinv function", 2010. */
CornuTensor *cornu__erfinv(CornuTensor *x)
{
    static const double centre[] = { 2.81022636e-08, 3.43273939e-07, -3.5233877e-06,
                                     -4.39150654e-06, 0.00021858087, -0.00125372503,
                                     -0.00417768164, 0.246640727, 1.50140941 };
    static const double tail[] = { -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                                   0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
                                   2.83297682 };
    CornuTensor *edge = cornu__where(cornu_op_absolute(x), CORNU_EQUAL, 1.0);
    CornuTensor *inner = cornu_op_select(edge, cornu__like_x(x, 0.0), x);
    CornuTensor *w = cornu_op_negative(cornu__log1p(cornu_op_negative(cornu_op_square(inner))));
    CornuTensor *near = cornu__where(w, CORNU_LESS, 5.0);
    CornuTensor *a = cornu_op_shift(w, -2.5);
    CornuTensor *b = cornu_op_select(near, cornu__like_x(x, 5.0), w);
    CornuTensor *p = cornu__like_x(x, centre[0]), *q = cornu__like_x(x, tail[0]);
    b = cornu_op_shift(cornu_op_sqrt(b), -3.0);
    for (int i = 1; i < 9; i++) {
        p = cornu_op_shift(cornu_op_multiply(p, a), centre[i]);
        q = cornu_op_shift(cornu_op_multiply(q, b), tail[i]);
    }
    CornuTensor *y = cornu_op_multiply(cornu_op_select(near, p, q), inner);
    CornuTensor *infinite = cornu_op_select(cornu__where(x, CORNU_GREATER, 0.0),
                                            cornu__like_x(x, (double)INFINITY),
                                            cornu__like_x(x, -(double)INFINITY));
    return cornu_op_select(edge, infinite, y);
}
