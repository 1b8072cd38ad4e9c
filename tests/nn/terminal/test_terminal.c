/* The character set of a stream: of files, and of terminals with and without setlocale. */
#define _DEFAULT_SOURCE    /* IUTF8 */
#define _XOPEN_SOURCE 600  /* posix_openpt */
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../nn/terminal/terminal.h"
#include "../../skip.h"

static int   master = -1;
static FILE *terminal;

static int begin(void **state)
{
    (void)state;
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) return 0;
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    terminal = slave < 0 ? NULL : fdopen(slave, "w");
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (terminal) fclose(terminal);
    if (master >= 0) close(master);
    return 0;
}

static void set_driver(bool utf8)
{
    struct termios settings;
    assert_int_equal(tcgetattr(fileno(terminal), &settings), 0);
    if (utf8) settings.c_iflag |= IUTF8;
    else settings.c_iflag &= ~(tcflag_t)IUTF8;
    assert_int_equal(tcsetattr(fileno(terminal), TCSANOW, &settings), 0);
}

static void set(const char *name, const char *value)
{
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}

/* Without setlocale: LC_ALL goes before LC_CTYPE, and that before LANG. */
static void the_environment_tells_of_a_terminal(void **state)
{
    (void)state;
    static const struct { const char *all, *type, *lang; bool driver, utf8; } cases[] = {
        { NULL, NULL, "en_US.UTF-8", false, true },
        { NULL, NULL, "de_DE.utf8@euro", false, true },
        { NULL, "C.UTF-8", "C", false, true },
        { "C.UTF-8", "C", "C", false, true },
        { "C", "C.UTF-8", "C.UTF-8", true, false },
        { "", "", "de_DE.ISO-8859-1", true, false },
        { NULL, NULL, "en_US", false, false },
        { NULL, NULL, "xx.UTF-88", false, false },
        { NULL, NULL, NULL, false, false },
        { NULL, NULL, NULL, true, true },
    };
    if (!terminal) SKIP_FOR("terminal: /dev/pts");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set("LC_ALL", cases[i].all);
        set("LC_CTYPE", cases[i].type);
        set("LANG", cases[i].lang);
        set_driver(cases[i].driver);
        if (cornu_terminal(terminal).utf8 != cases[i].utf8) fail_msg("case %d", (int)i);
    }
}

static void a_file_is_ascii_without_setlocale(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    set("LC_ALL", "C.UTF-8");
    assert_false(cornu_terminal(file).utf8);
    if (setlocale(LC_CTYPE, "")) assert_true(cornu_terminal(file).utf8);
    fclose(file);
}

/* A program that has chosen a locale is believed. */
static void setlocale_is_believed(void **state)
{
    (void)state;
    if (!terminal) SKIP_FOR("terminal: /dev/pts");
    set("LC_ALL", "C.UTF-8");
    if (setlocale(LC_CTYPE, "C.UTF-8")) assert_true(cornu_terminal(terminal).utf8);
    if (setlocale(LC_CTYPE, "POSIX")) assert_true(cornu_terminal(terminal).utf8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_tells_of_a_terminal),
        cmocka_unit_test(a_file_is_ascii_without_setlocale),
        cmocka_unit_test(setlocale_is_believed),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
