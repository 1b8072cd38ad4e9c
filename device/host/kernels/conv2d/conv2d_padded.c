/*
 * conv2d and its input gradient on tile registers: bf16 in, f32 or bf16 out, f32 in the sums.
 *
 *     x (B, H, W, C), filter (h, w, C, F), y (B, Ho, Wo, F), all row-major
 *
 * Tile registers are only fast if they are full: 32 rows, and sums of whole 32 elements. So a block
 * copies the rows of x that it reads, with zeros around them. Then all outputs meet the same runs,
 * and a tile's rows go on from one row of outputs to the next; the positions between two rows mean
 * nothing and are not stored. The zeros that end a row of x are those that start the next one.
 *
 * Along the width a position makes a group of outputs: the columns of a tile are the filter's, once
 * for each of them, and the filter is as wide as what they meet, with zeros where one of them meets
 * nothing. So few filters fill registers, and results leave in longer rows. How many outputs that
 * are, and to how many channels x is padded, is what takes the fewest cycles: rows of x that cross
 * lines of the cache load six times slower than others, runs are completed to 32 elements.
 *
 * With a stride, rows of x are sorted by their remainders, so that neighbouring outputs are the
 * same distance apart from row to row, too. The input gradient is the same product over d_y with
 * the filter's taps and channels transposed. Its rows of outputs have phases, the remainders by the
 * stride, each with taps of its own, and each phase is a convolution without a stride; along the
 * width a group has all phases. The filter is packed in advance into panels two registers wide, the
 * rows of taps of one phase after those of another.
 *
 * Zeros in the panel meet neighbours in x, and zeros around x meet the filter. So an infinity in x
 * makes NaN not only of those outputs that it belongs to, and one in the filter of those beside
 * padding.
 *
 * Before a max pooling the map stays in the cache and only what the pool keeps is written; bias and
 * activation come last. Where d_y is the gradient of a max pooling, each block makes what it reads
 * of it.
 *
 * Reference: device/ops/conv2d.c; tests/device/host/kernels/test_kernels.c compares them.
 * Source: own; several outputs as columns are products with a Toeplitz matrix.
 * Gain, Xeon (family 6, model 207), tpu, 128 images of 28 x 28, one core, without it and with: 1
 *     channel, 12 filters of 3 x 3, 1.60 ms, 0.39; the gradient of 12 channels and 24 filters of
 *     6 x 6 with strides of 2, 4.27 ms, 1.00; 16 channels, 16 filters of 3 x 3, 1.64 ms, 0.75.
 */
#include "../../../inference_internal.h"
#include "../../../integer_internal.h"
#include "../../isa/transpose.h"
#include "conv2d_pool.h"
#include "convolution.h"
#include "../kernels.h"
#include "../precision.h"
#include "../unpool.h"

#include <string.h>

enum {
    WHOLE = 32,                /* elements of a sum that a register holds             */
    WINDOW = 2,                /* of pools that are joined, in both axes              */
    MOST_COLUMNS = 192,        /* of several outputs together                         */
    TILE = 250, STORING = 100, /* cycles of a tile beside its products, and for each
                                  vector of columns                                   */
    COPYING = 128,             /* of copying its positions one by one                 */
    BLOCK_BYTES = 128 << 10    /* of x, if a row of outputs takes less                */
};

/* Along one axis, where `group` outputs follow each other in a group. */
typedef struct {
    int64_t group;
    int64_t step;            /* rows of x between two groups                       */
    int64_t first, reach;    /* rows of x that the first group meets, if they exist */
} Sweep;

