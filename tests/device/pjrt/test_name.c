/* Names of the device pjrt: the plugin, and its client's options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/pjrt/plugin.h"
#include "../../expect.h"

static CornuPjrtName parsed(const char *device_name)
{
    CornuPjrtName name;
    expect_ok(cornu__pjrt_parse(device_name, &name));
    return name;
}

static void names_have_a_plugin_and_options(void **state)
{
    (void)state;
    CornuPjrtName name = parsed("pjrt");
    assert_string_equal(name.plugin, "");
    assert_int_equal(name.count, 0);
    name = parsed("pjrt:");
    assert_string_equal(name.plugin, "");
    assert_int_equal(name.count, 0);
    name = parsed("pjrt:cuda,preallocate=false,memory_fraction=0.5,platform_name=");
    assert_string_equal(name.plugin, "cuda");
    assert_int_equal(name.count, 3);
    assert_string_equal(name.options[0].name, "preallocate");
    assert_string_equal(name.options[0].value, "false");
    assert_string_equal(name.options[1].name, "memory_fraction");
    assert_string_equal(name.options[1].value, "0.5");
    assert_string_equal(name.options[2].name, "platform_name");
    assert_string_equal(name.options[2].value, "");
}

static void a_path_may_have_what_separates(void **state)
{
    (void)state;
    CornuPjrtName name = parsed("pjrt:/opt/a:b/c=d.so,visible_devices=0:1");
    assert_string_equal(name.plugin, "/opt/a:b/c=d.so");
    assert_int_equal(name.count, 1);
    assert_string_equal(name.options[0].value, "0:1");
}

static void a_comma_may_be_part_of_a_word(void **state)
{
    (void)state;
    CornuPjrtName name = parsed("pjrt:/a\\,b/c.so,x=1\\,\\,2,y=\\,,z=\\n\\");
    assert_string_equal(name.plugin, "/a,b/c.so");
    assert_int_equal(name.count, 3);
    assert_string_equal(name.options[0].value, "1,,2");
    assert_string_equal(name.options[1].value, ",");
    assert_string_equal(name.options[2].value, "\\n\\");
    name = parsed("pjrt:cpu,x=1\\,");
    assert_string_equal(name.options[0].value, "1,");
}

/* Without a plugin's name. */
static void options_may_come_first(void **state)
{
    (void)state;
    CornuPjrtName name = parsed("pjrt:cpu_device_count=8");
    assert_string_equal(name.plugin, "");
    assert_int_equal(name.count, 1);
    assert_string_equal(name.options[0].name, "cpu_device_count");
    name = parsed("pjrt:,log=/a=b");
    assert_string_equal(name.plugin, "");
    assert_string_equal(name.options[0].name, "log");
    assert_string_equal(name.options[0].value, "/a=b");
}

static void expect_refused(const char *device_name, const char *part)
{
    CornuPjrtName name;
    expect_error(cornu__pjrt_parse(device_name, &name), CORNU_ERR_DEVICE, part);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    char long_name[2 * CORNU_PJRT_PATH], many[400] = "pjrt:cpu";
    expect_refused("pjrt:cpu,fast", "\"fast\", expected OPTION=VALUE");
    expect_refused("pjrt:cpu,=1", "\"=1\", expected OPTION=VALUE");
    expect_refused("pjrt:cpu,", "\"\", expected OPTION=VALUE");
    expect_refused("pjrt:cpu,a=1,b=2,a=3", "a is given twice");
    snprintf(long_name, sizeof long_name, "pjrt:cpu,%050d=1", 0);
    expect_refused(long_name, "too long: at most 47 characters for an option");
    snprintf(long_name, sizeof long_name, "pjrt:cpu,a=%0512d", 0);
    expect_refused(long_name, "511 for its value");
    snprintf(long_name, sizeof long_name, "pjrt:/%0*d", CORNU_PJRT_PATH - 1, 0);
    expect_refused(long_name, "a path of 1024 characters, expected at most 1023");
    for (int i = 0; i < CORNU_PJRT_OPTIONS; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",o%d=%d", i, i);
    assert_int_equal(parsed(many).count, CORNU_PJRT_OPTIONS);
    snprintf(many + strlen(many), sizeof many - strlen(many), ",one=more");
    expect_refused(many, "more than 16 options");
}

