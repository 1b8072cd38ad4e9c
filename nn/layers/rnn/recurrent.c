/* LSTM, GRU and SimpleRNN, and their cells. */
#include "recurrent_internal.h"

static CornuStatus build(CornuLayer *layer, CornuShape input)
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

static CornuLayer *lstm_from(const void *config) { return cornu_lstm_from(config); }
static CornuLayer *gru_from(const void *config) { return cornu_gru_from(config); }
static CornuLayer *simple_rnn_from(const void *config) { return cornu_simple_rnn_from(config); }
static CornuLayer *lstm_cell_from(const void *config) { return cornu_lstm_cell_from(config); }
static CornuLayer *gru_cell_from(const void *config) { return cornu_gru_cell_from(config); }
static CornuLayer *simple_rnn_cell_from(const void *config)
{
    return cornu_simple_rnn_cell_from(config);
}

static const char *const folders[] = { "lstm_cell:cell", "gru_cell:cell", "simple_rnn_cell:cell",
                                       NULL };

#define LAYER_CLASS(name, label)                                                              \
    const CornuLayerClass cornu__##label##_class = {                                          \
        .class_name = name, .size = sizeof(CornuRecurrent), .build = build,                   \
        .call_many = cornu__over_time_call, .outputs = cornu__over_time_outputs,              \
        .mask = cornu__over_time_mask,                                                        \
        .keras = &(const CornuKerasClass){                                                    \
            CORNU__SAVED(label##_fields, CornuRecurrent, label##_from),                       \
            .operands = "initial_state*", .folders = folders },                               \
    }
#define CELL_CLASS(name, label)                                                               \
    const CornuLayerClass cornu__##label##_class = {                                          \
        .class_name = name, .size = sizeof(CornuRecurrent), .build = build_cell,              \
        .call_many = cornu__cell_call, .outputs = cornu__cell_outputs, .mask = cornu__no_mask, \
        .keras = &(const CornuKerasClass){                                                    \
            CORNU__SAVED(label##_fields, CornuRecurrent, label##_from),                       \
            .operands = "states*" },                                                          \
    }

LAYER_CLASS("LSTM", lstm);
LAYER_CLASS("GRU", gru);
LAYER_CLASS("SimpleRNN", simple_rnn);
CELL_CLASS("LSTMCell", lstm_cell);
CELL_CLASS("GRUCell", gru_cell);
CELL_CLASS("SimpleRNNCell", simple_rnn_cell);

/* The number of gates: 4 of an LSTM, 3 of a GRU, 1 of a SimpleRNN. */
static int gates_of(const CornuLayerClass *kind)
{
    return kind == &cornu__lstm_class || kind == &cornu__lstm_cell_class ? 4
         : kind == &cornu__gru_class || kind == &cornu__gru_cell_class   ? 3 : 1;
}

static bool is_cell_class(const CornuLayerClass *kind)
{
    return kind == &cornu__lstm_cell_class || kind == &cornu__gru_cell_class ||
           kind == &cornu__simple_rnn_cell_class;
}

/* Refuses arguments that this kind of layer does not have. */
static CornuStatus check_own(const CornuLayerClass *kind, const CornuRecurrentConfig *config,
                             const char *name)
{
    const char *foreign =
        config->recurrent_activation && gates_of(kind) == 1 ? "recurrent_activation"
        : config->no_unit_forget_bias && gates_of(kind) != 4 ? "no_unit_forget_bias"
        : config->no_reset_after && gates_of(kind) != 3      ? "no_reset_after"
        : !is_cell_class(kind)                               ? NULL
        : config->return_sequences                           ? "return_sequences"
        : config->return_state                               ? "return_state"
        : config->go_backwards                               ? "go_backwards"
        : config->stateful                                   ? "stateful"
        : config->unroll                                     ? "unroll"
        : config->zero_output_for_mask                       ? "zero_output_for_mask"
        : config->activity_regularizer.kind                  ? "activity_regularizer" : NULL;
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
    CORNU__TRY(cornu__check_rate(name, "dropout", cornu__number(config->dropout, 0.0)));
    CORNU__TRY(cornu__check_rate(name, "recurrent_dropout",
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
    ((CornuRecurrent *)layer)->base.cell = gates_of(kind) == 4   ? &cornu__lstm_gates
                                             : gates_of(kind) == 3 ? &cornu__gru_gates
                                                                   : &cornu__simple_rnn_gates;
    *to = *config;
    to->name = to->dtype = NULL;
    to->dropout = cornu__number(config->dropout, 0.0);
    to->recurrent_dropout = cornu__number(config->recurrent_dropout, 0.0);
    to->activation = cornu__activation(config->activation, CORNU_TANH);
    if (gates_of(kind) > 1)
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

CornuLayer *cornu_lstm_cell_from(const CornuRecurrentConfig *config)
{
    return create(&cornu__lstm_cell_class, config);
}

CornuLayer *cornu_gru_cell_from(const CornuRecurrentConfig *config)
{
    return create(&cornu__gru_cell_class, config);
}

CornuLayer *cornu_simple_rnn_cell_from(const CornuRecurrentConfig *config)
{
    return create(&cornu__simple_rnn_cell_class, config);
}
