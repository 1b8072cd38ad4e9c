/*
 * conv2d and its input gradient of 3 x 3 and 5 x 5 taps in f32, with fewer multiplications: of
 * 3 x 3 taps 4 x 4 outputs are computed from 6 x 6 elements by 36 products of channels in place of
 * 144, or 2 x 2 by 16 in place of 36; of 5 x 5 taps 2 x 2 outputs by 36 in place of 100.
 *
 *     y = A' [ sum over c of (G g_c G') * (B' x_c B) ] A
 *
 * For each of these points the sum is a product of matrices, of tiles by channels with channels by
 * filters, made by the tiles of isa/product.h. Some tiles of outputs at a time are transformed (V),
 * multiplied with one panel of the transformed filter (U) after the other, and the products of a
 * panel (M) become outputs, with the epilogue: V and M stay in the second-level cache. x beside the
 * image is zero: taps on padding are multiplied, too. Before a max pooling of two by two a tile has
 * whole windows, of which only the largest element leaves the registers; bias and activation come
 * last. Where d_y is the gradient of a max pooling, each block makes what it reads of it. With
 * strides, and as many taps for each phase, the channels are those of all phases.
 *
 * Rounding errors are 2 to 2.8 times those of a sum of products (isa/winograd.c). An infinity makes
 * NaN of all outputs of the tiles that read it. Which calls are taken depends on extents without
 * the batch: an image has the same bits in every batch. Outputs of conv2d that read zeros alone are
 * zero, without the rounding errors of their neighbours: a relu's slope there must be that of zero.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
 * Gain, Zen 4, f32, a step's processor time: U-Net at 8 x 128 x 128 1.30 of it without, resnet20 at
 *     128 1.08; predictions of resnet20, one image 1.37, 256 images 1.15 to 1.2. Zen 3, AVX2:
 *     joined with the pool, mnist_cnn at 128 25.1 ms a step, then 22.1.
 * Gain, Xeon (model 207), one image of resnet20, whose U take all of the second-level cache, one
 *     core: the next panel requested in time 0.456 ms, then 0.433.
 * Gain, Xeon (L2 2 MiB), mnist_cnn_bn at 1024, whose convolutions have strides of 2 and 6 x 6 taps,
 *     phases read and written where they are, x requested: AVX-512, the second convolution with its
 *     transpose 16.6 ms, then 12.6; the gradient of its x, with its gate, 19.0, then 11.2; that of
 *     the third 13.4, then 8. AVX2, the first two 19.4 and 23.6, then 15.8 and 16.9.
 * Gain, Zen 3, AVX2, one image of resnet20, whose maps are 4 to 49 tiles: blocks even, filters
 *     divided where tiles are few, two threads 0.412 ms, then 0.347, one 0.552, then 0.540.
 * Gain, Xeon (model 207, 260 MiB of L3), two cores, 5 x 5 taps and 4 x 4 outputs, beside direct
 *     ones and tiles of 2 x 2: AVX-512, Fashion CNN at 128, second and third convolution 26.4 and
 *     17.4 ms, then 14.7 and 10.8, gradient of the second's x 25.9, then 15.5; resnet20 at 128, 16,
 *     32 and 64 channels 1.62, 1.31 and 1.19 ms, then 1.47, 1.10 and 0.81. AVX2, the first three
 *     52.3, 35.3 and 52.5 ms, then 27.0, 18.7 and 28.2; of resnet20 3.1, 2.2, 2.2, then 2.1, 1.8,
 *     1.4.
 */
#include "../../../inference_internal.h"
#include "../../../integer_internal.h"
#include "../../machine/cpu.h"
#include "../../machine/prefetch.h"
#include "../kernels.h"
#include "../pool.h"
#include "../precision.h"
#include "tiling.h"
#include "../unpool.h"

#include <string.h>

