#include "settings_internal.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "../../device/device_internal.h"
#include "../model/pipeline_plan_internal.h"
#include "architecture/architecture_internal.h"
#include "keras_internal.h"

enum { SAMPLES = 4, DIFFERENCES = 4, PATH_SIZE = 160, VALUE_SIZE = 60 };

/* ---- The data ---- */

/* The checksum of a few whole batches of the first pass, evenly spread: if the data is shuffled,
 * each has rows from everywhere. Only of the first batch if the number of batches is unknown. */
static CornuStatus check_batches(const CornuDataLoader *loader, CornuIterator *iterator,
                                 uLong *sum)
{
    const int64_t batches = loader->batches < 0 ? 1 : loader->batches;
    int64_t       last = -1;
    *sum = crc32(0, NULL, 0);
    for (int64_t i = 0; i < SAMPLES; i++) {
        const CornuBatch *batch;
        const int64_t     at = (batches - 1) * i / (SAMPLES - 1);
        if (at == last) continue;
        last = at;
        CORNU__TRY(cornu_iterator_seek(iterator, (CornuSample){ 0, at }));
        CORNU__TRY(cornu_iterator_next(iterator, &batch));
        for (int c = 0; batch && c < batch->count; c++)
            *sum = crc32_z(*sum, batch->arrays[c].data, cornu_type_bytes(batch->arrays[c].type));
        if (batch) *sum = crc32(*sum, (const Bytef *)&batch->valid, sizeof batch->valid);
    }
    return CORNU_OK;
}

/* Whole batches, so that the sum is the same for all processes, however many there are. */
static CornuStatus check_whole(const CornuDataLoader *loader, uLong *sum)
{
    const CornuShare  own = cornu__iterator_set_share(loader->iterator, (CornuShare){ 0 });
    const CornuStatus status = check_batches(loader, loader->iterator, sum);
    cornu__iterator_set_share(loader->iterator, own);
    return status;
}

/* Of data on the device the loader reads row numbers alone. */
static CornuStatus check_elements(const CornuDataLoader *loader, uLong *sum)
{
    CornuIterator *iterator = cornu_iterator_begin(loader->dataset, 0);
    if (!iterator) return cornu_error_take();
    const CornuStatus status = check_batches(loader, iterator, sum);
    cornu_iterator_free(iterator);
    return status;
}

/* Null if there is no data. */
static CornuStatus describe_data(const CornuDataLoader *loader, json_t **data)
{
    uLong     sum;
    char      text[20];
    CornuText type;
    *data = json_null();
    if (!loader->dataset) return CORNU_OK;
    CORNU__TRY(loader->resident ? check_elements(loader, &sum) : check_whole(loader, &sum));
    json_t *types = json_array();
    for (int i = 0; i < cornu_dataset_components(loader->dataset); i++)
        types = cornu__json_append(types, json_string(cornu_type_print(
                                              &type, cornu_dataset_type(loader->dataset, i))));
    snprintf(text, sizeof text, "%08lx", sum);
    *data = json_pack("{s:o, s:I, s:I, s:s}", "elements", types, "batches",
                      (json_int_t)loader->batches, "batch_size",
                      (json_int_t)cornu_dataset_batch_size(loader->dataset), "checksum", text);
    return *data ? CORNU_OK : cornu__fail(CORNU_ERR_MEMORY, "no memory to describe the data");
}

/* ---- All settings ---- */

/* Null for a model with unregistered layers. */
static CornuStatus describe_model(const CornuModel *model, json_t **architecture)
{
    *architecture = cornu__model_config(model);
    if (*architecture) return CORNU_OK;
    *architecture = json_null();
    return cornu_error_status() == CORNU_ERR_MEMORY ? CORNU_ERR_MEMORY : CORNU_OK;
}

/* Of a model with parts that Keras does not have: the optimizer's name, and a constant rate. */
static json_t *describe_training(const CornuModel *model)
{
    json_t *config = cornu__compile_config(model);
    if (!config || json_object_size(config) > 0) {
        static const char *const no_matter[] = { "run_eagerly", "jit_compile",
                                                 "steps_per_execution" };
        for (size_t i = 0; config && i < sizeof no_matter / sizeof *no_matter; i++)
            json_object_del(config, no_matter[i]);
        return config;
    }
    const CornuOptimizer *optimizer = model->optimizer;
    config = cornu__json_with(config, "optimizer", json_string(optimizer->name));
    if (optimizer->schedule) return config;
    return cornu__json_with(config, "learning_rate", json_real(optimizer->learning_rate));
}

