/* Functions that layers call by name (tensor/function_internal.h) as the operators that ONNX has
 * for them. A function without a row here, or of an opset or operands that its row does not take,
 * is written by its ops. */
#include "recorded_internal.h"
#include "recorded_layer.h"

#include <math.h>
#include <string.h>

#include "../../../device/definition_internal.h"

typedef CornuOnnxOp Op;

/* Whether it has an operator for this call. */
typedef bool Takes(const CornuOpCall *call);

static const double *numbers_of(const Op *op) { return op->attributes->custom.numbers; }

static int rank_of(const Op *op)
{
    return op->program->program->values[op->in[0]].type.shape.rank;
}

static CornuStatus give(const Op *op, int value) { return cornu__onnx_give(op, value); }

/* ---- Elementwise ---- */

/* Gelu came with opset 20. Before it, x (1 + curve) / 2 in the order of factors in which runtimes
 * know the formula, or take the half for a factor of the product that follows. */
static CornuStatus gelu_of(const Op *op, const char *approximate)
{
    const CornuOnnxAttribute how = { .name = "approximate", .text = approximate };
    CornuOnnx *to = op->to;
    const int  x = cornu__onnx_operand(op, 0);
    int        curve;
    if (to->opset >= 20) return cornu__onnx_op_elementwise(op, "Gelu", &how, 1);
    if (*approximate == 'n') {
        curve = one(to, "Erf", two(to, "Div", x, cornu__onnx_scalar(to, sqrt(2.0))));
    } else {
        const int cube = two(to, "Mul", x, two(to, "Mul", x, x));
        const int inner = two(to, "Add", x, scaled(to, cube, 0.044715));
        curve = one(to, "Tanh", scaled(to, inner, sqrt(2.0 / acos(-1.0))));
    }
    return give(op, scaled(to, two(to, "Mul", x, shifted(to, curve, 1.0)), 0.5));
}

static CornuStatus gelu(const Op *op) { return gelu_of(op, "none"); }
static CornuStatus gelu_tanh(const Op *op) { return gelu_of(op, "tanh"); }

static bool is_float(const CornuOpCall *call) { return cornu_dtype_is_float(call->in[0].dtype); }

static CornuStatus clip(const Op *op)
{
    return cornu__onnx_op_clip(op, numbers_of(op)[0], numbers_of(op)[1]);
}

static CornuStatus prelu(const Op *op)
{
    const int x = cornu__onnx_operand(op, 0);
    return give(op, joined(op->to, "PRelu", x, cornu__onnx_operand(op, 1)));
}

static CornuStatus dense(const Op *op)
{
    const int x = cornu__onnx_operand(op, 0);
    const int y = joined(op->to, "MatMul", x, cornu__onnx_operand(op, 1));
    return give(op, op->op->in_count < 3 ? y : two(op->to, "Add", y, cornu__onnx_operand(op, 2)));
}

/* ---- Along axes ---- */

static CornuStatus mean(const Op *op)
{
    const double *numbers = numbers_of(op);
    return give(op, cornu__onnx_reduce(op->to, "ReduceMean", cornu__onnx_operand(op, 0),
                                       rank_of(op), (int64_t)numbers[0], numbers[1] != 0.0));
}

static CornuStatus unit_norm(const Op *op)
{
    const int x = cornu__onnx_operand(op, 0);
    const int length = cornu__onnx_reduce(op->to, "ReduceL2", x, rank_of(op),
                                          (int64_t)*numbers_of(op), true);
    return give(op, two(op->to, "Div", x,
                        two(op->to, "Max", length, cornu__onnx_scalar(op->to, 1e-12))));
}

static int axis_of(int64_t axes)
{
    int axis = 0;
    while (!(axes >> axis & 1)) axis++;
    return axis;
}

static bool along_one(const CornuOpCall *call)
{
    const int64_t axes = (int64_t)call->attributes->custom.numbers[0];
    return axes == INT64_C(1) << axis_of(axes);
}

static CornuStatus softmax(const Op *op)
{
    return give(op, cornu__onnx_softmax(op->to, cornu__onnx_operand(op, 0),
                                        axis_of((int64_t)*numbers_of(op))));
}

/* The first of the axes if they are the last ones of the tensor; else 0. */
static int first_of_last(int64_t axes, int rank)
{
    for (int first = 1; first < rank; first++)
        if (axes == (INT64_C(1) << rank) - (INT64_C(1) << first)) return first;
    return 0;
}

