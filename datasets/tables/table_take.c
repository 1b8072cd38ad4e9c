/* The properties of a table, and its columns as arrays. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/text/nearest.h"
#include "table_internal.h"

void cornu_table_free(CornuTable *table)
{
    if (!table || atomic_fetch_sub(&table->owners, 1) > 1) return;
    for (int c = 0; c < table->columns; c++) {
        CornuColumn *column = &table->column[c];
        for (int i = 0; i < column->category_count; i++) cornu__release(column->category[i]);
        cornu__release(column->category);
        cornu__release(column->value);
        cornu__release(column->first_unknown);
        cornu__release(column->name);
    }
    cornu__release(table->column);
    for (char **value = table->missing_values; value && *value; value++) cornu__release(*value);
    cornu__release(table->missing_values);
    cornu__input_close(&table->input);
    cornu__release(table->mark);
    cornu__release(table->field);
    cornu__release(table->line);
    cornu__release(table->name);
    cornu__release(table);
}

int64_t cornu_table_rows(const CornuTable *table)
{
    CORNU__NEED_OR(table, 0);
    return table->rows;
}

int64_t cornu_table_dropped(const CornuTable *table)
{
    CORNU__NEED_OR(table, 0);
    return table->dropped;
}

int cornu_table_columns(const CornuTable *table)
{
    CORNU__NEED_OR(table, 0);
    return table->columns;
}

const char *cornu_table_column_name(const CornuTable *table, int column)
{
    CORNU__NEED_OR(table, NULL);
    CORNU__NEED_INDEX(column, table->columns, NULL);
    return table->column[column].name;
}

const char *const *cornu_table_categories(const CornuTable *table, int column, int *count)
{
    CORNU__NEED_OR(count, NULL);
    *count = 0;
    CORNU__NEED_OR(table, NULL);
    CORNU__NEED_INDEX(column, table->columns, NULL);
    *count = table->column[column].category_count;
    return (const char *const *)table->column[column].category;
}

int64_t cornu_table_unknown(const CornuTable *table, int column, const char **first)
{
    const bool there = column >= 0 && column < table->columns;
    *first = there ? table->column[column].first_unknown : NULL;
    return there ? table->column[column].unknown : 0;
}

int cornu__table_column(const CornuTable *table, const char *name)
{
    for (int c = 0; c < table->columns; c++)
        if (!strcmp(table->column[c].name, name)) return c;
    return -1;
}

int cornu_table_find(const CornuTable *table, const char *name)
{
    CORNU__NEED_OR(table, -1);
    CORNU__NEED_OR(name, -1);
    enum { KNOWN = 1000 };   /* the most similar one is sought among so many */
    const char *known[KNOWN];
    const int   column = cornu__table_column(table, name);
    int         count = 0;
    if (column >= 0) return column;
    for (; count < table->columns && count < KNOWN; count++)
        known[count] = table->column[count].name;
    const char *nearest = cornu_nearest(name, known, count);
    cornu__fail(CORNU_ERR_ARGUMENT, "%s: has no column \"%s\"%s%s%s", table->name, name,
                nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    return -1;
}

/* ---- Columns as arrays ---- */

int *cornu__table_choose(const CornuTableTakeConfig *config, const CornuTable *table, int *count)
{
    int wanted = config->columns ? 0 : table->columns;
    while (config->columns && config->columns[wanted]) wanted++;
    int *chosen = cornu__allocate((size_t)wanted, sizeof *chosen);
    *count = 0;
    for (const char *const *name = config->except; chosen && name && *name; name++)
        if (cornu_table_find(table, *name) < 0) goto fail;
    for (int i = 0; chosen && i < wanted; i++) {
        const int column = config->columns ? cornu_table_find(table, config->columns[i]) : i;
        bool      kept = column >= 0;
        if (!kept) goto fail;
        for (const char *const *name = config->except; name && *name; name++)
            kept = kept && strcmp(*name, table->column[column].name) != 0;
        if (kept) chosen[(*count)++] = column;
    }
    if (!chosen || *count) return chosen;
    cornu__fail(CORNU_ERR_ARGUMENT, "%s: no columns are selected", table->name);
fail:
    cornu__release(chosen);
    return NULL;
}

