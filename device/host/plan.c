/*
 * plan: the order of the steps, and a place in memory for every value.
 *
 * What an op puts together (pack, concat, all_gather) is made in one place by the steps that make
 * the operands, where nothing else is against it; the op's own step moves the others.
 *
 * An output that is written into an input (a variable) is made there directly if its steps
 * can run after every other reader of that memory and, where they read it themselves,
 * element by element; otherwise a copy step writes it at the end. All other values live
 * in one arena, packed operands in another, at offsets that values share whose lives do not
 * overlap.
 *
 * Shards run the steps between two waits each at its own pace. A step waits where it reads what
 * other shards made since the last wait, or writes what they may still read.
 */
#include <stdlib.h>
#include <string.h>

#include "../memory_internal.h"
#include "../ops/collective.h"
#include "passes.h"

enum { ALIGNMENT = 64 };

/* One step runs before another: a list of successors for each step. */
typedef struct { int to, next; } Edge;

typedef struct {
    CornuPlan *plan;
    int       *writer;       /* the step that makes a root value, -1: none */
    int       *head;         /* the first edge of a step, -1: none */
    int        head_space;
    Edge      *edges;
    int        edge_count, edge_space;
    bool      *seen;         /* of a search, per step */
    int        seen_space;
    int        writer_space;
} Planner;

int cornu__plan_shards(const CornuPlan *plan)
{
    return plan->host->shards > 1 ? plan->host->shards : 1;
}

CornuStep *cornu__plan_step(CornuPlan *plan, CornuStepKind kind, const CornuValue *in,
                            int in_count, const CornuValue *out, int out_count)
{
    if (cornu__reserve(&plan->steps, &plan->step_space, plan->step_count, 1,
                       sizeof *plan->steps) != CORNU_OK ||
        cornu__reserve(&plan->operands, &plan->operand_space, plan->operand_count,
                       in_count + out_count, sizeof *plan->operands) != CORNU_OK)
        return NULL;
    CornuStep *step = &plan->steps[plan->step_count];
    *step = (CornuStep){
        .kind = kind,
        .op = -1,
        .pool = -1,
        .in_first = plan->operand_count,
        .in_count = in_count,
        .out_first = plan->operand_count + in_count,
        .out_count = out_count,
        .epilogue = { .activation = CORNU_OP_COUNT },
    };
    step->types = cornu__allocate((size_t)(in_count + out_count), sizeof *step->types);
    if (!step->types) return NULL;
    CornuValue *operands = plan->operands + plan->operand_count;
    for (int i = 0; i < in_count; i++) operands[i] = in[i];
    for (int i = 0; i < out_count; i++) operands[in_count + i] = out[i];
    for (int i = 0; i < in_count + out_count; i++)
        step->types[i] = plan->types[operands[i]];
    for (int i = 0; i < out_count; i++) step->varies = step->varies || plan->varies[out[i]];
    plan->operand_count += in_count + out_count;
    plan->step_count++;
    return step;
}

/* The value that `value` is seen in: its maker has made it. */
static CornuPart seen_in(const CornuPlan *plan, CornuValue value)
{
    CornuPart part = { .whole = value }, next;
    while (part.whole < plan->program->value_count && plan->program->values[part.whole].op >= 0) {
        const CornuProgramOp *op = &plan->program->ops[plan->program->values[part.whole].op];
        if (!cornu__is_view(plan->program, op, &next)) break;
        part = (CornuPart){ next.whole, part.offset + next.offset, part.stride + next.stride };
    }
    return part;
}

static CornuValue root_of(const CornuPlan *plan, CornuValue value)
{
    return seen_in(plan, value).whole;
}

/* The value whose memory it is in, which may be made later. */
static CornuPart memory_of(const CornuPlan *plan, CornuValue value)
{
    CornuPart part = seen_in(plan, value);
    while (part.whole < plan->program->value_count &&
           plan->joined[part.whole].whole != CORNU_NO_VALUE) {
        CornuPart next = plan->joined[part.whole];
        part = (CornuPart){ next.whole, part.offset + next.offset, part.stride + next.stride };
    }
    return part;
}

