/* LSTM, GRU and SimpleRNN as cells: the input products of all steps at once, then the recurrence as
 * one op. */
#include <stdio.h>

#include "recurrent_internal.h"

#include "../../../tensor/function_internal.h"
#include "../../../tensor/functions/functions_internal.h"

static bool is_lstm(const CornuLayer *layer) { return cornu__cell(layer) == &cornu__lstm_gates; }
static bool is_gru(const CornuLayer *layer) { return cornu__cell(layer) == &cornu__gru_gates; }

int cornu__gates_count(const CornuLayer *layer)
{
    return is_lstm(layer) ? 4 : is_gru(layer) ? 3 : 1;
}

static const CornuRecurrentConfig *config_of(const CornuLayer *layer)
{
    return &((const CornuRecurrent *)layer)->config;
}

/* ---- Weights ---- */

enum { KERNEL, RECURRENT_KERNEL, BIAS };

/* Whether the recurrent product has its own bias, the second of two rows. */
static bool has_two_biases(const CornuLayer *layer)
{
    return is_gru(layer) && !config_of(layer)->no_bias && !config_of(layer)->no_reset_after;
}

/* "lstm_cell/kernel" of an LSTM, "kernel" of an LSTMCell */
static CornuStatus add_weight(CornuLayer *layer, const char *name, CornuShape shape,
                              CornuInitializer initializer, CornuRegularizer regularizer,
                              CornuConstraint constraint)
{
    char path[sizeof layer->class_label + 32];
    snprintf(path, sizeof path, "%s_cell/%s", layer->class_label, name);
    CORNU__TRY(cornu_layer_weight(layer, cornu__is_cell(layer) ? name : path, shape, initializer,
                                  false));
    layer->weights[layer->own_count - 1]->blocks = cornu__gates_count(layer);
    return cornu_layer_weight_rules(layer, regularizer, constraint);
}

/* Ones for the forget gate, so that an untrained layer remembers.
 * Source: Jozefowicz, Zaremba and Sutskever, "An Empirical Exploration of Recurrent Network
 * Architectures", ICML 2015. */
