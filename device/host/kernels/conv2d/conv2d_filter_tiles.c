/*
 * conv2d_grad_filter of bf16 on tile registers: products of packed copies.
 *
 * A register multiplies CORNU_IMAGES neighbours along the sum at once: the same position of so many
 * images. Fewer images are cut into bands of rows, each of which counts as an image. A block of
 * outputs is packed for each piece of so many images:
 *
 *     d_y  as panels of filters:      [panel][i][j][image / 2][filter][image % 2]
 *     x    as groups of channels:     [group][row][column][channel][image]
 *
 * Then a tap's sums of a panel and a group are one product, whose runs are positions: a tap only
 * shifts those of x. With few channels the taps of a filter's row are summed together, as their
 * channels in neighbouring columns are rows of one product, and x is padded with zeros.
 *
 * A block fits the second-level cache. Its rows of x are a ring, so that each is packed once. All
 * taps are summed of a part of the block that fits the first-level cache before those of the next.
 *
 * d_y of a max pooling of two by two is made from windows as it is packed.
 *
 * Where there are fewer chunks than threads, each chunk is divided by panels, as in
 * conv2d_filter_packed.c.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own.
 * Gain, Xeon (family 6, model 207), one core, batch 128, ms by vdpbf16ps, then by tiles: after a
 *     pool 5 x 5 x 128 x 256 on 7 x 7 maps 37.9, 6.8 and 5 x 5 x 64 x 128 on 14 x 14 47.7, 7.0;
 *     6 x 6 x 12 x 24 with strides of 2 7.6, 0.87; 3 x 3 x 16 x 16 on 32 x 32 7.3, 1.14; 3 x 3 x 32
 *     x 32 on 128 x 128 460, 56. Packing takes 5 % of the first, 40 % of the last two. Fetching the
 *     next rows of x and d_y while tiles multiply made all of it slower.
 */
#include <string.h>

#include "../../../integer_internal.h"
#include "../kernels.h"
#include "conv2d_filter.h"

enum {
    PANEL = 32, GROUP = 32,    /* filters, channels                                             */
    BLOCK_BYTES = 1 << 20,     /* of a block's copies, more where sums, which are read and written
                                  for each block, are larger                                    */
    MOST_BLOCK_BYTES = 4 << 20,
    LEAST_COLUMNS = 8,         /* of a block that is cut along its rows                         */
    POSITIONS = 10,            /* a panel and a group of so many are 32 KB; sums are loaded and
                                  stored once for them                                          */
    TERMS = 3072,              /* of a chunk's sums at least                                    */
    CHUNKS = 4, MOST_CHUNKS = 16, /* if possible; at most                                       */
    SUM_BYTES = 4 << 20,       /* of all chunks' sums together, on all shards                   */
    JOINED = 16,               /* channels at most of which a row of taps is summed together    */
    LEAST_IMAGES = 16          /* with all their rows as bands: fewer do not fill registers     */
};

/* What is packed and summed at once: outputs of images, each `bands` bands of `rows` rows, and
 * filters [f, f_end). The images are `sets` of up to CORNU_IMAGES, more than one only without
 * bands. */
typedef struct {
    int64_t b, images, sets, bands, rows;
    int64_t f, f_end;
    int64_t from[2], to[2];    /* outputs; rows of each band */
} Block;

/* Whether the taps of a filter's row are summed together. */
static bool joins(const CornuFilterGradient *g)
{
    return g->walk.in_channels <= JOINED && g->walk.axis[1].dilation == 1;
}

static CornuDecline tiles_declines(const CornuQuery *q)
{
    const CornuDecline decline = cornu__filter_declines(q);
    if (decline.needs) return decline;
    const CornuFilterGradient g = cornu__filter_gradient(q);
    if (!g.products->packs || !g.how.in_place)
        return cornu__needs(false, "bf16, and tile registers (AMX)");
    const int64_t rows = g.walk.batch * g.walk.axis[0].out;
    return rows >= LEAST_IMAGES ? CORNU_TAKES
                                : cornu__needs_least(LEAST_IMAGES, "rows of all images", rows);
}