static bool same_place(CornuPart a, CornuPart b)
{
    return a.whole == b.whole && a.offset == b.offset && a.stride == b.stride;
}

/* Whether the step's op puts operand k into its result, and where in memory that is. */
static bool joins(const CornuPlan *plan, const CornuStep *step, int k, CornuPart *to)
{
    if (step->kind != CORNU_STEP_KERNEL ||
        !cornu__is_joined(plan->program, &plan->program->ops[step->op], k, to))
        return false;
    CornuPart whole = memory_of(plan, to->whole);
    *to = (CornuPart){ whole.whole, whole.offset + to->offset, whole.stride + to->stride };
    return true;
}

bool cornu__plan_moves(const CornuPlan *plan, const CornuStep *step, int k)
{
    const CornuValue value = plan->operands[step->in_first + k];
    const CornuPlace from = plan->places[value];
    const CornuPlace whole = plan->places[plan->operands[step->out_first]];
    CornuPart        to;
    if (step->kind != CORNU_STEP_KERNEL ||
        !cornu__is_joined(plan->program, &plan->program->ops[step->op], k, &to))
        return false;
    return from.region != whole.region || from.number != whole.number ||
           from.offset != whole.offset + to.offset || from.stride != whole.stride + to.stride;
}

/* ---- Order ---- */

static CornuStatus add_edge(Planner *p, int from, int to)
{
    CORNU__TRY(
        cornu__reserve(&p->edges, &p->edge_space, p->edge_count, 1, sizeof *p->edges));
    p->edges[p->edge_count] = (Edge){ to, p->head[from] };
    p->head[from] = p->edge_count++;
    return CORNU_OK;
}

/* The step is new: room for it, and edges from the makers of what it reads. */
static CornuStatus connect(Planner *p, int step)
{
    CornuPlan *plan = p->plan;
    CORNU__TRY(cornu__reserve(&p->head, &p->head_space, step, 1, sizeof *p->head));
    CORNU__TRY(cornu__reserve(&p->seen, &p->seen_space, step, 1, sizeof *p->seen));
    CORNU__TRY(cornu__reserve(&p->writer, &p->writer_space, 0, plan->value_count,
                              sizeof *p->writer));
    p->head[step] = -1;
    const CornuStep *s = &plan->steps[step];
    for (int i = 0; i < s->out_count; i++)
        p->writer[plan->operands[s->out_first + i]] = step;
    return CORNU_OK;
}

static CornuStatus connect_operands(Planner *p, int step)
{
    const CornuStep *s = &p->plan->steps[step];
    for (int i = 0; i < s->in_count; i++) {
        int maker = p->writer[root_of(p->plan, p->plan->operands[s->in_first + i])];
        if (maker >= 0 && maker != step) CORNU__TRY(add_edge(p, maker, step));
    }
    return CORNU_OK;
}

static bool search(Planner *p, int from, int to)
{
    if (from == to) return true;
    p->seen[from] = true;
    for (int e = p->head[from]; e >= 0; e = p->edges[e].next)
        if (!p->seen[p->edges[e].to] && search(p, p->edges[e].to, to)) return true;
    return false;
}

/* Whether step `to` has to wait for step `from`. */
static bool precedes(Planner *p, int from, int to)
{
    memset(p->seen, 0, (size_t)p->plan->step_count * sizeof *p->seen);
    return search(p, from, to);
}

/* ---- Outputs ---- */

/* Which input's memory the step reads as operand i, and which part; -1: none. */
static int input_read(const CornuPlan *plan, const CornuStep *step, int i, CornuPart *part)
{
    *part = memory_of(plan, plan->operands[step->in_first + i]);
    if (part->whole >= plan->program->value_count) return -1;
    const CornuProgramValue *value = &plan->program->values[part->whole];
    return value->op < 0 ? value->index : -1;
}

/* Whether two parts of one memory have bytes in common, on whatever shards. */
static bool overlap(const CornuPlan *plan, CornuPart a, size_t a_bytes, CornuPart b, size_t b_bytes)
{
    const size_t last = (size_t)cornu__plan_shards(plan) - 1;
    return a.offset < b.offset + last * b.stride + b_bytes &&
           b.offset < a.offset + last * a.stride + a_bytes;
}

