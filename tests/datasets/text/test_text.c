/* Texts: encodings and what they refuse, and where the windows of each sampling begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/text/shakespeare.h"
#include "../../../datasets/synthetic/synthetic.h"
#include "../../../datasets/text/text.h"
#include "../files.h"

static CornuTextData *parse(const char *bytes, CornuTextEncoding encoding)
{
    CornuTextData *text = cornu_text_parse(bytes, strlen(bytes), encoding, "it");
    if (!text) fail_msg("%s", cornu_error_message());
    return text;
}

static void expect_failure(const void *made, CornuStatus status, const char *part)
{
    assert_null(made);
    assert_int_equal(cornu_error_status(), status);
    cornu_error_take();
    if (!strstr(cornu_error_message(), part))
        fail_msg("\"%s\" does not contain \"%s\"", cornu_error_message(), part);
}

static int64_t count_of(const CornuTextData *text) { return text->tokens.type.shape.extent[0]; }

/* All tokens as text again. */
static const char *decoded(const CornuTextData *text)
{
    static char all[256];
    int         length = 0;
    for (int64_t i = 0; i < count_of(text); i++)
        length += cornu_text_decode(text, (int64_t)cornu_array_get(text->tokens, i), all + length);
    return all;
}

/* ---- Encodings ---- */

/* ä is 228, € is 0x20AC, 😀 is 0x1F600, ÿ is 255 */
static void test_code_points(void **state)
{
    (void)state;
    CornuTextData *text = parse("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xBFz", 0);
    assert_int_equal(text->vocabulary, 256);
    assert_int_equal(text->dropped, 3);
    assert_int_equal(count_of(text), 3);
    assert_memory_equal(text->tokens.data, ((uint8_t[]){ 'a', 228, 'z' }), 3);
    assert_string_equal(decoded(text), "a\xC3\xA4z");
    assert_non_null(strstr(text->description, "it: 3 characters, vocabulary 256, 3 from"));
    cornu_text_free(text);
}

static void test_alphabet(void **state)
{
    (void)state;
    static const char all[] = "ba\xF0\x9F\x98\x80\xC3\xA4 ab";
    CornuTextData    *text = parse(all, CORNU_TEXT_ALPHABET);
    assert_int_equal(text->vocabulary, 5);
    assert_int_equal(text->dropped, 0);
    assert_memory_equal(text->alphabet, ((uint32_t[]){ ' ', 'a', 'b', 228, 0x1F600 }), 20);
    assert_memory_equal(text->tokens.data, ((uint8_t[]){ 2, 1, 4, 3, 0, 1, 2 }), 7);
    assert_string_equal(decoded(text), all);

    CornuArray tokens;
    assert_int_equal(cornu_text_encode(text, "\xC3\xA4" "b", 3, &tokens), CORNU_OK);
    assert_memory_equal(tokens.data, ((uint8_t[]){ 3, 2 }), 2);
    free(tokens.data);
    assert_int_equal(cornu_text_encode(text, "abc", 3, &tokens), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "character 3, \"c\" (U+0063), is not in the "
                                                  "alphabet of 5 characters"));
    cornu_text_free(text);
}

/* 300 Chinese characters do not fit into bytes. */
static void test_large_alphabet(void **state)
{
    (void)state;
    char bytes[901] = "";
    for (int i = 0; i < 300; i++)
        sprintf(bytes + 3 * i, "\xE4%c%c", 0xB8 + i / 64, 0x80 + i % 64);
    CornuTextData *text = parse(bytes, CORNU_TEXT_ALPHABET);
    assert_int_equal(text->vocabulary, 300);
    assert_int_equal(text->tokens.type.dtype, CORNU_I32);
    for (int i = 0; i < 300; i++) assert_int_equal(((int32_t *)text->tokens.data)[i], i);
    CornuDataset *dataset = cornu_text_dataset(text, 2, .first = 297);
    assert_int_equal(cornu_dataset_type(dataset, 0).dtype, CORNU_I32);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *element;
    assert_int_equal(cornu_iterator_next(iterator, &element), CORNU_OK);
    assert_memory_equal(element->arrays[1].data, ((int32_t[]){ 298, 299 }), 8);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    cornu_text_free(text);
}

