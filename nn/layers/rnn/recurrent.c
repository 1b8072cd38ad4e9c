/* LSTM, GRU and SimpleRNN: the input products of all steps at once, then the recurrence as one
 * op. */
#include <stdio.h>

#include "recurrent_internal.h"

extern const CornuLayerClass cornu__lstm_class, cornu__gru_class, cornu__simple_rnn_class;

static bool is_lstm(const CornuLayer *layer) { return layer->kind == &cornu__lstm_class; }
static bool is_gru(const CornuLayer *layer) { return layer->kind == &cornu__gru_class; }

static int gates_of(const CornuLayer *layer) { return is_lstm(layer) ? 4 : is_gru(layer) ? 3 : 1; }

static const CornuRecurrentConfig *config_of(const CornuLayer *layer)
{
    return &((const CornuRecurrent *)layer)->config;
}

bool cornu__is_recurrent(const CornuLayer *layer)
{
    return is_lstm(layer) || is_gru(layer) || layer->kind == &cornu__simple_rnn_class;
}

/* ---- Weights ---- */

enum { KERNEL, RECURRENT_KERNEL, BIAS };

/* Whether the recurrent product has its own bias, the second of two rows. */
static bool has_two_biases(const CornuLayer *layer)
{
    return is_gru(layer) && !config_of(layer)->no_bias && !config_of(layer)->no_reset_after;
}

/* "lstm_cell/kernel" */
static CornuStatus add_weight(CornuLayer *layer, const char *name, CornuShape shape,
                              CornuInitializer initializer, CornuRegularizer regularizer,
                              CornuConstraint constraint)
{
    char path[sizeof layer->class_label + 32];
    snprintf(path, sizeof path, "%s_cell/%s", layer->class_label, name);
    CORNU__TRY(cornu_layer_weight(layer, path, shape, initializer, false));
    return cornu_layer_weight_rules(layer, regularizer, constraint);
}

/* Ones for the forget gate, so that an untrained layer remembers.
 * Source: Jozefowicz, Zaremba and Sutskever, "An Empirical Exploration of Recurrent Network
 * Architectures", ICML 2015. */
