#include "default_layout_internal.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "../layers/layer.h"

/* Which axis of a weight is cut where a layer's outputs are, and where its inputs are; counted from
 * the last one, which is 1. 0: none. */
typedef struct {
    const char *layer, *weight;
    int         outputs, inputs;
} Rule;

static const Rule rules[] = {
    { "Dense", "kernel", 1, 2 },  { "Dense", "bias", 1, 0 },
    { "Conv1D", "kernel", 1, 2 }, { "Conv1D", "bias", 1, 0 },
    { "Conv2D", "kernel", 1, 2 }, { "Conv2D", "bias", 1, 0 },
    { "Conv3D", "kernel", 1, 2 }, { "Conv3D", "bias", 1, 0 },
    { "LSTM", "kernel", 1, 0 },       { "LSTM", "recurrent_kernel", 1, 0 },
    { "LSTM", "bias", 1, 0 },
    { "GRU", "kernel", 1, 0 },        { "GRU", "recurrent_kernel", 1, 0 },
    { "GRU", "bias", 1, 0 },
    { "SimpleRNN", "kernel", 1, 0 },  { "SimpleRNN", "recurrent_kernel", 1, 0 },
    { "SimpleRNN", "bias", 1, 0 },
    { "Embedding", "embeddings", 2, 0 },   /* its rows: what follows reads whole features */
    /* (channels, heads, features), and (heads, features, channels) of the last map. */
    { "MultiHeadAttention", "query/kernel", 2, 0 },
    { "MultiHeadAttention", "query/bias", 2, 0 },
    { "MultiHeadAttention", "key/kernel", 2, 0 },
    { "MultiHeadAttention", "key/bias", 2, 0 },
    { "MultiHeadAttention", "value/kernel", 2, 0 },
    { "MultiHeadAttention", "value/bias", 2, 0 },
    { "MultiHeadAttention", "attention_output/kernel", 3, 0 },
    { "GroupQueryAttention", "query/kernel", 2, 0 },
    { "GroupQueryAttention", "query/bias", 2, 0 },
    { "GroupQueryAttention", "key/kernel", 2, 0 },
    { "GroupQueryAttention", "key/bias", 2, 0 },
    { "GroupQueryAttention", "value/kernel", 2, 0 },
    { "GroupQueryAttention", "value/bias", 2, 0 },
    { "GroupQueryAttention", "attention_output/kernel", 3, 0 },
};
enum { RULES = sizeof rules / sizeof *rules };

/* Whether a path ends in "/" and the name. */
static bool ends_in(const char *path, const char *name)
{
    const size_t length = strlen(path), own = strlen(name);
    return length > own && path[length - own - 1] == '/' && !strcmp(path + length - own, name);
}

static const Rule *rule_of(const CornuWeight *weight)
{
    for (int i = 0; i < RULES && !weight->non_trainable && !weight->sparse_gradient; i++)
        if (!strcmp(rules[i].layer, weight->layer->kind->class_name) &&
            ends_in(weight->path, rules[i].weight))
            return &rules[i];
    return NULL;
}

/* How a layer is cut. */
typedef enum { WHOLE, OUTPUTS, INPUTS } Cut;

/* The axis that is cut, from the first; -1: none, or it does not divide. */
static int axis_of(const CornuWeight *weight, const Rule *rule, Cut cut, int slices)
{
    const CornuShape shape = weight->type.shape;
    const int        last = cut == OUTPUTS ? rule->outputs : cut == INPUTS ? rule->inputs : 0;
    const int        axis = last ? shape.rank - last : -1;
    const int64_t    blocks = last == 1 && weight->blocks ? weight->blocks : 1;
    return axis >= 0 && shape.extent[axis] % (slices * blocks) == 0 ? axis : -1;
}

/* Decides by a layer's first weight. `before`: how the layer before was cut, WHOLE for one whose
 * outputs are whole again, or of another kind. */
static Cut choose(const CornuWeight *weight, const Rule *rule, Cut before, int slices)
{
    if (before == OUTPUTS && axis_of(weight, rule, INPUTS, slices) >= 0) return INPUTS;
    return axis_of(weight, rule, OUTPUTS, slices) >= 0 ? OUTPUTS : WHOLE;
}

/* ---- Rows ---- */

int cornu__mesh_model_axis(const CornuMesh *mesh)
{
    int batch = cornu_mesh_axis(mesh, "batch"), axis = cornu_mesh_axis(mesh, "model");
    if (batch < 0) batch = 0;
    if (axis < 0 || axis == batch) axis = mesh->axes - 1 - (batch == mesh->axes - 1);
    return axis >= 0 && mesh->extent[axis] > 1 ? axis : -1;
}

CornuStatus cornu__layout_rows(CornuLayoutRows *to, const CornuModel *model, const CornuMesh *mesh)
{
    const int    count = cornu_model_weight_count(model);
    const size_t table = ((size_t)count + 1) * sizeof(CornuLayoutRow);
    size_t       size = table + sizeof mesh->name;
    for (int i = 0; i < count; i++) size += 2 * strlen(cornu_model_weight(model, i)->path) + 3;
    to->rows = to->next = cornu__allocate(size, 1);
    if (!to->rows) return CORNU_ERR_MEMORY;
    to->names = (char(*)[CORNU_MESH_NAME])((char *)to->rows + table);
    to->end = (char *)to->names + sizeof mesh->name;
    memcpy(to->names, mesh->name, sizeof mesh->name);
    return CORNU_OK;
}

void cornu__layout_rows_add(CornuLayoutRows *to, const CornuWeight *weight, int axis, int along)
{
    to->next->pattern = to->end;
    to->next++->axes[axis] = to->names[along];
    *to->end++ = '^';   /* an expression that only this path matches */
    for (const char *at = weight->path; *at; *to->end++ = *at++)
        if (strchr("\\^$.[]|()?*+{}", *at)) *to->end++ = '\\';
    *to->end++ = '$';
    *to->end++ = '\0';
}

/* ---- By class ---- */

CornuLayoutRow *cornu_default_layout(const CornuModel *model, CornuMesh mesh)
{
    CORNU__NEED_TO_MAKE(model);
    if (cornu__refused()) return NULL;
    if (cornu__fail_prefix(cornu_mesh_check(&mesh), "default_layout")) return cornu__null();
    if (!cornu_model_built(model))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "default_layout: %s has no weights yet, "
                                "expected .input_shape, or cornu_model_build before",
                                cornu_model_name(model));
    CornuLayoutRows   rows;
    const int         axis = cornu__mesh_model_axis(&mesh);
    const int         slices = axis >= 0 ? mesh.extent[axis] : 1;
    const CornuLayer *layer = NULL;
    if (cornu__layout_rows(&rows, model, &mesh)) return cornu__null();
    Cut               cut = WHOLE, before = WHOLE;
    for (int i = 0; i < cornu_model_weight_count(model) && axis >= 0; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const Rule        *rule = rule_of(weight);
        if (!rule) continue;
        if (weight->layer != layer) {
            cut = choose(weight, rule, before, slices);
            before = rule->inputs ? cut : WHOLE;
            layer = weight->layer;
        }
        const int at = axis_of(weight, rule, cut, slices);
        if (at >= 0) cornu__layout_rows_add(&rows, weight, at, axis);
    }
    return rows.rows;
}

void cornu_layout_free(CornuLayoutRow *rows) { cornu__release(rows); }