/* Whether an axis has one row, which one tap meets. */
static bool is_single(const CornuAxis *axis)
{
    return axis->in == 1 && axis->out == 1 && axis->taps == 1 && axis->low == 0;
}

void cornu__filter_tiles_turn(CornuFilterGradient *g)
{
    CornuAxis      *axis = g->walk.axis;
    const CornuAxis height = axis[0];
    if (!g->products->packs || !is_single(&height) || joins(g)) return;
    axis[0] = axis[1];
    axis[1] = height;
}

/* Rows or columns of x that so many outputs meet, those between taps included. */
static int64_t slots(const CornuAxis *axis, int64_t outputs)
{
    if (outputs == 0) return 0;
    return (outputs - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1;
}

static int64_t block_bytes(const CornuFilterGradient *g, int64_t rows, int64_t columns)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    return (int64_t)sizeof(uint16_t) * CORNU_IMAGES *
           (slots(height, rows) * slots(width, columns) * g->walk.in_channels +
            rows * columns * g->padded);
}

/* As many, as equal parts as needed so that none is larger. */
static int64_t even_part(int64_t all, int64_t most)
{
    return larger(1, ceil_divide(all, larger(1, ceil_divide(all, larger(1, most)))));
}

static int64_t even_windows(const CornuFilterGradient *g, int64_t outputs)
{
    return g->pooled ? outputs + outputs % 2 : outputs;
}

static void cut_batch(CornuFilterGradient *g, int64_t shards)
{
    const int64_t batch = larger(1, g->walk.batch);
    const int64_t height = g->walk.axis[0].out, positions = height * g->walk.axis[1].out;
    const int64_t most = SUM_BYTES / (4 * shards * g->rows * g->padded);
    int64_t       images = CORNU_IMAGES;
    while (images > 1 && batch < CHUNKS * images && images / 2 * positions >= TERMS &&
           height * images >= 4 * CORNU_IMAGES)
        images /= 2;
    const int64_t least = larger(images, ceil_divide(TERMS, larger(1, positions)));
    g->chunks = larger(1, smaller(smaller(MOST_CHUNKS, most), batch / least));
    while (g->chunks & (g->chunks - 1)) g->chunks &= g->chunks - 1;
    g->chunk_images = ceil_divide(batch, g->chunks);
    g->chunks = ceil_divide(batch, g->chunk_images);
}

static int64_t ring_rows(const CornuFilterGradient *g)
{
    return slots(&g->walk.axis[0], g->block[0]);
}

static int64_t ring_columns(const CornuFilterGradient *g)
{
    return slots(&g->walk.axis[1], g->block[1]);
}

/* Elements of a set of images in the copies. */
static int64_t x_set(const CornuFilterGradient *g)
{
    return ring_rows(g) * ring_columns(g) * g->walk.in_channels * CORNU_IMAGES;
}

static int64_t y_set(const CornuFilterGradient *g)
{
    return g->block[0] * g->block[1] * g->padded * CORNU_IMAGES;
}

static void cut(CornuFilterGradient *g, int64_t threads, int64_t shards)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    most = larger(BLOCK_BYTES, smaller(MOST_BLOCK_BYTES,
                                                        4 * g->rows * g->padded));
    int64_t          columns = larger(1, width->out), rows = 1;
    cut_batch(g, shards);
    g->shares = larger(1, smaller(ceil_divide(g->padded, PANEL),
                                  ceil_divide(threads, g->chunks)));
    while (columns > LEAST_COLUMNS && block_bytes(g, 1, columns) > most)
        columns = ceil_divide(columns, 2);
    while (rows < height->out && block_bytes(g, rows + 1, columns) <= most) rows++;
    g->block[0] = even_windows(g, even_part(height->out, rows));
    g->block[1] = even_windows(g, columns);
    const int64_t sets = ceil_divide(g->chunk_images, CORNU_IMAGES);
    const int64_t fit = even_part(sets, most / block_bytes(g, g->block[0], g->block[1]));
    g->piece_images = smaller(g->chunk_images, fit * CORNU_IMAGES);
    g->x_part = fit * x_set(g) / 2;
    g->y_part = fit * y_set(g) / 2;
}

