/*
 * Tiles of bf16 products by AMX: exact products, f32 sums; subnormal numbers are taken for zero.
 *
 * Its eight registers hold 16 rows of 64 bytes: of x 16 pairs along the sum, of the panel the 16
 * pairs they meet in each of 16 columns, of the result 16 sums. In use are
 *     0 1   sums of the upper rows, first and second vector     4   upper rows of x
 *     2 3   sums of the lower rows                              5   lower rows of x
 *     6 7   first and second vector of the panel
 *
 * It has run on no processor with AMX yet, only on the emulation of the instructions in
 * tests/device/host/kernels/amx_emulation.c. So it is never preferred, and runs with CORNU_ISA=amx
 * alone.
 *
 * Reference: isa/product_bf16.c's bounds; tests/device/host/machine/test_bf16.c checks them.
 * Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, LDTILECFG,
 *     TILELOADD, TDPBF16PS.
 * Gain: not measured.
 */
#include <immintrin.h>

#include "tile_fit.h"

enum { SIDE = 16, REGISTER_ROW = 64, DEPTH = 2 };

/* As LDTILECFG reads it. */
typedef struct {
    uint8_t  palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t  rows[16];
} Configuration;

/* Pairs of all runs that do not fill a register by themselves, collected until there are 16. */
typedef struct {
    uint32_t x[2 * SIDE][SIDE];
    uint32_t panel[SIDE][2 * SIDE];
    int      count;
} Rest;

/* The intrinsics of gcc 12 do not declare the memory they read: no store may cross this. */
INLINE void compiler_barrier(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Clears all registers. Without lower rows their registers do not exist. */
static void configure(int rows)
{
    const int     upper = rows < SIDE ? rows : SIDE, lower = rows - upper;
    const int     each[] = { upper, upper, lower, lower, upper, lower, SIDE, SIDE };
    Configuration to = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        to.rows[i] = (uint8_t)each[i];
        to.row_bytes[i] = each[i] ? REGISTER_ROW : 0;
    }
    compiler_barrier(&to);
    _tile_loadconfig(&to);
}

/* Adds 16 pairs of every row of x; strides are in bytes. */
INLINE void multiply(const CornuTile *tile, const void *x, ptrdiff_t x_stride, const void *panel,
                     ptrdiff_t panel_stride)
{
    const bool lower = tile->rows > SIDE, second = tile->vectors == 2;
    _tile_loadd(4, x, x_stride);
    _tile_loadd(6, panel, panel_stride);
    _tile_dpbf16ps(0, 4, 6);
    if (second) {
        _tile_loadd(7, (const char *)panel + REGISTER_ROW, panel_stride);
        _tile_dpbf16ps(1, 4, 7);
    }
    if (lower) {
        _tile_loadd(5, (const char *)x + SIDE * x_stride, x_stride);
        _tile_dpbf16ps(2, 5, 6);
        if (second) _tile_dpbf16ps(3, 5, 7);
    }
}

static void multiply_rest(const CornuTile *tile, Rest *rest)
{
    for (; rest->count < SIDE; rest->count++) {
        for (int m = 0; m < tile->rows; m++) rest->x[m][rest->count] = 0;
        memset(rest->panel[rest->count], 0, sizeof rest->panel[0]);
    }
    compiler_barrier(rest);
    multiply(tile, rest->x, sizeof rest->x[0], rest->panel, sizeof rest->panel[0]);
    compiler_barrier(rest);
    rest->count = 0;
}

/* One pair, or a single element if the run ends. */
static void add_pair(const CornuTile *tile, const uint16_t *x, const uint32_t *panel, Part part,
                     Rest *rest)
{
    const uint32_t mask = part == LOW ? 0xffffu : part == HIGH ? 0xffff0000u : 0xffffffffu;
    for (int m = 0; m < tile->rows; m++, x += tile->x_stride)
        rest->x[m][rest->count] = part == LOW  ? x[0]
                                : part == HIGH ? (uint32_t)x[0] << 16
                                               : x[0] | (uint32_t)x[1] << 16;
    for (int n = 0; n < tile->vectors * SIDE; n++) rest->panel[rest->count][n] = panel[n] & mask;
    if (++rest->count == SIDE) multiply_rest(tile, rest);
}

