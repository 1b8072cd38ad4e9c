/* Products of matrices, and sums over indices. */
#include "../run_internal.h"

#include <string.h>

/* MatMul broadcasts leading axes; operands of rank 1 are rows and columns. */
static CornuTensor *product(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b) return NULL;
    const bool row = cornu__rank_of(a) == 1, column = cornu__rank_of(b) == 1;
    if (row) a = cornu__reshaped(a, 2, (const int64_t[]){ 1, cornu__extent_of(a, 0) });
    if (column) b = cornu__reshaped(b, 2, (const int64_t[]){ cornu__extent_of(b, 0), 1 });
    const int ranks[] = { cornu__rank_of(a), cornu__rank_of(b) };
    CornuTensor *two[] = { a, b };
    const int    rank = ranks[0] > ranks[1] ? ranks[0] : ranks[1];
    if (ranks[0] < 2 || ranks[1] < 2)
        return cornu__fail_null(CORNU_ERR_SHAPE, "expected matrices, got a number");
    /* The op takes leading axes that are equal, or absent in one of the two. */
    bool plain = ranks[0] == 2 || ranks[1] == 2;
    if (!plain) {
        int64_t lead[CORNU_MAX_RANK];
        for (int i = 0; i < rank - 2; i++) {
            int64_t extents[2];
            for (int k = 0; k < 2; k++) {
                const int at = i - (rank - ranks[k]);
                extents[k] = at < 0 ? 1 : cornu__extent_of(two[k], at);
            }
            lead[i] = extents[0] == 1 ? extents[1] : extents[0];
        }
        for (int k = 0; k < 2; k++) {
            CornuShape shape = cornu_shape_from(rank, (const int64_t[CORNU_MAX_RANK]){ 0 });
            for (int i = 0; i < rank - 2; i++) shape.extent[i] = lead[i];
            for (int i = 1; i <= 2; i++)
                shape.extent[rank - i] = cornu__extent_of(two[k], ranks[k] - i);
            two[k] = cornu_op_broadcast(two[k], shape);
            if (!two[k]) return NULL;
        }
    }
    const CornuDtype dtype = cornu__dtype_of(two[0]);
    const bool       whole = !cornu_dtype_is_float(dtype);
    for (int k = 0; k < 2 && whole; k++) two[k] = cornu_op_convert(two[k], CORNU_F64);
    CornuTensor *y = cornu_op_convert(cornu_op_matmul(two[0], two[1]), dtype);
    if (!y || (!row && !column)) return y;
    CornuShape shape = cornu_tensor_shape(y), left = { 0 };
    for (int i = 0; i < shape.rank; i++)
        if (!(row && i == shape.rank - 2) && !(column && i == shape.rank - 1))
            left.extent[left.rank++] = shape.extent[i];
    return cornu_op_reshape(y, left);
}

static CornuStatus read_matmul(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    return cornu__result(step, 0, product(a, b));
}

static CornuStatus read_gemm(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    CornuTensor *c = cornu__optional(step, 2);
    const double alpha = cornu__real(step, "alpha", 1.0), beta = cornu__real(step, "beta", 1.0);
    if (!a || !b) return cornu_error_take();
    if (cornu__rank_of(a) != 2 || cornu__rank_of(b) != 2)
        return cornu__fail(CORNU_ERR_SHAPE, "expected matrices, got ranks %d and %d",
                           cornu__rank_of(a), cornu__rank_of(b));
    CornuTensor *y = cornu_op_matmul_transposed(a, cornu__whole(step, "transA", 0), b,
                                                cornu__whole(step, "transB", 0));
    if (alpha != 1.0) y = cornu_op_scale(y, alpha);
    if (c && beta != 1.0) c = cornu_op_scale(c, beta);
    return cornu__result(step, 0, c ? cornu_op_add(y, c) : y);
}

/* ---- Einsum ---- */

/* The letters of one term; those that an ellipsis stands for are '0', '1', … from the last axis
 * of it, which is '0'. */
typedef struct { char letters[CORNU_MAX_RANK + 1]; int count; } Term;

static CornuStatus read_term(const char **at, int rank, Term *term)
{
    const char *text = *at;
    int         written = 0;
    bool        dots = false;
    for (const char *c = text; *c && *c != ',' && *c != '-'; c++) written += *c != ' ' && *c != '.';
    *term = (Term){ .count = 0 };
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ' || (**at == '.' && dots)) continue;
        if (**at == '.') {
            dots = true;
            for (int i = rank - written - 1; i >= 0 && term->count < CORNU_MAX_RANK; i--)
                term->letters[term->count++] = (char)('0' + i);
            continue;
        }
        if (term->count == CORNU_MAX_RANK) return cornu__cannot("a term of over 8 indices", "");
        term->letters[term->count++] = **at;
    }
    if (rank >= 0 && term->count != rank)
        return cornu__fail(CORNU_ERR_SHAPE, "the equation has %d indices for an operand of rank "
                           "%d", term->count, rank);
    return CORNU_OK;
}

