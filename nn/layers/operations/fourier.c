/* Fourier transforms along the last axis, as products with tables of sines and cosines: time and
 * memory for n^2 elements, so that n is at most 4096. A complex number is a pair of tensors. */
#include "operation_internal.h"

#include "../../../device/memory_internal.h"

#include <math.h>
#include <string.h>

enum { MOST = 4096 };

/* cos(2 pi i k / n) and its sine, (n, m). */
static CornuTensor *table(const CornuOperands *o, int64_t n, int64_t m, bool sine)
{
    const CornuType type = cornu_type(CORNU_F32, n, m);
    CornuArray      array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    float          *values = array.data;
    if (!values) return cornu__null();
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++) {
            const double angle = 6.283185307179586 * (double)(i * k % n) / (double)n;
            values[i * m + k] = (float)(sine ? sin(angle) : cos(angle));
        }
    CornuTensor *made = cornu__constant_array(o->call, array);
    cornu__release(array.data);
    return made;
}

/* The n elements of the last axis, cut or filled up with zeros; NULL with a pending error. */
static CornuTensor *of_length(const CornuOperands *o, CornuTensor *x, int64_t n)
{
    if (!x) return NULL;
    const int     last = cornu_tensor_shape(x).rank - 1;
    const int64_t own = last < 0 ? 0 : cornu_tensor_shape(x).extent[last];
    if (own < 1 || n < 1 || n > MOST)
        return cornu__operation_refuse(o, "expected a last axis of 1 to 4096 elements");
    x = cornu_op_convert(x, CORNU_F32);
    return n < own ? cornu__slice_axis(x, last, 0, n)
           : n > own ? cornu__pad_axis(x, last, 0, n - own, 0.0) : x;
}

static int64_t last_extent(CornuTensor *x)
{
    const CornuShape shape = cornu_tensor_shape(x);
    return shape.rank ? shape.extent[shape.rank - 1] : 0;
}

/* Operand x, a pair. */
static bool pair(const CornuOperands *o, CornuTensor **x)
{
    CornuTensor *given[CORNU_MAX_LAYER_TENSORS];
    const int    count = cornu__operand_list(o, "x", 0, given);
    if (count == 2) {
        x[0] = cornu_op_convert(given[0], CORNU_F32);
        x[1] = cornu_op_convert(given[1], CORNU_F32);
        return x[0] && x[1];
    }
    if (count >= 0) cornu__operation_refuse(o, "expected a pair, the real and the imaginary part");
    return false;
}

/* (a + b i) (cos - sign i sin), divided by n if it is inverse. */
static bool transformed(const CornuOperands *o, CornuTensor **x, bool inverse)
{
    const int64_t n = last_extent(x[0]);
    if (!(x[0] = of_length(o, x[0], n)) || !(x[1] = of_length(o, x[1], n))) return false;
    CornuTensor *c = table(o, n, n, false), *s = table(o, n, n, true);
    if (!c || !s) return false;
    if (!inverse) s = cornu_op_negative(s);
    CornuTensor *re = cornu_op_subtract(cornu_op_matmul(x[0], c), cornu_op_matmul(x[1], s));
    CornuTensor *im = cornu_op_add(cornu_op_matmul(x[0], s), cornu_op_matmul(x[1], c));
    x[0] = inverse ? cornu_op_scale(re, 1.0 / (double)n) : re;
    x[1] = inverse ? cornu_op_scale(im, 1.0 / (double)n) : im;
    return x[0] && x[1];
}

static CornuTensor *results(const CornuOperands *o, CornuTensor *const *x)
{
    o->out[1] = x[1];
    return o->out[0] = x[0];
}

/* x as matrices: a vector is one of one row. */
static CornuTensor *one_axis(const CornuOperands *o)
{
    CornuTensor *x[2];
    if (!pair(o, x)) return NULL;
    const bool vector = cornu_tensor_shape(x[0]).rank == 1;
    for (int i = 0; i < 2 && vector; i++) x[i] = cornu__add_axis(x[i], 0);
    if (!x[0] || !x[1] || !transformed(o, x, false)) return NULL;
    for (int i = 0; i < 2 && vector; i++) x[i] = cornu__drop_axis(x[i], 0);
    return results(o, x);
}

