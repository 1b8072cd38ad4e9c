/*
 * lstm, gru and their gradients (device/ops/lstm.c, gru.c): operands and results all f32 or all
 * bf16, lstm's cells f32 or like the others; sums, states and cell updates in f32.
 *
 * The recurrent kernel is packed into panels in advance. Rows of the batch are independent, so a
 * block of rows runs through all steps on one thread without waiting for others. The operand of a
 * step's product, h or its gradient, is kept in rows of its own, close together: in the op's
 * operands rows are T U elements or more apart and would share few sets of the cache. Forwards,
 * where there are fewer blocks than threads, a step's units are divided over the threads, which
 * meet after each step; a unit's sums are the same either way. Of so few rows the time is that of
 * reading the kernel once a step: a thread reads its own panels, and begins with those that it read
 * last in the step before.
 *
 *     forwards    for 32 units at a time: each gate's sums of h U, then the update of the cell
 *     backwards   the updates of all units, then the product of their results with U^T, which is
 *                 the d_h of the step before, apart from what bypasses the product
 *
 * Reference: device/ops/lstm.c and gru.c; tests/op_cases/recurrent.c has the cases.
 * Source: own; gates and cell in the product's epilogue, as cuDNN fuses them (Appleyard et al.,
 *     "Optimizing Performance of CornuRecurrent Neural Networks on GPUs", arXiv 1604.01946).
 * Gain, Zen 4: gru in place of a scan, 128 x 100 x 512, forward and backward: 716 ms, then 341;
 *     next step's operands prefetched, lstm_grad 16 x 100 x 512, bf16, one core: 19.0 ms, then
 *     18.1. Zen 3, AVX2: blocks of 64 rows, lstm 128 x 100 x 512, one core: 416 ms, then 398.
 *     A Xeon with AVX-512 and L2 of 2 MB, two lstms 1 x 100 x 512 and their dense layers: panels in
 *     turns, one core: 37.4 ms, then 27.2, two: 10.5, then 9.3; all gates at once, two cores: 8.0;
 *     one lstm of 256 units, one core: 1.89 ms, then 1.34. Xeon (model 207), two cores, 128 x 100
 *     x 512: tiles request what updates need, and the next panel, lstm_grad AVX-512 113 ms, then
 *     108, AVX2 193, then 174, bf16 (8 shards) 171, then 165; lstm 101, then 98, AVX2 191, then
 *     184.
 */
#include <string.h>

#include "../machine/cpu.h"
#include "kernels.h"
#include "recurrent.h"

enum {
    UNITS = CORNU_RECURRENT_UNITS,
    MOST_GATES = CORNU_RECURRENT_GATES,
    MOST_AHEAD = 16,    /* of what one update and product need, one after the other */
    SEVERAL_TILES = 4,  /* multiply long enough for another panel to come   */
    LEAST_WORK = 128 << 10   /* multiply-adds of a thread that are worth handing to it */
};

static CornuDecline recurrent_declines(const CornuQuery *q)
{
    const CornuDtype dtype = q->op->in[0].dtype, cells = cornu__recurrent_cells(q->op);
    if (dtype != CORNU_F32 && !(dtype == CORNU_BF16 && q->machine.multiplier.bf16))
        return cornu__needs(false, "the dtype that the device multiplies");
    return cornu__needs(cells == CORNU_F32 || cells == dtype, "cells of f32 or of x' dtype");
}

/* Sizes, and the parts of the scratch memory. */
static void lay_out(CornuRecurrent *p, const CornuQuery *q, CornuScratch *scratch)
{
    cornu__recurrent_find_sizes(p, q);
    p->x_bytes = cornu__aligned((size_t)(p->how.parts * p->plane) * p->products->size);
    const int64_t state = p->padded + UNITS, sums = MOST_GATES * UNITS;
    p->thread_bytes = (p->backward ? 1 : 2) * p->x_bytes +
                      (size_t)(p->rows * (p->backward ? 3 * state : state + sums)) * sizeof(float);
    p->each = cornu__aligned(p->thread_bytes);
    p->bias = cornu__take_floats(scratch, p->groups * p->padded);
    cornu__take_line(scratch);
    p->threads = cornu__take(scratch, (size_t)q->machine.threads * p->each);
}

