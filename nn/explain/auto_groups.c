/* What of a model can be cut, and how: layers in groups, their kernels, rows of a layout map. */
#include <ctype.h>
#include <string.h>

#include "../../device/device_internal.h"
#include "../model/default_layout_internal.h"
#include "auto_layout_internal.h"

/* ---- Weights ---- */

/* The name within a path that begins its last part, "kernel"; or with `parts` of 2 the part before,
 * "query/kernel". */
static const char *tail_of(const char *path, int parts)
{
    const char *at = path + strlen(path);
    while (at > path && (at[-1] != '/' || --parts > 0)) at--;
    return at;
}

/* The maps within an attention layer: 1 of those that make heads, -1 of the one that reads them. */
static int attention_part(const CornuWeight *weight)
{
    static const char *const makes[] = { "query/", "key/", "value/" };
    const char              *name = tail_of(weight->path, 2);
    const int                rank = weight->type.shape.rank;
    const bool               kernel = !strcmp(tail_of(weight->path, 1), "kernel");
    for (int i = 0; i < 3; i++)
        if (!strncmp(name, makes[i], strlen(makes[i])) && rank == (kernel ? 3 : 2)) return 1;
    return !strncmp(name, "attention_output/", 17) && (rank == 3 || !kernel) ? -1 : 0;
}

static size_t layer_length(const CornuWeight *weight)
{
    const char *name = tail_of(weight->path, attention_part(weight) ? 2 : 1);
    return name > weight->path ? (size_t)(name - weight->path) - 1 : 0;
}

static bool is_kernel(const CornuWeight *weight)
{
    return weight->type.shape.rank >= 2 && !weight->non_trainable && !weight->sparse_gradient &&
           !(attention_part(weight) && weight->type.shape.rank < 3);
}

static bool same_layer(const CornuWeight *a, const CornuWeight *b)
{
    const size_t length = layer_length(a);
    return length == layer_length(b) && !strncmp(a->path, b->path, length);
}

/* The first axis that so many slices divide; -1: none. */
static int dividing_axis(const CornuWeight *weight, int slices)
{
    int axis = 0;
    while (axis < weight->type.shape.rank && weight->type.shape.extent[axis] % slices) axis++;
    return axis < weight->type.shape.rank ? axis : -1;
}

/* The axis that is cut; -1: none. A bias goes with the columns, which it has one value for each. */
static int axis_of(const CornuWeight *weight, CornuCut cut, int64_t columns, int slices)
{
    const int rank = weight->type.shape.rank, part = attention_part(weight);
    const bool kernel = is_kernel(weight);
    if (weight->non_trainable || weight->sparse_gradient) return -1;
    switch (cut) {
    case CORNU_CUT_COLUMNS:
        if (part) return part > 0 ? rank - 2 : kernel ? 0 : -1;
        return kernel ? rank - 1 : rank == 1 && weight->type.shape.extent[0] == columns ? 0 : -1;
    case CORNU_CUT_ROWS:  return kernel && !part ? rank - 2 : -1;
    case CORNU_CUT_FULLY: return kernel ? dividing_axis(weight, slices) : -1;
    default:              return -1;
    }
}

/* ---- Groups ---- */

static uint64_t mix(uint64_t key, uint64_t with) { return (key ^ with) * 0x100000001b3u; }

/* Of a layer by its first kernel's weight number: names without numbers, and shapes. */
static uint64_t key_of(const CornuModel *model, int first)
{
    const CornuWeight *of = cornu_model_weight(model, first);
    const size_t       length = layer_length(of);
    uint64_t           key = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)of->path[i]) && of->path[i] != '_')
            key = mix(key, (unsigned char)of->path[i]);
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        if (!same_layer(of, weight)) continue;
        for (int k = 0; k < weight->type.shape.rank; k++)
            key = mix(key, (uint64_t)weight->type.shape.extent[k] + 1);
        key = mix(key, 0);
    }
    return key;
}

static int group_with(const CornuCutGroups *groups, uint64_t key)
{
    int i = 0;
    while (i < groups->count && groups->groups[i].key != key) i++;
    return i;
}

static int count_layers(const CornuModel *model)
{
    int count = 0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        bool               seen = !is_kernel(weight);
        for (int k = 0; k < i && !seen; k++)
            seen = is_kernel(cornu_model_weight(model, k)) &&
                   same_layer(weight, cornu_model_weight(model, k));
        count += !seen;
    }
    return count;
}

static void add_layer(CornuCutGroups *groups, int first, uint64_t key)
{
    const CornuWeight *of = cornu_model_weight(groups->model, first);
    const int          at = group_with(groups, key);
    if (at == CORNU_AUTO_GROUPS) return;   /* it stays whole */
    CornuCutGroup *group = &groups->groups[at];
    if (at == groups->count) {
        *group = (CornuCutGroup){ .key = key, .attention = attention_part(of) != 0 };
        snprintf(group->name, sizeof group->name, "%.*s", (int)layer_length(of), of->path);
        groups->count++;
    }
    group->layers++;
    for (int i = 0; i < cornu_model_weight_count(groups->model); i++)
        if (same_layer(of, cornu_model_weight(groups->model, i))) groups->group_of[i] = at;
}