/* Rows of outputs that meet the same taps. */
typedef struct {
    int64_t    height;
    CornuRun  *runs;
    int64_t    run_count;
    ptrdiff_t *y;            /* of the positions of a block: elements from its first output to
                                theirs, or -1 */
} Phase;

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuWalk              walk;
    Sweep                  height, width;
    int64_t                phase_count;
    int64_t                depth;        /* K: all runs, completed                         */
    int64_t                columns;      /* of a position: those of its outputs            */
    int64_t                padded;       /* rounded up to whole registers                  */
    int64_t                channels;     /* of x in a block: C, or more for alignment      */
    int64_t                left;         /* columns of zeros before a row of x             */
    int64_t                pitch;        /* columns from one row to the next               */
    int64_t                bands, rows;  /* blocks of an image, and the most rows of outputs
                                            of a phase in one                              */
    int64_t                plane;        /* rows of x with the same remainder in a block   */
    int64_t                positions;    /* of a phase in a block                          */
    int64_t                x_count;      /* elements of a block's x                        */
    uint16_t              *x;            /* per thread                                     */
    Phase                 *phases;
    const char            *panels;
    float                 *zeros, *bias; /* and after it what finish has of columns        */
    CornuFinish            finish;
    bool                   pools;
    CornuPool              pool;         /* after the convolution, if it pools             */
    char                  *maps;         /* before pooling, per thread, and after them a row
                                            that becomes bf16                              */
    int64_t                map_bytes, row_bytes;
    CornuUnpool           *unpool;       /* NULL: x is in memory                           */
    uint16_t              *unpooled;     /* else an image of it, per thread                */
    float                 *unpool_scratch;
    int64_t                x_image, unpool_count;
} Padded;

/* ---- Geometry ---- */

/* Whether output `out` of the first group meets a row of x by this slot, and which, be it beside
 * x. */
static bool meets(const CornuAxis *axis, int64_t out, int64_t slot, int64_t *row)
{
    const int64_t shift = cornu__axis_tap(axis, slot) * axis->dilation - axis->low;
    *row = axis->transposed ? (out - shift) / axis->stride : out * axis->stride + shift;
    return !axis->transposed || *row * axis->stride == out - shift;
}

/* group: a multiple of the axis' step. */
static Sweep sweep_of(const CornuAxis *axis, int64_t group)
{
    Sweep   s = { group, axis->transposed ? group / axis->stride : group * axis->stride, 0, 0 };
    int64_t row, first = INT64_MAX, last = INT64_MIN;
    for (int64_t out = 0; out < smaller(group, axis->out); out++)
        for (int64_t slot = 0; slot < axis->taps; slot++) {
            if (!meets(axis, out, slot, &row)) continue;
            first = smaller(first, row);
            last = larger(last, row);
        }
    if (first <= last) s.first = first, s.reach = last - first + 1;
    return s;
}

/* Groups of a row of outputs, and positions from one row to the next. */
static int64_t row_groups(const Padded *c) { return c->walk.axis[1].out / c->width.group; }

static int64_t row_positions(const Padded *c) { return c->pitch / c->width.step; }

/* Rows of outputs of a phase; phase 0 has most. */
static int64_t outputs(const Padded *c, int64_t phase)
{
    return ceil_divide(c->walk.axis[0].out - phase, c->height.group);
}

/* Rows of x that so many rows of outputs meet. */
static int64_t rows_met(const Padded *c, int64_t rows)
{
    return (rows - 1) * c->height.step + c->height.reach;
}

/* The runs of a phase, one for each row of taps that it meets: all columns of x that a position
 * meets. They meet the panel from row k on; starts: where, by row of taps. Either may be NULL.
 * Returns the row after the last. */
static int64_t find_runs(const Padded *c, int64_t phase, int64_t k, CornuRun *runs, int64_t *starts)
{
    const CornuAxis *height = &c->walk.axis[0];
    const int64_t    length = ceil_multiple(c->width.reach * c->channels, WHOLE);
    int64_t          row;
    for (int64_t u = 0; u < height->taps; u++) {
        if (!meets(height, phase, u, &row)) continue;
        const int64_t step = c->height.step, from = row - c->height.first;
        const int64_t at = (from % step * c->plane + from / step) * c->pitch * c->channels;
        if (runs) *runs++ = (CornuRun){ at, k, length };
        if (starts) starts[cornu__axis_tap(height, u)] = k;
        k += length;
    }
    return k;
}

