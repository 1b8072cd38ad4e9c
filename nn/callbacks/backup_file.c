#include "backup_file_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/processes/processes_internal.h"
#include "../formats/output_internal.h"
#include "../formats/safetensors_internal.h"
#include "../saving/files_internal.h"
#include "../optimizers/optimizer_internal.h"

enum { NAME_SIZE = 160, TRAINING_DEPTH = 1 };

static const char history_name[] = "@history", history_prefix[] = "@history/";

/* ---- What lives on the device ---- */

/* A variable's value in a host array. */
typedef struct {
    char          *name;
    CornuVariable *variable;
    int            number;      /* index among its values */
    bool           any;         /* may be infinite or NaN: a metric's */
    CornuArray     array;
} Value;

typedef struct {
    Value *items;
    int    count, space;
} Values;

static void free_values(Values *values)
{
    for (int i = 0; i < values->count; i++) {
        cornu__release(values->items[i].name);
        cornu__release(values->items[i].array.data);
    }
    cornu__release(values->items);
}

static CornuStatus add_value(Values *values, const char *name, CornuVariable *variable, int number)
{
    const CornuType type = cornu_variable_host_type(variable);
    CORNU__TRY(cornu__reserve(&values->items, &values->space, values->count, 1,
                              sizeof *values->items));
    Value *value = &values->items[values->count++];
    *value = (Value){ .name = cornu__copy_text(name), .variable = variable, .number = number,
                      .array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1),
                                                type) };
    return value->name && value->array.data ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus add_variable(Values *values, const char *name, CornuVariable *variable)
{
    char others[NAME_SIZE + 300];   /* longer than a name of the optimizer's variables */
    CORNU__TRY(add_value(values, name, variable, 0));
    for (int i = 1; i < cornu_variable_value_count(variable); i++) {
        snprintf(others, sizeof others, "@shard/%d/%s", i, name);
        CORNU__TRY(add_value(values, others, variable, i));
    }
    return CORNU_OK;
}

/* Adds each state once, though several layers may share a layer. */
static CornuStatus add_layer_states(Values *values, const CornuLayer *layer, int *number)
{
    char name[NAME_SIZE];
    for (int i = 0; i < CORNU_MAX_LAYER_STATES; i++) {
        CornuVariable *state = layer->states[i];
        bool           known = !state;
        for (int k = 0; k < values->count; k++) known |= values->items[k].variable == state;
        if (known) continue;
        snprintf(name, sizeof name, "@state/%d", (*number)++);
        CORNU__TRY(add_variable(values, name, state));
    }
    for (int i = 0; i < layer->inner_count; i++)
        CORNU__TRY(add_layer_states(values, layer->inner[i], number));
    return CORNU_OK;
}

static CornuStatus list_values(const CornuModel *model, Values *values)
{
    char name[NAME_SIZE];
    int  number = 0;
    *values = (Values){ .count = 0 };
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        CORNU__TRY(add_variable(values, weight->path, weight->variable));
    }
    for (int i = 0; i < cornu__model_saved_count(model); i++) {
        CornuVariable *variable = cornu_model_optimizer_variable(model, i);
        CORNU__TRY(add_variable(values, cornu_variable_name(variable), variable));
    }
    for (int i = 0; i < model->tracked_count; i++) {
        const int first = values->count;
        for (int s = 0; s < model->tracked[i].state_count; s++) {
            snprintf(name, sizeof name, "@metric/%s/%d", model->tracked[i].name, s);
            CORNU__TRY(add_variable(values, name, model->tracked[i].states[s]));
        }
        for (int v = first; v < values->count; v++)
            values->items[v].any = model->tracked[i].metric != NULL;
    }
    return add_layer_states(values, &model->base, &number);
}

/* ---- State on the host ---- */

/* The state of callback i, NULL if it has none. */
static double *numbers_of(const CornuTraining *training, int i, int *count)
{
    CornuCallback *callback = training->callbacks->items[i];
    return callback->state ? callback->state(callback, count) : NULL;
}

/* The arrays of a file under construction; names and data from `first` on are owned. */
typedef struct {
    CornuNamedArray *items;
    int              count, space, first;
} Arrays;

static void free_arrays(Arrays *arrays)
{
    for (int i = arrays->first; i < arrays->count; i++) {
        cornu__release((char *)arrays->items[i].name);
        cornu__release(arrays->items[i].array.data);
    }
    cornu__release(arrays->items);
}

