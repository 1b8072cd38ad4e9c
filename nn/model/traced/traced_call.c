/* Calls of layers whose call is a graph of calls. */
#include <string.h>

#include "../../../device/inference_internal.h"
#include "../../layers/layer_internal.h"
#include "../../layers/rnn/recurrent_internal.h"
#include "traced_internal.h"

/* Whether a graph is for operands of these types; `kinds`: whether whole numbers must be such in
 * the graph, too. Elsewhere they are converted, as where files have f32 for indices. */
static bool takes(const CornuTracedGraph *graph, const CornuType *types, int count, bool kinds)
{
    bool fits = count == graph->operands;
    for (int i = 0; i < count && fits; i++) {
        const CornuType given = types[i], want = graph->model->inputs[i]->type;
        fits = given.shape.rank == want.shape.rank &&
               (!kinds ||
                cornu_dtype_is_float(given.dtype) == cornu_dtype_is_float(want.dtype));
        for (int k = 0; k < want.shape.rank && fits; k++)
            fits = want.shape.extent[k] == CORNU_NONE ||
                   given.shape.extent[k] == want.shape.extent[k];
    }
    return fits;
}

const CornuTracedGraph *cornu__traced_graph_for(const CornuTraced *traced, const CornuType *types,
                                                int count, bool training,
                                                CornuTracedComputes what)
{
    for (int i = 0; i < 2 * traced->graph_count; i++) {
        const CornuTracedGraph *graph = &traced->graphs[i % traced->graph_count];
        if (cornu__traced_computes(graph) == what &&
            !(training ? graph->inference_only : graph->training_only) &&
            takes(graph, types, count, i < traced->graph_count))
            return graph;
    }
    return NULL;
}

/* The sum of a loss. What it is of the rows of a shard counts by their part of the batch. */
static CornuStatus add_loss(CornuLayer *layer, const CornuCall *call, CornuTensor *loss)
{
    loss = cornu_op_convert(loss, CORNU_F32);
    if (!loss) return cornu_error_status();
    const int rank = cornu_tensor_shape(loss).rank;
    if (rank > 0) loss = cornu_op_reduce_sum(loss, (INT64_C(1) << rank) - 1, false);
    if (call->microbatch || cornu_graph_shards(call->graph) > 1)
        loss = cornu_op_multiply(loss, cornu_op_divide(cornu_op_convert(call->count, CORNU_F32),
                                                       cornu_op_convert(call->total, CORNU_F32)));
    return cornu_layer_add_loss(layer, call, loss);
}

/* A value that a weight takes is the same on all shards: what depends on the rows is known where
 * one shard has all of them. */
static CornuTensor *whole(const CornuLayer *layer, CornuTensor *value)
{
    value = cornu_op_convert(value, CORNU_F32);     /* all_reduce is of f32 */
    if (!value || !cornu_tensor_varies(value)) return value;
    if (cornu_graph_shards(cornu_tensor_graph(value)) == 1)
        return cornu_op_all_reduce(value);
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: assigns a weight what depends on the rows "
                            "of a batch, which several shards have; expected one shard",
                            cornu_layer_name(layer));
}

static CornuStatus settle(CornuLayer *layer, const CornuCall *call, const CornuTracedGraph *graph,
                          CornuTensor *const *made)
{
    for (int i = 0; i < graph->losses; i++)
        if (call->loss || call->shapes_only)
            CORNU__TRY(add_loss(layer, call, made[graph->results + i]));
    for (int i = 0; i < graph->assigned_count && !call->shapes_only; i++) {
        CornuTensor *value = whole(layer, made[graph->results + graph->losses + i]);
        CORNU__TRY(cornu_layer_assign(layer, call, graph->assigned[i], value));
    }
    return CORNU_OK;
}

/* Fills x with the operands as the graph takes them, and the weights that it reads. */
static bool give(CornuLayer *layer, const CornuCall *call, const CornuTracedGraph *graph,
                 CornuTensor *const *in, CornuTensor **x)
{
    for (int i = 0; i < graph->operands; i++) {
        const CornuDtype want = graph->model->inputs[i]->type.dtype;
        const bool       of_floats = cornu_dtype_is_float(cornu_tensor_type(in[i]).dtype);
        x[i] = of_floats == cornu_dtype_is_float(want) ? in[i] : cornu_op_convert(in[i], want);
        if (!x[i]) return false;
    }
    for (int i = 0; i < graph->read_count; i++) {
        const int place = cornu__traced_place(cornu__as_traced(layer), graph->reads[i]);
        if (!(x[graph->operands + i] = cornu_layer_read(layer, call, place))) return false;
    }
    return true;
}

/* The values that weights of other layers are assigned, which the calls in the graph read in their
 * place; `replaced` has room for all. Adds them to the call; false with a pending error. */
static bool replace(const CornuLayer *layer, const CornuTracedGraph *graph, CornuTensor *const *x,
                    CornuReplaced *replaced, CornuCall *call)
{
    CornuTensor *made[CORNU_MAX_MODEL_TENSORS];
    bool         outputs[CORNU_MAX_MODEL_TENSORS] = { false }, any = false;
    const int    first = graph->results + graph->losses;
    for (int i = 0; i < graph->assigned_count; i++)
        any |= outputs[first + i] = graph->assigned[i] >= layer->own_count;
    if (!any) return true;
    if (!cornu__model_call_some(graph->model, call, x, outputs, graph->operands, made)) {
        if (cornu_error_pending()) return false;
        cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: assigns a weight of another layer what "
                         "depends on the operands of the call; expected what depends on weights "
                         "alone", cornu_layer_name(layer));
        return false;
    }
    for (int i = 0; i < graph->assigned_count; i++) {
        if (!outputs[first + i]) continue;
        replaced[i] = (CornuReplaced){ layer->weights[graph->assigned[i]],
                                       cornu_op_convert(made[first + i], CORNU_F32),
                                       call->replaced };
        call->replaced = &replaced[i];
    }
    return true;
}

