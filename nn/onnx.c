#include "onnx_internal.h"

#include "../device/memory_internal.h"
#include "file_internal.h"

#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET = 17 };
enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };             /* protobuf's kinds of fields */
enum { TYPE_FLOAT = 1, TYPE_INT32 = 6, TYPE_INT64 = 7 };  /* TensorProto.DataType */
enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_INTS = 7,
       ATTRIBUTE_STRINGS = 8 };

/* ---- Protobuf: fields, each a tag and a number or bytes with their length ---- */

typedef struct {
    unsigned char *bytes;
    size_t         size, space;
    bool           failed;
} Buffer;

static void put(Buffer *to, const void *bytes, size_t size)
{
    if (to->failed || size == 0) return;
    if (size > to->space - to->size) {
        const size_t   space = 2 * (to->size + size);
        unsigned char *more = cornu__allocate(space, 1);
        if (!more) {
            to->failed = true;
            return;
        }
        if (to->size) memcpy(more, to->bytes, to->size);
        cornu__release(to->bytes);
        to->bytes = more;
        to->space = space;
    }
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

/* Seven bits a byte, the lowest first. */
static void put_varint(Buffer *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(to, &(unsigned char){ (unsigned char)(value | 0x80) }, 1);
    put(to, &(unsigned char){ (unsigned char)value }, 1);
}

static void put_tag(Buffer *to, int field, int kind)
{
    put_varint(to, (uint64_t)(field << 3 | kind));
}

static void put_number(Buffer *to, int field, int64_t value)
{
    put_tag(to, field, VARINT);
    put_varint(to, (uint64_t)value);
}

static void put_bytes(Buffer *to, int field, const void *bytes, size_t size)
{
    put_tag(to, field, LENGTH);
    put_varint(to, size);
    put(to, bytes, size);
}

static void put_text(Buffer *to, int field, const char *text)
{
    put_bytes(to, field, text, strlen(text));
}

static void put_float(Buffer *to, int field, float value)
{
    put_tag(to, field, FIXED32);
    put(to, &value, sizeof value);
}

/* A message as a field of another one; emptied. */
static void put_message(Buffer *to, int field, Buffer *message)
{
    put_bytes(to, field, message->bytes, message->size);
    to->failed |= message->failed;
    cornu__release(message->bytes);
    *message = (Buffer){ 0 };
}

/* ---- Nodes and constants ---- */

struct CornuOnnx {
    const CornuModel  *model;
    const CornuValues *values;
    Buffer             nodes, constants;      /* fields of the graph */
    int                count;                 /* of values so far */
    int               *weights;               /* the value of each weight; 0: none yet */
};

typedef struct { char text[24]; } Name;

/* An input that is absent has the empty name. */
static const char *name_of(Name *name, int value)
{
    snprintf(name->text, sizeof name->text, "v%d", value);
    return value < 0 ? "" : name->text;
}

static void put_attribute(Buffer *node, const CornuOnnxAttribute *from)
{
    Buffer attribute = { 0 };
    put_text(&attribute, 1, from->name);
    if (from->texts) {
        const char *text = from->text;
        for (int i = 0; i < from->texts; i++, text += strlen(text) + 1)
            put_text(&attribute, 9, text);
        put_number(&attribute, 20, ATTRIBUTE_STRINGS);
    } else if (from->text) {
        put_text(&attribute, 4, from->text);
        put_number(&attribute, 20, ATTRIBUTE_STRING);
    } else if (from->numbers) {
        for (int i = 0; i < from->count; i++) put_number(&attribute, 8, from->numbers[i]);
        put_number(&attribute, 20, ATTRIBUTE_INTS);
    } else if (from->number) {
        put_float(&attribute, 2, (float)*from->number);
        put_number(&attribute, 20, ATTRIBUTE_FLOAT);
    } else {
        put_number(&attribute, 3, from->whole);
        put_number(&attribute, 20, ATTRIBUTE_INT);
    }
    put_message(node, 5, &attribute);
}

int cornu__onnx_node(CornuOnnx *to, const char *operator, const int *in, int in_count,
                     const CornuOnnxAttribute *attributes, int attribute_count, int out_count)
{
    Buffer    node = { 0 };
    Name      name;
    const int first = to->count + 1;
    for (int i = 0; i < in_count; i++) put_text(&node, 1, name_of(&name, in[i]));
    for (int i = 0; i < out_count; i++) put_text(&node, 2, name_of(&name, ++to->count));
    put_text(&node, 4, operator);
    for (int i = 0; i < attribute_count; i++) put_attribute(&node, &attributes[i]);
    put_message(&to->nodes, 1, &node);
    return first;
}

int cornu__onnx_constant(CornuOnnx *to, CornuArray array)
{
    Buffer tensor = { 0 };
    Name   name;
    for (int i = 0; i < array.type.shape.rank; i++)
        put_number(&tensor, 1, array.type.shape.extent[i]);
    put_number(&tensor, 2, array.type.dtype == CORNU_F32 ? TYPE_FLOAT : TYPE_INT64);
    put_text(&tensor, 8, name_of(&name, ++to->count));
    put_bytes(&tensor, 9, array.data, cornu_type_bytes(array.type));
    put_message(&to->constants, 5, &tensor);
    return to->count;
}

int cornu__onnx_numbers(CornuOnnx *to, const int64_t *numbers, int count)
{
    return cornu__onnx_constant(to, cornu_array((void *)numbers, CORNU_I64, count));
}

int cornu__onnx_scalar(CornuOnnx *to, double value)
{
    float narrow = (float)value;
    return cornu__onnx_constant(to, cornu_array_from(&narrow, cornu_scalar(CORNU_F32)));
}

static int number_of(const CornuOnnx *to, const CornuWeight *weight)
{
    int number = 0;
    while (cornu_model_weight(to->model, number) != weight) number++;
    return number;
}

int cornu__onnx_weight(CornuOnnx *to, const CornuLayer *layer, int i)
{
    const int number = number_of(to, layer->weights[i]);
    if (!to->weights[number])
        to->weights[number] = cornu__onnx_constant(to, to->values->arrays[number].array);
    return to->weights[number];
}

const float *cornu__onnx_values(CornuOnnx *to, const CornuLayer *layer, int i)
{
    return to->values->arrays[number_of(to, layer->weights[i])].array.data;
}

/* ---- Models ---- */

static CornuStatus add_call(CornuOnnx *to, const CornuModelCall *call, int *values)
{
    const CornuNode  *node = call->node;
    const CornuLayer *layer = node->layer;
    int               in[CORNU_MAX_LAYER_TENSORS];
    CornuShape        shapes[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < node->in_count; i++) {
        in[i] = values[call->in[i]];
        shapes[i] = node->in[i]->type.shape;
    }
    if (layer->kind->replay)
        return cornu__onnx_model(to, (const CornuModel *)layer, in, values + call->first);
    if (node->out_count != 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: gives %d tensors, ONNX files of this "
                           "version have layers of one", cornu_layer_name(layer), node->out_count);
    return cornu__onnx_layer(to, layer, in, shapes, node->in_count, &values[call->first]);
}

CornuStatus cornu__onnx_model(CornuOnnx *to, const CornuModel *model, const int *in, int *out)
{
    int *values = cornu__allocate((size_t)model->value_count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    for (int i = 0; i < model->input_count; i++)
        values[cornu__model_value(model, model->inputs[i])] = in[i];
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < model->call_count && status == CORNU_OK; i++)
        if (model->calls[i].node->layer->kind != &cornu__input_class)
            status = add_call(to, &model->calls[i], values);
    for (int i = 0; i < model->output_count; i++)
        out[i] = values[cornu__model_value(model, model->outputs[i])];
    cornu__release(values);
    return status;
}

/* An input or output of the graph: its name, type, and shape with an open batch. */
static void put_value(Buffer *graph, int field, const char *name, int type, CornuShape shape)
{
    Buffer value = { 0 }, tensor = { 0 }, extents = { 0 }, kind = { 0 };
    for (int i = 0; i < shape.rank; i++) {
        Buffer extent = { 0 };
        if (shape.extent[i] < 0) put_text(&extent, 2, i ? "n" : "batch");
        else put_number(&extent, 1, shape.extent[i]);
        put_message(&extents, 1, &extent);
    }
    put_number(&tensor, 1, type);
    put_message(&tensor, 2, &extents);
    put_message(&kind, 1, &tensor);
    put_text(&value, 1, name);
    put_message(&value, 2, &kind);
    put_message(graph, field, &value);
}

static CornuShape open_batch(const CornuSymbol *symbol)
{
    CornuShape shape = symbol->type.shape;
    shape.extent[0] = CORNU_NONE;
    return shape;
}

/* Nodes that give inputs and outputs the names of their layers. */
static void name_value(CornuOnnx *to, const char *in, const char *out)
{
    Buffer node = { 0 };
    put_text(&node, 1, in);
    put_text(&node, 2, out);
    put_text(&node, 4, "Identity");
    put_message(&to->nodes, 1, &node);
}

static CornuStatus put_graph(CornuOnnx *to, Buffer *graph)
{
    const CornuModel *model = to->model;
    int               in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    char              name[200];
    Name              inner;
    for (int i = 0; i < model->input_count; i++) {
        const char *given = cornu_layer_name(model->inputs[i]->node->layer);
        const bool  whole = cornu__model_keeps_numbers(model, i);
        put_value(graph, 11, given, whole ? TYPE_INT32 : TYPE_FLOAT, open_batch(model->inputs[i]));
        in[i] = ++to->count;
        name_value(to, given, name_of(&inner, in[i]));
    }
    CORNU__TRY(cornu__onnx_model(to, model, in, out));
    for (int i = 0; i < model->output_count; i++) {
        const int same = model->outputs[i]->index;   /* of a layer that gives several */
        snprintf(name, sizeof name, same ? "%.150s_out_%d" : "%.150s_out",
                 cornu_layer_name(model->outputs[i]->node->layer), same);
        put_value(graph, 12, name, TYPE_FLOAT, open_batch(model->outputs[i]));
        name_value(to, name_of(&inner, out[i]), name);
    }
    put_text(graph, 2, cornu_model_name(model));
    put(graph, to->constants.bytes, to->constants.size);
    put(graph, to->nodes.bytes, to->nodes.size);
    graph->failed |= to->constants.failed | to->nodes.failed;
    return CORNU_OK;
}

static CornuStatus save(const CornuModel *model, const CornuValues *values, const char *path)
{
    CornuOnnx to = { .model = model, .values = values };
    Buffer    file = { 0 }, graph = { 0 }, opset = { 0 };
    to.weights = cornu__allocate((size_t)values->weights, sizeof *to.weights);
    CornuStatus status = to.weights ? put_graph(&to, &graph) : CORNU_ERR_MEMORY;
    put_number(&file, 1, IR_VERSION);
    put_text(&file, 2, "cornu");
    put_message(&file, 7, &graph);
    put_text(&opset, 1, "");
    put_number(&opset, 2, OPSET);
    put_message(&file, 8, &opset);
    if (status == CORNU_OK && file.failed) status = CORNU_ERR_MEMORY;
    if (status == CORNU_OK) status = cornu_file_write(path, file.bytes, file.size);
    else cornu__fail_prefix(status, path);
    cornu__release(to.weights);
    cornu__release(to.nodes.bytes);
    cornu__release(to.constants.bytes);
    cornu__release(file.bytes);
    return status;
}

const CornuFormat cornu__onnx_format = { .suffix = ".onnx", .save = save };
