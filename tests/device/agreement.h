/* The cpu device, with one thread and more, against the reference device. */
#ifndef CORNU_TESTS_DEVICE_AGREEMENT_H
#define CORNU_TESTS_DEVICE_AGREEMENT_H

#include <stdint.h>

#include "programs.h"

enum { THREADS = 3 };

extern CornuDevice *reference, *cpu[THREADS];   /* cpu[i] has i + 1 threads */

/* cmocka's set-up and teardown for these. */
int open_devices(void **state);
int close_devices(void **state);

/* Within tolerance times the largest number expected; `what` and output `number` are named. */
void expect_close(const double *got, const double *expected, int64_t count, double tolerance,
                  const char *what, int number);

/* Runs the program twice on all devices: near the reference, and the same bits on any threads. */
void check(const CornuProgram *program, double tolerance, const char *what);

#endif
