/*
 * scan: a loop that runs a body program once per step.
 *   operands  the initial carries, then operands sliced along `axis`, then constants
 *   results   the final carries, then the stacked results, along `axis`
 * The inputs of the body in step t are the carries of step t - 1, slice t of each sliced operand,
 * and the constants; its outputs are the next carries and slice t of each stacked result. With
 * `reverse` the last step runs first; its results are still at its own index.
 */
#include <string.h>

#include "body.h"

/* The type of a slice or of a step's result, with the axis of steps inserted. */
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

static CornuStatus check_operand(const CornuOpCall *call, int i)
{
    const CornuAttributes_SCAN *scan = &call->attributes->scan;
    CornuType    expected = cornu_program_type(scan->body, scan->body->inputs[i]);
    const bool   sliced = i >= scan->carries && i < scan->carries + scan->slices;
    CornuText    is, wanted;
    if (sliced && !stacks(scan, expected))
        return cornu__fail(CORNU_ERR_SHAPE, "slices of operand %d are %s, which cannot be "
                           "stacked along axis %lld", i, cornu_type_print(&is, expected),
                           (long long)scan->axis);
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
    CORNU__TRY(cornu__body_check(scan->body, "scan", true));
    for (int i = 0; i < call->in_count; i++) CORNU__TRY(check_operand(call, i));
    for (int i = 0; i < scan->body->output_count; i++) {
        out[i] = cornu_program_type(scan->body, scan->body->outputs[i].value);
        if (i < scan->carries && !cornu_type_equal(out[i], call->in[i]))
            return cornu__fail(CORNU_ERR_SHAPE, "carry %d is %s before a step and %s after it", i,
                               cornu_type_print(&before, call->in[i]),
                               cornu_type_print(&after, out[i]));
        if (i < scan->carries) continue;
        if (!stacks(scan, out[i]))
            return cornu__fail(CORNU_ERR_SHAPE, "result %d of a step is %s, which cannot be "
                               "stacked along axis %lld", i, cornu_type_print(&after, out[i]),
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

/* Where element i of slice t is in the whole; `inner` is the number of elements per step along the
 * axes after that of the steps. */
static int64_t element_of_slice(int64_t i, int64_t t, int64_t steps, int64_t inner)
{
    return (i / inner * steps + t) * inner + i % inner;
}

static int64_t inner_of(CornuType whole, int64_t axis)
{
    int64_t inner = 1;
    for (int i = (int)axis + 1; i < whole.shape.rank; i++) inner *= whole.shape.extent[i];
    return inner > 0 ? inner : 1;
}

static CornuStatus run_step(const CornuReferenceCall *call, const CornuBodyMemory *memory,
                            int64_t t)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    const CornuProgram         *body = scan->body;
    for (int64_t k = scan->carries; k < scan->carries + scan->slices; k++) {
        const int64_t inner = inner_of(call->op.in[k], scan->axis);
        double       *slice = memory->value[body->inputs[k]];
        for (int64_t i = 0; i < cornu__body_count(body, body->inputs[k]); i++)
            slice[i] = call->in[k][element_of_slice(i, t, scan->steps, inner)];
    }
    CORNU__TRY(cornu__reference_program(body, memory->value, memory->in, memory->in_type));
    for (int64_t k = 0; k < body->output_count; k++) {
        const CornuValue made = body->outputs[k].value;
        const bool       carry = k < scan->carries;
        const int64_t    inner = carry ? 1 : inner_of(call->out_type[k], scan->axis);
        for (int64_t i = 0; i < cornu__body_count(body, made); i++) {
            const int64_t at = carry ? i : element_of_slice(i, t, scan->steps, inner);
            call->out[k][at] = memory->value[made][i];
        }
    }
    for (int64_t k = 0; k < scan->carries; k++)
        memcpy(memory->value[body->inputs[k]], call->out[k],
               (size_t)cornu__body_count(body, body->inputs[k]) * sizeof(double));
    return CORNU_OK;
}

/* Allocates the body's values: nothing else allocates in a run on the reference device. */
static CornuStatus scan_reference(const CornuReferenceCall *call)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    CornuBodyMemory             memory = { 0 };
    CornuStatus                 status = cornu__body_take(&memory, scan->body);
    for (int i = 0; i < call->op.in_count && !status; i++)
        if (i < scan->carries || i >= scan->carries + scan->slices)
            memcpy(memory.value[scan->body->inputs[i]], call->in[i],
                   (size_t)cornu_type_count(call->op.in[i]) * sizeof(double));
    for (int64_t step = 0; step < scan->steps && !status; step++) {
        const int64_t t = scan->reverse ? scan->steps - 1 - step : step;
        status = run_step(call, &memory, t);
    }
    cornu__body_release(&memory);
    return status;
}

const CornuOpRules cornu__scan_rules = { scan_type, scan_flops, CORNU_PRIMITIVE, scan_reference };
