/*
 * How a product multiplies: the same walks over tiles serve f32 and bf16.
 *
 * bf16 operands take one pass. f32 operands of a device that only multiplies bf16 are split into
 * three parts of 8 bits each; of the nine products of parts six are kept, smallest first, and
 * what is left out is below the rounding of f32 sums.
 */
#ifndef CORNU_DEVICE_HOST_PRECISION_H
#define CORNU_DEVICE_HOST_PRECISION_H

#include "bf16.h"
#include "kernel.h"

typedef struct {
    const CornuProducts *products;
    const CornuBf16     *bf16;       /* NULL: products are of f32 */
    int                  parts;      /* of each operand: 1, or 3, the highest first */
    int                  passes;
    const int          (*pass)[2];   /* which part of the one and the other operand meet */
} CornuPrecision;

/* What a device multiplies; `dtype` is that of the operands. */
typedef enum { CORNU_MULTIPLIES_F32, CORNU_MULTIPLIES_BF16 } CornuMultiplier;
CornuPrecision cornu__precision(CornuMultiplier multiplier, CornuDtype dtype);

/* Whether products take the call: f32 operands, or for CORNU_MULTIPLIES_BF16 also bf16, the
 * result f32 or, of bf16, bf16. */
bool cornu__product_accepts(CornuMultiplier multiplier, const CornuOpCall *call,
                            const CornuType *out_type);

/* Bytes that cornu__parts needs for an operand of `count` elements: 0 if it has one part. */
size_t cornu__parts_bytes(const CornuPrecision *precision, int64_t count);

/* The operand's parts, `count` elements each, one behind the other: itself, or made at `to`. */
const void *cornu__parts(const CornuPrecision *precision, CornuThreads *threads,
                         const void *operand, int64_t count, void *to);

/* Elements behind `from`. */
static inline const void *cornu__element(const CornuPrecision *precision, const void *from,
                                         int64_t index)
{
    return (const char *)from + index * (int64_t)precision->products->size;
}

/* `padded` biases in f32, zeros behind `count` and where the epilogue has none. The bias is of the
 * result's dtype. */
void cornu__biases(const CornuEpilogue *epilogue, CornuDtype dtype, int64_t count, int64_t padded,
                   float *to);

#endif