static void test_bytes(void **state)
{
    (void)state;
    static const char all[] = "\xFF\0\x80z";
    CornuTextData    *text = cornu_text_parse(all, 4, CORNU_TEXT_BYTES, "it");
    assert_non_null(text);
    assert_int_equal(text->vocabulary, 256);
    assert_memory_equal(text->tokens.data, all, 4);
    char byte[5];
    assert_int_equal(cornu_text_decode(text, 255, byte), 1);
    assert_memory_equal(byte, "\xFF", 2);
    cornu_text_free(text);
}

static void test_encoding_without_a_text(void **state)
{
    (void)state;
    CornuTextData *text = cornu_text_encoding(CORNU_TEXT_CODE_POINTS);
    CornuArray     tokens;
    assert_int_equal(text->vocabulary, 256);
    assert_int_equal(cornu_text_encode(text, "\xC3\xA4", 2, &tokens), CORNU_OK);
    assert_int_equal(((uint8_t *)tokens.data)[0], 228);
    free(tokens.data);
    assert_int_equal(cornu_text_encode(text, "\xE2\x82\xAC", 3, &tokens), CORNU_ERR_VALUE);
    cornu_text_free(text);
    expect_failure(cornu_text_encoding(CORNU_TEXT_ALPHABET), CORNU_ERR_ARGUMENT, "no alphabet");
}

/* The Unicode Standard, section 3.9: each of these is ill-formed at its second byte's start. */
static void test_bad_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3z",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[16];
        snprintf(text, sizeof text, "ok%s", bad[i]);
        expect_failure(cornu_text_parse(text, strlen(text), CORNU_TEXT_ALPHABET, "it"),
                       CORNU_ERR_FORMAT, "it: byte 2, 0x");
    }
    expect_failure(cornu_text_parse("a\0b", 3, CORNU_TEXT_CODE_POINTS, "it"), CORNU_ERR_FORMAT,
                   "byte 1, 0x00, is no character of a text");
    CornuTextData *text = parse("\xEF\xBB\xBF" "ab", CORNU_TEXT_ALPHABET);
    assert_int_equal(count_of(text), 2);
    cornu_text_free(text);
}

static void test_empty_texts_are_refused(void **state)
{
    (void)state;
    expect_failure(cornu_text_parse("", 0, CORNU_TEXT_BYTES, "it"), CORNU_ERR_FORMAT,
                   "it: the text is empty");
    expect_failure(cornu_text_parse("\xE2\x82\xAC", 3, CORNU_TEXT_CODE_POINTS, "it"),
                   CORNU_ERR_FORMAT, "expected characters below code point 255");
}

/* ---- Samplings ---- */

enum { LETTERS = 26, MOST = 64 };
static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

/* Takes the data set. The first letters of x in the order they come; checks that x and y are
 * neighbours in the alphabet. */
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

/* Each of the 24 - 3 places is as likely: chi square of 21,000 draws with 20 degrees of freedom is
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

/* Row b of batch k + 1 goes on where row b of batch k ended. */
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
                   "26 tokens are too few for 1 sequence of 26 and what follows, expected at least "
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
                   "tokens 20 to 27 are asked for, expected a part of 0 to 26");
    expect_failure(cornu_text_dataset(.sequence_length = 5), CORNU_ERR_ARGUMENT, ".text is NULL");
    cornu_text_free(text);
}

/* ---- Files ---- */

static void test_files(void **state)
{
    (void)state;
    files_write(files_path(folder, "plays/one.txt"), letters, LETTERS);
    files_write(files_path(folder, "plays/none.txt"), "", 0);

    CornuTextData *text = cornu_text_load(.file = files_path(folder, "plays/one.txt"));
    assert_non_null(text);
    assert_string_equal(decoded(text), letters);
    cornu_text_free(text);
    text = cornu_text_load(.file = "plays/one.txt", .data = folder, .limit = 5);
    assert_non_null(text);
    assert_string_equal(decoded(text), "abcde");
    assert_non_null(strstr(text->description, "plays/one.txt: 5 characters"));
    cornu_text_free(text);

    expect_failure(cornu_text_load(.file = "plays/none.txt", .data = folder), CORNU_ERR_FORMAT,
                   "plays/none.txt: the text is empty");
    expect_failure(cornu_text_load(.file = "plays/two.txt", .data = folder), CORNU_ERR_DATA,
                   "there is no file plays/two.txt, neither here nor in /");
    expect_failure(cornu_text_load(.file = folder), CORNU_ERR_FILE, "is a folder, expected a file");
    expect_failure(cornu_text_load(.data = folder), CORNU_ERR_DATA,
                   ".data = \"synthetic\" does without the file, .file names another one");
    expect_failure(cornu_text_load(.file = "x", .limit = -1), CORNU_ERR_ARGUMENT, "limit is -1");
}

