/*
 * verify: whether a plan computes its program.
 *
 * Three questions, asked of the finished plan and answered without running it.
 *
 *   Does each step read what its ops read, and write what they make?   (check_ops)
 *   Is what it reads in memory, written by an earlier step and not overwritten since?
 *   Do shards that run at the same time leave each other's memory alone?
 *
 * The last two are answered by a walk over the steps that tracks the contents of every byte of
 * memory: a Range is some bytes of a value of one shard. Views and joined operands are tracked as
 * parts of the whole, copies as their originals. A read that does not find its value is an error; a
 * write replaces what was there. Shards that run a segment together are walked one after the other;
 * each range and each read carries its shard and segment, so that two shards that meet in memory
 * are noticed whichever of them is walked first.
 */
#include <string.h>

#include "../../memory_internal.h"
#include "../../program_internal.h"
#include "passes.h"

enum { NO_SHARD = -1 };

/* Bytes begin to end of the memory `region`, `number` hold the bytes of `value` on `shard` from
 * `first` on; or, of a read, were read. */
typedef struct {
    CornuRegion region;
    int         number;
    size_t      begin, end;
    CornuValue  value;
    size_t      first;
    int         of;                 /* the shard whose value it is; 0 of values that all share */
    int         segment, shard;     /* that wrote or read it; NO_SHARD before or between segments */
} Range;

typedef struct {
    Range *items;
    int    count, space;
} Ranges;

typedef struct {
    const CornuPlan *plan;
    Ranges           held, read;    /* read: in the segment that runs */
    int              segment;
    int              step;          /* that is walked */
    int              shard, worker;
    CornuValue      *copy_of;       /* by value: the value that a copy step copied, else the
                                       value itself */
} Verifier;

/* ---- Complaints ---- */

static CornuStatus complain(const Verifier *v, CornuValue value, const char *what)
{
    const CornuPlan *plan = v->plan;
    char             where[64] = "at the end", shard[32] = "";
    if (v->step < plan->step_count)
        snprintf(where, sizeof where, "in step %d, a %s", v->step,
                 cornu__plan_kind_name(plan, &plan->steps[v->step]));
    if (v->shard != NO_SHARD) snprintf(shard, sizeof shard, " on shard %d", v->shard);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the plan is wrong %s%s: value %%%d %s; please "
                       "report this with what CORNU_DUMP=program,plan prints", where, shard,
                       (int)value, what);
}

/* ---- Operands and results of the steps ---- */

static bool reads(const CornuPlan *plan, const CornuPlanStep *step, CornuValue value)
{
    for (int k = 0; k < step->in_count; k++)
        if (plan->operands[step->in_first + k] == value) return true;
    return false;
}

static bool computes(const CornuPlanStep *step, int op)
{
    for (int i = 0; i < step->op_count; i++)
        if (step->ops[i] == op) return true;
    return false;
}

/* Whether the kernel reads `value` as an operand that an earlier step packed. */
static bool reads_packed(const CornuPlan *plan, const CornuPlanStep *step, CornuValue value)
{
    if (step->packed < 0) return false;
    const CornuValue panels = plan->operands[step->in_first + step->packed];
    for (int i = 0; i < plan->step_count; i++) {
        const CornuPlanStep *pack = &plan->steps[i];
        if (pack->kind == CORNU_STEP_PACK && plan->operands[pack->out_first] == panels)
            return plan->operands[pack->in_first] == value;
    }
    return false;
}

/* Whether the step reads the sums of blocks of shards in place of `value`. */
static bool reads_sums(const CornuPlan *plan, const CornuPlanStep *step, CornuValue value)
{
    const CornuPlanStep *sum = cornu__plan_sum_of(plan, step);
    return sum && plan->operands[sum->in_first] == value;
}

/* Whether op `op` of the step finds this operand: the step reads it or makes it itself; a group, or
 * an epilogue, looks through reshapes and broadcasts and has constants of its own. */
