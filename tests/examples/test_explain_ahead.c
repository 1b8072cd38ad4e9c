/* Names of topologies, and the table where nothing is known: statics of ahead.c. */
#include "../../examples/cornu/common/refuse.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/explain/ahead.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

static void test_device_has_topology_as_option(void **state)
{
    char name[40];
    (void)state;
    assert_int_equal(explain_topology_device("pjrt:tpu", "v3:2x2", name, sizeof name), CORNU_OK);
    assert_string_equal(name, "pjrt:tpu,topology=v3:2x2");
    assert_string_equal(explain_topology(name), "v3:2x2");
    assert_int_equal(explain_topology_device("pjrt", "1x1x1", name, sizeof name), CORNU_OK);
    assert_string_equal(name, "pjrt:topology=1x1x1");
    assert_string_equal(explain_topology(name), "1x1x1");
}

static void test_other_devices_are_refused(void **state)
{
    char name[24];
    (void)state;
    assert_int_equal(explain_topology_device("tpu:v3-8", "v3:2x2", name, sizeof name),
                     CORNU_ERR_ARGUMENT);
    assert_int_equal(explain_topology_device("pjrt:tpu", "v3:2x2", name, sizeof name),
                     CORNU_ERR_ARGUMENT);   /* one character too long */
}

static void test_device_may_lack_topology(void **state)
{
    (void)state;
    assert_null(explain_topology("cpu"));
    assert_null(explain_topology("pjrt:cpu,some_topology=1"));
    assert_null(explain_topology(NULL));
}

static void test_profile_is_of_same_generation(void **state)
{
    (void)state;
    assert_string_equal(explain_topology_profile("v3:2x2")->name, "v3-8");
    assert_string_equal(explain_topology_profile("v5e:2x4")->name, "v5e-8");
    assert_null(explain_topology_profile("v5:2x2x1"));
    assert_null(explain_topology_profile("tpu7x:2x2x1"));
}

static void test_unknown_figures_are_dashes(void **state)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&text, &size);
    (void)state;
    assert_non_null(to);
    explain_ahead_print(&(Ahead){ .topology = "v3:2x2" }, to);
    fclose(to);
    assert_non_null(strstr(text, "compiled for v3:2x2, not run"));
    assert_non_null(strstr(text, "FLOPs                                   -              -\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_has_topology_as_option),
        cmocka_unit_test(test_other_devices_are_refused),
        cmocka_unit_test(test_device_may_lack_topology),
        cmocka_unit_test(test_profile_is_of_same_generation),
        cmocka_unit_test(test_unknown_figures_are_dashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
