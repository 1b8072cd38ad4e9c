/* Ops as ONNX nodes. Operands of elementwise ops may be small, others are in full shape. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../../device/program_internal.h"

#include <math.h>
#include <string.h>

typedef CornuOnnxOp Op;

static CornuType type_of(const Op *op, CornuValue value)
{
    return op->program->program->values[value].type;
}

static int full(const Op *op, int i) { return cornu__onnx_operand(op, i); }

static CornuStatus give(const Op *op, int value) { return cornu__onnx_give(op, value); }
static CornuStatus keep(const Op *op, int value) { return cornu__onnx_keep(op, value); }

/* The attributes of the op in another world. */
static const CornuAttributes *in_world(const Op *op, int world)
{
    return &op->program->worlds[world]->ops[op->number].attributes;
}

static CornuStatus refuse(const Op *op, const char *why) { return cornu__onnx_refuse_op(op, why); }
static CornuStatus refuse_batch(const Op *op) { return cornu__onnx_refuse_open(op); }

/* ---- Sources, and what only repeats ---- */

static int typed_scalar(CornuOnnx *to, CornuDtype dtype, double value)
{
    const bool    flag = value != 0;
    const int64_t whole = cornu_dtype_is_float(dtype) ? 0 : (int64_t)value;
    if (dtype == CORNU_BOOL)
        return cornu__onnx_constant(to, cornu_array_from((void *)&flag, cornu_scalar(dtype)));
    if (cornu_dtype_is_float(dtype)) return cornu__onnx_scalar(to, value);
    return cornu__onnx_constant(to, cornu_array_from((void *)&whole, cornu_scalar(CORNU_I64)));
}

/* A number that depends on an open extent: is the extent, or its inverse, as in means. 0 if it is
 * neither. */
static int open_number(const Op *op, CornuType type)
{
    int64_t extents[2][CORNU_ONNX_WORLDS], extent = 0;
    bool    is_extent = true, is_inverse = true;
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) {
        const double value = in_world(op, w)->constant.value;
        extents[0][w] = fabs(value) < 1e9 ? llround(value) : 0;
        extents[1][w] = fabs(value) > 1e-9 ? llround(1 / value) : 0;
        is_extent &= (double)extents[0][w] == value;
        is_inverse &= fabs((double)extents[1][w] * value - 1) < 1e-6;
    }
    if (is_extent || is_inverse) extent = cornu__onnx_extent(op->to, extents[!is_extent]);
    if (!extent || !cornu_dtype_is_float(type.dtype) > is_extent) return CORNU_ONNX_NONE;
    const int64_t axis = 0;
    int y = joined(op->to, "Squeeze", cornu__onnx_vector(op->to, &extent, 1),
                   cornu__onnx_integers(op->to, &axis, 1));
    if (cornu_dtype_is_float(type.dtype)) y = cast(op->to, y, CORNU_ONNX_FLOAT);
    return is_extent ? y : one(op->to, "Reciprocal", y);
}

static CornuStatus constant(const Op *op)
{
    const CornuType type = type_of(op, op->out);
    bool            same = true;
    for (int w = 1; w < CORNU_ONNX_WORLDS; w++)
        same &= in_world(op, w)->constant.value == op->attributes->constant.value;
    if (!same) {
        const int number = open_number(op, type);
        if (!number) return refuse_batch(op);
        if (type.shape.rank == 0) return give(op, number);
        cornu__onnx_keep_small(op, number, (CornuShape){ 0 });
        return CORNU_OK;
    }
    const int       value = typed_scalar(op->to, type.dtype, op->attributes->constant.value);
    if (type.shape.rank == 0) return give(op, value);
    cornu__onnx_keep_small(op, value, (CornuShape){ 0 });
    return CORNU_OK;
}

