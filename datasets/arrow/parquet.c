#define _XOPEN_SOURCE 700    /* fileno */

/* A stream of record batches out of Parquet files: of each file its row groups, of each of these
 * the batches that Arrow's GLib library exports. Its interface in C is stable since 6.0. */
#include "parquet.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/system/library_internal.h"
#include "../files/inputs_internal.h"
#include "../pipeline/dataset_internal.h"
#include "arrow_internal.h"

typedef struct {
    uint32_t domain;
    int      code;
    char    *message;
} GlibError;

typedef struct {
    void *(*open)(const char *path, GlibError **error);
    int   (*group_count)(void *file);
    void *(*schema)(void *file, GlibError **error);
    void *(*read_group)(void *file, int group, int *columns, size_t count, GlibError **error);
    void *(*export_schema)(void *schema, GlibError **error);
    void *(*batches)(void *table);
    void *(*export_batches)(void *batches, GlibError **error);
    void  (*unref)(void *object);
    void  (*free)(void *memory);
    void  (*free_error)(GlibError *error);
} Library;

static Library library;

/* Those after the first four are of libraries that it is linked with. */
static CornuStatus load(void)
{
    static const CornuLibrarySymbol symbols[] = {
        { "gparquet_arrow_file_reader_new_path", offsetof(Library, open) },
        { "gparquet_arrow_file_reader_get_n_row_groups", offsetof(Library, group_count) },
        { "gparquet_arrow_file_reader_get_schema", offsetof(Library, schema) },
        { "gparquet_arrow_file_reader_read_row_group", offsetof(Library, read_group) },
        { "garrow_schema_export", offsetof(Library, export_schema) },
        { "garrow_table_batch_reader_new", offsetof(Library, batches) },
        { "garrow_record_batch_reader_export", offsetof(Library, export_batches) },
        { "g_object_unref", offsetof(Library, unref) }, { "g_free", offsetof(Library, free) },
        { "g_error_free", offsetof(Library, free_error) },
    };
    static CornuLibrary parquet = {
        .files = { "libparquet-glib.so" }, .symbols = symbols,
        .count = sizeof symbols / sizeof *symbols,
        .need = "Parquet files need Arrow's GLib library",
        .help = "install it (libparquet-glib-dev of the packages on arrow.apache.org/install), "
                "read the files in Python by cornu.data.from_parquet, or write them as CSV: "
                "python3 -c 'import sys, pyarrow.csv as c, pyarrow.parquet as p; "
                "c.write_csv(p.read_table(sys.argv[1]), sys.argv[2])' FILE.parquet FILE.csv",
    };
    return cornu__library_load(&parquet, &library);
}

/* What data sets read of; iterators have passes over it. */
typedef struct {
    CornuInputs *inputs;    /* owned; they are open only while they are found */
    char       **names;     /* owned: top-level columns that are read; NULL: all of them */
    int          count;
} Files;

typedef struct {
    const Files             *files;
    int                      next_file, group, groups;
    void                    *file, *table, *reader;    /* owned, GLib's; NULL: none */
    FILE                    *copy;                     /* owned: of a file elsewhere, while open */
    struct ArrowArrayStream *batches;                  /* owned, of the group; NULL: none */
    struct ArrowSchema       first;                    /* that all have; release NULL: not yet */
    int                     *columns;                  /* owned: of this file, leaves */
    int                      column_count;             /* 0: all of them */
    char                     said[700];                /* of what failed */
} Pass;

/* ---- Errors ---- */

static int failed(Pass *pass, int code, const char *why)
{
    const char *path = cornu__inputs_path(pass->files->inputs, pass->next_file - 1);
    snprintf(pass->said, sizeof pass->said, "%s: %.400s", path, why);
    return code;
}

static int failed_there(Pass *pass, GlibError *error)
{
    const int code = failed(pass, EINVAL, error && error->message ? error->message
                                                                  : "the library says nothing");
    if (error) library.free_error(error);
    return code;
}

/* ---- Schemas ---- */

enum { MOST_DEEP = 64 };   /* of columns within columns; others are not looked into */

/* Columns of files are the leaves of the schema, in order. */
static int leaves(const struct ArrowSchema *schema, int depth)
{
    int count = 0;
    if (!schema->n_children || depth == MOST_DEEP) return 1;
    for (int64_t i = 0; i < schema->n_children; i++)
        count += leaves(schema->children[i], depth + 1);
    return count;
}