enum {
    V_BYTES = 96 << 10,    /* of the second-level cache, where panels stay   */
    BLOCKS = 4,            /* of a thread, at least                          */
    PACKED_ROWS = 16,      /* of U, transformed and packed at once           */
    ROWS_AHEAD = 2,        /* of tiles, is what is requested of x            */
    WINDOW = 2,            /* of pools that are joined, in both axes         */
    GAIN_PERCENT = 110,    /* what direct ones have to cost of these         */
    MOST_POINTS = CORNU_WINOGRAD_POINTS, MOST_TAPS = CORNU_WINOGRAD_TAPS
};

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    const CornuWinograd   *winograd;
    int                    points;        /* products of a tile                               */
    CornuWalk              walk;          /* over phases                                      */
    CornuTiling            x;             /* of what is read                                  */
    CornuPhases            made;          /* of the rows of outputs                           */
    bool                   pools;
    int64_t                out[2];        /* outputs along the height and the width: those that
                                             the pool reads                                   */
    int64_t                made_rows[2];  /* and what is written of them                      */
    int64_t                in_padded, out_padded;   /* channels, the last group's rounded up to
                                                       whole registers                        */
    int64_t                count, each;   /* tiles of all images; of a block at most          */
    bool                   divides;       /* filters, where tiles are few                     */
    int64_t                blocks, parts; /* of tiles; of filters for each                    */
    int64_t                x_image;       /* elements of an image                             */
    size_t                 x_bytes, share;   /* of all images; for each tile                  */
    const float           *panels;
    float                 *bias;          /* and after it what finish has of columns          */
    CornuFinish            finish;
    float                 *zeros;         /* of a position beside the image, and of biases of M */
    float                 *v, *m;         /* per thread: points, tiles of a block, channels   */
    uint32_t              *zero;          /* and those of their outputs that are zero         */
    bool                   keeps_zeros;
    int64_t                v_part, m_part;   /* of each point                                 */
    int64_t                v_count, m_count;
    CornuUnpool           *unpool;        /* NULL: x is in memory                             */
    float                 *maps;          /* else an image of it, per thread                  */
} Winograd;

static int64_t panel_width(const Winograd *w, int64_t n)
{
    return smaller(2 * w->products->lanes, w->out_padded - n);
}

/* Elements of U before the panel of a point at filter n. */
static int64_t panel_offset(const Winograd *w, int64_t n, int point)
{
    return (n * w->points + point * panel_width(w, n)) * w->walk.in_channels;
}

/* Of a walk over phases. */
static CornuTiling tiling_of(const CornuWinograd *winograd, const CornuWalk *walk)
{
    CornuTiling x = { .step = winograd->out, .size = winograd->in };
    for (int a = 0; a < 2; a++) {
        const CornuAxis *axis = &walk->axis[a];
        x.extent[a] = axis->in;
        x.low[a] = axis->transposed ? axis->taps - 1 - axis->low : axis->low;
        x.tiles[a] = ceil_divide(axis->out, x.step);
    }
    return x;
}

static double multiplies(const CornuWinograd *winograd, const CornuWalk *walk)
{
    const CornuTiling x = tiling_of(winograd, walk);
    return cornu__winograd_multiplies(winograd, &x, walk->in_channels, walk->out_channels);
}

/* That which multiplies least; NULL: none has so many taps. */
static const CornuWinograd *winograd_of(const CornuWalk *walk)
{
    const CornuAxis     *height = &walk->axis[0], *width = &walk->axis[1];
    const CornuWinograd *best = NULL, *kind = cornu__winograds()->kind;
    for (const CornuAxis *a = height; a <= width; a++)
        if (a->taps != width->taps || a->stride != 1 || a->dilation != 1) return NULL;
    for (const CornuWinograd *end = kind + CORNU_WINOGRAD_KINDS; kind < end; kind++)
        if (kind->taps == width->taps &&
            (!best || multiplies(kind, walk) < multiplies(best, walk)))
            best = kind;
    return best;
}

static CornuDecline winograd_declines(const CornuQuery *q)
{
    enum { LEAST_CHANNELS = 12 };
    const CornuDecline decline = cornu__product_of_f32_declines(q);
    if (decline.needs) return decline;
    CornuWalk walk = cornu__walk(q->op, q->out_type);
    cornu__walk_phases(&walk);
    if (!winograd_of(&walk))
        return cornu__needs(false, "3 x 3 or 5 x 5 taps of each phase, no dilation");
    const int64_t channels = smaller(walk.in_channels, walk.out_channels);
    return channels >= LEAST_CHANNELS ? CORNU_TAKES
                                      : cornu__needs_least(LEAST_CHANNELS, "channels", channels);
}

