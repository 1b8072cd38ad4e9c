/* The server's reader of JSON: what it takes is what jansson takes, and TensorFlow Serving besides;
 * numbers have the bits of strtod. */
#include "../../examples/cornu/serve/json/json_check.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/serve/json/json.c"       /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/serve/json/reply.c"      /* NOLINT(bugprone-suspicious-include) */

/* jansson, which text.c includes, has names of its own for kinds. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_STRING JANSSON_STRING
#define JSON_TRUE   JANSSON_TRUE
#define JSON_FALSE  JANSSON_FALSE
#define JSON_NULL   JANSSON_NULL
#include "../../examples/cornu/serve/json/text.c"       /* NOLINT(bugprone-suspicious-include) */
#undef JSON_OBJECT
#undef JSON_STRING
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A copy that ends where the body does, which sanitizers watch. */
static Json parse(const char *body, size_t size, char **copy, Problem *problem)
{
    *problem = (Problem){ .code = CODE_OK };
    *copy = malloc(size + !size);
    assert_non_null(*copy);
    memcpy(*copy, body, size);
    return json_parse(*copy, size, problem);
}

static void refuses(const char *body, const char *part)
{
    char   *copy;
    Problem problem;
    if (parse(body, strlen(body), &copy, &problem) || !strstr(problem.message, part))
        fail_msg("%s: \"%s\", expected \"%s\"", body, problem.message, part);
    free(copy);
}

/* Offsets by hand. */
static void test_what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct { const char *body, *part; } cases[] = {
        { "", "The document is empty" },
        { " \n\t ", "The document is empty" },
        { "{\"a\": 1} {}", "must not be followed by other values. at offset: 9" },
        { "{\"a\": 1}x", "must not be followed by other values. at offset: 8" },
        { "{\"a\": [1, 2}", "Missing a comma or ] after an array element. at offset: 11" },
        { "{\"a\": [1,]}", "Invalid value. at offset: 9" },
        { "{\"a\" 1}", "Missing a colon after a name of object member. at offset: 5" },
        { "{a: 1}", "Missing a name for object member. at offset: 1" },
        { "{\"a\": 1,}", "Missing a name for object member. at offset: 8" },
        { "{\"a\": 1", "Missing a comma or } after an object member. at offset: 7" },
        { "{\"a\": 01}", "Missing a comma or } after an object member. at offset: 7" },
        { "{\"a\": 1.}", "Missing fraction part in number. at offset: 8" },
        { "{\"a\": 1e}", "Missing exponent in number. at offset: 8" },
        { "{\"a\": 1e400}", "Number too big to be stored in double. at offset: 6" },
        { "{\"a\": -}", "Invalid value. at offset: 6" },
        { "{\"a\": nul}", "Invalid value. at offset: 6" },
        { "{\"a\": \"b", "Missing a closing quotation mark in string. at offset: 8" },
        { "{\"a\": \"\\x\"}", "Invalid escape character in string. at offset: 8" },
        { "{\"a\": \"\\u12g4\"}", "Incorrect hex digit after \\u escape in string." },
        { "{\"a\": \"\\ud800\"}", "The surrogate pair in string is invalid." },
        { "{\"a\": \"\\udc00\\ud800\"}", "The surrogate pair in string is invalid." },
        { "{\"a\": \"\n\"}", "Invalid encoding in string." },
        { "{\"a\": \"\xc0\x80\"}", "Invalid encoding in string." },
        { "{\"a\": \"\xed\xa0\x80\"}", "Invalid encoding in string." },
        { "{\"a\": \"\xf4\x90\x80\x80\"}", "Invalid encoding in string." },
        { "{\"a\": \"\xe2\x82\"}", "Invalid encoding in string." },
        { "[1, {\"a\": \"\\n\"}, NaN]",
          "JSON Value: [1, {\n    \"a\": \"\\n\"\n}, NaN] Is not object" },
        { "-Infinity", "JSON Value: -Infinity Is not object" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refuses(cases[i].body, cases[i].part);
}

static uint64_t seed = 7;
static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % below;
}

