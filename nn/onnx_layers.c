/* What each class of layers is in ONNX' nodes. A new class gets a row in the table at the end; its
 * arguments are read by Keras' names, from the table that its class has for files. */
#include "onnx_internal.h"

#include "../device/memory_internal.h"

#include <math.h>
#include <string.h>

typedef struct {
    CornuOnnx        *to;
    const CornuLayer *layer;
    const int        *in;
    const CornuShape *shapes;
    int               in_count;
} Call;

/* The result; in *out, with the status. */
typedef CornuStatus Rule(const Call *call, int *out);

/* ---- A layer's arguments ---- */

static const void *argument(const CornuLayer *layer, const char *name)
{
    const CornuField *field = layer->kind->fields;
    while (strcmp(field->name, name)) field++;
    return (const char *)layer + layer->kind->config_offset + field->offset;
}

static int64_t whole(const CornuLayer *layer, const char *name)
{
    return *(const int64_t *)argument(layer, name);
}

static double number(const CornuLayer *layer, const char *name)
{
    const double value = *(const double *)argument(layer, name);
    return value == (double)CORNU_ZERO ? 0.0 : value;
}

static bool flag(const CornuLayer *layer, const char *name)
{
    return *(const bool *)argument(layer, name);
}

/* Of the flags that say the opposite of Keras'. */
static bool given(const CornuLayer *layer, const char *name) { return !flag(layer, name); }

static CornuActivation activation_of(const CornuLayer *layer, const char *name)
{
    return *(const CornuActivation *)argument(layer, name);
}

static CornuStatus unsupported(const CornuLayer *layer, const char *what)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s is not available in ONNX files of this "
                       "version", cornu_layer_name(layer), what);
}

/* ---- Nodes of one and two operands ---- */

static int one(CornuOnnx *to, const char *operator, int x)
{
    return cornu__onnx_node(to, operator, &x, 1, NULL, 0, 1);
}

static int two(CornuOnnx *to, const char *operator, int a, int b)
{
    const int in[] = { a, b };
    return cornu__onnx_node(to, operator, in, 2, NULL, 0, 1);
}

static int transpose(CornuOnnx *to, int x, const int64_t *order, int rank)
{
    const int in[] = { x };
    return CORNU__ONNX_NODE(to, "Transpose", in,
                            { .name = "perm", .numbers = order, .count = rank });
}

static int channels_first(CornuOnnx *to, int x)
{
    return transpose(to, x, (const int64_t[]){ 0, 3, 1, 2 }, 4);
}

static int channels_last(CornuOnnx *to, int x)
{
    return transpose(to, x, (const int64_t[]){ 0, 2, 3, 1 }, 4);
}

/* The first extent is the batch, -1. */
static int reshape(CornuOnnx *to, int x, CornuShape shape)
{
    shape.extent[0] = -1;
    return two(to, "Reshape", x, cornu__onnx_numbers(to, shape.extent, shape.rank));
}

/* ---- Activations ---- */

static int with_alpha(CornuOnnx *to, const char *operator, int x, double alpha)
{
    const int in[] = { x };
    return CORNU__ONNX_NODE(to, operator, in, { .name = "alpha", .number = &alpha });
}

/* x (1 + erf(x / sqrt(2))) / 2 */
static int gelu(CornuOnnx *to, int x)
{
    const int erf = one(to, "Erf", two(to, "Mul", x, cornu__onnx_scalar(to, sqrt(0.5))));
    const int wide = two(to, "Add", erf, cornu__onnx_scalar(to, 1.0));
    return two(to, "Mul", two(to, "Mul", x, wide), cornu__onnx_scalar(to, 0.5));
}

