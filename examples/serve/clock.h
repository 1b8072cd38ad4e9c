#ifndef CORNU_SERVE_CLOCK_H
#define CORNU_SERVE_CLOCK_H

/* Seconds of a clock that only runs on. */
double clock_seconds(void);

#endif
