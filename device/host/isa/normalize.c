/*
 * Statistics and normalization by channel, softmax by row; normalize.h says what each function
 * computes.
 *
 * Reference: device/ops/batch_norm.c and softmax.c; tests/device/host/kernels/test_kernels.c
 *     compares them.
 * Source: own.
 * Gain: softmax with one exponential a number, ns an element in rows of 256, Zen 4: AVX-512 1.17,
 *     then 0.5; AVX2 2.07, then 0.8; portable 3.4, then 2.2. Short rows, some at a time: 131,072
 *     of 2, f32, Zen 5, two threads, 2.46 ms, then 0.044.
 */
#include "../../inference_internal.h"
#include "normalize.h"

#include <math.h>
#include <string.h>

#include "exponential.h"

/* Sums run over ROWS rows before they are added to memory: fewer trips there, less rounding. */
enum { ROWS = 4 };

INLINE float square(float x) { return x * x; }

/* Element i of f32, or of bf16 if `narrow`. */
INLINE float element(const void *x, int64_t i, bool narrow)
{
    return narrow ? float_of((uint32_t)((const uint16_t *)x)[i] << 16) : ((const float *)x)[i];
}

INLINE void put(void *y, int64_t i, float value, bool narrow)
{
    if (narrow) ((uint16_t *)y)[i] = rounded(bits_of(value));
    else ((float *)y)[i] = value;
}

INLINE void statistics_of(const void *x, bool narrow, int64_t rows, int64_t C,
                          float *restrict mean, float *restrict squares)
{
    for (int64_t c = 0; c < C; c++) mean[c] = squares[c] = 0.0f;
    int64_t i = 0;
    for (; i + ROWS <= rows; i += ROWS)
        for (int64_t c = 0, k = i * C; c < C; c++, k++)
            mean[c] += (element(x, k, narrow) + element(x, k + C, narrow)) +
                       (element(x, k + 2 * C, narrow) + element(x, k + 3 * C, narrow));
    for (; i < rows; i++)
        for (int64_t c = 0; c < C; c++) mean[c] += element(x, i * C + c, narrow);
    const float part = 1.0f / (float)rows;
    for (int64_t c = 0; c < C; c++) mean[c] *= part;
    for (i = 0; i + ROWS <= rows; i += ROWS)
        for (int64_t c = 0, k = i * C; c < C; c++, k++)
            squares[c] += (square(element(x, k, narrow) - mean[c]) +
                           square(element(x, k + C, narrow) - mean[c])) +
                          (square(element(x, k + 2 * C, narrow) - mean[c]) +
                           square(element(x, k + 3 * C, narrow) - mean[c]));
    for (; i < rows; i++)
        for (int64_t c = 0; c < C; c++)
            squares[c] += square(element(x, i * C + c, narrow) - mean[c]);
}

static void statistics(const void *x, bool narrow, int64_t rows, int64_t C, float *mean,
                       float *squares)
{
    if (narrow) statistics_of(x, true, rows, C, mean, squares);
    else statistics_of(x, false, rows, C, mean, squares);
}

/* Each number is compared with what bounds it, not the other way round: so a NaN stays one. */
INLINE void apply_to(const void *x, bool narrow, int64_t count, int64_t period,
                     const float *restrict mean, const float *restrict factor,
                     const float *restrict offset, bool relu, float high, void *restrict y)
{
    for (int64_t i = 0, used; i < count; i += used) {
        used = period < count - i ? period : count - i;
        for (int64_t k = 0; k < used; k++) {
            float value = (element(x, i + k, narrow) - mean[k]) * factor[k] + offset[k];
            if (relu) value = value >= high ? high : value;
            put(y, i + k, relu && value <= 0.0f ? 0.0f : value, narrow);
        }
    }
}

static void apply(const void *x, bool narrow, int64_t count, int64_t period, const float *mean,
                  const float *factor, const float *offset, bool relu, float high, void *y)
{
    if (narrow && relu) apply_to(x, true, count, period, mean, factor, offset, true, high, y);
    else if (narrow) apply_to(x, true, count, period, mean, factor, offset, false, high, y);
    else if (relu) apply_to(x, false, count, period, mean, factor, offset, true, high, y);
    else apply_to(x, false, count, period, mean, factor, offset, false, high, y);
}

INLINE void sums_of(const void *x, const void *d_y, bool narrow, int64_t rows, int64_t C,
                    const float *restrict mean, const float *restrict inverse,
                    float *restrict d_offset, float *restrict d_scale)
{
    for (int64_t c = 0; c < C; c++) d_offset[c] = d_scale[c] = 0.0f;
    int64_t i = 0;
    for (; i + ROWS <= rows; i += ROWS)
        for (int64_t c = 0, k = i * C; c < C; c++, k++) {
            const float d0 = element(d_y, k, narrow), d1 = element(d_y, k + C, narrow);
            const float d2 = element(d_y, k + 2 * C, narrow), d3 = element(d_y, k + 3 * C, narrow);
            d_offset[c] += (d0 + d1) + (d2 + d3);
            d_scale[c] += (d0 * (element(x, k, narrow) - mean[c]) +
                           d1 * (element(x, k + C, narrow) - mean[c])) +
                          (d2 * (element(x, k + 2 * C, narrow) - mean[c]) +
                           d3 * (element(x, k + 3 * C, narrow) - mean[c]));
        }
    for (; i < rows; i++)
        for (int64_t c = 0, k = i * C; c < C; c++, k++) {
            d_offset[c] += element(d_y, k, narrow);
            d_scale[c] += element(d_y, k, narrow) * (element(x, k, narrow) - mean[c]);
        }
    for (int64_t c = 0; c < C; c++) d_scale[c] *= inverse[c];
}

