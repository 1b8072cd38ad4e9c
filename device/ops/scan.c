/*
 * scan: a body program run once per step, one step after the other.
 *   operands  the first carries, then what is cut into slices along `axis`, then constants
 *   results   the last carries, then what the steps' results are stacked to along `axis`
 * Step t gives the body the carries that step t - 1 left, slice t of each, and the constants, all
 * as inputs in this order; the body's outputs are the next carries and what is stacked. With
 * `reverse` the last slice comes first; what step t makes still is stacked at t.
 */
#include <string.h>

#include "../memory_internal.h"
#include "rules.h"

/* The type of a slice or of a step's result, with the steps' axis, or without it. */
static CornuType stacked(CornuType type, int64_t axis, int64_t steps)
{
    for (int i = type.shape.rank++; i > axis; i--) type.shape.extent[i] = type.shape.extent[i - 1];
    type.shape.extent[axis] = steps;
    return type;
}

/* Whether a step's value of this type can be stacked. */
static bool stacks(const CornuAttributes_SCAN *scan, CornuType type)
{
    return scan->axis >= 0 && scan->axis <= type.shape.rank && type.shape.rank < CORNU_MAX_RANK;
}

static CornuStatus check_counts(const CornuOpCall *call)
{
    const CornuAttributes_SCAN *scan = &call->attributes->scan;
    const CornuProgram         *body = scan->body;
    if (call->in_count != body->input_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d operands, the body has %d inputs",
                           call->in_count, body->input_count);
    if (call->in_count > CORNU_MAX_INPUTS || body->output_count > CORNU_MAX_OUTPUTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%d operands and %d results, expected at most %d "
                           "and %d", call->in_count, body->output_count, CORNU_MAX_INPUTS,
                           CORNU_MAX_OUTPUTS);
    if (scan->carries < 0 || scan->slices < 0 || scan->carries > call->in_count - scan->slices)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%lld carries and %lld slices among %d operands",
                           (long long)scan->carries, (long long)scan->slices, call->in_count);
    if (body->output_count < 1 || body->output_count < scan->carries)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the body has %d outputs, expected at least %lld",
                           body->output_count,
                           (long long)(scan->carries > 1 ? scan->carries : 1));
    if (scan->steps < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%lld steps, expected at least 1",
                           (long long)scan->steps);
    return CORNU_OK;
}

/* A step is one shard's own affair, and writes into none of its operands. */
static CornuStatus check_body(const CornuProgram *body)
{
    for (int i = 0; i < body->op_count; i++)
        if (cornu__is_collective(body->ops[i].id) || body->ops[i].id == CORNU_OP_REPLICA_ID)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s cannot be part of a step",
                               cornu_op_name(body->ops[i].id));
    for (int i = 0; i < body->input_count; i++)
        if (body->values[body->inputs[i]].varies)
            return cornu__fail(CORNU_ERR_ARGUMENT, "input %d of the body is dealt over shards", i);
    for (int i = 0; i < body->output_count; i++)
        if (body->outputs[i].alias >= 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "output %d of the body goes into an input", i);
    return CORNU_OK;
}

static CornuStatus check_operand(const CornuOpCall *call, int i)
{
    const CornuAttributes_SCAN *scan = &call->attributes->scan;
    CornuType    expected = cornu_program_type(scan->body, scan->body->inputs[i]);
    const bool   sliced = i >= scan->carries && i < scan->carries + scan->slices;
    CornuText    is, wanted;
    if (sliced && !stacks(scan, expected))
        return cornu__fail(CORNU_ERR_SHAPE, "slices of operand %d are %s, which has no room for "
                           "axis %lld", i, cornu_type_print(&is, expected), (long long)scan->axis);
    if (sliced) expected = stacked(expected, scan->axis, scan->steps);
    if (cornu_type_equal(call->in[i], expected)) return CORNU_OK;
    return cornu__fail(call->in[i].dtype == expected.dtype ? CORNU_ERR_SHAPE : CORNU_ERR_DTYPE,
                       "operand %d is %s, the body expects %s", i,
                       cornu_type_print(&is, call->in[i]), cornu_type_print(&wanted, expected));
}

static CornuStatus scan_type(const CornuOpCall *call, CornuType *out)
{
    const CornuAttributes_SCAN *scan = &call->attributes->scan;
    CornuText                   before, after;
    CORNU__TRY(check_counts(call));
    CORNU__TRY(check_body(scan->body));
    for (int i = 0; i < call->in_count; i++) CORNU__TRY(check_operand(call, i));
    for (int i = 0; i < scan->body->output_count; i++) {
        out[i] = cornu_program_type(scan->body, scan->body->outputs[i].value);
        if (i < scan->carries && !cornu_type_equal(out[i], call->in[i]))
            return cornu__fail(CORNU_ERR_SHAPE, "carry %d is %s before a step and %s behind it", i,
                               cornu_type_print(&before, call->in[i]),
                               cornu_type_print(&after, out[i]));
        if (i < scan->carries) continue;
        if (!stacks(scan, out[i]))
            return cornu__fail(CORNU_ERR_SHAPE, "result %d of a step is %s, which has no room for "
                               "axis %lld", i, cornu_type_print(&after, out[i]),
                               (long long)scan->axis);
        out[i] = stacked(out[i], scan->axis, scan->steps);
    }
    return CORNU_OK;
}

