/*
 * A program run several times, as while. Its values: the step; the program's inputs, of which some
 * are what the step before made and some are there for all steps, to be sliced; stacked outputs;
 * and for each check within the program what it has found so far.
 */
#include <string.h>

#include "../../memory_internal.h"
#include "emit.h"

typedef struct {
    const CornuHloLoop *of;
    int           count, inputs, stacked, checks;
    CornuHloType *type;
    CornuName    *before, *in, *out, *results;   /* the loop's operands, a step's, its results */
    CornuName    *body_in, *body_out;
} Loop;

/* ---- Slices ---- */

/* The indices of slice t: 0 but for the loop's axis. */
static void indices(CornuEmitter *e, const Loop *loop, CornuName t, int rank, CornuName *index)
{
    const CornuHloType scalar = cornu__hlo_scalar(PJRT_S32);
    for (int i = 0; i < rank; i++)
        index[i] = i == loop->of->axis ? t : cornu__hlo_integer(e, scalar, 0);
}

static CornuName slice_at(CornuEmitter *e, const Loop *loop, CornuName x, CornuName t)
{
    CornuShape one = cornu__hlo_of(e, x).shape, step = { .rank = 0 };
    CornuName  starts[CORNU_MAX_RANK];
    indices(e, loop, t, one.rank, starts);
    for (int i = 0; i < one.rank; i++)
        if (i != loop->of->axis) step.extent[step.rank++] = one.extent[i];
    one.extent[loop->of->axis] = 1;
    return cornu__hlo_reshape(e, cornu__hlo_dynamic_slice(e, x, starts, one.extent), step);
}

static CornuName put_at(CornuEmitter *e, const Loop *loop, CornuName x, CornuName part,
                        CornuName t)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    CornuShape         one = type.shape;
    CornuName          in[CORNU_MAX_RANK + 2] = { x };
    one.extent[loop->of->axis] = 1;
    in[1] = cornu__hlo_reshape(e, part, one);
    indices(e, loop, t, type.shape.rank, in + 2);
    const CornuName y = cornu__begin(e, "dynamic_update_slice", type, in, 2 + type.shape.rank);
    cornu__end(e, y, in, 2 + type.shape.rank);
    return y;
}

/* ---- Checks ---- */

static const CornuShape found_shape = { .rank = 2, .extent = { 1, 2 } };

/* How many checks the body has: it is written, counted and forgotten, since the loop's operands
 * come before its text. */
static int count_checks(CornuEmitter *e, const Loop *loop)
{
    const size_t        size = e->module->size;
    const int           names = e->names, before = e->module->check_count;
    const CornuProgram *body = loop->of->body;
    for (int i = 0; i < body->input_count; i++)
        loop->body_in[i] = cornu__name(e, cornu__hlo_type(cornu_program_type(body,
                                                                             body->inputs[i])));
    cornu__emit_program(e, body, loop->body_in, loop->body_out);
    const int count = e->module->check_count - before;
    e->module->check_count = before;
    e->names = names;
    if (e->status != CORNU_OK) return 0;
    e->module->size = size;
    if (e->module->text) e->module->text[size] = '\0';
    return count;
}

/* i64 (1, 2), the rows of the steps before step t, and 0. */
static CornuName rows_before(CornuEmitter *e, CornuName t, int64_t rows)
{
    const CornuHloType one = { PJRT_S64, cornu_shape(1, 1) };
    const CornuName    step = cornu__hlo_reshape(e, cornu__hlo_convert(e, t, PJRT_S64), one.shape);
    const CornuName    both[2] = {
        cornu__hlo2(e, "multiply", step, cornu__hlo_integer(e, one, rows)),
        cornu__hlo_integer(e, one, 0),
    };
    return cornu__hlo_concat(e, both, 2, 1);
}

/* What an earlier step found stays; else what this one found. */
static CornuName first_failure(CornuEmitter *e, const Loop *loop, CornuName before, CornuName now,
                               int64_t rows)
{
    static const int64_t starts[2] = { 0, 0 }, sizes[2] = { 1, 1 };
    static const int     axes[2] = { 0, 1 };
    const CornuName      of_steps[2] = { before, now };
    const int64_t        limits[2] = { INT64_MAX, rows };
    CornuName            found[2];
    for (int i = 0; i < 2; i++) {
        const CornuName row = cornu__hlo_slice(e, of_steps[i], starts, sizes, NULL);
        const CornuName limit = cornu__hlo_integer(e, cornu__hlo_of(e, row), limits[i]);
        found[i] = cornu__hlo_broadcast(e, cornu__hlo_compare(e, row, "LT", limit), found_shape,
                                        axes);
    }
    if (loop->of->numbers_steps)
        now = cornu__hlo2(e, "add", now, rows_before(e, loop->in[0], rows));
    return cornu__hlo_select(e, found[0], before, cornu__hlo_select(e, found[1], now, before));
}

/* ---- Regions ---- */

static void begin_region(CornuEmitter *e, Loop *loop)
{
    cornu__write(e, "{\n");
    e->depth++;
    cornu__write(e, "^bb0(");
    for (int i = 0; i < loop->count; i++) {
        loop->in[i] = cornu__name(e, loop->type[i]);
        cornu__write(e, "%s%%%d: ", i ? ", " : "", loop->in[i]);
        cornu__write_type(e, loop->type[i]);
    }
    cornu__write(e, "):\n");
}

static void end_region(CornuEmitter *e, const CornuName *out, int count)
{
    cornu__write_return(e, "stablehlo.return", out, count);
    e->depth--;
    cornu__write(e, "}");
}

