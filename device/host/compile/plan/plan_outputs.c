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
        !cornu__is_joined(plan, &plan->program->ops[step->op], k, to))
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
    CornuPart        part;
    *possible = true;
    cornu__plan_follow(p, w->step);
    for (int r = p->readers[w->input]; r >= 0 && *possible; r = p->readings[r].next) {
        const CornuReading reading = p->readings[r];
        if (reading.step != w->step && reads(plan, &plan->steps[reading.step], reading.k, w, &part))
            *possible = !cornu__plan_follows(p, reading.step);
    }
    for (int r = p->readers[w->input]; r >= 0 && *possible; r = p->readings[r].next) {
        const CornuReading reading = p->readings[r];
        if (reading.step != w->step && reads(plan, &plan->steps[reading.step], reading.k, w, &part))
            CORNU__TRY(cornu__plan_edge(p, reading.step, w->step));
    }
    return CORNU_OK;
}

/* Lists what the step reads of inputs. */
static CornuStatus note_readings(CornuPlanner *p, int step)
{
    const CornuPlanStep *s = &p->plan->steps[step];
    CornuPart            part;
    for (int k = 0; k < s->in_count; k++) {
        const int input = cornu__plan_input_read(p->plan, s, k, &part);
        if (input < 0) continue;
        CORNU__TRY(cornu__reserve(&p->readings, &p->reading_space, p->reading_count, 1,
                                  sizeof *p->readings));
        p->readings[p->reading_count] = (CornuReading){ step, k, p->readers[input] };
        p->readers[input] = p->reading_count++;
    }
    return CORNU_OK;
}

/* Lists, by the memory that they are part of, what the step makes. */
static void note_parts(CornuPlanner *p, int i)
{
    const CornuPlan     *plan = p->plan;
    const CornuPlanStep *step = &plan->steps[i];
    for (int k = step->out_first + step->out_count - 1; k >= step->out_first; k--) {
        const CornuValue whole = cornu__plan_part(plan, plan->operands[k]).whole;
        p->maker[k] = i;
        p->next_part[k] = p->parts[whole];
        p->parts[whole] = k;
    }
}

/* What fits_input and wait_for_readers look up. Steps that are added later add_copy notes. */
static CornuStatus note_steps(CornuPlanner *p)
{
    const CornuPlan *plan = p->plan;
    /* An output is copied twice at most. */
    const size_t copies = 2 * (size_t)plan->program->output_count;
    const size_t operands = (size_t)plan->operand_count + 2 * copies;
    const int    values = plan->value_count + (int)copies;
    p->readers = cornu__allocate((size_t)plan->program->input_count, sizeof *p->readers);
    p->parts = cornu__allocate((size_t)values, sizeof *p->parts);
    p->next_part = cornu__allocate(operands, sizeof *p->next_part);
    p->maker = cornu__allocate(operands, sizeof *p->maker);
    if (!p->readers || !p->parts || !p->next_part || !p->maker) return CORNU_ERR_MEMORY;
    for (int i = 0; i < plan->program->input_count; i++) p->readers[i] = -1;
    for (int i = 0; i < values; i++) p->parts[i] = -1;
    for (int i = plan->step_count - 1; i >= 0; i--) note_parts(p, i);   /* the first step's first */
    for (int i = 0; i < plan->step_count; i++) CORNU__TRY(note_readings(p, i));
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
    CORNU__TRY(note_readings(p, plan->step_count - 1));
    note_parts(p, plan->step_count - 1);
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
            if (!cornu__is_joined(plan, &plan->program->ops[step->op], k, &part) ||
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
    for (int k = p->parts[root]; k >= 0 && *possible; k = p->next_part[k]) {
        const CornuValue value = plan->operands[k];
        const int        step = p->maker[k];
        const Writing    w = { input, step, k - plan->steps[step].out_first,
                               cornu__plan_part(plan, value),
                               cornu_type_bytes(plan->types[value]) };
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

/* Places what is fetched. */
static CornuStatus place_fetched(CornuPlanner *p)
{
    const CornuProgram *program = p->plan->program;
    /* By value: it is also written into an input. */
    bool       *variable = cornu__allocate((size_t)program->value_count, sizeof *variable);
    CornuStatus status = variable ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < program->output_count && status == CORNU_OK; i++)
        if (program->outputs[i].alias >= 0)
            variable[cornu__plan_root(p->plan, program->outputs[i].value)] = true;
    for (int i = 0; i < program->output_count && status == CORNU_OK; i++) {
        const CornuValue value = program->outputs[i].value;
        const CornuPlace place = { .region = CORNU_OUTPUT, .number = i };
        CornuValue       made;
        if (program->outputs[i].alias >= 0) continue;
        /* add_copy fills in the stride. */
        status = variable[cornu__plan_root(p->plan, value)] ? add_copy(p, value, place, &made)
                                                            : place_output(p, i);
    }
    cornu__release(variable);
    return status;
}

CornuStatus cornu__plan_outputs(CornuPlanner *p)
{
    CornuProgram *program = p->plan->program;
    CORNU__TRY(note_steps(p));
    /* Fetched values first: a step that writes into a variable has to wait for their copies. */
    CORNU__TRY(place_fetched(p));
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