static size_t recurrent_scratch(const CornuQuery *q)
{
    CornuRecurrent p;
    CornuScratch   scratch = { 0 };
    lay_out(&p, q, &scratch);
    return scratch.bytes;
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
    return (CornuCellOutput){ (char *)to + index * (narrow ? 2 : 4), narrow, false };
}

/* Outputs that only the gradient reads. */
static CornuCellOutput output_for_later(const CornuRecurrent *p, void *to, int64_t index,
                                        bool narrow)
{
    CornuCellOutput y = output(to, index, narrow);
    y.stream = p->stream;
    return y;
}

/* The memory of a block of rows. States have space for whole blocks of units. */
typedef struct {
    const CornuRecurrent *p;
    int64_t               first, rows;
    char                 *x, *next;    /* what the product reads now, and in the next step      */
    float                *a, *b, *c;   /* states, rows `stride` apart; forwards a alone         */
    float                *sums;        /* forwards: gates of 32 units, row by row               */
    int64_t               stride;
} Rows;

/* What tiles request while they sum: rows that the next updates read and write, far from each
 * other, which the processor does not foresee, and panels of the next products. */
typedef struct {
    CornuAheadRows list[MOST_AHEAD];
    int64_t        count;
} Coming;

/* `units` elements of all rows from element `index` on, `stride` elements apart. */
static void expect(Coming *coming, const Rows *r, const void *from, int64_t index, int64_t stride,
                   int64_t units, bool narrow)
{
    const int64_t size = narrow ? 2 : 4;
    coming->list[coming->count++] =
        cornu__ahead_rows(element(from, index, narrow), r->rows, units * size, stride * size);
}

/* The columns of a group from `unit` on, if the cache has space for them beside those in use and
 * x: few rows meet panels that are in it. */
static void expect_panel(Coming *coming, const Rows *r, int64_t group, int64_t unit)
{
    const CornuRecurrent *p = r->p;
    const int64_t         end = smaller(p->padded, unit + UNITS);
    const int64_t         from = cornu__recurrent_panel_offset(p, group, unit);
    const int64_t         bytes = cornu__recurrent_panel_offset(p, group, end) - from;
    const bool            fits = 2 * bytes + (int64_t)p->x_bytes <= cornu__cpu()->l2;
    if (!fits || r->rows < SEVERAL_TILES * p->products->tile_rows ||
        cornu__has_tile_registers(p->products))
        return;
    coming->list[coming->count++] = cornu__ahead_lines(p->packed + from, bytes / CORNU_LINE_BYTES);
}

/* To be requested by the products of all rows by `columns` columns; or now. */
static CornuAhead request(const Rows *r, const Coming *coming, int64_t columns)
{
    const CornuRecurrent *p = r->p;
    const int64_t         tiles = ceil_divide(r->rows, p->products->tile_rows);
    const int64_t         panels = ceil_divide(columns, 2 * p->products->lanes);
    CornuAhead            ahead = { .then = coming->list, .count = coming->count };
    cornu__ahead_pace(&ahead, p->how.passes * (p->depth / p->products->depth) *
                              (r->rows <= p->products->panels_rows ? 1 : tiles * panels),
                      CORNU_AHEAD_TERMS);
    while (cornu__has_tile_registers(p->products) && ahead.rows.rows + ahead.count > 0)
        cornu__request(&ahead, INT64_MAX);
    return ahead;
}

static Rows rows_of(const CornuRecurrent *p, int64_t block, int thread)
{
    char         *memory = p->threads + (size_t)thread * p->each;
    const int64_t first = block * p->batch / p->blocks;
    Rows          r = { .p = p, .first = first, .stride = p->padded + UNITS,
                        .rows = (block + 1) * p->batch / p->blocks - first };
    memset(memory, 0, p->thread_bytes);
    r.x = memory;
    r.next = r.x + p->x_bytes;
    r.a = (float *)(void *)(p->backward ? r.next : r.next + p->x_bytes);
    r.b = r.a + p->rows * r.stride;
    r.c = r.b + p->rows * r.stride;
    r.sums = r.b;
    return r;
}

