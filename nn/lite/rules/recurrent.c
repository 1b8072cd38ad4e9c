/*
 * LSTM, GRU, SimpleRNN and their wrappers, unrolled: LiteRT's own operators of sequences keep
 * states from call to call, in variables of one batch size. The products of all steps with the
 * kernel are one operator; the first step has no product with the states, which are zeros.
 *
 *     LSTM       i f g o = x W + h U + b;  c = f c + i g;  h = o tanh(c)
 *     GRU        z r n = x W + b, z' r' n' = h U + b';  h = z h + (1 - z) tanh(n + r n')
 *                without reset_after: tanh(n + (r h) U_n)
 *     SimpleRNN  h = tanh(x W + h U + b)
 *
 * Source: keras/src/layers/rnn/lstm.py, gru.py, simple_rnn.py.
 */
#include "rules_internal.h"

#include "../../../device/memory_internal.h"
#include "../../layers/rnn/recurrent_internal.h"

#include <string.h>

typedef struct {
    CornuLite        *to;
    const CornuLayer *layer;
    int64_t           units;
    int               gates;             /* 4: LSTM, 3: GRU, 1: SimpleRNN */
    bool              reset_after;       /* of a GRU */
    int               weights, rest;     /* of the states (G U, U), and those of a GRU's n alone */
    int               bias;              /* of the states' products, or none */
    int               h, c;              /* states; none: zeros */
} Run;

/* Columns first to last - 1 of weight i, (K, N), as rows of a constant. */
static int columns(const Run *run, int i, int64_t first, int64_t last)
{
    const CornuShape own = run->layer->weights[i]->type.shape;
    const int64_t    K = own.extent[0], N = own.extent[1];
    const float     *from = cornu__lite_values(run->to, run->layer, i);
    const int        made = cornu__lite_room(run->to, "recurrent_kernel",
                                             cornu_shape(last - first, K));
    float           *w = cornu__lite_data(run->to, made);
    for (int64_t n = first; w && n < last; n++)
        for (int64_t k = 0; k < K; k++) *w++ = from[k * N + n];
    return made;
}

/* Row i of the bias, (N) or (2, N); NULL without. */
static const float *bias_row(const Run *run, int i)
{
    const CornuLayer *layer = run->layer;
    if (!given(layer, "use_bias")) return NULL;
    return cornu__lite_values(run->to, layer, 2) + i * run->gates * run->units;
}

static int vector(const Run *run, const float *values, int64_t count)
{
    const int made = cornu__lite_room(run->to, "bias", cornu_shape(count));
    float    *to = cornu__lite_data(run->to, made);
    if (to && values) memcpy(to, values, (size_t)count * sizeof *to);
    return made;
}

/* x W + b, with W (N, K) and N numbers in the last axis. */
static int product(const Run *run, int x, int weights, int bias)
{
    CornuShape             shape = shape_of(run->to, x);
    const CornuLiteOptions options = { .keep_dims = shape.rank > 2 };
    const int              in[] = { x, weights, bias };
    if (weights >= 0) shape.extent[shape.rank - 1] = shape_of(run->to, weights).extent[0];
    return cornu__lite_node(run->to, CORNU_LITE_FULLY_CONNECTED, in, bias < 0 ? 2 : 3, shape,
                            &options);
}

/* The operator with `count` results of this shape; *out is the first, the others come after it. */
static CornuStatus several(CornuLite *to, CornuLiteCode code, const int *in, int in_count,
                           CornuShape shape, int count, const CornuLiteOptions *options, int *out)
{
    int *made = cornu__allocate((size_t)count, sizeof *made);
    if (!made) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        made[i] = cornu__lite_add_tensor(to->graph, to->name, CORNU_LITE_F32, shape);
    cornu__lite_add_operator(to->graph, code, in, in_count, made, count, options);
    *out = made[0];
    cornu__release(made);
    return to->graph->status;
}

/* The gates of a step, (B, G U), as G values (B, U). */
static CornuStatus split(const Run *run, int x, int count, int *out)
{
    const int32_t          axis = 1;
    const CornuLiteOptions options = { .count = count };
    const int in[] = { cornu__lite_add_constant(run->to->graph, "axis", CORNU_LITE_I32,
                                                (CornuShape){ 0 }, &axis), x };
    if (count == 1) *out = x;
    if (count == 1) return CORNU_OK;
    return several(run->to, CORNU_LITE_SPLIT, in, 2, cornu_shape(CORNU_NONE, run->units), count,
                   &options, out);
}

static CornuStatus activate(const Run *run, const char *which, int x, int *y)
{
    const CornuActivation activation = activation_of(run->layer, which);
    if (cornu__activation_layer(activation))
        return cornu__lite_refuse(run->layer, "a layer as activation",
                                  "whose recurrent layers take activations by name");
    return cornu__lite_activate(run->to, activation, x, y);
}

static int two(const Run *run, CornuLiteCode code, int a, int b)
{
    return cornu__lite_two(run->to, code, a, b);
}

