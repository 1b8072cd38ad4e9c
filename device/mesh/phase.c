/* Parts of a program: what they need, and its copy. */
#include "phase.h"

#include "../memory_internal.h"
#include "../program_internal.h"

CornuStatus cornu__part_begin(CornuPart *part, const CornuProgram *program, int crossings)
{
    *part = (CornuPart){
        .program = program, .crossing_count = crossings,
        .computes = cornu__allocate((size_t)program->op_count + 1, sizeof(bool)),
        .writes = cornu__allocate((size_t)program->output_count + 1, sizeof(bool)),
        .crossings = cornu__allocate((size_t)crossings + 1, sizeof(CornuPartCrossing)),
    };
    return part->computes && part->writes && part->crossings ? CORNU_OK : CORNU_ERR_MEMORY;
}

void cornu__part_end(CornuPart *part)
{
    cornu__release(part->computes);
    cornu__release(part->writes);
    cornu__release(part->crossings);
}

static bool is_used(const CornuProgramOp *op, const bool *needed)
{
    bool used = false;
    for (int k = 0; k < op->out_count; k++) used |= needed[op->out_first + k];
    return used;
}

/* Marks what the part needs: values that it makes, inputs, and what crosses into it. */
static void mark(const CornuPart *part, bool *needed)
{
    const CornuProgram *program = part->program;
    for (int i = 0; i < program->output_count; i++)
        if (part->writes[i]) {
            needed[program->outputs[i].value] = true;
            needed[program->inputs[program->outputs[i].alias]] = true;
        }
    for (int c = 0; c < part->crossing_count; c++)
        if (part->crossings[c].made) needed[part->crossings[c].value] = true;
    for (int i = program->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        const bool            copied = part->computes[i] && is_used(op, needed);
        for (int k = 0; copied && k < op->in_count; k++) needed[in[k]] = true;
    }
}

static CornuStatus add_inputs(const CornuPart *part, const bool *needed, CornuPhase *to,
                              CornuValue *map)
{
    const CornuProgram *program = part->program;
    const size_t        most = (size_t)(program->input_count + part->crossing_count) + 1;
    int                 count = 0;
    if (!(to->inputs = cornu__allocate(most, sizeof *to->inputs))) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->input_count; i++) {
        const CornuValue value = program->inputs[i];
        if (!needed[value]) continue;
        CORNU__TRY(cornu_program_copy_input(to->program, program, value, &map[value]));
        to->inputs[count++] = i;
    }
    for (int c = 0; c < part->crossing_count; c++) {
        const CornuValue value = part->crossings[c].value;
        if (!needed[value] || part->crossings[c].made) continue;
        CORNU__TRY(cornu_program_copy_input(to->program, program, value, &map[value]));
        to->inputs[count++] = ~c;
    }
    return CORNU_OK;
}

static CornuStatus copy_op(const CornuProgram *from, const CornuProgramOp *op, CornuProgram *to,
                           CornuValue *map)
{
    CornuValue  out[CORNU_MAX_OUTPUTS];
    CornuValue *in = cornu__allocate((size_t)op->in_count + 1, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    for (int k = 0; k < op->in_count; k++) in[k] = map[cornu_program_operands(from, op)[k]];
    CornuStatus status = cornu__program_follow(to, op);
    if (!status) status = cornu_program_record(to, op->id, &op->attributes, in, op->in_count, out);
    cornu__release(in);
    for (int k = 0; !status && k < op->out_count; k++) map[op->out_first + k] = out[k];
    return status;
}

static CornuStatus add_ops(const CornuPart *part, const bool *needed, CornuPhase *to,
                           CornuValue *map)
{
    for (int i = 0; i < part->program->op_count; i++) {
        const CornuProgramOp *op = &part->program->ops[i];
        if (part->computes[i] && is_used(op, needed))
            CORNU__TRY(copy_op(part->program, op, to->program, map));
    }
    return CORNU_OK;
}

static CornuStatus add_outputs(const CornuPart *part, CornuPhase *to, const CornuValue *map)
{
    const CornuProgram *program = part->program;
    const size_t        most = (size_t)(program->output_count + part->crossing_count) + 1;
    int                 count = 0;
    if (!(to->outputs = cornu__allocate(most, sizeof *to->outputs))) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *out = &program->outputs[i];
        if (!part->writes[i]) continue;
        const CornuValue input = map[program->inputs[out->alias]];
        CORNU__TRY(cornu_program_output(to->program, map[out->value],
                                        to->program->values[input].index));
        to->outputs[count++] = -1;
    }
    for (int c = 0; c < part->crossing_count; c++) {
        if (!part->crossings[c].made) continue;
        CORNU__TRY(cornu_program_output(to->program, map[part->crossings[c].value], -1));
        to->outputs[count++] = c;
    }
    return CORNU_OK;
}

CornuStatus cornu__part_make(const CornuPart *part, CornuPhase *to)
{
    const size_t values = (size_t)part->program->value_count + 1;
    bool        *needed = cornu__allocate(values, sizeof *needed);
    CornuValue  *map = cornu__allocate(values, sizeof *map);
    CornuStatus  status = needed && map ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && !(to->program = cornu_program_create())) status = cornu_error_take();
    if (!status) {
        mark(part, needed);
        status = add_inputs(part, needed, to, map);
    }
    if (!status) status = add_ops(part, needed, to, map);
    if (!status) status = add_outputs(part, to, map);
    cornu__release(needed);
    cornu__release(map);
    return status;
}

void cornu__phase_free(CornuPhase *phase)
{
    cornu_program_free(phase->program);
    cornu__release(phase->inputs);
    cornu__release(phase->outputs);
    *phase = (CornuPhase){ .program = NULL };
}
