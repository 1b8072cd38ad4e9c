/* Ops of StableHLO that rules are written with. */
#include <math.h>
#include <string.h>

#include "../../memory_internal.h"
#include "../../text/print.h"
#include "emit.h"

static CornuName plain(CornuEmitter *e, const char *op, CornuHloType type, const CornuName *in,
                       int in_count)
{
    const CornuName result = cornu__begin(e, op, type, in, in_count);
    cornu__end(e, result, in, in_count);
    return result;
}

CornuName cornu__hlo1(CornuEmitter *e, const char *op, CornuName x)
{
    return plain(e, op, cornu__hlo_of(e, x), &x, 1);
}

CornuName cornu__hlo2(CornuEmitter *e, const char *op, CornuName a, CornuName b)
{
    return plain(e, op, cornu__hlo_of(e, a), (CornuName[]){ a, b }, 2);
}

CornuName cornu__hlo_compare(CornuEmitter *e, CornuName a, const char *direction, CornuName b)
{
    const CornuName    in[2] = { a, b };
    const CornuHloType type = cornu__hlo_of(e, a);
    const bool  is_signed = type.element == PJRT_S32 || type.element == PJRT_S64;
    const char *kind = cornu__hlo_is_float(type.element) ? "FLOAT"
                     : is_signed ? "SIGNED" : "UNSIGNED";
    const CornuName result = cornu__begin(e, "compare", cornu__hlo_as(type, PJRT_PRED), in, 2);
    cornu__write(e, " {comparison_direction = #stablehlo<comparison_direction %s>, "
                 "compare_type = #stablehlo<comparison_type %s>}", direction, kind);
    cornu__end(e, result, in, 2);
    return result;
}

CornuName cornu__hlo_select(CornuEmitter *e, CornuName condition, CornuName a, CornuName b)
{
    return plain(e, "select", cornu__hlo_of(e, a), (CornuName[]){ condition, a, b }, 3);
}

/* ---- Constants ---- */

/* Of a float: in decimal, or as its bits if it is not finite. */
static void print_real(char *to, size_t size, PjrtType element, double value)
{
    if (isfinite(value)) {
        cornu__format(to, size, element == PJRT_F64 ? "%.16e" : "%.8e", value);
        return;
    }
    const char *bits[3] = { "0x7FC00000", "0x7F800000", "0xFF800000" };   /* NaN, inf, -inf: f32 */
    if (element == PJRT_F64)
        bits[0] = "0x7FF8000000000000", bits[1] = "0x7FF0000000000000",
        bits[2] = "0xFFF0000000000000";
    if (element == PJRT_BF16) bits[0] = "0x7FC0", bits[1] = "0x7F80", bits[2] = "0xFF80";
    if (element == PJRT_F16) bits[0] = "0x7E00", bits[1] = "0x7C00", bits[2] = "0xFC00";
    cornu__format(to, size, "%s", bits[isnan(value) ? 0 : value > 0.0 ? 1 : 2]);
}

static CornuName constant(CornuEmitter *e, CornuHloType type, const char *number)
{
    const CornuName result = cornu__begin(e, "constant", type, NULL, 0);
    cornu__write(e, " {value = dense<%s> : ", number);
    cornu__write_type(e, type);
    cornu__write(e, "}");
    cornu__end(e, result, NULL, 0);
    return result;
}

CornuName cornu__hlo_constant(CornuEmitter *e, CornuHloType type, double value)
{
    char number[40];
    if (type.element == PJRT_PRED) return constant(e, type, value != 0.0 ? "true" : "false");
    if (!cornu__hlo_is_float(type.element)) return cornu__hlo_integer(e, type, (int64_t)value);
    /* What a smaller float cannot hold is infinite in it. */
    if (type.element == PJRT_F32) value = (double)(float)value;
    if (type.element == PJRT_BF16)
        value = (double)cornu_bf16_to_float(cornu_bf16_from_float((float)value));
    if (type.element == PJRT_F16)
        value = (double)cornu_f16_to_float(cornu_f16_from_float((float)value));
    print_real(number, sizeof number, type.element, value);
    return constant(e, type, number);
}

