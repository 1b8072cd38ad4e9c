#include "units.h"

#include <stdlib.h>

#include "../../memory_internal.h"
#include "plan/heap.h"

/* ---- Lists of ops ---- */

CornuStatus cornu__units_create(CornuUnits *units, const CornuProgram *program)
{
    const size_t ops = (size_t)program->op_count, operands = (size_t)program->operand_count;
    int **const  by_op[] = { &units->of, &units->next, &units->first, &units->entered,
                             &units->left, &units->rank, &units->stamp, &units->found };
    int **const  by_operand[] = { &units->direct, &units->root, &units->reader, &units->other };
    bool         complete = true;
    *units = (CornuUnits){ .program = program };
    for (size_t i = 0; i < sizeof by_op / sizeof *by_op; i++)
        complete &= (*by_op[i] = cornu__allocate(ops + 2, sizeof(int))) != NULL;
    for (size_t i = 0; i < sizeof by_operand / sizeof *by_operand; i++)
        complete &= (*by_operand[i] = cornu__allocate(operands, sizeof(int))) != NULL;
    units->moved = cornu__allocate(ops, sizeof *units->moved);
    if (!complete || !units->moved) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count; i++) {
        units->of[i] = i;
        units->next[i] = -1;
    }
    return CORNU_OK;
}

void cornu__units_free(CornuUnits *units)
{
    int *const all[] = { units->of, units->next, units->first, units->entered, units->left,
                         units->rank, units->stamp, units->found, units->direct, units->root,
                         units->reader, units->other };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cornu__release(all[i]);
    cornu__release(units->moved);
}

int cornu__unit_size(const CornuUnits *units, int unit)
{
    int size = 0;
    for (int i = unit; i >= 0; i = units->next[i]) size++;
    return size;
}

void cornu__units_append(CornuUnits *units, int unit, int op)
{
    int last = unit;
    while (units->next[last] >= 0) last = units->next[last];
    units->next[last] = op;
    units->of[op] = unit;
}

void cornu__units_leave(CornuUnits *units, int op)
{
    const int unit = units->of[op], rest = unit == op ? units->next[op] : unit;
    for (int i = unit; i >= 0; i = units->next[i])
        if (units->next[i] == op) units->next[i] = units->next[op];
    for (int i = rest; i >= 0; i = units->next[i]) units->of[i] = rest;
    units->of[op] = op;
    units->next[op] = -1;
}

/* Merges two lists of ops, both ascending. */
void cornu__units_merge(CornuUnits *units, int a, int b)
{
    int first = a < b ? a : b, *link = &first;
    while (a >= 0 || b >= 0) {
        int      *least = b < 0 || (a >= 0 && a < b) ? &a : &b;
        const int op = *least;
        *least = units->next[op];
        units->of[op] = first;
        *link = op;
        link = &units->next[op];
    }
    *link = -1;
}

/* ---- What ops depend on ---- */

static void find_roots(CornuUnits *units, const bool *is_seen_through)
{
    const CornuProgram *program = units->program;
    for (int i = 0; i < program->op_count; i++) units->first[i] = -1;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        for (int k = op->in_first; k < op->in_first + op->in_count; k++) {
            int root = program->values[program->operands[k]].op;
            if (root >= 0 && is_seen_through[root])
                root = program->ops[root].in_count ? units->root[program->ops[root].in_first] : -1;
            units->root[k] = root;
            units->reader[k] = i;
            if (root < 0 || is_seen_through[i]) continue;
            units->other[k] = units->first[root];
            units->first[root] = k;
        }
    }
}

/* The operands of op i are these of the program's, up to the end. */
static int operands_of(const CornuUnits *units, int i) { return units->program->ops[i].in_first; }

static int operands_end(const CornuUnits *units, int i)
{
    return units->program->ops[i].in_first + units->program->ops[i].in_count;
}

/* The parent of an op in the tree is what it depends on that was recorded last: so the path to the
 * root follows the layers back, one after the other. */
static void plant_tree(CornuUnits *units)
{
    const int count = units->program->op_count;
    int      *parent = units->found, free_number = 0;
    for (int i = 0; i < count; i++) {
        parent[i] = -1;
        units->left[i] = 1;   /* its number of descendants, first */
        for (int k = operands_of(units, i); k < operands_end(units, i); k++)
            if (units->root[k] > parent[i]) parent[i] = units->root[k];
    }
    for (int i = count - 1; i >= 0; i--)
        if (parent[i] >= 0) units->left[parent[i]] += units->left[i];
    /* Descendants have the numbers after their ancestor's; rank[] is where the next child's are. */
    for (int i = 0; i < count; i++) {
        const int size = units->left[i];
        int      *at = parent[i] >= 0 ? &units->rank[parent[i]] : &free_number;
        units->entered[i] = *at;
        units->left[i] = *at += size;
        units->rank[i] = units->entered[i] + 1;
    }
}

