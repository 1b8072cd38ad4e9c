/*
 * Places in the arena for values that have no other place, and in a second arena for packed
 * operands, and a third for what is fixed. Values whose lifetimes do not overlap may share memory,
 * but for the third, which lives from run to run.
 */
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

enum { ALIGNMENT = 64 };

/* A piece of the arena. It is live from the step that makes its value to the last that reads it, or
 * that reads the value that a group makes in its place. What shards read of each other is live
 * until the end of the segment, what they write into a shared value from its start. */
typedef struct {
    int    first, last;
    size_t bytes, offset;
    enum { SHARED, OF_SHARD, OF_WORKER } part;   /* of the region, see CornuSpace */
} Piece;

typedef struct {
    CornuPlan  *plan;
    CornuRegion region;    /* CORNU_ARENA, CORNU_PACKED or CORNU_FIXED */
    CornuSpace *space;     /* that region's */
    int        *last;      /* the last step that reads a value, -1: none */
    int        *piece_of;  /* of a value, -1: none */
    Piece      *pieces;
    Piece     **order;     /* in the order of placement */
    Piece     **placed[3]; /* by part, in the order of their offsets */
    int         placed_count[3];
    int        *segment, *segment_end;   /* by step: plan_order.c */
    size_t     *starting, *ending;   /* by step: bytes that are live from there, and up to there */
    int         count;
    bool        reuses;    /* memory of dead values is used again */
} Arena;

