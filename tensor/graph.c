/* Graphs: recording ops, inputs, variables. Running is in run.c. */
#include <stdio.h>
#include <string.h>

#include "graph_internal.h"

CornuGraph *cornu_graph_create(CornuDevice *device)
{
    if (!device || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_graph_create: no device given");
    CornuGraph *graph = cornu__allocate(1, sizeof *graph);
    if (!graph) return cornu__null();
    graph->device = device;
    graph->program = cornu_program_create();
    if (graph->program) return graph;
    cornu_graph_free(graph);
    return cornu__null();
}

static void prepared_free(CornuPrepared *prepared)
{
    for (int i = 0; prepared->outputs && i < prepared->program->output_count; i++)
        cornu_buffer_free(prepared->outputs[i]);
    cornu__release(prepared->outputs);
    cornu__release(prepared->inputs);
    cornu__release(prepared->fetches);
    cornu__release(prepared->watched);
    cornu__release(prepared->not_finite);
    cornu_program_free(prepared->program);
    cornu_executable_release(prepared->executable);
    cornu__release(prepared);
}

void cornu_graph_free(CornuGraph *graph)
{
    if (!graph) return;
    for (CornuPrepared *next, *prepared = graph->prepared; prepared; prepared = next) {
        next = prepared->next;
        prepared_free(prepared);
    }
    for (int i = 0; i < graph->input_count; i++) {
        cornu_buffer_free(graph->inputs[i].feed);
        if (graph->inputs[i].is_whole) cornu__whole_release(graph->inputs[i].variable);
    }
    for (int i = 0; i < graph->handle_count; i++) cornu__release(graph->handles[i]);
    cornu__release(graph->handles);
    cornu__release(graph->tensors);
    cornu__release(graph->inputs);
    cornu__release(graph->parts);
    cornu__release(graph->assignments);
    cornu_program_free(graph->program);
    cornu__release(graph);
}

CornuDevice *cornu_graph_device(const CornuGraph *graph)
{
    CORNU__NEED_OR(graph, NULL);
    return graph->device;
}

CornuStatus cornu_graph_scope(CornuGraph *graph, const char *name)
{
    CORNU__NEED(graph);
    return cornu_program_scope(graph->program, name);
}

const char *cornu__scope(const CornuGraph *graph)
{
    return graph->program->scope ? graph->program->scope : "";
}

/* ---- Tensors ---- */

CornuType cornu_tensor_type(const CornuTensor *tensor)
{
    CORNU__NEED_OR(tensor, (CornuType){ 0 });
    return cornu_program_type(tensor->graph->program, tensor->value);
}

CornuShape  cornu_tensor_shape(const CornuTensor *tensor)
{
    return cornu_tensor_type(tensor).shape;
}

CornuGraph *cornu_tensor_graph(const CornuTensor *tensor)
{
    CORNU__NEED_OR(tensor, NULL);
    return tensor->graph;
}

bool cornu_tensor_varies(const CornuTensor *tensor)
{
    return tensor->graph->program->values[tensor->value].varies;
}

CornuTensor *cornu__tensor(CornuGraph *graph, CornuValue value)
{
    int space = graph->tensor_space;
    if (value >= space) {
        if (cornu__reserve(&graph->tensors, &graph->tensor_space, space, value + 1 - space,
                           sizeof *graph->tensors))
            return cornu__null();
        memset(graph->tensors + space, 0,
               (size_t)(graph->tensor_space - space) * sizeof *graph->tensors);
    }
    if (graph->tensors[value]) return graph->tensors[value];
    if (cornu__reserve(&graph->handles, &graph->handle_space, graph->handle_count, 1,
                       sizeof *graph->handles))
        return cornu__null();
    CornuTensor *tensor = cornu__allocate(1, sizeof *tensor);
    if (!tensor) return cornu__null();
    *tensor = (CornuTensor){ .graph = graph, .value = value };
    graph->handles[graph->handle_count++] = tensor;
    return graph->tensors[value] = tensor;
}

/* ---- Recording ---- */

static CornuTensor *record(CornuGraph *graph, CornuOpId id, const CornuAttributes *attributes,
                           const CornuValue *in, int count, CornuTensor **out)
{
    CornuValue values[CORNU_MAX_OUTPUTS];
    if (cornu_program_record(graph->program, id, attributes, in, count, values))
        return cornu__null();
    const int out_count = cornu__result_count(id, attributes);
    for (int i = 0; i < out_count; i++)
        if (!(out[i] = cornu__tensor(graph, values[i]))) return NULL;
    return out[0];
}

CornuTensor *cornu__record(CornuOpId id, const CornuAttributes *attributes,
                           CornuTensor *const *in, int count, CornuTensor **out)
{
    enum { USUAL = 8 };
    CornuValue  usual[USUAL], *values = usual;
    CornuGraph *graph = count > 0 && in[0] ? in[0]->graph : NULL;
    for (int i = 0; i < count; i++) {
        if (!in[i])
            return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: operand %d is NULL",
                                    cornu_op_name(id), i);
        if (in[i]->graph != graph)
            return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                    "%s: operands 0 and %d belong to two graphs",
                                    cornu_op_name(id), i);
    }
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: expected at least one operand",
                                cornu_op_name(id));
    if (count > USUAL && !(values = cornu__allocate((size_t)count, sizeof *values)))
        return cornu__null();
    for (int i = 0; i < count; i++) values[i] = in[i]->value;
    CornuTensor *result = record(graph, id, attributes, values, count, out);
    if (values != usual) cornu__release(values);
    return result;
}