static CornuStatus lstm_step(Run *run, int x)
{
    int gates, value[4], curve;
    if (run->h >= 0) x = two(run, CORNU_LITE_ADD, x, product(run, run->h, run->weights, -1));
    CORNU__TRY(split(run, x, 4, &gates));
    for (int i = 0; i < 4; i++)
        CORNU__TRY(activate(run, i == 2 ? "activation" : "recurrent_activation", gates + i,
                            &value[i]));
    int c = two(run, CORNU_LITE_MUL, value[0], value[2]);
    if (run->c >= 0)
        c = two(run, CORNU_LITE_ADD, two(run, CORNU_LITE_MUL, value[1], run->c), c);
    CORNU__TRY(activate(run, "activation", c, &curve));
    run->c = c;
    run->h = two(run, CORNU_LITE_MUL, value[3], curve);
    return CORNU_OK;
}

/* The gate: what the input adds and what the states add, which for zeros is the bias alone. */
static CornuStatus gate(const Run *run, int x, int of_states, int *y)
{
    if (of_states >= 0) x = two(run, CORNU_LITE_ADD, x, of_states);
    return activate(run, "recurrent_activation", x, y);
}

/* z h + (1 - z) n is n + z (h - n). */
static CornuStatus gru_step(Run *run, int x)
{
    const float *bias = run->reset_after ? bias_row(run, 1) : NULL;
    int          gates, states = -1, of[3] = { -1, -1, -1 }, z, r, n;
    CORNU__TRY(split(run, x, 3, &gates));
    if (run->h >= 0) {
        const int all = product(run, run->h, run->weights, run->bias);
        CORNU__TRY(split(run, all, run->reset_after ? 3 : 2, &states));
        for (int i = 0; i < 2 + run->reset_after; i++) of[i] = states + i;
    }
    for (int i = 0; run->h < 0 && bias && i < 3; i++)
        of[i] = vector(run, bias + i * run->units, run->units);
    CORNU__TRY(gate(run, gates, of[0], &z));
    CORNU__TRY(gate(run, gates + 1, of[1], &r));
    if (!run->reset_after && run->h >= 0)
        of[2] = product(run, two(run, CORNU_LITE_MUL, r, run->h), run->rest, -1);
    else if (of[2] >= 0)
        of[2] = two(run, CORNU_LITE_MUL, r, of[2]);
    if (of[2] < 0) n = gates + 2;
    else n = two(run, CORNU_LITE_ADD, gates + 2, of[2]);
    CORNU__TRY(activate(run, "activation", n, &n));
    if (run->h < 0) {
        run->h = two(run, CORNU_LITE_SUB, n, two(run, CORNU_LITE_MUL, z, n));
        return CORNU_OK;
    }
    const int change = two(run, CORNU_LITE_MUL, z, two(run, CORNU_LITE_SUB, run->h, n));
    run->h = two(run, CORNU_LITE_ADD, n, change);
    return CORNU_OK;
}

static CornuStatus simple_step(Run *run, int x)
{
    if (run->h >= 0) x = two(run, CORNU_LITE_ADD, x, product(run, run->h, run->weights, -1));
    return activate(run, "activation", x, &run->h);
}

/* The weights that the steps share, and x W + b of all steps, (B, T, G U). */
static int prepare(Run *run, int x)
{
    const int64_t all = run->gates * run->units;
    const float  *bias = bias_row(run, 0);
    const bool    apart = run->gates == 3 && !run->reset_after;
    const int     kernel = columns(run, 0, 0, all);
    const int     y = product(run, x, kernel, vector(run, bias, all));
    run->weights = columns(run, 1, 0, apart ? 2 * run->units : all);
    run->rest = apart ? columns(run, 1, 2 * run->units, all) : CORNU_LITE_NONE;
    run->bias = CORNU_LITE_NONE;
    if (run->reset_after && bias) run->bias = vector(run, bias_row(run, 1), all);
    return y;
}

/* Steps in the order of computation, (B, T, U), of the last T values of *steps. */
static int packed(const Run *run, const int *steps, int count)
{
    const CornuLiteOptions options = { .count = count, .axis = 1 };
    return cornu__lite_node(run->to, CORNU_LITE_PACK, steps, count,
                            cornu_shape(CORNU_NONE, count, run->units), &options);
}

/* `ahead`: steps are returned in the order of time, for the backward layer of Bidirectional. */
static CornuStatus unroll(Run *run, int x, int64_t T, bool ahead, int *steps, int *out)
{
    const CornuLayer      *layer = run->layer;
    const bool             back = flag(layer, "go_backwards");
    const CornuLiteOptions unpack = { .count = (int32_t)T, .axis = 1 };
    const int              products = prepare(run, x);
    int                    first;
    CORNU__TRY(several(run->to, CORNU_LITE_UNPACK, &products, 1,
                       cornu_shape(CORNU_NONE, run->gates * run->units), (int)T, &unpack, &first));
    for (int64_t t = 0; t < T; t++) {
        const int step = first + (int)(back ? T - 1 - t : t);
        CORNU__TRY(run->gates == 4   ? lstm_step(run, step)
                   : run->gates == 3 ? gru_step(run, step) : simple_step(run, step));
        steps[ahead && back ? T - 1 - t : t] = run->h;
    }
    out[0] = flag(layer, "return_sequences") ? packed(run, steps, (int)T) : run->h;
    if (!flag(layer, "return_state")) return CORNU_OK;
    out[1] = run->h;
    if (run->gates == 4) out[2] = run->c;
    return CORNU_OK;
}

