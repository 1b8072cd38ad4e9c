/*
 * Attention by heads. With g = n / (N / G), so that each head of the keys serves N / G heads,
 *
 *     score[b, n, t, s] = sum over h of q[b, t, n, h] k[b, s, g, h], or -1e9 where s is masked
 *     lse[b, n, t] = log(sum over s of exp(score[b, n, t, s]))
 *     p = exp(score - lse)          y[b, t, n, v] = sum over s of p[b, n, t, s] v[b, s, g, v]
 *
 * Step s is masked for step t unless the mask is true there, with `causal` s <= t, and with a
 * `window` |t - s| < window. A step t for which every s is masked attends to all of them equally,
 * as -1e9 is the score of each. Scale factors are the caller's, in q.
 * Vaswani et al., "Attention Is All You Need", arXiv 1706.03762; heads of keys that serve several:
 * Ainslie et al., arXiv 2305.13245. Its gradient from lse: Dao et al., "FlashAttention", arXiv
 * 2205.14135, and Dao, "FlashAttention-2", arXiv 2307.08691.
 */
#include "attention.h"

#include <math.h>

#include "recurrence.h"

enum { Q = CORNU_ATTENTION_Q, K = CORNU_ATTENTION_K, V = CORNU_ATTENTION_V,
       MASK = CORNU_ATTENTION_MASK, Y = CORNU_ATTENTION_Y, LSE = CORNU_ATTENTION_LSE,
       D_Y = CORNU_ATTENTION_D_Y, GRAD_MASK = CORNU_ATTENTION_GRAD_MASK };

/* ---- Types ---- */

CornuAttentionExtents cornu__attention_extents(const CornuOpCall *call)
{
    const int64_t *q = call->in[Q].shape.extent, *k = call->in[K].shape.extent;
    return (CornuAttentionExtents){ .batch = q[0], .queries = q[1], .keys = k[1], .heads = q[2],
                                    .groups = k[2], .size = q[3],
                                    .values = call->in[V].shape.extent[3] };
}

static CornuStatus check_mask(const CornuOpCall *call, CornuAttentionExtents e, const char *names)
{
    const int     i = cornu__attention_mask(call);
    const int64_t full[] = { e.batch, e.heads, e.queries, e.keys };
    CornuText     text;
    if (i == call->in_count) return CORNU_OK;
    CORNU__TRY(cornu__expect_dtype(call, i, CORNU_BOOL, names));
    CORNU__TRY(cornu__expect_rank(call, i, 4, names));
    for (int axis = 0; axis < 4; axis++) {
        const int64_t extent = call->in[i].shape.extent[axis];
        if (extent != 1 && extent != full[axis])
            return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected a mask of %s, or 1 along "
                                 "some axes", cornu_shape_print(&text,
                                 cornu_shape(full[0], full[1], full[2], full[3])));
    }
    return CORNU_OK;
}

/* Checks dtypes and extents of q, k, v and the mask against each other. */
static CornuStatus check_attention(const CornuOpCall *call, const char *names)
{
    const CornuAttributes_ATTENTION *attention = &call->attributes->attention;
    CORNU__TRY(cornu__expect_count(call, cornu__attention_mask(call), names));
    CORNU__TRY(cornu__expect_float(call, Q, names));
    for (int i = Q; i <= V; i++) {
        CORNU__TRY(cornu__expect_rank(call, i, 4, names));
        CORNU__TRY(cornu__expect_dtype(call, i, call->in[Q].dtype, names));
    }
    const CornuAttentionExtents e = cornu__attention_extents(call);
    const CornuType             type = call->in[Q];
    if (e.keys < 1 || e.groups < 1 || e.heads % e.groups)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected at least one step of k, and "
                             "as many heads of q as of k, or a multiple");
    CORNU__TRY(cornu__expect_type(call, K, cornu_type(type.dtype, e.batch, e.keys, e.groups,
                                                      e.size), names));
    CORNU__TRY(cornu__expect_type(call, V, cornu_type(type.dtype, e.batch, e.keys, e.groups,
                                                      e.values), names));
    if (attention->window < 0)
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, names, "window %lld, expected 0 or more",
                             (long long)attention->window);
    return check_mask(call, e, names);
}

static CornuType y_type(CornuAttentionExtents e, CornuDtype dtype)
{
    return cornu_type(dtype, e.batch, e.queries, e.heads, e.values);
}