static bool finds(const CornuPlan *plan, const CornuPlanStep *step, int op, CornuValue value)
{
    const CornuProgramValue *values = plan->program->values;
    if (reads(plan, step, value) || (values[value].op >= 0 && computes(step, values[value].op)) ||
        (op == step->op && (reads_packed(plan, step, value) || reads_sums(plan, step, value))))
        return true;
    if (op == step->op || op == step->pool) return false;
    for (;;) {   /* a broadcast is looked through once, so that this may end at any of these */
        const int maker = values[value].op;
        if (reads(plan, step, value) || (maker >= 0 && computes(step, maker))) return true;
        const CornuProgramOp *made = maker < 0 ? NULL : &plan->program->ops[maker];
        if (made && made->id == CORNU_OP_CONSTANT) return true;
        if (!made || (made->id != CORNU_OP_RESHAPE && made->id != CORNU_OP_BROADCAST)) return false;
        value = cornu_program_operands(plan->program, made)[0];
    }
}

/* That the group goes over in the slot. */
static int64_t elements_of(const CornuGroup *group, const CornuSlot *slot)
{
    return slot->by_row ? group->count / group->row : group->count;
}

/* As many indices as the group goes over rows, which are those of the table. */
static CornuStatus check_rows(Verifier *v, const CornuPlanStep *step, const CornuSlot *slot)
{
    const CornuRows  rows = slot->rows;
    const CornuValue table = v->plan->operands[step->in_first + rows.table];
    const CornuType  type = v->plan->types[table];
    if (!cornu_type_equal(rows.type, step->types[rows.indices]) || type.shape.rank != 2 ||
        type.shape.extent[0] != rows.count || type.shape.extent[1] != rows.columns ||
        cornu_type_count(rows.type) * rows.columns != elements_of(step->group, slot))
        return complain(v, table, "does not have the rows that the step reads or replaces");
    return CORNU_OK;
}

/* Groups read no elements outside their operands. */
static CornuStatus check_accesses(Verifier *v, const CornuPlanStep *step)
{
    for (int i = 0; step->group && i < step->group->slot_count; i++) {
        const CornuSlot *slot = &step->group->slots[i];
        if (slot->kind >= CORNU_SLOT_ROWS) CORNU__TRY(check_rows(v, step, slot));
        if (slot->kind < CORNU_SLOT_SCALAR || slot->kind > CORNU_SLOT_INPUT) continue;
        const CornuValue value = v->plan->operands[step->in_first + slot->operand];
        int64_t          last = 0, count = 1;
        for (int axis = 0; axis < slot->access.rank; axis++) {
            last += (slot->access.extent[axis] - 1) * slot->access.stride[axis];
            count *= slot->access.extent[axis];
        }
        if (last >= cornu_type_count(v->plan->types[value]) ||
            (slot->access.rank > 0 && count != elements_of(step->group, slot)))
            return complain(v, value, "does not have the elements that the step reads");
    }
    return CORNU_OK;
}

static CornuStatus check_ops(Verifier *v, const CornuPlanStep *step)
{
    const CornuPlan    *plan = v->plan;
    const CornuProgram *program = plan->program;
    for (int i = 0; i < step->op_count; i++) {
        const CornuProgramOp *op = &program->ops[step->ops[i]];
        const CornuValue     *in = cornu_program_operands(program, op);
        for (int k = 0; k < op->in_count; k++)
            if (!finds(plan, step, step->ops[i], in[k]))
                return complain(v, in[k], "is an operand of the op but not of the step");
    }
    for (int k = 0; k < step->in_count + step->out_count; k++) {
        const CornuValue value = plan->operands[step->in_first + k];
        if (!cornu_type_equal(plan->types[value], step->types[k]))
            return complain(v, value, "is not of the type that the step takes it for");
        if (k >= step->in_count && value < program->value_count && step->kind != CORNU_STEP_WAIT &&
            !computes(step, program->values[value].op))
            return complain(v, value, "is written by a step that does not compute it");
    }
    return check_accesses(v, step);
}

