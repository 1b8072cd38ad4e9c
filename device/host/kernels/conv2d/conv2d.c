/*
 * conv2d and its input gradient: f32 or bf16 in and out, f32 in the sums.
 *
 *     x (B, H, W, C), filter (h, w, C, F), y (B, Ho, Wo, F), all row-major
 *
 * An output position is a row of a product: its K operands are runs of x, taps on padding left out;
 * the filter is packed in advance into panels two registers wide. A tile of the product takes its
 * rows along the output's width or, where the map is so small that such tiles would be thin, from
 * the same position of several images; where a position beside padding is alone in its row, from
 * its column. x is not copied; where tiles cannot take it as it is
 * (precision.h) each block converts the rows that it reads.
 *
 * For an image of one channel runs are as short as the filter is wide, and half of each pair of
 * bf16 would be padding. There the taps are paired, whichever they are: for a row of outputs each
 * pair of taps is gathered, for all positions, from x, which is padded before.
 *
 * Before a max pooling the map stays in the cache and only what the pool keeps is written; bias and
 * activation come last. The map has the result's dtype: of sums that are equal once rounded to bf16
 * the pool takes the first, as it would from a map in memory. Windows that do not overlap are taken
 * row by row, so that their part of the map stays in the cache.
 *
 * The input gradient is the same product over d_y, with the filter's taps and channels transposed
 * while it is packed. Where d_y is the gradient of a max pooling, each block makes what it reads of
 * it. Where x has few channels conv2d_few.c does all of this.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; packed panels and register tiles as in BLIS (Van Zee and van de Geijn, 2015).
 * Gain, Zen 4: taps on padding and rows that a pool drops, Fashion CNN at 1024: 502 GFLOP with
 *     them, 354 without; one channel, 32 filters of 3 x 3 and pool, an image in bf16 on one core:
 *     6.7 us before taps were paired, 4.9 after. Zen 5, f32, one image of 28 x 28 x 16, 16 filters
 *     of 3 x 3, one core: positions beside padding as tiles of one row 23.0 us, by columns 18.6.
 *     Xeon (L2 2 MiB), 1024 images of 28 x 28, 12 filters of 3 x 3, to memory that is in no cache:
 *     tiles over images 7.9 ms, along the width 3.9.
 */
#include "../../../inference_internal.h"
#include "../../../integer_internal.h"
#include "conv2d_direct.h"
#include "conv2d_pool.h"
#include "../kernels.h"
#include "tiling.h"

#include <string.h>

enum {
    FEW_UNITS = 8,       /* cuts at least, where neighbours make the same rows of d_y        */
    THREAD_UNITS = 2,    /* of a thread, where the shape allows                              */
    SMALL = 8 << 10,     /* bytes of panels that leave room in the first-level cache,        */
    NEAREST = 16 << 10,  /* of x that stay there beside a panel,                             */
    NEAR = 512 << 10,    /* of panels, or of x, in the second-level one,                     */
    FAR = 128 << 10,     /* of panels that one prediction finds in none of these             */
    JOINED = 256,        /* positions of rows that are joined                                */
    WIDE = 16            /* positions that are gathered are as many, whole registers         */
};

/* What one thread makes in one go: outputs [i, i_end) of images [b, b_end); of a convolution that
 * pools, rows [pool, pool_end) of the pool, from the outputs that these meet. */
typedef struct {
    int64_t     b, b_end, i, i_end, pool, pool_end;
    const void  *x;                        /* of image b, as tiles take it           */
    char        *y;                        /* of row i of image b                    */
    const float *term;                     /* laid out as y; NULL: none              */
    int64_t      y_image;                  /* elements between images                */
    CornuRun   *runs;
    uint32_t   *pairs;                     /* the gathered rows                      */
} Band;

static bool is_dense(const CornuDirect *c)
{
    return cornu__axis_step(&c->walk.axis[0]) == 1 && cornu__axis_step(&c->walk.axis[1]) == 1;
}

static bool is_alone(const CornuAxis *width, int64_t j) { return width->ends[j] == j + 1; }

/* Tiles of outputs that meet the same taps, along the axis; without those that are alone there,
 * which are counted. */
