/*
 * conv2d and its input gradient: f32 or bf16 in and out, f32 in the sums.
 *
 *     x (B, H, W, C), filter (h, w, C, F), y (B, Ho, Wo, F), all row-major
 *
 * An output position is a row of a product: its K operands are runs of x (taps on padding do not
 * occur), the filter is packed before into panels of two registers' width. A tile of the product
 * takes its rows along the output's width, or, where the map is so small that such tiles would
 * be thin, from the same position of several images. x is not copied; where tiles do not take it
 * as it stands (precision.h) each block converts the rows that it reads.
 *
 * Where a max pooling follows, a block's map stays in the cache and only what the pool keeps is
 * written; bias and activation come last. The map is f32 even if the result is bf16: the pool then
 * chooses among what rounding has not made equal.
 *
 * The input gradient is the same product over d_y, with the filter's taps and channels
 * transposed while it is packed. Where x has few channels conv2d_few.c makes it.
 */
#include "convolution.h"
#include "kernels.h"
#include "pool.h"
#include "precision.h"

#include <string.h>

/* Cuts are this many where the shape allows: enough to keep many threads equally busy. */
enum { UNITS = 64 };

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuWalk              walk;
    int64_t                taps, depth;    /* h w, and K = h w C, rounded up to whole pairs */
    int64_t                x_image;        /* elements of one image                  */
    int64_t                padded;         /* F, rounded up to whole registers       */
    bool                   along_width;
    int64_t                groups, slabs;  /* cuts of the batch, and of the height   */
    char                  *x;              /* of a block, all parts, per thread; if not in place */
    int64_t                x_part, x_bytes;
    const char            *panels;         /* K times parts x padded                 */
    float                 *bias, *zeros;
    CornuRun              *runs;           /* taps times passes of them per thread   */
    CornuPool              pool;           /* of call->pool                          */
    float                 *maps;           /* before pooling: those of one block, per thread,  */
    int64_t                maps_count;     /* and behind them a row of what will be bf16       */
} Convolution;

static int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

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

static void find_extents(Convolution *c, const CornuOpCall *op, const CornuType *out_type,
                         CornuMultiplier multiplier)
{
    c->how = cornu__multiplication(multiplier, op->in[0].dtype);
    c->products = c->how.products;
    c->walk = cornu__walk(op, out_type);
    c->taps = c->walk.axis[0].taps * c->walk.axis[1].taps;
    c->depth = ceil_divide(c->taps * c->walk.in_channels, c->products->depth) * c->products->depth;
    c->padded = ceil_divide(c->walk.out_channels, c->products->lanes) * c->products->lanes;
    c->x_image = c->walk.axis[0].in * c->walk.axis[1].in * c->walk.in_channels;
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes without maps. */
static size_t lay_out(Convolution *c, const CornuOpCall *op, const CornuType *out_type,
                      const CornuMachine *machine, char *scratch)
{
    find_extents(c, op, out_type, machine->multiplier);
    const size_t threads = (size_t)machine->threads;
    const size_t bias = 2 * (size_t)c->padded * sizeof(float);
    const size_t runs = threads * (size_t)(c->taps * c->how.passes) * sizeof(CornuRun);
    const size_t rows = (size_t)cornu__walk_size(&c->walk) * sizeof(int64_t);
    const int64_t images = smaller(c->walk.batch, c->products->tile_rows);
    c->maps_count = images * c->walk.axis[0].out * c->walk.axis[1].out * c->walk.out_channels;
    c->x_part = images * c->x_image;
    c->x_bytes = (int64_t)cornu__parts_bytes(&c->how, c->x_part);
    if (scratch) {
        c->x = scratch;
        c->bias = (float *)(void *)(scratch += threads * (size_t)c->x_bytes);
        c->zeros = c->bias + c->padded;
        c->runs = (CornuRun *)(void *)(scratch += bias);
        cornu__walk_start(&c->walk, (int64_t *)(void *)(scratch + runs));
        c->maps = (float *)(void *)(scratch + align(runs + rows));
    }
    return threads * (size_t)c->x_bytes + bias + align(runs + rows);
}

static size_t conv2d_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    Convolution c;
    return lay_out(&c, op, out_type, machine, NULL);
}

/* Elements of the longest row that a pool of 255 padded columns can make. */
static int64_t pooled_row(const Convolution *c)
{
    return (c->walk.axis[1].out + UINT8_MAX) * c->walk.out_channels;
}

static size_t pooled_scratch(const CornuOpCall *op, const CornuType *out_type,
                             const CornuMachine *machine)
{
    Convolution  c;
    const size_t bytes = lay_out(&c, op, out_type, machine, NULL);
    return bytes + (size_t)machine->threads * (size_t)(c.maps_count + pooled_row(&c)) *
                   sizeof(float);
}

/* ---- The filter ---- */

typedef struct {
    Convolution convolution;
    const void *filter;      /* its parts, one behind the other */
    char       *panels;
} Pack;

