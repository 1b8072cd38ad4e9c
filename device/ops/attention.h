/* What the rules of attention and the kernels that compute it share. */
#ifndef CORNU_DEVICE_OPS_ATTENTION_H
#define CORNU_DEVICE_OPS_ATTENTION_H

#include "rules.h"

/* Operands of attention, and of attention_grad; the masks are optional. */
enum { CORNU_ATTENTION_Q, CORNU_ATTENTION_K, CORNU_ATTENTION_V, CORNU_ATTENTION_MASK,
       CORNU_ATTENTION_Y = CORNU_ATTENTION_MASK, CORNU_ATTENTION_LSE, CORNU_ATTENTION_D_Y,
       CORNU_ATTENTION_GRAD_MASK };

/* In place of a masked score, and what lies above the log-sum-exp of a query that attends to no key
 * and below that of any other one. */
#define CORNU_ATTENTION_MASKED (-1e9)
#define CORNU_ATTENTION_OPEN   (-5e8)

/* B, T queries of N heads, S keys of G heads, of H elements, values of V. */
typedef struct {
    int64_t batch, queries, keys, heads, groups, size, values;
} CornuAttentionExtents;

CornuAttentionExtents cornu__attention_extents(const CornuOpCall *call);

/* The number of the mask among the operands, in_count if there is none. */
static inline int cornu__attention_mask(const CornuOpCall *call)
{
    return call->id == CORNU_OP_ATTENTION ? CORNU_ATTENTION_MASK : CORNU_ATTENTION_GRAD_MASK;
}

/* The keys from `begin` on, before `end`, that the attributes let query t attend to. */
typedef struct { int64_t begin, end; } CornuAttended;

static inline CornuAttended cornu__attended(const CornuAttributes_ATTENTION *attention,
                                            int64_t keys, int64_t t)
{
    const int64_t window = attention->window;
    CornuAttended r = { 0, keys };
    if (window && t - window + 1 > 0) r.begin = t - window + 1;
    if (window && t + window < r.end) r.end = t + window;
    if (attention->causal && t + 1 < r.end) r.end = t + 1;
    return r;
}

#endif