/* Of an image, by the number of multiply-adds. */
static double winograd_cost(const CornuQuery *q, CornuCost cost)
{
    CornuWalk walk = cornu__walk(q->op, q->out_type);
    (void)cost;
    cornu__walk_phases(&walk);
    return multiplies(winograd_of(&walk), &walk);
}

/* Tiles that the cache holds beside panels. */
static int64_t most_tiles(const Winograd *w)
{
    const int64_t part = cornu__cpu()->l2 / 4, of_channel = w->points * (int64_t)sizeof(float);
    const int64_t u = of_channel * w->walk.in_channels * w->out_padded;
    return larger(1, (u > part ? larger(V_BYTES, part) : V_BYTES) / (of_channel * w->in_padded));
}

/* Blocks of as many tiles as the cache holds, in whole tiles of registers, but several for each
 * thread, or one. The fewer blocks, the fewer times panels come from the third-level cache. Where
 * these would be low or uneven, each thread takes all tiles by some of the filters. */
static void find_blocks(Winograd *w, int threads)
{
    const int64_t rows = w->products->tile_rows, most = most_tiles(w);
    const int64_t wanted = smaller(most, ceil_divide(w->count, BLOCKS * threads));
    const int64_t panels = ceil_divide(w->out_padded, panel_width(w, 0));
    const bool    few = w->divides && w->count < BLOCKS * threads * rows && panels % threads == 0;
    w->parts = few ? threads : 1;
    w->each = larger(1, smaller(larger(1, wanted / rows) * rows, ceil_divide(w->count, threads)));
    if (few) w->each = larger(w->each, smaller(w->count, most));
    w->blocks = ceil_divide(w->count, w->each);
    if (!few && w->blocks > threads)
        w->blocks = smaller(w->count, ceil_multiple(w->blocks, threads));
}

