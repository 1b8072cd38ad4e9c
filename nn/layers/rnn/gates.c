/* LSTM, GRU and SimpleRNN as cells: the input products of all steps at once, then the recurrence as
 * one op. */
#include <stdio.h>

#include "recurrent_internal.h"

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

/* ---- Calls ---- */

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
    if (!x || !kernel) return NULL;
    CornuShape   shape = cornu_tensor_shape(x);
    CornuTensor *flat = cornu_op_reshape(x, cornu_shape(CORNU_NONE, shape.extent[2]));
    CornuTensor *y = cornu_op_matmul(flat, kernel);
    if (bias) y = cornu_op_add(y, bias);
    shape.extent[2] = cornu_tensor_shape(kernel).extent[1];
    return cornu_op_reshape(y, shape);
}

/* Row i of the bias, or the bias itself where there is one; NULL where there is none. */
static CornuTensor *bias_row(CornuLayer *layer, const CornuCall *call, int i)
{
    if (config_of(layer)->no_bias) return NULL;
    CornuTensor *bias = cornu_layer_read(layer, call, BIAS);
    if (!has_two_biases(layer)) return i == 0 ? bias : NULL;
    const int64_t wide = cornu__gates_count(layer) * config_of(layer)->units;
    return cornu_op_reshape(cornu_op_slice(bias, (int64_t[]){ i, 0 }, (int64_t[]){ 1, wide }),
                            cornu_shape(wide));
}

static CornuTensor *activate(const void *activation, CornuTensor *x)
{
    return cornu_activation_apply(*(const CornuActivation *)activation, x);
}

/* The gates' pre-activations from the input. */
static CornuTensor *input_products(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                                   const Dropped *dropped)
{
    const int64_t units = config_of(layer)->units;
    CornuTensor  *kernel = cornu_layer_read(layer, call, KERNEL), *each[4];
    CornuTensor  *bias = bias_row(layer, call, 0);
    if (!dropped->input[0] || dropped->input_count == 1)
        return product(dropped->input[0] ? cornu_op_multiply(x, dropped->input[0]) : x, kernel,
                       bias);
    for (int g = 0; g < dropped->input_count; g++)
        each[g] = product(cornu_op_multiply(x, dropped->input[g]),
                          columns(kernel, g * units, units), NULL);
    CornuTensor *z = cornu_op_concat(each, dropped->input_count, 2);
    return bias ? cornu_op_add(z, bias) : z;
}

static int states(const CornuLayer *layer) { return is_lstm(layer) ? 2 : 1; }

static CornuShape state_shape(const CornuLayer *layer, int i, CornuShape x)
{
    (void)i;
    return cornu_shape(x.extent[0], config_of(layer)->units);
}

/* The outputs of all steps, in the order of time. */
static CornuTensor *recur(CornuLayer *layer, const CornuCall *call, CornuTensor *z,
                          CornuTensor *const *first, bool reverse, CornuTensor *state_factors,
                          CornuTensor **last_c)
{
    const CornuRecurrentConfig *config = config_of(layer);
    CornuTensor    *kernel = cornu_layer_read(layer, call, RECURRENT_KERNEL);
    CornuTensor    *h0 = cornu_op_convert(first[0], layer->compute);
    CornuRecurrence how = {
        .mask = call->mask, .recurrent_dropout = state_factors, .reverse = reverse,
    };
    if (config->activation != CORNU_TANH)
        how.activation = activate, how.activation_context = &config->activation;
    switch (config->recurrent_activation) {
    case CORNU_SIGMOID: break;
    case CORNU_HARD_SIGMOID:         how.gate_slope = 1.0 / 6.0; break;
    case CORNU_KERAS_2_HARD_SIGMOID: how.gate_slope = 0.2; break;
    default:
        how.recurrent_activation = activate;
        how.recurrent_context = &config->recurrent_activation;
    }
    if (!z) return NULL;
    if (is_lstm(layer)) return cornu_op_lstm(z, kernel, h0, first[1], &how, last_c);
    if (is_gru(layer))
        return cornu_op_gru(z, kernel, bias_row(layer, call, 1), h0, !config->no_reset_after,
                            &how);
    return cornu_op_simple_rnn(z, kernel, h0, &how);
}

/* h (B, T, U) at the step that was processed last, (B, U). */
static CornuTensor *last_of(CornuTensor *h, bool reverse)
{
    const CornuShape shape = cornu_tensor_shape(h);
    const int64_t    t = reverse ? 0 : shape.extent[1] - 1;
    CornuTensor     *last = cornu_op_slice(h, (int64_t[]){ 0, t, 0 },
                                           (int64_t[]){ shape.extent[0], 1, shape.extent[2] });
    return cornu_op_reshape(last, cornu_shape(shape.extent[0], shape.extent[2]));
}

static CornuTensor *run(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                        CornuTensor *const *first, bool reverse, CornuTensor **last)
{
    Dropped dropped;
    x = cornu_op_convert(x, layer->compute);
    if (!x || !draw(layer, call, cornu_tensor_shape(x), &dropped)) return NULL;
    CornuTensor *z = input_products(layer, call, x, &dropped);
    CornuTensor *h = recur(layer, call, z, first, reverse, dropped.state, &last[1]);
    if (h) last[0] = last_of(h, reverse);
    return h;
}

#define CELL { .states = states, .state_shape = state_shape, .run = run }
const CornuCell cornu__lstm_gates = CELL, cornu__gru_gates = CELL, cornu__simple_rnn_gates = CELL;
