/* The batches of fit, evaluate and predict, from data sets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../tensor/tensor_internal.h"
#include "../losses/loss_internal.h"
#include "../model/host_stage_internal.h"
#include "training_internal.h"

CornuArrays cornu__batch_arrays(const CornuModel *model, CornuStepMode mode,
                                const CornuDataLoader *loader, const CornuBatch *batch)
{
    const int   inputs = cornu__model_xs(model, mode);
    const int   all = inputs + cornu__model_ys(model, mode);
    CornuArray  rows = loader->rows_read;
    if (loader->resident) rows.type = cornu_type(CORNU_I64, batch->arrays[0].type.shape.extent[0]);
    return (CornuArrays){
        .resident = loader->resident, .rows = rows,
        .x = batch->arrays, .y = batch->count >= all ? batch->arrays + inputs : NULL,
        .weights = batch->count > all ? batch->arrays + all : NULL,
        .weight_count = batch->count > all ? batch->count - all : 0,
    };
}

CornuStatus cornu__step_of(CornuModel *model, CornuStepMode mode, const CornuDataLoader *loader,
                           CornuStep **step)
{
    const CornuDataset *dataset = loader->dataset;
    CornuArray          arrays[CORNU_MAX_COMPONENTS];
    for (int i = 0; i < cornu_dataset_components(dataset); i++) {
        arrays[i] = cornu_array_from(NULL, cornu__rows_of(cornu_dataset_type(dataset, i),
                                                          cornu_dataset_batch_size(dataset)));
    }
    const CornuBatch  batch = { .arrays = arrays, .count = cornu_dataset_components(dataset) };
    const CornuArrays all = cornu__batch_arrays(model, mode, loader, &batch);
    return cornu__step(model, mode, &all, step);
}

/* ---- Weights by class ---- */

CornuStatus cornu__class_weights(CornuClassWeights *classes, const CornuModel *model,
                                 const char *who, CornuArray weights, CornuType label)
{
    CornuText        text;
    const int        ys = cornu__model_ys(model, CORNU_STEP_TRAIN);
    const CornuLoss *loss = model->losses[0];
    *classes = (CornuClassWeights){ .weights = weights, .who = who,
                                    .label = cornu__model_xs(model, CORNU_STEP_TRAIN),
                                    .type = label,
                                    .numbers = loss && loss->kind && loss->kind->whole_labels,
                                    .weight = cornu_scalar(CORNU_F32) };
    if (ys != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .class_weight is given, but the model has %d "
                           "outputs, expected one; .sample_weights_by_name takes the weights of "
                           "samples for any of them", who, ys);
    if (weights.type.shape.rank != 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .class_weight is %s, expected (classes)", who,
                           cornu_shape_print(&text, weights.type.shape));
    if (classes->numbers) {
        CornuShape *shape = &classes->weight.shape;
        *shape = label.shape;
        if (shape->rank > 0 && shape->extent[shape->rank - 1] == 1)
            shape->extent[--shape->rank] = 0;
    } else if (label.shape.rank > 1) {
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .class_weight is given, but a label is %s, "
                           "expected a class, () or (1), or one of C, (C), or a loss of class "
                           "numbers", who, cornu_shape_print(&text, label.shape));
    }
    return CORNU_OK;
}

/* The class of the label whose C elements begin with element `first`, the largest of them. */
static CornuStatus one_of(const CornuClassWeights *classes, CornuArray labels, int64_t first,
                          double *label)
{
    const int64_t each = cornu_type_count(classes->type);
    const bool    whole = !cornu_dtype_is_float(labels.type.dtype);
    int64_t       greatest = 0;
    for (int64_t c = 0; c < each; c++) {
        const double value = cornu_array_get(labels, first + c);
        if (whole && value != 0.0 && value != 1.0)
            return cornu__fail(CORNU_ERR_VALUE, "%s: .class_weight is given, and a label of %lld "
                               "integers has a %g, expected one of %lld classes, as 0s and a 1; "
                               "class numbers need a loss of such, "
                               "sparse_categorical_crossentropy", classes->who, (long long)each,
                               value, (long long)each);
        if (value > cornu_array_get(labels, first + greatest)) greatest = c;
    }
    *label = (double)greatest;
    return CORNU_OK;
}

