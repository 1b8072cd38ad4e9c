/* .keras, .weights.h5 and older .h5 files. */
#include "keras_internal.h"

#include "architecture/architecture_internal.h"
#include "keras2/keras2_internal.h"
#include "keras2/keras2_weights_internal.h"
#include "../../device/files/file_internal.h"
#include "../formats/hdf5_library_internal.h"
#include "../../device/files/zip_internal.h"

#include <stdlib.h>
#include <string.h>

/* The members of a .keras archive, in Keras' order. */
static const char *const member_names[] = { "metadata.json", "config.json", "model.weights.h5" };
enum { METADATA, CONFIG, WEIGHTS, MEMBERS };

#define KERAS_VERSION "3.15.0"

/* ---- Writing ---- */

static CornuStatus write_bytes(const CornuModel *model, const CornuValues *values,
                               unsigned char **bytes, size_t *size)
{
    CornuHdf5 *file = cornu__hdf5_create();
    if (!file) return cornu_error_take();
    CornuStatus status = cornu__keras_write_values(file, model, values);
    if (status == CORNU_OK) status = cornu__hdf5_bytes(file, bytes, size);
    cornu__hdf5_close(file);
    return status;
}

static CornuStatus save_weights(const CornuModel *model, const CornuValues *values,
                                const char *path)
{
    unsigned char *bytes = NULL;
    size_t         size = 0;
    CornuStatus    status = write_bytes(model, values, &bytes, &size);
    if (status != CORNU_OK) return cornu__fail_prefix(status, path);
    status = cornu_file_write(path, bytes, size);
    cornu__release(bytes);
    return status;
}

/* Keras writes the date of saving. For equal files of equal models it is always the first date of
 * zip archives. */
static json_t *metadata_of(const CornuModel *model)
{
    json_t *metadata = json_pack("{s:s, s:s, s:o}", "keras_version", KERAS_VERSION, "date_saved",
                                 "1980-01-01@00:00:00", "input", cornu__input_config(model));
    if (model->notes) metadata = cornu__json_with(metadata, "notes", json_incref(model->notes));
    return metadata;
}

static char *metadata_text(const CornuModel *model)
{
    json_t *metadata = metadata_of(model);
    char   *text = cornu__json_text(metadata);
    json_decref(metadata);
    return text;
}

static char *config_text(const CornuModel *model)
{
    json_t *config = cornu__model_config(model);
    if (!config) return NULL;
    json_object_set_new(config, "build_config", json_object());
    char *text = json_object_set_new(config, "compile_config", cornu__compile_config(model)) == 0
                     ? cornu__json_text(config) : cornu__json_text(NULL);
    json_decref(config);
    return text;
}

static CornuStatus save(const CornuModel *model, const CornuValues *values, const char *path)
{
    unsigned char *bytes = NULL;
    size_t         size = 0;
    CornuStatus    status = write_bytes(model, values, &bytes, &size);
    if (status != CORNU_OK) return cornu__fail_prefix(status, path);
    char *metadata = metadata_text(model), *config = metadata ? config_text(model) : NULL;
    if (config) {
        const CornuZipMember members[MEMBERS] = {
            [METADATA] = { member_names[METADATA], metadata, strlen(metadata) },
            [CONFIG] = { member_names[CONFIG], config, strlen(config) },
            [WEIGHTS] = { member_names[WEIGHTS], bytes, size },
        };
        status = cornu__zip_write(path, members, MEMBERS);
    } else {
        status = cornu__fail_prefix(cornu_error_status(), path);
    }
    free(metadata);
    free(config);
    cornu__release(bytes);
    return status;
}

/* ---- Writing whole models as .h5 ---- */

/* Of compile's arguments: the optimizer by Keras 2's name. NULL without an error: not compiled. */
static json_t *training_config(const CornuModel *model)
{
    json_t *config = cornu__compile_config(model);
    json_t *optimizer = json_object_get(config, "optimizer");
    if (!json_is_object(config)) {
        json_decref(config);
        return NULL;
    }
    config = cornu__json_with(config, "optimizer_config", json_incref(optimizer));
    json_object_del(config, "optimizer");
    return config;
}

/* An attribute of the root; takes the value. */
static CornuStatus write_json(CornuHdf5 *file, const char *name, json_t *value)
{
    char *text = value ? cornu__json_text(value) : NULL;
    CornuStatus status = text ? cornu__hdf5_write_text(file, "/", name, text)
                              : cornu_error_take();
    free(text);
    json_decref(value);
    return status;
}

static CornuStatus write_older(CornuHdf5 *file, const CornuModel *model,
                               const CornuValues *values)
{
    CORNU__TRY(cornu__hdf5_write_text(file, "/", "keras_version", KERAS_VERSION));
    CORNU__TRY(cornu__hdf5_write_text(file, "/", "backend", "jax"));
    CORNU__TRY(write_json(file, "model_config", cornu__model_config(model)));
    CORNU__TRY(write_json(file, "metadata", metadata_of(model)));     /* which Keras ignores */
    json_t *training = training_config(model);
    if (training) CORNU__TRY(write_json(file, "training_config", training));
    else if (cornu_error_pending()) return cornu_error_take();
    return cornu__keras2_write_values(file, model, values);
}

