/*
 * matmul: a (…, M, K) by b (…, K, N), bf16 or f32 in and out, f32 in the sums.
 *
 * b is packed in advance into panels two registers wide. Rows of a are read where they lie, or
 * copied by the block that reads them if they have to be converted (precision.h) or if those of a
 * tile would share few sets of the cache; but if a copy would meet few panels, tiles have as many
 * rows as these sets hold. Where K is long, a block goes through it in stretches: it copies its
 * rows of one, and all its tiles meet that part of a panel, which stays near while they request the
 * next one. Sums continue in memory from stretch to stretch, so that their terms are added in the
 * same order; with tile registers all passes of f32 advance together, as they share parts. Where a
 * is transposed, matmul_transposed.c has the block; but with tile registers all of a is made rows
 * at first, stretch by stretch, and so it is where several blocks would copy the same rows.
 *
 * A block is some rows of one matrix by some panels; matmul_blocks.c cuts. A batch of a with one
 * matrix b is one product with more rows.
 *
 * Reference: device/ops/matmul.c; tests/device/host/kernels/test_products.c compares them.
 * Source: own; packing and blocking as in Goto and van de Geijn, "Anatomy of High-Performance
 *     Matrix Multiplication", 2008, and BLIS.
 * Gain, Zen 4, bf16: rows of a 4 KiB apart copied, the LSTM's d_z W', one core: 66 % of the limit,
 *     then 93; a transposed a packed tile by tile, 512 x 2048 x 1600, one core: 88 %, then 93;
 *     panels packed where they are used, an MLP of 784-4096-4096-10 on 64 rows, f32: 163 ms a step,
 *     then 134.
 * Gain, Zen 3, AVX2, one core: K in stretches, 1024 x 4096 by 4096 x 4096 448 ms, then 412; panels
 *     packed where they are used in strips, 64 rows 42.2, then 32.7; row by row, or column by
 *     column, two threads, 64 x 4096 by 4096 x 4096 17.2 ms, then 15.5; b transposed 17.5, then
 *     16.4.
 * Gain, Zen 3, AVX2, two threads: the term of a tile requested, 4096 x 256 by 256 x 256 in high
 *     blocks 3.15 ms, then 2.97.
 * Gain, Xeon (model 207), f32, one core, of the limit: tiles request what comes next, and K is cut
 *     by the second-level cache; AVX-512, 1024 x 4096 by 4096 x 4096 74 %, then 84; 4096 x 256 by
 *     256 x 1024 74, then 85; AVX2, 1024 x 4096 by 4096 x 4096 52, then 81.
 * Gain, the same Xeon, f32, one core: rows of a that the next stretch needs requested, 4096 x 256
 *     by 256 x 1024 14.0 ms, then 13.6; 6400 x 512 by 512 x 128 5.6, then 5.3; an encoder's step,
 *     two threads, 182 ms, then 176.
 * Gain, Xeon with AMX, one core, f32 in six passes: passes in turns, in stretches of K, and b made
 *     parts piece by piece, 1024 x 4096 by 4096 x 4096 626 ms, then 257; b transposed 723, then
 *     270; 4096 x 1024 (a transposed) by 1024 x 4096 335, then 222; 64 x 4096 by 4096 x 4096 88,
 *     then 49.
 * Gain, Xeon with AMX, two threads: a transposed a made rows, with tiles that stay configured a
 *     step of the LSTM at 128 x 100 on 8 shards: 762 ms, then 286.
 */
#include <string.h>

#include "../../inference_internal.h"
#include "../isa/transpose.h"
#include "../machine/cpu.h"
#include "../machine/prefetch.h"
#include "kernels.h"
#include "matmul_internal.h"

enum {
    PACK_ROWS = 64,      /* of b, packed by one block; even             */
    PACK_PANELS = 8,     /* that a row goes into at a time              */
    ROWS_AHEAD = 2,      /* of a are requested while a row is copied    */
    MOST_COLUMNS = 32,   /* of a panel                                  */
    MADE_ROWS = 64       /* of a that are made at once                  */
};

