/* Rows that stay in their files and are read when they are needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* ---- Files ---- */

/* "FILE.npz:NAME", "FILE.npz" with an array `usual` or only one, or FILE.npy. */
static CornuStatus name_array(const char *file, const char *usual, char *to, size_t size)
{
    const char  *suffix = ".npz";
    const size_t length = strlen(file);
    snprintf(to, size, "%s", file);
    if (strstr(file, ".npz:") || length < 4 || strcmp(file + length - 4, suffix)) return CORNU_OK;
    snprintf(to, size, "%s:%s", file, usual);
    CornuDataset *found = cornu_npy_dataset(to);
    const bool    is_there = found != NULL;
    cornu_dataset_free(found);
    if (is_there) return CORNU_OK;
    /* The message of that name is the better one where there is no only array. */
    found = cornu_error_take() == CORNU_ERR_DATA ? cornu_npy_dataset(file) : NULL;
    if (found) snprintf(to, size, "%s", file);
    else cornu_error_take();
    cornu_dataset_free(found);
    return CORNU_OK;
}

static size_t bytes_of(const CornuDataset *rows)
{
    size_t each = 1;
    for (int c = 0; c < cornu_dataset_components(rows); c++)
        each += cornu_type_bytes(cornu_dataset_type(rows, c));
    return each;
}

/* Of many rows two are read at a time. */
CornuDataset *data_rows_fast(CornuDataset *rows, DataOrder *order)
{
    enum { FEW = 1 << 27, READERS = 2 };   /* bytes */
    const int64_t count = rows ? cornu_dataset_count(rows) : 0;
    if (!rows || count < 0 || count > (int64_t)(FEW / bytes_of(rows)))
        return cornu_dataset_parallel(rows, READERS);
    *order = DATA_ANY_ORDER;
    return cornu_dataset_cache(rows);
}

CornuDataset *data_rows_shuffle(CornuDataset *rows, DataOrder order, uint64_t seed)
{
    enum { BLOCK = 256, WINDOW = 1 << 16, BYTES = 1 << 25 };
    if (order == DATA_ANY_ORDER || !rows) return cornu_dataset_shuffle(rows, seed);
    const int64_t fitting = (int64_t)(BYTES / bytes_of(rows));
    if (order == DATA_BLOCKS)
        rows = cornu_dataset_unbatch(
            cornu_dataset_shuffle(cornu_dataset_batch(rows, BLOCK, false), seed));
    return cornu_dataset_shuffle_window(
        rows, fitting < 1 ? 1 : fitting < WINDOW ? fitting : WINDOW, seed + 1);
}

CornuDataset *data_rows_open(char *const *files, const char *const *usual, int count)
{
    enum { PATH = 4200 };
    char         *names = calloc((size_t)count, PATH);
    const char   *paths[2 * DATA_MOST];
    CornuDataset *rows = NULL;
    for (int i = 0; names && i < count; i++) {
        name_array(files[i], usual[i], names + i * PATH, PATH);
        paths[i] = names + i * PATH;
    }
    if (names) rows = cornu_npy_dataset_from(paths, count);
    else cornu_error_set(CORNU_ERR_MEMORY, "no memory for the names of %d files", count);
    free(names);
    return data_rows_fast(rows, &(DataOrder){ DATA_ANY_ORDER });
}

/* ---- Rows ---- */

CornuStatus data_rows_each(CornuDataset *rows, int64_t size, DataRowsFunction *function,
                           void *context)
{
    CornuDataset  *blocks = cornu_dataset_batch(cornu_dataset_retain(rows), size, false);
    CornuIterator *iterator = blocks ? cornu_iterator_begin(blocks, 0) : NULL;
    CornuStatus    status = iterator ? CORNU_OK : cornu_error_status();
    bool           more = true;
    for (int64_t first = 0; !status && more; first += size) {
        CornuArray        arrays[2 * DATA_MOST];
        const CornuBatch *block = NULL;
        status = cornu_iterator_next(iterator, &block);
        more = !status && block;
        for (int c = 0; more && c < block->count; c++) {
            arrays[c] = block->arrays[c];
            arrays[c].type.shape.extent[0] = block->valid;
        }
        if (more) status = function(context, arrays, first, &more);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(blocks);
    return status;
}

int64_t data_rows_block(const CornuDataset *rows)
{
    enum { BLOCK = 1 << 22 };   /* bytes */
    const int64_t most = (int64_t)(BLOCK / bytes_of(rows)), count = cornu_dataset_count(rows);
    return most < 1 ? 1 : most < count ? most : count < 1 ? 1 : count;
}

CornuDataset *data_rows(const Data *data)
{
    const CornuArray *x = data_test_x(data), *y = data_test_y(data);
    CornuArray        arrays[2 * DATA_MOST];
    int               count = 0;
    if (data->test_rows || data->rows)
        return cornu_dataset_retain(data->test_rows ? data->test_rows : data->rows);
    for (int i = 0; i < DATA_MOST && x[i].data; i++) arrays[count++] = x[i];
    for (int i = 0; i < DATA_MOST && y[i].data; i++) arrays[count++] = y[i];
    return cornu_dataset_from_arrays(arrays, count);
}

typedef struct {
    CornuArray to[2 * DATA_MOST];
    int        components;
    int64_t    count;
} First;

static CornuStatus copy_first(void *context, const CornuArray *arrays, int64_t first, bool *more)
{
    First        *wanted = context;
    const int64_t rows = arrays[0].type.shape.extent[0], left = wanted->count - first;
    for (int c = 0; c < wanted->components; c++) {
        const size_t each = cornu_type_bytes(arrays[c].type) / (size_t)rows;
        memcpy((char *)wanted->to[c].data + (size_t)first * each, arrays[c].data,
               (size_t)(rows < left ? rows : left) * each);
    }
    *more = left > rows;
    return CORNU_OK;
}

CornuStatus data_rows_first(Data *data, CornuDataset *rows, int inputs, int64_t count,
                            CornuArray *x, CornuArray *y)
{
    const int64_t all = cornu_dataset_count(rows), block = data_rows_block(rows);
    First         wanted = { .components = cornu_dataset_components(rows),
                             .count = count < all ? count : all };
    if (all < 1) return cornu_error_set(CORNU_ERR_DATA, "%s: has no rows", data->name);
    for (int c = 0; c < wanted.components; c++) {
        CornuType type = cornu_dataset_type(rows, c);
        for (int axis = type.shape.rank++; axis > 0; axis--)
            type.shape.extent[axis] = type.shape.extent[axis - 1];
        type.shape.extent[0] = wanted.count;
        wanted.to[c] = cornu_array_from(data_own(data, cornu_type_bytes(type)), type);
        if (!wanted.to[c].data) return cornu_error_status();
        *(c < inputs ? &x[c] : &y[c - inputs]) = wanted.to[c];
    }
    return data_rows_each(rows, block < wanted.count ? block : wanted.count, copy_first, &wanted);
}
