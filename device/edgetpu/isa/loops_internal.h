/* What int8.c and int8_vnni.c share; each defines sums_of, the sums of a tile. */
#include "../../host/isa/lanes.h"
#include "int8.h"

#define SIMD _Pragma("omp simd")

/* fixed.h's arithmetic, in loops that compilers turn into vectors: mantissas are not negative, so
 * no product overflows, and of the product's bits shifted out at the top none is kept. */
INLINE void finish_loop(const CornuInt8Finish *f, int64_t count, const int32_t *restrict sums,
                        int8_t *restrict y)
{
    const int32_t zero = f->zero, low = f->low, high = f->high;
    SIMD for (int64_t c = 0; c < count; c++) {
        const int32_t x = (int32_t)((uint32_t)sums[c] << f->left[c]);
        const int32_t product =
            (int32_t)((uint64_t)((int64_t)x * f->mantissa[c] + (INT64_C(1) << 30)) >> 31);
        const int32_t mask = (int32_t)((UINT32_C(1) << f->right[c]) - 1);
        const int32_t up = (product & mask) > (mask >> 1) + (product < 0);
        const int32_t to = (product >> f->right[c]) + up + zero;
        const int32_t above = to < low ? low : to;
        y[c] = (int8_t)(above > high ? high : above);
    }
}

static void finish(const CornuInt8Finish *f, int64_t count, const int32_t *sums, int8_t *y)
{
    finish_loop(f, count, sums, y);
}

static void multiply_add(int64_t count, const int8_t *restrict x, int32_t zero,
                         const int8_t *restrict filter, int32_t *restrict sums)
{
    const int16_t less = (int16_t)zero;
    SIMD for (int64_t c = 0; c < count; c++)
        sums[c] = (int32_t)((uint32_t)sums[c] +
                            (uint32_t)((int16_t)filter[c] * (int16_t)(x[c] - less)));
}

static void maximum(int64_t count, const int8_t *restrict x, int8_t *restrict y)
{
    SIMD for (int64_t c = 0; c < count; c++) y[c] = x[c] > y[c] ? x[c] : y[c];
}

static void raise(int64_t count, const int8_t *restrict x, uint8_t *restrict y)
{
    SIMD for (int64_t c = 0; c < count; c++) y[c] = (uint8_t)(x[c] ^ -128);
}

/* Sums of a tile, of which a row has SUMS. */
enum { SUMS = 2 * CORNU_INT8_COLUMNS };
static void sums_of(const CornuInt8Tile *tile, int32_t sums[CORNU_INT8_ROWS][SUMS]);

static void product(const CornuInt8Tile *tile)
{
    int32_t   sums[CORNU_INT8_ROWS][SUMS];
    int8_t    y[SUMS];
    const int width = tile->panels * CORNU_INT8_COLUMNS;
    sums_of(tile, sums);
    for (int m = 0; m < tile->rows && tile->sums; m++)
        memcpy(tile->sums + m * tile->y_stride, sums[m], (size_t)tile->columns * sizeof **sums);
    for (int m = 0; m < tile->rows && !tile->sums; m++) {
        int8_t *to = tile->y + m * tile->y_stride;
        if (width == SUMS) finish_loop(&tile->finish, SUMS, sums[m], y);
        else               finish_loop(&tile->finish, CORNU_INT8_COLUMNS, sums[m], y);
        memcpy(to, y, (size_t)tile->columns);
    }
}

/* The 4 bytes of a group. */
INLINE int32_t group_of(const uint8_t *x)
{
    int32_t group;
    memcpy(&group, x, sizeof group);
    return group;
}
