/* Operations of linear algebra on small matrices (…, n, n): the steps of elimination are recorded
 * one by one, so that n is at most 64. */
#include "operation_internal.h"

enum { MOST = 64 };

/* Its last two axes; false with a pending error unless they are square and small enough. */
static bool square(const CornuOperands *o, CornuTensor *x, int *rows, int64_t *n)
{
    if (!x) return false;
    const CornuShape shape = cornu_tensor_shape(x);
    *rows = shape.rank - 2;
    *n = shape.rank < 2 ? 0 : shape.extent[*rows];
    if (shape.rank >= 2 && *n == shape.extent[*rows + 1] && *n >= 1 && *n <= MOST) return true;
    cornu__operation_refuse(o, "expected square matrices of at most 64 rows");
    return false;
}

/* Element (i, j) as (…, 1, 1); row i as (…, 1, n); column j as (…, n, 1). */
static CornuTensor *row(CornuTensor *x, int rows, int64_t i)
{
    return cornu__slice_axis(x, rows, i, i + 1);
}

static CornuTensor *column(CornuTensor *x, int rows, int64_t j)
{
    return cornu__slice_axis(x, rows + 1, j, j + 1);
}

/* 0, 1, … of the rows, (n, 1). */
static CornuTensor *counted(CornuTensor *x, int64_t n)
{
    return cornu_op_iota(cornu_tensor_graph(x), cornu_type(CORNU_I32, n, 1), 0);
}

/* ---- Elimination with pivots ---- */

/* What eliminating the first n columns of (…, n, n + m) gives: the rest of it, and of the
 * determinant the sign and the logarithm of its size (…, 1, 1). */
typedef struct {
    CornuTensor *x, *sign, *log_size;
} Eliminated;

/* Brings the largest element of column k at or below row k to row k. */
static CornuTensor *pivoted(CornuTensor *x, int rows, int64_t n, int64_t k, CornuTensor **sign)
{
    CornuTensor *at = counted(x, n), *here = cornu__like(at, (double)k);
    CornuTensor *size = cornu_op_absolute(column(x, rows, k));
    size = size ? cornu_op_select(cornu_op_compare(at, CORNU_LESS, here), cornu__like(size, -1.0),
                                  size) : NULL;
    CornuTensor *best = size ? cornu__add_axis(cornu_op_argmax(size, rows), rows) : NULL;
    CornuTensor *is_best = cornu_op_compare(at, CORNU_EQUAL, best);
    CornuTensor *is_here = cornu_op_compare(at, CORNU_EQUAL, here);
    if (!is_best || !is_here) return NULL;
    CornuTensor *none = cornu__like(x, 0.0);
    CornuTensor *pivot = cornu_op_reduce_sum(cornu_op_select(is_best, x, none), INT64_C(1) << rows,
                                             true);
    CornuTensor *turn = cornu_op_compare(best, CORNU_EQUAL, cornu__like(best, (double)k));
    *sign = cornu_op_select(turn, *sign, cornu_op_negative(*sign));
    x = cornu_op_select(is_best, row(x, rows, k), x);
    return cornu_op_select(is_here, pivot, x);
}

static bool eliminate(CornuTensor *x, int rows, int64_t n, Eliminated *e)
{
    CornuTensor *one = cornu__like(column(row(x, rows, 0), rows, 0), 1.0);
    *e = (Eliminated){ x, one, one ? cornu__like(one, 0.0) : NULL };
    for (int64_t k = 0; k < n && e->x; k++) {
        CornuTensor *at = counted(x, n), *here = cornu__like(at, (double)k);
        x = pivoted(e->x, rows, n, k, &e->sign);
        CornuTensor *head = x ? column(row(x, rows, k), rows, k) : NULL;
        if (!head) return false;
        e->sign = cornu_op_multiply(e->sign, cornu_op_sign(head));
        e->log_size = cornu_op_add(e->log_size, cornu_op_log(cornu_op_absolute(head)));
        /* A singular matrix has a determinant of 0; what else is computed of it is infinite. */
        CornuTensor *pivot = cornu_op_divide(row(x, rows, k), head);
        CornuTensor *is_here = cornu_op_compare(at, CORNU_EQUAL, here);
        CornuTensor *factor = column(x, rows, k);
        x = cornu_op_subtract(x, cornu_op_multiply(factor, pivot));
        e->x = x && is_here ? cornu_op_select(is_here, pivot, x) : NULL;
    }
    return e->x && e->sign && e->log_size;
}

