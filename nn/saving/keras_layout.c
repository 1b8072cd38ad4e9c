/* The places of a model's weights in Keras' files. Source: keras/src/saving/saving_lib.py,
 * _save_state. */
#include "keras_internal.h"
#include "../layers/quantized_internal.h"
#include "../layers/operations/operation_internal.h"
#include "../model/traced/traced_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PATH = CORNU_KERAS_PATH };

typedef struct {
    const CornuModel *model;
    const char       *layers;
    const CornuKerasFinder *finder;
    CornuKerasLayout *layout;
    bool             *seen;         /* weights that have a place */
    int               common;       /* the group of a layer and of the one that it extends; or -1 */
} Walk;

/* "folder/name", or the name alone without a folder. */
static CornuStatus join(char to[MAX_PATH], const char *folder, const char *name)
{
    const int length = snprintf(to, MAX_PATH, "%s%s%s", folder, *folder ? "/" : "", name);
    if (length < MAX_PATH) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "layers nest so deep that the path of \"%.60s\" has "
                       "%d characters, expected at most %d", name, length, MAX_PATH - 1);
}

static CornuStatus add_group(Walk *walk, const char *folder, const char *name)
{
    char              path[MAX_PATH];
    CornuKerasLayout *layout = walk->layout;
    CORNU__TRY(join(path, folder, "vars"));
    if (walk->common >= 0 && !strcmp(layout->groups[walk->common].path, path)) return CORNU_OK;
    CORNU__TRY(cornu__reserve(&layout->groups, &layout->space, layout->count, 1,
                              sizeof *layout->groups));
    CornuKerasGroup *group = &layout->groups[layout->count++];
    *group = (CornuKerasGroup){ .path = cornu__copy_text(path), .name = cornu__copy_text(name),
                                .first = layout->placed };
    return group->path && group->name ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* The rest of `path` after the names of the enclosing layers and of the layer; NULL if it begins
 * otherwise. */
static const char *after_names(const CornuLayer *layer, const char *path)
{
    const char *name = cornu_layer_name(layer);
    if (layer->outer && !(path = after_names(layer->outer, path))) return NULL;
    const size_t length = strlen(name);
    return strncmp(path, name, length) || path[length] != '/' ? NULL : path + length + 1;
}

static int slashes(const char *text)
{
    int count = 0;
    for (; *text; text++) count += *text == '/';
    return count;
}

/* The part of a layer that a weight belongs to, "lstm_cell" in "lstm/lstm_cell/kernel"; its length
 * is 0 if it belongs to the layer itself. Names of enclosing models may precede it. */
static const char *part_of(const CornuLayer *layer, const CornuWeight *weight, size_t *length)
{
    const int   wanted = cornu__keras_class(layer)->folders ? 1 : 0;   /* slashes after the names */
    const char *part = NULL, *at = weight->path;
    while (at && (!part || slashes(part) != wanted)) {
        const char *found = after_names(layer, at), *next = strchr(at, '/');
        if (found) part = found;
        at = next ? next + 1 : NULL;
    }
    const char *end = part ? strchr(part, '/') : NULL;
    *length = end ? (size_t)(end - part) : 0;
    return part ? part : weight->path;
}

/* Whether a weight is among the trainable ones of a file: a kernel with low-rank adaptation is,
 * though it is frozen; the products' factors are in no file. */
static bool is_first(const CornuWeight *weight)
{
    return !weight->non_trainable || weight->lora_a;
}

/* In which pass over the weights of a layer this one's turn is. Layers whose kernel is quantized
 * have an order of their own. */
static int pass_of(const CornuLayer *layer, const CornuWeight *weight)
{
    return cornu__quantization(layer) ? cornu__weight_place(weight) : !is_first(weight);
}

/* Adds those weights of one part to the last group whose turn is in this pass. */
static void place_pass(Walk *walk, const CornuLayer *layer, const char *part, size_t length,
                       int pass)
{
    CornuKerasLayout *layout = walk->layout;
    for (int i = 0; i < layer->weight_count; i++) {
        const CornuWeight *weight = layer->weights[i];
        size_t      own;
        const char *of = part_of(layer, weight, &own);
        if (weight->is_lora || pass_of(layer, weight) != pass || own != length ||
            strncmp(of, part, length))
            continue;
        const int number = cornu__model_weight_index(walk->model, weight);
        if (walk->seen[number]) continue;
        walk->seen[number] = true;
        layout->order[layout->placed++] = number;
        layout->groups[layout->count - 1].count++;
    }
}

/* All of them, the trainable ones first. */
static void place(Walk *walk, const CornuLayer *layer, const char *part, size_t length)
{
    const int passes = cornu__quantization(layer) ? CORNU_WEIGHT_PLACES : 2;
    for (int pass = 0; pass < passes; pass++) place_pass(walk, layer, part, length, pass);
}

static void put(Walk *walk, const CornuWeight *weight)
{
    walk->layout->order[walk->layout->placed++] = cornu__model_weight_index(walk->model, weight);
    walk->layout->groups[walk->layout->count - 1].count++;
}

/* Adds the weights that a wrapper has besides those of its inner layers to the last group, after
 * the one that Keras lists twice. */
static void place_own(Walk *walk, const CornuLayer *layer)
{
    if (cornu__keras_class(layer)->lists) put(walk, cornu__keras_class(layer)->lists(layer));
    for (int i = 0; i < layer->own_count; i++) {
        walk->seen[cornu__model_weight_index(walk->model, layer->weights[i])] = true;
        put(walk, layer->weights[i]);
    }
}

/* The folder of part i, by the table of the layer's class. */
static CornuStatus folder_of(const CornuLayer *layer, int i, const char **folder)
{
    const char *const *folders = cornu__keras_class(layer)->folders;
    for (int k = 0; folders && folders[k]; k++)
        if (k == i) {
            *folder = folders[k];
            return CORNU_OK;
        }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: its class %s does not say where Keras keeps its "
                       "part %d", cornu_layer_name(layer), layer->kind->class_name, i);
}

