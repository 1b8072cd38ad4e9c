/* Symbols and nodes; the thread owns them until a model does. */
#include "../layers/preprocessing/host_internal.h"
#include "model_internal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Thread_local CornuNode  *session_nodes;    /* the newest first */
static _Thread_local CornuLayer *session_layers;   /* of calls that failed */
static _Thread_local int         last_stamp;

/* Unique over all threads, as several may walk a node in turn. */
int cornu__next_stamp(void)
{
    static atomic_int stamps;
    return last_stamp = atomic_fetch_add(&stamps, 1) + 1;
}

/* The layers among which default names are counted: those that may share a model with the next
 * layer, which are all of the thread's nodes and their ancestors. Counts are kept from call to call
 * until another walk over nodes changes the stamps. */
static _Thread_local struct {
    int         stamp;
    CornuLookup labels;
    CornuNode  *newest;        /* of the thread's nodes, at the last count */
    CornuNode **left;          /* nodes still to visit */
    int         left_count, left_space;
} naming = { .labels = { .of_strings = true } };

static void forget_labels(void)
{
    cornu__lookup_clear(&naming.labels);
    cornu__release(naming.left);
    naming.left = NULL;
    naming.newest = NULL;
    naming.left_count = naming.left_space = naming.stamp = 0;
}

/* ---- Nodes ---- */

CornuNode *cornu__node_ref(CornuNode *node)
{
    node->owners++;
    return node;
}

/* Unreferenced nodes are queued in a list instead of recursing, as chains may be long. */
void cornu__node_unref(CornuNode *node)
{
    if (!node || --node->owners > 0) return;
    node->next = NULL;
    for (CornuNode *last = node; node; ) {
        for (int i = 0; i < cornu__node_symbols(node); i++) {
            CornuNode *in = node->in[i]->node;
            if (--in->owners > 0) continue;
            in->next = NULL;
            last = last->next = in;
        }
        CornuNode *next = node->next;
        cornu_layer_free(node->layer);
        cornu__release(node);
        node = next;
    }
}

/* One block of memory with the lists of the node; `symbols` are its operands and masks. */
static CornuNode *node_of(CornuLayer *layer, const CornuType *out, int out_count, int symbols)
{
    const size_t lists = (size_t)symbols * (sizeof(CornuSymbol *) + sizeof(int));
    CornuNode   *node = cornu__allocate(1, sizeof *node + (size_t)out_count * sizeof *node->out +
                                        lists);
    if (!node) return cornu__null();
    node->out = (CornuSymbol *)(node + 1);
    node->in = (CornuSymbol **)(node->out + out_count);
    node->mask_of = (int *)(node->in + symbols);
    node->layer = layer;
    node->number = layer->calls++;
    node->out_count = out_count;
    for (int i = 0; i < out_count; i++)
        node->out[i] = (CornuSymbol){ .node = node, .index = i, .type = out[i] };
    layer->owners++;
    return node;
}

const char *cornu__symbol_print(CornuText *to, const CornuSymbol *symbol)
{
    snprintf(to->text, sizeof to->text, "%.120s[%d][%d]", cornu_layer_name(symbol->node->layer),
             symbol->node->number, symbol->index);
    return to->text;
}

CornuShape cornu_symbol_shape(const CornuSymbol *symbol)
{
    CORNU__NEED_OR(symbol, (CornuShape){ 0 });
    return symbol->type.shape;
}

CornuType cornu_symbol_type(const CornuSymbol *symbol)
{
    CORNU__NEED_OR(symbol, (CornuType){ 0 });
    return symbol->type;
}

CornuSymbol *cornu_call_result(CornuSymbol *symbol, int i)
{
    if (!symbol || cornu_error_pending()) return NULL;
    if (i >= 0 && i < symbol->node->out_count) return &symbol->node->out[i];
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: returns %d tensors, there is no tensor %d",
                            cornu_layer_name(symbol->node->layer), symbol->node->out_count, i);
}

int cornu_call_results(const CornuSymbol *symbol)
{
    CORNU__NEED_OR(symbol, 0);
    return symbol->node->out_count;
}

int cornu_call_operands(const CornuSymbol *symbol)
{
    CORNU__NEED_OR(symbol, 0);
    return symbol->node->in_count;
}

CornuSymbol *cornu_call_operand(CornuSymbol *symbol, int i)
{
    if (!symbol || cornu_error_pending()) return NULL;
    if (i >= 0 && i < symbol->node->in_count) return symbol->node->in[i];
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: is called on %d tensors, there is no tensor "
                            "%d", cornu_layer_name(symbol->node->layer), symbol->node->in_count, i);
}

/* ---- Inputs ---- */

static CornuTensor *input_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return x;
}

