/*
 * The bodies of product.h's tiles, for f32 and for bf16. Each is inlined with the tile's extents
 * known, once per number of rows and vectors, and the compiler keeps its sums in registers: with
 * gcc 12 and clang 14, AVX2 and AVX-512, both run at 93 to 100 % of what the multiply-add units
 * give once operands are in the first-level cache.
 *
 * That takes care, or else sums live on the stack and a third of the speed is lost:
 *  - a step goes over all sums in one loop; of two nested ones clang unrolls an inner loop of one
 *    turn too late to see which element of an array is meant;
 *  - sums leave registers by plain stores alone; with a branch that goes over their lanes gcc
 *    keeps all but the first row in memory throughout;
 *  - steps in one turn of the loop over k are kept in order, and few; else 28 sums of AVX-512 are
 *    spilled.
 *
 * The file that includes this defines before what is multiplied:
 *     Element                     of x in memory: float, or uint16_t for bf16
 *     Operand                     what is broadcast: DEPTH elements along the sum, 4 bytes
 *     Vector                      LANES of them
 *     operand(x, part)            reads an operand; LOW and HIGH: one element, the other zero
 *     lanes(from, part)           reads a vector; LOW and HIGH: that element, the other zero
 *     multiply(sum, a, b)         sum + a b
 *     multiply_lanes(sum, a, b)   the same of two vectors
 * and, with AVX-512,
 *     selected(table, at)         the elements of a vector of operands with these numbers
 *     NEXT_SELECTION              from the number of an element to that in the next row
 */
#include "../../inference_internal.h"
#include "finish.h"
#include "lanes.h"
#include "product.h"

/* Whether registers are stored in part by a mask, which tiles unroll. */
enum {
    TILE_SUMS = TILE_ROWS * TILE_VECTORS,
#if defined(__AVX512F__)
    MASKED = 1
#else
    MASKED = 0
#endif
};

/* Of a tile of `rows` by `vectors` registers, in that order. */
typedef Lanes Sums[TILE_SUMS];

/* Rows are addressed from three pointers, `each` rows from one: fourteen pointers would not fit
 * into the general registers. */
enum { EACH = 5 };

/* Steps in a turn of the loop along a sum: the additions and the jump of a turn take units that
 * could multiply. */
enum { STEPS = 2 };

/* Keeps the steps of a turn apart: a compiler that loads for several at once runs out of
 * registers. */
#define IN_ORDER __asm__ volatile("" ::: "memory")

/* Every TILE_VECTORS registers of a row of sums meet a panel of their own, `apart` operands from
 * the one before. */
INLINE void tile_step(int rows, int vectors, int each, const Element *const x[3], ptrdiff_t stride,
                      const Operand *panel, ptrdiff_t apart, Part part, Sums sum)
{
    UNROLL for (int i = 0; i < rows * vectors; i++) {
        const int m = i / vectors, n = i % vectors;
        sum[i] = multiply(sum[i], operand(x[m / each] + m % each * stride, part),
                          lanes(panel + n / TILE_VECTORS * apart + n % TILE_VECTORS * LANES, part));
    }
}

/* The pointers are `next` elements apart. */
INLINE void tile_run(int rows, int vectors, int each, const CornuTile *tile, ptrdiff_t next,
                     ptrdiff_t apart, const CornuRun *run, Sums sum)
{
    const ptrdiff_t stride = tile->x_stride;
    const ptrdiff_t row = (vectors < TILE_VECTORS ? vectors : TILE_VECTORS) * LANES;
    const Element  *x0 = (const Element *)tile->x + run->offset;
    const Element  *x1 = x0 + next, *x2 = x1 + next;
    const Operand  *panel = (const Operand *)tile->panel + run->k / DEPTH * row;
    CornuAhead     *ahead = tile->ahead;
    int64_t         left = run->length;
    if (run->k % DEPTH && left > 0) {
        tile_step(rows, vectors, each, (const Element *[]){ x0, x1, x2 }, stride, panel, apart,
                  HIGH, sum);
        left--, x0++, x1++, x2++, panel += row;
    }
    while (left >= DEPTH) {
        int64_t some = left / DEPTH;
        if (ahead && some > ahead->terms) some = ahead->terms;
        if (ahead) cornu__request(ahead, ahead->lines);
        for (left -= some * DEPTH; some >= STEPS; some -= STEPS) {
            UNROLL for (int s = 0; s < STEPS; s++) {
                tile_step(rows, vectors, each,
                          (const Element *[]){ x0 + s * DEPTH, x1 + s * DEPTH, x2 + s * DEPTH },
                          stride, panel + s * row, apart, WHOLE, sum);
                IN_ORDER;
            }
            x0 += STEPS * DEPTH, x1 += STEPS * DEPTH, x2 += STEPS * DEPTH, panel += STEPS * row;
        }
        for (; some > 0; some--) {
            tile_step(rows, vectors, each, (const Element *[]){ x0, x1, x2 }, stride, panel, apart,
                      WHOLE, sum);
            x0 += DEPTH, x1 += DEPTH, x2 += DEPTH, panel += row;
        }
    }
    if (left > 0)
        tile_step(rows, vectors, each, (const Element *[]){ x0, x1, x2 }, stride, panel, apart,
                  LOW, sum);
}

