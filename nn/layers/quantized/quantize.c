/* Floats to whole numbers and back, on the host, in f32 as NumPy computes. Source:
 * keras/src/quantizers/quantizers.py, abs_max_quantize, abs_max_quantize_grouped_with_zero_point,
 * pack_int4. */
#include "../quantized_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const float epsilon = 1e-7f;

static float clipped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* The range and the epsilon of a mode, or of the layer's own quantizer. */
typedef struct { float low, high, epsilon; } Range;

static Range range_of(const CornuLayer *layer)
{
    const CornuQuantizer *own = &layer->quantized.weights;
    const bool            wide = cornu__quantization(layer) == CORNU_INT8;
    if (own->given) return (Range){ (float)own->low, (float)own->high, (float)own->epsilon };
    return wide ? (Range){ -127.0f, 127.0f, epsilon } : (Range){ -8.0f, 7.0f, epsilon };
}

/* A run of elements that share a scale: count of them, each `step` after the one before. */
static float quantize_run(const Range *range, const float *from, float *to, int64_t count,
                          int64_t step)
{
    float most = 0.0f;
    for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(from[i * step]));
    const float scale = range->high / (most + range->epsilon);
    for (int64_t i = 0; i < count; i++)
        to[i * step] = clipped(rintf(from[i * step] * scale), range->low, range->high);
    return scale;
}

/* Likewise in -8 to 7 with a zero, where the run has `padding` zeros after its elements. */
static float quantize_block(const float *from, float *to, int64_t count, int64_t step,
                            int64_t padding, float *zero)
{
    float low = padding ? 0.0f : FLT_MAX, high = padding ? 0.0f : -FLT_MAX;
    for (int64_t i = 0; i < count; i++) {
        low = fminf(low, from[i * step]);
        high = fmaxf(high, from[i * step]);
    }
    const float scale = (high - low + epsilon) / 15.0f;
    *zero = clipped(rintf(-low / scale) - 8.0f, -8.0f, 7.0f);
    for (int64_t i = 0; i < count; i++)
        to[i * step] = clipped(rintf(from[i * step] / scale) + *zero, -8.0f, 7.0f);
    return scale;
}

/* ---- int8: scales along some axes ---- */

/* The place of an element of the kernel among its scales. */
static int64_t scale_of(const CornuQuantizable *kernel, int64_t element)
{
    int64_t index[CORNU_MAX_RANK], at = 0;
    for (int i = kernel->shape.rank - 1; i >= 0; i--) {
        index[i] = element % kernel->shape.extent[i];
        element /= kernel->shape.extent[i];
    }
    for (int k = 0; k < kernel->kept_count; k++)
        at = at * kernel->shape.extent[kernel->kept[k]] + index[kernel->kept[k]];
    return at;
}

static void quantize_int8(const CornuLayer *layer, const CornuQuantizable *kernel,
                          const float *from, const CornuQuantizedValues *to)
{
    const Range   range = range_of(layer);
    const int64_t count = cornu_shape_count(kernel->shape);
    const int64_t scales = cornu_shape_count(kernel->scale);
    for (int64_t i = 0; i < scales; i++) to->scale[i] = 0.0f;
    for (int64_t i = 0; i < count; i++) {
        float *most = &to->scale[scale_of(kernel, i)];
        *most = fmaxf(*most, fabsf(from[i]));
    }
    for (int64_t i = 0; i < scales; i++) to->scale[i] = range.high / (to->scale[i] + range.epsilon);
    for (int64_t i = 0; i < count; i++)
        to->packed[i] = clipped(rintf(from[i] * to->scale[scale_of(kernel, i)]), range.low,
                                range.high);
}

/* ---- int4: two numbers in one ---- */

/* Number n of line l, a row or a column, of the matrix; numbers of a line are `along` apart. */
typedef struct { int64_t lines, length, between, along, block, blocks; } Lines;

/* The lines that have scales of their own. */
static Lines lines_of(const CornuLayer *layer, const CornuQuantizable *kernel)
{
    const bool by_row = kernel->by_row;
    Lines      lines = { .lines = by_row ? kernel->rows : kernel->columns,
                         .length = by_row ? kernel->columns : kernel->rows,
                         .between = by_row ? kernel->columns : 1,
                         .along = by_row ? 1 : kernel->columns };
    lines.block = cornu__has_blocks(layer) ? cornu__block(layer) : lines.length;
    lines.blocks = (lines.length + lines.block - 1) / lines.block;
    return lines;
}