/* Makes `count` elements of x from `at` on of the elements at `from`. */
static void put(const CornuRecurrent *p, char *x, int64_t at, int64_t count, const void *from)
{
    cornu__parts(&p->how, from, 0, count, x + at * (int64_t)p->products->size, p->plane);
}

/* Where cells store what the next product reads, if that is as it is in memory. To copy it from
 * there would be to wait for the cell, row after row. */
static CornuCellOutput output_for_product(const CornuRecurrent *p, char *x, int64_t at)
{
    return p->how.in_place ? output(x, at, p->narrow) : (CornuCellOutput){ .to = NULL };
}

static void widen(const void *from, int64_t count, bool narrow, float *to)
{
    if (narrow) cornu__bf16()->widen(from, count, to);
    else memcpy(to, from, (size_t)count * sizeof *to);
}

static void narrow(const float *from, int64_t count, bool narrow, void *to)
{
    if (narrow) cornu__bf16()->narrow(from, count, to);
    else memcpy(to, from, (size_t)count * sizeof *from);
}

static bool is_kept(const CornuRecurrent *p, int64_t row, int64_t t)
{
    return p->mask && !p->mask[row * p->steps + t];
}

/* ---- Forwards: a is lstm's c or gru's h ---- */

/* A masked step: states stay as they were. Its gates are computed all the same. */
static void keep(const Rows *r, int64_t row, int64_t t, int64_t before)
{
    const CornuRecurrent *p = r->p;
    const size_t          size = p->products->size;
    const int64_t         b = r->first + row, at = (b * p->steps + t) * p->units;
    const void           *h = before < 0 || before >= p->steps
                          ? element(p->call->in[H0], b * p->units, p->narrow)
                          : element(p->call->out[H], (b * p->steps + before) * p->units, p->narrow);
    memcpy(output(p->call->out[H], at, p->narrow).to, h, (size_t)p->units * (p->narrow ? 2 : 4));
    if (p->lstm)
        narrow(r->a + row * r->stride, p->units, p->narrow_cells,
               output(p->call->out[CELLS], at, p->narrow_cells).to);
    for (int part = 0; part < p->how.parts; part++) {
        const size_t from = (size_t)(part * p->plane + row * p->stride) * size;
        memcpy(r->next + from, r->x + from, (size_t)p->units * size);
    }
}

/* Units from `unit` on of one row; `state` is their part of a. Returns where h is stored. */
static const void *update_lstm(const Rows *r, int64_t row, int64_t step, int64_t unit, int units,
                               float *state)
{
    const CornuRecurrent *p = r->p;
    const int64_t         at = step * p->units + unit, wide = step * p->gates * p->units + unit;
    CornuLstmCell         cell = {
        .units = units, .gate_slope = p->gate_slope, .gate = p->units, .sums_gate = UNITS,
        .c = state, .sums = r->sums + row * MOST_GATES * UNITS,
        .z = input(p->call->in[X], wide, p->narrow),
        .gates = output_for_later(p, p->call->out[LSTM_GATES], wide, p->narrow),
        .cells = output_for_later(p, p->call->out[CELLS], at, p->narrow_cells),
        .h = output(p->call->out[H], at, p->narrow),
        .next = output_for_product(p, r->next, row * p->stride + unit),
    };
    p->cells->lstm(&cell);
    return cell.h.to;
}

static const void *update_gru(const Rows *r, int64_t row, int64_t step, int64_t unit, int units,
                              float *state)
{
    const CornuRecurrent *p = r->p;
    CornuGruCell          cell = {
        .units = units, .gate_slope = p->gate_slope, .gate = p->units, .sums_gate = UNITS,
        .state = state, .sums = r->sums + row * MOST_GATES * UNITS,
        .x = input(p->call->in[X], step * p->gates * p->units + unit, p->narrow),
        .gates = output_for_later(p, p->call->out[GRU_GATES],
                                  step * MOST_GATES * p->units + unit, p->narrow),
        .h = output(p->call->out[H], step * p->units + unit, p->narrow),
        .next = output_for_product(p, r->next, row * p->stride + unit),
    };
    p->cells->gru(&cell);
    return cell.h.to;
}