static CornuType lse_type(CornuAttentionExtents e, CornuDtype dtype)
{
    return cornu_type(cornu__sums_dtype(dtype), e.batch, e.heads, e.queries);
}

/* The (t, s) with s <= t + shift. */
static double pairs_up_to(CornuAttentionExtents e, int64_t shift)
{
    const double T = (double)e.queries, S = (double)e.keys, a = (double)shift + 1.0;
    const double first = fmin(fmax(-a, 0.0), T), last = fmax(first, fmin(fmax(S - a, 0.0), T));
    return (last - first) * (a + (first + last - 1.0) / 2.0) + (T - last) * S;
}

/* For each pair of steps that the attributes allow, `of_keys` operations per element of a key,
 * `of_values` per element of a value, and `rest`. */
static int64_t flops(const CornuOpCall *call, int64_t of_keys, int64_t of_values, int64_t rest)
{
    const CornuAttributes_ATTENTION *attention = &call->attributes->attention;
    const CornuAttentionExtents      e = cornu__attention_extents(call);
    const int64_t window = attention->window;
    const int64_t last = attention->causal ? 0 : window ? window - 1 : e.keys - 1;
    double        pairs = pairs_up_to(e, last);
    if (window) pairs -= pairs_up_to(e, -window);
    const double all = pairs * (double)e.batch * (double)e.heads *
                       ((double)of_keys * (double)e.size + (double)of_values * (double)e.values +
                        (double)rest);
    return all < 9e18 ? (int64_t)all : INT64_MAX;
}

/* ---- The decomposition ---- */

static CornuValue transposed(CornuBuilder *b, CornuValue x)
{
    CornuAttributes heads_first = { .permutation = { { 0, 2, 1, 3 } } };
    return cornu__build(b, CORNU_OP_TRANSPOSE, &heads_first, &x, 1);
}

static CornuValue attention_product(CornuBuilder *b, CornuValue x, bool transpose_x, CornuValue y,
                                    bool transpose_y, CornuDtype dtype)
{
    CornuAttributes attributes = { .matmul = { transpose_x, transpose_y, dtype } };
    return cornu__build(b, CORNU_OP_MATMUL, &attributes, (const CornuValue[]){ x, y }, 2);
}

/* The heads of (B, T, N, n) that share one of k as one matrix: (B, G, N / G T, n). */
static CornuValue matrices(CornuBuilder *b, CornuValue x, CornuAttentionExtents e)
{
    if (b->status) return CORNU_NO_VALUE;
    const int64_t last = cornu_program_type(b->program, x).shape.extent[3];
    return cornu__build_reshape(b, transposed(b, x),
                    cornu_shape(e.batch, e.groups, e.heads / e.groups * e.queries, last));
}

/* And back. */
static CornuValue by_steps(CornuBuilder *b, CornuValue x, int64_t heads, int64_t steps)
{
    if (b->status) return CORNU_NO_VALUE;
    CornuShape shape = cornu_program_type(b->program, x).shape;
    shape.extent[1] = heads;
    shape.extent[2] = steps;
    return transposed(b, cornu__build_reshape(b, x, shape));
}

/* What is true where both are; either may be CORNU_NO_VALUE. */
static CornuValue mask_both(CornuBuilder *b, CornuValue x, CornuValue y)
{
    if (x == CORNU_NO_VALUE || y == CORNU_NO_VALUE) return x == CORNU_NO_VALUE ? y : x;
    return cornu__build_select(b, x, y, x);
}

static CornuValue steps(CornuBuilder *b, CornuAttentionExtents e, int axis)
{
    CornuAttributes attributes = { .iota = { CORNU_I32, 4, { 1, 1, e.queries, e.keys }, axis } };
    return cornu__build(b, CORNU_OP_IOTA, &attributes, NULL, 0);
}

/* Which (b, n, t, s) are not masked; CORNU_NO_VALUE: all. */
static CornuValue allowed(CornuBuilder *b, const CornuOpCall *call, const CornuValue *in,
                          CornuAttentionExtents e)
{
    const CornuAttributes_ATTENTION *attention = &call->attributes->attention;
    const int        mask = cornu__attention_mask(call);
    const CornuShape shape = cornu_shape(e.batch, e.heads, e.queries, e.keys);
    CornuValue       all = CORNU_NO_VALUE;
    if (attention->causal || attention->window) {
        CornuValue t = steps(b, e, 2), s = steps(b, e, 3);
        if (attention->causal) all = cornu__build_compare(b, s, CORNU_LESS_EQUAL, t);
        if (attention->window) {
            CornuValue apart = cornu__build1(b, CORNU_OP_ABSOLUTE,
                                             cornu__build2(b, CORNU_OP_SUBTRACT, t, s));
            CornuValue width = cornu__build_constant(b, (double)attention->window, apart);
            all = mask_both(b, all, cornu__build_compare(b, apart, CORNU_LESS, width));
        }
        all = cornu__build_broadcast(b, all, shape);
    }
    if (mask == call->in_count) return all;
    return mask_both(b, all, cornu__build_broadcast(b, in[mask], shape));
}

