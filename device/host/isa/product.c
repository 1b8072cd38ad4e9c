/*
 * Products of f32.
 *
 * Reference: device/ops/matmul.c and conv2d.c; tests/device/host/kernels/test_products.c and
 *     test_kernels.c compare them.
 * Source: own; register tiles as in BLIS (Van Zee and van de Geijn, 2015).
 * Gain: sums kept in registers, tile 14 x 32, K 288, one core of a Xeon: 154 GFLOP/s with gcc and
 *     136 with clang, then 214 and 215, of 222.
 */
#include "lanes.h"
#include "turn.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 1 };

typedef float Element;
typedef float Operand;
typedef Lanes Vector;

INLINE Operand operand(const Element *x, Part part)       { (void)part; return *x; }
INLINE Vector  lanes(const Operand *from, Part part)      { (void)part; return load(from); }
INLINE Lanes   multiply(Lanes sum, Operand a, Vector b)   { return sum + a * b; }

#if defined(__AVX512F__)
enum { NEXT_SELECTION = 2 };

INLINE Lanes  multiply_lanes(Lanes sum, Vector a, Vector b) { return sum + a * b; }

INLINE Vector selected(Vector table, Bits at)
{
    return (Vector)_mm512_permutexvar_ps((__m512i)at, (__m512)table);
}
#endif

#include "tiles.h"

/* `width` floats, by whole registers, of which two may overlap; or, where one holds more, one. */
INLINE void copy_row(float *restrict to, const float *restrict x, int64_t width)
{
    for (int64_t n = LANES; n < width; n += LANES) store(to + n - LANES, load(x + n - LANES));
    const int64_t last = width > LANES ? width - LANES : 0;
    store(to + last, load(x + last));
}

enum { ROWS_AHEAD = 4 };   /* of pack_tiles are requested: they may be pages apart */

INLINE void pack_rows_of(int64_t width, float *restrict to, int64_t tiles, ptrdiff_t apart,
                         int64_t count, const float *restrict x, ptrdiff_t step)
{
    const size_t bytes = (size_t)(tiles * width) * sizeof *x;
    const bool   fits = 2 * width >= LANES && step + width >= LANES;
    for (; count > 0; count--, to += width, x += step) {
        const bool whole = fits && count > 1;
        for (size_t at = 0; at < bytes; at += CORNU_LINE_BYTES)
            cornu__prefetch(x + ROWS_AHEAD * step, at);
        for (int64_t t = 0; t < tiles && whole; t++)
            copy_row(to + t * apart, x + t * width, width);
        for (int64_t t = 0; t < tiles && !whole; t++)
            memcpy(to + t * apart, x + t * width, (size_t)width * sizeof *x);
    }
}

/* Row by row, so that each line of `from` is read once, however many of its rows share a set of the
 * first-level cache. What a register stores too much the next row overwrites. */
static void pack_tiles(void *panels, int64_t width, int64_t tiles, ptrdiff_t apart, int64_t count,
                       const void *from, ptrdiff_t step)
{
    if (width == 2 * LANES) pack_rows_of(2 * LANES, panels, tiles, apart, count, from, step);
    else pack_rows_of(width, panels, tiles, apart, count, from, step);
}

static void pack(void *panel, int64_t width, int64_t k, int64_t count, const void *from,
                 ptrdiff_t k_step, ptrdiff_t n_step, int64_t columns)
{
    const float *restrict x = from;
    float *restrict       to = (float *)panel + k * width;
    if (k_step == 1 && n_step != 1) {
        turn(to, width, x, n_step * (ptrdiff_t)sizeof *x, count, columns);
        return;
    }
    if (n_step == 1 && columns == width && width <= 2 * LANES) {
        pack_tiles(to, width, 1, 0, count, x, k_step);
        return;
    }
    for (; count > 0; count--, to += width, x += k_step) {
        for (int64_t n = 0; n < columns; n++) to[n] = x[n * n_step];
        if (columns < width) memset(to + columns, 0, (size_t)(width - columns) * sizeof *to);
    }
}

/* Sums of FEW_ROWS by some registers, beside those of b and one broadcast value. */
enum {
    FEW_ROWS = 4, FEW_SUMS = CORNU__TALL_TILES ? 24 : 12,
    FEW_AHEAD = 16,   /* rows of b are requested: they are often a page apart */
    LINE = CORNU_LINE_BYTES / 4   /* elements */
};

