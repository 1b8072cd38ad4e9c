/*
 * Sums and maxima of f32 for reduce.c. A run is summed in 64 lanes, so that no f32 sum has more
 * than count / 64 + 6 roundings; an element's lane depends on its place alone.
 *
 * Reference: device/ops/reduce.c; tests/device/host/machine/test_vector.c compares sums.
 * Source: own.
 * Gain: not measured.
 */
#include "vector_loop.h"

enum { LANES = 64 };

void CORNU__PER_ISA(cornu__add_row)(float *sum, const float *x, int64_t count);
void CORNU__PER_ISA(cornu__max_row)(float *max, const float *x, int64_t count);
float CORNU__PER_ISA(cornu__sum_run)(const float *x, int64_t count);
float CORNU__PER_ISA(cornu__max_run)(const float *x, int64_t count);

/* NaN if either is NaN */
static inline float larger(float a, float b) { return ((a > b) | (a != a)) ? a : b; }

void CORNU__PER_ISA(cornu__add_row)(float *sum, const float *x, int64_t count)
{
    CORNU__SIMD for (int64_t i = 0; i < count; i++) sum[i] += x[i];
}

void CORNU__PER_ISA(cornu__max_row)(float *max, const float *x, int64_t count)
{
    CORNU__SIMD for (int64_t i = 0; i < count; i++) max[i] = larger(max[i], x[i]);
}

float CORNU__PER_ISA(cornu__sum_run)(const float *x, int64_t count)
{
    float   sum[LANES] = { 0.0f };
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        CORNU__SIMD for (int lane = 0; lane < LANES; lane++) sum[lane] += x[i + lane];
    for (int lane = 0; i + lane < count; lane++) sum[lane] += x[i + lane];
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) sum[lane] += sum[lane + half];
    return sum[0];
}

float CORNU__PER_ISA(cornu__max_run)(const float *x, int64_t count)
{
    float   max[LANES];
    int64_t i = 0;
    for (int lane = 0; lane < LANES; lane++) max[lane] = x[lane < count ? lane : 0];
    for (; i + LANES <= count; i += LANES)
        CORNU__SIMD for (int lane = 0; lane < LANES; lane++)
            max[lane] = larger(max[lane], x[i + lane]);
    for (int lane = 0; i + lane < count; lane++) max[lane] = larger(max[lane], x[i + lane]);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) max[lane] = larger(max[lane], max[lane + half]);
    return max[0];
}