static CornuTensor *scalars(CornuTensor *x, int rows)
{
    return cornu__drop_axis(cornu__drop_axis(x, rows + 1), rows);
}

static bool determinant(const CornuOperands *o, Eliminated *e, int *rows)
{
    CornuTensor *x = cornu__operand_float(o);
    int64_t      n;
    return square(o, x, rows, &n) && eliminate(x, *rows, n, e);
}

CornuTensor *cornu__operation_det(const CornuOperands *o)
{
    Eliminated e;
    int        rows;
    if (!determinant(o, &e, &rows)) return NULL;
    CornuTensor *zero = cornu_op_compare(e.sign, CORNU_EQUAL, cornu__like(e.sign, 0.0));
    CornuTensor *size = cornu_op_exp(e.log_size);
    CornuTensor *y = cornu_op_multiply(e.sign, size);
    CornuTensor *odd = cornu_op_compare(e.sign, CORNU_NOT_EQUAL, e.sign);   /* after a pivot of 0 */
    y = cornu_op_select(odd, cornu__like(e.sign, 0.0), y);
    return scalars(cornu_op_select(zero, cornu__like(e.sign, 0.0), y), rows);
}

CornuTensor *cornu__operation_logdet(const CornuOperands *o)
{
    Eliminated e;
    int        rows;
    return determinant(o, &e, &rows) ? scalars(e.log_size, rows) : NULL;
}

CornuTensor *cornu__operation_slogdet(const CornuOperands *o)
{
    Eliminated e;
    int        rows;
    if (!determinant(o, &e, &rows)) return NULL;
    o->out[0] = scalars(e.sign, rows);
    o->out[1] = scalars(e.log_size, rows);
    return o->out[1] ? o->out[0] : NULL;
}

int cornu__operation_slogdet_count(const CornuOperands *o, CornuShape x)
{
    (void)o, (void)x;
    return 2;
}

/* a^-1 b, b (…, n, m) of the leading axes of a. */
static CornuTensor *solved(CornuTensor *a, CornuTensor *b, int rows, int64_t n)
{
    Eliminated   e;
    CornuTensor *both = a && b ? cornu_op_concat((CornuTensor *[]){ a, b }, 2, rows + 1) : NULL;
    if (!both || !eliminate(both, rows, n, &e)) return NULL;
    return cornu__slice_axis(e.x, rows + 1, n, cornu_tensor_shape(both).extent[rows + 1]);
}

/* The identity, of the shape of x. */
static CornuTensor *identity(CornuTensor *x, int64_t n)
{
    CornuTensor *i = counted(x, n);
    CornuTensor *j = cornu_op_iota(cornu_tensor_graph(x), cornu_type(CORNU_I32, 1, n), 1);
    CornuTensor *on = cornu_op_convert(cornu_op_compare(i, CORNU_EQUAL, j),
                                       cornu_tensor_type(x).dtype);
    return cornu__broadcast_to(on, cornu_tensor_shape(x));
}

CornuTensor *cornu__operation_inv(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    int          rows;
    int64_t      n;
    return square(o, x, &rows, &n) ? solved(x, identity(x, n), rows, n) : NULL;
}

