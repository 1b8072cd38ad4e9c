/* Reading .tflite files that are not trusted: file.h. The numbers of fields are the schema's. */
#include "file.h"

#include <math.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../formats/file_internal.h"
#include "../../formats/flatbuffer_internal.h"
#include "options_internal.h"

enum {
    SCHEMA_VERSION = 3, CODE_IN_BYTE = 127, CUSTOM = 32,
    MOST_NAME = 200,              /* bytes of a name; longer ones are cut */
    MOST_SHARED = 16,             /* copies of the file's bytes: tables can be shared */
};

typedef struct {
    CornuFlat       from;
    CornuLiteGraph *graph;
    CornuFlatVector codes, buffers;
    size_t          copied;       /* bytes, of names, constants and lists */
} Reader;

static CornuStatus damaged(const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "not a .tflite file, or damaged: %s", what);
}

/* Whether so many bytes more may be copied. */
static CornuStatus take(Reader *reader, size_t bytes)
{
    if (bytes > SIZE_MAX - reader->copied ||
        (reader->copied += bytes) / MOST_SHARED > reader->from.size)
        return cornu__fail(CORNU_ERR_FORMAT, "damaged: its tensors take more than %d times the "
                           "bytes of the file", MOST_SHARED);
    return CORNU_OK;
}

/* A string of a table, cut, or `usual`. */
typedef struct { char text[MOST_NAME + 1]; } Name;
static const char *text_of(Reader *reader, Name *name, const CornuFlatTable *table, int slot,
                           const char *usual)
{
    const CornuFlatVector text = cornu__flat_vector_at(&reader->from, table, slot, 1);
    if (!text.given) return usual;
    const size_t size = text.count < MOST_NAME ? text.count : MOST_NAME;
    for (size_t i = 0; i < size; i++)   /* control characters would garble messages */
        name->text[i] = text.bytes[i] < ' ' || text.bytes[i] == 127 ? '?' : (char)text.bytes[i];
    name->text[size] = 0;
    return name->text;
}

static int32_t integer_at(const CornuFlatVector *vector, size_t i)
{
    int32_t value;
    memcpy(&value, vector->bytes + 4 * i, sizeof value);
    return value;
}

/* ---- Tensors ---- */

/* Extents of the shape, with -1 where the signature has it. */
static CornuStatus read_shape(Reader *reader, const CornuFlatTable *table, const char *name,
                              CornuShape *shape)
{
    const CornuFlatVector extents = cornu__flat_vector_at(&reader->from, table, 0, 4);
    const CornuFlatVector signature = cornu__flat_vector_at(&reader->from, table, 7, 4);
    if (extents.count > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" has %zu axes, expected at "
                           "most %d", name, extents.count, CORNU_MAX_RANK);
    *shape = (CornuShape){ .rank = (int)extents.count };
    for (int i = 0; i < shape->rank; i++) {
        const bool open = signature.count == extents.count &&
                          integer_at(&signature, (size_t)i) == -1;
        shape->extent[i] = open ? CORNU_NONE : integer_at(&extents, (size_t)i);
        if (!open && shape->extent[i] < 0)
            return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\" has an extent of %lld", name,
                               (long long)shape->extent[i]);
    }
    return CORNU_OK;
}

/* The bytes of the tensor's buffer; none for a tensor that is computed. */
static CornuStatus read_buffer(Reader *reader, const CornuFlatTable *table, const char *name,
                               CornuFlatVector *data)
{
    const uint64_t buffer = cornu__flat_bits(&reader->from, table, 2, 4, 0);
    *data = (CornuFlatVector){ 0 };
    if (cornu__flat_bits(&reader->from, table, 10, 4, 0))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" has its data in another file",
                           name);
    if (buffer == 0) return CORNU_OK;
    if (buffer >= reader->buffers.count)
        return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\" has buffer %llu of %zu", name,
                           (unsigned long long)buffer, reader->buffers.count);
    const CornuFlatTable held = cornu__flat_element(&reader->from, &reader->buffers,
                                                    (size_t)buffer);
    *data = cornu__flat_vector_at(&reader->from, &held, 0, 1);
    if (cornu__flat_bits(&reader->from, &held, 1, 8, 0) > 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" has its data after the model, "
                           "as in files of over 2 GiB", name);
    return CORNU_OK;
}

