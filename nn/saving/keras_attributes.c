/*
 * Weights of models that are subclasses. Keras puts a layer under the names of the attributes that
 * lead to it, in alphabetical order; what no attribute before "layers" has reached is in that list:
 *
 *     blocks/block_1/first/vars     self.blocks[1].first, named "dense_2"
 *     layers/lstm/vars              self.rnn, of the class LSTM
 *
 * Source: keras/src/saving/saving_lib.py, _walk_saveable.
 */
#include "keras_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_GROUPS = 100000 };

/* A group with "vars". */
typedef struct {
    char *path, *name;     /* the name that Keras gave the layer; NULL if it did not write it */
    bool  found;           /* for a layer of the model */
    bool  whole;           /* with all that is below it */
} Group;

struct CornuKerasGroups {
    Group *groups;
    int    count, space;
};

/* ---- Reading the groups ---- */

static CornuStatus join(char to[CORNU_KERAS_PATH], const char *folder, const char *name)
{
    const int length = snprintf(to, CORNU_KERAS_PATH, "%s%s%s", folder, *folder ? "/" : "", name);
    if (length < CORNU_KERAS_PATH) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the group \"%.60s\" has a path of %d characters, "
                       "expected at most %d", name, length, CORNU_KERAS_PATH - 1);
}

