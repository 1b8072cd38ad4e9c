/* Variables in a graph: reading, assigning, packing and unpacking them. */
#include "../graph_internal.h"

/* Elements first to first + count - 1 of a flat tensor. */
static CornuTensor *elements(CornuTensor *flat, int64_t first, int64_t count)
{
    return cornu_op_slice(flat, &first, &count);
}

CornuTensor *cornu_part(CornuTensor *packed, const CornuVariable *part)
{
    const int64_t count = cornu_type_count(part->type);
    return cornu_op_reshape(elements(packed, part->first, count), part->type.shape);
}

CornuTensor *cornu_pack(const CornuVariable *whole, CornuTensor *const *parts)
{
    return cornu_op_pack(parts, whole->segment_count, cornu__segment_of(whole->type.dtype),
                         whole->type.shape.extent[0]);
}

/* The complete value of a packed variable. */
static CornuTensor *whole_value(CornuGraph *graph, CornuVariable *whole)
{
    CornuTensor *value = cornu_read(graph, whole);
    return whole->spread == CORNU_SLICED ? cornu_op_all_gather(value, NULL) : value;
}

/* The entry of a part, made on first use, with its value as cornu_read has it; NULL with a pending
 * error. */
static CornuGraphPart *part_of(CornuGraph *graph, CornuVariable *variable)
{
    const int known = cornu__lookup_find(&graph->part_of, variable);
    if (known >= 0 && graph->parts[known].value) return &graph->parts[known];
    CornuTensor *value = cornu_part(whole_value(graph, variable->whole), variable);
    if (value && known >= 0) {
        graph->parts[known].value = value;
        return &graph->parts[known];
    }
    if (!value || cornu__reserve(&graph->parts, &graph->part_space, graph->part_count, 1,
                                 sizeof *graph->parts) ||
        cornu__lookup_set(&graph->part_of, variable, graph->part_count))
        return cornu__null();
    CornuGraphPart *part = &graph->parts[graph->part_count++];
    *part = (CornuGraphPart){ .part = variable, .whole = variable->whole, .value = value };
    return part;
}

/* The type of the variable's value in a graph: of whole batches all that the shards have slices
 * of. */
static CornuType type_in(const CornuGraph *graph, const CornuVariable *variable)
{
    CornuType type = cornu__variable_shard_type(variable);
    if (graph->whole_batch && variable->spread == CORNU_SLICED)
        type.shape.extent[0] *= cornu_device_shards(graph->device);
    return type;
}

/* Whether the graph can read it: one of whole batches has no shards. */
static CornuStatus check_spread(const CornuGraph *graph, const CornuVariable *variable)
{
    const bool apart = variable->spread == CORNU_PER_SHARD || variable->spread == CORNU_DUPLICATED;
    if (!graph->whole_batch) return CORNU_OK;
    if (apart)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: each of %d shards has its own value, as of "
                           "a stateful layer or an optimizer of groups, in a graph of whole "
                           "batches; expected a value that they share, or one shard",
                           variable->name, cornu_device_shards(graph->device));
    if (cornu_type_equal(type_in(graph, variable), variable->type)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %lld rows in slices of %d shards in a graph of "
                       "whole batches, expected rows that divide", variable->name,
                       (long long)variable->type.shape.extent[0],
                       cornu_device_shards(graph->device));
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
    const int assigned = graph->sequential ? cornu__lookup_find(&graph->assignment_of, variable)
                                           : -1;
    if (assigned >= 0) return graph->assignments[assigned].tensor;
    const int known = cornu__lookup_find(&graph->input_of, variable);
    if (known >= 0 && known < graph->input_count && graph->inputs[known].variable == variable)
        return cornu__tensor(graph, graph->program->inputs[known]);
    if (check_spread(graph, variable)) return cornu__null();
    /* As on a device of one shard, where a variable is sliced only if it is packed. */
    const bool per_shard = variable->spread != CORNU_SHARED &&
                           (variable->segments || !graph->whole_batch);
    return cornu__graph_add_input(graph, type_in(graph, variable), per_shard,
                                  (CornuGraphInput){ .variable = variable,
                                                     .is_whole = variable->segments != NULL });
}