/* Appends an array of this type and name; NULL without memory. */
static CornuNamedArray *add_array(Arrays *arrays, const char *name, CornuType type)
{
    if (cornu__reserve(&arrays->items, &arrays->space, arrays->count, 1, sizeof *arrays->items))
        return NULL;
    CornuNamedArray *array = &arrays->items[arrays->count++];
    *array = (CornuNamedArray){ cornu__copy_text(name),
                                cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1),
                                                 type) };
    return array->name && array->array.data ? array : NULL;
}

static CornuStatus add_history(Arrays *arrays, const CornuHistory *history)
{
    char      name[NAME_SIZE];
    const int epochs = cornu_history_epochs(history);
    if (epochs == 0) return CORNU_OK;
    CornuNamedArray *table = add_array(arrays, history_name, cornu_type(CORNU_I64, epochs, 2));
    if (!table) return CORNU_ERR_MEMORY;
    for (int i = 0; i < epochs; i++) {
        int64_t *row = (int64_t *)table->array.data + 2 * i;
        row[0] = cornu_history_epoch(history, i);
        row[1] = cornu_history_samples(history, i);
    }
    for (int k = 0; k < cornu_history_key_count(history); k++) {
        const char *key = cornu_history_key(history, k);
        snprintf(name, sizeof name, "%s%s", history_prefix, key);
        CornuNamedArray *logs = add_array(arrays, name, cornu_type(CORNU_F64, epochs));
        if (!logs) return CORNU_ERR_MEMORY;
        for (int i = 0; i < epochs; i++)
            ((double *)logs->array.data)[i] = cornu_history_get(history, key, i);
    }
    return CORNU_OK;
}

static CornuStatus arrays_of(const CornuCallbackList *callbacks, int i, CornuArray **arrays,
                             int *count)
{
    CornuCallback *callback = callbacks->items[i];
    *count = 0;
    return callback->arrays ? callback->arrays(callback, callbacks->model, arrays, count)
                            : CORNU_OK;
}

/* The arrays of callback i, whose numbers are called `name`. */
static CornuStatus add_callback_arrays(Arrays *arrays, const CornuCallbackList *callbacks, int i,
                                       const char *name)
{
    char        full[NAME_SIZE + 20];
    CornuArray *from;
    int         count;
    CORNU__TRY(arrays_of(callbacks, i, &from, &count));
    for (int k = 0; k < count; k++) {
        snprintf(full, sizeof full, "%s/%d", name, k);
        CornuNamedArray *array = add_array(arrays, full, from[k].type);
        if (!array) return CORNU_ERR_MEMORY;
        memcpy(array->array.data, from[k].data, cornu_type_bytes(from[k].type));
    }
    return CORNU_OK;
}

static CornuStatus add_callbacks(Arrays *arrays, const CornuTraining *training)
{
    char name[NAME_SIZE];
    for (int i = 0, number = 0; i < training->callbacks->count; i++) {
        int           count = 0;
        const double *numbers = numbers_of(training, i, &count);
        if (!numbers) continue;
        snprintf(name, sizeof name, "@callback/%d", number++);
        CornuNamedArray *array = add_array(arrays, name, cornu_type(CORNU_F64, count));
        if (!array) return CORNU_ERR_MEMORY;
        memcpy(array->array.data, numbers, (size_t)count * sizeof *numbers);
        CORNU__TRY(add_callback_arrays(arrays, training->callbacks, i, name));
    }
    return CORNU_OK;
}

/* ---- Writing ---- */

/* The metadata: the position of the training, and what must not differ. */
typedef struct {
    json_int_t epoch, step, samples, pass, index;
    json_int_t seed, batch_size, batches, steps;
    int        stopped;
} Place;

static Place place_of(const CornuModel *model)
{
    const CornuTraining *training = model->training;
    const CornuDataLoader   *loader = training->loader;
    return (Place){
        .epoch = training->epoch, .step = training->step, .samples = training->samples,
        .pass = loader->at.epoch, .index = loader->at.index, .seed = (json_int_t)model->seed,
        .batch_size = cornu_dataset_batch_size(loader->dataset), .batches = loader->batches,
        .steps = loader->steps, .stopped = model->stop_training,
    };
}

static char *place_text(const CornuModel *model)
{
    const Place p = place_of(model);
    json_t     *json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
                                 "epoch", p.epoch, "step", p.step, "samples", p.samples,
                                 "pass", p.pass, "batch", p.index, "seed", p.seed,
                                 "batch_size", p.batch_size, "batches", p.batches,
                                 "steps_per_epoch", p.steps, "stopped", p.stopped);
    char       *text = cornu__json_text(json);
    json_decref(json);
    return text;
}

