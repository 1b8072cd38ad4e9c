/*
 * fuse: turns ops into steps.
 *
 * First each convolution that only a max pooling reads is joined with it, and a convolution's
 * gradients with the pooling's gradient that they alone read; and a product with the sum over all
 * shards that alone reads it, if it has a kernel for that. Then each kernel that takes an
 * epilogue absorbs the bias and the activation after it, or the slope of a relu that multiplies its
 * result. Then elementwise ops with equal numbers of elements are joined into groups, along the
 * values between them, unless a path from one to the other leads through something outside, which
 * would have to run in the middle of the group. Lookups of rows that one group alone reads, and
 * replacements of rows that it makes, are part of it; so are sums and maxima of its rows, with what
 * is made of these, one element for each row, and read along it. What such groups would store for
 * others, but these can compute from no more, is computed twice (recompute.c). Ops that compute
 * nothing (reshape, broadcast, constant) get a step of their own only where a kernel needs their
 * result in memory.
 *
 * This file has the steps; fuse_kernels.c joins kernels with their neighbours, fuse_groups.c joins
 * elementwise ops, and fuse_memory.c finds which values are in memory.
 */
#include <string.h>

#include "fuse_internal.h"
#include "recompute.h"

/* Whether the value is the same in every run. */
static bool is_fixed(const CornuFuser *f, CornuValue value)
{
    const CornuProgramValue *v = &f->program->values[value];
    return v->op < 0 ? v->fixed : f->nodes[v->op].fixed;
}

static void classify(CornuFuser *f)
{
    const CornuProgram *program = f->program;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        CornuNode                 *node = &f->nodes[i];
        CornuPart             part;
        node->user = node->pool = -1;
        node->part = CORNU_EPILOGUE_OPERANDS;
        if (op->id == CORNU_OP_CONSTANT || op->id == CORNU_OP_BROADCAST ||
            cornu__is_view(program, op, &part))
            node->kind = CORNU_NODE_LOOKED_THROUGH;
        else if ((node->kernel = cornu__kernel_for(f->plan->host, program, op, NULL)))
            node->kind = CORNU_NODE_KERNEL;
        else if (cornu__group_computes(f->plan->host->vectors, program, op))
            node->kind = CORNU_NODE_GROUP;
        else
            node->kind = CORNU_NODE_ALONE;
        node->fixed = true;
        for (int k = 0; k < op->in_count; k++) {
            const CornuProgramValue *in = &program->values[cornu__op_operands(f, i)[k]];
            node->fixed &= is_fixed(f, cornu__op_operands(f, i)[k]);
            if (in->op < 0 || in->index != 0) continue;
            f->nodes[in->op].uses++;
            f->nodes[in->op].user = i;
        }
    }
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramValue *out = &program->values[program->outputs[i].value];
        if (out->op >= 0 && out->index == 0) f->nodes[out->op].uses++;
    }
}

/* ---- Steps ---- */

/* The values that the kernel reads for the first `in_count` operands of its op: operands of a
 * joined gradient of a pool in place of its result. */
static int add_operands(const CornuFuser *f, int op, int in_count, CornuValue *all)
{
    int count = 0;
    for (int k = 0; k < in_count; k++) {
        CornuValue value = cornu__op_operands(f, op)[k];
        int        maker = f->program->values[value].op;
        if (maker >= 0 && f->nodes[maker].kind == CORNU_NODE_JOINED)
            count += add_operands(f, maker, f->program->ops[maker].in_count, all + count);
        else
            all[count++] = value;
    }
    return count;
}

/* How an op without a kernel runs. */
static CornuStepKind kind_alone(const CornuProgramOp *op)
{
    if (op->id != CORNU_OP_SCAN) return CORNU_STEP_REFERENCE;
    return cornu__between_shards(op->attributes.scan.body) ? CORNU_STEP_LOOP : CORNU_STEP_SCAN;
}

/* Lists the ops that the step computes: those of a unit and, before them, a joined gradient. */
static CornuStatus note_ops(CornuPlanStep *step, const CornuFuser *f, int unit)
{
    const int pool = f->nodes[unit].pool;
    step->ops = cornu__allocate((size_t)cornu__unit_size(&f->units, unit) + 1,
                                sizeof *step->ops);
    if (!step->ops) return CORNU_ERR_MEMORY;
    if (pool >= 0 && f->nodes[pool].kind == CORNU_NODE_JOINED) step->ops[step->op_count++] = pool;
    for (int i = unit; i >= 0; i = f->units.next[i]) step->ops[step->op_count++] = i;
    return CORNU_OK;
}