INLINE void few_store(int rows, int vectors, const CornuFewRows *few, int64_t m, int64_t n,
                      int64_t columns, const Lanes *sum)
{
    UNROLL for (int i = 0; i < rows * vectors; i++) {
        const Lanes y = few->relu ? relu(sum[i]) : sum[i];
        float      *to = few->y + (m + i / vectors) * few->y_stride + n + i % vectors * LANES;
        if (columns < LANES) store_some(to, y, columns);
        else store(to, y);
    }
}

/* `vectors` whole registers of columns from n on; or, with one, the `columns` there are, of which
 * the others are read as long as there is memory. */
INLINE void few_of(int rows, int vectors, const CornuFewRows *few, int64_t m, int64_t n,
                   int64_t columns)
{
    Lanes        sum[FEW_SUMS];
    const float *x = few->x + m * few->x_stride, *b = few->b + n;
    const bool   part = columns < LANES;
    const float *from = few->continued ? few->y + m * few->y_stride : few->bias;
    const ptrdiff_t step = few->continued ? few->y_stride : 0;
    UNROLL for (int i = 0; i < rows * vectors; i++)
        sum[i] = from ? load_some(from + i / vectors * step + n + i % vectors * LANES, columns)
                      : (Lanes){ 0 };
    int64_t whole = few->depth;
    if (part)
        whole = few->readable < n + LANES ? 0 : (few->readable - n - LANES) / few->b_stride + 1;
    if (whole > few->depth) whole = few->depth;
    for (int64_t k = 0; k < whole; k++, b += few->b_stride) {
        UNROLL for (int v = 0; v < vectors; v += LINE / LANES)
            cornu__prefetch_near(b + FEW_AHEAD * few->b_stride, (size_t)v * LANES * sizeof *b);
        UNROLL for (int i = 0; i < rows * vectors; i++)
            sum[i] = multiply(sum[i], x[i / vectors * few->x_stride + k],
                              load(b + i % vectors * LANES));
    }
    for (int64_t k = whole; k < few->depth; k++, b += few->b_stride)
        UNROLL for (int i = 0; i < rows * vectors; i++)
            sum[i] = multiply(sum[i], x[i / vectors * few->x_stride + k], load_some(b, columns));
    few_store(rows, vectors, few, m, n, columns, sum);
}

/* All columns of `rows` rows. A part of a register at the end is made again with those before,
 * unless these have been added to. */
INLINE void few_columns(int rows, const CornuFewRows *few, int64_t m)
{
    const int64_t N = few->columns;
    int64_t       n = 0;
    const bool    alone = N < LANES || few->continued;
    for (int64_t left; (left = N - n) > 0;) {
        if (8 * rows <= FEW_SUMS && left >= 8 * LANES) {
            few_of(rows, 8 * rows <= FEW_SUMS ? 8 : 1, few, m, n, LANES);
            n += 8 * LANES;
        } else if (4 * rows <= FEW_SUMS && left >= 4 * LANES) {
            few_of(rows, 4 * rows <= FEW_SUMS ? 4 : 1, few, m, n, LANES);
            n += 4 * LANES;
        } else if (left >= 2 * LANES) {
            few_of(rows, 2, few, m, n, LANES);
            n += 2 * LANES;
        } else if (left < LANES && alone) {
            few_of(rows, 1, few, m, n, left);
            n += LANES;
        } else {
            few_of(rows, 1, few, m, left < LANES ? N - LANES : n, LANES);
            n += LANES;
        }
    }
}

/* The lanes added by halves. */
INLINE float lanes_sum(Lanes x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#elif defined(__AVX2__)
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)x),
                             _mm256_extractf128_ps((__m256)x, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
#else
    return (x[0] + x[2]) + (x[1] + x[3]);
#endif
}

/* An element by a transposed b, of which the lanes have the terms before `whole`. */
static void few_dot(const CornuFewRows *few, int64_t m, int64_t n, int64_t whole, Lanes sums)
{
    const float *x = few->x + m * few->x_stride, *b = few->b + n * few->b_stride;
    float        sum = lanes_sum(sums);
    if (whole < few->depth)
        sum += lanes_sum(load_some(x + whole, few->depth - whole) *
                         load_some(b + whole, few->depth - whole));
    if (few->bias) sum += few->bias[n];
    few->y[m * few->y_stride + n] = few->relu && sum <= 0.0f ? 0.0f : sum;
}