/* Where the scale of block b of line l is. */
static int64_t place_of(const Lines *lines, const CornuQuantizable *kernel, int64_t l, int64_t b)
{
    return kernel->by_row ? l * lines->blocks + b : b * lines->lines + l;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void quantize_int4(const CornuLayer *layer, const CornuQuantizable *kernel,
                          const float *from, float *q, const CornuQuantizedValues *to)
{
    const Lines lines = lines_of(layer, kernel);
    const Range range = range_of(layer);
    for (int64_t l = 0; l < lines.lines; l++)
        for (int64_t b = 0; b < lines.blocks; b++) {
            const int64_t first = l * lines.between + b * lines.block * lines.along;
            const int64_t n = smaller(lines.block, lines.length - b * lines.block);
            const int64_t at = place_of(&lines, kernel, l, b);
            to->scale[at] = to->zero
                ? quantize_block(from + first, q + first, n, lines.along, lines.block - n,
                                 &to->zero[at])
                : quantize_run(&range, from + first, q + first, n, lines.along);
        }
}

static int nibble(float q) { return (int)q & 15; }

static float from_nibble(int bits) { return (float)(bits < 8 ? bits : bits - 16); }

/* What the number of packed matrices at `at` holds: places in the matrix, the second -1 where an
 * odd extent leaves none. */
typedef struct { int64_t first, second; } Pair;

static Pair pair_at(const CornuQuantizable *kernel, int64_t at)
{
    const bool    down = kernel->packs_rows;
    const int64_t columns = kernel->columns, width = down ? columns : (columns + 1) / 2;
    const int64_t m = at / width * (down ? 2 : 1), n = at % width * (down ? 1 : 2);
    const bool    whole = down ? m + 1 < kernel->rows : n + 1 < columns;
    const int64_t first = m * columns + n;
    return (Pair){ first, whole ? first + (down ? columns : 1) : -1 };
}

static int64_t pairs_of(const CornuQuantizable *kernel)
{
    return kernel->packs_rows ? (kernel->rows + 1) / 2 * kernel->columns
                              : kernel->rows * ((kernel->columns + 1) / 2);
}

/* Columns 2 i and 2 i + 1, or rows, in one number from -128 to 127; the first is the lower half. */
static void pack(const CornuQuantizable *kernel, const float *q, float *to)
{
    for (int64_t i = 0; i < pairs_of(kernel); i++) {
        const Pair pair = pair_at(kernel, i);
        const int  high = pair.second < 0 ? 0 : nibble(q[pair.second]);
        const int  both = high << 4 | nibble(q[pair.first]);
        to[i] = (float)(both < 128 ? both : both - 256);
    }
}

static void unpack(const CornuQuantizable *kernel, const float *from, float *q)
{
    for (int64_t i = 0; i < pairs_of(kernel); i++) {
        const Pair pair = pair_at(kernel, i);
        const int  both = (int)from[i] & 255;
        q[pair.first] = from_nibble(both & 15);
        if (pair.second >= 0) q[pair.second] = from_nibble(both >> 4);
    }
}

/* ---- Both ---- */

CornuStatus cornu__kernel_quantize(const CornuLayer *layer, const CornuQuantizable *kernel,
                                   const float *from, const CornuQuantizedValues *to)
{
    if (cornu__quantization(layer) == CORNU_INT8) {
        quantize_int8(layer, kernel, from, to);
        return CORNU_OK;
    }
    float *q = cornu__allocate((size_t)(kernel->rows * kernel->columns), sizeof *q);
    if (!q) return CORNU_ERR_MEMORY;
    quantize_int4(layer, kernel, from, q, to);
    pack(kernel, q, to->packed);
    cornu__release(q);
    return CORNU_OK;
}

void cornu__kernel_dequantize(const CornuLayer *layer, const CornuQuantizable *kernel,
                              const CornuQuantizedValues *from, float *to)
{
    const int64_t count = cornu_shape_count(kernel->shape);
    if (cornu__quantization(layer) == CORNU_INT8) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from->packed[i] / from->scale[scale_of(kernel, i)];
        return;
    }
    const Lines lines = lines_of(layer, kernel);
    unpack(kernel, from->packed, to);
    for (int64_t l = 0; l < lines.lines; l++)
        for (int64_t n = 0; n < lines.length; n++) {
            float        *x = &to[l * lines.between + n * lines.along];
            const int64_t b = from->index ? (int64_t)from->index[n] : n / lines.block;
            const int64_t at = place_of(&lines, kernel, l,
                                        b < 0 ? 0 : smaller(b, lines.blocks - 1));
            *x = from->zero ? (*x - from->zero[at]) * from->scale[at] : *x / from->scale[at];
        }
}