/* The folder of a part by its name, from the table of the layer's class: "lstm_cell:cell". */
static CornuStatus folder_of_part(const CornuLayer *layer, const char *part, size_t length,
                                  const char **folder)
{
    const char *const *folders = cornu__keras_class(layer)->folders;
    for (int k = 0; folders && folders[k]; k++)
        if (!strncmp(folders[k], part, length) && folders[k][length] == ':') {
            *folder = folders[k] + length + 1;
            return CORNU_OK;
        }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: its class %s does not say where Keras keeps its "
                       "%.*s", cornu_layer_name(layer), layer->kind->class_name, (int)length, part);
}

/* Parts are in the order of their weights. */
static CornuStatus add_weights(Walk *walk, const CornuLayer *layer, const char *folder)
{
    const char *last = "";
    size_t      last_length = 0;
    CORNU__TRY(add_group(walk, folder, cornu_layer_name(layer)));
    if (cornu__keras_class(layer)->array)
        walk->layout->groups[walk->layout->count - 1].layer = layer;
    place(walk, layer, "", 0);
    for (int i = 0; i < layer->own_count; i++) {
        size_t      length;
        const char *part = part_of(layer, layer->weights[i], &length), *below = "";
        char        path[MAX_PATH], name[MAX_PATH];
        if (length == 0 || (length == last_length && !strncmp(part, last, length))) continue;
        last = part, last_length = length;
        CORNU__TRY(folder_of_part(layer, part, length, &below));
        CORNU__TRY(join(path, folder, below));
        snprintf(name, sizeof name, "%.*s", (int)length, part);
        CORNU__TRY(add_group(walk, path, name));
        place(walk, layer, part, length);
    }
    return CORNU_OK;
}

static CornuStatus add_layer(Walk *walk, const CornuLayer *layer, const char *folder);

