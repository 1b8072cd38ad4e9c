/* Layers that run a cell over time: initial states, states that outlast a batch, what is
 * returned. */
#include <string.h>

#include "../steps/past_internal.h"
#include "recurrent_internal.h"

bool cornu__is_recurrent(const CornuLayer *layer)
{
    return layer->kind->call_many == cornu__over_time_call;
}

bool cornu__is_cell(const CornuLayer *layer)
{
    return layer->kind->is_cell && cornu__cell(layer)->states(layer) > 0;
}

/* Only RNN has its cell as an inner layer. */
CornuLayer *cornu__cell_of(const CornuLayer *layer)
{
    return layer->inner_count ? layer->inner[0] : (CornuLayer *)layer;
}

bool *cornu__over_time(const CornuLayer *layer, const char *argument)
{
    const CornuField *field = cornu__keras_class(layer)->fields;
    while (strcmp(field->name, argument)) field++;
    return (bool *)((char *)layer + cornu__keras_class(layer)->config_offset + field->offset);
}

static bool is_set(const CornuLayer *layer, const char *argument)
{
    return *cornu__over_time(layer, argument);
}

/* ---- States ---- */

static int states_of(const CornuLayer *cell) { return cornu__cell(cell)->states(cell); }

/* Checks number and shapes of the given states. */
static CornuStatus check_given(const CornuLayer *layer, const CornuLayer *cell, CornuShape x,
                               CornuTensor *const *given, int count)
{
    if (count != 0 && count != states_of(cell))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d initial states, expected %d or none",
                           cornu_layer_name(layer), count, states_of(cell));
    for (int i = 0; i < count; i++) {
        const CornuShape want = cornu__cell(cell)->state_shape(cell, i, x);
        const CornuType  type = cornu_tensor_type(given[i]);
        CornuText        a, b;
        if (cornu_shape_equal(type.shape, want) && cornu_dtype_is_float(type.dtype)) continue;
        return cornu__fail(CORNU_ERR_SHAPE, "%s: initial state %d is %s, expected %s",
                           cornu_layer_name(layer), i, cornu_type_print(&a, type),
                           cornu_type_print(&b, cornu_type_from(layer->compute, want)));
    }
    return CORNU_OK;
}

/* Writes the value of a tensor (B, …) of `graph` to a state of as many rows, on each shard. */
static CornuStatus write_first(CornuGraph *graph, CornuTensor *value, CornuVariable *state)
{
    const CornuType type = cornu_tensor_type(value), host = cornu_variable_host_type(state);
    const size_t    bytes = cornu_type_bytes(type), all = cornu_type_bytes(host);
    char           *data = cornu__allocate(all, 1);
    CornuArray      of_one = cornu_array_from(data, type);
    if (!data) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu_run(graph, &value, 1, &of_one);
    for (size_t at = bytes; at < all && !status; at += bytes) memcpy(data + at, data, bytes);
    if (!status) status = cornu_variable_write(state, cornu_array_from(data, host));
    cornu__release(data);
    return status;
}

/* What the states of a stateful layer are at first is what its cell begins with, which is computed
 * once, when they are made. */
static CornuStatus compute_first(CornuLayer *layer, CornuLayer *cell, const CornuCall *call,
                                 int64_t rows)
{
    CornuTensor *first[CORNU_MAX_LAYER_STATES] = { NULL };
    CornuGraph  *graph = cornu_graph_create(cornu_graph_device(call->graph));
    if (!graph) return cornu_error_take();
    CornuTensor *none = cornu_op_constant(graph, cornu_scalar(CORNU_I64), 0.0);
    CornuTensor *all = cornu_op_constant(graph, cornu_scalar(CORNU_I64), (double)rows);
    const CornuCall own = { .graph = graph, .training = call->training, .count = all, .total = all,
                            .position = none, .iteration = none, .seed = none };
    CornuStatus status = cornu__cell(cell)->begin(cell, &own, rows, first);
    for (int i = 0; i < states_of(cell) && !status; i++)
        if (first[i]) status = write_first(graph, first[i], layer->states[i]);
    cornu_graph_free(graph);
    return status;
}

/* Fills `first`: the states given, else the stored ones if stateful, else those of the cell, NULL
 * for zeros. False with a pending error. */
