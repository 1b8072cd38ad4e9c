/* What attention and its gradient share: blocks, their operands and products. */
#ifndef CORNU_DEVICE_HOST_KERNELS_ATTENTION_H
#define CORNU_DEVICE_HOST_KERNELS_ATTENTION_H

#include "../../ops/attention.h"
#include "../isa/attention.h"
#include "../isa/product.h"
#include "kernels.h"

/* The sizes of a call, and where a thread's memory has what; offsets are in bytes. */
typedef struct {
    const CornuKernelCall           *call;
    CornuAttentionExtents            e;
    const CornuAttributes_ATTENTION *attributes;
    const CornuType                 *in;
    const CornuProducts             *products;
    const CornuAttends              *attends;
    CornuDtype                       dtype;                 /* of the operands in memory */
    int64_t queries, keys, query_blocks, key_blocks;        /* in a block, at most; blocks */
    int64_t shared;                                         /* N / G */
    int64_t size_padded, values_padded;                     /* whole registers */
    int64_t stride;                                         /* of scores */
    size_t  zeros, q_rows, k_rows, v_rows, d_y_rows, q_columns, d_y_columns, q_panels, d_y_panels,
            k_panels, v_panels, scores, d_p, pairs, halves, sums, most, before, total, factor,
            delta, lse, d_q, d_k, d_v, bytes;
} CornuAttend;

/* Some rows of a head as products read them, `stride` elements apart. */
typedef struct {
    const char *at;
    ptrdiff_t   stride;
} CornuHeadRows;

/* Queries `first` to first + count - 1 of head n of the batch's row b: a block of them. `padded` is
 * count in whole registers. `full`: one of them attends to no key, and so to all. */
typedef struct {
    int64_t b, n, first, count, padded;
    bool    full;
} CornuQueries;

/* A block of keys; and some rows of it that one tile takes, with the columns that these keys have
 * scores in. */
typedef struct { int64_t first, count; } CornuKeys;
typedef struct { int64_t first, rows, begin, end; } CornuKeyTile;

/* Fills p in for the call, with all offsets; call->scratch is not read. */
void cornu__attend_lay_out(CornuAttend *p, const CornuOpCall *op, CornuMultiplier multiplier);

bool cornu__attend_accepts(const CornuOpCall *op, const CornuType *out_type,
                           const CornuMachine *machine);

/* Bytes of an element of products; and how many are one operand. */
static inline int64_t cornu__attend_size(const CornuAttend *p)
{
    return (int64_t)p->products->size;
}

static inline int64_t cornu__attend_words(const CornuAttend *p, int64_t count)
{
    return (count + p->products->depth - 1) / p->products->depth;
}

/* Memory of a thread. */
static inline void *cornu__attend_at(const CornuAttend *p, int thread, size_t offset)
{
    return (char *)p->call->scratch + (size_t)thread * p->bytes + offset;
}

CornuQueries cornu__attend_queries(const CornuAttend *p, int64_t b, int64_t n, int64_t block);
CornuKeys    cornu__attend_keys(const CornuAttend *p, int64_t block);

/* Whether any of the queries attends to any of the keys. */
bool cornu__attend_meets(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k);

/* The tile with number i, which has no columns if none of its keys is attended to. */
int64_t      cornu__attend_tiles(const CornuAttend *p, const CornuKeys *k);
CornuKeyTile cornu__attend_tile(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                                int64_t i);

/* Asks for part `part` of `parts` of some rows of a head of x (B, steps, heads, width), of the
 * operands' dtype, in the second-level cache. Rows of a head are far apart, where the processor's
 * own prefetching does not follow. */
void cornu__attend_prefetch(const CornuAttend *p, const void *x, CornuShape shape, int64_t b,
                            int64_t head, int64_t first, int64_t count, int64_t part,
                            int64_t parts);

/* Rows of operand i, in memory or, at `to`, widened or moved apart. */
CornuHeadRows cornu__attend_rows(const CornuAttend *p, int i, int64_t b, int64_t head,
                                 int64_t first, int64_t count, void *to);

/* `count` rows as panels, their elements along the sum: rows are the columns of a product; and as
 * panels whose rows they are, in whole registers of `width` elements. */
void cornu__attend_columns(const CornuAttend *p, CornuHeadRows rows, int64_t count, int64_t width,
                           void *to);
void cornu__attend_panels(const CornuAttend *p, CornuHeadRows rows, int64_t count, int64_t width,
                          void *to);

/* y[s, t] = x[s] . column t over `width` elements, of a tile's keys and columns. */
void cornu__attend_scores(const CornuAttend *p, int thread, CornuHeadRows x,
                          const CornuKeyTile *tile, const void *columns, int64_t width, float *y);
/* -1e9 in place of the tile's masked scores. */
void cornu__attend_mask(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                        const CornuKeyTile *tile, float *scores);

/* sums[t, c] += the sum over s of x[s, t] panels[s, c], for all queries; x are rows of `stride`, of
 * bf16 pairs; c runs over `width` elements in whole registers. */
void cornu__attend_add(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                       const void *x, const void *panels, int64_t width, float *sums);

/* Rows of a result (B, steps, heads, width), from sums in rows of whole registers. */
void cornu__attend_give(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                        int64_t count, const float *sums);

#endif
