/*
 * attention_grad, f32 or bf16: the scores of a block are computed anew, and from them and lse the
 * weights.
 *
 * A head of the keys, with the heads of the queries that it serves, is computed by one thread: for
 * each block of keys it goes over the blocks of queries. Of each panel of queries p and d_s are
 * computed, and from these at once what the gradient of the queries gets; those of keys and values
 * come from all panels of the block. The gradients of the keys and values are summed in the cache,
 * those of the queries in the thread's memory. Blocks, keys that are skipped and rounding are those
 * of attention.c.
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
    CornuAttendMemory  own;
    CornuKeys          keys;
    CornuHeadRows      k, v, turned;   /* turned: of the keys */
    CornuQueries       queries;
    float             *lse;
    const float       *delta;
    bool               opens;       /* the gradients of the keys have no terms yet */
} Meeting;

/* ---- By query: lse, and delta = d_y . y ---- */

static float delta_of(const CornuAttend *p, int64_t first)
{
    const int64_t at = first * (p->dtype == CORNU_BF16 ? 2 : 4);
    return p->attends->dot((const char *)p->call->in[Y] + at, (const char *)p->call->in[D_Y] + at,
                           p->e.values, p->dtype == CORNU_BF16);
}

/* Of the heads that head g of row b serves. */
static void take_queries(const CornuAttend *p, const CornuAttendMemory *own, int64_t b, int64_t g)
{
    const int64_t T = p->e.queries, steps = p->query_blocks * p->queries;
    float        *lse = own->lse, *delta = own->delta;
    for (int64_t r = 0; r < p->shared; r++, lse += steps, delta += steps) {
        const int64_t n = g * p->shared + r, some = smaller(T, p->queries);
        cornu__attend_prefetch(p, Y, b, n, 0, some);
        cornu__attend_prefetch(p, D_Y, b, n, 0, some);
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

/* ---- A block of queries and one of keys ---- */

/* Rows of p or d_s of a panel, as products along the queries read them. */
static void *weights_of(const Meeting *m, void *of, const CornuPanel *panel, int64_t key)
{
    const int64_t first = panel->first * m->p->keys + key * m->p->panel;
    return (char *)of + first * cornu__attend_size(m->p);
}

/* A query that attends to no key attends to all of them equally, whatever their scores. */
static void spread_open(const Meeting *m, const CornuPanel *panel)
{
    const CornuAttend *p = m->p;
    const float        even = 1.0f / (float)p->e.keys;
    for (int64_t t = 0; t < panel->count; t++) {
        if (m->lse[panel->first + t] >= (float)CORNU_ATTENTION_OPEN) continue;
        for (int64_t s = 0; s < m->keys.count; s++) {
            void *of_p = weights_of(m, m->own.p, panel, s);
            void *of_d = weights_of(m, m->own.d_s, panel, s);
            if (p->products->depth == 2) {
                cornu__bf16()->narrow(&even, 1, (uint16_t *)of_p + t);
                ((uint16_t *)of_d)[t] = 0;
            } else {
                ((float *)of_p)[t] = even;
                ((float *)of_d)[t] = 0.0f;
            }
            ((uint32_t *)m->own.packed)[s / p->products->depth * panel->columns + t] = 0;
        }
    }
}

/* Zeros for keys to which no query of the panel attends: tiles of keys have some of them. */
static void clear_rest(const Meeting *m, void *of, const CornuPanel *panel)
{
    const size_t row = (size_t)(m->p->panel * cornu__attend_size(m->p));
    memset(weights_of(m, of, panel, 0), 0, (size_t)panel->begin * row);
    memset(weights_of(m, of, panel, panel->end), 0,
           (size_t)(m->keys.count - panel->end) * row);
}

/* p and d_s of a panel, and what they add to the gradient of its queries. */
static void weigh(const Meeting *m, const CornuPanel *panel, float *d_q)
{
    const CornuAttend       *p = m->p;
    const CornuAttendMemory *own = &m->own;
    const bool               narrow = p->products->depth == 2;
    void                    *of_p = weights_of(m, own->p, panel, panel->begin);
    void                    *of_d = weights_of(m, own->d_s, panel, panel->begin);
    const CornuScores        s = { .scores = narrow ? own->scores : of_p,
                                   .d_p = narrow ? own->d_p : of_d, .stride = p->panel,
                                   .rows = panel->end - panel->begin, .columns = panel->columns,
                                   .most = m->lse + panel->first,
                                   .delta = m->delta + panel->first, .p = of_p, .d_s = of_d,
                                   .panel = own->packed };
    cornu__attend_scores(p, own, m->k, panel, own->q_columns, p->e.size, s.scores);
    cornu__attend_scores(p, own, m->v, panel, own->d_y_columns, p->e.values, s.d_p);
    cornu__attend_mask(p, &m->queries, &m->keys, panel, s.scores);
    p->attends->slope(&s);
    spread_open(m, panel);
    cornu__attend_add(p, own, panel, m->turned, p->e.size, d_q + panel->first * p->e.size);
}

/* Panels of queries that attend to some of these keys, as what rows of p and d_s meet. */
static int64_t runs_of(const Meeting *m, const CornuPanel *panels, int64_t count, int64_t first,
                       int64_t end, CornuRun *runs)
{
    int64_t used = 0;
    for (int64_t j = 0; j < count; j++)
        if (panels[j].begin < end && panels[j].end > first)
            runs[used++] = (CornuRun){ panels[j].first * m->p->keys, panels[j].first,
                                       panels[j].count };
    return used;
}

/* sums[s, c] += the sum over t of x[s, t] panels[t, c]; x are p or d_s. */
static void add_keys(const Meeting *m, const CornuPanel *panels, int64_t count, const void *x,
                     const void *packed, int64_t padded, float *sums)
{
    const CornuAttend *p = m->p;
    const int64_t      words = cornu__attend_words(p, m->queries.count);
    const int64_t      tiles = ceil_divide(m->keys.count, p->products->tile_rows);
    CornuRun           runs[CORNU_ATTEND_PANELS];
    for (int64_t c = 0; c < padded; c += p->panel) {
        const int64_t columns = smaller(p->panel, padded - c);
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t first = i * m->keys.count / tiles, end = (i + 1) * m->keys.count / tiles;
            float        *y = sums + first * padded + c;
            CornuTile     tile = {
                .x = (const char *)x + first * p->panel * cornu__attend_size(p),
                .x_stride = p->panel, .runs = runs,
                .run_count = runs_of(m, panels, count, first, end, runs),
                .panel = (const uint32_t *)packed + c * words,
                .bias = m->opens ? m->own.zeros : y,
                .bias_stride = m->opens ? 0 : padded, .y = y, .y_stride = padded,
                .rows = (int)(end - first), .columns = (int)columns,
                .vectors = (int)(columns / p->products->lanes),
            };
            if (tile.run_count || m->opens) p->products->tile(&tile);
        }
    }
}

static void meet(Meeting *m, float *d_q)
{
    const CornuAttend  *p = m->p;
    const CornuQueries *q = &m->queries;
    const int64_t       g = q->n / p->shared;
    CornuPanel          panels[CORNU_ATTEND_PANELS];
    int64_t             count = 0;
    for (int64_t t = 0; t < q->count; t += p->panel) {
        const CornuPanel panel = cornu__attend_panel(p, q, &m->keys, t);
        if (panel.end <= panel.begin) continue;
        weigh(m, &panel, d_q);
        clear_rest(m, m->own.p, &panel);
        clear_rest(m, m->own.d_s, &panel);
        panels[count++] = panel;
    }
    cornu__attend_prefetch_result(p, V, q->b, g, m->keys.first, m->keys.count);
    cornu__attend_prefetch_result(p, K, q->b, g, m->keys.first, m->keys.count);
    add_keys(m, panels, count, m->own.p, m->own.d_y_panels, p->values_padded, m->own.d_v);
    cornu__attend_prefetch_result(p, Q, q->b, q->n, q->first, q->count);
    add_keys(m, panels, count, m->own.d_s, m->own.q_panels, p->size_padded, m->own.d_k);
    m->opens = false;
}

/* ---- A head of the keys ---- */

/* The operands of a block of queries. */
static void take_block(Meeting *m, int64_t g, int64_t r, int64_t block)
{
    const CornuAttend *p = m->p;
    const int64_t      own = (r * p->query_blocks + block) * p->queries;
    CornuQueries       q = cornu__attend_queries(p, m->queries.b, g * p->shared + r, block);
    m->queries = q;
    m->lse = m->own.lse + own;
    m->delta = m->own.delta + own;
}

static void take_rows(const Meeting *m)
{
    const CornuAttend  *p = m->p;
    const CornuQueries *q = &m->queries;
    const CornuHeadRows rows = cornu__attend_rows(p, Q, q->b, q->n, q->first, q->count,
                                                  m->own.q_rows);
    const CornuHeadRows d_y = cornu__attend_rows(p, D_Y, q->b, q->n, q->first, q->count,
                                                 m->own.d_y_rows);
    cornu__attend_columns(p, rows, q->count, p->e.size, m->own.q_columns);
    cornu__attend_panels(p, rows, q->count, p->e.size, m->own.q_panels);
    cornu__attend_columns(p, d_y, q->count, p->e.values, m->own.d_y_columns);
    cornu__attend_panels(p, d_y, q->count, p->e.values, m->own.d_y_panels);
}

static void keys_block(Meeting *m, int64_t g, int64_t block)
{
    const CornuAttend *p = m->p;
    const int64_t      b = m->queries.b;
    float             *d_k = m->own.d_k, *d_v = m->own.d_v;
    const CornuKeys    keys = m->keys = cornu__attend_keys(p, block);
    cornu__attend_prefetch(p, K, b, g, keys.first, keys.count);
    cornu__attend_prefetch(p, V, b, g, keys.first, keys.count);
    cornu__attend_prefetch(p, Q, b, g * p->shared, 0, smaller(p->queries, p->e.queries));
    m->k = cornu__attend_rows(p, K, b, g, keys.first, keys.count, m->own.k_rows);
    m->v = cornu__attend_rows(p, V, b, g, keys.first, keys.count, m->own.v_rows);
    m->turned = cornu__attend_turned(p, m->k, keys.count, p->e.size, m->own.turned);
    m->opens = true;
    for (int64_t r = 0; r < p->shared; r++)
        for (int64_t i = 0; i < p->query_blocks; i++) {
            take_block(m, g, r, i);
            if (!cornu__attend_meets(p, &m->queries, &keys)) continue;
            take_rows(m);
            meet(m, m->own.d_q + (r * p->query_blocks + i) * p->queries * p->e.size);
        }
    if (m->opens) {
        memset(d_k, 0, (size_t)(keys.count * p->size_padded) * sizeof *d_k);
        memset(d_v, 0, (size_t)(keys.count * p->values_padded) * sizeof *d_v);
    }
    cornu__attend_give(p, K, b, g, keys.first, keys.count, d_k);
    cornu__attend_give(p, V, b, g, keys.first, keys.count, d_v);
}

static void head_block(void *context, int64_t block, int thread)
{
    const CornuAttend *p = context;
    const int64_t      g = block % p->e.groups;
    const int64_t      steps = p->query_blocks * p->queries;
    Meeting            m = { .p = p, .own = cornu__attend_memory(p, thread),
                             .queries.b = block / p->e.groups };
    take_queries(p, &m.own, m.queries.b, g);
    for (int64_t k = 0; k < p->key_blocks; k++) keys_block(&m, g, k);
    for (int64_t r = 0; r < p->shared; r++)
        for (int64_t t = 0; t < p->e.queries; t += p->panel)
            cornu__attend_give_columns(p, &m.own, Q, m.queries.b, g * p->shared + r, t,
                                       smaller(p->panel, p->e.queries - t),
                                       m.own.d_q + (r * steps + t) * p->e.size);
}

static CornuStatus attention_grad(const CornuKernelCall *call)
{
    CornuAttend p = cornu__attend(&call->op, call->multiplier);
    p.call = call;
    cornu__threads_run(call->threads, p.e.batch * p.e.groups, head_block, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_attention_grad = {
    .name = "attention_grad", .declines = cornu__attend_declines,
    .scratch = cornu__attend_scratch, .run = attention_grad,
};
