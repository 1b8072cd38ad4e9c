/*
 * The products of recurrent.c: sizes, the recurrent kernel packed into panels, and rows of h or its
 * gradient times these.
 */
#include "recurrent.h"

enum {
    UNITS = CORNU_RECURRENT_UNITS,
    MOST_GATES = CORNU_RECURRENT_GATES,
    PACK_ROWS = 64,     /* of the kernel, packed by one block; even        */
    LEAST_ROWS = 32,    /* of a block where there are several,             */
    ENOUGH_ROWS = 64,   /* which read the kernel less often                */
    STREAMED = 4 << 20, /* bytes of gates from which on no cache keeps them till they are read */
    PADDING = 32        /* between rows, so that their starts spread over the cache's sets */
};

static bool is_lstm(CornuOpId id) { return id == CORNU_OP_LSTM || id == CORNU_OP_LSTM_GRAD; }

static bool is_backward(CornuOpId id)
{
    return id == CORNU_OP_LSTM_GRAD || id == CORNU_OP_GRU_GRAD;
}

CornuDtype cornu__recurrent_cells(const CornuOpCall *op)
{
    return op->in[!is_lstm(op->id) ? X : is_backward(op->id) ? STATES : C0].dtype;
}

void cornu__recurrent_find_sizes(CornuRecurrent *p, const CornuQuery *q)
{
    const int64_t *h = q->op->in[is_backward(q->op->id) ? STATES : X].shape.extent;
    p->lstm = is_lstm(q->op->id);
    p->backward = is_backward(q->op->id);
    p->reverse = q->op->attributes->recurrence.reverse;
    p->gate_slope = (float)q->op->attributes->recurrence.gate_slope;
    p->narrow = q->op->in[0].dtype == CORNU_BF16;
    p->narrow_cells = cornu__recurrent_cells(q->op) == CORNU_BF16;
    p->gates = p->lstm ? 4 : 3;
    p->batch = h[0], p->steps = h[1], p->units = p->backward ? h[2] : h[2] / p->gates;
    p->how = cornu__multiplication(q->machine.multiplier, q->op->in[0].dtype);
    p->products = p->how.products;
    p->cells = cornu__cells();
    p->groups = p->backward ? 1 : p->gates;
    p->k = p->backward ? p->gates * p->units : p->units;
    p->depth = ceil_multiple(p->k, p->products->depth);
    p->padded = ceil_multiple(p->units, p->products->lanes);
    p->blocks = larger(1, smaller(p->batch / LEAST_ROWS,
                                  larger(q->machine.threads, p->batch / ENOUGH_ROWS)));
    p->rows = ceil_divide(p->batch, p->blocks);
    p->stream = p->units % 16 == 0 &&
                p->batch * p->steps * p->units * MOST_GATES * (p->narrow ? 2 : 4) >= STREAMED;
    p->stride = ceil_multiple(p->k, PADDING) + PADDING;
    p->plane = p->rows * p->stride;
}

typedef struct {
    CornuRecurrent recurrent;
    const void    *kernel;     /* its parts, one after the other */
    char          *packed;
} Pack;

static size_t panels_bytes(const CornuRecurrent *p)
{
    return cornu__aligned((size_t)cornu__recurrent_panel_offset(p, p->groups, 0));
}

/* After the panels there is space for the parts of the kernel. */
size_t cornu__recurrent_pack_bytes(const CornuQuery *q)
{
    CornuRecurrent p;
    cornu__recurrent_find_sizes(&p, q);
    return panels_bytes(&p) + cornu__parts_bytes(&p.how, p.gates * p.units * p.units);
}

