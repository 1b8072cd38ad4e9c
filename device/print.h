/*
 * Text for people and for files. Numbers are those of the C locale, 0.5, whatever LC_NUMERIC of the
 * program says; what control characters a name has, as one that comes from a file may, are shown as
 * \x1b and reach no terminal.
 */
#ifndef CORNU_DEVICE_PRINT_H
#define CORNU_DEVICE_PRINT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "status_internal.h"

/* As vsnprintf, snprintf, vfprintf and fprintf. Every number with a point is printed by these. */
int cornu__vformat(char *to, size_t size, const char *format, va_list arguments);
int cornu__format(char *to, size_t size, const char *format, ...) CORNU__PRINTF(3, 4);
int cornu__vprint(FILE *to, const char *format, va_list arguments);
int cornu__print(FILE *to, const char *format, ...) CORNU__PRINTF(2, 3);

/* As strtod. */
double cornu__parse_number(const char *text, char **end);

/* Shows the control characters of a message, but not its line ends; what no longer fits into `size`
 * is cut. */
void cornu__show_controls(char *text, size_t size);

/* A name as it may be shown: itself, or a copy in *to whose control characters, line ends too, are
 * shown, cut at the end. */
typedef struct { char text[240]; } CornuShown;
const char *cornu__shown(CornuShown *to, const char *name);

/* The one of `known` that the fewest insertions, deletions, replacements and swaps of
 * neighbours turn into `word`; NULL when none is near: that would take more than a third of the
 * letters, or 2 of a short word. */
const char *cornu__nearest(const char *word, const char *const *known, int count);

#endif