/* Small: of extent 1 along all axes but its own. */
static CornuStatus iota(const Op *op)
{
    const CornuType type = type_of(op, op->out);
    const int       axis = (int)op->attributes->iota.axis;
    CornuShape      shape, kept = { .rank = type.shape.rank };
    if (!cornu__onnx_extents(op->program, op->out, &shape)) return refuse_batch(op);
    for (int i = 0; i < kept.rank; i++) kept.extent[i] = i == axis ? shape.extent[i] : 1;
    const int zero = typed_scalar(op->to, CORNU_I64, 0), one_ = typed_scalar(op->to, CORNU_I64, 1);
    const int64_t axes = 0;
    int count = cornu__onnx_vector(op->to, &shape.extent[axis], 1);
    count = joined(op->to, "Squeeze", count, cornu__onnx_integers(op->to, &axes, 1));
    int y = cornu__onnx_node(op->to, "Range", (const int[]){ zero, count, one_ }, 3, NULL, 0, 1);
    if (cornu_dtype_is_float(type.dtype)) y = cast(op->to, y, CORNU_ONNX_FLOAT);
    int64_t flat[CORNU_MAX_RANK];
    for (int i = 0; i < kept.rank; i++) flat[i] = i == axis ? -1 : 1;
    y = joined(op->to, "Reshape", y, cornu__onnx_integers(op->to, flat, kept.rank));
    cornu__onnx_keep_small(op, y, kept);
    return CORNU_OK;
}

/* Drawn by the runtime, by a generator and a seed of its own. */
static CornuStatus random_uniform(const Op *op)
{
    CornuShape shape;
    if (!cornu__onnx_extents(op->program, op->out, &shape)) return refuse_batch(op);
    const int extents = cornu__onnx_vector(op->to, shape.extent, shape.rank);
    const int in[] = { joined(op->to, "Expand", cornu__onnx_scalar(op->to, 0), extents) };
    return give(op, CORNU__ONNX_NODE(op->to, "RandomUniformLike", in,
                                     { .name = "dtype", .whole = CORNU_ONNX_FLOAT }));
}

static CornuStatus broadcast(const Op *op)
{
    const CornuValue x = op->in[0];
    CornuShape       shape;
    if (op->program->small[x]) {
        shape = op->program->extents[x];
    } else if (!cornu__onnx_extents(op->program, x, &shape)) {
        return refuse_batch(op);
    }
    cornu__onnx_keep_small(op, cornu__onnx_small(op->program, x), shape);
    return CORNU_OK;
}

/* ---- Elementwise ---- */

static int small(const Op *op, int i) { return cornu__onnx_small(op->program, op->in[i]); }

static CornuStatus elementwise(const Op *op, const char *operator,
                               const CornuOnnxAttribute *attributes, int attribute_count)
{
    return cornu__onnx_op_elementwise(op, operator, attributes, attribute_count);
}

#define ELEMENTWISE(name, operator) \
    static CornuStatus name(const Op *op) { return elementwise(op, operator, NULL, 0); }
ELEMENTWISE(negative, "Neg")
ELEMENTWISE(absolute, "Abs")
ELEMENTWISE(sign, "Sign")
ELEMENTWISE(round_down, "Floor")
ELEMENTWISE(exponential, "Exp")
ELEMENTWISE(logarithm, "Log")
ELEMENTWISE(square_root, "Sqrt")
ELEMENTWISE(sine, "Sin")
ELEMENTWISE(cosine, "Cos")
ELEMENTWISE(hyperbolic_tangent, "Tanh")
ELEMENTWISE(sigmoid, "Sigmoid")
ELEMENTWISE(error_function, "Erf")
ELEMENTWISE(softplus, "Softplus")
ELEMENTWISE(relu, "Relu")
ELEMENTWISE(add, "Add")
ELEMENTWISE(subtract, "Sub")
ELEMENTWISE(divide, "Div")
ELEMENTWISE(maximum, "Max")
ELEMENTWISE(minimum, "Min")
ELEMENTWISE(power, "Pow")
#undef ELEMENTWISE

static CornuStatus elu(const Op *op)
{
    const double alpha = op->attributes->alpha.alpha;
    return elementwise(op, "Elu", &(CornuOnnxAttribute){ .name = "alpha", .numbers = &alpha }, 1);
}

/* Runtimes have no Where of booleans. */
static CornuStatus select_(const Op *op)
{
    if (type_of(op, op->out).dtype != CORNU_BOOL) return elementwise(op, "Where", NULL, 0);
    const CornuValue *first = op->program->first, condition = first[op->in[0]];
    if (condition == first[op->in[1]])
        return keep(op, two(op->to, "Or", small(op, 0), small(op, 2)));
    if (condition == first[op->in[2]])
        return keep(op, two(op->to, "And", small(op, 0), small(op, 1)));
    const int a = two(op->to, "And", small(op, 0), small(op, 1));
    const int b = two(op->to, "And", one(op->to, "Not", small(op, 0)), small(op, 2));
    return keep(op, two(op->to, "Or", a, b));
}

