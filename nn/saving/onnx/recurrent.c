/* The functions "lstm", "gru" and "simple_rnn" as the operators LSTM, GRU and RNN. In ONNX time is
 * the first axis, and there is an axis of extent 1 for the direction. */
#include "recorded_internal.h"

#include <string.h>

#include "../../layers/rnn/recurrent_internal.h"

typedef CornuOnnxOp Op;

enum { X, KERNEL, RECURRENT_KERNEL, BIAS };

static const double *numbers_of(const Op *op) { return op->attributes->custom.numbers; }

/* ---- Activations ---- */

/* The activations of a cell as ONNX lists them: names, each followed by NUL, and the parameters of
 * those that have any. */
typedef struct {
    char   names[64];
    double alpha[3], beta[3];
    int    count, alphas, betas;
    size_t used;
} Activations;

/* False if ONNX' operators do not have it. */
static bool add_activation(CornuActivation activation, Activations *to)
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
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].activation != activation) continue;
        const size_t length = strlen(known[i].name) + 1;
        memcpy(to->names + to->used, known[i].name, length);
        to->used += length;
        to->count++;
        if (known[i].numbers > 0) to->alpha[to->alphas++] = known[i].alpha;
        if (known[i].numbers > 1) to->beta[to->betas++] = known[i].beta;
        return true;
    }
    return false;
}

/* The activation of the gates, if there are any, and that of the cell, which an LSTM has twice. */
static bool activations_of(const double *numbers, Activations *to)
{
    const CornuActivation activation = (CornuActivation)numbers[CORNU_RNN_ACTIVATION];
    const int             gates = (int)numbers[CORNU_RNN_GATES];
    *to = (Activations){ 0 };
    return (gates == 1 ||
            add_activation((CornuActivation)numbers[CORNU_RNN_GATE_ACTIVATION], to)) &&
           add_activation(activation, to) && (gates < 4 || add_activation(activation, to));
}

bool cornu__onnx_takes_recurrence(const CornuOpCall *call)
{
    const double *numbers = call->attributes->custom.numbers;
    Activations   activations;
    return numbers[CORNU_RNN_MASK] == 0.0 && activations_of(numbers, &activations);
}

/* ---- Operands ---- */

typedef struct {
    const char *operator;
    int         gates, states;
    int         order[4];   /* of ONNX' gates: Keras' i f c o are i o f c */
} Cell;

/* Weights (rows, gates U) as (1, gates U, rows); the bias, of one row or two, as (1, 2 gates U). */
static int gates_of(const Op *op, const Cell *cell, int operand, bool bias)
{
    const CornuOnnxForm *from = cornu__onnx_form_of(op->to, cornu__onnx_operand(op, operand));
    if (!from) return CORNU_ONNX_NONE;
    CornuOnnxForm form = *from;
    const int64_t wide = form.own.extent[form.own.rank - 1], rows = form.own.extent[0];
    form.blocks = cell->order;
    form.block_count = cell->gates;
    form.shape = bias ? cornu_shape(1, 2 * wide) : cornu_shape(1, wide, rows);
    for (int i = 0; i < 2 && !bias; i++) form.order[i] = 1 - i;
    return cornu__onnx_form(op->to, form);
}

/* (B, U) as (1, B, U) */
static int with_direction(const Op *op, int operand)
{
    const int64_t direction = 0;
    const int     state = cornu__onnx_operand(op, operand);
    return joined(op->to, "Unsqueeze", state, cornu__onnx_integers(op->to, &direction, 1));
}

/* ---- Nodes ---- */

/* Of the operator's results (T, 1, B, U) and (1, B, U) those that are read. */
static CornuStatus put_results(const Op *op, const Cell *cell, int y)
{
    static const int64_t first = 0, second = 1;
    CornuOnnx           *to = op->to;
    for (int i = 0; i <= cell->states; i++) {
        if (!cornu__onnx_is_read(op, i)) continue;
        int value = joined(to, "Squeeze", y + i,
                           cornu__onnx_integers(to, i ? &first : &second, 1));
        if (!i) value = cornu__onnx_transpose(to, value, (const int64_t[]){ 1, 0, 2 }, 3);
        cornu__onnx_set_result(op, i, value);
    }
    return CORNU_OK;
}

static CornuStatus put(const Op *op, const Cell *cell)
{
    CornuOnnx    *to = op->to;
    const double *numbers = numbers_of(op);
    const bool    biased = numbers[CORNU_RNN_BIAS] != 0.0;
    const bool    starts = numbers[CORNU_RNN_STATES] != 0.0;
    Activations   activations;
    int           in[7] = { 0 }, attributes = 3;
    activations_of(numbers, &activations);
    for (int i = KERNEL; i <= RECURRENT_KERNEL; i++)
        if (!cornu__onnx_form_of(op->to, cornu__onnx_operand(op, i)))
            return cornu__onnx_refuse_op(op, "of kernels that are not weights");
    in[0] = cornu__onnx_transpose(to, cornu__onnx_operand(op, X), (const int64_t[]){ 1, 0, 2 }, 3);
    in[1] = gates_of(op, cell, KERNEL, false);
    in[2] = gates_of(op, cell, RECURRENT_KERNEL, false);
    if (biased) in[3] = gates_of(op, cell, BIAS, true);
    for (int i = 0; i < cell->states && starts; i++)
        in[5 + i] = with_direction(op, BIAS + biased + i);
    CornuOnnxAttribute list[6] = {
        { .name = "hidden_size",
          .whole = op->program->program->values[op->in[RECURRENT_KERNEL]].type.shape.extent[0] },
        { .name = "direction", .text = numbers[CORNU_RNN_REVERSE] != 0.0 ? "reverse" : "forward" },
        { .name = "activations", .text = activations.names, .texts = activations.count },
    };
    if (activations.alphas)
        list[attributes++] = (CornuOnnxAttribute){
            .name = "activation_alpha", .numbers = activations.alpha, .count = activations.alphas };
    if (activations.betas)
        list[attributes++] = (CornuOnnxAttribute){
            .name = "activation_beta", .numbers = activations.beta, .count = activations.betas };
    if (cell->gates == 3)
        list[attributes++] = (CornuOnnxAttribute){ .name = "linear_before_reset",
                                                   .whole = numbers[CORNU_RNN_RESET_AFTER] != 0.0 };
    return put_results(op, cell, cornu__onnx_node(to, cell->operator, in,
                                                  starts ? 5 + cell->states : 4, list, attributes,
                                                  1 + cell->states));
}

CornuStatus cornu__onnx_lstm(const CornuOnnxOp *op)
{
    static const Cell cell = { "LSTM", 4, 2, { 0, 3, 1, 2 } };
    return put(op, &cell);
}

CornuStatus cornu__onnx_gru(const CornuOnnxOp *op)
{
    static const Cell cell = { "GRU", 3, 1, { 0, 1, 2 } };
    return put(op, &cell);
}

CornuStatus cornu__onnx_simple_rnn(const CornuOnnxOp *op)
{
    static const Cell cell = { "RNN", 1, 1, { 0 } };
    return put(op, &cell);
}
