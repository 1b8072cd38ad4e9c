/* Numbers for tests that look random, the same ones in each run. */
#ifndef CORNU_TESTS_DEVICE_NUMBERS_H
#define CORNU_TESTS_DEVICE_NUMBERS_H

#include <stdint.h>

/* The next numbers are those that the program began with. */
void numbers_begin(void);

/* 24 bits. */
uint32_t random_bits(void);

/* low to high, both of them among it. */
int64_t between(int64_t low, int64_t high);

#endif
