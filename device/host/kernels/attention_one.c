/*
 * attention of one query, f32, with a mask: a step of a generator, whose keys and values are those
 * of all steps so far. Memory is read once, from the first to the last key that is not masked:
 * scores are products of rows as they lie, and values are summed as by matmul_few.c. The blocks of
 * attention.c have a whole panel of queries, of which all but one would be computed for nothing.
 *
 * A block is one head of one row of the batch; sums have an order that depends on the mask alone.
 *
 * Reference: device/ops/attention.c; tests/device/host/kernels/test_attention.c compares them.
 * Source: own.
 * Gain, one core of a Zen 4, processor time of a step of char_gpt (4 layers of 4 heads of 32, 128
 *     keys): 0.135, then 0.070 ms for one sequence, 2.24, then 0.48 ms for 16.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../../integer_internal.h"
#include "attention.h"

/* A thread's memory: scores and weights of the keys, in whole registers; then one of these each. */
typedef struct {
    float *scores, *weights, *most, *sum, *factor;
} Memory;

typedef struct {
    const CornuKernelCall *call;
    CornuAttentionExtents  e;
    const CornuProducts   *products;
    const CornuAttends    *attends;
    size_t                 bytes;   /* of a thread's memory */
} One;

static Memory take(const One *p, CornuScratch *scratch)
{
    const int64_t lanes = p->products->lanes, keys = ceil_multiple(p->e.keys, lanes);
    Memory        own = { NULL };
    float       **parts[] = { &own.scores, &own.weights, &own.most, &own.sum, &own.factor };
    for (int i = 0; i < 5; i++) {
        *parts[i] = cornu__take_floats(scratch, i < 2 ? keys : lanes);
        cornu__take_line(scratch);
    }
    return own;
}

static One one_of(const CornuOpCall *op)
{
    One          p = { .e = cornu__attention_extents(op), .products = cornu__products(),
                       .attends = cornu__attends() };
    CornuScratch scratch = { 0 };
    take(&p, &scratch);
    p.bytes = scratch.bytes;
    return p;
}

static size_t attention_one_scratch(const CornuQuery *q)
{
    return (size_t)q->machine.threads * one_of(q->op).bytes;
}

static CornuDecline attention_one_declines(const CornuQuery *q)
{
    const CornuDecline              decline = cornu__attend_declines(q);
    const CornuAttributes_ATTENTION *how = &q->op->attributes->attention;
    const int                       mask = cornu__attention_mask(q->op);
    const CornuAttentionExtents     e = cornu__attention_extents(q->op);
    if (decline.needs) return decline;
    if (q->op->in[0].dtype != CORNU_F32 || q->machine.multiplier.bf16)
        return cornu__needs(false, "products of f32");
    if (e.queries != 1) return cornu__needs_most(1, "queries", e.queries);
    return cornu__needs(q->op->in_count > mask && !how->causal && !how->window &&
                            q->op->in[mask].shape.extent[3] == e.keys &&
                            cornu__products()->few_rows, "a mask of all keys, and it alone");
}

/* The keys of row b, head n, that are not masked: from the first to the last of them. */
static const uint8_t *mask_of(const One *p, int64_t b, int64_t n, int64_t *first, int64_t *end)
{
    const int      i = cornu__attention_mask(&p->call->op);
    const int64_t *extent = p->call->op.in[i].shape.extent;
    const uint8_t *mask = (const uint8_t *)p->call->in[i] +
                          ((extent[0] > 1 ? b : 0) * extent[1] + (extent[1] > 1 ? n : 0)) *
                              p->e.keys;
    *first = 0;
    *end = p->e.keys;
    while (*first < *end && !mask[*first]) ++*first;
    if (*first == *end) *first = 0;   /* none: it attends to all equally */
    else while (!mask[*end - 1]) --*end;
    return mask;
}

/* Weights and, in own->sum[0], their sum; returns the largest score. */
static float weigh(const One *p, const Memory *own, int64_t count)
{
    const int64_t     lanes = p->products->lanes;
    const CornuScores s = { .scores = own->scores, .stride = lanes,
                            .rows = ceil_divide(count, lanes), .columns = lanes,
                            .most = own->most, .sum = own->sum, .factor = own->factor,
                            .panel = own->weights };
    for (int64_t i = count; i < s.rows * lanes; i++) own->scores[i] = -FLT_MAX;
    for (int64_t i = 0; i < lanes; i++) {
        own->most[i] = -FLT_MAX;
        own->sum[i] = 0.0f;
    }
    p->attends->update(&s);
    for (int64_t i = 1; i < lanes; i++)
        if (own->most[i] > own->most[0]) own->most[0] = own->most[i];
    for (int64_t i = 1; i < lanes; i++) own->most[i] = own->most[0];
    p->attends->weigh(&s);
    for (int64_t i = 1; i < lanes; i++) own->sum[0] += own->sum[i];
    return own->most[0];
}

static void attend_one(void *context, int64_t block, int thread)
{
    const One     *p = context;
    const int64_t  b = block / p->e.heads, n = block % p->e.heads, size = p->e.size;
    const int64_t  g = n / (p->e.heads / p->e.groups), values = p->e.values;
    const void *const *in = p->call->in;
    CornuScratch   scratch = { (char *)p->call->scratch + (size_t)thread * p->bytes, 0 };
    const Memory   own = take(p, &scratch);
    int64_t        first, end;
    const uint8_t *mask = mask_of(p, b, n, &first, &end);
    const float   *q = (const float *)in[CORNU_ATTENTION_Q] + block * size;
    const float   *k = (const float *)in[CORNU_ATTENTION_K] +
                     ((b * p->e.keys + first) * p->e.groups + g) * size;
    const int64_t  at = ((b * p->e.keys + first) * p->e.groups + g) * values;
    float         *y = (float *)p->call->out[0] + block * values;
    for (int64_t s = first; s < end; s++, k += p->e.groups * size)
        own.scores[s - first] = mask[s] ? p->attends->dot(q, k, size, false)
                                        : (float)CORNU_ATTENTION_MASKED;
    const float most = weigh(p, &own, end - first);
    p->products->few_rows(&(CornuFewRows){
        .x = own.weights, .x_stride = end - first, .y = y, .y_stride = values, .rows = 1,
        .b = (const float *)in[CORNU_ATTENTION_V] + at, .b_stride = p->e.groups * values,
        .depth = end - first, .columns = values,
        .readable = p->e.batch * p->e.keys * p->e.groups * values - at });
    for (int64_t i = 0; i < values; i++) y[i] /= own.sum[0];
    ((float *)p->call->out[1])[block] = most + logf(own.sum[0]);
}

static CornuStatus attention_one(const CornuKernelCall *call)
{
    One p = one_of(&call->op);
    p.call = call;
    cornu__threads_run(call->threads, p.e.batch * p.e.heads, attend_one, &p);
    return CORNU_OK;
}

const CornuKernel cornu__host_attention_one = {
    .name = "attention_one", .declines = attention_one_declines, .scratch = attention_one_scratch,
    .run = attention_one,
};
