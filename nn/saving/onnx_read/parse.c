/* The messages of ONNX files: model, graph, node, attribute, value. */
#include "tensors_internal.h"

#include <string.h>

typedef struct {
    CornuArena         *arena;
    CornuReadFiles    **files;       /* NULL: none may be read */
    const char         *path;        /* of the model */
    CornuReadFunctions *functions;   /* NULL: none */
} Reader;

/* The number of fields of a message by their number, up to MOST - 1. */
enum { MOST = 32 };

static CornuStatus count_fields(const CornuProtobufField *message, const char *what,
                                size_t counts[MOST])
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    memset(counts, 0, MOST * sizeof *counts);
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged(what);
    while (cornu__next_field(&fields, &field))
        if (field.field < MOST) counts[field.field]++;
    return fields.failed ? cornu__onnx_damaged(what) : CORNU_OK;
}

/* After a failure *text is what it was. */
static CornuStatus read_text(const Reader *reader, const CornuProtobufField *field,
                             const char **text)
{
    if (field->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a string");
    const char *read = cornu__arena_text(reader->arena, field->bytes, field->size);
    if (!read) return CORNU_ERR_MEMORY;
    *text = read;
    return CORNU_OK;
}

#define TAKE(reader, to, count)                                                            \
    do {                                                                                   \
        (to) = cornu__arena_take((reader)->arena, (count), sizeof *(to));                  \
        if (!(to)) return CORNU_ERR_MEMORY;                                                \
    } while (0)

/* ---- Attributes and nodes ---- */

/* A list of integers or floats that may come in several fields. */
static CornuStatus read_numbers(const Reader *reader, const CornuProtobufField *message,
                                CornuReadAttribute *to)
{
    for (int pass = 0; pass < 2; pass++) {
        CornuFields        fields = cornu__fields(message->bytes, message->size);
        CornuProtobufField field;
        int64_t            integers = 0, numbers = 0;
        while (cornu__next_field(&fields, &field)) {
            if (field.field != 7 && field.field != 8) continue;
            const CornuProtobufKind kind = field.field == 7 ? CORNU_PROTOBUF_FIXED32
                                                            : CORNU_PROTOBUF_VARINT;
            const int64_t count = cornu__count_numbers(&field, kind);
            CornuFields   list = cornu__fields(field.bytes, field.size);
            if (count < 0 || count > INT32_MAX / 8) return cornu__onnx_damaged("an attribute");
            for (int64_t i = 0; i < count && pass == 1; i++) {
                uint64_t bits = field.bits;
                if (field.kind == CORNU_PROTOBUF_BYTES) cornu__next_number(&list, kind, &bits);
                if (field.field == 7)
                    ((double *)to->numbers)[numbers + i] = (double)cornu__float_of(bits);
                else
                    ((int64_t *)to->integers)[integers + i] = (int64_t)bits;
            }
            if (field.field == 7) numbers += count;
            else integers += count;
            if (numbers > INT32_MAX / 8 || integers > INT32_MAX / 8)
                return cornu__onnx_damaged("an attribute");
        }
        if (pass == 1) return CORNU_OK;
        to->number_count = (int)numbers;
        to->integer_count = (int)integers;
        TAKE(reader, to->numbers, (size_t)numbers);
        TAKE(reader, to->integers, (size_t)integers);
    }
    return CORNU_OK;
}

static CornuStatus read_attribute(const Reader *reader, const CornuProtobufField *message,
                                  CornuReadAttribute *to)
{
    size_t             counts[MOST];
    CornuProtobufField field;
    CornuReadTensor    tensor;
    CORNU__TRY(count_fields(message, "an attribute", counts));
    to->name = "";
    to->bytes = *message;
    TAKE(reader, to->texts, counts[9]);
    if (counts[7] || counts[8]) CORNU__TRY(read_numbers(reader, message, to));
    CornuFields fields = cornu__fields(message->bytes, message->size);
    while (cornu__next_field(&fields, &field)) {
        switch (field.field) {
        case 1: CORNU__TRY(read_text(reader, &field, &to->name)); break;
        case 2: to->number = (double)cornu__float_of(field.bits); break;
        case 3: to->whole = (int64_t)field.bits; break;
        case 4: CORNU__TRY(read_text(reader, &field, &to->text)); break;
        case 5:
            if (field.kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("an attribute");
            CORNU__TRY(cornu__onnx_read_tensor(reader->arena, field.bytes, field.size,
                                               reader->files, reader->path, &tensor));
            to->tensor = tensor.array;
            to->tensor_type = tensor.onnx_type;
            break;
        case 6: to->graph = field; break;
        case 9: CORNU__TRY(read_text(reader, &field, &to->texts[to->text_count++])); break;
        }
    }
    return CORNU_OK;
}

static CornuStatus read_node(const Reader *reader, const CornuProtobufField *message,
                             CornuReadNode *node)
{
    size_t             counts[MOST];
    CornuProtobufField field;
    CORNU__TRY(count_fields(message, "a node", counts));
    *node = (CornuReadNode){ .op = "", .domain = "", .name = "" };
    TAKE(reader, node->in, counts[1]);
    TAKE(reader, node->out, counts[2]);
    TAKE(reader, node->attributes, counts[5]);
    CornuFields fields = cornu__fields(message->bytes, message->size);
    while (cornu__next_field(&fields, &field)) {
        CornuStatus status = CORNU_OK;
        switch (field.field) {
        case 1: status = read_text(reader, &field, &node->in[node->in_count++]); break;
        case 2: status = read_text(reader, &field, &node->out[node->out_count++]); break;
        case 3: status = read_text(reader, &field, &node->name); break;
        case 4: status = read_text(reader, &field, &node->op); break;
        case 5:
            status = read_attribute(reader, &field, &node->attributes[node->attribute_count++]);
            break;
        case 7: status = read_text(reader, &field, &node->domain); break;
        }
        if (status) return cornu__fail_prefix(status, *node->name ? node->name : node->op);
    }
    node->own_count = node->in_count;
    return CORNU_OK;
}

/* ---- Inputs and outputs ---- */

static CornuStatus read_extent(const Reader *reader, const CornuProtobufField *message,
                               CornuReadInfo *info)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    CornuShape        *shape = &info->type.shape;
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a shape");
    if (shape->rank == CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.100s has more than %d axes", info->name,
                           CORNU_MAX_RANK);
    info->symbols[shape->rank] = "";
    shape->extent[shape->rank] = CORNU_NONE;
    while (cornu__next_field(&fields, &field)) {
        if (field.field == 1 && (int64_t)field.bits >= 0)
            shape->extent[shape->rank] = (int64_t)field.bits;
        if (field.field == 2)
            CORNU__TRY(read_text(reader, &field, &info->symbols[shape->rank]));
    }
    shape->rank++;
    return fields.failed ? cornu__onnx_damaged("a shape") : CORNU_OK;
}

static CornuStatus read_tensor_type(const Reader *reader, const CornuProtobufField *message,
                                    CornuReadInfo *info)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field, extent;
    info->type.shape.rank = -1;
    while (cornu__next_field(&fields, &field)) {
        if (field.field == 1) info->onnx_type = (int64_t)field.bits;
        if (field.field != 2) continue;
        if (field.kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a type");
        info->type.shape.rank = 0;
        CornuFields extents = cornu__fields(field.bytes, field.size);
        while (cornu__next_field(&extents, &extent))
            if (extent.field == 1) CORNU__TRY(read_extent(reader, &extent, info));
        if (extents.failed) return cornu__onnx_damaged("a shape");
    }
    return fields.failed ? cornu__onnx_damaged("a type") : CORNU_OK;
}

static CornuStatus read_info(const Reader *reader, const CornuProtobufField *message,
                             CornuReadInfo *info)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field, inner;
    *info = (CornuReadInfo){ .name = "", .type.shape.rank = -1 };
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("an input or output");
    while (cornu__next_field(&fields, &field)) {
        if (field.field == 1) CORNU__TRY(read_text(reader, &field, &info->name));
        if (field.field != 2) continue;
        if (field.kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a type");
        CornuFields types = cornu__fields(field.bytes, field.size);
        while (cornu__next_field(&types, &inner))
            if (inner.field == 1 && inner.kind == CORNU_PROTOBUF_BYTES)
                CORNU__TRY(read_tensor_type(reader, &inner, info));
        if (types.failed) return cornu__onnx_damaged("a type");
    }
    if (fields.failed) return cornu__onnx_damaged("an input or output");
    if (!info->onnx_type) return CORNU_OK;
    return cornu__fail_prefix(cornu__onnx_dtype(info->onnx_type, &info->type.dtype), info->name);
}

/* ---- Graphs ---- */

static CornuStatus read_nodes(const Reader *reader, const CornuProtobufField *message,
                              CornuReadGraph *graph)
{
    CornuProtobufField nodes = *message, field;
    size_t             counts[MOST];
    if (reader->functions) CORNU__TRY(cornu__onnx_expand(reader->functions, message, &nodes));
    CORNU__TRY(count_fields(&nodes, "a graph", counts));
    TAKE(reader, graph->nodes, counts[1]);
    CornuFields fields = cornu__fields(nodes.bytes, nodes.size);
    while (cornu__next_field(&fields, &field))
        if (field.field == 1)
            CORNU__TRY(read_node(reader, &field, &graph->nodes[graph->node_count++]));
    return CORNU_OK;
}

static CornuStatus read_graph(const Reader *reader, const CornuProtobufField *message,
                              CornuReadGraph *graph)
{
    size_t             counts[MOST];
    CornuProtobufField field;
    CORNU__TRY(count_fields(message, "a graph", counts));
    *graph = (CornuReadGraph){ .name = "" };
    if (counts[15])
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "sparse initializers are not supported");
    CORNU__TRY(read_nodes(reader, message, graph));
    TAKE(reader, graph->tensors, counts[5]);
    TAKE(reader, graph->inputs, counts[11]);
    TAKE(reader, graph->outputs, counts[12]);
    CornuFields fields = cornu__fields(message->bytes, message->size);
    while (cornu__next_field(&fields, &field)) {
        switch (field.field) {
        case 2: CORNU__TRY(read_text(reader, &field, &graph->name)); break;
        case 5:
            if (field.kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a tensor");
            CORNU__TRY(cornu__onnx_read_tensor(reader->arena, field.bytes, field.size,
                                               reader->files, reader->path,
                                               &graph->tensors[graph->tensor_count++]));
            break;
        case 11: CORNU__TRY(read_info(reader, &field, &graph->inputs[graph->input_count++])); break;
        case 12:
            CORNU__TRY(read_info(reader, &field, &graph->outputs[graph->output_count++]));
            break;
        }
    }
    return CORNU_OK;
}

static CornuStatus read_opset(const Reader *reader, const CornuProtobufField *message,
                              int64_t *opset)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    const char        *domain = "";
    int64_t            version = 0;
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("the opset");
    while (cornu__next_field(&fields, &field)) {
        if (field.field == 1) CORNU__TRY(read_text(reader, &field, &domain));
        if (field.field == 2) version = (int64_t)field.bits;
    }
    if (!*domain || !strcmp(domain, "ai.onnx")) *opset = version;
    return fields.failed ? cornu__onnx_damaged("the opset") : CORNU_OK;
}