CornuName cornu__hlo_integer(CornuEmitter *e, CornuHloType type, int64_t value)
{
    char number[40];
    cornu__format(number, sizeof number, "%lld", (long long)value);
    return constant(e, type, number);
}

CornuName cornu__hlo_iota(CornuEmitter *e, CornuHloType type, int axis)
{
    const CornuName result = cornu__begin(e, "iota", type, NULL, 0);
    cornu__write(e, " {iota_dimension = %d : i64}", axis);
    cornu__end(e, result, NULL, 0);
    return result;
}

/* ---- Shapes ---- */

CornuName cornu__hlo_convert(CornuEmitter *e, CornuName x, PjrtType element)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    return type.element == element ? x : plain(e, "convert", cornu__hlo_as(type, element), &x, 1);
}

CornuName cornu__hlo_reshape(CornuEmitter *e, CornuName x, CornuShape shape)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    if (cornu_shape_equal(type.shape, shape)) return x;
    return plain(e, "reshape", cornu__hlo_shaped(type, shape), &x, 1);
}

/* An attribute that is a list of integers. */
typedef struct {
    const char    *name;
    const int64_t *numbers;
    int            count;
} List;

/* One op with up to three such attributes: those with a name. */
static CornuName listed(CornuEmitter *e, const char *op, CornuHloType type, const CornuName *in,
                        int in_count, const List lists[3])
{
    const CornuName result = cornu__begin(e, op, type, in, in_count);
    for (int i = 0; i < 3 && lists[i].name; i++) {
        cornu__write(e, "%s%s = ", i ? ", " : " {", lists[i].name);
        cornu__write_array(e, lists[i].numbers, lists[i].count);
    }
    cornu__write(e, "}");
    cornu__end(e, result, in, in_count);
    return result;
}

CornuName cornu__hlo_broadcast(CornuEmitter *e, CornuName x, CornuShape shape, const int *axes)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    int64_t            to[CORNU_MAX_RANK];
    for (int i = 0; i < type.shape.rank; i++) to[i] = axes[i];
    return listed(e, "broadcast_in_dim", cornu__hlo_shaped(type, shape), &x, 1,
                  (List[3]){ { "broadcast_dimensions", to, type.shape.rank } });
}

CornuName cornu__hlo_repeat(CornuEmitter *e, CornuName scalar, CornuShape shape)
{
    static const int no_axes[1] = { 0 };
    return cornu__hlo_broadcast(e, scalar, shape, no_axes);
}

CornuName cornu__hlo_transpose(CornuEmitter *e, CornuName x, const int64_t *axes)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    CornuHloType       result = type;
    for (int i = 0; i < type.shape.rank; i++)
        result.shape.extent[i] = type.shape.extent[axes[i]];
    return listed(e, "transpose", result, &x, 1,
                  (List[3]){ { "permutation", axes, type.shape.rank } });
}

CornuName cornu__hlo_reverse(CornuEmitter *e, CornuName x, const int64_t *axes, int count)
{
    return listed(e, "reverse", cornu__hlo_of(e, x), &x, 1,
                  (List[3]){ { "dimensions", axes, count } });
}

CornuName cornu__hlo_slice(CornuEmitter *e, CornuName x, const int64_t *starts,
                           const int64_t *sizes, const int64_t *strides)
{
    CornuHloType type = cornu__hlo_of(e, x);
    const int    rank = type.shape.rank;
    int64_t      limits[CORNU_MAX_RANK], steps[CORNU_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        steps[i] = strides ? strides[i] : 1;
        limits[i] = sizes[i] ? starts[i] + (sizes[i] - 1) * steps[i] + 1 : starts[i];
        type.shape.extent[i] = sizes[i];
    }
    return listed(e, "slice", type, &x, 1,
                  (List[3]){ { "start_indices", starts, rank },
                             { "limit_indices", limits, rank }, { "strides", steps, rank } });
}

CornuName cornu__hlo_dynamic_slice(CornuEmitter *e, CornuName x, const CornuName *starts,
                                   const int64_t *sizes)
{
    CornuHloType type = cornu__hlo_of(e, x);
    const int    rank = type.shape.rank;
    CornuName    in[1 + CORNU_MAX_RANK] = { x };
    for (int i = 0; i < rank; i++) {
        in[1 + i] = starts[i];
        type.shape.extent[i] = sizes[i];
    }
    return listed(e, "dynamic_slice", type, in, 1 + rank,
                  (List[3]){ { "slice_sizes", sizes, rank } });
}

