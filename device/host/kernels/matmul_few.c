/*
 * matmul of few rows: a (…, M, K) by b (…, K, N), f32, neither transposed. b is read where it lies,
 * as packing it takes longer than multiplying. An element's terms are added in the order of
 * matmul.c, so that a row has the same bits among few rows as among many.
 *
 * Blocks are columns of one matrix, cut by the shape alone.
 *
 * Reference: device/ops/matmul.c; tests/device/host/kernels/test_products.c compares them.
 * Source: own.
 * Gain, one core of a Zen 5, 1 x 1600 by 1600 x 10: 21.9 us with BLIS, then 1.6.
 */
#include "../../integer_internal.h"
#include "kernels.h"
#include "matmul.h"
#include "precision.h"

enum { BLOCK_BYTES = 256 << 10, BLOCK_COLUMNS = 128 };   /* of b in a block, at least */

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    CornuMatmulExtents     e;
    int64_t                each, blocks;   /* columns of a block; blocks of a matrix */
} Few;

static CornuDecline few_declines(const CornuQuery *q)
{
    const CornuAttributes_MATMUL *how = &q->op->attributes->matmul;
    const CornuDecline            decline = cornu__product_declines(q);
    if (decline.needs) return decline;
    if (how->transpose_a || how->transpose_b)
        return cornu__needs(false, "operands that are not transposed");
    if (q->op->in[0].dtype != CORNU_F32 || q->machine.multiplier.bf16)
        return cornu__needs(false, "products of f32");
    const int64_t rows = cornu__matmul_extents(q->op, q->out_type).m;
    return rows < CORNU_FEW_ROWS ? CORNU_TAKES
                                 : cornu__needs_most(CORNU_FEW_ROWS - 1, "rows", rows);
}

static void multiply(void *context, int64_t block, int thread)
{
    (void)thread;
    const Few    *p = context;
    const int64_t matrix = block / p->blocks, n = block % p->blocks * p->each;
    const int64_t columns = block % p->blocks + 1 < p->blocks ? p->each : p->e.n - n;
    const float  *bias = p->call->epilogue->bias;
    float        *y = (float *)p->call->out[0] + matrix * p->e.m * p->e.n + n;
    CornuEpilogue rest = *p->call->epilogue;
    const bool    plain = !rest.scale && !rest.shift && !rest.term;
    const bool    relu = plain && rest.activation == CORNU_OP_RELU;
    p->products->few_rows(&(CornuFewRows){
        .x = (const float *)p->call->in[0] + matrix * p->e.a_batch, .x_stride = p->e.k,
        .b = (const float *)p->call->in[1] + matrix * p->e.b_batch + n, .b_stride = p->e.n,
        .depth = p->e.k, .bias = bias ? bias + n : NULL, .y = y, .y_stride = p->e.n,
        .rows = p->e.m, .columns = columns, .readable = p->e.k * p->e.n - n,
        .relu = relu });
    rest.bias = NULL;
    if (!relu)
        cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
            .y = y, .rows = p->e.m, .columns = columns, .stride = p->e.n,
            .first = matrix * p->e.m * p->e.n + n, .width = p->e.n });
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    Few p = { .call = call, .e = cornu__matmul_extents(&call->op, call->out_type),
              .products = cornu__multiplication(call->multiplier, CORNU_F32).products };
    const int64_t wanted = BLOCK_BYTES / (4 * larger(1, p.e.k));
    p.each = larger(1, wanted / BLOCK_COLUMNS) * BLOCK_COLUMNS;
    p.blocks = larger(1, p.e.n / p.each);   /* the last one has the rest */
    cornu__threads_run(call->threads, p.e.batch * p.blocks, multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_matmul_few = {
    .name = "matmul_few", .declines = few_declines, .run = matmul, .takes_epilogue = true,
    .takes_scale = true,
};