static int64_t tiles_along(const CornuDirect *c, const CornuAxis *axis, int64_t *alone)
{
    const int64_t most = c->products->tile_rows, step = cornu__axis_step(axis);
    int64_t       tiles = 0;
    *alone = 0;
    for (int64_t first = 0; first < smaller(step, axis->out); first++)
        for (int64_t j = first; j < axis->out; j = axis->ends[j])
            if (is_alone(axis, j)) (*alone)++;
            else tiles += ceil_divide((axis->ends[j] - j) / step, most);
    return tiles;
}

/* Tiles take their rows along the width, those that would be alone there from columns if these are
 * dense, unless tiles of images would be much fuller. */
static bool rows_along_width(const CornuDirect *c)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    int64_t          alone, corners;
    const int64_t    across = tiles_along(c, width, &alone);
    const int64_t    down = tiles_along(c, height, &corners) + corners;
    const int64_t    tiles = across * height->out + alone * (is_dense(c) ? down : height->out);
    return 4 * height->out * width->out * ceil_divide(c->walk.batch, c->products->tile_rows) >=
           3 * c->walk.batch * tiles;
}

/* Positions between rows of outputs, where several are gathered. */
static int64_t gathered_row(const CornuDirect *c) { return c->walk.axis[0].stride * c->extent[1]; }

/* Positions of one or two rows of outputs; the last ones mean nothing. */
static int64_t gathered(const CornuDirect *c, int64_t rows)
{
    const CornuAxis *width = &c->walk.axis[1];
    const int64_t    count = (rows - 1) * gathered_row(c) + (width->out - 1) * width->stride + 1;
    return ceil_divide(count, WIDE) * WIDE;
}

/* How much of x a block holds, and what is gathered from it. */
static void find_copies(CornuDirect *c, const CornuType *x, int64_t images, bool unpools)
{
    for (int a = 0; a < 2; a++)
        c->extent[a] = c->gather ? cornu__axis_reach(&c->walk.axis[a]) : c->walk.axis[a].in;
    c->x_part = images * c->x_image;
    c->x_bytes = (int64_t)cornu__parts_bytes(&c->how, c->x_part);
    c->unpool_count = unpools ? cornu__unpool_scratch(x) : 0;
    if (unpools) {
        const size_t image = (size_t)c->x_image * cornu_dtype_size(x->dtype);
        c->image_bytes = c->how.in_place ? 0 : (int64_t)cornu__aligned(image);
        c->x_bytes = (int64_t)cornu__aligned((size_t)c->x_part * c->products->size) +
                     c->image_bytes;
    }
    if (!c->gather) return;
    c->pair_row = gathered(c, 2);
    c->pairs_bytes = c->how.parts * (c->depth / 2) * c->pair_row * (int64_t)sizeof(uint32_t);
    c->x_part = c->extent[0] * c->extent[1] + WIDE;
    c->x_bytes = (int64_t)cornu__aligned((size_t)(c->how.parts * c->x_part) * sizeof(uint16_t)) +
                 c->pairs_bytes;
}

/* Elements of the longest row of a pool of 255 padded columns. */
static int64_t pooled_row(const CornuDirect *c)
{
    return (c->walk.axis[1].out + UINT8_MAX) * c->walk.out_channels;
}

/* Cuts of the height by which the fewest bytes come from the second-level cache: bands whose x
 * stays in the first level read all panels each, taller ones read their x once for each panel. */
static int64_t bands_of_height(const CornuDirect *c)
{
    const int64_t rows = c->walk.axis[0].out, size = (int64_t)c->products->size;
    const int64_t x = larger(1, c->x_image * c->how.parts * size);
    const int64_t panels = cornu__direct_panel_offset(c, c->padded);
    const int64_t count = ceil_divide(c->padded, cornu__direct_panel_width(c, 0));
    const int64_t low = smaller(rows, ceil_divide(x, NEAREST));
    const int64_t high = smaller(rows, ceil_divide(x, NEAR));
    const int64_t by_low = panels <= NEAREST ? 0 : low * panels;
    const int64_t by_high = high * panels + (count - 1) * x;
    return larger(1, by_low <= by_high ? low : high);
}

/* Cuts of the height that keep all threads busy. */
static int64_t least_slabs(const CornuDirect *c, int64_t threads)
{
    return threads > 1 ? ceil_divide(THREAD_UNITS * threads, larger(1, c->walk.batch)) : 1;
}

