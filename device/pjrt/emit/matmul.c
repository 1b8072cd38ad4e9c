/* matmul as dot_general. Unless the device has a lesser precision, products of f32 are exact to f32
 * on every platform; those of bf16 and f16 are summed in f32. */
#include "emit.h"

static void matmul(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuAttributes_MATMUL *matmul = &call->op.attributes->matmul;
    const CornuShape              a = call->op.in[0].shape, b = call->op.in[1].shape;
    CornuName      in[2] = { call->in[0], call->in[1] };
    const PjrtType sums = cornu__hlo_factors(e, call, in);

    /* Axes of the result: the batches that both have, the others of a, the others of b. */
    const int    shared = a.rank > 2 && b.rank > 2 ? a.rank - 2 : 0;
    const int    in_a = a.rank - (matmul->transpose_a ? 2 : 1);
    const int    in_b = b.rank - (matmul->transpose_b ? 1 : 2);
    CornuHloType type = { .element = sums };
    int64_t      batches[CORNU_MAX_RANK];
    for (int i = 0; i < shared; i++) batches[i] = i;
    for (int i = 0; i < a.rank; i++)
        if (i != in_a) type.shape.extent[type.shape.rank++] = a.extent[i];
    for (int i = shared; i < b.rank; i++)
        if (i != in_b) type.shape.extent[type.shape.rank++] = b.extent[i];
    const CornuName product = cornu__begin(e, "dot_general", type, in, 2);
    cornu__write(e, " {dot_dimension_numbers = #stablehlo.dot<");
    for (int side = 0; side < 2 && shared; side++) {
        cornu__write(e, side ? "rhs_batching_dimensions = [" : "lhs_batching_dimensions = [");
        for (int i = 0; i < shared; i++)
            cornu__write(e, "%s%lld", i ? ", " : "", (long long)batches[i]);
        cornu__write(e, "], ");
    }
    cornu__write(e, "lhs_contracting_dimensions = [%d], rhs_contracting_dimensions = [%d]>, ",
                 in_a, in_b);
    cornu__hlo_precision(e, e->target.precision);
    cornu__write(e, "}");
    cornu__end(e, product, in, 2);

    /* Where b alone has batches, they come after the rows of a. */
    CornuName y = product;
    if (a.rank == 2 && b.rank > 2) {
        int64_t axes[CORNU_MAX_RANK] = { 0 };
        for (int i = 0; i < b.rank - 2; i++) axes[i] = i + 1;
        axes[b.rank - 2] = 0;
        axes[b.rank - 1] = b.rank - 1;
        y = cornu__hlo_transpose(e, y, axes);
    }
    call->out[0] = cornu__hlo_convert(e, y, cornu__pjrt_type(call->out_type[0].dtype));
}
CornuEmit *const cornu__matmul_stablehlo = matmul;
