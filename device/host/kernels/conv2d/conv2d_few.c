/*
 * conv2d's input gradient where x has few channels, and conv2d of few filters: f32 or bf16 in and
 * out, f32 in the sums.
 *
 *     d_y (B, Ho, Wo, F), filter (h, w, C, F), d_x (B, H, W, C), all row-major
 *
 *     P[p, q, (u, v, c)] = sum over f of d_y[p, q, f] filter[u, v, c, f]
 *     d_x[i, j, c] = sum over u, v of P[(i + low - u dilation) / stride, likewise of j, (u, v, c)]
 *
 * where these are whole numbers. A convolution without a stride is such a gradient by another
 * filter: the taps in reverse order, channels and filters exchanged. conv2d.c makes C columns for
 * each tap, padded to whole registers; the columns of P are taps and channels together, padded
 * once: with a 5x5 filter and one channel 2 registers, not 25. The sums are additions alone
 * (isa/col2im.h).
 *
 * A block is a strip of some rows of one image's d_x. It keeps the rows of P that one row of d_x
 * meets in the cache, and makes the next one in place of the oldest. Positions outside d_y are
 * zeros, so that all outputs of a row that are a stride apart have the same taps. The filter is
 * packed in advance into panels two registers wide. Where d_y is the gradient of a max pooling, a
 * block makes the rows of it that it meets.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; the sums are col2im after a product, as in Caffe.
 * Gain: the gradient by the Fashion CNN's images, batch 128, tpu, Zen 4: 11.9 ms before, 1.6 after.
 *     A convolution of 32 channels by 3 x 3 taps with 2 filters, 32 maps of 64 x 64, f32, Xeon with
 *     AMX, two threads: AVX-512 6.7 ms, then 2.5; AVX2 7.2, then 4.8.
 */
#include <string.h>

#include "../../../inference_internal.h"
#include "../../../integer_internal.h"
#include "../../machine/bf16.h"
#include "../../isa/col2im.h"
#include "convolution.h"
#include "../kernels.h"
#include "../precision.h"
#include "../../machine/prefetch.h"
#include "../unpool.h"

enum {
    UNITS = 64,                /* cuts, where the shape allows                            */
    STRIP_BYTES = 64 << 10,    /* of the rows of P of a strip, whose positions are        */
    OVERLAP = 8,               /* at least so many times those that its neighbour has too */
    STORING = 2                /* steps that storing a tile register takes                */
};

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuWalk              walk;                /* in: of d_y, out: of d_x         */
    bool                   forward;             /* in: of x, out: of y             */
    int64_t                columns, padded;     /* h w C, and in whole registers   */
    int64_t                depth;               /* F, rounded up to whole pairs    */
    int64_t                rows, positions;     /* of P at a time, and of a row    */
    int64_t                strips, slabs;       /* cuts of the width, of the height */
    int64_t                strip_row;           /* elements of d_x in the widest   */
    int64_t                column_count;        /* find_columns                    */
    const char            *panels;
    float                 *zeros;               /* the bias of a panel             */
    float                 *bias;                /* the epilogue's                  */
    float                 *p, *row;             /* per thread; row: of d_x if that is bf16   */
    char                  *x;                   /* per thread: a row of d_y, if not in place */
    ptrdiff_t             *taps;                /* per thread: columns, and taps of a row    */
    int64_t                p_count, row_count, tap_count;
    size_t                 x_bytes;
    CornuUnpool           *unpool;              /* NULL: d_y is in memory                 */
    char                  *map;                 /* else an image of it, per thread, in its dtype */
    float                 *unpool_scratch;
    int64_t                unpool_count;
    size_t                 map_bytes;
} Columns;

/* a / b rounded down; b positive. */
static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* The positions that outputs [out, end) meet lie in [first_met(out), end_met(end)), whether they
 * exist or not; there are at most most_met(end - out). */
static int64_t span(const CornuAxis *axis) { return (axis->taps - 1) * axis->dilation; }

static int64_t first_met(const CornuAxis *axis, int64_t out)
{
    return floor_divide(out + axis->low - span(axis) + axis->stride - 1, axis->stride);
}

static int64_t end_met(const CornuAxis *axis, int64_t end)
{
    return floor_divide(end - 1 + axis->low, axis->stride) + 1;
}

