/* Models in safetensors files: weights and variables as arrays, the rest as JSON metadata. */
#include "files_internal.h"

#include "../../device/inference_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/files/file_internal.h"
#include "../model/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Saving ---- */

static char *names_text(const CornuNamedArray *arrays, int count)
{
    json_t *names = json_array();
    bool complete = true;
    for (int i = 0; i < count; i++)
        complete = json_array_append_new(names, json_string(arrays[i].name)) == 0 && complete;
    char *text = cornu__json_text(complete ? names : NULL);
    json_decref(names);
    return text;
}

static CornuStatus write_values(const CornuModel *model, const CornuValues *values,
                                bool with_architecture, const char *path)
{
    enum { WEIGHTS, OPTIMIZER, INPUT, ARCHITECTURE, NOTES, COUNT };
    json_t *architecture = with_architecture ? cornu__model_config(model) : NULL;
    json_t *input = architecture ? cornu__input_config(model) : NULL;
    CornuStatus status = with_architecture && !architecture ? cornu_error_status() : CORNU_OK;
    char *texts[COUNT] = { NULL };
    const int wanted = !with_architecture ? INPUT : model->notes ? COUNT : NOTES;
    if (status == CORNU_OK) {
        texts[WEIGHTS] = names_text(values->arrays, values->weights);
        texts[OPTIMIZER] = names_text(values->arrays + values->weights, values->variables);
        if (with_architecture) {
            texts[INPUT] = cornu__json_text(input);
            texts[ARCHITECTURE] = cornu__json_text(architecture);
            if (model->notes) texts[NOTES] = cornu__json_text(model->notes);
        }
    }
    for (int i = 0; i < wanted && status == CORNU_OK; i++)
        if (!texts[i]) status = CORNU_ERR_MEMORY;
    if (status == CORNU_OK) {
        const CornuMetadata metadata[COUNT] = {
            { "weights", texts[WEIGHTS] }, { "optimizer", texts[OPTIMIZER] },
            { "input", texts[INPUT] }, { "architecture", texts[ARCHITECTURE] },
            { "notes", texts[NOTES] },
        };
        status = cornu_safetensors_write(path, values->arrays,
                                         values->weights + values->variables, metadata, wanted);
    }
    for (int i = 0; i < COUNT; i++)
        free(texts[i]);
    json_decref(input);
    json_decref(architecture);
    return status;
}

static CornuStatus save_whole(const CornuModel *model, const CornuValues *values, const char *path)
{
    return write_values(model, values, true, path);
}

static CornuStatus save_weights(const CornuModel *model, const CornuValues *values,
                                const char *path)
{
    return write_values(model, values, false, path);
}

/* ---- Loading ---- */

/* Metadata parsed as JSON; NULL if there is none, or, with *status, if it is damaged. */
static json_t *metadata_json(const CornuSafetensors *file, const char *key, CornuStatus *status)
{
    const char *text = cornu_safetensors_metadata(file, key);
    if (!text) return NULL;
    json_t *value = cornu__json_parse(text, strlen(text), CORNU_ARCHITECTURE_DEPTH);
    if (!value) *status = cornu__fail_prefix(cornu_error_status(), key);
    return value;
}

/* The array of weight i, which the model calls `name`: that of the file's list, or else the one of
 * the same name. */
static const CornuNamedArray *find_array(const CornuSafetensors *file, const json_t *list, int i,
                                         const char *name)
{
    const char *listed = json_string_value(json_array_get(list, (size_t)i));
    return cornu_safetensors_find(file, listed ? listed : name);
}

/* The numbers of weights differ: names the first weight that does. */
static CornuStatus fail_count(const CornuModel *model, const CornuSafetensors *file,
                              const json_t *list)
{
    const int   count = cornu_model_weight_count(model), listed = (int)json_array_size(list);
    const int   both = count < listed ? count : listed;
    CornuText   here, there;
    const char *name = listed > count ? json_string_value(json_array_get(list, (size_t)count))
                                      : cornu_model_weight(model, listed)->path;
    char        what[300];
    snprintf(what, sizeof what, "%.200s is only in the %s", name ? name : "a weight",
             listed > count ? "file" : "model");
    for (int i = both - 1; i >= 0; i--) {
        const CornuWeight     *weight = cornu_model_weight(model, i);
        const CornuNamedArray *array = find_array(file, list, i, weight->path);
        if (!array || cornu_shape_equal(array->array.type.shape, weight->type.shape)) continue;
        snprintf(what, sizeof what, "%.100s is %s in the model, %.100s %s in the file",
                 weight->path, cornu_shape_print(&here, weight->type.shape), array->name,
                 cornu_shape_print(&there, array->array.type.shape));
    }
    return cornu__fail(CORNU_ERR_SHAPE, "it has %d weights, the model %s has %d: %s", listed,
                       cornu_model_name(model), count, what);
}

