/*
 * attention_grad, f32 or bf16: the scores of a block are computed anew, and from them and lse the
 * weights.
 *
 * A head of the keys, with the heads of the queries that it serves, is computed by one thread: for
 * each block of keys it goes over the blocks of queries. The gradients of the keys and values are
 * summed in the cache, those of the queries in the thread's memory. Blocks, tiles that are skipped
 * and rounding are those of attention.c.
 *
 * Reference: device/ops/attention.c; tests/device/host/kernels/test_attention.c compares them.
 * Source: as attention.c.
 */
#include "attention.h"

#include <string.h>

#include "../../integer_internal.h"
#include "../machine/bf16.h"

enum { Q = CORNU_ATTENTION_Q, K = CORNU_ATTENTION_K, V = CORNU_ATTENTION_V, Y = CORNU_ATTENTION_Y,
       LSE = CORNU_ATTENTION_LSE, D_Y = CORNU_ATTENTION_D_Y };

/* exp(score - UNUSED) is 0. */
static const float UNUSED = 1e30f;

/* A block of queries and one of keys, with what is computed of each once. */
typedef struct {
    const CornuAttend *p;
    int                thread;
    CornuKeys          keys;
    CornuHeadRows      k, v;
    CornuQueries       queries;
    const float       *lse, *delta;
    CornuScores        scores;      /* of all keys */
} Meeting;

static void *at(const Meeting *m, size_t offset)
{
    return cornu__attend_at(m->p, m->thread, offset);
}

/* ---- By query: lse, and delta = d_y . y ---- */

static float delta_of(const CornuAttend *p, int64_t first)
{
    const int64_t at = first * (p->dtype == CORNU_BF16 ? 2 : 4);
    return p->attends->dot((const char *)p->call->in[Y] + at, (const char *)p->call->in[D_Y] + at,
                           p->e.values, p->dtype == CORNU_BF16);
}

/* Of the heads that head g of row b serves. */
static void take_queries(const CornuAttend *p, int64_t b, int64_t g, int thread)
{
    const int64_t T = p->e.queries, steps = p->query_blocks * p->queries;
    float *lse = cornu__attend_at(p, thread, p->lse);
    float *delta = cornu__attend_at(p, thread, p->delta);
    for (int64_t r = 0; r < p->shared; r++, lse += steps, delta += steps) {
        const int64_t n = g * p->shared + r, some = smaller(T, p->queries);
        cornu__attend_prefetch(p, p->call->in[Y], p->in[Y].shape, b, n, 0, some, 0, 1);
        cornu__attend_prefetch(p, p->call->in[D_Y], p->in[D_Y].shape, b, n, 0, some, 0, 1);
        memcpy(lse, (const float *)p->call->in[LSE] + (b * p->e.heads + n) * T,
               (size_t)T * sizeof *lse);
        for (int64_t t = 0; t < T; t++)
            delta[t] = delta_of(p, ((b * T + t) * p->e.heads + n) * p->e.values);
        for (int64_t t = T; t < steps; t++) {
            lse[t] = UNUSED;
            delta[t] = 0.0f;
        }
    }
}

/* ---- Prefetching ---- */

static void prefetch(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                     int64_t count)
{
    cornu__attend_prefetch(p, p->call->in[i], p->in[i].shape, b, head, first, count, 0, 1);
}

/* A part of result i. */
static void prefetch_result(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                            int64_t count, int64_t part, int64_t parts)
{
    cornu__attend_prefetch(p, p->call->out[i], p->in[i].shape, b, head, first, count, part, parts);
}

/* ---- A block of queries and one of keys ---- */

/* Rows of p or d_s, as products along the queries read them. */
static CornuHeadRows weights_of(const Meeting *m, const float *f32, const uint16_t *bf16)
{
    if (m->p->products->depth == 2)
        return (CornuHeadRows){ (const char *)bf16, m->scores.half_stride };
    return (CornuHeadRows){ (const char *)f32, m->p->stride };
}