static CornuStatus keep_at_first(CornuLayer *layer)
{
    const int64_t units = config_of(layer)->units;
    CornuWeight  *bias = layer->weights[BIAS];
    float        *values = cornu__allocate((size_t)(4 * units), sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    const CornuArray array = cornu_array_from(values, bias->type);
    CornuStatus      status = cornu_weight_read(bias, array);
    for (int64_t u = units; u < 2 * units; u++) values[u] = 1.0f;
    if (!status) status = cornu_weight_write(bias, array);
    cornu__release(values);
    return status;
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const CornuRecurrentConfig *config = config_of(layer);
    CORNU__TRY(cornu__expect_input(input, 3, "(B, T, C)"));
    const int64_t wide = gates_of(layer) * config->units;
    CORNU__TRY(add_weight(layer, "kernel", cornu_shape(input.extent[2], wide),
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
    return is_lstm(layer) && !config->no_unit_forget_bias ? keep_at_first(layer) : CORNU_OK;
}

/* ---- Dropout ---- */

/* Dropout factors for the input, (B, 1, C) or per gate, and for the state, (B, G U); NULL without
 * dropout. All are slices of one random tensor. */
typedef struct {
    CornuTensor *input[4], *state;
    int          input_count;
} Dropped;

/* 0 where the random number is below rate, else 1 / (1 - rate). */
static CornuTensor *factors(const CornuLayer *layer, CornuTensor *uniform, int64_t first,
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
    const int64_t channels = x.extent[2], states = gates_of(layer) * config->units;
    *dropped = (Dropped){ .input_count = state_rate > 0.0 ? gates_of(layer) : 1 };
    if (!call->training || (rate == 0.0 && state_rate == 0.0)) return true;
    CornuTensor *uniform = cornu_op_random_uniform(
        cornu_shape(x.extent[0], dropped->input_count * channels + states), call->seed,
        call->iteration, call->position, layer->generator);
    if (!uniform) return false;
    for (int g = 0; g < dropped->input_count && rate > 0.0; g++)
        dropped->input[g] = cornu_op_reshape(
            factors(layer, uniform, g * channels, channels, rate),
            cornu_shape(x.extent[0], 1, channels));
    if (state_rate > 0.0)
        dropped->state = factors(layer, uniform, dropped->input_count * channels, states,
                                 state_rate);
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
    const int64_t wide = gates_of(layer) * config_of(layer)->units;
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

static int states_of(const CornuLayer *layer) { return is_lstm(layer) ? 2 : 1; }

/* The initial state i, f32: `given` or, where that is NULL, the stored one if stateful, else 0. */
static CornuTensor *first_state(CornuLayer *layer, const CornuCall *call, int i, int64_t rows,
                                CornuTensor *given)
{
    const CornuRecurrentConfig *config = config_of(layer);
    const CornuShape            shape = cornu_shape(rows, config->units);
    CornuTensor *usual = config->stateful
        ? cornu_layer_state(layer, call, i, shape)
        : cornu_op_constant(call->graph, cornu_type_from(CORNU_F32, shape), 0.0);
    return given ? cornu_op_convert(given, CORNU_F32) : usual;
}

/* Checks number and shapes of the given initial states. */
static CornuStatus check_given(const CornuLayer *layer, int64_t rows, CornuTensor *const *given,
                               int count)
{
    const CornuShape want = cornu_shape(rows, config_of(layer)->units);
    if (count != 0 && count != states_of(layer))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d initial states, expected %d or none",
                           cornu_layer_name(layer), count, states_of(layer));
    for (int i = 0; i < count; i++) {
        const CornuType type = cornu_tensor_type(given[i]);
        CornuText       a, b;
        if (cornu_shape_equal(type.shape, want) && cornu_dtype_is_float(type.dtype)) continue;
        return cornu__fail(CORNU_ERR_SHAPE, "%s: initial state %d is %s, expected %s",
                           cornu_layer_name(layer), i, cornu_type_print(&a, type),
                           cornu_type_print(&b, cornu_type_from(layer->compute, want)));
    }
    return CORNU_OK;
}

/* The outputs of all steps, in the order of time. The initial states are NULL where none are
 * given. */
static CornuTensor *recur(CornuLayer *layer, const CornuCall *call, CornuTensor *z,
                          CornuTensor *const *given, CornuTensor *state_factors,
                          CornuTensor **last_c)
{
    const CornuRecurrentConfig *config = config_of(layer);
    CornuTensor    *kernel = cornu_layer_read(layer, call, RECURRENT_KERNEL);
    const int64_t   rows = z ? cornu_tensor_shape(z).extent[0] : 0;
    CornuRecurrence how = {
        .mask = call->mask, .recurrent_dropout = state_factors, .reverse = config->go_backwards,
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
    CornuTensor *h0 = cornu_op_convert(first_state(layer, call, 0, rows, given[0]),
                                       layer->compute);
    if (is_lstm(layer))
        return cornu_op_lstm(z, kernel, h0, first_state(layer, call, 1, rows, given[1]), &how,
                             last_c);
    if (is_gru(layer))
        return cornu_op_gru(z, kernel, bias_row(layer, call, 1), h0, !config->no_reset_after,
                            &how);
    return cornu_op_simple_rnn(z, kernel, h0, &how);
}

/* h (B, T, U) at the step that was processed last, (B, U). */
static CornuTensor *last_of(const CornuLayer *layer, CornuTensor *h)
{
    const CornuShape shape = cornu_tensor_shape(h);
    const int64_t    t = config_of(layer)->go_backwards ? 0 : shape.extent[1] - 1;
    CornuTensor     *last = cornu_op_slice(h, (int64_t[]){ 0, t, 0 },
                                           (int64_t[]){ shape.extent[0], 1, shape.extent[2] });
    return cornu_op_reshape(last, cornu_shape(shape.extent[0], shape.extent[2]));
}

static bool remember(CornuLayer *layer, const CornuCall *call, CornuTensor *h, CornuTensor *c)
{
    if (!config_of(layer)->stateful) return true;
    return cornu_layer_set_state(layer, call, 0, h) == CORNU_OK &&
           (!is_lstm(layer) || cornu_layer_set_state(layer, call, 1, c) == CORNU_OK);
}

static int outputs(const CornuLayer *layer)
{
    return config_of(layer)->return_state ? 1 + states_of(layer) : 1;
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    const CornuRecurrentConfig *config = config_of(layer);
    CornuTensor *x = in[0], *given[2] = { NULL }, *last_c = NULL;
    Dropped      dropped;
    if (!x || !draw(layer, call, cornu_tensor_shape(x), &dropped)) return NULL;
    if (check_given(layer, cornu_tensor_shape(x).extent[0], in + 1, in_count - 1))
        return cornu__null();
    for (int i = 1; i < in_count; i++) given[i - 1] = in[i];
    CornuTensor *z = input_products(layer, call, x, &dropped);
    CornuTensor *h = recur(layer, call, z, given, dropped.state, &last_c);
    CornuTensor *last = h ? last_of(layer, h) : NULL;
    if (!last || !remember(layer, call, last, last_c)) return cornu__null();
    if (config->return_state) out[1] = last;
    if (config->return_state && is_lstm(layer)) out[2] = cornu_op_convert(last_c, layer->compute);
    if (config->zero_output_for_mask && call->mask) {
        const CornuShape mask = cornu_tensor_shape(call->mask);
        h = cornu_op_select(cornu_op_reshape(call->mask, cornu_shape(mask.extent[0],
                                                                     mask.extent[1], 1)),
                            h, cornu_op_constant_like(h, 0.0));
        last = h ? last_of(layer, h) : NULL;
    }
    if (!config->return_sequences) return last;
    return config->go_backwards ? cornu_op_flip(h, 1) : h;
}

static CornuTensor *mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)x;
    return config_of(layer)->return_sequences ? call->mask : NULL;
}

/* ---- Classes and constructors ---- */

#define FIELD(field) offsetof(CornuRecurrentConfig, field)
#define COMMON_FIELDS                                                              \
    { "units", CORNU_FIELD_INTEGER, FIELD(units) },                                \
    { "activation", CORNU_FIELD_ACTIVATION, FIELD(activation) },                   \
    { "use_bias", CORNU_FIELD_NOT, FIELD(no_bias) },                               \
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, FIELD(kernel_initializer) },  \
    { "recurrent_initializer", CORNU_FIELD_INITIALIZER, FIELD(recurrent_initializer) }, \
    { "bias_initializer", CORNU_FIELD_INITIALIZER, FIELD(bias_initializer) },      \
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, FIELD(kernel_regularizer) },   \
    { "recurrent_regularizer", CORNU_FIELD_REGULARIZER, FIELD(recurrent_regularizer) },\
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, FIELD(bias_regularizer) },       \
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, FIELD(activity_regularizer) },\
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, FIELD(kernel_constraint) },      \
    { "recurrent_constraint", CORNU_FIELD_CONSTRAINT, FIELD(recurrent_constraint) },\
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, FIELD(bias_constraint) },          \
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },                             \
    { "recurrent_dropout", CORNU_FIELD_NUMBER, FIELD(recurrent_dropout) },         \
    { "return_sequences", CORNU_FIELD_FLAG, FIELD(return_sequences) },             \
    { "return_state", CORNU_FIELD_FLAG, FIELD(return_state) },                     \
    { "go_backwards", CORNU_FIELD_FLAG, FIELD(go_backwards) },                     \
    { "stateful", CORNU_FIELD_FLAG, FIELD(stateful) },                             \
    { "unroll", CORNU_FIELD_FLAG, FIELD(unroll) },                                 \
    { "zero_output_for_mask", CORNU_FIELD_FLAG, FIELD(zero_output_for_mask) }