/* A value placed in a larger one is an operand of the op that joins it. */
static CornuStatus check_joined(Verifier *v)
{
    const CornuPlan *plan = v->plan;
    for (int value = 0; value < plan->program->value_count; value++) {
        const CornuPart joined = plan->joined[value];
        if (joined.whole == CORNU_NO_VALUE) continue;
        const CornuProgramOp *op = &plan->program->ops[plan->program->values[joined.whole].op];
        bool                  found = false;
        for (int k = 0; k < op->in_count && !found; k++) {
            CornuPart part;
            found = cornu__plan_root(plan, cornu_program_operands(plan->program, op)[k]) == value &&
                    cornu__is_joined(plan, op, k, &part) && part.whole == joined.whole &&
                    part.offset == joined.offset && part.stride == joined.stride;
        }
        if (!found) return complain(v, value, "is placed in a value that it is not a part of");
    }
    return CORNU_OK;
}

/* ---- Memory ---- */

/* Names the bytes as part of the whole, on the shard that has them. */
static void name_bytes(const Verifier *v, CornuValue value, int shard, Range *s)
{
    const CornuPart part = cornu__plan_part(v->plan, v->copy_of[value]);
    s->value = part.whole;
    s->first = part.offset + (size_t)(cornu__plan_own(v->plan).first + shard) * part.stride;
    const int block = v->plan->places[part.whole].block;
    s->of = !v->plan->varies[part.whole] ? 0 : block > 1 ? shard / block : shard;
}

/* The bytes of the value on a shard. */
static Range range_of(const Verifier *v, CornuValue value, int shard)
{
    const CornuPlace place = v->plan->places[value];
    const bool       numbered = place.region == CORNU_INPUT || place.region == CORNU_OUTPUT;
    Range            s = { .region = place.region, .number = numbered ? place.number : 0,
                           .segment = v->segment, .shard = v->shard };
    s.begin = cornu__place_offset(&place, shard) + (size_t)v->worker * place.worker_stride;
    s.end = s.begin + cornu_type_bytes(v->plan->types[value]);
    name_bytes(v, value, shard, &s);
    return s;
}

/* Where the workers' part of a region begins. */
static size_t shards_end(const CornuPlan *plan, CornuSpace space)
{
    return space.shared + (size_t)cornu__plan_own(plan).count * space.shard;
}

static bool is_of_worker(const CornuPlan *plan, const Range *s)
{
    const size_t blocks_end = (size_t)cornu__plan_blocks(plan) * plan->sums.block;
    return (s->region == CORNU_SUMS && s->begin >= blocks_end) ||
           (s->region == CORNU_ARENA && s->begin >= shards_end(plan, plan->arena)) ||
           (s->region == CORNU_PACKED && s->begin >= shards_end(plan, plan->packed));
}

/* Bytes of the region. */
static size_t region_bytes(const CornuPlan *plan, const Range *s)
{
    const CornuProgram *program = plan->program;
    const int           shards = cornu__plan_own(plan).count;
    switch (s->region) {
    case CORNU_ARENA:  return cornu__plan_bytes(plan, plan->arena);
    case CORNU_PACKED: return cornu__plan_bytes(plan, plan->packed);
    case CORNU_SUMS:   return cornu__plan_sum_bytes(plan);
    case CORNU_FIXED:  return cornu__plan_bytes(plan, plan->fixed);
    case CORNU_INPUT:
        return cornu_type_bytes(
            cornu_program_buffer_type(program, program->inputs[s->number], shards));
    case CORNU_OUTPUT:
        return cornu_type_bytes(
            cornu_program_buffer_type(program, program->outputs[s->number].value, shards));
    case CORNU_NOWHERE: break;
    }
    return 0;
}

static bool meet(const Range *a, const Range *b)
{
    return a->region == b->region && a->number == b->number && a->begin < b->end &&
           b->begin < a->end;
}

/* Whether two shards may do this at the same time; a worker's memory is for one shard at a time, as
 * is a block's. */
static bool at_once(const Verifier *v, const Range *a, const Range *b)
{
    const int block = cornu__plan_block(v->plan);
    if (a->region == CORNU_SUMS && a->shard / block == b->shard / block) return false;
    return a->segment == b->segment && a->shard != NO_SHARD && b->shard != NO_SHARD &&
           a->shard != b->shard && !is_of_worker(v->plan, a);
}

