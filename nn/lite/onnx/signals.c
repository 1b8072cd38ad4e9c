/*
 * The Fourier transform and complex numbers as ONNX nodes. A complex number is a pair along a last
 * axis of 2 that LiteRT's shapes do not have, as ONNX' DFT has it.
 */
#include "onnx_internal.h"

/* Along the axis, in so many points: it is cut or padded with zeros. */
static int transform(const Step *step, int x, int64_t axis, int64_t points, bool half)
{
    const CornuOnnxAttribute attributes[] = {
        { .name = "onesided", .whole = half }, { .name = "axis", .whole = axis },
    };
    int in[] = { x, whole_scalar(step, points), 0 };
    if (step->to->opset < 20) return cornu__onnx_node(step->to, "DFT", in, 2, attributes, 2, 1);
    in[2] = whole_scalar(step, axis);
    return cornu__onnx_node(step->to, "DFT", in, 3, attributes, 1, 1);
}

/* Of the last two axes; of real numbers half of the last one is enough. */
static CornuStatus rfft2d(const Step *step)
{
    int64_t points[2];
    int     count;
    CORNU__TRY(cornu__lite_list(step, 1, 2, points, &count));
    const int rank = rank_of(step, 0);
    if (count != 2 || rank < 2 || points[0] < 1 || points[1] < 1)
        return cornu__fail(CORNU_ERR_FORMAT, "of %d numbers of points and a tensor of rank %d",
                           count, rank);
    int y = with_axis(step, "Unsqueeze", cornu__lite_value(step, 0), rank);
    y = transform(step, y, rank - 1, points[1], true);
    if (points[0] > 1 || cornu__lite_operand(step, 0)->shape.extent[rank - 2] != 1)
        y = transform(step, y, rank - 2, points[0], false);
    return cornu__lite_give(step, y);
}

/* The real part 0 or the imaginary part 1. */
static int part_of(const Step *step, int x, int64_t part)
{
    const int64_t axis = rank_of(step, 0);
    return with_axis(step, "Squeeze", cornu__onnx_slice(step->to, x, axis, part, part + 1), axis);
}

static int real(const Step *step, const int *x) { return part_of(step, x[0], 0); }
static int imaginary(const Step *step, const int *x) { return part_of(step, x[0], 1); }

static int magnitude(const Step *step, const int *x)
{
    const int rank = rank_of(step, 0), squares = two(step->to, "Mul", x[0], x[0]);
    return one(step->to, "Sqrt", cornu__onnx_reduce(step->to, "ReduceSum", squares, rank + 1,
                                                    INT64_C(1) << rank, false));
}

/* Of a complex number its real part is kept. */
static CornuStatus convert(const Step *step)
{
    const CornuLiteDtype from = cornu__lite_operand(step, 0)->dtype;
    const CornuLiteDtype to = cornu__lite_result(step)->dtype;
    if (to == CORNU_LITE_COMPLEX64 && from != to)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "from real to complex numbers");
    int x = cornu__lite_value(step, 0);
    if (to == CORNU_LITE_COMPLEX64) return cornu__lite_give(step, x);
    if (from == CORNU_LITE_COMPLEX64) x = part_of(step, x, 0);
    return cornu__lite_give(step, cast(step->to, x, cornu__lite_onnx_dtype(to) == CORNU_F32
                                           ? CORNU_ONNX_FLOAT
                                           : to == CORNU_LITE_BOOL ? CORNU_ONNX_BOOL
                                                                   : CORNU_ONNX_INT64));
}

const CornuLiteOnnxRow cornu__lite_onnx_signals[] = {
    { CORNU_LITE_CAST, 1, .rule = convert, .complex = true },
    { CORNU_LITE_COMPLEX_ABS, 1, .value = magnitude, .complex = true },
    { CORNU_LITE_IMAG, 1, .value = imaginary, .complex = true },
    { CORNU_LITE_REAL, 1, .value = real, .complex = true },
    { CORNU_LITE_RFFT2D, 2, .rule = rfft2d, .complex = true },
    { 0 },
};