/* (B, N, T, S) in the dtype of sums, where `mask` is false -1e9. */
static CornuValue scores_of(CornuBuilder *b, CornuValue q, CornuValue k, CornuValue mask,
                            CornuAttentionExtents e, CornuDtype sums)
{
    CornuValue scores = cornu__build_reshape(b, attention_product(b, q, false, k, true, sums),
                                 cornu_shape(e.batch, e.heads, e.queries, e.keys));
    if (mask == CORNU_NO_VALUE) return scores;
    return cornu__build_select(b, mask, scores,
                               cornu__build_constant(b, CORNU_ATTENTION_MASKED, scores));
}

/* p (B, N, T, S) as (B, G, N / G T, S), of a dtype. */
static CornuValue folded(CornuBuilder *b, CornuValue p, CornuAttentionExtents e, CornuDtype dtype)
{
    return cornu__build_convert(b, cornu__build_reshape(b, p, cornu_shape(e.batch, e.groups,
                                                              e.heads / e.groups * e.queries,
                                                              e.keys)), dtype);
}

/* ---- attention: q (B, T, N, H), k (B, S, G, H), v (B, S, G, V), mask (B, N, T, S), extents of 1
 * broadcast, or none, give y (B, T, N, V) and lse (B, N, T), f32 at least ---- */

static CornuStatus attention_type(const CornuOpCall *call, CornuType *out)
{
    CORNU__TRY(check_attention(call, "q k v mask"));
    const CornuAttentionExtents e = cornu__attention_extents(call);
    out[0] = y_type(e, call->in[Q].dtype);
    out[1] = lse_type(e, call->in[Q].dtype);
    return CORNU_OK;
}

static int64_t attention_flops(const CornuOpCall *call) { return flops(call, 2, 2, 5); }

static CornuStatus attention_decompose(CornuProgram *program, const CornuOpCall *call,
                                       const CornuValue *in, CornuValue *out)
{
    CornuBuilder                builder = { program, CORNU_OK }, *b = &builder;
    const CornuAttentionExtents e = cornu__attention_extents(call);
    const CornuDtype            dtype = call->in[Q].dtype, sums = cornu__sums_dtype(dtype);
    const int64_t               last = INT64_C(1) << 3;
    CornuValue q = matrices(b, in[Q], e), k = transposed(b, in[K]), v = transposed(b, in[V]);
    CornuValue scores = scores_of(b, q, k, allowed(b, call, in, e), e, sums);
    CornuValue p = folded(b, cornu__build1(b, CORNU_OP_SOFTMAX, scores), e, dtype);
    out[0] = by_steps(b, attention_product(b, p, false, v, false, dtype), e.heads, e.queries);
    CornuValue most = cornu__build_reduce(b, CORNU_OP_REDUCE_MAX, scores, last, true);
    CornuValue less = cornu__build2(b, CORNU_OP_SUBTRACT, scores,
                                    cornu__build_like(b, most, scores));
    CornuValue sum = cornu__build_reduce(b, CORNU_OP_REDUCE_SUM,
                                         cornu__build1(b, CORNU_OP_EXP, less), last, true);
    out[1] = cornu__build_reshape(b, plus(b, cornu__build1(b, CORNU_OP_LOG, sum), most),
                      cornu_shape(e.batch, e.heads, e.queries));
    return b->status;
}

/* An operand or result (B, steps, heads, n) of the reference. */
static double *row_of(const double *x, const CornuType *type, int64_t b, int64_t step, int64_t head)
{
    const int64_t *extent = type->shape.extent;
    return (double *)x + ((b * extent[1] + step) * extent[2] + head) * extent[3];
}

static double dot(const double *x, const double *y, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * y[i];
    return sum;
}

static void add_scaled(double factor, const double *x, int64_t count, double *y)
{
    for (int64_t i = 0; i < count; i++) y[i] += factor * x[i];
}

