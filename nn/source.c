/* Sources of batches: arrays and data sets of any kind, as fit and evaluate see them. */
#include "loop_internal.h"

CornuDataset *cornu__data(const char *who, CornuDataset *data, CornuArray x, CornuArray y,
                          int wants)
{
    if (cornu_error_pending()) return NULL;
    if (data && (x.data || y.data))
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "%s: both a data set and arrays are given, expected one", who);
    if (!data && !x.data)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: neither a data set nor arrays are given",
                                who);
    if (!data && wants == 2 && !y.data)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: x is given without y", who);
    if (!data) return cornu__dataset_borrow_arrays((CornuArray[]){ x, y }, wants);
    const int components = cornu_dataset_components(data);
    if (components != 2 && components != wants)
        return cornu__fail_null(components > 2 ? CORNU_ERR_UNSUPPORTED : CORNU_ERR_ARGUMENT,
                                "%s: an element of the data set has %d components, expected %s%s",
                                who, components,
                                wants == 2 ? "2: x and y" : "1 or 2: x, or x and y",
                                components > 2 ? "; sample weights are not available in this "
                                                 "version" : "");
    return cornu_dataset_retain(data);
}

/* Batches of what is not batched yet. Takes the data set. */
static CornuDataset *batched(const CornuSourceConfig *config)
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
    const int64_t size = config->batch_size ? config->batch_size : config->usual_batch_size;
    if (size < 1 || size > INT32_MAX) {
        cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected 1 to %d", config->who,
                         config->batch_name, (long long)size, INT32_MAX);
        cornu_dataset_free(dataset);
        return NULL;
    }
    if (config->shuffle && cornu_dataset_count(dataset) != CORNU_NONE)
        dataset = cornu_dataset_shuffle(dataset, config->seed);
    return cornu_dataset_prefetch(cornu_dataset_batch(dataset, size, false), 2);
}

CornuStatus cornu__source_open(CornuSource *source, const CornuSourceConfig *config)
{
    *source = (CornuSource){ .dataset = batched(config) };
    if (!source->dataset) return cornu_error_take();
    source->batches = cornu_dataset_count(source->dataset);
    source->steps = config->steps ? config->steps : source->batches;
    CornuStatus status = CORNU_OK;
    if (source->batches == 0)
        status = cornu__fail(CORNU_ERR_DATA, "%s: the data set is empty", config->who);
    else if (source->steps == CORNU_NONE)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data set is without end, so .%s is "
                             "required", config->who, config->steps_name);
    else if (source->steps < 1)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %lld, expected at least 1",
                             config->who, config->steps_name, (long long)source->steps);
    if (!status) {
        source->iterator = cornu_iterator_begin(source->dataset, 0);
        if (!source->iterator) status = cornu_error_take();
    }
    if (status) cornu__source_close(source);
    return status;
}

void cornu__source_close(CornuSource *source)
{
    cornu_iterator_free(source->iterator);
    cornu_dataset_free(source->dataset);
    *source = (CornuSource){ 0 };
}

void cornu__source_turn(CornuSource *source)
{
    if (source->batches != CORNU_NONE && source->at.index >= source->batches)
        source->at = (CornuSample){ source->at.epoch + 1, 0 };
}

void cornu__source_skip(CornuSource *source, int64_t epochs)
{
    for (int64_t i = 0; i < epochs; i++) {
        source->at.index += source->steps;
        cornu__source_turn(source);
    }
}

CornuStatus cornu__source_begin(CornuSource *source)
{
    source->infeed = (CornuInfeed){ 0 };
    return cornu_iterator_seek(source->iterator, source->at);
}

CornuStatus cornu__source_next(CornuSource *source, const CornuBatch **batch)
{
    const double begin = cornu__seconds();
    CORNU__TRY(cornu_iterator_next(source->iterator, batch));
    source->infeed.wait_seconds += cornu__seconds() - begin;
    if (*batch) source->at.index++;
    return CORNU_OK;
}

int64_t cornu__execution_end(const CornuModel *model, const CornuSource *source, int64_t first)
{
    const int64_t steps = model->steps_per_execution;
    return steps < source->steps - first ? first + steps : source->steps;
}

CornuStatus cornu__source_feed(CornuSource *source, CornuStep *step, const CornuBatch *batch)
{
    const double begin = cornu__seconds();
    CORNU__TRY(cornu__step_feed(step, batch->arrays[0], &batch->arrays[1], batch->valid));
    source->infeed.copy_seconds += cornu__seconds() - begin;
    source->infeed.bytes += step->fed_bytes;
    source->infeed.batches++;
    return CORNU_OK;
}