/* Of a constant, which must have all the bytes that its shape needs; the product is checked. */
static CornuStatus check_data(const CornuLiteTensor *tensor, const CornuFlatVector *data)
{
    const size_t size = cornu__lite_dtype_size(tensor->dtype);
    size_t       count = 1;
    CornuText    text;
    for (int i = 0; i < tensor->shape.rank; i++) {
        const int64_t extent = tensor->shape.extent[i];
        if (extent < 0)
            return cornu__fail(CORNU_ERR_FORMAT, "the constant \"%s\" has an unknown extent",
                               tensor->name);
        if (extent > 0 && count > data->count / (size_t)extent) count = data->count + 1;
        else count *= (size_t)extent;
    }
    if (count <= data->count / size && count * size == data->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "the constant \"%s\" has %zu bytes, expected those of %s "
                       "%s", tensor->name, data->count, cornu__lite_dtype_name(tensor->dtype),
                       cornu_shape_print(&text, tensor->shape));
}

/* Zero is a number of the tensor. */
static bool is_zero_point(CornuLiteDtype dtype, int64_t zero)
{
    switch (dtype) {
    case CORNU_LITE_I8: return zero >= INT8_MIN && zero <= INT8_MAX;
    case CORNU_LITE_U8: return zero >= 0 && zero <= UINT8_MAX;
    default:            return zero == 0;
    }
}

static CornuStatus read_scales(Reader *reader, const CornuFlatTable *table, int tensor)
{
    CornuFlat            *from = &reader->from;
    const CornuFlatTable  held = cornu__flat_table_at(from, table, 4);
    const CornuFlatVector scales = cornu__flat_vector_at(from, &held, 2, sizeof(float));
    const CornuFlatVector zeros = cornu__flat_vector_at(from, &held, 3, sizeof(int64_t));
    const int32_t         axis = cornu__flat_i32(from, &held, 6, 0);
    const CornuLiteTensor made = reader->graph->tensors[tensor];
    if (cornu__flat_bits(from, &held, 4, 1, 0))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is quantized in blocks, or in "
                           "a custom way", made.name);
    if (!scales.count) return CORNU_OK;
    const bool fits = scales.count == 1 ||
        (axis >= 0 && axis < made.shape.rank && made.shape.extent[axis] == (int64_t)scales.count);
    if (!fits || (zeros.count && zeros.count != scales.count))
        return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\" has %zu scales along axis %d, and "
                           "%zu zero points", made.name, scales.count, (int)axis, zeros.count);
    CORNU__TRY(take(reader, scales.count * (sizeof(float) + sizeof(int64_t))));
    cornu__lite_set_scales(reader->graph, tensor, NULL, NULL, (int)scales.count, axis);
    CORNU__TRY(reader->graph->status);
    const CornuLiteQuantization *own = &reader->graph->tensors[tensor].quantization;
    memcpy(own->scales, scales.bytes, scales.count * sizeof(float));
    if (zeros.count) memcpy(own->zero_points, zeros.bytes, zeros.count * sizeof(int64_t));
    for (size_t i = 0; i < scales.count; i++)
        if (!(own->scales[i] >= 0.0f) || isinf(own->scales[i]) ||
            !is_zero_point(made.dtype, own->zero_points[i]))
            return cornu__fail(CORNU_ERR_FORMAT, "the tensor \"%s\", %s, has a scale of %g and a "
                               "zero point of %lld", made.name, cornu__lite_dtype_name(made.dtype),
                               (double)own->scales[i], (long long)own->zero_points[i]);
    return CORNU_OK;
}