CornuTensor *cornu__record0(CornuGraph *graph, CornuOpId id, const CornuAttributes *attributes)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: no graph given", cornu_op_name(id));
    return record(graph, id, attributes, NULL, 0, out);
}

CornuTensor *cornu__record1(CornuOpId id, CornuTensor *x)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, NULL, &x, 1, out);
}

CornuTensor *cornu__record2(CornuOpId id, CornuTensor *a, CornuTensor *b)
{
    CornuTensor *out[CORNU_MAX_OUTPUTS];
    return cornu__record(id, NULL, (CornuTensor *[]){ a, b }, 2, out);
}

/* ---- Inputs and variables ---- */

typedef CornuStatus Declare(CornuProgram *program, CornuType type, CornuValue *out);

static CornuTensor *add_input(CornuGraph *graph, Declare *declare, CornuType type,
                              CornuGraphInput input)
{
    CornuValue value;
    if (cornu__reserve(&graph->inputs, &graph->input_space, graph->input_count, 1,
                       sizeof *graph->inputs) ||
        declare(graph->program, type, &value))
        return cornu__null();
    graph->inputs[graph->input_count++] = input;
    if (input.is_whole) input.variable->users++;
    return cornu__tensor(graph, value);
}

CornuTensor *cornu__graph_parameter(CornuGraph *graph, CornuType type)
{
    return add_input(graph, cornu_program_input, type, (CornuGraphInput){ 0 });
}

/* An input with a buffer of `stored`, which is what cornu_graph_feed will expect. */
static CornuTensor *add_feed(CornuGraph *graph, Declare *declare, CornuType type,
                             CornuType stored)
{
    char name[32];
    snprintf(name, sizeof name, "input %d", graph->input_count);
    CornuBuffer *feed = cornu_buffer_create(graph->device, stored, .use = CORNU_USE_INFEED,
                                            .name = name,
                                            .per_shard = declare == cornu_program_shard_input);
    if (!feed) return NULL;
    CornuTensor *tensor = add_input(graph, declare, type, (CornuGraphInput){ .feed = feed });
    if (!tensor && (graph->input_count == 0 || graph->inputs[graph->input_count - 1].feed != feed))
        cornu_buffer_free(feed);
    return tensor;
}

CornuTensor *cornu_graph_input(CornuGraph *graph, CornuType type)
{
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_graph_input: no graph given");
    return add_feed(graph, cornu_program_input, type, type);
}

CornuTensor *cornu_graph_shard_input(CornuGraph *graph, CornuType type)
{
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_graph_shard_input: no graph given");
    if (type.shape.rank >= CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_SHAPE, "cornu_graph_shard_input: rank %d, expected at "
                                "most %d", type.shape.rank, CORNU_MAX_RANK - 1);
    return add_feed(graph, cornu_program_shard_input, type,
                    cornu__sharded(type, cornu_device_shards(graph->device)));
}

/* Where the graph keeps what is fed. */
static CornuStatus find_feed(const CornuTensor *input, const char *who, CornuBuffer **feed)
{
    if (!input) return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the input is NULL", who);
    const CornuGraph        *graph = input->graph;
    const CornuProgramValue *value = &graph->program->values[input->value];
    *feed = value->op == -1 ? graph->inputs[value->index].feed : NULL;
    if (*feed) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the tensor is no input of its graph", who);
}

CornuStatus cornu_graph_feed(CornuTensor *input, CornuArray array)
{
    CornuBuffer *feed;
    CORNU__TRY(find_feed(input, "cornu_graph_feed", &feed));
    return cornu__fail_prefix(cornu_buffer_write(feed, array), "feed");
}

CornuStatus cornu_graph_feed_part(CornuTensor *input, int64_t first, CornuArray array)
{
    CornuBuffer *feed;
    CORNU__TRY(find_feed(input, "cornu_graph_feed_part", &feed));
    return cornu__fail_prefix(cornu_buffer_write_part(feed, first, array), "feed");
}

