/* Running a graph: the ops needed for a list of fetches and for all assignments are copied into a
 * program, which the device compiles once. */
#include <string.h>

#include "../device/device_internal.h"
#include "graph_internal.h"

/* Extends `needed` to all values that the marked ones depend on. One pass backwards suffices, since
 * an op only uses earlier values. */
static void mark_needed(const CornuProgram *program, bool *needed)
{
    for (int i = program->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &program->ops[i];
        bool                  used = false;
        for (int k = 0; k < op->out_count; k++) used |= needed[op->out_first + k];
        const CornuValue *in = cornu_program_operands(program, op);
        for (int k = 0; used && k < op->in_count; k++) needed[in[k]] = true;
        for (int k = 0; k < op->out_count; k++) needed[op->out_first + k] = used;
    }
}

/* Copies the needed inputs and ops to `to`; map[v] becomes the new number of value v. */
static CornuStatus copy_needed(const CornuProgram *from, const bool *needed, CornuProgram *to,
                               CornuValue *map)
{
    for (int i = 0; i < from->input_count; i++) {
        CornuValue value = from->inputs[i];
        if (needed[value])
            CORNU__TRY(cornu_program_copy_input(to, from, value, &map[value]));
    }
    enum { USUAL = 8 };
    CornuValue usual[USUAL], out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        if (!needed[op->out_first]) continue;
        const CornuValue *in = cornu_program_operands(from, op);
        CornuValue       *mapped = usual;
        if (op->in_count > USUAL)
            mapped = cornu__allocate((size_t)op->in_count, sizeof *mapped);
        if (!mapped) return CORNU_ERR_MEMORY;
        for (int k = 0; k < op->in_count; k++) mapped[k] = map[in[k]];
        CornuStatus status = cornu__program_follow(to, op);
        if (!status)
            status = cornu_program_record(to, op->id, &op->attributes, mapped, op->in_count, out);
        if (mapped != usual) cornu__release(mapped);
        CORNU__TRY(status);
        for (int k = 0; k < op->out_count; k++) map[op->out_first + k] = out[k];
    }
    return CORNU_OK;
}

static void fix_unless_assigned(const CornuGraph *graph, int input, CornuProgram *to,
                                CornuValue value)
{
    if (cornu__lookup_find(&graph->assignment_of, graph->inputs[input].variable) < 0)
        cornu_program_fix_input(to, value);
}

/* The layouts of what is needed. */
static CornuStatus keep_layouts(const CornuGraph *graph, const bool *needed, const CornuValue *map,
                                CornuPrepared *prepared)
{
    if (graph->laid_count == 0) return CORNU_OK;
    prepared->laid = cornu__allocate((size_t)graph->laid_count, sizeof *prepared->laid);
    if (!prepared->laid) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->laid_count; i++) {
        const CornuValue value = graph->laid[i].tensor->value;
        if (needed[value])
            prepared->laid[prepared->laid_count++] = (CornuLaid){ map[value],
                                                                  graph->laid[i].layout };
    }
    return CORNU_OK;
}

/* The number of the input that assignment i writes. */
static int input_assigned(const CornuGraph *graph, int i)
{
    return cornu__lookup_find(&graph->input_of, graph->assignments[i].variable);
}

CornuStatus cornu__graph_lower(const CornuGraph *graph, CornuPrepared *prepared)
{
    const CornuProgram *from = graph->program;
    CornuProgram       *to = prepared->program;
    bool       *needed = cornu__allocate((size_t)from->value_count, sizeof *needed);
    CornuValue *map = cornu__allocate((size_t)from->value_count, sizeof *map);
    CornuStatus status = needed && map ? CORNU_OK : CORNU_ERR_MEMORY;
    if (status) goto done;

    for (int i = 0; i < prepared->fetch_count; i++) needed[prepared->fetches[i]->value] = true;
    for (int i = 0; i < graph->assignment_count; i++)
        needed[graph->assignments[i].tensor->value] = true;
    mark_needed(from, needed);
    for (int i = 0; i < graph->assignment_count; i++)  /* an assigned variable is an input */
        needed[from->inputs[input_assigned(graph, i)]] = true;
    if ((status = copy_needed(from, needed, to, map))) goto done;
    if ((status = keep_layouts(graph, needed, map, prepared))) goto done;

    prepared->inputs = cornu__allocate((size_t)to->input_count, sizeof *prepared->inputs);
    if (!prepared->inputs) { status = CORNU_ERR_MEMORY; goto done; }
    for (int i = 0, next = 0; i < from->input_count; i++)
        if (needed[from->inputs[i]])
            prepared->inputs[next++] = graph->inputs[i].variable
                                     ? graph->inputs[i].variable->buffer : graph->inputs[i].feed;
    for (int i = 0; i < from->input_count && graph->concurrent; i++)
        if (needed[from->inputs[i]] && graph->inputs[i].variable)
            fix_unless_assigned(graph, i, to, map[from->inputs[i]]);
    for (int i = 0; !status && i < graph->assignment_count; i++) {
        const CornuValue input = map[from->inputs[input_assigned(graph, i)]];
        status = cornu_program_output(to, map[graph->assignments[i].tensor->value],
                                      to->values[input].index);
    }
    for (int i = 0; !status && i < prepared->fetch_count; i++)
        status = cornu_program_output(to, map[prepared->fetches[i]->value], -1);
done:
    cornu__release(needed);
    cornu__release(map);
    return status;
}

