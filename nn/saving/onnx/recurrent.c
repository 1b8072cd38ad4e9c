/* LSTM, GRU and SimpleRNN, and their wrappers. In ONNX time is the first axis, and there is an axis
 * of extent 1 for the direction; a kernel is (1, gates units, rows). */
#include "rules_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"

/* Keras' gates i f c o are ONNX' i o f c; z r h are the same. */
static const int lstm_gates[] = { 0, 3, 1, 2 }, gru_gates[] = { 0, 1, 2 }, rnn_gates[] = { 0 };

typedef struct {
    const char *operator;
    const int  *order;
    int         gates, states;
} Cell;

static Cell cell_of(const CornuLayer *layer)
{
    const char *name = layer->kind->class_name;
    if (!strcmp(name, "LSTM")) return (Cell){ "LSTM", lstm_gates, 4, 2 };
    if (!strcmp(name, "GRU")) return (Cell){ "GRU", gru_gates, 3, 1 };
    return (Cell){ "RNN", rnn_gates, 1, 1 };
}

/* ---- Weights ---- */

/* Weight i, of which `rows` rows hold all gates side by side, reordered: the gates in ONNX' order,
 * of each its units, and of a unit all rows; or, for a bias, row after row. */
static CornuStatus put_gates(const CornuOnnxCall *call, int i, Cell cell, bool bias, int *value)
{
    const CornuShape shape = call->layer->weights[i]->type.shape;
    const int64_t    wide = shape.extent[shape.rank - 1], units = wide / cell.gates;
    const int64_t    rows = shape.rank == 2 ? shape.extent[0] : 1, room = bias ? 2 : rows;
    const float     *from = cornu__onnx_values(call->to, call->layer, i);
    int             *place = cornu__onnx_place(call->to, call->layer, i);
    float           *to = cornu__allocate((size_t)(room * wide), sizeof *to);
    if (!to) return CORNU_ERR_MEMORY;
    for (int64_t r = 0; r < rows; r++)
        for (int g = 0; g < cell.gates; g++)
            for (int64_t u = 0; u < units; u++) {
                const int64_t at = g * units + u;
                to[bias ? r * wide + at : at * rows + r] =
                    from[r * wide + cell.order[g] * units + u];
            }
    if (!*place)
        *place = cornu__onnx_constant(call->to,
                                      bias ? cornu_array(to, CORNU_F32, 1, 2 * wide)
                                           : cornu_array(to, CORNU_F32, 1, wide, rows));
    *value = *place;
    cornu__release(to);
    return CORNU_OK;
}

/* ---- Activations ---- */

/* The activations of a cell as ONNX lists them: names, each followed by NUL, and the parameters of
 * those that have any. */
typedef struct {
    char   names[64];
    double alpha[3], beta[3];
    int    count, alphas, betas;
    size_t used;
} Activations;

static CornuStatus add_activation(const CornuLayer *layer, const char *argument, Activations *to)
{
    static const struct {
        CornuActivation activation;
        const char     *name;
        int             numbers;
        double          alpha, beta;
    } known[] = {
        { CORNU_TANH, "Tanh", 0, 0, 0 }, { CORNU_SIGMOID, "Sigmoid", 0, 0, 0 },
        { CORNU_RELU, "Relu", 0, 0, 0 }, { CORNU_SOFTSIGN, "Softsign", 0, 0, 0 },
        { CORNU_SOFTPLUS, "Softplus", 0, 0, 0 }, { CORNU_ELU, "Elu", 1, 1.0, 0 },
        { CORNU_CELU, "Elu", 1, 1.0, 0 }, { CORNU_LEAKY_RELU, "LeakyRelu", 1, 0.2, 0 },
        { CORNU_LINEAR, "Affine", 2, 1.0, 0.0 },
        { CORNU_HARD_SIGMOID, "HardSigmoid", 2, 1.0 / 6.0, 0.5 },
        { CORNU_KERAS_2_HARD_SIGMOID, "HardSigmoid", 2, 0.2, 0.5 },
        { CORNU_SPARSE_SIGMOID, "HardSigmoid", 2, 0.5, 0.5 },
    };
    const CornuActivation activation = activation_of(layer, argument);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].activation != activation) continue;
        const size_t length = strlen(known[i].name) + 1;
        memcpy(to->names + to->used, known[i].name, length);
        to->used += length;
        to->count++;
        if (known[i].numbers > 0) to->alpha[to->alphas++] = known[i].alpha;
        if (known[i].numbers > 1) to->beta[to->betas++] = known[i].beta;
        return CORNU_OK;
    }
    char what[80];
    snprintf(what, sizeof what, "its %s %s", argument, cornu_activation_name(activation));
    return cornu__onnx_refuse(layer, what, "whose recurrent operators do not have it");
}