const CornuLayerClass cornu__input_class = {
    .class_name = "InputLayer", .size = sizeof(CornuInputLayer), .call = input_call,
    .takes_integers = true,
};

CornuStatus cornu__input_check(const CornuInputConfig *config, const char *who, const char *prefix,
                               CornuType *type)
{
    *type = (CornuType){ .dtype = config->dtype, .shape = { 1, { CORNU_NONE } } };
    for (int i = 0; i < CORNU_MAX_RANK && config->shape[i]; i++) {
        const int64_t extent = config->shape[i];
        const bool    known = extent != CORNU_NONE;
        if (i == CORNU_MAX_RANK - 1 || (known && (extent < 1 || extent > INT32_MAX)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%sshape[%d] is %lld; expected at most %d "
                               "extents from 1 to %d, or CORNU_NONE", who, prefix, i,
                               (long long)extent, CORNU_MAX_RANK - 1, INT32_MAX);
        type->shape.extent[type->shape.rank++] = extent;
    }
    if (config->scalar && type->shape.rank > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .%sshape and .%sscalar are given, "
                           "expected one", who, prefix, prefix);
    if (config->batch_size < 0 || config->batch_size > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .batch_size is %lld, expected 1 to %d", who,
                           (long long)config->batch_size, INT32_MAX);
    if ((unsigned)config->dtype > CORNU_STRING)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .dtype is %d, expected 0 to %d", who,
                           (int)config->dtype, CORNU_STRING);
    if (isfinite(config->scale)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%sscale is %g, expected a finite number", who,
                       prefix, config->scale);
}

CornuNode *cornu__input_node(const CornuInputConfig *config, CornuType type)
{
    CornuLayer *layer = cornu_layer_create(&cornu__input_class, config->name, NULL);
    if (!layer) return NULL;
    CornuInputLayer *input = (CornuInputLayer *)layer;
    input->dtype = config->dtype;
    input->scale = cornu__number(config->scale, 1.0);
    input->batch_size = config->batch_size;
    layer->output = type.shape;
    layer->built = true;
    CornuNode *node = node_of(layer, &type, 1, 0);
    if (!node) cornu_layer_free(layer);
    return node;
}

CornuNode *cornu__whole_input_node(const CornuInputConfig *config, CornuType type)
{
    CornuNode *node = cornu__input_node(config, type);
    if (node) ((CornuInputLayer *)node->layer)->whole = true;
    return node;
}

/* ---- Calls ---- */

/* A layer of graphs, a model or a traced one, prefixes the paths of weights in it with its name:
 * "encoder/dense/kernel". */
static CornuStatus extend_paths(CornuLayer *layer)
{
    for (int i = layer->own_count; i < layer->weight_count; i++) {
        CornuWeight *weight = layer->weights[i];
        const size_t length = strlen(layer->name) + strlen(weight->path) + 2;
        char        *path = cornu__allocate(length, 1);
        if (!path) return CORNU_ERR_MEMORY;
        snprintf(path, length, "%s/%s", layer->name, weight->path);
        cornu__release(weight->path);
        weight->path = path;
    }
    return CORNU_OK;
}

/* Of a model; else NULL. */
static const CornuHostStage *stage_of(const CornuLayer *layer)
{
    return layer->kind->call_masked ? ((const CornuModel *)layer)->stage : NULL;
}

/* Whether the node's result is known before the step. A layer that may run on the host does from
 * now on, if its operands are there, unless another call or a model has it in the step. */
static bool is_on_host(const CornuNode *node, bool wanted)
{
    CornuLayer *layer = node->layer;
    bool        there = true;
    if (node->in_count == 0 || cornu__on_host(layer)) return true;
    if (!wanted || !layer->kind->moves_to_host || layer->calls > 1 || layer->numbered) return false;
    for (int i = 0; i < node->in_count; i++)
        there = there && is_on_host(node->in[i]->node, false);
    return layer->moved_to_host = there;
}

/* A layer runs on the host if its inputs are there, and only there strings are. */
static CornuStatus check_host(CornuLayer *layer, CornuSymbol *const *in, int count)
{
    const CornuHostStage *stage = stage_of(layer);
    CornuText             place;
    for (int i = 0; i < count; i++)
        layer->moved_to_host |= layer->kind->moves_to_host && in[i]->type.dtype == CORNU_STRING;
    for (int i = 0; i < count; i++) {
        const bool wanted = cornu__on_host(layer) || (stage && stage->takes(layer, i));
        if (wanted && !is_on_host(in[i]->node, true))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: runs on the host before the step, but "
                               "%s is computed in it; expected an input of the model or a layer "
                               "that runs on the host, too", cornu_layer_name(layer),
                               cornu__symbol_print(&place, in[i]));
        if (!wanted && in[i]->type.dtype == CORNU_STRING)
            return cornu__fail(CORNU_ERR_DTYPE, "%s: %s has strings, expected numbers, as from a "
                               "StringLookup, a TextVectorization or a Hashing",
                               cornu_layer_name(layer), cornu__symbol_print(&place, in[i]));
    }
    return CORNU_OK;
}

