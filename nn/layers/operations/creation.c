/* Tensors of given shapes, without operands but for the extents in them: full, arange, linspace. */
#include "operation_internal.h"

#include <math.h>

/* The shape; false with a pending error if it is absent or has an extent below 1. */
static bool shape_of(const CornuOperands *o, CornuShape *shape)
{
    int64_t   extents[CORNU_MAX_RANK];
    const int rank = cornu__argument_list(o, "shape", -1, extents);
    if (rank < 0) return false;
    *shape = cornu_shape_from(rank, extents);
    for (int i = 0; i < rank; i++)
        if (extents[i] < 1) return cornu__operation_refuse(o, "expected extents of 1 or more");
    return true;
}

CornuTensor *cornu__operation_full(const CornuOperands *o)
{
    CornuShape   shape;
    CornuTensor *value = cornu__operand_tensor(o, "fill_value", 0);
    if (!value || !shape_of(o, &shape)) return NULL;
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", cornu_tensor_type(value).dtype);
    if (dtype == CORNU_DTYPE_COUNT) return cornu__operation_refuse_dtype(o);
    return cornu__broadcast_to(cornu_op_convert(value, dtype), shape);
}

/* start, start + step, … before stop; of one number from 0 to that. */
CornuTensor *cornu__operation_arange(const CornuOperands *o)
{
    static const char *const names[] = { "start", "stop", "step" };
    double     numbers[3] = { 0.0, 0.0, 1.0 };
    bool       whole = true;
    CornuType  type = { .shape = { .rank = 1 } };
    for (int i = 0; i < 3; i++) {
        CornuOperand operand;
        if (i > 0 && !cornu__argument(o, names[i], i)) continue;
        if (!cornu__operand(o, names[i], i, &operand)) return NULL;
        if (operand.tensor)
            return cornu__operation_refuse(o, "its bounds are numbers or extents: the shape of the "
                                           "result cannot depend on data");
        numbers[i] = operand.number;
        whole &= operand.kind != CORNU__FLOAT;
    }
    if (!cornu__argument(o, "stop", 1)) {
        numbers[1] = numbers[0];
        numbers[0] = 0.0;
    }
    const double count = ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(count >= 1.0 && count < 2147483648.0))
        return cornu__operation_refuse(o, "expected one element or more");
    type.dtype = cornu__argument_dtype(o, "dtype", whole ? CORNU_I32 : CORNU_F32);
    if (type.dtype == CORNU_DTYPE_COUNT || type.dtype == CORNU_BOOL)
        return cornu__operation_refuse_dtype(o);
    type.shape.extent[0] = (int64_t)count;
    const CornuDtype dtype = type.dtype;
    if (type.dtype == CORNU_BF16 || type.dtype == CORNU_F16) type.dtype = CORNU_F32;
    CornuTensor *y = cornu_op_iota(o->graph, type, 0);
    if (numbers[2] != 1.0) y = cornu_op_scale(y, numbers[2]);
    if (numbers[0] != 0.0) y = cornu_op_shift(y, numbers[0]);
    return cornu_op_convert(y, dtype);
}

/* `num` numbers from start to stop along a new first axis. */
CornuTensor *cornu__operation_linspace(const CornuOperands *o)
{
    CornuOperand  operands[2];
    CornuTensor  *x[2];
    const int64_t num = cornu__argument_integer(o, "num", 50);
    const bool    open = json_is_false(cornu__argument(o, "endpoint", -1));
    if (!cornu__operand(o, "start", 0, &operands[0]) ||
        !cornu__operand(o, "stop", 1, &operands[1]) ||
        !cornu__operands_join(o, operands, 2, true, x))
        return NULL;
    const CornuDtype dtype = cornu__argument_dtype(o, "dtype", cornu_tensor_type(x[0]).dtype);
    if (num < 1 || dtype == CORNU_DTYPE_COUNT || cornu__argument_integer(o, "axis", 0) != 0)
        return cornu__operation_refuse(o, "expected one number or more, along axis 0");
    CornuTensor *range = cornu_op_subtract(x[1], x[0]);
    if (!range) return NULL;
    CornuType type = { cornu_tensor_type(range).dtype,
                       { .rank = cornu_tensor_shape(range).rank + 1, .extent = { num } } };
    for (int i = 1; i < type.shape.rank; i++) type.shape.extent[i] = 1;
    CornuTensor *part = cornu_op_iota(o->graph, type, 0);
    part = cornu_op_scale(part, num > 1 || open ? 1.0 / (double)(open ? num : num - 1) : 0.0);
    return cornu_op_convert(cornu_op_add(cornu_op_multiply(part, range), x[0]), dtype);
}