static void find_extents(Winograd *w, const CornuOpCall *op, const CornuType *out_type, int threads)
{
    const int64_t lanes = cornu__products()->lanes;
    w->products = cornu__products();
    w->walk = cornu__walk(op, out_type);
    const CornuPhases phases = cornu__walk_phases(&w->walk);
    const bool        transposed = w->walk.axis[0].transposed;
    w->winograd = winograd_of(&w->walk);
    w->keeps_zeros = !transposed;
    w->points = w->winograd->in * w->winograd->in;
    w->x = tiling_of(w->winograd, &w->walk);
    w->x.groups = transposed ? (CornuPhases){ 1, w->walk.in_channels } : phases;
    w->made = transposed ? phases : (CornuPhases){ 1, w->walk.out_channels };
    w->count = w->walk.batch;
    for (int a = 0; a < 2; a++) {
        const int64_t out = w->walk.axis[a].out;
        w->out[a] = w->pools ? out / WINDOW * WINDOW : out;
        w->made_rows[a] = w->pools ? out / WINDOW : out;
        w->x.tiles[a] = ceil_divide(w->out[a], w->x.step);
        w->count *= w->x.tiles[a];
    }
    w->in_padded = (w->x.groups.groups - 1) * w->x.groups.channels +
                   ceil_multiple(w->x.groups.channels, lanes);
    w->out_padded = ceil_multiple(w->walk.out_channels, lanes);
    find_blocks(w, threads);
    w->x_image = cornu__tiling_image(&w->x);
    w->x_bytes = (size_t)(w->walk.batch * w->x_image) * sizeof(float);
    w->share = w->x_bytes / (size_t)larger(1, w->count);
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(Winograd *w, const CornuQuery *q, CornuScratch *scratch)
{
    const int threads = q->machine.threads;
    find_extents(w, q->op, q->out_type, threads);
    const int64_t rest = w->products->lanes;   /* read after the last channel of a group */
    w->v_part = cornu__point_floats(w->each * w->in_padded);
    w->m_part = cornu__point_floats(w->each * panel_width(w, 0));
    w->v_count = w->points * w->v_part;
    w->m_count = w->points * w->m_part + rest;
    w->bias = cornu__take_floats(scratch, (1 + CORNU_FINISH_COLUMNS) * w->out_padded + rest);
    cornu__take_line(scratch);
    w->zeros = cornu__take_floats(scratch, larger(w->in_padded, panel_width(w, 0)));
    cornu__take_line(scratch);
    w->v = cornu__take_floats(scratch, threads * w->v_count);
    w->m = cornu__take_floats(scratch, threads * w->m_count);
    w->maps = cornu__take_floats(scratch, cornu__query_unpools(q) ? threads * w->x_image : 0);
    w->zero = cornu__take(scratch, (size_t)(threads * w->each) * sizeof *w->zero);
}

static size_t winograd_scratch(const CornuQuery *q)
{
    Winograd     w = { .pools = cornu__query_pools(q), .divides = !cornu__query_unpools(q) };
    CornuScratch scratch = { 0 };
    lay_out(&w, q, &scratch);
    return scratch.bytes;
}

/* Windows of two by two side by side, which are tiles. */
static CornuDecline winograd_joins(const CornuQuery *q)
{
    const CornuPool pool = cornu__pool(q->pool);
    return cornu__needs(cornu__pool_is_two_by_two(&pool) &&
                        pool.height.out == pool.height.in / WINDOW &&
                        pool.width.out == pool.width.in / WINDOW, "windows of two by two");
}

/* ---- The filter ---- */

typedef struct {
    Winograd     winograd;
    const float *filter;
    float       *panels;
} Pack;

static size_t pack_bytes(const CornuQuery *q)
{
    Winograd w = { .pools = false };
    find_extents(&w, q->op, q->out_type, q->machine.threads);
    return (size_t)(w.points * w.walk.in_channels * w.out_padded) * sizeof(float);
}

/* The elements of all taps for channel `channel` of x or d_x and from `first` on of the others,
 * `others` of which are neighbours. */
static void find_taps(const Winograd *w, const float *filter, int64_t channel, int64_t first,
                      int64_t others, const float **g)
{
    const CornuAxis  *height = &w->walk.axis[0], *width = &w->walk.axis[1];
    const CornuPhases phases = width->transposed ? w->made : w->x.groups;
    const int64_t     group = channel / phases.channels, c = channel % phases.channels;
    for (int64_t u = 0; u < height->taps; u++)
        for (int64_t v = 0; v < width->taps; v++) {
            const int64_t row = cornu__axis_tap(height, u) * phases.groups + group;
            const int64_t tap = row * width->taps + cornu__axis_tap(width, v);
            *g++ = filter + (tap * phases.channels + c) * others + first;
        }
}

/* Packs some rows of all points' panels at one filter. Of a gradient the filter's rows are its
 * columns in memory. */
static void pack_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    enum { MOST = PACKED_ROWS * 2 * 16 };
    const Pack     *p = context;
    const Winograd *w = &p->winograd;
    const int64_t   C = w->walk.in_channels, F = w->walk.out_channels;
    const int64_t   blocks = ceil_divide(C, PACKED_ROWS), step = panel_width(w, 0);
    const int64_t   n = block / blocks * step, k = block % blocks * PACKED_ROWS;
    const int64_t   rows = smaller(PACKED_ROWS, C - k), columns = smaller(step, F - n);
    const bool      by_row = !w->walk.axis[1].transposed;   /* filters are neighbours in memory */
    const int64_t   lines = by_row ? rows : columns, length = by_row ? columns : rows;
    float           u[MOST_POINTS * MOST];
    for (int64_t i = 0; i < lines; i++) {
        const float *g[MOST_TAPS];
        if (by_row) find_taps(w, p->filter, k + i, n, F, g);
        else find_taps(w, p->filter, n + i, k, C, g);
        w->winograd->filter(g, length, u + i * length, MOST);
    }
    for (int point = 0; point < w->points; point++)
        w->products->pack(p->panels + panel_offset(w, n, point), panel_width(w, n), k, rows,
                          u + point * MOST, by_row ? length : 1, by_row ? 1 : length, columns);
}

static void pack(const CornuKernelCall *call)
{
    Pack p = { .filter = call->in[1], .panels = call->out[0] };
    find_extents(&p.winograd, &call->op, call->out_type, cornu__threads_count(call->threads));
    const Winograd *w = &p.winograd;
    cornu__threads_run(call->threads, ceil_divide(w->walk.in_channels, PACKED_ROWS) *
                       ceil_divide(w->out_padded, panel_width(w, 0)), pack_rows, &p);
}

/* ---- The product ---- */

/* Tiles read x in order, but of several rows at a time, which the processor does not follow. Each
 * requests its share of what those some rows of tiles after it read. */
