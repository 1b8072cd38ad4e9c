/* Axes: parts of them, others, more. */
#include "functions_internal.h"

#include "../../device/status_internal.h"

CornuTensor *cornu__slice_axis(CornuTensor *x, int axis, int64_t begin, int64_t end)
{
    int64_t starts[CORNU_MAX_RANK] = { 0 };
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    starts[axis] = begin;
    shape.extent[axis] = end - begin;
    return cornu_op_slice(x, starts, shape.extent);
}

CornuTensor *cornu__add_axis(CornuTensor *x, int at)
{
    CornuText text;
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    if (shape.rank == CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a tensor %s would get more than %d axes",
                                cornu_shape_print(&text, shape), CORNU_MAX_RANK);
    for (int i = shape.rank++; i > at; i--) shape.extent[i] = shape.extent[i - 1];
    shape.extent[at] = 1;
    return cornu_op_reshape(x, shape);
}

CornuTensor *cornu__drop_axis(CornuTensor *x, int at)
{
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    for (int i = at; i + 1 < shape.rank; i++) shape.extent[i] = shape.extent[i + 1];
    shape.extent[--shape.rank] = 0;
    return cornu_op_reshape(x, shape);
}

CornuTensor *cornu__pad_axis(CornuTensor *x, int axis, int64_t before, int64_t after, double value)
{
    int64_t low[CORNU_MAX_RANK] = { 0 }, high[CORNU_MAX_RANK] = { 0 };
    low[axis] = before;
    high[axis] = after;
    return x ? cornu_op_pad(x, low, high, value) : NULL;
}