static CornuStatus read_tensor(Reader *reader, const CornuFlatTable *table)
{
    CornuFlat      *from = &reader->from;
    CornuLiteGraph *graph = reader->graph;
    const int       dtype = (int8_t)cornu__flat_bits(from, table, 1, 1, 0);
    Name            text;
    CornuShape      shape;
    CornuFlatVector data;
    const char     *name = text_of(reader, &text, table, 3, "");
    if (!cornu__lite_dtype_size((CornuLiteDtype)dtype))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is of type %d, which is not "
                           "available", name, dtype);
    if (cornu__flat_table_at(from, table, 6).at)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor \"%s\" is sparse", name);
    CORNU__TRY(read_shape(reader, table, name, &shape));
    CORNU__TRY(read_buffer(reader, table, name, &data));
    CORNU__TRY(take(reader, sizeof(CornuLiteTensor) + strlen(name) + data.count));
    const int made = cornu__lite_add_tensor(graph, name, (CornuLiteDtype)dtype, shape);
    CORNU__TRY(graph->status);
    CornuLiteTensor *tensor = &graph->tensors[made];
    tensor->variable = cornu__flat_bits(from, table, 5, 1, 0) != 0;
    if (data.count) {
        CORNU__TRY(check_data(tensor, &data));
        if (!(tensor->data = cornu__allocate(data.count, 1))) return CORNU_ERR_MEMORY;
        memcpy(tensor->data, data.bytes, data.count);
        tensor->bytes = data.count;
    }
    return read_scales(reader, table, made);
}

/* ---- Operators ---- */

static CornuStatus read_code(Reader *reader, const CornuFlatTable *table, int *code)
{
    CornuFlat     *from = &reader->from;
    const uint64_t index = cornu__flat_bits(from, table, 0, 4, 0);
    Name           text;
    if (index >= reader->codes.count) return damaged("an operator has no code");
    const CornuFlatTable held = cornu__flat_element(from, &reader->codes, (size_t)index);
    const int            byte = (int8_t)cornu__flat_bits(from, &held, 0, 1, 0);
    const int            number = cornu__flat_i32(from, &held, 3, 0);
    *code = byte < CODE_IN_BYTE && byte > number ? byte : number;
    if (*code == CUSTOM)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the custom operator \"%s\" is not available",
                           text_of(reader, &text, &held, 1, ""));
    if (cornu__lite_table(*code)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the builtin operator %d of LiteRT is not available "
                       "in this version", *code);
}

static CornuStatus read_extents(Reader *reader, const CornuFlatTable *table, int slot,
                                CornuLiteOptions *options)
{
    const CornuFlatVector extents = cornu__flat_vector_at(&reader->from, table, slot, 4);
    if (extents.count > CORNU_MAX_RANK) return damaged("a list of too many extents");
    options->extent_count = (int32_t)extents.count;
    for (size_t i = 0; i < extents.count; i++) options->extents[i] = integer_at(&extents, i);
    return CORNU_OK;
}

/* Windows have extents, and enumerations a name. */
static CornuStatus check_options(int code, const CornuLiteTable *kind,
                                 const CornuLiteOptions *options)
{
    static const size_t counted[] = {
        offsetof(CornuLiteOptions, stride_h), offsetof(CornuLiteOptions, stride_w),
        offsetof(CornuLiteOptions, dilation_h), offsetof(CornuLiteOptions, dilation_w),
        offsetof(CornuLiteOptions, filter_h), offsetof(CornuLiteOptions, filter_w),
    };
    bool good = (unsigned)options->padding <= CORNU_LITE_VALID;
    for (int i = 0; i < kind->count; i++)
        for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
            good &= kind->fields[i].offset != counted[k] ||
                    cornu__lite_get(options, &kind->fields[i]) >= 1;
    if (!good) return cornu__fail(CORNU_ERR_FORMAT, "%s has a window or padding that there is not",
                                  cornu__lite_code_name(code));
    if ((unsigned)options->fused_activation <= CORNU_LITE_FUSED_TANH && !options->weights_format)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s with the activation %d and the weights format %d "
                       "is not available", cornu__lite_code_name(code),
                       (int)options->fused_activation, (int)options->weights_format);
}

