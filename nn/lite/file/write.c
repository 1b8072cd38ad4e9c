/* Writing .tflite files: file.h. The numbers of fields are the schema's. */
#include "file.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/files/file_internal.h"
#include "../../formats/flatbuffer_internal.h"
#include "options_internal.h"

enum { SCHEMA_VERSION = 3, CODE_IN_BYTE = 127, BUFFER_ALIGN = 16 };

typedef struct {
    const CornuLiteGraph *graph;
    CornuMessage         *to;
    int                  *codes;         /* of each operator: its index among operator codes */
    int                  *first;         /* the first operator of each code */
    int                   code_count;
    int                  *buffers;       /* of each tensor; 0: none */
    int                  *data;          /* of each buffer from 1 on: the tensor that has it */
    int                   buffer_count;  /* with the empty one, without that of metadata */
} Writer;

static void point_text(CornuMessage *to, const CornuFlatField *field, const char *text)
{
    cornu__flat_point(to, field->place, cornu__flat_text(to, text));
}

static size_t put_integers(CornuMessage *to, const int *values, int count)
{
    return cornu__flat_vector(to, values, (size_t)count, sizeof *values, 4);
}

/* ---- What refers to each other by numbers ---- */

static void list_codes(Writer *writer)
{
    const CornuLiteGraph *graph = writer->graph;
    for (int i = 0; i < graph->operator_count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        int                      code = 0;
        while (code < writer->code_count) {
            const CornuLiteOperator *other = &graph->operators[writer->first[code]];
            if (other->code == op->code &&
                cornu__lite_version(graph, other) == cornu__lite_version(graph, op))
                break;
            code++;
        }
        if (code == writer->code_count) writer->first[writer->code_count++] = i;
        writer->codes[i] = code;
    }
}

static void list_buffers(Writer *writer)
{
    const CornuLiteGraph *graph = writer->graph;
    writer->buffer_count = 1;
    for (int i = 0; i < graph->tensor_count; i++) {
        const CornuLiteTensor *tensor = &graph->tensors[i];
        int                    buffer = 1;
        if (!tensor->data) continue;
        while (buffer < writer->buffer_count) {
            const CornuLiteTensor *other = &graph->tensors[writer->data[buffer]];
            if (other->bytes == tensor->bytes && !memcmp(other->data, tensor->data, tensor->bytes))
                break;
            buffer++;
        }
        if (buffer == writer->buffer_count) writer->data[writer->buffer_count++] = i;
        writer->buffers[i] = buffer;
    }
}

/* ---- Tables ---- */

static size_t put_code(const Writer *writer, int code)
{
    const CornuLiteOperator *op = &writer->graph->operators[writer->first[code]];
    const int                number = op->code;
    CornuFlatField           fields[] = {
        { .slot = 0, .size = 1, .bits = (uint64_t)(number < CODE_IN_BYTE ? number : CODE_IN_BYTE) },
        { .slot = 2, .size = 4, .bits = (uint64_t)cornu__lite_version(writer->graph, op) },
        { .slot = 3, .size = 4, .bits = (uint64_t)number },
    };
    return cornu__flat_table(writer->to, fields, 3);
}

static size_t put_scales(CornuMessage *to, const CornuLiteQuantization *quantization)
{
    const size_t   count = (size_t)quantization->count;
    CornuFlatField fields[] = {
        { .slot = 2, .offset = true }, { .slot = 3, .offset = true },
        { .slot = 6, .size = 4, .bits = (uint64_t)quantization->axis },
    };
    const size_t table = cornu__flat_table(to, fields, 3);
    cornu__flat_point(to, fields[0].place,
                      cornu__flat_vector(to, quantization->scales, count, sizeof(float), 4));
    cornu__flat_point(to, fields[1].place,
                      cornu__flat_vector(to, quantization->zero_points, count, sizeof(int64_t), 8));
    return table;
}

/* Unknown extents are 1 in the shape and -1 in its signature. */
static size_t put_tensor(const Writer *writer, int i)
{
    const CornuLiteTensor *tensor = &writer->graph->tensors[i];
    CornuMessage          *to = writer->to;
    int                    shape[CORNU_MAX_RANK], signature[CORNU_MAX_RANK];
    bool                   open = false;
    for (int k = 0; k < tensor->shape.rank; k++) {
        signature[k] = (int)tensor->shape.extent[k];
        shape[k] = signature[k] < 0 ? 1 : signature[k];
        open |= signature[k] < 0;
    }
    CornuFlatField fields[] = {
        { .slot = 0, .offset = true },
        { .slot = 1, .size = 1, .bits = (uint64_t)tensor->dtype },
        { .slot = 2, .size = 4, .bits = (uint64_t)writer->buffers[i] },
        { .slot = 3, .offset = true },
        { .slot = 4, .offset = tensor->quantization.count > 0 },
        { .slot = 5, .size = tensor->variable, .bits = 1 },
        { .slot = 7, .offset = open },
        { .slot = 8, .size = 1, .bits = 1 },
    };
    const size_t table = cornu__flat_table(to, fields, 8);
    cornu__flat_point(to, fields[0].place, put_integers(to, shape, tensor->shape.rank));
    point_text(to, &fields[3], tensor->name);
    if (fields[4].offset)
        cornu__flat_point(to, fields[4].place, put_scales(to, &tensor->quantization));
    if (open)
        cornu__flat_point(to, fields[6].place, put_integers(to, signature, tensor->shape.rank));
    return table;
}

