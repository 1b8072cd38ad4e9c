/*
 * conv2d_grad_filter: f32 or bf16 in and out, f32 in the sums.
 *
 *     x (B, H, W, C), d_y (B, Ho, Wo, F), d_filter (h, w, C, F)
 *     d_filter[u,v,c,f] = sum over b, i, j of
 *                         x[b, i s + u d - low, j s + v d - low, c] d_y[b,i,j,f]
 *
 * Rows of the sum are channels of x, which are adjacent, as are the filters of d_y: a tile of sums
 * walks over all positions where its tap meets x, and nothing is copied or transposed. Where no tap
 * meets padding, the taps of one filter row and their channels are one row of x. With few channels
 * (the first layer) rows are gathered from all taps, and x is padded before.
 *
 * Filters that do not fill registers are read where they are, with some of the next pixel's, whose
 * sums nobody reads; only d_y of the batch's last piece is copied with zeros after its filters.
 *
 * Where bf16 is multiplied in pairs, a pair is the same element of two images, so pieces are copied
 * as pairs of images; walks over positions stay as they are. A batch of one image is copied as its
 * upper half paired with its lower one, each with the rows of padding that it meets.
 *
 * Where d_y is the gradient of a max pooling, each piece makes its own part in the cache.
 *
 * The batch is cut into chunks; each makes its own sum, and these are added in order, the first one
 * in the result if possible. A chunk is summed in pieces of images that fit the second-level cache,
 * and where one image does not, in slabs of its rows.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; register tiles as in BLIS (Van Zee and van de Geijn, 2015).
 * Gain, Zen 4: pieces that fit the cache, Fashion CNN on cpu: 4.3 s of processor time before, 3.0
 *     after; even chunks, 5 x 5 x 128 x 256 on 7 x 7 maps, bf16, one core: 78 % of the limit, then
 *     90; slabs, U-Net at 8 on cpu with AVX2: 1370 ms of processor time a step, then 1240; halves
 *     paired, and gradients with strides in tiles, that on tpu with eight shards: 769, then 580.
 * Gain, Xeon (model 207), one core: 12 filters not copied, 3 x 3 x 1 x 12 on 256 maps of 28 x 28
 *     2.33 ms, then 0.73; AVX2 2.63, then 1.05.
 * Gain, Zen 3, AVX2, part of the limit: 3 x 3 x 3 x 32 with padding, gathered, on 32 x 32 maps 58 %
 *     before, 76 after.
 */
#include <string.h>

#include "../../../integer_internal.h"
#include "conv2d_filter.h"
#include "../kernels.h"
#include "tiling.h"

enum {
    PIECE_BYTES = 640 << 10,   /* of x and d_y that a piece should read,                  */
    NEAR_BYTES = 1 << 20,      /* or twice that where its sums are more than this         */
    SUM_BYTES = 16 << 20,      /* of all chunks' sums together, on all shards             */
    TERMS = 768,               /* of a chunk's sums at least: writing and adding these costs */
    FEW_CHUNKS = 8,            /* fewer are a power of two, to keep threads equally busy  */
    FEW = 8,                   /* rows of x shorter than this are gathered                */
    FAR_BYTES = 4 << 20,       /* in short tiles also fewer channels of one tap, unless an
                                  image's d_y, read once per tile, is larger than this    */
    ADD_BLOCK = 4096           /* elements of d_filter that one block of the last sum has */
};

static bool inside(const CornuAxis *axis)
{
    return axis->low <= 0 && cornu__axis_reach(axis) <= axis->in;
}

/* Whether the taps of a filter's row and their channels are summed together. */
static bool joins(const CornuAxis *width) { return width->dilation == 1 && inside(width); }

/* Chunks of `piece` images or more, and pieces of at most so many, each as equal as pairs allow. */
static void cut_batch(CornuFilterGradient *g, int64_t piece, int64_t shards)
{
    const int64_t depth = g->products->depth, batch = g->walk.batch;
    const int64_t positions = g->walk.axis[0].out * g->walk.axis[1].out;
    const int64_t most = larger(1, SUM_BYTES / (4 * shards * g->layers * g->rows * g->padded));
    int64_t       least = larger(piece, ceil_divide(TERMS, larger(1, positions)));
    least = larger(1, smaller(least, batch));
    g->chunks = larger(1, smaller(most, batch / least));
    while (g->chunks < FEW_CHUNKS && g->chunks & (g->chunks - 1)) g->chunks &= g->chunks - 1;
    g->chunk_images = larger(depth, ceil_multiple(ceil_divide(batch, g->chunks), depth));
    g->chunks = larger(1, ceil_divide(batch, g->chunk_images));
    if (4 * g->rows * g->padded > NEAR_BYTES) piece *= 2;
    g->piece_images = ceil_divide(g->chunk_images, ceil_divide(g->chunk_images, piece));
    g->piece_images = ceil_multiple(g->piece_images, depth);
}

