/* Attention and the rotation of positions. Formulas: docs/Operators.md of ONNX. */
#include "../run_internal.h"

#include <math.h>

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

/* ---- Heads: (B, N, T, H) ---- */

/* Tensors of rank 3 have their heads side by side: (B, T, N H). */
static CornuTensor *apart(CornuTensor *x, int64_t heads)
{
    if (!x || cornu__rank_of(x) != 3) return x;
    const CornuShape s = cornu_tensor_shape(x);
    if (heads < 1 || s.extent[2] % heads)
        return cornu__fail_null(CORNU_ERR_SHAPE, "%lld heads of %lld channels", (long long)heads,
                                (long long)s.extent[2]);
    x = cornu_op_reshape(x, cornu_shape(s.extent[0], s.extent[1], heads, s.extent[2] / heads));
    return cornu_op_transpose(x, (const int[]){ 0, 2, 1, 3 });
}

static CornuTensor *together(CornuTensor *x)
{
    x = cornu_op_transpose(x, (const int[]){ 0, 2, 1, 3 });
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(s.extent[0], s.extent[1], s.extent[2] * s.extent[3]));
}

/* Each head several times, for the heads of the query that share it. */
static CornuTensor *shared(CornuTensor *x, int64_t heads)
{
    const CornuShape s = cornu_tensor_shape(x);
    if (s.extent[1] == heads) return x;
    x = cornu_op_broadcast(cornu__add_axis(x, 2), cornu_shape(s.extent[0], s.extent[1],
                                                              heads / s.extent[1], s.extent[2],
                                                              s.extent[3]));
    return cornu_op_reshape(x, cornu_shape(s.extent[0], heads, s.extent[2], s.extent[3]));
}

/* ---- What a step attends to, as a term of its scores: 0, or minus infinity ---- */

static CornuTensor *term_of(CornuTensor *allowed)
{
    const CornuType type = cornu_type_from(CORNU_F32, cornu_tensor_shape(allowed));
    CornuGraph     *graph = cornu_tensor_graph(allowed);
    return cornu_op_select(allowed, cornu_op_constant(graph, type, 0.0),
                           cornu_op_constant(graph, type, -INFINITY));
}

static CornuTensor *sum_of(CornuTensor *a, CornuTensor *b)
{
    return a && b ? cornu_op_add(a, b) : a ? a : b;
}

/* The mask, which may be shorter than the S steps; the others are left out. */
static CornuTensor *given_term(CornuReadStep *step, int64_t S)
{
    CornuTensor *mask = cornu__optional(step, MASK);
    if (!mask) return NULL;
    const int last = cornu__rank_of(mask) - 1;
    if (last < 0) return cornu__fail_null(CORNU_ERR_SHAPE, "a mask of rank 0");
    if (cornu__dtype_of(mask) == CORNU_BOOL) mask = term_of(mask);
    const int64_t more = S - cornu__extent_of(mask, last);
    return more > 0 ? cornu__pad_axis(mask, last, 0, more, -INFINITY) : mask;
}

/* Of steps before the query: those of the past, or of each row's own number of valid steps. */
static CornuTensor *distance(CornuReadStep *step, CornuGraph *graph, CornuTensor *lengths,
                             int64_t T, int64_t S)
{
    CornuTensor *t = cornu__count_along(graph, CORNU_I64, 4, 2, T);
    CornuTensor *s = cornu__count_along(graph, CORNU_I64, 4, 3, S);
    if (cornu__given(step, PAST_KEY))
        t = cornu_op_shift(t, (double)cornu__operand_type(step, PAST_KEY).shape.extent[2]);
    else if (lengths)
        t = cornu_op_add(t, cornu_op_shift(lengths, (double)-T));
    return cornu_op_subtract(t, s);
}

static CornuTensor *bounded(CornuTensor *x, CornuComparison comparison, int64_t limit)
{
    return term_of(cornu_op_compare(x, comparison, cornu_op_constant_like(x, (double)limit)));
}

