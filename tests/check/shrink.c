#include "shrink.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/system/clock_internal.h"
#include "fields.h"

typedef struct {
    Trial          *c;
    const Setting *setting;
    double         end;      /* by the clock */
    bool           got_smaller;
} Shrinker;

/* Keeps the other case in place of this one if it fails, too; frees it if not. */
static bool accept(Shrinker *s, Trial *other)
{
    if (cornu__seconds() > s->end || !trial_run(other, s->setting).failed) {
        trial_free(other);
        return false;
    }
    trial_free(s->c);
    *s->c = *other;
    return s->got_smaller = true;
}

static bool accept_pruned(Shrinker *s, const Trial *like, double *const *replaced)
{
    Trial pruned;
    return trial_pruned(like, replaced, &pruned) && accept(s, &pruned);
}

/* With only one output, or with one output less; without aliases. */
static void fewer_outputs(Shrinker *s)
{
    const int count = s->c->program->output_count;
    for (int i = 0; i < count && count > 1; i++) {
        CornuProgram one = *s->c->program;
        Trial         like = { &one, s->c->shards, s->c->input, 0 };
        one.outputs = &s->c->program->outputs[i];
        one.output_count = 1;
        if (accept_pruned(s, &like, NULL)) return;
    }
    for (int i = 0; i < s->c->program->output_count; i++) {
        CornuProgram       *p = s->c->program;
        const size_t        bytes = (size_t)p->output_count * sizeof *p->outputs;
        CornuProgramOutput *others = malloc(bytes + 1);
        CornuProgram        less = *p;
        Trial                like = { &less, s->c->shards, s->c->input, 0 };
        memcpy(others, p->outputs, bytes);
        less.outputs = others;
        bool smaller = false;
        if (others[i].alias >= 0) {
            others[i].alias = -1;
            smaller = accept_pruned(s, &like, NULL);
        }
        if (!smaller && less.output_count > 1) {
            memcpy(others, p->outputs, bytes);
            memmove(others + i, others + i + 1,
                    (size_t)(p->output_count - i - 1) * sizeof *others);
            less.output_count--;
            if (accept_pruned(s, &like, NULL)) i--;
        }
        free(others);
    }
}

/* The numbers of every value, as a device has them; false if they cannot be computed. */
static bool evaluate_all(const Trial *c, Bounds *b)
{
    if (bounds_of(b, c->program, c->shards, c->input, NULL)) {
        cornu_error_take();
        bounds_free(b);
        return false;
    }
    for (int v = 0; v < b->count; v++)
        for (int64_t i = 0; i < bounds_count(b, c->program, v); i++)
            b->value[v][i] = rounded(b->value[v][i], cornu_program_type(c->program, v).dtype);
    return true;
}

/* Results of ops `first` to `last` become inputs with the same numbers. */
static bool replace_ops(Shrinker *s, int first, int last)
{
    Bounds b;
    if (!evaluate_all(s->c, &b)) return false;
    const CornuProgram *p = s->c->program;
    double            **replaced = calloc((size_t)p->value_count + 1, sizeof *replaced);
    for (int v = 0; v < p->value_count; v++) {
        const int op = p->values[v].op;
        if (op >= first && op <= last) replaced[v] = b.value[v];
    }
    const bool smaller = accept_pruned(s, s->c, replaced);
    free(replaced);
    bounds_free(&b);
    return smaller;
}

static void fewer_ops(Shrinker *s)
{
    for (int length = s->c->program->op_count / 2; length >= 1; length /= 2)
        for (int first = 0; first < s->c->program->op_count; first += length)
            while (first < s->c->program->op_count &&
                   replace_ops(s, first, first + length - 1))
                continue;
}

/* Lets readers of an op's result read one of its operands instead. */
static void bypass_ops(Shrinker *s)
{
    for (int i = s->c->program->op_count - 1; i >= 0; i--) {
        if (i >= s->c->program->op_count) continue;
        CornuProgram         *p = s->c->program;
        const CornuProgramOp *op = &p->ops[i];
        for (int k = 0; k < op->in_count; k++) {
            const CornuValue in = cornu_program_operands(p, op)[k], out = op->out_first;
            if (!cornu_type_equal(p->values[in].type, p->values[out].type) ||
                p->values[in].varies != p->values[out].varies)
                continue;
            CornuProgram *other = cornu_program_copy(p);
            for (int j = 0; j < other->operand_count; j++)
                if (other->operands[j] == out) other->operands[j] = in;
            for (int j = 0; j < other->output_count; j++)
                if (other->outputs[j].value == out) other->outputs[j].value = in;
            Trial like = { other, s->c->shards, s->c->input, 0 };
            const bool smaller = accept_pruned(s, &like, NULL);
            cornu_program_free(other);
            if (smaller) break;
        }
    }
}