CornuFilterGradient cornu__filter_gradient(const CornuQuery *q)
{
    CornuFilterGradient g = {
        .op = q->op, .pooled = q->pool,
        .how = cornu__multiplication(q->machine.multiplier, q->op->in[0].dtype),
        .walk = cornu__walk(q->op, q->out_type),
    };
    const CornuAxis *height = &g.walk.axis[0], *width = &g.walk.axis[1];
    g.products = g.how.products;
    cornu__filter_tiles_turn(&g);
    const int64_t C = g.walk.in_channels, row = width->taps * C;
    g.rows = height->taps * row;
    g.padded = ceil_multiple(g.walk.out_channels, g.products->lanes);
    g.gather = row < FEW || (C < FEW && cornu__filter_short_tiles(&g) && !joins(width) &&
                             4 * height->out * width->out * g.padded <= FAR_BYTES);
    g.layers = g.how.passes > 1 ? 2 : 1;
    g.in_place = g.layers == 1 && g.padded == g.walk.out_channels &&
                 q->out_type->dtype == CORNU_F32;
    return g;
}

/* Bytes of an image's copies. */
static int64_t image_bytes(const CornuFilterGradient *g, int64_t x_copy, int64_t y_copy)
{
    return 4 * g->how.parts / g->products->depth * (x_copy + y_copy);
}

void cornu__filter_cut_batch(CornuFilterGradient *g, int64_t x_copy, int64_t y_copy, int64_t shards)
{
    const int64_t depth = g->products->depth;
    const int64_t piece = larger(1, PIECE_BYTES / larger(1, image_bytes(g, x_copy, y_copy)));
    cut_batch(g, ceil_multiple(piece, depth), shards);
    g->x_part = g->piece_images / depth * x_copy;
    g->y_part = g->piece_images / depth * y_copy;
}

static void cut(CornuFilterGradient *g, int64_t threads, int64_t shards)
{
    (void)threads;
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const bool       copies = g->products->depth > 1 || !g->how.in_place;
    const bool       fills = g->padded == g->walk.out_channels;
    g->pad_x = g->gather && !(inside(height) && inside(width));
    g->copy_x = copies || g->pad_x;
    g->copy_y = copies || g->pooled || !fills;
    g->overlap = !copies && !g->pooled && !fills;
    for (int a = 0; a < 2; a++)
        g->extent[a] = g->pad_x ? cornu__axis_reach(&g->walk.axis[a]) : g->walk.axis[a].in;
    const int64_t x_copy = g->extent[0] * g->extent[1] * g->walk.in_channels;
    const int64_t y_copy = height->out * width->out * g->padded;
    cornu__filter_cut_batch(g, x_copy, y_copy, shards);
    if (!g->copy_x) g->x_part = 0;
    if (!g->copy_y) g->y_part = 0;
    if (g->pooled) g->unpool_count = cornu__unpool_scratch(&g->op->in[1]);
    cornu__filter_cut_pieces(g, image_bytes(g, x_copy, y_copy), PIECE_BYTES);
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(CornuFilterGradient *g, const CornuMachine *machine, CornuScratch *scratch)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    threads = machine->threads, parts = g->how.parts;
    g->shares = 1;
    g->by->cut(g, threads, larger(1, machine->shards));
    if (g->unpool_count || (g->products->depth > 1 && !g->how.in_place))
        g->half_count = larger(height->in * width->in * g->walk.in_channels,
                               height->out * width->out * g->walk.out_channels);
    g->sums = cornu__take_floats(scratch, (g->chunks * g->layers - g->in_place) * g->rows *
                                          g->padded);
    g->d_y = cornu__take_floats(scratch, threads * parts * g->y_part);
    g->x = cornu__take_floats(scratch, threads * parts * g->x_part);
    g->unpool_scratch = cornu__take_floats(scratch, threads * g->unpool_count);
    g->lines = cornu__take_floats(scratch, 2 * threads * g->line_count);
    g->map = cornu__take_floats(scratch, threads * g->map_count);
    g->halves = cornu__take(scratch, (size_t)(2 * threads * parts * g->half_count) *
                                     sizeof *g->halves);
}

