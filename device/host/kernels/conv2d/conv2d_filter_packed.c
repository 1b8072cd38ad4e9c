/*
 * conv2d_grad_filter of f32 from packed copies in the first-level cache: on tiles of few rows, and
 * of many channels on those of AVX-512, unless the processor halves its vectors.
 *
 * A tile of 6 channels by 16 filters uses 24 bytes of x and 64 of d_y at each position. Read where
 * they are, these are two lines of the second-level cache or beyond for 6 cycles of multiply-adds.
 * So a block of about POSITIONS outputs is packed first:
 *
 *     d_y  in panels of filters:    [panel][i][j][image][filters of a tile]
 *     x    in groups of channels:   [group][row][column][image][channels of a tile]
 *
 * A panel and a group fit the first-level cache together, and all taps are summed from them: a tap
 * only shifts the positions of x. Images are innermost, so that loops are long on small maps, too.
 * With stride s, every s-th row (or column) is adjacent, one phase after the other, so that what a
 * tap meets is contiguous. Phases that no tap meets and padding are not packed.
 *
 * Where there are fewer chunks than threads, each chunk is divided by panels, which changes no
 * sum: the order of its terms depends on blocks alone, and these on shapes.
 *
 * Where d_y is the gradient of a max pooling, a block's rows of an image are made before they are
 * packed.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; packing as in BLIS (Van Zee and van de Geijn, 2015).
 * Gain, Zen 3, AVX2, part of the limit before and after: 5 x 5 x 128 x 256 on 7 x 7 maps after a
 *     pool 53 %, then 88; 3 x 3 x 64 x 64 on 7 x 7 maps 69, 86; on 3 x 3 maps 63, 85; 1 x 1 x 128 x
 *     128 54, 74; 3 x 3 x 16 x 32 with strides of 2 45, 63. Xeon (model 207), AVX-512, one core,
 *     time before and after: 5 x 5 x 128 x 256 on 7 x 7 maps 48 ms, then 40; 3 x 3 x 512 x 512 116,
 *     then 96; 1 x 1 x 256 x 256 on 14 x 14 maps 56, then 45; 3 x 3 x 48 x 24 15.2, then 14.2.
 */
#include <string.h>

#include "../../../integer_internal.h"
#include "../../machine/cpu.h"
#include "../../machine/prefetch.h"
#include "../kernels.h"
#include "conv2d_filter.h"

enum {
    POSITIONS = 320,       /* 28 KB with a panel of 16 filters and a group of 6 channels; a tap's
                              sums are loaded and stored once for so many                   */
    TAPS = 64,             /* that are found at once                                        */
    AHEAD = 2048,          /* bytes by which packing prefetches                             */
    LEAST_CHANNELS = 8,    /* fewer are better summed from several taps at once             */
    LEAST_PIXEL = 36,      /* elements of a pixel of x and of d_y: smaller ones are dense   */
    LEAST_PRODUCTS = 20,   /* for each element that is packed                               */
    WIDE_CHANNELS = 24, WIDE_PIXEL = 72,   /* the same with AVX-512, whose tiles use  */
    WIDE_PRODUCTS = 50                     /* more of a line                          */
};

/* Outputs [from, to) along an axis. The copy of x has `span` slots for each phase, whose rows are a
 * stride apart. */
typedef struct {
    int64_t from, to, phases, span;
} Range;

/* What is packed and summed at once: filters [f, f_end) of these outputs. */
typedef struct {
    int64_t b, images, f, f_end;
    Range   range[2];
} Block;

/* Whether x has no fewer channels, pixels of both no fewer elements, and an element as many
 * products for its packing to be worth it. */
static bool is_worth(const CornuFilterGradient *g, int64_t channels, int64_t pixel,
                     int64_t products)
{
    const int64_t C = g->walk.in_channels, F = g->walk.out_channels;
    return C >= channels && C + F >= pixel && g->rows * F >= products * (C + F);
}

/* Whether multiply-adds are of 512 bits and run whole: then what is beside them weighs more. */
static bool multiplies_wide(const CornuProducts *products)
{
    enum { WIDE_LANES = 16 };
    return products->lanes == WIDE_LANES && !cornu__cpu()->halves;
}

static CornuDecline packed_declines(const CornuQuery *q)
{
    const CornuDecline decline = cornu__filter_declines(q);
    if (decline.needs) return decline;
    const CornuFilterGradient g = cornu__filter_gradient(q);
    if (g.products->depth > 1 || !g.how.in_place) return cornu__needs(false, "products of f32");
    const bool is_short = cornu__filter_short_tiles(&g);
    if (!is_short && !multiplies_wide(g.products))
        return cornu__needs(false, "AVX2, or AVX-512 that runs whole vectors at once");
    return cornu__needs(!g.gather && (is_short ? is_worth(&g, LEAST_CHANNELS, LEAST_PIXEL,
                                                          LEAST_PRODUCTS)
                                               : is_worth(&g, WIDE_CHANNELS, WIDE_PIXEL,
                                                          WIDE_PRODUCTS)),
                        "more channels, filters or taps");
}