/* What a step writes into an input's memory. */
typedef struct {
    int       input, step, out;
    CornuPart part;
    size_t    bytes;
} Writing;

/* Whether the step reads as operand i some of what is written. */
static bool reads(const CornuPlan *plan, const CornuStep *step, int i, const Writing *w,
                  CornuPart *part)
{
    return input_read(plan, step, i, part) == w->input &&
           overlap(plan, *part, cornu_type_bytes(step->types[i]), w->part, w->bytes);
}

static bool reads_any(const CornuPlan *plan, const CornuStep *step, const Writing *w)
{
    CornuPart part;
    for (int i = 0; i < step->in_count; i++)
        if (reads(plan, step, i, w, &part)) return true;
    return false;
}

/* Whether the step may write there as far as it goes itself. */
static bool own_reads_allow(const CornuPlan *plan, const Writing *w)
{
    const CornuStep *step = &plan->steps[w->step];
    CornuPart        part, joined;
    for (int i = 0; i < step->in_count; i++) {
        if (!reads(plan, step, i, w, &part)) continue;
        part.whole = w->part.whole;   /* the input's memory is going to be this value's */
        const bool stays = joins(plan, step, i, &joined) && same_place(part, joined);
        if (!stays && (step->kind != CORNU_STEP_GROUP || !same_place(part, w->part) ||
                       !cornu__group_in_place(step->group, i, w->out)))
            return false;
    }
    return true;
}

/* Makes the step wait for every other reader of what it writes; false if one waits for the
 * step. */
static CornuStatus wait_for_readers(Planner *p, const Writing *w, bool *possible)
{
    const CornuPlan *plan = p->plan;
    *possible = true;
    for (int i = 0; i < plan->step_count && *possible; i++)
        if (i != w->step && reads_any(plan, &plan->steps[i], w))
            *possible = !precedes(p, w->step, i);
    for (int i = 0; i < plan->step_count && *possible; i++)
        if (i != w->step && reads_any(plan, &plan->steps[i], w))
            CORNU__TRY(add_edge(p, i, w->step));
    return CORNU_OK;
}

CornuStatus cornu__plan_value(CornuPlan *plan, CornuType type, bool varies, CornuPlace place,
                              CornuValue *value)
{
    CORNU__TRY(cornu__reserve(&plan->varies, &plan->varies_space, plan->value_count, 1,
                              sizeof *plan->varies));
    CORNU__TRY(cornu__reserve(&plan->types, &plan->value_space, plan->value_count, 1,
                              sizeof *plan->types));
    CORNU__TRY(cornu__reserve(&plan->places, &plan->place_space, plan->value_count, 1,
                              sizeof *plan->places));
    plan->types[plan->value_count] = type;
    plan->varies[plan->value_count] = varies;
    plan->places[plan->value_count] = place;
    *value = plan->value_count++;
    return CORNU_OK;
}

/* A step that copies `from` to `place`; `made` is the value that then is there. */
static CornuStatus add_copy(Planner *p, CornuValue from, CornuPlace place,
                            CornuValue *made)
{
    CornuPlan *plan = p->plan;
    place.stride = plan->varies[from] ? cornu_type_bytes(plan->types[from]) : 0;
    CORNU__TRY(cornu__plan_value(plan, plan->types[from], plan->varies[from], place, made));
    CornuStep *step = cornu__plan_step(plan, CORNU_STEP_COPY, &from, 1, made, 1);
    if (!step) return CORNU_ERR_MEMORY;
    /* Behind all that is wanted earlier; a copy of an input may move up to let a writer
     * pass. */
    step->position = plan->program->op_count;
    CORNU__TRY(connect(p, plan->step_count - 1));
    return connect_operands(p, plan->step_count - 1);
}

/* The step that makes the value's memory if that is just this value's, not yet placed; -1
 * otherwise. */
static int placeable(const Planner *p, CornuValue value)
{
    const CornuPlan *plan = p->plan;
    const CornuPart  part = memory_of(plan, value);
    const int        step = p->writer[part.whole];
    if (part.whole != root_of(plan, value) || part.offset != 0 || part.stride != 0 || step < 0 ||
        plan->places[part.whole].region != CORNU_NOWHERE ||
        cornu_type_bytes(plan->types[part.whole]) != cornu_type_bytes(plan->types[value]))
        return -1;
    return step;
}