static CornuStatus read_model(Reader *reader, const CornuProtobufField *message,
                              CornuReadModel *model)
{
    size_t             counts[MOST];
    CornuProtobufField field;
    *model = (CornuReadModel){ .opset = 0 };
    CORNU__TRY(count_fields(message, "it", counts));
    if (counts[7] != 1) return cornu__onnx_damaged("it");
    CornuFields fields = cornu__fields(message->bytes, message->size);
    while (cornu__next_field(&fields, &field))
        if (field.field == 8) CORNU__TRY(read_opset(reader, &field, &model->opset));
    CORNU__TRY(cornu__onnx_functions(reader->arena, message, model->opset, &reader->functions));
    fields = cornu__fields(message->bytes, message->size);
    while (cornu__next_field(&fields, &field))
        if (field.field == 7) CORNU__TRY(read_graph(reader, &field, &model->graph));
    return CORNU_OK;
}

CornuStatus cornu__onnx_parse(CornuArena *arena, const void *bytes, size_t size,
                              const char *path, CornuReadModel *model)
{
    CornuReadFiles *files = NULL;
    Reader          reader = { .arena = arena, .files = path ? &files : NULL, .path = path };
    const CornuProtobufField message = { .kind = CORNU_PROTOBUF_BYTES, .bytes = bytes,
                                         .size = size };
    const CornuStatus status = read_model(&reader, &message, model);
    cornu__onnx_close_files(&files);
    return status;
}

CornuStatus cornu__onnx_parse_graph(CornuArena *arena, const CornuProtobufField *field,
                                    CornuReadGraph *graph)
{
    return read_graph(&(const Reader){ .arena = arena }, field, graph);
}
