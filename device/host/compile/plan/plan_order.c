/*
 * The order of the steps, and where shards wait for each other.
 *
 * Between two waits each shard runs the steps at its own pace. A step waits if it reads what other
 * shards made since the last wait, or writes what they may still read.
 */
#include "../../../program_internal.h"
#include "heap.h"
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
    p->seen[step] = 0;
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
void cornu__plan_follow(CornuPlanner *p, int from)
{
    int count = 0;
    p->seen[from] = ++p->search;
    p->left[count++] = from;
    while (count > 0)
        for (int e = p->head[p->left[--count]]; e >= 0; e = p->edges[e].next) {
            const int next = p->edges[e].to;
            if (p->seen[next] != p->search) p->left[count++] = next;
            p->seen[next] = p->search;
        }
}

bool cornu__plan_follows(const CornuPlanner *p, int i) { return p->seen[i] == p->search; }

/* ---- Order ---- */

/* With several shards, neighbouring steps should be of one kind: a change between work of the
 * shards and work that they share is a wait. What every shard makes of all shards' values comes
 * last, so that one wait covers as much as possible. */
typedef enum { ON_EVERY_SHARD, BETWEEN_SHARDS, ONCE, ACROSS_SHARDS, KINDS } Kind;

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
typedef enum { SENDS, COMPUTES, WAITS, MEETS, ENDS_A_SUM, GATHERS, TURNS } Turn;

static Turn turn_of(const CornuPlan *plan, const CornuPlanStep *step)
{
    if (step->kind == CORNU_STEP_SEND) return SENDS;
    if (step->kind == CORNU_STEP_WAIT) return WAITS;
    if (step->input >= 0) return GATHERS;
    if (!cornu__plan_exchanges(plan, step)) return COMPUTES;
    return cornu__plan_ends_sum(plan, step) ? ENDS_A_SUM : MEETS;
}

/* Steps that can run, by turn and kind, each a heap by position. */
typedef struct {
    const CornuPlan *plan;
    CornuHeap        heaps[TURNS][KINDS];
    int             *items, *positions;   /* by step */
    int             *waits;               /* by step: of how many others it waits for */
    CornuPlanStep   *ordered;
} Order;

static CornuHeap *heap_of(Order *order, const CornuPlanStep *step)
{
    return &order->heaps[turn_of(order->plan, step)][kind_of(order->plan, step)];
}

/* Each heap gets its part of the items. */
static void share_items(Order *order)
{
    int counts[TURNS][KINDS] = { { 0 } }, first = 0;
    for (int i = 0; i < order->plan->step_count; i++) {
        const CornuPlanStep *step = &order->plan->steps[i];
        counts[turn_of(order->plan, step)][kind_of(order->plan, step)]++;
        order->positions[i] = step->position;
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int kind = 0; kind < KINDS; kind++) {
            order->heaps[turn][kind] = (CornuHeap){ order->items + first, 0, order->positions };
            first += counts[turn][kind];
        }
}

static void make_ready(Order *order, int i)
{
    cornu__heap_push(heap_of(order, &order->plan->steps[i]), i);
}

/* The step to run when the last one was of kind `last`: of the first turn that has any, one of the
 * same kind if there is one. */
static int take_next(Order *order, Kind last)
{
    int turn = 0, kind = 0;
    for (;; turn++) {
        bool any = false;
        for (int k = KINDS - 1; k >= 0; k--)
            if (order->heaps[turn][k].count > 0) {
                any = true;
                kind = k;
            }
        if (any) break;
    }
    if (order->heaps[turn][last].count > 0) kind = last;
    return cornu__heap_pop(&order->heaps[turn][kind]);
}

static void run_all(Order *order, const CornuPlanner *p)
{
    const CornuPlan *plan = order->plan;
    Kind             last = ONCE;
    for (int i = 0; i < p->edge_count; i++) order->waits[p->edges[i].to]++;
    for (int i = 0; i < plan->step_count; i++)
        if (order->waits[i] == 0) make_ready(order, i);
    for (int done = 0; done < plan->step_count; done++) {
        const int next = take_next(order, last);
        order->ordered[done] = plan->steps[next];
        last = kind_of(plan, &plan->steps[next]);
        if (last == ACROSS_SHARDS) last = ON_EVERY_SHARD;
        for (int e = p->head[next]; e >= 0; e = p->edges[e].next)
            if (--order->waits[p->edges[e].to] == 0) make_ready(order, p->edges[e].to);
    }
}

