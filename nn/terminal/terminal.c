#define _DEFAULT_SOURCE    /* IUTF8 */
#include "terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* An environment variable, "" if it is not set. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* A decimal number of at most four digits, else 0. */
static int small_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 4 && text[digits] == '\0' ? atoi(text) : 0;
}

static int columns_of(int descriptor)
{
    int columns = small_number(environment("COLUMNS"));
    struct winsize size = { 0 };
    if (columns == 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
    return columns > 0 ? columns : 80;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcasecmp(text + length - tail, end) == 0;
}

/* Whether the environment's locale has UTF-8: "en_US.UTF-8", "C.utf8@modifier". *named: whether it
 * has one at all. */
static bool environment_is_utf8(bool *named)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char              *locale = "";
    for (int i = 0; i < 3 && !*locale; i++) locale = environment(names[i]);
    const char  *set = strchr(locale, '.');
    const size_t length = set ? strcspn(set + 1, "@") : 0;
    *named = *locale;
    return (length == 5 && !strncasecmp(set + 1, "UTF-8", 5)) ||
           (length == 4 && !strncasecmp(set + 1, "UTF8", 4));
}

/* A program that has not called setlocale is in the C locale whatever its terminal is: then the
 * environment's locale says it, and without one the terminal's driver. */
static bool is_utf8(int descriptor, bool is_terminal)
{
    const char    *locale = setlocale(LC_CTYPE, NULL);
    struct termios settings;
    bool           named;
    if (!strcasecmp(nl_langinfo(CODESET), "UTF-8")) return true;
    if (!is_terminal || (locale && strcmp(locale, "C") != 0)) return false;
    if (environment_is_utf8(&named)) return true;
#ifdef IUTF8
    return !named && tcgetattr(descriptor, &settings) == 0 && (settings.c_iflag & IUTF8);
#else
    return (void)descriptor, (void)settings, false;
#endif
}

/* The rules of rich (rich/console.py), which Keras prints by. */
static CornuStyling styling_of_terminal(void)
{
    const char *term = environment("TERM"), *colours = environment("COLORTERM");
    if (!strcasecmp(term, "dumb") || !strcasecmp(term, "unknown")) return CORNU_PLAIN;
    if (environment("NO_COLOR")[0] != '\0') return CORNU_BOLD;
    bool many = !strcasecmp(colours, "truecolor") || !strcasecmp(colours, "24bit") ||
                ends_with(term, "-256color") || ends_with(term, "-kitty");
    return many ? CORNU_256_COLOURS : CORNU_16_COLOURS;
}

CornuTerminal cornu_terminal(FILE *file)
{
    int  descriptor = fileno(file);       /* -1 for a stream in memory */
    bool is_terminal = descriptor >= 0 && isatty(descriptor);
    return (CornuTerminal){
        .is_terminal = is_terminal,
        .utf8        = is_utf8(descriptor, is_terminal),
        .columns     = columns_of(descriptor),
        .styling     = is_terminal ? styling_of_terminal() : CORNU_PLAIN,
    };
}
