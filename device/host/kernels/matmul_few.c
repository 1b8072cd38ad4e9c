/*
 * matmul of few rows: a (…, M, K), not transposed, by b (…, K, N), f32. b is read where it lies, as
 * packing it takes longer than multiplying. An element's terms are added in the order of matmul.c,
 * so that a row has the same bits among few rows as among many; by a transposed b along its rows,
 * whatever the number of rows of a.
 *
 * Blocks are columns of one matrix, cut by the shape alone. A large block goes through K in
 * stretches, so that its part of b is in the second-level cache when the next rows of a meet it,
 * and rows of b are read in long pieces: sums continue in the result.
 *
 * Reference: device/ops/matmul.c; tests/device/host/kernels/test_products.c compares them.
 * Source: own.
 * Gain, one core of a Zen 5, 1 x 1600 by 1600 x 10: 21.9 us with BLIS, then 1.6.
 * Gain, one core of a Zen 4, 99 GB/s from its third-level cache, 18 to 25 from memory that others
 *     use too: b requested, 1 x 2048 by 2048 x 1000 53 GB/s, then 69; 2 rows 0.28 ms, then 0.13; K
 *     in stretches, 8 x 4096 by 4096 x 4096 7.6 ms, then 5.2. b transposed, 8 x 2048 by 2048 x 1000
 *     0.54 ms with BLIS, then 0.34, 0.26 of it the multiplications; 1 x 4096 by 4096 x 4096
 *     25 GB/s.
 */
#include "../../integer_internal.h"
#include "kernels.h"
#include "matmul.h"
#include "precision.h"

enum {
    BLOCK_BYTES = 256 << 10,   /* of b in a block at least,                          */
    FAR_BYTES = 1 << 20,       /* of which blocks of more go through K in stretches  */
    STRETCH_BYTES = 64 << 10,  /* of so many                                         */
    BLOCK_COLUMNS = 128,       /* a block has a multiple,                            */
    BLOCKS = 8,                /* and unless b is transposed those of so many blocks */
    MOST_COLUMNS = 1024        /* up to these                                        */
};

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    CornuMatmulExtents     e;
    bool                   transposed;             /* b                                  */
    int64_t                each, blocks, stretch;  /* columns of a block; blocks of a matrix;
                                                      terms that are added at once       */
} Few;

static CornuDecline few_declines(const CornuQuery *q)
{
    const CornuAttributes_MATMUL *how = &q->op->attributes->matmul;
    const CornuDecline            decline = cornu__product_declines(q);
    if (decline.needs) return decline;
    if (how->transpose_a) return cornu__needs(false, "a that is not transposed");
    if (q->op->in[0].dtype != CORNU_F32 || q->machine.multiplier.bf16)
        return cornu__needs(false, "products of f32");
    if (q->fixed & 2) return cornu__needs(false, "a b that is not the same in every run");
    const bool    by_avx2 = how->transpose_b && cornu__products()->lanes == CORNU_AVX2_LANES;
    const int64_t rows = cornu__matmul_extents(q->op, q->out_type).m;
    const int64_t least = by_avx2 ? CORNU_FEW_ROWS_AVX2 : CORNU_FEW_ROWS;
    return rows < least ? CORNU_TAKES : cornu__needs_most(least - 1, "rows", rows);
}

/* What is left of the epilogue. */
static void finish(const Few *p, int64_t matrix, int64_t n, int64_t columns, float *y)
{
    CornuEpilogue rest = *p->call->epilogue;
    rest.bias = NULL;
    cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
        .y = y, .rows = p->e.m, .columns = columns, .stride = p->e.n,
        .first = matrix * p->e.m * p->e.n + n, .width = p->e.n });
}

static void multiply(void *context, int64_t block, int thread)
{
    (void)thread;
    const Few           *p = context;
    const CornuEpilogue *epilogue = p->call->epilogue;
    const int64_t matrix = block / p->blocks, n = block % p->blocks * p->each;
    const int64_t columns = block % p->blocks + 1 < p->blocks ? p->each : p->e.n - n;
    const float  *a = (const float *)p->call->in[0] + matrix * p->e.a_batch;
    const float  *b = (const float *)p->call->in[1] + matrix * p->e.b_batch;
    float        *y = (float *)p->call->out[0] + matrix * p->e.m * p->e.n + n;
    const bool    plain = !epilogue->scale && !epilogue->shift && !epilogue->term &&
                          !epilogue->slope;
    const bool    relu = plain && epilogue->activation == CORNU_OP_RELU;
    for (int64_t k = 0; k == 0 || k < p->e.k; k += larger(1, p->stretch)) {
        const int64_t first = k * p->e.b_row + n * p->e.b_column;
        p->products->few_rows(&(CornuFewRows){
            .x = a + k, .x_stride = p->e.k, .b = b + first,
            .b_stride = p->transposed ? p->e.b_column : p->e.b_row, .transposed = p->transposed,
            .depth = smaller(p->stretch, p->e.k - k), .continued = k > 0,
            .bias = epilogue->bias ? (const float *)epilogue->bias + n : NULL, .y = y,
            .y_stride = p->e.n, .rows = p->e.m, .columns = columns,
            .readable = p->e.k * p->e.n - first, .relu = relu && k + p->stretch >= p->e.k });
    }
    if (!relu) finish(p, matrix, n, columns, y);
}

static void cut(Few *p)
{
    int64_t columns = BLOCK_BYTES / (4 * larger(1, p->e.k));
    if (!p->transposed) columns = larger(columns, smaller(p->e.n / BLOCKS, MOST_COLUMNS));
    p->each = larger(1, columns / BLOCK_COLUMNS) * BLOCK_COLUMNS;
    p->blocks = larger(1, p->e.n / p->each);   /* the last one has the rest */
    p->stretch = !p->transposed && 4 * p->e.k * p->each > FAR_BYTES ? STRETCH_BYTES / (4 * p->each)
                                                                   : p->e.k;
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Few p = { .call = call, .e = cornu__matmul_extents(&call->op, call->out_type),
              .products = cornu__multiplication(call->multiplier, CORNU_F32).products,
              .transposed = call->op.attributes->matmul.transpose_b };
    cut(&p);
    cornu__threads_run(call->threads, p.e.batch * p.blocks, multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_matmul_few = {
    .name = "matmul_few", .declines = few_declines, .run = matmul, .takes_epilogue = true,
    .takes_scale = true,
};