/* All terms together; NULL if there are none. */
static CornuTensor *terms_of(CornuReadStep *step, CornuTensor *query, int64_t S)
{
    CornuGraph   *graph = cornu_tensor_graph(query);
    const int64_t left = cornu__whole(step, "left_window_size", -1);
    const int64_t right = cornu__whole(step, "right_window_size", -1);
    CornuTensor  *lengths = cornu__optional(step, LENGTHS), *term = given_term(step, S);
    if (lengths)
        lengths = cornu_op_reshape(cornu_op_convert(lengths, CORNU_I64),
                                   cornu_shape(cornu__extent_of(query, 0), 1, 1, 1));
    CornuTensor *far = distance(step, graph, lengths, cornu__extent_of(query, 2), S);
    if (cornu__whole(step, "is_causal", 0))
        term = sum_of(term, bounded(far, CORNU_GREATER_EQUAL, 0));
    if (left >= 0) term = sum_of(term, bounded(far, CORNU_LESS_EQUAL, left));
    if (right >= 0) term = sum_of(term, bounded(far, CORNU_GREATER_EQUAL, -right));
    if (lengths)
        term = sum_of(term, term_of(cornu_op_compare(cornu__count_along(graph, CORNU_I64, 4, 3, S),
                                                     CORNU_LESS, lengths)));
    return term;
}

/* ---- The operators ---- */

/* Of a step that attends to nothing the probabilities are 0. */
static CornuTensor *probabilities(CornuTensor *scores, CornuTensor *term)
{
    if (!term || !scores) return cornu_op_softmax(scores);
    CornuTensor *most = cornu_op_reduce_max(
        term, INT64_C(1) << (cornu__rank_of(term) - 1), true);
    CornuTensor *none = cornu_op_compare(most, CORNU_EQUAL,
                                         cornu_op_constant_like(most, -INFINITY));
    CornuTensor *zero = cornu_op_constant_like(scores, 0.0);
    none = cornu_op_broadcast(none, cornu_tensor_shape(scores));
    return cornu_op_select(none, zero, cornu_op_softmax(cornu_op_select(none, zero, scores)));
}

static CornuStatus read_attention(CornuReadStep *step)
{
    CornuTensor  *x[3], *past[3] = { NULL };
    const double  cap = cornu__real(step, "softcap", 0.0);
    const int64_t mode = cornu__whole(step, "qk_matmul_output_mode", 0);
    for (int i = QUERY; i <= VALUE; i++) {
        const int64_t heads = cornu__whole(step, i == QUERY ? "q_num_heads" : "kv_num_heads", 0);
        x[i] = apart(cornu__operand_of(step, i), heads);
        if (i > QUERY) past[i] = cornu__optional(step, PAST_KEY + i - KEY);
        if (past[i]) x[i] = cornu_op_concat((CornuTensor *[]){ past[i], x[i] }, 2, 2);
        if (!x[i]) return cornu_error_take();
        if (cornu__rank_of(x[i]) != 4) return cornu__cannot("an operand", "which has no heads");
        if (i > QUERY) CORNU__TRY(cornu__result(step, i, x[i]));
    }
    const CornuShape q = cornu_tensor_shape(x[QUERY]), k = cornu_tensor_shape(x[KEY]);
    if (k.extent[1] < 1 || q.extent[1] % k.extent[1])
        return cornu__fail(CORNU_ERR_SHAPE, "%lld heads share %lld", (long long)q.extent[1],
                           (long long)k.extent[1]);
    const double scale = cornu__real(step, "scale", 1.0 / sqrt((double)q.extent[3]));
    CornuTensor *scores = cornu_op_scale(
        cornu_op_matmul_transposed(x[QUERY], false, shared(x[KEY], q.extent[1]), true), scale);
    if (mode == 0) CORNU__TRY(cornu__result(step, 3, scores));
    if (cap > 0.0) scores = cornu_op_scale(cornu_op_tanh(cornu_op_scale(scores, 1.0 / cap)), cap);
    if (mode == 1) CORNU__TRY(cornu__result(step, 3, scores));
    CornuTensor *term = terms_of(step, x[QUERY], k.extent[2]);
    if (term) scores = cornu_op_add(scores, term);
    if (mode == 2) CORNU__TRY(cornu__result(step, 3, scores));
    CornuTensor *p = probabilities(scores, term);
    if (mode == 3) CORNU__TRY(cornu__result(step, 3, p));
    CornuTensor *y = cornu_op_matmul(p, shared(x[VALUE], q.extent[1]));
    const bool   flat = cornu__operand_type(step, QUERY).shape.rank == 3;
    return cornu__result(step, 0, flat ? together(y) : y);
}

