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

CornuTensor *cornu__strided(CornuTensor *x, int axis, int64_t begin, int64_t count, int64_t by)
{
    if (by == 1 || count < 2) return cornu__slice_axis(x, axis, begin, begin + count);
    CornuShape    shape = cornu_tensor_shape(x), split = { 4, { 1, count, by, 1 } };
    const int64_t end = begin + count * by, more = end - shape.extent[axis];
    if (more <= 0) {
        x = cornu__slice_axis(x, axis, begin, end);
    } else {
        const CornuDtype dtype = cornu_tensor_type(x).dtype;
        x = cornu__slice_axis(x, axis, begin, shape.extent[axis]);
        if (dtype == CORNU_BOOL) x = cornu_op_convert(x, CORNU_I32);
        x = cornu_op_convert(cornu__pad_axis(x, axis, 0, more, 0.0), dtype);
    }
    shape.extent[axis] = count;
    for (int i = 0; i < shape.rank; i++)
        if (i != axis) split.extent[i < axis ? 0 : 3] *= shape.extent[i];
    return cornu_op_reshape(cornu__slice_axis(cornu_op_reshape(x, split), 2, 0, 1), shape);
}

CornuTensor *cornu__product(CornuTensor *x, int axis)
{
    int64_t n = cornu_tensor_shape(x).extent[axis];
    for (; x && n > 1; n = n / 2 + n % 2) {
        CornuTensor *y = cornu_op_multiply(cornu__slice_axis(x, axis, 0, n / 2),
                                           cornu__slice_axis(x, axis, n / 2, n / 2 * 2));
        x = n % 2 ? cornu_op_concat((CornuTensor *[]){ y, cornu__slice_axis(x, axis, n - 1, n) }, 2,
                                    axis) : y;
    }
    return x;
}