/* Finishes and stores sums that cannot be stored straight from registers: bf16, and rows that end
 * within a register. `sum` has whole registers, `vectors` of them a row, which it changes. */
static void tile_fit(const CornuTile *tile, int vectors, Lanes *sum)
{
    for (int i = 0; i < tile->rows * vectors; i++) {
        const int64_t   n = i % vectors * LANES, count = tile->columns - n;
        const ptrdiff_t to = i / vectors * tile->y_stride + n;
        finish_rows(&tile->finish, n, count, tile->term ? tile->term + to : NULL, 0, 1, 1, &sum[i]);
        if (tile->narrow) store_narrow((uint16_t *)tile->y + to, sum[i], count);
        else store_some((float *)tile->y + to, sum[i], count);
    }
}

INLINE void tile_store(int rows, int vectors, const CornuTile *tile, Sums sum)
{
    const bool whole = tile->columns == vectors * LANES;
    if (!whole && (!MASKED || tile->narrow)) {
        Sums fitted;
        UNROLL for (int i = 0; i < rows * vectors; i++) fitted[i] = sum[i];
        tile_fit(tile, vectors, fitted);
        return;
    }
    UNROLL for (int v = 0; v < vectors; v++)
        finish_rows(&tile->finish, v * LANES, MASKED ? tile->columns - v * LANES : LANES,
                    tile->term ? tile->term + v * LANES : NULL, tile->y_stride, rows, vectors,
                    sum + v);
    if (tile->narrow)
        UNROLL for (int i = 0; i < rows * vectors; i++)
            store_all_narrow((uint16_t *)tile->y + i / vectors * tile->y_stride +
                             i % vectors * LANES, sum[i]);
    else if (whole)
        UNROLL for (int i = 0; i < rows * vectors; i++)
            store((float *)tile->y + i / vectors * tile->y_stride + i % vectors * LANES, sum[i]);
    else
        UNROLL for (int i = 0; i < rows * vectors; i++)
            store_some((float *)tile->y + i / vectors * tile->y_stride + i % vectors * LANES,
                       sum[i], tile->columns - i % vectors * LANES);
}

INLINE void tile_of(int rows, int vectors, const CornuTile *tile)
{
    Sums sum;
    UNROLL for (int i = 0; i < rows * vectors; i++)
        sum[i] = load(tile->bias + i / vectors * tile->bias_stride + i % vectors * LANES);
    for (int64_t r = 0; r < tile->run_count; r++)
        tile_run(rows, vectors, EACH, tile, EACH * tile->x_stride, 0, &tile->runs[r], sum);
    tile_store(rows, vectors, tile, sum);
}

INLINE void tile_rows(int vectors, const CornuTile *tile)
{
    switch (tile->rows) {
    case 1: tile_of(1, vectors, tile); break;
    case 2: tile_of(2, vectors, tile); break;
    case 3: tile_of(3, vectors, tile); break;
    case 4: tile_of(4, vectors, tile); break;
    case 5: tile_of(5, vectors, tile); break;
    case 6: tile_of(6, vectors, tile); break;
#if CORNU__TALL_TILES
    case 7: tile_of(7, vectors, tile); break;
    case 8: tile_of(8, vectors, tile); break;
    case 9: tile_of(9, vectors, tile); break;
    case 10: tile_of(10, vectors, tile); break;
    case 11: tile_of(11, vectors, tile); break;
    case 12: tile_of(12, vectors, tile); break;
    case 13: tile_of(13, vectors, tile); break;
    case 14: tile_of(14, vectors, tile); break;
#endif
    }
}