CornuMatmulExtents cornu__matmul_extents(const CornuOpCall *op, const CornuType *out_type)
{
    const CornuShape   a = op->in[0].shape, b = op->in[1].shape;
    const bool         transpose_a = op->attributes->matmul.transpose_a;
    const bool         transpose_b = op->attributes->matmul.transpose_b;
    const int64_t     *last_a = a.extent + a.rank - 2, *last_b = b.extent + b.rank - 2;
    CornuMatmulExtents e = { .batch = 1, .m = last_a[transpose_a], .n = last_b[!transpose_b],
                             .k = last_a[!transpose_a] };
    e.a_row = transpose_a ? 1 : e.k;
    e.a_column = transpose_a ? e.m : 1;
    e.b_row = transpose_b ? 1 : e.n;
    e.b_column = transpose_b ? e.k : 1;
    for (int i = 0; i < out_type->shape.rank - 2; i++) e.batch *= out_type->shape.extent[i];
    e.a_batch = a.rank > 2 ? e.m * e.k : 0;
    e.b_batch = b.rank > 2 ? e.k * e.n : 0;
    if (!e.b_batch && !transpose_a) {
        e.m *= e.batch;
        e.batch = 1;
    }
    return e;
}

/* Whether b was packed by a step of its own is known only when the kernel runs. */
static size_t matmul_scratch(const CornuQuery *q)
{
    CornuMatmul  own = { .packs = cornu__matmul_packs_itself(q) };
    CornuMatmul  given = { .packs = false };
    CornuScratch packing = { 0 }, packed = { 0 };
    cornu__matmul_lay_out(&own, q, &packing);
    cornu__matmul_lay_out(&given, q, &packed);
    return packing.bytes > packed.bytes ? packing.bytes : packed.bytes;
}

/* ---- b ---- */

/* A piece of b: `count` rows from row k on, the columns of the panel at column `first`. */
typedef struct {
    int64_t first, k, count;
    int64_t at;   /* the number of its first element in memory */
} Piece;

/* Its parts into rows from `to` on of those of a panel, which are `depth` rows apart. Whatever is
 * adjacent in memory becomes parts together. */
static void pack_parts(const CornuMatmul *p, char *panel, int64_t depth, int64_t to,
                       const Piece *piece)
{
    _Alignas(CORNU_LINE_BYTES) float parts[CORNU_MOST_PARTS * PACK_ROWS * MOST_COLUMNS];
    const int64_t width = cornu__panel_width(p, piece->first);
    const int64_t columns = smaller(width, p->e.n - piece->first);
    const bool    by_columns = p->e.b_row == 1;
    const int64_t lines = by_columns ? columns : piece->count;
    const int64_t length = by_columns ? piece->count : columns;
    const int64_t step = by_columns ? p->e.b_column : p->e.b_row, part = PACK_ROWS * MOST_COLUMNS;
    for (int64_t i = 0; i < lines; i++)
        cornu__parts(&p->how, p->call->in[1], piece->at + i * step, length,
                     (char *)parts + i * length * (int64_t)p->products->size, part);
    for (int i = 0; i < p->how.parts; i++)
        p->products->pack(panel, width, i * depth + to, piece->count,
                          cornu__element(&p->how, parts, i * part), by_columns ? 1 : length,
                          by_columns ? length : 1, columns);
}

/* A piece into rows from `to` on of the panel. */
static void pack_panel(const CornuMatmul *p, char *panel, int64_t depth, int64_t to, Piece piece)
{
    const int64_t width = cornu__panel_width(p, piece.first), end = piece.k + piece.count;
    const int64_t end_to = to + piece.count;
    if (p->how.in_place)
        p->products->pack(panel, width, to, piece.count,
                          cornu__in_memory(&p->how, p->call->in[1], piece.at), p->e.b_row,
                          p->e.b_column, smaller(width, p->e.n - piece.first));
    else
        for (; piece.k < end; piece.k += PACK_ROWS, to += PACK_ROWS) {
            piece.count = smaller(PACK_ROWS, end - piece.k);
            pack_parts(p, panel, depth, to, &piece);
            piece.at += PACK_ROWS * p->e.b_row;
        }
    if (end < p->e.k || p->depth == p->e.k) return;
    for (int i = 0; i < p->how.parts; i++)   /* the odd one's other half */
        p->products->pack(panel, width, i * depth + end_to, 1, p->call->in[1], 0, 0, 0);
}