static void request(const Winograd *w, int64_t tile)
{
    const size_t from = (size_t)(tile + ROWS_AHEAD * w->x.tiles[1]) * w->share;
    const size_t end = from + w->share < w->x_bytes ? from + w->share : w->x_bytes;
    for (size_t at = from; at < end; at += CORNU_LINE_BYTES)
        cornu__prefetch_near(w->call->in[0], at);
}

/* The image at this place, unpooled as far as tiles from there to the last one of a block, before
 * `end`, read it. */
static const float *image_of(const Winograd *w, const CornuPlace *place, int64_t end, int thread)
{
    const int64_t of_next = (place->b + 1) * w->x.tiles[0] * w->x.tiles[1];
    if (!w->unpool) return (const float *)w->call->in[0] + place->b * w->x_image;
    float        *map = w->maps + thread * w->x_image;
    const int64_t last = cornu__tile_place(&w->x, smaller(end, of_next) - 1).i;
    const int64_t from = larger(0, place->i - w->x.low[0]);
    const int64_t to = smaller(w->x.extent[0], last - w->x.low[0] + w->x.size);
    if (from < to) cornu__unpool_image(w->unpool, place->b, from, to, thread, map);
    return map;
}

/* The outputs of a tile all of whose elements are among these. */
static uint32_t outputs_of(const CornuWinograd *winograd, uint64_t elements)
{
    uint32_t outputs = 0;
    for (int k = 0; k < winograd->out * winograd->out && elements; k++) {
        uint64_t read = 0;
        for (int i = k / winograd->out; i < k / winograd->out + winograd->taps; i++)
            read |= ((UINT64_C(1) << winograd->taps) - 1) << (i * winograd->in + k % winograd->out);
        outputs |= (uint32_t)((elements & read) == read) << k;
    }
    return outputs;
}

/* The zeros after the last channel of a group are those of the next one, made after it. */
static void transform(const Winograd *w, int64_t first, int64_t count, int thread, float *v,
                      uint32_t *zero)
{
    const int64_t C = w->x.groups.channels;
    CornuPlace    place = cornu__tile_place(&w->x, first);
    const float  *image = NULL;
    for (int64_t t = 0, b = -1; t < count; t++, cornu__next_place(&w->x, &place)) {
        if (place.b != b) image = image_of(w, &place, first + count, thread);
        b = place.b;
        if (!w->unpool) request(w, first + t);
        uint64_t elements = w->keeps_zeros ? UINT64_MAX : 0;
        for (int64_t group = 0; group < w->x.groups.groups; group++) {
            const float *x[MOST_POINTS];
            cornu__tile_elements(&w->x, image, &place, group, w->zeros, x);
            if (elements) elements &= w->winograd->zeros(x, C);
            w->winograd->input(x, C, v + t * w->in_padded + group * C, w->v_part);
        }
        zero[t] = outputs_of(w->winograd, elements);
    }
}

/* M of the panel at filter n. */
static void multiply(const Winograd *w, int64_t n, int64_t count, const float *v, float *m)
{
    const int64_t  width = panel_width(w, n), tiles = ceil_divide(count, w->products->tile_rows);
    const CornuRun run = { 0, 0, w->walk.in_channels };
    CornuAhead     ahead = { .sums = { .rows = 0 } };
    CornuTile      tile = { .x_stride = w->in_padded, .runs = &run, .run_count = 1,
                            .bias = w->zeros, .y_stride = width, .ahead = &ahead,
                            .vectors = (int)(width / w->products->lanes), .columns = (int)width };
    for (int point = 0; point < w->points; point++) {
        const float *panel = w->panels + panel_offset(w, n, point);
        tile.panel = panel;
        ahead.rows = cornu__ahead_lines(panel + w->walk.in_channels * width,
                                        w->walk.in_channels * width * (int64_t)sizeof *panel /
                                        CORNU_LINE_BYTES);
        cornu__ahead_pace(&ahead, tiles * w->walk.in_channels, CORNU_AHEAD_TERMS);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t row = t * count / tiles;
            tile.rows = (int)((t + 1) * count / tiles - row);
            tile.x = v + point * w->v_part + row * w->in_padded;
            tile.y = m + point * w->m_part + row * width;
            w->products->tile(&tile);
        }
    }
}

