/* broadcast and reduce_sum: each is the gradient of the other. */
#include "../tensor_internal.h"

/* NumPy's rule: axes aligned at the right, a missing axis or one of extent 1 is broadcast. */
static bool broadcast_shape(CornuShape a, CornuShape b, CornuShape *out)
{
    *out = (CornuShape){ .rank = a.rank > b.rank ? a.rank : b.rank };
    for (int i = 1; i <= out->rank; i++) {
        int64_t of_a = i <= a.rank ? a.extent[a.rank - i] : 1;
        int64_t of_b = i <= b.rank ? b.extent[b.rank - i] : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1) return false;
        out->extent[out->rank - i] = of_a == 1 ? of_b : of_a;
    }
    return true;
}

bool cornu__broadcast_operands(CornuOpId id, CornuTensor **x, int count)
{
    CornuShape shape = { 0 };
    CornuText  a, b;
    for (int i = 0; i < count; i++) {
        if (!x[i]) {
            cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand %d is NULL", cornu_op_name(id), i);
            return false;
        }
        CornuShape before = shape;
        if (!broadcast_shape(before, cornu_tensor_shape(x[i]), &shape)) {
            const char *scope = cornu__scope(x[i]->graph);
            cornu__fail_null(CORNU_ERR_SHAPE,
                             "%s%s%s: shapes %s and %s cannot be broadcast together",
                             scope, *scope ? ": " : "", cornu_op_name(id),
                             cornu_shape_print(&a, before),
                             cornu_shape_print(&b, cornu_tensor_shape(x[i])));
            return false;
        }
    }
    for (int i = 0; i < count; i++)
        if (!(x[i] = cornu_op_broadcast(x[i], shape))) return false;
    return true;
}

CornuTensor *cornu_op_broadcast(CornuTensor *x, CornuShape shape)
{
    if (x && cornu_shape_equal(cornu_tensor_shape(x), shape)) return x;
    CornuAttributes attributes = cornu__shape_attributes(shape);
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(CORNU_OP_BROADCAST, &attributes, &x, 1, out);
}

/* The sum over the axes that were broadcast, converted to the dtype of the gradient first, so that
 * the sum itself is not rounded. */
static void broadcast_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    CornuShape from = cornu_tensor_shape(op->in[0]), to = cornu_tensor_shape(d[0]);
    int64_t    axes = 0;
    for (int i = 0; i < to.rank; i++) {
        int of_x = i - (to.rank - from.rank);
        if (of_x < 0 || from.extent[of_x] != to.extent[i]) axes |= INT64_C(1) << i;
    }
    CornuTensor *terms = cornu_op_convert(d[0], cornu__gradient_dtype(op->in[0]));
    d_x[0] = cornu_op_reshape(cornu_op_reduce_sum(terms, axes, true), from);
}
CornuGradient *const cornu__broadcast_gradient = broadcast_gradient;

CornuTensor *cornu__reduce(CornuOpId id, CornuTensor *x, int64_t axes, bool keep)
{
    if (!x) return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand 0 is NULL", cornu_op_name(id));
    int rank = cornu_tensor_shape(x).rank;
    if (axes == CORNU_ALL_AXES) axes = (INT64_C(1) << rank) - 1;
    if (axes == 0) return x;
    CornuAttributes attributes = { .reduce = { .axes = axes, .keep = keep } };
    CornuTensor    *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, &attributes, &x, 1, out);
}

CornuTensor *cornu_op_reduce_sum(CornuTensor *x, int64_t axes, bool keep)
{
    return cornu__reduce(CORNU_OP_REDUCE_SUM, x, axes, keep);
}

CornuTensor *cornu__broadcast_reduced(const CornuRecorded *op, CornuTensor *reduced)
{
    CornuShape x = cornu_tensor_shape(op->in[0]), kept = x;
    for (int i = 0; i < kept.rank; i++)
        if (op->attributes->reduce.axes >> i & 1) kept.extent[i] = 1;
    return cornu_op_broadcast(cornu_op_reshape(reduced, kept), x);
}

static void reduce_sum_gradient(const CornuRecorded *op, CornuTensor *const *d, CornuTensor **d_x)
{
    d_x[0] = cornu_op_convert(cornu__broadcast_reduced(op, d[0]),
                              cornu_tensor_type(op->in[0]).dtype);
}
CornuGradient *const cornu__reduce_sum_gradient = reduce_sum_gradient;