static CornuStatus make_call(CornuLayer *layer, CornuSymbol *const *in, int count, CornuType *out)
{
    CornuShape            shapes[CORNU_MAX_LAYER_TENSORS] = { { 0 } };
    CornuType             types[CORNU_MAX_LAYER_TENSORS];
    const CornuHostStage *stage = stage_of(layer);
    for (int i = 0; i < count; i++) {
        types[i] = in[i]->type;
        shapes[i] = types[i].shape;
    }
    if (stage && count > 0) CORNU__TRY(stage->build(layer, types));
    CORNU__TRY(check_host(layer, in, count));
    for (int i = 0; i < count; i++)
        if (in[i]->type.shape.rank < 1 && !layer->kind->any_axis)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: operand %d is a scalar, expected a batch as "
                               "axis 0", cornu_layer_name(layer), i);
    CORNU__TRY(cornu__layer_declare_weights(layer, shapes, count));
    CORNU__TRY(stage && stage->has(layer) ? stage->types(layer, types, count, out)
                                          : cornu__layer_trace(layer, types, count, out));
    if (!layer->built) layer->output = out[0].shape;
    layer->built = true;
    return layer->kind->of_graphs && layer->calls == 0 ? extend_paths(layer) : CORNU_OK;
}

/* Prefixes a message with the names of the tensors to be merged. */
static void name_operands(CornuStatus status, CornuSymbol *const *in, int count)
{
    char   text[400];
    size_t at = 0;
    for (int i = 0; i < count && at < sizeof text; i++) {
        CornuText place, shape;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s",
                               i == 0 ? "of " : i < count - 1 ? ", " : " and ",
                               cornu__symbol_print(&place, in[i]),
                               cornu_shape_print(&shape, in[i]->type.shape));
    }
    cornu__fail_prefix(status, text);
}

static void add_mask(CornuNode *node, int operand, CornuSymbol *mask)
{
    node->mask_of[node->mask_count] = operand;
    node->in[node->in_count + node->mask_count++] = mask;
    cornu__node_ref(mask->node);
}

CornuNode *cornu__call_node(CornuLayer *layer, CornuSymbol *const *in, int count,
                            const CornuCallOptions *options)
{
    CornuType   out[CORNU_MAX_LAYER_TENSORS];
    int         masks = 0;
    for (int i = 0; i < count && options; i++) masks += options->masks[i] != NULL;
    layer->reverse = options && options->reverse;
    CornuStatus status = make_call(layer, in, count, out);
    if (status && count > 1) name_operands(status, in, count);
    if (status) return cornu__null();
    CornuNode *node = node_of(layer, out, cornu_layer_outputs(layer), count + masks);
    if (!node) return NULL;
    node->in_count = count;
    for (int i = 0; i < count; i++) {
        node->in[i] = in[i];
        cornu__node_ref(in[i]->node);
    }
    for (int i = 0; i < count && options; i++)
        if (options->masks[i]) add_mask(node, i, options->masks[i]);
    if (options) node->training = options->training;
    node->reverse = layer->reverse;
    return node;
}

/* ---- Nodes and layers of the thread ---- */

CornuSymbol *cornu__node_keep(CornuNode *node)
{
    if (!node) return NULL;
    node->in_session = true;
    node->next = session_nodes;
    node->previous = NULL;
    if (session_nodes) session_nodes->previous = node;
    session_nodes = cornu__node_ref(node);
    return &node->out[0];
}

void cornu__node_detach(CornuNode *node)
{
    if (!node->in_session) return;
    forget_labels();
    if (node->previous) node->previous->next = node->next;
    else session_nodes = node->next;
    if (node->next) node->next->previous = node->previous;
    node->in_session = false;
    cornu__node_unref(node);
}

CornuSymbol *cornu_symbol_take(CornuSymbol *symbol)
{
    if (!symbol) return NULL;
    cornu__node_ref(symbol->node);
    cornu__node_detach(symbol->node);
    return symbol;
}

void cornu_symbol_free(CornuSymbol *symbol)
{
    if (symbol) cornu__node_unref(symbol->node);
}

/* The program may call the layer again while an error is pending. */
static void keep_layer(CornuLayer *layer)
{
    if (!layer || layer->owners > 0) return;
    layer->owners = 1;
    layer->next_kept = session_layers;
    session_layers = layer;
}