/* Of the outputs at a place, or of the window there, that of channel c of a group; and elements
 * between the rows of a group. */
static int64_t output_number(const Winograd *w, const CornuPlace *place, int64_t group, int64_t c)
{
    const int64_t i = w->pools ? place->i / WINDOW : place->i;
    const int64_t j = w->pools ? place->j / WINDOW : place->j;
    const int64_t row = (place->b * w->made_rows[0] + i) * w->made.groups + group;
    return (row * w->made_rows[1] + j) * w->made.channels + c;
}

static int64_t output_row(const Winograd *w)
{
    return w->made.groups * w->made_rows[1] * w->made.channels;
}

/* `columns` outputs, of one group, from filter n on, of all tiles. */
static void finish_some(const Winograd *w, int64_t n, int64_t columns, int64_t first,
                        int64_t count, const float *m, int64_t m_row, const uint32_t *zero)
{
    const CornuEpilogue *epilogue = w->call->epilogue;
    const int64_t        group = n / w->made.channels, c = n % w->made.channels;
    const int64_t        out = w->winograd->out;
    CornuPlace           place = cornu__tile_place(&w->x, first);
    CornuWinogradOutputs outputs = { .bias = w->bias + n,
                                     .finish = cornu__finish_from(&w->finish, n) };
    for (int64_t t = 0; t < count; t++, cornu__next_place(&w->x, &place)) {
        const int64_t height = smaller(out, w->out[0] - place.i);
        const int64_t width = smaller(out, w->out[1] - place.j);
        int64_t       at = output_number(w, &place, group, c);
        for (int64_t i = 0, k = 0; i < out; i++, at += output_row(w))
            for (int64_t j = 0, to = at; j < out; j++, k++, to += w->made.channels) {
                const bool inside = i < height && j < width;
                outputs.y[k] = inside ? (float *)w->call->out[0] + to : NULL;
                outputs.term[k] = inside && epilogue->term ? epilogue->term + to : NULL;
            }
        outputs.zero = zero[t];
        w->winograd->output(m + t * m_row, w->m_part, columns, &outputs);
    }
}

/* The outputs of the filters of a panel. */
static void finish(const Winograd *w, int64_t n, int64_t first, int64_t count, const float *m,
                   const uint32_t *zero)
{
    const int64_t row = panel_width(w, n), end = smaller(n + row, w->walk.out_channels);
    for (int64_t f = n, next; f < end; f = next) {
        next = smaller(end, (f / w->made.channels + 1) * w->made.channels);
        finish_some(w, f, next - f, first, count, m + f - n, row, zero);
    }
}

/* The windows of the filters of a panel. */
static void pool_windows(const Winograd *w, int64_t n, int64_t first, int64_t count, const float *m,
                         const uint32_t *zero)
{
    const int64_t columns = panel_width(w, n), across = w->winograd->out / WINDOW;
    CornuPlace    place = cornu__tile_place(&w->x, first);
    CornuWinogradWindows windows = { .bias = w->bias + n,
                                     .finish = cornu__finish_from(&w->finish, n) };
    for (int64_t t = 0; t < count; t++, cornu__next_place(&w->x, &place)) {
        const int64_t height = smaller(across, (w->out[0] - place.i) / WINDOW);
        const int64_t width = smaller(across, (w->out[1] - place.j) / WINDOW);
        int64_t       at = output_number(w, &place, 0, n);
        for (int64_t i = 0, k = 0; i < across; i++, at += output_row(w))
            for (int64_t j = 0, to = at; j < across; j++, k++, to += w->made.channels) {
                const bool inside = i < height && j < width;
                windows.y[k] = inside ? (float *)w->call->out[0] + to : NULL;
                windows.index[k] = inside ? (uint8_t *)w->call->out[1] + to : NULL;
            }
        windows.zero = zero[t];
        w->winograd->windows(m + t * columns, w->m_part,
                             smaller(columns, w->walk.out_channels - n), &windows);
    }
}

/* What tiles of outputs do not apply, to `count` outputs side by side, of a group. */
static void finish_row(const Winograd *w, const CornuEpilogue *rest, int64_t at, int64_t count)
{
    const int64_t F = w->made.channels;
    float        *y = (float *)w->call->out[0] + at;
    if (rest->activation != CORNU_OP_COUNT)
        cornu__epilogue_apply(rest, &(CornuEpilogueRows){
            .y = y, .rows = count, .columns = F, .stride = F, .width = F });
    if (w->call->epilogue->gate)
        cornu__epilogue_gate(w->call->epilogue, CORNU_F32, at, count * F, y);
}

