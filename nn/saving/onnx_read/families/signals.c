/* Fourier transforms, windows, mel scales. Source: docs/Operators.md of ONNX: DFT, STFT,
 * HannWindow, MelWeightMatrix. */
#include "../run_internal.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- Transforms ---- */

/* (n, bins), f64, of the angle 2 pi j k / length; the turns are taken off j k while it is an
 * integer. */
static CornuTensor *angles(CornuGraph *graph, int64_t n, int64_t bins, int64_t length)
{
    CornuTensor *j = cornu__count_along(graph, CORNU_I64, 2, 0, n);
    CornuTensor *k = cornu__count_along(graph, CORNU_I64, 2, 1, bins);
    CornuTensor *jk = cornu_op_convert(cornu_op_multiply(j, k), CORNU_F64);
    if (!jk) return NULL;
    CornuTensor *whole = cornu_op_constant_like(jk, (double)length);
    CornuTensor *turns = cornu_op_floor(cornu_op_divide(jk, whole));
    jk = cornu_op_subtract(jk, cornu_op_multiply(turns, whole));
    return cornu_op_scale(jk, 2.0 * pi / (double)length);
}

/* A number that must be known, from 1 on. */
static CornuStatus size_of(const CornuReadStep *step, int i, int64_t usual, int64_t *to)
{
    int count;
    *to = usual;
    CORNU__TRY(cornu__known_integers(step, i, to, 1, &count));
    if (*to < 1 || *to > INT32_MAX)
        return cornu__fail(CORNU_ERR_SHAPE, "operand %d is %lld, expected a length", i,
                           (long long)*to);
    return CORNU_OK;
}

/* x (…, n, c) with n cut, or filled with zeros, to a length. */
static CornuTensor *with_length(CornuTensor *x, int axis, int64_t length)
{
    const int64_t n = cornu__extent_of(x, axis);
    if (n == length) return x;
    return n > length ? cornu__part_of(x, axis, 0, length)
                      : cornu__pad_axis(x, axis, 0, length - n, 0.0);
}

/* The real (0) or imaginary (1) part of x (…, n, c): (…, n). */
static CornuTensor *part(CornuTensor *x, int which)
{
    const int rank = cornu__rank_of(x);
    if (!x || which >= cornu__extent_of(x, rank - 1)) return NULL;
    return cornu__drop_axis(cornu__part_of(x, rank - 1, which, 1), rank - 1);
}

/* (…) and (…) as (…, 2). */
static CornuTensor *pairs(CornuTensor *real, CornuTensor *imaginary)
{
    const int    rank = cornu__rank_of(real);
    CornuTensor *both[] = { cornu__add_axis(real, rank), cornu__add_axis(imaginary, rank) };
    return cornu_op_concat(both, 2, rank);
}

/* Its axis is an attribute up to opset 19, then an operand. */
static CornuStatus transform_axis(const CornuReadStep *step, int rank, int *axis)
{
    int64_t at = step->run->opset < 20 ? cornu__whole(step, "axis", 1) : -2;
    int     count;
    CORNU__TRY(cornu__known_integers(step, 2, &at, 1, &count));
    CORNU__TRY(cornu__axis_of(at, rank, axis));
    return *axis == rank - 1 ? cornu__cannot("a transform over the last axis", "it is that of the "
                               "real and imaginary parts") : CORNU_OK;
}

/* How often a bin of one side stands in the whole spectrum: twice, but for the first one and that
 * of half the length. */
static CornuTensor *sides(CornuGraph *graph, int64_t bins, int64_t length)
{
    CornuTensor *k = cornu_op_convert(cornu__count_along(graph, CORNU_I64, 2, 0, bins), CORNU_F64);
    if (!k) return NULL;
    CornuTensor *one = cornu_op_constant_like(k, 1.0), *two = cornu_op_constant_like(k, 2.0);
    CornuTensor *half = cornu_op_constant_like(k, (double)length / 2.0);
    CornuTensor *first = cornu_op_compare(k, CORNU_LESS, one);
    CornuTensor *last = cornu_op_compare(k, CORNU_EQUAL, half);
    return cornu_op_select(first, one, cornu_op_select(last, one, two));
}