static CornuStatus activate(CornuOnnx *to, CornuActivation activation, int x, int *y)
{
    switch (activation) {
    case CORNU_LINEAR:      *y = x; return CORNU_OK;
    case CORNU_RELU:        *y = one(to, "Relu", x); return CORNU_OK;
    case CORNU_RELU6:
        *y = two(to, "Min", one(to, "Relu", x), cornu__onnx_scalar(to, 6.0));
        return CORNU_OK;
    case CORNU_LEAKY_RELU:  *y = with_alpha(to, "LeakyRelu", x, 0.2); return CORNU_OK;
    case CORNU_ELU:         *y = one(to, "Elu", x); return CORNU_OK;
    case CORNU_SELU:        *y = one(to, "Selu", x); return CORNU_OK;
    case CORNU_GELU:        *y = gelu(to, x); return CORNU_OK;
    case CORNU_SILU:        *y = two(to, "Mul", x, one(to, "Sigmoid", x)); return CORNU_OK;
    case CORNU_SIGMOID:     *y = one(to, "Sigmoid", x); return CORNU_OK;
    case CORNU_HARD_SIGMOID:*y = with_alpha(to, "HardSigmoid", x, 1.0 / 6.0); return CORNU_OK;
    case CORNU_TANH:        *y = one(to, "Tanh", x); return CORNU_OK;
    case CORNU_SOFTMAX:     *y = one(to, "Softmax", x); return CORNU_OK;   /* of the last axis */
    case CORNU_SOFTPLUS:    *y = one(to, "Softplus", x); return CORNU_OK;
    case CORNU_SOFTSIGN:    *y = one(to, "Softsign", x); return CORNU_OK;
    case CORNU_MISH:
        *y = two(to, "Mul", x, one(to, "Tanh", one(to, "Softplus", x)));
        return CORNU_OK;
    case CORNU_EXPONENTIAL: *y = one(to, "Exp", x); return CORNU_OK;
    default: break;
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the activation %s is not available in ONNX files",
                       cornu_activation_name(activation));
}

static CornuStatus activation(const Call *call, int *out)
{
    return activate(call->to, activation_of(call->layer, "activation"), call->in[0], out);
}

/* ---- Products ---- */

static CornuStatus dense(const Call *call, int *out)
{
    CornuOnnx *to = call->to;
    int y = two(to, "MatMul", call->in[0], cornu__onnx_weight(to, call->layer, 0));
    if (given(call->layer, "use_bias"))
        y = two(to, "Add", y, cornu__onnx_weight(to, call->layer, 1));
    return activate(to, activation_of(call->layer, "activation"), y, out);
}

/* Kernels HWIO become OIHW. */
static CornuStatus conv2d(const Call *call, int *out)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const bool        same = *(const CornuPadding *)argument(layer, "padding") == CORNU_SAME;
    const int kernel = transpose(to, cornu__onnx_weight(to, layer, 0),
                                 (const int64_t[]){ 3, 2, 0, 1 }, 4);
    const int in[] = { channels_first(to, call->in[0]), kernel,
                       given(layer, "use_bias") ? cornu__onnx_weight(to, layer, 1)
                                                : CORNU_ONNX_ABSENT };
    const int y = CORNU__ONNX_NODE(
        to, "Conv", in,
        { .name = "strides", .numbers = argument(layer, "strides"), .count = 2 },
        { .name = "dilations", .numbers = argument(layer, "dilation_rate"), .count = 2 },
        { .name = "group", .whole = whole(layer, "groups") },
        { .name = "auto_pad", .text = same ? "SAME_UPPER" : "VALID" });
    return activate(to, activation_of(layer, "activation"), channels_last(to, y), out);
}

static CornuStatus pool(const Call *call, const char *operator, int *out)
{
    const CornuLayer *layer = call->layer;
    const bool        same = *(const CornuPadding *)argument(layer, "padding") == CORNU_SAME;
    const int         in[] = { channels_first(call->to, call->in[0]) };
    *out = channels_last(call->to, CORNU__ONNX_NODE(
        call->to, operator, in,
        { .name = "kernel_shape", .numbers = argument(layer, "pool_size"), .count = 2 },
        { .name = "strides", .numbers = argument(layer, "strides"), .count = 2 },
        { .name = "auto_pad", .text = same ? "SAME_UPPER" : "VALID" }));
    return CORNU_OK;
}

static CornuStatus max_pooling(const Call *call, int *out) { return pool(call, "MaxPool", out); }

static CornuStatus average_pooling(const Call *call, int *out)
{
    return pool(call, "AveragePool", out);
}

/* Whole numbers, of whatever type they came in. */
static CornuStatus embedding(const Call *call, int *out)
{
    if (flag(call->layer, "mask_zero")) return unsupported(call->layer, "mask_zero");
    const int in[] = { call->in[0] };
    const int rows = CORNU__ONNX_NODE(call->to, "Cast", in, { .name = "to", .whole = 7 });
    *out = two(call->to, "Gather", cornu__onnx_weight(call->to, call->layer, 0), rows);
    return CORNU_OK;
}

/* ---- Normalization: y = x scale + offset, both per channel and constant ---- */

