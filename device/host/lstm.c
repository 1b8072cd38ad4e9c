/*
 * lstm and lstm_grad (device/ops/lstm.c): z and gates (B, T, 4U), h and cells (B, T, U), kernel
 * (U, 4U), all f32 or all bf16, cells f32 or as the rest; sums, states and cell updates in f32.
 *
 * The kernel is packed into panels once per call. Rows of the batch do not see each other, so a
 * block of rows runs through all steps on one thread without waiting for others. What a step's
 * product reads, h or d_z of the step before, stands in rows of its own, close together: where it
 * is in h or d_z, rows are T U or 4 T U elements apart and would share few sets of the cache.
 * Blocks depend on the batch alone.
 *
 *     forwards    for 32 units at a time: 4 gates' sums of h U, then the update of the cell
 *     backwards   the updates of all units, then d_h = d_z U^T for the step before
 */
#include <string.h>

#include "../integer_internal.h"
#include "recurrent.h"

enum {
    UNITS = CORNU_CELL_UNITS,
    GATES = 4,
    PACK_ROWS = 64,     /* of the kernel, packed by one block; even        */
    LEAST_ROWS = 32,    /* of a block where there are several              */
    PADDING = 32        /* between rows, so that their starts spread over the cache's sets */
};

/* Operands and results of the two ops. */
enum { Z, KERNEL, H0, C0, MASK, H = 0, LAST_C, CELLS, GATES_OUT };
enum { GATES_IN, G_CELLS, G_C0, G_KERNEL, D_H, D_C, G_MASK, D_Z = 0, D_H0, D_C0 };

typedef struct {
    const CornuKernelCall *call;
    CornuPrecision         precision;
    const CornuProducts   *products;
    bool    backward, narrow, narrow_cells, reverse;
    int64_t batch, steps, units;
    int64_t groups, k;            /* products: panels are of 4 gates over U, or of 1 over 4 U */
    int64_t depth, padded;        /* k and units, rounded up to pairs and registers           */
    int64_t blocks, rows;         /* of the batch, and at most in one                         */
    int64_t stride, plane;        /* elements between rows of x, and between its parts        */
    size_t  x_bytes, thread_bytes;
    const uint8_t *mask;
    const void    *kernel;        /* all its parts */
    void   *kernel_parts;
    char   *packed, *threads;
} Lstm;

static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t cells_operand(bool backward) { return backward ? G_CELLS : C0; }

bool cornu__lstm_accepts(const CornuOpCall *op, CornuMultiplier multiplier)
{
    const bool       backward = op->id == CORNU_OP_LSTM_GRAD;
    const CornuDtype dtype = op->in[0].dtype, cells = op->in[cells_operand(backward)].dtype;
    return (dtype == CORNU_F32 || (dtype == CORNU_BF16 && multiplier == CORNU_MULTIPLIES_BF16)) &&
           (cells == CORNU_F32 || cells == dtype);
}

/* Sizes and, in this order, the parts of the scratch memory; returns its bytes. */
static size_t lay_out(Lstm *p, const CornuOpCall *op, CornuMultiplier multiplier, int threads,
                      char *scratch)
{
    const int64_t *z = op->in[0].shape.extent;
    p->backward = op->id == CORNU_OP_LSTM_GRAD;
    p->reverse = op->attributes->recurrence.reverse;
    p->narrow = op->in[0].dtype == CORNU_BF16;
    p->narrow_cells = op->in[cells_operand(p->backward)].dtype == CORNU_BF16;
    p->batch = z[0], p->steps = z[1], p->units = z[2] / GATES;
    p->precision = cornu__precision(multiplier, op->in[0].dtype);
    p->products = p->precision.products;
    p->groups = p->backward ? 1 : GATES;
    p->k = p->backward ? GATES * p->units : p->units;
    p->depth = ceil_divide(p->k, p->products->depth) * p->products->depth;
    p->padded = ceil_divide(p->units, p->products->lanes) * p->products->lanes;
    p->blocks = larger(1, p->batch / LEAST_ROWS);
    p->rows = ceil_divide(p->batch, p->blocks);
    p->stride = ceil_divide(p->k, PADDING) * PADDING + PADDING;
    p->plane = p->rows * p->stride;

    const size_t parts = (size_t)p->precision.parts;
    const size_t kernel = cornu__parts_bytes(&p->precision, GATES * p->units * p->units);
    const size_t packed = align(parts * (size_t)(p->groups * p->depth * p->padded) *
                                p->products->size);
    p->x_bytes = align(parts * (size_t)p->plane * p->products->size);
    p->thread_bytes = (p->backward ? 1 : 2) * p->x_bytes +
                      (size_t)(3 * p->rows * (p->padded + UNITS) + p->rows * GATES * UNITS) *
                          sizeof(float);
    if (scratch) {
        p->kernel_parts = scratch;
        p->packed = scratch + kernel;
        p->threads = p->packed + packed;
    }
    return kernel + packed + (size_t)threads * align(p->thread_bytes);
}

