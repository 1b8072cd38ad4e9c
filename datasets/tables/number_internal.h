/* Decimal numbers in text, as strtod reads them in the C locale, several times as fast. */
#ifndef CORNU_DATASETS_NUMBER_INTERNAL_H
#define CORNU_DATASETS_NUMBER_INTERNAL_H

#include <stdbool.h>

/*
 * Reads a number such as -12.5e-3, and sets *end to the first character after it. The result is the
 * double nearest to the number, of two equally near ones the even one. False, with `number` and
 * `end` unset, if there is no number, or it is infinite as a double.
 *   text    ends with a character that no number contains, such as a comma, a line end or a NUL
 *   limit   memory up to here may be read
 */
bool cornu__scan_number(const char *text, const char *limit, const char **end, double *number);

#endif