/* Of one tap on each position neighbouring rows are one row, which fills tiles: of so many
 * positions at most, and rows enough for all bands and threads. */
static void join_rows(CornuDirect *c, int64_t least)
{
    CornuAxis    *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t rows = height->out, bands = larger(least, bands_of_height(c));
    int64_t       joined = larger(1, smaller(rows, JOINED / larger(1, width->out)));
    for (const CornuAxis *a = height; a <= width; a++)
        if (a->taps != 1 || a->stride != 1 || a->low != 0 || a->in != a->out) return;
    while (joined > 1 && (rows % joined || rows / joined < bands)) joined--;
    height->in = height->out = rows / joined;
    width->in = width->out = width->out * joined;
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(CornuDirect *c, const CornuQuery *q, CornuScratch *scratch)
{
    cornu__direct_find_extents(c, q->op, q->out_type, q->machine.multiplier);
    c->pools = cornu__query_pools(q);
    const int64_t threads = q->machine.threads;
    if (!c->pools && !c->gather && !cornu__query_unpools(q)) join_rows(c, least_slabs(c, threads));
    const int64_t images = smaller(c->walk.batch, c->products->tile_rows);
    c->maps_count = images * c->walk.axis[0].out * c->walk.axis[1].out * c->walk.out_channels;
    if (q->out_type->dtype == CORNU_BF16) c->maps_count = ceil_divide(c->maps_count, 2);
    find_copies(c, &q->op->in[0], images, cornu__query_unpools(q));
    c->x = cornu__take(scratch, (size_t)(threads * c->x_bytes));
    c->unpool_scratch = cornu__take_floats(scratch, threads * c->unpool_count);
    cornu__take_line(scratch);
    c->zeros = cornu__take_floats(scratch, c->padded);
    c->bias = cornu__take_floats(scratch, (1 + CORNU_FINISH_COLUMNS) * c->padded);
    c->runs = cornu__take(scratch, (size_t)(threads * c->taps * c->how.passes) * sizeof *c->runs);
    void *met = cornu__take(scratch, cornu__walk_size(&c->walk));
    if (met) cornu__walk_start(&c->walk, met);
    cornu__take_line(scratch);
    c->maps = cornu__take_floats(scratch, c->pools ? threads * (c->maps_count + pooled_row(c)) : 0);
}

static size_t conv2d_scratch(const CornuQuery *q)
{
    CornuDirect  c = { 0 };
    CornuScratch scratch = { 0 };
    lay_out(&c, q, &scratch);
    return scratch.bytes;
}

/* ---- The product ---- */

/* For each pass the runs of its parts, from the `count` of the first. */
static int64_t repeat_runs(const CornuDirect *c, CornuRun *runs, int64_t count, int64_t part)
{
    if (c->how.passes == 1) return count;
    for (int p = c->how.passes - 1; p >= 0; p--)
        for (int64_t r = 0; r < count; r++)
            runs[p * count + r] = (CornuRun){
                runs[r].offset + c->how.pass[p][0] * part,
                runs[r].k + c->how.pass[p][1] * c->depth, runs[r].length,
            };
    return c->how.passes * count;
}

/* The runs of one position; of gathered rows each pair of taps is one. */
static int64_t all_runs(const CornuDirect *c, int64_t i, int64_t j, CornuRun *runs)
{
    if (!c->gather) return repeat_runs(c, runs, cornu__runs(&c->walk, i, j, runs), c->x_part);
    for (int64_t t = 0; t < c->taps; t += 2)
        runs[t / 2] = (CornuRun){ t * c->pair_row, t, 2 };
    return repeat_runs(c, runs, c->depth / 2, c->depth * c->pair_row);
}

/* One image of x with zeros around it, its parts x_part elements apart. */
static const void *padded_x(const CornuDirect *c, int64_t b, char *made)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    top = larger(0, height->low), left = larger(0, width->low);
    const int64_t    rows = smaller(height->in, c->extent[0] - top);
    const int64_t    columns = smaller(width->in, c->extent[1] - left);
    memset(made, 0, (size_t)(c->how.parts * c->x_part) * c->products->size);
    for (int64_t i = 0; i < rows; i++)
        cornu__parts(&c->how, c->call->in[0], b * c->x_image + i * width->in, columns,
                     made + ((top + i) * c->extent[1] + left) * (int64_t)c->products->size,
                     c->x_part);
    return made;
}