/* Writes further nodes after an elementwise one, which read its result as it is kept. */
static int *kept_value(const Op *op)
{
    return op->program->full[op->out] ? &op->program->full[op->out]
                                      : &op->program->small[op->out];
}

static CornuStatus bounded_relu(const Op *op)
{
    return cornu__onnx_op_clip(op, 0.0, op->attributes->bound.bound);
}

/* ---- Inverse roots: what is only a factor divides by the root ---- */

/* The inverse root of which this value is a broadcast, or which it is; NULL if it is of no such. */
static const CornuProgramOp *root_of(const CornuProgram *program, CornuValue value)
{
    const CornuProgramOp *op;
    for (int at; (at = program->values[value].op) >= 0;
         value = cornu_program_operands(program, op)[0]) {
        op = &program->ops[at];
        if (op->id == CORNU_OP_RSQRT) return op;
        if (op->id != CORNU_OP_BROADCAST) return NULL;
    }
    return NULL;
}

/* Whether all that reads the value multiplies by it something else. */
static bool is_factor(const CornuProgram *program, CornuValue value)
{
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].value == value) return false;
    for (int i = program->values[value].op + 1; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        for (int k = 0; k < op->in_count; k++) {
            if (in[k] != value) continue;
            if (op->id == CORNU_OP_BROADCAST && is_factor(program, op->out_first)) continue;
            if (op->id != CORNU_OP_MULTIPLY || root_of(program, in[1 - k])) return false;
        }
    }
    return true;
}

static CornuStatus inverse_root(const Op *op)
{
    CORNU__TRY(elementwise(op, "Sqrt", NULL, 0));
    if (!is_factor(op->program->program, op->out))
        *kept_value(op) = one(op->to, "Reciprocal", *kept_value(op));
    return CORNU_OK;
}

/* The number that a value has everywhere; NULL if it is not known to be one. */
static const double *number_of(const Op *op, CornuValue value)
{
    const CornuProgram *program = op->program->program;
    int                 at = program->values[value].op;
    if (at >= 0 && program->ops[at].id == CORNU_OP_BROADCAST)
        at = program->values[cornu_program_operands(program, &program->ops[at])[0]].op;
    if (at < 0 || program->ops[at].id != CORNU_OP_CONSTANT) return NULL;
    const double *number = &program->ops[at].attributes.constant.value;
    for (int w = 1; w < CORNU_ONNX_WORLDS; w++)
        if (op->program->worlds[w]->ops[at].attributes.constant.value != *number) return NULL;
    return number;
}

static CornuStatus multiply(const Op *op)
{
    const CornuProgram *program = op->program->program;
    for (int i = 0; i < 2; i++) {
        const double *number = number_of(op, op->in[i]);
        const int     y = number ? cornu__onnx_scaled_weight(op->to, small(op, 1 - i), *number) : 0;
        if (y) return keep(op, y);
    }
    for (int i = 0; i < 2; i++) {
        const CornuProgramOp *root = root_of(program, op->in[i]);
        if (!root || !is_factor(program, root->out_first)) continue;
        const int in[] = { small(op, 1 - i), small(op, i) };
        return keep(op, cornu__onnx_elementwise(op->to, "Div", in, 2, NULL, 0));
    }
    return elementwise(op, "Mul", NULL, 0);
}

static CornuStatus step(const Op *op)
{
    CORNU__TRY(elementwise(op, "Relu", NULL, 0));
    *kept_value(op) = one(op->to, "Sign", *kept_value(op));
    return CORNU_OK;
}

/* Before opset 16 runtimes take GreaterOrEqual and LessOrEqual apart, and in bodies of loops then
 * lack the shapes of what follows. */