/* All of a packed variable. */
static CornuTensor *whole_value(CornuGraph *graph, CornuVariable *whole)
{
    CornuTensor *value = cornu_read(graph, whole);
    return whole->spread == CORNU_SLICED ? cornu_op_all_gather(value, NULL) : value;
}

/* The entry of a packed variable, made when it is first asked for; NULL with a pending error. */
static CornuGraphPart *part_of(CornuGraph *graph, CornuVariable *variable)
{
    for (int i = 0; i < graph->part_count; i++)
        if (graph->parts[i].part == variable) return &graph->parts[i];
    CornuTensor *value = cornu_part(whole_value(graph, variable->whole), variable);
    if (!value || cornu__reserve(&graph->parts, &graph->part_space, graph->part_count, 1,
                                 sizeof *graph->parts))
        return cornu__null();
    CornuGraphPart *part = &graph->parts[graph->part_count++];
    *part = (CornuGraphPart){ .part = variable, .whole = variable->whole, .value = value };
    return part;
}

CornuTensor *cornu_read(CornuGraph *graph, CornuVariable *variable)
{
    if (!graph || !variable || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_read: no %s given",
                                graph ? "variable" : "graph");
    if (variable->device != graph->device)
        return cornu__fail_null(CORNU_ERR_DEVICE,
                                "%s: the variable is on device %s, the graph on %s",
                                variable->name, cornu_device_name(variable->device),
                                cornu_device_name(graph->device));
    if (variable->whole) {
        const CornuGraphPart *part = part_of(graph, variable);
        return part ? part->value : NULL;
    }
    for (int i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].variable == variable)
            return cornu__tensor(graph, graph->program->inputs[i]);
    return add_input(graph, variable->spread == CORNU_SHARED ? cornu_program_input
                                                             : cornu_program_shard_input,
                     cornu__variable_shard_type(variable),
                     (CornuGraphInput){ .variable = variable,
                                        .is_whole = variable->segments != NULL });
}

/* The whole is assigned what is assigned to its parts, and of the others what they are. */
static CornuStatus assign_part(CornuGraph *graph, CornuVariable *part, CornuTensor *tensor)
{
    CornuVariable *whole = part->whole;
    if (whole->spread == CORNU_SLICED && cornu_tensor_varies(tensor))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: assigned is what varies from shard to shard, "
                           "expected a value that all have in common", part->name);
    CornuGraphPart *own = part_of(graph, part);
    CornuTensor    *old = own ? whole_value(graph, whole) : NULL;
    CornuTensor   **values = cornu__allocate((size_t)whole->segment_count, sizeof(CornuTensor *));
    if (old && values) own->assigned = tensor;
    for (int i = 0; i < whole->segment_count && old && values; i++) {
        const CornuSegment *segment = &whole->segments[i];
        for (int k = 0; k < graph->part_count && !values[i]; k++)
            if (graph->parts[k].part == segment->part) values[i] = graph->parts[k].assigned;
        if (!values[i]) values[i] = cornu__elements(old, segment->first, segment->count);
    }
    CornuTensor *packed = old && values ? cornu_pack(whole, values) : NULL;
    if (packed && whole->spread == CORNU_SLICED) packed = cornu_op_shard_slice(packed, NULL);
    cornu__release(values);
    return packed ? cornu_assign(whole, packed) : cornu_error_take();
}

CornuStatus cornu_assign(CornuVariable *variable, CornuTensor *tensor)
{
    if (!variable || !tensor)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_assign: no %s given",
                           variable ? "tensor" : "variable");
    CornuText       a, b;
    const CornuType type = cornu__variable_shard_type(variable);
    if (!cornu_type_equal(type, cornu_tensor_type(tensor)))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the variable is %s, assigned is %s",
                           variable->name, cornu_type_print(&a, type),
                           cornu_type_print(&b, cornu_tensor_type(tensor)));
    CornuGraph *graph = tensor->graph;
    if (variable->whole) return assign_part(graph, variable, tensor);
    if (!cornu_read(graph, variable)) { /* so that the program has an input to alias */
        CornuStatus status = cornu_error_status();
        cornu_error_take();
        return status;
    }
    graph->assignment_version++;
    for (int i = 0; i < graph->assignment_count; i++)
        if (graph->assignments[i].variable == variable) {
            graph->assignments[i].tensor = tensor;
            return CORNU_OK;
        }
    CORNU__TRY(cornu__reserve(&graph->assignments, &graph->assignment_space,
                              graph->assignment_count, 1, sizeof *graph->assignments));
    graph->assignments[graph->assignment_count++] =
        (CornuAssignment){ .variable = variable, .tensor = tensor };
    return CORNU_OK;
}
