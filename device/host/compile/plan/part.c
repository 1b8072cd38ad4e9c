/* Values that are part of another's memory: views, which are read in place, and operands of pack,
 * concat and all_gather, which can be made in place in the result. */
#include "../../../memory_internal.h"
#include "plan.h"

/* Operands of kernels begin at multiples of so many bytes. */
enum { ALIGNMENT = 64 };

/* A slice of leading axes: all axes after the first one that is cut are whole. */
static bool is_contiguous_slice(const CornuOpCall *call, size_t *offset)
{
    const CornuAttributes_SLICE *slice = &call->attributes->slice;
    const CornuShape             in = call->in[0].shape;
    size_t stride = cornu_dtype_size(call->in[0].dtype);
    bool   whole = true;
    for (int i = in.rank - 1; i >= 0; i--) {
        if (!whole && slice->sizes[i] != 1) return false;
        *offset += (size_t)slice->starts[i] * stride;
        stride *= (size_t)in.extent[i];
        whole = whole && slice->sizes[i] == in.extent[i];
    }
    return *offset % ALIGNMENT == 0;
}

bool cornu__is_view(const CornuProgram *program, const CornuProgramOp *op, CornuPart *part)
{
    if (op->in_count != 1) return false;
    CornuType         in;
    const CornuOpCall call = cornu_program_call(program, op, &in);
    const CornuValue  whole = cornu_program_operands(program, op)[0];
    *part = (CornuPart){ .whole = whole };
    switch (op->id) {
    case CORNU_OP_RESHAPE: return true;
    case CORNU_OP_SLICE:   return is_contiguous_slice(&call, &part->offset);
    case CORNU_OP_SHARD_SLICE:
        part->stride = cornu_type_bytes(cornu_program_type(program, op->out_first));
        return !program->values[whole].varies && op->attributes.shards.groups.count == 0 &&
               part->stride % ALIGNMENT == 0;
    default: return false;
    }
}

/* Along the first axis whose extent is not 1, so that each operand is contiguous in the result. */
static bool is_contiguous_concat(const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuShape shape = cornu_program_type(program, op->out_first).shape;
    for (int i = 0; i < op->attributes.axis.axis; i++)
        if (shape.extent[i] != 1) return false;
    return true;
}

CornuStatus cornu__plan_find_starts(CornuPlan *plan)
{
    const CornuProgram *program = plan->program;
    plan->starts = cornu__allocate((size_t)program->operand_count, sizeof *plan->starts);
    if (!plan->starts) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        int64_t               end = 0;
        if (op->id != CORNU_OP_CONCAT && op->id != CORNU_OP_PACK) continue;
        for (int k = op->in_first; k < op->in_first + op->in_count; k++) {
            plan->starts[k] = op->id == CORNU_OP_PACK
                            ? cornu__pack_start(&op->attributes.pack, end) : end;
            end = plan->starts[k] +
                  cornu_type_count(cornu_program_type(program, program->operands[k]));
        }
    }
    return CORNU_OK;
}

bool cornu__is_joined(const CornuPlan *plan, const CornuProgramOp *op, int operand,
                      CornuPart *part)
{
    const CornuProgram *program = plan->program;
    const CornuValue   *in = cornu_program_operands(program, op);
    const size_t        size = cornu_dtype_size(cornu_program_type(program, op->out_first).dtype);
    *part = (CornuPart){ .whole = op->out_first };
    switch (op->id) {
    case CORNU_OP_CONCAT:
        if (!is_contiguous_concat(program, op)) return false;
        part->offset = (size_t)plan->starts[op->in_first + operand] * size;
        break;
    case CORNU_OP_PACK:
        part->offset = (size_t)plan->starts[op->in_first + operand] * size;
        break;
    case CORNU_OP_ALL_GATHER:
        if (op->attributes.shards.groups.count > 0 || !program->values[in[0]].varies) return false;
        part->stride = cornu_type_bytes(cornu_program_type(program, in[0]));
        break;
    default: return false;
    }
    return part->offset % ALIGNMENT == 0 && part->stride % ALIGNMENT == 0;
}

bool cornu__is_replaced(const CornuProgramOp *op, int operand)
{
    return op->id == CORNU_OP_SCATTER_ROWS && operand == 0;
}

/* ---- In a plan ---- */

/* The value that `value` is a view of, and which part. */
static CornuPart viewed(const CornuPlan *plan, CornuValue value)
{
    CornuPart part = { .whole = value }, next;
    while (part.whole < plan->program->value_count && plan->program->values[part.whole].op >= 0) {
        const CornuProgramOp *op = &plan->program->ops[plan->program->values[part.whole].op];
        if (!cornu__is_view(plan->program, op, &next)) break;
        part = (CornuPart){ next.whole, part.offset + next.offset, part.stride + next.stride };
    }
    return part;
}

CornuValue cornu__plan_root(const CornuPlan *plan, CornuValue value)
{
    return viewed(plan, value).whole;
}

CornuPart cornu__plan_part(const CornuPlan *plan, CornuValue value)
{
    CornuPart part = viewed(plan, value);
    while (part.whole < plan->program->value_count &&
           plan->joined[part.whole].whole != CORNU_NO_VALUE) {
        CornuPart next = plan->joined[part.whole];
        part = (CornuPart){ next.whole, part.offset + next.offset, part.stride + next.stride };
    }
    return part;
}

int cornu__plan_input_read(const CornuPlan *plan, const CornuPlanStep *step, int i,
                           CornuPart *part)
{
    *part = cornu__plan_part(plan, plan->operands[step->in_first + i]);
    if (part->whole >= plan->program->value_count) return -1;
    const CornuProgramValue *value = &plan->program->values[part->whole];
    return value->op < 0 ? value->index : -1;
}

bool cornu__plan_moves(const CornuPlan *plan, const CornuPlanStep *step, int k)
{
    const CornuValue value = plan->operands[step->in_first + k];
    const CornuPlace from = plan->places[value];
    const CornuPlace whole = plan->places[plan->operands[step->out_first]];
    const int        first = cornu__plan_own(plan).first;
    CornuPart        to;
    if (step->kind != CORNU_STEP_KERNEL ||
        !cornu__is_joined(plan, &plan->program->ops[step->op], k, &to))
        return false;
    return from.region != whole.region || from.number != whole.number ||
           from.offset != whole.offset + to.offset + (size_t)first * to.stride ||
           from.stride != whole.stride + to.stride;
}
