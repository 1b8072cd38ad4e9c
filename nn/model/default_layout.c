#include "default_layout.h"

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
    { "Embedding", "embeddings", 1, 0 },
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
    return axis >= 0 && shape.extent[axis] % slices == 0 ? axis : -1;
}

/* Decides by a layer's first weight. `before`: how the layer before was cut, WHOLE for one whose
 * outputs are whole again, or of another kind. */
static Cut choose(const CornuWeight *weight, const Rule *rule, Cut before, int slices)
{
    if (before == OUTPUTS && axis_of(weight, rule, INPUTS, slices) >= 0) return INPUTS;
    return axis_of(weight, rule, OUTPUTS, slices) >= 0 ? OUTPUTS : WHOLE;
}

/* An expression that only this path matches; returns where it ends. */
static char *write_pattern(char *to, const char *path)
{
    *to++ = '^';
    for (; *path; *to++ = *path++)
        if (strchr("\\^$.[]|()?*+{}", *path)) *to++ = '\\';
    *to++ = '$';
    *to++ = '\0';
    return to;
}

/* -1: there is none, or it would cut into one slice. */
static int model_axis(const CornuMesh *mesh)
{
    int batch = cornu_mesh_axis(mesh, "batch"), axis = cornu_mesh_axis(mesh, "model");
    if (batch < 0) batch = 0;
    if (axis < 0 || axis == batch) axis = mesh->axes - 1 - (batch == mesh->axes - 1);
    return axis >= 0 && mesh->extent[axis] > 1 ? axis : -1;
}

/* The name of the axis and the patterns lie after the rows. */
static CornuLayoutRow *make_room(const CornuModel *model, const CornuMesh *mesh, int axis,
                                 char **texts)
{
    const int count = cornu_model_weight_count(model);
    size_t    size = CORNU_MESH_NAME;
    for (int i = 0; i < count; i++) size += 2 * strlen(cornu_model_weight(model, i)->path) + 3;
    const size_t    table = ((size_t)count + 1) * sizeof(CornuLayoutRow);
    CornuLayoutRow *rows = cornu__allocate(table + size, 1);
    if (!rows) return cornu__null();
    *texts = (char *)rows + table;
    if (axis >= 0) strcpy(*texts, mesh->name[axis]);
    return rows;
}

CornuLayoutRow *cornu_default_layout(const CornuModel *model, CornuMesh mesh)
{
    CORNU__NEED_TO_MAKE(model);
    if (cornu__refused()) return NULL;
    if (cornu__fail_prefix(cornu_mesh_check(&mesh), "default_layout")) return cornu__null();
    if (!cornu_model_built(model))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "default_layout: %s has no weights yet, "
                                "expected .input_shape, or cornu_model_build before",
                                cornu_model_name(model));
    char           *name = NULL;
    const int       axis = model_axis(&mesh), slices = axis >= 0 ? mesh.extent[axis] : 1;
    CornuLayoutRow *rows = make_room(model, &mesh, axis, &name), *row = rows;
    if (!rows) return NULL;
    char             *end = name + CORNU_MESH_NAME;
    const CornuLayer *layer = NULL;
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
        if (at < 0) continue;
        row->pattern = end;
        row++->axes[at] = name;
        end = write_pattern(end, weight->path);
    }
    return rows;
}

void cornu_layout_free(CornuLayoutRow *rows) { cornu__release(rows); }