/* Rows that a block packs, and panels that they go into: a few rows into all of them; or where rows
 * of b are columns in memory, all rows into one, which reads its columns from end to end, in place
 * of a part of every page of b. */
static int64_t rows_packed(const CornuMatmul *p) { return p->e.b_row == 1 ? p->e.k : PACK_ROWS; }

static int64_t panels_packed(const CornuMatmul *p) { return p->e.b_row == 1 ? 1 : p->panels; }

static void pack_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const CornuMatmul *p = context;
    const int64_t      row_blocks = ceil_divide(p->e.k, rows_packed(p));
    const int64_t      blocks = row_blocks * (p->panels / panels_packed(p));
    const int64_t      k = block % row_blocks * rows_packed(p), matrix = block / blocks;
    const int64_t      begin = block % blocks / row_blocks * cornu__panel_columns(p);
    const int64_t      end = begin + panels_packed(p) * cornu__panel_columns(p);
    const int64_t      count = smaller(rows_packed(p), p->e.k - k);
    const int64_t      from = matrix * p->e.b_batch + k * p->e.b_row;
    for (int64_t n = begin; n < smaller(end, p->padded); n += cornu__panel_columns(p))
        pack_panel(p, (char *)p->call->out[0] + cornu__panel_offset(p, matrix, n), p->depth, k,
                   (Piece){ n, k, count, from + n * p->e.b_column });
}

void cornu__matmul_pack(const CornuKernelCall *call)
{
    CornuMatmul p = { .call = call };
    cornu__matmul_find_blocks(&p, &call->op, call->out_type, call->multiplier);
    if (p.e.k == 0) return;
    cornu__threads_run(call->threads, p.b_matrices * ceil_divide(p.e.k, rows_packed(&p)) *
                       (p.panels / panels_packed(&p)), pack_block, &p);
}

/* ---- The product ---- */

/* What of the epilogue is left, which only f32 results have, to the rows of a block from y on. */
void cornu__matmul_finish(const CornuMatmul *p, const CornuBlock *b, const CornuEpilogue *rest,
                          float *y, int64_t stride)
{
    cornu__epilogue_apply(rest, &(CornuEpilogueRows){
        .y = y, .rows = b->m_end - b->m, .columns = smaller(b->end, p->e.n) - b->first,
        .stride = stride, .first = cornu__result_number(p, b->matrix, b->m, b->first),
        .width = p->e.n });
}

void cornu__matmul_gate(const CornuMatmul *p, const CornuBlock *b)
{
    for (int64_t m = b->m; m < b->m_end && p->call->epilogue->gate; m++)
        cornu__epilogue_gate(p->call->epilogue, p->call->out_type->dtype,
                             cornu__result_number(p, b->matrix, m, b->first),
                             smaller(b->end, p->e.n) - b->first,
                             cornu__result_at(p, b->matrix, m, b->first));
}

/* A stretch of K of a block. */
typedef struct {
    int64_t    block, k, count;
    CornuBlock b;
} Stretch;

static Stretch stretch_at(const CornuMatmul *p, int64_t block, int64_t k)
{
    return (Stretch){ block, k, smaller(p->stretch, p->e.k - k), cornu__block(p, block) };
}

/* The one that this thread takes next, as far as is known; without rows if there is none. */
static Stretch stretch_after(const CornuMatmul *p, const Stretch *now)
{
    const int64_t k = now->k + now->count, blocks = p->e.batch * p->row_blocks * p->column_blocks;
    if (k < p->e.k) return stretch_at(p, now->block, k);
    const int64_t next = cornu__threads_next(p->call->threads, blocks, now->block);
    return next < blocks ? stretch_at(p, next, 0) : (Stretch){ .block = -1 };
}

/* The number of the first element of a row of the stretch from k on, as it is made at first: the
 * rows of each stretch follow each other. */
static int64_t made_number(const CornuMatmul *p, int64_t matrix, int64_t m, int64_t k)
{
    const int64_t before = (p->e.a_batch ? matrix : 0) * cornu__stretches(p) +
                           k / larger(1, p->stretch);
    return (before * p->e.m + m) * p->made_row;
}

/* The number of the first element of a row of a stretch. */
static int64_t row_number(const CornuMatmul *p, const Stretch *now, int64_t row)
{
    return p->made_row ? made_number(p, now->b.matrix, now->b.m + row, now->k)
                       : now->b.matrix * p->e.a_batch + (now->b.m + row) * p->e.k + now->k;
}

