/* The cpu device, with one thread and more, against the reference device. */
#ifndef CORNU_TESTS_DEVICE_AGREEMENT_H
#define CORNU_TESTS_DEVICE_AGREEMENT_H

#include <stdint.h>

#include "programs.h"

enum { THREADS = 3 };

extern CornuDevice *reference, *cpu[THREADS];   /* cpu[i] has i + 1 threads */

/* cmocka's set-up and teardown of these devices. */
int open_devices(void **state);
int close_devices(void **state);

/* Expects errors below `tolerance` times the largest expected number; a failure names `what` and
 * output `number`. */
void expect_close(const double *got, const double *expected, int64_t count, double tolerance,
                  const char *what, int number);

/* Runs the program twice on all devices: near the reference, and the same bits on any threads. */
void check(const CornuProgram *program, double tolerance, const char *what);

/* Expects of cpu[1] the same bits of output 0 when the program is compiled without these passes, as
 * CORNU_PASSES names them; a failure names `what`. */
void check_without(const CornuProgram *program, const char *passes, const char *what);

#endif
