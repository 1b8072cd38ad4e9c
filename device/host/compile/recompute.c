/*
 * recompute: what elementwise ops make for much later is made again there.
 *
 * The forward pass has all that the slope of an activation needs in registers, so a group of it
 * would write it to memory for the backward pass: for gelu(x) three values as large as x. But a
 * group can make as many from x, which is read once, for a few operations on registers, and need
 * not be in memory for as long. So where the values that a group stores for other groups alone can
 * be made from no more memory than they take, with no more traffic, the ops that make them are
 * recorded once more for each group that reads them, which they then join.
 *
 * Random numbers are not made again: they take longer than reading them. Nor are sums of rows, one
 * element for each row, but what is made of them is: so the gradient of a layer normalization reads
 * its operand and two numbers for each row. A value that is also read by a kernel is in memory
 * anyway.
 *
 * Gain, Xeon (L2 2 MiB, DRAM 31 GB/s), f32: char_gpt at 64, whose dense layers have gelu, 208 ms a
 *     step and 389 MB, then 197 and 255; encoder at 32 164 ms, then 161.
 */
#include "../../memory_internal.h"
#include "../../op_internal.h"
#include "../../ops/rewrite.h"
#include "passes.h"
#include "recompute.h"

enum {
    OPS_EACH = 6,    /* recorded again for each value that is not stored, at most           */
    LONG_BYTES = 8   /* could be read or written in the time that an exponential takes, for
                        each element                                                        */
};

/* An op's result recorded once more, for a unit. */
typedef struct { int unit, next; CornuValue value; } Again;

typedef struct {
    CornuRewrite           rewrite;
    const CornuProgram    *program;
    const CornuUnits      *units;
    const CornuResult     *results;
    int                    most_ops;
    int                   *last;      /* by value: the last op that reads it from memory     */
    bool                  *overwritten;   /* by value: an input that an output is written over */
    int                   *stamp;     /* by value: the last search that counted it           */
    int                    search;
    bool                  *remade;    /* by op: not stored any more                          */
    int                   *reader_of; /* by unit: the last attempt that met it as a reader    */
    int                    attempt;
    bool                  *needed;    /* by value: read, once the others are made again      */
    int                   *first;     /* by value: of again, -1: none                        */
    Again                 *again;
    int                    again_count, again_space;
} Recompute;

static size_t bytes_of(const Recompute *r, CornuValue value)
{
    return cornu_type_bytes(cornu_program_type(r->program, value));
}

static bool sums_rows(const Recompute *r, int op)
{
    return cornu__group_reduces(r->program, &r->program->ops[op]) > 1;
}

/* The op that makes operand k in a register of the same unit; -1: it is read from memory, or could
 * be: it is there anyway, or is a sum of rows. */
static int maker_inside(const Recompute *r, int op, int k)
{
    const int maker = r->units->direct[r->program->ops[op].in_first + k];
    if (maker < 0 || r->units->of[maker] != r->units->of[op] || sums_rows(r, maker)) return -1;
    return r->results[maker] == CORNU_RESULT_INSIDE || r->remade[maker] ? maker : -1;
}

/* Where values are read from memory last. */
static void find_last_reads(Recompute *r)
{
    const CornuProgram *p = r->program;
    for (int i = 0; i < p->value_count; i++) r->last[i] = -1;
    for (int i = 0; i < p->op_count; i++)
        for (int k = 0; k < p->ops[i].in_count; k++) {
            CornuAccess access;
            if (r->results[i] != CORNU_RESULT_OUTSIDE && maker_inside(r, i, k) >= 0) continue;
            r->last[cornu__group_source(p, cornu_program_operands(p, &p->ops[i])[k], &access)] = i;
        }
    for (int i = 0; i < p->output_count; i++) {
        CornuAccess access;
        r->last[cornu__group_source(p, p->outputs[i].value, &access)] = p->op_count;
    }
}

/* What making a unit's values again takes: ops, bytes read or the like of it, and bytes that are in
 * memory for longer. */