CornuProgram *cornu__graph_lowered(const CornuGraph *graph, CornuTensor *const *fetches, int count)
{
    CornuPrepared prepared = { .fetch_count = count, .program = cornu_program_create(),
                               .fetches = cornu__allocate((size_t)count, sizeof *fetches) };
    CornuStatus   status = prepared.fetches ? CORNU_OK : CORNU_ERR_MEMORY;
    if (prepared.program && !status) {
        memcpy(prepared.fetches, fetches, (size_t)count * sizeof *fetches);
        status = cornu__graph_lower(graph, &prepared);
    }
    cornu__release(prepared.inputs);
    cornu__release(prepared.fetches);
    cornu__release(prepared.laid);
    if (!status) return prepared.program;
    cornu_program_free(prepared.program);
    return cornu__null();
}

/* The axes of the mesh along which the shards have slices of an input's axis 0. */
static unsigned dealt_over(const CornuGraph *graph, const CornuGraphInput *input, unsigned batch)
{
    const bool sliced = input->variable && input->variable->spread == CORNU_SLICED;
    return graph->whole_batch && (sliced || input->dealt) ? batch : 0;
}

/* The shards of a device without a mesh are one axis. In a graph of whole batches nothing varies
 * along the axes of the batch before it is cut along them. */
CornuStatus cornu__graph_partition(const CornuGraph *graph, CornuPrepared *prepared)
{
    const CornuDevice  *device = graph->device;
    const CornuProgram *program = graph->program;
    const CornuMesh     line = { 1, { device->shards }, { "batch" } };
    const CornuMesh    *mesh = device->mesh.axes ? &device->mesh : &line;
    const unsigned      batch = device->mesh.axes ? device->data : 1;
    if (device->mesh.axes == 0 && !graph->whole_batch) return CORNU_OK;
    CornuLayout *layouts = cornu__allocate((size_t)program->input_count + 1, sizeof *layouts);
    if (!layouts) return CORNU_ERR_MEMORY;
    for (int i = 0, next = 0; next < prepared->program->input_count; i++) {
        const CornuGraphInput *input = &graph->inputs[i];
        CornuBuffer           *buffer = input->variable ? input->variable->buffer : input->feed;
        if (buffer != prepared->inputs[next]) continue;
        if (input->variable) layouts[next] = input->variable->layout;
        const unsigned dealt = dealt_over(graph, input, batch);
        if (dealt) layouts[next].cut[0] = (unsigned char)dealt;
        next++;
    }
    CornuPartition *partition = graph->whole_batch ? graph->partition : device->partition;
    CornuProgram   *parts = partition(prepared->program, mesh, graph->whole_batch ? 0 : batch,
                                      layouts, prepared->laid, prepared->laid_count);
    cornu__release(layouts);
    if (!parts) return cornu_error_take();
    cornu_program_free(prepared->program);
    prepared->program = parts;
    return CORNU_OK;
}

static CornuExecutable *compile(const CornuGraph *graph, const CornuPrepared *prepared)
{
    CornuExecutable *executable = cornu_device_compile(graph->device, prepared->program);
    if (!executable || !graph->concurrent) return executable;
    CornuExecutable *twin = cornu_executable_twin(executable, prepared->inputs);
    cornu_executable_release(executable);
    return twin;
}

static CornuStatus fill_prepared(CornuGraph *graph, CornuPrepared *prepared,
                                 CornuTensor *const *fetches, int count)
{
    for (int i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].variable)
            CORNU__TRY(cornu__variable_settle(graph->inputs[i].variable));
    prepared->fetch_count = count;
    prepared->assignment_version = graph->assignment_version;
    prepared->fetches = cornu__allocate((size_t)count, sizeof *prepared->fetches);
    prepared->program = cornu_program_create();
    if (!prepared->program) return cornu_error_take();
    if (!prepared->fetches) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) prepared->fetches[i] = fetches[i];
    CORNU__TRY(cornu__graph_lower(graph, prepared));
    CORNU__TRY(cornu__graph_partition(graph, prepared));
    if (graph->watches) CORNU__TRY(cornu__watch(graph, prepared));
    prepared->outputs = cornu__allocate((size_t)prepared->program->output_count,
                                        sizeof *prepared->outputs);
    if (!prepared->outputs) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        const CornuProgram *program = prepared->program;
        const CornuValue    value = program->outputs[graph->assignment_count + i].value;
        CornuBuffer *buffer = cornu_buffer_create(
            graph->device, cornu_program_buffer_type(program, value, graph->device->shards),
            .name = "a fetched value", .per_shard = program->values[value].varies);
        if (!buffer) return cornu_error_status();
        prepared->outputs[graph->assignment_count + i] = buffer;
    }
    for (int i = 0; i < prepared->watched_count; i++) {
        CornuBuffer *count = cornu_buffer_create(graph->device, cornu_scalar(CORNU_F32));
        if (!count) return cornu_error_status();
        prepared->outputs[graph->assignment_count + prepared->fetch_count + i] = count;
    }
    prepared->executable = compile(graph, prepared);
    return prepared->executable ? CORNU_OK : cornu_error_status();
}

