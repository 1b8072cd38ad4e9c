/*
 * Tiles of bf16 products by AMX: exact products, f32 sums; subnormal numbers are taken for zero.
 *
 * Its eight registers hold 16 rows of 64 bytes: of x 16 pairs along the sum, of the panel the 16
 * pairs they meet in each of 16 columns, of the result 16 sums. In use are
 *     0 1   sums of the upper rows, first and second vector     4   upper rows of x
 *     2 3   sums of the lower rows                              5   lower rows of x
 *     6 7   first and second vector of the panel
 *
 * Configuring them takes as long as multiplying 96 elements of each row, so they stay as they are
 * from tile to tile, while these have as many rows, until the thread's part of a run ends.
 *
 * Reference: isa/product_bf16.c's bounds; tests/device/host/machine/test_bf16.c checks them.
 * Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, LDTILECFG,
 *     TILELOADD, TDPBF16PS.
 * Gain, Xeon (family 6, model 207), two threads: 17 times the multiply-adds of f32 in registers.
 */
#include "finish.h"
#include "lanes.h"
#include "product.h"

enum { SIDE = 16, REGISTER_ROW = 64, DEPTH = 2 };

/* As LDTILECFG reads it. */
typedef struct {
    uint8_t  palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t  rows[16];
} Configuration;

/* Pairs of all runs that do not fill a register by themselves, collected until there are 16; zeros
 * follow in rows of x. */
typedef struct {
    uint32_t x[2 * SIDE][2 * SIDE];
    uint32_t panel[2 * SIDE][2 * SIDE];
    int      count;
} Rest;

/* Rows that this thread's registers are configured for; 0: they are released. */
static _Thread_local int configured_rows;

/* The intrinsics of gcc 12 do not declare the memory they read: no store may cross this. */
INLINE void compiler_barrier(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

static void configure(int rows)
{
    const int     upper = rows < SIDE ? rows : SIDE, lower = rows - upper;
    const int     each[] = { upper, upper, lower, lower, upper, lower, SIDE, SIDE };
    Configuration to = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        to.rows[i] = (uint8_t)each[i];
        to.row_bytes[i] = each[i] ? REGISTER_ROW : 0;   /* without lower rows they do not exist */
    }
    compiler_barrier(&to);
    _tile_loadconfig(&to);
    configured_rows = rows;
}

static void release_registers(void)
{
    if (configured_rows) _tile_release();
    configured_rows = 0;
}

/* 16 pairs of every row of x, and of the panel; strides are in bytes. Rows that are far are not
 * kept in the first-level cache. */
INLINE void load_x(bool lower, bool far, const void *x, ptrdiff_t stride)
{
    const char *low = (const char *)x + SIDE * stride;
    if (far) _tile_stream_loadd(4, x, stride);
    else _tile_loadd(4, x, stride);
    if (lower && far) _tile_stream_loadd(5, low, stride);
    else if (lower) _tile_loadd(5, low, stride);
}

INLINE void load_panel(bool second, const void *panel, ptrdiff_t stride)
{
    _tile_loadd(6, panel, stride);
    if (second) _tile_loadd(7, (const char *)panel + REGISTER_ROW, stride);
}

INLINE void multiply_registers(bool lower, bool second)
{
    _tile_dpbf16ps(0, 4, 6);
    if (second) _tile_dpbf16ps(1, 4, 7);
    if (lower) _tile_dpbf16ps(2, 5, 6);
    if (lower && second) _tile_dpbf16ps(3, 5, 7);
}

INLINE void multiply(bool lower, bool second, bool far, const void *x, ptrdiff_t x_stride,
                     const void *panel, ptrdiff_t panel_stride)
{
    load_x(lower, far, x, x_stride);
    load_panel(second, panel, panel_stride);
    multiply_registers(lower, second);
}

static void multiply_rest(const CornuTile *tile, Rest *rest)
{
    compiler_barrier(rest);
    multiply(tile->rows > SIDE, tile->vectors == 2, false, rest->x, sizeof rest->x[0], rest->panel,
             sizeof rest->panel[0]);
    compiler_barrier(rest);
}

/* A register's row: elements [from, to) of x, zeros for the others. */
INLINE void copy_row(uint32_t *row, const uint16_t *x, int from, int to)
{
#if defined(__AVX512BW__)
    const __mmask32 kept = (uint32_t)((uint64_t)1 << to) - (1u << from);
    _mm512_storeu_si512(row, _mm512_maskz_loadu_epi16(kept, x));
#else
    memset(row, 0, REGISTER_ROW);
    memcpy((uint16_t *)row + from, x + from, (size_t)(to - from) * sizeof *x);
#endif
}

/* Multiplies the first 16 pairs; those after them become the first. */
static void multiply_full(const CornuTile *tile, Rest *rest)
{
    multiply_rest(tile, rest);
    rest->count -= SIDE;
    for (int m = 0; m < tile->rows; m++)
        copy_row(rest->x[m], (const uint16_t *)(rest->x[m] + SIDE), 0, DEPTH * rest->count);
    memcpy(rest->panel, rest->panel + SIDE, (size_t)rest->count * sizeof rest->panel[0]);
}

