/* Which known word a misspelt one stands for: "did you mean ...?" */
#ifndef CORNU_DEVICE_NEAREST_H
#define CORNU_DEVICE_NEAREST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The one of `known` that the fewest insertions, deletions, replacements and swaps of neighbours
 * turn into `word`; NULL if all take more than a third of the letters, or more than 2 for a short
 * word. */
const char *cornu_nearest(const char *word, const char *const *known, int count);

/* Writes the known words, each in quotes, separated by commas, the nearest first. Returns `to`. */
const char *cornu_nearest_first(char *to, size_t size, const char *word, const char *const *known,
                                int count);

#ifdef __cplusplus
}
#endif
#endif
