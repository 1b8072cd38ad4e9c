#include "transfer.h"

#include "files_internal.h"
#include "../model/model_internal.h"

/* Values on the host for the weights that are in the file; data is NULL for the others. */
static CornuStatus find_values(const CornuLoadByNameConfig *config, const CornuSafetensors *file,
                               CornuArray *values, int *found)
{
    const CornuModel *model = config->model;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight     *weight = cornu_model_weight(model, i);
        const CornuNamedArray *array = cornu_safetensors_find(file, weight->path);
        const CornuStatus      fit = cornu__check_fills(array, weight->path, weight->type);
        if (fit && array && !config->skip_mismatch) return fit;
        if (fit && config->file)
            fprintf(config->file, "%s: skipped: %s\n", config->path, cornu_error_message());
        if (fit) continue;
        const size_t bytes = cornu_type_bytes(weight->type);
        values[i] = cornu_array_from(cornu__allocate(bytes, 1), weight->type);
        if (!values[i].data) return CORNU_ERR_MEMORY;
        cornu__fill_from(values[i], array->array);
        ++*found;
    }
    if (*found) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "none of its %d arrays is a weight of the model %s",
                       cornu_safetensors_count(file), cornu_model_name(model));
}

static CornuStatus load(const CornuLoadByNameConfig *config, const CornuSafetensors *file)
{
    CornuModel *model = config->model;
    const int   count = cornu_model_weight_count(model);
    int         found = 0;
    CornuArray *values = cornu__allocate((size_t)count, sizeof *values);
    CornuStatus status = values ? find_values(config, file, values, &found) : CORNU_ERR_MEMORY;
    for (int i = 0; i < count && !status; i++)
        if (values[i].data) status = cornu_weight_write(cornu_model_weight(model, i), values[i]);
    for (int i = 0; i < count && values; i++) cornu__release(values[i].data);
    cornu__release(values);
    if (!status && config->loaded) *config->loaded = found;
    return status;
}

static CornuStatus load_by_name(const CornuLoadByNameConfig *config)
{
    if (!config->path)
        return cornu__fail(CORNU_ERR_ARGUMENT, "load_by_name: .path is NULL, expected a file name");
    if (cornu__model_check(config->model))
        return cornu__fail_prefix(cornu_error_status(), config->path);
    if (!cornu_model_built(config->model))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the model %s is not built, so it has no "
                           "weights to load", config->path, cornu_model_name(config->model));
    CornuSafetensors *file = cornu_safetensors_open(config->path);
    if (!file) return cornu_error_status();
    CornuStatus status = load(config, file);
    if (status) cornu__fail_prefix(status, config->path);
    cornu_safetensors_close(file);
    return status;
}

CornuStatus cornu_model_load_by_name_from(const CornuLoadByNameConfig *config)
{
    CORNU__WITHIN(config->model, "cornu_model_load_by_name", load_by_name(config));
}