static void set_width(Padded *c, int64_t group, int64_t channels)
{
    const CornuAxis *width = &c->walk.axis[1];
    c->width = sweep_of(width, group);
    c->channels = channels;
    c->columns = group * c->walk.out_channels;
    c->padded = ceil_multiple(c->columns, c->products->lanes);
    const int64_t met = (row_groups(c) - 1) * c->width.step + c->width.reach;
    const int64_t right = smaller(met, larger(0, c->width.first + met - width->in));
    c->left = smaller(met, larger(0, -c->width.first));
    c->pitch = larger(met - smaller(c->left, right), row_groups(c) * c->width.step);
    c->pitch = ceil_multiple(larger(c->pitch, c->left), c->width.step);
    c->depth = 0;
    for (int64_t p = 0; p < c->phase_count; p++) c->depth = find_runs(c, p, c->depth, NULL, NULL);
}

/* About the cycles that an image takes. Multiplying 16 rows by 16 columns by 32 elements
 * takes 16, loading as many of x 8 if each row lies in a line of the cache, but 52 if all cross
 * lines, if half of them do 20. */
static int64_t cost(const Padded *c)
{
    const int64_t x_step = c->width.step * c->channels, vectors = c->padded / c->products->lanes;
    const int64_t load = x_step % WHOLE == 0 ? 8 : x_step % (WHOLE / 2) == 0 ? 20 : 45;
    const int64_t pair = larger(64, 2 * load), single = larger(32, 2 * load + 8);
    const int64_t copying = c->channels > c->walk.in_channels ? COPYING * c->width.step : 0;
    const int64_t cycles = c->depth / WHOLE * (vectors / 2 * pair + vectors % 2 * single) +
                           c->phase_count * (TILE * ceil_divide(vectors, 2) + STORING * vectors +
                                             copying);
    const int64_t count = (outputs(c, 0) - 1) * row_positions(c) + row_groups(c);
    return cycles * ceil_divide(count, c->products->tile_rows);
}

/* Chooses how many outputs that follow each other in a row are columns of the same position, and
 * the channels. The former fills registers where there are few of either: the columns are then
 * those of a larger filter, with zeros where it does not meet an output. */
static void choose_width(Padded *c)
{
    const CornuAxis *width = &c->walk.axis[1];
    const int64_t    C = c->walk.in_channels, step = cornu__axis_step(width);
    int64_t          best = INT64_MAX, group = step, channels = C;
    for (int64_t g = step; g <= width->out; g += step)
        for (int64_t unit = 1; unit <= WHOLE; unit = unit == 1 ? WHOLE / 2 : 2 * unit) {
            if (width->out % g || (g > step && g * c->walk.out_channels > MOST_COLUMNS)) continue;
            set_width(c, g, ceil_multiple(C, unit));
            const int64_t cycles = cost(c);
            if (cycles < best) best = cycles, group = g, channels = c->channels;
        }
    set_width(c, group, channels);
}

static void find_extents(Padded *c, const CornuOpCall *op, const CornuType *out_type,
                         CornuMultiplier multiplier)
{
    c->how = cornu__multiplication(multiplier, op->in[0].dtype);
    c->products = c->how.products;
    c->walk = cornu__walk(op, out_type);
    c->height = sweep_of(&c->walk.axis[0], cornu__axis_step(&c->walk.axis[0]));
    c->phase_count = smaller(c->height.group, c->walk.axis[0].out);
    c->x_image = c->walk.axis[0].in * c->walk.axis[1].in * c->walk.in_channels;
    choose_width(c);
}

/* How x lies in a block, and how large blocks are. */
static void cut(Padded *c, int threads)
{
    const int64_t P = c->channels, window = c->pools ? WINDOW : 1, all = outputs(c, 0) / window;
    const int64_t bytes = c->pitch * P * (int64_t)sizeof(uint16_t) * c->height.step * window;
    c->bands = larger(ceil_divide(all * bytes, BLOCK_BYTES),
                      ceil_divide(2 * threads, larger(1, c->walk.batch)));
    c->bands = larger(1, smaller(c->bands, all));
    c->rows = larger(1, ceil_divide(all, c->bands) * window);
    c->plane = ceil_divide(rows_met(c, c->rows), c->height.step);
    c->positions = (c->rows - 1) * row_positions(c) + row_groups(c);
    c->x_count = ceil_multiple((c->height.step * c->plane * c->pitch + c->left) * P + WHOLE, WHOLE);
}