static CornuStatus compare(const Op *op)
{
    static const char *const operators[] = {
        [CORNU_EQUAL] = "Equal", [CORNU_NOT_EQUAL] = "Equal", [CORNU_LESS] = "Less",
        [CORNU_LESS_EQUAL] = "LessOrEqual", [CORNU_GREATER] = "Greater",
        [CORNU_GREATER_EQUAL] = "GreaterOrEqual",
    };
    const CornuComparison comparison = op->attributes->compare.comparison;
    const bool less = comparison == CORNU_LESS_EQUAL;
    if (op->to->opset < 16 && (less || comparison == CORNU_GREATER_EQUAL)) {
        CORNU__TRY(elementwise(op, less ? "Less" : "Greater", NULL, 0));
        const int apart = *kept_value(op);
        CORNU__TRY(elementwise(op, "Equal", NULL, 0));
        *kept_value(op) = two(op->to, "Or", apart, *kept_value(op));
        return CORNU_OK;
    }
    CORNU__TRY(elementwise(op, operators[comparison], NULL, 0));
    if (comparison == CORNU_NOT_EQUAL) *kept_value(op) = one(op->to, "Not", *kept_value(op));
    return CORNU_OK;
}

/* Neither infinite nor NaN, for which x - x is NaN. */
static CornuStatus is_finite(const Op *op)
{
    const int x = full(op, 0), none = two(op->to, "Sub", x, x);
    return give(op, one(op->to, "Not", one(op->to, "IsNaN", none)));
}

/* Floats of all widths are FLOAT, integers INT64; a conversion between integers that overflows is
 * not met in layers. */
static CornuStatus convert(const Op *op)
{
    const int from = cornu__onnx_type(type_of(op, op->in[0]).dtype);
    const int to = cornu__onnx_type(type_of(op, op->out).dtype);
    const CornuOnnxAttribute attribute = { .name = "to", .whole = to };
    if (from != to) return elementwise(op, "Cast", &attribute, 1);
    op->program->full[op->out] = op->program->full[op->in[0]];
    op->program->small[op->out] = op->program->small[op->in[0]];
    op->program->extents[op->out] = op->program->extents[op->in[0]];
    return CORNU_OK;
}

/* ---- Shape ---- */

/* Whether an axis of a result has the extent of the operand's axis. */
static bool is_kept(const Op *op, int axis)
{
    bool kept = axis < type_of(op, op->in[0]).shape.rank;
    for (int w = 0; w < CORNU_ONNX_WORLDS && kept; w++) {
        const CornuProgramValue *values = op->program->worlds[w]->values;
        kept = values[op->in[0]].type.shape.extent[axis] ==
               values[op->out].type.shape.extent[axis];
    }
    return kept;
}

/* The extents 0 are those of the operand; at most one open extent is inferred. */
static CornuStatus reshape(const Op *op)
{
    CornuShape shape = type_of(op, op->out).shape;
    int        open = 0, unexplained = 0, last = 0;
    bool       changes = false;
    for (int i = 0; i < shape.rank; i++) {
        shape.extent[i] = cornu__onnx_extent_at(op->program, op->out, i);
        changes |= !is_kept(op, i);
        if (!changes && (shape.extent[i] == 0 || cornu__onnx_is_open(shape.extent[i]))) {
            shape.extent[i] = 0;
            continue;
        }
        unexplained += shape.extent[i] == 0;
        open += shape.extent[i] == 0 || cornu__onnx_is_open(shape.extent[i]);
        if (cornu__onnx_is_open(shape.extent[i]) && !unexplained) last = i;
        if (shape.extent[i] == 0) last = i;
    }
    if (unexplained > 1) return refuse_batch(op);
    if (open == 1 || unexplained) shape.extent[last] = -1;
    const int x = full(op, 0);
    if (!changes && shape.rank == type_of(op, op->in[0]).shape.rank) return give(op, x);
    if (!open) {
        const int weight = cornu__onnx_shaped_weight(op->to, x, type_of(op, op->out).shape);
        if (weight) return give(op, weight);
    }
    const int extents = cornu__onnx_vector(op->to, shape.extent, shape.rank);
    return give(op, joined(op->to, "Reshape", x, extents));
}

static CornuStatus transpose(const Op *op)
{
    const int rank = type_of(op, op->in[0]).shape.rank;
    return give(op, cornu__onnx_transpose(op->to, full(op, 0), op->attributes->permutation.axes,
                                          rank));
}

