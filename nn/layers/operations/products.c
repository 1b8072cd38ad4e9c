/* Operations with products of matrices. */
#include "operation_internal.h"

#include <ctype.h>
#include <string.h>

/* The leading axes of two operands of matmul, broadcast to each other. */
static bool broadcast_leading(CornuTensor **a, CornuTensor **b)
{
    CornuShape x = cornu_tensor_shape(*a), y = cornu_tensor_shape(*b);
    if (x.rank == 2 || y.rank == 2) return true;   /* absent in one of them */
    const int  rank = x.rank > y.rank ? x.rank : y.rank;
    CornuShape of_a = { .rank = rank }, of_b = { .rank = rank };
    for (int i = 0; i < rank; i++) {
        const int     xi = i - (rank - x.rank), yi = i - (rank - y.rank);
        const int64_t m = xi < 0 ? 1 : x.extent[xi], n = yi < 0 ? 1 : y.extent[yi];
        const bool    leads = i < rank - 2;
        of_a.extent[i] = leads && m == 1 ? n : m;
        of_b.extent[i] = leads && n == 1 ? m : n;
    }
    if (!cornu_shape_equal(of_a, x)) *a = cornu__broadcast_to(*a, of_a);
    if (!cornu_shape_equal(of_b, y)) *b = cornu__broadcast_to(*b, of_b);
    return *a && *b;
}

/* As numpy.matmul: a vector is a row on the left and a column on the right. */
static CornuTensor *multiplied(CornuTensor *a, CornuTensor *b)
{
    if (!a || !b) return NULL;
    const CornuDtype dtype = cornu_tensor_type(a).dtype;
    const bool       row = cornu_tensor_shape(a).rank == 1;
    const bool       column = cornu_tensor_shape(b).rank == 1;
    /* Whole numbers of 32 bits are exact in f64. */
    if (!cornu_dtype_is_float(dtype)) {
        a = cornu_op_convert(a, CORNU_F64);
        b = cornu_op_convert(b, CORNU_F64);
    }
    if (row) a = cornu__add_axis(a, 0);
    if (column) b = cornu__add_axis(b, 1);
    if (!a || !b || !broadcast_leading(&a, &b)) return NULL;
    CornuTensor *y = cornu_op_convert(cornu_op_matmul(a, b), dtype);
    if (y && column) y = cornu__drop_axis(y, cornu_tensor_shape(y).rank - 1);
    if (y && row) y = cornu__drop_axis(y, cornu_tensor_shape(y).rank - (column ? 1 : 2));
    return y;
}

CornuTensor *cornu__operation_matmul(const CornuOperands *o)
{
    CornuTensor *a, *b;
    return cornu__operand_pair(o, false, &a, &b) ? multiplied(a, b) : NULL;
}

/* numpy.dot: the last axis of a with the last but one of b, whose other axes follow those of a. */
CornuTensor *cornu__operation_dot(const CornuOperands *o)
{
    CornuTensor *a, *b;
    if (!cornu__operand_pair(o, false, &a, &b)) return NULL;
    const int m = cornu_tensor_shape(a).rank, n = cornu_tensor_shape(b).rank;
    if (m == 0 || n == 0) return cornu_op_multiply(a, b);
    if (n <= 2) return multiplied(a, b);
    const CornuShape of_a = cornu_tensor_shape(a), of_b = cornu_tensor_shape(b);
    const int64_t    summed = of_b.extent[n - 2];
    CornuShape       result = { .rank = m + n - 2 };
    if (result.rank > CORNU_MAX_RANK)
        return cornu__operation_refuse(o, "its result has too many axes");
    for (int i = 0; i < m - 1; i++) result.extent[i] = of_a.extent[i];
    for (int i = 0; i < n - 2; i++) result.extent[m - 1 + i] = of_b.extent[i];
    result.extent[result.rank - 1] = of_b.extent[n - 1];
    b = cornu_op_reshape(cornu__move_axis(b, n - 2, 0),
                         cornu_shape(summed, cornu_shape_count(of_b) / summed));
    return b ? cornu_op_reshape(multiplied(a, b), result) : NULL;
}

/* ---- einsum ---- */

enum { LETTERS = 26 };

/* The axes of an operand or of the result, one letter each. */
typedef struct {
    int  count;
    char letter[CORNU_MAX_RANK + 1];
} Term;

static bool has(const Term *term, char letter)
{
    return memchr(term->letter, letter, (size_t)term->count) != NULL;
}

/* Reads letters up to a comma, an arrow or the end; "..." becomes the capital letters that stand
 * for `rank` axes. */
static const char *read_term(const char *text, int rank, Term *term)
{
    int letters = 0;
    for (const char *c = text; *c && *c != ',' && *c != '-'; c++)
        letters += isalpha((unsigned char)*c) != 0;
    term->count = 0;
    for (; *text && *text != ',' && *text != '-'; text++) {
        if (!strncmp(text, "...", 3)) {
            for (int i = letters; i < rank && term->count < CORNU_MAX_RANK; i++)
                term->letter[term->count++] = (char)('A' + LETTERS - (rank - i));
            text += 2;
        } else if (islower((unsigned char)*text) && term->count < CORNU_MAX_RANK) {
            term->letter[term->count++] = *text;
        } else if (*text != ' ') {
            return NULL;
        }
    }
    return text;
}

/* x with the axes in the order of the letters, each of which it has once. */
static CornuTensor *ordered(CornuTensor *x, const Term *from, const char *letters, int count)
{
    int  axes[CORNU_MAX_RANK];
    bool same = true;
    for (int i = 0; i < count; i++) {
        axes[i] = (int)((const char *)memchr(from->letter, letters[i], (size_t)from->count) -
                        from->letter);
        same &= axes[i] == i;
    }
    return same ? x : cornu_op_transpose(x, axes);
}