/* Adds to the rest elements [from, to) of 32 of each row of x, and the pairs of the panel that they
 * meet, of which the halves that they do not meet may be anything. */
static void add_rest(const CornuTile *tile, const uint16_t *x, const uint32_t *panel, int from,
                     int to, Rest *rest)
{
    const int width = tile->vectors * SIDE, at = rest->count, count = (to + 1) / DEPTH;
    for (int m = 0; m < tile->rows; m++, x += tile->x_stride)
        copy_row(rest->x[m] + at, x, from, to);
    for (int k = 0; k < count; k++)
        memcpy(rest->panel[at + k], panel + k * width, (size_t)width * sizeof *panel);
    for (int n = 0; n < width && from; n++) rest->panel[at][n] &= 0xffff0000u;
    for (int n = 0; n < width && to % DEPTH; n++) rest->panel[at + count - 1][n] &= 0xffffu;
    rest->count += count;
    if (rest->count >= SIDE) multiply_full(tile, rest);
}

/* A run from an even row of the panel on, of whole registers; returns its elements. */
INLINE int64_t multiply_run(bool lower, bool second, bool far, const CornuTile *tile,
                            const uint16_t *x, const uint32_t *panel, int64_t length)
{
    const ptrdiff_t row = (second ? 2 : 1) * REGISTER_ROW;
    const ptrdiff_t x_stride = tile->x_stride * (ptrdiff_t)sizeof *x;
    const char     *at = (const char *)panel;
    int64_t         k = 0;
    for (; k + DEPTH * SIDE <= length; k += DEPTH * SIDE, at += SIDE * row)
        multiply(lower, second, far, x + k, x_stride, at, row);
    return k;
}

/* Whole registers of all runs in turns; returns the elements of each. An operand that the run
 * before multiplied stays in its registers. */
INLINE int64_t multiply_turns(bool lower, bool second, const CornuTile *tile)
{
    const int        width = (second ? 2 : 1) * SIDE;
    const ptrdiff_t  row = width * (ptrdiff_t)sizeof(uint32_t);
    const ptrdiff_t  x_row = tile->x_stride * (ptrdiff_t)sizeof(uint16_t);
    const CornuRun  *end = tile->runs + tile->run_count;
    const int64_t    length = tile->runs->length;
    const uint16_t  *x = tile->x;
    const uint32_t  *panel = tile->panel;
    int64_t          k = 0;
    for (; k + DEPTH * SIDE <= length; k += DEPTH * SIDE, x += DEPTH * SIDE, panel += SIDE * width)
        for (const CornuRun *run = tile->runs; run < end; run++) {
            if (run == tile->runs || run->offset != run[-1].offset)
                load_x(lower, false, x + run->offset, x_row);
            if (run == tile->runs || run->k != run[-1].k)
                load_panel(second, panel + run->k / DEPTH * width, row);
            multiply_registers(lower, second);
        }
    return k;
}

static void tile_turns(const CornuTile *tile, Rest *rest)
{
    const int     row = tile->vectors * SIDE, left = (int)(tile->runs->length % (DEPTH * SIDE));
    const bool    lower = tile->rows > SIDE, second = tile->vectors == 2;
    const int64_t done = lower ? second ? multiply_turns(true, true, tile)
                                        : multiply_turns(true, false, tile)
                               : second ? multiply_turns(false, true, tile)
                                        : multiply_turns(false, false, tile);
    for (int64_t r = 0; r < tile->run_count && left > 0; r++)
        add_rest(tile, (const uint16_t *)tile->x + tile->runs[r].offset + done,
                 (const uint32_t *)tile->panel + (tile->runs[r].k + done) / DEPTH * row, 0, left,
                 rest);
}

/* Whole registers of a run; returns its elements. */
INLINE int64_t multiply_whole(bool far, const CornuTile *tile, const uint16_t *x,
                              const uint32_t *panel, int64_t length)
{
    const bool lower = tile->rows > SIDE, second = tile->vectors == 2;
    return lower ? second ? multiply_run(true, true, far, tile, x, panel, length)
                          : multiply_run(true, false, far, tile, x, panel, length)
                 : second ? multiply_run(false, true, far, tile, x, panel, length)
                          : multiply_run(false, false, far, tile, x, panel, length);
}