/* Gathers rows i to i + rows of outputs: of each part of x and pair of taps, what all positions
 * meet, rows gathered_row() positions apart. */
static void gather_rows(const CornuDirect *c, const uint16_t *x, int64_t i, int64_t rows,
                        uint32_t *pairs)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    count = gathered(c, rows);
    const CornuBf16 *bf16 = cornu__bf16();
    for (int part = 0; part < c->how.parts; part++, x += c->x_part) {
        const uint16_t *first = NULL;
        for (int64_t u = 0; u < height->taps; u++)
            for (int64_t v = 0; v < width->taps; v++) {
                const uint16_t *tap = x + (i * height->stride + cornu__axis_reached(height, u)) *
                                      c->extent[1] + cornu__axis_reached(width, v);
                if (first) {
                    bf16->pair(first, tap, count, pairs);
                    pairs += c->pair_row;
                }
                first = first ? NULL : tap;
            }
        if (!first) continue;
        bf16->pair(first, NULL, count, pairs);
        pairs += c->pair_row;
    }
}

/* Images [b, b_end) of x as tiles take them, their parts x_part elements apart; of each the rows
 * that the outputs [i, i_end) meet. */
static const void *rows_of_x(const CornuDirect *c, int64_t b, int64_t b_end, int64_t i,
                             int64_t i_end, int thread)
{
    const void *x = c->call->in[0];
    int64_t     from, to, row = c->walk.axis[1].in * c->walk.in_channels;
    char       *made = c->x + thread * c->x_bytes;
    if (c->gather) return padded_x(c, b, made);
    if (c->how.in_place && !c->unpool) return cornu__element(&c->how, x, b * c->x_image);
    cornu__rows_met(&c->walk.axis[0], i, i_end, &from, &to);
    for (int64_t at = b; at < b_end && from < to; at++) {
        char       *image = made + (at - b) * c->x_image * (int64_t)c->products->size;
        char       *map = c->how.in_place ? image : made + c->x_bytes - c->image_bytes;
        const void *source = c->unpool ? map : cornu__in_memory(&c->how, x, at * c->x_image);
        if (c->unpool) cornu__unpool_image(c->unpool, at, from, to, thread, map);
        if (source != image)
            cornu__parts(&c->how, source, from * row, (to - from) * row,
                         image + from * row * (int64_t)c->products->size, c->x_part);
    }
    return made;
}

/* Elements of x, or of gathered pairs, between positions. */
static int64_t x_step(const CornuDirect *c)
{
    const CornuAxis *width = &c->walk.axis[1];
    return (width->transposed ? 1 : width->stride) * (c->gather ? 2 : c->walk.in_channels);
}

/* One position (i, j to end in steps of the width's) of the band's images against one panel; the
 * runs' offsets are from element x_first of x on. */
static void position(const CornuDirect *c, CornuTile *tile, int64_t first, const Band *band,
                     int64_t i, int64_t j, int64_t j_end, int64_t x_first)
{
    const CornuAxis *width = &c->walk.axis[1];
    const int64_t    F = c->walk.out_channels, step = cornu__axis_step(width);
    const int64_t    rows = c->along_width ? (j_end - j) / step : band->b_end - band->b;
    const int64_t    y_size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    const void      *x = c->gather ? band->pairs : band->x;
    const int64_t    at = ((i - band->i) * width->out + j) * F + first;
    char            *y = band->y + at * y_size;
    tile->x_stride = c->along_width ? x_step(c) : c->x_image;
    tile->y_stride = c->along_width ? step * F : band->y_image;
    const int64_t tiles = ceil_divide(rows, c->products->tile_rows);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        tile->rows = (int)((t + 1) * rows / tiles - m);
        tile->x = cornu__element(&c->how, x, x_first + m * tile->x_stride);
        tile->y = y + m * tile->y_stride * y_size;
        if (band->term) tile->term = band->term + at + m * tile->y_stride;
        c->products->tile(tile);
    }
}