/* Where the runs of each phase are, and its outputs. */
static void place_phases(Padded *c, CornuRun *next, ptrdiff_t *y)
{
    for (int64_t p = 0, k = 0; p < c->phase_count; p++) {
        Phase *phase = &c->phases[p];
        phase->runs = next;
        phase->y = y + p * c->positions;
        const int64_t end = find_runs(c, p, k, next, NULL);
        phase->run_count = end > k ? (end - k) / next->length : 0;
        next += phase->run_count;
        k = end;
    }
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(Padded *c, const CornuQuery *q, CornuScratch *scratch)
{
    const bool unpools = cornu__query_unpools(q);
    c->pools = cornu__query_pools(q);
    find_extents(c, q->op, q->out_type, q->machine.multiplier);
    cut(c, q->machine.threads);
    const size_t  threads = (size_t)q->machine.threads;
    const int64_t F = c->walk.out_channels, size = (int64_t)cornu_dtype_size(q->out_type->dtype);
    const int64_t row = c->walk.axis[1].out * F;
    c->map_bytes = c->pools ? (int64_t)cornu__aligned((size_t)(c->rows * row * size)) : 0;
    c->row_bytes = c->pools ? (int64_t)cornu__aligned((size_t)(row / WINDOW) * sizeof(float)) : 0;
    c->unpool_count = unpools ? ceil_multiple(cornu__unpool_scratch(&q->op->in[0]), WHOLE) : 0;
    const size_t image = unpools ? cornu__aligned((size_t)c->x_image * sizeof(uint16_t)) : 0;
    c->x = cornu__take(scratch, threads * (size_t)c->x_count * sizeof *c->x);
    c->zeros = cornu__take_floats(scratch, c->padded);
    c->bias = cornu__take_floats(scratch, (1 + CORNU_FINISH_COLUMNS) * c->padded);
    cornu__take_line(scratch);
    c->maps = cornu__take(scratch, threads * (size_t)(c->map_bytes + c->row_bytes));
    c->unpool_scratch = cornu__take_floats(scratch, q->machine.threads * c->unpool_count);
    c->unpooled = cornu__take(scratch, threads * image);
    c->phases = cornu__take(scratch, (size_t)c->phase_count * sizeof *c->phases);
    cornu__take_line(scratch);
    CornuRun *runs = cornu__take(scratch, (size_t)c->walk.axis[0].taps * sizeof *runs);
    cornu__take_line(scratch);
    ptrdiff_t *y = cornu__take(scratch, (size_t)(c->phase_count * c->positions) * sizeof *y);
    if (c->phases) place_phases(c, runs, y);
}

static size_t conv2d_scratch(const CornuQuery *q)
{
    Padded       c = { 0 };
    CornuScratch scratch = { 0 };
    lay_out(&c, q, &scratch);
    return scratch.bytes;
}

/* Taps that an output would meet if x had no end. */
static int64_t taps_of(const CornuAxis *axis, int64_t out)
{
    int64_t count = 0, row;
    for (int64_t slot = 0; slot < axis->taps; slot++) count += meets(axis, out, slot, &row);
    return count;
}

/* Of what tiles multiply that which is not padding or beside a row; of the small maps where most is
 * conv2d.c takes the same position of several images. The batch does not matter, so that an image
 * has the same bits in every batch. */
static int64_t percent_of_tiles(const Padded *c)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    tile = c->products->tile_rows;
    int64_t          down = 0, across = 0;
    for (int64_t j = 0; j < c->width.group; j++) across += taps_of(width, j);
    for (int64_t p = 0; p < c->phase_count; p++) {
        const int64_t count = (outputs(c, p) - 1) * row_positions(c) + row_groups(c);
        down += (count > tile ? ceil_multiple(count, tile) : ceil_multiple(count, tile / 2)) *
                taps_of(height, p);
    }
    if (down * across == 0) return 100;
    return 100 * cornu__taps_met(height) * cornu__taps_met(width) / (down * across);
}

