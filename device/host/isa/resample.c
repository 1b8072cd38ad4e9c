/*
 * Interpolations by vectors over what is beside the axis; resample.h says what each function
 * computes.
 *
 * Reference: device/ops/matmul.c; tests/device/ops/test_ops.c compares them.
 * Source: own.
 */
#include "resample.h"

#include "lanes.h"

/* Whether some of the elements is not zero; NaN is not. */
INLINE bool has_weight(const float *weights, int64_t count)
{
    return !is_none((Bits)(load_some(weights, count) != 0.0f));
}

static CornuBand band_of(const float *weights, int64_t columns)
{
    int64_t first = 0, end = columns;
    while (first + LANES <= columns && !has_weight(weights + first, LANES)) first += LANES;
    while (first < columns && weights[first] == 0.0f) first++;
    while (end - LANES >= first && !has_weight(weights + end - LANES, LANES)) end -= LANES;
    while (end > first && weights[end - 1] == 0.0f) end--;
    return (CornuBand){ (int32_t)first, (int32_t)(end - first) };
}

static void bands(const float *weights, int64_t rows, int64_t columns, CornuBand *to)
{
    for (int64_t t = 0; t < rows; t++) to[t] = band_of(weights + t * columns, columns);
}

enum { VECTORS = 4 };   /* of sums at a time */

/* `vectors` registers of row t from element i on, the last of `count` elements. */
INLINE void sum_of(const CornuResample *r, const float *w, const float *x, float *y, int64_t terms,
                   int vectors, int64_t count)
{
    Lanes sum[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++) sum[v] = load_some(x + v * LANES, count) * w[0];
    for (int64_t k = 1; k < terms; k++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] += load_some(x + k * r->x_row + v * LANES, count) * w[k];
    UNROLL
    for (int v = 0; v < vectors; v++) store_some(y + v * LANES, sum[v], count);
}

/* One row, of `terms` terms, a constant where there are two. */
INLINE void row_of(const CornuResample *r, const float *w, const float *x, float *y, int64_t terms)
{
    int64_t i = 0;
    for (; i + VECTORS * LANES <= r->width; i += VECTORS * LANES)
        sum_of(r, w, x + i, y + i, terms, VECTORS, LANES);
    for (; i + LANES <= r->width; i += LANES) sum_of(r, w, x + i, y + i, terms, 1, LANES);
    if (i < r->width) sum_of(r, w, x + i, y + i, terms, 1, r->width - i);
}

static void rows(const CornuResample *r)
{
    for (int64_t t = 0; t < r->rows; t++) {
        const CornuBand band = r->bands[t];
        const float    *w = r->weights + t * r->columns + band.first;
        const float    *x = r->x + band.first * r->x_row;
        float          *y = r->y + t * r->y_row;
        switch (band.count) {
        case 0:  memset(y, 0, (size_t)r->width * sizeof *y); break;
        case 2:  row_of(r, w, x, y, 2); break;
        default: row_of(r, w, x, y, band.count); break;
        }
    }
}

const CornuResamples CORNU__PER_ISA(cornu__resamples) = { bands, rows };