static size_t put_options(CornuMessage *to, const CornuLiteOptions *options,
                          const CornuLiteTable *kind)
{
    CornuFlatField fields[CORNU_LITE_MOST_FIELDS] = { 0 };
    int            count = 0;
    for (int i = 0; i < kind->count; i++) {
        const CornuLiteField *field = &kind->fields[i];
        CornuFlatField       *put = &fields[count];
        put->slot = field->slot;
        if (field->kind == CORNU_LITE_EXTENTS) {
            put->offset = true;
        } else if (field->kind == CORNU_LITE_FLOAT) {
            put->size = 4;
            memcpy(&put->bits, (const char *)options + field->offset, sizeof(float));
        } else {
            const bool byte = field->kind == CORNU_LITE_BYTE || field->kind == CORNU_LITE_FLAG;
            put->size = byte ? 1 : 4;
            put->bits = (uint32_t)cornu__lite_get(options, field);
        }
        count++;
    }
    const size_t table = cornu__flat_table(to, fields, count);
    for (int i = 0; i < count; i++)
        if (fields[i].offset)
            cornu__flat_point(to, fields[i].place,
                              put_integers(to, options->extents, options->extent_count));
    return table;
}

static size_t put_operator(const Writer *writer, int i)
{
    const CornuLiteOperator *op = &writer->graph->operators[i];
    const CornuLiteTable    *kind = cornu__lite_table(op->code);
    CornuMessage            *to = writer->to;
    CornuFlatField           fields[] = {
        { .slot = 0, .size = 4, .bits = (uint64_t)writer->codes[i] },
        { .slot = 1, .offset = true },
        { .slot = 2, .offset = true },
        { .slot = 3, .size = 1, .bits = (uint64_t)kind->number },
        { .slot = 4, .offset = kind->number != 0 },
    };
    const size_t table = cornu__flat_table(to, fields, 5);
    cornu__flat_point(to, fields[1].place, put_integers(to, op->in, op->in_count));
    cornu__flat_point(to, fields[2].place, put_integers(to, op->out, op->out_count));
    if (fields[4].offset)
        cornu__flat_point(to, fields[4].place, put_options(to, &op->options, kind));
    return table;
}

static size_t put_ports(CornuMessage *to, const CornuLitePort *ports, int count)
{
    const size_t place = cornu__flat_vector(to, NULL, 0, 4, 4);
    const uint32_t length = (uint32_t)count;
    if (!to->failed) memcpy(to->bytes + place, &length, sizeof length);
    for (int i = 0; i < count; i++) cornu__put(to, &ports[i].tensor, sizeof ports[i].tensor);
    return place;
}

typedef size_t PutElement(const Writer *writer, int i);

/* A vector of tables. */
static void point_tables(const Writer *writer, size_t gap, int count, PutElement *put)
{
    const size_t place = cornu__flat_offsets(writer->to, (size_t)count);
    cornu__flat_point(writer->to, gap, place);
    for (int i = 0; i < count; i++)
        cornu__flat_point(writer->to, place + 4 + 4 * (size_t)i, put(writer, i));
}

static size_t put_subgraph(const Writer *writer, int i)
{
    const CornuLiteGraph *graph = writer->graph;
    CornuMessage         *to = writer->to;
    CornuFlatField        fields[] = {
        { .slot = 0, .offset = true }, { .slot = 1, .offset = true }, { .slot = 2, .offset = true },
        { .slot = 3, .offset = true }, { .slot = 4, .offset = true },
    };
    (void)i;   /* the only one */
    const size_t table = cornu__flat_table(to, fields, 5);
    point_tables(writer, fields[0].place, graph->tensor_count, put_tensor);
    cornu__flat_point(to, fields[1].place, put_ports(to, graph->inputs, graph->input_count));
    cornu__flat_point(to, fields[2].place, put_ports(to, graph->outputs, graph->output_count));
    point_tables(writer, fields[3].place, graph->operator_count, put_operator);
    point_text(to, &fields[4], graph->name ? graph->name : "main");
    return table;
}

/* The empty one, the constants, the runtime's version. */
static size_t put_buffer(const Writer *writer, int i)
{
    const bool     last = i == writer->buffer_count;
    char           runtime[16];
    CornuFlatField data = { .slot = 0, .offset = i > 0 };
    const size_t   table = cornu__flat_table(writer->to, &data, 1);
    if (last) cornu__lite_runtime(writer->graph, runtime);
    const CornuLiteTensor *tensor =
        i > 0 && !last ? &writer->graph->tensors[writer->data[i]] : NULL;
    const void  *bytes = last ? runtime : tensor ? tensor->data : NULL;
    const size_t size = last ? sizeof runtime : tensor ? tensor->bytes : 0;
    if (i > 0)
        cornu__flat_point(writer->to, data.place,
                          cornu__flat_vector(writer->to, bytes, size, 1, BUFFER_ALIGN));
    return table;
}