static bool same_schema(const struct ArrowSchema *one, const struct ArrowSchema *other, int depth)
{
    if (strcmp(one->format, other->format) || one->n_children != other->n_children ||
        !one->dictionary != !other->dictionary || depth == MOST_DEEP ||
        (depth > 0 && strcmp(one->name ? one->name : "", other->name ? other->name : "")))
        return false;
    for (int64_t i = 0; i < one->n_children; i++)
        if (!same_schema(one->children[i], other->children[i], depth + 1)) return false;
    return !one->dictionary || same_schema(one->dictionary, other->dictionary, depth + 1);
}

/* Whether a name asks for a column: it is the column's, or that of a field in it. */
static bool asks_for(const char *name, const char *column)
{
    const size_t length = strlen(column);
    return !strncmp(name, column, length) && (!name[length] || name[length] == '.');
}

/* The leaves of the columns that are asked for. All of them, if one of these is not there: then
 * the message about it names what there is. */
static int choose_columns(Pass *pass, const struct ArrowSchema *schema)
{
    const Files *files = pass->files;
    const int    all = leaves(schema, 0);
    int          leaf = 0, found = 0;
    cornu__release(pass->columns);
    pass->column_count = 0;
    pass->columns = cornu__allocate((size_t)all, sizeof *pass->columns);
    if (!pass->columns) return ENOMEM;
    for (int64_t i = 0; i < schema->n_children; i++) {
        const char *name = schema->children[i]->name ? schema->children[i]->name : "";
        const int   count = leaves(schema->children[i], 1);
        int         asked = 0;
        for (int k = 0; k < files->count; k++) asked += asks_for(files->names[k], name);
        for (int k = 0; asked && k < count; k++) pass->columns[pass->column_count++] = leaf + k;
        found += asked;
        leaf += count;
    }
    if (found < files->count) pass->column_count = 0;
    return 0;
}

/* That of the open file. */
static int file_schema(Pass *pass, struct ArrowSchema *out)
{
    GlibError *error = NULL;
    void      *schema = library.schema(pass->file, &error);
    void      *exported = schema ? library.export_schema(schema, &error) : NULL;
    if (schema) library.unref(schema);
    if (!exported) return failed_there(pass, error);
    memcpy(out, exported, sizeof *out);   /* which moves it */
    library.free(exported);
    return 0;
}

/* ---- Files and groups ---- */

static void end_group(Pass *pass)
{
    if (pass->batches) {
        if (pass->batches->release) pass->batches->release(pass->batches);
        library.free(pass->batches);
    }
    if (pass->reader) library.unref(pass->reader);
    if (pass->table) library.unref(pass->table);
    pass->batches = NULL;
    pass->reader = pass->table = NULL;
}

static void end_file(Pass *pass)
{
    end_group(pass);
    if (pass->file) library.unref(pass->file);
    if (pass->copy) fclose(pass->copy);
    pass->file = pass->copy = NULL;
}

/* Opens the next file: of another machine's a copy, as the library reads files by their paths. */
static int open_next(Pass *pass)
{
    CornuInputs *inputs = pass->files->inputs;
    const int    file = pass->next_file++;
    const char  *path = cornu__inputs_path(inputs, file);
    char         copied[32];
    GlibError   *error = NULL;
    if (!cornu__inputs_is_local(inputs, file)) {
        CornuFailure      before;
        cornu__error_keep(&before);
        const CornuStatus status = cornu__inputs_copy(inputs, file, &pass->copy);
        if (status) {
            const int code = failed(pass, status == CORNU_ERR_MEMORY ? ENOMEM : EIO,
                                    cornu_error_message());
            cornu__error_restore(&before);
            return code;
        }
        snprintf(copied, sizeof copied, "/dev/fd/%d", fileno(pass->copy));
        path = copied;
    }
    pass->file = library.open(path, &error);
    return pass->file ? 0 : failed_there(pass, error);
}

static int open_file(Pass *pass)
{
    struct ArrowSchema schema;
    end_file(pass);
    int code = open_next(pass);
    if (code) return code;
    pass->group = 0;
    pass->groups = library.group_count(pass->file);
    code = file_schema(pass, &schema);
    if (code) return code;
    const int chosen = choose_columns(pass, &schema);
    schema.release(&schema);
    return chosen;
}

static int open_group(Pass *pass)
{
    struct ArrowSchema schema;
    GlibError         *error = NULL;
    end_group(pass);
    pass->table = library.read_group(pass->file, pass->group++,
                                     pass->column_count ? pass->columns : NULL,
                                     (size_t)pass->column_count, &error);
    pass->reader = pass->table ? library.batches(pass->table) : NULL;
    pass->batches = pass->reader ? library.export_batches(pass->reader, &error) : NULL;
    if (!pass->batches) return failed_there(pass, error);
    if (pass->batches->get_schema(pass->batches, &schema))
        return failed(pass, EINVAL, "its schema cannot be read");
    if (!pass->first.release) {
        pass->first = schema;
        return 0;
    }
    const bool same = same_schema(&pass->first, &schema, 0);
    schema.release(&schema);
    return same ? 0 : failed(pass, EINVAL, "its columns have other names or types than those of "
                             "the first file");
}

