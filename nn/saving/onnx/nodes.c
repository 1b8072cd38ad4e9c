/* Building the graph of an ONNX file: values, nodes, constants. */
#include "rules_internal.h"

#include "../../../device/memory_internal.h"
#include <stdio.h>
#include <string.h>

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_GRAPH = 5,
       ATTRIBUTE_FLOATS = 6, ATTRIBUTE_INTS = 7, ATTRIBUTE_STRINGS = 8 };

/* ---- Values ---- */

int cornu__onnx_value(CornuOnnx *to, CornuOnnxValue value)
{
    if (to->count == to->space) {
        const int space = to->space ? 2 * to->space : 64;
        CornuOnnxValue *more = cornu__allocate((size_t)space, sizeof *more);
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

/* Out of memory, numbers may refer to no value. */
static const CornuOnnxValue *value_of(const CornuOnnx *to, int value)
{
    static const CornuOnnxValue none;
    return value < to->count ? &to->values[value] : &none;
}

const char *cornu__onnx_name(CornuOnnxName *name, int value)
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
    if (from->graph) {
        cornu__put_bytes(node, 6, from->graph->bytes, from->graph->size);
        type = ATTRIBUTE_GRAPH;
    } else if (from->texts) {
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

size_t cornu__onnx_begin_node(CornuOnnx *to, const char *operator)
{
    const size_t node = cornu__begin_field(&to->nodes, 1);
    if (to->label && *to->label) cornu__put_text(&to->nodes, 3, to->label);
    cornu__put_text(&to->nodes, 4, operator);
    return node;
}

void cornu__onnx_put_pending(CornuOnnx *to, int value)
{
    CornuOnnxName         name;
    const CornuOnnxValue *from = value_of(to, value);
    if (!from->pending) return;
    to->values[value].pending = false;
    if (from->form) cornu__onnx_put_weight(to, value);
    else if (from->scalar)
        cornu__onnx_put_tensor(to, value, CORNU_ONNX_FLOAT, (CornuShape){ 0 }, &from->number,
                               sizeof from->number);
    if (!from->source) return;
    cornu__onnx_put_pending(to, from->source);
    const size_t node = cornu__onnx_begin_node(to, "Transpose");
    cornu__put_text(&to->nodes, 1, cornu__onnx_name(&name, from->source));
    cornu__put_text(&to->nodes, 2, cornu__onnx_name(&name, value));
    put_attribute(&to->nodes, &(CornuOnnxAttribute){ .name = "perm", .integers = from->order,
                                                     .count = from->rank });
    cornu__end_field(&to->nodes, node);
}

int cornu__onnx_node(CornuOnnx *to, const char *operator, const int *in, int in_count,
                     const CornuOnnxAttribute *attributes, int attribute_count, int out_count)
{
    CornuMessage *nodes = &to->nodes;
    CornuOnnxName          name;
    int           first = CORNU_ONNX_NONE;
    /* Optional operands at the end are left out: an empty name there, which ONNX allows too, makes
     * onnxruntime 1.32 crash when it fuses the node with a neighbour. */
    while (in_count > 0 && in[in_count - 1] == CORNU_ONNX_NONE) in_count--;
    for (int i = 0; i < in_count; i++) cornu__onnx_put_pending(to, in[i]);
    const size_t node = cornu__onnx_begin_node(to, operator);
    for (int i = 0; i < in_count; i++) cornu__put_text(nodes, 1, cornu__onnx_name(&name, in[i]));
    for (int i = 0; i < out_count; i++) {
        const int out = cornu__onnx_value(to, (CornuOnnxValue){ 0 });
        cornu__put_text(nodes, 2, cornu__onnx_name(&name, out));
        if (i == 0) first = out;
    }
    for (int i = 0; i < attribute_count; i++) put_attribute(nodes, &attributes[i]);
    cornu__end_field(nodes, node);
    return first;
}

/* ---- Bodies of loops ---- */

CornuOnnxBody cornu__onnx_begin_body(CornuOnnx *to, int in_count, int *in)
{
    CornuOnnxBody body = { .around = to->nodes, .first = to->count, .extents = to->extent_count };
    to->nodes = (CornuMessage){ .failed = body.around.failed };
    for (int i = 0; i < in_count; i++) in[i] = cornu__onnx_value(to, (CornuOnnxValue){ 0 });
    return body;
}

/* An input or output of a body; shapes follow from the operands of the loop. */
static void put_body_value(CornuMessage *body, int field, int value, int type)
{
    CornuOnnxName name;
    const size_t  at = cornu__begin_field(body, field);
    cornu__put_text(body, 1, cornu__onnx_name(&name, value));
    const size_t kind = cornu__begin_field(body, 2), tensor = cornu__begin_field(body, 1);
    cornu__put_number(body, 1, type);
    cornu__end_field(body, tensor);
    cornu__end_field(body, kind);
    cornu__end_field(body, at);
}

/* What is computed in the body is not seen outside: neither its transposes nor its extents. */
static void forget(CornuOnnx *to, const CornuOnnxBody *body)
{
    for (int i = body->first; i < to->count; i++) to->values[i].source = CORNU_ONNX_NONE;
    to->extent_count = body->extents;
    for (int i = 0; i < to->extent_count; i++)
        if (to->extents[i].vector >= body->first) to->extents[i].vector = CORNU_ONNX_NONE;
}

void cornu__onnx_end_body(CornuOnnx *to, CornuOnnxBody *body, const int *in, const int *in_types,
                          int in_count, const int *out, const int *out_types, int out_count)
{
    CornuOnnxName name;
    for (int i = 0; i < out_count; i++) cornu__onnx_put_pending(to, out[i]);
    body->body = to->nodes;
    to->nodes = body->around;
    cornu__put_text(&body->body, 2, cornu__onnx_name(&name, in[0]));
    for (int i = 0; i < in_count; i++) put_body_value(&body->body, 11, in[i], in_types[i]);
    for (int i = 0; i < out_count; i++) put_body_value(&body->body, 12, out[i], out_types[i]);
    to->nodes.failed |= body->body.failed;
    forget(to, body);
}

void cornu__onnx_free_body(CornuOnnxBody *body) { cornu__release(body->body.bytes); }

/* ---- Layout ---- */

static bool same_transpose(const CornuOnnxValue *a, const CornuOnnxValue *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->order[i] != b->order[i]) return false;
    return a->rank == b->rank;
}

int cornu__onnx_transpose(CornuOnnx *to, int x, const int64_t *order, int rank)
{
    const CornuOnnxValue *from = value_of(to, x);
    const int             weight = cornu__onnx_turned_weight(to, x, order, rank);
    CornuOnnxValue        turned = { .source = from->source ? from->source : x, .rank = rank,
                            .pending = true };
    bool         moves = false;
    if (weight) return weight;
    for (int i = 0; i < rank; i++) {
        turned.order[i] = from->source ? from->order[order[i]] : order[i];
        moves |= turned.order[i] != i;
    }
    if (!moves) return turned.source;
    for (int i = 1; i < to->count; i++)
        if (to->values[i].source == turned.source && same_transpose(&to->values[i], &turned))
            return i;
    return cornu__onnx_value(to, turned);
}

int cornu__onnx_lying(const CornuOnnx *to, const int *in, int count, int *lying,
                      int64_t order[CORNU_MAX_RANK])
{
    const CornuOnnxValue *first = NULL;
    bool         alike = true;
    for (int i = 0; i < count; i++) {
        const CornuOnnxValue *value = value_of(to, in[i]);
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

void cornu__onnx_put_tensor(CornuOnnx *to, int value, int type, CornuShape shape,
                            const void *bytes, size_t size)
{
    CornuMessage *constants = &to->constants;
    CornuOnnxName name;
    const size_t  tensor = cornu__begin_field(constants, 5);
    for (int i = 0; i < shape.rank; i++) cornu__put_number(constants, 1, shape.extent[i]);
    cornu__put_number(constants, 2, type);
    cornu__put_text(constants, 8, cornu__onnx_name(&name, value));
    cornu__put_bytes(constants, 9, bytes, size);
    cornu__end_field(constants, tensor);
}

int cornu__onnx_raw(CornuOnnx *to, int type, CornuShape shape, const void *bytes, size_t size)
{
    const int value = cornu__onnx_value(to, (CornuOnnxValue){ .constant = true,
                                                               .scalar = shape.rank == 0 });
    cornu__onnx_put_tensor(to, value, type, shape, bytes, size);
    return value;
}

int cornu__onnx_constant(CornuOnnx *to, CornuArray array)
{
    const int type = array.type.dtype == CORNU_F32    ? CORNU_ONNX_FLOAT
                   : array.type.dtype == CORNU_BOOL   ? CORNU_ONNX_BOOL : CORNU_ONNX_INT64;
    return cornu__onnx_raw(to, type, array.type.shape, array.data, cornu_type_bytes(array.type));
}

int cornu__onnx_integers(CornuOnnx *to, const int64_t *integers, int count)
{
    return cornu__onnx_constant(to, cornu_array((void *)integers, CORNU_I64, count));
}

int cornu__onnx_scalar(CornuOnnx *to, double value)
{
    return cornu__onnx_value(to, (CornuOnnxValue){ .constant = true, .scalar = true,
                                                   .pending = true, .number = (float)value });
}

float *cornu__onnx_room(CornuOnnx *to, CornuShape shape)
{
    float *room = cornu__allocate((size_t)cornu_shape_count(shape), sizeof *room);
    if (!room) to->nodes.failed = true;
    return room;
}

int cornu__onnx_filled(CornuOnnx *to, CornuShape shape, float value)
{
    float *values = cornu__onnx_room(to, shape);
    if (!values) return CORNU_ONNX_NONE;
    for (int64_t i = 0; i < cornu_shape_count(shape); i++) values[i] = value;
    const int constant = cornu__onnx_constant(
        to, cornu_array_from(values, cornu_type_from(CORNU_F32, shape)));
    cornu__release(values);
    return constant;
}
