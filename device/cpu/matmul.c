/*
 * matmul: a (…, M, K) by b (…, K, N), f32, with serial BLIS where it is at least as fast as tiles
 * of packed panels (host/kernels/matmul.c) and as reading b where it lies
 * (host/kernels/matmul_few.c). The latter does not pay with AVX2 for four rows and more by a
 * transposed b: 8 x 2048 by 2048 x 1000, Zen 4, 0.48 ms with BLIS, 0.60 without. Packing does not
 * pay for a transposed a by few columns, such as 512 x 12800 by 12800 x 65, Zen 3, two threads: 127
 * GFLOP/s with BLIS, 108 without. But where rows of a are pages apart, BLIS, which reads them where
 * they are, finds them in few sets of the caches: 1024 x 4096 by 4096 x 10 38 with it, 64 without.
 * With AVX-512 BLIS is behind: Xeon (model 207), one core, 128 x 4608 by 4608 x 64 20 with it, 57
 * without; 128 matrices of 144 x 144 by 144 x 64 21 and 60; 16 x 256 by 256 x 16 8 and 14. It is
 * also where the result has few of its blocks, Zen 4, two threads: 1024 x 4096 by 4096 x 256 158
 * with it, 182 without; 256 x 4096 by 4096 x 256, one block, 96 and 190. With AVX2 a step of the
 * MLP at 1024 takes 0.94 of the time; but of few terms, Zen 3, 4096 x 128 by 128 x 4096, 106 with
 * BLIS, 175 without.
 *
 * Work is divided into blocks by the shape alone, since BLIS' rounding may depend on the block an
 * element is in. A batch of a with a single matrix b is one product with more rows.
 */
#include "../host/kernels/kernels.h"
#include "../host/kernels/matmul.h"
#include "../host/kernels/precision.h"
#include "../integer_internal.h"
#include "blis.h"
#include "kernels.h"

enum {
    LEAST = 256,        /* rows or columns of a block, since BLIS packs in each       */
    FEW_LEAST = 32,     /* rows of a block of few columns, for which it does not      */
    WORK = 1 << 17,     /* multiply-adds of such a block at least: a few microseconds */
    BLOCKS = 8,         /* of one matrix, at most                                     */
    FEW_COLUMNS = 128,  /* are fewer than this                                        */
    FEW_TERMS = 256,    /* likewise                                                   */
    PAGE = 1024         /* elements                                                   */
};

typedef struct {
    const CornuKernelCall *call;
    CornuMatmulExtents     e;
    int64_t row_blocks, column_blocks;
} Matmul;

/* The fewest rows or columns that a block has. */
static int64_t least_of(const Matmul *p)
{
    const bool by_few = p->e.a_row == 1 && p->e.n < FEW_COLUMNS;
    return by_few ? larger(FEW_LEAST, WORK / larger(1, p->e.n * p->e.k)) : LEAST;
}

/* Halves the longer side of the blocks: square ones need the least packing. */
static void cut_blocks(Matmul *p)
{
    const int64_t least = least_of(p);
    p->row_blocks = p->column_blocks = 1;
    while (p->row_blocks * p->column_blocks < BLOCKS) {
        const int64_t rows = p->e.m / p->row_blocks / 2, columns = p->e.n / p->column_blocks / 2;
        if (larger(rows, columns) < least) return;
        if (rows >= columns) p->row_blocks *= 2;
        else p->column_blocks *= 2;
    }
}

static Matmul matmul_of(const CornuOpCall *op, const CornuType *out_type)
{
    Matmul p = { .e = cornu__matmul_extents(op, out_type) };
    cut_blocks(&p);
    return p;
}

static CornuDecline blis_declines(const CornuQuery *q)
{
    enum { WIDE_LANES = 16 };
    const CornuAttributes_MATMUL *how = &q->op->attributes->matmul;
    const Matmul                  p = matmul_of(q->op, q->out_type);
    const bool suits = cornu__products()->lanes < WIDE_LANES &&
        (p.e.n < FEW_COLUMNS ? p.e.m % PAGE > 0
                             : p.row_blocks * p.column_blocks >= BLOCKS && p.e.k >= FEW_TERMS);
    const CornuDecline decline = cornu__product_declines(q);
    if (decline.needs) return decline;
    if (how->transpose_b && p.e.m < CORNU_FEW_ROWS)
        return cornu__needs(p.e.m >= CORNU_FEW_ROWS_AVX2 &&
                            cornu__products()->lanes == CORNU_AVX2_LANES, "four rows, and AVX2");
    if (!how->transpose_a) return cornu__needs(false, "a transposed a");
    return cornu__needs(suits, "BLIS' packing to pay: AVX2, and few columns or large blocks");
}

static void multiply_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t column_block = block % p->column_blocks, rest = block / p->column_blocks;
    const int64_t row_block = rest % p->row_blocks, batch = rest / p->row_blocks;
    const int64_t m = row_block * p->e.m / p->row_blocks;
    const int64_t n = column_block * p->e.n / p->column_blocks;
    const int64_t rows = (row_block + 1) * p->e.m / p->row_blocks - m;
    const int64_t columns = (column_block + 1) * p->e.n / p->column_blocks - n;
    const float  *a = (const float *)p->call->in[0] + batch * p->e.a_batch + m * p->e.a_row;
    const float  *b = (const float *)p->call->in[1] + batch * p->e.b_batch + n * p->e.b_column;
    float        *c = (float *)p->call->out[0] + (batch * p->e.m + m) * p->e.n + n;
    cornu__blis_sgemm(rows, columns, p->e.k, 1.0f, a, p->e.a_row, p->e.a_column, b, p->e.b_row,
                      p->e.b_column, 0.0f, c, p->e.n, 1);
    cornu__epilogue_apply(p->call->epilogue, &(CornuEpilogueRows){
        .y = c, .rows = rows, .columns = columns, .stride = p->e.n,
        .first = (batch * p->e.m + m) * p->e.n + n, .width = p->e.n });
}

static CornuStatus cpu_matmul(const CornuKernelCall *call)
{
    Matmul p = matmul_of(&call->op, call->out_type);
    p.call = call;
    cornu__threads_run(call->threads, p.e.batch * p.row_blocks * p.column_blocks, multiply_block,
                       &p);
    return CORNU_OK;
}

const CornuKernel cornu__cpu_matmul = {
    .name = "matmul_blis", .declines = blis_declines, .run = cpu_matmul, .takes_epilogue = true,
    .takes_scale = true,
};