/* The packed operand that an earlier step made for an equal call; CORNU_NO_VALUE: none. */
static CornuValue find_packed(const CornuFuser *f, const CornuKernel *kernel,
                              const CornuOpCall *call, CornuType out_type, CornuValue operand)
{
    CornuType types[CORNU_MAX_INPUTS];
    for (int i = f->packed[operand]; i >= 0; i = f->packed_before[i]) {
        const CornuPlanStep  *step = &f->plan->steps[i];
        const CornuValue *values = f->plan->operands;
        if (step->kernel != kernel) continue;
        const CornuProgramOp *made = &f->program->ops[step->op];
        const CornuOpCall     other = cornu_program_call(f->program, made, types);
        bool alike = other.id == call->id && other.in_count == call->in_count &&
                     cornu__attributes_equal(call->id, other.attributes, call->attributes) &&
                     cornu_type_equal(cornu_program_type(f->program, made->out_first), out_type);
        for (int k = 0; alike && k < call->in_count; k++)
            alike = cornu_type_equal(other.in[k], call->in[k]);
        if (alike) return values[step->out_first];
    }
    return CORNU_NO_VALUE;
}

/* Adds the step that packs one of the kernel's operands, unless there is an equal one; the kernel
 * reads the panels in place of the operand, as value `*packed` of those it reads. No step where the
 * kernel takes all operands as they are, or packs this one itself. */
static CornuStatus add_pack(CornuFuser *f, int op, int position, CornuValue *in, int *packed)
{
    CornuType             types[CORNU_MAX_INPUTS];
    const CornuKernel    *kernel = f->nodes[op].kernel;
    const CornuProgramOp *made = &f->program->ops[op];
    if (!kernel || !kernel->pack_bytes) return CORNU_OK;
    const int         at = add_operands(f, op, kernel->packs, in);
    CornuValue       *operand = &in[at];
    const CornuOpCall call = cornu_program_call(f->program, made, types);
    const CornuType   out_type = cornu_program_type(f->program, made->out_first);
    const CornuQuery  q = { &call, &out_type, cornu__machine(f->plan->host), NULL, 0 };
    const int64_t     bytes = (int64_t)kernel->pack_bytes(&q);
    if (bytes == 0 ||
        (kernel->packs_itself && !is_fixed(f, *operand) && kernel->packs_itself(&q)))
        return CORNU_OK;
    *packed = at;
    CornuValue panels = find_packed(f, kernel, &call, out_type, *operand);
    if (panels != CORNU_NO_VALUE) {
        *operand = panels;
        return CORNU_OK;
    }
    CORNU__TRY(cornu__plan_value(f->plan, cornu_type(CORNU_U8, bytes), f->plan->varies[*operand],
                                 (CornuPlace){ .region = CORNU_PACKED }, &panels));
    CornuPlanStep *step = cornu__plan_step(f->plan, CORNU_STEP_PACK, operand, 1, &panels, 1);
    if (!step) return CORNU_ERR_MEMORY;
    step->op = op;
    step->position = position;
    step->kernel = kernel;
    f->packed_before[f->plan->step_count - 1] = f->packed[*operand];
    f->packed[*operand] = f->plan->step_count - 1;
    *operand = panels;
    return CORNU_OK;
}