static Range range_of(const CornuAxis *axis, int64_t from, int64_t to)
{
    return (Range){
        .from = from, .to = to,
        .phases = axis->dilation == 1 ? smaller(axis->stride, axis->taps) : axis->stride,
        .span = to - from + (axis->taps - 1) * axis->dilation / axis->stride,
    };
}

static int64_t slots(const Range *range) { return range->phases * range->span; }

/* The slot of x that a tap meets at an output. */
static int64_t slot_met(const CornuAxis *axis, const Range *range, int64_t out, int64_t tap)
{
    const int64_t row = tap * axis->dilation;
    return row % axis->stride * range->span + row / axis->stride + out - range->from;
}

/* The slots [*k, *end) of a phase that are rows of x, not padding; returns the first such row. */
static int64_t rows_of_phase(const CornuAxis *axis, const Range *range, int64_t phase, int64_t *k,
                             int64_t *end)
{
    const int64_t first = range->from * axis->stride + phase - axis->low;
    *k = first < 0 ? ceil_divide(-first, axis->stride) : 0;
    *end = larger(*k, smaller(range->span, ceil_divide(larger(0, axis->in - first), axis->stride)));
    return first + *k * axis->stride;
}

static int64_t panel_width(const CornuFilterGradient *g) { return 2 * g->products->lanes; }

static void cut(CornuFilterGradient *g, int64_t threads, int64_t shards)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    panels = ceil_divide(g->padded, panel_width(g));
    const int64_t    positions = height->out * width->out;
    int64_t          left = POSITIONS, x_count = 1, y_count = 1;
    cornu__filter_cut_batch(g, height->in * width->in * g->walk.in_channels,
                            positions * g->padded, shards);
    g->shares = larger(1, smaller(panels, ceil_divide(threads, g->chunks)));
    for (int a = 1; a >= 0; a--) {
        const CornuAxis *axis = &g->walk.axis[a];
        const int64_t    cuts = ceil_divide(axis->out, larger(1, left + left / 4));
        g->block[a] = ceil_divide(axis->out, larger(1, cuts));
        const Range range = range_of(axis, 0, g->block[a]);
        left /= larger(1, g->block[a]);
        x_count *= slots(&range);
        y_count *= g->block[a];
    }
    const int64_t pieces = ceil_divide(g->chunk_images, larger(1, left));
    g->piece_images = ceil_divide(g->chunk_images, larger(1, pieces));
    g->x_part = g->piece_images * x_count * g->walk.in_channels;
    g->y_part = g->piece_images * y_count * g->padded;
    g->map_count = g->pooled ? positions * g->walk.out_channels : 0;
}

/* ---- Packing ---- */

static int64_t tile_count(const CornuFilterGradient *g)
{
    return ceil_divide(g->walk.in_channels, g->products->outer_rows);
}

/* A pixel's channels, to one position of each group: the first `tall` of `tiles` groups have rows +
 * 1 channels, the others `rows`, which the compiler knows: then a copy is two moves. */
static inline void copy_pixel(int rows, int64_t tiles, int64_t tall, const float *restrict from,
                              int64_t positions, int64_t position, float *restrict to)
{
    int64_t t = 0;
    for (float *row = to + position * (rows + 1); t < tall; t++, row += positions * (rows + 1)) {
        memcpy(row, from, (size_t)(rows + 1) * sizeof *row);
        from += rows + 1;
    }
    to += tall * positions * (rows + 1);
    for (float *row = to + position * rows; t < tiles; t++, row += positions * rows) {
        memcpy(row, from, (size_t)rows * sizeof *row);
        from += rows;
    }
}

