/* The graph of a layer: a node, its constants, and the nodes that compute its parameters. */
#include "load_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../formats/base64_internal.h"

/* ---- Writing ---- */

static void put_type(CornuMessage *to, int field, const char *name, CornuType type)
{
    const size_t info = cornu__begin_field(to, field);
    cornu__put_text(to, 1, name);
    const size_t kind = cornu__begin_field(to, 2), tensor = cornu__begin_field(to, 1);
    cornu__put_number(to, 1, cornu__onnx_type_number(type.dtype));
    const size_t shape = cornu__begin_field(to, 2);
    for (int i = 0; i < type.shape.rank; i++) {
        const size_t extent = cornu__begin_field(to, 1);
        if (type.shape.extent[i] != CORNU_NONE) cornu__put_number(to, 1, type.shape.extent[i]);
        cornu__end_field(to, extent);
    }
    cornu__end_field(to, shape);
    cornu__end_field(to, tensor);
    cornu__end_field(to, kind);
    cornu__end_field(to, info);
}

/* Integers of fewer bits keep their type: some operators round to it. */
static void put_tensor(CornuMessage *to, const char *name, const CornuReadOperand *from,
                       CornuReadRole role)
{
    const CornuArray array = from->known;
    const bool       narrow = cornu__onnx_is_narrow(from->onnx_type);
    const size_t     tensor = cornu__begin_field(to, 5);
    for (int i = 0; i < array.type.shape.rank; i++)
        cornu__put_number(to, 1, array.type.shape.extent[i]);
    cornu__put_number(to, 2, narrow ? from->onnx_type : cornu__onnx_type_number(array.type.dtype));
    cornu__put_text(to, 8, name);
    if (role) cornu__put_text(to, 12, cornu__onnx_role_name(role));
    else if (!narrow) cornu__put_bytes(to, 9, array.data, cornu_type_bytes(array.type));
    for (int64_t i = 0; i < cornu_type_count(array.type) && narrow && !role; i++)
        cornu__put_number(to, 5, ((const int32_t *)array.data)[i]);
    cornu__end_field(to, tensor);
}

/* Results that nobody wants are left out. */
static void put_node(CornuReadLoad *load, CornuMessage *to, const CornuReadNode *from)
{
    const size_t node = cornu__begin_field(to, 1);
    for (int i = 0; i < from->own_count; i++) cornu__put_text(to, 1, from->in[i]);
    for (int i = 0; i < from->out_count; i++) {
        const CornuReadValue *value = cornu__read_value(load, from->out[i]);
        cornu__put_text(to, 2, value && value->wanted ? from->out[i] : "");
    }
    if (*from->name) cornu__put_text(to, 3, from->name);
    cornu__put_text(to, 4, from->op);
    if (*from->domain) cornu__put_text(to, 7, from->domain);
    for (int i = 0; i < from->attribute_count; i++)
        cornu__put_bytes(to, 5, from->attributes[i].bytes.bytes, from->attributes[i].bytes.size);
    cornu__end_field(to, node);
}

/* ---- Collecting ---- */

typedef struct {
    CornuReadLoad  *load;
    CornuReadPiece *piece;
    CornuMessage    tensors;
    CornuLookup     seen;        /* values that are in the graph already */
    bool           *included;    /* nodes */
    int             space;       /* of weights */
} Collecting;

static CornuStatus add_weight(Collecting *c, const char *name, const CornuReadOperand *from,
                              CornuReadRole role)
{
    put_tensor(&c->tensors, name, from, role);
    CORNU__TRY(cornu__reserve(&c->piece->weights, &c->space, c->piece->weight_count, 1,
                              sizeof *c->piece->weights));
    c->piece->weights[c->piece->weight_count++] = (CornuReadTensor){
        .name = name, .role = role, .array = from->known, .onnx_type = from->onnx_type };
    return CORNU_OK;
}

/* A Reshape of which one extent differs leaves it to be inferred. */
static bool infers(const CornuReadNode *node, int operand, const CornuReadValue *value,
                   int64_t shape[CORNU_MAX_RANK], int *rank)
{
    const CornuArray a = value->runs[0].known, b = value->runs[1].known;
    int              differ = 0, open = 0;
    if (strcmp(node->op, "Reshape") || operand != 1 || !cornu_type_equal(a.type, b.type) ||
        a.type.shape.rank != 1 || a.type.shape.extent[0] > CORNU_MAX_RANK)
        return false;
    *rank = (int)a.type.shape.extent[0];
    for (int i = 0; i < *rank; i++) {
        const int64_t x = (int64_t)cornu_array_get(a, i), y = (int64_t)cornu_array_get(b, i);
        shape[i] = x == y ? x : -1;
        differ += x != y;
        open += x < 0 || y < 0;
    }
    return differ == 1 && open == 0;
}

