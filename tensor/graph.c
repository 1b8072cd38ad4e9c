/* Graphs: their tensors and inputs. record.c records ops, ops/assign.c reads and assigns variables,
 * run.c runs the graph. */
#include <stdio.h>
#include <string.h>

#include "../device/device_internal.h"
#include "graph_internal.h"

CornuGraph *cornu_graph_create(CornuDevice *device)
{
    if (!device || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_graph_create: no device given");
    CornuGraph *graph = cornu__allocate(1, sizeof *graph);
    if (!graph) return cornu__null();
    graph->device = cornu__device_retain(device);
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
    cornu__release(prepared->laid);
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
    cornu__release(graph->customs);
    cornu__release(graph->laid);
    cornu__lookup_clear(&graph->input_of);
    cornu__lookup_clear(&graph->part_of);
    cornu__lookup_clear(&graph->assignment_of);
    cornu_program_free(graph->program);
    cornu__device_release(graph->device);
    cornu__release(graph);
}

CornuStatus cornu__tensor_lay(CornuTensor *x, CornuLayout layout)
{
    CornuGraph *graph = x->graph;
    CORNU__TRY(cornu__reserve(&graph->laid, &graph->laid_space, graph->laid_count, 1,
                              sizeof *graph->laid));
    graph->laid[graph->laid_count++] = (CornuTensorLayout){ x, layout };
    return CORNU_OK;
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

void cornu_graph_set_sequential(CornuGraph *graph)
{
    if (graph) graph->sequential = true;
}

int cornu_graph_shards(const CornuGraph *graph)
{
    CORNU__NEED_OR(graph, 0);
    return graph->whole_batch ? 1 : cornu_device_shards(graph->device);
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

/* ---- Inputs ---- */

CornuTensor *cornu__graph_add_input(CornuGraph *graph, CornuType type, bool per_shard,
                                    CornuGraphInput input)
{
    CornuValue value;
    if (cornu__reserve(&graph->inputs, &graph->input_space, graph->input_count, 1,
                       sizeof *graph->inputs) ||
        (input.variable &&
         cornu__lookup_set(&graph->input_of, input.variable, graph->input_count)) ||
        (per_shard ? cornu_program_shard_input : cornu_program_input)(graph->program, type, &value))
        return cornu__null();
    graph->inputs[graph->input_count++] = input;
    if (input.is_whole) input.variable->users++;
    return cornu__tensor(graph, value);
}

CornuTensor *cornu__graph_parameter(CornuGraph *graph, CornuType type)
{
    return cornu__graph_add_input(graph, type, false, (CornuGraphInput){ 0 });
}

/* An input with a buffer of type `stored`; dealt: each shard has its rows there. */
static CornuTensor *add_feed(CornuGraph *graph, CornuType type, bool per_shard, CornuType stored,
                             bool dealt)
{
    char name[32];
    snprintf(name, sizeof name, "input %d", graph->input_count);
    CornuBuffer *feed = cornu_buffer_create(graph->device, stored, .use = CORNU_USE_INFEED,
                                            .name = name,
                                            .per_shard = graph->whole_batch ? dealt : per_shard);
    if (!feed) return NULL;
    CornuTensor *tensor =
        cornu__graph_add_input(graph, type, per_shard,
                               (CornuGraphInput){ .feed = feed, .dealt = dealt });
    if (!tensor && (graph->input_count == 0 || graph->inputs[graph->input_count - 1].feed != feed))
        cornu_buffer_free(feed);
    return tensor;
}

CornuTensor *cornu_graph_input(CornuGraph *graph, CornuType type)
{
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_graph_input: no graph given");
    return add_feed(graph, type, false, type, false);
}

CornuTensor *cornu_graph_shard_input(CornuGraph *graph, CornuType type)
{
    if (!graph || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_graph_shard_input: no graph given");
    if (type.shape.rank >= CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_SHAPE, "cornu_graph_shard_input: rank %d, expected at "
                                "most %d", type.shape.rank, CORNU_MAX_RANK - 1);
    if (!graph->whole_batch)
        return add_feed(graph, type, true, cornu__parts_type(graph->device, type), false);
    const int shards = cornu_device_shards(graph->device);
    CornuType slice = type;
    if (type.shape.rank == 0 || type.shape.extent[0] % shards != 0)
        return add_feed(graph, type, true, type, false);
    slice.shape.extent[0] /= shards;
    return add_feed(graph, type, true, cornu__parts_type(graph->device, slice), true);
}

/* The buffer of a fed input, and the type of what it is fed. */
static CornuStatus find_feed(const CornuTensor *input, const char *who, CornuBuffer **feed,
                             CornuType *type)
{
    if (!input) return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the input is NULL", who);
    const CornuGraph        *graph = input->graph;
    const CornuProgramValue *value = &graph->program->values[input->value];
    *feed = value->op == -1 ? graph->inputs[value->index].feed : NULL;
    *type = value->varies ? cornu__sharded(value->type, cornu_graph_shards(graph)) : value->type;
    if (*feed) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the tensor is not an input, expected one from "
                       "cornu_graph_input", who);
}

static CornuStatus write_feed(const CornuTensor *input, CornuBuffer *feed, int64_t first,
                              CornuArray array)
{
    const CornuGraph        *graph = input->graph;
    const CornuProgramValue *value = &graph->program->values[input->value];
    return (graph->whole_batch ? graph->inputs[value->index].dealt : value->varies)
         ? cornu__parts_write(feed, first, array) : cornu_buffer_write_part(feed, first, array);
}

CornuStatus cornu_graph_feed(CornuTensor *input, CornuArray array)
{
    CornuBuffer *feed;
    CornuType    type;
    CornuText    a, b;
    CORNU__TRY(find_feed(input, "cornu_graph_feed", &feed, &type));
    if (cornu_type_equal(type, cornu_buffer_type(feed)))
        return cornu__fail_prefix(cornu_buffer_write(feed, array), "feed");
    if (!cornu_type_equal(type, array.type))
        return cornu__fail(CORNU_ERR_SHAPE, "feed: the array is %s, expected %s",
                           cornu_type_print(&a, array.type), cornu_type_print(&b, type));
    return cornu__fail_prefix(write_feed(input, feed, 0, array), "feed");
}

CornuStatus cornu_graph_feed_part(CornuTensor *input, int64_t first, CornuArray array)
{
    CornuBuffer *feed;
    CornuType    type;
    CORNU__TRY(find_feed(input, "cornu_graph_feed_part", &feed, &type));
    return cornu__fail_prefix(write_feed(input, feed, first, array), "feed");
}
