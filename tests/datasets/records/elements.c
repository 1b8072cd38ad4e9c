#include "elements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../nn/formats/npz.h"
#include "../../expect.h"

CornuIterator *elements_begin(CornuDataset *dataset)
{
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    cornu_dataset_free(dataset);
    assert_non_null(iterator);
    return iterator;
}

const CornuBatch *elements_at(CornuIterator *iterator, int64_t index)
{
    const CornuBatch *batch;
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, index }));
    expect_ok(cornu_iterator_next(iterator, &batch));
    return batch;
}

void elements_expect_failure(CornuIterator *iterator, int64_t index, CornuStatus status,
                             const char *text)
{
    const CornuBatch *batch;
    expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, index }));
    expect_error(cornu_iterator_next(iterator, &batch), status, text);
}

void elements_expect_row(const CornuBatch *element, int c, const char *npz, const char *name,
                         int64_t index)
{
    CornuNpz *file = cornu_npz_open(npz);
    if (!file) fail_msg("%s", cornu_error_message());
    const CornuNamedArray *found = cornu_npz_find(file, name);
    assert_non_null(found);
    const CornuArray row = element->arrays[c];
    const int64_t    count = cornu_type_count(row.type);
    assert_int_equal(cornu_type_count(found->array.type),
                     count * found->array.type.shape.extent[0]);
    for (int64_t i = 0; i < count; i++) {
        const double wanted = cornu_array_get(found->array, index * count + i);
        if (cornu_array_get(row, i) != wanted)
            fail_msg("row %d, %s: element %d is %.17g, expected %.17g", (int)index, name, (int)i,
                     cornu_array_get(row, i), wanted);
    }
    cornu_npz_close(file);
}
