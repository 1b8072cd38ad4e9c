/* Data in Parquet files: rows of numbers, in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

typedef struct {
    int     target;         /* component; -1: none */
    int     components;
    bool    whole;          /* the target's are whole numbers: classes, perhaps */
    float  *x;              /* owned until they are all there, as y */
    void   *y;
    int64_t rows, space;
} Table;

static CornuStatus find_target(Table *table, const CornuDataset *dataset, const char *path,
                               const char *target)
{
    char   names[400] = "";
    size_t used = 0;
    table->components = cornu_dataset_components(dataset);
    table->target = -1;
    for (int c = 0; c < table->components; c++) {
        const char     *name = cornu_arrow_column(dataset, c);
        const CornuType type = cornu_dataset_type(dataset, c);
        CornuText       text;
        if (type.shape.rank)
            return cornu_error_set(CORNU_ERR_SHAPE, "%s: column %.80s is rows of %s, expected one "
                                   "number in a row", path, name ? name : "?",
                                   cornu_type_print(&text, type));
        if (target && name && !strcmp(name, target)) table->target = c;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", c ? ", " : "",
                                     name ? name : "?");
    }
    if (target && table->target < 0)
        return cornu_error_set(CORNU_ERR_DATA, "%s: no column %s, expected one of %s", path, target,
                               names);
    if (target)
        table->whole = !cornu_dtype_is_float(cornu_dataset_type(dataset, table->target).dtype);
    return CORNU_OK;
}

static CornuStatus make_space(Table *table, int64_t rows)
{
    enum { FIRST = 4096 };
    if (rows <= table->space) return CORNU_OK;
    const int64_t space = 2 * rows > FIRST ? 2 * rows : FIRST;
    const size_t  columns = (size_t)(table->components - (table->target >= 0));
    float        *x = realloc(table->x, (size_t)space * (columns ? columns : 1) * sizeof *x);
    if (x) table->x = x;
    void *y = x ? realloc(table->y, (size_t)space * sizeof(float)) : NULL;
    if (!y) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld rows", (long long)space);
    table->y = y;
    table->space = space;
    return CORNU_OK;
}

static CornuStatus add_rows(void *context, const CornuArray *arrays, int64_t first, bool *more)
{
    Table        *table = context;
    const int64_t rows = arrays[0].type.shape.extent[0];
    (void)first, (void)more;
    const CornuStatus status = make_space(table, table->rows + rows);
    if (status) return status;
    for (int64_t i = 0; i < rows; i++, table->rows++) {
        const int columns = table->components - (table->target >= 0);
        float    *x = table->x + table->rows * columns;
        for (int c = 0; c < table->components; c++) {
            const double value = cornu_array_get(arrays[c], i);
            if (c != table->target) *x++ = (float)value;
            else if (table->whole) ((int32_t *)table->y)[table->rows] = (int32_t)value;
            else ((float *)table->y)[table->rows] = (float)value;
        }
    }
    return CORNU_OK;
}

CornuStatus data_from_parquet(Data *data, const char *path, const DataFlags *flags, DataNeed need)
{
    enum { BLOCK = 1024 };
    Table table = { .x = NULL };
    if (need != DATA_INPUTS && !flags->target)
        return options_refuse("--data %s: expected --target COLUMN, what the model is to predict",
                              path);
    CornuDataset *dataset = cornu_parquet_dataset(path);
    if (!dataset) return cornu_error_status();
    CornuStatus status = find_target(&table, dataset, path, flags->target);
    if (!status) status = data_rows_each(dataset, BLOCK, add_rows, &table);
    cornu_dataset_free(dataset);
    data->owned[data->owned_count++] = table.x;
    data->owned[data->owned_count++] = table.y;
    if (!status && !table.rows) status = cornu_error_set(CORNU_ERR_DATA, "%s: has no rows", path);
    if (status) return status;
    const int64_t columns = table.components - (table.target >= 0);
    data->x[0] = cornu_array(table.x, CORNU_F32, table.rows, columns);
    if (table.target >= 0)
        data->y[0] = cornu_array(table.y, table.whole ? CORNU_I32 : CORNU_F32, table.rows, 1);
    snprintf(data->about, sizeof data->about, "%s: %lld rows of %lld numbers", path,
             (long long)table.rows, (long long)columns);
    return CORNU_OK;
}