/* "layers/dense", "layers/dense_1": counted by class. */
static CornuStatus add_layers(Walk *walk, const CornuLayer *model, const char *folder,
                              const char *layers, CornuLookup *labels)
{
    char path[MAX_PATH], name[sizeof model->class_label + 16];
    for (int i = 0; i < model->inner_count; i++) {
        const CornuLayer *layer = model->inner[i];
        const int         same = cornu__lookup_find(labels, layer->class_label);
        CORNU__TRY(cornu__lookup_set(labels, layer->class_label, same < 0 ? 1 : same + 1));
        snprintf(name, sizeof name, same > 0 ? "%s_%d" : "%s", layer->class_label, same);
        CORNU__TRY(join(path, layers, name));
        if (walk->finder)
            CORNU__TRY(walk->finder->find(walk->finder->context, layer, folder, path));
        CORNU__TRY(add_layer(walk, layer, path));
    }
    return CORNU_OK;
}

/* A model's layers, or a list of layers. */
static CornuStatus add_list(Walk *walk, const CornuLayer *layer, const char *folder,
                            const char *list)
{
    char        layers[MAX_PATH];
    CornuLookup labels = { .of_strings = true };
    CORNU__TRY(add_group(walk, folder, cornu_layer_name(layer)));
    CORNU__TRY(join(layers, folder, list));
    CornuStatus status = add_layers(walk, layer, folder, layers, &labels);
    cornu__lookup_clear(&labels);
    return status;
}

/* The list that holds the inner layers, "cells" for "cells/" in the table of the layer's class; its
 * length is 0 if each has a folder of its own. */
static void list_of(const CornuLayer *layer, char list[MAX_PATH])
{
    const char *const *folders = cornu__keras_class(layer)->folders;
    const char        *folder = folders ? folders[0] : NULL;
    const size_t       length = folder ? strlen(folder) : 0;
    const bool         is_list = length > 1 && folder[length - 1] == '/';
    snprintf(list, MAX_PATH, "%.*s", is_list ? (int)length - 1 : 0, folder ? folder : "");
}

/* Keras builds an activation when its layer is first called with values: until then a file holds
 * none of its weights. */
static CornuStatus add_with_activation(Walk *walk, const CornuLayer *layer, const char *folder)
{
    char path[MAX_PATH];
    CORNU__TRY(add_weights(walk, layer, folder));
    const int first = walk->layout->count;
    CORNU__TRY(join(path, folder, "activation"));
    CORNU__TRY(add_layer(walk, layer->activation, path));
    for (int i = first; i < walk->layout->count; i++) walk->layout->groups[i].may_lack = true;
    return CORNU_OK;
}

/* Whether an earlier graph calls the layer, too. */
static bool is_of_earlier(const CornuTraced *traced, int graph, const CornuLayer *layer)
{
    for (int i = 0; i < graph; i++) {
        const CornuLayer *model = &traced->graphs[i].model->base;
        for (int k = 0; k < model->inner_count; k++)
            if (model->inner[k] == layer) return true;
    }
    return false;
}

/* A layer whose class extends that of another one is one object with it in Keras, whose trainable
 * weights come first, of both. */
static CornuStatus add_extended(Walk *walk, const CornuLayer *layer, const CornuLayer *base,
                                const char *folder)
{
    const int outer = walk->common;
    walk->common = walk->layout->count - 1;
    for (int pass = 0; pass < 2; pass++) {
        if (base->inner_count == 0) place_pass(walk, base, "", 0, pass);
        for (int i = 0; i < layer->own_count; i++) {
            const CornuWeight *weight = layer->weights[i];
            if (is_first(weight) == (pass == 1)) continue;
            walk->seen[cornu__model_weight_index(walk->model, weight)] = true;
            put(walk, weight);
        }
    }
    CornuStatus status = add_layer(walk, base, folder);
    walk->common = outer;
    return status;
}

