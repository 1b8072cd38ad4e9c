/* LSTM, GRU and SimpleRNN, and their cells. */
#include "recurrent_internal.h"

static CornuStatus recurrent_build(CornuLayer *layer, CornuShape input)
{
    CORNU__TRY(cornu__expect_input(input, 3, "(B, T, C)"));
    return cornu__gates_build(layer, input.extent[2]);
}

static CornuStatus build_cell(CornuLayer *layer, CornuShape input)
{
    CORNU__TRY(cornu__expect_input(input, 2, "(B, C)"));
    return cornu__gates_build(layer, input.extent[1]);
}

/* ---- Classes and constructors ---- */

#define FIELD(field) offsetof(CornuRecurrentConfig, field)
#define CELL_FIELDS                                                                \
    { "units", CORNU_FIELD_INTEGER, FIELD(units) },                                \
    { "activation", CORNU_FIELD_ACTIVATION, FIELD(activation) },                   \
    { "use_bias", CORNU_FIELD_NOT, FIELD(no_bias) },                               \
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, FIELD(kernel_initializer) },  \
    { "recurrent_initializer", CORNU_FIELD_INITIALIZER, FIELD(recurrent_initializer) }, \
    { "bias_initializer", CORNU_FIELD_INITIALIZER, FIELD(bias_initializer) },      \
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, FIELD(kernel_regularizer) },   \
    { "recurrent_regularizer", CORNU_FIELD_REGULARIZER, FIELD(recurrent_regularizer) },\
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, FIELD(bias_regularizer) },       \
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, FIELD(kernel_constraint) },      \
    { "recurrent_constraint", CORNU_FIELD_CONSTRAINT, FIELD(recurrent_constraint) },\
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, FIELD(bias_constraint) },          \
    { "dropout", CORNU_FIELD_NUMBER, FIELD(dropout) },                             \
    { "recurrent_dropout", CORNU_FIELD_NUMBER, FIELD(recurrent_dropout) }

#define LAYER_FIELDS                                                               \
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, FIELD(activity_regularizer) }, \
    CORNU__OVER_TIME_FIELDS(CornuRecurrentConfig)
#define LSTM_FIELDS                                                                     \
    { "recurrent_activation", CORNU_FIELD_ACTIVATION, FIELD(recurrent_activation) },    \
    { "unit_forget_bias", CORNU_FIELD_NOT, FIELD(no_unit_forget_bias) }
#define GRU_FIELDS                                                                      \
    { "recurrent_activation", CORNU_FIELD_ACTIVATION, FIELD(recurrent_activation) },    \
    { "reset_after", CORNU_FIELD_NOT, FIELD(no_reset_after) }

static const CornuField lstm_fields[] = { CELL_FIELDS, LAYER_FIELDS, LSTM_FIELDS, { 0 } };
static const CornuField gru_fields[] = { CELL_FIELDS, LAYER_FIELDS, GRU_FIELDS, { 0 } };
static const CornuField simple_rnn_fields[] = { CELL_FIELDS, LAYER_FIELDS, { 0 } };
static const CornuField lstm_cell_fields[] = { CELL_FIELDS, LSTM_FIELDS, { 0 } };
static const CornuField gru_cell_fields[] = { CELL_FIELDS, GRU_FIELDS, { 0 } };
static const CornuField simple_rnn_cell_fields[] = { CELL_FIELDS, { 0 } };

static const char *const folders[] = { "lstm_cell:cell", "gru_cell:cell", "simple_rnn_cell:cell",
                                       NULL };