static void use_panel(const CornuDirect *c, CornuTile *tile, int64_t first, const float *bias)
{
    const int64_t columns = cornu__direct_panel_width(c, first);
    tile->panel = c->panels + cornu__direct_panel_offset(c, first);
    tile->bias = bias + first;
    if (!c->pools) tile->finish = cornu__finish_from(&c->finish, first);
    tile->vectors = (int)(columns / c->products->lanes);
    tile->columns = (int)smaller(columns, c->walk.out_channels - first);
}

/* While tiles of the band meet the panel at `first` they request the next one, if panels are so
 * many and one image so few bands that no cache near holds it. */
static void request_panel(const CornuDirect *c, const Band *band, int64_t first, CornuTile *tile,
                          CornuAhead *ahead)
{
    const int64_t next = first + cornu__direct_panel_width(c, first);
    tile->ahead = NULL;
    if (next >= c->padded || c->groups > 1 || cornu__has_tile_registers(c->products) ||
        cornu__direct_panel_offset(c, c->padded) < FAR)
        return;
    const char   *from = c->panels + cornu__direct_panel_offset(c, next);
    const int64_t end = next + cornu__direct_panel_width(c, next);
    const int64_t bytes = cornu__direct_panel_offset(c, end) - cornu__direct_panel_offset(c, next);
    const int64_t positions = (band->i_end - band->i) * c->walk.axis[1].out;
    *ahead = (CornuAhead){ .rows = cornu__ahead_lines(from, bytes / CORNU_LINE_BYTES) };
    cornu__ahead_pace(ahead, ceil_divide(positions, c->products->tile_rows) * c->depth,
                      CORNU_AHEAD_TERMS);
    tile->ahead = ahead;
}

/* Elements of x between the rows that two outputs in a column meet. */
static int64_t x_row(const CornuDirect *c)
{
    const CornuAxis *height = &c->walk.axis[0];
    return (height->transposed ? 1 : height->stride) * c->walk.axis[1].in * c->walk.in_channels;
}

/* The rows of outputs from i on, at most to the band's end, that meet the same taps. */
static int64_t rows_alike(const CornuDirect *c, const Band *band, int64_t i)
{
    const CornuAxis *height = &c->walk.axis[0];
    return c->gather || cornu__axis_step(height) > 1 ? 1
         : smaller(height->ends[i], band->i_end) - i;
}

/* Rows [i, i_end) of the outputs, alike, against the panel that holds filter `first`; but for what
 * panel_columns makes, if that follows. */
static void panel_rows(const CornuDirect *c, CornuTile *tile, int64_t first, const Band *band,
                       int64_t i, int64_t i_end, bool columns_follow)
{
    const CornuAxis *width = &c->walk.axis[1];
    const int64_t    step = cornu__axis_step(width);
    use_panel(c, tile, first, c->pools ? c->zeros : c->bias);
    for (int64_t phase = 0; phase < smaller(step, width->out); phase++)
        for (int64_t j = phase, j_end; j < width->out; j = j_end) {
            j_end = c->gather ? width->out : c->along_width ? width->ends[j] : j + step;
            if (columns_follow && is_alone(width, j)) continue;
            tile->run_count = all_runs(c, i, j, band->runs);
            for (int64_t k = i; k < i_end; k++)
                position(c, tile, first, band, k, j, j_end, (k - i) * x_row(c));
        }
}

/* Outputs (i to end, j) of the band's image, which meet the same taps. */
static void column(const CornuDirect *c, CornuTile *tile, int64_t first, const Band *band,
                   int64_t i, int64_t i_end, int64_t j)
{
    const int64_t y_size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    const int64_t at = ((i - band->i) * c->walk.axis[1].out + j) * c->walk.out_channels + first;
    const int64_t tiles = ceil_divide(i_end - i, c->products->tile_rows);
    char         *y = band->y + at * y_size;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * (i_end - i) / tiles;
        tile->rows = (int)((t + 1) * (i_end - i) / tiles - m);
        tile->x = cornu__element(&c->how, band->x, m * tile->x_stride);
        tile->y = y + m * tile->y_stride * y_size;
        if (band->term) tile->term = band->term + at + m * tile->y_stride;
        c->products->tile(tile);
    }
}