static CornuStatus check_finite(const Value *value)
{
    const int64_t count = cornu_type_count(value->array.type);
    bool          finite = true;
    if (value->any || !cornu_dtype_is_float(value->array.type.dtype)) return CORNU_OK;
    if (value->array.type.dtype == CORNU_F32) {
        const float *x = value->array.data;
        for (int64_t i = 0; i < count; i++) finite &= isfinite(x[i]);
    } else {
        for (int64_t i = 0; i < count && finite; i++)
            finite = isfinite(cornu_array_get(value->array, i));
    }
    return finite ? CORNU_OK
                  : cornu__fail(CORNU_ERR_VALUE, "%s holds a number that is not finite",
                                value->name);
}

static CornuStatus read_values(const Values *values, Arrays *arrays)
{
    CORNU__TRY(cornu__reserve(&arrays->items, &arrays->space, 0, values->count,
                              sizeof *arrays->items));
    arrays->first = values->count;
    for (int i = 0; i < values->count; i++) {
        const Value *value = &values->items[i];
        CORNU__TRY(cornu_variable_read_value(value->variable, value->number, value->array));
        CORNU__TRY(check_finite(value));   /* the same on all ranks */
        arrays->items[arrays->count++] = (CornuNamedArray){ value->name, value->array };
    }
    return CORNU_OK;
}

CornuStatus cornu__backup_write(CornuModel *model, const char *settings, const char *path)
{
    Values      values;
    Arrays      arrays = { .count = 0 };
    char       *text = NULL;
    CornuStatus status = cornu__output_settle(cornu_model_device(model), "before the backup",
                                              list_values(model, &values));
    if (!status) status = read_values(&values, &arrays);
    if (!status) status = add_history(&arrays, model->training->history);
    if (!status) status = add_callbacks(&arrays, model->training);
    if (!status && !(text = place_text(model))) status = CORNU_ERR_MEMORY;
    if (!status && cornu__output_writes())
        status = cornu_safetensors_write(path, arrays.items, arrays.count, (CornuMetadata[]){
                                         { "training", text }, { "settings", settings } }, 2);
    free(text);
    free_arrays(&arrays);
    free_values(&values);
    return status;
}

/* ---- Reading ---- */

/* The keys of a header, after its length, are sorted, and "@" sorts before the names in other
 * files. */
bool cornu__backup_recognizes(const char *head, size_t size)
{
    static const char *const firsts[] = { "{\"@callback/", "{\"@history", "{\"@metric/" };
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if (size >= 8 + strlen(firsts[i]) && !memcmp(head + 8, firsts[i], strlen(firsts[i])))
            return true;
    return false;
}

CornuSafetensors *cornu__backup_open(const char *path)
{
    CornuSafetensors *file = cornu_safetensors_open(path);
    if (!file) return cornu__null();
    if (cornu_safetensors_has_checksum(file) && cornu_safetensors_metadata(file, "training"))
        return file;
    cornu_safetensors_close(file);
    return cornu__fail_null(CORNU_ERR_FORMAT, "%s: not a backup, or without a checksum", path);
}

CornuStatus cornu__backup_share(CornuProcesses *processes, CornuSafetensors **file)
{
    if (cornu_process_count(processes) == 1) return CORNU_OK;
    const bool     reads = cornu_process_rank(processes) == 0;
    CornuFileBytes bytes = { .size = 0 };
    if (reads && *file) bytes = cornu__safetensors_bytes(*file);
    uint64_t size = bytes.size;
    CORNU__TRY(cornu__processes_broadcast(processes, "the size of the backup", &size, sizeof size));
    if (!reads) *file = NULL;
    if (size == 0) return CORNU_OK;
    if (!reads) bytes = (CornuFileBytes){ cornu__allocate((size_t)size, 1), (size_t)size };
    CornuStatus status = cornu__processes_check(processes, "memory for the backup",
                                                bytes.bytes ? CORNU_OK : CORNU_ERR_MEMORY);
    if (!status)
        status = cornu__processes_broadcast(processes, "the backup", bytes.bytes, bytes.size);
    if (reads) return status;
    if (!status && !(*file = cornu__safetensors_of(&bytes))) status = cornu_error_take();
    cornu__file_release(&bytes);
    return status;
}

