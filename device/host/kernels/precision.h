/*
 * How operands become what tiles multiply: the same walks serve f32 and bf16.
 *
 * A device that multiplies bf16 takes bf16 operands in one pass. f32 operands are split into parts
 * of 8 bits, highest first, each the rounded rest of those before:
 *     DEFAULT   1 pass:    h h
 *     HIGH      3 passes:  h m + m h + h h
 *     HIGHEST   6 passes:  h l + h m + m m + m h + l h + h h, below the rounding of f32 sums
 *
 * The largest terms come last, and neighbours share a part. An infinity or NaN has a high part
 * alone, which only the last pass uses: for the other passes it is zero, or else infinity times
 * their zeros would be NaN.
 *
 * Where the processor has no fast products of bf16, operands are widened, a block at a time in the
 * cache, and multiplied as f32: the products of bf16 are exact in f32.
 */
#ifndef CORNU_DEVICE_HOST_PRECISION_H
#define CORNU_DEVICE_HOST_PRECISION_H

#include "../machine/bf16.h"
#include "kernel.h"
#include "../isa/product.h"

enum { CORNU_MOST_PASSES = 6, CORNU_MOST_PARTS = 4 };

typedef struct {
    const CornuProducts *products;
    CornuDtype           from;       /* dtype of the operands in memory                      */
    bool                 in_place;   /* tiles read them there; else cornu__parts makes copies */
    int                  parts;      /* of each operand                                      */
    int                  passes;
    const int          (*pass)[2];   /* the parts of the two operands that meet */
} CornuMultiplication;

CornuMultiplication cornu__multiplication(CornuMultiplier multiplier, CornuDtype from);

/* What products need of a call: operands f32, or also bf16 if `multiplier` is of bf16; the result
 * f32 or, of bf16, bf16. */
CornuDecline cornu__product_declines(const CornuQuery *q);

/* Only of f32, on a device that multiplies f32. */
CornuDecline cornu__product_of_f32_declines(const CornuQuery *q);

/* What they need of a d_y of the first operand's dtype that is a max pooling's gradient, which
 * they make themselves: of several parts all would have to be kept. */
CornuDecline cornu__product_unpool_declines(const CornuQuery *q);

/* Whether sums are made on tile registers, from operands as they are in memory. */
static inline bool cornu__sums_on_tiles(const CornuMultiplication *m)
{
    return m->in_place && cornu__has_tile_registers(m->products);
}

/* Steps on registers that a sum of so many elements takes, all passes. */
int64_t cornu__sum_steps(const CornuMultiplication *m, int64_t count);

/* Bytes of `count` elements as tiles take them, all parts; 0 if they are read in place. */
size_t cornu__parts_bytes(const CornuMultiplication *m, int64_t count);

/* Makes the parts of `count` elements of the operand from `first` on; part p goes to element
 * p * part of `to`. */
void cornu__parts(const CornuMultiplication *m, const void *operand, int64_t first, int64_t count,
                  void *to, int64_t part);

/* All of an operand on all threads: the operand itself, or its parts at `to`, one after the other.
 * */
const void *cornu__all_parts(const CornuMultiplication *m, CornuThreads *threads,
                             const void *operand, int64_t count, void *to);

/* Element `index` of an operand as tiles take it, and as it is in memory. */
static inline const void *cornu__element(const CornuMultiplication *m, const void *from,
                                         int64_t index)
{
    return (const char *)from + index * (int64_t)m->products->size;
}

static inline const void *cornu__in_memory(const CornuMultiplication *m, const void *operand,
                                           int64_t index)
{
    return (const char *)operand + index * (m->from == CORNU_BF16 ? 2 : 4);
}

/* `padded` biases in f32, zeros after `count` and without a bias in the epilogue. The bias has the
 * result's dtype. */
void cornu__biases(const CornuEpilogue *epilogue, CornuDtype dtype, int64_t count, int64_t padded,
                   float *to);

/* What tiles take of the epilogue, whose `count` columns are padded, in memory of
 * CORNU_FINISH_COLUMNS times as many floats at `to`. */
enum { CORNU_FINISH_COLUMNS = 3 };
CornuFinish cornu__padded_finish(const CornuEpilogue *epilogue, int64_t count, int64_t padded,
                                 float *to);

#endif
