/*
 * Random numbers: Philox 4x32-10, a counter-based generator. A number depends on its key and
 * counter alone, so any thread, shard or later run can draw the same one.
 *
 * Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.3.
 *
 * How the library uses the four words of the counter:
 *     0  element / 4 within a row (or within the whole tensor, for initial weights)
 *     1  position of the row in the global batch
 *     2  the optimizer's iteration; CORNU_INITIAL_WEIGHTS for initial weights
 *     3  the generator's number, assigned when the model is built
 * The key is the 64-bit seed. Values above 32 bits are refused.
 */
#ifndef CORNU_DEVICE_RANDOM_H
#define CORNU_DEVICE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORNU_INITIAL_WEIGHTS UINT32_C(0xFFFFFFFF)

/* The four words of random bits for a key and a counter. */
void cornu_philox(uint64_t seed, const uint32_t counter[4], uint32_t out[4]);

/* The upper 24 bits as a float in [0, 1): every value is a multiple of 2^-24. */
float cornu_uniform(uint32_t bits);

#ifdef __cplusplus
}
#endif
#endif