static bool along_last(const CornuOpCall *call)
{
    return first_of_last((int64_t)call->attributes->custom.numbers[1], call->in[0].shape.rank);
}

/* The operator requires a scale, which is 1 where the function has none. */
static CornuStatus layer_norm(const Op *op)
{
    CornuOnnx    *to = op->to;
    const double *numbers = numbers_of(op);
    const int     first = first_of_last((int64_t)numbers[1], rank_of(op));
    const bool    has_scale = numbers[2] != 0.0, has_offset = numbers[3] != 0.0;
    CornuShape    kept = op->program->program->values[op->in[0]].type.shape;
    kept.rank -= first;
    for (int i = 0; i < kept.rank; i++) kept.extent[i] = kept.extent[i + first];
    int in[] = { cornu__onnx_operand(op, 0), 0, 0 };
    in[1] = has_scale ? cornu__onnx_operand(op, 1) : cornu__onnx_filled(to, kept, 1.0f);
    if (has_offset) in[2] = cornu__onnx_operand(op, 1 + has_scale);
    return give(op, CORNU__ONNX_NODE(to, "LayerNormalization", in,
                                     { .name = "axis", .whole = first },
                                     { .name = "epsilon", .numbers = &numbers[0] }));
}

/* The channels, last in the function, are axis 1. The operator requires a scale and an offset. */
static CornuStatus batch_norm(const Op *op)
{
    CornuOnnx       *to = op->to;
    const double    *numbers = numbers_of(op);
    const bool       has_gamma = numbers[1] != 0.0, has_beta = numbers[2] != 0.0;
    const CornuShape channels = op->program->program->values[op->in[1]].type.shape;
    const int        rank = rank_of(op);
    int in[5] = { cornu__onnx_channels_first(to, cornu__onnx_operand(op, 0), rank) };
    in[1] = has_gamma ? cornu__onnx_operand(op, 3) : cornu__onnx_filled(to, channels, 1.0f);
    in[2] = has_beta ? cornu__onnx_operand(op, 3 + has_gamma)
                     : cornu__onnx_filled(to, channels, 0.0f);
    for (int i = 0; i < 2; i++) in[3 + i] = cornu__onnx_operand(op, 1 + i);
    const int y = CORNU__ONNX_NODE(to, "BatchNormalization", in,
                                   { .name = "epsilon", .numbers = &numbers[0] });
    return give(op, cornu__onnx_channels_last(to, y, rank));
}

/* The sum of x over the last axis, which is kept with extent 1. */
static int sum_of_last(CornuOnnx *to, int x)
{
    const int64_t last = -1;
    return joined(to, "ReduceSum", x, cornu__onnx_integers(to, &last, 1));
}

/* Cumulative sums of x along the last axis. */
static int running_sum(CornuOnnx *to, int x)
{
    int64_t last = -1;
    return joined(to, "CumSum", x,
                  cornu__onnx_constant(to, cornu_array_from(&last, cornu_scalar(CORNU_I64))));
}

/* max(x - t, 0). With z the numbers in descending order and s the sum of the first k of them, those
 * count for which k z > s - 1; t is the sum of their s, less 1, divided by their number. */
static CornuStatus sparsemax(const Op *op)
{
    CornuOnnx *to = op->to;
    const int  x = cornu__onnx_operand(op, 0);
    const int  count = cornu__onnx_part_of_shape(to, x, "start", -1);
    const int  z = cornu__onnx_node(to, "TopK", (const int[]){ x, count }, 2, NULL, 0, 2);
    const int  shape = one(to, "Shape", z);
    const int  ones = joined(to, "Expand", cornu__onnx_scalar(to, 1.0), shape);
    const int  s = running_sum(to, z);
    const int  kz = two(to, "Mul", running_sum(to, ones), z);
    const int  counts = cast(to, two(to, "Greater", kz, shifted(to, s, -1.0)), CORNU_ONNX_FLOAT);
    const int  sum = shifted(to, sum_of_last(to, two(to, "Mul", counts, s)), -1.0);
    const int  t = two(to, "Div", sum, sum_of_last(to, counts));
    return give(op, one(to, "Relu", two(to, "Sub", x, t)));
}

/* ---- Images, in their stored order ---- */

