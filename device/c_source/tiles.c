/* Tiles of sums in registers, for products and convolutions. */
#include "source_internal.h"

/*
 * Measured with GCC 12 and clang 14 on Zen 4, of 121 by 288 by 64 products: 4 to 6 rows of 16 reach
 * 100 to 108 GFLOP/s, with AVX2 alone too; 2 of 32 from 31 to 98, 8 of 16 from 2 to 95. Loops of at
 * most 16 turns are unrolled by GCC before it makes vectors, and such sums take ten times as long:
 * of few terms they are one row of 32.
 */
CornuCTile cornu__c_tile(int64_t rows, int64_t columns, int64_t terms)
{
    enum { FEW = 16, LEAST = 4, MOST = 6, COLUMNS = 16, ROW = 64 };
    CornuCTile tile = { rows < MOST ? rows : LEAST, cornu__c_least(columns, COLUMNS) };
    if (rows == 1) tile.columns = cornu__c_least(columns, ROW);
    if (terms <= FEW) return (CornuCTile){ 1, cornu__c_least(columns, 2 * COLUMNS) };
    for (int64_t n = LEAST + 1; rows >= MOST && n <= MOST; n++)   /* what is computed twice */
        if ((rows + n - 1) / n * n < (rows + tile.rows - 1) / tile.rows * tile.rows) tile.rows = n;
    return tile;
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

void cornu__c_fma(const CornuCCall *call, char *name, size_t size)
{
    const char *prefix = cornu__c_prefix(call->section);
    size_t      n = 0;
    cornu__c_helper(call->section->source, CORNU_C_HELPER_FMA);
    for (; prefix[n] && n + 6 < size; n++)
        name[n] = (char)(prefix[n] >= 'a' && prefix[n] <= 'z' ? prefix[n] - 'a' + 'A' : prefix[n]);
    snprintf(name + n, size - n, "_FMAF");
}
