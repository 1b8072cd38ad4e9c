/*
 * How much memory may be asked for at once.
 *
 * A file of a few hundred bytes can say that it holds gigabytes: an archive's member, an image, a
 * model with RepeatVector(2000000), a table's column of 40,000 categories that become as many
 * columns. Each piece of memory that the library takes is held to a limit: an array of a file, or a
 * file itself; a table as numbers; a weight; the values of a model's step, which share one piece.
 * What would be more fails with CORNU_ERR_MEMORY and a message that says how much was asked for,
 * and that this is the limit.
 *
 * The limit is what cornu_set_memory_limit says; or else CORNU_MAX_MEMORY of the environment, in
 * bytes, or with K, M, G or T behind it, 2^10, 2^20, 2^30 or 2^40 of them; or else half of the
 * machine's memory.
 */
#ifndef CORNU_DEVICE_MEMORY_H
#define CORNU_DEVICE_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For all threads, from now on. 0: as if it had never been said. */
void cornu_set_memory_limit(size_t bytes);

/* The limit in force, in bytes; 0 for a CORNU_MAX_MEMORY that is no such number, with which nothing
 * can be taken. */
size_t cornu_memory_limit(void);

#ifdef __cplusplus
}
#endif
#endif
