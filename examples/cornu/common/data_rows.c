/* Rows that stay in their files, .npy and .npz, and are read when they are needed. */
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

/* Few rows are faster from memory; of many two are read at a time. */
static CornuDataset *make_fast(CornuDataset *rows)
{
    enum { FEW = 1 << 28, READERS = 2 };   /* bytes */
    if (rows && cornu_dataset_count(rows) <= (int64_t)(FEW / bytes_of(rows)))
        return cornu_dataset_cache(rows);
    return cornu_dataset_parallel(rows, READERS);
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
    return make_fast(rows);
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

typedef struct {
    Data       *data;
    int         inputs, outputs;
    CornuArray *x, *y;
} Sample;

static CornuStatus copy_first(void *context, const CornuArray *arrays, int64_t first, bool *more)
{
    Sample *sample = context;
    (void)first;
    *more = false;
    for (int c = 0; c < sample->inputs + sample->outputs; c++) {
        const size_t bytes = cornu_type_bytes(arrays[c].type);
        void        *to = data_own(sample->data, bytes);
        if (!to) return cornu_error_status();
        memcpy(to, arrays[c].data, bytes);
        *(c < sample->inputs ? &sample->x[c] : &sample->y[c - sample->inputs]) =
            cornu_array_from(to, arrays[c].type);
    }
    return CORNU_OK;
}

CornuStatus data_rows_sample(Data *data, CornuDataset *rows, int inputs, CornuArray *x,
                             CornuArray *y)
{
    enum { SAMPLE = 256 };
    const int     outputs = cornu_dataset_components(rows) - inputs;
    const int64_t block = data_rows_block(rows);
    Sample        sample = { data, inputs, outputs, x, y };
    if (cornu_dataset_count(rows) > 0)
        return data_rows_each(rows, block < SAMPLE ? block : SAMPLE, copy_first, &sample);
    return cornu_error_set(CORNU_ERR_DATA, "%s: has no rows", data->name);
}