/* ---- Packing ---- */

static int64_t groups(const CornuFilterGradient *g)
{
    return ceil_divide(g->walk.in_channels, GROUP);
}

static int64_t group_from(const CornuFilterGradient *g, int64_t group)
{
    return group * g->walk.in_channels / groups(g);
}

/* Where a row of each image begins in an operand with `rows` rows of so many elements, -1 where it
 * has none; the row is that of the first band, those of the others are `apart` further. */
static void find_rows(const Block *block, int64_t set, int64_t rows, int64_t elements,
                      int64_t row, int64_t apart, int64_t at[CORNU_IMAGES])
{
    const int64_t first = block->b + set * CORNU_IMAGES;
    const int64_t end = smaller(first + CORNU_IMAGES, block->b + block->images);
    int           n = 0;
    for (int64_t band = 0; band < block->bands; band++, row += apart)
        for (int64_t b = first; b < end; b++)
            at[n++] = row >= 0 && row < rows ? (b * rows + row) * elements : -1;
    while (n < CORNU_IMAGES) at[n++] = -1;
}

/* Pointers to element `by` of these rows. */
static void point(const uint16_t *operand, const int64_t at[CORNU_IMAGES], int64_t by,
                  const uint16_t *from[CORNU_IMAGES])
{
    for (int n = 0; n < CORNU_IMAGES; n++) from[n] = at[n] < 0 ? NULL : operand + at[n] + by;
}

/* Whether a tap of an output meets slot k. */
static bool is_met(const CornuAxis *axis, int64_t k)
{
    for (int64_t u = 0; u < axis->taps; u++)
        if ((k - u * axis->dilation) % axis->stride == 0) return true;
    return false;
}

/* Slots [first, end) of so many that exist, the others being padding; slot 0 is column `low`. */
static void pack_x_columns(const CornuFilterGradient *g, const int64_t at[CORNU_IMAGES],
                           int64_t low, int64_t first, int64_t end, int64_t place, uint16_t *x)
{
    const int64_t   C = g->walk.in_channels, ring = ring_rows(g) * ring_columns(g);
    const uint16_t *from[CORNU_IMAGES];
    for (int64_t k = first; k < end; k++) {
        if (!is_met(&g->walk.axis[1], k)) continue;
        for (int64_t t = 0; t < groups(g); t++) {
            const int64_t c = group_from(g, t), count = group_from(g, t + 1) - c;
            point(g->call->in[0], at, (low + k) * C + c, from);
            g->products->packs->turn(from, count,
                                     x + (c * ring + (place + k) * count) * CORNU_IMAGES);
        }
    }
}

/* Slot `row` of the rows of x that the outputs of each band meet, to its place in the ring. */
static void pack_x_row(const CornuFilterGradient *g, const Block *block, int64_t set, int64_t row,
                       uint16_t *x)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels, low = block->from[1] * width->stride - width->low;
    const int64_t    columns = slots(width, block->to[1] - block->from[1]);
    const int64_t    first = smaller(columns, larger(0, -low));
    const int64_t    end = larger(first, smaller(columns, width->in - low));
    const int64_t    place = row % ring_rows(g) * ring_columns(g), slot = C * CORNU_IMAGES;
    int64_t          at[CORNU_IMAGES];
    const uint16_t  *from[CORNU_IMAGES];
    if (!is_met(height, row)) return;
    find_rows(block, set, height->in, width->in * C, row - height->low,
              block->rows * height->stride, at);
    if (groups(g) > 1) {
        pack_x_columns(g, at, low, first, end, place, x);
        return;
    }
    x += place * slot;
    point(g->call->in[0], at, (low + first) * C, from);
    memset(x, 0, (size_t)(first * slot) * sizeof *x);
    g->products->packs->turn(from, (end - first) * C, x + first * slot);
    memset(x + end * slot, 0, (size_t)((columns - end) * slot) * sizeof *x);
}