size_t cornu__lstm_scratch(const CornuOpCall *op, CornuMultiplier multiplier, int threads)
{
    Lstm p;
    return lay_out(&p, op, multiplier, threads, NULL);
}

/* ---- Products ---- */

static int64_t panel_width(const Lstm *p, int64_t unit)
{
    return smaller(2 * p->products->lanes, p->padded - unit);
}

static char *panel(const Lstm *p, int64_t group, int64_t unit)
{
    return p->packed + (group * p->padded + unit) * p->depth * p->precision.parts *
                       (int64_t)p->products->size;
}

/* Some rows of one part of one group into all its panels. */
static void pack(void *context, int64_t block, int thread)
{
    (void)thread;
    const Lstm   *p = context;
    const int64_t chunks = ceil_divide(p->k, PACK_ROWS), columns = GATES * p->units;
    const int64_t k = block % chunks * PACK_ROWS, count = smaller(PACK_ROWS, p->k - k);
    const int64_t part = block / chunks % p->precision.parts;
    const int64_t group = block / chunks / p->precision.parts;
    const int64_t k_step = p->backward ? 1 : columns, n_step = p->backward ? columns : 1;
    for (int64_t unit = 0, width; unit < p->padded; unit += width) {
        width = panel_width(p, unit);
        const int64_t from = part * p->units * columns + group * p->units + k * k_step +
                             unit * n_step;
        p->products->pack(panel(p, group, unit), width, part * p->depth + k, count,
                          cornu__element(&p->precision, p->kernel, from), k_step, n_step,
                          smaller(width, p->units - unit));
        if (k + count == p->k && p->depth > p->k)   /* the odd one's other half */
            p->products->pack(panel(p, group, unit), width, part * p->depth + p->k, 1, p->kernel,
                              0, 0, 0);
    }
}

/* y = x times `count` columns of a group from `unit` on, rounded up to registers. */
static void multiply(const Lstm *p, const char *x, int64_t rows, int64_t group, int64_t unit,
                     int64_t count, float *y, int64_t y_stride)
{
    static const float none[UNITS];
    const int64_t tiles = ceil_divide(rows, p->products->tile_rows);
    CornuRun      runs[6];
    for (int pass = 0; pass < p->precision.passes; pass++)
        runs[pass] = (CornuRun){ p->precision.pass[pass][0] * p->plane,
                                 p->precision.pass[pass][1] * p->depth, p->k };
    CornuTile tile = { .x_stride = p->stride, .runs = runs, .run_count = p->precision.passes,
                       .bias = none, .y_stride = y_stride };
    const int64_t end = smaller(p->padded, unit + count);
    for (int64_t first = unit, width; first < end; first += width) {
        width = panel_width(p, first);
        tile.panel = panel(p, group, first);
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)width;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = t * rows / tiles;
            tile.rows = (int)((t + 1) * rows / tiles - m);
            tile.x = cornu__element(&p->precision, x, m * p->stride);
            tile.y = y + m * y_stride + first - unit;
            p->products->tile(&tile);
        }
    }
}