typedef struct { int ops; size_t read, longer; } Cost;

/* Adds what the op's result takes, for an op that comes after `position`; what this search has
 * counted is not counted again. False: it cannot be made again. */
static bool add_cost(Recompute *r, int op, int position, Cost *cost)
{
    const CornuProgram   *p = r->program;
    const CornuProgramOp *o = &p->ops[op];
    if (r->stamp[o->out_first] == r->search) return true;
    r->stamp[o->out_first] = r->search;
    if (o->out_count != 1 || sums_rows(r, op)) return false;
    cost->ops++;
    if (cornu__op_cost(o->id) > 1)   /* an exponential or the like */
        cost->read += LONG_BYTES * (size_t)cornu_type_count(cornu_program_type(p, o->out_first));
    for (int k = 0; k < o->in_count; k++) {
        CornuAccess      access;
        const int        maker = maker_inside(r, op, k);
        const CornuValue value = cornu_program_operands(p, o)[k];
        if (cornu__group_reads_memory(o, k)) return false;   /* rows, or random numbers */
        if (maker >= 0) {
            if (!add_cost(r, maker, position, cost)) return false;
            continue;
        }
        const CornuValue source = cornu__group_source(p, value, &access);
        const int        other = p->values[source].op;
        if (access.rank == 0 || r->stamp[source] == r->search) continue;
        if (other >= 0 && sums_rows(r, other)) continue;   /* one number for each row */
        r->stamp[source] = r->search;
        if (r->overwritten[source]) return false;
        cost->read += bytes_of(r, source);
        if (r->last[source] < position && p->values[source].op >= 0)
            cost->longer += bytes_of(r, source);
    }
    return true;
}

/* The operand k, or the next one, by which another unit reads the op's result; -1: none does. */
static int next_read(const Recompute *r, int op, int k)
{
    const CornuUnits *u = r->units;
    while (k >= 0 && (u->direct[k] != op || u->of[u->reader[k]] == u->of[op])) k = u->other[k];
    return k;
}

static int first_read(const Recompute *r, int op)
{
    return next_read(r, op, r->units->first[op]);
}

static int read_after(const Recompute *r, int op, int k)
{
    return next_read(r, op, r->units->other[k]);
}

static bool reads(const Recompute *r, int unit, int op)
{
    for (int k = first_read(r, op); k >= 0; k = read_after(r, op, k))
        if (r->units->of[r->units->reader[k]] == unit) return true;
    return false;
}

/* Whether the op's result is stored for other groups alone, and can be made again. */
static bool can_be_remade(Recompute *r, int op)
{
    Cost cost = { .ops = 0 };
    if (r->results[op] != CORNU_RESULT_FOR_GROUPS || first_read(r, op) < 0) return false;
    r->search++;
    return add_cost(r, op, 0, &cost);
}

/* Adds what one unit reads to make the values again that it read, whose bytes it saves. */
static bool add_reader(Recompute *r, int unit, int reader, size_t *read, size_t *saved)
{
    Cost cost = { .ops = 0 };
    r->search++;
    for (int i = unit; i >= 0; i = r->units->next[i]) {
        if (!r->remade[i] || !reads(r, reader, i)) continue;
        add_cost(r, i, 0, &cost);
        *saved += bytes_of(r, r->program->ops[i].out_first);
    }
    *read += cost.read;
    return cornu__unit_size(r->units, reader) + cost.ops <= r->most_ops;
}

/* Bytes of traffic that making again what remade says of a unit saves, where results are written
 * once and read in each unit; -1: it takes more traffic than storing them, or more memory. */
