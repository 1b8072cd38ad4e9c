/*
 * Places of outputs, and of operands that ops join.
 *
 * Operands of pack, concat and all_gather are made in place in the result where nothing prevents
 * it; the op's own step moves the others.
 *
 * An output that is written into an input (a variable) is made there directly if its steps can run
 * after every other reader of that memory and read it themselves, if at all, element by element or
 * as what they replace rows of; otherwise a copy step writes it at the end.
 */
#include "plan_internal.h"

/* ---- Readers of written memory ---- */

static bool same_place(CornuPart a, CornuPart b)
{
    return a.whole == b.whole && a.offset == b.offset && a.stride == b.stride;
}

/* Whether the step's op joins operand k into its result, and where in memory that is. */
static bool joins(const CornuPlan *plan, const CornuPlanStep *step, int k, CornuPart *to)
{
    if (step->kind != CORNU_STEP_KERNEL ||
        !cornu__is_joined(plan->program, &plan->program->ops[step->op], k, to))
        return false;
    CornuPart whole = cornu__plan_part(plan, to->whole);
    *to = (CornuPart){ whole.whole, whole.offset + to->offset, whole.stride + to->stride };
    return true;
}

/* Whether the step writes some rows of operand k. */
static bool replaces(const CornuPlan *plan, const CornuPlanStep *step, int k)
{
    return step->kind == CORNU_STEP_KERNEL &&
           cornu__is_replaced(&plan->program->ops[step->op], k);
}

/* Whether two parts of one memory have bytes in common, on any shards. */
static bool overlap(const CornuPlan *plan, CornuPart a, size_t a_bytes, CornuPart b, size_t b_bytes)
{
    const size_t last = (size_t)cornu__plan_shards(plan) - 1;
    return a.offset < b.offset + last * b.stride + b_bytes &&
           b.offset < a.offset + last * a.stride + a_bytes;
}

/* A write of a step into the memory of an input. */
typedef struct {
    int       input, step, out;
    CornuPart part;
    size_t    bytes;
} Writing;

/* Whether operand i of the step overlaps what is written. */
static bool reads(const CornuPlan *plan, const CornuPlanStep *step, int i, const Writing *w,
                  CornuPart *part)
{
    return cornu__plan_input_read(plan, step, i, part) == w->input &&
           overlap(plan, *part, cornu_type_bytes(step->types[i]), w->part, w->bytes);
}

static bool reads_any(const CornuPlan *plan, const CornuPlanStep *step, const Writing *w)
{
    CornuPart part;
    for (int i = 0; i < step->in_count; i++)
        if (reads(plan, step, i, w, &part)) return true;
    return false;
}

/* Whether the step's own reads allow it to write there. */
static bool own_reads_allow(const CornuPlan *plan, const Writing *w)
{
    const CornuPlanStep *step = &plan->steps[w->step];
    CornuPart        part, joined;
    for (int i = 0; i < step->in_count; i++) {
        if (!reads(plan, step, i, w, &part)) continue;
        part.whole = w->part.whole;   /* the input's memory is going to be this value's */
        const bool stays = (joins(plan, step, i, &joined) && same_place(part, joined)) ||
                           (replaces(plan, step, i) && same_place(part, w->part));
        if (!stays && (step->kind != CORNU_STEP_GROUP || !same_place(part, w->part) ||
                       !cornu__group_in_place(step->group, i, w->out)))
            return false;
    }
    return true;
}

/* Orders the step after every other reader of what it writes; *possible is false if one of them has
 * to run after the step. */
static CornuStatus wait_for_readers(CornuPlanner *p, const Writing *w, bool *possible)
{
    const CornuPlan *plan = p->plan;
    *possible = true;
    for (int i = 0; i < plan->step_count && *possible; i++)
        if (i != w->step && reads_any(plan, &plan->steps[i], w))
            *possible = !cornu__plan_precedes(p, w->step, i);
    for (int i = 0; i < plan->step_count && *possible; i++)
        if (i != w->step && reads_any(plan, &plan->steps[i], w))
            CORNU__TRY(cornu__plan_edge(p, i, w->step));
    return CORNU_OK;
}

/* ---- Copies and joined operands ---- */

/* Adds a step that copies `from` to `place`; `made` is the value there. */
static CornuStatus add_copy(CornuPlanner *p, CornuValue from, CornuPlace place,
                            CornuValue *made)
{
    CornuPlan *plan = p->plan;
    place.stride = plan->varies[from] ? cornu_type_bytes(plan->types[from]) : 0;
    CORNU__TRY(cornu__plan_value(plan, plan->types[from], plan->varies[from], place, made));
    CornuPlanStep *step = cornu__plan_step(plan, CORNU_STEP_COPY, &from, 1, made, 1);
    if (!step) return CORNU_ERR_MEMORY;
    /* After all others; a copy of an input may move up, before a step that overwrites it. */
    step->position = plan->program->op_count;
    CORNU__TRY(cornu__plan_connect(p, plan->step_count - 1));
    return cornu__plan_connect_operands(p, plan->step_count - 1);
}

/* The step that makes the value's memory if that holds the value alone and has no place yet; -1
 * otherwise. */