/* Rows of outputs are whole groups, and what lies between taps would be multiplied, too. */
static CornuDecline padded_declines(const CornuQuery *q)
{
    enum { PERCENT = 60 };
    const CornuMultiplication m = cornu__multiplication(q->machine.multiplier, q->op->in[0].dtype);
    Padded                    c = { .walk = cornu__walk(q->op, q->out_type) };
    const CornuAxis          *width = &c.walk.axis[1];
    const CornuDecline        decline = cornu__product_declines(q);
    if (decline.needs) return decline;
    if (!cornu__sums_on_tiles(&m)) return cornu__needs(false, "bf16, and tile registers (AMX)");
    if (width->dilation > 1) return cornu__needs(false, "no dilation along the width");
    if (width->out % cornu__axis_step(width))
        return cornu__needs(false, "rows of outputs of whole strides");
    find_extents(&c, q->op, q->out_type, q->machine.multiplier);
    const int64_t percent = percent_of_tiles(&c);
    return percent >= PERCENT ? CORNU_TAKES
                              : cornu__needs_least(PERCENT, "percent of tiles filled", percent);
}

/* Where the outputs of each phase lie. */
static void find_outputs(Padded *c)
{
    const int64_t row = c->walk.axis[1].out * c->walk.out_channels, groups = row_groups(c);
    for (int64_t p = 0; p < c->phase_count; p++) {
        Phase     *phase = &c->phases[p];
        ptrdiff_t *y = phase->y, at = p * row;
        phase->height = outputs(c, p);
        for (int64_t i = 0; i < c->rows; i++, y += row_positions(c), at += c->height.group * row) {
            for (int64_t j = 0; j < groups; j++) y[j] = at + j * c->columns;
            for (int64_t j = groups; j < row_positions(c) && i + 1 < c->rows; j++) y[j] = -1;
        }
    }
}

/* ---- The filter ---- */

static int64_t panel_width(const Padded *c, int64_t n)
{
    return smaller(2 * c->products->lanes, c->padded - n);
}

static int64_t panel_offset(const Padded *c, int64_t n)
{
    return n * c->depth * (int64_t)sizeof(uint16_t);
}

static size_t panels_bytes(const Padded *c)
{
    return cornu__aligned((size_t)panel_offset(c, c->padded));
}

/* After the panels there is space for their rows one after the other, of all columns, and for where
 * the rows of taps start among them. */
static size_t rows_bytes(const Padded *c)
{
    return cornu__aligned((size_t)(c->depth * c->columns) * sizeof(uint16_t));
}

static size_t pack_bytes(const CornuQuery *q)
{
    Padded c = { 0 };
    find_extents(&c, q->op, q->out_type, q->machine.multiplier);
    return panels_bytes(&c) + rows_bytes(&c) +
           cornu__aligned((size_t)c.walk.axis[0].taps * sizeof(int64_t));
}

typedef struct {
    Padded          padded;
    const uint16_t *filter;
    char           *panels;
    const uint16_t *rows;
    uint16_t       *spread;
    int64_t        *starts;   /* -1: no output meets it */
} Pack;