/* Part `which` of two of the last axis: its halves, or with `pairs` every second element. */
static CornuTensor *part(CornuTensor *x, int which, bool pairs)
{
    CornuShape    two = cornu_tensor_shape(x);
    const int     last = two.rank - 1;
    const int64_t half = cornu__extent_of(x, last) / 2;
    if (!pairs) return cornu__part_of(x, last, which * half, half);
    two.extent[last] = half;
    two.extent[two.rank++] = 2;
    return cornu__drop_axis(cornu__part_of(cornu_op_reshape(x, two), last + 1, which, 1), last + 1);
}

/* The parts a and b, joined again. */
static CornuTensor *joined(CornuTensor *a, CornuTensor *b, bool pairs)
{
    CornuShape s = cornu_tensor_shape(a);
    const int  last = s.rank - 1;
    if (!pairs) return cornu_op_concat((CornuTensor *[]){ a, b }, 2, last);
    CornuTensor *both[] = { cornu__add_axis(a, s.rank), cornu__add_axis(b, s.rank) };
    s.extent[last] *= 2;
    return cornu_op_reshape(cornu_op_concat(both, 2, last + 1), s);
}

/* The angles of each step, (B, 1, T, n): of its position if there are positions. */
static CornuTensor *angles(CornuReadStep *step, int i)
{
    CornuTensor *x = cornu__operand_of(step, i), *positions = cornu__optional(step, 3);
    if (positions) x = cornu_op_gather(x, positions);
    if (!x || cornu__rank_of(x) != 3) return cornu__fail_null(CORNU_ERR_SHAPE, "angles of rank %d",
                                                              cornu__rank_of(x));
    return cornu__add_axis(x, 1);
}

static CornuStatus read_rotary(CornuReadStep *step)
{
    CornuTensor  *x = apart(cornu__operand_of(step, 0), cornu__whole(step, "num_heads", 0));
    const bool    pairs = cornu__whole(step, "interleaved", 0);
    const int64_t given = cornu__whole(step, "rotary_embedding_dim", 0);
    if (!x || cornu__rank_of(x) != 4) return cornu__cannot("an operand", "which has no heads");
    const int64_t width = cornu__extent_of(x, 3), turned = given > 0 ? given : width;
    CornuTensor  *c = angles(step, 1), *s = angles(step, 2), *y = NULL;
    if (!c || !s || turned > width || turned % 2) return cornu__cannot("the rotation", "of these");
    CornuTensor *head = cornu__part_of(x, 3, 0, turned);
    CornuTensor *a = part(head, 0, pairs), *b = part(head, 1, pairs);
    y = joined(cornu_op_subtract(cornu_op_multiply(c, a), cornu_op_multiply(s, b)),
               cornu_op_add(cornu_op_multiply(s, a), cornu_op_multiply(c, b)), pairs);
    if (turned < width)
        y = cornu_op_concat((CornuTensor *[]){ y, cornu__part_of(x, 3, turned, width - turned) },
                            2, 3);
    const bool flat = cornu__operand_type(step, 0).shape.rank == 3;
    return cornu__result(step, 0, flat ? together(y) : y);
}

const CornuReadRow cornu__read_attention[] = {
    { "Attention", read_attention, .operands = 3 },
    { "RotaryEmbedding", read_rotary, .operands = 3 },
    { 0 },
};
