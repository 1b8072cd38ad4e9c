/* What all processes of a group must have in common before they train. */
#include "agree_internal.h"

#include <stdio.h>
#include <zlib.h>

#include "../../device/memory_internal.h"
#include "../../device/processes/processes_internal.h"

/* Adds the elements of a variable that every process has. */
static CornuStatus add_variable(const CornuVariable *variable, uLong *sum)
{
    const CornuType type = cornu_variable_host_type(variable);
    CornuArray      host = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!host.data) return CORNU_ERR_MEMORY;
    const CornuStatus status = cornu_variable_read(variable, host);
    if (!status) *sum = crc32_z(*sum, host.data, cornu_type_bytes(type));
    cornu__release(host.data);
    return status;
}

static CornuStatus agree_on_weights(CornuProcesses *processes, const CornuModel *model)
{
    char  text[80];
    uLong sum = crc32(0, NULL, 0);
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        CORNU__TRY(add_variable(cornu_model_weight(model, i)->variable, &sum));
    snprintf(text, sizeof text, "of %lld parameters with checksum %08lx",
             (long long)cornu_model_parameters(model), sum);
    return cornu__processes_agree(processes, "the model", text);
}

/* Its settings are in the program, but for those that may change while it trains: its scalars, the
 * learning rate among them. Slots follow from these and the weights. */
static CornuStatus agree_on_optimizer(CornuProcesses *processes, const CornuModel *model)
{
    char   text[160];
    double rate = 0.0;   /* one made of others has none; theirs are among the scalars */
    uLong  sum = crc32(0, NULL, 0);
    if (!model->optimizer->kind->composite)
        CORNU__TRY(cornu_optimizer_learning_rate(model->optimizer, &rate));
    for (int i = 0; i < cornu__model_saved_count(model); i++) {
        const CornuVariable *variable = cornu_model_optimizer_variable(model, i);
        if (cornu_variable_type(variable).shape.rank == 0) CORNU__TRY(add_variable(variable, &sum));
    }
    snprintf(text, sizeof text, "%.60s with learning rate %g and scalars with checksum %08lx",
             cornu_optimizer_name(model->optimizer), rate, sum);
    return cornu__processes_agree(processes, "the optimizer", text);
}

/* Adds the arrays in memory that the data are made from: all rows, or of very many some that are
 * equally far apart. */
static void add_arrays(const CornuDataset *dataset, uLong *sum)
{
    const size_t most = (size_t)256 << 20;
    for (int i = 0; i < dataset->source_count; i++) add_arrays(dataset->sources[i], sum);
    for (int c = 0; cornu__dataset_is_arrays(dataset) && c < dataset->components; c++) {
        const unsigned char *data = dataset->arrays.data[c];
        const size_t         row = dataset->bytes[c], rows = (size_t)dataset->count;
        const size_t         step = row * rows / most + 1;
        if (step == 1) *sum = crc32_z(*sum, data, row * rows);
        else for (size_t i = 0; i < rows; i += step) *sum = crc32_z(*sum, data + i * row, row);
    }
}

static uLong sum_of_arrays(const CornuDataset *dataset)
{
    uLong sum = crc32(0, NULL, 0);
    add_arrays(dataset, &sum);
    return sum;
}

/* Of the first row of the first batch, the middle one and the last, in the order in which rows are
 * drawn: whole batches would be read again by every process. */
static CornuStatus add_some_rows(const CornuDataLoader *loader, uLong *sum)
{
    const int64_t    batches = loader->batches < 1 ? 1 : loader->batches;
    const int64_t    size = cornu_dataset_batch_size(loader->dataset);
    const int64_t    at[] = { 0, (batches - 1) / 2, batches - 1 };
    const CornuShare own = cornu__iterator_set_share(
        loader->iterator, (CornuShare){ .shards = (int)(size < CORNU_MAX_SHARDS ? size : 1),
                                        .count = 1 });
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < 3 && !status && loader->batches != CORNU_UNKNOWN; i++) {
        const CornuBatch *batch;
        status = cornu_iterator_seek(loader->iterator, (CornuSample){ 0, at[i] });
        if (!status) status = cornu_iterator_next(loader->iterator, &batch);
        for (int c = 0; !status && batch && c < batch->count; c++)
            *sum = crc32_z(*sum, batch->arrays[c].data,
                           cornu_type_bytes(batch->arrays[c].type) / (size_t)size);
    }
    cornu__iterator_set_share(loader->iterator, own);
    return status;
}

static CornuStatus agree_on_sum(CornuProcesses *processes, const CornuDataLoader *loader,
                                const char *what, uLong sum)
{
    char text[100];
    snprintf(text, sizeof text, "%lld batches of %lld rows with checksum %08lx",
             (long long)loader->batches, (long long)cornu_dataset_batch_size(loader->dataset), sum);
    return cornu__processes_agree(processes, what, text);
}

CornuStatus cornu__agree_on_data(const CornuModel *model, const CornuDataLoader *loader,
                                 const char *what)
{
    CornuProcesses *processes = cornu_device_processes(model->device);
    if (cornu_process_count(processes) == 1) return CORNU_OK;
    return agree_on_sum(processes, loader, what, sum_of_arrays(loader->dataset));
}

CornuStatus cornu__agree_on_training(const CornuModel *model, const CornuDataLoader *loader,
                                     int64_t epochs)
{
    CornuProcesses *processes = cornu_device_processes(model->device);
    char            text[100];
    if (cornu_process_count(processes) == 1) return CORNU_OK;
    snprintf(text, sizeof text, "%llu", (unsigned long long)model->seed);
    CORNU__TRY(cornu__processes_agree(processes, "the seed", text));
    snprintf(text, sizeof text, "%lld epochs of %lld steps, %lld at a time", (long long)epochs,
             (long long)cornu__data_loader_steps(loader), (long long)model->steps_per_execution);
    CORNU__TRY(cornu__processes_agree(processes, "the training", text));
    uLong sum = sum_of_arrays(loader->dataset);
    CORNU__TRY(add_some_rows(loader, &sum));
    CORNU__TRY(agree_on_sum(processes, loader, "the data", sum));
    CORNU__TRY(agree_on_weights(processes, model));
    return agree_on_optimizer(processes, model);
}

CornuStatus cornu__agree_to_stop(CornuModel *model)
{
    unsigned char stop = model->stop_training;
    CORNU__TRY(cornu__processes_broadcast(cornu_device_processes(model->device),
                                          "whether to stop training", &stop, 1));
    model->stop_training = stop;
    return CORNU_OK;
}

CornuStatus cornu__fail_together(const CornuModel *model, CornuStatus status)
{
    if (status == CORNU_OK || status == CORNU_ERR_INTERRUPTED || !model || !model->device)
        return status;
    return cornu__processes_fail(cornu_device_processes(model->device), status);
}