/* As class_weight_to_sample_weights in keras/src/trainers/data_adapters/data_adapter_utils.py, but
 * that Keras takes the place of the largest also of several class numbers. */
CornuStatus cornu__weigh_classes(const CornuClassWeights *classes, CornuArray labels, int64_t count,
                                 float *weights)
{
    const int64_t each = classes->numbers ? 1 : cornu_type_count(classes->type);
    for (int64_t i = 0; i < count; i++) {
        double label = rint(cornu_array_get(labels, i * each));
        if (each > 1) CORNU__TRY(one_of(classes, labels, i * each, &label));
        const bool listed = label >= 0.0 && label < (double)classes->weights.type.shape.extent[0];
        weights[i] = listed ? (float)cornu_array_get(classes->weights, (int64_t)label) : 1.0f;
    }
    return CORNU_OK;
}

/* A CornuMapFunction: appends the sample weights to the element. */
static CornuStatus add_weights(void *context, CornuSample sample, const CornuArray *in,
                               const CornuArray *out)
{
    const CornuClassWeights *classes = context;
    const int                weights = classes->label + 1;
    (void)sample;
    for (int c = 0; c < weights; c++) memcpy(out[c].data, in[c].data, cornu_type_bytes(in[c].type));
    return cornu__weigh_classes(classes, in[classes->label], cornu_type_count(out[weights].type),
                                out[weights].data);
}

CornuDataset *cornu__add_class_weights(CornuClassWeights *classes, const CornuModel *model,
                                       const char *who, CornuArray weights, CornuDataset *data)
{
    CornuType types[CORNU_MAX_COMPONENTS];
    if (!data) return NULL;
    const int   label = cornu__model_xs(model, CORNU_STEP_TRAIN);
    const int   components = cornu_dataset_components(data);
    CornuStatus status = cornu__class_weights(classes, model, who, weights,
                                              cornu_dataset_type(data, label));
    if (!status && components != label + 1)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: both sample weights and .class_weight are "
                             "given, expected one", who);
    if (!status && components == CORNU_MAX_COMPONENTS)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data have %d components, expected "
                             "%d at most with .class_weight", who, components,
                             CORNU_MAX_COMPONENTS - 1);
    if (status) {
        cornu_dataset_free(data);
        return cornu__null();
    }
    for (int c = 0; c < components; c++) types[c] = cornu_dataset_type(data, c);
    types[components] = classes->weight;
    data = cornu_dataset_map(data, add_weights, classes, types, components + 1);
    if (data) data->by_row = true;   /* also where it maps batches */
    return data;
}

int64_t cornu__min_batch_rows(const CornuModel *model)
{
    if (cornu_model_batch_size(model) != CORNU_NONE) return INT32_MAX;   /* the caller's */
    return model->device && !cornu__model_cuts_batches(model)
         ? cornu_device_shards(model->device) : 1;
}

/* Batches and prefetches the data set unless it is batched already. Takes it. */
static CornuDataset *batched(const CornuDataLoaderConfig *config)
{
    CornuDataset *dataset = config->dataset;
    if (!dataset) return NULL;
    if (cornu_dataset_batch_size(dataset) > 0) {
        if (config->batch_size == 0) return dataset;
        cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, but the data set is batched already",
                         config->who, config->batch_name, (long long)config->batch_size);
        cornu_dataset_free(dataset);
        return NULL;
    }
    int64_t size = config->batch_size ? config->batch_size : config->default_batch_size;
    if (size < 1 || size > INT32_MAX) {
        cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 1 to %d", config->who,
                         config->batch_name, (long long)size, INT32_MAX);
        cornu_dataset_free(dataset);
        return NULL;
    }
    /* No memory for rows beyond the end of the data. */
    const int64_t count = cornu_dataset_count(dataset), least = config->min_batch_rows;
    int64_t       rows = config->few_sizes || count < least ? least : count;
    while (rows < count && rows < size) rows *= 2;
    if (count > 0 && size > rows) size = rows;
    if (config->shuffle && count >= 0)
        dataset = cornu_dataset_shuffle(dataset, config->seed);
    return cornu_dataset_prefetch(cornu_dataset_batch(dataset, size, false), 2);
}

