/* Operations with bools: comparisons, logic, choices. */
#include "operation_internal.h"

#include <math.h>

static CornuTensor *compared(const CornuOperands *o, CornuComparison comparison)
{
    CornuTensor *a, *b;
    return cornu__operand_pair(o, false, &a, &b) ? cornu_op_compare(a, comparison, b) : NULL;
}

#define COMPARISON(name, comparison)                                   \
    CornuTensor *cornu__operation_##name(const CornuOperands *o)       \
    {                                                                  \
        return compared(o, (comparison));                              \
    }
COMPARISON(equal, CORNU_EQUAL)
COMPARISON(not_equal, CORNU_NOT_EQUAL)
COMPARISON(less, CORNU_LESS)
COMPARISON(less_equal, CORNU_LESS_EQUAL)
COMPARISON(greater, CORNU_GREATER)
COMPARISON(greater_equal, CORNU_GREATER_EQUAL)

/* ---- Logic ---- */

static bool two_bools(const CornuOperands *o, CornuTensor **a, CornuTensor **b)
{
    *a = cornu_op_convert(cornu__operand_tensor(o, "x1", 0), CORNU_BOOL);
    *b = *a ? cornu_op_convert(cornu__operand_tensor(o, "x2", 1), CORNU_BOOL) : NULL;
    return *b != NULL;
}

CornuTensor *cornu__operation_logical_and(const CornuOperands *o)
{
    CornuTensor *a, *b;
    return two_bools(o, &a, &b) ? cornu_op_select(a, b, a) : NULL;
}

CornuTensor *cornu__operation_logical_or(const CornuOperands *o)
{
    CornuTensor *a, *b;
    return two_bools(o, &a, &b) ? cornu_op_select(a, a, b) : NULL;
}

CornuTensor *cornu__operation_logical_xor(const CornuOperands *o)
{
    CornuTensor *a, *b;
    return two_bools(o, &a, &b) ? cornu_op_compare(a, CORNU_NOT_EQUAL, b) : NULL;
}

CornuTensor *cornu__operation_logical_not(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_x(o), CORNU_BOOL);
    return cornu_op_compare(x, CORNU_EQUAL, cornu__like(x, 0.0));
}

/* ---- Numbers that are not finite ---- */

CORNU__OF_FLOATS(isfinite, cornu_op_is_finite)

CornuTensor *cornu__operation_isnan(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    return cornu_op_compare(x, CORNU_NOT_EQUAL, x);
}

CornuTensor *cornu__operation_isinf(const CornuOperands *o)
{
    CornuTensor *x = cornu_op_absolute(cornu__operand_float(o));
    return cornu_op_compare(x, CORNU_EQUAL, cornu__like(x, INFINITY));
}

/* ---- Choices ---- */

CornuTensor *cornu__operation_where(const CornuOperands *o)
{
    CornuTensor *condition = cornu_op_convert(cornu__operand_tensor(o, "condition", 0), CORNU_BOOL);
    CornuOperand operands[2];
    CornuTensor *x[2];
    if (!condition || !cornu__operand(o, "x1", 1, &operands[0]) ||
        !cornu__operand(o, "x2", 2, &operands[1]))
        return NULL;
    return cornu__operands_join(o, operands, 2, false, x) ? cornu_op_select(condition, x[0], x[1])
                                                          : NULL;
}
