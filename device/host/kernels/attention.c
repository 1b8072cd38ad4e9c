/*
 * attention, f32 or bf16, without its scores in memory: a block of queries goes over the blocks of
 * keys and keeps for each query the largest score so far, the sum of exponentials and the weighted
 * sum of values, both scaled down when a larger score comes.
 *
 * A block is 128 by 128 steps of one head, of bf16 products 256 by 256: its operands stay in the
 * second level of the cache. Of a block the scores of one panel of queries at a time are computed,
 * of the keys that one of these attends to; they stay in the first level. Scores have a row for
 * each key and a column for each query, so that sums over keys run down the lanes of registers, and
 * become the panel of the next product as they are; the sums of values have columns for queries,
 * too, and are transposed at the end. All products are tiles (isa/product.h), so that AMX computes
 * them. Sums are f32, in an order that depends on the shape alone; of bf16 the weights are rounded
 * to it before they are multiplied, where the processor multiplies bf16.
 *
 * Reference: device/ops/attention.c; tests/device/host/kernels/test_attention.c compares them.
 * Source: Dao et al., "FlashAttention", arXiv 2205.14135; Dao, "FlashAttention-2", arXiv
 *     2307.08691; Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv
 *     1805.02867.
 * Gain, Zen 4, processor time of a step with attention op by op over that with this kernel and
 *     attention_grad.c: char_gpt at 64 x 128 f32 1.15, bf16 1.10, with AVX2 1.18 and 1.14; encoder
 *     at 32 x 128 f32 1.04, bf16 1.03, at 4 x 1024 f32 1.10, at 8 x 1024 bf16 1.20. Of the limit
 *     reached by what is not masked, one core, forward and backward, f32: 32 x 128 steps, 4 heads
 *     of 64: 76 and 71 %, 8 x 1024: 80 and 81 %; bf16: 63 and 64 %, 67 and 72 %. Causal, 64 x 128,
 *     4 heads of 32, where a tile of 32 queries is computed whole: 48 and 49 %, bf16 36 and 41 %.
 *     Prefetched rows of a head, f32, 32 x 128: forward 7.3, then 6.6 ms, backward 17.7, then 16.3.
 *     Xeon (family 6, model 207), one core, bf16 by AMX, forward and backward: with the sums of
 *     values and of d_q by vdpbf16ps 32 x 128 steps, 4 heads of 64: 5.3 and 8.2 ms, on tiles 2.1
 *     and 3.9; 2 x 1024 steps 19.5 and 28.5, then 6.2 and 12.3, in blocks of 128 by 128 6.4 and
 *     14.5. Causal, 64 x 100, 4 heads of 32: 8.7 and 14.9, then 2.4 and 4.3; there half the time
 *     went into weights of masked scores, computed as subnormal numbers.
 */
#include "attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../../integer_internal.h"
#include "../machine/bf16.h"
#include "../isa/transpose.h"
#include "../machine/prefetch.h"

enum {
    APART = 16,                  /* elements between rows: they spread over the sets of a cache */
    SPREAD = 1024                /* bytes, as in matmul.c: rows of a tile in place are no further
                                    apart than this power of two */
};

/* ---- Sizes ---- */

/* Of rows that are copied. */
static int64_t copy_stride(int64_t width) { return ceil_multiple(width, 2 * APART) + 2 * APART; }

static bool is_copied(const CornuAttend *p, int i)
{
    const int64_t *extent = p->in[i].shape.extent;
    const int64_t  size = cornu__attend_size(p), apart = extent[2] * extent[3] * size;
    if (p->dtype != (size == 2 ? CORNU_BF16 : CORNU_F32)) return true;
    return extent[3] % p->products->depth || (apart & -apart) > SPREAD;
}

/* ---- A thread's memory ---- */

static void *part(CornuScratch *scratch, int64_t bytes)
{
    void *taken = cornu__take(scratch, (size_t)bytes);
    cornu__take_line(scratch);
    return taken;
}

static float *floats(CornuScratch *scratch, int64_t count) { return part(scratch, 4 * count); }

static void *rows(const CornuAttend *p, int i, int64_t count, CornuScratch *scratch)
{
    if (!is_copied(p, i)) return NULL;
    return part(scratch, count * copy_stride(p->in[i].shape.extent[3]) * cornu__attend_size(p));
}

