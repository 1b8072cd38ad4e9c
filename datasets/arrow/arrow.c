#include "arrow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "arrow_internal.h"

typedef struct {
    CornuArrowOpen         *open;
    void                   *context;
    void                  (*close)(void *context);
    struct ArrowArrayStream once;      /* a stream that was given, until it is opened */
    CornuMissing            missing;
    CornuFeatureTable       table;
    CornuArrowPath         *paths;     /* owned: of each row of the table */
    char                  **formats;   /* owned, likewise, as each of them is */
} Columns;

/* A pass over the batches. */
typedef struct {
    struct ArrowArrayStream stream;    /* release is NULL: none */
    struct ArrowSchema      schema;    /* likewise */
    struct ArrowArray       batch;
    int64_t                 next;      /* row of the batch */
    int64_t                 row;       /* of all, which it is */
    int64_t                 batches;
} Pass;

/* ---- Streams ---- */

static void end_batch(Pass *pass)
{
    if (pass->batch.release) pass->batch.release(&pass->batch);
    memset(&pass->batch, 0, sizeof pass->batch);
}

static void end_pass(Pass *pass)
{
    end_batch(pass);
    if (pass->schema.release) pass->schema.release(&pass->schema);
    if (pass->stream.release) pass->stream.release(&pass->stream);
    memset(pass, 0, sizeof *pass);
}

/* What a function of the stream returned, with the message of the library that made it. */
static CornuStatus stream_failed(Pass *pass, int error, const char *what)
{
    const char       *why = pass->stream.get_last_error
                                ? pass->stream.get_last_error(&pass->stream) : NULL;
    const CornuStatus status = error == ENOMEM ? CORNU_ERR_MEMORY
                             : error == EINVAL ? CORNU_ERR_FORMAT : CORNU_ERR_FILE;
    if (!why || !*why) why = strerror(error);
    const size_t line = strcspn(why, "\n");   /* what follows is for those who wrote the library */
    return cornu__fail(status, "arrow: %s cannot be read: %.*s", what, line < 700 ? (int)line : 700,
                       why);
}

static CornuStatus open_stream(Columns *columns, int64_t epoch, Pass *pass)
{
    if (columns->once.release) {
        pass->stream = columns->once;
        columns->once.release = NULL;
    } else {
        const CornuStatus status = columns->open
            ? columns->open(columns->context, epoch, &pass->stream)
            : cornu__fail(CORNU_ERR_VALUE, "the stream has been read");
        if (status) return cornu__fail_sample(status, "arrow", (CornuSample){ epoch, 0 });
    }
    if (!pass->stream.release || !pass->stream.get_schema || !pass->stream.get_next)
        return cornu__fail(CORNU_ERR_ARGUMENT, "arrow: the stream has been released");
    const int error = pass->stream.get_schema(&pass->stream, &pass->schema);
    if (error) return stream_failed(pass, error, "the schema");
    if (cornu__arrow_type(pass->schema.format).kind == CORNU__ARROW_STRUCT)
        return cornu__fail_prefix(cornu__arrow_check_schema(&pass->schema), "arrow");
    return cornu__fail(CORNU_ERR_FORMAT, "arrow: the schema is of format \"%.20s\", expected the "
                       "columns of record batches", pass->schema.format ? pass->schema.format : "");
}

/* Moves to a row that is there; *there is false after the last one. */
static CornuStatus next_batch(const Columns *columns, Pass *pass, bool *there)
{
    *there = true;
    while (!pass->batch.release || pass->next >= pass->batch.length) {
        char what[80];
        end_batch(pass);
        snprintf(what, sizeof what, "batch %lld", (long long)pass->batches);
        const int error = pass->stream.get_next(&pass->stream, &pass->batch);
        if (error) return stream_failed(pass, error, what);
        *there = pass->batch.release != NULL;
        if (!*there) return CORNU_OK;
        pass->next = 0;
        for (int i = 0; i < columns->table.count; i++) {
            const CornuStatus status = cornu__arrow_check(&pass->schema, &pass->batch,
                                                          &columns->paths[i]);
            if (status) return cornu__fail_prefix(cornu__fail_prefix(status, what), "arrow");
        }
        pass->batches++;
    }
    return CORNU_OK;
}

/* ---- Elements ---- */

/* Makes an element of the row; *null is the first column of it that is, or -1. */
static CornuStatus put_row(const Columns *columns, const Pass *pass, void *const *to, int *null)
{
    *null = -1;
    for (int i = 0; i < columns->table.count; i++) {
        const CornuFeatureRow *row = &columns->table.rows[i];
        bool                   is_null;
        const CornuStatus status = cornu__arrow_put(&pass->schema, &pass->batch, &columns->paths[i],
                                                    pass->next, row, columns->missing, to,
                                                    &is_null);
        if (is_null && *null < 0) *null = i;
        if (!status) continue;
        char what[200];
        snprintf(what, sizeof what, "arrow: row %lld, column \"%.80s\"", (long long)pass->row,
                 row->feature.name);
        return cornu__fail_prefix(status, what);
    }
    return CORNU_OK;
}

