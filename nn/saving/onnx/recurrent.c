/* Recurrent layers and their wrappers. */
#include "extents_internal.h"
#include "recurrent_internal.h"

#include <string.h>

/* ---- A layer ---- */

/* The cells that a layer runs, one after another; returns their number. */
static int cells_of(const CornuLayer *layer, CornuLayer *const **cells)
{
    const bool is_rnn = !strcmp(layer->kind->class_name, "RNN");
    if (!is_rnn) return 1;
    const CornuLayer *cell = layer->inner[0];
    const bool        several = cell->inner_count > 0;
    *cells = several ? cell->inner : layer->inner;
    return several ? cell->inner_count : 1;
}

static bool is_convolution(const CornuLayer *cell)
{
    return !strncmp(cell->kind->class_name, "ConvLSTM", 8);
}

static int states_of(const CornuLayer *cell)
{
    return is_convolution(cell) || cornu__onnx_gates(cell) == 4 ? 2 : 1;
}

static CornuStatus run_cell(CornuOnnxRun *run)
{
    if (is_convolution(run->cell)) return cornu__onnx_scan_convolutions(run);
    return cornu__onnx_has_operator(run) ? cornu__onnx_run_operator(run)
                                         : cornu__onnx_scan_gates(run);
}

/* The result (B, T, …) with zeros where the mask is false. */
static int zeroed(CornuOnnx *to, int y, int rank, int mask)
{
    const int64_t last = -1;
    for (int i = 2; i < rank; i++)
        mask = joined(to, "Unsqueeze", mask, cornu__onnx_integers(to, &last, 1));
    const int in[] = { mask, y, cornu__onnx_scalar(to, 0.0) };
    return cornu__onnx_node(to, "Where", in, 3, NULL, 0, 1);
}

/* y (B, T, …) at the step that was processed last. */
static int last_of(CornuOnnx *to, int y, bool reverse)
{
    const int64_t    at = reverse ? 0 : -1, time = 1;
    const int        in[] = { y, cornu__onnx_constant(to, cornu_array_from(
                                     (void *)&at, cornu_scalar(CORNU_I64))) };
    return CORNU__ONNX_NODE(to, "Gather", in, { .name = "axis", .whole = time });
}

/* Sets what the layer returns of x and its initial states, in[1], …: the output in the order of
 * time, and after it the states if the layer returns them. */
static CornuStatus run_layer(const CornuOnnxCall *call, const CornuLayer *layer, const int *in,
                             int in_count, int *out)
{
    CornuLayer *const *cells = (CornuLayer *const *)&layer;
    const int          count = cells_of(layer, &cells);
    /* As in nn/layers/rnn/over_time.c. */
    const bool         ignored = in_count > 1 && !call->mask_shapes;
    const int          mask = ignored ? CORNU_ONNX_NONE : call->masks[0];
    const bool         sequences = flag(layer, "return_sequences");
    const bool         zeros = flag(layer, "zero_output_for_mask") && mask != CORNU_ONNX_NONE;
    CornuOnnxRun       run = { .to = call->to, .x = in[0], .mask = mask, .shape = call->shapes[0],
                               .reverse = flag(layer, "go_backwards"),
                               .wanted_states = flag(layer, "return_state") };
    int                state = 0;
    for (int i = 0; i < count; i++) {
        run.cell = cells[i];
        run.first = in_count > 1 ? in + 1 + state : NULL;
        run.wanted_steps = i + 1 < count || sequences || zeros;
        CORNU__TRY(run_cell(&run));
        for (int k = 0; k < states_of(cells[i]) && run.wanted_states; k++)
            out[1 + state + k] = run.last[k];
        state += states_of(cells[i]);
        if (i + 1 == count) break;
        run.x = run.y;
        run.shape.extent[2] = whole(cells[i], "units");
    }
    if (zeros) run.y = zeroed(call->to, run.y, run.shape.rank, mask);
    *out = sequences ? run.y : zeros ? last_of(call->to, run.y, run.reverse) : run.last[0];
    return CORNU_OK;
}

static void pass_mask(const CornuOnnxCall *call, const CornuLayer *layer)
{
    if (flag(layer, "return_sequences")) call->out_masks[0] = call->masks[0];
}

/* Keras returns the steps in the order of computation. */
static int reversed(CornuOnnx *to, int y)
{
    const int64_t last = -1, before_first = INT64_MIN, time = 1;
    const int in[] = { y, cornu__onnx_integers(to, &last, 1),
                       cornu__onnx_integers(to, &before_first, 1),
                       cornu__onnx_integers(to, &time, 1), cornu__onnx_integers(to, &last, 1) };
    return cornu__onnx_node(to, "Slice", in, 5, NULL, 0, 1);
}

/* States from batch to batch are not in files: a stateful layer begins with zeros. */
static CornuStatus recurrent(const CornuOnnxCall *call)
{
    const CornuLayer *layer = call->layer;
    CORNU__TRY(run_layer(call, layer, call->in, call->in_count, call->out));
    if (flag(layer, "go_backwards") && flag(layer, "return_sequences"))
        *call->out = reversed(call->to, *call->out);
    pass_mask(call, layer);
    return CORNU_OK;
}