/* ---- Blocks of rows ---- */

static const char *element(const void *from, int64_t index, bool narrow)
{
    return (const char *)from + index * (narrow ? 2 : 4);
}

static CornuCellInput input(const void *from, int64_t index, bool narrow)
{
    return (CornuCellInput){ element(from, index, narrow), narrow };
}

static CornuCellOutput output(void *to, int64_t index, bool narrow)
{
    return (CornuCellOutput){ (char *)to + index * (narrow ? 2 : 4), narrow };
}

/* What a block of rows works with. States have room for whole blocks of units. */
typedef struct {
    const Lstm *p;
    int64_t     first, rows;
    char       *x, *next;         /* what the product reads now, and in the next step forwards */
    float      *a, *b, *c;        /* states, rows `stride` apart */
    float      *sums;             /* forwards: gates of 32 units, row by row                   */
    int64_t     stride;
} Rows;

static Rows rows_of(const Lstm *p, int64_t block, int thread)
{
    char         *memory = p->threads + (size_t)thread * align(p->thread_bytes);
    const int64_t first = block * p->batch / p->blocks;
    Rows          r = { .p = p, .first = first, .stride = p->padded + UNITS,
                        .rows = (block + 1) * p->batch / p->blocks - first };
    memset(memory, 0, p->thread_bytes);
    r.x = memory;
    r.next = r.x + p->x_bytes;
    r.a = (float *)(void *)(p->backward ? r.next : r.next + p->x_bytes);
    r.b = r.a + p->rows * r.stride;
    r.c = r.b + p->rows * r.stride;
    r.sums = r.c + p->rows * r.stride;
    return r;
}

/* Writes `count` elements of x from `at` on: those of `from`, which are as they are stored, or in
 * parts made of `wide`. */
static void put(const Lstm *p, char *x, int64_t at, int64_t count, const void *from,
                const float *wide)
{
    const int64_t plane = p->plane;
    uint16_t     *half = (uint16_t *)(void *)x + at;
    if (p->precision.parts == 1)
        memcpy(x + at * (int64_t)p->products->size, from, (size_t)count * p->products->size);
    else
        p->precision.bf16->split(wide, count, half, half + plane, half + 2 * plane);
}

static void widen(const Lstm *p, const void *from, int64_t count, bool narrow, float *to)
{
    if (narrow) p->precision.bf16->widen(from, count, to);
    else memcpy(to, from, (size_t)count * sizeof *to);
}

static void narrow(const Lstm *p, const float *from, int64_t count, bool narrow, void *to)
{
    if (narrow) p->precision.bf16->narrow(from, count, to);
    else memcpy(to, from, (size_t)count * sizeof *from);
}

static bool is_kept(const Lstm *p, int64_t row, int64_t t)
{
    return p->mask && !p->mask[row * p->steps + t];
}

/* ---- Forwards: a is c, b the h of one row before it is rounded ---- */

/* A masked step: h and c as they were. Its gates are computed all the same. */
static void keep(const Rows *r, int64_t row, int64_t t, int64_t before)
{
    const Lstm   *p = r->p;
    const size_t  size = p->products->size;
    const int64_t b = r->first + row, at = (b * p->steps + t) * p->units;
    const void   *h = before < 0 || before >= p->steps
                          ? element(p->call->in[H0], b * p->units, p->narrow)
                          : element(p->call->out[H], (b * p->steps + before) * p->units, p->narrow);
    memcpy(output(p->call->out[H], at, p->narrow).to, h, (size_t)p->units * (p->narrow ? 2 : 4));
    narrow(p, r->a + row * r->stride, p->units, p->narrow_cells,
           output(p->call->out[CELLS], at, p->narrow_cells).to);
    for (int part = 0; part < p->precision.parts; part++) {
        const size_t from = (size_t)(part * p->plane + row * p->stride) * size;
        memcpy(r->next + from, r->x + from, (size_t)p->units * size);
    }
}

