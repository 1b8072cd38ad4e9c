/*
 * The order of the steps, and where shards wait for each other.
 *
 * Between two waits each shard runs the steps at its own pace. A step waits if it reads what other
 * shards made since the last wait, or writes what they may still read.
 */
#include <string.h>

#include "../../program_internal.h"
#include "plan_internal.h"

/* ---- Edges ---- */

CornuStatus cornu__plan_edge(CornuPlanner *p, int from, int to)
{
    CORNU__TRY(
        cornu__reserve(&p->edges, &p->edge_space, p->edge_count, 1, sizeof *p->edges));
    p->edges[p->edge_count] = (CornuEdge){ to, p->head[from] };
    p->head[from] = p->edge_count++;
    return CORNU_OK;
}

CornuStatus cornu__plan_connect(CornuPlanner *p, int step)
{
    CornuPlan *plan = p->plan;
    CORNU__TRY(cornu__reserve(&p->head, &p->head_space, step, 1, sizeof *p->head));
    CORNU__TRY(cornu__reserve(&p->seen, &p->seen_space, step, 1, sizeof *p->seen));
    CORNU__TRY(cornu__reserve(&p->left, &p->left_space, step, 1, sizeof *p->left));
    CORNU__TRY(cornu__reserve(&p->writer, &p->writer_space, 0, plan->value_count,
                              sizeof *p->writer));
    p->head[step] = -1;
    const CornuPlanStep *s = &plan->steps[step];
    for (int i = 0; i < s->out_count; i++)
        p->writer[plan->operands[s->out_first + i]] = step;
    return CORNU_OK;
}

CornuStatus cornu__plan_connect_operands(CornuPlanner *p, int step)
{
    const CornuPlanStep *s = &p->plan->steps[step];
    for (int i = 0; i < s->in_count; i++) {
        int maker = p->writer[cornu__plan_root(p->plan, p->plan->operands[s->in_first + i])];
        if (maker >= 0 && maker != step) CORNU__TRY(cornu__plan_edge(p, maker, step));
    }
    return CORNU_OK;
}

/* With a stack of its own, p->left: paths are as long as models are deep. */
bool cornu__plan_precedes(CornuPlanner *p, int from, int to)
{
    int count = 0;
    memset(p->seen, 0, (size_t)p->plan->step_count * sizeof *p->seen);
    p->seen[from] = true;
    p->left[count++] = from;
    while (count > 0 && !p->seen[to])
        for (int e = p->head[p->left[--count]]; e >= 0; e = p->edges[e].next) {
            const int next = p->edges[e].to;
            if (!p->seen[next]) p->left[count++] = next;
            p->seen[next] = true;
        }
    return p->seen[to];
}

/* ---- Order ---- */

/* With several shards, neighbouring steps should be of one kind: a change between work of the
 * shards and work that they share is a wait. What every shard makes of all shards' values comes
 * last, so that one wait covers as much as possible. */
typedef enum { ON_EVERY_SHARD, BETWEEN_SHARDS, ONCE, ACROSS_SHARDS } Kind;

static Kind kind_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    if (cornu__plan_shards(plan) == 1) return ONCE;
    if (cornu__plan_crosses(plan, step)) return step->varies ? ACROSS_SHARDS : BETWEEN_SHARDS;
    return step->varies ? ON_EVERY_SHARD : ONCE;
}

/* Exchanges pass through the network one after the other. So what other processes sum is sent as
 * soon as it can be, and waited for when there is nothing else to do; small sums, which are sent
 * and waited for at once, come after the waits for gathers that are under way, which they would
 * wait for as well; and gathers are left when all sums have ended, those first that the next run
 * needs first.
 */
typedef enum { SENDS, COMPUTES, WAITS, MEETS, ENDS_A_SUM, GATHERS } Turn;

static Turn turn_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    if (step->kind == CORNU_STEP_SEND) return SENDS;
    if (step->kind == CORNU_STEP_WAIT) return WAITS;
    if (step->input >= 0) return GATHERS;
    if (!cornu__plan_exchanges(plan, step)) return COMPUTES;
    return cornu__plan_ends_sum(plan, step) ? ENDS_A_SUM : MEETS;
}