static CornuStatus append(Ranges *to, Range s)
{
    if (s.begin == s.end) return CORNU_OK;
    CORNU__TRY(cornu__reserve(&to->items, &to->space, to->count, 1, sizeof *to->items));
    to->items[to->count++] = s;
    return CORNU_OK;
}

/* Whether all bytes of `s` hold what it says. */
static CornuStatus expect_held(Verifier *v, CornuValue value, const Range *s)
{
    size_t found = 0;
    for (int i = 0; i < v->held.count; i++) {
        const Range *held = &v->held.items[i];
        if (!meet(held, s)) continue;
        const size_t begin = held->begin > s->begin ? held->begin : s->begin;
        const size_t end = held->end < s->end ? held->end : s->end;
        if (held->value != s->value || held->of != s->of ||
            held->first + (begin - held->begin) != s->first + (begin - s->begin))
            return complain(v, value, "is read where another value has been written");
        if (at_once(v, held, s))
            return complain(v, value, "is read while another shard may be writing it");
        found += end - begin;
    }
    return found == s->end - s->begin ? CORNU_OK
                                      : complain(v, value, "is read before it is written");
}

static CornuStatus read_value(Verifier *v, CornuValue value, int shard)
{
    const Range s = range_of(v, value, shard);
    if (s.region == CORNU_NOWHERE) return complain(v, value, "is read and has no memory");
    CORNU__TRY(expect_held(v, value, &s));
    return is_of_worker(v->plan, &s) ? CORNU_OK : append(&v->read, s);   /* one shard at a time */
}

/* Removes the bytes of `s` from what is held. */
static CornuStatus drop_held(Verifier *v, const Range *s)
{
    Ranges *held = &v->held;
    for (int i = 0; i < held->count; i++) {
        Range *at = &held->items[i];
        if (!meet(at, s)) continue;
        Range left = *at, right = *at;
        left.end = s->begin > at->begin ? s->begin : at->begin;
        right.begin = s->end < at->end ? s->end : at->end;
        right.first += right.begin - at->begin;
        *at = held->items[--held->count];
        CORNU__TRY(append(held, left));
        CORNU__TRY(append(held, right));
        i = -1;   /* the order has changed */
    }
    return CORNU_OK;
}

static CornuStatus write_range(Verifier *v, CornuValue value, Range s)
{
    if (s.region == CORNU_NOWHERE) return complain(v, value, "is written and has no memory");
    if (s.end > region_bytes(v->plan, &s))
        return complain(v, value, "is written beyond the end of its memory");
    for (int i = 0; i < v->read.count; i++)
        if (meet(&v->read.items[i], &s) && at_once(v, &v->read.items[i], &s))
            return complain(v, value, "is written where another shard may be reading");
    for (int i = 0; i < v->held.count; i++)
        if (meet(&v->held.items[i], &s) && at_once(v, &v->held.items[i], &s))
            return complain(v, value, "is written where another shard may be writing");
    CORNU__TRY(drop_held(v, &s));
    return append(&v->held, s);
}

/* From byte `at` of s on: the end of bytes held that are as s says; if there are none, `at`, and
 * *next is where such bytes begin, at most the end of s. */
static size_t end_of_held(const Verifier *v, const Range *s, size_t at, size_t *next)
{
    *next = s->end;
    for (int i = 0; i < v->held.count; i++) {
        const Range *held = &v->held.items[i];
        if (!meet(held, s) || held->end <= at || held->value != s->value || held->of != s->of ||
            held->first + s->begin != s->first + held->begin)
            continue;
        if (held->begin <= at) return held->end < s->end ? held->end : s->end;
        if (held->begin < *next) *next = held->begin;
    }
    return at;
}

/* A step that joins operands writes those that are not in place yet, and the padding. */
static CornuStatus write_rest(Verifier *v, CornuValue value, int shard)
{
    const Range s = range_of(v, value, shard);
    for (size_t at = s.begin, next; at < s.end;) {
        const size_t end = end_of_held(v, &s, at, &next);
        Range        gap = s;
        gap.begin = at;
        gap.end = next;
        gap.first += at - s.begin;
        if (end == at) CORNU__TRY(write_range(v, value, gap));
        at = end == at ? next : end;
    }
    return CORNU_OK;
}