/* The rows of all batches, if they are those of a data set with a known count. */
static int64_t rows_of(const CornuDataset *batches)
{
    const CornuDataset *each = batches;
    const int64_t       size = cornu_dataset_batch_size(batches);
    while (each && cornu_dataset_batch_size(each) > 0)
        each = each->source_count == 1 ? each->source : NULL;
    const int64_t rows = each ? cornu_dataset_count(each) : -1;
    const int64_t count = cornu_dataset_count(batches);
    if (rows < 0 || count < 0) return -1;
    return count == (rows + size - 1) / size ? rows : count == rows / size ? count * size : -1;
}

/* That which the data set's elements come from, if it is on the device and only indices are mapped
 * after it; else NULL. */
static CornuResident *find_resident(const CornuDataset *dataset, const CornuDevice *device)
{
    while (dataset->kind->by_index) dataset = dataset->source;
    CornuResident *resident = dataset->kind->on_device ? dataset->own : NULL;
    return resident && resident->device == device ? resident : NULL;
}

/* The same pipeline of the numbers of its rows, i64. */
static CornuDataset *numbers_of(const CornuDataset *dataset)
{
    return dataset->kind->on_device
         ? cornu_dataset_range(0, cornu_dataset_count(dataset), 1)
         : cornu__dataset_derive_as(numbers_of(dataset->source), dataset);
}

/* An iterator over the batches, or over the numbers of their rows on the device. */
static CornuStatus begin(CornuDataLoader *loader, const CornuDataLoaderConfig *config)
{
    CornuDataset *read = loader->dataset;
    if (config->on_device) loader->resident = find_resident(read, config->device);
    for (int c = 0; loader->resident && c < read->components; c++)
        loader->arrays[c] = cornu_array_from(NULL, read->type[c]);
    if (loader->resident) read = numbers_of(read);
    loader->iterator = read ? cornu_iterator_begin_for(read, 0, config->device) : NULL;
    if (loader->resident) {
        cornu_dataset_free(read);
        cornu__log(CORNU_LOG_INFO, "%s: steps take rows from the device's memory", config->who);
    }
    return loader->iterator ? CORNU_OK : cornu_error_take();
}

CornuStatus cornu__data_loader_open(CornuDataLoader *loader, const CornuDataLoaderConfig *config)
{
    *loader = (CornuDataLoader){ .dataset = batched(config) };
    if (!loader->dataset) return cornu_error_take();
    loader->recent = cornu__allocate(CORNU__RECENT_BATCHES, sizeof *loader->recent);
    if (!loader->recent) {
        cornu__data_loader_close(loader);
        return CORNU_ERR_MEMORY;
    }
    loader->batches = cornu_dataset_count(loader->dataset);
    loader->rows = rows_of(loader->dataset);
    loader->steps = config->steps ? config->steps
                  : loader->batches == CORNU_UNKNOWN ? CORNU__UNTIL_END : loader->batches;
    CornuStatus status = CORNU_OK;
    if (loader->batches == 0)
        status = cornu__fail(CORNU_ERR_DATA, "%s: the data set is empty", config->who);
    else if (loader->steps == CORNU_NONE)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data set is infinite, so .%s is "
                             "required", config->who, config->steps_name);
    else if (loader->steps < 1)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected at least 1",
                             config->who, config->steps_name, (long long)loader->steps);
    if (!status) status = begin(loader, config);
    if (status) cornu__data_loader_close(loader);
    else if (loader->steps == CORNU__UNTIL_END)
        cornu__log(CORNU_LOG_INFO, "%s: batches of %lld rows until the data end",
                   config->who, (long long)cornu_dataset_batch_size(loader->dataset));
    else cornu__log(CORNU_LOG_INFO, "%s: %lld steps with batches of %lld rows", config->who,
                    (long long)loader->steps,
                    (long long)cornu_dataset_batch_size(loader->dataset));
    return status;
}

