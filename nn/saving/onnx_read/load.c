/* Making a model of an ONNX file. */
#include "load_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../../device/log_internal.h"
#include "../../../device/memory_internal.h"

/* ---- Names ---- */

typedef struct { char text[128]; } Name;

/* That of the file without slashes, which separate the names of weights. */
static void clean_name(const char *from, Name *name)
{
    const size_t length = strlen(from);
    if (length > 100) from += length - 100;
    while (*from == '/') from++;
    snprintf(name->text, sizeof name->text, "%s", *from ? from : "node");
    for (char *c = name->text; *c; c++)
        if (*c == '/' || *c == ' ' || (unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '.';
}

/* A name for a layer, unlike any other. */
static CornuStatus name_for(CornuLookup *taken, const char *from, Name *name)
{
    clean_name(from, name);
    const size_t end = strlen(name->text);
    for (int i = 1; cornu__lookup_find(taken, name->text) >= 0; i++)
        snprintf(name->text + end, sizeof name->text - end, "_%d", i);
    return cornu__lookup_set(taken, name->text, 1);
}

/* ---- Layers ---- */

typedef struct {
    CornuReadLoad *load;
    CornuLookup    taken;        /* names of layers */
    CornuNode    **nodes;        /* referenced */
    int            count, space;
} Building;

static CornuStatus keep(Building *b, CornuNode *node)
{
    CornuNode *kept = cornu__node_ref(node);
    const CornuStatus status = cornu__reserve(&b->nodes, &b->space, b->count, 1, sizeof *b->nodes);
    if (status) cornu__node_unref(kept);
    else b->nodes[b->count++] = kept;
    return status;
}

static CornuStatus add_input(Building *b, const CornuReadInfo *info)
{
    CornuReadValue  *value = cornu__read_value(b->load, info->name);
    CornuInputConfig config = { .dtype = info->type.dtype, .batch_size = b->load->batch };
    Name             name;
    CornuType        type;
    CORNU__TRY(name_for(&b->taken, info->name, &name));
    config.name = name.text;
    if (config.dtype == CORNU_F64) config.dtype = CORNU_F32;
    for (int i = 1; i < info->type.shape.rank; i++)
        config.shape[i - 1] = info->type.shape.extent[i];
    if (!b->load->function) CORNU__TRY(cornu__input_check(&config, name.text, "", &type));
    else type = cornu_type_from(config.dtype, info->type.shape);
    CornuNode *node = b->load->function ? cornu__whole_input_node(&config, type)
                                        : cornu__input_node(&config, type);
    if (!node) return cornu_error_take();
    CORNU__TRY(keep(b, node));
    value->symbol = &node->out[0];
    return CORNU_OK;
}

/* A filter (F, C, …) as (…, C, F). */
static void reorder(CornuArray from, CornuArray to)
{
    const CornuShape shape = from.type.shape;
    const int64_t    filters = shape.extent[0], channels = shape.extent[1];
    const int64_t    count = cornu_type_count(from.type);
    const int64_t    places = count ? count / (filters * channels) : 0;
    const float     *x = from.type.dtype == CORNU_F32 ? from.data : NULL;
    float           *y = to.data;
    for (int64_t i = 0; i < places; i++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t f = 0; f < filters; f++) {
                const int64_t at = (f * channels + c) * places + i;
                *y++ = x ? x[at] : (float)cornu_array_get(from, at);
            }
}

/* A weight's numbers as f32, in which integers must be exact. */
static CornuStatus write_weight(CornuWeight *weight, const CornuReadTensor *tensor)
{
    const CornuArray from = tensor->array;
    const int64_t    count = cornu_type_count(from.type);
    const bool       filter = tensor->role == CORNU_READ_FILTER && from.type.shape.rank > 2;
    CornuArray       to = { .type = weight->type };
    if (from.type.dtype == CORNU_F32 && !filter) return cornu_weight_write(weight, from);
    to.data = cornu__allocate((size_t)count, sizeof(float));
    if (!to.data) return CORNU_ERR_MEMORY;
    CornuStatus status = CORNU_OK;
    if (filter) reorder(from, to);
    for (int64_t i = 0; i < count && !status && !filter; i++) {
        const double value = cornu_array_get(from, i);
        cornu_array_set(to, i, value);
        if (!cornu_dtype_is_float(from.type.dtype) && fabs(value) > 0x1p24)
            status = cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: the constant %.0f, expected whole "
                                 "numbers up to 2^24", weight->path, value);
    }
    if (!status) status = cornu_weight_write(weight, to);
    cornu__release(to.data);
    return status;
}

static CornuStatus call_layer(Building *b, CornuLayer *layer, const CornuReadPiece *piece)
{
    CornuSymbol *in[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < piece->in_count; i++) in[i] = piece->in[i]->symbol;
    CornuNode *node = cornu__call_node(layer, in, piece->in_count, NULL);
    if (!node) return cornu_error_take();
    CORNU__TRY(keep(b, node));
    for (int i = 0; i < piece->out_count; i++) piece->out[i]->symbol = &node->out[i];
    for (int i = 0; i < piece->weight_count; i++)
        CORNU__TRY(write_weight(layer->weights[i], &piece->weights[i]));
    return CORNU_OK;
}

static CornuStatus add_layer(Building *b, const CornuReadNode *node, const CornuReadPiece *piece)
{
    const CornuOnnxNodeConfig config = { .graph = piece->text };
    Name                      name;
    CORNU__TRY(name_for(&b->taken, *node->name ? node->name : piece->out[0]->name, &name));
    CornuLayer *layer = cornu__onnx_node_layer(name.text, &config);
    if (!layer) return cornu_error_take();
    layer->owners = 1;   /* ours, until it is called */
    layer->name = cornu__copy_text(name.text);
    const CornuStatus status = layer->name ? call_layer(b, layer, piece) : CORNU_ERR_MEMORY;
    cornu_layer_free(layer);
    return status;
}

static CornuStatus add_node(Building *b, int i)
{
    CornuReadLoad       *load = b->load;
    const CornuReadNode *node = &load->model.graph.nodes[i];
    if (!load->traced[i].real) return CORNU_OK;
    CornuReadValue *in = node->in_count ? cornu__read_value(load, node->in[0]) : NULL;
    if (cornu__read_passes(load, node) && in && in->symbol) {
        CornuReadValue *out = cornu__read_value(load, node->out[0]);
        if (out) out->symbol = in->symbol;
        return CORNU_OK;
    }
    CornuReadPiece piece;
    CornuStatus    status = cornu__read_piece(load, i, &piece);
    if (!status) status = add_layer(b, node, &piece);
    cornu__release(piece.text);
    cornu__release(piece.weights);
    return status;
}

/* ---- The model ---- */

static CornuSymbol *symbol_of(CornuReadLoad *load, const char *name)
{
    const CornuReadValue *value = cornu__read_value(load, name);
    return value ? value->symbol : NULL;
}

static CornuStatus find_ends(Building *b, CornuModelConfig *config)
{
    const CornuReadGraph *graph = &b->load->model.graph;
    for (int i = 0; i < graph->input_count; i++)
        config->inputs[i] = symbol_of(b->load, graph->inputs[i].name);
    for (int i = 0; i < graph->output_count; i++) {
        config->outputs[i] = symbol_of(b->load, graph->outputs[i].name);
        if (!config->outputs[i])
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the output %.100s is a constant",
                               graph->outputs[i].name);
    }
    return CORNU_OK;
}

