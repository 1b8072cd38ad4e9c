/*
 * conv2d and its input gradient: f32 in, out and in the sums.
 *
 *     x (B, H, W, C), filter (h, w, C, F), y (B, Ho, Wo, F), all row-major
 *
 * An output position is a row of a product: its K operands are runs of x (taps on padding do not
 * occur), the filter is packed once into panels of two registers' width. A tile of the product
 * takes its rows along the output's width, or, where the map is so small that such tiles would
 * be thin, from the same position of several images. x is never copied.
 *
 * Where a max pooling follows, a block's map stays in the cache and only what the pool keeps is
 * written; bias and activation come last.
 *
 * The input gradient is the same product over d_y, with the filter's taps and channels
 * transposed while it is packed.
 */
#include "../host/convolution.h"
#include "../host/pool.h"
#include "../integer_internal.h"
#include "kernels.h"

/* Cuts are this many where the shape allows: enough to keep many threads equally busy. */
enum { UNITS = 64 };

typedef struct {
    const CornuKernelCall *call;
    const CornuProducts   *products;
    CornuWalk         walk;
    int64_t                taps, depth;    /* h w, and K = h w C                     */
    int64_t                padded;         /* F, rounded up to whole registers       */
    bool                   along_width;
    int64_t                groups, slabs;  /* cuts of the batch, and of the height   */
    float                 *panels, *bias;
    CornuRun              *runs;           /* taps of them per thread                */
    CornuPool              pool;           /* of call->pool                          */
    float                 *maps;           /* before pooling: those of one block, per thread */
    int64_t                maps_count;
} Convolution;

/* Tiles take their rows along the width unless tiles of images would be a good deal fuller. */
static bool rows_along_width(const Convolution *c)
{
    const CornuAxis *width = &c->walk.axis[1];
    const int64_t    most = c->products->tile_rows;
    int64_t          tiles = 0;
    for (int64_t j = 0, end; j < width->out; j = end) {
        end = width->ends[j];
        tiles += ceil_divide(end - j, most);
    }
    return 4 * width->out * ceil_divide(c->walk.batch, most) >= 3 * c->walk.batch * tiles;
}

static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes without maps. */
static size_t lay_out(Convolution *c, const CornuOpCall *op, const CornuType *out_type,
                      int threads, char *scratch)
{
    c->products = cornu__products();
    c->walk = cornu__walk(op, out_type);
    c->taps = c->walk.axis[0].taps * c->walk.axis[1].taps;
    c->depth = c->taps * c->walk.in_channels;
    c->padded = ceil_divide(c->walk.out_channels, c->products->lanes) * c->products->lanes;
    const size_t floats = (size_t)((c->depth + 1) * c->padded) * sizeof(float);
    const size_t runs = (size_t)threads * (size_t)c->taps * sizeof(CornuRun);
    const size_t rows = (size_t)cornu__walk_size(&c->walk) * sizeof(int64_t);
    c->maps_count = smaller(c->walk.batch, c->products->tile_rows) * c->walk.axis[0].out *
                    c->walk.axis[1].out * c->walk.out_channels;
    if (scratch) {
        c->panels = (void *)scratch;
        c->bias = c->panels + c->depth * c->padded;
        c->runs = (CornuRun *)(scratch + floats);
        cornu__walk_start(&c->walk, (int64_t *)(scratch + floats + runs));
        c->maps = (void *)(scratch + align(floats + runs + rows));
    }
    return floats + runs + rows;
}

static size_t conv2d_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    Convolution c;
    return lay_out(&c, op, out_type, threads, NULL);
}

static size_t pooled_scratch(const CornuOpCall *op, const CornuType *out_type, int threads)
{
    Convolution  c;
    const size_t bytes = align(lay_out(&c, op, out_type, threads, NULL));
    return bytes + (size_t)threads * (size_t)c.maps_count * sizeof(float);
}

/* Panels of `width` columns, the last one narrower: row k of the panel at column n stands at
 * n depth + k width. */
static int64_t panel_width(const Convolution *c, int64_t n)
{
    return smaller(2 * c->products->lanes, c->padded - n);
}

/* Packs one tap of all panels. */
static void pack(void *context, int64_t slot, int thread)
{
    (void)thread;
    const Convolution *c = context;
    const CornuAxis   *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t      C = c->walk.in_channels, F = c->walk.out_channels;
    const int64_t      tap = cornu__axis_tap(height, slot / width->taps) * width->taps +
                             cornu__axis_tap(width, slot % width->taps);
    const float       *filter = (const float *)c->call->in[1] + tap * C * F;
    const int64_t      k_step = width->transposed ? 1 : F, n_step = width->transposed ? C : 1;
    for (int64_t first = 0, columns; first < c->padded; first += columns) {
        columns = panel_width(c, first);
        float        *to = c->panels + first * c->depth + slot * C * columns;
        const int64_t used = smaller(columns, F - first);
        for (int64_t k = 0; k < C; k++, to += columns) {
            for (int64_t n = 0; n < used; n++)
                to[n] = filter[k * k_step + (first + n) * n_step];
            for (int64_t n = used; n < columns; n++) to[n] = 0.0f;
        }
    }
}

/* One position (i, j to end) of images b to b_end against one panel; y is where the result of
 * image b goes. */
