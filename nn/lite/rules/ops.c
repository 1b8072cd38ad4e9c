/* Ops as LiteRT operators: recorded_internal.h. */
#include "recorded_internal.h"

#include "../../formats/reorder_internal.h"

#include <math.h>
#include <string.h>

typedef CornuLiteOp Op;

static CornuShape out_shape(const Op *op) { return cornu__lite_value_shape(op->program, op->out); }

/* ---- Elementwise ---- */

/* A constant that broadcasts to a tensor of this rank, with the axes of that in another order. */
static int turned_constant(CornuLite *to, int x, int rank, const int *order)
{
    const CornuLiteTensor tensor = to->graph->tensors[x];
    CornuShape            wide = { .rank = rank }, shape = { .rank = rank };
    for (int i = 0; i < rank; i++) {
        const int from = i - (rank - tensor.shape.rank);
        wide.extent[i] = from < 0 ? 1 : tensor.shape.extent[from];
    }
    for (int i = 0; i < rank; i++) shape.extent[i] = wide.extent[order[i]];
    const int made = cornu__lite_add_constant(to->graph, tensor.name, tensor.dtype, shape, NULL);
    if (made >= 0)
        cornu__reorder(to->graph->tensors[x].data, wide, cornu__lite_dtype_size(tensor.dtype),
                       order, to->graph->tensors[made].data);
    return made;
}

/* Operands of an elementwise operator as they lie: where all that are not constants are transposes
 * by one order, what they are of, and the order; else themselves, and false. */
static bool lying(CornuLite *to, int *in, int count, int order[CORNU_MAX_RANK])
{
    int own[CORNU_MAX_RANK], back[CORNU_MAX_RANK], source[3], rank = 0;
    for (int i = 0; i < count; i++) {
        if (in[i] < 0) return false;
        if (to->graph->tensors[in[i]].data) continue;
        source[i] = cornu__lite_source(to, in[i], own);
        if (source[i] < 0 || (rank && (rank != shape_of(to, in[i]).rank ||
                                       memcmp(own, order, (size_t)rank * sizeof *own))))
            return false;
        rank = shape_of(to, in[i]).rank;
        memcpy(order, own, sizeof own);
    }
    for (int i = 0; i < count; i++)
        if (to->graph->tensors[in[i]].data && shape_of(to, in[i]).rank > rank) return false;
    if (!rank) return false;
    for (int i = 0; i < rank; i++) back[order[i]] = i;
    for (int i = 0; i < count; i++) {
        if (!to->graph->tensors[in[i]].data) in[i] = source[i];
        else if (cornu_shape_count(shape_of(to, in[i])) > 1)
            in[i] = turned_constant(to, in[i], rank, back);
    }
    return true;
}

static int join(CornuLite *to, CornuLiteCode code, const int *operands, int count,
                CornuLiteDtype dtype, const CornuLiteOptions *options)
{
    int        in[3], order[CORNU_MAX_RANK];
    CornuShape shape = { 0 };
    memcpy(in, operands, (size_t)count * sizeof *in);
    const bool turned = lying(to, in, count, order);
    for (int i = 0; i < count; i++) shape = cornu__lite_joined(shape, shape_of(to, in[i]));
    const int y = cornu__lite_node_of(to, code, in, count, dtype, shape, options);
    return turned ? cornu__lite_turn(to, y, order) : y;
}

/* Along how many axes LiteRT's kernels broadcast; with more, some of them end the process. */
static int most_axes(CornuLiteCode code)
{
    switch (code) {
    case CORNU_LITE_EQUAL:
    case CORNU_LITE_NOT_EQUAL:
    case CORNU_LITE_LESS:
    case CORNU_LITE_LESS_EQUAL:
    case CORNU_LITE_GREATER:
    case CORNU_LITE_GREATER_EQUAL:
    case CORNU_LITE_LOGICAL_AND:
    case CORNU_LITE_LOGICAL_OR:
    case CORNU_LITE_POW:       return 4;
    case CORNU_LITE_SELECT_V2: return 5;
    default:                   return CORNU_MAX_RANK;
    }
}

static CornuStatus elementwise(const Op *op, CornuLiteCode code)
{
    int        in[3];
    const bool whole = out_shape(op).rank > most_axes(code);
    for (int i = 0; i < op->op->in_count; i++)
        if (whole) CORNU__TRY(cornu__lite_full(op, i, &in[i]));
        else in[i] = cornu__lite_small(op, i);
    const CornuLiteDtype dtype = cornu__lite_kept(cornu__lite_value_dtype(op, op->out));
    return cornu__lite_op_give(op, join(op->to, code, in, op->op->in_count, dtype, NULL));
}