/* Whether the rows of the model depend on each other, for such data. */
static CornuStatus find_rows(CornuModel *model, const CornuDataset *data)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    CornuType    types[CORNU_MAX_MODEL_TENSORS];
    const int    count = model->base.built ? cornu__model_fed(model, fed) : 0;
    for (int i = 0; i < count; i++) types[i] = cornu__rows_of(cornu_dataset_type(data, i), 1);
    return cornu__model_rows(model, types);
}

CornuStatus cornu__data_loader_open_for(CornuModel *model, CornuDataLoader *loader,
                                        const CornuDataLoaderConfig *config)
{
    CornuDataLoaderConfig own = *config;
    if (!config->dataset) return cornu_error_take();
    const bool        free = cornu__model_has_own_data(model) && !config->predicts;
    const CornuStatus status = free ? CORNU_OK : find_rows(model, config->dataset);
    if (status) {
        cornu_dataset_free(config->dataset);
        return status;
    }
    const int64_t count = cornu_dataset_count(config->dataset);
    const bool    once = !free && cornu__model_runs_once(model);
    if (once && model->device &&
        cornu_process_count(cornu_device_processes(model->device)) > 1) {
        cornu_dataset_free(config->dataset);
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: the rows of %s depend on each other: %s. "
                           "Expected one process, each of several has a part of the rows",
                           config->who, model->base.name, model->dependence.text);
    }
    own.on_device = !free && !once && !model->pipeline && !cornu__model_is_function(model);
    if (once && config->takes_all) {
        own.few_sizes = false;
        own.min_batch_rows = 1;
        if (count > 0) own.default_batch_size = count;
    }
    if (model->batch_size) own.default_batch_size = model->batch_size;
    CORNU__TRY(cornu__data_loader_open(loader, &own));
    return free ? CORNU_OK
                : cornu__model_refuse_cuts(model, own.who, cornu__data_loader_steps(loader));
}

void cornu__data_loader_close(CornuDataLoader *loader)
{
    cornu_iterator_free(loader->iterator);
    cornu_dataset_free(loader->dataset);
    cornu__release(loader->recent);
    *loader = (CornuDataLoader){ 0 };
}

int64_t cornu__data_loader_steps(const CornuDataLoader *loader)
{
    return loader->steps == CORNU__UNTIL_END ? -1 : loader->steps;
}

const char *cornu__of_steps(CornuText *to, const CornuDataLoader *loader)
{
    to->text[0] = '\0';
    if (loader->steps != CORNU__UNTIL_END)
        snprintf(to->text, sizeof to->text, " of %lld", (long long)loader->steps);
    return to->text;
}

void cornu__data_loader_end_epoch(CornuDataLoader *loader)
{
    if (loader->ended || (loader->batches >= 0 && loader->at.index >= loader->batches))
        loader->at = (CornuSample){ loader->at.epoch + 1, 0 };
    loader->ended = false;
}

void cornu__data_loader_skip_epochs(CornuDataLoader *loader, int64_t epochs)
{
    for (int64_t i = 0; i < epochs; i++) {
        loader->ended = loader->steps == CORNU__UNTIL_END;
        if (!loader->ended) loader->at.index += loader->steps;
        cornu__data_loader_end_epoch(loader);
    }
}

CornuStatus cornu__data_loader_begin_epoch(CornuDataLoader *loader)
{
    loader->infeed = (CornuInfeed){ 0 };
    loader->fed = 0;
    return cornu_iterator_seek(loader->iterator, loader->at);
}