static int64_t savings(Recompute *r, int unit)
{
    Cost   all = { .ops = 0 };
    size_t stored = 0, read = 0, saved = 0;
    int    values = 0, last = -1;
    r->attempt++;
    for (int i = unit; i >= 0; i = r->units->next[i])
        for (int k = r->remade[i] ? first_read(r, i) : -1; k >= 0; k = read_after(r, i, k))
            if (r->units->reader[k] > last) last = r->units->reader[k];
    r->search++;
    for (int i = unit; i >= 0; i = r->units->next[i]) {
        if (!r->remade[i]) continue;
        add_cost(r, i, last, &all);
        stored += bytes_of(r, r->program->ops[i].out_first);
        values++;
    }
    for (int i = unit; i >= 0; i = r->units->next[i])
        for (int k = r->remade[i] ? first_read(r, i) : -1; k >= 0; k = read_after(r, i, k)) {
            const int reader = r->units->of[r->units->reader[k]];
            if (r->reader_of[reader] == r->attempt) continue;
            r->reader_of[reader] = r->attempt;
            if (!add_reader(r, unit, reader, &read, &saved)) return -1;
        }
    const bool pays = values > 0 && all.ops <= OPS_EACH * values && all.longer <= stored &&
                      read <= saved + stored;
    return pays ? (int64_t)(saved + stored - read) : -1;
}

/* Of the values of a unit that can be made again, those from `first` on are. */
static void remake_from(Recompute *r, int unit, int first)
{
    for (int i = unit; i >= 0; i = r->units->next[i])
        r->remade[i] = i >= first && can_be_remade(r, i);
}

/* Finds from which value on most is saved: those before are stored, and the others made from them.
 * Whether any are. */
static bool choose_of(Recompute *r, int unit)
{
    int64_t most = -1;
    int     best = r->program->op_count;   /* none */
    for (int first = unit; first >= 0; first = r->units->next[first]) {
        remake_from(r, unit, first);
        const int64_t saved = r->remade[first] ? savings(r, unit) : -1;
        if (saved > most) most = saved, best = first;
    }
    remake_from(r, unit, best);
    return most >= 0;
}

static bool choose(Recompute *r)
{
    bool any = false;
    for (int unit = 0; unit < r->program->op_count; unit++)
        if (r->units->of[unit] == unit && r->results[unit] != CORNU_RESULT_OUTSIDE)
            any |= choose_of(r, unit);
    return any;
}

/* ---- The new program ---- */

/* Whether operand k of the op is made again for it. */
static bool is_replaced(const Recompute *r, int op, int k)
{
    const int maker = r->units->direct[r->program->ops[op].in_first + k];
    return maker >= 0 && r->remade[maker] && r->units->of[maker] != r->units->of[op];
}

/* Notes that what the op is made again from is read; once, as many paths may lead to an op. */
static void need_again(Recompute *r, int op)
{
    const CornuValue made = r->program->ops[op].out_first;
    if (r->stamp[made] == r->search) return;
    r->stamp[made] = r->search;
    for (int k = 0; k < r->program->ops[op].in_count; k++) {
        const int maker = maker_inside(r, op, k);
        if (maker >= 0) need_again(r, maker);
        else r->needed[cornu_program_operands(r->program, &r->program->ops[op])[k]] = true;
    }
}

/* Finds the values that are still read. */
static void find_needs(Recompute *r)
{
    const CornuProgram *p = r->program;
    r->search++;
    for (int i = 0; i < p->output_count; i++) r->needed[p->outputs[i].value] = true;
    for (int i = p->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &p->ops[i];
        bool                  needed = false;
        for (int k = 0; k < op->out_count; k++) needed |= r->needed[op->out_first + k];
        for (int k = 0; k < op->in_count && needed; k++)
            if (is_replaced(r, i, k)) need_again(r, r->units->direct[op->in_first + k]);
            else r->needed[cornu_program_operands(p, op)[k]] = true;
    }
}

static CornuStatus make_again(Recompute *r, int unit, CornuValue value, CornuValue *out);