static int64_t most_met(const CornuAxis *axis, int64_t outputs)
{
    return (outputs - 1 + span(axis)) / axis->stride + 1;
}

static void find_extents(Columns *c, const CornuOpCall *op, const CornuType *out_type,
                         CornuMultiplier multiplier)
{
    c->how = cornu__multiplication(multiplier, op->in[0].dtype);
    c->products = c->how.products;
    c->walk = cornu__walk(op, out_type);
    c->forward = op->id == CORNU_OP_CONV2D;
    for (int a = 0; a < 2 && c->forward; a++) {
        c->walk.axis[a].low = span(&c->walk.axis[a]) - c->walk.axis[a].low;
        c->walk.axis[a].transposed = true;
    }
    c->columns = c->walk.axis[0].taps * c->walk.axis[1].taps * c->walk.out_channels;
    c->padded = ceil_multiple(c->columns, c->products->lanes);
    c->depth = ceil_multiple(c->walk.in_channels, c->products->depth);
}

static CornuDecline few_declines(const CornuQuery *q)
{
    const CornuDecline decline = cornu__product_declines(q);
    if (decline.needs || q->op->id != CORNU_OP_CONV2D) return decline;
    const CornuWalk walk = cornu__walk(q->op, q->out_type);
    return cornu__needs(walk.axis[0].stride == 1 && walk.axis[1].stride == 1, "strides of 1");
}

/* Of a position of d_y, by the number of steps on registers: an addition counts like a multiply-add
 * or, on tile registers, like a step of 32 elements. */
static double few_cost(const CornuQuery *q, CornuCost cost)
{
    Columns c;
    (void)cost;
    find_extents(&c, q->op, q->out_type, q->machine.multiplier);
    const int64_t taps = c.walk.axis[0].taps * c.walk.axis[1].taps;
    const int64_t additions = taps * ceil_divide(c.walk.out_channels, CORNU_COL2IM_QUAD);
    const int64_t storing = cornu__sums_on_tiles(&c.how) ? STORING : 0;
    return (double)(c.padded / c.products->lanes *
                    (cornu__sum_steps(&c.how, c.walk.in_channels) + storing) + additions);
}

static void cut(Columns *c)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    c->rows = larger(1, smaller(height->in, most_met(height, 1)));
    c->positions = larger(STRIP_BYTES / (4 * c->rows * c->padded), OVERLAP * most_met(width, 1));
    c->strips = ceil_divide(width->out, (c->positions - 1) * width->stride - span(width) + 1);
    const int64_t widest = ceil_divide(width->out, larger(1, c->strips));
    c->positions = most_met(width, widest);
    c->strip_row = widest * c->walk.out_channels;
    c->slabs = smaller(ceil_divide(UNITS, larger(1, c->walk.batch * c->strips)),
                       height->out / (OVERLAP * most_met(height, 1) * height->stride));
    c->slabs = larger(1, c->slabs);
    c->column_count = smaller(width->stride, widest) * width->taps;
}

/* Sizes, and the parts of the scratch memory, each of whole lines of the cache. */
static void lay_out(Columns *c, const CornuQuery *q, CornuScratch *scratch)
{
    enum { LINE = 16 };   /* floats */
    const bool unpools = cornu__query_unpools(q);
    find_extents(c, q->op, q->out_type, q->machine.multiplier);
    const int64_t d_y_image = c->walk.axis[0].in * c->walk.axis[1].in * c->walk.in_channels;
    cut(c);
    const size_t threads = (size_t)q->machine.threads;
    c->p_count = ceil_multiple(c->rows * c->positions * c->padded + CORNU_COL2IM_BEYOND, LINE);
    c->row_count = q->out_type->dtype == CORNU_BF16 ? ceil_multiple(c->strip_row, LINE) : 0;
    c->tap_count = ceil_multiple(c->column_count + c->walk.axis[0].taps * c->walk.axis[1].taps,
                                 LINE);
    c->x_bytes = cornu__parts_bytes(&c->how, c->positions * c->walk.in_channels);
    c->unpool_count = unpools ? ceil_multiple(cornu__unpool_scratch(&q->op->in[0]), LINE) : 0;
    c->map_bytes = unpools ? (size_t)ceil_multiple(d_y_image, 2 * LINE) *
                             cornu_dtype_size(q->op->in[0].dtype) : 0;
    c->zeros = cornu__take_floats(scratch, ceil_multiple(c->padded, LINE));
    c->bias = cornu__take_floats(scratch, ceil_multiple(c->walk.out_channels, LINE));
    c->p = cornu__take_floats(scratch, q->machine.threads * c->p_count);
    c->row = cornu__take_floats(scratch, q->machine.threads * c->row_count);
    c->taps = cornu__take(scratch, threads * (size_t)c->tap_count * sizeof *c->taps);
    c->x = cornu__take(scratch, threads * c->x_bytes);
    c->unpool_scratch = cornu__take_floats(scratch, q->machine.threads * c->unpool_count);
    c->map = cornu__take(scratch, threads * c->map_bytes);
}