static CornuStatus save_older(const CornuModel *model, const CornuValues *values,
                              const char *path)
{
    unsigned char *bytes = NULL;
    size_t         size = 0;
    CornuHdf5     *file = cornu__hdf5_create();
    if (!file) return cornu__fail_prefix(cornu_error_take(), path);
    CornuStatus status = write_older(file, model, values);
    if (!status) status = cornu__hdf5_bytes(file, &bytes, &size);
    cornu__hdf5_close(file);
    status = status ? cornu__fail_prefix(status, path) : cornu_file_write(path, bytes, size);
    cornu__release(bytes);
    return status;
}

/* ---- Reading values ---- */

typedef CornuStatus Read(CornuHdf5 *file, const CornuModel *model, CornuValues *values);

/* Loads all values or none. Allocates no more than the file holds. */
static CornuStatus fill(CornuModel *model, CornuHdf5 *file, Read *read)
{
    CornuValues values, wanted;
    CornuStatus status = cornu__values_list(model, &values);
    if (status == CORNU_OK) {
        wanted = values;
        wanted.variables = cornu_model_optimizer_variable_count(model);
        status = read(file, model, &wanted);
        if (status == CORNU_OK) status = cornu__values_write(model, &wanted);
    }
    cornu__values_free(&values);
    return status;
}

/* An HDF5 file and the bytes that hold it: a file, or a member of an archive. */
typedef struct {
    CornuHdf5     *file;          /* NULL with a pending error if it cannot be read */
    CornuFileBytes bytes;
    unsigned char *member;
} Source;

static Source open_file(const char *path)
{
    Source source = { 0 };
    if (cornu__file_read(&source.bytes, path) != CORNU_OK) cornu__null();
    else source.file = cornu__hdf5_open(source.bytes.bytes, source.bytes.size);
    return source;
}

static Source open_member(const CornuZip *zip)
{
    Source    source = { 0 };
    size_t    size;
    const int i = cornu__zip_find(zip, member_names[WEIGHTS]);
    if (i < 0)
        cornu__fail_null(CORNU_ERR_FORMAT, "there is no %s in it", member_names[WEIGHTS]);
    else if (cornu__zip_read(zip, i, &source.member, &size) != CORNU_OK)
        cornu__null();
    else
        source.file = cornu__hdf5_open(source.member, size);
    return source;
}

static void close_source(Source *source)
{
    cornu__hdf5_close(source->file);
    cornu__file_release(&source->bytes);
    cornu__release(source->member);
}

static CornuStatus fill_and_close(CornuModel *model, Source source, Read *read)
{
    CornuStatus status = source.file ? fill(model, source.file, read) : cornu_error_take();
    close_source(&source);
    return status;
}

static CornuStatus load_weights(CornuModel *model, const char *path)
{
    return fill_and_close(model, open_file(path), cornu__keras_read_values);
}

static CornuStatus load_older_weights(CornuModel *model, const char *path)
{
    return fill_and_close(model, open_file(path), cornu__keras2_read_weights);
}

static CornuStatus load_archive_weights(CornuModel *model, const char *path)
{
    CornuZip *zip = cornu__zip_open(path);
    if (!zip) return cornu_error_take();
    CornuStatus status = fill_and_close(model, open_member(zip), cornu__keras_read_values);
    cornu__zip_close(zip);
    return status;
}

/* ---- Reading models ---- */

/* A JSON member as an object; an empty object if it is optional and missing. */
static json_t *read_json(const CornuZip *zip, int member, bool required)
{
    unsigned char *bytes;
    size_t         size;
    const int      i = cornu__zip_find(zip, member_names[member]);
    if (i < 0 && !required) return json_object();
    if (i < 0)
        return cornu__fail_null(CORNU_ERR_FORMAT, "there is no %s in it", member_names[member]);
    if (cornu__zip_check_size(zip, i, CORNU__MOST_JSON) != CORNU_OK ||
        cornu__zip_read(zip, i, &bytes, &size) != CORNU_OK)
        return cornu__null();
    json_t *value = cornu__json_parse((char *)bytes, size, CORNU_ARCHITECTURE_DEPTH);
    cornu__release(bytes);
    if (value) return value;
    cornu__fail_prefix(cornu_error_status(), member_names[member]);
    return cornu__null();
}

/* Makes the model, compiles it if asked to, and loads its values. `metadata` has the parts that
 * Keras ignores, `training` the arguments of compile. */