static CornuShape with_extent(CornuShape shape, int64_t old, int64_t new)
{
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] == old) shape.extent[i] = new;
    return shape;
}

/* Changes one extent wherever it occurs, in shapes and attributes; keeps the elements that remain.
 * False if the ops no longer fit. */
static bool resized(const Trial *c, int64_t old, int64_t new, Trial *other)
{
    const CornuProgram *p = c->program;
    CornuValue         *map = calloc((size_t)p->value_count + 1, sizeof *map);
    bool                fits = true;
    *other = (Trial){ .program = cornu_program_create(), .shards = c->shards };
    for (int v = 0; v < p->value_count && fits; v++) {
        const CornuProgramValue *at = &p->values[v];
        if (at->op < 0) {
            const CornuShape shape = with_extent(at->type.shape, old, new);
            map[v] = trial_input(other, cornu_type_from(at->type.dtype, shape), at->varies,
                                c->input[at->index]);
            fits = map[v] != CORNU_NO_VALUE;
        } else if (p->ops[at->op].out_first == v) {
            const CornuProgramOp *op = &p->ops[at->op];
            CornuAttributes       attributes = op->attributes;
            CornuValue            in[64], out[CORNU_MAX_OUTPUTS];
            for (int i = 0; i < op->in_count; i++) in[i] = map[cornu_program_operands(p, op)[i]];
            fields_replace(op->id, &attributes, old, new);
            fits = op->id != CORNU_OP_SCAN &&
                   !cornu_program_record(other->program, op->id, &attributes, in, op->in_count,
                                         out);
            for (int k = 0; k < op->out_count && fits; k++) map[v + k] = out[k];
        }
    }
    for (int i = 0; i < p->output_count && fits; i++)
        fits = !cornu_program_output(other->program, map[p->outputs[i].value], p->outputs[i].alias);
    free(map);
    if (fits) return true;
    cornu_error_take();
    trial_free(other);
    return false;
}

static void shorter_axes(Shrinker *s)
{
    for (int64_t extent = 64; extent > 1; extent--) {
        const int64_t shorter[] = { 1, 2, extent / 2, extent - 1 };
        bool          there = false;
        for (int v = 0; v < s->c->program->value_count; v++)
            for (int i = 0; i < CORNU_MAX_RANK; i++)
                there |= s->c->program->values[v].type.shape.extent[i] == extent;
        for (int k = 0; k < 4 && there; k++) {
            Trial other;
            if (shorter[k] < 1 || shorter[k] >= extent || (k && shorter[k] == shorter[k - 1]) ||
                !resized(s->c, extent, shorter[k], &other))
                continue;
            if (accept(s, &other)) break;
        }
    }
}

/* Replaces the elements of an input by small multiples of a quarter. */
static void plainer_numbers(Shrinker *s)
{
    for (int i = 0; i < s->c->program->input_count; i++) {
        const int64_t count = trial_count(s->c, i);
        const CornuDtype dtype =
            cornu_program_type(s->c->program, s->c->program->inputs[i]).dtype;
        if (!cornu_dtype_is_float(dtype)) continue;
        double *kept = s->c->input[i], *plain = calloc((size_t)count + 1, sizeof *plain);
        for (int64_t k = 0; k < count; k++) plain[k] = (double)(k * 5 % 7 + 1) * 0.25;
        s->c->input[i] = plain;
        const bool fails = cornu__seconds() < s->end && trial_run(s->c, s->setting).failed;
        if (!fails) s->c->input[i] = kept;
        free(fails ? kept : plain);
    }
}

void shrink(Trial *c, const Setting *setting, double seconds)
{
    Shrinker s = { c, setting, cornu__seconds() + seconds, true };
    while (s.got_smaller && cornu__seconds() < s.end) {
        s.got_smaller = false;
        fewer_outputs(&s);
        fewer_ops(&s);
        bypass_ops(&s);
        shorter_axes(&s);
    }
    plainer_numbers(&s);
}