static void update(const Rows *r, int64_t row, int64_t t, int64_t unit)
{
    const Lstm   *p = r->p;
    const int64_t b = r->first + row, step = b * p->steps + t, at = step * p->units + unit;
    const int64_t units = smaller(UNITS, p->units - unit);
    float         kept[UNITS], *c = r->a + row * r->stride + unit;
    const bool    keeps = is_kept(p, b, t);
    CornuLstmCell cell = {
        .units = (int)units, .gate = p->units, .sums_gate = UNITS,
        .sums = r->sums + row * GATES * UNITS, .c = keeps ? kept : c, .wide_h = r->b,
        .z = input(p->call->in[Z], step * GATES * p->units + unit, p->narrow),
        .gates = output(p->call->out[GATES_OUT], step * GATES * p->units + unit, p->narrow),
        .cells = output(p->call->out[CELLS], at, p->narrow_cells),
        .h = output(p->call->out[H], at, p->narrow),
    };
    if (keeps) memcpy(kept, c, sizeof kept);
    cornu__cells()->lstm(&cell);
    put(p, r->next, row * p->stride + unit, units, cell.h.to, r->b);
}

static void run_forwards(void *context, int64_t block, int thread)
{
    const Lstm *p = context;
    Rows        r = rows_of(p, block, thread);
    for (int64_t row = 0; row < r.rows; row++) {
        const int64_t at = (r.first + row) * p->units;
        const void   *h = element(p->call->in[H0], at, p->narrow);
        put(p, r.x, row * p->stride, p->units, h, h);
        widen(p, element(p->call->in[C0], at, p->narrow_cells), p->units, p->narrow_cells,
              r.a + row * r.stride);
    }
    for (int64_t step = 0; step < p->steps; step++) {
        const int64_t t = p->reverse ? p->steps - 1 - step : step;
        for (int64_t unit = 0; unit < p->units; unit += UNITS) {
            for (int64_t gate = 0; gate < GATES; gate++)
                multiply(p, r.x, r.rows, gate, unit, UNITS, r.sums + gate * UNITS, GATES * UNITS);
            for (int64_t row = 0; row < r.rows; row++) update(&r, row, t, unit);
        }
        for (int64_t row = 0; row < r.rows; row++)
            if (is_kept(p, r.first + row, t)) keep(&r, row, t, p->reverse ? t + 1 : t - 1);
        char *x = r.x;
        r.x = r.next;
        r.next = x;
    }
    for (int64_t row = 0; row < r.rows; row++)
        narrow(p, r.a + row * r.stride, p->units, p->narrow_cells,
               output(p->call->out[LAST_C], (r.first + row) * p->units, p->narrow_cells).to);
}

/* ---- Backwards: a is d_c, b the sum of d_h, c d_h as the product gives it ---- */

/* A masked step: nothing reaches z, and all of d_h and d_c the step before. */
static void pass(const Rows *r, int64_t row, int64_t step)
{
    const Lstm *p = r->p;
    float      *sum = r->b + row * r->stride, *wide = r->sums;
    for (int64_t unit = 0; unit < p->units; unit += UNITS) {
        const int64_t units = smaller(UNITS, p->units - unit);
        widen(p, element(p->call->in[D_H], step * p->units + unit, p->narrow), units, p->narrow,
              wide);
        for (int64_t u = 0; u < units; u++) sum[unit + u] += wide[u];
    }
    memset(output(p->call->out[D_Z], step * GATES * p->units, p->narrow).to, 0,
           (size_t)(GATES * p->units) * (p->narrow ? 2 : 4));
    for (int part = 0; part < p->precision.parts; part++)
        memset(r->x + (size_t)(part * p->plane + row * p->stride) * p->products->size, 0,
               (size_t)p->k * p->products->size);
}

