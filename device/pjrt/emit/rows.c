/* The distinct rows that were looked up, and their replacement. */
#include "emit.h"

/* Numbers (N) in ascending order. */
static CornuName sorted(CornuEmitter *e, CornuName x)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    const CornuName    y = cornu__begin(e, "sort", type, &x, 1);
    CornuName          in[2];
    cornu__hlo_region(e, type.element, in);
    cornu__hlo_region_end(e, cornu__hlo_compare(e, in[0], "LT", in[1]));
    cornu__write(e, " {dimension = 0 : i64, is_stable = false}");
    cornu__end(e, y, &x, 1);
    return y;
}

/* x (N) moved up by `by` places, zeros before it. */
static CornuName moved(CornuEmitter *e, CornuName x, int64_t by)
{
    const int64_t low[1] = { by }, high[1] = { -by };
    return cornu__hlo_pad(e, x, 0.0, low, high, NULL);
}

/* The sums of x (N) up to and with each element: of 2, 4, 8, … elements. */
static CornuName running_sum(CornuEmitter *e, CornuName x)
{
    const int64_t count = cornu__hlo_of(e, x).shape.extent[0];
    for (int64_t by = 1; by < count; by *= 2) x = cornu__hlo2(e, "add", x, moved(e, x, by));
    return x;
}

/* x with x[indices[i]] = values[i], numbers or, with columns, rows of that many. */
static CornuName replaced(CornuEmitter *e, CornuName x, CornuName indices, CornuName values,
                          bool rows)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    const CornuName    in[3] = { x, indices, values };
    const CornuName    y = cornu__begin(e, "scatter", type, in, 3);
    CornuName          pair[2];
    cornu__hlo_region(e, type.element, pair);
    cornu__hlo_region_end(e, pair[1]);
    cornu__write(e, " {scatter_dimension_numbers = #stablehlo.scatter<%s"
                 "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                 "index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}",
                 rows ? "update_window_dims = [1], " : "");
    cornu__end(e, y, in, 3);
    return y;
}

/* Each index is sorted together with its place, as index N + place. */
static void unique_rows(CornuEmitter *e, const CornuEmitCall *call)
{
    const int64_t      rows = call->op.attributes->rows.rows;
    const CornuHloType type = cornu__hlo_type(call->out_type[0]);
    const CornuHloType wide = cornu__hlo_as(type, PJRT_S64);
    const int64_t      count = type.shape.extent[0];
    cornu__hlo_check(e, call, "index", call->in[0], rows + 1);
    if (count == 0) {
        for (int i = 0; i < 2; i++) call->out[i] = cornu__hlo_constant(e, type, 0.0);
        return;
    }
    const CornuName n = cornu__hlo_integer(e, wide, count);
    const CornuName x = cornu__hlo_convert(e, call->in[0], PJRT_S64);
    const CornuName keys = sorted(e, cornu__hlo2(e, "add", cornu__hlo2(e, "multiply", x, n),
                                                 cornu__hlo_iota(e, wide, 0)));
    const CornuName index = cornu__hlo2(e, "divide", keys, n);
    const CornuName place = cornu__hlo_convert(e, cornu__hlo2(e, "remainder", keys, n), PJRT_S32);
    /* Of the first one, 0 stands before it in place of an index: it does not count. */
    const CornuName before = moved(e, index, 1);
    const CornuName is_first = cornu__hlo2(
        e, "and", cornu__hlo_compare(e, index, "NE", before),
        cornu__hlo_compare(e, cornu__hlo_iota(e, wide, 0), "NE", cornu__hlo_integer(e, wide, 0)));
    const CornuName rank = running_sum(e, cornu__hlo_convert(e, is_first, PJRT_S32));
    call->out[0] = replaced(e, cornu__hlo_integer(e, type, rows), rank,
                            cornu__hlo_convert(e, index, PJRT_S32), false);
    call->out[1] = replaced(e, cornu__hlo_integer(e, type, 0), place, rank, false);
}
CornuEmit *const cornu__unique_rows_stablehlo = unique_rows;

/* Indices beyond the table, among them those that are skipped, change nothing. */
static void scatter_rows(CornuEmitter *e, const CornuEmitCall *call)
{
    const int64_t rows = call->op.in[0].shape.extent[0];
    cornu__hlo_check(e, call, "index", call->in[1], rows + 1);
    call->out[0] = replaced(e, call->in[0], call->in[1], call->in[2], true);
}
CornuEmit *const cornu__scatter_rows_stablehlo = scatter_rows;