/* The filter's rows of one row of taps. */
static void spread_taps(void *context, int64_t u, int thread)
{
    (void)thread;
    const Pack      *p = context;
    const Padded    *c = &p->padded;
    const CornuAxis *width = &c->walk.axis[1];
    const int64_t    C = c->walk.in_channels, F = c->walk.out_channels;
    const int64_t    length = ceil_multiple(c->width.reach * c->channels, WHOLE);
    uint16_t        *to = p->spread + p->starts[u] * c->columns;
    int64_t          column;
    if (p->starts[u] < 0) return;
    memset(to, 0, (size_t)(length * c->columns) * sizeof *to);
    for (int64_t j = 0; j < c->width.group; j++)
        for (int64_t v = 0; v < width->taps; v++) {
            if (!meets(width, j, v, &column)) continue;
            const int64_t   tap = u * width->taps + cornu__axis_tap(width, v);
            const uint16_t *from = p->filter + tap * C * F;
            uint16_t       *at = to + (column - c->width.first) * c->channels * c->columns + j * F;
            if (width->transposed) cornu__transposes()->halves(from, C, F, C, at, c->columns);
            else for (int64_t k = 0; k < C; k++)
                memcpy(at + k * c->columns, from + k * F, (size_t)F * sizeof *at);
        }
}

static void pack_panel(void *context, int64_t panel, int thread)
{
    (void)thread;
    const Pack   *p = context;
    const Padded *c = &p->padded;
    const int64_t n = panel * 2 * c->products->lanes;
    c->products->pack(p->panels + panel_offset(c, n), panel_width(c, n), 0, c->depth, p->rows + n,
                      c->columns, 1, smaller(panel_width(c, n), c->columns - n));
}

static void pack(const CornuKernelCall *call)
{
    Pack p = { .filter = call->in[1], .panels = call->out[0] };
    find_extents(&p.padded, &call->op, call->out_type, call->multiplier);
    const Padded *c = &p.padded;
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    p.rows = p.spread = (uint16_t *)(void *)(p.panels + panels_bytes(c));
    p.starts = (int64_t *)(void *)(p.panels + panels_bytes(c) + rows_bytes(c));
    if (!width->transposed && c->width.group == 1 &&
        c->depth == height->taps * width->taps * c->walk.in_channels) {
        p.rows = p.filter;   /* has the same rows */
    } else {
        for (int64_t u = 0; u < height->taps; u++) p.starts[u] = -1;
        for (int64_t phase = 0, k = 0; phase < c->phase_count; phase++)
            k = find_runs(c, phase, k, NULL, p.starts);
        cornu__threads_run(call->threads, height->taps, spread_taps, &p);
    }
    cornu__threads_run(call->threads, ceil_divide(c->padded, panel_width(c, 0)), pack_panel, &p);
}

/* ---- The product ---- */

/* The block: outputs from row i of each phase on, of image b. */
typedef struct {
    int64_t     b, i, rows;
    const void *x;
    char       *y;           /* of the first output                */
    const float *term;       /* laid out as y; NULL: none          */
} Block;

/* Copies positions of C elements, to P elements from each other. What lies between them is never
 * memory that nobody has written. */
static void copy_positions(const uint16_t *x, int64_t count, int64_t C, uint16_t *to, int64_t P)
{
    const size_t bytes = (size_t)C * sizeof *x, gap = (size_t)(P - C) * sizeof *x;
    if (P == C) {
        memcpy(to, x, (size_t)count * bytes);
        return;
    }
    for (int64_t j = 0; j < count; j++, x += C, to += P) {
        if (P == WHOLE && (count - j) * C >= WHOLE) memcpy(to, x, WHOLE * sizeof *x);
        else if (P == WHOLE / 2 && (count - j) * C >= WHOLE / 2)
            memcpy(to, x, WHOLE / 2 * sizeof *x);
        else memset((char *)memcpy(to, x, bytes) + bytes, 0, gap);
    }
}