static CornuStatus batch_normalization(const Call *call, int *out)
{
    const CornuLayer *layer = call->layer;
    const int64_t     channels = layer->weights[0]->type.shape.extent[0];
    const bool        scaled = given(layer, "scale"), centred = given(layer, "center");
    const int         mean_at = scaled + centred;
    const float *gamma = scaled ? cornu__onnx_values(call->to, layer, 0) : NULL;
    const float *beta = centred ? cornu__onnx_values(call->to, layer, scaled) : NULL;
    const float *mean = cornu__onnx_values(call->to, layer, mean_at);
    const float *variance = cornu__onnx_values(call->to, layer, mean_at + 1);
    float       *scale = cornu__allocate((size_t)(2 * channels), sizeof *scale);
    if (!scale) return CORNU_ERR_MEMORY;
    float *offset = scale + channels;
    for (int64_t c = 0; c < channels; c++) {
        const double factor = (gamma ? (double)gamma[c] : 1.0) /
                              sqrt((double)variance[c] + number(layer, "epsilon"));
        scale[c] = (float)factor;
        offset[c] = (float)((beta ? (double)beta[c] : 0.0) - (double)mean[c] * factor);
    }
    const int a = cornu__onnx_constant(call->to, cornu_array(scale, CORNU_F32, channels));
    const int b = cornu__onnx_constant(call->to, cornu_array(offset, CORNU_F32, channels));
    *out = two(call->to, "Add", two(call->to, "Mul", call->in[0], a), b);
    cornu__release(scale);
    return CORNU_OK;
}

static CornuStatus rescaling(const Call *call, int *out)
{
    const int scaled = two(call->to, "Mul", call->in[0],
                           cornu__onnx_scalar(call->to, number(call->layer, "scale")));
    *out = two(call->to, "Add", scaled,
               cornu__onnx_scalar(call->to, number(call->layer, "offset")));
    return CORNU_OK;
}

/* ---- Shapes ---- */

static CornuStatus as_it_is(const Call *call, int *out)
{
    *out = call->in[0];
    return CORNU_OK;
}

/* Flatten and Reshape: the layer knows its result's shape. */
static CornuStatus reshaping(const Call *call, int *out)
{
    *out = reshape(call->to, call->in[0], call->layer->output);
    return CORNU_OK;
}

/* ---- Of several tensors ---- */

/* Tensors of lower rank get extents of 1 behind the batch. */
static int raised(const Call *call, int i)
{
    int        rank = 0;
    CornuShape shape = call->shapes[i], to = { .extent = { -1 } };
    for (int k = 0; k < call->in_count; k++)
        if (call->shapes[k].rank > rank) rank = call->shapes[k].rank;
    to.rank = rank;
    if (shape.rank == rank) return call->in[i];
    for (int k = 1; k < rank; k++)
        to.extent[k] = k <= rank - shape.rank ? 1 : shape.extent[k - (rank - shape.rank)];
    return reshape(call->to, call->in[i], to);
}

static CornuStatus combine(const Call *call, const char *operator, int *out)
{
    *out = raised(call, 0);
    for (int i = 1; i < call->in_count; i++) *out = two(call->to, operator, *out, raised(call, i));
    return CORNU_OK;
}

static CornuStatus add(const Call *call, int *out) { return combine(call, "Add", out); }
static CornuStatus subtract(const Call *call, int *out) { return combine(call, "Sub", out); }
static CornuStatus multiply(const Call *call, int *out) { return combine(call, "Mul", out); }
static CornuStatus maximum(const Call *call, int *out) { return combine(call, "Max", out); }
static CornuStatus minimum(const Call *call, int *out) { return combine(call, "Min", out); }

static CornuStatus average(const Call *call, int *out)
{
    combine(call, "Add", out);
    *out = two(call->to, "Mul", *out, cornu__onnx_scalar(call->to, 1.0 / call->in_count));
    return CORNU_OK;
}

static CornuStatus concatenate(const Call *call, int *out)
{
    const CornuOnnxAttribute axis = { .name = "axis", .whole = whole(call->layer, "axis") };
    *out = cornu__onnx_node(call->to, "Concat", call->in, call->in_count, &axis, 1, 1);
    return CORNU_OK;
}

/* ---- Recurrence. ONNX has time first, and a direction axis of 1 ---- */

/* Keras' gates i f c o are ONNX' i o f c; z r h are the same. */
static const int lstm_gates[] = { 0, 3, 1, 2 }, gru_gates[] = { 0, 1, 2 }, rnn_gates[] = { 0 };

typedef struct {
    const char *operator;
    const int  *order;
    int         gates;
    bool        has_gates;        /* whose activation is the recurrent one */
} Cell;

static Cell cell_of(const CornuLayer *layer)
{
    const char *name = layer->kind->class_name;
    if (!strcmp(name, "LSTM")) return (Cell){ "LSTM", lstm_gates, 4, true };
    if (!strcmp(name, "GRU")) return (Cell){ "GRU", gru_gates, 3, true };
    return (Cell){ "RNN", rnn_gates, 1, false };
}