/* The columns of the band whose outputs are alone in their rows. */
static void panel_columns(const CornuDirect *c, CornuTile *tile, int64_t first, const Band *band)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    use_panel(c, tile, first, c->pools ? c->zeros : c->bias);
    tile->x_stride = x_row(c);
    tile->y_stride = width->out * c->walk.out_channels;
    for (int64_t j = 0; j < width->out; j++)
        for (int64_t i = band->i, i_end; is_alone(width, j) && i < band->i_end; i = i_end) {
            i_end = smaller(height->ends[i], band->i_end);
            tile->run_count = all_runs(c, i, j, band->runs);
            column(c, tile, first, band, i, i_end, j);
        }
}

/* The panel stays in the cache, but gathered rows meet all panels in turn. */
static void convolve_band(const CornuDirect *c, CornuTile *tile, const Band *band)
{
    const int64_t step = cornu__direct_panel_width(c, 0);
    if (c->gather)
        for (int64_t i = band->i; i < band->i_end; i++) {
            gather_rows(c, band->x, i, 1, band->pairs);
            for (int64_t n = 0; n < c->padded; n += step)
                panel_rows(c, tile, n, band, i, i + 1, false);
        }
    else
        for (int64_t n = 0; n < c->padded; n += step) {
            CornuAhead ahead;
            request_panel(c, band, n, tile, &ahead);
            const bool columns = c->by_column && band->i_end - band->i > 1;
            for (int64_t i = band->i, end; i < band->i_end; i = end) {
                end = i + rows_alike(c, band, i);
                panel_rows(c, tile, n, band, i, end, columns);
            }
            if (columns) panel_columns(c, tile, n, band);
        }
}

/* Rows [i, i_end) of the pool's values and indices, from the rows of the map that these meet. */
static void pool_band(const CornuDirect *c, const Band *band, const CornuPool *pool, int64_t i,
                      float *narrow_row)
{
    const int64_t size = c->call->out_type->dtype == CORNU_BF16 ? 2 : 4;
    for (int64_t b = band->b; b < band->b_end; b++)
        cornu__conv2d_pool(c->call, pool, c->bias, band->y + (b - band->b) * band->y_image * size,
                           b * c->pool.height.out + i, narrow_row);
}

/* The map of some images, and the pool of it. */
static void convolve_map(const CornuDirect *c, Band *band, float *narrow_row)
{
    const CornuSweep *height = &c->pool.height;
    CornuTile         tile = { .runs = band->runs,
                               .narrow = c->call->out_type->dtype == CORNU_BF16 };
    CornuPool         pool = c->pool;
    const int64_t     step = c->by_row ? 1 : band->pool_end - band->pool;
    for (int64_t i = band->pool; i < band->pool_end; i += step) {
        const int64_t top = i * height->stride - height->low;
        band->i = larger(0, top);
        band->i_end = smaller(height->in, top + (step - 1) * height->stride + height->size);
        band->y_image = (band->i_end - band->i) * c->walk.axis[1].out * c->walk.out_channels;
        pool.height.out = step;
        pool.height.in = band->i_end - band->i;
        pool.height.low = band->i - top;
        convolve_band(c, &tile, band);
        pool_band(c, band, &pool, i, narrow_row);
    }
}

/* Windows of one image straight from the registers. The epilogue after bias and relu is applied to
 * f32 rows. */
