/*
 * matmul: y[.., m, n] = sum over k of a[.., m, k] b[.., k, n].
 *   a (.., M, K), with transpose_a (.., K, M)    b (.., K, N), with transpose_b (.., N, K)
 *   y (.., M, N) of the attribute's dtype, a float; a and b of the same float dtype
 * The leading axes are equal, or absent in one of the two, which then takes part in every product.
 * Summed in f32, or in f64 if an operand or the result is f64.
 *
 * resample: y[o, t, i] = sum over k of m[t, k] x[o, k, i], k along the attribute's axis of x.
 *   x (.., K, ..), m (T, K) of the same float dtype    y (.., T, ..) of that dtype
 * Terms of zeros before the first other number of a row of m, and after the last one, may be left
 * out, also where x is infinite or NaN: an interpolation of two neighbours costs two terms.
 */
#include "rules.h"
#include "build.h"

typedef struct { int64_t batch, m, k, n; } Product;

/* Rows and columns of an operand in the product. */
static void matrix_of(CornuShape shape, bool transposed, int64_t *rows, int64_t *columns)
{
    int64_t first = shape.extent[shape.rank - 2], last = shape.extent[shape.rank - 1];
    *rows = transposed ? last : first;
    *columns = transposed ? first : last;
}

static Product product_of(const CornuOpCall *call)
{
    const CornuAttributes_MATMUL *matmul = &call->attributes->matmul;
    CornuShape                    a = call->in[0].shape, b = call->in[1].shape;
    Product                       product = { .batch = 1 };
    matrix_of(a, matmul->transpose_a, &product.m, &product.k);
    matrix_of(b, matmul->transpose_b, &product.k, &product.n);
    CornuShape wider = a.rank >= b.rank ? a : b;
    for (int i = 0; i < wider.rank - 2; i++) product.batch *= wider.extent[i];
    return product;
}

static CornuStatus matmul_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_MATMUL *matmul = &call->attributes->matmul;
    CornuShape                    a = call->in[0].shape, b = call->in[1].shape;
    CORNU__TRY(cornu__expect_float(call, 0, "a b"));
    if (call->in[0].dtype != call->in[1].dtype)
        return cornu__refuse(call, CORNU_ERR_DTYPE, "a b", "a and b must have the same dtype");
    if (!cornu_dtype_is_float(matmul->dtype))
        return cornu__refuse(call, CORNU_ERR_DTYPE, "a b", "result dtype is %s, expected a float",
                             cornu_dtype_name(matmul->dtype));
    if (a.rank < 2 || b.rank < 2)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "a b", "expected rank 2 or more for both");
    if (a.rank > 2 && b.rank > 2) {
        bool equal = a.rank == b.rank;
        for (int i = 0; i < a.rank - 2 && equal; i++) equal = a.extent[i] == b.extent[i];
        if (!equal)
            return cornu__refuse(call, CORNU_ERR_SHAPE, "a b",
                                 "the axes before the last two must be equal");
    }
    int64_t rows, columns, inner_a, inner_b;
    matrix_of(a, matmul->transpose_a, &rows, &inner_a);
    matrix_of(b, matmul->transpose_b, &inner_b, &columns);
    if (inner_a != inner_b)
        return cornu__refuse(call, CORNU_ERR_SHAPE, "a b",
                             "the inner extents are %lld and %lld, expected the same",
                             (long long)inner_a, (long long)inner_b);
    out[0] = cornu_type_from(matmul->dtype, a.rank >= b.rank ? a : b);
    out[0].shape.extent[out[0].shape.rank - 2] = rows;
    out[0].shape.extent[out[0].shape.rank - 1] = columns;
    return CORNU_OK;
}

static int64_t matmul_flops(const CornuOpCall *call)
{
    Product product = product_of(call);
    return cornu__flops(5, (const int64_t[]){ 2, product.batch, product.m, product.k, product.n });
}

static CornuStatus matmul_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_MATMUL *matmul = &call->op.attributes->matmul;
    Product                       p = product_of(&call->op);
    int64_t step_a = call->op.in[0].shape.rank > 2 ? p.m * p.k : 0;
    int64_t step_b = call->op.in[1].shape.rank > 2 ? p.k * p.n : 0;
    for (int64_t i = 0; i < p.batch; i++) {
        const double *a = call->in[0] + i * step_a, *b = call->in[1] + i * step_b;
        double       *y = call->out[0] + i * p.m * p.n;
        for (int64_t m = 0; m < p.m; m++)
            for (int64_t n = 0; n < p.n; n++) {
                double sum = 0.0;
                for (int64_t k = 0; k < p.k; k++)
                    sum += (matmul->transpose_a ? a[k * p.m + m] : a[m * p.k + k]) *
                           (matmul->transpose_b ? b[n * p.k + k] : b[k * p.n + n]);
                y[m * p.n + n] = sum;
            }
    }
    return CORNU_OK;
}