/* A kernel (rows, gates units) becomes (1, gates units, rows), gates in ONNX' order. */
static CornuStatus turned(const Call *call, int weight, Cell cell, int *out)
{
    const CornuShape shape = call->layer->weights[weight]->type.shape;
    const int64_t    rows = shape.extent[0], wide = shape.extent[1], units = wide / cell.gates;
    const float     *from = cornu__onnx_values(call->to, call->layer, weight);
    float           *to = cornu__allocate((size_t)(rows * wide), sizeof *to);
    if (!to) return CORNU_ERR_MEMORY;
    for (int g = 0; g < cell.gates; g++)
        for (int64_t u = 0; u < units; u++)
            for (int64_t r = 0; r < rows; r++)
                to[(g * units + u) * rows + r] = from[r * wide + cell.order[g] * units + u];
    *out = cornu__onnx_constant(call->to, cornu_array(to, CORNU_F32, 1, wide, rows));
    cornu__release(to);
    return CORNU_OK;
}

/* The bias, and behind it the second row, or zeros, for the state: (1, 2 gates units). */
static CornuStatus both_biases(const Call *call, Cell cell, int *out)
{
    const CornuShape shape = call->layer->weights[2]->type.shape;
    const int64_t    wide = shape.extent[shape.rank - 1], units = wide / cell.gates;
    const float     *from = cornu__onnx_values(call->to, call->layer, 2);
    float           *to = cornu__allocate((size_t)(2 * wide), sizeof *to);
    if (!to) return CORNU_ERR_MEMORY;
    for (int row = 0; row < shape.rank; row++)
        for (int g = 0; g < cell.gates; g++)
            for (int64_t u = 0; u < units; u++)
                to[row * wide + g * units + u] = from[row * wide + cell.order[g] * units + u];
    *out = cornu__onnx_constant(call->to, cornu_array(to, CORNU_F32, 1, 2 * wide));
    cornu__release(to);
    return CORNU_OK;
}

/* ONNX' names; NULL for what it does not have. */
static const char *recurrent_activation(CornuActivation activation)
{
    switch (activation) {
    case CORNU_TANH:     return "Tanh";
    case CORNU_SIGMOID:  return "Sigmoid";
    case CORNU_RELU:     return "Relu";
    case CORNU_SOFTSIGN: return "Softsign";
    default:             return NULL;
    }
}

/* "Sigmoid", "Tanh" and, of LSTM, "Tanh" once more, NUL behind each. */
static CornuStatus activations_of(const CornuLayer *layer, Cell cell, char text[64], int *count)
{
    const char *own = recurrent_activation(activation_of(layer, "activation"));
    const char *gates = cell.has_gates
        ? recurrent_activation(activation_of(layer, "recurrent_activation")) : "";
    if (!own || !gates) return unsupported(layer, "its activation");
    *count = 0;
    if (cell.has_gates) text = strcpy(text, gates) + strlen(gates) + 1, ++*count;
    for (int i = cell.gates == 4 ? 2 : 1; i > 0; i--, ++*count)
        text = strcpy(text, own) + strlen(own) + 1;
    return CORNU_OK;
}

static CornuStatus check_recurrent(const Call *call)
{
    if (flag(call->layer, "stateful")) return unsupported(call->layer, "stateful");
    if (call->in_count > 1) return unsupported(call->layer, "initial_state");
    return CORNU_OK;
}

/* In the order of time, also backwards: (B, T, U), or the last state (B, U). */
static CornuStatus recur(const Call *call, int *out)
{
    const CornuLayer *layer = call->layer;
    const Cell        cell = cell_of(layer);
    const bool        backwards = flag(layer, "go_backwards");
    const bool        reset_after = cell.gates == 3 && given(layer, "reset_after");
    char              text[64];
    int               kernel, recurrent, bias = CORNU_ONNX_ABSENT, activations = 0;
    CORNU__TRY(check_recurrent(call));
    CORNU__TRY(activations_of(layer, cell, text, &activations));
    CORNU__TRY(turned(call, 0, cell, &kernel));
    CORNU__TRY(turned(call, 1, cell, &recurrent));
    if (given(layer, "use_bias")) CORNU__TRY(both_biases(call, cell, &bias));
    const int in[] = { transpose(call->to, call->in[0], (const int64_t[]){ 1, 0, 2 }, 3), kernel,
                       recurrent, bias };
    const CornuOnnxAttribute attributes[] = {
        { .name = "hidden_size", .whole = whole(layer, "units") },
        { .name = "direction", .text = backwards ? "reverse" : "forward" },
        { .name = "activations", .text = text, .texts = activations },
        { .name = "linear_before_reset", .whole = reset_after },
    };
    const int first = cornu__onnx_node(call->to, cell.operator, in, 4, attributes,
                                       cell.gates == 3 ? 4 : 3, 2);
    const CornuShape shape = layer->output;
    if (flag(layer, "return_sequences"))   /* (T, 1, B, U) */
        *out = reshape(call->to, transpose(call->to, first, (const int64_t[]){ 2, 0, 1, 3 }, 4),
                       shape);
    else                                   /* (1, B, U) */
        *out = reshape(call->to, first + 1, shape);
    return CORNU_OK;
}