#define ELEMENTWISE(name, code) \
    static CornuStatus name(const Op *op) { return elementwise(op, CORNU_LITE_##code); }
ELEMENTWISE(negative, NEG)
ELEMENTWISE(absolute, ABS)
ELEMENTWISE(sign, SIGN)
ELEMENTWISE(round_down, FLOOR)
ELEMENTWISE(exponential, EXP)
ELEMENTWISE(logarithm, LOG)
ELEMENTWISE(square_root, SQRT)
ELEMENTWISE(inverse_root, RSQRT)
ELEMENTWISE(sine, SIN)
ELEMENTWISE(cosine, COS)
ELEMENTWISE(hyperbolic_tangent, TANH)
ELEMENTWISE(sigmoid, LOGISTIC)
ELEMENTWISE(relu, RELU)
ELEMENTWISE(add, ADD)
ELEMENTWISE(subtract, SUB)
ELEMENTWISE(multiply, MUL)
ELEMENTWISE(maximum, MAXIMUM)
ELEMENTWISE(minimum, MINIMUM)
ELEMENTWISE(power, POW)
ELEMENTWISE(select_, SELECT_V2)
#undef ELEMENTWISE

/* Whether operand i is a constant that was computed from others. */
static bool is_computed(const Op *op, int i)
{
    const CornuProgram *program = op->program->program;
    CornuValue          value = op->in[i];
    int                 at = program->values[value].op;
    while (at >= 0 && program->ops[at].id == CORNU_OP_BROADCAST)
        at = program->values[cornu_program_operands(program, &program->ops[at])[0]].op;
    const int tensor = cornu__lite_small(op, i);
    return at >= 0 && program->ops[at].id != CORNU_OP_CONSTANT && tensor >= 0 &&
           op->to->graph->tensors[tensor].data;
}

/* What is divided by a deviation, as in normalization, is multiplied by its inverse, which
 * operators before it can take into their weights, and which 8 bits have an operator for. */
static CornuStatus divide(const Op *op)
{
    if (!is_computed(op, 1)) return elementwise(op, CORNU_LITE_DIV);
    const CornuLiteTensor by = op->to->graph->tensors[cornu__lite_small(op, 1)];
    int in[] = { cornu__lite_small(op, 0), 0 };
    in[1] = cornu__lite_room(op->to, "factors", by.shape);
    float *factors = cornu__lite_data(op->to, in[1]);
    for (int64_t i = 0; factors && i < cornu_shape_count(by.shape); i++)
        factors[i] = (float)(1.0 / (double)((const float *)by.data)[i]);
    return cornu__lite_op_give(op, join(op->to, CORNU_LITE_MUL, in, 2, CORNU_LITE_F32, NULL));
}

/* ---- Composed ---- */

static int unary(CornuLite *to, CornuLiteCode code, int x)
{
    return join(to, code, &x, 1, CORNU_LITE_F32, NULL);
}

static int binary(CornuLite *to, CornuLiteCode code, int a, int b)
{
    return join(to, code, (const int[]){ a, b }, 2, CORNU_LITE_F32, NULL);
}

static int with(CornuLite *to, CornuLiteCode code, int x, double value)
{
    return binary(to, code, x, cornu__lite_add_scalar(to->graph, (float)value));
}

static int as_type(CornuLite *to, int x, CornuLiteDtype dtype)
{
    const CornuLiteDtype from = x < 0 ? dtype : to->graph->tensors[x].dtype;
    if (from == dtype) return x;
    return join(to, CORNU_LITE_CAST, &x, 1, dtype,
                &(CornuLiteOptions){ .in_dtype = from, .out_dtype = dtype });
}

static CornuStatus bounded_relu(const Op *op)
{
    const double bound = op->attributes->bound.bound;
    if (bound == 6.0) return elementwise(op, CORNU_LITE_RELU6);
    const int x = unary(op->to, CORNU_LITE_RELU, cornu__lite_small(op, 0));
    return cornu__lite_op_give(op, with(op->to, CORNU_LITE_MINIMUM, x, bound));
}

/* x above 0, else alpha (exp(x) - 1) */
static CornuStatus elu(const Op *op)
{
    CornuLite   *to = op->to;
    const double alpha = op->attributes->alpha.alpha;
    if (alpha == 1.0) return elementwise(op, CORNU_LITE_ELU);
    const int x = cornu__lite_small(op, 0), high = unary(to, CORNU_LITE_RELU, x);
    const int low = with(to, CORNU_LITE_MUL, unary(to, CORNU_LITE_ELU,
                                                   with(to, CORNU_LITE_MINIMUM, x, 0.0)), alpha);
    return cornu__lite_op_give(op, binary(to, CORNU_LITE_ADD, high, low));
}

/* max(x, 0) + log(1 + exp(-|x|)) */
static CornuStatus softplus(const Op *op)
{
    CornuLite *to = op->to;
    const int  x = cornu__lite_small(op, 0), high = unary(to, CORNU_LITE_RELU, x);
    int        low = unary(to, CORNU_LITE_NEG, unary(to, CORNU_LITE_ABS, x));
    low = with(to, CORNU_LITE_ADD, unary(to, CORNU_LITE_EXP, low), 1.0);
    low = unary(to, CORNU_LITE_LOG, low);
    return cornu__lite_op_give(op, binary(to, CORNU_LITE_ADD, high, low));
}

/* 1 - (a1 t + … + a5 t^5) exp(-x^2), t = 1 / (1 + p |x|), with the sign of x; to 1.5e-7.
 * Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26. */
static CornuStatus error_function(const Op *op)
{
    static const double a[] = { 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429 };
    CornuLite *to = op->to;
    const int  x = cornu__lite_small(op, 0), size = unary(to, CORNU_LITE_ABS, x);
    int        t = with(to, CORNU_LITE_ADD, with(to, CORNU_LITE_MUL, size, 0.3275911), 1.0);
    t = binary(to, CORNU_LITE_DIV, cornu__lite_add_scalar(to->graph, 1.0f), t);
    int sum = with(to, CORNU_LITE_MUL, t, a[4]);
    for (int i = 3; i >= 0; i--)
        sum = binary(to, CORNU_LITE_MUL, with(to, CORNU_LITE_ADD, sum, a[i]), t);
    int fall = unary(to, CORNU_LITE_NEG, binary(to, CORNU_LITE_MUL, x, x));
    fall = binary(to, CORNU_LITE_MUL, sum, unary(to, CORNU_LITE_EXP, fall));
    const int y = binary(to, CORNU_LITE_SUB, cornu__lite_add_scalar(to->graph, 1.0f), fall);
    return cornu__lite_op_give(op, binary(to, CORNU_LITE_MUL, unary(to, CORNU_LITE_SIGN, x), y));
}

/* Compares x with 0, in one row where the axes are too many. */
static int against_zero(CornuLite *to, CornuLiteCode code, int x)
{
    const CornuShape shape = shape_of(to, x);
    const bool       many = shape.rank > most_axes(code);
    if (many) x = cornu__lite_reshape(to, x, cornu_shape(CORNU_NONE));
    const int in[] = { x, cornu__lite_add_scalar(to->graph, 0.0f) };
    const int y = join(to, code, in, 2, CORNU_LITE_BOOL, NULL);
    return many ? cornu__lite_reshape(to, y, shape) : y;
}

static CornuStatus step(const Op *op)
{
    const int y = against_zero(op->to, CORNU_LITE_GREATER, cornu__lite_small(op, 0));
    return cornu__lite_op_give(op, as_type(op->to, y, CORNU_LITE_F32));
}

static CornuStatus compare(const Op *op)
{
    static const CornuLiteCode codes[] = {
        [CORNU_EQUAL] = CORNU_LITE_EQUAL, [CORNU_NOT_EQUAL] = CORNU_LITE_NOT_EQUAL,
        [CORNU_LESS] = CORNU_LITE_LESS, [CORNU_LESS_EQUAL] = CORNU_LITE_LESS_EQUAL,
        [CORNU_GREATER] = CORNU_LITE_GREATER, [CORNU_GREATER_EQUAL] = CORNU_LITE_GREATER_EQUAL,
    };
    return elementwise(op, codes[op->attributes->compare.comparison]);
}

/* Neither infinite nor NaN, for which x - x is NaN. */
static CornuStatus is_finite(const Op *op)
{
    const int x = cornu__lite_small(op, 0), none = binary(op->to, CORNU_LITE_SUB, x, x);
    return cornu__lite_op_give(op, against_zero(op->to, CORNU_LITE_EQUAL, none));
}

static CornuStatus convert(const Op *op)
{
    const CornuLiteDtype dtype = cornu__lite_kept(cornu__lite_value_dtype(op, op->out));
    return cornu__lite_op_give(op, as_type(op->to, cornu__lite_small(op, 0), dtype));
}

/* ---- Sources, and what only repeats ---- */

static CornuStatus constant(const Op *op)
{
    const double         value = op->attributes->constant.value;
    const CornuLiteDtype kept = cornu__lite_kept(op->attributes->constant.dtype);
    const int32_t        whole = fabs(value) < 0x1p31 ? (int32_t)value : 0;
    const bool           flag = value != 0.0;
    const float          real = (float)value;
    if (op->program->worlds[1]->ops[op->number].attributes.constant.value != value)
        return cornu__lite_op_refuse(op, "of a number that depends on an open batch");
    return cornu__lite_op_give(op, cornu__lite_add_constant(
        op->to->graph, "scalar", kept, (CornuShape){ 0 },
        kept == CORNU_LITE_F32 ? (const void *)&real
        : kept == CORNU_LITE_I32 ? (const void *)&whole : (const void *)&flag));
}

/* Of extent 1 along all axes but its own. */
static CornuStatus iota(const Op *op)
{
    const CornuShape     own = out_shape(op);
    const int            axis = (int)op->attributes->iota.axis;
    const CornuLiteDtype kept = cornu__lite_kept(op->attributes->iota.dtype);
    CornuShape           shape = { .rank = own.rank };
    if (own.extent[axis] == CORNU_NONE) return cornu__lite_op_refuse(op, "along an open batch");
    for (int i = 0; i < own.rank; i++) shape.extent[i] = i == axis ? own.extent[i] : 1;
    const int made = cornu__lite_add_constant(op->to->graph, "numbers", kept, shape, NULL);
    for (int64_t i = 0; made >= 0 && i < own.extent[axis]; i++)
        cornu__lite_set(op->to->graph->tensors[made].data, kept, i, (double)i);
    return cornu__lite_op_give(op, made);
}

static CornuStatus broadcast(const Op *op)
{
    return cornu__lite_op_give(op, cornu__lite_small(op, 0));
}

/* ---- Shape ---- */

/* One open extent is inferred. */
static CornuStatus reshape(const Op *op)
{
    const CornuShape shape = out_shape(op);
    CornuLiteOptions options = { .extent_count = shape.rank };
    int              x, open = 0;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    if (cornu_shape_equal(shape_of(op->to, x), shape)) return cornu__lite_op_give(op, x);
    for (int i = 0; i < shape.rank; i++) {
        open += shape.extent[i] == CORNU_NONE;
        options.extents[i] = shape.extent[i] == CORNU_NONE ? -1 : (int32_t)shape.extent[i];
    }
    if (op->to->graph->tensors[x].data) {
        const CornuLiteTensor from = op->to->graph->tensors[x];
        const int made = cornu__lite_add_constant(op->to->graph, from.name, from.dtype, shape,
                                                  from.data);
        return cornu__lite_op_give(op, made);
    }
    int in[] = { x, 0 };
    if (open < 2) in[1] = cornu__lite_add_integers(op->to->graph, options.extents, shape.rank);
    else          CORNU__TRY(cornu__lite_extents(op, op->out, &in[1]));
    if (open > 1) options.extent_count = 0;
    return cornu__lite_op_give(op, cornu__lite_node_of(
        op->to, CORNU_LITE_RESHAPE, in, 2, cornu__lite_kept(cornu__lite_value_dtype(op, op->out)),
        shape, &options));
}

static CornuStatus transpose(const Op *op)
{
    int x, order[CORNU_MAX_RANK];
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    for (int i = 0; i < CORNU_MAX_RANK; i++)
        order[i] = (int)op->attributes->permutation.axes[i];
    return cornu__lite_op_give(op, cornu__lite_turn(op->to, x, order));
}

/* Of an open axis the whole alone, of which the masks say that begin and end are not looked at. */
static CornuStatus slice(const Op *op)
{
    const CornuAttributes_SLICE *at = &op->attributes->slice;
    const CornuShape             shape = out_shape(op);
    int32_t          begin[CORNU_MAX_RANK], end[CORNU_MAX_RANK], stride[CORNU_MAX_RANK];
    CornuLiteOptions options = { .begin_mask = 0 };
    int              in[4];
    CORNU__TRY(cornu__lite_full(op, 0, &in[0]));
    const CornuShape from = shape_of(op->to, in[0]);
    if (cornu_shape_equal(from, shape)) return cornu__lite_op_give(op, in[0]);
    if (shape.rank > 5) return cornu__lite_op_refuse(op, "whose slices have at most five axes");
    for (int i = 0; i < shape.rank; i++) {
        const bool open = from.extent[i] == CORNU_NONE;
        if (open && (shape.extent[i] != CORNU_NONE || at->starts[i]))
            return cornu__lite_op_refuse(op, "of an open batch");
        if (open) options.begin_mask = options.end_mask |= 1 << i;
        begin[i] = (int32_t)at->starts[i];
        end[i] = open ? 0 : (int32_t)(at->starts[i] + at->sizes[i]);
        stride[i] = 1;
    }
    in[1] = cornu__lite_add_integers(op->to->graph, begin, shape.rank);
    in[2] = cornu__lite_add_integers(op->to->graph, end, shape.rank);
    in[3] = cornu__lite_add_integers(op->to->graph, stride, shape.rank);
    return cornu__lite_op_give(op, cornu__lite_node_of(
        op->to, CORNU_LITE_STRIDED_SLICE, in, 4,
        cornu__lite_kept(cornu__lite_value_dtype(op, op->out)), shape, &options));
}

/* Rows that negative padding cuts off. */
static int cropped(const Op *op, int x, const CornuAttributes_PAD *at)
{
    CornuShape shape = shape_of(op->to, x);
    int32_t    begin[CORNU_MAX_RANK], size[CORNU_MAX_RANK];
    bool       cut = false;
    for (int i = 0; i < shape.rank; i++) {
        const int64_t low = at->low[i] < 0 ? -at->low[i] : 0;
        const int64_t high = at->high[i] < 0 ? -at->high[i] : 0;
        cut |= low || high;
        begin[i] = (int32_t)low;
        if (shape.extent[i] != CORNU_NONE) shape.extent[i] -= low + high;
        size[i] = shape.extent[i] == CORNU_NONE ? -1 : (int32_t)shape.extent[i];
    }
    if (!cut) return x;
    int in[] = { x, 0, 0 };
    in[1] = cornu__lite_add_integers(op->to->graph, begin, shape.rank);
    in[2] = cornu__lite_add_integers(op->to->graph, size, shape.rank);
    return cornu__lite_node_of(op->to, CORNU_LITE_SLICE, in, 3,
                               op->to->graph->tensors[x].dtype, shape, NULL);
}

static CornuStatus pad(const Op *op)
{
    const CornuAttributes_PAD *at = &op->attributes->pad;
    const CornuShape           shape = out_shape(op);
    const CornuLiteDtype       dtype = cornu__lite_kept(cornu__lite_value_dtype(op, op->out));
    int32_t                    pads[2 * CORNU_MAX_RANK];
    int                        in[3];
    bool                       any = false;
    CORNU__TRY(cornu__lite_full(op, 0, &in[0]));
    for (int i = 0; i < shape.rank; i++) {
        pads[2 * i] = at->low[i] > 0 ? (int32_t)at->low[i] : 0;
        pads[2 * i + 1] = at->high[i] > 0 ? (int32_t)at->high[i] : 0;
        any |= pads[2 * i] || pads[2 * i + 1];
        if (shape_of(op->to, in[0]).extent[i] == CORNU_NONE && (at->low[i] || at->high[i]))
            return cornu__lite_op_refuse(op, "of an open batch");
    }
    in[0] = cropped(op, in[0], at);
    if (!any) return cornu__lite_op_give(op, in[0]);
    if (dtype != CORNU_LITE_F32) return cornu__lite_op_refuse(op, "of integers or booleans");
    in[1] = cornu__lite_add_constant(op->to->graph, "paddings", CORNU_LITE_I32,
                                     cornu_shape(shape.rank, 2), pads);
    in[2] = at->value == 0.0 ? CORNU_LITE_NONE
                             : cornu__lite_add_scalar(op->to->graph, (float)at->value);
    return cornu__lite_op_give(op, at->value == 0.0
        ? cornu__lite_node(op->to, CORNU_LITE_PAD, in, 2, shape, NULL)
        : cornu__lite_node(op->to, CORNU_LITE_PADV2, in, 3, shape, NULL));
}

static CornuStatus concat(const Op *op)
{
    enum { MOST = 64 };
    const int count = op->op->in_count;
    int       in[MOST];
    if (count > MOST) return cornu__lite_op_refuse(op, "of more than 64 operands");
    for (int i = 0; i < count; i++) CORNU__TRY(cornu__lite_full(op, i, &in[i]));
    return cornu__lite_op_give(op, cornu__lite_node_of(
        op->to, CORNU_LITE_CONCATENATION, in, count,
        cornu__lite_kept(cornu__lite_value_dtype(op, op->out)), out_shape(op),
        &(CornuLiteOptions){ .axis = (int32_t)op->attributes->axis.axis }));
}

static CornuStatus flip(const Op *op)
{
    const int32_t axis = (int32_t)op->attributes->axis.axis;
    int           x;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    const int in[] = { x, cornu__lite_add_integers(op->to->graph, &axis, 1) };
    return cornu__lite_op_give(op, cornu__lite_node_of(
        op->to, CORNU_LITE_REVERSE_V2, in, 2,
        cornu__lite_kept(cornu__lite_value_dtype(op, op->out)), out_shape(op), NULL));
}

/* ---- Reductions ---- */

static CornuStatus reduce(const Op *op, CornuLiteCode code)
{
    const int64_t axes = op->attributes->reduce.axes;
    int           x;
    CORNU__TRY(cornu__lite_full(op, 0, &x));
    const int rank = shape_of(op->to, x).rank;
    if (!(axes & ((INT64_C(1) << rank) - 1))) return cornu__lite_op_give(op, x);
    if (cornu__lite_value_dtype(op, op->in[0]) == CORNU_BOOL)
        x = as_type(op->to, x, CORNU_LITE_F32);
    const CornuLiteDtype kept = cornu__lite_kept(cornu__lite_value_dtype(op, op->out));
    const CornuLiteDtype given = op->to->graph->tensors[x].dtype;
    x = cornu__lite_reduce(op->to, code, x, axes, op->attributes->reduce.keep);
    if (x >= 0) op->to->graph->tensors[x].dtype = given;
    return cornu__lite_op_give(op, as_type(op->to, x, kept));
}

static CornuStatus reduce_sum(const Op *op) { return reduce(op, CORNU_LITE_SUM); }
static CornuStatus reduce_max(const Op *op) { return reduce(op, CORNU_LITE_REDUCE_MAX); }

const CornuLiteOpRow cornu__lite_writers_ops[] = {
    { CORNU_OP_CONSTANT, constant },
    { CORNU_OP_IOTA, iota },
    { CORNU_OP_NEGATIVE, negative },
    { CORNU_OP_ABSOLUTE, absolute },
    { CORNU_OP_SIGN, sign },
    { CORNU_OP_FLOOR, round_down },
    { CORNU_OP_EXP, exponential },
    { CORNU_OP_LOG, logarithm },
    { CORNU_OP_SQRT, square_root },
    { CORNU_OP_RSQRT, inverse_root },
    { CORNU_OP_SIN, sine },
    { CORNU_OP_COS, cosine },
    { CORNU_OP_TANH, hyperbolic_tangent },
    { CORNU_OP_SIGMOID, sigmoid },
    { CORNU_OP_ERF, error_function },
    { CORNU_OP_SOFTPLUS, softplus },
    { CORNU_OP_RELU, relu },
    { CORNU_OP_ELU, elu },
    { CORNU_OP_STEP, step },
    { CORNU_OP_BOUNDED_RELU, bounded_relu },
    { CORNU_OP_ADD, add },
    { CORNU_OP_SUBTRACT, subtract },
    { CORNU_OP_MULTIPLY, multiply },
    { CORNU_OP_DIVIDE, divide },
    { CORNU_OP_MAXIMUM, maximum },
    { CORNU_OP_MINIMUM, minimum },
    { CORNU_OP_POWER, power },
    { CORNU_OP_COMPARE, compare },
    { CORNU_OP_IS_FINITE, is_finite },
    { CORNU_OP_SELECT, select_ },
    { CORNU_OP_CONVERT, convert },
    { CORNU_OP_BROADCAST, broadcast },
    { CORNU_OP_RESHAPE, reshape },
    { CORNU_OP_TRANSPOSE, transpose },
    { CORNU_OP_SLICE, slice },
    { CORNU_OP_PAD, pad },
    { CORNU_OP_CONCAT, concat },
    { CORNU_OP_FLIP, flip },
    { CORNU_OP_REDUCE_SUM, reduce_sum },
    { CORNU_OP_REDUCE_MAX, reduce_max },
    { 0 },
};