/* sums[s, c] += the sum over t of x[s, t] panels[t, c], of a tile's keys and columns. */
static void add_keys(const Meeting *m, CornuHeadRows x, const CornuKeyTile *tile,
                     const void *panels, int64_t padded, float *sums)
{
    const CornuAttend *p = m->p;
    const int64_t end = smaller(tile->end, m->queries.count), panel = 2 * p->products->lanes;
    const int64_t words = cornu__attend_words(p, m->queries.count);
    float        *made = at(m, p->sums);
    CornuRun      run = { tile->begin, tile->begin, end - tile->begin };
    CornuTile     t = { .x = x.at + tile->first * x.stride * cornu__attend_size(p),
                        .x_stride = x.stride, .runs = &run, .run_count = 1,
                        .bias = at(m, p->zeros), .y_stride = padded, .rows = (int)tile->rows };
    if (run.length <= 0) return;
    for (int64_t c = 0; c < padded; c += t.columns) {
        t.columns = (int)smaller(panel, padded - c);
        t.vectors = t.columns / p->products->lanes;
        t.panel = (const uint32_t *)panels + c * words;
        t.y = made + c;
        p->products->tile(&t);
    }
    p->attends->add(made, padded, tile->rows, padded, sums + tile->first * padded, padded);
}

/* A query that attends to no key attends to all of them equally, whatever their scores. */
static void spread_open(const Meeting *m)
{
    const CornuAttend *p = m->p;
    const CornuScores *s = &m->scores;
    const float        even = 1.0f / (float)p->e.keys;
    for (int64_t t = 0; t < m->queries.count; t++) {
        if (m->lse[t] >= (float)CORNU_ATTENTION_OPEN) continue;
        for (int64_t r = 0; r < m->keys.count; r++) {
            if (p->products->depth == 2) {
                cornu__bf16()->narrow(&even, 1, s->p + r * s->half_stride + t);
                s->d_s[r * s->half_stride + t] = 0;
                s->pairs[r / 2 * s->stride + t] = 0;
            } else {
                s->scores[r * s->stride + t] = even;
                s->d_p[r * s->stride + t] = 0.0f;
            }
        }
    }
}

/* p and d_s of all keys and queries of the block. */
static void weigh(const Meeting *m)
{
    const CornuAttend *p = m->p;
    for (int64_t i = 0; i < cornu__attend_tiles(p, &m->keys); i++) {
        const CornuKeyTile tile = cornu__attend_tile(p, &m->queries, &m->keys, i);
        CornuScores        s = m->scores;
        cornu__attend_scores(p, m->thread, m->k, &tile, at(m, p->q_columns), p->e.size, s.scores);
        cornu__attend_scores(p, m->thread, m->v, &tile, at(m, p->d_y_columns), p->e.values, s.d_p);
        cornu__attend_mask(p, &m->queries, &m->keys, &tile, s.scores);
        s.scores += tile.first * s.stride;
        s.d_p += tile.first * s.stride;
        if (p->products->depth == 2) {
            s.p += tile.first * s.half_stride;
            s.d_s += tile.first * s.half_stride;
            s.pairs += tile.first / 2 * s.stride;
        }
        s.rows = tile.rows;
        s.begin = tile.begin;
        s.end = tile.end;
        p->attends->slope(&s);
    }
    spread_open(m);
}

static void meet(const Meeting *m, float *d_q)
{
    const CornuAttend   *p = m->p;
    const CornuScores   *s = &m->scores;
    const CornuHeadRows  of_p = weights_of(m, s->scores, s->p);
    const CornuHeadRows  of_d = weights_of(m, s->d_p, s->d_s);
    const CornuQueries *q = &m->queries;
    const int64_t       tiles = cornu__attend_tiles(p, &m->keys), g = q->n / p->shared;
    weigh(m);
    for (int64_t i = 0; i < tiles; i++) {
        const CornuKeyTile tile = cornu__attend_tile(p, &m->queries, &m->keys, i);
        prefetch_result(p, Q, q->b, q->n, q->first, q->count, i, tiles);
        prefetch_result(p, K, q->b, g, m->keys.first, m->keys.count, i, tiles);
        prefetch_result(p, V, q->b, g, m->keys.first, m->keys.count, i, tiles);
        add_keys(m, of_p, &tile, at(m, p->d_y_panels), p->values_padded, at(m, p->d_v));
        add_keys(m, of_d, &tile, at(m, p->q_panels), p->size_padded, at(m, p->d_k));
    }
    cornu__attend_add(p, &m->queries, &m->keys,
                      p->products->depth == 2 ? (const void *)s->pairs : s->d_p,
                      at(m, p->k_panels), p->e.size, d_q);
}

/* ---- A head of the keys ---- */

/* The operands of a block of queries. */
static void take_block(Meeting *m, int64_t g, int64_t r, int64_t block)
{
    const CornuAttend *p = m->p;
    const int64_t      own = (r * p->query_blocks + block) * p->queries;
    CornuQueries       q = cornu__attend_queries(p, m->queries.b, g * p->shared + r, block);
    m->queries = q;
    m->lse = (const float *)at(m, p->lse) + own;
    m->delta = (const float *)at(m, p->delta) + own;
    m->scores.most = m->lse;
    m->scores.delta = m->delta;
}

