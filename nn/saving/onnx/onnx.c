#include "onnx_internal.h"

#include "../../../device/memory_internal.h"
#include "../../formats/file_internal.h"
#include "../../formats/protobuf_internal.h"

#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET = 18 };
enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_FLOATS = 6,
       ATTRIBUTE_INTS = 7, ATTRIBUTE_STRINGS = 8 };

/* What is known of a value. A transpose knows what it is one of: never of another transpose. */
typedef struct {
    int     source;                       /* 0: it is none */
    int64_t order[CORNU_MAX_RANK];
    int     rank;                         /* of a transpose */
    bool    pending;                      /* no node has read it yet */
    bool    scalar;                       /* a constant without axes */
} Value;

struct CornuOnnx {
    const CornuModel  *model;
    const CornuValues *weights;
    CornuMessage       nodes, constants;  /* fields of the graph */
    Value             *values;            /* by number; 0 stands for none */
    int                count, space;      /* of values, that one included */
    int               *places;            /* the constant of each weight; 0: none yet */
};

/* ---- Values ---- */

/* A new one; 0 without memory. */
static int add_value(CornuOnnx *to, Value value)
{
    if (to->count == to->space) {
        const int space = to->space ? 2 * to->space : 64;
        Value    *more = cornu__allocate((size_t)space, sizeof *more);
        if (!more) {
            to->nodes.failed = true;
            return CORNU_ONNX_NONE;
        }
        if (to->count) memcpy(more, to->values, (size_t)to->count * sizeof *more);
        else to->count = 1;
        cornu__release(to->values);
        to->values = more;
        to->space = space;
    }
    to->values[to->count] = value;
    return to->count++;
}

/* Without memory numbers may name no value. */
static const Value *value_of(const CornuOnnx *to, int value)
{
    static const Value none;
    return value < to->count ? &to->values[value] : &none;
}

typedef struct { char text[24]; } Name;

/* Unlike what a layer is called. An input that is absent has the empty name. */
static const char *name_of(Name *name, int value)
{
    snprintf(name->text, sizeof name->text, "cornu_%d", value);
    return value == CORNU_ONNX_NONE ? "" : name->text;
}

/* ---- Nodes ---- */

static void put_attribute(CornuMessage *node, const CornuOnnxAttribute *from)
{
    const size_t attribute = cornu__begin_field(node, 5);
    int64_t      type = ATTRIBUTE_INT;
    cornu__put_text(node, 1, from->name);
    if (from->texts) {
        const char *text = from->text;
        for (int i = 0; i < from->texts; i++, text += strlen(text) + 1)
            cornu__put_text(node, 9, text);
        type = ATTRIBUTE_STRINGS;
    } else if (from->text) {
        cornu__put_text(node, 4, from->text);
        type = ATTRIBUTE_STRING;
    } else if (from->integers) {
        for (int i = 0; i < from->count; i++) cornu__put_number(node, 8, from->integers[i]);
        type = ATTRIBUTE_INTS;
    } else if (from->numbers && from->count) {
        for (int i = 0; i < from->count; i++) cornu__put_float(node, 7, (float)from->numbers[i]);
        type = ATTRIBUTE_FLOATS;
    } else if (from->numbers) {
        cornu__put_float(node, 2, (float)*from->numbers);
        type = ATTRIBUTE_FLOAT;
    } else {
        cornu__put_number(node, 3, from->whole);
    }
    cornu__put_number(node, 20, type);
    cornu__end_field(node, attribute);
}

/* Nodes of values, or of names that the graph has outside. */
static size_t begin_node(CornuOnnx *to, const char *operator)
{
    const size_t node = cornu__begin_field(&to->nodes, 1);
    cornu__put_text(&to->nodes, 4, operator);
    return node;
}

/* Before a node reads a value: its transpose, if that is still to be written. */
static void settle(CornuOnnx *to, int value)
{
    Name         name;
    const Value *from = value_of(to, value);
    if (!from->pending) return;
    const size_t node = begin_node(to, "Transpose");
    cornu__put_text(&to->nodes, 1, name_of(&name, from->source));
    cornu__put_text(&to->nodes, 2, name_of(&name, value));
    put_attribute(&to->nodes, &(CornuOnnxAttribute){ .name = "perm", .integers = from->order,
                                                     .count = from->rank });
    cornu__end_field(&to->nodes, node);
    to->values[value].pending = false;
}

