/* Rounding and remainders. Source: C11, sections 7.12.9 and 7.12.10. */
#include "functions_internal.h"
#include "select_internal.h"

#include <math.h>

CornuTensor *cornu__ceil(CornuTensor *x)
{
    return cornu_op_negative(cornu_op_floor(cornu_op_negative(x)));
}

CornuTensor *cornu__trunc(CornuTensor *x)
{
    return cornu_op_select(cornu__where(x, CORNU_LESS, 0.0), cornu__ceil(x), cornu_op_floor(x));
}

/* By the distance from the floor, which is exact where x + 1/2 is not. */
CornuTensor *cornu__round(CornuTensor *x)
{
    CornuTensor *low = cornu_op_floor(x), *rest = cornu_op_subtract(x, low);
    CornuTensor *high = cornu_op_shift(low, 1.0), *half = cornu_op_scale(low, 0.5);
    CornuTensor *even = cornu_op_compare(half, CORNU_EQUAL, cornu_op_floor(half));
    CornuTensor *tie = cornu__where(rest, CORNU_EQUAL, 0.5);
    CornuTensor *above = cornu__where(rest, CORNU_GREATER, 0.5);
    return cornu_op_select(tie, cornu_op_select(even, low, high),
                           cornu_op_select(above, high, low));
}

/* a - quotient b; of an infinite b `whole`, since a quotient of 0 times it is not a number. */
static CornuTensor *remainder_of(CornuTensor *a, CornuTensor *b, CornuTensor *quotient,
                                 CornuTensor *whole)
{
    CornuTensor *finite = cornu__where(cornu_op_absolute(b), CORNU_NOT_EQUAL, INFINITY);
    CornuTensor *rest = cornu_op_subtract(a, cornu_op_multiply(quotient,
                                                               cornu__guarded(finite, b, 0.0)));
    return cornu_op_select(finite, rest, cornu_op_select(cornu_op_is_finite(a), whole, rest));
}

CornuTensor *cornu__fmod(CornuTensor *a, CornuTensor *b)
{
    return remainder_of(a, b, cornu__trunc(cornu_op_divide(a, b)), a);
}

CornuTensor *cornu__floor_mod(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *signs = cornu_op_multiply(cornu_op_sign(a), cornu_op_sign(b));
    CornuTensor *whole = cornu_op_select(cornu__where(signs, CORNU_LESS, 0.0), b, a);
    return remainder_of(a, b, cornu_op_floor(cornu_op_divide(a, b)), whole);
}
