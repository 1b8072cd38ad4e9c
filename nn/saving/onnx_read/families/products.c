/* Products of matrices, and sums over indices. */
#include "../run_internal.h"

#include <string.h>

#include "../../../layers/einsum_internal.h"

/* MatMul broadcasts leading axes; operands of rank 1 are rows and columns. */
static CornuTensor *product(CornuTensor *a, CornuTensor *b)
{
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
    return cornu__result(step, 0, product(cornu__operand_of(step, 0), cornu__operand_of(step, 1)));
}

static CornuStatus read_gemm(CornuReadStep *step)
{
    CornuTensor *a = cornu__operand_of(step, 0), *b = cornu__operand_of(step, 1);
    CornuTensor *c = cornu__optional(step, 2);
    const double alpha = cornu__real(step, "alpha", 1.0), beta = cornu__real(step, "beta", 1.0);
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

/* x along the diagonal of axes i < k, which becomes axis i. */
static CornuTensor *diagonal(CornuTensor *x, int i, int k)
{
    const int    rank = cornu__rank_of(x);
    CornuGraph  *graph = cornu_tensor_graph(x);
    CornuTensor *a = cornu__count_along(graph, CORNU_I64, rank, i, cornu__extent_of(x, i));
    CornuTensor *b = cornu__count_along(graph, CORNU_I64, rank, k, cornu__extent_of(x, k));
    x = cornu_op_select(cornu_op_compare(a, CORNU_EQUAL, b), x, cornu_op_constant_like(x, 0.0));
    return cornu_op_reduce_sum(x, INT64_C(1) << k, false);
}

/* Passes over the letters of an operand in an equation, and copies them but for those that it has
 * twice: x becomes their diagonal. */
static CornuTensor *with_letters_once(CornuTensor *x, const char **from, char **to)
{
    char letters[CORNU_MAX_RANK];   /* of the axes; '.' of those that "..." stands for */
    int  elided = cornu__rank_of(x), axis = 0;
    for (const char *c = *from; *c && *c != ',' && *c != '-'; c++) elided -= *c != ' ' && *c != '.';
    for (; **from && **from != ',' && **from != '-'; ++*from) {
        const char  c = **from;
        const char *twin = c == '.' ? NULL : memchr(letters, c, (size_t)axis);
        if (twin && axis < cornu__rank_of(x)) {
            x = diagonal(x, (int)(twin - letters), axis);
            continue;
        }
        for (; c == '.' && elided > 0 && axis < CORNU_MAX_RANK; elided--) letters[axis++] = '.';
        if (c != '.' && c != ' ' && axis < CORNU_MAX_RANK) letters[axis++] = c;
        *(*to)++ = c;
    }
    return x;
}

static CornuStatus read_einsum(CornuReadStep *step)
{
    CornuTensor *x[CORNU_EINSUM_OPERANDS];
    const char  *from = cornu__word(step, "equation", "");
    char        *equation = cornu__arena_text(step->run->arena, from, strlen(from)), *to = equation;
    const int    count = step->in_count;
    if (!equation) return CORNU_ERR_MEMORY;
    if (count > CORNU_EINSUM_OPERANDS)
        return cornu__fail(CORNU_ERR_FORMAT, "%d operands, expected 1 to %d", count,
                           CORNU_EINSUM_OPERANDS);
    const CornuDtype dtype = cornu__dtype_of(cornu__operand_of(step, 0));
    const CornuDtype exact = cornu_dtype_is_float(dtype) ? dtype : CORNU_F64;
    for (int i = 0; i < count; i++) {
        x[i] = with_letters_once(cornu_op_convert(cornu__operand_of(step, i), exact), &from, &to);
        if (*from == ',') *to++ = *from++;
    }
    memmove(to, from, strlen(from) + 1);   /* the result */
    return cornu__result(step, 0,
                         cornu_op_convert(cornu__einsum(equation, x, count, exact), dtype));
}

const CornuReadRow cornu__read_products[] = {
    { "Einsum", read_einsum, .operands = 1 }, { "Gemm", read_gemm, .operands = 2 },
    { "MatMul", read_matmul, .operands = 2 },
    { 0 },
};
