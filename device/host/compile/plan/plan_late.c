/*
 * late: what shards exchange apart from its equals (program_internal.h) is exchanged just before
 * it is read.
 *
 * It was recorded again so that it need not be in memory from its first use to its last. But it
 * needs little that the program computes, often inputs alone, and so could run first of all; other
 * ops that are apart run where they were recorded. So it waits for the other operands of its
 * reader: the weights that a layer gathers for what the layers before it compute. What these make
 * of their gradients, slices of sums over shards, goes before it too, so that whole gradients are
 * not kept until the end.
 */
#include <stdlib.h>

#include "../../../program_internal.h"
#include "plan_internal.h"

/* A step, and the position in the program by which its time goes. */
typedef struct { int step, position; } Timed;

typedef struct {
    CornuPlanner *p;
    bool         *late;       /* by step: it is kept apart, or made of one that is alone */
    int          *first;      /* by step: the first that reads its results, -1: none */
    Timed        *delayed;    /* late steps, and when they are read by one that is not */
    Timed        *sums;       /* that scatter, and when what they add up can be made */
    int           delayed_count, sum_count;
} Late;

/* The step that makes operand k; -1: none, it is an input. */
static int maker_of(const CornuPlanner *p, int step, int k)
{
    const int value = p->plan->operands[p->plan->steps[step].in_first + k];
    const int maker = p->writer[cornu__plan_root(p->plan, value)];
    return maker == step ? -1 : maker;
}

static bool is_exchange_apart(const CornuProgramOp *op)
{
    return op->apart && cornu__is_collective(op->id);
}

static bool is_apart(const CornuPlan *plan, const CornuPlanStep *step)
{
    bool apart = step->op >= 0 && is_exchange_apart(&plan->program->ops[step->op]);
    for (int k = 0; k < step->op_count; k++)
        apart |= is_exchange_apart(&plan->program->ops[step->ops[k]]);
    return apart;
}

/* Packed operands, for one, are late if the operand is. */
static bool is_late(const CornuPlanner *p, int step)
{
    const CornuPlan *plan = p->plan;
    while (step >= 0 && !is_apart(plan, &plan->steps[step]))
        step = plan->steps[step].in_count == 1 ? maker_of(p, step, 0) : -1;
    return step >= 0;
}

static void find_readers(Late *l)
{
    const CornuPlanner  *p = l->p;
    const CornuPlanStep *steps = p->plan->steps;
    for (int i = 0; i < p->plan->step_count; i++) {
        l->late[i] = is_late(p, i);
        l->first[i] = -1;
        for (int e = p->head[i]; e >= 0; e = p->edges[e].next) {
            const int reader = p->edges[e].to;
            if (l->first[i] < 0 || steps[reader].position < steps[l->first[i]].position)
                l->first[i] = reader;
        }
    }
}

/* The first step that reads what comes of it and is not late; -1: none. */
static int reader_of(const Late *l, int step)
{
    do step = l->first[step];
    while (step >= 0 && l->late[step]);
    return step;
}

/* Late steps that wait for none that is late, which would wait for them. */
static bool is_first_of_late(const Late *l, int step)
{
    bool first = l->late[step];
    for (int k = 0; k < l->p->plan->steps[step].in_count && first; k++) {
        const int maker = maker_of(l->p, step, k);
        first = maker < 0 || !l->late[maker];
    }
    return first;
}

static int by_position(const void *a, const void *b)
{
    const Timed *x = a, *y = b;
    if (x->position != y->position) return x->position < y->position ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* When all is there of which the step makes its results, of what it packs for itself too. */
static int ready_at(const CornuPlanner *p, int step)
{
    int ready = 0;
    for (int k = 0; k < p->plan->steps[step].in_count; k++) {
        int maker = maker_of(p, step, k);
        if (maker >= 0 && p->plan->steps[maker].kind == CORNU_STEP_PACK)
            maker = maker_of(p, maker, 0);
        if (maker >= 0 && p->plan->steps[maker].position > ready)
            ready = p->plan->steps[maker].position;
    }
    return ready;
}

static void find_times(Late *l)
{
    const CornuPlan *plan = l->p->plan;
    for (int i = 0; i < plan->step_count; i++) {
        const CornuPlanStep *step = &plan->steps[i];
        const int            reader = is_first_of_late(l, i) ? reader_of(l, i) : -1;
        if (reader >= 0)
            l->delayed[l->delayed_count++] = (Timed){ i, plan->steps[reader].position };
        if (step->kind != CORNU_STEP_KERNEL || step->op < 0 ||
            plan->program->ops[step->op].id != CORNU_OP_REDUCE_SCATTER)
            continue;
        const int maker = maker_of(l->p, i, 0);
        if (maker >= 0) l->sums[l->sum_count++] = (Timed){ i, ready_at(l->p, maker) };
    }
    qsort(l->delayed, (size_t)l->delayed_count, sizeof *l->delayed, by_position);
    qsort(l->sums, (size_t)l->sum_count, sizeof *l->sums, by_position);
}

/* Orders two steps, the later of which cornu__plan_follow has searched from, unless the other one
 * needs it. */
static CornuStatus run_before(Late *l, int before, int step)
{
    if (before == step || cornu__plan_follows(l->p, before)) return CORNU_OK;
    return cornu__plan_edge(l->p, before, step);
}

/* Delays the step number i of the list; sums before `sum` go before one that was earlier. */
static CornuStatus delay(Late *l, int i, int sum)
{
    const Timed late = l->delayed[i];
    const int   reader = reader_of(l, late.step);
    cornu__plan_follow(l->p, late.step);
    for (int k = 0; k < l->p->plan->steps[reader].in_count; k++) {
        const int maker = maker_of(l->p, reader, k);
        if (maker >= 0 && !l->late[maker]) CORNU__TRY(run_before(l, maker, late.step));
    }
    for (; sum < l->sum_count && l->sums[sum].position < late.position; sum++)
        CORNU__TRY(run_before(l, l->sums[sum].step, late.step));
    return CORNU_OK;
}

static CornuStatus delay_all(Late *l)
{
    CornuStatus status = CORNU_OK;
    find_readers(l);
    find_times(l);
    for (int i = 0, sum = 0, before = -1; i < l->delayed_count && !status; i++) {
        const int position = l->delayed[i].position;
        if (position > before)
            while (sum < l->sum_count && l->sums[sum].position < before) sum++;
        before = position;
        status = delay(l, i, sum);
    }
    return status;
}

CornuStatus cornu__plan_late(CornuPlanner *p)
{
    const size_t count = (size_t)p->plan->step_count;
    if (cornu__program_most_apart(p->plan->program) == 0) return CORNU_OK;
    Late l = { .p = p, .late = cornu__allocate(count, sizeof *l.late),
               .first = cornu__allocate(count, sizeof *l.first),
               .delayed = cornu__allocate(count, sizeof *l.delayed),
               .sums = cornu__allocate(count, sizeof *l.sums) };
    const CornuStatus status = l.late && l.first && l.delayed && l.sums ? delay_all(&l)
                                                                        : CORNU_ERR_MEMORY;
    cornu__release(l.late);
    cornu__release(l.first);
    cornu__release(l.delayed);
    cornu__release(l.sums);
    return status;
}