static int64_t scan_flops(const CornuOpCall *call)
{
    const CornuAttributes_SCAN *scan = &call->attributes->scan;
    return cornu__flops(2, (const int64_t[]){ scan->steps, cornu_program_flops(scan->body) });
}

/* ---- Reference ---- */

/* Memory of one run: every value of the body, and room for an op's operands. */
typedef struct {
    double       **value;
    double        *elements;
    const double **in;
    CornuType     *in_type;
} Room;

static int64_t count_of(const CornuProgram *body, CornuValue value)
{
    return cornu_type_count(cornu_program_type(body, value));
}

static CornuStatus room_take(Room *room, const CornuProgram *body)
{
    const size_t operands = (size_t)cornu__most_operands(body);
    int64_t      count = 0;
    for (int v = 0; v < body->value_count; v++) count += count_of(body, v);
    room->value = cornu__allocate((size_t)body->value_count, sizeof *room->value);
    room->elements = cornu__allocate((size_t)count, sizeof *room->elements);
    room->in = cornu__allocate(operands, sizeof *room->in);
    room->in_type = cornu__allocate(operands, sizeof *room->in_type);
    if (!room->value || !room->elements || !room->in || !room->in_type) return CORNU_ERR_MEMORY;
    double *at = room->elements;
    for (int v = 0; v < body->value_count; at += count_of(body, v++)) room->value[v] = at;
    return CORNU_OK;
}

static void room_give(Room *room)
{
    cornu__release(room->value);
    cornu__release(room->elements);
    cornu__release(room->in);
    cornu__release(room->in_type);
}

/* Element i of a slice stands at this place in the whole, of which slice t is taken; `inner` is the
 * number of elements behind the steps' axis. */
static int64_t place(int64_t i, int64_t t, int64_t steps, int64_t inner)
{
    return (i / inner * steps + t) * inner + i % inner;
}

static int64_t inner_of(CornuType whole, int64_t axis)
{
    int64_t inner = 1;
    for (int i = (int)axis + 1; i < whole.shape.rank; i++) inner *= whole.shape.extent[i];
    return inner > 0 ? inner : 1;
}

static CornuStatus run_step(const CornuReferenceCall *call, const Room *room, int64_t t)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    const CornuProgram         *body = scan->body;
    for (int64_t k = scan->carries; k < scan->carries + scan->slices; k++) {
        const int64_t inner = inner_of(call->op.in[k], scan->axis);
        double       *slice = room->value[body->inputs[k]];
        for (int64_t i = 0; i < count_of(body, body->inputs[k]); i++)
            slice[i] = call->in[k][place(i, t, scan->steps, inner)];
    }
    CORNU__TRY(cornu__reference_program(body, room->value, room->in, room->in_type));
    for (int64_t k = 0; k < body->output_count; k++) {
        const CornuValue made = body->outputs[k].value;
        const bool       carry = k < scan->carries;
        const int64_t    inner = carry ? 1 : inner_of(call->out_type[k], scan->axis);
        for (int64_t i = 0; i < count_of(body, made); i++)
            call->out[k][carry ? i : place(i, t, scan->steps, inner)] = room->value[made][i];
    }
    for (int64_t k = 0; k < scan->carries; k++)
        memcpy(room->value[body->inputs[k]], call->out[k],
               (size_t)count_of(body, body->inputs[k]) * sizeof(double));
    return CORNU_OK;
}

/* Takes memory for the body's values: only here does running on the reference device allocate. */
static CornuStatus scan_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    Room                        room = { 0 };
    CornuStatus                 status = room_take(&room, scan->body);
    for (int i = 0; i < call->op.in_count && !status; i++)
        if (i < scan->carries || i >= scan->carries + scan->slices)
            memcpy(room.value[scan->body->inputs[i]], call->in[i],
                   (size_t)cornu_type_count(call->op.in[i]) * sizeof(double));
    for (int64_t step = 0; step < scan->steps && !status; step++) {
        const int64_t t = scan->reverse ? scan->steps - 1 - step : step;
        status = run_step(call, &room, t);
    }
    room_give(&room);
    return status;
}

const CornuOpRules cornu__scan_rules = { scan_type, scan_flops, CORNU_PRIMITIVE, scan_reference };