static int placeable(const CornuPlanner *p, CornuValue value)
{
    const CornuPlan *plan = p->plan;
    const CornuPart  part = cornu__plan_part(plan, value);
    const int        step = p->writer[part.whole];
    if (part.whole != cornu__plan_root(plan, value) || part.offset != 0 || part.stride != 0 ||
        step < 0 || plan->places[part.whole].region != CORNU_NOWHERE ||
        cornu_type_bytes(plan->types[part.whole]) != cornu_type_bytes(plan->types[value]))
        return -1;
    return step;
}

void cornu__plan_join_operands(CornuPlanner *p)
{
    CornuPlan *plan = p->plan;
    const int  count = cornu__pass_runs(CORNU_PASS_JOIN) ? plan->step_count : 0;
    for (int i = 0; i < count; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        for (int k = 0; k < step->in_count && step->kind == CORNU_STEP_KERNEL; k++) {
            const CornuValue value = plan->operands[step->in_first + k];
            CornuPart        part;
            if (!cornu__is_joined(plan->program, &plan->program->ops[step->op], k, &part) ||
                placeable(p, value) < 0)
                continue;
            const CornuValue root = cornu__plan_root(plan, value);
            if (part.stride > 0 || plan->varies[root] == plan->varies[part.whole])
                plan->joined[root] = part;
        }
    }
}

/* ---- Outputs ---- */

/* Places an output in a buffer of its own. */
static CornuStatus place_output(CornuPlanner *p, int number)
{
    CornuValue value = p->plan->program->outputs[number].value, made;
    CornuPlace place = { .region = CORNU_OUTPUT, .number = number,
                         .stride = cornu__plan_stride(p->plan, value) };
    if (placeable(p, value) < 0) return add_copy(p, value, place, &made);
    p->plan->places[cornu__plan_root(p->plan, value)] = place;
    return CORNU_OK;
}

/* Whether all steps that make `root`, or parts of it, can write into the memory of an input. */
static CornuStatus fits_input(CornuPlanner *p, CornuValue root, int input, bool *possible)
{
    const CornuPlan *plan = p->plan;
    *possible = true;
    for (int i = 0; i < plan->step_count && *possible; i++)
        for (int k = 0; k < plan->steps[i].out_count && *possible; k++) {
            const CornuValue value = plan->operands[plan->steps[i].out_first + k];
            const Writing w = { input, i, k, cornu__plan_part(plan, value),
                                cornu_type_bytes(plan->types[value]) };
            if (w.part.whole != root) continue;
            *possible = own_reads_allow(plan, &w);
            if (*possible) CORNU__TRY(wait_for_readers(p, &w, possible));
        }
    return CORNU_OK;
}

/* Places an output in the buffer of input `input`. */
static CornuStatus place_alias(CornuPlanner *p, CornuValue value, int input)
{
    CornuPlan *plan = p->plan;
    CornuPlace place = { .region = CORNU_INPUT, .number = input,
                         .stride = cornu__plan_stride(plan, value) };
    CornuValue root = cornu__plan_root(plan, value), made;
    bool       possible = false;
    if (root == plan->program->inputs[input]) return CORNU_OK; /* it stays as it is */
    if (cornu__pass_runs(CORNU_PASS_ALIAS) && placeable(p, value) >= 0)
        CORNU__TRY(fits_input(p, root, input, &possible));
    if (possible) {
        plan->places[root] = place;
        return CORNU_OK;
    }
    CORNU__TRY(add_copy(p, value, place, &made));
    const Writing w = { input, plan->step_count - 1, 0, { .whole = made },
                        cornu_type_bytes(plan->types[made]) };
    CORNU__TRY(wait_for_readers(p, &w, &possible));
    return possible ? CORNU_OK
                    : cornu__fail(CORNU_ERR_UNSUPPORTED, "no order of the steps reads input %d "
                                  "before an output is written into it", input);
}

CornuStatus cornu__plan_outputs(CornuPlanner *p)
{
    CornuProgram *program = p->plan->program;
    /* Fetched values first: a step that writes into a variable has to wait for their copies. */
    for (int i = 0; i < program->output_count; i++) {
        CornuValue root = cornu__plan_root(p->plan, program->outputs[i].value);
        bool       variable = false;   /* it is also written into an input */
        for (int k = 0; k < program->output_count; k++)
            variable = variable || (program->outputs[k].alias >= 0 &&
                                    cornu__plan_root(p->plan, program->outputs[k].value) == root);
        CornuValue made;
        CornuPlace place = { .region = CORNU_OUTPUT, .number = i };
        /* add_copy fills in the stride. */
        if (program->outputs[i].alias >= 0) continue;
        CORNU__TRY(variable ? add_copy(p, program->outputs[i].value, place, &made)
                            : place_output(p, i));
    }
    /* An input written into another one is copied first: the two may be swapped. */
    CornuValue *values = cornu__allocate((size_t)program->output_count, sizeof *values);
    CornuStatus status = values ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; status == CORNU_OK && i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        CornuValue                root = cornu__plan_root(p->plan, output->value);
        values[i] = output->value;
        if (output->alias < 0 || program->values[root].op >= 0 ||
            root == program->inputs[output->alias])
            continue;
        status = add_copy(p, output->value, (CornuPlace){ .region = CORNU_NOWHERE }, &values[i]);
    }
    for (int i = 0; status == CORNU_OK && i < program->output_count; i++)
        if (program->outputs[i].alias >= 0)
            status = place_alias(p, values[i], program->outputs[i].alias);
    cornu__release(values);
    return status;
}