/* Output row i of each band, of a block. */
static void pack_y_row(const CornuFilterGradient *g, const Block *block, int64_t set, int64_t i,
                       uint16_t *y)
{
    const int64_t    F = g->walk.out_channels, columns = block->to[1] - block->from[1];
    const int64_t    positions = g->block[0] * columns * CORNU_IMAGES, width = g->walk.axis[1].out;
    const uint16_t  *from[CORNU_IMAGES];
    int64_t          at[CORNU_IMAGES];
    CornuImagePanel  panel = { .from = from, .positions = columns, .step = F };
    find_rows(block, set, g->walk.axis[0].out, width * F, i, block->rows, at);
    for (int64_t f = block->f; f < block->f_end; f += panel.width) {
        panel.width = smaller(PANEL, block->f_end - f);
        panel.columns = smaller(panel.width, F - f);
        point(g->call->in[1], at, block->from[1] * F + f, from);
        g->products->packs->pair(&panel, y + (f - block->f) * positions +
                                 (i - block->from[0]) * columns * panel.width * CORNU_IMAGES);
    }
}

/* Notes an image of the block with an index that names no element of its window. */
static void find_bad_index(CornuFilterGradient *g, const Block *block)
{
    const int64_t pooled = g->unpool.pooled;
    for (int64_t b = block->b; b < block->b + block->images; b++)
        for (int64_t n = 0; n < pooled; n++)
            if (g->unpool.index[b * pooled + n] >= 4) atomic_store(&g->unpool.bad_row, b);
}

/* The rows i and i + 1 under a row of windows. */
static void pack_windows(CornuFilterGradient *g, const Block *block, int64_t set, int64_t i,
                         uint16_t *y)
{
    const CornuPool *pool = &g->unpool.pool;
    const int64_t    F = g->walk.out_channels, columns = block->to[1] - block->from[1];
    const int64_t    positions = g->block[0] * columns * CORNU_IMAGES;
    const uint16_t  *from[CORNU_IMAGES];
    const uint8_t   *index[CORNU_IMAGES];
    int64_t          at[CORNU_IMAGES];
    CornuImagePanel  panel = { .from = from, .index = index, .positions = columns, .step = F };
    find_rows(block, set, pool->height.out, pool->width.out * F, i / 2, block->rows / 2, at);
    for (int64_t f = block->f; f < block->f_end; f += panel.width) {
        const int64_t by = block->from[1] / 2 * F + f;
        panel.width = panel.columns = smaller(PANEL, block->f_end - f);
        point((const uint16_t *)(const void *)g->unpool.d_y, at, by, from);
        for (int n = 0; n < CORNU_IMAGES; n++)
            index[n] = at[n] < 0 ? NULL : g->unpool.index + at[n] + by;
        const int64_t row = columns * panel.width * CORNU_IMAGES;
        uint16_t     *upper = y + (f - block->f) * positions + (i - block->from[0]) * row;
        if (!g->products->packs->pair_windows(&panel, upper, upper + row))
            find_bad_index(g, block);
    }
}

/* ---- Sums ---- */

/* Outputs of a block that are summed from the first-level cache, and what of packed x and y meets
 * there: a group's channels and a panel. */
typedef struct {
    int64_t         from[2], to[2];
    const uint16_t *x, *y;
    int64_t         channels;
    int             vectors;
    bool            add;
} Part;

/* The outputs of the part at which a tap meets x along an axis; of several bands all rows, as some
 * band may have it. */
