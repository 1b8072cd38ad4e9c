/* Files of pairs: what is read, and what is refused by line and column; the synthetic languages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/text/pairs.h"
#include "../expect.h"

static void expect_pair(const CornuPairs *pairs, int64_t i, const char *source, const char *target)
{
    assert_string_equal(pairs->source[i], source);
    assert_string_equal(pairs->target[i], target);
}

static void reads_pairs(void **state)
{
    (void)state;
    static const char text[] = "\xEF\xBB\xBFGo.\tVe.\r\nI am\tyo soy\n ¿a\tb \n\n\n";
    CornuPairs *pairs = cornu_pairs_parse(text, sizeof text - 1, "pairs.tsv");
    assert_non_null(pairs);
    assert_int_equal(pairs->count, 3);
    expect_pair(pairs, 0, "Go.", "Ve.");
    expect_pair(pairs, 1, "I am", "yo soy");
    expect_pair(pairs, 2, " ¿a", "b ");
    cornu_pairs_free(pairs);
    static const char old_mac[] = "a\tb\rc\td\r\r";
    pairs = cornu_pairs_parse(old_mac, sizeof old_mac - 1, "pairs.tsv");
    assert_non_null(pairs);
    assert_int_equal(pairs->count, 2);
    expect_pair(pairs, 1, "c", "d");
    cornu_pairs_free(pairs);
}

static void refuses_broken_lines(void **state)
{
    (void)state;
    static const struct { const char *text, *place; } broken[] = {
        { "a\tb\nno tab\n", "x.tsv: line 2, column 7: no tab" },
        { "\tb\n", "x.tsv: line 1, column 1: the source is empty" },
        { "ü\t\n", "x.tsv: line 1, column 3: the target is empty" },
        { "a\tb\n  \tb\n", "x.tsv: line 2, column 1: the source is empty" },
        { "üa\t  \n", "x.tsv: line 1, column 4: the target is empty" },
        { "a\tb\tc\n", "x.tsv: line 1, column 4: a second tab" },
        { "a\tb\n\xC3\xBC" "b\xFF\tc\n", "x.tsv: line 2, column 3: not valid UTF-8" },
        { "a\tb\n\nc\td\n", "x.tsv: line 2, column 1: no tab" },
        { "a\x01\tb\n", "x.tsv: line 1, column 2: a control character" },
        { "", "x.tsv: has no pairs" },
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_null(cornu_pairs_parse(broken[i].text, strlen(broken[i].text), "x.tsv"));
        if (!strstr(cornu_error_message(), broken[i].place))
            fail_msg("\"%s\", expected \"%s\"", cornu_error_message(), broken[i].place);
        assert_int_equal(cornu_error_take(), CORNU_ERR_FORMAT);
    }
    assert_null(cornu_pairs_load("tests/no such file"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
}

/* The words of a line; their number. */
static int words_of(char *line, char *words[32])
{
    int count = 0;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) words[count++] = word;
    return count;
}

static void synthetic_rules(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    CornuPairs *pairs = cornu_pairs_synthetic(5, COUNT), *again = cornu_pairs_synthetic(5, COUNT);
    assert_non_null(pairs);
    assert_non_null(again);
    assert_int_equal(pairs->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char  source[200], target[200], *s[32], *t[32];
        expect_pair(again, i, pairs->source[i], pairs->target[i]);
        snprintf(source, sizeof source, "%s", pairs->source[i]);
        snprintf(target, sizeof target, "%s", pairs->target[i]);
        const int words = words_of(source, s);
        assert_int_equal(words_of(target, t), words);
        assert_true(words >= 5 && words <= 10);
        /* The adverb is last, and first in the translation; the verb is last there. */
        const char *last = s[words - 1];
        const bool  adverb = strlen(last) > 2 && !strcmp(last + strlen(last) - 2, "ly");
        assert_true(adverb == !strcmp(t[0] + strlen(t[0]) - 2, "th"));
        assert_true(t[words - 1][strlen(t[words - 1]) - 2] == 't');
        /* The subject's article tells the number, by which the verb ends. */
        const bool plural = s[0][strlen(s[0]) - 1] == 'n';
        assert_true(plural == (t[words - 1][strlen(t[words - 1]) - 1] == 'i'));
        for (int k = i + 1; k < i + 20 && k < COUNT; k++)
            assert_true(strcmp(pairs->source[i], pairs->source[k]) != 0);
    }
    cornu_pairs_free(again);
    cornu_pairs_free(pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(reads_pairs),
                                        cmocka_unit_test(refuses_broken_lines),
                                        cmocka_unit_test(synthetic_rules) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