void cornu_clear_session(void)
{
    forget_labels();
    while (session_nodes) cornu__node_detach(session_nodes);
    for (CornuLayer *layer; (layer = session_layers);) {
        session_layers = layer->next_kept;
        cornu_layer_free(layer);
    }
}

/* ---- Names ---- */

/* Counts the labels of layers that the node depends on and that were not counted yet. */
static CornuStatus count_new_labels(CornuNode *node)
{
    for (naming.left_count = 0; node; ) {
        if (node->stamp != naming.stamp) {
            node->stamp = naming.stamp;
            if (node->number == 0)
                CORNU__TRY(cornu__layer_count_label(node->layer, &naming.labels));
            CORNU__TRY(cornu__reserve(&naming.left, &naming.left_space, naming.left_count,
                                      cornu__node_symbols(node), sizeof *naming.left));
            for (int i = 0; i < cornu__node_symbols(node); i++)
                naming.left[naming.left_count++] = node->in[i]->node;
        }
        node = naming.left_count > 0 ? naming.left[--naming.left_count] : NULL;
    }
    return CORNU_OK;
}

static CornuStatus count_labels(CornuSymbol *const *in, int in_count)
{
    if (naming.stamp == 0 || naming.stamp != last_stamp) {
        forget_labels();
        naming.stamp = cornu__next_stamp();
    }
    for (CornuNode *node = session_nodes; node != naming.newest; node = node->next)
        CORNU__TRY(count_new_labels(node));
    naming.newest = session_nodes;
    for (int i = 0; i < in_count; i++) CORNU__TRY(count_new_labels(in[i]->node));
    return CORNU_OK;
}

static bool is_named(const CornuLayer *layer)
{
    bool named = layer->name != NULL;
    for (int i = 0; i < layer->inner_count && named && layer->inner[i]->outer; i++)
        named = is_named(layer->inner[i]);
    return named;
}

/* Labels are counted for a layer without a name alone: a walk over all nodes after each that a
 * program takes would be time by their square. */
static CornuStatus set_name(CornuLayer *layer, CornuSymbol *const *in, int in_count)
{
    CornuStatus status = is_named(layer) ? CORNU_OK : count_labels(in, in_count);
    if (!status) status = cornu__layer_set_name(layer, &naming.labels);
    if (status) forget_labels();
    return status;
}

CornuSymbol *cornu_input_from(const CornuInputConfig *config)
{
    const char *who = config->name ? config->name : "input";
    CornuType   type;
    if (cornu__refused()) return NULL;
    if (cornu__input_check(config, who, "", &type)) return cornu__null();
    if (type.shape.rank == 1 && type.dtype != CORNU_STRING && !config->scalar)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .shape is required, or .scalar", who);
    CornuNode *node = cornu__input_node(config, type);
    if (!node) return NULL;
    if (set_name(node->layer, NULL, 0)) {
        cornu__node_ref(node);
        cornu__node_unref(node);
        return cornu__null();
    }
    return cornu__node_keep(node);
}

static CornuStatus check_call(const CornuLayer *layer, CornuSymbol *const *in, int count)
{
    if (!layer) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_call: the layer is NULL");
    if (count < 1 || count > CORNU_MAX_LAYER_TENSORS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: called on %d symbols, expected 1 to %d",
                           cornu_layer_name(layer), count, CORNU_MAX_LAYER_TENSORS);
    for (int i = 0; i < count; i++)
        if (!in[i])
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: operand %d of the call is NULL",
                               cornu_layer_name(layer), i);
    return CORNU_OK;
}

CornuSymbol *cornu__call_with(CornuLayer *layer, CornuSymbol *const *in, int count,
                              const CornuCallOptions *options)
{
    CornuNode *node = NULL;
    if (!cornu__refused()) {
        if (check_call(layer, in, count) || (layer->calls == 0 && set_name(layer, in, count)))
            cornu__null();
        else
            node = cornu__call_node(layer, in, count, options);
    }
    if (node) return cornu__node_keep(node);
    keep_layer(layer);
    return NULL;
}

CornuSymbol *cornu_call_from(CornuLayer *layer, CornuSymbol *const *in, int count)
{
    return cornu__call_with(layer, in, count, NULL);
}

CornuSymbol *cornu_call_reverse(CornuLayer *layer, CornuSymbol *in)
{
    const CornuCallOptions options = { .reverse = true };
    if (layer && !cornu__keras_class(layer)->reverses && !cornu__refused()) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: layers of class %s have no reverse, expected a "
                    "ReversibleEmbedding", cornu_layer_name(layer), layer->kind->class_name);
        cornu__null();
    }
    return cornu__call_with(layer, &in, 1, &options);
}
