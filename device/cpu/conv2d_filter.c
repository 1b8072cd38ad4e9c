/*
 * conv2d_grad_filter: f32 in, out and in the sums.
 *
 *     x (B, H, W, C), d_y (B, Ho, Wo, F), d_filter (h, w, C, F)
 *     d_filter[u,v,c,f] = sum over b, i, j of
 *                         x[b, i s + u d - low, j s + v d - low, c] d_y[b,i,j,f]
 *
 * Rows of the sum are channels of x, which stand side by side, as do the filters of d_y: a tile
 * of sums walks over all positions where its tap meets x, and nothing is copied or transposed.
 * Where no tap meets padding, the taps of one filter row and their channels are one row of x. With
 * few channels (the first layer) rows are gathered from all taps, and x is padded before.
 *
 * Where d_y is the gradient of a max pooling, each chunk makes its own part in the cache.
 *
 * The batch is cut into chunks that fit the second-level cache; each makes its own sum, and
 * these are added in order.
 */
#include <stdatomic.h>
#include <string.h>

#include "../host/convolution.h"
#include "../host/pool.h"
#include "../integer_internal.h"
#include "kernels.h"

enum {
    CHUNK_BYTES = 512 << 10,   /* of x and d_y: what a chunk should read                  */
    SUM_BYTES = 16 << 20,      /* of all chunks' sums together                            */
    FEW = 8,                   /* rows of x shorter than this are gathered                */
    ADD_BLOCK = 4096           /* elements of d_filter that one block of the last sum has */
};

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    CornuWalk              walk;
    int64_t                rows;       /* h w C                                              */
    int64_t                padded;     /* F, rounded up to whole registers                   */
    int64_t                chunks, chunk_images;
    int64_t                extent[2];  /* of x, or of its padded copy                        */
    bool                   gather, pad_x, pad_d_y;
    float                 *sums;       /* chunks x rows x padded                             */
    float                 *x;          /* padded copy: the batch                             */
    float                 *d_y;        /* copy with padded F: a chunk per thread             */
    CornuPool              pool;       /* of call->pool                                      */
    _Atomic int64_t        bad_row;    /* an image whose index makes no sense, or -1         */
} FilterGradient;

/* Rows from the first to the last that any tap meets, rows left out before the first included,
 * and whether x has them all: then low <= 0. */
static int64_t reach(const CornuAxis *axis)
{
    return (axis->out - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1 +
           larger(0, -axis->low);
}

static bool inside(const CornuAxis *axis) { return axis->low <= 0 && reach(axis) <= axis->in; }

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(FilterGradient *g, const CornuOpCall *op, const CornuType *out_type,
                      int threads, bool pooled, float *scratch)
{
    g->products = cornu__products();
    g->walk = cornu__walk(op, out_type);
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    batch = g->walk.batch, C = g->walk.in_channels, F = g->walk.out_channels;
    g->rows = height->taps * width->taps * C;
    g->padded = ceil_divide(F, g->products->lanes) * g->products->lanes;
    g->pad_d_y = g->padded != F;
    g->gather = width->taps * C < FEW;
    g->pad_x = g->gather && !(inside(height) && inside(width));
    for (int a = 0; a < 2; a++)
        g->extent[a] = g->pad_x ? reach(&g->walk.axis[a]) : g->walk.axis[a].in;
    const int64_t image_bytes = 4 * (height->in * width->in * C +
                                     height->out * width->out * g->padded);
    const int64_t most_chunks = larger(1, SUM_BYTES / (4 * g->rows * g->padded));
    g->chunk_images = larger(larger(1, CHUNK_BYTES / image_bytes), ceil_divide(batch, most_chunks));
    g->chunks = larger(1, ceil_divide(batch, g->chunk_images));
    const int64_t sums = g->chunks * g->rows * g->padded;
    const int64_t x = g->pad_x ? batch * g->extent[0] * g->extent[1] * C : 0;
    const int64_t d_y = g->pad_d_y || pooled
                      ? g->chunk_images * height->out * width->out * g->padded : 0;
    if (scratch) {
        g->sums = scratch;
        g->d_y = g->sums + sums;
        g->x = g->d_y + threads * d_y;
    }
    return (size_t)(sums + threads * d_y + x) * sizeof(float);
}

static size_t filter_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    FilterGradient g;
    return lay_out(&g, op, out_type, threads, false, NULL);
}