/* Random texts of the characters that matter, in an object. */
static void test_the_grammar_is_jansson_s(void **state)
{
    (void)state;
    static const char letters[] = "{}[],,:\"\"\\u0123456789eE+-.truefalsenul /\xc3\xa9\xe2\x82\xac";
    static const char *const words[] = { "\"a\":", "true", "null", "[1,", "\"\\u00e9\"", "1.5e3",
                                         "\\ud83d\\ude00", "{\"b\":", "0" };
    int taken = 0;
    for (int i = 0; i < 300000; i++) {
        char   body[200] = "{\"k\":", *copy;
        size_t size = strlen(body);
        for (unsigned k = 1 + draw(8); k > 0; k--) {
            const char *word = words[draw(sizeof words / sizeof *words)];
            if (draw(3)) body[size++] = letters[draw(sizeof letters - 1)];
            else memcpy(body + size, word, strlen(word)), size += strlen(word);
        }
        if (draw(4)) body[size++] = '}';
        Problem    problem;
        json_t    *expected = json_loadb(body, size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
                                         NULL);
        const bool got = parse(body, size, &copy, &problem) != NULL;
        if (got != (expected != NULL))
            fail_msg("%.*s: %s", (int)size, body, got ? "taken" : problem.message);
        taken += got;
        json_decref(expected);
        free(copy);
    }
    assert_true(taken > 3000);
}

static JsonNumber number_of(const char *text)
{
    char    body[900], *copy;
    Problem problem;
    snprintf(body, sizeof body, "{\"a\":%s}", text);
    Json at = parse(body, strlen(body), &copy, &problem);
    if (!at) fail_msg("%s: %s", text, problem.message);
    assert_true(json_enter(&at));
    const JsonNumber number = json_number(json_value_of(at));
    assert_ptr_equal(json_end(json_value_of(at)), copy + strlen(body) - 1);
    free(copy);
    return number;
}

static void test_numbers_are_strtod_s(void **state)
{
    (void)state;
    char text[800];
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = (uint64_t)draw(1U << 31) << 33 ^ (uint64_t)draw(1U << 31) << 11 ^
                        draw(2048);
        double   value;
        memcpy(&value, &bits, sizeof value);
        if (i % 4 == 1) value = (double)draw(1000000) / 1000;
        if (i % 4 == 2) value = (double)(bits >> 8) * (draw(2) ? 1 : -1);
        if (!isfinite(value)) continue;
        snprintf(text, sizeof text, draw(2) ? "%.*e" : "%.*g", (int)draw(25), value);
        if (i % 50 == 0) snprintf(text, sizeof text, "%.*f", (int)draw(300), fmod(value, 1e9));
        const double expected = strtod(text, NULL);
        if (isinf(expected)) continue;   /* rounded up beyond the largest, and refused */
        const double got = number_of(text).value;
        if (expected == 0 ? got != 0 : memcmp(&got, &expected, sizeof got) != 0)
            fail_msg("%s: %.17g", text, got);
    }
    assert_true(isnan(number_of("NaN").value) && isnan(number_of("-NaN").value));
    assert_true(isinf(number_of("Infinity").value) && number_of("-Inf").value < 0);
    assert_true(number_of("1.7976931348623157e308").value == 1.7976931348623157e308);
    assert_true(number_of("1e-400").value == 0 && number_of("0e99999999999999999999").value == 0);
}

static void test_whole_numbers(void **state)
{
    (void)state;
    static const struct { const char *text; bool whole, is_integer; int64_t integer; } cases[] = {
        { "0", true, true, 0 }, { "-0", true, true, 0 }, { "7", true, true, 7 },
        { "9223372036854775807", true, true, INT64_MAX },
        { "-9223372036854775808", true, true, INT64_MIN },
        { "9223372036854775808", true, false, 0 }, { "-9223372036854775809", true, false, 0 },
        { "18446744073709551615", true, false, 0 }, { "18446744073709551616", false, false, 0 },
        { "1.0", false, false, 0 }, { "1e2", false, false, 0 }, { "NaN", false, false, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const JsonNumber got = number_of(cases[i].text);
        if (got.whole != cases[i].whole || got.is_integer != cases[i].is_integer ||
            (got.is_integer && got.integer != cases[i].integer))
            fail_msg("%s: %d %d %lld", cases[i].text, got.whole, got.is_integer,
                     (long long)got.integer);
    }
}

static void test_strings_are_decoded(void **state)
{
    (void)state;
    const char body[] = "{\"\\u0061\\/\\\"\": "
                        "\"\\u00e9\\u20ac\\ud83d\\ude00\\b\\f\\n\\r\\t\\\\z\"}";
    char      *copy, text[100];
    Problem    problem;
    Json       at = parse(body, strlen(body), &copy, &problem);
    assert_true(at && json_enter(&at) && json_is(at, "a/\"") && !json_is(at, "a/"));
    const size_t size = json_read(json_value_of(at), text);
    assert_int_equal(size, strlen("\u00e9\u20ac\U0001f600\b\f\n\r\t\\z"));
    assert_memory_equal(text, "\u00e9\u20ac\U0001f600\b\f\n\r\t\\z", size);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_the_grammar_is_jansson_s),
        cmocka_unit_test(test_numbers_are_strtod_s),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_strings_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
