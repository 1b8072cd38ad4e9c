/* A locale whose numbers have a comma, wherever localedef and its character maps are. */
#ifndef CORNU_TESTS_COMMA_H
#define CORNU_TESTS_COMMA_H

#include <stdbool.h>

/* Makes it in a folder and sets LC_NUMERIC to it; false if that is not possible. Undone by
 * setlocale(LC_NUMERIC, "C"). */
bool comma_begin(const char *folder);

#endif