static void tile(const CornuTile *tile)
{
    if (tile->vectors == 1) tile_rows(1, tile);
    else tile_rows(2, tile);
}

enum { PANELS_ROWS = TILE_ROWS / CORNU_MOST_PANELS };

INLINE void panels_of(int rows, int count, const CornuPanels *panels)
{
    const CornuTile *tile = &panels->tile;
    const int        vectors = count * TILE_VECTORS;
    const ptrdiff_t  apart = panels->panel_next / DEPTH;
    Sums             sum;
    UNROLL for (int i = 0; i < rows * vectors; i++) {
        const int n = i % vectors;
        sum[i] = load(tile->bias + i / vectors * tile->bias_stride +
                      n / TILE_VECTORS * panels->bias_next + n % TILE_VECTORS * LANES);
    }
    for (int64_t r = 0; r < tile->run_count; r++)
        tile_run(rows, vectors, EACH, tile, 0, apart, &tile->runs[r], sum);
    UNROLL for (int i = 0; i < rows * vectors; i++) {
        const int n = i % vectors;
        store((float *)tile->y + i / vectors * tile->y_stride + n / TILE_VECTORS * panels->y_next +
                  n % TILE_VECTORS * LANES, sum[i]);
    }
}

INLINE void panels_rows(int count, const CornuPanels *panels)
{
    switch (panels->tile.rows) {
    case 1: panels_of(1, count, panels); break;
#if CORNU__TALL_TILES
    case 2: panels_of(2, count, panels); break;
    case 3: panels_of(3, count, panels); break;
#endif
    }
}

static void panels(const CornuPanels *panels)
{
    switch (panels->panels) {
    case 2: panels_rows(2, panels); break;
    case 3: panels_rows(3, panels); break;
    case 4: panels_rows(4, panels); break;
    }
}

/* Stores the values and indices of windows, `vectors` registers of each. */
INLINE void windows_fit(int windows, int vectors, const CornuWindows *pooled, const Lanes *value,
                        const Bits *where)
{
    const CornuTile *tile = &pooled->tile;
    const ptrdiff_t  stride = tile->y_stride;
    const int        columns = tile->columns;
    const bool       narrow = tile->narrow;
    uint8_t *const   index = pooled->index;
    void *const      y = tile->y;
    for (int i = 0; i < windows * vectors; i++) {
        const int       n = i % vectors * LANES, count = columns - n;
        const ptrdiff_t to = i / vectors * stride + n;
        if (narrow) store_narrow((uint16_t *)y + to, value[i], count);
        else store_some((float *)y + to, value[i], count);
        store_bytes_some(index + to, where[i], count);
    }
}

/* The sums of tap `tap` of window w. Rows of the tile are the upper rows of the windows, then the
 * lower ones. */
INLINE const Lanes *windows_tap(int windows, int vectors, const Sums sum, int w, int tap)
{
    return sum + (tap / 2 * 2 * windows + 2 * w + tap % 2) * vectors;
}

INLINE void windows_store(int windows, int vectors, bool rounds, const CornuWindows *pooled,
                          const Sums sum)
{
    Lanes best[WINDOWS * TILE_VECTORS];
    Bits  where[WINDOWS * TILE_VECTORS];
    UNROLL for (int i = 0; i < windows * vectors; i++) {
        Lanes most = { 0 };
        Mask  at = { 0 };
        UNROLL for (int tap = 0; tap < 4; tap++) {
            const Lanes exact = windows_tap(windows, vectors, sum, i / vectors, tap)[i % vectors];
            const Lanes value = rounds ? as_stored_narrow(exact) : exact;
            if (tap == 0) most = value;
            else window_take(value, tap, &most, &at);
        }
        most += load(pooled->tile.bias + i % vectors * LANES);
        if (pooled->tile.finish.relu) most = relu(most);
        best[i] = most;
        where[i] = (Bits)at;
    }
    windows_fit(windows, vectors, pooled, best, where);
}