/* Columns n to n + columns of rows m to m + rows, by a transposed b. */
INLINE void dots_of(int rows, int columns, const CornuFewRows *few, int64_t m, int64_t n)
{
    Lanes         sum[FEW_SUMS] = { { 0 } }, of_b[FEW_SUMS], sums[FEW_SUMS];
    const float  *x = few->x + m * few->x_stride, *b = few->b + n * few->b_stride;
    const int64_t whole = few->depth / LANES * LANES;
    for (int64_t k = 0; k < whole; k += LANES) {
        UNROLL for (int j = 0; j < columns; j++) of_b[j] = load(b + j * few->b_stride + k);
        UNROLL for (int i = 0; i < rows; i++) {
            const Lanes of_x = load(x + i * few->x_stride + k);
            UNROLL for (int j = 0; j < columns; j++) sum[i * columns + j] += of_b[j] * of_x;
        }
    }
    UNROLL for (int i = 0; i < rows * columns; i++) sums[i] = sum[i];
    for (int i = 0; i < rows * columns; i++)
        few_dot(few, m + i / columns, n + i % columns, whole, sums[i]);
}

/* All columns of `rows` rows, `columns` at a time; the last ones may make some again. */
INLINE void dots(int rows, int columns, const CornuFewRows *few, int64_t m)
{
    const int64_t last = few->columns - columns;
    for (int64_t n = 0; n < few->columns && last >= 0; n += columns)
        dots_of(rows, columns, few, m, n < last ? n : last);
    for (int64_t i = 0; i < rows * few->columns && last < 0; i++)
        dots_of(1, 1, few, m + i % rows, i / rows);
}

static void few_dots(const CornuFewRows *few)
{
    int64_t m = 0;
    for (; m + FEW_ROWS <= few->rows; m += FEW_ROWS)
        dots(FEW_ROWS, CORNU__TALL_TILES ? 6 : 3, few, m);
    if (few->rows - m >= 2) dots(2, CORNU__TALL_TILES ? 8 : 4, few, m), m += 2;
    if (few->rows - m >= 1) dots(1, 4, few, m);
}

static void few_rows(const CornuFewRows *few)
{
    if (few->transposed) {
        few_dots(few);
        return;
    }
    int64_t m = 0;
    for (; m + FEW_ROWS <= few->rows; m += FEW_ROWS) few_columns(FEW_ROWS, few, m);
    if (few->rows - m >= 2) few_columns(2, few, m), m += 2;
    if (few->rows - m >= 1) few_columns(1, few, m);
}

INLINE Lanes finished(const CornuFinishRows *f, Lanes y, int64_t n, const float *term,
                      int64_t count)
{
    if (f->bias) y += load_some(f->bias + n, count);
    finish_rows(&f->finish, n, count, term ? term + n : NULL, 0, 1, 1, &y);
    return y;
}

static void finish(const CornuFinishRows *f)
{
    const int64_t columns = f->columns;
    float        *y = f->y;
    const float  *term = f->term;
    for (int64_t m = 0; m < f->rows; m++, y += f->stride) {
        int64_t n = 0;
        for (; n + LANES <= columns; n += LANES)
            store(y + n, finished(f, load(y + n), n, term, LANES));
        if (n < columns)
            store_some(y + n, finished(f, load_some(y + n, columns - n), n, term, columns - n),
                       columns - n);
        if (term) term += f->term_stride;
    }
}

static void gate(const float *restrict gate, float bound, int64_t count, float *restrict y)
{
    if (bound == INFINITY)
        for (int64_t i = 0; i < count; i++) y[i] *= gate[i] > 0.0f ? 1.0f : 0.0f;
    else
        for (int64_t i = 0; i < count; i++)
            y[i] *= ((gate[i] > 0.0f) & (gate[i] < bound)) ? 1.0f : 0.0f;
}

const CornuProducts CORNU__PER_ISA(cornu__products) = {
    LANES, TILE_ROWS, PANELS_ROWS, WINDOWS, TILE_ROWS, GATHER_ROWS, DEPTH, sizeof(Element), tile,
    panels, windows, outer, few_rows, pack, pack_tiles, finish, gate,
    limit, 2 * DEPTH * LANES * TILE_SUMS, SELECTS, NULL, NULL,
};