/* Refuses arguments that this kind of layer does not have. */
static CornuStatus check_own(const CornuLayer *layer, const CornuRecurrentConfig *config)
{
    const int   gates = cornu__gates_count(layer);
    const char *foreign =
        config->recurrent_activation && gates == 1    ? "recurrent_activation"
        : config->no_unit_forget_bias && gates != 4   ? "no_unit_forget_bias"
        : config->no_reset_after && gates != 3        ? "no_reset_after"
        : layer->kind->call_many != cornu__cell_call  ? NULL
        : config->return_sequences                    ? "return_sequences"
        : config->return_state                        ? "return_state"
        : config->go_backwards                        ? "go_backwards"
        : config->stateful                            ? "stateful"
        : config->unroll                              ? "unroll"
        : config->zero_output_for_mask                ? "zero_output_for_mask"
        : config->activity_regularizer.kind           ? "activity_regularizer" : NULL;
    if (foreign)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is given, which %s does not have",
                           cornu_layer_name(layer), foreign, layer->kind->class_name);
    return CORNU_OK;
}

static CornuStatus recurrent_resolve(CornuLayer *layer)
{
    CornuRecurrentConfig *config = &((CornuRecurrent *)layer)->config;
    if (config->units < 1 || config->units > INT32_MAX / 4)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .units is %lld, expected 1 to %d",
                           cornu_layer_name(layer), (long long)config->units, INT32_MAX / 4);
    CORNU__TRY(cornu__resolve_rate(layer, "dropout", &config->dropout));
    CORNU__TRY(cornu__resolve_rate(layer, "recurrent_dropout", &config->recurrent_dropout));
    CORNU__TRY(check_own(layer, config));
    config->activation = cornu__activation(config->activation, CORNU_TANH);
    if (cornu__gates_count(layer) > 1)
        config->recurrent_activation = cornu__activation(config->recurrent_activation,
                                                         CORNU_SIGMOID);
    return CORNU_OK;
}

#define LAYER_CLASS(name, label, gates)                                                        \
    const CornuLayerClass cornu__##label##_class = {                                           \
        .class_name = name, .size = sizeof(CornuRecurrent), .build = recurrent_build,          \
        .call_many = cornu__over_time_call, .outputs = cornu__over_time_outputs,               \
        .continues = CORNU__FULL(cornu__over_time_continue, NULL),                             \
        .mask = cornu__over_time_mask, .family = &gates,                                       \
        .keras = &(const CornuKerasClass){                                                     \
            CORNU__TRAINED(label##_fields, CornuRecurrent, recurrent_resolve),                 \
            .operands = "initial_state*", .folders = folders },                                \
    }
#define CELL_CLASS(name, label, gates)                                                         \
    const CornuLayerClass cornu__##label##_class = {                                           \
        .class_name = name, .size = sizeof(CornuRecurrent), .build = build_cell,               \
        .call_many = cornu__cell_call, .outputs = cornu__cell_outputs, .mask = cornu__no_mask, \
        .family = &gates, .is_cell = true,                                                     \
        .keras = &(const CornuKerasClass){                                                     \
            CORNU__TRAINED(label##_fields, CornuRecurrent, recurrent_resolve),                 \
            .operands = "states*" },                                                           \
    }

LAYER_CLASS("LSTM", lstm, cornu__lstm_gates);
LAYER_CLASS("GRU", gru, cornu__gru_gates);
LAYER_CLASS("SimpleRNN", simple_rnn, cornu__simple_rnn_gates);
CELL_CLASS("LSTMCell", lstm_cell, cornu__lstm_gates);
CELL_CLASS("GRUCell", gru_cell, cornu__gru_gates);
CELL_CLASS("SimpleRNNCell", simple_rnn_cell, cornu__simple_rnn_gates);

CORNU__CONSTRUCTOR(lstm, CornuRecurrentConfig)
CORNU__CONSTRUCTOR(gru, CornuRecurrentConfig)
CORNU__CONSTRUCTOR(simple_rnn, CornuRecurrentConfig)
CORNU__CONSTRUCTOR(lstm_cell, CornuRecurrentConfig)
CORNU__CONSTRUCTOR(gru_cell, CornuRecurrentConfig)
CORNU__CONSTRUCTOR(simple_rnn_cell, CornuRecurrentConfig)
