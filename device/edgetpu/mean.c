/* Reductions. Source: QuantizedMeanOrSum and ReduceGeneric of LiteRT,
 * tflite/kernels/internal/reference/reduce.h. */
#include <string.h>

#include "isa/int8.h"
#include "kernels.h"

/* The multiplier of a sum of `count` numbers: the division is part of it, truncated. */
static CornuMultiplier divided(CornuMultiplier by, int64_t count)
{
    int shift = 0;
    while (shift < 32 && count >> (shift + 1)) shift++;
    if (shift > 31 + by.shift) shift = 31 + by.shift;
    return (CornuMultiplier){ (int32_t)(((int64_t)by.mantissa << shift) / count),
                              by.shift - shift };
}

CornuMultiplier cornu__int8_mean_multiplier(CornuAffine x, CornuAffine y, int64_t count)
{
    return divided(cornu__multiplier((double)x.scale / (double)y.scale), count);
}

void cornu__int8_mean(CornuAffine x, CornuAffine y, int rank, const int64_t *extents,
                      const bool *reduced, const int8_t *in, int8_t *out, int32_t *scratch)
{
    const CornuInt8Loops *loops = cornu__int8_loops();
    int64_t index[CORNU_INT8_RANK] = { 0 }, count = 1, means = 1, summed = 1, inner = 1;
    for (int d = 0; d < rank; d++) {
        count *= extents[d];
        *(reduced[d] ? &summed : &means) *= extents[d];
    }
    int outer = rank;   /* axes; those after them are kept, and added at once */
    while (outer > 0 && !reduced[outer - 1]) inner *= extents[--outer];
    memset(scratch, 0, (size_t)means * sizeof *scratch);
    for (int64_t i = 0; i < count; i += inner, in += inner) {
        int64_t at = 0;
        for (int d = 0; d < outer; d++)
            if (!reduced[d]) at = at * extents[d] + index[d];
        loops->accumulate(inner, in, scratch + at * inner);
        for (int d = outer - 1; d >= 0 && ++index[d] == extents[d]; d--) index[d] = 0;
    }
    const CornuMultiplier by = cornu__int8_mean_multiplier(x, y, summed);
    for (int64_t i = 0; i < means; i++) {
        const int32_t sum = (int32_t)(scratch[i] - x.zero * summed);
        out[i] = (int8_t)cornu__fixed_clamp(cornu__fixed_scale(sum, by) + y.zero,
                                            CORNU_INT8_MIN, CORNU_INT8_MAX);
    }
}

void cornu__int8_reduce_max(int rank, const int64_t *extents, const bool *reduced,
                            const int8_t *in, int8_t *out)
{
    int64_t index[CORNU_INT8_RANK] = { 0 }, count = 1, kept = 1;
    for (int d = 0; d < rank; d++) {
        count *= extents[d];
        if (!reduced[d]) kept *= extents[d];
    }
    memset(out, CORNU_INT8_MIN, (size_t)kept);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < rank; d++)
            if (!reduced[d]) at = at * extents[d] + index[d];
        if (in[i] > out[at]) out[at] = in[i];
        for (int d = rank - 1; d >= 0 && ++index[d] == extents[d]; d--) index[d] = 0;
    }
}