static const CornuField lstm_fields[] = {
    COMMON_FIELDS,
    { "recurrent_activation", CORNU_FIELD_ACTIVATION, FIELD(recurrent_activation) },
    { "unit_forget_bias", CORNU_FIELD_NOT, FIELD(no_unit_forget_bias) },
    { 0 },
};

static const CornuField gru_fields[] = {
    COMMON_FIELDS,
    { "recurrent_activation", CORNU_FIELD_ACTIVATION, FIELD(recurrent_activation) },
    { "reset_after", CORNU_FIELD_NOT, FIELD(no_reset_after) },
    { 0 },
};

static const CornuField simple_rnn_fields[] = { COMMON_FIELDS, { 0 } };

static CornuLayer *lstm_from(const void *config) { return cornu_lstm_from(config); }
static CornuLayer *gru_from(const void *config) { return cornu_gru_from(config); }
static CornuLayer *simple_rnn_from(const void *config) { return cornu_simple_rnn_from(config); }

static const char *const folders[] = { "lstm_cell:cell", "gru_cell:cell", "simple_rnn_cell:cell",
                                       NULL };

const CornuLayerClass cornu__lstm_class = {
    .class_name = "LSTM", .size = sizeof(CornuRecurrent), .build = build,
    .call_many = call_many, .outputs = outputs, .mask = mask, .fields = lstm_fields,
    .config_size = sizeof(CornuRecurrentConfig),
    .config_offset = offsetof(CornuRecurrent, config), .from = lstm_from,
    .operands = "initial_state*", .folders = folders,
};

