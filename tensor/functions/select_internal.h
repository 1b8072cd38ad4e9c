/* Branches of functions. */
#ifndef CORNU_TENSOR_SELECT_INTERNAL_H
#define CORNU_TENSOR_SELECT_INTERNAL_H

#include "../ops.h"

static inline CornuTensor *cornu__like_x(CornuTensor *x, double value)
{
    return x ? cornu_op_constant_like(x, value) : NULL;
}

/* x comparison value, bool */
static inline CornuTensor *cornu__where(CornuTensor *x, CornuComparison comparison, double value)
{
    return cornu_op_compare(x, comparison, cornu__like_x(x, value));
}

/* condition ? x : value */
static inline CornuTensor *cornu__guarded(CornuTensor *condition, CornuTensor *x, double value)
{
    return cornu_op_select(condition, x, cornu__like_x(x, value));
}

#endif