int cornu__onnx_node(CornuOnnx *to, const char *operator, const int *in, int in_count,
                     const CornuOnnxAttribute *attributes, int attribute_count, int out_count)
{
    CornuMessage *nodes = &to->nodes;
    Name          name;
    int           first = CORNU_ONNX_NONE;
    for (int i = 0; i < in_count; i++) settle(to, in[i]);
    const size_t node = begin_node(to, operator);
    for (int i = 0; i < in_count; i++) cornu__put_text(nodes, 1, name_of(&name, in[i]));
    for (int i = 0; i < out_count; i++) {
        const int out = add_value(to, (Value){ 0 });
        cornu__put_text(nodes, 2, name_of(&name, out));
        if (i == 0) first = out;
    }
    for (int i = 0; i < attribute_count; i++) put_attribute(nodes, &attributes[i]);
    cornu__end_field(nodes, node);
    return first;
}

/* ---- Layout ---- */

static bool same_transpose(const Value *a, const Value *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->order[i] != b->order[i]) return false;
    return a->rank == b->rank;
}

int cornu__onnx_transpose(CornuOnnx *to, int x, const int64_t *order, int rank)
{
    const Value *from = value_of(to, x);
    Value        turned = { .source = from->source ? from->source : x, .rank = rank,
                            .pending = true };
    bool         moves = false;
    for (int i = 0; i < rank; i++) {
        turned.order[i] = from->source ? from->order[order[i]] : order[i];
        moves |= turned.order[i] != i;
    }
    if (!moves) return turned.source;
    for (int i = 1; i < to->count; i++)
        if (to->values[i].source == turned.source && same_transpose(&to->values[i], &turned))
            return i;
    return add_value(to, turned);
}

int cornu__onnx_lying(const CornuOnnx *to, const int *in, int count, int *lying,
                      int64_t order[CORNU_MAX_RANK])
{
    const Value *first = NULL;
    bool         alike = true;
    for (int i = 0; i < count; i++) {
        const Value *value = value_of(to, in[i]);
        lying[i] = in[i];
        if (in[i] == CORNU_ONNX_NONE || value->scalar) continue;
        if (!first) first = value;
        alike = alike && value->source && same_transpose(value, first);
    }
    alike = alike && first;
    for (int i = 0; i < CORNU_MAX_RANK; i++) order[i] = alike ? first->order[i] : i;
    for (int i = 0; i < count && alike; i++)
        if (value_of(to, in[i])->source) lying[i] = value_of(to, in[i])->source;
    return alike ? first->rank : 0;
}

int cornu__onnx_elementwise(CornuOnnx *to, const char *operator, const int *in, int in_count,
                            const CornuOnnxAttribute *attributes, int attribute_count)
{
    int       lying[CORNU_MAX_LAYER_TENSORS];
    int64_t   order[CORNU_MAX_RANK];
    const int rank = cornu__onnx_lying(to, in, in_count, lying, order);
    const int y = cornu__onnx_node(to, operator, lying, in_count, attributes, attribute_count, 1);
    return cornu__onnx_transpose(to, y, order, rank);
}

/* ---- Constants ---- */

int cornu__onnx_constant(CornuOnnx *to, CornuArray array)
{
    CornuMessage *constants = &to->constants;
    Name          name;
    const int     value = add_value(to, (Value){ .scalar = array.type.shape.rank == 0 });
    const size_t  tensor = cornu__begin_field(constants, 5);
    for (int i = 0; i < array.type.shape.rank; i++)
        cornu__put_number(constants, 1, array.type.shape.extent[i]);
    cornu__put_number(constants, 2, array.type.dtype == CORNU_F32    ? CORNU_ONNX_FLOAT
                                    : array.type.dtype == CORNU_BOOL ? CORNU_ONNX_BOOL
                                                                     : CORNU_ONNX_INT64);
    cornu__put_text(constants, 8, name_of(&name, value));
    cornu__put_bytes(constants, 9, array.data, cornu_type_bytes(array.type));
    cornu__end_field(constants, tensor);
    return value;
}

int cornu__onnx_integers(CornuOnnx *to, const int64_t *integers, int count)
{
    return cornu__onnx_constant(to, cornu_array((void *)integers, CORNU_I64, count));
}

