/*
 * Updates of recurrent cells, a register of units at a time. Units after the last one are computed
 * too, but not stored. recurrent.c compiles them for every instruction set, recurrent_bf16.c for
 * those that multiply bf16, where an instruction rounds to it.
 *
 * Reference: device/ops/lstm.c and gru.c; tests/op_cases/recurrent.c has the cases.
 * Source: own.
 * Gain, 32 units in L1, Zen 4: exponentials by min, max and scalef, gates of a cell in registers,
 *     lstm: 152 ns, then 113; rounded to bf16 by the instruction, lstm and lstm_grad: 98 and 56 ns,
 *     then 83 and 42; gates streamed past the caches, 128 x 100 x 512 on 8 shards: 96 ms, then 84.
 *     Zen 3, AVX2: gates one after the other, each streamed as whole lines, sigmoids and tanhs of
 *     fewer operations, h stored for the next product by the cell: lstm in L1 177 ns, then 129; of
 *     128 x 100 x 512, f32, two threads, 183 ms, then 160.
 */
#include "../../inference_internal.h"
#include "recurrent.h"
#include "exponential.h"

enum { UNITS = CORNU_CELL_UNITS };

typedef float Units[UNITS];

static void take_some(CornuCellInput x, int64_t at, int64_t units, float *to)
{
    for (int64_t u = 0; u < units; u += LANES)
        store(to + u, x.narrow ? load_narrow((const uint16_t *)x.from + at + u, units - u)
                               : load_some((const float *)x.from + at + u, units - u));
}

/* `units` elements from `at` on, where they are or copied to `space`. */
INLINE const float *taken(CornuCellInput x, int64_t at, int64_t units, float *space)
{
    if (units == UNITS && !x.narrow) return (const float *)x.from + at;
    if (units == UNITS)
        for (int64_t u = 0; u < UNITS; u += LANES)
            store(space + u, load_halves((const uint16_t *)x.from + at + u));
    else
        take_some(x, at, units, space);
    return space;
}

static void give_some(const float *from, CornuCellOutput y, int64_t at, int64_t units)
{
    for (int64_t u = 0; u < units; u += LANES)
        if (y.narrow) store_narrow((uint16_t *)y.to + at + u, load(from + u), units - u);
        else store_some((float *)y.to + at + u, load(from + u), units - u);
}

/* All of them at once, if there is such an output: streams that are written by turns send lines in
 * parts. */
static void give(const float *from, CornuCellOutput y, int64_t at, int64_t units)
{
    if (!y.to) return;
    float    *wide = (float *)y.to + at;
    uint16_t *half = (uint16_t *)y.to + at;
    if (units < UNITS) give_some(from, y, at, units);
    else if (y.narrow && y.stream)
        for (int64_t u = 0; u < UNITS; u += LANES) stream_narrow(half + u, load(from + u));
    else if (y.narrow)
        for (int64_t u = 0; u < UNITS; u += LANES) store_all_narrow(half + u, load(from + u));
    else if (y.stream)
        for (int64_t u = 0; u < UNITS; u += LANES) stream(wide + u, load(from + u));
    else
        for (int64_t u = 0; u < UNITS; u += LANES) store(wide + u, load(from + u));
}

static void fence(void) { store_fence(); }

/* In [0, 1]. */
INLINE Lanes gate_of(Lanes x, float slope)
{
    if (slope == 0.0f) return sigmoid_of(x);
    return min_of(all(1.0f), max_of(all(0.0f), x * slope + 0.5f));
}

/* The slope of a gate, from its value. */
INLINE Lanes slope_of(Lanes gate, float slope)
{
    if (slope == 0.0f) return gate * (1.0f - gate);
    return (Lanes)((Mask)all(slope) & (gate > 0.0f) & (gate < 1.0f));
}

/* A gate, of x + sums. */
static void gates_of(const float *x, const float *sums, int64_t units, float slope, float *gate)
{
    if (slope == 0.0f)
        for (int64_t u = 0; u < units; u += LANES)
            store(gate + u, gate_of(load(x + u) + load(sums + u), 0.0f));
    else
        for (int64_t u = 0; u < units; u += LANES)
            store(gate + u, gate_of(load(x + u) + load(sums + u), slope));
}

static void lstm(const CornuLstmCell *cell)
{
    const int64_t units = cell->units;
    Units         gates[4], h, space;
    for (int k = 0; k < 4; k++) {
        const float *z = taken(cell->z, k * cell->gate, units, space);
        const float *sums = cell->sums + k * cell->sums_gate;
        if (k == 2)
            for (int64_t u = 0; u < units; u += LANES)
                store(gates[k] + u, quick_tanh(load(z + u) + load(sums + u)));
        else
            gates_of(z, sums, units, cell->gate_slope, gates[k]);
        give(gates[k], cell->gates, k * cell->gate, units);
    }
    for (int64_t u = 0; u < units; u += LANES) {
        const Lanes i = load(gates[0] + u), f = load(gates[1] + u), g = load(gates[2] + u);
        const Lanes c = f * load(cell->c + u) + i * g;
        store(cell->c + u, c);
        store(h + u, load(gates[3] + u) * quick_tanh(c));
    }
    give(cell->c, cell->cells, 0, units);
    give(h, cell->h, 0, units);
    give(h, cell->next, 0, units);
}

