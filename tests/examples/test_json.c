/* What the examples' JSON writer writes is read back, by jansson. */
#include "../../examples/json.c" /* NOLINT(bugprone-suspicious-include): needs no main */

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define STRING "a \"quoted\" \\ path\n\x1b Zürich"

static void reads_back(void **state)
{
    char path[] = "/tmp/cornu-json-XXXXXX";
    Json json;
    (void)state;
    close(mkstemp(path));
    json_begin_file(&json);
    json_text(&json, STRING, STRING);
    json_begin(&json, "empty", '[');
    json_end(&json);
    json_begin(&json, "numbers", '[');
    json_number(&json, NULL, 0.1);
    json_number(&json, NULL, 3.0);
    json_number(&json, NULL, 1e300);
    json_number(&json, NULL, NAN);
    json_whole(&json, NULL, INT64_MIN);
    json_end(&json);
    json_begin(&json, "inner", '{');
    json_flag(&json, "yes", true);
    json_flag(&json, "no", false);
    assert_int_equal(json_end_file(&json, path), CORNU_OK);   /* which ends both */

    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(all);
    assert_int_equal(json_object_size(all), 4);
    assert_string_equal(json_string_value(json_object_get(all, STRING)), STRING);
    assert_int_equal(json_array_size(json_object_get(all, "empty")), 0);
    const json_t *numbers = json_object_get(all, "numbers");
    assert_int_equal(json_array_size(numbers), 5);
    assert_true(json_real_value(json_array_get(numbers, 0)) == 0.1);
    assert_true(json_real_value(json_array_get(numbers, 1)) == 3.0);
    assert_true(json_real_value(json_array_get(numbers, 2)) == 1e300);
    assert_true(json_is_null(json_array_get(numbers, 3)));
    assert_true(json_integer_value(json_array_get(numbers, 4)) == INT64_MIN);
    const json_t *inner = json_object_get(all, "inner");
    assert_true(json_is_true(json_object_get(inner, "yes")));
    assert_true(json_is_false(json_object_get(inner, "no")));
    json_decref(all);
    unlink(path);
}

static void names_the_file(void **state)
{
    Json json;
    (void)state;
    json_begin_file(&json);
    assert_int_equal(json_end_file(&json, "no/such/folder/a.json"), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "no/such/folder/a.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(reads_back),
                                        cmocka_unit_test(names_the_file) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