static CornuStatus add_group(CornuHdf5 *file, const char *path, CornuKerasGroups *to)
{
    char    vars[CORNU_KERAS_PATH], **texts;
    int64_t count;
    if (to->count == MAX_GROUPS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d groups", MAX_GROUPS);
    CORNU__TRY(join(vars, path, "vars"));
    CORNU__TRY(cornu__reserve(&to->groups, &to->space, to->count, 1, sizeof *to->groups));
    CORNU__TRY(cornu__hdf5_texts(file, vars, "name", &texts, &count));
    Group *group = &to->groups[to->count++];
    *group = (Group){ .path = cornu__copy_text(path),
                      .name = count == 1 ? cornu__copy_text(texts[0]) : NULL };
    cornu__hdf5_free_texts(texts, count);
    return group->path && (count != 1 || group->name) ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* All groups below `path`. */
static CornuStatus walk(CornuHdf5 *file, const char *path, int depth, CornuKerasGroups *to)
{
    int64_t count;
    if (depth == MAX_DEPTH)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.60s\": groups nest more than %d deep", path,
                           MAX_DEPTH);
    CORNU__TRY(cornu__hdf5_count(file, path, &count));
    for (int64_t i = 0; i < count; i++) {
        char name[CORNU_HDF5_NAME], below[CORNU_KERAS_PATH];
        CORNU__TRY(cornu__hdf5_member(file, path, i, name));
        if (!strcmp(name, "vars")) CORNU__TRY(add_group(file, path, to));
        else {
            CORNU__TRY(join(below, path, name));
            CORNU__TRY(walk(file, below, depth + 1, to));
        }
    }
    return CORNU_OK;
}

/* Whether the root has a group of another name than those of every model. */
static CornuStatus has_attributes(CornuHdf5 *file, bool *has)
{
    static const char *const usual[] = { "layers", "_layer_checkpoint_dependencies", "optimizer",
                                         "vars" };
    int64_t count;
    *has = false;
    CORNU__TRY(cornu__hdf5_count(file, "", &count));
    for (int64_t i = 0; i < count && !*has; i++) {
        char   name[CORNU_HDF5_NAME];
        size_t k = 0;
        CORNU__TRY(cornu__hdf5_member(file, "", i, name));
        while (k < sizeof usual / sizeof *usual && strcmp(name, usual[k])) k++;
        *has = k == sizeof usual / sizeof *usual;
    }
    return CORNU_OK;
}

CornuStatus cornu__keras_groups(CornuHdf5 *file, CornuKerasGroups **groups)
{
    bool has;
    *groups = NULL;
    CORNU__TRY(has_attributes(file, &has));
    if (!has) return CORNU_OK;
    CornuKerasGroups *made = cornu__allocate(1, sizeof *made);
    CornuStatus       status = made ? walk(file, "", 0, made) : CORNU_ERR_MEMORY;
    if (status) cornu__keras_groups_free(made);
    else *groups = made;
    return status;
}

void cornu__keras_groups_free(CornuKerasGroups *groups)
{
    for (int i = 0; groups && i < groups->count; i++) {
        cornu__release(groups->groups[i].path);
        cornu__release(groups->groups[i].name);
    }
    if (groups) cornu__release(groups->groups);
    cornu__release(groups);
}

/* ---- Finding layers ---- */

/* The path of a group within a folder; NULL if it lies elsewhere. */
static const char *within(const char *folder, const char *path)
{
    const size_t length = strlen(folder);
    if (length == 0) return path;
    return !strncmp(path, folder, length) && path[length] == '/' ? path + length + 1 : NULL;
}

/* How well a group's path or name are those of a layer: 0 is not at all. */
static int likeness(const Group *group, const char *below, const char *name)
{
    const char *last = strrchr(below, '/') ? strrchr(below, '/') + 1 : below;
    if (!strcmp(below, name)) return 3;
    if (group->name && !strcmp(group->name, name)) return 2;
    return !strcmp(last, name);
}

static CornuStatus refuse(const CornuKerasGroups *groups, const CornuLayer *layer)
{
    char   all[300] = "";
    size_t at = 0;
    for (int i = 0; i < groups->count && at < sizeof all; i++)
        if (*groups->groups[i].path && !groups->groups[i].found)
            at += (size_t)snprintf(all + at, sizeof all - at, "%s\"%.80s\"", at ? ", " : "",
                                   groups->groups[i].path);
    return cornu__fail(CORNU_ERR_SHAPE, "is of a model whose layers have the names of attributes; "
                       "none is that of the model's layer %s; left are %s",
                       cornu_layer_name(layer), *all ? all : "none");
}

static CornuStatus find(void *context, const CornuLayer *layer, const char *folder,
                        char path[CORNU_KERAS_PATH])
{
    CornuKerasGroups *groups = context;
    Group            *best = NULL;
    int               most = 0;
    for (int i = 0; i < groups->count; i++) {
        Group      *group = &groups->groups[i];
        const char *below = within(folder, group->path);
        if (!below || group->found) continue;
        /* By its class, within a model that was found, or where nothing is better. */
        const int like = strcmp(group->path, path) ? likeness(group, below, cornu_layer_name(layer))
                                                   : *folder ? 4 : 1;
        if (like > most) best = group, most = like;
    }
    if (best) {
        best->found = true;
        best->whole = !layer->kind->call_masked;
        snprintf(path, CORNU_KERAS_PATH, "%s", best->path);
        return CORNU_OK;
    }
    /* The layers of a model that has no group may be found one by one. */
    if (layer->weight_count == 0) return CORNU_OK;
    if (!layer->kind->call_masked) return refuse(groups, layer);
    snprintf(path, CORNU_KERAS_PATH, "%s", folder);
    return CORNU_OK;
}

/* ---- What is left ---- */

/* Whether a group belongs to a layer that was found, or holds nothing that a model computes with.
 * */
static bool is_read(const CornuKerasGroups *groups, const char *path)
{
    static const char *const others[] = { "optimizer", "seed_generator", "metrics", "_metrics" };
    const char              *last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(last, others[i]) || within(others[i], path)) return true;
    for (int i = 0; i < groups->count; i++) {
        const Group *group = &groups->groups[i];
        if (group->found && (!strcmp(group->path, path) ||
                             (group->whole && within(group->path, path))))
            return true;
    }
    return false;
}

CornuStatus cornu__keras_check_read(CornuHdf5 *file, const CornuKerasGroups *groups)
{
    for (int i = 0; i < groups->count; i++) {
        char    vars[CORNU_KERAS_PATH];
        int64_t count;
        CORNU__TRY(join(vars, groups->groups[i].path, "vars"));
        CORNU__TRY(cornu__hdf5_count(file, vars, &count));
        if (count > 0 && !is_read(groups, groups->groups[i].path))
            return cornu__fail(CORNU_ERR_SHAPE, "\"%s\" has %lld weights, and is none of the "
                               "model's layers", groups->groups[i].path, (long long)count);
    }
    return CORNU_OK;
}

CornuKerasFinder cornu__keras_finder(CornuKerasGroups *groups)
{
    return (CornuKerasFinder){ find, groups };
}
