#include "numbered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

CornuDataset *numbered_rows(void)
{
    static uint8_t x[NUMBERED_ROWS][NUMBERED_WIDTH];
    static int32_t y[NUMBERED_ROWS];
    for (int i = 0; i < NUMBERED_ROWS; i++) {
        y[i] = i;
        for (int j = 0; j < NUMBERED_WIDTH; j++) x[i][j] = (uint8_t)(10 * i + j);
    }
    CornuArray arrays[] = { cornu_array(x, CORNU_U8, NUMBERED_ROWS, NUMBERED_WIDTH),
                            cornu_array(y, CORNU_I32, NUMBERED_ROWS) };
    CornuDataset *dataset = cornu_dataset_from_arrays(arrays, 2);
    memset(x, 0, sizeof x); /* they must have been copied */
    return dataset;
}

int numbered_labels(CornuDataset *dataset, int64_t epoch, int32_t *labels, int limit)
{
    assert_non_null(dataset);
    CornuIterator *iterator = cornu_iterator_begin(dataset, epoch);
    assert_non_null(iterator);
    int64_t size = cornu_dataset_batch_size(dataset) ? cornu_dataset_batch_size(dataset) : 1;
    cornu_dataset_free(dataset); /* the iterator holds a reference */
    const CornuBatch *batch;
    int               count = 0;
    for (int64_t index = 0; count < limit; index++) {
        assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
        if (!batch) break;
        assert_int_equal(batch->count, 2);
        assert_int_equal(batch->sample.epoch, epoch);
        assert_int_equal(batch->sample.index, index);
        const uint8_t *x = batch->arrays[0].data;
        const int32_t *y = batch->arrays[1].data;
        for (int64_t b = 0; b < size; b++)
            for (int j = 0; j < NUMBERED_WIDTH; j++)
                assert_int_equal(x[b * NUMBERED_WIDTH + j],
                                 b < batch->valid ? (uint8_t)(10 * y[b] + j) : 0);
        for (int64_t b = 0; b < batch->valid && count < limit; b++) labels[count++] = y[b];
    }
    cornu_iterator_free(iterator);
    return count;
}

CornuStatus numbered_add(void *context, CornuSample sample, const CornuArray *in,
                         const CornuArray *out)
{
    ++*(int *)context;
    assert_true(cornu_type_equal(in[0].type, cornu_type(CORNU_U8, NUMBERED_WIDTH)));
    *(float *)out[0].data = (float)(*(const int32_t *)in[1].data + 100 * sample.epoch +
                                    1000 * sample.index);
    return CORNU_OK;
}