static void lstm_grad(const CornuLstmGradCell *cell)
{
    const int64_t units = cell->units;
    const float   slope = cell->gate_slope, *gates[4];
    Units         d_z[4], space[7];
    for (int k = 0; k < 4; k++) gates[k] = taken(cell->gates, k * cell->gate, units, space[k]);
    const float *cells = taken(cell->cells, 0, units, space[4]);
    const float *before = taken(cell->before, 0, units, space[5]);
    const float *d_h = taken(cell->d_h, 0, units, space[6]);
    for (int64_t u = 0; u < units; u += LANES) {
        const Lanes i = load(gates[0] + u), f = load(gates[1] + u), g = load(gates[2] + u);
        const Lanes o = load(gates[3] + u), t = quick_tanh(load(cells + u));
        const Lanes d = load(cell->product + u) + load(cell->direct + u) + load(d_h + u);
        const Lanes d_c = load(cell->d_c + u) + d * o * (1.0f - t * t);
        store(d_z[0] + u, d_c * g * slope_of(i, slope));
        store(d_z[1] + u, d_c * load(before + u) * slope_of(f, slope));
        store(d_z[2] + u, d_c * i * (1.0f - g * g));
        store(d_z[3] + u, d * t * slope_of(o, slope));
        store(cell->direct + u, all(0.0f));
        store(cell->d_c + u, d_c * f);
    }
    for (int k = 0; k < 4; k++) {
        give(d_z[k], cell->d_z, k * cell->gate, units);
        give(d_z[k], cell->next, k * cell->gate, units);
    }
}

static void gru(const CornuGruCell *cell)
{
    const int64_t units = cell->units;
    const float  *inner = cell->sums + 2 * cell->sums_gate;
    Units         gates[3], space;
    for (int k = 0; k < 2; k++)
        gates_of(taken(cell->x, k * cell->gate, units, space), cell->sums + k * cell->sums_gate,
                 units, cell->gate_slope, gates[k]);
    const float *x = taken(cell->x, 2 * cell->gate, units, space);
    for (int64_t u = 0; u < units; u += LANES) {
        const Lanes z = load(gates[0] + u), r = load(gates[1] + u);
        const Lanes g = quick_tanh(load(x + u) + r * load(inner + u));
        store(gates[2] + u, g);
        store(cell->state + u, z * load(cell->state + u) + (1.0f - z) * g);
    }
    for (int k = 0; k < 3; k++) give(gates[k], cell->gates, k * cell->gate, units);
    give(inner, cell->gates, 3 * cell->gate, units);
    give(cell->state, cell->h, 0, units);
    give(cell->state, cell->next, 0, units);
}

static void gru_grad(const CornuGruGradCell *cell)
{
    const int64_t units = cell->units;
    const float   slope = cell->gate_slope, *gates[4];
    Units         of_x[3], of_inner, space[6];
    for (int k = 0; k < 4; k++) gates[k] = taken(cell->gates, k * cell->gate, units, space[k]);
    const float *before = taken(cell->before, 0, units, space[4]);
    const float *d_h = taken(cell->d_h, 0, units, space[5]);
    for (int64_t u = 0; u < units; u += LANES) {
        const Lanes z = load(gates[0] + u), r = load(gates[1] + u), g = load(gates[2] + u);
        const Lanes d = load(cell->product + u) + load(cell->direct + u) + load(d_h + u);
        const Lanes d_g = d * (1.0f - z) * (1.0f - g * g);
        store(of_x[0] + u, d * (load(before + u) - g) * slope_of(z, slope));
        store(of_x[1] + u, d_g * load(gates[3] + u) * slope_of(r, slope));
        store(of_x[2] + u, d_g);
        store(of_inner + u, d_g * r);
        store(cell->direct + u, d * z);
    }
    for (int k = 0; k < 3; k++) {
        const float *inner = k < 2 ? of_x[k] : of_inner;
        give(of_x[k], cell->d_x, k * cell->gate, units);
        give(inner, cell->d_inner, k * cell->gate, units);
        give(inner, cell->next, k * cell->gate, units);
    }
}

const CornuCells CORNU__PER_ISA(cornu__cells) = {
    lstm, CORNU__FULL(lstm_grad, NULL), gru, CORNU__FULL(gru_grad, NULL), fence,
};
