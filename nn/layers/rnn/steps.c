/* A layer as a cell: called on a step and its states, it returns the output and the next states. */
#include "recurrent_internal.h"

#include "../../../device/inference_internal.h"

#include <string.h>

enum { MOST_STEPS = 4096, MOST_WEIGHTS = 24, SCALARS = 4, MOST_STATES = CORNU_MAX_LAYER_STATES };

typedef struct {
    CornuLayer      *cell;
    const CornuCall *call;
    int              states;
    bool             masked, draws;   /* draws: steps differ in their random numbers */
    int64_t          rows;
} Steps;

/* One step of x (B, T, …), (B, …). */
static CornuTensor *step_of(CornuTensor *x, int64_t t)
{
    if (!x) return NULL;
    CornuShape    part = cornu_tensor_shape(x), step = part;
    const int64_t starts[CORNU_MAX_RANK] = { 0, t };
    part.extent[1] = 1;
    for (int i = 1; i + 1 < step.rank; i++) step.extent[i] = step.extent[i + 1];
    step.extent[--step.rank] = 0;
    return cornu_op_reshape(cornu_op_slice(x, starts, part.extent), step);
}

/* y (B, …) as one step, (B, 1, …). */
static CornuTensor *as_step(CornuTensor *y)
{
    if (!y) return NULL;
    CornuShape shape = cornu_tensor_shape(y);
    for (int i = shape.rank++; i > 1; i--) shape.extent[i] = shape.extent[i - 1];
    shape.extent[1] = 1;
    return cornu_op_reshape(y, shape);
}

/* Calls the cell: fills `states` with the next ones, f32, and returns the output. Where the mask
 * (B) is false both are what they were; `before` NULL is an output of zeros. */
static CornuTensor *call_cell(const Steps *steps, const CornuCall *call, CornuTensor *x,
                              CornuTensor *mask, CornuTensor *before, CornuTensor **states)
{
    CornuTensor *in[1 + MOST_STATES] = { x }, *out[1 + MOST_STATES];
    CornuCall    own = *call;
    own.mask = NULL;
    own.masks = NULL;
    for (int i = 0; i < steps->states; i++) in[1 + i] = states[i];
    if (!cornu_layer_call_many(steps->cell, &own, in, 1 + steps->states, out, 1 + steps->states))
        return NULL;
    for (int i = 0; i < steps->states; i++)
        states[i] = cornu__where_valid(mask, cornu_op_convert(out[1 + i], CORNU_F32), states[i]);
    if (mask && !before) before = cornu_op_constant_like(out[0], 0.0);
    return cornu__where_valid(mask, out[0], before);
}

/* ---- A loop ---- */

/* The scalars of a call that a step may read; the place of row 0 is apart. */
static void scalars_of(CornuCall *call, CornuTensor **scalars[SCALARS])
{
    scalars[0] = &call->count;
    scalars[1] = &call->total;
    scalars[2] = &call->seed;
    scalars[3] = &call->iteration;
}

/* The step as the body of a loop: carries are the states, the output if there is a mask, and the
 * place of row 0 if the steps differ in it; then x and the mask; then scalars and weights. */
static void loop_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Steps  *steps = context;
    CornuReplaced replaced[MOST_WEIGHTS];
    CornuCall     own = *steps->call;
    CornuTensor **scalars[SCALARS], *states[MOST_STATES], *added = NULL, *before = NULL;
    own.graph = cornu_tensor_graph(in[0]);
    if (own.loss) own.loss = &added;
    scalars_of(&own, scalars);
    for (int i = 0; i < steps->states; i++) states[i] = *in++;
    if (steps->masked) before = *in++;
    if (steps->draws) own.position = *in++;
    CornuTensor *x = *in++, *mask = steps->masked ? *in++ : NULL;
    for (int i = 0; i < SCALARS && steps->draws; i++)
        if (*scalars[i]) *scalars[i] = *in++;
    for (int i = 0; i < steps->cell->weight_count; i++) {
        replaced[i] = (CornuReplaced){ steps->cell->weights[i], *in++, own.replaced };
        own.replaced = &replaced[i];
    }
    CornuTensor *y = call_cell(steps, &own, x, mask, before, states);
    if (!y || added) return;    /* what is added to the loss is for all steps to be recorded */
    for (int i = 0; i < steps->states; i++) *out++ = states[i];
    if (steps->masked) *out++ = y;
    if (steps->draws) *out++ = cornu_op_shift(own.position, (double)steps->rows);
    *out = y;
}

/* Zeros as the output of a step. */
static CornuTensor *no_output(const Steps *steps, CornuTensor *x, CornuTensor *const *states)
{
    CornuType types[1 + MOST_STATES], out[CORNU_MAX_LAYER_TENSORS];
    types[0] = cornu_tensor_type(step_of(x, 0));
    for (int i = 0; i < steps->states; i++) types[1 + i] = cornu_tensor_type(states[i]);
    if (cornu__layer_trace(steps->cell, types, 1 + steps->states, out)) return cornu__null();
    out[0].shape.extent[0] = steps->rows;
    return cornu_op_constant(cornu_tensor_graph(x), out[0], 0.0);
}