/* Of an operator without a table, all defaults; with that of another operator, damage. */
static CornuStatus read_options(Reader *reader, const CornuFlatTable *op, int code,
                                CornuLiteOptions *options)
{
    CornuFlat            *from = &reader->from;
    const CornuLiteTable *kind = cornu__lite_table(code);
    const int             number = (int)cornu__flat_bits(from, op, 3, 1, 0);
    const CornuFlatTable  table = cornu__flat_table_at(from, op, 4);
    *options = (CornuLiteOptions){ 0 };
    if (number && kind->number && number != kind->number)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has the options %d, expected %d",
                           cornu__lite_code_name(code), number, kind->number);
    for (int i = 0; i < kind->count && number; i++) {
        const CornuLiteField *field = &kind->fields[i];
        switch (field->kind) {
        case CORNU_LITE_EXTENTS:
            CORNU__TRY(read_extents(reader, &table, field->slot, options));
            break;
        case CORNU_LITE_BYTE:
        case CORNU_LITE_FLAG:
            cornu__lite_set(options, field,
                            (int8_t)cornu__flat_bits(from, &table, field->slot, 1, 0));
            break;
        default:   /* the bits of a float as well */
            cornu__lite_set(options, field,
                            cornu__flat_i32(from, &table, field->slot,
                                            field->kind == CORNU_LITE_ONE));
        }
    }
    return check_options(code, kind, options);
}

/* Numbers of tensors; -1 for one that is omitted, where that may be. */
static CornuStatus read_numbers(Reader *reader, const CornuFlatTable *table, int slot, bool omit,
                                int **numbers, int *count)
{
    const CornuFlatVector given = cornu__flat_vector_at(&reader->from, table, slot, 4);
    *count = 0;
    CORNU__TRY(take(reader, 4 * given.count));
    if (!(*numbers = cornu__allocate(given.count, sizeof **numbers))) return CORNU_ERR_MEMORY;
    *count = (int)given.count;
    for (int i = 0; i < *count; i++) {
        const int32_t number = integer_at(&given, (size_t)i);
        (*numbers)[i] = number;
        if (number >= reader->graph->tensor_count || number < (omit ? -1 : 0))
            return damaged("a number of a tensor that there is not");
    }
    return CORNU_OK;
}

static CornuStatus read_operator(Reader *reader, const CornuFlatTable *table)
{
    CornuLiteOptions options;
    int              code = 0, *in = NULL, *out = NULL, in_count = 0, out_count = 0;
    CORNU__TRY(read_code(reader, table, &code));
    CORNU__TRY(read_options(reader, table, code, &options));
    CORNU__TRY(take(reader, sizeof(CornuLiteOperator)));
    CornuStatus status = read_numbers(reader, table, 1, true, &in, &in_count);
    if (!status) status = read_numbers(reader, table, 2, false, &out, &out_count);
    if (!status) {
        cornu__lite_add_operator(reader->graph, (CornuLiteCode)code, in, in_count, out, out_count,
                                 &options);
        status = reader->graph->status;
    }
    cornu__release(in);
    cornu__release(out);
    return status;
}

/* Each tensor is computed once, after what it is computed from. */
static CornuStatus check_order(const CornuLiteGraph *graph)
{
    bool *known = cornu__allocate((size_t)graph->tensor_count, sizeof *known);
    bool  good = known != NULL;
    if (!known) return CORNU_ERR_MEMORY;
    for (int i = 0; i < graph->tensor_count; i++)
        known[i] = graph->tensors[i].data || graph->tensors[i].variable;
    for (int i = 0; i < graph->input_count; i++) {
        good &= !known[graph->inputs[i].tensor];
        known[graph->inputs[i].tensor] = true;
    }
    for (int i = 0; i < graph->operator_count && good; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; k < op->in_count; k++) good &= op->in[k] < 0 || known[op->in[k]];
        for (int k = 0; k < op->out_count; k++) {
            good &= !known[op->out[k]];
            known[op->out[k]] = true;
        }
    }
    for (int i = 0; i < graph->output_count && good; i++) good &= known[graph->outputs[i].tensor];
    cornu__release(known);
    return good ? CORNU_OK : damaged("a tensor is computed twice, or read before it is computed");
}

/* ---- Inputs and outputs ---- */

