#include "print.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>

static locale_t       plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The functions below depend on no other category. */
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Switches this thread to the C locale; returns the one it had. */
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