int cornu__onnx_scalar(CornuOnnx *to, double value)
{
    float narrow = (float)value;
    return cornu__onnx_constant(to, cornu_array_from(&narrow, cornu_scalar(CORNU_F32)));
}

/* Room for a constant in the making; its failure is kept. */
static float *make_room(CornuOnnx *to, CornuShape shape)
{
    float *room = cornu__allocate((size_t)cornu_shape_count(shape), sizeof *room);
    if (!room) to->nodes.failed = true;
    return room;
}

int cornu__onnx_filled(CornuOnnx *to, CornuShape shape, float value)
{
    float *values = make_room(to, shape);
    if (!values) return CORNU_ONNX_NONE;
    for (int64_t i = 0; i < cornu_shape_count(shape); i++) values[i] = value;
    const int constant = cornu__onnx_constant(
        to, cornu_array_from(values, cornu_type_from(CORNU_F32, shape)));
    cornu__release(values);
    return constant;
}

static int number_of(const CornuOnnx *to, const CornuWeight *weight)
{
    int number = 0;
    while (cornu_model_weight(to->model, number) != weight) number++;
    return number;
}

const float *cornu__onnx_values(const CornuOnnx *to, const CornuLayer *layer, int i)
{
    return to->weights->arrays[number_of(to, layer->weights[i])].array.data;
}

int *cornu__onnx_place(const CornuOnnx *to, const CornuLayer *layer, int i)
{
    return &to->places[number_of(to, layer->weights[i])];
}

int cornu__onnx_weight(CornuOnnx *to, const CornuLayer *layer, int i)
{
    return cornu__onnx_weight_as(to, layer, i, NULL, layer->weights[i]->type.shape);
}

/* Element after element of the result, each from the place in x that its own one stands for. */
static void reorder(const float *x, CornuShape shape, const int *order, float *y)
{
    int64_t strides[CORNU_MAX_RANK], at[CORNU_MAX_RANK] = { 0 };
    int64_t stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape.extent[i];
    }
    for (int64_t n = 0; n < stride; n++) {
        int64_t from = 0;
        for (int i = 0; i < shape.rank; i++) from += at[i] * strides[order[i]];
        y[n] = x[from];
        for (int i = shape.rank - 1; i >= 0 && ++at[i] == shape.extent[order[i]]; i--) at[i] = 0;
    }
}

int cornu__onnx_weight_as(CornuOnnx *to, const CornuLayer *layer, int i, const int *order,
                          CornuShape shape)
{
    int             *place = cornu__onnx_place(to, layer, i);
    const float     *values = cornu__onnx_values(to, layer, i);
    const CornuShape own = layer->weights[i]->type.shape;
    const int        known = *place;
    if (known) return known;
    float *turned = order ? make_room(to, own) : NULL;
    if (order && !turned) return CORNU_ONNX_NONE;
    if (order) reorder(values, own, order, turned);
    *place = cornu__onnx_constant(to, cornu_array_from(order ? turned : (void *)values,
                                                       cornu_type_from(CORNU_F32, shape)));
    cornu__release(turned);
    return *place;
}

/* ---- Models ---- */

static CornuStatus add_call(CornuOnnx *to, const CornuModelCall *call, int *values, int *masks)
{
    const CornuNode *node = call->node;
    int              in[CORNU_MAX_LAYER_TENSORS], in_masks[CORNU_MAX_LAYER_TENSORS];
    CornuShape       shapes[CORNU_MAX_LAYER_TENSORS], results[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < node->in_count; i++) {
        in[i] = values[call->in[i]];
        in_masks[i] = masks[call->in[i]];
        shapes[i] = node->in[i]->type.shape;
    }
    for (int i = 0; i < node->out_count; i++) results[i] = node->out[i].type.shape;
    return cornu__onnx_layer(&(CornuOnnxCall){
        .to = to, .layer = node->layer, .in = in, .masks = in_masks, .shapes = shapes,
        .in_count = node->in_count, .results = results, .out = &values[call->first],
        .out_masks = &masks[call->first],
    });
}

