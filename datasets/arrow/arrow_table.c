/* Tables of record batches. */
#include <errno.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "arrow_internal.h"

typedef struct {
    const char             *name;      /* for messages */
    struct ArrowArrayStream stream;    /* release is NULL: none, as of the next two */
    struct ArrowSchema      schema;
    struct ArrowArray       batch;
    int64_t                 next;      /* row of the batch */
    const char            **columns;   /* owned: the names of all columns */
    bool                   *wanted;    /* owned: those that are read */
    CornuArrowString       *string;    /* owned: of each column */
} Rows;

/* What the stream returned, with the message of the library that made it. */
static CornuStatus stream_failed(Rows *rows, int error)
{
    const char       *why = rows->stream.get_last_error
                                ? rows->stream.get_last_error(&rows->stream) : NULL;
    const CornuStatus status = error == ENOMEM ? CORNU_ERR_MEMORY
                             : error == EINVAL ? CORNU_ERR_FORMAT : CORNU_ERR_FILE;
    if (!why || !*why) why = strerror(error);
    return cornu__fail(status, "%.*s", (int)strcspn(why, "\n"), why);
}

static CornuStatus next_batch(Rows *rows)
{
    rows->next = 0;
    if (rows->batch.release) rows->batch.release(&rows->batch);
    memset(&rows->batch, 0, sizeof rows->batch);
    const int error = rows->stream.get_next(&rows->stream, &rows->batch);
    if (error) return stream_failed(rows, error);
    for (int64_t c = 0; rows->batch.release && c < rows->schema.n_children; c++) {
        const CornuArrowPath path = { .child = { c }, .depth = 1 };
        if (rows->wanted[c])
            CORNU__TRY(cornu__fail_prefix(cornu__arrow_check(&rows->schema, &rows->batch, &path),
                                          rows->name));
    }
    return CORNU_OK;
}

static CornuStatus next_row(void *own, CornuField *field, bool *more)
{
    Rows *rows = own;
    *more = true;
    while (!rows->batch.release || rows->next >= rows->batch.length) {
        CORNU__TRY(next_batch(rows));
        *more = rows->batch.release != NULL;
        if (!*more) return CORNU_OK;
    }
    const int64_t row = rows->batch.offset + rows->next++;
    for (int64_t c = 0; c < rows->schema.n_children; c++) {
        field[c] = (CornuField){ .text = (char *)"" };
        if (rows->wanted[c])
            CORNU__TRY(cornu__fail_prefix(cornu__fail_prefix(cornu__arrow_field(
                rows->schema.children[c], rows->batch.children[c], row, &rows->string[c],
                &field[c]), rows->columns[c]), rows->name));
    }
    return CORNU_OK;
}

static bool is_wanted(const CornuTableConfig *config, const char *column)
{
    const char *const *listed = config->columns;
    while (listed && *listed && strcmp(*listed, column)) listed++;
    return (!listed || *listed) &&
           (!config->like || cornu__table_column(config->like, column) >= 0);
}

/* The columns, and which of them are read. */
static CornuStatus find_columns(Rows *rows, const CornuTableConfig *config)
{
    const size_t count = (size_t)rows->schema.n_children;
    rows->columns = cornu__allocate(count, sizeof *rows->columns);
    rows->wanted = cornu__allocate(count, sizeof *rows->wanted);
    rows->string = cornu__allocate(count, sizeof *rows->string);
    if (!rows->columns || !rows->wanted || !rows->string) return CORNU_ERR_MEMORY;
    for (size_t c = 0; c < count; c++) {
        const struct ArrowSchema *column = rows->schema.children[c];
        rows->columns[c] = column->name ? column->name : "";
        rows->wanted[c] = is_wanted(config, rows->columns[c]);
        if (rows->wanted[c] && !cornu__arrow_is_field(column))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: column %.99s is of Arrow's format "
                               "\"%.20s\", expected numbers or strings in a table; .columns leaves "
                               "a column out", rows->name, rows->columns[c], column->format);
    }
    return CORNU_OK;
}

static CornuStatus open_rows(Rows *rows, CornuArrowOpen *open, void *context,
                             const CornuTableConfig *config)
{
    CORNU__TRY(open(context, 0, &rows->stream));
    const int error = rows->stream.get_schema(&rows->stream, &rows->schema);
    if (error) return stream_failed(rows, error);
    CORNU__TRY(cornu__fail_prefix(cornu__arrow_check_schema(&rows->schema), rows->name));
    if (rows->schema.n_children <= CORNU_MAX_TABLE_COLUMNS) return find_columns(rows, config);
    return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld columns, expected at most %d", rows->name,
                       (long long)rows->schema.n_children, CORNU_MAX_TABLE_COLUMNS);
}

CornuTable *cornu__arrow_table(CornuArrowOpen *open, void *context, const char *name,
                               const CornuTableConfig *config)
{
    Rows              rows = { .name = name };
    const CornuStatus status = open_rows(&rows, open, context, config);
    CornuTable       *table = status ? NULL : cornu__table_read(config, name, &(CornuTableSource){
        .names = rows.columns, .count = (int)rows.schema.n_children, .next = next_row,
        .own = &rows });
    for (int64_t c = 0; rows.string && c < rows.schema.n_children; c++)
        cornu__release(rows.string[c].bytes);
    cornu__release(rows.string);
    cornu__release(rows.wanted);
    cornu__release(rows.columns);
    if (rows.batch.release) rows.batch.release(&rows.batch);
    if (rows.schema.release) rows.schema.release(&rows.schema);
    if (rows.stream.release) rows.stream.release(&rows.stream);
    return table;
}