/* ---- Steps ---- */

/* Whether result `out`, at `to`, may overlap operand k, at `from`: of a group that goes over both
 * element by element; of a step that replaces rows of it; of a step that joins operands, one of
 * which this is, or is part of, in place. */
static bool may_overlap(const Verifier *v, const CornuPlanStep *step, int k, int out, int shard,
                        const Range *from, const Range *to)
{
    const CornuValue *in = v->plan->operands + step->in_first;
    CornuPart         part;
    if (step->kind == CORNU_STEP_GROUP)
        return from->begin == to->begin && cornu__group_in_place(step->group, k, out);
    if (step->kind == CORNU_STEP_KERNEL &&
        cornu__is_replaced(&v->plan->program->ops[step->op], k))
        return from->begin == to->begin;
    for (int i = 0; i < step->in_count && step->kind == CORNU_STEP_KERNEL; i++) {
        const Range place = range_of(v, in[i], shard);
        if (place.begin <= from->begin && from->end <= place.end &&
            cornu__is_joined(v->plan, &v->plan->program->ops[step->op], i, &part) &&
            !cornu__plan_moves(v->plan, step, i))
            return true;
    }
    return false;
}

static CornuStatus check_overlaps(Verifier *v, const CornuPlanStep *step, int shard)
{
    const CornuPlan *plan = v->plan;
    for (int out = 0; out < step->out_count; out++) {
        const CornuValue made = plan->operands[step->out_first + out];
        const Range      to = range_of(v, made, shard);
        for (int k = 0; k < step->in_count; k++) {
            const Range from = range_of(v, plan->operands[step->in_first + k], shard);
            if (meet(&to, &from) && !may_overlap(v, step, k, out, shard, &from, &to))
                return complain(v, made, "is written over an operand of its own step");
        }
        for (int k = 0; k < out; k++) {
            const Range other = range_of(v, plan->operands[step->out_first + k], shard);
            if (meet(&to, &other)) return complain(v, made, "is written over another result");
        }
    }
    return CORNU_OK;
}

static bool joins(const CornuPlan *plan, const CornuPlanStep *step)
{
    CornuPart part;
    return step->kind == CORNU_STEP_KERNEL && step->in_count > 0 &&
           cornu__is_joined(plan, &plan->program->ops[step->op], 0, &part);
}

/* Walks a step on the current shard, or one that runs once. */
static CornuStatus walk_step(Verifier *v, const CornuPlanStep *step)
{
    const CornuPlan *plan = v->plan;
    const int        shard = v->shard == NO_SHARD ? 0 : v->shard;
    const int        shards = cornu__plan_own(plan).count;
    const bool       sharded = cornu__plan_shards(plan) > 1;
    const bool       crosses = cornu__plan_crosses(plan, step);
    for (int k = 0; k < step->in_count; k++) {
        const CornuValue value = plan->operands[step->in_first + k];
        if (!crosses) {
            if (sharded && plan->varies[value] && !step->varies)
                return complain(v, value, "differs from shard to shard, and the step runs once");
            CORNU__TRY(read_value(v, value, shard));
            continue;
        }
        if (plan->places[value].worker_stride > 0)
            return complain(v, value, "is read by all shards from one worker's memory");
        for (int s = 0; s < shards; s++) CORNU__TRY(read_value(v, value, s));
    }
    CORNU__TRY(check_overlaps(v, step, shard));
    for (int k = 0; k < step->out_count; k++) {
        const CornuValue value = plan->operands[step->out_first + k];
        const bool       all = plan->varies[value] && !step->varies;   /* an exchange */
        for (int s = all ? 0 : shard; s < (all ? shards : shard + 1); s++)
            CORNU__TRY(joins(plan, step) ? write_rest(v, value, s)
                                         : write_range(v, value, range_of(v, value, s)));
    }
    return CORNU_OK;
}

