#include "onnx_internal.h"

#include "../device/memory_internal.h"
#include "file_internal.h"
#include "protobuf_internal.h"

#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET = 17 };
enum { TYPE_FLOAT = 1, TYPE_INT32 = 6, TYPE_INT64 = 7 };   /* TensorProto.DataType */
enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_INTS = 7,
       ATTRIBUTE_STRINGS = 8 };

/* ---- Nodes and constants ---- */

struct CornuOnnx {
    const CornuModel  *model;
    const CornuValues *values;
    CornuMessage       nodes, constants;      /* fields of the graph */
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

static void put_attribute(CornuMessage *node, const CornuOnnxAttribute *from)
{
    const size_t attribute = cornu__begin_field(node, 5);
    cornu__put_text(node, 1, from->name);
    if (from->texts) {
        const char *text = from->text;
        for (int i = 0; i < from->texts; i++, text += strlen(text) + 1)
            cornu__put_text(node, 9, text);
        cornu__put_number(node, 20, ATTRIBUTE_STRINGS);
    } else if (from->text) {
        cornu__put_text(node, 4, from->text);
        cornu__put_number(node, 20, ATTRIBUTE_STRING);
    } else if (from->numbers) {
        for (int i = 0; i < from->count; i++) cornu__put_number(node, 8, from->numbers[i]);
        cornu__put_number(node, 20, ATTRIBUTE_INTS);
    } else if (from->number) {
        cornu__put_float(node, 2, (float)*from->number);
        cornu__put_number(node, 20, ATTRIBUTE_FLOAT);
    } else {
        cornu__put_number(node, 3, from->whole);
        cornu__put_number(node, 20, ATTRIBUTE_INT);
    }
    cornu__end_field(node, attribute);
}

int cornu__onnx_node(CornuOnnx *to, const char *operator, const int *in, int in_count,
                     const CornuOnnxAttribute *attributes, int attribute_count, int out_count)
{
    CornuMessage *nodes = &to->nodes;
    Name          name;
    const int     first = to->count + 1;
    const size_t  node = cornu__begin_field(nodes, 1);
    for (int i = 0; i < in_count; i++) cornu__put_text(nodes, 1, name_of(&name, in[i]));
    for (int i = 0; i < out_count; i++) cornu__put_text(nodes, 2, name_of(&name, ++to->count));
    cornu__put_text(nodes, 4, operator);
    for (int i = 0; i < attribute_count; i++) put_attribute(nodes, &attributes[i]);
    cornu__end_field(nodes, node);
    return first;
}

int cornu__onnx_constant(CornuOnnx *to, CornuArray array)
{
    CornuMessage *constants = &to->constants;
    Name          name;
    const size_t  tensor = cornu__begin_field(constants, 5);
    for (int i = 0; i < array.type.shape.rank; i++)
        cornu__put_number(constants, 1, array.type.shape.extent[i]);
    cornu__put_number(constants, 2, array.type.dtype == CORNU_F32 ? TYPE_FLOAT : TYPE_INT64);
    cornu__put_text(constants, 8, name_of(&name, ++to->count));
    cornu__put_bytes(constants, 9, array.data, cornu_type_bytes(array.type));
    cornu__end_field(constants, tensor);
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
static void put_value(CornuMessage *graph, int field, const char *name, int type, CornuShape shape)
{
    const size_t value = cornu__begin_field(graph, field);
    cornu__put_text(graph, 1, name);
    const size_t kind = cornu__begin_field(graph, 2), tensor = cornu__begin_field(graph, 1);
    cornu__put_number(graph, 1, type);
    const size_t extents = cornu__begin_field(graph, 2);
    for (int i = 0; i < shape.rank; i++) {
        const size_t extent = cornu__begin_field(graph, 1);
        if (shape.extent[i] < 0) cornu__put_text(graph, 2, i ? "n" : "batch");
        else cornu__put_number(graph, 1, shape.extent[i]);
        cornu__end_field(graph, extent);
    }
    cornu__end_field(graph, extents);
    cornu__end_field(graph, tensor);
    cornu__end_field(graph, kind);
    cornu__end_field(graph, value);
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
    const size_t node = cornu__begin_field(&to->nodes, 1);
    cornu__put_text(&to->nodes, 1, in);
    cornu__put_text(&to->nodes, 2, out);
    cornu__put_text(&to->nodes, 4, "Identity");
    cornu__end_field(&to->nodes, node);
}

static CornuStatus put_graph(CornuOnnx *to, CornuMessage *graph)
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
    cornu__put_text(graph, 2, cornu_model_name(model));
    cornu__put(graph, to->constants.bytes, to->constants.size);
    cornu__put(graph, to->nodes.bytes, to->nodes.size);
    graph->failed |= to->constants.failed | to->nodes.failed;
    return CORNU_OK;
}

static CornuStatus save(const CornuModel *model, const CornuValues *values, const char *path)
{
    CornuOnnx    to = { .model = model, .values = values };
    CornuMessage file = { 0 };
    to.weights = cornu__allocate((size_t)values->weights, sizeof *to.weights);
    cornu__put_number(&file, 1, IR_VERSION);
    cornu__put_text(&file, 2, "cornu");
    const size_t graph = cornu__begin_field(&file, 7);
    CornuStatus  status = to.weights ? put_graph(&to, &file) : CORNU_ERR_MEMORY;
    cornu__end_field(&file, graph);
    const size_t opset = cornu__begin_field(&file, 8);
    cornu__put_text(&file, 1, "");
    cornu__put_number(&file, 2, OPSET);
    cornu__end_field(&file, opset);
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