CornuStatus cornu__data_loader_next(CornuDataLoader *loader, const CornuBatch **batch)
{
    const double begin = cornu__seconds();
    CORNU__TRY(cornu_iterator_next(loader->iterator, batch));
    if (!*batch && loader->batches == CORNU_UNKNOWN) {
        if (loader->at.index == 0)
            return cornu__fail(CORNU_ERR_DATA, "the data set ended before its first batch");
        loader->ended = true;
        /* The previous epoch had taken all. One that lasts until the end was resumed there. */
        if (loader->infeed.batches == 0 && loader->steps != CORNU__UNTIL_END) {
            cornu__data_loader_end_epoch(loader);
            CORNU__TRY(cornu_iterator_seek(loader->iterator, loader->at));
            return cornu__data_loader_next(loader, batch);
        }
    }
    loader->infeed.wait_seconds += cornu__seconds() - begin;
    if (*batch) loader->at.index++;
    if (*batch && loader->resident) {
        loader->rows_read = (*batch)->arrays[0];
        loader->batch = (CornuBatch){ loader->arrays, cornu_dataset_components(loader->dataset),
                                      (*batch)->valid, (*batch)->sample };
        *batch = &loader->batch;
    }
    return CORNU_OK;
}

int64_t cornu__execution_end(const CornuModel *model, const CornuDataLoader *loader, int64_t first)
{
    const int64_t steps = model->steps_per_execution;
    return steps < loader->steps - first ? first + steps : loader->steps;
}

CornuStatus cornu__data_loader_feed(CornuDataLoader *loader, CornuStep *step,
                                    const CornuArrays *arrays, int64_t valid)
{
    const double begin = cornu__seconds();
    step->ahead = loader->fed;
    CORNU__TRY(cornu__step_feed(step, arrays, valid));
    loader->fed += valid;
    loader->infeed.copy_seconds += cornu__seconds() - begin;
    loader->infeed.bytes += step->fed_bytes;
    loader->infeed.batches++;
    return CORNU_OK;
}

/* Names the element of the data set, if the error just recorded is about a value of a batch that
 * was run by this loader. */
static CornuStatus name_element(const CornuDataLoader *loader, CornuStatus status)
{
    const CornuFault fault = cornu__error_fault();
    if (status != CORNU_ERR_VALUE || fault.runs_ago >= loader->infeed.batches ||
        fault.runs_ago >= CORNU__RECENT_BATCHES)
        return status;
    const int64_t           number = loader->infeed.batches - 1 - fault.runs_ago;
    const CornuRecentBatch *batch = &loader->recent[number % CORNU__RECENT_BATCHES];
    if (fault.count < batch->rows || fault.count % batch->rows) return status;
    /* In sequences a row has several values. */
    const int64_t        each = fault.count / batch->rows;
    const CornuShardRows split = cornu__shard_rows(batch->shards, batch->rows, batch->valid);
    const int            shard = batch->device ? cornu__part_of_shard(batch->device, fault.shard)
                                               : fault.shard;
    const int64_t        row = cornu__shard_row(&split, shard, fault.index / each);
    const int64_t        origin = cornu__dataset_origin(loader->dataset, batch->at, row);
    if (origin < 0) return status;
    return cornu__fail(status, "%s; it is in element %lld of the data set, row %lld of batch %lld",
                       cornu_error_message(), (long long)origin, (long long)row,
                       (long long)batch->at.index);
}

CornuStatus cornu__data_loader_run(CornuDataLoader *loader, CornuStep *step, CornuSample at,
                                   CornuArray *to)
{
    loader->recent[(loader->infeed.batches - 1) % CORNU__RECENT_BATCHES] =
        (CornuRecentBatch){ at, step->shards, step->rows, step->fed_count,
                            step->pipeline ? NULL : cornu_graph_device(step->graph) };
    return name_element(loader, cornu__step_run(step, to));
}

CornuStatus cornu__data_loader_wait(const CornuDataLoader *loader, CornuModel *model)
{
    return name_element(loader, cornu_device_wait(model->device));
}
