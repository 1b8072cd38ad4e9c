#include "naming_internal.h"

#include <ctype.h>
#include <stdbool.h>

void cornu__snake_case(const char *class_name, char *to, size_t size)
{
    size_t n = 0;
    for (const char *c = class_name; *c && n + 2 < size; c++) {
        bool starts_word = c > class_name && isupper((unsigned char)*c) &&
                           (islower((unsigned char)c[1]) || islower((unsigned char)c[-1]));
        if (starts_word) to[n++] = '_';
        to[n++] = (char)tolower((unsigned char)*c);
    }
    to[n] = '\0';
}