static void range_met(const CornuFilterGradient *g, const Block *block, const Part *part, int axis,
                      int64_t tap, int64_t *from, int64_t *to)
{
    const CornuAxis *a = &g->walk.axis[axis];
    const int64_t    before = a->low - tap * a->dilation, to_end = a->in + before;
    *from = part->from[axis];
    *to = part->to[axis];
    if (axis == 0 ? block->bands > 1 : joins(g)) return;
    *from = larger(*from, before > 0 ? ceil_divide(before, a->stride) : 0);
    *to = smaller(*to, to_end > 0 ? ceil_divide(to_end, a->stride) : 0);
}

/* The positions of a part at which tap (u, v) meets x, as runs; returns how many. */
static int64_t find_runs(const CornuFilterGradient *g, const Block *block, const Part *part,
                         int64_t u, int64_t v, CornuRun runs[POSITIONS])
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    columns = block->to[1] - block->from[1], slot = part->channels * CORNU_IMAGES;
    const int64_t    step = width->stride * slot;
    int64_t          i, i_end, j_from, j_end, count = 0;
    range_met(g, block, part, 0, u, &i, &i_end);
    range_met(g, block, part, 1, v, &j_from, &j_end);
    for (; i < i_end; i++) {
        const int64_t row = (i * height->stride + u * height->dilation) % ring_rows(g);
        int64_t       j = j_from - block->from[1];
        int64_t       offset = (row * ring_columns(g) + v * width->dilation) * slot + j * step;
        int64_t       k = ((i - block->from[0]) * columns + j) * CORNU_IMAGES;
        for (j = j_from; j < j_end; j++, offset += step, k += CORNU_IMAGES)
            runs[count++] = (CornuRun){ offset, k, CORNU_IMAGES };
    }
    return count;
}

/* All taps; `sums` are those of the first one. */
static void sum_part(const CornuFilterGradient *g, const Block *block, const Part *part,
                     float *sums)
{
    static const float zeros[PANEL];
    const int64_t C = g->walk.in_channels, taps = g->walk.axis[1].taps, step = joins(g) ? taps : 1;
    const int64_t rows = step * part->channels, tiles = ceil_divide(rows, GROUP);
    CornuRun      runs[POSITIONS];
    CornuTile     tile = {
        .x_stride = CORNU_IMAGES, .runs = runs, .panel = part->y, .y_stride = g->padded,
        .bias_stride = part->add ? g->padded : 0, .vectors = part->vectors,
        .columns = part->vectors * g->products->lanes,
    };
    for (int64_t u = 0; u < g->walk.axis[0].taps; u++)
        for (int64_t v = 0; v < taps; v += step) {
            tile.run_count = find_runs(g, block, part, u, v, runs);
            if (tile.run_count == 0 && part->add) continue;
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t m = t * rows / tiles;
                float        *y = sums + ((u * taps + v) * C + m) * g->padded;
                tile.rows = (int)((t + 1) * rows / tiles - m);
                tile.x = part->x + m * CORNU_IMAGES;
                tile.bias = part->add ? y : zeros;
                tile.y = y;
                g->products->tile(&tile);
            }
        }
}

/* A group and a panel, part by part. */
static void sum_parts(const CornuFilterGradient *g, const Block *block, Part part, float *sums)
{
    const int64_t columns = block->to[1] - block->from[1];
    const int64_t wide = even_part(columns, POSITIONS);
    const int64_t high = larger(1, POSITIONS / wide);
    part.to[0] = block->from[0];
    do {
        part.from[0] = part.to[0];
        part.to[0] = smaller(block->to[0], part.from[0] + high);
        part.to[1] = block->from[1];
        do {
            part.from[1] = part.to[1];
            part.to[1] = smaller(block->to[1], part.from[1] + wide);
            sum_part(g, block, &part, sums);
            part.add = true;
        } while (part.to[1] < block->to[1]);
    } while (part.to[0] < block->to[0]);
}

