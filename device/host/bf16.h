/*
 * What products of bf16 need: their tiles, and moving between f32, bf16 and pairs of bf16.
 *
 * Rounding is to nearest even, overflow to infinity; NaN stays NaN.
 */
#ifndef CORNU_DEVICE_HOST_BF16_H
#define CORNU_DEVICE_HOST_BF16_H

#include "product.h"

typedef struct {
    CornuProducts products;
    void (*widen)(const uint16_t *x, int64_t count, float *y);
    void (*narrow)(const float *x, int64_t count, uint16_t *y);
    /* x = high + middle + low, which together carry 24 bits; of Inf and NaN the high part alone.
     * Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
     * Higher-Precision Computations", arXiv 1904.06376. */
    void (*split)(const float *x, int64_t count, uint16_t *high, uint16_t *middle, uint16_t *low);
    /* to[i] = the pair (a[i], b[i]); b NULL: zeros. */
    void (*pair)(const uint16_t *a, const uint16_t *b, int64_t count, uint32_t *to);
    /* y = y + bias, then max(y, 0) if so wished; bias NULL: none. */
    void (*finish)(uint16_t *y, int64_t rows, int64_t columns, const uint16_t *bias, bool relu);
} CornuBf16;

extern const CornuBf16 cornu__bf16_portable;
#if defined(__x86_64__)
extern const CornuBf16 cornu__bf16_avx2, cornu__bf16_avx512, cornu__bf16_avx512bf16;
#endif

/* That of the instruction set in use (cpu.h). There are no tiles of AMX yet: it takes
 * AVX512-BF16's. */
const CornuBf16 *cornu__bf16(void);

#endif
