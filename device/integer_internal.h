/* Arithmetic of sizes. */
#ifndef CORNU_DEVICE_INTEGER_INTERNAL_H
#define CORNU_DEVICE_INTEGER_INTERNAL_H

#include <stdint.h>

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* a / b rounded up; a at least 0, b positive. */
static inline int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* The least multiple of b that is at least a. */
static inline int64_t ceil_multiple(int64_t a, int64_t b) { return ceil_divide(a, b) * b; }

#endif