static void take_rows(const Meeting *m)
{
    const CornuAttend  *p = m->p;
    const CornuQueries *q = &m->queries;
    const CornuHeadRows rows = cornu__attend_rows(p, Q, q->b, q->n, q->first, q->count,
                                                  at(m, p->q_rows));
    const CornuHeadRows d_y = cornu__attend_rows(p, D_Y, q->b, q->n, q->first, q->count,
                                                 at(m, p->d_y_rows));
    cornu__attend_columns(p, rows, q->count, p->e.size, at(m, p->q_columns));
    cornu__attend_panels(p, rows, q->count, p->e.size, at(m, p->q_panels));
    cornu__attend_columns(p, d_y, q->count, p->e.values, at(m, p->d_y_columns));
    cornu__attend_panels(p, d_y, q->count, p->e.values, at(m, p->d_y_panels));
}

static void keys_block(Meeting *m, int64_t g, int64_t block)
{
    const CornuAttend *p = m->p;
    const int64_t      b = m->queries.b;
    float             *d_k = at(m, p->d_k), *d_v = at(m, p->d_v), *d_q = at(m, p->d_q);
    const CornuKeys    keys = m->keys = cornu__attend_keys(p, block);
    prefetch(p, K, b, g, keys.first, keys.count);
    prefetch(p, V, b, g, keys.first, keys.count);
    prefetch(p, Q, b, g * p->shared, 0, smaller(p->queries, p->e.queries));
    m->k = cornu__attend_rows(p, K, b, g, keys.first, keys.count, at(m, p->k_rows));
    m->v = cornu__attend_rows(p, V, b, g, keys.first, keys.count, at(m, p->v_rows));
    cornu__attend_panels(p, m->k, keys.count, p->e.size, at(m, p->k_panels));
    memset(d_k, 0, (size_t)(keys.count * p->size_padded) * sizeof *d_k);
    memset(d_v, 0, (size_t)(keys.count * p->values_padded) * sizeof *d_v);
    for (int64_t r = 0; r < p->shared; r++)
        for (int64_t i = 0; i < p->query_blocks; i++) {
            take_block(m, g, r, i);
            if (!cornu__attend_meets(p, &m->queries, &keys)) continue;
            take_rows(m);
            meet(m, d_q + (r * p->e.queries + i * p->queries) * p->size_padded);
        }
    cornu__attend_give(p, K, b, g, keys.first, keys.count, d_k);
    cornu__attend_give(p, V, b, g, keys.first, keys.count, d_v);
}

static void head_block(void *context, int64_t block, int thread)
{
    const CornuAttend *p = context;
    const int64_t      g = block % p->e.groups, steps = p->e.queries;
    Meeting            m = { .p = p, .thread = thread, .queries.b = block / p->e.groups };
    float             *d_q = at(&m, p->d_q);
    m.scores = (CornuScores){ .scores = at(&m, p->scores), .d_p = at(&m, p->d_p),
                              .stride = p->stride, .half_stride = p->stride };
    if (p->products->depth == 2) {
        m.scores.p = at(&m, p->halves);
        m.scores.d_s = m.scores.p + p->keys * p->stride;
        m.scores.pairs = at(&m, p->pairs);
    }
    memset(at(&m, p->zeros), 0, 2 * (size_t)p->products->lanes * sizeof(float));
    memset(d_q, 0, (size_t)(p->shared * steps * p->size_padded) * sizeof *d_q);
    take_queries(p, m.queries.b, g, thread);
    for (int64_t k = 0; k < p->key_blocks; k++) keys_block(&m, g, k);
    for (int64_t r = 0; r < p->shared; r++)
        cornu__attend_give(p, Q, block / p->e.groups, g * p->shared + r, 0, steps,
                           d_q + r * steps * p->size_padded);
}

static size_t scratch(const CornuOpCall *op, const CornuType *out_type,
                      const CornuMachine *machine)
{
    CornuAttend p = { .call = NULL };
    (void)out_type;
    cornu__attend_lay_out(&p, op, machine->multiplier);
    return (size_t)machine->threads * p.bytes;
}

static CornuStatus attention_grad(const CornuKernelCall *call)
{
    CornuAttend p = { .call = call };
    cornu__attend_lay_out(&p, &call->op, call->multiplier);
    cornu__threads_run(call->threads, p.e.batch * p.e.groups, head_block, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_attention_grad = {
    .accepts = cornu__attend_accepts, .scratch = scratch, .run = attention_grad,
};