/* The outputs; NULL with a pending error where a step cannot be a body of a loop. */
static CornuTensor *looped(Steps *steps, CornuTensor *x, CornuTensor **states, bool reverse)
{
    CornuLayer      *cell = steps->cell;
    const CornuCall *call = steps->call;
    CornuTensor *carries[2 + MOST_STATES], *slices[] = { x, call->mask };
    CornuTensor *constants[SCALARS + MOST_WEIGHTS], *out[3 + MOST_STATES] = { NULL };
    CornuTensor **scalars[SCALARS];
    CornuCall     own = *call;
    int           count = 0, last = steps->states;
    if (cell->weight_count > MOST_WEIGHTS)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the cell has %d weights",
                                cell->weight_count);
    memcpy(carries, states, (size_t)steps->states * sizeof *states);
    if (steps->masked && !(carries[last++] = no_output(steps, x, states))) return NULL;
    if (steps->draws) carries[last++] = call->position;
    scalars_of(&own, scalars);
    for (int i = 0; i < SCALARS && steps->draws; i++)
        if (*scalars[i]) constants[count++] = *scalars[i];
    for (int i = 0; i < cell->weight_count; i++)
        constants[count++] = cornu_layer_read_as(cell, call, i, CORNU_F32);
    const CornuScan scan = {
        .carries = carries, .carry_count = last, .slices = slices,
        .slice_count = steps->masked ? 2 : 1, .constants = constants, .constant_count = count,
        .axis = 1, .stacked_count = 1, .reverse = reverse,
    };
    if (!cornu_op_scan(&scan, loop_step, steps, out)) return NULL;
    memcpy(states, out, (size_t)steps->states * sizeof *states);
    return out[last];
}

/* Whether a step changes weights, which a loop cannot. */
static bool assigns(const Steps *steps)
{
    bool any = false;
    for (int i = 0; i < steps->cell->weight_count; i++)
        any |= steps->cell->weights[i]->non_trainable;
    return any && cornu__in_training(steps->call);
}

/* ---- All steps ---- */

static CornuTensor *unrolled(Steps *steps, CornuTensor *x, CornuTensor **states, bool reverse)
{
    const int64_t count = cornu_tensor_shape(x).extent[1];
    CornuTensor  *before = NULL, *all = NULL;
    if (count > MOST_STEPS)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "%s: %lld steps of a cell that is no body "
                                "of a loop, as it changes weights, adds a loss or has constants; "
                                "expected at most %d", cornu_layer_name(steps->cell),
                                (long long)count, MOST_STEPS);
    CornuTensor **y = cornu__allocate((size_t)count, sizeof *y);
    if (!y) return cornu__null();
    CornuCall own = *steps->call;
    for (int64_t i = 0; i < count; i++) {
        const int64_t t = reverse ? count - 1 - i : i;
        CornuTensor  *mask = step_of(steps->call->mask, t);
        before = call_cell(steps, &own, step_of(x, t), mask, before, states);
        if (!(y[t] = as_step(before))) break;
        if (steps->draws) own.position = cornu_op_shift(own.position, (double)steps->rows);
        if (i + 1 == count) all = cornu_op_concat(y, (int)count, 1);
    }
    cornu__release(y);
    return all;
}

CornuTensor *cornu__run_steps(CornuLayer *cell, const CornuCall *call, CornuTensor *x,
                              CornuTensor *const *first, bool reverse, CornuTensor **last)
{
    const CornuShape shape = cornu_tensor_shape(x);
    CornuTensor     *states[MOST_STATES];
    Steps steps = { .cell = cell, .call = call, .states = cornu__cell(cell)->states(cell),
                    .masked = call->mask != NULL, .rows = shape.extent[0],
                    .draws = cornu__in_training(call) && call->position };
    for (int i = 0; i < steps.states; i++) {
        const CornuType type = cornu_type_from(CORNU_F32,
                                               cornu__cell(cell)->state_shape(cell, i, shape));
        last[i] = first[i] ? first[i] : cornu_op_constant(call->graph, type, 0.0);
        if (!last[i]) return NULL;
    }
    memcpy(states, last, (size_t)steps.states * sizeof *states);
    CornuTensor *y = assigns(&steps) ? NULL : looped(&steps, x, last, reverse);
    if (y || (cornu_error_pending() && cornu_error_status() == CORNU_ERR_MEMORY)) return y;
    cornu_error_take();
    memcpy(last, states, (size_t)steps.states * sizeof *states);
    return unrolled(&steps, x, last, reverse);
}
