/*
 * A limit on single allocations.
 *
 * A file of a few hundred bytes can claim to hold gigabytes: a member of an archive, an image, a
 * model with RepeatVector(2000000), a column of a table whose 40,000 categories become as many
 * columns. So each allocation of the library is limited: an array in a file, or a file itself; a
 * table as numbers; a weight; the intermediate values of a model's step, which are one allocation.
 * A larger one fails with CORNU_ERR_MEMORY and a message with its size and the limit.
 *
 * The limit is set by cornu_set_memory_limit; or else by CORNU_MAX_MEMORY in the environment, in
 * bytes, or followed by K, M, G or T for 2^10, 2^20, 2^30 or 2^40; or else it is half of the
 * machine's memory.
 */
#ifndef CORNU_DEVICE_MEMORY_H
#define CORNU_DEVICE_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For all threads, from now on. 0 restores the default. */
void cornu_set_memory_limit(size_t bytes);

/* The limit in force, in bytes; 0 for an invalid CORNU_MAX_MEMORY, with which every allocation
 * fails. */
size_t cornu_memory_limit(void);

#ifdef __cplusplus
}
#endif
#endif