static void update_grad(const Rows *r, int64_t row, int64_t step, CornuCellInput before)
{
    const Lstm *p = r->p;
    for (int64_t unit = 0; unit < p->units; unit += UNITS) {
        const int64_t units = smaller(UNITS, p->units - unit);
        const int64_t at = step * GATES * p->units + unit;
        CornuLstmGradCell cell = {
            .units = (int)units, .gate = p->units, .wide_gate = UNITS,
            .gates = input(p->call->in[GATES_IN], at, p->narrow),
            .cells = input(p->call->in[G_CELLS], step * p->units + unit, p->narrow_cells),
            .before = input(before.from, unit, p->narrow_cells),
            .d_h = input(p->call->in[D_H], step * p->units + unit, p->narrow),
            .sum = r->b + row * r->stride + unit, .d_c = r->a + row * r->stride + unit,
            .d_z = output(p->call->out[D_Z], at, p->narrow), .wide_d_z = r->sums,
        };
        cornu__cells()->lstm_grad(&cell);
        for (int64_t gate = 0; gate < GATES; gate++)
            put(p, r->x, row * p->stride + gate * p->units + unit, units,
                element(cell.d_z.to, gate * p->units, p->narrow), r->sums + gate * UNITS);
    }
}

/* The cells before step t of a row. */
static CornuCellInput cells_before(const Lstm *p, int64_t b, int64_t t)
{
    const int64_t before = p->reverse ? t + 1 : t - 1;
    return before < 0 || before >= p->steps
               ? input(p->call->in[G_C0], b * p->units, p->narrow_cells)
               : input(p->call->in[G_CELLS], (b * p->steps + before) * p->units, p->narrow_cells);
}

static void run_backwards(void *context, int64_t block, int thread)
{
    const Lstm  *p = context;
    const Rows   r = rows_of(p, block, thread);
    const size_t row_bytes = (size_t)p->units * sizeof(float);
    for (int64_t row = 0; row < r.rows; row++)
        widen(p, element(p->call->in[D_C], (r.first + row) * p->units, p->narrow_cells), p->units,
              p->narrow_cells, r.a + row * r.stride);
    for (int64_t step = p->steps - 1; step >= 0; step--) {
        const int64_t t = p->reverse ? p->steps - 1 - step : step;
        for (int64_t row = 0; row < r.rows; row++) {
            const int64_t b = r.first + row, at = b * p->steps + t;
            memcpy(r.b + row * r.stride, r.c + row * r.stride, row_bytes);
            if (is_kept(p, b, t)) pass(&r, row, at);
            else update_grad(&r, row, at, cells_before(p, b, t));
        }
        multiply(p, r.x, r.rows, 0, 0, p->padded, r.c, r.stride);
        for (int64_t row = 0; row < r.rows; row++)
            if (is_kept(p, r.first + row, t))
                memcpy(r.c + row * r.stride, r.b + row * r.stride, row_bytes);
    }
    for (int64_t row = 0; row < r.rows; row++) {
        const int64_t at = (r.first + row) * p->units;
        narrow(p, r.c + row * r.stride, p->units, p->narrow,
               output(p->call->out[D_H0], at, p->narrow).to);
        narrow(p, r.a + row * r.stride, p->units, p->narrow_cells,
               output(p->call->out[D_C0], at, p->narrow_cells).to);
    }
}

CornuStatus cornu__lstm(const CornuKernelCall *call, CornuMultiplier multiplier)
{
    Lstm p = { .call = call };
    lay_out(&p, &call->op, multiplier, cornu__threads_count(call->threads), call->scratch);
    const int mask = p.backward ? G_MASK : MASK;
    p.mask = call->op.in_count > mask ? call->in[mask] : NULL;
    p.kernel = cornu__parts(&p.precision, call->threads, call->in[p.backward ? G_KERNEL : KERNEL],
                            GATES * p.units * p.units, p.kernel_parts);
    cornu__threads_run(call->threads,
                       p.groups * p.precision.parts * ceil_divide(p.k, PACK_ROWS), pack, &p);
    cornu__threads_run(call->threads, p.batch ? p.blocks : 0,
                       p.backward ? run_backwards : run_forwards, &p);
    return CORNU_OK;
}
