#include "past_internal.h"

CornuTensor *cornu__past_state(const CornuCall *call, CornuType type, CornuVariable **state)
{
    *state = call->past->state(call->past->context, type);
    return *state ? cornu_read(call->graph, *state) : NULL;
}

CornuStatus cornu__past_keep(CornuVariable *state, CornuTensor *value)
{
    if (!value) return cornu_error_status();
    return cornu_assign(state, cornu_op_convert(value, cornu_variable_type(state).dtype));
}

/* i32 (B, 1, …) of this rank. */
static CornuTensor *by_sequence(CornuTensor *x, int rank)
{
    if (!x) return NULL;
    CornuShape shape = { .rank = rank, .extent = { cornu_tensor_shape(x).extent[0] } };
    for (int i = 1; i < rank; i++) shape.extent[i] = 1;
    return cornu_op_reshape(x, shape);
}

/* The rows x[b] + b each, of a table in which each sequence has `each`. */
static CornuTensor *rows_at(const CornuCall *call, CornuTensor *x, int64_t each)
{
    if (!x) return NULL;
    CornuTensor *b = cornu_op_iota(call->graph, cornu_tensor_type(x), 0);
    return cornu_op_add(x, cornu_op_scale(b, (double)each));
}

/* (B, T, …) with another T. */
static CornuShape with_steps(CornuShape shape, int64_t steps)
{
    shape.extent[1] = steps;
    return shape;
}

/* The steps of all sequences as the rows of a table. */
static CornuTensor *as_table(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    return cornu_op_reshape(x, cornu_shape(shape.extent[0] * shape.extent[1], CORNU_NONE));
}

CornuTensor *cornu__past_join(const CornuCall *call, CornuTensor *x)
{
    CornuPast     *past = call->past;
    CornuVariable *state;
    if (!x) return NULL;
    CornuType     type = cornu_tensor_type(x);
    const int64_t steps = type.shape.extent[1], later[] = { 0, past->window - steps, 0, 0, 0, 0 };
    static const int64_t none[CORNU_MAX_RANK] = { 0 };
    past->windowed = true;
    type.shape.extent[1] = past->window;
    CornuTensor *kept = cornu__past_state(call, type, &state);
    if (past->begins) {
        if (cornu__past_keep(state, cornu_op_pad(x, none, later, 0.0))) return cornu__null();
        return x;
    }
    CornuTensor *all = cornu_op_scatter_rows(as_table(kept),
                                             rows_at(call, past->position, past->window),
                                             as_table(x));
    all = cornu_op_reshape(all, type.shape);
    return cornu__past_keep(state, all) ? cornu__null() : all;
}

CornuTensor *cornu__past_mask(const CornuCall *call, int64_t distance)
{
    const CornuType steps = cornu_type(CORNU_I32, 1, 1, 1, call->past->window);
    CornuTensor *position = by_sequence(call->past->position, 4);
    CornuTensor *s = cornu_op_iota(call->graph, steps, 3);
    CornuTensor *mask = cornu_op_compare(s, CORNU_LESS_EQUAL, position);
    if (!mask || !distance) return mask;
    CornuTensor *near = cornu_op_compare(position, CORNU_LESS,
                                         cornu_op_shift(s, (double)distance));
    return cornu_op_select(mask, near, mask);
}

/* Of (B, steps + T, …) the `steps` that end with the last one of each sequence. */
static CornuTensor *last_steps(const CornuCall *call, CornuTensor *x, int64_t steps)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x), kept = with_steps(shape, steps);
    const int64_t    all = shape.extent[1], starts[CORNU_MAX_RANK] = { 0, all - steps };
    CornuTensor     *count = call->past->count;
    if (!count) return cornu_op_slice(x, starts, kept.extent);
    CornuTensor *first = by_sequence(rows_at(call, count, all), 2);
    CornuTensor *after = cornu_op_iota(call->graph, cornu_type(CORNU_I32, 1, steps), 1);
    return cornu_op_reshape(cornu_op_gather(as_table(x), cornu_op_add(first, after)), kept);
}

CornuTensor *cornu__past_lead(const CornuCall *call, CornuTensor *x, int64_t steps)
{
    CornuVariable *state;
    if (!x) return NULL;
    CornuType    type = cornu_tensor_type(x);
    type.shape.extent[1] = steps;
    CornuTensor *kept = cornu__past_state(call, type, &state);
    if (kept && call->past->begins) kept = cornu_op_constant_like(kept, 0.0);
    CornuTensor *both[] = { kept, x };
    CornuTensor *all = kept ? cornu_op_concat(both, 2, 1) : NULL;
    return cornu__past_keep(state, last_steps(call, all, steps)) ? cornu__null() : all;
}