CornuStatus cornu__plan_order(CornuPlanner *p)
{
    CornuPlan   *plan = p->plan;
    const size_t count = (size_t)plan->step_count;
    Order        order = { .plan = plan,
                           .items = cornu__allocate(count, sizeof *order.items),
                           .positions = cornu__allocate(count, sizeof *order.positions),
                           .waits = cornu__allocate(count, sizeof *order.waits),
                           .ordered = cornu__allocate(count, sizeof *order.ordered) };
    const bool complete = order.items && order.positions && order.waits && order.ordered;
    if (complete) {
        share_items(&order);
        run_all(&order, p);
        cornu__release(plan->steps);
        plan->steps = order.ordered;
        plan->step_space = plan->step_count;
    } else {
        cornu__release(order.ordered);
    }
    cornu__release(order.items);
    cornu__release(order.positions);
    cornu__release(order.waits);
    return complete ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- Waits ---- */

/* The last steps so far that made a value or read an input, -1: none. */
typedef struct {
    int *made;             /* by value that is not part of another */
    int *read_crossing;    /* by input: by a step that reads all shards' values */
    int *read_shared;      /* by input: a part that is the same on all shards */
} Recent;

static void note_step(const CornuPlan *plan, Recent *recent, int i)
{
    const CornuPlanStep *step = &plan->steps[i];
    CornuPart            read;
    for (int k = 0; k < step->out_count; k++)
        recent->made[cornu__plan_part(plan, plan->operands[step->out_first + k]).whole] = i;
    for (int k = 0; k < step->in_count; k++) {
        const int input = cornu__plan_input_read(plan, step, k, &read);
        if (input < 0) continue;
        if (cornu__plan_crosses(plan, step)) recent->read_crossing[input] = i;
        if (read.stride == 0) recent->read_shared[input] = i;
    }
}

/* Whether step j must wait until all shards are past a step of the same segment, which begins at
 * `first`: j reads all shards' results of it, or writes a part of an input that it reads on all of
 * them. */
static bool must_wait(const CornuPlan *plan, const Recent *recent, int first, int j)
{
    const CornuPlanStep *step = &plan->steps[j];
    for (int k = 0; k < step->in_count && cornu__plan_crosses(plan, step); k++)
        if (recent->made[cornu__plan_part(plan, plan->operands[step->in_first + k]).whole] >= first)
            return true;
    for (int k = 0; k < step->out_count; k++) {
        const CornuValue memory = cornu__plan_part(plan, plan->operands[step->out_first + k]).whole;
        const CornuPlace place = plan->places[memory];
        if (place.region == CORNU_INPUT &&
            (recent->read_crossing[place.number] >= first ||
             (!plan->varies[memory] && recent->read_shared[place.number] >= first)))
            return true;
    }
    return false;
}

static bool begins_segment(const CornuPlan *plan, int i)
{
    return i == 0 || plan->steps[i].waits || !plan->steps[i].varies || !plan->steps[i - 1].varies;
}

CornuStatus cornu__plan_find_waits(CornuPlan *plan)
{
    const int values = plan->value_count, inputs = plan->program->input_count;
    int      *memory = cornu__allocate((size_t)values + 2 * (size_t)inputs, sizeof *memory);
    if (!memory) return CORNU_ERR_MEMORY;
    Recent recent = { memory, memory + values, memory + values + inputs };
    for (int i = 0; i < values + 2 * inputs; i++) memory[i] = -1;
    for (int j = 0, first = 0; j < plan->step_count; j++) {
        if (begins_segment(plan, j)) first = j;
        plan->steps[j].waits |= first < j && must_wait(plan, &recent, first, j);
        if (plan->steps[j].waits) first = j;
        note_step(plan, &recent, j);
    }
    cornu__release(memory);
    return CORNU_OK;
}

void cornu__plan_find_segments(const CornuPlan *plan, int *first, int *end)
{
    for (int i = 0; i < plan->step_count; i++)
        first[i] = begins_segment(plan, i) ? i : first[i - 1];
    for (int i = plan->step_count - 1; i >= 0; i--)
        end[i] = i + 1 == plan->step_count || begins_segment(plan, i + 1) ? i + 1 : end[i + 1];
}