static CornuStatus check_weights(const CornuModel *model, const CornuSafetensors *file,
                                 const json_t *list)
{
    const int count = cornu_model_weight_count(model);
    if (list && json_array_size(list) != (size_t)count) return fail_count(model, file, list);
    for (int i = 0; i < count; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        CORNU__TRY(cornu__check_fills(find_array(file, list, i, weight->path), weight->path,
                                      weight->type));
    }
    return CORNU_OK;
}

/* Whether names are equal apart from underscores: files written before optimizers had Keras' names
 * have "rmsprop/iteration" for "rm_sprop/iteration". */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_') a++;
        while (*b == '_') b++;
        if (*a != *b || !*a) return *a == *b;
    }
}

/* The optimizers are the same if their first variables have the same name. Sets the number of
 * variables to load. */
static CornuStatus check_optimizer(const CornuModel *model, const CornuSafetensors *file,
                                   const json_t *list, int *count)
{
    *count = cornu__model_saved_count(model);
    const char *first = json_string_value(json_array_get(list, 0));
    if (*count == 0 || !first ||
        !same_name(first, cornu_variable_name(cornu_model_optimizer_variable(model, 0)))) {
        *count = 0;
        return CORNU_OK;
    }
    if (json_array_size(list) != (size_t)*count)
        return cornu__fail(CORNU_ERR_SHAPE, "its optimizer has %zu variables, the model's has %d: "
                           "their settings differ", json_array_size(list), *count);
    for (int i = 0; i < *count; i++) {
        const CornuVariable *variable = cornu_model_optimizer_variable(model, i);
        const char *name = cornu_variable_name(variable);
        CORNU__TRY(cornu__check_fit(find_array(file, list, i, name), name,
                                    cornu_variable_type(variable)));
    }
    return CORNU_OK;
}

static CornuStatus copy_in(CornuWeight *weight, CornuVariable *variable, CornuArray from)
{
    const CornuType type = weight ? weight->type : cornu_variable_type(variable);
    CornuArray      copy = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!copy.data) return CORNU_ERR_MEMORY;
    cornu__fill_from(copy, from);
    CornuStatus status = weight ? cornu_weight_write(weight, copy)
                                : cornu_variable_write(variable, copy);
    cornu__release(copy.data);
    return status;
}

static CornuStatus load(CornuModel *model, const CornuSafetensors *file)
{
    CornuStatus status = CORNU_OK;
    json_t *weights = metadata_json(file, "weights", &status);
    json_t *variables = status == CORNU_OK ? metadata_json(file, "optimizer", &status) : NULL;
    int variable_count = 0;
    if (status == CORNU_OK) status = check_weights(model, file, weights);
    if (status == CORNU_OK) status = check_optimizer(model, file, variables, &variable_count);
    for (int i = 0; i < cornu_model_weight_count(model) && status == CORNU_OK; i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        status = copy_in(weight, NULL, find_array(file, weights, i, weight->path)->array);
    }
    for (int i = 0; i < variable_count && status == CORNU_OK; i++) {
        CornuVariable *variable = cornu_model_optimizer_variable(model, i);
        const char *name = cornu_variable_name(variable);
        status = copy_in(NULL, variable, find_array(file, variables, i, name)->array);
    }
    json_decref(weights);
    json_decref(variables);
    return status;
}

static CornuStatus load_weights(CornuModel *model, const char *path)
{
    CornuSafetensors *file = cornu_safetensors_open(path);
    if (!file) return cornu_error_status();
    CornuStatus status = load(model, file);
    cornu_safetensors_close(file);
    return status;
}

static CornuModel *make_model(const CornuSafetensors *file)
{
    CornuStatus status = CORNU_OK;
    json_t *architecture = metadata_json(file, "architecture", &status);
    json_t *input = status == CORNU_OK ? metadata_json(file, "input", &status) : NULL;
    json_t *notes = status == CORNU_OK ? metadata_json(file, "notes", &status) : NULL;
    CornuModel *model = NULL;
    if (status != CORNU_OK)
        cornu__null();
    else if (!architecture)
        cornu__fail_null(CORNU_ERR_FORMAT, "there is no architecture in it, only weights");
    else
        model = cornu__model_from_config(architecture, input);
    if (model && !cornu_model_built(model))
        status = cornu__fail(CORNU_ERR_FORMAT, "its first layer is not an InputLayer");
    else if (model)
        status = cornu__notes_read(model, notes);
    json_decref(architecture);
    json_decref(input);
    json_decref(notes);
    if (!model || status == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

static CornuModel *load_whole(const char *path, bool compile, CornuDevice *device)
{
    (void)device;
    if (compile)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "does not say what it was compiled with, as "
                                ".keras files do; load it by cornu_model_load, and compile it");
    CornuSafetensors *file = cornu_safetensors_open(path);
    if (!file) return cornu__null();
    CornuModel *model = make_model(file);
    CornuStatus status = model ? load(model, file) : cornu_error_take();
    cornu_safetensors_close(file);
    if (status == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

/* ---- The format ---- */

const CornuFormat cornu__safetensors_format = {
    .suffix = ".safetensors", .save = CORNU__FULL(save_whole, NULL),
    .save_weights = CORNU__FULL(save_weights, NULL), .load = load_whole,
    .load_weights = load_weights,
};