/* The gradient of a pool is made in place of the copy, so nothing may need padding or splitting. */
CornuDecline cornu__filter_declines(const CornuQuery *q)
{
    if (!q->pool) return cornu__product_declines(q);
    const CornuDecline decline = cornu__product_unpool_declines(q);
    if (decline.needs) return decline;
    const CornuFilterGradient g = cornu__filter_gradient(q);
    return cornu__needs(g.padded == g.walk.out_channels, "filters that fill registers");
}

size_t cornu__filter_scratch(const CornuFilterSums *by, const CornuQuery *q)
{
    CornuFilterGradient g = cornu__filter_gradient(q);
    CornuScratch        scratch = { 0 };
    g.by = by;
    lay_out(&g, &q->machine, &scratch);
    return scratch.bytes;
}

/* ---- d_y of a pool ---- */

/* `count` elements of images b and, of pairs, b + 1 in bf16 as operands of the tiles. */
static void join_halves(const CornuFilterGradient *g, int64_t b, int64_t count, int thread,
                        float *to)
{
    const CornuBf16 *bf16 = cornu__bf16();
    if (g->products->depth == 1) bf16->widen(cornu__filter_half(g, thread, 0), count, to);
    else
        bf16->pair(cornu__filter_half(g, thread, 0),
                   b + 1 < g->walk.batch ? cornu__filter_half(g, thread, 1) : NULL, count,
                   (uint32_t *)(void *)to);
}

/* Makes d_y of images b and, of pairs, b + 1 in bf16. Windows that overlap add up in f32 and are
 * rounded then, as they would be in memory; others are moved a row at a time, in the first-level
 * cache. */
static void unpool_halves(CornuFilterGradient *g, int64_t b, int thread, float *to)
{
    const CornuPool *pool = &g->unpool.pool;
    const int64_t    images = smaller(g->products->depth, g->walk.batch - b);
    const int64_t    row = pool->width.in * pool->channels;
    if (!cornu__pool_is_exact(pool)) {
        for (int i = 0; i < images; i++)
            cornu__unpool_image(&g->unpool, b + i, 0, pool->height.in, thread,
                                cornu__filter_half(g, thread, i));
        join_halves(g, b, pool->height.in * row, thread, to);
        return;
    }
    for (int64_t k = 0; k < pool->height.out; k++) {
        const int64_t count = cornu__pool_rows(pool, k) * row;
        for (int i = 0; i < images; i++)
            cornu__unpool_rows(&g->unpool, b + i, k, cornu__filter_half(g, thread, i));
        join_halves(g, b, count, thread, to);
        to += count;
    }
}

/* Makes d_y of images b to b_end from the pool's. */
static const float *unpool(CornuFilterGradient *g, int64_t b, int64_t b_end, int thread)
{
    const CornuPool *pool = &g->unpool.pool;
    const int64_t    image = pool->height.in * pool->width.in * pool->channels;
    float           *d_y = g->d_y + thread * g->y_part, *to = d_y;
    for (; b < b_end; b += g->products->depth, to += image)
        if (g->how.from == CORNU_BF16) unpool_halves(g, b, thread, to);
        else cornu__unpool_image(&g->unpool, b, 0, pool->height.in, thread, to);
    return d_y;
}

/* ---- Sums ---- */

/* `count` rows of the sum from `row` on; x is where the first row meets the first position. */
static void sum_rows(const CornuFilterGradient *g, CornuOuter outer, float *sums, int64_t row,
                     int64_t count)
{
    const int64_t most = outer.offsets ? g->products->gather_rows : g->products->outer_rows;
    const int64_t tiles = ceil_divide(count, most), lanes = g->products->lanes;
    const float  *x = outer.x, *y = outer.y;
    const ptrdiff_t *offsets = outer.offsets;
    const bool       add = outer.add;
    outer.sum_stride = g->padded;
    for (int64_t f = 0; f < g->padded; f += outer.vectors * lanes) {
        outer.vectors = (int)smaller(2, (g->padded - f) / lanes);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = t * count / tiles;
            outer.rows = (int)((t + 1) * count / tiles - m);
            outer.offsets = offsets ? offsets + m : NULL;
            for (int pass = 0; pass < g->how.passes; pass++) {
                const bool last = pass + 1 == g->how.passes;
                outer.sum = sums + ((last ? 0 : g->rows) + row + m) * g->padded + f;
                outer.x = x + g->how.pass[pass][0] * g->x_part + (offsets ? 0 : m);
                outer.y = y + g->how.pass[pass][1] * g->y_part + f;
                outer.add = add || (pass > 0 && !last);
                g->products->outer(&outer);
            }
        }
    }
}

