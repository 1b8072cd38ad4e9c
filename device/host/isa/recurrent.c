/* Updates of recurrent cells. Whole blocks of units are computed, so that none goes through a
 * loop's remainder; those beyond the last one are not stored. */
#include "../recurrent.h"
#include "exponential.h"
#include "per_isa.h"

#define SIMD   _Pragma("omp simd")
#define INLINE static inline __attribute__((always_inline))

enum { UNITS = CORNU_CELL_UNITS };

/* memcpy of a whole block is a few moves, of a part a call. */
INLINE void copy(void *to, const void *from, int units, size_t size)
{
    if (units == UNITS) memcpy(to, from, UNITS * size);
    else memcpy(to, from, (size_t)units * size);
}

INLINE void take(CornuCellInput x, int64_t at, int units, float *restrict to)
{
    if (x.narrow) {
        uint16_t half[UNITS] = { 0 };
        copy(half, (const uint16_t *)x.from + at, units, sizeof *half);
        SIMD for (int u = 0; u < UNITS; u++) to[u] = float_of((uint32_t)half[u] << 16);
        return;
    }
    for (int u = units; u < UNITS; u++) to[u] = 0.0f;
    copy(to, (const float *)x.from + at, units, sizeof *to);
}

/* As cornu_bf16_from_float. */
INLINE uint16_t rounded(float value)
{
    const uint32_t x = bits_of(value), up = x + 0x7fff + (x >> 16 & 1);
    return (uint16_t)(((x & 0x7fffffff) > 0x7f800000 ? x | 0x400000 : up) >> 16);
}

INLINE void give(const float *restrict x, CornuCellOutput y, int64_t at, int units)
{
    if (y.narrow) {
        uint16_t half[UNITS];
        SIMD for (int u = 0; u < UNITS; u++) half[u] = rounded(x[u]);
        copy((uint16_t *)y.to + at, half, units, sizeof *half);
        return;
    }
    copy((float *)y.to + at, x, units, sizeof *x);
}

/* Gates of what is in x, in its place. */
INLINE void open_gates(float *restrict x, float slope)
{
    if (slope == 0.0f) {
        SIMD for (int u = 0; u < UNITS; u++) x[u] = sigmoid_of(x[u]);
        return;
    }
    SIMD for (int u = 0; u < UNITS; u++) {
        const float line = slope * x[u] + 0.5f, above = line > 0.0f ? line : 0.0f;
        x[u] = line != line ? line : above < 1.0f ? above : 1.0f;
    }
}

/* Their slopes. */
INLINE void slopes_of(const float *restrict gate, float slope, float *restrict to)
{
    if (slope == 0.0f) {
        SIMD for (int u = 0; u < UNITS; u++) to[u] = gate[u] * (1.0f - gate[u]);
        return;
    }
    SIMD for (int u = 0; u < UNITS; u++)
        to[u] = ((gate[u] > 0.0f) & (gate[u] < 1.0f)) ? slope : 0.0f;
}

static void lstm(const CornuLstmCell *cell)
{
    const int units = cell->units;
    float     i[UNITS], f[UNITS], g[UNITS], o[UNITS], *gates[4] = { i, f, g, o };
    float *restrict c = cell->c, *restrict h = cell->wide_h;
    for (int k = 0; k < 4; k++) {
        const float *restrict sum = cell->sums + k * cell->sums_gate;
        float *restrict       a = gates[k];
        take(cell->z, k * cell->gate, units, a);
        SIMD for (int u = 0; u < UNITS; u++) a[u] += sum[u];
    }
    open_gates(i, cell->gate_slope);
    open_gates(f, cell->gate_slope);
    open_gates(o, cell->gate_slope);
    SIMD for (int u = 0; u < UNITS; u++) g[u] = tanh_of(g[u]);
    for (int k = 0; k < 4; k++) give(gates[k], cell->gates, k * cell->gate, units);
    SIMD for (int u = 0; u < UNITS; u++) {
        c[u] = f[u] * c[u] + i[u] * g[u];
        h[u] = o[u] * tanh_of(c[u]);
    }
    give(c, cell->cells, 0, units);
    give(h, cell->h, 0, units);
}