/* The rows of x that the block meets. */
static const uint16_t *copy_x(const Padded *c, int64_t b, int64_t i, int64_t rows, int thread)
{
    const CornuAxis *height = &c->walk.axis[0], *width = &c->walk.axis[1];
    const int64_t    C = c->walk.in_channels, P = c->channels;
    const int64_t    top = i * c->height.step + c->height.first;
    const int64_t    from = smaller(width->in, larger(0, c->width.first));
    const int64_t    columns = smaller(width->in - from, c->pitch - c->left);
    const int64_t    end = (c->left + columns) * P, row_count = c->pitch * P;
    const uint16_t  *x = (const uint16_t *)c->call->in[0] + b * c->x_image;
    uint16_t        *to = c->x + thread * c->x_count;
    if (c->unpool) {
        uint16_t     *map = (uint16_t *)(void *)((char *)c->unpooled + (size_t)thread *
                                                 cornu__aligned((size_t)c->x_image * sizeof *map));
        const int64_t first = smaller(height->in, larger(0, top));
        const int64_t last = smaller(height->in, top + rows_met(c, rows));
        if (first < last) cornu__unpool_image(c->unpool, b, first, last, thread, map);
        x = map;
    }
    for (int64_t r = 0; r < c->height.step * c->plane; r++) {
        const int64_t row = top + r;
        uint16_t     *at = to + (r % c->height.step * c->plane + r / c->height.step) * row_count;
        if (r >= rows_met(c, rows) || row < 0 || row >= height->in) {
            memset(at, 0, (size_t)row_count * sizeof *at);
            continue;
        }
        memset(at, 0, (size_t)(c->left * P) * sizeof *at);
        copy_positions(x + (row * width->in + from) * C, columns, C, at + c->left * P, P);
        memset(at + end, 0, (size_t)(row_count - end) * sizeof *at);
    }
    uint16_t *beyond = to + c->height.step * c->plane * row_count;
    memset(beyond, 0, (size_t)(c->x_count - (beyond - to)) * sizeof *beyond);
    return to;
}

/* One phase of a block against one panel. The last tile is full, too, and its first rows are those
 * that the one before it has made. */
static void multiply(const Padded *c, CornuTile *tile, const Phase *phase, const Block *block)
{
    const int64_t rows = smaller(block->rows, phase->height - block->i);
    const int64_t count = (rows - 1) * row_positions(c) + row_groups(c);
    ptrdiff_t     last[2 * WHOLE];
    if (rows <= 0) return;
    tile->runs = phase->runs;
    tile->run_count = phase->run_count;
    tile->rows = (int)smaller(count, c->products->tile_rows);
    for (int64_t m = 0; m < count; m += tile->rows) {
        const int64_t made = larger(0, m + tile->rows - count);
        tile->y_rows = phase->y + m;
        if (made) {
            for (int64_t r = 0; r < tile->rows; r++)
                last[r] = r < made ? -1 : phase->y[m - made + r];
            tile->y_rows = last;
        }
        tile->x = (const uint16_t *)block->x + (m - made) * tile->x_stride;
        c->products->tile(tile);
    }
}

static void multiply_all(const Padded *c, CornuTile *tile, const Block *block)
{
    const int64_t y_size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    const float  *bias = c->pools ? c->zeros : c->bias;
    tile->x_stride = c->width.step * c->channels;
    for (int64_t n = 0; n < c->padded; n += panel_width(c, n)) {
        tile->panel = c->panels + panel_offset(c, n);
        tile->bias = bias + n;
        if (!c->pools) tile->finish = cornu__finish_from(&c->finish, n);
        tile->term = block->term ? block->term + n : NULL;
        tile->vectors = (int)(panel_width(c, n) / c->products->lanes);
        tile->columns = (int)smaller(panel_width(c, n), c->columns - n);
        tile->y = block->y + n * y_size;
        for (int64_t p = 0; p < c->phase_count; p++) multiply(c, tile, &c->phases[p], block);
    }
}

/* Some rows of the pool. */
static void make_pool(const Padded *c, Block *block, int64_t band, int thread)
{
    char         *map = c->maps + thread * (c->map_bytes + c->row_bytes);
    CornuPool     pool = c->pool;
    CornuTile     tile = { .narrow = c->call->out_type->dtype == CORNU_BF16 };
    const int64_t first = band * pool.height.out / c->bands;
    const int64_t end = (band + 1) * pool.height.out / c->bands;
    block->i = first * WINDOW;
    block->rows = (end - first) * WINDOW;
    block->x = copy_x(c, block->b, block->i, block->rows, thread);
    block->y = map;
    multiply_all(c, &tile, block);
    pool.height.out = end - first;
    pool.height.in = block->rows;
    cornu__conv2d_pool(c->call, &pool, c->bias, map, block->b * c->pool.height.out + first,
                       (float *)(void *)(map + c->map_bytes));
}