static void update(const Rows *r, int64_t row, int64_t t, int64_t unit)
{
    const CornuRecurrent *p = r->p;
    const int64_t         step = (r->first + row) * p->steps + t;
    const int             units = (int)smaller(UNITS, p->units - unit);
    const bool            keeps = is_kept(p, r->first + row, t);
    float                 kept[UNITS], *state = r->a + row * r->stride + unit;
    if (keeps) memcpy(kept, state, sizeof kept);
    const void *h = (p->lstm ? update_lstm : update_gru)(r, row, step, unit, units,
                                                         keeps ? kept : state);
    if (!p->how.in_place) put(p, r->next, row * p->stride + unit, units, h);
}

/* For the updates of a step's units, and the products of the units after them, from `next` on. */
static void expect_units(Coming *coming, const Rows *r, int64_t t, int64_t unit, int64_t next)
{
    const CornuRecurrent *p = r->p;
    void                 *gates = p->call->out[p->lstm ? LSTM_GATES : GRU_GATES];
    const int64_t         U = p->units, units = smaller(UNITS, U - unit);
    const int64_t         step = r->first * p->steps + t, at = step * U + unit;
    coming->count = 0;
    for (int64_t k = 0; k < p->gates; k++) {
        if (k + 1 < p->gates) expect_panel(coming, r, k + 1, unit);
        else if (next >= 0) expect_panel(coming, r, 0, next);
        expect(coming, r, p->call->in[X], (step * p->gates + k) * U + unit, p->steps * p->gates * U,
               units, p->narrow);
    }
    expect(coming, r, p->call->out[H], at, p->steps * U, units, p->narrow);
    if (p->stream) return;
    for (int64_t k = 0; k < MOST_GATES; k++)
        expect(coming, r, gates, (step * MOST_GATES + k) * U + unit, p->steps * MOST_GATES * U,
               units, p->narrow);
    if (p->lstm)
        expect(coming, r, p->call->out[CELLS], at, p->steps * U, units, p->narrow_cells);
}

/* States before the first step. */
static void begin(const Rows *r)
{
    const CornuRecurrent *p = r->p;
    for (int64_t row = 0; row < r->rows; row++) {
        const int64_t at = (r->first + row) * p->units;
        const void   *h = element(p->call->in[H0], at, p->narrow);
        put(p, r->x, row * p->stride, p->units, h);
        widen(element(p->call->in[p->lstm ? C0 : H0], at, p->narrow_cells), p->units,
              p->narrow_cells, r->a + row * r->stride);
    }
}

/* Groups of units [first, end) of step t, which begin with the panels that the step before ended
 * with: of panels in one order a cache too small for all of them would keep none. */
static void update_units(const Rows *r, int64_t t, int64_t first, int64_t end)
{
    const CornuRecurrent *p = r->p;
    Coming                coming;
    for (int64_t i = first; i < end; i++) {
        const int64_t unit = (t % 2 ? first + end - 1 - i : i) * UNITS;
        expect_units(&coming, r, t, unit, i + 1 == end ? -1 : unit + (t % 2 ? -UNITS : UNITS));
        CornuAhead ahead = request(r, &coming, p->gates * UNITS);
        cornu__recurrent_multiply_gates(p, r->x, r->rows, unit, r->sums, &ahead);
        for (int64_t row = 0; row < r->rows; row++) update(r, row, t, unit);
    }
    p->cells->fence();
}

/* What remains of a step when all its units are done. */
static void end_step(Rows *r, int64_t t)
{
    const CornuRecurrent *p = r->p;
    for (int64_t row = 0; row < r->rows; row++)
        if (is_kept(p, r->first + row, t)) keep(r, row, t, p->reverse ? t + 1 : t - 1);
    char *x = r->x;
    r->x = r->next;
    r->next = x;
}