static CornuStatus build_all(Building *b, CornuModel **model)
{
    const CornuReadGraph *graph = &b->load->model.graph;
    CornuModelConfig      config = { .unset = 0 };
    Name                  name;
    for (int i = 0; i < graph->input_count; i++) CORNU__TRY(add_input(b, &graph->inputs[i]));
    for (int i = 0; i < graph->node_count; i++) CORNU__TRY(add_node(b, i));
    CORNU__TRY(find_ends(b, &config));
    clean_name(*graph->name ? graph->name : "onnx", &name);
    config.name = name.text;
    *model = cornu__model_of(&config);
    if (!*model) return cornu_error_take();
    if (cornu_model_trainable_parameters(*model) == 0)
        cornu__log(CORNU_LOG_WARNING, "%s has no weights that can be trained", name.text);
    return CORNU_OK;
}

static CornuStatus build(CornuReadLoad *load, CornuModel **model)
{
    Building    b = { .load = load, .taken = { .of_strings = true } };
    for (int i = 0; i < load->names.count; i++) load->values[i].symbol = NULL;
    CornuStatus status = build_all(&b, model);
    for (int i = 0; i < b.count; i++) cornu__node_unref(b.nodes[i]);
    cornu__release(b.nodes);
    cornu__lookup_clear(&b.taken);
    return status;
}

