/*
 * Products of u8 by int8 that end as sums of int32 (kernels.h), by the tiles of isa/int8.h, which
 * read what is under a window where it lies. What the zero points contribute is added by columns,
 * as the sums' first terms, and by rows, whose elements are added up once for all panels of a
 * block.
 */
#include "../integer_internal.h"
#include "isa/int8.h"
#include "kernels.h"

/* Outputs of a piece of a row; pieces and pairs of panels of a block. A block's windows stay in the
 * second-level cache while its panels pass through the first. */
enum { PIECE = 96, ROWS = 192, PAIRS = 8, WIDE = 2 * CORNU_INT8_COLUMNS };

typedef struct {
    const CornuInt8Sums  *of;
    const CornuInt8Loops *loops;
    int64_t   width, pieces, count;   /* outputs of a row; pieces of one, and of all */
    int64_t   pairs, segments, elements, groups;
    ptrdiff_t pixel, row;             /* bytes from output to output, from row to row of x */
    ptrdiff_t offsets[CORNU_INT8_MOST_SEGMENTS];
    bool      flat;                   /* all outputs are one row */
} Plan;

bool cornu__int8_sums_run(void) { return cornu__int8_loops()->width == 1; }

int64_t cornu__int8_segments(const CornuInt8Window *w, int64_t *elements)
{
    const bool apart = w->dilation_width > 1;
    *elements = (apart ? 1 : w->width) * w->in_channels;
    return w->height * (apart ? w->width : 1);
}

static Plan plan_of(const CornuInt8Sums *of)
{
    const CornuInt8Window *w = &of->window;
    Plan plan = { .of = of, .loops = cornu__int8_loops() };
    plan.segments = cornu__int8_segments(w, &plan.elements);
    plan.groups = ceil_divide(plan.elements, CORNU_INT8_GROUP);
    plan.pairs = ceil_divide(w->out_channels, WIDE);
    plan.flat = w->height == 1 && w->width == 1 && w->stride_height == 1 &&
                w->stride_width == 1 && w->in_height == w->out_height &&
                w->in_width == w->out_width;
    plan.width = plan.flat ? w->batch * w->out_height * w->out_width : w->out_width;
    plan.pieces = ceil_divide(plan.width, PIECE);
    plan.count = plan.pieces * (plan.flat ? 1 : w->batch * w->out_height);
    plan.pixel = (ptrdiff_t)(w->stride_width * w->in_channels);
    plan.row = (ptrdiff_t)(w->in_width * w->in_channels);
    const int64_t across = plan.segments / w->height;
    for (int64_t s = 0; s < plan.segments; s++)
        plan.offsets[s] = (ptrdiff_t)(s / across * w->dilation_height) * plan.row +
                          (ptrdiff_t)(s % across * w->dilation_width * w->in_channels);
    return plan;
}

/* Pieces of a block. */
static int64_t pieces_of(const Plan *plan)
{
    return larger(1, ROWS / smaller(plan->width, PIECE));
}

int64_t cornu__int8_sums_blocks(const CornuInt8Sums *sums)
{
    const Plan plan = plan_of(sums);
    return ceil_divide(plan.count, pieces_of(&plan)) * ceil_divide(plan.pairs, PAIRS);
}

/* Outputs of a piece: the first, counted over all rows; how many; and what the first reads. */
typedef struct {
    int64_t        first, count;
    const uint8_t *x;
} Piece;

static Piece piece_of(const Plan *plan, int64_t i, const uint8_t *x)
{
    const CornuInt8Window *w = &plan->of->window;
    const int64_t row = i / plan->pieces, at = i % plan->pieces * PIECE;
    const int64_t image = row / w->out_height, down = row % w->out_height * w->stride_height;
    if (!plan->flat) x += (image * w->in_height + down) * plan->row;
    return (Piece){ row * plan->width + at, smaller(PIECE, plan->width - at),
                    x + at * plan->pixel };
}

static void add_rows(const Plan *plan, const Piece *piece, int32_t *totals)
{
    for (int64_t m = 0; m < piece->count; m++) {
        uint32_t sum = 0;
        for (int64_t s = 0; s < plan->segments; s++)
            sum += (uint32_t)plan->loops->total(plan->elements, piece->x + m * plan->pixel +
                                                                    plan->offsets[s]);
        totals[m] = (int32_t)sum;
    }
}

static void multiply(const Plan *plan, const Piece *piece, const int32_t *totals,
                     CornuInt8Tile *tile, int32_t *y)
{
    const int64_t tiles = ceil_divide(piece->count, CORNU_INT8_ROWS);
    for (int64_t t = 0, at = 0; t < tiles; t++) {   /* of about the same size */
        const int64_t end = piece->count * (t + 1) / tiles;
        tile->rows = (int)(end - at);
        tile->x = piece->x + at * plan->pixel;
        tile->totals = totals ? totals + at : NULL;
        tile->sums = y + (piece->first + at) * tile->y_stride;
        plan->loops->product(tile);
        at = end;
    }
}

/* What a pair of panels has: its zeros, and biases. True if a zero is not 0. */
static bool columns_of(const CornuInt8Sums *of, int64_t first, int count, int32_t zeros[WIDE],
                       int32_t bias[WIDE])
{
    bool any = false;
    for (int c = 0; c < WIDE; c++) {
        const bool own = c < count;
        zeros[c] = own ? of->zeros[first + c] : 0;
        bias[c] = own ? (int32_t)(0u - (uint32_t)of->x_zero * (uint32_t)of->totals[first + c]) : 0;
        any |= zeros[c] != 0;
    }
    return any;
}

void cornu__int8_sums(const CornuInt8Sums *sums, int64_t block, const uint8_t *x, int32_t *y)
{
    const Plan    plan = plan_of(sums);
    const int64_t filters = sums->window.out_channels, most = pieces_of(&plan);
    const int64_t panels = ceil_divide(filters, CORNU_INT8_COLUMNS);
    const int64_t across = ceil_divide(plan.pairs, PAIRS), first = block / across * most;
    const int64_t end = smaller(first + most, plan.count), bytes = plan.segments * plan.groups *
                                                                   CORNU_INT8_PANEL;
    int32_t       totals[ROWS + PIECE], zeros[WIDE], bias[WIDE];
    bool          added = false;
    for (int64_t p = block % across * PAIRS; p < plan.pairs && p < (block % across + 1) * PAIRS;
         p++) {
        CornuInt8Tile tile = { .x_stride = plan.pixel, .offsets = plan.offsets,
                               .segments = plan.segments, .groups = plan.groups,
                               .panels = 2 * p + 1 < panels ? 2 : 1, .finish = { .bias = bias },
                               .y_stride = (ptrdiff_t)filters, .zeros = zeros };
        tile.columns = (int)smaller(filters - p * WIDE, tile.panels * CORNU_INT8_COLUMNS);
        tile.panel[0] = sums->panels + 2 * p * bytes;
        tile.panel[1] = tile.panel[0] + bytes;
        const bool any = columns_of(sums, p * WIDE, tile.columns, zeros, bias);
        for (int64_t i = first, at = 0; i < end; i++) {
            const Piece piece = piece_of(&plan, i, x);
            if (any && !added) add_rows(&plan, &piece, totals + at);
            multiply(&plan, &piece, any ? totals + at : NULL, &tile, y + p * WIDE);
            at += piece.count;
        }
        added |= any;
    }
}