/* The row of x, or of its padding, that a tap of an output meets. */
static int64_t row_met(const CornuAxis *axis, int64_t out, int64_t tap)
{
    return out * axis->stride + tap * axis->dilation - axis->low;
}

/* Taps one by one, each over the positions where it meets x; adjacent ones together where all meet
 * x. */
static void sum_taps(const CornuFilterGradient *g, CornuOuter outer, const CornuSlab *slab,
                     bool y_is_copy, float *sums)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels;
    const int64_t    x_row = cornu__filter_slab_row(g, width->in, C);
    const int64_t    y_row = cornu__filter_slab_row(g, width->out, g->padded);
    const int64_t    x_first = g->copy_x ? slab->x_from * x_row : 0;
    const int64_t    y_first = y_is_copy ? slab->from * y_row : 0;
    const float     *x = outer.x, *y = outer.y;
    const int64_t    step = joins(width) ? width->taps : 1;
    for (int64_t u = 0; u < height->taps; u++) {
        int64_t i, i_end;
        cornu__filter_slab_range(g, slab, 0, u, &i, &i_end);
        for (int64_t v = 0; v < width->taps; v += step) {
            int64_t j, j_end;
            cornu__filter_slab_range(g, slab, 1, v, &j, &j_end);
            outer.height = i_end - i;
            outer.width = j_end - j;
            outer.x = x;
            outer.y = y;
            if (outer.height > 0 && outer.width > 0) {
                outer.x = x + (row_met(height, i, u) * width->in + row_met(width, j, v)) * C -
                          x_first;
                outer.y = y + i * outer.y_row + j * outer.y_pixel - y_first;
            }
            sum_rows(g, outer, sums, (u * width->taps + v) * C, step * C);
        }
    }
}

/* All taps at once, GATHERED rows at a time. */
static void sum_gathered(const CornuFilterGradient *g, CornuOuter outer, float *sums)
{
    enum { GATHERED = 64 };
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels;
    ptrdiff_t        offsets[GATHERED];
    outer.offsets = offsets;
    for (int64_t first = 0; first < g->rows; first += GATHERED) {
        const int64_t count = smaller(GATHERED, g->rows - first);
        for (int64_t m = 0; m < count; m++) {
            const int64_t tap = (first + m) / C, u = tap / width->taps, v = tap % width->taps;
            offsets[m] = (cornu__axis_reached(height, u) * g->extent[1] +
                          cornu__axis_reached(width, v)) * C + (first + m) % C;
        }
        sum_rows(g, outer, sums, first, count);
    }
}

/* A slab of images b to b_end into the sums, or added to them. */
static void sum_slab(CornuFilterGradient *g, int64_t b, int64_t b_end, const CornuSlab *slab,
                     bool add, int thread, float *sums)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels;
    const int64_t    columns = g->extent[1], image = g->extent[0] * columns * C;
    const int64_t    F = g->walk.out_channels, positions = height->out * width->out;
    const int64_t    after = (g->walk.batch - b_end) * positions * F;
    const bool       copies = g->copy_y && !(g->overlap && after >= g->padded - F);
    const int64_t    pixel = copies ? g->padded : F;
    CornuOuter       outer = {
        .x = g->copy_x ? cornu__filter_copy_x(g, b, b_end, slab, thread)
                       : (const float *)g->call->in[0] + b * image,
        .x_image = image, .x_row = height->stride * columns * C, .x_pixel = width->stride * C,
        .y_image = positions * pixel, .y_row = width->out * pixel, .y_pixel = pixel,
        .images = ceil_divide(b_end - b, g->products->depth),
        .height = height->out, .width = width->out, .add = add,
    };
    if (g->call->pool) outer.y = unpool(g, b, b_end, thread);
    else if (copies) outer.y = cornu__filter_copy_y(g, b, b_end, slab, thread);
    else outer.y = (const float *)g->call->in[1] + b * outer.y_image;
    if (g->gather) sum_gathered(g, outer, sums);
    else sum_taps(g, outer, slab, copies, sums);
}