static int find(const Term *term, char letter)
{
    const char *at = memchr(term->letters, letter, (size_t)term->count);
    return at ? (int)(at - term->letters) : -1;
}

static void drop(Term *term, int i)
{
    memmove(term->letters + i, term->letters + i + 1, (size_t)(term->count - i - 1));
    term->count--;
}

/* A letter that stands twice in a term: its diagonal. */
static CornuTensor *diagonals(CornuTensor *x, Term *term)
{
    for (int i = 0; x && i < term->count; i++)
        for (int k = term->count - 1; k > i; k--) {
            if (term->letters[k] != term->letters[i]) continue;
            CornuGraph  *graph = cornu_tensor_graph(x);
            CornuTensor *a = cornu__count_along(graph, CORNU_I64, term->count, i,
                                                cornu__extent_of(x, i));
            CornuTensor *b = cornu__count_along(graph, CORNU_I64, term->count, k,
                                                cornu__extent_of(x, k));
            x = cornu_op_select(cornu_op_compare(a, CORNU_EQUAL, b), x,
                                cornu_op_constant_like(x, 0.0));
            x = cornu_op_reduce_sum(x, INT64_C(1) << k, false);
            drop(term, k);
        }
    return x;
}

/* Sums over letters that neither the other operand nor the result has. */
static CornuTensor *summed(CornuTensor *x, Term *term, const Term *other, const Term *result)
{
    for (int i = term->count - 1; x && i >= 0; i--) {
        if (find(result, term->letters[i]) >= 0 || (other && find(other, term->letters[i]) >= 0))
            continue;
        x = cornu_op_reduce_sum(x, INT64_C(1) << i, false);
        drop(term, i);
    }
    return x;
}

/* The axes in the order of the letters; absent ones have extent 1. */
static CornuTensor *ordered(CornuTensor *x, const Term *term, const Term *order)
{
    int     axes[CORNU_MAX_RANK], count = 0;
    int64_t extents[CORNU_MAX_RANK];
    for (int i = 0; i < order->count; i++) {
        const int from = find(term, order->letters[i]);
        extents[i] = from < 0 ? 1 : cornu__extent_of(x, from);
        if (from >= 0) axes[count++] = from;
    }
    if (count != term->count)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "this equation is not supported");
    if (x && count > 1) x = cornu_op_transpose(x, axes);
    return cornu__reshaped(x, order->count, extents);
}

