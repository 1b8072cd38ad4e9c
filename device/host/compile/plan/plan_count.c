#include "../../../integer_internal.h"
#include "plan.h"

/* Whether result `out` of the step is made in the memory of operand `in`. */
static bool is_in_place(const CornuPlan *plan, const CornuPlanStep *step, int in, int out)
{
    const CornuPlace a = plan->places[plan->operands[step->in_first + in]];
    const CornuPlace b = plan->places[plan->operands[step->out_first + out]];
    return a.region == b.region && a.number == b.number && a.offset == b.offset;
}

/* Bytes of operand k that a group reads or writes. */
static int64_t touched_by_group(const CornuPlan *plan, const CornuPlanStep *step, int k)
{
    const CornuGroup *group = step->group;
    const int64_t     bytes = (int64_t)cornu_type_bytes(step->types[k]);
    int64_t           least = bytes;
    for (int i = 0; i < group->slot_count; i++) {
        const CornuSlot *slot = &group->slots[i];
        const int64_t    rows = smaller(bytes, group->count * (int64_t)slot->size);
        if (slot->kind == CORNU_SLOT_ROWS && slot->operand == k) return rows;
        if (slot->kind != CORNU_SLOT_REPLACED ||
            !is_in_place(plan, step, slot->rows.table, slot->operand))
            continue;
        if (slot->operand == k - step->in_count) return rows;
        if (slot->rows.table == k) least = 0;
    }
    return least;
}

/* Bytes of operand k that the step's op reads or writes: of a table only the rows looked up. */
static int64_t touched(const CornuPlan *plan, const CornuPlanStep *step, int k)
{
    const CornuOpId id = step->op < 0 ? CORNU_OP_COUNT : plan->program->ops[step->op].id;
    const int64_t   bytes = (int64_t)cornu_type_bytes(step->types[k]);
    const bool      is_kernel = step->kind == CORNU_STEP_KERNEL;
    if (step->kind == CORNU_STEP_GROUP) return touched_by_group(plan, step, k);
    if (is_kernel && id == CORNU_OP_GATHER && k == 0)
        return smaller(bytes, (int64_t)cornu_type_bytes(step->types[step->in_count]));
    if (is_kernel && id == CORNU_OP_SCATTER_ROWS && k != 1 && k != 2 &&
        is_in_place(plan, step, 0, 0))
        return k == 0 ? 0 : (int64_t)cornu_type_bytes(step->types[2]);
    return bytes;
}

int64_t cornu__plan_bytes_moved(const CornuPlan *plan, const CornuPlanStep *step, int k)
{
    const bool    varies = plan->varies[plan->operands[step->in_first + k]];
    const bool    sums = step->kind == CORNU_STEP_SUM;
    const int64_t times = !varies ? 1 : step->block > 1 && !sums ? cornu__plan_blocks(plan)
                                                                 : cornu__plan_own(plan).count;
    const int64_t bytes = touched(plan, step, k) * times;
    CornuPart     part;
    if (sums && k == 2) return 0;   /* the memory for sums on the way is counted as the first's */
    if (step->kind != CORNU_STEP_KERNEL ||
        !cornu__is_joined(plan, &plan->program->ops[step->op], 0, &part))
        return bytes;
    return k < step->in_count && cornu__plan_moves(plan, step, k) ? 2 * bytes : 0;
}

/* Steps that are run `times` times; those of a scan's body that run once in it `runs` times. */
static void count(const CornuPlan *plan, int64_t runs, int64_t times, CornuStatistics *statistics)
{
    const int shards = cornu__plan_own(plan).count;
    for (int i = 0; i < plan->step_count; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        const int64_t        each = step->fixed ? runs : times;
        if (step->scan) {
            const int64_t scans = times * (step->varies ? shards : 1);
            count(&step->scan->plan, scans, scans * step->scan->attributes.steps, statistics);
            continue;
        }
        const bool fell_back = step->kind == CORNU_STEP_REFERENCE;
        if (fell_back) {
            const CornuProgramOp *op = &plan->program->ops[step->op];
            statistics->fell_back[op->id] = cornu_program_op_name(op);
        }
        statistics->kernels += each;
        statistics->fallbacks += fell_back ? each : 0;
        statistics->copies += step->kind == CORNU_STEP_COPY ? each : 0;
        for (int k = 0; k < step->in_count; k++)
            statistics->copies += each * cornu__plan_moves(plan, step, k);
        for (int k = 0; k < step->in_count + step->out_count; k++)
            statistics->bytes_moved += each * cornu__plan_bytes_moved(plan, step, k);
    }
}

void cornu__plan_count(const CornuPlan *plan, CornuStatistics *statistics)
{
    count(plan, 1, 1, statistics);
}
