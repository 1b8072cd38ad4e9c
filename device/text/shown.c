#include "print.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../status_internal.h"

/* Control characters: those of ASCII, and U+0080 to U+009F, which are two bytes. */

/* The bytes of the control character that a string begins with, or 0. */
static int control_at(const char *text, bool lines_stay)
{
    const unsigned char *c = (const unsigned char *)text;
    if (lines_stay && (c[0] == '\n' || c[0] == '\t')) return 0;
    if ((c[0] && c[0] < 0x20) || c[0] == 0x7F) return 1;
    return c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0 ? 2 : 0;
}

/* Copies with control characters escaped, up to size - 1 bytes; never half of an escape. */
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

void cornu__vformat_shown(char *to, size_t size, const char *format, va_list arguments)
{
    cornu__vformat(to, size, format, arguments);
    cornu__show_controls(to, size);
}

const char *cornu_shown(CornuShown *to, const char *name)
{
    if (!has_controls(name, false)) return name;
    show(to->text, sizeof to->text, name, false);
    return to->text;
}