static CornuStatus add_kernel(CornuFuser *f, int op)
{
    const CornuProgram   *program = f->program;
    const CornuProgramOp *made =
        &program->ops[op]; /* whose outputs the step has, but for 0 */
    CornuEpilogue         epilogue = { .activation = CORNU_OP_COUNT };
    CornuValue            parts[CORNU_EPILOGUE_OPERANDS];
    int                   last = op;
    for (int i = 0; i < CORNU_EPILOGUE_OPERANDS; i++) parts[i] = CORNU_NO_VALUE;
    for (int i = f->units.next[op]; i >= 0; last = i, i = f->units.next[i]) {
        const CornuOpId id = program->ops[i].id;
        if (id == CORNU_OP_ALL_REDUCE) {
            continue;
        } else if (i == f->nodes[op].pool) {
            made = &program->ops[i];
        } else if (f->nodes[i].part != CORNU_EPILOGUE_OPERANDS) {
            parts[f->nodes[i].part] = f->nodes[i].part_value;
            if (id == CORNU_OP_BOUNDED_STEP)
                epilogue.gate_bound = (float)program->ops[i].attributes.bound.bound;
        } else if (id != CORNU_OP_MULTIPLY) {   /* by the slope of a relu */
            epilogue.activation = id;
            epilogue.attributes = program->ops[i].attributes;
        }
    }
    const bool is_kernel = f->nodes[op].kind == CORNU_NODE_KERNEL;
    CornuValue *in = cornu__allocate((size_t)program->ops[op].in_count + CORNU_EPILOGUE_OPERANDS,
                                     sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    int in_count = add_operands(f, op, program->ops[op].in_count, in);
    int epilogue_in[CORNU_EPILOGUE_OPERANDS] = { 0 };
    for (int i = 0; i < CORNU_EPILOGUE_OPERANDS; i++)
        if (parts[i] != CORNU_NO_VALUE) {
            epilogue_in[i] = in_count;
            in[in_count++] = parts[i];
        }
    CornuValue outs[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < made->out_count; i++) outs[i] = made->out_first + i;
    if (last != op) outs[0] = program->ops[last].out_first;
    int         packed = -1;
    CornuStatus status = is_kernel ? add_pack(f, op, last, in, &packed) : CORNU_OK;
    CornuPlanStep  *step = status != CORNU_OK ? NULL :
        cornu__plan_step(f->plan,
                         is_kernel ? CORNU_STEP_KERNEL : kind_alone(&program->ops[op]),
                         in, in_count, outs, made->out_count);
    cornu__release(in);
    if (!step) return CORNU_ERR_MEMORY;
    step->op = op;
    step->varies &= step->kind != CORNU_STEP_LOOP;   /* it runs once on all own shards */
    step->pool = f->nodes[op].pool;
    step->position = last;
    step->kernel = f->nodes[op].kernel;
    step->epilogue = epilogue;
    memcpy(step->epilogue_in, epilogue_in, sizeof epilogue_in);
    step->packed = packed;
    step->summed = f->nodes[op].summed;
    return note_ops(step, f, op);
}

/* A step for the ops of unit `unit`, or to write out that op's result alone. */
static CornuStatus add_group_step(CornuFuser *f, int unit, const int *ops, int op_count,
                                  int64_t row, const CornuValue *out, int out_count, int position)
{
    CornuGroup *group = cornu__group_create(f->plan->host->vectors, f->program, ops,
                                            op_count, row, out, out_count, f->slot_of);
    if (!group) return CORNU_ERR_MEMORY;
    CornuPlanStep *step =
        cornu__plan_step(f->plan, CORNU_STEP_GROUP, group->inputs, group->input_count, out,
                         out_count);
    if (!step) {
        cornu__group_free(group);
        return CORNU_ERR_MEMORY;
    }
    step->position = position;
    step->group = group;
    return note_ops(step, f, unit);
}

static CornuStatus add_group(CornuFuser *f, int unit)
{
    int          ops[CORNU_GROUP_OPS], op_count = 0, out_count = 0;
    int64_t      count = 0;
    const CornuExtent extent = f->extents[unit];
    CornuValue   out[CORNU_GROUP_OPS * CORNU_MAX_OUTPUTS];
    for (int i = unit; i >= 0; i = f->units.next[i]) {
        ops[op_count++] = i;
        count = larger(count, cornu__group_count(f->program, &f->program->ops[i]));
        for (int k = 0; k < f->program->ops[i].out_count; k++)
            if (f->nodes[i].in_memory[k])
                out[out_count++] = f->program->ops[i].out_first + k;
    }
    if (out_count == 0) return CORNU_OK;
    /* Of which those by element may have left. */
    return add_group_step(f, unit, ops, op_count, count == extent.count ? extent.row : 1, out,
                          out_count, ops[op_count - 1]);
}

/* Close it also after a failure. */
static CornuStatus open_fuser(CornuFuser *f, CornuPlan *plan)
{
    const CornuProgram *program = plan->program;
    const size_t        ops = (size_t)program->op_count, values = (size_t)program->value_count;
    *f = (CornuFuser){ .plan = plan, .program = program };
    f->nodes = cornu__allocate(ops, sizeof *f->nodes);
    f->extents = cornu__allocate(ops, sizeof *f->extents);
    f->flags = cornu__allocate(ops, sizeof *f->flags);
    f->slot_of = cornu__allocate(values, sizeof *f->slot_of);
    f->packed = cornu__allocate(values, sizeof *f->packed);
    f->packed_before = cornu__allocate(2 * ops, sizeof *f->packed_before);   /* and kernels */
    f->reader = cornu__allocate(ops, sizeof *f->reader);
    f->reader_before = cornu__allocate((size_t)program->operand_count, sizeof *f->reader_before);
    if (!f->nodes || !f->extents || !f->flags || !f->slot_of || !f->packed || !f->packed_before ||
        !f->reader || !f->reader_before)
        return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->value_count; i++) f->slot_of[i] = f->packed[i] = -1;
    return cornu__units_create(&f->units, program);
}