static CornuPrepared *find_prepared(const CornuGraph *graph, CornuTensor *const *fetches, int count)
{
    for (CornuPrepared *p = graph->prepared; p; p = p->next)
        if (p->assignment_version == graph->assignment_version && p->fetch_count == count &&
            (count == 0 || !memcmp(p->fetches, fetches, (size_t)count * sizeof *fetches)))
            return p;
    return NULL;
}

/* A variable whose memory has moved since the graph read it; NULL if there is none. */
static const CornuVariable *moved_variable(const CornuGraph *graph)
{
    for (int i = 0; i < graph->part_count; i++)
        if (graph->parts[i].part->whole != graph->parts[i].whole) return graph->parts[i].part;
    for (int i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].variable && graph->inputs[i].variable->whole)
            return graph->inputs[i].variable;
    return NULL;
}

bool cornu_graph_is_current(const CornuGraph *graph) { return !moved_variable(graph); }

static CornuStatus check_variables(const CornuGraph *graph)
{
    const CornuVariable *moved = moved_variable(graph);
    if (!moved) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: was packed after this graph read it; record a new "
                       "graph", moved->name);
}

CornuStatus cornu_graph_prepare(CornuGraph *graph, CornuTensor *const *fetches, int count)
{
    if (!graph || cornu_error_pending())
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_run: no graph given");
    for (int i = 0; i < count; i++)
        if (!fetches[i] || fetches[i]->graph != graph)
            return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_run: fetch %d is %s", i,
                               fetches[i] ? "a tensor of another graph" : "NULL");
    CORNU__TRY(check_variables(graph));
    if ((graph->last = find_prepared(graph, fetches, count))) return CORNU_OK;

    CORNU__TRY(cornu__rewrite(graph, NULL));
    CornuPrepared *prepared = cornu__allocate(1, sizeof *prepared);
    if (!prepared) return CORNU_ERR_MEMORY;
    CornuStatus status = fill_prepared(graph, prepared, fetches, count);
    /* Linked even on failure, so that the graph frees it; its version, -1, is never found. */
    prepared->next = graph->prepared;
    graph->prepared = prepared;
    if (status) {
        prepared->assignment_version = -1;
        cornu_error_take();
        return status;
    }
    graph->last = prepared;
    return CORNU_OK;
}

static CornuStatus read_fetched(const CornuGraph *graph, const CornuTensor *tensor,
                                const CornuBuffer *buffer, CornuArray to)
{
    const CornuProgramValue *value = &graph->program->values[tensor->value];
    const CornuType type = cornu__sharded(value->type, cornu_graph_shards(graph));
    CornuText       a, b;
    if (graph->whole_batch && value->varies && cornu_type_equal(type, to.type))
        to.type = value->type;    /* the one shard's */
    if (!value->varies || graph->whole_batch || graph->device->mesh.axes == 0)
        return cornu_buffer_read(buffer, to);
    if (cornu_type_equal(type, to.type)) return cornu__parts_read(buffer, 0, to);
    return cornu__fail(CORNU_ERR_SHAPE, "the array read into is %s, expected %s",
                       cornu_type_print(&a, to.type), cornu_type_print(&b, type));
}

CornuStatus cornu_run(CornuGraph *graph, CornuTensor *const *fetches, int count, CornuArray *out)
{
    CORNU__NEED(graph);
    if (count > 0) CORNU__NEED(fetches);
    if (count > 0) CORNU__NEED(out);
    CORNU__TRY(cornu_graph_prepare(graph, fetches, count));
    const CornuPrepared *prepared = graph->last;
    CORNU__TRY(cornu_executable_run(prepared->executable, prepared->inputs, prepared->outputs));
    CornuBuffer **fetched = prepared->outputs + prepared->program->output_count - count -
                            prepared->watched_count;
    for (int i = 0; i < count; i++)
        CORNU__TRY(read_fetched(graph, fetches[i], fetched[i], out[i]));
    return prepared->watched_count ? cornu__watch_check(graph, prepared) : CORNU_OK;
}

void cornu_graph_set_concurrent(CornuGraph *graph, bool concurrent)
{
    CORNU__NEED_OR(graph, );
    graph->concurrent = concurrent;
}

CornuExecutable *cornu_graph_executable(const CornuGraph *graph)
{
    CORNU__NEED_OR(graph, NULL);
    return graph->last ? graph->last->executable : NULL;
}

const CornuStatistics *cornu_graph_statistics(const CornuGraph *graph)
{
    CORNU__NEED_OR(graph, NULL);
    return graph->last ? cornu_executable_statistics(graph->last->executable) : NULL;
}

const CornuProgram *cornu_graph_program(const CornuGraph *graph)
{
    CORNU__NEED_OR(graph, NULL);
    return graph->last ? graph->last->program : NULL;
}