/* Builds the model; rows of batches that depend on each other may be rows of several things, unless
 * the names of their extents are one: then it is a function. */
static CornuStatus build_kind(CornuReadLoad *load, CornuModel **model)
{
    CornuType types[CORNU_MAX_MODEL_TENSORS];
    CORNU__TRY(build(load, model));
    if (load->function || load->batch || cornu__read_names_batch(load)) return CORNU_OK;
    cornu__read_first_types(load, types);
    CORNU__TRY(cornu__model_rows(*model, types));
    if ((*model)->rows == CORNU_ROWS_INDEPENDENT) return CORNU_OK;
    cornu_model_free(*model);
    *model = NULL;
    load->function = true;
    CORNU__TRY(cornu__read_trace(load));
    return build(load, model);
}

/* Frees the load. */
static CornuStatus load_bytes(CornuReadLoad *load, const void *bytes, size_t size,
                              const char *path, CornuModel **model)
{
    CornuStatus status = cornu__onnx_register();
    if (!status) status = cornu__onnx_parse(&load->arena, bytes, size, path, &load->model);
    load->budget = CORNU_READ_MOST_OPS;
    if (load->model.graph.node_count < CORNU_READ_MOST_OPS)
        load->budget += CORNU_READ_OPS_OF_A_NODE * load->model.graph.node_count;
    cornu__arena_limit(&load->arena);
    if (!status) status = cornu__read_prepare(load);
    if (!status) status = cornu__read_trace(load);
    if (!status) status = build_kind(load, model);
    cornu__lookup_clear(&load->names);
    cornu__arena_free(&load->arena);
    return status;
}

static CornuStatus load_or_free(const void *bytes, size_t size, const char *path,
                                CornuInputShapes *shapes, CornuModel **model)
{
    CornuReadLoad load = { .shapes = shapes };
    *model = NULL;
    const CornuStatus status = load_bytes(&load, bytes, size, path, model);
    if (!status) return CORNU_OK;
    cornu_model_free(*model);
    *model = NULL;
    return status;
}

CornuStatus cornu__onnx_load_bytes(const void *bytes, size_t size, CornuInputShapes *shapes,
                                   CornuModel **model)
{
    return load_or_free(bytes, size, NULL, shapes, model);
}

CornuModel *cornu__onnx_load_shaped(const char *path, CornuInputShapes *shapes)
{
    CornuModel    *model = NULL;
    CornuFileBytes file = { NULL, 0 };
    CornuStatus    status = cornu__file_read(&file, path);
    if (!status) status = load_or_free(file.bytes, file.size, path, shapes, &model);
    cornu__file_release(&file);
    cornu__give_back_memory();
    return status ? cornu__null() : model;
}

CornuModel *cornu__onnx_load(const char *path, bool compile, CornuDevice *device)
{
    (void)device;
    if (compile)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with, as "
                                ".keras files do; load it by cornu_model_load, and compile it");
    return cornu__onnx_load_shaped(path, NULL);
}