static bool begin(CornuLayer *layer, CornuLayer *cell, const CornuCall *call,
                  CornuTensor *const *in, int in_count, bool stateful, CornuTensor **first)
{
    const CornuShape x = cornu_tensor_shape(in[0]);
    if (check_given(layer, cell, x, in + 1, in_count - 1)) {
        cornu__null();
        return false;
    }
    const bool fresh = stateful && !call->shapes_only && !layer->states[0];
    for (int i = 0; i < states_of(cell); i++) {
        first[i] = !stateful ? NULL : cornu_layer_state(layer, call, i,
                                                        cornu__cell(cell)->state_shape(cell, i, x));
        if (i + 1 < in_count) first[i] = cornu_op_convert(in[i + 1], CORNU_F32);
    }
    CornuStatus status = CORNU_OK;
    if (fresh && cornu__cell(cell)->begin && !cornu_error_pending())
        status = compute_first(layer, cell, call, x.extent[0]);
    else if (in_count == 1 && !stateful && cornu__cell(cell)->begin)
        status = cornu__cell(cell)->begin(cell, call, x.extent[0], first);
    if (status) cornu__null();
    return !cornu_error_pending();
}

/* ---- Layers ---- */

int cornu__over_time_outputs(const CornuLayer *layer)
{
    return is_set(layer, "return_state") ? 1 + states_of(cornu__cell_of(layer)) : 1;
}

CornuTensor *cornu__last_step(CornuTensor *h, bool reverse)
{
    if (!h) return NULL;
    CornuShape  shape = cornu_tensor_shape(h);
    int64_t     starts[CORNU_MAX_RANK] = { 0, reverse ? 0 : shape.extent[1] - 1 };
    shape.extent[1] = 1;
    CornuTensor *last = cornu_op_slice(h, starts, shape.extent);
    for (int i = 1; i + 1 < shape.rank; i++) shape.extent[i] = shape.extent[i + 1];
    shape.extent[--shape.rank] = 0;
    return cornu_op_reshape(last, shape);
}

/* Which state is the output, h of the last cell; -1: none is. */
static int output_state(const CornuLayer *cell)
{
    if (cornu__cell(cell)->apart) return -1;
    if (!cell->inner_count) return 0;
    const CornuLayer *end = cell->inner[cell->inner_count - 1];
    const int         of_end = output_state(end);
    return of_end < 0 ? -1 : states_of(cell) - states_of(end) + of_end;
}

CornuTensor *cornu__where_valid(CornuTensor *mask, CornuTensor *new, CornuTensor *old)
{
    if (!mask || !new) return new;
    CornuShape shape = { .rank = cornu_tensor_shape(new).rank, .extent = { CORNU_NONE } };
    for (int i = 1; i < shape.rank; i++) shape.extent[i] = 1;
    return cornu_op_select(cornu_op_reshape(mask, shape), new, old);
}

/* h (B, T, …) where the mask (B, T) is true, else 0. */
static CornuTensor *zeroed(CornuTensor *h, CornuTensor *mask)
{
    CornuShape shape = cornu_tensor_shape(mask);
    while (shape.rank < cornu_tensor_shape(h).rank) shape.extent[shape.rank++] = 1;
    return cornu_op_select(cornu_op_reshape(mask, shape), h, cornu_op_constant_like(h, 0.0));
}

/* With initial states, Keras uses a mask that the call was given, not one that comes with its
 * input, though that passes on. Source: keras/src/layers/layer.py, __call__, where a layer of
 * several tensor arguments gets masks named after them alone. */
CornuTensor *cornu__over_time_call(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out)
{
    const bool   reverse = is_set(layer, "go_backwards"), stateful = is_set(layer, "stateful");
    CornuCall    unmasked = *call;
    CornuLayer  *cell = cornu__cell_of(layer);
    CornuTensor *first[CORNU_MAX_LAYER_STATES], *last[CORNU_MAX_LAYER_STATES] = { NULL };
    unmasked.mask = NULL;
    if (in_count > 1 && call->inherited) call = &unmasked;
    if (!in[0] || !begin(layer, cell, call, in, in_count, stateful, first)) return NULL;
    CornuTensor *h = cornu__cell(cell)->run(cell, call, in[0], first, reverse, last);
    for (int i = 0; i < states_of(cell); i++) {
        if (!h || !last[i]) return NULL;
        if (stateful && cornu_layer_set_state(layer, call, i, last[i])) return cornu__null();
        if (is_set(layer, "return_state")) out[1 + i] = cornu_op_convert(last[i], layer->compute);
    }
    const bool zeroes = is_set(layer, "zero_output_for_mask") && call->mask;
    if (!h) return NULL;
    const int output = output_state(cell);
    if (!is_set(layer, "return_sequences") && !zeroes && output >= 0)
        return cornu_op_convert(last[output], layer->compute);
    h = cornu_op_convert(h, layer->compute);
    if (h && zeroes) h = zeroed(h, call->mask);
    if (!is_set(layer, "return_sequences")) return cornu__last_step(h, reverse);
    return reverse ? cornu_op_flip(h, 1) : h;
}

