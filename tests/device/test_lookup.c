/* Hash tables of names and of addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../device/lookup_internal.h"

enum { COUNT = 10000 };

static void texts_are_copied_and_found(void **state)
{
    (void)state;
    CornuLookup lookup = { .of_strings = true };
    char        name[32];
    assert_int_equal(cornu__lookup_find(&lookup, "dense"), -1);
    assert_null(cornu__lookup_text(&lookup, "dense"));
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "dense_%d", i);
        assert_int_equal(cornu__lookup_set(&lookup, name, i), CORNU_OK);
    }
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "dense_%d", i);
        assert_int_equal(cornu__lookup_find(&lookup, name), i);
    }
    snprintf(name, sizeof name, "dense_%d", COUNT);
    assert_int_equal(cornu__lookup_find(&lookup, name), -1);
    assert_int_equal(cornu__lookup_set(&lookup, "dense_7", 70), CORNU_OK);
    assert_int_equal(cornu__lookup_find(&lookup, "dense_7"), 70);
    assert_int_equal(lookup.count, COUNT);
    assert_string_equal(cornu__lookup_text(&lookup, "dense_7"), "dense_7");
    cornu__lookup_clear(&lookup);
    assert_int_equal(cornu__lookup_find(&lookup, "dense_7"), -1);
}

static void addresses_are_not_looked_at(void **state)
{
    (void)state;
    static char things[COUNT];
    CornuLookup lookup = { 0 };
    for (int i = 0; i < COUNT; i += 2)
        assert_int_equal(cornu__lookup_set(&lookup, &things[i], i), CORNU_OK);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(cornu__lookup_find(&lookup, &things[i]), i % 2 ? -1 : i);
    cornu__lookup_clear(&lookup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_copied_and_found),
        cmocka_unit_test(addresses_are_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
