/* Tiles of sums in registers, for products and convolutions. */
#include "source_internal.h"

/*
 * Measured with GCC 12 and clang 14. 4 to 6 rows of 16, written out in one loop over columns, reach
 * 100 to 108 GFLOP/s on Zen 4 (121 by 288 by 64 products) and 32 to 100 on Sapphire Rapids
 * (convolutions of 12 to 64 filters), with AVX2 alone 31 to 68; as a loop of their own between 4
 * and 88 with GCC, which unrolls loops of at most 16 turns before it makes vectors. What lies one
 * after the other in memory must be a loop of its own, and of 32 columns, or GCC makes vectors of
 * it, too: 51 to 72 GFLOP/s on Sapphire Rapids, 29 to 40 with AVX2, and 3 to 8 otherwise. Sums of
 * few terms are one row of 32.
 */
CornuCTile cornu__c_tile(int64_t rows, int64_t columns, int64_t terms, bool adjacent)
{
    enum { FEW = 16, LEAST = 4, MOST = 6, COLUMNS = 16, ROW = 64 };
    const int64_t wide = adjacent ? 2 * COLUMNS : COLUMNS;
    CornuCTile    tile = { rows < MOST ? rows : LEAST, cornu__c_least(columns, wide) };
    if (rows == 1) tile.columns = cornu__c_least(columns, ROW);
    if (terms <= FEW) return (CornuCTile){ 1, cornu__c_least(columns, 2 * COLUMNS) };
    for (int64_t n = LEAST + 1; rows >= MOST && n <= MOST; n++)   /* what is computed twice */
        if ((rows + n - 1) / n * n < (rows + tile.rows - 1) / tile.rows * tile.rows) tile.rows = n;
    return tile;
}

int64_t cornu__c_divisor(int64_t extent, int64_t most)
{
    int64_t divisor = cornu__c_least(extent, most);
    while (extent % divisor) divisor--;
    return divisor;
}

/* "for (t = 0; t < 11; t += 4)", and the tile's first: the last tile ends where the extent does. */
void cornu__c_open_tiles(CornuCText *to, const char *name, int64_t extent, int64_t tile)
{
    if (tile == extent) {
        cornu__c_print(to, "const ptrdiff_t %s = 0;\n", name);
        return;
    }
    cornu__c_print(to, "for (ptrdiff_t t%s = 0; t%s < %lld; t%s += %lld) {\n", name, name,
                   (long long)extent, name, (long long)tile);
    to->depth++;
    if (extent % tile == 0) cornu__c_print(to, "const ptrdiff_t %s = t%s;\n", name, name);
    else cornu__c_print(to, "const ptrdiff_t %s = t%s < %lld ? t%s : %lld;\n", name, name,
                        (long long)(extent - tile), name, (long long)(extent - tile));
}

void cornu__c_close_tiles(CornuCText *to, int64_t extent, int64_t tile)
{
    if (tile == extent) return;
    to->depth--;
    cornu__c_print(to, "}\n");
}

static void write_sum(CornuCText *to, const char *fma, const char *q, const char *at,
                      const CornuCProducts *of)
{
    const char *plus = at[0] && of->row_at[0] ? " + " : "";
    const char *zero = at[0] || of->row_at[0] ? "" : "0";
    cornu__c_print(to, "sum[%s][l] = %s(%s[%s%s%s%s], %s[%s%sl], sum[%s][l]);\n", q, fma, of->row,
                   at, plus, of->row_at, zero, of->column, of->column_at,
                   of->column_at[0] ? " + " : "", q);
}

void cornu__c_add_products(CornuCText *to, const CornuCCall *call, CornuCTile tile,
                           const CornuCProducts *products)
{
    const bool adjacent = products->step == 1;
    char       fma[80], q[24] = "q", at[24] = "q";
    cornu__c_fma(call, fma, sizeof fma);
    if (adjacent) {
        cornu__c_print(to, "for (ptrdiff_t q = 0; q < %lld; q++)\n", (long long)tile.rows);
        to->depth++;
    }
    const int64_t lines = adjacent ? 1 : tile.rows;
    cornu__c_print(to, "for (ptrdiff_t l = 0; l < %lld; l++)%s\n", (long long)tile.columns,
                   lines > 1 ? " {" : "");
    to->depth++;
    for (int64_t i = 0; i < lines; i++) {
        if (!adjacent) snprintf(q, sizeof q, "%lld", (long long)i);
        if (!adjacent) snprintf(at, sizeof at, "%lld", (long long)(i * products->step));
        write_sum(to, fma, q, i == 0 && !adjacent ? "" : at, products);
    }
    to->depth -= adjacent ? 2 : 1;
    if (lines > 1) cornu__c_print(to, "}\n");
}

void cornu__c_fma(const CornuCCall *call, char *name, size_t size)
{
    const char *prefix = cornu__c_prefix(call->section);
    size_t      n = 0;
    cornu__c_helper(call->section->source, CORNU_C_HELPER_FMA);
    for (; prefix[n] && n + 6 < size; n++)
        name[n] = (char)(prefix[n] >= 'a' && prefix[n] <= 'z' ? prefix[n] - 'a' + 'A' : prefix[n]);
    snprintf(name + n, size - n, "_FMAF");
}