CornuStatus cornu__onnx_model(const CornuOnnxCall *call)
{
    const CornuModel *model = (const CornuModel *)call->layer;
    const size_t      count = (size_t)model->value_count;
    int              *values = cornu__allocate(2 * count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    int *masks = values + count;
    for (int i = 0; i < model->input_count; i++) {
        values[cornu__model_value(model, model->inputs[i])] = call->in[i];
        masks[cornu__model_value(model, model->inputs[i])] = call->masks[i];
    }
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < model->call_count && status == CORNU_OK; i++)
        if (model->calls[i].node->layer->kind != &cornu__input_class)
            status = add_call(call->to, &model->calls[i], values, masks);
    for (int i = 0; i < model->output_count; i++) {
        call->out[i] = values[cornu__model_value(model, model->outputs[i])];
        call->out_masks[i] = masks[cornu__model_value(model, model->outputs[i])];
    }
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
    const size_t node = begin_node(to, "Identity");
    cornu__put_text(&to->nodes, 1, in);
    cornu__put_text(&to->nodes, 2, out);
    cornu__end_field(&to->nodes, node);
}

/* What is written of layers depends on the extents of their inputs. */
static CornuStatus check_known(const CornuSymbol *input)
{
    const CornuShape shape = input->type.shape;
    CornuText        text;
    for (int i = 1; i < shape.rank; i++)
        if (shape.extent[i] == CORNU_NONE)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: the input is %s, of which .onnx files "
                               "have only the batch open; expected extents that are known",
                               cornu_layer_name(input->node->layer),
                               cornu_shape_print(&text, shape));
    return CORNU_OK;
}

static CornuStatus put_graph(CornuOnnx *to, CornuMessage *graph)
{
    const CornuModel *model = to->model;
    int               in[CORNU_MAX_MODEL_TENSORS], out[CORNU_MAX_MODEL_TENSORS];
    int               masks[CORNU_MAX_MODEL_TENSORS] = { 0 }, out_masks[CORNU_MAX_MODEL_TENSORS];
    char              name[200];
    Name              inner;
    for (int i = 0; i < model->input_count; i++) {
        const char *given = cornu_layer_name(model->inputs[i]->node->layer);
        CORNU__TRY(check_known(model->inputs[i]));
        const bool  whole = cornu__model_keeps_numbers(model, i);
        put_value(graph, 11, given, whole ? CORNU_ONNX_INT32 : CORNU_ONNX_FLOAT,
                  open_batch(model->inputs[i]));
        in[i] = add_value(to, (Value){ 0 });
        name_value(to, given, name_of(&inner, in[i]));
    }
    CORNU__TRY(cornu__onnx_model(&(CornuOnnxCall){
        .to = to, .layer = &model->base, .in = in, .masks = masks, .out = out,
        .out_masks = out_masks,
    }));
    for (int i = 0; i < model->output_count; i++) {
        const CornuLayer *layer = model->outputs[i]->node->layer;
        int               same = 0;   /* of a layer that gives several, or is called again */
        for (int k = 0; k < i; k++) same += model->outputs[k]->node->layer == layer;
        snprintf(name, sizeof name, same ? "%.150s_out_%d" : "%.150s_out", cornu_layer_name(layer),
                 same);
        put_value(graph, 12, name, CORNU_ONNX_FLOAT, open_batch(model->outputs[i]));
        settle(to, out[i]);
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
    CornuOnnx    to = { .model = model, .weights = values };
    CornuMessage file = { 0 };
    to.places = cornu__allocate((size_t)values->weights, sizeof *to.places);
    cornu__put_number(&file, 1, IR_VERSION);
    cornu__put_text(&file, 2, "cornu");
    const size_t graph = cornu__begin_field(&file, 7);
    CornuStatus  status = to.places ? put_graph(&to, &file) : CORNU_ERR_MEMORY;
    cornu__end_field(&file, graph);
    const size_t opset = cornu__begin_field(&file, 8);
    cornu__put_text(&file, 1, "");
    cornu__put_number(&file, 2, OPSET);
    cornu__end_field(&file, opset);
    if (status == CORNU_OK && file.failed) status = CORNU_ERR_MEMORY;
    if (status == CORNU_OK) status = cornu_file_write(path, file.bytes, file.size);
    else cornu__fail_prefix(status, path);
    cornu__release(to.places);
    cornu__release(to.values);
    cornu__release(to.nodes.bytes);
    cornu__release(to.constants.bytes);
    cornu__release(file.bytes);
    return status;
}

const CornuFormat cornu__onnx_format = { .suffix = ".onnx", .save = save };