/* Some rows of one part of one group into all its panels. */
static void pack_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const Pack           *pack = context;
    const CornuRecurrent *p = &pack->recurrent;
    const int64_t         chunks = ceil_divide(p->k, PACK_ROWS), columns = p->gates * p->units;
    const int64_t         k = block % chunks * PACK_ROWS, count = smaller(PACK_ROWS, p->k - k);
    const int64_t         part = block / chunks % p->how.parts;
    const int64_t         group = block / chunks / p->how.parts;
    const int64_t         k_step = p->backward ? 1 : columns, n_step = p->backward ? columns : 1;
    for (int64_t unit = 0, width; unit < p->padded; unit += width) {
        char *panel = pack->packed + cornu__recurrent_panel_offset(p, group, unit);
        width = cornu__recurrent_panel_width(p, unit);
        const int64_t from = part * p->units * columns + group * p->units + k * k_step +
                             unit * n_step;
        p->products->pack(panel, width, part * p->depth + k, count,
                          cornu__element(&p->how, pack->kernel, from), k_step, n_step,
                          smaller(width, p->units - unit));
        if (k + count == p->k && p->depth > p->k)   /* the odd one's other half */
            p->products->pack(panel, width, part * p->depth + p->k, 1, pack->kernel, 0, 0, 0);
    }
}

void cornu__recurrent_pack(const CornuKernelCall *call)
{
    Pack             pack = { .packed = call->out[0] };
    const CornuQuery q = cornu__query_of(call);
    CornuRecurrent  *p = &pack.recurrent;
    cornu__recurrent_find_sizes(p, &q);
    pack.kernel = cornu__all_parts(&p->how, call->threads,
                                   call->in[p->backward ? G_KERNEL : KERNEL],
                                   p->gates * p->units * p->units, pack.packed + panels_bytes(p));
    cornu__threads_run(call->threads, p->groups * p->how.parts * ceil_divide(p->k, PACK_ROWS),
                       pack_rows, &pack);
}

/* ---- Products ---- */

static void find_runs(const CornuRecurrent *p, CornuRun *runs)
{
    for (int pass = 0; pass < p->how.passes; pass++)
        runs[pass] = (CornuRun){ p->how.pass[pass][0] * p->plane,
                                 p->how.pass[pass][1] * p->depth, p->k };
}

void cornu__recurrent_multiply(const CornuRecurrent *p, const char *x, int64_t rows, int64_t group,
                               int64_t unit, int64_t count, float *y, int64_t y_stride,
                               CornuAhead *ahead)
{
    const int64_t tiles = ceil_divide(rows, p->products->tile_rows);
    CornuRun      runs[CORNU_MOST_PASSES];
    find_runs(p, runs);
    CornuTile tile = { .x_stride = p->stride, .runs = runs, .run_count = p->how.passes,
                       .y_stride = y_stride, .ahead = ahead };
    const int64_t end = smaller(p->padded, unit + count);
    for (int64_t first = unit, width; first < end; first += width) {
        width = cornu__recurrent_panel_width(p, first);
        tile.panel = p->packed + cornu__recurrent_panel_offset(p, group, first);
        tile.bias = p->bias + group * p->padded + first;
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)width;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t m = t * rows / tiles;
            tile.rows = (int)((t + 1) * rows / tiles - m);
            tile.x = cornu__element(&p->how, x, m * p->stride);
            tile.y = y + m * y_stride + first - unit;
            p->products->tile(&tile);
        }
    }
}

/* Of few rows, gates that are multiplied at once add to the same sums. */
void cornu__recurrent_multiply_gates(const CornuRecurrent *p, const char *x, int64_t rows,
                                     int64_t unit, float *y, CornuAhead *ahead)
{
    CornuRun runs[CORNU_MOST_PASSES];
    find_runs(p, runs);
    const int64_t end = smaller(p->padded, unit + UNITS), whole = 2 * p->products->lanes;
    int64_t       first = unit;
    for (; rows <= p->products->panels_rows && first + whole <= end; first += whole)
        p->products->panels(&(CornuPanels){
            .tile = { .x = x, .x_stride = p->stride, .runs = runs, .run_count = p->how.passes,
                      .panel = p->packed + cornu__recurrent_panel_offset(p, 0, first),
                      .bias = p->bias + first,
                      .y = y + first - unit, .y_stride = MOST_GATES * UNITS, .ahead = ahead,
                      .rows = (int)rows },
            .panels = (int)p->gates, .bias_next = p->padded, .y_next = UNITS,
            .panel_next = cornu__recurrent_panel_offset(p, 1, 0) / (int64_t)p->products->size });
    for (int64_t gate = 0; gate < p->gates && first < end; gate++)
        cornu__recurrent_multiply(p, x, rows, gate, first, end - first,
                                  y + gate * UNITS + first - unit, MOST_GATES * UNITS, ahead);
}