static bool is_masked(const CornuReferenceCall *call, int64_t b, int64_t n, int64_t t, int64_t s)
{
    const int           i = cornu__attention_mask(&call->op);
    const int64_t       keys = call->op.in[K].shape.extent[1], at[] = { b, n, t, s };
    const CornuAttended own = cornu__attended(&call->op.attributes->attention, keys, t);
    int64_t             index = 0;
    if (s < own.begin || s >= own.end) return true;
    if (i == call->op.in_count) return false;
    for (int axis = 0; axis < 4; axis++) {
        const int64_t extent = call->op.in[i].shape.extent[axis];
        index = index * extent + (extent > 1 ? at[axis] : 0);
    }
    return call->in[i][index] == 0.0;
}

static double score(const CornuReferenceCall *call, CornuAttentionExtents e, int64_t b, int64_t n,
                    int64_t t, int64_t s)
{
    if (is_masked(call, b, n, t, s)) return CORNU_ATTENTION_MASKED;
    return dot(row_of(call->in[Q], &call->op.in[Q], b, t, n),
               row_of(call->in[K], &call->op.in[K], b, s, n / (e.heads / e.groups)), e.size);
}

static void attend(const CornuReferenceCall *call, CornuAttentionExtents e, int64_t b, int64_t n,
                   int64_t t)
{
    double *y = row_of(call->out[0], call->out_type, b, t, n), most = -INFINITY, sum = 0.0;
    for (int64_t s = 0; s < e.keys; s++) most = fmax(most, score(call, e, b, n, t, s));
    for (int64_t v = 0; v < e.values; v++) y[v] = 0.0;
    for (int64_t s = 0; s < e.keys; s++) {
        const double p = exp(score(call, e, b, n, t, s) - most);
        add_scaled(p, row_of(call->in[V], &call->op.in[V], b, s, n / (e.heads / e.groups)),
                   e.values, y);
        sum += p;
    }
    for (int64_t v = 0; v < e.values; v++) y[v] /= sum;
    call->out[1][(b * e.heads + n) * e.queries + t] = most + log(sum);
}

static CornuStatus attention_reference(const CornuReferenceCall *call)
{
    const CornuAttentionExtents e = cornu__attention_extents(&call->op);
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t n = 0; n < e.heads; n++)
            for (int64_t t = 0; t < e.queries; t++) attend(call, e, b, n, t);
    return CORNU_OK;
}

const CornuOpRules cornu__attention_rules = {
    attention_type, attention_flops, attention_decompose, attention_reference,
};

/*
 * ---- attention_grad: q, k, v, its results y and lse, d_y (B, T, N, V), mask or none, give d_q,
 * d_k, d_v ----
 *
 *     p = exp(score - lse)      d_p = d_y v'      delta[b, n, t] = d_y[b, t, n] . y[b, t, n]
 *     d_s = p (d_p - delta)     d_q = d_s k       d_k = d_s' q       d_v = p' d_y
 *
 * d_s of a masked step is 0, and so is its p, but 1 / S where all steps are masked, which lse
 * tells.
 */
static CornuStatus attention_grad_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "q k v y lse d_y mask";
    CORNU__TRY(check_attention(call, names));
    const CornuAttentionExtents e = cornu__attention_extents(call);
    const CornuDtype            dtype = call->in[Q].dtype;
    CORNU__TRY(cornu__expect_type(call, Y, y_type(e, dtype), names));
    CORNU__TRY(cornu__expect_type(call, LSE, lse_type(e, dtype), names));
    CORNU__TRY(cornu__expect_type(call, D_Y, y_type(e, dtype), names));
    for (int i = Q; i <= V; i++) out[i] = call->in[i];
    return CORNU_OK;
}

/* The score anew, d_p and the three results. */
static int64_t attention_grad_flops(const CornuOpCall *call) { return flops(call, 6, 4, 6); }