static size_t panels_bytes(const Convolution *c)
{
    return align((size_t)(c->depth * c->how.parts * c->padded) * c->products->size);
}

/* Behind the panels is room for the filter's parts. */
static size_t pack_bytes(const CornuOpCall *op, const CornuType *out_type,
                         const CornuMachine *machine)
{
    Convolution c;
    find_extents(&c, op, out_type, machine->multiplier);
    return panels_bytes(&c) + cornu__parts_bytes(&c.how, cornu_type_count(op->in[1]));
}

/* Panels of `width` columns, the last one narrower: row k of the panel at column n stands at
 * parts n depth + k width. */
static int64_t panel_width(const Convolution *c, int64_t n)
{
    return smaller(2 * c->products->lanes, c->padded - n);
}

static int64_t panel_offset(const Convolution *c, int64_t n)
{
    return n * c->how.parts * c->depth * (int64_t)c->products->size;
}

/* Packs one tap of one part of the filter into all panels. */
static void pack_tap(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pack        *p = context;
    const Convolution *c = &p->convolution;
    const CornuAxis   *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t      C = c->walk.in_channels, F = c->walk.out_channels;
    const int64_t      part = block / c->taps, slot = block % c->taps;
    const int64_t      tap = cornu__axis_tap(height, slot / width->taps) * width->taps +
                             cornu__axis_tap(width, slot % width->taps);
    const int64_t      from = (part * c->taps + tap) * C * F;
    const int64_t      k_step = width->transposed ? 1 : F, n_step = width->transposed ? C : 1;
    for (int64_t first = 0, columns; first < c->padded; first += columns) {
        columns = panel_width(c, first);
        c->products->pack(p->panels + panel_offset(c, first), columns, part * c->depth + slot * C,
                          C, cornu__element(&c->how, p->filter, from + first * n_step), k_step,
                          n_step, smaller(columns, F - first));
    }
}

static void pack(const CornuKernelCall *call)
{
    Pack p = { .panels = call->out[0] };
    find_extents(&p.convolution, &call->op, call->out_type, call->multiplier);
    const Convolution *c = &p.convolution;
    p.filter = cornu__all_parts(&c->how, call->threads, call->in[1],
                                cornu_type_count(call->op.in[1]), p.panels + panels_bytes(c));
    cornu__threads_run(call->threads, c->taps * c->how.parts, pack_tap, &p);
}

/* ---- The product ---- */

/* The runs of one position, for each pass those of its parts. */
static int64_t all_runs(const Convolution *c, int64_t i, int64_t j, CornuRun *runs)
{
    const int64_t count = cornu__runs(&c->walk, i, j, runs);
    for (int p = c->how.passes - 1; p >= 0; p--)
        for (int64_t r = 0; r < count; r++)
            runs[p * count + r] = (CornuRun){
                runs[r].offset + c->how.pass[p][0] * c->x_part,
                runs[r].k + c->how.pass[p][1] * c->depth, runs[r].length,
            };
    return c->how.passes * count;
}

/* Images [b, b_end) of x as tiles take them, their parts x_part elements apart; of each the rows
 * that the outputs [i, i_end) meet. */
static const void *rows_of_x(const Convolution *c, int64_t b, int64_t b_end, int64_t i,
                             int64_t i_end, int thread)
{
    const void *x = c->call->in[0];
    int64_t     from, to, row = c->walk.axis[1].in * c->walk.in_channels;
    char       *made = c->x + thread * c->x_bytes;
    if (c->how.in_place) return cornu__element(&c->how, x, b * c->x_image);
    cornu__rows_met(&c->walk.axis[0], i, i_end, &from, &to);
    for (int64_t at = b; at < b_end && from < to; at++)
        cornu__parts(&c->how, x, at * c->x_image + from * row, (to - from) * row,
                     made + ((at - b) * c->x_image + from * row) * (int64_t)c->products->size,
                     c->x_part);
    return made;
}

/* One position (i, j to end) of `images` of them, the first at x, against one panel; y is where the
 * result of that image goes. */
static void position(const Convolution *c, CornuTile *tile, int64_t first, const void *x,
                     int64_t images, int64_t i, int64_t j, int64_t j_end, char *y)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    F = c->walk.out_channels, y_image = height->out * width->out * F;
    const int64_t    rows = c->along_width ? j_end - j : images;
    const int64_t    y_size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    tile->x_stride = c->along_width ? (width->transposed ? 1 : width->stride) *
                                      c->walk.in_channels : c->x_image;
    tile->y_stride = c->along_width ? F : y_image;
    y += ((i * width->out + j) * F + first) * y_size;
    const int64_t tiles = ceil_divide(rows, c->products->tile_rows);
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        tile->rows = (int)((t + 1) * rows / tiles - m);
        tile->x = cornu__element(&c->how, x, m * tile->x_stride);
        tile->y = y + m * tile->y_stride * y_size;
        c->products->tile(tile);
    }
}