static void convolve_windows(const CornuDirect *c, const Band *band, float *narrow_row)
{
    const int64_t columns = c->pool.width.out, F = c->walk.out_channels;
    const bool    bf16 = c->call->out_type->dtype == CORNU_BF16;
    CornuEpilogue rest = *c->call->epilogue;
    const bool    relu = rest.activation == CORNU_OP_RELU;
    const bool    wide = bf16 && !relu && rest.activation != CORNU_OP_COUNT;
    const int64_t size = bf16 && !wide ? sizeof(uint16_t) : sizeof(float);
    const int64_t tiles = ceil_divide(columns, c->products->most_windows);
    CornuWindows  windows = { .tile = { .runs = band->runs, .finish.relu = relu,
                                        .narrow = bf16 && !wide, .x_stride = x_step(c),
                                        .y_stride = F },
                              .rounds = bf16,
                              .x_row = c->gather ? 2 * gathered_row(c)
                                     : c->walk.axis[0].stride * c->walk.axis[1].in *
                                       c->walk.in_channels };
    rest.bias = NULL;
    windows.tile.run_count = all_runs(c, 0, 0, band->runs);
    for (int64_t i = band->pool; i < band->pool_end; i++) {
        const int64_t to = (band->b * c->pool.height.out + i) * columns * F;
        const void   *x = c->gather ? band->pairs
                        : cornu__element(&c->how, band->x, 2 * i * windows.x_row);
        char         *y = wide ? (char *)narrow_row : (char *)c->call->out[0] + to * size;
        if (c->gather) gather_rows(c, band->x, 2 * i, 2, band->pairs);
        for (int64_t n = 0; n < c->padded; n += cornu__direct_panel_width(c, 0)) {
            use_panel(c, &windows.tile, n, c->bias);
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t w = t * columns / tiles;
                windows.tile.rows = (int)((t + 1) * columns / tiles - w);
                windows.tile.x = cornu__element(&c->how, x, 2 * w * windows.tile.x_stride);
                windows.tile.y = y + (w * F + n) * size;
                windows.index = (uint8_t *)c->call->out[1] + to + w * F + n;
                c->products->windows(&windows);
            }
        }
        if (relu || rest.activation == CORNU_OP_COUNT) continue;
        cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
            .y = (float *)(void *)y, .rows = columns, .columns = F, .stride = F, .first = to,
            .width = F });
        if (wide) cornu__bf16()->narrow(narrow_row, columns * F, (uint16_t *)c->call->out[0] + to);
    }
}

/* How a map before a pool is cut: by rows of windows where that computes nothing twice and all
 * panels stay in the second-level cache; not stored at all where windows are two by two and panels
 * stay in the first-level cache. */
static void choose_bands(CornuDirect *c)
{
    const CornuSweep *height = &c->pool.height;
    const bool        alike = c->gather || (c->walk.axis[0].ends[0] == c->walk.axis[0].out &&
                                            c->walk.axis[1].ends[0] == c->walk.axis[1].out);
    const int64_t     panels = cornu__direct_panel_offset(c, c->padded);
    c->by_row = height->stride >= height->size && panels <= NEAR;
    c->in_windows = panels <= SMALL && c->along_width && alike && c->products->windows &&
                    cornu__pool_is_two_by_two(&c->pool);
}

/* The part of the pool that slab `slab` makes, and the rows of the map under it. */
static void meet_pool(const CornuDirect *c, int64_t slab, Band *band)
{
    const CornuSweep *height = &c->pool.height;
    band->pool = slab * height->out / c->slabs;
    band->pool_end = (slab + 1) * height->out / c->slabs;
    band->i = larger(0, band->pool * height->stride - height->low);
    band->i_end = smaller(height->in,
                          (band->pool_end - 1) * height->stride - height->low + height->size);
}

