/*
 * LiteRT's recurrent operators as ONNX nodes. Their states are variables that begin with zeros, as
 * here each call does: from call to call they are not kept.
 * Source: github.com/google-ai-edge/LiteRT, tflite/kernels/unidirectional_sequence_lstm.cc.
 */
#include "onnx_internal.h"

/* Places of operands of UNIDIRECTIONAL_SEQUENCE_LSTM: for the gates i f c o each. */
enum { LSTM_INPUT = 1, LSTM_RECURRENT = 5, LSTM_PEEPHOLE = 9, LSTM_BIAS = 12, LSTM_PROJECTION = 16,
       LSTM_NORM = 20, LSTM_END = 24 };

static int with_direction(const Step *step, int x) { return with_axis(step, "Unsqueeze", x, 0); }

static int zeros(const Step *step, int64_t count)
{
    return cornu__onnx_filled(step->to, cornu_shape(count), 0.0f);
}

/* The gates in ONNX' order, i o f c. */
static int gates(const Step *step, int first)
{
    static const int order[] = { 0, 3, 1, 2 };
    int              parts[4];
    for (int i = 0; i < 4; i++) parts[i] = cornu__lite_value(step, first + order[i]);
    return concatenated(step, parts, 4, 0);
}

/* (T, B, K) as ONNX has sequences; it gives (T, 1, B, U). */
static int sequence(const Step *step)
{
    const int64_t turned[] = { 1, 0, 2 };
    const int     x = cornu__lite_value(step, 0);
    return step->op->options.time_major ? x : cornu__onnx_transpose(step->to, x, turned, 3);
}

static CornuStatus give_sequence(const Step *step, int y)
{
    const int64_t turned[] = { 1, 0, 2 };
    y = with_axis(step, "Squeeze", y, 1);
    if (!step->op->options.time_major) y = cornu__onnx_transpose(step->to, y, turned, 3);
    return cornu__lite_give_at(step, 0, y);
}

static CornuStatus check_lstm(const Step *step)
{
    const CornuLiteOptions *options = &step->op->options;
    for (int i = 0; i < LSTM_PEEPHOLE; i++)
        if (!cornu__lite_operand(step, i))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its operand %d is missing, as of coupled "
                               "gates", i);
    for (int i = 0; i < 4; i++)
        if (!cornu__lite_operand(step, LSTM_BIAS + i))
            return cornu__fail(CORNU_ERR_FORMAT, "its operand %d is missing", LSTM_BIAS + i);
    for (int i = LSTM_PEEPHOLE; i < LSTM_END; i++)
        if (cornu__lite_operand(step, i) &&
            (i < LSTM_BIAS || i == LSTM_PROJECTION || i == LSTM_PROJECTION + 1 || i >= LSTM_NORM))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its operand %d: peepholes, projections and "
                               "normalized gates are not available", i);
    if (options->fused_activation != CORNU_LITE_FUSED_TANH || options->cell_clip > 0.0f ||
        options->proj_clip > 0.0f || options->diagonal_recurrent_tensors)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with the activation %d, clipped or diagonal",
                           (int)options->fused_activation);
    if (cornu__lite_operand(step, 0)->shape.rank != 3 ||
        cornu__lite_operand(step, LSTM_RECURRENT)->shape.rank != 2)
        return cornu__fail(CORNU_ERR_FORMAT, "its operand is not a sequence");
    return CORNU_OK;
}

static CornuStatus lstm(const Step *step)
{
    CORNU__TRY(check_lstm(step));
    const int64_t units = cornu__lite_operand(step, LSTM_RECURRENT)->shape.extent[1];
    int           in[] = { sequence(step), 0, 0, 0 };
    in[1] = with_direction(step, gates(step, LSTM_INPUT));
    in[2] = with_direction(step, gates(step, LSTM_RECURRENT));
    const int biases[] = { gates(step, LSTM_BIAS), zeros(step, 4 * units) };
    in[3] = with_direction(step, concatenated(step, biases, 2, 0));
    return give_sequence(step, CORNU__ONNX_NODE(step->to, "LSTM", in,
                                                { .name = "hidden_size", .whole = units }));
}

/* x, the weights of x and of the state, the bias, the state */
static CornuStatus rnn(const Step *step)
{
    const CornuLiteActivation activation = step->op->options.fused_activation;
    if (activation != CORNU_LITE_FUSED_TANH && activation != CORNU_LITE_FUSED_RELU)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "with the activation %d", (int)activation);
    const CornuShape recurrent = cornu__lite_operand(step, 2)->shape;
    if (recurrent.rank != 2) return cornu__fail(CORNU_ERR_FORMAT, "its weights are not a matrix");
    int in[] = { sequence(step), 0, 0, 0 };
    in[1] = with_direction(step, cornu__lite_value(step, 1));
    in[2] = with_direction(step, cornu__lite_value(step, 2));
    int biases[] = { cornu__lite_value(step, 3), 0 };
    biases[1] = zeros(step, recurrent.extent[1]);
    in[3] = with_direction(step, concatenated(step, biases, 2, 0));
    return give_sequence(step, CORNU__ONNX_NODE(
        step->to, "RNN", in, { .name = "hidden_size", .whole = recurrent.extent[1] },
        { .name = "activations",
          .text = activation == CORNU_LITE_FUSED_TANH ? "Tanh" : "Relu", .texts = 1 }));
}

const CornuLiteOnnxRow cornu__lite_onnx_recurrent[] = {
    { CORNU_LITE_UNIDIRECTIONAL_SEQUENCE_LSTM, 0, .rule = lstm },
    { CORNU_LITE_UNIDIRECTIONAL_SEQUENCE_RNN, 4, .rule = rnn, .rank = 3 },
    { 0 },
};