/* Sums in f64. x (…, n, c), of which `half` is one side of a spectrum. */
static CornuTensor *transform(CornuGraph *graph, CornuTensor *x, int64_t length, bool inverse,
                              bool half)
{
    const int64_t bins = length / 2 + 1, n = inverse && half ? bins : length;
    const int     rank = cornu__rank_of(x);
    x = cornu_op_convert(with_length(x, rank - 2, n), CORNU_F64);
    CornuTensor *angle = angles(graph, n, half && !inverse ? bins : length, length);
    CornuTensor *cosine = cornu_op_cos(angle), *sine = cornu_op_sin(angle);
    if (inverse && half) {
        CornuTensor *times = sides(graph, bins, length);
        cosine = cornu_op_multiply(cosine, times);
        sine = cornu_op_multiply(sine, times);
    }
    if (!inverse) sine = cornu_op_negative(sine);
    CornuTensor *a = part(x, 0), *b = part(x, 1);
    CornuTensor *real = cornu_op_matmul(a, cosine), *imaginary = cornu_op_matmul(a, sine);
    if (b) {
        real = cornu_op_subtract(real, cornu_op_matmul(b, sine));
        imaginary = cornu_op_add(imaginary, cornu_op_matmul(b, cosine));
    }
    CornuTensor *y = pairs(real, imaginary);
    if (inverse && half) y = cornu__part_of(y, rank - 1, 0, 1);
    if (inverse) y = cornu_op_scale(y, 1.0 / (double)length);
    return cornu_op_convert(y, CORNU_F32);
}

static CornuStatus read_dft(CornuReadStep *step)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_of(step, 0), CORNU_F32);
    const bool   inverse = cornu__whole(step, "inverse", 0);
    const bool   half = cornu__whole(step, "onesided", 0);
    const int    rank = cornu__rank_of(x);
    int64_t      length;
    int          axis;
    if (!x) return cornu_error_take();
    if (rank < 2 || cornu__extent_of(x, rank - 1) > 2)
        return cornu__fail(CORNU_ERR_SHAPE, "expected a last axis of 1 or 2 parts");
    CORNU__TRY(transform_axis(step, rank, &axis));
    const int64_t n = cornu__extent_of(x, axis);
    CORNU__TRY(size_of(step, 1, inverse && half ? 2 * (n - 1) : n, &length));
    CornuTensor *y = transform(step->run->graph, cornu__move_axis(x, axis, rank - 2), length,
                               inverse, half);
    return cornu__result(step, 0, cornu__move_axis(y, rank - 2, axis));
}

/* Of a real signal (B, L) or (B, L, 1): a convolution with the waves, under the window. */
static CornuStatus read_stft(CornuReadStep *step)
{
    CornuTensor *x = cornu_op_convert(cornu__operand_of(step, 0), CORNU_F32);
    CornuTensor *window = cornu__optional_as(step, 2, CORNU_F32);
    CornuGraph  *graph = step->run->graph;
    int64_t      by, n;
    if (!x) return cornu_error_take();
    const int     rank = cornu__rank_of(x);
    const int64_t b = cornu__extent_of(x, 0), l = cornu__extent_of(x, 1);
    if (rank < 2 || rank > 3 || (rank == 3 && cornu__extent_of(x, 2) != 1))
        return cornu__cannot("this signal", "expected real ones");
    CORNU__TRY(size_of(step, 1, 0, &by));
    CORNU__TRY(size_of(step, 3, window ? cornu__extent_of(window, 0) : 0, &n));
    if (n > l || (window && (cornu__rank_of(window) != 1 || cornu__extent_of(window, 0) != n)))
        return cornu__fail(CORNU_ERR_SHAPE, "frames of %lld of a signal of %lld", (long long)n,
                           (long long)l);
    const int64_t bins = cornu__whole(step, "onesided", 1) ? n / 2 + 1 : n;
    CornuTensor  *angle = angles(graph, n, bins, n);
    CornuTensor  *waves[] = { cornu_op_cos(angle), cornu_op_negative(cornu_op_sin(angle)) };
    CornuTensor  *filter = angle ? cornu_op_convert(cornu_op_concat(waves, 2, 1), CORNU_F32) : NULL;
    if (window)
        filter = cornu_op_multiply(filter, cornu__reshaped(window, 2, (const int64_t[]){ n, 1 }));
    filter = cornu__reshaped(filter, 4, (const int64_t[]){ 1, n, 1, 2 * bins });
    x = cornu__reshaped(x, 4, (const int64_t[]){ b, 1, l, 1 });
    const CornuConvolution plane = { .strides = { 1, by }, .dilation = { 1, 1 }, .groups = 1 };
    CornuTensor *y = cornu_op_conv2d(x, filter, &plane);
    const int64_t split[] = { b, cornu__extent_of(y, 2), 2, bins };
    y = cornu__reshaped(y, 4, split);
    return cornu__result(step, 0, cornu__move_axis(y, 2, 3));
}

