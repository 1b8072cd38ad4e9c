/* The clock of all measurements. */
#ifndef CORNU_DEVICE_CLOCK_INTERNAL_H
#define CORNU_DEVICE_CLOCK_INTERNAL_H

#include <time.h>

/* Seconds on a monotonic clock, from an arbitrary start. */
static inline double cornu__seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