CornuStatus cornu__cut_groups(const CornuModel *model, CornuCutGroups *to)
{
    enum { FEW = 6 };   /* layers that are cut each by itself */
    const int  count = cornu_model_weight_count(model);
    const bool few = count_layers(model) <= FEW;
    uint64_t   before = 0;
    int        alternate = 0;
    *to = (CornuCutGroups){ .model = model };
    to->group_of = cornu__allocate((size_t)count + 1, sizeof *to->group_of);
    if (!to->group_of) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) to->group_of[i] = -1;
    for (int i = 0, layers = 0; i < count; i++) {
        if (to->group_of[i] >= 0 || !is_kernel(cornu_model_weight(model, i))) continue;
        const uint64_t key = key_of(model, i);
        alternate = key == before ? !alternate : 0;
        before = key;
        add_layer(to, i, mix(key, (uint64_t)(few ? 2 + layers++ : alternate)));
    }
    return CORNU_OK;
}

void cornu__cut_groups_free(CornuCutGroups *groups)
{
    cornu__release(groups->group_of);
    groups->group_of = NULL;
}

/* ---- Axes ---- */

CornuCutMesh cornu__cut_mesh(CornuMesh mesh)
{
    const int    named = cornu_mesh_axis(&mesh, "batch"), data = named < 0 ? 0 : named;
    CornuCutMesh cut = { .mesh = mesh, .data = data, .model = cornu__mesh_model_axis(&mesh) };
    if (mesh.axes == 0 || mesh.extent[data] < 2) cut.data = -1;
    return cut;
}

/* The columns of the layer that a weight is of: the last extent of its first kernel. */
static int64_t columns_of(const CornuCutGroups *groups, const CornuWeight *weight)
{
    for (int i = 0; i < cornu_model_weight_count(groups->model); i++) {
        const CornuWeight *other = cornu_model_weight(groups->model, i);
        if (is_kernel(other) && same_layer(other, weight))
            return other->type.shape.extent[other->type.shape.rank - 1];
    }
    return 0;
}

static int mesh_axis_of(const CornuCutMesh *mesh, CornuCut cut)
{
    return cut == CORNU_CUT_NOT ? -1 : cut == CORNU_CUT_FULLY ? mesh->data : mesh->model;
}

/* The axis of a weight that is cut so; -1: none. */
static int cut_axis(const CornuCutGroups *groups, const CornuCutMesh *mesh, int weight,
                    CornuCut cut)
{
    const CornuWeight *of = cornu_model_weight(groups->model, weight);
    const int          along = mesh_axis_of(mesh, cut);
    return along < 0 ? -1
                     : axis_of(of, cut, cut == CORNU_CUT_COLUMNS ? columns_of(groups, of) : 0,
                               mesh->mesh.extent[along]);
}

bool cornu__cut_divides(const CornuCutGroups *groups, const CornuCutMesh *mesh, int group,
                        CornuCut cut)
{
    const int along = mesh_axis_of(mesh, cut);
    int       cuts = 0;
    if (cut == CORNU_CUT_NOT) return true;
    if (along < 0) return false;
    for (int i = 0; i < cornu_model_weight_count(groups->model); i++) {
        const int axis = groups->group_of[i] == group ? cut_axis(groups, mesh, i, cut)
                                                        : -1;
        if (axis < 0) continue;
        cuts++;
        if (cornu_model_weight(groups->model, i)->type.shape.extent[axis] %
            mesh->mesh.extent[along])
            return false;
    }
    return cuts > 0;
}

/* ---- Rows ---- */

CornuLayoutRow *cornu__cut_rows(const CornuCutGroups *groups, const CornuCutMesh *mesh,
                                CornuCutting cutting)
{
    CornuLayoutRows rows;
    if (cornu__layout_rows(&rows, groups->model, &mesh->mesh)) return cornu__null();
    for (int i = 0; i < cornu_model_weight_count(groups->model); i++) {
        const int      group = groups->group_of[i];
        const CornuCut cut = group < 0 ? CORNU_CUT_NOT : (CornuCut)cutting.of[group];
        const int      axis = cut_axis(groups, mesh, i, cut);
        if (axis >= 0)
            cornu__layout_rows_add(&rows, cornu_model_weight(groups->model, i), axis,
                                   mesh_axis_of(mesh, cut));
    }
    return rows.rows;
}

void cornu__cut_summary(const CornuCutGroups *groups, CornuCutting cutting, char *to, size_t size)
{
    static const char *const words[CORNU_CUTS] = { "", "columns of", "rows of", "fully" };
    size_t                   used = 0;
    snprintf(to, size, "all whole");
    for (int cut = CORNU_CUT_COLUMNS; cut < CORNU_CUTS; cut++) {
        bool listed = false;
        for (int i = 0; i < groups->count && used < size; i++) {
            const CornuCutGroup *group = &groups->groups[i];
            if (cutting.of[i] != cut) continue;
            used += (size_t)snprintf(to + used, size - used, "%s%s%s%s",
                                     listed ? ", " : used ? "; " : "", listed ? "" : words[cut],
                                     listed ? "" : " ", group->name);
            if (group->layers > 1 && used < size)
                used += (size_t)snprintf(to + used, size - used, " and %d alike",
                                         group->layers - 1);
            listed = true;
        }
    }
}
