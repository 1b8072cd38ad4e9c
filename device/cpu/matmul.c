/*
 * matmul: a (…, M, K) by b (…, K, N), f32 in, out and in the sums, by serial BLIS.
 *
 * The result is cut into blocks by its shape alone, because BLIS' rounding may depend on the
 * block an element is in; each goes through the epilogue while it is in the cache. A batch of a
 * against one matrix b is one product with more rows.
 */
#include "blis.h"
#include "kernels.h"

/* Blocks are at least this many rows and columns, so that BLIS' packing is paid for. */
enum { LEAST_ROWS = 48, LEAST_COLUMNS = 64, UNITS = 16 };

typedef struct {
    const CornuKernelCall *call;
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_column, b_batch, b_row, b_column;
    int64_t row_blocks, column_blocks;
} Matmul;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static Matmul matmul_of(const CornuKernelCall *call)
{
    const CornuShape a = call->op.in[0].shape, b = call->op.in[1].shape;
    const bool       transpose_a = call->op.attributes->matmul.transpose_a;
    const bool       transpose_b = call->op.attributes->matmul.transpose_b;
    const int64_t   *last_a = a.extent + a.rank - 2, *last_b = b.extent + b.rank - 2;
    Matmul           p = { .call = call, .batch = 1 };
    p.m = last_a[transpose_a];
    p.k = last_a[!transpose_a];
    p.n = last_b[!transpose_b];
    p.a_row = transpose_a ? 1 : p.k;
    p.a_column = transpose_a ? p.m : 1;
    p.b_row = transpose_b ? 1 : p.n;
    p.b_column = transpose_b ? p.k : 1;
    for (int i = 0; i < call->out_type->shape.rank - 2; i++)
        p.batch *= call->out_type->shape.extent[i];
    p.a_batch = a.rank > 2 ? p.m * p.k : 0;
    p.b_batch = b.rank > 2 ? p.k * p.n : 0;
    if (!p.b_batch && !transpose_a) {
        p.m *= p.batch;
        p.batch = 1;
    }
    p.row_blocks = clamp(p.m / LEAST_ROWS, 1, UNITS);
    p.column_blocks = clamp(p.n / LEAST_COLUMNS, 1, UNITS / p.row_blocks);
    return p;
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
    Matmul p = matmul_of(call);
    cornu__threads_run(call->threads, p.batch * p.row_blocks * p.column_blocks, multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__cpu_matmul = { NULL, NULL, matmul, true };