/* A traced layer's own weights, and the layers that it calls, by the attributes that they are. */
static CornuStatus add_traced(Walk *walk, const CornuLayer *layer, const char *folder)
{
    const CornuTraced *traced = cornu__as_traced(layer);
    const CornuLayer  *base = cornu_traced_layer(layer, "");
    char               path[MAX_PATH];
    CORNU__TRY(add_group(walk, folder, cornu_layer_name(layer)));
    if (base) CORNU__TRY(add_extended(walk, layer, base, folder));
    else place_own(walk, layer);
    for (int i = 0; i < traced->graph_count; i++) {
        const CornuLayer *model = &traced->graphs[i].model->base;
        for (int k = 0; k < model->inner_count; k++) {
            const CornuLayer *inner = model->inner[k];
            if (inner->kind == &cornu__input_class || cornu__as_operation(inner) ||
                inner == base || is_of_earlier(traced, i, inner))
                continue;
            CORNU__TRY(join(path, folder, cornu__traced_attribute(traced, inner)));
            CORNU__TRY(add_layer(walk, inner, path));
        }
    }
    return CORNU_OK;
}

static CornuStatus add_layer(Walk *walk, const CornuLayer *layer, const char *folder)
{
    char list[MAX_PATH];
    if (cornu__as_traced(layer)) return add_traced(walk, layer, folder);
    if (layer->kind->call_masked) return add_list(walk, layer, folder, walk->layers);
    if (layer->inner_count == 0) return add_weights(walk, layer, folder);
    if (layer->activation) return add_with_activation(walk, layer, folder);
    list_of(layer, list);
    if (*list) return add_list(walk, layer, folder, list);
    CORNU__TRY(add_group(walk, folder, cornu_layer_name(layer)));
    place_own(walk, layer);
    for (int i = 0; i < layer->inner_count; i++) {
        char        path[MAX_PATH];
        const char *below = "";
        CORNU__TRY(folder_of(layer, i, &below));
        CORNU__TRY(join(path, folder, below));
        CORNU__TRY(add_layer(walk, layer->inner[i], path));
    }
    return CORNU_OK;
}

CornuStatus cornu__keras_layout(const CornuModel *model, const char *layers,
                                const CornuKerasFinder *finder, CornuKerasLayout *layout)
{
    const size_t weights = (size_t)cornu_model_weight_count(model);
    const size_t variables = (size_t)cornu__model_saved_count(model);
    *layout = (CornuKerasLayout){ .order = cornu__allocate(2 * weights + variables,
                                                           sizeof *layout->order) };
    Walk walk = { .model = model, .layers = layers, .finder = finder, .layout = layout,
                  .common = -1, .seen = cornu__allocate(weights, sizeof(bool)) };
    CornuStatus status = layout->order && walk.seen ? add_layer(&walk, &model->base, "")
                                                    : CORNU_ERR_MEMORY;
    cornu__release(walk.seen);
    if (status != CORNU_OK) cornu__keras_layout_free(layout);
    return status;
}

CornuStatus cornu__keras_layout_optimizer(const CornuModel *model, int variables,
                                          CornuKerasLayout *layout)
{
    const CornuOptimizer *optimizer = cornu_model_optimizer(model);
    Walk                  walk = { .layout = layout, .common = -1 };
    CORNU__TRY(add_group(&walk, "optimizer", optimizer ? cornu_optimizer_name(optimizer) : ""));
    layout->groups[layout->count - 1].count = variables;
    for (int i = 0; i < variables; i++)
        layout->order[layout->placed++] = cornu_model_weight_count(model) + i;
    return CORNU_OK;
}

void cornu__keras_layout_free(CornuKerasLayout *layout)
{
    for (int i = 0; i < layout->count; i++) {
        cornu__release(layout->groups[i].path);
        cornu__release(layout->groups[i].name);
    }
    cornu__release(layout->groups);
    cornu__release(layout->order);
    *layout = (CornuKerasLayout){ 0 };
}