/* The number of columns that a column of the table becomes. */
static int64_t width_of(const CornuTableTakeConfig *config, const CornuColumn *column)
{
    return config->one_hot && column->category_count ? column->category_count : 1;
}

int64_t cornu__table_width(const CornuTableTakeConfig *config, const CornuTable *table,
                           const int *chosen, int count)
{
    int64_t width = 0;
    for (int i = 0; i < count; i++) width += width_of(config, &table->column[chosen[i]]);
    return width;
}

CornuStatus cornu__table_put(const CornuTableTakeConfig *config, const CornuTable *table,
                             const int *chosen, int count, int64_t row, const double *values,
                             CornuArray to, int64_t at)
{
    for (int i = 0; i < count; i++) {
        const CornuColumn *column = &table->column[chosen[i]];
        const double       value = values[chosen[i]];
        const bool holds = config->dtype == CORNU_F32 ? isfinite((float)value) || isnan(value)
                         : value == floor(value) && fabs(value) <= INT32_MAX;
        if (!holds)
            return cornu__fail(CORNU_ERR_VALUE, "%s: column %s, row %lld is %.17g, which %s cannot "
                               "represent", table->name, column->name, (long long)row + 1, value,
                               cornu_dtype_name(config->dtype));
        if (!config->one_hot || !column->category_count)
            cornu_array_set(to, at, value);
        else if (value >= 0.0)   /* else an unknown category */
            cornu_array_set(to, at + (int64_t)value, 1.0);
        at += width_of(config, column);
    }
    return CORNU_OK;
}

/* Names the column with the most categories, which probably are not categories at all. */
static CornuStatus too_large(const CornuTableTakeConfig *config, const int *chosen, int count,
                             CornuType type)
{
    const CornuColumn *widest = &config->table->column[chosen[0]];
    char               place[300];
    CornuText          text;
    for (int i = 1; i < count; i++)
        if (width_of(config, &config->table->column[chosen[i]]) > width_of(config, widest))
            widest = &config->table->column[chosen[i]];
    snprintf(place, sizeof place, "%.100s: as %s, %lld columns of it from %.100s",
             config->table->name, cornu_type_print(&text, type),
             (long long)width_of(config, widest), widest->name);
    return cornu__fail_prefix(CORNU_ERR_MEMORY, place);
}

static CornuStatus copy_rows(const CornuTableTakeConfig *config, const int *chosen, int count,
                             CornuArray to)
{
    const CornuTable *table = config->table;
    const int64_t     width = to.type.shape.extent[1];
    CornuTableRows    rows;
    CornuStatus       status = cornu__table_rows_open(&rows, table);
    for (int64_t row = 0; row < table->rows && !status; row++) {
        status = cornu__table_row(&rows, row);
        if (!status)
            status = cornu__table_put(config, table, chosen, count, row, rows.value, to,
                                      row * width);
    }
    cornu__table_rows_close(&rows);
    return status;
}

CornuStatus cornu_table_take_from(const CornuTableTakeConfig *config)
{
    const CornuTable *table = config->table;
    if (!table) return cornu__fail_absent("table: .table");
    if (!config->to) return cornu__fail(CORNU_ERR_ARGUMENT, "table: no array is given");
    if (config->dtype != CORNU_F32 && config->dtype != CORNU_I32)
        return cornu__fail(CORNU_ERR_DTYPE, "%s: .dtype is %s, expected f32 or i32",
                           table->name, cornu_dtype_name(config->dtype));
    int  count;
    int *chosen = cornu__table_choose(config, table, &count);
    if (!chosen) return cornu_error_status();
    const int64_t width = cornu__table_width(config, table, chosen, count);
    CornuStatus   status = cornu_type_check(cornu_type(config->dtype, table->rows, width));
    CornuArray    to = cornu_array(NULL, config->dtype, table->rows, width);
    if (!status) {
        to.data = cornu__allocate(cornu_type_bytes(to.type), 1);
        status = to.data ? copy_rows(config, chosen, count, to)
                         : too_large(config, chosen, count, to.type);
    }
    cornu__release(chosen);
    if (status) cornu__release(to.data);
    else *config->to = to;
    return status;
}