static size_t few_scratch(const CornuQuery *q)
{
    Columns      c;
    CornuScratch scratch = { 0 };
    lay_out(&c, q, &scratch);
    return scratch.bytes;
}

/* ---- The filter ---- */

static int64_t panel_columns(const Columns *c) { return 2 * c->products->lanes; }

/* Panels of so many columns, the last one narrower: row f of part `part` of the panel at column n
 * stands at parts n depth + (part depth + f) width. */
static int64_t panel_width(const Columns *c, int64_t n)
{
    return smaller(panel_columns(c), c->padded - n);
}

static int64_t panel_offset(const Columns *c, int64_t n)
{
    return n * c->how.parts * c->depth * (int64_t)c->products->size;
}

/* After the panels there is space for the filter's parts, and then for that of a gradient which a
 * convolution's becomes. */
static size_t panels_bytes(const Columns *c)
{
    return ((size_t)panel_offset(c, c->padded) + 63) / 64 * 64;
}

static size_t pack_bytes(const CornuQuery *q)
{
    Columns c;
    find_extents(&c, q->op, q->out_type, q->machine.multiplier);
    return panels_bytes(&c) + cornu__parts_bytes(&c.how, cornu_type_count(q->op->in[1])) +
           (c.forward ? cornu_type_bytes(q->op->in[1]) : 0);
}

/* The filter (h, w, C, F) of a convolution as that of a gradient, (h, w, F, C), its taps in reverse
 * order. */
static void turn_filter(const CornuOpCall *op, const void *filter, void *to)
{
    const int64_t *extent = op->in[1].shape.extent, taps = extent[0] * extent[1];
    const size_t   size = cornu_dtype_size(op->in[1].dtype);
    const char    *from = filter;
    for (int64_t tap = taps - 1; tap >= 0; tap--)
        for (int64_t c = 0; c < extent[2]; c++)
            for (int64_t f = 0; f < extent[3]; f++, from += size)
                memcpy((char *)to + (size_t)((tap * extent[3] + f) * extent[2] + c) * size, from,
                       size);
}

typedef struct {
    Columns     columns;
    const void *filter;   /* its parts, one after the other */
    char       *panels;
} Pack;

/* One part of one panel. */
static void pack_panel(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pack    *p = context;
    const Columns *c = &p->columns;
    const int64_t  F = c->walk.in_channels, part = block % c->how.parts;
    const int64_t  first = block / c->how.parts * panel_columns(c);
    c->products->pack(p->panels + panel_offset(c, first), panel_width(c, first), part * c->depth,
                      F, cornu__element(&c->how, p->filter, (part * c->columns + first) * F), 1, F,
                      smaller(panel_width(c, first), c->columns - first));
}

static void pack(const CornuKernelCall *call)
{
    Pack p = { .panels = call->out[0] };
    find_extents(&p.columns, &call->op, call->out_type, call->multiplier);
    const Columns *c = &p.columns;
    const void    *filter = call->in[1];
    const int64_t  count = cornu_type_count(call->op.in[1]);
    char          *parts = p.panels + panels_bytes(c);
    if (c->forward) {
        char *turned = parts + cornu__parts_bytes(&c->how, count);
        turn_filter(&call->op, call->in[1], turned);
        filter = turned;
    }
    p.filter = cornu__all_parts(&c->how, call->threads, filter, count, parts);
    cornu__threads_run(call->threads, ceil_divide(c->padded, panel_columns(c)) * c->how.parts,
                       pack_panel, &p);
}