/* Images b to b_end from the maps to the pool's values and indices. */
static void pool_images(const Convolution *c, const float *maps, float *narrow_row, int64_t b,
                        int64_t b_end)
{
    const CornuPools *pools = cornu__pools();
    const CornuSweep *height = &c->pool.height, *width = &c->pool.width;
    const int64_t     C = c->pool.channels, row = width->out * C, image = height->out * row;
    const bool        narrow = c->call->out_type->dtype == CORNU_BF16;
    uint8_t          *index = c->call->out[1];
    CornuEpilogue     epilogue = *c->call->epilogue;
    if (epilogue.bias) epilogue.bias = c->bias;
    for (int64_t at = b; at < b_end; at++, maps += height->in * width->in * C)
        for (int64_t i = 0; i < height->out; i++) {
            const int64_t to = at * image + i * row;
            float        *y = narrow ? narrow_row : (float *)c->call->out[0] + to;
            pools->max(&c->pool, i, maps, y, index + to);
            if (narrow) {
                cornu__epilogue_apply(&epilogue, y, width->out, C, C, 0);
                cornu__bf16()->narrow(y, row, (uint16_t *)c->call->out[0] + to);
            }
        }
    if (!narrow)
        cornu__epilogue_apply(&epilogue, (float *)c->call->out[0] + b * image,
                              (b_end - b) * height->out * width->out, C, C, 0);
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
    const int64_t      F = c->walk.out_channels, y_image = height->out * width->out * F;
    const bool         narrow = !c->call->pool && c->call->out_type->dtype == CORNU_BF16;
    float             *maps = c->maps + thread * (c->maps_count + pooled_row(c));
    char              *y = c->call->pool ? (char *)maps
                         : (char *)c->call->out[0] +
                           b * y_image * (narrow ? sizeof(uint16_t) : sizeof(float));
    CornuRun          *runs = c->runs + thread * c->taps * c->how.passes;
    const void        *x = rows_of_x(c, b, b_end, i_begin, i_end, thread);
    CornuEpilogue      rest = *c->call->epilogue;
    rest.bias = NULL;
    CornuTile tile = { .runs = runs, .narrow = narrow,
                       .relu = !c->call->pool && rest.activation == CORNU_OP_RELU };
    for (int64_t first = 0, columns; first < c->padded; first += columns) {
        columns = panel_width(c, first);
        tile.panel = c->panels + panel_offset(c, first);
        tile.bias = (c->call->pool ? c->zeros : c->bias) + first;
        tile.vectors = (int)(columns / c->products->lanes);
        tile.columns = (int)smaller(columns, F - first);
        for (int64_t i = i_begin; i < i_end; i++)
            for (int64_t j = 0, j_end; j < width->out; j = j_end) {
                j_end = c->along_width ? width->ends[j] : j + 1;
                tile.run_count = all_runs(c, i, j, runs);
                position(c, &tile, first, x, b_end - b, i, j, j_end, y);
            }
    }
    if (c->call->pool) pool_images(c, maps, maps + c->maps_count, b, b_end);
    else if (!tile.relu && rest.activation != CORNU_OP_COUNT)
        for (; b < b_end; b++, y += y_image * (int64_t)sizeof(float))
            cornu__epilogue_apply(&rest, (float *)(void *)y + i_begin * width->out * F,
                                  (i_end - i_begin) * width->out, F, F, 0);
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    Convolution        c = { .call = call, .panels = call->in[1] };
    const CornuMachine machine = cornu__machine_of(call);
    lay_out(&c, &call->op, call->out_type, &machine, call->scratch);
    const CornuAxis *height = &c.walk.axis[0];
    c.along_width = rows_along_width(&c);
    c.groups = c.along_width ? c.walk.batch : ceil_divide(c.walk.batch, c.products->tile_rows);
    c.slabs = c.groups && !call->pool ? smaller(height->out, ceil_divide(UNITS, c.groups)) : 1;
    if (call->pool) c.pool = cornu__pool(call->pool);
    cornu__biases(call->epilogue, call->out_type->dtype, c.walk.out_channels, c.padded, c.bias);
    memset(c.zeros, 0, (size_t)c.padded * sizeof(float));
    cornu__threads_run(call->threads, c.groups * c.slabs, convolve, &c);
    return CORNU_OK;
}

const CornuKernel cornu__host_conv2d = {
    .accepts = cornu__product_accepts, .scratch = conv2d_scratch, .run = conv2d,
    .takes_epilogue = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
const CornuKernel cornu__host_conv2d_pooled = {
    .accepts = cornu__product_accepts, .scratch = pooled_scratch, .run = conv2d,
    .takes_epilogue = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
const CornuKernel cornu__host_conv2d_grad_input = {
    .accepts = cornu__product_accepts, .scratch = conv2d_scratch, .run = conv2d,
    .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
