/* Loops as LiteRT operators, step by step: recorded_internal.h. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"

enum { MOST_STEPS = 1024 };

typedef CornuLiteOp Op;

/* Step i of an operand along an axis, without that axis. Slices have no more than five axes. */
static CornuStatus step_of(const Op *op, int operand, int64_t i, int axis, int *tensor)
{
    const int32_t step = (int32_t)i;
    int           in[2], at = 0;
    CORNU__TRY(cornu__lite_full(op, operand, &in[0]));
    const CornuShape whole = shape_of(op->to, in[0]);
    CornuShape       shape = { .rank = whole.rank - 1 };
    for (int k = 0; k < whole.rank; k++)
        if (k != axis) shape.extent[at++] = whole.extent[k];
    in[1] = cornu__lite_add_constant(op->to->graph, "step", CORNU_LITE_I32, (CornuShape){ 0 },
                                     &step);
    *tensor = cornu__lite_node_of(op->to, CORNU_LITE_GATHER, in, 2,
                                  op->to->graph->tensors[in[0]].dtype, shape,
                                  &(CornuLiteOptions){ .axis = axis });
    return op->to->graph->status;
}

typedef struct {
    const CornuAttributes_SCAN *scan;
    CornuLiteProgram            body;
    int                        *carries;   /* of the next step */
    int                        *stacks;    /* of each stacked result, its steps */
    int                         stacked;
} Loop;

/* Output i of the body in full. */
static CornuStatus result_of(const Op *op, Loop *loop, int i, int *tensor)
{
    const CornuProgramOp none = { .in_count = 1 };
    const Op             at = { .program = &loop->body, .to = op->to, .op = &none,
                                .in = &loop->body.program->outputs[i].value };
    return cornu__lite_full(&at, 0, tensor);
}

static CornuStatus put_step(const Op *op, Loop *loop, int64_t i)
{
    const CornuAttributes_SCAN *scan = loop->scan;
    const CornuProgram         *body = loop->body.program;
    for (int k = 0; k < body->value_count; k++) loop->body.tensors[k] = CORNU_LITE_NONE;
    for (int k = 0; k < op->op->in_count; k++) {
        int x = cornu__lite_small(op, k);
        if (k < scan->carries) x = loop->carries[k];
        else if (k < scan->carries + scan->slices)
            CORNU__TRY(step_of(op, k, i, (int)scan->axis, &x));
        loop->body.tensors[body->inputs[k]] = x;
    }
    CORNU__TRY(cornu__lite_ops(&loop->body));
    for (int k = 0; k < scan->carries; k++) CORNU__TRY(result_of(op, loop, k, &loop->carries[k]));
    for (int k = 0; k < loop->stacked; k++)
        CORNU__TRY(result_of(op, loop, (int)scan->carries + k,
                             &loop->stacks[k * scan->steps + i]));
    return op->to->graph->status;
}

static CornuStatus put_results(const Op *op, Loop *loop)
{
    const CornuAttributes_SCAN *scan = loop->scan;
    for (int k = 0; k < scan->carries; k++) op->program->tensors[op->out + k] = loop->carries[k];
    for (int k = 0; k < loop->stacked; k++) {
        const CornuValue value = op->out + (CornuValue)scan->carries + k;
        const int       *steps = &loop->stacks[k * scan->steps];
        op->program->tensors[value] = cornu__lite_node_of(
            op->to, CORNU_LITE_PACK, steps, (int)scan->steps, op->to->graph->tensors[*steps].dtype,
            cornu__lite_value_shape(op->program, value),
            &(CornuLiteOptions){ .count = (int32_t)scan->steps, .axis = (int32_t)scan->axis });
    }
    return op->to->graph->status;
}

static CornuStatus unroll(const Op *op, Loop *loop)
{
    for (int k = 0; k < loop->scan->carries; k++)
        CORNU__TRY(cornu__lite_full(op, k, &loop->carries[k]));
    for (int64_t i = 0; i < loop->scan->steps; i++)
        CORNU__TRY(put_step(op, loop, loop->scan->reverse ? loop->scan->steps - 1 - i : i));
    return put_results(op, loop);
}

static CornuStatus scan(const Op *op)
{
    Loop loop = { .scan = &op->attributes->scan, .body = { .to = op->to } };
    if (loop.scan->steps > MOST_STEPS ||
        op->program->worlds[1]->ops[op->number].attributes.scan.steps != loop.scan->steps)
        return cornu__lite_op_refuse(op, "where loops are unrolled: over 1024 steps or the batch");
    for (int w = 0; w < CORNU_LITE_WORLDS; w++)
        loop.body.worlds[w] = op->program->worlds[w]->ops[op->number].attributes.scan.body;
    loop.body.program = loop.body.worlds[0];
    if (loop.body.worlds[1]->value_count != loop.body.program->value_count ||
        loop.body.worlds[1]->op_count != loop.body.program->op_count)
        return cornu__lite_op_refuse(op, "whose steps depend on the size of the batch");
    loop.stacked = loop.body.program->output_count - (int)loop.scan->carries;
    const size_t values = (size_t)loop.body.program->value_count;
    const size_t carries = (size_t)loop.scan->carries;
    int *numbers = cornu__allocate(values + carries + (size_t)loop.stacked *
                                   (size_t)loop.scan->steps, sizeof *numbers);
    if (!numbers) return CORNU_ERR_MEMORY;
    loop.body.tensors = numbers;
    loop.carries = numbers + values;
    loop.stacks = loop.carries + carries;
    const CornuStatus status = unroll(op, &loop);
    cornu__release(numbers);
    return status;
}

const CornuLiteOpRow cornu__lite_writers_scan[] = { { CORNU_OP_SCAN, scan }, { 0 } };
