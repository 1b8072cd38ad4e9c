/*
 * The functions "lstm", "gru" and "simple_rnn", unrolled: LiteRT's own operators of sequences keep
 * states from call to call, in variables of one batch size. The products of all steps with the
 * kernel are one operator; the first step has no product with states that are zeros.
 *
 *     lstm        i f g o = x W + h U + b;  c = f c + i g;  h = o tanh(c)
 *     gru         z r n = x W + b, z' r' n' = h U + b';  h = z h + (1 - z) tanh(n + r n')
 *                 without reset_after: tanh(n + (r h) U_n)
 *     simple_rnn  h = tanh(x W + h U + b)
 *
 * Source: keras/src/layers/rnn/lstm.py, gru.py, simple_rnn.py.
 */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../layers/rnn/recurrent_internal.h"

#include <string.h>

typedef CornuLiteOp Op;

enum { X, KERNEL, RECURRENT_KERNEL, BIAS };

typedef struct {
    CornuLite    *to;
    const double *numbers;
    int           operands[BIAS + 1];   /* in full; the bias may be none */
    int64_t       units;
    int           gates;                /* 4: LSTM, 3: GRU, 1: SimpleRNN */
    bool          reset_after;          /* of a GRU */
    int           weights, rest;        /* of the states (G U, U), and those of a GRU's n alone */
    int           bias;                 /* of the states' products, or none */
    int           h, c;                 /* states; none: zeros */
} Run;

/* Columns first to last - 1 of a constant (K, N), as rows of another. */
static int columns(const Run *run, int operand, int64_t first, int64_t last)
{
    const int        from = run->operands[operand];
    const CornuShape own = shape_of(run->to, from);
    const int64_t    K = own.extent[0], N = own.extent[1];
    const int        made = cornu__lite_room(run->to, "recurrent_kernel",
                                             cornu_shape(last - first, K));
    const float     *values = cornu__lite_data(run->to, from);
    float           *w = cornu__lite_data(run->to, made);
    for (int64_t n = first; w && values && n < last; n++)
        for (int64_t k = 0; k < K; k++) *w++ = values[k * N + n];
    return made;
}