static void position(const Convolution *c, CornuTile *tile, int64_t first, int64_t b,
                     int64_t b_end, int64_t i, int64_t j, int64_t j_end, float *y)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    x_image = height->in * width->in * c->walk.in_channels;
    const int64_t    F = c->walk.out_channels, y_image = height->out * width->out * F;
    const int64_t    rows = c->along_width ? j_end - j : b_end - b;
    tile->x_stride = c->along_width ? (width->transposed ? 1 : width->stride) *
                                      c->walk.in_channels : x_image;
    tile->y_stride = c->along_width ? F : y_image;
    const float  *x = (const float *)c->call->in[0] + b * x_image;
    y += (i * width->out + j) * F + first;
    const int64_t tiles = ceil_divide(rows, c->products->tile_rows);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        tile->rows = (int)((t + 1) * rows / tiles - m);
        tile->x = x + m * tile->x_stride;
        tile->y = y + m * tile->y_stride;
        c->products->tile(tile);
    }
}

/* Images b to b_end from the maps to the pool's values and indices. */
static void pool_images(const Convolution *c, const float *maps, int64_t b, int64_t b_end)
{
    const CornuPools *pools = cornu__pools();
    const CornuSweep *height = &c->pool.height, *width = &c->pool.width;
    const int64_t     row = width->out * c->pool.channels, image = height->out * row;
    float            *y = c->call->out[0];
    uint8_t          *index = c->call->out[1];
    for (int64_t at = b; at < b_end; at++, maps += height->in * width->in * c->pool.channels)
        for (int64_t i = 0; i < height->out; i++)
            pools->max(&c->pool, i, maps, y + at * image + i * row, index + at * image + i * row);
    cornu__epilogue_apply(c->call->epilogue, y + b * image, (b_end - b) * height->out * width->out,
                          c->pool.channels, c->pool.channels, 0);
}

/* Some rows of one image, or of a tile of images; the panel is what stays in the cache. */
static void convolve(void *context, int64_t block, int thread)
{
    const Convolution *c = context;
    const CornuAxis   *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t      group = block / c->slabs, slab = block % c->slabs;
    int64_t            b = group * c->walk.batch / c->groups;
    const int64_t      b_end = (group + 1) * c->walk.batch / c->groups;
    const int64_t      i_begin = slab * height->out / c->slabs;
    const int64_t      i_end = (slab + 1) * height->out / c->slabs;
    const int64_t      F = c->walk.out_channels;
    const int64_t      y_image = height->out * width->out * F;
    float             *y = c->call->pool ? c->maps + thread * c->maps_count
                                         : (float *)c->call->out[0] + b * y_image;
    CornuRun          *runs = c->runs + thread * c->taps;
    CornuEpilogue      rest = *c->call->epilogue;
    rest.bias = NULL;
    CornuTile tile = { .runs = runs, .relu = !c->call->pool && rest.activation == CORNU_OP_RELU };
    for (int64_t first = 0, columns; first < c->padded; first += columns) {
        columns = panel_width(c, first);
        tile.panel = c->panels + first * c->depth;
        tile.bias = c->bias + first;
        tile.vectors = (int)(columns / c->products->lanes);
        tile.columns = (int)smaller(columns, F - first);
        for (int64_t i = i_begin; i < i_end; i++)
            for (int64_t j = 0, j_end; j < width->out; j = j_end) {
                j_end = c->along_width ? width->ends[j] : j + 1;
                tile.run_count = cornu__runs(&c->walk, i, j, runs);
                position(c, &tile, first, b, b_end, i, j, j_end, y);
            }
    }
    if (c->call->pool) pool_images(c, y, b, b_end);
    else if (!tile.relu && rest.activation != CORNU_OP_COUNT)
        for (; b < b_end; b++, y += y_image)
            cornu__epilogue_apply(&rest, y + i_begin * width->out * F,
                                  (i_end - i_begin) * width->out, F, F, 0);
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    Convolution c = { .call = call };
    lay_out(&c, &call->op, call->out_type, cornu__threads_count(call->threads), call->scratch);
    const CornuAxis *height = &c.walk.axis[0];
    c.along_width = rows_along_width(&c);
    c.groups = c.along_width ? c.walk.batch : ceil_divide(c.walk.batch, c.products->tile_rows);
    c.slabs = c.groups && !call->pool ? smaller(height->out, ceil_divide(UNITS, c.groups)) : 1;
    if (call->pool) c.pool = cornu__pool(call->pool);
    const float *bias = call->pool ? NULL : call->epilogue->bias;
    for (int64_t n = 0; n < c.padded; n++)
        c.bias[n] = bias && n < c.walk.out_channels ? bias[n] : 0.0f;
    cornu__threads_run(call->threads, c.taps, pack, &c);
    cornu__threads_run(call->threads, c.groups * c.slabs, convolve, &c);
    return CORNU_OK;
}

const CornuKernel cornu__cpu_conv2d = { NULL, conv2d_scratch, conv2d, true };
const CornuKernel cornu__cpu_conv2d_pooled = { NULL, pooled_scratch, conv2d, true };
const CornuKernel cornu__cpu_conv2d_grad_input = { NULL, conv2d_scratch, conv2d, false };