static size_t put_metadata(const Writer *writer, int i)
{
    CornuFlatField fields[] = {
        { .slot = 0, .offset = true },
        { .slot = 1, .size = 4, .bits = (uint64_t)writer->buffer_count },
    };
    (void)i;   /* the only one */
    const size_t table = cornu__flat_table(writer->to, fields, 2);
    point_text(writer->to, &fields[0], "min_runtime_version");
    return table;
}

/* The names of inputs or outputs. */
static void point_names(CornuMessage *to, size_t gap, const CornuLitePort *ports, int count)
{
    const size_t place = cornu__flat_offsets(to, (size_t)count);
    cornu__flat_point(to, gap, place);
    for (int i = 0; i < count; i++) {
        CornuFlatField fields[] = {
            { .slot = 0, .offset = true },
            { .slot = 1, .size = 4, .bits = (uint64_t)ports[i].tensor },
        };
        cornu__flat_point(to, place + 4 + 4 * (size_t)i, cornu__flat_table(to, fields, 2));
        point_text(to, &fields[0], ports[i].name);
    }
}

static size_t put_signature(const Writer *writer, int i)
{
    const CornuLiteGraph *graph = writer->graph;
    CornuFlatField        fields[] = {
        { .slot = 0, .offset = true }, { .slot = 1, .offset = true }, { .slot = 2, .offset = true },
        { .slot = 4, .size = 4, .bits = 0 },
    };
    (void)i;   /* the only one */
    const size_t table = cornu__flat_table(writer->to, fields, 4);
    point_names(writer->to, fields[0].place, graph->inputs, graph->input_count);
    point_names(writer->to, fields[1].place, graph->outputs, graph->output_count);
    point_text(writer->to, &fields[2], "serving_default");
    return table;
}

/* Buffers come last: their bytes are most of the file. */
static void put_file(const Writer *writer)
{
    CornuMessage  *to = writer->to;
    const size_t   root = cornu__flat_begin(to, "TFL3");
    CornuFlatField fields[] = {
        { .slot = 0, .size = 4, .bits = SCHEMA_VERSION },
        { .slot = 1, .offset = true }, { .slot = 2, .offset = true }, { .slot = 3, .offset = true },
        { .slot = 4, .offset = true }, { .slot = 6, .offset = true }, { .slot = 7, .offset = true },
    };
    cornu__flat_point(to, root, cornu__flat_table(to, fields, 7));
    point_tables(writer, fields[1].place, writer->code_count, put_code);
    point_tables(writer, fields[2].place, 1, put_subgraph);
    point_text(to, &fields[3], "cornu");
    point_tables(writer, fields[5].place, 1, put_metadata);
    point_tables(writer, fields[6].place, 1, put_signature);
    point_tables(writer, fields[4].place, writer->buffer_count + 1, put_buffer);
}

/* Before bytes are taken; with room for all that is not constants. */
static CornuStatus check_size(const CornuLiteGraph *graph)
{
    size_t size = 0;
    for (int i = 0; i < graph->tensor_count; i++) size += graph->tensors[i].bytes;
    if (size < (size_t)INT32_MAX - (64u << 20)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the constants have %zu bytes; a .tflite file is "
                       "smaller than 2 GiB", size);
}

CornuStatus cornu__lite_write(const CornuLiteGraph *graph, CornuMessage *file)
{
    CORNU__TRY(graph->status);
    CORNU__TRY(check_size(graph));
    const size_t operators = (size_t)graph->operator_count, tensors = (size_t)graph->tensor_count;
    Writer writer = {
        .graph = graph, .to = file,
        .codes = cornu__allocate(operators, sizeof *writer.codes),
        .first = cornu__allocate(operators, sizeof *writer.first),
        .buffers = cornu__allocate(tensors, sizeof *writer.buffers),
        .data = cornu__allocate(tensors + 1, sizeof *writer.data),
    };
    const bool room = writer.codes && writer.first && writer.buffers && writer.data;
    if (room) {
        list_codes(&writer);
        list_buffers(&writer);
        put_file(&writer);
    }
    cornu__release(writer.codes);
    cornu__release(writer.first);
    cornu__release(writer.buffers);
    cornu__release(writer.data);
    return room && !file->failed ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__lite_save(const CornuLiteGraph *graph, const char *path)
{
    CornuMessage file = { 0 };
    CornuStatus  status = cornu__lite_write(graph, &file);
    status = status ? cornu__fail_prefix(status, path)
                    : cornu_file_write(path, file.bytes, file.size);
    cornu__release(file.bytes);
    return status;
}