#if defined(__AVX512BF16__)
/* The same for two whole vectors, rounded and stored narrow. One instruction rounds both; even
 * columns are compared in one register, odd ones in another. Of a step of mnist_cnn at 1024, Zen 5,
 * `windows` takes 6.5 % without rounding, 8.1 with each vector rounded by itself, and 6.9 so. */
INLINE void windows_store_pairs(int windows, const CornuWindows *pooled, const Sums sum)
{
    static const uint32_t even[LANES] = { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                          30 };
    static const uint32_t halves[LANES] = {   /* halves 0, 16, 1, 17, ...: even and odd in turn */
        0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
        0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f,
    };
    const CornuTile *tile = &pooled->tile;
    const __m512     low = (__m512)load(tile->bias), high = (__m512)load(tile->bias + LANES);
    const Bits       first = *(const UnalignedBits *)even;
    const Bits       order = *(const UnalignedBits *)halves;
    const Lanes      bias[2] = {
        (Lanes)_mm512_permutex2var_ps(low, (__m512i)first, high),
        (Lanes)_mm512_permutex2var_ps(low, (__m512i)(first + 1), high),
    };
    UNROLL for (int w = 0; w < windows; w++) {
        Lanes most[2];
        Mask  at[2] = { { 0 }, { 0 } };
        UNROLL for (int tap = 0; tap < 4; tap++) {
            const Lanes *exact = windows_tap(windows, 2, sum, w, tap);
            const Bits   pairs = (Bits)_mm512_cvtne2ps_pbh((__m512)exact[1], (__m512)exact[0]);
            const Lanes  value[2] = { (Lanes)(pairs << 16), (Lanes)(pairs & 0xffff0000) };
            UNROLL for (int p = 0; p < 2; p++) {
                if (tap == 0) most[p] = value[p];
                else window_take(value[p], tap, &most[p], &at[p]);
            }
        }
        UNROLL for (int p = 0; p < 2; p++) {
            most[p] += bias[p];
            if (tile->finish.relu) most[p] = relu(most[p]);
        }
        const __m512i y = (__m512i)_mm512_cvtne2ps_pbh((__m512)most[1], (__m512)most[0]);
        _mm512_storeu_si512((uint16_t *)tile->y + w * tile->y_stride,
                            _mm512_permutexvar_epi16((__m512i)order, y));
        _mm256_storeu_si256((void *)(pooled->index + w * tile->y_stride),
                            _mm512_cvtepi16_epi8((__m512i)(at[0] | at[1] << 16)));
    }
}

INLINE bool windows_pair(int vectors, const CornuWindows *pooled)
{
    return vectors == 2 && pooled->rounds && pooled->tile.narrow &&
           pooled->tile.columns == 2 * LANES;
}
#else
INLINE void windows_store_pairs(int windows, const CornuWindows *pooled, const Sums sum)
{
    (void)windows, (void)pooled, (void)sum;
}

INLINE bool windows_pair(int vectors, const CornuWindows *pooled)
{
    return (void)vectors, (void)pooled, false;
}
#endif

INLINE void windows_of(int windows, int vectors, const CornuWindows *pooled)
{
    const CornuTile *tile = &pooled->tile;
    Sums             sum;
    UNROLL for (int i = 0; i < 4 * windows * vectors; i++) sum[i] = (Lanes){ 0 };
    for (int64_t r = 0; r < tile->run_count; r++)
        tile_run(4 * windows, vectors, 2 * windows, tile, pooled->x_row, 0, &tile->runs[r], sum);
    if (windows_pair(vectors, pooled)) windows_store_pairs(windows, pooled, sum);
    else if (pooled->rounds) windows_store(windows, vectors, true, pooled, sum);
    else windows_store(windows, vectors, false, pooled, sum);
}

INLINE void windows_rows(int vectors, const CornuWindows *pooled)
{
    switch (pooled->tile.rows) {
    case 1: windows_of(1, vectors, pooled); break;
#if CORNU__TALL_TILES
    case 2: windows_of(2, vectors, pooled); break;
    case 3: windows_of(3, vectors, pooled); break;
#endif
    }
}

static void windows(const CornuWindows *pooled)
{
    if (pooled->tile.vectors == 1) windows_rows(1, pooled);
    else windows_rows(2, pooled);
}

/* As in a tile along a sum; a step of tall ones is long enough by itself. 256 x 1024 x 4096, AVX2,
 * two threads of a Xeon (model 207): 14.1 ms, then 13.6. */