/* The text of a seed is always the same, begins the same if it is shorter, and is one to learn: few
 * characters, words that come again. */
static void test_synthetic_text(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static char one[COUNT + 1], other[COUNT + 1];
    int64_t     used[256] = { 0 }, kinds = 0;
    cornu_synthetic_text(7, COUNT, one);
    cornu_synthetic_text(7, 777, other);
    assert_memory_equal(one, other, 777);
    assert_int_equal(other[777], 0);
    for (int i = 0; i < COUNT; i++) {
        assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz ,.\n", one[i]));
        kinds += used[(unsigned char)one[i]]++ == 0;
    }
    assert_in_range(kinds, 15, 30);
    assert_in_range(used[' '], COUNT / 12, COUNT / 4);
    assert_true(used['\n'] > COUNT / 200 && used['.'] > 0 && used[','] > 0);
    assert_non_null(strstr(strstr(one, "\n") + 1, (char[]){ one[0], one[1], 0 }));
    cornu_synthetic_text(8, COUNT, other);
    assert_memory_not_equal(one, other, 100);

    CornuTextData *text = cornu_text_load(.data = "synthetic", .limit = COUNT, .seed = 7);
    assert_non_null(text);
    assert_true(text->synthetic);
    assert_int_equal(count_of(text), COUNT);
    assert_memory_equal(text->tokens.data, one, COUNT);
    assert_string_equal(text->description, "synthetic text, drawn by code with seed 7: 5000 "
                                           "characters, vocabulary 256");
    cornu_text_free(text);
}

/* Blocks of 101: 100 characters and, one further on, what follows each; the last tenth of the text
 * apart. */
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
    expect_failure(cornu_shakespeare_load(.limit = -1), CORNU_ERR_ARGUMENT, "limit is -1");
}

/* One character less than a tenth of which a block can be made. */
static void test_short_shakespeare_is_refused(void **state)
{
    (void)state;
    char text[1010 + 1];
    cornu_synthetic_text(1, 1010, text);
    text[1010] = 0;
    files_write(files_path(folder, "shakespeare/input.txt"), text, 1009);
    expect_failure(cornu_shakespeare_load(.data = folder), CORNU_ERR_DATA,
                   "1009 characters, vocabulary 256: a tenth of these is for testing, expected at "
                   "least 101 there");
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
    if (!files_real("shakespeare/input.txt")) skip();
    CornuTextData *tiny = cornu_text_load(.encoding = CORNU_TEXT_ALPHABET);
    assert_non_null(tiny);
    assert_int_equal(count_of(tiny), 1115394);
    assert_int_equal(tiny->vocabulary, 65);
    CornuDataset *blocks = cornu_text_dataset(tiny, 100);
    assert_int_equal(cornu_dataset_count(blocks), 11043);
    cornu_dataset_free(blocks);
    cornu_text_free(tiny);
    if (!files_real("shakespeare/complete.txt")) skip();
    CornuTextData *complete = cornu_text_load(.file = "shakespeare/complete.txt");
    assert_non_null(complete);
    assert_int_equal(count_of(complete), 5283795);
    assert_int_equal(complete->dropped, 0);
    cornu_text_free(complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_points),
        cmocka_unit_test(test_alphabet),
        cmocka_unit_test(test_large_alphabet),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_encoding_without_a_text),
        cmocka_unit_test(test_bad_utf8_is_refused),
        cmocka_unit_test(test_empty_texts_are_refused),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_random_places),
        cmocka_unit_test(test_random_places_are_uniform),
        cmocka_unit_test(test_continued_rows),
        cmocka_unit_test(test_impossible_data_sets_are_refused),
        cmocka_unit_test_setup_teardown(test_files, files_begin, files_end),
        cmocka_unit_test(test_synthetic_text),
        cmocka_unit_test(test_shakespeare_in_sequences),
        cmocka_unit_test_setup_teardown(test_short_shakespeare_is_refused, files_begin, files_end),
        cmocka_unit_test(test_real_shakespeare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