const CornuOpRules cornu__matmul_rules = {
    matmul_type, matmul_flops, CORNU_PRIMITIVE, matmul_reference,
};

/* ---- resample ---- */

/* The extents before the axis, along it, and after it. */
static void around_axis(const CornuOpCall *call, int64_t around[3])
{
    const CornuShape x = call->in[0].shape;
    const int        axis = (int)call->attributes->axis.axis;
    around[0] = around[1] = around[2] = 1;
    for (int i = 0; i < x.rank; i++) around[i < axis ? 0 : i == axis ? 1 : 2] *= x.extent[i];
}

static CornuStatus resample_type(const CornuOpCall *call, CornuType *out)
{
    static const char names[] = "x matrix";
    const CornuShape  x = call->in[0].shape, m = call->in[1].shape;
    const int64_t     axis = call->attributes->axis.axis;
    CORNU__TRY(cornu__expect_float(call, 0, names));
    CORNU__TRY(cornu__expect_dtype(call, 1, call->in[0].dtype, names));
    CORNU__TRY(cornu__expect_rank(call, 1, 2, names));
    if (axis < 0 || axis >= x.rank)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "axis is %lld, expected 0 to %d",
                             (long long)axis, x.rank - 1);
    if (m.extent[1] != x.extent[axis])
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "axis %lld of x has %lld elements, a "
                             "row of the matrix %lld, expected the same", (long long)axis,
                             (long long)x.extent[axis], (long long)m.extent[1]);
    out[0] = call->in[0];
    out[0].shape.extent[axis] = m.extent[0];
    return CORNU_OK;
}

/* Of the product that it is, zeros included. */
static int64_t resample_flops(const CornuOpCall *call)
{
    int64_t around[3];
    around_axis(call, around);
    return cornu__flops(5, (const int64_t[]){ 2, around[0], around[1], around[2],
                                              call->in[1].shape.extent[0] });
}

/* A product with the matrix, on the right where the axis is the last one. */
static CornuStatus resample_decompose(CornuProgram *program, const CornuOpCall *call,
                                      const CornuValue *in, CornuValue *out)
{
    CornuBuilder    b = { program, CORNU_OK };
    CornuShape      shape = call->in[0].shape;
    int64_t         around[3];
    CornuAttributes product = { .matmul = { .dtype = call->in[0].dtype } };
    around_axis(call, around);
    shape.extent[call->attributes->axis.axis] = call->in[1].shape.extent[0];
    if (around[2] == 1) {
        CornuValue rows = cornu__build_reshape(&b, in[0], cornu_shape(around[0], around[1]));
        product.matmul.transpose_b = true;
        rows = cornu__build(&b, CORNU_OP_MATMUL, &product, (CornuValue[]){ rows, in[1] }, 2);
        out[0] = cornu__build_reshape(&b, rows, shape);
    } else {
        CornuValue x = cornu__build_reshape(&b, in[0],
                                            cornu_shape(around[0], around[1], around[2]));
        x = cornu__build(&b, CORNU_OP_MATMUL, &product, (CornuValue[]){ in[1], x }, 2);
        out[0] = cornu__build_reshape(&b, x, shape);
    }
    return b.status;
}

static CornuStatus resample_reference(const CornuReferenceCall *call)
{
    const int64_t T = call->op.in[1].shape.extent[0];
    int64_t       around[3];
    around_axis(&call->op, around);
    const int64_t K = around[1], I = around[2];
    for (int64_t o = 0; o < around[0]; o++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t i = 0; i < I; i++) {
                double sum = 0.0;
                for (int64_t k = 0; k < K; k++)
                    if (call->in[1][t * K + k] != 0.0)
                        sum += call->in[1][t * K + k] * call->in[0][(o * K + k) * I + i];
                call->out[0][(o * T + t) * I + i] = sum;
            }
    return CORNU_OK;
}

const CornuOpRules cornu__resample_rules = {
    resample_type, resample_flops, resample_decompose, resample_reference,
};
