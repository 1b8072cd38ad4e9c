/*
 * Reference: device/ops/matmul.c, within the errors that tests/device/host/kernels/test_precision.c
 *     derives for 1, 3 and 6 passes.
 * Source: Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
 *     Higher-Precision Computations", arXiv 1904.06376.
 * Gain: none, it is what the emulated device computes.
 */
#include "precision.h"

#include <string.h>

/* FINITE is HIGH, zero where the number is not finite. */
enum { HIGH, FINITE, MIDDLE, LOW, SPLIT_BLOCK = 16384, WIDE_BLOCK = 256 };

static const int one_pass[][2] = { { HIGH, HIGH } };
static const int three_passes[][2] = { { FINITE, MIDDLE }, { MIDDLE, FINITE }, { HIGH, HIGH } };
static const int six_passes[CORNU_MOST_PASSES][2] = {
    { FINITE, LOW }, { FINITE, MIDDLE }, { MIDDLE, MIDDLE }, { MIDDLE, FINITE }, { LOW, FINITE },
    { HIGH, HIGH },
};

CornuMultiplication cornu__multiplication(CornuMultiplier multiplier, CornuDtype from)
{
    if (!multiplier.bf16)
        return (CornuMultiplication){ cornu__products(), from, true, 1, 1, one_pass };
    CornuMultiplication m = { cornu__products_of_bf16(), from, false, 1, 1, one_pass };
    m.in_place = from == CORNU_BF16 && m.products->size == sizeof(uint16_t);
    if (from == CORNU_F32 && multiplier.precision == CORNU_PRECISION_HIGH)
        m.parts = MIDDLE + 1, m.passes = 3, m.pass = three_passes;
    if (from == CORNU_F32 && multiplier.precision == CORNU_PRECISION_HIGHEST)
        m.parts = CORNU_MOST_PARTS, m.passes = CORNU_MOST_PASSES, m.pass = six_passes;
    return m;
}

CornuDecline cornu__product_declines(const CornuQuery *q)
{
    const CornuDtype in = q->op->in[0].dtype, out = q->out_type->dtype;
    if (in == CORNU_F32) return cornu__needs(out == CORNU_F32, "a result of f32");
    if (in != CORNU_BF16 || !q->machine.multiplier.bf16)
        return cornu__needs(false, "operands that the device multiplies");
    return cornu__needs(out == CORNU_F32 || out == CORNU_BF16, "a result of f32 or bf16");
}

CornuDecline cornu__product_of_f32_declines(const CornuQuery *q)
{
    const CornuMultiplication m = cornu__multiplication(q->machine.multiplier, CORNU_F32);
    return cornu__needs(q->op->in[0].dtype == CORNU_F32 && q->out_type->dtype == CORNU_F32 &&
                        m.in_place && m.products->depth == 1, "products of f32");
}

CornuDecline cornu__product_unpool_declines(const CornuQuery *q)
{
    const CornuMultiplication m = cornu__multiplication(q->machine.multiplier, q->op->in[0].dtype);
    const CornuDecline        decline = cornu__product_declines(q);
    if (decline.needs) return decline;
    return cornu__needs(m.parts == 1 && (m.in_place || m.from == CORNU_BF16),
                        "operands of one part");
}

int64_t cornu__sum_steps(const CornuMultiplication *m, int64_t count)
{
    enum { TILE_DEPTH = 32 };   /* elements of a sum that a tile register holds */
    if (cornu__sums_on_tiles(m)) return (count + TILE_DEPTH - 1) / TILE_DEPTH;
    return (count + m->products->depth - 1) / m->products->depth * m->passes;
}

size_t cornu__parts_bytes(const CornuMultiplication *m, int64_t count)
{
    if (m->in_place) return 0;
    return ((size_t)(m->parts * count) * m->products->size + 63) / 64 * 64;
}

/* Parts in bf16 of a few f32, part p from p * part on. */
static void split(const CornuMultiplication *m, const float *x, int64_t count, uint16_t *to,
                  int64_t part)
{
    uint16_t         low[WIDE_BLOCK];
    const CornuBf16 *bf16 = cornu__bf16();
    if (m->parts == 1) {
        bf16->narrow(x, count, to);
        return;
    }
    for (int64_t i = 0, some; i < count; i += some) {
        some = count - i < WIDE_BLOCK ? count - i : WIDE_BLOCK;
        bf16->split(x + i, some, to + HIGH * part + i, to + FINITE * part + i,
                    to + MIDDLE * part + i, m->parts > LOW ? to + LOW * part + i : low);
    }
}

void cornu__parts(const CornuMultiplication *m, const void *operand, int64_t first, int64_t count,
                  void *to, int64_t part)
{
    const CornuBf16 *bf16 = cornu__bf16();
    const void      *from = cornu__in_memory(m, operand, first);
    if (m->in_place) {
        memcpy(to, from, (size_t)count * m->products->size);
    } else if (m->from == CORNU_BF16) {
        bf16->widen(from, count, to);
    } else if (m->products->size == sizeof(uint16_t)) {
        split(m, from, count, to, part);
    } else {
        uint16_t halves[CORNU_MOST_PARTS * WIDE_BLOCK];
        for (int64_t i = 0, some; i < count; i += some) {
            some = count - i < WIDE_BLOCK ? count - i : WIDE_BLOCK;
            split(m, (const float *)from + i, some, halves, WIDE_BLOCK);
            for (int p = 0; p < m->parts; p++)
                bf16->widen(halves + p * WIDE_BLOCK, some, (float *)to + p * part + i);
        }
    }
}

typedef struct {
    const CornuMultiplication *m;
    const void                *operand;
    char                      *to;
    int64_t                    count;
} Split;

static void split_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Split  *s = context;
    const int64_t first = block * SPLIT_BLOCK, left = s->count - first;
    cornu__parts(s->m, s->operand, first, left < SPLIT_BLOCK ? left : SPLIT_BLOCK,
                 s->to + first * (int64_t)s->m->products->size, s->count);
}

const void *cornu__all_parts(const CornuMultiplication *m, CornuThreads *threads,
                             const void *operand, int64_t count, void *to)
{
    if (m->in_place) return operand;
    Split split = { m, operand, to, count };
    cornu__threads_run(threads, (count + SPLIT_BLOCK - 1) / SPLIT_BLOCK, split_block, &split);
    return to;
}

void cornu__biases(const CornuEpilogue *epilogue, CornuDtype dtype, int64_t count, int64_t padded,
                   float *to)
{
    const void   *bias = epilogue->bias;
    const int64_t used = bias ? count : 0;
    if (dtype == CORNU_BF16) cornu__bf16()->widen(bias, used, to);
    else if (bias) memcpy(to, bias, (size_t)used * sizeof *to);
    for (int64_t n = used; n < padded; n++) to[n] = 0.0f;
}

static const float *padded_columns(const float *from, int64_t count, int64_t padded, float *to)
{
    if (!from || count == padded) return from;
    memcpy(to, from, (size_t)count * sizeof *to);
    memset(to + count, 0, (size_t)(padded - count) * sizeof *to);
    return to;
}

CornuFinish cornu__padded_finish(const CornuEpilogue *epilogue, int64_t count, int64_t padded,
                                 float *to)
{
    CornuFinish finish = cornu__epilogue_finish(epilogue);
    finish.scale = padded_columns(finish.scale, count, padded, to);
    finish.shift = padded_columns(finish.shift, count, padded, to + padded);
    finish.slope = padded_columns(finish.slope, count, padded, to + 2 * padded);
    return finish;
}