/* Rows before and after each axis may depend on open extents, and are then at least 0. */
static CornuStatus pad(const Op *op)
{
    const CornuAttributes_PAD *at = &op->attributes->pad;
    const CornuType type = type_of(op, op->in[0]);
    const int       rank = type.shape.rank;
    int64_t         pads[2 * CORNU_MAX_RANK], numbers[CORNU_ONNX_WORLDS], order[CORNU_MAX_RANK];
    const int       given = full(op, 0);
    int             x;
    cornu__onnx_lying(op->to, &given, 1, &x, order);
    for (int i = 0; i < 2 * rank; i++) {
        for (int w = 0; w < CORNU_ONNX_WORLDS; w++)
            numbers[w] = i < rank ? in_world(op, w)->pad.low[i]
                                  : in_world(op, w)->pad.high[i - rank];
        int64_t *to = &pads[i < rank ? order[i] : rank + order[i - rank]];
        *to = cornu__onnx_extent(op->to, numbers);
        if (*to == 0 && (numbers[0] != 0 || numbers[1] != 0)) return refuse_batch(op);
    }
    const bool flag = type.dtype == CORNU_BOOL;   /* which Pad takes in later versions */
    if (flag) x = cast(op->to, x, CORNU_ONNX_FLOAT);
    const int extents = cornu__onnx_vector(op->to, pads, 2 * rank);
    const int value = typed_scalar(op->to, flag ? CORNU_F32 : type.dtype, at->value);
    x = cornu__onnx_node(op->to, "Pad", (const int[]){ x, extents, value }, 3, NULL, 0, 1);
    x = cornu__onnx_transpose(op->to, x, order, rank);
    return give(op, flag ? cast(op->to, x, CORNU_ONNX_BOOL) : x);
}

static CornuStatus concat(const Op *op)
{
    const int count = op->op->in_count;
    int64_t   order[CORNU_MAX_RANK];
    int      *in = cornu__allocate(2 * (size_t)count, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) in[count + i] = full(op, i);
    cornu__onnx_lying(op->to, in + count, count, in, order);
    const CornuOnnxAttribute axis = { .name = "axis", .whole = order[op->attributes->axis.axis] };
    const int y = cornu__onnx_node(op->to, "Concat", in, count, &axis, 1, 1);
    cornu__release(in);
    return give(op, cornu__onnx_transpose(op->to, y, order, type_of(op, op->out).shape.rank));
}

static CornuStatus flip(const Op *op)
{
    const int64_t begin = -1, end = INT64_MIN + 1, axis = op->attributes->axis.axis, stride = -1;
    const int     x = full(op, 0);
    const int     from = cornu__onnx_integers(op->to, &begin, 1);
    const int     till = cornu__onnx_integers(op->to, &end, 1);
    const int     along = cornu__onnx_integers(op->to, &axis, 1);
    const int     by = cornu__onnx_integers(op->to, &stride, 1);
    return give(op, cornu__onnx_node(op->to, "Slice", (const int[]){ x, from, till, along, by }, 5,
                                     NULL, 0, 1));
}

/* ---- Reductions ---- */

/* Over no axes ONNX' reductions are those over all. */
static CornuStatus reduce(const Op *op, const char *operator)
{
    const CornuType type = type_of(op, op->in[0]);
    const int64_t   axes = op->attributes->reduce.axes;
    int             x = full(op, 0);
    if (!(axes & ((INT64_C(1) << type.shape.rank) - 1))) return give(op, x);
    if (type.dtype == CORNU_BOOL) x = cast(op->to, x, CORNU_ONNX_FLOAT);
    x = cornu__onnx_reduce(op->to, operator, x, type.shape.rank, axes,
                           op->attributes->reduce.keep);
    return give(op, type.dtype == CORNU_BOOL ? cast(op->to, x, CORNU_ONNX_BOOL) : x);
}

static CornuStatus reduce_sum(const Op *op) { return reduce(op, "ReduceSum"); }
static CornuStatus reduce_max(const Op *op) { return reduce(op, "ReduceMax"); }

static CornuStatus argmax(const Op *op)
{
    const int in[] = { full(op, 0) };
    return give(op, CORNU__ONNX_NODE(op->to, "ArgMax", in,
                                     { .name = "axis", .whole = op->attributes->axis.axis },
                                     { .name = "keepdims", .whole = 0 }));
}

/* ---- Products ---- */

