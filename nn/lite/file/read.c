/* Reading .tflite files that are not trusted: file.h. The numbers of fields are the schema's. */
#include "file.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/files/file_internal.h"
#include "read_internal.h"

enum { SCHEMA_VERSION = 3 };

/* Whether operand `tensor`, which nothing computes, is a constant without elements, of which files
 * have no bytes; it is made one then. */
static bool is_empty(CornuLiteGraph *graph, int tensor)
{
    CornuLiteTensor *empty = &graph->tensors[tensor];
    if (empty->data || cornu__lite_count(empty->shape, 1) != 0) return empty->data != NULL;
    empty->data = cornu__allocate(0, 1);
    if (!empty->data) graph->status = CORNU_ERR_MEMORY;
    return true;
}

/* Each tensor is computed once, after what it is computed from. */
static CornuStatus check_order(CornuLiteGraph *graph)
{
    bool *known = cornu__allocate((size_t)graph->tensor_count, sizeof *known);
    bool  good = known != NULL;
    if (!known) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->tensor_count; i++)
        known[i] = graph->tensors[i].data || graph->tensors[i].variable;
    for (int i = 0; i < graph->variable_count; i++) {
        good &= !known[graph->variables[i].now];
        known[graph->variables[i].now] = true;
    }
    for (int i = 0; i < graph->input_count; i++) {
        good &= !known[graph->inputs[i].tensor];
        known[graph->inputs[i].tensor] = true;
    }
    for (int i = 0; i < graph->operator_count && good; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; k < op->in_count; k++)
            good &= op->in[k] < 0 || known[op->in[k]] || is_empty(graph, op->in[k]);
        for (int k = 0; k < op->out_count; k++) {
            good &= !known[op->out[k]];
            known[op->out[k]] = true;
        }
    }
    for (int i = 0; i < graph->output_count && good; i++) good &= known[graph->outputs[i].tensor];
    for (int i = 0; i < graph->variable_count && good; i++) good &= known[graph->variables[i].next];
    cornu__release(known);
    CORNU__TRY(graph->status);
    return good ? CORNU_OK : cornu__lite_damaged("a tensor is computed twice, or read before it is "
                                                 "computed");
}

/* ---- Inputs and outputs ---- */

/* The signature's name of a tensor, or the tensor's. */
static const char *port_name(CornuLiteReader *reader, const CornuFlatVector *names, int tensor,
                             CornuLiteText *name)
{
    for (size_t i = 0; i < names->count && !reader->from.failed; i++) {
        const CornuFlatTable map = cornu__flat_element(&reader->from, names, i);
        const int32_t        number = cornu__flat_i32(&reader->from, &map, 1, 0);
        if (number >= 0 && number < reader->number_count && reader->numbers[number] == tensor)
            return cornu__lite_text(reader, name, &map, 0, reader->graph->tensors[tensor].name);
    }
    return reader->graph->tensors[tensor].name;
}

typedef void AddPort(CornuLiteGraph *graph, int tensor, const char *name);

static CornuStatus read_ports(CornuLiteReader *reader, const CornuFlatTable *subgraph, int slot,
                              const CornuFlatVector *names, AddPort *add)
{
    int          *numbers = NULL, count = 0;
    CornuLiteText name;
    CornuStatus status = cornu__lite_read_numbers(reader, subgraph, slot, false, &numbers, &count);
    if (!status && (size_t)count * (names->count + 1) > reader->from.size)
        status = cornu__lite_damaged("more inputs or outputs than its names could have");
    for (int i = 0; i < count && !status; i++) {
        if (numbers[i] < 0) {
            status = cornu__fail(CORNU_ERR_UNSUPPORTED, "an input or output is a resource");
            break;
        }
        add(reader->graph, numbers[i], port_name(reader, names, numbers[i], &name));
        status = reader->graph->status;
        if (!status) status = cornu__lite_take(reader, CORNU_LITE_MOST_NAME);
    }
    cornu__release(numbers);
    return status;
}