static CornuStatus attention_grad_decompose(CornuProgram *program, const CornuOpCall *call,
                                            const CornuValue *in, CornuValue *out)
{
    CornuBuilder                builder = { program, CORNU_OK }, *b = &builder;
    const CornuAttentionExtents e = cornu__attention_extents(call);
    const CornuDtype            dtype = call->in[Q].dtype, sums = cornu__sums_dtype(dtype);
    const CornuShape            rows = cornu_shape(e.batch, e.heads, e.queries, 1);
    const CornuShape            shape = cornu_shape(e.batch, e.heads, e.queries, e.keys);
    CornuValue q = matrices(b, in[Q], e), k = transposed(b, in[K]), v = transposed(b, in[V]);
    CornuValue d_y = matrices(b, in[D_Y], e), mask = allowed(b, call, in, e);
    CornuValue lse = cornu__build_reshape(b, in[LSE], rows);
    CornuValue scores = scores_of(b, q, k, mask, e, sums);
    CornuValue p = cornu__build1(b, CORNU_OP_EXP, cornu__build2(b, CORNU_OP_SUBTRACT, scores,
                                                                cornu__build_like(b, lse,
                                                                                  scores)));
    if (mask != CORNU_NO_VALUE) {
        CornuValue open = cornu__build_compare(b, lse, CORNU_LESS,
                                               cornu__build_constant(b, CORNU_ATTENTION_OPEN, lse));
        CornuValue even = cornu__build_select(b, open,
                                              cornu__build_constant(b, 1.0 / (double)e.keys, lse),
                                              cornu__build_constant(b, 0.0, lse));
        p = cornu__build_select(b, mask, p, cornu__build_like(b, even, p));
    }
    CornuValue d_p = cornu__build_reshape(b, attention_product(b, d_y, false, v, true, sums),
                                          shape);
    CornuValue delta = times(b, cornu__build_convert(b, in[D_Y], sums),
                             cornu__build_convert(b, in[Y], sums));
    delta = transposed(b, cornu__build_reduce(b, CORNU_OP_REDUCE_SUM, delta, INT64_C(1) << 3,
                                              true));
    CornuValue d_s = times(b, p, cornu__build2(b, CORNU_OP_SUBTRACT, d_p,
                                               cornu__build_like(b, delta, d_p)));
    if (mask != CORNU_NO_VALUE)
        d_s = cornu__build_select(b, mask, d_s, cornu__build_constant(b, 0.0, d_s));
    p = folded(b, p, e, dtype);
    d_s = folded(b, d_s, e, dtype);
    out[Q] = by_steps(b, attention_product(b, d_s, false, k, false, dtype), e.heads, e.queries);
    out[K] = by_steps(b, attention_product(b, d_s, true, q, false, dtype), e.groups, e.keys);
    out[V] = by_steps(b, attention_product(b, p, true, d_y, false, dtype), e.groups, e.keys);
    return b->status;
}

static void attend_grad(const CornuReferenceCall *call, CornuAttentionExtents e, int64_t b,
                        int64_t n, int64_t t)
{
    const CornuType *in = call->op.in;
    const int64_t    g = n / (e.heads / e.groups);
    const double     lse = call->in[LSE][(b * e.heads + n) * e.queries + t];
    const double    *d_y = row_of(call->in[D_Y], &in[D_Y], b, t, n);
    const double     delta = dot(d_y, row_of(call->in[Y], &in[Y], b, t, n), e.values);
    for (int64_t s = 0; s < e.keys; s++) {
        const bool   masked = is_masked(call, b, n, t, s);
        const double p = !masked ? exp(score(call, e, b, n, t, s) - lse)
                       : lse < CORNU_ATTENTION_OPEN ? 1.0 / (double)e.keys : 0.0;
        const double d_p = dot(d_y, row_of(call->in[V], &in[V], b, s, g), e.values);
        const double d_s = masked ? 0.0 : p * (d_p - delta);
        add_scaled(d_s, row_of(call->in[K], &in[K], b, s, g), e.size,
                   row_of(call->out[Q], &in[Q], b, t, n));
        add_scaled(d_s, row_of(call->in[Q], &in[Q], b, t, n), e.size,
                   row_of(call->out[K], &in[K], b, s, g));
        add_scaled(p, d_y, e.values, row_of(call->out[V], &in[V], b, s, g));
    }
}

static CornuStatus attention_grad_reference(const CornuReferenceCall *call)
{
    const CornuAttentionExtents e = cornu__attention_extents(&call->op);
    for (int i = Q; i <= V; i++)
        for (int64_t k = 0; k < cornu_type_count(call->out_type[i]); k++) call->out[i][k] = 0.0;
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t n = 0; n < e.heads; n++)
            for (int64_t t = 0; t < e.queries; t++) attend_grad(call, e, b, n, t);
    return CORNU_OK;
}

const CornuOpRules cornu__attention_grad_rules = {
    attention_grad_type, attention_grad_flops, attention_grad_decompose, attention_grad_reference,
};
