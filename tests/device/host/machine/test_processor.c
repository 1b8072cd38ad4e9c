#include "../../../../device/host/machine/processor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../device/host/machine/cpu.h"

static void describes_what_is_used(void **state)
{
    (void)state;
    const char *kept = getenv("CORNU_ISA");
    char        before[32] = "";
    if (kept) snprintf(before, sizeof before, "%s", kept);
    CornuProcessor processor;
    for (int i = 0; i <= (int)cornu__cpu()->best; i++) {
        setenv("CORNU_ISA", cornu__isa_name((CornuIsa)i), 1);
        assert_int_equal(cornu_processor_describe(&processor), CORNU_OK);
        assert_string_equal(processor.isa, cornu__isa_name((CornuIsa)i));
        assert_string_equal(processor.best_isa, cornu__isa_name(cornu__cpu()->best));
    }
    assert_string_equal(processor.name, cornu__cpu()->name);
    assert_int_equal(processor.l1d, cornu__cpu()->l1d);
    assert_int_equal(processor.l2, cornu__cpu()->l2);
    assert_int_equal(processor.l3, cornu__cpu()->l3);
    assert_int_equal(processor.threads, cornu__cpu_threads());

    processor.isa = "untouched";
    setenv("CORNU_ISA", "sse9", 1);
    assert_int_equal(cornu_processor_describe(&processor), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "sse9"));
    assert_string_equal(processor.isa, "untouched");
    unsetenv("CORNU_ISA");
    assert_int_equal(cornu_processor_describe(NULL), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "got NULL"));
    if (kept) setenv("CORNU_ISA", before, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(describes_what_is_used) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