CornuTensor *cornu_read_assigned(CornuGraph *graph, CornuVariable *variable)
{
    CornuTensor *value = cornu_read(graph, variable);
    if (!value) return NULL;
    const int assigned = cornu__lookup_find(&graph->assignment_of, variable);
    const int part = cornu__lookup_find(&graph->part_of, variable);
    if (assigned >= 0) value = graph->assignments[assigned].tensor;
    if (part >= 0 && graph->parts[part].assigned) value = graph->parts[part].assigned;
    return value;
}

/* Assigns to the whole: the values assigned to its parts, and the old values of the others. */
static CornuStatus assign_part(CornuGraph *graph, CornuVariable *part, CornuTensor *tensor)
{
    CornuVariable *whole = part->whole;
    if (whole->spread == CORNU_SLICED && cornu_tensor_varies(tensor))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the assigned value varies from shard to "
                           "shard, expected one common to all", part->name);
    CornuGraphPart *own = part_of(graph, part);
    CornuTensor    *old = own ? whole_value(graph, whole) : NULL;
    CornuTensor   **values = cornu__allocate((size_t)whole->segment_count, sizeof(CornuTensor *));
    if (old && values && !graph->sequential) own->assigned = tensor;
    for (int i = 0; i < whole->segment_count && old && values; i++) {
        const CornuSegment *segment = &whole->segments[i];
        const int part = segment->part ? cornu__lookup_find(&graph->part_of, segment->part) : -1;
        if (part >= 0) values[i] = graph->parts[part].assigned;
        if (graph->sequential && segment->part == own->part) values[i] = tensor;
        if (!values[i]) values[i] = elements(old, segment->first, segment->count);
    }
    CornuTensor *packed = old && values ? cornu_pack(whole, values) : NULL;
    if (packed && whole->spread == CORNU_SLICED) packed = cornu_op_shard_slice(packed, NULL);
    cornu__release(values);
    CORNU__TRY(packed ? cornu_assign(whole, packed) : cornu_error_take());
    if (graph->sequential) own->value = tensor;
    return CORNU_OK;
}

/* Parts of a variable that has been assigned are cut anew when they are read next. */
static void forget_parts(CornuGraph *graph, const CornuVariable *whole)
{
    for (int i = 0; i < graph->part_count && graph->sequential; i++)
        if (graph->parts[i].whole == whole) graph->parts[i].value = NULL;
}

CornuStatus cornu_assign(CornuVariable *variable, CornuTensor *tensor)
{
    if (!variable || !tensor)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_assign: no %s given",
                           variable ? "tensor" : "variable");
    CornuText       a, b;
    const CornuType type = type_in(tensor->graph, variable);
    if (!cornu_type_equal(type, cornu_tensor_type(tensor)))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the variable is %s, the assigned value %s",
                           variable->name, cornu_type_print(&a, type),
                           cornu_type_print(&b, cornu_tensor_type(tensor)));
    CornuGraph *graph = tensor->graph;
    if (variable->whole) return assign_part(graph, variable, tensor);
    if (!cornu_read(graph, variable)) { /* the program needs an input to alias */
        CornuStatus status = cornu_error_status();
        cornu_error_take();
        return status;
    }
    graph->assignment_version++;
    if (variable->segments) forget_parts(graph, variable);
    const int known = cornu__lookup_find(&graph->assignment_of, variable);
    if (known >= 0) {
        graph->assignments[known].tensor = tensor;
        return CORNU_OK;
    }
    CORNU__TRY(cornu__reserve(&graph->assignments, &graph->assignment_space,
                              graph->assignment_count, 1, sizeof *graph->assignments));
    CORNU__TRY(cornu__lookup_set(&graph->assignment_of, variable, graph->assignment_count));
    graph->assignments[graph->assignment_count++] =
        (CornuAssignment){ .variable = variable, .tensor = tensor };
    return CORNU_OK;
}
