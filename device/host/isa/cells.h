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
 */
#include "../../inference_internal.h"
#include "recurrent.h"
#include "exponential.h"

/* A register from element `at` on; zeros from `end` on. */
INLINE Lanes take(CornuCellInput x, int64_t at, int64_t end)
{
    return x.narrow ? load_narrow((const uint16_t *)x.from + at, end - at)
                    : load_some((const float *)x.from + at, end - at);
}

INLINE void give(Lanes value, CornuCellOutput y, int64_t at, int64_t end)
{
    if (y.narrow && y.stream) stream_narrow((uint16_t *)y.to + at, value);
    else if (y.narrow) store_narrow((uint16_t *)y.to + at, value, end - at);
    else if (y.stream) stream((float *)y.to + at, value);
    else store_some((float *)y.to + at, value, end - at);
}

static void fence(void) { store_fence(); }

/* A gate of x, in [0, 1]. */
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

static void lstm(const CornuLstmCell *cell)
{
    const float *sums = cell->sums, slope = cell->gate_slope;
    for (int64_t u = 0, end = cell->units; u < end; u += LANES) {
        Lanes z[4];
        UNROLL for (int k = 0; k < 4; k++)
            z[k] = take(cell->z, k * cell->gate + u, k * cell->gate + end) +
                   load(sums + k * cell->sums_gate + u);
        const Lanes i = gate_of(z[0], slope), f = gate_of(z[1], slope), g = tanh_of(z[2]);
        const Lanes o = gate_of(z[3], slope), c = f * load(cell->c + u) + i * g;
        const Lanes h = o * tanh_of(c), gates[4] = { i, f, g, o };
        UNROLL for (int k = 0; k < 4; k++)
            give(gates[k], cell->gates, k * cell->gate + u, k * cell->gate + end);
        store(cell->c + u, c);
        give(c, cell->cells, u, end);
        give(h, cell->h, u, end);
    }
}

static void lstm_grad(const CornuLstmGradCell *cell)
{
    const float slope = cell->gate_slope;
    for (int64_t u = 0, end = cell->units; u < end; u += LANES) {
        Lanes gates[4];
        UNROLL for (int k = 0; k < 4; k++)
            gates[k] = take(cell->gates, k * cell->gate + u, k * cell->gate + end);
        const Lanes i = gates[0], f = gates[1], g = gates[2], o = gates[3];
        const Lanes t = tanh_of(take(cell->cells, u, end)), before = take(cell->before, u, end);
        const Lanes d = load(cell->product + u) + load(cell->direct + u) +
                        take(cell->d_h, u, end);
        const Lanes d_c = load(cell->d_c + u) + d * o * (1.0f - t * t);
        const Lanes d_z[4] = { d_c * g * slope_of(i, slope), d_c * before * slope_of(f, slope),
                               d_c * i * (1.0f - g * g), d * t * slope_of(o, slope) };
        store(cell->direct + u, all(0.0f));
        store(cell->d_c + u, d_c * f);
        UNROLL for (int k = 0; k < 4; k++)
            give(d_z[k], cell->d_z, k * cell->gate + u, k * cell->gate + end);
    }
}

static void gru(const CornuGruCell *cell)
{
    const float slope = cell->gate_slope, *sums = cell->sums;
    for (int64_t u = 0, end = cell->units; u < end; u += LANES) {
        Lanes x[3], sum[3];
        UNROLL for (int k = 0; k < 3; k++) {
            x[k] = take(cell->x, k * cell->gate + u, k * cell->gate + end);
            sum[k] = load(sums + k * cell->sums_gate + u);
        }
        const Lanes z = gate_of(x[0] + sum[0], slope), r = gate_of(x[1] + sum[1], slope);
        const Lanes g = tanh_of(x[2] + r * sum[2]), gates[4] = { z, r, g, sum[2] };
        const Lanes h = z * load(cell->state + u) + (1.0f - z) * g;
        UNROLL for (int k = 0; k < 4; k++)
            give(gates[k], cell->gates, k * cell->gate + u, k * cell->gate + end);
        store(cell->state + u, h);
        give(h, cell->h, u, end);
    }
}

static void gru_grad(const CornuGruGradCell *cell)
{
    const float slope = cell->gate_slope;
    for (int64_t u = 0, end = cell->units; u < end; u += LANES) {
        Lanes gates[4];
        UNROLL for (int k = 0; k < 4; k++)
            gates[k] = take(cell->gates, k * cell->gate + u, k * cell->gate + end);
        const Lanes z = gates[0], r = gates[1], g = gates[2], inner = gates[3];
        const Lanes d = load(cell->product + u) + load(cell->direct + u) +
                        take(cell->d_h, u, end);
        const Lanes d_z = d * (take(cell->before, u, end) - g) * slope_of(z, slope);
        const Lanes d_g = d * (1.0f - z) * (1.0f - g * g), d_r = d_g * inner * slope_of(r, slope);
        const Lanes of_x[3] = { d_z, d_r, d_g }, of_inner[3] = { d_z, d_r, d_g * r };
        store(cell->direct + u, d * z);
        UNROLL for (int k = 0; k < 3; k++) {
            give(of_x[k], cell->d_x, k * cell->gate + u, k * cell->gate + end);
            give(of_inner[k], cell->d_inner, k * cell->gate + u, k * cell->gate + end);
        }
    }
}

const CornuCells CORNU__PER_ISA(cornu__cells) = {
    lstm, CORNU__FULL(lstm_grad, NULL), gru, CORNU__FULL(gru_grad, NULL), fence,
};
