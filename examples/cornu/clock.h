/* The clock of what cornu measures. */
#ifndef CORNU_EXAMPLES_CLOCK_H
#define CORNU_EXAMPLES_CLOCK_H

#include <time.h>

/* Seconds of a clock that only runs on. */
static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