/* A cell by itself, or several: a sequence of one step. */
static CornuStatus one_step(const CornuOnnxCall *call)
{
    const CornuLayer  *layer = call->layer;
    const int64_t      time = 1;
    CornuLayer *const *cells = layer->inner_count ? layer->inner : (CornuLayer *const *)&layer;
    const int          count = layer->inner_count ? layer->inner_count : 1;
    CornuOnnxRun       run = { .to = call->to, .wanted_states = true };
    run.x = joined(call->to, "Unsqueeze", call->in[0], cornu__onnx_integers(call->to, &time, 1));
    run.shape = cornu_shape(CORNU_NONE, 1, call->shapes[0].extent[1]);
    for (int i = 0, state = 1; i < count; i++) {
        run.cell = cells[i];
        run.first = call->in_count > 1 ? call->in + state : NULL;
        run.wanted_steps = i + 1 < count;
        CORNU__TRY(run_cell(&run));
        for (int k = 0; k < states_of(cells[i]); k++) call->out[state++] = run.last[k];
        run.x = run.y;
        run.shape.extent[2] = whole(cells[i], "units");
    }
    call->out[0] = run.last[0];
    return CORNU_OK;
}

/* ---- Wrappers ---- */

static int merged(CornuOnnx *to, CornuMerge merge, const int y[2])
{
    const CornuOnnxAttribute last = { .name = "axis", .whole = -1 };
    switch (merge) {
    case CORNU_MERGE_CONCAT: return cornu__onnx_node(to, "Concat", y, 2, &last, 1, 1);
    case CORNU_MERGE_SUM:    return two(to, "Add", y[0], y[1]);
    case CORNU_MERGE_MUL:    return two(to, "Mul", y[0], y[1]);
    case CORNU_MERGE_AVE:    return scaled(to, two(to, "Add", y[0], y[1]), 0.5);
    case CORNU_MERGE_NONE:   break;
    }
    return y[0];
}

/* Initial states and states are those of the forward layer, then those of the backward layer. */
static CornuStatus bidirectional(const CornuOnnxCall *call)
{
    const CornuLayer *layer = call->layer;
    const CornuMerge  merge = *(const CornuMerge *)cornu__layer_argument(layer, "merge_mode");
    const int         given_states = (call->in_count - 1) / 2;
    int              *states = call->out + (merge == CORNU_MERGE_NONE ? 2 : 1), y[2];
    for (int i = 0; i < 2; i++) {
        int in[CORNU_MAX_LAYER_TENSORS] = { call->in[0] }, out[CORNU_MAX_LAYER_TENSORS];
        for (int k = 1; k <= given_states; k++) in[k] = call->in[i * given_states + k];
        CORNU__TRY(run_layer(call, layer->inner[i], in, 1 + given_states, out));
        y[i] = out[0];
        for (int k = 1; k < cornu_layer_outputs(layer->inner[i]); k++) *states++ = out[k];
    }
    call->out[0] = merged(call->to, merge, y);
    if (merge == CORNU_MERGE_NONE) call->out[1] = y[1];
    pass_mask(call, layer->inner[0]);
    return CORNU_OK;
}

/* All steps of all rows become the rows of one batch. The mask bypasses the wrapped layer. */
static CornuStatus time_distributed(const CornuOnnxCall *call)
{
    const CornuShape  shape = call->shapes[0];
    const CornuLayer *layer = call->layer->inner[0];
    const int         none = CORNU_ONNX_NONE;
    CornuShape        rows = { .rank = shape.rank - 1, .extent = { CORNU_NONE } };
    int               y, mask;
    for (int i = 1; i < rows.rank; i++) rows.extent[i] = shape.extent[i + 1];
    const int  x = cornu__onnx_reshape(call->to, call->in[0], rows);
    CornuShape results = layer->output;
    CORNU__TRY(cornu__onnx_results(call->to, layer, &rows, call->dtypes, 1, &results));
    CORNU__TRY(call->to->layer(&(CornuOnnxCall){
        .to = call->to, .layer = layer, .in = &x, .masks = &none, .shapes = &rows,
        .dtypes = call->dtypes, .in_count = 1,
        .results = &results, .out = &y, .out_masks = &mask,
    }));
    for (int i = 1; i < results.rank; i++) cornu__onnx_axis_of(call->to, results.extent[i], y);
    *call->out = cornu__onnx_reshape(call->to, y, call->results[0]);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_recurrent[] = {
    { "Bidirectional", bidirectional },
    { "ConvLSTM1D", recurrent },
    { "ConvLSTM2D", recurrent },
    { "ConvLSTM3D", recurrent },
    { "GRU", recurrent },
    { "GRUCell", one_step },
    { "LSTM", recurrent },
    { "LSTMCell", one_step },
    { "RNN", recurrent },
    { "SimpleRNN", recurrent },
    { "SimpleRNNCell", one_step },
    { "StackedRNNCells", one_step },
    { "TimeDistributed", time_distributed },
    { 0 },
};