/* Kahn's algorithm: of the units whose operands are made, the one that ends first. */
static void rank_units(CornuUnits *units)
{
    const int count = units->program->op_count;
    int      *waits = units->stamp, *last = (int *)(void *)units->moved, next = 0;
    CornuHeap ready = { .items = units->found, .keys = last };
    for (int i = 0; i < count; i++) waits[i] = 0;
    for (int i = 0; i < count; i++) {
        last[units->of[i]] = i;
        for (int k = operands_of(units, i); k < operands_end(units, i); k++)
            if (units->root[k] >= 0 && units->of[units->root[k]] != units->of[i])
                waits[units->of[i]]++;
    }
    for (int i = 0; i < count; i++)
        if (units->of[i] == i && waits[i] == 0) cornu__heap_push(&ready, i);
    while (ready.count > 0) {
        const int unit = cornu__heap_pop(&ready);
        units->rank[unit] = next++;
        for (int i = unit; i >= 0; i = units->next[i])
            for (int k = units->first[i]; k >= 0; k = units->other[k]) {
                const int reader = units->of[units->reader[k]];
                if (reader != unit && --waits[reader] == 0) cornu__heap_push(&ready, reader);
            }
    }
    for (int i = 0; i < count; i++) units->stamp[i] = 0;
}

void cornu__units_order(CornuUnits *units, const bool *is_seen_through)
{
    find_roots(units, is_seen_through);
    plant_tree(units);
    rank_units(units);
}

/* ---- Searches ---- */

static bool is_ancestor(const CornuUnits *units, int op, int of)
{
    return units->entered[op] <= units->entered[of] && units->entered[of] < units->left[op];
}

/* Whether the tree has a path from the op to one of the unit. */
static bool tree_leads_to(const CornuUnits *units, int op, int unit)
{
    for (int i = unit; i >= 0; i = units->next[i])
        if (is_ancestor(units, i, op)) return true;
    return false;
}

static bool meet(CornuUnits *units, int unit, int *count)
{
    if (units->stamp[unit] == units->search) return false;
    units->stamp[unit] = units->search;
    units->found[(*count)++] = unit;
    return true;
}

/* Visits what makes an operand; whether it leads to unit `to`. Units before that do not. */
static bool leads_to(CornuUnits *units, int op, int to, int *count)
{
    if (op < 0) return false;
    const int unit = units->of[op];
    if (unit == to) return true;
    if (units->rank[unit] < units->rank[to] || units->stamp[unit] == units->search) return false;
    if (tree_leads_to(units, op, to)) return true;
    meet(units, unit, count);
    return false;
}

/* Whether `from` depends on `to` other than by results that it would read in registers. If not,
 * found[] has the units after `to` that it depends on, *count of them. */
static bool depends_apart(CornuUnits *units, int from, int to, int *count)
{
    *count = 0;
    units->search++;
    units->stamp[from] = units->search;
    for (int i = from; i >= 0; i = units->next[i])
        for (int k = operands_of(units, i); k < operands_end(units, i); k++) {
            const int direct = units->direct[k];
            const int unit = direct < 0 ? -1 : units->of[direct];
            if (unit >= 0 && (unit == to || unit == from)) continue;
            if (leads_to(units, units->root[k], to, count)) return true;
        }
    for (int next = 0; next < *count; next++)
        for (int i = units->found[next]; i >= 0; i = units->next[i])
            for (int k = operands_of(units, i); k < operands_end(units, i); k++)
                if (leads_to(units, units->root[k], to, count)) return true;
    return false;
}

/* Units before `end` that depend on `unit`, which come after *count others in found[]. */
static void find_dependents(CornuUnits *units, int unit, int end, int *count)
{
    const int begin = *count;
    units->search++;
    units->stamp[unit] = units->search;
    for (int next = begin - 1; next < *count; next++)
        for (int i = next < begin ? unit : units->found[next]; i >= 0; i = units->next[i])
            for (int k = units->first[i]; k >= 0; k = units->other[k]) {
                const int reader = units->of[units->reader[k]];
                if (units->rank[reader] < units->rank[end]) meet(units, reader, count);
            }
}

/* ---- Joining ---- */

static int by_rank(const void *a, const void *b)
{
    return ((const CornuRanked *)a)->rank - ((const CornuRanked *)b)->rank;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Gives `joined`, which takes the ranks of two units, its place: after the `before` units that
 * found[] begins with, before the `after` ones that follow. They share out their ranks, each kind
 * in its order. */
static void reorder(CornuUnits *units, int before, int after, const int ranks[2], int joined)
{
    int *pool = units->found;
    for (int i = 0; i < before + after; i++)
        units->moved[i] = (CornuRanked){ units->rank[units->found[i]], units->found[i] };
    qsort(units->moved, (size_t)before, sizeof *units->moved, by_rank);
    qsort(units->moved + before, (size_t)after, sizeof *units->moved, by_rank);
    for (int i = 0; i < before + after; i++) pool[i] = units->moved[i].rank;
    pool[before + after] = ranks[0];
    pool[before + after + 1] = ranks[1];
    qsort(pool, (size_t)(before + after + 2), sizeof *pool, by_number);
    for (int i = 0; i < before; i++) units->rank[units->moved[i].unit] = pool[i];
    units->rank[joined] = pool[before];
    for (int i = before; i < before + after; i++)
        units->rank[units->moved[i].unit] = pool[i + 2];
}

bool cornu__units_join(CornuUnits *units, int from, int to)
{
    int before, all;
    if (depends_apart(units, from, to, &before)) return false;
    const int ranks[2] = { units->rank[to], units->rank[from] };
    const int joined = from < to ? from : to;
    all = before;
    if (before > 0) find_dependents(units, to, from, &all);
    cornu__units_merge(units, from, to);
    if (before == 0) units->rank[joined] = ranks[0];
    else if (all == before) units->rank[joined] = ranks[1];
    else reorder(units, before, all - before, ranks, joined);
    return true;
}
