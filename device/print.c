#include "print.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

static locale_t       plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The other categories matter to none of the functions below. */
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* For this thread; the locale it had. */
static locale_t enter_plain(void)
{
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

int cornu__vformat(char *to, size_t size, const char *format, va_list arguments)
{
    const locale_t users = enter_plain();
    const int      length = vsnprintf(to, size, format, arguments);
    uselocale(users);
    return length;
}

int cornu__format(char *to, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = cornu__vformat(to, size, format, arguments);
    va_end(arguments);
    return length;
}

int cornu__vprint(FILE *to, const char *format, va_list arguments)
{
    const locale_t users = enter_plain();
    const int      length = vfprintf(to, format, arguments);
    uselocale(users);
    return length;
}

int cornu__print(FILE *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = cornu__vprint(to, format, arguments);
    va_end(arguments);
    return length;
}

double cornu__parse_number(const char *text, char **end)
{
    const locale_t users = enter_plain();
    const double   number = strtod(text, end);
    uselocale(users);
    return number;
}

/* ---- Control characters: those of ASCII, and U+0080 to U+009F, which are two bytes ---- */

/* The bytes of the control character that a text begins with; 0 if it begins with none. */
static int control_at(const char *text, bool lines_stay)
{
    const unsigned char *c = (const unsigned char *)text;
    if (lines_stay && (c[0] == '\n' || c[0] == '\t')) return 0;
    if ((c[0] && c[0] < 0x20) || c[0] == 0x7F) return 1;
    return c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0 ? 2 : 0;
}

/* Copies with controls shown, up to size - 1 bytes; never half of one. */
static void show(char *to, size_t size, const char *from, bool lines_stay)
{
    size_t used = 0;
    while (*from) {
        char      piece[12] = { *from };
        const int bytes = control_at(from, lines_stay);
        for (int i = 0; i < bytes; i++)
            snprintf(piece + 4 * i, sizeof piece - 4 * (size_t)i, "\\x%02x",
                     (unsigned char)from[i]);
        from += bytes ? bytes : 1;
        const size_t length = strlen(piece);
        if (used + length >= size) break;
        memcpy(to + used, piece, length);
        used += length;
    }
    to[used] = '\0';
}

static bool has_controls(const char *text, bool lines_stay)
{
    for (; *text; text++)
        if (control_at(text, lines_stay)) return true;
    return false;
}

void cornu__show_controls(char *text, size_t size)
{
    char shown[CORNU_MESSAGE_SIZE];
    if (!has_controls(text, true)) return;
    show(shown, size < sizeof shown ? size : sizeof shown, text, true);
    memcpy(text, shown, strlen(shown) + 1);
}

const char *cornu__shown(CornuShown *to, const char *name)
{
    if (!has_controls(name, false)) return name;
    show(to->text, sizeof to->text, name, false);
    return to->text;
}
