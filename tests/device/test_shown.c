/* Control characters of names: shown in messages, the log and wherever names are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../device/log_internal.h"
#include "../../device/text/shown.h"

#define CLEAR "\x1b[2J"

static void controls_are_shown(void **state)
{
    static const struct { const char *name, *shown; } cases[] = {
        { "plain", "plain" }, { "Zürich ━ 数字", "Zürich ━ 数字" }, { "", "" },
        { CLEAR "a", "\\x1b[2Ja" }, { "a\rb\bc\x7f", "a\\x0db\\x08c\\x7f" },
        { "two\nlines\t.", "two\\x0alines\\x09." },
        { "\xc2\x9b" "2J", "\\xc2\\x9b2J" }, { "\xc2\xa0.", "\xc2\xa0." }, { "\xc2", "\xc2" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuShown shown;
        assert_string_equal(cornu_shown(&shown, cases[i].name), cases[i].shown);
    }
    /* Too long: truncated, never within an escape. */
    CornuShown shown;
    char       many[200];
    memset(many, '\x1b', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    const char *cut = cornu_shown(&shown, many);
    assert_int_equal(strlen(cut) % 4, 0);
    assert_true(strlen(cut) > sizeof shown.text - 5 && strlen(cut) < sizeof shown.text);
}

static void keep(void *context, CornuLogLevel level, const char *message)
{
    (void)level;
    snprintf(context, 100, "%s", message);
}

static void messages_hold_none(void **state)
{
    char logged[100] = "";
    (void)state;
    cornu__fail(CORNU_ERR_FILE, "%s: is gone\n    and more", CLEAR "name");
    assert_string_equal(cornu_error_message(), "\\x1b[2Jname: is gone\n    and more");
    cornu_error_set(CORNU_ERR_FILE, "%s", "\xc2\x9b");
    assert_string_equal(cornu_error_message(), "\\xc2\\x9b");
    cornu_set_log(CORNU_LOG_DEBUG, keep, logged);
    cornu__log(CORNU_LOG_INFO, "wrote %s", CLEAR);
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    assert_string_equal(logged, "wrote \\x1b[2J");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_are_shown),
        cmocka_unit_test(messages_hold_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
