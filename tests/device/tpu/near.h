/* Comparison of numbers. */
#ifndef CORNU_TESTS_DEVICE_TPU_NEAR_H
#define CORNU_TESTS_DEVICE_TPU_NEAR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

static inline void assert_near(double received, double expected, double relative)
{
    if (fabs(received - expected) <= relative * fabs(expected)) return;
    fail_msg("%.9g, expected %.9g within %g", received, expected, relative);
}

#endif