static void make_block(void *context, int64_t index, int thread)
{
    const Padded        *c = context;
    const CornuAxis     *height = &c->walk.axis[0];
    const int64_t        row = c->walk.axis[1].out * c->walk.out_channels;
    const bool           narrow = c->call->out_type->dtype == CORNU_BF16;
    const CornuEpilogue *epilogue = c->call->epilogue;
    const int64_t        band = index % c->bands;
    Block                block = { .b = index / c->bands };
    if (c->pools) {
        make_pool(c, &block, band, thread);
        return;
    }
    const int64_t all = outputs(c, 0), step = c->height.group;
    block.i = band * all / c->bands;
    block.rows = (band + 1) * all / c->bands - block.i;
    const int64_t first = (block.b * height->out + block.i * step) * row;
    const int64_t rows = smaller(height->out, (block.i + block.rows) * step) - block.i * step;
    CornuTile     tile = { .narrow = narrow };
    block.x = copy_x(c, block.b, block.i, block.rows, thread);
    block.y = (char *)c->call->out[0] + first * (narrow ? 2 : 4);
    block.term = epilogue->term ? epilogue->term + first : NULL;
    multiply_all(c, &tile, &block);
    if (epilogue->gate)
        cornu__epilogue_gate(epilogue, c->call->out_type->dtype, first, rows * row, block.y);
    const CornuEpilogue rest = cornu__epilogue_after_tiles(epilogue);
    if (rest.activation != CORNU_OP_COUNT)
        cornu__epilogue_apply(&rest, &(CornuEpilogueRows){
            .y = (float *)(void *)block.y, .rows = rows * c->walk.axis[1].out,
            .columns = c->walk.out_channels, .stride = c->walk.out_channels,
            .width = c->walk.out_channels });
}

static CornuStatus conv2d(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    const bool       unpools = cornu__query_unpools(&q);
    CornuUnpool      unpool;
    Padded           c = { .call = call, .panels = call->in[unpools ? 2 : 1] };
    lay_out(&c, &q, &(CornuScratch){ .memory = call->scratch });
    find_outputs(&c);
    if (c.pools) c.pool = cornu__pool(call->pool);
    if (unpools) {
        cornu__unpool_start(&unpool, call, 0, c.unpool_scratch, c.unpool_count);
        c.unpool = &unpool;
    }
    cornu__biases(call->epilogue, call->out_type->dtype, c.walk.out_channels, c.padded, c.bias);
    c.finish = cornu__padded_finish(call->epilogue, c.walk.out_channels, c.padded,
                                    c.bias + c.padded);
    for (int64_t n = c.walk.out_channels; n < c.columns; n++)
        for (int i = 0; i < 1 + CORNU_FINISH_COLUMNS; i++)
            c.bias[i * c.padded + n] = c.bias[i * c.padded + n - c.walk.out_channels];
    memset(c.zeros, 0, (size_t)c.padded * sizeof(float));
    cornu__threads_run(call->threads, c.walk.batch * c.bands, make_block, &c);
    return unpools ? cornu__unpool_status(&unpool) : CORNU_OK;
}

const CornuKernel cornu__host_conv2d_padded = {
    .name = "conv2d_padded", .declines = padded_declines, .joins = cornu__joins_two_by_two,
    .scratch = conv2d_scratch, .run = conv2d, .takes_epilogue = true, .takes_scale = true,
    .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
const CornuKernel cornu__host_conv2d_grad_input_padded = {
    .name = "conv2d_padded", .declines = padded_declines, .joins = cornu__product_unpool_declines,
    .scratch = conv2d_scratch, .run = conv2d, .takes_gate = true,
    .pack_bytes = pack_bytes, .pack = pack, .packs = 1,
};
