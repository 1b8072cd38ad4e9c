/*
 * What `make test` tries few of and `make check` all: random shapes, numbers of shards, seconds. A
 * test that asks says so by a line "tests/run: quick" in its first comment.
 */
#ifndef CORNU_TESTS_QUICK_H
#define CORNU_TESTS_QUICK_H

#include <stdlib.h>

/* `few` where CORNU_QUICK is set and not empty, as `make test` does; else `all`. */
static inline int quick(int few, int all)
{
    const char *asked = getenv("CORNU_QUICK");
    return asked && *asked ? few : all;
}

#endif