/* `columns` pixels of each image, a stride apart, to the positions from `position` on. */
static void copy_pixels(const CornuFilterGradient *g, const Block *block, const float *from,
                        int64_t columns, int64_t positions, int64_t position, float *to)
{
    const int64_t C = g->walk.in_channels, tiles = tile_count(g), rows = C / tiles;
    const int64_t tall = C % tiles, image = g->walk.axis[0].in * g->walk.axis[1].in * C;
    for (int64_t l = 0; l < columns; l++, from += g->walk.axis[1].stride * C)
        for (int64_t b = 0; b < block->images; b++, position++) {
            const float *pixel = from + b * image;
            for (int64_t c = 0; c < C; c += CORNU_LINE_BYTES / 4)
                cornu__prefetch(pixel + c, AHEAD);
            switch (rows) {
            case 3: copy_pixel(3, tiles, tall, pixel, positions, position, to); break;
            case 4: copy_pixel(4, tiles, tall, pixel, positions, position, to); break;
            case 5: copy_pixel(5, tiles, tall, pixel, positions, position, to); break;
            case 6: copy_pixel(6, tiles, tall, pixel, positions, position, to); break;
            case 10: copy_pixel(10, tiles, tall, pixel, positions, position, to); break;
            case 11: copy_pixel(11, tiles, tall, pixel, positions, position, to); break;
            case 12: copy_pixel(12, tiles, tall, pixel, positions, position, to); break;
            case 13: copy_pixel(13, tiles, tall, pixel, positions, position, to); break;
            default: copy_pixel((int)rows, tiles, tall, pixel, positions, position, to);
            }
        }
}

static void copy_x(const CornuFilterGradient *g, const Block *block, float *to)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const Range     *rows = &block->range[0], *columns = &block->range[1];
    const int64_t    C = g->walk.in_channels, row = width->in * C;
    const int64_t    positions = slots(rows) * slots(columns) * block->images;
    const float     *x = (const float *)g->call->in[0] + block->b * height->in * row;
    for (int64_t p = 0; p < rows->phases; p++) {
        int64_t k, k_end, i = rows_of_phase(height, rows, p, &k, &k_end);
        for (; k < k_end; k++, i += height->stride)
            for (int64_t q = 0; q < columns->phases; q++) {
                int64_t       l, l_end;
                const int64_t j = rows_of_phase(width, columns, q, &l, &l_end);
                const int64_t slot = (p * rows->span + k) * slots(columns) +
                                     q * columns->span + l;
                copy_pixels(g, block, x + i * row + j * C, l_end - l, positions,
                            slot * block->images, to);
            }
    }
}

/* Filters of a position, to one position of each panel; returns how many do not fill a panel. */
static inline int64_t copy_filters(int panel, const float *restrict from, int64_t filters,
                                   int64_t positions, int64_t position, float *restrict to)
{
    for (to += position * panel; filters >= panel; filters -= panel, to += positions * panel) {
        cornu__prefetch(from, AHEAD);
        memcpy(to, from, (size_t)panel * sizeof *to);
        from += panel;
    }
    return filters;
}

/* Image b of a block of d_y, from a map of all its rows. */
static void copy_y(const CornuFilterGradient *g, const Block *block, int64_t b, const float *map,
                   float *to)
{
    const Range  *rows = &block->range[0], *columns = &block->range[1];
    const int64_t F = g->walk.out_channels, width = columns->to - columns->from;
    const int64_t positions = (rows->to - rows->from) * width * block->images;
    const int64_t filters = smaller(block->f_end, F) - block->f;
    for (int64_t i = rows->from, position = b; i < rows->to; i++) {
        const float *from = map + (i * g->walk.axis[1].out + columns->from) * F + block->f;
        for (int64_t j = 0; j < width; j++, from += F, position += block->images) {
            const int64_t left = panel_width(g) == 32
                ? copy_filters(32, from, filters, positions, position, to)
                : panel_width(g) == 16
                    ? copy_filters(16, from, filters, positions, position, to)
                    : copy_filters(8, from, filters, positions, position, to);
            if (left == 0) continue;
            const int64_t whole = filters - left, last = block->f_end - block->f - whole;
            float        *row = to + whole * positions + position * last;
            memcpy(row, from + whole, (size_t)left * sizeof *row);
            memset(row + left, 0, (size_t)(last - left) * sizeof *row);
        }
    }
}

/* ---- Sums ---- */

/* The outputs of a block at which a tap meets x: rows, positions of a row, and the first position
 * in both copies. */
typedef struct {
    int64_t height, width, x, y;
} Tap;

/* The outputs of a range at which a tap meets x. */
static void range_met(const CornuAxis *axis, const Range *range, int64_t tap, int64_t *from,
                      int64_t *to)
{
    cornu__filter_range(axis, tap, from, to);
    *from = larger(*from, range->from);
    *to = smaller(*to, range->to);
}

static Tap find_tap(const CornuFilterGradient *g, const Block *block, int64_t tap)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const Range     *rows = &block->range[0], *columns = &block->range[1];
    const int64_t    u = tap / width->taps, v = tap % width->taps;
    int64_t          i, i_end, j, j_end;
    range_met(height, rows, u, &i, &i_end);
    range_met(width, columns, v, &j, &j_end);
    if (i >= i_end || j >= j_end) return (Tap){ 0, 0, 0, 0 };
    return (Tap){
        i_end - i, (j_end - j) * block->images,
        (slot_met(height, rows, i, u) * slots(columns) + slot_met(width, columns, j, v)) *
            block->images,
        ((i - rows->from) * (columns->to - columns->from) + j - columns->from) * block->images,
    };
}