/* Makes operands as parts of what ops put them together to, each of one only. */
static void join_operands(Planner *p)
{
    CornuPlan *plan = p->plan;
    for (int i = 0; i < plan->step_count; i++) {
        const CornuStep *step = &plan->steps[i];
        for (int k = 0; k < step->in_count && step->kind == CORNU_STEP_KERNEL; k++) {
            const CornuValue value = plan->operands[step->in_first + k];
            CornuPart        part;
            if (!cornu__is_joined(plan->program, &plan->program->ops[step->op], k, &part) ||
                placeable(p, value) < 0)
                continue;
            const CornuValue root = root_of(plan, value);
            if (part.stride > 0 || plan->varies[root] == plan->varies[part.whole])
                plan->joined[root] = part;
        }
    }
}

/* Between the parts of two shards in a buffer of the value. */
static size_t stride_of(const CornuPlan *plan, CornuValue value)
{
    return plan->varies[value] ? cornu_type_bytes(plan->types[value]) : 0;
}

/* Output into a buffer of its own. */
static CornuStatus place_output(Planner *p, int number)
{
    CornuValue value = p->plan->program->outputs[number].value, made;
    CornuPlace place = { .region = CORNU_OUTPUT, .number = number,
                         .stride = stride_of(p->plan, value) };
    if (placeable(p, value) < 0) return add_copy(p, value, place, &made);
    p->plan->places[root_of(p->plan, value)] = place;
    return CORNU_OK;
}

/* Whether all steps that make `root`, or parts of it, can write into the memory of an input. */
static CornuStatus fits_input(Planner *p, CornuValue root, int input, bool *possible)
{
    const CornuPlan *plan = p->plan;
    *possible = true;
    for (int i = 0; i < plan->step_count && *possible; i++)
        for (int k = 0; k < plan->steps[i].out_count && *possible; k++) {
            const CornuValue value = plan->operands[plan->steps[i].out_first + k];
            const Writing w = { input, i, k, memory_of(plan, value),
                                cornu_type_bytes(plan->types[value]) };
            if (w.part.whole != root) continue;
            *possible = own_reads_allow(plan, &w);
            if (*possible) CORNU__TRY(wait_for_readers(p, &w, possible));
        }
    return CORNU_OK;
}

/* Output into the buffer of input `input`. */
static CornuStatus place_alias(Planner *p, CornuValue value, int input)
{
    CornuPlan *plan = p->plan;
    CornuPlace place = { .region = CORNU_INPUT, .number = input,
                         .stride = stride_of(plan, value) };
    CornuValue root = root_of(plan, value), made;
    bool       possible = false;
    if (root == plan->program->inputs[input]) return CORNU_OK; /* it stays as it is */
    if (placeable(p, value) >= 0) CORNU__TRY(fits_input(p, root, input, &possible));
    if (possible) {
        plan->places[root] = place;
        return CORNU_OK;
    }
    CORNU__TRY(add_copy(p, value, place, &made));
    const Writing w = { input, plan->step_count - 1, 0, { .whole = made },
                        cornu_type_bytes(plan->types[made]) };
    CORNU__TRY(wait_for_readers(p, &w, &possible));
    return possible ? CORNU_OK
                    : cornu__fail(CORNU_ERR_UNSUPPORTED,
                                  "no order of steps fits input %d", input);
}

static bool crosses(const CornuPlan *plan, const CornuStep *step)
{
    return step->op >= 0 && cornu__crosses(plan->program->ops[step->op].id);
}

/* With several shards, what runs next to a step should be of its kind: fewer changes from the
 * shards' threads to the work they share are fewer waits. What every shard makes of all shards'
 * values comes last, so that it waits for the most. */
typedef enum { ON_EVERY_SHARD, BETWEEN_SHARDS, ONCE, ACROSS_SHARDS } Kind;