enum { OUTER_STEPS = CORNU__TALL_TILES ? 1 : STEPS };

INLINE void outer_step(int rows, int vectors, const Operand *x, const ptrdiff_t *offsets,
                       const Operand *y, Sums sum)
{
    UNROLL for (int i = 0; i < rows * vectors; i++) {
        const int m = i / vectors, n = i % vectors;
        sum[i] = multiply(sum[i], x[offsets ? offsets[m] : m], lanes(y + n * LANES, WHOLE));
    }
}

INLINE void outer_start(int rows, int vectors, const CornuOuter *outer, Sums sum)
{
    const float *from = outer->sum;
    UNROLL for (int i = 0; i < rows * vectors; i++)
        sum[i] = outer->add ? load(from + i / vectors * outer->sum_stride + i % vectors * LANES)
                            : (Lanes){ 0 };
}

INLINE void outer_store(int rows, int vectors, const CornuOuter *outer, const Sums sum)
{
    UNROLL for (int i = 0; i < rows * vectors; i++)
        store(outer->sum + i / vectors * outer->sum_stride + i % vectors * LANES, sum[i]);
}

INLINE void outer_of(int rows, int vectors, const CornuOuter *outer, const ptrdiff_t *offsets)
{
    CornuAhead *ahead = outer->ahead;
    Sums        sum;
    outer_start(rows, vectors, outer, sum);
    for (int64_t b = 0; b < outer->images; b++)
        for (int64_t i = 0; i < outer->height; i++) {
            const Operand *x = (const Operand *)outer->x + b * outer->x_image + i * outer->x_row;
            const Operand *y = (const Operand *)outer->y + b * outer->y_image + i * outer->y_row;
            for (int64_t left = outer->width; left > 0;) {
                int64_t some = left;
                if (ahead && some > ahead->terms) some = ahead->terms;
                if (ahead) cornu__request(ahead, ahead->lines);
                for (left -= some; some >= OUTER_STEPS; some -= OUTER_STEPS) {
                    UNROLL for (int s = 0; s < OUTER_STEPS; s++) {
                        outer_step(rows, vectors, x + s * outer->x_pixel, offsets,
                                   y + s * outer->y_pixel, sum);
                        if (OUTER_STEPS > 1) IN_ORDER;
                    }
                    x += OUTER_STEPS * outer->x_pixel;
                    y += OUTER_STEPS * outer->y_pixel;
                }
                for (; some > 0; some--) {
                    outer_step(rows, vectors, x, offsets, y, sum);
                    x += outer->x_pixel;
                    y += outer->y_pixel;
                }
            }
        }
    outer_store(rows, vectors, outer, sum);
}

INLINE void outer_rows(int vectors, const CornuOuter *outer)
{
    switch (outer->rows) {
    case 1: outer_of(1, vectors, outer, NULL); break;
    case 2: outer_of(2, vectors, outer, NULL); break;
    case 3: outer_of(3, vectors, outer, NULL); break;
    case 4: outer_of(4, vectors, outer, NULL); break;
    case 5: outer_of(5, vectors, outer, NULL); break;
    case 6: outer_of(6, vectors, outer, NULL); break;
#if CORNU__TALL_TILES
    case 7: outer_of(7, vectors, outer, NULL); break;
    case 8: outer_of(8, vectors, outer, NULL); break;
    case 9: outer_of(9, vectors, outer, NULL); break;
    case 10: outer_of(10, vectors, outer, NULL); break;
    case 11: outer_of(11, vectors, outer, NULL); break;
    case 12: outer_of(12, vectors, outer, NULL); break;
    case 13: outer_of(13, vectors, outer, NULL); break;
    case 14: outer_of(14, vectors, outer, NULL); break;
#endif
    }
}

/* The offsets are copied, so that they may be kept in registers. */
INLINE void gather_of(int rows, int vectors, const CornuOuter *outer)
{
    ptrdiff_t offsets[GATHER_ROWS];
    UNROLL for (int m = 0; m < rows; m++) offsets[m] = outer->offsets[m];
    outer_of(rows, vectors, outer, offsets);
}