static CornuStatus columns_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const Columns *columns = stage->dataset->own;
    Pass          *pass = stage->own;
    bool           there;
    int            null;
    (void)at;
    for (*valid = 0;;) {
        CORNU__TRY(next_batch(columns, pass, &there));
        if (!there) return CORNU_OK;
        CORNU__TRY(put_row(columns, pass, to, &null));
        if (null >= 0 && columns->missing != CORNU_MISSING_DROPPED)
            return cornu__fail(CORNU_ERR_VALUE, "arrow: row %lld, column \"%.80s\": is null; "
                               "a .default_value takes its place, .missing = CORNU_MISSING_DROPPED "
                               "drops such rows, and KEPT makes it NaN in a column of floats",
                               (long long)pass->row, columns->table.rows[null].feature.name);
        pass->next++;
        pass->row++;
        if (null >= 0) continue;
        *valid = 1;
        return CORNU_OK;
    }
}

/* Rows need not be looked at, unless some are dropped. */
static CornuStatus columns_pass(CornuStage *stage, CornuSample at, int64_t *count)
{
    const Columns *columns = stage->dataset->own;
    Pass          *pass = stage->own;
    int64_t        passed = 0;
    bool           there = true;
    (void)at;
    while (passed < *count && columns->missing != CORNU_MISSING_DROPPED) {
        CORNU__TRY(next_batch(columns, pass, &there));
        if (!there) break;
        const int64_t left = pass->batch.length - pass->next;
        const int64_t some = left < *count - passed ? left : *count - passed;
        pass->next += some;
        pass->row += some;
        passed += some;
    }
    *count = passed;
    return CORNU_OK;
}

/* ---- Columns ---- */

static CornuStatus no_column(const struct ArrowSchema *schema, const char *name)
{
    enum { SHOWN = 12 };
    char   names[600] = "";
    size_t used = 0;
    for (int64_t i = 0; i < schema->n_children && i < SHOWN && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", i ? ", " : "",
                                 schema->children[i]->name ? schema->children[i]->name : "");
    return cornu__fail(CORNU_ERR_DATA, "arrow: there is no column \"%.80s\", but %s%s", name,
                       schema->n_children ? names : "none",
                       schema->n_children > SHOWN ? ", ..." : "");
}

/* The place of a row's column in a schema; of an image also in the field of its bytes, as
 * structures of bytes and path have it. */
static CornuStatus find_column(const struct ArrowSchema *schema, const CornuFeatureRow *row,
                               CornuArrowPath *path)
{
    *path = cornu__arrow_find(schema, row->feature.name);
    if (!path->depth) return no_column(schema, row->feature.name);
    const struct ArrowSchema *found = cornu__arrow_schema_at(schema, path);
    if (cornu__arrow_type(found->format).kind == CORNU__ARROW_STRUCT &&
        row->feature.kind == CORNU_FEATURE_IMAGE && path->depth < CORNU__ARROW_DEPTH) {
        const CornuArrowPath bytes = cornu__arrow_find(found, "bytes");
        if (bytes.depth == 1) path->child[path->depth++] = bytes.child[0];
    }
    return cornu__fail_prefix(cornu__arrow_fits(cornu__arrow_schema_at(schema, path), row),
                              row->feature.name);
}

/* The columns of each stream are those of the first. */
static CornuStatus check_columns(const Columns *columns, const Pass *pass)
{
    for (int i = 0; i < columns->table.count; i++) {
        const CornuFeatureRow *row = &columns->table.rows[i];
        const CornuArrowPath  *first = &columns->paths[i];
        CornuArrowPath         path;
        CORNU__TRY(cornu__fail_prefix(find_column(&pass->schema, row, &path), "arrow"));
        if (path.depth != first->depth || memcmp(path.child, first->child, sizeof path.child) ||
            strcmp(cornu__arrow_schema_at(&pass->schema, &path)->format, columns->formats[i]))
            return cornu__fail(CORNU_ERR_DATA, "arrow: column \"%.80s\" is another one, or of "
                               "another type, than in the first stream", row->feature.name);
    }
    return CORNU_OK;
}

/* ---- Passes ---- */

static CornuStatus columns_begin(CornuStage *stage, int64_t epoch)
{
    Columns *columns = stage->dataset->own;
    Pass    *pass = stage->own;
    if (!pass) pass = stage->own = cornu__allocate(1, sizeof *pass);
    if (!pass) return CORNU_ERR_MEMORY;
    end_pass(pass);
    CORNU__TRY(open_stream(columns, epoch, pass));
    return check_columns(columns, pass);
}

static void columns_close(CornuStage *stage)
{
    if (stage->own) end_pass(stage->own);
    cornu__release(stage->own);
    stage->own = NULL;
}

static void columns_free(CornuDataset *dataset)
{
    Columns *columns = dataset->own;
    if (!columns) return;
    if (columns->once.release) columns->once.release(&columns->once);
    if (columns->close) columns->close(columns->context);
    for (int i = 0; columns->formats && i < columns->table.count; i++)
        cornu__release(columns->formats[i]);
    cornu__release(columns->formats);
    cornu__release(columns->paths);
    cornu__features_free(&columns->table);
    cornu__release(columns);
}

