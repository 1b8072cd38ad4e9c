/*
 * Watching a graph: which op first produced a nan or an infinity.
 *
 * The compiled program counts, for every float value, the elements that are nan or infinite. If a
 * result has any, we follow operands that have some too, backwards, to the op where they originate.
 * Others are harmless, such as the infinities that a select does not choose.
 */
#include "../device/device_internal.h"
#include "graph_internal.h"

/* The program to extend, and whose shards run it. */
typedef struct {
    CornuProgram      *program;
    const CornuDevice *device;
} Recorder;

static CornuStatus record_watch(const Recorder *to, CornuOpId id, CornuAttributes attributes,
                                CornuValue a, CornuValue b, CornuValue *out)
{
    const CornuValue in[] = { a, b };
    CornuValue       made[CORNU_MAX_OUTPUTS];
    CORNU__TRY(cornu_program_record(to->program, id, &attributes, in,
                                    b == CORNU_NO_VALUE ? 1 : 2, made));
    *out = made[0];
    return CORNU_OK;
}

/* The sum over all shards that have a value of their own. */
static CornuStatus add_up(const Recorder *to, unsigned varies, CornuValue *x)
{
    const CornuMesh *mesh = &to->device->mesh;
    int              listed[CORNU_MAX_SHARDS];
    CornuAttributes  all = { .shards = { .size = to->device->shards } };
    if (mesh->axes) all.shards = cornu__mesh_shards(mesh, varies & cornu__mesh_all(mesh), listed);
    return record_watch(to, CORNU_OP_ALL_REDUCE, all, *x, CORNU_NO_VALUE, x);
}

/* Adds an f32 output: how many elements of x, on all shards, are not finite. For those x - x is
 * nan, which does not equal itself; for the others it is 0. */
static CornuStatus count_not_finite(const Recorder *to, CornuValue x)
{
    const CornuProgramValue value = to->program->values[x];
    const CornuAttributes   number = { .convert = { .dtype = CORNU_F32 } };
    const CornuAttributes   differ = { .compare = { .comparison = CORNU_NOT_EQUAL } };
    const CornuAttributes   all = { .reduce = { .axes = CORNU_ALL_AXES } };
    CornuValue              y;
    CORNU__TRY(record_watch(to, CORNU_OP_SUBTRACT, (CornuAttributes){ 0 }, x, x, &y));
    CORNU__TRY(record_watch(to, CORNU_OP_COMPARE, differ, y, y, &y));
    CORNU__TRY(record_watch(to, CORNU_OP_CONVERT, number, y, CORNU_NO_VALUE, &y));
    if (value.type.shape.rank > 0)
        CORNU__TRY(record_watch(to, CORNU_OP_REDUCE_SUM, all, y, CORNU_NO_VALUE, &y));
    if (value.varies) CORNU__TRY(add_up(to, value.varies, &y));
    return cornu_program_output(to->program, y, -1);
}

CornuStatus cornu__watch(const CornuGraph *graph, CornuPrepared *prepared)
{
    const Recorder to = { prepared->program, graph->device };
    const int      values = prepared->program->value_count;
    prepared->watched = cornu__allocate((size_t)values, sizeof *prepared->watched);
    prepared->not_finite = cornu__allocate((size_t)values, sizeof *prepared->not_finite);
    if (!prepared->watched || !prepared->not_finite) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu_program_scope(prepared->program, "watch"));
    for (CornuValue v = 0; v < values; v++) {
        if (!cornu_dtype_is_float(prepared->program->values[v].type.dtype)) continue;
        CORNU__TRY(count_not_finite(&to, v));
        prepared->watched[prepared->watched_count++] = v;
    }
    return CORNU_OK;
}

/* The value in which the non-finite elements of v originate. */
static CornuValue find_origin(const CornuPrepared *prepared, CornuValue v)
{
    const CornuProgram *program = prepared->program;
    while (program->values[v].op >= 0) {
        const CornuProgramOp *op = &program->ops[program->values[v].op];
        const CornuValue     *in = cornu_program_operands(program, op);
        int                   k = 0;
        while (k < op->in_count && prepared->not_finite[in[k]] == 0.0F) k++;
        if (k == op->in_count) break;
        v = in[k];
    }
    return v;
}

static CornuStatus fail_at(const CornuGraph *graph, const CornuPrepared *prepared, CornuValue v)
{
    CornuText                text;
    const CornuProgram      *program = prepared->program;
    const CornuProgramValue *value = &program->values[v];
    const double             count = prepared->not_finite[v];
    cornu_type_print(&text, value->type);
    if (value->op >= 0) {
        const CornuProgramOp *op = &program->ops[value->op];
        return cornu__fail(CORNU_ERR_VALUE, "%s%s%s: %.0f elements of its result, %s, are nan or "
                           "infinite, but its operands are finite", op->scope,
                           *op->scope ? ": " : "", cornu_program_op_name(op), count, text.text);
    }
    const char *name = "a fed input";
    for (int i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].variable &&
            graph->inputs[i].variable->buffer == prepared->inputs[value->index])
            name = graph->inputs[i].variable->name;
    return cornu__fail(CORNU_ERR_VALUE, "%s: %.0f elements of %s are nan or infinite before "
                       "the step", name, count, text.text);
}

CornuStatus cornu__watch_check(const CornuGraph *graph, const CornuPrepared *prepared)
{
    const CornuProgram *program = prepared->program;
    const int           results = program->output_count - prepared->watched_count;
    const CornuType     type = cornu_scalar(CORNU_F32);
    CornuValue          first = CORNU_NO_VALUE;
    for (int i = 0; i < prepared->watched_count; i++)
        CORNU__TRY(cornu_buffer_read(
            prepared->outputs[results + i],
            cornu_array_from(&prepared->not_finite[prepared->watched[i]], type)));
    for (int i = 0; i < results; i++) {
        const CornuValue v = program->outputs[i].value;
        if (prepared->not_finite[v] != 0.0F && (first == CORNU_NO_VALUE || v < first)) first = v;
    }
    if (first == CORNU_NO_VALUE) return CORNU_OK;
    return fail_at(graph, prepared, find_origin(prepared, first));
}

void cornu_graph_watch(CornuGraph *graph, bool watch)
{
    graph->assignment_version += graph->watches != watch;   /* forces recompilation */
    graph->watches = watch;
}