/* The rows of a stretch as tiles take them, their parts x_part elements apart. Rows are far from
 * each other, so that the processor does not read ahead. */
static const void *rows_of_a(const CornuMatmul *p, const Stretch *now, int thread)
{
    const int64_t rows = now->b.m_end - now->b.m;
    if (!p->copied) return cornu__in_memory(&p->how, p->a, row_number(p, now, 0));
    char *made = p->x + thread * p->x_bytes;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t ahead = row_number(p, now, smaller(row + ROWS_AHEAD, rows - 1));
        const char   *next = cornu__in_memory(&p->how, p->a, ahead);
        const char   *end = cornu__in_memory(&p->how, p->a, ahead + now->count);
        for (; next < end; next += CORNU_LINE_BYTES) cornu__prefetch(next, 0);
        cornu__parts(&p->how, p->a, row_number(p, now, row), now->count,
                     made + row * p->x_stride * (int64_t)p->products->size, p->x_part);
    }
    return made;
}

/* Of the rows of a that the next stretch needs, share i of n, to be requested while panel i of n is
 * multiplied; none where they are the rows of this one, by other columns. */
static CornuAheadRows share_of_next(const CornuMatmul *p, const Stretch *now, const Stretch *next,
                                    int64_t i, int64_t n)
{
    const int64_t rows = next->b.m_end - next->b.m, from = i * rows / n;
    const int64_t size = p->how.from == CORNU_BF16 ? 2 : 4;
    if (next->k == now->k && next->b.m == now->b.m && next->b.matrix == now->b.matrix)
        return (CornuAheadRows){ .rows = 0 };
    return cornu__ahead_rows(cornu__in_memory(&p->how, p->a, row_number(p, next, from)),
                             (i + 1) * rows / n - from, next->count * size,
                             (p->made_row ? p->made_row : p->e.k) * size);
}

/* What the tiles of a block have in common in a stretch: sums start with the bias, or continue; the
 * last ones are the results. */
typedef struct {
    Stretch     now, next;
    bool        last;
    const void *x;
    const char *panels;    /* from the block's first column on                */
    int64_t     depth;     /* rows of a part of each                          */
    int64_t     row;       /* the first of the stretch there                  */
    float      *sums;      /* of the block, between stretches                 */
    int64_t     stride;
} Common;

/* Rows of a panel, all parts. */
static int64_t panel_depth(const CornuMatmul *p, const Common *s)
{
    return p->how.parts * s->depth;
}

/* Whether rows go into several panels at once: those that b has in memory, in f32. */
static bool packs_rows(const CornuMatmul *p)
{
    return p->how.in_place && p->e.b_row != 1 && p->products->pack_tiles;
}

/* A piece into rows from `to` on of panels up to column `end`, the first of them at `panels`. */
static void pack_panels(const CornuMatmul *p, char *panels, int64_t depth, int64_t to, Piece piece,
                        int64_t end)
{
    const int64_t width = cornu__panel_columns(p), size = (int64_t)p->products->size;
    for (int64_t columns; piece.first < end; piece.first += columns) {
        const int64_t whole = (smaller(end, p->e.n) - piece.first) / width;
        const int64_t count = packs_rows(p) ? larger(1, smaller(PACK_PANELS, whole)) : 1;
        columns = count * width;
        if (count > 1)
            p->products->pack_tiles(panels + to * width * size, width, count, width * depth,
                                    piece.count,
                                    cornu__in_memory(&p->how, p->call->in[1], piece.at),
                                    p->e.b_row);
        else
            pack_panel(p, panels, depth, to, piece);
        piece.at += columns * p->e.b_column;
        panels += columns * p->how.parts * depth * size;
    }
}

/* Finds the panels that are packed by now, or packs the stretch's rows of b; a few into all panels
 * in turn, as neighbouring columns of a row share pages, where not by whole rows or columns. */