static const CornuDatasetKind columns_kind = { .name = "arrow", .fetch = cornu__fetch_in_turn,
                                               .begin = columns_begin, .next = columns_next,
                                               .pass = columns_pass, .close = columns_close,
                                               .free = columns_free, .in_order = true };

/* ---- Creation ---- */

static CornuStatus infer_column(const struct ArrowSchema *schema, const char *name,
                                CornuFeature *feature)
{
    const CornuArrowPath path = cornu__arrow_find(schema, name);
    if (!path.depth) return no_column(schema, name);
    CORNU__TRY(cornu__fail_prefix(cornu__fail_prefix(
        cornu__arrow_infer(cornu__arrow_schema_at(schema, &path), feature), name), "arrow"));
    feature->name = name;
    return CORNU_OK;
}

static CornuStatus infer_all(CornuDataset *dataset, const struct ArrowSchema *schema,
                             const char *const *given)
{
    Columns *columns = dataset->own;
    int64_t  count = given ? 0 : schema->n_children;
    while (given && given[count]) count++;
    if (count < 1 || count > CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "arrow: %lld columns, expected 1 to %d, or "
                           ".features", (long long)count, CORNU_MAX_COMPONENTS);
    CornuFeature *features = cornu__allocate((size_t)count + 1, sizeof *features);
    CornuStatus   status = features ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < count && !status; i++) {
        const char *name = given ? given[i] : schema->children[i]->name;
        status = infer_column(schema, name ? name : "", &features[i]);
    }
    if (!status) status = cornu__features_read(&columns->table, features, "arrow", dataset);
    cornu__release(features);
    return status;
}

static CornuStatus make_columns(CornuDataset *dataset, const CornuArrowConfig *config)
{
    Columns    *columns = dataset->own;
    Pass        pass = { .next = 0 };
    CornuStatus status = open_stream(columns, 0, &pass);
    if (!status)
        status = config->features ? cornu__features_read(&columns->table, config->features, "arrow",
                                                         dataset)
                                  : infer_all(dataset, &pass.schema, config->columns);
    const size_t count = (size_t)columns->table.count;
    if (!status) {
        columns->paths = cornu__allocate(count, sizeof *columns->paths);
        columns->formats = cornu__allocate(count, sizeof *columns->formats);
        if (!columns->paths || !columns->formats) status = CORNU_ERR_MEMORY;
    }
    for (int i = 0; i < (int)count && !status; i++) {
        status = find_column(&pass.schema, &columns->table.rows[i], &columns->paths[i]);
        if (status) break;
        columns->formats[i] = cornu__copy_text(
            cornu__arrow_schema_at(&pass.schema, &columns->paths[i])->format);
        if (!columns->formats[i]) status = CORNU_ERR_MEMORY;
    }
    /* A stream that was given is not opened twice. */
    if (!status && config->stream) {
        columns->once = pass.stream;
        pass.stream.release = NULL;
    }
    end_pass(&pass);
    return status;
}

static CornuDataset *make_dataset(CornuArrowConfig *config, struct ArrowArrayStream *stream)
{
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &columns_kind;
    dataset->count = CORNU_UNKNOWN;
    Columns *columns = dataset->own = cornu__allocate(1, sizeof *columns);
    if (columns) {
        columns->open = config->open;
        columns->context = config->context;
        columns->close = config->close;
        columns->missing = config->missing;
        columns->once = *stream;
        stream->release = NULL;
        config->close = NULL;
    }
    if (columns && make_columns(dataset, config) == CORNU_OK) return dataset;
    cornu_dataset_free(dataset);
    return cornu__null();
}

/* What is not taken yet is released here. */
CornuDataset *cornu_arrow_dataset_from(const CornuArrowConfig *given)
{
    CornuArrowConfig        config = *given;
    struct ArrowArrayStream stream = { .release = NULL };
    CornuDataset           *dataset = NULL;
    if (config.stream) {
        stream = *config.stream;
        config.stream->release = NULL;
    }
    if (cornu__refused())
        dataset = NULL;
    else if (!config.open == !config.stream)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "arrow: expected .open or .stream, %s",
                         config.open ? "both are given" : "none is given");
    else if (config.features && config.columns)
        cornu__fail_null(CORNU_ERR_ARGUMENT, "arrow: .columns is for data without .features");
    else
        dataset = make_dataset(&config, &stream);
    if (stream.release) stream.release(&stream);
    if (config.close) config.close(config.context);
    return dataset && config.stream ? cornu__dataset_compute(dataset) : dataset;
}

const char *cornu_arrow_column(const CornuDataset *dataset, int component)
{
    if (!dataset || dataset->kind != &columns_kind) return NULL;
    const Columns *columns = dataset->own;
    for (int i = 0; i < columns->table.count; i++)
        if (columns->table.rows[i].component == component)
            return columns->table.rows[i].feature.name;
    return NULL;
}