/* One step; loop->out is what the next one is given. */
static void write_step(CornuEmitter *e, Loop *loop)
{
    const CornuHloLoop *of = loop->of;
    const CornuHloType  scalar = cornu__hlo_scalar(PJRT_S32);
    const int           first_check = e->module->check_count;
    const CornuName    *inputs = loop->in + 1;
    CornuName          *stacked = loop->out + 1 + loop->inputs, t = loop->in[0];
    if (of->reverse)
        t = cornu__hlo2(e, "subtract", cornu__hlo_integer(e, scalar, of->steps - 1), t);
    for (int i = 0; i < loop->inputs; i++)
        loop->body_in[i] = of->is_sliced[i] ? slice_at(e, loop, inputs[i], t) : inputs[i];
    cornu__emit_program(e, of->body, loop->body_in, loop->body_out);
    memcpy(loop->out, loop->in, (size_t)loop->count * sizeof *loop->out);
    loop->out[0] = cornu__hlo2(e, "add", loop->in[0], cornu__hlo_integer(e, scalar, 1));
    for (int i = 0; i < of->body->output_count; i++)
        if (of->carried[i] >= 0) loop->out[1 + of->carried[i]] = loop->body_out[i];
        else *stacked = put_at(e, loop, *stacked, loop->body_out[i], t), stacked++;
    for (int i = 0; i < loop->checks && e->status == CORNU_OK; i++) {
        const int at = loop->count - loop->checks + i;
        loop->out[at] = first_failure(e, loop, loop->in[at], e->failed[first_check + i],
                                      e->module->checks[first_check + i].rows);
    }
}

/* ---- The loop ---- */

static CornuStatus allocate(Loop *loop, CornuName **names)
{
    const size_t count = (size_t)loop->count;
    loop->type = cornu__allocate(count, sizeof *loop->type);
    *names = cornu__allocate(4 * count, sizeof **names);
    if (!loop->type || !*names) return CORNU_ERR_MEMORY;
    loop->before = *names;
    loop->in = loop->before + count;
    loop->out = loop->in + count;
    loop->results = loop->out + count;
    return CORNU_OK;
}

/* The operands: what is stacked begins as zeros. */
static void begin_loop(CornuEmitter *e, const Loop *loop, const CornuName *in)
{
    const CornuProgram *body = loop->of->body;
    CornuName          *next = loop->before;
    *next++ = cornu__hlo_integer(e, cornu__hlo_scalar(PJRT_S32), 0);
    for (int i = 0; i < loop->inputs; i++) *next++ = in[i];
    for (int i = 0; i < body->output_count; i++)
        if (loop->of->carried[i] < 0)
            *next++ = cornu__hlo_constant(e, cornu__hlo_type(cornu__hlo_stacked(
                cornu_program_type(body, body->outputs[i].value), loop->of->axis,
                loop->of->steps)), 0.0);
    for (int i = 0; i < loop->checks; i++)
        *next++ = cornu__hlo_integer(e, (CornuHloType){ PJRT_S64, found_shape }, INT64_MAX);
    for (int i = 0; i < loop->count; i++) loop->type[i] = cornu__hlo_of(e, loop->before[i]);
}

static void write_while(CornuEmitter *e, Loop *loop)
{
    for (int i = 0; i < loop->count; i++) loop->results[i] = cornu__name(e, loop->type[i]);
    cornu__write_names(e, loop->results, loop->count);
    cornu__write(e, " = \"stablehlo.while\"(");
    cornu__write_names(e, loop->before, loop->count);
    cornu__write(e, ") (");
    begin_region(e, loop);
    const CornuName more = cornu__hlo_compare(
        e, loop->in[0], "LT",
        cornu__hlo_integer(e, cornu__hlo_scalar(PJRT_S32), loop->of->steps));
    end_region(e, &more, 1);
    cornu__write(e, ", ");
    begin_region(e, loop);
    write_step(e, loop);
    end_region(e, loop->out, loop->count);
    cornu__write(e, ") : ");
    cornu__write_types(e, loop->before, loop->count);
    cornu__write(e, " -> ");
    cornu__write_types(e, loop->results, loop->count);
    cornu__write(e, "\n");
}

static void take_results(CornuEmitter *e, const Loop *loop, int first_check, CornuName *out)
{
    const CornuName *stacked = loop->results + 1 + loop->inputs;
    const CornuName *found = loop->results + loop->count - loop->checks;
    for (int i = 0; i < loop->of->body->output_count; i++) {
        const int input = loop->of->carried[i];
        out[i] = input >= 0 ? loop->results[1 + input] : *stacked++;
    }
    for (int i = 0; i < loop->checks && e->status == CORNU_OK; i++)
        e->failed[first_check + i] = found[i];
}

void cornu__hlo_loop(CornuEmitter *e, const CornuHloLoop *of, const CornuName *in, CornuName *out)
{
    const CornuProgram *body = of->body;
    const int           first_check = e->module->check_count;
    const size_t        count = (size_t)(body->input_count + body->output_count);
    Loop       loop = { .of = of, .inputs = body->input_count };
    CornuName *names = NULL, *ends = cornu__allocate(count, sizeof *ends);
    if (!ends) e->status = CORNU_ERR_MEMORY;
    if (e->status == CORNU_OK) {
        loop.body_in = ends;
        loop.body_out = ends + loop.inputs;
        for (int i = 0; i < body->output_count; i++) loop.stacked += of->carried[i] < 0;
        loop.checks = count_checks(e, &loop);
        loop.count = 1 + loop.inputs + loop.stacked + loop.checks;
        if (e->status == CORNU_OK) e->status = allocate(&loop, &names);
    }
    if (e->status == CORNU_OK) {
        begin_loop(e, &loop, in);
        write_while(e, &loop);
        take_results(e, &loop, first_check, out);
    }
    cornu__release(loop.type);
    cornu__release(names);
    cornu__release(ends);
}