static int turned(const Op *op, int i, bool turn)
{
    const int rank = type_of(op, op->in[i]).shape.rank, x = full(op, i);
    int64_t   order[CORNU_MAX_RANK];
    for (int k = 0; k < rank; k++) order[k] = turn && k >= rank - 2 ? 2 * rank - 3 - k : k;
    return cornu__onnx_transpose(op->to, x, order, rank);
}

static CornuStatus matmul(const Op *op)
{
    const int a = turned(op, 0, op->attributes->matmul.transpose_a);
    const int b = turned(op, 1, op->attributes->matmul.transpose_b);
    return give(op, joined(op->to, "MatMul", a, b));
}

/* ---- Over the last axis ---- */

static CornuStatus last_axis(const Op *op, const char *operator)
{
    const int in[] = { full(op, 0) };
    return give(op, CORNU__ONNX_NODE(op->to, operator, in, { .name = "axis", .whole = -1 }));
}

static CornuStatus softmax(const Op *op) { return last_axis(op, "Softmax"); }
static CornuStatus log_softmax(const Op *op) { return last_axis(op, "LogSoftmax"); }

static CornuStatus one_hot(const Op *op)
{
    const int64_t depth = op->attributes->one_hot.depth;
    const float   values[] = { 0, 1 };
    const int     x = full(op, 0), classes = typed_scalar(op->to, CORNU_I64, (double)depth);
    const int     both = cornu__onnx_constant(op->to, cornu_array((void *)values, CORNU_F32, 2));
    const int     y = cornu__onnx_node(op->to, "OneHot", (const int[]){ x, classes, both }, 3, NULL,
                                       0, 1);
    const CornuDtype dtype = type_of(op, op->out).dtype;
    return give(op, cornu_dtype_is_float(dtype) ? y : cast(op->to, y, cornu__onnx_type(dtype)));
}

static CornuStatus gather(const Op *op)
{
    if (op->attributes->gather.padded) return refuse(op, "with padding");
    const int table = full(op, 0), rows = full(op, 1);
    return give(op, joined(op->to, "Gather", table, rows));
}

/* The sum of the rows of each index: the gradient of a lookup, or a histogram. */
static CornuStatus gather_grad(const Op *op)
{
    CornuShape    table;
    const int64_t last = -1;
    if (op->to->opset < 16) return refuse(op, "sums by index came with opset 16");
    if (!cornu__onnx_extents(op->program, op->out, &table)) return refuse_batch(op);
    const int x = full(op, 0), rows = full(op, 1);
    const int extents = cornu__onnx_vector(op->to, table.extent, table.rank);
    const int at = joined(op->to, "Unsqueeze", rows, cornu__onnx_integers(op->to, &last, 1));
    const int zeros = joined(op->to, "Expand", cornu__onnx_scalar(op->to, 0), extents);
    const int in[] = { zeros, at, x };
    return give(op, CORNU__ONNX_NODE(op->to, "ScatterND", in,
                                     { .name = "reduction", .text = "add" }));
}

/* ---- All ops; those without a row serve training, or several shards ---- */

