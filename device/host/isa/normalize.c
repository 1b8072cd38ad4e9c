#include "../normalize.h"

#include <math.h>
#include <string.h>

#include "lanes.h"

/* Sums run over ROWS rows before they are added to memory: fewer trips there, less rounding. */
enum { ROWS = 4 };

INLINE float square(float x) { return x * x; }

static void statistics(const float *x, int64_t rows, int64_t C, float *restrict mean,
                       float *restrict squares)
{
    for (int64_t c = 0; c < C; c++) mean[c] = squares[c] = 0.0f;
    int64_t i = 0;
    for (; i + ROWS <= rows; i += ROWS) {
        const float *r = x + i * C;
        for (int64_t c = 0; c < C; c++)
            mean[c] += (r[c] + r[C + c]) + (r[2 * C + c] + r[3 * C + c]);
    }
    for (; i < rows; i++)
        for (int64_t c = 0; c < C; c++) mean[c] += x[i * C + c];
    const float part = 1.0f / (float)rows;
    for (int64_t c = 0; c < C; c++) mean[c] *= part;
    for (i = 0; i + ROWS <= rows; i += ROWS) {
        const float *r = x + i * C;
        for (int64_t c = 0; c < C; c++)
            squares[c] += (square(r[c] - mean[c]) + square(r[C + c] - mean[c])) +
                          (square(r[2 * C + c] - mean[c]) + square(r[3 * C + c] - mean[c]));
    }
    for (; i < rows; i++)
        for (int64_t c = 0; c < C; c++) squares[c] += square(x[i * C + c] - mean[c]);
}

static void apply(const float *x, int64_t rows, int64_t C, const float *restrict mean,
                  const float *restrict factor, const float *restrict offset, float *restrict y)
{
    for (int64_t i = 0; i < rows; i++, x += C, y += C)
        for (int64_t c = 0; c < C; c++) y[c] = (x[c] - mean[c]) * factor[c] + offset[c];
}

static void sums(const float *x, const float *d_y, int64_t rows, int64_t C,
                 const float *restrict mean, const float *restrict inverse,
                 float *restrict d_offset, float *restrict d_scale)
{
    for (int64_t c = 0; c < C; c++) d_offset[c] = d_scale[c] = 0.0f;
    int64_t i = 0;
    for (; i + ROWS <= rows; i += ROWS) {
        const float *r = x + i * C, *d = d_y + i * C;
        for (int64_t c = 0; c < C; c++) {
            d_offset[c] += (d[c] + d[C + c]) + (d[2 * C + c] + d[3 * C + c]);
            d_scale[c] += (d[c] * (r[c] - mean[c]) + d[C + c] * (r[C + c] - mean[c])) +
                          (d[2 * C + c] * (r[2 * C + c] - mean[c]) +
                           d[3 * C + c] * (r[3 * C + c] - mean[c]));
        }
    }
    for (; i < rows; i++)
        for (int64_t c = 0; c < C; c++) {
            d_offset[c] += d_y[i * C + c];
            d_scale[c] += d_y[i * C + c] * (x[i * C + c] - mean[c]);
        }
    for (int64_t c = 0; c < C; c++) d_scale[c] *= inverse[c];
}

static void apply_grad(const float *x, const float *d_y, int64_t rows, int64_t C,
                       const float *restrict mean, const float *restrict factor,
                       const float *restrict a, const float *restrict b, float *restrict d_x)
{
    for (int64_t i = 0; i < rows; i++, x += C, d_y += C, d_x += C)
        for (int64_t c = 0; c < C; c++)
            d_x[c] = factor[c] * (d_y[c] - a[c] - (x[c] - mean[c]) * b[c]);
}

/* exp(x) for x <= 0, to 1 unit in the last place; 0 where it is less than the least normal
 * number. 2^n exp(r) with r = x - n log 2, |r| <= log 2 / 2, and the Taylor polynomial to r^7. */
INLINE Lanes exp_negative(Lanes x)
{
    const float shift = 12582912.0f;          /* 1.5 2^23: adding it rounds to whole numbers */
    const Lanes n = x * 1.44269504f + shift;
    const Lanes whole = n - shift;
    const Lanes r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    Lanes       p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const Mask power = ((Mask)n - 0x4b400000 + 127) << 23;
    return (Lanes)((Mask)(p * (Lanes)power) & ~(x < -87.0f));
}

INLINE Lanes load_class(const float *x, int64_t left)
{
    if (left >= LANES) return load(x);
    Lanes value = (Lanes){ 0 } - INFINITY;
    memcpy(&value, x, (size_t)left * sizeof(float));
    return value;
}

static void softmax(const float *x, int64_t classes, bool logarithm, float *y)
{
    float largest = -INFINITY, sum = 0.0f;
    Lanes parts = { 0 };
    for (int64_t k = 0; k < classes; k++) largest = x[k] > largest ? x[k] : largest;
    for (int64_t k = 0; k < classes; k += LANES)
        parts += exp_negative(load_class(x + k, classes - k) - largest);
    for (int lane = 0; lane < LANES; lane++) sum += parts[lane];
    if (logarithm) {
        const float log_sum = logf(sum);
        for (int64_t k = 0; k < classes; k++) y[k] = x[k] - largest - log_sum;
        return;
    }
    const float part = 1.0f / sum;
    for (int64_t k = 0; k < classes; k += LANES) {
        const Lanes value = exp_negative(load_class(x + k, classes - k) - largest) * part;
        memcpy(y + k, &value, (size_t)(classes - k < LANES ? classes - k : LANES) * sizeof(float));
    }
}

const CornuNormalizes CORNU__PER_ISA(cornu__normalizes) = {
    statistics, apply, sums, apply_grad, softmax,
};