CornuTensor *cornu__operation_fft(const CornuOperands *o) { return one_axis(o); }

static CornuTensor *two_axes(const CornuOperands *o, bool inverse)
{
    CornuTensor *x[2];
    if (!pair(o, x)) return NULL;
    const int rank = cornu_tensor_shape(x[0]).rank;
    if (rank < 2) return cornu__operation_refuse(o, "expected two axes or more");
    for (int turn = 0; turn < 2; turn++) {
        if (!transformed(o, x, inverse)) return NULL;
        for (int i = 0; i < 2; i++)
            if (!(x[i] = cornu__move_axis(x[i], rank - 1, rank - 2))) return NULL;
    }
    return results(o, x);
}

CornuTensor *cornu__operation_fft2(const CornuOperands *o) { return two_axes(o, false); }
CornuTensor *cornu__operation_ifft2(const CornuOperands *o) { return two_axes(o, true); }

/* The n / 2 + 1 first ones, of a real x (…, n). */
static bool half(const CornuOperands *o, CornuTensor *x, CornuTensor **y)
{
    if (!x) return false;
    const int64_t n = last_extent(x), m = n / 2 + 1;
    const bool    vector = cornu_tensor_shape(x).rank == 1;
    if (vector) x = cornu__add_axis(x, 0);
    y[0] = cornu_op_matmul(x, table(o, n, m, false));
    y[1] = cornu_op_negative(cornu_op_matmul(x, table(o, n, m, true)));
    for (int i = 0; i < 2 && vector; i++) y[i] = cornu__drop_axis(y[i], 0);
    return y[0] && y[1];
}

CornuTensor *cornu__operation_rfft(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o), *y[2];
    if (!x) return NULL;
    x = of_length(o, x, cornu__argument_integer(o, "fft_length", last_extent(x)));
    return half(o, x, y) ? results(o, y) : NULL;
}

/* The real x of n elements whose n / 2 + 1 first ones are given: the others are their conjugates,
 * so that all but the first, and of an even n the last, count twice. */
CornuTensor *cornu__operation_irfft(const CornuOperands *o)
{
    CornuTensor *x[2];
    if (!pair(o, x)) return NULL;
    const int64_t n = cornu__argument_integer(o, "fft_length", 2 * (last_extent(x[0]) - 1));
    const int64_t m = n / 2 + 1;
    if (!(x[0] = of_length(o, x[0], m)) || !(x[1] = of_length(o, x[1], m))) return NULL;
    CornuTensor *k = cornu_op_iota(o->graph, cornu_type(CORNU_F32, m), 0);
    CornuTensor *first = cornu_op_compare(k, CORNU_EQUAL, cornu__like(k, 0.0));
    const int64_t middle = n % 2 ? -1 : n / 2;
    CornuTensor  *last = cornu_op_compare(k, CORNU_EQUAL, cornu__like(k, (double)middle));
    if (!first || !last) return NULL;
    CornuTensor *times = cornu_op_select(cornu_op_select(first, first, last), cornu__like(k, 1.0),
                                         cornu__like(k, 2.0));
    const int  order[2] = { 1, 0 };
    const bool vector = cornu_tensor_shape(x[0]).rank == 1;
    for (int i = 0; i < 2; i++) {
        x[i] = cornu_op_multiply(x[i], times);
        if (vector) x[i] = cornu__add_axis(x[i], 0);
        x[i] = cornu_op_matmul(x[i], cornu_op_transpose(table(o, n, m, i == 1), order));
    }
    CornuTensor *y = cornu_op_scale(cornu_op_subtract(x[0], x[1]), 1.0 / (double)n);
    return vector ? cornu__drop_axis(y, 0) : y;
}

/* ---- stft ---- */

