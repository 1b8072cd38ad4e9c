/*
 * scan as while. Its values: the step, the carries, the stacked results, then what stays the same:
 * sliced operands and constants; and for every check within the body what it has found so far.
 */
#include <string.h>

#include "emit.h"

enum { MOST_CHECKS = 32, MOST = 1 + CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS + MOST_CHECKS };

typedef struct {
    const CornuAttributes_SCAN *scan;
    int          count;
    CornuName    before[MOST], in[MOST], out[MOST];   /* the loop's operands, a step's */
    CornuHloType type[MOST];
} Loop;

static void add(CornuEmitter *e, Loop *loop, CornuName before)
{
    loop->type[loop->count] = cornu__hlo_of(e, before);
    loop->before[loop->count++] = before;
}

/* The indices of slice t: 0 but for the scan's axis. */
static void indices(CornuEmitter *e, const Loop *loop, CornuName t, int rank, CornuName *index)
{
    const CornuHloType scalar = cornu__hlo_scalar(PJRT_S32);
    for (int i = 0; i < rank; i++)
        index[i] = i == loop->scan->axis ? t : cornu__hlo_integer(e, scalar, 0);
}

static CornuName slice_at(CornuEmitter *e, const Loop *loop, CornuName x, CornuName t)
{
    CornuHloType type = cornu__hlo_of(e, x);
    CornuName    in[CORNU_MAX_RANK + 1] = { x };
    CornuShape   step = { .rank = 0 };
    indices(e, loop, t, type.shape.rank, in + 1);
    for (int i = 0; i < type.shape.rank; i++)
        if (i != loop->scan->axis) step.extent[step.rank++] = type.shape.extent[i];
    type.shape.extent[loop->scan->axis] = 1;
    const CornuName slice = cornu__begin(e, "dynamic_slice", type, in, 1 + type.shape.rank);
    cornu__write(e, " {slice_sizes = ");
    cornu__write_array(e, type.shape.extent, type.shape.rank);
    cornu__write(e, "}");
    cornu__end(e, slice, in, 1 + type.shape.rank);
    return cornu__hlo_reshape(e, slice, step);
}

static CornuName put_at(CornuEmitter *e, const Loop *loop, CornuName x, CornuName part,
                        CornuName t)
{
    const CornuHloType type = cornu__hlo_of(e, x);
    CornuShape         one = type.shape;
    CornuName          in[CORNU_MAX_RANK + 2] = { x };
    one.extent[loop->scan->axis] = 1;
    in[1] = cornu__hlo_reshape(e, part, one);
    indices(e, loop, t, type.shape.rank, in + 2);
    const CornuName y = cornu__begin(e, "dynamic_update_slice", type, in, 2 + type.shape.rank);
    cornu__end(e, y, in, 2 + type.shape.rank);
    return y;
}

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
    cornu__write(e, "\"stablehlo.return\"(");
    for (int i = 0; i < count; i++) cornu__write(e, "%s%%%d", i ? ", " : "", out[i]);
    cornu__write(e, ") : (");
    for (int i = 0; i < count; i++) {
        if (i) cornu__write(e, ", ");
        cornu__write_type(e, cornu__hlo_of(e, out[i]));
    }
    cornu__write(e, ") -> ()\n");
    e->depth--;
    cornu__write(e, "}");
}

/* ---- Checks ---- */

/* How many checks the body has: it is written, counted and forgotten, since the loop's operands
 * come before its text. */
static int count_checks(CornuEmitter *e, const CornuProgram *body)
{
    const size_t size = e->module->size;
    const int    names = e->names, before = e->module->check_count;
    CornuName    in[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < body->input_count; i++)
        in[i] = cornu__name(e, cornu__hlo_type(cornu_program_type(body, body->inputs[i])));
    cornu__emit_program(e, body, in, out);
    const int count = e->module->check_count - before;
    e->module->check_count = before;
    e->names = names;
    if (e->status != CORNU_OK) return 0;
    e->module->size = size;
    e->module->text[size] = '\0';
    if (count > MOST_CHECKS)
        e->status = cornu__fail(CORNU_ERR_UNSUPPORTED, "scan: %d checks of data in the body, "
                                "expected at most %d", count, MOST_CHECKS);
    return count;
}

