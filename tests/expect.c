#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void expect_ok(CornuStatus status)
{
    if (status) fail_msg("%s: %s", cornu_status_name(status), cornu_error_message());
}

void expect_error(CornuStatus got, CornuStatus wanted, const char *part)
{
    if (got != wanted)
        fail_msg("%s instead of %s: %s", cornu_status_name(got), cornu_status_name(wanted),
                 cornu_error_message());
    if (!strstr(cornu_error_message(), part))
        fail_msg("message '%s' lacks '%s'", cornu_error_message(), part);
}

void expect_failure(const void *made, CornuStatus wanted, const char *part)
{
    if (made) fail_msg("made, instead of %s: %s", cornu_status_name(wanted), part);
    expect_error(cornu_error_take(), wanted, part);
}

void expect_unloaded(const void *loaded, CornuStatus wanted, const char *part)
{
    const CornuStatus status = cornu_error_status();
    if (loaded) fail_msg("loaded, instead of %s: %s", cornu_status_name(wanted), part);
    expect_error(status, wanted, part);
    assert_int_equal(cornu_error_take(), CORNU_OK);
}