/* `count` taps of all channels and filters; `sums` are those of the first one. */
static void sum_taps(const CornuFilterGradient *g, const Block *block, const Tap *taps,
                     int64_t count, const float *x, const float *y, bool add, float *sums)
{
    const Range  *rows = &block->range[0], *columns = &block->range[1];
    const int64_t x_columns = slots(columns) * block->images, x_count = slots(rows) * x_columns;
    const int64_t y_columns = (columns->to - columns->from) * block->images;
    const int64_t y_count = (rows->to - rows->from) * y_columns;
    const int64_t C = g->walk.in_channels, tiles = tile_count(g), lanes = g->products->lanes;
    CornuOuter    outer = { .images = 1, .sum_stride = g->padded, .add = add };
    for (int64_t f = block->f; f < block->f_end; f += outer.y_pixel) {
        outer.vectors = (int)smaller(2, (block->f_end - f) / lanes);
        outer.y_pixel = outer.vectors * lanes;
        outer.y_row = y_columns * outer.y_pixel;
        for (int64_t t = 0, c = 0; t < tiles; t++, c += outer.rows) {
            outer.rows = (int)(C / tiles + (t < C % tiles));
            outer.x_pixel = outer.rows;
            outer.x_row = x_columns * outer.x_pixel;
            for (const Tap *tap = taps; tap < taps + count; tap++) {
                outer.x = x + c * x_count + tap->x * outer.x_pixel;
                outer.y = y + (f - block->f) * y_count + tap->y * outer.y_pixel;
                outer.height = tap->height;
                outer.width = tap->width;
                outer.sum = sums + ((tap - taps) * C + c) * g->padded + f;
                g->products->outer(&outer);
            }
        }
    }
}

static void sum_block(const CornuFilterGradient *g, const Block *block, const float *x,
                      const float *y, bool add, float *sums)
{
    Tap           taps[TAPS];
    const int64_t all = g->walk.axis[0].taps * g->walk.axis[1].taps;
    for (int64_t first = 0; first < all; first += TAPS) {
        const int64_t count = smaller(TAPS, all - first);
        for (int64_t k = 0; k < count; k++) taps[k] = find_tap(g, block, first + k);
        sum_taps(g, block, taps, count, x, y, add,
                 sums + first * g->walk.in_channels * g->padded);
    }
}

static void sum(CornuFilterGradient *g, int64_t b, int64_t b_end, int64_t share, bool add,
                int thread, float *sums)
{
    const int64_t    panel = panel_width(g), panels = ceil_divide(g->padded, panel);
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    image = height->out * width->out * g->walk.out_channels;
    float           *x = g->x + thread * g->x_part, *y = g->d_y + thread * g->y_part;
    float           *map = g->map + thread * g->map_count;
    Block            block = {
        .b = b, .images = b_end - b, .f = share * panels / g->shares * panel,
        .f_end = smaller(g->padded, (share + 1) * panels / g->shares * panel),
    };
    int64_t          i = 0;
    do {   /* at least once, as without outputs */
        const int64_t i_end = smaller(height->out, i + g->block[0]);
        int64_t       j = 0;
        block.range[0] = range_of(height, i, i_end);
        do {
            block.range[1] = range_of(width, j, smaller(width->out, j + g->block[1]));
            copy_x(g, &block, x);
            for (int64_t k = 0; k < block.images; k++) {
                if (g->pooled) cornu__unpool_image(&g->unpool, b + k, i, i_end, thread, map);
                copy_y(g, &block, k,
                       g->pooled ? map : (const float *)g->call->in[1] + (b + k) * image, y);
            }
            sum_block(g, &block, x, y, add, sums);
            add = true;
            j += larger(1, g->block[1]);
        } while (j < width->out);
        i += larger(1, g->block[0]);
    } while (i < height->out);
}

/* ---- The kernel ---- */

static const CornuFilterSums sums_of = { cut, sum };

static size_t scratch(const CornuQuery *q) { return cornu__filter_scratch(&sums_of, q); }

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    return cornu__filter_run(&sums_of, call);
}

const CornuKernel cornu__host_conv2d_grad_filter_packed = {
    .name = "conv2d_filter_packed", .declines = packed_declines, .joins = cornu__takes_all,
    .scratch = scratch, .run = grad_filter,
};