static CornuTensor *call_graph(CornuLayer *layer, const CornuCall *call,
                               const CornuTracedGraph *graph, CornuTensor *const *in,
                               CornuTensor **out)
{
    CornuTensor *masks[CORNU_MAX_MODEL_TENSORS] = { NULL };
    CornuTensor *y[CORNU_MAX_MODEL_TENSORS], *y_masks[CORNU_MAX_MODEL_TENSORS];
    CornuCall     own = *call;
    CornuReplaced replaced[CORNU_MAX_MODEL_TENSORS];
    own.mask = NULL;
    own.masks = NULL;
    for (int i = 0; i < graph->operands; i++) masks[i] = call->masks ? call->masks[i] : NULL;
    CornuTensor **x = cornu__allocate((size_t)(graph->operands + graph->read_count), sizeof *x);
    if (!x) return cornu__null();
    const bool made = give(layer, call, graph, in, x) &&
                      replace(layer, graph, x, replaced, &own) &&
                      cornu__model_call_layers(graph->model, &own, x, masks, y, y_masks);
    cornu__release(x);
    if (!made) return NULL;
    memcpy(out, y, (size_t)graph->results * sizeof *out);
    return settle(layer, call, graph, y) ? cornu__null() : out[0];
}

CornuTensor *cornu__traced_call_many(CornuLayer *layer, const CornuCall *call,
                                     CornuTensor *const *in, int in_count, CornuTensor **out)
{
    CornuType types[CORNU_MAX_LAYER_TENSORS];
    CornuText text;
    for (int i = 0; i < in_count; i++) types[i] = cornu_tensor_type(in[i]);
    const CornuTracedGraph *graph = cornu__traced_graph_for(
        cornu__as_traced(layer), types, in_count, call->training, CORNU_TRACED_RESULTS);
    if (graph) return call_graph(layer, call, graph, in, out);
    return cornu__fail_null(CORNU_ERR_SHAPE, "%s: was not traced for %s%s of %s",
                            cornu_layer_name(layer),
                            in_count == 1 ? "an operand" : "operands the first of which is",
                            in_count == 1 ? "" : ":", cornu_type_print(&text, types[0]));
}

CornuTensor *cornu__traced_mask_many(CornuLayer *layer, const CornuCall *call,
                                     CornuTensor *const *in, int in_count,
                                     CornuTensor *const *masks, CornuTensor **out_masks)
{
    CornuType    types[CORNU_MAX_LAYER_TENSORS];
    CornuTensor *mask[CORNU_MAX_MODEL_TENSORS];
    for (int i = 0; i < in_count; i++) types[i] = cornu_tensor_type(in[i]);
    const CornuTraced      *traced = cornu__as_traced(layer);
    const CornuTracedGraph *graph = cornu__traced_graph_for(
        traced, types, in_count, call->training, CORNU_TRACED_MASK);
    if (!graph) return traced->supports_masking ? masks[0] : NULL;
    if (!call_graph(layer, call, graph, in, mask)) return NULL;
    for (int i = 1; i < graph->results && i < cornu_layer_outputs(layer); i++)
        out_masks[i] = cornu_op_convert(mask[i], CORNU_BOOL);
    return cornu_op_convert(mask[0], CORNU_BOOL);
}

bool cornu__layer_assigns(const CornuLayer *layer)
{
    const CornuTraced *traced = cornu__as_traced(layer);
    bool               any = false;
    for (int i = 0; traced && i < traced->graph_count; i++)
        any |= traced->graphs[i].assigned_count > 0;
    for (int i = 0; i < layer->inner_count && !any; i++)
        any = cornu__layer_assigns(layer->inner[i]);
    return any;
}

/* ---- As a cell of RNN: a graph of a step and states, with an output and the next states ---- */

static int states(const CornuLayer *layer)
{
    const CornuTracedGraph *graph = cornu__as_traced(layer)->graphs;
    return cornu__as_traced(layer)->graph_count && graph->results == graph->operands
               ? graph->operands - 1 : 0;
}

static CornuShape state_shape(const CornuLayer *layer, int i, CornuShape x)
{
    CornuShape shape = cornu__as_traced(layer)->graphs[0].model->inputs[1 + i]->type.shape;
    shape.extent[0] = x.extent[0];
    return shape;
}

static CornuStatus begin(CornuLayer *layer, const CornuCall *call, int64_t rows,
                         CornuTensor **first)
{
    const CornuTraced *traced = cornu__as_traced(layer);
    const CornuType    column = cornu_type(CORNU_F32, rows, 1);
    CornuTensor       *made[CORNU_MAX_MODEL_TENSORS];
    const CornuTracedGraph *graph = cornu__traced_graph_for(
        traced, &column, 1, call->training, CORNU_TRACED_STATES);
    if (!graph) return CORNU_OK;
    if (graph->results != states(layer))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: begins with %d states and has %d",
                           cornu_layer_name(layer), graph->results, states(layer));
    CornuTensor *x = cornu_op_constant(call->graph, column, 0.0);
    if (!x || !call_graph(layer, call, graph, &x, made)) return cornu_error_take();
    for (int i = 0; i < graph->results; i++) first[i] = cornu_op_convert(made[i], CORNU_F32);
    return cornu_error_take();
}

const CornuCell cornu__traced_cell = { .states = states, .state_shape = state_shape,
                                       .begin = begin, .run = cornu__run_steps, .apart = true };