/* Batch letters (in both and the result), then a's own, contracted, b's own: one matmul. */
static CornuTensor *contracted(CornuTensor *a, Term *ta, CornuTensor *b, Term *tb,
                               const Term *result, Term *to)
{
    Term    batch = { .count = 0 }, left = batch, inner = batch, right = batch;
    int64_t sizes[4] = { 1, 1, 1, 1 }, extents[CORNU_MAX_RANK];
    a = summed(a, ta, tb, result);
    b = summed(b, tb, ta, result);
    for (int i = 0; i < ta->count; i++) {
        const char letter = ta->letters[i];
        const int  other = find(tb, letter);
        Term      *put = other < 0 ? &left : find(result, letter) >= 0 ? &batch : &inner;
        int64_t    extent = cornu__extent_of(a, i);
        if (other >= 0 && extent != cornu__extent_of(b, other)) {
            /* One of them is 1: broadcast. */
            CornuTensor **narrow = extent == 1 ? &a : &b;
            const int     axis = extent == 1 ? i : other;
            if (!*narrow) return NULL;
            CornuShape    shape = cornu_tensor_shape(*narrow);
            if (extent == 1) extent = cornu__extent_of(b, other);
            shape.extent[axis] = extent;
            *narrow = cornu_op_broadcast(*narrow, shape);
        }
        put->letters[put->count++] = letter;
        sizes[put == &batch ? 0 : put == &left ? 1 : 2] *= extent;
    }
    for (int i = 0; i < tb->count; i++)
        if (find(ta, tb->letters[i]) < 0) {
            right.letters[right.count++] = tb->letters[i];
            sizes[3] *= cornu__extent_of(b, i);
        }
    if (batch.count + left.count + inner.count > CORNU_MAX_RANK ||
        batch.count + right.count + inner.count > CORNU_MAX_RANK ||
        batch.count + left.count + right.count > CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a term of over 8 indices");
    Term order_a = batch, order_b = batch;
    *to = batch;
    for (int i = 0; i < left.count; i++) {
        order_a.letters[order_a.count++] = left.letters[i];
        to->letters[to->count++] = left.letters[i];
    }
    for (int i = 0; i < inner.count; i++) {
        order_a.letters[order_a.count++] = inner.letters[i];
        order_b.letters[order_b.count++] = inner.letters[i];
    }
    for (int i = 0; i < right.count; i++) {
        order_b.letters[order_b.count++] = right.letters[i];
        to->letters[to->count++] = right.letters[i];
    }
    for (int i = 0; i < to->count; i++) {
        const int from = find(ta, to->letters[i]);
        extents[i] = from >= 0 ? cornu__extent_of(a, from)
                               : cornu__extent_of(b, find(tb, to->letters[i]));
    }
    a = ordered(a, ta, &order_a);
    b = ordered(b, tb, &order_b);
    a = cornu__reshaped(a, 3, (const int64_t[]){ sizes[0], sizes[1], sizes[2] });
    b = cornu__reshaped(b, 3, (const int64_t[]){ sizes[0], sizes[2], sizes[3] });
    return cornu__reshaped(product(a, b), to->count, extents);
}

static CornuStatus read_einsum(CornuReadStep *step)
{
    enum { MOST = 16 };
    const char *at = cornu__word(step, "equation", "");
    const char *arrow = strstr(at, "->");
    Term        terms[MOST], result = { .count = 0 };
    CornuTensor *x[MOST];
    int          dots = 0;
    if (step->in_count < 1 || step->in_count > MOST)
        return cornu__fail(CORNU_ERR_FORMAT, "%d operands, expected 1 to %d", step->in_count, MOST);
    for (int i = 0; i < step->in_count; i++) {
        if (!(x[i] = cornu__operand_of(step, i))) return cornu_error_take();
        if (i > 0 && *at++ != ',') return cornu__fail(CORNU_ERR_FORMAT, "the equation has %d terms",
                                                      i);
        CORNU__TRY(read_term(&at, cornu__rank_of(x[i]), &terms[i]));
        for (int k = 0; k < terms[i].count; k++)
            if (terms[i].letters[k] >= '0' && terms[i].letters[k] <= '9' &&
                terms[i].letters[k] - '0' + 1 > dots)
                dots = terms[i].letters[k] - '0' + 1;
    }
    if (*at && at != arrow) return cornu__fail(CORNU_ERR_FORMAT, "the equation has more terms");
    if (arrow) {
        int written = 0;
        at = arrow + 2;
        for (const char *c = at; *c; c++) written += *c != ' ' && *c != '.';
        CORNU__TRY(read_term(&at, strchr(arrow, '.') ? written + dots : written, &result));
    } else {
        /* Letters that stand once, in alphabetical order, after the ellipsis. */
        for (int i = dots - 1; i >= 0; i--) result.letters[result.count++] = (char)('0' + i);
        for (int letter = 'A'; letter <= 'z'; letter++) {
            int uses = 0;
            for (int i = 0; i < step->in_count; i++)
                for (int k = 0; k < terms[i].count; k++) uses += terms[i].letters[k] == letter;
            if (uses == 1 && result.count < CORNU_MAX_RANK)
                result.letters[result.count++] = (char)letter;
        }
    }
    for (int i = 0; i < step->in_count; i++) x[i] = diagonals(x[i], &terms[i]);
    for (int i = 1; i < step->in_count; i++) {
        Term keep = result, to;
        for (int n = i + 1; n < step->in_count; n++)
            for (int k = 0; k < terms[n].count; k++)
                if (find(&keep, terms[n].letters[k]) < 0 && keep.count < CORNU_MAX_RANK)
                    keep.letters[keep.count++] = terms[n].letters[k];
        x[0] = contracted(x[0], &terms[0], x[i], &terms[i], &keep, &to);
        terms[0] = to;
    }
    x[0] = summed(x[0], &terms[0], NULL, &result);
    return cornu__result(step, 0, ordered(x[0], &terms[0], &result));
}

const CornuReadRow cornu__read_products[] = {
    { "Einsum", read_einsum, .operands = 0 }, { "Gemm", read_gemm, .operands = 2 },
    { "MatMul", read_matmul, .operands = 2 },
    { 0 },
};