/* Keras gives the steps in the order in which they were made. */
static CornuStatus recurrent(const Call *call, int *out)
{
    CORNU__TRY(recur(call, out));
    if (!flag(call->layer, "go_backwards") || !flag(call->layer, "return_sequences"))
        return CORNU_OK;
    const int64_t last = -1, before_first = INT64_MIN, time = 1;
    const int in[] = { *out, cornu__onnx_numbers(call->to, &last, 1),
                       cornu__onnx_numbers(call->to, &before_first, 1),
                       cornu__onnx_numbers(call->to, &time, 1),
                       cornu__onnx_numbers(call->to, &last, 1) };
    *out = cornu__onnx_node(call->to, "Slice", in, 5, NULL, 0, 1);
    return CORNU_OK;
}

static CornuStatus bidirectional(const Call *call, int *out)
{
    int y[2];
    for (int i = 0; i < 2; i++) {
        Call inner = *call;
        inner.layer = call->layer->inner[i];
        CORNU__TRY(recur(&inner, &y[i]));
    }
    switch (*(const CornuMerge *)argument(call->layer, "merge_mode")) {
    case CORNU_MERGE_CONCAT:
        *out = CORNU__ONNX_NODE(call->to, "Concat", y, { .name = "axis", .whole = -1 });
        return CORNU_OK;
    case CORNU_MERGE_SUM: *out = two(call->to, "Add", y[0], y[1]); return CORNU_OK;
    case CORNU_MERGE_MUL: *out = two(call->to, "Mul", y[0], y[1]); return CORNU_OK;
    case CORNU_MERGE_AVE: case CORNU_MERGE_NONE: break;   /* two results are refused before */
    }
    *out = two(call->to, "Mul", two(call->to, "Add", y[0], y[1]),
               cornu__onnx_scalar(call->to, 0.5));
    return CORNU_OK;
}

/* All steps of all rows are the rows of one batch. */
static CornuStatus time_distributed(const Call *call, int *out)
{
    const CornuShape  shape = call->shapes[0];
    const CornuLayer *inner = call->layer->inner[0];
    CornuShape        rows = { .rank = shape.rank - 1, .extent = { CORNU_NONE } };
    int               y;
    for (int i = 1; i < rows.rank; i++) rows.extent[i] = shape.extent[i + 1];
    const int x = reshape(call->to, call->in[0], rows);
    CORNU__TRY(cornu__onnx_layer(call->to, inner, &x, &rows, 1, &y));
    *out = reshape(call->to, y, call->layer->output);
    return CORNU_OK;
}

/* ---- The table ---- */

static const struct { const char *class_name; Rule *rule; } rules[] = {
    { "Activation", activation },
    { "Add", add },
    { "Average", average },
    { "AveragePooling2D", average_pooling },
    { "BatchNormalization", batch_normalization },
    { "Bidirectional", bidirectional },
    { "Concatenate", concatenate },
    { "Conv2D", conv2d },
    { "Dense", dense },
    { "Dropout", as_it_is },
    { "Embedding", embedding },
    { "Flatten", reshaping },
    { "GRU", recurrent },
    { "LSTM", recurrent },
    { "MaxPooling2D", max_pooling },
    { "Maximum", maximum },
    { "Minimum", minimum },
    { "Multiply", multiply },
    { "Rescaling", rescaling },
    { "Reshape", reshaping },
    { "SimpleRNN", recurrent },
    { "Subtract", subtract },
    { "TimeDistributed", time_distributed },
};

CornuStatus cornu__onnx_layer(CornuOnnx *to, const CornuLayer *layer, const int *in,
                              const CornuShape *shapes, int in_count, int *out)
{
    const Call call = { .to = to, .layer = layer, .in = in, .shapes = shapes,
                        .in_count = in_count };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].class_name, layer->kind->class_name)) return rules[i].rule(&call, out);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: layers of class %s are not available in ONNX "
                       "files of this version", cornu_layer_name(layer), layer->kind->class_name);
}
