/* Rows of a table as a data set. */
#include <string.h>

#include "../../device/memory_internal.h"
#include "../pipeline/dataset_internal.h"
#include "table_dataset.h"
#include "table_internal.h"

typedef struct {
    CornuTable          *table;      /* with a reference of its own */
    CornuTableTakeConfig take[CORNU_MAX_COMPONENTS];
    int                 *chosen[CORNU_MAX_COMPONENTS];   /* owned */
    int                  count[CORNU_MAX_COMPONENTS];
    int                  components;
} Rows;

static CornuStatus rows_open(CornuStage *stage)
{
    const Rows     *rows = stage->dataset->own;
    CornuTableRows *reader = stage->own = cornu__allocate(1, sizeof *reader);
    return reader ? cornu__table_rows_open(reader, rows->table) : CORNU_ERR_MEMORY;
}

static void rows_close(CornuStage *stage)
{
    if (stage->own) cornu__table_rows_close(stage->own);
    cornu__release(stage->own);
}

static CornuStatus rows_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    const Rows         *rows = dataset->own;
    CornuTableRows     *reader = stage->own;
    CORNU__TRY(cornu__table_row(reader, at.index));
    for (int c = 0; c < rows->components; c++) {
        memset(to[c], 0, dataset->bytes[c]);
        CORNU__TRY(cornu__table_put(&rows->take[c], rows->table, rows->chosen[c], rows->count[c],
                                    at.index, reader->value,
                                    cornu_array_from(to[c], dataset->type[c]), 0));
    }
    *valid = 1;
    return CORNU_OK;
}

static void rows_free(CornuDataset *dataset)
{
    Rows *rows = dataset->own;
    if (!rows) return;
    for (int c = 0; c < rows->components; c++) cornu__release(rows->chosen[c]);
    cornu_table_free(rows->table);
    cornu__release(rows);
}

static const CornuDatasetKind rows_kind = {
    .name = "table rows",
    .fetch = rows_fetch, .open = rows_open, .close = rows_close, .free = rows_free
};

/* ---- Creation ---- */

static CornuStatus add_component(CornuDataset *dataset, const CornuTableTakeConfig *take)
{
    Rows       *rows = dataset->own;
    const int   c = rows->components;
    CornuTable *table = rows->table;
    if (take->dtype != CORNU_F32 && take->dtype != CORNU_I32)
        return cornu__fail(CORNU_ERR_DTYPE, "%s: .dtype of component %d is %s, expected f32 or i32",
                           table->name, c, cornu_dtype_name(take->dtype));
    rows->chosen[c] = cornu__table_choose(take, table, &rows->count[c]);
    if (!rows->chosen[c]) return cornu_error_status();
    rows->components++;
    rows->take[c] = (CornuTableTakeConfig){ .dtype = take->dtype, .one_hot = take->one_hot };
    dataset->type[c] = cornu_type(take->dtype, cornu__table_width(take, table, rows->chosen[c],
                                                                  rows->count[c]));
    dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
    dataset->components = rows->components;
    return cornu__fail_prefix(cornu__check_memory(dataset->bytes[c]), table->name);
}

CornuDataset *cornu_table_dataset(CornuTable *table, const CornuTableTakeConfig *components,
                                  int count)
{
    if (cornu__refused()) return NULL;
    if (!table || !components) {
        cornu__fail_absent("cornu_table_dataset: %s", table ? "components" : "table");
        return cornu__null();
    }
    if (count < 1 || count > CORNU_MAX_COMPONENTS || !table->rows)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d components of %lld rows, expected 1 to "
                                "%d and at least a row", table->name, count,
                                (long long)table->rows, CORNU_MAX_COMPONENTS);
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &rows_kind;
    dataset->count = table->rows;
    Rows *rows = dataset->own = cornu__allocate(1, sizeof *rows);
    CornuStatus status = rows ? CORNU_OK : CORNU_ERR_MEMORY;
    if (rows) {
        atomic_fetch_add(&table->owners, 1);
        rows->table = table;
    }
    for (int c = 0; c < count && !status; c++) status = add_component(dataset, &components[c]);
    if (!status) return dataset;
    cornu_dataset_free(dataset);
    return cornu__null();
}
