/* Lookup of rows, and its gradient. */
#include "../../integer_internal.h"
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

static void emit_gather(CornuEmitter *e, const CornuEmitCall *call)
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
CornuEmit *const cornu__gather_stablehlo = emit_gather;

/* Rows are added to zeros; on GPUs in any order. */
static CornuName scattered(CornuEmitter *e, CornuName indices, CornuName d_y, CornuHloType table)
{
    const int       rank = cornu__hlo_of(e, indices).shape.rank;
    const CornuName in[3] = { cornu__hlo_constant(e, table, 0.0), indices, d_y };
    const CornuName y = cornu__begin(e, "scatter", table, in, 3);
    cornu__hlo_reducer(e, "add", table.element);
    cornu__write(e, " {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [%d], "
                 "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                 "index_vector_dim = %d>, indices_are_sorted = false, unique_indices = false}",
                 rank, rank);
    cornu__end(e, y, in, 3);
    return y;
}

/* The product of which row each index names, as ones among zeros, and the rows. */
static CornuName multiplied(CornuEmitter *e, CornuName indices, CornuName d_y, CornuHloType table)
{
    static const int axes[] = { 0 };
    const int64_t count = cornu_shape_count(cornu__hlo_of(e, indices).shape);
    const int64_t rows = table.shape.extent[0], columns = table.shape.extent[1];
    const CornuHloType numbers = { PJRT_S32, cornu_shape(count, rows) };
    indices = cornu__hlo_reshape(e, cornu__hlo_convert(e, indices, PJRT_S32), cornu_shape(count));
    const CornuName is_named = cornu__hlo_compare(
        e, cornu__hlo_broadcast(e, indices, numbers.shape, axes), "EQ",
        cornu__hlo_iota(e, numbers, 1));
    const CornuName in[2] = { cornu__hlo_convert(e, is_named, table.element),
                              cornu__hlo_reshape(e, d_y, cornu_shape(count, columns)) };
    const CornuName y = cornu__begin(e, "dot_general", table, in, 2);
    cornu__write(e, " {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], "
                 "rhs_contracting_dimensions = [0]>, ");
    cornu__hlo_precision(e, CORNU_PRECISION_HIGHEST);
    cornu__write(e, "}");
    cornu__end(e, y, in, 2);
    return y;
}

/* Where a sum must not depend on who comes first, it is a product as long as its ones and zeros are
 * no more than this, half a gigabyte; else XLA makes a loop over the indices, which takes seconds
 * for 100,000 of them. */
enum { MOST_ONES = 1 << 27 };

/* The rows of d_y are summed in f32 at least, then rounded to the dtype of the result. */
static void gather_grad(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuType    out = call->out_type[0];
    const bool         wide = out.dtype == CORNU_F64 || call->op.in[0].dtype == CORNU_F64;
    const CornuHloType type = cornu__hlo_as(cornu__hlo_type(out), wide ? PJRT_F64 : PJRT_F32);
    const int64_t      rows = out.shape.extent[0];
    const int64_t      padded = call->op.attributes->gather_grad.padded;
    CornuName indices = call->in[1], d_y = cornu__hlo_convert(e, call->in[0], type.element);
    if (padded) {
        const CornuName is_padding = padding(e, call->in[1], padded, rows, &indices);
        d_y = zeroed(e, is_padding, d_y);
    }
    cornu__hlo_check(e, call, "index", indices, rows);
    const int64_t   count = cornu_shape_count(call->op.in[1].shape);
    const bool      multiplies = e->target.deterministic && rows <= MOST_ONES / larger(1, count);
    const CornuName table = (multiplies ? multiplied : scattered)(e, indices, d_y, type);
    call->out[0] = cornu__hlo_convert(e, table, cornu__pjrt_type(out.dtype));
}
CornuEmit *const cornu__gather_grad_stablehlo = gather_grad;