static void tile_run(const CornuTile *tile, const CornuRun *run, Rest *rest)
{
    const int       row = tile->vectors * SIDE;
    const uint16_t *x = (const uint16_t *)tile->x + run->offset;
    const uint32_t *panel = (const uint32_t *)tile->panel + run->k / DEPTH * row;
    int64_t         left = run->length;
    if (run->k % DEPTH && left > 0) {
        add_pair(tile, x, panel, HIGH, rest);
        left--, x++, panel += row;
    }
    for (; left >= DEPTH * SIDE; left -= DEPTH * SIDE) {
        multiply(tile, x, tile->x_stride * (ptrdiff_t)sizeof *x, panel,
                 row * (ptrdiff_t)sizeof *panel);
        x += DEPTH * SIDE, panel += SIDE * row;
    }
    for (; left >= DEPTH; left -= DEPTH) {
        add_pair(tile, x, panel, WHOLE, rest);
        x += DEPTH, panel += row;
    }
    if (left > 0) add_pair(tile, x, panel, LOW, rest);
}

/* Starts the sums with the bias. */
static void load_bias(const CornuTile *tile)
{
    const bool      lower = tile->rows > SIDE, second = tile->vectors == 2;
    const float    *low = tile->bias + SIDE * tile->bias_stride;
    const ptrdiff_t bytes = tile->bias_stride * (ptrdiff_t)sizeof *tile->bias;
    _tile_loadd(0, tile->bias, bytes);
    if (second) _tile_loadd(1, tile->bias + SIDE, bytes);
    if (lower) _tile_loadd(2, low, bytes);
    if (lower && second) _tile_loadd(3, low + SIDE, bytes);
}

static void store_sums(const CornuTile *tile, float *to, ptrdiff_t stride)
{
    const bool      lower = tile->rows > SIDE, second = tile->vectors == 2;
    const ptrdiff_t bytes = stride * (ptrdiff_t)sizeof *to;
    _tile_stored(0, to, bytes);
    if (second) _tile_stored(1, to + SIDE, bytes);
    if (lower) _tile_stored(2, to + SIDE * stride, bytes);
    if (lower && second) _tile_stored(3, to + SIDE * stride + SIDE, bytes);
}

/* The register of sums at row m, column n. */
INLINE Lanes finished(const CornuTile *tile, int m, int n, Lanes y)
{
    if (tile->scale) y = unfused(y * load(tile->scale + n)) + load(tile->shift + n);
    if (tile->term) y += load_first(tile->term + m * tile->y_stride + n, tile->columns - n);
    return tile->relu ? relu(y) : y;
}

static void tile(const CornuTile *tile)
{
    const int  width = tile->vectors * SIDE;
    const bool plain = !tile->narrow && !tile->relu && !tile->scale && !tile->term;
    const bool whole = plain && tile->columns == width;
    Rest       rest;
    float      sums[2 * SIDE * 2 * SIDE];
    rest.count = 0;
    configure(tile->rows);
    load_bias(tile);
    for (int64_t r = 0; r < tile->run_count; r++) tile_run(tile, &tile->runs[r], &rest);
    if (rest.count) multiply_rest(tile, &rest);
    store_sums(tile, whole ? tile->y : sums, whole ? tile->y_stride : width);
    _tile_release();
    if (whole) return;
    for (int i = 0; i < tile->rows * width; i += LANES)
        store(sums + i, finished(tile, i / width, i % width, load(sums + i)));
    tile_fit(tile, sums, width);
}

static float limit(int64_t steps)
{
    float sums[SIDE * SIDE];
    configure(2 * SIDE);
    for (; steps > 0; steps--) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, REGISTER_ROW);
    _tile_release();
    return sums[0];
}

static void outer(const CornuOuter *outer) { cornu__products_avx512bf16.outer(outer); }

static void pack(void *panel, int64_t width, int64_t k, int64_t count, const void *from,
                 ptrdiff_t k_step, ptrdiff_t n_step, int64_t columns)
{
    cornu__products_avx512bf16.pack(panel, width, k, count, from, k_step, n_step, columns);
}

const CornuProducts CORNU__PER_ISA(cornu__products) = {
    SIDE, 2 * SIDE, 0, TILE_ROWS, GATHER_ROWS, DEPTH, sizeof(uint16_t), tile, NULL, outer, NULL,
    pack, NULL, NULL, limit,
    4 * 2 * DEPTH * SIDE * SIDE * SIDE, true,
};