static void end(const Rows *r)
{
    const CornuRecurrent *p = r->p;
    for (int64_t row = 0; row < r->rows && p->lstm; row++)
        narrow(r->a + row * r->stride, p->units, p->narrow_cells,
               output(p->call->out[LAST_C], (r->first + row) * p->units, p->narrow_cells).to);
}

static int64_t step_time(const CornuRecurrent *p, int64_t step)
{
    return p->reverse ? p->steps - 1 - step : step;
}

static void run_forwards(void *context, int64_t block, int thread)
{
    const CornuRecurrent *p = context;
    Rows                  r = rows_of(p, block, thread);
    begin(&r);
    for (int64_t step = 0; step < p->steps; step++) {
        update_units(&r, step_time(p, step), 0, ceil_divide(p->units, UNITS));
        end_step(&r, step_time(p, step));
    }
    end(&r);
}

/* A step of a block of rows whose units are divided. */
typedef struct {
    const Rows *rows;
    int64_t     t;
} Divided;

/* From step to step a thread gets the same piece, whose panels are in its cache (threads.c). */
static void run_piece(void *context, int64_t piece, int thread)
{
    const Divided        *d = context;
    const CornuRecurrent *p = d->rows->p;
    const int64_t         groups = ceil_divide(p->units, UNITS);
    Rows                  r = *d->rows;
    r.sums = (float *)(void *)((char *)r.sums + (size_t)thread * p->each);
    update_units(&r, d->t, piece * groups / p->pieces, (piece + 1) * groups / p->pieces);
}

/* All blocks in turn, in the first thread's memory but for sums. */
static void run_divided(const CornuRecurrent *p)
{
    for (int64_t block = 0; block < p->blocks; block++) {
        Rows r = rows_of(p, block, 0);
        begin(&r);
        for (int64_t step = 0; step < p->steps; step++) {
            Divided divided = { &r, step_time(p, step) };
            cornu__threads_run(p->call->threads, p->pieces, run_piece, &divided);
            end_step(&r, divided.t);
        }
        end(&r);
    }
}

/* ---- Backwards: a is d_c, b what of d_h bypasses the product, c the product ---- */

static void clear(const CornuRecurrent *p, void *to, int64_t step)
{
    const int64_t columns = p->gates * p->units;
    memset(output(to, step * columns, p->narrow).to, 0, (size_t)columns * (p->narrow ? 2 : 4));
}

/* A masked step: its input gets no gradient, all of d_h and d_c goes to the step before. */
static void pass(const Rows *r, int64_t row, int64_t step)
{
    const CornuRecurrent *p = r->p;
    float                *direct = r->b + row * r->stride, outside[UNITS];
    const float          *product = r->c + row * r->stride;
    for (int64_t unit = 0; unit < p->units; unit += UNITS) {
        const int64_t units = smaller(UNITS, p->units - unit);
        widen(element(p->call->in[D_H], step * p->units + unit, p->narrow), units, p->narrow,
              outside);
        for (int64_t u = 0; u < units; u++)
            direct[unit + u] = product[unit + u] + direct[unit + u] + outside[u];
    }
    clear(p, p->call->out[D_X], step);
    if (!p->lstm) clear(p, p->call->out[D_INNER], step);
    for (int part = 0; part < p->how.parts; part++)
        memset(r->x + (size_t)(part * p->plane + row * p->stride) * p->products->size, 0,
               (size_t)p->k * p->products->size);
}

/* Units from `unit` on of one row; `before` is their state before the step. Returns where the
 * operand of the product is stored. */
static const void *update_lstm_grad(const Rows *r, int64_t row, int64_t step, int64_t unit,
                                    int units, CornuCellInput before)
{
    const CornuRecurrent *p = r->p;
    const int64_t         at = step * p->units + unit, wide = step * p->gates * p->units + unit;
    const int64_t         state = row * r->stride + unit;
    CornuLstmGradCell     cell = {
        .units = units, .gate_slope = p->gate_slope, .gate = p->units,
        .gates = input(p->call->in[GATES], wide, p->narrow),
        .cells = input(p->call->in[STATES], at, p->narrow_cells), .before = before,
        .d_h = input(p->call->in[D_H], at, p->narrow),
        .product = r->c + state, .direct = r->b + state, .d_c = r->a + state,
        .d_z = output(p->call->out[D_X], wide, p->narrow),
        .next = output_for_product(p, r->x, row * p->stride + unit),
    };
    p->cells->lstm_grad(&cell);
    return cell.d_z.to;
}

