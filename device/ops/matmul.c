/*
 * matmul: y[.., m, n] = sum over k of a[.., m, k] b[.., k, n].
 *   a (.., M, K), with transpose_a (.., K, M)    b (.., K, N), with transpose_b (.., N, K)
 *   y (.., M, N) of the attribute's dtype, a float; a and b of the same float dtype
 * The leading axes are equal, or absent in one of the two, which then takes part in every product.
 * Summed in f32, or in f64 if an operand or the result is f64.
 */
#include "rules.h"

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