static CornuModel *make(const json_t *config, const json_t *metadata, const json_t *training,
                        bool compile, CornuDevice *device, const CornuZip *zip, CornuHdf5 *file,
                        Read *read)
{
    CornuModel *model = cornu__model_from_config(config, json_object_get(metadata, "input"));
    if (!model) return NULL;
    CornuStatus status = cornu__notes_read(model, json_object_get(metadata, "notes"));
    if (status == CORNU_OK && !cornu_model_built(model))
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "does not say the shape of the model's input");
    if (status == CORNU_OK) status = cornu__keras_read_assets(zip, model);
    /* Checks that the file holds what it declares, before a device allocates it. */
    if (status == CORNU_OK) status = fill(model, file, read);
    if (status == CORNU_OK && compile) {
        status = cornu__compile_from_config(model, training, device);
        if (status == CORNU_OK) status = fill(model, file, read);
    }
    if (status == CORNU_OK) return model;
    cornu_model_free(model);
    return cornu__null();
}

/* The same of JSON of any version of Keras. */
static CornuModel *make_of_version(const json_t *config, const json_t *metadata,
                                   const json_t *training, const char *version, bool compile,
                                   CornuDevice *device, const CornuZip *zip, CornuHdf5 *file,
                                   Read *read)
{
    json_t     *new_config = cornu__keras2_model(config, version);
    json_t     *new_training = new_config ? cornu__keras2_training(training, version) : NULL;
    CornuModel *model = NULL;
    if (new_config && !cornu_error_pending())
        model = make(new_config, metadata, new_training, compile, device, zip, file, read);
    json_decref(new_config);
    json_decref(new_training);
    return model;
}

/* The arguments of compile; NULL for those of a model that a step of the program's own trains,
 * which that compiles itself (nn/python/cornu/_models/assets.py). */
static const json_t *compile_config(const json_t *config)
{
    return json_object_get(config, "own_step") ? NULL : json_object_get(config, "compile_config");
}

static CornuModel *load(const char *path, bool compile, CornuDevice *device)
{
    CornuZip *zip = cornu__zip_open(path);
    if (!zip) return NULL;
    json_t     *config = read_json(zip, CONFIG, true);
    json_t     *metadata = config ? read_json(zip, METADATA, false) : NULL;
    Source      source = metadata ? open_member(zip) : (Source){ 0 };
    CornuModel *model = NULL;
    if (source.file)
        model = make_of_version(config, metadata, compile_config(config),
                                json_string_value(json_object_get(metadata, "keras_version")),
                                compile, device, zip, source.file, cornu__keras_read_values);
    close_source(&source);
    json_decref(config);
    json_decref(metadata);
    cornu__zip_close(zip);
    return model;
}

/* An attribute of the root, parsed as JSON; NULL and a pending error. */
static json_t *read_attribute(CornuHdf5 *file, const char *name, bool required)
{
    char  **texts;
    int64_t count;
    if (cornu__hdf5_texts(file, "", name, &texts, &count) != CORNU_OK) return cornu__null();
    json_t *value = NULL;
    if (count == 1)
        value = cornu__json_parse(texts[0], strlen(texts[0]), CORNU_ARCHITECTURE_DEPTH);
    else if (required)
        cornu__fail(CORNU_ERR_FORMAT, "there is no %s in it, only weights", name);
    else
        value = json_object();
    if (!value) cornu__null();
    cornu__hdf5_free_texts(texts, count);
    return value;
}

static CornuModel *load_older(const char *path, bool compile, CornuDevice *device)
{
    Source      source = open_file(path);
    json_t     *config = source.file ? read_attribute(source.file, "model_config", true) : NULL;
    json_t     *training = config ? read_attribute(source.file, "training_config", false) : NULL;
    json_t     *metadata = training ? read_attribute(source.file, "metadata", false) : NULL;
    char      **version = NULL;
    int64_t     versions = -1;
    CornuModel *model = NULL;
    if (metadata && cornu__hdf5_texts(source.file, "", "keras_version", &version, &versions))
        cornu__null();
    else if (metadata)
        model = make_of_version(config, metadata, training, versions == 1 ? version[0] : NULL,
                                compile, device, NULL, source.file, cornu__keras2_read_weights);
    cornu__hdf5_free_texts(version, versions);
    close_source(&source);
    json_decref(config);
    json_decref(training);
    json_decref(metadata);
    return model;
}

/* ---- Formats ---- */

CornuStatus cornu__keras_check(void)
{
    CORNU__TRY(cornu__hdf5_enter());
    cornu__hdf5_leave();
    return CORNU_OK;
}

const CornuFormat cornu__keras_format = {
    .suffix = ".keras", .save = save, .load = load, .load_weights = load_archive_weights,
    .check = cornu__keras_check, .merges_lora = true,
};

const CornuFormat cornu__keras_weights_format = {
    .suffix = ".weights.h5", .save_weights = save_weights, .load_weights = load_weights,
    .check = cornu__keras_check, .merges_lora = true,
};

const CornuFormat cornu__older_format = {
    .suffix = ".h5", .save = save_older, .load = load_older, .load_weights = load_older_weights,
    .check = cornu__keras_check, .merges_lora = true,
};

const CornuFormat cornu__hdf5_format = {
    .suffix = ".hdf5", .save = save_older, .load = load_older, .load_weights = load_older_weights,
    .check = cornu__keras_check, .merges_lora = true,
};