/* ---- The product, and its sums ---- */

/* Prefetches what the tile after the next reads of d_y. */
static void prefetch(const void *x, size_t bytes)
{
    for (size_t line = 0; line < bytes; line += CORNU_LINE_BYTES)
        cornu__prefetch(x, 2 * bytes + line);
}

/* P of `count` positions, the first of which is element `first` of d_y, at `to`. */
static void multiply(const Columns *c, const void *d_y, int64_t first, int64_t count, float *to,
                     int thread)
{
    const int64_t F = c->walk.in_channels, x_part = c->positions * F;
    const void   *x = cornu__in_memory(&c->how, d_y, first);
    char         *made = c->x + (size_t)thread * c->x_bytes;
    CornuRun      runs[CORNU_MOST_PASSES];
    CornuTile     tile = { .x_stride = F, .runs = runs, .run_count = c->how.passes,
                           .bias = c->zeros, .y_stride = c->padded };
    if (!c->how.in_place) {
        cornu__parts(&c->how, d_y, first, count * F, made, x_part);
        x = made;
    }
    for (int i = 0; i < c->how.passes; i++)
        runs[i] = (CornuRun){ c->how.pass[i][0] * x_part, c->how.pass[i][1] * c->depth, F };
    const int64_t tiles = ceil_divide(count, c->products->tile_rows);
    for (int64_t n = 0; n < c->padded; n += panel_columns(c)) {
        tile.panel = c->panels + panel_offset(c, n);
        tile.columns = (int)panel_width(c, n);
        tile.vectors = tile.columns / c->products->lanes;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = t * count / tiles;
            tile.rows = (int)((t + 1) * count / tiles - m);
            tile.x = cornu__element(&c->how, x, m * F);
            tile.y = to + m * c->padded + n;
            if (n == 0) prefetch(tile.x, (size_t)(tile.rows * F) * c->products->size);
            c->products->tile(&tile);
        }
    }
}

/* For the outputs j, j + stride, ... where j is one of the first of a strip: where each tap of a
 * row has its element of P for j, in a row of P from position `from` on; -1: it has none. */
static void find_columns(const Columns *c, int64_t j, int64_t from, ptrdiff_t *columns)
{
    const CornuAxis *width = &c->walk.axis[1];
    for (int64_t k = 0; k < c->column_count; k++) {
        const int64_t v = k % width->taps;
        const int64_t at = j + k / width->taps + width->low - v * width->dilation;
        columns[k] = at % width->stride ? -1 : (at / width->stride - from) * c->padded +
                                               v * c->walk.out_channels;
    }
}

/* `outputs` of row i from the rows of P, for the strip whose columns these are. */
static void sum_row(const Columns *c, const float *p, int64_t i, int64_t outputs,
                    const ptrdiff_t *columns, ptrdiff_t *taps, float *y)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    C = c->walk.out_channels;
    for (int64_t j = 0; j < smaller(width->stride, outputs); j++, columns += width->taps) {
        CornuTaps sum = { .x = p, .y = y + j * C, .taps = taps,
                          .outputs = ceil_divide(outputs - j, width->stride), .channels = C,
                          .x_step = c->padded, .y_step = width->stride * C };
        for (int64_t u = 0; u < height->taps; u++) {
            const int64_t row = cornu__axis_row(height, i, u);
            const int64_t at = row % c->rows * c->positions * c->padded +
                               cornu__axis_tap(height, u) * width->taps * C;
            for (int64_t v = 0; v < width->taps && row >= 0; v++)
                if (columns[v] >= 0) taps[sum.tap_count++] = at + columns[v];
        }
        cornu__col2im()(&sum);
    }
}

/* Makes at least rows [from, to) of image b of d_y. */
static const void *image_of_d_y(const Columns *c, int64_t b, int64_t from, int64_t to, int thread)
{
    const int64_t image = c->walk.axis[0].in * c->walk.axis[1].in * c->walk.in_channels;
    char         *map = c->map + (size_t)thread * c->map_bytes;
    if (!c->unpool) return cornu__in_memory(&c->how, c->call->in[0], b * image);
    if (from < to) cornu__unpool_image(c->unpool, b, from, to, thread, map);
    return map;
}

