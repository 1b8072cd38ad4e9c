#include "body.h"

#include "../memory_internal.h"

CornuStatus cornu__body_check(const CornuProgram *body, const char *owner, bool on_mesh)
{
    for (int i = 0; i < body->op_count; i++) {
        const CornuProgramOp *op = &body->ops[i];
        if (!cornu__is_collective(op->id) && op->id != CORNU_OP_REPLICA_ID) continue;
        if (!on_mesh || op->attributes.shards.axes == 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s cannot be in the body of a %s",
                               cornu_program_op_name(op), owner);
    }
    for (int i = 0; i < body->input_count && !cornu__between_shards(body); i++)
        if (body->values[body->inputs[i]].varies)
            return cornu__fail(CORNU_ERR_ARGUMENT, "input %d of the body has a value for "
                               "each shard, expected one for all", i);
    for (int i = 0; i < body->output_count; i++)
        if (body->outputs[i].alias >= 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "output %d of the body is written into "
                               "input %d, expected no alias", i, body->outputs[i].alias);
    return CORNU_OK;
}

int64_t cornu__body_count(const CornuProgram *body, CornuValue value)
{
    return cornu_type_count(cornu_program_type(body, value));
}

CornuStatus cornu__body_take(CornuBodyMemory *memory, const CornuProgram *body)
{
    const size_t operands = (size_t)cornu__most_operands(body);
    int64_t      count = 0;
    for (int v = 0; v < body->value_count; v++) count += cornu__body_count(body, v);
    memory->value = cornu__allocate((size_t)body->value_count, sizeof *memory->value);
    memory->elements = cornu__allocate((size_t)count, sizeof *memory->elements);
    memory->in = cornu__allocate(operands, sizeof *memory->in);
    memory->in_type = cornu__allocate(operands, sizeof *memory->in_type);
    if (!memory->value || !memory->elements || !memory->in || !memory->in_type)
        return CORNU_ERR_MEMORY;
    double *at = memory->elements;
    for (int v = 0; v < body->value_count; at += cornu__body_count(body, v++))
        memory->value[v] = at;
    return CORNU_OK;
}

void cornu__body_release(CornuBodyMemory *memory)
{
    cornu__release(memory->value);
    cornu__release(memory->elements);
    cornu__release(memory->in);
    cornu__release(memory->in_type);
}

static CornuStatus record_body(CornuProgram *program, const CornuProgram *body, CornuValue *map,
                               CornuValue *operands, const CornuValue *in, CornuValue *out)
{
    for (int i = 0; i < body->input_count; i++) map[body->inputs[i]] = in[i];
    for (int i = 0; i < body->op_count; i++) {
        const CornuProgramOp *op = &body->ops[i];
        for (int k = 0; k < op->in_count; k++)
            operands[k] = map[cornu_program_operands(body, op)[k]];
        CORNU__TRY(cornu_program_record(program, op->id, &op->attributes, operands, op->in_count,
                                        &map[op->out_first]));
    }
    for (int i = 0; i < body->output_count; i++) out[i] = map[body->outputs[i].value];
    return CORNU_OK;
}

CornuStatus cornu__decompose_body(CornuProgram *program, const CornuOpCall *call,
                                  const CornuValue *in, CornuValue *out)
{
    const CornuProgram *body = cornu__attributes_program(call->id, call->attributes);
    CornuValue *map = cornu__allocate((size_t)body->value_count, sizeof *map);
    CornuValue *operands = cornu__allocate((size_t)cornu__most_operands(body), sizeof *operands);
    CornuStatus status = map && operands
                             ? record_body(program, body, map, operands, in, out)
                             : CORNU_ERR_MEMORY;
    cornu__release(map);
    cornu__release(operands);
    return status;
}