/* Operands a and b, b with a last axis, which *vector says was added. */
static bool equations(const CornuOperands *o, CornuTensor **x, int *rows, int64_t *n, bool *vector)
{
    CornuOperand operands[2];
    if (!cornu__operand(o, "a", 0, &operands[0]) || !cornu__operand(o, "b", 1, &operands[1]) ||
        !cornu__operands_join(o, operands, 2, true, x) || !square(o, x[0], rows, n))
        return false;
    *vector = cornu_tensor_shape(x[1]).rank == *rows + 1;
    if (*vector) x[1] = cornu__add_axis(x[1], *rows + 1);
    if (!x[1]) return false;
    const CornuShape a = cornu_tensor_shape(x[0]), b = cornu_tensor_shape(x[1]);
    bool             fits = a.rank == b.rank;
    for (int i = 0; i <= *rows && fits; i++) fits = a.extent[i] == b.extent[i];
    if (!fits) cornu__operation_refuse(o, "expected right sides of as many rows as the matrices");
    return fits;
}

CornuTensor *cornu__operation_solve(const CornuOperands *o)
{
    CornuTensor *x[2];
    int          rows;
    int64_t      n;
    bool         vector;
    if (!equations(o, x, &rows, &n, &vector)) return NULL;
    CornuTensor *y = solved(x[0], x[1], rows, n);
    return vector ? cornu__drop_axis(y, rows + 1) : y;
}

/* ---- Triangles ---- */

/* From the first row on, or for an upper one from the last. */
CornuTensor *cornu__operation_solve_triangular(const CornuOperands *o)
{
    CornuTensor *x[2], *parts[MOST];
    int          rows;
    int64_t      n;
    bool         vector;
    const bool   lower = cornu__argument_flag(o, "lower");
    if (!equations(o, x, &rows, &n, &vector)) return NULL;
    for (int64_t step = 0; step < n; step++) {
        const int64_t k = lower ? step : n - 1 - step;
        CornuTensor  *of = column(x[0], rows, k), *head = row(of, rows, k);
        parts[k] = cornu_op_divide(row(x[1], rows, k), head);
        x[1] = cornu_op_subtract(x[1], cornu_op_multiply(of, parts[k]));
        if (!x[1]) return NULL;
    }
    CornuTensor *y = cornu_op_concat(parts, (int)n, rows);
    return vector ? cornu__drop_axis(y, rows + 1) : y;
}

static CornuTensor *turned(CornuTensor *x, int rows)
{
    return cornu__move_axis(x, rows, rows + 1);
}

/* Column by column: that of what is left, over the root of its first element. */
CornuTensor *cornu__operation_cholesky(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o), *parts[MOST];
    int          rows;
    int64_t      n;
    const bool   upper = cornu__argument_flag(o, "upper");
    if (!square(o, x, &rows, &n)) return NULL;
    for (int64_t k = 0; k < n && x; k++) {
        CornuTensor *at = counted(x, n), *of = column(x, rows, k);
        CornuTensor *part = cornu_op_divide(of, cornu_op_sqrt(row(of, rows, k)));
        CornuTensor *above = cornu_op_compare(at, CORNU_LESS, cornu__like(at, (double)k));
        part = part ? cornu_op_select(above, cornu__like(part, 0.0), part) : NULL;
        parts[k] = part;
        x = part ? cornu_op_subtract(x, cornu_op_multiply(part, turned(part, rows))) : NULL;
    }
    CornuTensor *y = x ? cornu_op_concat(parts, (int)n, rows + 1) : NULL;
    return y && upper ? turned(y, rows) : y;
}

/* (L L')^-1 of L, or of U = L'. */
CornuTensor *cornu__operation_cholesky_inverse(const CornuOperands *o)
{
    CornuTensor *x = cornu__operand_float(o);
    int          rows;
    int64_t      n;
    const bool   upper = cornu__argument_flag(o, "upper");
    if (!square(o, x, &rows, &n)) return NULL;
    CornuTensor *whole = cornu_op_matmul_transposed(x, upper, x, !upper);
    return whole ? solved(whole, identity(whole, n), rows, n) : NULL;
}
