/*
 * conv2d_grad_filter of 3 x 3 taps in f32, with fewer multiplications: 4 x 4 elements of d_y and
 * the 6 x 6 of x that they meet make 36 products of channels and filters in place of 144.
 *
 *     d_filter[., ., c, f] = A' [ sum over tiles of (B' x_c B) * (G d_y_f G') ] A
 *
 * For each of the 36 points the sum is a product of matrices, of channels by tiles with tiles by
 * filters, made by the tiles of isa/product.h: some tiles at a time are transformed (V and D) and
 * added to the sums of all points, in order. The batch's tiles are cut into chunks, each with sums
 * of its own, which are added in order, too, and transformed last. Where chunks are few, threads
 * share the filters of one. With strides, and three taps for each phase, the channels are those of
 * all phases.
 *
 * Rounding errors are about 2.2 times those of a sum of products (isa/winograd.c). An infinity
 * makes NaN of all taps of its channel or filter.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
 * Gain, Xeon (model 207, 260 MiB of L3), two cores, AVX-512, beside conv2d_filter.c: resnet20 at
 *     128, 16, 32 and 64 channels 2.5, 1.8 and 1.4 ms, then 1.5, 1.2 and 0.97; U-Net at 8, 32, 64,
 *     128 and 256 channels 7.9, 8.2, 8.1 and 8.0 ms, then 4.5, 4.0, 3.5 and 3.6; mnist_cnn_bn at
 *     512, whose convolutions have strides of 2, 10.3 and 5.3 ms, then 7.7 and 3.5.
 */
#include "../../../integer_internal.h"
#include "../../machine/cpu.h"
#include "../kernels.h"
#include "../precision.h"
#include "tiling.h"

#include <string.h>

enum {
    SUM_BYTES = 16 << 20,   /* of all chunks' sums together, on all shards                 */
    CHUNK_TILES = 256,      /* of a chunk at least, and                                    */
    MOST_CHUNKS = 16,       /* as many of them                                             */
    FEW_CHUNKS = 8,         /* fewer are a power of two, to keep threads equally busy      */
    BLOCK_TILES = 64,       /* that are added to sums at once, at least                    */
    MOST_POINTS = CORNU_WINOGRAD_POINTS
};

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    const CornuWinograd   *winograd;
    int                    points;                  /* products of a tile                    */
    CornuWalk              walk;                    /* over phases                           */
    CornuTiling            x, d_y;
    int64_t                in_padded, out_padded;   /* channels, filters: the last ones rounded
                                                       up to whole registers                 */
    int64_t                count, chunks, block;    /* tiles of all images; of a block       */
    int64_t                shares, share;           /* of a chunk; filters of one            */
    int64_t                x_image, y_image;        /* elements of an image                  */
    int64_t                v_part, d_part;          /* of each point                         */
    int64_t                chunk_sums;              /* points x channels x out_padded        */
    float                 *zeros;
    float                 *sums;                    /* of all chunks                         */
    float                 *v, *d;                   /* per thread: points, tiles of a block,
                                                       channels or filters                   */
} Gradient;

/* False where filters have other taps. */
static bool find_tilings(Gradient *g, const CornuOpCall *op, const CornuType *out_type)
{
    g->products = cornu__products();
    g->winograd = &cornu__winograds()->gradient;
    g->points = g->winograd->in * g->winograd->in;
    g->walk = cornu__walk(op, out_type);
    const CornuPhases phases = cornu__walk_phases(&g->walk);
    const int64_t     step = g->winograd->taps;
    g->x = (CornuTiling){ .groups = phases, .step = step, .size = g->winograd->in };
    g->d_y = (CornuTiling){ .groups = { 1, g->walk.out_channels }, .step = step, .size = step };
    for (int a = 0; a < 2; a++) {
        const CornuAxis *axis = &g->walk.axis[a];
        if (axis->taps != g->winograd->out || axis->stride != 1 || axis->dilation != 1)
            return false;
        g->x.extent[a] = axis->in;
        g->x.low[a] = axis->low;
        g->d_y.extent[a] = axis->out;
        g->x.tiles[a] = g->d_y.tiles[a] = ceil_divide(axis->out, step);
    }
    g->x_image = cornu__tiling_image(&g->x);
    g->y_image = cornu__tiling_image(&g->d_y);
    g->count = g->walk.batch * g->x.tiles[0] * g->x.tiles[1];
    g->out_padded = ceil_multiple(g->walk.out_channels, g->products->lanes);
    g->chunk_sums = g->points * g->walk.in_channels * g->out_padded;
    return true;
}