/* The signature's name of a tensor, or the tensor's. */
static const char *port_name(Reader *reader, const CornuFlatVector *names, int tensor, Name *name)
{
    for (size_t i = 0; i < names->count && !reader->from.failed; i++) {
        const CornuFlatTable map = cornu__flat_element(&reader->from, names, i);
        if (cornu__flat_i32(&reader->from, &map, 1, 0) == tensor)
            return text_of(reader, name, &map, 0, reader->graph->tensors[tensor].name);
    }
    return reader->graph->tensors[tensor].name;
}

typedef void AddPort(CornuLiteGraph *graph, int tensor, const char *name);

static CornuStatus read_ports(Reader *reader, const CornuFlatTable *subgraph, int slot,
                              const CornuFlatVector *names, AddPort *add)
{
    int        *numbers = NULL, count = 0;
    Name        name;
    CornuStatus status = read_numbers(reader, subgraph, slot, false, &numbers, &count);
    if (!status && (size_t)count * (names->count + 1) > reader->from.size)
        status = damaged("more inputs or outputs than its names could have");
    for (int i = 0; i < count && !status; i++) {
        add(reader->graph, numbers[i], port_name(reader, names, numbers[i], &name));
        status = reader->graph->status;
        if (!status) status = take(reader, MOST_NAME);
    }
    cornu__release(numbers);
    return status;
}

static CornuStatus read_graph(Reader *reader, const CornuFlatTable *root)
{
    CornuFlat            *from = &reader->from;
    const CornuFlatVector subgraphs = cornu__flat_vector_at(from, root, 2, 4);
    const CornuFlatVector signatures = cornu__flat_vector_at(from, root, 7, 4);
    CornuFlatTable        subgraph = { 0 }, signature = { 0 };
    Name                  name;
    if (cornu__flat_bits(from, root, 0, 4, 0) != SCHEMA_VERSION)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the schema has version %llu, expected %d",
                           (unsigned long long)cornu__flat_bits(from, root, 0, 4, 0),
                           SCHEMA_VERSION);
    if (subgraphs.count != 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%zu subgraphs, expected 1: loops and branches "
                           "are not available", subgraphs.count);
    subgraph = cornu__flat_element(from, &subgraphs, 0);
    if (signatures.count) signature = cornu__flat_element(from, &signatures, 0);
    reader->codes = cornu__flat_vector_at(from, root, 1, 4);
    reader->buffers = cornu__flat_vector_at(from, root, 4, 4);
    const CornuFlatVector tensors = cornu__flat_vector_at(from, &subgraph, 0, 4);
    const CornuFlatVector operators = cornu__flat_vector_at(from, &subgraph, 3, 4);
    const CornuFlatVector inputs = cornu__flat_vector_at(from, &signature, 0, 4);
    const CornuFlatVector outputs = cornu__flat_vector_at(from, &signature, 1, 4);
    if (!(reader->graph = cornu__lite_graph_create(text_of(reader, &name, &subgraph, 4, "main"))))
        return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < tensors.count && !from->failed; i++) {
        const CornuFlatTable table = cornu__flat_element(from, &tensors, i);
        CORNU__TRY(read_tensor(reader, &table));
    }
    for (size_t i = 0; i < operators.count && !from->failed; i++) {
        const CornuFlatTable table = cornu__flat_element(from, &operators, i);
        CORNU__TRY(read_operator(reader, &table));
    }
    CORNU__TRY(read_ports(reader, &subgraph, 1, &inputs, cornu__lite_add_input));
    CORNU__TRY(read_ports(reader, &subgraph, 2, &outputs, cornu__lite_add_output));
    if (!reader->graph->output_count) return damaged("it has no outputs");
    return check_order(reader->graph);
}

CornuStatus cornu__lite_read(const void *bytes, size_t size, CornuLiteGraph **graph)
{
    Reader         reader = { .from = { .bytes = bytes, .size = size } };
    CornuFlatTable root;
    *graph = NULL;
    if (!cornu__flat_open(&reader.from, "TFL3", &root))
        return damaged("it does not begin with the identifier TFL3 and a table");
    CornuStatus status = read_graph(&reader, &root);
    /* What is absent because of damage may have failed otherwise. */
    if (reader.from.failed && status != CORNU_ERR_MEMORY)
        status = damaged("an offset or a length exceeds the file");
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