static const void *update_gru_grad(const Rows *r, int64_t row, int64_t step, int64_t unit,
                                   int units, CornuCellInput before)
{
    const CornuRecurrent *p = r->p;
    const int64_t         wide = step * p->gates * p->units + unit, state = row * r->stride + unit;
    CornuGruGradCell      cell = {
        .units = units, .gate_slope = p->gate_slope, .gate = p->units,
        .gates = input(p->call->in[GATES], step * MOST_GATES * p->units + unit, p->narrow),
        .before = before, .d_h = input(p->call->in[D_H], step * p->units + unit, p->narrow),
        .product = r->c + state, .direct = r->b + state,
        .d_x = output(p->call->out[D_X], wide, p->narrow),
        .d_inner = output(p->call->out[D_INNER], wide, p->narrow),
        .next = output_for_product(p, r->x, row * p->stride + unit),
    };
    p->cells->gru_grad(&cell);
    return cell.d_inner.to;
}

/* Units from `unit` on of the state before step t of a row. */
static CornuCellInput state_before(const CornuRecurrent *p, int64_t b, int64_t t, int64_t unit)
{
    const int64_t before = p->reverse ? t + 1 : t - 1;
    return before < 0 || before >= p->steps
               ? input(p->call->in[FIRST], b * p->units + unit, p->narrow_cells)
               : input(p->call->in[STATES], (b * p->steps + before) * p->units + unit,
                       p->narrow_cells);
}

static void update_grad(const Rows *r, int64_t row, int64_t t)
{
    const CornuRecurrent *p = r->p;
    const int64_t         b = r->first + row, step = b * p->steps + t;
    for (int64_t unit = 0; unit < p->units; unit += UNITS) {
        const int            units = (int)smaller(UNITS, p->units - unit);
        const CornuCellInput before = state_before(p, b, t, unit);
        const void *d = (p->lstm ? update_lstm_grad : update_gru_grad)(r, row, step, unit, units,
                                                                       before);
        for (int64_t gate = 0; gate < p->gates && !p->how.in_place; gate++)
            put(p, r->x, row * p->stride + gate * p->units + unit, units,
                element(d, gate * p->units, p->narrow));
    }
}

/* For the updates of the units from `unit` on at step t, if there is one, and the next product. */
static void expect_grad(Coming *coming, const Rows *r, int64_t t, int64_t unit)
{
    const CornuRecurrent *p = r->p;
    const int64_t         U = p->units, units = smaller(UNITS, U - unit);
    const int64_t         step = r->first * p->steps + t;
    const int64_t         next = unit + UNITS < U ? unit + UNITS : 0;
    coming->count = 0;
    expect_panel(coming, r, 0, next);
    if (t < 0 || t >= p->steps) return;
    for (int64_t k = 0; k < MOST_GATES; k++)
        expect(coming, r, p->call->in[GATES], (step * MOST_GATES + k) * U + unit,
               p->steps * MOST_GATES * U, units, p->narrow);
    const int64_t before = p->reverse ? t + 1 : t - 1;
    expect(coming, r, state_before(p, r->first, t, unit).from, 0,
           before < 0 || before >= p->steps ? U : p->steps * U, units, p->narrow_cells);
    expect(coming, r, p->call->in[D_H], step * U + unit, p->steps * U, units, p->narrow);
    for (int64_t k = 0; k < p->gates; k++) {
        const int64_t at = (step * p->gates + k) * U + unit, stride = p->steps * p->gates * U;
        expect(coming, r, p->call->out[D_X], at, stride, units, p->narrow);
        if (!p->lstm) expect(coming, r, p->call->out[D_INNER], at, stride, units, p->narrow);
    }
}