const CornuLayerClass cornu__gru_class = {
    .class_name = "GRU", .size = sizeof(CornuRecurrent), .build = build,
    .call_many = call_many, .outputs = outputs, .mask = mask, .fields = gru_fields,
    .config_size = sizeof(CornuRecurrentConfig),
    .config_offset = offsetof(CornuRecurrent, config), .from = gru_from,
    .operands = "initial_state*", .folders = folders,
};

const CornuLayerClass cornu__simple_rnn_class = {
    .class_name = "SimpleRNN", .size = sizeof(CornuRecurrent), .build = build,
    .call_many = call_many, .outputs = outputs, .mask = mask, .fields = simple_rnn_fields,
    .config_size = sizeof(CornuRecurrentConfig),
    .config_offset = offsetof(CornuRecurrent, config), .from = simple_rnn_from,
    .operands = "initial_state*", .folders = folders,
};

static CornuStatus check_rate(const char *name, const char *argument, double rate)
{
    if (rate >= 0.0 && rate < 1.0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more and below 1", name,
                       argument, rate);
}

/* Refuses arguments that this kind of layer does not have. */
static CornuStatus check_own(const CornuLayerClass *kind, const CornuRecurrentConfig *config,
                             const char *name)
{
    const char *foreign =
        config->recurrent_activation && kind == &cornu__simple_rnn_class ? "recurrent_activation"
        : config->no_unit_forget_bias && kind != &cornu__lstm_class      ? "no_unit_forget_bias"
        : config->no_reset_after && kind != &cornu__gru_class            ? "no_reset_after" : NULL;
    if (foreign)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is given, which %s does not have", name,
                           foreign, kind->class_name);
    return CORNU_OK;
}

static CornuStatus check(const CornuLayerClass *kind, const CornuRecurrentConfig *config,
                         const char *name)
{
    const CornuInitializer initializers[] = {
        config->kernel_initializer, config->recurrent_initializer, config->bias_initializer,
    };
    if (config->units < 1 || config->units > INT32_MAX / 4)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .units is %lld, expected 1 to %d", name,
                           (long long)config->units, INT32_MAX / 4);
    CORNU__TRY(cornu__check_enums(name, config->activation, initializers, 3));
    CORNU__TRY(cornu__check_enums(name, config->recurrent_activation, NULL, 0));
    CORNU__TRY(cornu__check_activity(name, &config->activity_regularizer));
    CORNU__TRY(check_rate(name, "dropout", cornu__number(config->dropout, 0.0)));
    CORNU__TRY(check_rate(name, "recurrent_dropout",
                          cornu__number(config->recurrent_dropout, 0.0)));
    return check_own(kind, config, name);
}

static CornuLayer *create(const CornuLayerClass *kind, const CornuRecurrentConfig *config)
{
    char label[32];
    cornu__snake_case(kind->class_name, label, sizeof label);
    if (check(kind, config, config->name ? config->name : label)) return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (!layer) return NULL;
    CornuRecurrentConfig *to = &((CornuRecurrent *)layer)->config;
    *to = *config;
    to->name = to->dtype = NULL;
    to->dropout = cornu__number(config->dropout, 0.0);
    to->recurrent_dropout = cornu__number(config->recurrent_dropout, 0.0);
    to->activation = cornu__activation(config->activation, CORNU_TANH);
    if (kind != &cornu__simple_rnn_class)
        to->recurrent_activation = cornu__activation(config->recurrent_activation, CORNU_SIGMOID);
    to->kernel_initializer = cornu__initializer(config->kernel_initializer, CORNU_GLOROT_UNIFORM);
    to->recurrent_initializer = cornu__initializer(config->recurrent_initializer,
                                                   CORNU_ORTHOGONAL);
    to->bias_initializer = cornu__initializer(config->bias_initializer, CORNU_ZEROS);
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
}

CornuLayer *cornu_lstm_from(const CornuRecurrentConfig *config)
{
    return create(&cornu__lstm_class, config);
}

CornuLayer *cornu_gru_from(const CornuRecurrentConfig *config)
{
    return create(&cornu__gru_class, config);
}

CornuLayer *cornu_simple_rnn_from(const CornuRecurrentConfig *config)
{
    return create(&cornu__simple_rnn_class, config);
}