/* The activation of the gates, if there are any, and that of the cell, which an LSTM has twice. */
static CornuStatus activations_of(const CornuLayer *layer, Cell cell, Activations *to)
{
    *to = (Activations){ 0 };
    if (cell.gates > 1) CORNU__TRY(add_activation(layer, "recurrent_activation", to));
    for (int i = 0; i < cell.states; i++) CORNU__TRY(add_activation(layer, "activation", to));
    return CORNU_OK;
}

/* ---- The layers ---- */

static CornuStatus check(const CornuOnnxCall *call)
{
    if (flag(call->layer, "stateful"))
        return cornu__onnx_refuse(call->layer, "stateful", "which keep nothing from batch to "
                                  "batch");
    if (call->masks[0])
        return cornu__onnx_refuse(call->layer, "the mask of its input (of mask_zero, of Masking)",
                                  "whose recurrent operators have lengths instead");
    return CORNU_OK;
}

/* Sets the outputs of all steps (T, 1, B, U), in the order of time, and after them the states
 * (1, B, U). */
static CornuStatus recur(const CornuOnnxCall *call, int *first)
{
    CornuOnnx        *to = call->to;
    const CornuLayer *layer = call->layer;
    const Cell        cell = cell_of(layer);
    const int64_t     direction = 0;
    Activations       activations;
    int               in[7] = { 0 }, attributes = 3;
    CORNU__TRY(check(call));
    CORNU__TRY(activations_of(layer, cell, &activations));
    in[0] = cornu__onnx_transpose(to, call->in[0], (const int64_t[]){ 1, 0, 2 }, 3);
    CORNU__TRY(put_gates(call, 0, cell, false, &in[1]));
    CORNU__TRY(put_gates(call, 1, cell, false, &in[2]));
    if (given(layer, "use_bias")) CORNU__TRY(put_gates(call, 2, cell, true, &in[3]));
    for (int i = 1; i < call->in_count; i++)
        in[4 + i] = joined(to, "Unsqueeze", call->in[i], cornu__onnx_integers(to, &direction, 1));
    CornuOnnxAttribute list[6] = {
        { .name = "hidden_size", .whole = whole(layer, "units") },
        { .name = "direction", .text = flag(layer, "go_backwards") ? "reverse" : "forward" },
        { .name = "activations", .text = activations.names, .texts = activations.count },
    };
    if (activations.alphas)
        list[attributes++] = (CornuOnnxAttribute){
            .name = "activation_alpha", .numbers = activations.alpha, .count = activations.alphas };
    if (activations.betas)
        list[attributes++] = (CornuOnnxAttribute){
            .name = "activation_beta", .numbers = activations.beta, .count = activations.betas };
    if (cell.gates == 3)
        list[attributes++] = (CornuOnnxAttribute){ .name = "linear_before_reset",
                                                   .whole = given(layer, "reset_after") };
    *first = cornu__onnx_node(to, cell.operator, in, call->in_count > 1 ? 4 + call->in_count : 4,
                              list, attributes, 1 + cell.states);
    return CORNU_OK;
}

/* A state, (1, B, U), as (B, U). */
static int state_of(const CornuOnnxCall *call, int state)
{
    const int64_t direction = 0;
    return joined(call->to, "Squeeze", state, cornu__onnx_integers(call->to, &direction, 1));
}

/* (B, T, U), in the order of time even if it goes backwards, or the last output (B, U). */
static int output_of(const CornuOnnxCall *call, int first)
{
    const int64_t direction = 1;
    if (!flag(call->layer, "return_sequences")) return state_of(call, first + 1);
    const int y = joined(call->to, "Squeeze", first,
                         cornu__onnx_integers(call->to, &direction, 1));
    return cornu__onnx_transpose(call->to, y, (const int64_t[]){ 1, 0, 2 }, 3);
}