static CornuStatus add_operand(Collecting *c, int n, int i, bool own)
{
    CornuReadLoad       *load = c->load;
    const CornuReadNode *node = &load->model.graph.nodes[n];
    CornuReadValue      *value = cornu__read_value(load, node->in[i]);
    int64_t              shape[CORNU_MAX_RANK];
    int                  rank = 0;
    if (!value) return CORNU_OK;
    if (value->known && !value->same && !(own && infers(node, i, value, shape, &rank))) {
        c->included[value->node] = true;
        return CORNU_OK;
    }
    if (cornu__lookup_find(&c->seen, value) >= 0) return CORNU_OK;
    CORNU__TRY(cornu__lookup_set(&c->seen, value, 0));
    if (!value->known) {
        if (c->piece->in_count == CORNU_MAX_LAYER_TENSORS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.100s depends on more than %d tensors",
                               node->name, CORNU_MAX_LAYER_TENSORS);
        c->piece->in[c->piece->in_count++] = value;
        return CORNU_OK;
    }
    if (!value->same) {
        const CornuReadOperand list = { .known = cornu_array(shape, CORNU_I64, rank) };
        put_tensor(&c->tensors, node->in[i], &list, CORNU_READ_VALUE);
        return CORNU_OK;
    }
    const CornuReadRole role = own ? load->traced[n].roles[i] : CORNU_READ_VALUE;
    if (role) return add_weight(c, node->in[i], &value->runs[0], role);
    put_tensor(&c->tensors, node->in[i], &value->runs[0], CORNU_READ_VALUE);
    return CORNU_OK;
}

static CornuStatus collect(Collecting *c, int n)
{
    CornuReadLoad         *load = c->load;
    const CornuReadGraph  *graph = &load->model.graph;
    const CornuReadTraced *traced = &load->traced[n];
    c->included[n] = true;
    for (int k = n; k >= 0; k--)
        for (int i = 0; c->included[k] && i < graph->nodes[k].in_count; i++)
            CORNU__TRY(add_operand(c, k, i, k == n));
    for (int i = 0; i < traced->made_count; i++) {
        char *name = cornu__arena_take(&load->arena, 24, 1);
        if (!name) return CORNU_ERR_MEMORY;
        snprintf(name, 24, i ? "constant_%d" : "constant", i);
        const CornuReadOperand made = { .known = traced->made[i] };
        CORNU__TRY(add_weight(c, name, &made, CORNU_READ_MADE));
    }
    /* A node of constants alone still needs the graph that an input is in. */
    for (int i = 0; i < graph->input_count && c->piece->in_count == 0; i++)
        c->piece->in[c->piece->in_count++] = cornu__read_value(load, graph->inputs[i].name);
    return CORNU_OK;
}

static CornuStatus put_graph(Collecting *c, int n, CornuMessage *to)
{
    CornuReadLoad        *load = c->load;
    const CornuReadGraph *graph = &load->model.graph;
    CornuReadPiece       *piece = c->piece;
    const CornuReadNode  *node = &graph->nodes[n];
    const size_t opset = cornu__begin_field(to, 8);
    cornu__put_text(to, 1, "");
    cornu__put_number(to, 2, load->model.opset);
    cornu__end_field(to, opset);
    const size_t whole = cornu__begin_field(to, 7);
    for (int k = 0; k <= n; k++)
        if (c->included[k]) put_node(load, to, &graph->nodes[k]);
    cornu__put(to, c->tensors.bytes, c->tensors.size);
    for (int i = 0; i < piece->in_count; i++)
        put_type(to, 11, piece->in[i]->name, piece->in[i]->type);
    for (int i = 0; i < node->out_count; i++) {
        CornuReadValue *value = cornu__read_value(load, node->out[i]);
        if (!value || !value->wanted) continue;
        if (value->known) continue;
        if (piece->out_count == CORNU_MAX_LAYER_TENSORS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.100s has more than %d results",
                               node->name, CORNU_MAX_LAYER_TENSORS);
        piece->out[piece->out_count++] = value;
        put_type(to, 12, value->name, value->type);
    }
    cornu__end_field(to, whole);
    to->failed |= c->tensors.failed;
    if (to->failed) return CORNU_ERR_MEMORY;
    piece->text = cornu__base64(to->bytes, to->size);
    return piece->text ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__read_piece(CornuReadLoad *load, int n, CornuReadPiece *piece)
{
    Collecting   c = { .load = load, .piece = piece };
    CornuMessage to = { 0 };
    *piece = (CornuReadPiece){ .text = NULL };
    c.included = cornu__allocate((size_t)n + 1, sizeof *c.included);
    CornuStatus status = c.included ? collect(&c, n) : CORNU_ERR_MEMORY;
    if (!status) status = put_graph(&c, n, &to);
    cornu__lookup_clear(&c.seen);
    cornu__release(c.included);
    cornu__release(c.tensors.bytes);
    cornu__release(to.bytes);
    return status;
}
