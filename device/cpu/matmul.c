/*
 * matmul: a (…, M, K) by b (…, K, N), f32, by serial BLIS where that is not slower than tiles of
 * packed panels (host/matmul.c): a few rows do not pay for the panels, nor does a transposed a of
 * many rows along K, 512 x 12800 by 12800 x 65 say: 160 against 90 GFLOP/s.
 *
 * Work is cut into blocks by the shape alone, because BLIS' rounding may depend on the block an
 * element is in. A batch of a against one matrix b is one product with more rows.
 */
#include "../host/kernels.h"
#include "../host/precision.h"
#include "../integer_internal.h"
#include "blis.h"
#include "kernels.h"

enum {
    ENOUGH_ROWS = 16,   /* of a, for panels                                           */
    LEAST = 256,        /* rows and columns of a block, since BLIS packs anew in each */
    BLOCKS = 8          /* of one matrix, at most                                     */
};

typedef struct {
    const CornuKernelCall *call;
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_column, b_batch, b_row, b_column;
    int64_t row_blocks, column_blocks;
} Matmul;

/* Halves the longer side of the blocks: square ones are packed least. */
static void cut(Matmul *p)
{
    p->row_blocks = p->column_blocks = 1;
    while (p->row_blocks * p->column_blocks < BLOCKS) {
        const int64_t rows = p->m / p->row_blocks / 2, columns = p->n / p->column_blocks / 2;
        if (larger(rows, columns) < LEAST) return;
        if (rows >= columns) p->row_blocks *= 2;
        else p->column_blocks *= 2;
    }
}

static Matmul matmul_of(const CornuOpCall *op, const CornuType *out_type)
{
    const CornuShape a = op->in[0].shape, b = op->in[1].shape;
    const bool       transpose_a = op->attributes->matmul.transpose_a;
    const bool       transpose_b = op->attributes->matmul.transpose_b;
    const int64_t   *last_a = a.extent + a.rank - 2, *last_b = b.extent + b.rank - 2;
    Matmul           p = { .batch = 1 };
    p.m = last_a[transpose_a];
    p.k = last_a[!transpose_a];
    p.n = last_b[!transpose_b];
    p.a_row = transpose_a ? 1 : p.k;
    p.a_column = transpose_a ? p.m : 1;
    p.b_row = transpose_b ? 1 : p.n;
    p.b_column = transpose_b ? p.k : 1;
    for (int i = 0; i < out_type->shape.rank - 2; i++) p.batch *= out_type->shape.extent[i];
    p.a_batch = a.rank > 2 ? p.m * p.k : 0;
    p.b_batch = b.rank > 2 ? p.k * p.n : 0;
    if (!p.b_batch && !transpose_a) {
        p.m *= p.batch;
        p.batch = 1;
    }
    cut(&p);
    return p;
}

static bool accepts(const CornuOpCall *op, const CornuType *out_type, const CornuMachine *machine)
{
    return cornu__product_accepts(op, out_type, machine) &&
           (op->attributes->matmul.transpose_a || matmul_of(op, out_type).m < ENOUGH_ROWS);
}

static void multiply(void *context, int64_t block, int thread)
{
    (void)thread;
    const Matmul *p = context;
    const int64_t column_block = block % p->column_blocks, rest = block / p->column_blocks;
    const int64_t row_block = rest % p->row_blocks, batch = rest / p->row_blocks;
    const int64_t m = row_block * p->m / p->row_blocks, n = column_block * p->n / p->column_blocks;
    const int64_t rows = (row_block + 1) * p->m / p->row_blocks - m;
    const int64_t columns = (column_block + 1) * p->n / p->column_blocks - n;
    const float  *a = (const float *)p->call->in[0] + batch * p->a_batch + m * p->a_row;
    const float  *b = (const float *)p->call->in[1] + batch * p->b_batch + n * p->b_column;
    float        *c = (float *)p->call->out[0] + (batch * p->m + m) * p->n + n;
    cornu__blis_sgemm(rows, columns, p->k, 1.0f, a, p->a_row, p->a_column, b, p->b_row,
                      p->b_column, 0.0f, c, p->n, 1);
    cornu__epilogue_apply(p->call->epilogue, c, rows, columns, p->n, n);
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Matmul p = matmul_of(&call->op, call->out_type);
    p.call = call;
    cornu__threads_run(call->threads, p.batch * p.row_blocks * p.column_blocks, multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__cpu_matmul = {
    .accepts = accepts, .run = matmul, .takes_epilogue = true, .otherwise = &cornu__host_matmul,
};