/* Each pixel as often as the numbers say. Which of two equally near pixels the mode takes is sure
 * where extents are multiples. */
static CornuStatus repeat(const Op *op)
{
    CornuOnnx *to = op->to;
    const int  rank = rank_of(op), given = cornu__onnx_operand(op, 0);
    int64_t    order[CORNU_MAX_RANK];
    float      times[CORNU_MAX_RANK];
    int        in[3] = { CORNU_ONNX_NONE, CORNU_ONNX_NONE };
    cornu__onnx_lying(to, &given, 1, in, order);
    for (int i = 0; i < rank; i++)
        times[order[i]] = i > 0 && i + 1 < rank ? (float)numbers_of(op)[i - 1] : 1.0f;
    in[2] = cornu__onnx_constant(to, cornu_array(times, CORNU_F32, rank));
    const int y = CORNU__ONNX_NODE(to, "Resize", in, { .name = "mode", .text = "nearest" },
                                   { .name = "coordinate_transformation_mode",
                                     .text = "asymmetric" },
                                   { .name = "nearest_mode", .text = "floor" });
    return give(op, cornu__onnx_transpose(to, y, order, rank));
}

/* The numbers of the nearest of `from` pixels for each of `count`. */
static int nearest(CornuOnnx *to, int64_t from, int64_t count)
{
    const int64_t axis = 0;
    const int     wide = cast(to, cornu__onnx_vector(to, &from, 1), CORNU_ONNX_FLOAT);
    const int     made = cast(to, cornu__onnx_vector(to, &count, 1), CORNU_ONNX_FLOAT);
    int           in[] = { cornu__onnx_scalar(to, 0.0), 0, cornu__onnx_scalar(to, 1.0) };
    in[1] = joined(to, "Squeeze", made, cornu__onnx_integers(to, &axis, 1));
    const int i = cornu__onnx_node(to, "Range", in, 3, NULL, 0, 1);
    const int at = two(to, "Div", two(to, "Mul", shifted(to, i, 0.5), wide), made);
    return cast(to, one(to, "Floor", at), CORNU_ONNX_INT64);
}

/* How often each extent is in the result; false unless all are whole numbers. */
static bool ratios(CornuShape from, CornuShape shape, const int64_t *order, float *times)
{
    bool whole = true;
    for (int i = 0; i < shape.rank; i++) {
        const bool resized = i > 0 && i + 1 < shape.rank;
        times[order[i]] = resized ? (float)(shape.extent[i] / from.extent[i]) : 1.0f;
        whole &= !resized || shape.extent[i] % from.extent[i] == 0;
    }
    return whole;
}

/* Which of two equally near pixels Resize takes depends on how a runtime rounds, so they are
 * gathered. Before opset 18 Resize takes the extents of all axes. Whole ratios are written as such:
 * onnxruntime 1.32 moves transposes past a Resize without axes, and then refuses the extents. */
static CornuStatus resize(const Op *op)
{
    CornuOnnx *to = op->to;
    const int  rank = rank_of(op), given = cornu__onnx_operand(op, 0);
    const bool all = to->opset < 18;
    int64_t    order[CORNU_MAX_RANK], extents[CORNU_MAX_RANK];
    float      times[CORNU_MAX_RANK];
    CornuShape from, shape;
    int        in[4] = { CORNU_ONNX_NONE }, x;
    if (!cornu__onnx_extents(op->program, op->out, &shape) ||
        !cornu__onnx_extents(op->program, op->in[0], &from))
        return cornu__onnx_refuse_open(op);
    cornu__onnx_lying(to, &given, 1, &x, order);
    for (int i = 0; i < rank; i++) extents[order[i]] = shape.extent[i];
    if (numbers_of(op)[0] == CORNU_NEAREST) {
        for (int i = 1; i + 1 < rank; i++) {
            const int taken[] = { x, nearest(to, from.extent[i], shape.extent[i]) };
            x = CORNU__ONNX_NODE(to, "Gather", taken, { .name = "axis", .whole = order[i] });
        }
        return give(op, cornu__onnx_transpose(to, x, order, rank));
    }
    const CornuOnnxAttribute attributes[] = {
        { .name = "mode", .text = "linear" },
        { .name = "axes", .integers = order + 1, .count = rank - 2 },
    };
    const bool whole = ratios(from, shape, order, times);
    in[0] = x;
    if (whole) in[2] = cornu__onnx_constant(to, cornu_array(times, CORNU_F32, rank));
    else
        in[3] = all ? cornu__onnx_vector(to, extents, rank)
                    : cornu__onnx_vector(to, shape.extent + 1, rank - 2);
    const int y = cornu__onnx_node(to, "Resize", in, whole ? 3 : 4, attributes,
                                   all || whole ? 1 : 2, 1);
    return give(op, cornu__onnx_transpose(to, y, order, rank));
}