static void options_are_taken(void **state)
{
    (void)state;
    CornuPjrtName name = parsed("pjrt:cpu,a=1,b=2,c=3,d=4");
    assert_null(cornu__pjrt_take(&name, "none"));
    const char *b = cornu__pjrt_take(&name, "b"), *a = cornu__pjrt_take(&name, "a");
    assert_string_equal(a, "1");
    assert_string_equal(b, "2");
    assert_null(cornu__pjrt_take(&name, "b"));
    assert_int_equal(name.count, 2);
    assert_string_equal(name.options[0].name, "c");
    assert_string_equal(name.options[1].name, "d");
    assert_string_equal(cornu__pjrt_take(&name, "d"), "4");
    assert_string_equal(a, "1");
    assert_string_equal(b, "2");
}

/* The value of "pjrt:cpu,x=TEXT" as the plugin gets it. */
static PjrtNamedValue value_of(const char *text)
{
    static CornuPjrtName  name;
    static CornuPjrtLists lists;
    PjrtNamedValue        values[CORNU_PJRT_OPTIONS];
    char                  device_name[200];
    snprintf(device_name, sizeof device_name, "pjrt:cpu,x=%s", text);
    name = parsed(device_name);
    assert_int_equal(cornu__pjrt_values(&name, &lists, values), 1);
    assert_int_equal(values[0].head.size, 56);
    assert_null(values[0].head.extension);
    assert_int_equal(values[0].name_size, 1);
    assert_memory_equal(values[0].name, "x", 1);
    return values[0];
}

static void is_string(const char *text)
{
    const PjrtNamedValue value = value_of(text);
    assert_int_equal(value.type, PJRT_STRING);
    assert_int_equal(value.value_size, strlen(text));
    assert_memory_equal(value.value.string, text, strlen(text));
}

static void is_integer(const char *text, int64_t number)
{
    const PjrtNamedValue value = value_of(text);
    assert_int_equal(value.type, PJRT_INT64);
    assert_int_equal(value.value_size, 1);
    assert_true(value.value.int64 == number);
}

static void is_list(const char *text, size_t count, const int64_t *numbers)
{
    const PjrtNamedValue value = value_of(text);
    assert_int_equal(value.type, PJRT_INT64_LIST);
    assert_int_equal(value.value_size, count);
    assert_memory_equal(value.value.int64_list, numbers, count * sizeof *numbers);
}

static void is_real(const char *text, float number)
{
    const PjrtNamedValue value = value_of(text);
    assert_int_equal(value.type, PJRT_FLOAT);
    assert_int_equal(value.value_size, 1);
    assert_true(value.value.real == number);
}

static void values_have_types(void **state)
{
    (void)state;
    assert_int_equal(value_of("true").type, PJRT_BOOL);
    assert_int_equal(value_of("true").value_size, 1);
    assert_true(value_of("true").value.boolean);
    assert_int_equal(value_of("false").type, PJRT_BOOL);
    assert_false(value_of("false").value.boolean);
    is_integer("8", 8);
    is_integer("-1", -1);
    is_integer("9223372036854775807", INT64_MAX);
    is_real("0.75", 0.75f);
    is_real("-2.", -2.0f);
    is_real("1e3", 1000.0f);
    is_list("2:2:1", 3, (int64_t[]){ 2, 2, 1 });
    is_list("0:", 1, (int64_t[]){ 0 });
    is_list("0:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15", 16,
                (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 });
}

static void other_values_are_strings(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "bfc", "True", "1x1x1", "0x10", "inf", "nan", " 1", "1 ", "v3:2x2", "1:2:x", "1::2",
        ":1", ":", "1:2:", "-", "1.5:2", "99999999999999999999:1",
        "0:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) is_string(texts[i]);
}

/* Several lists do not share memory. */
static void each_option_has_its_own_list(void **state)
{
    (void)state;
    CornuPjrtName  name = parsed("pjrt:tpu,a=1:2,b=3:4:5");
    CornuPjrtLists lists;
    PjrtNamedValue values[CORNU_PJRT_OPTIONS];
    assert_int_equal(cornu__pjrt_values(&name, &lists, values), 2);
    assert_memory_equal(values[0].value.int64_list, ((int64_t[]){ 1, 2 }), 16);
    assert_memory_equal(values[1].value.int64_list, ((int64_t[]){ 3, 4, 5 }), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_a_plugin_and_options),
        cmocka_unit_test(a_path_may_have_what_separates),
        cmocka_unit_test(a_comma_may_be_part_of_a_word),
        cmocka_unit_test(options_may_come_first),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(options_are_taken),
        cmocka_unit_test(values_have_types),
        cmocka_unit_test(other_values_are_strings),
        cmocka_unit_test(each_option_has_its_own_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