static size_t padded_bytes(CornuType type)
{
    return (cornu_type_bytes(type) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Whether the step reads of this value only the whole, element by element, so that its result `out`
 * may take over the memory: a part of it would be read again after it is overwritten. */
static bool read_in_place(const CornuPlan *plan, const CornuPlanStep *step, CornuValue root,
                          int out)
{
    for (int k = 0; k < step->in_count; k++) {
        const CornuPart part = cornu__plan_part(plan, plan->operands[step->in_first + k]);
        if (part.whole == root &&
            (part.offset != 0 || !cornu__group_in_place(step->group, k, out)))
            return false;
    }
    return true;
}

/* The piece of an operand that step i is the last to read and may overwrite with its result `out`,
 * element by element; -1: none. */
static int piece_to_take_over(const Arena *arena, int i, int out)
{
    const CornuPlan *plan = arena->plan;
    const CornuPlanStep *step = &plan->steps[i];
    if (step->kind != CORNU_STEP_GROUP || !arena->reuses) return -1;
    size_t bytes = cornu_type_bytes(step->types[step->in_count + out]);
    for (int k = 0; k < step->in_count; k++) {
        const CornuPart  part = cornu__plan_part(plan, plan->operands[step->in_first + k]);
        const CornuValue root = part.whole;
        int              piece = arena->piece_of[root];
        if (piece < 0 || arena->last[root] != i || arena->pieces[piece].last != i ||
            plan->varies[root] != step->varies ||
            cornu_type_bytes(plan->types[root]) != bytes ||
            cornu_dtype_size(plan->types[root].dtype) !=
                cornu_dtype_size(step->types[step->in_count + out].dtype))
            continue;
        if (read_in_place(plan, step, root, out)) return piece;
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
            int *last = &arena->last[cornu__plan_part(plan, value).whole];
            int  done = cornu__plan_crosses(plan, &plan->steps[i])
                            ? arena->segment_end[i] : i;
            if (done > *last) *last = done;
        }
}

/* Whether the value's place is in this region, and still to be found. */
static bool is_due(const Arena *arena, CornuValue root)
{
    const CornuPlan  *plan = arena->plan;
    const CornuRegion before = plan->places[root].region;
    if (arena->region == CORNU_FIXED)
        return plan->is_fixed[root] && (before == CORNU_NOWHERE || before == CORNU_PACKED);
    return before == (arena->region == CORNU_PACKED ? CORNU_PACKED : CORNU_NOWHERE);
}

/* The piece for a value that step i writes as its output `out`. */
static void find_piece(Arena *arena, int i, int out)
{
    CornuPlan       *plan = arena->plan;
    const CornuValue value = plan->operands[plan->steps[i].out_first + out];
    const CornuValue root = cornu__plan_part(plan, value).whole;
    if (arena->piece_of[root] >= 0 || !is_due(arena, root)) return;
    const bool shared = plan->steps[i].varies && !plan->varies[root];
    int        last = arena->last[root] < i ? i : arena->last[root];
    int        piece = root == value ? piece_to_take_over(arena, i, out) : -1;
    if (piece < 0) {
        piece = arena->count++;
        arena->order[piece] = &arena->pieces[piece];
        arena->pieces[piece] =
            (Piece){ shared ? arena->segment[i] : i, last,
                     padded_bytes(plan->types[root]), 0,
                     plan->varies[root] ? OF_SHARD : SHARED };
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
    for (int i = 0; i < arena->count; i++) {
        Piece *piece = &arena->pieces[i];
        if (piece->part == OF_SHARD && piece->last < arena->segment_end[piece->first] &&
            arena->region != CORNU_FIXED)
            piece->part = OF_WORKER;
    }
}

static int larger_first(const void *a, const void *b)
{
    const Piece *x = *(Piece *const *)a, *y = *(Piece *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x < y ? -1 : x > y;
}

/* Whether the two need memory of their own. */
static bool are_live_together(const Arena *arena, const Piece *a, const Piece *b)
{
    return !arena->reuses || (a->first <= b->last && b->first <= a->last);
}

/* Places the piece in the lowest gap between those placed so far that are live at the same time. */
static void place_piece(Arena *arena, Piece *piece)
{
    Piece **placed = arena->placed[piece->part];
    int    *count = &arena->placed_count[piece->part], at = 0;
    for (; at < *count && placed[at]->offset < piece->offset + piece->bytes; at++) {
        const size_t end = placed[at]->offset + placed[at]->bytes;
        if (end > piece->offset && are_live_together(arena, placed[at], piece)) piece->offset = end;
    }
    memmove(placed + at + 1, placed + at, (size_t)(*count - at) * sizeof *placed);
    placed[at] = piece;
    while (at > 0 && placed[at - 1]->offset > piece->offset) {
        placed[at] = placed[at - 1];
        placed[--at] = piece;
    }
    ++*count;
}

static void place_pieces(Arena *arena)
{
    CornuPlan *plan = arena->plan;
    qsort(arena->order, (size_t)arena->count, sizeof *arena->order, larger_first);
    for (int i = 0; i < arena->count; i++) {
        Piece *piece = arena->order[i];
        place_piece(arena, piece);
        size_t *const ends[] = { &arena->space->shared, &arena->space->shard,
                                 &arena->space->worker };
        size_t *end = ends[piece->part];
        if (piece->offset + piece->bytes > *end) *end = piece->offset + piece->bytes;
    }
    const CornuSpace space = *arena->space;
    for (int i = 0; i < plan->value_count; i++) {
        if (arena->piece_of[i] < 0) continue;
        const Piece *piece = &arena->pieces[arena->piece_of[i]];
        CornuPlace  *place = &plan->places[i];
        place->offset = piece->offset;
        place->stride = piece->part == OF_SHARD ? space.shard : 0;
        place->worker_stride = piece->part == OF_WORKER ? space.worker : 0;
        if (piece->part == OF_SHARD)
            place->offset += space.shared;
        else if (piece->part == OF_WORKER)
            place->offset += space.shared + (size_t)cornu__plan_own(plan).count * space.shard;
    }
}

/* The values of the largest pieces at the step when most bytes are live. */
static void find_largest(const Arena *arena)
{
    CornuPlan *plan = arena->plan;
    size_t     most = 0, live = 0;
    int        step = -1;
    for (int i = 0; i < arena->count; i++) {
        arena->starting[arena->pieces[i].first] += arena->pieces[i].bytes;
        arena->ending[arena->pieces[i].last] += arena->pieces[i].bytes;
    }
    for (int i = 0; i < plan->step_count; i++) {   /* from now on starting[] is what is live */
        live = arena->starting[i] += live;
        live -= arena->ending[i];
    }
    for (int i = 0; i < arena->count; i++) {   /* the peak is where a piece begins */
        const int at = arena->order[i]->first;
        if (arena->starting[at] > most) {
            most = arena->starting[at];
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

static void close_arena(Arena *arena)
{
    cornu__release(arena->last);
    cornu__release(arena->piece_of);
    cornu__release(arena->pieces);
    cornu__release(arena->order);
    for (int i = 0; i < 3; i++) cornu__release(arena->placed[i]);
    cornu__release(arena->segment);
    cornu__release(arena->segment_end);
    cornu__release(arena->starting);
    cornu__release(arena->ending);
}

/* Close it also after a failure. */
static CornuStatus open_arena(Arena *arena)
{
    const size_t values = (size_t)arena->plan->value_count, steps = (size_t)arena->plan->step_count;
    arena->last = cornu__allocate(values, sizeof *arena->last);
    arena->piece_of = cornu__allocate(values, sizeof *arena->piece_of);
    arena->pieces = cornu__allocate(values, sizeof *arena->pieces);
    arena->order = cornu__allocate(values, sizeof *arena->order);
    bool complete = arena->last && arena->piece_of && arena->pieces && arena->order;
    for (int i = 0; i < 3; i++)
        complete &= (arena->placed[i] = cornu__allocate(values, sizeof *arena->placed[i])) != NULL;
    arena->segment = cornu__allocate(steps, sizeof *arena->segment);
    arena->segment_end = cornu__allocate(steps, sizeof *arena->segment_end);
    arena->starting = cornu__allocate(steps, sizeof *arena->starting);
    arena->ending = cornu__allocate(steps + 1, sizeof *arena->ending);   /* and after the last */
    return complete && arena->segment && arena->segment_end && arena->starting && arena->ending
         ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__plan_arena(CornuPlan *plan, CornuRegion region, CornuSpace *space)
{
    Arena arena = { .plan = plan, .region = region, .space = space,
                    .reuses = region != CORNU_FIXED && cornu__pass_runs(CORNU_PASS_REUSE) };
    const CornuStatus status = open_arena(&arena);
    if (status == CORNU_OK) {
        cornu__plan_find_segments(plan, arena.segment, arena.segment_end);
        find_pieces(&arena);
        place_pieces(&arena);
        if (region == CORNU_ARENA) find_largest(&arena);
    }
    close_arena(&arena);
    return status;
}
