/*
 * The Fourier transform and complex numbers as ONNX nodes. A complex number is a pair along a last
 * axis of 2 that LiteRT's shapes do not have, as ONNX' DFT has it.
 */
#include "onnx_internal.h"

typedef CornuLiteStepOnnx Step;

static int rank_of(const Step *step, int i) { return cornu__lite_operand(step, i)->shape.rank; }

/* Along the axis, in so many points: it is cut or padded with zeros. */
static int transform(const Step *step, int x, int64_t axis, int64_t points, bool half)
{
    int in[] = { x, 0, 0 };
    in[1] = cornu__onnx_constant(step->to, cornu_array_from(&points, cornu_scalar(CORNU_I64)));
    const CornuOnnxAttribute attributes[] = {
        { .name = "onesided", .whole = half }, { .name = "axis", .whole = axis },
    };
    if (step->to->opset < 20) return cornu__onnx_node(step->to, "DFT", in, 2, attributes, 2, 1);
    in[2] = cornu__onnx_constant(step->to, cornu_array_from(&axis, cornu_scalar(CORNU_I64)));
    return cornu__onnx_node(step->to, "DFT", in, 3, attributes, 1, 1);
}

/* Of the last two axes; of real numbers half of the last one is enough. */
static CornuStatus rfft2d(const Step *step)
{
    int64_t points[2];
    int     count;
    CORNU__TRY(cornu__lite_expect(step, 2, -1));
    CORNU__TRY(cornu__lite_list(step, 1, 2, points, &count));
    const int     rank = rank_of(step, 0);
    const int64_t last = rank;
    if (count != 2 || rank < 2 || points[0] < 1 || points[1] < 1)
        return cornu__fail(CORNU_ERR_FORMAT, "of %d numbers of points and a tensor of rank %d",
                           count, rank);
    int y = joined(step->to, "Unsqueeze", cornu__lite_value(step, 0),
                   cornu__onnx_integers(step->to, &last, 1));
    y = transform(step, y, rank - 1, points[1], true);
    if (points[0] > 1 || cornu__lite_operand(step, 0)->shape.extent[rank - 2] != 1)
        y = transform(step, y, rank - 2, points[0], false);
    return cornu__lite_give(step, y);
}

/* The real part 0 or the imaginary part 1. */
static int part_of(const Step *step, int64_t part)
{
    const int64_t axis = rank_of(step, 0);
    const int y = cornu__onnx_slice(step->to, cornu__lite_value(step, 0), axis, part, part + 1);
    return joined(step->to, "Squeeze", y, cornu__onnx_integers(step->to, &axis, 1));
}

static CornuStatus real(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    return cornu__lite_give(step, part_of(step, 0));
}

static CornuStatus imaginary(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    return cornu__lite_give(step, part_of(step, 1));
}

static CornuStatus magnitude(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const int x = cornu__lite_value(step, 0), rank = rank_of(step, 0);
    const int y = cornu__onnx_reduce(step->to, "ReduceSum", two(step->to, "Mul", x, x), rank + 1,
                                     INT64_C(1) << rank, false);
    return cornu__lite_give(step, one(step->to, "Sqrt", y));
}

/* Of a complex number its real part is kept. */
static CornuStatus convert(const Step *step)
{
    CORNU__TRY(cornu__lite_expect(step, 1, -1));
    const CornuLiteDtype from = cornu__lite_operand(step, 0)->dtype;
    const CornuLiteDtype to = cornu__lite_result(step)->dtype;
    if (to == CORNU_LITE_COMPLEX64 && from != to)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "from real to complex numbers");
    if (to == CORNU_LITE_COMPLEX64) return cornu__lite_give(step, cornu__lite_value(step, 0));
    const int x = from == CORNU_LITE_COMPLEX64 ? part_of(step, 0) : cornu__lite_value(step, 0);
    return cornu__lite_give(step, cast(step->to, x, cornu__lite_onnx_dtype(to) == CORNU_F32
                                           ? CORNU_ONNX_FLOAT
                                           : to == CORNU_LITE_BOOL ? CORNU_ONNX_BOOL
                                                                   : CORNU_ONNX_INT64));
}

bool cornu__lite_takes_complex(CornuLiteCode code)
{
    return code == CORNU_LITE_RFFT2D || code == CORNU_LITE_REAL || code == CORNU_LITE_IMAG ||
           code == CORNU_LITE_COMPLEX_ABS || code == CORNU_LITE_CAST ||
           code == CORNU_LITE_SQUEEZE || code == CORNU_LITE_EXPAND_DIMS ||
           code == CORNU_LITE_RESHAPE;
}

const CornuLiteOnnxRow cornu__lite_onnx_signals[] = {
    { CORNU_LITE_CAST, convert },
    { CORNU_LITE_COMPLEX_ABS, magnitude },
    { CORNU_LITE_IMAG, imaginary },
    { CORNU_LITE_REAL, real },
    { CORNU_LITE_RFFT2D, rfft2d },
    { 0 },
};