static void run_backwards(void *context, int64_t block, int thread)
{
    const CornuRecurrent *p = context;
    const Rows            r = rows_of(p, block, thread);
    Coming                coming;
    for (int64_t row = 0; row < r.rows && p->lstm; row++)
        widen(element(p->call->in[D_C], (r.first + row) * p->units, p->narrow_cells), p->units,
              p->narrow_cells, r.a + row * r.stride);
    for (int64_t step = p->steps - 1; step >= 0; step--) {
        const int64_t t = p->reverse ? p->steps - 1 - step : step;
        for (int64_t row = 0; row < r.rows; row++)
            if (is_kept(p, r.first + row, t)) pass(&r, row, (r.first + row) * p->steps + t);
            else update_grad(&r, row, t);
        const int64_t next = p->reverse ? t + 1 : t - 1;
        for (int64_t unit = 0; unit < p->units; unit += UNITS) {
            expect_grad(&coming, &r, next, unit);
            CornuAhead ahead = request(&r, &coming, UNITS);
            cornu__recurrent_multiply(p, r.x, r.rows, 0, unit, UNITS, r.c + unit, r.stride, &ahead);
        }
    }
    for (int64_t row = 0; row < r.rows; row++) {
        const int64_t at = (r.first + row) * p->units;
        float        *d_h = r.c + row * r.stride, *direct = r.b + row * r.stride;
        for (int64_t u = 0; u < p->units; u++) d_h[u] += direct[u];
        narrow(d_h, p->units, p->narrow, output(p->call->out[D_H0], at, p->narrow).to);
        if (p->lstm)
            narrow(r.a + row * r.stride, p->units, p->narrow_cells,
                   output(p->call->out[D_C0], at, p->narrow_cells).to);
    }
}

/* In how many pieces a step's units are computed. */
static int64_t pieces_of(const CornuRecurrent *p, int threads)
{
    const int64_t work = p->rows * p->units * p->units * p->gates;
    if (p->backward || 2 * p->blocks > threads) return 1;
    return larger(1, smaller(smaller(threads, ceil_divide(p->units, UNITS)), work / LEAST_WORK));
}

/* The bias of gru in f32, where the panels of its gates expect it. */
static void find_bias(const CornuRecurrent *p)
{
    memset(p->bias, 0, (size_t)(p->groups * p->padded) * sizeof *p->bias);
    for (int64_t gate = 0; gate < p->gates && !p->lstm && !p->backward; gate++)
        widen(element(p->call->in[BIAS], gate * p->units, p->narrow), p->units, p->narrow,
              p->bias + gate * p->padded);
}

static CornuStatus run(const CornuKernelCall *call)
{
    CornuRecurrent   p = { .call = call };
    const CornuQuery q = cornu__query_of(call);
    lay_out(&p, &q, &(CornuScratch){ .memory = call->scratch });
    const int mask = !p.backward ? MASK : p.lstm ? LSTM_MASK : GRU_MASK;
    p.mask = call->op.in_count > mask ? call->in[mask] : NULL;
    p.stream = p.stream && !p.mask;   /* a masked step is written twice */
    p.packed = call->in[p.backward ? G_KERNEL : KERNEL];
    find_bias(&p);
    p.pieces = p.batch ? pieces_of(&p, q.machine.threads) : 1;
    if (p.pieces > 1) run_divided(&p);
    else cornu__threads_run(call->threads, p.batch ? p.blocks : 0,
                            p.backward ? run_backwards : run_forwards, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_recurrent = {
    .name = "recurrent", .declines = recurrent_declines, .scratch = recurrent_scratch, .run = run,
    .pack_bytes = cornu__recurrent_pack_bytes, .pack = cornu__recurrent_pack, .packs = KERNEL,
};
const CornuKernel cornu__host_recurrent_grad = {
    .name = "recurrent", .declines = recurrent_declines, .scratch = recurrent_scratch, .run = run,
    .pack_bytes = cornu__recurrent_pack_bytes, .pack = cornu__recurrent_pack, .packs = G_KERNEL,
};