/* Keras returns the steps in the order of computation. */
static int reversed(CornuOnnx *to, int y)
{
    const int64_t last = -1, before_first = INT64_MIN, time = 1;
    const int in[] = { y, cornu__onnx_integers(to, &last, 1),
                       cornu__onnx_integers(to, &before_first, 1),
                       cornu__onnx_integers(to, &time, 1), cornu__onnx_integers(to, &last, 1) };
    return cornu__onnx_node(to, "Slice", in, 5, NULL, 0, 1);
}

static CornuStatus recurrent(const CornuOnnxCall *call)
{
    const CornuLayer *layer = call->layer;
    int               first;
    CORNU__TRY(recur(call, &first));
    *call->out = output_of(call, first);
    if (flag(layer, "go_backwards") && flag(layer, "return_sequences"))
        *call->out = reversed(call->to, *call->out);
    for (int i = 1; i < cornu_layer_outputs(layer); i++)
        call->out[i] = state_of(call, first + i);
    return CORNU_OK;
}

static int merged(CornuOnnx *to, CornuMerge merge, const int y[2])
{
    const CornuOnnxAttribute last = { .name = "axis", .whole = -1 };
    switch (merge) {
    case CORNU_MERGE_CONCAT: return cornu__onnx_node(to, "Concat", y, 2, &last, 1, 1);
    case CORNU_MERGE_SUM:    return two(to, "Add", y[0], y[1]);
    case CORNU_MERGE_MUL:    return two(to, "Mul", y[0], y[1]);
    case CORNU_MERGE_AVE:    return scaled(to, two(to, "Add", y[0], y[1]), 0.5);
    case CORNU_MERGE_NONE:   break;
    }
    return y[0];
}

/* Initial states and states are those of the forward layer, then those of the backward layer. */
static CornuStatus bidirectional(const CornuOnnxCall *call)
{
    const CornuLayer *layer = call->layer;
    const CornuMerge  merge = *(const CornuMerge *)cornu__onnx_argument(layer, "merge_mode");
    const int         given_states = (call->in_count - 1) / 2;
    int              *states = call->out + (merge == CORNU_MERGE_NONE ? 2 : 1), y[2];
    for (int i = 0; i < 2; i++) {
        CornuOnnxCall inner = *call;
        int           in[CORNU_MAX_LAYER_TENSORS] = { call->in[0] }, first;
        inner.layer = layer->inner[i];
        inner.in = in;
        inner.in_count = 1 + given_states;
        for (int k = 1; k <= given_states; k++) in[k] = call->in[i * given_states + k];
        CORNU__TRY(recur(&inner, &first));
        y[i] = output_of(&inner, first);
        for (int k = 1; k < cornu_layer_outputs(inner.layer); k++)
            *states++ = state_of(&inner, first + k);
    }
    call->out[0] = merged(call->to, merge, y);
    if (merge == CORNU_MERGE_NONE) call->out[1] = y[1];
    return CORNU_OK;
}

/* All steps of all rows become the rows of one batch. The mask bypasses the wrapped layer. */
static CornuStatus time_distributed(const CornuOnnxCall *call)
{
    const CornuShape  shape = call->shapes[0];
    const CornuLayer *layer = call->layer->inner[0];
    const int         none = CORNU_ONNX_NONE;
    CornuShape        rows = { .rank = shape.rank - 1, .extent = { CORNU_NONE } };
    int               y, mask;
    for (int i = 1; i < rows.rank; i++) rows.extent[i] = shape.extent[i + 1];
    const int x = cornu__onnx_reshape(call->to, call->in[0], rows);
    CORNU__TRY(call->to->layer(&(CornuOnnxCall){
        .to = call->to, .layer = layer, .in = &x, .masks = &none, .shapes = &rows,
        .dtypes = call->dtypes, .in_count = 1,
        .results = &layer->output, .out = &y, .out_masks = &mask,
    }));
    *call->out = cornu__onnx_reshape(call->to, y, call->results[0]);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_recurrent[] = {
    { "Bidirectional", bidirectional },
    { "GRU", recurrent },
    { "LSTM", recurrent },
    { "SimpleRNN", recurrent },
    { "TimeDistributed", time_distributed },
    { 0 },
};
