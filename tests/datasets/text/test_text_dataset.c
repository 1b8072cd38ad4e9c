/* Text as a data set: blocks, random windows, continued rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/text/text.h"
#include "../../expect.h"

static CornuTextData *parse(const char *bytes, CornuTextEncoding encoding)
{
    CornuTextData *text = cornu_text_parse(bytes, strlen(bytes), encoding, "it");
    if (!text) fail_msg("%s", cornu_error_message());
    return text;
}

/* ---- Samplings ---- */

enum { LETTERS = 26, MOST = 64 };
static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

/* The first letters of x, in order; checks that each y follows x in the alphabet. Frees the data
 * set. */
static int starts_of(CornuDataset *dataset, int64_t epoch, int length, char starts[MOST])
{
    if (!dataset) fail_msg("%s", cornu_error_message());
    CornuIterator    *iterator = cornu_iterator_begin(dataset, epoch);
    const CornuBatch *element;
    int               count = 0;
    while (cornu_iterator_next(iterator, &element) == CORNU_OK && element && count < MOST - 1) {
        const char *x = element->arrays[0].data, *y = element->arrays[1].data;
        for (int i = 0; i < length; i++) {
            assert_int_equal(x[i], x[0] + i);
            assert_int_equal(y[i], x[0] + i + 1);
        }
        assert_true(y[length - 1] <= 'z');
        starts[count++] = x[0];
    }
    starts[count] = '\0';
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    return count;
}

static void test_blocks(void **state)
{
    (void)state;
    CornuTextData *text = parse(letters, 0);
    char           starts[MOST];
    starts_of(cornu_text_dataset(text, 4), 0, 4, starts);
    assert_string_equal(starts, "afkpu");
    starts_of(cornu_text_dataset(text, 3, .first = 1, .count = 12), 5, 3, starts);
    assert_string_equal(starts, "bfj");
    starts_of(cornu_text_dataset(text, 25), 0, 25, starts);
    assert_string_equal(starts, "a");
    cornu_text_free(text);
}

static void test_random_places(void **state)
{
    (void)state;
    CornuTextData *text = parse(letters, 0);
    CornuTextDatasetConfig config = { .text = text, .sequence_length = 3, .samples = 60,
                                      .sampling = CORNU_TEXT_RANDOM, .seed = 7, .first = 2 };
    char first[MOST], again[MOST], other[MOST];
    assert_int_equal(starts_of(cornu_text_dataset_from(&config), 0, 3, first), 60);
    starts_of(cornu_dataset_prefetch(cornu_text_dataset_from(&config), 2), 0, 3, again);
    assert_string_equal(first, again);
    starts_of(cornu_text_dataset_from(&config), 1, 3, other);
    assert_string_not_equal(first, other);
    config.seed = 8;
    starts_of(cornu_text_dataset_from(&config), 0, 3, other);
    assert_string_not_equal(first, other);
    cornu_text_free(text);
}

/* All 24 - 3 positions are equally likely: chi square of 21,000 draws with 20 degrees of freedom is
 * below 45.3 with probability 0.999. */
static void test_random_places_are_uniform(void **state)
{
    (void)state;
    enum { PLACES = 21, DRAWS = 1000 * PLACES };
    CornuTextData *text = parse(letters, 0);
    CornuDataset  *dataset = cornu_text_dataset(text, 3, CORNU_TEXT_RANDOM, .first = 2,
                                                .samples = DRAWS, .seed = 1);
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *element;
    int     seen[LETTERS] = { 0 };
    double  chi_square = 0.0;
    while (cornu_iterator_next(iterator, &element) == CORNU_OK && element)
        seen[*(char *)element->arrays[0].data - 'c']++;
    for (int i = 0; i < PLACES; i++) chi_square += (seen[i] - 1000.0) * (seen[i] - 1000.0) / 1000.0;
    assert_true(chi_square < 45.3);
    for (int i = PLACES; i < LETTERS; i++) assert_int_equal(seen[i], 0);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    cornu_text_free(text);
}

/* Row b of batch k + 1 continues where row b of batch k ended. */
static void test_continued_rows(void **state)
{
    (void)state;
    CornuTextData *text = parse(letters, 0);
    char           starts[MOST];
    CornuDataset  *dataset = cornu_text_dataset(text, 3, CORNU_TEXT_CONTINUED, .batch_size = 2);
    starts_of(dataset, 0, 3, starts);
    assert_string_equal(starts, "am" "dp" "gs" "jv");

    dataset = cornu_text_dataset(text, 3, CORNU_TEXT_CONTINUED, .batch_size = 2);
    dataset = cornu_dataset_batch(dataset, 2, true);
    assert_int_equal(cornu_dataset_count(dataset), 4);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *batch;
    assert_int_equal(cornu_iterator_seek(iterator, (CornuSample){ 0, 1 }), CORNU_OK);
    assert_int_equal(cornu_iterator_next(iterator, &batch), CORNU_OK);
    assert_memory_equal(batch->arrays[0].data, "def" "pqr", 6);
    assert_memory_equal(batch->arrays[1].data, "efg" "qrs", 6);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    cornu_text_free(text);
}

static void test_impossible_data_sets_are_refused(void **state)
{
    (void)state;
    CornuTextData *text = parse(letters, 0);
    expect_failure(cornu_text_dataset(text, 26), CORNU_ERR_DATA,
                   "26 tokens are too few for 1 sequence of 26 and their successors, expected at "
                   "least "
                   "27");
    expect_failure(cornu_text_dataset(text, 5, .first = 20, .count = 5), CORNU_ERR_DATA,
                   "5 tokens are too few");
    expect_failure(cornu_text_dataset(text, 5, CORNU_TEXT_CONTINUED, .batch_size = 6),
                   CORNU_ERR_DATA, "26 tokens are too few for 6 sequences of 5");
    expect_failure(cornu_text_dataset(text, 5, CORNU_TEXT_CONTINUED), CORNU_ERR_ARGUMENT,
                   ".batch_size is 0");
    expect_failure(cornu_text_dataset(text, 5, CORNU_TEXT_RANDOM), CORNU_ERR_ARGUMENT,
                   ".samples is 0");
    expect_failure(cornu_text_dataset(text), CORNU_ERR_ARGUMENT, ".sequence_length is 0");
    expect_failure(cornu_text_dataset(text, 5, .first = 20, .count = 7), CORNU_ERR_ARGUMENT,
                   "tokens 20 to 27 were requested, expected a range within 0 to 26");
    expect_failure(cornu_text_dataset(.sequence_length = 5), CORNU_ERR_ARGUMENT, ".text is NULL");
    cornu_text_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_random_places),
        cmocka_unit_test(test_random_places_are_uniform),
        cmocka_unit_test(test_continued_rows),
        cmocka_unit_test(test_impossible_data_sets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