/* ---- Windows and scales, which are known ---- */

static CornuStatus known_array(CornuReadStep *step, int rank, const int64_t *extents,
                               CornuArray *to)
{
    CornuType type = cornu_type_from(CORNU_F32, cornu_shape_from(rank, extents));
    CORNU__TRY(cornu__onnx_dtype(cornu__whole(step, "output_datatype", CORNU_READ_FLOAT),
                                 &type.dtype));
    CORNU__TRY(cornu_type_check(type));
    *to = cornu__host_array(step->run, type);
    return to->data ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* a - b cos(2 pi i / N) + c cos(4 pi i / N) */
static CornuStatus read_window(CornuReadStep *step)
{
    const CornuReadNumber *n = step->row->numbers;
    const double           a = n[0].usual, b = n[1].usual, c = n[2].usual;
    CornuArray array;
    int64_t    size;
    CORNU__TRY(size_of(step, 0, 0, &size));
    CORNU__TRY(known_array(step, 1, &size, &array));
    const double turn = 2.0 * pi / (double)(cornu__whole(step, "periodic", 1) ? size : size - 1);
    for (int64_t i = 0; i < size; i++)
        cornu_array_set(array, i, size == 1 ? 1.0 : a - b * cos(turn * (double)i) +
                                                        c * cos(2.0 * turn * (double)i));
    return cornu__known_result(step, 0, array);
}

static double mel_of(double frequency) { return 2595.0 * log10(1.0 + frequency / 700.0); }

/* (bins of the spectrum, mels): triangles between bins that are equally far in mels. */
static CornuStatus read_mel(CornuReadStep *step)
{
    int64_t    mels, length, rate;
    double     low, high;
    CornuArray array;
    CORNU__TRY(size_of(step, 0, 0, &mels));
    CORNU__TRY(size_of(step, 1, 0, &length));
    CORNU__TRY(size_of(step, 2, 0, &rate));
    CORNU__TRY(cornu__known_number(step, 3, 0.0, &low));
    CORNU__TRY(cornu__known_number(step, 4, 0.0, &high));
    const int64_t extents[] = { length / 2 + 1, mels };
    CORNU__TRY(known_array(step, 2, extents, &array));
    const double from = mel_of(low), by = (mel_of(high) - from) / (double)(mels + 2);
    int64_t      edges[3];
    for (int64_t m = 0; m < mels; m++) {
        for (int i = 0; i < 3; i++) {
            const double edge = from + by * (double)(m + i);
            const double frequency = 700.0 * (pow(10.0, edge / 2595.0) - 1.0);
            const double bin = floor((double)(length + 1) * frequency / (double)rate);
            if (!(bin >= 0.0 && bin <= (double)length))
                return cornu__fail(CORNU_ERR_FORMAT, "a frequency of %g at a rate of %lld",
                                   frequency, (long long)rate);
            edges[i] = (int64_t)bin;
        }
        const double rise = (double)(edges[1] - edges[0]), fall = (double)(edges[2] - edges[1]);
        if (edges[1] < extents[0] && rise == 0.0) cornu_array_set(array, edges[1] * mels + m, 1.0);
        for (int64_t j = edges[0]; j <= edges[1] && j < extents[0] && rise > 0.0; j++)
            cornu_array_set(array, j * mels + m, (double)(j - edges[0]) / rise);
        for (int64_t j = edges[1]; j < edges[2] && j < extents[0] && fall > 0.0; j++)
            cornu_array_set(array, j * mels + m, (double)(edges[2] - j) / fall);
    }
    return cornu__known_result(step, 0, array);
}

#define WINDOW(op, a, b, c) \
    { op, read_window, 0, .numbers = { { .usual = a }, { .usual = b }, { .usual = c } } }

const CornuReadRow cornu__read_signals[] = {
    WINDOW("BlackmanWindow", 0.42, 0.5, 0.08), { "DFT", read_dft, .operands = 1 },
    WINDOW("HammingWindow", 25.0 / 46.0, 21.0 / 46.0, 0.0), WINDOW("HannWindow", 0.5, 0.5, 0.0),
    { "MelWeightMatrix", read_mel, .operands = 0 }, { "STFT", read_stft, .operands = 1 },
    { 0 },
};