/* The window in the middle of fft_length zeros; a list, or None for ones. */
static CornuTensor *window_of(const CornuOperands *o, int64_t length, int64_t n)
{
    const json_t *given = cornu__argument(o, "window", -1);
    const char   *name = json_string_value(given);
    const int64_t low = (n - length) / 2;
    if (!given && !json_is_null(json_object_get(o->config, "window"))) name = "hann";
    const bool    hann = name && !strcmp(name, "hann"), hamming = name && !strcmp(name, "hamming");
    if ((name && !hann && !hamming) ||
        (!name && given && json_array_size(given) != (size_t)length))
        return cornu__operation_refuse(o, "window is hann, hamming, None, or as many numbers as "
                                       "sequence_length");
    const CornuType type = cornu_type(CORNU_F32, n);
    CornuArray      array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!array.data) return cornu__null();
    for (int64_t i = 0; i < n; i++) {
        const double turn = cos(6.283185307179586 * (double)(i - low) / (double)length);
        const bool   inside = i >= low && i < low + length;
        const double value = hann ? 0.5 - 0.5 * turn : hamming ? 0.54 - 0.46 * turn
            : given ? json_number_value(json_array_get(given, (size_t)(i - low))) : 1.0;
        cornu_array_set(array, i, inside || (!given && !name) ? value : 0.0);
    }
    CornuTensor *made = cornu__constant_array(o->call, array);
    cornu__release(array.data);
    return made;
}

/* x mirrored at both ends by `count` elements. */
static CornuTensor *mirrored(const CornuOperands *o, CornuTensor *x, int64_t count)
{
    const int     last = cornu_tensor_shape(x).rank - 1;
    const int64_t n = last_extent(x);
    if (count >= n) return cornu__operation_refuse(o, "the sequence is shorter than half of "
                                                   "fft_length");
    if (count == 0) return x;
    CornuTensor *parts[] = { cornu_op_flip(cornu__slice_axis(x, last, 1, count + 1), last), x,
                             cornu_op_flip(cornu__slice_axis(x, last, n - 1 - count, n - 1),
                                           last) };
    return cornu_op_concat(parts, 3, last);
}

CornuTensor *cornu__operation_stft(const CornuOperands *o)
{
    CornuTensor  *x = cornu_op_convert(cornu__operand_float(o), CORNU_F32), *y[2];
    const int64_t length = cornu__argument_integer(o, "sequence_length", 1);
    const int64_t stride = cornu__argument_integer(o, "sequence_stride", 1);
    const int64_t n = cornu__argument_integer(o, "fft_length", length);
    const json_t *center = cornu__argument(o, "center", -1);
    if (!x) return NULL;
    if (length < 1 || stride < 1 || n < length || n > MOST || cornu_tensor_shape(x).rank < 1)
        return cornu__operation_refuse(o, "expected 1 <= sequence_length <= fft_length <= 4096");
    if (!json_is_false(center) && !(x = mirrored(o, x, n / 2))) return NULL;
    const int last = cornu_tensor_shape(x).rank - 1;
    if (last_extent(x) < n) return cornu__operation_refuse(o, "the sequence is too short");
    const int64_t count = (last_extent(x) - n) / stride + 1;
    CornuTensor **parts = cornu__allocate((size_t)n, sizeof *parts), *frames = x;
    if (!parts) return cornu__null();
    for (int64_t i = 0; i < n && frames; i++)
        frames = parts[i] = cornu__add_axis(cornu__strided(x, last, i, count, stride), last + 1);
    frames = frames ? cornu_op_concat(parts, (int)n, last + 1) : NULL;
    cornu__release(parts);
    frames = cornu_op_multiply(frames, window_of(o, length, n));
    return half(o, frames, y) ? results(o, y) : NULL;
}

#define TWO(name)                                                                \
    int cornu__operation_##name##_count(const CornuOperands *o, CornuShape x)    \
    {                                                                            \
        (void)o, (void)x;                                                        \
        return 2;                                                                \
    }
TWO(fft)
TWO(fft2)
TWO(ifft2)
TWO(rfft)
TWO(stft)