/* ---- All ---- */

/* An elementwise operator whose attributes are the function's numbers, or a writer. */
static const struct {
    const char      *name, *operator, *attributes[2];
    int              extents;           /* how many of its last numbers are of the result */
    int              opset;             /* the first that has it, after FIRST_OPSET */
    CornuOnnxWriter *write;
    Takes           *takes;             /* NULL: any call */
} rows[] = {
    { "average_pool", .write = cornu__onnx_average_pool },
    { "batch_norm", .write = batch_norm },
    { "clip", .write = clip, .takes = is_float },
    { "conv", .write = cornu__onnx_conv },
    { "conv_transpose", .write = cornu__onnx_conv_transpose },
    { "dense", .write = dense },
    { "gelu", .write = gelu },
    { "gelu_tanh", .write = gelu_tanh },
    { "gru", .write = cornu__onnx_gru, .takes = cornu__onnx_takes_recurrence },
    { "hard_sigmoid", .operator = "HardSigmoid", .attributes = { "alpha", "beta" } },
    { "hard_swish", .operator = "HardSwish", .opset = 14 },
    { "layer_norm", .write = layer_norm, .opset = 17, .takes = along_last },
    { "leaky_relu", .operator = "LeakyRelu", .attributes = { "alpha" } },
    { "lstm", .write = cornu__onnx_lstm, .takes = cornu__onnx_takes_recurrence },
    { "max_pool", .write = cornu__onnx_max_pool },
    { "prelu", .write = prelu },
    { "reduce_mean", .write = mean, .takes = cornu__reduces_some },
    { "repeat", .write = repeat },
    { "resize", .write = resize, .takes = cornu__resizes_plainly, .extents = 2 },
    { "selu", .operator = "Selu", .attributes = { "alpha", "gamma" } },
    { "shrink", .operator = "Shrink", .attributes = { "lambd", "bias" } },
    { "simple_rnn", .write = cornu__onnx_simple_rnn, .takes = cornu__onnx_takes_recurrence },
    { "softmax", .write = softmax, .takes = along_one },
    { "softsign", .operator = "Softsign" },
    { "sparsemax", .write = sparsemax },
    { "unit_norm", .write = unit_norm },
};

/* -1 if there is none. */
static int row_of(const CornuAttributes *attributes)
{
    const CornuDefinition *definition = attributes->custom.definition;
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows) && definition->by_body; i++)
        if (!strcmp(rows[i].name, definition->name)) return i;
    return -1;
}

bool cornu__onnx_same_function(const CornuAttributes *a, const CornuAttributes *b)
{
    const CornuAttributes_CUSTOM *first = &a->custom, *second = &b->custom;
    const int                     row = row_of(a);
    const int64_t                 extents = row < 0 ? 0 : rows[row].extents;
    bool same = first->definition == second->definition &&
                first->number_count == second->number_count;
    for (int64_t i = 0; i < first->number_count - extents && same; i++)
        same = first->numbers[i] == second->numbers[i];
    return same;
}

bool cornu__onnx_has_function(const CornuOnnx *to, const CornuOpCall *call)
{
    const int row = call->id == CORNU_OP_CUSTOM ? row_of(call->attributes) : -1;
    return row >= 0 && to->opset >= rows[row].opset && (!rows[row].takes || rows[row].takes(call));
}

CornuStatus cornu__onnx_function(const CornuOnnxOp *op)
{
    const int row = row_of(op->attributes);
    if (rows[row].write) return rows[row].write(op);
    CornuOnnxAttribute attributes[2];
    int                count = 0;
    for (; count < 2 && rows[row].attributes[count]; count++)
        attributes[count] = (CornuOnnxAttribute){ .name = rows[row].attributes[count],
                                                  .numbers = &numbers_of(op)[count] };
    return cornu__onnx_op_elementwise(op, rows[row].operator, attributes, count);
}