static void close_fuser(CornuFuser *f)
{
    cornu__units_free(&f->units);
    cornu__release(f->nodes);
    cornu__release(f->extents);
    cornu__release(f->flags);
    cornu__release(f->slot_of);
    cornu__release(f->packed);
    cornu__release(f->packed_before);
    cornu__release(f->reader);
    cornu__release(f->reader_before);
}

/* Joins ops into units, and finds what of them is in memory. */
static void form_units(CornuFuser *f)
{
    classify(f);
    for (int i = 0; i < f->program->op_count; i++)
        if (f->nodes[i].kind == CORNU_NODE_KERNEL && f->units.of[i] == i) cornu__fuse_kernel(f, i);
    cornu__fuse_groups(f);
    cornu__fuse_memory(f);
}

/* The program with what is worth computing twice; NULL: nothing is. */
static CornuStatus recompute(const CornuFuser *f, CornuProgram **again)
{
    CornuResult *results = cornu__allocate((size_t)f->program->op_count, sizeof *results);
    if (!results) return CORNU_ERR_MEMORY;
    for (int i = 0; i < f->program->op_count; i++) {
        const CornuNode *node = &f->nodes[i];
        results[i] = node->kind != CORNU_NODE_GROUP ? CORNU_RESULT_OUTSIDE
                   : node->pinned[0] ? CORNU_RESULT_FOR_ALL
                   : node->in_memory[0] ? CORNU_RESULT_FOR_GROUPS : CORNU_RESULT_INSIDE;
    }
    const CornuStatus status = cornu__recompute(&f->units, results, CORNU_GROUP_OPS, again);
    cornu__release(results);
    return status;
}

/* Units, of the program with what is computed twice if that is worth it. */
static CornuStatus open_units(CornuFuser *f, CornuPlan *plan)
{
    CornuProgram *again = NULL;
    CORNU__TRY(open_fuser(f, plan));
    form_units(f);
    if (cornu__pass_runs(CORNU_PASS_GROUP) && cornu__pass_runs(CORNU_PASS_RECOMPUTE))
        CORNU__TRY(recompute(f, &again));
    if (!again) return CORNU_OK;
    close_fuser(f);
    cornu_program_free(plan->program);
    plan->program = again;
    CORNU__TRY(open_fuser(f, plan));
    form_units(f);
    return CORNU_OK;
}

CornuStatus cornu__fuse(CornuPlan *plan)
{
    CornuFuser       f;
    CornuStatus status = open_units(&f, plan);
    if (!status) status = cornu__plan_values(plan);
    for (int i = 0; !status && i < f.program->op_count; i++) {
        const CornuNode *node = &f.nodes[i];
        if (f.units.of[i] != i) continue;
        if (node->kind == CORNU_NODE_KERNEL || node->kind == CORNU_NODE_ALONE)
            status = add_kernel(&f, i);
        else if (node->kind == CORNU_NODE_GROUP) status = add_group(&f, i);
        else if (node->written_out)
            status = add_group_step(&f, i, NULL, 0, 1, &f.program->ops[i].out_first, 1, i);
    }
    close_fuser(&f);
    return status;
}
