/* The operators LSTM, GRU and RNN. In ONNX time is the first axis, and there is an axis of extent 1
 * for the direction; a kernel is (1, gates units, rows). */
#include "recurrent_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"

/* Keras' gates i f c o are ONNX' i o f c; z r h are the same. */
static const int lstm_gates[] = { 0, 3, 1, 2 }, gru_gates[] = { 0, 1, 2 }, rnn_gates[] = { 0 };

typedef struct {
    const char *operator;
    const int  *order;
    int         gates, states;
} Cell;

static Cell cell_of(const CornuLayer *cell)
{
    switch (cornu__onnx_gates(cell)) {
    case 4:  return (Cell){ "LSTM", lstm_gates, 4, 2 };
    case 3:  return (Cell){ "GRU", gru_gates, 3, 1 };
    default: return (Cell){ "RNN", rnn_gates, 1, 1 };
    }
}

/* ---- Weights ---- */

/* Weight i, of which `rows` rows hold all gates side by side, reordered: the gates in ONNX' order,
 * of each its units, and of a unit all rows; or, for a bias, row after row. */
static CornuStatus put_gates(const CornuOnnxRun *run, int i, Cell cell, bool bias, int *value)
{
    const CornuShape shape = run->cell->weights[i]->type.shape;
    const int64_t    wide = shape.extent[shape.rank - 1], units = wide / cell.gates;
    const int64_t    rows = shape.rank == 2 ? shape.extent[0] : 1, room = bias ? 2 : rows;
    const float     *from = cornu__onnx_values(run->to, run->cell, i);
    int             *place = cornu__onnx_place(run->to, run->cell, i);
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
        *place = cornu__onnx_constant(run->to,
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

/* False if ONNX' operators do not have it. */
static bool add_activation(const CornuLayer *layer, const char *argument, Activations *to)
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
        return true;
    }
    return false;
}

/* The activation of the gates, if there are any, and that of the cell, which an LSTM has twice. */
static bool activations_of(const CornuLayer *layer, Cell cell, Activations *to)
{
    *to = (Activations){ 0 };
    bool known = cell.gates == 1 || add_activation(layer, "recurrent_activation", to);
    for (int i = 0; i < cell.states; i++)
        known = known && add_activation(layer, "activation", to);
    return known;
}

/* ---- Runs ---- */

bool cornu__onnx_has_operator(const CornuOnnxRun *run)
{
    Activations activations;
    return run->mask == CORNU_ONNX_NONE &&
           activations_of(run->cell, cell_of(run->cell), &activations);
}

/* A state, (1, B, U), as (B, U). */
static int state_of(CornuOnnx *to, int state)
{
    const int64_t direction = 0;
    return joined(to, "Squeeze", state, cornu__onnx_integers(to, &direction, 1));
}

CornuStatus cornu__onnx_run_operator(CornuOnnxRun *run)
{
    CornuOnnx        *to = run->to;
    const CornuLayer *layer = run->cell;
    const Cell        cell = cell_of(layer);
    const int64_t     direction = 0, of_all = 1;
    Activations       activations;
    int               in[7] = { 0 }, attributes = 3;
    activations_of(layer, cell, &activations);
    in[0] = cornu__onnx_transpose(to, run->x, (const int64_t[]){ 1, 0, 2 }, 3);
    CORNU__TRY(put_gates(run, 0, cell, false, &in[1]));
    CORNU__TRY(put_gates(run, 1, cell, false, &in[2]));
    if (given(layer, "use_bias")) CORNU__TRY(put_gates(run, 2, cell, true, &in[3]));
    for (int i = 0; i < cell.states && run->first; i++)
        in[5 + i] = joined(to, "Unsqueeze", run->first[i],
                           cornu__onnx_integers(to, &direction, 1));
    CornuOnnxAttribute list[6] = {
        { .name = "hidden_size", .whole = whole(layer, "units") },
        { .name = "direction", .text = run->reverse ? "reverse" : "forward" },
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
    const int y = cornu__onnx_node(to, cell.operator, in, run->first ? 5 + cell.states : 4, list,
                                   attributes, 1 + cell.states);
    for (int i = 0; i < cell.states; i++)
        if (run->wanted_states || (i == 0 && !run->wanted_steps))
            run->last[i] = state_of(to, y + 1 + i);
    if (!run->wanted_steps) return CORNU_OK;
    const int steps = joined(to, "Squeeze", y, cornu__onnx_integers(to, &of_all, 1));
    run->y = cornu__onnx_transpose(to, steps, (const int64_t[]){ 1, 0, 2 }, 3);
    return CORNU_OK;
}