static void find_panels(const CornuMatmul *p, int thread, Common *s)
{
    const CornuBlock *b = &s->now.b;
    const int64_t     n = b->first, count = s->now.count;
    s->depth = p->depth;
    s->row = s->now.k;
    s->panels = p->packed + cornu__panel_offset(p, p->e.b_batch ? b->matrix : 0, n);
    if (!p->packs) return;
    char         *panels = p->panel + thread * p->panel_bytes;
    const bool    whole = packs_rows(p) || (p->how.in_place && p->e.b_row == 1);
    const int64_t rows = whole ? larger(1, count) : PACK_ROWS;
    s->depth = ceil_multiple(p->stretch, p->products->depth);
    s->row = 0;
    s->panels = panels;
    for (int64_t k = 0; k < count; k += rows)
        pack_panels(p, panels, s->depth, k,
                    (Piece){ n, s->now.k + k, smaller(rows, count - k),
                             (s->now.k + k) * p->e.b_row + n * p->e.b_column }, b->end);
}

/* For a tile with registers of its own, which requests nothing itself. */
static void request_now(CornuAhead *ahead, int64_t lines)
{
    const int64_t each = ceil_divide(lines, ahead->sums.rows);
    while (ahead->sums.rows > 0) cornu__request(ahead, each);
}

/* The term of a tile from row m of the block and column `first` on, before the tile adds it. */
static void request_term(const CornuMatmul *p, const CornuBlock *b, int64_t m, int64_t rows,
                         int64_t first)
{
    const float *term = p->call->epilogue->term;
    const size_t bytes = (size_t)cornu__panel_width(p, first) * sizeof *term;
    for (int64_t row = b->m + m; row < b->m + m + rows; row++)
        for (size_t at = 0; at < bytes; at += CORNU_LINE_BYTES)
            cornu__prefetch(term + cornu__result_number(p, b->matrix, row, first), at);
}

/* Whether tiles request what comes next: not where one alone reads a panel, as fast as it comes,
 * from end to end, which the processor foresees; nor where two do and b is probably near. */
static bool requests(const CornuMatmul *p, const CornuBlock *b)
{
    const int64_t rows = b->m_end - b->m;
    const int64_t bytes = p->depth * p->padded * (int64_t)p->products->size;
    return p->products->depth > 1 || rows > 2 * p->tile_rows ||
           (rows > p->tile_rows && bytes > cornu__cpu()->l2 / 2);
}

/* A panel by all rows of the block. Meanwhile that stretch of the next panel is requested; where it
 * has several parts only the first, as requesting all is no faster. */
static void multiply_panel(const CornuMatmul *p, const Common *s, CornuTile *tile, int64_t first)
{
    const CornuBlock *b = &s->now.b;
    const int64_t rows = b->m_end - b->m, tiles = ceil_divide(rows, p->tile_rows);
    const int64_t columns = tile->vectors * p->products->lanes;
    const int64_t row = columns * (int64_t)p->products->size;
    const int64_t lines = s->now.count * row / CORNU_LINE_BYTES;
    const int64_t size = tile->narrow ? sizeof(uint16_t) : sizeof(float);
    const float  *term = s->last ? p->call->epilogue->term : NULL;
    float        *sums = s->sums + first - b->first;
    CornuAhead    none, *ahead = tile->ahead ? tile->ahead : &none;
    const CornuAheadRows then =
        share_of_next(p, &s->now, &s->next, (first - b->first) / cornu__panel_columns(p),
                      ceil_divide(b->end - b->first, cornu__panel_columns(p)));
    *ahead = (CornuAhead){
        .rows = cornu__ahead_lines((const char *)tile->panel + (panel_depth(p, s) + s->row) * row,
                                   lines),
        .then = &then, .count = 1,
        .sums = { .bytes = columns * size, .stride = tile->y_stride * size } };
    cornu__ahead_pace(ahead, tiles * ceil_divide(s->now.count, p->products->depth),
                      CORNU_AHEAD_TERMS);
    tile->bias = p->bias + first;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t m = t * rows / tiles;
        tile->rows = (int)((t + 1) * rows / tiles - m);
        tile->x = cornu__element(&p->how, s->x, m * p->x_stride);
        tile->y = s->last ? (void *)cornu__result_at(p, b->matrix, b->m + m, first)
                          : sums + m * s->stride;
        if (s->now.k > 0) tile->bias = sums + m * s->stride;
        if (term) {
            tile->term = term + cornu__result_number(p, b->matrix, b->m + m, first);
            request_term(p, b, m, tile->rows, first);
        }
        cornu__request_sums(ahead, tile->y, m, tile->rows, t + 1 == tiles);
        if (p->in_turns && cornu__is_stretched(p))
            request_now(ahead, ceil_divide(lines, tiles));
        p->products->tile(tile);
    }
}

