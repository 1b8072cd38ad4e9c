/*
 * Products of matrices. A tile of a few rows and columns is summed in registers: compilers make
 * vectors of its columns. Where rows of both operands lie along
 * the sum, 16 partial sums are added in its place. The last tile of an extent overlaps the one
 * before it, and computes the same once more.
 */
#include "source_internal.h"

/* The operands' strides: along the rows m or columns n, along the sum k. */
typedef struct { int64_t m, n, k, am, ak, bk, bn; } Product;

static Product product_of(const CornuCCall *call)
{
    const CornuAttributes_MATMUL *matmul = &call->op.attributes->matmul;
    const CornuShape a = call->op.in[0].shape, b = call->op.in[1].shape;
    const int        am = a.rank - 2 + (matmul->transpose_a != 0);
    const int        bk = b.rank - 2 + (matmul->transpose_b != 0);
    const int        ak = 2 * a.rank - 3 - am, bn = 2 * b.rank - 3 - bk;
    return (Product){ .m = a.extent[am], .n = b.extent[bn], .k = a.extent[ak],
                      .am = call->in[0]->stride[am], .ak = call->in[0]->stride[ak],
                      .bk = call->in[1]->stride[bk], .bn = call->in[1]->stride[bn] };
}

/* Columns lie one after the other: sum[q][l] of rows m + q and columns n + l. */
static void write_tiles(CornuCText *to, const CornuCCall *call, Product p)
{
    const CornuCTile tile = cornu__c_tile(p.m, p.n, p.k, p.am == 1);
    const int64_t rows = tile.rows, columns = tile.columns;
    char          row_at[64], column_at[48];
    snprintf(row_at, sizeof row_at, "m * %lld + k * %lld", (long long)p.am, (long long)p.ak);
    snprintf(column_at, sizeof column_at, "k * %lld + n", (long long)p.bk);
    cornu__c_open_tiles(to, "m", p.m, rows);
    cornu__c_open_tiles(to, "n", p.n, columns);
    cornu__c_print(to, "float sum[%lld][%lld] = { { 0.0f } };\n", (long long)rows,
                   (long long)columns);
    cornu__c_print(to, "for (ptrdiff_t k = 0; k < %lld; k++)\n", (long long)p.k);
    to->depth++;
    cornu__c_add_products(to, call, tile, &(CornuCProducts){ "a", row_at, p.am, "b", column_at });
    to->depth--;
    cornu__c_print(to, "for (ptrdiff_t q = 0; q < %lld; q++)\n", (long long)rows);
    cornu__c_print(to, "    for (ptrdiff_t l = 0; l < %lld; l++)\n", (long long)columns);
    cornu__c_print(to, "        y[(m + q) * %lld + n + l] = sum[q][l];\n", (long long)p.n);
    cornu__c_close_tiles(to, p.n, columns);
    cornu__c_close_tiles(to, p.m, rows);
}

/* y[m][n] of a row of a and one of b, or of any strides. */
static void write_rows(CornuCText *to, const CornuCCall *call, Product p)
{
    const int64_t lanes = p.ak == 1 && p.bk == 1 && p.k >= CORNU_C_LANES ? CORNU_C_LANES : 1;
    char          fma[80];
    cornu__c_fma(call, fma, sizeof fma);
    cornu__c_print(to, "for (ptrdiff_t m = 0; m < %lld; m++)\n", (long long)p.m);
    cornu__c_print(to, "    for (ptrdiff_t n = 0; n < %lld; n++) {\n", (long long)p.n);
    to->depth += 2;
    cornu__c_print(to, "float sum[%lld] = { 0.0f }, total = 0.0f;\n", (long long)lanes);
    if (lanes > 1) {
        cornu__c_print(to, "for (ptrdiff_t k = 0; k < %lld; k += %lld)\n",
                       (long long)(p.k - p.k % lanes), (long long)lanes);
        cornu__c_print(to, "    for (ptrdiff_t l = 0; l < %lld; l++)\n", (long long)lanes);
        cornu__c_print(to, "        sum[l] = %s(a[m * %lld + k + l], b[n * %lld + k + l], "
                       "sum[l]);\n", fma, (long long)p.am, (long long)p.bn);
    }
    if (p.k % lanes || lanes == 1) {
        cornu__c_print(to, "for (ptrdiff_t k = %lld; k < %lld; k++)\n",
                       (long long)(lanes > 1 ? p.k - p.k % lanes : 0), (long long)p.k);
        cornu__c_print(to, "    sum[0] = %s(a[m * %lld + k * %lld], b[n * %lld + k * %lld], "
                       "sum[0]);\n", fma, (long long)p.am, (long long)p.ak, (long long)p.bn,
                       (long long)p.bk);
    }
    cornu__c_print(to, "for (ptrdiff_t l = 0; l < %lld; l++) total += sum[l];\n",
                   (long long)lanes);
    cornu__c_print(to, "y[m * %lld + n] = total;\n", (long long)p.n);
    to->depth -= 2;
    cornu__c_print(to, "    }\n");
}

/* The axes before the last two, of the operand that has them. */
static CornuShape batch_of(const CornuCCall *call, bool has[2])
{
    CornuShape shape = call->out_type[0].shape;
    shape.rank -= 2;
    for (int i = 0; i < 2; i++) has[i] = call->op.in[i].shape.rank > 2;
    return shape;
}

static void write_matmul(CornuCText *to, const CornuCCall *call)
{
    bool             has[2];
    const Product    p = product_of(call);
    const CornuShape batch = batch_of(call, has);
    const CornuCView y = cornu__c_dense(call->record->out_first, call->out_type[0].shape);
    CornuCView       a = *call->in[0], b = *call->in[1];
    for (int i = 0; i < batch.rank; i++) {
        if (!has[0]) a.stride[i] = 0;
        if (!has[1]) b.stride[i] = 0;
    }
    const CornuCView *const views[] = { &a, &b, &y };
    const CornuCLoops loops = cornu__c_loops(batch, views, 3);
    if (loops.rank == 0) cornu__c_print(to, "{\n"), to->depth++;
    cornu__c_open(to, &loops);
    const CornuCView *const each[] = { &a, &b };
    for (int i = 0; i < 2; i++) {
        cornu__c_print(to, "const float *const %s = %s + ", i ? "b" : "a",
                       cornu__c_label(call->section, each[i]->root));
        cornu__c_index(to, each[i], &loops);
        cornu__c_print(to, ";\n");
    }
    cornu__c_print(to, "float *const y = %s + ", call->out[0]);
    cornu__c_index(to, &y, &loops);
    cornu__c_print(to, ";\n");
    if (p.bn == 1 || p.n == 1) write_tiles(to, call, p);
    else write_rows(to, call, p);
    cornu__c_close(to, loops.rank > 0 ? loops.rank : 1);
}

const CornuCRule *const cornu__matmul_c =
    &(const CornuCRule){ .write = write_matmul, .strided = 3 };
