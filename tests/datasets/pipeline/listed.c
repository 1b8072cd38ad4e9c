#include "listed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../expect.h"

static void append(char *text, double value)
{
    const size_t used = strlen(text);
    assert_true(used + 32 < LISTED_LENGTH);
    snprintf(text + used, 32, "%g ", value);
}

/* The first `rows`; -1: the whole array. */
static void append_rows(char *text, CornuArray array, int64_t rows)
{
    const int64_t count = cornu_type_count(array.type);
    const int64_t each = rows < 0 ? count : count / array.type.shape.extent[0];
    for (int64_t i = 0; i < (rows < 0 ? count : rows * each); i++)
        append(text, cornu_array_get(array, i));
}

bool listed_next(CornuIterator *iterator, ListedAs as, char *text)
{
    const CornuBatch *batch;
    expect_ok(cornu_iterator_next(iterator, &batch));
    text[0] = '\0';
    if (!batch) return false;
    const int last = batch->count - 1;
    int64_t   rows = as == LISTED_ROWS ? batch->valid : -1;
    if (as == LISTED_COUNTED) rows = (int64_t)cornu_array_get(batch->arrays[last], 0);
    for (int c = 0; c < batch->count - (as == LISTED_COUNTED); c++)
        append_rows(text, batch->arrays[c], rows);
    return true;
}

void listed_rest(CornuIterator *iterator, ListedAs as, Listed *listed)
{
    listed->count = 0;
    while (listed_next(iterator, as, listed->text[listed->count])) {
        listed->count++;
        assert_true(listed->count < LISTED_MOST);
    }
}

void listed_epoch(CornuDataset *dataset, int64_t epoch, int threads, ListedAs as, Listed *listed)
{
    assert_non_null(dataset);
    CornuDataset *read = cornu_dataset_retain(dataset);
    if (threads) read = cornu_dataset_parallel(read, threads);
    CornuIterator *iterator = cornu_iterator_begin(read, epoch);
    assert_non_null(iterator);
    listed_rest(iterator, as, listed);
    cornu_iterator_free(iterator);
    cornu_dataset_free(read);
}

static void append_json(char *text, const json_t *value)
{
    if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++)
            append_json(text, json_array_get(value, i));
    else append(text, json_number_value(value));
}

void listed_from_json(const json_t *elements, Listed *listed)
{
    listed->count = (int)json_array_size(elements);
    assert_in_range(listed->count, 0, LISTED_MOST);
    for (int i = 0; i < listed->count; i++) {
        listed->text[i][0] = '\0';
        append_json(listed->text[i], json_array_get(elements, (size_t)i));
    }
}

void listed_equal(const char *name, const Listed *got, const Listed *wanted)
{
    for (int i = 0; i < got->count && i < wanted->count; i++)
        if (strcmp(got->text[i], wanted->text[i]))
            fail_msg("%s: element %d is %s, expected %s", name, i, got->text[i], wanted->text[i]);
    if (got->count != wanted->count)
        fail_msg("%s: %d elements, expected %d", name, got->count, wanted->count);
}
