/* Resolving keyword arguments; see keywords.h. */
#ifndef CORNU_NN_KEYWORDS_INTERNAL_H
#define CORNU_NN_KEYWORDS_INTERNAL_H

#include <stdbool.h>

#include "keywords.h"

/* Whether the source of a call (may be NULL) sets the field of this name, by name or as positional
 * argument number `place`; -1: by name only. */
bool cornu__is_written(const char *written, const char *name, int place);

/* The number; CORNU_ZERO for an explicit 0. */
static inline double cornu__zeroed(const char *written, const char *name, int place, double number)
{
    return number == 0.0 && cornu__is_written(written, name, place) ? (double)CORNU_ZERO : number;
}
#define CORNU__WRITTEN(config, field, place) \
    cornu__zeroed((config)->written, #field, place, (config)->field)

static inline double cornu__number(double given, double usual)
{
    if (given == 0.0) return usual;
    return given == (double)CORNU_ZERO ? 0.0 : given;
}

static inline int64_t cornu__integer(int64_t given, int64_t usual)
{
    if (given == 0) return usual;
    return given == CORNU_ZERO ? 0 : given;
}

#endif