CornuName cornu__hlo_pad(CornuEmitter *e, CornuName x, double value, const int64_t *low,
                         const int64_t *high, const int64_t *interior)
{
    static const int64_t none[CORNU_MAX_RANK] = { 0 };
    CornuHloType         type = cornu__hlo_of(e, x);
    const int            rank = type.shape.rank;
    const CornuName      in[2] = { x, cornu__hlo_constant(e, cornu__hlo_scalar(type.element),
                                                          value) };
    if (!interior) interior = none;
    for (int i = 0; i < rank; i++) {
        int64_t *extent = &type.shape.extent[i];
        *extent += low[i] + high[i] + (*extent > 0 ? (*extent - 1) * interior[i] : 0);
    }
    return listed(e, "pad", type, in, 2,
                  (List[3]){ { "edge_padding_low", low, rank }, { "edge_padding_high", high, rank },
                             { "interior_padding", interior, rank } });
}

CornuName cornu__hlo_concat(CornuEmitter *e, const CornuName *x, int count, int axis)
{
    CornuHloType type = cornu__hlo_of(e, x[0]);
    for (int i = 1; i < count; i++)
        type.shape.extent[axis] += cornu__hlo_of(e, x[i]).shape.extent[axis];
    const CornuName result = cornu__begin(e, "concatenate", type, x, count);
    cornu__write(e, " {dimension = %d : i64}", axis);
    cornu__end(e, result, x, count);
    return result;
}

/* ---- Products ---- */

PjrtType cornu__hlo_factors(CornuEmitter *e, const CornuEmitCall *call, CornuName in[2])
{
    const bool     wide = call->op.in[0].dtype == CORNU_F64 || call->out_type[0].dtype == CORNU_F64;
    const PjrtType sums = wide ? PJRT_F64 : PJRT_F32;
    for (int i = 0; i < 2 && (wide || e->target.widens_products); i++)
        in[i] = cornu__hlo_convert(e, in[i], sums);
    return sums;
}

void cornu__hlo_precision(CornuEmitter *e, CornuPrecision precision)
{
    static const char *const names[] = { [CORNU_PRECISION_HIGHEST] = "HIGHEST",
                                         [CORNU_PRECISION_HIGH] = "HIGH",
                                         [CORNU_PRECISION_DEFAULT] = "DEFAULT" };
    cornu__write(e, "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]",
                 names[precision], names[precision]);
}

/* ---- Reductions ---- */

void cornu__hlo_region(CornuEmitter *e, PjrtType element, CornuName in[2])
{
    const CornuHloType scalar = cornu__hlo_scalar(element);
    for (int i = 0; i < 2; i++) in[i] = cornu__name(e, scalar);
    cornu__write(e, " ({\n");
    e->depth++;
    cornu__write(e, "^bb0(%%%d: ", in[0]);
    cornu__write_type(e, scalar);
    cornu__write(e, ", %%%d: ", in[1]);
    cornu__write_type(e, scalar);
    cornu__write(e, "):\n");
}

void cornu__hlo_region_end(CornuEmitter *e, CornuName result)
{
    cornu__write_return(e, "stablehlo.return", &result, 1);
    e->depth--;
    cornu__write(e, "})");
}

void cornu__hlo_reducer(CornuEmitter *e, const char *op, PjrtType element)
{
    CornuName in[2];
    cornu__hlo_region(e, element, in);
    cornu__hlo_region_end(e, cornu__hlo2(e, op, in[0], in[1]));
}

CornuName cornu__hlo_reduce(CornuEmitter *e, const char *op, CornuName x, int64_t axes,
                            double initial)
{
    const CornuHloType from = cornu__hlo_of(e, x);
    CornuHloType       type = cornu__hlo_scalar(from.element);
    int64_t            reduced[CORNU_MAX_RANK];
    int                count = 0;
    for (int i = 0; i < from.shape.rank; i++)
        if (axes >> i & 1) reduced[count++] = i;
        else type.shape.extent[type.shape.rank++] = from.shape.extent[i];
    if (count == 0) return x;
    const CornuName in[2] = { x, cornu__hlo_constant(e, cornu__hlo_scalar(from.element),
                                                     initial) };
    const CornuName result = cornu__begin(e, "reduce", type, in, 2);
    cornu__hlo_reducer(e, op, from.element);
    cornu__write(e, " {dimensions = ");
    cornu__write_array(e, reduced, count);
    cornu__write(e, "}");
    cornu__end(e, result, in, 2);
    return result;
}