/* Records the op, in a region of rewrite.in of its own, with operands made again for a unit. */
static CornuStatus record(Recompute *r, int unit, int op, bool again, CornuValue *out)
{
    const CornuProgramOp *o = &r->program->ops[op];
    CornuValue           *in = r->rewrite.in + o->in_first;
    const bool            seen_through = r->results[op] == CORNU_RESULT_OUTSIDE;
    for (int k = 0; k < o->in_count; k++) {
        const CornuValue value = cornu_program_operands(r->program, o)[k];
        const bool       remade = again ? seen_through || maker_inside(r, op, k) >= 0
                                        : is_replaced(r, op, k);
        in[k] = r->rewrite.map[value];
        if (remade) CORNU__TRY(make_again(r, unit, value, &in[k]));
    }
    return cornu_program_record(r->rewrite.to, o->id, &o->attributes, in, o->in_count, out);
}

/* What the value is for ops of a unit: the result of an op that is recorded once more, or a view of
 * it. */
static CornuStatus make_again(Recompute *r, int unit, CornuValue value, CornuValue *out)
{
    CornuValue made[CORNU_MAX_OUTPUTS];
    for (int i = r->first[value]; i >= 0; i = r->again[i].next)
        if (r->again[i].unit == unit) {
            *out = r->again[i].value;
            return CORNU_OK;
        }
    CORNU__TRY(record(r, unit, r->program->values[value].op, true, made));
    CORNU__TRY(cornu__reserve(&r->again, &r->again_space, r->again_count, 1, sizeof *r->again));
    *out = made[0];
    r->again[r->again_count] = (Again){ unit, r->first[value], made[0] };
    r->first[value] = r->again_count++;
    return CORNU_OK;
}

static CornuStatus record_all(Recompute *r)
{
    const CornuProgram *p = r->program;
    for (int i = 0; i < p->op_count; i++) {
        bool needed = false;
        for (int k = 0; k < p->ops[i].out_count; k++) needed |= r->needed[p->ops[i].out_first + k];
        if (!needed) continue;
        CORNU__TRY(cornu__program_follow(r->rewrite.to, &p->ops[i]));
        CORNU__TRY(record(r, r->units->of[i], i, false, &r->rewrite.map[p->ops[i].out_first]));
    }
    return CORNU_OK;
}

static CornuStatus open(Recompute *r)
{
    const size_t values = (size_t)r->program->value_count, ops = (size_t)r->program->op_count;
    r->last = cornu__allocate(values, sizeof *r->last);
    r->overwritten = cornu__allocate(values, sizeof *r->overwritten);
    r->stamp = cornu__allocate(values, sizeof *r->stamp);
    r->first = cornu__allocate(values, sizeof *r->first);
    r->needed = cornu__allocate(values, sizeof *r->needed);
    r->remade = cornu__allocate(ops, sizeof *r->remade);
    r->reader_of = cornu__allocate(ops, sizeof *r->reader_of);
    if (!r->last || !r->overwritten || !r->stamp || !r->first || !r->needed || !r->remade ||
        !r->reader_of)
        return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < values; i++) r->first[i] = -1;
    for (int i = 0; i < r->program->output_count; i++) {
        const int input = r->program->outputs[i].alias;
        if (input >= 0) r->overwritten[r->program->inputs[input]] = true;
    }
    find_last_reads(r);
    return CORNU_OK;
}

static void close(Recompute *r)
{
    cornu__release(r->last);
    cornu__release(r->overwritten);
    cornu__release(r->stamp);
    cornu__release(r->first);
    cornu__release(r->needed);
    cornu__release(r->remade);
    cornu__release(r->reader_of);
    cornu__release(r->again);
}

CornuStatus cornu__recompute(const CornuUnits *units, const CornuResult *results, int most_ops,
                             CornuProgram **again)
{
    Recompute   r = { .program = units->program, .units = units, .results = results,
                      .most_ops = most_ops };
    CornuStatus status = open(&r);
    *again = NULL;
    if (!status && choose(&r)) {
        find_needs(&r);
        status = cornu__rewrite_begin(&r.rewrite, r.program, false);
        if (!status) status = record_all(&r);
        *again = cornu__rewrite_end(&r.rewrite, status);
        if (!*again && !status) status = CORNU_ERR_MEMORY;
    }
    close(&r);
    return status;
}