static void sum_piece(CornuFilterGradient *g, int64_t b, int64_t b_end, int64_t share, bool add,
                      int thread, float *sums)
{
    int64_t from = 0;
    (void)share;   /* one */
    do {   /* at least once, as without images */
        const CornuSlab slab = cornu__filter_slab(g, from);
        sum_slab(g, b, b_end, &slab, add || from > 0, thread, sums);
        from = larger(slab.to, from + 1);
    } while (from < cornu__filter_slab_outputs(g));
}

/* ---- All kernels ---- */

/* The sums of chunk c begin with layer c * layers. */
static float *layer_sums(const CornuFilterGradient *g, int64_t layer)
{
    if (g->in_place && layer == 0) return g->call->out[0];
    return g->sums + (layer - g->in_place) * g->rows * g->padded;
}

static void sum_share(void *context, int64_t number, int thread)
{
    CornuFilterGradient *g = context;
    const int64_t        chunk = number / g->shares, share = number % g->shares;
    const int64_t        first = chunk * g->chunk_images;
    const int64_t        end = smaller(g->walk.batch, first + g->chunk_images);
    float               *sums = layer_sums(g, chunk * g->layers);
    int64_t              b = first;
    do {   /* at least once: without images the sums are zero */
        g->by->sum(g, b, smaller(end, b + g->piece_images), share, b > first, thread, sums);
        b += g->piece_images;
    } while (b < end);
}

/* d_filter = the layers of the chunks' sums, added in order into the first one. */
static void add_chunks(void *context, int64_t block, int thread)
{
    (void)thread;
    const CornuFilterGradient *g = context;
    const int64_t F = g->walk.out_channels, per_block = larger(1, ADD_BLOCK / g->padded);
    const int64_t end = smaller(g->rows, (block + 1) * per_block);
    for (int64_t row = block * per_block; row < end; row++) {
        float *sum = layer_sums(g, 0) + row * g->padded;
        for (int64_t layer = 1; layer < g->chunks * g->layers; layer++) {
            const float *more = layer_sums(g, layer) + row * g->padded;
            for (int64_t f = 0; f < F; f++) sum[f] += more[f];
        }
        if (g->in_place) continue;
        if (g->call->out_type->dtype == CORNU_BF16)
            cornu__bf16()->narrow(sum, F, (uint16_t *)g->call->out[0] + row * F);
        else
            memcpy((float *)g->call->out[0] + row * F, sum, (size_t)F * sizeof(float));
    }
}

CornuStatus cornu__filter_run(const CornuFilterSums *by, const CornuKernelCall *call)
{
    const CornuQuery    q = cornu__query_of(call);
    CornuFilterGradient g = cornu__filter_gradient(&q);
    g.by = by;
    g.call = call;
    lay_out(&g, &q.machine, &(CornuScratch){ .memory = call->scratch });
    if (g.pooled) cornu__unpool_start(&g.unpool, call, 1, g.unpool_scratch, g.unpool_count);
    cornu__threads_run(call->threads, g.chunks * g.shares, sum_share, &g);
    if (g.chunks > 1 || !g.in_place)
        cornu__threads_run(call->threads, ceil_divide(g.rows, larger(1, ADD_BLOCK / g.padded)),
                           add_chunks, &g);
    return g.pooled ? cornu__unpool_status(&g.unpool) : CORNU_OK;
}

/* ---- The kernel ---- */

static const CornuFilterSums sums_of = { cut, sum_piece };

static double filter_cost(const CornuQuery *q, CornuCost cost)
{
    const CornuWalk walk = cornu__walk(q->op, q->out_type);
    (void)cost;
    return (double)walk.batch * cornu__direct_multiplies(&walk);
}

static size_t scratch(const CornuQuery *q) { return cornu__filter_scratch(&sums_of, q); }

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    return cornu__filter_run(&sums_of, call);
}

const CornuKernel cornu__host_conv2d_grad_filter = {
    .name = "conv2d_filter", .declines = cornu__filter_declines, .cost = filter_cost,
    .joins = cornu__takes_all, .scratch = scratch, .run = grad_filter,
};