CornuName cornu__hlo_window_sum(CornuEmitter *e, CornuName x, const int64_t size[2],
                                const int64_t strides[2], const int64_t low[2],
                                const int64_t high[2])
{
    CornuHloType    type = cornu__hlo_of(e, x);
    const CornuName in[2] = { x, cornu__hlo_constant(e, cornu__hlo_scalar(type.element), 0.0) };
    for (int i = 0; i < 2; i++) {
        int64_t *extent = &type.shape.extent[1 + i];
        *extent = (*extent + low[i] + high[i] - size[i]) / strides[i] + 1;
    }
    const CornuName result = cornu__begin(e, "reduce_window", type, in, 2);
    cornu__hlo_reducer(e, "add", type.element);
    cornu__write(e, " {window_dimensions = array<i64: 1, %lld, %lld, 1>, "
                 "window_strides = array<i64: 1, %lld, %lld, 1>, "
                 "padding = dense<[[0, 0], [%lld, %lld], [%lld, %lld], [0, 0]]> : "
                 "tensor<4x2xi64>}", (long long)size[0], (long long)size[1],
                 (long long)strides[0], (long long)strides[1], (long long)low[0],
                 (long long)high[0], (long long)low[1], (long long)high[1]);
    cornu__end(e, result, in, 2);
    return result;
}

/* ---- Checks ---- */

void cornu__hlo_check(CornuEmitter *e, const CornuEmitCall *call, const char *what, CornuName x,
                      int64_t limit)
{
    const CornuShape   shape = cornu__hlo_of(e, x).shape;
    const int64_t      rows = cornu_shape_count(shape);
    const CornuHloType list = { PJRT_S64, cornu_shape(rows) };
    CornuModule       *module = e->module;
    if (e->status != CORNU_OK || rows == 0) return;
    x = cornu__hlo_convert(e, cornu__hlo_reshape(e, x, list.shape), PJRT_S64);
    const CornuName row = cornu__hlo_iota(e, list, 0);
    const CornuName low = cornu__hlo_compare(e, x, "LT", cornu__hlo_integer(e, list, 0));
    const CornuName high = cornu__hlo_compare(e, x, "GE", cornu__hlo_integer(e, list, limit));
    const CornuName bad = cornu__hlo2(e, "or", low, high);
    const CornuName rows_of = cornu__hlo_select(e, bad, row, cornu__hlo_integer(e, list, rows));
    const CornuName first = cornu__hlo_reduce(e, "minimum", rows_of, 1, (double)rows);
    const CornuName every = cornu__hlo_repeat(e, first, list.shape);
    const CornuName there = cornu__hlo_compare(e, row, "EQ", every);
    const CornuName number = cornu__hlo_select(e, there, x, cornu__hlo_integer(e, list, 0));
    const CornuName pair[2] = {
        cornu__hlo_reshape(e, first, cornu_shape(1, 1)),
        cornu__hlo_reshape(e, cornu__hlo_reduce(e, "add", number, 1, 0.0), cornu_shape(1, 1)),
    };
    const CornuName both = cornu__hlo_concat(e, pair, 2, 1);
    if (e->status == CORNU_OK)
        e->status = cornu__reserve(&module->checks, &module->check_space, module->check_count, 1,
                                   sizeof *module->checks);
    if (e->status == CORNU_OK)
        e->status = cornu__reserve(&e->failed, &e->failed_space, module->check_count, 1,
                                   sizeof *e->failed);
    if (e->status != CORNU_OK) return;
    e->failed[module->check_count] = both;
    module->checks[module->check_count++] =
        (CornuCheck){ .what = what, .id = call->op.id, .rows = rows, .limit = limit,
                      .is_scalar = shape.rank == 0 };
}
