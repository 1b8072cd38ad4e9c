/* Lookup of rows, and its gradient. */
#include "emit.h"

/* Which indices are of no row, of a table of `rows`, and the indices with 0 in their place. */
static CornuName padding(CornuEmitter *e, CornuName indices, int64_t padded, int64_t rows,
                         CornuName *others)
{
    if (cornu__hlo_of(e, indices).element == PJRT_U8)   /* which has no -1 to compare with */
        indices = cornu__hlo_convert(e, indices, PJRT_S32);
    const CornuHloType type = cornu__hlo_of(e, indices);
    const int64_t      none = padded == CORNU_PADDED_ABOVE ? rows : -1;
    const CornuName    is_padding = cornu__hlo_compare(e, indices, "EQ",
                                                       cornu__hlo_integer(e, type, none));
    *others = cornu__hlo_select(e, is_padding, cornu__hlo_integer(e, type, 0), indices);
    return is_padding;
}

/* x with zeros where the condition, which lacks x's last axis, is true. */
static CornuName zeroed(CornuEmitter *e, CornuName is_zero, CornuName x)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    int                axes[CORNU_MAX_RANK];
    for (int i = 0; i < CORNU_MAX_RANK; i++) axes[i] = i;
    return cornu__hlo_select(e, cornu__hlo_broadcast(e, is_zero, type.shape, axes),
                             cornu__hlo_constant(e, type, 0.0), x);
}

static void gather(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuShape table = call->op.in[0].shape, indices = call->op.in[1].shape;
    const int64_t    padded = call->op.attributes->gather.padded;
    CornuName        in[2] = { call->in[0], call->in[1] }, is_padding = 0;
    if (padded) is_padding = padding(e, call->in[1], padded, table.extent[0], &in[1]);
    cornu__hlo_check(e, call, "index", in[1], table.extent[0]);
    const CornuName y = cornu__begin(e, "gather", cornu__hlo_type(call->out_type[0]), in, 2);
    cornu__write(e, " {dimension_numbers = #stablehlo.gather<offset_dims = [%d], "
                 "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = %d>, "
                 "slice_sizes = array<i64: 1, %lld>, indices_are_sorted = false}", indices.rank,
                 indices.rank, (long long)table.extent[1]);
    cornu__end(e, y, in, 2);
    call->out[0] = padded ? zeroed(e, is_padding, y) : y;
}
CornuEmit *const cornu__gather_stablehlo = gather;

/* Rows are added to zeros, in f32 at least. */
static void gather_grad(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuType    out = call->out_type[0];
    const CornuShape   indices = call->op.in[1].shape;
    const bool         wide = out.dtype == CORNU_F64 || call->op.in[0].dtype == CORNU_F64;
    const CornuHloType type = cornu__hlo_as(cornu__hlo_type(out), wide ? PJRT_F64 : PJRT_F32);
    CornuName in[3] = { cornu__hlo_constant(e, type, 0.0), call->in[1],
                        cornu__hlo_convert(e, call->in[0], type.element) };
    const int64_t padded = call->op.attributes->gather_grad.padded;
    if (padded) {
        const CornuName is_padding = padding(e, call->in[1], padded, out.shape.extent[0], &in[1]);
        in[2] = zeroed(e, is_padding, in[2]);
    }
    cornu__hlo_check(e, call, "index", in[1], out.shape.extent[0]);
    const CornuName table = cornu__begin(e, "scatter", type, in, 3);
    cornu__hlo_reducer(e, "add", type.element);
    cornu__write(e, " {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [%d], "
                 "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                 "index_vector_dim = %d>, indices_are_sorted = false, unique_indices = false}",
                 indices.rank, indices.rank);
    cornu__end(e, table, in, 3);
    call->out[0] = cornu__hlo_convert(e, table, cornu__pjrt_type(out.dtype));
}
CornuEmit *const cornu__gather_grad_stablehlo = gather_grad;