/* The states are those that the steps before left. */
CornuTensor *cornu__over_time_continue(CornuLayer *layer, const CornuCall *call,
                                       CornuTensor *const *in, int in_count, CornuTensor **out)
{
    CornuLayer    *cell = cornu__cell_of(layer);
    CornuVariable *states[CORNU_MAX_LAYER_STATES];
    CornuTensor   *first[CORNU_MAX_LAYER_STATES], *last[CORNU_MAX_LAYER_STATES] = { NULL };
    CornuTensor   *valid = call->past->valid;
    CornuCall      own = *call;
    const char    *why = is_set(layer, "go_backwards")       ? "goes backwards"
                         : !is_set(layer, "return_sequences") ? "returns the last step alone"
                         : is_set(layer, "return_state")      ? "returns its states"
                         : in_count > 1                       ? "is given initial states" : NULL;
    if (why && cornu__past_refuse(layer, why)) return cornu__null();
    own.past = NULL;
    if (valid) own.mask = call->mask ? cornu_op_select(valid, call->mask, valid) : valid;
    for (int i = 0; i < states_of(cell); i++) {
        const CornuShape shape = cornu__cell(cell)->state_shape(cell, i, cornu_tensor_shape(in[0]));
        first[i] = cornu__past_state(call, cornu_type_from(CORNU_F32, shape), &states[i]);
        if (call->past->begins) first[i] = NULL;
    }
    if (cornu_error_pending()) return NULL;
    CornuTensor *h = cornu__cell(cell)->run(cell, &own, in[0], first, false, last);
    for (int i = 0; i < states_of(cell) && h; i++)
        if (cornu__past_keep(states[i], last[i])) return cornu__null();
    h = cornu_op_convert(h, layer->compute);
    if (h && is_set(layer, "zero_output_for_mask") && call->mask) h = zeroed(h, call->mask);
    return out[0] = h;
}

CornuTensor *cornu__over_time_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)x;
    return is_set(layer, "return_sequences") ? call->mask : NULL;
}

/* ---- Cells ---- */

/* Of the library's the states follow from the step. */
CornuStatus cornu__build_cell(CornuLayer *layer, int i, CornuShape step)
{
    const CornuLayer *cell = layer->inner[i];
    CornuShape        in[1 + CORNU_MAX_LAYER_STATES] = { step };
    const int         states = cornu__cell(cell)->apart ? states_of(cell) : 0;
    for (int k = 0; k < states; k++) in[1 + k] = cornu__cell(cell)->state_shape(cell, k, step);
    return cornu__layer_build_inner_many(layer, i, in, 1 + states);
}

int cornu__cell_outputs(const CornuLayer *cell) { return 1 + states_of(cell); }

/* A sequence of one step. */
CornuTensor *cornu__cell_call(CornuLayer *cell, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    CornuTensor *first[CORNU_MAX_LAYER_STATES], *given[CORNU_MAX_LAYER_TENSORS];
    CornuCall    step = *call;
    if (!in[0]) return NULL;
    CornuShape shape = cornu_tensor_shape(in[0]);
    for (int i = shape.rank++; i > 1; i--) shape.extent[i] = shape.extent[i - 1];
    shape.extent[1] = 1;
    step.mask = NULL;
    for (int i = 1; i < in_count; i++) given[i] = in[i];
    if (!(given[0] = cornu_op_reshape(in[0], shape)) ||
        !begin(cell, cell, &step, given, in_count, false, first))
        return NULL;
    const int    output = output_state(cell);
    CornuTensor *h = cornu__cell(cell)->run(cell, &step, given[0], first, false, out + 1);
    if (!h) return NULL;
    for (int i = 0; i < states_of(cell); i++)
        out[1 + i] = cornu_op_convert(out[1 + i], cell->compute);
    return output < 0 ? cornu_op_convert(cornu__last_step(h, false), cell->compute)
                      : out[1 + output];
}
