/* What attention and its gradient share: blocks, their operands and products. */
#ifndef CORNU_DEVICE_HOST_KERNELS_ATTENTION_H
#define CORNU_DEVICE_HOST_KERNELS_ATTENTION_H

#include "../../ops/attention.h"
#include "../isa/attention.h"
#include "../isa/product.h"
#include "kernels.h"

/* Operands along a side of a block, at most: elements, or pairs; and panels of queries in it, which
 * are at least 8 wide. */
enum { CORNU_ATTEND_SIDE = 128, CORNU_ATTEND_PANELS = 2 * CORNU_ATTEND_SIDE / 8 };

/* The sizes of a call. */
typedef struct {
    const CornuKernelCall           *call;
    CornuOpId                        id;                    /* or its gradient's */
    CornuAttentionExtents            e;
    const CornuAttributes_ATTENTION *attributes;
    const CornuType                 *in;
    const CornuProducts             *products;
    const CornuAttends              *attends;
    CornuDtype                       dtype;                 /* of the operands in memory */
    int64_t queries, keys, query_blocks, key_blocks;        /* in a block, at most; blocks */
    int64_t shared;                                         /* N / G */
    int64_t size_padded, values_padded;                     /* whole registers */
    int64_t panel;                                          /* queries of one, at most */
    int64_t turned_stride;                                  /* of keys and values, turned */
    size_t  bytes;                                          /* of a thread's memory */
} CornuAttend;

/* A thread's memory: rows, columns and panels of operands, NULL for rows that products read in
 * place; of a panel of queries scores, d_p, what is packed of them for products, and results to be
 * moved; then of the forward pass and of the gradient what they sum. */
typedef struct {
    void  *q_rows, *k_rows, *v_rows, *d_y_rows, *q_columns, *d_y_columns, *q_panels, *d_y_panels,
          *turned, *packed, *p, *d_s;
    float *zeros, *scores, *d_p, *made;
    float *sums, *most, *total, *factor;
    float *delta, *lse, *d_q, *d_k, *d_v;
} CornuAttendMemory;

/* Some rows of a head as products read them, `stride` elements apart. */
typedef struct {
    const char *at;
    ptrdiff_t   stride;
} CornuHeadRows;

/* Queries `first` to first + count - 1 of head n of the batch's row b: a block of them. `full`: one
 * of them attends to no key, and so to all. */
typedef struct {
    int64_t b, n, first, count;
    bool    full;
} CornuQueries;

/* A block of keys. */
typedef struct { int64_t first, count; } CornuKeys;

/* Some queries of a block, a panel of products, `columns` is count in whole registers; and the keys
 * of a block, from `begin` to `end`, that one of them attends to. `opens`: none is in an earlier
 * block. */
typedef struct {
    int64_t first, count, columns, begin, end;
    bool    opens;
} CornuPanel;

/* The sizes of an op; `call` is the caller's to fill in. */
CornuAttend cornu__attend(const CornuOpCall *op, CornuMultiplier multiplier);

/* The memory of a thread, of which the zeros are set. */
CornuAttendMemory cornu__attend_memory(const CornuAttend *p, int thread);

/* As CornuKernel's. */
CornuDecline cornu__attend_declines(const CornuQuery *q);
size_t       cornu__attend_scratch(const CornuQuery *q);

/* Bytes of an element of products; and how many are one operand. */
static inline int64_t cornu__attend_size(const CornuAttend *p)
{
    return (int64_t)p->products->size;
}

static inline int64_t cornu__attend_words(const CornuAttend *p, int64_t count)
{
    return (count + p->products->depth - 1) / p->products->depth;
}

CornuQueries cornu__attend_queries(const CornuAttend *p, int64_t b, int64_t n, int64_t block);
CornuKeys    cornu__attend_keys(const CornuAttend *p, int64_t block);

/* Whether any of the queries attends to any of the keys. */
bool cornu__attend_meets(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k);

/* The one whose first query is `first` of the block. */
CornuPanel cornu__attend_panel(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                               int64_t first);

/* Asks for some rows of a head of operand i, or of result i, in the second-level cache. Rows of a
 * head are far apart, where the processor's own prefetching does not follow. */
void cornu__attend_prefetch(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                            int64_t count);
void cornu__attend_prefetch_result(const CornuAttend *p, int i, int64_t b, int64_t head,
                                   int64_t first, int64_t count);

/* Rows of operand i, in memory or, at `to`, widened or moved apart. */
CornuHeadRows cornu__attend_rows(const CornuAttend *p, int i, int64_t b, int64_t head,
                                 int64_t first, int64_t count, void *to);

/* `count` rows as panels, their elements along the sum: rows are the columns of a product; and as
 * panels whose rows they are, in whole registers of `width` elements. */
void cornu__attend_columns(const CornuAttend *p, CornuHeadRows rows, int64_t count, int64_t width,
                           void *to);
void cornu__attend_panels(const CornuAttend *p, CornuHeadRows rows, int64_t count, int64_t width,
                          void *to);
/* `width` rows of a block of keys' elements, turned_stride apart. */
CornuHeadRows cornu__attend_turned(const CornuAttend *p, CornuHeadRows rows, int64_t count,
                                   int64_t width, void *to);

/* The product of `rows` rows, a tile after the other; t.rows is set here. */
void cornu__attend_multiply(const CornuAttend *p, CornuTile t, int64_t rows);
/* y[s, t] = x[s] . column t over `width` elements, of a panel's keys and queries. */
void cornu__attend_scores(const CornuAttend *p, const CornuAttendMemory *own, CornuHeadRows x,
                          const CornuPanel *panel, const void *columns, int64_t width, float *y);
/* -1e9 in place of the panel's masked scores. */
void cornu__attend_mask(const CornuAttend *p, const CornuQueries *q, const CornuKeys *k,
                        const CornuPanel *panel, float *scores);
/* sums[c, t] += the sum over a panel's keys s of turned[c, s] packed[s, t], c below `width`; rows
 * of sums are `panel` apart. If the panel opens there are no sums before. */
void cornu__attend_add(const CornuAttend *p, const CornuAttendMemory *own, const CornuPanel *panel,
                       CornuHeadRows turned, int64_t width, float *sums);

/* Rows of result i (B, steps, heads, width), from sums in rows of whole registers. */
void cornu__attend_give(const CornuAttend *p, int i, int64_t b, int64_t head, int64_t first,
                        int64_t count, const float *sums);
/* The same from `count` columns of sums, at most a panel. */
void cornu__attend_give_columns(const CornuAttend *p, const CornuAttendMemory *own, int i,
                                int64_t b, int64_t head, int64_t first, int64_t count,
                                const float *sums);

#endif
