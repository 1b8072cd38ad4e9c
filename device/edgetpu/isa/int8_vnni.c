/*
 * Products of int8 by AVX-512 VNNI: vpdpbusd adds four products of u8 and i8 to each of 16 sums
 * without saturation.
 *
 * Reference: reference.c; tests/device/edgetpu/test_products.c compares them.
 * Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, VPDPBUSD.
 * Gain: README.md of the folder.
 */
#include "loops_internal.h"

INLINE void tile_sums(const CornuInt8Tile *tile, int rows, int panels,
                      int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    __m512i sum[CORNU_INT8_ROWS * 2];
    UNROLL for (int i = 0; i < rows * panels; i++)
        sum[i] = _mm512_loadu_si512(tile->finish.bias + i % panels * CORNU_INT8_COLUMNS);
    for (int64_t g = 0; g < tile->groups; g++) {
        __m512i filter[2];
        UNROLL for (int p = 0; p < panels; p++)
            filter[p] = _mm512_loadu_si512(tile->panel[p] + g * CORNU_INT8_PANEL);
        UNROLL for (int i = 0; i < rows * panels; i++) {
            const uint8_t *x = tile->x + i / panels * tile->x_stride + g * CORNU_INT8_GROUP;
            sum[i] = _mm512_dpbusd_epi32(sum[i], _mm512_set1_epi32(group_of(x)),
                                         filter[i % panels]);
        }
    }
    UNROLL for (int i = 0; i < rows * panels; i++)
        _mm512_storeu_si512(sums[i / panels] + i % panels * CORNU_INT8_COLUMNS, sum[i]);
}

INLINE void panels_sums(const CornuInt8Tile *tile, int panels,
                        int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    switch (tile->rows) {
    case 1: tile_sums(tile, 1, panels, sums); break;
    case 2: tile_sums(tile, 2, panels, sums); break;
    case 3: tile_sums(tile, 3, panels, sums); break;
    case 4: tile_sums(tile, 4, panels, sums); break;
    case 5: tile_sums(tile, 5, panels, sums); break;
    case 6: tile_sums(tile, 6, panels, sums); break;
    case 7: tile_sums(tile, 7, panels, sums); break;
    case 8: tile_sums(tile, 8, panels, sums); break;
    case 9: tile_sums(tile, 9, panels, sums); break;
    case 10: tile_sums(tile, 10, panels, sums); break;
    case 11: tile_sums(tile, 11, panels, sums); break;
    case 12: tile_sums(tile, 12, panels, sums); break;
    }
}

static void sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS])
{
    if (tile->panels == 2) panels_sums(tile, 2, sums);
    else                   panels_sums(tile, 1, sums);
}

const CornuInt8Loops CORNU__PER_ISA(cornu__int8_loops) = {
    product, multiply_add, finish, maximum, raise
};