/* The memory of a worker is the next shard's: nothing in it outlives the segment. */
static void end_segment(Verifier *v)
{
    Ranges *held = &v->held;
    int        kept = 0;
    for (int i = 0; i < held->count; i++)
        if (!is_of_worker(v->plan, &held->items[i])) held->items[kept++] = held->items[i];
    held->count = kept;
    v->read.count = 0;
    v->segment++;
}

/* In the order of cornu__host_run; a single shard has segments, too. */
static CornuStatus walk(Verifier *v)
{
    const CornuPlan *plan = v->plan;
    const int        shards = cornu__plan_own(plan).count, workers = cornu__plan_workers(plan);
    const int        block = cornu__plan_block(plan);
    for (int i = 0, end; i < plan->step_count; i = end, end_segment(v)) {
        const bool per_shard = plan->steps[i].varies;
        for (end = i + 1; per_shard && end < plan->step_count; end++)
            if (!plan->steps[end].varies || plan->steps[end].waits) break;
        for (int shard = 0; shard < (per_shard ? shards : 1); shard++) {
            v->shard = per_shard ? shard : NO_SHARD;
            v->worker = per_shard ? shard / block % workers : 0;
            for (v->step = i; v->step < end; v->step++) {
                if (shard == 0) CORNU__TRY(check_ops(v, &plan->steps[v->step]));
                CORNU__TRY(walk_step(v, &plan->steps[v->step]));
            }
        }
    }
    v->shard = NO_SHARD;
    v->worker = 0;
    return CORNU_OK;
}

/* ---- Before and after ---- */

/* A shard's part of a buffer that holds the value. */
static Range buffer_range(const Verifier *v, CornuRegion region, int number, CornuValue value,
                          int shard)
{
    const size_t bytes = cornu_type_bytes(v->plan->types[value]);
    Range        s = { .region = region, .number = number, .begin = (size_t)shard * bytes,
                       .end = (size_t)(shard + 1) * bytes, .segment = v->segment,
                       .shard = NO_SHARD };
    name_bytes(v, value, shard, &s);
    return s;
}

static int shards_of(const CornuPlan *plan, CornuValue value)
{
    return plan->varies[value] ? cornu__plan_own(plan).count : 1;
}

static CornuStatus hold_inputs(Verifier *v)
{
    const CornuProgram *program = v->plan->program;
    for (int i = 0; i < program->input_count; i++)
        for (int s = 0; s < shards_of(v->plan, program->inputs[i]); s++)
            CORNU__TRY(append(&v->held,
                              buffer_range(v, CORNU_INPUT, i, program->inputs[i], s)));
    return CORNU_OK;
}

static CornuStatus expect_outputs(Verifier *v)
{
    const CornuProgram *program = v->plan->program;
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        const bool                aliased = output->alias >= 0;
        for (int s = 0; s < shards_of(v->plan, output->value); s++) {
            const Range expected =
                buffer_range(v, aliased ? CORNU_INPUT : CORNU_OUTPUT,
                               aliased ? output->alias : i, output->value, s);
            CORNU__TRY(expect_held(v, output->value, &expected));
        }
    }
    return CORNU_OK;
}

static void find_copies(Verifier *v)
{
    const CornuPlan *plan = v->plan;
    for (int i = 0; i < plan->value_count; i++) v->copy_of[i] = i;
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == CORNU_STEP_COPY)
            v->copy_of[plan->operands[plan->steps[i].out_first]] =
                v->copy_of[plan->operands[plan->steps[i].in_first]];
}

CornuStatus cornu__plan_verify(const CornuPlan *plan)
{
    Verifier v = { .plan = plan, .shard = NO_SHARD };
    v.copy_of = cornu__allocate((size_t)plan->value_count, sizeof *v.copy_of);
    CornuStatus status = v.copy_of ? CORNU_OK : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) find_copies(&v);
    if (status == CORNU_OK) status = check_joined(&v);
    if (status == CORNU_OK) status = hold_inputs(&v);
    if (status == CORNU_OK) status = walk(&v);
    if (status == CORNU_OK) status = expect_outputs(&v);
    cornu__release(v.copy_of);
    cornu__release(v.held.items);
    cornu__release(v.read.items);
    return status;
}
