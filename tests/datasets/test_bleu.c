/* BLEU beside SacreBLEU's (tests/golden/bleu). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "../../datasets/text/bleu.h"
#include "../expect.h"

enum { MOST = 8 };

static void near_to(const char *name, const char *what, double got, const json_t *want)
{
    const double number = json_number_value(want);
    if (got < number - 1e-9 || got > number + 1e-9)
        fail_msg("%s: %s is %.12g, SacreBLEU's %.12g", name, what, got, number);
}

static void scores_of_sacrebleu(void **state)
{
    (void)state;
    json_error_t error;
    json_t      *cases = json_load_file("tests/golden/bleu/corpora.json", 0, &error);
    if (!cases) fail_msg("%s", error.text);
    assert_int_equal(json_array_size(cases), 19);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *about = json_array_get(cases, i);
        const char   *name = json_string_value(json_object_get(about, "name"));
        const char   *translations[MOST], *references[MOST];
        const size_t  count = json_array_size(json_object_get(about, "translations"));
        CornuBleu     bleu;
        assert_true(count <= MOST);
        for (size_t k = 0; k < count; k++) {
            translations[k] = json_string_value(
                json_array_get(json_object_get(about, "translations"), k));
            references[k] = json_string_value(
                json_array_get(json_object_get(about, "references"), k));
        }
        expect_ok(cornu_bleu(translations, references, (int64_t)count, &bleu));
        near_to(name, "the translations' length", (double)bleu.length,
                json_object_get(about, "length"));
        near_to(name, "the references' length", (double)bleu.reference_length,
                json_object_get(about, "reference_length"));
        near_to(name, "the brevity penalty", bleu.brevity_penalty,
                json_object_get(about, "brevity_penalty"));
        for (size_t n = 0; n < 4; n++)
            near_to(name, "a precision", bleu.precisions[n],
                    json_array_get(json_object_get(about, "precisions"), n));
        near_to(name, "the score", bleu.score, json_object_get(about, "score"));
    }
    json_decref(cases);
}

static void no_sentences(void **state)
{
    (void)state;
    CornuBleu bleu;
    assert_int_equal(cornu_bleu(NULL, NULL, 0, &bleu), CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(scores_of_sacrebleu),
                                        cmocka_unit_test(no_sentences) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