/* Sums the axes that only this operand has. */
static CornuTensor *sum_own(CornuTensor *x, Term *term, const Term *other, const Term *out)
{
    int64_t axes = 0;
    int     count = 0;
    for (int i = 0; i < term->count; i++) {
        const char letter = term->letter[i];
        if (!has(out, letter) && !(other && has(other, letter))) axes |= INT64_C(1) << i;
        else term->letter[count++] = letter;
    }
    term->count = count;
    return axes ? cornu_op_reduce_sum(x, axes, false) : x;
}

static int64_t extent_of(CornuShape shape, const Term *term, char letter)
{
    return shape.extent[(const char *)memchr(term->letter, letter, (size_t)term->count) -
                        term->letter];
}

/* One product of matrices: letters of both and of the result are the batch, those of both alone are
 * summed, the others are rows and columns. */
static CornuTensor *contract(CornuTensor *a, CornuTensor *b, Term *in_a, Term *in_b,
                             const Term *out)
{
    char letters[4][CORNU_MAX_RANK + 1];   /* batch, rows, columns, summed */
    int  count[4] = { 0 };
    a = sum_own(a, in_a, in_b, out);
    b = sum_own(b, in_b, in_a, out);
    if (!a || !b) return NULL;
    for (int i = 0; i < in_a->count; i++) {
        const char letter = in_a->letter[i];
        const int  of = !has(in_b, letter) ? 1 : has(out, letter) ? 0 : 3;
        letters[of][count[of]++] = letter;
    }
    for (int i = 0; i < in_b->count; i++)
        if (!has(in_a, in_b->letter[i])) letters[2][count[2]++] = in_b->letter[i];
    const CornuShape of_a = cornu_tensor_shape(a), of_b = cornu_tensor_shape(b);
    int64_t          extent[4] = { 1, 1, 1, 1 };
    CornuShape       result = { .rank = 0 };
    Term             made = { .count = 0 };
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < count[k]; i++) {
            const char    letter = letters[k][i];
            const int64_t n = k == 2 ? extent_of(of_b, in_b, letter)
                                     : extent_of(of_a, in_a, letter);
            extent[k] *= n;
            if (k == 3) continue;
            if (result.rank == CORNU_MAX_RANK)
                return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "einsum: its result has too many "
                                        "axes");
            result.extent[result.rank++] = n;
            made.letter[made.count++] = letter;
        }
    char order[2 * CORNU_MAX_RANK];
    int  n = 0;
    for (int i = 0; i < count[0]; i++) order[n++] = letters[0][i];
    for (int i = 0; i < count[1]; i++) order[n++] = letters[1][i];
    for (int i = 0; i < count[3]; i++) order[n++] = letters[3][i];
    a = cornu_op_reshape(ordered(a, in_a, order, n), cornu_shape(extent[0], extent[1], extent[3]));
    n = count[0];
    for (int i = 0; i < count[3]; i++) order[n++] = letters[3][i];
    for (int i = 0; i < count[2]; i++) order[n++] = letters[2][i];
    b = cornu_op_reshape(ordered(b, in_b, order, n), cornu_shape(extent[0], extent[3], extent[2]));
    if (!a || !b) return NULL;
    CornuTensor *y = cornu_op_reshape(cornu_op_matmul(a, b), result);
    return y ? ordered(y, &made, out->letter, out->count) : NULL;
}

CornuTensor *cornu__operation_einsum(const CornuOperands *o)
{
    const char  *text = cornu__argument_text(o, "subscripts", "");
    const int    count = (int)json_array_size(o->args);
    CornuOperand operands[2];
    CornuTensor *x[2];
    Term         terms[2] = { { 0 } }, out;
    int          ellipsis = 0;
    if (count < 1 || count > 2)
        return cornu__operation_refuse(o, "expected one or two tensors");
    for (int i = 0; i < count; i++)
        if (!cornu__operand(o, "", i, &operands[i])) return NULL;
    if (!cornu__operands_join(o, operands, count, false, x)) return NULL;
    for (int i = 0; i < count && text; i++) {
        const int rank = cornu_tensor_shape(x[i]).rank;
        text = read_term(text, rank, &terms[i]);
        if (!text || terms[i].count != rank || *text != (i + 1 < count ? ',' : '-'))
            return cornu__operation_refuse(o, "its subscripts do not fit the tensors, or have no "
                                           "->");
        text++;
        for (int k = 0; k < rank; k++) {
            int own = 0;
            for (int l = 0; l < k; l++) own += terms[i].letter[l] == terms[i].letter[k];
            if (own) return cornu__operation_refuse(o, "a subscript is repeated in one tensor");
        }
        int capitals = 0;
        for (int k = 0; k < rank; k++) capitals += isupper((unsigned char)terms[i].letter[k]) != 0;
        if (capitals > ellipsis) ellipsis = capitals;
    }
    if (*text == '>') text++;
    int letters = 0;
    for (const char *c = text; *c; c++) letters += islower((unsigned char)*c) != 0;
    if (!read_term(text, letters + ellipsis, &out))
        return cornu__operation_refuse(o, "its subscripts are not understood");
    for (int k = 0; k < out.count; k++)
        if (!has(&terms[0], out.letter[k]) && !(count == 2 && has(&terms[1], out.letter[k])))
            return cornu__operation_refuse(o, "a subscript of the result is in no tensor");
    if (count == 2) return contract(x[0], x[1], &terms[0], &terms[1], &out);
    CornuTensor *y = sum_own(x[0], &terms[0], NULL, &out);
    return y ? ordered(y, &terms[0], out.letter, out.count) : NULL;
}
