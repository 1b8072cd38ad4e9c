/* Text for people and for files: numbers are those of the C locale, 0.5, whatever LC_NUMERIC of the
 * program says, and names are printed with their control characters shown (shown.h). */
#ifndef CORNU_DEVICE_PRINT_H
#define CORNU_DEVICE_PRINT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "shown_internal.h"
#include "../status_internal.h"

/* As vsnprintf, snprintf, vfprintf and fprintf. Every number with a point is printed by these. */
int cornu__vformat(char *to, size_t size, const char *format, va_list arguments);
int cornu__format(char *to, size_t size, const char *format, ...) CORNU__PRINTF(3, 4);
int cornu__vprint(FILE *to, const char *format, va_list arguments);
int cornu__print(FILE *to, const char *format, ...) CORNU__PRINTF(2, 3);

/* As strtod. */
double cornu__parse_number(const char *text, char **end);

#endif
