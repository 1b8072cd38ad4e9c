/* Attention over x itself as onnxruntime's optimizer writes it, and quantized. Source:
 * docs/ContribOperators.md of github.com/microsoft/onnxruntime, Attention, QAttention. */
#include "quantized_internal.h"

/* What is computed of x (B, S, C) and how: both operators' operands by their numbers. */
typedef struct {
    CornuReadStep *step;
    CornuTensor   *x, *w;         /* real; w (C, Q + K + V) */
    int            bias, mask, past, relative;
    int64_t        heads, batch, steps;
} Attention;

/* Columns begin..begin + size of x w + b as (B, heads, S, size / heads). */
static CornuTensor *projected(const Attention *a, CornuTensor *all, int64_t begin, int64_t size)
{
    const int64_t split[] = { a->batch, a->steps, a->heads, size / a->heads };
    CornuTensor  *part = cornu__reshaped(cornu__part_of(all, 2, begin, size), 4, split);
    return cornu__move_axis(part, 2, 1);
}

/* x after `past` (2, B, heads, P, D), whose part `which` it is. */
static CornuTensor *after_past(const Attention *a, CornuTensor *x, int which)
{
    CornuTensor *past = cornu__optional(a->step, a->past);
    if (!past || !x) return x;
    const CornuShape s = cornu_tensor_shape(past);
    if (s.rank != 5) return cornu__fail_null(CORNU_ERR_SHAPE, "past has rank %d", s.rank);
    past = cornu__drop_axis(cornu__part_of(past, 0, which, 1), 0);
    return cornu_op_concat((CornuTensor *const[]){ past, x }, 2, 2);
}

/* (…) i32, true where a key counts, as it broadcasts to (B, heads, S, keys): given as 0 and 1 for
 * each key, or for each step and key, or as the number of keys, with or without where they
 * begin. */
static CornuTensor *counts(const Attention *a, CornuTensor *mask, int64_t keys)
{
    const CornuShape s = cornu_tensor_shape(mask);
    CornuGraph      *graph = a->step->run->graph;
    if (s.rank == 1) {
        CornuTensor *key = cornu__count_along(graph, CORNU_I32, 4, 3, keys);
        const int64_t column[] = { a->batch, 1, 1, 1 };
        if (s.extent[0] != a->batch && s.extent[0] != 2 * a->batch)
            return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a mask of %lld numbers for %lld rows "
                                    "is not supported", (long long)s.extent[0],
                                    (long long)a->batch);
        CornuTensor *end = cornu__reshaped(cornu__part_of(mask, 0, 0, a->batch), 4, column);
        CornuTensor *in = cornu_op_convert(cornu_op_compare(key, CORNU_LESS, end), CORNU_I32);
        if (s.extent[0] == a->batch) return in;
        CornuTensor *begin = cornu__part_of(mask, 0, a->batch, a->batch);
        begin = cornu__reshaped(begin, 4, column);
        return cornu_op_minimum(in, cornu_op_convert(
            cornu_op_compare(key, CORNU_GREATER_EQUAL, begin), CORNU_I32));
    }
    if (s.rank < 2 || s.rank > 3 || s.extent[s.rank - 1] != keys)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a mask of rank %d is not supported",
                                s.rank);
    return cornu__reshaped(mask, 4, (const int64_t[]){ s.extent[0], 1,
                                                       s.rank == 3 ? s.extent[1] : 1, keys });
}

/* What is added to the scores; NULL without an error for nothing. */
static CornuTensor *added(const Attention *a, int64_t keys)
{
    CornuReadStep *step = a->step;
    CornuGraph    *graph = step->run->graph;
    CornuTensor   *mask = cornu__optional_as(step, a->mask, CORNU_I32);
    CornuTensor   *sum = a->relative ? cornu__optional(step, a->relative) : NULL;
    const double   filter = cornu__real(step, "mask_filter_value", -10000.0);
    if (mask) {
        CornuTensor *in = cornu_op_convert(counts(a, mask, keys), CORNU_BOOL);
        const CornuType one = cornu_scalar(CORNU_F32);
        mask = cornu_op_select(in, cornu_op_constant(graph, one, 0.0),
                               cornu_op_constant(graph, one, filter));
        sum = sum ? cornu_op_add(sum, mask) : mask;
    }
    if (!cornu__whole(step, "unidirectional", 0)) return sum;
    CornuTensor *key = cornu__count_along(graph, CORNU_I64, 4, 3, keys);
    CornuTensor *row = cornu__count_along(graph, CORNU_I64, 4, 2, a->steps);
    row = row ? cornu_op_add(row, cornu_op_constant_like(row, (double)(keys - a->steps))) : NULL;
    const CornuType one = cornu_scalar(CORNU_F32);
    CornuTensor *later = cornu_op_select(cornu_op_compare(key, CORNU_LESS_EQUAL, row),
                                         cornu_op_constant(graph, one, 0.0),
                                         cornu_op_constant(graph, one, -3e38));
    return sum ? cornu_op_maximum(cornu_op_add(sum, later), cornu_op_constant(graph, one, -3e38))
               : later;
}