/* A strip of some rows of one image. */
static void make_strip(void *context, int64_t block, int thread)
{
    const Columns   *c = context;
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    strip = block % c->strips, slab = block / c->strips % c->slabs;
    const int64_t    b = block / c->strips / c->slabs, C = c->walk.out_channels;
    const int64_t    i_end = (slab + 1) * height->out / c->slabs;
    const int64_t    j = strip * width->out / c->strips;
    const int64_t    j_end = (strip + 1) * width->out / c->strips;
    /* Positions of P, and of these the ones that d_y has. */
    const int64_t from = first_met(width, j), end = end_met(width, j_end);
    const int64_t q = smaller(larger(0, from), end), q_end = larger(q, smaller(end, width->in));
    float        *p = c->p + thread * c->p_count;
    ptrdiff_t    *columns = c->taps + thread * c->tap_count, *taps = columns + c->column_count;
    const bool    narrow = c->call->out_type->dtype == CORNU_BF16;
    CornuEpilogue epilogue = *c->call->epilogue;
    if (epilogue.bias) epilogue.bias = c->bias;
    for (int64_t row = 0; row < c->rows; row++) {
        float *to = p + row * c->positions * c->padded;
        memset(to, 0, (size_t)((q - from) * c->padded) * sizeof *to);
        to += (q_end - from) * c->padded;
        memset(to, 0, (size_t)((c->positions - (q_end - from)) * c->padded) * sizeof *to);
    }
    const int64_t rows = q < q_end ? height->in : 0;
    find_columns(c, j, from, columns);
    int64_t     i = slab * height->out / c->slabs, made = larger(0, first_met(height, i));
    const void *d_y = image_of_d_y(c, b, made, smaller(rows, end_met(height, i_end)), thread);
    for (; i < i_end; i++) {
        for (; made < smaller(rows, end_met(height, i + 1)); made++)
            multiply(c, d_y, (made * width->in + q) * c->walk.in_channels, q_end - q,
                     p + (made % c->rows * c->positions + q - from) * c->padded, thread);
        const int64_t at = ((b * height->out + i) * width->out + j) * C;
        float        *y = narrow ? c->row + thread * c->row_count : (float *)c->call->out[0] + at;
        sum_row(c, p, i, j_end - j, columns, taps, y);
        cornu__epilogue_apply(&epilogue, &(CornuEpilogueRows){
            .y = y, .rows = j_end - j, .columns = C, .stride = C, .first = at, .width = C });
        if (narrow)
            cornu__bf16()->narrow(y, (j_end - j) * C, (uint16_t *)c->call->out[0] + at);
        if (c->call->epilogue->gate)
            cornu__epilogue_gate(c->call->epilogue, c->call->out_type->dtype, at, (j_end - j) * C,
                                 (char *)c->call->out[0] + at * (narrow ? 2 : 4));
    }
}

static CornuStatus few(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    CornuUnpool      unpool;
    Columns          c = { .call = call, .panels = call->in[call->pool ? 2 : 1] };
    lay_out(&c, &q, &(CornuScratch){ .memory = call->scratch });
    if (call->pool) {
        cornu__unpool_start(&unpool, call, 0, c.unpool_scratch, c.unpool_count);
        c.unpool = &unpool;
    }
    memset(c.zeros, 0, (size_t)c.padded * sizeof(float));
    cornu__biases(call->epilogue, call->out_type->dtype, c.walk.out_channels, c.walk.out_channels,
                  c.bias);
    cornu__threads_run(call->threads, c.walk.batch * c.slabs * c.strips, make_strip, &c);
    return call->pool ? cornu__unpool_status(&unpool) : CORNU_OK;
}

const CornuKernel cornu__host_conv2d_few = {
    .name = "conv2d_few", .declines = few_declines, .cost = few_cost,
    .compares = CORNU_COST_STEPS, .scratch = few_scratch, .run = few,
    .takes_epilogue = true, .takes_scale = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
const CornuKernel cornu__host_conv2d_grad_input_few = {
    .name = "conv2d_few", .declines = few_declines, .cost = few_cost,
    .compares = CORNU_COST_STEPS, .joins = cornu__product_unpool_declines, .scratch = few_scratch,
    .run = few, .takes_gate = true, .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
