/* Writing a model's weights in several files, model.weights.json and model_00000.weights.h5, …:
 * Keras' save_weights with max_shard_size. Source: keras/src/saving/saving_lib.py,
 * ShardedH5IOStore. */
#include "keras_internal.h"
#include "../../device/files/file_internal.h"
#include "../formats/json_internal.h"
#include "../optimizers/optimizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 1200 };

static const int64_t usual_bytes = (int64_t)5 << 30;   /* of Keras' store */

typedef struct {
    const char *path;       /* of the map */
    CornuHdf5  *file;       /* the current one, after the first group */
    int         number;     /* of it */
    int64_t     most;       /* bytes of arrays in one file */
    int64_t     size;       /* in this one */
    int64_t     total;
    json_t     *map;        /* the file, or files, of each group */
} Writer;

/* "model_00001.weights.h5" for "folder/model.weights.json", with the folder or without. */
static const char *shard_name(const Writer *writer, bool folder, char name[MAX_PATH])
{
    const char *slash = strrchr(writer->path, '/'), *from = slash ? slash + 1 : writer->path;
    if (folder) from = writer->path;
    const size_t length = strlen(from) - strlen(".weights.json");
    const int    written = snprintf(name, MAX_PATH, "%.*s_%05d.weights.h5", (int)length, from,
                                    writer->number);
    if (written < MAX_PATH) return name;
    cornu__fail(CORNU_ERR_UNSUPPORTED, "the path has %zu characters, expected at most %d",
                strlen(writer->path), MAX_PATH - 20);
    return NULL;
}

static CornuStatus finish_file(Writer *writer)
{
    unsigned char *bytes = NULL;
    size_t         size = 0;
    char           name[MAX_PATH];
    if (!shard_name(writer, true, name)) return cornu_error_status();
    CornuStatus status = cornu__hdf5_bytes(writer->file, &bytes, &size);
    if (!status) status = cornu_file_write(name, bytes, size);
    cornu__release(bytes);
    cornu__hdf5_close(writer->file);
    writer->file = NULL;
    writer->number++;
    writer->size = 0;
    return status;
}

/* Adds the current file to those of the group, unless it is the last of them. */
static CornuStatus map_group(Writer *writer, const char *path)
{
    char        key[MAX_PATH], name[MAX_PATH];
    snprintf(key, sizeof key, "/%s", path);
    json_t     *files = json_object_get(writer->map, key);
    const char *last = json_string_value(json_array_get(files, json_array_size(files) - 1));
    if (!shard_name(writer, false, name)) return cornu_error_status();
    if (last && !strcmp(last, name)) return CORNU_OK;
    if (!files && json_object_set_new(writer->map, key, files = json_array()))
        return CORNU_ERR_MEMORY;
    return json_array_append_new(files, json_string(name)) ? CORNU_ERR_MEMORY : CORNU_OK;
}

/* Array i of a group, in the current file or, if it is full, in a new one. */
static CornuStatus put(Writer *writer, const CornuKerasGroup *group, int i,
                       const CornuNamedArray *from)
{
    const int64_t bytes = (int64_t)cornu_type_bytes(from->array.type);
    char          path[MAX_PATH];
    bool          begun = false;
    if (bytes > writer->most)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s has %lld bytes, more than a file's %lld; "
                           "expected a larger max_shard_size", from->name, (long long)bytes,
                           (long long)writer->most);
    if (writer->file && writer->size + bytes > writer->most) CORNU__TRY(finish_file(writer));
    if (!writer->file && !(writer->file = cornu__hdf5_create())) return cornu_error_take();
    writer->size += bytes;
    writer->total += bytes;
    CORNU__TRY(cornu__hdf5_has(writer->file, group->path, &begun));
    if (!begun) {
        CORNU__TRY(cornu__hdf5_write_group(writer->file, group->path));
        CORNU__TRY(cornu__hdf5_write_text(writer->file, group->path, "name", group->name));
    }
    snprintf(path, sizeof path, "%s/%d", group->path, i);
    CORNU__TRY(cornu__hdf5_write(writer->file, path, from->array));
    return map_group(writer, group->path);
}

static CornuStatus put_groups(Writer *writer, const CornuModel *model, const CornuValues *values)
{
    CornuKerasLayout layout;
    CORNU__TRY(cornu__keras_layout(model, "layers", NULL, &layout));
    CornuStatus status = cornu__keras_layout_optimizer(model, values->variables, &layout);
    for (int g = 0; g < layout.count; g++) {
        const CornuKerasGroup *group = &layout.groups[g];
        for (int i = 0; i < group->count && !status; i++)
            status = put(writer, group, i, &values->arrays[layout.order[group->first + i]]);
    }
    cornu__keras_layout_free(&layout);
    return status;
}

static CornuStatus check_optimizer(const CornuModel *model, const CornuValues *values)
{
    const CornuOptimizer *optimizer = cornu_model_optimizer(model);
    if (values->variables == 0 || !(optimizer->kind->composite || optimizer->scales_loss))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the variables of %s, made of other optimizers, "
                       "are not available in several files; save the model as .keras",
                       cornu_optimizer_name(optimizer));
}

/* After the others, so that it names only files that are there. A group in one file has its name
 * alone. */
static CornuStatus write_map(Writer *writer)
{
    const char *key;
    json_t     *files, *of = json_object();
    json_object_foreach(writer->map, key, files)
        of = json_array_size(files) == 1
                 ? json_object_set(of, key, json_array_get(files, 0)) ? NULL : of
                 : json_object_set(of, key, files) ? NULL : of;
    json_t *all = json_pack("{s:{s:I}, s:o}", "metadata", "total_size",
                            (json_int_t)writer->total, "weight_map", of);
    char   *text = cornu__json_text(all);
    json_decref(all);
    if (!text) return cornu_error_status();
    const CornuStatus status = cornu_file_write(writer->path, text, strlen(text));
    free(text);
    return status;
}

CornuStatus cornu__keras_write_shards(const CornuModel *model, const CornuValues *values,
                                      const char *path)
{
    Writer writer = { .path = path, .map = json_object(),
                      .most = values->shard_bytes ? values->shard_bytes : usual_bytes };
    CornuStatus status = writer.map ? check_optimizer(model, values) : CORNU_ERR_MEMORY;
    if (!status) status = put_groups(&writer, model, values);
    if (!status && writer.file) status = finish_file(&writer);
    if (!status) status = write_map(&writer);
    cornu__hdf5_close(writer.file);
    json_decref(writer.map);
    return status ? cornu__fail_prefix(status, path) : CORNU_OK;
}