static void sums(const void *x, const void *d_y, bool narrow, int64_t rows, int64_t C,
                 const float *mean, const float *inverse, float *d_offset, float *d_scale)
{
    if (narrow) sums_of(x, d_y, true, rows, C, mean, inverse, d_offset, d_scale);
    else sums_of(x, d_y, false, rows, C, mean, inverse, d_offset, d_scale);
}

INLINE void apply_grad_to(const void *x, const void *d_y, bool narrow, int64_t count,
                          int64_t period, const float *restrict mean,
                          const float *restrict factor, const float *restrict a,
                          const float *restrict b, void *restrict d_x)
{
    for (int64_t i = 0, used; i < count; i += used) {
        used = period < count - i ? period : count - i;
        for (int64_t k = 0; k < used; k++)
            put(d_x, i + k,
                factor[k] * (element(d_y, i + k, narrow) - a[k] -
                             (element(x, i + k, narrow) - mean[k]) * b[k]), narrow);
    }
}

static void apply_grad(const void *x, const void *d_y, bool narrow, int64_t count, int64_t period,
                       const float *mean, const float *factor, const float *a, const float *b,
                       void *d_x)
{
    if (narrow) apply_grad_to(x, d_y, true, count, period, mean, factor, a, b, d_x);
    else apply_grad_to(x, d_y, false, count, period, mean, factor, a, b, d_x);
}

INLINE float largest_lane(Lanes x)
{
    float lanes[LANES];
    store(lanes, x);
    UNROLL for (int half = LANES / 2; half; half /= 2)
        for (int n = 0; n < half; n++)
            lanes[n] = lanes[n] > lanes[n + half] ? lanes[n] : lanes[n + half];
    return lanes[0];
}

INLINE float sum_of_lanes(Lanes x)
{
    float lanes[LANES];
    store(lanes, x);
    UNROLL for (int half = LANES / 2; half; half /= 2)
        for (int n = 0; n < half; n++) lanes[n] += lanes[n + half];
    return lanes[0];
}

/* `rows` rows of at most LANES classes, as many at most: a lane of `columns` has one. */
INLINE void softmax_columns(const float *x, int64_t rows, int64_t classes, bool logarithm, float *y)
{
    Lanes columns[LANES], sum = { 0 }, best = sum - INFINITY;
    float lanes[LANES][LANES];
    for (int64_t k = 0; k < classes; k++) store(lanes[k], sum);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < classes; k++) lanes[k][row] = x[row * classes + k];
    for (int64_t k = 0; k < classes; k++) best = max_of(load(lanes[k]), best);
    for (int64_t k = 0; k < classes; k++) {
        columns[k] = exp_of(load(lanes[k]) - best);
        sum += columns[k];
    }
    if (logarithm) {
        float log_sum[LANES];
        store(log_sum, sum);
        for (int64_t row = 0; row < rows; row++) log_sum[row] = logf(log_sum[row]);
        for (int64_t k = 0; k < classes; k++)
            columns[k] = load(lanes[k]) - best - load(log_sum);
    } else {
        for (int64_t k = 0; k < classes; k++) columns[k] /= sum;
    }
    for (int64_t k = 0; k < classes; k++) store(lanes[k], columns[k]);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < classes; k++) y[row * classes + k] = lanes[k][row];
}

static void softmax_row(const float *x, int64_t classes, bool logarithm, float *y)
{
    const int64_t whole = classes / LANES * LANES;
    const size_t  left = (size_t)(classes - whole) * sizeof(float);
    Lanes         tail = (Lanes){ 0 } - INFINITY;   /* whose exponential is 0 */
    if (left) memcpy(&tail, x + whole, left);
    Lanes best = tail;
    for (int64_t k = 0; k < whole; k += LANES) best = max_of(load(x + k), best);
    const float largest = largest_lane(best);
    tail = exp_of(tail - largest);
    Lanes parts = tail;
    if (logarithm) {
        for (int64_t k = 0; k < whole; k += LANES) parts += exp_of(load(x + k) - largest);
        const float log_sum = logf(sum_of_lanes(parts));
        for (int64_t k = 0; k < classes; k++) y[k] = x[k] - largest - log_sum;
        return;
    }
    for (int64_t k = 0; k < whole; k += LANES) {
        const Lanes value = exp_of(load(x + k) - largest);
        store(y + k, value);
        parts += value;
    }
    const float part = 1.0f / sum_of_lanes(parts);
    for (int64_t k = 0; k < whole; k += LANES) store(y + k, load(y + k) * part);
    tail *= part;
    if (left) memcpy(y + whole, &tail, left);
}

static void softmax_few(const float *x, int64_t rows, int64_t classes, bool logarithm, float *y)
{
    switch (classes) {
    case 2: softmax_columns(x, rows, 2, logarithm, y); break;
    case 3: softmax_columns(x, rows, 3, logarithm, y); break;
    default: softmax_columns(x, rows, classes, logarithm, y);
    }
}

/* A NaN is not the largest, but makes the sum and so the whole row NaN. */
static void softmax(const float *x, int64_t rows, int64_t classes, bool logarithm, float *y)
{
    const int64_t most = classes <= LANES ? LANES : 1;
    for (; rows > 0; rows -= most, x += most * classes, y += most * classes)
        if (classes > LANES) softmax_row(x, classes, logarithm, y);
        else softmax_few(x, rows < LANES ? rows : LANES, classes, logarithm, y);
}

const CornuNormalizes CORNU__PER_ISA(cornu__normalizes) = {
    CORNU__FULL(statistics, NULL), CORNU__FULL(apply, NULL), CORNU__FULL(sums, NULL),
    CORNU__FULL(apply_grad, NULL), softmax,
};