static CornuStatus read_place(const CornuSafetensors *file, Place *p)
{
    const char *text = cornu_safetensors_metadata(file, "training");
    json_t     *json = cornu__json_parse(text, strlen(text), TRAINING_DEPTH);
    if (!json) return cornu__fail_prefix(cornu_error_status(), "training");
    const struct { const char *key; json_int_t *to, least; } numbers[] = {
        { "epoch", &p->epoch, 0 }, { "step", &p->step, 0 }, { "samples", &p->samples, 0 },
        { "pass", &p->pass, 0 }, { "batch", &p->index, 0 }, { "seed", &p->seed, INT64_MIN },
        { "batch_size", &p->batch_size, 1 }, { "batches", &p->batches, CORNU_UNKNOWN },
        { "steps_per_epoch", &p->steps, 1 },
    };
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *value = json_object_get(json, numbers[i].key);
        *numbers[i].to = json_integer_value(value);
        if (!json_is_integer(value) || *numbers[i].to < numbers[i].least) wrong = numbers[i].key;
    }
    p->stopped = json_is_true(json_object_get(json, "stopped"));
    json_decref(json);
    if (!wrong) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "training: \"%s\" is missing or out of range",
                       wrong);
}

/* Other data, or the same in another order, would make another training. */
static CornuStatus check_place(const CornuModel *model, const Place *p)
{
    const Place here = place_of(model);
    const struct { const char *name; json_int_t there, here; } same[] = {
        { "seed", p->seed, here.seed }, { "batch_size", p->batch_size, here.batch_size },
        { "number of batches", p->batches, here.batches },
        { "steps_per_epoch", p->steps, here.steps },
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].there != same[i].here)
            return cornu__fail(CORNU_ERR_ARGUMENT, "it is of a training whose %s is %lld, this "
                               "one's is %lld; expected the same", same[i].name,
                               (long long)same[i].there, (long long)same[i].here);
    const json_int_t samples = p->step > INT64_MAX / 2 / here.batch_size
                                   ? INT64_MAX / 2 : p->step * here.batch_size;
    const struct { const char *name; json_int_t at, most; } places[] = {
        { "epoch", p->epoch, UINT32_MAX }, { "pass", p->pass, UINT32_MAX },
        { "step", p->step, here.steps }, { "samples", p->samples, samples },
        { "batch", p->index, here.batches < 0 ? INT64_MAX / 2 : here.batches },
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].at > places[i].most)
            return cornu__fail(CORNU_ERR_FORMAT, "training: \"%s\" is %lld, expected at most %lld",
                               places[i].name, (long long)places[i].at,
                               (long long)places[i].most);
    return CORNU_OK;
}

static CornuStatus copy_in(const Value *value, const CornuSafetensors *file)
{
    /* The file's arrays may be unaligned. */
    const CornuNamedArray *from = cornu_safetensors_find(file, value->name);
    memcpy(value->array.data, from->array.data, cornu_type_bytes(value->array.type));
    return cornu_variable_write_value(value->variable, value->number, value->array);
}

/* Restores all values or, if one does not fit or the settings differ, none. settings may be
 * NULL. */
static CornuStatus restore_values(const CornuModel *model, const CornuSafetensors *file,
                                  const char *settings)
{
    const char *theirs = cornu_safetensors_metadata(file, "settings");
    Values      values;
    CornuStatus status = list_values(model, &values);
    for (int i = 0; i < values.count && !status; i++)
        status = cornu__check_fit(cornu_safetensors_find(file, values.items[i].name),
                                  values.items[i].name, values.items[i].array.type);
    if (!status && theirs && settings) status = cornu__settings_compare(theirs, settings);
    for (int i = 0; i < values.count && !status; i++) status = copy_in(&values.items[i], file);
    free_values(&values);
    return status;
}

static int64_t whole_at(CornuArray array, int64_t i)
{
    int64_t value;
    memcpy(&value, (const char *)array.data + (size_t)i * sizeof value, sizeof value);
    return value;
}