/* Elements along a sum of so many, for each of so many columns. */
static void *operand(const CornuAttend *p, int64_t count, int64_t columns, CornuScratch *scratch)
{
    return floats(scratch, cornu__attend_words(p, count) * columns);
}

static void take_forward(const CornuAttend *p, CornuAttendMemory *own, CornuScratch *scratch)
{
    own->turned = part(scratch, p->e.values * p->turned_stride * cornu__attend_size(p));
    own->sums = floats(scratch, p->queries * p->e.values);
    own->most = floats(scratch, p->queries);
    own->total = floats(scratch, p->queries);
    own->factor = floats(scratch, p->queries);
}

static void take_backward(const CornuAttend *p, CornuAttendMemory *own, CornuScratch *scratch)
{
    const int64_t steps = p->shared * p->query_blocks * p->queries, size = cornu__attend_size(p);
    own->d_y_rows = rows(p, CORNU_ATTENTION_D_Y, p->queries, scratch);
    own->d_y_columns = operand(p, p->e.values, p->queries, scratch);
    own->q_panels = operand(p, p->queries, p->size_padded, scratch);
    own->d_y_panels = operand(p, p->queries, p->values_padded, scratch);
    own->turned = part(scratch, p->e.size * p->turned_stride * size);
    own->d_p = floats(scratch, p->keys * p->panel);
    own->p = part(scratch, p->keys * p->queries * size);
    own->d_s = part(scratch, p->keys * p->queries * size);
    own->delta = floats(scratch, steps);
    own->lse = floats(scratch, steps);
    own->d_q = floats(scratch, steps * p->e.size);
    own->d_k = floats(scratch, p->keys * p->size_padded);
    own->d_v = floats(scratch, p->keys * p->values_padded);
}

static CornuAttendMemory take_memory(const CornuAttend *p, CornuScratch *scratch)
{
    CornuAttendMemory own = { .zeros = floats(scratch, p->panel) };
    own.q_rows = rows(p, CORNU_ATTENTION_Q, p->queries, scratch);
    own.k_rows = rows(p, CORNU_ATTENTION_K, p->keys, scratch);
    own.v_rows = rows(p, CORNU_ATTENTION_V, p->keys, scratch);
    own.q_columns = operand(p, p->e.size, p->queries, scratch);
    own.scores = floats(scratch, p->keys * p->panel);
    own.packed = operand(p, p->keys, p->panel, scratch);
    own.made = floats(scratch, p->panel * larger(p->size_padded, p->values_padded));
    if (p->id == CORNU_OP_ATTENTION) take_forward(p, &own, scratch);
    else take_backward(p, &own, scratch);
    return own;
}

CornuAttendMemory cornu__attend_memory(const CornuAttend *p, int thread)
{
    CornuScratch      scratch = { (char *)p->call->scratch + (size_t)thread * p->bytes, 0 };
    CornuAttendMemory own = take_memory(p, &scratch);
    memset(own.zeros, 0, (size_t)p->panel * sizeof *own.zeros);
    return own;
}

CornuAttend cornu__attend(const CornuOpCall *op, CornuMultiplier multiplier)
{
    const bool   bf16 = multiplier.bf16 && op->in[0].dtype == CORNU_BF16;
    CornuScratch scratch = { 0 };
    CornuAttend  p = {
        .id = op->id, .e = cornu__attention_extents(op), .attributes = &op->attributes->attention,
        .in = op->in, .dtype = op->in[0].dtype,
        .products = bf16 ? cornu__products_of_bf16() : cornu__products(),
        .attends = bf16 ? cornu__attends_of_bf16() : cornu__attends(),
    };
    const int64_t line = CORNU_LINE_BYTES / cornu__attend_size(&p);
    const int64_t side = CORNU_ATTEND_SIDE * p.products->depth;
    p.query_blocks = ceil_divide(p.e.queries, side);
    p.key_blocks = ceil_divide(p.e.keys, side);
    p.panel = 2 * p.products->lanes;
    p.queries = ceil_multiple(ceil_divide(p.e.queries, larger(1, p.query_blocks)), p.panel);
    p.keys = ceil_multiple(ceil_divide(p.e.keys, p.key_blocks), APART);
    p.shared = p.e.heads / p.e.groups;
    p.size_padded = ceil_multiple(p.e.size, p.products->lanes);
    p.values_padded = ceil_multiple(p.e.values, p.products->lanes);
    p.turned_stride = ceil_multiple(p.keys, line) + line;
    take_memory(&p, &scratch);
    p.bytes = scratch.bytes;
    return p;
}