CornuStatus cornu__forget_bias(CornuWeight *bias)
{
    const int64_t units = bias->type.shape.extent[0] / 4;
    float        *values = cornu__allocate((size_t)(4 * units), sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    const CornuArray array = cornu_array_from(values, bias->type);
    CornuStatus      status = cornu_weight_read(bias, array);
    for (int64_t u = units; u < 2 * units; u++) values[u] = 1.0f;
    if (!status) status = cornu_weight_write(bias, array);
    cornu__release(values);
    return status;
}

CornuStatus cornu__gates_build(CornuLayer *layer, int64_t channels)
{
    const CornuRecurrentConfig *config = config_of(layer);
    const int64_t wide = cornu__gates_count(layer) * config->units;
    CORNU__TRY(add_weight(layer, "kernel", cornu_shape(channels, wide),
                          config->kernel_initializer, config->kernel_regularizer,
                          config->kernel_constraint));
    CORNU__TRY(add_weight(layer, "recurrent_kernel", cornu_shape(config->units, wide),
                          config->recurrent_initializer, config->recurrent_regularizer,
                          config->recurrent_constraint));
    if (config->no_bias) return CORNU_OK;
    CORNU__TRY(add_weight(layer, "bias", has_two_biases(layer) ? cornu_shape(2, wide)
                                                               : cornu_shape(wide),
                          config->bias_initializer, config->bias_regularizer,
                          config->bias_constraint));
    return is_lstm(layer) && !config->no_unit_forget_bias ? cornu__forget_bias(layer->weights[BIAS])
                                                        : CORNU_OK;
}

/* ---- Dropout ---- */

/* Dropout factors for the input, (B, 1, C) or per gate, and for the state, (B, G U); NULL without
 * dropout. All are slices of one random tensor. */
typedef struct {
    CornuTensor *input[4], *state;
    int          input_count;
} Dropped;

/* 0 where the random number is below rate, else 1 / (1 - rate). */
CornuTensor *cornu__dropout_factors(const CornuLayer *layer, CornuTensor *uniform, int64_t first,
                                    int64_t count, double rate)
{
    const int64_t starts[] = { 0, first };
    const int64_t sizes[] = { cornu_tensor_shape(uniform).extent[0], count };
    CornuTensor  *u = cornu_op_slice(uniform, starts, sizes);
    CornuTensor  *low = cornu_op_compare(u, CORNU_LESS, cornu_op_constant_like(u, rate));
    CornuTensor  *kept = cornu_op_constant_like(u, 1.0 / (1.0 - rate));
    return cornu_op_convert(cornu_op_select(low, cornu_op_constant_like(u, 0.0), kept),
                            layer->compute);
}

static bool draw(const CornuLayer *layer, const CornuCall *call, CornuShape x, Dropped *dropped)
{
    const CornuRecurrentConfig *config = config_of(layer);
    const double  rate = config->dropout, state_rate = config->recurrent_dropout;
    const int64_t channels = x.extent[2], states = cornu__gates_count(layer) * config->units;
    *dropped = (Dropped){ .input_count = state_rate > 0.0 ? cornu__gates_count(layer) : 1 };
    if (!call->training || (rate == 0.0 && state_rate == 0.0)) return true;
    CornuTensor *uniform = cornu_op_random_uniform(
        cornu_shape(x.extent[0], dropped->input_count * channels + states), call->seed,
        call->iteration, call->position, layer->generator);
    if (!uniform) return false;
    for (int g = 0; g < dropped->input_count && rate > 0.0; g++)
        dropped->input[g] = cornu_op_reshape(
            cornu__dropout_factors(layer, uniform, g * channels, channels, rate),
            cornu_shape(x.extent[0], 1, channels));
    if (state_rate > 0.0)
        dropped->state = cornu__dropout_factors(layer, uniform, dropped->input_count * channels,
                                                states, state_rate);
    return !cornu_error_pending();
}

/* ---- A run, as a function of its operands ---- */

enum { MOST_OPERANDS = 7, MOST_RESULTS = 3 };

/* The operands of the functions, NULL where there is none, and their numbers. */
typedef struct {
    CornuTensor   *x, *kernel, *recurrent_kernel, *h, *c, *bias, *mask;
    const double  *numbers;
    const Dropped *dropped;
} Run;

static Run run_of(CornuTensor *const *in, const double *numbers, const Dropped *dropped)
{
    Run run = { .numbers = numbers, .dropped = dropped };
    run.x = *in++;
    run.kernel = *in++;
    run.recurrent_kernel = *in++;
    if (numbers[CORNU_RNN_BIAS] != 0.0) run.bias = *in++;
    if (numbers[CORNU_RNN_STATES] != 0.0) run.h = *in++;
    if (run.h && numbers[CORNU_RNN_GATES] == 4) run.c = *in++;
    if (numbers[CORNU_RNN_MASK] != 0.0) run.mask = *in;
    return run;
}

/* Columns first to first + count - 1 of a kernel. */
static CornuTensor *columns(CornuTensor *kernel, int64_t first, int64_t count)
{
    if (!kernel) return NULL;
    const int64_t rows = cornu_tensor_shape(kernel).extent[0];
    const int64_t starts[] = { 0, first }, sizes[] = { rows, count };
    return cornu_op_slice(kernel, starts, sizes);
}

/* x (B, T, C) by kernel (C, N), plus the bias (N) if there is one */
static CornuTensor *product(CornuTensor *x, CornuTensor *kernel, CornuTensor *bias)
{
    return x ? cornu__dense(x, kernel, bias, cornu_tensor_type(x).dtype) : NULL;
}

/* Row i of the bias, or the bias itself where there is one; NULL where there is none. */
static CornuTensor *bias_row(const Run *run, int i)
{
    const CornuShape shape = run->bias ? cornu_tensor_shape(run->bias) : cornu_shape(0);
    if (shape.rank == 1) return i == 0 ? run->bias : NULL;
    return cornu_op_reshape(cornu_op_slice(run->bias, (int64_t[]){ i, 0 },
                                           (int64_t[]){ 1, shape.extent[1] }),
                            cornu_shape(shape.extent[1]));
}

/* The gates' pre-activations from the input. */
static CornuTensor *input_products(const Run *run)
{
    const Dropped *dropped = run->dropped;
    CornuTensor   *bias = bias_row(run, 0), *each[4];
    if (!dropped || !dropped->input[0] || dropped->input_count == 1)
        return product(dropped && dropped->input[0] ? cornu_op_multiply(run->x, dropped->input[0])
                                                    : run->x, run->kernel, bias);
    const int64_t units = cornu_tensor_shape(run->kernel).extent[1] / dropped->input_count;
    for (int g = 0; g < dropped->input_count; g++)
        each[g] = product(cornu_op_multiply(run->x, dropped->input[g]),
                          columns(run->kernel, g * units, units), NULL);
    CornuTensor *z = cornu_op_concat(each, dropped->input_count, 2);
    return bias ? cornu_op_add(z, bias) : z;
}

static CornuTensor *activate(const void *activation, CornuTensor *x)
{
    return cornu_activation_apply(*(const CornuActivation *)activation, x);
}

/* States for z (B, T, gates U). */
static CornuTensor *zeros(CornuTensor *z, int gates, CornuDtype dtype)
{
    const CornuShape shape = cornu_tensor_shape(z);
    return cornu_op_constant(cornu_tensor_graph(z),
                             cornu_type(dtype, shape.extent[0], shape.extent[2] / gates), 0.0);
}

/* h (B, T, U) of all steps, in the order of time, and of the step that was processed last, (B, U);
 * and of an LSTM the last c. */
static void recur(const Run *run, CornuTensor **out)
{
    const CornuActivation activation = (CornuActivation)run->numbers[CORNU_RNN_ACTIVATION];
    const CornuActivation of_gates = (CornuActivation)run->numbers[CORNU_RNN_GATE_ACTIVATION];
    const int             gates = (int)run->numbers[CORNU_RNN_GATES];
    CornuTensor          *z = input_products(run), *kernel = run->recurrent_kernel;
    CornuTensor          *h = run->h, *c = run->c;
    CornuRecurrence       how = {
        .mask = run->mask, .recurrent_dropout = run->dropped ? run->dropped->state : NULL,
        .reverse = run->numbers[CORNU_RNN_REVERSE] != 0.0,
    };
    if (activation != CORNU_TANH) how.activation = activate, how.activation_context = &activation;
    switch (of_gates) {
    case CORNU_SIGMOID: break;
    case CORNU_HARD_SIGMOID:         how.gate_slope = 1.0 / 6.0; break;
    case CORNU_KERAS_2_HARD_SIGMOID: how.gate_slope = 0.2; break;
    default: how.recurrent_activation = activate, how.recurrent_context = &of_gates;
    }
    if (!z) return;
    if (!h) h = zeros(z, gates, cornu_tensor_type(z).dtype);
    if (!c && gates == 4) c = zeros(z, gates, CORNU_F32);
    if (gates == 4) out[0] = cornu_op_lstm(z, kernel, h, c, &how, &out[2]);
    if (gates == 3) out[0] = cornu_op_gru(z, kernel, bias_row(run, 1), h,
                                          run->numbers[CORNU_RNN_RESET_AFTER] != 0.0, &how);
    if (gates == 1) out[0] = cornu_op_simple_rnn(z, kernel, h, &how);
    out[1] = cornu__last_step(out[0], how.reverse);
}

static void formulas(CornuTensor *const *x, int count, const double *numbers, CornuTensor **out)
{
    const Run run = run_of(x, numbers, NULL);
    (void)count;
    recur(&run, out);
}

static const CornuFunction lstm = CORNU__FUNCTION_OF("lstm", 3, .formulas = formulas);
static const CornuFunction gru = CORNU__FUNCTION_OF("gru", 2, .formulas = formulas);
static const CornuFunction simple_rnn = CORNU__FUNCTION_OF("simple_rnn", 2, .formulas = formulas);

/* ---- Calls ---- */

static int states(const CornuLayer *layer) { return is_lstm(layer) ? 2 : 1; }

static CornuShape state_shape(const CornuLayer *layer, int i, CornuShape x)
{
    (void)i;
    return cornu_shape(x.extent[0], config_of(layer)->units);
}

static CornuTensor *run(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                        CornuTensor *const *first, bool reverse, CornuTensor **last)
{
    const CornuRecurrentConfig *config = config_of(layer);
    const double numbers[CORNU_RNN_NUMBERS] = {
        [CORNU_RNN_GATES] = cornu__gates_count(layer), [CORNU_RNN_ACTIVATION] = config->activation,
        [CORNU_RNN_GATE_ACTIVATION] = config->recurrent_activation, [CORNU_RNN_REVERSE] = reverse,
        [CORNU_RNN_RESET_AFTER] = !config->no_reset_after, [CORNU_RNN_BIAS] = !config->no_bias,
        [CORNU_RNN_STATES] = first[0] != NULL, [CORNU_RNN_MASK] = call->mask != NULL,
    };
    CornuTensor *in[MOST_OPERANDS], *out[MOST_RESULTS] = { NULL };
    Dropped      dropped;
    int          count = 0;
    if (!(in[count++] = x = cornu_op_convert(x, layer->compute)) ||
        !draw(layer, call, cornu_tensor_shape(x), &dropped))
        return NULL;
    in[count++] = cornu_layer_read(layer, call, KERNEL);
    in[count++] = cornu_layer_read(layer, call, RECURRENT_KERNEL);
    if (!config->no_bias) in[count++] = cornu_layer_read(layer, call, BIAS);
    if (first[0]) in[count++] = cornu_op_convert(first[0], layer->compute);
    if (first[0] && is_lstm(layer)) in[count++] = first[1];
    if (call->mask) in[count++] = call->mask;
    if (dropped.input[0] || dropped.state) {
        const Run own = run_of(in, numbers, &dropped);
        recur(&own, out);
    } else {
        cornu__function_many(is_lstm(layer) ? &lstm : is_gru(layer) ? &gru : &simple_rnn, in, count,
                             numbers, CORNU_RNN_NUMBERS, out);
    }
    for (int i = 0; i < states(layer); i++) last[i] = out[1 + i];
    return out[0];
}

#define CELL { .states = states, .state_shape = state_shape, .run = run }
const CornuCell cornu__lstm_gates = CELL, cornu__gru_gates = CELL, cornu__simple_rnn_gates = CELL;
