#include "to_device.h"

#include <stdatomic.h>

#include "../../device/memory_internal.h"
#include "../../tensor/ops.h"
#include "training_internal.h"

typedef struct {
    CornuResident       base;
    const CornuDataset *rows;     /* the elements in memory, arrays */
    CornuVariable      *tables[CORNU_MAX_COMPONENTS]; /* (rows, values of one), by component */
    bool                are_classes[CORNU_MAX_COMPONENTS];   /* has been checked */
} Resident;

static CornuStatus row_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    return cornu__stage_fetch(stage->source, at, to, valid);
}

static void free_resident(CornuDataset *dataset)
{
    Resident *resident = dataset->own;
    for (int c = 0; resident && c < dataset->components; c++)
        cornu_variable_free(resident->tables[c]);
    cornu__release(resident);
}

static const CornuDatasetKind resident_kind = { .name = "to_device", .fetch = row_fetch,
                                                .free = free_resident, .on_device = true };

/* ---- Its rows in steps ---- */

static CornuType table_type(const CornuDataset *rows, int component)
{
    return cornu_type(rows->type[component].dtype, rows->count,
                      cornu_type_count(rows->type[component]));
}

static CornuTensor *take_rows(const CornuResident *self, CornuGraph *graph, int component,
                              CornuTensor *numbers, CornuType type)
{
    CornuTensor *table = cornu_read(graph, ((const Resident *)self)->tables[component]);
    return cornu_op_reshape(cornu_op_gather(table, numbers), type.shape);
}

static CornuStatus check_classes(CornuResident *self, int component)
{
    Resident           *resident = (Resident *)self;
    const CornuDataset *rows = resident->rows;
    if (resident->are_classes[component]) return CORNU_OK;
    const CornuArray labels = cornu_array_from(rows->arrays.data[component],
                                               table_type(rows, component));
    CORNU__TRY(cornu__check_classes(labels, 0, rows->count));
    resident->are_classes[component] = true;
    return CORNU_OK;
}

/* ---- To the device ---- */

static CornuStatus check_source(const CornuDataset *source)
{
    if (source->batch_size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "to_device: the data set is batched; to_device "
                           "before batch");
    if (source->count < 1 || source->count > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "to_device: the number of elements is %lld, "
                           "expected 1 to %d (-1: endless, -2: not known)",
                           (long long)source->count, INT32_MAX);
    for (int c = 0; c < source->components; c++)
        if (source->type[c].dtype == CORNU_STRING)
            return cornu__fail(CORNU_ERR_DTYPE, "to_device: component %d is of strings, expected "
                               "numbers", c);
    return CORNU_OK;
}

static CornuStatus fill_tables(Resident *resident)
{
    const CornuDataset *rows = resident->rows;
    for (int c = 0; c < rows->components; c++) {
        const CornuType type = table_type(rows, c);
        resident->tables[c] = cornu_variable_create(.device = resident->base.device, .type = type,
                                                    .name = "data");
        if (!resident->tables[c]) return cornu_error_take();
        CORNU__TRY(cornu_variable_write(resident->tables[c],
                                        cornu_array_from(rows->arrays.data[c], type)));
    }
    return CORNU_OK;
}

CornuDataset *cornu_dataset_to_device(CornuDataset *source, CornuDevice *device)
{
    static atomic_uint_least64_t last_id;
    if (source && !cornu_error_pending() &&
        (!device ? cornu__fail_absent("to_device: the device") : check_source(source))) {
        cornu_dataset_free(source);
        return cornu__null();
    }
    CornuDataset *rows = source && !cornu__dataset_is_arrays(source)
                       ? cornu__dataset_compute(source) : source;
    CornuDataset *dataset = cornu__dataset_derive(rows, &resident_kind, "to_device");
    if (!dataset) return NULL;
    Resident *resident = dataset->own = cornu__allocate(1, sizeof *resident);
    if (!resident) return cornu__dataset_abandon(dataset);
    resident->base = (CornuResident){ atomic_fetch_add(&last_id, 1) + 1, device, take_rows,
                                      check_classes };
    resident->rows = rows;
    if (!cornu__fail_prefix(fill_tables(resident), "to_device")) return dataset;
    return cornu__dataset_abandon(dataset);
}
