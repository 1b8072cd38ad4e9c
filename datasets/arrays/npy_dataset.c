#include "npy.h"

#include <stdio.h>
#include <string.h>

#include "../../device/files/zip_internal.h"
#include "../../device/log_internal.h"
#include "../../device/memory.h"
#include "../../device/memory_internal.h"
#include "../files/inputs_internal.h"
#include "../pipeline/dataset_internal.h"
#include "npy_internal.h"

/* An array of a file: in the file from byte `at` on, or in memory. */
typedef struct {
    CornuNpy             npy;
    int                  file;
    int64_t              at;
    unsigned char       *member;      /* owned: an inflated one, or NULL */
    const unsigned char *elements;    /* in it */
    CornuShape           row;
    int64_t              row_count;   /* elements of a row */
} Column;

typedef struct {
    CornuInputs *inputs;
    int64_t      rows;
    size_t       inflated;            /* bytes of members in memory */
    Column       column[];
} Arrays;

/* Rows of a column-major array, one column after the other. */
typedef struct {
    unsigned char *bytes;
    int64_t        first, count, space, next;   /* space: rows; next: after the last request */
} Block;

typedef struct {
    CornuReader    reader;
    unsigned char *row;               /* of a column-major array, as it is in the file */
    Block          block[CORNU_MAX_COMPONENTS];
} Reading;

/* ---- Rows ---- */

/* Bytes of a column-major array that are read at a time where rows are read in order. */
enum { BLOCK = 1 << 20 };

static CornuStatus read_block(Reading *reading, const Column *column, Block *block, int64_t row,
                              int64_t rows)
{
    const size_t  size = column->npy.dtype->size, row_bytes = (size_t)column->row_count * size;
    const int64_t ahead = row_bytes < BLOCK ? (int64_t)(BLOCK / (row_bytes ? row_bytes : 1)) : 1;
    int64_t       count = row == block->next ? ahead : 1;
    if (count > rows - row) count = rows - row;
    block->count = 0;
    if (count > block->space) {
        cornu__release(block->bytes);
        block->space = 0;
        block->bytes = cornu__allocate((size_t)count, row_bytes);
        if (!block->bytes) return CORNU_ERR_MEMORY;
        block->space = count;
    }
    for (int64_t i = 0; i < column->row_count; i++) {
        const int64_t from = (i * rows + row) * (int64_t)size;
        unsigned char *to = block->bytes + (size_t)(i * count) * size;
        if (column->elements) memcpy(to, column->elements + from, (size_t)count * size);
        else CORNU__TRY(cornu__inputs_read(reading->reader.inputs, column->file, column->at + from,
                                           to, (size_t)count * size));
    }
    block->first = row;
    block->count = count;
    return CORNU_OK;
}

static CornuStatus column_major_row(Reading *reading, const Column *column, Block *block,
                                    int64_t row, int64_t rows, void *to)
{
    const size_t size = column->npy.dtype->size;
    if (row < block->first || row - block->first >= block->count)
        CORNU__TRY(read_block(reading, column, block, row, rows));
    block->next = row + 1;
    cornu__npy_transpose(column->row, size, block->bytes + (size_t)(row - block->first) * size,
                         block->count, reading->row);
    cornu__npy_convert(&column->npy, reading->row, column->row_count, to);
    return CORNU_OK;
}

static CornuStatus row_major_row(Reading *reading, const Column *column, int64_t row, void *to)
{
    const size_t         bytes = (size_t)column->row_count * column->npy.dtype->size;
    const int64_t        from = row * (int64_t)bytes;
    const unsigned char *elements = column->elements ? column->elements + from : NULL;
    if (!elements && cornu__npy_is_exact(&column->npy))
        return cornu__reader_copy(&reading->reader, column->file, column->at + from, bytes, to);
    if (!elements)
        CORNU__TRY(cornu__reader_get(&reading->reader, column->file, column->at + from, bytes,
                                     &elements));
    cornu__npy_convert(&column->npy, elements, column->row_count, to);
    return CORNU_OK;
}