/* Its numbers of tensors, kept for the names of signatures. */
static CornuStatus read_main(CornuLiteReader *reader, const CornuFlatTable *subgraph,
                             const CornuFlatVector *inputs, const CornuFlatVector *outputs)
{
    int        *out = NULL, out_count = 0;
    CornuStatus status = cornu__lite_read_subgraph(reader, 0, NULL, 0, &out, &out_count);
    cornu__release(out);
    if (!status) status = read_ports(reader, subgraph, 1, inputs, cornu__lite_add_input);
    if (!status) status = read_ports(reader, subgraph, 2, outputs, cornu__lite_add_output);
    return status;
}

static CornuStatus read_graph(CornuLiteReader *reader, const CornuFlatTable *root)
{
    CornuFlat            *from = &reader->from;
    const CornuFlatVector signatures = cornu__flat_vector_at(from, root, 7, 4);
    CornuFlatTable        subgraph = { 0 }, signature = { 0 };
    CornuLiteText         name;
    if (cornu__flat_bits(from, root, 0, 4, 0) != SCHEMA_VERSION)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the schema has version %llu, expected %d",
                           (unsigned long long)cornu__flat_bits(from, root, 0, 4, 0),
                           SCHEMA_VERSION);
    reader->subgraphs = cornu__flat_vector_at(from, root, 2, 4);
    if (!reader->subgraphs.count) return cornu__lite_damaged("it has no subgraph");
    subgraph = cornu__flat_element(from, &reader->subgraphs, 0);
    if (signatures.count) signature = cornu__flat_element(from, &signatures, 0);
    if (cornu__flat_bits(from, &signature, 4, 4, 0))
        signature = (CornuFlatTable){ 0 };   /* of another subgraph */
    reader->codes = cornu__flat_vector_at(from, root, 1, 4);
    reader->buffers = cornu__flat_vector_at(from, root, 4, 4);
    const CornuFlatVector inputs = cornu__flat_vector_at(from, &signature, 0, 4);
    const CornuFlatVector outputs = cornu__flat_vector_at(from, &signature, 1, 4);
    reader->graph = cornu__lite_graph_create(cornu__lite_text(reader, &name, &subgraph, 4, "main"));
    if (!reader->graph) return CORNU_ERR_MEMORY;
    CORNU__TRY(read_main(reader, &subgraph, &inputs, &outputs));
    if (!reader->graph->output_count) return cornu__lite_damaged("it has no outputs");
    CORNU__TRY(cornu__lite_settle_variables(reader));
    return check_order(reader->graph);
}

CornuStatus cornu__lite_read(const void *bytes, size_t size, CornuLiteGraph **graph)
{
    CornuLiteReader reader = { .from = { .bytes = bytes, .size = size } };
    CornuFlatTable  root;
    *graph = NULL;
    if (!cornu__flat_open(&reader.from, "TFL3", &root))
        return cornu__lite_damaged("it does not begin with the identifier TFL3 and a table");
    CornuStatus status = read_graph(&reader, &root);
    cornu__release(reader.numbers);
    /* What is absent because of damage may have failed otherwise. */
    if (reader.from.failed && status != CORNU_ERR_MEMORY)
        status = cornu__lite_damaged("an offset or a length exceeds the file");
    if (status) cornu__lite_graph_free(reader.graph);
    else *graph = reader.graph;
    return status;
}

CornuStatus cornu__lite_open(const char *path, CornuLiteGraph **graph)
{
    CornuFileBytes file;
    *graph = NULL;
    CornuStatus status = cornu__file_read(&file, path);
    if (!status) {
        status = cornu__lite_read(file.bytes, file.size, graph);
        cornu__file_release(&file);
    }
    return status ? cornu__fail_prefix(status, path) : CORNU_OK;
}