/* What is left of a tile's sums, which several panels at once have not made. */
static void finish_panels(const CornuTile *tile, const CornuMatmul *p, int64_t columns)
{
    if (cornu__finish_is_empty(&tile->finish) && !tile->term) return;
    p->products->finish(&(CornuFinishRows){
        .y = tile->y, .rows = tile->rows, .columns = columns, .stride = tile->y_stride,
        .term_stride = tile->y_stride, .term = tile->term, .finish = tile->finish });
}

/* All rows of a block, which are few, by as many panels from column `first` on as there are, since
 * one panel is too few sums to keep the processor busy. Returns the columns; 0: by one panel. */
static int64_t multiply_panels(const CornuMatmul *p, const Common *s, const CornuTile *common,
                               int64_t first)
{
    const CornuBlock *b = &s->now.b;
    const int64_t     rows = b->m_end - b->m, width = cornu__panel_columns(p);
    const int64_t     end = smaller(b->end, p->e.n);
    const bool        can = p->products->panels && p->products->finish && p->how.passes == 1;
    const int64_t     most = can && rows <= p->products->panels_rows ? CORNU_MOST_PANELS : 0;
    const int         panels = (int)smaller(most, (end - first) / width);
    if (panels < 2 || common->narrow) return 0;
    const int64_t number = cornu__result_number(p, b->matrix, b->m, first);
    CornuTile     tile = *common;
    tile.rows = (int)rows;
    tile.x = s->x;
    tile.y = s->last ? (void *)cornu__result_at(p, b->matrix, b->m, first)
                     : s->sums + first - b->first;
    tile.bias = s->now.k > 0 ? s->sums + first - b->first : p->bias + first;
    tile.ahead = NULL;
    if (s->last && p->call->epilogue->term) tile.term = p->call->epilogue->term + number;
    p->products->panels(&(CornuPanels){
        .tile = tile, .panels = panels, .bias_next = width, .y_next = width,
        .panel_next = width * panel_depth(p, s) });
    finish_panels(&tile, p, panels * width);
    return panels * width;
}

static void multiply_stretch(const CornuMatmul *p, const Common *s)
{
    const CornuBlock *b = &s->now.b;
    CornuRun          runs[CORNU_MOST_PASSES];
    for (int pass = 0; pass < p->how.passes; pass++)
        runs[pass] = (CornuRun){ p->how.pass[pass][0] * p->x_part,
                                 p->how.pass[pass][1] * s->depth + s->row, s->now.count };
    CornuAhead ahead;
    CornuTile  tile = { .x_stride = p->x_stride, .runs = runs, .run_count = p->how.passes,
                        .bias_stride = s->now.k > 0 ? s->stride : 0,
                        .y_stride = s->last ? p->e.n : s->stride,
                        .ahead = requests(p, b) ? &ahead : NULL,
                        .in_turns = p->in_turns, .x_far = p->square,
                        .narrow = s->last && p->call->out_type->dtype == CORNU_BF16 };
    for (int64_t first = b->first, width; first < b->end; first += width) {
        width = cornu__panel_width(p, first);
        tile.panel = s->panels +
                     (first - b->first) * panel_depth(p, s) * (int64_t)p->products->size;
        if (s->last) tile.finish = cornu__finish_from(&p->finish, first);
        const int64_t columns = multiply_panels(p, s, &tile, first);
        if (columns > 0) {
            width = columns;
            continue;
        }
        tile.vectors = (int)(width / p->products->lanes);
        tile.columns = (int)(s->last ? smaller(width, p->e.n - first) : width);
        multiply_panel(p, s, &tile, first);
    }
}