static void tile_run(const CornuTile *tile, const CornuRun *run, Rest *rest)
{
    const int       row = tile->vectors * SIDE;
    const uint16_t *x = (const uint16_t *)tile->x + run->offset;
    const uint32_t *panel = (const uint32_t *)tile->panel + run->k / DEPTH * row;
    int64_t         left = run->length;
    if (run->k % DEPTH && left > 0) {
        add_rest(tile, x - 1, panel, 1, DEPTH, rest);
        left--, x++, panel += row;
    }
    const int64_t done = tile->x_far ? multiply_whole(true, tile, x, panel, left)
                                     : multiply_whole(false, tile, x, panel, left);
    if (done < left)
        add_rest(tile, x + done, panel + done / DEPTH * row, 0, (int)(left - done), rest);
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

/* A register's columns, from n on, of all rows of sums, which are `width` apart. Constants where it
 * is called let the loop be short: it takes as long as multiplying 96 elements or more. */
INLINE void finish_columns(const CornuTile *tile, const float *sums, int width, int n, bool narrow,
                           bool rectified, bool more)
{
    const ptrdiff_t *rows = tile->y_rows, stride = tile->y_stride;
    const float     *term = tile->term;
    const int        row_count = tile->rows, count = tile->columns - n;
    char            *y = (char *)tile->y + n * (narrow ? (int)sizeof(uint16_t) : (int)sizeof *sums);
    for (int m = 0; m < row_count; m++) {
        const ptrdiff_t row = rows ? rows[m] : m * stride;
        Lanes           sum = load(sums + m * width + n);
        if (row < 0) continue;
        if (more) finish_rows(&tile->finish, n, count, term ? term + row + n : NULL, 0, 1, 1, &sum);
        else if (rectified) sum = relu(sum);
        if (narrow) store_narrow((uint16_t *)(void *)y + row, sum, count);
        else store_some((float *)(void *)y + row, sum, count);
    }
}

#if defined(__AVX512BF16__)
/* Both registers of each row together, bf16 with at most a relu. */
INLINE void finish_pairs(const CornuTile *tile, const float *sums, bool rectified)
{
    const ptrdiff_t *rows = tile->y_rows, stride = tile->y_stride;
    const __mmask32  kept = (uint32_t)(((uint64_t)1 << tile->columns) - 1);
    const int        row_count = tile->rows;
    uint16_t        *y = tile->y;
    for (int m = 0; m < row_count; m++, sums += 2 * SIDE) {
        const ptrdiff_t row = rows ? rows[m] : m * stride;
        Lanes           low = load(sums), high = load(sums + SIDE);
        if (row < 0) continue;
        if (rectified) low = relu(low), high = relu(high);
        _mm512_mask_storeu_epi16(y + row, kept,
                                 (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
    }
}
#endif

static void finish(const CornuTile *tile, const float *sums, int width)
{
    const CornuFinish *f = &tile->finish;
    const bool         more = f->scale || f->shift || f->slope || f->bound > 0.0f || tile->term;
#if defined(__AVX512BF16__)
    if (tile->narrow && !more && tile->vectors == 2) {
        if (f->relu) finish_pairs(tile, sums, true);
        else finish_pairs(tile, sums, false);
        return;
    }
#endif
    for (int n = 0; n < tile->columns; n += LANES)
        if (tile->narrow && !more && f->relu)
            finish_columns(tile, sums, width, n, true, true, false);
        else if (tile->narrow && !more)
            finish_columns(tile, sums, width, n, true, false, false);
        else
            finish_columns(tile, sums, width, n, tile->narrow, f->relu, more);
}

static void tile(const CornuTile *tile)
{
    const int  width = tile->vectors * SIDE;
    const bool plain = !tile->narrow && cornu__finish_is_empty(&tile->finish) && !tile->term &&
                       !tile->y_rows;
    const bool whole = plain && tile->columns == width;
    _Alignas(REGISTER_ROW) Rest  rest;   /* rows that cross lines of the cache load slowly */
    _Alignas(REGISTER_ROW) float sums[2 * SIDE * 2 * SIDE];
    rest.count = 0;
    if (configured_rows != tile->rows) configure(tile->rows);
    load_bias(tile);
    if (tile->in_turns) tile_turns(tile, &rest);
    else for (int64_t r = 0; r < tile->run_count; r++) tile_run(tile, &tile->runs[r], &rest);
    if (rest.count) {
        memset(rest.panel[rest.count], 0, (size_t)(SIDE - rest.count) * sizeof rest.panel[0]);
        multiply_rest(tile, &rest);
    }
    store_sums(tile, whole ? tile->y : sums, whole ? tile->y_stride : width);
    if (!whole) finish(tile, sums, width);
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
    release_registers();
    return sums[0];
}

static void outer(const CornuOuter *outer) { cornu__products_avx512bf16.outer(outer); }

static void pack(void *panel, int64_t width, int64_t k, int64_t count, const void *from,
                 ptrdiff_t k_step, ptrdiff_t n_step, int64_t columns)
{
    cornu__products_avx512bf16.pack(panel, width, k, count, from, k_step, n_step, columns);
}

const CornuProducts CORNU__PER_ISA(cornu__products) = {
    SIDE, 2 * SIDE, 0, 0, TILE_ROWS, GATHER_ROWS, DEPTH, sizeof(uint16_t), tile, NULL, NULL, outer,
    NULL, pack, NULL, NULL, NULL, limit,
    4 * 2 * DEPTH * SIDE * SIDE * SIDE, true, release_registers, &cornu__image_packs_amx,
};