INLINE void gather_rows(int vectors, const CornuOuter *outer)
{
    switch (outer->rows) {
    case 1: gather_of(1, vectors, outer); break;
    case 2: gather_of(2, vectors, outer); break;
    case 3: gather_of(3, vectors, outer); break;
    case 4: gather_of(4, vectors, outer); break;
    case 5: gather_of(5, vectors, outer); break;
    case 6: gather_of(6, vectors, outer); break;
#if CORNU__TALL_TILES
    case 7: gather_of(7, vectors, outer); break;
    case 8: gather_of(8, vectors, outer); break;
    case 9: gather_of(9, vectors, outer); break;
    case 10: gather_of(10, vectors, outer); break;
#endif
    }
}

#if defined(__AVX512F__)
/* 8 rows and 2 vectors take 16 sums, 2 tables and the numbers to select from them. */
INLINE void select_step(int rows, int vectors, const Operand *x, ptrdiff_t group,
                        const uint32_t *selection, const Operand *y, Sums sum)
{
    const int groups = rows / CORNU_SELECT_GROUP;
    Bits      at[TILE_VECTORS];
    UNROLL for (int n = 0; n < vectors; n++)
        at[n] = *(const UnalignedBits *)(selection + n * LANES);
    UNROLL for (int i = 0; i < rows * vectors; i++) {
        const int       n = i % vectors, g = i / vectors % groups, m = i / vectors / groups;
        const ptrdiff_t k = (g * CORNU_SELECT_GROUP + m) * vectors + n;
        sum[k] = multiply_lanes(sum[k], selected(lanes(x + g * group, WHOLE), at[n]),
                                lanes(y + n * LANES, WHOLE));
        if (g + 1 == groups) at[n] += NEXT_SELECTION;
    }
}

INLINE void select_of(int rows, int vectors, const CornuOuter *outer)
{
    Sums sum;
    outer_start(rows, vectors, outer, sum);
    for (int64_t b = 0; b < outer->images; b++)
        for (int64_t i = 0; i < outer->height; i++) {
            const ptrdiff_t at = b * outer->y_image + i * outer->y_row;
            const Operand  *x = (const Operand *)outer->x + b * outer->x_image + i * outer->x_row;
            const Operand  *y = (const Operand *)outer->y + at;
            const uint32_t *selection = outer->selection + at;
            for (int64_t j = 0; j < outer->width; j++) {
                select_step(rows, vectors, x, outer->x_group, selection, y, sum);
                x += outer->x_pixel;
                y += outer->y_pixel;
                selection += outer->y_pixel;
            }
        }
    outer_store(rows, vectors, outer, sum);
}

INLINE void select_rows(int vectors, const CornuOuter *outer)
{
    if (outer->rows == CORNU_SELECT_GROUP) select_of(CORNU_SELECT_GROUP, vectors, outer);
    else select_of(CORNU_SELECT_ROWS, vectors, outer);
}

enum { SELECTS = 1 };
#else
INLINE void select_rows(int vectors, const CornuOuter *outer)
{
    (void)vectors, (void)outer;
}

enum { SELECTS = 0 };
#endif

/* What gradients of filters alone ask for; whether it was that. */
INLINE bool outer_of_filter(const CornuOuter *outer)
{
    if (outer->selection && outer->vectors == 1) select_rows(1, outer);
    else if (outer->selection) select_rows(2, outer);
    else if (outer->offsets && outer->vectors == 1) gather_rows(1, outer);
    else if (outer->offsets) gather_rows(2, outer);
    else return false;
    return true;
}

static void outer(const CornuOuter *outer)
{
    if (CORNU__FULL(outer_of_filter(outer), false)) return;
    if (outer->vectors == 1) outer_rows(1, outer);
    else outer_rows(2, outer);
}

/* Multiply-adds on registers alone: sum = sum + 0 sum, with a zero that the compiler does not know,
 * or it would make one product for all, or none. */
static float limit(int64_t steps)
{
    Sums    sum;
    Operand zero = 0;
    __asm__ volatile("" : "+r"(zero));
    UNROLL for (int i = 0; i < TILE_SUMS; i++) sum[i] = (Lanes){ 0 } + (float)i;
    for (; steps > 0; steps--)
        UNROLL for (int i = 0; i < TILE_SUMS; i++)
            sum[i] = multiply(sum[i], zero, (Vector)sum[i]);
    UNROLL for (int i = 1; i < TILE_SUMS; i++) sum[0] += sum[i];
    return sum[0][0];
}