size_t cornu__attend_scratch(const CornuQuery *q)
{
    return (size_t)q->machine.threads * cornu__attend(q->op, q->machine.multiplier).bytes;
}

/* f32 where products are of f32; not of windows that leave the last queries no key. */
CornuDecline cornu__attend_declines(const CornuQuery *q)
{
    const CornuAttentionExtents e = cornu__attention_extents(q->op);
    const CornuDtype            dtype = q->op->in[0].dtype;
    const int64_t               window = q->op->attributes->attention.window;
    if (e.size < 1 || e.values < 1 || (window && e.queries - window >= e.keys))
        return cornu__needs(false, "keys for each query");
    return cornu__needs(dtype == CORNU_BF16 || (dtype == CORNU_F32 && !q->machine.multiplier.bf16),
                        "the dtype that the device multiplies");
}

/* ---- Blocks ---- */

static bool mask_at(const CornuAttend *p, int64_t b, int64_t n, int64_t t, int64_t s)
{
    const int      i = cornu__attention_mask(&p->call->op);
    const int64_t *extent = p->in[i].shape.extent, at[] = { b, n, t, s };
    int64_t        index = 0;
    for (int axis = 0; axis < 4; axis++)
        index = index * extent[axis] + (extent[axis] > 1 ? at[axis] : 0);
    return ((const uint8_t *)p->call->in[i])[index];
}

static bool has_mask(const CornuAttend *p)
{
    return p->call->op.in_count > cornu__attention_mask(&p->call->op);
}

static bool attends_to_any(const CornuAttend *p, int64_t b, int64_t n, int64_t t)
{
    const CornuAttended own = cornu__attended(p->attributes, p->e.keys, t);
    for (int64_t s = own.begin; s < own.end; s++)
        if (mask_at(p, b, n, t, s)) return true;
    return false;
}

CornuQueries cornu__attend_queries(const CornuAttend *p, int64_t b, int64_t n, int64_t block)
{
    CornuQueries q = { .b = b, .n = n, .first = block * p->queries };
    q.count = smaller(p->queries, p->e.queries - q.first);
    q.full = !p->attributes->causal && !p->attributes->window;
    for (int64_t t = 0; has_mask(p) && !q.full && t < q.count; t++)
        q.full = !attends_to_any(p, b, n, q.first + t);
    return q;
}

CornuKeys cornu__attend_keys(const CornuAttend *p, int64_t block)
{
    const int64_t first = block * p->keys;
    return (CornuKeys){ first, smaller(p->keys, p->e.keys - first) };
}

bool cornu__attend_meets(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k)
{
    if (q->full) return true;
    const int64_t last = q->first + q->count - 1;
    return cornu__attended(p->attributes, p->e.keys, last).end > k->first &&
           cornu__attended(p->attributes, p->e.keys, q->first).begin < k->first + k->count;
}

/* The first query's first key and the last one's last, as both move on with the query. It begins at
 * an operand's first key. */
CornuPanel cornu__attend_panel(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                               int64_t first)
{
    CornuPanel panel = { .first = first, .count = smaller(p->panel, q->count - first),
                         .end = k->count, .opens = k->first == 0 };
    panel.columns = ceil_multiple(panel.count, p->products->lanes);
    if (q->full) return panel;
    const int64_t       t = q->first + first, depth = p->products->depth;
    const CornuAttended least = cornu__attended(p->attributes, p->e.keys, t);
    const CornuAttended most = cornu__attended(p->attributes, p->e.keys, t + panel.count - 1);
    panel.begin = larger(0, least.begin - k->first) / depth * depth;
    panel.end = smaller(k->count, most.end - k->first);
    panel.opens = least.begin >= k->first;
    return panel;
}

/* ---- Operands ---- */