static int64_t chunks_of(const Gradient *g, int64_t shards)
{
    const int64_t bytes = larger(1, g->chunk_sums * (int64_t)sizeof(float) * larger(1, shards));
    int64_t       chunks = smaller(smaller(MOST_CHUNKS, SUM_BYTES / bytes), g->count / CHUNK_TILES);
    while (chunks < FEW_CHUNKS && chunks & (chunks - 1)) chunks &= chunks - 1;
    return larger(1, chunks);
}

static CornuDecline winograd_declines(const CornuQuery *q)
{
    Gradient           g;
    const CornuDecline decline = cornu__product_of_f32_declines(q);
    if (decline.needs) return decline;
    return cornu__needs(find_tilings(&g, q->op, q->out_type),
                        "3 x 3 taps of each phase, no dilation");
}

static double winograd_cost(const CornuQuery *q, CornuCost cost)
{
    enum { OF_SUM = 40 };   /* multiply-adds as long as adding a chunk's sum */
    Gradient g;
    (void)cost;
    find_tilings(&g, q->op, q->out_type);
    return (double)g.walk.batch * cornu__winograd_multiplies(g.winograd, &g.x, g.walk.in_channels,
                                                             g.walk.out_channels) +
           (double)OF_SUM * (double)(chunks_of(&g, q->machine.shards) * g.chunk_sums);
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(Gradient *g, const CornuQuery *q, CornuScratch *scratch)
{
    find_tilings(g, q->op, q->out_type);
    const int64_t lanes = g->products->lanes, threads = q->machine.threads;
    const int64_t C = g->walk.in_channels, F = g->walk.out_channels;
    const int64_t tile = g->points * (int64_t)sizeof(float);   /* bytes of a channel's */
    g->in_padded = C - g->x.groups.channels + ceil_multiple(g->x.groups.channels, lanes);
    g->chunks = chunks_of(g, q->machine.shards);
    g->share = ceil_multiple(ceil_divide(F, ceil_divide(threads, g->chunks)), 2 * lanes);
    g->shares = ceil_divide(F, g->share);
    g->share = smaller(g->share, g->out_padded);
    const int64_t near = cornu__cpu()->l2 / 2 / (tile * (g->in_padded + g->share));
    g->block = smaller(larger(BLOCK_TILES, near), larger(1, ceil_divide(g->count, g->chunks)));
    g->v_part = cornu__point_floats(g->block * g->in_padded);
    g->d_part = cornu__point_floats(g->block * g->share);
    g->zeros = cornu__take_floats(scratch,
                                  cornu__point_floats(larger(g->in_padded, g->out_padded)));
    g->sums = cornu__take_floats(scratch, g->chunks * g->chunk_sums);
    g->v = cornu__take_floats(scratch, threads * g->points * g->v_part);
    g->d = cornu__take_floats(scratch, threads * g->points * g->d_part);
}

static size_t winograd_scratch(const CornuQuery *q)
{
    Gradient     g;
    CornuScratch scratch = { 0 };
    lay_out(&g, q, &scratch);
    return scratch.bytes;
}

/* V of some tiles, and D of them for the filters from `first_filter` on. */
static void transform(const Gradient *g, int64_t first, int64_t count, int64_t first_filter,
                      int64_t filters, float *v, float *d)
{
    const int64_t C = g->x.groups.channels;
    const float  *x = g->call->in[0], *d_y = g->call->in[1];
    const float  *from[MOST_POINTS];
    CornuPlace    place = cornu__tile_place(&g->x, first);
    for (int64_t t = 0; t < count; t++, cornu__next_place(&g->x, &place)) {
        for (int64_t group = 0; group < g->x.groups.groups; group++) {
            cornu__tile_elements(&g->x, x + place.b * g->x_image, &place, group, g->zeros, from);
            g->winograd->input(from, C, v + t * g->in_padded + group * C, g->v_part);
        }
        cornu__tile_elements(&g->d_y, d_y + place.b * g->y_image + first_filter, &place, 0,
                             g->zeros, from);
        g->winograd->filter(from, filters, d + t * g->share, g->d_part);
    }
}

/* Adds the products of V and D to the sums, or makes them. */
static void multiply(const Gradient *g, int64_t count, int64_t filters, const float *v,
                     const float *d, bool add, float *sums)
{
    const int64_t C = g->walk.in_channels, lanes = g->products->lanes;
    const int64_t tiles = ceil_divide(C, g->products->outer_rows);
    CornuOuter    outer = { .x_pixel = g->in_padded, .y_pixel = g->share, .images = 1, .height = 1,
                            .width = count, .sum_stride = g->out_padded, .add = add };
    for (int point = 0; point < g->points; point++)
        for (int64_t n = 0; n < filters; n += 2 * lanes) {
            outer.vectors = (int)smaller(2, ceil_divide(filters - n, lanes));
            outer.y = d + point * g->d_part + n;
            for (int64_t t = 0; t < tiles; t++) {
                const int64_t c = t * C / tiles;
                outer.rows = (int)((t + 1) * C / tiles - c);
                outer.x = v + point * g->v_part + c;
                outer.sum = sums + (point * C + c) * g->out_padded + n;
                g->products->outer(&outer);
            }
        }
}

static void sum_share(void *context, int64_t number, int thread)
{
    const Gradient *g = context;
    const int64_t   chunk = number / g->shares, filter = number % g->shares * g->share;
    const int64_t   filters = smaller(g->share, g->walk.out_channels - filter);
    const int64_t   first = chunk * g->count / g->chunks;
    const int64_t   end = (chunk + 1) * g->count / g->chunks;
    float          *v = g->v + thread * g->points * g->v_part;
    float          *d = g->d + thread * g->points * g->d_part;
    int64_t         tile = first;
    do {   /* at least once: without images the sums are zero */
        const int64_t count = smaller(g->block, end - tile);
        transform(g, tile, count, filter, filters, v, d);
        multiply(g, count, filters, v, d, tile > first, g->sums + chunk * g->chunk_sums + filter);
        tile += count;
    } while (tile < end);
}

/* The taps of channel c of all phases: the chunks' sums, added in order into the first one's, and
 * transformed. */
static void finish(void *context, int64_t c, int thread)
{
    (void)thread;
    const Gradient      *g = context;
    const int64_t        C = g->walk.in_channels, F = g->walk.out_channels, out = g->winograd->out;
    const int64_t        channels = g->x.groups.channels, group = c / channels;
    float               *sums = g->sums + c * g->out_padded;
    CornuWinogradOutputs taps = { .bias = g->zeros };
    for (int point = 0; point < g->points; point++)
        for (int64_t chunk = 1; chunk < g->chunks; chunk++) {
            float       *sum = sums + point * C * g->out_padded;
            const float *more = sum + chunk * g->chunk_sums;
            for (int64_t f = 0; f < F; f++) sum[f] += more[f];
        }
    for (int64_t k = 0; k < out * out; k++) {
        const int64_t row = k / out * g->x.groups.groups + group;
        taps.y[k] = (float *)g->call->out[0] +
                    ((row * out + k % out) * channels + c % channels) * F;
    }
    g->winograd->output(sums, C * g->out_padded, F, &taps);
}

static CornuStatus grad_filter(const CornuKernelCall *call)
{
    Gradient         g = { .call = call };
    const CornuQuery q = cornu__query_of(call);
    lay_out(&g, &q, &(CornuScratch){ .memory = call->scratch });
    memset(g.zeros, 0, (size_t)larger(g.in_padded, g.out_padded) * sizeof(float));
    cornu__threads_run(call->threads, g.chunks * g.shares, sum_share, &g);
    cornu__threads_run(call->threads, g.walk.in_channels, finish, &g);
    return CORNU_OK;
}

const CornuKernel cornu__host_conv2d_grad_filter_winograd = {
    .name = "conv2d_filter_winograd", .declines = winograd_declines, .cost = winograd_cost,
    .compares = CORNU_COST_MULTIPLIES, .gain_percent = 110, .scratch = winograd_scratch,
    .run = grad_filter,
};
