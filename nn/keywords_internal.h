/* Resolving keyword arguments; see keywords.h. */
#ifndef CORNU_NN_KEYWORDS_INTERNAL_H
#define CORNU_NN_KEYWORDS_INTERNAL_H

#include "keywords.h"

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
