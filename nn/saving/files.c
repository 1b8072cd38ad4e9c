/* Saving and loading models: the suffix selects the format. */
#include "files_internal.h"

#include "../../device/inference_internal.h"
#include "../../device/files/file_internal.h"
#include "../formats/output_internal.h"
#include "../model/model_internal.h"

#include <stdio.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

typedef enum { SAVE, EXPORT, SAVE_WEIGHTS, LOAD, LOAD_WEIGHTS } Task;

static bool can(const CornuFormat *format, Task task)
{
    switch (task) {
    case SAVE:         return format->save;
    case EXPORT:       return format->export_model;
    case SAVE_WEIGHTS: return format->save_weights;
    case LOAD:         return format->load;
    case LOAD_WEIGHTS: return format->load_weights;
    }
    return false;
}

/* The format of the suffix, if it supports the task. */
static CornuStatus find_format(const char *path, Task task, const CornuFormat **format)
{
    static const char *const tasks[] = {
        [SAVE] = "whole models cannot be saved", [EXPORT] = "models cannot be exported",
        [SAVE_WEIGHTS] = "weights cannot be saved", [LOAD] = "whole models cannot be loaded",
        [LOAD_WEIGHTS] = "weights cannot be loaded",
    };
    char   able[100] = "";
    size_t at = 0;
    for (const CornuFormat *const *f = cornu__formats; *f; f++)
        if (can(*f, task))
            at += (size_t)snprintf(able + at, sizeof able - at, " %s", (*f)->suffix);
    for (const CornuFormat *const *f = cornu__formats; *f; f++) {
        if (!ends_with(path, (*f)->suffix)) continue;
        *format = *f;
        if (can(*format, task)) return CORNU_OK;
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s as %s, expected one of%s",
                           path, tasks[task], (*f)->suffix, able);
    }
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the name has no known suffix, expected one of%s",
                       path, able);
}

CornuStatus cornu__check_save_path(const char *path, bool weights_only)
{
    const CornuFormat *format;
    CORNU__TRY(find_format(path, weights_only ? SAVE_WEIGHTS : SAVE, &format));
    return format->check ? cornu__fail_prefix(format->check(), path) : CORNU_OK;
}

static CornuStatus check_model(const CornuModel *model, const char *path)
{
    if (!model) return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model is NULL", path);
    if (cornu_model_built(model)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model %s is not built, so it has no "
                       "weights", path, cornu_model_name(model));
}

/* All ranks gather the values, which may be dealt over them; rank 0 writes them. */
static CornuStatus save(CornuModel *model, Task task, const char *path,
                        const CornuExportConfig *config, int64_t shard_bytes)
{
    const CornuFormat *format;
    CornuValues        values;
    CORNU__TRY(find_format(path, task, &format));
    CORNU__TRY(check_model(model, path));
    if (cornu__model_is_function(model) && format->export_model)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: axis 0 of %s is not one batch of all inputs "
                           "and outputs; expected .safetensors or .keras, %s files have a batch",
                           path, model->base.name, format->suffix);
    CORNU__TRY(cornu__model_follow_trainable(model));
    const CornuDevice *device = cornu_model_device(model);
    CornuStatus        status = cornu__values_create(model, &values);
    values.shard_bytes = shard_bytes;
    status = cornu__output_settle(device, "before saving the model", status);
    if (status == CORNU_OK) status = cornu__values_read(model, &values);
    if (status == CORNU_OK && format->merges_lora)
        status = cornu__values_merge_lora(model, &values);
    if (status == CORNU_OK) {
        if (cornu__output_writes())
            status = task == SAVE           ? format->save(model, &values, path)
                     : task == SAVE_WEIGHTS ? format->save_weights(model, &values, path)
                                            : format->export_model(model, &values, config);
        status = cornu__output_settle(device, "saving the model", status);
    }
    cornu__values_free(&values);
    return status;
}

CornuStatus cornu_model_save(CornuModel *model, const char *path)
{
    CORNU__NEED(path);
    CORNU__WITHIN(model, "cornu_model_save", save(model, SAVE, path, NULL, 0));
}

CornuStatus cornu_model_export_from(const CornuExportConfig *config)
{
    CORNU__NEED(config->path);
    CORNU__WITHIN(config->model, "cornu_model_export",
                  save(config->model, EXPORT, config->path, config, 0));
}