/* Of x (B, steps, heads, width). */
static void prefetch(const CornuAttend *p, const void *x, CornuShape shape, int64_t b,
                     int64_t head, int64_t first, int64_t count)
{
    const int64_t *extent = shape.extent, size = p->dtype == CORNU_BF16 ? 2 : 4;
    const int64_t  bytes = extent[3] * size;
    for (int64_t r = 0; r < count; r++) {
        const int64_t row = (b * extent[1] + first + r) * extent[2] + head;
        const char   *at = (const char *)x + row * bytes;
        for (int64_t i = 0; i < bytes; i += CORNU_LINE_BYTES) __builtin_prefetch(at + i, 0, 2);
    }
}

void cornu__attend_prefetch(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                            int64_t count)
{
    prefetch(p, p->call->in[i], p->in[i].shape, b, head, first, count);
}

void cornu__attend_prefetch_result(const CornuAttend *p, int i, int64_t b, int64_t head,
                                   int64_t first, int64_t count)
{
    prefetch(p, p->call->out[i], p->call->out_type[i].shape, b, head, first, count);
}

CornuHeadRows cornu__attend_rows(const CornuAttend *p, int i, int64_t b, int64_t head,
                                 int64_t first, int64_t count, void *to)
{
    const int64_t *extent = p->in[i].shape.extent, width = extent[3], apart = extent[2] * width;
    const int64_t  size = p->dtype == CORNU_BF16 ? 2 : 4, own = cornu__attend_size(p);
    const char    *from = (const char *)p->call->in[i] +
                          (((b * extent[1] + first) * extent[2] + head) * width) * size;
    if (!is_copied(p, i)) return (CornuHeadRows){ from, apart };
    const int64_t stride = copy_stride(width);
    char         *x = to;
    for (int64_t r = 0; r < count; r++, from += apart * size, x += stride * own) {
        if (size == own) memcpy(x, from, (size_t)(width * size));
        else cornu__bf16()->widen((const uint16_t *)(const void *)from, width, (float *)(void *)x);
        if (width % p->products->depth) memset(x + width * own, 0, (size_t)own);
    }
    return (CornuHeadRows){ to, stride };
}

void cornu__attend_columns(const CornuAttend *p, CornuHeadRows rows, int64_t count, int64_t width,
                           void *to)
{
    const int64_t words = cornu__attend_words(p, width), size = cornu__attend_size(p);
    const int64_t padded = ceil_multiple(count, p->products->lanes);
    for (int64_t t = 0, columns; t < padded; t += columns) {
        columns = smaller(p->panel, padded - t);
        p->attends->to_columns(rows.at + t * rows.stride * size, rows.stride * size / 4,
                               smaller(columns, count - t), words, (uint32_t *)to + t * words,
                               columns, columns);
    }
}

void cornu__attend_panels(const CornuAttend *p, CornuHeadRows rows, int64_t count, int64_t width,
                          void *to)
{
    const int64_t words = cornu__attend_words(p, count), size = cornu__attend_size(p);
    const int64_t padded = ceil_multiple(width, p->products->lanes);
    for (int64_t c = 0, columns; c < padded; c += columns) {
        uint32_t *panel = (uint32_t *)to + c * words;
        columns = smaller(p->panel, padded - c);
        p->products->pack(panel, columns, 0, count, rows.at + c * size, rows.stride, 1,
                          smaller(columns, width - c));
        if (count % p->products->depth)   /* the odd one's other half */
            p->products->pack(panel, columns, count, 1, rows.at, 0, 0, 0);
    }
}

CornuHeadRows cornu__attend_turned(const CornuAttend *p, CornuHeadRows rows, int64_t count,
                                   int64_t width, void *to)
{
    const CornuTransposes *transposes = cornu__transposes();
    const void            *x = rows.at;
    if (cornu__attend_size(p) == 2)
        transposes->halves(x, rows.stride, count, width, to, p->turned_stride);
    else transposes->words(x, rows.stride, count, width, to, p->turned_stride);
    return (CornuHeadRows){ to, p->turned_stride };
}

/* ---- Products ---- */