/* Some rows of one image, or of a tile of images. */
static void convolve(void *context, int64_t block, int thread)
{
    const CornuDirect *c = context;
    const CornuAxis   *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t      group = block / c->slabs, slab = block % c->slabs;
    const int64_t      F = c->walk.out_channels, row = width->out * F;
    const bool         narrow = !c->pools && c->call->out_type->dtype == CORNU_BF16;
    const int64_t      y_size = narrow ? sizeof(uint16_t) : sizeof(float);
    float             *maps = c->maps + thread * (c->maps_count + pooled_row(c));
    const CornuEpilogue *epilogue = c->call->epilogue;
    Band band = {
        .b = group * c->walk.batch / c->groups, .b_end = (group + 1) * c->walk.batch / c->groups,
        .i = slab * height->out / c->slabs, .i_end = (slab + 1) * height->out / c->slabs,
        .runs = c->runs + thread * c->taps * c->how.passes,
        .y_image = height->out * row,
        .pairs = (uint32_t *)(void *)(c->x + thread * c->x_bytes + c->x_bytes - c->pairs_bytes),
    };
    if (c->pools) meet_pool(c, slab, &band);
    CornuTile tile = { .runs = band.runs, .narrow = narrow };
    band.x = rows_of_x(c, band.b, band.b_end, band.i, band.i_end, thread);
    if (c->pools) {
        band.y = (char *)maps;
        if (c->in_windows) convolve_windows(c, &band, maps + c->maps_count);
        else convolve_map(c, &band, maps + c->maps_count);
        return;
    }
    band.y = (char *)c->call->out[0] + (band.b * height->out + band.i) * row * y_size;
    band.term = epilogue->term ? epilogue->term + (band.b * height->out + band.i) * row : NULL;
    convolve_band(c, &tile, &band);
    for (int64_t b = band.b; b < band.b_end && epilogue->gate; b++)
        cornu__epilogue_gate(epilogue, c->call->out_type->dtype, (b * height->out + band.i) * row,
                             (band.i_end - band.i) * row,
                             band.y + (b - band.b) * band.y_image * y_size);
    const CornuEpilogue rest = cornu__epilogue_after_tiles(epilogue);
    for (int64_t b = band.b; b < band.b_end && rest.activation != CORNU_OP_COUNT; b++)
        cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
            .y = (float *)(void *)(band.y + (b - band.b) * band.y_image * y_size),
            .rows = (band.i_end - band.i) * width->out, .columns = F, .stride = F, .width = F });
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    const bool       unpools = cornu__query_unpools(&q);
    CornuUnpool      unpool;
    CornuDirect      c = { .call = call, .panels = call->in[unpools ? 2 : 1] };
    lay_out(&c, &q, &(CornuScratch){ .memory = call->scratch });
    const CornuAxis *height = &c.walk.axis[0];
    c.along_width = c.gather || rows_along_width(&c);
    for (int64_t j = 0; j < c.walk.axis[1].out && c.along_width && !c.gather && is_dense(&c); j++)
        c.by_column |= is_alone(&c.walk.axis[1], j);
    c.groups = c.along_width ? c.walk.batch : ceil_divide(c.walk.batch, c.products->tile_rows);
    const int64_t least = least_slabs(&c, q.machine.threads);
    c.slabs = unpools ? ceil_divide(FEW_UNITS, larger(1, c.groups))
            : c.by_column ? least   /* few and high ones have few tiles beside padding */
            : larger(least, bands_of_height(&c));
    c.slabs = smaller(height->out, c.slabs);
    if (unpools) {
        cornu__unpool_start(&unpool, call, 0, c.unpool_scratch, c.unpool_count);
        c.unpool = &unpool;
    }
    if (c.pools) {
        c.pool = cornu__pool(call->pool);
        choose_bands(&c);
        /* Of few images several threads take one, unless they would compute rows twice. */
        c.slabs = c.pool.height.stride < c.pool.height.size ? 1
                : smaller(c.pool.height.out,
                          ceil_divide(2 * q.machine.threads, larger(1, c.groups)));
    }
    cornu__biases(call->epilogue, call->out_type->dtype, c.walk.out_channels, c.padded, c.bias);
    c.finish = cornu__padded_finish(call->epilogue, c.walk.out_channels, c.padded,
                                    c.bias + c.padded);
    memset(c.zeros, 0, (size_t)c.padded * sizeof(float));
    cornu__threads_run(call->threads, c.groups * c.slabs, convolve, &c);
    return unpools ? cornu__unpool_status(&unpool) : CORNU_OK;
}

/* Of an image, or of a position if all taps met one. */
static double direct_cost(const CornuQuery *q, CornuCost cost)
{
    const CornuMultiplication how = cornu__multiplication(q->machine.multiplier,
                                                          q->op->in[0].dtype);
    const CornuWalk           walk = cornu__walk(q->op, q->out_type);
    if (cost == CORNU_COST_MULTIPLIES) return cornu__direct_multiplies(&walk);
    return (double)(walk.axis[0].taps * walk.axis[1].taps *
                    ceil_divide(walk.out_channels, how.products->lanes) *
                    cornu__sum_steps(&how, walk.in_channels));
}

const CornuKernel cornu__host_conv2d = {
    .name = "conv2d_direct", .declines = cornu__product_declines, .cost = direct_cost,
    .joins = cornu__takes_all, .scratch = conv2d_scratch, .run = conv2d,
    .takes_epilogue = true, .takes_scale = true,
    .pack_bytes = cornu__direct_pack_bytes, .pack = cornu__direct_pack, .packs = 1,
};
const CornuKernel cornu__host_conv2d_grad_input = {
    .name = "conv2d_direct", .declines = cornu__product_declines, .cost = direct_cost,
    .joins = cornu__product_unpool_declines, .scratch = conv2d_scratch, .run = conv2d,
    .takes_gate = true,
    .pack_bytes = cornu__direct_pack_bytes, .pack = cornu__direct_pack, .packs = 1,
};
