#include "numbers.h"

static uint32_t state = 1;

void numbers_begin(void) { state = 1; }

uint32_t random_bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits() % (uint32_t)(high - low + 1));
}
