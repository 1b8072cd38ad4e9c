/* CORNU_TEST='*pools*' in the environment of any test program: only the tests whose names fit run,
 * * standing for any characters and ? for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void filter(void)
{
    const char *pattern = getenv("CORNU_TEST");
    if (pattern) cmocka_set_test_filter(pattern);
}