static void multiply(void *context, int64_t block, int thread)
{
    const CornuMatmul *p = context;
    const CornuBlock   b = cornu__block(p, block);
    const bool in_place = cornu__matmul_sums_in_place(p, p->call->out_type);
    Common     s = { .sums = in_place ? (void *)cornu__result_at(p, b.matrix, b.m, b.first)
                                      : p->sums + thread * p->sums_count,
                     .stride = in_place ? p->e.n : b.end - b.first,
                     .next = stretch_at(p, block, 0) };
    do {   /* at least once: without terms the results are the epilogue's */
        s.now = s.next;
        s.next = stretch_after(p, &s.now);
        s.last = s.now.k + s.now.count == p->e.k;
        s.x = rows_of_a(p, &s.now, thread);
        find_panels(p, thread, &s);
        multiply_stretch(p, &s);
    } while (!s.last);
    const CornuEpilogue rest = cornu__epilogue_after_tiles(p->call->epilogue);
    if (rest.activation != CORNU_OP_COUNT)
        cornu__matmul_finish(p, &b, &rest,
                             (float *)(void *)cornu__result_at(p, b.matrix, b.m, b.first), p->e.n);
    cornu__matmul_gate(p, &b);
}

/* Some rows of one matrix a, which is transposed: its columns. */
static void turn_columns(const CornuMatmul *p, int64_t matrix, int64_t m, int64_t columns)
{
    for (int64_t k = 0; k < p->e.k; k += p->stretch) {
        const int64_t from = (matrix * p->e.k + k) * p->e.m + m, to = made_number(p, matrix, m, k);
        const int64_t count = smaller(p->stretch, p->e.k - k);
        if (p->how.from == CORNU_BF16)
            cornu__transposes()->halves((const uint16_t *)p->call->in[0] + from, p->e.m, count,
                                        columns, (uint16_t *)(void *)p->made + to, p->made_row);
        else
            cornu__transposes()->words((const uint32_t *)p->call->in[0] + from, p->e.m, count,
                                       columns, (uint32_t *)(void *)p->made + to, p->made_row);
    }
}

static void copy_rows(const CornuMatmul *p, int64_t matrix, int64_t m, int64_t rows)
{
    const int64_t size = (int64_t)p->products->size;
    for (const int64_t end = m + rows; m < end; m++) {
        const char *row = cornu__in_memory(&p->how, p->call->in[0],
                                           matrix * p->e.a_batch + m * p->e.k);
        for (int64_t k = 0; k < p->e.k; k += p->stretch)
            memcpy(p->made + made_number(p, matrix, m, k) * size, row + k * size,
                   (size_t)(smaller(p->stretch, p->e.k - k) * size));
    }
}

static void make_rows(void *context, int64_t block, int thread)
{
    (void)thread;
    const CornuMatmul *p = context;
    const int64_t blocks = ceil_divide(p->e.m, MADE_ROWS), matrix = block / blocks;
    const int64_t m = block % blocks * MADE_ROWS, rows = smaller(MADE_ROWS, p->e.m - m);
    if (p->turned) turn_columns(p, matrix, m, rows);
    else copy_rows(p, matrix, m, rows);
}

static CornuStatus matmul(const CornuKernelCall *call)
{
    const CornuQuery q = cornu__query_of(call);
    CornuMatmul      p = { .call = call, .a = call->in[0], .packed = call->in[1],
                           .packs = !call->packed &&   /* without terms nothing does */
                                    cornu__matmul_packs_itself(&q) };
    cornu__matmul_lay_out(&p, &q, &(CornuScratch){ .memory = call->scratch });
    cornu__biases(call->epilogue, call->out_type->dtype, p.e.n, p.padded, p.bias);
    p.finish = cornu__padded_finish(call->epilogue, p.e.n, p.padded, p.bias + p.padded);
    if (p.made_row) {
        cornu__threads_run(call->threads, (p.e.a_batch ? p.e.batch : 1) *
                           ceil_divide(p.e.m, MADE_ROWS), make_rows, &p);
        p.a = p.made;
    }
    if (p.transposed) cornu__matmul_transposed(&p);
    else
        cornu__threads_run(call->threads, p.e.batch * p.row_blocks * p.column_blocks, multiply, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_matmul = {
    .name = "matmul", .declines = cornu__product_declines, .scratch = matmul_scratch, .run = matmul,
    .takes_epilogue = true, .takes_scale = true, .takes_gate = true,
    .pack_bytes = cornu__matmul_pack_bytes, .pack = cornu__matmul_pack, .packs = 1,
    .packs_itself = cornu__matmul_packs_itself,
    .summed = CORNU__FULL(&cornu__host_matmul_summed, NULL),
};