static CornuOnnxWriter *const writers[CORNU_OP_COUNT] = {
    [CORNU_OP_CONSTANT] = constant, [CORNU_OP_IOTA] = iota, [CORNU_OP_NEGATIVE] = negative,
    [CORNU_OP_ABSOLUTE] = absolute, [CORNU_OP_SIGN] = sign, [CORNU_OP_FLOOR] = round_down,
    [CORNU_OP_EXP] = exponential, [CORNU_OP_LOG] = logarithm, [CORNU_OP_SQRT] = square_root,
    [CORNU_OP_RSQRT] = inverse_root, [CORNU_OP_SIN] = sine, [CORNU_OP_COS] = cosine,
    [CORNU_OP_TANH] = hyperbolic_tangent, [CORNU_OP_SIGMOID] = sigmoid,
    [CORNU_OP_ERF] = error_function, [CORNU_OP_SOFTPLUS] = softplus, [CORNU_OP_RELU] = relu,
    [CORNU_OP_ELU] = elu, [CORNU_OP_STEP] = step, [CORNU_OP_BOUNDED_RELU] = bounded_relu,
    [CORNU_OP_ADD] = add,
    [CORNU_OP_SUBTRACT] = subtract, [CORNU_OP_MULTIPLY] = multiply, [CORNU_OP_DIVIDE] = divide,
    [CORNU_OP_MAXIMUM] = maximum, [CORNU_OP_MINIMUM] = minimum, [CORNU_OP_POWER] = power,
    [CORNU_OP_COMPARE] = compare, [CORNU_OP_IS_FINITE] = is_finite, [CORNU_OP_SELECT] = select_,
    [CORNU_OP_CONVERT] = convert, [CORNU_OP_BROADCAST] = broadcast, [CORNU_OP_RESHAPE] = reshape,
    [CORNU_OP_TRANSPOSE] = transpose, [CORNU_OP_SLICE] = cornu__onnx_op_slice, [CORNU_OP_PAD] = pad,
    [CORNU_OP_CONCAT] = concat, [CORNU_OP_FLIP] = flip, [CORNU_OP_REDUCE_SUM] = reduce_sum,
    [CORNU_OP_REDUCE_MAX] = reduce_max, [CORNU_OP_ARGMAX] = argmax, [CORNU_OP_MATMUL] = matmul,
    [CORNU_OP_CONV2D] = cornu__onnx_conv2d,
    [CORNU_OP_GROUPED_CONV2D] = cornu__onnx_conv2d,
    [CORNU_OP_CONV2D_GRAD_INPUT] = cornu__onnx_conv2d_grad_input,
    [CORNU_OP_GROUPED_CONV2D_GRAD_INPUT] = cornu__onnx_conv2d_grad_input,
    [CORNU_OP_MAX_POOL2D] = cornu__onnx_max_pool,
    [CORNU_OP_AVERAGE_POOL2D] = cornu__onnx_average_pool,
    [CORNU_OP_SOFTMAX] = softmax, [CORNU_OP_LOG_SOFTMAX] = log_softmax,
    [CORNU_OP_ONE_HOT] = one_hot, [CORNU_OP_GATHER] = gather,
    [CORNU_OP_GATHER_GRAD] = gather_grad, [CORNU_OP_CUSTOM] = cornu__onnx_function,
    [CORNU_OP_SCAN] = cornu__onnx_scan, [CORNU_OP_RANDOM_UNIFORM] = random_uniform,
};

/* Whether the op is the same in all worlds, but for what its writer looks at. */
static bool is_same(const Op *op)
{
    switch (op->op->id) {
    case CORNU_OP_CONSTANT: case CORNU_OP_IOTA: case CORNU_OP_BROADCAST: case CORNU_OP_RESHAPE:
    case CORNU_OP_SLICE: case CORNU_OP_PAD: case CORNU_OP_CONV2D_GRAD_INPUT:
    case CORNU_OP_RANDOM_UNIFORM:
    case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT: case CORNU_OP_GATHER_GRAD: case CORNU_OP_SCAN:
        return true;
    case CORNU_OP_CUSTOM:   /* its body is not looked at */
        for (int w = 1; w < CORNU_ONNX_WORLDS; w++)
            if (!cornu__onnx_same_function(op->attributes, in_world(op, w))) return false;
        return true;
    default:
        for (int w = 1; w < CORNU_ONNX_WORLDS; w++)
            if (!cornu__attributes_equal(op->op->id, op->attributes, in_world(op, w))) return false;
        return true;
    }
}

bool cornu__onnx_has_writer(CornuOpId id) { return writers[id] && id != CORNU_OP_CUSTOM; }

CornuStatus cornu__onnx_ops(CornuOnnxProgram *program)
{
    CORNU__TRY(cornu__onnx_find_known(program, cornu__onnx_has_writer));
    for (int i = 0; i < program->program->op_count; i++) {
        const CornuProgramOp *op = &program->program->ops[i];
        const Op              at = {
            .program = program, .to = program->to, .op = op, .number = i,
            .attributes = &op->attributes, .in = cornu_program_operands(program->program, op),
            .out = op->out_first,
        };
        if (!writers[op->id] || (op->id == CORNU_OP_CUSTOM && !op->attributes.custom.body))
            return refuse(&at, "it has no counterpart there");
        if (!is_same(&at)) return refuse_batch(&at);
        if (cornu__onnx_repeats(&at) || cornu__onnx_is_left_out(&at)) continue;
        CORNU__TRY(writers[op->id](&at));
    }
    return CORNU_OK;
}