/* What an earlier step found stays; else what this one found. */
static CornuName first_failure(CornuEmitter *e, CornuName before, CornuName now, int64_t rows)
{
    static const int64_t starts[2] = { 0, 0 }, sizes[2] = { 1, 1 };
    static const int     axes[2] = { 0, 1 };
    const CornuName row = cornu__hlo_slice(e, before, starts, sizes, NULL);
    const CornuName found = cornu__hlo_compare(
        e, row, "LT", cornu__hlo_integer(e, cornu__hlo_of(e, row), rows));
    return cornu__hlo_select(e, cornu__hlo_broadcast(e, found, cornu_shape(1, 2), axes), before,
                             now);
}

/* One step; loop->out is what the next one is given. */
static void write_step(CornuEmitter *e, const CornuEmitCall *call, Loop *loop, int checks)
{
    const int                   first_check = e->module->check_count;
    const CornuAttributes_SCAN *scan = loop->scan;
    const int    carries = (int)scan->carries, outputs = scan->body->output_count;
    const int    stacked = outputs - carries, given = 1 + outputs;   /* from here on the same */
    const CornuHloType scalar = cornu__hlo_scalar(PJRT_S32);
    CornuName    in[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS], t = loop->in[0];
    if (scan->reverse)
        t = cornu__hlo2(e, "subtract", cornu__hlo_integer(e, scalar, scan->steps - 1), t);
    for (int i = 0; i < call->op.in_count; i++)
        in[i] = i < carries ? loop->in[1 + i]
              : i < carries + scan->slices ? slice_at(e, loop, loop->in[given + i - carries], t)
                                           : loop->in[given + i - carries];
    cornu__emit_program(e, scan->body, in, out);
    memcpy(loop->out, loop->in, sizeof loop->out);
    loop->out[0] = cornu__hlo2(e, "add", loop->in[0], cornu__hlo_integer(e, scalar, 1));
    for (int i = 0; i < carries; i++) loop->out[1 + i] = out[i];
    for (int i = 0; i < stacked; i++)
        loop->out[1 + carries + i] = put_at(e, loop, loop->in[1 + carries + i],
                                            out[carries + i], t);
    for (int i = 0; i < checks && e->status == CORNU_OK; i++) {
        const int at = loop->count - checks + i;
        loop->out[at] = first_failure(e, loop->in[at], e->failed[first_check + i],
                                      e->module->checks[first_check + i].rows);
    }
}

static void scan(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuAttributes_SCAN *scan = &call->op.attributes->scan;
    const CornuHloType          scalar = cornu__hlo_scalar(PJRT_S32);
    const int                   carries = (int)scan->carries, outputs = scan->body->output_count;
    const int    checks = count_checks(e, scan->body), first_check = e->module->check_count;
    Loop         loop = { .scan = scan };
    if (e->status != CORNU_OK) return;
    add(e, &loop, cornu__hlo_integer(e, scalar, 0));
    for (int i = 0; i < carries; i++) add(e, &loop, call->in[i]);
    for (int i = carries; i < outputs; i++)
        add(e, &loop, cornu__hlo_constant(e, cornu__hlo_type(call->out_type[i]), 0.0));
    for (int i = carries; i < call->op.in_count; i++) add(e, &loop, call->in[i]);
    for (int i = 0; i < checks; i++)
        add(e, &loop, cornu__hlo_integer(e, (CornuHloType){ PJRT_S64, cornu_shape(1, 2) },
                                         INT64_MAX));

    CornuName results[MOST];
    for (int i = 0; i < loop.count; i++) results[i] = cornu__name(e, loop.type[i]);
    for (int i = 0; i < loop.count; i++) cornu__write(e, "%s%%%d", i ? ", " : "", results[i]);
    cornu__write(e, " = \"stablehlo.while\"(");
    for (int i = 0; i < loop.count; i++) cornu__write(e, "%s%%%d", i ? ", " : "", loop.before[i]);
    cornu__write(e, ") (");
    begin_region(e, &loop);
    const CornuName more = cornu__hlo_compare(e, loop.in[0], "LT",
                                              cornu__hlo_integer(e, scalar, scan->steps));
    end_region(e, &more, 1);
    cornu__write(e, ", ");
    begin_region(e, &loop);
    write_step(e, call, &loop, checks);
    end_region(e, loop.out, loop.count);
    cornu__write(e, ") : (");
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < loop.count; i++) {
            if (i) cornu__write(e, ", ");
            cornu__write_type(e, loop.type[i]);
        }
        cornu__write(e, pass ? ")\n" : ") -> (");
    }
    for (int i = 0; i < outputs; i++) call->out[i] = results[1 + i];
    for (int i = 0; i < checks && e->status == CORNU_OK; i++)
        e->failed[first_check + i] = results[loop.count - checks + i];
}
CornuEmit *const cornu__scan_stablehlo = scan;