void cornu__attend_multiply(const CornuAttend *p, CornuTile t, int64_t rows)
{
    const int64_t tiles = ceil_divide(rows, p->products->tile_rows);
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t first = i * rows / tiles;
        CornuTile     tile = t;
        tile.x = (const char *)t.x + first * t.x_stride * cornu__attend_size(p);
        tile.bias = t.bias + first * t.bias_stride;
        tile.y = (float *)t.y + first * t.y_stride;
        tile.rows = (int)((i + 1) * rows / tiles - first);
        p->products->tile(&tile);
    }
}

void cornu__attend_scores(const CornuAttend *p, const CornuAttendMemory *own, CornuHeadRows x,
                          const CornuPanel *panel, const void *columns, int64_t width, float *y)
{
    const CornuRun run = { 0, 0, width };
    cornu__attend_multiply(p, (CornuTile){
        .x = x.at + panel->begin * x.stride * cornu__attend_size(p), .x_stride = x.stride,
        .runs = &run, .run_count = 1,
        .panel = (const uint32_t *)columns + panel->first * cornu__attend_words(p, width),
        .bias = own->zeros, .y = y, .y_stride = p->panel,
        .vectors = (int)(panel->columns / p->products->lanes), .columns = (int)panel->columns,
    }, panel->end - panel->begin);
}

static void fill(float *x, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++) x[t] = (float)CORNU_ATTENTION_MASKED;
}

void cornu__attend_mask(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                        const CornuPanel *panel, float *scores)
{
    const int64_t window = p->attributes->window, end = panel->columns;
    const int64_t first = q->first + panel->first;
    const bool    some = window || has_mask(p);
    if (!p->attributes->causal && !some) return;
    const int64_t begin = some ? panel->begin : larger(panel->begin, first + 1 - k->first);
    scores += (begin - panel->begin) * p->panel;
    for (int64_t r = begin; r < panel->end; r++, scores += p->panel) {
        const int64_t s = k->first + r, at = s - first;   /* key s is query at's */
        if (p->attributes->causal) fill(scores, 0, smaller(end, at));
        else if (window) fill(scores, 0, smaller(end, at - window + 1));
        if (window) fill(scores, larger(0, at + window), end);
        for (int64_t t = 0; has_mask(p) && t < panel->count; t++)
            if (!mask_at(p, q->b, q->n, first + t, s)) scores[t] = (float)CORNU_ATTENTION_MASKED;
    }
}

void cornu__attend_add(const CornuAttend *p, const CornuAttendMemory *own, const CornuPanel *panel,
                       CornuHeadRows turned, int64_t width, float *sums)
{
    const CornuRun run = { panel->begin, 0, panel->end - panel->begin };
    cornu__attend_multiply(p, (CornuTile){
        .x = turned.at, .x_stride = turned.stride, .runs = &run, .run_count = 1,
        .panel = own->packed, .bias = panel->opens ? own->zeros : sums,
        .bias_stride = panel->opens ? 0 : p->panel, .y = sums, .y_stride = p->panel,
        .vectors = (int)(panel->columns / p->products->lanes), .columns = (int)panel->columns,
    }, width);
}

void cornu__attend_give(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                        int64_t count, const float *sums)
{
    const int64_t *extent = p->call->out_type[i].shape.extent, width = extent[3];
    const int64_t  padded = ceil_multiple(width, p->products->lanes);
    const int64_t  at = ((b * extent[1] + first) * extent[2] + head) * width;
    const int64_t  size = p->dtype == CORNU_BF16 ? 2 : 4;
    p->attends->give(sums, padded, count, width, (char *)p->call->out[i] + at * size,
                     extent[2] * width, size == 2);
}

void cornu__attend_give_columns(const CornuAttend *p, const CornuAttendMemory *own, int i,
                                int64_t b, int64_t head, int64_t first, int64_t count,
                                const float *sums)
{
    const int64_t width = p->call->out_type[i].shape.extent[3];
    const int64_t padded = ceil_multiple(width, p->products->lanes);
    p->attends->to_columns(sums, p->panel, width, count, (uint32_t *)(void *)own->made, padded,
                           padded);
    cornu__attend_give(p, i, b, head, first, count, own->made);
}

/* ---- The forward pass ---- */