/* Whether step a should run before b, when the last one was of kind `last`. */
static bool comes_before(const CornuPlan *plan, const CornuPlanStep *a, const CornuPlanStep *b,
                         Kind last)
{
    const Turn turn_a = turn_of(plan, a), turn_b = turn_of(plan, b);
    if (turn_a != turn_b) return turn_a < turn_b;
    Kind of_a = kind_of(plan, a), of_b = kind_of(plan, b);
    if (of_a == of_b) return a->position < b->position;
    return of_a == last || (of_b != last && of_a < of_b);
}

CornuStatus cornu__plan_order(CornuPlanner *p)
{
    CornuPlan *plan = p->plan;
    int        count = plan->step_count;
    int       *waits = cornu__allocate((size_t)count, sizeof *waits);
    CornuPlanStep *ordered = cornu__allocate((size_t)count, sizeof *ordered);
    if (!waits || !ordered) {
        cornu__release(waits);
        cornu__release(ordered);
        return CORNU_ERR_MEMORY;
    }
    for (int i = 0; i < p->edge_count; i++) waits[p->edges[i].to]++;
    Kind last = ONCE;
    for (int done = 0; done < count; done++) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (waits[i] == 0 &&
                (best < 0 || comes_before(plan, &plan->steps[i], &plan->steps[best], last)))
                best = i;
        ordered[done] = plan->steps[best];
        last = kind_of(plan, &plan->steps[best]);
        if (last == ACROSS_SHARDS) last = ON_EVERY_SHARD;
        waits[best] = -1;
        for (int e = p->head[best]; e >= 0; e = p->edges[e].next) waits[p->edges[e].to]--;
    }
    cornu__release(waits);
    cornu__release(plan->steps);
    plan->steps = ordered;
    plan->step_space = count;
    return CORNU_OK;
}

/* ---- Waits ---- */

/* Whether step j must wait until all shards are past step i of the same segment: j reads all
 * shards' results of i, or writes a part of an input that i reads on all of them. */
static bool must_wait(const CornuPlan *plan, const CornuPlanStep *i, const CornuPlanStep *j)
{
    CornuPart read;
    for (int k = 0; k < i->out_count; k++)
        for (int n = 0; n < j->in_count && cornu__plan_crosses(plan, j); n++)
            if (cornu__plan_part(plan, plan->operands[i->out_first + k]).whole ==
                cornu__plan_part(plan, plan->operands[j->in_first + n]).whole)
                return true;
    for (int k = 0; k < j->out_count; k++) {
        const CornuValue memory = cornu__plan_part(plan, plan->operands[j->out_first + k]).whole;
        const CornuPlace place = plan->places[memory];
        for (int n = 0; n < i->in_count && place.region == CORNU_INPUT; n++)
            if (cornu__plan_input_read(plan, i, n, &read) == place.number &&
                (cornu__plan_crosses(plan, i) || (!plan->varies[memory] && read.stride == 0)))
                return true;
    }
    return false;
}

static bool begins_segment(const CornuPlan *plan, int i)
{
    return i == 0 || plan->steps[i].waits || !plan->steps[i].varies || !plan->steps[i - 1].varies;
}

void cornu__plan_find_waits(CornuPlan *plan)
{
    for (int j = 0, first = 0; j < plan->step_count; j++) {
        if (begins_segment(plan, j)) first = j;
        for (int i = first; i < j && !plan->steps[j].waits; i++)
            plan->steps[j].waits = must_wait(plan, &plan->steps[i], &plan->steps[j]);
        if (plan->steps[j].waits) first = j;
    }
}

int cornu__plan_segment_first(const CornuPlan *plan, int i)
{
    while (!begins_segment(plan, i)) i--;
    return i;
}

int cornu__plan_segment_end(const CornuPlan *plan, int i)
{
    do i++;
    while (i < plan->step_count && !begins_segment(plan, i));
    return i;
}