static Kind kind_of(const CornuPlan *plan, const CornuStep *step)
{
    if (cornu__plan_shards(plan) == 1) return ONCE;
    if (crosses(plan, step)) return step->varies ? ACROSS_SHARDS : BETWEEN_SHARDS;
    return step->varies ? ON_EVERY_SHARD : ONCE;
}

/* Whether step a should run before b, when the last one was of kind `last`. */
static bool comes_before(const CornuPlan *plan, const CornuStep *a, const CornuStep *b, Kind last)
{
    Kind of_a = kind_of(plan, a), of_b = kind_of(plan, b);
    if (of_a == of_b) return a->position < b->position;
    return of_a == last || (of_b != last && of_a < of_b);
}

/* Steps in an order that respects all edges, the one wanted first that can run. */
static CornuStatus order_steps(Planner *p)
{
    CornuPlan *plan = p->plan;
    int        count = plan->step_count;
    int       *waits = cornu__allocate((size_t)count, sizeof *waits);
    CornuStep *ordered = cornu__allocate((size_t)count, sizeof *ordered);
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

/* Whether other shards may be at step i, of the same segment, when what step j does depends on it:
 * j reads all shards' results of i, or writes a shard's part of an input that i reads on all. */
static bool must_wait(const CornuPlan *plan, const CornuStep *i, const CornuStep *j)
{
    CornuPart read;
    for (int k = 0; k < i->out_count; k++)
        for (int n = 0; n < j->in_count && crosses(plan, j); n++)
            if (memory_of(plan, plan->operands[i->out_first + k]).whole ==
                memory_of(plan, plan->operands[j->in_first + n]).whole)
                return true;
    for (int k = 0; k < j->out_count; k++) {
        const CornuValue memory = memory_of(plan, plan->operands[j->out_first + k]).whole;
        const CornuPlace place = plan->places[memory];
        for (int n = 0; n < i->in_count && place.region == CORNU_INPUT; n++)
            if (input_read(plan, i, n, &read) == place.number &&
                (crosses(plan, i) || (!plan->varies[memory] && read.stride == 0)))
                return true;
    }
    return false;
}

static bool begins_segment(const CornuPlan *plan, int i)
{
    return i == 0 || plan->steps[i].waits || !plan->steps[i].varies || !plan->steps[i - 1].varies;
}

static void find_waits(CornuPlan *plan)
{
    for (int j = 0, first = 0; j < plan->step_count; j++) {
        if (begins_segment(plan, j)) first = j;
        for (int i = first; i < j && !plan->steps[j].waits; i++)
            plan->steps[j].waits = must_wait(plan, &plan->steps[i], &plan->steps[j]);
        if (plan->steps[j].waits) first = j;
    }
}

/* The first step of the segment that step i belongs to, and the first one behind it. */
static int segment_first(const CornuPlan *plan, int i)
{
    while (!begins_segment(plan, i)) i--;
    return i;
}

static int segment_end(const CornuPlan *plan, int i)
{
    do i++;
    while (i < plan->step_count && !begins_segment(plan, i));
    return i;
}

/* ---- Arena ---- */

/* A piece of the arena: taken from the step that makes its value to the last that reads
 * it, or the value that a group then makes in its place. What shards read of each other is there
 * until all are done with the segment, what they write into each other's from its beginning. */
typedef struct {
    int    first, last;
    size_t bytes, offset;
    bool   varies;        /* in every shard's part, else in the shared one */
} Piece;

typedef struct {
    CornuPlan  *plan;
    CornuRegion region;    /* CORNU_ARENA or CORNU_PACKED */
    CornuSpace *space;     /* that region's */
    int        *last;      /* the last step that reads a value, -1: none */
    int        *piece_of;  /* of a value, -1: none */
    Piece      *pieces;
    Piece     **order;     /* as they are placed */
    int         count;
} Arena;

static size_t padded_bytes(CornuType type)
{
    return (cornu_type_bytes(type) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The piece of an operand that step i is the last to need and may overwrite with its
 * result `out`, element by element; -1: none. */
static int piece_to_take_over(const Arena *arena, int i, int out)
{
    const CornuPlan *plan = arena->plan;
    const CornuStep *step = &plan->steps[i];
    if (step->kind != CORNU_STEP_GROUP) return -1;
    size_t bytes = cornu_type_bytes(step->types[step->in_count + out]);
    for (int k = 0; k < step->in_count; k++) {
        const CornuPart  part = memory_of(plan, plan->operands[step->in_first + k]);
        const CornuValue root = part.whole;
        int              piece = arena->piece_of[root];
        if (piece < 0 || arena->last[root] != i || arena->pieces[piece].last != i ||
            part.offset != 0 || plan->varies[root] != step->varies ||
            cornu_type_bytes(plan->types[root]) != bytes ||
            cornu_dtype_size(plan->types[root].dtype) !=
                cornu_dtype_size(step->types[step->in_count + out].dtype))
            continue;
        if (cornu__group_in_place(step->group, k, out)) return piece;
    }
    return -1;
}

static void find_last_readers(Arena *arena)
{
    const CornuPlan *plan = arena->plan;
    for (int i = 0; i < plan->value_count; i++) arena->last[i] = -1;
    for (int i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++) {
            const CornuValue value = plan->operands[plan->steps[i].in_first + k];
            int *last = &arena->last[memory_of(plan, value).whole];
            int  done = crosses(plan, &plan->steps[i]) ? segment_end(plan, i) : i;
            if (done > *last) *last = done;
        }
}

/* The piece for a value that step i writes as its output `out`. */
static void find_piece(Arena *arena, int i, int out)
{
    CornuPlan       *plan = arena->plan;
    const CornuValue value = plan->operands[plan->steps[i].out_first + out];
    const CornuValue root = memory_of(plan, value).whole;
    const CornuRegion before = arena->region == CORNU_PACKED ? CORNU_PACKED : CORNU_NOWHERE;
    if (arena->piece_of[root] >= 0 || plan->places[root].region != before) return;
    const bool shared = plan->steps[i].varies && !plan->varies[root];
    int        last = arena->last[root] < i ? i : arena->last[root];
    int        piece = root == value ? piece_to_take_over(arena, i, out) : -1;
    if (piece < 0) {
        piece = arena->count++;
        arena->order[piece] = &arena->pieces[piece];
        arena->pieces[piece] =
            (Piece){ shared ? segment_first(plan, i) : i, last, padded_bytes(plan->types[root]), 0,
                     plan->varies[root] };
    }
    arena->pieces[piece].last = last;
    arena->piece_of[root] = piece;
    plan->places[root].region = arena->region;
}

static void find_pieces(Arena *arena)
{
    const CornuPlan *plan = arena->plan;
    for (int i = 0; i < plan->value_count; i++) arena->piece_of[i] = -1;
    find_last_readers(arena);
    for (int i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].out_count; k++) find_piece(arena, i, k);
}

static int larger_first(const void *a, const void *b)
{
    const Piece *x = *(Piece *const *)a, *y = *(Piece *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x < y ? -1 : x > y;
}

/* The lowest gap among those placed before that are taken at the same time. */
static size_t find_gap(Piece *const *order, int placed, const Piece *piece)
{
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < placed; i++) {
            const Piece *other = order[i];
            bool together = other->varies == piece->varies && other->first <= piece->last &&
                            piece->first <= other->last;
            if (together && offset < other->offset + other->bytes &&
                other->offset < offset + piece->bytes) {
                offset = other->offset + other->bytes;
                moved = true;
            }
        }
    }
    return offset;
}

static void place_pieces(Arena *arena)
{
    CornuPlan *plan = arena->plan;
    qsort(arena->order, (size_t)arena->count, sizeof *arena->order, larger_first);
    for (int i = 0; i < arena->count; i++) {
        Piece *piece = arena->order[i];
        piece->offset = find_gap(arena->order, i, piece);
        size_t *end = piece->varies ? &arena->space->shard : &arena->space->shared;
        if (piece->offset + piece->bytes > *end) *end = piece->offset + piece->bytes;
    }
    for (int i = 0; i < plan->value_count; i++) {
        if (arena->piece_of[i] < 0) continue;
        const Piece *piece = &arena->pieces[arena->piece_of[i]];
        plan->places[i].offset = piece->offset + (piece->varies ? arena->space->shared : 0);
        plan->places[i].stride = piece->varies ? arena->space->shard : 0;
    }
}

/* Of the pieces taken at the step when most bytes are, the largest ones' values. */
static void find_largest(const Arena *arena)
{
    CornuPlan *plan = arena->plan;
    size_t     most = 0;
    int        step = -1;
    for (int i = 0; i < arena->count; i++) {   /* it is a step that takes one */
        const int at = arena->order[i]->first;
        size_t    bytes = 0;
        for (int k = 0; k < arena->count; k++)
            if (arena->pieces[k].first <= at && at <= arena->pieces[k].last)
                bytes += arena->pieces[k].bytes;
        if (bytes > most) {
            most = bytes;
            step = at;
        }
    }
    for (int i = 0; i < arena->count && plan->largest_count < CORNU_LARGEST; i++) {
        const Piece *piece = arena->order[i];   /* larger ones first */
        if (piece->first > step || step > piece->last) continue;
        CornuValue value = 0;
        while (arena->piece_of[value] != (int)(piece - arena->pieces)) value++;
        plan->largest[plan->largest_count++] = value;
    }
}

static CornuStatus place_in_arena(CornuPlan *plan, CornuRegion region, CornuSpace *space)
{
    size_t count = (size_t)plan->value_count;
    Arena  arena = {
        .plan = plan, .region = region, .space = space,
        .last = cornu__allocate(count, sizeof *arena.last),
        .piece_of = cornu__allocate(count, sizeof *arena.piece_of),
        .pieces = cornu__allocate(count, sizeof *arena.pieces),
        .order = cornu__allocate(count, sizeof *arena.order),
    };
    bool complete = arena.last && arena.piece_of && arena.pieces && arena.order;
    if (complete) {
        find_pieces(&arena);
        place_pieces(&arena);
        if (region == CORNU_ARENA) find_largest(&arena);
    }
    cornu__release(arena.last);
    cornu__release(arena.piece_of);
    cornu__release(arena.pieces);
    cornu__release(arena.order);
    return complete ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* What is part of another value's memory is there. */
static void place_parts(CornuPlan *plan)
{
    for (int i = 0; i < plan->program->value_count; i++) {
        const CornuPart part = memory_of(plan, i);
        if (part.whole == i) continue;
        plan->places[i] = plan->places[part.whole];
        plan->places[i].offset += part.offset;
        plan->places[i].stride += part.stride;
    }
}

static CornuStatus place_outputs(Planner *p)
{
    CornuProgram *program = p->plan->program;
    /* Fetched values first: their copies are readers that a variable's writer must let
     * pass. */
    for (int i = 0; i < program->output_count; i++) {
        CornuValue root = root_of(p->plan, program->outputs[i].value);
        bool       variable = false;   /* it is also written into an input */
        for (int k = 0; k < program->output_count; k++)
            variable = variable || (program->outputs[k].alias >= 0 &&
                                    root_of(p->plan, program->outputs[k].value) == root);
        CornuValue made;
        CornuPlace place = { .region = CORNU_OUTPUT, .number = i };
        /* add_copy fills in the stride. */
        if (program->outputs[i].alias >= 0) continue;
        CORNU__TRY(variable ? add_copy(p, program->outputs[i].value, place, &made)
                            : place_output(p, i));
    }
    /* One input into another: set aside first, for the two may trade places. */
    CornuValue *values = cornu__allocate((size_t)program->output_count, sizeof *values);
    CornuStatus status = values ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; status == CORNU_OK && i < program->output_count; i++) {
        const CornuProgramOutput *output = &program->outputs[i];
        CornuValue                root = root_of(p->plan, output->value);
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

CornuStatus cornu__plan_memory(CornuPlan *plan)
{
    Planner     p = { .plan = plan };
    CornuStatus status = cornu__reserve(
        &p.writer, &p.writer_space, 0,
        plan->value_count + 2 * plan->program->output_count, sizeof *p.writer);
    for (int i = 0; status == CORNU_OK && i < p.writer_space; i++) p.writer[i] = -1;
    for (int i = 0; status == CORNU_OK && i < plan->program->input_count; i++)
        plan->places[plan->program->inputs[i]] =
            (CornuPlace){ .region = CORNU_INPUT, .number = i,
                          .stride = stride_of(plan, plan->program->inputs[i]) };
    for (int i = 0; status == CORNU_OK && i < plan->step_count; i++)
        status = connect(&p, i);
    for (int i = 0, count = plan->step_count; status == CORNU_OK && i < count; i++)
        status = connect_operands(&p, i);
    if (status == CORNU_OK) join_operands(&p);
    if (status == CORNU_OK) status = place_outputs(&p);
    if (status == CORNU_OK) status = order_steps(&p);
    if (status == CORNU_OK) find_waits(plan);
    if (status == CORNU_OK) status = place_in_arena(plan, CORNU_ARENA, &plan->arena);
    if (status == CORNU_OK) status = place_in_arena(plan, CORNU_PACKED, &plan->packed);
    if (status == CORNU_OK) place_parts(plan);
    cornu__release(p.writer);
    cornu__release(p.head);
    cornu__release(p.edges);
    cornu__release(p.seen);
    return status;
}

/* ---- Printing and freeing ---- */

const char *cornu__plan_kind_name(const CornuPlan *plan, const CornuStep *step)
{
    static const char *const names[] = { "kernel", "pack", "reference", "group", "copy", "scan" };
    return crosses(plan, step) ? "collective" : names[step->kind];
}

static void print_place(const CornuPlan *plan, CornuValue value, FILE *to)
{
    static const char *const regions[] = { "nowhere", "arena", "packed", "input", "output" };
    CornuPlace               place = plan->places[value];
    CornuText                text;
    fprintf(to, " %%%d %s %s", (int)value, cornu_type_print(&text, plan->types[value]),
            regions[place.region]);
    if (place.region == CORNU_ARENA || place.region == CORNU_PACKED)
        fprintf(to, "+%zu", place.offset);
    else fprintf(to, " %d%s", place.number, place.offset ? " (part)" : "");
}

void cornu__plan_print(const CornuPlan *plan, FILE *to)
{
    fprintf(to, "plan: %d steps, %zu bytes of values, %zu bytes of scratch memory\n",
            plan->step_count, plan->arena.shared + plan->arena.shard, plan->scratch_bytes);
    if (cornu__plan_shards(plan) > 1)
        fprintf(to, "%d shards; of the values %zu bytes on each\n", cornu__plan_shards(plan),
                plan->arena.shard);
    for (int i = 0; i < plan->step_count; i++) {
        const CornuStep *step = &plan->steps[i];
        fprintf(to, "%4d%s %s%s", i, step->varies ? " *" : "", step->waits ? "waits, " : "",
                cornu__plan_kind_name(plan, step));
        if (step->op >= 0)
            fprintf(to, " %s", cornu_op_name(plan->program->ops[step->op].id));
        if (step->pool >= 0)
            fprintf(to, " with %s", cornu_op_name(plan->program->ops[step->pool].id));
        if (step->group) cornu__group_print(step->group, to);
        if (step->has_bias) fprintf(to, " + bias");
        if (step->epilogue.activation != CORNU_OP_COUNT)
            fprintf(to, " + %s", cornu_op_name(step->epilogue.activation));
        const CornuValue *operands = plan->operands + step->in_first;
        for (int k = 0; k < step->in_count; k++) {
            fprintf(to, "%s", k ? "," : " :");
            print_place(plan, operands[k], to);
        }
        fprintf(to, " ->");
        for (int k = 0; k < step->out_count; k++) {
            fprintf(to, "%s", k ? "," : "");
            print_place(plan, plan->operands[step->out_first + k], to);
        }
        fprintf(to, "\n");
        if (step->nested) cornu__nested_print(step->nested, to);
    }
}

void cornu__plan_free(CornuPlan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        cornu__group_free(plan->steps[i].group);
        cornu__nested_free(plan->steps[i].nested);
        cornu__release(plan->steps[i].ops);
        cornu__release(plan->steps[i].types);
    }
    cornu__release(plan->steps);
    cornu__release(plan->operands);
    cornu__release(plan->types);
    cornu__release(plan->places);
    cornu__release(plan->varies);
    cornu__release(plan->joined);
    cornu_program_free(plan->program);
}