static void lstm_grad(const CornuLstmGradCell *cell)
{
    const int units = cell->units;
    float     i[UNITS], f[UNITS], g[UNITS], o[UNITS], c[UNITS], before[UNITS], d_h[UNITS];
    float     of_i[UNITS], of_f[UNITS], of_o[UNITS];
    const float *restrict product = cell->product;
    float *restrict direct = cell->direct, *restrict d_c = cell->d_c;
    float *restrict d_i = cell->wide_d_z, *restrict d_f = d_i + cell->wide_gate;
    float *restrict d_g = d_f + cell->wide_gate, *restrict d_o = d_g + cell->wide_gate;
    take(cell->gates, 0, units, i);
    take(cell->gates, cell->gate, units, f);
    take(cell->gates, 2 * cell->gate, units, g);
    take(cell->gates, 3 * cell->gate, units, o);
    take(cell->cells, 0, units, c);
    take(cell->before, 0, units, before);
    take(cell->d_h, 0, units, d_h);
    slopes_of(i, cell->gate_slope, of_i);
    slopes_of(f, cell->gate_slope, of_f);
    slopes_of(o, cell->gate_slope, of_o);
    SIMD for (int u = 0; u < UNITS; u++) {
        const float d = product[u] + direct[u] + d_h[u], t = tanh_of(c[u]);
        const float of_c = d_c[u] + d * o[u] * (1.0f - t * t);
        direct[u] = 0.0f;
        d_i[u] = of_c * g[u] * of_i[u];
        d_f[u] = of_c * before[u] * of_f[u];
        d_g[u] = of_c * i[u] * (1.0f - g[u] * g[u]);
        d_o[u] = d * t * of_o[u];
        d_c[u] = of_c * f[u];
    }
    for (int k = 0; k < 4; k++)
        give(cell->wide_d_z + k * cell->wide_gate, cell->d_z, k * cell->gate, units);
}

static void gru(const CornuGruCell *cell)
{
    const int units = cell->units;
    float     z[UNITS], r[UNITS], g[UNITS], inner[UNITS], *gates[4] = { z, r, g, inner };
    float *restrict h = cell->wide_h;
    for (int k = 0; k < 3; k++) take(cell->x, k * cell->gate, units, gates[k]);
    const float *restrict sum_z = cell->sums, *restrict sum_r = sum_z + cell->sums_gate;
    const float *restrict sum_g = sum_r + cell->sums_gate;
    SIMD for (int u = 0; u < UNITS; u++) {
        z[u] += sum_z[u];
        r[u] += sum_r[u];
    }
    open_gates(z, cell->gate_slope);
    open_gates(r, cell->gate_slope);
    SIMD for (int u = 0; u < UNITS; u++) {
        inner[u] = sum_g[u];
        g[u] = tanh_of(g[u] + r[u] * sum_g[u]);
        h[u] = z[u] * h[u] + (1.0f - z[u]) * g[u];
    }
    for (int k = 0; k < 4; k++) give(gates[k], cell->gates, k * cell->gate, units);
    give(h, cell->h, 0, units);
}

static void gru_grad(const CornuGruGradCell *cell)
{
    const int units = cell->units;
    float     z[UNITS], r[UNITS], g[UNITS], inner[UNITS], before[UNITS], d_h[UNITS], d_g[UNITS];
    float     of_z[UNITS], of_r[UNITS];
    const float *restrict product = cell->product;
    float *restrict direct = cell->direct, *restrict d_z = cell->wide_d_inner;
    float *restrict d_r = d_z + cell->wide_gate, *restrict d_inner = d_r + cell->wide_gate;
    take(cell->gates, 0, units, z);
    take(cell->gates, cell->gate, units, r);
    take(cell->gates, 2 * cell->gate, units, g);
    take(cell->gates, 3 * cell->gate, units, inner);
    take(cell->before, 0, units, before);
    take(cell->d_h, 0, units, d_h);
    slopes_of(z, cell->gate_slope, of_z);
    slopes_of(r, cell->gate_slope, of_r);
    SIMD for (int u = 0; u < UNITS; u++) {
        const float d = product[u] + direct[u] + d_h[u];
        d_z[u] = d * (before[u] - g[u]) * of_z[u];
        d_g[u] = d * (1.0f - z[u]) * (1.0f - g[u] * g[u]);
        d_r[u] = d_g[u] * inner[u] * of_r[u];
        d_inner[u] = d_g[u] * r[u];
        direct[u] = d * z[u];
    }
    const float *const of_x[3] = { d_z, d_r, d_g }, *const of_inner[3] = { d_z, d_r, d_inner };
    for (int k = 0; k < 3; k++) {
        give(of_x[k], cell->d_x, k * cell->gate, units);
        give(of_inner[k], cell->d_inner, k * cell->gate, units);
    }
}

const CornuCells CORNU__PER_ISA(cornu__cells) = { lstm, lstm_grad, gru, gru_grad };