static size_t pooled_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    FilterGradient g;
    return lay_out(&g, op, out_type, threads, true, NULL);
}

/* The gradient of a pool is made in place of the copy, so there must be nothing to pad. */
static bool pooled_accepts(const CornuOpCall *op, const CornuType *out_type)
{
    return out_type->dtype == CORNU_F32 &&
           op->in[1].shape.extent[3] % cornu__products()->lanes == 0;
}

/* Images b to b_end of x into the copy, with zeros around them. */
static void pad_images(const FilterGradient *g, int64_t b, int64_t b_end)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels, row = g->extent[1] * C;
    const int64_t    top = larger(0, height->low), left = larger(0, width->low);
    const int64_t    kept_rows = smaller(height->in, g->extent[0] - top);
    const int64_t    kept = smaller(width->in, g->extent[1] - left);
    for (; b < b_end; b++) {
        float *to = g->x + b * g->extent[0] * row;
        memset(to, 0, (size_t)(g->extent[0] * row) * sizeof(float));
        for (int64_t i = 0; i < kept_rows; i++)
            memcpy(to + (top + i) * row + left * C,
                   (const float *)g->call->in[0] + (b * height->in + i) * width->in * C,
                   (size_t)(kept * C) * sizeof(float));
    }
}

/* d_y of images b to b_end, made from the pool's. */
static const float *gradient_of_pool(FilterGradient *g, int64_t b, int64_t b_end, int thread)
{
    const CornuSweep *height = &g->pool.height, *width = &g->pool.width;
    const int64_t     C = g->pool.channels, image = height->in * width->in * C;
    const int64_t     pooled = height->out * width->out * C;
    float            *d_y = g->d_y + thread * g->chunk_images * image;
    for (int64_t k = b; k < b_end; k++)
        if (!cornu__pool_grad_image(&g->pool, (const float *)g->call->in[1] + k * pooled,
                                    (const uint8_t *)g->call->in[2] + k * pooled,
                                    d_y + (k - b) * image))
            atomic_store(&g->bad_row, k);
    return d_y;
}

static const float *pad_filters(const FilterGradient *g, int64_t b, int64_t b_end, int thread)
{
    const int64_t positions = g->walk.axis[0].out * g->walk.axis[1].out;
    const int64_t F = g->walk.out_channels;
    float        *copy = g->d_y + thread * g->chunk_images * positions * g->padded, *to = copy;
    const float  *from = (const float *)g->call->in[1] + b * positions * F;
    for (int64_t p = 0; p < (b_end - b) * positions; p++, to += g->padded, from += F) {
        memcpy(to, from, (size_t)F * sizeof(float));
        memset(to + F, 0, (size_t)(g->padded - F) * sizeof(float));
    }
    return copy;
}

/* `count` rows of the sum from `row` on, x being where the first meets the first position. */
static void sum_rows(const FilterGradient *g, CornuOuter outer, float *sums, int64_t row,
                     int64_t count)
{
    const int64_t most = outer.offsets ? g->products->gather_rows : g->products->tile_rows;
    const int64_t tiles = ceil_divide(count, most), lanes = g->products->lanes;
    const float  *x = outer.x, *y = outer.y;
    const ptrdiff_t *offsets = outer.offsets;
    outer.sum_stride = g->padded;
    for (int64_t f = 0; f < g->padded; f += outer.vectors * lanes) {
        outer.vectors = (int)smaller(2, (g->padded - f) / lanes);
        outer.y = y + f;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = t * count / tiles;
            outer.rows = (int)((t + 1) * count / tiles - m);
            outer.x = offsets ? x : x + m;
            outer.offsets = offsets ? offsets + m : NULL;
            outer.sum = sums + (row + m) * g->padded + f;
            g->products->outer(&outer);
        }
    }
}

/* The outputs [from, to) along an axis at which a tap meets x. */
static void tap_range(const CornuAxis *axis, int64_t tap, int64_t *from, int64_t *to)
{
    *from = 0;
    *to = axis->out;
    while (*from < *to && cornu__axis_row(axis, *from, tap) < 0) ++*from;
    while (*from < *to && cornu__axis_row(axis, *to - 1, tap) < 0) --*to;
}