/* Row i of the bias, (N) or (2, N); NULL without. */
static const float *bias_row(const Run *run, int i)
{
    const float *values = cornu__lite_data(run->to, run->operands[BIAS]);
    return values ? values + i * run->gates * run->units : NULL;
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

static CornuStatus activate(const Run *run, int which, int x, int *y)
{
    return cornu__lite_activate(run->to, (CornuActivation)run->numbers[which], x, y);
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
        CORNU__TRY(activate(run, i == 2 ? CORNU_RNN_ACTIVATION : CORNU_RNN_GATE_ACTIVATION,
                            gates + i, &value[i]));
    int c = two(run, CORNU_LITE_MUL, value[0], value[2]);
    if (run->c >= 0)
        c = two(run, CORNU_LITE_ADD, two(run, CORNU_LITE_MUL, value[1], run->c), c);
    CORNU__TRY(activate(run, CORNU_RNN_ACTIVATION, c, &curve));
    run->c = c;
    run->h = two(run, CORNU_LITE_MUL, value[3], curve);
    return CORNU_OK;
}

/* The gate: what the input adds and what the states add, which for zeros is the bias alone. */
static CornuStatus gate(const Run *run, int x, int of_states, int *y)
{
    if (of_states >= 0) x = two(run, CORNU_LITE_ADD, x, of_states);
    return activate(run, CORNU_RNN_GATE_ACTIVATION, x, y);
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
    CORNU__TRY(activate(run, CORNU_RNN_ACTIVATION, n, &n));
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
    return activate(run, CORNU_RNN_ACTIVATION, x, &run->h);
}

/* The weights that the steps share, and x W + b of all steps, (B, T, G U). */
static int prepare(Run *run)
{
    const int64_t all = run->gates * run->units;
    const float  *bias = bias_row(run, 0);
    const bool    apart = run->gates == 3 && !run->reset_after;
    const int     kernel = columns(run, KERNEL, 0, all);
    const int     y = product(run, run->operands[X], kernel, vector(run, bias, all));
    run->weights = columns(run, RECURRENT_KERNEL, 0, apart ? 2 * run->units : all);
    run->rest = apart ? columns(run, RECURRENT_KERNEL, 2 * run->units, all) : CORNU_LITE_NONE;
    run->bias = CORNU_LITE_NONE;
    if (run->reset_after && bias) run->bias = vector(run, bias_row(run, 1), all);
    return y;
}

/* Whether something reads a value. */
static bool is_read(const CornuProgram *program, CornuValue value)
{
    bool read = false;
    for (int i = 0; i < program->output_count; i++) read |= program->outputs[i].value == value;
    for (int i = 0; i < program->op_count && !read; i++)
        for (int k = 0; k < program->ops[i].in_count; k++)
            read |= cornu_program_operands(program, &program->ops[i])[k] == value;
    return read;
}

/* Sets the results; `steps` has room for the h of each step. */
static CornuStatus unroll(const Op *op, Run *run, int64_t T, int *steps)
{
    const bool             back = run->numbers[CORNU_RNN_REVERSE] != 0.0;
    const CornuLiteOptions unpack = { .count = (int32_t)T, .axis = 1 };
    const CornuLiteOptions pack = { .count = (int32_t)T, .axis = 1 };
    const int              products = prepare(run);
    int                   *results = &op->program->tensors[op->out], first;
    CORNU__TRY(several(run->to, CORNU_LITE_UNPACK, &products, 1,
                       cornu_shape(CORNU_NONE, run->gates * run->units), (int)T, &unpack, &first));
    for (int64_t i = 0; i < T; i++) {
        const int64_t t = back ? T - 1 - i : i;
        const int     step = first + (int)t;
        CORNU__TRY(run->gates == 4   ? lstm_step(run, step)
                   : run->gates == 3 ? gru_step(run, step) : simple_step(run, step));
        steps[t] = run->h;
    }
    if (is_read(op->program->program, op->out))
        results[0] = cornu__lite_node(run->to, CORNU_LITE_PACK, steps, (int)T,
                                      cornu_shape(CORNU_NONE, T, run->units), &pack);
    results[1] = run->h;
    if (run->gates == 4) results[2] = run->c;
    return run->to->graph->status;
}

/* Activations that are layers are ops. */
bool cornu__lite_takes_recurrence(const CornuOpCall *call)
{
    const double *numbers = call->attributes->custom.numbers;
    return numbers[CORNU_RNN_MASK] == 0.0 &&
           !cornu__activation_layer((CornuActivation)numbers[CORNU_RNN_ACTIVATION]) &&
           !cornu__activation_layer((CornuActivation)numbers[CORNU_RNN_GATE_ACTIVATION]);
}

CornuStatus cornu__lite_recurrence(const CornuLiteOp *op)
{
    const double *numbers = op->attributes->custom.numbers;
    const bool    biased = numbers[CORNU_RNN_BIAS] != 0.0;
    Run           run = { .to = op->to, .numbers = numbers,
                          .operands = { [BIAS] = CORNU_LITE_NONE },
                          .gates = (int)numbers[CORNU_RNN_GATES], .h = CORNU_LITE_NONE,
                          .c = CORNU_LITE_NONE };
    for (int i = 0; i < BIAS + biased; i++) CORNU__TRY(cornu__lite_full(op, i, &run.operands[i]));
    if (numbers[CORNU_RNN_STATES] != 0.0) {
        CORNU__TRY(cornu__lite_full(op, BIAS + biased, &run.h));
        if (run.gates == 4) CORNU__TRY(cornu__lite_full(op, BIAS + biased + 1, &run.c));
    }
    run.units = shape_of(op->to, run.operands[RECURRENT_KERNEL]).extent[0];
    run.reset_after = run.gates == 3 && numbers[CORNU_RNN_RESET_AFTER] != 0.0;
    const int64_t T = shape_of(op->to, run.operands[X]).extent[1];
    int *steps = cornu__allocate((size_t)T, sizeof *steps);
    if (!steps) return CORNU_ERR_MEMORY;
    const CornuStatus status = unroll(op, &run, T, steps);
    cornu__release(steps);
    return status;
}