/* Whether rows of outputs are read again, all channels of them. */
static bool finishes_rows(const CornuEpilogue *epilogue)
{
    return epilogue->gate || cornu__epilogue_after_tiles(epilogue).activation != CORNU_OP_COUNT;
}

/* Tiles side by side make rows of outputs. */
static void finish_rows(const Winograd *w, int64_t first, int64_t count)
{
    const CornuEpilogue rest = cornu__epilogue_after_tiles(w->call->epilogue);
    const int64_t       out = w->winograd->out, unit = w->pools ? WINDOW : 1;
    if (!finishes_rows(w->call->epilogue)) return;
    for (int64_t t = first, tiles; t < first + count; t += tiles) {
        const CornuPlace start = cornu__tile_place(&w->x, t);
        const int64_t    end = smaller(w->out[0], start.i + out);
        tiles = smaller(first + count - t, w->x.tiles[1] - t % w->x.tiles[1]);
        for (CornuPlace row = start; row.i < end; row.i += unit)
            for (int64_t group = 0; group < w->made.groups; group++)
                finish_row(w, &rest, output_number(w, &row, group, 0),
                           smaller(tiles * out, w->out[1] - row.j) / unit);
    }
}

static void convolve(void *context, int64_t number, int thread)
{
    const Winograd *w = context;
    const int64_t   block = number / w->parts, part = number % w->parts;
    const int64_t   first = block * w->count / w->blocks;
    const int64_t   count = (block + 1) * w->count / w->blocks - first;
    const int64_t   panels = ceil_divide(w->out_padded, panel_width(w, 0));
    float          *v = w->v + thread * w->v_count, *m = w->m + thread * w->m_count;
    uint32_t       *zero = w->zero + thread * w->each;
    transform(w, first, count, thread, v, zero);
    for (int64_t i = part * panels / w->parts; i < (part + 1) * panels / w->parts; i++) {
        const int64_t n = i * panel_width(w, 0);
        multiply(w, n, count, v, m);
        (w->pools ? pool_windows : finish)(w, n, first, count, m, zero);
    }
    finish_rows(w, first, count);
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    const bool       unpools = cornu__query_unpools(&q);
    CornuUnpool      unpool;
    Winograd         w = { .call = call, .panels = call->in[unpools ? 2 : 1],
                           .pools = cornu__query_pools(&q),
                           .divides = !unpools && !finishes_rows(call->epilogue) };
    lay_out(&w, &q, &(CornuScratch){ .memory = call->scratch });
    if (unpools) {
        cornu__unpool_start(&unpool, call, 0, NULL, 0);
        w.unpool = &unpool;
    }
    cornu__biases(call->epilogue, CORNU_F32, w.walk.out_channels, w.out_padded, w.bias);
    w.finish = cornu__padded_finish(call->epilogue, w.walk.out_channels, w.out_padded,
                                    w.bias + w.out_padded);
    memset(w.zeros, 0, (size_t)larger(w.in_padded, panel_width(&w, 0)) * sizeof(float));
    if (w.count > 0)
        cornu__threads_run(call->threads, w.blocks * w.parts, convolve, &w);
    return unpools ? cornu__unpool_status(&unpool) : CORNU_OK;
}

const CornuKernel cornu__host_conv2d_winograd = {
    .name = "conv2d_winograd", .declines = winograd_declines, .cost = winograd_cost,
    .compares = CORNU_COST_MULTIPLIES, .gain_percent = GAIN_PERCENT, .joins = winograd_joins,
    .scratch = winograd_scratch, .run = conv2d, .takes_epilogue = true, .takes_scale = true,
    .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
const CornuKernel cornu__host_conv2d_grad_input_winograd = {
    .name = "conv2d_winograd", .declines = winograd_declines, .cost = winograd_cost,
    .compares = CORNU_COST_MULTIPLIES, .gain_percent = GAIN_PERCENT,
    .joins = cornu__product_unpool_declines, .scratch = winograd_scratch, .run = conv2d,
    .takes_gate = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
