/* Pseudo-random numbers for tests, the same ones in each run. */
#ifndef CORNU_TESTS_DEVICE_NUMBERS_H
#define CORNU_TESTS_DEVICE_NUMBERS_H

#include <stdint.h>

/* Starts the sequence again. */
void numbers_begin(void);

/* 24 bits. */
uint32_t random_bits(void);

/* low to high, both included. */
int64_t between(int64_t low, int64_t high);

#endif