static CornuStatus arrays_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const Arrays *arrays = stage->dataset->own;
    Reading      *reading = stage->own;
    for (int c = 0; c < stage->dataset->components; c++) {
        const Column *column = &arrays->column[c];
        const CornuStatus status =
            column->npy.column_major ? column_major_row(reading, column, &reading->block[c],
                                                        at.index, arrays->rows, to[c])
                                     : row_major_row(reading, column, at.index, to[c]);
        if (status)
            return cornu__fail_prefix(status, cornu__inputs_path(arrays->inputs, column->file));
    }
    *valid = 1;
    return CORNU_OK;
}

static CornuStatus arrays_open(CornuStage *stage)
{
    const Arrays *arrays = stage->dataset->own;
    Reading      *reading = stage->own = cornu__allocate(1, sizeof *reading);
    size_t        most = 0;
    if (!reading) return CORNU_ERR_MEMORY;
    reading->reader.inputs = arrays->inputs;
    for (int c = 0; c < stage->dataset->components; c++) {
        const Column *column = &arrays->column[c];
        const size_t  bytes = (size_t)column->row_count * column->npy.dtype->size;
        reading->block[c].next = -1;
        if (column->npy.column_major && bytes > most) most = bytes;
    }
    reading->row = cornu__allocate(most, 1);
    return reading->row ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void arrays_close(CornuStage *stage)
{
    Reading *reading = stage->own;
    if (!reading) return;
    cornu__reader_close(&reading->reader);
    for (int c = 0; c < CORNU_MAX_COMPONENTS; c++) cornu__release(reading->block[c].bytes);
    cornu__release(reading->row);
    cornu__release(reading);
}

static void arrays_free(CornuDataset *dataset)
{
    Arrays *arrays = dataset->own;
    if (!arrays) return;
    for (int c = 0; c < dataset->components; c++) cornu__release(arrays->column[c].member);
    cornu__inputs_free(arrays->inputs);
    cornu__release(arrays);
}

static const CornuDatasetKind arrays_kind = { .name = "npy", .fetch = arrays_fetch,
                                              .open = arrays_open, .close = arrays_close,
                                              .free = arrays_free };

/* ---- Files ---- */

/* Checks that an array has as many bytes as its header says, of which `rest` follow the header. */
static CornuStatus check_bytes(const CornuNpy *npy, int64_t rest)
{
    CornuText text;
    if (rest == cornu__npy_bytes(npy)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s of %s takes %lld bytes, the file has %lld",
                       cornu_shape_print(&text, npy->type.shape), npy->dtype->name,
                       (long long)cornu__npy_bytes(npy), (long long)rest);
}

/* The array whose header begins at byte `at` of the column's file, and which ends at byte `end`. */
static CornuStatus read_header(Arrays *arrays, Column *column, int64_t at, int64_t end)
{
    unsigned char first[CORNU__NPY_START];
    const size_t  there = end - at < (int64_t)sizeof first ? (size_t)(end - at) : sizeof first;
    size_t        size;
    CORNU__TRY(cornu__inputs_read(arrays->inputs, column->file, at, first, there));
    CORNU__TRY(cornu__npy_header_size(first, there, &size));
    if ((int64_t)size > end - at)
        return cornu__fail(CORNU_ERR_FORMAT, "ends after %lld bytes, its header has %zu",
                           (long long)(end - at), size);
    unsigned char *header = cornu__allocate(size, 1);
    CornuStatus    status = header ? cornu__inputs_read(arrays->inputs, column->file, at, header,
                                                        size)
                                   : CORNU_ERR_MEMORY;
    if (!status) status = cornu__npy_parse(header, size, &column->npy);
    cornu__release(header);
    column->at = at + (int64_t)size;
    return status ? status : check_bytes(&column->npy, end - column->at);
}

static CornuStatus check_inflated(Arrays *arrays, const CornuZip *zip, int i)
{
    const size_t bytes = cornu__zip_size(zip, i), most = cornu_memory_limit();
    if (bytes > most || arrays->inflated > most - bytes)
        return cornu__fail(CORNU_ERR_MEMORY, "is deflated and has %zu bytes, with those before it "
                           "%zu, more than the limit of %zu; rows of one that is stored, as by "
                           "numpy.savez, are read from the file, and CORNU_MAX_MEMORY raises the "
                           "limit", bytes, arrays->inflated, most);
    arrays->inflated += bytes;
    return CORNU_OK;
}

/* Of a member that is in memory. */
static CornuStatus parse_member(Column *column, size_t size)
{
    size_t       header;
    const size_t there = size < CORNU__NPY_START ? size : CORNU__NPY_START;
    CORNU__TRY(cornu__npy_header_size(column->member, there, &header));
    if (header > size)
        return cornu__fail(CORNU_ERR_FORMAT, "ends after %zu bytes, its header has %zu", size,
                           header);
    CORNU__TRY(cornu__npy_parse(column->member, header, &column->npy));
    column->elements = column->member + header;
    return check_bytes(&column->npy, (int64_t)(size - header));
}

/* "x, y and 3 others": arrays, whose members are x.npy and y.npy. */
static void list_names(const CornuZip *zip, char *to, size_t size)
{
    enum { SHOWN = 8, LONGEST = 40 };
    const int count = cornu__zip_count(zip);
    size_t    used = 0;
    to[0] = '\0';
    for (int i = 0; i < count && i < SHOWN && used < size; i++) {
        const char *name = cornu__zip_name(zip, i), *suffix = strstr(name, ".npy");
        const int   length = suffix && !suffix[4] && suffix - name < LONGEST ? (int)(suffix - name)
                                                                            : LONGEST;
        used += (size_t)snprintf(to + used, size - used, "%s%.*s", i ? ", " : "", length, name);
    }
    if (count > SHOWN && used < size)
        snprintf(to + used, size - used, " and %d others", count - SHOWN);
}

/* The member of an array's name, or of the only array if it is NULL. */
static CornuStatus find_member(const CornuZip *zip, const char *name, int *member)
{
    const int count = cornu__zip_count(zip);
    char      names[400];
    *member = name || count != 1 ? -1 : 0;
    for (int i = 0; name && i < count && *member < 0; i++) {
        const char  *other = cornu__zip_name(zip, i);
        const size_t length = strlen(name);
        if (!strncmp(other, name, length) && (!other[length] || !strcmp(other + length, ".npy")))
            *member = i;
    }
    if (*member >= 0) return CORNU_OK;
    list_names(zip, names, sizeof names);
    if (name)
        return cornu__fail(CORNU_ERR_DATA, "has no array \"%.80s\", it has %s", name,
                           count ? names : "none");
    return cornu__fail(CORNU_ERR_DATA, "has %d arrays, expected one, or FILE.npz:NAME with one of "
                       "the names %s", count, names);
}

static CornuStatus open_archive(Arrays *arrays, Column *column, const char *path, const char *name)
{
    const char *shown = cornu__inputs_path(arrays->inputs, column->file);
    CornuInput  input;
    CORNU__TRY(cornu__fail_prefix(cornu__input_open_any(&input, path), shown));
    CornuZip *zip = cornu__zip_open_input(&input, shown);
    if (!zip) return cornu_error_take();
    int         i = 0;
    bool        stored = false;
    CornuStatus status = cornu__fail_prefix(find_member(zip, name, &i), shown);
    if (!status) {
        const int64_t at = (int64_t)cornu__zip_place(zip, i, &stored);
        char          what[CORNU_MESSAGE_SIZE / 2];
        size_t        size = cornu__zip_size(zip, i);
        snprintf(what, sizeof what, "%.400s: member \"%.80s\"", shown, cornu__zip_name(zip, i));
        if (!stored) status = cornu__fail_prefix(check_inflated(arrays, zip, i), what);
        if (!stored && !status)      /* whose messages name the member */
            status = cornu__fail_prefix(cornu__zip_read(zip, i, &column->member, &size), shown);
        if (!status)
            status = cornu__fail_prefix(stored ? read_header(arrays, column, at, at + (int64_t)size)
                                               : parse_member(column, size), what);
    }
    cornu__zip_close(zip);
    return status;
}

/* Whether the file begins as a zip archive does, which .npz files are. */
static CornuStatus is_archive(Arrays *arrays, int file, bool *is)
{
    char magic[4] = "";
    *is = false;
    if (cornu__inputs_size(arrays->inputs, file) < (int64_t)sizeof magic) return CORNU_OK;
    CORNU__TRY(cornu__inputs_read(arrays->inputs, file, 0, magic, sizeof magic));
    *is = !memcmp(magic, "PK", 2);
    return CORNU_OK;
}

static CornuStatus open_column(Arrays *arrays, Column *column, int c, const char *given)
{
    CornuText   text;
    const char *colon = given ? strstr(given, ".npz:") : NULL;
    bool        archive;
    if (!given || !*given)
        return cornu__fail(CORNU_ERR_ARGUMENT, "npy data set: file %d is not given", c);
    char *path = cornu__copy_text(given);
    if (!path) return CORNU_ERR_MEMORY;
    if (colon) path[colon - given + 4] = '\0';
    column->file = c;
    CornuStatus status = cornu__inputs_add(arrays->inputs, path);
    const char *shown = status ? NULL : cornu__inputs_path(arrays->inputs, c);
    if (!status) status = cornu__fail_prefix(is_archive(arrays, c, &archive), shown);
    if (!status && (archive || colon))
        status = open_archive(arrays, column, path, colon ? colon + 5 : NULL);
    else if (!status)
        status = cornu__fail_prefix(read_header(arrays, column, 0,
                                                cornu__inputs_size(arrays->inputs, c)), shown);
    const CornuType type = column->npy.type;
    if (!status && type.shape.rank < 1)
        status = cornu__fail(CORNU_ERR_SHAPE, "%s: is a scalar, expected an array with rows",
                             shown);
    if (!status && c > 0 && type.shape.extent[0] != arrays->rows)
        status = cornu__fail(CORNU_ERR_SHAPE, "%s: %s has %lld rows, expected %lld like the first "
                             "one", shown, cornu_type_print(&text, type),
                             (long long)type.shape.extent[0], (long long)arrays->rows);
    cornu__release(path);
    if (status) return status;
    arrays->rows = type.shape.extent[0];
    column->row = cornu_shape_from(type.shape.rank - 1, type.shape.extent + 1);
    column->row_count = cornu_shape_count(column->row);
    return CORNU_OK;
}

CornuDataset *cornu_npy_dataset_from(const char *const *files, int count)
{
    CORNU__NEED_TO_MAKE(files);
    if (cornu__refused()) return NULL;
    if (count < 1 || count > CORNU_MAX_COMPONENTS)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "npy data set: %d files, expected 1 to %d",
                                count, CORNU_MAX_COMPONENTS);
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    Arrays       *arrays = cornu__allocate(1, sizeof *arrays +
                                                  (size_t)count * sizeof *arrays->column);
    if (!dataset || !arrays) {
        cornu__release(dataset);
        cornu__release(arrays);
        return cornu__null();
    }
    atomic_init(&dataset->owners, 1);
    dataset->kind = &arrays_kind;
    dataset->own = arrays;
    dataset->components = count;
    arrays->inputs = cornu__inputs_create();
    CornuStatus status = arrays->inputs ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int c = 0; c < count && !status; c++) {
        status = open_column(arrays, &arrays->column[c], c, files[c]);
        dataset->type[c] = cornu_type_from(arrays->column[c].npy.type.dtype, arrays->column[c].row);
        if (!status) dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
    }
    if (status) {
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    dataset->count = arrays->rows;
    cornu__log(CORNU_LOG_INFO, "%s: %lld rows of %d arrays", cornu__inputs_path(arrays->inputs, 0),
               (long long)arrays->rows, count);
    return dataset;
}