/* The widths of queries, keys and values. */
static CornuStatus widths(const Attention *a, int64_t to[3])
{
    int           count;
    const int64_t all = cornu__extent_of(a->w, 1);
    CORNU__TRY(cornu__integers(a->step, "qkv_hidden_sizes", to, 3, &count));
    for (int i = 0; i < 3 && count < 3; i++) to[i] = all / 3;
    if (a->heads < 1 || to[0] < 1 || to[2] < 1 || to[0] != to[1] || to[0] % a->heads ||
        to[2] % a->heads || to[0] > all || to[2] > all || to[0] + to[1] + to[2] != all)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld columns for %lld heads", (long long)all,
                           (long long)a->heads);
    return CORNU_OK;
}

static CornuStatus attend(Attention *a)
{
    CornuReadStep *step = a->step;
    int64_t        width[3];
    if (!a->x || !a->w) return cornu_error_take();
    if (cornu__rank_of(a->x) != 3 || cornu__rank_of(a->w) != 2)
        return cornu__fail(CORNU_ERR_SHAPE, "x has rank %d and the weights %d, expected 3 and 2",
                           cornu__rank_of(a->x), cornu__rank_of(a->w));
    a->heads = cornu__whole(step, "num_heads", 0);
    a->batch = cornu__extent_of(a->x, 0);
    a->steps = cornu__extent_of(a->x, 1);
    CORNU__TRY(widths(a, width));
    CornuTensor *all = cornu_op_matmul(a->x, a->w);
    if (cornu__given(step, a->bias)) all = cornu_op_add(all, cornu__optional(step, a->bias));
    CornuTensor *q = projected(a, all, 0, width[0]);
    CornuTensor *k = after_past(a, projected(a, all, width[0], width[1]), 0);
    CornuTensor *v = after_past(a, projected(a, all, width[0] + width[1], width[2]), 1);
    CornuTensor *in[] = { q, k, v, added(a, cornu__extent_of(k, 2)) };
    CornuTensor *y = cornu__move_axis(cornu__read_by(step, "Attention", in, 4), 2, 1);
    CORNU__TRY(cornu__result(step, 0, cornu__reshaped(y, 3, (const int64_t[]){
        a->batch, a->steps, width[2] })));
    if (!cornu__wanted(step, 1)) return CORNU_OK;
    CornuTensor *both[] = { cornu__add_axis(k, 0), cornu__add_axis(v, 0) };
    return cornu__result(step, 1, cornu_op_concat(both, 2, 0));
}

/* x, w, bias, mask, past, what is added to the scores. */
static CornuStatus read_attention(CornuReadStep *step)
{
    Attention a = { .step = step, .x = cornu__operand_of(step, 0), .w = cornu__operand_of(step, 1),
                    .bias = 2, .mask = 3, .past = 4, .relative = 5 };
    return attend(&a);
}

/* x, w, bias, scales of x and w, mask, zeros of x and w, past. */
static CornuStatus read_quantized(CornuReadStep *step)
{
    Attention a = { .step = step, .bias = 2, .mask = 5, .past = 8,
                    .x = cornu__dequantized(step, 0, 3, 6, -1),
                    .w = cornu__dequantized(step, 1, 4, 7, 1) };
    return attend(&a);
}

const CornuReadRow cornu__read_fused_attention[] = {
    { "com.microsoft.Attention", read_attention, .operands = 2 },
    { "com.microsoft.QAttention", read_quantized, .operands = 2 },
    { 0 },
};
