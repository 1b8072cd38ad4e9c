/* Weights in several files, model.weights.json and model_00000.weights.h5, …: Keras' save_weights
 * with max_shard_size. Source: keras/src/saving/saving_lib.py, ShardedH5IOStore. */
#include "keras_internal.h"
#include "../../device/files/file_internal.h"
#include "../formats/json_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PATH = 1200, MAX_SHARDS = 100000, JSON_DEPTH = 4 };

/* The groups, of which the optimizer's is the last one; the arrays of a group may be in several
 * files. */
typedef struct {
    CornuKerasLayout layout;
    CornuValues     *values;
    int64_t         *found;      /* arrays of each group in the files so far */
} Shards;

static CornuStatus open_shards(Shards *shards, const CornuModel *model, CornuValues *values)
{
    *shards = (Shards){ .values = values };
    CORNU__TRY(cornu__keras_layout(model, "layers", NULL, &shards->layout));
    CORNU__TRY(cornu__keras_layout_optimizer(model, values->variables, &shards->layout));
    shards->found = cornu__allocate((size_t)shards->layout.count, sizeof *shards->found);
    return shards->found ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void close_shards(Shards *shards)
{
    cornu__release(shards->found);
    cornu__keras_layout_free(&shards->layout);
}

/* Array i of a group. */
static CornuNamedArray *array_of(const Shards *shards, const CornuKerasGroup *group, int i)
{
    return &shards->values->arrays[shards->layout.order[group->first + i]];
}

/* Reads those arrays of the group that the file has. */
static CornuStatus read_group(CornuHdf5 *file, const Shards *shards, int g)
{
    const CornuKerasGroup *group = &shards->layout.groups[g];
    int64_t                count;
    CORNU__TRY(cornu__hdf5_count(file, group->path, &count));
    shards->found[g] += count;
    for (int i = 0; i < group->count && count > 0; i++) {
        CornuNamedArray *to = array_of(shards, group, i);
        char             path[MAX_PATH];
        bool             has;
        snprintf(path, sizeof path, "%s/%d", group->path, i);
        CORNU__TRY(cornu__hdf5_has(file, path, &has));
        if (has) CORNU__TRY(cornu__fail_prefix(cornu__hdf5_read(file, path, &to->array), to->name));
    }
    return CORNU_OK;
}

/* The path of a file beside the map; refuses names of other folders. */
static CornuStatus path_beside(const char *map, const char *name, char path[MAX_PATH])
{
    const char *slash = strrchr(map, '/');
    const int   folder = slash ? (int)(slash - map + 1) : 0;
    if (!*name || strchr(name, '/') || strchr(name, '\\'))
        return cornu__fail(CORNU_ERR_FORMAT, "weight_map names \"%.80s\", expected a file of its "
                           "folder", name);
    if (snprintf(path, MAX_PATH, "%.*s%s", folder, map, name) < MAX_PATH) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the path of \"%.80s\" is too long", name);
}

static CornuStatus read_shard(Shards *shards, const char *map, const char *name)
{
    char           path[MAX_PATH];
    CornuFileBytes bytes = { 0 };
    CORNU__TRY(path_beside(map, name, path));
    CORNU__TRY(cornu__fail_prefix(cornu__file_read(&bytes, path), name));
    CornuHdf5  *file = cornu__hdf5_open(bytes.bytes, bytes.size);
    CornuStatus status = file ? CORNU_OK : cornu_error_take();
    for (int g = 0; g < shards->layout.count && !status; g++)
        status = read_group(file, shards, g);
    cornu__hdf5_close(file);
    cornu__file_release(&bytes);
    return cornu__fail_prefix(status, name);
}

/* Every array must have been in one of the files; the optimizer's may all be absent. */
static CornuStatus check_found(const Shards *shards)
{
    for (int g = 0; g < shards->layout.count; g++) {
        const CornuKerasGroup *group = &shards->layout.groups[g];
        const int64_t          found = shards->found[g];
        const bool             optional = g == shards->layout.count - 1;
        if (optional && found == 0) shards->values->variables = 0;
        else if (!(optional && group->count == 0) && found != group->count)
            return cornu__fail(CORNU_ERR_SHAPE, "\"%s\" has %lld arrays in all files, the model's "
                               "%s has %d", group->path, (long long)found,
                               optional ? "optimizer" : group->name, group->count);
        for (int i = 0; i < group->count && found; i++)
            if (!array_of(shards, group, i)->array.data)
                return cornu__fail(CORNU_ERR_FORMAT, "\"%s/%d\" is in none of the files",
                                   group->path, i);
    }
    return CORNU_OK;
}

/* Adds a name unless it is there. */
static CornuStatus add_name(json_t *names, const json_t *name)
{
    if (!json_is_string(name))
        return cornu__fail(CORNU_ERR_FORMAT, "weight_map has something other than file names");
    if (json_object_size(names) >= MAX_SHARDS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "weight_map has more than %d files", MAX_SHARDS);
    return json_object_set_new(names, json_string_value(name), json_null()) ? CORNU_ERR_MEMORY
                                                                            : CORNU_OK;
}

/* The names of all files, as the keys of an object. */
static CornuStatus list_files(const json_t *map, json_t *names)
{
    const json_t *of = json_object_get(map, "weight_map");
    const char   *group;
    json_t       *value;
    if (!json_is_object(of)) return cornu__fail(CORNU_ERR_FORMAT, "there is no weight_map in it");
    json_object_foreach((json_t *)of, group, value) {
        if (!json_is_array(value)) CORNU__TRY(add_name(names, value));
        for (size_t i = 0; i < json_array_size(value); i++)
            CORNU__TRY(add_name(names, json_array_get(value, i)));
    }
    return CORNU_OK;
}

static CornuStatus read_all(CornuModel *model, const char *path, const json_t *names,
                            CornuValues *values)
{
    Shards      shards;
    const char *name;
    json_t     *unused;
    CornuStatus status = open_shards(&shards, model, values);
    json_object_foreach((json_t *)names, name, unused)
        if (!status) status = read_shard(&shards, path, name);
    if (!status) status = check_found(&shards);
    if (!status) status = cornu__values_write(model, values);
    close_shards(&shards);
    return status;
}

static CornuStatus load_weights(CornuModel *model, const char *path)
{
    CornuFileBytes file = { 0 };
    CornuValues    values, wanted;
    CORNU__TRY(cornu__file_read(&file, path));
    json_t     *map = cornu__json_parse((const char *)file.bytes, file.size, JSON_DEPTH);
    json_t     *names = map ? json_object() : NULL;
    CornuStatus status = map ? list_files(map, names) : cornu_error_take();
    cornu__file_release(&file);
    if (!status) {
        status = cornu__values_list(model, &values);
        wanted = values;
        wanted.variables = cornu_model_optimizer_variable_count(model);
        if (!status) status = read_all(model, path, names, &wanted);
        cornu__values_free(&values);
    }
    json_decref(names);
    json_decref(map);
    return status;
}

const CornuFormat cornu__keras_shards_format = {
    .suffix = ".weights.json", .save_weights = cornu__keras_write_shards,
    .load_weights = load_weights, .check = cornu__keras_check, .merges_lora = true,
};
