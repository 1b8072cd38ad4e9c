/* The clock that everything measured is read from. */
#ifndef CORNU_DEVICE_CLOCK_INTERNAL_H
#define CORNU_DEVICE_CLOCK_INTERNAL_H

/* Seconds on a clock that only goes forward, from a beginning of its own. */
double cornu__seconds(void);

#endif