/* The rule of a layer, on x and its initial states, in[1], … */
static CornuStatus run_layer(CornuLite *to, const CornuLayer *layer, const int *in, int in_count,
                             bool ahead, int *out)
{
    const char   *kind = layer->kind->class_name;
    const int64_t T = shape_of(to, in[0]).extent[1];
    Run           run = {
        .to = to, .layer = layer, .h = in_count > 1 ? in[1] : CORNU_LITE_NONE,
        .c = in_count > 2 ? in[2] : CORNU_LITE_NONE,
        .gates = !strcmp(kind, "LSTM") ? 4 : !strcmp(kind, "GRU") ? 3 : 1,
    };
    if (run.gates == 1 && strcmp(kind, "SimpleRNN") != 0)
        return cornu__lite_refuse(layer, kind, "which this version has no operators for");
    run.units = whole(layer, "units");
    run.reset_after = run.gates == 3 && given(layer, "reset_after");
    int *steps = cornu__allocate((size_t)T, sizeof *steps);
    if (!steps) return CORNU_ERR_MEMORY;
    const CornuStatus status = unroll(&run, in[0], T, ahead, steps, out);
    cornu__release(steps);
    return status;
}

/* States from batch to batch are not in files: a stateful layer begins with zeros. */
static CornuStatus recurrent(const CornuLiteCall *call)
{
    return run_layer(call->to, call->layer, call->in, call->in_count, false, call->out);
}

/* ---- Wrappers ---- */

static int merged(CornuLite *to, CornuMerge merge, const int y[2], CornuShape shape)
{
    const CornuLiteOptions last = { .axis = shape.rank - 1 };
    switch (merge) {
    case CORNU_MERGE_CONCAT:
        return cornu__lite_node(to, CORNU_LITE_CONCATENATION, y, 2, shape, &last);
    case CORNU_MERGE_SUM: return cornu__lite_two(to, CORNU_LITE_ADD, y[0], y[1]);
    case CORNU_MERGE_MUL: return cornu__lite_two(to, CORNU_LITE_MUL, y[0], y[1]);
    case CORNU_MERGE_AVE:
        return cornu__lite_with(to, CORNU_LITE_MUL,
                                cornu__lite_two(to, CORNU_LITE_ADD, y[0], y[1]), 0.5);
    case CORNU_MERGE_NONE: break;
    }
    return y[0];
}

/* Initial states and states are those of the forward layer, then those of the backward layer. */
static CornuStatus bidirectional(const CornuLiteCall *call)
{
    const CornuLayer *layer = call->layer;
    const CornuMerge  merge = *(const CornuMerge *)cornu__layer_argument(layer, "merge_mode");
    const int         given_states = (call->in_count - 1) / 2;
    int              *states = call->out + (merge == CORNU_MERGE_NONE ? 2 : 1), y[2];
    for (int i = 0; i < 2; i++) {
        int in[CORNU_MAX_LAYER_TENSORS] = { call->in[0] }, out[CORNU_MAX_LAYER_TENSORS];
        for (int k = 1; k <= given_states; k++) in[k] = call->in[i * given_states + k];
        CORNU__TRY(run_layer(call->to, layer->inner[i], in, 1 + given_states, true, out));
        y[i] = out[0];
        for (int k = 1; k < cornu_layer_outputs(layer->inner[i]); k++) *states++ = out[k];
    }
    call->out[0] = merged(call->to, merge, y, call->results[0]);
    if (merge == CORNU_MERGE_NONE) call->out[1] = y[1];
    return CORNU_OK;
}

/* All steps of all rows become the rows of one batch. */
static CornuStatus time_distributed(const CornuLiteCall *call)
{
    const CornuShape shape = call->shapes[0];
    CornuLayer      *layer = call->layer->inner[0];
    CornuShape       rows = { .rank = shape.rank - 1, .extent = { CORNU_NONE } };
    CornuType        made[CORNU_MAX_LAYER_TENSORS];
    int              y;
    for (int i = 1; i < rows.rank; i++) rows.extent[i] = shape.extent[i + 1];
    const CornuType type = cornu_type_from(CORNU_F32, rows);
    const int       x = cornu__lite_reshape(call->to, call->in[0], rows);
    CORNU__TRY(cornu__layer_trace(layer, &type, 1, made));
    CORNU__TRY(cornu__lite_layer(&(CornuLiteCall){
        .to = call->to, .layer = layer, .in = &x, .shapes = &rows, .in_count = 1,
        .results = &made[0].shape, .out = &y,
    }));
    *call->out = cornu__lite_reshape(call->to, y, call->results[0]);
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_recurrent[] = {
    { "Bidirectional", bidirectional },
    { "GRU", recurrent },
    { "LSTM", recurrent },
    { "SimpleRNN", recurrent },
    { "TimeDistributed", time_distributed },
    { 0 },
};
