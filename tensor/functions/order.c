/* The smallest, and an order of numbers that has a place for NaN. */
#include "functions_internal.h"
#include "select_internal.h"

#include <stdint.h>

/* x in the opposite order. Minus x would not do for integers: 0 is the smallest u8, minus 0 still
 * is, and minus the smallest i32 overflows. */
static CornuTensor *reversed(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuDtype dtype = cornu_tensor_type(x).dtype;
    if (cornu_dtype_is_float(dtype)) return cornu_op_negative(x);
    const double most = dtype == CORNU_U8 ? UINT8_MAX : dtype == CORNU_U32 ? UINT32_MAX : -1.0;
    return cornu_op_subtract(cornu_op_constant_like(x, most), x);
}

CornuTensor *cornu__reduce_min(CornuTensor *x, int64_t axes, bool keep)
{
    return reversed(cornu_op_reduce_max(reversed(x), axes, keep));
}

CornuTensor *cornu__argmin(CornuTensor *x, int axis)
{
    return cornu_op_argmax(reversed(x), axis);
}

/* Of floats alone: whether x is NaN. */
static CornuTensor *nan_of(CornuTensor *x) { return cornu_op_compare(x, CORNU_NOT_EQUAL, x); }

static bool floats(CornuTensor *x)
{
    return x && cornu_dtype_is_float(cornu_tensor_type(x).dtype);
}

CornuTensor *cornu__sorts_below(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *below = cornu_op_compare(a, CORNU_LESS, b);
    if (!floats(a)) return below;
    CornuTensor *number = cornu_op_compare(a, CORNU_EQUAL, a);
    return cornu_op_select(nan_of(b), number, below);
}

CornuTensor *cornu__sorts_equal(CornuTensor *a, CornuTensor *b)
{
    CornuTensor *equal = cornu_op_compare(a, CORNU_EQUAL, b);
    return floats(a) ? cornu_op_select(nan_of(b), nan_of(a), equal) : equal;
}