/* Opens the next group that there is; none after the last one, which leaves `batches` NULL. */
static int next_group(Pass *pass)
{
    end_group(pass);
    while (!pass->file || pass->group == pass->groups) {
        if (pass->next_file == cornu__inputs_count(pass->files->inputs)) return 0;
        const int code = open_file(pass);
        if (code) return code;
    }
    return open_group(pass);
}

/* ---- The stream ---- */

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    Pass     *pass = stream->private_data;
    const int code = pass->file ? 0 : next_group(pass);
    if (code) return code;
    if (!pass->batches) return file_schema(pass, out);   /* there is no row */
    return pass->batches->get_schema(pass->batches, out)
               ? failed(pass, EINVAL, "its schema cannot be read") : 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    Pass *pass = stream->private_data;
    int   code = pass->file ? 0 : next_group(pass);
    memset(out, 0, sizeof *out);
    while (!code && pass->batches) {
        struct ArrowArrayStream *batches = pass->batches;
        if (batches->get_next(batches, out)) {
            const char *why = batches->get_last_error(batches);
            return failed(pass, EINVAL, why ? why : "the library says nothing");
        }
        if (out->release) return 0;
        code = next_group(pass);
    }
    return code;
}

static const char *last_error(struct ArrowArrayStream *stream)
{
    return ((Pass *)stream->private_data)->said;
}

static void release(struct ArrowArrayStream *stream)
{
    Pass *pass = stream->private_data;
    end_file(pass);
    if (pass->first.release) pass->first.release(&pass->first);
    cornu__release(pass->columns);
    cornu__release(pass);
    stream->release = NULL;
}

static CornuStatus open_stream(void *context, int64_t epoch, struct ArrowArrayStream *stream)
{
    Pass *pass = cornu__allocate(1, sizeof *pass);
    (void)epoch;
    if (!pass) return CORNU_ERR_MEMORY;
    pass->files = context;
    *stream = (struct ArrowArrayStream){ get_schema, get_next, last_error, release, pass };
    return CORNU_OK;
}

/* ---- Creation ---- */

static void free_files(void *own)
{
    Files *files = own;
    cornu__inputs_free(files->inputs);
    for (int i = 0; i < files->count && files->names; i++) cornu__release(files->names[i]);
    cornu__release(files->names);
    cornu__release(files);
}

static CornuStatus copy_names(Files *files, const CornuParquetConfig *config)
{
    int count = 0;
    while (config->features ? config->features[count].name != NULL
                            : config->columns && config->columns[count]) count++;
    files->names = cornu__allocate((size_t)count + 1, sizeof *files->names);
    if (!files->names) return CORNU_ERR_MEMORY;
    for (; files->count < count; files->count++) {
        const int i = files->count;
        files->names[i] = cornu__copy_text(config->features ? config->features[i].name
                                                            : config->columns[i]);
        if (!files->names[i]) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

static CornuStatus find_files(Files *files, const CornuParquetConfig *config)
{
    files->inputs = cornu__inputs_create();
    if (!files->inputs) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__inputs_match_all(files->inputs, config->file, config->files, "parquet"));
    CORNU__TRY(cornu__fail_prefix(load(), cornu__inputs_path(files->inputs, 0)));
    return copy_names(files, config);
}

CornuDataset *cornu_parquet_dataset_from(const CornuParquetConfig *config)
{
    if (cornu__refused()) return NULL;
    Files *files = cornu__allocate(1, sizeof *files);
    if (!files) return cornu__null();
    if (find_files(files, config)) {
        free_files(files);
        return cornu__null();
    }
    return cornu_arrow_dataset(open_stream, .context = files, .close = free_files,
                               .features = config->features, .columns = config->columns,
                               .missing = config->missing);
}

/* All columns are read where some are named by a table, of which not all need be there. */
CornuTable *cornu_parquet_table_from(const CornuTableConfig *config)
{
    if (cornu__refused()) return NULL;
    Files      *files = cornu__allocate(1, sizeof *files);
    CornuTable *table = NULL;
    if (!files) return cornu__loaded(NULL);
    if (!find_files(files, &(CornuParquetConfig){ .file = config->file,
                                                  .columns = config->columns }))
        table = cornu__arrow_table(open_stream, files, cornu__inputs_path(files->inputs, 0),
                                   config);
    free_files(files);
    return cornu__loaded(table);
}