char *cornu__settings_text(const CornuModel *model)
{
    const CornuTraining *training = model->training;
    const CornuDevice   *device = cornu_model_device(model);
    json_t              *architecture = NULL, *data = NULL, *validation = NULL;
    CornuMeshText        mesh;
    CornuStatus          status = describe_model(model, &architecture);
    if (!status) status = describe_data(training->loader, &data);
    if (!status) status = describe_data(training->validation, &validation);
    if (status) {
        json_decref(architecture);
        json_decref(data);
        json_decref(validation);
        return NULL;
    }
    json_t *settings = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:i, s:s*, s:s}", "model", architecture, "input",
        cornu__input_config(model), "compiled", describe_training(model), "data", data,
        "validation", validation, "policy", cornu_model_policy(model)->name, "device",
        cornu_device_name(device), "shards", cornu_device_shards(device), "mesh",
        device->mesh.axes ? cornu_mesh_print(&mesh, &device->mesh) : NULL, "precision",
        cornu_precision_name(cornu_device_precision(device)));
    if (settings && model->pipeline)   /* stages and schedules change no bits */
        json_object_set_new(settings, "microbatches", json_integer(model->pipeline->microbatches));
    char *text = cornu__json_text(settings);
    json_decref(settings);
    return text;
}

/* ---- Differences ---- */

static void print_value(char text[VALUE_SIZE], const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "class_name"));
    if (!value)
        snprintf(text, VALUE_SIZE, "not given");
    else if (json_is_array(value))
        snprintf(text, VALUE_SIZE, "a list of %zu", json_array_size(value));
    else if (json_is_object(value))
        snprintf(text, VALUE_SIZE, "%.50s", name ? name : "an object");
    else if (json_is_string(value))
        snprintf(text, VALUE_SIZE, "%.50s", json_string_value(value));
    else
        json_dumpb(value, text, VALUE_SIZE - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
}

static void note(CornuDifferences *found, const char *path, const json_t *there, const json_t *here)
{
    char a[VALUE_SIZE] = "", b[VALUE_SIZE] = "";
    if (found->count++ >= DIFFERENCES) return;
    print_value(a, there);
    print_value(b, here);
    const int length = snprintf(found->text + found->used, sizeof found->text - found->used,
                                "%s%s was %s and is %s", found->used ? "; " : "", path, a, b);
    found->used += (size_t)length < sizeof found->text - found->used ? (size_t)length : 0;
}

static void compare(CornuDifferences *found, const char *path, const json_t *there,
                    const json_t *here);

static void compare_member(CornuDifferences *found, const char *path, const char *key,
                           const json_t *there, const json_t *here)
{
    char below[PATH_SIZE];
    if (!strcmp(key, "name")) return;   /* names change nothing */
    snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
    compare(found, below, json_object_get(there, key), json_object_get(here, key));
}

static void compare(CornuDifferences *found, const char *path, const json_t *there,
                    const json_t *here)
{
    const char *key;
    json_t     *value;
    if (json_is_object(there) && json_is_object(here)) {
        json_object_foreach((json_t *)there, key, value)
            compare_member(found, path, key, there, here);
        json_object_foreach((json_t *)here, key, value)
            if (!json_object_get(there, key)) compare_member(found, path, key, there, here);
    } else if (json_is_array(there) && json_is_array(here) &&
               json_array_size(there) == json_array_size(here)) {
        char below[PATH_SIZE];
        for (size_t i = 0; i < json_array_size(there); i++) {
            snprintf(below, sizeof below, "%s[%zu]", path, i);
            compare(found, below, json_array_get(there, i), json_array_get(here, i));
        }
    } else if (!json_equal(there, here)) {
        note(found, path, there, here);
    }
}

/* A training over a mesh may go on over another one, or without. */
static void leave_out_meshes(json_t *there, json_t *here)
{
    const bool any = json_object_get(there, "mesh") || json_object_get(here, "mesh");
    for (int i = 0; i < 2 && any; i++) {
        json_object_del(i ? there : here, "mesh");
        json_object_del(i ? there : here, "shards");
    }
}

CornuStatus cornu__settings_differences(const char *there, const char *here,
                                        CornuDifferences *found)
{
    *found = (CornuDifferences){ .count = 0 };
    json_t *a = cornu__json_parse(there, strlen(there), CORNU_ARCHITECTURE_DEPTH + 1);
    json_t *b = a ? cornu__json_parse(here, strlen(here), CORNU_ARCHITECTURE_DEPTH + 1) : NULL;
    CornuStatus status = b ? CORNU_OK : cornu__fail_prefix(cornu_error_status(), "settings");
    if (b) {
        leave_out_meshes(a, b);
        compare(found, "", a, b);
    }
    json_decref(a);
    json_decref(b);
    if (found->count > DIFFERENCES)
        snprintf(found->text + found->used, sizeof found->text - found->used, "; and %d more",
                 found->count - DIFFERENCES);
    return status;
}

CornuStatus cornu__settings_compare(const char *there, const char *here)
{
    CornuDifferences found;
    CORNU__TRY(cornu__settings_differences(there, here, &found));
    if (!found.count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "it belongs to another training: %s. Resume with the "
                       "settings and data that it was started with, or start in another folder",
                       found.text);
}