CornuStatus cornu_model_save_weights(CornuModel *model, const char *path)
{
    CORNU__NEED(path);
    CORNU__WITHIN(model, "cornu_model_save_weights", save(model, SAVE_WEIGHTS, path, NULL, 0));
}

static CornuStatus save_shards(CornuModel *model, const char *path, double max_shard_size)
{
    const double bytes = max_shard_size * 1024.0 * 1024.0 * 1024.0;
    if (!ends_with(path, cornu__keras_shards_format.suffix))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: expected a name that ends in %s", path,
                           cornu__keras_shards_format.suffix);
    if (!(bytes >= 1.0) || bytes > 9e18)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: max_shard_size is %g GiB, expected a positive "
                           "number", path, max_shard_size);
    return save(model, SAVE_WEIGHTS, path, NULL, (int64_t)bytes);
}

CornuStatus cornu_model_save_shards(CornuModel *model, const char *path, double max_shard_size)
{
    CORNU__NEED(path);
    CORNU__WITHIN(model, "cornu_model_save_shards", save_shards(model, path, max_shard_size));
}

CornuStatus cornu_model_save_check(const char *path)
{
    CORNU__NEED(path);
    CORNU__TRY(cornu__check_save_path(path, false));
    return cornu_file_check(path);
}

/* Adds the path to the message, unless opening the file has. */
static CornuStatus name_file(CornuStatus status, const char *path)
{
    const size_t length = strlen(path);
    const char  *message = cornu_error_message();
    const bool   named = !strncmp(message, path, length) && message[length] == ':';
    return named ? status : cornu__fail_prefix(status, path);
}

static CornuStatus load_weights_of(CornuModel *model, const char *path)
{
    const CornuFormat *format;
    CORNU__TRY(CORNU__FULL(cornu__refuse_foreign(path), CORNU_OK));
    CORNU__TRY(find_format(path, LOAD_WEIGHTS, &format));
    CORNU__TRY(check_model(model, path));
    CORNU__TRY(cornu__model_follow_trainable(model));
    CornuStatus status = format->load_weights(model, path);
    return status == CORNU_OK ? status : name_file(status, path);
}

CornuStatus cornu_model_load_weights(CornuModel *model, const char *path)
{
    CORNU__NEED(path);
    CORNU__WITHIN(model, "cornu_model_load_weights", load_weights_of(model, path));
}

static CornuStatus know_layers(void)
{
    for (const CornuFormat *const *f = cornu__formats; *f; f++)
        if ((*f)->known) CORNU__TRY((*f)->known());
    return CORNU_OK;
}

static CornuModel *load_as(const CornuFormat *format, const char *path, bool compile,
                           CornuDevice *device, CornuInputShapes *shapes)
{
    bool given = false;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && shapes; i++) given |= shapes[i][0] != 0;
    if (!given) return format->load(path, compile, device);
    if (format->load_shaped) return format->load_shaped(path, shapes);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, ".input_shapes are given, expected none: %s files "
                            "hold the shapes of their inputs", format->suffix);
}

static CornuModel *load_model(const char *path, bool compile, CornuDevice *device,
                              CornuInputShapes *shapes)
{
    const CornuFormat *format;
    if (cornu__refused()) return NULL;
    if (CORNU__FULL(cornu__refuse_foreign(path), CORNU_OK) != CORNU_OK ||
        find_format(path, LOAD, &format) != CORNU_OK || know_layers() != CORNU_OK)
        return cornu__loaded(NULL);
    CornuModel *model = load_as(format, path, compile, device, shapes);
    if (!model) name_file(cornu_error_take(), path);
    return cornu__loaded(model);
}

CornuModel *(cornu_model_load)(const char *path)
{
    CORNU__NEED_TO_LOAD(path);
    return load_model(path, false, NULL, NULL);
}

CornuModel *cornu_model_load_from(const CornuLoadConfig *config)
{
    const char *path = config->path;
    CORNU__NEED_TO_LOAD(path);
    return load_model(path, false, NULL, config->input_shapes);
}

CornuModel *cornu_model_load_compiled(const char *path, CornuDevice *device)
{
    CORNU__NEED_TO_LOAD(path);
    return load_model(path, true, device, NULL);
}
