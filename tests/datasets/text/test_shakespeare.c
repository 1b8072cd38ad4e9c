/* Shakespeare in sequences, from a small file and from the published one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/text/shakespeare.h"
#include "../../../datasets/synthetic/synthetic.h"
#include "../../../datasets/text/text.h"
#include "../files.h"
#include "../../expect.h"
#include "../../skip.h"

static int64_t count_of(const CornuTextData *text) { return text->tokens.type.shape.extent[0]; }

/* ---- Files ---- */

/* Blocks of 101: 100 characters and, shifted by one, their successors; the last tenth of the text
 * is separate. */
static void test_shakespeare_in_sequences(void **state)
{
    (void)state;
    CornuTextData  *text = cornu_text_load(.data = "synthetic", .seed = 3);
    CornuTrainTest *all = cornu_shakespeare_load(.data = "synthetic", .seed = 3);
    CornuTrainTest *some = cornu_shakespeare_load(.data = "synthetic", .seed = 3, .limit = 7);
    assert_true(text && all && some);
    const uint8_t *characters = text->tokens.data;
    const int64_t  count = count_of(text), test = count - count / 10;
    assert_int_equal(count, 1115394);
    const CornuArray arrays[] = { all->train_x, all->train_y, all->test_x, all->test_y };
    const int64_t    rows[] = { 9939, 9939, 1104, 1104 };
    for (int i = 0; i < 4; i++) {
        const int64_t  begin = (i < 2 ? 0 : test) + i % 2, last = rows[i] - 1;
        const uint8_t *data = arrays[i].data;
        assert_true(cornu_type_equal(arrays[i].type, cornu_type(CORNU_U8, rows[i], 100)));
        assert_memory_equal(data, characters + begin, 100);
        assert_memory_equal(data + 100 * last, characters + begin + 101 * last, 100);
    }
    assert_int_equal(all->classes, 256);
    assert_true(all->synthetic && !strcmp(all->name, "shakespeare"));
    assert_int_equal(some->train_x.type.shape.extent[0], 7);
    assert_int_equal(some->test_y.type.shape.extent[0], 7);
    assert_memory_equal(some->test_x.data, all->test_x.data, 700);
    assert_non_null(strstr(some->description, "256; 7 sequences of 100 to train, 7 to test"));
    cornu_train_test_free(some);
    cornu_train_test_free(all);
    cornu_text_free(text);
    expect_unloaded(cornu_shakespeare_load(.limit = -1), CORNU_ERR_ARGUMENT, "limit is -1");
}

/* The last tenth is one character short of a block. */
static void test_short_shakespeare_is_refused(void **state)
{
    (void)state;
    char text[1010 + 1];
    cornu_synthetic_text(1, 1010, text);
    text[1010] = 0;
    files_write(files_path(folder, "shakespeare/input.txt"), text, 1009);
    expect_unloaded(cornu_shakespeare_load(.data = folder), CORNU_ERR_DATA,
                   "1009 characters, vocabulary 256: a tenth is for testing, expected at "
                   "least 101 characters there");
    files_write(files_path(folder, "shakespeare/input.txt"), text, 1010);
    CornuTrainTest *least = cornu_shakespeare_load(.data = folder);
    assert_non_null(least);
    assert_int_equal(least->train_x.type.shape.extent[0], 9);
    assert_int_equal(least->test_x.type.shape.extent[0], 1);
    assert_false(least->synthetic);
    cornu_train_test_free(least);
}

static void test_real_shakespeare(void **state)
{
    (void)state;
    if (!files_real("shakespeare/input.txt")) SKIP_FOR(SKIP_DATA);
    CornuTextData *tiny = cornu_text_load(.encoding = CORNU_TEXT_ALPHABET);
    assert_non_null(tiny);
    assert_int_equal(count_of(tiny), 1115394);
    assert_int_equal(tiny->vocabulary, 65);
    CornuDataset *blocks = cornu_text_dataset(tiny, 100);
    assert_int_equal(cornu_dataset_count(blocks), 11043);
    cornu_dataset_free(blocks);
    cornu_text_free(tiny);
    if (!files_real("shakespeare/complete.txt")) SKIP_FOR(SKIP_DATA);
    CornuTextData *complete = cornu_text_load(.file = "shakespeare/complete.txt");
    assert_non_null(complete);
    assert_int_equal(count_of(complete), 5283795);
    assert_int_equal(complete->dropped, 0);
    cornu_text_free(complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shakespeare_in_sequences),
        cmocka_unit_test_setup_teardown(test_short_shakespeare_is_refused, files_begin, files_end),
        cmocka_unit_test(test_real_shakespeare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
