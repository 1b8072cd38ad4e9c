/* Text: encodings, tokens, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/synthetic/synthetic.h"
#include "../../../datasets/text/text.h"
#include "../files.h"
#include "../../expect.h"

static CornuTextData *parse(const char *bytes, CornuTextEncoding encoding)
{
    CornuTextData *text = cornu_text_parse(bytes, strlen(bytes), encoding, "it");
    if (!text) fail_msg("%s", cornu_error_message());
    return text;
}

static int64_t count_of(const CornuTextData *text) { return text->tokens.type.shape.extent[0]; }

/* Decodes all tokens. */
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
    assert_non_null(strstr(text->description, "it: 3 characters, vocabulary 256, dropped 3"));
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

/* 300 Chinese characters do not fit into a byte. */
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

static void test_encoding_without_text(void **state)
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

/* The Unicode Standard, section 3.9: each of these is ill-formed. */
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
        expect_unloaded(cornu_text_parse(text, strlen(text), CORNU_TEXT_ALPHABET, "it"),
                       CORNU_ERR_FORMAT, "it: byte 2, 0x");
    }
    expect_unloaded(cornu_text_parse("a\0b", 3, CORNU_TEXT_CODE_POINTS, "it"), CORNU_ERR_FORMAT,
                   "byte 1, 0x00, is not a text character");
    CornuTextData *text = parse("\xEF\xBB\xBF" "ab", CORNU_TEXT_ALPHABET);
    assert_int_equal(count_of(text), 2);
    cornu_text_free(text);
}

static void test_empty_text_is_refused(void **state)
{
    (void)state;
    expect_unloaded(cornu_text_parse("", 0, CORNU_TEXT_BYTES, "it"), CORNU_ERR_FORMAT,
                   "it: the text is empty");
    expect_unloaded(cornu_text_parse("\xE2\x82\xAC", 3, CORNU_TEXT_CODE_POINTS, "it"),
                   CORNU_ERR_FORMAT, "expected characters below code point 255");
}

enum { LETTERS = 26, MOST = 64 };
static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

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

    expect_unloaded(cornu_text_load(.file = "plays/none.txt", .data = folder), CORNU_ERR_FORMAT,
                   "plays/none.txt: the text is empty");
    expect_unloaded(cornu_text_load(.file = "plays/two.txt", .data = folder), CORNU_ERR_DATA,
                   "file plays/two.txt not found, neither here nor in /");
    expect_unloaded(cornu_text_load(.file = folder), CORNU_ERR_FILE,
                    "is a folder, expected a file");
    expect_unloaded(cornu_text_load(.data = folder), CORNU_ERR_DATA,
                   ".data = \"synthetic\" needs none, .file names another text");
    expect_unloaded(cornu_text_load(.file = "x", .limit = -1), CORNU_ERR_ARGUMENT, "limit is -1");
}

/* A seed always gives the same text, a shorter one is a prefix of it, and there is something to
 * learn: few characters, recurring words. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_points),
        cmocka_unit_test(test_alphabet),
        cmocka_unit_test(test_large_alphabet),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_encoding_without_text),
        cmocka_unit_test(test_bad_utf8_is_refused),
        cmocka_unit_test(test_empty_text_is_refused),
        cmocka_unit_test_setup_teardown(test_files, files_begin, files_end),
        cmocka_unit_test(test_synthetic_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
