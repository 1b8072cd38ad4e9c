/* Formatting for people and for files. Numbers are formatted as in the C locale, 0.5, whatever the
 * program's LC_NUMERIC is; names are printed with their control characters escaped (shown.h). */
#ifndef CORNU_DEVICE_PRINT_H
#define CORNU_DEVICE_PRINT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "../status_internal.h"
#include "shown.h"

/* As vsnprintf, snprintf, vfprintf and fprintf. All numbers with a decimal point are printed by
 * these. */
int cornu__vformat(char *to, size_t size, const char *format, va_list arguments);
int cornu__format(char *to, size_t size, const char *format, ...) CORNU__PRINTF(3, 4);
int cornu__vprint(FILE *to, const char *format, va_list arguments);
int cornu__print(FILE *to, const char *format, ...) CORNU__PRINTF(2, 3);

/* strtod with a decimal point, whatever the locale. */
double cornu__parse_number(const char *text, char **end);

/* Escapes the control characters of a message except newlines and tabs, and truncates it to fit
 * `size`, at most CORNU_MESSAGE_SIZE (shown.c). */
void cornu__show_controls(char *text, size_t size);

/* As cornu__vformat, with control characters escaped. */
void cornu__vformat_shown(char *to, size_t size, const char *format, va_list arguments);

#endif