static double number_at(CornuArray array, int64_t i)
{
    double value;
    memcpy(&value, (const char *)array.data + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* Adds the earlier epochs one by one, as when they ended. */
static CornuStatus restore_history(const CornuTraining *training, const CornuSafetensors *file)
{
    const CornuNamedArray *table = cornu_safetensors_find(file, history_name);
    if (!table) return CORNU_OK;
    const int64_t epochs = table->array.type.shape.extent[0];
    CornuLog     *logs = cornu__allocate((size_t)cornu_safetensors_count(file), sizeof *logs);
    CornuStatus   status = logs ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status)
        status = cornu__check_fit(table, history_name, cornu_type(CORNU_I64, epochs, 2));
    for (int64_t e = 0; e < epochs && !status; e++) {
        CornuLogs of_epoch = { 0, logs };
        for (int i = 0; i < cornu_safetensors_count(file) && !status; i++) {
            const CornuNamedArray *array = cornu_safetensors_at(file, i);
            if (strncmp(array->name, history_prefix, strlen(history_prefix))) continue;
            status = cornu__check_fit(array, array->name, cornu_type(CORNU_F64, epochs));
            const double value = status ? NAN : number_at(array->array, e);
            if (!status && cornu__history_is_value(value))
                logs[of_epoch.count++] = (CornuLog){ array->name + strlen(history_prefix), value };
        }
        if (!status)
            status = cornu__history_add(training->history, whole_at(table->array, 2 * e),
                                        &of_epoch, NAN, whole_at(table->array, 2 * e + 1),
                                        &(CornuInfeed){ 0 });
    }
    cornu__release(logs);
    return status;
}

static CornuStatus restore_callback_arrays(const CornuCallbackList *callbacks, int i,
                                           const char *name, const CornuSafetensors *file)
{
    char        full[NAME_SIZE + 20];
    CornuArray *to;
    int         count;
    CORNU__TRY(arrays_of(callbacks, i, &to, &count));
    for (int k = 0; k < count; k++) {
        snprintf(full, sizeof full, "%s/%d", name, k);
        const CornuNamedArray *array = cornu_safetensors_find(file, full);
        CORNU__TRY(cornu__check_fit(array, full, to[k].type));
        memcpy(to[k].data, array->array.data, cornu_type_bytes(to[k].type));
    }
    return CORNU_OK;
}

static CornuStatus restore_callbacks(const CornuTraining *training, const CornuSafetensors *file)
{
    char name[NAME_SIZE];
    for (int i = 0, number = 0; i < training->callbacks->count; i++) {
        int     count = 0;
        double *numbers = numbers_of(training, i, &count);
        if (!numbers) continue;
        snprintf(name, sizeof name, "@callback/%d", number++);
        const CornuNamedArray *array = cornu_safetensors_find(file, name);
        CORNU__TRY(cornu__check_fit(array, name, cornu_type(CORNU_F64, count)));
        memcpy(numbers, array->array.data, (size_t)count * sizeof *numbers);
        CORNU__TRY(restore_callback_arrays(training->callbacks, i, name, file));
    }
    return CORNU_OK;
}

static void set_position(CornuTraining *training, const Place *place)
{
    training->epoch = place->epoch;
    training->step = place->step;
    training->samples = place->samples;
    training->loader->at = (CornuSample){ place->pass, place->index };
    training->stopped = place->stopped;
}

CornuStatus cornu__backup_restore(CornuModel *model, const CornuSafetensors *file,
                                  const char *settings, bool *compared)
{
    CornuTraining *training = model->training;
    CornuStep     *step;
    Place          place;
    CORNU__TRY(read_place(file, &place));
    CORNU__TRY(check_place(model, &place));
    CORNU__TRY(cornu__training_prepare(model, &step));
    CORNU__TRY(restore_values(model, file, settings));
    CORNU__TRY(restore_history(training, file));
    CORNU__TRY(restore_callbacks(training, file));
    set_position(training, &place);
    *compared = cornu_safetensors_metadata(file, "settings") != NULL;
    return CORNU_OK;
}

CornuStatus cornu__backup_continue(CornuModel *model, const CornuSafetensors *file,
                                   bool *same_data)
{
    CornuTraining *training = model->training;
    const Place    here = place_of(model);
    CornuStep     *step;
    Place          place;
    CORNU__TRY(read_place(file, &place));
    CORNU__TRY(cornu__training_prepare(model, &step));
    CORNU__TRY(restore_values(model, file, NULL));
    if (cornu_safetensors_find(file, "@callback/0"))   /* else those with a state are new */
        CORNU__TRY(restore_callbacks(training, file));
    *same_data = place.seed == here.seed && place.batch_size == here.batch_size &&
                 place.batches == here.batches && place.pass < UINT32_MAX &&
                 place.index <= INT64_MAX / 2;
    if (!*same_data || (here.batches >= 0 && place.index >= here.batches)) {
        place.pass = *same_data ? place.pass + 1 : 0;
        place.index = 0;
    }
    set_position(training, &place);
    training->epoch = 0;
    training->stopped = false;
    return CORNU_OK;
}