/* Taps one by one, each over the positions where it meets x; side by side where all do. */
static void sum_taps(const FilterGradient *g, CornuOuter outer, float *sums)
{
    const CornuAxis *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t    C = g->walk.in_channels;
    const float     *x = outer.x, *y = outer.y;
    const int64_t    step = width->dilation == 1 && inside(width) ? width->taps : 1;
    for (int64_t u = 0; u < height->taps; u++) {
        int64_t i, i_end;
        tap_range(height, u, &i, &i_end);
        for (int64_t v = 0; v < width->taps; v += step) {
            int64_t j, j_end;
            tap_range(width, v, &j, &j_end);
            outer.height = i_end - i;
            outer.width = j_end - j;
            outer.x = x;
            outer.y = y;
            if (outer.height > 0 && outer.width > 0) {
                outer.x += (cornu__axis_row(height, i, u) * width->in +
                            cornu__axis_row(width, j, v)) * C;
                outer.y += i * outer.y_row + j * outer.y_pixel;
            }
            sum_rows(g, outer, sums, (u * width->taps + v) * C, step * C);
        }
    }
}

/* All taps at once, GATHERED rows at a time. */
static void sum_gathered(const FilterGradient *g, CornuOuter outer, float *sums)
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
            offsets[m] = ((u * height->dilation + larger(0, -height->low)) * g->extent[1] +
                          v * width->dilation + larger(0, -width->low)) * C + (first + m) % C;
        }
        sum_rows(g, outer, sums, first, count);
    }
}

static void sum_chunk(void *context, int64_t chunk, int thread)
{
    FilterGradient       *g = context;
    const CornuAxis      *height = &g->walk.axis[0], *width = &g->walk.axis[1];
    const int64_t         C = g->walk.in_channels;
    const int64_t         b = chunk * g->chunk_images;
    const int64_t         b_end = smaller(g->walk.batch, b + g->chunk_images);
    const int64_t         columns = g->extent[1], image = g->extent[0] * columns * C;
    float                *sums = g->sums + chunk * g->rows * g->padded;
    CornuOuter            outer = {
        .x = (g->pad_x ? g->x : (const float *)g->call->in[0]) + b * image,
        .x_image = image, .x_row = height->stride * columns * C, .x_pixel = width->stride * C,
        .y_image = height->out * width->out * g->padded, .y_row = width->out * g->padded,
        .y_pixel = g->padded,
        .images = b_end - b, .height = height->out, .width = width->out,
    };
    if (g->pad_x) pad_images(g, b, b_end);
    if (g->call->pool) outer.y = gradient_of_pool(g, b, b_end, thread);
    else if (g->pad_d_y) outer.y = pad_filters(g, b, b_end, thread);
    else outer.y = (const float *)g->call->in[1] + b * outer.y_image;
    if (g->gather) sum_gathered(g, outer, sums);
    else sum_taps(g, outer, sums);
}

/* d_filter = the chunks' sums, added in order. */
static void add_chunks(void *context, int64_t block, int thread)
{
    (void)thread;
    const FilterGradient *g = context;
    const int64_t F = g->walk.out_channels, per_block = larger(1, ADD_BLOCK / g->padded);
    const int64_t end = smaller(g->rows, (block + 1) * per_block);
    for (int64_t row = block * per_block; row < end; row++) {
        float       *to = (float *)g->call->out[0] + row * F;
        const float *sum = g->sums + row * g->padded;
        memcpy(to, sum, (size_t)F * sizeof(float));
        for (int64_t chunk = 1; chunk < g->chunks; chunk++) {
            sum += g->rows * g->padded;
            for (int64_t f = 0; f < F; f++) to[f] += sum[f];
        }
    }
}

static CornuStatus conv2d_grad_filter(const CornuKernelCall *call)
{
    FilterGradient g = { .call = call };
    lay_out(&g, &call->op, call->out_type, cornu__threads_count(call->threads), call->pool,
            call->scratch);
    if (call->pool) g.pool = cornu__pool(call->pool);
    atomic_init(&g.bad_row, -1);
    cornu__threads_run(call->threads, g.chunks, sum_chunk, &g);
    cornu__threads_run(call->threads, ceil_divide(g.rows, larger(1, ADD_BLOCK / g.padded)),
                       add_chunks, &g);
    return g.bad_row < 0 ? CORNU_OK : cornu__pool_bad_index(&g.pool, g.bad_row);
}

const CornuKernel cornu__cpu_conv2d_grad_filter = {
    NULL, filter_scratch, conv2d_grad_filter, false,
};
const CornuKernel cornu__cpu_conv2d_grad_filter_pooled = {
    pooled_accepts, pooled_scratch, conv2d_grad_filter, false,
};