static void sum_block(const CornuFilterGradient *g, const Block *block, const uint16_t *x,
                      const uint16_t *y, bool add, float *sums)
{
    const int64_t ring = ring_rows(g) * ring_columns(g) * CORNU_IMAGES;
    const int64_t positions = g->block[0] * (block->to[1] - block->from[1]) * CORNU_IMAGES;
    for (int64_t f = block->f; f < block->f_end; f += PANEL)
        for (int64_t t = 0; t < groups(g); t++) {
            const int64_t c = group_from(g, t);
            Part          part = {
                .x = x + c * ring, .y = y + (f - block->f) * positions,
                .channels = group_from(g, t + 1) - c,
                .vectors = (int)(smaller(PANEL, block->f_end - f) / g->products->lanes),
                .add = add,
            };
            for (int64_t set = 0; set < block->sets; set++) {
                sum_parts(g, block, part, sums + c * g->padded + f);
                part.x += x_set(g);
                part.y += y_set(g);
                part.add = true;
            }
        }
}

/* Packs rows of x from `packed` on, those before being in the ring, and the block's of d_y. */
static void pack_block(CornuFilterGradient *g, const Block *block, int64_t packed,
                       uint16_t *x, uint16_t *y)
{
    const int64_t x_end = slots(&g->walk.axis[0], block->to[0]);
    for (int64_t set = 0; set < block->sets; set++, x += x_set(g), y += y_set(g)) {
        for (int64_t row = packed; row < x_end; row++) pack_x_row(g, block, set, row, x);
        for (int64_t i = block->from[0]; i < block->to[0]; i++)
            if (!g->pooled) pack_y_row(g, block, set, i, y);
            else if (i % 2 == 0) pack_windows(g, block, set, i, y);
    }
}

/* Whole sets of images, or fewer than a set. */
static void sum_images(CornuFilterGradient *g, int64_t b, int64_t b_end, int64_t share, bool add,
                       int thread, float *sums)
{
    const int64_t    panels = ceil_divide(g->padded, PANEL);
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    uint16_t        *x = (uint16_t *)(void *)(g->x + thread * g->x_part);
    uint16_t        *y = (uint16_t *)(void *)(g->d_y + thread * g->y_part);
    Block            block = {
        .b = b, .images = b_end - b, .f = share * panels / g->shares * PANEL,
        .f_end = smaller(g->padded, (share + 1) * panels / g->shares * PANEL),
    };
    block.sets = larger(1, ceil_divide(block.images, CORNU_IMAGES));
    block.bands = larger(1, smaller(CORNU_IMAGES / larger(1, block.images), height->out));
    block.rows = even_windows(g, ceil_divide(height->out, block.bands));
    do {   /* at least once, as without outputs */
        int64_t packed = 0;
        block.to[1] = smaller(width->out, block.from[1] + g->block[1]);
        block.from[0] = 0;
        do {
            block.to[0] = smaller(block.rows, block.from[0] + g->block[0]);
            pack_block(g, &block, larger(packed, block.from[0] * height->stride), x, y);
            sum_block(g, &block, x, y, add, sums);
            add = true;
            packed = slots(height, block.to[0]);
            block.from[0] = block.to[0];
        } while (block.from[0] < block.rows);
        block.from[1] = block.to[1];
    } while (block.from[1] < width->out);
}

static void sum(CornuFilterGradient *g, int64_t b, int64_t b_end, int64_t share, bool add,
                int thread, float *sums)
{
    const int64_t rest = (b_end - b) % CORNU_IMAGES, from = b_end - rest;
    if (from > b) sum_images(g, b, from, share, add, thread, sums);
    if (rest || from == b) sum_images(g, from, b_end, share, add || from > b, thread, sums);
}

/* ---- The kernel ---- */

static const CornuFilterSums sums_of = { cut, sum };

static size_t scratch(const CornuQuery *q) { return cornu__filter_scratch(&sums_of, q); }

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    return cornu__filter_run(&sums_of, call);
}

const CornuKernel cornu__host_conv2d_grad_filter_tiles = {
    .name = "conv2d_filter_tiles", .declines = tiles_declines, .joins = cornu__joins_two_by_two,
    .scratch = scratch, .run = grad_filter,
};