/* Adds a block of keys to the sums of a block of queries. */
static void attend_to(const CornuAttend *p, const CornuAttendMemory *own, const CornuQueries *q,
                      int64_t block)
{
    const CornuKeys k = cornu__attend_keys(p, block);
    const int64_t   g = q->n / p->shared;
    cornu__attend_prefetch(p, CORNU_ATTENTION_V, q->b, g, k.first, k.count);
    const CornuHeadRows keys = cornu__attend_rows(p, CORNU_ATTENTION_K, q->b, g, k.first, k.count,
                                                  own->k_rows);
    const CornuHeadRows values = cornu__attend_rows(p, CORNU_ATTENTION_V, q->b, g, k.first,
                                                    k.count, own->v_rows);
    const CornuHeadRows turned = cornu__attend_turned(p, values, k.count, p->e.values,
                                                      own->turned);
    for (int64_t t = 0; t < q->count; t += p->panel) {
        const CornuPanel  panel = cornu__attend_panel(p, q, &k, t);
        float            *sums = own->sums + t * p->e.values;
        const CornuScores s = { .scores = own->scores, .stride = p->panel,
                                .rows = panel.end - panel.begin, .columns = panel.columns,
                                .most = own->most + t, .sum = own->total + t,
                                .factor = own->factor + t, .panel = own->packed };
        if (s.rows <= 0) continue;
        cornu__attend_scores(p, own, keys, &panel, own->q_columns, p->e.size, own->scores);
        cornu__attend_mask(p, q, &k, &panel, own->scores);
        p->attends->update(&s);
        p->attends->weigh(&s);
        if (!panel.opens)
            p->attends->scale(sums, p->panel, p->e.values, panel.columns, s.factor);
        cornu__attend_add(p, own, &panel, turned, p->e.values, sums);
    }
}

static void attend_block(void *context, int64_t block, int thread)
{
    const CornuAttend *p = context;
    const int64_t      head = block / p->query_blocks;
    const CornuQueries q = cornu__attend_queries(p, head / p->e.heads, head % p->e.heads,
                                                 block % p->query_blocks);
    const CornuAttendMemory own = cornu__attend_memory(p, thread);
    float        *lse = (float *)p->call->out[1] + head * p->e.queries + q.first;
    const int64_t g = q.n / p->shared;
    cornu__attend_prefetch(p, CORNU_ATTENTION_Q, q.b, q.n, q.first, q.count);
    cornu__attend_prefetch(p, CORNU_ATTENTION_K, q.b, g, 0, smaller(p->keys, p->e.keys));
    const CornuHeadRows rows = cornu__attend_rows(p, CORNU_ATTENTION_Q, q.b, q.n, q.first, q.count,
                                                  own.q_rows);
    cornu__attend_columns(p, rows, q.count, p->e.size, own.q_columns);
    memset(own.total, 0, (size_t)p->queries * sizeof *own.total);
    for (int64_t t = 0; t < p->queries; t++) own.most[t] = -FLT_MAX;
    cornu__attend_prefetch_result(p, 0, q.b, q.n, q.first, q.count);
    for (int64_t k = 0; k < p->key_blocks; k++) {
        const CornuKeys keys = cornu__attend_keys(p, k);
        if (cornu__attend_meets(p, &q, &keys)) attend_to(p, &own, &q, k);
    }
    for (int64_t t = 0; t < q.count; t++) {
        own.factor[t] = 1.0f / own.total[t];
        lse[t] = own.most[t] + logf(own.total[t]);
    }
    for (int64_t t = 0; t < q.count; t += p->panel) {
        const int64_t count = smaller(p->panel, q.count - t);
        float        *sums = own.sums + t * p->e.values;
        p->attends->scale(sums, p->panel, p->e.values, ceil_multiple(count, p->products->lanes),
                          own.factor + t);
        cornu__attend_give_columns(p, &own, 0, q.b, q.n, q.first + t, count, sums);
    }
}

static CornuStatus attention(const CornuKernelCall *call)
{
    CornuAttend p = cornu__attend(&call->op, call->multiplier);
    p.call = call;
    cornu__threads_run(call->threads, p.e.batch * p.e.heads * p.query_blocks, attend_block, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_attention = {
    .name = "attention", .declines = cornu__attend_declines, .scratch = cornu__attend_scratch,
    .run = attention,
};
