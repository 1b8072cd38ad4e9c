/*
 * The few channels of an output are in a quarter of a register, whatever the instruction set: an
 * output's terms are as far apart as positions of the product, so that wider registers would have
 * to be put together from such pieces, which takes longer than adding them.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain: part of conv2d_few.c's.
 */
#include "col2im.h"
#include "lanes.h"

/* Sums computed at once: enough for two additions in each of four cycles. */
enum { OUTPUTS = 8 };

typedef float Quad __attribute__((vector_size(4 * CORNU_COL2IM_QUAD)));
typedef float UnalignedQuad __attribute__((vector_size(4 * CORNU_COL2IM_QUAD), aligned(4),
                                           may_alias));

/* Outputs j to j + outputs, channels c to c + channels. */
INLINE void sum_tile(const CornuTaps *taps, int64_t j, int64_t c, int outputs, int channels)
{
    Quad         sum[OUTPUTS] = { { 0 } };
    const float *x = taps->x + j * taps->x_step + c;
    for (int64_t t = 0; t < taps->tap_count; t++)
        UNROLL for (int k = 0; k < outputs; k++)
            sum[k] += *(const UnalignedQuad *)(x + taps->taps[t] + k * taps->x_step);
    UNROLL for (int k = 0; k < outputs; k++)
        memcpy(taps->y + (j + k) * taps->y_step + c, &sum[k], (size_t)channels * sizeof(float));
}

INLINE void sum_channels(const CornuTaps *taps, int64_t c, int channels)
{
    int64_t j = 0;
    for (; j + OUTPUTS <= taps->outputs; j += OUTPUTS) sum_tile(taps, j, c, OUTPUTS, channels);
    if (taps->outputs - j >= 4) sum_tile(taps, j, c, 4, channels), j += 4;
    if (taps->outputs - j >= 2) sum_tile(taps, j, c, 2, channels), j += 2;
    if (taps->outputs - j >= 1) sum_tile(taps, j, c, 1, channels);
}

void CORNU__PER_ISA(cornu__col2im)(const CornuTaps *taps)
{
    for (int64_t c = 0; c < taps->channels; c += CORNU_COL2IM_QUAD)
        switch (taps->channels - c) {
        case 1: sum_channels(taps, c, 1); break;
        case 2: sum_channels(taps, c, 2); break;
        case 3: sum_channels(taps, c, 3); break;
        default: sum_channels(taps, c, CORNU_COL2IM_QUAD); break;
        }
}
